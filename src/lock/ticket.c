/* SPDX-License-Identifier: MIT
 * Giving back the ticket that a lock may have in its queue. lock/acquire.c takes tickets. */
#include "lock/lock.h"
#include "core/ask.h"

/* A new connection gives it back before anything else. */
static int leave(rowlock_lock *lock, int64_t not_after_us)
{
    struct rlk_request request = {.name = lock->name, .number = lock->ticket.request};
    int64_t worth_until_us = rlk_now_us() + lock->ticket.lease_us;
    struct rlk_ask nothing = {.not_after_us = not_after_us, .worth_until_us = worth_until_us};
    struct rlk_ask ask = {.not_after_us = not_after_us, .worth_until_us = worth_until_us};
    int result = rlk_is_up(lock->db) ? ROWLOCK_OK : rlk_ask(lock->db, &nothing);
    if (result != ROWLOCK_OK || !lock->ticket.request)
        return result;
    rlk_step_leave(&ask, &request);
    result = rlk_ask(lock->db, &ask);
    if (result == ROWLOCK_OK && lock->ticket.request)
        rlk_ticket_left(lock->db, &lock->ticket);
    return result;
}

/* A ticket that cannot be given back stays until a later call gives it back, or its lease ends. The
 * error stays that of the call, since the caller wants the reason for leaving. */
void rlk_leave_queue(rowlock_lock *lock, int64_t not_after_us)
{
    rowlock_db *db = lock->db;
    rowlock_error why = db->error;
    if (lock->ticket.request && leave(lock, not_after_us) != ROWLOCK_OK)
        rlk_log(ROWLOCK_LOG_WARNING,
                "the ticket for lock '%s' could not be removed and stays until its lease ends: %s",
                lock->name, db->error.text);
    db->error = why;
}
