/* SPDX-License-Identifier: MIT
 *
 * rowlock: lease locks kept in a table of the database you already have. Inserting a row is the
 * grant, deleting it the release. PostgreSQL, MySQL/MariaDB and SQLite behave alike: only the URL
 * differs. The README says what a lock does not promise.
 *
 *     rowlock_db *db = NULL;
 *     rowlock_lock *lock = NULL;
 *     rowlock_error err = ROWLOCK_ERROR_INIT;
 *     rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
 *     options.wait_ms = 5000;
 *     options.keep = 1;               // renew the lease of 30 s in the background
 *
 *     int result = rowlock_db_open("postgresql://app@db1/prod", NULL, &db, &err);
 *     if (result != ROWLOCK_OK)
 *         return complain(err.text);
 *     result = rowlock_lock_open(db, "nightly", &lock);
 *     if (result == ROWLOCK_OK)
 *         result = rowlock_acquire(lock, &options);
 *     if (result == ROWLOCK_OK) {
 *         work(rowlock_lock_token(lock));
 *         result = rowlock_release(lock);
 *         if (result > 0)
 *             complain("another client may have had the lock: check what was written");
 *     } else if (result > 0) {
 *         complain("another client holds the lock: try again later");
 *     }
 *     if (result < 0)
 *         complain(rowlock_db_error(db)->text);
 *     rowlock_lock_close(lock);
 *     rowlock_db_close(db);
 *
 * WORDS
 *
 *   owner    who holds a lock or asks for it: a text. By default 128 random bits.
 *   grant    one successful acquire. Its row has the owner, a token and the end of its lease.
 *   lease    how long a grant lasts unless it is renewed, by the database's clock. When it is over,
 *            another client may take the lock.
 *   token    a number that each grant gets. The tokens of one name only grow, also after a release,
 *            a crash or a sweep. A resource that refuses tokens older than the newest it has seen
 *            is safe from holders that come too late (fencing).
 *   keeper   a thread that renews leases.
 *   ticket   the place of a waiter in the queue. First come, first served.
 *
 * RULES FOR ALL CALLS
 *
 *   Results      0: done. Above 0: the database said no. Below 0: an error, or the outcome is not
 *                known.
 *   Output       After a failure a handle is NULL; everything else is as it was.
 *   Options      NULL means the defaults. Initialize with ROWLOCK_…_INIT. A member that is 0 has
 *                its default.
 *   Threads      A rowlock_db, its locks and its tables belong to one thread at a time. Different
 *                rowlock_db handles are independent. Any thread may call rowlock_cancel() and
 *                rowlock_progress(). Keepers and pools start threads, and rowlock_acquire_start()
 *                if there is no pool.
 *   Side effects The library installs no signal handler, prints nothing and never exits.
 *   Descriptors  Keep 0, 1 and 2 open; /dev/null is enough. Else a connection may get such a
 *                number, and what the program prints goes to the server.
 *   Blocking     A statement ends within statement_timeout_ms. It is sent again for so long after a
 *                lost race, and for reconnect_ms after a lost connection, which may come in turn.
 *                rowlock_acquire() waits for wait_ms, and may then give a ticket back with another
 *                statement. MySQL and MariaDB: the timeout of a statement is rounded up to a whole
 *                second.
 *   Callbacks    A callback must return: no longjmp(), no exception of C++. After such a jump the
 *                only safe call is to close the handle, which rolls its transaction back.
 *   Round trips  They are counted for each call, on a connection in use. The first call on a new
 *                connection takes one more. MySQL and MariaDB: so does the first statement of each
 *                kind.
 *   Fork         A child of fork() inherits no lock: calls on the parent's handles return
 *                ROWLOCK_EMISUSE or find no grant. Closing one only frees its memory. The child
 *                must not open a SQLite file that its parent had open at the fork, and none at all
 *                if its parent had threads (keepers, pools): SQLite's memory may stay locked.
 */
#ifndef ROWLOCK_ROWLOCK_H
#define ROWLOCK_ROWLOCK_H

#include <rowlock/value.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ROWLOCK_VERSION_MAJOR 0
#define ROWLOCK_VERSION_MINOR 1
#define ROWLOCK_VERSION_PATCH 0

#if defined(__GNUC__)
#define ROWLOCK_MUST_CHECK __attribute__((warn_unused_result))
#define ROWLOCK_API __attribute__((visibility("default")))
#else
#define ROWLOCK_MUST_CHECK
#define ROWLOCK_API
#endif

/* rowlock_version returns "0.1.0": the version of the library that is running. It may be newer than
 * this header. */
ROWLOCK_API const char *rowlock_version(void);

/* ---------------------------------------------------------------- results and errors */

/* A function's comment names the results that mean something particular there. The others mean what
 * is said here. */
