/* SPDX-License-Identifier: MIT
 *
 * What the random loads share: how long they run, and what their processes share.
 *
 * A load ends when enough has happened, not when a time is over. ROWLOCK_TEST_LONG=1 asks for more,
 * and each load lasts for its seconds, or for ROWLOCK_TEST_SECONDS. ROWLOCK_TEST_SEED repeats the
 * random numbers. */
#pragma once

#include "quick.h"

/* A load in which nothing more happens for this reason has failed. */
enum { LOAD_GIVE_UP_MS = 300000 };

bool load_is_long(void);
/* How many are enough. A slow build has a share of them, but least. */
int load_count(int brief, int whole, int least);
/* Is the time over, or has the load waited in vain for what should happen? */
bool load_has_lasted(int64_t began_ms, int64_t whole);
bool load_is_hopeless(int64_t began_ms, int64_t whole);
/* Prints it. */
unsigned load_seed(void);
/* Zeros, shared with the processes that are started later. */
void *load_memory(size_t size);

/* For a child at its start: it ends when its parent does. */
void child_of_load(void);
