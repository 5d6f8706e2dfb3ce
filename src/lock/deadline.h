/* SPDX-License-Identifier: MIT
 * A lease by the local clock. */
#ifndef RLK_DEADLINE_H
#define RLK_DEADLINE_H

#include <rowlock/rowlock.h>
#include <stdbool.h>
#include <stdint.h>

/* One term of a lease: what a grant or a renewal gives. */
struct rlk_term {
    int64_t ttl_us;
    /* By the database's clock. */
    int64_t expires_us;
    /* By the local clock. The lease in the database never ends before it. */
    int64_t deadline_us;
};

/* A lease by the local clock, and what is known about its end. */
struct rlk_deadline {
    /* The current term. */
    int64_t deadline_us, expires_us, ttl_us;
    /* The state is LOST this long before the deadline. */
    int64_t margin_us;
    bool has_keeper;
    /* The keeper could not renew the lease, or may not. */
    bool failing;
    /* The grant is gone, or its state has been LOST. */
    bool over;
    /* The shortest ttl of a renewal that the server may still carry out. 0: there is none. */
    int64_t uncertain_us;
    /* The end and the ttl of a renewal under way. The server may have done it. 0: there is none. */
    int64_t pending_us, pending_ttl_us;
    /* The state that the caller has last read. */
    rowlock_state seen;
    /* Readable while the state is worse than `seen`. -1: the caller has not asked for it. */
    int fd;
};

/* A lock shares its deadline with its keeper: call rlk_entry_enter() before these functions. */
rowlock_state rlk_deadline_state(const struct rlk_deadline *deadline, int64_t now_us,
                                 int64_t *next_us);
/* When the lease ends, and when the state becomes LOST. A renewal under way may shorten both. */
int64_t rlk_deadline_end_us(const struct rlk_deadline *deadline);
int64_t rlk_deadline_lost_us(const struct rlk_deadline *deadline);
/* For a new grant. */
void rlk_deadline_begin(struct rlk_deadline *deadline, int64_t margin_us);
void rlk_deadline_set(struct rlk_deadline *deadline, const struct rlk_term *term);
/* The answer to a renewal was lost. The server may carry it out after any later renewal, until the
 * grant ends. So no later term is reliable for longer than its ttl. */
void rlk_deadline_uncertain(struct rlk_deadline *deadline, int64_t ttl_us);
/* How much of a term of ttl_us is reliable. */
int64_t rlk_deadline_reliable_us(const struct rlk_deadline *deadline, int64_t ttl_us);
/* Shortens a term to what is reliable. */
void rlk_deadline_limit(const struct rlk_deadline *deadline, struct rlk_term *term);

/* state_fd.c */
/* Makes the descriptor. */
void rlk_deadline_open(struct rlk_deadline *deadline);
/* Sets the descriptor's timer. Call it after each change of the deadline. */
void rlk_deadline_arm(struct rlk_deadline *deadline);
void rlk_deadline_end(struct rlk_deadline *deadline);

#endif
