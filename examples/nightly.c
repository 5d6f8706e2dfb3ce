/* SPDX-License-Identifier: MIT
 *
 * The shortest correct use: one lock is held while the work is done, and each result is handled.
 * The library renews the lease of 30 s until then.
 *
 *     nightly [URL]      else ROWLOCK_URL, else a file of its own */
#include <rowlock/admin.h>
#include <rowlock/rowlock.h>

#include <stdio.h>
#include <stdlib.h>

static int complain(const rowlock_error *err)
{
    fprintf(stderr, "nightly: %s: %s\n", err->action, err->text);
    return EXIT_FAILURE;
}

static int complain_of(const rowlock_db *db)
{
    return complain(rowlock_db_error(db));
}

static void work(int64_t token)
{
    printf("working with token %lld\n", (long long)token);
}

/* Give the token to the resource that the work writes to. It must refuse tokens older than the
 * newest it has seen. */
static int work_and_release(rowlock_db *db, rowlock_lock *lock)
{
    work(rowlock_lock_token(lock));
    int result = rowlock_release(lock);
    if (result == ROWLOCK_OK)
        return EXIT_SUCCESS;
    if (result < 0)
        return complain_of(db);
    fputs("nightly: the lease ran out before the work was done\n", stderr);
    return EXIT_FAILURE;
}

static int run(rowlock_db *db, rowlock_lock **lock)
{
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = 5000;
    options.keep = 1;
    if (rowlock_install(db) != ROWLOCK_OK || rowlock_lock_open(db, "nightly", lock) != ROWLOCK_OK)
        return complain_of(db);
    int result = rowlock_acquire(*lock, &options);
    if (result == ROWLOCK_OK)
        return work_and_release(db, *lock);
    if (result < 0)
        return complain_of(db);
    puts("somebody else is at it; good");
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : getenv("ROWLOCK_URL");
    rowlock_db *db = NULL;
    rowlock_lock *lock = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    if (rowlock_db_open(url ? url : "sqlite:nightly-locks.db", NULL, &db, &err) != ROWLOCK_OK)
        return complain(&err);
    int status = run(db, &lock);
    rowlock_lock_close(lock);
    rowlock_db_close(db);
    return status;
}
