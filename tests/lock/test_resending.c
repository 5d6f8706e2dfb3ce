/* SPDX-License-Identifier: MIT
 *
 * What is sent again after a lost race, a lost connection or a lost answer, and what core makes of
 * the second answer. Single answers are in test_answers.c.
 */
#include "backend_script.h"
#include "quick.h"
#include "tap.h"

#include <string.h>

static rowlock_db *db;
static rowlock_lock *lock;

static void begin(void)
{
    script_reset();
    db = script_open(NULL);
    lock = must_lock(db, "nightly");
}

static void begin_adopted(void)
{
    script_reset();
    db = script_adopt();
    lock = must_lock(db, "nightly");
}

static void begin_holding(void)
{
    begin();
    if (rowlock_acquire(lock, NULL) != ROWLOCK_OK)
        tap_ok(false, "a lock is granted at first");
    script_calls();
}

static void end(void)
{
    rowlock_lock_close(lock);
    rowlock_db_close(db);
}

/* ---- acquire */

static void test_lost_race(void)
{
    begin();
    script_next(OP_ACQUIRE, FAILS(RLK_CONTENTION));
    script_next(OP_ACQUIRE, FAILS(RLK_CONTENTION));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK, "two lost races and then a grant");
    tap_is_str(script_calls(), "meta acquire acquire acquire", "on one connection");
    tap_ok(script.attempts[0] == script.attempts[1] && script.attempts[1] == script.attempts[2],
           "with one attempt number");
    end();
}

static void test_reconnect(void)
{
    begin();
    script_next(OP_ACQUIRE, FAILS(RLK_UNSENT));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK, "a lost connection is made anew");
    tap_is_str(script_calls(), "meta acquire open meta acquire",
               "the tables are looked at again before the step is");
    tap_is_int(script_count(OP_CLOSE), 1, "the lost connection is closed");
    tap_ok(script.attempts[0] == script.attempts[1], "the attempt number is the same");
    end();
}

static void test_lost_answer(void)
{
    begin();
    script_next(OP_ACQUIRE, FAILS(RLK_UNCERTAIN));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK, "a lost answer is asked for again");
    tap_is_str(script_calls(), "meta acquire open meta acquire renew",
               "on a new connection, and the grant found is renewed, which a standby must confirm");
    tap_ok(script.attempts[0] == script.attempts[1], "so that the database knows its own grant");
    tap_ok(script.attempts[0] > 0, "attempt numbers are above nought");
    end();
}

static void test_new_attempts(void)
{
    begin();
    int got = rowlock_acquire(lock, NULL) | rowlock_release(lock) | rowlock_acquire(lock, NULL);
    tap_is_int(got, ROWLOCK_OK, "acquire, release, acquire");
    tap_ok(script.attempts[0] != script.attempts[1],
           "each acquire has an attempt number of its own");
    end();
}

static void test_own_sending_in_flight(void)
{
    begin();
    script_next(OP_ACQUIRE, FAILS(RLK_UNCERTAIN));
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_IN_FLIGHT));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK,
               "asked again, the lock is in flight: perhaps by the first sending");
    tap_ok(script.attempt_count == 3 && script.attempts[2] == script.attempts[0],
           "so it is asked once more, with the same number, which finds the grant");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "it is released");
    end();
}

static void test_uncertain_acquire(void)
{
    begin();
    script_next(OP_ACQUIRE, FAILS(RLK_UNCERTAIN));
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_EUNCERTAIN,
               "an answer that cannot be had again in time leaves acquire uncertain");
    tap_is_int(rowlock_lock_token(lock), 0, "nothing is held as far as we know");
    tap_is_int(rowlock_release(lock), ROWLOCK_EMISUSE, "so nothing can be released");
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_ECONN, "still no connection");
    script_always(OP_OPEN, ANSWER(.class = RLK_DONE));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK, "the next acquire gets through");
    tap_ok(script.attempt_count == 2 && script.attempts[0] == script.attempts[1],
           "and asks with the number of the uncertain one, ECONN in between or not");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "it is released");
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK, "it is acquired anew");
    tap_ok(script.attempts[2] != script.attempts[1], "now with another number");
    end();
}

