/* SPDX-License-Identifier: MIT
 *
 * What is left of a lock when its server is killed with -9 and started again. This is no power cut: what
 * the server has written and not flushed is still there. */
#include "peers.h"

#include <math.h>

static const struct column columns[] = {
    {"lock stands", "stands", 0},
    {"away for s", "away_s", 2},
};
enum { STANDS, AWAY, COLUMNS };

static void control(const struct peer *peer, const char *action)
{
    char command[200];
    snprintf(command, sizeof command, "tests/peers/server-ctl.sh %s %s", peer->server, action);
    if (system(command) != 0)
        die("%s: cannot %s the server", peer->label, action);
}

/* One client holds the lock. Then another asks for it. */
static void crash(const struct peer *peer, double *out)
{
    const struct waiter *way = &peer->locking->way;
    void *holder = way->open(&peer->place, "crash");
    if (!way->acquire(holder))
        die("%s: the lock is not free", peer->label);
    double began = clock_s();
    control(peer, "crash");
    control(peer, "start");
    out[AWAY] = clock_s() - began;
    void *rival = way->open(&peer->place, "crash");
    out[STANDS] = peer->locking->try(rival) ? 0 : 1;
    way->close(rival);
    way->close(holder);
}

void bench_crashes(void)
{
    report_section(
        "a lock is held, the server is killed with -9 and started, another client tries");
    report_columns(columns, COLUMNS);
    for (int i = 0; i < run.count; i++) {
        const struct peer *peer = run.peers[i];
        double values[COLUMNS] = {NAN, NAN};
        if (!peer->locking->way.acquire)
            continue;
        if (peer->server)
            crash(peer, values);
        report_row("crash", peer->label, 0, columns, values, COLUMNS);
    }
    report_line(
        "    lock stands: 1: the other client is refused; 0: both hold it. -: no server.\n");
}
