/* SPDX-License-Identifier: MIT
 * Acquiring one lock, or several at once: tries (try.c), and between them a ticket in the queue.
 * queueing.c says what a waiter does next; this file does it. */
#include "base/options.h"
#include "lock/keeper.h"
#include "lock/acquire.h"
#include "core/port.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Locks that one call may acquire. */
enum { MANY_MAX = 1000 };

/* ---- the acts of a wait */

/* If it is sent again after a lost answer, it keeps the ticket of the first attempt. */
static void begin_ticket(struct rlk_queueing *q, struct rlk_ask *ask)
{
    rowlock_db *db = q->a->db;
    *ask = (struct rlk_ask){.patient_until_us = q->a->until_us, .retryable_if_lost = true};
    db->standing = &q->lock->ticket;
    rlk_ticket_keep(db, &q->lock->ticket, q->request->number);
    q->lock->ticket.lease_us = q->lease_us;
    rlk_step_enqueue(ask, q->request, q->lease_us, &q->position);
}

static int end_ticket(struct rlk_queueing *q, const struct rlk_ask *ask, int result)
{
    if (result != ROWLOCK_OK)
        return ask->contended && !ask->was_uncertain ? ROWLOCK_BUSY : result;
    rlk_tell_enqueued(q->a->db, q->request, &q->position);
    return ROWLOCK_OK;
}

static void begin_cycle(struct rlk_queueing *q, struct rlk_ask *ask)
{
    *ask = (struct rlk_ask){.patient_until_us = q->a->until_us};
    rlk_step_cycle(ask, q->request, q->cycle);
}

static int end_cycle(struct rlk_queueing *q, const struct rlk_ask *ask, int result)
{
    if (result != ROWLOCK_OK || ask->rows == 0)
        return result;
    return rlk_fail(q->a->db, ROWLOCK_DEADLOCK, "this wait would never end: %s", q->cycle);
}

void rlk_act_begin(struct rlk_queueing *q, enum rlk_act act, struct rlk_ask *ask)
{
    if (act == RLK_TAKE_TICKET)
        begin_ticket(q, ask);
    else
        begin_cycle(q, ask);
}

void rlk_act_end(struct rlk_queueing *q, enum rlk_act act, const struct rlk_ask *ask, int result)
{
    q->result = act == RLK_TAKE_TICKET ? end_ticket(q, ask, result) : end_cycle(q, ask, result);
}

void rlk_forget_place(struct rlk_queueing *q)
{
    q->request->ticket = 0;
    q->a->db->standing = NULL;
    q->lock = NULL;
}

static enum rlk_wakeup listen(struct rlk_queueing *q, int *losses)
{
    rowlock_db *db = q->a->db;
    struct rlk_call call = {.deadline_us = q->wait_until_us};
    enum rlk_wakeup wakeup = RLK_NO_WAKEUPS;
    enum rlk_class class =
        db->port ? db->port->await(db, &call, q->request, &wakeup)
                 : db->driver->await(db->conn, &call, q->request, db->waiting.wake[0], &wakeup);
    if (class == RLK_DONE)
        return wakeup;
    rlk_lose(db);
    q->lost = true;
    if (class == RLK_UNCERTAIN)
        memcpy(db->lingering, db->session, sizeof db->lingering);
    q->interrupted = wakeup == RLK_INTERRUPTED;
    if (q->interrupted)
        return wakeup;
    rlk_wait_plain(rlk_pause_retry(&db->waiting, losses));
    return RLK_SILENT;
}

static int wait_in_queue(struct rlk_acquiring *a)
{
    struct rlk_queueing q;
    struct rlk_ask ask;
    int losses = 0;
    rlk_queueing_begin(&q, a, rlk_now_us());
    for (;;) {
        enum rlk_act act = rlk_queueing_next(&q, rlk_now_us());
        switch (act) {
        case RLK_TAKE_TICKET:
        case RLK_LOOK_FOR_CYCLE:
            rlk_act_begin(&q, act, &ask);
            rlk_act_end(&q, act, &ask, rlk_ask(a->db, &ask));
            break;
        case RLK_TRY:
            q.result = rlk_try(a);
            break;
        case RLK_LEAVE:
            rlk_leave_queue(q.lock, 0);
            rlk_forget_place(&q);
            break;
        case RLK_LISTEN:
            q.wakeup = listen(&q, &losses);
            break;
        case RLK_PAUSE:
            q.wakeup =
                rlk_wait_until(&a->db->waiting, q.wait_until_us) ? RLK_SILENT : RLK_INTERRUPTED;
            break;
        case RLK_STOP:
            a->db->standing = NULL;
            return q.result;
        }
    }
}

