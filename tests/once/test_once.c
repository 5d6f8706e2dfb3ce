/* SPDX-License-Identifier: MIT
 *
 * Keys that are claimed once: what core makes of each answer, and of those that were lost.
 */
#include "backend_script.h"
#include "fail_alloc.h"
#include "quick.h"
#include "tap.h"

#include <string.h>

static rowlock_db *db;
static rowlock_once *once;

static void begin(void)
{
    script_reset();
    script_jump();
    db = script_open(NULL);
    once = NULL;
}

static void end(void)
{
    rowlock_once_close(once);
    rowlock_db_close(db);
}

/* ---- the key as it stands */

static struct {
    bool there, ours, done;
    const char *fingerprint, *result;
} row;

/* With the attempt of the claim before, or another's. */
static void give_row(struct rlk_query *query)
{
    int64_t attempt = script_query(1)->values[2].number;
    const rowlock_value cells[] = {rowlock_int(row.ours ? attempt : attempt ^ 1),
                                   rowlock_text(row.fingerprint), rowlock_bool(row.done),
                                   row.result ? rowlock_bytes(row.result, strlen(row.result))
                                              : rowlock_null()};
    if (row.there)
        query->each(query->context, cells, sizeof cells / sizeof cells[0]);
}

static int claim(void)
{
    rowlock_once_options how = ROWLOCK_ONCE_OPTIONS_INIT;
    how.fingerprint = "f1";
    how.ttl_ms = 5000;
    rowlock_once_close(once);
    script_calls();
    return rowlock_once_claim(db, "order 17", &how, &once);
}

static int claim_found(bool ours, bool done, const char *fingerprint, const char *result)
{
    row.there = true;
    row.ours = ours;
    row.done = done;
    row.fingerprint = fingerprint;
    row.result = result;
    script_always(OP_ONCE_LOOK, ANSWER(.give = give_row));
    return claim();
}

static void begin_claimed(void)
{
    begin();
    if (claim_found(true, false, "f1", NULL) != ROWLOCK_OK)
        tap_ok(false, "a key is claimed at first");
    script_calls();
}

static void result_is(const char *text)
{
    size_t length = 99;
    const char *result = rowlock_once_result(once, &length);
    tap_ok(result && length == strlen(text) && memcmp(result, text, length) == 0,
           "the result that was stored is '%s'", text);
}

/* ---- claiming */

static void test_claim(void)
{
    size_t length = 99;
    begin();
    tap_is_int(claim_found(true, false, "f1", NULL), ROWLOCK_OK, "a new key is ours");
    tap_is_str(script_calls(), "meta once_claim once_look", "by two statements");
    const struct script_query *q = script_query(1);
    tap_is_str(q->texts[0], "order 17", "the key is sent");
    tap_is_str(q->texts[1], "f1", "the fingerprint");
    tap_ok(q->values[2].number > 0, "an attempt");
    tap_is_int(q->values[4].number, 5000000, "and how long it may take");
    tap_ok(once != NULL, "there is a handle");
    tap_ok(rowlock_once_result(once, &length) == NULL && length == 0, "without a result yet");
    tap_is_int(claim_found(false, false, "f1", NULL), ROWLOCK_BUSY, "one in progress elsewhere");
    tap_ok(once == NULL, "has no handle");
    tap_is_int(claim_found(false, true, "f1", "paid"), ROWLOCK_DONE, "one that was done");
    result_is("paid");
    tap_is_int(claim_found(false, true, "f1", NULL), ROWLOCK_DONE, "done without a result");
    result_is("");
    tap_is_int(claim_found(false, true, "f2", "paid"), ROWLOCK_MISMATCH, "for something else");
    tap_ok(once == NULL, "no handle");
    tap_is_int(claim_found(false, false, "f", NULL), ROWLOCK_MISMATCH, "a shorter fingerprint");
    tap_is_int(claim_found(false, false, "f12", NULL), ROWLOCK_MISMATCH, "a longer one");
    row.there = false;
    tap_is_int(claim(), ROWLOCK_BUSY,
               "one that went away between the statements may be asked again");
    end();
}

