/* SPDX-License-Identifier: MIT
 *
 * rowlock: optimistic updates of your own tables by a version column.
 *
 * A row says which version it is. You read row and version, think, and write back on the condition
 * that the version is still the one you read; whoever comes second is told so instead of
 * overwriting the first. Here that is done for one row or for thousands in one statement, on
 * PostgreSQL, MySQL/MariaDB and SQLite alike, and each row that was not written is named, with the
 * reason and the version it has.
 *
 *     static const char *const key[] = {"id", NULL}, *const columns[] = {"price", NULL};
 *     rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
 *     rowlock_table *prices = NULL;
 *     about.name = "prices", about.key = key, about.columns = columns;
 *     if (rowlock_table_open(db, &about, &prices) != ROWLOCK_OK)
 *         return complain(db);
 *     rowlock_value id = rowlock_int(42), price = rowlock_decimal("19.90");
 *     rowlock_change change = {.key = &id, .values = &price, .version = 7};
 *     if (rowlock_update(prices, &change, 1, NULL) == ROWLOCK_STALE)
 *         printf("somebody was faster: it is version %lld\n", (long long)change.current);
 *     rowlock_table_close(prices);
 *
 * The table needs a unique key (primary or not) and an integer column that is never NULL. rowlock's
 * own tables need not be installed, but for rowlock_walk() and rowlock_once_claim(). Writers that
 * do not know the version must change it all the same, or their changes are not noticed:
 * docs/VERSIONS.md has a trigger for that, and what can be done where no column can be added.
 *
 * YOUR TRANSACTION. On an adopted connection that is inside a transaction, and within
 * rowlock_retry(), these calls become a part of it and end nothing; outside, each statement is a
 * commit of its own, or all of them are one where you ask for all or nothing. Where the transaction
 * has lost against another's, the result is CONFLICT and rowlock_error.transaction_over says
 * whether it can go on: on PostgreSQL after any error it cannot, above READ COMMITTED a row that
 * changed since its snapshot is one; on MySQL and MariaDB not after a deadlock, nor, with
 * innodb_snapshot_isolation, after a row that changed since its snapshot. A row that was changed
 * before the snapshot is STALE on all of them.
 *
 * THREADS, BLOCKING, RESULTS: as in rowlock.h. A statement waits for others' row locks, up to the
 * statement deadline. */
#ifndef ROWLOCK_VERSIONS_H
#define ROWLOCK_VERSIONS_H

#include <rowlock/rowlock.h>
#include <rowlock/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- tables */

/* One of your tables, as this program writes it: a name, a key, a version, and the columns to
 * set. */
typedef struct rowlock_table rowlock_table;

typedef struct rowlock_table_options {
    size_t size; /* sizeof(rowlock_table_options) */
    const char *schema; /* or the database on MySQL; NULL: where the session looks first */
    const char *name;
    const char *const *key; /* columns, NULL-terminated: all those of one unique key */
    /* to be set by updates and given by inserts, NULL-terminated; may be NULL */
    const char *const *columns;
    const char *version; /* NULL: "version" */
    /* What updates set instead of the columns: your own SQL as it stands after SET, with ? for each
     * parameter ("balance = balance - ?, note = ?"); ?? stands for a question mark (in C "?" "?",
     * or it may be a trigraph), which one in quotes or in a comment is anyway, but not in E'' or $$
     * of PostgreSQL. It is sent as it is: never make it of data. Column names are the table's own.
     * The version column must not be among those it sets: rowlock sets that, and on MySQL and
     * MariaDB would tell another version than the row then has. */
    const char *set;
    /* Of an inserted row. 0: one that it did not have if it was there before and was deleted: the
     * clock in microseconds; in a column of 32 bits a random number below 2^30, in a narrower one
     * 1. */
    int64_t first_version;
} rowlock_table_options;

