/* SPDX-License-Identifier: MIT
 *
 * What a holder is told of its lease by the clock: the state at each moment, and the descriptor that
 * becomes readable when the state gets worse. How a keeper changes it is in test_keeper.c. Where a
 * descriptor has to fire, the clock is the real one, ahead of it by what a test lets pass. */
#include "story.h"

enum { LONG_MS = 60000, SHORT_MS = 150, KEPT_MS = 900, PATIENCE_MS = 60000 };

/* ---- the state at a moment */

/* A lease of 1,000 us that ends at 5,000, unless it says otherwise. */
static void is_state(struct rlk_deadline watch, int64_t now_us, rowlock_state state,
                     int64_t next_us, const char *what)
{
    int64_t next = 0;
    watch.deadline_us = watch.deadline_us ? watch.deadline_us : 5000;
    watch.ttl_us = watch.ttl_us ? watch.ttl_us : 1000;
    tap_is_int(rlk_deadline_state(&watch, now_us, &next), state, "%s", what);
    tap_is_int(next, next_us, "and when that gets worse");
}

static void test_states_alone(void)
{
    struct rlk_deadline alone = {.margin_us = 100};
    is_state(alone, 4000, ROWLOCK_STATE_HELD, 4900, "no keeper renews it: HELD at first");
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
    struct rlk_deadline kept = {.margin_us = 100, .has_keeper = true};
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
    struct rlk_deadline wide = {.margin_us = 700, .has_keeper = true};
    is_state(wide, 4200, ROWLOCK_STATE_HELD, 4300, "a margin wider than half a lease:");
    is_state(wide, 4300, ROWLOCK_STATE_LOST, INT64_MAX, "LOST comes without JEOPARDY");
}

/* ---- handles */

static int open_fd(void)
{
    return rowlock_lock_state_fd(story.lock);
}

static bool readable(int within_ms)
{
    struct pollfd fd = {.fd = open_fd(), .events = POLLIN};
    return poll(&fd, 1, within_ms) == 1 && fd.revents == POLLIN;
}

CALL(fd_given, open_fd());
CALL(readable_now, readable((int)with));
CALL(readable_soon, readable(PATIENCE_MS));
/* Time: a descriptor fires by the real clock. More changes nothing. */
CALL(sleeps_ms, (sleep_ms(with), with));

/* With a descriptor from the beginning. */
static void watched(void)
{
    ticking();
    tap_ok(open_fd() >= 0 && open_fd() == open_fd(), "a handle has one descriptor");
}

static void watched_holding(void)
{
    watched();
    tap_is_int(acquires(LONG_MS), ROWLOCK_OK, "a lock is granted");
}

static const struct story_row states[] = {
    {.begin = frozen},
    {"nothing is held at first", its_state, ROWLOCK_STATE_NONE},
    {"a lock is granted", acquires, ROWLOCK_OK, .with = LONG_MS},
    {"then it is HELD", its_state, ROWLOCK_STATE_HELD},
    {"until half a second before its end", its_state, ROWLOCK_STATE_HELD,
     .after_ms = LONG_MS - 501},
    {"then LOST", its_state, ROWLOCK_STATE_LOST, .after_ms = 1},
    {"though half a second remains", remaining_ms, 500},
    {"it is renewed after all", renews, ROWLOCK_OK},
    {"and HELD: no keeper has given it up", its_state, ROWLOCK_STATE_HELD},
    {"it is found to be gone", verifies, ROWLOCK_LOST, ANSWERS(GONE(VERIFY))},
    {"LOST", its_state, ROWLOCK_STATE_LOST},
    {"released", releases, ROWLOCK_LOST},
    {"nothing is held", its_state, ROWLOCK_STATE_NONE},
};

