/* SPDX-License-Identifier: MIT
 *
 * rowlock: lease locks kept in a table of the database you already have.
 *
 * A lock is a row. Inserting it under its unique key is the grant, deleting it by owner and token
 * is the release. A grant is a lease: it ends by itself unless renewed, so a dead holder does not
 * block others for long. Every grant carries a fencing token. All of it means the same on
 * PostgreSQL, MySQL/MariaDB and SQLite; only the URL changes.
 *
 *     rowlock_db *db = NULL;
 *     rowlock_lock *lock = NULL;
 *     rowlock_error err = ROWLOCK_ERROR_INIT;
 *     if (rowlock_db_open(&db, "postgresql://app@db1/prod", NULL, &err) != ROWLOCK_OK)
 *         return complain(err.text);
 *     if (rowlock_lock_open(db, "nightly", &lock) == ROWLOCK_OK &&
 *         rowlock_acquire(lock, NULL) == ROWLOCK_OK) {
 *         work(rowlock_lock_token(lock));
 *         if (rowlock_release(lock) == ROWLOCK_LOST)
 *             complain("the lease ran out before the work was done");
 *     }
 *     rowlock_lock_close(lock);
 *     rowlock_db_close(db);
 *
 * WHAT A LOCK HERE DOES NOT PROMISE
 *
 *  - It does not stop you. A process that is paused, swapped out or cut off goes on, when it wakes,
 *    as if it held a lock whose lease has long run out. What it then writes into this database,
 *    rowlock_guard() in the writing transaction refuses. For what it writes elsewhere, ask
 *    rowlock_remaining_ms() before a step that matters, and hand the token along: whatever you
 *    write to must refuse an older token than the newest it has seen (rowlock_fence() can remember
 *    it).
 *  - It does not survive an asynchronous failover. A replica that had not yet received a grant
 *    knows nothing of it, nor of its token. Use synchronous replication for the lock tables, or
 *    rowlock_raise_tokens() after each failover.
 *  - It is not fast like a mutex: one grant is one commit. And its line is fair in the order of
 *    tickets as they reached the database, not in real time.
 *  - A lock is not inherited by fork(): in the child every call on a parent's handle returns
 *    ROWLOCK_EMISUSE or knows of no grant, and closing it there frees memory only. A child must not
 *    open a SQLite file that its parent had open when it forked, not even with a new handle: SQLite
 *    cannot bear that. Open after forking.
 *  - Time is the database's. If its clock jumps forward, leases end early, and only tokens help.
 *
 * THREADS. A rowlock_db and the locks opened from it belong to one thread at a time; different
 * rowlock_db handles are independent. Only rowlock_cancel() and rowlock_progress() may be called
 * from elsewhere. The library starts no thread but that of a rowlock_keeper and that of
 * rowlock_acquire_start(), installs no signal handler, prints nothing and never exits.
 *
 * BLOCKING. Each call that speaks to the database ends within the statement deadline of its handle
 * (rowlock_db_options.statement_timeout_ms), plus reconnecting (reconnect_ms) where the connection
 * was lost, plus the wait asked for in rowlock_acquire(), which includes its own reconnecting. On
 * MySQL and MariaDB, whose client libraries count timeouts in whole seconds, the statement deadline
 * is rounded up to a second.
 *
 * ROUND TRIPS are counted per call below, on a connection in use. The first call on a new
 * connection needs one more, to look at the tables; and on MySQL and MariaDB each kind of statement
 * needs one more when a connection first sends it, to be prepared.
 *
 * RESULTS come by sign, so that a caller needs two ifs: 0 is done, above 0 the database said no,
 * below 0 we failed or cannot tell. Output parameters are untouched on failure, except that handles
 * are set to NULL.
 */
#ifndef ROWLOCK_ROWLOCK_H
#define ROWLOCK_ROWLOCK_H

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

/* "0.1.0": the version of the library that is running, which may be newer than this header. */
ROWLOCK_API const char *rowlock_version(void);

/* ---------------------------------------------------------------- results and errors */

typedef enum rowlock_result {
    ROWLOCK_OK = 0,

    /* The database said no. */
    ROWLOCK_BUSY = 1, /* another owner holds it; rowlock_lock_holder() says who */
    ROWLOCK_TIMEOUT = 2, /* still held by another when the wait asked for was over */
    ROWLOCK_LOST = 3, /* this grant is no longer in the table: taken over, broken or swept */
    ROWLOCK_LAPSED = 4, /* ours again or still, but the lease had run out: for a while nothing
                              protected the work, although nobody else was granted the lock */
    ROWLOCK_NONE = 5, /* there is no such grant */
    ROWLOCK_CANCELLED = 6, /* rowlock_cancel() ended the wait */
    ROWLOCK_STALE = 7, /* a newer token has been seen; or a row has another version */
    ROWLOCK_CONFLICT = 8, /* your transaction lost against another's: a serialization failure, a
                             deadlock, a lock timeout. Roll it back and run it again */
    ROWLOCK_MISMATCH = 9, /* held as another kind: shared, or with another number of permits */
    ROWLOCK_DEADLOCK = 10, /* the wait would never end: those we wait for wait for us */
    ROWLOCK_PENDING = 11, /* what rowlock_acquire_start() began is still going on */
    ROWLOCK_GONE = 12, /* there is no such row */
    ROWLOCK_EXISTS = 13, /* there is such a row already */
    ROWLOCK_UNDONE = 14, /* not changed, because all rows were to be changed or none */
    ROWLOCK_DONE = 15, /* it was done before */
    ROWLOCK_VIOLATION =
        16, /* the row would break a constraint, or a value does not fit its column */

    /* We failed, or cannot tell. rowlock_db_error() has the facts. */
    ROWLOCK_EUNCERTAIN = -1, /* sent, but the answer never came: it may or may not have happened */
    ROWLOCK_ECONN =
        -2, /* the database cannot be reached; nothing was done. Only a waiter's ticket may
                           stay in the queue; see rowlock_acquire() */
    ROWLOCK_ESCHEMA = -3, /* our tables are missing, older, newer or somebody else's */
    ROWLOCK_EINVAL = -4, /* a name, URL or option is not acceptable; nothing was sent */
    ROWLOCK_ENOMEM = -5, /* out of memory */
    ROWLOCK_EREADONLY = -6, /* this server takes no writes: a replica, or a full or locked disk */
    ROWLOCK_EDENIED = -7, /* the database refuses this user the login, the tables or the verb */
    ROWLOCK_EMISUSE = -8, /* the handle is closed, of another process, or in the wrong state */
    ROWLOCK_EUNSUPPORTED = -9, /* not built in; this server is too old, or its TLS will not do */
    ROWLOCK_ESERVER = -10 /* the database failed in another way; the text is its own */
} rowlock_result;