typedef enum rowlock_result {
    /* Done. */
    ROWLOCK_OK = 0,

    /* ---- Above 0: the database said no. Locks: */

    /* Another owner holds the lock. rowlock_lock_holder() tells which. */
    ROWLOCK_BUSY = 1,
    /* Another owner still held it when wait_ms was over. */
    ROWLOCK_TIMEOUT = 2,
    /* The grant is no longer in the table: another client took the lock over, or an operator or a
     * sweep removed the grant. Release as often as you acquired, then acquire anew. */
    ROWLOCK_LOST = 3,
    /* You hold the lock, but its lease had run out. Nothing protected the work for a while. No
     * other client was granted the lock. */
    ROWLOCK_LAPSED = 4,
    /* The rare ones. Each is explained at the functions that return it. */
    ROWLOCK_MISMATCH = 5,
    ROWLOCK_DEADLOCK = 6,
    ROWLOCK_CANCELLED = 7,
    ROWLOCK_PENDING = 8,
    ROWLOCK_NONE = 9,

    /* ---- Rows and transactions: */

    /* A row has another version, or a resource has seen a newer token. */
    ROWLOCK_STALE = 20,
    /* Another transaction won against yours: serialization failure, deadlock or lock timeout. Roll
     * back, and run the transaction again. Outside a transaction of yours there is no CONFLICT: a
     * wait for a row that ends at the statement deadline is ESERVER with retryable 1. */
    ROWLOCK_CONFLICT = 21,
    /* There is no such row. */
    ROWLOCK_GONE = 22,
    ROWLOCK_EXISTS = 23,
    ROWLOCK_UNDONE = 24,
    ROWLOCK_VIOLATION = 25,
    /* rowlock/once.h: it was done before. */
    ROWLOCK_DONE = 26,

    /* ---- Below 0: an error. rowlock_db_error() says what to do. */

    /* The statement was sent and the answer was lost. It may have happened or not. */
    ROWLOCK_EUNCERTAIN = -1,
    /* The database cannot be reached. Nothing was done. A waiter's ticket may remain for its short
     * lease. */
    ROWLOCK_ECONN = -2,
    /* rowlock's tables are missing, too old, too new, or were made by something else. */
    ROWLOCK_ESCHEMA = -3,
    /* A name, a URL, an option or a value is not acceptable. Nothing was sent. */
    ROWLOCK_EINVAL = -4,
    ROWLOCK_ENOMEM = -5,
    /* The database takes no writes. rowlock_error.retryable is 1 of a server that may take them
     * later, such as a replica, and 0 of a full disk, a locked file or a read-only user. */
    ROWLOCK_EREADONLY = -6,
    /* The database refuses this user: the login, the tables, or the statement. */
    ROWLOCK_EDENIED = -7,
    /* The handle is closed, is of another process, or is in the wrong state for this call. */
    ROWLOCK_EMISUSE = -8,
    /* Not built in, or this server or its TLS is too old. */
    ROWLOCK_EUNSUPPORTED = -9,
    /* Another failure of the database. The text is the database's. */
    ROWLOCK_ESERVER = -10
} rowlock_result;

/* rowlock_result_name returns "ROWLOCK_BUSY" and so on, and never NULL. */
ROWLOCK_API const char *rowlock_result_name(int result);

/* Which kind of constraint refused a row (ROWLOCK_VIOLATION). */
typedef enum rowlock_constraint {
    /* No violation, or the database did not say. */
    ROWLOCK_CONSTRAINT_NONE = 0,
    /* A unique key, or an exclusion constraint of PostgreSQL. */
    ROWLOCK_CONSTRAINT_UNIQUE = 1,
    ROWLOCK_CONSTRAINT_FOREIGN_KEY = 2,
    ROWLOCK_CONSTRAINT_CHECK = 3,
    ROWLOCK_CONSTRAINT_NOT_NULL = 4,
    /* A value is too large, too long, or has a wrong form. */
    ROWLOCK_CONSTRAINT_VALUE = 5
} rowlock_constraint;

/* Why the result was not OK. rowlock_db_error() returns one. The functions that open fill one. */
typedef struct rowlock_error {
    size_t size;
    /* The result that was returned. */
    int code;
    /* MySQL's error number or SQLite's extended code. 0: none. */
    int native;
    /* Five characters if the database gave them, else "". */
    char sqlstate[8];
    /* 1: the same call may succeed later, with nothing changed. After EUNCERTAIN it is 1 only if a
     * second call does no harm: acquire and release find out what the first one did, and renew does
     * the same again. It is 0 for changes of rows and for rowlock_retry(). */
    int retryable;
    /* What was being done: "renew lock 'nightly'". */
    char action[300];
    /* Why it failed, and what to do. One line of UTF-8. "" only after OK. */
    char text[700];
    /* 1: your transaction on an adopted connection is over, or can only be rolled back. 0: it can
     * go on as if the call had not been made. */
    int transaction_over;
    /* enum rowlock_constraint */
    int constraint;
    /* 1: LOST of rowlock_release(), and the answer to our first request was lost. It may have
     * released the lock before another client got it. */
    int answer_lost;
    /* The index of the row in the array that you gave: 3 means rows[3]. -1: none, or unknown. */
    int64_t row;
    int64_t spare[2];
} rowlock_error;

