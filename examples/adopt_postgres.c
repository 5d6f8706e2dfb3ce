/* SPDX-License-Identifier: MIT
 *
 * A lock through the program's own PostgreSQL connection. rowlock does not close the connection and
 * changes no setting. It must be outside a transaction when rowlock is called.
 *
 *     adopt_postgres [CONNINFO]      as PQconnectdb() takes it, else ROWLOCK_URL */
#include <rowlock/admin.h>
#include <rowlock/tx.h>

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

static int complain(const rowlock_db *db)
{
    const rowlock_error *err = rowlock_db_error(db);
    fprintf(stderr, "adopt_postgres: %s: %s\n", err->action, err->text);
    return EXIT_FAILURE;
}

/* Between rowlock's calls the program can use the connection. */
static int work(PGconn *conn)
{
    PGresult *result = PQexec(conn, "SELECT current_database()");
    int ok = PQresultStatus(result) == PGRES_TUPLES_OK;
    if (ok)
        printf("working in database %s\n", PQgetvalue(result, 0, 0));
    else
        fprintf(stderr, "adopt_postgres: %s", PQerrorMessage(conn));
    PQclear(result);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int work_under_lock(rowlock_db *db, rowlock_lock *lock, PGconn *conn)
{
    int result = rowlock_acquire(lock, NULL);
    if (result < 0)
        return complain(db);
    if (result != ROWLOCK_OK) {
        rowlock_grant holder = ROWLOCK_GRANT_INIT;
        if (rowlock_lock_holder(lock, &holder) == ROWLOCK_OK)
            printf("%s on %s is at it\n", holder.program, holder.host);
        return EXIT_SUCCESS;
    }
    int status = work(conn);
    result = rowlock_release(lock);
    if (result < 0)
        return complain(db);
    if (result != ROWLOCK_OK) {
        fputs("adopt_postgres: the lease ran out before the work was done\n", stderr);
        return EXIT_FAILURE;
    }
    return status;
}

int main(int argc, char **argv)
{
    const char *info = argc > 1 ? argv[1] : getenv("ROWLOCK_URL");
    PGconn *conn = PQconnectdb(info ? info : "");
    rowlock_db *db = NULL;
    rowlock_lock *lock = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    int status = EXIT_FAILURE;
    if (PQstatus(conn) != CONNECTION_OK)
        fprintf(stderr, "adopt_postgres: %s", PQerrorMessage(conn));
    else if (rowlock_db_adopt_postgres(conn, NULL, &db, &err) != ROWLOCK_OK)
        fprintf(stderr, "adopt_postgres: %s: %s\n", err.action, err.text);
    else if (rowlock_install(db) != ROWLOCK_OK ||
             rowlock_lock_open(db, "adopted", &lock) != ROWLOCK_OK)
        status = complain(db);
    else
        status = work_under_lock(db, lock, conn);
    rowlock_lock_close(lock);
    /* Close the handle before the connection. */
    rowlock_db_close(db);
    PQfinish(conn);
    return status;
}
