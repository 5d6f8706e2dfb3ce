/* SPDX-License-Identifier: MIT
 * Opens and adopts connections. Opens a keeper, which has its own connection. */
#include "base/error.h"
#include "base/ident.h"
#include "base/options.h"
#include "base/url.h"
#include "api/api.h"
#include "lock/keeper.h"
#include "pool/pool.h"
#include "core/ask.h"
#include "core/port.h"

#include <rowlock/tx.h>
#include <string.h>
#include <unistd.h>

/* ---- handles */

int rlk_db_new(rowlock_db **out, const rowlock_db_options *theirs, rowlock_db_options *options,
               rowlock_error *err)
{
    static const rowlock_error no_memory = {.size = sizeof(rowlock_error),
                                            .code = ROWLOCK_ENOMEM,
                                            .retryable = 1,
                                            .action = "open",
                                            .text = "out of memory",
                                            .row = -1};
    rowlock_db *db = rlk_alloc(sizeof *db);
    if (!db) {
        rlk_error_copy(err, &no_memory);
        return ROWLOCK_ENOMEM;
    }
    *out = db;
    db->tag = RLK_DB_TAG;
    db->pid = getpid();
    db->waiting.wake[0] = db->waiting.wake[1] = -1;
    pthread_mutex_init(&db->starting, NULL);
    rlk_action(db, "open", NULL);

    int result = rlk_take_db_options(&db->error, options, theirs);
    if (result != ROWLOCK_OK)
        return result;
    if (options->pool)
        rlk_turn_open(&db->waiting);
    if (rlk_random_seed(&db->seed) != 0 || (!options->pool && rlk_wake_open(&db->waiting) != 0))
        return rlk_fail(db, ROWLOCK_ENOMEM, "no random numbers, or no file descriptors left");
    db->waiting.jitter = db->seed;
    db->statement_us = options->statement_timeout_ms * 1000;
    db->reconnect_us = options->reconnect_ms < 0 ? 0 : options->reconnect_ms * 1000;
    db->target.timeout_ms = options->statement_timeout_ms;
    db->target.connect_ms = options->connect_timeout_ms;
    db->target.app_name = db->program;
    if (options->owner)
        memcpy(db->owner, options->owner, strlen(options->owner) + 1);
    rlk_describe_host(db->host);
    rlk_describe_program(db->program, options->program);
    const char *prefix = options->prefix ? options->prefix : "rowlock_";
    memcpy(db->texts.prefix, prefix, strlen(prefix) + 1);
    if (options->schema)
        memcpy(db->texts.schema, options->schema, strlen(options->schema) + 1);
    return ROWLOCK_OK;
}

int rlk_db_finish(rowlock_db **out, rowlock_db *db, int result, rowlock_error *err)
{
    if (result == ROWLOCK_OK) {
        *out = db;
        return ROWLOCK_OK;
    }
    if (db)
        rlk_error_copy(err, &db->error);
    rlk_db_free(db);
    return result;
}

int rlk_db_use(rowlock_db *db, const struct rlk_driver *driver)
{
    db->driver = driver;
    db->conn = rlk_alloc(db->port ? db->port->state_size : driver->conn_size);
    return db->conn ? ROWLOCK_OK : rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
}

int rlk_db_connect(rowlock_db *db)
{
    struct rlk_call call = {.deadline_us = rlk_now_us() + db->target.connect_ms * 1000};
    enum rlk_class class = rlk_connect(db, &call);
    return class == RLK_DONE ? ROWLOCK_OK : rlk_fail_class(db, class, &call);
}

static int use_driver(rowlock_db *db, const char *scheme)
{
    bool known;
    const struct rlk_driver *driver = rlk_driver_find(scheme, &known);
    if (!driver && known)
        return rlk_fail(db, ROWLOCK_EUNSUPPORTED, "this build of rowlock has no driver for %s",
                        scheme);
    if (!driver)
        return rlk_fail(db, ROWLOCK_EINVAL,
                        "the URL must begin with postgresql://, mysql://, mariadb:// or sqlite:");
    return rlk_db_use(db, driver);
}

static int take_url(rowlock_db *db, const char *url)
{
    char scheme[16];
    if (!url || !rlk_url_scheme(url, scheme, sizeof scheme))
        scheme[0] = '\0';
    int result = use_driver(db, scheme);
    if (result != ROWLOCK_OK)
        return result;
    struct rlk_url_own own = {0};
    const char *why = "";
    int taken = rlk_url_take(url, &db->url, &own, &why);
    if (taken == -2)
        return rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    if (taken != 0)
        return rlk_fail(db, ROWLOCK_EINVAL, "the URL: %s", why);

    db->target.session_is_ours = strcmp(own.pooler, "session") == 0;
    if (own.pooler[0] && !db->target.session_is_ours)
        return rlk_fail(db, ROWLOCK_EINVAL,
                        "the URL: rowlock_pooler= takes only the value session");
    rowlock_db_options names = ROWLOCK_DB_OPTIONS_INIT;
    names.schema = own.schema[0] ? own.schema : NULL;
    names.prefix = own.prefix[0] ? own.prefix : NULL;
    rowlock_db_options checked;
    if ((result = rlk_take_db_options(&db->error, &checked, &names)) != ROWLOCK_OK)
        return result;
    if (checked.schema)
        memcpy(db->texts.schema, checked.schema, strlen(checked.schema) + 1);
    if (checked.prefix)
        memcpy(db->texts.prefix, checked.prefix, strlen(checked.prefix) + 1);
    db->target.url = db->url;
    return ROWLOCK_OK;
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
    return rlk_db_use(db, pool->real);
}

static int open_db(const char *url, const rowlock_db_options *options, bool later, rowlock_db **out,
                   rowlock_error *err)
{
    if (!out)
        return rlk_error_no_out(err, "open");
    *out = NULL;
    rowlock_db *db = NULL;
    rowlock_db_options taken;
    int result = rlk_db_new(&db, options, &taken, err);
    if (result == ROWLOCK_OK)
        result = taken.pool ? use_pool(db, url, &taken) : take_url(db, url);
    if (result == ROWLOCK_OK && !later)
        result = rlk_db_connect(db);
    return rlk_db_finish(out, db, result, err);
}

int rowlock_db_open(const char *url, const rowlock_db_options *options, rowlock_db **out,
                    rowlock_error *err)
{
    return open_db(url, options, false, out, err);
}

int rlk_db_open_later(const char *url, const rowlock_db_options *options, rowlock_db **out,
                      rowlock_error *err)
{
    return open_db(url, options, true, out, err);
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
        result = use_driver(db, scheme);
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

int rlk_keeper_open_with(rowlock_db *db, rowlock_keeper **out, rowlock_error *err)
{
    rlk_action(db, "open keeper", NULL);
    int result = rlk_keeper_start(out, db);
    if (result == ROWLOCK_OK)
        return ROWLOCK_OK;
    rlk_error_copy(err, &db->error);
    rowlock_db_close(db);
    return result;
}

int rowlock_keeper_open(const char *url, const rowlock_db_options *options, rowlock_keeper **out,
                        rowlock_error *err)
{
    if (!out)
        return rlk_error_no_out(err, "open keeper");
    *out = NULL;
    rowlock_db *db = NULL;
    int result = rowlock_db_open(url, options, &db, err);
    return result == ROWLOCK_OK ? rlk_keeper_open_with(db, out, err) : result;
}
