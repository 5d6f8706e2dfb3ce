/* SPDX-License-Identifier: MIT
 *
 * Attempts that are run again: after which results, how often, how long, and what becomes of a commit
 * whose answer was lost.
 */
#include "backend_script.h"
#include "fail_alloc.h"
#include "seam/db.h"
#include "quick.h"
#include "tap.h"

#include <string.h>

enum { ATTEMPTS_MAX = 64, MINE = 117 };

static rowlock_db *db;
static rowlock_table *table;
static rowlock_retry_report report;

static void must_table(void)
{
    static const char *const key[] = {"id", NULL}, *const columns[] = {"price", NULL};
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    about.name = "prices";
    about.key = key;
    about.columns = columns;
    if (rowlock_table_open(db, &about, &table) != ROWLOCK_OK)
        tap_ok(false, "a table is opened: %s", why(db));
    script_calls();
}

static void begin(void)
{
    script_reset();
    script_jump();
    db = script_open(NULL);
    must_table();
}

static void begin_adopted(void)
{
    script_reset();
    script_jump();
    db = script_adopt();
    must_table();
}

static void end(void)
{
    rowlock_table_close(table);
    rowlock_db_close(db);
}

/* ---- attempts */

/* What each attempt says in turn, the last one again and again; and what it was told. */
static struct {
    int says[ATTEMPTS_MAX];
    int count;
    int32_t numbers[ATTEMPTS_MAX], locks[ATTEMPTS_MAX];
    int64_t at_us[ATTEMPTS_MAX];
    int made;
} plan;

static void says(int first, int second, int third)
{
    memset(&plan, 0, sizeof plan);
    plan.says[0] = first;
    plan.says[1] = second;
    plan.says[2] = third;
    plan.count = 3;
}

static int attempt(void *context, const rowlock_attempt *a)
{
    (void)context;
    int n = plan.made < plan.count ? plan.made : plan.count - 1;
    if (plan.made < ATTEMPTS_MAX) {
        plan.numbers[plan.made] = a->number;
        plan.locks[plan.made] = a->lock;
        plan.at_us[plan.made] = rlk_now_us();
        plan.made++;
    }
    return plan.says[n];
}

static int run_with(int (*call)(void *context, const rowlock_attempt *a),
                    const rowlock_retry_options *options)
{
    report = (rowlock_retry_report)ROWLOCK_RETRY_REPORT_INIT;
    script_calls();
    return rowlock_retry(db, call, NULL, options, &report);
}

static int run(void)
{
    return run_with(attempt, NULL);
}

static rowlock_retry_options options_of(int32_t attempts)
{
    rowlock_retry_options options = ROWLOCK_RETRY_OPTIONS_INIT;
    options.attempts = attempts;
    return options;
}

/* ---- which results */

static void test_results(void)
{
    static const int again[] = {ROWLOCK_STALE, ROWLOCK_CONFLICT, ROWLOCK_BUSY, ROWLOCK_EXISTS,
                                ROWLOCK_GONE};
    static const int final[] = {ROWLOCK_EUNCERTAIN,
                                ROWLOCK_ECONN, /* of something else: db's own connection stands */
                                ROWLOCK_EINVAL,
                                ROWLOCK_ESERVER,
                                ROWLOCK_LOST,
                                ROWLOCK_CANCELLED,
                                ROWLOCK_EMISUSE,
                                ROWLOCK_NONE,
                                100,
                                MINE,
                                -100};
    begin();
    says(ROWLOCK_OK, 0, 0);
    tap_is_int(run(), ROWLOCK_OK, "an attempt that goes well");
    tap_is_str(script_calls(), "begin commit", "is committed");
    tap_is_int(report.attempts, 1, "one attempt is reported");
    tap_is_int(report.conflicts, 0, "without a conflict");
    tap_is_int(report.lost_us, 0, "and no time lost");
    for (size_t i = 0; i < sizeof again / sizeof again[0]; i++) {
        says(again[i], ROWLOCK_OK, 0);
        tap_is_int(run(), ROWLOCK_OK, "%s is tried again", rowlock_result_name(again[i]));
        tap_is_str(script_calls(), "begin rollback begin commit", "in another transaction");
        tap_is_int(report.attempts, 2, "two attempts are reported");
        tap_is_int(report.conflicts, 1, "and one conflict");
        tap_ok(report.lost_us > 0, "which cost time");
    }
    for (size_t i = 0; i < sizeof final / sizeof final[0]; i++) {
        says(final[i], ROWLOCK_OK, 0);
        tap_is_int(run(), final[i], "%d ends it", final[i]);
        tap_is_str(script_calls(), "begin rollback", "rolled back");
    }
    end();
}