/* After a BUSY try. */
static int wait_for_lock(struct rlk_acquiring *a)
{
    int64_t since_us = rlk_now_us();
    int result = wait_in_queue(a);
    a->db->stats.waits++;
    a->db->stats.waited_us += (uint64_t)(rlk_now_us() - since_us);
    return result;
}

/* ---- one lock */

/* It is opened when the server has answered us. If the server goes away in between, a wait goes on.
 * Its statements end within a third of the lease, so that there is time to connect again. */
static int share_keeper(struct rlk_acquiring *a)
{
    rowlock_db *db = a->db;
    int64_t third_ms = a->options.ttl_ms / 3;
    int losses = 0;
    int result = rlk_look_at_tables(db, RLK_OUTSIDE, a->until_us);
    while (result == ROWLOCK_OK &&
           (result = rlk_keeper_share(db, third_ms < 1000 ? 1000 : third_ms, a->until_us != 0,
                                      &a->options.keeper)) == ROWLOCK_ECONN &&
           rlk_now_us() < a->until_us) {
        if (losses == 0)
            rlk_log(ROWLOCK_LOG_WARNING, "%s: the keeper cannot connect; still waiting: %s",
                    db->error.action, db->error.text);
        int64_t pause_us = rlk_pause_retry(&db->waiting, &losses);
        result =
            rlk_wait_until(&db->waiting, rlk_now_us() + pause_us) ? ROWLOCK_OK : ROWLOCK_CANCELLED;
    }
    return result;
}

/* The keeper's entries are made before the grants, since making them can fail. */
static int join_keeper(struct rlk_acquiring *a)
{
    int result = a->options.keep ? share_keeper(a) : ROWLOCK_OK;
    for (size_t i = 0; i < a->count && result == ROWLOCK_OK; i++) {
        a->which = i;
        if (!a->options.keeper)
            rlk_entry_quit(a->locks[i]);
        else
            result = rlk_entry_join(a->locks[i], &a->options, a->until_us);
    }
    return result;
}

int rlk_acquire_begin(struct rlk_acquiring *a)
{
    a->until_us = a->options.wait_ms == 0 ? 0 : rlk_wait_end(a->options.wait_ms);
    int result = join_keeper(a);
    for (size_t i = 0; i < a->count && result == ROWLOCK_OK; i++)
        a->requests[i] = rlk_request_of(a->locks[i], &a->options);
    a->which = 0;
    return result;
}

static int try_and_wait(struct rlk_acquiring *a)
{
    int result = rlk_acquire_begin(a);
    if (result != ROWLOCK_OK)
        return result;
    for (size_t i = 0; i < a->count; i++)
        rlk_leave_queue(a->locks[i], 0);
    result = rlk_try(a);
    if (result == ROWLOCK_BUSY && a->options.wait_ms != 0)
        result = wait_for_lock(a);
    for (size_t i = 0; i < a->count && result == ROWLOCK_OK; i++)
        rlk_entry_start(a->locks[i]);
    return result;
}

/* A cancel that came before a wait ends it. A cancel that comes during a wait, but too late to end
 * it, must not end the next one. */
static int acquire_all(struct rlk_acquiring *a)
{
    struct rlk_waiting *waiting = &a->db->waiting;
    bool waits = a->options.wait_ms != 0;
    if (waits && rlk_take_cancel(waiting))
        return rlk_end_call(a->db, ROWLOCK_CANCELLED);
    int result = try_and_wait(a);
    if (waits && !waiting->longer)
        rlk_take_cancel(waiting);
    return rlk_end_call(a->db, result);
}

static int acquire_one(rowlock_lock *lock, const rowlock_acquire_options *options)
{
    struct rlk_request request;
    struct rlk_grant grant;
    struct rlk_acquiring a;
    rlk_acquiring_one(&a, &lock, &request, &grant, options);
    return acquire_all(&a);
}

/* The lock may be held without a keeper so far. One that it has stays. */
static int keep_held(rowlock_lock *lock, const rowlock_acquire_options *options)
{
    struct rlk_acquiring a = {.db = lock->db, .locks = &lock, .count = 1, .options = *options};
    if (lock->entry || (!options->keep && !options->keeper))
        return ROWLOCK_OK;
    int result = join_keeper(&a);
    if (result == ROWLOCK_OK)
        rlk_entry_start(lock);
    return result;
}

int rlk_check_reentry(rowlock_lock *lock, const rowlock_acquire_options *options)
{
    if (lock->state == RLK_GONE)
        return rlk_fail(lock->db, ROWLOCK_LOST,
                        "the grant was lost; release as often as you acquired, then acquire again");
    if (lock->permits != options->permits)
        return rlk_fail(lock->db, ROWLOCK_EMISUSE,
                        "this handle holds the lock as another kind: release it first");
    if (lock->depth == INT_MAX)
        return rlk_fail(lock->db, ROWLOCK_EMISUSE,
                        "this handle acquired the lock too often; release it first");
    return keep_held(lock, options);
}

