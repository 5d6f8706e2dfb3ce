/* SPDX-License-Identifier: MIT
 * One try for a lock, or for several at once: the request, and what the answer means. */
#include "lock/try.h"
#include "core/core.h"

#include <inttypes.h>
#include <string.h>

enum {
    /* A try that loses races for so long calls the lock busy. */
    TRY_CONTENTION_US = 1000000,
    /* Rows that are read to find the holder that is in the way. */
    HOLDERS_MAX = 100
};

/* One counted grant alone does not keep out a request of its own kind. */
const struct rlk_row *rlk_met(const rowlock_lock *lock, int permits)
{
    bool enough = lock->holder_known && (permits == 0 || lock->holder.slot == 0);
    return enough && !lock->request_open ? &lock->holder : NULL;
}

struct rlk_request rlk_request_of(rowlock_lock *lock, const rowlock_acquire_options *options)
{
    rowlock_db *db = lock->db;
    if (!lock->request_open)
        lock->request = rlk_next_number(db);
    lock->request_us = options->ttl_ms * 1000;
    return (struct rlk_request){.name = lock->name,
                                .permits = options->permits,
                                .unfair = options->unfair != 0,
                                .owner = lock->owner,
                                .number = lock->request,
                                .ttl_us = options->ttl_ms * 1000,
                                .host = db->host,
                                .pid = db->pid,
                                .program = db->program,
                                .note = options->note,
                                .met = rlk_met(lock, options->permits),
                                .met_again = lock->holder_again,
                                .granted = lock->was_granted};
}

static enum rlk_class ask(rowlock_db *db, struct rlk_call *call, struct rlk_acquiring *a)
{
    memset(a->grants, 0, a->count * sizeof *a->grants);
    a->which = 0;
    if (a->count == 1)
        return rlk_step_acquire(db, call, a->requests, a->grants);
    return rlk_step_acquire_all(db, call, a->requests, a->count, a->grants, &a->which);
}

/* A step sent again after a lost answer may meet its own first sending in flight. Then the lock is
 * not busy, and the step is sent once more. */
static enum rlk_class run_acquire(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct rlk_acquiring *a = context;
    enum rlk_class class = ask(db, call, a);
    bool own = a->step.was_uncertain && a->grants[a->which].outcome == RLK_IN_FLIGHT;
    if (class != RLK_DONE || !own)
        return class;
    return rlk_refuse(call, RLK_CONTENTION,
                      "a transaction, perhaps of this program, is changing the lock");
}

/* By the local clock, the lease begins just before the step was sent. It lasts for what the
 * database said was left. So it never ends after the lease in the database. */
void rlk_take_grant(rowlock_lock *lock, const struct rlk_row *row, int64_t sent_us,
                    int64_t margin_us)
{
    struct rlk_term term = rlk_term_of(sent_us, row->expires_us, row->now_us, row->ttl_us);
    term.ttl_us = row->ttl_us;
    lock->state = RLK_HOLDING;
    lock->depth = 1;
    lock->token = row->token;
    lock->permits = row->permits;
    rlk_deadline_begin(&lock->deadline, margin_us);
    rlk_deadline_set(&lock->deadline, &term);
    lock->was_granted = true;
    lock->db->stats.granted++;
    lock->db->takes_writes = true;
    lock->holder_known = lock->request_open = lock->release_open = false;
    lock->unproven = false;
    /* The step that granted the lock has removed the ticket. */
    rlk_ticket_end(lock->db, &lock->ticket);
    rlk_log(ROWLOCK_LOG_DEBUG, "lock '%s' granted with token %" PRId64, lock->name, lock->token);
}

static int found_mismatch(rowlock_lock *lock, const struct rlk_row *row)
{
    rlk_action(lock->db, "acquire lock", lock->name);
    if (row->permits == ROWLOCK_SHARED)
        return rlk_fail(lock->db, ROWLOCK_MISMATCH, "other clients hold it as a shared lock");
    return rlk_fail(lock->db, ROWLOCK_MISMATCH,
                    "other clients hold it with %d permits: all must ask for the same number",
                    row->permits);
}

/* A request whose answer was lost stays open: its first sending may still be in flight, and be
 * granted later. */
int rlk_found_busy(rowlock_lock *lock, const struct rlk_grant *grant, int permits)
{
    bool held = grant && grant->outcome == RLK_HELD;
    lock->db->stats.busy++;
    lock->was_granted = false;
    lock->holder_again = held && lock->holder_known && lock->holder.token == grant->row.token;
    lock->holder_known = held;
    if (!held)
        return ROWLOCK_BUSY;
    lock->holder = grant->row;
    bool of_another_kind = permits != 0 && grant->row.slot != 0 && grant->row.permits != permits;
    return of_another_kind ? found_mismatch(lock, &grant->row) : ROWLOCK_BUSY;
}