#define ROWLOCK_TABLE_OPTIONS_INIT                                           \
    {                                                                        \
        sizeof(rowlock_table_options), NULL, NULL, NULL, NULL, NULL, NULL, 0 \
    }
ROWLOCK_API void rowlock_table_options_init(rowlock_table_options *options);

/* Look the table up and open a handle on it. Names are taken as they are, quoted, in the database's
 * own spelling. OK; EINVAL if it, a column or such a unique key is not there, if the version column
 * is no integer, is generated, may be NULL or cannot hold first_version, or if set is empty or a
 * comment in it does not end; ENOMEM; or as the connection has it. Texts are copied. Yours to
 * close, before db is. If the table is altered afterwards, open it anew. Round trips: 1. */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_table_open(rowlock_db *db, const rowlock_table_options *options, rowlock_table **out);
ROWLOCK_API void rowlock_table_close(rowlock_table *table); /* NULL is harmless */

/* A row as it was read. Valid until the next call on its table. */
typedef struct rowlock_row {
    const rowlock_value *key; /* as many as the key has columns */
    const rowlock_value *values; /* as many as there are columns */
    int64_t version;
} rowlock_row;

/* Read the row with this key: its columns and its version.
 *
 * lock: 1 takes a row lock that lasts until the transaction ends. Use it when you will update the
 * row in the same transaction, or when rowlock_attempt.lock is 1. It sees the newest state at any
 * isolation. Where that is not possible the result is CONFLICT:
 *  - PostgreSQL above READ COMMITTED: the row changed after the snapshot of the transaction.
 *  - SQLite: another transaction writes the file, or has written it after your transaction first
 *    read. The lock is that of the whole file.
 * It does not hold between two nodes that both take writes (Galera, Group Replication): use
 * rowlock_touch().
 *
 * OK; GONE; ESERVER if a row policy lets you read the row and not lock it; EINVAL if a column
 * cannot take its part of the key, or if that is NULL. Round trips: 1. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_read(rowlock_table *table, const rowlock_value *key,
                                                int lock, rowlock_row *out);

/* ---------------------------------------------------------------- changes */

/* What shall become of one row, and what became of it. */
typedef struct rowlock_change {
    /* As many as the key has columns, each as the database stores it: what it rounds or changes on
     * insert ('1.004' in numeric(10,2), fractions in timestamp(0), the YEAR 24 of MySQL) is not
     * found by that. */
    const rowlock_value *key;
    /* as many as there are columns, or parameters in set; NULL for calls that set none */
    const rowlock_value *values;
    int64_t version; /* the row must have this one; for inserts it is not looked at */
    /* OK         applied.
     * STALE      it has another version.
     * GONE       there is no such row.
     * EXISTS     there is one already (inserts).
     * UNDONE     not changed because of another row: all was to be done or nothing, or the
     *            statement that it was in was refused, and the row could not be found (see
     *            VIOLATION below).
     * VIOLATION  it would break a constraint, or a value does not fit its column. It is as it was.
     * EUNCERTAIN the answer was lost. It is not as it was: we, or another, changed it.
     * ESERVER    it is as it should be, but the database leaves it so: a trigger or policy of the
     *            table. For expect: a row policy lets it be read and not locked.
     * EINVAL     its version is no integer of 64 bits.
     * CANCELLED  not reached. */
    int result;
    int32_t reserved;
    /* its version now: the new one if it was applied; 0 if there is no row, or unknown */
    int64_t current;
} rowlock_change;

typedef struct rowlock_change_options {
    size_t size; /* sizeof(rowlock_change_options) */
    int32_t all_or_nothing; /* 1: if one row cannot be changed, none is */
    int32_t chunk; /* rows in a statement; 0: 1,000; at most 10,000. Long values make it fewer */
    /* Called after each chunk but the last, may be NULL: done of total. Not 0: stop, CANCELLED. */
    int (*progress)(void *context, size_t done, size_t total);
    void *context;
} rowlock_change_options;

