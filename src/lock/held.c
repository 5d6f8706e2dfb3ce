/* SPDX-License-Identifier: MIT
 * A lock that is held: what each answer of the database means for it, and what its holder can ask
 * of its lease. acquire.c acquires a lock. core/ask.c sends the steps. */
#include "base/ident.h"
#include "base/options.h"
#include "lock/keeper.h"
#include "lock/lock.h"
#include "core/ask.h"
#include "core/core.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* How long a close tries to reach a lost server, to give back a ticket. The ticket's own lease ends
 * soon, so this is short. */
enum { CLOSE_US = 500000 };

void rlk_hold_nothing(rowlock_lock *lock)
{
    rlk_entry_stop(lock);
    rlk_deadline_end(&lock->deadline);
    lock->state = RLK_IDLE;
    lock->depth = 0;
}

void rowlock_forget(rowlock_lock *lock)
{
    if (!rlk_knows(lock))
        return;
    rlk_hold_nothing(lock);
    lock->request_open = lock->release_open = false;
}

/* ---- renew, verify, release: steps of a grant */

/* We assume slot 0 for an attached grant. If no row is there, we try slot = token once. */
bool rlk_try_other_slot(rowlock_lock *lock)
{
    bool unknown = lock->attached && lock->permits == 0 && !lock->slot_known;
    lock->slot_known = true;
    if (unknown)
        lock->permits = ROWLOCK_SHARED;
    return unknown;
}

static int found_lost(rowlock_lock *lock)
{
    rlk_entry_stop(lock);
    lock->state = RLK_GONE;
    lock->db->stats.lost++;
    lock->deadline.over = true;
    rlk_deadline_arm(&lock->deadline);
    rlk_log(ROWLOCK_LOG_WARNING, "lock '%s' with token %" PRId64 " is lost", lock->name,
            lock->token);
    return rlk_fail(lock->db, ROWLOCK_LOST,
                    "the grant with token %" PRId64 " is no longer in the table", lock->token);
}

/* A handle that was LOST stays LOST. */
int rlk_need_grant(const rowlock_lock *lock, rowlock_db *db)
{
    if (lock->state == RLK_HOLDING)
        return ROWLOCK_OK;
    if (lock->state == RLK_GONE)
        return rlk_fail(db, ROWLOCK_LOST, "the grant was lost earlier");
    return rlk_fail(db, ROWLOCK_EMISUSE, "this handle does not hold the lock");
}

void rlk_renew_begin(rowlock_lock *lock, struct rlk_renewal *r, int64_t ttl_us,
                     int64_t patient_until_us)
{
    *r = (struct rlk_renewal){.held = rlk_held_of(lock), .ttl_us = ttl_us};
    r->ask.patient_until_us = patient_until_us;
    r->ask.retryable_if_lost = true;
    rlk_step_renew(&r->ask, &r->held, ttl_us, &r->answer);
    r->serial = rlk_entry_renewing(lock, ttl_us);
}

/* A renewal whose answer was lost may have shortened the lease, or may do so later. */
static void set_renewed(rowlock_lock *lock, const struct rlk_renewal *r, struct rlk_term *term)
{
    struct rlk_deadline *deadline = &lock->deadline;
    rlk_entry_enter(lock);
    if (r->ask.was_uncertain) {
        rlk_deadline_uncertain(deadline, r->ttl_us);
        deadline->deadline_us = rlk_deadline_end_us(deadline);
    }
    deadline->pending_us = 0;
    if (term) {
        rlk_deadline_limit(deadline, term);
        rlk_entry_renewed(lock, r->serial, term);
        deadline->over = false;
        rlk_deadline_set(deadline, term);
    }
    rlk_deadline_arm(deadline);
    rlk_entry_leave(lock);
}

int rlk_renew_end(rowlock_lock *lock, const struct rlk_renewal *r, int result)
{
    bool renewed = result == ROWLOCK_OK && r->ask.rows > 0;
    struct rlk_term term =
        rlk_term_of(r->ask.sent_us, r->answer.expires_us, r->answer.now_us, r->ttl_us);
    set_renewed(lock, r, renewed ? &term : NULL);
    if (!renewed)
        return result == ROWLOCK_OK ? found_lost(lock) : result;
    lock->slot_known = true;
    lock->release_open = lock->unproven = false;
    atomic_fetch_add_explicit(&lock->db->renewals, 1, memory_order_relaxed);
    lock->db->stats.lapsed += r->answer.lapsed_us > 0;
    return r->answer.lapsed_us > 0 ? ROWLOCK_LAPSED : ROWLOCK_OK;
}

/* No row was found. A server whose standby was promoted may lack the grant, and rlk_verify() fails
 * there. true: it is there now, so ask again. Not without end: a trigger may keep the row. */
