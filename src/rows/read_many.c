/* SPDX-License-Identifier: MIT
 * Reads many rows by their keys, with one statement for each chunk. A database that takes one row
 * at a time gets one statement for each row. */
#include "rows/change_batch.h"

enum { READ_CHUNK = 1000 };

struct reading {
    /* Its changes have keys only. */
    struct batch batch;
    enum rlk_row_lock lock;
    int (*each)(void *context, size_t index, const rowlock_row *row);
    void *context;
    size_t missing;

    /* The chunk in progress. */
    struct rlk_page page;
    /* The numbers of the rows of page. */
    size_t numbers[READ_CHUNK];
    bool misfit;
};

static int give(struct reading *r, size_t index, const rowlock_row *row)
{
    r->missing += !row;
    if (r->each(r->context, index, row) == 0)
        return ROWLOCK_OK;
    return rlk_fail(r->batch.t->db, ROWLOCK_CANCELLED, "stopped by the callback");
}

/* ---- one row */

static int read_one(struct reading *r, size_t index)
{
    rowlock_table *t = r->batch.t;
    struct rlk_page page = {0};
    int result = rlk_read_row(t, r->batch.changes[index].key, r->lock, &page);
    if (result == ROWLOCK_OK) {
        rowlock_row row = rlk_page_row(t, &page, 0);
        result = give(r, index, &row);
    } else if (result == ROWLOCK_GONE) {
        result = give(r, index, NULL);
    }
    rlk_page_clear(&page);
    return result;
}

/* ---- a chunk */

static int take_row(void *context, const rowlock_value *cells, size_t count)
{
    struct reading *r = context;
    int64_t number = count > 0 && cells[0].kind == ROWLOCK_INT ? cells[0].number : 0;
    r->misfit = r->misfit || number < 1 || number > (int64_t)r->batch.n ||
                r->page.rows == r->batch.n ||
                (r->page.rows > 0 && number <= (int64_t)r->numbers[r->page.rows - 1]);
    if (r->misfit)
        return 1;
    r->numbers[r->page.rows] = (size_t)number;
    return rlk_page_add(&r->page, cells + 1, count - 1);
}

static void restart_page(void *context)
{
    struct reading *r = context;
    rlk_page_restart(&r->page);
    r->misfit = false;
}

static int ask_for_chunk(struct reading *r)
{
    struct batch *b = &r->batch;
    const struct rlk_shape shape = {.step = RLK_STEP_ROWS_READ, .lock = r->lock};
    struct rlk_asking asking = {.query = {.each = take_row, .context = r}, .restart = restart_page};
    struct rlk_pack pack = {0};
    int result = rlk_pack_rows(&pack, b->t, &shape, b->changes, b->rows, b->n);
    if (result == ROWLOCK_OK && !rlk_begin_asking(b->t, &shape, &asking))
        result = b->t->db->error.code;
    for (size_t i = 0; i < asking.query.count; i++)
        asking.values[i] = rlk_packed(&pack, asking.params[i].index);
    rlk_page_begin(&r->page, b->t->keys + b->t->columns);
    if (result == ROWLOCK_OK)
        result = rlk_ask_rows(b->t->db, &asking);
    rlk_pack_clear(&pack);
    if (result == ROWLOCK_OK && r->misfit)
        return rlk_fail_misfit(b->t->db, false);
    return result == ROWLOCK_OK ? rlk_page_end(b->t, &r->page) : result;
}

/* A locking read misses rows that were inserted while it waited, and rows that a policy forbids to
 * lock. So it looks for each missing row alone. */
static int read_chunk(struct reading *r)
{
    struct batch *b = &r->batch;
    int result = ask_for_chunk(r);
    size_t at = 0;
    for (size_t i = 0; i < b->n && result == ROWLOCK_OK; i++) {
        if (at == r->page.rows || r->numbers[at] != i + 1) {
            result = r->lock ? read_one(r, b->rows[i]) : give(r, b->rows[i], NULL);
            continue;
        }
        rowlock_row row = rlk_page_row(b->t, &r->page, at++);
        result = give(r, b->rows[i], &row);
    }
    return result;
}

/* ---- all of them */

static int read_all(struct reading *r)
{
    struct batch *b = &r->batch;
    bool singly = b->t->db->driver->packing == RLK_SINGLY;
    int result = ROWLOCK_OK;
    b->options.chunk = singly ? 1 : READ_CHUNK;
    for (size_t i = 0; i < b->count && result == ROWLOCK_OK; i += b->n) {
        b->rows = &b->order[i];
        b->n = rlk_chunk_from(b, i);
        result = singly ? read_one(r, b->rows[0]) : read_chunk(r);
    }
    if (result == ROWLOCK_OK && r->missing > 0)
        return rlk_fail(b->t->db, ROWLOCK_GONE, "%zu of %zu rows do not exist", r->missing,
                        b->count);
    return result;
}

static int check_keys(struct batch *b, const rowlock_value *keys)
{
    int result = ROWLOCK_OK;
    for (size_t row = 0; row < b->count && result == ROWLOCK_OK; row++) {
        b->changes[row].key = &keys[row * b->t->keys];
        for (size_t i = 0; i < b->t->keys && result == ROWLOCK_OK; i++)
            result = rlk_check_key(b->t, b->changes[row].key, i, (int64_t)row);
        if (result != ROWLOCK_OK)
            b->t->db->error.row = (int64_t)row;
    }
    return result;
}

static int run_reading(struct reading *r, const rowlock_value *keys)
{
    struct batch *b = &r->batch;
    int result = check_keys(b, keys);
    if (result != ROWLOCK_OK)
        return result;
    rlk_sort_rows(b);
    result = r->lock == RLK_LOCK_NONE ? ROWLOCK_OK : rlk_lock_to_read(b->t);
    if (result == ROWLOCK_OK)
        result = read_all(r);
    rlk_page_clear(&r->page);
    /* A read violates no constraint, so a key does not fit its column. */
    if (result == ROWLOCK_VIOLATION)
        result = b->t->db->error.code = ROWLOCK_EINVAL;
    return result;
}

int rowlock_read_many(rowlock_table *t, const rowlock_value *keys, size_t count, int lock,
                      int (*each)(void *context, size_t index, const rowlock_row *row),
                      void *context)
{
    int result = rlk_enter_table(t, "read rows of");
    if (result != ROWLOCK_OK || count == 0)
        return result;
    if (!keys || !each)
        return rlk_fail(t->db, ROWLOCK_EINVAL, "keys and each must not be NULL");
    struct reading *r = rlk_alloc(sizeof *r);
    rowlock_change *changes = rlk_alloc(count * sizeof *changes);
    size_t *order = rlk_alloc(count * sizeof *order);
    if (r && changes && order) {
        *r = (struct reading){
            .batch = {.t = t, .op = RLK_EXPECT, .changes = changes, .count = count, .order = order},
            .lock = lock ? RLK_LOCK_TO_CHANGE : RLK_LOCK_NONE,
            .each = each,
            .context = context};
        result = run_reading(r, keys);
    } else {
        result = rlk_fail(t->db, ROWLOCK_ENOMEM, "out of memory");
    }
    rlk_free(r);
    rlk_free(changes);
    rlk_free(order);
    return result;
}
