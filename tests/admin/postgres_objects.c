/* SPDX-License-Identifier: MIT
 *
 * What a user may have prepared on PostgreSQL by the names of our tables and functions, so that it runs with
 * the rights of all that lock: check names it, install and upgrade refuse it, or upgrade makes it again where that is enough.
 */
#include "admin.h"

#define ROLE "rowlock_test_mallory"
#define TRIGGER_FUNCTION                                                                 \
    "CREATE FUNCTION obj_trap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; " \
    "END'; "
#define WAKE_BODY "LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN true; END'"

static const struct {
    const char *made, *undone; /* NULL: installing mends it */
    const char *object, *problem; /* words of the finding */
} traps[] = {
    {TRIGGER_FUNCTION "CREATE TRIGGER trap BEFORE INSERT ON obj_locks FOR EACH ROW EXECUTE "
                      "FUNCTION obj_trap()",
     "DROP FUNCTION obj_trap CASCADE", "table obj_locks", "the trigger trap"},
    {"CREATE RULE trap AS ON INSERT TO obj_tokens DO ALSO SELECT 1", "DROP RULE trap ON obj_tokens",
     "table obj_tokens", "the rule trap"},
    {"ALTER TABLE obj_meta ENABLE ROW LEVEL SECURITY",
     "ALTER TABLE obj_meta DISABLE ROW LEVEL SECURITY", "table obj_meta", "row level security"},
    {"CREATE POLICY trap ON obj_once USING (true)", "DROP POLICY trap ON obj_once",
     "table obj_once", "policies"},
    {"CREATE TABLE obj_child () INHERITS (obj_waiters)", "DROP TABLE obj_child",
     "table obj_waiters", "inherits"},
    {"ALTER TABLE obj_fences RENAME TO obj_kept; CREATE VIEW obj_fences AS SELECT * FROM obj_kept",
     "DROP VIEW obj_fences; ALTER TABLE obj_kept RENAME TO obj_fences", "table obj_fences",
     "a view"},
    {"ALTER TABLE obj_fences RENAME TO obj_kept; CREATE DOMAIN obj_fences AS text",
     "DROP DOMAIN obj_fences; ALTER TABLE obj_kept RENAME TO obj_fences", "type obj_fences",
     "is not a table"},
    {"CREATE FUNCTION obj_text() RETURNS text LANGUAGE sql AS 'SELECT '''''; ALTER TABLE obj_locks "
     "ALTER note SET DEFAULT obj_text()",
     "ALTER TABLE obj_locks ALTER note SET DEFAULT ''; DROP FUNCTION obj_text()", "table obj_locks",
     "a default"},
    {"CREATE FUNCTION obj_fine(text) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT true'; ALTER "
     "TABLE obj_tokens ADD CONSTRAINT trap CHECK (obj_fine(name))",
     "DROP FUNCTION obj_fine CASCADE", "table obj_tokens", "constraint"},
    {"CREATE FUNCTION obj_fine(text) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT true'; CREATE "
     "INDEX trap ON obj_locks (obj_fine(owner))",
     "DROP FUNCTION obj_fine CASCADE", "table obj_locks", "index"},
    {"CREATE DOMAIN obj_domain AS text CHECK (VALUE <> 'x'); ALTER TABLE obj_locks ALTER note TYPE "
     "obj_domain",
     "ALTER TABLE obj_locks ALTER note TYPE text; DROP DOMAIN obj_domain", "table obj_locks",
     "type"},
    {"CREATE TABLE obj_other (name text PRIMARY KEY); ALTER TABLE obj_fences ADD CONSTRAINT trap "
     "FOREIGN KEY (resource) REFERENCES obj_other",
     "DROP TABLE obj_other CASCADE", "table obj_fences", "the constraint trap"},
    {"ALTER TABLE obj_walks OWNER TO " ROLE, "ALTER TABLE obj_walks OWNER TO CURRENT_USER",
     "table obj_walks", "belongs to role " ROLE},
    {"ALTER FUNCTION obj_wake(text) OWNER TO " ROLE,
     "ALTER FUNCTION obj_wake(text) OWNER TO CURRENT_USER", "function obj_wake(p_name text)",
     "belongs to role " ROLE},
    {"CREATE FUNCTION obj_wake(varchar) RETURNS boolean " WAKE_BODY,
     "DROP FUNCTION obj_wake(varchar)", "function obj_wake(character varying)", "other parameters"},
    {"CREATE OR REPLACE FUNCTION obj_wake(p_name text) RETURNS boolean " WAKE_BODY, NULL,
     "function obj_wake(p_name text)", "not what this version makes"},
    {"ALTER FUNCTION obj_wake(text) SECURITY DEFINER", NULL, "function obj_wake(p_name text)",
     "not what this version makes"},
    {"ALTER FUNCTION obj_wake(text) SET search_path = public", NULL,
     "function obj_wake(p_name text)", "not what this version makes"},
    {"DROP FUNCTION obj_guard", NULL, "function", "missing"},
    {"DROP PROCEDURE obj_housekeeping", NULL, "procedure", "missing"},
    {"ALTER PROCEDURE obj_housekeeping SECURITY DEFINER", NULL, "procedure obj_housekeeping",
     "not what this version makes"},
    {"CREATE FUNCTION obj_housekeeping(text) RETURNS boolean " WAKE_BODY,
     "DROP FUNCTION obj_housekeeping(text)", "procedure obj_housekeeping(text)", "is none"},
};

static struct found look(rowlock_db *db)
{
    return check_item(db, "objects");
}

