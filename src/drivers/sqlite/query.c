/* SPDX-License-Identifier: MIT
 *
 * The operation query: steps, and statements about the caller's own tables. */
#include "driver.h"

#include <stdio.h>
#include <string.h>

/* ---- about the caller's own tables */

/* SQLite ignores what follows a semicolon, even a WHERE. So it is refused. */
static enum rlk_class prepare_query(struct conn *conn, struct rlk_call *call,
                                    const struct rlk_query *query, sqlite3_stmt **out)
{
    const char *rest = "";
    unsigned int flags = query->id ? SQLITE_PREPARE_PERSISTENT : 0;
    if (*out)
        return RLK_DONE;
    if (sqlite3_prepare_v3(conn->db, query->sql, -1, flags, out, &rest) != SQLITE_OK)
        return lite_failed(conn, call);
    if (*out && rest[strspn(rest, " \t\r\n")] == '\0')
        return RLK_DONE;
    lite_forget(out);
    return rlk_refuse(call, RLK_INVALID, "the SQL text is not exactly one statement");
}

/* The caller's own SQL is a part of the text. A comment or an apostrophe in it may hide a
 * parameter. */
static enum rlk_class check_count(struct rlk_call *call, sqlite3_stmt *statement, size_t given)
{
    int count = sqlite3_bind_parameter_count(statement);
    if ((size_t)count == given)
        return RLK_DONE;
    return rlk_refuse(call, RLK_INVALID, "the statement takes %d values, and was given %zu", count,
                      given);
}

/* If memory runs out while rows are read, the change has been made. Outside a transaction we wrap
 * it in one and undo it. Inside, a savepoint would cost more than most statements. There the whole
 * transaction must be rolled back. */
static enum rlk_class run_query(struct conn *conn, struct rlk_call *call, sqlite3_stmt *statement,
                                struct rlk_query *query)
{
    bool tells = query->each && !sqlite3_stmt_readonly(statement);
    bool framed = tells && !call->inside;
    enum rlk_class class = check_count(call, statement, query->count);
    if (class == RLK_DONE && framed)
        class = lite_begin(conn, call);
    if (class != RLK_DONE)
        return class;
    class = lite_run(conn, call, statement, query);
    if (framed)
        return lite_finish(conn, call, class);
    if (tells && class == RLK_NOMEM)
        call->tx_over = true;
    return class;
}

/* Inside a transaction the file is not checked: it ends in the file that it began in. */
static enum rlk_class run_theirs(struct conn *conn, struct rlk_call *call, struct rlk_query *query)
{
    bool same;
    sqlite3_stmt **statement = conn->prepared[rlk_find_place(&conn->places, query, &same)];
    if (!same)
        lite_forget(statement);
    enum rlk_class class = lite_ready(conn, call, false);
    if (class == RLK_DONE && !call->inside)
        class = lite_check_file(conn, call);
    if (class == RLK_DONE)
        class = prepare_query(conn, call, query, statement);
    if (class == RLK_DONE)
        class = run_query(conn, call, *statement, query);
    if (!query->id)
        lite_forget(statement);
    return lite_class_for_caller(call, class);
}

/* ---- our steps */

/* All statements of a text take the same values. */
static enum rlk_class run_all(struct conn *conn, struct rlk_call *call, struct rlk_query *query)
{
    sqlite3_stmt **prepared = conn->prepared[query->step];
    enum rlk_class class = RLK_DONE;
    conn->answered = false;
    for (int i = 0; class == RLK_DONE && !conn->answered && i < STATEMENTS_MAX && prepared[i];
         i++) {
        query->changed = 0;
        query->counted = sqlite3_column_count(prepared[i]) == 0;
        class = lite_run(conn, call, prepared[i], query);
    }
    return class;
}

static int read_wakeup(void *context, const rowlock_value *cells, size_t count)
{
    if (rlk_cells_fit("t", cells, count))
        rlk_copy_text(context, WAKEUP_ROOM, cells[0].text, cells[0].length);
    return 0;
}

/* Finds the waiter to wake after the commit of a step that changed this name. It looks inside the
 * transaction: a later ticket sees the change. In the caller's transaction it wakes none, since
 * only the caller knows when it commits. Then the first in the queue finds out at its next poll. */
static enum rlk_class find_wakeup(struct conn *conn, struct rlk_call *call, const char *name,
                                  char wakeup[WAKEUP_ROOM])
{
    const rowlock_value value = rowlock_text(name);
    struct rlk_query query = {.step = RLK_STEP_WAKE,
                              .values = &value,
                              .count = 1,
                              .each = read_wakeup,
                              .context = wakeup};
    if (call->inside && !conn->framed)
        return RLK_DONE;
    enum rlk_class class = lite_prepare(conn, call, RLK_STEP_WAKE);
    return class == RLK_DONE ? run_all(conn, call, &query) : class;
}

/* The statements of a step and the search for the waiter are one transaction. */
static enum rlk_class run_framed(struct conn *conn, struct rlk_call *call, struct rlk_query *query)
{
    char wakeup[WAKEUP_ROOM] = "";
    enum rlk_class class = lite_begin(conn, call);
    if (class != RLK_DONE)
        return class;
    int before = sqlite3_total_changes(conn->db);
    class = run_all(conn, call, query);
    if (class == RLK_DONE && query->wakes && sqlite3_total_changes(conn->db) != before)
        class = find_wakeup(conn, call, query->wakes, wakeup);
    class = lite_finish(conn, call, class);
    if (class == RLK_DONE && !call->inside)
        lite_wake(conn, wakeup);
    else if (class == RLK_DONE && wakeup[0] && conn->wakes < PENDING_MAX)
        memcpy(conn->pending[conn->wakes++], wakeup, WAKEUP_ROOM);
    return class;
}

/* A look may use a check of the file that is some milliseconds old. If it finds the lock held, it
 * grants nothing. If it finds the lock free, a try follows, which checks the file. A grant of our
 * own was made by a try too. */
static bool is_recent_enough(const struct conn *conn, enum rlk_step step)
{
    bool looks = step == RLK_STEP_LOOK || step == RLK_STEP_STILL_HELD;
    return looks && rlk_now_us() - conn->checked_us < CHECK_VALID_US;
}

static enum rlk_class run_step(struct conn *conn, struct rlk_call *call, struct rlk_query *query)
{
    bool checks = !is_recent_enough(conn, query->step);
    enum rlk_class class = lite_ready(conn, call, checks);
    if (class == RLK_DONE)
        class = lite_prepare(conn, call, (int)query->step);
    if (class != RLK_DONE)
        return class;
    if (query->own) {
        lite_open_wakeup(conn);
        *query->own = rowlock_text(conn->wakeup);
    }
    bool framed = query->wakes || conn->prepared[query->step][1];
    return framed ? run_framed(conn, call, query) : run_all(conn, call, query);
}

/* ---- the operation */

enum rlk_class lite_query(void *state, struct rlk_call *call, struct rlk_query *query)
{
    bool theirs = query->step == RLK_STEP_NONE;
    query->changed = 0;
    enum rlk_class class = theirs ? run_theirs(state, call, query) : run_step(state, call, query);
    if (class != RLK_DONE)
        query->changed = 0;
    return class;
}
