/* SPDX-License-Identifier: MIT
 * A walk through a table. It reads a chunk, computes the new values, and writes them. One
 * transaction writes the chunk and the checkpoint, under the guard of the walk's lock. Rows that
 * met a conflict are done again at the end. */
#include "rows/walk.h"
#include "base/ident.h"
#include "base/options.h"

#include <rowlock/tx.h>
#include <string.h>
#include <unistd.h>

enum { COUNT_LIMIT = 10000001, LATE_CHUNK = 100, COMMITS = 3 };

/* ---- pages */

static int read_page(struct walk *w, enum rlk_step step, int64_t limit, rlk_cells_fn *each,
                     void (*restart)(void *context), void *context)
{
    struct rlk_shape shape = {.step = step, .after = w->position.rows > 0};
    struct rlk_asking asking = {.query = {.each = each, .context = context}, .restart = restart};
    if (!rlk_begin_asking(w->t, &shape, &asking))
        return w->db->error.code;
    for (size_t i = 0; i < asking.query.count; i++)
        asking.values[i] = asking.params[i].source == RLK_FROM_LIMIT
                               ? rowlock_int(limit)
                               : w->position.cells[asking.params[i].index];
    return rlk_ask_rows(w->db, &asking);
}

static int take_count(void *context, const rowlock_value *cells, size_t count)
{
    if (rlk_cells_fit("m", cells, count))
        *(int64_t *)context = cells[0].number;
    return 0;
}

static int count_ahead(struct walk *w)
{
    int64_t ahead = -1;
    int result = read_page(w, RLK_STEP_ROWS_COUNT, COUNT_LIMIT, take_count, NULL, &ahead);
    if (result == ROWLOCK_OK && ahead < 0)
        return rlk_fail_misfit(w->db, false);
    w->report.total = ahead < COUNT_LIMIT ? w->report.rows + ahead : -1;
    return result;
}

/* A page that ends where the page before ended would come again and again. */
static bool is_stuck(const struct walk *w)
{
    const rowlock_value *last = w->rows.cells + (w->rows.rows - 1) * w->rows.width;
    bool same = w->position.rows > 0;
    for (size_t i = 0; same && i < w->t->keys; i++) {
        const rowlock_value *a = &last[i], *b = &w->position.cells[i];
        same = a->kind == b->kind && a->number == b->number && a->length == b->length &&
               (a->length == 0 || memcmp(a->text, b->text, a->length) == 0);
    }
    return same;
}

static int read_rows(struct walk *w)
{
    rlk_page_begin(&w->rows, w->t->keys + w->t->columns);
    w->rows.most = (size_t)w->options.chunk;
    int result = read_page(w, RLK_STEP_ROWS_PAGE, w->options.chunk, rlk_page_add, rlk_page_restart,
                           &w->rows);
    if (result == ROWLOCK_OK)
        result = rlk_page_end(w->t, &w->rows);
    if (result == ROWLOCK_OK && w->rows.rows > 0 && is_stuck(w))
        result = rlk_fail_misfit(w->db, false);
    return result;
}

/* ---- computing */

/* A callback has forked, and this is the child. The connection and the lock are its parent's. */
static bool is_child(const struct walk *w)
{
    return w->db->pid != getpid();
}

/* Asks each() about a row. The texts it gives belong to it, so they are copied at once. */
static int compute_row(struct walk *w, size_t row)
{
    size_t columns = w->t->columns;
    rowlock_row now = rlk_page_row(w->t, &w->rows, row);
    rowlock_value cells[columns + 1];
    for (size_t i = 0; i < columns; i++)
        cells[i] = now.values[i];
    int answer = w->each(w->context, &now, cells);
    if (is_child(w))
        return ROWLOCK_EMISUSE;
    if (answer < 0) {
        w->stopped_with = answer;
        return ROWLOCK_CANCELLED;
    }
    if (answer > 0) {
        w->report.left++;
        return ROWLOCK_OK;
    }
    cells[columns] = rowlock_int(now.version);
    rlk_page_add(&w->values, cells, columns + 1);
    w->changes[w->count] = (rowlock_change){.key = now.key, .version = now.version};
    w->row_of[w->count++] = row;
    return ROWLOCK_OK;
}

/* Stands in for rlk_page_end(), which expects a page that begins with the keys. This page has
 * none. */
