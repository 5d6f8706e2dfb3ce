/* SPDX-License-Identifier: MIT
 *
 * rowlock: one object for a whole process, and a few connections for all of its threads.
 *
 *     rowlock_pool *pool = NULL;
 *     rowlock_error err = ROWLOCK_ERROR_INIT;
 *     int result = rowlock_pool_open("postgresql://app@db1/prod", NULL, &pool, &err);
 *
 *     // then in each thread: a handle without a connection
 *     rowlock_db *mine = NULL;
 *     rowlock_db_options one = ROWLOCK_DB_OPTIONS_INIT;
 *     one.pool = pool;
 *     if (result == ROWLOCK_OK)
 *         result = rowlock_db_open(NULL, &one, &mine, &err);
 *
 * From there on everything is as with a connection: locks, waits, keepers, results, errors.
 *
 * WHY
 *
 *   - A connection is the dearest thing that a server has. 500 threads that lock 500 orders need
 *     two of them.
 *   - A commit is the dearest thing that a lock does. What arrives while the connections are busy
 *     goes together in the next statement, in one commit: many grants, each with its own answer,
 *     or many releases, or many renewals. There is no window of time: if a connection is idle, a
 *     step is sent at once.
 *
 * WHAT A POOL PROMISES
 *
 *   - One fails alone. What is wrong with one step is told to its own handle, and does not touch
 *     the others in the same statement. After a lost answer each of them is EUNCERTAIN, and each
 *     finds its own grant when it is sent again.
 *   - Deadlines are the handle's own, and begin before it stands in line for a connection.
 *     A lease is counted from when the statement is sent. A handle that gives up while its step is
 *     under way gets EUNCERTAIN, as if its connection were lost. If no connection became free in
 *     time, it gets ECONN.
 *   - A handle that is closed while the server hangs or takes no writes leaves its releases to the
 *     pool, which sends them until the leases would be over.
 *   - Waits for a lock keep no connection. A release through the same pool wakes the next waiter of
 *     the pool. PostgreSQL tells it of a release elsewhere. On other databases that is found by
 *     looking, at most 250 ms later.
 *
 * WHAT TO KNOW
 *
 *   - A transaction of rowlock (rowlock_retry(), rowlock_walk(), all_or_nothing) has a connection
 *     to itself until it ends. One connection is always left for locks, so a pool of n connections
 *     runs n - 1 transactions at a time. Others wait. With one connection they are EUNSUPPORTED.
 *     rowlock_acquire_all() is no such transaction.
 *     SQLite: a file has one writer, so locks wait while a transaction writes.
 *   - Calls of a handle go through any connection. When one is lost, each of the others connects
 *     again before its next use. Until a failover costs the first one, others may still lead to the
 *     old primary, which shows old rows. So compute what a guarded transaction writes from what it
 *     reads itself, or update under versions.
 *   - A wait for a row lock of another transaction (rowlock_fence()) keeps a connection busy. A
 *     release or renewal in that state does not: it is tried again until the handle's time limit.
 *   - A statement ends at the time limit of the pool's own options too. MySQL and MariaDB: for a
 *     transaction, and for what reads or changes rows of many locks or of your tables, only that
 *     limit counts.
 */
#ifndef ROWLOCK_POOL_H
#define ROWLOCK_POOL_H

#include <rowlock/rowlock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rowlock_pool_options {
    /* sizeof(rowlock_pool_options) */
    size_t size;
    /* Connections to the database, 1 to 64. 0: 2. */
    int connections;
    /* Most steps in one statement, 1 to 1,000. 0: 256. */
    int batch;
    /* The options of the connections: schema, prefix, program, time limits. NULL: the defaults. Its
     * owner and pool must be NULL. */
    const rowlock_db_options *db;
} rowlock_pool_options;

#define ROWLOCK_POOL_OPTIONS_INIT                       \
    {                                                   \
        sizeof(rowlock_pool_options), 0, 0, ROWLOCK_NIL \
    }

/* rowlock_pool_open connects to the database of a URL (rowlock_db_open()), once. The other
 * connections are made when they are needed.
 *
 * Returns
 *   ROWLOCK_OK         open. Close the pool with rowlock_pool_close().
 *   ROWLOCK_ECONN, EDENIED, EINVAL, EUNSUPPORTED, ENOMEM
 *                      as rowlock_db_open()
 * Threads      The pool has a thread for each connection. All threads of the process may open
 *              handles of it.
 * Fork         A child cannot use the pool of its parent. Open after forking.
 * Differs      SQLite: steps use one connection at a time.
 * Example      examples/pool.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_pool_open(const char *url,
                                                     const rowlock_pool_options *options,
                                                     rowlock_pool **out, rowlock_error *err);

/* rowlock_pool_close lets no further handle be opened. The connections are closed with the last
 * handle of the pool, or now if there is none. NULL is allowed. */
ROWLOCK_API void rowlock_pool_close(rowlock_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
