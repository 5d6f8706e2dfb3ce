/* SPDX-License-Identifier: MIT
 * Sends one step: it puts the values in the order of the markers, checks the shape of the answer,
 * and gives the cells to the function that reads them. Only this file checks the shape. */
#include "core/core.h"

static void arrange(const struct rlk_texts *texts, enum rlk_step step, const rowlock_value *given,
                    rowlock_value *out)
{
    const struct rlk_order *order = &texts->order[step];
    for (size_t i = 0; i < order->count; i++)
        out[i] = order->from[i] == RLK_OF_SCHEMA   ? rowlock_text(texts->schema)
                 : order->from[i] == RLK_OF_PREFIX ? rowlock_text(texts->prefix)
                                                   : given[order->from[i]];
}

struct receiving {
    struct rlk_sending *s;
    const char *columns;
    bool misfit;
};

static int take_row(void *context, const rowlock_value *cells, size_t count)
{
    struct receiving *r = context;
    struct rlk_sending *s = r->s;
    s->rows++;
    r->misfit = !rlk_cells_fit(r->columns, cells, count);
    int stop = r->misfit ? -1 : s->read ? s->read(s->out, cells, count) : 0;
    r->misfit = stop < 0;
    return stop;
}

static bool rows_fit(char rows, uint64_t count)
{
    if (rows == '-')
        return count == 0;
    return rows == '*' || (count <= 1 && (rows == '?' || count == 1));
}

enum rlk_class rlk_send(rowlock_db *db, struct rlk_call *call, struct rlk_sending *s)
{
    const struct rlk_step_info *info = &rlk_steps[s->step];
    const struct rlk_order *order = &db->texts.order[s->step];
    rowlock_value values[RLK_MARKERS];
    struct receiving receiving = {.s = s, .columns = info->columns};
    struct rlk_query query = {.step = s->step,
                              .wakes = s->wakes,
                              .own = order->own ? &values[order->own - 1] : NULL,
                              .sql = db->texts.sql[s->step],
                              .values = values,
                              .count = order->count,
                              .given = s->in,
                              .each = take_row,
                              .context = &receiving};
    s->rows = 0;
    s->changed = 0;
    if (!query.sql)
        return rlk_refuse(call, RLK_UNSUPPORTED, "this database has no such step");
    arrange(&db->texts, s->step, s->in, values);
    db->stats.round_trips++;
    enum rlk_class class = db->backend->query(db->conn, call, &query);
    s->changed = query.changed;
    db->takes_writes =
        db->takes_writes || (class == RLK_DONE && query.counted && query.changed > 0);
    /* A step that only reads has changed nothing, unless it locks in the caller's transaction. */
    if (class == RLK_UNCERTAIN && (info->is & RLK_READS) && !call->inside)
        class = RLK_UNSENT;
    bool answered = !query.counted || !info->columns[0] || (info->is & RLK_COUNTS);
    if (class == RLK_DONE && (!answered || receiving.misfit || !rows_fit(info->rows, s->rows)))
        return rlk_diag_misfit(call, s->step);
    return class;
}

static enum rlk_class frame(rowlock_db *db, struct rlk_call *call, enum rlk_frame what)
{
    db->stats.round_trips++;
    return db->backend->frame(db->conn, call, what);
}

/* A call of its own, since the given one has the error that led here. */
static void roll_back(rowlock_db *db, const struct rlk_call *call, enum rlk_class class)
{
    struct rlk_call ignored = {.deadline_us = call->deadline_us};
    if (class != RLK_UNSENT && class != RLK_UNCERTAIN)
        frame(db, &ignored, RLK_ROLLBACK);
}

enum rlk_class rlk_in_transaction(rowlock_db *db, struct rlk_call *call,
                                  enum rlk_class (*run)(rowlock_db *db, struct rlk_call *call,
                                                        void *context),
                                  void *context)
{
    if (call->where != RLK_OUTSIDE || db->in_tx)
        return run(db, call, context);
    call->brief = true;
    enum rlk_class class = frame(db, call, RLK_BEGIN);
    call->brief = false;
    if (class != RLK_DONE)
        return class;
    call->where = RLK_INSIDE;
    class = run(db, call, context);
    if (class == RLK_DONE)
        class = frame(db, call, RLK_COMMIT);
    else
        roll_back(db, call, class);
    call->where = RLK_OUTSIDE;
    call->inside = call->tx_over = false;
    return class;
}
