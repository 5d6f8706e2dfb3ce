/* SPDX-License-Identifier: MIT
 *
 * Statements with values: prepared and kept, sent, and read. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The cells are freed after the statement, which points to them. */
static void forget(struct prepared *p)
{
    if (p->stmt)
        mysql_stmt_close(p->stmt);
    my_free_cells(p);
    *p = (struct prepared){0};
}

static struct prepared *find_statement(struct conn *c, const struct rlk_query *q)
{
    bool same;
    struct prepared *p = &c->prepared[rlk_find_place(&c->places, q, &same)];
    if (!same)
        forget(p);
    return p;
}

static bool is_theirs(const struct attempt *s)
{
    return s->q->step == RLK_STEP_NONE;
}

static bool reads_only(const struct attempt *s)
{
    return is_theirs(s) ? s->p->columns > 0 : rlk_steps[s->q->step].is & RLK_READS;
}

/* Do answers contain texts that the server may convert? Only on an adopted connection: our own
 * connections use UTF-8. The texts of our own tables are read as bytes. */
static bool reads_texts(const struct attempt *s)
{
    MYSQL_STMT *stmt = s->p->stmt;
    unsigned count = s->c->adopted && is_theirs(s) ? mysql_stmt_field_count(stmt) : 0;
    bool texts = false;
    for (unsigned i = 0; i < count; i++)
        texts = texts || my_kind_of(&stmt->fields[i]) == ROWLOCK_TEXT;
    return texts;
}

/* The server has not executed a statement that it no longer knows. A statement whose columns have
 * changed only reads. send_query() prepares both again. */
static enum rlk_class failed(const struct attempt *s, bool sent)
{
    MYSQL_STMT *stmt = s->p->stmt;
    unsigned code = mysql_stmt_errno(stmt);
    if (code != ER_NEED_REPREPARE && code != ER_UNKNOWN_STMT_HANDLER &&
        !(code == CR_NEW_STMT_METADATA && reads_only(s)))
        return my_failed_stmt(s->c, s->call, stmt, is_theirs(s), sent);
    rlk_diag_set(s->call, (int)code, mysql_stmt_sqlstate(stmt), mysql_stmt_error(stmt));
    forget(s->p);
    return RLK_CONTENTION;
}

/* A statement with columns only reads, so it may be prepared and executed again after its table was
 * altered. */
static enum rlk_class misfit(const struct attempt *s)
{
    bool reads = reads_only(s);
    if (!is_theirs(s))
        return rlk_diag_misfit(s->call, s->q->step);
    if (reads)
        forget(s->p);
    return rlk_refuse(s->call, reads ? RLK_REFUSED : RLK_MISFIT,
                      "the server returned other columns than it had announced");
}

/* The server does not announce the columns of a procedure. We allocate memory before the statement
 * runs, so that a lack of memory changes nothing. */
static unsigned columns_of(const struct attempt *s)
{
    unsigned announced = mysql_stmt_field_count(s->p->stmt);
    return announced ? announced
                     : (unsigned)strlen(is_theirs(s) ? "" : rlk_steps[s->q->step].columns);
}

/* Preparing changes nothing, so a connection lost here is RLK_UNSENT. The statement has lost its
 * connection if the caller used mysql_change_user() or the like. */
static enum rlk_class prepare(const struct attempt *s)
{
    struct prepared *p = s->p;
    enum rlk_class class = RLK_DONE;
    if (p->stmt && p->stmt->mysql)
        return RLK_DONE;
    forget(p);
    p->stmt = mysql_stmt_init(s->c->mysql);
    if (!p->stmt)
        return RLK_NOMEM;
    if (mysql_stmt_prepare(p->stmt, s->q->sql, strlen(s->q->sql)))
        class = failed(s, false);
    else if (!my_make_cells(p, columns_of(s)))
        class = RLK_NOMEM;
    if (class != RLK_DONE) {
        forget(p);
        return class;
    }
    p->columns = mysql_stmt_field_count(p->stmt);
    p->texts = reads_texts(s);
    return RLK_DONE;
}

