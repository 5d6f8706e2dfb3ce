/* SPDX-License-Identifier: MIT
 *
 * Owners that hold something and wait for each other: one of the circle is told, and the others then get
 * what they wait for. */
#include "crowd.h"

enum { MOST = 3 };

/* An owner that holds the lock of its number and wants the next one's. */
struct member {
    struct guest holds, wants;
};

static void circle_open(struct member *members, int count, const struct contract *c, int permits)
{
    for (int i = 0; i < count; i++) {
        const char *owner = textf("member %d", i), *holds = textf("circle %d", i),
                   *wants = textf("circle %d", (i + 1) % count);
        guest_open_as(&members[i].holds, c, c->url, owner, holds, permits);
        guest_open_as(&members[i].wants, c, c->url, owner, wants, 0);
        guest_tries(&members[i].holds, ROWLOCK_OK, "each holds one");
    }
}

static void circle_close(struct member *members, int count)
{
    for (int i = 0; i < count; i++) {
        guest_close(&members[i].holds);
        guest_close(&members[i].wants);
    }
}

/* Each waits but the last, which closes the circle. */
static void one_is_told(const struct contract *c, int count, int permits)
{
    struct member members[MOST];
    circle_open(members, count, c, permits);
    for (int i = 0; i < count - 1; i++)
        guest_queue(&members[i].wants);
    for (int i = 0; i < count - 1; i++)
        guest_waits(&members[i].wants, "waiting for the next one is no circle yet");
    struct member *last = &members[count - 1];
    sleep_ms(2); /* SQLite's clock has milliseconds: the last ticket is to be the newest */
    is_result(last->wants.db, rowlock_acquire(last->wants.lock, &last->wants.how), ROWLOCK_DEADLOCK,
              "the client that closes a circle of %d is told", count);
    tap_ok(strstr(why(last->wants.db), "circle 0") != NULL &&
               strstr(why(last->wants.db), "member 0") != NULL,
           "with words about it (%s)", why(last->wants.db));
    tap_is_int(ticket_of(&last->wants), 0, "it stands in the queue no more");
    is_result(last->holds.db, rowlock_verify(last->holds.lock), ROWLOCK_OK, "but holds its own");
    for (int i = 0; i < count - 1; i++)
        guest_waits(&members[i].wants, "the others are not told");
    guest_releases(&last->holds, ROWLOCK_OK, "until it releases that");
    for (int i = count - 2; i >= 0; i--) {
        guest_gets(&members[i].wants, "then the one before it gets the lock");
        guest_releases(&members[i].wants, ROWLOCK_OK, "is done");
        guest_releases(&members[i].holds, ROWLOCK_OK, "and releases what it had");
    }
    is_result(last->wants.db, rowlock_acquire(last->wants.lock, &last->wants.how), ROWLOCK_OK,
              "and the client that closed it comes through");
    circle_close(members, count);
}

static int want_and_leave(void *argument)
{
    struct member *m = argument;
    int result = rowlock_acquire(m->wants.lock, &m->wants.how);
    if (result == ROWLOCK_OK)
        guest_leave(&m->wants);
    guest_leave(&m->holds);
    return result;
}

/* All come at the same time: still exactly one of them has to give way. */
static void all_at_once(const struct contract *c)
{
    struct member members[MOST];
    struct helper *helpers[MOST];
    int told = 0, granted = 0;
    circle_open(members, MOST, c, 0);
    for (int i = 0; i < MOST; i++) {
        members[i].wants.how.ticket_ms = 1000; /* the first to come look again sooner */
        members[i].wants.how.wait_ms = slow_ms(60000);
        helpers[i] = helper_start(want_and_leave, &members[i]);
    }
    for (int i = 0; i < MOST; i++) {
        int result = helper_join(helpers[i]);
        told += result == ROWLOCK_DEADLOCK;
        granted += result == ROWLOCK_OK;
    }
    tap_is_int(told, 1, "of three that come at once one is told");
    tap_is_int(granted, MOST - 1, "and the others get their locks");
    circle_close(members, MOST);
}

/* A chain is not a circle, nor are two that wait for the same. */
static void no_circle(const struct contract *c)
{
    CLOSED_BY(guest_close) struct guest holder, second, third, own;
    guest_open_as(&holder, c, c->url, "chained 1", "chain 1", 0);
    guest_open_as(&own, c, c->url, "chained 2", "chain 2", 0);
    guest_open_as(&second, c, c->url, "chained 2", "chain 1", 0);
    guest_open_as(&third, c, c->url, "chained 3", "chain 2", 0);
    guest_tries(&holder, ROWLOCK_OK, "one holds a lock");
    guest_tries(&own, ROWLOCK_OK, "and another one");
    guest_queue(&third);
    guest_queue(&second);
    guest_waits(&second, "a chain");
    guest_waits(&third, "is no circle");
    guest_releases(&holder, ROWLOCK_OK, "it comes to an end");
    guest_gets(&second, "for one");
    guest_releases(&own, ROWLOCK_OK, "after");
    guest_gets(&third, "the other");
}

/* Leases end: a client that waits for a dead one is in no circle. */
static void over(const struct contract *c)
{
    struct member members[2];
    circle_open(members, 2, c, 0);
    guest_queue(&members[0].wants);
    exec_on(c, "UPDATE rowlock_locks SET expires = 5 WHERE name = 'circle 0'");
    is_result(members[1].wants.db, rowlock_acquire(members[1].wants.lock, &members[1].wants.how),
              ROWLOCK_OK, "a lease that is over closes no circle");
    guest_releases(&members[1].holds, ROWLOCK_OK, "so");
    guest_gets(&members[0].wants, "all come through");
    guest_releases(&members[0].holds, ROWLOCK_LOST, "but for the one that lost its lock");
    circle_close(members, 2);
}

void contract_cycle(const struct contract *c)
{
    one_is_told(c, 2, 0);
    one_is_told(c, 3, 0);
    one_is_told(c, 2, ROWLOCK_SHARED);
    all_at_once(c);
    no_circle(c);
    over(c);
}
