/* SPDX-License-Identifier: MIT
 *
 * rowlock: connections that you already have, and locks as a part of your own transactions.
 *
 * A lease alone does not stop a holder that was paused longer than its lease. It wakes up and
 * writes, while another client holds the lock. rowlock_guard() in the writing transaction makes
 * that harmless to your data: if it returns OK and you commit, no other owner was granted the lock
 * before your commit.
 *
 *     if (rowlock_acquire(lock, &options) != ROWLOCK_OK)
 *         return complain(db);                          // else read, think, be paused
 *     PQexec(conn, "BEGIN");
 *     PQexec(conn, "UPDATE accounts SET cents = …");
 *     int guard = rowlock_guard(lock, tx);              // tx: rowlock_db_adopt_postgres(conn, …)
 *     PGresult *end = PQexec(conn, guard == ROWLOCK_OK ? "COMMIT" : "ROLLBACK");
 *     if (guard == ROWLOCK_OK && PQresultStatus(end) != PGRES_COMMAND_OK)
 *         complain("not committed, or not known");
 *
 * A transaction that is paused keeps its row locks, and its guard keeps the lock from others. Keep
 * it short: compute before BEGIN, guard just before COMMIT. On PostgreSQL
 * idle_in_transaction_session_timeout ends a transaction that was paused for too long.
 *
 * The lock may belong to tx. It should rather belong to another rowlock_db, opened by URL, with a
 * keeper. docs/GUARDING.md has the same in plain SQL, for programs without this library.
 */
#ifndef ROWLOCK_TX_H
#define ROWLOCK_TX_H

#include <rowlock/rowlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- a connection of yours */

/* PGconn of libpq */
struct pg_conn;
/* MYSQL of libmysqlclient or MariaDB Connector/C */
struct st_mysql;
struct sqlite3;

/* rowlock_db_adopt_postgres, _mysql and _sqlite make a rowlock_db of a connection that you have.
 *
 *   - The connection stays yours. rowlock never closes it, changes no setting of it, and neither
 *     commits nor rolls back a transaction of yours.
 *   - Between two calls you may use it as you like, but not during a call.
 *   - Close the rowlock_db before the connection.
 *   - It is not reconnected. Once it is lost, calls return ECONN.
 *   - Inside a transaction of yours (MySQL: also with autocommit off), calls that speak to the
 *     database return EMISUSE and send nothing. The exceptions: the calls with a parameter tx,
 *     rowlock_fence(), rowlock/versions.h and rowlock/once.h become a part of the transaction.
 *   - PostgreSQL: client_encoding must be UTF8.
 *   - MySQL, MariaDB: the character set must not be GBK, Big5, SJIS, cp932 or GB18030.
 *   - MySQL, MariaDB: set MYSQL_OPT_READ_TIMEOUT before you connect. Only that ends a call when the
 *     server stands still. The default is no limit.
 *   - If a call returns EUNCERTAIN because the statement deadline passed, an answer may still be
 *     under way: close the connection.
 *
 * Returns
 *   ROWLOCK_OK
 *   ROWLOCK_EINVAL, ECONN, EUNSUPPORTED, ENOMEM     *err has the reason. err may be NULL.
 * Example      examples/adopt_postgres.c, examples/adopt_mysql.c, examples/adopt_sqlite.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_db_adopt_postgres(struct pg_conn *conn,
                                                             const rowlock_db_options *options,
                                                             rowlock_db **out, rowlock_error *err);
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_db_adopt_mysql(struct st_mysql *conn,
                                                          const rowlock_db_options *options,
                                                          rowlock_db **out, rowlock_error *err);
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_db_adopt_sqlite(struct sqlite3 *conn,
                                                           const rowlock_db_options *options,
                                                           rowlock_db **out, rowlock_error *err);

/* ---------------------------------------------------------------- in your transaction */

/* THE CALLS WITH A PARAMETER tx
 *
 *   - tx is a rowlock_db on an adopted connection that is inside a transaction, or the one that
 *     rowlock_retry() gives its transaction to (rowlock/versions.h).
 *   - They become a part of that transaction. They begin, commit and set nothing.
 *   - They wait for other transactions as long as your session's own lock timeout and the statement
 *     deadline of tx allow (MySQL, MariaDB: innodb_lock_wait_timeout). After that deadline
 *     PostgreSQL's answer is still under way: close the connection.
 *   - The first of them on a new rowlock_db takes one more round trip, to look at the tables.
 *
 * RESULTS OF ALL OF THEM
 *
 *   ROWLOCK_CONFLICT   another transaction won against yours. rowlock_error.transaction_over says
 *                      whether yours can go on:
 *     - PostgreSQL: no, after any error.
 *     - MySQL, MariaDB: no after a deadlock, and with innodb_snapshot_isolation no after a row
 *       changed since your snapshot. Yes after a lock timeout.
 *   ROWLOCK_EMISUSE    tx is not inside a transaction of yours
 *   ROWLOCK_ECONN      the connection of tx is lost, and your transaction with it; or the statement
 *                      deadline of tx was over: close the connection
 *   ROWLOCK_ESCHEMA    tx sees another installation than the lock
 *
 * WHEN A GUARD ENDS EARLY
 *
 *   A guard holds until the transaction ends. These end it earlier:
 *   - ROLLBACK TO a savepoint set before it (not on SQLite)
 *   - a statement with an implicit commit: DDL on MySQL and MariaDB
 *   - XA PREPARE on MySQL and MariaDB, which lets share locks go. Do not guard XA transactions
 *     there.
 */

