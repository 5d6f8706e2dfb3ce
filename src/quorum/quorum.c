/* SPDX-License-Identifier: MIT
 * A quorum's beginning and its end. */
#include "quorum/quorum.h"
#include "base/thread.h"

/* How long a close waits for the threads. */
enum { CLOSE_US = 250000 };

static void begin(struct rlk_quorum *quorum, rowlock_db *const *dbs, size_t count)
{
    quorum->count = count;
    quorum->majority = rlk_majority(count);
    quorum->queue = dbs[count];
    quorum->users = 1;
    pthread_mutex_init(&quorum->mutex, NULL);
    for (size_t i = 0; i < count; i++) {
        struct rlk_member *m = &quorum->member[i];
        *m = (struct rlk_member){.quorum = quorum, .number = i, .db = dbs[i]};
        m->end = &m->first;
        sem_init(&m->go, 0, 0);
    }
}

static bool start_threads(struct rlk_quorum *quorum)
{
    bool started = true;
    pthread_mutex_lock(&quorum->mutex);
    for (size_t i = 0; i < quorum->count && started; i++) {
        pthread_t thread;
        started = rlk_thread_start(&thread, rlk_member_work, &quorum->member[i]);
        if (started)
            pthread_detach(thread);
        quorum->users += started;
    }
    pthread_mutex_unlock(&quorum->mutex);
    return started;
}

struct rlk_quorum *rlk_quorum_new(rowlock_db *const *dbs, size_t count,
                                  void (*free_db)(rowlock_db *db))
{
    struct rlk_quorum *quorum = rlk_alloc(sizeof *quorum);
    if (!quorum)
        return NULL;
    begin(quorum, dbs, count);
    if (start_threads(quorum)) {
        quorum->free_db = free_db;
        return quorum;
    }
    rlk_quorum_close(quorum);
    return NULL;
}

static bool is_moving(struct rlk_quorum *quorum)
{
    bool moving = false;
    pthread_mutex_lock(&quorum->mutex);
    quorum->leaving = true;
    for (size_t i = 0; i < quorum->count; i++)
        moving = moving || quorum->member[i].moving;
    pthread_mutex_unlock(&quorum->mutex);
    return moving;
}

/* A mark that has moved on in its member is written down by the others before they stop. */
void rlk_quorum_close(struct rlk_quorum *quorum)
{
    int64_t until_us = rlk_now_us() + CLOSE_US;
    while (is_moving(quorum) && rlk_now_us() < until_us)
        rlk_wait_plain(1000);
    pthread_mutex_lock(&quorum->mutex);
    quorum->closing = true;
    for (size_t i = 0; i < quorum->count; i++)
        sem_post(&quorum->member[i].go);
    unsigned running = quorum->users;
    pthread_mutex_unlock(&quorum->mutex);
    while (running > 1 && rlk_now_us() < until_us) {
        rlk_wait_plain(1000);
        pthread_mutex_lock(&quorum->mutex);
        running = quorum->users;
        pthread_mutex_unlock(&quorum->mutex);
    }
    rlk_quorum_leave(quorum);
}
