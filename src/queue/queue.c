/* SPDX-License-Identifier: MIT
 * Standing in the queue: the ticket and its lease, and when to look at the lock again. The table
 * decides who is first; a wakeup (backend.h, await) says when it may be our turn; and a look from
 * time to time is the truth that needs no wakeup. */
#include "queue/queue.h"
#include "seam/seam.h"

#include <string.h>

enum {
    SAFETY_US = 1000000, /* between two looks of the first in the queue that was not woken for */
    FASTEST_US =
        5000, /* and of one that nobody wakes for; it looks less often the longer it waits */
    SLOWEST_US = 250000,
    PATIENCE = 20, /* what part of the time waited so far the next pause is */
    FAR = 64, /* so many before us may be gone within a second */
    SETTLING_MAX =
        12, /* quick looks at what is being changed; it may be so for as long as it likes */
    LEASE_END_SLACK_US = 2000 /* after the holder's lease, so that one look suffices */
};

struct queuing {
    struct rlk_acquiring *a;
    rowlock_lock *lock; /* in whose queue we stand; NULL: in none */
    struct rlk_request *request; /* its request */
    int64_t ahead; /* live tickets before ours, when last seen */
    int64_t lease_us; /* of the ticket */
    int64_t keep_us; /* when it is to be renewed */
    int64_t check_us; /* when to look for a circle */
    int64_t since_us; /* when we came, or last saw the queue move */
    int64_t seen_us; /* when our place was last seen */
    int64_t step_us; /* what the queue took for one place when it last moved; 0: not known */
    bool unwakeable; /* nobody wakes for us here */
    bool look; /* at once: a wakeup may have been missed */
    int losses; /* of the connection while we waited */
    bool interrupted; /* by a cancel that cost the connection */
    int settling; /* looks in a row at something that was being changed */
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

/* Whoever has come to be the first looks at once: nobody may have woken for him. */
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

/* Repeated after a lost answer it keeps the ticket that the first sending took. */
static int take_ticket(struct queuing *q)
{
    struct rlk_position position = {0};
    struct enqueuing e = {.request = q->request, .lease_us = q->lease_us, .position = &position};
    struct rlk_step_call step = {.run = run_enqueue,
                                 .context = &e,
                                 .patient_until_us = q->a->until_us,
                                 .heeds_cancel = true};
    int64_t now_us = rlk_now_us();
    bool new_ticket = q->request->ticket == 0;
    rlk_ticket_keep(q->a->db, &q->lock->ticket, q->request->number);
    int result = rlk_do(q->a->db, &step);
    if (result != ROWLOCK_OK)
        return result;
    bool hears_again = q->unwakeable && position.wakeable; /* what woke before was not heard */
    q->look = q->look || new_ticket || hears_again || position.ticket != q->request->ticket;
    q->request->ticket = position.ticket;
    note_ahead(q, position.ahead);
    q->keep_us = now_us + q->lease_us / 3;
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

struct circling {
    const struct rlk_request *request;
    bool found;
    char words[400];
};

static enum rlk_class run_cycle(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct circling *c = context;
    return rlk_step_cycle(db, call, c->request, &c->found, c->words, sizeof c->words);
}

/* Only owners that were given a name can wait for themselves: others are made up for one lock. */
static int look_for_cycle(struct queuing *q)
{
    rowlock_db *db = q->a->db;
    if (!db->owner[0] || rlk_now_us() < q->check_us)
        return ROWLOCK_OK;
    q->check_us = rlk_now_us() + q->lease_us / 3;
    struct circling c = {.request = q->request};
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

/* Spread over a quarter to either side, so that those who came together do not look together. */
static int64_t spread(rowlock_db *db, int64_t pause_us)
{
    return pause_us * 3 / 4 + rlk_jitter(&db->waiting, pause_us / 2);
}

static int64_t between(int64_t low, int64_t value, int64_t high)
{
    return value < low ? low : least(value, high);
}

/* Where nobody wakes: the first in the queue makes its wait longer by a fortieth in the mean. The
 * others ask for their place when half of those before them will have gone; while the queue
 * stands, the less often the longer it does and the further back they are. */
static int64_t pause_unwoken(const struct queuing *q, int64_t now_us)
{
    int64_t stands_us = now_us - q->since_us;
    int64_t pause_us = between(FASTEST_US, stands_us / PATIENCE, SLOWEST_US);
    int64_t half_us = q->step_us * q->ahead / 2;
    if (q->ahead == 0)
        return pause_us;
    int64_t most_us = least(pause_us * (1 + q->ahead), SAFETY_US * (1 + q->ahead / FAR));
    return between(FASTEST_US, half_us > stands_us ? half_us : stands_us, most_us);
}

static int64_t pause_of(struct queuing *q, int64_t now_us)
{
    const struct rlk_grant *grant = &q->a->grants[q->a->which];
    int64_t pause_us = q->unwakeable ? pause_unwoken(q, now_us) : SAFETY_US * (1 + q->ahead);
    bool settling = grant->settling || (grant->outcome == RLK_IN_FLIGHT && q->a->count == 1);
    if (!settling)
        q->settling = 0;
    else if (q->settling < SETTLING_MAX)
        pause_us = least(pause_us, rlk_pause_retry(&q->a->db->waiting, &q->settling));
    return spread(q->a->db, pause_us);
}

static int64_t next_look(struct queuing *q, int64_t now_us)
{
    const rowlock_lock *lock = q->lock;
    int64_t next_us = now_us + pause_of(q, now_us);
    if (lock->holder_known && q->ahead == 0) {
        int64_t left_us = lock->holder.expires_us - lock->holder.now_us;
        next_us = least(next_us, now_us + left_us + LEASE_END_SLACK_US);
    }
    return least(least(next_us, q->keep_us), q->a->until_us);
}

struct awaiting {
    const struct rlk_request *request;
    int64_t until_us;
    enum rlk_wakeup wakeup;
};

/* A connection that is lost while we wait is made anew by the next step, and the ticket is kept
 * from there. */
static enum rlk_wakeup await(struct queuing *q, int64_t until_us)
{
    rowlock_db *db = q->a->db;
    struct rlk_call call = {.deadline_us = until_us};
    enum rlk_wakeup wakeup = RLK_NO_WAKEUPS;
    if (!db->up || q->unwakeable)
        return RLK_NO_WAKEUPS;
    enum rlk_class class =
        db->backend->await(db->conn, &call, q->request, db->waiting.wake[0], &wakeup);
    if (class != RLK_DONE) {
        db->up = false;
        q->keep_us = 0;
        q->look = true;
        if (class == RLK_UNCERTAIN)
            memcpy(db->lingering, db->session, sizeof db->lingering);
        q->interrupted = wakeup == RLK_INTERRUPTED;
        if (q->interrupted)
            return wakeup;
        rlk_wait_plain(rlk_pause_retry(&db->waiting, &q->losses));
        return RLK_SILENT; /* and make it anew now */
    }
    return wakeup;
}

/* Until there may be something to see: OK; BUSY if only our place can have changed, which the
 * ticket's renewal tells; or CANCELLED. */
static int pause_in_queue(struct queuing *q)
{
    int64_t until_us = next_look(q, rlk_now_us());
    enum rlk_wakeup wakeup = await(q, until_us);
    if (wakeup == RLK_WAKEUP) {
        q->keep_us =
            0; /* if it is not our turn then we have to know what has become of our place */
        return ROWLOCK_OK;
    }
    if (wakeup == RLK_NO_WAKEUPS &&
        !q->unwakeable) { /* the pause was one for those who are woken for */
        q->unwakeable = true;
        until_us = least(until_us, rlk_now_us() + pause_of(q, rlk_now_us()));
    }
    if ((wakeup == RLK_NO_WAKEUPS || wakeup == RLK_INTERRUPTED) &&
        !rlk_wait_until(&q->a->db->waiting, until_us))
        return ROWLOCK_CANCELLED;
    if (q->ahead == 0 || q->request->unfair)
        return ROWLOCK_OK;
    q->keep_us = 0;
    return ROWLOCK_BUSY;
}

/* ---- the queue */

/* Whoever has just taken a ticket looks at once: what was released before it was there woke for
 * nobody. */
static int stand(struct queuing *q)
{
    struct rlk_acquiring *a = q->a;
    int result = ROWLOCK_OK;
    if (q->lock && q->lock != a->locks[a->which])
        leave_queue(q);
    if (!q->lock || rlk_now_us() >= q->keep_us) {
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

/* The end of the wait is a TIMEOUT only if the server is there to say so. */
static bool is_over(const struct rlk_acquiring *a)
{
    return rlk_now_us() >= a->until_us && a->db->up;
}

int rlk_wait_in_queue(struct rlk_acquiring *a)
{
    struct queuing q = {.a = a, .lease_us = a->options.ticket_ms * 1000, .since_us = rlk_now_us()};
    int result = ROWLOCK_BUSY;
    bool tried = false;
    while (result == ROWLOCK_BUSY) {
        if (is_over(a))
            result = ROWLOCK_TIMEOUT;
        else if ((tried = (result = stand(&q)) == ROWLOCK_OK))
            result = rlk_try(a);
        if (result == ROWLOCK_BUSY && tried && rlk_now_us() >= a->until_us)
            result = ROWLOCK_TIMEOUT; /* it was there to say BUSY, even if it is gone again */
        const struct rlk_grant *grant = &a->grants[a->which];
        if (result == ROWLOCK_BUSY && tried && grant->outcome == RLK_HELD && !grant->behind) {
            bool look = q.look; /* this was one */
            note_ahead(&q, 0);
            q.look = look;
        }
    }
    bool cut_off = !a->db->up && !q.interrupted; /* the ticket is given back later */
    if (q.lock && result != ROWLOCK_OK && !cut_off)
        leave_queue(&q);
    a->db->standing = NULL;
    return result;
}