static int end_values(struct walk *w)
{
    if (w->values.texts.no_memory || w->values.failed != ROWLOCK_OK)
        return rlk_fail(w->db, ROWLOCK_ENOMEM, "out of memory");
    rlk_page_settle(&w->values);
    for (size_t i = 0; i < w->count; i++)
        w->changes[i].values = &w->values.cells[i * w->values.width];
    return ROWLOCK_OK;
}

static int compute(struct walk *w)
{
    int result = ROWLOCK_OK;
    w->count = 0;
    rlk_page_begin(&w->values, w->t->columns);
    for (size_t i = 0; i < w->rows.rows && result == ROWLOCK_OK; i++)
        result = compute_row(w, i);
    return result == ROWLOCK_OK ? end_values(w) : result;
}

/* ---- writing */

static void note_failed(struct walk *w, const rowlock_row *row, int result, const char *text)
{
    w->report.failed++;
    w->failed[w->failed_count++] = (struct rlk_failed){*row, result, w->reasons.length};
    rlk_buffer_add(&w->reasons, text, strlen(text) + 1);
}

/* Comes after the commit: a transaction that begins again may find other failures. */
static void tell_failed(struct walk *w)
{
    for (size_t i = 0; w->options.failed && i < w->failed_count; i++) {
        const struct rlk_failed *f = &w->failed[i];
        w->options.failed(w->context, &f->row, f->result, w->reasons.text + f->text);
    }
}

/* A page of keys has no versions. */
static void add_key(struct walk *w, struct rlk_page *page, const rowlock_value *key)
{
    rowlock_value cells[w->t->keys + 1];
    memcpy(cells, key, w->t->keys * sizeof *cells);
    cells[w->t->keys] = rowlock_int(0);
    rlk_page_add(page, cells, w->t->keys + 1);
}

/* Counts the outcome of each change in the report. Adds keys that met a conflict to the pending
 * ones. */
static int sort_outcomes(struct walk *w, struct rlk_page *pending)
{
    for (size_t i = 0; i < w->count; i++) {
        const rowlock_change *change = &w->changes[i];
        rowlock_row row = rlk_page_row(w->t, &w->rows, w->row_of[i]);
        w->report.written += change->result == ROWLOCK_OK;
        w->report.conflicts += change->result == ROWLOCK_STALE;
        if (change->result == ROWLOCK_GONE)
            note_failed(w, &row, ROWLOCK_GONE, "the row was deleted meanwhile");
        if (change->result == ROWLOCK_STALE)
            add_key(w, pending, change->key);
    }
    return pending->failed ? rlk_fail(w->db, ROWLOCK_ENOMEM, "out of memory") : ROWLOCK_OK;
}

static bool is_outcome(int result)
{
    return result == ROWLOCK_OK || result == ROWLOCK_STALE || result == ROWLOCK_GONE;
}

/* The table refused the change, and would refuse it again. */
static bool is_refused(const rowlock_db *db, int result)
{
    return result == ROWLOCK_EINVAL || result == ROWLOCK_VIOLATION || result == ROWLOCK_EDENIED ||
           (result == ROWLOCK_ESERVER && !db->error.retryable);
}

static int change_one(void *context)
{
    struct walk *w = context;
    int result = rlk_change(w->t, RLK_UPDATE, w->changes, 1, NULL);
    return is_outcome(result) ? ROWLOCK_OK : result;
}

/* Writes the rows one by one, to find those that the table refuses. EDENIED for all of them before
 * a row was ever written means that this user may not write the table. */
static int write_singly(struct walk *w)
{
    rowlock_change *all = w->changes;
    int result = ROWLOCK_OK;
    size_t denied = 0;
    for (size_t i = 0; i < w->count && result == ROWLOCK_OK; i++) {
        w->changes = &all[i];
        result = rlk_framed(w->db, change_one, w);
        if (is_refused(w->db, result) && !w->db->error.transaction_over) {
            rowlock_row row = rlk_page_row(w->t, &w->rows, w->row_of[i]);
            note_failed(w, &row, result, w->db->error.text);
            all[i].result = result;
            denied += result == ROWLOCK_EDENIED;
            bool always = denied == w->count && w->report.written == 0;
            result = always ? ROWLOCK_EDENIED : ROWLOCK_OK;
        }
    }
    w->changes = all;
    return result;
}

struct writing {
    struct walk *w;
    bool singly;
    /* The chunk has rows that met a conflict before. They are read under a lock now. */
    bool late;
    /* Which of the pending rows these are. */
    size_t from, to;
    /* The rows that are pending after this chunk. */
    struct rlk_page pending;
    /* The report before this chunk. Each attempt of the transaction counts from here. */
    rowlock_walk_report before;
};

