/* SPDX-License-Identifier: MIT
 * The steps of one lock, of its queue and of a transaction: what goes into each, and what comes out. */
#include "seam/seam.h"

#include <string.h>

static enum rlk_class send(rowlock_db *db, struct rlk_call *call, enum rlk_step step,
                           const rowlock_value *in, rlk_cells_fn *read, void *out)
{
    struct rlk_sending s = {.step = step, .in = in, .read = read, .out = out};
    return rlk_send(db, call, &s);
}

static void copy(const rowlock_value *cell, char *out, size_t cap)
{
    bool none = cell->kind == ROWLOCK_NULL;
    rlk_copy_text(out, cap, none ? "" : cell->text, none ? 0 : cell->length);
}

#define COPY(cell, array) copy(cell, array, sizeof(array))

static bool is_null(const rowlock_value *cell)
{
    return cell->kind == ROWLOCK_NULL;
}

/* All but the clock, which stands before it or behind it. */
static void read_row(const rowlock_value *cells, struct rlk_row *out)
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

/* ---- steps that do one thing or find nothing to do it to */

static int read_done(void *out, const rowlock_value *cells, size_t count)
{
    (void)count;
    *(bool *)out = cells[0].number != 0;
    return 0;
}

/* A dialect answers with a row, or with a number of rows changed. */
static enum rlk_class change(rowlock_db *db, struct rlk_call *call, enum rlk_step step,
                             const rowlock_value *in, const char *rings, bool *done)
{
    bool told = false;
    struct rlk_sending s = {
        .step = step, .in = in, .rings = rings, .read = read_done, .out = &told};
    enum rlk_class class = rlk_send(db, call, &s);
    if (class == RLK_DONE)
        *done = s.rows > 0 ? told : s.changed > 0;
    return class;
}

static bool note(rowlock_db *db, struct rlk_call *call, enum rlk_news news,
                 const struct rlk_claim *claim, int64_t number)
{
    struct rlk_call unheard = {.deadline_us = call->deadline_us, .where = call->where};
    return db->backend->note && db->backend->note(db->conn, &unheard, news, claim, number);
}

/* ---- the tables */

static int read_meta(void *out, const rowlock_value *cells, size_t count)
{
    enum { VERSION, IDENTITY, FLOOR };
    struct rlk_meta *meta = out;
    (void)count;
    meta->found = true;
    meta->version = (int)cells[VERSION].number;
    COPY(&cells[IDENTITY], meta->identity);
    meta->token_floor = cells[FLOOR].number;
    return 0;
}

enum rlk_class rlk_step_meta(rowlock_db *db, struct rlk_call *call, struct rlk_meta *out)
{
    *out = (struct rlk_meta){0};
    enum rlk_class class = send(db, call, RLK_STEP_META, NULL, read_meta, out);
    memcpy(db->texts.identity, out->identity, sizeof db->texts.identity);
    return class;
}

/* ---- a try */

enum { CLAIM_VALUES = 12, TRY_VALUES };

static void claim_values(const struct rlk_call *call, const struct rlk_claim *claim,
                         rowlock_value *out)
{
    const rowlock_value values[CLAIM_VALUES] = {
        rowlock_text(claim->name),   rowlock_int(claim->permits),
        rowlock_text(claim->owner),  rowlock_int(claim->attempt),
        rowlock_int(claim->ttl_us),  rowlock_text(claim->host),
        rowlock_int(claim->pid),     rowlock_text(claim->program),
        rowlock_text(claim->note),   rowlock_int(claim->ticket),
        rowlock_bool(claim->unfair), rowlock_int(call->where == RLK_INSIDE),
    };
    memcpy(out, values, sizeof values);
}

struct trying {
    const struct rlk_claim *claim;
    struct rlk_grant *grant;
    bool answered;
    int64_t token; /* 0: not decided */
};