/* The grant that may stand in the table is taken back when nobody will ask for it any more. */
static void test_withdrawn(void)
{
    begin();
    script_next(OP_ACQUIRE, FAILS(RLK_UNCERTAIN));
    script_next(OP_OPEN, FAILS(RLK_DENIED));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_EUNCERTAIN, "an acquire of unknown outcome");
    script_calls();
    rowlock_lock_close(lock);
    tap_is_str(script_calls(), "open meta withdraw", "is withdrawn when its handle is closed");
    tap_ok(script.withdrawn == script.attempts[0], "by its number");
    lock = must_lock(db, "nightly");
    script_next(OP_ACQUIRE, FAILS(RLK_UNCERTAIN));
    script_next(OP_OPEN, FAILS(RLK_DENIED));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_EUNCERTAIN, "another one");
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK, "which is found out");
    script_calls();
    rowlock_lock_close(lock);
    tap_is_str(script_calls(), "release", "is released as any other");
    lock = must_lock(db, "nightly");
    script_next(OP_ACQUIRE, FAILS(RLK_UNCERTAIN));
    script_next(OP_OPEN, FAILS(RLK_DENIED));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_EUNCERTAIN, "a third one");
    script_calls();
    rowlock_db_close(db);
    tap_is_str(script_calls(), "open meta withdraw", "is withdrawn when the db is closed");
    rowlock_lock_close(lock);
}

static void test_uncertain_then_busy(void)
{
    begin();
    script_next(OP_ACQUIRE, FAILS(RLK_UNCERTAIN));
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_BUSY,
               "a lost answer, and the second says that a rival holds it");
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK, "the next try is granted");
    tap_ok(script.attempts[2] == script.attempts[1],
           "with the same number, since the first sending may still be on its way");
    end();
}

/* The second sending only loses races: whether the first was carried out is not known. */
static void test_uncertain_then_contention(void)
{
    begin();
    script_next(OP_ACQUIRE, FAILS(RLK_UNCERTAIN));
    script_always(OP_ACQUIRE, FAILS(RLK_CONTENTION));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_EUNCERTAIN,
               "a lost answer and then lost races only: not busy, but uncertain");
    script_always(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK, "the next acquire is granted");
    tap_ok(script.attempts[script.attempt_count - 1] == script.attempts[0],
           "the number is still the same");
    end();
}

/* What a reconnect takes is not taken off the time that a try goes on against lost races. */
static void test_slow_reconnect_then_contention(void)
{
    begin();
    script_jump();
    script_next(OP_ACQUIRE, FAILS(RLK_UNSENT));
    script_next(OP_OPEN, ANSWER(.takes_us = 2 * SCRIPT_MOMENT_MS * 1000));
    script_next(OP_ACQUIRE, FAILS(RLK_CONTENTION));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK,
               "a connection lost, a slow one instead, a lost race: granted all the same");
    end();
}

static void test_uncertain_then_refused(void)
{
    static const enum rlk_class then[] = {RLK_DENIED, RLK_SCHEMA, RLK_READONLY, RLK_NOMEM,
                                          RLK_REFUSED};
    for (size_t i = 0; i < sizeof then / sizeof then[0]; i++) {
        begin();
        script_next(OP_ACQUIRE, FAILS(RLK_UNCERTAIN));
        script_next(OP_ACQUIRE, FAILS(then[i]));
        tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_EUNCERTAIN,
                   "a lost answer and then class %d is uncertain", (int)then[i]);
        tap_is_int(error_code(db), ROWLOCK_EUNCERTAIN, "the error kept says so too");
        end();
    }
}

/* ---- bounds */

static void test_reconnect_is_bounded(void)
{
    begin_holding();
    script_always(OP_RENEW, FAILS(RLK_UNSENT));
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    int64_t began = clock_ms();
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_ECONN, "a database that is gone is given up");
    int64_t took = clock_ms() - began;
    tap_ok(took <= SCRIPT_MOMENT_MS + slow_ms(50), "within reconnect_ms: %d ms", (int)took);
    tap_ok(script_count(OP_OPEN) >= 3 && script_count(OP_OPEN) < 100,
           "after some tries with growing pauses: %d", script_count(OP_OPEN));
    tap_ok(rowlock_lock_token(lock) > 0, "the lock is still held, as far as is known");
    script_always(OP_OPEN, ANSWER(.class = RLK_DONE));
    script_always(OP_RENEW, ANSWER(.class = RLK_DONE));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "when the database is back, all goes on");
    end();
}

