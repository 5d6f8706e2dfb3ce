/* SPDX-License-Identifier: MIT
 *
 * No wake-up is lost: the lock is released at every point between "found it held" and "asleep", by
 * holding up each request of the waiter, before the server sees it and after it has carried it out.
 * The release itself is held up while the waiter comes. Meanwhile no waiter polls: only a wake-up
 * lets it in. SQLite has no requests: sqlite_steps.c. */
#include "crowd.h"

#include "faultproxy.h"

enum { REPEATS = 2, DELAY_MS = 60, SURE = 3, REQUESTS_MAX = 8 };

/* A waiter and a holder; one of them goes through the proxy. first: for guest_holds(). */
struct stage {
    const struct contract *c;
    struct faultproxy *proxy;
    struct guest holder, waiter, first;
    bool wakes;
};

static void stage_open(struct stage *s, const struct contract *c, struct faultproxy *proxy,
                       const char *waiters_url, const char *holders_url, int permits)
{
    *s = (struct stage){.c = c, .proxy = proxy};
    s->wakes = can_wake(c) && (permits == 0 || !is_mysql(c));
    guest_open_as(&s->holder, c, holders_url, NULL, "wake up", permits);
    guest_open_as(&s->waiter, c, waiters_url, NULL, "wake up", 0);
    guest_open(&s->first, c, "wake up", 0);
    s->waiter.how.ticket_ms = HELD_MS;
    /* Each statement has been used once, so that no preparing comes in between. */
    guest_tries(&s->holder, ROWLOCK_OK, "a lock is held");
    guest_queue(&s->waiter);
    guest_releases(&s->holder, ROWLOCK_OK, "released");
    guest_gets(&s->waiter, "waited for");
    guest_releases(&s->waiter, ROWLOCK_OK, "and released again");
}

static void stage_close(struct stage *s)
{
    set_polls(0);
    guests_close(&s->waiter, &s->holder, &s->first, NULL);
}

/* From now on only a wake-up ends a wait, where there are wake-ups. */
static void stage_hold(struct stage *s)
{
    guest_holds(&s->holder, &s->first);
    set_polls(s->wakes ? ONLY_WAKEUPS : OFTEN);
}

static struct fault delay(enum fault_side side)
{
    return (struct fault){.kind = FAULT_DELAY, .side = side, .delay_ms = DELAY_MS};
}

static bool fired(const struct stage *s)
{
    return faultproxy_fired(s->proxy) || s->waiter.ended;
}

/* Until the nth request is held up. A waiter that is asleep sends none. */
static bool held_up(struct stage *s, int nth)
{
    if (nth <= SURE)
        return EVENTUALLY(fired(s));
    for (int64_t end = clock_ms() + 100; !fired(s) && clock_ms() < end;)
        sleep_ms(1);
    return faultproxy_fired(s->proxy);
}

/* False if the waiter does not come to the nth request before it sleeps. */
static bool release_at(struct stage *s, int nth, enum fault_side side)
{
    stage_hold(s);
    faultproxy_arm(s->proxy, nth, delay(side));
    guest_start(&s->waiter);
    bool reached = held_up(s, nth);
    guest_leave(&s->holder);
    is_result(s->waiter.db, guest_join(&s->waiter), ROWLOCK_OK,
              "released while %s %d of the waiter is held up, it gets the lock%s",
              side == ON_REQUEST ? "request" : "answer", nth, s->wakes ? ", woken" : "");
    faultproxy_arm(s->proxy, 0, delay(side));
    guest_leave(&s->waiter);
    return reached;
}

static void waiter_is_held_up(const struct contract *c, struct faultproxy *proxy, const char *url,
                              int permits)
{
    for (int side = ON_REQUEST; side <= ON_ANSWER; side++) {
        CLOSED_BY(stage_close) struct stage s;
        int nth = 1;
        stage_open(&s, c, proxy, url, c->url, permits);
        while (nth < REQUESTS_MAX && release_at(&s, nth, (enum fault_side)side))
            nth++;
        tap_ok(nth > SURE, "a try, a ticket, and another try at least, %d in all", nth - 1);
    }
}

static int release(void *argument)
{
    return guest_leave(argument);
}

static void release_is_held_up(const struct contract *c, struct faultproxy *proxy, const char *url,
                               enum fault_side side)
{
    const char *what = side == ON_REQUEST ? "request" : "answer";
    CLOSED_BY(stage_close) struct stage s;
    stage_open(&s, c, proxy, c->url, url, 0);
    for (int i = 0; i < REPEATS; i++) {
        stage_hold(&s);
        faultproxy_arm(proxy, 1, delay(side));
        s.waiter.ended = false;
        struct helper *helper = helper_start(release, &s.holder);
        tap_ok(EVENTUALLY(fired(&s)), "while the %s of a release is on its way", what);
        guest_start(&s.waiter);
        guest_gets(&s.waiter, "a waiter comes, and gets the lock");
        is_result(s.holder.db, helper_join(helper), ROWLOCK_OK, "that is released");
        guest_leave(&s.waiter);
    }
}

