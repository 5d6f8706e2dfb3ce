/* SPDX-License-Identifier: MIT
 *
 * A keeper that renews in the background: when, how many at once, what it makes of failures, and that it
 * gets in nobody's way. The clock stands still but where a test lets it go on; the keeper's thread, which
 * sleeps by the real one, looks again soon. What a holder is told by the clock alone is in test_watch.c.
 */
#include "backend_script.h"
#include "fail_alloc.h"
#include "quick.h"
#include "tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A third is 200 ms; what will be due within 50 ms is taken along; told lost 30 ms before the end. */
enum { TTL_MS = 600, THIRD_MS = 200, MARGIN_MS = 30, RETRY_MS = 30, MANY = 10000 };

static rowlock_keeper *keeper;
static rowlock_db *db;
static rowlock_lock *lock;

/* ---- short words */

static struct {
    atomic_int total, lost;
    atomic_int order[32];
} told;

/* In the keeper's thread. */
static void note_told(void *context, rowlock_lock *whose, rowlock_state state)
{
    (void)context;
    if (rowlock_lock_state(whose) != state)
        tap_note("told %d, but the state is another by now", (int)state);
    told.order[told.total % 32] = (int)state;
    told.lost += state == ROWLOCK_STATE_LOST;
    told.total++;
}

/* "JH": told JEOPARDY, then HELD. */
static const char *told_so_far(void)
{
    static char text[33];
    int total = told.total < 32 ? told.total : 32;
    for (int i = 0; i < total; i++)
        text[i] = "NHJL"[told.order[i]];
    text[total] = '\0';
    return text;
}

/* Once its connection is lost it gives up at once: a pause would never end. */
static rowlock_keeper *open_keeper(void)
{
    rowlock_keeper *k = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.reconnect_ms = -1;
    if (rowlock_keeper_open(&k, "sqlite:script", &options, &err) != ROWLOCK_OK)
        tap_ok(false, "a keeper is opened: %s", err.text);
    return k;
}

static void begin_running(void)
{
    script_reset();
    memset(&told, 0, sizeof told);
    keeper = open_keeper();
    db = script_open(NULL);
    lock = must_lock(db, "nightly");
}

static void begin(void)
{
    begin_running();
    script_freeze();
}

static void end(void)
{
    rowlock_lock_close(lock);
    rowlock_db_close(db);
    rowlock_keeper_close(keeper);
}

static int keep_with(rowlock_lock *which, rowlock_acquire_options options)
{
    options.size = sizeof options;
    options.ttl_ms = options.ttl_ms ? options.ttl_ms : TTL_MS;
    options.keeper = keeper;
    return rowlock_acquire(which, &options);
}

static int keep(rowlock_lock *which)
{
    return keep_with(which, (rowlock_acquire_options){.told = note_told});
}

static void begin_keeping(void)
{
    begin();
    if (keep(lock) != ROWLOCK_OK)
        tap_ok(false, "a lock is granted at first: %s", why(db));
    script_calls();
}

/* Waits for what the keeper's thread is about to do. */
static bool eventually(bool (*is_so)(int64_t wanted), int64_t wanted)
{
    int64_t until = clock_ms() + slow_ms(10000);
    while (!is_so(wanted) && clock_ms() < until)
        sleep_ms(1);
    return is_so(wanted);
}

/* Time for the keeper to do what it should not. */
static void settle(void)
{
    sleep_ms(100);
}

static bool asked(int64_t times)
{
    return script_count(OP_RENEW_ALL) >= times;
}

static bool opened(int64_t times)
{
    return script_count(OP_OPEN) >= times;
}

static bool left(int64_t ms)
{
    return rowlock_remaining_ms(lock) == ms;
}

static bool in_state(int64_t state)
{
    return (int64_t)rowlock_lock_state(lock) == state;
}

static bool told_times(int64_t times)
{
    return told.total >= times;
}

/* ---- a thread that stands still where a test wants it to */

static atomic_bool blocking, blocked;

static void block(void)
{
    int64_t until = clock_ms() + slow_ms(20000);
    blocked = true;
    while (blocking && clock_ms() < until)
        sleep_ms(1);
    blocked = false;
}

static void block_renewals(enum script_op op)
{
    if (op == OP_RENEW_ALL && blocking)
        block();
}

static void block_told(void *context, rowlock_lock *whose, rowlock_state state)
{
    note_told(context, whose, state);
    if (blocking)
        block();
}

static bool is_blocked(int64_t wanted)
{
    return blocked == (wanted != 0);
}

/* The keeper's statement for lock is under way when this returns. */
static void begin_in_flight(void)
{
    begin_keeping();
    blocking = true;
    script_hook(block_renewals);
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(is_blocked, true), "the keeper's statement is under way");
}

