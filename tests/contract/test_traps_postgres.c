/* SPDX-License-Identifier: MIT
 *
 * PostgreSQL finds operators, functions and types by search_path. A user who may create in one of
 * its schemas can define one that fits better than that of pg_catalog. This test makes such a
 * schema. It has operators and functions for every pair of types that our statements could use.
 * Parts of the contract run under it, and none of these may be called. */
#include "crowd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"
#include "tables.h"

/* Each records the call, in a way that survives a rollback, and fails. pg_catalog has some for
 * exactly the same types. Those are found first and need no trap. */
static const char *const traps[] = {
    "CREATE SCHEMA evil",
    "CREATE SEQUENCE evil.calls MINVALUE 0",
    "CREATE FUNCTION evil.call(what text) RETURNS void LANGUAGE plpgsql AS $f$ BEGIN "
    "PERFORM pg_catalog.nextval('evil.calls'); "
    "RAISE EXCEPTION 'trap: % in %', what, pg_catalog.current_query(); END $f$",

    "DO $do$ DECLARE "
    "types text[] := "
    "string_to_array('int2,int4,int8,float4,float8,numeric,text,varchar,bpchar,name,\"char\",oid,"
    "regclass,regproc,regprocedure,regtype,regnamespace,xid,bool,bytea,timestamptz,timestamp,date,"
    "text[],int8[],int2[],int2vector,oidvector', ','); "
    "l text; r text; op text; n int := 0; "
    "BEGIN FOREACH l IN ARRAY types LOOP FOREACH r IN ARRAY types LOOP n := n + 1; "
    "EXECUTE pg_catalog.format('CREATE FUNCTION evil.trap_%s(%s, %s) RETURNS bool LANGUAGE plpgsql "
    "AS ''BEGIN PERFORM evil.call(''''an operator of %s and %s''''::pg_catalog.text); END''', "
    "n, l, r, l, r); "
    "FOREACH op IN ARRAY '{=,<>,<,<=,>,>=,+,-,*,/,%,||,~~,~,@>,<@,&&}'::text[] LOOP "
    "IF NOT EXISTS (SELECT FROM pg_catalog.pg_operator o WHERE o.oprname = op::name AND "
    "o.oprnamespace = "
    "'pg_catalog'::regnamespace::oid AND o.oprleft = l::regtype::oid AND o.oprright = "
    "r::regtype::oid) "
    "THEN EXECUTE pg_catalog.format('CREATE OPERATOR evil.%s (leftarg = %s, rightarg = %s, "
    "function = evil.trap_%s)', op, l, r, n); END IF; "
    "END LOOP; END LOOP; END LOOP; END $do$",

    "DO $do$ DECLARE "
    "types text[] := "
    "string_to_array('text,varchar,name,\"char\",int2,int4,int8,float8,numeric,bool,oid,regclass,"
    "regprocedure,xid,bytea,timestamptz,text[],int8[],int2[]', ','); "
    "names text[] := "
    "'{date_part,clock_timestamp,pg_notify,set_config,current_setting,format,unnest,"
    "array_length,octet_length,md5,random,max,min,sum,bool_and,string_agg,pg_backend_pid,"
    "pg_is_in_recovery,has_function_privilege,has_table_privilege,to_regprocedure,to_regclass,"
    "quote_ident,format_type,pg_advisory_xact_lock,pg_try_advisory_xact_lock,hashtextextended,"
    "convert_to,sha256,encode,substr,substring,position,starts_with,pg_has_role,left,replace,"
    "pg_terminate_backend,coalesce,greatest,least,nullif,pg_get_expr,array_agg,extract,now}'; "
    "f text; a text; b text; c text; "
    "BEGIN FOREACH f IN ARRAY names LOOP FOREACH a IN ARRAY types LOOP "
    "EXECUTE pg_catalog.format('CREATE FUNCTION evil.%I(%s) RETURNS bool LANGUAGE plpgsql AS "
    "''BEGIN PERFORM evil.call(''''%s(%s)''''::pg_catalog.text); END''', f, a, f, a); "
    "FOREACH b IN ARRAY types LOOP "
    "EXECUTE pg_catalog.format('CREATE FUNCTION evil.%I(%s, %s) RETURNS bool LANGUAGE plpgsql AS "
    "''BEGIN PERFORM evil.call(''''%s(%s, %s)''''::pg_catalog.text); END''', f, a, b, f, a, b); "
    "END LOOP; END LOOP; "
    "FOREACH a IN ARRAY '{text,varchar}'::text[] LOOP FOREACH b IN ARRAY "
    "'{text,varchar,int4}'::text[] LOOP "
    "FOREACH c IN ARRAY '{text,varchar,bool,int4}'::text[] LOOP "
    "EXECUTE pg_catalog.format('CREATE FUNCTION evil.%I(%s, %s, %s) RETURNS bool LANGUAGE plpgsql "
    "AS "
    "''BEGIN PERFORM evil.call(''''%s(%s, %s, %s)''''::pg_catalog.text); END''', f, a, b, c, f, a, "
    "b, c); "
    "END LOOP; END LOOP; END LOOP; END LOOP; END $do$",
};

