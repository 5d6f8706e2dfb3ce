/* SPDX-License-Identifier: MIT
 *
 * Version updates as one would write them by hand with the MySQL client library: prepared statements row by row,
 * and a batch as one UPDATE that joins what is given, as a table of SELECTs or as JSON.
 */
#include "bench.h"

#include <mysql.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum statement { ROW, SET, READ, LOCK, WRITE, ADD, STATEMENTS };
enum { VALUES_MAX = 4, ROW_CAP = 200 };

static const char *const statements[STATEMENTS] = {
    [ROW] = "UPDATE ? SET amount = ?, note = ?, version = version + 1 WHERE id = ? AND version = ?",
    [SET] =
        "UPDATE JSON_TABLE(CONVERT(? USING utf8mb4), '$[*]' COLUMNS (id BIGINT PATH '$[0]',"
        " version BIGINT PATH '$[1]', amount BIGINT PATH '$[2]', note VARCHAR(40) PATH '$[3]')) v"
        " JOIN ? t ON t.id = v.id SET t.amount = v.amount, t.note = v.note,"
        " t.version = t.version + 1 WHERE t.version = v.version",
    [READ] = "SELECT amount, version FROM ? WHERE id = 1",
    [LOCK] = "SELECT amount, version FROM ? WHERE id = 1 FOR UPDATE",
    [WRITE] = "UPDATE ? SET amount = ?, version = version + 1 WHERE id = 1 AND version = ?",
    [ADD] = "UPDATE ? SET amount = amount + 1, version = version + 1 WHERE id = 1",
};

struct session {
    const struct hand *hand;
    MYSQL *conn;
    MYSQL_STMT *kept[STATEMENTS];
    char table[200];
    char text[BATCH_ROWS * ROW_CAP];
};

static char *with_table(const struct session *s, const char *sql, const char *at)
{
    char *text = NULL;
    if (asprintf(&text, "%.*s%s%s", at ? (int)(at - sql) : (int)strlen(sql), sql,
                 at ? s->table : "", at ? at + 1 : "") < 0)
        die("out of memory");
    return text;
}

static void send(struct session *s, const char *sql, size_t length)
{
    if (mysql_real_query(s->conn, sql, length) != 0)
        die("MySQL: %s", mysql_error(s->conn));
}

static void run(void *session, const char *sql)
{
    struct session *s = session;
    char *text = with_table(s, sql, strchr(sql, '?'));
    send(s, text, strlen(text));
    mysql_free_result(mysql_store_result(s->conn));
    free(text);
}

static void *open_session(const struct hand *hand, const struct place *place, const char *table)
{
    struct session *s = calloc(1, sizeof *s);
    void *conn = NULL;
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.schema = place->schema;
    if (!s)
        die("out of memory");
    rowlock_db_close(hand->adopt(place, &options, &conn));
    s->hand = hand;
    s->conn = conn;
    snprintf(s->table, sizeof s->table, "%s.%s", place->schema, table);
    return s;
}

static void close_session(void *session)
{
    struct session *s = session;
    for (int i = 0; i < STATEMENTS; i++)
        if (s->kept[i])
            mysql_stmt_close(s->kept[i]);
    s->hand->hang_up(s->conn);
    free(s);
}

/* The name of the table is the first mark, but for the one statement that begins with a value. */
static MYSQL_STMT *prepare(struct session *s, enum statement which)
{
    const char *sql = statements[which], *at = strchr(sql, '?');
    if (s->kept[which])
        return s->kept[which];
    char *text = with_table(s, sql, which == SET ? strchr(at + 1, '?') : at);
    MYSQL_STMT *stmt = mysql_stmt_init(s->conn);
    if (!stmt || mysql_stmt_prepare(stmt, text, strlen(text)) != 0)
        die("MySQL: %s", stmt ? mysql_stmt_error(stmt) : "out of memory");
    free(text);
    return s->kept[which] = stmt;
}

struct values {
    MYSQL_BIND bind[VALUES_MAX];
    int64_t number[VALUES_MAX];
    int count;
};

static void give_int(struct values *v, int64_t number)
{
    v->number[v->count] = number;
    v->bind[v->count] =
        (MYSQL_BIND){.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &v->number[v->count]};
    v->count++;
}

static void give_text(struct values *v, const char *text, size_t length)
{
    v->bind[v->count++] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_STRING,
                                       .buffer = (void *)(uintptr_t)text,
                                       .buffer_length = length};
}

static MYSQL_STMT *execute(struct session *s, enum statement which, struct values *v)
{
    MYSQL_STMT *stmt = prepare(s, which);
    if ((v && mysql_stmt_bind_param(stmt, v->bind)) || mysql_stmt_execute(stmt))
        die("MySQL: %s", mysql_stmt_error(stmt));
    return stmt;
}

static void must_change(uint64_t rows, uint64_t wanted)
{
    if (rows != wanted)
        die("MySQL: %" PRIu64 " rows changed of %" PRIu64, rows, wanted);
}

