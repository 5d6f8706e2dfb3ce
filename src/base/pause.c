/* SPDX-License-Identifier: MIT
 * How long pauses are, with jitter. The random numbers come from a state that the caller has, so
 * the same state gives the same pauses. */
#include "base/base.h"
#include "base/wait.h"

enum {
    /* After lost races, deadlocks and lost connections. */
    FIRST_RETRY_US = 1000,
    LONGEST_RETRY_US = 64000,
    /* Long, so that not all waiters reconnect at once when the server starts. */
    LONGEST_AWAY_US = 1000000
};

/* Jitter must differ between processes. It need not be hard to guess (xorshift64*, Marsaglia). */
int64_t rlk_jitter(struct rlk_waiting *w, int64_t bound)
{
    uint64_t x = w->jitter ? w->jitter : 88172645463325252u;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    w->jitter = x;
    return bound > 0 ? (int64_t)((x * 2685821657736338717u) >> 33) % bound : 0;
}

/* Full jitter over a range that doubles: random(1, min(longest, first * 2^n)). */
int64_t rlk_pause_retry(struct rlk_waiting *w, int *tries)
{
    int64_t range = (int64_t)FIRST_RETRY_US << (*tries < 20 ? *tries : 20);
    (*tries)++;
    return 1 + rlk_jitter(w, rlk_least(range, LONGEST_RETRY_US));
}

int64_t rlk_pause_away(struct rlk_waiting *w)
{
    return 1 + rlk_jitter(w, LONGEST_AWAY_US);
}