/* A database of its own, since its search_path applies to all its connections. */
static char *set_traps(const char *url)
{
    char *ours = NULL;
    size_t server = (size_t)(strrchr(url, '/') - url);
    db_exec(&raw_postgres, url, "DROP DATABASE IF EXISTS rowlock_traps");
    db_exec(&raw_postgres, url, "CREATE DATABASE rowlock_traps");
    if (asprintf(&ours, "%.*s/rowlock_traps", (int)server, url) < 0)
        abort();
    for (size_t i = 0; i < sizeof traps / sizeof traps[0]; i++)
        db_exec(&raw_postgres, ours, "%s", traps[i]);
    db_exec(&raw_postgres, ours, "ALTER DATABASE rowlock_traps SET search_path = public, evil");
    return ours;
}

static bool is_pooled(const char *url)
{
    void *session = raw_postgres.open(url);
    bool pooled = raw_postgres.pooled(session) || strstr(url, "rowlock_pooler=");
    raw_postgres.close(session);
    return pooled;
}

/* ---- what the other subjects do not reach, or not soon */

static bool heartbeats(void *context)
{
    const struct contract *c = context;
    return db_int(c->raw, c->url, "SELECT max(renewals) FROM rowlock_locks WHERE name = 'kept'") >
           0;
}

/* In a thread beside the others, since a heartbeat takes its time. */
static int keeper(void *argument)
{
    const struct contract *c = argument;
    rowlock_keeper *keeper = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_acquire_options how = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    rowlock_db *db = must_open(c->url);
    rowlock_lock *lock = must_lock(db, "kept");
    tap_is_int(rowlock_keeper_open(c->url, NULL, &keeper, &err), ROWLOCK_OK, "a keeper");
    how.keeper = keeper;
    how.ttl_ms = 9000;
    is_result(db, rowlock_acquire(lock, &how), ROWLOCK_OK, "keeps a lock");
    tap_ok(comes_true(heartbeats, argument), "and renews it");
    rowlock_lock_close(lock);
    rowlock_keeper_close(keeper);
    rowlock_db_close(db);
    return 0;
}

static void transaction(const struct contract *c, const char *isolation)
{
    struct scene s = scene_open(c, isolation, "traps", true);
    scene_hold(&s);
    scene_begin(&s);
    scene_guard(&s, ROWLOCK_OK, "a guard");
    is_result(s.tx, rowlock_fence(s.tx, "resource", 1), ROWLOCK_OK, "a fence");
    is_result(s.tx, rowlock_tx_release(s.lock, s.tx), ROWLOCK_OK, "a release inside");
    rowlock_lock *inside = must_lock(s.tx, "inside");
    is_result(s.tx, rowlock_tx_acquire(inside, s.tx, NULL), ROWLOCK_OK, "a grant inside");
    scene_run(&s, "COMMIT");
    rowlock_lock_close(inside);
    scene_close(&s);
}

static void operators(const struct contract *c)
{
    int64_t highest = 0;
    rowlock_sweep_options all = ROWLOCK_SWEEP_OPTIONS_INIT;
    rowlock_db *db = must_open(c->url);
    is_result(db, rowlock_raise_tokens(db, 1000, &highest), ROWLOCK_OK, "tokens are raised");
    is_result(db, rowlock_sweep(db, &all, NULL), ROWLOCK_OK, "swept and folded");
    is_result(db, rowlock_once_sweep(db, 0, 0, NULL), ROWLOCK_OK, "keys too");
    db_exec(c->raw, c->url, "CALL public.rowlock_housekeeping(1, 1)");
    rowlock_db_close(db);
}

/* On an adopted session with temporary tables of our names, which come before all schemas. */
static void temporary(const struct contract *c)
{
    static const char *const names[] = {"locks", "tokens", "waiters", "meta"};
    void *session = c->raw->open(c->url);
    for (int i = 0; i < COUNT(names); i++)
        raw_run(c->raw, session, "CREATE TEMPORARY TABLE rowlock_%s (trap int)", names[i]);
    raw_run(c->raw, session, "CREATE TEMPORARY TABLE pg_class (trap int)");
    rowlock_db *db = adopt_with(c, session, NULL);
    rowlock_lock *lock = must_lock(db, "temporary");
    rowlock_verdict worst = ROWLOCK_FINE;
    is_result(db, rowlock_install(db), ROWLOCK_OK, "temporary tables: install");
    is_result(db, rowlock_check(db, NULL, NULL, &worst), ROWLOCK_OK, "check");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "acquire");
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_OK, "renew");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "release");
    rowlock_lock_close(lock);
    rowlock_db_close(db);
    c->raw->close(session);
}

