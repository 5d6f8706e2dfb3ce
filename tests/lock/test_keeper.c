/* SPDX-License-Identifier: MIT
 *
 * A keeper that renews in the background: when, how many at once, what it makes of failures, and that it
 * delays no call. The clock stands still but where a row lets it go on; the keeper's thread, which
 * sleeps by the real one, looks again soon. What a holder is told by the clock alone is in test_deadline.c,
 * what rivals and the tables see of a keeper in keeper.c. */
#include "fail_alloc.h"
#include "story.h"

/* A third is 200 ms; what will be due within 50 ms is taken along; told lost 30 ms before the end. */
enum { TTL_MS = 600, THIRD_MS = 200, MARGIN_MS = 30, RETRY_MS = 30, MANY = 10000 };

/* ---- what a holder is told, a digit for each state in the order of its telling */

enum {
    NOTHING = 0,
    JEOPARDY = ROWLOCK_STATE_JEOPARDY,
    LOSS = ROWLOCK_STATE_LOST,
    JEOPARDY_THEN_HELD = 10 * JEOPARDY + ROWLOCK_STATE_HELD,
    JEOPARDY_THEN_LOSS = 10 * JEOPARDY + LOSS
};

static atomic_int told;

/* In the keeper's thread. */
static void note_told(void *context, rowlock_lock *whose, rowlock_state state)
{
    if (rowlock_lock_state(whose) != state)
        tap_note("told %d, but the state is another by now", (int)state);
    told = 10 * told + (int)state;
}

/* ---- beginnings */

/* Once its connection is lost it gives up at once: a pause would never end. */
static rowlock_keeper *open_keeper(void)
{
    rowlock_keeper *k = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    if (open_keeper_at("sqlite:script", OPTIONS(db, .reconnect_ms = -1), &k, &err) != ROWLOCK_OK)
        tap_ok(false, "a keeper is opened: %s", err.text);
    return k;
}

static void running(void)
{
    told = NOTHING;
    opened();
    story.keeper = open_keeper();
}

static void idle(void)
{
    running();
    script_freeze();
}

static int keep_with(rowlock_lock *which, rowlock_acquire_options options)
{
    options.size = sizeof options;
    options.ttl_ms = options.ttl_ms ? options.ttl_ms : TTL_MS;
    options.keeper = story.keeper;
    return rowlock_acquire(which, &options);
}

static int keep(rowlock_lock *which)
{
    return keep_with(which, (rowlock_acquire_options){.on_state = note_told});
}

static void keeping(void)
{
    idle();
    if (keep(story.lock) != ROWLOCK_OK)
        tap_ok(false, "a lock is granted at first: %s", why(story.db));
}

/* ---- calls and looks; those with "soon" wait for what the keeper's thread is about to do */

/* It waits for a moment that it has computed. The clock may go on now: before, it could pass that
 * moment unseen. */
static bool rests(void)
{
    int before = script_pauses();
    return EVENTUALLY(script_pauses() > before);
}

CALL(asked_soon, EVENTUALLY(script_count(OP_RENEW_ALL) >= with));
CALL(asked_before_rest, asked_soon(with) && rests());
/* All connections since the story began, of the handle and of the keeper. */
CALL(opened_soon, EVENTUALLY(script_count(OP_OPEN) >= with) && rests());
CALL(told_soon, EVENTUALLY(told == with));
CALL(told_before_rest, told_soon(with) && rests());
CALL(left_soon, EVENTUALLY(rowlock_lock_remaining_ms(story.lock) == with));
CALL(state_soon, EVENTUALLY(its_state(0) == with));
CALL(renewed_soon, asked_soon(with) && left_soon(TTL_MS));

/* Time: the keeper may do what it should not. A late keeper is a fault that is missed, and none that
 * is reported. */
CALL(asked_after_all, (sleep_ms(100), script_count(OP_RENEW_ALL)));
/* Time: as above. */
CALL(told_after_all, (sleep_ms(100), told));

CALL(lease_token, script.lease_token);
CALL(lease_is_owners, strcmp(script.lease_owner, rowlock_lock_owner(story.lock)) == 0);
CALL(keeps, keep(story.lock));
CALL(keeps_for,
     keep_with(story.lock, (rowlock_acquire_options){.on_state = note_told, .max_hold_ms = with}));
CALL(keeps_working,
     keep_with(story.lock, (rowlock_acquire_options){.on_state = note_told, .progress_ms = with}));
