/* SPDX-License-Identifier: MIT
 *
 * A transfer that is safe although the program may pause. Stop it with Ctrl-Z while it waits for
 * Return, run another one, then let it go on. Its guard finds that the lock is lost, and it rolls
 * back. With --no-guard it overwrites the change of the other one.
 *
 *     bank_postgres [--no-guard] postgresql://… */
#include <rowlock/admin.h>
#include <rowlock/tx.h>

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

static const char setup[] = "SET client_min_messages = warning;"
                            "CREATE TABLE IF NOT EXISTS bank (name TEXT PRIMARY KEY, cents INT);"
                            "INSERT INTO bank VALUES ('a', 10000), ('b', 0) ON CONFLICT DO NOTHING";

static int run(PGconn *conn, const char *sql, int *cents)
{
    PGresult *r = PQexec(conn, sql);
    int good = cents ? PQntuples(r) == 1 && sscanf(PQgetvalue(r, 0, 0), "%d", cents) == 1
                     : PQresultStatus(r) == PGRES_COMMAND_OK;
    PQclear(r);
    return good;
}

static int transfer(PGconn *conn, rowlock_db *tx, rowlock_lock *lock, int guarded)
{
    char sql[200];
    int a = 0, b = 0;
    if (!run(conn, "SELECT cents FROM bank WHERE name = 'a'", &a) ||
        !run(conn, "SELECT cents FROM bank WHERE name = 'b'", &b))
        return 0;
    fprintf(stderr, "a has %d, b has %d; press Return to move 500\n", a, b);
    getchar();
    snprintf(sql, sizeof sql, "UPDATE bank SET cents = CASE name WHEN 'a' THEN %d ELSE %d END",
             a - 500, b + 500);
    /* If the guard says OK and we commit, the balances that we read were right until the commit. No
     * other owner was granted the lock before, and none can be until the commit. */
    if (run(conn, "BEGIN", NULL) && run(conn, sql, NULL) &&
        (!guarded || rowlock_guard(lock, tx) == ROWLOCK_OK))
        return run(conn, "COMMIT", NULL);
    /* The guard said LOST or CONFLICT, or something failed. */
    run(conn, "ROLLBACK", NULL);
    return 0;
}

int main(int argc, char **argv)
{
    int guarded = argc < 3 || strcmp(argv[1], "--no-guard") != 0, done = 0;
    const char *url = argc > 1 ? argv[argc - 1] : "postgresql://";
    PGconn *conn = PQconnectdb(url);
    rowlock_db *tx = NULL, *db = NULL;
    rowlock_lock *lock = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.ttl_ms = 2000;
    options.wait_ms = ROWLOCK_FOREVER;
    options.keep = 1;
    /* The lock and its keeper have connections of their own, so leases are renewed while a
     * transaction is open. If the process stops, its keeper stops too. So the guard is needed. */
    if (run(conn, setup, NULL) && rowlock_db_open(url, NULL, &db, &err) == ROWLOCK_OK &&
        rowlock_install(db) == ROWLOCK_OK &&
        rowlock_db_adopt_postgres(conn, NULL, &tx, &err) == ROWLOCK_OK &&
        rowlock_lock_open(db, "bank", &lock) == ROWLOCK_OK &&
        rowlock_acquire(lock, &options) == ROWLOCK_OK) {
        done = transfer(conn, tx, lock, guarded);
        /* If the guard refused, this says why. */
        err = *rowlock_db_error(tx);
        if (rowlock_release(lock) == ROWLOCK_LOST)
            fputs("somebody else has had the lock meanwhile\n", stderr);
    }
    puts(done ? "committed" : err.text[0] ? err.text : "failed");
    rowlock_lock_close(lock);
    /* Close the handle before its connection. */
    rowlock_db_close(tx);
    rowlock_db_close(db);
    PQfinish(conn);
    return !done;
}
