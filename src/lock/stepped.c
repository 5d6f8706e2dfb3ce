/* SPDX-License-Identifier: MIT
 * An acquire that does not block: the same machines as in acquire.c, driven by
 * rowlock_acquire_step(). It waits for an answer (core/pending.c), a wake-up, or a time. The
 * handle's alarm is readable when there may be something to do. */
#include "core/pending.h"
#include "core/port.h"
#include "lock/keeper.h"
#include "lock/acquire.h"

/* What is under way. */
enum at { LEAVING, TRYING, FRESHENING, RENEWING, ACTING, LISTENING, PAUSING, OVER };

struct rlk_stepped {
    enum at at;
    rowlock_lock *lock;
    struct rlk_request request;
    struct rlk_grant grant;
    struct rlk_acquiring a;
    struct rlk_pending pending;
    struct rlk_renewal renewal;
    /* The ticket to give back, and its step. */
    struct rlk_request leaving;
    struct rlk_ask ask;
    rowlock_error why;
    /* From the first BUSY try on. */
    bool queuing;
    struct rlk_queueing queue;
    enum rlk_act act;
    int64_t queued_us;
    /* As the pool has said when the wait for a wake-up began. */
    bool behind;
    int result;
};

static void send(struct rlk_stepped *s, enum at at, struct rlk_ask *ask)
{
    s->at = at;
    rlk_pending_begin(&s->pending, ask);
}

static void end(struct rlk_stepped *s, int result)
{
    rowlock_db *db = s->a.db;
    s->at = OVER;
    if (s->queuing) {
        db->standing = NULL;
        db->stats.waits++;
        db->stats.waited_us += (uint64_t)(rlk_now_us() - s->queued_us);
    }
    if (result == ROWLOCK_OK && s->lock->depth == 1)
        rlk_entry_start(s->lock);
    s->result = rlk_end_call(db, result);
}

static void begin_try(struct rlk_stepped *s)
{
    rlk_try_begin(&s->a);
    send(s, TRYING, &s->a.ask);
}

/* ---- the ticket */

/* The error stays that of what led here. */
static void begin_leave(struct rlk_stepped *s)
{
    const struct rlk_ticket *ticket = &s->lock->ticket;
    s->why = s->a.db->error;
    s->leaving = (struct rlk_request){.name = s->lock->name, .number = ticket->request};
    s->ask = (struct rlk_ask){.worth_until_us = rlk_now_us() + ticket->lease_us};
    rlk_step_leave(&s->ask, &s->leaving);
    send(s, LEAVING, &s->ask);
}

static void go_on(struct rlk_stepped *s);

static void end_leave(struct rlk_stepped *s)
{
    rowlock_db *db = s->a.db;
    if (s->pending.result == ROWLOCK_OK)
        rlk_ticket_left(db, &s->lock->ticket);
    else
        rlk_log(ROWLOCK_LOG_WARNING,
                "the ticket for lock '%s' could not be removed and stays until its lease ends: %s",
                s->lock->name, db->error.text);
    db->error = s->why;
    if (!s->queuing) {
        begin_try(s);
        return;
    }
    rlk_forget_place(&s->queue);
    go_on(s);
}

/* ---- the queue */

static void leave(struct rlk_stepped *s)
{
    if (s->lock->ticket.request) {
        begin_leave(s);
        return;
    }
    rlk_forget_place(&s->queue);
    go_on(s);
}

/* The next act of the wait. */
static void go_on(struct rlk_stepped *s)
{
    s->act = rlk_queueing_next(&s->queue, rlk_now_us());
    switch (s->act) {
    case RLK_TAKE_TICKET:
    case RLK_LOOK_FOR_CYCLE:
        rlk_act_begin(&s->queue, s->act, &s->ask);
        send(s, ACTING, &s->ask);
        break;
    case RLK_TRY:
        begin_try(s);
        break;
    case RLK_LEAVE:
        leave(s);
        break;
    case RLK_LISTEN:
        s->behind = s->a.db->waiting.behind;
        s->at = LISTENING;
        break;
    case RLK_PAUSE:
        s->at = PAUSING;
        break;
    case RLK_STOP:
        end(s, s->queue.result);
        break;
    }
}

static void end_try(struct rlk_stepped *s, int result)
{
    bool begins = !s->queuing && result == ROWLOCK_BUSY && s->a.options.wait_ms != 0;
    if (begins) {
        s->queuing = true;
        s->queued_us = rlk_now_us();
        rlk_queueing_begin(&s->queue, &s->a, s->queued_us);
    }
    if (!s->queuing) {
        end(s, result);
        return;
    }
    s->queue.result = result;
    go_on(s);
}

/* ---- the end of what was asked */

static void take_try(struct rlk_stepped *s)
{
    bool whole;
    int result = rlk_try_end(&s->a, s->pending.result, &whole);
    if (whole) {
        end_try(s, result);
        return;
    }
    rlk_renew_begin(s->lock, &s->renewal, s->lock->request_us, s->a.until_us);
    send(s, FRESHENING, &s->renewal.ask);
}

