/* SPDX-License-Identifier: MIT
 *
 * rowlock: for operators: install, check, list, sweep, break, and repairs after a
 * failover.
 *
 * The command `rowlock` does all of this too. Callbacks get strings that stay valid until the
 * callback returns. A callback must not use the rowlock_db that calls it, and must return
 * (rowlock.h). It stops the report by returning a number other than 0.
 */
#ifndef ROWLOCK_ADMIN_H
#define ROWLOCK_ADMIN_H

#include <rowlock/rowlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* rowlock_list_drivers tells which databases are built in, and which client library of each runs:
 * "postgres", "libpq 15.3". It needs no handle, and sends nothing.
 *
 * Returns
 *   ROWLOCK_OK
 *   ROWLOCK_EINVAL     each is NULL
 * Example      examples/operator.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_list_drivers(int (*each)(void *context, const char *driver, const char *client),
                     void *context);

/* ---------------------------------------------------------------- our tables */

/* rowlock_install creates rowlock's tables and routines. If the tables are there, it changes
 * nothing. If some of them were dropped, it refuses: an empty one in their place would grant a lock
 * or a token twice (docs/OPERATIONS.md). It is safe to repeat, and for many clients at once.
 *
 * Returns
 *   ROWLOCK_OK         this library can use them
 *   ROWLOCK_EDENIED    let a DBA run what rowlock_install_script() writes
 *   ROWLOCK_ESCHEMA    tables that this library cannot use, or that were dropped; routines that are
 *                      missing or have another body (rowlock_upgrade() makes them again); or
 *                      objects with rowlock's names that another role made
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_install(rowlock_db *db);

/* rowlock_install_script writes SQL for the database's own shell: psql, mysql or mariadb, sqlite3.
 * It changes nothing in the database and needs no privilege there.
 *   - role NULL: the SQL of rowlock_install().
 *   - Else the grants that user needs for a role: "reader" looks, "user" takes locks, "operator"
 *     also sweeps, breaks and raises tokens, "sweeper" only calls rowlock_housekeeping.
 *   - user: 1 to 255 bytes, no quotes. MySQL, MariaDB: "app" is 'app'@'%'; "app@10.%" has a host.
 *   - write() gets the text in pieces, in order.
 *
 * Returns
 *   ROWLOCK_EUNSUPPORTED   a role on SQLite, which has no users
 * Example      examples/operator.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_install_script(rowlock_db *db, const char *role, const char *user,
                       int (*write)(void *context, const char *sql, size_t length), void *context);

/* One step of an upgrade. */
typedef struct rowlock_upgrade_step {
    /* "add column rowlock_locks.note" */
    const char *what;
    /* The statements. Of a dry run: as the database's own shell takes them. */
    const char *sql;
    /* 0: still to do. 1: done now. */
    int done;
    /* How often the step gave up waiting for a table lock. */
    int retries;
    /* Who blocks it, or "". */
    const char *blocker;
} rowlock_upgrade_step;

typedef struct rowlock_upgrade_options {
    /* sizeof(rowlock_upgrade_options) */
    size_t size;
    /* 1: report the steps, change nothing. */
    int dry_run;
    int reserved;
    /* How long to go on trying. 0: 60,000. */
    int64_t deadline_ms;
    /* Each step, when it is done, and each time it has to wait. May be NULL. A number other than 0
     * ends the upgrade. */
    int (*each)(void *context, const rowlock_upgrade_step *step);
    void *context;
} rowlock_upgrade_options;

#define ROWLOCK_UPGRADE_OPTIONS_INIT                                       \
    {                                                                      \
        sizeof(rowlock_upgrade_options), 0, 0, 0, ROWLOCK_NIL, ROWLOCK_NIL \
    }

