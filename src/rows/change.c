/* SPDX-License-Identifier: MIT
 * Changes rows if they have the expected versions. The changes are checked, sorted by key, done
 * chunk by chunk, and summed up. */
#include "base/options.h"
#include "rows/change_batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the changes of the caller */

static bool uses_set(const struct batch *b)
{
    return b->op == RLK_UPDATE && b->t->set;
}

static size_t values_of(const struct batch *b)
{
    if (!gives_values(b))
        return 0;
    return uses_set(b) ? b->t->parameters : b->t->columns;
}

static int check_parameter(struct batch *b, size_t index, const rowlock_value *value, int64_t row)
{
    rowlock_kind *kind = &b->kinds[index];
    if ((unsigned)value->kind >= RLK_KINDS)
        return rlk_fail(b->t->db, ROWLOCK_EINVAL,
                        "rows[%" PRId64 "]: parameter %zu has an unknown kind", row, index + 1);
    if (*kind == ROWLOCK_NULL)
        *kind = value->kind;
    if (value->kind != ROWLOCK_NULL && value->kind != *kind)
        return rlk_fail(b->t->db, ROWLOCK_EINVAL,
                        "rows[%" PRId64
                        "]: parameter %zu is of another kind than in the rows before it",
                        row, index + 1);
    return rlk_check_value(b->t->db, &b->t->kind[*kind], value, row);
}

static int check_row(struct batch *b, size_t row)
{
    const rowlock_change *change = &b->changes[row];
    const struct rlk_column *version = rlk_version_of(b->t);
    int result = ROWLOCK_OK;
    if (!change->key || (!change->values && values_of(b) > 0))
        return rlk_fail(b->t->db, ROWLOCK_EINVAL, "rows[%zu]: it has no %s", row,
                        change->key ? "values" : "key");
    for (size_t i = 0; i < b->t->keys && result == ROWLOCK_OK; i++)
        result = rlk_check_key(b->t, change->key, i, (int64_t)row);
    for (size_t i = 0; change->values && i < values_of(b) && result == ROWLOCK_OK; i++)
        result = b->kinds ? check_parameter(b, i, &change->values[i], (int64_t)row)
                          : rlk_check_value(b->t->db, &b->t->all[b->t->keys + i],
                                            &change->values[i], (int64_t)row);
    bool moves = b->op == RLK_UPDATE || b->op == RLK_TOUCH;
    if (result == ROWLOCK_OK && moves && change->version >= version->most)
        return rlk_fail(b->t->db, ROWLOCK_EINVAL,
                        "rows[%zu]: version %" PRId64 " is the last that the column %s can hold",
                        row, change->version, version->name);
    return result;
}

/* ---- the order of keys */

static int compare_values(const rowlock_value *a, const rowlock_value *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->kind == ROWLOCK_INT || a->kind == ROWLOCK_BOOL)
        return a->number < b->number ? -1 : a->number > b->number;
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = shorter > 0 ? memcmp(a->text, b->text, shorter) : 0;
    return order != 0 || a->length == b->length ? order : a->length < b->length ? -1 : 1;
}

static int compare_rows(const void *one, const void *other, void *context)
{
    const struct batch *b = context;
    const rowlock_value *a = b->changes[*(const size_t *)one].key;
    const rowlock_value *c = b->changes[*(const size_t *)other].key;
    int order = 0;
    for (size_t i = 0; i < b->t->keys && order == 0; i++) {
        rowlock_value left = rlk_fit(&b->t->all[i], &a[i]), right = rlk_fit(&b->t->all[i], &c[i]);
        order = compare_values(&left, &right);
    }
    return order;
}

/* Finds the first row that is not below the next one, else count - 1. Most batches come sorted, and
 * need no sort. */
static size_t find_unsorted(struct batch *b)
{
    size_t i = 0;
    while (i + 1 < b->count && compare_rows(&b->order[i], &b->order[i + 1], b) < 0)
        i++;
    return i;
}

void rlk_sort_rows(struct batch *b)
{
    for (size_t i = 0; i < b->count; i++)
        b->order[i] = i;
    if (find_unsorted(b) + 1 < b->count)
        qsort_r(b->order, b->count, sizeof *b->order, compare_rows, b);
}

