/* SPDX-License-Identifier: MIT
 * What operators do with locks: list, sweep, raise, break. An acquire runs nothing of this. */
#include "base/ident.h"
#include "base/options.h"
#include "admin/admin.h"
#include "lock/lock.h"
#include "core/ask.h"
#include "core/core.h"

#include <string.h>

enum { LIST_PAGE = 500 };

/* ---- list */

/* name NULL: all locks. */
static int enter_listing(rowlock_db *db, const char *verb, const char *name, bool reports)
{
    int result = rlk_enter(db, verb, NULL);
    if (result == ROWLOCK_OK && !reports)
        return rlk_fail(db, ROWLOCK_EINVAL, "the callback must not be NULL");
    if (result == ROWLOCK_OK && name)
        result = rlk_check_text(&db->error, "lock's name", name, false);
    return result;
}

struct listing {
    const char *name;
    int (*each)(void *context, const rowlock_grant *grant);
    void *context;
    bool stopped;
    int seen;
    struct rlk_key last;
};

static void give_row(struct listing *l, const struct rlk_row *row)
{
    rowlock_grant grant;
    rlk_grant_from_row(&grant, row);
    l->seen++;
    memcpy(l->last.name, row->name, sizeof l->last.name);
    l->last.slot = row->slot;
    l->stopped = l->each(l->context, &grant) != 0;
}

/* A full page that ends where it began would come again and again. */
static bool is_further(const struct rlk_key *last, const struct rlk_key *after)
{
    int order = strcmp(last->name, after->name);
    return order > 0 || (order == 0 && last->slot > after->slot);
}

/* One page. */
static int list_page(rowlock_db *db, struct listing *l)
{
    struct rlk_ask ask = {.step = RLK_STEP_NONE};
    struct rlk_items rows = {0};
    struct rlk_key after = l->last;
    rlk_step_list(&ask, &rows, l->name, after.name, after.slot, LIST_PAGE);
    int result = rlk_ask_items(db, &ask, &rows);
    l->seen = 0;
    for (size_t i = 0; result == ROWLOCK_OK && i < rows.count && !l->stopped; i++)
        give_row(l, rlk_item(&rows, i));
    rlk_free(rows.items);
    if (result == ROWLOCK_OK && l->seen >= LIST_PAGE && !l->stopped &&
        !is_further(&l->last, &after))
        return rlk_fail_answer(db, RLK_STEP_LIST);
    return result;
}

int rowlock_list(rowlock_db *db, const char *name,
                 int (*each)(void *context, const rowlock_grant *grant), void *context)
{
    int result = enter_listing(db, "list locks", name, each != NULL);
    if (result != ROWLOCK_OK)
        return result;
    struct listing l = {.name = name, .each = each, .context = context, .last = RLK_BEFORE_ALL};
    do
        result = list_page(db, &l);
    while (result == ROWLOCK_OK && l.seen == LIST_PAGE && !l.stopped);
    return result;
}

/* ---- waiters */

struct listing_waiters {
    const char *name;
    int (*each)(void *context, const rowlock_waiter *waiter);
    void *context;
    /* The next page begins behind it. */
    struct rlk_waiter last;
    int seen, position;
    bool stopped;
};

static void waiter_from(rowlock_waiter *out, const struct rlk_waiter *in, int position)
{
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    out->ticket = in->ticket;
    out->since_us = in->since_us;
    out->waited_ms = (in->now_us - in->since_us) / 1000;
    out->remaining_ms = position ? (in->expires_us - in->now_us) / 1000 : -1;
    out->pid = in->pid;
    out->permits = in->permits;
    out->position = position;
    memcpy(out->name, in->name, sizeof in->name);
    memcpy(out->owner, in->owner, sizeof in->owner);
    memcpy(out->host, in->host, sizeof in->host);
    memcpy(out->program, in->program, sizeof in->program);
    memcpy(out->note, in->note, sizeof in->note);
}

