/* SPDX-License-Identifier: MIT
 *
 * A lock over three databases. One of them may be away.
 *
 *     quorum URL URL URL      else three files of its own
 *     quorum URL URL URL 2    a new database takes the place of member 2 */
#include <rowlock/admin.h>
#include <rowlock/quorum.h>

#include <stdio.h>
#include <stdlib.h>

enum { MEMBERS = 3 };

static const char *text_of(const char *const *urls)
{
    static char text[4096];
    snprintf(text, sizeof text, "%s %s %s", urls[0], urls[1], urls[2]);
    return text;
}

/* Once, by an operator: each member has tables of its own, and knows that it is a member. */
static int install(const char *const *urls, int replaced, rowlock_error *err)
{
    for (int i = 0; i < MEMBERS; i++) {
        rowlock_db *member = NULL;
        if (rowlock_db_open(urls[i], NULL, &member, err) != ROWLOCK_OK)
            fprintf(stderr, "quorum: %s is away: %s\n", urls[i], err->text);
        else if (rowlock_install(member) != ROWLOCK_OK)
            fprintf(stderr, "quorum: %s has no tables\n", urls[i]);
        rowlock_db_close(member);
    }
    return rowlock_quorum_join(text_of(urls), replaced, NULL, err);
}

static int print_finding(void *context, const rowlock_finding *finding)
{
    (void)context;
    fprintf(stderr, "quorum: %s: %s\n", finding->item, finding->value);
    return 0;
}

static int work(rowlock_db *db, rowlock_error *err)
{
    rowlock_lock *lock = NULL;
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = 10000;
    options.keep = 1;
    int result = rowlock_lock_open(db, "report", &lock);
    if (result == ROWLOCK_OK)
        result = rowlock_acquire(lock, &options);
    if (result == ROWLOCK_OK) {
        /* Send the token along with each write: what stores it refuses older ones. */
        printf("working with token %lld\n", (long long)rowlock_lock_token(lock));
        result = rowlock_release(lock);
    }
    if (result > 0)
        fprintf(stderr, "quorum: another holds the lock, or our lease was over\n");
    if (result < 0)
        *err = *rowlock_db_error(db);
    rowlock_lock_close(lock);
    return result;
}

int main(int argc, char **argv)
{
    const char *files[MEMBERS] = {"sqlite:one.db", "sqlite:two.db", "sqlite:three.db"};
    const char *const *urls = argc > MEMBERS ? (const char *const *)argv + 1 : files;
    rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    int replaced = argc > MEMBERS + 1 ? atoi(argv[MEMBERS + 1]) : 0;
    int result = install(urls, replaced, &err);
    if (result == ROWLOCK_OK || result == ROWLOCK_ECONN)
        result = rowlock_db_open(text_of(urls), NULL, &db, &err);
    if (result == ROWLOCK_OK)
        result = work(db, &err);
    if (result < 0)
        fprintf(stderr, "quorum: %s: %s\n", err.action, err.text);
    if (result < 0 &&
        rowlock_quorum_check(text_of(urls), NULL, print_finding, NULL, &err) != ROWLOCK_OK)
        fprintf(stderr, "quorum: %s: %s\n", err.action, err.text);
    rowlock_db_close(db);
    return result == ROWLOCK_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
