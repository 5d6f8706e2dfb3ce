/* SPDX-License-Identifier: MIT
 *
 * What is measured of each peer whose server is there.
 *
 * usage: main [JSON-FILE]      normally by `make bench-peers`
 *   PEERS          only peers with one of these words in their id (all)
 *   BENCH          only the parts with this word in their name: pairs handoff rest crash (all)
 *   PEERS_CLIENTS  numbers of clients (1 8 64)
 *   PEERS_SECONDS  how long a turn is (1)
 */
#include "peers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAIR_ROUNDS = 5, HANDOFF_ROUNDS = 3, CLIENT_COUNTS_MAX = 8, PEERS_MAX = CONTENDERS_MAX };

static double turn_s = 1;
static int client_counts[CLIENT_COUNTS_MAX] = {1, 8, 64}, client_columns = 3;

static struct peer *chosen[PEERS_MAX];
static int chosen_count;

/* ---- pairs */

struct pairs {
    const struct locking *locking;
    void *session;
};

static const struct peer *peer_at(const struct place *place)
{
    for (int i = 0; i < chosen_count; i++)
        if (&chosen[i]->place == place)
            return chosen[i];
    die("no peer is here");
}

static void *open_pairs(const struct contender *contender, const char *name)
{
    struct pairs *s = calloc(1, sizeof *s);
    if (!s)
        die("out of memory");
    s->locking = peer_at(contender->place)->locking;
    s->session = s->locking->open(contender->place, name);
    return s;
}

static void close_pairs(void *session)
{
    struct pairs *s = session;
    s->locking->close(s->session);
    free(s);
}

static void pair(void *session)
{
    struct pairs *s = session;
    if (s->locking->pair) {
        s->locking->pair(s->session);
    } else {
        s->locking->acquire(s->session);
        s->locking->release(s->session);
    }
}

static const struct column pair_columns[] = {
    {"pairs/s", "per_second", 0},  {"least", "least", 0},   {"most", "most", 0},
    {"median us", "median_us", 0}, {"99% us", "p99_us", 0}, {"ratio", "ratio", 2},
};
enum { PAIR_COLUMNS = sizeof pair_columns / sizeof *pair_columns };

static void compete(int clients)
{
    struct contender contenders[PEERS_MAX];
    static struct outcome outcomes[PEERS_MAX];
    char title[200];
    snprintf(title, sizeof title,
             "acquire + release, %d client%s, each on a lock of its own: %d turns of %.1f s each",
             clients, clients == 1 ? "" : "s", PAIR_ROUNDS, turn_s);
    report_section(title);
    for (int i = 0; i < chosen_count; i++)
        contenders[i] = (struct contender){.label = chosen[i]->label,
                                           .place = &chosen[i]->place,
                                           .open = open_pairs,
                                           .close = close_pairs,
                                           .step = pair};
    contest(contenders, chosen_count, clients, PAIR_ROUNDS, turn_s * PAIR_ROUNDS, "pairs", false,
            outcomes);
    report_columns(pair_columns, PAIR_COLUMNS);
    for (int i = 0; i < chosen_count; i++) {
        const struct outcome *o = &outcomes[i];
        const double values[] = {o->rate,      o->rate_low, o->rate_high,
                                 o->median_us, o->p99_us,   i > 0 ? o->ratio : NAN};
        report_clients("pairs", chosen[i]->label, clients, pair_columns, values, PAIR_COLUMNS);
        report_list("rounds", o->rates, o->rounds);
    }
}

static void bench_pairs(void)
{
    for (int i = 0; i < client_columns; i++)
        compete(client_counts[i]);
    report_line("    ratio: the first line's rate over this one's, median of the rounds\n");
}

/* ---- which peers */

static bool has_word(const char *id, const char *words)
{
    char copy[500];
    snprintf(copy, sizeof copy, "%s", words);
    for (char *rest = copy, *word; (word = strsep(&rest, " ,"));)
        if (*word && strstr(id, word))
            return true;
    return false;
}

static void report_promise(const struct peer *peer)
{
    const struct promise *p = &peer->promise;
    report_line("  %s: %s\n    lease: %s; token: %s; order of waiters: %s; on the disk: %s\n",
                peer->label, peer->how, p->lease, p->token, p->order, p->durable);
    report_text("lease", peer->label, p->lease);
    report_text("token", peer->label, p->token);
    report_text("order", peer->label, p->order);
    report_text("durable", peer->label, p->durable);
    report_text("how", peer->label, peer->how);
}

static void choose(void)
{
    const char *words = getenv("PEERS");
    for (int i = 0; i < peer_count; i++) {
        struct peer *peer = &peers[i];
        if (words && *words && !has_word(peer->id, words)) {
            report_line("  %s: left out, PEERS does not name %s\n", peer->label, peer->id);
            report_text("left out", peer->label, "not asked for");
        } else if (!peer_find(peer)) {
            die("%s: no server. Leave it out with PEERS=…", peer->label);
        } else {
            chosen[chosen_count++] = peer;
            report_promise(peer);
        }
    }
    if (chosen_count == 0)
        die("PEERS names no peer");
}

static void read_settings(void)
{
    const char *seconds = getenv("PEERS_SECONDS"), *clients = getenv("PEERS_CLIENTS");
    if (seconds && *seconds)
        turn_s = strtod(seconds, NULL);
    if (!(turn_s > 0))
        die("SECONDS must be above 0");
    if (!clients || !*clients)
        return;
    client_columns = 0;
    for (char *end; *clients && client_columns < CLIENT_COUNTS_MAX; clients = end) {
        long count = strtol(clients, &end, 10);
        if (end == clients || count < 1)
            die("CLIENTS must be numbers");
        client_counts[client_columns++] = (int)count;
        end += strspn(end, " ,");
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} parts[] = {{"pairs", bench_pairs}};

int main(int argc, char **argv)
{
    read_settings();
    allow_many_files();
    report_database("peers", "rowlock beside its peers");
    report_line("One fdatasync of 4 KB takes %.0f us here, on %ld processors that clients and"
                " servers share.\n",
                disk_us(), sysconf(_SC_NPROCESSORS_ONLN));
    choose();
    const char *word = getenv("BENCH");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!word || strstr(parts[i].name, word))
            parts[i].run();
    drop_places();
    if (argc > 1)
        report_save(argv[1]);
    return 0;
}
