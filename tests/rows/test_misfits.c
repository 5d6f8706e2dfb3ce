/* SPDX-License-Identifier: MIT
 *
 * Answers that no database means: they are not believed, and none keeps a call going for ever. Real servers
 * that answer so are in the contract tests, and servers that lie at random in tests/fuzz.
 */
#include "backend_script.h"
#include "quick.h"
#include "tap.h"

#include "public.h"

enum { TTL_MS = 10000, TOO_LONG = 60 };

static rowlock_db *db;
static rowlock_table *table;

static void begin(const char *dialect)
{
    static const char *const key[] = {"id", NULL}, *const columns[] = {"price", NULL};
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    script_reset();
    script_dialect(dialect);
    script_jump();
    db = script_open(NULL);
    about.name = "prices";
    about.key = key;
    about.columns = columns;
    if (rowlock_table_open(db, &about, &table) != ROWLOCK_OK)
        tap_ok(false, "a table is opened: %s", why(db));
}

static void end(void)
{
    rowlock_table_close(table);
    rowlock_db_close(db);
}

/* ---- grants */

static void test_tokens(void)
{
    begin("postgres");
    rowlock_lock *locks[2] = {must_lock(db, "a"), must_lock(db, "b")};
    script_next(OP_ACQUIRE, ANSWER(.token = -1));
    tap_is_int(try_lock(locks[0], TTL_MS), ROWLOCK_EUNCERTAIN, "a grant with a token below 1");
    tap_is_int(rowlock_lock_token(locks[0]), 0, "is not believed");
    script_next(OP_ACQUIRE_ALL, ANSWER(.token = -1));
    tap_is_int(rowlock_acquire_all(locks, 2, NULL, NULL), ROWLOCK_EUNCERTAIN, "one among several");
    tap_is_int(rowlock_lock_token(locks[1]), 0, "is not believed either");
    close_locks(locks[0], locks[1]);
    end();
}

static void test_long_renewal(void)
{
    begin("sqlite");
    rowlock_lock *lock = must_lock(db, "a");
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is had");
    script_next(OP_RENEW, ANSWER(.left_us = INT64_C(1) << 60));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "a renewal for longer than was asked for");
    tap_is_int(rowlock_lock_remaining_ms(lock), TTL_MS, "counts for no longer than that");
    rowlock_lock_close(lock);
    end();
}

/* ---- what would go on for ever */

/* A wait for several locks asks who is in the way. That takes the connection away each time. */
static void test_wait_ends(void)
{
    begin("postgres");
    rowlock_lock *locks[2] = {must_lock(db, "a"), must_lock(db, "b")};
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = 1000;
    script_always(OP_ACQUIRE_ALL, ANSWER(.outcome = RLK_IN_FLIGHT));
    script_always(OP_LIST, (struct script_answer){.class = RLK_UNSENT, .takes_us = 1000000});
    tap_is_int(rowlock_acquire_all(locks, 2, &options, NULL), ROWLOCK_TIMEOUT,
               "a wait ends, even if the connection is lost after each try");
    close_locks(locks[0], locks[1]);
    end();
}

static void test_sweeps_end(void)
{
    static const enum script_op ops[] = {OP_SWEEP_WAITERS, OP_FOLD};
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    int64_t removed;
    for (int i = 0; i < 2; i++) {
        begin("sqlite");
        script_always(ops[i], ANSWER(.rows = 500, .takes_us = 1000000));
        tap_is_int(rowlock_sweep(db, NULL, &report), ROWLOCK_OK, "a sweep that finds no end");
        tap_is_int(script_count(ops[i]), 3600, "ends after an hour");
        tap_is_int(report.waiters + report.counters, 500 * 3600, "and tells what it did");
        end();
    }
    begin("sqlite");
    script_always(OP_ONCE_SWEEP, ANSWER(.changed = 500, .takes_us = 1000000));
    tap_is_int(rowlock_once_sweep(db, 1, 0, &removed), ROWLOCK_OK, "one of keys");
    tap_is_int(removed, 500 * 3600, "likewise");
    end();
}

static int see_row(void *context, const rowlock_row *row, rowlock_value *values)
{
    (void)context;
    (void)row;
    (void)values;
    return 1;
}

static int walk(int chunk)
{
    rowlock_walk_options how = ROWLOCK_WALK_OPTIONS_INIT;
    how.name = "walk";
    how.each = see_row;
    how.chunk = chunk;
    return rowlock_walk(table, &how, NULL);
}

static void test_pages(void)
{
    rowlock_value row[] = {rowlock_int(1), rowlock_decimal("1"), rowlock_int(7),
                           rowlock_int(2), rowlock_decimal("1"), rowlock_int(7),
                           rowlock_int(3), rowlock_decimal("1"), rowlock_int(7)};
    begin("sqlite");
    script_always(OP_ROWS_COUNT, ANSWER(ROWS(1, rowlock_int(1))));
    script_next(OP_ROWS_PAGE, ANSWER(.cells = row, .width = 3, .rows = 3));
    tap_is_int(walk(2), ROWLOCK_ESERVER, "a page with more rows than were asked for");
    script_next(OP_ROWS_PAGE, ANSWER(.cells = row, .width = 2, .rows = 1));
    tap_is_int(walk(2), ROWLOCK_ESERVER, "one without versions");
    script_next(OP_ROWS_PAGE, ANSWER(.cells = row, .width = 3, .rows = 2));
    script_next(OP_ROWS_PAGE, ANSWER(.cells = row, .width = 3, .rows = 2));
    script_always(OP_WALK_SAVE, ANSWER(.changed = 1));
    script_always(OP_WALK_LOAD, ANSWER(.rows = 0));
    int before = script_count(OP_ROWS_PAGE);
    tap_is_int(walk(2), ROWLOCK_ESERVER, "one that ends where the one before it ended");
    tap_is_int(script_count(OP_ROWS_PAGE) - before, 2, "is not asked for again");
    script_always(OP_ROWS_COUNT, ANSWER(ROWS(1, rowlock_text("many"))));
    tap_is_int(walk(2), ROWLOCK_ESERVER, "a number of rows that is none");
    end();
}

