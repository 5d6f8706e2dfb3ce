/* SPDX-License-Identifier: MIT
 * Opens a pool. Its connections are handles like any other. */
#include "base/error.h"
#include "base/options.h"
#include "api/api.h"
#include "pool/pool.h"
#include "core/ask.h"

#include <rowlock/pool.h>

/* The first connects now, so that a mistake in the URL is seen. It looks at the tables, since their
 * version decides which texts the pool has. If that fails, the first step of a handle tells why. */
static int open_all(const char *url, const rowlock_db_options *options, rowlock_db **dbs,
                    size_t count, rowlock_error *err)
{
    int result = rowlock_db_open(url, options, &dbs[0], err);
    if (result == ROWLOCK_OK && dbs[0]->port) {
        result = rlk_fail(dbs[0], ROWLOCK_EINVAL, "a pool has one URL, and is no quorum");
        rlk_error_copy(err, &dbs[0]->error);
    }
    for (size_t i = 1; i < count && result == ROWLOCK_OK; i++)
        result = rlk_db_open_later(dbs[0]->source, options, &dbs[i], err);
    if (result == ROWLOCK_OK)
        (void)rlk_look_at_tables(dbs[0], RLK_OUTSIDE, 0);
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
    /* The last is for the listener. */
    rowlock_db *dbs[RLK_POOL_MOST + 1] = {NULL};
    rowlock_pool_options o;
    if (!out)
        return rlk_error_no_out(err, "open pool");
    *out = NULL;
    int result = take_options(&o, options, err);
    if (result != ROWLOCK_OK)
        return result;
    size_t count = (size_t)o.connections;
    result = open_all(url, o.db, dbs, count + 1, err);
    if (result == ROWLOCK_OK && !(*out = rlk_pool_new(dbs, count, (size_t)o.batch))) {
        result = rlk_fail(dbs[0], ROWLOCK_ENOMEM, "out of memory, or no thread can be started");
        rlk_error_copy(err, &dbs[0]->error);
    }
    if (result != ROWLOCK_OK)
        rlk_db_free_all(dbs, count + 1);
    return result;
}
