/* SPDX-License-Identifier: MIT
 *
 * Whose our procedures and tables are on MySQL and MariaDB: a copy of the database works on
 * itself, and what another user made by our names is refused. */
#include "admin.h"

enum { TTL_MS = 30000 };

static rowlock_verdict objects_of(rowlock_db *db)
{
    return check_item(db, "objects").verdict;
}

static const char *const tables[] = {"locks", "waiters", "tokens",  "fences",
                                     "once",  "walks",   "members", "meta"};
enum { TABLES = COUNT(tables) };

/* As a dump that is restored under another name: the same tables, and the same bodies. mode: an
 * expression for that of a parameter. */
static void copy_database(const struct contract *c, void *session, const char *original,
                          const char *mode)
{
    static char sql[60000];
    char name[100];
    raw_run(c->raw, session, "DROP DATABASE IF EXISTS rowlock_copy");
    raw_run(c->raw, session, "CREATE DATABASE rowlock_copy");
    raw_run(c->raw, session, "USE rowlock_copy");
    for (int i = 0; i < TABLES; i++) {
        raw_run(c->raw, session, "CREATE TABLE rowlock_%s LIKE `%s`.rowlock_%s", tables[i],
                original, tables[i]);
        raw_run(c->raw, session, "INSERT INTO rowlock_%s SELECT * FROM `%s`.rowlock_%s", tables[i],
                original, tables[i]);
    }
    for (int i = 0;; i++) {
        char ask[900];
        snprintf(ask, sizeof ask,
                 "SELECT routine_name FROM information_schema.routines WHERE routine_schema = '%s' "
                 "AND routine_name LIKE 'rowlock\\_%%' ORDER BY routine_name LIMIT %d, 1",
                 original, i);
        if (!c->raw->ask(session, ask, name, sizeof name))
            break;
        snprintf(ask, sizeof ask,
                 "SELECT CONCAT('CREATE PROCEDURE ', routine_name, '(', (SELECT GROUP_CONCAT("
                 "CONCAT(%s, ' ', parameter_name, ' ', dtd_identifier) ORDER BY "
                 "ordinal_position) FROM "
                 "information_schema.parameters WHERE specific_schema = '%s' AND specific_name = "
                 "'%s'), ') SQL SECURITY INVOKER ', routine_definition) FROM "
                 "information_schema.routines WHERE routine_schema = '%s' AND routine_name = '%s'",
                 mode, original, name, original, name);
        if (!c->raw->ask(session, ask, sql, sizeof sql))
            raw_failed("no such procedure", name);
        raw_run(c->raw, session, "%s", sql);
    }
}

static void copied(const struct contract *c)
{
    char original[100];
    OWNED(session) void *session = c->raw->open(c->url);
    if (!c->raw->ask(session, "SELECT DATABASE()", original, sizeof original))
        raw_failed("no database", c->url);
    copy_database(c, session, original, "parameter_mode");
    OWNED(db) rowlock_db *copy = must_open_with(c->url, OPTIONS(db, .schema = "rowlock_copy"));
    OWNED(db) rowlock_db *db = must_open(c->url);
    OWNED(lock) rowlock_lock *there = must_lock(copy, "copied"), *here = must_lock(db, "copied");
    rowlock_lock *both[] = {must_lock(copy, "copied 1"), must_lock(copy, "copied 2")};
    tap_is_int(objects_of(copy), ROWLOCK_FINE,
               "in a copy of the database, by another name, the procedures are ours");
    is_result(copy, try_lock(there, TTL_MS), ROWLOCK_OK, "a lock is granted in the copy");
    is_result(copy, rowlock_acquire_all(both, 2, NULL, NULL), ROWLOCK_OK, "and several at once");
    tap_is_int(raw_int(c->raw, session, "SELECT COUNT(*) FROM rowlock_locks"), 3, "they are there");
    tap_is_int(rows_of(c, "copied"), 0, "not in the original");
    is_result(db, try_lock(here, TTL_MS), ROWLOCK_OK, "where the name is still free");
    is_result(copy, rowlock_renew(there, 0), ROWLOCK_OK, "the copy's lock is renewed");
    is_result(copy, rowlock_release(there), ROWLOCK_OK, "and released");
    tap_is_int(rows_of(c, "copied"), 1, "the original's stands");
    close_each_lock(both, 2);
    copy_database(c, session, original, "''");
    tap_is_int(objects_of(copy), ROWLOCK_BAD, "in one whose parameters lost OUT they are not");
    raw_run(c->raw, session, "DROP DATABASE rowlock_copy");
}