static void test_never_reconnect(void)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.reconnect_ms = -1;
    script_reset();
    db = script_open(&options);
    lock = must_lock(db, "nightly");
    script_next(OP_ACQUIRE, FAILS(RLK_UNCERTAIN));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_EUNCERTAIN,
               "who never wants to reconnect is told at once");
    tap_is_str(script_calls(), "meta acquire", "nothing is sent again");
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK, "the next call makes a new connection");
    tap_is_str(script_calls(), "open meta acquire renew", "once");
    end();
}

static void test_adopted(void)
{
    begin_adopted();
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK, "an adopted connection works");
    script_calls();
    script_next(OP_RENEW, FAILS(RLK_UNCERTAIN));
    db->reconnect_us = 30 * 1000000;
    int64_t began = clock_ms();
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_EUNCERTAIN, "its lost answer is told");
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_ECONN, "after that it is lost for good");
    tap_ok(clock_ms() - began < slow_ms(1000), "which is said at once");
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db_error(db, &err);
    tap_ok(strstr(err.text, "adopt") != NULL, "the text says what to do: %s", err.text);
    tap_is_int(rowlock_release(lock), ROWLOCK_ECONN, "for every call");
    tap_is_str(script_calls(), "renew", "nothing is sent on it, nor is one opened");
    rowlock_lock_close(lock);
    tap_is_int(script_count(OP_CLOSE), 0, "it is not closed before the handle");
    rowlock_db_close(db);
}

static void test_adopted_race(void)
{
    begin_adopted();
    script_next(OP_ACQUIRE, FAILS(RLK_CONTENTION));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK, "a lost race on it is tried again");
    end();
}

static void test_storm(void)
{
    begin();
    script_always(OP_ACQUIRE, FAILS(RLK_CONTENTION));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_BUSY, "a storm of lost races is busy");
    rowlock_grant holder = ROWLOCK_GRANT_INIT;
    tap_is_int(rowlock_lock_holder(lock, &holder), ROWLOCK_NONE, "nobody can be named");
    tap_ok(script_count(OP_ACQUIRE) > 3, "it was tried several times: %d",
           script_count(OP_ACQUIRE));
    end();
}

/* The statement deadline is the handle's, however long a try may go on against contention. */
static void test_long_deadline(void)
{
    begin();
    db->statement_us = 60 * 1000000;
    script_always(OP_ACQUIRE, ANSWER(.class = RLK_CONTENTION, .takes_us = 200000));
    int64_t began = rlk_now_us();
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_BUSY, "a storm, and a deadline of a minute");
    tap_ok(rlk_now_us() - began < 1500000, "a try gives up after a second all the same");
    end();
}

static void test_deadline_of_a_call(void)
{
    begin();
    script_freeze();
    script_next(OP_META, ANSWER(.takes_us = 20000));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK, "a slow look at the tables");
    tap_is_int(script.deadline_us - rlk_now_us(), SCRIPT_MOMENT_MS * 1000,
               "does not shorten the statement's deadline");
    end();
}

/* ---- several servers */

static void test_wrong_server(void)
{
    script_reset();
    script.several = true;
    db = script_open(NULL);
    lock = must_lock(db, "nightly");
    script_calls();
    script_next(OP_ACQUIRE, FAILS(RLK_READONLY));
    script_next(OP_OPEN, FAILS(RLK_READONLY));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK,
               "of several servers another one is looked for when one takes no writes");
    tap_is_str(script_calls(), "meta acquire open open meta acquire",
               "until one is found, whose tables are looked at");
    tap_is_int(script_count(OP_CLOSE), 2, "the wrong ones are left");
    end();
}

static void test_no_server_takes_writes(void)
{
    begin_holding();
    db->several = true;
    script.several = true;
    script_always(OP_RENEW, FAILS(RLK_READONLY));
    int64_t began = clock_ms();
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_EREADONLY, "when none of several takes writes");
    tap_ok(clock_ms() - began <= SCRIPT_MOMENT_MS + slow_ms(50),
           "that is told within reconnect_ms");
    tap_ok(script_count(OP_OPEN) >= 3, "after some tries: %d", script_count(OP_OPEN));
    script_always(OP_OPEN, FAILS(RLK_READONLY));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_EREADONLY, "the same when none lets us in");
    script_next(OP_OPEN, FAILS(RLK_READONLY));
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_ECONN, "when they are gone it is the connection");
    script_always(OP_OPEN, ANSWER(.class = RLK_DONE));
    script_always(OP_RENEW, ANSWER(.class = RLK_DONE));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "when one takes writes, all goes on");
    end();
}