static int enter_again(rowlock_lock *lock, const rowlock_acquire_options *options)
{
    int result = rlk_check_reentry(lock, options);
    if (result != ROWLOCK_OK)
        return rlk_end_call(lock->db, result);
    if (rowlock_lock_remaining_ms(lock) <= 0)
        result = rlk_renew(lock, lock->deadline.ttl_us, 0);
    if (result == ROWLOCK_OK || result == ROWLOCK_LAPSED)
        lock->depth++;
    return rlk_end_call(lock->db, result);
}

int rlk_check_unattached(rowlock_lock *lock)
{
    if (!lock->attached)
        return ROWLOCK_OK;
    return rlk_fail(lock->db, ROWLOCK_EMISUSE, "this handle is attached to a grant made elsewhere");
}

int rlk_acquire(rowlock_lock *lock, const rowlock_acquire_options *options)
{
    int result = rlk_check_unattached(lock);
    if (result != ROWLOCK_OK)
        return result;
    return lock->state == RLK_IDLE ? acquire_one(lock, options) : enter_again(lock, options);
}

int rowlock_acquire(rowlock_lock *lock, const rowlock_acquire_options *options)
{
    rowlock_acquire_options o;
    int result = rlk_enter_acquire(lock, "acquire lock", options, &o);
    return result == ROWLOCK_OK ? rlk_acquire(lock, &o) : result;
}

/* ---- several locks */

static int by_name(const void *a, const void *b)
{
    const rowlock_lock *const *one = a;
    const rowlock_lock *const *other = b;
    return strcmp((*one)->name, (*other)->name);
}

static int check_many(rowlock_db *db, rowlock_lock *const *locks, size_t count, size_t *which)
{
    for (size_t i = 0; i < count; i++) {
        *which = i;
        if (locks[i]->db != db || (locks[i]->state != RLK_IDLE && !locks[i]->attached))
            return rlk_fail(db, ROWLOCK_EMISUSE,
                            "'%s' is held already, or belongs to another rowlock_db",
                            locks[i]->name);
        if (i > 0 && strcmp(locks[i - 1]->name, locks[i]->name) == 0)
            return rlk_fail(db, ROWLOCK_EINVAL, "'%s' is named twice; name each lock once",
                            locks[i]->name);
        int result = rlk_check_unattached(locks[i]);
        if (result != ROWLOCK_OK)
            return result;
    }
    return ROWLOCK_OK;
}

static size_t index_of(rowlock_lock *const *locks, size_t count, const rowlock_lock *lock)
{
    for (size_t i = 0; i < count; i++)
        if (locks[i] == lock)
            return i;
    return 0;
}

static int acquire_sorted(struct rlk_acquiring *a, rowlock_lock **sorted,
                          rowlock_lock *const *locks, size_t *which)
{
    memcpy(sorted, locks, a->count * sizeof(rowlock_lock *));
    qsort(sorted, a->count, sizeof(rowlock_lock *), by_name);
    int result = check_many(a->db, sorted, a->count, &a->which);
    if (result == ROWLOCK_OK)
        result = acquire_all(a);
    if (which)
        *which = index_of(locks, a->count, sorted[a->which]);
    return result;
}

int rowlock_acquire_all(rowlock_lock *const *locks, size_t count,
                        const rowlock_acquire_options *options, size_t *which)
{
    for (size_t i = 0; i < count; i++)
        if (!locks || !locks[i] || locks[i]->tag != RLK_LOCK_TAG)
            return ROWLOCK_EMISUSE;
    if (count == 0 || !locks[0]->db)
        return ROWLOCK_EMISUSE;
    rowlock_db *db = locks[0]->db;
    struct rlk_acquiring a = {.db = db, .count = count};
    int result = rlk_enter(db, "acquire several locks", NULL);
    if (result != ROWLOCK_OK ||
        (result = rlk_take_acquire_options(&db->error, &a.options, options)) != ROWLOCK_OK)
        return result;
    if (count > MANY_MAX)
        return rlk_fail(db, ROWLOCK_EINVAL, "%zu locks are too many for one call: at most %d",
                        count, MANY_MAX);
    rowlock_lock **sorted = rlk_alloc(count * sizeof(rowlock_lock *));
    a.locks = sorted;
    a.requests = rlk_alloc(count * sizeof *a.requests);
    a.grants = rlk_alloc(count * sizeof *a.grants);
    result = sorted && a.requests && a.grants ? acquire_sorted(&a, sorted, locks, which)
                                              : rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    rlk_free(sorted);
    rlk_free(a.requests);
    rlk_free(a.grants);
    return result;
}