static void test_attempts(void)
{
    begin();
    tap_is_int(claim_found(true, false, "f1", NULL), ROWLOCK_OK, "a claim");
    int64_t first = script_query(1)->values[2].number;
    tap_is_int(claim_found(true, false, "f1", NULL), ROWLOCK_OK, "another");
    tap_ok(script_query(1)->values[2].number != first, "has an attempt of its own");
    end();
}

static void test_refused(void)
{
    rowlock_once_options how = ROWLOCK_ONCE_OPTIONS_INIT;
    begin();
    script_calls();
    tap_is_int(rowlock_once_claim(db, "", NULL, &once), ROWLOCK_EINVAL, "an empty key");
    tap_is_int(rowlock_once_claim(db, NULL, NULL, &once), ROWLOCK_EINVAL, "no key");
    tap_is_int(rowlock_once_claim(db, "k", NULL, NULL), ROWLOCK_EINVAL, "nowhere to put it");
    tap_is_int(rowlock_once_claim(NULL, "k", NULL, &once), ROWLOCK_EMISUSE, "no connection");
    how.ttl_ms = -1;
    tap_is_int(rowlock_once_claim(db, "k", &how, &once), ROWLOCK_EINVAL, "less than no time");
    tap_is_str(script_calls(), "", "nothing was sent");
    tap_ok(once == NULL, "no handle");
    end();
}

/* ---- answers that were lost */

static void test_lost_claim(void)
{
    begin();
    script_next(OP_ONCE_CLAIM, FAILS(RLK_UNCERTAIN));
    tap_is_int(claim_found(true, false, "f1", NULL), ROWLOCK_OK,
               "a lost answer is asked for again");
    tap_is_str(script_calls(), "meta once_claim open meta once_claim once_look", "of the claim");
    tap_ok(script_query(1)->values[2].number == script_query(2)->values[2].number,
           "with the same attempt");
    script_next(OP_ONCE_LOOK, FAILS(RLK_UNCERTAIN));
    row.fingerprint = "f2"; /* give_row() would not find the attempt */
    tap_is_int(claim(), ROWLOCK_MISMATCH, "so is one of the look");
    tap_is_str(script_calls(), "once_claim once_look open meta once_look", "which is sent again");
    end();
    begin();
    script_next(OP_ONCE_CLAIM, FAILS(RLK_UNCERTAIN));
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    tap_is_int(claim(), ROWLOCK_EUNCERTAIN, "an answer that cannot be had again");
    tap_ok(once == NULL, "leaves no handle");
    tap_is_int(claim(), ROWLOCK_ECONN, "no connection at all");
    end();
}

/* The claim was carried out: that it was not would be a lie. */
static void test_lost_look(void)
{
    begin_claimed();
    script_next(OP_ONCE_LOOK, FAILS(RLK_UNSENT));
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    tap_is_int(claim(), ROWLOCK_EUNCERTAIN, "claimed, and then the connection is gone for good");
    tap_ok(once == NULL, "no handle");
    end();
}

static void test_cut_look(void)
{
    begin();
    script_next(OP_ONCE_LOOK, ANSWER(.class = RLK_UNCERTAIN, .give = give_row));
    tap_is_int(claim_found(false, true, "f1", "paid"), ROWLOCK_DONE,
               "a row that came, and was asked for again");
    result_is("paid");
    end();
}

/* ---- afterwards */

