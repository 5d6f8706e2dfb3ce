/* SPDX-License-Identifier: MIT
 *
 * Waiting for a lock: until it is released, until its lease ends, until the wait is over or cancelled.
 * Many waiters at once are in each_line.c. */
#include "contract.h"

enum { TTL_MS = 600000 };

struct pair {
    rowlock_db *one, *two;
    rowlock_lock *held, *wanted;
    bool cancels_first;
};

static struct pair pair_open(const struct contract *c, const char *name, int64_t ttl_ms)
{
    struct pair p = {.one = must_open(c->url), .two = must_open(c->url)};
    p.held = must_lock(p.one, name);
    p.wanted = must_lock(p.two, name);
    is_result(p.one, try_lock(p.held, ttl_ms), ROWLOCK_OK, "one holds %s", name);
    return p;
}

static void pair_close(struct pair *p)
{
    close_locks(p->held, p->wanted);
    close_dbs(p->one, p->two);
}

static void times_out(const struct contract *c)
{
    CLOSED_BY(pair_close) struct pair p = pair_open(c, "wait in vain", TTL_MS);
    int64_t begin = clock_ms();
    is_result(p.two, wait_lock(p.wanted, TTL_MS, 100), ROWLOCK_TIMEOUT,
              "waiting for a lock that stays held ends with TIMEOUT");
    int64_t took = clock_ms() - begin;
    tap_ok(took >= 100, "when the wait is over (%lld ms of 100)", (long long)took);
    tap_is_int(holder_of(p.wanted).token, rowlock_lock_token(p.held),
               "after a TIMEOUT the holder is known");
}

static int release_later(void *argument)
{
    struct pair *p = argument;
    sleep_ms(50); /* so that it is waited for, mostly */
    return rowlock_release(p->held);
}

static void gets_it_when_released(const struct contract *c)
{
    CLOSED_BY(pair_close) struct pair p = pair_open(c, "wait for release", TTL_MS);
    int64_t token = rowlock_lock_token(p.held);
    struct helper *helper = helper_start(release_later, &p);
    is_result(p.two, wait_lock(p.wanted, TTL_MS, 60000), ROWLOCK_OK,
              "a waiter gets the lock that is released meanwhile");
    is_result(p.one, helper_join(helper), ROWLOCK_OK, "the holder's release went well");
    tap_ok(rowlock_lock_token(p.wanted) > token, "with a higher token");
}

static void gets_it_when_expired(const struct contract *c)
{
    CLOSED_BY(pair_close) struct pair p = pair_open(c, "wait for the end", 300);
    int64_t ends = rowlock_lock_expires_us(p.held), token = rowlock_lock_token(p.held);
    is_result(p.two, wait_lock(p.wanted, TTL_MS, 60000), ROWLOCK_OK,
              "a waiter gets the lock whose lease ends meanwhile");
    int64_t granted = 0, last = 0;
    is_result(p.two, rowlock_last_grant(p.two, "wait for the end", &last, &granted), ROWLOCK_OK,
              "the takeover is the last grant");
    /* One member of a quorum may be claimed before a majority is, and counts that. */
    bool quorum = getenv("ROWLOCK_TEST_QUORUM") != NULL;
    int64_t ours = rowlock_lock_token(p.wanted);
    if (!quorum)
        tap_ok(granted >= ends, "it was granted when the lease had ended, not before");
    tap_ok(ours > token && (quorum ? last >= ours : last == ours), "its token is higher");
    is_result(p.one, rowlock_release(p.held), ROWLOCK_LOST,
              "the holder whose lock was taken over is told LOST at release");
    is_result(p.two, rowlock_verify(p.wanted), ROWLOCK_OK, "which leaves the new grant alone");
}

static int cancel_later(void *argument)
{
    /* Time: the wait has mostly begun by then. A cancel before it ends it as well. */
    sleep_ms(50);
    rowlock_cancel(argument);
    return 0;
}

static void can_be_cancelled(const struct contract *c)
{
    CLOSED_BY(pair_close) struct pair p = pair_open(c, "wait for ever", TTL_MS);
    struct helper *helper = helper_start(cancel_later, p.two);
    is_result(p.two, wait_lock(p.wanted, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_CANCELLED,
              "rowlock_cancel() ends a wait without end");
    helper_join(helper);
    tap_is_int(rowlock_lock_token(p.wanted), 0, "a cancelled wait holds nothing");
    is_result(p.one, rowlock_release(p.held), ROWLOCK_OK, "the holder releases");
    is_result(p.two, wait_lock(p.wanted, TTL_MS, 60000), ROWLOCK_OK,
              "waiting for a free lock gets it");
}

static int cancel_and_release(void *argument)
{
    struct pair *p = argument;
    if (p->cancels_first)
        rowlock_cancel(p->two);
    int result = rowlock_release(p->held);
    if (!p->cancels_first)
        rowlock_cancel(p->two);
    return result;
}

/* A cancel and the grant arrive at the same time. Either may win. */
static void races_with_the_grant(const struct contract *c)
{
    int lost = 0, twice = 0;
    for (int i = 0; i < 10; i++) {
        CLOSED_BY(pair_close) struct pair p = pair_open(c, "granted or cancelled", TTL_MS);
        p.cancels_first = i % 2;
        struct helper *helper = helper_start(cancel_and_release, &p);
        int result = wait_lock(p.wanted, TTL_MS, ROWLOCK_FOREVER);
        is_result(p.one, helper_join(helper), ROWLOCK_OK, "the holder releases");
        if (result == ROWLOCK_OK && rowlock_release(p.wanted) != ROWLOCK_OK)
            lost++;
        /* A lost grant stands for TTL_MS. A member of a quorum may be slower than its majority. */
        if (wait_lock(p.held, TTL_MS, TTL_MS / 2) != ROWLOCK_OK)
            lost++;
        /* It came before the end of the first wait, or after it. */
        int next = wait_lock(p.wanted, TTL_MS, 20);
        twice += result == ROWLOCK_CANCELLED && next == ROWLOCK_CANCELLED;
        lost += next == ROWLOCK_OK;
    }
    tap_is_int(twice, 0, "a cancel beside a grant never ends two waits");
    tap_is_int(lost, 0, "and no grant is lost");
}

void contract_waiting(const struct contract *c)
{
    times_out(c);
    gets_it_when_released(c);
    gets_it_when_expired(c);
    can_be_cancelled(c);
    races_with_the_grant(c);
}
