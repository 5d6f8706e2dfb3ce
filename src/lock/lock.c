/* SPDX-License-Identifier: MIT
 * The handle of a lock: opening it, and what it tells without a round trip. acquire.c acquires
 * the lock, held.c has what follows. */
#include "lock/lock.h"
#include "base/ident.h"
#include "base/options.h"
#include "core/ask.h"

#include <string.h>
#include <unistd.h>

/* ---- open */

static void link_to_db(rowlock_lock *lock)
{
    lock->next = lock->db->locks;
    if (lock->next)
        lock->next->previous = lock;
    lock->db->locks = lock;
}

void rlk_lock_unlink(rowlock_lock *lock)
{
    rlk_ticket_end(lock->db, &lock->ticket);
    if (lock->next)
        lock->next->previous = lock->previous;
    if (lock->previous)
        lock->previous->next = lock->next;
    else
        lock->db->locks = lock->next;
    lock->next = lock->previous = NULL;
    lock->db = NULL;
}

static int new_lock(rowlock_db *db, const char *name, const char *owner, rowlock_lock **out)
{
    int result = rlk_check_text(&db->error, "lock's name", name, false);
    if (result == ROWLOCK_OK && owner)
        result = rlk_check_text(&db->error, "owner", owner, false);
    if (result != ROWLOCK_OK)
        return result;
    rowlock_lock *lock = rlk_alloc(sizeof *lock);
    if (!lock)
        return rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    memcpy(lock->name, name, strlen(name) + 1);
    if (owner) {
        memcpy(lock->owner, owner, strlen(owner) + 1);
        lock->named = true;
    } else if (rlk_random_owner(lock->owner) != 0) {
        rlk_free(lock);
        return rlk_fail(db, ROWLOCK_ESERVER, "the system gives no random numbers");
    }
    lock->tag = RLK_LOCK_TAG;
    lock->deadline.fd = -1;
    lock->ticket = (struct rlk_ticket){.name = lock->name, .owner = lock->owner};
    lock->db = db;
    link_to_db(lock);
    *out = lock;
    return ROWLOCK_OK;
}

int rowlock_lock_open(rowlock_db *db, const char *name, rowlock_lock **out)
{
    int result = rlk_enter_open(db, "open lock", NULL, out);
    return result == ROWLOCK_OK ? new_lock(db, name, db->owner[0] ? db->owner : NULL, out) : result;
}

int rowlock_lock_attach(rowlock_db *db, const char *name, const char *owner, int64_t token,
                        rowlock_lock **out)
{
    int result = rlk_enter_open(db, "attach to lock", NULL, out);
    if (result != ROWLOCK_OK)
        return result;
    if (!owner || token <= 0)
        return rlk_fail(db, ROWLOCK_EINVAL,
                        "attach needs the owner of the grant and its token, above 0");
    rowlock_lock *lock = NULL;
    result = new_lock(db, name, owner, &lock);
    if (!lock)
        return result;
    lock->attached = true;
    /* There is a grant. */
    db->takes_writes = true;
    lock->state = RLK_HOLDING;
    lock->depth = 1;
    lock->token = token;
    rlk_deadline_begin(&lock->deadline, 0);
    *out = lock;
    return ROWLOCK_OK;
}

/* ---- calls */

int rlk_enter_lock(const rowlock_lock *lock, const char *verb)
{
    if (!lock || lock->tag != RLK_LOCK_TAG)
        return ROWLOCK_EMISUSE;
    return rlk_enter(lock->db, verb, lock->name);
}

int rlk_enter_acquire(const rowlock_lock *lock, const char *verb,
                      const rowlock_acquire_options *theirs, rowlock_acquire_options *out)
{
    int result = rlk_enter_lock(lock, verb);
    return result == ROWLOCK_OK ? rlk_take_acquire_options(&lock->db->error, out, theirs) : result;
}

/* ---- what it tells without a round trip */

/* While an acquire runs in a thread, other locks of the same rowlock_db may still be asked. */
bool rlk_knows(const rowlock_lock *lock)
{
    if (!lock || lock->tag != RLK_LOCK_TAG || !lock->db || lock->db->pid != getpid())
        return false;
    return !lock->started || rlk_is_ours(lock->db);
}

bool rlk_holds(const rowlock_lock *lock)
{
    return rlk_knows(lock) && lock->state == RLK_HOLDING;
}

int64_t rowlock_lock_token(const rowlock_lock *lock)
{
    return rlk_holds(lock) ? lock->token : 0;
}

const char *rowlock_lock_name(const rowlock_lock *lock)
{
    return lock && lock->tag == RLK_LOCK_TAG ? lock->name : "";
}

const char *rowlock_lock_owner(const rowlock_lock *lock)
{
    return lock && lock->tag == RLK_LOCK_TAG ? lock->owner : "";
}

int rowlock_lock_holder(const rowlock_lock *lock, rowlock_grant *out)
{
    if (!lock || lock->tag != RLK_LOCK_TAG || (lock->db && !rlk_knows(lock)) || !out)
        return ROWLOCK_EMISUSE;
    if (!lock->holder_known)
        return ROWLOCK_NONE;
    rowlock_grant grant;
    rlk_grant_from_row(&grant, &lock->holder);
    rlk_give_struct(out, &grant, sizeof grant);
    return ROWLOCK_OK;
}
