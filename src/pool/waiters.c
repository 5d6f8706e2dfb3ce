/* SPDX-License-Identifier: MIT
 * The handles of a pool that wait for a lock. A step of the same pool that may let the first of
 * them in wakes it. What other programs do is seen by looking (queue/queue.c). */
#include "pool/pool.h"

#include <string.h>

/* FNV-1a */
static struct rlk_pool_waiter **bucket_of(rowlock_pool *pool, const char *name)
{
    uint64_t hash = 14695981039346656037u;
    for (const char *at = name; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    return &pool->waiter[(hash ^ hash >> 32) % RLK_POOL_BUCKETS];
}

void rlk_waiter_end(rowlock_pool *pool, struct rlk_pool_waiter *w)
{
    struct rlk_pool_waiter **at = w->request ? bucket_of(pool, w->name) : NULL;
    if (!at)
        return;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    w->request = 0;
    pool->waiters--;
}

void rlk_waiter_begin(rowlock_pool *pool, struct rlk_pool_waiter *w,
                      const struct rlk_request *request)
{
    bool same = w->request == request->number && strcmp(w->name, request->name) == 0;
    w->ticket = request->ticket;
    if (same)
        return;
    rlk_waiter_end(pool, w);
    rlk_copy_text(w->name, sizeof w->name, request->name, strlen(request->name));
    w->request = request->number;
    w->woken = false;
    struct rlk_pool_waiter **bucket = bucket_of(pool, w->name);
    w->next = *bucket;
    *bucket = w;
    w->waiting->crowd = ++pool->waiters;
}

static void wake(struct rlk_pool_waiter *w)
{
    w->woken = true;
    rlk_turn_post(&w->waiting->turn);
}

/* request 0: all. */
static void wake_some(rowlock_pool *pool, int64_t request)
{
    for (size_t i = 0; i < RLK_POOL_BUCKETS && pool->waiters > 0; i++)
        for (struct rlk_pool_waiter *w = pool->waiter[i]; w; w = w->next)
            if (!request || w->request == request)
                wake(w);
}

void rlk_waiter_wake_request(rowlock_pool *pool, int64_t request)
{
    if (request)
        wake_some(pool, request);
}

void rlk_waiter_wake_all(rowlock_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    wake_some(pool, 0);
    pthread_mutex_unlock(&pool->mutex);
}

void rlk_waiter_wake(rowlock_pool *pool, const char *name)
{
    struct rlk_pool_waiter *first = NULL;
    /* The ear hears of it. */
    if (pool->waiters == 0 || pool->address[0])
        return;
    for (struct rlk_pool_waiter *w = *bucket_of(pool, name); w; w = w->next)
        if (strcmp(w->name, name) == 0 && (!first || w->ticket < first->ticket))
            first = w;
    if (first)
        wake(first);
}

enum rlk_wakeup rlk_waiter_wait(rowlock_pool *pool, struct rlk_pool_waiter *w, int64_t until_us)
{
    bool posted = true;
    for (;;) {
        pthread_mutex_lock(&pool->mutex);
        bool woken = w->woken;
        w->woken = false;
        w->waiting->crowd = pool->waiters;
        pthread_mutex_unlock(&pool->mutex);
        if (atomic_load(&w->waiting->cancelled))
            return RLK_INTERRUPTED;
        if (woken)
            return RLK_WAKEUP;
        if (!posted)
            return RLK_SILENT;
        posted = rlk_wait_turn(&w->waiting->turn, until_us);
    }
}
