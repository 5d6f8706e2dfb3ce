/* SPDX-License-Identifier: MIT
 *
 * The lock is a part of the program's own transactions, on its own SQLite connection. One commit
 * makes the grant and notes that the work has begun. Another commit stores the work and releases
 * the grant.
 *
 *     adopt_sqlite FILE */
#include <rowlock/admin.h>
#include <rowlock/tx.h>

#include <sqlite3.h>
#include <stdio.h>

static int run(sqlite3 *conn, const char *sql)
{
    char *why = NULL;
    int ok = sqlite3_exec(conn, sql, NULL, NULL, &why) == SQLITE_OK;
    if (!ok)
        fprintf(stderr, "adopt_sqlite: %s\n", why ? why : "no memory");
    sqlite3_free(why);
    return ok;
}

/* Commits if result is OK, else rolls back. Returns what became of the transaction. */
static int end(sqlite3 *conn, int result)
{
    if (result == ROWLOCK_OK && run(conn, "COMMIT"))
        return ROWLOCK_OK;
    if (!run(conn, "ROLLBACK") || result == ROWLOCK_OK)
        return ROWLOCK_ESERVER;
    return result;
}

/* One commit: the lock, and the note that the report has begun. */
static int begin_report(sqlite3 *conn, rowlock_db *tx, rowlock_lock *lock)
{
    if (!run(conn, "BEGIN IMMEDIATE"))
        return ROWLOCK_ESERVER;
    int result = rowlock_tx_acquire(lock, tx, NULL);
    if (result == ROWLOCK_OK && !run(conn, "INSERT INTO reports (state) VALUES ('begun')"))
        result = ROWLOCK_ESERVER;
    result = end(conn, result);
    if (result != ROWLOCK_OK)
        /* The grant was rolled back. */
        rowlock_forget(lock);
    return result;
}

/* One commit: the report, and the release. If the lock was lost, neither happens. */
static int finish_report(sqlite3 *conn, rowlock_db *tx, rowlock_lock *lock)
{
    if (!run(conn, "BEGIN IMMEDIATE"))
        return ROWLOCK_ESERVER;
    int result = ROWLOCK_ESERVER;
    if (run(conn, "UPDATE reports SET state = 'done' WHERE state = 'begun'"))
        result = rowlock_tx_release(lock, tx);
    result = end(conn, result);
    if (result == ROWLOCK_OK)
        /* The commit has released the grant. */
        rowlock_forget(lock);
    return result;
}

int main(int argc, char **argv)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    sqlite3 *conn = NULL;
    rowlock_db *db = NULL;
    rowlock_lock *lock = NULL;
    int result = ROWLOCK_EINVAL;
    if (argc == 2 && sqlite3_open(argv[1], &conn) == SQLITE_OK &&
        sqlite3_busy_timeout(conn, 5000) == SQLITE_OK &&
        run(conn, "CREATE TABLE IF NOT EXISTS reports (id INTEGER PRIMARY KEY, state TEXT)"))
        result = rowlock_db_adopt_sqlite(conn, NULL, &db, &err);
    if (result == ROWLOCK_OK)
        result = rowlock_install(db);
    if (result == ROWLOCK_OK)
        result = rowlock_lock_open(db, "report", &lock);
    if (result == ROWLOCK_OK)
        result = begin_report(conn, db, lock);
    if (result == ROWLOCK_BUSY) {
        puts("another program makes the report");
    } else if (result == ROWLOCK_OK) {
        puts("begun");
        result = finish_report(conn, db, lock);
        puts(result == ROWLOCK_OK ? "done" : "not done");
    }
    if (result < 0) {
        err = *rowlock_db_error(db);
        fprintf(stderr, "adopt_sqlite: %s %s\n", rowlock_result_name(result), err.text);
    }
    rowlock_lock_close(lock);
    /* Close the handle before its connection. */
    rowlock_db_close(db);
    sqlite3_close(conn);
    return result == ROWLOCK_OK ? 0 : 1;
}
