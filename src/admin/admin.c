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

static int give_row(void *context, const struct rlk_row *row)
{
    struct listing *l = context;
    rowlock_grant grant;
    rlk_grant_from_row(&grant, row);
    l->seen++;
    memcpy(l->last.name, row->name, sizeof l->last.name);
    l->last.slot = row->slot;
    l->stopped = l->stopped || l->each(l->context, &grant) != 0;
    return l->stopped;
}

/* A full page that ends where it began would come again and again. */
static enum rlk_class check_page(struct rlk_call *call, enum rlk_step step,
                                 const struct rlk_key *after, const struct rlk_key *last)
{
    int order = strcmp(last->name, after->name);
    bool further = order > 0 || (order == 0 && last->slot > after->slot);
    return further ? RLK_DONE : rlk_diag_misfit(call, step);
}

/* If a page breaks off, the next sending begins behind its last row. */
static enum rlk_class run_list(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct listing *l = context;
    l->seen = 0;
    struct rlk_key after = l->last;
    enum rlk_class class =
        rlk_step_list(db, call, l->name, after.name, after.slot, LIST_PAGE, give_row, l);
    if (class == RLK_DONE && l->seen >= LIST_PAGE && !l->stopped)
        return check_page(call, RLK_STEP_LIST, &after, &l->last);
    return class;
}

