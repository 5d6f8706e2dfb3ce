/* SPDX-License-Identifier: MIT
 * The handles of a pool that wait for a lock. A step of the same pool that may let the first of
 * them in wakes it. What other programs do is seen by looking (lock/queueing.c). */
#include "pool/pool.h"

#include <string.h>

/* FNV-1a */
static size_t bucket_of(const char *name)
{
    uint64_t hash = 14695981039346656037u;
    for (const char *at = name; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    return (hash ^ hash >> 32) % RLK_POOL_BUCKETS;
}

static struct rlk_pool_waiter *first_of(rowlock_pool *pool, const char *name)
{
    struct rlk_pool_waiter *w = pool->waiter[bucket_of(name)].first;
    while (w && strcmp(w->name, name) != 0)
        w = w->next;
    return w;
}

static void unlink_waiter(rowlock_pool *pool, struct rlk_pool_waiter *w)
{
    size_t bucket = bucket_of(w->name);
    *(w->previous ? &w->previous->next : &pool->waiter[bucket].first) = w->next;
    *(w->next ? &w->next->previous : &pool->waiter[bucket].last) = w->previous;
}

static bool is_before(const struct rlk_pool_waiter *a, const struct rlk_pool_waiter *b)
{
    return a->ticket != b->ticket ? a->ticket < b->ticket : a->request < b->request;
}

/* Most tickets are the newest. */
static void link_waiter(rowlock_pool *pool, struct rlk_pool_waiter *w)
{
    size_t bucket = bucket_of(w->name);
    w->previous = pool->waiter[bucket].last;
    while (w->previous && is_before(w, w->previous))
        w->previous = w->previous->previous;
    w->next = w->previous ? w->previous->next : pool->waiter[bucket].first;
    *(w->previous ? &w->previous->next : &pool->waiter[bucket].first) = w;
    *(w->next ? &w->next->previous : &pool->waiter[bucket].last) = w;
}

/* Only the first looks, and those that may overtake. If all did, they would keep the connections
 * busy. */
static void promote(rowlock_pool *pool, struct rlk_pool_waiter *w)
{
    if (!w || !w->waiting->behind)
        return;
    w->waiting->behind = false;
    pool->lookers++;
    w->promoted = true;
    rlk_turn_post(&w->waiting->turn);
}

void rlk_waiter_end(rowlock_pool *pool, struct rlk_pool_waiter *w)
{
    if (!w->request)
        return;
    unlink_waiter(pool, w);
    w->request = 0;
    pool->waiters--;
    pool->lookers -= !w->waiting->behind;
    promote(pool, first_of(pool, w->name));
}

void rlk_waiter_begin(rowlock_pool *pool, struct rlk_pool_waiter *w,
                      const struct rlk_request *request, bool hears)
{
    w->hears = hears;
    if (w->request == request->number && w->ticket == request->ticket &&
        strcmp(w->name, request->name) == 0)
        return;
    rlk_waiter_end(pool, w);
    rlk_copy_text(w->name, sizeof w->name, request->name, strlen(request->name));
    w->request = request->number;
    w->ticket = request->ticket;
    w->woken = w->promoted = false;
    link_waiter(pool, w);
    w->waiting->behind = !request->unfair && first_of(pool, w->name) != w;
    pool->waiters++;
    pool->lookers += !w->waiting->behind;
    w->waiting->lookers = pool->lookers;
}

static void wake(struct rlk_pool_waiter *w)
{
    w->woken = true;
    rlk_turn_post(&w->waiting->turn);
}

void rlk_waiter_wake_request(rowlock_pool *pool, int64_t request)
{
    for (size_t i = 0; i < RLK_POOL_BUCKETS && pool->waiters > 0; i++)
        for (struct rlk_pool_waiter *w = pool->waiter[i].first; w; w = w->next)
            if (w->request == request) {
                wake(w);
                return;
            }
}

void rlk_waiter_wake_all(rowlock_pool *pool)
{
    rlk_lock(&pool->mutex);
    for (size_t i = 0; i < RLK_POOL_BUCKETS && pool->waiters > 0; i++)
        for (struct rlk_pool_waiter *w = pool->waiter[i].first; w; w = w->next)
            wake(w);
    rlk_unlock(&pool->mutex);
}

void rlk_waiter_wake(rowlock_pool *pool, const char *name)
{
    struct rlk_pool_waiter *first = pool->waiters > 0 ? first_of(pool, name) : NULL;
    if (first && !(first->hears && pool->address[0]))
        wake(first);
}

enum rlk_wakeup rlk_waiter_wait(rowlock_pool *pool, struct rlk_pool_waiter *w, int64_t until_us)
{
    bool posted = true;
    for (;;) {
        rlk_lock(&pool->mutex);
        bool woken = w->woken, promoted = w->promoted;
        w->woken = w->promoted = false;
        w->waiting->lookers = pool->lookers;
        rlk_unlock(&pool->mutex);
        if (atomic_load(&w->waiting->cancelled))
            return RLK_INTERRUPTED;
        if (woken)
            return RLK_WAKEUP;
        if (!posted || promoted)
            return RLK_SILENT;
        posted = rlk_wait_turn(&w->waiting->turn, until_us);
    }
}
