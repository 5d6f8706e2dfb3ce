/* SPDX-License-Identifier: MIT
 *
 * Several locks at once: all or none, whatever happens on the way, in which line it is waited, and that
 * nothing is held that the database was not left with.
 */
#include "backend_script.h"
#include "quick.h"
#include "tap.h"

#include <stdio.h>
#include <string.h>

enum { TTL_MS = 10000, THREE = 3 };
#define HOUR_US INT64_C(3600000000)
#define NOT_TOLD ((size_t)77)

static rowlock_db *db;
static rowlock_lock *locks[THREE]; /* c, a, b: as a caller may name them */
static size_t which;

static void open_locks(void)
{
    static const char *const names[] = {"c", "a", "b"};
    for (size_t i = 0; i < THREE; i++)
        locks[i] = must_lock(db, names[i]);
    which = NOT_TOLD;
}

static void begin(void)
{
    script_reset();
    db = script_open(NULL);
    open_locks();
    script_always(OP_LIST, ANSWER(.rows = 1)); /* who is in the way */
    script_jump();
}

static void end(void)
{
    for (size_t i = 0; i < THREE; i++)
        rowlock_lock_close(locks[i]);
    rowlock_db_close(db);
}

static int get_all(int64_t wait_ms)
{
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.ttl_ms = TTL_MS;
    options.wait_ms = wait_ms;
    return rowlock_acquire_all(locks, THREE, &options, &which);
}

/* What is sorted as the nth is in the way. */
static struct script_answer held(size_t nth)
{
    return ANSWER(.outcome = RLK_HELD, .which = nth, .left_us = HOUR_US, .token = 9);
}

static int count_held(void)
{
    int count = 0;
    for (size_t i = 0; i < THREE; i++)
        count += rowlock_lock_token(locks[i]) != 0 || rowlock_remaining_ms(locks[i]) != 0 ||
                 rowlock_lock_state(locks[i]) != ROWLOCK_STATE_NONE;
    return count;
}

/* Nothing is held; and whoever asks next is answered by the database, not by a handle that thinks it holds. */
static void none_is_held(void)
{
    tap_is_int(count_held(), 0, "none of them is held");
    script_calls();
    int before = script_count(OP_ACQUIRE);
    for (size_t i = 0; i < THREE; i++)
        if (try_lock(locks[i], TTL_MS) != ROWLOCK_OK)
            tap_ok(false, "each can be acquired by itself: %s", why(db));
    tap_is_int(script_count(OP_ACQUIRE) - before, THREE, "each is asked for anew");
}

/* ---- granted */

static void test_granted(void)
{
    begin();
    tap_is_int(get_all(0), ROWLOCK_OK, "three free locks");
    tap_is_str(script_calls(), "meta acquire_all", "are had in one step");
    tap_is_str(script.names, "a b c", "in the order of their names");
    tap_ok(rowlock_lock_token(locks[1]) == 1 && rowlock_lock_token(locks[2]) == 2 &&
               rowlock_lock_token(locks[0]) == 3,
           "each has its own token");
    for (size_t i = 0; i < THREE; i++)
        tap_is_int(rowlock_remaining_ms(locks[i]), TTL_MS, "and its own lease");
    tap_is_int(try_lock(locks[0], TTL_MS), ROWLOCK_OK, "one of them is entered again");
    tap_is_int(rowlock_release(locks[0]) | rowlock_release(locks[0]), ROWLOCK_OK, "and released");
    tap_is_int(rowlock_renew(locks[1], 0), ROWLOCK_OK, "another is renewed");
    tap_is_str(script_calls(), "release renew", "each by itself");
    rowlock_lock_close(locks[0]);
    locks[0] = NULL;
    rowlock_db_close(db);
    tap_is_str(script_calls(), "release release", "what is held is released at the end");
    for (size_t i = 1; i < THREE; i++)
        rowlock_lock_close(locks[i]);
}

