/* SPDX-License-Identifier: MIT
 * Changes of one row, or of many rows in one statement. The statement changes what it can. If it
 * left out a row, a second statement finds out why. */
#include "rows/change_batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How many attempts end without an explanation before the row fails. */
enum { PARADOXES = 3 };

/* ---- what became of a row */

static void applied(const struct batch *b, rowlock_change *change, int64_t version)
{
    change->result = ROWLOCK_OK;
    change->current = b->op == RLK_REMOVE ? 0 : version;
    if (b->op != RLK_INSERT)
        rlk_witness_row(b->t, change);
}

/* The version of a changed row, if the answer does not have it. A removed row may have had the
 * highest version, so 1 is not added to it. */
static int64_t next_version(const struct batch *b, const rowlock_change *change)
{
    if (b->op == RLK_INSERT)
        return b->first;
    return b->op == RLK_REMOVE ? change->version : change->version + 1;
}

/* The second look has found the row like this. False: the row fits the change, so nothing explains
 * why the statement left it out. */
static bool explain(const struct batch *b, rowlock_change *change, bool there, int64_t version,
                    bool uncertain)
{
    bool fits = b->op == RLK_INSERT ? !there : there && version == change->version;
    change->current = there ? version : 0;
    if (b->op == RLK_INSERT)
        change->result = ROWLOCK_EXISTS;
    else
        change->result = !there ? ROWLOCK_GONE : fits ? ROWLOCK_OK : ROWLOCK_STALE;
    if (uncertain && !fits)
        change->result = ROWLOCK_EUNCERTAIN;
    return !fits;
}

static enum rlk_row_lock lock_for_look(bool inside)
{
    /* Inside a transaction a plain read may show an old snapshot. */
    return inside ? RLK_LOCK_SHARED : RLK_LOCK_NONE;
}

/* ---- one row */

static rowlock_value value_for(const struct batch *b, const struct rlk_shape *shape,
                               const rowlock_change *change, const struct rlk_param *param)
{
    switch (param->source) {
    case RLK_FROM_KEY:
        return rlk_fit(&b->t->all[param->index], &change->key[param->index]);
    case RLK_FROM_VALUE:
        return rlk_fit(rlk_value_column(b->t, shape, param->index), &change->values[param->index]);
    case RLK_FROM_FIRST:
        return rowlock_int(b->first);
    case RLK_FROM_TAG:
        return rowlock_text(b->tag);
    default:
        return rowlock_int(change->version);
    }
}

struct returned {
    bool any, misfit;
    int64_t version;
};

static int take_version(void *context, const rowlock_value *cells, size_t count)
{
    struct returned *r = context;
    r->any = true;
    r->misfit = !rlk_cells_fit("i", cells, count);
    r->version = r->misfit ? 0 : cells[0].number;
    return r->misfit;
}

static void forget_version(void *context)
{
    *(struct returned *)context = (struct returned){.any = false};
}

static int send_row(struct batch *b, const struct rlk_shape *shape, rowlock_change *change,
                    bool *was_applied, bool *uncertain)
{
    struct returned returned = {.any = false};
    struct rlk_asking asking = {.query = {.each = take_version, .context = &returned},
                                .restart = forget_version};
    if (!rlk_begin_asking(b->t, shape, &asking))
        return b->t->db->error.code;
    for (size_t i = 0; i < asking.query.count; i++)
        asking.values[i] = value_for(b, shape, change, &asking.params[i]);
    int result = rlk_ask_rows(b->t->db, &asking);
    b->refused = result != ROWLOCK_OK;
    *was_applied = returned.any || asking.query.changed > 0;
    *uncertain = *uncertain || asking.was_uncertain;
    if (result == ROWLOCK_OK && returned.misfit)
        return rlk_fail_misfit(b->t->db, true);
    if (result == ROWLOCK_OK && *was_applied)
        applied(b, change, returned.any ? returned.version : next_version(b, change));
    return result;
}

struct found {
    bool there;
    /* A policy forbids to lock it. */
    bool hidden;
    int64_t version;
};

