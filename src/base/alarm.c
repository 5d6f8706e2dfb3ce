/* SPDX-License-Identifier: MIT */
#include "base/alarm.h"

#ifdef __linux__
#include <errno.h>
#include <sys/timerfd.h>

int rlk_alarm_open(void)
{
    return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

/* A zero would disarm it. */
void rlk_alarm_set(int fd, int64_t after_us)
{
    int saved = errno;
    struct itimerspec timer = {0};
    if (after_us != INT64_MAX) {
        timer.it_value.tv_sec = after_us <= 0 ? 0 : (time_t)(after_us / 1000000);
        timer.it_value.tv_nsec = after_us <= 0 ? 1 : (long)(after_us % 1000000) * 1000 + 1;
    }
    timerfd_settime(fd, 0, &timer, NULL);
    errno = saved;
}

#else

int rlk_alarm_open(void)
{
    return -1;
}

void rlk_alarm_set(int fd, int64_t after_us)
{
    (void)fd;
    (void)after_us;
}

#endif
