/* SPDX-License-Identifier: MIT
 *
 * Installing, by one or by many, and tables that are missing, half there, of another version or
 * somebody else's; prefixes and schemas; what check reports. */
#include "admin.h"

enum { TTL_MS = 30000, PROCESSES = 10 };

static void again_and_again(const struct contract *c)
{
    OWNED(text) char *url = fresh_tables(c, "again_");
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "kept");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is held");
    for (int i = 0; i < 3; i++)
        is_result(db, rowlock_install(db), ROWLOCK_OK, "installing again is harmless");
    is_result(db, rowlock_upgrade(db, NULL), ROWLOCK_OK, "and upgrading has nothing to do");
    is_result(db, rowlock_verify(lock), ROWLOCK_OK, "the lock is still held");
    tap_is_int(int_on(c, "SELECT count(*) FROM again_meta"), 1, "by one installation");
}

static int install_in_child(void *url)
{
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, textf("child %d", (int)getpid()));
    int result = rowlock_install(db);
    if (result == ROWLOCK_OK)
        result = wait_lock(lock, TTL_MS, 20000);
    if (result != ROWLOCK_OK)
        tap_note("process %d: %s", (int)getpid(), why(db));
    return result == ROWLOCK_OK ? 0 : 1;
}

static void ten_at_once(const struct contract *c)
{
    OWNED(text) char *url = no_tables(c, "atonce_");
    int good = 0;
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        children[i] = child_start(install_in_child, url);
    for (int i = 0; i < PROCESSES; i++)
        good += child_join(children[i]) == 0;
    tap_is_int(good, PROCESSES, "ten processes install at once and each gets a lock");
    tap_is_int(int_on(c, "SELECT count(*) FROM atonce_tokens"), PROCESSES,
               "all in the same tables");
}

static void speaks_of_install(rowlock_db *db, int result, const char *call)
{
    is_result(db, result, ROWLOCK_ESCHEMA, "without tables %s says ESCHEMA", call);
    tap_ok(strstr(error_of(db).text, "install") != NULL, "and what to do about it");
}

static void missing(const struct contract *c)
{
    OWNED(text) char *url = no_tables(c, "missing_");
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "x"), *other = must_attach(db, "x", "y", 1);
    int64_t token = 4711, when = 4711;
    rowlock_verdict worst = ROWLOCK_FINE;
    speaks_of_install(db, try_lock(lock, TTL_MS), "acquire");
    speaks_of_install(db, wait_lock(lock, TTL_MS, 1000), "a waiting acquire");
    speaks_of_install(db, rowlock_renew(other, TTL_MS), "renew");
    speaks_of_install(db, rowlock_release(other), "release");
    speaks_of_install(db, rowlock_verify(other), "verify");
    speaks_of_install(db, rowlock_list(db, NULL, ignore_grant, NULL), "list");
    speaks_of_install(db, rowlock_sweep(db, NULL, NULL), "sweep");
    speaks_of_install(db, rowlock_break(db, "x", 0, NULL), "break");
    speaks_of_install(db, rowlock_last_grant(db, "x", &token, &when), "last_grant");
    tap_is_int(token + when, 2 * 4711, "and leaves its outputs alone");
    speaks_of_install(db, rowlock_upgrade(db, NULL), "upgrade");
    is_result(db, rowlock_check(db, NULL, NULL, &worst), ROWLOCK_OK, "check goes well");
    tap_is_int(worst, ROWLOCK_BAD, "and finds that it is bad");
    is_result(db, rowlock_install(db), ROWLOCK_OK, "install");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "then the same handle works");
    /* Dropped while a handle is in use: it says so instead of going mad. */
    OWNED(lock) rowlock_lock *dropped = must_lock(db, "dropped");
    drop_tables(c, "missing_");
    speaks_of_install(db, try_lock(dropped, TTL_MS), "acquire after they were dropped");
}

static int acquires_there(const char *url)
{
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "version");
    int result = try_lock(lock, TTL_MS);
    if (result < 0)
        tap_note("%s", why(db));
    return result;
}

static int opens_and(int (*change)(rowlock_db *db), const char *url)
{
    OWNED(db) rowlock_db *db = must_open(url);
    int result = change(db);
    if (result < 0)
        tap_note("%s", why(db));
    return result;
}

static int upgrade(rowlock_db *db)
{
    return rowlock_upgrade(db, NULL);
}

