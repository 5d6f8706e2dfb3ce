/* SPDX-License-Identifier: MIT
 *
 * Counted locks: never more than the permits, while clients come, go, expire and come back. What they have
 * in common with shared locks is in shared.c.
 */
#include "crowd.h"

enum { PERMITS = 2, GUESTS = 4, HAMMERS = 5, ENOUGH = 20 };

static void open_all(struct guest *guests, const struct contract *c, const char *name)
{
    for (int i = 0; i < GUESTS; i++)
        guest_open(&guests[i], c, name, PERMITS);
}

static void close_all(struct guest *guests)
{
    for (int i = 0; i < GUESTS; i++)
        guest_close(&guests[i]);
}

static void counts(const struct contract *c)
{
    struct guest guests[GUESTS];
    rowlock_grant holder = ROWLOCK_GRANT_INIT;
    open_all(guests, c, "counted");
    guest_tries(&guests[0], ROWLOCK_OK, "the first of two permits");
    guest_tries(&guests[1], ROWLOCK_OK, "and the second");
    guest_tries(&guests[2], ROWLOCK_BUSY, "but no third");
    tap_is_int(rowlock_lock_holder(guests[2].lock, &holder), ROWLOCK_OK, "held by");
    tap_is_int(holder.permits, PERMITS, "one of two");
    guests[2].how.permits = PERMITS + 1;
    guest_tries(&guests[2], ROWLOCK_MISMATCH, "all must say the same number");
    tap_ok(strstr(why(guests[2].db), "with 2 permits") != NULL, "which is told: %s",
           why(guests[2].db));
    guests[2].how.permits = 1;
    guest_tries(&guests[2], ROWLOCK_MISMATCH, "a smaller one neither");
    guests[2].how.permits = 0;
    guest_tries(&guests[2], ROWLOCK_BUSY, "who wants it alone has to wait");
    guests[2].how.permits = PERMITS;
    guest_releases(&guests[0], ROWLOCK_OK, "one goes");
    guest_tries(&guests[2], ROWLOCK_OK, "another comes");
    guest_tries(&guests[0], ROWLOCK_BUSY, "no third");
    tap_is_int(rows_of(c, "counted"), PERMITS, "two rows");
    close_all(guests);
    guest_open(&guests[0], c, "counted", 1);
    guest_open(&guests[1], c, "counted", 1);
    guest_tries(&guests[0], ROWLOCK_OK, "when all are gone the number may be another, 1 too");
    guest_tries(&guests[1], ROWLOCK_BUSY, "which is one");
    guest_close(&guests[0]);
    guest_close(&guests[1]);
}

static void bad_numbers(const struct contract *c)
{
    struct guest g;
    guest_open(&g, c, "numbers", -2);
    guest_tries(&g, ROWLOCK_EINVAL, "permits below -1 are refused");
    g.how.permits = INT32_MIN;
    guest_tries(&g, ROWLOCK_EINVAL, "far below too");
    g.how.permits = 1000;
    guest_tries(&g, ROWLOCK_OK, "a thousand are fine");
    guest_close(&g);
}

static void waited_for(const struct contract *c)
{
    struct guest guests[GUESTS];
    open_all(guests, c, "counted line");
    guest_tries(&guests[0], ROWLOCK_OK, "one");
    guest_tries(&guests[1], ROWLOCK_OK, "and another");
    guest_queue(&guests[2]);
    guest_queue(&guests[3]);
    guest_releases(&guests[1], ROWLOCK_OK, "when one goes");
    guest_gets(&guests[2], "the first in line comes in");
    guest_waits(&guests[3], "and not the second");
    tap_is_int(rows_of(c, "counted line"), PERMITS, "two rows");
    guest_tries(&guests[1], ROWLOCK_BUSY, "nor a newcomer");
    guest_releases(&guests[0], ROWLOCK_OK, "when another goes");
    guest_gets(&guests[3], "the second comes in");
    tap_is_int(tickets_of(c, "counted line"), 0, "nobody waits");
    close_all(guests);
}

