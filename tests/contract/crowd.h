/* SPDX-License-Identifier: MIT
 *
 * Words for tests in which several want one lock: guests, each with a connection of his own, who try or
 * stand in line; what the tables say of the line; and a metronome, which tells a wake-up from a look that
 * would have been made anyway without asserting a time.
 */
#ifndef CROWD_H
#define CROWD_H

#include "contract.h"

#include <stdatomic.h>

enum { HELD_MS = 60000 };

/* In a thread while he waits; meanwhile nobody else uses his handles. */
struct guest {
    const struct contract *c;
    rowlock_db *db;
    rowlock_lock *lock;
    rowlock_acquire_options
        how; /* a lease of HELD_MS, waiting for ever, unless a test says otherwise */
    struct helper *thread;
    atomic_bool ended; /* he has an answer */
};

/* permits as in the options. guest_open_as: of this owner, on this URL; guest_adopt: on this session. */
void guest_open(struct guest *g, const struct contract *c, const char *name, int permits);
void guest_open_as(struct guest *g, const struct contract *c, const char *url, const char *owner,
                   const char *name, int permits);
void guest_adopt(struct guest *g, const struct contract *c, void *session, const char *name);
void guest_close(struct guest *g); /* releases what he holds */
/* Several, NULL after the last. */
void guests_open(const struct contract *c, const char *name, int permits, ...)
    __attribute__((sentinel));
void guests_close(struct guest *first, ...) __attribute__((sentinel));

int guest_try(struct guest *g);
/* Begin to wait. guest_queue: and come back when he stands in line, which must come to pass. */
void guest_start(struct guest *g);
void guest_queue(struct guest *g);
int guest_join(struct guest *g); /* his answer, when he has one */
int guest_cancel(struct guest *g);
int guest_leave(struct guest *g); /* release */

/* Checks of one guest each: what he is told, and that he is still waiting. */
void guest_tries(struct guest *g, int want, const char *what);
void guest_gets(struct guest *g, const char *what); /* he waited, and is granted it */
void guest_waits(const struct guest *g, const char *what);
void guest_releases(struct guest *g, int want, const char *what);

/* Tickets in the table, of a name; of a name and an owner. */
int tickets_of(const struct contract *c, const char *name);
long long ticket_of(const struct guest *g); /* 0: he has none */
/* Put a ticket there as a waiter leaves it that is not one of ours. In microseconds by the wall clock. */
void leave_ticket(const struct contract *c, const char *name, long long ticket,
                  long long expires_us);
long long wall_clock_us(void);
bool comes_true(bool (*is_so)(void *context), void *context); /* within a long time */

/* Somebody whose ticket is kept alive three times a second while he waits in vain. He heartbeats twice at least
 * in the time after which the first in line looks without having been woken for. */
struct metronome {
    struct guest holder, waiter;
    long long last;
    int heartbeats;
};
void metronome_start(struct metronome *m, const struct contract *c);
void metronome_look(struct metronome *m); /* counts one heartbeat at most */
void metronome_stop(struct metronome *m);

#endif
