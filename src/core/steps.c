/* SPDX-License-Identifier: MIT
 * The steps of one lock, of its queue and of a transaction: the values of each, and how its answer
 * is read. */
#include "core/cells.h"

#include <string.h>

void rlk_row_from_cells(const rowlock_value *cells, struct rlk_row *out)
{
    enum { NAME, SLOT, PERMITS, OWNER, TOKEN, ACQUIRED, EXPIRES, TTL, RENEWALS, HOST, PID };
    enum { PROGRAM = PID + 1, NOTE };
    COPY(&cells[NAME], out->name);
    out->slot = cells[SLOT].number;
    out->permits = (int)cells[PERMITS].number;
    COPY(&cells[OWNER], out->owner);
    out->token = cells[TOKEN].number;
    out->acquired_us = cells[ACQUIRED].number;
    out->expires_us = cells[EXPIRES].number;
    out->ttl_us = cells[TTL].number;
    out->renewals = cells[RENEWALS].number;
    COPY(&cells[HOST], out->host);
    out->pid = cells[PID].number;
    COPY(&cells[PROGRAM], out->program);
    COPY(&cells[NOTE], out->note);
}

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

/* ---- steps that change one thing, or find nothing to change */

static int read_done(void *out, const rowlock_value *cells, size_t count)
{
    (void)count;
    *(bool *)out = cells[0].number != 0;
    return 0;
}

enum rlk_class rlk_send_change(rowlock_db *db, struct rlk_call *call, enum rlk_step step,
                               const rowlock_value *in, const char *wakes, bool *done)
{
    bool answer = false;
    struct rlk_sending s = {
        .step = step, .in = in, .wakes = wakes, .read = read_done, .out = &answer};
    enum rlk_class class = rlk_send(db, call, &s);
    if (class == RLK_DONE)
        *done = s.rows > 0 ? answer : s.changed > 0;
    return class;
}

static bool note(rowlock_db *db, struct rlk_call *call, enum rlk_news news,
                 const struct rlk_request *request, int64_t number)
{
    struct rlk_call ignored = {.deadline_us = call->deadline_us, .where = call->where};
    return db->backend->note && db->backend->note(db->conn, &ignored, news, request, number);
}

/* ---- the tables */

static int read_meta(void *out, const rowlock_value *cells, size_t count)
{
    enum { VERSION, COMPAT, CODE, IDENTITY, FLOOR, SWEPT, MEMBER };
    struct rlk_meta *meta = out;
    (void)count;
    meta->found = true;
    meta->version = cells[VERSION].number;
    meta->compat = cells[COMPAT].number;
    meta->code = cells[CODE].number;
    COPY(&cells[IDENTITY], meta->identity);
    meta->token_floor = cells[FLOOR].number;
    meta->swept_us = cells[SWEPT].number;
    meta->member = cells[MEMBER].number;
    return 0;
}

enum rlk_class rlk_step_meta(rowlock_db *db, struct rlk_call *call, struct rlk_meta *out)
{
    *out = (struct rlk_meta){0};
    return send(db, call, RLK_STEP_META, NULL, read_meta, out);
}

/* ---- a try */

enum { REQUEST_VALUES = 12 };

static void request_values(const struct rlk_call *call, const struct rlk_request *request,
                           rowlock_value *out)
{
    const rowlock_value values[REQUEST_VALUES] = {
        rowlock_text(request->name),   rowlock_int(request->permits),
        rowlock_text(request->owner),  rowlock_int(request->number),
        rowlock_int(request->ttl_us),  rowlock_text(request->host),
        rowlock_int(request->pid),     rowlock_text(request->program),
        rowlock_text(request->note),   rowlock_int(request->ticket),
        rowlock_bool(request->unfair), rowlock_int(call->where == RLK_INSIDE),
    };
    memcpy(out, values, sizeof values);
}

struct trying {
    const struct rlk_request *request;
    struct rlk_grant *grant;
    bool answered;
    /* The token of a grant. 0: the step has not decided. -1: no grant. */
    int64_t token;
};

/* If the answer has a row that is in the way, or is ours, all its cells must fit. Each database
 * counts tokens from 1, so token 0 means "not decided". */
