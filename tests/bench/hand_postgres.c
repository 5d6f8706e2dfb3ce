/* SPDX-License-Identifier: MIT
 *
 * Lock loops as one would write them by hand with libpq: prepared statements, and no safety but
 * what the row work itself gives.
 */
#include "bench.h"

#include <libpq-fe.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HAND "rowlock_bench_hand"
#define OURS "rowlock_bench_ours"
#define NOW "(date_part('epoch', clock_timestamp()) * 1000000)::bigint"
#define COLUMNS                                                                                 \
    "(name, slot, permits, owner, token, attempt, acquired, expires, ttl, host, pid, program, " \
    "note)"

enum statement {
    BEGIN,
    BUMP,
    INSERT,
    COMMIT,
    SINGLE,
    DELETE,
    LOOK,
    RENEW,
    SWEEP,
    RENEW_ALL,
    ATTEMPT,
    STATEMENTS
};
enum { NAMES, SLOTS, OWNERS, TOKENS, ARRAYS };

/* $1 name  $2 owner  $3 token or attempt  $4 ttl  $5 host  $6 pid  $7 program  $8 token */
static const struct {
    const char *id, *sql;
    int values;
} statements[STATEMENTS] = {
    [BEGIN] = {"begin", "BEGIN", 0},
    [BUMP] = {"bump",
              "UPDATE rowlock_tokens SET token = token + 1, granted = " NOW " WHERE name = $1"
              " RETURNING token",
              1},
    [INSERT] = {"insert",
                "INSERT INTO rowlock_locks " COLUMNS
                " SELECT $1, 0, 0, $2, $8::bigint, $3::bigint, now,"
                " now + $4::bigint, $4::bigint, $5, $6::bigint, $7, ''"
                " FROM (SELECT " NOW " AS now) c RETURNING expires",
                8},
    [COMMIT] = {"commit", "COMMIT", 0},
    [SINGLE] =
        {"single",
         "WITH c AS (INSERT INTO rowlock_tokens AS t (name, token, granted) VALUES ($1, 1, " NOW ")"
         " ON CONFLICT (name) DO UPDATE SET token = t.token + 1, granted = excluded.granted"
         " RETURNING token, granted)"
         " INSERT INTO rowlock_locks " COLUMNS " SELECT $1, 0, 0, $2, token, $3::bigint, granted,"
         " granted + $4::bigint, $4::bigint, $5, $6::bigint, $7, '' FROM c"
         " RETURNING token, expires",
         7},
    [DELETE] =
        {"delete",
         "DELETE FROM rowlock_locks WHERE name = $1 AND slot = 0 AND owner = $2 AND token = $3", 3},
    [LOOK] = {"look",
              "SELECT name, slot, owner, token, acquired, expires, ttl, renewals, host, pid,"
              " program, note FROM rowlock_locks WHERE name = $1 AND slot = 0",
              1},
    [RENEW] = {"renew",
               "UPDATE rowlock_locks SET expires = " NOW " + $4::bigint, renewals = renewals + 1"
               " WHERE name = $1 AND slot = 0 AND owner = $2 AND token = $3 RETURNING expires",
               4},
    [SWEEP] = {"sweep",
               "DELETE FROM rowlock_locks WHERE ctid = ANY (ARRAY(SELECT ctid FROM rowlock_locks"
               " WHERE name > $1 AND expires <= $2::bigint ORDER BY name, slot LIMIT $3))"
               " RETURNING name",
               3},
    [RENEW_ALL] = {"renew_all",
                   "UPDATE rowlock_locks l SET expires = " NOW " + $5::bigint,"
                   " renewals = l.renewals + 1"
                   " FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[])"
                   " AS w (name, slot, owner, token) WHERE l.name = w.name AND l.slot = w.slot"
                   " AND l.owner = w.owner AND l.token = w.token",
                   5},
    [ATTEMPT] = {"attempt",
                 "INSERT INTO rowlock_locks " COLUMNS
                 " SELECT $1, 0, 0, $2, $8::bigint, $3::bigint, now,"
                 " now + $4::bigint, $4::bigint, $5, $6::bigint, $7, ''"
                 " FROM (SELECT " NOW " AS now) c ON CONFLICT DO NOTHING",
                 8},
};

