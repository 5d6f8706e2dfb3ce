/* SPDX-License-Identifier: MIT
 *
 * Prepares statements, runs them with values, and frames them by a transaction or a savepoint. */
#include "driver.h"

#include <string.h>

static const char *const frames[] = {
    [RLK_BEGIN] = "BEGIN IMMEDIATE", [RLK_COMMIT] = "COMMIT",
    [RLK_ROLLBACK] = "ROLLBACK",     [RLK_SAVE] = "SAVEPOINT rowlock",
    [RLK_KEEP] = "RELEASE rowlock",  [RLK_UNDO] = "ROLLBACK TO rowlock; RELEASE rowlock",
};

/* Called when a statement in the caller's transaction has failed. Most failures undo only the
 * statement. Some make SQLite roll back everything. After SQLITE_BUSY_SNAPSHOT the transaction
 * cannot write. */
static void look_at_tx(struct conn *conn, struct rlk_call *call)
{
    if (call->inside)
        call->tx_over = call->native == SQLITE_BUSY_SNAPSHOT || sqlite3_get_autocommit(conn->db);
}

/* ---- values and cells */

static int bind_value(sqlite3_stmt *statement, int number, const rowlock_value *value)
{
    /* For SQLite a null pointer is NULL. */
    const char *text = value->text ? value->text : "";
    switch (value->kind) {
    case ROWLOCK_INT:
    case ROWLOCK_BOOL:
        return sqlite3_bind_int64(statement, number, value->number);
    case ROWLOCK_REAL:
        return sqlite3_bind_double(statement, number, value->real);
    case ROWLOCK_BYTES:
        return sqlite3_bind_blob64(statement, number, text, value->length, SQLITE_STATIC);
    case ROWLOCK_DECIMAL:
    case ROWLOCK_TEXT:
    case ROWLOCK_TIME:
        return sqlite3_bind_text64(statement, number, text, value->length, SQLITE_STATIC,
                                   SQLITE_UTF8);
    default:
        return sqlite3_bind_null(statement, number);
    }
}

/* false: no memory to convert a text of a UTF-16 file. SQLite returns an empty blob as a null
 * pointer. */
static bool get_cell(sqlite3_value *cell, rowlock_value *out)
{
    int type = sqlite3_value_type(cell);
    bool is_text = type == SQLITE_TEXT;
    if (type == SQLITE_INTEGER)
        *out = rowlock_int(sqlite3_value_int64(cell));
    else if (type == SQLITE_FLOAT)
        *out = rowlock_real(sqlite3_value_double(cell));
    else if (type == SQLITE_NULL)
        *out = rowlock_null();
    if (type != SQLITE_BLOB && !is_text)
        return true;
    const void *bytes = is_text ? sqlite3_value_text(cell) : sqlite3_value_blob(cell);
    size_t length = (size_t)sqlite3_value_bytes(cell);
    *out = rowlock_textn(is_text ? ROWLOCK_TEXT : ROWLOCK_BYTES, bytes ? bytes : "", length);
    return bytes || (length == 0 && !is_text);
}

/* Passes on the current row of a statement. SQLite's values may only be used while its mutex is
 * held. Another program may have written cells into our tables that core cannot take. */
static enum rlk_class give_row(struct conn *conn, struct rlk_call *call, sqlite3_stmt *statement,
                               const struct rlk_query *query, bool *stopped)
{
    int count = sqlite3_column_count(statement);
    rowlock_value *cells = rlk_room_for(&conn->cells, (size_t)count * sizeof *cells);
    bool ok = cells != NULL;
    sqlite3_mutex *mutex = sqlite3_db_mutex(conn->db);
    sqlite3_mutex_enter(mutex);
    for (int i = 0; i < count && ok; i++)
        ok = get_cell(sqlite3_column_value(statement, i), &cells[i]);
    sqlite3_mutex_leave(mutex);
    if (!ok)
        return RLK_NOMEM;
    int answer = query->each(query->context, cells, (size_t)count);
    *stopped = answer != 0;
    if (answer >= 0)
        return RLK_DONE;
    return rlk_refuse(
        call, sqlite3_stmt_readonly(statement) ? RLK_SCHEMA : RLK_MISFIT,
        "rowlock's tables hold values that rowlock does not write: the file is damaged, or "
        "another program has changed it");
}

static enum rlk_class run_bound(struct conn *conn, struct rlk_call *call, sqlite3_stmt *statement,
                                struct rlk_query *query)
{
    bool stopped = false;
    bool only_reads = sqlite3_stmt_readonly(statement);
    enum rlk_class class = RLK_DONE;
    int before = sqlite3_total_changes(conn->db);
    int code = SQLITE_ROW;
    conn->answered = false;
    while (class == RLK_DONE && !(stopped && only_reads)) {
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
            break;
        conn->answered = true;
        if (query->each && !stopped)
            class = give_row(conn, call, statement, query, &stopped);
    }
    if (code != SQLITE_DONE && code != SQLITE_ROW)
        class = lite_failed(conn, call);
    else if (sqlite3_total_changes(conn->db) != before)
        query->changed = sqlite3_changes(conn->db);
    if (class != RLK_DONE)
        look_at_tx(conn, call);
    return class;
}