static bool stands(rowlock_lock *lock, int *result, int *rounds)
{
    struct rlk_held held = rlk_held_of(lock);
    struct rlk_verified verified = {0};
    *result = rlk_verify(lock->db, &held, RLK_OUTSIDE, 0, &verified);
    if (*result == ROWLOCK_OK && verified.found && ++*rounds > 3)
        *result = rlk_fail(lock->db, ROWLOCK_ESERVER,
                           "the database keeps the grant as it is: look for triggers and policies");
    return *result == ROWLOCK_OK && verified.found;
}

int rlk_renew(rowlock_lock *lock, int64_t ttl_us, int64_t patient_until_us)
{
    struct rlk_renewal r;
    int result, rounds = 0;
    do {
        rlk_renew_begin(lock, &r, ttl_us, patient_until_us);
        result = rlk_ask(lock->db, &r.ask);
    } while (result == ROWLOCK_OK && r.ask.rows == 0 &&
             (rlk_try_other_slot(lock) || stands(lock, &result, &rounds)));
    return rlk_renew_end(lock, &r, result);
}

static int64_t lease_ttl(const rowlock_lock *lock)
{
    rlk_entry_enter(lock);
    int64_t ttl_us = lock->deadline.ttl_us;
    rlk_entry_leave(lock);
    return ttl_us;
}

int rowlock_renew(rowlock_lock *lock, int64_t ttl_ms)
{
    int result = rlk_enter_lock(lock, "renew lock");
    if (result != ROWLOCK_OK || (result = rlk_need_grant(lock, lock->db)) != ROWLOCK_OK ||
        (ttl_ms != 0 && (result = rlk_check_ttl(&lock->db->error, ttl_ms)) != ROWLOCK_OK))
        return result;
    return rlk_end_call(lock->db, rlk_renew(lock, ttl_ms ? ttl_ms * 1000 : lease_ttl(lock), 0));
}

int rowlock_verify(rowlock_lock *lock)
{
    int result = rlk_enter_lock(lock, "verify lock");
    if (result != ROWLOCK_OK || (result = rlk_need_grant(lock, lock->db)) != ROWLOCK_OK)
        return result;
    struct rlk_held held = rlk_held_of(lock);
    struct rlk_verified verified = {0};
    result = rlk_verify(lock->db, &held, RLK_OUTSIDE, 0, &verified);
    if (result != ROWLOCK_OK)
        return result;
    if (!verified.found)
        return rlk_try_other_slot(lock) ? rowlock_verify(lock) : found_lost(lock);
    lock->slot_known = true;
    lock->unproven = false;
    bool lapsed = verified.expires_us <= verified.now_us;
    return rlk_end_call(lock->db, lapsed ? ROWLOCK_LAPSED : ROWLOCK_OK);
}

/* A database may report no change if the note was the same before. The grant may also be gone. */
static int set_note(rowlock_lock *lock, const char *text)
{
    struct rlk_held held = rlk_held_of(lock);
    struct rlk_ask ask = {.retryable_if_lost = true};
    rlk_step_note(&ask, &held, text);
    int result = rlk_ask(lock->db, &ask);
    int rounds = 0;
    bool found = rlk_has_changed(&ask) || (result == ROWLOCK_OK && stands(lock, &result, &rounds));
    if (result != ROWLOCK_OK)
        return result;
    if (!found)
        return rlk_try_other_slot(lock) ? set_note(lock, text) : found_lost(lock);
    lock->slot_known = true;
    lock->unproven = false;
    return ROWLOCK_OK;
}

int rowlock_note(rowlock_lock *lock, const char *note)
{
    int result = rlk_enter_lock(lock, "set the note of lock");
    if (result != ROWLOCK_OK || (result = rlk_need_grant(lock, lock->db)) != ROWLOCK_OK)
        return result;
    const char *text = note ? note : "";
    result = rlk_check_text(&lock->db->error, "note", text, true);
    return result == ROWLOCK_OK ? set_note(lock, text) : result;
}

/* The row is gone, and the answer to an earlier delete of ours was lost. If the counter still has
 * our token, the lock was neither granted again nor broken. Then our delete removed the row. */
static int resolve_release(rowlock_lock *lock)
{
    struct rlk_last last;
    int result = rlk_last_grant(lock->db, lock->name, &last);
    if (result != ROWLOCK_OK) {
        rowlock_error why = lock->db->error;
        rlk_fail(lock->db, ROWLOCK_EUNCERTAIN,
                 "the grant is gone; it is not known whether our own release ended it: %s",
                 why.text);
        lock->db->error.retryable = why.retryable;
        return ROWLOCK_EUNCERTAIN;
    }
    if (last.found && last.token == lock->token)
        return ROWLOCK_OK;
    found_lost(lock);
    rlk_fail(lock->db, ROWLOCK_LOST,
             "the lock was granted again, or broken, since token %" PRId64
             "; the answer to an earlier release was lost, so that release may have come first",
             lock->token);
    lock->db->error.answer_lost = 1;
    return ROWLOCK_LOST;
}

/* The answer to a release was lost. The lock may be free until a renewal finds the grant. */
static void doubt_grant(rowlock_lock *lock)
{
    lock->release_open = true;
    lock->deadline.over = true;
    rlk_deadline_arm(&lock->deadline);
}

