/* SPDX-License-Identifier: MIT
 * The steps for many locks of one handle: as arrays, as one JSON text, or one lock after the other
 * in a transaction (enum rlk_packing). */
#include "core/step_cells.h"
#include "core/many.h"

#include <string.h>

/* ---- renewing */

static void lease_values(const struct rlk_lease *lease, rowlock_value *out)
{
    out[0] = rowlock_int(lease->held.slot);
    out[1] = rowlock_int(lease->held.token);
    out[2] = rowlock_int(lease->ttl_us);
    out[3] = rowlock_text(lease->held.name);
    out[4] = rowlock_text(lease->held.owner);
}

/* The first cell is the number of a lease, from 1. 0 stands for all leases. The first clock
 * is the earliest, so no lease ends before the time that it gives. */
static int read_renewed(void *out, const rowlock_value *cells, size_t count)
{
    struct rlk_renewing *r = out;
    int64_t n = cells[0].number;
    (void)count;
    if (n < 0 || n > (int64_t)r->count)
        return -1;
    for (size_t i = 0; n == 0 && i < r->count; i++)
        r->leases[i].renewed = true;
    if (n > 0)
        r->leases[n - 1].renewed = true;
    if (r->now_us == 0)
        r->now_us = cells[1].number;
    return 0;
}

static enum rlk_class renew_each(rowlock_db *db, struct rlk_call *call, struct rlk_renewing *r)
{
    bool begun;
    enum rlk_class class = rlk_begin(db, call, &begun);
    for (size_t i = 0; class == RLK_DONE && i < r->count; i++) {
        struct rlk_renewing one = {.leases = &r->leases[i], .count = 1, .now_us = r->now_us};
        struct rlk_many m = {.width = 5};
        lease_values(&r->leases[i], m.in);
        class = rlk_many_send(db, call, RLK_STEP_RENEW_ALL, &m, read_renewed, &one);
        r->now_us = one.now_us;
    }
    return rlk_end(db, call, begun, class);
}

static enum rlk_class renew_packed(rowlock_db *db, struct rlk_call *call, struct rlk_renewing *r)
{
    struct rlk_many m = {.width = 5};
    for (size_t i = 0; i < r->count; i++) {
        rowlock_value row[5];
        lease_values(&r->leases[i], row);
        rlk_many_add(&m, row, db->driver->packing);
    }
    return rlk_many_send(db, call, RLK_STEP_RENEW_ALL, &m, read_renewed, r);
}

static enum rlk_class run_renew_all(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask)
{
    struct rlk_renewing *r = ask->out;
    bool singly = db->driver->packing == RLK_SINGLY;
    for (size_t i = 0; i < r->count; i++)
        r->leases[i].renewed = false;
    r->now_us = 0;
    enum rlk_class class = singly ? renew_each(db, call, r) : renew_packed(db, call, r);
    for (size_t i = 0; class != RLK_DONE && i < r->count; i++)
        r->leases[i].renewed = false;
    return class;
}

void rlk_step_renew_all(struct rlk_ask *ask, struct rlk_renewing *r)
{
    ask->step = RLK_STEP_RENEW_ALL;
    ask->run = run_renew_all;
    ask->out = r;
}

/* ---- acquiring */

/* The answer is one row for each grant. If one was refused, it is a single row without a token. */
static int read_granted(void *out, const rowlock_value *cells, size_t count)
{
    enum { NUMBER, TOKEN, NOW };
    struct rlk_trying_all *a = out;
    int64_t n = cells[NUMBER].number;
    bool none = cells[TOKEN].kind == ROWLOCK_NULL;
    (void)count;
    if (n < 1 || n > (int64_t)a->count || a->refused > 0 || a->grants[n - 1].row.token != 0)
        return -1;
    a->which = (size_t)n - 1;
    a->granted += !none;
    a->refused += none;
    if (none)
        return a->granted > 0 ? -1 : 0;
    if (cells[TOKEN].number < 1 || cells[NOW].kind == ROWLOCK_NULL)
        return -1;
    a->grants[n - 1].outcome = RLK_GRANTED;
    rlk_row_of_request(&a->requests[n - 1], cells[TOKEN].number, cells[NOW].number,
                       &a->grants[n - 1].row);
    return 0;
}