/* Another lease, renewed after whatever was under way: that has landed then. */
static void let_land(void)
{
    rowlock_lock *other = must_lock(db, "other");
    int before = script_count(OP_RENEW_ALL);
    blocking = false;
    if (keep(other) != ROWLOCK_OK)
        tap_ok(false, "another lock is kept: %s", why(db));
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(asked, before + 1), "the keeper goes on with others");
    rowlock_lock_close(other);
}

/* ---- renewing */

static void test_renews(void)
{
    begin_keeping();
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_HELD, "a kept lease is HELD");
    script_pass_ms(THIRD_MS - 30);
    settle();
    tap_is_str(script_calls(), "", "it is not renewed long before a third of it has passed");
    for (int beat = 1; beat <= 3; beat++) {
        script_pass_ms(beat == 1 ? 30 : THIRD_MS);
        tap_ok(eventually(asked, beat), "when a third has passed it is renewed");
        tap_ok(eventually(left, TTL_MS), "and has all of its time");
    }
    tap_is_str(script_calls(), "renew_all renew_all renew_all", "in one statement each");
    tap_is_int(script_leases(0), 1, "of one lease");
    tap_is_int(script.lease_token, 1, "by its token");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "it is released");
    script_pass_ms(10 * TTL_MS);
    settle();
    tap_is_str(script_calls(), "release", "and renewed no more");
    tap_is_int(told.total, 0, "of all that there was nothing to tell");
    end();
}

static void test_late_answer_counts_from_sending(void)
{
    begin_keeping();
    script_next(OP_RENEW_ALL, ANSWER(.takes_us = 150000));
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(left, TTL_MS - 150), "a renewal counts from before it was sent");
    end();
}

static void test_together(void)
{
    begin_keeping();
    rowlock_lock *two = must_lock(db, "two"), *three = must_lock(db, "three");
    script_pass_ms(10);
    tap_is_int(keep(two), ROWLOCK_OK, "another lock, taken a little later");
    script_pass_ms(10);
    tap_is_int(keep(three), ROWLOCK_OK, "and a third one");
    script_pass_ms(THIRD_MS - 20);
    for (int beat = 0; beat < 3; beat++) {
        tap_ok(eventually(asked, beat + 1) && eventually(left, TTL_MS), "the first is due");
        tap_is_int(script_leases(beat), 3, "all are renewed in one statement");
        script_pass_ms(THIRD_MS);
    }
    close_locks(two, three);
    end();
}

static void test_many(void)
{
    static rowlock_lock *locks[MANY];
    begin();
    int granted = 0;
    for (int i = 0; i < MANY; i++) {
        char name[20];
        snprintf(name, sizeof name, "lock %d", i);
        locks[i] = must_lock(db, name);
        granted += keep(locks[i]) == ROWLOCK_OK;
    }
    tap_is_int(granted, MANY, "ten thousand locks are kept");
    for (int beat = 0; beat < 3; beat++) {
        script_pass_ms(THIRD_MS);
        tap_ok(eventually(asked, beat + 1), "they are due");
        tap_is_int(script_leases(beat), MANY, "and renewed in one statement");
        settle();
    }
    tap_is_int(script_count(OP_RENEW_ALL), 3, "one for each beat");
    tap_is_int(told.total, 0, "nobody was told anything");
    for (int i = 0; i < MANY; i++)
        rowlock_lock_close(locks[i]);
    tap_is_int(script_count(OP_RELEASE), MANY, "all are released");
    end();
}

/* ---- failures */

static void test_gone(void)
{
    begin_keeping();
    script_always(OP_RENEW_ALL, ANSWER(.missing = true));
    script_always(OP_VERIFY, ANSWER(.missing = true));
    script_always(OP_RELEASE, ANSWER(.missing = true));
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(told_times, 1), "a lease that is gone is told");
    tap_is_str(told_so_far(), "L", "as LOST");
    tap_is_str(script_calls(), "renew_all verify", "after asking whether it is gone");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_LOST, "the state is LOST");
    tap_is_int(rowlock_remaining_ms(lock), 0, "nothing remains of it");
    script_always(OP_RENEW_ALL, ANSWER(.class = RLK_DONE));
    for (int i = 0; i < 5; i++) {
        script_pass_ms(THIRD_MS);
        sleep_ms(30);
    }
    tap_is_str(told_so_far(), "L", "that is told once");
    tap_is_str(script_calls(), "", "and the keeper leaves it alone");
    tap_is_int(rowlock_release(lock), ROWLOCK_LOST, "its release says LOST");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_NONE, "then nothing is held");
    script_always(OP_RELEASE, ANSWER(.class = RLK_DONE));
    tap_is_int(keep(lock), ROWLOCK_OK, "it can be acquired anew");
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(left, TTL_MS), "and is kept again");
    tap_is_int(script.lease_token, 2, "by the new token");
    end();
}