#define ROWLOCK_CHANGE_OPTIONS_INIT                      \
    {                                                    \
        sizeof(rowlock_change_options), 0, 0, NULL, NULL \
    }
ROWLOCK_API void rowlock_change_options_init(rowlock_change_options *options);

/* Change rows that have the version you say, and move each to the next one. Options may be NULL.
 *
 *  update  sets columns (or what set says).
 *  touch   sets nothing: for what belongs to the row but stands elsewhere.
 *  expect  changes nothing: the rows have these versions and, inside a transaction, keep them until
 *          it ends. Not between two nodes that both take writes: there use touch.
 *  insert  makes new rows, of the first version. On MySQL and MariaDB inserting several fires
 *          triggers before updates for rows that are there.
 *  remove  deletes rows.
 *
 * OK: all of them. Else what hindered the first that was not changed: STALE, GONE, EXISTS,
 * VIOLATION, EUNCERTAIN, ESERVER. rowlock_error.row is its index. Each change has its own result.
 * The others were changed, unless all or nothing was asked for.
 * CONFLICT  the transaction around it lost against another's; see above. Nothing was changed that a
 *           rollback does not undo.
 * EINVAL    a value that its column cannot take, a key twice, a parameter of several kinds:
 *           nothing was sent. Or the server says so; then the chunks before it are done, and say
 *           so.
 * VIOLATION the database refused a row, and rowlock_error.constraint says why. After a chunk was
 *           refused its rows are sent again by halves, until each such row is found. Not in your
 *           own transaction on PostgreSQL, unless all or nothing is asked for: there the refusal
 *           has ended the transaction, rowlock_error.row is -1 if the chunk had several rows, and
 *           these are UNDONE.
 * EUNCERTAIN, if all was to be done or nothing: the commit's answer was lost; all or none were
 * changed.
 *
 * A version at its column's end is an error, never a wrap. A parameter of set is of one kind in all
 * rows of a call, or NULL. Rows are sent in the order of their keys, so that two batches never wait
 * for each other; where a deadlock is met nevertheless the statement is sent again, unless it is in
 * your transaction. Keys are told apart by their bytes: two that the database takes for equal ('a'
 * and 'A' where case does not matter) are two changes of one row, of which one is STALE; two
 * removals of it may be told as one, OK both.
 *
 * Round trips: one for each chunk, one more if a row of it was not changed. On MySQL and MariaDB an
 * insert of several rows takes one more. All or nothing takes two more (PostgreSQL: one). In your
 * transaction a chunk of several rows takes one more on PostgreSQL, to lock them in order. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_update(rowlock_table *table, rowlock_change *changes,
                                                  size_t count,
                                                  const rowlock_change_options *options);
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_touch(rowlock_table *table, rowlock_change *changes,
                                                 size_t count,
                                                 const rowlock_change_options *options);
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_expect(rowlock_table *table, rowlock_change *changes,
                                                  size_t count,
                                                  const rowlock_change_options *options);
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_insert(rowlock_table *table, rowlock_change *changes,
                                                  size_t count,
                                                  const rowlock_change_options *options);
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_remove(rowlock_table *table, rowlock_change *changes,
                                                  size_t count,
                                                  const rowlock_change_options *options);

/* ---------------------------------------------------------------- again, until it fits */

typedef struct rowlock_attempt {
    int32_t number; /* 1, 2, … */
    int32_t lock; /* for rowlock_read(): it has failed so often that reading shall lock */
} rowlock_attempt;

typedef struct rowlock_retry_options {
    size_t size; /* sizeof(rowlock_retry_options) */
    int32_t attempts; /* 0: 20 */
    int32_t lock_after; /* conflicts after which rowlock_attempt.lock is 1; 0: 2; < 0: never */
    int64_t deadline_ms; /* no attempt begins later; 0: 10,000 */
    int64_t base_ms; /* before attempt n + 1 a random pause up to base * 2^n, at most cap; 0: 2 */
    int64_t cap_ms; /* 0: 200 */
} rowlock_retry_options;