static void test_lost_answer_on_a_dying_primary(void)
{
    begin_holding();
    db->several = true;
    script.several = true;
    script_next(OP_RENEW, FAILS(RLK_UNCERTAIN));
    script_always(OP_OPEN, FAILS(RLK_READONLY));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_EUNCERTAIN,
               "a lost answer stays uncertain when only servers without writes can be asked");
    script_always(OP_OPEN, ANSWER(.class = RLK_DONE));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "when one takes writes, all goes on");
    end();
}

static void test_single_server(void)
{
    begin_holding();
    script_next(OP_RENEW, FAILS(RLK_READONLY));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_EREADONLY, "a single server that takes no writes");
    tap_is_str(script_calls(), "renew", "is told at once, and stays connected");
    end();
    begin_adopted();
    script.several = true;
    script_next(OP_ACQUIRE, FAILS(RLK_READONLY));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_EREADONLY, "so is an adopted connection");
    tap_is_str(script_calls(), "meta acquire", "which nobody else can be had for");
    end();
}

/* ---- the tables after a reconnect */

static void test_other_database(void)
{
    begin_holding();
    script_next(OP_RENEW, FAILS(RLK_UNSENT));
    script_always(OP_META, ANSWER(.identity = "second"));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_ESCHEMA,
               "after a reconnect to another installation nothing is renewed");
    tap_is_str(script_calls(), "renew open meta", "nor sent at all");
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db_error(db, &err);
    tap_ok(strstr(err.text, "another installation") && strstr(err.text, "second"),
           "the text names it: %s", err.text);
    tap_ok(rowlock_lock_token(lock) > 0, "the grant is not called lost");
    script_always(OP_META, ANSWER(.identity = "first"));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "on the right one all goes on");
    end();
}

static void test_other_database_after_lost_answer(void)
{
    begin_holding();
    script_next(OP_RENEW, FAILS(RLK_UNCERTAIN));
    script_always(OP_META, ANSWER(.identity = "second"));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_EUNCERTAIN,
               "a lost answer stays uncertain when only another installation can be asked");
    tap_is_int(error_code(db), ROWLOCK_EUNCERTAIN, "the error kept says so too");
    end();
}

/* ---- release */

static void test_release_applied(void)
{
    begin_holding();
    script_next(OP_RELEASE, FAILS(RLK_UNCERTAIN));
    script_next(OP_RELEASE, ANSWER(.missing = true));
    tap_is_int(rowlock_release(lock), ROWLOCK_OK,
               "a lost answer, no row at the second look, and the token still ours: released");
    tap_is_str(script_calls(), "release open meta release last", "the token is looked up");
    tap_is_int(rowlock_release(lock), ROWLOCK_EMISUSE, "it is not held any more");
    end();
}

static void test_release_not_applied(void)
{
    begin_holding();
    script_next(OP_RELEASE, FAILS(RLK_UNCERTAIN));
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "a lost answer, and the second look releases");
    tap_is_str(script_calls(), "release open meta release", "no question is left");
    end();
}

static void test_release_overtaken(struct script_answer last, const char *how)
{
    begin_holding();
    script_next(OP_RELEASE, FAILS(RLK_UNCERTAIN));
    script_next(OP_RELEASE, ANSWER(.missing = true));
    script_always(OP_LAST, last);
    tap_is_int(rowlock_release(lock), ROWLOCK_LOST,
               "a lost answer, no row at the second look, and %s: lost", how);
    tap_is_int(error_code(db), ROWLOCK_LOST, "the error kept says so");
    tap_is_int(rowlock_lock_token(lock), 0, "the handle is done with it");
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK, "and can acquire anew");
    end();
}

/* The row is gone, but what became of the lock cannot be asked. */
static void test_release_unanswered(enum rlk_class class)
{
    begin_holding();
    int64_t token = rowlock_lock_token(lock);
    script_next(OP_RELEASE, FAILS(RLK_UNCERTAIN));
    script_always(OP_RELEASE, ANSWER(.missing = true));
    script_always(OP_LAST, FAILS(class));
    tap_is_int(rowlock_release(lock), ROWLOCK_EUNCERTAIN, "no answer about the token (%d)",
               (int)class);
    tap_is_int(rowlock_lock_token(lock), token, "the handle counts as holding");
    script_always(OP_LAST, ANSWER(.token = token));
    script_calls();
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "called again it is settled");
    tap_ok(strstr(script_calls(), "release last") != NULL, "by row and token");
    tap_is_int(rowlock_lock_token(lock), 0, "then nothing is held");
    end();
}