#define ROWLOCK_ERROR_INIT                                          \
    {                                                               \
        sizeof(rowlock_error), 0, 0, {0}, 0, {0}, {0}, 0, 0, 0, -1, \
        {                                                           \
            0                                                       \
        }                                                           \
    }

/* ---------------------------------------------------------------- connections */

/* A connection, or a handle of a pool, which has none of its own. */
typedef struct rowlock_db rowlock_db;
/* A few connections that many rowlock_db share: rowlock/pool.h */
typedef struct rowlock_pool rowlock_pool;

typedef struct rowlock_db_options {
    size_t size;
    /* The owner of the locks of this connection, 1-255 bytes of UTF-8. NULL: 128 random bits for
     * each rowlock_lock, and others if an earlier request of it may still arrive.
     * Choose a name if a restarted process is to get its own lock back: an acquire with the same
     * owner takes the lock over at once, with a new token. The older handle then finds LOST. */
    const char *owner;
    /* For people who read the table. NULL: the name of this program. */
    const char *program;
    /* PostgreSQL: the schema of rowlock's tables, NULL: "public". MySQL, MariaDB: their database,
     * NULL: the URL's. In a URL: ?rowlock_schema= */
    const char *schema;
    /* What the names of rowlock's tables begin with: letters, digits and underscores. NULL:
     * "rowlock_". In a URL: ?rowlock_prefix= */
    const char *prefix;
    /* 0: 5,000 */
    int64_t connect_timeout_ms;
    /* 0: 10,000 */
    int64_t statement_timeout_ms;
    /* How long a call tries to reconnect after the connection was lost, or after the server has
     * stopped taking writes. 0: 5,000. Below 0: never. A wait for a lock, also one with a keeper,
     * tries until the wait ends, unless this is below 0. A server whose answers cannot be read,
     * three in a row, is not away: the call fails. */
    int64_t reconnect_ms;
    /* Send the steps through this pool (rowlock/pool.h). The URL, schema and prefix must be NULL
     * then: they are the pool's. NULL: a connection of its own. */
    rowlock_pool *pool;
} rowlock_db_options;

#define ROWLOCK_DB_OPTIONS_INIT                                                                  \
    {                                                                                            \
        sizeof(rowlock_db_options), ROWLOCK_NIL, ROWLOCK_NIL, ROWLOCK_NIL, ROWLOCK_NIL, 0, 0, 0, \
            ROWLOCK_NIL                                                                          \
    }

/* rowlock_db_open connects to the database of a URL.
 *
 *   postgresql://user@host:5432/dbname?sslmode=…   all that libpq takes
 *   mysql://user@host:3306/dbname?ssl_mode=verify  also mariadb://
 *   sqlite:/path/to/file                           rowlock_install() creates the file, mode 0600.
 *                                                  PRAGMA foreign_keys is ON on this connection
 *
 * rowlock-url(7) has the parameters, and what they mean for TLS, passwords and poolers. Three or
 * five URLs with spaces between them are a quorum: rowlock/quorum.h.
 *
 * Returns
 *   ROWLOCK_OK         connected. Close the handle with rowlock_db_close(). rowlock's tables were
 *                      not looked at yet: rowlock_install() may follow.
 *   ROWLOCK_ECONN, EDENIED, EINVAL, EUNSUPPORTED, ENOMEM
 *                      *err has the reason. err may be NULL.
 * Several hosts        mysql://user@h1,h2:3307,[::1]:3308/db
 *   - They must be copies of one another. A server with another installation of rowlock's tables is
 *     refused once a handle has seen the first.
 *   - They are tried in this order until one takes writes. A host that refuses the user ends the
 *     search.
 *   - If none takes writes, the result is EREADONLY.
 * A server without writes   a standby, read_only, a Galera node without quorum. The URL may name
 *                      one host: a proxy or a name may lead to another server by the next
 *                      connection.
 *   - A server that stops taking writes is away. A call connects again for reconnect_ms, a wait
 *     for a lock until it ends if that is later. Then the result is EREADONLY.
 *   - A handle that has never seen the server take writes is told EREADONLY at once, and the next
 *     call connects again. These try longer: a wait for a lock, and calls about an attached lock.
 *   - Told at once, also in a wait: a full disk. PostgreSQL: default_transaction_read_only that
 *     the URL, the role or the database sets. In the server's own settings it counts as a standby.
 * SIGPIPE              MariaDB's client library makes the whole process ignore SIGPIPE. Restore it
 *                      in a child before exec, if the child needs it.
 * Blocks               connect_timeout_ms at most, which the hosts share. MySQL, MariaDB: one
 *                      second for each host at least.
 * Example              examples/nightly.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_db_open(const char *url,
                                                   const rowlock_db_options *options,
                                                   rowlock_db **out, rowlock_error *err);

/* rowlock_db_close closes the connection. NULL does nothing.
 *
 *   - It first releases the locks that are still held, if the database can be reached: one round
 *     trip each. A lock that cannot be released ends with its lease.
 *   - The last handle that acquired with keep closes the keeper, and waits for its statement under
 *     way.
 *   - Locks, tables and once claims of this handle become useless. You must still close them.
 */
