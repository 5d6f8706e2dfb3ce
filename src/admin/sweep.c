/* SPDX-License-Identifier: MIT
 * Removes what has expired: grants, tickets, and counters that were idle for long. */
#include "admin/admin.h"
#include "base/options.h"
#include "core/ask.h"
#include "core/many.h"
#include "core/step_cells.h"
#include "lock/lock.h"

#include <stdlib.h>
#include <string.h>

/* ---- one batch of grants */

/* The key of a row of rowlock_locks. */
struct key {
    char name[RLK_TEXT_MAX + 1];
    int64_t slot;
};

/* One batch of a sweep: rows behind a key, in key order, whose leases ended at least older_us ago.
 * A batch is one transaction. It skips rows that others have locked. A dry run only finds them. */
struct batch {
    int64_t older_us;
    int size;
    bool dry_run;
    /* The rows that are removed are wanted, which costs more. */
    bool reports;
    struct key after;
    rowlock_value in[6];
    /* out */
    /* Only if it reports: the rows that were read, and which of them stay. NULL: none. */
    struct rlk_items rows;
    bool *stays;
    /* Rows removed. Of a dry run: rows found. */
    int64_t removed;
    /* There may be more rows behind last. */
    bool more;
    /* The end of the batch, which is known from its answer if it ends. */
    bool ends;
    struct key last;
};

/* The answer is how many rows are gone, and the last of them if the dialect has no other end of a
 * batch. */
static enum rlk_class sweep_quietly(rowlock_db *db, struct rlk_call *call, struct batch *b)
{
    static const struct rlk_field fields[] = {RLK_FIELD(struct batch, removed),
                                              RLK_FIELD(struct batch, last.name),
                                              RLK_FIELD(struct batch, last.slot)};
    struct rlk_ask quiet = {.fields = fields, .out = b};
    rlk_fill(&quiet, RLK_STEP_SWEEP_QUIET, b->in, 6);
    enum rlk_class class = rlk_send(db, call, &quiet);
    if (quiet.rows == 0)
        b->removed = quiet.changed;
    b->ends = b->ends || quiet.rows > 0;
    return class;
}

static int compare_rows(const void *a, const void *b)
{
    return rlk_row_is_further(a, b) ? 1 : -rlk_row_is_further(b, a);
}

static enum rlk_class read_rows(rowlock_db *db, struct rlk_call *call, enum rlk_step step,
                                struct batch *b)
{
    struct rlk_ask ask = {.step = step};
    rlk_fill(&ask, step, b->in, 6);
    rlk_read_items(&ask, &b->rows, sizeof(struct rlk_row), rlk_row_fields);
    enum rlk_class class = rlk_send(db, call, &ask);
    b->removed = (int64_t)b->rows.count;
    return class == RLK_DONE && b->rows.no_memory ? RLK_NOMEM : class;
}

/* A DELETE answers its rows in any order. */
static enum rlk_class read_swept_page(rowlock_db *db, struct rlk_call *call, struct batch *b)
{
    struct rlk_items *rows = &b->rows;
    enum rlk_class class = read_rows(db, call, RLK_STEP_SWEEP, b);
    if (rows->count > 0)
        qsort(rows->items, rows->count, rows->size, compare_rows);
    return class;
}

/* A dialect may bound a batch by the rows that it reads, expired or not. If there are no more rows
 * than that, the batch is the rest of the table. */
static enum rlk_class sweep_range(rowlock_db *db, struct rlk_call *call, struct batch *b)
{
    enum { UNTIL = 4, UNTIL_SLOT };
    bool bounded = db->texts.sql[RLK_STEP_SWEEP_END];
    static const struct rlk_field fields[] = {RLK_FIELD(struct batch, last.name),
                                              RLK_FIELD(struct batch, last.slot)};
    struct rlk_ask end = {.fields = fields, .out = b};
    rlk_fill(&end, RLK_STEP_SWEEP_END, b->in, 3);
    enum rlk_class class = bounded ? rlk_send(db, call, &end) : RLK_DONE;
    if (class != RLK_DONE)
        return class;
    b->ends = end.rows > 0;
    if (b->ends) {
        b->in[UNTIL] = rowlock_text(b->last.name);
        b->in[UNTIL_SLOT] = rowlock_int(b->last.slot);
    }
    class = b->reports ? read_swept_page(db, call, b) : sweep_quietly(db, call, b);
    b->more = bounded ? b->ends : b->removed >= b->size;
    return class;
}

