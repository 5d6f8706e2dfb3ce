/* SPDX-License-Identifier: MIT
 *
 * Every allocation of the calls about rows and once-keys made to fail in turn: what is said of
 * each row is the truth, and what was not done goes well when it is done again. See memory.h. */
#include "fail_alloc.h"
#include "memory.h"
#include "quick.h"

enum { ROWS = 3 };

/* All calls in their order on one connection. */
struct round {
    const struct raw *raw;
    const char *url;
    void *session; /* adopted; NULL: we open our own connection */
    int nth;
    bool good;
    rowlock_db *db;
    rowlock_table *table, *adding;
    rowlock_once *once;
    bool again; /* a call that failed is made again */
    bool met; /* a row of the walk has met a conflict */
    rowlock_value keys[ROWS], values[ROWS];
    rowlock_change changes[ROWS];
    int64_t after[ROWS]; /* the version of each row when it is changed; -1: there is none */
};

static void open_db(struct round *r)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db_options options = *OPTIONS(db, .prefix = "rows_");
    int result = r->session ? r->raw->adopt(&r->db, r->session, &options, &err)
                            : rowlock_db_open(r->url, &options, &r->db, &err);
    if (result != ROWLOCK_OK)
        raw_failed("open", err.text);
}

static int open_one(struct round *r, const char *set, rowlock_table **out)
{
    static const char *const key[] = {"id", NULL}, *const columns[] = {"n", NULL};
    struct about about = *ABOUT(.name = "rows_memory", .key = key, .columns = columns, .set = set,
                                .first_version = 1);
    return open_table(r->db, &about, out);
}

#define CALL(name, result)           \
    static int name(struct round *r) \
    {                                \
        return result;               \
    }
CALL(call_open, open_one(r, NULL, &r->table))
CALL(call_open_adding, open_one(r, "n = n + ?", &r->adding))

static void prepare(struct round *r, int64_t version, int64_t after)
{
    for (int i = 0; i < ROWS && !r->again; i++) {
        r->keys[i] = rowlock_int(i + 1);
        r->values[i] = rowlock_int(7);
        r->changes[i] =
            (rowlock_change){.key = &r->keys[i], .values = &r->values[i], .version = version};
        r->after[i] = after;
    }
}

/* What is said of a row is true. An uncertain one may be as it will. */
static bool is_done(struct round *r, int row)
{
    int result = r->changes[row].result;
    bool done =
        db_int(r->raw, r->url, "SELECT coalesce(max(version), -1) FROM rows_memory WHERE id = %d",
               row + 1) == r->after[row];
    if (result == ROWLOCK_EUNCERTAIN || done == (result == ROWLOCK_OK))
        return done;
    tap_note("failure %d: row %d is said to be %s", r->nth, row + 1, rowlock_result_name(result));
    r->good = false;
    return done;
}

typedef int change_fn(rowlock_table *table, rowlock_change *changes, size_t count,
                      const rowlock_change_options *options);

/* Those that are not done yet. */
static int change(struct round *r, change_fn *call, rowlock_table *table, int first, int count,
                  const rowlock_change_options *how)
{
    rowlock_change left[ROWS];
    int rows[ROWS];
    size_t n = 0;
    for (int i = first; i < first + count; i++) {
        if (r->again && is_done(r, i))
            continue;
        rows[n] = i;
        left[n++] = r->changes[i];
    }
    int result = call(table, left, n, how);
    for (size_t i = 0; i < n; i++)
        r->changes[rows[i]] = left[i];
    return result;
}

/* One of them is stale, so that the others have to be told apart. */
static int call_mixed(struct round *r)
{
    prepare(r, 3, 4);
    r->changes[1].version = 17;
    int result = change(r, rowlock_touch, r->table, 0, ROWS, NULL);
    if (result == ROWLOCK_STALE && r->changes[1].current == 3)
        return ROWLOCK_OK;
    return result == ROWLOCK_OK ? ROWLOCK_ESERVER : result;
}

static int call_expect(struct round *r)
{
    prepare(r, 4, 4);
    r->changes[1].version = 3;
    return rowlock_expect(r->table, r->changes, ROWS, NULL);
}

static int call_read(struct round *r)
{
    rowlock_row row = ROWLOCK_ROW_INIT;
    int result = read_row(r->table, 2, 0, &row);
    return result == ROWLOCK_OK && row.version != 3 ? ROWLOCK_ESERVER : result;
}

static int count_row(void *context, size_t index, const rowlock_row *row)
{
    int *seen = context;
    *seen += row && row->version > 0 && index < 2;
    return 0;
}

static int call_read_many(struct round *r)
{
    const rowlock_value ids[] = {rowlock_int(2), rowlock_int(1)};
    int seen = 0;
    int result = rowlock_read_many(r->table, ids, 2, 0, count_row, &seen);
    return result == ROWLOCK_OK && seen != 2 ? ROWLOCK_ESERVER : result;
}

static int attempt(void *context, const rowlock_attempt *a)
{
    struct round *r = context;
    return update_row(r->adding, 1, rowlock_int(1), 4);
}

CALL(call_retry, rowlock_retry(r->db, attempt, r, NULL, NULL))

