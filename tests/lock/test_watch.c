/* SPDX-License-Identifier: MIT
 *
 * What a holder is told of his lease by the clock: the state at each moment, and the descriptor that
 * becomes readable when the state gets worse. How a keeper changes it is in test_keeper.c. Where a
 * descriptor has to fire, the clock is the real one, ahead of it by what a test lets pass.
 */
#include "backend_script.h"
#include "quick.h"
#include "tap.h"

#include <poll.h>
#include <stdatomic.h>
#include <string.h>

enum { LONG_MS = 30000, SHORT_MS = 150 };

/* ---- the state at a moment */

static const char *name_of(rowlock_state state)
{
    static const char *const names[] = {"NONE", "HELD", "JEOPARDY", "LOST"};
    return names[state];
}

/* A lease of 1,000 us that ends at 5,000, unless it says otherwise. */
static void is_state(struct rlk_watch watch, int64_t now_us, rowlock_state state, int64_t next_us,
                     const char *what)
{
    int64_t next = 0;
    watch.deadline_us = watch.deadline_us ? watch.deadline_us : 5000;
    watch.ttl_us = watch.ttl_us ? watch.ttl_us : 1000;
    tap_is_str(name_of(rlk_watch_state(&watch, now_us, &next)), name_of(state), "%s", what);
    tap_is_int(next, next_us, "and when that gets worse");
}

static void test_states_alone(void)
{
    struct rlk_watch alone = {.margin_us = 100};
    is_state(alone, 4000, ROWLOCK_STATE_HELD, 4900, "nobody keeps it: HELD at first");
    is_state(alone, 4899, ROWLOCK_STATE_HELD, 4900, "HELD until the margin");
    is_state(alone, 4900, ROWLOCK_STATE_LOST, INT64_MAX, "LOST from then on");
    is_state(alone, 9000, ROWLOCK_STATE_LOST, INT64_MAX, "and ever after");
    alone.failing = true;
    is_state(alone, 4700, ROWLOCK_STATE_HELD, 4900, "JEOPARDY is for what is kept");
    alone.margin_us = 0;
    is_state(alone, 4999, ROWLOCK_STATE_HELD, 5000, "HELD to its very end");
    is_state(alone, 5000, ROWLOCK_STATE_LOST, INT64_MAX, "and LOST at it");
    alone.over = true;
    is_state(alone, 4000, ROWLOCK_STATE_LOST, INT64_MAX, "LOST once it is gone");
}

static void test_states_kept(void)
{
    struct rlk_watch kept = {.margin_us = 100, .kept = true};
    is_state(kept, 4000, ROWLOCK_STATE_HELD, 4500, "kept: HELD at first");
    is_state(kept, 4499, ROWLOCK_STATE_HELD, 4500, "HELD until half of it has passed");
    is_state(kept, 4500, ROWLOCK_STATE_JEOPARDY, 4900, "JEOPARDY from then on");
    is_state(kept, 4899, ROWLOCK_STATE_JEOPARDY, 4900, "until the margin");
    is_state(kept, 4900, ROWLOCK_STATE_LOST, INT64_MAX, "then LOST");
    kept.failing = true;
    is_state(kept, 4000, ROWLOCK_STATE_JEOPARDY, 4900, "JEOPARDY when a renewal failed");
    is_state(kept, 4900, ROWLOCK_STATE_LOST, INT64_MAX, "until LOST");
    kept.over = true;
    is_state(kept, 4000, ROWLOCK_STATE_LOST, INT64_MAX, "LOST is final");
    struct rlk_watch wide = {.margin_us = 700, .kept = true};
    is_state(wide, 4200, ROWLOCK_STATE_HELD, 4300, "a margin wider than half a lease:");
    is_state(wide, 4300, ROWLOCK_STATE_LOST, INT64_MAX, "LOST comes without JEOPARDY");
}

/* ---- handles */

static rowlock_db *db;
static rowlock_lock *lock;

static void begin(void)
{
    script_reset();
    db = script_open(NULL);
    lock = must_lock(db, "nightly");
}

static void end(void)
{
    rowlock_lock_close(lock);
    rowlock_db_close(db);
}

static void hold(int64_t ttl_ms)
{
    if (try_lock(lock, ttl_ms) != ROWLOCK_OK)
        tap_ok(false, "a lock is granted: %s", why(db));
}

static bool readable(int within_ms)
{
    struct pollfd fd = {.fd = rowlock_lock_fd(lock), .events = POLLIN};
    return poll(&fd, 1, within_ms) == 1 && fd.revents == POLLIN;
}

static bool soon_readable(void)
{
    return readable((int)slow_ms(10000));
}

static void is_now(rowlock_state state, const char *what)
{
    tap_is_str(name_of(rowlock_lock_state(lock)), name_of(state), "%s", what);
}

