/* SPDX-License-Identifier: MIT
 * Waiting in the queue: the ticket and its lease, and when to look at the lock again. The table
 * decides who is first. A wake-up (driver.h, await) says when it may be our turn. A lost wake-up
 * costs time only, since each waiter also looks from time to time. */
#include "lock/queue.h"
#include "core/core.h"

#include <string.h>

enum {
    /* With wake-ups, the first in the queue looks so often in case one was lost. */
    SAFETY_US = 1000000,
    /* Without wake-ups, the shortest and the longest pause of the first in the queue. */
    FASTEST_US = 5000,
    SLOWEST_US = 250000,
    /* Without wake-ups, the pause is the time waited so far divided by this. */
    PATIENCE = 20,
    /* Without wake-ups, the longest pause of those with more than FAR ahead. The queue may have
     * begun to move. */
    FAR = 64,
    FAR_US = 2000000,
    /* Quick looks at a row that another transaction is changing. That may take long. */
    SETTLING_MAX = 12,
    /* So long after the end of the holder's lease, one look is enough. */
    LEASE_END_SLACK_US = 2000,
    /* In a pool, the time between two common looks is at least this for each handle that looks. */
    CROWD_US = 250
};

int64_t rlk_poll_pause_us;

struct queuing {
    struct rlk_acquiring *a;
    /* The lock in whose queue we are. NULL: in none. */
    rowlock_lock *lock;
    /* The request for that lock. */
    struct rlk_request *request;
    /* Live tickets before ours, when last seen. */
    int64_t ahead;
    /* The ticket's lease. */
    int64_t lease_us;
    /* When to renew the ticket. */
    int64_t renew_us;
    /* When to look for a deadlock. */
    int64_t check_us;
    /* When we came, or when the queue last moved. */
    int64_t since_us;
    /* When our position was last seen. */
    int64_t seen_us;
    /* How long the queue took for one position when it last moved. 0: not known. */
    int64_t step_us;
    /* This connection gets no wake-ups. */
    bool unwakeable;
    /* Look at the lock at once: a wake-up may have been missed. */
    bool look;
    /* How often the connection was lost while we waited. */
    int losses;
    /* A cancel has ended the wait, and the connection was lost by it. */
    bool interrupted;
    /* Consecutive looks at a row that another transaction was changing. */
    int settling;
};

/* ---- the ticket */

struct enqueuing {
    const struct rlk_request *request;
    int64_t lease_us;
    struct rlk_position *position;
};

static enum rlk_class run_enqueue(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct enqueuing *e = context;
    return rlk_step_enqueue(db, call, e->request, e->lease_us, e->position);
}

/* A waiter that has become the first looks at once, since its wake-up may have been missed. */
static void note_ahead(struct queuing *q, int64_t ahead)
{
    int64_t now_us = rlk_now_us();
    int64_t moved = q->ahead - ahead;
    if (moved > 0)
        q->step_us = (now_us - q->seen_us) / moved;
    if (moved != 0)
        q->since_us = now_us;
    q->look = q->look || (moved > 0 && ahead == 0);
    q->seen_us = now_us;
    q->ahead = ahead;
}

/* Handles that look in the same pool, this one among them. 0: it has no pool. */
static int64_t crowd(const struct queuing *q)
{
    return (int64_t)q->a->db->waiting.crowd;
}

/* What the handles of a pool do at common moments goes together in one statement. */
static int64_t common_moment(int64_t at_us, int64_t step_us)
{
    return at_us - at_us % step_us;
}

/* If the step is sent again after a lost answer, it keeps the ticket of the first sending. */
static int take_ticket(struct queuing *q)
{
    struct rlk_position position = {0};
    struct enqueuing e = {.request = q->request, .lease_us = q->lease_us, .position = &position};
    struct rlk_step_call step = {.run = run_enqueue,
                                 .context = &e,
                                 .patient_until_us = q->a->until_us,
                                 .heeds_cancel = true,
                                 .finds_out = true};
    int64_t now_us = rlk_now_us();
    bool new_ticket = q->request->ticket == 0;
    rlk_ticket_keep(q->a->db, &q->lock->ticket, q->request->number);
    q->lock->ticket.lease_us = q->lease_us;
    int result = rlk_do(q->a->db, &step);
    /* Other transactions were changing the queue all the time. The wait goes on. */
    if (result != ROWLOCK_OK)
        return step.contended && !step.was_uncertain ? ROWLOCK_BUSY : result;
    /* Wake-ups before this moment did not reach us. */
    bool wakeable_again = q->unwakeable && position.wakeable;
    q->look = q->look || new_ticket || wakeable_again || position.ticket != q->request->ticket;
    q->request->ticket = position.ticket;
    q->request->met = NULL;
    note_ahead(q, position.ahead);
    q->renew_us = now_us + q->lease_us / 3;
    if (crowd(q))
        q->renew_us = common_moment(q->renew_us, SLOWEST_US);
    q->unwakeable = !position.wakeable;
    return ROWLOCK_OK;
}

