/* SPDX-License-Identifier: MIT
 *
 * What a pool promises when something is lost: an answer for many, the server, or its tables. A
 * proxy loses, and server-ctl.sh stops the server. */
#include "swarm.h"

#include "each.h"
#include "fail_alloc.h"
#include "faultproxy.h"
#include "pool/pool.h"

enum { FEW = 16 };

static const struct raw *raw;
static const char *straight;
static char *through;
static struct faultproxy *proxy;

static int rows(void)
{
    return (int)db_int(raw, straight, "SELECT count(*) FROM rowlock_locks");
}

/* ---- an answer for many */

struct act {
    const char *what;
    int (*act)(struct member *m);
    bool held_before, held_after;
};
static const struct act acts[] = {
    {"acquire", act_try, false, true},
    {"renew", act_renew, true, true},
    {"release", act_release, true, false},
};
enum { ACTS = sizeof acts / sizeof acts[0] };

/* MySQL prepares a statement before its first use on a connection. */
static void swarm_prepares(struct swarm *s)
{
    for (int i = 0; i < ACTS; i++)
        swarm_act(s, acts[i].act, ROWLOCK_OK);
}

static void swarm_loses(struct swarm *s, const struct act *act, struct fault fault)
{
    swarm_prepares(s);
    if (act->held_before)
        tap_is_int(swarm_act(s, act_try, ROWLOCK_OK), FEW, "locks are held");
    swarm_plug(s);
    swarm_start(s, act->act);
    swarm_stand(s, FEW);
    faultproxy_arm(proxy, 1, fault);
    swarm_pull(s);
}

static void lost_and_found(const struct act *act, enum fault_side side)
{
    struct swarm s;
    swarm_open_with(&s, through, 1, FEW, 0);
    swarm_loses(&s, act, (struct fault){.kind = FAULT_CUT, .side = side});
    tap_is_int(swarm_join(&s, ROWLOCK_OK), FEW, "%s: the %s of many is lost, and each is done",
               act->what, side == ON_ANSWER ? "answer" : "request");
    tap_ok(faultproxy_fired(proxy), "by another sending");
    tap_is_int(rows(), act->held_after ? FEW : 0, "once");
    swarm_close(&s);
    tap_is_int(rows(), 0, "nothing is left behind");
}

/* The handles do not reconnect, so each is told. */
static void told_to_each(const struct act *act)
{
    struct swarm s;
    swarm_open_with(&s, through, 1, FEW, -1);
    swarm_loses(&s, act, (struct fault){.kind = FAULT_CUT, .side = ON_ANSWER});
    tap_is_int(swarm_join(&s, ROWLOCK_EUNCERTAIN), FEW, "%s: a lost answer is told to each",
               act->what);
    int64_t grants = db_int(raw, straight, "SELECT sum(token) FROM rowlock_tokens");
    tap_is_int(swarm_run(&s, act->act, ROWLOCK_OK), FEW, "each finds out by calling again");
    tap_is_int(db_int(raw, straight, "SELECT sum(token) FROM rowlock_tokens"), grants,
               "and no grant is made twice");
    tap_is_int(rows(), act->held_after ? FEW : 0, "what was lost is done once");
    swarm_close(&s);
    tap_is_int(rows(), 0, "nothing is left behind");
}

/* The answer comes late, and the lease began before that. */
static void counts_from_sending(void)
{
    enum { LATE_MS = 300 };
    CLOSED_BY(swarm_close) struct swarm s;
    int early = 0;
    swarm_open_with(&s, through, 1, FEW, 0);
    swarm_loses(&s, &acts[0],
                (struct fault){.kind = FAULT_DELAY, .side = ON_ANSWER, .delay_ms = LATE_MS});
    tap_is_int(swarm_join(&s, ROWLOCK_OK), FEW, "an answer for many comes late");
    int64_t sent_ms = clock_ms() - LATE_MS;
    for (int i = 0; i < FEW; i++) {
        int64_t now_ms = clock_ms();
        early += now_ms + rowlock_lock_remaining_ms(s.member[i].lock) <= sent_ms + SWARM_TTL_MS + 1;
    }
    tap_is_int(early, FEW, "each lease is counted from no later than the sending");
}