static void give_waiter(struct listing_waiters *l, const struct rlk_waiter *in)
{
    bool lives = in->expires_us > in->now_us;
    if (strcmp(l->last.name, in->name) != 0)
        l->position = 0;
    l->position += lives;
    l->last = *in;
    l->seen++;
    rowlock_waiter waiter;
    waiter_from(&waiter, in, lives ? l->position : 0);
    l->stopped = l->each(l->context, &waiter) != 0;
}

static bool is_behind(const struct rlk_waiter *w, const struct rlk_waiter *than)
{
    int order = strcmp(w->name, than->name);
    if (order != 0)
        return order > 0;
    return w->ticket != than->ticket ? w->ticket > than->ticket : w->request > than->request;
}

static int list_waiters_page(rowlock_db *db, struct listing_waiters *l)
{
    struct rlk_ask ask = {.step = RLK_STEP_NONE};
    struct rlk_items waiters = {0};
    struct rlk_waiter after = l->last;
    rlk_step_waiters(&ask, &waiters, l->name, &after, LIST_PAGE);
    int result = rlk_ask_items(db, &ask, &waiters);
    l->seen = 0;
    for (size_t i = 0; result == ROWLOCK_OK && i < waiters.count && !l->stopped; i++)
        give_waiter(l, rlk_item(&waiters, i));
    rlk_free(waiters.items);
    if (result == ROWLOCK_OK && l->seen >= LIST_PAGE && !l->stopped && !is_behind(&l->last, &after))
        return rlk_fail_answer(db, RLK_STEP_WAITERS);
    return result;
}

int rowlock_list_waiters(rowlock_db *db, const char *name,
                         int (*each)(void *context, const rowlock_waiter *waiter), void *context)
{
    int result = enter_listing(db, "list waiters", name, each != NULL);
    if (result != ROWLOCK_OK)
        return result;
    struct listing_waiters l = {.name = name, .each = each, .context = context};
    do
        result = list_waiters_page(db, &l);
    while (result == ROWLOCK_OK && l.seen == LIST_PAGE && !l.stopped);
    return result;
}

/* ---- last grant */

int rowlock_last_grant(rowlock_db *db, const char *name, int64_t *token, int64_t *granted_us)
{
    int result = rlk_enter(db, "look up the last grant", NULL);
    if (result != ROWLOCK_OK ||
        (result = rlk_check_text(&db->error, "lock's name", name, false)) != ROWLOCK_OK)
        return result;
    struct rlk_last last;
    result = rlk_last_grant(db, name, &last);
    if (result != ROWLOCK_OK || !last.found)
        return rlk_leave(db, result != ROWLOCK_OK ? result : ROWLOCK_NONE);
    if (token)
        *token = last.token;
    if (granted_us)
        *granted_us = last.granted_us;
    return ROWLOCK_OK;
}

/* ---- sweep */

struct sweeping {
    rowlock_sweep_options options;
    rowlock_sweep_report report;
    int64_t until_us;
    bool stopped;
    struct rlk_sweep batch;
};

static bool goes_on(const struct sweeping *s)
{
    return !s->stopped && rlk_now_us() < s->until_us;
}

static void give_swept(struct sweeping *s)
{
    for (size_t i = 0; i < s->batch.rows.count && !s->stopped; i++) {
        const struct rlk_row *row = rlk_swept(&s->batch, i);
        rowlock_grant grant;
        if (!row)
            continue;
        rlk_grant_from_row(&grant, row);
        s->stopped = s->options.each(s->options.context, &grant) != 0;
    }
}

static int sweep_batch(rowlock_db *db, struct sweeping *s)
{
    struct rlk_sweep *batch = &s->batch;
    struct rlk_ask ask = {.retryable_if_lost = true};
    batch->after = batch->last;
    rlk_step_sweep(&ask, batch);
    int result = rlk_ask(db, &ask);
    if (result != ROWLOCK_OK)
        return result;
    if (batch->reports)
        give_swept(s);
    s->report.locks += batch->removed;
    s->report.batches++;
    return batch->more && !is_further(&batch->last, &batch->after)
               ? rlk_fail_answer(db, RLK_STEP_SWEEP)
               : ROWLOCK_OK;
}

