/* SPDX-License-Identifier: MIT
 * Closes handles and pools. */
#include "api/api.h"
#include "lock/keeper.h"
#include "pool/pool.h"
#include "lock/acquire.h"
#include "quorum/quorum.h"
#include "rows/rows.h"
#include "core/ask.h"
#include "core/statements.h"

#include <rowlock/pool.h>
#include <unistd.h>

/* One user less. The last one closes the connections. */
static void release_pool(rowlock_pool *pool)
{
    if (!rlk_pool_leave(pool))
        return;
    for (size_t i = 0; i < pool->count; i++)
        rlk_db_free(pool->connections[i].db);
    rlk_db_free(pool->listener.db);
    rlk_pool_free(pool);
}

void rlk_db_free(rowlock_db *db)
{
    if (!db)
        return;
    bool in_child = db->pid != getpid();
    if (db->conn)
        rlk_disconnect(db, in_child);
    if (db->pool)
        release_pool(db->pool);
    if (db->quorum && !in_child)
        rlk_quorum_close(db->quorum);
    rlk_waiting_close(&db->waiting);
    rlk_texts_clear(&db->texts);
    rlk_witness_free(db);
    rlk_free(db->conn);
    rlk_free(db->source);
    rlk_free(db->url);
    pthread_mutex_destroy(&db->starting);
    db->tag = 0;
    rlk_free(db);
}

void rlk_db_free_all(rowlock_db **dbs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        rlk_db_free(dbs[i]);
}

void rowlock_db_close(rowlock_db *db)
{
    if (!db || db->tag != RLK_DB_TAG)
        return;
    rlk_started_stop(db);
    /* After one release could not reach the server, the others do not wait for it. */
    bool reachable = true;
    while (db->locks) {
        if (!reachable) {
            rowlock_forget(db->locks);
            rlk_ticket_end(db, &db->locks->ticket);
        }
        rlk_lock_abandon(db->locks);
        reachable = rlk_is_up(db);
    }
    rlk_onces_abandon(db);
    if (db->pid == getpid())
        rlk_keeper_unshare(db);
    rlk_db_free(db);
}

void rowlock_pool_close(rowlock_pool *pool)
{
    if (!pool || pool->tag != RLK_POOL_TAG || pool->pid != getpid())
        return;
    rlk_lock(&pool->mutex);
    bool again = pool->closed;
    pool->closed = true;
    rlk_unlock(&pool->mutex);
    if (!again)
        release_pool(pool);
}
