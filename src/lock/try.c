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

struct rlk_request rlk_request_of(rowlock_lock *lock, const rowlock_acquire_options *options)
{
    rowlock_db *db = lock->db;
    /* One of another kind may have been granted. We want this kind, so it is a stray. */
    if (!lock->request_open || lock->permits != options->permits) {
        lock->request_open = false;
        lock->request = rlk_next_number(db);
        /* If there are no random numbers now, the next request tries again. */
        if (lock->straying && rlk_random_owner(lock->owner) == 0)
            lock->straying = false;
    }
    lock->permits = options->permits;
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
    rlk_deadline_arm(&lock->deadline);
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

/* A request whose answer was lost stays open: its first attempt may still be in flight, and be
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
int rlk_freshen_end(rowlock_lock *lock, int result)
{
    if (result == ROWLOCK_OK || result == ROWLOCK_LAPSED)
        return ROWLOCK_OK;
    rlk_hold_nothing(lock);
    lock->request_open = result != ROWLOCK_LOST;
    return result;
}

/* Other transactions were changing the lock all the time. More is not known. */
int rlk_found_races(struct rlk_acquiring *a)
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
        rowlock_lock *lock = a->locks[i];
        int result = rlk_freshen_end(lock, rlk_renew(lock, lock->request_us, a->until_us));
        if (result == ROWLOCK_OK)
            continue;
        a->which = i;
        for (size_t other = 0; a->count > 1 && other < a->count; other++)
            give_back(a->locks[other]);
        return result == ROWLOCK_LOST ? rlk_found_races(a) : result;
    }
    return ROWLOCK_OK;
}

/* Returns whether the grants are as good as new. */
static bool take_grants(struct rlk_acquiring *a, bool uncertain)
{
    bool whole = !uncertain;
    int64_t now_us = rlk_now_us();
    for (size_t i = 0; i < a->count; i++) {
        rowlock_lock *lock = a->locks[i];
        rlk_take_grant(lock, &a->grants[i].row, a->ask.sent_us, a->options.margin_ms * 1000);
        whole = whole && lock->deadline.deadline_us - now_us >= 1000;
    }
    return whole;
}

static bool is_in_the_way(const struct rlk_row *row, const struct rlk_request *request)
{
    bool both_shared = request->permits == ROWLOCK_SHARED && row->permits == ROWLOCK_SHARED;
    return row->expires_us > row->now_us && strcmp(row->owner, request->owner) != 0 && !both_shared;
}

/* For several locks, the step says which one is in the way, and not its holder. The holder stays
 * unknown if it cannot be read. */
static void find_holder(struct rlk_acquiring *a)
{
    struct rlk_grant *grant = &a->grants[a->which];
    const struct rlk_request *request = &a->requests[a->which];
    struct rlk_ask ask = {.step = RLK_STEP_NONE};
    struct rlk_items rows = {0};
    if (a->count == 1 || grant->outcome != RLK_IN_FLIGHT)
        return;
    rlk_step_list(&ask, &rows, request->name, "", -1, HOLDERS_MAX);
    if (rlk_ask_items(a->db, &ask, &rows) != ROWLOCK_OK)
        rlk_log(ROWLOCK_LOG_INFO, "%s: %s", a->db->error.action, a->db->error.text);
    for (size_t i = 0; i < rows.count && grant->outcome != RLK_HELD; i++) {
        const struct rlk_row *row = rlk_item(&rows, i);
        if (is_in_the_way(row, request))
            *grant = (struct rlk_grant){.outcome = RLK_HELD, .behind = true, .row = *row};
    }
    rlk_free(rows.items);
}

void rlk_try_begin(struct rlk_acquiring *a)
{
    rlk_ask_init(&a->ask);
    a->ask.contention_us = TRY_CONTENTION_US;
    a->ask.patient_until_us = a->until_us;
    a->ask.retryable_if_lost = true;
    a->before = a->which;
    a->db->stats.tries++;
    a->one.request = a->requests;
    a->one.grant = a->grants;
    if (a->count > 1) {
        a->all = (struct rlk_trying_all){
            .requests = a->requests, .count = a->count, .grants = a->grants};
        rlk_step_acquire_all(&a->ask, &a->all);
        return;
    }
    a->ask.own = a->grants;
    rlk_step_acquire(a->db, &a->ask, &a->one);
}

/* The driver may have to wake the next. */
static void tell_taken(struct rlk_acquiring *a)
{
    for (size_t i = 0; i < a->count; i++)
        rlk_tell(a->db, RLK_OUTSIDE, RLK_TAKEN, &a->requests[i], a->grants[i].row.token);
}

int rlk_try_end(struct rlk_acquiring *a, int result, bool *whole)
{
    const struct rlk_ask *ask = &a->ask;
    *whole = true;
    /* We may have a ticket in the queue of the lock that was in the way before. */
    a->which = a->count == 1 ? 0 : a->all.which;
    if (ask->contended && !ask->was_uncertain) {
        a->which = a->before;
        return rlk_found_races(a);
    }
    bool uncertain = false;
    for (size_t i = 0; i < a->count; i++) {
        rowlock_lock *lock = a->locks[i];
        lock->request_open = lock->request_open || ask->was_uncertain;
        lock->straying =
            lock->straying || (!lock->named && (ask->was_uncertain || ask->may_arrive));
        uncertain = uncertain || lock->request_open;
    }
    if (result != ROWLOCK_OK)
        return result;
    const struct rlk_grant *grant = &a->grants[a->which];
    if (grant->outcome != RLK_GRANTED) {
        find_holder(a);
        return rlk_found_busy(a->locks[a->which], grant, a->options.permits);
    }
    tell_taken(a);
    *whole = take_grants(a, uncertain);
    return ROWLOCK_OK;
}

int rlk_try(struct rlk_acquiring *a)
{
    bool whole;
    rlk_try_begin(a);
    int result = rlk_try_end(a, rlk_ask(a->db, &a->ask), &whole);
    return whole ? result : freshen_all(a);
}
