/* SPDX-License-Identifier: MIT
 * Acquiring where it may take a wait. */
#ifndef RLK_QUEUE_H
#define RLK_QUEUE_H

#include "lock/try.h"

/* acquire.c */
int rlk_acquire(rowlock_lock *lock, const rowlock_acquire_options *options);

/* queue.c: after a try was BUSY, until one is not. TIMEOUT, CANCELLED, DEADLOCK, or as
 * rlk_try(). */
int rlk_wait_in_queue(struct rlk_acquiring *a);

/* start.c */
void rlk_started_stop(rowlock_db *db); /* cancels what was started, and waits for that */
void rlk_started_end(rowlock_lock *lock); /* the same, for a lock that is being closed */

/* lock_close.c */
void rlk_lock_abandon(rowlock_lock *lock); /* its rowlock_db, or it, is being closed */

#endif
