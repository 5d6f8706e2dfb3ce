/* SPDX-License-Identifier: MIT
 *
 * Version updates as one would write them by hand with SQLite: prepared statements, in a transaction where there
 * are many.
 */
#include "bench.h"

#include <sqlite3.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum statement { ROW, READ, WRITE, ADD, STATEMENTS };
enum { PATIENCE_MS = 60000 };

static const char *const statements[STATEMENTS] = {
    [ROW] =
        "UPDATE ? SET amount = ?3, note = ?4, version = version + 1 WHERE id = ?1 AND version = ?2",
    [READ] = "SELECT amount, version FROM ? WHERE id = 1",
    [WRITE] = "UPDATE ? SET amount = ?1, version = version + 1 WHERE id = 1 AND version = ?2",
    [ADD] = "UPDATE ? SET amount = amount + 1, version = version + 1 WHERE id = 1",
};

struct session {
    const struct hand *hand;
    sqlite3 *db;
    sqlite3_stmt *kept[STATEMENTS];
    char table[200];
};

static void check(struct session *s, int code)
{
    if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW)
        die("SQLite: %s", sqlite3_errmsg(s->db));
}

static char *with_table(const struct session *s, const char *sql)
{
    char *text = NULL;
    const char *at = strchr(sql, '?');
    if (asprintf(&text, "%.*s%s%s", at ? (int)(at - sql) : (int)strlen(sql), sql,
                 at ? s->table : "", at ? at + 1 : "") < 0)
        die("out of memory");
    return text;
}

static void run(void *session, const char *sql)
{
    struct session *s = session;
    char *text = with_table(s, sql);
    check(s, sqlite3_exec(s->db, text, NULL, NULL, NULL));
    free(text);
}

static void *open_session(const struct hand *hand, const struct place *place, const char *table)
{
    struct session *s = calloc(1, sizeof *s);
    void *file = NULL;
    if (!s)
        die("out of memory");
    rowlock_db_close(hand->adopt(place, NULL, &file));
    s->hand = hand;
    s->db = file;
    snprintf(s->table, sizeof s->table, "%s", table);
    sqlite3_busy_timeout(s->db, PATIENCE_MS);
    run(s, "PRAGMA journal_mode = WAL");
    run(s, "PRAGMA synchronous = FULL");
    return s;
}

static void close_session(void *session)
{
    struct session *s = session;
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(s->kept[i]);
    s->hand->hang_up(s->db);
    free(s);
}

static sqlite3_stmt *prepare(struct session *s, enum statement which)
{
    if (!s->kept[which]) {
        char *text = with_table(s, statements[which]);
        check(s, sqlite3_prepare_v3(s->db, text, -1, SQLITE_PREPARE_PERSISTENT, &s->kept[which],
                                    NULL));
        free(text);
    }
    return s->kept[which];
}

static bool changes_one(struct session *s, sqlite3_stmt *stmt)
{
    check(s, sqlite3_step(stmt));
    bool one = sqlite3_changes(s->db) == 1;
    sqlite3_reset(stmt);
    return one;
}

/* ---- batches */

static void row_by_row(void *session, const struct rows *rows)
{
    struct session *s = session;
    sqlite3_stmt *stmt = prepare(s, ROW);
    run(s, "BEGIN IMMEDIATE");
    for (int i = 0; i < BATCH_ROWS; i++) {
        check(s, sqlite3_bind_int64(stmt, 1, rows->id[i]));
        check(s, sqlite3_bind_int64(stmt, 2, rows->version[i]));
        check(s, sqlite3_bind_int64(stmt, 3, rows->amount[i]));
        check(s, sqlite3_bind_text(stmt, 4, rows->note[i], -1, SQLITE_STATIC));
        if (!changes_one(s, stmt))
            die("SQLite: a row was not changed");
    }
    run(s, "COMMIT");
}

/* ---- one hot row */

static bool try_once(void *session, void (*work)(void))
{
    struct session *s = session;
    sqlite3_stmt *read = prepare(s, READ), *write = prepare(s, WRITE);
    check(s, sqlite3_step(read));
    sqlite3_int64 amount = sqlite3_column_int64(read, 0), version = sqlite3_column_int64(read, 1);
    sqlite3_reset(read);
    work();
    check(s, sqlite3_bind_int64(write, 1, amount + 1));
    check(s, sqlite3_bind_int64(write, 2, version));
    return changes_one(s, write);
}

static void locked(void *session, void (*work)(void))
{
    run(session, "BEGIN IMMEDIATE");
    if (!try_once(session, work))
        die("SQLite: a locked row was changed");
    run(session, "COMMIT");
}

static void atomic(void *session)
{
    if (!changes_one(session, prepare(session, ADD)))
        die("SQLite: the row is not there");
}

const struct rows_hand rows_sqlite = {
    .name = "sqlite",
    .note_type = "TEXT",
    .open = open_session,
    .close = close_session,
    .run = run,
    .row_by_row = row_by_row,
    .try_once = try_once,
    .locked = locked,
    .atomic = atomic,
    .locked_legend = "BEGIN IMMEDIATE",
};