/* ---- batches */

static void row_by_row(void *session, const struct rows *rows)
{
    struct session *s = session;
    run(s, "BEGIN");
    for (int i = 0; i < BATCH_ROWS; i++) {
        struct values v = {.count = 0};
        give_int(&v, rows->amount[i]);
        give_text(&v, rows->note[i], strlen(rows->note[i]));
        give_int(&v, rows->id[i]);
        give_int(&v, rows->version[i]);
        must_change(mysql_stmt_affected_rows(execute(s, ROW, &v)), 1);
    }
    run(s, "COMMIT");
}

/* The notes here need no escapes. */
static void as_json(void *session, const struct rows *rows)
{
    struct session *s = session;
    struct values v = {.count = 0};
    char *at = s->text;
    for (int i = 0; i < BATCH_ROWS; i++)
        at += sprintf(at, "%c[%" PRId64 ",%" PRId64 ",%" PRId64 ",\"%s\"]", i ? ',' : '[',
                      rows->id[i], rows->version[i], rows->amount[i], rows->note[i]);
    *at++ = ']';
    give_text(&v, s->text, (size_t)(at - s->text));
    must_change(mysql_stmt_affected_rows(execute(s, SET, &v)), BATCH_ROWS);
}

static void as_selects(void *session, const struct rows *rows)
{
    struct session *s = session;
    char *at = s->text, note[2 * NOTE_CAP + 1];
    at += sprintf(at, "UPDATE %s t JOIN (", s->table);
    for (int i = 0; i < BATCH_ROWS; i++) {
        mysql_real_escape_string(s->conn, note, rows->note[i], strlen(rows->note[i]));
        at += sprintf(at,
                      i ? " UNION ALL SELECT %" PRId64 ",%" PRId64 ",%" PRId64 ",'%s'"
                        : "SELECT %" PRId64 " id,%" PRId64 " version,%" PRId64 " amount,'%s' note",
                      rows->id[i], rows->version[i], rows->amount[i], note);
    }
    at += sprintf(at, ") v ON t.id = v.id SET t.amount = v.amount, t.note = v.note,"
                      " t.version = t.version + 1 WHERE t.version = v.version");
    send(s, s->text, (size_t)(at - s->text));
    must_change(mysql_affected_rows(s->conn), BATCH_ROWS);
}

static void insert(void *session, const struct rows *rows)
{
    struct session *s = session;
    char *at = s->text, note[2 * NOTE_CAP + 1];
    at += sprintf(at, "INSERT INTO %s (id, amount, note, version) VALUES ", s->table);
    for (int i = 0; i < BATCH_ROWS; i++) {
        mysql_real_escape_string(s->conn, note, rows->note[i], strlen(rows->note[i]));
        at += sprintf(at, "%s(%" PRId64 ",%" PRId64 ",'%s',1)", i ? "," : "", rows->id[i],
                      rows->amount[i], note);
    }
    at += sprintf(at, " ON DUPLICATE KEY UPDATE version = %s.version", s->table);
    send(s, s->text, (size_t)(at - s->text));
    must_change(mysql_affected_rows(s->conn), BATCH_ROWS);
}

/* ---- one hot row */

static bool read_and_write(struct session *s, enum statement how, void (*work)(void))
{
    int64_t found[2] = {0};
    MYSQL_BIND columns[2] = {{.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &found[0]},
                             {.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &found[1]}};
    struct values v = {.count = 0};
    MYSQL_STMT *stmt = execute(s, how, NULL);
    if (mysql_stmt_bind_result(stmt, columns) || mysql_stmt_fetch(stmt))
        die("MySQL: the row is not there");
    mysql_stmt_free_result(stmt);
    work();
    give_int(&v, found[0] + 1);
    give_int(&v, found[1]);
    return mysql_stmt_affected_rows(execute(s, WRITE, &v)) == 1;
}

static bool try_once(void *session, void (*work)(void))
{
    return read_and_write(session, READ, work);
}

static void locked(void *session, void (*work)(void))
{
    run(session, "BEGIN");
    if (!read_and_write(session, LOCK, work))
        die("MySQL: a locked row was changed");
    run(session, "COMMIT");
}

static void atomic(void *session)
{
    must_change(mysql_stmt_affected_rows(execute(session, ADD, NULL)), 1);
}

const struct rows_hand rows_mysql = {
    .name = "mysql",
    .note_type = "VARCHAR(40)",
    .open = open_session,
    .close = close_session,
    .run = run,
    .row_by_row = row_by_row,
    .set_based = {as_json, as_selects},
    .set_labels = {"UPDATE … JOIN JSON_TABLE", "UPDATE … JOIN of SELECTs"},
    .insert = insert,
    .insert_label = "INSERT … ON DUPLICATE KEY",
    .try_once = try_once,
    .locked = locked,
    .atomic = atomic,
    .locked_legend = "SELECT … FOR UPDATE",
};
