/* SPDX-License-Identifier: MIT
 *
 * The states of a lock: granted, entered again, lapsed, lost, released; and how long a lease lasts
 * by our clock. What is sent again is in test_resending.c, waiting in test_wait.c.
 */
#include "backend_script.h"
#include "quick.h"
#include "tap.h"

#include <limits.h>
#include <string.h>

enum { TTL_MS = 10000 };

static rowlock_db *db;
static rowlock_lock *lock;

/* With the clock standing still. */
static void begin(void)
{
    script_reset();
    db = script_open(NULL);
    lock = must_lock(db, "nightly");
    script_freeze();
}

static void begin_holding(void)
{
    begin();
    if (try_lock(lock, TTL_MS) != ROWLOCK_OK)
        tap_ok(false, "a lock is granted at first");
    script_calls();
}

static void end(void)
{
    rowlock_lock_close(lock);
    rowlock_db_close(db);
}

static void pass_ms(int64_t ms)
{
    script.ahead_us += ms * 1000;
}

/* ---- the grant */

static void test_grant(void)
{
    begin();
    tap_is_int(rowlock_remaining_ms(lock), 0, "before the grant no time remains");
    tap_is_int(rowlock_lock_expires_us(lock), 0, "nor is an end known");
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is granted");
    tap_is_int(rowlock_lock_token(lock), 1, "its token is the database's");
    tap_is_int(rowlock_remaining_ms(lock), TTL_MS, "all of its lease remains");
    tap_ok(rowlock_lock_expires_us(lock) > INT64_C(1600000000000000),
           "its end is by the database's clock");
    pass_ms(TTL_MS - 1);
    tap_is_int(rowlock_remaining_ms(lock), 1, "a millisecond is left");
    pass_ms(1);
    tap_is_int(rowlock_remaining_ms(lock), 0, "none is left");
    pass_ms(1000);
    tap_is_int(rowlock_remaining_ms(lock), 0, "it never goes below nought");
    tap_is_int(rowlock_lock_token(lock), 1, "the token of a lapsed grant is still told");
    end();
}

static void test_claim(void)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    rowlock_acquire_options ask = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.owner = "job 7";
    options.program = "reports";
    ask.note = "for the board";
    ask.ttl_ms = 1234;
    script_reset();
    db = script_open(&options);
    lock = must_lock(db, "nightly");
    tap_is_int(rowlock_acquire(lock, &ask), ROWLOCK_OK, "a lock is granted to a chosen owner");
    tap_is_str(script.claim.name, "nightly", "the claim names the lock");
    tap_is_str(script.claim.owner, "job 7", "the owner");
    tap_is_str(script.claim.program, "reports", "the program");
    tap_is_str(script.claim.note, "for the board", "and the note");
    tap_ok(script.claim.host[0] != '\0' && script.claim.pid > 0, "host and process");
    tap_is_int(script.claim.ttl_us, 1234000, "and the lease");
    tap_is_int(script.claim.permits, 0, "it is for an exclusive lock");
    tap_is_int(script.claim.ticket, 0, "and without a ticket");
    tap_ok(!script.claim.unfair, "which passes by nobody");
    end();
}

static void test_random_owners(void)
{
    begin();
    rowlock_lock *other = must_lock(db, "nightly");
    tap_is_int((int)strlen(rowlock_lock_owner(lock)), 32, "an owner that nobody chose is random");
    tap_ok(strcmp(rowlock_lock_owner(lock), rowlock_lock_owner(other)) != 0,
           "and each handle's own");
    tap_is_str(rowlock_lock_name(lock), "nightly", "the name is the handle's copy");
    rowlock_lock_close(other);
    end();
}

/* ---- what our clock makes of it */

static void test_slow_grant(void)
{
    begin();
    script_next(OP_ACQUIRE, ANSWER(.takes_us = 3000000));
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "a grant that took three seconds to answer");
    tap_is_int(rowlock_remaining_ms(lock), TTL_MS - 3000,
               "its lease is counted from before it was asked for");
    end();
}