static void test_complete(void)
{
    begin_claimed();
    int64_t attempt = script_query(1)->values[2].number;
    script_always(OP_ONCE_COMPLETE, ANSWER(.changed = 1));
    tap_is_int(rowlock_once_complete(once, db, "paid", 4), ROWLOCK_OK, "it is completed");
    tap_is_str(script_calls(), "once_complete", "by one statement");
    tap_is_str(script_query(0)->texts[0], "paid", "with a result");
    tap_ok(script_query(0)->values[2].number == attempt, "for the attempt that claimed it");
    tap_is_int(rowlock_once_complete(once, db, NULL, 0), ROWLOCK_OK, "or without");
    tap_is_int(script_query(0)->values[0].kind, ROWLOCK_BYTES, "which is an empty one");
    script_always(OP_ONCE_COMPLETE, ANSWER(.changed = 0));
    tap_is_int(rowlock_once_complete(once, db, "paid", 4), ROWLOCK_LOST, "taken over by another");
    tap_is_int(error_code(db), ROWLOCK_LOST, "the handle says so");
    script_next(OP_ONCE_COMPLETE, FAILS(RLK_UNCERTAIN));
    script_next(OP_ONCE_COMPLETE, ANSWER(.changed = 1));
    tap_is_int(rowlock_once_complete(once, db, "paid", 4), ROWLOCK_OK,
               "a lost answer is asked for again");
    script_next(OP_ONCE_COMPLETE, FAILS(RLK_UNCERTAIN));
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    tap_is_int(rowlock_once_complete(once, db, "paid", 4), ROWLOCK_EUNCERTAIN,
               "as long as that can be");
    end();
}

static void test_complete_refused(void)
{
    static char long_result[65536];
    begin_claimed();
    tap_is_int(rowlock_once_complete(once, db, long_result, sizeof long_result), ROWLOCK_EINVAL,
               "a result that is too long");
    tap_is_int(rowlock_once_complete(once, db, NULL, 5), ROWLOCK_EINVAL, "one that is not there");
    tap_is_int(rowlock_once_complete(NULL, db, "x", 1), ROWLOCK_EMISUSE, "no key");
    tap_is_int(rowlock_once_complete(once, NULL, "x", 1), ROWLOCK_EMISUSE, "no connection");
    tap_is_str(script_calls(), "", "nothing was sent");
    script_next(OP_ONCE_COMPLETE, ANSWER(.changed = 1));
    tap_is_int(rowlock_once_complete(once, db, long_result, sizeof long_result - 1), ROWLOCK_OK,
               "the longest");
    tap_is_int(claim_found(false, true, "f1", "paid"), ROWLOCK_DONE, "what was done");
    script_calls();
    tap_is_int(rowlock_once_complete(once, db, "x", 1), ROWLOCK_EMISUSE, "is not completed again");
    tap_is_int(rowlock_once_abandon(once), ROWLOCK_EMISUSE, "nor abandoned");
    tap_is_str(script_calls(), "", "nothing was sent");
    end();
}

static void test_in_transaction(void)
{
    begin_claimed();
    rowlock_db *tx = script_adopt();
    script.inside = true;
    script_always(OP_ONCE_COMPLETE, ANSWER(.changed = 1));
    tap_is_int(rowlock_once_complete(once, tx, "x", 1), ROWLOCK_OK, "in the caller's transaction");
    tap_is_str(script_calls(), "meta once_complete", "after a look at its tables");
    script_next(OP_ONCE_COMPLETE, FAILS(RLK_CONTENTION));
    tap_is_int(rowlock_once_complete(once, tx, "x", 1), ROWLOCK_CONFLICT, "a lost race there");
    tap_is_str(script_calls(), "once_complete", "is not sent again");
    script_next(OP_ONCE_COMPLETE, FAILS(RLK_UNCERTAIN));
    tap_is_int(rowlock_once_complete(once, tx, "x", 1), ROWLOCK_ECONN, "nor a lost answer");
    tap_is_int(tx->error.transaction_over, 1, "the transaction is over");
    rowlock_db_close(tx);
    script.inside = false;
    end();
    begin_claimed();
    tx = script_adopt();
    script_next(OP_META, ANSWER(.identity = "another"));
    tap_is_int(rowlock_once_complete(once, tx, "x", 1), ROWLOCK_ESCHEMA,
               "tables of another installation do not know it");
    rowlock_db_close(tx);
    end();
}