static void test_gone(void)
{
    begin();
    says(ROWLOCK_GONE, ROWLOCK_GONE, ROWLOCK_OK);
    tap_is_int(run(), ROWLOCK_GONE, "GONE twice running is the result");
    tap_is_int(report.attempts, 2, "after two attempts");
    says(ROWLOCK_GONE, ROWLOCK_STALE, ROWLOCK_GONE);
    rowlock_retry_options four = options_of(4);
    tap_is_int(run_with(attempt, &four), ROWLOCK_GONE, "GONE between others is tried again");
    tap_is_int(report.attempts, 4, "until it comes twice");
    end();
}

/* ---- how often, how long */

static void test_attempts(void)
{
    begin();
    says(ROWLOCK_STALE, ROWLOCK_STALE, ROWLOCK_STALE);
    rowlock_retry_options five = options_of(5);
    tap_is_int(run_with(attempt, &five), ROWLOCK_STALE, "the last result when all are used up");
    tap_is_int(plan.made, 5, "as many attempts as were allowed");
    tap_is_int(report.conflicts, 5, "each a conflict");
    for (int i = 0; i < 5; i++)
        tap_is_int(plan.numbers[i], i + 1, "they are numbered");
    five.deadline_ms = 3600000;
    says(ROWLOCK_STALE, ROWLOCK_STALE, ROWLOCK_STALE);
    five.attempts = 0;
    tap_is_int(run_with(attempt, &five), ROWLOCK_STALE, "without a number");
    tap_is_int(plan.made, 20, "there are twenty");
    end();
}

static void test_pauses(void)
{
    rowlock_retry_options how = options_of(30);
    how.base_ms = 4;
    how.cap_ms = 100;
    how.lock_after = -1;
    how.deadline_ms = 3600000;
    begin();
    says(ROWLOCK_STALE, ROWLOCK_STALE, ROWLOCK_STALE);
    tap_is_int(run_with(attempt, &how), ROWLOCK_STALE, "thirty attempts");
    bool within = true, paused = false;
    int64_t longest_us = 0;
    for (int i = 1; i < plan.made; i++) {
        int64_t pause_us = plan.at_us[i] - plan.at_us[i - 1];
        int64_t most_us = i < 5 ? (int64_t)4000 << i : 100000;
        within = within && pause_us <= most_us + 2000; /* poll() counts whole milliseconds */
        paused = paused || pause_us > 0;
        longest_us = pause_us > longest_us ? pause_us : longest_us;
    }
    tap_ok(within, "no pause is longer than base * 2^n, or cap");
    tap_ok(paused && longest_us > 40000, "there are pauses, up to %lld us", (long long)longest_us);
    end();
}

static int slow_attempt(void *context, const rowlock_attempt *a)
{
    script_pass_ms(30);
    return attempt(context, a);
}

static void test_deadline(void)
{
    rowlock_retry_options how = options_of(1000);
    how.deadline_ms = 100;
    begin();
    says(ROWLOCK_CONFLICT, ROWLOCK_STALE, ROWLOCK_STALE);
    int64_t from_us = rlk_now_us();
    tap_is_int(run_with(slow_attempt, &how), ROWLOCK_STALE, "the last result at the deadline");
    tap_ok(plan.made >= 2 && plan.made <= 4, "it allowed for a few attempts: %d", plan.made);
    bool before = true;
    for (int i = 0; i < plan.made; i++)
        before = before && plan.at_us[i] - 30000 < from_us + 100000;
    tap_ok(before, "none began after it");
    tap_ok(report.lost_us >= 30000 * plan.made, "all of the time was lost");
    end();
}

static void test_lock(void)
{
    static const struct {
        int32_t lock_after;
        int first; /* attempt that locks; 0: none */
    } all[] = {{0, 3}, {1, 2}, {5, 6}, {-1, 0}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        rowlock_retry_options how = options_of(8);
        how.lock_after = all[i].lock_after;
        begin();
        says(ROWLOCK_STALE, ROWLOCK_STALE, ROWLOCK_STALE);
        tap_is_int(run_with(attempt, &how), ROWLOCK_STALE, "lock_after %d", all[i].lock_after);
        bool right = true;
        for (int n = 1; n <= plan.made; n++)
            right = right && plan.locks[n - 1] == (all[i].first && n >= all[i].first);
        tap_ok(right && plan.made == 8, "attempts lock from the %dth on", all[i].first);
        end();
    }
}