static int read_late(struct writing *x)
{
    struct walk *w = x->w;
    size_t keys = w->t->keys;
    struct rlk_page one = {0};
    int result = ROWLOCK_OK;
    rlk_page_begin(&w->rows, keys + w->t->columns);
    w->rows.most = LATE_CHUNK;
    for (size_t i = x->from; i < x->to && result == ROWLOCK_OK; i++) {
        const rowlock_value *key = &w->pending.cells[i * w->pending.width];
        result = rlk_read_row(w->t, key, RLK_LOCK_TO_CHANGE, &one);
        if (result == ROWLOCK_OK) {
            rowlock_value cells[keys + w->t->columns + 1];
            memcpy(cells, one.cells, (keys + w->t->columns) * sizeof *cells);
            cells[keys + w->t->columns] = rowlock_int(one.versions[0]);
            rlk_page_add(&w->rows, cells, keys + w->t->columns + 1);
        } else if (result == ROWLOCK_GONE || (result == ROWLOCK_ESERVER && one.rows > 0)) {
            rowlock_row row = {sizeof row, key, NULL, 0};
            note_failed(w, &row, result,
                        result == ROWLOCK_GONE ? "the row was deleted meanwhile"
                                               : w->db->error.text);
            result = ROWLOCK_OK;
        }
    }
    rlk_page_clear(&one);
    if (result == ROWLOCK_OK)
        result = rlk_page_end(w->t, &w->rows);
    return result == ROWLOCK_OK ? compute(w) : result;
}

static int copy_pending(struct walk *w, const struct writing *x, struct rlk_page *out)
{
    rlk_page_begin(out, w->t->keys);
    for (size_t i = x->late ? x->to : 0; i < w->pending.rows; i++)
        add_key(w, out, &w->pending.cells[i * w->pending.width]);
    return out->failed ? rlk_fail(w->db, ROWLOCK_ENOMEM, "out of memory") : ROWLOCK_OK;
}

static int write_changes(struct writing *x)
{
    struct walk *w = x->w;
    if (x->singly)
        return write_singly(w);
    int result =
        w->count > 0 ? rlk_change(w->t, RLK_UPDATE, w->changes, w->count, NULL) : ROWLOCK_OK;
    return is_outcome(result) ? ROWLOCK_OK : result;
}

/* The transaction of a chunk. */
static int write_here(void *context)
{
    struct writing *x = context;
    struct walk *w = x->w;
    struct rlk_page position = {0};
    w->report = x->before;
    w->failed_count = w->reasons.length = 0;
    int result = rowlock_guard(w->lock, w->db);
    if (result == ROWLOCK_OK)
        result = rlk_checkpoint_check(w);
    if (result == ROWLOCK_OK && x->late)
        result = read_late(x);
    if (result == ROWLOCK_OK)
        result = write_changes(x);
    if (result == ROWLOCK_OK)
        result = copy_pending(w, x, &x->pending);
    if (result == ROWLOCK_OK)
        result = sort_outcomes(w, &x->pending);
    if (result == ROWLOCK_OK)
        result = rlk_page_end(w->t, &x->pending);
    if (result == ROWLOCK_OK && w->reasons.no_memory)
        result = rlk_fail(w->db, ROWLOCK_ENOMEM, "out of memory");
    if (!x->late && w->rows.rows > 0) {
        position = (struct rlk_page){.rows = 1,
                                     .width = w->rows.width,
                                     .cells = &w->rows.cells[(w->rows.rows - 1) * w->rows.width]};
        w->report.rows += (int64_t)w->rows.rows;
    }
    if (result == ROWLOCK_OK)
        result = rlk_checkpoint_save(w, x->late ? &w->position : &position, &x->pending);
    return result;
}

/* Remembers what the checkpoint says now. */
static int move_on(struct writing *x)
{
    struct walk *w = x->w;
    struct rlk_page before = w->pending;
    w->pending = x->pending;
    x->pending = before;
    w->step++;
    if (x->late || w->rows.rows == 0)
        return ROWLOCK_OK;
    rlk_page_begin(&w->position, w->t->keys);
    add_key(w, &w->position, rlk_page_row(w->t, &w->rows, w->rows.rows - 1).key);
    return rlk_page_end(w->t, &w->position);
}