static void test_release_lost(void)
{
    begin_holding();
    script_next(OP_RELEASE, ANSWER(.missing = true));
    tap_is_int(rowlock_release(lock), ROWLOCK_LOST, "no row at the first look is a loss");
    tap_is_str(script_calls(), "release", "whatever the token");
    end();
}

/* The call that sent the delete gave up; a later one finds the row gone. */
static void test_release_later(void)
{
    begin_holding();
    script_next(OP_RELEASE, FAILS(RLK_UNCERTAIN));
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    tap_is_int(rowlock_release(lock), ROWLOCK_EUNCERTAIN, "no connection for the second look");
    tap_ok(rowlock_lock_token(lock) > 0, "the handle still holds the lock");
    tap_is_int(rowlock_remaining_ms(lock), 0, "but the lease is not counted upon: it may be free");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_LOST, "as its state says");
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_ECONN, "it is not entered again unasked");
    script_always(OP_OPEN, ANSWER(.class = RLK_DONE));
    script_next(OP_RELEASE, ANSWER(.missing = true));
    tap_is_int(rowlock_release(lock), ROWLOCK_OK,
               "called again it finds no row, and the token tells that it was our own doing");
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK, "acquired anew");
    script_next(OP_RELEASE, ANSWER(.missing = true));
    tap_is_int(rowlock_release(lock), ROWLOCK_LOST, "a new grant knows nothing of old releases");
    end();
}

static void test_release_reconsidered(void)
{
    begin_holding();
    script_next(OP_RELEASE, FAILS(RLK_UNCERTAIN));
    script_next(OP_OPEN, FAILS(RLK_DENIED));
    tap_is_int(rowlock_release(lock), ROWLOCK_EUNCERTAIN, "a release of unknown outcome");
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "it was not carried out: a renewal finds it");
    tap_ok(rowlock_remaining_ms(lock) > 0, "and the lease is counted upon again");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_HELD, "HELD");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "it is released");
    end();
    begin_holding();
    script_next(OP_RELEASE, FAILS(RLK_UNCERTAIN));
    script_next(OP_OPEN, FAILS(RLK_DENIED));
    tap_is_int(rowlock_release(lock), ROWLOCK_EUNCERTAIN, "a release of unknown outcome");
    script_next(OP_VERIFY, ANSWER(.missing = true));
    tap_is_int(rowlock_verify(lock), ROWLOCK_LOST, "it was carried out: there is no grant");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "called again it knows its own doing");
    tap_is_int(rowlock_release(lock), ROWLOCK_EMISUSE, "and then holds nothing");
    end();
}

static void test_release_closed(void)
{
    begin_holding();
    script_next(OP_RELEASE, FAILS(RLK_UNCERTAIN));
    script_next(OP_OPEN, FAILS(RLK_DENIED));
    tap_is_int(rowlock_release(lock), ROWLOCK_EUNCERTAIN, "a release of unknown outcome");
    script_calls();
    rowlock_lock_close(lock);
    tap_is_str(script_calls(), "open meta release", "closing releases once more");
    lock = must_lock(db, "nightly");
    end();
}

/* ---- the others */

static void test_renew_again(void)
{
    begin_holding();
    script_next(OP_RENEW, FAILS(RLK_UNCERTAIN));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "a renewal may be sent twice");
    script_next(OP_RENEW, FAILS(RLK_UNCERTAIN));
    script_next(OP_RENEW, ANSWER(.missing = true));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_LOST, "no row at the second look is a loss");
    end();
}

static void test_break_again(void)
{
    rowlock_grant broken = ROWLOCK_GRANT_INIT;
    begin();
    script_next(OP_BREAK, FAILS(RLK_UNCERTAIN));
    tap_is_int(rowlock_break(db, "nightly", 7, &broken), ROWLOCK_OK,
               "a break whose answer was lost before it was done is done");
    script_next(OP_BREAK, FAILS(RLK_UNCERTAIN));
    script_next(OP_BREAK, ANSWER(.missing = true));
    tap_is_int(rowlock_break(db, "nightly", 7, &broken), ROWLOCK_EUNCERTAIN,
               "a lost answer and no grant at the second look: not called NONE");
    script_next(OP_BREAK, ANSWER(.missing = true));
    tap_is_int(rowlock_break(db, "nightly", 7, &broken), ROWLOCK_NONE,
               "no grant at the first look is NONE");
    end();
}