struct session {
    PGconn *conn;
    char name[300], owner[40], attempt[24], ttl[24], host[256], pid[24], token[24];
    char *arrays[ARRAYS]; /* what learn() found, as parameters */
    char standing[24];
};

static PGresult *check(PGconn *conn, PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        die("PostgreSQL: %s", PQerrorMessage(conn));
    return result;
}

static void run(PGconn *conn, const char *sql)
{
    PQclear(check(conn, PQexec(conn, sql)));
}

static PGresult *execute(struct session *s, enum statement which, const char *const *values)
{
    return check(s->conn, PQexecPrepared(s->conn, statements[which].id, statements[which].values,
                                         values, NULL, NULL, 0));
}

/* The tables are found by the search path. */
static void enter_schema(PGconn *conn, const char *schema)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SET search_path = %s", schema);
    run(conn, sql);
}

static PGconn *connect_to(const char *url)
{
    PGconn *conn = PQconnectdb(url);
    if (PQstatus(conn) != CONNECTION_OK)
        die("PostgreSQL: %s", PQerrorMessage(conn));
    run(conn, "SET client_min_messages = warning");
    return conn;
}

static void drop_places(const char *url)
{
    PGconn *conn = connect_to(url);
    run(conn, "DROP SCHEMA IF EXISTS " OURS ", " HAND " CASCADE");
    PQfinish(conn);
}

static void make_places(const char *url, struct place *ours, struct place *theirs)
{
    drop_places(url);
    PGconn *conn = connect_to(url);
    run(conn, "CREATE SCHEMA " OURS);
    run(conn, "CREATE SCHEMA " HAND);
    PQfinish(conn);
    snprintf(ours->url, sizeof ours->url, "%s", url);
    *theirs = *ours;
    ours->schema = OURS;
    theirs->schema = HAND;
}

static void prepare_all(PGconn *conn)
{
    for (int i = 0; i < STATEMENTS; i++)
        PQclear(check(conn, PQprepare(conn, statements[i].id, statements[i].sql, 0, NULL)));
}

static void make_counter(struct session *s)
{
    const char *values[] = {s->name};
    PQclear(check(s->conn,
                  PQexecParams(s->conn,
                               "INSERT INTO rowlock_tokens (name, token, granted) VALUES ($1, 0, 0)"
                               " ON CONFLICT (name) DO NOTHING",
                               1, NULL, values, NULL, NULL, 0)));
}

static void *open_session(const struct place *place, const char *name)
{
    struct session *s = calloc(1, sizeof *s);
    if (!s)
        die("out of memory");
    s->conn = connect_to(place->url);
    enter_schema(s->conn, place->schema);
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->owner, sizeof s->owner, "%032d", rand());
    snprintf(s->attempt, sizeof s->attempt, "%d", rand());
    snprintf(s->ttl, sizeof s->ttl, "%d", LEASE_MS * 1000);
    gethostname(s->host, sizeof s->host - 1);
    snprintf(s->pid, sizeof s->pid, "%d", (int)getpid());
    snprintf(s->token, sizeof s->token, "0");
    prepare_all(s->conn);
    make_counter(s);
    return s;
}

static void close_session(void *session)
{
    struct session *s = session;
    for (int i = 0; i < ARRAYS; i++)
        free(s->arrays[i]);
    PQfinish(s->conn);
    free(s);
}

static void describe(void *session, char *out, size_t cap)
{
    struct session *s = session;
    PGresult *r =
        check(s->conn,
              PQexec(s->conn, "SELECT format('PostgreSQL %s, synchronous_commit %s, fsync %s',"
                              " current_setting('server_version'),"
                              " current_setting('synchronous_commit'), current_setting('fsync'))"));
    snprintf(out, cap, "%s", PQgetvalue(r, 0, 0));
    PQclear(r);
}

/* ---- locks */

static void keep_token(struct session *s, const PGresult *r)
{
    if (PQntuples(r) != 1)
        die("PostgreSQL: no token for '%s'", s->name);
    snprintf(s->token, sizeof s->token, "%.23s", PQgetvalue(r, 0, 0));
}