static int cancel_attempt(void *context, const rowlock_attempt *a)
{
    if (a->number == 2)
        rowlock_cancel(db);
    return attempt(context, a);
}

static void test_cancel(void)
{
    begin();
    says(ROWLOCK_STALE, ROWLOCK_STALE, ROWLOCK_STALE);
    tap_is_int(run_with(cancel_attempt, NULL), ROWLOCK_CANCELLED, "cancelled in a pause");
    tap_is_int(plan.made, 2, "no more attempts are made");
    tap_is_int(error_code(db), ROWLOCK_CANCELLED, "the handle says so too");
    says(ROWLOCK_OK, 0, 0);
    tap_is_int(run(), ROWLOCK_OK, "the next call is not cancelled");
    end();
}

/* ---- frames that fail */

static void test_failing_frames(void)
{
    begin();
    says(ROWLOCK_OK, 0, 0);
    script_next(OP_COMMIT, FAILS(RLK_CONTENTION));
    tap_is_int(run(), ROWLOCK_OK, "a commit that lost a race");
    tap_is_str(script_calls(), "begin commit begin commit", "is tried again from the beginning");
    tap_is_int(plan.made, 2, "with the attempt");
    script_next(OP_COMMIT, FAILS(RLK_UNSENT));
    tap_is_int(run(), ROWLOCK_OK, "so is one that was certainly not sent");
    tap_is_str(script_calls(), "begin commit open begin commit", "on a new connection");
    script_next(OP_COMMIT, ANSWER(.class = RLK_REFUSED, .text = "deferred"));
    tap_is_int(run(), ROWLOCK_ESERVER, "one that was refused is not");
    script_next(OP_BEGIN, FAILS(RLK_DENIED));
    tap_is_int(run(), ROWLOCK_EDENIED, "nor what cannot be begun");
    tap_is_int(report.attempts, 0, "which is no attempt");
    script_next(OP_ROLLBACK, FAILS(RLK_UNCERTAIN));
    says(MINE, 0, 0);
    tap_is_int(run(), MINE, "a rollback that fails changes no result");
    tap_is_int(db->in_tx, 0, "no transaction is open");
    says(ROWLOCK_OK, 0, 0);
    tap_is_int(run(), ROWLOCK_OK, "the next one goes well");
    end();
}

static int swallow(void *context, const rowlock_attempt *a)
{
    static const rowlock_value id = {.kind = ROWLOCK_INT, .number = 1},
                               price = {.kind = ROWLOCK_NULL};
    rowlock_change change = {.key = &id, .values = &price, .version = 7};
    (void)context;
    plan.made = a->number;
    plan.says[0] = rowlock_update(table, &change, 1, NULL);
    return ROWLOCK_OK;
}

/* The database says at the commit that there is nothing to commit. */
static void test_swallowed(void)
{
    begin();
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_CONTENTION, .text = "40001", .tx_over = true));
    script_next(OP_COMMIT, FAILS(RLK_CONTENTION));
    tap_is_int(run_with(swallow, NULL), ROWLOCK_OK, "an attempt that says OK after a CONFLICT");
    tap_is_str(script_calls(), "begin row_update commit begin row_update commit",
               "is run again when the commit turns out to be none");
    end();
    begin();
    script_next(OP_COMMIT, FAILS(RLK_NO_TX));
    tap_is_int(run_with(swallow, NULL), ROWLOCK_EMISUSE,
               "an attempt that has ended the transaction");
    tap_is_str(script_calls(), "begin row_update commit", "is not run again");
    tap_is_int(db->in_tx, 0, "no transaction is open");
    end();
    begin();
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNCERTAIN));
    tap_is_int(run_with(swallow, NULL), ROWLOCK_OK, "one that says OK after a lost connection");
    tap_is_str(script_calls(), "begin row_update open begin row_update commit",
               "is run again, since there is nothing left to commit");
    end();
}

/* ---- commits without an answer */

#define READ(version) ROWS(3, rowlock_int(1), rowlock_null(), rowlock_int(version))