/* Removes some of the rows that were read, if they are the same grants and still expired. */
static enum rlk_class remove_rows(rowlock_db *db, struct rlk_call *call, const struct batch *b,
                                  size_t first, size_t count, int64_t *removed)
{
    struct rlk_many m = {.width = 3, .shared = 1, .in = {[3] = rowlock_int(b->older_us)}};
    for (size_t i = first; i < first + count; i++) {
        const struct rlk_row *row = rlk_item(&b->rows, i);
        const rowlock_value key[] = {rowlock_int(row->slot), rowlock_int(row->token),
                                     rowlock_text(row->name)};
        rlk_many_add(&m, key, db->driver->packing);
    }
    enum rlk_class class = rlk_many_send(db, call, RLK_STEP_SWEEP_KEYS, &m, NULL, NULL);
    *removed = m.changed;
    return class;
}

/* Returns RLK_CONTENTION if some rows stay, so that the transaction is rolled back. */
static enum rlk_class remove_all(rowlock_db *db, struct rlk_call *call, struct batch *b)
{
    bool begun;
    enum rlk_class class = rlk_begin(db, call, &begun);
    if (class == RLK_DONE)
        class = remove_rows(db, call, b, 0, b->rows.count, &b->removed);
    if (class == RLK_DONE && b->removed != (int64_t)b->rows.count)
        class = RLK_CONTENTION;
    return rlk_end(db, call, begun, class);
}

static enum rlk_class remove_each(rowlock_db *db, struct rlk_call *call, struct batch *b)
{
    bool begun;
    enum rlk_class class = rlk_begin(db, call, &begun);
    b->removed = 0;
    for (size_t i = 0; class == RLK_DONE && i < b->rows.count; i++) {
        int64_t gone = 0;
        class = remove_rows(db, call, b, i, 1, &gone);
        b->stays[i] = gone == 0;
        b->removed += gone;
    }
    return rlk_end(db, call, begun, class);
}

/* For servers whose DELETE does not answer its rows, only their number. A sweep that must report
 * them removes all or none. If some stay, it finds out which by removing them one by one. */
static enum rlk_class remove_page(rowlock_db *db, struct rlk_call *call, struct batch *b)
{
    if (!b->reports)
        return remove_rows(db, call, b, 0, b->rows.count, &b->removed);
    enum rlk_class class = remove_all(db, call, b);
    if (class != RLK_CONTENTION)
        return class;
    b->stays = rlk_alloc(b->rows.count);
    return b->stays ? remove_each(db, call, b) : RLK_NOMEM;
}

/* The candidates are read without locks. */
static enum rlk_class sweep_page(rowlock_db *db, struct rlk_call *call, struct batch *b)
{
    enum rlk_class class = read_rows(db, call, RLK_STEP_EXPIRED, b);
    b->more = b->removed >= b->size;
    bool removes = class == RLK_DONE && !b->dry_run && b->removed > 0;
    return removes ? remove_page(db, call, b) : class;
}

static void clear(struct batch *b)
{
    rlk_free(b->stays);
    rlk_free(b->rows.items);
    b->stays = NULL;
    b->rows = (struct rlk_items){0};
    b->removed = 0;
}

static enum rlk_class run_sweep(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask)
{
    struct batch *b = ask->out;
    clear(b);
    b->ends = false;
    b->last = (struct key){.slot = 0};
    memcpy(b->in, ask->in, sizeof b->in);
    bool by_keys = b->dry_run || db->texts.sql[RLK_STEP_SWEEP_KEYS];
    enum rlk_class class = by_keys ? sweep_page(db, call, b) : sweep_range(db, call, b);
    if (b->rows.count > 0 && !b->ends) {
        const struct rlk_row *last = rlk_item(&b->rows, b->rows.count - 1);
        memcpy(b->last.name, last->name, sizeof b->last.name);
        b->last.slot = last->slot;
    }
    return class;
}

