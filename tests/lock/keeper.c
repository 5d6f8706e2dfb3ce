/* SPDX-License-Identifier: MIT
 *
 * A keeper on a real database: leases that last, what rivals and the tables see of it, and what the
 * holder is told when it cannot renew. Its timing to the millisecond is in tests/lock/test_keeper.c.
 *
 * A heartbeat comes after a third of the lease, and JEOPARDY without one after half of it. A machine
 * that stands still for 5 s may put each lock into JEOPARDY, but none is lost. So the scenes run side
 * by side, each in a thread, and wait for their heartbeats together. */
#include "contract.h"
#include "faultproxy.h"

enum { LEASE_MS = 12000, WAIT_MS = 60000 };

static const char PROGRAM[] = "keeper under test";

/* ---- short words */

struct told {
    atomic_int jeopardy, held, lost;
};

static void note_told(void *context, rowlock_lock *lock, rowlock_state state)
{
    struct told *told = context;
    told->jeopardy += state == ROWLOCK_STATE_JEOPARDY;
    told->held += state == ROWLOCK_STATE_HELD;
    told->lost += state == ROWLOCK_STATE_LOST;
}

static rowlock_keeper *must_keep(const char *url)
{
    rowlock_keeper *keeper = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db_options options =
        *OPTIONS(db, .program = PROGRAM, .statement_timeout_ms = slow_ms(LEASE_MS) / 9);
    if (open_keeper_at(url, &options, &keeper, &err) != ROWLOCK_OK)
        raw_failed("no keeper", err.text);
    return keeper;
}

/* It waits: on InnoDB a scene that has a row locked keeps new rows out of the gaps beside it. */
static int keep_kind(rowlock_lock *lock, int permits, rowlock_keeper *keeper, struct told *told)
{
    rowlock_acquire_options options =
        *OPTIONS(acquire, .ttl_ms = slow_ms(LEASE_MS), .wait_ms = slow_ms(WAIT_MS),
                 .permits = permits, .keeper = keeper, .on_state = note_told, .context = told);
    return rowlock_acquire(lock, &options);
}

static int keep(rowlock_lock *lock, rowlock_keeper *keeper, struct told *told)
{
    return keep_kind(lock, 0, keeper, told);
}

static long long renewals_of(const struct contract *c, const rowlock_lock *lock)
{
    return int_on(c,
                  "SELECT coalesce(max(renewals), 0) FROM rowlock_locks "
                  "WHERE name = '%s' AND token = %lld",
                  rowlock_lock_name(lock), (long long)rowlock_lock_token(lock));
}

static bool renewed_beyond(const struct contract *c, const rowlock_lock *lock, long long renewals)
{
    return EVENTUALLY(renewals_of(c, lock) > renewals);
}

static bool becomes(rowlock_lock *lock, rowlock_state state)
{
    return EVENTUALLY(rowlock_lock_state(lock) == state);
}

static bool readable(rowlock_lock *lock, int64_t within_ms)
{
    struct pollfd fd = {.fd = rowlock_lock_state_fd(lock), .events = POLLIN};
    return poll(&fd, 1, (int)within_ms) == 1;
}

/* ---- a lock that is kept */

struct kept {
    const struct contract *c;
    rowlock_keeper *keeper;
    rowlock_db *db, *other; /* the holder's connection, and another client's */
    rowlock_lock *lock;
    struct told told;
};

static void keep_one(struct kept *k, const struct contract *c, const char *name,
                     const char *keepers_url)
{
    *k = (struct kept){.c = c, .db = must_open(c->url), .other = must_open(c->url)};
    k->keeper = must_keep(keepers_url);
    k->lock = must_lock(k->db, name);
    is_result(k->db, keep(k->lock, k->keeper, &k->told), ROWLOCK_OK, "a lock is kept");
}

/* After it the keeper does nothing more. */
static void stop_keeper(struct kept *k)
{
    rowlock_keeper_close(k->keeper);
    k->keeper = NULL;
}

static void end_keeping(struct kept *k)
{
    rowlock_lock_close(k->lock);
    close_dbs(k->db, k->other);
    if (k->keeper)
        stop_keeper(k);
}

/* ---- kept */