/* Another changes row 2 between its reading and its writing, once. */
static int each(void *context, const rowlock_row *row, rowlock_value *values)
{
    struct round *r = context;
    if (row->key->number == 2 && !r->met) {
        r->met = true;
        db_exec(r->raw, r->url, "UPDATE rows_memory SET version = version + 1 WHERE id = 2");
    }
    values[0].number++;
    return 0;
}

static int call_walk(struct round *r)
{
    rowlock_walk_report report = ROWLOCK_WALK_REPORT_INIT;
    struct walking how =
        *WALK(.name = "memory", .each = each, .context = r, .chunk = 2, .ttl_ms = 60000);
    if (r->again) /* a walk without memory may have left its lock */
        db_exec(r->raw, r->url, "DELETE FROM rows_locks");
    int result = r->session ? ROWLOCK_OK : walk_table(r->table, &how, &report);
    bool whole = r->session || report.written == ROWS;
    return result == ROWLOCK_OK && !whole ? ROWLOCK_ESERVER : result;
}

static int call_remove(struct round *r)
{
    prepare(r, r->session ? 5 : 6, -1);
    if (!r->again) {
        r->changes[1].version -= r->met ? 1 : 2;
        r->changes[2].version -= 1;
    }
    return change(r, rowlock_remove, r->table, 0, ROWS, NULL);
}

CALL(call_claim, rowlock_once_claim(r->db, "memory", OPTIONS(once, .ttl_ms = 60000), &r->once))
CALL(call_complete, rowlock_once_complete(r->once, r->db, "stored", 6))

static int call_claim_done(struct round *r)
{
    rowlock_once_close(r->once);
    int result = rowlock_once_claim(r->db, "memory", NULL, &r->once);
    return result == ROWLOCK_DONE ? ROWLOCK_OK : result == ROWLOCK_OK ? ROWLOCK_ESERVER : result;
}

CALL(call_sweep, rowlock_once_sweep(r->db, 0, 0, NULL))

/* A step is a call, or a change of count rows from first on: from one version to another. */
static const struct step {
    const char *what;
    int (*call)(struct round *r);
    change_fn *change;
    int from, to, first, count;
    bool adds, all;
} steps[] = {
    {"open a table", .call = call_open},
    {"open a table with a set", .call = call_open_adding},
    {"insert", .change = rowlock_insert, .from = 0, .to = 1, .count = ROWS},
    {"update", .change = rowlock_update, .from = 1, .to = 2, .count = ROWS},
    {"update with a set", .change = rowlock_update, .from = 2, .to = 3, .count = 1, .adds = true},
    {"update all or nothing", .change = rowlock_update, .from = 2, .to = 3, .first = 1,
     .count = ROWS - 1, .adds = true, .all = true},
    {"touch, one of them stale", .call = call_mixed},
    {"expect", .call = call_expect},
    {"read", .call = call_read},
    {"read many", .call = call_read_many},
    {"retry", .call = call_retry},
    {"walk", .call = call_walk},
    {"remove", .call = call_remove},
    {"claim once", .call = call_claim},
    {"complete once", .call = call_complete},
    {"claim what is done", .call = call_claim_done},
    {"sweep what is done", .call = call_sweep},
};

static int call(struct round *r, const struct step *s, bool again)
{
    r->again = again;
    if (s->call)
        return s->call(r);
    prepare(r, s->from, s->to);
    return change(r, s->change, s->adds ? r->adding : r->table, s->first, s->count,
                  OPTIONS(change, .all_or_nothing = s->all));
}

static void take_step(struct round *r, const struct step *s)
{
    int first = call(r, s, false);
    int second = first == ROWLOCK_OK ? ROWLOCK_OK : call(r, s, true);
    bool clean = first == ROWLOCK_OK || first == ROWLOCK_ENOMEM || first == ROWLOCK_EUNCERTAIN;
    if (clean && second == ROWLOCK_OK)
        return;
    tap_note("failure %d: %s gives %s, and then %s: %s", r->nth, s->what,
             rowlock_result_name(first), rowlock_result_name(second), why(r->db));
    r->good = false;
}

static bool run_round(const struct raw *raw, const char *url, int nth, bool adopted)
{
    struct round r = {.raw = raw, .url = url, .nth = nth, .good = true};
    db_exec(raw, url, "DELETE FROM rows_memory");
    if (adopted)
        r.session = raw->open(url);
    fail_alloc_at(0);
    open_db(&r);
    fail_alloc_at(nth);
    for (size_t at = 0; at < COUNT(steps) && r.good; at++)
        take_step(&r, &steps[at]);
    rowlock_once_close(r.once);
    rowlock_table_close(r.adding);
    rowlock_table_close(r.table);
    rowlock_db_close(r.db);
    if (adopted)
        raw->close(r.session);
    db_exec(raw, url, "DELETE FROM rows_once");
    db_exec(raw, url, "DELETE FROM rows_walks");
    return r.good;
}

void starve_rows(const struct raw *raw, const char *url, bool adopted)
{
    OWNED(text) char *ours = url_with(url, "rowlock_prefix=rows_");
    fail_alloc_at(0);
    must_install(ours);
    db_exec(raw, url, "DROP TABLE IF EXISTS rows_memory");
    db_exec(raw, url,
            "CREATE TABLE rows_memory (id bigint PRIMARY KEY, n bigint, version bigint NOT NULL)");
    starve("rows", run_round, raw, url, adopted);
}
