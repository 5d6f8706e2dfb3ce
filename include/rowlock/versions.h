/* SPDX-License-Identifier: MIT
 *
 * rowlock: optimistic updates of your own tables, by a version column.
 *
 * A row says which version it is. You read the row and its version, compute, and write the row back
 * under the condition that it still has that version. If another client changed the row meanwhile,
 * you get STALE and overwrite nothing. This works for one row, or for thousands in one statement.
 * Each row that was not written is named, with the reason and the version it has.
 *
 *     static const char *const key[] = {"id", NULL}, *const columns[] = {"price", NULL};
 *     rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
 *     rowlock_table *prices = NULL;
 *     about.columns = columns;
 *     if (rowlock_table_open(db, "prices", key, &about, &prices) != ROWLOCK_OK)
 *         return complain(db);
 *     rowlock_value id = rowlock_int(42), price = rowlock_decimal("19.90");
 *     rowlock_change change = {.key = &id, .values = &price, .version = 7};
 *     if (rowlock_update(prices, &change, 1, NULL) == ROWLOCK_STALE)
 *         printf("another client was faster: version %lld\n", (long long)change.current);
 *     rowlock_table_close(prices);
 *
 * YOUR TABLE
 *
 *   - It needs a unique key, and an integer column that is never NULL: the version.
 *   - rowlock's own tables need not be installed. (rowlock/walk.h and rowlock/once.h need them.)
 *   - Programs that write the table without rowlock must change the version too. Otherwise their
 *     changes are not noticed. docs/VERSIONS.md has a trigger for that, and what to do if no column
 *     can be added.
 *
 * YOUR TRANSACTION
 *
 *   - On an adopted connection inside a transaction, and within rowlock_retry(), these calls become
 *     a part of the transaction. They do not end it.
 *   - Outside a transaction each statement is a commit of its own. With all_or_nothing the whole
 *     call is one commit.
 *   - ROWLOCK_CONFLICT means that another transaction won against yours.
 *     rowlock_error.transaction_over says whether yours can go on:
 *       PostgreSQL        never, after any error. Above READ COMMITTED, a row changed after the
 *                         snapshot is a CONFLICT.
 *       MySQL, MariaDB    not after a deadlock. With innodb_snapshot_isolation, also not after a
 *                         row changed after the snapshot.
 *   - A row changed before the snapshot is STALE on every database.
 *
 * Threads, blocking, results: as in rowlock.h. Callbacks must return (rowlock.h). A statement waits
 * for row locks of other clients, up to the statement deadline.
 */
#ifndef ROWLOCK_VERSIONS_H
#define ROWLOCK_VERSIONS_H

#include <rowlock/rowlock.h>
#include <rowlock/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- tables */

/* One of your tables as this program writes it: a name, a key, a version, and columns. Programs
 * that write different columns of one table open it several times. */
typedef struct rowlock_table rowlock_table;

typedef struct rowlock_table_options {
    /* sizeof(rowlock_table_options) */
    size_t size;
    /* MySQL, MariaDB: the database. NULL: where the session looks first. */
    const char *schema;
    /* The columns that updates set and inserts give. Ends with NULL. May be NULL. */
    const char *const *columns;
    /* NULL: "version" */
    const char *version;
    /* Updates set this instead of the columns: your own SQL, as it stands after SET. Each ? is a
     * parameter: "balance = balance - ?, note = ?".
     *   - Never make it of data. It is sent as it is.
     *   - Column names mean the table's own columns.
     *   - It must not set the version column. rowlock does.
     *   - Write ?? for a literal question mark (in C: "?" "?", because ?? may begin a trigraph).
     *     Inside '…', "…" and comments a single ? is literal already. Inside E'…' and $$…$$ of
     *     PostgreSQL it is not. */
    const char *set;
    /* The version of an inserted row. 0: one that the same key cannot have had before: the clock in
     * microseconds. In a column of 32 bits: a random number below 2^30. In a narrower one: 1. */
    int64_t first_version;
} rowlock_table_options;