static void leave_queue(struct queuing *q)
{
    rlk_leave_queue(q->lock, 0);
    q->request->ticket = 0;
    q->a->db->standing = NULL;
    q->lock = NULL;
}

struct cycle {
    const struct rlk_request *request;
    bool found;
    char words[400];
};

static enum rlk_class run_cycle(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct cycle *c = context;
    return rlk_step_cycle(db, call, c->request, &c->found, c->words, sizeof c->words);
}

/* Only a named owner can wait for itself. A random owner belongs to one handle, so it
 * cannot hold one lock and wait for another. */
static int look_for_cycle(struct queuing *q)
{
    rowlock_db *db = q->a->db;
    if (!db->owner[0] || rlk_now_us() < q->check_us)
        return ROWLOCK_OK;
    q->check_us = rlk_now_us() + q->lease_us / 3;
    struct cycle c = {.request = q->request};
    struct rlk_step_call step = {
        .run = run_cycle, .context = &c, .patient_until_us = q->a->until_us, .heeds_cancel = true};
    int result = rlk_do(db, &step);
    if (result != ROWLOCK_OK || !c.found)
        return result;
    return rlk_fail(db, ROWLOCK_DEADLOCK, "this wait would never end: %s", c.words);
}

/* ---- when to look again */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t between(int64_t low, int64_t value, int64_t high)
{
    return value < low ? low : least(value, high);
}

/* Without wake-ups the first in the queue polls every wait/20 (5 to 250 ms). Others poll when half
 * the queue ahead should be gone. While the queue does not move, waiters poll less and less often,
 * those at the end least often. In a pool only its first looks, like the first in the queue. */
static int64_t pause_unwoken(const struct queuing *q, int64_t now_us)
{
    int64_t stands_us = now_us - q->since_us;
    int64_t pause_us = between(FASTEST_US, stands_us / PATIENCE, SLOWEST_US);
    int64_t half_us = q->step_us * q->ahead / 2;
    if (q->ahead == 0 || crowd(q))
        return pause_us;
    int64_t most_us = least(pause_us * (1 + q->ahead), q->ahead > FAR ? FAR_US : SAFETY_US);
    return between(FASTEST_US, half_us > stands_us ? half_us : stands_us, most_us);
}

/* Adds or takes away up to a quarter, so that waiters that came together do not look together. In a
 * pool they do, the less often the more they are. */
static int64_t moment_after(struct queuing *q, int64_t now_us, int64_t pause_us)
{
    int64_t step_us = pause_us < SLOWEST_US ? least(crowd(q) * CROWD_US, SLOWEST_US) : SLOWEST_US;
    if (!crowd(q))
        return now_us + pause_us * 3 / 4 + rlk_jitter(&q->a->db->waiting, pause_us / 2);
    int64_t at_us = common_moment(now_us + pause_us, step_us);
    return at_us > now_us ? at_us : at_us + step_us;
}

static int64_t look_at(struct queuing *q, int64_t now_us)
{
    const struct rlk_grant *grant = &q->a->grants[q->a->which];
    int64_t pause_us = q->unwakeable ? pause_unwoken(q, now_us) : SAFETY_US * (1 + q->ahead);
    if (q->a->db->waiting.behind)
        pause_us = q->lease_us;
    if (rlk_poll_pause_us)
        pause_us = rlk_poll_pause_us;
    bool settling = grant->settling || (grant->outcome == RLK_IN_FLIGHT && q->a->count == 1);
    if (!settling)
        q->settling = 0;
    else if (q->settling < SETTLING_MAX)
        return now_us + least(pause_us, rlk_pause_retry(&q->a->db->waiting, &q->settling));
    return moment_after(q, now_us, pause_us);
}

static int64_t next_look(struct queuing *q, int64_t now_us)
{
    const rowlock_lock *lock = q->lock;
    int64_t next_us = look_at(q, now_us);
    if (lock->holder_known && q->ahead == 0) {
        int64_t left_us = lock->holder.expires_us - lock->holder.now_us;
        next_us = least(next_us, now_us + left_us + LEASE_END_SLACK_US);
    }
    return least(least(next_us, q->renew_us), q->a->until_us);
}

struct awaiting {
    const struct rlk_request *request;
    int64_t until_us;
    enum rlk_wakeup wakeup;
};

/* In a pool, wake-ups by its other handles come in any case.
 * If the connection is lost during the wait, the next step reconnects and renews the ticket. */
