/* SPDX-License-Identifier: MIT
 *
 * A client that locks the same name again and again with one handle, and writes into a file when it got the
 * lock, when it lets it go, and when it did not get it. Built at two levels, it is a program of this release and one of the next.
 *
 * usage: client URL NAME FILE LEVEL, until SIGTERM */
#include "public.h"

static volatile sig_atomic_t over;

static void end(int signal)
{
    over = 1;
}

static int complain(rowlock_db *db, const char *what, int result)
{
    fprintf(stderr, "%s: %s: %s\n", what, rowlock_result_name(result), rowlock_db_error(db)->text);
    return 1;
}

static void note(int file, char what, rowlock_lock *lock, const char *level)
{
    if (dprintf(file, "%c %lld %s\n", what, (long long)rowlock_lock_token(lock), level) < 0)
        abort();
}

static int take_turn(rowlock_db *db, rowlock_lock *lock, int file, const char *level)
{
    int result =
        rowlock_acquire(lock, OPTIONS(acquire, .wait_ms = rand() % 2 ? 0 : 2000, .ttl_ms = 60000));
    if (result == ROWLOCK_BUSY || result == ROWLOCK_TIMEOUT) {
        note(file, 'N', lock, level);
        return 0;
    }
    if (result != ROWLOCK_OK)
        return complain(db, "acquire", result);
    note(file, 'B', lock, level);
    /* Time: the lock is held for a moment, of any length. */
    usleep((useconds_t)(rand() % 3000));
    if ((result = rowlock_renew(lock, 0)) != ROWLOCK_OK)
        return complain(db, "renew", result);
    note(file, 'E', lock, level);
    result = rowlock_release(lock);
    return result == ROWLOCK_OK ? 0 : complain(db, "release", result);
}

int main(int argc, char **argv)
{
    rowlock_db *db = NULL;
    rowlock_lock *lock = NULL;
    rowlock_error error = ROWLOCK_ERROR_INIT;
    int failed = 0;
    signal(SIGTERM, end);
    srand((unsigned)getpid());
    int file = open(argv[3], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0 ||
        rowlock_db_open(argv[1], OPTIONS(db, .statement_timeout_ms = 60000), &db, &error) ||
        rowlock_lock_open(db, argv[2], &lock)) {
        fprintf(stderr, "open: %s\n", error.text);
        return 1;
    }
    while (!over && !failed) {
        failed = take_turn(db, lock, file, argv[4]);
        usleep((useconds_t)(rand() % 2000));
    }
    rowlock_lock_close(lock);
    rowlock_db_close(db);
    close(file);
    return failed;
}