/* A commit got no answer. The checkpoint says whether it was done. If it was not, the chunk is
 * written again. The old pending keys stay in memory, since failed rows may point to them. */
static int settle(struct writing *x, bool *again)
{
    bool found;
    int64_t step = x->w->step;
    rlk_page_clear(&x->pending);
    x->pending = x->w->pending;
    x->w->pending = (struct rlk_page){0};
    int result = rlk_checkpoint_load(x->w, &found);
    *again = result == ROWLOCK_OK && x->w->step == step;
    return result;
}

static int write_chunk(struct writing *x)
{
    struct walk *w = x->w;
    bool again = true;
    int result = ROWLOCK_OK;
    x->before = w->report;
    for (int i = 0; i < COMMITS && again; i++) {
        again = false;
        result = rlk_framed(w->db, write_here, x);
        if (is_refused(w->db, result) && !x->singly && w->count > 0)
            again = x->singly = true;
        else if (result == ROWLOCK_EUNCERTAIN)
            result = settle(x, &again);
        else if (result == ROWLOCK_OK)
            result = move_on(x);
    }
    if (result == ROWLOCK_OK && !again)
        tell_failed(w);
    rlk_page_clear(&x->pending);
    if (result == ROWLOCK_OK && again)
        return rlk_fail(w->db, ROWLOCK_EUNCERTAIN, "the answers to %d commits were lost", COMMITS);
    return result;
}

/* ---- the walk */

static void say_progress(struct walk *w, bool aloud)
{
    rowlock_walk_report *r = &w->report;
    int64_t rows = r->rows - w->rows_before;
    r->elapsed_ms = (rlk_now_us() - w->began_us) / 1000;
    r->rate = r->elapsed_ms > 0 ? (double)rows * 1000 / (double)r->elapsed_ms : 0;
    bool known = r->total >= r->rows && r->rate > 0;
    r->left_ms = known ? (int64_t)((double)(r->total - r->rows) * 1000 / r->rate) : -1;
    if (aloud && w->options.progress)
        w->options.progress(w->context, r);
}

static int heed_cancel(struct walk *w)
{
    if (!rlk_take_cancel(&w->db->waiting))
        return ROWLOCK_OK;
    return rlk_fail(w->db, ROWLOCK_CANCELLED, "cancelled; the next walk goes on from here");
}

/* Between two chunks. */
static int pause_here(struct walk *w)
{
    say_progress(w, true);
    int result = is_child(w) ? ROWLOCK_EMISUSE : heed_cancel(w);
    if (result != ROWLOCK_OK)
        return result;
    if (rowlock_lock_remaining_ms(w->lock) > w->options.ttl_ms * 2 / 3)
        return ROWLOCK_OK;
    result = rowlock_renew(w->lock, 0);
    /* LAPSED is fine: the guard of each chunk proves that no other owner was granted the lock. */
    if (result != ROWLOCK_OK && result != ROWLOCK_LAPSED)
        return result;
    rlk_action(w->db, "walk", w->t->label);
    return ROWLOCK_OK;
}

/* Rows that were not written do not count. */
static int do_chunk(struct writing *x)
{
    struct walk *w = x->w;
    rowlock_walk_report before = w->report;
    int result = x->late ? ROWLOCK_OK : compute(w);
    if (result == ROWLOCK_OK)
        result = write_chunk(x);
    if (result != ROWLOCK_OK)
        w->report = before;
    w->report.total = before.total;
    return result == ROWLOCK_OK ? pause_here(w) : result;
}

static int walk_chunks(struct walk *w)
{
    int result = count_ahead(w);
    while (result == ROWLOCK_OK) {
        struct writing x = {.w = w};
        result = read_rows(w);
        if (result != ROWLOCK_OK || w->rows.rows == 0)
            return result;
        result = do_chunk(&x);
    }
    return result;
}

static int walk_late(struct walk *w)
{
    int result = ROWLOCK_OK;
    while (result == ROWLOCK_OK && w->pending.rows > 0) {
        struct writing x = {.w = w, .late = true};
        x.to = w->pending.rows < LATE_CHUNK ? w->pending.rows : LATE_CHUNK;
        result = do_chunk(&x);
    }
    return result;
}

/* A client that has lost the lock must not remove what another one has written since. */
static int forget_here(void *context)
{
    struct walk *w = context;
    int result = rowlock_guard(w->lock, w->db);
    return result == ROWLOCK_OK ? rlk_checkpoint_forget(w) : result;
}