#define ROWLOCK_TABLE_OPTIONS_INIT                                                           \
    {                                                                                        \
        sizeof(rowlock_table_options), ROWLOCK_NIL, ROWLOCK_NIL, ROWLOCK_NIL, ROWLOCK_NIL, 0 \
    }

/* rowlock_table_open looks the table up and makes a handle for it.
 *   - key: all columns of one unique key. Ends with NULL.
 *   - options: NULL for a table of which only keys and versions matter.
 *   - Names are taken as they are, quoted, as the database spells them. Texts are copied.
 *   - Close the handle before db. If the table is altered, open it again.
 *
 * Returns
 *   ROWLOCK_OK
 *   ROWLOCK_EINVAL     the table, a column or a unique key of these columns is missing; other
 *                      tables inherit from this one, so the key does not cover all rows; the
 *                      version column is no integer, is generated, may be NULL or cannot hold
 *                      first_version; set is empty, or a comment in it does not end
 * Round trips  1
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_table_open(rowlock_db *db, const char *name,
                                                      const char *const *key,
                                                      const rowlock_table_options *options,
                                                      rowlock_table **out);

/* rowlock_table_close frees the handle. NULL does nothing. */
ROWLOCK_API void rowlock_table_close(rowlock_table *table);

/* ---------------------------------------------------------------- reading */

/* A row as it was read. */
typedef struct rowlock_row {
    /* sizeof(rowlock_row) */
    size_t size;
    /* As many as the key has columns. */
    const rowlock_value *key;
    /* As many as there are columns. */
    const rowlock_value *values;
    int64_t version;
} rowlock_row;

#define ROWLOCK_ROW_INIT                                 \
    {                                                    \
        sizeof(rowlock_row), ROWLOCK_NIL, ROWLOCK_NIL, 0 \
    }

/* rowlock_read reads the columns and the version of one row. *out is valid until the next call with
 * this table.
 *
 *   lock: 1 takes a row lock that lasts until the transaction ends. Use it when you will update the
 *   row in the same transaction, or when rowlock_attempt.lock is 1. It sees the newest state at any
 *   isolation level.
 *
 * Returns
 *   ROWLOCK_OK
 *   ROWLOCK_GONE       there is no such row
 *   ROWLOCK_CONFLICT   the newest state cannot be locked:
 *     - PostgreSQL above READ COMMITTED: the row changed after the snapshot of the transaction.
 *     - SQLite: another transaction writes the file, or has written it after your transaction first
 *       read. The lock is that of the whole file.
 *   ROWLOCK_ESERVER    a row policy lets you read the row, but not lock it
 *   ROWLOCK_EINVAL     a column cannot take its part of the key, or that part is NULL. Or *out has
 *                      no size
 * Differs      Several nodes that all take writes (Galera, Group Replication): the lock holds on
 *              one node only. Use rowlock_touch().
 * Round trips  1
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_read(rowlock_table *table, const rowlock_value *key,
                                                int lock, rowlock_row *out);

/* rowlock_read_many reads the columns and the versions of many rows.
 *
 *   - keys: count keys, one after the other: each has as many values as the key has columns.
 *   - each() is called once for each key, in the order of their bytes. index is that of the key in
 *     keys. row is NULL if there is no such row. It is valid until each() returns. each() must not
 *     use the rowlock_db. If it returns a number other than 0, the call ends with CANCELLED.
 *   - lock: as for rowlock_read(). Rows are locked in the order of their keys, so that two calls
 *     never wait for each other in a circle.
 *
 * Returns
 *   ROWLOCK_OK         all rows were there
 *   ROWLOCK_GONE       at least one row was not there. each() was called for every key, so all
 *                      others were read.
 *   ROWLOCK_EINVAL     a column cannot take its part of a key, or that part is NULL. Nothing was
 *                      sent.
 *   ROWLOCK_CANCELLED  each() stopped it
 *   others             as rowlock_read()
 * Differs      SQLite: one statement for each row. Outside a transaction the rows may be of
 *              different moments. Servers: the rows of one chunk are of one moment.
 * Round trips  1 for each 1,000 keys, or fewer if they are long. With lock, 1 or 2 more for each
 *              missing row.
 * Example      examples/restock.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_read_many(rowlock_table *table, const rowlock_value *keys, size_t count, int lock,
                  int (*each)(void *context, size_t index, const rowlock_row *row), void *context);

/* ---------------------------------------------------------------- changes */