static int read_try(void *out, const rowlock_value *cells, size_t count)
{
    enum { TOKEN, OURS, SETTLING, BEHIND, NOW, ROW };
    struct trying *t = out;
    struct rlk_grant *grant = t->grant;
    bool granted = !is_null(&cells[TOKEN]);
    bool stands = count > ROW && !is_null(&cells[OURS]);
    t->token = granted ? cells[TOKEN].number : -1;
    if (stands && (is_null(&cells[NOW]) || !rlk_cells_fit(RLK_ROW, &cells[ROW], count - ROW)))
        return -1;
    if (granted && (t->token < 0 || is_null(&cells[NOW])))
        return -1;
    if (stands)
        rlk_row_from_cells(&cells[ROW], &grant->row);
    bool ours = stands && cells[OURS].number != 0;
    if (ours && grant->row.token < 1)
        return -1;
    grant->row.now_us = is_null(&cells[NOW]) ? 0 : cells[NOW].number;
    if (granted)
        rlk_row_of_request(t->request, t->token, grant->row.now_us, &grant->row);
    grant->settling = !is_null(&cells[SETTLING]) && cells[SETTLING].number != 0;
    grant->behind = cells[BEHIND].number != 0;
    grant->outcome = granted || ours ? RLK_GRANTED
                     : stands        ? RLK_HELD
                     : grant->behind ? RLK_BEHIND
                                     : RLK_IN_FLIGHT;
    return 0;
}

enum { MET_EXPIRES, MET_TTL, MET_RENEWALS, MET_NOW };