static int look_at_row(rowlock_table *t, const rowlock_value *key, enum rlk_row_lock lock,
                       struct found *found)
{
    struct rlk_page page = {0};
    int result = rlk_read_row(t, key, lock, &page);
    found->hidden = result == ROWLOCK_ESERVER && page.rows > 0;
    found->there = result == ROWLOCK_OK || found->hidden;
    if (found->there)
        found->version = page.versions[0];
    rlk_page_clear(&page);
    return result == ROWLOCK_GONE || found->hidden ? ROWLOCK_OK : result;
}

static int look_after_row(struct batch *b, rowlock_change *change, bool uncertain, bool *explained)
{
    bool inside;
    struct found found = {.version = 0};
    int result = rlk_is_inside(b->t->db, &inside);
    enum rlk_row_lock lock = b->op == RLK_EXPECT ? RLK_LOCK_SHARED : lock_for_look(inside);
    if (result == ROWLOCK_OK && b->op == RLK_EXPECT)
        result = rlk_lock_to_read(b->t);
    if (result == ROWLOCK_OK)
        result = look_at_row(b->t, change->key, lock, &found);
    if (result == ROWLOCK_OK)
        *explained =
            explain(b, change, found.there, found.version, uncertain) || b->op == RLK_EXPECT;
    if (result == ROWLOCK_OK && b->op == RLK_EXPECT && found.hidden && change->result == ROWLOCK_OK)
        change->result = ROWLOCK_ESERVER;
    return result;
}

static struct rlk_shape shape_of(const struct batch *b, bool many)
{
    /* One row, many rows. */
    static const enum rlk_step steps[][2] = {
        [RLK_UPDATE] = {RLK_STEP_ROW_UPDATE, RLK_STEP_ROWS_UPDATE},
        [RLK_TOUCH] = {RLK_STEP_ROW_UPDATE, RLK_STEP_ROWS_UPDATE},
        [RLK_EXPECT] = {RLK_STEP_ROW_READ, RLK_STEP_ROWS_FIND},
        [RLK_INSERT] = {RLK_STEP_ROW_INSERT, RLK_STEP_ROWS_INSERT},
        [RLK_REMOVE] = {RLK_STEP_ROW_REMOVE, RLK_STEP_ROWS_REMOVE},
    };
    return (struct rlk_shape){
        .step = steps[b->op][many], .sets = gives_values(b), .kinds = b->kinds};
}

/* Another transaction may insert the same key while ours looks for it. Our insert then fails as a
 * duplicate, and the row is there. */
static bool met_duplicate(const struct batch *b, int result)
{
    const rowlock_error *error = &b->t->db->error;
    return b->op == RLK_INSERT && result == ROWLOCK_VIOLATION && !error->transaction_over &&
           error->constraint == ROWLOCK_CONSTRAINT_UNIQUE;
}

static void note_violation(struct batch *b, rowlock_change *change)
{
    rowlock_error *error = &b->t->db->error;
    change->result = ROWLOCK_VIOLATION;
    change->current = 0;
    error->row = change - b->changes;
    if (b->violation.row < 0 || error->row < b->violation.row)
        b->violation = *error;
}

static int change_row(struct batch *b, rowlock_change *change)
{
    struct rlk_shape shape = shape_of(b, false);
    bool explained = false, was_applied = false, uncertain = false;
    int result = ROWLOCK_OK;
    for (int i = 0; i < PARADOXES && !explained && result == ROWLOCK_OK; i++) {
        change->result = ROWLOCK_CANCELLED;
        if (b->op != RLK_EXPECT)
            result = send_row(b, &shape, change, &was_applied, &uncertain);
        bool duplicate = met_duplicate(b, result);
        if ((result != ROWLOCK_OK && !duplicate) || was_applied)
            return result;
        rowlock_error error = b->t->db->error;
        result = look_after_row(b, change, uncertain, &explained);
        /* The duplicate was of another unique key. Or the failed statement has aborted the
         * transaction up to a savepoint, so the second look failed. */
        if (duplicate && !explained && (result == ROWLOCK_OK || result == ROWLOCK_ESERVER)) {
            change->result = ROWLOCK_CANCELLED;
            b->t->db->error = error;
            return error.code;
        }
    }
    if (result == ROWLOCK_OK && !explained)
        /* say_first() words this error. */
        change->result = ROWLOCK_ESERVER;
    return result;
}

