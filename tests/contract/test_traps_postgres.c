/* SPDX-License-Identifier: MIT
 *
 * PostgreSQL finds operators and functions by search_path. A user who may create in one of its
 * schemas can define one that fits better than that of pg_catalog. This test makes such a schema.
 * It has an operator for every pair of types that our statements could use, and a function for
 * every name of pg_catalog in them. Each is made so that the server refuses a statement when it
 * only takes it: the operators are shells, and the functions need an OVER clause. So a statement is
 * proven when it was prepared once, whatever rows it meets. The server's log tells:
 *
 *   - whether one was taken
 *   - whether each step was sent (steps.h)
 *   - whether each branch of each routine was run: a statement there is prepared when it is reached */
#include "scene.h"
#include "core/statements.h"
#include "tables.h"

/* pg_catalog has some for exactly the same types. Those are found first and need no trap. */
static const char OPERATORS[] =
    "INSERT INTO pg_operator (oid, oprname, oprnamespace, oprowner, oprkind, oprcanmerge, "
    "oprcanhash, oprleft, oprright, oprresult, oprcom, oprnegate, oprcode, oprrest, oprjoin) "
    "SELECT 1000000 + row_number() OVER (), o.name, 'evil'::regnamespace, 10, 'b', false, false, "
    "l.oid, r.oid, 16, 0, 0, 0, 0, 0 FROM evil.types l, evil.types r, "
    "unnest('{=,<>,<,<=,>,>=,+,-,*,/,%,||,~~,~,@>,<@,&&}'::name[]) o (name) "
    "WHERE NOT EXISTS (SELECT FROM pg_operator p WHERE p.oprname = o.name AND "
    "p.oprnamespace = 'pg_catalog'::regnamespace AND p.oprleft = l.oid AND p.oprright = r.oid)";

/* A window function, of one to three arguments. */
static const char FUNCTIONS[] =
    "INSERT INTO pg_proc SELECT r.* FROM pg_proc p, (SELECT n.name, a.count, a.types, "
    "2000000 + row_number() OVER () AS oid FROM (SELECT DISTINCT proname AS name FROM pg_proc "
    "WHERE pronamespace = "
    "'pg_catalog'::regnamespace AND position('.' || proname || '(' IN $steps$%s$steps$) > 0) n, "
    "(SELECT 1 AS count, a.oid::text AS types FROM evil.types a UNION ALL SELECT 2, a.oid || ' ' "
    "|| b.oid FROM evil.types a, evil.types b UNION ALL SELECT 3, a.oid || ' ' || b.oid || ' ' || "
    "c.oid FROM evil.types a, evil.types b, evil.types c WHERE a.oid IN (25, 1043) AND b.oid IN "
    "(25, 1043, 23) AND c.oid IN (25, 1043, 16, 23)) a) t, LATERAL jsonb_populate_record(p, "
    "jsonb_build_object('oid', t.oid, 'proname', t.name, 'prokind', 'w', 'pronargs', t.count, "
    "'proargtypes', t.types)) r WHERE p.oid = 'evil.one(int)'::regprocedure";

static const char TYPES[] =
    "CREATE TABLE evil.types AS SELECT t::regtype::oid AS oid FROM unnest('{int2,int4,int8,float4,"
    "float8,numeric,text,varchar,bpchar,name,\"\\\"char\\\"\",oid,regclass,regproc,"
    "regprocedure,regtype,regnamespace,xid,bool,bytea,timestamptz,timestamp,date,interval,text[],"
    "int8[],int2[],int2vector,oidvector}'::text[]) t";

static struct rlk_texts steps;

/* A branch of our routines begins with a sequence of its own, which moves when the branch is run. Its
 * name says where it is. A branch that only returns or raises needs none. IF changes neither FOUND
 * nor ROW_COUNT. */