static void test_old_grant(void)
{
    begin();
    script_next(OP_ACQUIRE, ANSWER(.left_us = 4000000));
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "our own grant, found again after a while");
    tap_is_int(rowlock_remaining_ms(lock), 4000, "has what is left of its lease");
    end();
}

static void test_slow_renewal(void)
{
    begin_holding();
    script_next(OP_RENEW, ANSWER(.takes_us = 2000000));
    tap_is_int(rowlock_renew(lock, TTL_MS), ROWLOCK_OK, "a renewal that took two seconds");
    tap_is_int(rowlock_remaining_ms(lock), TTL_MS - 2000, "counts from before it was asked for");
    end();
}

/* Sent twice: what counts is the second sending, whose answer it is. */
static void test_slow_resending(void)
{
    begin();
    script_next(OP_ACQUIRE, ANSWER(.class = RLK_UNCERTAIN, .takes_us = 2000000));
    script.frozen = false;
    script.ahead_us = 0;
    db->reconnect_us = 10000000;
    script_next(OP_ACQUIRE, ANSWER(.takes_us = 1000000, .left_us = 7500000));
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "a grant whose first answer was lost");
    int64_t left = rowlock_remaining_ms(lock);
    tap_ok(left <= TTL_MS && left > TTL_MS - slow_ms(400),
           "is renewed, and its lease is what that answer said: %d", (int)left);
    end();
}

static void test_failed_renewal(void)
{
    begin_holding();
    pass_ms(1000);
    script_always(OP_RENEW, FAILS(RLK_DENIED));
    tap_is_int(rowlock_renew(lock, 60000), ROWLOCK_EDENIED, "a renewal that is refused");
    tap_is_int(rowlock_remaining_ms(lock), TTL_MS - 1000, "leaves the lease as it was");
    end();
}

static void test_uncertain_renewal(void)
{
    begin_holding();
    db->reconnect_us = 0;
    script_next(OP_RENEW, ANSWER(.class = RLK_UNCERTAIN, .takes_us = 300000));
    tap_is_int(rowlock_renew(lock, 60000), ROWLOCK_EUNCERTAIN, "a longer lease, the answer lost");
    tap_is_int(rowlock_remaining_ms(lock), TTL_MS - 300, "is not counted upon");
    script_next(OP_RENEW, ANSWER(.class = RLK_UNCERTAIN, .takes_us = 300000));
    tap_is_int(rowlock_renew(lock, 2000), ROWLOCK_EUNCERTAIN, "a shorter lease, the answer lost");
    tap_is_int(rowlock_remaining_ms(lock), 2000 - 300, "is taken for given");
    end();
}

/* ---- a grant that comes when its lease is over */

static void test_late_grant(void)
{
    begin();
    script_next(OP_ACQUIRE, ANSWER(.takes_us = (TTL_MS + 1) * 1000));
    script_next(OP_RENEW, ANSWER(.lapsed_us = 1000));
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "a grant whose lease ended on its way is OK");
    tap_is_str(script_calls(), "meta acquire renew", "since it is renewed at once");
    tap_is_int(rowlock_remaining_ms(lock), TTL_MS, "and has all of its lease");
    tap_is_int(script.held.token, 1, "the renewal is of that grant");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "it was entered once");
    tap_is_int(rowlock_release(lock), ROWLOCK_EMISUSE, "and no more");
    end();
}

static void test_late_grant_lost(void)
{
    begin();
    script_next(OP_ACQUIRE, ANSWER(.takes_us = (TTL_MS + 1) * 1000));
    script_next(OP_RENEW, ANSWER(.missing = true));
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_BUSY,
               "a grant whose lease ended on its way, and that another took over, is BUSY");
    tap_is_int(error_code(db), 0, "which is no error");
    tap_is_int(rowlock_lock_token(lock), 0, "nothing is held");
    tap_is_int(rowlock_release(lock), ROWLOCK_EMISUSE, "so nothing can be released");
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "the handle can acquire again");
    end();
}