/* rowlock_upgrade brings rowlock's tables to the version of this library, while programs use them.
 *
 *   - Libraries of the version before go on working with the upgraded tables. Libraries of this
 *     version work with tables that are not upgraded yet. So ten hosts can change one by one.
 *   - A step waits for table locks only briefly, so that no grant queues behind it for long:
 *     PostgreSQL 0.2 s, MySQL and MariaDB 1 s. Then it lets others pass, and tries again.
 *   - Routines that are missing, or have another body, are made again. So it also repairs.
 *
 * Returns
 *   ROWLOCK_OK         upgraded, or nothing was to be done
 *   ROWLOCK_TIMEOUT    a step did not get its table lock before the deadline. Steps before it are
 *                      done. The error's text says who blocks it. Run it again.
 *   ROWLOCK_CANCELLED  each() or rowlock_cancel() stopped it
 *   ROWLOCK_ESCHEMA    no tables, tables that are too old or too new, or objects with rowlock's
 *                      names that another role made
 *   ROWLOCK_EUNSUPPORTED   on an adopted connection: it changes settings of the session
 *   ROWLOCK_EDENIED    let a DBA run the statements that a dry run reports
 * Example      examples/operator.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_upgrade(rowlock_db *db,
                                                   const rowlock_upgrade_options *options);

typedef enum rowlock_verdict {
    ROWLOCK_FINE = 0,
    ROWLOCK_WARNING = 1,
    /* Locks will not work, or are not safe. */
    ROWLOCK_BAD = 2
} rowlock_verdict;

typedef struct rowlock_finding {
    /* "isolation" */
    const char *item;
    /* "read committed" */
    const char *value;
    /* What to do, or "". */
    const char *advice;
    rowlock_verdict verdict;
} rowlock_finding;

/* rowlock_check examines the server and rowlock's tables, and reports each finding.
 *   - *worst gets the gravest verdict. worst may be NULL.
 *
 * Returns
 *   ROWLOCK_OK         it could look, whatever it found
 * Example      examples/operator.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_check(rowlock_db *db, int (*each)(void *context, const rowlock_finding *finding),
              void *context, rowlock_verdict *worst);

/* ---------------------------------------------------------------- grants and waiters */

/* rowlock_list reports the grants in the table, in the order of their names. Expired grants are
 * included: their remaining_ms is below 0.
 *   - name: this name only. NULL: all.
 *
 * Round trips  1 for each 500 rows
 * Example      examples/operator.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_list(rowlock_db *db, const char *name,
             int (*each)(void *context, const rowlock_grant *grant), void *context);

/* rowlock_last_grant tells the highest token ever granted for a name, and when that was, in
 * microseconds since 1970 by the database's clock.
 *
 * Returns
 *   ROWLOCK_OK
 *   ROWLOCK_NONE       never granted, or so long ago that its counter was swept
 * Round trips  1
 * Example      examples/operator.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_last_grant(rowlock_db *db, const char *name,
                                                      int64_t *token, int64_t *granted_us);

/* A client that waits in a queue. Times are microseconds since 1970 by the database's clock. */
typedef struct rowlock_waiter {
    /* sizeof(rowlock_waiter) */
    size_t size;
    /* The order of the queue. */
    int64_t ticket;
    int64_t since_us;
    int64_t waited_ms;
    /* What is left of the ticket's lease. Below 0: it is over, and others pass. */
    int64_t remaining_ms;
    int64_t pid;
    /* As in rowlock_acquire_options. */
    int permits;
    /* 1: the first of those whose tickets are valid. 0: its own ticket is over. */
    int position;
    char name[256];
    char owner[256];
    char host[256];
    char program[256];
    char note[256];
} rowlock_waiter;

