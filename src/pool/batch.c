/* SPDX-License-Identifier: MIT
 * Many steps in one statement, or in one transaction where the database takes one at a time. One
 * that fails alone concerns only its own handle. */
#include "pool/pool.h"
#include "core/ask.h"

#include <stdlib.h>
#include <string.h>

/* ---- one attempt */

void rlk_pool_lose(struct rlk_pooled *conn)
{
    unsigned seen = conn->losses;
    rlk_lose(conn->db);
    atomic_compare_exchange_strong(&conn->pool->losses, &seen, seen + 1);
}

static void forget_older(struct rlk_pooled *conn)
{
    unsigned losses = atomic_load(&conn->pool->losses);
    if (conn->losses != losses)
        rlk_lose(conn->db);
    conn->losses = losses;
}

enum rlk_class rlk_pool_run(struct rlk_pooled *conn, struct rlk_call *call, struct rlk_ask *ask)
{
    rowlock_db *db = conn->db;
    int result = ROWLOCK_OK;
    enum rlk_where where = ask->where;
    int64_t not_after_us = ask->not_after_us;
    ask->where = call->where;
    ask->not_after_us = call->deadline_us;
    rlk_action(db, "use the pool", NULL);
    forget_older(conn);
    bool was_up = rlk_is_up(db);
    enum rlk_class class = rlk_attempt(db, ask, call, &result);
    ask->where = where;
    ask->not_after_us = not_after_us;
    if (rlk_is_away(class) && was_up)
        rlk_pool_lose(conn);
    else if (rlk_is_away(class))
        rlk_lose(db);
    if (result != ROWLOCK_OK)
        return rlk_refuse(call, result == ROWLOCK_ESCHEMA ? RLK_SCHEMA : RLK_REFUSED, "%s",
                          db->error.text);
    return class;
}

/* ---- many parcels */

enum { BATCH_MAX = 1024 };
struct batch {
    struct rlk_parcel *parcel[BATCH_MAX];
    size_t count;
    enum rlk_step kind;
};

static int by_name(const void *a, const void *b)
{
    const struct rlk_parcel *const *left = a, *const *right = b;
    int order = strcmp((*left)->given[0].text, (*right)->given[0].text);
    return order ? order : (*left)->number < (*right)->number ? -1 : 1;
}

/* In the order of the names, so that two batches never wait for each other in opposite orders. */
static void collect(struct batch *batch, struct rlk_parcel *first)
{
    batch->count = 0;
    batch->kind = first->kind;
    for (struct rlk_parcel *parcel = first; parcel; parcel = parcel->next)
        batch->parcel[batch->count++] = parcel;
    qsort(batch->parcel, batch->count, sizeof(struct rlk_parcel *), by_name);
}

/* The first cell is the number of a parcel. Of a negative number nothing was changed, since another
 * transaction is in the way. */
static int take_answer(void *out, const rowlock_value *cells, size_t count)
{
    struct batch *batch = out;
    int64_t n = cells[0].number;
    uint64_t place = n < 0 ? (uint64_t)-n : (uint64_t)n;
    if (place < 1 || place > batch->count)
        return -1;
    struct rlk_parcel *parcel = batch->parcel[place - 1];
    if (n > 0)
        return rlk_parcel_take_row(parcel, cells + 1, count - 1);
    parcel->class = RLK_CONTENTION;
    return 0;
}

static enum rlk_class run_packed(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask)
{
    struct batch *batch = ask->out;
    struct rlk_many m = {.width = batch->parcel[0]->given_count};
    for (size_t i = 0; i < batch->count; i++)
        rlk_many_add(&m, batch->parcel[i]->given, db->driver->packing);
    return rlk_many_send(db, call, batch->kind, &m, take_answer, batch);
}

static void ask_parcel(struct rlk_ask *ask, struct rlk_parcel *parcel)
{
    *ask = (struct rlk_ask){.step = parcel->step,
                            .wakes = parcel->wakes ? parcel->given[0].text : NULL,
                            .read = rlk_parcel_take_row,
                            .out = parcel};
    memcpy(ask->in, parcel->given, parcel->given_count * sizeof *parcel->given);
}

