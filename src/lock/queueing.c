/* SPDX-License-Identifier: MIT
 * Waiting in the queue: the ticket and its lease, and when to look at the lock again. The table
 * decides which is first. A wake-up (driver.h, await) says when it may be our turn. A lost wake-up
 * costs time only, since each waiter also looks from time to time.
 *
 * A machine: it waits for nothing, reads no clock, and sends nothing. acquire.c does what it says.
 *
 *     turn ── due ──> TAKE_TICKET ──> LOOK_FOR_CYCLE ─┐
 *      ^  └────────────────────────────────────────>  look ──> TRY ──> stop
 *      │                                              │         │
 *      └── BUSY ── LISTEN, PAUSE <──── nothing to see ┘         │
 *      └──────────────────────── BUSY <─────────────────────────┘ */
#include "lock/queueing.h"

enum {
    /* With wake-ups, the first in the queue looks so often in case one was lost. */
    SAFETY_US = 1000000,
    /* Without wake-ups, the shortest and the longest pause of the first in the queue. */
    FASTEST_US = 5000,
    SLOWEST_US = 250000,
    /* Without wake-ups, the pause is the time waited so far divided by this. */
    PATIENCE = 20,
    /* Without wake-ups, the longest pause of those with more than FAR ahead while the queue moves.
     * While it stands still they pause for half of that time, and those far back longest. */
    FAR = 64,
    FAR_US = 2000000,
    /* Quick looks at a row that another transaction is changing. That may take long. */
    SETTLING_MAX = 12,
    /* So long after the end of the holder's lease, one look is enough. */
    LEASE_END_SLACK_US = 2000,
    /* In a pool, the time between two common looks is at least this for each handle that looks. */
    LOOKER_US = 250
};

int64_t rlk_poll_pause_us;

/* What the machine has asked for, and waits for the end of. */
enum at { BEGUN, LEFT, TICKETED, CYCLED, LISTENED, PAUSED, TRIED, OVER };

static enum rlk_act go(struct rlk_queueing *q, enum at at, enum rlk_act act)
{
    q->at = (int)at;
    return act;
}

/* A waiter that has become the first looks at once, since its wake-up may have been missed. */
static void note_ahead(struct rlk_queueing *q, int64_t ahead, int64_t now_us)
{
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
static int64_t lookers(const struct rlk_queueing *q)
{
    return (int64_t)q->a->db->waiting.lookers;
}

/* What the handles of a pool do at common moments goes together in one statement. */
static int64_t common_moment(int64_t at_us, int64_t step_us)
{
    return at_us - at_us % step_us;
}

/* ---- when to look again */

/* Without wake-ups the first in the queue polls every wait/20 (5 to 250 ms). Others poll when half
 * the queue ahead should be gone. While the queue does not move, waiters poll less and less often,
 * those at the end least often. In a pool only its first looks, like the first in the queue. */
static int64_t pause_unwoken(const struct rlk_queueing *q, int64_t now_us)
{
    int64_t stands_us = now_us - q->since_us;
    int64_t pause_us = rlk_between(FASTEST_US, stands_us / PATIENCE, SLOWEST_US);
    int64_t half_us = q->step_us * q->ahead / 2;
    if (q->ahead == 0 || lookers(q))
        return pause_us;
    int64_t far_us = rlk_between(FAR_US, stands_us / 2, SAFETY_US * (1 + q->ahead / FAR));
    int64_t most_us = rlk_least(pause_us * (1 + q->ahead), q->ahead > FAR ? far_us : SAFETY_US);
    return rlk_between(FASTEST_US, half_us > stands_us ? half_us : stands_us, most_us);
}

/* Adds or takes away up to a quarter, so that waiters that came together do not look together. In a
 * pool they do, the less often the more they are. */
static int64_t moment_after(struct rlk_queueing *q, int64_t now_us, int64_t pause_us)
{
    int64_t step_us =
        pause_us < SLOWEST_US ? rlk_least(lookers(q) * LOOKER_US, SLOWEST_US) : SLOWEST_US;
    if (!lookers(q))
        return now_us + pause_us * 3 / 4 + rlk_jitter(&q->a->db->waiting, pause_us / 2);
    int64_t at_us = common_moment(now_us + pause_us, step_us);
    return at_us > now_us ? at_us : at_us + step_us;
}

static int64_t look_at(struct rlk_queueing *q, int64_t now_us)
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
        return now_us + rlk_least(pause_us, rlk_pause_retry(&q->a->db->waiting, &q->settling));
    return moment_after(q, now_us, pause_us);
}

