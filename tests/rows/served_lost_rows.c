/* SPDX-License-Identifier: MIT
 *
 * Each request of each call about rows and once-keys in turn is cut, before the server has seen it or after it
 * has carried it out: what is told is the truth in the table. OK: done exactly once; EUNCERTAIN: once or not
 * at all; all else: not at all. See loss.h.
 */
#include <rowlock/versions.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "each.h"
#include "loss.h"
#include "quick.h"
#include "tap.h"

enum { ROWS = 5, NEW = 7, WORKERS = 6, REQUESTS_MAX = 80, STALE_VERSION = 9 };

/* A case's connection through the proxy, and the table: rows 1 to 5, each with n 0 and version 1. */
struct deal {
    rowlock_db *db;
    rowlock_table *table;
    bool fired;
    int said;
};

static const char *const key[] = {"id", NULL}, *const columns[] = {"n", NULL};

static rowlock_table *open_table(struct loss *l, rowlock_db *db, const char *set)
{
    char name[60];
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    rowlock_table *table = NULL;
    snprintf(name, sizeof name, "%srows", l->prefix);
    about.name = name;
    about.key = key;
    about.columns = columns;
    about.set = set;
    about.first_version = 1;
    loss_result(l, db, rowlock_table_open(db, &about, &table), ROWLOCK_OK, "the table is opened");
    return table;
}

static struct deal begin(struct loss *l, const char *set)
{
    struct deal d = {.db = loss_open(l)};
    raw_run(l->raw, l->session, "DELETE FROM %srows", l->prefix);
    for (int id = 1; id <= ROWS; id++)
        raw_run(l->raw, l->session, "INSERT INTO %srows (id, n, version) VALUES (%d, 0, 1)",
                l->prefix, id);
    d.table = open_table(l, d.db, set);
    return d;
}

static bool end(struct deal *d)
{
    rowlock_table_close(d->table);
    rowlock_db_close(d->db);
    return d->fired;
}

/* ---- what the table says */

static long long cell(const struct loss *l, int id, const char *column)
{
    return raw_int(l->raw, l->session, "SELECT coalesce(max(%s), -1) FROM %srows WHERE id = %d",
                   column, l->prefix, id);
}

static void check_truth(const struct loss *l, int result, bool done, bool undone, int id)
{
    loss_ok(l, done || undone, "row %d: once or not at all", id);
    if (result == ROWLOCK_OK)
        loss_ok(l, done, "row %d: it is done", id);
    else if (result != ROWLOCK_EUNCERTAIN)
        loss_ok(l, undone, "row %d: %s, so nothing is done", id, rowlock_result_name(result));
}

enum change { UPDATES, INSERTS, REMOVES };

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

/* ---- changes of rows */

struct batch {
    enum change what;
    int first, count; /* rows */
    int stale; /* this one is expected to have another version; 0: none */
    bool all_or_nothing;
    int want; /* when nothing is lost */
};

static int send_batch(struct deal *d, const struct batch *b, rowlock_change *changes)
{
    rowlock_change_options how = ROWLOCK_CHANGE_OPTIONS_INIT;
    size_t count = (size_t)b->count;
    how.all_or_nothing = b->all_or_nothing;
    return b->what == UPDATES   ? rowlock_update(d->table, changes, count, &how)
           : b->what == INSERTS ? rowlock_insert(d->table, changes, count, &how)
                                : rowlock_remove(d->table, changes, count, &how);
}

static bool lose_batch(struct loss *l, const struct batch *b)
{
    struct deal d = begin(l, b->what == UPDATES ? "n = n + ?" : NULL);
    rowlock_change changes[ROWS];
    rowlock_value keys[ROWS], value = rowlock_int(b->what == UPDATES ? 1 : NEW);
    for (int i = 0; i < b->count; i++) {
        int id = b->first + i;
        keys[i] = rowlock_int(id);
        changes[i] = (rowlock_change){
            .key = &keys[i], .values = &value, .version = id == b->stale ? STALE_VERSION : 1};
    }
    loss_arm(l);
    d.said = send_batch(&d, b, changes);
    d.fired = loss_disarm(l);
    if (!d.fired)
        loss_result(l, d.db, d.said, b->want, "nothing was lost");
    bool all = true;
    for (int i = 0; i < b->count; i++) {
        check_row(l, b->what, &changes[i]);
        all = all && changes[i].result == ROWLOCK_OK;
    }
    loss_ok(l, all == (d.said == ROWLOCK_OK), "OK is said of all if it is of each");
    return end(&d);
}

#define BATCH(name, ...)                             \
    static bool name(struct loss *l)                 \
    {                                                \
        static const struct batch b = {__VA_ARGS__}; \
        return lose_batch(l, &b);                    \
    }