/* One row to be changed, and what became of it. */
typedef struct rowlock_change {
    /* As many values as the key has columns, each as the database stores it. A value that the
     * database rounds on insert does not find the row: '1.004' in numeric(10,2), fractions in
     * timestamp(0), the YEAR 24 of MySQL. */
    const rowlock_value *key;
    /* As many as there are columns, or parameters in set. NULL for touch, expect and remove. */
    const rowlock_value *values;
    /* The version that the row must have. Inserts ignore it. */
    int64_t version;
    /* What became of the row. It is set whatever the call returns, once the call has begun to
     * send. Send again what is STALE, UNDONE or CANCELLED, after reading it again. Never send again
     * what is OK.
     *   OK          changed
     *   STALE       it has another version
     *   GONE        there is no such row
     *   EXISTS      there is such a row already (insert)
     *   VIOLATION   it would break a constraint, or a value does not fit its column. It was not
     *               changed.
     *   UNDONE      not changed because of another row: with all_or_nothing, or because the
     *               statement was refused and the row to blame could not be found
     *   EUNCERTAIN  the answer was lost. The row is not as it was: we or another client changed it.
     *               Read it, and compare it with what you wrote, before you send anything again.
     *   ESERVER     the row matches, but a trigger or policy of the table discarded the change. For
     *               expect: a row policy lets you read the row, but not lock it.
     *               (A call that waited too long for another client's row lock returns ESERVER with
     *               rowlock_error.retryable 1; the rows of that chunk are UNDONE.)
     *   EINVAL      its version is no integer of 64 bits
     *   CANCELLED   not reached */
    int result;
    int reserved;
    /* The version of the row now; the new one if it was changed. 0: no row, or unknown. */
    int64_t current;
} rowlock_change;

typedef struct rowlock_change_options {
    /* sizeof(rowlock_change_options) */
    size_t size;
    /* 1: if one row cannot be changed, no row is. */
    int all_or_nothing;
    /* Rows in one statement. 0: 1,000. At most 10,000. Long values make it fewer. */
    int chunk;
    /* Called after each chunk but the last. May be NULL. A number other than 0 stops: CANCELLED. */
    int (*progress)(void *context, size_t done, size_t total);
    void *context;
} rowlock_change_options;

#define ROWLOCK_CHANGE_OPTIONS_INIT                                    \
    {                                                                  \
        sizeof(rowlock_change_options), 0, 0, ROWLOCK_NIL, ROWLOCK_NIL \
    }

