/* SPDX-License-Identifier: MIT
 * What rlk_ask() does, for a caller that does not block: the same machine (policy.c), driven step
 * by step. */
#include "core/pending.h"
#include "core/port.h"

#include <unistd.h>

enum { SEND, SENT, REST };

void rlk_pending_begin(struct rlk_pending *p, struct rlk_ask *ask)
{
    p->ask = ask;
    p->again = (struct rlk_again){0};
    p->at = SEND;
    p->steps = 0;
    for (struct rlk_ask *step = ask; step; step = step->first)
        p->steps++;
    size_t i = p->steps;
    for (struct rlk_ask *step = ask; step; step = step->first)
        p->step[--i] = step;
}

/* Returns whether the ask is over. */
static bool ended(rowlock_db *db, struct rlk_pending *p, enum rlk_class class)
{
    p->class = class;
    enum rlk_next next = rlk_attempted(db, p->ask, &p->again, class, &p->call, &p->result);
    p->rest_until_us = next == RLK_WAIT ? rlk_now_us() + p->again.pause_us : 0;
    p->at = REST;
    return next == RLK_END;
}

static enum rlk_class hand_in(rowlock_db *db, struct rlk_pending *p)
{
    return db->port->hand_in(db, &p->call, p->step[p->current]);
}

static bool send_first(rowlock_db *db, struct rlk_pending *p)
{
    p->result = ROWLOCK_OK;
    p->current = 0;
    enum rlk_class class = rlk_attempt_begin(db, p->ask, &p->call, &p->result);
    if (class != RLK_DONE || p->result != ROWLOCK_OK)
        return ended(db, p, class);
    p->at = SENT;
    class = hand_in(db, p);
    return class != RLK_DONE && ended(db, p, class);
}

/* The next step follows, unless this one was enough. */
static bool take(rowlock_db *db, struct rlk_pending *p, enum rlk_class class)
{
    struct rlk_ask *step = p->step[p->current];
    bool decided = rlk_has_decided(step);
    if (class == RLK_DONE && !decided && ++p->current < p->steps) {
        class = hand_in(db, p);
        if (class == RLK_DONE)
            return false;
    } else if (class == RLK_DONE) {
        class = rlk_judge(&p->call, p->ask, decided);
    }
    rlk_attempt_note(db, p->ask, &p->call, class);
    return ended(db, p, class);
}

bool rlk_pending_step(rowlock_db *db, struct rlk_pending *p, int64_t *until_us)
{
    enum rlk_class class;
    for (bool over = false;;) {
        switch (p->at) {
        case SEND:
            over = send_first(db, p);
            break;
        case SENT:
            if (!db->port->take(db, &p->call, p->step[p->current], &class)) {
                *until_us = p->call.deadline_us;
                return false;
            }
            over = take(db, p, class);
            break;
        default:
            if (p->ask->patient_until_us && rlk_take_cancel(&db->waiting)) {
                p->result = rlk_cancelled(db, p->ask, p->class, &p->call);
                return true;
            }
            if (rlk_now_us() < p->rest_until_us) {
                *until_us = p->rest_until_us;
                return false;
            }
            db->stats.resent++;
            p->at = SEND;
        }
        if (over)
            return true;
    }
}
