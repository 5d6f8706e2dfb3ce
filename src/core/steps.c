/* SPDX-License-Identifier: MIT
 * The steps of one lock, of its queue and of a transaction: the values of each, and how its answer
 * is read. */
#include "core/step_cells.h"
#include "core/port.h"

#include <string.h>

#define OF(member) RLK_FIELD(struct rlk_row, member)
const struct rlk_field rlk_row_fields[] = {
    OF(name),   OF(slot),     OF(permits), OF(owner), OF(token),   OF(acquired_us), OF(expires_us),
    OF(ttl_us), OF(renewals), OF(host),    OF(pid),   OF(program), OF(note),        OF(now_us),
};
#undef OF
const struct rlk_field rlk_number_field[] = {{.size = sizeof(int64_t)}};

void rlk_row_of_request(const struct rlk_request *request, int64_t token, int64_t now_us,
                        struct rlk_row *row)
{
    *row = (struct rlk_row){.slot = request->permits ? token : 0,
                            .permits = request->permits,
                            .token = token,
                            .acquired_us = now_us,
                            .expires_us = now_us + request->ttl_us,
                            .ttl_us = request->ttl_us,
                            .pid = request->pid,
                            .now_us = now_us};
}

void rlk_fill(struct rlk_ask *ask, enum rlk_step step, const rowlock_value *values, size_t count)
{
    ask->step = step;
    memcpy(ask->in, values, count * sizeof *values);
}

void rlk_reads_answer(struct rlk_ask *ask)
{
    static const struct rlk_field answer[] = {RLK_FIELD(struct rlk_ask, answer)};
    fills(ask, answer, ask);
}

/* ---- the tables */

enum rlk_class rlk_step_meta(rowlock_db *db, struct rlk_call *call, struct rlk_meta *out)
{
    /* The floor is not needed. */
    static const struct rlk_field fields[] = {RLK_FIELD(struct rlk_meta, version),
                                              RLK_FIELD(struct rlk_meta, compat),
                                              RLK_FIELD(struct rlk_meta, code),
                                              RLK_FIELD(struct rlk_meta, identity),
                                              {0},
                                              RLK_FIELD(struct rlk_meta, swept_us),
                                              RLK_FIELD(struct rlk_meta, member)};
    struct rlk_ask ask = {.step = RLK_STEP_META, .fields = fields, .out = out};
    *out = (struct rlk_meta){0};
    enum rlk_class class = rlk_send(db, call, &ask);
    out->found = ask.rows > 0;
    return class;
}

/* ---- a try */

enum { REQUEST_VALUES = 12 };

static void put_request(struct rlk_ask *ask, enum rlk_step step, const struct rlk_request *request)
{
    const rowlock_value values[REQUEST_VALUES] = {
        rowlock_text(request->name),   rowlock_int(request->permits),
        rowlock_text(request->owner),  rowlock_int(request->number),
        rowlock_int(request->ttl_us),  rowlock_text(request->host),
        rowlock_int(request->pid),     rowlock_text(request->program),
        rowlock_text(request->note),   rowlock_int(request->ticket),
        rowlock_bool(request->unfair), rowlock_bool(ask->where == RLK_INSIDE),
    };
    rlk_fill(ask, step, values, REQUEST_VALUES);
}

/* A step that answers nothing has met another transaction. */
static void forget_grant(void *out)
{
    struct rlk_trying *t = out;
    *t->grant = (struct rlk_grant){.outcome = RLK_IN_FLIGHT, .behind = true};
}

/* If the answer has a row that is in the way, or is ours, all its cells must fit. Each database
 * counts tokens from 1, so token 0 means "not decided". */
static int read_try(void *out, const rowlock_value *cells, size_t count)
{
    enum { TOKEN, OURS, SETTLING, BEHIND, NOW, ROW };
    struct rlk_trying *t = out;
    struct rlk_grant *grant = t->grant;
    bool granted = !is_null(&cells[TOKEN]);
    bool stands = count > ROW && !is_null(&cells[OURS]);
    int64_t token = granted ? cells[TOKEN].number : -1;
    if (stands && (is_null(&cells[NOW]) || !rlk_cells_fit(RLK_ROW, &cells[ROW], count - ROW)))
        return -1;
    if (granted && (token < 0 || is_null(&cells[NOW])))
        return -1;
    if (stands)
        rlk_put_cells(&grant->row, rlk_row_fields, &cells[ROW], count - ROW);
    bool ours = stands && cells[OURS].number != 0;
    if (ours && grant->row.token < 1)
        return -1;
    grant->row.now_us = is_null(&cells[NOW]) ? 0 : cells[NOW].number;
    if (granted)
        rlk_row_of_request(t->request, token, grant->row.now_us, &grant->row);
    grant->settling = !is_null(&cells[SETTLING]) && cells[SETTLING].number != 0;
    grant->behind = cells[BEHIND].number != 0;
    grant->outcome = granted || ours ? RLK_GRANTED
                     : stands        ? RLK_HELD
                     : grant->behind ? RLK_BEHIND
                                     : RLK_IN_FLIGHT;
    return token == 0 ? RLK_UNDECIDED : 0;
}