/* Where a snapshot can hide a claim, what was not found is asked for again. */
static void test_old_snapshot(void)
{
    script_reset();
    script_jump();
    script_dialect("postgres");
    db = script_open(NULL);
    once = NULL;
    claim_found(true, false, "f1", NULL);
    script_calls();
    tap_is_int(rowlock_once_complete(once, db, "x", 1), ROWLOCK_LOST, "outside of a transaction");
    tap_is_str(script_calls(), "once_complete", "all is seen");
    rowlock_db *tx = script_adopt();
    script.inside = true;
    script_next(OP_ONCE_PROVE, FAILS(RLK_CONTENTION));
    tap_is_int(rowlock_once_complete(once, tx, "x", 1), ROWLOCK_CONFLICT, "a claim not seen yet");
    tap_is_str(script_calls(), "meta once_complete once_prove", "is proved");
    tap_is_int(rowlock_once_complete(once, tx, "x", 1), ROWLOCK_LOST, "another's that is seen");
    tap_is_str(script_calls(), "once_complete once_prove", "needs nothing more");
    script_next(OP_ONCE_PROVE, ANSWER(.changed = 1));
    script_next(OP_ONCE_ABANDON, ANSWER(.changed = 1));
    tap_is_int(rowlock_once_complete(once, tx, "x", 1), ROWLOCK_LOST, "one that is gone");
    tap_is_str(script_calls(), "once_complete once_prove once_abandon", "leaves nothing");
    script_next(OP_ONCE_PROVE, ANSWER(.changed = 1));
    script_next(OP_ONCE_ABANDON, FAILS(RLK_UNSENT));
    tap_is_int(rowlock_once_complete(once, tx, "x", 1), ROWLOCK_ECONN, "a lost connection");
    rowlock_db_close(tx);
    end();
}

static void test_closed_db(void)
{
    begin_claimed();
    rowlock_once *first = once;
    once = NULL;
    claim_found(true, false, "f1", NULL);
    rowlock_once *second = once;
    once = NULL;
    claim_found(false, true, "f1", "paid");
    rowlock_once_close(second);
    rowlock_db_close(db);
    db = script_open(NULL);
    script_calls();
    tap_is_int(rowlock_once_complete(first, db, "x", 1), ROWLOCK_EMISUSE, "its handle is closed");
    tap_is_int(error_code(db), ROWLOCK_EMISUSE, "as the other one says");
    tap_is_int(rowlock_once_abandon(first), ROWLOCK_EMISUSE, "it cannot be given back either");
    tap_is_str(script_calls(), "", "nothing was sent");
    result_is("paid");
    rowlock_once_close(first);
    end();
}

static void test_abandon(void)
{
    begin_claimed();
    int64_t attempt = script_query(1)->values[2].number;
    script_next(OP_ONCE_ABANDON, ANSWER(.changed = 1));
    tap_is_int(rowlock_once_abandon(once), ROWLOCK_OK, "it is given back");
    tap_ok(script_query(0)->values[1].number == attempt, "by the attempt that claimed it");
    tap_is_int(rowlock_once_abandon(once), ROWLOCK_OK, "what is another's by now is left alone");
    tap_is_int(rowlock_once_abandon(NULL), ROWLOCK_EMISUSE, "nothing is not given back");
    script_calls();
    end();
    tap_is_str(script_calls(), "", "closing sends nothing");
}

static void test_sweep(void)
{
    int64_t removed = -1;
    begin();
    script_next(OP_ONCE_SWEEP, ANSWER(.changed = 10));
    script_next(OP_ONCE_SWEEP, ANSWER(.changed = 10));
    script_next(OP_ONCE_SWEEP, ANSWER(.changed = 3));
    tap_is_int(rowlock_once_sweep(db, 1000, 10, &removed), ROWLOCK_OK, "old keys are swept");
    tap_is_int(removed, 23, "all of them");
    tap_is_int(script_count(OP_ONCE_SWEEP), 3, "batch by batch");
    tap_is_int(script_query(0)->values[0].number, 1000000, "that are so old");
    tap_is_int(script_query(0)->values[1].number, 10, "so many at once");
    script_next(OP_ONCE_SWEEP, ANSWER(.changed = 500));
    script_next(OP_ONCE_SWEEP, FAILS(RLK_DENIED));
    tap_is_int(rowlock_once_sweep(db, 0, 0, &removed), ROWLOCK_EDENIED, "a sweep that fails");
    tap_is_int(removed, 500, "tells what it did until then");
    tap_is_int(rowlock_once_sweep(db, 0, 0, NULL), ROWLOCK_OK, "or does not");
    script_calls();
    tap_is_int(rowlock_once_sweep(db, -1, 0, NULL), ROWLOCK_EINVAL, "an age below nought");
    tap_is_int(rowlock_once_sweep(db, 0, 10001, NULL), ROWLOCK_EINVAL, "too many at once");
    tap_is_str(script_calls(), "", "nothing was sent");
    end();
}