/* ---- other ways in */

enum way { BREAKS, CLOSES, COMMITS, WAYS };
static const char *const ways[WAYS] = {"a break", "closing the handle",
                                       "the commit of a release in a transaction"};

struct entry {
    const struct contract *c;
    enum way way;
    struct guest holder, waiter, first;
    void *session;
    bool started;
};

static void waiter_comes(struct entry *e)
{
    if (!e->started)
        guest_start(&e->waiter);
    e->started = true;
    /* A file has one writer: beside it no client takes a ticket. */
    if ((e->way != COMMITS || e->c->has_server) && !EVENTUALLY(ticket_of(&e->waiter) != 0))
        tap_ok(false, "a waiter stands in the queue before %s", ways[e->way]);
    /* Time: the waiter is mostly asleep by then. One that is not must notice the same. */
    sleep_ms(10);
}

static void begin_release(const struct guest *holder)
{
    is_result(holder->db, rowlock_tx_release(holder->lock, holder->db), ROWLOCK_OK,
              "a release in a transaction");
}

static int release_within(void *context, const rowlock_attempt *attempt)
{
    struct entry *e = context;
    begin_release(&e->holder);
    waiter_comes(e);
    return ROWLOCK_OK;
}

static void let_in(struct entry *e, bool own)
{
    const struct contract *c = e->c;
    struct guest *holder = &e->holder;
    if (e->way == COMMITS && own) {
        is_result(holder->db, rowlock_retry(holder->db, release_within, e, NULL, NULL), ROWLOCK_OK,
                  "it commits");
        rowlock_forget(holder->lock);
        return;
    }
    if (e->way == COMMITS) {
        raw_run(c->raw, e->session, "%s", c->begin);
        begin_release(holder);
    }
    waiter_comes(e);
    if (e->way == BREAKS) {
        OWNED(db) rowlock_db *breaker = must_open(c->url);
        is_result(breaker, rowlock_break(breaker, "wake up else", 0, NULL), ROWLOCK_OK, "a break");
    } else if (e->way == CLOSES) {
        rowlock_lock_close(holder->lock);
        holder->lock = must_lock(holder->db, "wake up else");
    } else {
        raw_run(c->raw, e->session, "COMMIT");
        rowlock_forget(holder->lock);
    }
}

/* All that lets a waiter in wakes it. A release in a transaction comes before the ticket: its
 * notification, if there is one, must wait for the commit. MySQL and MariaDB: a break wakes no
 * waiter, and an adopted connection wakes none. */
static void other_ways(const struct contract *c, enum way way)
{
    struct entry e = {.c = c, .way = way, .session = c->raw->open(c->url)};
    bool own = is_mysql(c) && can_wake(c), wakes = can_wake(c) && (!own || way != BREAKS);
    if (own)
        guest_open(&e.holder, c, "wake up else", 0);
    else
        guest_adopt(&e.holder, c, e.session, "wake up else");
    guests_open(c, "wake up else", 0, &e.waiter, &e.first, NULL);
    e.waiter.how.ticket_ms = HELD_MS;
    for (int i = 0; i < REPEATS; i++) {
        guest_holds(&e.holder, &e.first);
        set_polls(wakes ? ONLY_WAKEUPS : OFTEN);
        e.started = false;
        let_in(&e, own);
        is_result(e.waiter.db, guest_join(&e.waiter), ROWLOCK_OK, "%s lets the next one in%s",
                  ways[way], wakes ? ", and wakes it" : "");
        guest_leave(&e.waiter);
        guest_leave(&e.holder);
    }
    set_polls(0);
    guests_close(&e.waiter, &e.first, &e.holder, NULL);
    c->raw->close(e.session);
}

void contract_wakeup(const struct contract *c)
{
    OWNED(text) char *url = NULL;
    for (int way = BREAKS; way < WAYS; way++)
        other_ways(c, (enum way)way);
    OWNED(proxy) struct faultproxy *proxy = c->has_server ? faultproxy_start(c->url, &url) : NULL;
    if (!proxy)
        return;
    waiter_is_held_up(c, proxy, url, 0);
    waiter_is_held_up(c, proxy, url, ROWLOCK_SHARED);
    release_is_held_up(c, proxy, url, ON_REQUEST);
    release_is_held_up(c, proxy, url, ON_ANSWER);
}