static int64_t next_look(struct rlk_queueing *q, int64_t now_us)
{
    const rowlock_lock *lock = q->lock;
    int64_t next_us = look_at(q, now_us);
    if (lock->holder_known && q->ahead == 0) {
        int64_t left_us = lock->holder.expires_us - lock->holder.now_us;
        next_us = rlk_least(next_us, now_us + left_us + LEASE_END_SLACK_US);
    }
    return rlk_least(rlk_least(next_us, q->renew_us), q->a->until_us);
}

/* ---- from one act to the next */

/* Without a connection the ticket stays: the next connection gives it back. */
static enum rlk_act end(struct rlk_queueing *q, int result)
{
    q->result = result;
    bool leaves = q->lock && result != ROWLOCK_OK && (rlk_is_up(q->a->db) || q->interrupted);
    return go(q, OVER, leaves ? RLK_LEAVE : RLK_STOP);
}

static enum rlk_act after_listening(struct rlk_queueing *q, enum rlk_wakeup wakeup, int64_t now_us);

/* After taking a ticket we look at once: an earlier release could not wake us. */
static enum rlk_act look_or_pause(struct rlk_queueing *q, int64_t now_us)
{
    if (q->look) {
        q->look = false;
        return go(q, TRIED, RLK_TRY);
    }
    q->wait_until_us = next_look(q, now_us);
    /* In a pool, wake-ups by its other handles come in any case. */
    bool listens = rlk_is_up(q->a->db) && !(q->unwakeable && !lookers(q));
    return listens ? go(q, LISTENED, RLK_LISTEN) : after_listening(q, RLK_NO_WAKEUPS, now_us);
}

/* Without a connection the result is not TIMEOUT, but the error of the ask that reconnects. */
static enum rlk_act turn(struct rlk_queueing *q, int64_t now_us)
{
    const struct rlk_acquiring *a = q->a;
    if (q->at != LEFT && now_us >= a->until_us && rlk_is_up(a->db))
        return end(q, ROWLOCK_TIMEOUT);
    if (q->lock && q->lock != a->locks[a->which])
        return go(q, LEFT, RLK_LEAVE);
    if (q->lock && now_us < q->renew_us)
        return look_or_pause(q, now_us);
    if (!q->lock)
        q->check_us = 0;
    q->lock = a->locks[a->which];
    q->request = &a->requests[a->which];
    q->asked_us = now_us;
    q->position = (struct rlk_position){0};
    return go(q, TICKETED, RLK_TAKE_TICKET);
}

/* Only a named owner can wait for itself. A random owner belongs to one handle, so it cannot hold
 * one lock and wait for another. */
static enum rlk_act look_for_cycle(struct rlk_queueing *q, int64_t now_us)
{
    if (!q->a->db->owner[0] || now_us < q->check_us)
        return look_or_pause(q, now_us);
    q->check_us = now_us + q->lease_us / 3;
    return go(q, CYCLED, RLK_LOOK_FOR_CYCLE);
}

/* BUSY: other transactions were changing the queue all the time. The wait goes on. Wake-ups before
 * this moment did not reach us. */