static enum rlk_wakeup await(struct queuing *q, int64_t until_us)
{
    rowlock_db *db = q->a->db;
    struct rlk_call call = {.deadline_us = until_us};
    enum rlk_wakeup wakeup = RLK_NO_WAKEUPS;
    if (!db->up || (q->unwakeable && !crowd(q)))
        return RLK_NO_WAKEUPS;
    enum rlk_class class =
        db->backend->await(db->conn, &call, q->request, db->waiting.wake[0], &wakeup);
    if (class != RLK_DONE) {
        db->up = false;
        q->renew_us = 0;
        q->look = true;
        if (class == RLK_UNCERTAIN)
            memcpy(db->lingering, db->session, sizeof db->lingering);
        q->interrupted = wakeup == RLK_INTERRUPTED;
        if (q->interrupted)
            return wakeup;
        rlk_wait_plain(rlk_pause_retry(&db->waiting, &q->losses));
        /* The caller renews the ticket now, which reconnects. */
        return RLK_SILENT;
    }
    return wakeup;
}

/* Waits for the next look.
 *
 * Returns
 *   OK         try now
 *   BUSY       only our position can have changed. The ticket is renewed if that is due
 *   CANCELLED  a cancel has ended the wait */
static int pause_in_queue(struct queuing *q)
{
    int64_t until_us = next_look(q, rlk_now_us());
    enum rlk_wakeup wakeup = await(q, until_us);
    q->request->met = NULL;
    if (wakeup == RLK_WAKEUP) {
        /* If the try is BUSY, we must know our new position. */
        q->renew_us = 0;
        return ROWLOCK_OK;
    }
    /* The pause was computed for a waiter that gets wake-ups. */
    if (wakeup == RLK_NO_WAKEUPS && !q->unwakeable) {
        q->unwakeable = true;
        until_us = least(until_us, look_at(q, rlk_now_us()));
    }
    if ((wakeup == RLK_NO_WAKEUPS || wakeup == RLK_INTERRUPTED) &&
        !rlk_wait_until(&q->a->db->waiting, until_us))
        return ROWLOCK_CANCELLED;
    /* We are the first of our pool now, so the pause is another. */
    if (crowd(q) && rlk_now_us() < until_us) {
        q->since_us = rlk_now_us();
        return ROWLOCK_BUSY;
    }
    /* Nothing has woken us, so the holder is likely to be there. */
    if (q->ahead == 0)
        q->request->met = rlk_met(q->lock, q->request->permits);
    if (q->ahead == 0 || q->request->unfair)
        return ROWLOCK_OK;
    q->renew_us = 0;
    return ROWLOCK_BUSY;
}

/* ---- the queue */

/* After taking a ticket we look at once: an earlier release could not wake us. */
static int wait_for_turn(struct queuing *q)
{
    struct rlk_acquiring *a = q->a;
    int result = ROWLOCK_OK;
    if (q->lock && q->lock != a->locks[a->which])
        leave_queue(q);
    if (!q->lock || rlk_now_us() >= q->renew_us) {
        if (!q->lock)
            q->check_us = 0;
        q->lock = a->locks[a->which];
        a->db->standing = &q->lock->ticket;
        q->request = &a->requests[a->which];
        if ((result = take_ticket(q)) == ROWLOCK_OK)
            result = look_for_cycle(q);
    }
    if (result != ROWLOCK_OK || q->look) {
        q->look = false;
        return result;
    }
    return pause_in_queue(q);
}

/* Without a connection the result is not TIMEOUT, but the error of the step that reconnects. */
static bool is_over(const struct rlk_acquiring *a)
{
    return rlk_now_us() >= a->until_us && a->db->up;
}

static int wait_in_queue(struct rlk_acquiring *a)
{
    struct queuing q = {.a = a, .lease_us = a->options.ticket_ms * 1000, .since_us = rlk_now_us()};
    int result = ROWLOCK_BUSY;
    bool tried = false;
    while (result == ROWLOCK_BUSY) {
        if (is_over(a))
            result = ROWLOCK_TIMEOUT;
        else if ((tried = (result = wait_for_turn(&q)) == ROWLOCK_OK))
            result = rlk_try(a);
        /* The server has answered BUSY, so this is a TIMEOUT even if the connection is lost now. */
        if (result == ROWLOCK_BUSY && tried && rlk_now_us() >= a->until_us)
            result = ROWLOCK_TIMEOUT;
        const struct rlk_grant *grant = &a->grants[a->which];
        if (result == ROWLOCK_BUSY && tried && grant->outcome == RLK_HELD && !grant->behind) {
            /* This try was the look that note_ahead() asks for. */
            bool look = q.look;
            note_ahead(&q, 0);
            q.look = look;
        }
    }
    /* The next connection gives the ticket back. */
    bool cut_off = !a->db->up && !q.interrupted;
    if (q.lock && result != ROWLOCK_OK && !cut_off)
        leave_queue(&q);
    a->db->standing = NULL;
    return result;
}

int rlk_wait_in_queue(struct rlk_acquiring *a)
{
    int64_t since_us = rlk_now_us();
    int result = wait_in_queue(a);
    a->db->stats.waits++;
    a->db->stats.waited_us += (uint64_t)(rlk_now_us() - since_us);
    return result;
}