static void test_one(void)
{
    begin();
    tap_is_int(rowlock_acquire_all(locks, 1, NULL, NULL), ROWLOCK_OK, "a single lock");
    tap_is_str(script_calls(), "meta acquire", "is acquired as such");
    end();
}

static void test_kinds(void)
{
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    begin();
    options.permits = ROWLOCK_SHARED;
    tap_is_int(rowlock_acquire_all(locks, THREE, &options, NULL), ROWLOCK_OK, "shared ones");
    tap_is_int(rowlock_renew(locks[2], 0), ROWLOCK_OK, "of which one is renewed");
    tap_is_int(script.held.slot, rowlock_lock_token(locks[2]), "stand where shared ones do");
    end();
}

/* ---- busy */

static void test_busy(void)
{
    rowlock_grant holder = ROWLOCK_GRANT_INIT;
    begin();
    script_next(OP_ACQUIRE_ALL, held(1));
    tap_is_int(get_all(0), ROWLOCK_BUSY, "one of them is held");
    tap_is_int((int)which, 2, "which is the caller's third");
    tap_is_int(rowlock_lock_holder(locks[2], &holder), ROWLOCK_OK, "whose holder can be named");
    tap_is_int(rowlock_lock_holder(locks[0], &holder), ROWLOCK_NONE, "others' cannot");
    tap_is_int(error_code(db), 0, "which is no error");
    tap_is_int(script_count(OP_ENQUEUE), 0, "who does not wait takes no ticket");
    none_is_held();
    end();
}

static void test_mismatch(void)
{
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.permits = 3;
    begin();
    script_next(OP_ACQUIRE_ALL, ANSWER(.outcome = RLK_HELD, .which = 2));
    script_next(OP_LIST, ANSWER(.rows = 1, .permits = 4));
    tap_is_int(rowlock_acquire_all(locks, THREE, &options, &which), ROWLOCK_MISMATCH,
               "one is held with another number of permits");
    tap_is_int((int)which, 0, "which is the caller's first");
    none_is_held();
    end();
}

static void test_wrong_ones(void)
{
    rowlock_lock *two[2];
    begin();
    rowlock_lock *twin = must_lock(db, "b");
    rowlock_db *elsewhere = script_open(NULL);
    rowlock_lock *foreign = must_lock(elsewhere, "foreign");
    rowlock_lock *attached = must_attach(db, "weekly", "me", 5);
    script_calls();
    two[0] = locks[2];
    two[1] = twin;
    tap_is_int(rowlock_acquire_all(two, 2, NULL, NULL), ROWLOCK_EINVAL, "one name twice");
    two[1] = locks[2];
    tap_is_int(rowlock_acquire_all(two, 2, NULL, NULL), ROWLOCK_EINVAL, "one handle twice");
    two[1] = foreign;
    tap_is_int(rowlock_acquire_all(two, 2, NULL, NULL), ROWLOCK_EMISUSE, "another db's lock");
    two[1] = attached;
    tap_is_int(rowlock_acquire_all(two, 2, NULL, NULL), ROWLOCK_EMISUSE, "one attached elsewhere");
    two[1] = NULL;
    tap_is_int(rowlock_acquire_all(two, 2, NULL, NULL), ROWLOCK_EMISUSE, "no lock");
    tap_is_int(rowlock_acquire_all(NULL, 2, NULL, NULL), ROWLOCK_EMISUSE, "no locks");
    tap_is_int(rowlock_acquire_all(two, 0, NULL, NULL), ROWLOCK_EMISUSE, "none");
    static rowlock_lock *crowd[1001];
    for (size_t i = 0; i < 1001; i++)
        crowd[i] = locks[0];
    tap_is_int(rowlock_acquire_all(crowd, 1001, NULL, NULL), ROWLOCK_EINVAL, "too many");
    tap_is_str(script_calls(), "", "are not asked for");
    rowlock_lock *there = must_attach(elsewhere, "weekly", "me", 5);
    rowlock_db_close(elsewhere);
    two[1] = foreign;
    tap_is_int(rowlock_acquire_all(two, 2, NULL, NULL), ROWLOCK_EMISUSE, "one of a closed db");
    two[1] = there;
    tap_is_int(rowlock_acquire_all(two, 2, NULL, NULL), ROWLOCK_EMISUSE, "an attached one of it");
    two[1] = locks[0];
    two[0] = foreign;
    tap_is_int(rowlock_acquire_all(two, 2, NULL, NULL), ROWLOCK_EMISUSE, "wherever it stands");
    tap_is_int(try_lock(locks[0], TTL_MS), ROWLOCK_OK, "one is held");
    script_calls();
    tap_is_int(get_all(0), ROWLOCK_EMISUSE, "what is held already is not had once more");
    tap_is_int((int)which, 0, "and told which");
    tap_is_str(script_calls(), "", "without asking");
    close_locks(there, foreign, attached, twin);
    end();
}