/* These five change rows that have the version you give, and set it to version + 1.
 *
 *   rowlock_update   sets the columns, or what set says
 *   rowlock_touch    sets nothing but the version: when something that belongs to the row changed
 *                    in another table
 *   rowlock_expect   changes nothing. The rows have these versions. Inside a transaction they keep
 *                    them until it ends. (Not between two nodes that both take writes: use touch.)
 *   rowlock_insert   makes new rows, with the first version
 *   rowlock_remove   deletes rows
 *
 * Returns
 *   ROWLOCK_OK         all rows were changed
 *   ROWLOCK_STALE, GONE, EXISTS, VIOLATION, EUNCERTAIN, ESERVER
 *                      why the first row that was not changed was not. rowlock_error.row is its
 *                      index. Each change has its own result. The other rows were changed, unless
 *                      all_or_nothing.
 *   ROWLOCK_CONFLICT   another transaction won against the one around it. Nothing was changed that
 *                      a rollback does not undo.
 *   ROWLOCK_EINVAL     a value that its column cannot take, a key twice, a parameter of two kinds:
 *                      nothing was sent. If the server says so, the chunks before it are done.
 *   ROWLOCK_VIOLATION  the database refused a row. rowlock_error.constraint says why. The rows of a
 *                      refused chunk are sent again in halves, until each such row is found.
 *     - PostgreSQL, in your transaction, without all_or_nothing: the refusal has ended the
 *       transaction. If the chunk had several rows, they are UNDONE and rowlock_error.row is -1.
 *   ROWLOCK_EUNCERTAIN with all_or_nothing: the answer to the commit was lost. All rows were
 *                      changed, or none.
 * Guarantees
 *   - Rows are sent in the order of their keys: two batches never wait for each other in a circle.
 *     After a deadlock with another program the statement is sent again, unless it is in your
 *     transaction.
 *   - A version at the end of its column is an error. It never wraps.
 *   - A parameter of set has one kind in all rows of a call, or is NULL.
 * Differs
 *   - Keys are compared by their bytes. Two keys that the database takes for equal ('a' and 'A'
 *     where case does not matter) are two changes of one row: one of them is STALE. Two removals of
 *     it may both be OK.
 *   - MySQL, MariaDB: inserting several rows fires update triggers for rows that exist already.
 * Round trips  1 for each chunk, and 1 more if a row of it was not changed
 *   - MySQL, MariaDB: 1 more for an insert of several rows
 *   - all_or_nothing: 2 more; PostgreSQL: 1 more
 *   - PostgreSQL, in your transaction: 1 more for a chunk of several rows, to lock them in order
 * Example      docs/VERSIONS.md, examples/parcels.c
 */
typedef enum rowlock_op {
    ROWLOCK_UPDATE = 1,
    ROWLOCK_TOUCH = 2,
    ROWLOCK_EXPECT = 3,
    ROWLOCK_INSERT = 4,
    ROWLOCK_REMOVE = 5
} rowlock_op;

/* rowlock_apply is what the five call. change_size is sizeof(rowlock_change), so that a later
 * release may add members to the struct. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_apply(rowlock_table *table, rowlock_op op,
                                                 rowlock_change *changes, size_t count,
                                                 size_t change_size,
                                                 const rowlock_change_options *options);

static inline ROWLOCK_MUST_CHECK int rowlock_update(rowlock_table *table, rowlock_change *changes,
                                                    size_t count,
                                                    const rowlock_change_options *options)
{
    return rowlock_apply(table, ROWLOCK_UPDATE, changes, count, sizeof(rowlock_change), options);
}

static inline ROWLOCK_MUST_CHECK int rowlock_touch(rowlock_table *table, rowlock_change *changes,
                                                   size_t count,
                                                   const rowlock_change_options *options)
{
    return rowlock_apply(table, ROWLOCK_TOUCH, changes, count, sizeof(rowlock_change), options);
}

static inline ROWLOCK_MUST_CHECK int rowlock_expect(rowlock_table *table, rowlock_change *changes,
                                                    size_t count,
                                                    const rowlock_change_options *options)
{
    return rowlock_apply(table, ROWLOCK_EXPECT, changes, count, sizeof(rowlock_change), options);
}

static inline ROWLOCK_MUST_CHECK int rowlock_insert(rowlock_table *table, rowlock_change *changes,
                                                    size_t count,
                                                    const rowlock_change_options *options)
{
    return rowlock_apply(table, ROWLOCK_INSERT, changes, count, sizeof(rowlock_change), options);
}

static inline ROWLOCK_MUST_CHECK int rowlock_remove(rowlock_table *table, rowlock_change *changes,
                                                    size_t count,
                                                    const rowlock_change_options *options)
{
    return rowlock_apply(table, ROWLOCK_REMOVE, changes, count, sizeof(rowlock_change), options);
}

/* ---------------------------------------------------------------- read, compute, write, retry */

typedef struct rowlock_attempt {
    /* 1, 2, … */
    int number;
    /* For rowlock_read(): 1 after lock_after conflicts. */
    int lock;
} rowlock_attempt;