int installs(const char *url)
{
    return opens_and(rowlock_install, url);
}

int upgrades(const char *url)
{
    return opens_and(upgrade, url);
}

static void other_versions(const struct contract *c)
{
    OWNED(text) char *url = fresh_tables(c, "version_");
    tap_is_int(acquires_there(url), ROWLOCK_OK, "tables of our version work");
    exec_on(c, "UPDATE version_meta SET version = 99, code = 99");
    tap_is_int(acquires_there(url), ROWLOCK_OK, "so do newer ones that allow it");
    tap_is_int(installs(url), ROWLOCK_OK, "which install leaves as they are");
    tap_is_int(upgrades(url), ROWLOCK_OK, "and so does upgrade");
    tap_is_int(int_on(c, "SELECT version + code FROM version_meta"), 198, "with their version");
    exec_on(c, "UPDATE version_meta SET compat = 99");
    tap_is_int(acquires_there(url), ROWLOCK_ESCHEMA, "newer tables that do not are refused");
    tap_is_int(installs(url), ROWLOCK_ESCHEMA, "also by install");
    tap_is_int(upgrades(url), ROWLOCK_ESCHEMA, "and by upgrade");
    exec_on(c, "UPDATE version_meta SET version = 0, compat = 1");
    tap_is_int(acquires_there(url), ROWLOCK_ESCHEMA, "older tables are refused");
    exec_on(c, "DELETE FROM version_meta");
    tap_is_int(acquires_there(url), ROWLOCK_ESCHEMA,
               "tables of an installation cut short are refused");
    tap_is_int(installs(url), ROWLOCK_OK, "and healed by install");
    tap_ok(int_on(c, "SELECT token_floor FROM version_meta") > 0, "no token is given again");
    tap_is_int(acquires_there(url), ROWLOCK_OK, "then they work");
}

static void foreign_tables(const struct contract *c)
{
    OWNED(text) char *url = no_tables(c, "foreign_");
    exec_on(c, "CREATE TABLE foreign_meta (id INTEGER PRIMARY KEY, colour CHAR(9))");
    exec_on(c, "INSERT INTO foreign_meta VALUES (1, 'blue')");
    tap_is_int(acquires_there(url), ROWLOCK_ESCHEMA, "somebody else's tables are refused");
    tap_is_int(installs(url), ROWLOCK_ESCHEMA, "also by install");
    tap_is_int(int_on(c, "SELECT count(*) FROM foreign_meta WHERE colour = 'blue'"), 1,
               "which leaves them as they are");
    drop_tables(c, "foreign_");
    must_install(url);
    exec_on(c, "DROP TABLE foreign_locks");
    exec_on(c, "CREATE TABLE foreign_locks (door INTEGER, colour CHAR(9))");
    tap_is_int(acquires_there(url), ROWLOCK_ESCHEMA, "a lock table of another shape is refused");
    tap_is_int(installs(url), ROWLOCK_ESCHEMA, "and not taken for ours by install");
    tap_is_int(int_on(c, "SELECT count(*) FROM foreign_locks WHERE door = 1"), 0,
               "which leaves it as it is");
}

/* Made anew without its rows, it would grant or do the same twice. Locks need the first four. */
static void dropped_table(const struct contract *c)
{
    static const char *gone[][2] = {{"g1_", "locks"},   {"g2_", "tokens"}, {"g3_", "waiters"},
                                    {"g7_", "members"}, {"g4_", "once"},   {"g5_", "fences"},
                                    {"g6_", "walks"}};
    for (int i = 0; i < COUNT(gone); i++) { /* A pool knows its tables: each has a prefix. */
        OWNED(text) char *url = fresh_tables(c, gone[i][0]);
        OWNED(db) rowlock_db *db = must_open(url);
        int works = i < 4 ? ROWLOCK_ESCHEMA : ROWLOCK_OK;
        tap_is_int(acquires_there(url), ROWLOCK_OK, "a lock is granted");
        exec_on(c, "DROP TABLE %s%s", gone[i][0], gone[i][1]);
        tap_is_int(installs(url), ROWLOCK_ESCHEMA, "without %s, install refuses", gone[i][1]);
        tap_is_int(upgrades(url), works, "and upgrade makes none");
        tap_is_int(acquires_there(url), works, i < 4 ? "nothing is granted" : "locks go on");
        tap_is_int(check_item(db, "").worst, ROWLOCK_BAD, "and is told of");
    }
}