static const char OUR_RENEW[] =
    "PROCEDURE obj_renew(p_name VARBINARY(255), p_slot BIGINT, p_owner VARBINARY(255), "
    "p_token BIGINT, p_ttl BIGINT)";

static void remake_renew(const struct contract *c, const char *definer, const char *security,
                         const char *body)
{
    exec_on(c, "DROP PROCEDURE obj_renew");
    if (body) /* NULL: it is missing then */
        exec_on(c, "CREATE %s %s MODIFIES SQL DATA SQL SECURITY %s %s", definer, OUR_RENEW,
                security, body);
}

static void drifted(const struct contract *c)
{
    static const char *const bodies[] = {
        "BEGIN SELECT 1, 2, 3; END", "SELECT 1, 2, 3",
        "BEGIN UPDATE obj_locks SET ttl = 7--(SELECT 8)\nWHERE name = p_name; END", NULL};
    OWNED(text) char *url = fresh_tables(c, "obj_");
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "drifted");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is held");
    tap_is_int(objects_of(db), ROWLOCK_FINE, "new procedures are as they should be");
    for (size_t i = 0; i < COUNT(bodies); i++) {
        remake_renew(c, "", "INVOKER", bodies[i]);
        tap_is_int(objects_of(db), ROWLOCK_BAD, "a procedure without its body is found");
        tap_is_int(installs(url), ROWLOCK_ESCHEMA, "install leaves it as it is, and says so");
        tap_is_int(upgrades(url), ROWLOCK_OK, "upgrade makes it again");
        tap_is_int(objects_of(db), ROWLOCK_FINE, "then it is as it should be");
        is_result(db, rowlock_renew(lock, 0), ROWLOCK_OK, "and works");
    }
    exec_on(c, "ALTER PROCEDURE obj_renew SQL SECURITY DEFINER");
    tap_is_int(objects_of(db), ROWLOCK_BAD, "one that runs with its definer's rights is found");
    tap_is_int(upgrades(url), ROWLOCK_OK, "and made again too");
    tap_is_int(objects_of(db), ROWLOCK_FINE, "then it has its caller's");
}

enum { TURNS = 300, REMADE = 12 };

static int goes_on_locking(void *argument)
{
    OWNED(db) rowlock_db *db = must_open(argument);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "busy");
    int result = ROWLOCK_OK;
    for (int i = 0; i < TURNS && result == ROWLOCK_OK; i++) {
        result = try_lock(lock, TTL_MS);
        if (result == ROWLOCK_OK)
            result = rowlock_renew(lock, 0);
        if (result == ROWLOCK_OK)
            result = rowlock_release(lock);
    }
    if (result != ROWLOCK_OK)
        tap_note("%s", why(db));
    return result == ROWLOCK_OK ? 0 : 1;
}

/* MySQL drops a procedure before it makes it again. */
static void remade_under_load(const struct contract *c)
{
    OWNED(text) char *url = fresh_tables(c, "obj_");
    pid_t child = child_start(goes_on_locking, url);
    int good = 0;
    for (int i = 0; i < REMADE; i++) {
        exec_on(c, "ALTER PROCEDURE obj_%s SQL SECURITY DEFINER", i % 2 ? "renew" : "grant");
        good += upgrades(url) == ROWLOCK_OK;
    }
    tap_is_int(good, REMADE, "procedures are made again and again while a program calls them");
    tap_is_int(child_join(child), 0, "which is told of no failure");
}

static void event_is(rowlock_db *db, rowlock_verdict verdict, const char *value, const char *advice,
                     const char *what)
{
    struct found f = check_item(db, "event");
    tap_ok(f.verdict == verdict && strstr(f.value, value) && strstr(f.advice, advice), "%s: %s: %s",
           what, f.value, f.advice);
}