ROWLOCK_API void rowlock_db_close(rowlock_db *db);

/* rowlock_db_error returns what the last call on this handle, or on one of its locks and tables,
 * returned, and why. For calls with a parameter tx, ask tx. Never NULL. No round trip.
 *
 *   - It is the handle's: valid until its next call. Copy the struct to keep it.
 *   - EMISUSE if db is NULL or closed, in a child of fork(), and while a started acquire is under
 *     way. */
ROWLOCK_API const rowlock_error *rowlock_db_error(const rowlock_db *db);

/* rowlock_cancel ends a wait on this handle with ROWLOCK_CANCELLED: the wait that is going on, or
 * else the next one.
 *
 *   - A wait is a call that acquires with a wait_ms, until it returns. An acquire that was started
 *     is one until rowlock_acquire_step() has the result. So is a walk, and each pause of
 *     rowlock_retry() and rowlock_upgrade().
 *   - A cancel that comes during a wait, but too late to end it, ends no other wait.
 *   - A cancel that comes after a wait ends the next one, even before its first try. The library
 *     cannot tell for which of the two it was meant.
 *   - A signal handler may call it, and no other function.
 *   - During an outage the wait ends when the current attempt to connect, or the statement under
 *     way, has ended.
 * Example      examples/pipeline.c
 */
ROWLOCK_API void rowlock_cancel(rowlock_db *db);

/* ---------------------------------------------------------------- locks */

/* One lock as this program sees it: a name and, while the lock is held, a grant. */
typedef struct rowlock_lock rowlock_lock;

/* rowlock_lock_open makes a handle for the lock with this name. Nothing is sent.
 *
 *   - name: 1-255 bytes of UTF-8. Names are compared byte by byte on every database: "Lock", "lock"
 *     and "lock " are three locks. The name is copied.
 *   - Close the handle with rowlock_lock_close(), before or after db.
 *
 * Returns
 *   ROWLOCK_OK, ROWLOCK_EINVAL, ROWLOCK_ENOMEM
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_lock_open(rowlock_db *db, const char *name,
                                                     rowlock_lock **out);

/* rowlock_lock_attach makes a handle for a grant that was made elsewhere, by another process of the
 * same job for example. Nothing is sent.
 *
 *   - The handle can renew, verify, guard and release the grant.
 *   - Its lease is unknown: rowlock_lock_remaining_ms() is 0 until the first renewal.
 *   - Closing the handle does not release the grant.
 *
 * Returns
 *   ROWLOCK_OK, ROWLOCK_EINVAL, ROWLOCK_ENOMEM
 * Example      examples/handover.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_lock_attach(rowlock_db *db, const char *name,
                                                       const char *owner, int64_t token,
                                                       rowlock_lock **out);

/* rowlock_lock_close frees the handle. NULL does nothing. If this handle acquired the lock and
 * still holds it, the lock is released first, if the database can be reached: one round trip. */
ROWLOCK_API void rowlock_lock_close(rowlock_lock *lock);

/* rowlock_forget makes the handle hold nothing, without a round trip. The row in the table stays,
 * and the keeper stops renewing it. Use it
 *   - when another process goes on with the grant: give it owner and token
 *   - when your own transaction has decided about the grant: see rowlock/tx.h
 * Example      examples/handover.c
 */
ROWLOCK_API void rowlock_forget(rowlock_lock *lock);

/* What a holder has to know. */
typedef enum rowlock_state {
    /* Nothing is held. */
    ROWLOCK_STATE_NONE = 0,
    ROWLOCK_STATE_HELD = 1,
    /* The lease still runs, but the keeper could not renew it, or must not: the server does not
     * answer, max_hold_ms is over, or no progress was reported. */
    ROWLOCK_STATE_JEOPARDY = 2,
    /* The grant is gone, or its lease ends within margin_ms. Stop working. */
    ROWLOCK_STATE_LOST = 3
} rowlock_state;

/* A thread that renews leases. See rowlock_keeper_open(). */
typedef struct rowlock_keeper rowlock_keeper;

