/* SPDX-License-Identifier: MIT
 *
 * The peers on databases: rowlock by its public header, as in tests/bench/ours.c, and what
 * tests/bench/sql has as data. */
#include "hand.h"
#include "peers.h"
#include "wire.h"

/* ---- rowlock */

#define OURS(how_to_open)                                                                \
    {                                                                                    \
        .open = how_to_open, .close = ours_close, .acquire = ours_wait, .try = ours_try, \
        .release = ours_release, .pair = ours_pair, .keep = ours_keep, .stop = ours_stop \
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

const struct locking own_locking = {.open = open_hand,
                                    .close = hand_close,
                                    .acquire = lock_own,
                                    .try = try_own,
                                    .release = unlock_own,
                                    .pair = pair_own};

/* ---- INSERT and DELETE */

static void pair_bare(void *session)
{
    hand_do(session, "bare pair");
}

const struct locking bare_locking = {.open = open_hand, .close = hand_close, .pair = pair_bare};

/* ---- the servers */

struct observer observe_database(const struct place *place)
{
    return hand_observer(place, hand_open(place, NULL));
}

struct observer observe_nothing(const struct place *place)
{
    return (struct observer){.session = NULL};
}

static struct site sites[3];

static bool find_server(struct peer *peer)
{
    char path[600];
    const char *dir = getenv("ROWLOCK_PEERS_DIR");
    snprintf(path, sizeof path, "%s/%s/port", dir ? dir : "", peer->server);
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

struct observer peer_observe(const struct peer *peer)
{
    struct observer observer = peer->observe(&peer->place);
    if (!peer->place.hand)
        observer.dir = wire_dir(peer->server);
    return observer;
}

void peer_unobserve(const struct peer *peer, struct observer *observer)
{
    if (!peer->place.hand)
        free((char *)observer->dir);
    else if (observer->session)
        hand_close(observer->session);
}

void drop_places(void)
{
    for (int i = 0; hands[i]; i++)
        if (sites[i].ours.hand)
            hand_drop_places(sites[i].hand, sites[i].url);
}
