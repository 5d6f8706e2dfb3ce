/* SPDX-License-Identifier: MIT
 *
 * Acquiring without blocking, as event loops do: two at once under one poll(), and how it ends. What
 * else may be done with the handles meanwhile is in test_start.c. */
#include "crowd.h"

enum { TWO = 2, LONG_MS = 30000 };

static int begin(struct guest *g)
{
    return rowlock_acquire_start(g->lock, &g->how);
}

/* Poll and step until one of them has a result; -1 if that takes too long. */
static int next_of(struct guest *guests, int count, int *result)
{
    struct pollfd fds[TWO];
    *result = ROWLOCK_PENDING;
    for (;;) {
        for (int i = 0; i < count; i++)
            fds[i] = (struct pollfd){.fd = rowlock_acquire_fd(guests[i].lock), .events = POLLIN};
        if (poll(fds, (nfds_t)count, (int)slow_ms(LONG_MS)) <= 0)
            return -1;
        for (int i = 0; i < count; i++)
            if (fds[i].revents &&
                (*result = rowlock_acquire_step(guests[i].lock)) != ROWLOCK_PENDING)
                return i;
    }
}

static int finish(struct guest *g)
{
    int result;
    next_of(g, 1, &result);
    return result;
}

/* The acquire may go on only in its steps. */
static bool in_queue(struct guest *g)
{
    struct pollfd fd = {.fd = rowlock_acquire_fd(g->lock), .events = POLLIN};
    if (poll(&fd, 1, 0) > 0)
        (void)!rowlock_acquire_step(g->lock);
    return ticket_of(g) != 0;
}

static void free_lock(const struct contract *c)
{
    CLOSED_BY(guest_close) struct guest g;
    guest_open(&g, c, "started", 0);
    is_result(g.db, begin(&g), ROWLOCK_OK, "start to acquire");
    tap_ok(rowlock_acquire_fd(g.lock) >= 0, "that can be polled");
    is_result(g.db, finish(&g), ROWLOCK_OK, "and is done after some steps");
    tap_ok(rowlock_lock_token(g.lock) > 0, "it is held");
    is_result(g.db, begin(&g), ROWLOCK_OK, "start to enter again");
    is_result(g.db, finish(&g), ROWLOCK_OK, "it is entered");
    guest_releases(&g, ROWLOCK_OK, "left");
    guest_releases(&g, ROWLOCK_OK, "and released");
}

/* The wait has ended when the cancel comes. */
static void cancelled_too_late(const struct contract *c)
{
    CLOSED_BY(guest_close) struct guest holder, g;
    guests_open(c, "cancelled too late", 0, &holder, &g, NULL);
    is_result(g.db, begin(&g), ROWLOCK_OK, "a free lock, started");
    struct pollfd fd = {.fd = rowlock_acquire_fd(g.lock), .events = POLLIN};
    tap_ok(poll(&fd, 1, (int)slow_ms(LONG_MS)) == 1, "there is something to step for");
    rowlock_cancel(g.db);
    int result = finish(&g);
    tap_ok(result == ROWLOCK_OK || result == ROWLOCK_CANCELLED, "it ends, one way or the other");
    if (result == ROWLOCK_OK)
        guest_releases(&g, ROWLOCK_OK, "released");
    guest_tries(&holder, ROWLOCK_OK, "another holds it");
    g.how.wait_ms = 50;
    is_result(g.db, rowlock_acquire(g.lock, &g.how), ROWLOCK_TIMEOUT,
              "the cancel does not end the next wait");
    rowlock_cancel(g.db);
    is_result(g.db, begin(&g), ROWLOCK_OK, "started after a cancel");
    is_result(g.db, finish(&g), ROWLOCK_CANCELLED, "which ends it");
}