#define ROWLOCK_FOREVER INT64_C(-1)
#define ROWLOCK_SHARED (-1)

typedef struct rowlock_acquire_options {
    size_t size;
    /* The lease. 0: 30,000. 100 ms to 366 days. */
    int64_t ttl_ms;
    /* 0: try once. Above 0: wait so long, at most 366 days. ROWLOCK_FOREVER: wait without end. */
    int64_t wait_ms;
    /* For people who read the table, up to 255 bytes of UTF-8. NULL: none. */
    const char *note;

    /* 1: the library renews the lease in the background, until the lock is released.
     *   - A keeper does it, which all handles with this URL, schema and prefix, or of this pool,
     *     share in the process. The first acquire opens it: it connects, within 5 s, and starts a
     *     thread. If that fails, nothing was acquired. The last of these handles closes it.
     *   - 0, and no keeper: you call rowlock_renew().
     *   - A handle of an adopted connection has no URL. It needs options.keeper. */
    int keep;
    /* In place of keep: a keeper of your own (rowlock_keeper_open()). */
    rowlock_keeper *keeper;
    /* The keeper stops renewing so long after the grant. 0: it renews while the lock is held. */
    int64_t max_hold_ms;
    /* The keeper renews only if rowlock_progress() is called at least this often. 0: always. */
    int64_t progress_ms;
    /* The state becomes LOST so long before the lease ends. 0: ttl_ms / 20, within 20 to 500. */
    int64_t margin_ms;
    /* Called from the keeper's thread when the state changes. May be NULL.
     *   - It must not close this lock or the keeper.
     *   - It must return soon: it delays all leases of the keeper, and releasing, forgetting or
     *     closing this lock waits for it. So never hold a mutex here and around such a call.
     *   - It may come late, by as long as a statement of the keeper takes.
     *     rowlock_lock_state_fd() is never late. */
    void (*on_state)(void *context, rowlock_lock *lock, rowlock_state state);
    void *context;

    /* Who may hold the lock at the same time.
     *   0               exclusive: one holder
     *   ROWLOCK_SHARED  all who ask for it as shared
     *   N               up to N holders, who all ask with the same N
     * Shared and counted holders keep exclusive ones out, and the other way round. */
    int permits;
    /* 1: do not queue behind the waiters. Take the lock whenever it is found free. */
    int unfair;
    /* The lease of the ticket: if we die while we wait, others wait so long for us. 0: ttl_ms / 2,
     * within 1,000 to 15,000. At least 1,000. */
    int64_t ticket_ms;
} rowlock_acquire_options;

#define ROWLOCK_ACQUIRE_OPTIONS_INIT                                                              \
    {                                                                                             \
        sizeof(rowlock_acquire_options), 0, 0, ROWLOCK_NIL, 0, ROWLOCK_NIL, 0, 0, 0, ROWLOCK_NIL, \
            ROWLOCK_NIL, 0, 0, 0                                                                  \
    }

