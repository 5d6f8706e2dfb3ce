/* SPDX-License-Identifier: MIT
 *
 * Waiting for a lock: until when, whose cancel ends it, and how long the pauses are between resendings. What a
 * waiter does in line is in test_queue.c. */
#include "story.h"
#include "core/port.h"

#include <sys/time.h>

enum { TTL_MS = 10000 };

static void begin(void)
{
    ticking();
    script_always(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .left_us = 3600000000));
}

/* Without a notification core waits by itself. */
static void begin_heard(bool unwakeable)
{
    begin();
    script_always(OP_ENQUEUE, ANSWER(.no_wakeup = unwakeable));
}

/* With a clock that goes on by itself where core waits. */
static void begin_jumping(bool unwakeable)
{
    begin_heard(unwakeable);
    script_jump();
}

/* ---- the end of the wait */

static void test_timeout(bool unwakeable)
{
    begin_jumping(unwakeable);
    int64_t began_us = rlk_now_us();
    tap_is_int(wait_lock(story.lock, TTL_MS, 1500), ROWLOCK_TIMEOUT, "a lock that stays held");
    int64_t took_us = rlk_now_us() - began_us;
    tap_ok(took_us >= 1500000 && took_us < 1510000, "is waited for as long as asked: %d us",
           (int)took_us);
    tap_is_int(error_code(story.db), ROWLOCK_TIMEOUT, "and the handle says so");
    tap_is_int(new_requests(0), 0, "one acquire has one request number, however often it looks");
    tap_ok(script.request_count >= 3, "it looked several times");
    int64_t last_us = script.acquired_us[script.request_count - 1];
    tap_ok(last_us - began_us >= 1500000, "the last time at the very end");
}

/* ---- pauses between resendings */

static void test_retry_pauses(void)
{
    bool above = true, below = true;
    int64_t sum = 0;
    begin();
    for (int round = 0; round < 1000; round++) {
        int tries = 0;
        for (int64_t range = 1000; range <= 1024000; range *= 2) {
            int64_t pause = rlk_pause_retry(&story.db->waiting, &tries);
            above = above && pause >= 1;
            below = below && pause <= (range > 64000 ? 64000 : range);
            sum += pause;
        }
    }
    tap_ok(above && below, "pauses between resendings grow to 64 ms at most");
    tap_ok(sum / 1000 > 150000 && sum / 1000 < 350000, "with full jitter: %d us on average in all",
           (int)(sum / 1000));
    int same = 0, tries = 0x7ffffff0;
    tap_ok(rlk_pause_retry(&story.db->waiting, &tries) <= 64000,
           "after very many resendings pauses stay short");
    OWNED(db) rowlock_db *other = script_open(NULL);
    for (int i = 0; i < 100; i++) {
        int ours = 9, others = 9;
        same +=
            rlk_pause_retry(&story.db->waiting, &ours) == rlk_pause_retry(&other->waiting, &others);
    }
    tap_ok(same < 10, "two handles do not pause alike");
}

/* ---- cancelling */

static rowlock_db *signalled;

static void on_alarm(int number)
{
    int saved = errno;
    errno = 4242;
    rowlock_cancel(signalled);
    if (errno != 4242)
        signalled = NULL;
    errno = saved;
}

static void test_cancel_from_signal(bool unwakeable)
{
    struct sigaction action = {.sa_handler = on_alarm}, before;
    struct itimerval soon = {.it_value = {0, 60000}};
    begin_heard(unwakeable);
    signalled = story.db;
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &soon, NULL);
    tap_is_int(wait_lock(story.lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_CANCELLED,
               "a signal handler's cancel ends the wait");
    tap_ok(signalled == story.db, "cancelling leaves errno alone");
    sigaction(SIGALRM, &before, NULL);
}

static void do_nothing(int number)
{
}

static void test_signal_alone(bool unwakeable)
{
    struct sigaction action = {.sa_handler = do_nothing}, before;
    struct itimerval often = {.it_interval = {0, 7000}, .it_value = {0, 7000}}, never = {0};
    begin_heard(unwakeable);
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    int64_t began = clock_ms();
    tap_is_int(wait_lock(story.lock, TTL_MS, 100), ROWLOCK_TIMEOUT,
               "signals alone do not end a wait");
    tap_ok(clock_ms() - began >= 100, "nor shorten it");
    tap_ok(script_count(OP_ACQUIRE) <= (unwakeable ? 3 + 100 * 4 / 15 : 3),
           "nor make it look more often: %d looks", script_count(OP_ACQUIRE));
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
}