static int sort_rows(struct batch *b)
{
    rlk_sort_rows(b);
    size_t at = find_unsorted(b);
    if (at + 1 < b->count) {
        size_t one = b->order[at], other = b->order[at + 1];
        return rlk_fail(b->t->db, ROWLOCK_EINVAL, "rows[%zu] and rows[%zu] have the same key",
                        one < other ? one : other, one < other ? other : one);
    }
    return ROWLOCK_OK;
}

/* ---- chunks */

static int change_singly(void *context)
{
    struct batch *b = context;
    int result = ROWLOCK_OK;
    for (size_t i = 0; i < b->n && result == ROWLOCK_OK; i++) {
        result = rlk_change_row(b, &b->changes[b->rows[i]]);
        if (result == ROWLOCK_VIOLATION && !b->t->db->error.transaction_over)
            result = ROWLOCK_OK;
    }
    return result;
}

static void mark(struct batch *b, int from, int to)
{
    for (size_t i = 0; i < b->n; i++) {
        rowlock_change *change = &b->changes[b->rows[i]];
        if (change->result == from) {
            change->result = to;
            change->current = 0;
        }
    }
}

/* The chunk failed. If its rows were sent one by one, in a transaction, the rows that had succeeded
 * are undone too. */
static void mark_failed(struct batch *b, int result, bool many)
{
    bool refused =
        result == ROWLOCK_ESERVER || result == ROWLOCK_EINVAL || result == ROWLOCK_VIOLATION;
    int became = result == ROWLOCK_EUNCERTAIN ? ROWLOCK_EUNCERTAIN
                 : refused                    ? ROWLOCK_UNDONE
                                              : ROWLOCK_CANCELLED;
    mark(b, UNKNOWN, became);
    mark(b, PARADOX, became);
    mark(b, ROWLOCK_CANCELLED, became);
    if (!many && b->n > 1)
        mark(b, ROWLOCK_OK, result == ROWLOCK_EUNCERTAIN ? became : ROWLOCK_UNDONE);
}

static int send_chunk(void *context)
{
    struct batch *b = context;
    if (b->n == 1)
        return rlk_change_row(b, &b->changes[b->rows[0]]);
    if (b->t->db->driver->packing != RLK_SINGLY)
        return rlk_change_chunk(b);
    return rlk_framed(b->t->db, change_singly, b);
}

/* May one row be to blame? A constraint, a trigger or a policy of the table refused it. The server
 * has said so: an answer of a wrong shape has no code. */
static bool blames_row(const struct batch *b, int result)
{
    const rowlock_error *error = &b->t->db->error;
    bool by_server = error->sqlstate[0] || error->native;
    bool refused = result == ROWLOCK_ESERVER && !error->retryable && by_server;
    bool blames =
        result == ROWLOCK_VIOLATION || (b->refused && (result == ROWLOCK_EDENIED || refused));
    return blames && !error->transaction_over;
}

static bool has_changed(const struct batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->changes[b->rows[i]].result == ROWLOCK_OK)
            return true;
    return false;
}

/* The chunk is one row. After a broken constraint the others go on. Another refusal may be meant
 * for all rows, so it ends the call and names this one. */
static int blame(struct batch *b, int result)
{
    if (result == ROWLOCK_VIOLATION)
        return ROWLOCK_OK;
    if (result == ROWLOCK_ESERVER)
        b->changes[b->rows[0]].result = result;
    b->t->db->error.row = (int64_t)b->rows[0];
    return result;
}

/* Halves a chunk that was refused, until the row is found. There are three exceptions:
 *   - The chunk has changed rows.
 *   - The failure has ended the transaction.
 *   - The batch is all or nothing. run_batch() then runs it again with careful set. */
