/* SPDX-License-Identifier: MIT
 * Many steps in one statement, or in one transaction where the database takes one at a time. One
 * that fails alone concerns only its own handle. */
#include "pool/pool.h"
#include "core/ask.h"

#include <stdlib.h>
#include <string.h>

/* ---- one attempt */

enum rlk_class rlk_pool_run(struct rlk_pooled *conn, struct rlk_call *call, struct rlk_ask *ask)
{
    rowlock_db *db = conn->db;
    int result = ROWLOCK_OK;
    enum rlk_where where = ask->where;
    int64_t not_after_us = ask->not_after_us;
    ask->where = call->where;
    ask->not_after_us = call->deadline_us;
    rlk_action(db, "use the pool", NULL);
    enum rlk_class class = rlk_attempt(db, ask, call, &result);
    ask->where = where;
    ask->not_after_us = not_after_us;
    if (rlk_is_away(class))
        rlk_lose(db);
    if (result != ROWLOCK_OK)
        return rlk_refuse(call, result == ROWLOCK_ESCHEMA ? RLK_SCHEMA : RLK_REFUSED, "%s",
                          db->error.text);
    return class;
}

/* ---- many slots */

enum { BATCH_MAX = 1024 };
struct batch {
    struct rlk_slot *slot[BATCH_MAX];
    size_t count;
    enum rlk_step kind;
};

static int by_name(const void *a, const void *b)
{
    const struct rlk_slot *const *left = a, *const *right = b;
    int order = strcmp((*left)->given[0].text, (*right)->given[0].text);
    return order ? order : (*left)->number < (*right)->number ? -1 : 1;
}

/* In the order of the names, so that two batches never wait for each other in opposite orders. */
static void collect(struct batch *batch, struct rlk_slot *first)
{
    batch->count = 0;
    batch->kind = first->kind;
    for (struct rlk_slot *slot = first; slot; slot = slot->next)
        batch->slot[batch->count++] = slot;
    qsort(batch->slot, batch->count, sizeof(struct rlk_slot *), by_name);
}

/* The first cell is the number of a slot. Of a negative number nothing was changed, since another
 * transaction is in the way. */
static int take_answer(void *out, const rowlock_value *cells, size_t count)
{
    struct batch *batch = out;
    int64_t n = cells[0].number;
    uint64_t place = n < 0 ? (uint64_t)-n : (uint64_t)n;
    if (place < 1 || place > batch->count)
        return -1;
    struct rlk_slot *slot = batch->slot[place - 1];
    if (n > 0)
        return rlk_slot_take_row(slot, cells + 1, count - 1);
    slot->class = RLK_CONTENTION;
    return 0;
}

static enum rlk_class run_packed(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask)
{
    struct batch *batch = ask->out;
    struct rlk_many m = {.width = batch->slot[0]->given_count};
    for (size_t i = 0; i < batch->count; i++)
        rlk_many_add(&m, batch->slot[i]->given, db->driver->packing);
    return rlk_many_send(db, call, batch->kind, &m, take_answer, batch);
}

static int take_row(void *out, const rowlock_value *cells, size_t count)
{
    return rlk_slot_take_row(out, cells, count);
}

static void ask_slot(struct rlk_ask *ask, struct rlk_slot *slot)
{
    *ask = (struct rlk_ask){.step = slot->step,
                            .wakes = slot->wakes ? slot->given[0].text : NULL,
                            .read = take_row,
                            .out = slot};
    memcpy(ask->in, slot->given, slot->given_count * sizeof *slot->given);
}

static void take_counts(struct rlk_slot *slot, const struct rlk_ask *ask, enum rlk_class class)
{
    slot->changed = ask->changed;
    slot->counted = class == RLK_DONE && ask->rows == 0 && (rlk_steps[slot->step].is & RLK_COUNTS);
}

static enum rlk_class run_each(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask)
{
    struct batch *batch = ask->out;
    bool begun;
    enum rlk_class class = rlk_begin(db, call, &begun);
    for (size_t i = 0; i < batch->count && class == RLK_DONE; i++) {
        struct rlk_ask one;
        ask_slot(&one, batch->slot[i]);
        class = rlk_send(db, call, &one);
        take_counts(batch->slot[i], &one, class);
    }
    return rlk_end(db, call, begun, class);
}

/* A class that the slot has got already concerns it alone. */
static void set_class(struct rlk_slot *slot, enum rlk_class class, const struct rlk_call *call)
{
    enum rlk_class own = slot->class;
    int64_t sent_us = slot->call.sent_us;
    slot->call = *call;
    slot->call.sent_us = sent_us;
    slot->class = class;
    if (class == RLK_DONE && own != RLK_DONE)
        slot->class = rlk_refuse(&slot->call, own,
                                 own == RLK_CONTENTION ? "another transaction has the row locked"
                                                       : "out of memory");
}

static void run_alone(struct rlk_pooled *conn, struct rlk_slot *slot)
{
    struct rlk_call call = {.deadline_us = slot->worth_until_us};
    slot->has_row = false;
    slot->class = RLK_DONE;
    slot->call.sent_us = rlk_now_us();
    struct rlk_ask ask;
    ask_slot(&ask, slot);
    enum rlk_class class = rlk_pool_run(conn, &call, &ask);
    take_counts(slot, &ask, class);
    set_class(slot, class, &call);
}

static int64_t latest_deadline(const struct batch *batch)
{
    int64_t latest_us = batch->slot[0]->worth_until_us;
    for (size_t i = 1; i < batch->count; i++)
        if (batch->slot[i]->worth_until_us > latest_us)
            latest_us = batch->slot[i]->worth_until_us;
    return latest_us;
}

/* One of the steps made the statement fail, and nothing was changed. Which one it was is not known,
 * so each goes alone. */
static bool is_of_one(enum rlk_class class)
{
    return class == RLK_INVALID || class == RLK_REFUSED || class == RLK_VIOLATION;
}

/* Does the slot's own step serve as well? Only the driver can give a value with "!". */
static bool goes_alone(enum rlk_step step)
{
    return !(rlk_steps[step].is & RLK_BLOCKS) && !rlk_has_own(step);
}

void rlk_batch_run(struct rlk_pooled *conn, struct rlk_slot *first)
{
    struct batch batch;
    collect(&batch, first);
    bool packs = conn->db->driver->packing != RLK_SINGLY;
    bool whole = batch.count > 1 || (packs && batch.kind && !goes_alone(first->step));
    if (!whole) {
        run_alone(conn, first);
        return;
    }
    struct rlk_call call = {.deadline_us = latest_deadline(&batch)};
    int64_t sent_us = rlk_now_us();
    for (size_t i = 0; i < batch.count; i++) {
        batch.slot[i]->class = RLK_DONE;
        batch.slot[i]->call.sent_us = sent_us;
    }
    struct rlk_ask ask = {.step = batch.kind, .run = packs ? run_packed : run_each, .out = &batch};
    enum rlk_class class = rlk_pool_run(conn, &call, &ask);
    for (size_t i = 0; i < batch.count; i++) {
        struct rlk_slot *slot = batch.slot[i];
        if (is_of_one(class))
            run_alone(conn, slot);
        else
            set_class(slot, class, &call);
    }
}
