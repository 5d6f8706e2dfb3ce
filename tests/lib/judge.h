/* SPDX-License-Identifier: MIT
 *
 * What the history of a load (history.h) proves. The loads of locks, clusters and quorums have the
 * same judge. Each has its own sentences. */
#pragma once

#include "quick.h"

enum charge {
    TOKEN_TWICE,
    TOKENS_OUT_OF_ORDER,
    TOKEN_NOT_HIGHER,
    TWO_HOLDERS,
    TOO_MANY_HOLDERS,
    OUTAGE_GRANT,
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

/* What holds if there is no fault of this kind. */
struct sentence {
    const char *text;
    enum charge charge;
    /* May an asynchronous failover do this? */
    bool of_loss;
};

/* The last one has no text. */
extern const struct sentence cluster_sentences[], quorum_sentences[], lock_sentences[],
    queue_sentences[];

struct judgement {
    /* How many faults of each kind, and the first ones in words. */
    int faults[CHARGES];
    char first[CHARGES][200];
    /* What was judged. */
    int grants, children, transfers, writes, refusals, outages, rounds, waits, calls, errors;
    long long longest_call_ms;
    /* Looks at grants by the database's clock: how often a look found one, or LOST, and the highest number
     * of counted holders at once. */
    int confirmed, lost, most_beside;
};

/* slack_ms: a call may end so long after its deadline, because the machine is busy. */
void judge(const char *path, int slack_ms, struct judgement *out);

/* Prints "ok - SENTENCE" or "not ok - SENTENCE", and the first fault. may: what is "ok" in any case. */
void print_sentences(const struct judgement *j, const struct sentence *sentences, const char *may);

/* The same as checks of tap.h, which begin with who. Returns the number of faults. */
int tap_sentences(const struct judgement *j, const struct sentence *sentences, const char *who);

/* Calls each for every mark: the milliseconds until the next grant was answered, or -1. */
void judge_marks(const char *path,
                 void (*each)(void *context, const char *what, long long next_grant_ms),
                 void *context);