static void test_late_grant_failed(void)
{
    begin();
    db->reconnect_us = 0;
    script_next(OP_ACQUIRE, ANSWER(.takes_us = (TTL_MS + 1) * 1000));
    script_next(OP_RENEW, FAILS(RLK_UNSENT));
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_ECONN,
               "a grant whose lease ended on its way, and that cannot be renewed, is a failure");
    tap_is_int(rowlock_lock_token(lock), 0, "nothing is held then");
    tap_is_int(rowlock_release(lock), ROWLOCK_EMISUSE, "so nothing can be released");
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "the next acquire is granted");
    tap_ok(script.attempts[0] == script.attempts[1], "for the same attempt");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "it was entered once");
    tap_is_int(rowlock_release(lock), ROWLOCK_EMISUSE, "and no more");
    end();
}

/* ---- entering again */

static void test_entering_again(void)
{
    begin_holding();
    pass_ms(100);
    tap_is_int(try_lock(lock, 60000), ROWLOCK_OK, "a held lock is entered again");
    tap_is_int(try_lock(lock, 60000), ROWLOCK_OK, "and again");
    tap_is_str(script_calls(), "", "without a round trip");
    tap_is_int(rowlock_remaining_ms(lock), TTL_MS - 100, "and the lease unchanged");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "it is left once");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "and again");
    tap_is_str(script_calls(), "", "without a round trip");
    tap_is_int(rowlock_lock_token(lock), 1, "it is still held");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "left as often as entered");
    tap_is_str(script_calls(), "release", "it is released");
    tap_is_int(rowlock_lock_token(lock), 0, "it is not held any more");
    tap_is_int(rowlock_release(lock), ROWLOCK_EMISUSE, "once more is a mistake");
    end();
}

static void test_entering_too_often(void)
{
    begin_holding();
    lock->depth = INT_MAX;
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_EMISUSE, "the count of entries does not overflow");
    lock->depth = 1;
    end();
}

static void test_entering_lapsed(void)
{
    begin_holding();
    pass_ms(TTL_MS);
    script_next(OP_RENEW, ANSWER(.lapsed_us = 5));
    tap_is_int(try_lock(lock, 60000), ROWLOCK_LAPSED, "entering a lapsed grant renews it");
    tap_is_int(script.renew_ttl_us, TTL_MS * 1000, "for as long as it was granted for");
    tap_is_int(rowlock_remaining_ms(lock), TTL_MS, "so that all of its lease remains");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "it counts as entered:");
    tap_is_int(rowlock_lock_token(lock), 1, "after one release it is still held");
    end();
}

static void test_entering_in_time_after_all(void)
{
    begin_holding();
    pass_ms(TTL_MS);
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK,
               "where the database's clock says that it was in time, it was");
    end();
}

static void test_entering_lost(void)
{
    begin_holding();
    pass_ms(TTL_MS);
    script_next(OP_RENEW, ANSWER(.missing = true));
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_LOST, "entering a grant that is gone is LOST");
    tap_is_int(rowlock_release(lock), ROWLOCK_LOST, "that entry does not count: one release");
    tap_is_int(rowlock_release(lock), ROWLOCK_EMISUSE, "is all that was due");
    end();
}

static void test_entering_fails(void)
{
    begin_holding();
    pass_ms(TTL_MS);
    script_next(OP_RENEW, FAILS(RLK_REFUSED));
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_ESERVER, "entering a lapsed grant may fail");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "that entry does not count: one release");
    tap_is_int(rowlock_release(lock), ROWLOCK_EMISUSE, "is all that was due");
    end();
}

/* ---- lost */

static void test_lost(void)
{
    begin_holding();
    tap_is_int(try_lock(lock, TTL_MS) | try_lock(lock, TTL_MS), ROWLOCK_OK, "entered three times");
    script_next(OP_RENEW, ANSWER(.missing = true));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_LOST, "the grant is gone");
    tap_is_int(error_code(db), ROWLOCK_LOST, "the error kept says so");
    tap_is_int(rowlock_remaining_ms(lock), 0, "no time remains");
    tap_is_int(rowlock_lock_token(lock), 0, "there is no token to show");
    script_calls();
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_LOST, "it stays lost to renew");
    tap_is_int(rowlock_verify(lock), ROWLOCK_LOST, "to verify");
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_LOST, "and to acquire");
    for (int i = 0; i < 3; i++)
        tap_is_int(rowlock_release(lock), ROWLOCK_LOST, "and to each release that is due");
    tap_is_str(script_calls(), "", "all without asking anybody");
    tap_is_int(rowlock_release(lock), ROWLOCK_EMISUSE, "then no more is due");
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "and the lock can be acquired anew");
    tap_is_int(rowlock_lock_token(lock), 2, "as another grant");
    end();
}

