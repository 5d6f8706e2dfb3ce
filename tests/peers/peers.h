/* SPDX-License-Identifier: MIT
 *
 * rowlock beside what people would use instead. Each peer is one row of the table in table.c.
 *
 * A peer's place is its server on 127.0.0.1: place.url is the number of its port. The places of
 * databases are as in bench.h. */
#pragma once

#include "bench.h"

/* What a peer promises, for people. */
struct promise {
    const char *lease;
    const char *token;
    const char *order;
    /* What is on the disk when a grant is answered. */
    const char *durable;
};

/* What a server tells of itself in lines of text, each "KEY NUMBER" with or without a colon: the sum
 * of those that begin with one of the keys, which end with NULL. */
struct question {
    const char *request;
    const char *keys[6];
};

/* How to lock. A session is one client with one connection and one lock. */
struct locking {
    /* Without label and place. acquire NULL: this peer cannot wait. */
    struct waiter way;
    bool (*try)(void *session);
    /* Acquire and release. NULL: by the way. */
    void (*pair)(void *session);
    /* So far. request NULL: unknown, or of a database. */
    struct question statements, connections;
};

struct peer {
    /* For PEERS=…, and for people. */
    const char *id, *label;
    /* The name of its server for server-ctl.sh. NULL: there is none. */
    const char *server;
    const char *how;
    struct promise promise;
    const struct locking *locking;
    /* In seconds. Until the server has told of all statements; and how often a client at rest sends
     * one. 0: a few seconds. */
    double settle_s, beat_s;
    /* Filled in when the program begins. */
    struct place place;
    char dir[500]; /* the folder of a server that is no database */
};

extern struct peer peers[];
extern const int peer_count;

extern const struct locking redis_locking, etcd_locking, zookeeper_locking, memcached_locking;
extern const struct locking rowlock_locking, pool_locking, own_locking, bare_locking;

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

/* The folder of its server. NULL: it has none. */
const char *peer_dir(const struct peer *peer);

/* Asks the peer's server while others work. */
struct observer peer_observe(struct peer *peer);
void peer_unobserve(const struct peer *peer, struct observer *observer);

/* Sends the question to the place's port, and reads until the server closes. */
int64_t wire_sum(const struct place *place, const struct question *question);

/* The places of databases are dropped at the end. */
void drop_places(void);