enum { MET_EXPIRES, MET_TTL, MET_RENEWALS, MET_NOW };

/* Only a renewal changes the row of a grant. The rest of it is known. */
static int read_still_held(void *out, const rowlock_value *cells, size_t count)
{
    struct rlk_trying *t = out;
    struct rlk_row *row = &t->grant->row;
    (void)count;
    *row = *t->request->met;
    row->expires_us = cells[MET_EXPIRES].number;
    row->ttl_us = cells[MET_TTL].number;
    row->renewals = cells[MET_RENEWALS].number;
    row->now_us = cells[MET_NOW].number;
    t->grant->outcome = RLK_HELD;
    t->grant->behind = t->grant->settling = false;
    return 0;
}

/* Is the grant that kept us out the last time still in the table? */
static void ask_still_held(struct rlk_ask *ask, struct rlk_trying *t)
{
    const struct rlk_row *met = t->request->met;
    ASK(ask, STILL_HELD, rowlock_text(met->name), rowlock_int(met->slot), rowlock_int(met->token));
    reads(ask, read_still_held, t);
}

/* The token is that of the holder, or of a new grant if there is no holder. */
static int read_met(void *out, const rowlock_value *cells, size_t count)
{
    enum { TOKEN, HOLDER };
    const rowlock_value *holder = &cells[HOLDER];
    struct rlk_trying *t = out;
    bool stands = !is_null(&holder[MET_EXPIRES]);
    bool same = stands && cells[TOKEN].number == t->request->met->token &&
                holder[MET_EXPIRES].number > holder[MET_NOW].number;
    if (stands && (is_null(&holder[MET_TTL]) || is_null(&holder[MET_RENEWALS])))
        return -1;
    if (same)
        return read_still_held(t, holder, count - HOLDER);
    int64_t token = stands ? 0 : cells[TOKEN].number;
    rlk_row_of_request(t->request, token, holder[MET_NOW].number, &t->grant->row);
    t->grant->outcome = RLK_GRANTED;
    return token == 0 ? RLK_UNDECIDED : 0;
}

/* An answer without a row means that another transaction is changing the lock. */
static void ask_try(struct rlk_ask *ask, enum rlk_step step, struct rlk_trying *t)
{
    put_request(ask, step, t->request);
    reads(ask, step == RLK_STEP_ACQUIRE_MET ? read_met : read_try, t);
    ask->restart = forget_grant;
    bool may_write = !(rlk_steps[step].is & RLK_READS);
    /* A grant of this kind may let in the next waiter beside it. */
    if (may_write && t->request->permits != 0)
        ask->wakes = t->request->name;
}

void rlk_step_look(struct rlk_ask *ask, struct rlk_trying *t)
{
    ask_try(ask, RLK_STEP_LOOK, t);
}

void rlk_step_try(struct rlk_ask *ask, struct rlk_trying *t)
{
    ask_try(ask, RLK_STEP_ACQUIRE, t);
}

static struct rlk_ask *cheap(struct rlk_ask *first, const struct rlk_ask *ask)
{
    rlk_ask_init(first);
    first->where = ask->where;
    first->cheap = true;
    return first;
}

/* Steps before the try, where they cost less than the try and are likely to be enough:
 *   - ACQUIRE_MET for a lock that was held by the same exclusive grant the last two times, but not
 *     in a pool, where ACQUIRE_USUAL of many handles is one statement;
 *   - ACQUIRE_USUAL for a lock that was free or held exclusively the last time;
 *   - STILL_HELD for a lock that was held the last time; in a pool also while it waits;
 *   - LOOK always, where it costs no round trip. */
void rlk_step_acquire(const rowlock_db *db, struct rlk_ask *ask, struct rlk_trying *t)
{
    const struct rlk_request *request = t->request;
    char *const *sql = db->texts.sql;
    struct rlk_ask **last = &ask->first, *next = t->first;
    bool gathers = db->port && db->port->gathers;
    bool outside = ask->where == RLK_OUTSIDE;
    bool plain = request->ticket == 0 && outside;
    bool exclusive = request->met && request->met->slot == 0;
    bool usual = plain && request->permits == 0 && (request->granted || exclusive);
    bool again = usual && exclusive && request->met_again && !gathers;
    bool polls = gathers && outside;
    rlk_step_try(ask, t);
    if (again && sql[RLK_STEP_ACQUIRE_MET]) {
        *last = cheap(next, ask);
        ask_try(next, RLK_STEP_ACQUIRE_MET, t);
        return;
    }
    if (usual && sql[RLK_STEP_ACQUIRE_USUAL]) {
        *last = cheap(next, ask);
        ask_try(next, RLK_STEP_ACQUIRE_USUAL, t);
        return;
    }
    if (db->driver->local && sql[RLK_STEP_LOOK]) {
        *last = cheap(next, ask);
        rlk_step_look(next, t);
        last = &next->first;
        next++;
    }
    if ((plain || polls) && request->met && sql[RLK_STEP_STILL_HELD]) {
        *last = cheap(next, ask);
        ask_still_held(next, t);
    }
}

