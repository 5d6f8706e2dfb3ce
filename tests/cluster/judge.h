/* SPDX-License-Identifier: MIT
 *
 * The history of a load (load.c), and what it proves. Times are microseconds of CLOCK_MONOTONIC,
 * the same clock for all processes of one machine. Names have no blanks. A line of the file is
 * one of
 *
 *   P ttl_ms                            the lease of locks and jobs
 *   G name token asked answered until   a grant: its lease lasts until then, as its holder knows it
 *   H name token at until               the holder works on, and knows of this end of its lease
 *   E name token at                     the holder has stopped, and lets the lock go
 *   L name token at until               it was told LOST, although its lease ran on
 *   S name token at                     a child of `rowlock run` began
 *   t name token at                     and is alive
 *   C call result took_ms bound_ms      a call of the library
 *   O call result                       an answer that no client should get
 *   T id source target cents token      a transfer begins
 *   Y id, U id, F id                    it is committed; not known; not done
 *   W name token result before at       a write to the fenced register; before: the token there
 *   Q round place waiter                the queue before the lock was free: the waiter's place
 *   w round waiter result token         what became of the wait
 *   M at what                           the fault script did something
 *   b account cents, B account cents    what is in the account at the beginning and at the end
 *   J id source target cents token      a transfer that is in the journal at the end
 *   N name token                        the newest token of the name at the end
 *   R name token                        the token in the register at the end
 *
 * Lines that begin with # are for people. */
#ifndef CLUSTER_JUDGE_H
#define CLUSTER_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

enum charge {
    TOKEN_TWICE,
    TOKENS_OUT_OF_ORDER,
    TWO_HOLDERS,
    LEASE_OVERRUN,
    GRANT_LOST,
    GRANT_FORGOTTEN,
    MONEY,
    COMMIT_MISSING,
    COMMIT_UNASKED,
    NEWEST_REFUSED,
    REGISTER_BACK,
    WAITER_LOST,
    QUEUE_ORDER,
    CALL_LATE,
    ODD_ANSWER,
    CHARGES
};

/* The sentence that holds if there is no fault of this kind. */
extern const char *const charge_sentences[CHARGES];
/* May an asynchronous failover do this? */
extern const bool charge_of_loss[CHARGES];

struct judgement {
    /* How many faults of each kind, and the first ones in words. */
    int faults[CHARGES];
    char first[CHARGES][200];
    /* What was judged. */
    int grants, children, transfers, writes, rounds, waits, calls, errors;
    long long longest_call_ms;
};

/* slack_ms: a call may end so long after its deadline, because the machine is busy. */
void judge(const char *path, int slack_ms, struct judgement *out);

/* Calls each for every mark: the milliseconds until the next grant was answered, or -1. */
void judge_marks(const char *path,
                 void (*each)(void *context, const char *what, long long next_grant_ms),
                 void *context);

#endif
