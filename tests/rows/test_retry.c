/* SPDX-License-Identifier: MIT
 *
 * Attempts that are run again: how often and how long by a clock that stands here, and what becomes of an
 * answer that fails at an exact point. After which results, and beside whom, is in retry.c. */
#include "backend_script.h"
#include "fail_alloc.h"

#include <setjmp.h>

enum { ATTEMPTS_MAX = 64, MINE = 117 };

static rowlock_db *db;
static rowlock_table *table;
static rowlock_retry_report report;

static void begin(bool adopted)
{
    script_reset();
    script_jump();
    db = adopted ? script_adopt() : script_open(NULL);
    table = must_prices(db, "price");
    script_calls();
}

static void end(void)
{
    rowlock_table_close(table);
    rowlock_db_close(db);
}

/* What attempts say in turn, the last again and again, and when. */
static struct plan {
    int says[3];
    int64_t at_us[ATTEMPTS_MAX];
    int made;
} plan;

static int attempt(void *context, const rowlock_attempt *a)
{
    int n = plan.made < 2 ? plan.made : 2;
    if (plan.made < ATTEMPTS_MAX)
        plan.at_us[plan.made++] = rlk_now_us();
    return plan.says[n];
}

static int run_with(int (*call)(void *context, const rowlock_attempt *a), void *context,
                    const rowlock_retry_options *options)
{
    report = (rowlock_retry_report)ROWLOCK_RETRY_REPORT_INIT;
    return rowlock_retry(db, call, context, options, &report);
}

static void test_attempts(void)
{
    begin(false);
    plan = (struct plan){.says = {ROWLOCK_GONE, ROWLOCK_STALE, ROWLOCK_GONE}};
    rowlock_retry_options how = *OPTIONS(retry, .attempts = 4);
    tap_is_int(run_with(attempt, NULL, &how), ROWLOCK_GONE, "GONE between others is tried again");
    tap_is_int(report.attempts, 4, "until it comes twice");
    how.deadline_ms = 3600000;
    plan = (struct plan){.says = {ROWLOCK_STALE, ROWLOCK_STALE, ROWLOCK_STALE}};
    how.attempts = 0;
    tap_is_int(run_with(attempt, NULL, &how), ROWLOCK_STALE, "without a number");
    tap_is_int(plan.made, 20, "there are twenty");
    end();
}

static void test_pauses(void)
{
    rowlock_retry_options how = *OPTIONS(retry, .attempts = 30, .base_ms = 4, .cap_ms = 100,
                                         .lock_after = -1, .deadline_ms = 3600000);
    begin(false);
    plan = (struct plan){.says = {ROWLOCK_STALE, ROWLOCK_STALE, ROWLOCK_STALE}};
    tap_is_int(run_with(attempt, NULL, &how), ROWLOCK_STALE, "thirty attempts");
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
    rowlock_retry_options how = *OPTIONS(retry, .attempts = 1000, .deadline_ms = 100);
    begin(false);
    plan = (struct plan){.says = {ROWLOCK_CONFLICT, ROWLOCK_STALE, ROWLOCK_STALE}};
    int64_t from_us = rlk_now_us();
    tap_is_int(run_with(slow_attempt, NULL, &how), ROWLOCK_STALE,
               "the last result at the deadline");
    tap_ok(plan.made >= 2 && plan.made <= 4, "it allowed for a few attempts: %d", plan.made);
    bool before = true;
    for (int i = 0; i < plan.made; i++)
        before = before && plan.at_us[i] - 30000 < from_us + 100000;
    tap_ok(before, "none began after it");
    tap_ok(report.lost_us >= 30000 * plan.made, "all of the time was lost");
    how.base_ms = how.cap_ms = 60000;
    plan = (struct plan){.says = {ROWLOCK_STALE, ROWLOCK_STALE, ROWLOCK_STALE}};
    from_us = rlk_now_us();
    tap_is_int(run_with(attempt, NULL, &how), ROWLOCK_STALE, "a pause that would be longer");
    tap_ok(rlk_now_us() - from_us <= 102000, "ends with it"); /* poll() counts whole milliseconds */
    end();
}

#define READ(version) ROWS(3, rowlock_int(1), rowlock_null(), rowlock_int(version))

#define WITNESSED "begin row_update commit open begin row_read rollback"