CALL(keeps_with_margin, keep_with(story.lock, (rowlock_acquire_options){.margin_ms = with}));

CALL(tells_progress, (rowlock_progress(story.lock), 0));
CALL(time_to_answer, script.deadline_us > rlk_now_us());

/* ---- renewing */

static const struct story_row renewing[] = {
    {.begin = keeping},
    {"a kept lease is HELD", its_state, ROWLOCK_STATE_HELD},
    {"it is not renewed long before a third of it has passed", asked_after_all, 0,
     .after_ms = THIRD_MS - 30},
    {"when a third has passed it is renewed, and has all of its time", renewed_soon, true,
     .calls = "renew_all", .with = 1, .after_ms = 30},
    {"and again", renewed_soon, true, .calls = "renew_all", .with = 2, .after_ms = THIRD_MS},
    {"and again", renewed_soon, true, .calls = "renew_all", .with = 3, .after_ms = THIRD_MS},
    {"by its token", lease_token, 1},
    {"and its owner", lease_is_owners, true},
    {"it is released", releases, ROWLOCK_OK, .calls = "release"},
    {"and renewed no more", asked_after_all, 3, .after_ms = 10 * TTL_MS},
    {"acquired again, an answer is lost", keeps, ROWLOCK_EUNCERTAIN,
     ANSWERS(LOST(ACQUIRE), FAILED(OPEN, DENIED))},
    {"so that the next acquire", keeps, ROWLOCK_OK},
    {"and its release", releases, ROWLOCK_OK},
    {"are followed by one of a new owner", keeps, ROWLOCK_OK},
    {"that is renewed", asked_soon, true, .with = 4, .after_ms = THIRD_MS},
    {"by that owner", lease_is_owners, true},
    {"and released", releases, ROWLOCK_OK},
    {"of all that there was nothing to tell", told_after_all, NOTHING},
    {.begin = keeping},
    {"a renewal counts from before it was sent", left_soon, true,
     ANSWERS(SAYS(RENEW_ALL, .takes_us = 150000)), .with = TTL_MS - 150, .after_ms = THIRD_MS},
    {.begin = keeping},
    {"an answer just within the new lease", asked_before_rest, true,
     ANSWERS(SAYS(RENEW_ALL, .takes_us = (TTL_MS - THIRD_MS) * 1000)), .with = 1,
     .after_ms = THIRD_MS},
    {"keeps the lock HELD", state_soon, true, .with = ROWLOCK_STATE_HELD},
    {.begin = idle},
    {"a lock that another holds", keeps, ROWLOCK_BUSY, ANSWERS(SAYS(ACQUIRE, .outcome = RLK_HELD))},
    {"is not kept", asked_after_all, 0, .after_ms = TTL_MS},
    {"until it is granted", keeps, ROWLOCK_OK},
    {"then it is", asked_soon, true, .with = 1, .after_ms = THIRD_MS},
};

static void test_together(void)
{
    keeping();
    rowlock_lock *two = must_lock(story.db, "two"), *three = must_lock(story.db, "three");
    script_pass_ms(10);
    tap_is_int(keep(two), ROWLOCK_OK, "another lock, taken a little later");
    script_pass_ms(10);
    tap_is_int(keep(three), ROWLOCK_OK, "and a third one");
    script_pass_ms(THIRD_MS - 20);
    for (int heartbeat = 0; heartbeat < 3; heartbeat++) {
        tap_ok(renewed_soon(heartbeat + 1), "the first is due");
        tap_is_int(script_leases(heartbeat), 3, "all are renewed in one statement");
        script_pass_ms(THIRD_MS);
    }
    close_locks(two, three);
}

static void test_many(void)
{
    static rowlock_lock *locks[MANY];
    idle();
    int granted = 0;
    for (int i = 0; i < MANY; i++) {
        locks[i] = must_lock(story.db, textf("lock %d", i));
        granted += keep(locks[i]) == ROWLOCK_OK;
    }
    tap_is_int(granted, MANY, "ten thousand locks are kept");
    for (int heartbeat = 0; heartbeat < 3; heartbeat++) {
        script_pass_ms(THIRD_MS);
        tap_ok(asked_soon(heartbeat + 1), "they are due");
        tap_is_int(script_leases(heartbeat), MANY, "and renewed in one statement");
        tap_is_int(asked_after_all(0), heartbeat + 1, "one for each heartbeat");
    }
    tap_is_int(told, NOTHING, "nothing was told");
    close_each_lock(locks, MANY);
    tap_is_int(script_count(OP_RELEASE), MANY, "all are released");
}

