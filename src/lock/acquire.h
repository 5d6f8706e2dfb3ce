/* SPDX-License-Identifier: MIT
 * Acquiring, with a wait in the queue if the caller allows it. */
#ifndef RLK_ACQUIRE_H
#define RLK_ACQUIRE_H

#include "lock/queueing.h"

/* acquire.c */
int rlk_acquire(rowlock_lock *lock, const rowlock_acquire_options *options);
/* Its parts, for an acquire that does not block (stepped.c). */
int rlk_check_unattached(rowlock_lock *lock);
int rlk_check_reentry(rowlock_lock *lock, const rowlock_acquire_options *options);
/* The wait's end, the keeper's entries, the requests. */
int rlk_acquire_begin(struct rlk_acquiring *a);

/* The ask of TAKE_TICKET or LOOK_FOR_CYCLE, and what its result means. */
void rlk_act_begin(struct rlk_queueing *q, enum rlk_act act, struct rlk_ask *ask);
void rlk_act_end(struct rlk_queueing *q, enum rlk_act act, const struct rlk_ask *ask, int result);
/* The ticket of LEAVE was given back, or stays until its lease ends. */
void rlk_forget_place(struct rlk_queueing *q);

/* stepped.c: an acquire that rowlock_acquire_step() drives, for a handle whose driver does not
 * block. It never moves. */
struct rlk_stepped;
/* NULL: no memory, or no alarm. */
struct rlk_stepped *rlk_stepped_new(rowlock_lock *lock, const rowlock_acquire_options *options);
/* Goes on. True: it has ended with *result. */
bool rlk_stepped_go(struct rlk_stepped *s, int *result);

/* start.c */
/* Cancels a started acquire, and waits for its thread. */
void rlk_started_stop(rowlock_db *db);
/* The same for a lock that is being closed. It drops the result too. */
void rlk_started_end(rowlock_lock *lock);

/* lock_close.c */
/* The lock or its rowlock_db is being closed: gives back what the lock has, and unlinks it. */
void rlk_lock_abandon(rowlock_lock *lock);

#endif
