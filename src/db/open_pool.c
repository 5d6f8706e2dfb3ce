/* SPDX-License-Identifier: MIT
 * Opens and closes a pool. Its connections are handles like any other. */
#include "base/error.h"
#include "base/options.h"
#include "db/db.h"
#include "pool/pool.h"
#include "seam/resend.h"

#include <rowlock/pool.h>
#include <unistd.h>

/* The tables may not be there yet: rowlock_install() may follow. */
static int look_at_tables(rowlock_db *db)
{
    int result = rlk_look_at_tables(db, RLK_OUTSIDE);
    return result == ROWLOCK_ESCHEMA ? ROWLOCK_OK : result;
}

static void close_all(rowlock_db **dbs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        rlk_db_free(dbs[i]);
}

/* The first connects now, so that a mistake in the URL is seen. */
static int open_all(const char *url, const rowlock_db_options *options, rowlock_db **dbs,
                    size_t count, rowlock_error *err)
{
    int result = rowlock_db_open(url, options, &dbs[0], err);
    for (size_t i = 1; i < count && result == ROWLOCK_OK; i++)
        result = rlk_db_open_later(url, options, &dbs[i], err);
    if (result == ROWLOCK_OK && (result = look_at_tables(dbs[0])) != ROWLOCK_OK)
        rlk_error_copy(err, &dbs[0]->error);
    return result;
}

static int take_options(rowlock_pool_options *out, const rowlock_pool_options *theirs,
                        rowlock_error *err)
{
    rowlock_error why = ROWLOCK_ERROR_INIT;
    rlk_error_begin(&why, "open pool", NULL);
    int result = rlk_take_pool_options(&why, out, theirs);
    if (result != ROWLOCK_OK)
        rlk_error_copy(err, &why);
    return result;
}

int rowlock_pool_open(const char *url, const rowlock_pool_options *options, rowlock_pool **out,
                      rowlock_error *err)
{
    rowlock_db *dbs[RLK_POOL_MOST] = {NULL};
    rowlock_pool_options o;
    if (!out)
        return ROWLOCK_EINVAL;
    *out = NULL;
    int result = take_options(&o, options, err);
    if (result != ROWLOCK_OK)
        return result;
    size_t count = (size_t)o.connections;
    result = open_all(url, o.db, dbs, count, err);
    if (result == ROWLOCK_OK && !(*out = rlk_pool_new(dbs, count, (size_t)o.batch))) {
        result = rlk_fail(dbs[0], ROWLOCK_ENOMEM, "out of memory, or no thread can be started");
        rlk_error_copy(err, &dbs[0]->error);
    }
    if (result != ROWLOCK_OK)
        close_all(dbs, count);
    return result;
}

void rlk_pool_release(rowlock_pool *pool)
{
    if (!rlk_pool_leave(pool))
        return;
    for (size_t i = 0; i < pool->count; i++)
        rlk_db_free(pool->connections[i].db);
    rlk_pool_free(pool);
}

void rowlock_pool_close(rowlock_pool *pool)
{
    if (!pool || pool->tag != RLK_POOL_TAG || pool->pid != getpid())
        return;
    pthread_mutex_lock(&pool->mutex);
    bool again = pool->closed;
    pool->closed = true;
    pthread_mutex_unlock(&pool->mutex);
    if (!again)
        rlk_pool_release(pool);
}