static int update_row(void *context, const rowlock_attempt *a)
{
    rowlock_value id = rowlock_int(1), price = rowlock_null();
    rowlock_change change = {.key = &id, .values = &price, .version = 7};
    (void)context;
    plan.made = a->number;
    return rowlock_update(table, &change, 1, NULL);
}

static int remove_row(void *context, const rowlock_attempt *a)
{
    rowlock_value id = rowlock_int(1);
    rowlock_change change = {.key = &id, .version = 7};
    (void)context;
    plan.made = a->number;
    return rowlock_remove(table, &change, 1, NULL);
}

static int insert_row(void *context, const rowlock_attempt *a)
{
    rowlock_value id = rowlock_int(1), price = rowlock_null();
    rowlock_change change = {.key = &id, .values = &price};
    (void)context;
    plan.made = a->number;
    return rowlock_insert(table, &change, 1, NULL);
}

static int expect_row(void *context, const rowlock_attempt *a)
{
    rowlock_value id = rowlock_int(1);
    rowlock_change change = {.key = &id, .version = 7};
    (void)context;
    plan.made = a->number;
    return rowlock_expect(table, &change, 1, NULL);
}

/* The table is closed before the attempt ends. */
static int update_and_close(void *context, const rowlock_attempt *a)
{
    rowlock_table *kept = table;
    must_table();
    int result = update_row(context, a);
    rowlock_table_close(table);
    table = kept;
    return result;
}

#define WITNESSED "begin row_update commit open begin row_read rollback"

static void test_witness(void)
{
    begin();
    script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
    script_next(OP_ROW_READ, ANSWER(READ(7)));
    tap_is_int(run_with(update_row, NULL), ROWLOCK_OK,
               "a commit without an answer, and the row is as it was");
    tap_is_str(script_calls(), WITNESSED " begin row_update commit", "is tried again");
    tap_is_int(report.conflicts, 1, "and counts as a conflict");
    tap_is_int(report.attempts, 2, "of two attempts");
    tap_ok(db->witness == NULL, "nobody wants a witness any more");
    script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
    script_next(OP_ROW_READ, ANSWER(READ(8)));
    tap_is_int(run_with(update_row, NULL), ROWLOCK_EUNCERTAIN, "the row is another: ours, or not");
    tap_is_str(script_calls(), WITNESSED, "it is not tried again");
    tap_is_int(error_code(db), ROWLOCK_EUNCERTAIN, "the handle says so too");
    script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
    tap_is_int(run_with(update_row, NULL), ROWLOCK_EUNCERTAIN, "the row is not there any more");
    tap_is_str(script_calls(), "begin row_update commit open begin row_read row_read rollback",
               "it is looked for twice, and not tried again");
    end();
}

static void test_witness_unreadable(void)
{
    begin();
    script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
    script_next(OP_ROW_READ, FAILS(RLK_UNCERTAIN));
    tap_is_int(run_with(update_row, NULL), ROWLOCK_EUNCERTAIN, "the row cannot be read");
    tap_is_int(db->in_tx, 0, "no transaction is open");
    script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
    script_next(OP_ROW_READ, FAILS(RLK_CONTENTION));
    tap_is_int(run_with(update_row, NULL), ROWLOCK_EUNCERTAIN, "the row is locked all the time");
    script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    tap_is_int(run_with(update_row, NULL), ROWLOCK_EUNCERTAIN, "there is no connection");
    tap_is_int(error_code(db), ROWLOCK_EUNCERTAIN, "the commit is what is told of");
    end();
}

static void test_other_witnesses(void)
{
    begin();
    script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
    script_next(OP_ROW_READ, ANSWER(READ(7)));
    tap_is_int(run_with(remove_row, NULL), ROWLOCK_OK, "a removed row that is there is a witness");
    script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
    tap_is_int(run_with(remove_row, NULL), ROWLOCK_EUNCERTAIN, "one that is not proves nothing");
    script_calls();
    script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
    tap_is_int(run_with(insert_row, NULL), ROWLOCK_EUNCERTAIN, "an inserted row is none");
    tap_is_str(script_calls(), "begin row_insert commit", "it is not looked at");
    script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
    script_next(OP_ROW_READ, ANSWER(READ(7)));
    tap_is_int(run_with(expect_row, NULL), ROWLOCK_EUNCERTAIN, "nor is one that was only expected");
    says(ROWLOCK_OK, 0, 0);
    script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
    tap_is_int(run(), ROWLOCK_EUNCERTAIN, "nothing that was changed is no witness");
    tap_is_str(script_calls(), "open begin commit", "so it ends there");
    end();
    begin();
    script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
    script_always(OP_ROW_READ, ANSWER(READ(7)));
    tap_is_int(run_with(update_and_close, NULL), ROWLOCK_EUNCERTAIN,
               "nor is a row of a table that was closed");
    tap_is_int(plan.made, 1, "it ends there");
    end();
    begin_adopted();
    script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
    tap_is_int(run_with(update_row, NULL), ROWLOCK_EUNCERTAIN,
               "an adopted connection that is lost cannot look");
    end();
}