static void test_locked_row(void)
{
    begin_keeping();
    script_next(OP_RENEW_ALL, ANSWER(.missing = true));
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(told_times, 1), "a lease that was left out but stands is told");
    tap_is_str(told_so_far(), "J", "as being in JEOPARDY");
    tap_is_int(rowlock_remaining_ms(lock), TTL_MS - THIRD_MS, "its time runs on");
    script_pass_ms(RETRY_MS);
    tap_ok(eventually(told_times, 2) && left(TTL_MS), "it is tried again soon, and renewed");
    tap_is_str(told_so_far(), "JH", "which is told too");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_HELD, "it is HELD");
    end();
}

static void test_one_of_two_locked(void)
{
    begin_keeping();
    rowlock_lock *other = must_lock(db, "other");
    tap_is_int(keep(other), ROWLOCK_OK, "two locks are kept");
    script_next(OP_RENEW_ALL, ANSWER(.but = "other"));
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(told_times, 1), "one of them is not renewed");
    tap_is_int(rowlock_lock_state(other), ROWLOCK_STATE_JEOPARDY, "that is in JEOPARDY");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_HELD, "the other is HELD");
    script_pass_ms(RETRY_MS);
    tap_ok(eventually(asked, 2), "that one is tried again");
    tap_is_int(script_leases(1), 1, "by itself");
    rowlock_lock_close(other);
    end();
}

static void test_failing_until_lost(void)
{
    begin_keeping();
    script_always(OP_RENEW_ALL, FAILS(RLK_DENIED));
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(told_times, 1), "a renewal fails");
    script_pass_ms(TTL_MS - THIRD_MS - MARGIN_MS - 1);
    tap_ok(eventually(asked, 2), "it is tried again");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_JEOPARDY, "JEOPARDY until the margin");
    tap_is_str(told_so_far(), "J", "told once, however often it fails");
    script_pass_ms(1);
    tap_ok(eventually(told_times, 2), "then the clock decides");
    tap_is_str(told_so_far(), "JL", "LOST is told before the lease is over");
    tap_is_int(rowlock_remaining_ms(lock), 0, "what remains is not to be used");
    script_always(OP_RENEW_ALL, ANSWER(.class = RLK_DONE));
    int before = script_count(OP_RENEW_ALL);
    script_pass_ms(10);
    settle();
    tap_is_int(script_count(OP_RENEW_ALL), before, "and it is final, though the server is back");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_LOST, "LOST it stays");
    tap_is_int(told.total, 2, "and nothing more is told");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "the row stood until its release");
    end();
}

static void test_renewed_too_late(void)
{
    begin_keeping();
    script_next(OP_RENEW_ALL, ANSWER(.takes_us = (TTL_MS - THIRD_MS) * 1000));
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(asked, 1) && eventually(in_state, ROWLOCK_STATE_HELD),
           "an answer just within the new lease: %d left", (int)rowlock_remaining_ms(lock));
    end();
}

static void test_reconnects(void)
{
    static const enum rlk_class classes[] = {RLK_UNSENT, RLK_UNCERTAIN};
    for (int i = 0; i < 2; i++) {
        begin_keeping();
        script_next(OP_RENEW_ALL, FAILS(classes[i]));
        script_next(OP_OPEN, FAILS(RLK_UNSENT));
        script_pass_ms(THIRD_MS);
        tap_ok(eventually(told_times, 1), "the keeper's connection is lost");
        script_pass_ms(RETRY_MS);
        tap_ok(eventually(opened, 3), "it tries to connect");
        settle();
        script_pass_ms(RETRY_MS);
        tap_ok(eventually(told_times, 2), "until it can");
        tap_is_str(told_so_far(), "JH", "and the lease is HELD again");
        end();
    }
}

/* ---- conditions of the holder's */

static void test_max_hold(void)
{
    begin();
    tap_is_int(keep_with(lock, (rowlock_acquire_options){.told = note_told, .max_hold_ms = 500}),
               ROWLOCK_OK, "a lock for half a second at most");
    for (int beat = 1; beat <= 2; beat++) {
        script_pass_ms(THIRD_MS);
        tap_ok(eventually(asked, beat) && eventually(left, TTL_MS), "it is renewed");
    }
    script_pass_ms(100);
    tap_ok(eventually(told_times, 1), "then its time is over");
    tap_is_str(told_so_far(), "J", "which is told as JEOPARDY");
    script_pass_ms(THIRD_MS);
    settle();
    tap_is_int(script_count(OP_RENEW_ALL), 2, "it is renewed no more");
    rowlock_progress(lock);
    settle();
    tap_is_int(script_count(OP_RENEW_ALL), 2, "also not for telling progress");
    script_pass_ms(TTL_MS - THIRD_MS - 100 - MARGIN_MS);
    tap_ok(eventually(told_times, 2), "until it ends");
    tap_is_str(told_so_far(), "JL", "which is told as LOST");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "it is released");
    tap_is_int(keep_with(lock, (rowlock_acquire_options){.max_hold_ms = 500}), ROWLOCK_OK,
               "the next grant");
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(left, TTL_MS), "has its own time");
    end();
}