/* A server closes the connection if a packet is too long. Whether the client library still reads
 * the reason depends on timing. Short statements are sent without this check. */
static enum rlk_class check_length(struct conn *c, struct rlk_call *call, const MYSQL_BIND *values,
                                   size_t count)
{
    enum { SHORT = 65536, AROUND_VALUE = 11, AROUND_ALL = 64 };
    int64_t length = AROUND_ALL;
    char text[24] = "";
    for (size_t i = 0; i < count; i++)
        length += (int64_t)values[i].buffer_length + AROUND_VALUE;
    if (length <= SHORT)
        return RLK_DONE;
    enum rlk_class class =
        c->packet ? RLK_DONE : my_ask(c, call, "SELECT @@max_allowed_packet", text, sizeof text);
    if (text[0])
        c->packet = strtoll(text, NULL, 10);
    if (class != RLK_DONE || length <= c->packet)
        return my_harmless(c, class);
    return rlk_refuse(call, RLK_INVALID,
                      "the values are longer than the server's max_allowed_packet");
}

/* The adopted connection may convert results to a character set that lacks some of their
 * characters. So this statement gets its results in UTF-8. SQL alone cannot do it: only the answer
 * says which columns are texts. We ask each time, because a server does not always announce that
 * the caller changed the setting. *restore is the statement to send afterwards, or "". */
static enum rlk_class use_utf8(struct conn *c, struct rlk_call *call, char *restore, size_t cap)
{
    char charset[64] = "";
    enum rlk_class class =
        my_ask(c, call, "SELECT @@character_set_results", charset, sizeof charset);
    if (class != RLK_DONE || strcmp(charset, "utf8mb4") == 0)
        return my_harmless(c, class);
    if (charset[0])
        snprintf(restore, cap, "SET character_set_results = '%s'", charset);
    else
        snprintf(restore, cap, "SET character_set_results = NULL");
    return my_harmless(c, my_command(c, call, "SET character_set_results = utf8mb4"));
}

/* Sends it once more if the first one was killed. */
static void restore_charset(struct conn *c, const struct rlk_call *call, const char *restore)
{
    struct rlk_call unheard = {.deadline_us = call->deadline_us, .inside = call->inside};
    for (int left = restore[0] ? 2 : 0; left > 0 && !c->dead; left--) {
        if (my_command(c, &unheard, restore) == RLK_DONE)
            return;
    }
}

/* The buffers are announced to the client library when there is one for each column. */
static enum rlk_class take_shape(const struct attempt *s)
{
    struct prepared *p = s->p;
    unsigned columns = mysql_stmt_field_count(p->stmt);
    if (is_theirs(s) && columns != p->columns)
        return misfit(s);
    if (columns > p->room && !my_make_cells(p, columns))
        return RLK_NOMEM;
    p->columns = columns;
    if (my_choose_buffers(p))
        return RLK_DONE;
    return is_theirs(s) ? rlk_refuse(s->call, RLK_INVALID,
                                     "a column has a type that this client library does not know")
                        : misfit(s);
}

/* Stops when the rows are in memory. */
static enum rlk_class execute(const struct attempt *s, MYSQL_BIND *values)
{
    struct prepared *p = s->p;
    char restore[120] = "";
    enum rlk_class class = p->texts ? use_utf8(s->c, s->call, restore, sizeof restore) : RLK_DONE;
    if (class == RLK_DONE &&
        (mysql_stmt_bind_param(p->stmt, values) || mysql_stmt_execute(p->stmt))) {
        class = failed(s, true);
    } else if (class == RLK_DONE) {
        p->unread = true;
        class = take_shape(s);
        if (class == RLK_DONE && p->columns && mysql_stmt_store_result(p->stmt))
            class = failed(s, true);
    }
    restore_charset(s->c, s->call, restore);
    return class;
}

/* Sends the statement a second time if the server lost it, or if a column has become a text since
 * it was prepared. The latter only reads, so it may run twice. */