static int do_chunk(struct batch *b)
{
    rowlock_db *db = b->t->db;
    const size_t *rows = b->rows, n = b->n;
    b->refused = false;
    int result = b->careful ? rlk_framed(db, send_chunk, b) : send_chunk(b);
    if (result != ROWLOCK_OK)
        mark_failed(b, result, db->driver->packing != RLK_SINGLY);
    bool looks = !b->options.all_or_nothing || b->careful;
    if (result == ROWLOCK_OK || !blames_row(b, result) || !looks || has_changed(b))
        return result;
    if (n == 1)
        return blame(b, result);
    b->n = n / 2;
    result = do_chunk(b);
    b->rows = rows + n / 2;
    b->n = n - n / 2;
    if (result == ROWLOCK_OK)
        result = do_chunk(b);
    b->rows = rows;
    b->n = n;
    return result;
}

static size_t bytes_of(const struct batch *b, const rowlock_change *change)
{
    size_t bytes = 0;
    for (size_t i = 0; i < b->t->keys; i++)
        bytes += change->key[i].length;
    for (size_t i = 0; i < values_of(b); i++)
        bytes += change->values[i].length;
    return bytes;
}

size_t rlk_chunk_from(const struct batch *b, size_t at)
{
    size_t most = (size_t)b->options.chunk, n = 0, bytes = 0;
    while (n < most && at + n < b->count) {
        bytes += bytes_of(b, &b->changes[b->order[at + n]]);
        if (n > 0 && bytes > RLK_CHUNK_BYTES)
            break;
        n++;
    }
    return n;
}

static int do_chunks(void *context)
{
    struct batch *b = context;
    int result = ROWLOCK_OK;
    for (size_t at = 0; at < b->count && result == ROWLOCK_OK; at += b->n) {
        b->rows = &b->order[at];
        b->n = rlk_chunk_from(b, at);
        result = do_chunk(b);
        bool more = at + b->n < b->count;
        if (result == ROWLOCK_OK && more && b->options.progress &&
            b->options.progress(b->options.context, at + b->n, b->count) != 0)
            result = rlk_fail(b->t->db, ROWLOCK_CANCELLED, "stopped by the progress callback");
    }
    return result;
}

/* ---- all of it */

static void describe_key(const struct batch *b, const rowlock_change *change, char *out, size_t cap)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < b->t->keys && used < cap; i++) {
        const rowlock_value *k = &change->key[i];
        bool number = k->kind == ROWLOCK_INT || k->kind == ROWLOCK_BOOL;
        int written =
            k->kind == ROWLOCK_BYTES
                ? snprintf(out + used, cap - used, "%s(%zu bytes)", i ? ", " : "", k->length)
            : number ? snprintf(out + used, cap - used, "%s%" PRId64, i ? ", " : "", k->number)
                     : snprintf(out + used, cap - used, "%s'%.*s'", i ? ", " : "",
                                (int)(k->length < 60 ? k->length : 60), k->text);
        used += written > 0 ? (size_t)written : 0;
    }
}

/* Names the row, and quotes the database. */
static int say_violation(const struct batch *b, const char *key)
{
    rowlock_error *error = &b->t->db->error;
    rlk_fail(b->t->db, ROWLOCK_VIOLATION, "row %s: %s", key, b->violation.text);
    error->native = b->violation.native;
    memcpy(error->sqlstate, b->violation.sqlstate, sizeof error->sqlstate);
    error->constraint = b->violation.constraint;
    return ROWLOCK_VIOLATION;
}

/* Writes the error text of a row that was not changed. */
static int say(const struct batch *b, const rowlock_change *change)
{
    char key[200];
    describe_key(b, change, key, sizeof key);
    switch (change->result) {
    case ROWLOCK_GONE:
        return rlk_fail(b->t->db, ROWLOCK_GONE, "there is no row %s", key);
    case ROWLOCK_EXISTS:
        return rlk_fail(b->t->db, ROWLOCK_EXISTS, "row %s exists already, with version %" PRId64,
                        key, change->current);
    case ROWLOCK_STALE:
        return rlk_fail(b->t->db, ROWLOCK_STALE, "row %s has version %" PRId64 ", not %" PRId64,
                        key, change->current, change->version);
    case ROWLOCK_VIOLATION:
        return say_violation(b, key);
    case ROWLOCK_ESERVER:
        return rlk_fail(
            b->t->db, ROWLOCK_ESERVER,
            b->op == RLK_EXPECT
                ? "row %s matches, but a policy of the table does not allow locking it"
                : "row %s matches, but a trigger or policy of the table discarded the change",
            key);
    default:
        return rlk_fail(
            b->t->db, change->result,
            "the answer was lost; row %s has changed: our change or another one was written", key);
    }
}