/* Of a row that stands everything is there. */
static int read_try(void *out, const rowlock_value *cells, size_t count)
{
    enum { TOKEN, OURS, SETTLING, BEHIND, NOW, ROW };
    struct trying *t = out;
    struct rlk_grant *grant = t->grant;
    bool granted = !is_null(&cells[TOKEN]);
    bool stands = count > ROW && !is_null(&cells[OURS]);
    t->answered = true;
    t->token = granted ? cells[TOKEN].number : -1;
    if (stands && (is_null(&cells[NOW]) || !rlk_cells_fit(RLK_ROW, &cells[ROW], count - ROW)))
        return -1;
    if (granted && (t->token < 0 || is_null(&cells[NOW])))
        return -1;
    if (stands)
        read_row(&cells[ROW], &grant->row);
    grant->row.now_us = is_null(&cells[NOW]) ? 0 : cells[NOW].number;
    if (granted)
        rlk_row_of_claim(t->claim, t->token, grant->row.now_us, &grant->row);
    bool ours = stands && cells[OURS].number != 0;
    grant->settling = !is_null(&cells[SETTLING]) && cells[SETTLING].number != 0;
    grant->behind = cells[BEHIND].number != 0;
    grant->outcome = granted || ours ? RLK_GRANTED
                     : stands        ? RLK_HELD
                     : grant->behind ? RLK_BEHIND
                                     : RLK_IN_FLIGHT;
    return 0;
}

/* No row: another transaction is at it. */
static enum rlk_class try_by(rowlock_db *db, struct rlk_call *call, enum rlk_step step,
                             const rowlock_value *in, struct trying *t)
{
    struct rlk_sending s = {.step = step, .in = in, .read = read_try, .out = t};
    *t->grant = (struct rlk_grant){.outcome = RLK_IN_FLIGHT, .behind = true};
    t->answered = false;
    t->token = -1;
    if (t->claim->permits != 0)
        s.rings = t->claim->name; /* others of its kind may be let in beside it */
    return rlk_send(db, call, &s);
}

/* What is asked before a try, where that costs less than the try and may well be enough: of a lock that was free
 * or held exclusively the last time, of one that was held at all, or always where it costs no round trip. */
static enum rlk_step first_step(rowlock_db *db, const struct rlk_call *call,
                                const struct rlk_claim *claim)
{
    bool plain = claim->ticket == 0 && call->where == RLK_OUTSIDE;
    bool usual = plain && claim->permits == 0 && (claim->granted || claim->met_slot == 0);
    bool looks = db->backend->local || (plain && claim->met_slot >= 0);
    if (usual && db->texts.sql[RLK_STEP_ACQUIRE_USUAL])
        return RLK_STEP_ACQUIRE_USUAL;
    return looks && db->texts.sql[RLK_STEP_LOOK] ? RLK_STEP_LOOK : RLK_STEP_NONE;
}

static enum rlk_class try_step(rowlock_db *db, struct rlk_call *call, enum rlk_step step,
                               struct trying *t)
{
    rowlock_value in[TRY_VALUES];
    claim_values(call, t->claim, in);
    in[CLAIM_VALUES] = rowlock_int(t->claim->met_slot);
    enum rlk_class class = try_by(db, call, step, in, t);
    if (class == RLK_DONE && t->token == 0 && step == RLK_STEP_ACQUIRE)
        return rlk_diag_misfit(call, step);
    return class == RLK_UNCERTAIN && step == RLK_STEP_LOOK ? RLK_UNSENT : class;
}

enum rlk_class rlk_step_look(rowlock_db *db, struct rlk_call *call, const struct rlk_claim *claim,
                             struct rlk_grant *out)
{
    struct trying t = {.claim = claim, .grant = out};
    return try_step(db, call, RLK_STEP_LOOK, &t);
}