static int count_grants(void *context, const rowlock_grant *grant)
{
    (void)grant;
    ++*(int *)context;
    return 0;
}

static void test_list_pages(void)
{
    int seen = 0;
    begin();
    script_next(OP_LIST, ANSWER(.rows = 500));
    script_next(OP_LIST, FAILS(RLK_UNSENT));
    script_next(OP_LIST, ANSWER(.rows = 7));
    tap_is_int(rowlock_list(db, NULL, count_grants, &seen), ROWLOCK_OK,
               "a list of two pages, the connection lost in between");
    tap_is_int(seen, 507, "tells each grant once");
    tap_is_str(script.last_after, "lock 000499", "the second page begins where the first ended");
    end();
}

static void test_sweep_batches(void)
{
    rowlock_sweep_options options = ROWLOCK_SWEEP_OPTIONS_INIT;
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    options.batch = 10;
    begin();
    script_next(OP_SWEEP, ANSWER(.rows = 10));
    script_next(OP_SWEEP, FAILS(RLK_CONTENTION));
    script_next(OP_SWEEP, ANSWER(.rows = 10));
    script_next(OP_SWEEP, ANSWER(.rows = 3));
    script_next(OP_SWEEP_WAITERS, ANSWER(.rows = 10));
    script_next(OP_SWEEP_WAITERS, FAILS(RLK_UNSENT));
    script_next(OP_SWEEP_WAITERS, ANSWER(.rows = 2));
    script_next(OP_FOLD, ANSWER(.rows = 10));
    script_next(OP_FOLD, ANSWER(.rows = 4));
    tap_is_int(rowlock_sweep(db, &options, &report), ROWLOCK_OK, "a sweep of several batches");
    tap_is_str(script_calls(),
               "meta sweep sweep sweep sweep sweep_waiters sweep_waiters open meta sweep_waiters "
               "fold fold",
               "goes on until a batch is not full");
    tap_ok(report.locks == 23 && report.waiters == 12 && report.counters == 14 &&
               report.batches == 7,
           "and counts what it did");
    tap_is_str(script.last_after, "lock 000019", "each batch begins where the last one ended");
    end();
}

static void test_close_unreachable(void)
{
    begin();
    rowlock_lock *more[20];
    int got = rowlock_acquire(lock, NULL);
    for (size_t i = 0; i < 20; i++) {
        more[i] = must_lock(db, "another");
        got |= rowlock_acquire(more[i], NULL);
    }
    tap_is_int(got, ROWLOCK_OK, "many locks are held");
    script_always(OP_RELEASE, FAILS(RLK_UNSENT));
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    int64_t began = clock_ms();
    rowlock_db_close(db);
    int64_t took = clock_ms() - began;
    tap_ok(took < 2 * SCRIPT_MOMENT_MS + slow_ms(50),
           "closing a handle on a database that is gone waits once, not for each: %d ms",
           (int)took);
    rowlock_lock_close(lock);
    for (size_t i = 0; i < 20; i++)
        rowlock_lock_close(more[i]);
}

int main(void)
{
    test_lost_race();
    test_reconnect();
    test_lost_answer();
    test_new_attempts();
    test_own_sending_in_flight();
    test_uncertain_acquire();
    test_withdrawn();
    test_uncertain_then_busy();
    test_uncertain_then_contention();
    test_slow_reconnect_then_contention();
    test_uncertain_then_refused();
    test_reconnect_is_bounded();
    test_never_reconnect();
    test_adopted();
    test_adopted_race();
    test_storm();
    test_long_deadline();
    test_deadline_of_a_call();
    test_wrong_server();
    test_no_server_takes_writes();
    test_lost_answer_on_a_dying_primary();
    test_single_server();
    test_other_database();
    test_other_database_after_lost_answer();
    test_release_applied();
    test_release_not_applied();
    test_release_overtaken(ANSWER(.token = 99), "a newer token");
    test_release_overtaken(ANSWER(.missing = true), "no counter");
    test_release_unanswered(RLK_DENIED);
    test_release_unanswered(RLK_UNSENT);
    test_release_reconsidered();
    test_release_closed();
    test_release_lost();
    test_release_later();
    test_renew_again();
    test_break_again();
    test_list_pages();
    test_sweep_batches();
    test_close_unreachable();
    return tap_done();
}
