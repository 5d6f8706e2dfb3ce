/* SPDX-License-Identifier: MIT
 * What a holder is told of its lease: the time left, the state, the descriptor that wakes. All
 * of it by our clock and from memory; renewing is elsewhere. The deadline of a lock with a keeper
 * is shared with its keeper. */
#include "lock/deadline.h"
#include "base/base.h"

#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/timerfd.h>
#endif

/* A holder may renew for less than the margin he once asked for. */
int64_t rlk_deadline_lost_us(const struct rlk_deadline *deadline)
{
    bool fits = deadline->margin_us < deadline->ttl_us;
    return deadline->deadline_us - (fits ? deadline->margin_us : deadline->ttl_us / 20);
}

rowlock_state rlk_deadline_state(const struct rlk_deadline *deadline, int64_t now_us,
                                 int64_t *next_us)
{
    int64_t lost_us = rlk_deadline_lost_us(deadline);
    int64_t jeopardy_us =
        deadline->deadline_us - rlk_deadline_reliable_us(deadline, deadline->ttl_us) / 2;
    *next_us = INT64_MAX;
    if (deadline->over || now_us >= lost_us)
        return ROWLOCK_STATE_LOST;
    *next_us = lost_us;
    if (!deadline->has_keeper)
        return ROWLOCK_STATE_HELD;
    if (deadline->failing || now_us >= jeopardy_us)
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

void rlk_deadline_open(struct rlk_deadline *deadline)
{
    if (deadline->fd < 0)
        deadline->fd = open_timer();
}

void rlk_deadline_arm(struct rlk_deadline *deadline)
{
    int64_t now_us = rlk_now_us();
    int64_t next_us;
    rowlock_state state = rlk_deadline_state(deadline, now_us, &next_us);
    if (deadline->fd < 0)
        return;
    if (state < deadline->seen)
        deadline->seen = state; /* better again: worse will be news */
    int64_t after_us = next_us == INT64_MAX ? INT64_MAX : next_us - now_us;
    set_timer(deadline->fd, state > deadline->seen ? 0 : after_us);
}

void rlk_deadline_begin(struct rlk_deadline *deadline, int64_t margin_us)
{
    deadline->has_keeper = deadline->failing = deadline->over = false;
    deadline->feared_us = 0;
    deadline->seen = ROWLOCK_STATE_HELD;
    deadline->margin_us = margin_us;
}

void rlk_deadline_set(struct rlk_deadline *deadline, const struct rlk_term *term)
{
    deadline->deadline_us = term->deadline_us;
    deadline->expires_us = term->expires_us;
    deadline->ttl_us = term->ttl_us;
    rlk_deadline_arm(deadline);
}

void rlk_deadline_fear(struct rlk_deadline *deadline, int64_t ttl_us)
{
    if (!deadline->feared_us || ttl_us < deadline->feared_us)
        deadline->feared_us = ttl_us;
}

int64_t rlk_deadline_reliable_us(const struct rlk_deadline *deadline, int64_t ttl_us)
{
    return deadline->feared_us && deadline->feared_us < ttl_us ? deadline->feared_us : ttl_us;
}

void rlk_deadline_limit(const struct rlk_deadline *deadline, struct rlk_term *term)
{
    term->deadline_us -= term->ttl_us - rlk_deadline_reliable_us(deadline, term->ttl_us);
}

void rlk_deadline_end(struct rlk_deadline *deadline)
{
    if (deadline->fd >= 0)
        set_timer(deadline->fd, INT64_MAX);
}