/* What is sent for one lease must not be over before it begins, for any of the others. */
static void test_shorter_than_its_margin(void)
{
    begin();
    tap_is_int(keep_with(lock, (rowlock_acquire_options){.margin_ms = 200}), ROWLOCK_OK,
               "a lease with a margin");
    tap_is_int(rowlock_renew(lock, 150), ROWLOCK_OK, "renewed by its holder for less than that");
    tap_ok(rowlock_lock_state(lock) == ROWLOCK_STATE_HELD, "is held");
    script_pass_ms(60);
    tap_ok(eventually(asked, 1), "and renewed by its keeper");
    tap_ok(script.deadline_us > rlk_now_us(), "with time left for the answer");
    end();
}

static void test_renewed_after_keeper(void)
{
    begin_keeping();
    rowlock_keeper_close(keeper);
    keeper = NULL;
    tap_ok(rowlock_lock_state(lock) == ROWLOCK_STATE_JEOPARDY, "its keeper is closed");
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "the holder renews");
    tap_ok(rowlock_lock_state(lock) == ROWLOCK_STATE_HELD, "and holds it like any other");
    end();
}

static void *tell_progress(void *stop)
{
    while (!atomic_load((atomic_bool *)stop))
        rowlock_progress(lock);
    return NULL;
}

/* The thread that works is seldom the one that acquires. */
static void test_progress_of_another_thread(void)
{
    begin_running();
    atomic_bool stop = false;
    pthread_t thread;
    pthread_create(&thread, NULL, tell_progress, &stop);
    int wrong = 0;
    for (int i = 0; i < 200; i++) {
        wrong += (i % 2 ? keep_with(lock, (rowlock_acquire_options){.progress_ms = 1000})
                        : rowlock_acquire(lock, NULL)) != ROWLOCK_OK;
        wrong += rowlock_release(lock) != ROWLOCK_OK;
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    tap_is_int(wrong, 0, "another thread tells progress while grants come and go");
    end();
}

static void test_progress(void)
{
    begin();
    tap_is_int(keep_with(lock, (rowlock_acquire_options){.told = note_told, .progress_ms = 150}),
               ROWLOCK_OK, "a lock that is renewed only while work goes on");
    script_pass_ms(100);
    rowlock_progress(lock);
    script_pass_ms(100);
    tap_ok(eventually(asked, 1) && eventually(left, TTL_MS), "progress was told: it is renewed");
    tap_is_int(told.total, 0, "and there is nothing to tell");
    script_pass_ms(50);
    tap_ok(eventually(told_times, 1), "no progress for too long");
    tap_is_str(told_so_far(), "J", "is JEOPARDY");
    script_pass_ms(THIRD_MS);
    settle();
    tap_is_int(script_count(OP_RENEW_ALL), 1, "and no renewal");
    rowlock_progress(lock);
    script_pass_ms(TTL_MS / 20); /* it is looked for as often as a failed renewal is tried again */
    tap_ok(eventually(told_times, 2) && eventually(left, TTL_MS),
           "with progress it is renewed soon");
    tap_ok(eventually(in_state, ROWLOCK_STATE_HELD), "and HELD");
    script_pass_ms(TTL_MS - MARGIN_MS);
    tap_ok(eventually(in_state, ROWLOCK_STATE_LOST), "without it, the lease ends");
    rowlock_progress(lock);
    settle();
    tap_is_int(script_count(OP_RENEW_ALL), 2, "for good");
    rowlock_progress(NULL);
    end();
}

/* ---- the holder's own steps beside the keeper's */

static void test_release_in_flight(void)
{
    begin_in_flight();
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "a release meanwhile");
    tap_ok(blocked, "does not wait for it");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_NONE, "nothing is held");
    let_land();
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_NONE, "the late answer changes nothing");
    tap_is_int(rowlock_remaining_ms(lock), 0, "no time came back with it");
    tap_is_int(script_leases(1), 1, "and only others are renewed from then on");
    tap_is_int(told.total, 0, "of which nobody was told");
    end();
}

static void test_close_in_flight(void)
{
    begin_in_flight();
    rowlock_lock_close(lock);
    tap_ok(blocked, "closing does not wait for it either");
    let_land();
    lock = must_lock(db, "nightly");
    end();
}

