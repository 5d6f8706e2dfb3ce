/* SPDX-License-Identifier: MIT
 *
 * Rowlock's side of the contests, through its public header only. */
#include "hand.h"

enum { POOLS_MAX = 4 };

struct shared_pool;

struct our_session {
    rowlock_db *db;
    rowlock_lock *lock;
    const struct place *place;
    void *lent; /* the connection, if it was adopted */
    rowlock_keeper *keeper;
    struct shared_pool *shared; /* NULL: a connection of its own */
};

static void must(rowlock_db *db, int result, int expected)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    if (result == expected)
        return;
    err = *rowlock_db_error(db);
    die("%s instead of %s: %s: %s", rowlock_result_name(result), rowlock_result_name(expected),
        err.action, err.text);
}

void must_open(int result, const rowlock_error *err)
{
    if (result != ROWLOCK_OK)
        die("%s: %s", err->action, err->text);
}

rowlock_db *ours_connect(const struct place *place)
{
    rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    must_open(rowlock_db_open(place->url, OPTIONS(db, .schema = place->schema), &db, &err), &err);
    return db;
}

rowlock_table *ours_open_table(const struct place *place, const char *name,
                               const char *const *columns, rowlock_db **db)
{
    static const char *const key[] = {"id", NULL};
    rowlock_table *table = NULL;
    *db = ours_connect(place);
    must(*db,
         rowlock_table_open(*db, name, key,
                            OPTIONS(table, .schema = place->schema, .columns = columns), &table),
         ROWLOCK_OK);
    return table;
}

void ours_install(const struct place *place)
{
    rowlock_db *db = ours_connect(place);
    must(db, rowlock_install(db), ROWLOCK_OK);
    rowlock_db_close(db);
}

bool site_open(struct site *site, const struct hand *hand)
{
    *site = (struct site){.hand = hand, .url = getenv(hand->raw->url_env)};
    if (!site->url || !site->url[0])
        return false;
    hand_load(hand);
    hand_make_places(hand, site->url, &site->ours, &site->theirs);
    ours_install(&site->ours);
    ours_install(&site->theirs);
    return true;
}

static struct our_session *new_session(const struct place *place)
{
    struct our_session *s = zeroed(1, sizeof *s);
    s->place = place;
    return s;
}

static void *with_lock(struct our_session *s, const char *name)
{
    must(s->db, rowlock_lock_open(s->db, name, &s->lock), ROWLOCK_OK);
    return s;
}

void *ours_open(const struct place *place, const char *name)
{
    struct our_session *s = new_session(place);
    s->db = ours_connect(place);
    return with_lock(s, name);
}

void *ours_open_adopted(const struct place *place, const char *name)
{
    struct our_session *s = new_session(place);
    s->db = hand_adopt(place, OPTIONS(db, .schema = place->schema), &s->lent);
    return with_lock(s, name);
}

static const char *member_urls(const struct place *places)
{
    static char text[4096];
    snprintf(text, sizeof text, "%s %s %s", places[0].url, places[1].url, places[2].url);
    return text;
}

void ours_install_quorum(const struct place *places)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db_options options = *OPTIONS(db, .schema = places->schema);
    for (int i = 0; i < MEMBERS; i++)
        ours_install(&places[i]);
    must_open(rowlock_quorum_join(member_urls(places), 0, &options, &err), &err);
}

void *ours_open_quorum(const struct place *places, const char *name)
{
    struct our_session *s = new_session(places);
    rowlock_error err = ROWLOCK_ERROR_INIT;
    must_open(
        rowlock_db_open(member_urls(places), OPTIONS(db, .schema = places->schema), &s->db, &err),
        &err);
    return with_lock(s, name);
}

/* One pool for each place, as long as it has sessions. Sessions are opened and closed by one thread. */
static struct shared_pool {
    const struct place *place;
    rowlock_pool *pool;
    int users;
} pools[POOLS_MAX];

static struct shared_pool *pool_of(const struct place *place)
{
    for (int i = 0; i < POOLS_MAX; i++)
        if (pools[i].place == place)
            return &pools[i];
    for (int i = 0; i < POOLS_MAX; i++)
        if (!pools[i].place)
            return &pools[i];
    die("too many pools");
}

rowlock_pool *ours_open_pool(const struct place *place)
{
    rowlock_pool *pool = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    must_open(rowlock_pool_open(place->url,
                                OPTIONS(pool, .db = OPTIONS(db, .schema = place->schema)), &pool,
                                &err),
              &err);
    return pool;
}

