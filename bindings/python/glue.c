/* SPDX-License-Identifier: MIT
 *
 * What is too slow in Python for thousands of rows: values go in by column, and results come out as
 * arrays. And what a signal handler of Python must not come between: closing a handle, and
 * forgetting it. build_rowlock.py puts this after the functions rowlock_…_init(). */

static void rowlock_py_close_db(rowlock_db **at)
{
    rowlock_db *db = *at;
    *at = NULL;
    rowlock_db_close(db);
}

static void rowlock_py_close_pool(rowlock_pool **at)
{
    rowlock_pool *pool = *at;
    *at = NULL;
    rowlock_pool_close(pool);
}

static void rowlock_py_close_lock(rowlock_lock **at)
{
    rowlock_lock *lock = *at;
    *at = NULL;
    rowlock_lock_close(lock);
}

static void rowlock_py_close_table(rowlock_table **at)
{
    rowlock_table *table = *at;
    *at = NULL;
    rowlock_table_close(table);
}

/* Fills one column of count rows. kinds has a kind for each row. The kinds with text take their
 * bytes from text, one after the other, as long as lengths says. */
static void rowlock_py_column(rowlock_value *first, size_t width, size_t count,
                              const uint8_t *kinds, const int64_t *numbers, const double *reals,
                              const char *text, const int64_t *lengths)
{
    for (size_t i = 0; i < count; i++) {
        rowlock_value *value = first + i * width;
        *value = rowlock_null();
        value->kind = (rowlock_kind)kinds[i];
        if (value->kind == ROWLOCK_INT || value->kind == ROWLOCK_BOOL) {
            value->number = numbers[i];
        } else if (value->kind == ROWLOCK_REAL) {
            value->real = reals[i];
        } else if (value->kind != ROWLOCK_NULL) {
            value->text = text;
            value->length = (size_t)lengths[i];
            text += lengths[i];
        }
    }
}

static void rowlock_py_changes(rowlock_change *changes, size_t count, const rowlock_value *keys,
                               size_t key_width, const rowlock_value *values, size_t width,
                               const int64_t *versions)
{
    for (size_t i = 0; i < count; i++) {
        changes[i] = (rowlock_change){.key = keys + i * key_width,
                                      .values = values ? values + i * width : NULL,
                                      .version = versions ? versions[i] : 0,
                                      /* The result of a row that the call does not reach. */
                                      .result = ROWLOCK_CANCELLED};
    }
}

static void rowlock_py_outcomes(const rowlock_change *changes, size_t count, int32_t *results,
                                int64_t *currents)
{
    for (size_t i = 0; i < count; i++) {
        results[i] = changes[i].result;
        currents[i] = changes[i].current;
    }
}