int rlk_change_row(struct batch *b, rowlock_change *change)
{
    int result = change_row(b, change);
    if (result == ROWLOCK_VIOLATION)
        note_violation(b, change);
    return result;
}

/* ---- many rows in one statement */

static rowlock_change *row_of(struct batch *b, int64_t number)
{
    return number >= 1 && number <= (int64_t)b->n ? &b->changes[b->rows[number - 1]] : NULL;
}

/* Number 0 is not a row. Its second cell is how many rows were inserted. */
static int take_applied(void *context, const rowlock_value *cells, size_t count)
{
    struct batch *b = context;
    bool fits = rlk_cells_fit("ii", cells, count);
    if (fits && cells[0].number == 0 && rlk_cell_fits('m', &cells[1])) {
        b->inserted = (size_t)cells[1].number;
        return 0;
    }
    rowlock_change *change = fits ? row_of(b, cells[0].number) : NULL;
    b->misfit = !change;
    if (change) {
        b->known += change->result == UNKNOWN;
        applied(b, change, cells[1].number);
    }
    return b->misfit;
}

static int send_pack(struct batch *b, const struct rlk_shape *shape, rlk_cells_fn *each,
                     struct rlk_asking *asking)
{
    rowlock_table *t = b->t;
    struct rlk_pack pack = {0};
    asking->query = (struct rlk_query){.each = each, .context = b};
    b->misfit = false;
    int result = rlk_pack_rows(&pack, t, shape, b->changes, b->rows, b->n);
    if (result == ROWLOCK_OK && !rlk_begin_asking(t, shape, asking))
        result = t->db->error.code;
    for (size_t i = 0; result == ROWLOCK_OK && i < asking->query.count; i++) {
        const struct rlk_param *param = &asking->params[i];
        asking->values[i] = param->source == RLK_FROM_PACK
                                ? rlk_packed(&pack, param->index)
                                : value_for(b, shape, &b->changes[b->rows[0]], param);
    }
    if (result == ROWLOCK_OK) {
        result = rlk_ask_rows(t->db, asking);
        b->refused = result != ROWLOCK_OK;
    }
    if (result == ROWLOCK_OK && b->misfit)
        result = rlk_fail_misfit(t->db, each == take_applied);
    rlk_pack_clear(&pack);
    return result;
}

/* The cell holds numbers of rows, each after a comma. */
static void read_marks(struct batch *b, const rowlock_value *cell)
{
    size_t number = 0;
    b->marked = b->marks && cell->kind != ROWLOCK_NULL;
    for (size_t i = 0; b->marked && i <= cell->length; i++) {
        char c = ',';
        if (i < cell->length)
            c = cell->text[i];
        if (c >= '0' && c <= '9')
            number = number <= b->n ? number * 10 + (size_t)(c - '0') : number;
        else if (number >= 1 && number <= b->n)
            b->marks[number - 1] |= MARKED;
        if (c == ',')
            number = 0;
    }
}

/* Several keys of a batch may be the same row to the database, such as 'a' and 'A'. Then the first
 * of them that is marked has changed the row. */
static bool is_marked(struct batch *b, int64_t number, bool there, int64_t version,
                      int64_t first_same)
{
    bool marked = b->marked && gives_marks(b) && b->marks[number - 1] & MARKED;
    /* A trigger may have put the old row back. */
    if (marked && there && b->op != RLK_REMOVE &&
        version == b->changes[b->rows[number - 1]].version)
        return false;
    if (!marked || !there || first_same < 1 || (size_t)first_same > b->n)
        return marked;
    bool taken = b->marks[first_same - 1] & TAKEN;
    b->marks[first_same - 1] |= TAKEN;
    return !taken;
}

static int take_found(void *context, const rowlock_value *cells, size_t count)
{
    enum { NUMBER, VERSION, MARKS, FIRST_SAME };
    struct batch *b = context;
    bool fits = rlk_cells_fit("i.Ti", cells, count);
    rowlock_change *change = fits ? row_of(b, cells[NUMBER].number) : NULL;
    b->misfit = !change;
    if (!change)
        return 1;
    bool there = cells[VERSION].kind != ROWLOCK_NULL;
    bool bad_version = there && cells[VERSION].kind != ROWLOCK_INT;
    if (cells[MARKS].kind != ROWLOCK_NULL)
        read_marks(b, &cells[MARKS]);
    if (change->result != UNKNOWN)
        return 0;
    b->bad_version = b->bad_version || bad_version;
    if (is_marked(b, cells[NUMBER].number, there && !bad_version, cells[VERSION].number,
                  cells[FIRST_SAME].number))
        applied(b, change, next_version(b, change));
    else if (bad_version)
        change->result = ROWLOCK_EINVAL;
    else if (!explain(b, change, there, cells[VERSION].number, b->uncertain) &&
             (b->op != RLK_EXPECT || b->unlocked))
        change->result = PARADOX;
    return 0;
}