rowlock_db *ours_connect_pooled(rowlock_pool *pool)
{
    rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    must_open(rowlock_db_open(NULL, OPTIONS(db, .pool = pool), &db, &err), &err);
    return db;
}

void *ours_open_pooled(const struct place *place, const char *name)
{
    struct our_session *s = new_session(place);
    s->shared = pool_of(place);
    if (s->shared->users++ == 0)
        *s->shared = (struct shared_pool){place, ours_open_pool(place), 1};
    s->db = ours_connect_pooled(s->shared->pool);
    return with_lock(s, name);
}

static void leave_pool(struct shared_pool *shared)
{
    if (--shared->users > 0)
        return;
    rowlock_pool_close(shared->pool);
    *shared = (struct shared_pool){.users = 0};
}

void ours_close(void *session)
{
    struct our_session *s = session;
    rowlock_lock_close(s->lock);
    rowlock_keeper_close(s->keeper);
    rowlock_db_close(s->db);
    if (s->shared)
        leave_pool(s->shared);
    if (s->lent)
        s->place->hand->raw->close(s->lent);
    free(s);
}

#define STEP(name, call, expected)       \
    void ours_##name(void *session)      \
    {                                    \
        struct our_session *s = session; \
        must(s->db, call, expected);     \
    }
/* No other client wants the lock. The wait is for SQLite, where a file has one writer at a time and a
 * try gives up after a second of bad luck. */
STEP(acquire, rowlock_acquire(s->lock, OPTIONS(acquire, .ttl_ms = LEASE_MS, .wait_ms = 20000)),
     ROWLOCK_OK)
STEP(hold_long, rowlock_acquire(s->lock, OPTIONS(acquire, .ttl_ms = 60 * LEASE_MS)), ROWLOCK_OK)
STEP(release, rowlock_release(s->lock), ROWLOCK_OK)
STEP(busy, rowlock_acquire(s->lock, NULL), ROWLOCK_BUSY)
STEP(renew, rowlock_renew(s->lock, LEASE_MS), ROWLOCK_OK)
STEP(verify, rowlock_verify(s->lock), ROWLOCK_OK)

bool ours_try(void *session)
{
    struct our_session *s = session;
    int result = rowlock_acquire(s->lock, NULL);
    if (result != ROWLOCK_BUSY)
        must(s->db, result, ROWLOCK_OK);
    return result == ROWLOCK_OK;
}

void ours_pair(void *session)
{
    ours_acquire(session);
    ours_release(session);
}

int64_t ours_sweep(void *session)
{
    struct our_session *s = session;
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    must(s->db, rowlock_sweep(s->db, OPTIONS(sweep, .batch = BATCH, .idle_ms = -1), &report),
         ROWLOCK_OK);
    return report.locks;
}

static int count_grant(void *context, const rowlock_grant *grant)
{
    ++*(int64_t *)context;
    return 0;
}

int64_t ours_count(void *session, const char *name)
{
    struct our_session *s = session;
    int64_t count = 0;
    must(s->db, rowlock_list(s->db, name, count_grant, &count), ROWLOCK_OK);
    return count;
}

/* ---- as a contender */

static void *open_contender(const struct contender *contender, const char *name)
{
    return ours_open(contender->place, name);
}

struct contender our_contender(const struct place *place, void (*step)(void *session))
{
    return (struct contender){.label = "rowlock",
                              .place = place,
                              .open = open_contender,
                              .close = ours_close,
                              .step = step};
}

/* ---- waiting */

static bool wait_for_lock(struct our_session *s, int unfair)
{
    int result = rowlock_acquire(s->lock, OPTIONS(acquire, .ttl_ms = LEASE_MS,
                                                  .wait_ms = ROWLOCK_FOREVER, .unfair = unfair));
    if (result == ROWLOCK_CANCELLED)
        return false;
    must(s->db, result, ROWLOCK_OK);
    return true;
}

bool ours_wait(void *session)
{
    return wait_for_lock(session, 0);
}

bool ours_wait_unfair(void *session)
{
    return wait_for_lock(session, 1);
}

void ours_keep(void *session)
{
    struct our_session *s = session;
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    /* A connection of the caller's cannot be opened again. */
    rowlock_db *other = s->lent ? ours_connect(s->place) : NULL, *db = other ? other : s->db;
    must(db, rowlock_keeper_open(db, &s->keeper), ROWLOCK_OK);
    rowlock_db_close(other);
    options.keeper = s->keeper;
    must(s->db, rowlock_acquire(s->lock, &options), ROWLOCK_OK);
}

void ours_stop(void *session)
{
    rowlock_cancel(((struct our_session *)session)->db);
}