static int stays_ours(void *argument)
{
    enum { HEARTBEATS = 2 };
    const struct contract *c = argument;
    CLOSED_BY(end_keeping) struct kept k;
    keep_one(&k, c, "kept", c->url);
    OWNED(lock) rowlock_lock *wanted = must_lock(k.other, "kept");
    int64_t token = rowlock_lock_token(k.lock), until = clock_ms() + slow_ms(WAIT_MS);
    int tries = 0, busy = 0;
    uint64_t trips = stats_of(k.db).round_trips;
    while (grant_of(k.other, "kept").renewals < HEARTBEATS && clock_ms() < until) {
        tries++;
        busy += try_lock(wanted, LEASE_MS) == ROWLOCK_BUSY;
        sleep_ms(20);
    }
    tap_is_int(busy, tries, "through several renewals all %d tries of a rival are BUSY", tries);
    rowlock_grant grant = grant_of(k.other, "kept");
    tap_ok(stats_of(k.db).renewals > 0, "which is counted where the lock is");
    tap_is_int((long long)(stats_of(k.db).round_trips - trips), 0,
               "the keeper's round trips are its own");
    tap_is_int(grant.token, token, "the row is the same grant's");
    tap_ok(grant.renewals >= HEARTBEATS, "renewed %d times", (int)grant.renewals);
    tap_is_int(grant.ttl_ms, slow_ms(LEASE_MS), "each time for the same lease");
    is_result(k.db, rowlock_verify(k.lock), ROWLOCK_OK, "the holder holds it");
    int64_t asked = clock_ms(), remaining = rowlock_lock_remaining_ms(k.lock);
    grant = grant_of(k.db, "kept");
    tap_ok(remaining > 0 && remaining <= grant.remaining_ms + (clock_ms() - asked) + 2,
           "and knows of its time, not too much");
    tap_is_int(k.told.lost, 0, "no loss was told");
    is_result(k.db, rowlock_release(k.lock), ROWLOCK_OK, "it is released");
    stop_keeper(&k);
    tap_is_int(rows_of(c, "kept"), 0, "and does not rise again");
    is_result(k.other, try_lock(wanted, LEASE_MS), ROWLOCK_OK, "others can have it");
    return 0;
}

static const struct {
    const char *name;
    int permits;
} several[] = {
    {"kept 0", 0},
    {"kept 1", 0},
    {"kept shared", ROWLOCK_SHARED},
    {"kept shared", ROWLOCK_SHARED},
    {"kept counted", 3},
    {"kept counted", 3},
};

static int several_handles(void *argument)
{
    const struct contract *c = argument;
    struct told told = {0};
    OWNED(keeper) rowlock_keeper *keeper = must_keep(c->url);
    rowlock_db *dbs[COUNT(several)];
    rowlock_lock *locks[COUNT(several)];
    long long renewals[COUNT(several)];
    for (int i = 0; i < COUNT(several); i++) {
        dbs[i] = must_open(c->url);
        locks[i] = must_lock(dbs[i], several[i].name);
        is_result(dbs[i], keep_kind(locks[i], several[i].permits, keeper, &told), ROWLOCK_OK,
                  "%s, of a db of its own", several[i].name);
    }
    for (int i = 0; i < COUNT(several); i++) {
        tap_ok(renewed_beyond(c, locks[i], 0), "%s is renewed", several[i].name);
        tap_ok(becomes(locks[i], ROWLOCK_STATE_HELD), "as its holder knows");
    }
    is_result(dbs[0], rowlock_release(locks[0]), ROWLOCK_OK, "one is released");
    rowlock_db_close(dbs[1]);
    for (int i = 2; i < COUNT(several); i++)
        renewals[i] = renewals_of(c, locks[i]);
    for (int i = 2; i < COUNT(several); i++)
        tap_ok(renewed_beyond(c, locks[i], renewals[i]), "the others' end does not concern it");
    tap_is_int(rows_of(c, "kept 0") + rows_of(c, "kept 1"), 0, "they are gone");
    tap_is_int(told.lost, 0, "none was lost");
    dbs[1] = NULL;
    close_each_lock(locks, COUNT(several));
    close_each_db(dbs, COUNT(several));
    return 0;
}

/* ---- threads that come and go while it works */

struct worker {
    const struct contract *c;
    rowlock_keeper *keeper;
    const char *name;
    struct told told;
};