enum rlk_class rlk_step_try(rowlock_db *db, struct rlk_call *call, const struct rlk_claim *claim,
                            struct rlk_grant *out)
{
    struct trying t = {.claim = claim, .grant = out};
    return try_step(db, call, RLK_STEP_ACQUIRE, &t);
}

void rlk_step_note_taken(rowlock_db *db, struct rlk_call *call, const struct rlk_claim *claim,
                         int64_t token)
{
    note(db, call, RLK_TAKEN, claim, token);
}

enum rlk_class rlk_step_acquire(rowlock_db *db, struct rlk_call *call,
                                const struct rlk_claim *claim, struct rlk_grant *out)
{
    struct trying t = {.claim = claim, .grant = out};
    enum rlk_step first = first_step(db, call, claim);
    enum rlk_class class = RLK_DONE;
    if (first != RLK_STEP_NONE)
        class = try_step(db, call, first, &t);
    if (class == RLK_DONE && (!t.answered || t.token == 0))
        class = try_step(db, call, RLK_STEP_ACQUIRE, &t);
    if (class == RLK_DONE && out->outcome == RLK_GRANTED)
        note(db, call, RLK_TAKEN, claim, out->row.token);
    return class;
}

enum rlk_class rlk_step_withdraw(rowlock_db *db, struct rlk_call *call,
                                 const struct rlk_claim *claim, bool *found)
{
    const rowlock_value in[] = {rowlock_text(claim->name), rowlock_text(claim->owner),
                                rowlock_int(claim->attempt)};
    enum rlk_class class = change(db, call, RLK_STEP_WITHDRAW, in, claim->name, found);
    if (class == RLK_DONE)
        note(db, call, RLK_WITHDRAWN, claim, 0);
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
    struct rlk_renewal *renewal = out;
    (void)count;
    *renewal = (struct rlk_renewal){.found = true,
                                    .expires_us = cells[0].number,
                                    .lapsed_us = cells[1].number,
                                    .now_us = cells[2].number};
    return 0;
}

enum rlk_class rlk_step_renew(rowlock_db *db, struct rlk_call *call, const struct rlk_held *held,
                              int64_t ttl_us, struct rlk_renewal *out)
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
    rowlock_value in[HELD_VALUES];
    held_values(held, in);
    return change(db, call, RLK_STEP_RELEASE, in, held->name, found);
}

/* After what ends a grant, or lets others in beside it. */
static void note_gone(rowlock_db *db, struct rlk_call *call, const char *name, int64_t token)
{
    const struct rlk_claim claim = {.name = name};
    note(db, call, RLK_GONE_GRANT, &claim, token);
}

enum rlk_class rlk_step_downgrade(rowlock_db *db, struct rlk_call *call,
                                  const struct rlk_held *held, int permits, bool *found)
{
    const rowlock_value in[] = {rowlock_text(held->name), rowlock_text(held->owner),
                                rowlock_int(held->token), rowlock_int(permits)};
    enum rlk_class class = change(db, call, RLK_STEP_DOWNGRADE, in, held->name, found);
    if (class == RLK_DONE)
        note_gone(db, call, held->name, held->token);
    return class;
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
    in[HELD_VALUES] = rowlock_null(); /* the driver's own */
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
    return change(db, call, RLK_STEP_FENCE, in, NULL, accepted);
}

/* ---- the queue */

struct enqueued {
    struct rlk_place *place;
    int64_t third; /* whether, or on what, this connection listens: the driver knows */
};

static int read_place(void *out, const rowlock_value *cells, size_t count)
{
    struct enqueued *e = out;
    (void)count;
    e->place->ticket = cells[0].number;
    e->place->ahead = cells[1].number;
    e->third = is_null(&cells[2]) ? 0 : cells[2].number;
    return 0;
}

