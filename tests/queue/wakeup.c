/* SPDX-License-Identifier: MIT
 *
 * No wake-up is lost: the lock is released at every point between "found it held" and "asleep", by holding
 * up each request of the waiter, before the server sees it and after it has carried it out; and the
 * release itself is held up while the waiter comes. SQLite has no requests: sqlite_steps.c.
 */
#include "crowd.h"

#include "faultproxy.h"

#include <stdlib.h>

enum { REPEATS = 4, DELAY_MS = 60, REQUESTS_MAX = 8 };

/* A waiter and a holder; one of them goes through the proxy. */
struct stage {
    const struct contract *c;
    struct faultproxy *proxy;
    struct guest holder, waiter;
    struct metronome m;
};

static void stage_open(struct stage *s, const struct contract *c, struct faultproxy *proxy,
                       const char *waiters_url, const char *holders_url, int permits)
{
    *s = (struct stage){.c = c, .proxy = proxy};
    guest_open_as(&s->holder, c, holders_url, NULL, "wake up", permits);
    guest_open_as(&s->waiter, c, waiters_url, NULL, "wake up", 0);
    metronome_start(&s->m, c);
    /* Each statement has been used once, so that no preparing comes in between. */
    guest_tries(&s->holder, ROWLOCK_OK, "a lock is held");
    guest_queue(&s->waiter);
    guest_releases(&s->holder, ROWLOCK_OK, "released");
    guest_gets(&s->waiter, "waited for");
    guest_releases(&s->waiter, ROWLOCK_OK, "and released again");
}

static void stage_close(struct stage *s)
{
    metronome_stop(&s->m);
    guests_close(&s->waiter, &s->holder, NULL);
}

static struct fault delay(enum fault_side side)
{
    return (struct fault){.kind = FAULT_DELAY, .side = side, .delay_ms = DELAY_MS};
}

/* Until the nth request is held up; or the waiter is asleep for want of another one. */
static bool held_up(const struct stage *s, int64_t patience_ms)
{
    int64_t until = clock_ms() + slow_ms(patience_ms);
    while (!faultproxy_fired(s->proxy) && !s->waiter.ended && clock_ms() < until)
        sleep_ms(1);
    return faultproxy_fired(s->proxy);
}

/* If every one of these had to wait for the waiter's own look, the metronome would heartbeat each time. */
static void judge(int granted, int heartbeats, const char *when, int nth)
{
    tap_is_int(granted, REPEATS, "released while %s %d of the waiter is held up, he gets it", when,
               nth);
    tap_ok(heartbeats < REPEATS, "and has not overslept (%d heartbeats)", heartbeats);
}

/* False if the waiter does not come to the nth request before he sleeps. */
static bool release_at(struct stage *s, int nth, enum fault_side side)
{
    int granted = 0, reached = 0, overslept = 0;
    for (int i = 0; i < REPEATS; i++) {
        guest_try(&s->holder);
        faultproxy_arm(s->proxy, nth, delay(side));
        guest_start(&s->waiter);
        /* If it had no such request at first, it seldom has one later. */
        reached += held_up(s, i == 0 || reached ? 300 : 50);
        metronome_look(&s->m);
        int before = s->m.heartbeats;
        guest_leave(&s->holder);
        granted += guest_join(&s->waiter) == ROWLOCK_OK;
        metronome_look(&s->m);
        overslept += s->m.heartbeats - before;
        guest_leave(&s->waiter);
    }
    faultproxy_arm(s->proxy, 0, delay(side));
    judge(granted, overslept, side == ON_REQUEST ? "request" : "answer", nth);
    return reached > 0;
}

static void waiter_is_held_up(const struct contract *c, struct faultproxy *proxy, const char *url,
                              int permits)
{
    for (int side = ON_REQUEST; side <= ON_ANSWER; side++) {
        struct stage s;
        int nth = 1;
        stage_open(&s, c, proxy, url, c->url, permits);
        while (nth < REQUESTS_MAX && release_at(&s, nth, (enum fault_side)side))
            nth++;
        tap_ok(nth > 3, "a try, a ticket, and another try at least, %d in all", nth - 1);
        stage_close(&s);
    }
}

static int release(void *argument)
{
    return guest_leave(argument);
}