/* ---- shapes */

static void test_checkpoints(void)
{
    static const char HEAD[] = "\"home\".\"prices\" (\"id\")\n";
    static const char *const keys_of[] = {"i", "i1", "x", "t6", "i1 ", "\n", "i1\ni"};
    begin("sqlite");
    script_always(OP_ROWS_COUNT, ANSWER(ROWS(1, rowlock_int(1))));
    for (size_t i = 0; i < sizeof keys_of / sizeof *keys_of; i++) {
        script_next(OP_WALK_LOAD,
                    ANSWER(ROWS(8, rowlock_int(1), rowlock_text(HEAD), rowlock_text(keys_of[i]),
                                rowlock_int(0), rowlock_int(0), rowlock_int(0), rowlock_int(0),
                                rowlock_int(0))));
        tap_is_int(walk(2), ROWLOCK_EINVAL, "pending keys that end too early: %zu", i);
    }
    script_next(OP_WALK_LOAD, ANSWER(ROWS(2, rowlock_int(1), rowlock_text(HEAD))));
    tap_is_int(walk(2), ROWLOCK_ESCHEMA, "a checkpoint with too few columns");
    script_next(OP_WALK_LOAD,
                ANSWER(ROWS(8, rowlock_int(1), rowlock_null(), rowlock_null(), rowlock_int(0),
                            rowlock_int(0), rowlock_int(0), rowlock_int(0), rowlock_int(0))));
    tap_is_int(walk(2), ROWLOCK_ESCHEMA, "one that is NULL");
    end();
}

static int see_record(void *context, const rowlock_once_record *record)
{
    (void)record;
    ++*(int *)context;
    return 0;
}

static void test_once(void)
{
    int seen = 0;
    rowlock_once *once;
    begin("sqlite");
    script_next(OP_ONCE_LOOK, ANSWER(ROWS(3, rowlock_int(1), rowlock_text(""), rowlock_int(0))));
    tap_is_int(rowlock_once_claim(db, "key", NULL, &once), ROWLOCK_ESCHEMA,
               "a claim that answers with too few columns");
    script_next(OP_ONCE_LOOK, ANSWER(ROWS(4, rowlock_text("1"), rowlock_text(""), rowlock_int(0),
                                          rowlock_null())));
    tap_is_int(rowlock_once_claim(db, "key", NULL, &once), ROWLOCK_ESCHEMA,
               "with a text for a number");
    script_next(OP_ONCE_LIST, ANSWER(ROWS(2, rowlock_text("key"), rowlock_text(""))));
    tap_is_int(rowlock_once_list(db, NULL, see_record, &seen), ROWLOCK_ESCHEMA,
               "a list with too few columns");
    script_next(OP_ONCE_LIST, ANSWER(ROWS(7, rowlock_text("key"), rowlock_text(""), rowlock_int(0),
                                          rowlock_int(0), rowlock_int(0), rowlock_int(INT64_MIN),
                                          rowlock_int(1))));
    tap_is_int(rowlock_once_list(db, NULL, see_record, &seen), ROWLOCK_ESCHEMA,
               "with a time that is none");
    tap_is_int(seen, 0, "nothing is told of either");
    end();
}

/* The columns are there, but no parameter's kind is; or not even those. */
static const char *const half[] = {"id", "int", NULL, NULL,  "x", "x",
                                   "x",  "x",   "x",  "1/1", "x", "x"};

static void give(struct rlk_query *query, size_t count)
{
    rowlock_value cells[12];
    for (size_t i = 0; i < count; i++)
        cells[i] = half[i] ? rowlock_text(half[i]) : rowlock_int(i == 2 ? 1 : 9);
    query->each(query->context, cells, count);
}

static void give_half(struct rlk_query *query)
{
    give(query, 12);
}

static void give_narrow(struct rlk_query *query)
{
    give(query, 2);
}

static void test_table(void)
{
    static const char *const key[] = {"id", NULL};
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    rowlock_table *other;
    begin("sqlite");
    about.name = "prices";
    about.key = key;
    script_next(OP_TABLE, ANSWER(.give = give_half));
    tap_is_int(rowlock_table_open(db, &about, &other), ROWLOCK_ESERVER,
               "a table of which not all is told");
    script_next(OP_TABLE, ANSWER(.give = give_narrow));
    tap_is_int(rowlock_table_open(db, &about, &other), ROWLOCK_ESERVER, "or with too few columns");
    end();
}

int main(void)
{
    alarm(TOO_LONG); /* a call that never ends ends here */
    test_tokens();
    test_long_renewal();
    test_wait_ends();
    test_sweeps_end();
    test_pages();
    test_checkpoints();
    test_once();
    test_table();
    return tap_done();
}