static const char BRANCHES[] =
    "SET search_path = pg_catalog; DO $do$ DECLARE f record; line text; def text; n int; BEGIN "
    "FOR f IN SELECT p.oid, p.proname FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang "
    "WHERE p.pronamespace = 'public'::regnamespace AND l.lanname = 'plpgsql' LOOP "
    "def := ''; n := 0; "
    "FOREACH line IN ARRAY string_to_array(pg_get_functiondef(f.oid), E'\\n') LOOP n := n + 1; "
    "IF def ~ '(THEN|ELSE|LOOP|BEGIN)\\n$' AND line !~ '^ *(RETURN( [[:alpha:]]+)?;|RAISE|EXIT;)' "
    "THEN "
    "EXECUTE format('CREATE SEQUENCE branch.%I', f.proname || ' ' || n || ' ' || btrim(line)); "
    "def := def || format('IF pg_catalog.nextval(%L) IS NULL THEN NULL; END IF;', "
    "format('branch.%I', f.proname || ' ' || n || ' ' || btrim(line))); END IF; "
    "def := def || line || E'\\n'; END LOOP; EXECUTE def; END LOOP; END $do$";

static void exec(const char *url, const char *sql)
{
    void *session = raw_postgres.open(url);
    char reason[300];
    if (!raw_postgres.run(session, sql, reason, sizeof reason))
        raw_failed("the traps", reason);
    raw_postgres.close(session);
}

/* All texts, since a function that only one of them calls needs its trap too. */
static char *functions(void)
{
    static const struct rlk_driver postgres = {
        .name = "postgres", .quote = '"', .marker = '$', .numbered = true};
    char *all = NULL, *sql = NULL;
    size_t size = 0;
    snprintf(steps.schema, sizeof steps.schema, "public");
    snprintf(steps.prefix, sizeof steps.prefix, "rowlock_");
    if (rlk_texts_fill(&steps, &postgres) != 0)
        abort();
    FILE *out = open_memstream(&all, &size);
    for (int i = 0; out && i < RLK_STEP_COUNT; i++)
        fputs(steps.sql[i] ? steps.sql[i] : "", out);
    if (!out || fclose(out) != 0 || asprintf(&sql, FUNCTIONS, all) < 0)
        abort();
    free(all);
    return sql;
}

/* A database of its own, since its settings apply to all its connections. */
static char *set_traps(const char *url)
{
    char *ours = NULL, *functions_sql = functions();
    size_t server = (size_t)(strrchr(url, '/') - url);
    exec(url, "DROP DATABASE IF EXISTS rowlock_traps");
    exec(url, "CREATE DATABASE rowlock_traps");
    if (asprintf(&ours, "%.*s/rowlock_traps", (int)server, url) < 0)
        abort();
    exec(ours, "CREATE SCHEMA evil; CREATE SCHEMA branch; "
               "CREATE FUNCTION evil.one(int) RETURNS bool LANGUAGE sql AS 'SELECT true'");
    exec(ours, TYPES);
    exec(ours, OPERATORS);
    exec(ours, functions_sql);
    exec(ours, "ALTER DATABASE rowlock_traps SET search_path = public, evil; "
               "ALTER DATABASE rowlock_traps SET log_statement = 'all'");
    free(functions_sql);
    return ours;
}

/* ---- what the server's log tells */

static FILE *log_file;

static void open_log(void)
{
    OWNED(text) char *path = NULL;
    if (asprintf(&path, "%s/log", getenv("ROWLOCK_TEST_POSTGRES_DIR")) < 0 ||
        !(log_file = fopen(path, "r")) || fseek(log_file, 0, SEEK_END) != 0)
        raw_failed("the server's log", path);
}

