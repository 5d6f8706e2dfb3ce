/* SPDX-License-Identifier: MIT
 * All clocks of the library. That of leases and deadlines is monotonic, and runs while the machine
 * is suspended, as the leases in the database do. The time of a lease comes from the database. */
#include "base/base.h"

#ifndef CLOCK_BOOTTIME
#define CLOCK_BOOTTIME CLOCK_MONOTONIC
#endif
_Static_assert(sizeof(time_t) >= 8, "time ends in 2038: define _TIME_BITS=64, as Makefile does");

static int64_t read_us(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t system_clock_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

int64_t (*rlk_clock)(void) = system_clock_us;

int64_t rlk_now_us(void)
{
    return rlk_clock();
}

int64_t rlk_wall_us(void)
{
    return read_us(CLOCK_REALTIME);
}

struct timespec rlk_wait_clock(int64_t after_us)
{
    int64_t end_us = read_us(CLOCK_MONOTONIC) + after_us;
    return (struct timespec){(time_t)(end_us / 1000000), (long)(end_us % 1000000) * 1000};
}
