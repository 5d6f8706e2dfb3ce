/* SPDX-License-Identifier: MIT
 *
 * What gets lost of the calls about rows and once keys; see loss.h. What is told is the truth in the
 * table. OK: done exactly once. EUNCERTAIN: once or not at all. All else: not at all. */
#include "loss.h"

enum { ROWS = 5, NEW = 7, STALE_VERSION = 9 };

enum change { UPDATES, INSERTS, REMOVES };

struct deal;

/* One call, and what must be true in the table after it. */
struct trade {
    const char *what;
    int (*call)(struct deal *d);
    void (*check)(struct deal *d);
    bool adds; /* the table has a set: n = n + ? */
    bool claims; /* a key before */
    bool goes_on; /* if it can reconnect it does what it is to do, whatever was lost */
    /* What a batch does. */
    enum change change;
    int first, count; /* rows */
    int stale; /* this one is expected to have another version; 0: none */
    bool all_or_nothing;
    int want; /* when nothing is lost */
};

/* A case: its connection through the proxy, and the table: rows 1 to 5, each with n 0 and version 1. */
struct deal {
    struct loss *l;
    const struct trade *trade;
    rowlock_db *db;
    rowlock_table *table;
    rowlock_once *once;
    rowlock_change changes[ROWS];
    rowlock_value keys[ROWS], value;
    rowlock_row row;
    rowlock_walk_report report;
    int computed; /* rows of a walk, but the one that met a conflict */
    bool meddled;
    int said;
};

static void open_its_table(struct deal *d)
{
    static const char *const key[] = {"id", NULL}, *const columns[] = {"n", NULL};
    struct about about =
        *ABOUT(.name = textf("%srows", d->l->prefix), .key = key, .columns = columns,
               .set = d->trade->adds ? "n = n + ?" : NULL, .first_version = 1);
    loss_result(d->l, d->db, open_table(d->db, &about, &d->table), ROWLOCK_OK,
                "the table is opened");
}

static long long cell(const struct loss *l, int id, const char *column)
{
    return loss_int(l, "SELECT coalesce(max(%s), -1) FROM %srows WHERE id = %d", column, l->prefix,
                    id);
}

static void check_truth(const struct loss *l, int result, bool done, bool undone, int id)
{
    loss_ok(l, done || undone, "row %d: once or not at all", id);
    if (result == ROWLOCK_OK)
        loss_ok(l, done, "row %d: it is done", id);
    else if (result != ROWLOCK_EUNCERTAIN)
        loss_ok(l, undone, "row %d: %s, so nothing is done", id, rowlock_result_name(result));
}

static void check_row(const struct loss *l, enum change what, const rowlock_change *change)
{
    int id = (int)change->key->number;
    long long n = cell(l, id, "n"), version = cell(l, id, "version");
    bool as_before = n == 0 && version == 1;
    bool done = what == UPDATES   ? n == 1 && version == 2
                : what == INSERTS ? n == NEW && version == 1
                                  : version == -1;
    bool undone = as_before || (id > ROWS && version == -1);
    check_truth(l, change->result, done, undone, id);
    if (change->result == ROWLOCK_OK || change->result == ROWLOCK_STALE)
        loss_is(l, change->current, what == REMOVES && done ? 0 : version,
                "row %d: its version is told", id);
}

static int call_batch(struct deal *d)
{
    const struct trade *b = d->trade;
    rowlock_change_options how = *OPTIONS(change, .all_or_nothing = b->all_or_nothing);
    d->value = rowlock_int(b->change == UPDATES ? 1 : NEW);
    for (int i = 0; i < b->count; i++) {
        int id = b->first + i;
        d->keys[i] = rowlock_int(id);
        d->changes[i] = (rowlock_change){
            .key = &d->keys[i], .values = &d->value, .version = id == b->stale ? STALE_VERSION : 1};
    }
    return (b->change == UPDATES   ? rowlock_update
            : b->change == INSERTS ? rowlock_insert
                                   : rowlock_remove)(d->table, d->changes, (size_t)b->count, &how);
}

static void check_batch(struct deal *d)
{
    bool all = true;
    for (int i = 0; i < d->trade->count; i++) {
        check_row(d->l, d->trade->change, &d->changes[i]);
        all = all && d->changes[i].result == ROWLOCK_OK;
    }
    loss_ok(d->l, all == (d->said == ROWLOCK_OK), "OK is said of all if it is of each");
}

static int call_read(struct deal *d)
{
    return read_row(d->table, 2, 0, &d->row);
}

/* A plain read is never uncertain. */
static int note_second(void *context, size_t index, const rowlock_row *row)
{
    struct deal *d = context;
    d->row.version = index == 1 && row ? row->version : d->row.version;
    return 0;
}

static int call_read_many(struct deal *d)
{
    const rowlock_value ids[] = {rowlock_int(1), rowlock_int(2), rowlock_int(3)};
    return rowlock_read_many(d->table, ids, 3, 0, note_second, d);
}

