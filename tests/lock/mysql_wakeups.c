/* SPDX-License-Identifier: MIT
 *
 * What only MySQL and MariaDB have to do with waiting: user-level locks, of ours or of the application.
 */
#include "crowd.h"

/* The application's own user-level lock stays, and none of ours is left: all that there are, are let go. */
static void applications_locks(const struct contract *c)
{
    struct guest holder, g;
    OWNED(session) void *session = c->raw->open(c->url);
    tap_is_int(raw_int(c->raw, session, "SELECT GET_LOCK('the application', 0)"), 1,
               "the application has a lock of the server's own");
    guest_open(&holder, c, "adopted wakeup", 0);
    guest_adopt(&g, c, session, "adopted wakeup");
    guest_tries(&holder, ROWLOCK_OK, "a lock is held");
    guest_queue(&g);
    tap_is_int(int_on(c, "SELECT IS_FREE_LOCK('the application')"), 0,
               "which it still has while we wait on its connection");
    guest_releases(&holder, ROWLOCK_OK, "ours is released");
    guest_gets(&g, "and waited for");
    guest_releases(&g, ROWLOCK_OK, "released");
    guest_tries(&holder, ROWLOCK_OK, "held again");
    guest_queue(&g);
    is_result(g.db, guest_cancel(&g), ROWLOCK_CANCELLED, "and waited for in vain");
    guest_close(&g);
    tap_is_int(raw_int(c->raw, session, "SELECT RELEASE_ALL_LOCKS()"), 1,
               "the connection has that one lock and no other");
    guest_close(&holder);
}

/* A connection of ours that has waited, and held, and released, keeps nothing either: the next one would
 * wait for it. */
static void rounds(const struct contract *c)
{
    enum { ROUNDS = 4 };
    struct guest guests[2], first;
    guests_open(c, "wakeups in turn", 0, &guests[0], &guests[1], &first, NULL);
    guest_holds(&guests[0], &first);
    set_polls(ONLY_WAKEUPS);
    for (int i = 0; i < ROUNDS; i++) {
        struct guest *holds = &guests[i % 2], *waits = &guests[(i + 1) % 2];
        waits->how.ticket_ms = HELD_MS;
        guest_queue(waits);
        is_result(waits->db, guest_cancel(waits), ROWLOCK_CANCELLED, "a wait is cancelled");
        guest_queue(waits);
        guest_leave(holds);
        guest_gets(waits, "the next is woken, and granted it");
    }
    set_polls(0);
    guests_close(&guests[0], &guests[1], &first, NULL);
}

void contract_mysql_only(const struct contract *c)
{
    applications_locks(c);
    rounds(c);
    contract_mysql_many(c);
    if (!getenv("ROWLOCK_TEST_POOL")) /* which refuses other tables than before */
        contract_mysql_objects(c);
    contract_mysql_charsets(c);
}
