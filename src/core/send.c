/* SPDX-License-Identifier: MIT
 * Sends what is asked, once: it puts the values of a step in the order of the markers, checks the
 * shape of the answer, and gives the cells to the function that reads them. Only this file checks
 * the shape. */
#include "core/port.h"

static void arrange(const struct rlk_texts *texts, enum rlk_step step, const rowlock_value *given,
                    rowlock_value *out)
{
    const struct rlk_order *order = &texts->order[step];
    for (size_t i = 0; i < order->count; i++)
        out[i] = order->from[i] == RLK_OF_SCHEMA   ? rowlock_text(texts->schema)
                 : order->from[i] == RLK_OF_PREFIX ? rowlock_text(texts->prefix)
                                                   : given[order->from[i]];
}

void rlk_put_cells(void *out, const struct rlk_field *fields, const rowlock_value *cells,
                   size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const rowlock_value *cell = &cells[i];
        void *at = (char *)out + fields[i].offset;
        int64_t number = cell->kind == ROWLOCK_NULL ? 0 : cell->number;
        if (fields[i].is_text)
            rlk_copy_text(at, fields[i].size, cell->text, cell->length);
        else if (fields[i].size == sizeof(int64_t))
            *(int64_t *)at = number;
        else if (fields[i].size == sizeof(int))
            *(int *)at = (int)number;
        else if (fields[i].size == sizeof(bool))
            *(bool *)at = number != 0;
    }
}

int rlk_query_row(void *context, const rowlock_value *cells, size_t count)
{
    struct rlk_ask *ask = context;
    int stop = 0;
    ask->rows++;
    if (!rlk_cells_fit(rlk_steps[ask->step].columns, cells, count))
        stop = -1;
    else if (ask->fields)
        rlk_put_cells(ask->out, ask->fields, cells, count);
    else if (ask->read)
        stop = ask->read(ask->out, cells, count);
    ask->misfit = stop < 0;
    ask->undecided = stop == RLK_UNDECIDED;
    return stop;
}

static bool rows_fit(char rows, uint64_t count)
{
    if (rows == '-')
        return count == 0;
    return rows == '*' || (count <= 1 && (rows == '?' || count == 1));
}

void rlk_query_begin(rowlock_db *db, struct rlk_ask *ask)
{
    if (ask->restart)
        ask->restart(ask->out);
    ask->rows = 0;
    ask->changed = 0;
    ask->misfit = ask->undecided = false;
    db->stats.round_trips++;
}

enum rlk_class rlk_query_end(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask,
                             enum rlk_class class, bool counted)
{
    const struct rlk_step_info *info = &rlk_steps[ask->step];
    db->takes_writes = db->takes_writes || (class == RLK_DONE && counted && ask->changed > 0);
    /* A step that only reads has changed nothing, unless it locks in the caller's transaction. */
    if (class == RLK_UNCERTAIN && (info->is & RLK_READS) && !call->inside)
        class = RLK_UNSENT;
    bool answered = !counted || !info->columns[0] || (info->is & RLK_COUNTS);
    if (class == RLK_DONE && (!answered || ask->misfit || !rows_fit(info->rows, ask->rows)))
        return rlk_diag_misfit(call, ask->step);
    return class;
}

static enum rlk_class send_step(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask)
{
    const struct rlk_order *order = &db->texts.order[ask->step];
    rowlock_value values[RLK_MARKERS];
    struct rlk_query query = {.step = ask->step,
                              .wakes = ask->wakes,
                              .own = order->own ? &values[order->own - 1] : NULL,
                              .sql = db->texts.sql[ask->step],
                              .values = values,
                              .count = order->count,
                              .given = ask->in,
                              .each = rlk_query_row,
                              .context = ask};
    if (!query.sql)
        return rlk_refuse(call, RLK_UNSUPPORTED, "this database has no such step");
    rlk_query_begin(db, ask);
    arrange(&db->texts, ask->step, ask->in, values);
    enum rlk_class class = db->driver->query(db->conn, call, &query);
    ask->changed = query.changed;
    return rlk_query_end(db, call, ask, class, query.counted);
}

