/* SPDX-License-Identifier: MIT
 * The descriptor of a lock's state: a timer that fires when the state becomes worse than `seen`. */
#include "base/base.h"
#include "base/wait.h"
#include "lock/deadline.h"

void rlk_deadline_open(struct rlk_deadline *deadline)
{
    if (deadline->fd < 0)
        deadline->fd = rlk_alarm_open();
}

void rlk_deadline_arm(struct rlk_deadline *deadline)
{
    if (deadline->fd < 0)
        return;
    int64_t now_us = rlk_now_us(), next_us;
    rowlock_state state = rlk_deadline_state(deadline, now_us, &next_us);
    /* The state is better again. The caller must see when it becomes worse. */
    if (state < deadline->seen)
        deadline->seen = state;
    int64_t after_us = next_us == INT64_MAX ? INT64_MAX : next_us - now_us;
    rlk_alarm_set(deadline->fd, state > deadline->seen ? 0 : after_us);
}

void rlk_deadline_end(struct rlk_deadline *deadline)
{
    if (deadline->fd >= 0)
        rlk_alarm_set(deadline->fd, INT64_MAX);
}