static int forget_checkpoint(struct walk *w)
{
    int result = ROWLOCK_EUNCERTAIN;
    for (int i = 0; i < COMMITS && result == ROWLOCK_EUNCERTAIN; i++)
        result = rlk_framed(w->db, forget_here, w);
    return result;
}

static int walk(struct walk *w)
{
    bool found = false;
    int result = w->options.restart ? forget_checkpoint(w) : ROWLOCK_OK;
    if (result == ROWLOCK_OK)
        result = rlk_checkpoint_load(w, &found);
    w->report.resumed = found;
    w->rows_before = w->report.rows;
    if (result == ROWLOCK_OK)
        result = walk_chunks(w);
    if (result == ROWLOCK_OK)
        result = walk_late(w);
    if (result == ROWLOCK_OK)
        result = forget_checkpoint(w);
    return result;
}

static int walk_locked(struct walk *w)
{
    rowlock_acquire_options how = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    how.ttl_ms = w->options.ttl_ms;
    how.wait_ms = w->options.wait_ms;
    how.note = "walk";
    int result = heed_cancel(w);
    if (result == ROWLOCK_OK)
        result = rowlock_lock_open(w->db, w->name, &w->lock);
    if (result == ROWLOCK_OK)
        result = rowlock_acquire(w->lock, &how);
    if (result != ROWLOCK_OK)
        return result;
    /* What fails from here on is the walk, and not its lock. */
    rlk_action(w->db, "walk", w->t->label);
    result = walk(w);
    rowlock_error error = w->db->error;
    int released = rowlock_release(w->lock);
    /* The work is done. A lease that could not be released expires. */
    if (result == ROWLOCK_OK && released != ROWLOCK_LOST)
        return ROWLOCK_OK;
    w->db->error = error;
    return result;
}

static void clear(struct walk *w)
{
    rlk_page_clear(&w->position);
    rlk_page_clear(&w->pending);
    rlk_page_clear(&w->rows);
    rlk_page_clear(&w->values);
    rlk_buffer_clear(&w->reasons);
    rlk_free(w->changes);
    rlk_free(w->row_of);
    rlk_free(w->failed);
    rowlock_lock_close(w->lock);
}

int rowlock_walk(rowlock_table *t, const char *name,
                 int (*each)(void *context, const rowlock_row *row, rowlock_value *values),
                 void *context, const rowlock_walk_options *options, rowlock_walk_report *report)
{
    struct walk w = {.t = t, .name = name, .each = each, .context = context};
    int result = rlk_enter_table(t, "walk");
    if (result != ROWLOCK_OK ||
        (result = rlk_check_text(&t->db->error, "walk's name", name, false)) != ROWLOCK_OK ||
        (result = rlk_take_walk_options(&t->db->error, &w.options, options)) != ROWLOCK_OK)
        return result;
    if (!each)
        return rlk_fail(t->db, ROWLOCK_EINVAL, "each must not be NULL");
    w.db = t->db;
    if (w.db->adopted || w.db->tx)
        return rlk_fail(w.db, ROWLOCK_EMISUSE,
                        "a walk makes its own transactions: open its rowlock_db with a URL");
    if (t->set)
        return rlk_fail(w.db, ROWLOCK_EMISUSE, "a walk sets columns: open the table without set");
    w.report.size = sizeof w.report;
    w.began_us = rlk_now_us();
    size_t chunk = (size_t)w.options.chunk > LATE_CHUNK ? (size_t)w.options.chunk : LATE_CHUNK;
    w.changes = rlk_alloc(chunk * sizeof *w.changes);
    w.row_of = rlk_alloc(chunk * sizeof *w.row_of);
    w.failed = rlk_alloc(chunk * sizeof *w.failed);
    w.db->waiting.longer = true;
    if (w.changes && w.row_of && w.failed)
        result = walk_locked(&w);
    else
        result = rlk_fail(w.db, ROWLOCK_ENOMEM, "out of memory");
    if (w.stopped_with != 0)
        result = w.stopped_with;
    /* A cancel that came too late for this walk must not end the next wait. */
    w.db->waiting.longer = false;
    if (!is_child(&w))
        rlk_take_cancel(&w.db->waiting);
    say_progress(&w, false);
    rowlock_error error = w.db->error;
    clear(&w);
    w.db->error = error;
    if (report)
        rlk_give_struct(report, &w.report, sizeof w.report);
    return rlk_end_call(w.db, result);
}