/* The handle counts as holding, but was to be released. */
static void test_release_fails(enum rlk_class class, int result)
{
    begin_keeping();
    rowlock_db *tx = script_adopt();
    script_next(OP_RELEASE, FAILS(class));
    db->reconnect_us = 0; /* a pause would never end */
    tap_is_int(rowlock_release(lock), result, "a release that fails (%d)", (int)class);
    tap_is_int(rowlock_lock_token(lock), 1, "leaves the grant with the handle");
    script.inside = true;
    script_next(OP_GUARD, ANSWER(.token = 2));
    tap_is_int(rowlock_tx_release(lock, tx), ROWLOCK_LOST, "another release fails too");
    script.inside = false;
    int before = script_count(OP_RENEW_ALL);
    script_pass_ms(THIRD_MS + 50);
    settle();
    tap_is_int(script_count(OP_RENEW_ALL), before, "the keeper renews it no more");
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "until the holder does");
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(asked, before + 1), "then the keeper goes on");
    rowlock_db_close(tx);
    end();
}

static void test_new_grant_in_flight(void)
{
    begin_in_flight();
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "released meanwhile");
    script_always(OP_VERIFY, ANSWER(.missing = true));
    tap_is_int(keep(lock), ROWLOCK_OK, "and acquired again");
    tap_ok(blocked, "while it is still under way");
    script_pass_ms(50);
    blocking = false;
    tap_ok(eventually(is_blocked, false), "it ends");
    settle();
    tap_is_int(rowlock_remaining_ms(lock), TTL_MS - 50, "it does not lengthen the new lease");
    script_pass_ms(THIRD_MS - 50);
    tap_ok(eventually(left, TTL_MS), "which is kept as any other");
    tap_is_int(script.lease_token, 2, "by its own token");
    end();
}

/* The answer was that the old grant is gone, which it is. */
static void test_gone_in_flight(void)
{
    begin_keeping();
    blocking = true;
    script_next(OP_RENEW_ALL, ANSWER(.missing = true));
    script_always(OP_VERIFY, ANSWER(.missing = true));
    script_hook(block_renewals);
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(is_blocked, true), "the keeper's statement is under way");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "the lock is released");
    tap_is_int(keep(lock), ROWLOCK_OK, "and acquired again, before it finds the old grant gone");
    let_land();
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_HELD, "the new one stands");
    tap_is_int(told.lost, 0, "and nobody was told of a loss");
    end();
}

static void test_forget(void)
{
    begin_in_flight();
    script_calls();
    rowlock_lock_forget(lock);
    tap_ok(blocked, "forgetting a lock does not wait for the keeper");
    let_land();
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_NONE, "nothing is held");
    tap_is_int(rowlock_release(lock), ROWLOCK_EMISUSE, "nothing can be released");
    tap_is_int(script_leases(1), 1, "and nothing of it is renewed");
    tap_is_int(script_count(OP_RELEASE), 1, "it was not released");
    end();
}

static void test_own_renewal(void)
{
    begin_keeping();
    script_pass_ms(100);
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "the holder renews by himself");
    tap_is_int(rowlock_remaining_ms(lock), TTL_MS, "and has all of the time");
    script_pass_ms(150);
    settle();
    tap_is_int(script_count(OP_RENEW_ALL), 0, "the keeper counts from there");
    script_pass_ms(50);
    tap_ok(eventually(asked, 1) && eventually(left, TTL_MS), "and goes on");
    tap_is_int(rowlock_renew(lock, 2 * TTL_MS), ROWLOCK_OK, "a longer lease from now on");
    script_pass_ms(2 * THIRD_MS);
    tap_ok(eventually(left, 2 * TTL_MS), "is what the keeper renews for then");
    end();
}

static void test_own_renewal_in_flight(void)
{
    begin_in_flight();
    script_pass_ms(100);
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "the holder renews beside the keeper");
    tap_is_int(rowlock_remaining_ms(lock), TTL_MS - 100,
               "the keeper's may be done last: what it gives is counted upon, no more");
    tap_is_int(rowlock_renew(lock, 2 * TTL_MS), ROWLOCK_OK, "he renews again, for longer");
    tap_is_int(rowlock_remaining_ms(lock), TTL_MS - 100, "it is still under way");
    blocking = false;
    tap_ok(eventually(left, 2 * TTL_MS), "until that has ended, and the keeper renews for longer");
    tap_is_int(rowlock_renew(lock, 3 * TTL_MS), ROWLOCK_OK, "nothing is under way any more");
    tap_is_int(rowlock_remaining_ms(lock), 3 * TTL_MS, "so all of it counts");
    end();
}

/* In the holder's thread: the keeper renews while his statement is under way. */
static void renew_in_between(enum script_op op)
{
    if (op != OP_RENEW)
        return;
    script_hook(NULL);
    script_pass_ms(THIRD_MS);
    eventually(asked, 1);
    settle();
    script_always(OP_RENEW_ALL, FAILS(RLK_DENIED));
    script_pass_ms(70);
}

static void test_keeper_in_between(void)
{
    begin_keeping();
    script_hook(renew_in_between);
    tap_is_int(rowlock_renew(lock, 3 * TTL_MS), ROWLOCK_OK,
               "a long lease, while the keeper renews the short one");
    tap_is_int(rowlock_remaining_ms(lock), TTL_MS - 70, "the shorter one counts");
    script_always(OP_RENEW_ALL, ANSWER(.class = RLK_DONE));
    script_pass_ms(90);
    tap_ok(eventually(left, 3 * TTL_MS), "until the keeper renews for the long one");
    end();
}

