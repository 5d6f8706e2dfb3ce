/* SPDX-License-Identifier: MIT
 * Opens and adopts connections. */
#include "base/error.h"
#include "base/options.h"
#include "base/url.h"
#include "api/api.h"
#include "pool/pool.h"
#include "core/ask.h"
#include "core/port.h"

#include <rowlock/tx.h>

static const struct rlk_doors doors = {.open = rowlock_db_open, .close = rowlock_db_close};

static int take_source(rowlock_db *db, const char *url, const rowlock_db_options *options)
{
    struct rlk_urls urls = {.count = 1};
    db->doors = &doors;
    if (!url)
        return rlk_db_use_url(db, url);
    int result = ROWLOCK_OK;
    if (!(db->source = rlk_strdup(url)) || !rlk_urls_cut(url, &urls))
        result = rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    else if (urls.count == 1)
        result = rlk_db_use_url(db, urls.url[0]);
    else
        result = rlk_db_use_quorum(db, &urls, options);
    rlk_urls_free(&urls);
    return result;
}

/* The texts are the pool's, so the names of the tables are too. */
static int use_pool(rowlock_db *db, const char *url, const rowlock_db_options *options)
{
    rowlock_pool *pool = options->pool;
    if (url || options->schema || options->prefix)
        return rlk_fail(db, ROWLOCK_EINVAL,
                        "with a pool the URL, schema and prefix must be NULL: they are the pool's");
    if (!rlk_pool_join(pool))
        return rlk_fail(db, ROWLOCK_EMISUSE, "the pool is closed, or belongs to another process");
    db->pool = pool;
    db->port = &rlk_pool_port;
    db->texts = pool->texts;
    db->doors = &doors;
    return rlk_db_use(db, pool->real);
}

int rowlock_db_open(const char *url, const rowlock_db_options *options, rowlock_db **out,
                    rowlock_error *err)
{
    if (!out)
        return rlk_error_no_out(err, "open");
    *out = NULL;
    rowlock_db *db = NULL;
    rowlock_db_options taken;
    int result = rlk_db_new(&db, options, &taken, err);
    if (result == ROWLOCK_OK)
        result = taken.pool ? use_pool(db, url, &taken) : take_source(db, url, options);
    if (result == ROWLOCK_OK)
        result = rlk_db_connect(db);
    return rlk_db_finish(out, db, result, err);
}

static int adopt(rowlock_db **out, const char *scheme, void *vendor,
                 const rowlock_db_options *options, rowlock_error *err)
{
    if (!out)
        return rlk_error_no_out(err, "open");
    *out = NULL;
    rowlock_db *db = NULL;
    rowlock_db_options taken;
    int result = rlk_db_new(&db, options, &taken, err);
    if (result == ROWLOCK_OK && taken.pool)
        result = rlk_fail(db, ROWLOCK_EINVAL, "a pool adopts no connection");
    if (result == ROWLOCK_OK && !vendor)
        result = rlk_fail(db, ROWLOCK_EINVAL, "the connection to adopt is NULL");
    if (result == ROWLOCK_OK)
        result = rlk_db_use_scheme(db, scheme);
    if (result == ROWLOCK_OK) {
        struct rlk_call call = {.deadline_us = rlk_now_us() + db->statement_us,
                                .where = RLK_EITHER};
        enum rlk_class class = rlk_adopt(db, &call, vendor);
        if (class != RLK_DONE)
            result = rlk_fail_class(db, class, &call);
    }
    return rlk_db_finish(out, db, result, err);
}

int rowlock_db_adopt_postgres(struct pg_conn *conn, const rowlock_db_options *options,
                              rowlock_db **out, rowlock_error *err)
{
    return adopt(out, "postgresql", conn, options, err);
}

int rowlock_db_adopt_mysql(struct st_mysql *conn, const rowlock_db_options *options,
                           rowlock_db **out, rowlock_error *err)
{
    return adopt(out, "mysql", conn, options, err);
}

int rowlock_db_adopt_sqlite(struct sqlite3 *conn, const rowlock_db_options *options,
                            rowlock_db **out, rowlock_error *err)
{
    return adopt(out, "sqlite", conn, options, err);
}
