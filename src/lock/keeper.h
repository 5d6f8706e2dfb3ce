/* SPDX-License-Identifier: MIT
 * A lock's entry in a keeper. Without an entry the functions that take a lock do nothing, except
 * rlk_entry_join(). */
#ifndef RLK_KEEPER_H
#define RLK_KEEPER_H

#include "lock/lock.h"

/* The keeper does not change the lock's deadline between enter and leave. */
void rlk_entry_enter(const rowlock_lock *lock);
void rlk_entry_leave(const rowlock_lock *lock);
/* Makes the entry. Call it before the grant, since it can fail. patient_until_us is that of struct
 * rlk_ask. */
int rlk_entry_join(rowlock_lock *lock, const rowlock_acquire_options *options,
                   int64_t patient_until_us);
/* Begins to renew. */
void rlk_entry_start(rowlock_lock *lock);
/* Stops renewing, and waits until no callback runs. Returns whether the lock was renewed. */
bool rlk_entry_stop(rowlock_lock *lock);
/* Ends the entry: the handle is closed, or gets another keeper or none. */
void rlk_entry_quit(rowlock_lock *lock);
/* The holder renews by itself: call renewing before it and renewed after it. Meanwhile the shorter
 * lease counts. If a renewal of the keeper crossed it, they shorten the term. */
uint64_t rlk_entry_renewing(rowlock_lock *lock, int64_t ttl_us);
void rlk_entry_renewed(rowlock_lock *lock, uint64_t serial, struct rlk_term *term);
/* keepers.c */
/* Finds or opens the keeper that all handles of this installation share. Its statements need not
 * last longer than limit_ms. The handle has looked at the tables. */
int rlk_keeper_share(rowlock_db *db, int64_t limit_ms, bool may_cancel, rowlock_keeper **out);
/* Before the handle is freed. */
void rlk_keeper_unshare(rowlock_db *db);

/* keeper.c */
/* The keeper needs db for itself. Its statements last most_ms at most. rlk_keeper_stop() returns
 * db, to be closed, or NULL if k is not a keeper. */
int rlk_keeper_start(rowlock_keeper **out, rowlock_db *db, int64_t most_ms);
rowlock_db *rlk_keeper_stop(rowlock_keeper *k);

#endif
