/* SPDX-License-Identifier: MIT
 * Closing a lock: it ends a started acquire, and releases what the lock holds. */
#include "lock/keeper.h"
#include "lock/acquire.h"

#include <unistd.h>

void rlk_lock_abandon(rowlock_lock *lock)
{
    rlk_started_end(lock);
    rlk_entry_quit(lock);
    rlk_release_quietly(lock);
    /* A forked child shares the timer with its parent. */
    if (lock->db->pid == getpid())
        rlk_deadline_end(&lock->deadline);
    rlk_lock_unlink(lock);
    lock->state = RLK_IDLE;
}

void rowlock_lock_close(rowlock_lock *lock)
{
    if (!lock || lock->tag != RLK_LOCK_TAG)
        return;
    if (lock->db)
        rlk_lock_abandon(lock);
    if (lock->deadline.fd >= 0)
        close(lock->deadline.fd);
    lock->tag = 0;
    rlk_free(lock);
}
