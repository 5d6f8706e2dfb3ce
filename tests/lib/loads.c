/* SPDX-License-Identifier: MIT
 *
 * What the random loads share; see loads.h. */
#include "loads.h"

#include <sys/mman.h>
#include <sys/prctl.h>

bool load_is_long(void)
{
    const char *text = getenv("ROWLOCK_TEST_LONG");
    return text && *text && *text != '0';
}

int load_count(int brief, int whole, int least)
{
    int count = (int)((load_is_long() ? whole : brief) / slowdown());
    return count > least ? count : least;
}

/* 0 in the brief form. */
static int64_t load_ms(int64_t whole)
{
    const char *seconds = getenv("ROWLOCK_TEST_SECONDS");
    return !load_is_long() ? 0 : seconds ? strtoll(seconds, NULL, 10) * 1000 : whole;
}

bool load_has_lasted(int64_t began_ms, int64_t whole)
{
    return clock_ms() - began_ms >= load_ms(whole);
}

bool load_is_hopeless(int64_t began_ms, int64_t whole)
{
    return clock_ms() - began_ms >= load_ms(whole) + slow_ms(LOAD_GIVE_UP_MS);
}

unsigned load_seed(void)
{
    const char *text = getenv("ROWLOCK_TEST_SEED");
    unsigned seed = text ? (unsigned)strtoul(text, NULL, 10) : (unsigned)getpid();
    tap_note("seed %u", seed);
    return seed;
}

void *load_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        abort();
    return memory;
}

void child_of_load(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}