/* The first request has the values that all requests share. */
static enum rlk_class acquire_packed(rowlock_db *db, struct rlk_call *call,
                                     struct rlk_trying_all *a)
{
    const struct rlk_request *first = a->requests;
    struct rlk_many m = {.width = 4,
                         .shared = 7,
                         .in = {[4] = rowlock_int(first->permits),
                                rowlock_int(first->ttl_us),
                                rowlock_text(first->host),
                                rowlock_int(first->pid),
                                rowlock_text(first->program),
                                rowlock_text(first->note),
                                rowlock_bool(first->unfair)}};
    for (size_t i = 0; i < a->count; i++) {
        const struct rlk_request *request = &a->requests[i];
        const rowlock_value row[] = {rowlock_text(request->name), rowlock_text(request->owner),
                                     rowlock_int(request->number), rowlock_int(request->ticket)};
        rlk_many_add(&m, row, db->driver->packing);
    }
    enum rlk_class class = rlk_many_send(db, call, RLK_STEP_ACQUIRE_ALL, &m, read_granted, a);
    if (class == RLK_DONE && a->refused == 0 && a->granted < a->count)
        return rlk_diag_misfit(call, RLK_STEP_ACQUIRE_ALL);
    return class;
}

static bool in_the_way(const struct rlk_grant *grant)
{
    return grant->outcome != RLK_GRANTED;
}

static enum rlk_class ask_one(rowlock_db *db, struct rlk_call *call, struct rlk_trying_all *a,
                              size_t i, void (*step)(struct rlk_ask *ask, struct rlk_trying *t))
{
    struct rlk_trying t = {.request = &a->requests[i], .grant = &a->grants[i]};
    struct rlk_ask ask = {.where = call->where};
    step(&ask, &t);
    return rlk_send(db, call, &ask);
}

/* Returns RLK_CONTENTION if one is refused, so that the transaction is rolled back. */
static enum rlk_class acquire_each(rowlock_db *db, struct rlk_call *call, struct rlk_trying_all *a)
{
    enum rlk_class class = RLK_DONE;
    for (size_t i = 0; class == RLK_DONE && i < a->count; i++) {
        class = ask_one(db, call, a, i, rlk_step_try);
        a->refused = class == RLK_DONE && in_the_way(&a->grants[i]);
        if (a->refused) {
            a->which = i;
            class = RLK_CONTENTION;
        }
    }
    return class;
}

/* It looks before it writes, so that a busy lock needs no write lock. */
static enum rlk_class acquire_singly(rowlock_db *db, struct rlk_call *call,
                                     struct rlk_trying_all *a)
{
    bool any_free = false, begun;
    for (size_t i = 0; i < a->count && !a->refused; i++) {
        enum rlk_class class = ask_one(db, call, a, i, rlk_step_look);
        if (class != RLK_DONE)
            return class;
        a->refused = a->grants[i].outcome == RLK_HELD || a->grants[i].outcome == RLK_BEHIND;
        any_free = any_free || in_the_way(&a->grants[i]);
        a->which = a->refused ? i : 0;
    }
    if (a->refused || !any_free)
        return RLK_DONE;
    enum rlk_class class = rlk_begin(db, call, &begun);
    if (class == RLK_DONE)
        class = acquire_each(db, call, a);
    class = rlk_end(db, call, begun, class);
    return a->refused ? RLK_DONE : class;
}

/* As with one lock: what keeps us out may be our own first attempt. */
static enum rlk_class check_own(struct rlk_call *call, const struct rlk_ask *ask,
                                const struct rlk_trying_all *a)
{
    if (!ask->was_uncertain || a->grants[a->which].outcome != RLK_IN_FLIGHT)
        return RLK_DONE;
    return rlk_refuse(call, RLK_CONTENTION,
                      "a transaction, perhaps of this program, is changing the lock");
}

static enum rlk_class run_acquire_all(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask)
{
    struct rlk_trying_all *a = ask->out;
    bool singly = db->driver->packing == RLK_SINGLY;
    memset(a->grants, 0, a->count * sizeof *a->grants);
    a->granted = a->refused = a->which = 0;
    enum rlk_class class = singly ? acquire_singly(db, call, a) : acquire_packed(db, call, a);
    if (class == RLK_DONE && a->refused && !singly)
        a->grants[a->which] = (struct rlk_grant){.outcome = RLK_IN_FLIGHT, .behind = true};
    return class == RLK_DONE ? check_own(call, ask, a) : class;
}

void rlk_step_acquire_all(struct rlk_ask *ask, struct rlk_trying_all *t)
{
    ask->step = RLK_STEP_ACQUIRE_ALL;
    ask->run = run_acquire_all;
    ask->out = t;
}