static int keys_listed;

static int note_key(void *context, const rowlock_once_record *record)
{
    tap_is_str(record->key, context, "a key is listed");
    keys_listed++;
    return 0;
}

static void give_key(struct rlk_query *query)
{
    const rowlock_value cells[] = {rowlock_text("a key"), rowlock_text(""), rowlock_int(0),
                                   rowlock_bool(0),       rowlock_int(0),   rowlock_int(0),
                                   rowlock_int(0)};
    query->each(query->context, cells, sizeof cells / sizeof cells[0]);
}

static void test_list_cut_off(void)
{
    begin();
    script_next(OP_ONCE_LIST, ANSWER(.class = RLK_UNCERTAIN, .give = give_key));
    script_next(OP_ONCE_LIST, ANSWER(.give = give_key));
    tap_is_int(rowlock_once_list(db, NULL, note_key, "a key"), ROWLOCK_OK, "a list is cut off");
    tap_is_int(script_count(OP_ONCE_LIST), 2, "and asked for again");
    tap_is_int(keys_listed, 1, "without telling what was told");
    script_always(OP_ONCE_LIST, FAILS(RLK_UNCERTAIN));
    tap_is_int(rowlock_once_list(db, NULL, note_key, "a key"), ROWLOCK_ECONN,
               "what only reads is never uncertain");
    tap_is_int(rowlock_once_list(db, NULL, NULL, NULL), ROWLOCK_EINVAL, "a list for nobody");
    end();
}

static void test_forget(void)
{
    begin();
    script_next(OP_ONCE_FORGET, FAILS(RLK_UNCERTAIN));
    script_next(OP_ONCE_FORGET, ANSWER(.changed = 0));
    tap_is_int(rowlock_once_forget(db, "a key"), ROWLOCK_OK,
               "a key that is gone after a lost answer is forgotten");
    script_next(OP_ONCE_FORGET, ANSWER(.changed = 0));
    tap_is_int(rowlock_once_forget(db, "a key"), ROWLOCK_NONE, "one that was not there is not");
    end();
}

static void test_no_memory(void)
{
    int nth = 1, result = ROWLOCK_ENOMEM;
    fail_alloc_at(0);
    int before = fail_alloc_live();
    for (; nth < 30 && result != ROWLOCK_DONE; nth++) {
        begin();
        fail_alloc_at(nth);
        result = claim_found(false, true, "f1", "paid");
        fail_alloc_at(0);
        if (result != ROWLOCK_DONE)
            tap_is_int(result, ROWLOCK_ENOMEM, "memory runs out at piece %d", nth);
        tap_ok((once != NULL) == (result == ROWLOCK_DONE), "a handle only if it went well");
        end();
        tap_is_int(fail_alloc_live(), before, "nothing leaks");
    }
    tap_ok(nth > 3 && nth < 30, "which were all pieces: %d", nth - 2);
}

int main(void)
{
    script_home("sqlite");
    test_claim();
    test_attempts();
    test_refused();
    test_lost_claim();
    test_lost_look();
    test_cut_look();
    test_complete();
    test_complete_refused();
    test_in_transaction();
    test_old_snapshot();
    test_closed_db();
    test_abandon();
    test_sweep();
    test_list_cut_off();
    test_forget();
    test_no_memory();
    return tap_done();
}
