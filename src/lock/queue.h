/* SPDX-License-Identifier: MIT
 * Acquiring, with a wait in the queue if the caller allows it. */
#ifndef RLK_QUEUE_H
#define RLK_QUEUE_H

#include "lock/try.h"

/* acquire.c */
int rlk_acquire(rowlock_lock *lock, const rowlock_acquire_options *options);

/* queue.c: call it after a BUSY try. It tries again until the result is another one. Returns
 * TIMEOUT, CANCELLED, DEADLOCK, or what rlk_try() returns. */
int rlk_wait_in_queue(struct rlk_acquiring *a);
/* Tests set the pause between two polls. If it is very long, only a wake-up ends a wait. 0: the
 * pause is computed. */
extern int64_t rlk_poll_pause_us;

/* start.c */
/* Cancels a started acquire, and waits for its thread. */
void rlk_started_stop(rowlock_db *db);
/* The same for a lock that is being closed. It drops the result too. */
void rlk_started_end(rowlock_lock *lock);

/* lock_close.c */
/* The lock or its rowlock_db is being closed: gives back what the lock has, and unlinks it. */
void rlk_lock_abandon(rowlock_lock *lock);

#endif
