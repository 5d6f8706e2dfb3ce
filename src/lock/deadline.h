/* SPDX-License-Identifier: MIT
 * A lease by our own clock. */
#ifndef RLK_DEADLINE_H
#define RLK_DEADLINE_H

#include <rowlock/rowlock.h>
#include <stdbool.h>
#include <stdint.h>

/* One term of a lease: what a grant or a renewal gives. */
struct rlk_term {
    int64_t ttl_us;
    int64_t expires_us; /* by the database's clock */
    int64_t deadline_us; /* by ours; never after the lease's end */
};

/* A lease by our own clock, and what is known about its end. */
struct rlk_deadline {
    int64_t deadline_us, expires_us, ttl_us; /* of the term that runs */
    int64_t margin_us; /* how much earlier than its end it is told lost */
    bool has_keeper; /* a keeper renews it */
    bool failing; /* the keeper could not, or may not */
    bool over; /* the grant is gone, or was told lost */
    int64_t feared_us; /* the shortest ttl of a renewal that may yet be carried out; 0: none */
    rowlock_state seen; /* what was last asked for */
    int fd; /* readable when the state is worse than that; -1: nobody wants it */
};

/* The deadline of a lock with a keeper is shared: rlk_entry_enter() first. */
rowlock_state rlk_deadline_state(const struct rlk_deadline *deadline, int64_t now_us,
                                 int64_t *next_us);
int64_t rlk_deadline_lost_us(const struct rlk_deadline *deadline); /* from when it is called lost */
void rlk_deadline_begin(struct rlk_deadline *deadline, int64_t margin_us); /* of a new grant */
void rlk_deadline_set(struct rlk_deadline *deadline, const struct rlk_term *term);
void rlk_deadline_open(struct rlk_deadline *deadline); /* make its descriptor */
void rlk_deadline_arm(struct rlk_deadline *deadline); /* after every other change */
/* A renewal got no answer. Until the grant ends it may be carried out after any other, so that
 * no later term can be relied upon for longer than its ttl. */
void rlk_deadline_fear(struct rlk_deadline *deadline, int64_t ttl_us);
int64_t rlk_deadline_reliable_us(const struct rlk_deadline *deadline, int64_t ttl_us);
void rlk_deadline_limit(const struct rlk_deadline *deadline, struct rlk_term *term);
void rlk_deadline_end(struct rlk_deadline *deadline);

#endif
