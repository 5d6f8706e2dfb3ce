/* SPDX-License-Identifier: MIT
 *
 * Steps that people write by hand with SQLite: prepared statements, WAL, the same durability. */
#include "hand.h"

#include <sqlite3.h>

#include <sys/stat.h>

static void check(sqlite3 *db, int code)
{
    if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW)
        die("SQLite: %s", sqlite3_errmsg(db));
}

/* Each side has a file. */
static void make_places(const char *url, struct place *ours, struct place *theirs)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    struct place *places[] = {ours, theirs};
    char path[700];
    for (int i = 0; i < 2; i++) {
        snprintf(places[i]->url, sizeof places[i]->url, "%s.bench-%s", url, i ? "hand" : "ours");
        places[i]->schema = NULL;
        for (int k = 0; k < 4; k++) {
            snprintf(path, sizeof path, "%s%s", strchr(places[i]->url, ':') + 1, ends[k]);
            unlink(path);
        }
    }
}

static struct answer step_through(struct session *s, const struct step *step, sqlite3_stmt *stmt)
{
    struct value cells[COLUMNS_MAX];
    int64_t rows = 0;
    int code, count = sqlite3_column_count(stmt);
    while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
        for (int i = 0; i < count; i++) {
            bool number = sqlite3_column_type(stmt, i) == SQLITE_INTEGER;
            cells[i].kind = number ? INT_VALUE : TEXT_VALUE;
            cells[i].number = number ? sqlite3_column_int64(stmt, i) : 0;
            cells[i].text = number ? NULL : (const char *)sqlite3_column_text(stmt, i);
        }
        hand_keep(s, step, cells, count);
        rows++;
    }
    check(s->conn, code);
    sqlite3_reset(stmt);
    return (struct answer){.rows = count > 0 ? rows : sqlite3_changes(s->conn)};
}

static struct answer query(struct session *s, const struct step *step, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    check(s->conn, sqlite3_prepare_v2(s->conn, sql, -1, &stmt, NULL));
    struct answer answer = step_through(s, step, stmt);
    sqlite3_finalize(stmt);
    return answer;
}

static struct answer execute(struct session *s, struct prepared *p, const struct value *values)
{
    sqlite3_stmt *stmt = p->handle;
    if (!stmt)
        check(s->conn,
              sqlite3_prepare_v3(s->conn, p->sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL));
    p->handle = stmt;
    for (int i = 0; i < p->count; i++)
        check(s->conn, values[i].kind == INT_VALUE
                           ? sqlite3_bind_int64(stmt, i + 1, values[i].number)
                           : sqlite3_bind_text(stmt, i + 1, values[i].text, -1, SQLITE_STATIC));
    return step_through(s, p->step, stmt);
}

static void forget(struct prepared *p)
{
    sqlite3_finalize(p->handle);
}

/* The size of the -wal file, which begins anew when "settle" has copied it into the database. */
static int64_t written(struct session *s)
{
    char path[700];
    struct stat status;
    snprintf(path, sizeof path, "%s-wal", s->file);
    return stat(path, &status) == 0 ? status.st_size : 0;
}

const struct hand hand_sqlite = {
    .raw = &raw_sqlite,
    .settings = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 60000",
    .query = query,
    .execute = execute,
    .forget = forget,
    .make_places = make_places,
    .written = written,
};
