/* SPDX-License-Identifier: MIT
 *
 * What an open of a quorum refuses, with a message, and what one unfit member of three costs:
 * nothing. */
#include "contract.h"

#include <rowlock/admin.h>
#include <rowlock/quorum.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char first[300], second[300], third[300], bare[300], missing[300];

static void refused(int want, const char *part, const char *what, const char *const *urls,
                    size_t count)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db *db = NULL;
    rowlock_keeper *keeper = NULL;
    int result = rowlock_db_open_quorum(urls, count, NULL, &db, &err);
    bool said = strstr(err.text, part) != NULL;
    tap_ok(result == want && !db && said, "%s", what);
    if (result != want || !said)
        tap_note("%s: %s", rowlock_result_name(result), err.text);
    tap_is_int(rowlock_keeper_open_quorum(urls, count, NULL, &keeper, NULL), want,
               "for a keeper, too");
    rowlock_db_close(db);
}

#define REFUSED(want, part, what, ...)                            \
    refused(want, part, what, (const char *const[]){__VA_ARGS__}, \
            sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void test_refused(void)
{
    rowlock_db *db = NULL;
    const char *urls[] = {first, second, third};
    REFUSED(ROWLOCK_EINVAL, "not 1", "one member", first);
    REFUSED(ROWLOCK_EINVAL, "not 2", "two members", first, second);
    REFUSED(ROWLOCK_EINVAL, "not 4", "four members", first, second, third, bare);
    REFUSED(ROWLOCK_EINVAL, "members 1 and 3", "a URL twice", first, second, first);
    REFUSED(ROWLOCK_EINVAL, "URL", "a URL that is NULL", first, NULL, third);
    REFUSED(ROWLOCK_EINVAL, "URL", "an empty URL", first, "", third);
    REFUSED(ROWLOCK_EINVAL, "URL", "a URL of nothing", first, second, "nothing://here");
    refused(ROWLOCK_EINVAL, "not 0", "no members", urls, 0);
    refused(ROWLOCK_EINVAL, "not", "more members than there can be", urls, (size_t)-1);
    refused(ROWLOCK_EINVAL, "NULL", "no list", NULL, 3);
    REFUSED(ROWLOCK_ESCHEMA, "same order", "members in another order", second, first, third);
    tap_is_int(rowlock_db_open_quorum(urls, 3, NULL, NULL, NULL), ROWLOCK_EINVAL,
               "no place for the handle");
    tap_is_int(rowlock_db_open_quorum(urls, 3, NULL, &db, NULL), ROWLOCK_OK, "no place for errors");
    rowlock_db_close(db);
}

/* The other two grant without it. */
static void test_unfit(const char *what, const char *url)
{
    const char *urls[] = {first, second, url};
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db *db = NULL;
    tap_is_str(rowlock_result_name(rowlock_db_open_quorum(urls, 3, NULL, &db, &err)), "ROWLOCK_OK",
               "one of three %s: it opens", what);
    if (!db) {
        tap_note("%s", err.text);
        return;
    }
    rowlock_lock *lock = must_lock(db, "unfit");
    is_result(db, try_lock(lock, 60000), ROWLOCK_OK, "and grants");
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_OK, "and renews");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "and releases");
    close_locks(lock);
    rowlock_db_close(db);
}

static int in_child(void *argument)
{
    rowlock_lock *lock = argument;
    int result = rowlock_renew(lock, 0);
    rowlock_lock_close(lock);
    return result == ROWLOCK_EMISUSE ? 0 : 1;
}

static void test_unsupported(rowlock_db *db, rowlock_lock *lock)
{
    is_result(db, rowlock_install(db), ROWLOCK_EUNSUPPORTED, "it installs nothing");
    is_result(db, rowlock_fence(db, "register", 1), ROWLOCK_EUNSUPPORTED, "and has no fence");
    tap_ok(strstr(why(db), "rowlock_fence()") != NULL, "but says where that belongs");
    rowlock_acquire_options how = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    how.permits = ROWLOCK_SHARED;
    how.ttl_ms = 1000;
    is_result(db, rowlock_acquire(lock, &how), ROWLOCK_EUNSUPPORTED, "nor shared locks");
    how.permits = 2;
    is_result(db, rowlock_acquire(lock, &how), ROWLOCK_EUNSUPPORTED, "nor counted ones");
}

static void test_names(void)
{
    const char *urls[] = {first, second, third};
    const char *const names[] = {"'; DROP TABLE rowlock_locks; --", "%s%n",
                                 "\xC3\xA4 \\ \" ` $1 ?1", "{name}"};
    rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    if (rowlock_db_open_quorum(urls, 3, NULL, &db, &err) != ROWLOCK_OK)
        raw_failed("open a quorum", err.text);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        rowlock_lock *lock = must_lock(db, names[i]);
        is_result(db, try_lock(lock, 60000), ROWLOCK_OK, "a hostile name: %zu", i);
        is_result(db, rowlock_release(lock), ROWLOCK_OK, "is released");
        close_locks(lock);
    }
    rowlock_lock *lock = must_lock(db, "forked");
    test_unsupported(db, lock);
    is_result(db, try_lock(lock, 60000), ROWLOCK_OK, "a lock is held");
    tap_is_int(child_join(child_start(in_child, lock)), 0, "a child cannot use it");
    is_result(db, rowlock_verify(lock), ROWLOCK_OK, "and it is held still");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "and released");
    close_locks(lock);
    rowlock_db_close(db);
}

int main(void)
{
    const char *url = getenv(raw_sqlite.url_env);
    rowlock_error err = ROWLOCK_ERROR_INIT;
    if (!url || !*url)
        return tap_skip_all("ROWLOCK_TEST_SQLITE_URL is not set");
    snprintf(first, sizeof first, "%s.first", url);
    snprintf(second, sizeof second, "%s.second", url);
    snprintf(third, sizeof third, "%s.third", url);
    snprintf(bare, sizeof bare, "%s.bare", url);
    snprintf(missing, sizeof missing, "%s.missing", url);
    const char *urls[] = {first, second, third};
    for (int i = 0; i < 3; i++)
        must_install(urls[i]);
    refused(ROWLOCK_ESCHEMA, "quorum-join", "members of no quorum", urls, 3);
    if (rowlock_quorum_join(urls, 3, NULL, &err) != ROWLOCK_OK)
        raw_failed("join a quorum", err.text);
    must_install(bare);
    test_refused();
    test_unfit("is there", third);
    test_unfit("has no tables", missing);
    test_unfit("is of no quorum", bare);
    test_names();
    return tap_done();
}