/* Only a renewal changes the row of a grant. The rest of it is known. */
static int read_still_held(void *out, const rowlock_value *cells, size_t count)
{
    struct trying *t = out;
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
static enum rlk_class still_held(rowlock_db *db, struct rlk_call *call, struct trying *t)
{
    const struct rlk_row *met = t->request->met;
    const rowlock_value in[] = {rowlock_text(met->name), rowlock_int(met->slot),
                                rowlock_int(met->token)};
    struct rlk_sending s = {
        .step = RLK_STEP_STILL_HELD, .in = in, .read = read_still_held, .out = t};
    t->token = -1;
    enum rlk_class class = rlk_send(db, call, &s);
    t->answered = s.rows > 0;
    return class;
}

/* The token is that of the holder, or of a new grant if there is no holder. */
static int read_met(void *out, const rowlock_value *cells, size_t count)
{
    enum { TOKEN, HOLDER };
    const rowlock_value *holder = &cells[HOLDER];
    struct trying *t = out;
    bool stands = !is_null(&holder[MET_EXPIRES]);
    bool same = stands && cells[TOKEN].number == t->request->met->token &&
                holder[MET_EXPIRES].number > holder[MET_NOW].number;
    if (stands && (is_null(&holder[MET_TTL]) || is_null(&holder[MET_RENEWALS])))
        return -1;
    t->token = same ? -1 : stands ? 0 : cells[TOKEN].number;
    if (same)
        return read_still_held(t, holder, count - HOLDER);
    rlk_row_of_request(t->request, t->token, holder[MET_NOW].number, &t->grant->row);
    t->grant->outcome = RLK_GRANTED;
    return 0;
}

/* An answer without a row means that another transaction is changing the lock. */
static enum rlk_class try_step(rowlock_db *db, struct rlk_call *call, enum rlk_step step,
                               struct trying *t)
{
    rowlock_value in[REQUEST_VALUES];
    request_values(call, t->request, in);
    struct rlk_sending s = {.step = step,
                            .in = in,
                            .read = step == RLK_STEP_ACQUIRE_MET ? read_met : read_try,
                            .out = t};
    bool may_write = !(rlk_steps[step].is & RLK_READS);
    /* A grant of this kind may let in the next waiter beside it. */
    if (may_write && t->request->permits != 0)
        s.wakes = t->request->name;
    *t->grant = (struct rlk_grant){.outcome = RLK_IN_FLIGHT, .behind = true};
    t->token = -1;
    enum rlk_class class = rlk_send(db, call, &s);
    t->answered = s.rows > 0;
    if (class == RLK_DONE && t->token == 0 && step == RLK_STEP_ACQUIRE)
        return rlk_diag_misfit(call, step);
    return class;
}

enum rlk_class rlk_step_look(rowlock_db *db, struct rlk_call *call,
                             const struct rlk_request *request, struct rlk_grant *out)
{
    struct trying t = {.request = request, .grant = out};
    return try_step(db, call, RLK_STEP_LOOK, &t);
}

enum rlk_class rlk_step_try(rowlock_db *db, struct rlk_call *call,
                            const struct rlk_request *request, struct rlk_grant *out)
{
    struct trying t = {.request = request, .grant = out};
    return try_step(db, call, RLK_STEP_ACQUIRE, &t);
}

void rlk_step_note_taken(rowlock_db *db, struct rlk_call *call, const struct rlk_request *request,
                         int64_t token)
{
    note(db, call, RLK_TAKEN, request, token);
}

/* A step before the try, where it costs less than the try and is likely to be enough:
 *   - ACQUIRE_MET for a lock that was held by the same exclusive grant the last two times, but not
 *     in a pool, where ACQUIRE_USUAL of many handles is one statement;
 *   - ACQUIRE_USUAL for a lock that was free or held exclusively the last time;
 *   - STILL_HELD for a lock that was held the last time; in a pool also while it waits;
 *   - LOOK always, where it costs no round trip. */
static enum rlk_class ask_first(rowlock_db *db, struct rlk_call *call, struct trying *t)
{
    const struct rlk_request *request = t->request;
    char *const *sql = db->texts.sql;
    bool plain = request->ticket == 0 && call->where == RLK_OUTSIDE;
    bool exclusive = request->met && request->met->slot == 0;
    bool usual = plain && request->permits == 0 && (request->granted || exclusive);
    enum rlk_class class = RLK_DONE;
    bool again = usual && exclusive && request->met_again && !db->backend->gathers;
    if (again && sql[RLK_STEP_ACQUIRE_MET])
        return try_step(db, call, RLK_STEP_ACQUIRE_MET, t);
    if (usual && sql[RLK_STEP_ACQUIRE_USUAL])
        return try_step(db, call, RLK_STEP_ACQUIRE_USUAL, t);
    bool polls = db->backend->gathers && call->where == RLK_OUTSIDE;
    if ((plain || polls) && request->met && sql[RLK_STEP_STILL_HELD])
        class = still_held(db, call, t);
    if (class == RLK_DONE && !t->answered && db->backend->local && sql[RLK_STEP_LOOK])
        class = try_step(db, call, RLK_STEP_LOOK, t);
    return class;
}

enum rlk_class rlk_step_acquire(rowlock_db *db, struct rlk_call *call,
                                const struct rlk_request *request, struct rlk_grant *out)
{
    struct trying t = {.request = request, .grant = out};
    enum rlk_class class = ask_first(db, call, &t);
    if (class == RLK_DONE && (!t.answered || t.token == 0))
        class = try_step(db, call, RLK_STEP_ACQUIRE, &t);
    if (class == RLK_DONE && out->outcome == RLK_GRANTED)
        note(db, call, RLK_TAKEN, request, out->row.token);
    return class;
}

enum rlk_class rlk_step_withdraw(rowlock_db *db, struct rlk_call *call,
                                 const struct rlk_request *request, bool *found)
{
    const rowlock_value in[] = {rowlock_text(request->name), rowlock_text(request->owner),
                                rowlock_int(request->number)};
    enum rlk_class class = rlk_send_change(db, call, RLK_STEP_WITHDRAW, in, request->name, found);
    if (class == RLK_DONE)
        note(db, call, RLK_WITHDRAWN, request, 0);
    return class;
}

/* ---- what a holder does */

enum { HELD_VALUES = 4 };

static void held_values(const struct rlk_held *held, rowlock_value *out)
{
    const rowlock_value values[HELD_VALUES] = {rowlock_text(held->name), rowlock_int(held->slot),
                                               rowlock_text(held->owner), rowlock_int(held->token)};
    memcpy(out, values, sizeof values);
}

static int read_renewal(void *out, const rowlock_value *cells, size_t count)
{
    struct rlk_verified *renewal = out;
    (void)count;
    *renewal = (struct rlk_verified){.found = true,
                                     .expires_us = cells[0].number,
                                     .lapsed_us = cells[1].number,
                                     .now_us = cells[2].number};
    return 0;
}

enum rlk_class rlk_step_renew(rowlock_db *db, struct rlk_call *call, const struct rlk_held *held,
                              int64_t ttl_us, struct rlk_verified *out)
{
    rowlock_value in[HELD_VALUES + 1];
    held_values(held, in);
    in[HELD_VALUES] = rowlock_int(ttl_us);
    out->found = false;
    return send(db, call, RLK_STEP_RENEW, in, read_renewal, out);
}

enum rlk_class rlk_step_release(rowlock_db *db, struct rlk_call *call, const struct rlk_held *held,
                                bool *found)
{
    rowlock_value in[HELD_VALUES + 1];
    held_values(held, in);
    in[HELD_VALUES] = rowlock_bool(call->where == RLK_INSIDE);
    return rlk_send_change(db, call, RLK_STEP_RELEASE, in, held->name, found);
}

enum rlk_class rlk_step_note(rowlock_db *db, struct rlk_call *call, const struct rlk_held *held,
                             const char *text, bool *changed)
{
    rowlock_value in[HELD_VALUES + 1];
    held_values(held, in);
    in[HELD_VALUES] = rowlock_text(text);
    return rlk_send_change(db, call, RLK_STEP_NOTE, in, NULL, changed);
}

void rlk_note_gone(rowlock_db *db, struct rlk_call *call, const char *name, int64_t token)
{
    const struct rlk_request request = {.name = name};
    note(db, call, RLK_GONE_GRANT, &request, token);
}

static int read_verified(void *out, const rowlock_value *cells, size_t count)
{
    struct rlk_verified *verified = out;
    (void)count;
    *verified = (struct rlk_verified){
        .found = true, .expires_us = cells[0].number, .now_us = cells[1].number};
    return 0;
}

enum rlk_class rlk_step_verify(rowlock_db *db, struct rlk_call *call, const struct rlk_held *held,
                               struct rlk_verified *out)
{
    rowlock_value in[HELD_VALUES];
    held_values(held, in);
    out->found = false;
    return send(db, call, RLK_STEP_VERIFY, in, read_verified, out);
}

/* ---- in the caller's transaction */

struct guarded {
    bool found, stands;
    int64_t token;
};

static int read_guarded(void *out, const rowlock_value *cells, size_t count)
{
    struct guarded *guarded = out;
    (void)count;
    *guarded = (struct guarded){.found = !is_null(&cells[0]),
                                .token = is_null(&cells[0]) ? 0 : cells[0].number,
                                .stands = cells[1].number != 0};
    return 0;
}

enum rlk_class rlk_step_guard(rowlock_db *db, struct rlk_call *call, const struct rlk_held *held,
                              bool *found, int64_t *token, bool *stands)
{
    rowlock_value in[HELD_VALUES + 1];
    struct guarded guarded = {0};
    held_values(held, in);
    /* The driver gives this value. */
    in[HELD_VALUES] = rowlock_null();
    enum rlk_class class = send(db, call, RLK_STEP_GUARD, in, read_guarded, &guarded);
    if (class != RLK_DONE)
        return class;
    *found = guarded.found;
    *stands = guarded.stands;
    if (guarded.found)
        *token = guarded.token;
    return RLK_DONE;
}

enum rlk_class rlk_step_fence(rowlock_db *db, struct rlk_call *call, const char *resource,
                              int64_t token, bool *accepted)
{
    const rowlock_value in[] = {rowlock_text(resource), rowlock_int(token)};
    return rlk_send_change(db, call, RLK_STEP_FENCE, in, NULL, accepted);
}

/* ---- the queue */

struct enqueued {
    struct rlk_position *position;
    /* The third cell of the answer. Only the driver knows its meaning. */
    int64_t third;
};

static int read_position(void *out, const rowlock_value *cells, size_t count)
{
    struct enqueued *e = out;
    (void)count;
    e->position->ticket = cells[0].number;
    e->position->ahead = cells[1].number;
    e->third = is_null(&cells[2]) ? 0 : cells[2].number;
    return 0;
}

enum rlk_class rlk_step_enqueue(rowlock_db *db, struct rlk_call *call,
                                const struct rlk_request *request, int64_t lease_us,
                                struct rlk_position *out)
{
    rowlock_value in[REQUEST_VALUES + 2];
    struct enqueued e = {.position = out};
    request_values(call, request, in);
    in[REQUEST_VALUES] = rowlock_int(lease_us);
    /* The driver gives this value. */
    in[REQUEST_VALUES + 1] = rowlock_null();
    enum rlk_class class = send(db, call, RLK_STEP_ENQUEUE, in, read_position, &e);
    if (class != RLK_DONE)
        return class;
    struct rlk_request queued = *request;
    queued.ticket = out->ticket;
    out->wakeable = note(db, call, RLK_ENQUEUED, &queued, e.third);
    return class;
}

enum rlk_class rlk_step_leave(rowlock_db *db, struct rlk_call *call,
                              const struct rlk_request *request, bool *found)
{
    const rowlock_value in[] = {rowlock_text(request->name), rowlock_int(request->number)};
    enum rlk_class class = rlk_send_change(db, call, RLK_STEP_LEAVE, in, request->name, found);
    if (class == RLK_DONE)
        note(db, call, RLK_LEFT, request, 0);
    return class;
}

struct cycle {
    bool found;
    char *words;
    size_t cap;
};

static int read_cycle(void *out, const rowlock_value *cells, size_t count)
{
    struct cycle *cycle = out;
    (void)count;
    cycle->found = true;
    copy(&cells[0], cycle->words, cycle->cap);
    return 0;
}

enum rlk_class rlk_step_cycle(rowlock_db *db, struct rlk_call *call,
                              const struct rlk_request *request, bool *found, char *words,
                              size_t cap)
{
    const rowlock_value in[] = {rowlock_text(request->name), rowlock_text(request->owner),
                                rowlock_int(request->ticket)};
    struct cycle cycle = {.words = words, .cap = cap};
    enum rlk_class class = send(db, call, RLK_STEP_CYCLE, in, read_cycle, &cycle);
    if (class == RLK_DONE)
        *found = cycle.found;
    return class;
}
