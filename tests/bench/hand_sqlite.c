/* SPDX-License-Identifier: MIT
 *
 * Lock loops as one would write them by hand with SQLite: prepared statements, WAL, the same
 * durability, and no safety but what the row work itself gives.
 */
#include "bench.h"

#include <sqlite3.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOW                                            \
    "CAST(strftime('%s', 'now') AS INTEGER) * 1000000" \
    " + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000"
#define COLUMNS                                                                                 \
    "(name, slot, permits, owner, token, attempt, acquired, expires, ttl, host, pid, program, " \
    "note)"

enum statement {
    BEGIN,
    BUMP,
    INSERT,
    COMMIT,
    DELETE,
    LOOK,
    RENEW,
    SWEEP,
    ATTEMPT,
    PING,
    STATEMENTS
};
enum { PATIENCE_MS = 20000 };

/* ?1 name  ?2 owner  ?3 token  ?4 ttl  ?5 host  ?6 pid */
static const char *const statements[STATEMENTS] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [BUMP] = "UPDATE rowlock_tokens SET token = token + 1, granted = " NOW
             " WHERE name = ?1 RETURNING token",
    [INSERT] = "INSERT INTO rowlock_locks " COLUMNS
               " SELECT ?1, 0, 0, ?2, ?3, 4711, now, now + ?4, ?4, ?5, ?6, 'bench', ''"
               " FROM (SELECT " NOW " AS now) RETURNING expires",
    [COMMIT] = "COMMIT",
    [DELETE] =
        "DELETE FROM rowlock_locks WHERE name = ?1 AND slot = 0 AND owner = ?2 AND token = ?3",
    [LOOK] =
        "SELECT name, slot, owner, token, acquired, expires, ttl, renewals, host, pid, program,"
        " note FROM rowlock_locks WHERE name = ?1 AND slot = 0",
    [RENEW] = "UPDATE rowlock_locks SET expires = " NOW " + ?4, renewals = renewals + 1"
              " WHERE name = ?1 AND slot = 0 AND owner = ?2 AND token = ?3 RETURNING expires",
    [SWEEP] =
        "DELETE FROM rowlock_locks WHERE (name, slot) IN (SELECT name, slot FROM rowlock_locks"
        " WHERE expires <= ?1 ORDER BY name, slot LIMIT ?2)",
    [ATTEMPT] = "INSERT OR IGNORE INTO rowlock_locks " COLUMNS
                " SELECT ?1, 0, 0, ?2, ?3, 4711, now, now + ?4, ?4, ?5, ?6, 'bench', ''"
                " FROM (SELECT " NOW " AS now)",
    [PING] = "SELECT version FROM rowlock_meta",
};

struct session {
    sqlite3 *db;
    sqlite3_stmt *kept[STATEMENTS];
    char name[300], owner[40], host[256], file[600];
    sqlite3_int64 token;
    struct lease *leases; /* what learn() found */
    int standing;
};

struct lease {
    char name[256], owner[256];
    sqlite3_int64 token;
};

static void check(sqlite3 *db, int code)
{
    if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW)
        die("SQLite: %s", sqlite3_errmsg(db));
}

static void run(sqlite3 *db, const char *sql)
{
    check(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

/* ---- sessions */

static const char *file_of(const char *url)
{
    return strchr(url, ':') + 1;
}

static void remove_files(const char *file)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char path[700];
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s%s", file, ends[i]);
        unlink(path);
    }
}

/* Each side has a file of its own. */
static void make_places(const char *url, struct place *ours, struct place *theirs)
{
    snprintf(ours->url, sizeof ours->url, "%s.bench-ours", url);
    snprintf(theirs->url, sizeof theirs->url, "%s.bench-hand", url);
    ours->schema = theirs->schema = NULL;
    remove_files(file_of(ours->url));
    remove_files(file_of(theirs->url));
}

static void drop_places(const char *url)
{
    struct place ours, theirs;
    make_places(url, &ours, &theirs);
}