/* A new grant needs a renewal in two cases:
 *   - It reached us after its lease ended. Nothing was done under it, so we may renew it, unless
 *     another owner was granted the lock.
 *   - Its first answer was lost, so we have only read it. A synchronous standby may still lack it.
 *     Renewing forces a commit that waits for the standby.
 * A waiter renews until its wait ends, since the standby may be away. If the renewal fails, nothing
 * is held. The next acquire asks for the same grant. */
static int freshen(rowlock_lock *lock, int64_t patient_until_us)
{
    int result = rlk_renew(lock, lock->request_us, patient_until_us);
    if (result == ROWLOCK_OK || result == ROWLOCK_LAPSED)
        return ROWLOCK_OK;
    rlk_hold_nothing(lock);
    lock->request_open = result != ROWLOCK_LOST;
    return result;
}

/* Other transactions were changing the lock all the time. More is not known. */
static int found_races(struct rlk_acquiring *a)
{
    struct rlk_grant *grant = &a->grants[a->which];
    *grant = (struct rlk_grant){.outcome = RLK_IN_FLIGHT, .behind = true};
    return rlk_found_busy(a->locks[a->which], grant, a->options.permits);
}

/* Also gives back a grant that may have been made without an answer. */
static void give_back(rowlock_lock *lock)
{
    rowlock_error why = lock->db->error;
    rlk_release_quietly(lock);
    rowlock_forget(lock);
    lock->db->error = why;
}

/* Several locks are all granted, or none of them: if one fails, we give the others back. */
static int freshen_all(struct rlk_acquiring *a)
{
    for (size_t i = 0; i < a->count; i++) {
        int result = freshen(a->locks[i], a->until_us);
        if (result == ROWLOCK_OK)
            continue;
        a->which = i;
        for (size_t other = 0; a->count > 1 && other < a->count; other++)
            give_back(a->locks[other]);
        return result == ROWLOCK_LOST ? found_races(a) : result;
    }
    return ROWLOCK_OK;
}

static int take_grants(struct rlk_acquiring *a, bool uncertain)
{
    bool whole = !uncertain;
    for (size_t i = 0; i < a->count; i++) {
        rlk_take_grant(a->locks[i], &a->grants[i].row, a->step.sent_us,
                       a->options.margin_ms * 1000);
        whole = whole && rowlock_lock_remaining_ms(a->locks[i]) > 0;
    }
    return whole ? ROWLOCK_OK : freshen_all(a);
}

/* For several locks, the step says which one is in the way, and not who holds it. */
static int note_holder(void *context, const struct rlk_row *row)
{
    struct rlk_acquiring *a = context;
    struct rlk_grant *grant = &a->grants[a->which];
    const struct rlk_request *request = &a->requests[a->which];
    if (row->expires_us <= row->now_us || strcmp(row->owner, request->owner) == 0 ||
        (request->permits == ROWLOCK_SHARED && row->permits == ROWLOCK_SHARED))
        return 0;
    *grant = (struct rlk_grant){.outcome = RLK_HELD, .behind = true, .row = *row};
    return 1;
}

static enum rlk_class run_find_holder(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct rlk_acquiring *a = context;
    return rlk_step_list(db, call, a->requests[a->which].name, "", -1, HOLDERS_MAX, note_holder, a);
}

/* The holder stays unknown if the step fails. */
static void find_holder(struct rlk_acquiring *a)
{
    struct rlk_step_call step = {.run = run_find_holder, .context = a};
    if (a->count > 1 && a->grants[a->which].outcome == RLK_IN_FLIGHT &&
        rlk_do(a->db, &step) != ROWLOCK_OK)
        rlk_log(ROWLOCK_LOG_INFO, "%s: %s", a->db->error.action, a->db->error.text);
}

int rlk_try(struct rlk_acquiring *a)
{
    struct rlk_step_call *step = &a->step;
    *step = (struct rlk_step_call){.run = run_acquire,
                                   .context = a,
                                   .contention_us = TRY_CONTENTION_US,
                                   .patient_until_us = a->until_us,
                                   .heeds_cancel = a->options.wait_ms != 0,
                                   .finds_out = true,
                                   .grants = true};
    size_t before = a->which;
    a->db->stats.tries++;
    int result = rlk_do(a->db, step);
    const struct rlk_grant *grant = &a->grants[a->which];
    if (step->contended && !step->was_uncertain) {
        /* We may have a ticket in the queue of this lock. */
        a->which = before;
        return found_races(a);
    }
    bool uncertain = false;
    for (size_t i = 0; i < a->count; i++) {
        a->locks[i]->request_open = a->locks[i]->request_open || step->was_uncertain;
        uncertain = uncertain || a->locks[i]->request_open;
    }
    if (result != ROWLOCK_OK)
        return result;
    if (grant->outcome != RLK_GRANTED) {
        find_holder(a);
        return rlk_found_busy(a->locks[a->which], grant, a->options.permits);
    }
    return take_grants(a, uncertain);
}