/* DISABLE ON SLAVE is how a replica has the event of its primary. */
static void events(const struct contract *c)
{
    OWNED(text) char *url = fresh_tables(c, "evt_");
    char scheduler[20] = "OFF";
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(session) void *session = c->raw->open(c->url);
    c->raw->ask(session, "SELECT @@global.event_scheduler", scheduler, sizeof scheduler);
    event_is(db, ROWLOCK_FINE, "", "", "without an event check says nothing of events");
    raw_run(c->raw, session,
            "CREATE EVENT evt_nightly ON SCHEDULE EVERY 1 DAY DO CALL evt_housekeeping(30, 30)");
    raw_run(c->raw, session, "SET GLOBAL event_scheduler = OFF");
    event_is(db, ROWLOCK_WARNING, "scheduler is off", "event_scheduler = ON",
             "an event that calls the procedure is seen, and that none runs");
    raw_run(c->raw, session, "SET GLOBAL event_scheduler = ON");
    event_is(db, ROWLOCK_FINE, "evt_nightly, every 1 day", "", "when they run, it is fine");
    raw_run(c->raw, session, "ALTER EVENT evt_nightly DISABLE ON SLAVE");
    event_is(db, ROWLOCK_WARNING, "evt_nightly, disabled on this server",
             "EVENT evt_nightly ENABLE",
             "one that a replica has got from its primary is disabled after a promotion");
    raw_run(c->raw, session, "ALTER EVENT evt_nightly DISABLE");
    event_is(db, ROWLOCK_WARNING, "evt_nightly, disabled on this server", "ENABLE",
             "and so is another");
    raw_run(c->raw, session, "DROP EVENT evt_nightly");
    raw_run(c->raw, session, "SET GLOBAL event_scheduler = %s", scheduler);
}

static void refused(const char *url, const char *what)
{
    OWNED(db) rowlock_db *db = must_open(url);
    tap_is_int(objects_of(db), ROWLOCK_BAD, "check finds %s", what);
    is_result(db, rowlock_install(db), ROWLOCK_ESCHEMA, "install refuses %s", what);
    is_result(db, rowlock_upgrade(db, NULL), ROWLOCK_ESCHEMA, "and so does upgrade");
}

/* Triggers that leave counters as they are stand for a server that interrupts an UPDATE without an
 * error (sql/mysql/interrupted.sql). */
static void keep_counters(const struct contract *c)
{
    exec_on(c, "CREATE TRIGGER obj_trap BEFORE UPDATE ON obj_tokens FOR EACH ROW SET NEW.token = "
               "OLD.token, NEW.granted = OLD.granted, NEW.permits = OLD.permits, "
               "NEW.guards = OLD.guards, NEW.fenced = OLD.fenced");
    exec_on(c, "CREATE TRIGGER obj_floor BEFORE UPDATE ON obj_meta FOR EACH ROW "
               "SET NEW.token_floor = OLD.token_floor");
}

static void let_counters_change(const struct contract *c)
{
    exec_on(c, "DROP TRIGGER obj_trap");
    exec_on(c, "DROP TRIGGER obj_floor");
}

static void procedures_interrupted(const struct contract *c)
{
    static const char *const calls[] = {
        "CALL obj_break('held', (SELECT token FROM obj_locks WHERE name = 'held'))",
        "CALL obj_guard('held', 0, 'one', (SELECT token FROM obj_locks WHERE name = 'held'), 1)",
        "CALL obj_raise(1)",
        "CALL obj_fold(-1000000, 10, 0)",
        "CALL obj_grant_many('[[\"6B657074\",0,\"6F\",1,1000000,\"\",0,\"\",\"\",0,0,0]]', 1)",
    };
    OWNED(session) void *session = c->raw->open(c->url);
    for (size_t i = 0; i < COUNT(calls); i++) {
        char why[300] = "";
        tap_ok(!c->raw->run(session, calls[i], why, sizeof why) && strstr(why, "1317"), "%s: %s",
               calls[i], why);
    }
}