static int take_marks(void *context, const rowlock_value *cells, size_t count)
{
    struct batch *b = context;
    b->misfit = !rlk_cells_fit("T", cells, count);
    if (!b->misfit)
        read_marks(b, &cells[0]);
    return b->misfit;
}

/* An insert marks the rows that it left out. */
static int ask_for_marks(struct batch *b)
{
    struct rlk_shape shape = {.step = RLK_STEP_ROWS_MARKED};
    const struct rlk_text *text = rlk_compose(b->t, &shape);
    rowlock_value tag = rowlock_text(b->tag);
    if (!text)
        return b->t->db->error.code;
    struct rlk_asking asking = {.query = {.id = text->id,
                                          .sql = text->sql,
                                          .values = &tag,
                                          .count = 1,
                                          .each = take_marks,
                                          .context = b}};
    b->misfit = false;
    int result = rlk_ask_rows(b->t->db, &asking);
    b->refused = result != ROWLOCK_OK;
    if (result == ROWLOCK_OK && b->misfit)
        result = rlk_fail_misfit(b->t->db, true);
    for (size_t i = 0; result == ROWLOCK_OK && b->marked && i < b->n; i++)
        if (!(b->marks[i] & MARKED)) {
            applied(b, &b->changes[b->rows[i]], b->first);
            b->known++;
        }
    return result;
}

static void forget_all(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        b->changes[b->rows[i]].result = UNKNOWN;
        b->changes[b->rows[i]].current = 0;
    }
    b->known = 0;
    b->marked = false;
    if (b->marks)
        memset(b->marks, 0, b->n);
}

static bool any_unknown(const struct batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->changes[b->rows[i]].result == UNKNOWN)
            return true;
    return false;
}

/* Only the session that changed the rows knows which they were. After a reconnect they are looked
 * at as after a lost answer. */
static int look_again(struct batch *b, bool inside);

static int look_after_rows(struct batch *b, bool inside)
{
    uint64_t connection = b->t->db->connections;
    struct rlk_shape shape = {.step = RLK_STEP_ROWS_FIND,
                              .lock =
                                  b->op == RLK_EXPECT ? RLK_LOCK_SHARED : lock_for_look(inside)};
    struct rlk_asking asking = {.was_uncertain = false};
    bool ask = b->unnamed && b->op == RLK_INSERT;
    int result = ask ? ask_for_marks(b) : ROWLOCK_OK;
    if (result == ROWLOCK_OK && b->known < b->n)
        result = send_pack(b, &shape, take_found, &asking);
    /* A row may have been deleted and inserted again while we waited for its lock. */
    if (result == ROWLOCK_OK && shape.lock != RLK_LOCK_NONE && any_unknown(b))
        result = send_pack(b, &shape, take_found, &asking);
    /* A policy may forbid to lock a row that can be read: see rlk_read_row(). */
    bool locked = shape.lock != RLK_LOCK_NONE;
    if (result == ROWLOCK_OK && locked && b->t->db->driver->has_policies && any_unknown(b)) {
        shape.lock = RLK_LOCK_NONE;
        b->unlocked = true;
        result = send_pack(b, &shape, take_found, &asking);
        b->unlocked = false;
    }
    if (b->unnamed && !inside && b->t->db->connections != connection)
        return look_again(b, inside);
    if (result != ROWLOCK_OK && b->unnamed && !inside)
        return rlk_fail_unknown(b->t->db);
    for (size_t i = 0; result == ROWLOCK_OK && i < b->n; i++) {
        rowlock_change *change = &b->changes[b->rows[i]];
        if (change->result == UNKNOWN && !explain(b, change, false, 0, b->uncertain))
            change->result = PARADOX;
    }
    if (result == ROWLOCK_OK && b->bad_version)
        return rlk_fail(b->t->db, ROWLOCK_EINVAL, "%s", RLK_ODD_VERSION);
    return result;
}