/* Reads on to the end. */
static void read_log(bool sent[RLK_STEP_COUNT])
{
    char *line = NULL, *word;
    size_t cap = 0;
    int taken = 0;
    for (int i = 0; i < RLK_STEP_COUNT; i++)
        sent[i] = false;
    while (getline(&line, &cap, log_file) > 0) {
        if (strstr(line, "is only a shell") || strstr(line, "requires an OVER clause")) {
            tap_note("%s", line);
            taken++;
        }
        for (word = line; (word = strstr(word, "/* rowlock:")); word += 11)
            for (int i = RLK_STEP_NONE + 1; i < RLK_STEP_COUNT; i++) {
                size_t length = strlen(rlk_steps[i].name);
                if (!strncmp(word + 11, rlk_steps[i].name, length) && word[11 + length] == ' ')
                    sent[i] = true;
            }
    }
    free(line);
    tap_is_int(taken, 0, "no operator and no function of another schema was taken");
}

static bool is_pooled(const char *url)
{
    void *session = raw_postgres.open(url);
    bool pooled = raw_postgres.pooled(session) || strstr(url, "rowlock_pooler=");
    raw_postgres.close(session);
    return pooled;
}

/* ---- each step by itself */

/* The types that the server has found for the parameters decide what they are. */
static const char VALUES[] =
    "SELECT pg_catalog.string_agg(CASE t.type WHEN 'text'::text THEN '''x''' WHEN 'boolean'::text "
    "THEN 'false' WHEN 'text[]'::text THEN '''{x}''' ELSE CASE WHEN pg_catalog.right(t.type, 2) = "
    "'[]'::text THEN '''{1}''' ELSE '''1''' END END, ', '::text) "
    "FROM pg_catalog.pg_prepared_statements p, LATERAL (SELECT u::text AS type FROM "
    "pg_catalog.unnest(p.parameter_types) u) t";

/* A holder and a waiter of what the steps are about. */
static const char ROWS[] =
    "INSERT INTO rowlock_tokens (name, token, granted, permits) VALUES ('x', 1, 1, 0); "
    "INSERT INTO rowlock_locks (name, slot, permits, owner, token, request, acquired, expires, "
    "ttl, host, pid, program, note) VALUES ('x', 1, 1, 'x', 1, 1, 1, 1, 1, '', 1, '', ''); "
    "INSERT INTO rowlock_waiters (name, ticket, request, permits, owner, since, expires, wakeup) "
    "VALUES ('x', 1, 1, 1, 'x', 1, 9000000000000000, 'x')";

static void run_step(void *session, const char *name, const char *text)
{
    char reason[400] = "", values[600] = "", *sql = NULL;
    bool several = rlk_statement_length(text) < strlen(text), good;
    raw_run(&raw_postgres, session, "BEGIN");
    if (asprintf(&sql, "%s%s", several ? "" : "PREPARE step AS ", text) < 0)
        abort();
    good = raw_postgres.run(session, sql, reason, sizeof reason);
    free(sql);
    if (good && !several) {
        bool any = raw_postgres.ask(session, VALUES, values, sizeof values);
        if (asprintf(&sql, any ? "EXECUTE step(%s)" : "EXECUTE step%s", values) < 0)
            abort();
        good = raw_postgres.run(session, sql, reason, sizeof reason);
        free(sql);
    }
    raw_run(&raw_postgres, session, "ROLLBACK");
    raw_run(&raw_postgres, session, "DEALLOCATE ALL");
    tap_ok(good, "the step %s runs%s%s", name, good ? "" : ": ", reason);
}

/* The library completes templates. The rest of this test sends them. Installing has sent SCHEMA. */
static void each_step(const struct contract *c)
{
    OWNED(session) void *session = c->raw->open(c->url);
    for (int i = RLK_STEP_SCHEMA + 1; i < RLK_STEP_COUNT; i++)
        if (steps.sql[i] && !(rlk_steps[i].is & RLK_TEMPLATE))
            run_step(session, rlk_steps[i].name, steps.sql[i]);
}

/* ---- what the other subjects do not reach, or not soon */

static void keeper(const struct contract *c)
{
    OWNED(keeper) rowlock_keeper *keeper = NULL;
    OWNED(db) rowlock_db *db = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "kept");
    tap_is_int(rowlock_keeper_open(db, &keeper), ROWLOCK_OK, "a keeper");
    tap_ok(renewed_by(db, lock, keeper), "is given a lock, and renews it");
}