/* rowlock_acquire gets the lock. It waits for it if options->wait_ms says so.
 *
 * Returns
 *   ROWLOCK_OK         you hold it. If this handle held it before, it is now held once more
 *                      (re-entry): no round trip, the lease unchanged, and one more
 *                      rowlock_release() is due. Of the options only permits, keep and keeper
 *                      count then.
 *   ROWLOCK_BUSY       another owner holds it, is being granted it at this moment, or is ahead of
 *                      you in the queue. Only if wait_ms is 0.
 *   ROWLOCK_TIMEOUT    not granted within wait_ms. The server was reachable at the end.
 *   ROWLOCK_ECONN      the server could not be reached; after a wait: at its end. The text says for
 *                      how long.
 *   ROWLOCK_EREADONLY  the server takes no writes: see rowlock_db_open(); after a wait: at its end
 *   ROWLOCK_EUNCERTAIN the answer was lost. A grant may be in the table until its lease ends. Call
 *                      again: the same handle finds its own grant. If you ask for another kind
 *                      then, that grant may be in your way until its lease ends. Closing the handle
 *                      removes the grant of the last request if the database can be reached. A wait
 *                      that is cancelled after a lost answer ends so, too.
 *   ROWLOCK_CANCELLED  rowlock_cancel() was called. Nothing is held.
 *   ROWLOCK_MISMATCH   others hold it as another kind: shared or counted, or with another number of
 *                      permits. A wait also ends with MISMATCH when such a holder gets the lock
 *                      first.
 *   ROWLOCK_DEADLOCK   a circle of waiters: you wait for clients that wait, perhaps through others,
 *                      for locks that you hold under the same options.owner. Only the newest waiter
 *                      of the circle gets this result. Release what you hold and begin again. The
 *                      error's text names the circle.
 *   ROWLOCK_EINVAL, EUNSUPPORTED
 *                      an option is not acceptable: keep and a keeper, or keep on an adopted
 *                      connection
 *   ROWLOCK_LAPSED     re-entry after our lease had run out: it was renewed and is held.
 *   ROWLOCK_LOST       re-entry, but the grant of this handle is gone
 *   ROWLOCK_EMISUSE    this handle holds it as another kind. Release it first. There is no upgrade
 *                      from shared to exclusive: two holders would wait for each other without end.
 * Guarantees
 *   - When OK is returned, the grant is committed. It survives a crash of the server.
 *   - A BUSY try has written nothing and waited for no other transaction.
 *   - An expired grant of another owner is taken over. No sweep is needed.
 *   - A lost wake-up delays a waiter by about a second at most: it also looks by itself.
 *   - A newcomer does not overtake waiters, unless it asks to (unfair). So writers get their turn
 *     among readers. A waiter that died is skipped when the lease of its ticket is over.
 *   - A waiter waits through an outage and logs one WARNING when it begins and one when it ends. It
 *     keeps its ticket if that still stands. The wait ends at once if the server refuses the user
 *     or lacks the database or the tables. Of several hosts in the URL, the first one that refuses
 *     the user ends it.
 *   - A server that takes no writes counts as an outage (rowlock_db_open()).
 * Differs
 *   - Servers: a try can also say BUSY of a free lock, at the moment when a sweep takes its idle
 *     counter.
 *   - SQLite: a file has one writer. A try on a free lock may wait up to 1 s for the writer.
 *   - Wake-ups: PostgreSQL notifies the next waiter, MySQL and MariaDB use GET_LOCK(), SQLite a
 *     local datagram. There are none on adopted connections, behind poolers, and between servers
 *     that all take writes: there the first waiter looks every few milliseconds, and others seldom.
 * Round trips          1; re-entry 0; waiting 3 to queue, 1 when it is our turn, and 1 in each
 *                      third of ticket_ms. A handle first asks the cheap question that its last try
 *                      suggests, and takes 2 if the answer does not decide:
 *   - MySQL, MariaDB: the grant after a try that was BUSY
 *   - PostgreSQL: the first try that meets a shared or counted holder, a waiter, an expired lease,
 *     or another holder than the two tries before it
 * Example              examples/nightly.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_acquire(rowlock_lock *lock,
                                                   const rowlock_acquire_options *options);

/* rowlock_acquire_all gets several locks, all of them or none.
 *
 * Returns
 *   the results of rowlock_acquire(). If it is not OK, *which is the index of the lock that it is
 *   about. which may be NULL.
 *   ROWLOCK_EMISUSE, EINVAL  count is 0, a lock is NULL, two names are equal, a handle holds a
 *                            grant already, or the handles are not of one rowlock_db.
 * Guarantees
 *   - Two calls never wait for each other: locks are taken in the order of their names.
 *   - It holds nothing while it waits. It queues for one lock at a time, and goes to the end of
 *     another queue if another lock is missing. Where many wait, it may wait long.
 *   - Each grant is renewed and released by itself.
 * Round trips  1 if all are free; 2 if one is not
 * Example      examples/pipeline.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_acquire_all(rowlock_lock *const *locks, size_t count,
                                                       const rowlock_acquire_options *options,
                                                       size_t *which);

/* rowlock_renew extends the lease: it ends ttl_ms from now. ttl_ms 0: as long as it was granted
 * for.
 *
 * Returns
 *   ROWLOCK_OK         renewed in time
 *   ROWLOCK_LAPSED     renewed, but the lease had run out before
 *   ROWLOCK_LOST       the grant is gone
 *   ROWLOCK_EUNCERTAIN, ECONN
 *                      the lease may run from the last good renewal only. Trust
 *                      rowlock_lock_remaining_ms().
 * Guarantees
 *   - It never creates a grant.
 * Round trips  1; 2 if the lock is LOST
 * Example      examples/handover.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_renew(rowlock_lock *lock, int64_t ttl_ms);

/* rowlock_note sets the note of a held lock: for people who read the table, or the address at which
 * other programs find the holder. NULL: none. Up to 255 bytes of UTF-8. The lease stays as it is.
 *
 * Returns
 *   ROWLOCK_OK         the grant stands and has the note
 *   ROWLOCK_LOST       the grant is gone
 *   ROWLOCK_EUNCERTAIN the answer was lost. Call again.
 *   ROWLOCK_EUNSUPPORTED
 *                      a quorum. Give the note in rowlock_acquire_options.
 * Round trips  1; 2 if the lock is LOST; MySQL, MariaDB: 2 if the note was the same before
 * Example      examples/handover.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_note(rowlock_lock *lock, const char *note);

/* rowlock_verify asks the database whether the grant stands. The answer was true when the database
 * looked. It may no longer be true when you read it.
 *
 * Returns
 *   ROWLOCK_OK         it stands
 *   ROWLOCK_LAPSED     it stands, but its lease has run out
 *   ROWLOCK_LOST       it is gone. PostgreSQL: a commit has proved that no standby of this server
 *                      was promoted. Where commits wait for a standby, this one does too.
 * Round trips  1
 * Example      examples/handover.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_verify(rowlock_lock *lock);

/* rowlock_release gives the lock back. If the lock was acquired more than once, it is left once, in
 * memory.
 *
 * Returns
 *   ROWLOCK_OK         released: the row with this owner and token was there and is gone
 *   ROWLOCK_LOST       the row was gone already. Another client may have held the lock meanwhile.
 *   ROWLOCK_EUNCERTAIN the answer was lost. The lock may be free.
 *   ROWLOCK_EMISUSE    this handle does not hold the lock
 * After LOST the handle holds nothing. After EUNCERTAIN, ECONN and every other result below 0 it
 * still counts as the holder:
 *   - rowlock_lock_token() keeps its token. The keeper has stopped renewing.
 *   - Call rowlock_release() again to settle it. OK: the row was there, or our first release, or
 *     one by another handle of this grant, removed it. LOST: another client got the lock after
 *     this token, or it was broken. After EUNCERTAIN our first release may have come before that.
 *     Other holders of a shared or counted lock count as such clients.
 *   - Closing the handle calls it once more, unless the handle is attached.
 *   - After EUNCERTAIN rowlock_lock_remaining_ms() is 0 and the state is LOST, until
 *     rowlock_renew() finds the grant.
 * Differs      PostgreSQL: the release of a lease of a minute or less does not wait for the disk,
 *              unless commits wait for a standby. If the server crashes a moment later, the lock
 *              stands until its lease is over. Grants always wait, and none is there without the
 *              releases before it.
 * Round trips  1; 2 if LOST, MariaDB 3; 1 more after a lost answer
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_release(rowlock_lock *lock);

/* ---------------------------------------------------------------- what a lock tells */