static void insert(struct session *s)
{
    const char *values[] = {s->name, s->owner, s->attempt, s->ttl,
                            s->host, s->pid,   "bench",    s->token};
    PQclear(execute(s, INSERT, values));
}

static void delete (struct session *s)
{
    const char *values[] = {s->name, s->owner, s->token};
    PGresult *r = execute(s, DELETE, values);
    if (strcmp(PQcmdTuples(r), "1") != 0)
        die("PostgreSQL: '%s' was not there", s->name);
    PQclear(r);
}

static void transaction(void *session)
{
    struct session *s = session;
    const char *values[] = {s->name};
    PQclear(execute(s, BEGIN, NULL));
    PGresult *r = execute(s, BUMP, values);
    keep_token(s, r);
    PQclear(r);
    insert(s);
    PQclear(execute(s, COMMIT, NULL));
    delete (s);
}

static void single(void *session)
{
    struct session *s = session;
    const char *values[] = {s->name, s->owner, s->attempt, s->ttl, s->host, s->pid, "bench"};
    PGresult *r = execute(s, SINGLE, values);
    keep_token(s, r);
    PQclear(r);
    delete (s);
}

static void bare(void *session)
{
    insert(session);
    delete (session);
}

static void hold(void *session)
{
    insert(session);
}

static void look(void *session)
{
    struct session *s = session;
    const char *values[] = {s->name};
    PGresult *r = execute(s, LOOK, values);
    if (PQntuples(r) != 1)
        die("PostgreSQL: '%s' is not held", s->name);
    PQclear(r);
}

static void renew(void *session)
{
    struct session *s = session;
    const char *values[] = {s->name, s->owner, s->token, s->ttl};
    PGresult *r = execute(s, RENEW, values);
    if (PQntuples(r) != 1)
        die("PostgreSQL: '%s' is not held", s->name);
    PQclear(r);
}

/* ---- log and sweep */

static int64_t written(void *session)
{
    struct session *s = session;
    PGresult *r =
        check(s->conn, PQexec(s->conn, "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"));
    int64_t bytes = strtoll(PQgetvalue(r, 0, 0), NULL, 10);
    PQclear(r);
    return bytes;
}

/* The first change of a page after a checkpoint logs the page, so that is got over with. */
static void settle(void *session)
{
    struct session *s = session;
    run(s->conn, "CHECKPOINT");
}

static void fill(void *session, int64_t rows)
{
    struct session *s = session;
    char count[24];
    const char *values[] = {count};
    snprintf(count, sizeof count, "%" PRId64, rows);
    PQclear(
        check(s->conn,
              PQexecParams(s->conn,
                           "INSERT INTO rowlock_locks " COLUMNS
                           " SELECT 'expired ' || i, 0, 0, md5(i::text), i, i, 1, 2, 1, 'host', 1,"
                           " 'bench', '' FROM generate_series(1, $1::bigint) i",
                           1, NULL, values, NULL, NULL, 0)));
    run(s->conn, "ANALYZE rowlock_locks");
}

static int64_t sweep(void *session, int64_t now_us)
{
    struct session *s = session;
    char after[300] = "", now[24], batch[24];
    const char *values[] = {after, now, batch};
    int64_t gone = 0;
    int count;
    snprintf(now, sizeof now, "%" PRId64, now_us);
    snprintf(batch, sizeof batch, "%d", BATCH);
    do {
        PGresult *r = execute(s, SWEEP, values);
        count = PQntuples(r);
        gone += count;
        for (int i = 0; i < count; i++)
            if (strcmp(PQgetvalue(r, i, 0), after) > 0)
                snprintf(after, sizeof after, "%s", PQgetvalue(r, i, 0));
        PQclear(r);
    } while (count == BATCH);
    return gone;
}

/* ---- all at once */

