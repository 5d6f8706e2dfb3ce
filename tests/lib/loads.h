/* SPDX-License-Identifier: MIT
 *
 * What the random loads share: how long they run, and processes that are stopped and killed.
 *
 * A load ends when enough has happened, not when a time is over. ROWLOCK_TEST_LONG=1 asks for more,
 * and each load lasts for its seconds, or for ROWLOCK_TEST_SECONDS. ROWLOCK_TEST_SEED repeats the
 * random numbers. */
#ifndef LOADS_H
#define LOADS_H

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

/* ---- processes */

enum { CHILDREN_MAX = 64 };

/* 0 is no process. The caller fills in pid. */
struct children {
    pid_t pid[CHILDREN_MAX];
    /* 0: it runs. */
    int64_t stopped_until[CHILDREN_MAX];
    int stops, kills;
    /* How many did not end as they should. */
    int ended_badly;
};

/* For a child at its start: it ends when its parent does. */
void child_of_load(void);
/* SIGSTOP, unless it is stopped. */
void children_stop(struct children *c, int i, int64_t ms);
/* SIGKILL. Returns when it has ended. */
void children_kill(struct children *c, int i);
/* Those whose time is over go on. */
void children_wake(struct children *c);
/* All go on, and end by themselves. */
void children_join(struct children *c);

#endif