/* rowlock_lock_remaining_ms returns how many milliseconds of the lease are left. It never returns
 * too many: it counts from before the granting or renewing statement was sent, on this machine's
 * clock, which goes on during suspend. 0: the lease is over, was lost, or nothing is held. */
ROWLOCK_API int64_t rowlock_lock_remaining_ms(const rowlock_lock *lock);

/* rowlock_lock_token returns the token of the grant, or 0 if none is held. */
ROWLOCK_API int64_t rowlock_lock_token(const rowlock_lock *lock);

/* rowlock_lock_state returns HELD, JEOPARDY, LOST or NONE, by this machine's clock and by what the
 * keeper has heard. A keeper does not renew a grant that is LOST. If rowlock_renew() or a re-entry
 * says LAPSED, it is HELD again, and the keeper goes on. on_state is not called for that.
 * Example      examples/pipeline.c
 */
ROWLOCK_API rowlock_state rowlock_lock_state(rowlock_lock *lock);

/* rowlock_lock_state_fd returns a descriptor for poll(). It becomes readable when the state gets
 * worse than rowlock_lock_state() said last, also while the server or the keeper hangs.
 *   - rowlock_lock_state() makes it unreadable until the next change. Do not read from it.
 *   - It belongs to the handle and is closed with it.
 *   - -1: this system has no timerfd.
 * Example      examples/pipeline.c
 */
ROWLOCK_API int rowlock_lock_state_fd(rowlock_lock *lock);

/* rowlock_lock_expires_us returns when the lease ends by the database's clock, in microseconds
 * since 1970, or 0 if nothing is held. It is for people, and to compare with a rowlock_grant. How
 * long you may work is rowlock_lock_remaining_ms(). */
ROWLOCK_API int64_t rowlock_lock_expires_us(const rowlock_lock *lock);

/* Both texts belong to the handle. The name stays until it is closed. An owner of random bits may
 * change with each acquire that is no re-entry. */
ROWLOCK_API const char *rowlock_lock_name(const rowlock_lock *lock);
ROWLOCK_API const char *rowlock_lock_owner(const rowlock_lock *lock);

/* A grant as it is in the table. Times are microseconds since 1970 by the database's clock. */
typedef struct rowlock_grant {
    size_t size;
    int64_t token;
    int64_t acquired_us;
    int64_t expires_us;
    /* What was left of the lease when the database answered. Below 0: it is over. */
    int64_t remaining_ms;
    int64_t ttl_ms;
    int64_t renewals;
    int64_t pid;
    /* As in rowlock_acquire_options. */
    int permits;
    int reserved;
    char name[256];
    char owner[256];
    char host[256];
    char program[256];
    char note[256];
} rowlock_grant;

#define ROWLOCK_GRANT_INIT                                                    \
    {                                                                         \
        sizeof(rowlock_grant), 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}, {0}, {0}, {0}, \
        {                                                                     \
            0                                                                 \
        }                                                                     \
    }