/* rowlock_list_waiters reports the waiters, in the order of names and tickets. Otherwise as
 * rowlock_list().
 * Example      examples/operator.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_list_waiters(rowlock_db *db, const char *name,
                     int (*each)(void *context, const rowlock_waiter *waiter), void *context);

/* rowlock_break takes a grant away from its holder. The holder finds itself LOST, and its guards
 * fail.
 *   - if_token: only if the grant has this token. 0: whichever grant there is.
 *   - *broken gets the grant. broken may be NULL.
 *
 * Returns
 *   ROWLOCK_OK
 *   ROWLOCK_NONE       there is no grant, or it has another token
 *   ROWLOCK_EINVAL     if_token is 0, and several clients hold the lock
 *   ROWLOCK_ESERVER    a transaction that guards the grant outlasted the statement deadline. Try
 *                      again.
 * Round trips  1; 2 if if_token is 0
 * Example      examples/operator.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_break(rowlock_db *db, const char *name, int64_t if_token,
                                                 rowlock_grant *broken);

/* ---------------------------------------------------------------- figures, for monitoring */

/* Counts of what is in rowlock's tables. */
typedef struct rowlock_figures {
    /* sizeof(rowlock_figures) */
    size_t size;
    /* The database's clock, in microseconds since 1970. */
    int64_t now_us;
    /* Grants whose leases run, by kind. */
    int64_t exclusive;
    int64_t shared;
    int64_t counted;
    /* Grants whose leases are over. Their rows wait for a sweep, or for the next grant. */
    int64_t expired_exclusive;
    int64_t expired_shared;
    int64_t expired_counted;
    /* How long the oldest grant whose lease runs is held. 0: there is none. */
    int64_t longest_hold_ms;
    int64_t waiters;
    /* How long the waiter that came first waits, of all queues. 0: there is none. */
    int64_t longest_wait_ms;
    /* Tickets whose waiters are gone. */
    int64_t expired_tickets;
    /* Names that have a token counter: those that were granted and not swept since. */
    int64_t names;
    /* Once keys: claimed and not completed, claimed too long ago, completed. */
    int64_t once_claimed;
    int64_t once_expired;
    int64_t once_done;
    /* New names start above it. */
    int64_t token_floor;
    /* When a sweep last ended. 0: never. */
    int64_t swept_us;
    /* The version of the tables. */
    int64_t version;
} rowlock_figures;