/* ---- in line */

static void test_moving(void)
{
    begin();
    script_next(OP_ACQUIRE_ALL, held(1));
    script_next(OP_ACQUIRE_ALL, held(1));
    script_next(OP_ACQUIRE_ALL, held(2));
    script_next(OP_ACQUIRE_ALL, held(2));
    script_next(OP_ACQUIRE_ALL, ANSWER(.class = RLK_DONE));
    tap_is_int(get_all(ROWLOCK_FOREVER), ROWLOCK_OK, "first one is held, and then another");
    tap_is_str(
        script_calls(),
        "meta acquire_all list enqueue acquire_all list await acquire_all list leave enqueue "
        "acquire_all list await acquire_all",
        "we move from one line to the other, look again, and wait there");
    tap_is_str(script.line, "c", "for that one");
    tap_is_int(rowlock_lock_token(locks[1]) > 0, true, "until all are ours");
    end();
}

static void test_moving_at_once(void)
{
    begin();
    script_next(OP_ACQUIRE_ALL, held(0));
    script_next(OP_ACQUIRE_ALL, held(1));
    script_next(OP_ACQUIRE_ALL, held(0));
    script_next(OP_ACQUIRE_ALL, held(0));
    script_next(OP_ACQUIRE_ALL, ANSWER(.class = RLK_DONE));
    tap_is_int(get_all(ROWLOCK_FOREVER), ROWLOCK_OK, "found otherwise at each look");
    tap_is_str(
        script_calls(),
        "meta acquire_all list enqueue acquire_all list leave enqueue acquire_all list leave "
        "enqueue acquire_all list await acquire_all",
        "we stand in one line at a time");
    end();
}

static void test_timeout(void)
{
    rowlock_grant holder = ROWLOCK_GRANT_INIT;
    begin();
    script_always(OP_ACQUIRE_ALL, held(1));
    tap_is_int(get_all(3000), ROWLOCK_TIMEOUT, "one that stays held");
    tap_is_int((int)which, 2, "is told");
    tap_is_int(rowlock_lock_holder(locks[2], &holder), ROWLOCK_OK, "with its holder");
    tap_is_int(script_count(OP_LEAVE), 1, "no ticket stays");
    tap_is_str(script.line, "b", "in its line");
    none_is_held();
    end();
}

static void test_cancelled(void)
{
    begin();
    script_always(OP_ACQUIRE_ALL, held(2));
    rowlock_cancel(db);
    tap_is_int(get_all(ROWLOCK_FOREVER), ROWLOCK_CANCELLED, "cancelled");
    tap_is_int(script_count(OP_LEAVE), 1, "no ticket stays");
    none_is_held();
    end();
}

/* A lost race says nothing of which lock is missing: our place in line is kept. */
static void test_races_in_line(void)
{
    begin();
    script_next(OP_ACQUIRE_ALL, held(2));
    script_next(OP_ACQUIRE_ALL, held(2));
    script_next(OP_ACQUIRE_ALL,
                ANSWER(.class = RLK_CONTENTION, .text = "deadlock", .takes_us = 2000000));
    script_next(OP_ACQUIRE_ALL, ANSWER(.class = RLK_DONE));
    tap_is_int(get_all(ROWLOCK_FOREVER), ROWLOCK_OK, "a look that only loses races");
    tap_is_int(script_count(OP_LEAVE), 0, "does not cost us our place: %s", script_calls());
    end();
}

