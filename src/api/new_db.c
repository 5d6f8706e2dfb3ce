/* SPDX-License-Identifier: MIT
 * Makes handles: the options that each kind has, and a handle of one URL. */
#include "base/error.h"
#include "base/ident.h"
#include "base/options.h"
#include "base/url.h"
#include "api/api.h"
#include "core/ask.h"
#include "core/port.h"

#include <string.h>
#include <unistd.h>

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
    rlk_turn_open(&db->waiting);
    pthread_mutex_init(&db->starting, NULL);
    rlk_action(db, "open", NULL);

    int result = rlk_take_db_options(&db->error, options, theirs);
    if (result != ROWLOCK_OK)
        return result;
    if (rlk_random_seed(&db->seed) != 0 || (!options->pool && rlk_waiting_open(&db->waiting) != 0))
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

int rlk_db_use_scheme(rowlock_db *db, const char *scheme)
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

int rlk_db_use_url(rowlock_db *db, const char *url)
{
    char scheme[16];
    if (!url || !rlk_url_scheme(url, scheme, sizeof scheme))
        scheme[0] = '\0';
    int result = rlk_db_use_scheme(db, scheme);
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

int rlk_db_open_later(const char *url, const rowlock_db_options *options, rowlock_db **out,
                      rowlock_error *err)
{
    rowlock_db *db = NULL;
    rowlock_db_options taken;
    int result = rlk_db_new(&db, options, &taken, err);
    if (result == ROWLOCK_OK)
        result = rlk_db_use_url(db, url);
    return rlk_db_finish(out, db, result, err);
}
