/* SPDX-License-Identifier: MIT
 *
 * Several locks at once: in which steps, in which queue a caller waits, and what lost and late answers leave
 * behind. What is granted, to whom and when, is in many.c. */
#include "backend_script.h"

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

static void end(void)
{
    close_each_lock(locks, THREE);
    rowlock_db_close(db);
    memset(locks, 0, sizeof locks);
    db = NULL;
}

/* Ends the test before. */
static void begin(void)
{
    end();
    script_reset();
    db = script_open(NULL);
    open_locks();
    script_always(OP_LIST, ANSWER(.rows = 1)); /* who is in the way */
    script_jump();
}

static int get_all(int64_t wait_ms)
{
    rowlock_acquire_options options = *OPTIONS(acquire, .ttl_ms = TTL_MS, .wait_ms = wait_ms);
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
        count += rowlock_lock_token(locks[i]) != 0 || rowlock_lock_remaining_ms(locks[i]) != 0 ||
                 rowlock_lock_state(locks[i]) != ROWLOCK_STATE_NONE;
    return count;
}

/* ---- granted */

static void test_granted(void)
{
    begin();
    tap_is_int(rowlock_acquire_all(locks, 1, NULL, NULL), ROWLOCK_OK, "a single lock");
    tap_is_str(script_calls(), "meta acquire", "is acquired as such");
    begin();
    tap_is_int(get_all(0), ROWLOCK_OK, "three free locks");
    tap_is_str(script_calls(), "meta acquire_all", "are had in one step");
    tap_is_str(script.names, "a b c", "in the order of their names");
    tap_ok(rowlock_lock_token(locks[1]) == 1 && rowlock_lock_token(locks[2]) == 2 &&
               rowlock_lock_token(locks[0]) == 3,
           "each has its own token");
    for (size_t i = 0; i < THREE; i++)
        tap_is_int(rowlock_lock_remaining_ms(locks[i]), TTL_MS, "and its own lease");
    tap_is_int(try_lock(locks[0], TTL_MS), ROWLOCK_OK, "one of them is entered again");
    tap_is_int(rowlock_release(locks[0]) | rowlock_release(locks[0]), ROWLOCK_OK, "and released");
    tap_is_str(script_calls(), "release", "by itself");
    rowlock_lock_close(locks[0]);
    locks[0] = NULL;
    rowlock_db_close(db);
    db = NULL;
    tap_is_str(script_calls(), "release release", "what is held is released at the end");
}

/* ---- what is not asked for */

static void refuses(rowlock_lock *one, rowlock_lock *other, int want, const char *what)
{
    tap_is_int(rowlock_acquire_all((rowlock_lock *[]){one, other}, 2, NULL, NULL), want, "%s",
               what);
}

static void test_wrong_ones(void)
{
    static rowlock_lock *crowd[1001];
    begin();
    rowlock_lock *ours = locks[2], *twin = must_lock(db, "b");
    rowlock_db *elsewhere = script_open(NULL);
    rowlock_lock *foreign = must_lock(elsewhere, "foreign");
    rowlock_lock *attached = must_attach(db, "weekly", "me", 5);
    rowlock_lock *there = must_attach(elsewhere, "weekly", "me", 5);
    script_calls();
    for (size_t i = 0; i < 1001; i++)
        crowd[i] = locks[0];
    refuses(ours, twin, ROWLOCK_EINVAL, "one name twice");
    refuses(ours, ours, ROWLOCK_EINVAL, "one handle twice");
    refuses(ours, foreign, ROWLOCK_EMISUSE, "another db's lock");
    refuses(ours, attached, ROWLOCK_EMISUSE, "one attached elsewhere");
    refuses(ours, NULL, ROWLOCK_EMISUSE, "no lock");
    tap_is_int(rowlock_acquire_all(NULL, 2, NULL, NULL), ROWLOCK_EMISUSE, "no locks");
    tap_is_int(rowlock_acquire_all(crowd, 0, NULL, NULL), ROWLOCK_EMISUSE, "none");
    tap_is_int(rowlock_acquire_all(crowd, 1001, NULL, NULL), ROWLOCK_EINVAL, "too many");
    tap_is_str(script_calls(), "", "are not asked for");
    rowlock_db_close(elsewhere);
    refuses(ours, foreign, ROWLOCK_EMISUSE, "one of a closed db");
    refuses(ours, there, ROWLOCK_EMISUSE, "an attached one of it");
    refuses(foreign, ours, ROWLOCK_EMISUSE, "wherever it stands");
    tap_is_int(try_lock(locks[0], TTL_MS), ROWLOCK_OK, "one is held");
    script_calls();
    tap_is_int(get_all(0), ROWLOCK_EMISUSE, "what is held already is not had once more");
    tap_is_int((int)which, 0, "and told which");
    tap_is_str(script_calls(), "", "without asking");
    close_locks(there, foreign, attached, twin);
}

/* ---- in line */