static enum rlk_class send_query(const struct attempt *s, MYSQL_BIND *values)
{
    struct prepared *p = s->p;
    enum rlk_class class = RLK_DONE;
    bool again = true;
    for (int left = 2; again && left > 0; left--) {
        class = prepare(s);
        if (class != RLK_DONE)
            return class;
        if (mysql_stmt_param_count(p->stmt) != s->q->count)
            return rlk_refuse(s->call, RLK_INVALID,
                              "the statement has more or fewer parameters than values");
        if (rlk_now_us() >= s->call->deadline_us)
            return rlk_refuse(s->call, RLK_CONTENTION, "no time was left to send the statement");
        class = execute(s, values);
        again = !p->stmt;
        if (class == RLK_DONE && p->columns && !p->texts && reads_texts(s)) {
            mysql_stmt_free_result(p->stmt);
            again = p->texts = true;
        }
    }
    return class;
}

/* No statement of ours changes more than INT32_MAX rows. With CLIENT_FOUND_ROWS the count includes
 * rows that a trigger left as they were. The text has the number of changed rows: "Rows matched: 3
 * Changed: 2 Warnings: 0". */
static int64_t changed_rows(struct conn *c, const struct prepared *p)
{
    const char *info = mysql_info(c->mysql);
    const char *changed = info ? strstr(info, "Changed: ") : NULL;
    my_ulonglong rows = mysql_stmt_affected_rows(p->stmt);
    if (changed)
        return strtoll(changed + 9, NULL, 10);
    return rows > INT32_MAX ? INT32_MAX : (int64_t)rows;
}

/* After the deadline, more results are not read. Our own connection is closed instead. */
static bool gives_up(struct conn *c, const struct rlk_call *call, MYSQL_STMT *stmt)
{
    bool more = mysql_stmt_field_count(stmt) > 0 || mysql_more_results(c->mysql);
    if (!more || rlk_now_us() < call->deadline_us || c->adopted)
        return false;
    c->dead = true;
    my_cut_off(c->mysql);
    return true;
}

/* A procedure sends one result for each SELECT, and a last one of its own. The last one reports an
 * error after the first rows, for example one of its COMMIT. */
static enum rlk_class end_answer(const struct attempt *s, enum rlk_class class)
{
    MYSQL_STMT *stmt = s->p->stmt;
    int more = 0;
    do {
        mysql_stmt_free_result(stmt);
        more = mysql_stmt_next_result(stmt);
        if (more == 0 && class == RLK_DONE && mysql_stmt_field_count(stmt) > 0)
            class = rlk_diag_misfit(s->call, s->q->step);
    } while (more == 0 && !gives_up(s->c, s->call, stmt));
    s->p->unread = more <= 0 && class != RLK_DONE;
    return more > 0 ? failed(s, true) : class;
}

/* MariaDB reports success and no change if KILL QUERY hits a statement at its very start. Core
 * checks this for the caller's own rows. */
static enum rlk_class run(struct conn *c, struct rlk_call *call, struct rlk_query *q)
{
    MYSQL_BIND *values = my_bind_values(c, q);
    if (!values)
        return RLK_NOMEM;
    struct prepared *p = find_statement(c, q);
    const struct attempt s = {.c = c, .call = call, .p = p, .q = q};
    enum rlk_class class = check_length(c, call, values, q->count);
    if (class == RLK_DONE)
        class = send_query(&s, values);
    q->counted = class == RLK_DONE && p->columns == 0;
    q->changed = q->counted ? changed_rows(c, p) : 0;
    if (class == RLK_DONE && p->columns && q->each)
        class = my_read_rows(&s);
    /* The statement ran, and its result is unknown. */
    if (class == RLK_NOMEM && p->unread && !reads_only(&s))
        class = rlk_refuse(call, RLK_MISFIT, "out of memory for the answer");
    if (p->unread && (class == RLK_DONE || class == RLK_MISFIT || class == RLK_SCHEMA))
        class = end_answer(&s, class);
    /* The next execution would wait forever for rows that were not read. */
    if (p->unread || (is_theirs(&s) && q->id == 0))
        forget(p);
    return class;
}