static void check_read(struct deal *d)
{
    bool lost = d->l->fired && d->l->mode == NOT_RECONNECTING;
    loss_ok(d->l, d->said == ROWLOCK_OK || lost, "a read is answered, or says that it was not: %s",
            why(d->db));
    if (d->said == ROWLOCK_OK)
        loss_is(d->l, d->row.version, 1, "as it is");
}

static int add_one(struct deal *d, int64_t id, int lock)
{
    rowlock_row row = ROWLOCK_ROW_INIT;
    int result = read_row(d->table, id, lock, &row);
    if (result != ROWLOCK_OK)
        return result;
    return update_row(d->table, id, rowlock_int(1), row.version);
}

static int add_to_two(void *context, const rowlock_attempt *a)
{
    struct deal *d = context;
    int result = add_one(d, 2, a->lock);
    return result == ROWLOCK_OK ? add_one(d, 1, a->lock) : result;
}

static void check_both(struct deal *d)
{
    const struct loss *l = d->l;
    loss_is(l, cell(l, 1, "n"), cell(l, 2, "n"), "both rows or none");
    for (int id = 1; id <= 2; id++) {
        long long n = cell(l, id, "n"), version = cell(l, id, "version");
        check_truth(l, d->said, n == 1 && version == 2, n == 0 && version == 1, id);
    }
}

#define CALL(name, result)          \
    static int name(struct deal *d) \
    {                               \
        return result;              \
    }
CALL(call_retry, rowlock_retry(d->db, add_to_two, d, NULL, NULL))

/* Another client changes row 3 between its reading and its writing, once. */
static int add_in_walk(void *context, const rowlock_row *row, rowlock_value *values)
{
    struct deal *d = context;
    d->computed += row->key->number != 3;
    if (row->key->number == 3 && !d->meddled) {
        d->meddled = true;
        raw_run(d->l->raw, d->l->session,
                "UPDATE %srows SET n = n + 100, version = version + 1 WHERE id = 3", d->l->prefix);
    }
    values[0].number++;
    return 0;
}

CALL(call_walk,
     walk_table(d->table, WALK(.name = d->l->name, .each = add_in_walk, .context = d, .chunk = 2),
                &d->report))

/* What a walk leaves behind is its lock, if it was cut short or could not release it in time, which an operator
 * breaks here. If it was cut short there is its checkpoint too. */
static void check_walk(struct deal *d)
{
    struct loss *l = d->l;
    bool finished = loss_int(l, "SELECT count(*) FROM %swalks", l->prefix) == 0 &&
                    cell(l, ROWS, "n") == 1 && cell(l, 3, "n") == 101;
    if (l->mode == RECONNECTING)
        loss_result(l, d->db, d->said, ROWLOCK_OK, "it goes to its end");
    int broken = rowlock_break(l->others, l->name, 0, NULL);
    loss_ok(l, broken == ROWLOCK_OK || broken == ROWLOCK_NONE, "its lock is free: %s",
            why(l->others));
    if (d->said != ROWLOCK_OK && !finished)
        loss_result(l, d->db, call_walk(d), ROWLOCK_OK, "it is gone on with, to its end");
    else if (d->said == ROWLOCK_OK)
        loss_is(l, d->computed, ROWS - 1, "no row is computed again because of that");
    if (!finished || d->said == ROWLOCK_OK)
        loss_is(l, d->report.written, ROWS, "each row is counted once");
    for (int id = 1; id <= ROWS; id++) {
        loss_is(l, cell(l, id, "n"), id == 3 ? 101 : 1, "row %d is written exactly once", id);
        loss_is(l, cell(l, id, "version"), id == 3 ? 3 : 2, "row %d, by its version", id);
    }
}

CALL(claim, rowlock_once_claim(d->db, d->l->name, NULL, &d->once))

/* What another client is told that claims the key. */
static int claimed(const struct loss *l)
{
    OWNED(once) rowlock_once *other = NULL;
    return rowlock_once_claim(l->others, l->name, NULL, &other);
}

static void check_once(const struct loss *l, int said, int done, int undone)
{
    int now = claimed(l);
    loss_ok(l, now == done || now == undone, "another is told that it is done or not: %s",
            rowlock_result_name(now));
    if (said == ROWLOCK_OK)
        loss_is(l, now, done, "it is done");
    else if (said != ROWLOCK_EUNCERTAIN)
        loss_is(l, now, undone, "%s, so it is not done", rowlock_result_name(said));
}

/* The connection may have been cut just after the answer. */
static void check_claim(struct deal *d)
{
    check_once(d->l, d->said, ROWLOCK_BUSY, ROWLOCK_OK);
    if (!d->once)
        return;
    int result = rowlock_once_complete(d->once, d->db, "x", 1);
    if (result != ROWLOCK_OK && d->l->fired && d->l->mode == NOT_RECONNECTING)
        result = rowlock_once_complete(d->once, d->db, "x", 1);
    loss_result(d->l, d->db, result, ROWLOCK_OK, "the client that claimed it completes it");
}