BATCH(lose_update, .what = UPDATES, .first = 1, .count = 1)
BATCH(lose_stale, .what = UPDATES, .first = 1, .count = 1, .stale = 1, .want = ROWLOCK_STALE)
BATCH(lose_many, .what = UPDATES, .first = 1, .count = 4)
BATCH(lose_mixed, .what = UPDATES, .first = 2, .count = 5, .stale = 3, .want = ROWLOCK_STALE)
BATCH(lose_all, .what = UPDATES, .first = 1, .count = 4, .all_or_nothing = true)
BATCH(lose_nothing, .what = UPDATES, .first = 1, .count = 4, .stale = 3, .all_or_nothing = true,
      .want = ROWLOCK_STALE)
BATCH(lose_insert, .what = INSERTS, .first = ROWS + 1, .count = 1)
BATCH(lose_inserts, .what = INSERTS, .first = ROWS, .count = 4, .want = ROWLOCK_EXISTS)
BATCH(lose_remove, .what = REMOVES, .first = 1, .count = 1)
BATCH(lose_removes, .what = REMOVES, .first = 1, .count = 4, .stale = 2, .want = ROWLOCK_STALE)

/* A plain read is never uncertain. */
static bool lose_read(struct loss *l)
{
    struct deal d = begin(l, NULL);
    rowlock_value id = rowlock_int(2);
    rowlock_row row;
    loss_arm(l);
    d.said = rowlock_read(d.table, &id, 0, &row);
    d.fired = loss_disarm(l);
    bool lost = d.fired && l->mode == NOT_RECONNECTING;
    loss_ok(l, d.said == ROWLOCK_OK || lost, "a read is answered, or says that it was not: %s",
            why(d.db));
    if (d.said == ROWLOCK_OK)
        loss_is(l, row.version, 1, "as it is");
    return end(&d);
}

/* ---- attempts */

static int add_one(struct deal *d, int64_t id, int lock)
{
    rowlock_value one = rowlock_int(id), value = rowlock_int(1);
    rowlock_row row;
    int result = rowlock_read(d->table, &one, lock, &row);
    if (result != ROWLOCK_OK)
        return result;
    rowlock_change change = {.key = &one, .values = &value, .version = row.version};
    return rowlock_update(d->table, &change, 1, NULL);
}

static int add_to_two(void *context, const rowlock_attempt *a)
{
    struct deal *d = context;
    int result = add_one(d, 2, a->lock);
    return result == ROWLOCK_OK ? add_one(d, 1, a->lock) : result;
}

static void check_both(const struct loss *l, int said)
{
    loss_is(l, cell(l, 1, "n"), cell(l, 2, "n"), "both rows or none");
    for (int id = 1; id <= 2; id++) {
        long long n = cell(l, id, "n"), version = cell(l, id, "version");
        check_truth(l, said, n == 1 && version == 2, n == 0 && version == 1, id);
    }
}

static bool lose_retry(struct loss *l)
{
    struct deal d = begin(l, "n = n + ?");
    loss_arm(l);
    d.said = rowlock_retry(d.db, add_to_two, &d, NULL, NULL);
    d.fired = loss_disarm(l);
    if (!d.fired)
        loss_result(l, d.db, d.said, ROWLOCK_OK, "nothing was lost");
    check_both(l, d.said);
    return end(&d);
}

/* ---- a walk */

struct walking {
    struct loss *l;
    bool meddled;
};

/* Somebody changes row 3 between its reading and its writing, once. */
static int add_in_walk(void *context, const rowlock_row *row, rowlock_value *values)
{
    struct walking *w = context;
    if (row->key->number == 3 && !w->meddled) {
        w->meddled = true;
        raw_run(w->l->raw, w->l->session,
                "UPDATE %srows SET n = n + 100, version = version + 1 WHERE id = 3", w->l->prefix);
    }
    values[0].number++;
    return 0;
}

static int walk(struct deal *d, struct walking *w, rowlock_walk_report *report)
{
    rowlock_walk_options how = ROWLOCK_WALK_OPTIONS_INIT;
    how.name = w->l->name;
    how.each = add_in_walk;
    how.context = w;
    how.chunk = 2;
    return rowlock_walk(d->table, &how, report);
}

/* What a walk that was cut short leaves behind is its lock, which somebody breaks here, and its checkpoint. */
static void walk_on(struct loss *l, struct deal *d, struct walking *w, rowlock_walk_report *report)
{
    int broken = rowlock_break(l->others, l->name, 0, NULL);
    loss_ok(l, broken == ROWLOCK_OK || broken == ROWLOCK_NONE, "its lock is free: %s",
            why(l->others));
    loss_result(l, d->db, walk(d, w, report), ROWLOCK_OK, "it is gone on with, to its end");
}