#define ROWLOCK_RETRY_OPTIONS_INIT                   \
    {                                                \
        sizeof(rowlock_retry_options), 0, 0, 0, 0, 0 \
    }
ROWLOCK_API void rowlock_retry_options_init(rowlock_retry_options *options);

typedef struct rowlock_retry_report {
    size_t size; /* sizeof(rowlock_retry_report) */
    int32_t attempts;
    int32_t conflicts;
    int64_t lost_us; /* spent on attempts that failed, and on pauses */
} rowlock_retry_report;

#define ROWLOCK_RETRY_REPORT_INIT             \
    {                                         \
        sizeof(rowlock_retry_report), 0, 0, 0 \
    }

/* Run attempt() in a transaction, and again in another when it or the commit has met a conflict:
 * read, compute, write, all of it anew each time. On db, which may be adopted but then must be
 * outside of a transaction; calls with db, or tables of it, become a part of the transaction, and
 * so does your own SQL on an adopted connection. It must not end the transaction.
 *
 * What attempt() returns: OK: commit. STALE, CONFLICT, BUSY, EXISTS: roll back, pause, again; GONE
 * too, but if it says so twice running it is the result. All else ends it, rolled back, and is the
 * result: positive numbers from 100 on are yours. If the connection of db was lost during the
 * attempt, the transaction is lost with it, and nothing of it was committed: ECONN then means
 * again, on a new connection. ECONN ends it on an adopted connection, and where the connection of
 * db still stands: it is about something else.
 *
 * OK         committed.
 * VIOLATION  the commit was refused because of a deferred constraint; nothing was done.
 * STALE …    as the last attempt said when the attempts were used up or the deadline was over.
 * CANCELLED  rowlock_cancel() in a pause.
 * EUNCERTAIN the answer to the commit was lost, and the first row that was updated or removed does
 *            not prove that it was not done. It is never tried again then. If the row proves that,
 *            it is.
 *
 * Round trips: 2 an attempt, and those of the attempt. Blocks until the deadline at most, and as
 * long as attempt() takes. */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_retry(rowlock_db *db, int (*attempt)(void *context, const rowlock_attempt *attempt),
              void *context, const rowlock_retry_options *options, rowlock_retry_report *report);

/* ---------------------------------------------------------------- a whole table */

typedef struct rowlock_walk_report {
    size_t size; /* sizeof(rowlock_walk_report) */
    int64_t rows; /* walked by, those of earlier runs included */
    int64_t written;
    int64_t left; /* that each() left as they are */
    int64_t conflicts; /* met on the way: somebody changed the row between reading and writing */
    int64_t failed; /* rows that could not be written in the end; see failed() */
    int64_t total; /* rows expected in all; -1: more than 10,000,000, not counted further */
    int64_t elapsed_ms; /* of this run */
    int64_t left_ms; /* expected until the end; -1: unknown */
    double rate; /* rows a second in this run */
    int32_t resumed; /* 1: an earlier run was cut short, and this one went on from there */
    int32_t reserved;
} rowlock_walk_report;