/* One answer fails, and perhaps what is asked for then. */
static const struct failure {
    int (*change)(rowlock_table *t, rowlock_change *changes, size_t count,
                  const rowlock_change_options *options); /* of an attempt; NULL: none */
    enum script_op op;
    enum rlk_class as;
    int64_t version; /* of the row when it is read after that; 0: it is not there */
    enum rlk_class reading; /* what reading it meets */
    bool adopted, no_connection;
    bool elsewhere; /* the commit may still come from another server */
    bool tx_over; /* by the database, so that its commit fails too */
    bool swallows; /* the attempt says OK whatever the change says */
    bool closes; /* its table, before it ends */
    bool only_first; /* the first attempt changes the row and says STALE, the others do nothing */
    int says; /* an attempt without a change */
    int want;
    const char *what, *calls; /* NULL: whatever is sent */
} failures[] = {
    {NULL, OP_COMMIT, RLK_CONTENTION, .what = "a commit that lost a race is tried again",
     .calls = "begin commit begin commit"},
    {NULL, OP_COMMIT, RLK_UNSENT, .what = "and one that was not sent, on a new connection",
     .calls = "begin commit open begin commit"},
    {NULL, OP_COMMIT, RLK_REFUSED, .want = ROWLOCK_ESERVER, .what = "one that was refused is not",
     .calls = "begin commit"},
    {NULL, OP_BEGIN, RLK_DENIED, .want = ROWLOCK_EDENIED, .what = "nor what cannot be begun",
     .calls = "begin"},
    {NULL, OP_COMMIT, RLK_UNSENT, .adopted = true, .want = ROWLOCK_ECONN,
     .what = "a lost connection that was adopted is not made anew", .calls = "begin commit"},
    {NULL, OP_ROLLBACK, RLK_UNCERTAIN, .says = MINE, .want = MINE,
     .what = "a rollback that fails changes no result"},
    {NULL, OP_ROLLBACK, RLK_REFUSED, .says = MINE, .adopted = true, .want = ROWLOCK_ESERVER,
     .what = "unless an adopted connection stays inside the transaction",
     .calls = "begin rollback"},
    {NULL, OP_ROLLBACK, RLK_UNCERTAIN, .says = ROWLOCK_CLOSED, .adopted = true,
     .want = ROWLOCK_EMISUSE, .what = "nothing is sent on a connection that the attempt has closed",
     .calls = "begin"},
    {NULL, OP_ROLLBACK, RLK_UNCERTAIN, .says = ROWLOCK_CLOSED, .want = ROWLOCK_CLOSED,
     .what = "only an adopted one can be closed", .calls = "begin rollback"},
    {rowlock_update, OP_ROW_UPDATE, RLK_CONTENTION, .swallows = true, .tx_over = true,
     .what = "an attempt that says OK after a CONFLICT is run again: the commit is none",
     .calls = "begin row_update commit begin row_update commit"},
    {rowlock_update, OP_ROW_UPDATE, RLK_UNCERTAIN, .swallows = true,
     .what = "and after a lost connection: there is nothing left to commit",
     .calls = "begin row_update open begin row_update commit"},
    {rowlock_update, OP_COMMIT, RLK_UNCERTAIN, .version = 7,
     .what = "a commit without an answer is tried again if the row is as it was",
     .calls = WITNESSED " begin row_update commit"},
    {rowlock_update, OP_COMMIT, RLK_UNCERTAIN, .version = 8, .want = ROWLOCK_EUNCERTAIN,
     .what = "but not if the row is another: ours, or not", .calls = WITNESSED},
    {rowlock_update, OP_COMMIT, RLK_UNCERTAIN, .elsewhere = true, .version = 7,
     .want = ROWLOCK_EUNCERTAIN, .what = "nor if the commit may still come from another server",
     .calls = WITNESSED},
    {rowlock_update, OP_COMMIT, RLK_UNCERTAIN, .want = ROWLOCK_EUNCERTAIN,
     .what = "nor if it is not there any more",
     .calls = "begin row_update commit open begin row_read row_read rollback"},
    {rowlock_update, OP_COMMIT, RLK_UNCERTAIN, .reading = RLK_UNCERTAIN, .want = ROWLOCK_EUNCERTAIN,
     .what = "nor if it cannot be read"},
    {rowlock_update, OP_COMMIT, RLK_UNCERTAIN, .reading = RLK_CONTENTION,
     .want = ROWLOCK_EUNCERTAIN, .what = "nor if it is locked all the time"},
    {rowlock_update, OP_COMMIT, RLK_UNCERTAIN, .no_connection = true, .want = ROWLOCK_EUNCERTAIN,
     .what = "nor if there is no connection"},
    {rowlock_update, OP_COMMIT, RLK_UNCERTAIN, .adopted = true, .want = ROWLOCK_EUNCERTAIN,
     .what = "an adopted connection that is lost cannot look"},
    {rowlock_remove, OP_COMMIT, RLK_UNCERTAIN, .version = 7,
     .what = "a removed row that is there is a witness"},
    {rowlock_remove, OP_COMMIT, RLK_UNCERTAIN, .want = ROWLOCK_EUNCERTAIN,
     .what = "one that is not proves nothing"},
    {rowlock_insert, OP_COMMIT, RLK_UNCERTAIN, .version = 7, .want = ROWLOCK_EUNCERTAIN,
     .what = "an inserted row is none, and not looked at", .calls = "begin row_insert commit"},
    {rowlock_expect, OP_COMMIT, RLK_UNCERTAIN, .version = 7, .want = ROWLOCK_EUNCERTAIN,
     .what = "nor is one that was only expected"},
    {NULL, OP_COMMIT, RLK_UNCERTAIN, .version = 7, .want = ROWLOCK_EUNCERTAIN,
     .what = "nothing that was changed is no witness", .calls = "begin commit"},
    {rowlock_update, OP_COMMIT, RLK_UNCERTAIN, .closes = true, .version = 7,
     .want = ROWLOCK_EUNCERTAIN, .what = "nor is a row of a table that was closed",
     .calls = "row_update commit"},
    {rowlock_update, OP_COMMIT, RLK_UNCERTAIN, .only_first = true, .version = 7,
     .want = ROWLOCK_EUNCERTAIN, .what = "nor a row that an earlier attempt changed",
     .calls = "begin row_update rollback begin commit"},
};