static int look_again(struct batch *b, bool inside)
{
    forget_all(b);
    b->unnamed = false;
    b->uncertain = true;
    int result = look_after_rows(b, inside);
    return result == ROWLOCK_OK ? result : rlk_fail_unknown(b->t->db);
}

/* Locks the rows in the order of their keys first. In the caller's transaction we cannot choose the
 * plan of the statement that changes them. */
static int lock_rows(struct batch *b)
{
    struct rlk_shape shape = {.step = RLK_STEP_ROWS_FIND, .lock = RLK_LOCK_TO_CHANGE};
    struct rlk_asking asking = {.was_uncertain = false};
    return send_pack(b, &shape, NULL, &asking);
}

static int change_leftover(void *context)
{
    struct batch *b = context;
    return rlk_change_row(b, b->leftover);
}

/* Rows without an explanation are changed alone. Either the row was changed back between the two
 * statements, or an insert of many rows left it out because of another unique key. */
static int change_leftovers(struct batch *b, bool inside)
{
    int result = ROWLOCK_OK;
    for (size_t i = 0; i < b->n && result == ROWLOCK_OK; i++) {
        b->leftover = &b->changes[b->rows[i]];
        if (b->leftover->result != PARADOX)
            continue;
        result = inside ? rlk_framed(b->t->db, change_leftover, b) : change_leftover(b);
        if (result == ROWLOCK_VIOLATION && !b->t->db->error.transaction_over)
            result = ROWLOCK_OK;
    }
    return result;
}

static void begin_chunk(struct batch *b)
{
    snprintf(b->tag, sizeof b->tag, "%016" PRIx64, (uint64_t)rlk_next_number(b->t->db));
    b->inserted = 0;
    b->unnamed = false;
    forget_all(b);
}

static void all_applied(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->changes[b->rows[i]].result == UNKNOWN)
            applied(b, &b->changes[b->rows[i]], next_version(b, &b->changes[b->rows[i]]));
    b->known = b->n;
}

/* A trigger of the table has given some new rows other keys. */
static int look_after_strangers(struct batch *b)
{
    if (b->inserted <= b->known)
        return ROWLOCK_OK;
    if (b->inserted == b->n) {
        all_applied(b);
        return ROWLOCK_OK;
    }
    return rlk_fail(
        b->t->db, ROWLOCK_EUNCERTAIN,
        "a trigger gave %zu of the new rows other keys, by which it cannot be told which "
        "of the rows they are",
        b->inserted - b->known);
}

static int apply_chunk(struct batch *b, bool inside)
{
    bool theirs = inside && b->t->db->adopted;
    bool locks = theirs && b->t->db->driver->locks_rows_first && b->op != RLK_INSERT;
    struct rlk_asking asking = {.was_uncertain = false};
    int result = locks ? lock_rows(b) : ROWLOCK_OK;
    struct rlk_shape shape = shape_of(b, true);
    if (result == ROWLOCK_OK)
        result = send_pack(b, &shape, take_applied, &asking);
    b->uncertain = asking.was_uncertain;
    bool none_known = result == ROWLOCK_OK && b->known == 0 && b->op != RLK_INSERT;
    if (none_known && asking.query.changed == (int64_t)b->n)
        all_applied(b);
    if (result == ROWLOCK_OK)
        result = look_after_strangers(b);
    bool some = asking.query.changed > 0 || b->op == RLK_INSERT;
    b->unnamed = b->known == 0 && some && b->t->db->driver->tells_no_rows;
    return result;
}

int rlk_change_chunk(struct batch *b)
{
    bool inside;
    int result = rlk_is_inside(b->t->db, &inside);
    begin_chunk(b);
    b->uncertain = b->bad_version = false;
    if (result == ROWLOCK_OK && b->op != RLK_EXPECT)
        result = apply_chunk(b, inside);
    if (result == ROWLOCK_OK && b->known < b->n)
        result = look_after_rows(b, inside);
    return result == ROWLOCK_OK ? change_leftovers(b, inside) : result;
}
