/* SPDX-License-Identifier: MIT
 *
 * Settings of a role or a server under which texts, names and updates mean something else: rowlock
 * sets what it needs in its own sessions. */
#include "contract.h"
#include "each.h"

static const struct {
    const char *raw, *set, *reset;
} settings[] = {
    {"postgres", "ALTER ROLE ALL SET standard_conforming_strings = off",
     "ALTER ROLE ALL RESET standard_conforming_strings"},
    {"postgres", "ALTER ROLE ALL SET quote_all_identifiers = on",
     "ALTER ROLE ALL RESET quote_all_identifiers"},
    {"mysql", "SET GLOBAL sql_mode = 'ORACLE,EMPTY_STRING_IS_NULL,SIMULTANEOUS_ASSIGNMENT'",
     "SET GLOBAL sql_mode = DEFAULT"},
    {"mysql", "SET GLOBAL sql_mode = 'ANSI'", "SET GLOBAL sql_mode = DEFAULT"},
    {"mysql", "SET GLOBAL completion_type = 'CHAIN'", "SET GLOBAL completion_type = DEFAULT"},
    {"mysql", "SET GLOBAL group_concat_max_len = 23", "SET GLOBAL group_concat_max_len = DEFAULT"},
    {"mysql", "SET GLOBAL sql_safe_updates = 1", "SET GLOBAL sql_safe_updates = 0"},
    {"mysql", "ALTER DATABASE CHARACTER SET utf16", "ALTER DATABASE CHARACTER SET utf8mb4"},
};

/* On tables that were there before, and on new ones. */
static void use(const char *url)
{
    rowlock_verdict worst = ROWLOCK_BAD;
    rowlock_figures figures = ROWLOCK_FIGURES_INIT;
    OWNED(once) rowlock_once *once = NULL;
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(pool) rowlock_pool *pool = NULL;
    OWNED(db) rowlock_db *pooled = NULL;
    is_result(db, rowlock_install(db), ROWLOCK_OK, "install");
    /* On its last connection a pool renews and releases as in a batch. */
    tap_is_int(rowlock_pool_open(url, OPTIONS(pool, .connections = 1), &pool, NULL), 0, "a pool");
    tap_is_int(rowlock_db_open(NULL, OPTIONS(db, .pool = pool), &pooled, NULL), 0, "a handle");
    OWNED(lock) rowlock_lock *lock = must_lock(pooled, "nightly");
    is_result(db, rowlock_check(db, NULL, NULL, &worst), ROWLOCK_OK, "check");
    tap_ok(worst < ROWLOCK_BAD, "finds nothing wrong");
    is_result(db, rowlock_upgrade(db, NULL), ROWLOCK_OK, "upgrade");
    is_result(db, rowlock_measure(db, &figures), ROWLOCK_OK, "metrics");
    is_result(pooled, try_lock(lock, 60000), ROWLOCK_OK, "acquire");
    is_result(pooled, rowlock_renew(lock, 60000), ROWLOCK_OK, "renew");
    is_result(db, rowlock_once_claim(db, "key", NULL, &once), ROWLOCK_OK, "claim a key");
    is_result(db, rowlock_once_abandon(once, 0, NULL, 0), ROWLOCK_OK, "give it back");
    is_result(db, rowlock_once_forget(db, "key", 0), ROWLOCK_NONE, "it is gone");
    is_result(db, rowlock_once_sweep(db, 0, 0, NULL), ROWLOCK_OK, "sweep keys");
    is_result(pooled, rowlock_release(lock), ROWLOCK_OK, "release");
    is_result(db, rowlock_sweep(db, NULL, NULL), ROWLOCK_OK, "sweep");
}

static int run(const struct raw *raw, const char *url)
{
    char why[300], prefix[40];
    must_install(url);
    for (size_t i = 0; i < COUNT(settings); i++) {
        OWNED(session) void *session = raw->open(url);
        bool ours = strcmp(settings[i].raw, raw->name) == 0;
        if (ours && raw->run(session, settings[i].set, why, sizeof why)) {
            snprintf(prefix, sizeof prefix, "rowlock_prefix=fresh%zu_", i);
            OWNED(text) char *fresh = url_with(url, prefix);
            tap_note("%s", settings[i].set);
            use(url);
            use(fresh);
            raw_run(raw, session, "%s", settings[i].reset);
        } else if (ours) {
            tap_note("%s: %s", settings[i].set, why);
        }
    }
    return tap_done();
}

EACH_MAIN(run)