/* "ROWLOCK_BUSY" and so on; never NULL. */
ROWLOCK_API const char *rowlock_result_name(int result);

/* What a row that is a ROWLOCK_VIOLATION would break. */
typedef enum rowlock_constraint {
    ROWLOCK_CONSTRAINT_NONE = 0, /* it is no violation, or the database did not say */
    ROWLOCK_CONSTRAINT_UNIQUE = 1, /* a unique key, or an exclusion constraint of PostgreSQL */
    ROWLOCK_CONSTRAINT_FOREIGN_KEY = 2,
    ROWLOCK_CONSTRAINT_CHECK = 3,
    ROWLOCK_CONSTRAINT_NOT_NULL = 4,
    ROWLOCK_CONSTRAINT_VALUE = 5 /* a value is too large, too long or of a wrong form */
} rowlock_constraint;

/* What went wrong, by value: fill it from rowlock_db_error(), or pass it to an opening function. */
typedef struct rowlock_error {
    size_t size; /* sizeof(rowlock_error) */
    int code; /* the result that was returned */
    int native; /* MySQL error number or SQLite extended code; 0 if there is none */
    char sqlstate[8]; /* five characters where the database gave them */
    int retryable; /* 1 if the same call may succeed later with nothing changed */
    char action[300]; /* what was being done: "renew lock 'nightly'" */
    char text[700]; /* why, and what to do about it; one line, UTF-8 */
    /* 1 if your transaction on an adopted connection can only be rolled back, or has been; 0: it
     * can go on as if the call had not been made */
    int transaction_over;
    int constraint; /* enum rowlock_constraint */
    int32_t reserved;
    int64_t row; /* its index in the array that you gave: rows[3] is 3; -1: none, or unknown */
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

typedef struct rowlock_db rowlock_db;

struct pg_conn; /* PGconn of libpq */
struct st_mysql; /* MYSQL of libmysqlclient or MariaDB Connector/C */
struct sqlite3;

typedef struct rowlock_db_options {
    size_t size; /* sizeof(rowlock_db_options) */
    /* who we are for re-entry, renewal and release, 1-255 bytes of UTF-8. NULL: 128 random bits for
     * each rowlock_lock. Choose your own if a restarted process is to get its own lock back:
     * acquiring with the same owner takes the lock over, with a new token, and the older handle
     * finds itself LOST. */
    const char *owner;
    const char *program; /* for people reading the table; NULL: this program's name */
    /* PostgreSQL schema or MySQL database of the tables; NULL: "public" or the URL's database. The
     * URL may say ?rowlock_schema= instead. */
    const char *schema;
    const char *prefix; /* what table names begin with; NULL: "rowlock_". Letters, digits and
                                     underscores. The URL may say ?rowlock_prefix= instead. */
    int64_t connect_timeout_ms; /* 0: 5,000 */
    int64_t statement_timeout_ms; /* 0: 10,000 */
    int64_t reconnect_ms; /* how long to go on trying a lost connection; 0: 5,000; < 0: never. A
                             wait for a lock goes on trying until its own end, unless never */
} rowlock_db_options;

#define ROWLOCK_DB_OPTIONS_INIT                                     \
    {                                                               \
        sizeof(rowlock_db_options), NULL, NULL, NULL, NULL, 0, 0, 0 \
    }
ROWLOCK_API void rowlock_db_options_init(rowlock_db_options *options);

/* Connect by URL.
 *
 *   postgresql://user@host:5432/dbname?sslmode=…   whatever libpq takes
 *   mysql://user@host:3306/dbname?socket=…         or mariadb://; parameters: socket, ssl_mode
 *                                                  (disabled, required, verify), ssl_ca, ssl_cert,
 *                                                  ssl_key, default_file, default_group
 *   sqlite:/path/to/file                           created with mode 0600 by rowlock_install(), if
 *                                                  it is not there. The connection enforces foreign
 *                                                  keys (PRAGMA foreign_keys = ON)
 *
 * ssl_mode=required encrypts and trusts any server. ssl_mode=verify also checks the certificate.
 * Neither shows the password to a server without TLS. For that, MariaDB's client library with
 * "required" takes only logins that never show it (mysql_native_password, ed25519, GSSAPI, PARSEC).
 * Others, such as MySQL's caching_sha2_password, are EDENIED there and need "verify".
 *
 * A server's URL may name several hosts, each with its own port:
 * mysql://user@h1,h2:3307,[::1]:3308/db. They are tried in this order until one is reached that
 * takes writes, each for its share of the connect timeout, so that one that hangs leaves time for
 * the others. One that refuses the user ends the search. When a server in use takes no writes any
 * more, the handle looks for another likewise, for reconnect_ms; if none takes writes, EREADONLY.
 * On PostgreSQL the URL may ask for another kind of server by target_session_attrs; on MySQL and
 * MariaDB, a server that takes no writes is one with read_only, super_read_only or innodb_read_only
 * set. The servers must be copies of one another: one with another installation of our tables is
 * refused once a handle has seen the first.
 *
 * A pooler between us and PostgreSQL is taken for one that lends sessions for a transaction:
 * nothing is prepared, set or listened to. The URL may say ?rowlock_pooler=session of one that
 * keeps a session for one client.
 *
 * MariaDB's client library has the whole process ignore SIGPIPE from then on; restore it in a child
 * before exec if that matters to it.
 *
 * Passwords are better left where those clients keep them: .pgpass, service and option files,
 * PGPASSWORD, MYSQL_PWD. ROWLOCK_OK; ECONN, EDENIED, EINVAL, EUNSUPPORTED, ENOMEM with *out NULL
 * and the reason in err (which may be NULL). Does not look for our tables: rowlock_install() may
 * follow. Blocks for connect_timeout_ms at most, for all hosts of a URL together; on MySQL and
 * MariaDB for a second for each host at least. The handle is yours to close. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_db_open(rowlock_db **out, const char *url,
                                                   const rowlock_db_options *options,
                                                   rowlock_error *err);

/* Use a connection you already have. It stays yours: it is never closed, no setting of it is
 * changed, and no transaction of yours is committed or rolled back. While it is inside a
 * transaction (or, on MySQL, has autocommit off) every call that speaks to the database returns
 * EMISUSE and sends nothing, but those under "your transaction" below, which become a part of it.
 * It is not reconnected: once lost, calls return ECONN. Between our calls you may use it freely;
 * not during them. Close the rowlock_db before the connection. PostgreSQL: its client_encoding must
 * be UTF8. MySQL: its character set must not be GBK, Big5, SJIS, cp932 or GB18030 (EINVAL). If a
 * call returns EUNCERTAIN because the statement deadline passed, an answer may still be under way
 * on it: close it. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_db_adopt_postgres(rowlock_db **out, struct pg_conn *conn,
                                                             const rowlock_db_options *options,
                                                             rowlock_error *err);
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_db_adopt_mysql(rowlock_db **out, struct st_mysql *conn,
                                                          const rowlock_db_options *options,
                                                          rowlock_error *err);
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_db_adopt_sqlite(rowlock_db **out, struct sqlite3 *conn,
                                                           const rowlock_db_options *options,
                                                           rowlock_error *err);

/* Close. Locks still held are released first, one round trip each, as well as can be done: what
 * cannot be released expires. Lock handles still open become useless but must still be closed,
 * and so must those of rowlock_once_claim(). NULL is harmless. */
ROWLOCK_API void rowlock_db_close(rowlock_db *db);

/* Copy what the last failing call on this handle, or on a lock of it, had to say; in a forked
 * child, that the handle is not its own. No round trip. */
ROWLOCK_API void rowlock_db_error(const rowlock_db *db, rowlock_error *err);

/* Make a wait on this handle end with ROWLOCK_CANCELLED: the one going on, or else the next; also
 * while it looks for a lost server, as soon as an attempt to connect has ended. The only call that
 * is safe from another thread and from a signal handler. */
ROWLOCK_API void rowlock_cancel(rowlock_db *db);

/* ---------------------------------------------------------------- locks */

/* One lock as this program sees it: a name and, while held, a grant. */
typedef struct rowlock_lock rowlock_lock;

/* A grant as it stands in the table. Times are microseconds since 1970 by the database's clock. */
typedef struct rowlock_grant {
    size_t size; /* sizeof(rowlock_grant) */
    int64_t token;
    int64_t acquired_us;
    int64_t expires_us;
    int64_t remaining_ms; /* of its lease, when the database answered; negative once it ran out */
    int64_t ttl_ms;
    int64_t renewals;
    int64_t pid;
    int32_t permits; /* 0: exclusive; ROWLOCK_SHARED; N: one of at most N */
    int32_t reserved;
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

/* Open a handle on the lock called name: 1-255 bytes of UTF-8, compared byte by byte on every
 * database, so that "Lock", "lock" and "lock " are three locks. The name is copied. Nothing is
 * sent. OK, EINVAL (with the reason in rowlock_db_error()), ENOMEM. Yours to close, before or after
 * db. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_lock_open(rowlock_db *db, const char *name,
                                                     rowlock_lock **out);

/* Open a handle on a grant made elsewhere, known by owner and token, to renew, verify or release
 * it: by another process of the same job, say. Nothing is sent, so nothing is known of its lease:
 * rowlock_remaining_ms() is 0 until a renewal. Closing the handle does not release the grant. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_lock_attach(rowlock_db *db, const char *name,
                                                       const char *owner, int64_t token,
                                                       rowlock_lock **out);

/* Close. A lock that this handle acquired and still holds is released first, one round trip, as
 * well as can be done. NULL is harmless. */
ROWLOCK_API void rowlock_lock_close(rowlock_lock *lock);

/* Forget the grant without a round trip: the handle holds nothing then, and what stands in the
 * table is no longer its concern. For a grant that another process goes on with (hand it owner and
 * token), and for one whose fate your own transaction has decided. Its keeper stops renewing it. */
ROWLOCK_API void rowlock_lock_forget(rowlock_lock *lock);

/* What a holder has to know. */
typedef enum rowlock_state {
    ROWLOCK_STATE_NONE = 0, /* nothing is held */
    ROWLOCK_STATE_HELD = 1,
    /* the lease runs, but its keeper could not renew it, or may not: the server is silent,
     * max_hold_ms is over, no progress was told */
    ROWLOCK_STATE_JEOPARDY = 2,
    ROWLOCK_STATE_LOST = 3 /* the grant is gone, or its lease ends within margin_ms: stop working */
} rowlock_state;

/* Renews leases in the background; see below. */
typedef struct rowlock_keeper rowlock_keeper;

typedef struct rowlock_acquire_options {
    size_t size; /* sizeof(rowlock_acquire_options) */
    int64_t ttl_ms; /* the lease; 0: 30,000; at least 100, at most 366 days */
    int64_t wait_ms; /* 0: try once; > 0: wait so long, at most 366 days; ROWLOCK_FOREVER */
    const char *note; /* for people reading the table, up to 255 bytes of UTF-8; NULL: none */

    rowlock_keeper *keeper; /* renews the lease until it is released; NULL: you do */
    int64_t max_hold_ms; /* renew no longer than this after the grant; 0: as long as it is held */
    int64_t progress_ms; /* renew only while rowlock_progress() is called so often; 0: always */
    int64_t margin_ms; /* be told LOST so long before the lease ends; 0: a twentieth, 20-500 ms */
    /* Called in the keeper's thread when the state gets worse, or better again, NULL: nobody is. It
     * must not close this lock nor the keeper, nor block for long: it delays all leases of the
     * keeper, and releasing, forgetting or closing this lock waits for it to return. No mutex
     * across both. It may come late by as long as a statement of the keeper takes;
     * rowlock_lock_fd() does not. */
    void (*told)(void *context, rowlock_lock *lock, rowlock_state state);
    void *context;

    /* 0: exclusive. ROWLOCK_SHARED: together with all who ask for it so. N: together with up to N -
     * 1 others who ask with the same N. Shared and counted holders keep exclusive ones out, and the
     * other way round */
    int32_t permits;
    int32_t unfair; /* 1: pass by those who stand in line, whenever the lock is found free */
    /* How long others wait for us in the line if we die; 0: half of ttl_ms, but 1,000 to 15,000; at
     * least 1,000. */
    int64_t ticket_ms;
} rowlock_acquire_options;

#define ROWLOCK_FOREVER INT64_C(-1)
#define ROWLOCK_SHARED (-1)
#define ROWLOCK_ACQUIRE_OPTIONS_INIT                                                    \
    {                                                                                   \
        sizeof(rowlock_acquire_options), 0, 0, NULL, NULL, 0, 0, 0, NULL, NULL, 0, 0, 0 \
    }
ROWLOCK_API void rowlock_acquire_options_init(rowlock_acquire_options *options);

/* Get the lock.
 *
 * OK         granted; or, if this handle holds it already, entered once more: counted in memory, no
 *            round trip, the ttl unchanged, and one more rowlock_release() due.
 * BUSY       wait_ms was 0 and another owner holds it, or stands in line for it, or is at this
 *            moment being granted it. Nothing was written. rowlock_lock_holder() tells who holds
 *            it.
 * TIMEOUT    not granted during the whole wait, and the server was there at its end.
 * CANCELLED  rowlock_cancel() was called; nothing is held.
 * ECONN      the server could not be reached. With a wait: it was away when the wait ended. The
 *            text says for how long it had been away.
 * MISMATCH   others hold it as another kind: shared where we count permits, or with another number
 *            of them. rowlock_lock_holder() tells who. Asking again is of no use while they do. A
 *            wait ends so too, when such a holder comes before it.
 * DEADLOCK   those we wait for wait, by themselves or through others, for locks that we hold under
 *            the same owner name (rowlock_db_options.owner). Only one waiter of the circle is told,
 *            the one that came last; release what you hold and begin again. rowlock_db_error()
 *            names the circle.
 * LAPSED     re-entry after our own lease had run out: it was renewed, and is held.
 * LOST       re-entry, but the grant this handle held is gone. Release as often as entered, then
 *            acquire anew.
 * EMISUSE    this handle holds it as another kind. To become exclusive, release first: two that
 *            waited for each other to leave would wait for ever. To let others in,
 *            rowlock_downgrade().
 * EUNCERTAIN the answer was lost and could not be had again in time. A grant may stand in the table
 *            until its lease runs out; the same handle's next acquire finds it and returns it, and
 *            closing the handle removes it if the database can be reached by then.
 *
 * A granted lock is a commit: it is there when the server comes back from a crash. A try never
 * waits for another's transaction; but a SQLite file has room for one writer at a time, and a try
 * on a free lock waits for it up to a second before it says BUSY. On a server a try may also say
 * BUSY of a free lock, without a holder, at the moment when a sweep takes its idle counter. An
 * expired lock is taken over here; no sweeping is needed for that.
 *
 * WAITING. Whoever must wait takes a ticket, a row under a short lease of its own, and is granted
 * the lock in the order of tickets; newcomers do not overtake, unless they ask to (unfair). Writers
 * therefore get their turn among readers. A waiter that dies is passed by when its ticket's lease
 * is over. On PostgreSQL the next in line is notified by a release, on MySQL and MariaDB it waits
 * for the one before it by GET_LOCK(), on SQLite it is sent a datagram; where that cannot be (an
 * adopted connection, a pooler, several servers that take writes) the first in line looks every few
 * milliseconds and the others seldom. A look every second or so is made in any case, so that no
 * lost bell costs more than that.
 *
 * A waiter waits through an outage. It holds nothing, so it has nothing to lose: it reconnects
 * until its wait is over or rowlock_cancel() ends it, unless reconnect_ms is < 0 or the connection
 * is adopted. It keeps its place if its ticket still stands, and takes a new ticket if not. It logs
 * one WARNING when the outage begins and one when it ends. A server that refuses the user, or lacks
 * the database or our tables, ends the wait at once.
 *
 * Round trips: 1; re-entry 0. A handle whose last try was decided asks a cheaper question first,
 * and takes 2 where that one does not decide. MySQL, MariaDB: the grant after a try that found the
 * lock held. PostgreSQL: a shared or counted holder, a waiter, or a lease that ran out, since a try
 * that met none of them; or a lost race. Waiting: 3 to stand in line and 1 when it is our turn, and
 * one in a third of ticket_ms meanwhile. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_acquire(rowlock_lock *lock,
                                                   const rowlock_acquire_options *options);

/* Get several locks, all of them or none. The library puts them in the order of their names, so
 * that two calls never wait for each other, and holds none while it waits for another. The handles
 * belong to one rowlock_db, hold nothing, and have different names, or it is EMISUSE or EINVAL;
 * each grant is then renewed and released by itself. EMISUSE also if count is 0 or a lock is NULL.
 *
 * Results as rowlock_acquire(); what is not OK concerns the lock at *which (may be NULL). It waits
 * in the line of one lock at a time, and goes to the end of another's when that is the one missing:
 * in a crowd it may wait long. Round trips: 1 when all are free; 2 when one is not. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_acquire_all(rowlock_lock *const *locks, size_t count,
                                                       const rowlock_acquire_options *options,
                                                       size_t *which);

/* Let others in: turn an exclusive grant into a shared one (ROWLOCK_SHARED) or one of N permits, at
 * once and without letting go of it. Token and lease stay. May wait for a transaction that guards
 * the grant. OK; LOST; EMISUSE if it is not held exclusively, or entered more than once. Round
 * trips: 1. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_downgrade(rowlock_lock *lock, int32_t permits);

/* Acquire without blocking, for event loops: start, poll the descriptor, step until it is not
 * PENDING.
 *
 *     if (rowlock_acquire_start(lock, &options) == ROWLOCK_OK)
 *         watch(rowlock_acquire_fd(lock));        readable when there is something to step for
 *     ...
 *     int result = rowlock_acquire_step(lock);    never blocks; as rowlock_acquire(), or PENDING
 *
 * A thread of the library's own does the waiting, on every database alike, so that nothing of it
 * blocks yours: not even a name look-up or a TLS handshake on reconnecting. It ends with the
 * result. Until you have that the rowlock_db belongs to it: calls that need the database return
 * EMISUSE, this lock knows nothing, and only rowlock_cancel() is heard. Closing the db or a lock of
 * it cancels, and waits for that. Options are copied, their texts too. start: OK; EINVAL, EMISUSE,
 * ENOMEM as rowlock_acquire(); no round trip in your thread. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_acquire_start(rowlock_lock *lock,
                                                         const rowlock_acquire_options *options);
ROWLOCK_API int
rowlock_acquire_fd(const rowlock_lock *lock); /* belongs to the lock; -1: nothing started */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_acquire_step(rowlock_lock *lock);

/* Make the lease last ttl_ms from now on; 0: as long as it was granted for. Never re-creates a
 * lock.
 *
 * OK      renewed in time.
 * LAPSED  renewed, but the lease had run out before: the work was unprotected for a while, though
 *         nobody else was granted the lock.
 * LOST    the grant is gone. The handle is LOST until released as often as it was entered.
 * EUNCERTAIN, ECONN  the lease may run on from the last good renewal only: trust remaining_ms.
 *
 * Round trips: 1. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_renew(rowlock_lock *lock, int64_t ttl_ms);

/* Ask the database whether the grant stands: OK, LAPSED (the lease ran out, but nobody took it) or
 * LOST. It says what was so when the database looked, not what is so now. Round trips: 1. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_verify(rowlock_lock *lock);

/* Give the lock back, or leave it once if it was entered more than once (no round trip then).
 *
 * OK          released: the row with this owner and token is gone through us.
 * LOST        the row was gone. Somebody else may have held the lock meanwhile.
 * EUNCERTAIN  the answer was lost and could not be had again in time. The lock may be free.
 * EMISUSE     this handle does not hold it.
 *
 * After EUNCERTAIN, ECONN and every other failure the handle counts as holding, on all databases
 * alike:
 *  - rowlock_lock_token() keeps its token. The keeper has stopped renewing.
 *  - Call rowlock_release() again to settle it. OK: the row was there, or our earlier release
 *    removed it. LOST: since this token another was granted the lock, or it was broken. After
 *    EUNCERTAIN our earlier release may have come before that. Of a shared or counted lock that
 *    other may be one beside you.
 *  - Closing the handle calls it once more, unless the handle is attached. Or let the lease expire.
 *  - After EUNCERTAIN do not count upon the lease: rowlock_remaining_ms() is 0 and the state LOST,
 *    until rowlock_renew() finds the grant.
 *
 * Round trips: 1; on MariaDB 2 until it says LOST; 1 more after a lost answer. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_release(rowlock_lock *lock);

/* Milliseconds of lease left, never too many: counted from before the granting or renewing
 * statement was sent, on this machine's clock that goes on during suspend. 0 when it ran out, was
 * lost or is not held. No round trip. */
ROWLOCK_API int64_t rowlock_remaining_ms(const rowlock_lock *lock);

/* The fencing token of the grant: for one name strictly increasing in the order of grants, for
 * ever. 0 if none is held. No round trip. */
ROWLOCK_API int64_t rowlock_lock_token(const rowlock_lock *lock);

/* HELD, JEOPARDY, LOST or NONE, by the clock of rowlock_remaining_ms() and what the keeper has
 * heard. LOST is final for a grant: its keeper renews it no more. No round trip. */
ROWLOCK_API rowlock_state rowlock_lock_state(rowlock_lock *lock);

/* A file descriptor for poll(): readable once the state has got worse, by the clock alone, also
 * while the server or the keeper hangs. rowlock_lock_state() makes it unreadable until the next
 * change. It belongs to the handle and is closed with it; do not read it. -1 where the system has
 * no timerfd. */
ROWLOCK_API int rowlock_lock_fd(rowlock_lock *lock);

/* When the lease ends by the database's clock, in microseconds since 1970; 0 if not held. */
ROWLOCK_API int64_t rowlock_lock_expires_us(const rowlock_lock *lock);

/* Borrowed from the handle, valid until it is closed. */
ROWLOCK_API const char *rowlock_lock_name(const rowlock_lock *lock);
ROWLOCK_API const char *rowlock_lock_owner(const rowlock_lock *lock);

/* Whom the last BUSY or TIMEOUT on this handle met. OK, or NONE: the lock was at that very moment
 * being granted or released, so that nobody can be named. No round trip. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_lock_holder(const rowlock_lock *lock,
                                                       rowlock_grant *out);

/* ---------------------------------------------------------------- keepers */

/* A keeper renews leases in the background: one thread and one connection, one statement for all
 * leases that are due, somewhat before a third of each lease has passed. It reconnects as a
 * rowlock_db does, never makes a released lock stand again, and forgets a lock that is released,
 * forgotten or closed, without waiting for its own statement. The thread blocks all signals.
 *
 * Open one by the URL that the locks were opened by; options as for rowlock_db_open(), whose
 * deadlines are best well below a third of the shortest lease. OK, or as rowlock_db_open(); ESCHEMA
 * if our tables are not there. It then serves any number of locks of any number of rowlock_db, in
 * any threads, of the same installation; acquiring with one of another is ESCHEMA. Ask for it in
 * rowlock_acquire_options. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_keeper_open(rowlock_keeper **out, const char *url,
                                                       const rowlock_db_options *options,
                                                       rowlock_error *err);

/* Stop. Leases it still keeps are not released, and go into JEOPARDY when they are no longer
 * renewed. Blocks until its statement under way has ended. Locks may be closed before or after. In
 * a forked child it frees memory only. NULL is harmless. */
ROWLOCK_API void rowlock_keeper_close(rowlock_keeper *keeper);

/* Tell the keeper that the work goes on; see progress_ms. From any thread, while the handle is
 * open. No round trip. */
ROWLOCK_API void rowlock_progress(rowlock_lock *lock);

/* ---------------------------------------------------------------- your transaction */

/* These become a part of the transaction that is open on an adopted connection, tx, or of the one
 * that rowlock_retry() runs on it (rowlock/versions.h). They begin, commit and set nothing. EMISUSE
 * if tx is not inside such a transaction; ECONN if its connection is lost, and your transaction
 * with it. rowlock_db_error(tx) has the facts, and says in transaction_over whether your
 * transaction can go on. The lock may belong to tx or, better, to a rowlock_db of its own with a
 * keeper. tx must see the same installation: ESCHEMA if it is another.
 *
 * What holds "until the transaction ends" ends earlier where the call itself is undone or the
 * database ends the transaction: in a savepoint that is rolled back to (not on SQLite), at a
 * statement with an implicit commit (DDL on MySQL), and at XA PREPARE on MySQL and MariaDB, which
 * lets share locks go: do not guard XA transactions there. A wait for another transaction lasts as
 * long as your session's own lock timeout (MySQL: innodb_lock_wait_timeout) or the statement
 * deadline of tx allows; past that deadline PostgreSQL's answer is still under way, and all you can
 * do with the connection is close it.
 *
 * CONFLICT  another transaction won; see rowlock_error.transaction_over. On PostgreSQL any error
 *           ends your transaction; on MySQL and MariaDB a deadlock does, and with
 *           innodb_snapshot_isolation a row that changed after your snapshot; a lock timeout does
 *           not.
 *
 * The first of these calls on a new rowlock_db needs one more round trip, to look at the tables. */

/* Prove that the lock is ours, until the transaction ends: if this succeeds and you commit, nobody
 * was granted this lock before your commit, whatever happened to the lease or to you meanwhile. It
 * share-locks the name's row in rowlock_tokens, which every grant must change. So it stops
 * takeovers and breaks until you commit, but no renewal and no release. On SQLite, where a file has
 * one writer, it makes your transaction that writer, and stops those too.
 *
 * OK    this grant is the newest of its name, and stays it until the transaction ends. A lease that
 *       has run out is no obstacle as long as nobody came: now nobody can. A shared or counted
 *       grant may have newer ones of its kind beside it: OK says that none was made against it, nor
 *       will be. Others of its kind are kept out as well until you commit.
 * LOST  another has been granted the lock, or it was broken. Roll back.
 *
 * Guard before you write or before you commit, at any isolation. Above READ COMMITTED PostgreSQL
 * (and MariaDB with innodb_snapshot_isolation) says CONFLICT where the token changed after your
 * snapshot, be it by your own grant: acquire first, then begin. On SQLite BEGIN IMMEDIATE spares
 * the CONFLICT of two that read first. Waits for a grant in flight. Without this library:
 * docs/GUARDING.md. Round trips: 1; on MySQL and MariaDB the first guard on a connection takes one
 * more.
 *
 * Several nodes that take writes (Galera; Group Replication in multi-primary mode): a row lock is
 * local to its node there, so the guard changes the token row instead. If another node has granted
 * the lock meanwhile, your COMMIT fails with error 1213 (Galera), 3101 or 1180 (Group Replication).
 * Then nothing of your transaction was done: run it again, beginning with the guard. Two guarded
 * transactions of one name refuse each other in the same way, also those of two shared grants.
 * Check the result of COMMIT. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_guard(rowlock_lock *lock, rowlock_db *tx);

/* Acquire in your transaction: the grant is there for others when you commit, and never was if you
 * roll back; then tell the handle by rowlock_lock_forget(). Until the commit use the handle only in
 * this transaction, and show its token to nobody: after a rollback the next grant gets the same. If
 * you do not know whether the commit was done, rowlock_verify() does. Until then a guard in another
 * transaction takes a second round trip to find out. Tries once: wait_ms and keeper must be 0 and
 * NULL. OK; BUSY; EMISUSE if the handle holds a grant already; CONFLICT. On MySQL the very first
 * grant of a name may wait for another transaction's very first grant of it, and at SERIALIZABLE,
 * where every read locks, others wait for what a try has read until you end. Round trips: 1. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_tx_acquire(rowlock_lock *lock, rowlock_db *tx,
                                                      const rowlock_acquire_options *options);

/* Guard, and release in your transaction: others can have the lock when you commit, and the work of
 * the transaction is there at the same moment. The keeper stops renewing. After the commit,
 * rowlock_lock_forget(). After a rollback you hold it still: rowlock_renew() it, which also makes
 * its keeper go on, or release it. rowlock_release() and closing are right after either, for a
 * round trip; LOST if somebody was granted the lock since. Before the end of the transaction they
 * wait for it. OK; LOST; CONFLICT: on PostgreSQL above READ COMMITTED already when the lease was
 * renewed since your snapshot; EMISUSE if it was entered more than once. Round trips: 2. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_tx_release(rowlock_lock *lock, rowlock_db *tx);

/* Remember the newest token that a resource has seen, and refuse older ones: before writing to a
 * resource that has no column of its own for it. OK: no newer token was seen; STALE: one was, so do
 * not write. resource: 1-255 bytes of UTF-8, any name you choose. In a transaction on an adopted
 * connection the resource stays locked until that ends, so that writes go in the order of tokens;
 * then do not write before this. Otherwise it is a commit of its own, and what you write after it
 * may still be overtaken. Tables that can have a column for the token need no help: GUARDING.md.
 * Round trips: 1. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_fence(rowlock_db *db, const char *resource,
                                                 int64_t token);

/* ---------------------------------------------------------------- administration */

/* Create our tables, or do nothing if they are there. Harmless when repeated, or done by many at
 * once. OK; EDENIED (have a DBA run what rowlock_install_script() writes); ESCHEMA (newer or
 * foreign tables there, or objects by our names that somebody prepared). */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_install(rowlock_db *db);

/* rowlock_install_script writes the SQL of rowlock_install() for the database's own shell: psql,
 * mysql or mariadb, sqlite3. It changes nothing in the database and needs no privilege there. write
 * gets the text in pieces, in order; it returns nonzero to stop. */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_install_script(rowlock_db *db, int (*write)(void *context, const char *sql, size_t length),
                       void *context);

typedef enum rowlock_verdict {
    ROWLOCK_FINE = 0,
    ROWLOCK_WARNING = 1,
    ROWLOCK_BAD = 2
} rowlock_verdict;

typedef struct rowlock_finding {
    const char *item; /* "isolation" */
    const char *value; /* "read committed" */
    const char *advice; /* "" or what to do */
    rowlock_verdict verdict; /* BAD: locks will not work, or not be safe */
} rowlock_finding;

/* Look at the server and our tables as a doctor would, and report each finding; strings are
 * borrowed for the time of the callback, which may stop the report by returning non-zero. *worst
 * (may be NULL) gets the gravest verdict. OK also when findings are BAD: the result speaks of the
 * looking. */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_check(rowlock_db *db, int (*each)(void *context, const rowlock_finding *finding),
              void *context, rowlock_verdict *worst);

/* Report the grants that stand in the table, in the order of their names, expired ones included
 * (remaining_ms < 0). name: only this name's; NULL: all. The callback may stop the report by
 * returning non-zero; it must not use db. Round trips: 1 for each 500 rows. */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_list(rowlock_db *db, const char *name,
             int (*each)(void *context, const rowlock_grant *grant), void *context);

/* The highest token ever granted for name and when that was (microseconds since 1970, database's
 * clock). OK, or NONE: never granted, or so long ago that its counter was swept. Round trips: 1. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_last_grant(rowlock_db *db, const char *name,
                                                      int64_t *token, int64_t *granted_us);

/* One who stands in line. Times are microseconds since 1970 by the database's clock. */
typedef struct rowlock_waiter {
    size_t size; /* sizeof(rowlock_waiter) */
    int64_t ticket; /* the order of the line */
    int64_t since_us;
    int64_t waited_ms;
    int64_t remaining_ms; /* of the ticket's lease; negative: it is passed by */
    int64_t pid;
    int32_t permits; /* as in rowlock_acquire_options */
    int32_t place; /* 1: the first among those whose tickets live; 0: its own is over */
    char name[256];
    char owner[256];
    char host[256];
    char program[256];
    char note[256];
} rowlock_waiter;

/* Report those who stand in line, in the order of names and tickets; otherwise as
 * rowlock_list(). */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_list_waiters(rowlock_db *db, const char *name,
                     int (*each)(void *context, const rowlock_waiter *waiter), void *context);

typedef struct rowlock_sweep_options {
    size_t size; /* sizeof(rowlock_sweep_options) */
    int64_t older_than_ms; /* only leases over for so long; 0: all that are over */
    int64_t idle_ms; /* forget token counters unused for so long; 0: 30 days; < 0: never. Their
                              highest token goes into the floor above which new names start, so no
                              token is ever repeated. */
    int32_t batch; /* rows removed in one transaction; 0: 500; at most 10,000 */
    int32_t dry_run; /* 1: report what would go, remove nothing */
    int (*each)(void *context,
                const rowlock_grant *grant); /* each expired grant removed; may be NULL;
                                                               non-zero stops after this batch */
    void *context;
} rowlock_sweep_options;

#define ROWLOCK_SWEEP_OPTIONS_INIT                            \
    {                                                         \
        sizeof(rowlock_sweep_options), 0, 0, 0, 0, NULL, NULL \
    }
ROWLOCK_API void rowlock_sweep_options_init(rowlock_sweep_options *options);

typedef struct rowlock_sweep_report {
    size_t size; /* sizeof(rowlock_sweep_report) */
    int64_t locks; /* expired grants removed */
    int64_t counters; /* token counters folded into the floor */
    int64_t batches; /* transactions used */
    int64_t waiters; /* tickets removed whose waiters are gone */
} rowlock_sweep_report;

#define ROWLOCK_SWEEP_REPORT_INIT                \
    {                                            \
        sizeof(rowlock_sweep_report), 0, 0, 0, 0 \
    }

/* Remove what nobody came for. Harmless beside live traffic: a lease renewed or taken over while
 * the sweep looks stays. Acquire does not need it; it keeps the tables small. report may be NULL;
 * on failure it says what was done until then, at least. A sweep ends after an hour; the next one
 * goes on. Round trips: on PostgreSQL one for each batch; MySQL one for each row besides. */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_sweep(rowlock_db *db, const rowlock_sweep_options *options, rowlock_sweep_report *report);

/* Take a live grant away. if_token: only if this token holds it; 0: whoever does. The name's token
 * is bumped, so the old holder is fenced out and finds itself LOST. Waits, up to the statement
 * deadline, for a transaction that guards the grant. OK with the grant in *broken (may be NULL);
 * NONE if nobody, or another token, holds it; EINVAL if if_token is 0 and several hold it; ESERVER,
 * retryable, if a guarded transaction outlasted the deadline. Round trips: 1; 2 for whoever holds
 * it. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_break(rowlock_db *db, const char *name, int64_t if_token,
                                                 rowlock_grant *broken);

/* Set the floor that new names start above, and the token of every name, to the highest token there
 * is plus by: more than were granted since the state of a replica or a backup that is used from now
 * on, so that no token is repeated. by: 1 to 10^15. *highest (may be NULL) gets the new value.
 * Grants that stand go on, but are fenced out: guards of theirs say LOST. Waits for guarded
 * transactions and grants in flight up to the statement deadline. EUNSUPPORTED: PostgreSQL, on an
 * adopted connection or behind a pooler whose isolation is not READ COMMITTED. Round trips: 1. */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_raise_tokens(rowlock_db *db, int64_t by,
                                                        int64_t *highest);

/* rowlock_new_identity gives the installation a new identity. A restored copy has the identity of
 * its original until then, so rowlock cannot tell the two apart.
 *
 * Returns
 *   ROWLOCK_OK       rowlock_check() shows the new identity
 * Guarantees
 *   - Handles that have seen the old identity return ESCHEMA once they look at the tables again:
 *     when they reconnect, or after an error. This handle goes on.
 *   - Grants, tokens and tickets stay as they are. Use rowlock_raise_tokens() and rowlock_sweep()
 *     too.
 * Round trips  1
 * Example      docs/OPERATIONS.md, "After a restore"
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_new_identity(rowlock_db *db);

/* ---------------------------------------------------------------- hooks */

typedef enum rowlock_log_level {
    ROWLOCK_LOG_WARNING = 1,
    ROWLOCK_LOG_INFO = 2,
    ROWLOCK_LOG_DEBUG = 3
} rowlock_log_level;

/* Be told what the library does: one call a line, from the thread that works. Names of locks appear
 * in it, owners and connection strings do not. NULL switches it off, which is the default. Set it
 * before other threads use the library. */
ROWLOCK_API void rowlock_log_set(void (*log)(void *context, rowlock_log_level level,
                                             const char *line),
                                 void *context, rowlock_log_level up_to);

#ifdef __cplusplus
}
#endif
#endif