static int acquire_and_release(void *argument)
{
    enum { ROUNDS = 60 };
    struct worker *w = argument;
    OWNED(db) rowlock_db *db = must_open(w->c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, w->name);
    int good = 0;
    for (int i = 0; i < ROUNDS; i++) {
        good += keep(lock, w->keeper, &w->told) == ROWLOCK_OK;
        good += becomes(lock, ROWLOCK_STATE_HELD);
        sleep_ms(i % 8 == 0 ? 20 : 0);
        good += rowlock_release(lock) == ROWLOCK_OK;
    }
    if (good != 3 * ROUNDS)
        tap_note("%s: %s", w->name, why(db));
    return good == 3 * ROUNDS ? 0 : 1;
}

static int busy_threads(void *argument)
{
    const struct contract *c = argument;
    CLOSED_BY(end_keeping) struct kept k;
    keep_one(&k, c, "kept beside", c->url);
    struct worker workers[2] = {{.c = c, .keeper = k.keeper, .name = "comes"},
                                {.c = c, .keeper = k.keeper, .name = "goes"}};
    struct helper *helpers[2];
    for (int i = 0; i < 2; i++)
        helpers[i] = helper_start(acquire_and_release, &workers[i]);
    for (int i = 0; i < 2; i++)
        tap_is_int(helper_join(helpers[i]), 0,
                   "a thread acquires and releases with the same keeper");
    tap_is_int(rows_of(c, "comes") + rows_of(c, "goes"), 0, "nothing of theirs is left");
    is_result(k.db, rowlock_verify(k.lock), ROWLOCK_OK, "the lock beside is still held");
    for (int i = 0; i < 2; i++)
        tap_is_int(workers[i].told.lost, 0, "none was lost");
    return 0;
}

/* ---- lost */

static int broken(void *argument)
{
    const struct contract *c = argument;
    CLOSED_BY(end_keeping) struct kept k;
    keep_one(&k, c, "broken", c->url);
    tap_ok(EVENTUALLY(!readable(k.lock, 0)), "its descriptor is not readable");
    is_result(k.other, rowlock_break(k.other, "broken", 0, NULL), ROWLOCK_OK, "it is broken");
    tap_ok(readable(k.lock, slow_ms(WAIT_MS)), "then the descriptor is");
    tap_ok(becomes(k.lock, ROWLOCK_STATE_LOST), "the lock is LOST");
    tap_ok(!readable(k.lock, 0), "asking makes it unreadable");
    tap_ok(EVENTUALLY(k.told.lost == 1), "the callback was called");
    tap_is_int(rowlock_lock_remaining_ms(k.lock), 0, "nothing remains");
    tap_is_int(rows_of(c, "broken"), 0, "no renewal made it stand again");
    is_result(k.db, rowlock_release(k.lock), ROWLOCK_LOST, "its release says LOST");
    is_result(k.db, keep(k.lock, k.keeper, &k.told), ROWLOCK_OK, "and it can be acquired again");
    stop_keeper(&k);
    tap_is_int(k.told.lost, 1, "the callback was called once");
    return 0;
}

/* ---- in jeopardy */

/* On SQLite that keeps every writer out, elsewhere just those of the row. */
static int locked_by_others(void *argument)
{
    const struct contract *c = argument;
    CLOSED_BY(end_keeping) struct kept k;
    keep_one(&k, c, "locked", c->url);
    OWNED(session) void *session = c->raw->open(c->url);
    raw_run(c->raw, session, "%s", c->begin);
    raw_run(c->raw, session, "UPDATE rowlock_locks SET note = 'x' WHERE name = 'locked'");
    tap_ok(readable(k.lock, slow_ms(WAIT_MS)), "another transaction has its row: that is told");
    tap_ok(becomes(k.lock, ROWLOCK_STATE_JEOPARDY), "as JEOPARDY");
    tap_ok(EVENTUALLY(k.told.jeopardy > 0), "by the callback, too");
    raw_run(c->raw, session, "COMMIT");
    tap_ok(becomes(k.lock, ROWLOCK_STATE_HELD), "when that ends the lock is HELD again");
    tap_ok(EVENTUALLY(k.told.held > 0), "which the callback tells as well");
    is_result(k.db, rowlock_verify(k.lock), ROWLOCK_OK, "it was never over");
    return 0;
}

/* The keeper's connection at the server. */
static bool kill_keeper(const struct contract *c)
{
    if (is_mysql(c)) { /* the newest but our own */
        long long id = int_on(c, "SELECT MAX(id) FROM information_schema.processlist "
                                 "WHERE id <> CONNECTION_ID()");
        exec_on(c, "KILL %lld", id);
        return true;
    }
    return EVENTUALLY(int_on(c,
                             "SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM "
                             "pg_stat_activity WHERE application_name = '%s' "
                             "AND pid <> pg_backend_pid() OFFSET 0) AS ended",
                             PROGRAM) > 0);
}