static void test_keeper_fails_in_between(void)
{
    begin_keeping();
    script_pass_ms(150);
    script_always(OP_RENEW_ALL, FAILS(RLK_DENIED));
    script_hook(renew_in_between);
    tap_is_int(rowlock_renew(lock, TTL_MS), ROWLOCK_OK, "renewed while the keeper's fails");
    int64_t remaining = rowlock_remaining_ms(lock);
    tap_ok(remaining > TTL_MS - 150 - THIRD_MS - 70 && remaining <= TTL_MS - 70,
           "the lease is longer by that, at most by what the keeper might have given: %d",
           (int)remaining);
    end();
}

/* ---- callbacks */

static int close_lock(void *argument)
{
    rowlock_lock_close(argument);
    return 0;
}

static int release_lock(void *argument)
{
    return rowlock_release(argument);
}

static atomic_bool returned;

static int do_and_tell(int (*what)(void *))
{
    int result = what(lock);
    returned = true;
    return result;
}

static int close_and_tell(void *argument)
{
    (void)argument;
    return do_and_tell(close_lock);
}

static int release_and_tell(void *argument)
{
    (void)argument;
    return do_and_tell(release_lock);
}

static void leave_while_told(int (*leave)(void *), const char *what)
{
    begin();
    blocking = true;
    returned = false;
    tap_is_int(keep_with(lock, (rowlock_acquire_options){.told = block_told}), ROWLOCK_OK,
               "a lock is kept");
    script_always(OP_RENEW_ALL, FAILS(RLK_DENIED));
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(is_blocked, true), "its callback runs");
    struct helper *helper = helper_start(leave, NULL);
    settle();
    tap_ok(!returned, "%s waits for that", what);
    blocking = false;
    tap_is_int(helper_join(helper), ROWLOCK_OK, "and then is done");
    script_pass_ms(TTL_MS);
    settle();
    tap_is_str(told_so_far(), "J", "nothing is told after it");
}

static void test_leaving_while_told(void)
{
    leave_while_told(release_and_tell, "release");
    end();
    leave_while_told(close_and_tell, "close");
    lock = must_lock(db, "nightly");
    end();
}

/* What happens while a callback runs is not slept through after it. */
static void test_acquire_while_told(void)
{
    begin();
    rowlock_lock *other = must_lock(db, "other");
    blocking = true;
    tap_is_int(keep_with(other, (rowlock_acquire_options){.ttl_ms = 600000,
                                                          .progress_ms = 50,
                                                          .told = block_told}),
               ROWLOCK_OK, "a lock with a long lease");
    script_pass_ms(50);
    tap_ok(eventually(is_blocked, true), "whose callback takes its time");
    tap_is_int(keep(lock), ROWLOCK_OK, "meanwhile another lock is kept");
    blocking = false;
    tap_ok(eventually(is_blocked, false), "the callback ends");
    settle();
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(left, TTL_MS), "and that other lock is renewed in time");
    rowlock_lock_close(other);
    end();
}

/* ---- the caller's transaction */

static void test_transaction(void)
{
    begin_keeping();
    rowlock_db *tx = script_adopt();
    script.inside = true;
    tap_is_int(rowlock_tx_release(lock, tx), ROWLOCK_OK, "released in a transaction");
    int before = script_count(OP_RENEW_ALL);
    script_pass_ms(THIRD_MS + 50);
    settle();
    tap_is_int(script_count(OP_RENEW_ALL), before, "the keeper renews no more");
    tap_is_int(rowlock_lock_token(lock), 1, "the handle still knows the grant");
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "rolled back: the holder renews");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_HELD, "it is HELD");
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(asked, before + 1) && eventually(left, TTL_MS), "and the keeper goes on");
    script_next(OP_RELEASE, ANSWER(.class = RLK_CONTENTION, .text = "no", .tx_over = true));
    tap_is_int(rowlock_tx_release(lock, tx), ROWLOCK_CONFLICT, "a release that fails there");
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(left, TTL_MS), "leaves the keeper at work");
    tap_is_int(rowlock_tx_release(lock, tx), ROWLOCK_OK, "released in another transaction");
    rowlock_lock_forget(lock);
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_NONE, "which is committed");
    rowlock_db_close(tx);
    end();
}

static void test_transaction_after_loss(void)
{
    begin_keeping();
    rowlock_db *tx = script_adopt();
    script_next(OP_RENEW_ALL, ANSWER(.missing = true));
    script_next(OP_VERIFY, ANSWER(.missing = true));
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(told_times, 1), "a lease is lost");
    script.inside = true;
    script_next(OP_GUARD, ANSWER(.token = 2));
    tap_is_int(rowlock_tx_release(lock, tx), ROWLOCK_LOST, "releasing it in a transaction fails");
    settle();
    tap_is_str(told_so_far(), "L", "the loss is not told again");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_LOST, "it stays LOST");
    rowlock_db_close(tx);
    end();
}