/* Runs it to its end, or until no more rows are wanted. A change always runs to its end. */
enum rlk_class lite_run(struct conn *conn, struct rlk_call *call, sqlite3_stmt *statement,
                        struct rlk_query *query)
{
    enum rlk_class class = RLK_DONE;
    int count = sqlite3_bind_parameter_count(statement);
    for (int i = 0; i < count && (size_t)i < query->count && class == RLK_DONE; i++)
        if (bind_value(statement, i + 1, &query->values[i]) != SQLITE_OK)
            class = lite_failed(conn, call);
    bool commits = !sqlite3_stmt_readonly(statement) && sqlite3_get_autocommit(conn->db);
    if (commits)
        lite_let_pass(conn);
    if (class == RLK_DONE)
        class = run_bound(conn, call, statement, query);
    sqlite3_reset(statement);
    /* The values belong to core or to the caller. */
    sqlite3_clear_bindings(statement);
    lite_end_turn(conn);
    if (commits && class == RLK_DONE)
        lite_pass_turn(conn);
    return class;
}

/* ---- texts that are kept prepared */

void lite_forget(sqlite3_stmt **statements)
{
    for (int i = 0; i < STATEMENTS_MAX; i++) {
        sqlite3_finalize(statements[i]);
        statements[i] = NULL;
    }
}

/* Prepares all statements of a text. */
static enum rlk_class prepare(struct conn *conn, struct rlk_call *call, const char *rest,
                              sqlite3_stmt **prepared)
{
    if (prepared[0])
        return RLK_DONE;
    for (int i = 0; i < STATEMENTS_MAX && *rest; i++) {
        int code =
            sqlite3_prepare_v3(conn->db, rest, -1, SQLITE_PREPARE_PERSISTENT, &prepared[i], &rest);
        if (code != SQLITE_OK) {
            enum rlk_class class = lite_failed(conn, call);
            lite_forget(prepared);
            /* The text is correct, so our tables do not fit it. */
            return (code & 0xFF) == SQLITE_ERROR ? RLK_SCHEMA : class;
        }
    }
    return RLK_DONE;
}

enum rlk_class lite_prepare(struct conn *conn, struct rlk_call *call, int which)
{
    return prepare(conn, call, conn->texts->sql[which], conn->prepared[which]);
}

void lite_forget_all(struct conn *conn)
{
    for (int which = 0; which < TEXTS; which++)
        lite_forget(conn->prepared[which]);
}

/* ---- transactions */

enum rlk_class lite_send_frame(struct conn *conn, struct rlk_call *call, enum rlk_frame what)
{
    sqlite3_stmt **prepared = conn->prepared[RLK_PLACES + what];
    enum rlk_class class = prepare(conn, call, frames[what], prepared);
    conn->ending = true;
    if (what == RLK_BEGIN)
        lite_let_pass(conn);
    for (int i = 0; i < STATEMENTS_MAX && prepared[i] && class == RLK_DONE; i++) {
        if (sqlite3_step(prepared[i]) != SQLITE_DONE) {
            class = lite_failed(conn, call);
            look_at_tx(conn, call);
        }
        sqlite3_reset(prepared[i]);
    }
    conn->ending = false;
    lite_end_turn(conn);
    if (what == RLK_COMMIT && class == RLK_DONE)
        lite_pass_turn(conn);
    return class;
}

/* Frames a step of several statements: by a transaction, or by a savepoint in the caller's. */
enum rlk_class lite_begin(struct conn *conn, struct rlk_call *call)
{
    return lite_send_frame(conn, call, call->inside ? RLK_SAVE : RLK_BEGIN);
}

/* Ends the transaction of a step that ended in class. A failed COMMIT has changed nothing, and may
 * leave the transaction open. A step that cannot be undone must not be committed. */
enum rlk_class lite_finish(struct conn *conn, struct rlk_call *call, enum rlk_class class)
{
    if (class == RLK_DONE)
        class = lite_send_frame(conn, call, call->inside ? RLK_KEEP : RLK_COMMIT);
    if (class == RLK_DONE || sqlite3_get_autocommit(conn->db))
        return class;
    /* A copy, so that call keeps the text of the first failure. */
    struct rlk_call unheard = *call;
    enum rlk_frame back = call->inside ? RLK_UNDO : RLK_ROLLBACK;
    if (lite_send_frame(conn, &unheard, back) != RLK_DONE && call->inside)
        call->tx_over = true;
    return class;
}