static void test_state_of_handle(void)
{
    begin();
    script_freeze();
    is_now(ROWLOCK_STATE_NONE, "nothing is held at first");
    hold(LONG_MS);
    is_now(ROWLOCK_STATE_HELD, "then it is HELD");
    script_pass_ms(LONG_MS - 501);
    is_now(ROWLOCK_STATE_HELD, "until half a second before its end");
    script_pass_ms(1);
    is_now(ROWLOCK_STATE_LOST, "then LOST");
    tap_is_int(rowlock_remaining_ms(lock), 500, "though half a second remains");
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "it is renewed after all");
    is_now(ROWLOCK_STATE_HELD, "and HELD: no keeper has given it up");
    script_next(OP_VERIFY, ANSWER(.missing = true));
    tap_is_int(rowlock_verify(lock), ROWLOCK_LOST, "it is found to be gone");
    is_now(ROWLOCK_STATE_LOST, "LOST");
    tap_is_int(rowlock_release(lock), ROWLOCK_LOST, "released");
    is_now(ROWLOCK_STATE_NONE, "nothing is held");
    end();
    tap_is_int(rowlock_lock_state(NULL), ROWLOCK_STATE_NONE, "nor by no handle");
    tap_is_int(rowlock_lock_fd(NULL), -1, "which has no descriptor either");
}

static void margin(int64_t ttl_ms, int64_t asked_ms, int64_t margin_ms)
{
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.ttl_ms = ttl_ms;
    options.margin_ms = asked_ms;
    begin();
    script_freeze();
    tap_is_int(rowlock_acquire(lock, &options), ROWLOCK_OK, "a lease of %d ms", (int)ttl_ms);
    script_pass_ms(ttl_ms - margin_ms - 1);
    is_now(ROWLOCK_STATE_HELD, "HELD until its margin");
    script_pass_ms(1);
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_LOST, "of %d ms", (int)margin_ms);
    end();
}

static void test_margin(void)
{
    margin(100, 0, 20);
    margin(1000, 0, 50);
    margin(60000, 0, 500);
    margin(60000, 20000, 20000);
    margin(1000, 1, 1);
}

/* ---- the descriptor */

static void test_fd_alone(void)
{
    begin();
    int fd = rowlock_lock_fd(lock);
    tap_ok(fd >= 0 && rowlock_lock_fd(lock) == fd, "a handle has one descriptor");
    tap_ok(!readable(0), "which is not readable while nothing is held");
    hold(LONG_MS);
    tap_ok(!readable(0), "nor while the lock is HELD");
    script_pass_ms(LONG_MS - 50);
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "renewed in time");
    tap_ok(!readable(100), "it is not readable: the timer was set anew");
    tap_is_int(rowlock_renew(lock, SHORT_MS + 500), ROWLOCK_OK, "the lease is shorter now");
    tap_ok(soon_readable(), "when it ends, the descriptor is readable");
    is_now(ROWLOCK_STATE_LOST, "since the lock is LOST");
    tap_ok(!readable(100), "asking makes it unreadable");
    tap_is_int(rowlock_renew(lock, SHORT_MS + 500), ROWLOCK_OK, "renewed once more");
    tap_ok(soon_readable(), "it tells the next end, too");
    tap_is_int(rowlock_renew(lock, LONG_MS), ROWLOCK_OK, "renewed without having asked");
    tap_ok(!readable(0), "it is unreadable: what it told is over");
    tap_is_int(rowlock_lock_fd(lock), fd, "all with one descriptor");
    end();
}

static void test_fd_asked_late(void)
{
    begin();
    hold(SHORT_MS);
    sleep_ms(SHORT_MS);
    tap_ok(readable(0), "asked for after the end, the descriptor is readable at once");
    end();
    begin();
    hold(LONG_MS);
    script_next(OP_RENEW, ANSWER(.missing = true));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_LOST, "a grant is gone");
    tap_ok(readable(0), "asked for then, it is readable");
    is_now(ROWLOCK_STATE_LOST, "LOST");
    tap_ok(!readable(0), "until that was asked for");
    end();
}

static void test_fd_lost(void)
{
    begin();
    hold(LONG_MS);
    tap_ok(!readable(0), "held");
    script_next(OP_VERIFY, ANSWER(.missing = true));
    tap_is_int(rowlock_verify(lock), ROWLOCK_LOST, "the grant is gone");
    tap_ok(readable(0), "the descriptor says so at once");
    tap_is_int(rowlock_release(lock), ROWLOCK_LOST, "released");
    tap_ok(!readable(0), "then there is nothing to say");
    hold(LONG_MS);
    tap_ok(!readable(0), "nor of the next grant");
    end();
}