enum rlk_class rlk_step_enqueue(rowlock_db *db, struct rlk_call *call,
                                const struct rlk_claim *claim, int64_t lease_us,
                                struct rlk_place *out)
{
    rowlock_value in[CLAIM_VALUES + 2];
    struct enqueued e = {.place = out};
    claim_values(call, claim, in);
    in[CLAIM_VALUES] = rowlock_int(lease_us);
    in[CLAIM_VALUES + 1] = rowlock_null(); /* the driver's own */
    enum rlk_class class = send(db, call, RLK_STEP_ENQUEUE, in, read_place, &e);
    if (class == RLK_DONE)
        out->belled = note(db, call, RLK_ENQUEUED, claim, e.third);
    return class;
}

enum rlk_class rlk_step_leave(rowlock_db *db, struct rlk_call *call, const struct rlk_claim *claim,
                              bool *found)
{
    const rowlock_value in[] = {rowlock_text(claim->name), rowlock_int(claim->attempt)};
    enum rlk_class class = change(db, call, RLK_STEP_LEAVE, in, claim->name, found);
    if (class == RLK_DONE)
        note(db, call, RLK_LEFT, claim, 0);
    return class;
}

struct circle {
    bool found;
    char *words;
    size_t cap;
};

static int read_circle(void *out, const rowlock_value *cells, size_t count)
{
    struct circle *circle = out;
    (void)count;
    circle->found = true;
    copy(&cells[0], circle->words, circle->cap);
    return 0;
}

enum rlk_class rlk_step_cycle(rowlock_db *db, struct rlk_call *call, const struct rlk_claim *claim,
                              bool *found, char *words, size_t cap)
{
    const rowlock_value in[] = {rowlock_text(claim->name), rowlock_text(claim->owner),
                                rowlock_int(claim->ticket)};
    struct circle circle = {.words = words, .cap = cap};
    enum rlk_class class = send(db, call, RLK_STEP_CYCLE, in, read_circle, &circle);
    if (class == RLK_DONE)
        *found = circle.found;
    return class;
}

/* ---- for operators: pages of rows */

/* Read to its end before anybody is given one: a callback that is slow, or writes to a full pipe, must not keep
 * a transaction open. */
struct page {
    size_t size; /* of an item */
    void (*read)(const rowlock_value *cells, void *item);
    char *items;
    size_t count, room;
    bool no_memory;
};

static void *item_of(const struct page *page, size_t i)
{
    return page->items + i * page->size;
}

static bool grow(struct page *page)
{
    size_t room = page->room ? 2 * page->room : 8;
    char *items = rlk_alloc(room * page->size);
    page->no_memory = !items;
    if (!items)
        return false;
    if (page->count > 0)
        memcpy(items, page->items, page->count * page->size);
    rlk_free(page->items);
    page->items = items;
    page->room = room;
    return true;
}

static int read_item(void *out, const rowlock_value *cells, size_t count)
{
    struct page *page = out;
    (void)count;
    if (page->count == page->room && !grow(page))
        return 1;
    page->read(cells, item_of(page, page->count));
    page->count++;
    return 0;
}

static enum rlk_class read_page(rowlock_db *db, struct rlk_call *call, enum rlk_step step,
                                const rowlock_value *in, struct page *page)
{
    enum rlk_class class = send(db, call, step, in, read_item, page);
    return class == RLK_DONE && page->no_memory ? RLK_NOMEM : class;
}

static void read_whole_row(const rowlock_value *cells, void *item)
{
    enum { NOW = sizeof RLK_ROW - 1 };
    struct rlk_row *row = item;
    read_row(cells, row);
    row->now_us = cells[NOW].number;
}

static void read_waiter(const rowlock_value *cells, void *item)
{
    enum { NAME, TICKET, ATTEMPT, PERMITS, OWNER, SINCE, EXPIRES, HOST, PID, PROGRAM, NOTE, NOW };
    struct rlk_waiter *out = item;
    COPY(&cells[NAME], out->name);
    out->ticket = cells[TICKET].number;
    out->attempt = cells[ATTEMPT].number;
    out->permits = (int)cells[PERMITS].number;
    COPY(&cells[OWNER], out->owner);
    out->since_us = cells[SINCE].number;
    out->expires_us = cells[EXPIRES].number;
    COPY(&cells[HOST], out->host);
    out->pid = cells[PID].number;
    COPY(&cells[PROGRAM], out->program);
    COPY(&cells[NOTE], out->note);
    out->now_us = cells[NOW].number;
}