/* rowlock_guard proves that the lock is yours, until the transaction of tx ends. Call it before you
 * write or before you commit, at any isolation level.
 *
 * Returns
 *   ROWLOCK_OK         no grant was made against yours, and none can be until the transaction ends.
 *                      A lease that has run out does not matter then. A shared or counted grant may
 *                      have newer grants of its kind beside it.
 *   ROWLOCK_LOST       another client was granted the lock, or it was broken. Roll back, and
 *                      rowlock_release() (LOST: the handle is free). Acquire again, and read again.
 *   ROWLOCK_CONFLICT   see above. Above READ COMMITTED on PostgreSQL (and MariaDB with
 *                      innodb_snapshot_isolation): the token changed after your snapshot, perhaps
 *                      by your own grant. Acquire first, then BEGIN.
 *                      At any level: the server of tx does not have your grant. It is a node that
 *                      lags, or an old primary. Roll back, and connect again.
 * Guarantees
 *   - It stops takeovers and breaks of the lock until you commit, and other holders of a shared or
 *     counted lock that want to join.
 *   - It stops no renewal and no release.
 *   - It waits for a grant of the lock that is in flight.
 * How          It share-locks the name's row in rowlock_tokens. Every grant must change that row.
 * Differs
 *   - SQLite: a file has one writer. The guard makes your transaction the writer, which also stops
 *     renewals and releases. BEGIN IMMEDIATE avoids the CONFLICT of two that read first.
 *   - Several nodes that all take writes (Galera, Group Replication in multi-primary mode): a row
 *     lock is local to a node, so the guard changes the token row. If another node granted the lock
 *     meanwhile, your COMMIT fails: 1213 (Galera), 3101 or 1180 (Group Replication). Nothing was
 *     done then. Run the transaction again, beginning with the guard. Two guarded transactions of
 *     one name refuse each other in the same way. Always check the result of COMMIT.
 * Round trips  1; MySQL, MariaDB: 2 for the first guard on a connection
 * Example      examples/bank_postgres.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_guard(rowlock_lock *lock, rowlock_db *tx);

/* rowlock_tx_acquire gets the lock as a part of your transaction. It tries once: options->wait_ms
 * and keep must be 0, and keeper NULL.
 *
 *   - Until the commit, use the handle in this transaction only, and show its token to no other
 *     program: after a rollback the next grant gets the same token.
 *   - After a commit the grant is there, as if rowlock_acquire() had made it.
 *   - After a rollback it never was: tell the handle by rowlock_forget().
 *   - If you do not know how the commit ended, rowlock_verify() finds out. Until then a guard in
 *     another transaction takes one more round trip.
 *
 * Returns
 *   ROWLOCK_OK
 *   ROWLOCK_BUSY       as rowlock_acquire()
 *   ROWLOCK_EMISUSE    the handle holds a grant already; or see above
 *   ROWLOCK_CONFLICT   see above
 * Differs      MySQL, MariaDB: the very first grant of a name may wait for another transaction's
 *              very first grant of it. At SERIALIZABLE every read locks: others wait for what a try
 *              has read until your transaction ends.
 * Round trips  1
 * Example      docs/GUARDING.md, examples/adopt_sqlite.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_tx_acquire(rowlock_lock *lock, rowlock_db *tx,
                                                      const rowlock_acquire_options *options);

/* rowlock_tx_release guards, and releases as a part of your transaction: when you commit, the work
 * is there and the lock is free at the same moment. The keeper stops renewing.
 *
 *   - After the commit: rowlock_forget().
 *   - After a rollback you still hold the lock. Renew it, and its keeper goes on too; or release
 *     it.
 *   - After either, rowlock_release() and closing are right as well, for one round trip. LOST then
 *     means that another client was granted the lock since. Before the transaction ends, they wait
 *     for it.
 *
 * Returns
 *   ROWLOCK_OK
 *   ROWLOCK_LOST       as rowlock_guard()
 *   ROWLOCK_EMISUSE    it was acquired more than once; or see above
 *   ROWLOCK_CONFLICT   see above. PostgreSQL above READ COMMITTED: also if the lease was renewed
 *                      after your snapshot.
 * Round trips  2
 * Example      examples/adopt_mysql.c, examples/adopt_sqlite.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_tx_release(rowlock_lock *lock, rowlock_db *tx);

/* rowlock_fence remembers the newest token that a resource has seen, and refuses older ones. Call
 * it before you write to a resource that cannot do so itself. A table that can have a column for
 * the token does not need it: docs/GUARDING.md.
 *
 *   - resource: 1-255 bytes of UTF-8, any name that you choose
 *
 * Returns
 *   ROWLOCK_OK         no newer token was seen
 *   ROWLOCK_STALE      a newer token was seen. Do not write.
 *   ROWLOCK_CONFLICT   see above
 * Guarantees
 *   - In a transaction on an adopted connection the resource stays locked until the transaction
 *     ends, so writes happen in the order of tokens. Call it before you write.
 *   - Outside a transaction it is a commit of its own. What you write after it may still come after
 *     a write under a newer token.
 * Round trips  1
 * Example      docs/GUARDING.md
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_fence(rowlock_db *db, const char *resource,
                                                 int64_t token);

#ifdef __cplusplus
}
#endif
#endif