/* At each look another one is in the way. */
static void test_moving(void)
{
    static const struct {
        size_t held[4];
        const char *what, *calls;
    } all[] = {
        {{1, 1, 2, 2},
         "first one is held, and then another: we move to its queue, look again, and wait there",
         "meta acquire_all list enqueue acquire_all list await acquire_all list leave enqueue "
         "acquire_all list await acquire_all"},
        {{0, 1, 0, 0},
         "found otherwise at each look: we stand in one queue at a time",
         "meta acquire_all list enqueue acquire_all list leave enqueue acquire_all list leave "
         "enqueue acquire_all list await acquire_all"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        begin();
        for (size_t look = 0; look < 4; look++)
            script_next(OP_ACQUIRE_ALL, held(all[i].held[look]));
        script_next(OP_ACQUIRE_ALL, ANSWER(.class = RLK_DONE));
        tap_is_int(get_all(ROWLOCK_FOREVER), ROWLOCK_OK, "all are had in the end");
        tap_is_str(script_calls(), all[i].calls, "%s", all[i].what);
        tap_is_str(script.queue_name, i == 0 ? "c" : "a",
                   "the queue of the one that was last held");
    }
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
}

/* ---- lost answers */

static void test_lost_answer(void)
{
    begin();
    script_next(OP_ACQUIRE_ALL, FAILS(RLK_UNCERTAIN));
    tap_is_int(get_all(0), ROWLOCK_OK, "a lost answer is asked for again");
    tap_is_str(script_calls(), "meta acquire_all open meta acquire_all renew renew renew",
               "and each grant found is renewed");
    tap_is_int(script.requests[0] == script.requests[1], true, "it is the same request");
    begin();
    script_next(OP_ACQUIRE_ALL, FAILS(RLK_UNCERTAIN));
    script_next(OP_ACQUIRE_ALL, ANSWER(.outcome = RLK_IN_FLIGHT, .which = 1));
    tap_is_int(get_all(0), ROWLOCK_OK, "then it is in flight, perhaps by our own first sending");
    tap_is_int(script.request_count, 3, "so it is asked once more");
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
    tap_is_int(script.requests[0] == script.requests[script.request_count - 1], true,
               "asks with the same attempts: the first sending may still be on its way");
}

/* ---- grants that come too late */

/* Each is renewed, until a renewal fails. */
static void test_late(struct script_answer second, int64_t wait_ms, int want, const char *calls,
                      const char *what)
{
    begin();
    script_next(OP_ACQUIRE_ALL, ANSWER(.takes_us = (TTL_MS + 1) * 1000));
    script_next(OP_RENEW, ANSWER(.class = RLK_DONE));
    script_next(OP_RENEW, second);
    tap_is_int(get_all(wait_ms), want, "grants whose leases ended on their way: %s", what);
    tap_is_str(script_calls(), calls, "all are renewed, or given back");
    tap_is_int(count_held(), want == ROWLOCK_OK ? THREE : 0, "all are held, or none");
    for (size_t i = 0; i < THREE && want == ROWLOCK_OK; i++)
        tap_is_int(rowlock_lock_remaining_ms(locks[i]), TTL_MS, "with its whole lease");
    tap_is_int(error_code(db), want, "the handle says so: %s", why(db));
    if (want != ROWLOCK_OK) {
        tap_is_int((int)which, 2, "which is told");
        for (size_t i = 0; i < THREE; i++)
            tap_is_int(try_lock(locks[i], TTL_MS), ROWLOCK_OK, "each can be had by itself");
        tap_is_int(script_count(OP_ACQUIRE), THREE, "for each the database is asked anew");
    }
}

/* ---- keepers */

static int get_all_kept(rowlock_keeper *keeper)
{
    rowlock_acquire_options options = *OPTIONS(acquire, .ttl_ms = 600, .keeper = keeper);
    return rowlock_acquire_all(locks, THREE, &options, &which);
}

static rowlock_keeper *begin_kept(struct script_answer meta)
{
    rowlock_keeper *keeper = NULL;
    end();
    script_reset();
    script_next(OP_META, meta);
    tap_is_int(open_keeper_at("sqlite:script", NULL, &keeper, NULL), ROWLOCK_OK, "a keeper");
    db = script_open(NULL);
    open_locks();
    return keeper;
}

static void test_keeper(void)
{
    OWNED(keeper) rowlock_keeper *keeper = begin_kept(ANSWER(.class = RLK_DONE));
    script_freeze();
    script_next(OP_ACQUIRE_ALL, held(0));
    tap_is_int(get_all_kept(keeper), ROWLOCK_BUSY, "of what is busy");
    script_pass_ms(200);
    /* Time: the keeper may ask for what is not held. One that does so later is missed, and not
     * reported. */
    sleep_ms(50);
    tap_is_int(script_count(OP_RENEW_ALL), 0, "keeps nothing");
    tap_is_int(get_all_kept(keeper), ROWLOCK_OK, "three locks with a keeper");
    script_pass_ms(200);
    tap_ok(EVENTUALLY(script_leases(0) == THREE), "are kept, in one statement");
    end();
    rowlock_keeper_close(keeper);
    keeper = begin_kept(ANSWER(.identity = "another"));
    tap_is_int(get_all_kept(keeper), ROWLOCK_ESCHEMA, "of another installation");
    tap_is_int(script_count(OP_ACQUIRE_ALL), 0, "keeps them from being asked for");
    tap_is_int(count_held(), 0, "none of them is held");
    end();
}

int main(void)
{
    test_granted();
    test_wrong_ones();
    test_moving();
    test_races_in_line();
    test_lost_answer();
    test_uncertain_then_busy();
    test_late(ANSWER(.class = RLK_DONE), 0, ROWLOCK_OK, "meta acquire_all renew renew renew",
              "all are there");
    test_late(ANSWER(.missing = true), 0, ROWLOCK_BUSY,
              "meta acquire_all renew renew verify release release",
              "one was taken over meanwhile");
    test_late(FAILS(RLK_DENIED), 0, ROWLOCK_EDENIED,
              "meta acquire_all renew renew release withdraw release", "one cannot be renewed");
    test_late(ANSWER(.missing = true), ROWLOCK_FOREVER, ROWLOCK_OK,
              "meta acquire_all renew renew verify release release enqueue acquire_all",
              "a waiter goes on then");
    test_keeper();
    end();
    return tap_done();
}
