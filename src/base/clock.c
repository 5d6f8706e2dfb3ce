/* SPDX-License-Identifier: MIT
 * The one clock of the library: monotonic, and going on while the machine is suspended, since the
 * database's leases do too. The time of day is the database's business. */
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