/* rowlock_lock_holder tells which grant the last BUSY, TIMEOUT or MISMATCH on this handle met.
 *
 * Returns
 *   ROWLOCK_OK
 *   ROWLOCK_NONE       no holder is known: the lock was being granted or released at that moment,
 *                      or its lease is over and a transaction guards it
 * Example      examples/pipeline.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_lock_holder(const rowlock_lock *lock,
                                                       rowlock_grant *out);

/* ---------------------------------------------------------------- keepers */

/* rowlock_keeper_open starts a keeper of your own, for programs that want to say when it starts and
 * ends, or for handles of adopted connections. Others set rowlock_acquire_options.keep.
 *
 *   - db says which database: the keeper opens the same one again, with the same options, and does
 *     not need db after that. With a pool it renews through the pool, and has no connection.
 *   - One keeper serves any number of locks, of any number of rowlock_db handles and threads, in
 *     one installation. Acquiring with a lock of another installation is ESCHEMA.
 *   - One statement renews all leases that are due, before a third of each lease is over.
 *   - A statement of it ends within a third of the shortest lease, but not within less than a
 *     second. So there is time to connect again. The time limits of db count if they are shorter.
 *   - It reconnects as a rowlock_db does. It never recreates a grant. It blocks all signals in its
 *     thread.
 *
 * Returns
 *   ROWLOCK_OK
 *   ROWLOCK_EUNSUPPORTED
 *                      db is an adopted connection: open a rowlock_db with its URL for the keeper
 *   ROWLOCK_ESCHEMA    rowlock's tables are not there
 *   others             as rowlock_db_open()
 * Example      examples/pipeline.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_keeper_open(rowlock_db *db, rowlock_keeper **out);

/* rowlock_keeper_close stops the keeper. NULL does nothing.
 *   - Leases that it still renews are not released. They go into JEOPARDY.
 *   - It blocks until the keeper's statement under way has ended.
 *   - Locks may be closed before or after. */
ROWLOCK_API void rowlock_keeper_close(rowlock_keeper *keeper);

/* rowlock_progress tells the keeper that the work goes on: see progress_ms. Call it while the
 * handle is open. No round trip.
 * Example      examples/pipeline.c
 */
ROWLOCK_API void rowlock_progress(rowlock_lock *lock);

/* ---------------------------------------------------------------- counts, and a log */

/* What a handle has done since it was opened. */
typedef struct rowlock_stats {
    /* sizeof(rowlock_stats) */
    size_t size;
    /* Tries to get a lock, those of waiters too. rowlock_acquire_all() tries all at once. Re-entry
     * is no try. */
    uint64_t tries;
    /* Grants. */
    uint64_t granted;
    /* Tries that found another holder, or waiters before them. The other tries failed. */
    uint64_t busy;
    /* Calls that waited in a queue, and for how long in all. */
    uint64_t waits;
    uint64_t waited_us;
    /* Leases of its locks that were renewed, by this handle or by a keeper. */
    uint64_t renewals;
    /* Renewals by this handle that came after the lease had run out. */
    uint64_t lapsed;
    /* Grants that a call on this handle found gone. */
    uint64_t lost;
    /* Statements that were sent again, after a lost race or a lost connection. */
    uint64_t resent;
    /* Connections that were made anew. */
    uint64_t reconnects;
    /* Statements, and beginnings and ends of transactions. Connecting, installing, checking and
     * preparing are not counted. */
    uint64_t round_trips;
} rowlock_stats;

#define ROWLOCK_STATS_INIT                                     \
    {                                                          \
        sizeof(rowlock_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/* rowlock_db_stats tells what this handle has done. It sends nothing, and leaves rowlock_db_error()
 * as it is.
 *   - A keeper has a connection of its own, whose round trips are not counted here.
 *
 * Returns
 *   ROWLOCK_OK
 *   ROWLOCK_EMISUSE    the handle is closed, is of another process, or a started acquire is under
 *                      way
 * Example      examples/pipeline.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_db_stats(rowlock_db *db, rowlock_stats *out);

typedef enum rowlock_log_level {
    ROWLOCK_LOG_WARNING = 1,
    ROWLOCK_LOG_INFO = 2,
    ROWLOCK_LOG_DEBUG = 3
} rowlock_log_level;

/* rowlock_log_set names a function that is told what the library does: one call a line, from the
 * thread that works. It is off by default. log NULL switches it off.
 *   - up_to: this level and those before it
 *   - Names of locks appear in the lines. Owners and connection strings do not.
 *   - Set it before other threads use the library.
 * Example      examples/operator.c
 */
ROWLOCK_API void rowlock_log_set(void (*log)(void *context, rowlock_log_level level,
                                             const char *line),
                                 void *context, rowlock_log_level up_to);

#ifdef __cplusplus
}
#endif
#endif
