/* SPDX-License-Identifier: MIT
 *
 * Answers that no database means: they are not believed, and none keeps a call going for ever. Real servers
 * that answer so are in the contract tests, and servers that lie at random in tests/fuzz.
 */
#include "backend_script.h"
#include "quick.h"
#include "tap.h"

enum { TTL_MS = 10000, TOO_LONG = 60 };

static rowlock_db *db;

static void begin(const char *dialect)
{
    script_reset();
    script_dialect(dialect);
    script_jump();
    db = script_open(NULL);
}

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
    rowlock_db_close(db);
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
    rowlock_db_close(db);
}

/* Of several locks it is asked who is in the way; that takes the connection away each time. */
static void test_wait_ends(void)
{
    begin("postgres");
    rowlock_lock *locks[2] = {must_lock(db, "a"), must_lock(db, "b")};
    script_always(OP_ACQUIRE_ALL, ANSWER(.outcome = RLK_IN_FLIGHT));
    script_always(OP_LIST, (struct script_answer){.class = RLK_UNSENT, .takes_us = 1000000});
    tap_is_int(rowlock_acquire_all(locks, 2, OPTIONS(acquire, .wait_ms = 1000), NULL),
               ROWLOCK_TIMEOUT, "a wait ends, even if the connection is lost after each try");
    close_locks(locks[0], locks[1]);
    rowlock_db_close(db);
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
        rowlock_db_close(db);
    }
    begin("sqlite");
    script_always(OP_ONCE_SWEEP, ANSWER(.changed = 500, .takes_us = 1000000));
    tap_is_int(rowlock_once_sweep(db, 1, 0, &removed), ROWLOCK_OK, "one of keys");
    tap_is_int(removed, 500 * 3600, "likewise");
    rowlock_db_close(db);
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
    rowlock_db_close(db);
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
    rowlock_table *other;
    begin("sqlite");
    rowlock_table_options about = *OPTIONS(table, .name = "prices", .key = key);
    script_next(OP_TABLE, ANSWER(.give = give_half));
    tap_is_int(rowlock_table_open(db, &about, &other), ROWLOCK_ESERVER,
               "a table of which not all is told");
    script_next(OP_TABLE, ANSWER(.give = give_narrow));
    tap_is_int(rowlock_table_open(db, &about, &other), ROWLOCK_ESERVER, "or with too few columns");
    rowlock_db_close(db);
}

int main(void)
{
    alarm(TOO_LONG); /* a call that never ends ends here */
    test_tokens();
    test_long_renewal();
    test_wait_ends();
    test_sweeps_end();
    test_once();
    test_table();
    return tap_done();
}
