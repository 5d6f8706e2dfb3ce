/* SPDX-License-Identifier: MIT
 *
 * Answers that no database means: they are not believed, and none keeps a call going for ever. Real servers
 * that answer so are in the contract tests, and servers that lie at random in tests/fuzz.
 */
#include "backend_script.h"
#include "quick.h"
#include "tap.h"

#include <rowlock/versions.h>
#include <string.h>
#include <unistd.h>

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
    begin("sqlite");
    rowlock_lock *locks[2] = {must_lock(db, "a"), must_lock(db, "b")};
    script_next(OP_ACQUIRE, ANSWER(.token = -1));
    tap_is_int(try_lock(locks[0], TTL_MS), ROWLOCK_EUNCERTAIN, "a grant with a token below 1");
    tap_is_int(rowlock_lock_token(locks[0]), 0, "is not believed");
    script_next(OP_ACQUIRE_ALL, ANSWER(.token = -1));
    tap_is_int(rowlock_acquire_all(locks, 2, NULL, NULL), ROWLOCK_EUNCERTAIN, "one among several");
    tap_is_int(rowlock_lock_token(locks[1]), 0, "is not believed either");
    rowlock_lock_close(locks[0]);
    rowlock_lock_close(locks[1]);
    end();
}

static void test_long_renewal(void)
{
    begin("sqlite");
    rowlock_lock *lock = must_lock(db, "a");
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is had");
    script_next(OP_RENEW, ANSWER(.left_us = INT64_C(1) << 60));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "a renewal for longer than was asked for");
    tap_is_int(rowlock_remaining_ms(lock), TTL_MS, "counts for no longer than that");
    rowlock_lock_close(lock);
    end();
}

/* ---- what would go on for ever */

/* Of several locks it is asked who is in the way; that takes the connection away each time. */
static void test_wait_ends(void)
{
    begin("sqlite");
    rowlock_lock *locks[2] = {must_lock(db, "a"), must_lock(db, "b")};
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = 1000;
    script_always(OP_ACQUIRE_ALL, ANSWER(.outcome = RLK_IN_FLIGHT));
    script_always(OP_LIST, (struct script_answer){.class = RLK_UNSENT, .takes_us = 1000000});
    tap_is_int(rowlock_acquire_all(locks, 2, &options, NULL), ROWLOCK_TIMEOUT,
               "a wait ends, even if the connection is lost after each try");
    rowlock_lock_close(locks[0]);
    rowlock_lock_close(locks[1]);
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

int main(void)
{
    alarm(TOO_LONG); /* a call that never ends ends here */
    test_tokens();
    test_long_renewal();
    test_wait_ends();
    test_sweeps_end();
    test_pages();
    return tap_done();
}
