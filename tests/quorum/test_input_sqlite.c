/* SPDX-License-Identifier: MIT
 *
 * What an open of a quorum refuses, with a message, and what one unfit member of three costs:
 * nothing. */
#include "contract.h"
#include "each.h"

static char first[300], second[300], third[300], bare[300], missing[300];

static void refused(int want, const char *part, const char *what, const char *const *urls,
                    size_t count)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    OWNED(db) rowlock_db *db = NULL;
    int result = rowlock_db_open(url_list(urls, count).text, NULL, &db, &err);
    bool said = strstr(err.text, part) != NULL;
    tap_ok(result == want && !db && said, "%s", what);
    if (result != want || !said)
        tap_note("%s: %s", rowlock_result_name(result), err.text);
}

#define REFUSED(want, part, what, ...)                            \
    refused(want, part, what, (const char *const[]){__VA_ARGS__}, \
            sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void test_refused(void)
{
    OWNED(db) rowlock_db *db = NULL;
    const char *urls[] = {first, second, third};
    REFUSED(ROWLOCK_EINVAL, "not 2", "two members", first, second);
    REFUSED(ROWLOCK_EINVAL, "not 4", "four members", first, second, third, bare);
    REFUSED(ROWLOCK_EINVAL, "not 6", "six members", first, second, third, bare, missing, first);
    REFUSED(ROWLOCK_EINVAL, "members 1 and 3", "a URL twice", first, second, first);
    REFUSED(ROWLOCK_EINVAL, "not 2", "an empty URL", first, "", third);
    REFUSED(ROWLOCK_EINVAL, "URL", "a URL of nothing", first, second, "nothing://here");
    REFUSED(ROWLOCK_ESCHEMA, "same order", "members in another order", second, first, third);
    rowlock_error err = ROWLOCK_ERROR_INIT;
    tap_is_int(rowlock_db_open(url_list(urls, 3).text, NULL, NULL, &err), ROWLOCK_EINVAL,
               "no place for the handle");
    tap_is_str(err.text, "the place for the new handle is NULL", "which it says");
    tap_is_int(rowlock_db_open(url_list(urls, 3).text, NULL, &db, NULL), ROWLOCK_OK,
               "no place for errors");
}

/* White space of any kind, before and after them too. */
static void test_white_space(void)
{
    OWNED(db) rowlock_db *db = NULL;
    OWNED(lock) rowlock_lock *lock = NULL;
    const char *text = textf("%s\n\t%s  %s\n", first, second, third);
    tap_is_int(rowlock_db_open(text, NULL, &db, NULL), ROWLOCK_OK, "URLs in lines");
    lock = must_lock(db, "white space");
    tap_is_int(rowlock_acquire(lock, OPTIONS(acquire, .keep = 1)), ROWLOCK_OK,
               "a lock over them is kept");
}

/* The other two grant without it. */
static void test_unfit(const char *what, const char *url)
{
    const char *urls[] = {first, second, url};
    rowlock_error err = ROWLOCK_ERROR_INIT;
    OWNED(db) rowlock_db *db = NULL;
    tap_is_result(rowlock_db_open(url_list(urls, 3).text, NULL, &db, &err), ROWLOCK_OK,
                  "one of three %s: it opens", what);
    if (!db) {
        tap_note("%s", err.text);
        return;
    }
    OWNED(lock) rowlock_lock *lock = must_lock(db, "unfit");
    is_result(db, try_lock(lock, 60000), ROWLOCK_OK, "and grants");
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_OK, "and renews");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "and releases");
}

static int in_child(void *argument)
{
    rowlock_lock *lock = argument;
    int result = rowlock_renew(lock, 0);
    rowlock_lock_close(lock);
    return result == ROWLOCK_EMISUSE ? 0 : 1;
}

static void unsupported(rowlock_db *db, int result, const char *advice, const char *what)
{
    is_result(db, result, ROWLOCK_EUNSUPPORTED, "not with a quorum: %s", what);
    bool said = tap_ok(strstr(why(db), advice) != NULL, "it says what to do");
    if (!said)
        tap_note("%s", why(db));
}

static int write_nothing(void *context, const char *sql, size_t length)
{
    return length > 0;
}

static int find(void *count, const rowlock_finding *finding)
{
    return ++*(int *)count;
}

static int take_names(void *context, const rowlock_name_figures *figures)
{
    return figures != NULL;
}

static int take_record(void *context, const rowlock_once_record *record)
{
    return record != NULL;
}

static void test_tables(rowlock_db *db)
{
    static const char each[] = "the URL of each member";
    rowlock_figures figures = ROWLOCK_FIGURES_INIT;
    int64_t number;
    int found = 0;
    unsupported(db, rowlock_install(db), each, "installing");
    unsupported(db, rowlock_install_script(db, NULL, NULL, write_nothing, NULL), each, "a script");
    unsupported(db, rowlock_upgrade(db, NULL), each, "upgrading");
    unsupported(db, rowlock_check(db, find, &found, NULL), each, "checking");
    tap_is_int(found, 0, "nothing is found then");
    unsupported(db, rowlock_measure(db, &figures), each, "figures");
    unsupported(db, rowlock_measure_names(db, "*", take_names, NULL), each, "figures of names");
    unsupported(db, rowlock_sweep(db, NULL, NULL), each, "sweeping");
    unsupported(db, rowlock_raise_tokens(db, 1, &number), each, "raising tokens");
    unsupported(db, rowlock_new_identity(db), each, "a new identity");
    unsupported(db, rowlock_break(db, "free", 0, NULL), each, "breaking a lock");
    unsupported(db, rowlock_break(db, "free", 1, NULL), each, "breaking a grant");
}