/* The keeper stops first, so that no renewal begins after the release. We do not wait for one that
 * is in flight. worth_until_us: see struct rlk_ask. */
static int release_grant(rowlock_lock *lock, int64_t worth_until_us)
{
    int result, rounds = 0;
    rlk_entry_stop(lock);
    do {
        struct rlk_held held = rlk_held_of(lock);
        struct rlk_ask ask = {.worth_until_us = worth_until_us, .retryable_if_lost = true};
        rlk_step_release(&ask, &held);
        result = rlk_ask(lock->db, &ask);
        if (ask.was_uncertain)
            doubt_grant(lock);
        if (result != ROWLOCK_OK || rlk_has_changed(&ask))
            return result;
    } while (rlk_try_other_slot(lock) || (!lock->release_open && stands(lock, &result, &rounds)));
    if (result == ROWLOCK_OK)
        result = lock->release_open ? resolve_release(lock) : found_lost(lock);
    return result;
}

/* Removes the grant of an acquire whose answer was lost, if there is one. */
static int withdraw_grant(rowlock_lock *lock)
{
    struct rlk_request request = {
        .name = lock->name, .owner = lock->owner, .number = lock->request};
    struct rlk_ask ask = {.worth_until_us = rlk_now_us() + lock->request_us};
    rlk_step_withdraw(&ask, &request);
    int result = rlk_ask(lock->db, &ask);
    if (result == ROWLOCK_OK)
        rlk_tell(lock->db, RLK_OUTSIDE, RLK_WITHDRAWN, &request, 0);
    return result;
}

void rlk_release_quietly(rowlock_lock *lock)
{
    bool holding = lock->state == RLK_HOLDING && !lock->attached;
    if (lock->db->pid != getpid() || (!holding && !lock->request_open && !lock->ticket.request))
        return;
    rlk_action(lock->db, "release at close lock", lock->name);
    rlk_leave_queue(lock, rlk_is_up(lock->db) ? 0 : rlk_now_us() + CLOSE_US);
    if (!holding && !lock->request_open)
        return;
    int result =
        holding ? release_grant(lock, rlk_now_us() + lease_ttl(lock)) : withdraw_grant(lock);
    if (result != ROWLOCK_OK)
        rlk_log(ROWLOCK_LOG_WARNING, "lock '%s' could not be released at close: %s", lock->name,
                lock->db->error.text);
}

int rowlock_release(rowlock_lock *lock)
{
    int result = rlk_enter_lock(lock, "release lock");
    if (result != ROWLOCK_OK)
        return result;
    if (lock->state == RLK_HOLDING && lock->depth > 1) {
        lock->depth--;
        return ROWLOCK_OK;
    }
    if (lock->state == RLK_HOLDING)
        result = release_grant(lock, 0);
    else if (lock->state == RLK_GONE && lock->release_open)
        result = resolve_release(lock);
    else
        result = rlk_need_grant(lock, lock->db);
    if (result != ROWLOCK_OK && result != ROWLOCK_LOST)
        return result;
    if (--lock->depth == 0)
        rlk_hold_nothing(lock);
    return result;
}

/* ---- the lease by the local clock: from memory, and shared with its keeper */

int64_t rowlock_lock_remaining_ms(const rowlock_lock *lock)
{
    if (!rlk_holds(lock))
        return 0;
    rlk_entry_enter(lock);
    int64_t left = lock->deadline.over ? 0 : rlk_deadline_end_us(&lock->deadline) - rlk_now_us();
    rlk_entry_leave(lock);
    return left > 0 ? left / 1000 : 0;
}

int64_t rowlock_lock_expires_us(const rowlock_lock *lock)
{
    if (!rlk_holds(lock))
        return 0;
    rlk_entry_enter(lock);
    int64_t expires_us = lock->deadline.expires_us;
    rlk_entry_leave(lock);
    return expires_us;
}

rowlock_state rowlock_lock_state(rowlock_lock *lock)
{
    if (!rlk_knows(lock) || lock->state == RLK_IDLE)
        return ROWLOCK_STATE_NONE;
    int64_t next_us;
    rlk_entry_enter(lock);
    rowlock_state state = rlk_deadline_state(&lock->deadline, rlk_now_us(), &next_us);
    if (lock->state == RLK_GONE)
        state = ROWLOCK_STATE_LOST;
    if (lock->deadline.has_keeper && state == ROWLOCK_STATE_LOST)
        lock->deadline.over = true;
    lock->deadline.seen = state;
    rlk_deadline_arm(&lock->deadline);
    rlk_entry_leave(lock);
    return state;
}

int rowlock_lock_state_fd(rowlock_lock *lock)
{
    if (!rlk_knows(lock))
        return -1;
    rlk_entry_enter(lock);
    rlk_deadline_open(&lock->deadline);
    if (lock->state != RLK_IDLE)
        rlk_deadline_arm(&lock->deadline);
    rlk_entry_leave(lock);
    return lock->deadline.fd;
}