/* ---- failures */

static const struct story_row failures[] = {
    {.begin = keeping},
    {"a lease that is gone is told as LOST, after asking whether it is gone", told_soon, true,
     ANSWERS(ALWAYS_GONE(RENEW_ALL), ALWAYS_GONE(VERIFY)), "renew_all verify", .with = LOSS,
     .after_ms = THIRD_MS},
    {"the keeper leaves it alone", asked_after_all, 1, ANSWERS(ALWAYS_DONE(RENEW_ALL)), "",
     .after_ms = TTL_MS},
    {"and has told it once", told_after_all, LOSS},
    {.begin = keeping},
    {"a renewal fails", told_soon, true, ANSWERS(ALWAYS_FAILED(RENEW_ALL, DENIED)),
     .with = JEOPARDY, .after_ms = THIRD_MS},
    {"it is tried again", asked_soon, true, .with = 2,
     .after_ms = TTL_MS - THIRD_MS - MARGIN_MS - 1},
    {"JEOPARDY until the margin", its_state, ROWLOCK_STATE_JEOPARDY},
    {"told once, however often it fails", told_after_all, JEOPARDY},
    {"then the clock decides: LOST is told before the lease is over", told_soon, true,
     .with = JEOPARDY_THEN_LOSS, .after_ms = 1},
    {"what remains is not to be used", remaining_ms, 0},
    {"it is final, though the server is back", told_after_all, JEOPARDY_THEN_LOSS,
     ANSWERS(ALWAYS_DONE(RENEW_ALL)), "", .after_ms = 10},
    {"LOST it stays until its holder renews", its_state, ROWLOCK_STATE_LOST},
    {"too late", renews, ROWLOCK_LAPSED, ANSWERS(SAYS(RENEW, .lapsed_us = 5)), .with = TTL_MS},
    {"then its keeper goes on", renewed_soon, true, .with = 1, .after_ms = THIRD_MS},
    {"which is not told", told_after_all, JEOPARDY_THEN_LOSS},
    {"the row stood until its release", releases, ROWLOCK_OK},
    /* The keeper's connection is lost, and at first there is no other. */
    {.begin = keeping},
    {"a renewal that is not sent is told", told_before_rest, true,
     ANSWERS(FAILED(RENEW_ALL, UNSENT), FAILED(OPEN, UNSENT)), .with = JEOPARDY,
     .after_ms = THIRD_MS},
    {"no connection is to be had", opened_soon, true, .calls = "open", .with = 4,
     .after_ms = RETRY_MS},
    {"until it is, and the lease is HELD again", told_soon, true, .with = JEOPARDY_THEN_HELD,
     .after_ms = RETRY_MS},
};

static void test_one_of_two_locked(void)
{
    keeping();
    OWNED(lock) rowlock_lock *other = must_lock(story.db, "other");
    tap_is_int(keep(other), ROWLOCK_OK, "two locks are kept");
    script_next(OP_RENEW_ALL, ANSWER(.but = "other"));
    script_pass_ms(THIRD_MS);
    tap_ok(told_soon(JEOPARDY), "one of them is not renewed");
    tap_is_int(rowlock_lock_state(other), ROWLOCK_STATE_JEOPARDY, "that is in JEOPARDY");
    tap_is_int(its_state(0), ROWLOCK_STATE_HELD, "the other is HELD");
    script_pass_ms(RETRY_MS);
    tap_ok(asked_soon(2), "that one is tried again");
    tap_is_int(script_leases(1), 1, "by itself");
}

/* ---- conditions of the holder's */