int rowlock_list(rowlock_db *db, const char *name,
                 int (*each)(void *context, const rowlock_grant *grant), void *context)
{
    int result = enter_listing(db, "list locks", name, each != NULL);
    if (result != ROWLOCK_OK)
        return result;
    struct listing l = {.name = name, .each = each, .context = context, .last = RLK_BEFORE_ALL};
    do {
        struct rlk_step_call step = {.run = run_list, .context = &l};
        result = rlk_do(db, &step);
    } while (result == ROWLOCK_OK && l.seen == LIST_PAGE && !l.stopped);
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

static int give_waiter(void *context, const struct rlk_waiter *in)
{
    struct listing_waiters *l = context;
    bool lives = in->expires_us > in->now_us;
    if (strcmp(l->last.name, in->name) != 0)
        l->position = 0;
    l->position += lives;
    l->last = *in;
    l->seen++;
    rowlock_waiter waiter;
    waiter_from(&waiter, in, lives ? l->position : 0);
    l->stopped = l->each(l->context, &waiter) != 0;
    return l->stopped;
}

static bool is_further(const struct rlk_waiter *w, const struct rlk_waiter *than)
{
    int order = strcmp(w->name, than->name);
    if (order != 0)
        return order > 0;
    return w->ticket != than->ticket ? w->ticket > than->ticket : w->request > than->request;
}

static enum rlk_class run_waiters(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct listing_waiters *l = context;
    struct rlk_waiter after = l->last;
    l->seen = 0;
    enum rlk_class class = rlk_step_waiters(db, call, l->name, &after, LIST_PAGE, give_waiter, l);
    if (class == RLK_DONE && l->seen >= LIST_PAGE && !l->stopped && !is_further(&l->last, &after))
        return rlk_diag_misfit(call, RLK_STEP_WAITERS);
    return class;
}

int rowlock_list_waiters(rowlock_db *db, const char *name,
                         int (*each)(void *context, const rowlock_waiter *waiter), void *context)
{
    int result = enter_listing(db, "list waiters", name, each != NULL);
    if (result != ROWLOCK_OK)
        return result;
    struct listing_waiters l = {.name = name, .each = each, .context = context};
    do {
        struct rlk_step_call step = {.run = run_waiters, .context = &l};
        result = rlk_do(db, &step);
    } while (result == ROWLOCK_OK && l.seen == LIST_PAGE && !l.stopped);
    return result;
}

/* ---- last grant */

int rowlock_last_grant(rowlock_db *db, const char *name, int64_t *token, int64_t *granted_us)
{
    int result = rlk_enter(db, "look up the last grant", NULL);
    if (result != ROWLOCK_OK ||
        (result = rlk_check_text(&db->error, "lock's name", name, false)) != ROWLOCK_OK)
        return result;
    bool found = false;
    int64_t last = 0;
    int64_t when = 0;
    result = rlk_last_grant(db, name, &found, &last, &when);
    if (result != ROWLOCK_OK || !found)
        return rlk_leave(db, result != ROWLOCK_OK ? result : ROWLOCK_NONE);
    if (token)
        *token = last;
    if (granted_us)
        *granted_us = when;
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

/* The batch is one transaction, so it goes on to its end. */
static int give_swept(void *context, const struct rlk_row *row)
{
    struct sweeping *s = context;
    rowlock_grant grant;
    if (s->stopped)
        return 0;
    rlk_grant_from_row(&grant, row);
    s->stopped = s->options.each(s->options.context, &grant) != 0;
    return 0;
}

static enum rlk_class run_sweep(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct sweeping *s = context;
    struct rlk_sweep *batch = &s->batch;
    enum rlk_class class = rlk_step_sweep(db, call, batch, s->options.each ? give_swept : NULL, s);
    if (class != RLK_DONE)
        return class;
    s->report.locks += batch->removed;
    return batch->more ? check_page(call, RLK_STEP_SWEEP, &batch->after, &batch->last) : RLK_DONE;
}

static int sweep_locks(rowlock_db *db, struct sweeping *s)
{
    s->batch = (struct rlk_sweep){.older_us = s->options.older_than_ms * 1000,
                                  .batch = s->options.batch,
                                  .dry_run = s->options.dry_run != 0,
                                  .last = RLK_BEFORE_ALL};
    do {
        struct rlk_step_call step = {.run = run_sweep, .context = s, .finds_out = true};
        s->batch.after = s->batch.last;
        int result = rlk_do(db, &step);
        if (result != ROWLOCK_OK)
            return result;
        s->report.batches++;
    } while (s->batch.more && goes_on(s));
    return ROWLOCK_OK;
}

static enum rlk_class run_fold(rowlock_db *db, struct rlk_call *call, void *context)
{
    return rlk_step_fold(db, call, context);
}

static int fold_counters(rowlock_db *db, struct sweeping *s)
{
    struct rlk_fold fold = {.idle_us = s->options.idle_ms * 1000,
                            .batch = s->options.batch,
                            .dry_run = s->options.dry_run != 0};
    do {
        fold.folded = 0;
        struct rlk_step_call step = {.run = run_fold, .context = &fold, .finds_out = true};
        int result = rlk_do(db, &step);
        if (result != ROWLOCK_OK)
            return result;
        s->report.counters += fold.folded;
        s->report.batches++;
    } while (fold.folded == fold.batch && !fold.dry_run && goes_on(s));
    return ROWLOCK_OK;
}

struct sweeping_waiters {
    int batch;
    int64_t removed;
};

static enum rlk_class run_sweep_waiters(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct sweeping_waiters *w = context;
    return rlk_step_sweep_waiters(db, call, w->batch, &w->removed);
}

static int sweep_waiters(rowlock_db *db, struct sweeping *s)
{
    struct sweeping_waiters w = {.batch = s->options.batch};
    do {
        w.removed = 0;
        struct rlk_step_call step = {.run = run_sweep_waiters, .context = &w, .finds_out = true};
        int result = rlk_do(db, &step);
        if (result != ROWLOCK_OK)
            return result;
        s->report.waiters += w.removed;
        s->report.batches++;
    } while (w.removed == w.batch && goes_on(s));
    return ROWLOCK_OK;
}

static enum rlk_class run_swept(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct rlk_sending s = {.step = RLK_STEP_SWEPT};
    (void)context;
    return rlk_send(db, call, &s);
}

/* Notes the time of this sweep, which rowlock_check() reports. */
static int note_swept(rowlock_db *db)
{
    struct rlk_step_call step = {.run = run_swept};
    return db->texts.sql[RLK_STEP_SWEPT] ? rlk_do(db, &step) : ROWLOCK_OK;
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

struct raising {
    int64_t by, highest;
};

static enum rlk_class run_raise(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct raising *r = context;
    return rlk_step_raise(db, call, r->by, &r->highest);
}

/* After a lost answer the tokens may be raised twice. That does no harm. */
int rlk_raise(rowlock_db *db, int64_t by, int64_t *highest)
{
    struct raising r = {.by = by};
    struct rlk_step_call step = {.run = run_raise, .context = &r};
    int result = rlk_do(db, &step);
    if (result == ROWLOCK_OK && highest)
        *highest = r.highest;
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
static enum rlk_class run_new_identity(rowlock_db *db, struct rlk_call *call, void *context)
{
    (void)context;
    struct rlk_sending s = {.step = RLK_STEP_NEW_IDENTITY};
    enum rlk_class class = rlk_send(db, call, &s);
    if (class != RLK_DONE || s.changed > 0)
        return class;
    return rlk_refuse(call, RLK_CONTENTION, "the identity was not changed");
}

/* After a lost answer a second identity may replace the first. That does no harm. */
int rowlock_new_identity(rowlock_db *db)
{
    int result = rlk_need_database(db, rlk_enter(db, "give a new identity", NULL));
    if (result != ROWLOCK_OK)
        return result;
    struct rlk_step_call step = {.run = run_new_identity};
    result = rlk_do(db, &step);
    if (result == ROWLOCK_OK) {
        db->texts.identity[0] = '\0';
        db->schema_ok = false;
    }
    return result;
}

/* ---- break */

struct breaking {
    const char *name;
    int64_t token;
    /* Counted only if the caller named no token. */
    int holders;
    bool found;
    struct rlk_row row;
};

static enum rlk_class run_break(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct breaking *b = context;
    return rlk_step_break(db, call, b->name, b->token, &b->found, &b->row);
}

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

/* The token names the holder. Without it, a repeated sending after a lost answer could break the
 * grant of the next holder. */
static int break_holder(rowlock_db *db, struct breaking *b)
{
    struct listing l = {.name = b->name, .each = note_token, .context = b, .last = RLK_BEFORE_ALL};
    struct rlk_step_call look = {.run = run_list, .context = &l};
    bool named = b->token != 0;
    int result = named ? ROWLOCK_OK : rlk_do(db, &look);
    if (result != ROWLOCK_OK || !b->token)
        return result;
    if (b->holders > 1)
        return rlk_fail(db, ROWLOCK_EINVAL, "the lock has %d holders: give the token of one",
                        b->holders);
    struct rlk_step_call step = {.run = run_break, .context = b, .finds_out = named};
    result = rlk_do(db, &step);
    if (result == ROWLOCK_OK && !b->found && step.was_uncertain)
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
    if (result != ROWLOCK_OK || !b.found)
        return rlk_leave(db, result != ROWLOCK_OK ? result : ROWLOCK_NONE);
    if (broken) {
        rowlock_grant grant;
        rlk_grant_from_row(&grant, &b.row);
        rlk_give_struct(broken, &grant, sizeof grant);
    }
    return ROWLOCK_OK;
}