/* A witness is of one attempt: what an earlier one changed was rolled back. */
static int fail_then_nothing(void *context, const rowlock_attempt *a)
{
    if (a->number > 1) {
        plan.made = a->number;
        return ROWLOCK_OK;
    }
    return update_row(context, a) == ROWLOCK_OK ? ROWLOCK_STALE : ROWLOCK_ESERVER;
}

static void test_witness_of_attempt(void)
{
    begin();
    script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
    script_always(OP_ROW_READ, ANSWER(READ(7)));
    tap_is_int(run_with(fail_then_nothing, NULL), ROWLOCK_EUNCERTAIN,
               "a row changed by an earlier attempt is no witness");
    tap_is_int(plan.made, 2, "so it ends there");
    end();
}

/* ---- misuse */

static int nest(void *context, const rowlock_attempt *a)
{
    (void)context;
    (void)a;
    plan.made++;
    return rowlock_retry(db, attempt, NULL, NULL, NULL);
}

static void test_misuse(void)
{
    begin();
    says(ROWLOCK_OK, 0, 0);
    tap_is_int(run_with(nest, NULL), ROWLOCK_EMISUSE, "one inside of another");
    tap_is_str(script_calls(), "begin rollback", "begins nothing");
    tap_is_int(plan.made, 1, "and runs nothing");
    tap_is_int(run_with(NULL, NULL), ROWLOCK_EINVAL, "nothing to run");
    tap_is_int(rowlock_retry(NULL, attempt, NULL, NULL, NULL), ROWLOCK_EMISUSE, "no connection");
    rowlock_retry_options how = options_of(-1);
    tap_is_int(run_with(attempt, &how), ROWLOCK_EINVAL, "fewer attempts than none");
    tap_is_str(script_calls(), "", "nothing was sent");
    end();
    begin_adopted();
    script.inside = true;
    says(ROWLOCK_OK, 0, 0);
    tap_is_int(run(), ROWLOCK_EMISUSE, "inside of the caller's transaction");
    tap_is_int(plan.made, 0, "nothing is run");
    tap_is_int(db->in_tx, 0, "and it is not taken for ours");
    script.inside = false;
    tap_is_int(run(), ROWLOCK_OK, "outside of it");
    script_next(OP_COMMIT, FAILS(RLK_UNSENT));
    tap_is_int(run(), ROWLOCK_ECONN, "a lost connection that was adopted is not made anew");
    end();
}

static void test_no_memory(void)
{
    int nth = 1, result = ROWLOCK_ENOMEM;
    fail_alloc_at(0);
    int before = fail_alloc_live();
    for (; nth < 50 && result != ROWLOCK_OK; nth++) {
        begin();
        fail_alloc_at(nth);
        script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
        script_next(OP_ROW_READ, ANSWER(READ(7)));
        result = run_with(update_row, NULL);
        fail_alloc_at(0);
        tap_ok(result == ROWLOCK_ENOMEM || result == ROWLOCK_EUNCERTAIN || result == ROWLOCK_OK,
               "memory that runs out at piece %d gives %s", nth, rowlock_result_name(result));
        tap_ok(!db->in_tx && !script_in_tx(), "no transaction is left open");
        end();
        tap_is_int(fail_alloc_live(), before, "nothing leaks");
    }
    tap_ok(nth > 4 && nth < 50, "which were all pieces: %d", nth - 2);
}

int main(void)
{
    script_home("sqlite");
    test_results();
    test_gone();
    test_attempts();
    test_pauses();
    test_deadline();
    test_lock();
    test_cancel();
    test_failing_frames();
    test_swallowed();
    test_witness();
    test_witness_unreadable();
    test_other_witnesses();
    test_witness_of_attempt();
    test_misuse();
    test_no_memory();
    return tap_done();
}
