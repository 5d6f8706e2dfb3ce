/* SPDX-License-Identifier: MIT
 * The only clock of the library. It is monotonic, and runs while the machine is suspended, as the
 * leases in the database do. The time of day comes from the database. */
#include "base/base.h"

#include <time.h>

#ifdef CLOCK_BOOTTIME
#define LEASE_CLOCK CLOCK_BOOTTIME
#else
#define LEASE_CLOCK CLOCK_MONOTONIC
#endif

static int64_t system_clock_us(void)
{
    struct timespec now;
    clock_gettime(LEASE_CLOCK, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t (*rlk_clock)(void) = system_clock_us;

int64_t rlk_now_us(void)
{
    return rlk_clock();
}