static void test_data(rowlock_db *db)
{
    static const char data[] = "the database that has the data";
    const char *const key[] = {"id", NULL}, *const columns[] = {"name", NULL};
    rowlock_table *table = NULL;
    rowlock_once *once = NULL;
    struct about about = *ABOUT(.name = "people", .key = key, .columns = columns);
    unsupported(db, open_table(db, &about, &table), data, "a table");
    unsupported(db, rowlock_once_claim(db, "key", NULL, &once), data, "a once key");
    tap_ok(!table && !once, "there is no handle then");
    unsupported(db, rowlock_once_list(db, NULL, take_record, NULL), data, "a list of once keys");
    unsupported(db, rowlock_once_forget(db, "key", 0), data, "forgetting a once key");
    unsupported(db, rowlock_once_sweep(db, 1000, 1, NULL), data, "sweeping once keys");
    unsupported(db, rowlock_fence(db, "register", 1), "rowlock_fence()", "a fence");
}

static void test_kinds(rowlock_db *db, rowlock_lock *lock)
{
    static const char one[] = "the URL of one database";
    rowlock_lock *other = must_lock(db, "other"), *both[] = {lock, other};
    size_t which;
    rowlock_acquire_options how = *OPTIONS(acquire, .ttl_ms = 1000);
    unsupported(db, rowlock_acquire_all(both, 2, &how, &which), "one after the other",
                "two locks at once");
    how.permits = ROWLOCK_SHARED;
    unsupported(db, rowlock_acquire(lock, &how), one, "a shared lock");
    unsupported(db, rowlock_acquire_all(both, 1, &how, &which), one, "a shared lock of several");
    how.permits = 2;
    how.wait_ms = 60000;
    unsupported(db, rowlock_acquire(lock, &how), one, "waiting for a counted lock");
    close_locks(other);
}

/* A guard takes a transaction of one database. */
static void test_transaction(rowlock_lock *lock)
{
    char why_not[200];
    OWNED(session) void *session = raw_sqlite.open(first);
    OWNED(db) rowlock_db *tx = must_adopt(&raw_sqlite, session, NULL);
    raw_run(&raw_sqlite, session, "BEGIN");
    unsupported(tx, rowlock_guard(lock, tx), "rowlock_fence()", "a guard in a member");
    unsupported(tx, rowlock_tx_acquire(lock, tx, NULL), "rowlock_fence()",
                "acquiring in a transaction");
    unsupported(tx, rowlock_tx_release(lock, tx), "rowlock_fence()", "releasing in a transaction");
    tap_ok(raw_sqlite.run(session, "COMMIT", why_not, sizeof why_not), "the transaction goes on");
}

static void test_names(void)
{
    const char *urls[] = {first, second, third};
    const char *const names[] = {"'; DROP TABLE rowlock_locks; --", "%s%n",
                                 "\xC3\xA4 \\ \" ` $1 ?1", "{name}"};
    OWNED(db) rowlock_db *db = must_quorum(urls, 3, NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        OWNED(lock) rowlock_lock *lock = must_lock(db, names[i]);
        is_result(db, try_lock(lock, 60000), ROWLOCK_OK, "a hostile name: %zu", i);
        is_result(db, rowlock_release(lock), ROWLOCK_OK, "is released");
    }
    OWNED(lock) rowlock_lock *lock = must_lock(db, "forked");
    test_tables(db);
    test_data(db);
    test_kinds(db, lock);
    is_result(db, try_lock(lock, 60000), ROWLOCK_OK, "a lock is held");
    tap_is_int(child_join(child_start(in_child, lock)), 0, "a child cannot use it");
    is_result(db, rowlock_verify(lock), ROWLOCK_OK, "and it is held still");
    unsupported(db, rowlock_note(lock, "x"), "rowlock_acquire_options", "a new note");
    test_transaction(lock);
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "and released");
    rowlock_stats stats = ROWLOCK_STATS_INIT;
    tap_is_int(rowlock_db_stats(db, &stats), ROWLOCK_OK, "the handle counts");
    tap_is_int((long long)stats.granted, 5, "one grant for each lock, not for each member");
}

static int run(const struct raw *raw, const char *url)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    snprintf(first, sizeof first, "%s.first", url);
    snprintf(second, sizeof second, "%s.second", url);
    snprintf(third, sizeof third, "%s.third", url);
    snprintf(bare, sizeof bare, "%s.bare", url);
    snprintf(missing, sizeof missing, "%s.missing", url);
    const char *urls[] = {first, second, third};
    for (int i = 0; i < 3; i++)
        must_install(urls[i]);
    refused(ROWLOCK_ESCHEMA, "quorum-join", "members of no quorum", urls, 3);
    if (rowlock_quorum_join(url_list(urls, 3).text, 0, NULL, &err) != ROWLOCK_OK)
        raw_failed("join a quorum", err.text);
    must_install(bare);
    test_refused();
    test_white_space();
    test_unfit("is there", third);
    test_unfit("has no tables", missing);
    test_unfit("is of no quorum", bare);
    test_names();
    return tap_done();
}

EACH_MAIN(run)
