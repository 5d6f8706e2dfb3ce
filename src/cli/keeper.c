/* SPDX-License-Identifier: MIT
 *
 * Renews a lease in a thread of its own, so that a database that hangs delays nobody's decisions.
 * Nothing here ends or signals the job.
 */
#include "keeper.h"

#include "signals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Somewhat less than a third of the lease, and not the same on each host that began at midnight. */
static int64_t next_pause(const struct keeper *keeper, unsigned *seed)
{
    int64_t third = keeper->ttl_ms / 3;
    return third - third * (rand_r(seed) % 100) / 1000;
}

/* After a failure: soon, since the lease is running, but not in a rush. */
static int64_t retry_pause(const struct keeper *keeper)
{
    int64_t pause = keeper->ttl_ms / 20;
    return pause < 20 ? 20 : pause > 1000 ? 1000 : pause;
}

/* Sleeps unless stopped; true if stopped. Called with the mutex held. */
static bool pause_for(struct keeper *keeper, int64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    while (!keeper->stop) {
        if (pthread_cond_timedwait(&keeper->bell, &keeper->mutex, &until) == ETIMEDOUT)
            break;
    }
    return keeper->stop;
}

/* The clock is read before the remaining time is, so that the sum errs to the early side. */
static void note_renewal(struct keeper *keeper, int result)
{
    struct cli *cli = keeper->cli;
    int64_t now = now_ms();
    int64_t deadline_ms = now + rowlock_remaining_ms(cli->lock);
    bool good = result == ROWLOCK_OK || result == ROWLOCK_LAPSED;

    pthread_mutex_lock(&keeper->mutex);
    bool first_failure = !good && !keeper->failing;
    bool recovered = good && keeper->failing;
    keeper->failing = !good;
    if (good)
        keeper->deadline_ms = deadline_ms;
    if (result == ROWLOCK_LOST)
        keeper->lost = true;
    pthread_mutex_unlock(&keeper->mutex);

    if (result == ROWLOCK_LAPSED)
        complain("renew lock '%s': the lease had run out; for a while the job was not protected, "
                 "but nobody else got the lock",
                 rowlock_lock_name(cli->lock));
    else if (result != ROWLOCK_LOST && first_failure)
        report_failure(cli, result);
    else if (recovered)
        complain("renew lock '%s': done after all", rowlock_lock_name(cli->lock));
    if (!good)
        pthread_kill(keeper->boss, SIGCHLD);
}

static void *keep(void *context)
{
    struct keeper *keeper = context;
    unsigned seed = (unsigned)getpid() ^ (unsigned)now_ms();
    pthread_mutex_lock(&keeper->mutex);
    while (!keeper->lost &&
           !pause_for(keeper, keeper->failing ? retry_pause(keeper) : next_pause(keeper, &seed))) {
        pthread_mutex_unlock(&keeper->mutex);
        note_renewal(keeper, rowlock_renew(keeper->cli->lock, keeper->ttl_ms));
        pthread_mutex_lock(&keeper->mutex);
    }
    keeper->ended = true;
    pthread_cond_broadcast(&keeper->bell);
    pthread_mutex_unlock(&keeper->mutex);
    return NULL;
}

bool keeper_start(struct keeper *keeper, struct cli *cli, int64_t deadline_ms)
{
    pthread_condattr_t attributes;
    memset(keeper, 0, sizeof *keeper);
    keeper->cli = cli;
    keeper->ttl_ms = cli->set.ttl_ms;
    keeper->boss = pthread_self();
    keeper->deadline_ms = deadline_ms;
    pthread_mutex_init(&keeper->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&keeper->bell, &attributes);
    pthread_condattr_destroy(&attributes);
    errno = pthread_create(&keeper->thread, NULL, keep, keeper);
    return errno == 0;
}

struct keeper_news keeper_news(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->mutex);
    struct keeper_news news = {keeper->deadline_ms, keeper->lost, keeper->failing};
    pthread_mutex_unlock(&keeper->mutex);
    return news;
}

bool keeper_stop(struct keeper *keeper, int64_t until_ms)
{
    pthread_mutex_lock(&keeper->mutex);
    keeper->stop = true;
    pthread_cond_broadcast(&keeper->bell);
    while (!keeper->ended && now_ms() < until_ms) {
        /* In short steps, for the machine may be suspended and this clock then stands still. */
        struct timespec step;
        clock_gettime(CLOCK_MONOTONIC, &step);
        step.tv_nsec += 50000000L;
        if (step.tv_nsec >= 1000000000) {
            step.tv_sec++;
            step.tv_nsec -= 1000000000;
        }
        pthread_cond_timedwait(&keeper->bell, &keeper->mutex, &step);
    }
    bool ended = keeper->ended;
    pthread_mutex_unlock(&keeper->mutex);
    if (ended)
        pthread_join(keeper->thread, NULL);
    return ended;
}