static void transaction(const struct contract *c, const char *isolation)
{
    OWNED(scene) struct scene s = scene_open(c, isolation, "traps", true);
    scene_hold(&s);
    scene_begin(&s);
    scene_guard(&s, ROWLOCK_OK, "a guard");
    is_result(s.tx, rowlock_fence(s.tx, "resource", 1), ROWLOCK_OK, "a fence");
    is_result(s.tx, rowlock_tx_release(s.lock, s.tx), ROWLOCK_OK, "a release inside");
    OWNED(lock) rowlock_lock *inside = must_lock(s.tx, "inside");
    is_result(s.tx, rowlock_tx_acquire(inside, s.tx, NULL), ROWLOCK_OK, "a grant inside");
    scene_run(&s, "COMMIT");
}

static rowlock_lock *lock_of(rowlock_db *db, const char *name, int32_t permits, int want)
{
    rowlock_lock *lock = must_lock(db, name);
    is_result(db, rowlock_acquire(lock, OPTIONS(acquire, .permits = permits)), want,
              "permits %d of '%s'", (int)permits, name);
    return lock;
}

/* Two that share and one that is kept out; all of several locks, or none; a grant taken away. */
static void others(const struct contract *c)
{
    rowlock_db *db[] = {must_open(c->url), must_open(c->url), must_open(c->url)};
    rowlock_lock *lock[] = {lock_of(db[0], "shared", ROWLOCK_SHARED, ROWLOCK_OK),
                            lock_of(db[1], "shared", ROWLOCK_SHARED, ROWLOCK_OK),
                            lock_of(db[2], "shared", 0, ROWLOCK_BUSY)};
    rowlock_lock *all[] = {must_lock(db[0], "one"), must_lock(db[0], "two")};
    OWNED(session) void *session = c->raw->open(c->url);
    rowlock_lock *none[] = {must_lock(db[1], "one"), must_lock(db[1], "none")};
    is_result(db[0], rowlock_acquire_all(all, 2, NULL, NULL), ROWLOCK_OK, "all of two");
    is_result(db[1], rowlock_acquire_all(none, 2, NULL, NULL), ROWLOCK_BUSY, "none of two");
    is_result(db[0], rowlock_release(all[0]), ROWLOCK_OK, "one is free");
    raw_run(c->raw, session, "BEGIN; SELECT FROM rowlock_tokens WHERE name = 'one' FOR UPDATE");
    is_result(db[1], rowlock_acquire_all(none, 2, NULL, NULL), ROWLOCK_BUSY, "and being granted");
    raw_run(c->raw, session, "COMMIT");
    is_result(db[1], rowlock_break(db[1], "two", 0, NULL), ROWLOCK_OK, "the other is taken away");
    close_locks(lock[0], lock[1], lock[2], all[0], all[1], none[0], none[1]);
    close_dbs(db[0], db[1], db[2]);
}

/* Runs the calls of housekeeping that a document shows. A procedure with other types fits better
 * than ours if an argument has no type. */
static void documented(const struct contract *c, const char *path)
{
    static const char call[] = "CALL public.rowlock_housekeeping(";
    char line[500], reason[300];
    int calls = 0;
    void *session = raw_postgres.open(c->url);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        char *at = strstr(line, call), *end = at ? strchr(at, ')') : NULL;
        if (!end)
            continue;
        end[1] = '\0';
        tap_ok(strstr(at, "::integer, ") && strstr(at, "::integer)"), "%s: %s is typed", path, at);
        tap_ok(raw_postgres.run(session, at, reason, sizeof reason), "and runs");
        calls++;
    }
    tap_ok(calls > 0, "%s calls it", path);
    if (file)
        fclose(file);
    raw_postgres.close(session);
}