static void take_renewal(struct rlk_stepped *s)
{
    int result = rlk_renew_end(s->lock, &s->renewal, s->pending.result);
    if (s->at == FRESHENING) {
        result = rlk_freshen_end(s->lock, result);
        end_try(s, result == ROWLOCK_LOST ? rlk_found_races(&s->a) : result);
        return;
    }
    if (result == ROWLOCK_OK || result == ROWLOCK_LAPSED)
        s->lock->depth++;
    end(s, result);
}

static void take_answer(struct rlk_stepped *s)
{
    if (s->at == LEAVING) {
        end_leave(s);
    } else if (s->at == TRYING) {
        take_try(s);
    } else if (s->at == ACTING) {
        rlk_act_end(&s->queue, s->act, &s->ask, s->pending.result);
        go_on(s);
    } else {
        take_renewal(s);
    }
}

/* ---- what it waits for. Each returns false if that has not come yet. */

static bool listen(struct rlk_stepped *s, int64_t now_us)
{
    rowlock_db *db = s->a.db;
    struct rlk_queueing *q = &s->queue;
    struct rlk_call call = {.deadline_us = now_us};
    db->port->await(db, &call, q->request, &q->wakeup);
    bool promoted = s->behind && !db->waiting.behind;
    if (q->wakeup == RLK_SILENT && now_us < q->wait_until_us && !promoted)
        return false;
    go_on(s);
    return true;
}

static bool pause(struct rlk_stepped *s, int64_t now_us)
{
    struct rlk_queueing *q = &s->queue;
    bool cancelled = rlk_take_cancel(&s->a.db->waiting);
    if (!cancelled && now_us < q->wait_until_us)
        return false;
    q->wakeup = cancelled ? RLK_INTERRUPTED : RLK_SILENT;
    go_on(s);
    return true;
}

static bool advance(struct rlk_stepped *s, int64_t *until_us)
{
    if (s->at == LISTENING || s->at == PAUSING) {
        *until_us = s->queue.wait_until_us;
        return s->at == LISTENING ? listen(s, rlk_now_us()) : pause(s, rlk_now_us());
    }
    if (!rlk_pending_step(s->a.db, &s->pending, until_us))
        return false;
    take_answer(s);
    return true;
}

bool rlk_stepped_go(struct rlk_stepped *s, int *result)
{
    enum { LONGEST_US = 60000000 };
    struct rlk_turn *turn = &s->a.db->waiting.turn;
    int64_t until_us;
    /* The alarm is set before the last look, so that no post in between is missed. */
    rlk_alarm_set(turn->alarm, INT64_MAX);
    while (rlk_turn_came(turn))
        ;
    while (s->at != OVER && advance(s, &until_us))
        ;
    if (s->at == OVER) {
        *result = s->result;
        return true;
    }
    int64_t left_us = until_us - rlk_now_us();
    rlk_alarm_set(turn->alarm, left_us < LONGEST_US ? left_us : LONGEST_US);
    return s->at != OVER && advance(s, &until_us) ? rlk_stepped_go(s, result) : false;
}

/* ---- the beginning */

static void begin_again(struct rlk_stepped *s)
{
    rowlock_lock *lock = s->lock;
    int result = rlk_check_reentry(lock, &s->a.options);
    bool lasts = !lock->deadline.over && lock->deadline.deadline_us - rlk_now_us() >= 1000;
    if (result == ROWLOCK_OK && !lasts) {
        rlk_renew_begin(lock, &s->renewal, lock->deadline.ttl_us, 0);
        send(s, RENEWING, &s->renewal.ask);
        return;
    }
    lock->depth += result == ROWLOCK_OK;
    end(s, result);
}

static void begin(struct rlk_stepped *s)
{
    struct rlk_acquiring *a = &s->a;
    int result = rlk_check_unattached(s->lock);
    if (result == ROWLOCK_OK && s->lock->state != RLK_IDLE) {
        begin_again(s);
        return;
    }
    if (result == ROWLOCK_OK && a->options.wait_ms != 0 && rlk_take_cancel(&a->db->waiting))
        result = ROWLOCK_CANCELLED;
    if (result == ROWLOCK_OK)
        result = rlk_acquire_begin(a);
    if (result != ROWLOCK_OK)
        end(s, result);
    else if (s->lock->ticket.request)
        begin_leave(s);
    else
        begin_try(s);
}

struct rlk_stepped *rlk_stepped_new(rowlock_lock *lock, const rowlock_acquire_options *options)
{
    struct rlk_waiting *waiting = &lock->db->waiting;
    if (waiting->turn.alarm < 0)
        waiting->turn.alarm = rlk_alarm_open();
    struct rlk_stepped *s = waiting->turn.alarm < 0 ? NULL : rlk_alloc(sizeof *s);
    if (!s)
        return NULL;
    s->lock = lock;
    rlk_acquiring_one(&s->a, &s->lock, &s->request, &s->grant, options);
    begin(s);
    return s;
}
