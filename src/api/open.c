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

/* Another handle for the database of this one. */
static int open_again(rowlock_db *like, const rowlock_db_options *options, rowlock_db **out,
                      rowlock_error *err);
static const struct rlk_doors doors = {.open_again = open_again, .close = rowlock_db_close};

static int take_source(rowlock_db *db, const char *text, const rowlock_db_options *options)
{
    struct rlk_urls urls, absolute = {.count = 0};
    db->doors = &doors;
    if (!text)
        return rlk_db_use_url(db, text);
    if (!rlk_urls_cut(text, &urls) || !(db->source = rlk_urls_absolute(&urls)) ||
        !rlk_urls_cut(db->source, &absolute)) {
        rlk_urls_free(&urls);
        return rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    }
    absolute.count = urls.count;
    int result = urls.count == 1 ? rlk_db_use_url(db, db->source)
                                 : rlk_db_use_quorum(db, &absolute, options);
    rlk_urls_free(&urls);
    rlk_urls_free(&absolute);
    return result;
}

/* The texts are the pool's, so the names of the tables are too. */
static int use_pool(rowlock_db *db, const char *url, const rowlock_db_options *options, bool again)
{
    rowlock_pool *pool = options->pool;
    if (url || options->schema || options->prefix)
        return rlk_fail(db, ROWLOCK_EINVAL,
                        "with a pool the URL, schema and prefix must be NULL: they are the pool's");
    if (!rlk_pool_join(pool, again))
        return rlk_fail(db, ROWLOCK_EMISUSE, "the pool is closed, or belongs to another process");
    db->pool = pool;
    db->port = &rlk_pool_port;
    db->texts = pool->texts;
    db->doors = &doors;
    return rlk_db_use(db, pool->real);
}

static int open_db(const char *url, const rowlock_db_options *options, bool again, rowlock_db **out,
                   rowlock_error *err)
{
    rowlock_db *db = NULL;
    rowlock_db_options taken;
    int result = rlk_db_new(&db, options, &taken, err);
    if (result == ROWLOCK_OK)
        result = taken.pool ? use_pool(db, url, &taken, again) : take_source(db, url, options);
    if (result == ROWLOCK_OK)
        result = rlk_db_connect(db);
    return rlk_db_finish(out, db, result, err);
}

static int open_again(rowlock_db *like, const rowlock_db_options *options, rowlock_db **out,
                      rowlock_error *err)
{
    return open_db(like->source, options, true, out, err);
}

int rowlock_db_open(const char *url, const rowlock_db_options *options, rowlock_db **out,
                    rowlock_error *err)
{
    if (!out)
        return rlk_error_no_out(err, "open");
    *out = NULL;
    return open_db(url, options, false, out, err);
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
