/* SPDX-License-Identifier: MIT
 *
 * What MySQL and MariaDB have to do with several grants at once: their rows are read back by a statement of
 * its own, and others may remove some of them as soon as they are committed. */
#include "contract.h"

/* Many, so that they are read back slowly. The last two come last in the order of names too. */
enum { NAMES = 400, BROKEN = NAMES - 2, NEW = NAMES - 1, HELD_MS = 60000 };

struct group {
    const struct contract *c;
    rowlock_db *db;
    rowlock_lock *locks[NAMES];
    int64_t next; /* token of the one that will be broken */
    atomic_bool ended;
};

static int acquire_group(void *argument)
{
    struct group *g = argument;
    int result = rowlock_acquire_all(g->locks, NAMES, OPTIONS(acquire, .ttl_ms = HELD_MS), NULL);
    g->ended = true;
    return result;
}

static int break_one(void *argument)
{
    const struct group *g = argument;
    OWNED(db) rowlock_db *db = must_open(g->c->url);
    return rowlock_break(db, rowlock_lock_name(g->locks[BROKEN]), g->next, NULL);
}

/* A session waits for a row in a statement like this. */
static void until_waiting(const struct group *g, void *session, const char *statement)
{
    int64_t until = clock_ms() + slow_ms(20000);
    for (int seen = 0; seen < 3 && !g->ended && clock_ms() < until; sleep_ms(5))
        seen = raw_int(g->c->raw, session,
                       "SELECT COUNT(*) FROM information_schema.processlist "
                       "WHERE id <> CONNECTION_ID() AND info LIKE '%s'",
                       statement)
                   ? seen + 1
                   : 0;
}

static void group_open(struct group *g, const struct contract *c)
{
    *g = (struct group){.c = c, .db = must_open(c->url)};
    exec_on(c, "DELETE FROM rowlock_tokens WHERE name LIKE 'group %%'");
    for (int i = 0; i < NAMES; i++) {
        g->locks[i] = must_lock(g->db, textf("group %04d", i));
        if (i != NEW && (try_lock(g->locks[i], HELD_MS) != ROWLOCK_OK ||
                         rowlock_release(g->locks[i]) != ROWLOCK_OK))
            raw_failed("a free lock", why(g->db));
    }
    if (rowlock_last_grant(g->db, rowlock_lock_name(g->locks[BROKEN]), &g->next, NULL) !=
        ROWLOCK_OK)
        raw_failed("the last grant", why(g->db));
    g->next++;
}

static void group_close(struct group *g)
{
    close_each_lock(g->locks, NAMES);
    rowlock_db_close(g->db);
    tap_is_int(int_on(g->c, "SELECT COUNT(*) FROM rowlock_locks WHERE name LIKE 'group %%'"), 0,
               "closing leaves no grant behind");
    exec_on(g->c, "DELETE FROM rowlock_tokens WHERE name LIKE 'group %%'");
}

/* The counter of the new name waits for the floor, with all token rows locked; the break waits for one of
 * these, and is the first to go on when they are committed. */
void contract_mysql_many(const struct contract *c)
{
    CLOSED_BY(group_close) struct group g;
    int held = 0;
    group_open(&g, c);
    OWNED(session) void *floor = c->raw->open(c->url), *watcher = c->raw->open(c->url);
    raw_run(c->raw, floor, "START TRANSACTION");
    raw_run(c->raw, floor, "SELECT * FROM rowlock_meta FOR UPDATE");
    struct helper *acquires = helper_start(acquire_group, &g);
    until_waiting(&g, watcher, "%rowlock_meta%LOCK IN SHARE MODE%");
    struct helper *breaks = helper_start(break_one, &g);
    until_waiting(&g, watcher, "%rowlock_tokens%FOR UPDATE");
    raw_run(c->raw, floor, "COMMIT");
    is_result(g.db, helper_join(acquires), ROWLOCK_OK,
              "several locks are granted, though one is broken as soon as they are");
    tap_is_int(helper_join(breaks), ROWLOCK_OK, "which it is");
    for (int i = 0; i < NAMES; i++)
        held += rowlock_verify(g.locks[i]) == ROWLOCK_OK;
    tap_is_int(held, NAMES - 1, "the handles hold all others");
    is_result(g.db, rowlock_renew(g.locks[BROKEN], 0), ROWLOCK_LOST, "and that one is LOST");
}
