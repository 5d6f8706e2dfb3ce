/* SPDX-License-Identifier: MIT
 *
 * The peers on databases: rowlock by its public header, as in tests/bench/ours.c, and what
 * tests/bench/sql has as data. */
#include "hand.h"
#include "peers.h"

/* ---- rowlock */

#define OURS(how_to_open)                  \
    {                                      \
        .way = {.open = how_to_open,       \
                .close = ours_close,       \
                .acquire = ours_wait,      \
                .release = ours_release,   \
                .keep = ours_keep,         \
                .stop = ours_stop},        \
        .try = ours_try, .pair = ours_pair \
    }

const struct locking rowlock_locking = OURS(ours_open);
/* All sessions share one pool with two connections. */
const struct locking pool_locking = OURS(ours_open_pooled);

/* ---- the servers' own locks */

static void *open_hand(const struct place *place, const char *name)
{
    return hand_open(place, name);
}

static bool lock_own(void *session)
{
    hand_do(session, "lock");
    return true;
}

static bool try_own(void *session)
{
    return hand_do(session, "try lock") == 1;
}

static void unlock_own(void *session)
{
    hand_do(session, "unlock");
}

static void pair_own(void *session)
{
    hand_do(session, "own pair");
}

const struct locking own_locking = {
    .way = {.open = open_hand, .close = hand_close, .acquire = lock_own, .release = unlock_own},
    .try = try_own,
    .pair = pair_own};

/* ---- INSERT and DELETE */

static void pair_bare(void *session)
{
    hand_do(session, "bare pair");
}

const struct locking bare_locking = {.way = {.open = open_hand, .close = hand_close},
                                     .pair = pair_bare};

/* ---- the servers */

static struct site sites[3];

static bool find_server(struct peer *peer)
{
    char path[600];
    const char *dir = getenv("ROWLOCK_PEERS_DIR");
    snprintf(peer->dir, sizeof peer->dir, "%s/%s", dir ? dir : "", peer->server);
    snprintf(path, sizeof path, "%s/port", peer->dir);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    if (fscanf(file, "%599s", peer->place.url) != 1)
        die("%s: no port", path);
    fclose(file);
    return true;
}

bool peer_find(struct peer *peer)
{
    for (int i = 0; hands[i]; i++) {
        if (!strstr(peer->id, hands[i]->raw->name))
            continue;
        if (!sites[i].hand)
            site_open(&sites[i], hands[i]);
        bool ours = peer->locking == &rowlock_locking || peer->locking == &pool_locking;
        peer->place = ours ? sites[i].ours : sites[i].theirs;
        return peer->place.hand != NULL;
    }
    return peer->server && find_server(peer);
}

const char *peer_dir(const struct peer *peer)
{
    const char *env = peer->place.hand ? peer->place.hand->server_dir_env : NULL;
    return peer->place.hand ? (env ? getenv(env) : NULL) : peer->dir;
}

static int64_t statements(void *session)
{
    const struct peer *peer = session;
    return wire_sum(&peer->place, &peer->locking->statements);
}

static int64_t connections(void *session)
{
    const struct peer *peer = session;
    return wire_sum(&peer->place, &peer->locking->connections);
}

struct observer peer_observe(struct peer *peer)
{
    if (peer->place.hand)
        return hand_observer(&peer->place, hand_open(&peer->place, NULL));
    return (struct observer){.session = peer,
                             .statements = statements,
                             .connections = peer->locking->connections.request ? connections : NULL,
                             .dir = peer->dir};
}

void peer_unobserve(const struct peer *peer, struct observer *observer)
{
    if (peer->place.hand)
        hand_close(observer->session);
}

void drop_places(void)
{
    for (int i = 0; hands[i]; i++)
        if (sites[i].ours.hand)
            hand_drop_places(sites[i].hand, sites[i].url);
}
