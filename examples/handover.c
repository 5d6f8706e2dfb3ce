/* SPDX-License-Identifier: MIT
 *
 * A parent acquires a lock and hands it over to a program that it starts. The child renews the
 * lease and releases the lock. So the lock is held as long as the child works, even if the parent
 * ends.
 *
 *     handover URL NAME                  acquires, and starts itself as the child
 *     handover URL NAME OWNER TOKEN      the child */
#include <rowlock/rowlock.h>

#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

extern char **environ;

static int complain(rowlock_db *db, int result)
{
    const rowlock_error *err = rowlock_db_error(db);
    fprintf(stderr, "handover: %s %s\n", rowlock_result_name(result), err->text);
    return EXIT_FAILURE;
}

/* The child: owner and token are all that it needs to go on with the grant. */
static int go_on(rowlock_db *db, char **argv)
{
    rowlock_lock *lock = NULL;
    int status = EXIT_FAILURE;
    int result = rowlock_lock_attach(db, argv[2], argv[3], strtoll(argv[4], NULL, 10), &lock);
    if (result == ROWLOCK_OK)
        /* LOST: it was broken, or another client has it. */
        result = rowlock_verify(lock);
    if (result == ROWLOCK_OK)
        /* The child's own lease ends a minute from now. */
        result = rowlock_renew(lock, 60000);
    if (result == ROWLOCK_OK)
        /* `rowlock list` shows who works now. */
        result = rowlock_note(lock, "handed over to the child");
    if (result == ROWLOCK_OK) {
        printf("child: works with token %" PRId64 ", %s\n", rowlock_lock_token(lock),
               rowlock_lock_remaining_ms(lock) > 30000 ? "renewed" : "not renewed");
        result = rowlock_release(lock);
        status = EXIT_SUCCESS;
    }
    if (result != ROWLOCK_OK)
        status = complain(db, result);
    rowlock_lock_close(lock);
    return status;
}

/* Starts the child and waits for it. A program may also end here. */
static int start_child(char **argv, const char *owner, int64_t token)
{
    char digits[32], owned[256];
    snprintf(digits, sizeof digits, "%" PRId64, token);
    snprintf(owned, sizeof owned, "%s", owner);
    char *child[] = {argv[0], argv[1], argv[2], owned, digits, NULL};
    pid_t pid = 0;
    int status = 0;
    if (posix_spawn(&pid, argv[0], NULL, NULL, child, environ) != 0 ||
        waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
        return EXIT_FAILURE;
    return WEXITSTATUS(status);
}

/* After rowlock_forget() closing the handle does not release the lock. */
static int begin(rowlock_db *db, char **argv)
{
    rowlock_lock *lock = NULL;
    int status = EXIT_FAILURE;
    int result = rowlock_lock_open(db, argv[2], &lock);
    if (result == ROWLOCK_OK)
        result = rowlock_acquire(lock, NULL);
    if (result == ROWLOCK_OK) {
        char owner[256];
        int64_t token = rowlock_lock_token(lock);
        printf("parent: granted until %" PRId64 " s\n", rowlock_lock_expires_us(lock) / 1000000);
        fflush(stdout);
        snprintf(owner, sizeof owner, "%s", rowlock_lock_owner(lock));
        rowlock_forget(lock);
        status = start_child(argv, owner, token);
    } else {
        complain(db, result);
    }
    rowlock_lock_close(lock);
    return status;
}

int main(int argc, char **argv)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db *db = NULL;
    int status = EXIT_FAILURE;
    if (argc != 3 && argc != 5)
        fputs("usage: handover URL NAME\n", stderr);
    else if (rowlock_db_open(argv[1], NULL, &db, &err) != ROWLOCK_OK)
        fprintf(stderr, "handover: %s\n", err.text);
    else
        status = argc == 5 ? go_on(db, argv) : begin(db, argv);
    rowlock_db_close(db);
    return status;
}
