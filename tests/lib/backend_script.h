/* SPDX-License-Identifier: MIT
 *
 * A database that answers what a test tells it to, and a clock that shows what a test sets: core as
 * it is, without a server. What is checked is not here.  A program that uses this gets our
 * rlk_backend_find() in the place of the library's, so that rowlock_db_open() and the adoptions,
 * with any URL that has a known scheme, lead here. Several threads may ask it.
 */
#ifndef BACKEND_SCRIPT_H
#define BACKEND_SCRIPT_H

#include "internal.h"

enum script_op {
    OP_OPEN,
    OP_ADOPT,
    OP_CLOSE,
    OP_INSTALL,
    OP_META,
    OP_FACTS,
    OP_ACQUIRE,
    OP_PROBE,
    OP_RENEW,
    OP_RELEASE,
    OP_VERIFY,
    OP_LIST,
    OP_LAST,
    OP_SWEEP,
    OP_FOLD,
    OP_BREAK,
    OP_RENEW_ALL,
    OP_WITHDRAW,
    OP_GUARD,
    OP_FENCE,
    OP_RAISE,
    OP_COUNT
};

/* One answer. All zero is success: granted, found, in time, our tables of this version. */
struct script_answer {
    enum rlk_class class;
    const char *text, *sqlstate;
    int native;
    int64_t takes_us; /* the clock goes on by so much before the answer is there */
    enum rlk_outcome outcome; /* of acquire and probe */
    bool missing; /* no such grant, counter or row; fence: a newer token was seen */
    const char *but; /* renew_all: the lease of this name is not renewed; missing: none is */
    bool tx_over; /* inside: the caller's transaction is over */
    int64_t token; /* 0: the highest so far, which a new grant raises */
    int64_t left_us; /* of the lease; 0: all of it */
    int64_t lapsed_us; /* renew */
    int version; /* meta; 0: the one that core wants */
    const char *identity; /* meta; NULL: always the same */
    int rows; /* list, sweep, fold: this many */
};

#define ANSWER(...) ((struct script_answer){__VA_ARGS__})
#define FAILS(what) ((struct script_answer){.class = (what), .text = "the server's own words"})

extern struct script {
    bool probes_first;
    bool several; /* the URL names several servers */
    int64_t ahead_us; /* of the real clock, or, frozen, of its start */
    bool frozen;
    bool inside; /* a transaction of the caller's is open: what may join it does */
    void (*hook)(enum script_op op); /* called before each answer, by who asks; may be NULL */

    /* What the last calls asked. */
    int64_t attempts[64]; /* of acquire, in the order of the calls */
    int attempt_count;
    struct rlk_claim claim; /* its strings are the caller's */
    struct rlk_held held;
    int64_t renew_ttl_us;
    int64_t deadline_us;
    struct rlk_sweep sweep;
    struct rlk_fold fold;
    int64_t withdrawn; /* the attempt */
    int lease_counts[64]; /* of renew_all, in the order of the calls */
    int lease_call_count;
    int64_t lease_token; /* of its first lease */
    enum rlk_where where;
    bool closed_in_child;
    char last_after[RLK_TEXT_MAX + 1]; /* list, sweep: after which name */
} script;

/* Forget all answers and calls; put clock and memory back. */
void script_reset(void);

/* Answer the next call of op so, after those queued before; or every call for which nothing is
 * queued. */
void script_next(enum script_op op, struct script_answer answer);
void script_always(enum script_op op, struct script_answer answer);

/* "open meta acquire": the calls since this was last asked, closing left out; borrowed. */
const char *script_calls(void);
int script_count(enum script_op op); /* calls of op since the last reset */

/* Stop the clock, which then goes on only with takes_us. Real pauses would never end. */
void script_freeze(void);

/* The same as the fields above, while a keeper's thread may look at them. */
void script_pass_ms(int64_t ms);
void script_hook(void (*hook)(enum script_op op));
int script_leases(int nth); /* in the nth call of renew_all, from 0; -1: there was none */

/* Open; the program ends if it fails. Statement deadline and reconnecting last a moment each. */
rowlock_db *script_open(const rowlock_db_options *options);
rowlock_db *script_adopt(void);

enum { SCRIPT_MOMENT_MS = 60 };

#endif