/* After each of these nothing is held: no end of a lease is told any more. */
static void test_fd_of_nothing(void)
{
    begin();
    rowlock_lock_fd(lock);
    hold(SHORT_MS);
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "released");
    tap_ok(!readable(SHORT_MS), "no end is told of a lease that was released");
    hold(SHORT_MS);
    rowlock_lock_forget(lock);
    tap_ok(!readable(SHORT_MS), "nor of one that was forgotten");
    hold(SHORT_MS);
    script_next(OP_RELEASE, FAILS(RLK_UNCERTAIN));
    script_next(OP_RELEASE, ANSWER(.missing = true));
    script_next(OP_LAST, ANSWER(.token = 99));
    tap_is_int(rowlock_release(lock), ROWLOCK_LOST, "a release that another came before");
    tap_ok(!readable(SHORT_MS), "is the end of it all the same");
    script_next(OP_ACQUIRE, ANSWER(.takes_us = (SHORT_MS + 1) * 1000));
    script_next(OP_RENEW, ANSWER(.missing = true));
    tap_is_int(try_lock(lock, SHORT_MS), ROWLOCK_BUSY, "a grant that came too late");
    tap_ok(!readable(0), "was never held");
    hold(SHORT_MS);
    rowlock_db_close(db);
    tap_ok(rowlock_lock_fd(lock) == -1, "without its db a lock has no descriptor to give");
    rowlock_lock_close(lock);
}

static void test_fd_after_db(void)
{
    begin();
    hold(SHORT_MS);
    struct pollfd fd = {.fd = rowlock_lock_fd(lock), .events = POLLIN};
    rowlock_db_close(db);
    tap_is_int(poll(&fd, 1, 2 * SHORT_MS), 0, "closing the db ends what its descriptor tells");
    rowlock_lock_close(lock);
    tap_ok(poll(&fd, 1, 0) == 1 && fd.revents == POLLNVAL, "closing the lock closes it");
}

/* ---- beside a keeper that hangs */

static atomic_bool hanging, hung;
static atomic_int told_jeopardy, told_lost;

static void hang(enum script_op op)
{
    int64_t until = clock_ms() + slow_ms(20000);
    if (op != OP_RENEW_ALL)
        return;
    hung = true;
    while (hanging && clock_ms() < until)
        sleep_ms(1);
}

static void note_told(void *context, rowlock_lock *whose, rowlock_state state)
{
    (void)context;
    (void)whose;
    told_jeopardy += state == ROWLOCK_STATE_JEOPARDY;
    told_lost += state == ROWLOCK_STATE_LOST;
}

static rowlock_keeper *begin_kept(int64_t ttl_ms)
{
    rowlock_keeper *keeper = NULL;
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    begin();
    told_jeopardy = told_lost = 0;
    if (rowlock_keeper_open(&keeper, "sqlite:script", NULL, NULL) != ROWLOCK_OK)
        tap_ok(false, "a keeper is opened");
    options.ttl_ms = ttl_ms;
    options.keeper = keeper;
    options.told = note_told;
    tap_is_int(rowlock_acquire(lock, &options), ROWLOCK_OK, "a lock is kept");
    return keeper;
}

static void test_fd_hanging(void)
{
    hanging = true;
    rowlock_keeper *keeper = begin_kept(900);
    script_hook(hang);
    tap_ok(!readable(0), "its descriptor is not readable");
    tap_ok(soon_readable(), "while the keeper's statement hangs, it becomes so");
    tap_ok(hung && told_jeopardy + told_lost == 0, "before any callback could be called");
    tap_ok(rowlock_lock_state(lock) >= ROWLOCK_STATE_JEOPARDY, "since the lock is in JEOPARDY");
    bool again = rowlock_lock_state(lock) == ROWLOCK_STATE_LOST || soon_readable();
    tap_ok(again, "and again");
    is_now(ROWLOCK_STATE_LOST, "when it is LOST");
    tap_ok(!readable(0), "asking makes it unreadable");
    hanging = false;
    for (int64_t until = clock_ms() + slow_ms(10000); !told_lost && clock_ms() < until;)
        sleep_ms(1);
    tap_is_int(told_lost, 1, "the callback comes when the keeper is back");
    is_now(ROWLOCK_STATE_LOST, "it stays LOST: what was told is final, though it was renewed");
    tap_is_int(rowlock_remaining_ms(lock), 0, "and nothing remains");
    tap_ok(!readable(0), "nothing more is to be told");
    end();
    rowlock_keeper_close(keeper);
}

static void test_fd_kept(void)
{
    rowlock_keeper *keeper = begin_kept(LONG_MS);
    script_always(OP_RENEW_ALL, FAILS(RLK_DENIED)); /* in case it looks just then */
    script_pass_ms(LONG_MS / 2);
    is_now(ROWLOCK_STATE_JEOPARDY, "half of the lease has passed unnoticed: JEOPARDY");
    tap_ok(!readable(0), "which was asked for, so the descriptor does not tell it");
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "renewed");
    is_now(ROWLOCK_STATE_HELD, "HELD");
    tap_ok(!readable(0), "that it got better is not told by it");
    rowlock_keeper_close(keeper);
    tap_ok(readable(0), "that nobody keeps it any more is");
    is_now(ROWLOCK_STATE_JEOPARDY, "as JEOPARDY");
    tap_ok(!readable(0), "once");
    end();
}

int main(void)
{
    test_states_alone();
    test_states_kept();
    test_state_of_handle();
    test_margin();
    test_fd_alone();
    test_fd_asked_late();
    test_fd_lost();
    test_fd_of_nothing();
    test_fd_after_db();
    test_fd_hanging();
    test_fd_kept();
    return tap_done();
}