/* ---- a server that stands still */

static void limit_members(struct swarm *s, int64_t limit_ms)
{
    for (int i = 0; i < s->count; i++)
        s->member[i].db->statement_us = limit_ms * 1000;
}

static bool stand_or_end(struct swarm *s)
{
    for (int i = 0; i < s->count; i++)
        if (s->member[i].ended)
            return true;
    return pool_in_line(s->pool) == s->count;
}

/* Returns how many give up while their step is under way. -1: some gave up before that. */
static int give_up(struct swarm *s, int64_t limit_ms)
{
    int unsent = 0;
    swarm_prepares(s);
    limit_members(s, limit_ms);
    swarm_plug(s);
    swarm_start(s, act_try);
    until(EVENTUALLY(stand_or_end(s)), "all stand in line, or one has left it");
    faultproxy_arm(proxy, 1, (struct fault){.kind = FAULT_BLACKHOLE, .side = ON_ANSWER});
    swarm_pull(s);
    int uncertain = swarm_join(s, ROWLOCK_EUNCERTAIN);
    for (int i = 0; i < FEW; i++)
        unsent += s->member[i].result == ROWLOCK_ECONN;
    return unsent > 0 ? -1 : uncertain;
}

/* The handles are closed, and the pool's connection still waits. Then it ends, and what was left
 * behind is freed. If the limit is too short for this machine, it is doubled. */
static void given_up(void)
{
    int gave_up = -1;
    for (int64_t limit_ms = 400; gave_up < 0 && limit_ms < SWARM_PATIENCE_MS; limit_ms *= 2) {
        struct swarm s;
        fail_alloc_at(0);
        int live = fail_alloc_live();
        swarm_open_with(&s, through, 1, FEW, -1);
        gave_up = give_up(&s, limit_ms);
        swarm_close_members(&s);
        faultproxy_heal(proxy);
        until(EVENTUALLY(rows() == 0), "what was granted to them is withdrawn");
        swarm_close(&s);
        tap_is_int(fail_alloc_live(), live, "no memory is left behind");
    }
    tap_is_int(gave_up, FEW, "many give up while their step is under way");
}

/* The pool of these handles has a longer limit. MySQL and MariaDB: so its connection still waits
 * when a handle has given up. */
static void short_limit(int (*act)(struct member *m), const char *what, int want)
{
    struct swarm s;
    swarm_open_with(&s, through, 1, 1, -1);
    tap_is_int(swarm_act(&s, act_try, ROWLOCK_OK) + swarm_act(&s, act, ROWLOCK_OK), 2,
               "a lock is held");
    faultproxy_arm(proxy, 1, (struct fault){.kind = FAULT_BLACKHOLE, .side = ON_ANSWER});
    int got = ROWLOCK_OK;
    /* If the limit is too short for this machine, nothing is sent. Then it is doubled. */
    for (int64_t ms = 400; got != want && !faultproxy_fired(proxy) && ms < SWARM_PATIENCE_MS;
         ms *= 2) {
        limit_members(&s, ms);
        got = act(&s.member[0]);
    }
    is_result(s.member[0].db, got, want, "%s: no answer within the limit", what);
    pthread_mutex_lock(&s.pool->mutex);
    size_t busy = s.pool->busy;
    pthread_mutex_unlock(&s.pool->mutex);
    /* On PostgreSQL nothing can be told from it: the connection may work for the next step. */
    if (raw != &raw_postgres)
        tap_is_int((long long)busy, 1, "it ends by the handle's own limit");
    faultproxy_heal(proxy);
    swarm_close(&s);
    tap_is_int(rows(), 0, "and the lock is released all the same");
}

static int act_verify(struct member *m)
{
    return rowlock_verify(m->lock);
}

/* ---- handles that are closed while the server cannot be reached */