static void *open_session(const struct place *place, const char *name)
{
    struct session *s = calloc(1, sizeof *s);
    if (!s)
        die("out of memory");
    snprintf(s->file, sizeof s->file, "%s", file_of(place->url));
    check(s->db, sqlite3_open(s->file, &s->db));
    check(s->db, sqlite3_busy_timeout(s->db, PATIENCE_MS));
    run(s->db, "PRAGMA journal_mode = WAL");
    run(s->db, "PRAGMA synchronous = FULL");
    for (int i = 0; i < STATEMENTS; i++)
        check(s->db, sqlite3_prepare_v3(s->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT,
                                        &s->kept[i], NULL));
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->owner, sizeof s->owner, "%032d", rand());
    gethostname(s->host, sizeof s->host - 1);
    char *sql = sqlite3_mprintf("INSERT INTO rowlock_tokens (name, token, granted) VALUES (%Q, 0, "
                                "0) ON CONFLICT DO NOTHING",
                                name);
    run(s->db, sql);
    sqlite3_free(sql);
    return s;
}

static void close_session(void *session)
{
    struct session *s = session;
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(s->kept[i]);
    sqlite3_close(s->db);
    free(s->leases);
    free(s);
}

static void describe(void *session, char *out, size_t cap)
{
    (void)session;
    snprintf(out, cap, "SQLite %s, journal_mode wal, synchronous full", sqlite3_libversion());
}

/* ---- locks */

static void bind_all(struct session *s, enum statement which)
{
    sqlite3_stmt *stmt = s->kept[which];
    int count = sqlite3_bind_parameter_count(stmt);
    if (count >= 1)
        check(s->db, sqlite3_bind_text(stmt, 1, s->name, -1, SQLITE_STATIC));
    if (count >= 2)
        check(s->db, sqlite3_bind_text(stmt, 2, s->owner, -1, SQLITE_STATIC));
    if (count >= 3)
        check(s->db, sqlite3_bind_int64(stmt, 3, s->token));
    if (count >= 4)
        check(s->db, sqlite3_bind_int64(stmt, 4, LEASE_MS * INT64_C(1000)));
    if (count >= 6) {
        check(s->db, sqlite3_bind_text(stmt, 5, s->host, -1, SQLITE_STATIC));
        check(s->db, sqlite3_bind_int64(stmt, 6, getpid()));
    }
}

/* The first column of the only row, or how many rows changed if there are no columns. */
static sqlite3_int64 execute(struct session *s, enum statement which)
{
    sqlite3_stmt *stmt = s->kept[which];
    bind_all(s, which);
    sqlite3_int64 first = 0;
    int code = sqlite3_step(stmt);
    for (; code == SQLITE_ROW; code = sqlite3_step(stmt))
        first = sqlite3_column_int64(stmt, 0);
    check(s->db, code);
    if (sqlite3_column_count(stmt) == 0)
        first = sqlite3_changes(s->db);
    sqlite3_reset(stmt);
    return first;
}

static void delete (struct session *s)
{
    if (execute(s, DELETE) != 1)
        die("SQLite: '%s' was not there", s->name);
}

static void transaction(void *session)
{
    struct session *s = session;
    execute(s, BEGIN);
    s->token = execute(s, BUMP);
    execute(s, INSERT);
    execute(s, COMMIT);
    delete (s);
}

static void bare(void *session)
{
    execute(session, INSERT);
    delete (session);
}

static void hold(void *session)
{
    execute(session, INSERT);
}

static void look(void *session)
{
    struct session *s = session;
    sqlite3_stmt *stmt = s->kept[LOOK];
    bind_all(s, LOOK);
    int code = sqlite3_step(stmt);
    if (code != SQLITE_ROW)
        die("SQLite: '%s' is not held", s->name);
    for (int i = 0; i < sqlite3_column_count(stmt); i++)
        sqlite3_column_text(stmt, i);
    sqlite3_reset(stmt);
}

static void renew(void *session)
{
    struct session *s = session;
    if (execute(s, RENEW) == 0)
        die("SQLite: '%s' is not held", s->name);
}

/* ---- log and sweep */

/* The size of the -wal file, which begins anew when settle() has copied it into the database. */
static int64_t written(void *session)
{
    struct session *s = session;
    char path[700];
    struct stat status;
    snprintf(path, sizeof path, "%s-wal", s->file);
    return stat(path, &status) == 0 ? status.st_size : 0;
}

static void settle(void *session)
{
    struct session *s = session;
    run(s->db, "PRAGMA wal_checkpoint(TRUNCATE)");
}