/* ---- the call */

struct sweeping {
    rowlock_sweep_options options;
    rowlock_sweep_report report;
    int64_t until_us;
    bool stopped;
    struct batch batch;
};

static bool goes_on(const struct sweeping *s)
{
    return !s->stopped && rlk_now_us() < s->until_us;
}

static void give_swept(struct sweeping *s)
{
    for (size_t i = 0; i < s->batch.rows.count && !s->stopped; i++) {
        rowlock_grant grant;
        if (s->batch.stays && s->batch.stays[i])
            continue;
        rlk_grant_from_row(&grant, rlk_item(&s->batch.rows, i));
        s->stopped = s->options.each(s->options.context, &grant) != 0;
    }
}

/* A batch that ends where it began would come again and again. */
static bool is_stuck(const struct batch *b)
{
    int order = strcmp(b->last.name, b->after.name);
    return b->more && (order < 0 || (order == 0 && b->last.slot <= b->after.slot));
}

static int sweep_batch(rowlock_db *db, struct sweeping *s)
{
    struct batch *batch = &s->batch;
    struct rlk_ask ask = {.run = run_sweep, .out = batch, .retryable_if_lost = true};
    batch->after = batch->last;
    ASK(&ask, SWEEP, rowlock_text(batch->after.name), rowlock_int(batch->after.slot),
        rowlock_int(batch->size), rowlock_int(batch->older_us), rowlock_null(), rowlock_null());
    int result = rlk_ask(db, &ask);
    if (result != ROWLOCK_OK)
        return result;
    if (batch->reports)
        give_swept(s);
    s->report.locks += batch->removed;
    s->report.batches++;
    return is_stuck(batch) ? rlk_fail_answer(db, RLK_STEP_SWEEP) : ROWLOCK_OK;
}

static int sweep_locks(rowlock_db *db, struct sweeping *s)
{
    s->batch = (struct batch){.older_us = s->options.older_than_ms * 1000,
                              .size = s->options.batch,
                              .dry_run = s->options.dry_run != 0,
                              .reports = s->options.each != NULL,
                              .last = {.slot = -1}};
    int result;
    do
        result = sweep_batch(db, s);
    while (result == ROWLOCK_OK && s->batch.more && goes_on(s));
    clear(&s->batch);
    return result;
}

/* Sends a step until it removes less than a batch. A dialect answers how many, or counts them. */
static int sweep_rest(rowlock_db *db, struct sweeping *s, enum rlk_step step,
                      const rowlock_value *values, size_t count, int64_t *removed)
{
    int64_t some = 0;
    do {
        struct rlk_ask ask = {.fields = rlk_number_field, .out = &some, .retryable_if_lost = true};
        rlk_fill(&ask, step, values, count);
        int result = rlk_ask(db, &ask);
        if (result != ROWLOCK_OK)
            return result;
        some = ask.rows > 0 ? some : ask.changed;
        *removed += some;
        s->report.batches++;
    } while (some == s->options.batch && !s->options.dry_run && goes_on(s));
    return ROWLOCK_OK;
}

/* Forgets counters that were not used for so long. */
static int fold_counters(rowlock_db *db, struct sweeping *s)
{
    const rowlock_sweep_options *o = &s->options;
    const rowlock_value values[] = {rowlock_int(o->idle_ms * 1000), rowlock_int(o->batch),
                                    rowlock_bool(o->dry_run != 0)};
    return sweep_rest(db, s, RLK_STEP_FOLD, values, 3, &s->report.counters);
}

/* It skips expired tickets that others have locked. */
static int sweep_waiters(rowlock_db *db, struct sweeping *s)
{
    const rowlock_value batch = rowlock_int(s->options.batch);
    return sweep_rest(db, s, RLK_STEP_SWEEP_WAITERS, &batch, 1, &s->report.waiters);
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
