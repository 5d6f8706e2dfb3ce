/* SPDX-License-Identifier: MIT
 *
 * rowlock beside what people would use instead. Each peer is one row of the table in table.c.
 *
 * A peer's place is its server on 127.0.0.1: place.url is the number of its port. The places of
 * databases are as in bench.h. */
#ifndef PEERS_H
#define PEERS_H

#include "bench.h"

/* What a peer promises, for people. */
struct promise {
    const char *lease;
    const char *token;
    const char *order;
    /* What is on the disk when a grant is answered. */
    const char *durable;
};

/* How to lock. A session is one client with one connection and one lock. */
struct locking {
    void *(*open)(const struct place *place, const char *name);
    void (*close)(void *session);
    /* Waits for the lock. Returns false if it was stopped. NULL: this peer cannot wait. */
    bool (*acquire)(void *session);
    bool (*try)(void *session);
    void (*release)(void *session);
    /* Acquire and release. NULL: by the two above. */
    void (*pair)(void *session);
    /* Acquire and hold for long. NULL: nothing special. */
    void (*keep)(void *session);
    /* Another thread ends the wait. NULL: the wait ends when the lock is released often enough. */
    void (*stop)(void *session);
};

struct peer {
    /* For PEERS=…, and for people. */
    const char *id, *label;
    /* The name of its server for server-ctl.sh. NULL: there is none. */
    const char *server;
    const char *how;
    struct promise promise;
    const struct locking *locking;
    struct observer (*observe)(const struct place *place);
    /* In seconds. Until the server has told of all statements; and how often a client at rest sends
     * one. 0: a few seconds. */
    double settle_s, beat_s;
    /* Filled in when the program begins. */
    struct place place;
};

extern struct peer peers[];
extern const int peer_count;

extern const struct locking redis_locking, etcd_locking, zookeeper_locking, memcached_locking;
extern const struct locking rowlock_locking, pool_locking, own_locking, bare_locking;

struct observer observe_database(const struct place *place);
struct observer observe_nothing(const struct place *place);
struct observer observe_redis(const struct place *place);
struct observer observe_etcd(const struct place *place);
struct observer observe_zookeeper(const struct place *place);
struct observer observe_memcached(const struct place *place);

/* What this run measures: the peers that were chosen, in the order of the table. */
enum { CLIENT_COUNTS_MAX = 8 };
extern struct run {
    struct peer *peers[CONTENDERS_MAX];
    int count;
    /* How long a turn is. */
    double turn_s;
    int clients[CLIENT_COUNTS_MAX], client_counts;
} run;

void bench_pairs(void);
void bench_handoffs(void);
void bench_rests(void);
void bench_crashes(void);

/* Finds the peer's server in the environment, and makes rowlock's tables. False: it is not there. */
bool peer_find(struct peer *peer);

/* Asks the peer's server while others work. */
struct observer peer_observe(const struct peer *peer);
void peer_unobserve(const struct peer *peer, struct observer *observer);

/* The places of databases are dropped at the end. */
void drop_places(void);

#endif