static void margin(int64_t ttl_ms, int64_t asked_ms, int64_t margin_ms)
{
    rowlock_acquire_options options = *OPTIONS(acquire, .ttl_ms = ttl_ms, .margin_ms = asked_ms);
    frozen();
    tap_is_int(rowlock_acquire(story.lock, &options), ROWLOCK_OK, "a lease of %d ms", (int)ttl_ms);
    script_pass_ms(ttl_ms - margin_ms - 1);
    tap_is_int(its_state(0), ROWLOCK_STATE_HELD, "HELD until its margin");
    script_pass_ms(1);
    tap_is_int(its_state(0), ROWLOCK_STATE_LOST, "of %d ms", (int)margin_ms);
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

static const struct story_row descriptors[] = {
    {.begin = watched},
    {"it is not readable while nothing is held", readable_now, false},
    {"a lock is granted", acquires, ROWLOCK_OK, .with = LONG_MS},
    {"nor while the lock is HELD", readable_now, false},
    {"renewed in time", renews, ROWLOCK_OK, .after_ms = LONG_MS - 50},
    {"it is not readable: the timer was set anew", readable_now, false, .with = 100},
    {"the lease is shorter now", renews, ROWLOCK_OK, .with = SHORT_MS + 500},
    {"when it ends, the descriptor is readable", readable_soon, true},
    {"since the lock is LOST", its_state, ROWLOCK_STATE_LOST},
    {"asking makes it unreadable", readable_now, false, .with = 100},
    {"renewed once more", renews, ROWLOCK_OK, .with = SHORT_MS + 500},
    {"it tells the next end, too", readable_soon, true},
    {"renewed without having asked", renews, ROWLOCK_OK, .with = LONG_MS},
    {"it is unreadable: what it told is over", readable_now, false},
    {.begin = ticking},
    {"a lease for a moment", acquires, ROWLOCK_OK, .with = SHORT_MS},
    {"comes to its end", sleeps_ms, SHORT_MS, .with = SHORT_MS},
    {"asked for after that, the descriptor is readable", readable_soon, true},
    {.begin = holding},
    {"a grant is gone", renews, ROWLOCK_LOST, ANSWERS(GONE(RENEW))},
    {"asked for then, it is readable", readable_soon, true},
    {"LOST", its_state, ROWLOCK_STATE_LOST},
    {"until that was asked for", readable_now, false},
    {.begin = watched_holding},
    {"the grant is gone", verifies, ROWLOCK_LOST, ANSWERS(GONE(VERIFY))},
    {"the descriptor says so", readable_soon, true},
    {"released", releases, ROWLOCK_LOST},
    {"then there is nothing to say", readable_now, false},
    {"granted again", acquires, ROWLOCK_OK, .with = LONG_MS},
    {"nor of the next grant", readable_now, false},
    /* After each of these nothing is held: no end of a lease is told any more. */
    {.begin = watched},
    {"granted", acquires, ROWLOCK_OK, .with = SHORT_MS},
    {"released", releases, ROWLOCK_OK},
    {"no end is told of a lease that was released", readable_now, false, .with = SHORT_MS},
    {"granted", acquires, ROWLOCK_OK, .with = SHORT_MS},
    {"forgotten", forgets, 0},
    {"no end is told of a lease that was forgotten", readable_now, false, .with = SHORT_MS},
    {"granted", acquires, ROWLOCK_OK, .with = SHORT_MS},
    {"a release that another came before", releases, ROWLOCK_LOST,
     ANSWERS(LOST(RELEASE), GONE(RELEASE), SAYS(LAST, .token = 99))},
    {"is the end of it all the same", readable_now, false, .with = SHORT_MS},
    {"a grant that came too late", acquires, ROWLOCK_BUSY,
     ANSWERS(SAYS(ACQUIRE, .takes_us = (SHORT_MS + 1) * 1000), GONE(RENEW)), .with = SHORT_MS},
    {"was never held", readable_now, false},
    {"granted", acquires, ROWLOCK_OK, .with = SHORT_MS},
    {"the db is closed", closes_db, 0},
    {"without it a lock has no descriptor to give", fd_given, -1},
};

static void test_fd_after_db(void)
{
    watched();
    tap_is_int(acquires(SHORT_MS), ROWLOCK_OK, "a lock is granted");
    struct pollfd fd = {.fd = open_fd(), .events = POLLIN};
    closes_db(0);
    tap_is_int(poll(&fd, 1, 2 * SHORT_MS), 0, "closing the db ends what its descriptor tells");
    story_end();
    tap_ok(poll(&fd, 1, 0) == 1 && fd.revents == POLLNVAL, "closing the lock closes it");
}

/* ---- beside a keeper that hangs */

static atomic_bool hanging, hung;
static atomic_int told_jeopardy, told_lost;

static void hang(enum script_op op)
{
    int64_t until = clock_ms() + 5 * PATIENCE_MS;
    if (op != OP_RENEW_ALL)
        return;
    hung = true;
    while (hanging && clock_ms() < until)
        sleep_ms(1);
}

static void note_told(void *context, rowlock_lock *whose, rowlock_state state)
{
    told_jeopardy += state == ROWLOCK_STATE_JEOPARDY;
    told_lost += state == ROWLOCK_STATE_LOST;
}

static void kept_for(int64_t ttl_ms, void (*begin)(void))
{
    begin();
    told_jeopardy = told_lost = 0;
    tap_is_int(open_keeper_at("sqlite:script", NULL, &story.keeper, NULL), ROWLOCK_OK, "a keeper");
    rowlock_acquire_options options =
        *OPTIONS(acquire, .ttl_ms = ttl_ms, .keeper = story.keeper, .on_state = note_told);
    tap_is_int(rowlock_acquire(story.lock, &options), ROWLOCK_OK, "a lock is kept");
}

/* Its descriptor fires by the real clock, and its state gets worse by the one that stands still. */
static void kept_hanging(void)
{
    hanging = true;
    kept_for(KEPT_MS, frozen);
    script_hook(hang);
}

static void kept_long(void)
{
    kept_for(LONG_MS, opened);
    script_always(OP_RENEW_ALL, FAILS(RLK_DENIED)); /* in case it looks just then */
}

static int64_t told_when_back(int64_t unused)
{
    hanging = false;
    return EVENTUALLY(told_lost == 1);
}

CALL(hangs_soon, EVENTUALLY(hung));
CALL(hangs_untold, hung &&told_jeopardy + told_lost == 0);

static const struct story_row kept[] = {
    {.begin = kept_hanging},
    {"the keeper's statement hangs", hangs_soon, true, .after_ms = KEPT_MS / 3},
    {"meanwhile the descriptor becomes readable", readable_soon, true},
    {"before any callback could be called", hangs_untold, true},
    {"since the lock is in JEOPARDY", its_state, ROWLOCK_STATE_JEOPARDY, .after_ms = KEPT_MS / 6},
    {"and again", readable_soon, true},
    {"when it is LOST", its_state, ROWLOCK_STATE_LOST, .after_ms = KEPT_MS / 2},
    {"asking makes it unreadable", readable_now, false},
    {"the callback comes when the keeper is back", told_when_back, 1},
    {"it stays LOST: what was told is final, though it was renewed", its_state, ROWLOCK_STATE_LOST},
    {"and nothing remains", remaining_ms, 0},
    {"nothing more is to be told", readable_now, false},
    {.begin = kept_long},
    {"a descriptor is not readable while the lock is kept", readable_now, false},
    {"half of the lease has passed unnoticed: JEOPARDY", its_state, ROWLOCK_STATE_JEOPARDY,
     .after_ms = LONG_MS / 2},
    {"which was asked for, so the descriptor does not tell it", readable_now, false},
    {"renewed", renews, ROWLOCK_OK},
    {"HELD", its_state, ROWLOCK_STATE_HELD},
    {"that it got better is not told by it", readable_now, false},
    {"the keeper is closed", closes_keeper, 0},
    {"the end of its keeping is told", readable_soon, true},
    {"as JEOPARDY", its_state, ROWLOCK_STATE_JEOPARDY},
    {"once", readable_now, false},
};

/* ---- while a renewal that makes the lease shorter is under way */

enum { NEW_MS = 400 };
static int64_t its_states;

static void look_meanwhile(enum script_op op)
{
    if (op != OP_RENEW)
        return;
    its_states = remaining_ms(0) <= NEW_MS ? its_state(0) : 0;
    script_pass_ms(NEW_MS);
    tap_ok(story.keeper ? EVENTUALLY(told_lost == 1) : readable(PATIENCE_MS), "its end is told");
    its_states = 10 * its_states + its_state(0);
}

static void renewing(void)
{
    watched_holding();
    script_hook(look_meanwhile);
}

static void renewing_kept(void)
{
    kept_for(LONG_MS, frozen);
    script_hook(look_meanwhile);
}

CALL(states_meanwhile, its_states);

static const struct story_row shortened[] = {
    {.begin = renewing},
    {"a renewal for less takes as long as the new lease", renews, ROWLOCK_OK, .with = NEW_MS},
    {"meanwhile HELD, though it is less than the margin, then LOST", states_meanwhile,
     10 * ROWLOCK_STATE_HELD + ROWLOCK_STATE_LOST},
    {"nothing remains", remaining_ms, 0},
    {.begin = renewing},
    {"a renewal for less was not done", renews, ROWLOCK_EDENIED, ANSWERS(FAILED(RENEW, DENIED)),
     .with = NEW_MS},
    {"it is HELD", its_state, ROWLOCK_STATE_HELD},
    {.begin = renewing_kept},
    {"a keeper sleeps by now", sleeps_ms, SHORT_MS, .with = SHORT_MS},
    {"the same beside it", renews, ROWLOCK_OK, .with = NEW_MS},
    {"HELD, then LOST", states_meanwhile, 10 * ROWLOCK_STATE_HELD + ROWLOCK_STATE_LOST},
};

int main(void)
{
    test_states_alone();
    test_states_kept();
    TELL(states);
    test_margin();
    TELL(descriptors);
    test_fd_after_db();
    TELL(kept);
    TELL(shortened);
    return tap_done();
}
