/* SPDX-License-Identifier: MIT
 * A lock's place with a keeper. All that take a lock do nothing for one that has no place. */
#ifndef RLK_KEEPER_H
#define RLK_KEEPER_H

#include "lock/lock.h"

void rlk_entry_enter(const rowlock_lock *lock); /* from here on its deadline stays as it is, */
void rlk_entry_leave(const rowlock_lock *lock); /* until here */
/* Make a place, before the grant so that nothing can go wrong after it; begin and end to renew.
 * After rlk_entry_stop() no callback is under way. */
int rlk_entry_join(rowlock_lock *lock, const rowlock_acquire_options *options);
void rlk_entry_start(rowlock_lock *lock);
bool rlk_entry_stop(rowlock_lock *lock); /* was it being renewed? */
void rlk_entry_quit(rowlock_lock *lock); /* the handle is being closed */
/* Around a renewal that the holder sends by itself: what the keeper has sent meanwhile may
 * count. */
uint64_t rlk_entry_serial(const rowlock_lock *lock);
void rlk_entry_renewed(rowlock_lock *lock, uint64_t serial, struct rlk_term *term);
/* On a connection of its own, which stop gives back to be closed; NULL: that is no keeper. */
int rlk_keeper_start(rowlock_keeper **out, rowlock_db *db);
rowlock_db *rlk_keeper_stop(rowlock_keeper *k);

#endif