/* Reports the first row that was not changed. */
static int say_first(const struct batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        const rowlock_change *change = &b->changes[i];
        if (change->result == ROWLOCK_OK || change->result == ROWLOCK_UNDONE)
            continue;
        int result = say(b, change);
        b->t->db->error.row = (int64_t)i;
        return result;
    }
    return ROWLOCK_OK;
}

static int do_all(void *context)
{
    struct batch *b = context;
    int result = do_chunks(b);
    return result == ROWLOCK_OK ? say_first(b) : result;
}

static bool has_texts(const rowlock_table *t, const rowlock_change *change)
{
    for (size_t i = 0; i < t->keys; i++)
        if (change->key[i].kind == ROWLOCK_TEXT)
            return true;
    return false;
}

static void read_current(struct batch *b, rowlock_change *change)
{
    struct rlk_page page = {0};
    rowlock_error error = b->t->db->error;
    int result = rlk_read_row(b->t, change->key, RLK_LOCK_NONE, &page);
    change->current = result == ROWLOCK_OK ? page.versions[0] : 0;
    rlk_page_clear(&page);
    b->t->db->error = error;
}

/* Two texts may be the same key by the table's collation. The second change then found the version
 * that the first one wrote, which is undone now. written: the lowest and the highest of these. */
static void read_undone(struct batch *b, const int64_t written[2])
{
    for (size_t i = 0; i < b->count; i++) {
        rowlock_change *change = &b->changes[i];
        bool told = change->result == ROWLOCK_STALE || change->result == ROWLOCK_EXISTS;
        if (told && change->current >= written[0] && change->current <= written[1] &&
            has_texts(b->t, change))
            read_current(b, change);
    }
}

static void undo_all(struct batch *b, int result)
{
    int64_t written[2] = {INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < b->count; i++) {
        rowlock_change *change = &b->changes[i];
        if (result == ROWLOCK_EUNCERTAIN)
            *change = (rowlock_change){.key = change->key,
                                       .values = change->values,
                                       .version = change->version,
                                       .result = ROWLOCK_EUNCERTAIN};
        else if (change->result == ROWLOCK_OK ||
                 (result == ROWLOCK_VIOLATION && change->result == ROWLOCK_CANCELLED)) {
            if (change->result == ROWLOCK_OK) {
                written[0] = change->current < written[0] ? change->current : written[0];
                written[1] = change->current > written[1] ? change->current : written[1];
            }
            change->result = ROWLOCK_UNDONE;
            change->current = b->op == RLK_INSERT ? 0 : change->version;
        }
    }
    if (result != ROWLOCK_EUNCERTAIN)
        read_undone(b, written);
}

/* Chooses a first version that an earlier row with the same key has not had. */
static int64_t choose_first(const rowlock_table *t)
{
    int64_t most = rlk_version_of(t)->most;
    if (t->first_version)
        return t->first_version;
    if (most == INT64_MAX)
        return rlk_wall_us();
    return most >= INT32_MAX ? 1 + (rlk_next_number(t->db) & ((1 << 30) - 1)) : 1;
}

static int check_all(struct batch *b)
{
    int result = ROWLOCK_OK;
    for (size_t i = 0; i < b->count && result == ROWLOCK_OK; i++)
        if ((result = check_row(b, i)) != ROWLOCK_OK)
            b->t->db->error.row = (int64_t)i;
    return result == ROWLOCK_OK ? sort_rows(b) : result;
}

static int run_batch(struct batch *b)
{
    int result = check_all(b);
    if (result != ROWLOCK_OK)
        return result;
    b->first = choose_first(b->t);
    if (b->op == RLK_EXPECT || b->count == 1)
        b->options.all_or_nothing = 0;
    if (!b->options.all_or_nothing)
        return do_all(b);
    result = rlk_framed(b->t->db, do_all, b);
    bool named = b->t->db->error.row >= 0 || b->violation.row >= 0;
    /* Runs again to find the row. */
    if (!named && blames_row(b, result)) {
        b->careful = true;
        result = rlk_framed(b->t->db, do_all, b);
    }
    if (result != ROWLOCK_OK)
        undo_all(b, result);
    return result;
}