/* ---- handles */

static void test_closing_keeper_first(void)
{
    begin_keeping();
    rowlock_lock *other = must_lock(db, "other");
    tap_is_int(keep(other), ROWLOCK_OK, "two locks are kept");
    rowlock_keeper_close(keeper);
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_JEOPARDY,
               "nobody keeps it any more: JEOPARDY");
    tap_is_int(rowlock_lock_token(lock), 1, "it is held still");
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "and can be renewed");
    rowlock_progress(lock);
    tap_is_int(told.total, 0, "there is nobody to tell");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "it is released");
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "and acquired without a keeper");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_HELD, "which is HELD");
    script_pass_ms(TTL_MS - MARGIN_MS);
    tap_is_int(rowlock_lock_state(other), ROWLOCK_STATE_LOST, "the other one ends");
    rowlock_lock_close(other);
    keeper = NULL;
    end();
}

static void test_changing_keepers(void)
{
    begin_keeping();
    rowlock_keeper *first = keeper;
    keeper = open_keeper();
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "released from one keeper");
    tap_is_int(keep(lock), ROWLOCK_OK, "acquired with another");
    rowlock_keeper_close(first);
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(left, TTL_MS), "which keeps it");
    rowlock_lock_close(lock);
    rowlock_db_close(db);
    rowlock_keeper_close(keeper);
    rowlock_keeper_close(NULL);
}

static void test_db_closed_first(void)
{
    begin_keeping();
    rowlock_db_close(db);
    tap_is_str(script_calls(), "release", "closing the db releases a kept lock");
    script_pass_ms(TTL_MS);
    settle();
    tap_is_str(script_calls(), "", "which is renewed no more");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_NONE, "and held no more");
    rowlock_lock_close(lock);
    rowlock_keeper_close(keeper);
}

static void test_other_installation(void)
{
    script_reset();
    script_freeze();
    script_next(OP_META, ANSWER(.identity = "another"));
    keeper = open_keeper();
    db = script_open(NULL);
    lock = must_lock(db, "nightly");
    tap_is_int(keep(lock), ROWLOCK_ESCHEMA, "a keeper of another installation is refused");
    tap_is_int(script_count(OP_ACQUIRE), 0, "and nothing was acquired");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_NONE, "nothing is held");
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "without it the lock is granted");
    end();
    rowlock_error err = ROWLOCK_ERROR_INIT;
    script_reset();
    script_always(OP_META, ANSWER(.missing = true));
    tap_is_int(rowlock_keeper_open(&keeper, "sqlite:script", NULL, &err), ROWLOCK_ESCHEMA,
               "without tables there is no keeper");
    tap_ok(keeper == NULL && err.text[0], "but a reason");
    script_always(OP_OPEN, FAILS(RLK_DENIED));
    tap_is_int(rowlock_keeper_open(&keeper, "sqlite:script", NULL, &err), ROWLOCK_EDENIED,
               "nor without a connection");
    tap_is_int(rowlock_keeper_open(NULL, "sqlite:script", NULL, &err), ROWLOCK_EINVAL,
               "nor without a place for it");
    script_reset();
}

static void refused(rowlock_acquire_options options, const char *what)
{
    options.size = sizeof options;
    tap_is_int(rowlock_acquire(lock, &options), ROWLOCK_EINVAL, "%s", what);
}

static void test_options(void)
{
    begin();
    refused((rowlock_acquire_options){.max_hold_ms = 1000}, "max_hold_ms is for a keeper");
    refused((rowlock_acquire_options){.progress_ms = 1000}, "so is progress_ms");
    refused((rowlock_acquire_options){.told = note_told}, "so is a callback");
    refused((rowlock_acquire_options){.max_hold_ms = -1, .keeper = keeper}, "not below nought");
    refused((rowlock_acquire_options){.progress_ms = -1, .keeper = keeper}, "that neither");
    refused((rowlock_acquire_options){.margin_ms = -1}, "nor the margin");
    refused((rowlock_acquire_options){.ttl_ms = 500, .margin_ms = 500},
            "which is shorter than the lease");
    tap_is_str(script_calls(), "", "nobody was asked");
    end();
}

static void test_acquire_fails(void)
{
    begin();
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD));
    tap_is_int(keep(lock), ROWLOCK_BUSY, "a lock that another holds");
    script_pass_ms(TTL_MS);
    settle();
    tap_is_int(script_count(OP_RENEW_ALL), 0, "is not kept");
    tap_is_int(keep(lock), ROWLOCK_OK, "until it is granted");
    script_pass_ms(THIRD_MS);
    tap_ok(eventually(asked, 1), "then it is");
    end();
}