static void test_cancel_before(bool unwakeable)
{
    begin_jumping(unwakeable);
    rowlock_cancel(story.db);
    tap_is_int(wait_lock(story.lock, TTL_MS, 0), ROWLOCK_BUSY, "a cancel does not touch a try");
    int64_t began_us = rlk_now_us();
    tap_is_int(wait_lock(story.lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_CANCELLED,
               "but the next wait, although it came before it");
    tap_is_int(rlk_now_us(), began_us, "which takes no time");
    tap_is_int(wait_lock(story.lock, TTL_MS, 30), ROWLOCK_TIMEOUT, "and that one only");
}

static void test_cancel_after(void)
{
    begin_jumping(false);
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD));
    script_next(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    tap_is_int(wait_lock(story.lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_OK,
               "a wait that ended well");
    for (int i = 0; i < 100000; i++)
        rowlock_cancel(story.db);
    tap_is_int(rowlock_release(story.lock), ROWLOCK_OK,
               "a hundred thousand cancels after it do not block, and touch no release");
    tap_is_int(wait_lock(story.lock, TTL_MS, 1000), ROWLOCK_CANCELLED, "but the next wait");
    tap_is_int(error_code(story.db), ROWLOCK_CANCELLED, "and the handle says so");
    tap_is_int(wait_lock(story.lock, TTL_MS, 30), ROWLOCK_TIMEOUT, "and that one only");
    rowlock_cancel(NULL);
}

static enum script_op cancelled_at;

static void cancel_now(enum script_op op)
{
    if (op == cancelled_at)
        rowlock_cancel(story.db);
}

static void test_cancel_before_free(void)
{
    begin_jumping(false);
    script_always(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    rowlock_cancel(story.db);
    script_calls();
    tap_is_int(wait_lock(story.lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_CANCELLED,
               "a cancel ends the next wait even if the lock is free");
    tap_is_str(script_calls(), "", "nothing is sent for it");
    tap_is_int(wait_lock(story.lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_OK,
               "the wait after it is not");
    rowlock_cancel(story.db);
    tap_is_int(wait_lock(story.lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_OK, "re-entry is no wait");
    tap_is_int(rowlock_release(story.lock) + rowlock_release(story.lock), ROWLOCK_OK, "released");
    tap_is_int(wait_lock(story.lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_CANCELLED,
               "and leaves the cancel to the next one");
}

/* Whatever step is under way then, none is broken off, and the wait is not begun. */
static void test_cancel_while_asking(void)
{
    static const enum script_op ops[] = {OP_ACQUIRE, OP_ENQUEUE, OP_AWAIT};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        begin_jumping(false);
        script_hook(cancel_now);
        cancelled_at = ops[i];
        int64_t began_us = rlk_now_us();
        tap_is_int(wait_lock(story.lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_CANCELLED,
                   "a cancel while the database is asked (%d) ends the wait after the answer",
                   (int)ops[i]);
        tap_ok(script_count(OP_ACQUIRE) <= 2, "which is not asked for ever");
        tap_is_int(rlk_now_us(), began_us, "nor waited for");
        tap_is_int(script_count(OP_LEAVE), script_count(OP_ENQUEUE), "no ticket stays");
    }
    begin_jumping(false);
    script_hook(cancel_now);
    cancelled_at = OP_ACQUIRE;
    script_next(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    tap_is_int(wait_lock(story.lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_OK,
               "but a grant that came all the same is given");
    script_hook(NULL);
    tap_is_int(rowlock_release(story.lock), ROWLOCK_OK, "and released");
    tap_is_int(wait_lock(story.lock, TTL_MS, 30), ROWLOCK_TIMEOUT,
               "the cancel that came too late for it does not end the next wait");
}

/* Does a wake-up end its wait? It is there already, or it does not come. */
static int is_woken(rowlock_db *waiter, const struct rlk_request *request)
{
    struct rlk_call call = {.deadline_us = rlk_now_us()};
    enum rlk_wakeup wakeup = RLK_SILENT;
    if (waiter->port->await(waiter, &call, request, &wakeup) != RLK_DONE)
        return -1;
    return wakeup == RLK_WAKEUP;
}

static void test_first_of_pool(void)
{
    enum { WAITERS = 3 };
    rowlock_db *dbs[WAITERS] = {NULL};
    struct rlk_request requests[WAITERS];
    struct rlk_position position;
    OWNED(pool) rowlock_pool *pool = NULL;
    script_home("sqlite");
    script_reset();
    bool ready = rowlock_pool_open("sqlite:x", NULL, &pool, NULL) == ROWLOCK_OK;
    for (int i = 0; ready && i < WAITERS; i++) {
        const rowlock_db_options options = {.size = sizeof options, .pool = pool};
        struct rlk_ask ask = {.step = RLK_STEP_NONE};
        requests[i] = (struct rlk_request){
            .name = "nightly", .number = i + 1, .owner = "me", .host = "", .program = ""};
        requests[i].unfair = i == 2;
        rlk_step_enqueue(&ask, &requests[i], 60000000, &position);
        ready = rowlock_db_open(NULL, &options, &dbs[i], NULL) == ROWLOCK_OK &&
                rlk_ask(dbs[i], &ask) == ROWLOCK_OK;
        if (ready)
            rlk_tell_enqueued(dbs[i], &requests[i], &position);
    }
    if (tap_ok(ready, "three handles of a pool wait")) {
        rlk_tell(dbs[2], RLK_OUTSIDE, RLK_GONE_GRANT, &requests[2], 1);
        tap_is_int(is_woken(dbs[2], &requests[2]), false, "a release does not wake the last");
        tap_is_int(is_woken(dbs[1], &requests[1]), false, "nor the second");
        tap_is_int(is_woken(dbs[0], &requests[0]), true, "but the first in the queue");
        tap_is_int(dbs[0]->waiting.behind, false, "the first looks by itself, too");
        tap_is_int(dbs[1]->waiting.behind, true, "and looks for the second");
        tap_is_int(dbs[2]->waiting.behind, false, "one that may overtake looks for itself");
        tap_is_int((int)dbs[2]->waiting.lookers, 2, "so two look");
        rlk_tell(dbs[0], RLK_OUTSIDE, RLK_LEFT, &requests[0], 0);
        tap_is_int(dbs[1]->waiting.behind, false, "when the first has left, the second looks");
    }
    close_dbs(dbs[0], dbs[1], dbs[2]);
}

int main(void)
{
    test_retry_pauses();
    for (int unwakeable = 0; unwakeable < 2; unwakeable++) {
        test_timeout(unwakeable);
        test_cancel_from_signal(unwakeable);
        test_signal_alone(unwakeable);
        test_cancel_before(unwakeable);
    }
    test_cancel_after();
    test_cancel_before_free();
    test_cancel_while_asking();
    test_first_of_pool();
    story_end();
    return tap_done();
}