/* MariaDB may report "no change" for a step that was killed at its start. So a step that changed
 * nothing runs once more. */
enum rlk_class my_run(struct conn *c, struct rlk_call *call, struct rlk_query *q)
{
    enum rlk_class class = run(c, call, q);
    bool nothing = q->counted && q->changed == 0;
    return class == RLK_DONE && q->wakes && nothing && my_is_mariadb(c) ? run(c, call, q) : class;
}

enum rlk_class my_run_step(struct conn *c, struct rlk_call *call, enum rlk_step step,
                           const rowlock_value *values, rlk_cells_fn *each, void *context)
{
    struct rlk_query q = {.step = step,
                          .sql = c->texts->sql[step],
                          .values = values,
                          .count = c->texts->order[step].count,
                          .each = each,
                          .context = context};
    return run(c, call, &q);
}

/* A statement that mostly does the step of a procedure, and is cheaper. Its LAST_INSERT_ID is the
 * clock that the answer needs. *clock 0: it has not changed all rows, so the procedure must run. An
 * adopted connection keeps its LAST_INSERT_ID for the caller. */
static enum rlk_class run_usual(struct conn *c, struct rlk_call *call, enum rlk_step step,
                                const rowlock_value *values, int64_t rows, int64_t *clock)
{
    struct rlk_query q = {.step = step,
                          .sql = c->texts->sql[step],
                          .values = values,
                          .count = c->texts->order[step].count};
    *clock = 0;
    enum rlk_class class = c->adopted ? RLK_DONE : run(c, call, &q);
    if (class == RLK_DONE && q.changed == rows)
        *clock = (int64_t)mysql_stmt_insert_id(c->prepared[step].stmt);
    return class;
}

/* The usual statement renews a lease that has not run out. */
enum rlk_class my_renew(struct conn *c, struct rlk_call *call, struct rlk_query *q)
{
    enum { NAME, SLOT, OWNER, TOKEN, TTL };
    const rowlock_value *v = q->values;
    const rowlock_value values[] = {v[TTL], v[TTL], v[NAME], v[SLOT], v[OWNER], v[TOKEN]};
    int64_t expires_us = 0;
    enum rlk_class class = RLK_DONE;
    if (v[TTL].number > 0)
        class = run_usual(c, call, RLK_STEP_RENEW_USUAL, values, 1, &expires_us);
    if (class != RLK_DONE || expires_us == 0)
        return class == RLK_DONE ? my_run(c, call, q) : class;
    const rowlock_value cells[] = {rowlock_int(expires_us), rowlock_int(0),
                                   rowlock_int(expires_us - v[TTL].number)};
    q->each(q->context, cells, 3);
    return RLK_DONE;
}

/* The usual statement renews all leases, or none if a row is locked. Only MariaDB can do that. */
enum rlk_class my_renew_all(struct conn *c, struct rlk_call *call, struct rlk_query *q)
{
    enum { PACK, COUNT };
    int64_t now_us = 0;
    enum rlk_class class = RLK_CONTENTION;
    if (my_is_mariadb(c))
        class = run_usual(c, call, RLK_STEP_RENEW_ALL_USUAL, &q->values[PACK],
                          q->values[COUNT].number, &now_us);
    if (class == RLK_CONTENTION || (class == RLK_DONE && now_us == 0))
        return my_run(c, call, q);
    const rowlock_value cells[] = {rowlock_int(0), rowlock_int(now_us)};
    if (class == RLK_DONE)
        q->each(q->context, cells, 2);
    return class;
}

enum rlk_class my_prepare(struct conn *c, struct rlk_call *call, enum rlk_step step)
{
    struct rlk_query q = {.step = step, .sql = c->texts->sql[step]};
    const struct attempt s = {.c = c, .call = call, .p = &c->prepared[step], .q = &q};
    return prepare(&s);
}

void my_forget_statements(struct conn *c)
{
    for (int i = 0; i < RLK_PLACES; i++)
        forget(&c->prepared[i]);
    rlk_room_free(&c->values);
}