#define ROWLOCK_FIGURES_INIT                                                          \
    {                                                                                 \
        sizeof(rowlock_figures), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/* rowlock_measure counts what is in the tables. The server counts: only the sums come here.
 *   - It takes no row lock and waits for no transaction. It reads each row of the tables once.
 *
 * Round trips  1
 * Example      examples/operator.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_measure(rowlock_db *db, rowlock_figures *out);

/* The same of one name. */
typedef struct rowlock_name_figures {
    /* sizeof(rowlock_name_figures) */
    size_t size;
    /* The highest token ever granted. It grows by one with each grant, by one more if the lock is
     * broken, and by N if the tokens are raised by N. */
    int64_t token;
    /* Grants whose leases run. */
    int64_t holders;
    /* How long the oldest of them is held. 0: there is none. */
    int64_t held_ms;
    /* What is left of the lease that ends first. 0: there is none. */
    int64_t remaining_ms;
    /* How long a lease had run out when it was last renewed: the longest. 0: none had. */
    int64_t lapsed_ms;
    int64_t waiters;
    /* How long the waiter that came first waits. */
    int64_t waited_ms;
    char name[256];
} rowlock_name_figures;

/* rowlock_measure_names reports the figures of names, in the order of their bytes.
 *   - glob: which names. * stands for any text, ? for any character. All other characters stand for
 *     themselves.
 *   - Names without a token counter are left out: never granted, or swept since.
 *
 * Round trips  1 for each 500 names
 * Example      examples/operator.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_measure_names(rowlock_db *db, const char *glob,
                      int (*each)(void *context, const rowlock_name_figures *figures),
                      void *context);

/* ---------------------------------------------------------------- keeping the tables small */

typedef struct rowlock_sweep_options {
    /* sizeof(rowlock_sweep_options) */
    size_t size;
    /* Only leases that have been over for so long. 0: all that are over. */
    int64_t older_than_ms;
    /* Forget token counters that were not used for so long. 0: 30 days. Below 0: never. Their
     * highest token becomes the floor that new names start above, so no token ever repeats. */
    int64_t idle_ms;
    /* Rows removed in one transaction. 0: 500. At most 10,000. */
    int batch;
    /* 1: report what would go, remove nothing. */
    int dry_run;
    /* Each expired grant that is removed. May be NULL, which is faster. A number other than 0 stops
     * after this batch. */
    int (*each)(void *context, const rowlock_grant *grant);
    void *context;
} rowlock_sweep_options;

#define ROWLOCK_SWEEP_OPTIONS_INIT                                          \
    {                                                                       \
        sizeof(rowlock_sweep_options), 0, 0, 0, 0, ROWLOCK_NIL, ROWLOCK_NIL \
    }

typedef struct rowlock_sweep_report {
    /* sizeof(rowlock_sweep_report) */
    size_t size;
    /* Expired grants removed. */
    int64_t locks;
    /* Token counters forgotten. */
    int64_t counters;
    /* Transactions used. */
    int64_t batches;
    /* Tickets removed whose waiters are gone. */
    int64_t waiters;
} rowlock_sweep_report;

#define ROWLOCK_SWEEP_REPORT_INIT                \
    {                                            \
        sizeof(rowlock_sweep_report), 0, 0, 0, 0 \
    }

/* rowlock_sweep removes expired grants, tickets of dead waiters and unused counters. Acquire does
 * not need it. It keeps the tables small.
 *   - It is safe beside live traffic: a lease that is renewed or taken over meanwhile stays. It
 *     waits for no row: one that another transaction has locked stays for the next sweep.
 *   - It ends after an hour. The next sweep goes on.
 *   - After a failure *report has at least what was done. report may be NULL.
 *
 * Round trips  For each batch: PostgreSQL 1. MySQL, MariaDB 2; with each 4, and 1 for each row if
 *              others have locked some.
 * Example      examples/operator.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_sweep(rowlock_db *db, const rowlock_sweep_options *options, rowlock_sweep_report *report);

/* ---------------------------------------------------------------- after a failover or a restore */

/* rowlock_raise_tokens makes sure that no token repeats after the database lost its newest grants:
 * an asynchronous failover, or a restored backup. Call it before programs connect.
 *
 * The token of every name, and the floor of new names, become the highest token that there is plus
 * by.
 *   - by: 1 to 10^15: more than the number of grants that may have been lost. If an earlier raise
 *     was lost too, add what it raised by.
 *   - *highest gets the new value. highest may be NULL.
 *
 * Returns
 *   ROWLOCK_OK
 *   ROWLOCK_EUNSUPPORTED   PostgreSQL: an adopted connection, or one behind a pooler, whose
 *                          isolation is not READ COMMITTED
 * Guarantees
 *   - Grants that stand go on, but guards under them return LOST.
 *   - It waits for guarded transactions and grants in flight, up to the statement deadline.
 * Round trips  1
 * Example      examples/operator.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_raise_tokens(rowlock_db *db, int64_t by,
                                                        int64_t *highest);

/* rowlock_new_identity gives the installation a new identity. A restored copy has the identity of
 * its original until then, so rowlock cannot tell the two apart.
 *
 * Returns
 *   ROWLOCK_OK         rowlock_check() shows the new identity
 * Guarantees
 *   - Handles that have seen the old identity return ESCHEMA once they look at the tables again:
 *     when they reconnect, or after an error. This handle goes on.
 *   - Grants, tokens and tickets stay as they are. Use rowlock_raise_tokens() and rowlock_sweep()
 *     too.
 * Round trips  1
 * Example      examples/operator.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_new_identity(rowlock_db *db);

#ifdef __cplusplus
}
#endif
#endif