/* Two locks that others hold, one event loop. */
static void two_at_once(const struct contract *c)
{
    struct guest guests[TWO], holders[TWO];
    static const char *const names[TWO] = {"loop one", "loop two"};
    for (int i = 0; i < TWO; i++) {
        guest_open(&holders[i], c, names[i], 0);
        guest_open(&guests[i], c, names[i], 0);
        guest_tries(&holders[i], ROWLOCK_OK, "a lock is held");
        is_result(guests[i].db, begin(&guests[i]), ROWLOCK_OK, "another starts to acquire it");
    }
    tap_ok(EVENTUALLY(in_queue(&guests[0]) && in_queue(&guests[1])), "both stand in line");
    for (int i = 0; i < TWO; i++)
        tap_is_int(rowlock_acquire_step(guests[i].lock), ROWLOCK_PENDING, "and have no answer yet");
    for (int i = TWO - 1; i >= 0; i--) {
        guest_releases(&holders[i], ROWLOCK_OK, "one is released");
        int result;
        tap_is_int(next_of(guests, i + 1, &result), i, "which wakes the one that waits for it");
        tap_is_int(result, ROWLOCK_OK, "it gets it");
        tap_is_int(ticket_of(&guests[i]), 0, "and leaves the line");
    }
    for (int i = 0; i < TWO; i++)
        is_result(guests[i].db, rowlock_verify(guests[i].lock), ROWLOCK_OK, "the handle works");
    guests_close_all(guests, TWO);
    guests_close_all(holders, TWO);
}

static void other_results(const struct contract *c)
{
    CLOSED_BY(guest_close) struct guest holder, g;
    guests_open(c, "busy handle", 0, &holder, &g, NULL);
    guest_tries(&holder, ROWLOCK_OK, "a lock is held");
    is_result(g.db, begin(&g), ROWLOCK_OK, "another starts to acquire it");
    tap_ok(EVENTUALLY(in_queue(&g)), "and stands in line");
    is_result(g.db, guest_try(&g), ROWLOCK_EMISUSE, "other calls are turned away");
    tap_is_int(rowlock_acquire_step(g.lock), ROWLOCK_PENDING, "it waits on");
    rowlock_cancel(g.db);
    is_result(g.db, finish(&g), ROWLOCK_CANCELLED, "until it is cancelled");
    tap_is_int(ticket_of(&g), 0, "no ticket is left");
    g.how.wait_ms = 200;
    is_result(g.db, begin(&g), ROWLOCK_OK, "a wait that is started");
    is_result(g.db, finish(&g), ROWLOCK_TIMEOUT, "may be over");
    g.how.wait_ms = 0;
    is_result(g.db, begin(&g), ROWLOCK_OK, "a try that is started");
    is_result(g.db, finish(&g), ROWLOCK_BUSY, "may be busy");
    tap_is_int(holder_of(g.lock).token, rowlock_lock_token(holder.lock),
               "by a holder that is known");
}

static void closed_meanwhile(const struct contract *c, bool lock_first)
{
    struct guest holder, g;
    guests_open(c, "closed loop", 0, &holder, &g, NULL);
    guest_tries(&holder, ROWLOCK_OK, "a lock is held");
    is_result(g.db, begin(&g), ROWLOCK_OK, "another starts to acquire it");
    tap_ok(EVENTUALLY(in_queue(&g)), "and stands in line");
    if (lock_first)
        rowlock_lock_close(g.lock);
    rowlock_db_close(g.db);
    if (!lock_first)
        rowlock_lock_close(g.lock);
    tap_is_int(tickets_of(c, "closed loop"), 0, "closing its %s takes it out of the queue",
               lock_first ? "lock" : "db");
    guest_releases(&holder, ROWLOCK_OK, "it is released");
    tap_is_int(rows_of(c, "closed loop"), 0, "and not granted to a closed handle");
    guest_close(&holder);
}

/* What the options point to may be gone before it is written. */
static void options_are_copied(const struct contract *c)
{
    CLOSED_BY(guest_close) struct guest holder, g;
    char note[30] = "a note that is copied";
    guests_open(c, "copied", 0, &holder, &g, NULL);
    guest_tries(&holder, ROWLOCK_OK, "a lock is held");
    g.how.note = note;
    is_result(g.db, begin(&g), ROWLOCK_OK, "another starts to acquire it");
    memset(note, 'x', sizeof note - 1);
    memset(&g.how, 'x', sizeof g.how);
    tap_ok(EVENTUALLY(in_queue(&g)), "and stands in line");
    guest_releases(&holder, ROWLOCK_OK, "it is released");
    is_result(g.db, finish(&g), ROWLOCK_OK, "and granted");
    guest_tries(&holder, ROWLOCK_BUSY, "which others meet");
    tap_is_str(holder_of(holder.lock).note, "a note that is copied",
               "with the note that it was started with");
}

void contract_start(const struct contract *c)
{
    free_lock(c);
    two_at_once(c);
    other_results(c);
    closed_meanwhile(c, true);
    closed_meanwhile(c, false);
    options_are_copied(c);
    cancelled_too_late(c);
}
