/* SPDX-License-Identifier: MIT
 *
 * A thread that renews the lease of one lock. While it runs, nobody else may use the lock or its
 * database handle. What to do when a renewal fails is decided elsewhere.
 */
#ifndef ROWLOCK_CLI_KEEPER_H
#define ROWLOCK_CLI_KEEPER_H

#include "cli.h"

#include <pthread.h>

struct keeper {
    struct cli *cli;
    int64_t ttl_ms;
    pthread_t thread;
    pthread_t boss; /* gets a SIGCHLD when there is news: it waits for that one anyway */
    pthread_mutex_t mutex;
    pthread_cond_t bell;
    /* Under the mutex: */
    int64_t deadline_ms; /* now_ms() when the lease ends, never too late */
    bool lost;
    bool failing; /* the last renewal failed */
    bool stop;
    bool ended;
};

struct keeper_news {
    int64_t deadline_ms;
    bool lost;
    bool failing;
};

/* Begins to renew cli->lock. False, with errno set, if there is no thread to be had. */
bool keeper_start(struct keeper *keeper, struct cli *cli, int64_t deadline_ms);

struct keeper_news keeper_news(struct keeper *keeper);

/* Ends it, waiting until then (now_ms()) at most for a renewal under way. False: it is still inside
 * the library, whose handles therefore must not be touched. */
bool keeper_stop(struct keeper *keeper, int64_t until_ms);

#endif