static void interrupted_silently(const struct contract *c)
{
    OWNED(text) char *url = fresh_tables(c, "obj_");
    OWNED(db) rowlock_db *db = must_open_with(url, OPTIONS(db, .reconnect_ms = -1));
    OWNED(lock) rowlock_lock *lock = must_lock(db, "kept"), *held = must_lock(db, "held");
    for (int permits = 2; permits >= 0; permits--) {
        rowlock_acquire_options o = *OPTIONS(acquire, .ttl_ms = TTL_MS, .permits = permits);
        is_result(db, rowlock_acquire(lock, &o), ROWLOCK_OK, "a grant,");
        is_result(db, rowlock_release(lock), ROWLOCK_OK, "and its release");
        keep_counters(c);
        is_result(db, rowlock_acquire(lock, &o), ROWLOCK_EUNCERTAIN, "no grant without its token");
        let_counters_change(c);
        tap_is_int(int_on(c, "SELECT COUNT(*) FROM obj_locks"), 0, "nothing of it is there");
    }
    is_result(db, rowlock_acquire(held, OPTIONS(acquire, .ttl_ms = TTL_MS)), ROWLOCK_OK, "held");
    keep_counters(c);
    procedures_interrupted(c);
    let_counters_change(c);
    tap_is_int(int_on(c, "SELECT COUNT(*) FROM obj_locks"), 1, "all of it is there");
}

static void planted_procedures(const struct contract *c)
{
    OWNED(text) char *url = fresh_tables(c, "obj_");
    exec_on(c, "DROP USER IF EXISTS obj_mallory");
    exec_on(c, "CREATE USER obj_mallory");
    remake_renew(c, "DEFINER = obj_mallory", "INVOKER", "SELECT 1, 2, 3");
    refused(url, "another account's procedure");
    tap_is_int(int_on(c, "SELECT COUNT(*) FROM information_schema.routines WHERE routine_name = "
                         "'obj_renew' AND definer LIKE 'obj\\_mallory@%%'"),
               1, "and leaves it as it is");
    exec_on(c, "DROP PROCEDURE obj_renew");
    exec_on(c, "CREATE DEFINER = obj_mallory PROCEDURE obj_renew() SQL SECURITY INVOKER SELECT 1");
    refused(url, "another account's procedure without parameters");
    exec_on(c, "DROP PROCEDURE obj_renew");
    tap_is_int(upgrades(url), ROWLOCK_OK, "when it has been dropped, upgrade makes it again");
    exec_on(c, "DROP USER obj_mallory");
}

static void planted_tables(const struct contract *c)
{
    static const struct {
        const char *what, *made, *undone;
    } plants[] = {
        {"a trigger on a table of ours",
         "CREATE TRIGGER obj_trap BEFORE INSERT ON obj_locks FOR EACH ROW SET NEW.note = 'x'",
         "DROP TRIGGER obj_trap"},
        {"a column more", "ALTER TABLE obj_fences ADD COLUMN more INT GENERATED ALWAYS AS (1)",
         "ALTER TABLE obj_fences DROP COLUMN more"},
        {"a table of another engine", "ALTER TABLE obj_fences ENGINE = MyISAM",
         "RENAME TABLE obj_fences TO obj_hidden"},
        {"a view in the place of a table", "CREATE VIEW obj_fences AS SELECT * FROM obj_hidden",
         "DROP VIEW obj_fences"},
    };
    OWNED(text) char *url = fresh_tables(c, "obj_");
    for (size_t i = 0; i < COUNT(plants); i++) {
        exec_on(c, "%s", plants[i].made);
        refused(url, plants[i].what);
        exec_on(c, "%s", plants[i].undone);
    }
    exec_on(c, "ALTER TABLE obj_hidden ENGINE = InnoDB");
    exec_on(c, "RENAME TABLE obj_hidden TO obj_fences");
    tap_is_int(installs(url), ROWLOCK_OK, "without all that, installing goes well");
}

void contract_mysql_objects(const struct contract *c)
{
    remade_under_load(c); /* first: a process is started while nothing is open */
    copied(c);
    drifted(c);
    interrupted_silently(c);
    planted_procedures(c);
    planted_tables(c);
    events(c);
}