void rlk_step_withdraw(struct rlk_ask *ask, const struct rlk_request *request)
{
    ASK(ask, WITHDRAW, rowlock_text(request->name), rowlock_text(request->owner),
        rowlock_int(request->number));
    ask->wakes = request->name;
    rlk_reads_answer(ask);
}

/* ---- what a holder does */

#define HELD(held)                                                                      \
    rowlock_text((held)->name), rowlock_int((held)->slot), rowlock_text((held)->owner), \
        rowlock_int((held)->token)

void rlk_step_renew(struct rlk_ask *ask, const struct rlk_held *held, int64_t ttl_us,
                    struct rlk_verified *out)
{
    static const struct rlk_field fields[] = {RLK_FIELD(struct rlk_verified, expires_us),
                                              RLK_FIELD(struct rlk_verified, lapsed_us),
                                              RLK_FIELD(struct rlk_verified, now_us)};
    ASK(ask, RENEW, HELD(held), rowlock_int(ttl_us));
    fills(ask, fields, out);
}

void rlk_step_release(struct rlk_ask *ask, const struct rlk_held *held)
{
    ASK(ask, RELEASE, HELD(held), rowlock_bool(ask->where == RLK_INSIDE));
    ask->wakes = held->name;
    rlk_reads_answer(ask);
}

void rlk_step_note(struct rlk_ask *ask, const struct rlk_held *held, const char *text)
{
    ASK(ask, NOTE, HELD(held), rowlock_text(text));
    rlk_reads_answer(ask);
}

void rlk_step_verify(struct rlk_ask *ask, const struct rlk_held *held, struct rlk_verified *out)
{
    static const struct rlk_field fields[] = {RLK_FIELD(struct rlk_verified, expires_us),
                                              RLK_FIELD(struct rlk_verified, now_us)};
    ASK(ask, VERIFY, HELD(held));
    fills(ask, fields, out);
}

/* ---- in the caller's transaction */

static int read_guarded(void *out, const rowlock_value *cells, size_t count)
{
    struct rlk_guarded *guarded = out;
    (void)count;
    *guarded = (struct rlk_guarded){.found = !is_null(&cells[0]),
                                    .token = is_null(&cells[0]) ? 0 : cells[0].number,
                                    .stands = cells[1].number != 0};
    return 0;
}

/* The driver gives the last value. */
void rlk_step_guard(struct rlk_ask *ask, const struct rlk_held *held, struct rlk_guarded *out)
{
    ASK(ask, GUARD, HELD(held), rowlock_null());
    reads(ask, read_guarded, out);
}

void rlk_step_fence(struct rlk_ask *ask, const char *resource, int64_t token)
{
    ASK(ask, FENCE, rowlock_text(resource), rowlock_int(token));
    rlk_reads_answer(ask);
}

/* ---- the queue */

/* The driver gives the last value. */
void rlk_step_enqueue(struct rlk_ask *ask, const struct rlk_request *request, int64_t lease_us,
                      struct rlk_position *out)
{
    static const struct rlk_field fields[] = {RLK_FIELD(struct rlk_position, ticket),
                                              RLK_FIELD(struct rlk_position, ahead),
                                              RLK_FIELD(struct rlk_position, third)};
    put_request(ask, RLK_STEP_ENQUEUE, request);
    ask->in[REQUEST_VALUES] = rowlock_int(lease_us);
    ask->in[REQUEST_VALUES + 1] = rowlock_null();
    fills(ask, fields, out);
}

void rlk_tell_enqueued(rowlock_db *db, const struct rlk_request *request, struct rlk_position *out)
{
    struct rlk_request queued = *request;
    queued.ticket = out->ticket;
    out->wakeable = rlk_tell(db, RLK_OUTSIDE, RLK_ENQUEUED, &queued, out->third);
}

void rlk_step_leave(struct rlk_ask *ask, const struct rlk_request *request)
{
    ASK(ask, LEAVE, rowlock_text(request->name), rowlock_int(request->number));
    ask->wakes = request->name;
    rlk_reads_answer(ask);
}

void rlk_step_cycle(struct rlk_ask *ask, const struct rlk_request *request, char out[RLK_CYCLE])
{
    static const struct rlk_field words[] = {{.size = RLK_CYCLE, .is_text = true}};
    ASK(ask, CYCLE, rowlock_text(request->name), rowlock_text(request->owner),
        rowlock_int(request->ticket));
    fills(ask, words, out);
}
