/* SPDX-License-Identifier: MIT
 * One try, for one lock or several at once. */
#ifndef RLK_TRY_H
#define RLK_TRY_H

#include "lock/lock.h"
#include "seam/resend.h"

/* Locks that are being acquired. */
struct rlk_acquiring {
    rowlock_db *db;
    rowlock_lock *const *locks; /* in the order of their names */
    size_t count;
    struct rlk_request *requests;
    struct rlk_grant *grants; /* the last answer */
    size_t which; /* the lock that was in the way */
    int64_t until_us; /* the end of the wait; 0: no wait */
    rowlock_acquire_options options;
    struct rlk_step_call step;
};

int rlk_try(struct rlk_acquiring *a); /* OK, BUSY, MISMATCH, or an error */
struct rlk_request rlk_request_of(rowlock_lock *lock, const rowlock_acquire_options *options);
void rlk_take_grant(rowlock_lock *lock, const struct rlk_row *row, int64_t sent_us,
                    int64_t margin_us);
int rlk_found_busy(rowlock_lock *lock, const struct rlk_grant *grant, int permits);

#endif