/* ---- lost answers */

static void test_lost_answer(void)
{
    begin();
    script_next(OP_ACQUIRE_ALL, FAILS(RLK_UNCERTAIN));
    tap_is_int(get_all(0), ROWLOCK_OK, "a lost answer is asked for again");
    tap_is_str(script_calls(), "meta acquire_all open meta acquire_all renew renew renew",
               "and each grant found is renewed");
    tap_is_int(script.attempts[0] == script.attempts[1], true, "it is the same attempt");
    end();
    begin();
    script_next(OP_ACQUIRE_ALL, FAILS(RLK_UNCERTAIN));
    script_next(OP_ACQUIRE_ALL, ANSWER(.outcome = RLK_IN_FLIGHT, .which = 1));
    tap_is_int(get_all(0), ROWLOCK_OK, "then it is in flight, perhaps by our own first sending");
    tap_is_int(script.attempt_count, 3, "so it is asked once more");
    end();
}

static void test_uncertain(void)
{
    begin();
    script_next(OP_ACQUIRE_ALL, FAILS(RLK_UNCERTAIN));
    script_next(OP_OPEN, FAILS(RLK_DENIED));
    tap_is_int(get_all(0), ROWLOCK_EUNCERTAIN, "an answer that cannot be had again");
    tap_is_int(count_held(), 0, "none is held as far as we know");
    tap_is_int(get_all(0), ROWLOCK_OK, "the next call");
    tap_is_int(script.attempts[0] == script.attempts[1], true, "asks with the same attempts");
    end();
    begin();
    script_next(OP_ACQUIRE_ALL, FAILS(RLK_UNCERTAIN));
    script_next(OP_OPEN, FAILS(RLK_DENIED));
    tap_is_int(get_all(0), ROWLOCK_EUNCERTAIN, "an answer that cannot be had again");
    script_calls();
    end();
    tap_is_str(script_calls(), "open meta withdraw withdraw withdraw",
               "what may have been granted is taken back when the handles are closed");
}

static void test_uncertain_then_busy(void)
{
    begin();
    script_next(OP_ACQUIRE_ALL, FAILS(RLK_UNCERTAIN));
    script_always(OP_ACQUIRE_ALL, held(1));
    tap_is_int(get_all(0), ROWLOCK_EUNCERTAIN, "a lost answer, and then one is not to be had");
    tap_is_int(count_held(), 0, "none is held");
    script_always(OP_ACQUIRE_ALL, ANSWER(.class = RLK_DONE));
    tap_is_int(get_all(0), ROWLOCK_OK, "the next call");
    tap_is_int(script.attempts[0] == script.attempts[script.attempt_count - 1], true,
               "asks with the same attempts: the first sending may still be on its way");
    end();
}

/* ---- grants that come too late */

static void grants_are_late(void)
{
    begin();
    script_next(OP_ACQUIRE_ALL, ANSWER(.takes_us = (TTL_MS + 1) * 1000));
}

static void test_late(void)
{
    grants_are_late();
    tap_is_int(get_all(0), ROWLOCK_OK, "grants whose leases ended on their way");
    tap_is_str(script_calls(), "meta acquire_all renew renew renew", "are renewed, each of them");
    for (size_t i = 0; i < THREE; i++)
        tap_is_int(rowlock_remaining_ms(locks[i]), TTL_MS, "and whole");
    end();
}

static void test_late_and_lost(void)
{
    grants_are_late();
    script_next(OP_RENEW, ANSWER(.class = RLK_DONE));
    script_next(OP_RENEW, ANSWER(.missing = true));
    tap_is_int(get_all(0), ROWLOCK_BUSY, "one of them was taken over meanwhile");
    tap_is_int((int)which, 2, "which is told");
    tap_is_int(error_code(db), 0, "as no error");
    tap_is_str(script_calls(), "meta acquire_all renew renew release release",
               "the others are given back");
    none_is_held();
    end();
}

