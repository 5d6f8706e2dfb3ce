/* SPDX-License-Identifier: MIT
 * A pool's beginning, its users, and its end. */
#include "pool/pool.h"
#include "core/statements.h"

#include <unistd.h>

static void begin(rowlock_pool *pool, rowlock_db *const *dbs)
{
    rowlock_db *first = dbs[0];
    pool->tag = RLK_POOL_TAG;
    pool->pid = getpid();
    pool->real = first->driver;
    pool->takes_writes = first->takes_writes;
    pool->users = 1;
    pool->most = first->driver->local ? 1 : pool->count;
    pool->texts = first->texts;
    pool->texts.shared = true;
    pthread_mutex_init(&pool->mutex, NULL);
    for (int kind = 0; kind < RLK_STEP_COUNT; kind++)
        pool->line[kind].end = &pool->line[kind].first;
    for (size_t i = 0; i < pool->count; i++) {
        struct rlk_pooled *conn = &pool->connections[i];
        conn->pool = pool;
        conn->db = dbs[i];
        conn->db->texts = pool->texts;
        rlk_turn_init(&conn->go);
    }
    pool->listener = (struct rlk_pooled){.pool = pool, .db = dbs[pool->count]};
    pool->listener.db->texts = pool->texts;
}

rowlock_pool *rlk_pool_new(rowlock_db *const *dbs, size_t count, size_t batch)
{
    rowlock_pool *pool = rlk_alloc(sizeof *pool);
    struct rlk_pooled *connections = rlk_alloc(count * sizeof *connections);
    if (!pool || !connections) {
        rlk_free(pool);
        rlk_free(connections);
        return NULL;
    }
    pool->connections = connections;
    pool->count = count;
    pool->batch = batch;
    begin(pool, dbs);
    if (rlk_line_start_threads(pool))
        return pool;
    rlk_line_stop_threads(pool);
    dbs[0]->texts.shared = false;
    pool->texts = (struct rlk_texts){0};
    rlk_pool_free(pool);
    return NULL;
}

bool rlk_pool_join(rowlock_pool *pool, bool again)
{
    if (pool->tag != RLK_POOL_TAG || pool->pid != getpid())
        return false;
    rlk_lock(&pool->mutex);
    bool open = again || !pool->closed;
    pool->users += open;
    rlk_unlock(&pool->mutex);
    return open;
}

/* In a forked child the mutex may be locked by a thread that is not there, and so may the
 * connections be in use. The child leaves the pool as it is. */
bool rlk_pool_leave(rowlock_pool *pool)
{
    if (pool->pid != getpid())
        return false;
    rlk_lock(&pool->mutex);
    bool last = --pool->users == 0;
    rlk_unlock(&pool->mutex);
    if (last) {
        rlk_listener_close(pool);
        rlk_line_stop_threads(pool);
    }
    return last;
}

void rlk_pool_free(rowlock_pool *pool)
{
    pool->texts.shared = false;
    rlk_texts_clear(&pool->texts);
    for (size_t i = 0; i < pool->count; i++)
        rlk_turn_end(&pool->connections[i].go);
    pthread_mutex_destroy(&pool->mutex);
    rlk_free(pool->connections);
    pool->tag = 0;
    rlk_free(pool);
}
