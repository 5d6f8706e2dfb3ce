/* SPDX-License-Identifier: MIT
 *
 * Acquire and release, as often as it goes. Peers take turns. */
#include "peers.h"

#include <math.h>

enum { ROUNDS_OF_PAIRS = 5 };

struct pairs {
    const struct locking *locking;
    void *session;
};

static const struct peer *peer_at(const struct place *place)
{
    for (int i = 0; i < run.count; i++)
        if (&run.peers[i]->place == place)
            return run.peers[i];
    die("no peer is here");
}

static void *open_pairs(const struct contender *contender, const char *name)
{
    struct pairs *s = zeroed(1, sizeof *s);
    s->locking = peer_at(contender->place)->locking;
    s->session = s->locking->way.open(contender->place, name);
    return s;
}

static void close_pairs(void *session)
{
    struct pairs *s = session;
    s->locking->way.close(s->session);
    free(s);
}

static void pair(void *session)
{
    struct pairs *s = session;
    if (s->locking->pair) {
        s->locking->pair(s->session);
    } else {
        s->locking->way.acquire(s->session);
        s->locking->way.release(s->session);
    }
}

static const struct column pair_columns[] = {
    {"pairs/s", "per_second", 0},  {"least", "least", 0},   {"most", "most", 0},
    {"median us", "median_us", 0}, {"99% us", "p99_us", 0}, {"server us", "server_us", 1},
    {"ratio", "ratio", 2},
};
enum { PAIR_COLUMNS = sizeof pair_columns / sizeof *pair_columns };

static void compete(int clients)
{
    struct contender contenders[CONTENDERS_MAX];
    static struct outcome outcomes[CONTENDERS_MAX];
    report_section(
        "acquire + release, %d client%s, each on a lock of its own: %d turns of %.1f s each",
        clients, clients == 1 ? "" : "s", ROUNDS_OF_PAIRS, run.turn_s);
    for (int i = 0; i < run.count; i++)
        contenders[i] = (struct contender){.label = run.peers[i]->label,
                                           .place = &run.peers[i]->place,
                                           .open = open_pairs,
                                           .close = close_pairs,
                                           .step = pair,
                                           .server_dir = peer_dir(run.peers[i])};
    contest(contenders, run.count, clients, ROUNDS_OF_PAIRS, run.turn_s * ROUNDS_OF_PAIRS, "pairs",
            false, outcomes);
    report_columns(pair_columns, PAIR_COLUMNS);
    for (int i = 0; i < run.count; i++) {
        const struct outcome *o = &outcomes[i];
        const double values[] = {o->rate,   o->rate_low,  o->rate_high,          o->median_us,
                                 o->p99_us, o->server_us, i > 0 ? o->ratio : NAN};
        report_clients("pairs", run.peers[i]->label, clients, pair_columns, values, PAIR_COLUMNS);
        report_list("rounds", o->rates, o->rounds);
    }
}

void bench_pairs(void)
{
    for (int i = 0; i < run.client_counts; i++)
        compete(run.clients[i]);
    report_line("    server us: processor time of the server for each pair\n");
    report_line("    ratio: the first line's rate over this one's, median of the rounds\n");
}
