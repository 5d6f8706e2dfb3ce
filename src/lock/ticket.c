/* SPDX-License-Identifier: MIT
 * Giving back the ticket that a lock may have in its queue. lock/queue.c takes tickets. */
#include "lock/lock.h"
#include "core/ask.h"

/* A new connection may have given it back already. */
static enum rlk_class run_leave(rowlock_db *db, struct rlk_call *call, void *context)
{
    rowlock_lock *lock = context;
    return lock->ticket.request ? rlk_give_ticket_back(db, call, &lock->ticket) : RLK_DONE;
}

/* A ticket that cannot be given back stays until a later call gives it back, or its lease ends. The
 * error stays that of the call, since the caller wants the reason for leaving. */
void rlk_leave_queue(rowlock_lock *lock, int64_t not_after_us)
{
    rowlock_db *db = lock->db;
    rowlock_error why = db->error;
    struct rlk_step_call step = {.run = run_leave,
                                 .context = lock,
                                 .not_after_us = not_after_us,
                                 .worth_until_us = rlk_now_us() + lock->ticket.lease_us};
    if (lock->ticket.request && rlk_do(db, &step) != ROWLOCK_OK)
        rlk_log(ROWLOCK_LOG_WARNING,
                "the ticket for lock '%s' could not be removed and stays until its lease ends: %s",
                lock->name, db->error.text);
    db->error = why;
}