#define ROWLOCK_WALK_REPORT_INIT                                     \
    {                                                                \
        sizeof(rowlock_walk_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

typedef struct rowlock_walk_options {
    size_t size; /* sizeof(rowlock_walk_options) */
    const char *name; /* of the walk: its lock and its checkpoint */
    /* The row as it is, and its columns to be changed in place: values begin as those of the row.
     * 0: write it; 1: leave it as it is; < 0: stop, and this is the result of the walk. Rows that
     * met a conflict are read and asked for again. */
    int (*each)(void *context, const rowlock_row *row, rowlock_value *values);
    void (*progress)(void *context,
                     const rowlock_walk_report *so_far); /* after each chunk; may be NULL */
    /* A row that could not be written although it was tried again: deleted meanwhile (GONE),
     * refused by the database (VIOLATION, ESERVER, why in text), or given a value of a wrong kind
     * (EINVAL). May be NULL. */
    void (*failed)(void *context, const rowlock_row *row, int result, const char *text);
    void *context;
    int32_t chunk; /* rows read and written at once; 0: 1,000; at most 10,000 */
    int32_t restart; /* 1: from the beginning, whatever an earlier run has left behind */
    int64_t wait_ms; /* for the lock, as in rowlock_acquire_options */
    int64_t ttl_ms; /* of the lock, renewed on the way; 0: 30,000 */
} rowlock_walk_options;

#define ROWLOCK_WALK_OPTIONS_INIT                                              \
    {                                                                          \
        sizeof(rowlock_walk_options), NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0 \
    }
ROWLOCK_API void rowlock_walk_options_init(rowlock_walk_options *options);

/* Walk a table by its key and write rows back under their versions, each exactly once, while others
 * go on changing them. Rows come in chunks, in the order of the key; what each() made of them is
 * written in one transaction together with a checkpoint and under the guard of the walk's lock, so
 * that a run that was killed is gone on with where it stopped, and never by two at once. Rows that
 * somebody changed between reading and writing are remembered in the checkpoint, and read, computed
 * and written again at the end, at last under a row lock. Rows inserted behind the walk are not
 * seen.
 *
 * The table must be of a rowlock_db opened by URL, with our tables installed; its key columns are
 * integers, texts, bytes or times. OK: all rows were walked, and the checkpoint is removed;
 * report->failed may be above 0. BUSY, TIMEOUT: another walks, or was killed and its lease is not
 * over: for up to ttl_ms after a kill a walk with wait_ms 0 is BUSY. LOST: the lock was lost,
 * nothing was written after that. CANCELLED: rowlock_cancel(); the next walk goes on from here.
 * Round trips: 6 for each chunk.
 *
 * A checkpoint is of one table, by schema and name, and of one key: over another it is EINVAL. A
 * table that was dropped, and made and filled again under the same name, cannot be told from the
 * old one, and would be gone on with in the middle: say restart, or use another name for the
 * walk. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_walk(rowlock_table *table,
                                                const rowlock_walk_options *options,
                                                rowlock_walk_report *report);

/* ---------------------------------------------------------------- once */

/* A key that says what was asked for, so that asking twice does it once: an order's number, the day
 * of a nightly job. It stands in a table until it is swept by age. */
typedef struct rowlock_once rowlock_once;

typedef struct rowlock_once_options {
    size_t size; /* sizeof(rowlock_once_options) */
    /* of what is asked for, up to 255 bytes: the same key with another one is a MISMATCH; NULL:
     * none */
    const char *fingerprint;
    int64_t ttl_ms; /* how long it counts as in progress if nobody completes it; 0: 60,000 */
    /* Of a lock that is held exclusively, and without which nobody claims this key. A claim in
     * progress with the same fingerprint and a smaller token is taken over at once, whatever time
     * it has left: whoever made it no longer holds the lock. 0: none. */
    int64_t token;
} rowlock_once_options;

#define ROWLOCK_ONCE_OPTIONS_INIT                \
    {                                            \
        sizeof(rowlock_once_options), NULL, 0, 0 \
    }
ROWLOCK_API void rowlock_once_options_init(rowlock_once_options *options);

/* Claim the key, 1-255 bytes of UTF-8.
 *
 * OK        new, or given up by an earlier claim, or taken over from it: do it, then complete. *out
 *           is yours to close.
 * BUSY      in progress: another claimed it, and its time is not over. *out is NULL.
 * DONE      it was done; rowlock_once_result() has what was stored. *out is yours to close.
 * MISMATCH  the key was used for something else: another fingerprint. *out is NULL. That stays so
 *           when the time of a claim is over, until the key is swept. A key that was given back is
 *           free for anything.
 *
 * Outside of a transaction it is a commit of its own. In yours, on an adopted connection, it lasts
 * if you commit, and others who claim the key meanwhile wait for that. Round trips: 2. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_once_claim(rowlock_db *db, const char *key,
                                                      const rowlock_once_options *options,
                                                      rowlock_once **out);

/* Say that it is done, in the transaction of tx in which it was done (or db itself, then as a
 * commit of its own), with a result of up to 65,535 bytes for those who ask again.
 *
 * OK        it is done, if that transaction commits. Said again with the same claim it is OK as
 *           well and replaces the result, for a transaction may have been rolled back.
 * LOST      the claim is gone: it took longer than ttl_ms, or a later holder of the lock came, and
 *           another has claimed the key, or it was swept; or you gave it back yourself. Roll back.
 * CONFLICT  only in your transaction: it lost a race, or on PostgreSQL above READ COMMITTED its
 *           snapshot is older than the claim. Roll back, and do it again: the claim is as it was.
 * EMISUSE   it was DONE when it was claimed; or the rowlock_db that it was claimed on is closed.
 *
 * Round trips: 1; where it is LOST in your transaction on PostgreSQL, up to 3. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_once_complete(rowlock_once *once, rowlock_db *tx,
                                                         const void *result, size_t length);

/* Give it back: it was not done, and the next who claims it may do it at once. OK means that the
 * claim is not, or no longer, in progress, not that the key is free: what was completed stays done,
 * and what another has taken over stays that other's. EMISUSE as above. Round trips: 1. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_once_abandon(rowlock_once *once);

/* What was stored when the claim said DONE, borrowed until closing; not NULL then, even if it has
 * no bytes, but *length (may be NULL) is 0. NULL otherwise, also after completing it yourself. */
ROWLOCK_API const void *rowlock_once_result(const rowlock_once *once, size_t *length);

/* Frees memory only: a claim that is neither completed nor abandoned stays until its time is over.
 * After its rowlock_db was closed a handle is of use for its result only, but must still be closed.
 * NULL is harmless. */
ROWLOCK_API void rowlock_once_close(rowlock_once *once);

/* Forget what was completed longer ago than older_ms, and what was claimed longer ago, never
 * completed, and whose time is over: whoever claimed that and comes late finds LOST, though nobody
 * else has claimed it. In transactions of batch keys (0: 500). *removed (may be NULL) says how
 * many. Round trips: 1 a batch. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_once_sweep(rowlock_db *db, int64_t older_ms,
                                                      int32_t batch, int64_t *removed);

/* A key as it stands in the table. Times are microseconds since 1970 by the database's clock. */
typedef struct rowlock_once_record {
    size_t size; /* sizeof(rowlock_once_record) */
    int64_t token; /* of the lock under which it was claimed; 0: none */
    int64_t changed_us; /* when it was completed, or claimed if it was not */
    int64_t age_ms; /* how long ago that was, when the database answered */
    int64_t remaining_ms; /* of a claim in progress; negative once its time is over */
    int32_t done; /* 1: completed; 0: claimed */
    int32_t reserved;
    char key[256];
    char fingerprint[256];
} rowlock_once_record;

/* Call each for every key that begins with prefix (NULL: for all), in the order of their bytes,
 * until it returns something other than 0. It must not use db. Round trips: 1 for each 500 keys. */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_once_list(rowlock_db *db, const char *prefix,
                  int (*each)(void *context, const rowlock_once_record *record), void *context);

/* Forget one key, whatever came of it, so that it can be claimed again for anything. OK; NONE:
 * there is no such key. If it was in progress, completing it finds LOST. Round trips: 1. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_once_forget(rowlock_db *db, const char *key);

#ifdef __cplusplus
}
#endif
#endif
