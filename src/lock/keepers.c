/* SPDX-License-Identifier: MIT
 * Opens and closes keepers: those that a program opens, and those that handles share for
 * rowlock_acquire_options.keep. A keeper has a handle of its own, for the same database. */
#include "base/error.h"
#include "lock/keeper.h"
#include "core/ask.h"
#include "core/core.h"

#include <string.h>
#include <unistd.h>

/* A statement of a keeper, and connecting, last no longer. */
enum { MOST_MS = 5000 };

/* Opens a handle for the same database. */
static int open_own(rowlock_db *db, int64_t connect_ms, int64_t limit_ms, rowlock_db **out)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    options.program = db->program;
    options.connect_timeout_ms = connect_ms;
    options.statement_timeout_ms = limit_ms;
    options.reconnect_ms = db->reconnect_us ? db->reconnect_us / 1000 : -1;
    options.pool = db->pool;
    if (!db->pool) {
        options.schema = db->texts.schema[0] ? db->texts.schema : NULL;
        options.prefix = db->texts.prefix;
    }
    int result = db->doors->open_again(db, &options, out, &err);
    if (result != ROWLOCK_OK)
        rlk_error_copy(&db->error, &err);
    return result;
}

static int open_keeper(rowlock_db *db, int64_t limit_ms, rowlock_keeper **out)
{
    int64_t most_ms = rlk_least(db->target.timeout_ms, MOST_MS);
    int64_t connect_ms = rlk_least(db->target.connect_ms, MOST_MS);
    rowlock_db *own = NULL;
    if (!db->doors)
        return rlk_fail(db, ROWLOCK_EUNSUPPORTED,
                        "an adopted connection cannot be opened a second time: open a keeper for a "
                        "rowlock_db with its URL, and name that in options.keeper");
    int result = open_own(db, connect_ms, rlk_least(limit_ms, most_ms), &own);
    if (result != ROWLOCK_OK)
        return result;
    rlk_action(own, "open keeper", NULL);
    result = rlk_look_at_tables(own, RLK_OUTSIDE, 0);
    if (result == ROWLOCK_OK && db->texts.identity[0] &&
        strcmp(own->texts.identity, db->texts.identity) != 0)
        result =
            rlk_fail(own, ROWLOCK_ESCHEMA,
                     "the tables are another installation (%s) than this handle has seen (%s): "
                     "open a new handle",
                     own->texts.identity, db->texts.identity);
    if (result == ROWLOCK_OK)
        result = rlk_keeper_start(out, own, most_ms);
    if (result == ROWLOCK_OK)
        return ROWLOCK_OK;
    rlk_error_copy(&db->error, &own->error);
    db->doors->close(own);
    return result;
}

int rowlock_keeper_open(rowlock_db *db, rowlock_keeper **out)
{
    int result = rlk_enter_open(db, "open keeper", NULL, out);
    return result == ROWLOCK_OK ? open_keeper(db, MOST_MS, out) : result;
}

void rowlock_keeper_close(rowlock_keeper *k)
{
    rowlock_db *own = rlk_keeper_stop(k);
    if (own)
        own->doors->close(own);
}

/* ---- shared keepers */

struct rlk_shared_keeper {
    struct rlk_shared_keeper *next;
    /* NULL: a thread is opening it. */
    rowlock_keeper *keeper;
    /* Handles that have it, and calls that open it or wait for that. The last one frees it. */
    size_t users;
    /* It could not be opened, and is not in the list. */
    int failed;
    rowlock_error why;
    /* What its users have in common: an installation, in the tables of a pool or of the others. */
    char identity[sizeof((struct rlk_texts *)0)->identity];
    rowlock_pool *pool;
    char *source;
    char schema[sizeof((struct rlk_texts *)0)->schema];
    char prefix[sizeof((struct rlk_texts *)0)->prefix];
};

/* A call that waits for another looks so often. */
enum { LOOK_US = 5000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct rlk_shared_keeper *all;

/* Another thread of the parent may have locked it at the fork. */
static void forget_all(void)
{
    pthread_mutex_init(&mutex, NULL);
    all = NULL;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_all);
}

static bool is_for(const struct rlk_shared_keeper *shared, const rowlock_db *db)
{
    if (db->pool != shared->pool || strcmp(shared->identity, db->texts.identity) != 0)
        return false;
    return db->pool || (strcmp(shared->source, db->source) == 0 &&
                        strcmp(shared->schema, db->texts.schema) == 0 &&
                        strcmp(shared->prefix, db->texts.prefix) == 0);
}

