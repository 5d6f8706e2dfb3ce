/* SPDX-License-Identifier: MIT
 *
 * Counted locks: never more than the permits, as clients come, go, expire and come back. What they have
 * in common with shared locks is in shared.c. */
#include "crowd.h"

enum { PERMITS = 2, GUESTS = 4 };

static void counts(const struct contract *c)
{
    struct guest guests[GUESTS];
    guests_open_all(guests, GUESTS, c, "counted", PERMITS);
    guest_tries(&guests[0], ROWLOCK_OK, "the first of two permits");
    guest_tries(&guests[1], ROWLOCK_OK, "and the second");
    guest_tries(&guests[2], ROWLOCK_BUSY, "but no third");
    tap_is_int(holder_of(guests[2].lock).permits, PERMITS, "held by one of two");
    guests[2].how.permits = PERMITS + 1;
    guest_tries(&guests[2], ROWLOCK_MISMATCH, "all must say the same number");
    tap_ok(strstr(why(guests[2].db), "with 2 permits") != NULL, "which is told: %s",
           why(guests[2].db));
    guests[2].how.permits = 1;
    guest_tries(&guests[2], ROWLOCK_MISMATCH, "a smaller one neither");
    guests[2].how.permits = 0;
    guest_tries(&guests[2], ROWLOCK_BUSY, "a client that wants it alone has to wait");
    guests[2].how.permits = PERMITS;
    guest_releases(&guests[0], ROWLOCK_OK, "one goes");
    guest_tries(&guests[2], ROWLOCK_OK, "another comes");
    guest_tries(&guests[0], ROWLOCK_BUSY, "no third");
    tap_is_int(rows_of(c, "counted"), PERMITS, "two rows");
    guests_close_all(guests, GUESTS);
    guests_open_all(guests, 2, c, "counted", 1);
    guest_tries(&guests[0], ROWLOCK_OK, "when all are gone the number may be another, 1 too");
    guest_tries(&guests[1], ROWLOCK_BUSY, "which is one");
    guests_close_all(guests, 2);
}

/* Two places become free at once, by a client that held all of it: one wake is handed on. */
static void waited_for(const struct contract *c)
{
    struct guest guests[GUESTS], holder;
    guest_open(&holder, c, "counted line", 0);
    guests_open_all(guests, GUESTS, c, "counted line", PERMITS);
    guest_tries(&holder, ROWLOCK_OK, "one holds it alone");
    for (int i = 0; i < GUESTS; i++)
        guest_queue(&guests[i]);
    guest_releases(&holder, ROWLOCK_OK, "and goes");
    guest_gets(&guests[0], "as many come in");
    guest_gets(&guests[1], "as there are permits");
    guest_waits(&guests[2], "and not more");
    guest_releases(&guests[1], ROWLOCK_OK, "when one goes");
    guest_gets(&guests[2], "the first in line comes in");
    guest_waits(&guests[3], "and not the second");
    tap_is_int(rows_of(c, "counted line"), PERMITS, "two rows");
    guest_tries(&guests[1], ROWLOCK_BUSY, "nor a newcomer");
    guest_releases(&guests[0], ROWLOCK_OK, "when another goes");
    guest_gets(&guests[3], "the second comes in");
    tap_is_int(tickets_of(c, "counted line"), 0, "no client waits");
    guests_close_all(guests, GUESTS);
    guest_close(&holder);
}

static void expires(const struct contract *c)
{
    struct guest guests[GUESTS];
    guests_open_all(guests, GUESTS, c, "counted over", PERMITS);
    guest_tries(&guests[0], ROWLOCK_OK, "one for a moment");
    guest_tries(&guests[1], ROWLOCK_OK, "another for longer");
    end_lease(c, guests[0].lock);
    guest_tries(&guests[2], ROWLOCK_OK, "when the moment is over another comes in");
    guest_tries(&guests[3], ROWLOCK_BUSY, "but not a second");
    is_result(guests[0].db, rowlock_renew(guests[0].lock, HELD_MS), ROWLOCK_LOST,
              "nor does a renewal bring the first one back");
    tap_is_int(rows_of(c, "counted over"), PERMITS, "two rows");
    guest_releases(&guests[0], ROWLOCK_LOST, "it is lost");
    is_result(guests[1].db, rowlock_verify(guests[1].lock), ROWLOCK_OK, "the other one is not");
    guests_close_all(guests, GUESTS);
}

void contract_counted(const struct contract *c)
{
    counts(c);
    waited_for(c);
    expires(c);
}