static void test_release_finds_lost(void)
{
    begin_holding();
    script_next(OP_RELEASE, ANSWER(.missing = true));
    tap_is_int(rowlock_release(lock), ROWLOCK_LOST, "the last release finds the grant gone");
    tap_is_int(rowlock_release(lock), ROWLOCK_EMISUSE, "nothing is due after it");
    end();
}

static void test_verify(void)
{
    begin_holding();
    tap_is_int(rowlock_verify(lock), ROWLOCK_OK, "the grant stands");
    script_next(OP_VERIFY, ANSWER(.left_us = -1));
    tap_is_int(rowlock_verify(lock), ROWLOCK_LAPSED, "it stands, but its lease ran out");
    tap_is_int(rowlock_lock_token(lock), 1, "which is no loss");
    script_next(OP_VERIFY, ANSWER(.missing = true));
    tap_is_int(rowlock_verify(lock), ROWLOCK_LOST, "it is gone");
    tap_is_int(rowlock_release(lock), ROWLOCK_LOST, "for good");
    end();
}

static void test_renew(void)
{
    begin_holding();
    pass_ms(4000);
    tap_is_int(rowlock_renew(lock, 20000), ROWLOCK_OK, "renewed for a longer lease");
    tap_is_int(rowlock_remaining_ms(lock), 20000, "which remains");
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "renewed as before");
    tap_is_int(script.renew_ttl_us, 20000000, "which is the last lease asked for");
    script_next(OP_RENEW, ANSWER(.lapsed_us = 1));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_LAPSED, "renewed too late, but ours");
    tap_is_int(rowlock_remaining_ms(lock), 20000, "with all of its lease");
    tap_is_int(rowlock_renew(lock, 99), ROWLOCK_EINVAL, "too short a lease is refused");
    tap_is_int(rowlock_renew(lock, -1), ROWLOCK_EINVAL, "so is a negative one");
    end();
    begin();
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_EMISUSE, "what is not held cannot be renewed");
    tap_is_int(rowlock_verify(lock), ROWLOCK_EMISUSE, "nor verified");
    tap_is_int(rowlock_release(lock), ROWLOCK_EMISUSE, "nor released");
    tap_is_str(script_calls(), "", "and nobody is asked");
    end();
}

/* ---- attached */

static void test_attached(void)
{
    begin();
    rowlock_lock *there = must_attach(db, "weekly", "somebody", 41);
    tap_is_int(rowlock_lock_token(there), 41, "an attached handle knows its token");
    tap_is_int(rowlock_remaining_ms(there), 0, "but nothing of its lease");
    tap_is_int(rowlock_renew(there, 0), ROWLOCK_OK, "so its first renewal asks");
    tap_is_int(script.renew_ttl_us, 0, "for as long as before");
    tap_is_int(try_lock(there, TTL_MS), ROWLOCK_EMISUSE, "it cannot acquire");
    tap_is_int(rowlock_renew(there, 5000), ROWLOCK_OK, "it can renew");
    tap_is_str(script.held.owner, "somebody", "as that owner");
    tap_is_int(script.held.token, 41, "and token");
    tap_is_int(rowlock_remaining_ms(there), 5000, "and then knows the lease");
    tap_is_int(rowlock_renew(there, 0), ROWLOCK_OK, "and its length");
    script_calls();
    rowlock_lock_close(there);
    tap_is_str(script_calls(), "", "closing it releases nothing");
    there = must_attach(db, "weekly", "somebody", 41);
    tap_is_int(rowlock_release(there), ROWLOCK_OK, "it can release");
    tap_is_int(rowlock_release(there), ROWLOCK_EMISUSE, "once");
    rowlock_lock_close(there);
    end();
}