static enum rlk_act note_ticket(struct rlk_queueing *q, int64_t now_us)
{
    const struct rlk_position *position = &q->position;
    if (q->result != ROWLOCK_OK) {
        q->look = false;
        return q->result == ROWLOCK_BUSY ? turn(q, now_us) : end(q, q->result);
    }
    bool new_ticket = position->ticket != q->request->ticket;
    bool wakeable_again = q->unwakeable && position->wakeable;
    q->look = q->look || new_ticket || wakeable_again;
    q->request->ticket = position->ticket;
    q->request->met = NULL;
    note_ahead(q, position->ahead, now_us);
    q->renew_us = q->asked_us + q->lease_us / 3;
    if (lookers(q))
        q->renew_us = common_moment(q->renew_us, SLOWEST_US);
    q->unwakeable = !position->wakeable;
    return look_for_cycle(q, now_us);
}

/* The connection was lost during the wait. The next ask reconnects and renews the ticket. */
static void note_loss(struct rlk_queueing *q)
{
    q->lost = false;
    q->renew_us = 0;
    q->look = true;
}

/* Nothing has woken us, so the holder is likely to be there. */
static enum rlk_act after_silence(struct rlk_queueing *q, int64_t now_us)
{
    /* We are the first of our pool now, so the pause is another. */
    if (lookers(q) && now_us < q->wait_until_us) {
        q->since_us = now_us;
        return turn(q, now_us);
    }
    if (q->ahead == 0)
        q->request->met = rlk_met(q->lock, q->request->permits);
    if (q->ahead == 0 || q->request->unfair)
        return go(q, TRIED, RLK_TRY);
    q->renew_us = 0;
    return turn(q, now_us);
}

/* Listening has ended so, or is of no use. */
static enum rlk_act after_listening(struct rlk_queueing *q, enum rlk_wakeup wakeup, int64_t now_us)
{
    if (q->lost)
        note_loss(q);
    q->request->met = NULL;
    if (wakeup == RLK_WAKEUP) {
        /* If the try is BUSY, we must know our new position. */
        q->renew_us = 0;
        return go(q, TRIED, RLK_TRY);
    }
    if (wakeup == RLK_SILENT)
        return after_silence(q, now_us);
    /* The pause was computed for a waiter that gets wake-ups. */
    if (wakeup == RLK_NO_WAKEUPS && !q->unwakeable) {
        q->unwakeable = true;
        q->wait_until_us = rlk_least(q->wait_until_us, look_at(q, now_us));
    }
    return go(q, PAUSED, RLK_PAUSE);
}

static enum rlk_act note_try(struct rlk_queueing *q, int64_t now_us)
{
    const struct rlk_grant *grant = &q->a->grants[q->a->which];
    if (q->result != ROWLOCK_BUSY)
        return end(q, q->result);
    /* The server has answered BUSY, so this is a TIMEOUT even if the connection is lost now. */
    if (now_us >= q->a->until_us)
        return end(q, ROWLOCK_TIMEOUT);
    if (grant->outcome == RLK_HELD && !grant->behind) {
        /* This try was the look that note_ahead() asks for. */
        bool look = q->look;
        note_ahead(q, 0, now_us);
        q->look = look;
    }
    return turn(q, now_us);
}

void rlk_queueing_begin(struct rlk_queueing *q, struct rlk_acquiring *a, int64_t now_us)
{
    *q = (struct rlk_queueing){.a = a, .lease_us = a->options.ticket_ms * 1000, .since_us = now_us};
}

enum rlk_act rlk_queueing_next(struct rlk_queueing *q, int64_t now_us)
{
    switch ((enum at)q->at) {
    case BEGUN:
    case LEFT:
        return turn(q, now_us);
    case TICKETED:
        return note_ticket(q, now_us);
    case CYCLED:
        return q->result == ROWLOCK_OK ? look_or_pause(q, now_us) : end(q, q->result);
    case LISTENED:
        return after_listening(q, q->wakeup, now_us);
    case PAUSED:
        return q->wakeup == RLK_INTERRUPTED ? end(q, ROWLOCK_CANCELLED) : after_silence(q, now_us);
    case TRIED:
        return note_try(q, now_us);
    case OVER:
        break;
    }
    return RLK_STOP;
}