/* *decided: no other step need follow. */
static enum rlk_class send_steps(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask,
                                 bool *decided)
{
    enum rlk_class class = ask->first ? send_steps(db, call, ask->first, decided) : RLK_DONE;
    if (class != RLK_DONE || *decided)
        return class;
    if (ask->step)
        class = send_step(db, call, ask);
    *decided = rlk_has_decided(ask);
    return class;
}

static enum rlk_class send_query(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask)
{
    if (ask->restart)
        ask->restart(ask->query->context);
    db->stats.round_trips++;
    return db->driver->query(db->conn, call, ask->query);
}

static enum rlk_class frame(rowlock_db *db, struct rlk_call *call, enum rlk_frame what)
{
    db->stats.round_trips += what != RLK_LOOK;
    return db->driver->frame(db->conn, call, what);
}

/* The facts are only read, so a lost answer has changed nothing. */
static enum rlk_class send_facts(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask)
{
    enum rlk_class class = RLK_DONE;
    if (db->texts.sql[ask->step])
        class = send_step(db, call, ask);
    if (class == RLK_DONE)
        class = db->driver->facts(db->conn, call, ask->facts);
    return class == RLK_UNCERTAIN ? RLK_UNSENT : class;
}

enum rlk_class rlk_send(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask)
{
    if (db->port)
        return db->port->ask(db, call, ask);
    if (ask->run)
        return ask->run(db, call, ask);
    if (ask->query)
        return send_query(db, call, ask);
    if (ask->script)
        return db->driver->script(db->conn, call, ask->script);
    if (ask->facts)
        return send_facts(db, call, ask);
    if (ask->frame)
        return frame(db, call, ask->frame);
    bool decided = false;
    enum rlk_class class = send_steps(db, call, ask, &decided);
    return class == RLK_DONE ? rlk_judge(call, ask, decided) : class;
}

enum rlk_class rlk_judge(struct rlk_call *call, const struct rlk_ask *ask, bool decided)
{
    if (!decided && ask->undecided && !ask->cheap)
        return rlk_diag_misfit(call, ask->step);
    if (!ask->own || !ask->was_uncertain || ask->own->outcome != RLK_IN_FLIGHT)
        return RLK_DONE;
    return rlk_refuse(call, RLK_CONTENTION,
                      "a transaction, perhaps of this program, is changing the lock");
}

bool rlk_has_changed(const struct rlk_ask *ask)
{
    return ask->rows > 0 ? ask->answer : ask->changed > 0;
}

bool rlk_tell(rowlock_db *db, enum rlk_where where, enum rlk_news news,
              const struct rlk_request *request, int64_t number)
{
    struct rlk_call ignored = {.deadline_us = rlk_now_us() + db->statement_us, .where = where};
    if (db->port)
        return db->port->tell(db, &ignored, news, request, number);
    return db->driver->tell && db->driver->tell(db->conn, &ignored, news, request, number);
}

enum rlk_class rlk_begin(rowlock_db *db, struct rlk_call *call, bool *begun)
{
    *begun = false;
    if (call->where != RLK_OUTSIDE || db->tx)
        return RLK_DONE;
    enum rlk_class class = frame(db, call, RLK_BEGIN);
    *begun = class == RLK_DONE;
    if (*begun)
        call->where = RLK_INSIDE;
    return class;
}

enum rlk_class rlk_end(rowlock_db *db, struct rlk_call *call, bool begun, enum rlk_class class)
{
    if (!begun)
        return class;
    if (class == RLK_DONE) {
        class = frame(db, call, RLK_COMMIT);
    } else if (class != RLK_UNSENT && class != RLK_UNCERTAIN) {
        /* The given one has the error that led here. */
        struct rlk_call ignored = {.deadline_us = call->deadline_us};
        frame(db, &ignored, RLK_ROLLBACK);
    }
    call->where = RLK_OUTSIDE;
    call->inside = call->tx_over = false;
    return class;
}
