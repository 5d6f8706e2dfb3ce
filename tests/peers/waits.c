/* SPDX-License-Identifier: MIT
 *
 * Clients that wait for one lock: how fast it goes from one to the next, and what they cost at rest.
 */
#include "peers.h"

#include <math.h>

enum { ROUNDS_OF_HANDOFFS = 3, WAITERS_AT_REST = 500 };

/* PostgreSQL's busy sessions tell what they did a second later. */
static const double WARM_UP_S = 0.5, TOLD_S = 1.5;

/* At rest: until all wait, and how long they are watched. */
static const double SETTLE_S = 4, WATCH_S = 5;

static struct waiter waiter_of(const struct peer *peer)
{
    struct waiter way = peer->locking->way;
    way.label = peer->label;
    way.place = &peer->place;
    return way;
}

/* ---- handoffs */

static const struct column columns[] = {
    {"median us", "median_us", 0}, {"least", "median_least_us", 0}, {"most", "median_most_us", 0},
    {"99% us", "p99_us", 0},       {"handoffs/s", "per_second", 0}, {"statements", "statements", 1},
};
enum { MIDDLE, LEAST, MOST, WORST, EACH_SECOND, EACH_HANDOFF, COLUMNS };

static double figures[CONTENDERS_MAX][HANDOFF_COLUMNS][ROUNDS_OF_HANDOFFS];

static void take_turn(struct peer *peer, int waiting, double (*out)[ROUNDS_OF_HANDOFFS], int round)
{
    struct waiter way = waiter_of(peer);
    struct observer observer = peer_observe(peer);
    double values[HANDOFF_COLUMNS];
    measure_handoff(&way, &observer, waiting, peer->settle_s > 0 ? TOLD_S : WARM_UP_S, run.turn_s,
                    NAN, values);
    for (int i = 0; i < HANDOFF_COLUMNS; i++)
        out[i][round] = values[i];
    peer_unobserve(peer, &observer);
}

static void report_handoffs(const struct peer *peer, int waiting, double (*of)[ROUNDS_OF_HANDOFFS])
{
    double values[COLUMNS] = {0};
    values[MIDDLE] = median(of[MEDIAN], ROUNDS_OF_HANDOFFS);
    values[LEAST] = of[MEDIAN][0];
    values[MOST] = of[MEDIAN][ROUNDS_OF_HANDOFFS - 1];
    values[WORST] = median(of[P99], ROUNDS_OF_HANDOFFS);
    values[EACH_SECOND] = median(of[RATE], ROUNDS_OF_HANDOFFS);
    values[EACH_HANDOFF] = median(of[STATEMENTS], ROUNDS_OF_HANDOFFS);
    report_row("handoff", peer->label, waiting, columns, values, COLUMNS);
}

static void hand_over(int waiting)
{
    report_section("handoffs to one of %d who wait%s: %d turns of %.1f s each", waiting,
                   waiting == 1 ? "s" : "", ROUNDS_OF_HANDOFFS, run.turn_s);
    for (int r = 0; r < ROUNDS_OF_HANDOFFS; r++)
        for (int i = 0; i < run.count; i++)
            if (run.peers[i]->locking->way.acquire)
                take_turn(run.peers[i], waiting, figures[i], r);
    report_columns(columns, COLUMNS);
    for (int i = 0; i < run.count; i++)
        if (run.peers[i]->locking->way.acquire)
            report_handoffs(run.peers[i], waiting, figures[i]);
}

void bench_handoffs(void)
{
    static const int waiting[] = {1, 16, 64};
    for (size_t i = 0; i < sizeof waiting / sizeof *waiting; i++)
        hand_over(waiting[i]);
    report_line(
        "    Each holds the lock for 1 to 3 ms. median, 99%%: from the return of release to the"
        " return of the next\n    acquire; least, most: of the rounds' medians; statements:"
        " that the server counts for each handoff.\n    PostgreSQL counts transactions,"
        " ZooKeeper packets.\n");
}

/* ---- at rest */

void bench_rests(void)
{
    report_section("%d who wait at rest", WAITERS_AT_REST);
    report_columns(rest_columns, REST_COLUMNS);
    for (int i = 0; i < run.count; i++) {
        struct peer *peer = run.peers[i];
        double values[REST_COLUMNS];
        if (!peer->locking->way.acquire)
            continue;
        struct waiter way = waiter_of(peer);
        struct observer observer = peer_observe(peer);
        measure_rest(&way, &observer, WAITERS_AT_REST, fmax(SETTLE_S, peer->settle_s),
                     fmax(WATCH_S, peer->beat_s), values);
        report_row("rest", peer->label, WAITERS_AT_REST, rest_columns, values, REST_COLUMNS);
        peer_unobserve(peer, &observer);
    }
    report_line("    stmts: as above; CPU%%: of one processor; connections: the holder's too\n");
}