/* Before other scenes open connections, which it could take for the keeper's. */
static rowlock_keeper *open_killed(const struct contract *c)
{
    rowlock_keeper *keeper = must_keep(c->url);
    if (!c->pooled) /* the session that looks may be the keeper's */
        tap_ok(kill_keeper(c), "the server ends the keeper's idle connection");
    return keeper;
}

static void keeps_killed(const struct contract *c, rowlock_keeper *keeper)
{
    struct told told = {0};
    OWNED(db) rowlock_db *db = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "killed");
    is_result(db, keep(lock, keeper, &told), ROWLOCK_OK, "a lock is kept nevertheless");
    tap_ok(renewed_beyond(c, lock, 0), "by a new one");
    tap_ok(renewed_beyond(c, lock, renewals_of(c, lock)), "again and again");
    tap_ok(becomes(lock, ROWLOCK_STATE_HELD), "the lock is HELD");
    tap_is_int(told.lost, 0, "no loss was told");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "and it is released");
}

/* ---- a slow or silent network between the keeper and the server */

static int silent_network(void *argument)
{
    const struct contract *c = argument;
    OWNED(text) char *through = NULL;
    OWNED(proxy) struct faultproxy *proxy = faultproxy_start(c->url, &through);
    CLOSED_BY(end_keeping) struct kept k;
    keep_one(&k, c, "silent", through);
    OWNED(lock) rowlock_lock *other = must_lock(k.db, "spoken");
    is_result(k.db, keep(other, k.keeper, &k.told), ROWLOCK_OK, "and another");
    tap_ok(EVENTUALLY(!readable(k.lock, 0)), "there is nothing to tell");
    faultproxy_blackhole(proxy);
    tap_ok(readable(k.lock, slow_ms(WAIT_MS)), "its network falls silent, and that is told");
    tap_ok(EVENTUALLY(rowlock_lock_state(k.lock) >= ROWLOCK_STATE_JEOPARDY), "by the clock alone");
    is_result(k.db, rowlock_release(k.lock), ROWLOCK_OK, "the lock can be released meanwhile");
    is_result(k.db, rowlock_renew(other, 0), ROWLOCK_OK, "and the other renewed");
    faultproxy_heal(proxy);
    tap_ok(renewed_beyond(c, other, renewals_of(c, other)), "the network is back, and the keeper");
    tap_is_int(rows_of(c, "silent"), 0, "what was released stays released");
    return 0;
}

/* ---- another installation */

static int elsewhere(void *argument)
{
    const struct contract *c = argument;
    OWNED(text) char *url = fresh_tables(c, "elsewhere_");
    struct told told = {0};
    OWNED(keeper) rowlock_keeper *keeper = must_keep(url);
    OWNED(db) rowlock_db *db = must_open(c->url), *there = must_open(url);
    OWNED(lock)
    rowlock_lock *lock = must_lock(db, "elsewhere"), *right = must_lock(there, "elsewhere");
    is_result(db, keep(lock, keeper, &told), ROWLOCK_ESCHEMA,
              "a keeper keeps what is of its own tables");
    tap_is_int(rows_of(c, "elsewhere"), 0, "nothing was acquired");
    is_result(there, keep(right, keeper, &told), ROWLOCK_OK, "such a lock it does keep");
    tap_ok(EVENTUALLY(grant_of(there, "elsewhere").renewals > 0), "in its own tables");
    return 0;
}

/* The last two need a server. */
static int (*const scenes[])(void *contract) = {stays_ours, several_handles,  busy_threads,  broken,
                                                elsewhere,  locked_by_others, silent_network};

void contract_keeper(const struct contract *c)
{
    struct helper *helpers[COUNT(scenes)];
    int count = c->has_server ? COUNT(scenes) : COUNT(scenes) - 2;
    OWNED(keeper) rowlock_keeper *killed = c->has_server ? open_killed(c) : NULL;
    for (int i = 0; i < count; i++)
        helpers[i] = helper_start(scenes[i], (void *)c);
    if (killed)
        keeps_killed(c, killed);
    for (int i = 0; i < count; i++)
        helper_join(helpers[i]);
    /* There it keeps all writers of the file out. */
    if (!c->has_server)
        locked_by_others((void *)c);
}