CALL(call_complete, rowlock_once_complete(d->once, d->db, "stored", 6))

static void check_complete(struct deal *d)
{
    loss_ok(d->l, d->said != ROWLOCK_LOST, "no client has taken it over: %s", why(d->db));
    check_once(d->l, d->said, ROWLOCK_DONE, ROWLOCK_BUSY);
}

CALL(call_abandon, rowlock_once_abandon(d->once, 0, NULL, 0))

static void check_abandon(struct deal *d)
{
    check_once(d->l, d->said, ROWLOCK_OK, ROWLOCK_BUSY);
}

static int pay(void *context, const rowlock_attempt *a)
{
    struct deal *d = context;
    int result = add_to_two(d, a);
    return result == ROWLOCK_OK ? call_complete(d) : result;
}

/* Rows and key in one transaction. */
CALL(call_pay, rowlock_retry(d->db, pay, d, NULL, NULL))

static void check_paid(struct deal *d)
{
    check_both(d);
    check_complete(d);
    loss_is(d->l, claimed(d->l) == ROWLOCK_DONE, cell(d->l, 1, "n"),
            "the key says what the rows say");
}

static const struct trade trades[] = {
    {"update one", call_batch, check_batch, .adds = true, .first = 1, .count = 1},
    {"update a stale one", call_batch, check_batch, .adds = true, .first = 1, .count = 1,
     .stale = 1, .want = ROWLOCK_STALE},
    {"update many", call_batch, check_batch, .adds = true, .first = 1, .count = 4},
    {"update many of which some are stale", call_batch, check_batch, .adds = true, .first = 2,
     .count = 5, .stale = 3, .want = ROWLOCK_STALE},
    {"update all or nothing", call_batch, check_batch, .adds = true, .first = 1, .count = 4,
     .all_or_nothing = true},
    {"update nothing", call_batch, check_batch, .adds = true, .first = 1, .count = 4, .stale = 3,
     .all_or_nothing = true, .want = ROWLOCK_STALE},
    {"insert one", call_batch, check_batch, .change = INSERTS, .first = ROWS + 1, .count = 1},
    {"insert many", call_batch, check_batch, .change = INSERTS, .first = ROWS, .count = 4,
     .want = ROWLOCK_EXISTS},
    {"remove one", call_batch, check_batch, .change = REMOVES, .first = 1, .count = 1},
    {"remove many", call_batch, check_batch, .change = REMOVES, .first = 1, .count = 4, .stale = 2,
     .want = ROWLOCK_STALE},
    {"read", call_read, check_read, .goes_on = true},
    {"read many", call_read_many, check_read, .goes_on = true},
    {"retry", call_retry, check_both, .adds = true},
    {"walk", call_walk, check_walk, .want = ROWLOCK_OK},
    {"claim once", claim, check_claim, .goes_on = true},
    {"complete once", call_complete, check_complete, .claims = true, .goes_on = true},
    {"abandon once", call_abandon, check_abandon, .claims = true, .goes_on = true},
    {"retry and complete once", call_pay, check_paid, .adds = true, .claims = true},
};

enum { TRADES = COUNT(trades) };

static void make_rows(struct loss *l)
{
    loss_run(l, "DELETE FROM %srows", l->prefix);
    for (int id = 1; id <= ROWS; id++)
        loss_run(l, "INSERT INTO %srows (id, n, version) VALUES (%d, 0, 1)", l->prefix, id);
}

/* The client does nothing more, and its transaction at the server ends all the same. */
static bool is_unlocked(const struct loss *l)
{
    return loss_int(l,
                    "SELECT count(*) - (SELECT count(*) FROM %srows) FROM "
                    "(SELECT id FROM %srows FOR UPDATE SKIP LOCKED) unlocked",
                    l->prefix, l->prefix) == 0;
}

static void lose(struct loss *l)
{
    const struct trade *trade = trades;
    while (strcmp(trade->what, l->what) != 0)
        trade++;
    OWNED(db) rowlock_db *db = loss_open(l);
    struct deal d = {.l = l,
                     .trade = trade,
                     .db = db,
                     .row = ROWLOCK_ROW_INIT,
                     .report = ROWLOCK_WALK_REPORT_INIT};
    make_rows(l);
    open_its_table(&d);
    if (trade->claims)
        loss_result(l, d.db, claim(&d), ROWLOCK_OK, "the key is claimed at first");
    d.said = LOSING(l, trade->call(&d));
    loss_ok(l, EVENTUALLY(is_unlocked(l)), "no row stays locked");
    if (!l->fired || (trade->goes_on && l->mode == RECONNECTING))
        loss_result(l, d.db, d.said, trade->want, "it is done");
    trade->check(&d);
    rowlock_once_close(d.once);
    rowlock_table_close(d.table);
}

const struct operation *lost_row_operations(void)
{
    static struct operation operations[TRADES + 1];
    for (int i = 0; i < TRADES; i++)
        operations[i] = (struct operation){trades[i].what, lose, RECONNECTS | CUTS, 0};
    return operations;
}