static const struct story_row conditions[] = {
    {.begin = idle},
    {"a lock for half a second at most", keeps_for, ROWLOCK_OK, .with = 500},
    {"it is renewed", renewed_soon, true, .with = 1, .after_ms = THIRD_MS},
    {"it is renewed", renewed_soon, true, .with = 2, .after_ms = THIRD_MS},
    {"then its time is over, which is told as JEOPARDY", told_soon, true, .with = JEOPARDY,
     .after_ms = 100},
    {"it is renewed no more", asked_after_all, 2, .after_ms = THIRD_MS},
    {"progress is told", tells_progress, 0},
    {"nor is it renewed for that", asked_after_all, 2},
    {"until it ends, which is told as LOST", told_soon, true, .with = JEOPARDY_THEN_LOSS,
     .after_ms = TTL_MS - THIRD_MS - 100 - MARGIN_MS},
    {"it is released", releases, ROWLOCK_OK},
    {"the next grant", keeps_for, ROWLOCK_OK, .with = 500},
    {"has its own time", left_soon, true, .with = TTL_MS, .after_ms = THIRD_MS},
    {.begin = idle},
    {"a lock that is renewed only while work goes on", keeps_working, ROWLOCK_OK, .with = 150},
    {"progress is told", tells_progress, 0, .after_ms = 100},
    {"so it is renewed", renewed_soon, true, .with = 1, .after_ms = 100},
    {"and there is nothing to tell", told_after_all, NOTHING},
    {"no progress for too long is JEOPARDY", told_soon, true, .with = JEOPARDY, .after_ms = 50},
    {"and no renewal", asked_after_all, 1, .after_ms = THIRD_MS},
    {"progress is told", tells_progress, 0},
    /* It is looked for as often as a failed renewal is tried again. */
    {"with it the lease is renewed soon", renewed_soon, true, .with = 2, .after_ms = TTL_MS / 20},
    {"and HELD", told_soon, true, .with = JEOPARDY_THEN_HELD},
    {"without it, the lease ends", state_soon, true, .with = ROWLOCK_STATE_LOST,
     .after_ms = TTL_MS - MARGIN_MS},
    {"progress is told", tells_progress, 0},
    {"but it is lost for good", asked_after_all, 2},
    /* What is sent for one lease must not be over before it begins, for any of the others. */
    {.begin = idle},
    {"a lease with a margin", keeps_with_margin, ROWLOCK_OK, .with = 200},
    {"renewed by its holder for less than that", renews, ROWLOCK_OK, .with = 150},
    {"is held", its_state, ROWLOCK_STATE_HELD},
    {"and renewed by its keeper", asked_soon, true, .with = 1, .after_ms = 60},
    {"with time left for the answer", time_to_answer, true},
};

static void *tell_progress(void *stop)
{
    while (!atomic_load((atomic_bool *)stop))
        rowlock_progress(story.lock);
    return NULL;
}