/* Two places become free at once, by one who held all of it: one wake is handed on. */
static void all_come_in(const struct contract *c)
{
    struct guest guests[GUESTS], holder;
    guest_open(&holder, c, "counted all", 0);
    open_all(guests, c, "counted all");
    guest_tries(&holder, ROWLOCK_OK, "one holds it alone");
    for (int i = 0; i < GUESTS; i++)
        guest_queue(&guests[i]);
    guest_releases(&holder, ROWLOCK_OK, "and goes");
    guest_gets(&guests[0], "as many come in");
    guest_gets(&guests[1], "as there are permits");
    guest_waits(&guests[2], "and not more");
    guest_releases(&guests[0], ROWLOCK_OK, "one goes");
    guest_releases(&guests[1], ROWLOCK_OK, "and the other");
    guest_gets(&guests[2], "then come");
    guest_gets(&guests[3], "the others");
    close_all(guests);
    guest_close(&holder);
}

static void expires(const struct contract *c)
{
    struct guest guests[GUESTS];
    open_all(guests, c, "counted over");
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
    close_all(guests);
}

/* ---- races: leases that end at any moment, renewed or not, beside grants */

struct race {
    const struct contract *c;
    atomic_bool over;
    atomic_int granted, lapsed, lost, unexpected;
};

/* After its lease has ended a grant may be had again as long as no other client came. */
static int come_back(struct race *race, struct guest *g, unsigned *seed)
{
    /* Time: leases end by the database's clock, before or after this. Both are right. */
    sleep_ms(90 + rand_r(seed) % 30);
    int result = rowlock_renew(g->lock, 100 + rand_r(seed) % 20);
    race->lapsed += result == ROWLOCK_LAPSED;
    race->lost += result == ROWLOCK_LOST;
    return result == ROWLOCK_OK || result == ROWLOCK_LAPSED || result == ROWLOCK_LOST ? ROWLOCK_OK
                                                                                      : result;
}

static int hammer(void *argument)
{
    struct race *race = argument;
    struct guest g;
    guest_open(&g, race->c, "hammered", PERMITS);
    unsigned seed = (unsigned)(uintptr_t)&g;
    g.how.ttl_ms = 100;
    g.how.wait_ms = 50;
    while (!race->over) {
        int result = rowlock_acquire(g.lock, &g.how);
        if (result == ROWLOCK_OK) {
            race->granted++;
            for (int i = rand_r(&seed) % 3; i > 0 && result == ROWLOCK_OK; i--)
                result = come_back(race, &g, &seed);
            int released = guest_leave(&g);
            if (released != ROWLOCK_OK && released != ROWLOCK_LOST)
                result = released;
        }
        if (result != ROWLOCK_OK && result != ROWLOCK_TIMEOUT) {
            tap_note("%s", why(g.db));
            race->unexpected++;
        }
    }
    guest_close(&g);
    return 0;
}

/* What one statement sees is one state of the table. */
static void never_more(const struct contract *c)
{
    struct helper *hammers[HAMMERS];
    struct race race = {.c = c};
    int64_t until = clock_ms() + slow_ms(60000);
    void *session = c->raw->open(c->url);
    long long most = 0, looks = 0;
    for (int i = 0; i < HAMMERS; i++)
        hammers[i] = helper_start(hammer, &race);
    while ((race.granted < ENOUGH || race.lost == 0 || most < PERMITS) && clock_ms() < until) {
        long long now = raw_int(c->raw, session,
                                "SELECT count(*) FROM rowlock_locks WHERE name = 'hammered' AND "
                                "expires > %s",
                                c->raw->clock);
        most = now > most ? now : most;
        looks++;
        /* Time: until the next look. */
        sleep_ms(1);
    }
    race.over = true;
    for (int i = 0; i < HAMMERS; i++)
        helper_join(hammers[i]);
    c->raw->close(session);
    tap_is_int(most, PERMITS, "in %lld looks never more than the permits, and sometimes all",
               looks);
    tap_ok(race.lost > 0, "renewals after the lease came too late (%d) or in time (%d)", race.lost,
           race.lapsed);
    tap_is_int(race.unexpected, 0, "in %d grants nobody was told anything odd", race.granted);
}

void contract_counted(const struct contract *c)
{
    counts(c);
    bad_numbers(c);
    waited_for(c);
    all_come_in(c);
    expires(c);
    never_more(c);
}
