/* SPDX-License-Identifier: MIT
 *
 * What is measured of each peer whose server is there.
 *
 * usage: main [JSON-FILE]      normally by `make bench-peers`
 *   PEERS          only peers with one of these words in their id (all)
 *   BENCH          only the parts with this word in their name: pairs handoff rest crash (all)
 *   PEERS_CLIENTS  numbers of clients (1 8 64 256)
 *   PEERS_SECONDS  how long a turn is (1)
 */
#include "peers.h"

struct run run = {.turn_s = 1, .clients = {1, 8, 64, 256}, .client_counts = 4};

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
            run.peers[run.count++] = peer;
            report_promise(peer);
        }
    }
    if (run.count == 0)
        die("PEERS names no peer");
}

static void read_settings(void)
{
    const char *seconds = getenv("PEERS_SECONDS"), *clients = getenv("PEERS_CLIENTS");
    if (seconds && *seconds)
        run.turn_s = strtod(seconds, NULL);
    if (!(run.turn_s > 0))
        die("SECONDS must be above 0");
    if (!clients || !*clients)
        return;
    run.client_counts = 0;
    for (char *end; *clients && run.client_counts < CLIENT_COUNTS_MAX; clients = end) {
        long count = strtol(clients, &end, 10);
        if (end == clients || count < 1)
            die("CLIENTS must be numbers");
        run.clients[run.client_counts++] = (int)count;
        end += strspn(end, " ,");
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} parts[] = {{"pairs", bench_pairs},
             {"handoff", bench_handoffs},
             {"rest", bench_rests},
             {"crash", bench_crashes}};

int main(int argc, char **argv)
{
    read_settings();
    allow_many_files();
    report_database("peers", "rowlock beside its peers");
    report_machine();
    choose();
    const char *word = getenv("BENCH");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!word || strstr(parts[i].name, word)) {
            parts[i].run();
            if (argc > 1)
                report_save(argv[1]);
        }
    drop_places();
    return 0;
}
