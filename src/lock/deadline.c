/* SPDX-License-Identifier: MIT
 * What a holder can ask of its lease: the time left, the state, and a descriptor. The answers come
 * from the local clock and from memory. A lock shares its deadline with its keeper. */
#include "lock/deadline.h"
#include "base/alarm.h"
#include "base/base.h"

#include <string.h>
#include <unistd.h>

/* A renewal may be for less than the margin that acquire was given. */
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

/* ---- the descriptor: a timer that fires when the state becomes worse than `seen` */

void rlk_deadline_open(struct rlk_deadline *deadline)
{
    if (deadline->fd < 0)
        deadline->fd = rlk_alarm_open();
}

void rlk_deadline_arm(struct rlk_deadline *deadline)
{
    int64_t now_us = rlk_now_us();
    int64_t next_us;
    rowlock_state state = rlk_deadline_state(deadline, now_us, &next_us);
    if (deadline->fd < 0)
        return;
    /* The state is better again. The caller must see when it becomes worse. */
    if (state < deadline->seen)
        deadline->seen = state;
    int64_t after_us = next_us == INT64_MAX ? INT64_MAX : next_us - now_us;
    rlk_alarm_set(deadline->fd, state > deadline->seen ? 0 : after_us);
}

void rlk_deadline_begin(struct rlk_deadline *deadline, int64_t margin_us)
{
    deadline->has_keeper = deadline->failing = deadline->over = false;
    deadline->uncertain_us = 0;
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

void rlk_deadline_uncertain(struct rlk_deadline *deadline, int64_t ttl_us)
{
    if (!deadline->uncertain_us || ttl_us < deadline->uncertain_us)
        deadline->uncertain_us = ttl_us;
}

int64_t rlk_deadline_reliable_us(const struct rlk_deadline *deadline, int64_t ttl_us)
{
    return deadline->uncertain_us && deadline->uncertain_us < ttl_us ? deadline->uncertain_us
                                                                     : ttl_us;
}

void rlk_deadline_limit(const struct rlk_deadline *deadline, struct rlk_term *term)
{
    term->deadline_us -= term->ttl_us - rlk_deadline_reliable_us(deadline, term->ttl_us);
}

void rlk_deadline_end(struct rlk_deadline *deadline)
{
    if (deadline->fd >= 0)
        rlk_alarm_set(deadline->fd, INT64_MAX);
}