static void dropped_routine(const struct contract *c)
{
    if (!c->has_server)
        return;
    OWNED(text) char *url = fresh_tables(c, "routine_");
    OWNED(db) rowlock_db *db = must_open(url);
    exec_on(c, "DROP %s routine_grant", is_mysql(c) ? "PROCEDURE" : "FUNCTION");
    tap_is_int(check_item(db, "privileges").verdict, ROWLOCK_BAD,
               "a database whose granting routine was dropped is found unfit");
    tap_is_int(acquires_there(url), ROWLOCK_ESCHEMA, "it grants nothing");
    tap_is_int(installs(url), ROWLOCK_ESCHEMA, "install does not call it installed");
    tap_is_int(upgrades(url), ROWLOCK_OK, "and upgrade makes the routine again");
    tap_is_int(acquires_there(url), ROWLOCK_OK, "then it does");
}

static void prefixes_are_apart(const struct contract *c)
{
    OWNED(text) char *here = fresh_tables(c, "here_"), *there = fresh_tables(c, "There2_");
    OWNED(db) rowlock_db *one = must_open(here), *two = must_open(there);
    OWNED(db) rowlock_db *three = must_open_with(c->url, OPTIONS(db, .prefix = "There2_"));
    OWNED(lock) rowlock_lock *a = must_lock(one, "same"), *b = must_lock(two, "same");
    OWNED(lock) rowlock_lock *rival = must_lock(three, "same");
    is_result(one, try_lock(a, TTL_MS), ROWLOCK_OK, "a name is locked under one prefix");
    is_result(two, try_lock(b, TTL_MS), ROWLOCK_OK, "and under another");
    is_result(three, try_lock(rival, TTL_MS), ROWLOCK_BUSY,
              "a prefix by option is the same as by URL");
    if (c->has_server)
        return; /* SQLite knows a table by its name in any case. */
    OWNED(db) rowlock_db *four = must_open_with(c->url, OPTIONS(db, .prefix = "tHERE2_"));
    is_result(four, rowlock_install(four), ROWLOCK_OK, "a prefix in another case is the same");
}

static void other_schema(const struct contract *c)
{
    static const char SCHEMA[] = "rowlock Other";
    const char *quote = is_mysql(c) ? "`" : "\"";
    const char *kind = is_mysql(c) ? "DATABASE" : "SCHEMA";
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db *db = NULL;
    rowlock_db_options options = *OPTIONS(db, .schema = SCHEMA);
    if (!c->has_server)
        return;
    exec_on(c, "DROP %s IF EXISTS %s%s%s%s", kind, quote, SCHEMA, quote,
            is_mysql(c) ? "" : " CASCADE");
    /* A database may say at once or at the first step that there is no such schema. */
    int result = rowlock_db_open(c->url, &options, &db, &err);
    result = result == ROWLOCK_OK ? rowlock_install(db) : result;
    tap_ok(result < 0 && (is_mysql(c) || strstr(why(db), "create it first")),
           "installing in a schema that is not there fails (%s: %s)", rowlock_result_name(result),
           db ? why(db) : err.text);
    rowlock_db_close(db);
    exec_on(c, "CREATE %s %s%s%s", kind, quote, SCHEMA, quote);
    db = must_open_with(c->url, &options);
    rowlock_db *plain = must_open(c->url);
    is_result(db, rowlock_install(db), ROWLOCK_OK,
              "install in another schema, with a name to quote");
    rowlock_lock *there = must_lock(db, "schemas"), *here = must_lock(plain, "schemas");
    is_result(db, try_lock(there, TTL_MS), ROWLOCK_OK, "a name is locked in that schema");
    is_result(plain, try_lock(here, TTL_MS), ROWLOCK_OK, "and in the usual one");
    close_locks(there, here);
    close_dbs(db, plain);
    exec_on(c, "DROP %s %s%s%s%s", kind, quote, SCHEMA, quote, is_mysql(c) ? "" : " CASCADE");
}

struct findings {
    int count, empty, stop_after;
    char items[500];
};