static bool lose_walk(struct loss *l)
{
    struct deal d = begin(l, NULL);
    struct walking w = {.l = l};
    rowlock_walk_report report = ROWLOCK_WALK_REPORT_INIT;
    loss_arm(l);
    d.said = walk(&d, &w, &report);
    d.fired = loss_disarm(l);
    if (!d.fired)
        loss_result(l, d.db, d.said, ROWLOCK_OK, "nothing was lost");
    bool finished = raw_int(l->raw, l->session, "SELECT count(*) FROM %swalks", l->prefix) == 0 &&
                    cell(l, ROWS, "n") == 1 && cell(l, 3, "n") == 101;
    if (d.said != ROWLOCK_OK && !finished)
        walk_on(l, &d, &w, &report);
    if (!finished || d.said == ROWLOCK_OK)
        loss_is(l, report.written, ROWS, "each row is counted once");
    for (int id = 1; id <= ROWS; id++) {
        loss_is(l, cell(l, id, "n"), id == 3 ? 101 : 1, "row %d is written exactly once", id);
        loss_is(l, cell(l, id, "version"), id == 3 ? 3 : 2, "row %d, by its version", id);
    }
    return end(&d);
}

/* ---- once */

/* What another one is told who claims the key. */
static int claimed(const struct loss *l)
{
    rowlock_once *other = NULL;
    int result = rowlock_once_claim(l->others, l->name, NULL, &other);
    rowlock_once_close(other);
    return result;
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
static void complete_claimed(struct loss *l, struct deal *d, rowlock_once *once)
{
    int result = rowlock_once_complete(once, d->db, "x", 1);
    if (result != ROWLOCK_OK && d->fired && l->mode == NOT_RECONNECTING)
        result = rowlock_once_complete(once, d->db, "x", 1);
    loss_result(l, d->db, result, ROWLOCK_OK, "whoever claimed it completes it");
}

static bool lose_claim(struct loss *l)
{
    struct deal d = begin(l, NULL);
    rowlock_once *once = NULL;
    loss_arm(l);
    d.said = rowlock_once_claim(d.db, l->name, NULL, &once);
    d.fired = loss_disarm(l);
    if (!d.fired)
        loss_result(l, d.db, d.said, ROWLOCK_OK, "nothing was lost");
    check_once(l, d.said, ROWLOCK_BUSY, ROWLOCK_OK);
    if (once)
        complete_claimed(l, &d, once);
    rowlock_once_close(once);
    return end(&d);
}

static rowlock_once *must_claim(struct loss *l, rowlock_db *db)
{
    rowlock_once *once = NULL;
    loss_result(l, db, rowlock_once_claim(db, l->name, NULL, &once), ROWLOCK_OK,
                "the key is claimed at first");
    return once;
}

static bool lose_complete(struct loss *l)
{
    struct deal d = begin(l, NULL);
    rowlock_once *once = must_claim(l, d.db);
    loss_arm(l);
    d.said = rowlock_once_complete(once, d.db, "stored", 6);
    d.fired = loss_disarm(l);
    if (!d.fired)
        loss_result(l, d.db, d.said, ROWLOCK_OK, "nothing was lost");
    loss_ok(l, d.said != ROWLOCK_LOST, "nobody has taken it over: %s", why(d.db));
    check_once(l, d.said, ROWLOCK_DONE, ROWLOCK_BUSY);
    rowlock_once_close(once);
    return end(&d);
}

static bool lose_abandon(struct loss *l)
{
    struct deal d = begin(l, NULL);
    rowlock_once *once = must_claim(l, d.db);
    loss_arm(l);
    d.said = rowlock_once_abandon(once);
    d.fired = loss_disarm(l);
    if (!d.fired)
        loss_result(l, d.db, d.said, ROWLOCK_OK, "nothing was lost");
    check_once(l, d.said, ROWLOCK_OK, ROWLOCK_BUSY);
    rowlock_once_close(once);
    return end(&d);
}

struct paid {
    struct deal *d;
    rowlock_once *once;
};

static int pay(void *context, const rowlock_attempt *a)
{
    struct paid *p = context;
    int result = add_to_two(p->d, a);
    return result == ROWLOCK_OK ? rowlock_once_complete(p->once, p->d->db, "paid", 4) : result;
}

/* Rows and key in one transaction. */
static bool lose_once(struct loss *l)
{
    struct deal d = begin(l, "n = n + ?");
    struct paid p = {.d = &d, .once = must_claim(l, d.db)};
    loss_arm(l);
    d.said = rowlock_retry(d.db, pay, &p, NULL, NULL);
    d.fired = loss_disarm(l);
    if (!d.fired)
        loss_result(l, d.db, d.said, ROWLOCK_OK, "nothing was lost");
    check_both(l, d.said);
    check_once(l, d.said, ROWLOCK_DONE, ROWLOCK_BUSY);
    loss_is(l, claimed(l) == ROWLOCK_DONE, cell(l, 1, "n"), "the key says what the rows say");
    rowlock_once_close(p.once);
    return end(&d);
}

static const struct operation operations[] = {
    {.what = "update one", .lose = lose_update},
    {.what = "update a stale one", .lose = lose_stale},
    {.what = "update many", .lose = lose_many},
    {.what = "update many of which some are stale", .lose = lose_mixed},
    {.what = "update all or nothing", .lose = lose_all},
    {.what = "update nothing", .lose = lose_nothing},
    {.what = "insert one", .lose = lose_insert},
    {.what = "insert many", .lose = lose_inserts},
    {.what = "remove one", .lose = lose_remove},
    {.what = "remove many", .lose = lose_removes},
    {.what = "read", .lose = lose_read},
    {.what = "retry", .lose = lose_retry},
    {.what = "walk", .lose = lose_walk},
    {.what = "claim once", .lose = lose_claim},
    {.what = "complete once", .lose = lose_complete},
    {.what = "abandon once", .lose = lose_abandon},
    {.what = "retry and complete once", .lose = lose_once},
};

/* ---- jobs: one operation, way and mode, for each request in turn */

enum { OPERATIONS = sizeof operations / sizeof operations[0], WAYS = 2, MODES = 2 };

static atomic_int next_job, cases;

static void lose_each(struct loss *l, int job)
{
    static const enum loss_way ways[WAYS] = {REQUEST_CUT, ANSWER_CUT};
    static const enum loss_mode modes[MODES] = {RECONNECTING, NOT_RECONNECTING};
    const struct operation *o = &operations[job / (WAYS * MODES)];
    l->way = ways[job % WAYS];
    l->mode = modes[job / WAYS % MODES];
    for (l->nth = 1; l->nth < REQUESTS_MAX; l->nth++) {
        snprintf(l->text, sizeof l->text, "%s, %s %d cut, %s", o->what,
                 l->way == REQUEST_CUT ? "request" : "answer", l->nth,
                 l->mode == RECONNECTING ? "reconnecting" : "not reconnecting");
        snprintf(l->name, sizeof l->name, "%s%d", l->prefix, ++l->serial);
        bool fired = o->lose(l);
        faultproxy_cut(l->proxy);
        atomic_fetch_add(&cases, 1);
        if (!fired)
            break;
    }
    loss_ok(l, l->nth > 1 && l->nth < REQUESTS_MAX, "each request in turn, %d in all", l->nth - 1);
}

static int work(void *argument)
{
    struct loss *l = argument;
    for (int job; (job = atomic_fetch_add(&next_job, 1)) < OPERATIONS * WAYS * MODES;)
        lose_each(l, job);
    return 0;
}

static bool set_up(struct loss *l, const struct raw *raw, const char *url, int number)
{
    if (!loss_set_up(l, raw, url, number))
        return false;
    raw_run(raw, l->session, "DROP TABLE IF EXISTS %srows", l->prefix);
    raw_run(raw, l->session,
            "CREATE TABLE %srows (id bigint PRIMARY KEY, n bigint, version bigint NOT NULL)",
            l->prefix);
    return true;
}

static void tear_down(struct loss *l)
{
    static const char *const tables[] = {"rows", "once", "walks"};
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
        raw_run(l->raw, l->session, "DROP TABLE %s%s", l->prefix, tables[t]);
    loss_tear_down(l);
}

static int run(const struct raw *raw, const char *url)
{
    static struct loss workers[WORKERS];
    struct helper *helpers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        if (!set_up(&workers[i], raw, url, i))
            return tap_skip_all("the server's URL has no host and port");
    int64_t began_ms = clock_ms();
    for (int i = 0; i < WORKERS; i++)
        helpers[i] = helper_start(work, &workers[i]);
    for (int i = 0; i < WORKERS; i++)
        helper_join(helpers[i]);
    tap_note("%d cases in %lld ms", cases, (long long)(clock_ms() - began_ms));
    for (int i = 0; i < WORKERS; i++)
        tear_down(&workers[i]);
    return tap_done();
}

int main(int argc, char **argv)
{
    (void)argc;
    return each_main(argv, run);
}