static void test_late_and_failed(void)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    grants_are_late();
    script_next(OP_RENEW, ANSWER(.class = RLK_DONE));
    script_next(OP_RENEW, FAILS(RLK_DENIED));
    tap_is_int(get_all(0), ROWLOCK_EDENIED, "one of them cannot be renewed");
    tap_is_int((int)which, 2, "which is told");
    rowlock_db_error(db, &err);
    tap_ok(err.code == ROWLOCK_EDENIED && strstr(err.text, "own words"), "with the reason: %d %s",
           err.code, err.text);
    tap_is_int(script_count(OP_RELEASE) + script_count(OP_WITHDRAW), THREE,
               "all are given back: %s", script_calls());
    none_is_held();
    end();
}

static void test_late_lost_and_waiting(void)
{
    grants_are_late();
    script_next(OP_RENEW, ANSWER(.missing = true));
    tap_is_int(get_all(ROWLOCK_FOREVER), ROWLOCK_OK, "who waits goes on then");
    int good = 0;
    for (size_t i = 0; i < THREE; i++)
        good += rowlock_lock_token(locks[i]) > 3 && rowlock_remaining_ms(locks[i]) == TTL_MS;
    tap_is_int(good, THREE, "and has new grants of all in the end");
    end();
}

/* ---- keepers */

static int get_all_kept(rowlock_keeper *keeper)
{
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.ttl_ms = 600;
    options.keeper = keeper;
    return rowlock_acquire_all(locks, THREE, &options, &which);
}

static bool kept_together(void)
{
    int64_t until = clock_ms() + slow_ms(10000);
    while (script_leases(0) < 0 && clock_ms() < until)
        sleep_ms(1);
    return script_leases(0) == THREE;
}

static void test_keeper(void)
{
    rowlock_keeper *keeper = NULL;
    script_reset();
    tap_is_int(rowlock_keeper_open(&keeper, "sqlite:script", NULL, NULL), ROWLOCK_OK, "a keeper");
    db = script_open(NULL);
    open_locks();
    script_freeze();
    script_next(OP_ACQUIRE_ALL, held(0));
    tap_is_int(get_all_kept(keeper), ROWLOCK_BUSY, "of what is busy");
    script_pass_ms(200);
    sleep_ms(50);
    tap_is_int(script_count(OP_RENEW_ALL), 0, "keeps nothing");
    tap_is_int(get_all_kept(keeper), ROWLOCK_OK, "three locks with a keeper");
    script_pass_ms(200);
    tap_ok(kept_together(), "are kept, in one statement");
    end();
    rowlock_keeper_close(keeper);
}

static void test_keeper_of_another(void)
{
    rowlock_keeper *keeper = NULL;
    script_reset();
    script_next(OP_META, ANSWER(.identity = "another"));
    tap_is_int(rowlock_keeper_open(&keeper, "sqlite:script", NULL, NULL), ROWLOCK_OK, "a keeper");
    db = script_open(NULL);
    open_locks();
    tap_is_int(get_all_kept(keeper), ROWLOCK_ESCHEMA, "of another installation");
    tap_is_int(script_count(OP_ACQUIRE_ALL), 0, "keeps them from being asked for");
    none_is_held();
    end();
    rowlock_keeper_close(keeper);
}

int main(void)
{
    test_granted();
    test_one();
    test_kinds();
    test_busy();
    test_mismatch();
    test_wrong_ones();
    test_moving();
    test_moving_at_once();
    test_timeout();
    test_cancelled();
    test_races_in_line();
    test_lost_answer();
    test_uncertain();
    test_uncertain_then_busy();
    test_late();
    test_late_and_lost();
    test_late_and_failed();
    test_late_lost_and_waiting();
    test_keeper();
    test_keeper_of_another();
    return tap_done();
}
