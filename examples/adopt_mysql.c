/* SPDX-License-Identifier: MIT
 *
 * A guarded transaction on a MySQL or MariaDB connection that the program has anyway. When the work
 * is committed, the lock is free at the same moment.
 *
 *     adopt_mysql HOST PORT USER DATABASE [SECONDS]     SECONDS: how long the work takes
 */
#include <rowlock/admin.h>
#include <rowlock/tx.h>

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int run(MYSQL *conn, const char *sql)
{
    if (mysql_query(conn, sql) == 0)
        return 1;
    fprintf(stderr, "adopt_mysql: %s\n", mysql_error(conn));
    return 0;
}

/* rowlock_tx_release() guards too: it is OK only if no other client was granted the lock. */
static int count_visit(MYSQL *conn, rowlock_db *db, rowlock_lock *lock, unsigned seconds)
{
    sleep(seconds);
    if (!run(conn, "START TRANSACTION"))
        return ROWLOCK_ESERVER;
    int result = ROWLOCK_ESERVER;
    if (run(conn, "UPDATE visits SET n = n + 1"))
        result = rowlock_tx_release(lock, db);
    if (result == ROWLOCK_OK && run(conn, "COMMIT")) {
        /* The commit has released the grant. */
        rowlock_forget(lock);
        return ROWLOCK_OK;
    }
    if (result == ROWLOCK_OK)
        result = ROWLOCK_ESERVER;
    return run(conn, "ROLLBACK") ? result : ROWLOCK_ESERVER;
}

static int under_lock(MYSQL *conn, rowlock_db *db, unsigned seconds)
{
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    rowlock_lock *lock = NULL;
    options.wait_ms = 5000;
    int result = rowlock_install(db);
    if (result == ROWLOCK_OK)
        result = rowlock_lock_open(db, "visits", &lock);
    if (result == ROWLOCK_OK)
        result = rowlock_acquire(lock, &options);
    if (result == ROWLOCK_OK) {
        puts("working");
        result = count_visit(conn, db, lock, seconds);
    }
    if (result != ROWLOCK_OK) {
        const rowlock_error *err = rowlock_db_error(db);
        fprintf(stderr, "adopt_mysql: %s %s\n", rowlock_result_name(result), err->text);
    }
    rowlock_lock_close(lock);
    return result;
}

int main(int argc, char **argv)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db *db = NULL;
    int result = ROWLOCK_EINVAL;
    MYSQL *conn = mysql_init(NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!conn || argc < 5) {
        fputs("usage: adopt_mysql HOST PORT USER DATABASE [SECONDS]\n", stderr);
    } else if (!mysql_real_connect(conn, argv[1], argv[3], NULL, argv[4],
                                   (unsigned)strtoul(argv[2], NULL, 10), NULL, 0)) {
        fprintf(stderr, "adopt_mysql: %s\n", mysql_error(conn));
    } else if (run(conn, "CREATE TABLE IF NOT EXISTS visits (n INT) ENGINE = InnoDB") &&
               run(conn, "INSERT INTO visits SELECT 0 FROM DUAL WHERE NOT EXISTS "
                         "(SELECT 1 FROM visits)")) {
        result = rowlock_db_adopt_mysql(conn, NULL, &db, &err);
        if (result != ROWLOCK_OK)
            fprintf(stderr, "adopt_mysql: %s\n", err.text);
        else
            result = under_lock(conn, db, argc > 5 ? (unsigned)atoi(argv[5]) : 0);
    }
    /* Close the handle before its connection. */
    rowlock_db_close(db);
    mysql_close(conn);
    if (result == ROWLOCK_OK)
        puts("committed, and the lock is free");
    return result == ROWLOCK_OK ? 0 : 1;
}