static void is_trapped(const struct contract *c, rowlock_db *db, int which)
{
    const char *made = traps[which].made, *undone = traps[which].undone;
    exec_on(c, "%s", made);
    struct found f = look(db);
    tap_is_int(f.verdict, ROWLOCK_BAD, "found: %s", made);
    tap_ok(strstr(f.value, traps[which].object) && strstr(f.advice, traps[which].problem),
           "by name and with the reason: %s: %s", f.value, f.advice);
    tap_is_int(f.further, !undone, "check goes on only if upgrading mends it");
    is_result(db, rowlock_install(db), ROWLOCK_ESCHEMA, "install");
    tap_ok(strstr(why(db), traps[which].problem), "says so too");
    is_result(db, rowlock_upgrade(db, NULL), undone ? ROWLOCK_ESCHEMA : ROWLOCK_OK, "upgrade");
    if (undone)
        exec_on(c, "%s", undone);
    /* Up to PostgreSQL 14 everybody may create in the schema of these tables, which is a warning. */
    tap_ok(look(db).verdict != ROWLOCK_BAD, "then nothing is wrong");
}

/* Made before us, and so complete that nothing is missing. */
static void foreign_installation(const struct contract *c, const char *url)
{
    OWNED(db) rowlock_db *db = must_open(url);
    exec_on(c, "DO $$ DECLARE t text; BEGIN FOR t IN SELECT tablename FROM pg_tables WHERE "
               "tablename LIKE 'obj\\_%%' LOOP EXECUTE 'ALTER TABLE ' || t || ' OWNER TO " ROLE
               "'; END LOOP; END $$");
    is_result(db, rowlock_install(db), ROWLOCK_ESCHEMA, "somebody else's installation is refused");
}

/* A renamed schema, and another by its name: the functions lock in that one. */
static void renamed(const struct contract *c)
{
    exec_on(c, "DROP SCHEMA IF EXISTS obj_live, obj_old CASCADE");
    exec_on(c, "CREATE SCHEMA obj_live");
    rowlock_db_options options = *OPTIONS(db, .schema = "obj_live");
    OWNED(db) rowlock_db *live = must_open_with(c->url, &options);
    is_result(live, rowlock_install(live), ROWLOCK_OK, "tables in a schema");
    exec_on(c, "ALTER SCHEMA obj_live RENAME TO obj_old; CREATE SCHEMA obj_live");
    rowlock_db_close(live);
    live = must_open_with(c->url, &options);
    is_result(live, rowlock_install(live), ROWLOCK_OK, "it is renamed, and another made");
    options.schema = "obj_old";
    OWNED(db) rowlock_db *old = must_open_with(c->url, &options);
    OWNED(lock) rowlock_lock *lock = must_lock(old, "renamed");
    struct found f = look(old);
    tap_ok(f.verdict == ROWLOCK_BAD && strstr(f.advice, "another schema"),
           "check sees functions of the old name: %s", f.advice);
    is_result(old, rowlock_upgrade(old, NULL), ROWLOCK_OK, "upgrade mends them");
    tap_is_int(look(old).verdict, ROWLOCK_FINE, "as check says");
    is_result(old, try_lock(lock, 30000), ROWLOCK_OK, "a lock there");
    tap_is_int(int_on(c, "SELECT count(*) FROM obj_live.rowlock_locks"), 0,
               "is not one in the other");
    exec_on(c, "DROP SCHEMA obj_live, obj_old CASCADE");
}

static void open_schema(const struct contract *c)
{
    exec_on(c, "DROP SCHEMA IF EXISTS obj_open CASCADE");
    exec_on(c, "CREATE SCHEMA obj_open");
    OWNED(db) rowlock_db *db = must_open_with(c->url, OPTIONS(db, .schema = "obj_open"));
    is_result(db, rowlock_install(db), ROWLOCK_OK, "tables in a schema of their own");
    tap_is_int(look(db).verdict, ROWLOCK_FINE, "where no other role may create");
    exec_on(c, "GRANT CREATE ON SCHEMA obj_open TO PUBLIC");
    struct found f = look(db);
    tap_ok(f.verdict == ROWLOCK_WARNING && strstr(f.advice, "REVOKE CREATE") && f.further,
           "that others may is worth a warning: %s", f.advice);
    is_result(db, rowlock_install(db), ROWLOCK_OK, "and no obstacle");
    exec_on(c, "DROP SCHEMA obj_open CASCADE");
}

/* Without vacuum a pair then leaves no more than pointers and an index entry. With a fillfactor of
 * 50 the table grew by 80 pages here. */
static void reuse_of_room(const struct contract *c)
{
    OWNED(text) char *url = fresh_tables(c, "room_");
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "again and again");
    int failed = 0;
    for (int i = 0; i < 1500; i++)
        failed += try_lock(lock, 30000) != ROWLOCK_OK || rowlock_release(lock) != ROWLOCK_OK;
    tap_is_int(failed, 0, "a lock is acquired and released 1,500 times");
    long long pages = int_on(c, "SELECT pg_relation_size('room_locks') / 8192");
    tap_ok(pages <= 30, "the room of its deleted rows is used again: %lld pages", pages);
}

void contract_postgres_objects(const struct contract *c)
{
    reuse_of_room(c);
    OWNED(text) char *url = fresh_tables(c, "obj_");
    exec_on(c,
            "DO $$ BEGIN CREATE ROLE " ROLE "; EXCEPTION WHEN duplicate_object THEN NULL; END $$");
    rowlock_db *db = must_open(url);
    for (int i = 0; i < COUNT(traps); i++)
        is_trapped(c, db, i);
    rowlock_db_close(db);
    foreign_installation(c, url);
    drop_tables(c, "obj_");
    renamed(c);
    open_schema(c);
    exec_on(c, "DROP ROLE " ROLE);
}