static void housekeeping(const struct contract *c)
{
    static const char *const types[] = {"integer, text", "text, text", "text, integer"};
    for (int i = 0; i < COUNT(types); i++)
        exec_on(c,
                "CREATE PROCEDURE public.rowlock_housekeeping(%s) LANGUAGE plpgsql AS "
                "'BEGIN RAISE EXCEPTION ''trap''; END'",
                types[i]);
    documented(c, "docs/OPERATIONS.md");
    documented(c, "docs/man/rowlock-sweep.1");
    documented(c, "sql/postgres/install/rowlock_housekeeping.sql");
    for (int i = 0; i < COUNT(types); i++)
        exec_on(c, "DROP PROCEDURE public.rowlock_housekeeping(%s)", types[i]);
}

static void operators(const struct contract *c)
{
    int64_t highest = 0;
    OWNED(db) rowlock_db *db = must_open(c->url);
    is_result(db, rowlock_raise_tokens(db, 1000, &highest), ROWLOCK_OK, "tokens are raised");
    is_result(db, rowlock_sweep(db, NULL, NULL), ROWLOCK_OK, "swept and folded");
    is_result(db, rowlock_once_sweep(db, 0, 0, NULL), ROWLOCK_OK, "keys too");
    housekeeping(c);
}

/* On an adopted session with temporary tables of our names, which come before all schemas. */
static void temporary(const struct contract *c)
{
    static const char *const names[] = {"locks", "tokens", "waiters", "meta"};
    OWNED(session) void *session = c->raw->open(c->url);
    for (int i = 0; i < COUNT(names); i++)
        raw_run(c->raw, session, "CREATE TEMPORARY TABLE rowlock_%s (trap int)", names[i]);
    raw_run(c->raw, session, "CREATE TEMPORARY TABLE pg_class (trap int)");
    OWNED(db) rowlock_db *db = must_adopt(c->raw, session, NULL);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "temporary");
    rowlock_verdict worst = ROWLOCK_FINE;
    is_result(db, rowlock_install(db), ROWLOCK_OK, "temporary tables: install");
    is_result(db, rowlock_check(db, NULL, NULL, &worst), ROWLOCK_OK, "check");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "acquire");
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_OK, "renew");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "release");
}

static rowlock_table *trap_rows(const struct site *s, const char *type, const char *version)
{
    site_table(s, "trap_rows",
               textf("id %s PRIMARY KEY, n INT, version %s NOT NULL", type, version));
    site_run(s, "INSERT INTO trap_rows VALUES ('a', 1, 1), ('b', 1, 1), ('c', 1, 1)");
    return must_open_table(s, "trap_rows", NAMES("n"));
}

/* Types without operators of their own: they use those of another type, or operators in the schema
 * of an extension. */
static void one_key(const struct contract *c, const char *type, const char *version)
{
    OWNED(site) struct site s = site_open(c);
    OWNED(table) rowlock_table *t = trap_rows(&s, type, version);
    const rowlock_value key = rowlock_text("b"), n = rowlock_int(7);
    rowlock_change change = {.key = &key, .values = &n, .version = 1};
    becomes(&s, t, UPDATE, change, ROWLOCK_OK, 2, type);
}

static int raise_n(void *context, const rowlock_row *row, rowlock_value *values)
{
    values[0] = rowlock_int(values[0].number + 1);
    return 0;
}

static int ignore_row(void *context, size_t index, const rowlock_row *row)
{
    return 0;
}

static void walk(const struct contract *c)
{
    const rowlock_value two[] = {rowlock_text("a"), rowlock_text("b")};
    OWNED(site) struct site s = site_open(c);
    OWNED(table) rowlock_table *t = trap_rows(&s, "varchar(9)", "BIGINT");
    is_result(s.db, walk_table(t, WALK(.name = "traps", .each = raise_n, .chunk = 2), NULL),
              ROWLOCK_OK, "a walk");
    site_finds(&s, "3", "by all rows", "SELECT count(*) FROM trap_rows WHERE n = 2");
    is_result(s.db, rowlock_read_many(t, two, 2, 0, ignore_row, NULL), ROWLOCK_OK, "two are read");
}