static void learn(void *session)
{
    struct session *s = session;
    PGresult *r = check(
        s->conn, PQexec(s->conn, "SELECT array_agg(name), array_agg(slot), array_agg(owner),"
                                 " array_agg(token), count(*)"
                                 " FROM (SELECT * FROM rowlock_locks ORDER BY name, slot) l"));
    for (int i = 0; i < ARRAYS; i++)
        s->arrays[i] = strdup(PQgetvalue(r, 0, i));
    snprintf(s->standing, sizeof s->standing, "%.23s", PQgetvalue(r, 0, ARRAYS));
    PQclear(r);
}

static void renew_all(void *session)
{
    struct session *s = session;
    const char *values[] = {s->arrays[NAMES], s->arrays[SLOTS], s->arrays[OWNERS],
                            s->arrays[TOKENS], s->ttl};
    PGresult *r = execute(s, RENEW_ALL, values);
    if (strcmp(PQcmdTuples(r), s->standing) != 0)
        die("PostgreSQL: %s rows renewed of %s", PQcmdTuples(r), s->standing);
    PQclear(r);
}

static void tidy(void *session)
{
    struct session *s = session;
    run(s->conn, "VACUUM rowlock_locks");
}

/* ---- waiting */

static bool attempt(void *session)
{
    struct session *s = session;
    const char *values[] = {s->name, s->owner, s->attempt, s->ttl,
                            s->host, s->pid,   "bench",    s->token};
    PGresult *r = execute(s, ATTEMPT, values);
    bool done = strcmp(PQcmdTuples(r), "1") == 0;
    PQclear(r);
    return done;
}

static void leave(void *session)
{
    delete (session);
}

static void lock(void *session)
{
    run(((struct session *)session)->conn, "SELECT pg_advisory_lock(4711)");
}

static void unlock(void *session)
{
    run(((struct session *)session)->conn, "SELECT pg_advisory_unlock(4711)");
}

static void ping(void *session)
{
    run(((struct session *)session)->conn, "SELECT 1");
}

static rowlock_db *adopt(const struct place *place, const rowlock_db_options *options, void **conn)
{
    rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    *conn = connect_to(place->url);
    if (rowlock_db_adopt_postgres(&db, *conn, options, &err) != ROWLOCK_OK)
        die("%s: %s", err.action, err.text);
    return db;
}

static void hang_up(void *conn)
{
    PQfinish(conn);
}

static int64_t ask_number(struct session *s, const char *sql)
{
    PGresult *r = check(s->conn, PQexec(s->conn, sql));
    int64_t number = strtoll(PQgetvalue(r, 0, 0), NULL, 10);
    PQclear(r);
    return number;
}

/* Each is a transaction here. Sessions tell of theirs a second later, and when they are idle ten. */
static int64_t count_statements(void *session)
{
    return ask_number(session, "SELECT xact_commit + xact_rollback FROM pg_stat_database"
                               " WHERE datname = current_database()");
}

static int64_t count_connections(void *session)
{
    return ask_number(session, "SELECT count(*) FROM pg_stat_activity"
                               " WHERE backend_type = 'client backend'");
}

const struct hand hand_postgres = {
    .name = "postgres",
    .url_env = "ROWLOCK_TEST_POSTGRES_URL",
    .make_places = make_places,
    .drop_places = drop_places,
    .open = open_session,
    .close = close_session,
    .describe = describe,
    .transaction = transaction,
    .single = single,
    .single_label = "hand-written one statement",
    .single_legend =
        "WITH c AS (upsert of the token) INSERT of the lock row; DELETE: 2 round trips",
    .bare = bare,
    .hold = hold,
    .look = look,
    .renew = renew,
    .written = written,
    .log_name = "WAL",
    .settle = settle,
    .fill = fill,
    .sweep = sweep,
    .sweep_legend = "DELETE of 500 rows found by key order, again and again",
    .learn = learn,
    .renew_all = renew_all,
    .renew_all_legend = "UPDATE … FROM unnest of arrays, which are written once",
    .tidy = tidy,
    .attempt = attempt,
    .leave = leave,
    .lock = lock,
    .unlock = unlock,
    .lock_label = "pg_advisory_lock",
    .ping = ping,
    .adopt = adopt,
    .hang_up = hang_up,
    .statements = count_statements,
    .connections = count_connections,
    .server_dir_env = "ROWLOCK_TEST_POSTGRES_DIR",
};