static struct rlk_shared_keeper *find(const rowlock_db *db)
{
    struct rlk_shared_keeper *shared = all;
    while (shared && !is_for(shared, db))
        shared = shared->next;
    return shared;
}

static struct rlk_shared_keeper *add(const rowlock_db *db)
{
    struct rlk_shared_keeper *shared = rlk_alloc(sizeof *shared);
    char *source = db->source ? rlk_strdup(db->source) : NULL;
    if (!shared || (db->source && !source)) {
        rlk_free(shared);
        rlk_free(source);
        return NULL;
    }
    shared->pool = db->pool;
    shared->source = source;
    memcpy(shared->identity, db->texts.identity, sizeof shared->identity);
    memcpy(shared->schema, db->texts.schema, sizeof shared->schema);
    memcpy(shared->prefix, db->texts.prefix, sizeof shared->prefix);
    shared->next = all;
    all = shared;
    return shared;
}

static void unlink_shared(struct rlk_shared_keeper *shared)
{
    struct rlk_shared_keeper **at = &all;
    while (*at != shared)
        at = &(*at)->next;
    *at = shared->next;
}

/* Call it with the mutex locked. Returns the keeper if that is to be closed now. */
static rowlock_keeper *drop(struct rlk_shared_keeper *shared)
{
    rowlock_keeper *unused = shared->keeper;
    if (--shared->users > 0)
        return NULL;
    if (!shared->failed)
        unlink_shared(shared);
    rlk_free(shared->source);
    rlk_free(shared);
    return unused;
}

/* Call it with the mutex locked. It is unlocked while the keeper is opened. */
static void open_shared(struct rlk_shared_keeper *shared, rowlock_db *db, int64_t limit_ms)
{
    rowlock_keeper *keeper = NULL;
    rlk_unlock(&mutex);
    int result = open_keeper(db, limit_ms, &keeper);
    rlk_lock(&mutex);
    shared->keeper = keeper;
    if (result == ROWLOCK_OK)
        return;
    shared->failed = result;
    shared->why = db->error;
    unlink_shared(shared);
}

/* Call it with the mutex locked. What another call finds counts for this one too: each may take as
 * long as connecting does. */
static bool await_shared(const struct rlk_shared_keeper *shared, rowlock_db *db, bool may_cancel)
{
    bool cancelled = false;
    while (!cancelled && !shared->keeper && !shared->failed) {
        rlk_unlock(&mutex);
        if (may_cancel)
            cancelled = !rlk_wait_until(&db->waiting, rlk_now_us() + LOOK_US);
        else
            rlk_wait_plain(LOOK_US);
        rlk_lock(&mutex);
    }
    return !cancelled;
}

/* Call it with the mutex locked. */
static int share(rowlock_db *db, int64_t limit_ms, bool may_cancel, rowlock_keeper **unused)
{
    struct rlk_shared_keeper *shared = find(db);
    bool opens = !shared;
    if (!shared && !(shared = add(db)))
        return rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    shared->users++;
    if (opens)
        open_shared(shared, db, limit_ms);
    int result = await_shared(shared, db, may_cancel) ? shared->failed : ROWLOCK_CANCELLED;
    if (result == ROWLOCK_OK)
        db->shared = shared;
    else if (result != ROWLOCK_CANCELLED)
        rlk_error_copy(&db->error, &shared->why);
    *unused = result == ROWLOCK_OK ? NULL : drop(shared);
    return result;
}

int rlk_keeper_share(rowlock_db *db, int64_t limit_ms, bool may_cancel, rowlock_keeper **out)
{
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    rowlock_keeper *unused = NULL;
    int result = ROWLOCK_OK;
    if (!db->shared) {
        pthread_once(&watched, watch_forks);
        rlk_lock(&mutex);
        result = share(db, limit_ms, may_cancel, &unused);
        rlk_unlock(&mutex);
        rowlock_keeper_close(unused);
    }
    if (result == ROWLOCK_OK)
        *out = db->shared->keeper;
    return result;
}

void rlk_keeper_unshare(rowlock_db *db)
{
    if (!db->shared)
        return;
    rlk_lock(&mutex);
    rowlock_keeper *unused = drop(db->shared);
    rlk_unlock(&mutex);
    rowlock_keeper_close(unused);
}