int rlk_change(rowlock_table *t, enum rlk_op op, rowlock_change *changes, size_t count,
               const rowlock_change_options *options)
{
    static const char *const verbs[] = {
        [RLK_UPDATE] = "update rows of",      [RLK_TOUCH] = "touch rows of",
        [RLK_EXPECT] = "look at versions in", [RLK_INSERT] = "insert rows into",
        [RLK_REMOVE] = "remove rows from",
    };
    struct batch b = {.t = t, .op = op, .changes = changes, .count = count, .violation.row = -1};
    int result = rlk_enter_table(t, verbs[op]);
    for (size_t i = 0; changes && i < count; i++) {
        changes[i].result = ROWLOCK_CANCELLED;
        changes[i].current = 0;
    }
    if (result != ROWLOCK_OK ||
        (result = rlk_take_change_options(&t->db->error, &b.options, options)) != ROWLOCK_OK ||
        count == 0)
        return result;
    if (!changes)
        return rlk_fail(t->db, ROWLOCK_EINVAL, "changes must not be NULL");
    bool kinds = uses_set(&b), marks = t->db->driver->tells_no_rows;
    b.order = rlk_alloc(count * sizeof *b.order);
    b.kinds = kinds ? rlk_alloc((t->parameters + 1) * sizeof *b.kinds) : NULL;
    b.marks = marks ? rlk_alloc(count) : NULL;
    if (!b.order || (kinds && !b.kinds) || (marks && !b.marks))
        result = rlk_fail(t->db, ROWLOCK_ENOMEM, "out of memory");
    else
        result = run_batch(&b);
    rlk_free(b.order);
    rlk_free(b.kinds);
    rlk_free(b.marks);
    return rlk_end_call(t->db, result);
}

/* The program was compiled with a header in which the struct has another size: copies of what both
 * know are changed in its place. */
static int apply_copies(rowlock_table *t, enum rlk_op op, char *changes, size_t count, size_t size,
                        const rowlock_change_options *options)
{
    size_t known = size < sizeof(rowlock_change) ? size : sizeof(rowlock_change);
    rowlock_change *copies = rlk_alloc(count * sizeof *copies);
    if (!copies)
        return rlk_fail(t->db, ROWLOCK_ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++)
        memcpy(&copies[i], changes + i * size, known);
    int result = rlk_change(t, op, copies, count, options);
    for (size_t i = 0; i < count; i++)
        memcpy(changes + i * size, &copies[i], known);
    rlk_free(copies);
    return result;
}

int rowlock_apply(rowlock_table *table, rowlock_op op, rowlock_change *changes, size_t count,
                  size_t change_size, const rowlock_change_options *options)
{
    static const enum rlk_op ops[] = {[ROWLOCK_UPDATE] = RLK_UPDATE,
                                      [ROWLOCK_TOUCH] = RLK_TOUCH,
                                      [ROWLOCK_EXPECT] = RLK_EXPECT,
                                      [ROWLOCK_INSERT] = RLK_INSERT,
                                      [ROWLOCK_REMOVE] = RLK_REMOVE};
    bool known = op >= ROWLOCK_UPDATE && op <= ROWLOCK_REMOVE;
    int result = known && change_size == sizeof(rowlock_change)
                     ? ROWLOCK_OK
                     : rlk_enter_table(table, "change rows of");
    if (result != ROWLOCK_OK)
        return result;
    if (!known || change_size < offsetof(rowlock_change, current) + sizeof changes->current)
        return rlk_fail(table->db, ROWLOCK_EINVAL,
                        "no such change: op and change_size are those of rowlock/versions.h");
    if (change_size == sizeof(rowlock_change) || !changes)
        return rlk_change(table, ops[op], changes, count, options);
    return apply_copies(table, ops[op], (char *)changes, count, change_size, options);
}