static rowlock_value text_or_null(const char *text)
{
    return text ? rowlock_text(text) : rowlock_null();
}

enum rlk_class rlk_step_waiters(rowlock_db *db, struct rlk_call *call, const char *name,
                                const struct rlk_waiter *after, int limit, rlk_waiter_fn *each,
                                void *context)
{
    const rowlock_value in[] = {text_or_null(name), rowlock_text(after->name),
                                rowlock_int(after->ticket), rowlock_int(after->attempt),
                                rowlock_int(limit)};
    struct page page = {.size = sizeof(struct rlk_waiter), .read = read_waiter};
    enum rlk_class class = read_page(db, call, RLK_STEP_WAITERS, in, &page);
    for (size_t i = 0; class == RLK_DONE && i < page.count; i++)
        if (each(context, item_of(&page, i)) != 0)
            break;
    rlk_free(page.items);
    return class;
}

enum rlk_class rlk_step_list(rowlock_db *db, struct rlk_call *call, const char *name,
                             const char *after_name, int64_t after_slot, int limit,
                             rlk_row_fn *each, void *context)
{
    const rowlock_value in[] = {text_or_null(name), rowlock_text(after_name),
                                rowlock_int(after_slot), rowlock_int(limit)};
    struct page page = {.size = sizeof(struct rlk_row), .read = read_whole_row};
    enum rlk_class class = read_page(db, call, RLK_STEP_LIST, in, &page);
    for (size_t i = 0; class == RLK_DONE && i < page.count; i++)
        if (each(context, item_of(&page, i)) != 0)
            break;
    rlk_free(page.items);
    return class;
}

struct last_grant {
    bool found;
    int64_t token, granted_us;
};

static int read_last(void *out, const rowlock_value *cells, size_t count)
{
    (void)count;
    *(struct last_grant *)out =
        (struct last_grant){.found = true, .token = cells[0].number, .granted_us = cells[1].number};
    return 0;
}

enum rlk_class rlk_step_last(rowlock_db *db, struct rlk_call *call, const char *name, bool *found,
                             int64_t *token, int64_t *granted_us)
{
    const rowlock_value in[] = {rowlock_text(name)};
    struct last_grant last = {0};
    enum rlk_class class = send(db, call, RLK_STEP_LAST, in, read_last, &last);
    if (class != RLK_DONE)
        return class;
    *found = last.found;
    if (last.found) {
        *token = last.token;
        *granted_us = last.granted_us;
    }
    return RLK_DONE;
}

/* ---- for operators: what is over */

struct sweeping {
    const struct rlk_sweep *sweep;
    struct page page;
    bool *kept; /* of the page: changed meanwhile, or locked by others */
};

static enum rlk_class remove_each(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct sweeping *s = context;
    enum rlk_class class = RLK_DONE;
    for (size_t i = 0; class == RLK_DONE && i < s->page.count; i++) {
        const struct rlk_row *row = item_of(&s->page, i);
        const rowlock_value in[] = {rowlock_text(row->name), rowlock_int(row->slot),
                                    rowlock_int(row->token), rowlock_int(s->sweep->older_us)};
        bool gone = false;
        class = change(db, call, RLK_STEP_SWEEP_ONE, in, NULL, &gone);
        s->kept[i] = !gone;
    }
    return class;
}

/* Where no statement removes a whole batch. */
static enum rlk_class remove_page(rowlock_db *db, struct rlk_call *call, struct sweeping *s)
{
    s->kept = rlk_alloc(s->page.count + 1);
    if (!s->kept)
        return RLK_NOMEM;
    return db->adopted ? remove_each(db, call, s) : rlk_in_transaction(db, call, remove_each, s);
}

