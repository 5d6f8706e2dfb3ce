/* SPDX-License-Identifier: MIT
 *
 * Words for tests in which several clients want one lock. Guests try or wait in the queue, each on
 * its own connection. Other words show what the tables say of the queue. */
#pragma once

#include "contract.h"

enum { HELD_MS = 600000 };

/* A client in a thread while it waits. Other threads do not use its handles meanwhile. */
struct guest {
    const struct contract *c;
    rowlock_db *db;
    rowlock_lock *lock;
    /* by default a lease of HELD_MS and an endless wait */
    rowlock_acquire_options how;
    struct helper *thread;
    /* its wait has ended */
    atomic_bool ended;
};

/* permits as in the options. guest_open_as: with this owner, on this URL. guest_adopt: on this
 * session. */
void guest_open(struct guest *g, const struct contract *c, const char *name, int permits);
void guest_open_as(struct guest *g, const struct contract *c, const char *url, const char *owner,
                   const char *name, int permits);
void guest_adopt(struct guest *g, const struct contract *c, void *session, const char *name);
/* also releases what it holds */
void guest_close(struct guest *g);
/* Several guests; NULL after the last. */
void guests_open(const struct contract *c, const char *name, int permits, ...)
    __attribute__((sentinel));
void guests_close(struct guest *first, ...) __attribute__((sentinel));
void guests_open_all(struct guest *guests, int count, const struct contract *c, const char *name,
                     int permits);
void guests_close_all(struct guest *guests, int count);

int guest_try(struct guest *g);
/* guest_start begins to wait. guest_queue also returns when the guest is in the queue; it fails if
 * that does not happen. */
void guest_start(struct guest *g);
void guest_queue(struct guest *g);
/* Waits long for its result, then cancels the wait. */
int guest_join(struct guest *g);
int guest_cancel(struct guest *g);
/* releases */
int guest_leave(struct guest *g);

/* Checks of one guest each: the result of a try, and that it is still waiting. */
void guest_tries(struct guest *g, int want, const char *what);
/* it waited, and is granted the lock */
void guest_gets(struct guest *g, const char *what);
void guest_waits(const struct guest *g, const char *what);
void guest_releases(struct guest *g, int want, const char *what);

/* Tickets in the table: of a name; of a name and an owner. */
int tickets_of(const struct contract *c, const char *name);
/* 0: it has none */
long long ticket_of(const struct guest *g);
/* Writes a ticket as a waiter of another program would leave it. Times are wall-clock
 * microseconds. */
void leave_ticket(const struct contract *c, const char *name, long long ticket,
                  long long expires_us);

/* The pause between two polls of every waiter of this program, from its next pause on. 0: as usual.
 * ONLY_WAKEUPS: a waiter whose lease and ticket last HELD_MS looks again only when it is woken. A
 * lost wake-up is a wait that does not end, and guest_join() cancels it. */
enum { OFTEN = 5, ONLY_WAKEUPS = 3600000 };
void set_polls(int64_t pause_ms);
/* Can a release on one connection wake a waiter on another? PostgreSQL alone wakes a pool. */
bool can_wake(const struct contract *c);
/* Gets the lock so that its release wakes the next waiter. MySQL and MariaDB: only a holder that has
 * waited wakes others. So it waits for first, which tries and releases. */
void guest_holds(struct guest *g, struct guest *first);