static void test_attaching_wrongly(void)
{
    begin();
    rowlock_lock *there = lock;
    tap_is_int(rowlock_lock_attach(db, "weekly", NULL, 41, &there), ROWLOCK_EINVAL,
               "to attach takes an owner");
    tap_ok(there == NULL, "and the handle is NULL without");
    tap_is_int(rowlock_lock_attach(db, "weekly", "", 41, &there), ROWLOCK_EINVAL,
               "which is not empty");
    tap_is_int(rowlock_lock_attach(db, "weekly", "me", 0, &there), ROWLOCK_EINVAL, "and a token");
    tap_is_int(rowlock_lock_attach(db, "weekly", "me", -1, &there), ROWLOCK_EINVAL, "above nought");
    tap_is_int(rowlock_lock_attach(db, "", "me", 1, &there), ROWLOCK_EINVAL, "and a name");
    tap_is_int(rowlock_lock_attach(db, "weekly", "me", 1, NULL), ROWLOCK_EINVAL,
               "and a place for the handle");
    end();
}

/* ---- closing */

static void test_closing(void)
{
    begin_holding();
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "entered twice");
    rowlock_lock_close(lock);
    tap_is_str(script_calls(), "release", "closing a held lock releases it, once");
    lock = must_lock(db, "nightly");
    rowlock_lock_close(lock);
    tap_is_str(script_calls(), "", "closing what is not held sends nothing");
    lock = must_lock(db, "nightly");
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "acquired again");
    script_next(OP_RENEW, ANSWER(.missing = true));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_LOST, "and lost");
    script_calls();
    end();
    tap_is_str(script_calls(), "", "closing what is lost sends nothing");
}

static void test_busy_is_one_step(void)
{
    begin();
    script_always(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD));
    for (int i = 0; i < 3; i++)
        if (try_lock(lock, TTL_MS) != ROWLOCK_BUSY)
            tap_ok(false, "it is held");
    tap_is_str(script_calls(), "meta acquire acquire acquire",
               "a busy try is one step, however often, and takes no ticket");
    end();
}

/* ---- the holder */

static void test_holder(void)
{
    rowlock_grant holder = ROWLOCK_GRANT_INIT;
    begin();
    tap_is_int(rowlock_lock_holder(lock, &holder), ROWLOCK_NONE, "no holder was met yet");
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .token = 9, .left_us = 2500999));
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_BUSY, "a rival holds it");
    tap_is_int(rowlock_lock_holder(lock, &holder), ROWLOCK_OK, "who can be named");
    tap_is_str(holder.owner, "rival", "by owner");
    tap_is_str(holder.host, "elsewhere", "host");
    tap_is_str(holder.note, "a note", "and note");
    tap_ok(holder.token == 9 && holder.remaining_ms == 2500 && holder.pid == 4711,
           "with token, lease and process");
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_IN_FLIGHT));
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_BUSY, "it is being granted or released");
    tap_is_int(rowlock_lock_holder(lock, &holder), ROWLOCK_NONE, "to nobody who can be named");
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_BEHIND));
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_BUSY, "others stand in line for it");
    tap_is_int(rowlock_lock_holder(lock, &holder), ROWLOCK_NONE, "none of whom is its holder");
    end();
}

int main(void)
{
    test_grant();
    test_claim();
    test_random_owners();
    test_slow_grant();
    test_old_grant();
    test_slow_renewal();
    test_slow_resending();
    test_failed_renewal();
    test_uncertain_renewal();
    test_late_grant();
    test_late_grant_lost();
    test_late_grant_failed();
    test_entering_again();
    test_entering_too_often();
    test_entering_lapsed();
    test_entering_in_time_after_all();
    test_entering_lost();
    test_entering_fails();
    test_lost();
    test_release_finds_lost();
    test_verify();
    test_renew();
    test_attached();
    test_attaching_wrongly();
    test_closing();
    test_busy_is_one_step();
    test_holder();
    return tap_done();
}