/* ---- memory */

static void test_memory(void)
{
    script_reset();
    script_freeze();
    int nth = 0, result;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    do {
        fail_alloc_at(++nth);
        result = rowlock_keeper_open(&keeper, "sqlite:script", NULL, &err);
        if (result != ROWLOCK_OK && (result != ROWLOCK_ENOMEM || keeper || fail_alloc_live() != 0))
            tap_ok(false, "allocation %d: %d, %d pieces left", nth, result, fail_alloc_live());
    } while (result != ROWLOCK_OK && nth < 1000);
    fail_alloc_at(0);
    tap_ok(nth > 3 && nth < 1000, "a keeper opens when %d allocations succeed", nth - 1);
    db = script_open(NULL);
    lock = must_lock(db, "nightly");
    int live = fail_alloc_live();
    fail_alloc_at(1);
    tap_is_int(keep(lock), ROWLOCK_ENOMEM, "without memory a lock is not kept");
    tap_is_int(script_count(OP_ACQUIRE), 0, "nor acquired");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_NONE, "nothing is held");
    tap_is_int(fail_alloc_live(), live, "and nothing leaked");
    fail_alloc_at(2);
    tap_is_int(keep(lock), ROWLOCK_OK, "one piece of memory is what it takes");
    fail_alloc_at(0);
    end();
    tap_is_int(fail_alloc_live(), 0, "all of it is given back");
}

/* ---- fork */

static int call_in_child(void *argument)
{
    (void)argument;
    alarm((unsigned)slow_ms(10000) / 1000); /* whoever hangs is ended */
    bool good = rowlock_lock_state(lock) == ROWLOCK_STATE_NONE && rowlock_remaining_ms(lock) == 0 &&
                rowlock_lock_token(lock) == 0 && rowlock_lock_expires_us(lock) == 0 &&
                rowlock_lock_fd(lock) == -1 && rowlock_renew(lock, 0) == ROWLOCK_EMISUSE &&
                rowlock_release(lock) == ROWLOCK_EMISUSE && keep(lock) == ROWLOCK_EMISUSE;
    rowlock_progress(lock);
    rowlock_lock_forget(lock);
    rowlock_db *own = script_open(NULL);
    rowlock_lock *mine = must_lock(own, "mine");
    good = good && keep(mine) == ROWLOCK_EMISUSE;
    rowlock_lock_close(mine);
    rowlock_db_close(own);
    rowlock_lock_close(lock);
    rowlock_db_close(db);
    rowlock_keeper_close(keeper);
    return good ? 0 : 1;
}

/* While the keeper's thread is busy, so that it may hold what the child would have to wait for. */
static void test_fork(void)
{
    enum { BUSY = 2000, FORKS = 20 };
    static rowlock_lock *locks[BUSY];
    begin_running();
    for (int i = 0; i < BUSY; i++) {
        locks[i] = must_lock(db, "busy");
        keep_with(locks[i], (rowlock_acquire_options){.ttl_ms = 100});
    }
    tap_is_int(keep_with(lock, (rowlock_acquire_options){.ttl_ms = 30000}), ROWLOCK_OK, "kept");
    int good = 0;
    for (int i = 0; i < FORKS; i++) {
        good += child_join(child_start(call_in_child, NULL)) == 0;
        sleep_ms(i % 5);
    }
    tap_is_int(good, FORKS, "calls on a kept lock in a child know of no grant, and do not hang");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_HELD, "the parent's is as it was");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "and can be released");
    for (int i = 0; i < BUSY; i++)
        rowlock_lock_close(locks[i]);
    end();
}

int main(void)
{
    test_renews();
    test_late_answer_counts_from_sending();
    test_together();
    test_many();
    test_gone();
    test_locked_row();
    test_one_of_two_locked();
    test_failing_until_lost();
    test_renewed_too_late();
    test_reconnects();
    test_max_hold();
    test_progress();
    test_progress_of_another_thread();
    test_shorter_than_its_margin();
    test_renewed_after_keeper();
    test_release_in_flight();
    test_release_fails(RLK_UNSENT, ROWLOCK_ECONN);
    test_release_fails(RLK_UNCERTAIN, ROWLOCK_EUNCERTAIN);
    test_release_fails(RLK_DENIED, ROWLOCK_EDENIED);
    test_close_in_flight();
    test_new_grant_in_flight();
    test_gone_in_flight();
    test_forget();
    test_own_renewal();
    test_own_renewal_in_flight();
    test_keeper_in_between();
    test_keeper_fails_in_between();
    test_leaving_while_told();
    test_acquire_while_told();
    test_transaction();
    test_transaction_after_loss();
    test_closing_keeper_first();
    test_changing_keepers();
    test_db_closed_first();
    test_other_installation();
    test_options();
    test_acquire_fails();
    test_memory();
    test_fork();
    return tap_done();
}