static void left_to_pool(void)
{
    CLOSED_BY(swarm_close) struct swarm s;
    swarm_open_with(&s, through, 1, FEW, -1);
    tap_is_int(swarm_act(&s, act_try, ROWLOCK_OK), FEW, "locks are held");
    faultproxy_blackhole(proxy);
    limit_members(&s, 200);
    swarm_close_members(&s);
    tap_is_int(rows(), FEW, "their handles are closed while the server hangs");
    faultproxy_heal(proxy);
    until(EVENTUALLY(rows() == 0), "the pool releases them");
    tap_is_int(rows(), 0, "the pool releases them later");
}

static void left_at_the_end(void)
{
    struct swarm s;
    fail_alloc_at(0);
    int live = fail_alloc_live();
    swarm_open_with(&s, through, 1, FEW, -1);
    tap_is_int(swarm_act(&s, act_try, ROWLOCK_OK), FEW, "locks are held");
    faultproxy_refuse(proxy);
    faultproxy_cut(proxy);
    limit_members(&s, 200);
    swarm_close(&s);
    tap_is_int(rows(), FEW, "handles and pool are closed while there is no server");
    tap_is_int(fail_alloc_live(), live, "which leaves no memory behind");
    faultproxy_accept(proxy);
    db_exec(raw, straight, "DELETE FROM rowlock_locks");
}

/* ---- a server that goes away */

enum { TURNS = 10 };
static atomic_bool is_back;

/* Odd answers are counted. A token that is not newer is odd too. */
static int act_through_it(struct member *m)
{
    int64_t last = 0;
    int odd = 0;
    for (int turns = 0; turns < TURNS;) {
        int got = act_try(m);
        odd += got != ROWLOCK_OK && got != ROWLOCK_ECONN && got != ROWLOCK_EUNCERTAIN &&
               got != ROWLOCK_BUSY;
        if (got == ROWLOCK_OK) {
            odd += rowlock_lock_token(m->lock) <= last;
            last = rowlock_lock_token(m->lock);
            while ((got = act_release(m)) == ROWLOCK_ECONN || got == ROWLOCK_EUNCERTAIN)
                ;
            odd += got != ROWLOCK_OK;
            turns += is_back;
        }
        if (odd > 0)
            tap_note("%s", why(m->db));
    }
    return odd;
}

static void restarted(void)
{
    CLOSED_BY(swarm_close) struct swarm s;
    is_back = false;
    swarm_open(&s, straight, 2, SWARM_MAX);
    swarm_start(&s, act_through_it);
    /* Time: the threads mostly work by then. Threads that begin later meet the same server. */
    sleep_ms(100);
    raw_control(raw, "restart");
    is_back = true;
    tap_is_int(swarm_join(&s, 0), SWARM_MAX, "the server restarts while %d threads work",
               SWARM_MAX);
    tap_is_int(rows(), 0, "and nothing is left behind");
}

static int act_wait(struct member *m)
{
    rowlock_acquire_options how = *OPTIONS(acquire, .wait_ms = ROWLOCK_FOREVER,
                                           .ttl_ms = SWARM_TTL_MS, .ticket_ms = SWARM_TTL_MS);
    int result = rowlock_acquire(m->lock, &how);
    return result == ROWLOCK_OK ? rowlock_release(m->lock) : result;
}

static void away(void)
{
    CLOSED_BY(swarm_close) struct swarm s, waiting;
    swarm_open_with(&s, straight, 1, FEW, 200);
    swarm_open_with(&waiting, straight, 1, FEW, 200);
    tap_is_int(swarm_act(&s, act_try, ROWLOCK_OK), FEW, "locks are held");
    swarm_start(&waiting, act_wait);
    until(EVENTUALLY(db_int(raw, straight, "SELECT count(*) FROM rowlock_waiters") == FEW),
          "all wait");
    tap_is_int(swarm_act(&s, act_renew, ROWLOCK_OK), FEW, "renewed, with tickets before that");
    raw_control(raw, "stop");
    int none = swarm_run(&s, act_renew, ROWLOCK_ECONN);
    tap_ok(none == FEW, "the server is away for longer than they reconnect: %d", none);
    raw_control(raw, "start");
    for (int i = 0; i < FEW; i++)
        s.member[i].db->reconnect_us = slow_ms(SWARM_PATIENCE_MS) * 1000;
    tap_is_int(swarm_run(&s, act_renew, ROWLOCK_OK), FEW, "it is back, and they go on");
    tap_is_int(swarm_run(&s, act_release, ROWLOCK_OK), FEW, "and release");
    tap_is_int(swarm_join(&waiting, ROWLOCK_OK), FEW, "what others have waited for all the time");
}

