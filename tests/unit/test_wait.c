/* SPDX-License-Identifier: MIT
 *
 * Waiting for a lock: until when, how often it is looked at, and whose cancel ends it.
 */
#include "backend_script.h"
#include "quick.h"
#include "tap.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { TTL_MS = 10000 };

static rowlock_db *db;
static rowlock_lock *lock;

static void begin(void)
{
    script_reset();
    db = script_open(NULL);
    lock = must_lock(db, "nightly");
    script_always(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .left_us = 3600000000));
}

static void end(void)
{
    rowlock_lock_close(lock);
    rowlock_db_close(db);
}

/* ---- the end of the wait */

static void test_timeout(void)
{
    begin();
    int64_t began = clock_ms();
    tap_is_int(wait_lock(lock, TTL_MS, 150), ROWLOCK_TIMEOUT, "a lock that stays held");
    int64_t took = clock_ms() - began;
    tap_ok(took >= 150 && took < 150 + slow_ms(60), "is waited for as long as asked: %d ms",
           (int)took);
    rowlock_grant holder = ROWLOCK_GRANT_INIT;
    tap_is_int(rowlock_lock_holder(lock, &holder), ROWLOCK_OK, "the holder can be named");
    tap_is_int(error_code(db), 0, "to have waited in vain is no error");
    for (int i = 1; i < script.attempt_count; i++)
        if (script.attempts[i] != script.attempts[0])
            tap_ok(false, "one acquire has one attempt number, however often it looks");
    tap_ok(script.attempt_count >= 3, "it looked several times, the last time at the very end");
    end();
}

static void test_no_wait(void)
{
    begin();
    int64_t began = clock_ms();
    tap_is_int(wait_lock(lock, TTL_MS, 0), ROWLOCK_BUSY, "a try does not wait");
    tap_ok(clock_ms() - began < slow_ms(20), "at all");
    tap_is_int(script_count(OP_ACQUIRE), 1, "and looks once");
    end();
}

static void test_granted_in_time(void)
{
    begin();
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .left_us = 3600000000));
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .left_us = 3600000000));
    script_next(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    tap_is_int(wait_lock(lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_OK,
               "a wait for ever ends with the grant");
    tap_is_int(script_count(OP_ACQUIRE), 3, "at the look that finds it free");
    end();
}

static void test_failure_ends_it(void)
{
    begin();
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD));
    script_next(OP_ACQUIRE, FAILS(RLK_DENIED));
    tap_is_int(wait_lock(lock, TTL_MS, 60000), ROWLOCK_EDENIED, "a failure ends the wait");
    end();
}

/* ---- when to look */

static void test_lease_hint(void)
{
    begin();
    script_always(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .left_us = 3600000000));
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .left_us = 3600000000));
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .left_us = 3600000000));
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .left_us = 3600000000));
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .left_us = 30000));
    int64_t began = clock_ms();
    tap_is_int(wait_lock(lock, TTL_MS, 60000), ROWLOCK_OK, "granted when the holder's lease ends");
    int64_t took = clock_ms() - began;
    /* Without the hint: 10-20, 20-40, 40-80, 80-160 and then 160-320 ms. */
    tap_ok(took < 300 + 60 + slow_ms(30), "which is when it is looked at: %d ms", (int)took);
    tap_is_int(script_count(OP_ACQUIRE), 6, "once");
    end();
}

static void test_poll_pauses(void)
{
    bool low = true, high = true, differ = false;
    begin();
    for (int round = 0; round < 300; round++) {
        int tries = 0;
        int64_t first = 0;
        for (int64_t range = 20000; range <= 10240000; range *= 2) {
            int64_t longest = range > 500000 ? 500000 : range;
            int64_t pause = rlk_pause_poll(db, &tries, 0);
            low = low && pause >= longest / 2;
            high = high && pause <= longest;
            differ = differ || (first && range == 40000 && pause != 2 * first);
            first = pause;
        }
    }
    tap_ok(low, "a pause is half of its range at least");
    tap_ok(high, "and all of it at most, which is half a second at the most");
    tap_ok(differ, "somewhere in between");
    int many = 1000000;
    int64_t pause = rlk_pause_poll(db, &many, 0);
    tap_ok(pause >= 250000 && pause <= 500000, "after a million looks too");
    end();
}

static void test_hinted_pauses(void)
{
    bool after = true, soon = true;
    int64_t lowest = INT64_MAX, highest = 0;
    begin();
    for (int round = 0; round < 1000; round++) {
        int tries = 10;
        int64_t pause = rlk_pause_poll(db, &tries, 100000);
        after = after && pause > 100000;
        soon = soon && pause <= 130000;
        lowest = pause < lowest ? pause : lowest;
        highest = pause > highest ? pause : highest;
    }
    tap_ok(after, "the look is after the holder's lease, not before");
    tap_ok(soon, "and soon after it");
    tap_ok(highest - lowest > 10000, "spread, so that waiters do not all come at once");
    int tries = 0;
    tap_ok(rlk_pause_poll(db, &tries, 100000) <= 20000,
           "a lease that lasts longer changes nothing");
    tap_ok(rlk_pause_poll(db, &tries, -5) > 0, "nor does one that is over");
    end();
}

