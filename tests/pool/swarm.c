/* SPDX-License-Identifier: MIT
 *
 * Many handles of a pool; see swarm.h. */
#include "swarm.h"

#include "pool/pool.h"

bool has_server(const struct raw *raw)
{
    return strcmp(raw->name, "sqlite") != 0;
}

rowlock_pool *must_pool(const char *url, int connections, const char *prefix)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_pool *pool = NULL;
    rowlock_db_options names = *OPTIONS(db, .prefix = prefix, .program = "swarm");
    names.statement_timeout_ms = names.connect_timeout_ms = slow_ms(SWARM_PATIENCE_MS);
    rowlock_pool_options options = *OPTIONS(pool, .connections = connections, .db = &names);
    if (rowlock_pool_open(url, &options, &pool, &err) != ROWLOCK_OK)
        raw_failed("open a pool", err.text);
    return pool;
}

rowlock_db *must_join(rowlock_pool *pool, int64_t statement_timeout_ms, int64_t reconnect_ms)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db *db = NULL;
    rowlock_db_options options =
        *OPTIONS(db, .pool = pool, .reconnect_ms = reconnect_ms,
                 .statement_timeout_ms =
                     statement_timeout_ms ? statement_timeout_ms : slow_ms(SWARM_PATIENCE_MS));
    if (rowlock_db_open(NULL, &options, &db, &err) != ROWLOCK_OK)
        raw_failed("open a handle of a pool", err.text);
    return db;
}

void until(bool so, const char *what)
{
    if (!so)
        raw_failed("it never came true", what);
}

static void join(struct swarm *s, struct member *m, int number)
{
    *m = (struct member){.number = number};
    m->db = must_join(s->pool, 0, s->reconnect_ms);
    m->lock = must_lock(m->db, textf("swarm %02d", number));
}

void swarm_open_with(struct swarm *s, const char *url, int connections, int count,
                     int64_t reconnect_ms)
{
    *s = (struct swarm){.count = count, .reconnect_ms = reconnect_ms};
    s->pool = must_pool(url, connections, NULL);
    for (int i = 0; i < count; i++) {
        join(s, &s->member[i], i);
        if (act_try(&s->member[i]) != ROWLOCK_OK || act_release(&s->member[i]) != ROWLOCK_OK)
            raw_failed("a free lock", why(s->member[i].db));
    }
}

void swarm_open(struct swarm *s, const char *url, int connections, int count)
{
    swarm_open_with(s, url, connections, count, 0);
}

void member_close(struct member *m)
{
    rowlock_lock_close(m->lock);
    rowlock_db_close(m->db);
}

void swarm_close_members(struct swarm *s)
{
    for (int i = 0; i < s->count; i++)
        member_close(&s->member[i]);
    s->count = 0;
}

void swarm_close(struct swarm *s)
{
    swarm_close_members(s);
    rowlock_pool_close(s->pool);
}

/* ---- the line */

static int run(void *argument)
{
    struct member *m = argument;
    m->result = m->act(m);
    m->ended = true;
    return m->result;
}

void member_start(struct member *m, int (*act)(struct member *m))
{
    m->act = act;
    m->ended = false;
    m->thread = helper_start(run, m);
}

/* A connection is busy for a moment longer than the step that it has answered. */
void swarm_plug(struct swarm *s)
{
    until(EVENTUALLY((s->plug = rlk_line_idle(s->pool)) != NULL), "the plug is in");
}

void swarm_pull(struct swarm *s)
{
    rlk_line_give(s->pool, s->plug);
}

int pool_in_line(rowlock_pool *pool)
{
    int count = 0;
    pthread_mutex_lock(&pool->mutex);
    for (int kind = 0; kind < RLK_STEP_COUNT; kind++)
        for (const struct rlk_parcel *slot = pool->line[kind].first; slot; slot = slot->next)
            count++;
    pthread_mutex_unlock(&pool->mutex);
    return count;
}

void swarm_stand(struct swarm *s, int count)
{
    until(EVENTUALLY(pool_in_line(s->pool) >= count), "all stand in line");
}

/* ---- the members */

void swarm_start(struct swarm *s, int (*act)(struct member *m))
{
    for (int i = 0; i < s->count; i++)
        member_start(&s->member[i], act);
}

int swarm_join(struct swarm *s, int want)
{
    int as_wanted = 0;
    for (int i = 0; i < s->count; i++) {
        struct member *m = &s->member[i];
        if (!m->thread)
            continue;
        helper_join(m->thread);
        m->thread = NULL;
        as_wanted += m->result == want;
        if (m->result != want)
            tap_note("swarm %02d: %s", i,
                     m->result < 0 ? why(m->db) : rowlock_result_name(m->result));
    }
    return as_wanted;
}

int swarm_run(struct swarm *s, int (*act)(struct member *m), int want)
{
    swarm_start(s, act);
    return swarm_join(s, want);
}

int swarm_act(struct swarm *s, int (*act)(struct member *m), int want)
{
    swarm_plug(s);
    swarm_start(s, act);
    swarm_stand(s, s->count);
    swarm_pull(s);
    return swarm_join(s, want);
}

int act_try(struct member *m)
{
    return try_lock(m->lock, SWARM_TTL_MS);
}

int act_renew(struct member *m)
{
    return rowlock_renew(m->lock, 0);
}

int act_release(struct member *m)
{
    return rowlock_release(m->lock);
}