enum rlk_class rlk_step_sweep(rowlock_db *db, struct rlk_call *call, const struct rlk_sweep *sweep,
                              int *seen, struct rlk_row *last, rlk_row_fn *each, void *context)
{
    const rowlock_value in[] = {rowlock_text(sweep->after_name), rowlock_int(sweep->after_slot),
                                rowlock_int(sweep->older_us), rowlock_int(sweep->batch)};
    struct sweeping s = {.sweep = sweep,
                         .page = {.size = sizeof(struct rlk_row), .read = read_whole_row}};
    bool whole = !sweep->dry_run && db->texts.sql[RLK_STEP_SWEEP];
    enum rlk_class class =
        read_page(db, call, whole ? RLK_STEP_SWEEP : RLK_STEP_EXPIRED, in, &s.page);
    if (class == RLK_DONE && !whole && !sweep->dry_run && s.page.count > 0)
        class = remove_page(db, call, &s);
    for (size_t i = 0; class == RLK_DONE && i < s.page.count; i++) {
        *last = *(const struct rlk_row *)item_of(&s.page, i);
        if (!s.kept || !s.kept[i])
            each(context, last);
    }
    if (class == RLK_DONE)
        *seen = (int)s.page.count;
    rlk_free(s.kept);
    rlk_free(s.page.items);
    return class;
}

static int read_number(void *out, const rowlock_value *cells, size_t count)
{
    (void)count;
    *(int64_t *)out = cells[0].number;
    return 0;
}

enum rlk_class rlk_step_fold(rowlock_db *db, struct rlk_call *call, struct rlk_fold *fold)
{
    const rowlock_value in[] = {rowlock_int(fold->idle_us), rowlock_int(fold->batch),
                                rowlock_bool(fold->dry_run)};
    int64_t told = 0;
    struct rlk_sending s = {.step = RLK_STEP_FOLD, .in = in, .read = read_number, .out = &told};
    enum rlk_class class = rlk_send(db, call, &s);
    if (class == RLK_DONE)
        fold->folded = s.rows > 0 ? told : s.changed;
    return class;
}

enum rlk_class rlk_step_sweep_waiters(rowlock_db *db, struct rlk_call *call, int batch,
                                      int64_t *removed)
{
    const rowlock_value in[] = {rowlock_int(batch)};
    struct rlk_sending s = {.step = RLK_STEP_SWEEP_WAITERS, .in = in};
    enum rlk_class class = rlk_send(db, call, &s);
    if (class == RLK_DONE)
        *removed = s.changed;
    return class;
}

struct broken {
    bool found;
    struct rlk_row *row;
};

static int read_broken(void *out, const rowlock_value *cells, size_t count)
{
    struct broken *broken = out;
    (void)count;
    broken->found = true;
    read_whole_row(cells, broken->row);
    return 0;
}

enum rlk_class rlk_step_break(rowlock_db *db, struct rlk_call *call, const char *name,
                              int64_t token, bool *found, struct rlk_row *out)
{
    const rowlock_value in[] = {rowlock_text(name), rowlock_int(token)};
    struct broken broken = {.row = out};
    struct rlk_sending s = {
        .step = RLK_STEP_BREAK, .in = in, .rings = name, .read = read_broken, .out = &broken};
    enum rlk_class class = rlk_send(db, call, &s);
    if (class != RLK_DONE)
        return class;
    *found = broken.found;
    note_gone(db, call, name, token);
    return RLK_DONE;
}

enum rlk_class rlk_step_raise(rowlock_db *db, struct rlk_call *call, int64_t by, int64_t *floor)
{
    const rowlock_value in[] = {rowlock_int(by)};
    return send(db, call, RLK_STEP_RAISE, in, read_number, floor);
}