static void take_counts(struct rlk_parcel *parcel, const struct rlk_ask *ask, enum rlk_class class)
{
    parcel->changed = ask->changed;
    parcel->counted =
        class == RLK_DONE && ask->rows == 0 && (rlk_steps[parcel->step].is & RLK_COUNTS);
}

static enum rlk_class run_each(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask)
{
    struct batch *batch = ask->out;
    bool begun;
    enum rlk_class class = rlk_begin(db, call, &begun);
    for (size_t i = 0; i < batch->count && class == RLK_DONE; i++) {
        struct rlk_ask one;
        ask_parcel(&one, batch->parcel[i]);
        class = rlk_send(db, call, &one);
        take_counts(batch->parcel[i], &one, class);
    }
    return rlk_end(db, call, begun, class);
}

/* A class that the parcel has got already concerns it alone. */
static void set_class(struct rlk_parcel *parcel, enum rlk_class class, const struct rlk_call *call)
{
    enum rlk_class own = parcel->class;
    int64_t sent_us = parcel->call.sent_us;
    parcel->call = *call;
    parcel->call.sent_us = sent_us;
    parcel->class = class;
    if (class == RLK_DONE && own != RLK_DONE)
        parcel->class = rlk_refuse(&parcel->call, own,
                                   own == RLK_CONTENTION ? "another transaction has the row locked"
                                                         : "out of memory");
}

static void run_alone(struct rlk_pooled *conn, struct rlk_parcel *parcel)
{
    struct rlk_call call = {.deadline_us = parcel->worth_until_us};
    parcel->has_row = false;
    parcel->class = RLK_DONE;
    parcel->call.sent_us = rlk_now_us();
    struct rlk_ask ask;
    ask_parcel(&ask, parcel);
    enum rlk_class class = rlk_pool_run(conn, &call, &ask);
    take_counts(parcel, &ask, class);
    set_class(parcel, class, &call);
}

static int64_t latest_deadline(const struct batch *batch)
{
    int64_t latest_us = batch->parcel[0]->worth_until_us;
    for (size_t i = 1; i < batch->count; i++)
        if (batch->parcel[i]->worth_until_us > latest_us)
            latest_us = batch->parcel[i]->worth_until_us;
    return latest_us;
}

/* One of the steps made the statement fail, and nothing was changed. Which one it was is not known,
 * so each goes alone. */
static bool is_of_one(enum rlk_class class)
{
    return class == RLK_INVALID || class == RLK_REFUSED || class == RLK_VIOLATION;
}

/* Does the parcel's own step serve as well? Only the driver can give a value with "!". */
static bool own_step_serves(enum rlk_step step)
{
    return !(rlk_steps[step].is & RLK_BLOCKS) && !rlk_has_own(step);
}

void rlk_batch_run(struct rlk_pooled *conn, struct rlk_parcel *first)
{
    struct batch batch;
    collect(&batch, first);
    bool packs = conn->db->driver->packing != RLK_SINGLY;
    bool whole = batch.count > 1 || (packs && batch.kind && !own_step_serves(first->step));
    if (!whole) {
        run_alone(conn, first);
        return;
    }
    struct rlk_call call = {.deadline_us = latest_deadline(&batch)};
    int64_t sent_us = rlk_now_us();
    for (size_t i = 0; i < batch.count; i++) {
        batch.parcel[i]->class = RLK_DONE;
        batch.parcel[i]->call.sent_us = sent_us;
    }
    struct rlk_ask ask = {.step = batch.kind, .run = packs ? run_packed : run_each, .out = &batch};
    enum rlk_class class = rlk_pool_run(conn, &call, &ask);
    for (size_t i = 0; i < batch.count; i++) {
        struct rlk_parcel *parcel = batch.parcel[i];
        if (is_of_one(class))
            run_alone(conn, parcel);
        else
            set_class(parcel, class, &call);
    }
}