static int find(void *context, const rowlock_finding *finding)
{
    struct findings *findings = context;
    findings->count++;
    if (!finding->item[0] || !finding->value[0] || !finding->advice ||
        (finding->verdict != ROWLOCK_FINE && !finding->advice[0]))
        findings->empty++;
    if (finding->verdict != ROWLOCK_FINE)
        tap_note("%s: %s (%s)", finding->item, finding->value, finding->advice);
    strncat(findings->items, finding->item, 50);
    strcat(findings->items, " ");
    return findings->count == findings->stop_after;
}

static void checked(const struct contract *c)
{
    static const char *const items[] = {"tables",    "server", "writable",   "isolation",
                                        "collation", "engine", "durability", "clock"};
    struct findings findings = {0}, one = {.stop_after = 1};
    rowlock_verdict worst = ROWLOCK_BAD;
    OWNED(db) rowlock_db *db = must_open(c->url);
    is_result(db, rowlock_check(db, find, &findings, &worst), ROWLOCK_OK, "check a sound database");
    tap_ok(worst != ROWLOCK_BAD, "finds nothing bad");
    tap_is_int(findings.empty, 0, "each finding has a value, and advice if it is not fine");
    for (size_t i = 0; i < COUNT(items); i++)
        tap_ok(strstr(findings.items, items[i]) != NULL, "it reports on %s", items[i]);
    is_result(db, rowlock_check(db, find, &one, NULL), ROWLOCK_OK, "a callback may stop it");
    tap_is_int(one.count, 1, "at once");
}

static void swept(const struct contract *c)
{
    OWNED(text) char *url = fresh_tables(c, "swept_");
    OWNED(db) rowlock_db *db = must_open(url);
    const long long day_us = INT64_C(86400000000);
    struct found f = check_item(db, "swept");
    tap_ok(f.verdict == ROWLOCK_FINE && strncmp(f.value, "never; installed ", 17) == 0 &&
               strstr(f.value, " UTC, 0 days ago"),
           "check is content with new tables that were never swept: %s", f.value);
    exec_on(c, "UPDATE swept_meta SET swept = swept + %lld", 10 * day_us);
    is_result(db, rowlock_sweep(db, OPTIONS(sweep, .dry_run = 1), NULL), ROWLOCK_OK, "a dry run");
    f = check_item(db, "swept");
    tap_ok(f.verdict == ROWLOCK_WARNING && strstr(f.value, "never") &&
               strstr(f.value, " 10 days ago"),
           "is no sweep, and check warns of old tables without one: %s", f.value);
    is_result(db, rowlock_sweep(db, NULL, NULL), ROWLOCK_OK, "a sweep");
    f = check_item(db, "swept");
    tap_ok(f.verdict == ROWLOCK_FINE && strstr(f.value, "UTC") && !strstr(f.value, "never"),
           "is noted: %s", f.value);
    exec_on(c, "UPDATE swept_meta SET swept = swept - %lld", 9 * day_us);
    f = check_item(db, "swept");
    tap_ok(f.verdict == ROWLOCK_WARNING && strstr(f.value, " 9 days ago"),
           "check warns when no sweep came for more than a week: %s", f.value);
}

static void checked_before_install(const struct contract *c)
{
    OWNED(text) char *url = no_tables(c, "nothing_");
    OWNED(db) rowlock_db *db = must_open(url);
    struct found f = check_item(db, "tables");
    tap_ok(f.verdict == ROWLOCK_BAD && strstr(f.value, "not installed") &&
               strstr(f.advice, "install"),
           "check before install says that nothing is installed and how to install");
    tap_ok(!f.further, "and no more");
}

static void one_index(const struct contract *c)
{
    const char *query = "SELECT count(*) FROM pragma_index_list('rowlock_locks')";
    if (is_postgres(c))
        query = "SELECT count(*) FROM pg_indexes WHERE tablename = 'rowlock_locks'";
    if (is_mysql(c))
        query = "SELECT COUNT(DISTINCT index_name) FROM information_schema.statistics "
                "WHERE table_schema = DATABASE() AND table_name = 'rowlock_locks'";
    tap_is_int(int_on(c, "%s", query), 1, "the lock table has no index but its key");
}

void contract_install(const struct contract *c)
{
    ten_at_once(c); /* first: processes are started while nothing is open */
    again_and_again(c);
    missing(c);
    other_versions(c);
    foreign_tables(c);
    dropped_table(c);
    dropped_routine(c);
    prefixes_are_apart(c);
    other_schema(c);
    checked(c);
    swept(c);
    checked_before_install(c);
    one_index(c);
}