static void fill(void *session, int64_t rows)
{
    struct session *s = session;
    char *sql = sqlite3_mprintf(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %lld)"
        " INSERT INTO rowlock_locks " COLUMNS
        " SELECT 'expired ' || i, 0, 0, printf('%%032d', i), i,"
        " i, 1, 2, 1, 'host', 1, 'bench', '' FROM n",
        (long long)rows);
    run(s->db, sql);
    sqlite3_free(sql);
}

static int64_t sweep(void *session, int64_t now_us)
{
    struct session *s = session;
    sqlite3_stmt *stmt = s->kept[SWEEP];
    int64_t gone = 0;
    int count;
    check(s->db, sqlite3_bind_int64(stmt, 1, now_us));
    check(s->db, sqlite3_bind_int(stmt, 2, BATCH));
    do {
        check(s->db, sqlite3_step(stmt));
        count = sqlite3_changes(s->db);
        gone += count;
        sqlite3_reset(stmt);
    } while (count == BATCH);
    return gone;
}

/* ---- all at once */

static void learn(void *session)
{
    struct session *s = session;
    sqlite3_stmt *stmt = NULL;
    int room = 0;
    check(s->db, sqlite3_prepare_v2(
                     s->db, "SELECT name, owner, token FROM rowlock_locks ORDER BY name, slot", -1,
                     &stmt, NULL));
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        if (s->standing == room) {
            room = 2 * room + 1000;
            s->leases = realloc(s->leases, (size_t)room * sizeof *s->leases);
        }
        if (!s->leases)
            die("out of memory");
        struct lease *lease = &s->leases[s->standing++];
        snprintf(lease->name, sizeof lease->name, "%s", (const char *)sqlite3_column_text(stmt, 0));
        snprintf(lease->owner, sizeof lease->owner, "%s",
                 (const char *)sqlite3_column_text(stmt, 1));
        lease->token = sqlite3_column_int64(stmt, 2);
    }
    check(s->db, sqlite3_finalize(stmt));
}

static void renew_one(struct session *s, const struct lease *lease)
{
    sqlite3_stmt *stmt = s->kept[RENEW];
    check(s->db, sqlite3_bind_text(stmt, 1, lease->name, -1, SQLITE_STATIC));
    check(s->db, sqlite3_bind_text(stmt, 2, lease->owner, -1, SQLITE_STATIC));
    check(s->db, sqlite3_bind_int64(stmt, 3, lease->token));
    check(s->db, sqlite3_bind_int64(stmt, 4, LEASE_MS * INT64_C(1000)));
    if (sqlite3_step(stmt) != SQLITE_ROW)
        die("SQLite: '%s' is not held", lease->name);
    sqlite3_reset(stmt);
}

static void renew_all(void *session)
{
    struct session *s = session;
    execute(s, BEGIN);
    for (int i = 0; i < s->standing; i++)
        renew_one(s, &s->leases[i]);
    execute(s, COMMIT);
}

/* ---- waiting */

static bool attempt(void *session)
{
    return execute(session, ATTEMPT) == 1;
}

static void leave(void *session)
{
    delete (session);
}

static void ping(void *session)
{
    execute(session, PING);
}

static rowlock_db *adopt(const struct place *place, const rowlock_db_options *options, void **conn)
{
    rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    sqlite3 *file = NULL;
    check(file, sqlite3_open(file_of(place->url), &file));
    check(file, sqlite3_busy_timeout(file, PATIENCE_MS));
    *conn = file;
    if (rowlock_db_adopt_sqlite(&db, file, options, &err) != ROWLOCK_OK)
        die("%s: %s", err.action, err.text);
    return db;
}

static void hang_up(void *conn)
{
    sqlite3_close(conn);
}

const struct hand hand_sqlite = {
    .name = "sqlite",
    .url_env = "ROWLOCK_TEST_SQLITE_URL",
    .make_places = make_places,
    .drop_places = drop_places,
    .open = open_session,
    .close = close_session,
    .describe = describe,
    .transaction = transaction,
    .bare = bare,
    .hold = hold,
    .look = look,
    .renew = renew,
    .written = written,
    .log_name = "WAL file",
    .settle = settle,
    .fill = fill,
    .sweep = sweep,
    .sweep_legend = "DELETE … IN (SELECT … LIMIT 500), again and again",
    .learn = learn,
    .renew_all = renew_all,
    .renew_all_legend = "BEGIN; a prepared UPDATE for each row; COMMIT",
    .attempt = attempt,
    .leave = leave,
    .ping = ping,
    .adopt = adopt,
    .hang_up = hang_up,
};