static int sweep_locks(rowlock_db *db, struct sweeping *s)
{
    s->batch = (struct rlk_sweep){.older_us = s->options.older_than_ms * 1000,
                                  .batch = s->options.batch,
                                  .dry_run = s->options.dry_run != 0,
                                  .reports = s->options.each != NULL,
                                  .last = RLK_BEFORE_ALL};
    int result;
    do
        result = sweep_batch(db, s);
    while (result == ROWLOCK_OK && s->batch.more && goes_on(s));
    rlk_sweep_clear(&s->batch);
    return result;
}

static int fold_counters(rowlock_db *db, struct sweeping *s)
{
    const rowlock_sweep_options *o = &s->options;
    int64_t folded = 0;
    do {
        struct rlk_ask ask = {.retryable_if_lost = true};
        rlk_step_fold(&ask, o->idle_ms * 1000, o->batch, o->dry_run != 0, &folded);
        int result = rlk_ask(db, &ask);
        if (result != ROWLOCK_OK)
            return result;
        folded = ask.rows > 0 ? folded : ask.changed;
        s->report.counters += folded;
        s->report.batches++;
    } while (folded == o->batch && !o->dry_run && goes_on(s));
    return ROWLOCK_OK;
}

static int sweep_waiters(rowlock_db *db, struct sweeping *s)
{
    int64_t removed = 0;
    do {
        struct rlk_ask ask = {.retryable_if_lost = true};
        rlk_step_sweep_waiters(&ask, s->options.batch);
        int result = rlk_ask(db, &ask);
        if (result != ROWLOCK_OK)
            return result;
        removed = ask.changed;
        s->report.waiters += removed;
        s->report.batches++;
    } while (removed == s->options.batch && goes_on(s));
    return ROWLOCK_OK;
}

/* Notes the time of this sweep, which rowlock_check() reports. */
static int note_swept(rowlock_db *db)
{
    struct rlk_ask ask = {.step = RLK_STEP_SWEPT};
    return db->texts.sql[RLK_STEP_SWEPT] ? rlk_ask(db, &ask) : ROWLOCK_OK;
}

int rowlock_sweep(rowlock_db *db, const rowlock_sweep_options *options,
                  rowlock_sweep_report *report)
{
    int result = rlk_need_database(db, rlk_enter(db, "sweep", NULL));
    if (result != ROWLOCK_OK)
        return result;
    struct sweeping s = {.report = ROWLOCK_SWEEP_REPORT_INIT,
                         .until_us = rlk_now_us() + RLK_SWEEP_US};
    if ((result = rlk_take_sweep_options(&db->error, &s.options, options)) != ROWLOCK_OK)
        return result;
    result = sweep_locks(db, &s);
    if (result == ROWLOCK_OK && goes_on(&s) && !s.options.dry_run)
        result = sweep_waiters(db, &s);
    if (result == ROWLOCK_OK && goes_on(&s) && s.options.idle_ms >= 0)
        result = fold_counters(db, &s);
    if (result == ROWLOCK_OK && goes_on(&s) && !s.options.dry_run)
        result = note_swept(db);
    if (report)
        rlk_give_struct(report, &s.report, sizeof s.report);
    return result;
}

/* ---- raise */

/* After a lost answer the tokens may be raised twice. That does no harm. */
int rlk_raise(rowlock_db *db, int64_t by, int64_t *highest)
{
    int64_t floor = 0;
    struct rlk_ask ask = {.step = RLK_STEP_NONE};
    rlk_step_raise(&ask, by, &floor);
    int result = rlk_ask(db, &ask);
    if (result == ROWLOCK_OK && highest)
        *highest = floor;
    return result;
}