static void test_retry_pauses(void)
{
    bool above = true, below = true;
    int64_t sum = 0;
    begin();
    for (int round = 0; round < 1000; round++) {
        int tries = 0;
        for (int64_t range = 1000; range <= 1024000; range *= 2) {
            int64_t pause = rlk_pause_retry(db, &tries);
            above = above && pause >= 1;
            below = below && pause <= (range > 64000 ? 64000 : range);
            sum += pause;
        }
    }
    tap_ok(above && below, "pauses between resendings grow to 64 ms at most");
    tap_ok(sum / 1000 > 150000 && sum / 1000 < 350000, "with full jitter: %d us on average in all",
           (int)(sum / 1000));
    end();
}

static void test_pauses_differ(void)
{
    int same = 0;
    begin();
    rowlock_db *other = script_open(NULL);
    for (int i = 0; i < 100; i++) {
        int tries = 9, others = 9;
        same += rlk_pause_poll(db, &tries, 0) == rlk_pause_poll(other, &others, 0);
    }
    tap_ok(same < 10, "two handles do not pause alike");
    rowlock_db_close(other);
    end();
}

static void test_millions_of_tries(void)
{
    int tries = 0x7ffffff0;
    begin();
    tap_ok(rlk_pause_retry(db, &tries) <= 64000, "after very many resendings pauses stay short");
    end();
}

/* ---- cancelling */

static int cancel_later(void *argument)
{
    sleep_ms(60);
    rowlock_cancel(argument);
    return 0;
}

static void test_cancel_from_thread(void)
{
    begin();
    struct helper *other = helper_start(cancel_later, db);
    int64_t began = clock_ms();
    tap_is_int(wait_lock(lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_CANCELLED,
               "another thread's cancel ends the wait");
    int64_t took = clock_ms() - began;
    tap_ok(took >= 50 && took < 60 + slow_ms(100), "at once: after %d ms", (int)took);
    helper_join(other);
    tap_is_int(rowlock_lock_token(lock), 0, "nothing is held");
    tap_is_int(wait_lock(lock, TTL_MS, 50), ROWLOCK_TIMEOUT, "the next wait is not cancelled");
    end();
}

static rowlock_db *signalled;

static void on_alarm(int number)
{
    (void)number;
    int saved = errno;
    errno = 4242;
    rowlock_cancel(signalled);
    if (errno != 4242)
        signalled = NULL;
    errno = saved;
}

static void test_cancel_from_signal(void)
{
    struct sigaction action = {.sa_handler = on_alarm}, before;
    struct itimerval soon = {.it_value = {0, 60000}};
    begin();
    signalled = db;
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &soon, NULL);
    tap_is_int(wait_lock(lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_CANCELLED,
               "a signal handler's cancel ends the wait");
    tap_ok(signalled == db, "cancelling leaves errno alone");
    sigaction(SIGALRM, &before, NULL);
    end();
}

static void do_nothing(int number)
{
    (void)number;
}

static void test_signal_alone(void)
{
    struct sigaction action = {.sa_handler = do_nothing}, before;
    struct itimerval often = {.it_interval = {0, 7000}, .it_value = {0, 7000}}, never = {0};
    begin();
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    int64_t began = clock_ms();
    tap_is_int(wait_lock(lock, TTL_MS, 100), ROWLOCK_TIMEOUT, "signals alone do not end a wait");
    tap_ok(clock_ms() - began >= 100, "nor shorten it");
    tap_ok(script_count(OP_ACQUIRE) < 12, "nor make it look more often");
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    end();
}

static void test_cancel_before(void)
{
    begin();
    rowlock_cancel(db);
    tap_is_int(wait_lock(lock, TTL_MS, 0), ROWLOCK_BUSY, "a cancel does not touch a try");
    int64_t began = clock_ms();
    tap_is_int(wait_lock(lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_CANCELLED,
               "but the next wait, although it came before it");
    tap_ok(clock_ms() - began < slow_ms(50), "at once");
    tap_is_int(wait_lock(lock, TTL_MS, 30), ROWLOCK_TIMEOUT, "and that one only");
    end();
}

static void test_many_cancels(void)
{
    begin();
    for (int i = 0; i < 100000; i++)
        rowlock_cancel(db);
    tap_is_int(wait_lock(lock, TTL_MS, 30), ROWLOCK_CANCELLED,
               "a hundred thousand cancels do not block");
    tap_is_int(wait_lock(lock, TTL_MS, 30), ROWLOCK_TIMEOUT, "and end one wait");
    end();
}

static void cancel_now(enum script_op op)
{
    if (op == OP_ACQUIRE)
        rowlock_cancel(db);
}

static void test_cancel_while_asking(void)
{
    begin();
    script.hook = cancel_now;
    tap_is_int(wait_lock(lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_CANCELLED,
               "a cancel while the database is asked ends the wait after the answer");
    tap_is_int(script_count(OP_ACQUIRE), 1, "which is not asked again");
    end();
    begin();
    script.hook = cancel_now;
    script_next(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    tap_is_int(wait_lock(lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_OK,
               "but a grant that came all the same is given");
    script.hook = NULL;
    end();
}

static void test_cancel_nobody(void)
{
    rowlock_cancel(NULL);
    tap_ok(true, "cancelling NULL is harmless");
}

int main(void)
{
    test_timeout();
    test_no_wait();
    test_granted_in_time();
    test_failure_ends_it();
    test_lease_hint();
    test_poll_pauses();
    test_hinted_pauses();
    test_retry_pauses();
    test_pauses_differ();
    test_millions_of_tries();
    test_cancel_from_thread();
    test_cancel_from_signal();
    test_signal_alone();
    test_cancel_before();
    test_many_cancels();
    test_cancel_while_asking();
    test_cancel_nobody();
    return tap_done();
}