/* Types without operators of their own: they use those of another type, or operators in the schema
 * of an extension. */
static void one_key(const struct contract *c, const char *type, const char *version)
{
    char columns[200];
    struct site s = site_open(c);
    const rowlock_value key = rowlock_text("b"), n = rowlock_int(7);
    rowlock_change change = {.key = &key, .values = &n, .version = 1};
    snprintf(columns, sizeof columns, "id %s PRIMARY KEY, n INT, version %s NOT NULL", type,
             version);
    site_table(&s, "trap_rows", columns);
    site_run(&s, "INSERT INTO trap_rows VALUES ('a', 1, 1), ('b', 1, 1), ('c', 1, 1)");
    rowlock_table *t = must_open_table(&s, "trap_rows", NAMES("n"));
    becomes(&s, t, UPDATE, change, ROWLOCK_OK, 2, type);
    rowlock_table_close(t);
    site_run(&s, "DROP TABLE trap_rows");
    site_close(&s);
}

static int raise_n(void *context, const rowlock_row *row, rowlock_value *values)
{
    (void)context;
    (void)row;
    values[0] = rowlock_int(values[0].number + 1);
    return 0;
}

static void walk(const struct contract *c)
{
    struct site s = site_open(c);
    rowlock_walk_options how = ROWLOCK_WALK_OPTIONS_INIT;
    how.name = "traps";
    how.each = raise_n;
    how.chunk = 2;
    site_table(&s, "trap_rows", "id varchar(9) PRIMARY KEY, n INT, version BIGINT NOT NULL");
    site_run(&s, "INSERT INTO trap_rows VALUES ('a', 1, 1), ('b', 1, 1), ('c', 1, 1)");
    rowlock_table *t = must_open_table(&s, "trap_rows", NAMES("n"));
    is_result(s.db, rowlock_walk(t, &how, NULL), ROWLOCK_OK, "a walk");
    site_finds(&s, "3", "by all rows", "SELECT count(*) FROM trap_rows WHERE n = 2");
    rowlock_table_close(t);
    site_run(&s, "DROP TABLE trap_rows");
    site_close(&s);
}

static void keys(const struct contract *c)
{
    db_exec(c->raw, c->url, "CREATE TYPE trap_enum AS ENUM ('a', 'b', 'c')");
    db_exec(c->raw, c->url, "CREATE DOMAIN trap_text AS varchar(10)");
    db_exec(c->raw, c->url, "CREATE DOMAIN trap_int AS bigint");
    one_key(c, "varchar(5)", "smallint");
    one_key(c, "char(1)", "int");
    one_key(c, "name", "bigint");
    one_key(c, "trap_enum", "bigint");
    one_key(c, "trap_text", "trap_int");
    if (db_int(c->raw, c->url,
               "SELECT count(*) FROM pg_available_extensions WHERE name = 'citext'")) {
        db_exec(c->raw, c->url, "CREATE EXTENSION citext SCHEMA public");
        one_key(c, "citext", "bigint");
    }
}

static void none_called(const struct contract *c)
{
    const char *const *isolation = scene_isolations(c);
    struct helper *helper = helper_start(keeper, (void *)c);
    keys(c);
    walk(c);
    scene_table(c);
    for (; *isolation; isolation++)
        transaction(c, *isolation);
    scene_drop_table(c);
    helper_join(helper);
    operators(c);
    temporary(c);
    tap_is_int(db_int(c->raw, c->url, "SELECT pg_catalog.count(*) FROM evil.calls WHERE is_called"),
               0, "no operator and no function of another schema was called");
}

/* "counted" sends the statements of the queue that "waiting" and "many" send again and again. */
static const char *const everyday[] = {"install", "basics",  "names", "tokens", "sweep",
                                       "list",    "counted", "cycle", "once",   "versions",
                                       "batches", "types",   "own",   NULL};
static const char *const all[] = {"install", "basics",  "waiting", "names", "tokens", "sweep",
                                  "list",    "counted", "many",    "cycle", "once",   "versions",
                                  "batches", "types",   "own",     NULL};

int main(void)
{
    const char *url = getenv(raw_postgres.url_env);
    if (!url || !*url)
        return tap_skip_all("there is no PostgreSQL");
    if (is_pooled(url))
        return tap_skip_all("a pooler keeps sessions, and the database with them");
    char *ours = set_traps(url);
    int status = contract_run(&(struct contract){
        .raw = &raw_postgres,
        .url = ours,
        .has_server = true,
        .begin = "BEGIN",
        .lock = "FOR UPDATE",
        .only = is_long_run() ? all : everyday,
        .own = none_called,
    });
    db_exec(&raw_postgres, url, "DROP DATABASE rowlock_traps");
    free(ours);
    return status;
}