int rowlock_raise_tokens(rowlock_db *db, int64_t by, int64_t *highest)
{
    int result = rlk_need_database(db, rlk_enter(db, "raise the tokens", NULL));
    if (result != ROWLOCK_OK)
        return result;
    if (by < 1 || by > INT64_C(1000000000000000))
        return rlk_fail(db, ROWLOCK_EINVAL, "by must be from 1 to 10^15");
    return rlk_raise(db, by, highest);
}

/* ---- a new identity */

/* The tables have been looked at, so the row is there. If the update changed nothing, the server
 * killed it. */
static enum rlk_class run_new_identity(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask)
{
    struct rlk_ask one = {.step = ask->step};
    enum rlk_class class = rlk_send(db, call, &one);
    if (class != RLK_DONE || one.changed > 0)
        return class;
    return rlk_refuse(call, RLK_CONTENTION, "the identity was not changed");
}

/* After a lost answer a second identity may replace the first. That does no harm. */
int rowlock_new_identity(rowlock_db *db)
{
    int result = rlk_need_database(db, rlk_enter(db, "give a new identity", NULL));
    if (result != ROWLOCK_OK)
        return result;
    struct rlk_ask ask = {.step = RLK_STEP_NEW_IDENTITY, .run = run_new_identity};
    result = rlk_ask(db, &ask);
    if (result == ROWLOCK_OK) {
        db->texts.identity[0] = '\0';
        rlk_distrust(db);
    }
    return result;
}

/* ---- break */

struct breaking {
    const char *name;
    int64_t token;
    /* Counted only if the caller named no token. */
    int holders;
    struct rlk_broken broken;
};

static int note_token(void *context, const rowlock_grant *grant)
{
    struct breaking *b = context;
    bool lives = grant->remaining_ms >= 0;
    /* An expired grant is broken only if there is no other. */
    if (lives || b->holders == 0)
        b->token = grant->token;
    b->holders += lives;
    return 0;
}

/* The token names the holder. Without it, a repeated attempt after a lost answer could break the
 * grant of the next holder. */
static int break_holder(rowlock_db *db, struct breaking *b)
{
    struct listing l = {.name = b->name, .each = note_token, .context = b, .last = RLK_BEFORE_ALL};
    bool named = b->token != 0;
    int result = named ? ROWLOCK_OK : list_page(db, &l);
    if (result != ROWLOCK_OK || !b->token)
        return result;
    if (b->holders > 1)
        return rlk_fail(db, ROWLOCK_EINVAL, "the lock has %d holders: give the token of one",
                        b->holders);
    struct rlk_ask ask = {.retryable_if_lost = named};
    rlk_step_break(&ask, b->name, b->token, &b->broken);
    result = rlk_ask(db, &ask);
    if (result == ROWLOCK_OK) {
        const struct rlk_request request = {.name = b->name};
        rlk_tell(db, RLK_OUTSIDE, RLK_GONE_GRANT, &request, b->token);
    }
    if (result == ROWLOCK_OK && !b->broken.found && ask.was_uncertain)
        return rlk_fail(db, ROWLOCK_EUNCERTAIN, "the answer was lost; there is no such grant now");
    return result;
}

int rowlock_break(rowlock_db *db, const char *name, int64_t if_token, rowlock_grant *broken)
{
    int result = rlk_need_database(db, rlk_enter(db, "break lock", NULL));
    if (result != ROWLOCK_OK ||
        (result = rlk_check_text(&db->error, "lock's name", name, false)) != ROWLOCK_OK)
        return result;
    rlk_action(db, "break lock", name);
    if (if_token < 0)
        return rlk_fail(db, ROWLOCK_EINVAL, "if_token must be above 0, or 0 for the only holder");
    struct breaking b = {.name = name, .token = if_token};
    result = break_holder(db, &b);
    if (result != ROWLOCK_OK || !b.broken.found)
        return rlk_leave(db, result != ROWLOCK_OK ? result : ROWLOCK_NONE);
    if (broken) {
        rowlock_grant grant;
        rlk_grant_from_row(&grant, &b.broken.row);
        rlk_give_struct(broken, &grant, sizeof grant);
    }
    return ROWLOCK_OK;
}