/* While the first connection is taken. */
static int trips_of_second(struct swarm *s)
{
    struct rlk_pooled *first = rlk_line_idle(s->pool);
    faultproxy_round_trips(proxy);
    act_renew(&s->member[0]);
    int trips = faultproxy_round_trips(proxy);
    rlk_line_give(s->pool, first);
    return trips;
}

static int guard_lost(void *context, const rowlock_attempt *attempt)
{
    struct member *m = context;
    faultproxy_arm(proxy, 1, (struct fault){.kind = FAULT_CUT, .side = ON_REQUEST});
    return rowlock_guard(m->lock, m->db);
}

/* One of two connections is lost. The other may lead to what was the primary before. */
static void no_old_primary(void)
{
    CLOSED_BY(swarm_close) struct swarm s;
    swarm_open_with(&s, through, 2, 1, 0);
    tap_is_int(act_try(&s.member[0]), ROWLOCK_OK, "a lock is held");
    act_renew(&s.member[0]);
    trips_of_second(&s);
    int trips = trips_of_second(&s);
    faultproxy_arm(proxy, 1, (struct fault){.kind = FAULT_CUT, .side = ON_REQUEST});
    tap_is_int(act_renew(&s.member[0]), ROWLOCK_OK, "one connection of two is lost");
    tap_ok(trips_of_second(&s) > trips, "the other connects again before it is used");
    tap_is_int(trips_of_second(&s), trips, "once");
    tap_is_int(rowlock_retry(s.member[0].db, guard_lost, &s.member[0], NULL, NULL), ROWLOCK_ECONN,
               "one is lost in a transaction");
    tap_is_int(act_renew(&s.member[0]), ROWLOCK_OK, "it connects again");
    tap_ok(trips_of_second(&s) > trips, "and so does the other");
}

/* As after a failover to another database. */
static void other_tables(void)
{
    CLOSED_BY(swarm_close) struct swarm s;
    OWNED(session) void *session = raw->open(straight);
    char identity[100];
    swarm_open_with(&s, through, 1, FEW, 0);
    if (!raw->ask(session, "SELECT identity FROM rowlock_meta", identity, sizeof identity))
        raw_failed("no identity", "");
    db_exec(raw, straight, "UPDATE rowlock_meta SET identity = 'another'");
    faultproxy_cut(proxy);
    tap_is_int(swarm_run(&s, act_try, ROWLOCK_ESCHEMA), FEW, "another installation is refused");
    tap_is_int(rows(), 0, "and not touched");
    db_exec(raw, straight, "UPDATE rowlock_meta SET identity = '%s'", identity);
    tap_is_int(swarm_run(&s, act_try, ROWLOCK_OK), FEW, "the first one is not");
}

static int run(const struct raw *this, const char *url)
{
    raw = this;
    straight = url;
    must_install(url);
    if (!(proxy = faultproxy_start(url, &through)))
        return tap_skip_all("the server's URL has no host and port");
    for (int i = 0; i < ACTS; i++) {
        lost_and_found(&acts[i], ON_REQUEST);
        lost_and_found(&acts[i], ON_ANSWER);
        told_to_each(&acts[i]);
    }
    counts_from_sending();
    given_up();
    short_limit(act_renew, "renew", ROWLOCK_EUNCERTAIN);
    short_limit(act_verify, "verify", ROWLOCK_ECONN);
    left_to_pool();
    left_at_the_end();
    no_old_primary();
    other_tables();
    faultproxy_stop(proxy);
    free(through);
    if (raw_is_ours(raw)) {
        restarted();
        away();
    } else {
        tap_skip(1, "the server is not ours to stop");
    }
    return tap_done();
}

EACH_MAIN(run)
