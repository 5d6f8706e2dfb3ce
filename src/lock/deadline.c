/* SPDX-License-Identifier: MIT
 * What a holder is told of its lease: the time left, the state, the descriptor that wakes. All
 * of it by our clock and from memory; renewing is elsewhere. The watch of a kept lock is shared
 * with its keeper. */
#include "lock/deadline.h"
#include "base/base.h"

#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/timerfd.h>
#endif

/* A holder may renew for less than the margin he once asked for. */
int64_t rlk_watch_lost_us(const struct rlk_watch *watch)
{
    bool fits = watch->margin_us < watch->ttl_us;
    return watch->deadline_us - (fits ? watch->margin_us : watch->ttl_us / 20);
}

rowlock_state rlk_watch_state(const struct rlk_watch *watch, int64_t now_us, int64_t *next_us)
{
    int64_t lost_us = rlk_watch_lost_us(watch);
    int64_t jeopardy_us = watch->deadline_us - rlk_watch_reliable_us(watch, watch->ttl_us) / 2;
    *next_us = INT64_MAX;
    if (watch->over || now_us >= lost_us)
        return ROWLOCK_STATE_LOST;
    *next_us = lost_us;
    if (!watch->kept)
        return ROWLOCK_STATE_HELD;
    if (watch->failing || now_us >= jeopardy_us)
        return ROWLOCK_STATE_JEOPARDY;
    if (jeopardy_us < lost_us)
        *next_us = jeopardy_us;
    return ROWLOCK_STATE_HELD;
}

/* ---- the descriptor: a timer set to when the state gets worse than what was last asked for */

#ifdef __linux__

static int open_timer(void)
{
    return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

/* after_us 0: now; INT64_MAX: never. Setting a timer also makes it unreadable until it fires
 * anew. */
static void set_timer(int fd, int64_t after_us)
{
    struct itimerspec timer = {0};
    if (after_us != INT64_MAX) {
        timer.it_value.tv_sec = (time_t)(after_us / 1000000);
        timer.it_value.tv_nsec = after_us <= 0 ? 1 : (long)(after_us % 1000000) * 1000 + 1;
    }
    timerfd_settime(fd, 0, &timer, NULL);
}

#else

static int open_timer(void)
{
    return -1;
}

static void set_timer(int fd, int64_t after_us)
{
    (void)fd;
    (void)after_us;
}

#endif

void rlk_watch_open(struct rlk_watch *watch)
{
    if (watch->fd < 0)
        watch->fd = open_timer();
}

void rlk_watch_arm(struct rlk_watch *watch)
{
    int64_t now_us = rlk_now_us();
    int64_t next_us;
    rowlock_state state = rlk_watch_state(watch, now_us, &next_us);
    if (watch->fd < 0)
        return;
    if (state < watch->seen)
        watch->seen = state; /* better again: worse will be news */
    int64_t after_us = next_us == INT64_MAX ? INT64_MAX : next_us - now_us;
    set_timer(watch->fd, state > watch->seen ? 0 : after_us);
}

void rlk_watch_begin(struct rlk_watch *watch, int64_t margin_us)
{
    watch->kept = watch->failing = watch->over = false;
    watch->feared_us = 0;
    watch->seen = ROWLOCK_STATE_HELD;
    watch->margin_us = margin_us;
}

void rlk_watch_set(struct rlk_watch *watch, const struct rlk_term *term)
{
    watch->deadline_us = term->deadline_us;
    watch->expires_us = term->expires_us;
    watch->ttl_us = term->ttl_us;
    rlk_watch_arm(watch);
}

void rlk_watch_fear(struct rlk_watch *watch, int64_t ttl_us)
{
    if (!watch->feared_us || ttl_us < watch->feared_us)
        watch->feared_us = ttl_us;
}

int64_t rlk_watch_reliable_us(const struct rlk_watch *watch, int64_t ttl_us)
{
    return watch->feared_us && watch->feared_us < ttl_us ? watch->feared_us : ttl_us;
}

void rlk_watch_limit(const struct rlk_watch *watch, struct rlk_term *term)
{
    term->deadline_us -= term->ttl_us - rlk_watch_reliable_us(watch, term->ttl_us);
}

void rlk_watch_end(struct rlk_watch *watch)
{
    if (watch->fd >= 0)
        set_timer(watch->fd, INT64_MAX);
}