/* The thread that works is seldom the one that acquires. */
static void test_progress_of_another_thread(void)
{
    running();
    atomic_bool stop = false;
    pthread_t thread;
    pthread_create(&thread, NULL, tell_progress, &stop);
    int wrong = 0;
    for (int i = 0; i < 200; i++) {
        wrong += (i % 2 ? keeps_working(1000) : acquires(0)) != ROWLOCK_OK;
        wrong += releases(0) != ROWLOCK_OK;
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    tap_is_int(wrong, 0, "another thread tells progress while grants come and go");
    rowlock_progress(NULL);
}

/* ---- the holder's own steps while the keeper's statement is under way */

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

CALL(under_way, blocked);

static int64_t goes_on(int64_t unused)
{
    blocking = false;
    return EVENTUALLY(!blocked);
}

static void renewal_is_stuck(void)
{
    blocking = true;
    script_hook(block_renewals);
    script_pass_ms(THIRD_MS);
    tap_ok(EVENTUALLY(blocked), "the keeper's statement is under way");
}

static void in_flight(void)
{
    keeping();
    renewal_is_stuck();
}

static void gone_in_flight(void)
{
    keeping();
    script_next(OP_RENEW_ALL, ANSWER(.missing = true));
    script_always(OP_VERIFY, ANSWER(.missing = true));
    renewal_is_stuck();
}

/* Another lease, renewed after whatever was under way: that has landed then. Returns how many leases were
 * renewed with it. */
static int64_t lands(int64_t unused)
{
    OWNED(lock) rowlock_lock *other = must_lock(story.db, "other");
    int before = script_count(OP_RENEW_ALL);
    blocking = false;
    if (keep(other) != ROWLOCK_OK)
        tap_ok(false, "another lock is kept: %s", why(story.db));
    script_pass_ms(THIRD_MS);
    tap_ok(asked_soon(before + 1), "the keeper goes on with others");
    return script_leases(before) + unused;
}

static const struct story_row beside[] = {
    {.begin = in_flight},
    {"a release meanwhile", releases, ROWLOCK_OK},
    {"does not wait for it", under_way, true},
    {"nothing is held", its_state, ROWLOCK_STATE_NONE},
    {"only others are renewed from then on", lands, 1},
    {"the late answer changes nothing", its_state, ROWLOCK_STATE_NONE},
    {"no time came back with it", remaining_ms, 0},
    {"of which nothing was told", told_after_all, NOTHING},
    {.begin = in_flight},
    {"closing does not release twice", closes, 0, .calls = "release"},
    {"nor wait for it", under_way, true},
    {"and only others are renewed", lands, 1},
    {.begin = in_flight},
    {"forgetting a lock releases nothing", forgets, 0, .calls = ""},
    {"and does not wait for the keeper", under_way, true},
    {"nothing of it is renewed", lands, 1},
    {"nothing is held", its_state, ROWLOCK_STATE_NONE},
    {"nothing can be released", releases, ROWLOCK_EMISUSE},
    {.begin = in_flight},
    {"released meanwhile", releases, ROWLOCK_OK},
    {"and acquired again", keeps, ROWLOCK_OK, ANSWERS(ALWAYS_GONE(VERIFY))},
    {"while it is still under way", under_way, true},
    {"it ends", goes_on, true, .after_ms = 50},
    {"and was the only one", asked_after_all, 1},
    {"it does not lengthen the new lease", remaining_ms, TTL_MS - 50},
    {"which is kept as any other", left_soon, true, .with = TTL_MS, .after_ms = THIRD_MS - 50},
    {"by its own token", lease_token, 2},
    {.begin = gone_in_flight},
    {"the lock is released", releases, ROWLOCK_OK},
    {"and acquired again, before the keeper finds the old grant gone", keeps, ROWLOCK_OK},
    {"both leases are renewed", lands, 2},
    {"the new one stands", its_state, ROWLOCK_STATE_HELD},
    {"and no loss was told", told_after_all, NOTHING},
    {.begin = in_flight},
    {"the holder renews beside the keeper", renews, ROWLOCK_OK, .after_ms = 100},
    {"the keeper's may be done last: what it gives is counted upon, no more", remaining_ms,
     TTL_MS - 100},
    {"the holder renews again, for longer", renews, ROWLOCK_OK, .with = 2 * TTL_MS},
    {"it is still under way", remaining_ms, TTL_MS - 100},
    {"until that has ended", goes_on, true},
    {"and the keeper renews for longer", left_soon, true, .with = 2 * TTL_MS},
    {"nothing is under way any more", renews, ROWLOCK_OK, .with = 3 * TTL_MS},
    {"so all of it counts", remaining_ms, 3 * TTL_MS},
    {.begin = keeping},
    {"the holder renews by itself", renews, ROWLOCK_OK, .after_ms = 100},
    {"and has all of the time", remaining_ms, TTL_MS},
    {"the keeper counts from there", asked_after_all, 0, .after_ms = 150},
    {"and goes on", renewed_soon, true, .with = 1, .after_ms = 50},
    {"a longer lease from now on", renews, ROWLOCK_OK, .with = 2 * TTL_MS},
    {"is what the keeper renews for then", left_soon, true, .with = 2 * TTL_MS,
     .after_ms = 2 * THIRD_MS},
};

/* In the holder's thread: the keeper renews while a statement of the holder is in flight. */
static void renew_in_between(enum script_op op)
{
    if (op != OP_RENEW)
        return;
    script_hook(NULL);
    script_pass_ms(THIRD_MS);
    asked_after_all(asked_soon(1));
    script_always(OP_RENEW_ALL, FAILS(RLK_DENIED));
    script_pass_ms(70);
}

static void renewed_in_between(void)
{
    keeping();
    script_hook(renew_in_between);
}

static void failing_in_between(void)
{
    keeping();
    script_pass_ms(150);
    script_always(OP_RENEW_ALL, FAILS(RLK_DENIED));
    script_hook(renew_in_between);
}

static int64_t is_longer_by_that(int64_t unused)
{
    int64_t left = remaining_ms(unused);
    return left > TTL_MS - 150 - THIRD_MS - 70 && left <= TTL_MS - 70;
}

static const struct story_row in_between[] = {
    {.begin = renewed_in_between},
    {"a long lease, while the keeper renews the short one", renews, ROWLOCK_OK, .with = 3 * TTL_MS},
    {"the shorter one counts", remaining_ms, TTL_MS - 70},
    {"until the keeper renews for the long one", left_soon, true, ANSWERS(ALWAYS_DONE(RENEW_ALL)),
     .with = 3 * TTL_MS, .after_ms = 90},
    {.begin = failing_in_between},
    {"renewed while the keeper's fails", renews, ROWLOCK_OK, .with = TTL_MS},
    {"the lease is longer by that, at most by what the keeper might have given", is_longer_by_that,
     true},
};

/* ---- callbacks */

static atomic_bool returned;

static int close_and_tell(void *argument)
{
    rowlock_lock_close(argument);
    returned = true;
    return ROWLOCK_OK;
}

static int release_and_tell(void *argument)
{
    int result = rowlock_release(argument);
    returned = true;
    return result;
}

static void leave_while_told(int (*leave)(void *), const char *what)
{
    idle();
    blocking = true;
    returned = false;
    tap_is_int(keep_with(story.lock, (rowlock_acquire_options){.on_state = block_told}), ROWLOCK_OK,
               "a lock is kept");
    script_always(OP_RENEW_ALL, FAILS(RLK_DENIED));
    script_pass_ms(THIRD_MS);
    tap_ok(EVENTUALLY(blocked), "its callback runs");
    struct helper *helper = helper_start(leave, story.lock);
    /* Time: it may return too early. A late one is missed, and not reported. */
    sleep_ms(100);
    tap_ok(!returned, "%s waits for that", what);
    blocking = false;
    tap_is_int(helper_join(helper), ROWLOCK_OK, "and then is done");
    script_pass_ms(TTL_MS);
    tap_is_int(told_after_all(0), JEOPARDY, "nothing is told after it");
    if (leave == close_and_tell)
        story.lock = NULL;
}

/* What happens while a callback runs is not slept through after it. */
static void test_acquire_while_told(void)
{
    idle();
    OWNED(lock) rowlock_lock *other = must_lock(story.db, "other");
    blocking = true;
    tap_is_int(keep_with(other, (rowlock_acquire_options){.ttl_ms = 600000,
                                                          .progress_ms = 50,
                                                          .on_state = block_told}),
               ROWLOCK_OK, "a lock with a long lease");
    script_pass_ms(50);
    tap_ok(EVENTUALLY(blocked), "whose callback takes its time");
    tap_is_int(keeps(0), ROWLOCK_OK, "meanwhile another lock is kept");
    tap_ok(goes_on(0), "the callback ends");
    /* Time: the keeper is mostly asleep by then. One that is not must see the same. */
    sleep_ms(100);
    script_pass_ms(THIRD_MS);
    tap_ok(left_soon(TTL_MS), "and that other lock is renewed in time");
}

/* ---- releases that fail, and those in the caller's transaction */

static void keeping_beside_tx(void)
{
    keeping();
    enter_transaction();
    story.db->reconnect_us = 0; /* a pause would never end */
}

/* The handle counts as holding, but was to be released. */
static const struct story_row not_released[] = {
    {"leaves the grant with the handle", its_token, 1},
    {"another release fails too", releases_in_tx, ROWLOCK_LOST, ANSWERS(SAYS(GUARD, .token = 2))},
    {"the keeper renews it no more", asked_after_all, 0, .after_ms = THIRD_MS + 50},
    {"until the holder does", renews, ROWLOCK_OK},
    {"then the keeper goes on", asked_soon, true, .with = 1, .after_ms = THIRD_MS},
};

static void test_release_fails(enum rlk_class class, int result)
{
    keeping_beside_tx();
    script_next(OP_RELEASE, FAILS(class));
    tap_is_int(releases(0), result, "a release that fails (%d)", (int)class);
    TELL(not_released);
}

static const struct story_row transactions[] = {
    {.begin = keeping_beside_tx},
    {"released in a transaction", releases_in_tx, ROWLOCK_OK},
    {"the keeper renews no more", asked_after_all, 0, .after_ms = THIRD_MS + 50},
    {"the handle still knows the grant", its_token, 1},
    {"rolled back: the holder renews", renews, ROWLOCK_OK},
    {"it is HELD", its_state, ROWLOCK_STATE_HELD},
    {"and the keeper goes on", renewed_soon, true, .with = 1, .after_ms = THIRD_MS},
    {"a release that fails there", releases_in_tx, ROWLOCK_CONFLICT,
     ANSWERS(SAYS(RELEASE, .class = RLK_CONTENTION, .text = "no", .tx_over = true))},
    {"leaves the keeper at work", left_soon, true, .with = TTL_MS, .after_ms = THIRD_MS},
    {"released in another transaction", releases_in_tx, ROWLOCK_OK},
    {"and committed", forgets, 0},
    {"nothing is held", its_state, ROWLOCK_STATE_NONE},
    {.begin = keeping_beside_tx},
    {"a lease is lost", told_soon, true, ANSWERS(GONE(RENEW_ALL), GONE(VERIFY)), .with = LOSS,
     .after_ms = THIRD_MS},
    {"releasing it in a transaction fails", releases_in_tx, ROWLOCK_LOST,
     ANSWERS(SAYS(GUARD, .token = 2))},
    {"the loss is not told again", told_after_all, LOSS},
    {"it stays LOST", its_state, ROWLOCK_STATE_LOST},
};

/* ---- handles */

static const struct story_row closed_first[] = {
    {.begin = keeping},
    {"the keeper is closed", closes_keeper, 0},
    {"no keeper keeps the lock any more: JEOPARDY", its_state, ROWLOCK_STATE_JEOPARDY},
    {"it is held still", its_token, 1},
    {"and can be renewed", renews, ROWLOCK_OK},
    {"which makes it HELD like any other", its_state, ROWLOCK_STATE_HELD},
    {"progress is told", tells_progress, 0},
    {"and there is no callback to tell of anything", told_soon, true, .with = NOTHING},
    {"it is released", releases, ROWLOCK_OK},
    {"and acquired without a keeper", acquires, ROWLOCK_OK, .with = TTL_MS},
    {"which is HELD", its_state, ROWLOCK_STATE_HELD},
};

static void test_closing_keeper_of_two(void)
{
    keeping();
    OWNED(lock) rowlock_lock *other = must_lock(story.db, "other");
    tap_is_int(keep(other), ROWLOCK_OK, "two locks are kept");
    closes_keeper(0);
    tap_is_int(releases(0), ROWLOCK_OK, "their keeper is closed, and one is released");
    script_pass_ms(TTL_MS - MARGIN_MS);
    tap_is_int(rowlock_lock_state(other), ROWLOCK_STATE_LOST, "the lease of the other one ends");
}

static void test_changing_keepers(void)
{
    keeping();
    rowlock_keeper *first = story.keeper;
    story.keeper = open_keeper();
    tap_is_int(releases(0), ROWLOCK_OK, "released from one keeper");
    tap_is_int(keeps(0), ROWLOCK_OK, "acquired with another");
    rowlock_keeper_close(first);
    script_pass_ms(THIRD_MS);
    tap_ok(left_soon(TTL_MS), "which keeps it");
}

static void test_opening_fails(void)
{
    rowlock_keeper *keeper = (rowlock_keeper *)&keeper;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    opened();
    script_always(OP_META, ANSWER(.missing = true));
    tap_is_int(open_keeper_at("sqlite:script", NULL, &keeper, &err), ROWLOCK_ESCHEMA,
               "without tables there is no keeper");
    tap_ok(keeper == NULL && err.text[0], "but a reason");
    script_always(OP_OPEN, FAILS(RLK_DENIED));
    tap_is_int(open_keeper_at("sqlite:script", NULL, &keeper, &err), ROWLOCK_EDENIED,
               "nor without a connection");
}

static void test_options(void)
{
    idle();
    const struct {
        rowlock_acquire_options options;
        const char *what;
    } refused[] = {
        {{.max_hold_ms = 1000}, "max_hold_ms is for a keeper"},
        {{.progress_ms = 1000}, "so is progress_ms"},
        {{.on_state = note_told}, "so is a callback"},
        {{.max_hold_ms = -1, .keeper = story.keeper}, "not below nought"},
        {{.progress_ms = -1, .keeper = story.keeper}, "that neither"},
        {{.margin_ms = -1}, "nor the margin"},
        {{.ttl_ms = 500, .margin_ms = 500}, "which is shorter than the lease"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        rowlock_acquire_options options = refused[i].options;
        options.size = sizeof options;
        tap_is_int(rowlock_acquire(story.lock, &options), ROWLOCK_EINVAL, "%s", refused[i].what);
    }
    tap_is_int(script_count(OP_ACQUIRE), 0, "no driver was asked");
}

/* ---- memory */

static void test_memory(void)
{
    story_end();
    script_reset();
    script_freeze();
    int nth = 0, result;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_keeper **keeper = &story.keeper;
    do {
        fail_alloc_at(++nth);
        result = open_keeper_at("sqlite:script", NULL, keeper, &err);
        if (result != ROWLOCK_OK && (result != ROWLOCK_ENOMEM || *keeper || fail_alloc_live() != 0))
            tap_ok(false, "allocation %d: %d, %d pieces left", nth, result, fail_alloc_live());
    } while (result != ROWLOCK_OK && nth < 1000);
    fail_alloc_at(0);
    tap_ok(nth > 3 && nth < 1000, "a keeper opens when %d allocations succeed", nth - 1);
    story.db = script_open(NULL);
    story.lock = must_lock(story.db, "nightly");
    int live = fail_alloc_live();
    fail_alloc_at(1);
    tap_is_int(keeps(0), ROWLOCK_ENOMEM, "without memory a lock is not kept");
    tap_is_int(script_count(OP_ACQUIRE), 0, "nor acquired");
    tap_is_int(its_state(0), ROWLOCK_STATE_NONE, "nothing is held");
    tap_is_int(fail_alloc_live(), live, "and nothing leaked");
    fail_alloc_at(2);
    tap_is_int(keeps(0), ROWLOCK_OK, "one piece of memory is what it takes");
    fail_alloc_at(0);
    story_end();
    tap_is_int(fail_alloc_live(), 0, "all of it is given back");
}

/* The keeper's thread has nothing to renew, so it sleeps all the while. */
static void test_memory_of_refused(void)
{
    running();
    script_always(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD));
    int live = fail_alloc_live(), refused = 0;
    for (int i = 0; i < MANY; i++) {
        OWNED(lock) rowlock_lock *other = must_lock(story.db, "held by another");
        refused += keep(other) == ROWLOCK_BUSY;
    }
    tap_is_int(refused, MANY, "ten thousand acquires with a keeper are refused");
    tap_is_int(fail_alloc_live(), live, "and leave no memory behind");
    story_end();
}

/* ---- fork */

static int call_in_child(void *argument)
{
    alarm((unsigned)slow_ms(10000) / 1000); /* a program that hangs is ended */
    rowlock_lock *lock = story.lock;
    bool good = !accepted(story.db, lock, NULL) && keep(lock) == ROWLOCK_EMISUSE;
    rowlock_progress(lock);
    rowlock_forget(lock);
    OWNED(db) rowlock_db *own = script_open(NULL);
    OWNED(lock) rowlock_lock *mine = must_lock(own, "mine");
    good = good && keep(mine) == ROWLOCK_EMISUSE;
    story_end();
    return good ? 0 : 1;
}

/* While the keeper's thread is busy, so that it may hold what the child would have to wait for. The
 * memory of ASan is such a thing, so its builds have none that is busy. */
#ifdef __SANITIZE_ADDRESS__
enum { BUSY = 0 };
#else
enum { BUSY = 2000 };
#endif
static void test_fork(void)
{
    enum { FORKS = 20 };
    static rowlock_lock *locks[BUSY + 1];
    running();
    for (int i = 0; i < BUSY; i++) {
        locks[i] = must_lock(story.db, "busy");
        keep_with(locks[i], (rowlock_acquire_options){.ttl_ms = 100});
    }
    tap_is_int(keep_with(story.lock, (rowlock_acquire_options){.ttl_ms = 30000}), ROWLOCK_OK,
               "kept");
    int good = 0;
    for (int i = 0; i < FORKS; i++) {
        good += child_join(child_start(call_in_child, NULL)) == 0;
        sleep_ms(i % 5);
    }
    tap_is_int(good, FORKS, "calls on a kept lock in a child know of no grant, and do not hang");
    tap_is_int(its_state(0), ROWLOCK_STATE_HELD, "the parent's is as it was");
    tap_is_int(releases(0), ROWLOCK_OK, "and can be released");
    close_each_lock(locks, BUSY);
    story_end();
}

int main(void)
{
    TELL(renewing);
    test_together();
    test_many();
    TELL(failures);
    test_one_of_two_locked();
    TELL(conditions);
    test_progress_of_another_thread();
    TELL(beside);
    TELL(in_between);
    leave_while_told(release_and_tell, "release");
    leave_while_told(close_and_tell, "close");
    test_acquire_while_told();
    test_release_fails(RLK_UNSENT, ROWLOCK_ECONN);
    test_release_fails(RLK_UNCERTAIN, ROWLOCK_EUNCERTAIN);
    test_release_fails(RLK_DENIED, ROWLOCK_EDENIED);
    TELL(transactions);
    TELL(closed_first);
    test_closing_keeper_of_two();
    test_changing_keepers();
    test_opening_fails();
    test_options();
    test_memory();
    test_memory_of_refused();
    test_fork();
    return tap_done();
}