static void keys(const struct contract *c)
{
    exec_on(c, "CREATE TYPE trap_enum AS ENUM ('a', 'b', 'c')");
    exec_on(c, "CREATE DOMAIN trap_text AS varchar(10)");
    exec_on(c, "CREATE DOMAIN trap_int AS bigint");
    one_key(c, "varchar(5)", "smallint");
    one_key(c, "char(1)", "int");
    one_key(c, "name", "bigint");
    one_key(c, "trap_enum", "bigint");
    one_key(c, "trap_text", "trap_int");
    if (int_on(c, "SELECT count(*) FROM pg_available_extensions WHERE name = 'citext'")) {
        exec_on(c, "CREATE EXTENSION citext SCHEMA public");
        one_key(c, "citext", "bigint");
    }
}

static void all_were_run(const struct contract *c)
{
    bool sent[RLK_STEP_COUNT];
    char branches[4000] = "";
    OWNED(session) void *session = c->raw->open(c->url);
    read_log(sent);
    for (int i = RLK_STEP_NONE + 1; i < RLK_STEP_COUNT; i++)
        tap_ok(sent[i] || !steps.sql[i] || i == RLK_STEP_GRANTS /* is printed */,
               "the step %s was sent", rlk_steps[i].name);
    c->raw->ask(
        session,
        "SELECT pg_catalog.string_agg(pg_catalog.left(sequencename::text,26), ', '::text) FROM "
        "pg_catalog.pg_sequences WHERE schemaname = 'branch'::name AND last_value IS NULL",
        branches, sizeof branches);
    tap_is_str(branches, "", "each branch of each routine was run");
}

/* What a test asks in its own session does not concern us. */
static void *open_without_traps(const char *url)
{
    void *session = raw_postgres.open(url);
    raw_run(&raw_postgres, session, "SET search_path = public");
    return session;
}

static void subjects(const struct contract *traps)
{
    static struct raw raw;
    struct contract c = *traps;
    c.raw = &raw;
    raw = raw_postgres;
    raw.open = open_without_traps;
    contract_basics(&c);
    contract_cycle(&c);
    contract_versions(&c);
    contract_batches(&c);
    contract_types(&c);
}

static void none_taken(const struct contract *c)
{
    const char *const *isolation = scene_isolations(c);
    temporary(c);
    exec(c->url, BRANCHES);
    each_step(c);
    exec(c->url, ROWS);
    each_step(c);
    exec(c->url, "TRUNCATE rowlock_locks, rowlock_waiters, rowlock_tokens");
    subjects(c);
    keeper(c);
    keys(c);
    walk(c);
    scene_table(c);
    for (; *isolation; isolation++)
        transaction(c, *isolation);
    scene_drop_table(c);
    others(c);
    operators(c);
    /* It makes the routines again, without the sequences. */
    OWNED(db) rowlock_db *db = must_open(c->url);
    is_result(db, rowlock_upgrade(db, NULL), ROWLOCK_OK, "an upgrade");
    all_were_run(c);
}

static const char *const only_own[] = {"own", NULL};

int main(void)
{
    const char *url = getenv(raw_postgres.url_env);
    if (!url || !*url || !raw_is_ours(&raw_postgres))
        return tap_skip_all("there is no private PostgreSQL server, whose log can be read");
    if (is_pooled(url))
        return tap_skip_all("a pooler keeps sessions, and the database with them");
    open_log();
    OWNED(text) char *ours = set_traps(url);
    int status = contract_run(&(struct contract){
        .database = raw_postgres.name,
        .raw = &raw_postgres,
        .url = ours,
        .has_server = true,
        .begin = "BEGIN",
        .lock = "FOR UPDATE",
        .only = only_own,
        .own = none_taken,
    });
    db_exec(&raw_postgres, url, "DROP DATABASE rowlock_traps");
    rlk_texts_clear(&steps);
    return status;
}