/* What attempt() may return besides the results of rowlock.h. */
enum {
    /* It has closed the adopted connection of db. */
    ROWLOCK_CLOSED = -100
};

typedef struct rowlock_retry_options {
    /* sizeof(rowlock_retry_options) */
    size_t size;
    /* At most so many. 0: 20. */
    int attempts;
    /* After so many conflicts rowlock_attempt.lock is 1. 0: 2. Below 0: never. */
    int lock_after;
    /* No attempt begins later than this. 0: 10,000. */
    int64_t deadline_ms;
    /* The pause after attempt n is random, up to base_ms * 2^n, at most cap_ms. 0: 2. */
    int64_t base_ms;
    /* 0: 200 */
    int64_t cap_ms;
} rowlock_retry_options;

#define ROWLOCK_RETRY_OPTIONS_INIT                   \
    {                                                \
        sizeof(rowlock_retry_options), 0, 0, 0, 0, 0 \
    }

typedef struct rowlock_retry_report {
    /* sizeof(rowlock_retry_report) */
    size_t size;
    int attempts;
    int conflicts;
    /* Spent on attempts that failed, and on pauses. */
    int64_t lost_us;
} rowlock_retry_report;

#define ROWLOCK_RETRY_REPORT_INIT             \
    {                                         \
        sizeof(rowlock_retry_report), 0, 0, 0 \
    }

/* rowlock_retry runs attempt() in a transaction. After a conflict it rolls back, pauses, and runs
 * attempt() in another transaction.
 *
 *   - attempt() reads, computes and writes, all of it anew each time. Calls with db and with its
 *     tables become a part of the transaction. So does your own SQL on an adopted connection.
 *     attempt() must not end the transaction.
 *   - db may be adopted. It must be outside a transaction.
 *
 * What attempt() returns
 *   ROWLOCK_OK         commit
 *   ROWLOCK_STALE, CONFLICT, BUSY, EXISTS
 *                      roll back, pause, attempt again
 *   ROWLOCK_GONE       the same; but twice running it is the result
 *   ROWLOCK_ECONN      if the connection of db was lost: attempt again on a new connection, because
 *                      nothing was committed. If db is adopted, or its connection stands, it is the
 *                      result.
 *   ROWLOCK_CLOSED     send nothing more on the adopted connection. The result is EMISUSE. db can
 *                      only be closed.
 *   others             roll back. This is the result. Numbers from 100 are free for you.
 *
 * Returns
 *   ROWLOCK_OK         committed
 *   ROWLOCK_STALE, …   what the last attempt returned, when attempts or deadline_ms were used up
 *   ROWLOCK_VIOLATION  a deferred constraint refused the commit. Nothing was done.
 *   ROWLOCK_ESERVER    also: the rollback failed, and your adopted connection is still inside the
 *                      transaction. Roll it back, or close the connection.
 *   ROWLOCK_CANCELLED  rowlock_cancel() was called during a pause
 *   ROWLOCK_EMISUSE    attempt() has forked, and this is the child: nothing was ended. Or attempt()
 *                      has closed the connection. Also as in rowlock.h.
 *   ROWLOCK_EUNCERTAIN the answer to the commit was lost. If the first row that was updated or
 *                      removed proves that nothing was committed, the attempt is repeated instead.
 *                      With Galera and Group Replication no row proves that.
 * Round trips  2 for each attempt, and those of attempt()
 * Blocks       deadline_ms at most, and as long as the last attempt takes. Its begin, commit and
 *              rollback take as long as other calls (rowlock.h): with a lost connection, as long as
 *              reconnecting may take.
 * Example      docs/VERSIONS.md, examples/parcels.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_retry(rowlock_db *db, int (*attempt)(void *context, const rowlock_attempt *attempt),
              void *context, const rowlock_retry_options *options, rowlock_retry_report *report);

#ifdef __cplusplus
}
#endif
#endif
