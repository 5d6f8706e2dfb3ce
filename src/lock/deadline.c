/* SPDX-License-Identifier: MIT
 * What a holder can ask of its lease: the time left, and the state. A machine. */
#include "lock/deadline.h"

int64_t rlk_deadline_end_us(const struct rlk_deadline *deadline)
{
    bool shortens = deadline->pending_us && deadline->pending_us < deadline->deadline_us;
    return shortens ? deadline->pending_us : deadline->deadline_us;
}

/* A renewal may be for less than the margin that acquire was given. */
int64_t rlk_deadline_lost_us(const struct rlk_deadline *deadline)
{
    int64_t end_us = rlk_deadline_end_us(deadline);
    int64_t ttl_us = end_us == deadline->pending_us ? deadline->pending_ttl_us : deadline->ttl_us;
    return end_us - (deadline->margin_us < ttl_us ? deadline->margin_us : ttl_us / 20);
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

void rlk_deadline_begin(struct rlk_deadline *deadline, int64_t margin_us)
{
    deadline->has_keeper = deadline->failing = deadline->over = false;
    deadline->uncertain_us = deadline->pending_us = 0;
    deadline->seen = ROWLOCK_STATE_HELD;
    deadline->margin_us = margin_us;
}

void rlk_deadline_set(struct rlk_deadline *deadline, const struct rlk_term *term)
{
    deadline->deadline_us = term->deadline_us;
    deadline->expires_us = term->expires_us;
    deadline->ttl_us = term->ttl_us;
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
