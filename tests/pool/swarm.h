/* SPDX-License-Identifier: MIT
 *
 * Many handles of a pool, each in a thread. A plug takes the connection of the pool, so that all
 * steps stand in line, and go together when it is pulled. Checks are not here. */
#pragma once

#include "contract.h"

enum { SWARM_MAX = 64, SWARM_TTL_MS = 600000, SWARM_PATIENCE_MS = 60000 };

struct member {
    int number;
    rowlock_db *db;
    /* "swarm 00", "swarm 01", … */
    rowlock_lock *lock;
    int (*act)(struct member *m);
    /* NULL: it does nothing */
    struct helper *thread;
    int result;
    atomic_bool ended;
};

struct swarm {
    rowlock_pool *pool;
    int count;
    int64_t reconnect_ms;
    struct member member[SWARM_MAX];
    struct rlk_pooled *plug;
};

bool has_server(const struct raw *raw);
/* A pool whose statements may take SWARM_PATIENCE_MS. A failure ends the program. */
rowlock_pool *must_pool(const char *url, int connections, const char *prefix);
/* statement_timeout_ms 0: the time limit of the pool. reconnect_ms as in the options. */
rowlock_db *must_join(rowlock_pool *pool, int64_t statement_timeout_ms, int64_t reconnect_ms);
/* until(EVENTUALLY(…), "what"): false ends the program. */
void until(bool so, const char *what);

/* Each handle has looked at the tables, and each name has been granted before. */
void swarm_open(struct swarm *s, const char *url, int connections, int count);
/* reconnect_ms as for must_join(). */
void swarm_open_with(struct swarm *s, const char *url, int connections, int count,
                     int64_t reconnect_ms);
/* swarm_close_members leaves the pool. */
void swarm_close_members(struct swarm *s);
void swarm_close(struct swarm *s);

/* For a pool of one connection. */
void swarm_plug(struct swarm *s);
void swarm_pull(struct swarm *s);
/* How many steps are in line. */
int pool_in_line(rowlock_pool *pool);
/* Returns when so many are. */
void swarm_stand(struct swarm *s, int count);

void member_close(struct member *m);
void member_start(struct member *m, int (*act)(struct member *m));
void swarm_start(struct swarm *s, int (*act)(struct member *m));
/* How many of the members that were started have this result. swarm_run: starts them first. */
int swarm_join(struct swarm *s, int want);
int swarm_run(struct swarm *s, int (*act)(struct member *m), int want);
/* The same with a plug, so that all steps go together. */
int swarm_act(struct swarm *s, int (*act)(struct member *m), int want);

int act_try(struct member *m);
int act_renew(struct member *m);
int act_release(struct member *m);