static void release_is_held_up(const struct contract *c, struct faultproxy *proxy, const char *url,
                               enum fault_side side)
{
    struct stage s;
    int granted = 0, released = 0, before;
    stage_open(&s, c, proxy, c->url, url, 0);
    before = s.m.heartbeats;
    for (int i = 0; i < REPEATS; i++) {
        guest_try(&s.holder);
        faultproxy_arm(proxy, 1, delay(side));
        struct helper *helper = helper_start(release, &s.holder);
        int64_t until = clock_ms() + slow_ms(2000);
        while (!faultproxy_fired(proxy) && clock_ms() < until)
            sleep_ms(1);
        guest_start(&s.waiter);
        granted += guest_join(&s.waiter) == ROWLOCK_OK;
        released += helper_join(helper) == ROWLOCK_OK;
        metronome_look(&s.m);
        guest_leave(&s.waiter);
    }
    tap_is_int(released, REPEATS, "while the %s of a release is on its way",
               side == ON_REQUEST ? "request" : "answer");
    judge(granted, s.m.heartbeats - before, "a release and not a request", 0);
    stage_close(&s);
}

/* ---- other ways in */

enum way { BREAKS, CLOSES, COMMITS, WAYS };
static const char *const ways[WAYS] = {"a break", "closing the handle",
                                       "the commit of a release in a transaction"};

static bool has_ticket(void *context)
{
    return ticket_of(context) != 0;
}

static void begin_release(const struct contract *c, struct guest *holder, void *session)
{
    raw_run(c->raw, session, "%s", c->begin);
    is_result(holder->db, rowlock_tx_release(holder->lock, holder->db), ROWLOCK_OK,
              "a release in a transaction");
}

static void let_in(const struct contract *c, enum way way, struct guest *holder, void *session)
{
    if (way == BREAKS) {
        rowlock_db *breaker = must_open(c->url);
        is_result(breaker, rowlock_break(breaker, "wake up else", 0, NULL), ROWLOCK_OK, "a break");
        rowlock_db_close(breaker);
    } else if (way == CLOSES) {
        rowlock_lock_close(holder->lock);
        holder->lock = must_lock(holder->db, "wake up else");
    } else {
        raw_run(c->raw, session, "COMMIT");
        rowlock_forget(holder->lock);
    }
}

/* All that lets a waiter in wakes it. The release in a transaction comes before the ticket: its notification, if there
 * is one, must wait for the commit. */
static void other_ways(const struct contract *c, enum way way)
{
    struct guest holder, waiter;
    struct metronome m;
    int granted = 0;
    void *session = c->raw->open(c->url);
    guest_adopt(&holder, c, session, "wake up else");
    guest_open(&waiter, c, "wake up else", 0);
    metronome_start(&m, c);
    for (int i = 0; i < REPEATS; i++) {
        guest_try(&holder);
        if (way == COMMITS)
            begin_release(c, &holder, session);
        guest_start(&waiter);
        /* A file has one writer: beside it nobody takes a ticket. */
        if ((way != COMMITS || c->has_server) && !comes_true(has_ticket, &waiter))
            tap_ok(false, "a waiter stands in the queue before %s", ways[way]);
        sleep_ms(10); /* so that it is asleep, mostly */
        let_in(c, way, &holder, session);
        granted += guest_join(&waiter) == ROWLOCK_OK;
        metronome_look(&m);
        guest_leave(&waiter);
        guest_leave(&holder);
    }
    tap_is_int(granted, REPEATS, "%s lets the next one in", ways[way]);
    tap_ok(m.heartbeats < REPEATS, "and wakes him (%d heartbeats)", m.heartbeats);
    metronome_stop(&m);
    guests_close(&waiter, &holder, NULL);
    c->raw->close(session);
}

void contract_wakeup(const struct contract *c)
{
    char *url = NULL;
    for (int way = BREAKS; way < WAYS; way++)
        other_ways(c, (enum way)way);
    struct faultproxy *proxy = c->has_server ? faultproxy_start(c->url, &url) : NULL;
    if (!proxy)
        return;
    waiter_is_held_up(c, proxy, url, 0);
    waiter_is_held_up(c, proxy, url, ROWLOCK_SHARED);
    release_is_held_up(c, proxy, url, ON_REQUEST);
    release_is_held_up(c, proxy, url, ON_ANSWER);
    faultproxy_stop(proxy);
    free(url);
}
