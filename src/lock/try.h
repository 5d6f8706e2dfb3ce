/* SPDX-License-Identifier: MIT
 * One try, for one lock or several at once. */
#ifndef RLK_TRY_H
#define RLK_TRY_H

#include "lock/lock.h"
#include "core/ask.h"

#include <string.h>

/* Locks that are being acquired. */
struct rlk_acquiring {
    rowlock_db *db;
    /* In the order of their names. */
    rowlock_lock *const *locks;
    size_t count;
    struct rlk_request *requests;
    /* The last answer. */
    struct rlk_grant *grants;
    /* The lock that was in the way. */
    size_t which;
    /* The end of the wait. 0: it does not wait. */
    int64_t until_us;
    rowlock_acquire_options options;
    /* What follows is set by each try. */
    struct rlk_ask ask;
    struct rlk_trying one;
    struct rlk_trying_all all;
    /* The lock that was in the way before this try. */
    size_t before;
};

/* It takes its lock and its places for a request and a grant from the caller. */
static inline void rlk_acquiring_one(struct rlk_acquiring *a, rowlock_lock *const *lock,
                                     struct rlk_request *request, struct rlk_grant *grant,
                                     const rowlock_acquire_options *options)
{
    memset(a, 0, offsetof(struct rlk_acquiring, ask));
    a->db = (*lock)->db;
    a->locks = lock;
    a->count = 1;
    a->requests = request;
    a->grants = grant;
    a->options = *options;
}

/* Returns OK, BUSY, MISMATCH, or an error. */
int rlk_try(struct rlk_acquiring *a);
/* The same in two halves: a->ask is sent between them, with this result. Of one lock; *whole false:
 * its new grant must be renewed for lock->request_us, and rlk_freshen_end() takes the result of
 * that. */
void rlk_try_begin(struct rlk_acquiring *a);
int rlk_try_end(struct rlk_acquiring *a, int result, bool *whole);
int rlk_freshen_end(rowlock_lock *lock, int result);
/* Other transactions were changing the lock all the time. Returns BUSY. */
int rlk_found_races(struct rlk_acquiring *a);
/* The holder that the last try met, if it alone keeps out a request of this kind. Else NULL. One
 * counted grant alone does not keep out a request of its own kind. */
static inline const struct rlk_row *rlk_met(const rowlock_lock *lock, int permits)
{
    bool enough = lock->holder_known && (permits == 0 || lock->holder.slot == 0);
    return enough && !lock->request_open ? &lock->holder : NULL;
}
struct rlk_request rlk_request_of(rowlock_lock *lock, const rowlock_acquire_options *options);
void rlk_take_grant(rowlock_lock *lock, const struct rlk_row *row, int64_t sent_us,
                    int64_t margin_us);
int rlk_found_busy(rowlock_lock *lock, const struct rlk_grant *grant, int permits);

#endif