static int attempt_change(void *context, const rowlock_attempt *a)
{
    const struct failure *f = context;
    rowlock_value id = rowlock_int(1), price = rowlock_null();
    rowlock_change row = {.key = &id, .values = &price, .version = 7};
    rowlock_table *kept = table;
    if (!f->change || (f->only_first && a->number > 1))
        return f->says;
    if (f->change == rowlock_insert)
        row.version = 0;
    if (f->closes) {
        table = must_prices(db, "price");
        script_calls();
    }
    int result = f->change(table, &row, 1, NULL);
    if (f->closes)
        rowlock_table_close(table);
    table = kept;
    return f->swallows                             ? ROWLOCK_OK
           : f->only_first && result == ROWLOCK_OK ? ROWLOCK_STALE
                                                   : result;
}

static void test_failure(const struct failure *f)
{
    const struct script_answer found = ANSWER(READ(f->version), .elsewhere = f->elsewhere);
    begin(f->adopted);
    script_next(f->op, ANSWER(.class = f->as, .text = "40001", .tx_over = f->tx_over));
    if (f->tx_over)
        script_next(OP_COMMIT, FAILS(RLK_CONTENTION));
    if (f->reading)
        script_next(OP_ROW_READ, FAILS(f->reading));
    else if (f->version)
        script_next(OP_ROW_READ, found);
    if (f->no_connection)
        script_always(OP_OPEN, FAILS(RLK_UNSENT));
    tap_is_int(run_with(attempt_change, (void *)f, NULL), f->want, "%s", f->what);
    if (f->calls)
        tap_is_str(script_calls(), f->calls, "as the calls say");
    if (f->want < 0)
        tap_is_int(error_code(db), f->want, "the handle says the same");
    if (f->want == ROWLOCK_EUNCERTAIN)
        tap_is_int(db->error.retryable, 0, "what was perhaps done is not done again");
    if (f->want == ROWLOCK_OK)
        tap_is_int(report.conflicts, report.attempts - 1,
                   "each attempt but the last is a conflict");
    tap_is_int(db->tx, 0, "no transaction is open");
    tap_ok(db->witness == NULL, "no witness is wanted any more");
    end();
}

static jmp_buf outside;

static int jump_out(void *context, const rowlock_attempt *a)
{
    tap_is_int(update_row(table, 1, rowlock_null(), 7), ROWLOCK_OK, "an attempt changes a row");
    longjmp(outside, 1);
}

static int retry_in_a_frame_of_its_own(void)
{
    return setjmp(outside) == 0 ? rowlock_retry(db, jump_out, NULL, NULL, NULL) : MINE;
}

/* A caller must not do this. What the handle keeps must not be in a frame that is gone: the address
 * sanitizer would tell. */
static void test_jump(void)
{
    begin(false);
    tap_is_int(retry_in_a_frame_of_its_own(), MINE, "and is left by a jump");
    tap_ok(db->witness != NULL, "its witness belongs to the handle");
    tap_ok((char *)db->witness < (char *)__builtin_frame_address(0) - 65536 ||
               (char *)db->witness > (char *)__builtin_frame_address(0) + 65536,
           "and is not on the stack");
    end();
    tap_is_int(fail_alloc_live(), 0, "closing the handle frees it");
}

int main(void)
{
    script_home("sqlite");
    test_attempts();
    test_pauses();
    test_deadline();
    for (size_t i = 0; i < COUNT(failures); i++)
        test_failure(&failures[i]);
    fail_alloc_at(0);
    test_jump();
    return tap_done();
}
