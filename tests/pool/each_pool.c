/* SPDX-License-Identifier: MIT
 *
 * What rowlock/pool.h promises while nothing is lost: steps go together, one fails alone, and no
 * order of names is a deadlock; and how a pool ends. Lost answers are in served_pool_lost.c. */
#include "swarm.h"

#include "crowd.h"
#include "each.h"
#include "faultproxy.h"
#include "pool/pool.h"

enum { FEW = 8, ODD = 3 };

static const struct raw *raw;
static const char *url;

static int rows(void)
{
    return (int)db_int(raw, url, "SELECT count(*) FROM rowlock_locks WHERE name LIKE 'swarm%%'");
}

/* ---- together */

static void goes_together(struct swarm *s, struct faultproxy *proxy, int (*act)(struct member *m),
                          const char *what)
{
    swarm_plug(s);
    swarm_start(s, act);
    swarm_stand(s, s->count);
    if (proxy)
        faultproxy_round_trips(proxy);
    swarm_pull(s);
    tap_is_int(swarm_join(s, ROWLOCK_OK), s->count, "%d threads %s", s->count, what);
    int trips = proxy ? faultproxy_round_trips(proxy) : 0;
    tap_ok(trips <= 1, "in one statement: %d", trips);
}

static void together(void)
{
    OWNED(text) char *through = NULL;
    OWNED(proxy)
    struct faultproxy *proxy = has_server(raw) ? faultproxy_start(url, &through) : NULL;
    CLOSED_BY(swarm_close) struct swarm s;
    swarm_open_with(&s, proxy ? through : url, 1, SWARM_MAX, 0);
    /* Each statement is prepared. */
    tap_is_int(swarm_act(&s, act_try, ROWLOCK_OK), SWARM_MAX, "many threads acquire");
    tap_is_int(swarm_act(&s, act_renew, ROWLOCK_OK), SWARM_MAX, "renew");
    tap_is_int(swarm_act(&s, act_release, ROWLOCK_OK), SWARM_MAX, "and release");
    goes_together(&s, proxy, act_try, "acquire");
    tap_is_int(rows(), SWARM_MAX, "each has a row");
    goes_together(&s, proxy, act_renew, "renew");
    goes_together(&s, proxy, act_release, "release");
    tap_is_int(rows(), 0, "no row is left");
}

/* ---- one fails alone */

/* By the whole key: InnoDB would lock the gaps beside it too. */
static void lock_row(void *session, const char *table)
{
    const char *slot = strcmp(table, "rowlock_locks") == 0 ? "AND slot = 0 " : "";
    raw_run(raw, session, "START TRANSACTION");
    raw_run(raw, session, "SELECT * FROM %s WHERE name = 'swarm %02d' %sFOR UPDATE", table, ODD,
            slot);
}

static void one_is_in_the_way(const char *what, const char *table, int (*act)(struct member *m),
                              int want)
{
    CLOSED_BY(swarm_close) struct swarm s;
    bool tries = act == act_try;
    OWNED(session) void *session = raw->open(url);
    swarm_open(&s, url, 1, FEW);
    if (!tries)
        tap_is_int(swarm_act(&s, act_try, ROWLOCK_OK), FEW, "some hold their locks");
    lock_row(session, table);
    swarm_plug(&s);
    swarm_start(&s, act);
    swarm_stand(&s, FEW);
    swarm_pull(&s);
    struct helper *odd = s.member[ODD].thread;
    if (!tries)
        s.member[ODD].thread = NULL;
    tap_is_int(swarm_join(&s, ROWLOCK_OK), FEW - 1, "%s: the others are done", what);
    if (tries) {
        tap_is_result(s.member[ODD].result, want, "and it is told at once");
        /* A server ends the transaction some time after the connection was closed. */
        raw_run(raw, session, "ROLLBACK");
    } else {
        /* Time: the call that is in the way is mostly tried again by then. Later it is tried
         * again as well. */
        sleep_ms(50);
        OWNED(db) rowlock_db *db = must_join(s.pool, 0, 0);
        OWNED(lock) rowlock_lock *lock = must_lock(db, "another");
        is_result(db, try_lock(lock, SWARM_TTL_MS), ROWLOCK_OK,
                  "and the connection is free for others");
        tap_ok(!s.member[ODD].ended, "while it is tried again");
        raw_run(raw, session, "COMMIT");
        tap_is_result(helper_join(odd), want, "until the other transaction ends");
    }
}

static int act_count(struct member *m)
{
    return rowlock_acquire(m->lock, OPTIONS(acquire, .permits = m->number == ODD ? 5 : 3));
}

static void one_of_another_kind(void)
{
    CLOSED_BY(swarm_close) struct swarm s;
    swarm_open(&s, url, 1, FEW);
    OWNED(db) rowlock_db *other = must_open(url);
    OWNED(lock) rowlock_lock *lock = must_lock(other, rowlock_lock_name(s.member[ODD].lock));
    rowlock_acquire_options how = *OPTIONS(acquire, .permits = 3);
    is_result(other, rowlock_acquire(lock, &how), ROWLOCK_OK, "a lock is held by one of three");
    tap_is_int(swarm_act(&s, act_count, ROWLOCK_OK), FEW - 1, "of many tries");
    tap_is_int(s.member[ODD].result, ROWLOCK_MISMATCH, "one alone is a MISMATCH");
}

static void refuse_one(void)
{
    if (strcmp(raw->name, "postgres") == 0) {
        db_exec(raw, url,
                "CREATE FUNCTION no_swarm() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION 'not here'; END $$");
        db_exec(raw, url,
                "CREATE TRIGGER no_swarm BEFORE INSERT ON rowlock_locks FOR EACH ROW "
                "WHEN (NEW.name = 'swarm %02d') EXECUTE FUNCTION no_swarm()",
                ODD);
    } else if (has_server(raw)) {
        db_exec(raw, url,
                "CREATE TRIGGER no_swarm BEFORE INSERT ON rowlock_locks FOR EACH ROW IF NEW.name = "
                "'swarm %02d' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not here'; END IF",
                ODD);
    } else {
        db_exec(raw, url,
                "CREATE TRIGGER no_swarm BEFORE INSERT ON rowlock_locks "
                "WHEN NEW.name = 'swarm %02d' BEGIN SELECT RAISE(ABORT, 'not here'); END",
                ODD);
    }
}

static void one_is_refused(void)
{
    bool postgres = strcmp(raw->name, "postgres") == 0;
    CLOSED_BY(swarm_close) struct swarm s;
    swarm_open(&s, url, 1, FEW);
    refuse_one();
    tap_is_int(swarm_act(&s, act_try, ROWLOCK_OK), FEW - 1, "of many tries");
    tap_ok(s.member[ODD].result < 0 && s.member[ODD].result != ROWLOCK_EUNCERTAIN,
           "one alone is refused by the server: %s", why(s.member[ODD].db));
    db_exec(raw, url, "DROP TRIGGER no_swarm%s", postgres ? " ON rowlock_locks" : "");
    if (postgres)
        db_exec(raw, url, "DROP FUNCTION no_swarm");
}

static void one_is_late(void)
{
    CLOSED_BY(swarm_close) struct swarm s;
    swarm_open(&s, url, 1, FEW);
    struct member *odd = &s.member[ODD];
    member_close(odd);
    odd->db = must_join(s.pool, 200, -1);
    odd->lock = must_lock(odd->db, "swarm late");
    swarm_plug(&s);
    swarm_start(&s, act_try);
    until(EVENTUALLY(odd->ended), "the time limit of one");
    swarm_stand(&s, FEW - 1);
    swarm_pull(&s);
    tap_is_int(swarm_join(&s, ROWLOCK_OK), FEW - 1, "of many that stand in line");
    tap_is_int(odd->result, ROWLOCK_ECONN, "one leaves it at its own time limit");
    tap_is_int(rows(), FEW - 1, "and its step is not sent");
}

/* ---- no order of names is a deadlock */

enum { CROSSERS = 32, CROSSINGS = 8, CROSSED = 6 };
struct crosser {
    struct helper *thread;
    rowlock_db *db;
    rowlock_lock *lock[CROSSED];
    bool backward;
    int times, odd;
};
/* How many have all of the names. */
static atomic_int have_all;

/* In turn: wait for all of them at once; try each by itself, renew and release what was granted;
 * try all of them at once; try each again. */
static int cross(void *argument)
{
    struct crosser *c = argument;
    rowlock_lock *all[CROSSED];
    const rowlock_acquire_options patiently =
        *OPTIONS(acquire, .wait_ms = ROWLOCK_FOREVER, .ticket_ms = SWARM_TTL_MS);
    for (int i = 0; i < CROSSED; i++)
        all[i] = c->lock[c->backward ? CROSSED - 1 - i : i];
    for (int n = 0; n < c->times; n++) {
        int got = ROWLOCK_OK;
        if (n % 2 == 0) {
            got = rowlock_acquire_all(all, CROSSED, n % 4 ? NULL : &patiently, NULL);
            c->odd += got == ROWLOCK_OK ? have_all++ != 0 : n % 4 == 0;
            have_all -= got == ROWLOCK_OK;
        }
        for (int i = 0; i < CROSSED && n % 2; i++) {
            int one = try_lock(all[i], SWARM_TTL_MS);
            got = one < 0 ? one : got;
        }
        for (int i = 0; i < CROSSED; i++)
            if (rowlock_lock_token(all[i]) &&
                (rowlock_renew(all[i], 0) != ROWLOCK_OK || rowlock_release(all[i]) != ROWLOCK_OK))
                c->odd++;
        c->odd += got != ROWLOCK_OK && got != ROWLOCK_BUSY;
        if (c->odd > 0)
            tap_note("%s", why(c->db));
    }
    return 0;
}

static long long deadlocks(void)
{
    if (strcmp(raw->name, "postgres") == 0)
        return db_int(raw, url, "SELECT sum(deadlocks) FROM pg_stat_database");
    return db_int(raw, url,
                  "SELECT count FROM information_schema.innodb_metrics WHERE name = "
                  "'lock_deadlocks'");
}

static void crossing(void)
{
    static struct crosser c[CROSSERS];
    long long before = has_server(raw) ? deadlocks() : 0;
    rowlock_pool *pool[2] = {must_pool(url, 2, NULL), must_pool(url, 2, NULL)};
    int odd = 0;
    for (int i = 0; i < CROSSERS; i++) {
        c[i] = (struct crosser){.backward = i % 2};
        c[i].times = getenv("ROWLOCK_TEST_LONG") ? 10 * CROSSINGS : CROSSINGS;
        c[i].db = i % 8 == 7 ? must_open(url) : must_join(pool[i / 2 % 2], 0, 0);
        for (int k = 0; k < CROSSED; k++)
            c[i].lock[k] = must_lock(c[i].db, (const char[]){'c', (char)('0' + k), '\0'});
    }
    for (int i = 0; i < CROSSERS; i++)
        c[i].thread = helper_start(cross, &c[i]);
    for (int i = 0; i < CROSSERS; i++) {
        helper_join(c[i].thread);
        odd += c[i].odd;
        close_each_lock(c[i].lock, CROSSED);
        rowlock_db_close(c[i].db);
    }
    tap_is_int(
        odd, 0,
        "two pools and single handles take the same names in opposite orders, waiting or not");
    rowlock_pool_close(pool[0]);
    rowlock_pool_close(pool[1]);
    /* PostgreSQL's sessions tell their counts at their end. */
    if (has_server(raw))
        tap_is_int(deadlocks() - before, 0, "and the server counts no deadlock");
}

/* ---- the end of handles and pools */

static int in_a_child(void *argument)
{
    struct swarm *s = argument;
    rowlock_db *db = NULL;
    int bad = rowlock_renew(s->member[0].lock, 0) != ROWLOCK_EMISUSE;
    bad += rowlock_db_open(NULL, OPTIONS(db, .pool = s->pool), &db, NULL) != ROWLOCK_EMISUSE;
    rowlock_lock_close(s->member[0].lock);
    for (int i = 0; i < s->count; i++)
        rowlock_db_close(s->member[i].db);
    rowlock_pool_close(s->pool);
    return bad;
}

static void forked(void)
{
    CLOSED_BY(swarm_close) struct swarm s;
    swarm_open(&s, url, 1, FEW);
    tap_is_int(swarm_act(&s, act_try, ROWLOCK_OK), FEW, "some hold their locks");
    tap_is_int(child_join(child_start(in_a_child, &s)), 0,
               "a child may close handles and pool, and do nothing else");
    swarm_plug(&s);
    swarm_start(&s, act_renew);
    swarm_stand(&s, FEW);
    tap_is_int(child_join(child_start(in_a_child, &s)), 0, "also while steps are under way");
    swarm_pull(&s);
    tap_is_int(swarm_join(&s, ROWLOCK_OK), FEW, "the parent goes on");
    tap_is_int(swarm_act(&s, act_release, ROWLOCK_OK), FEW, "with all it holds");
}

static void closed_first(void)
{
    struct swarm s;
    rowlock_db *db = NULL;
    swarm_open(&s, url, 1, FEW);
    swarm_plug(&s);
    swarm_start(&s, act_try);
    swarm_stand(&s, FEW);
    rowlock_pool_close(s.pool);
    tap_is_int(rowlock_db_open(NULL, OPTIONS(db, .pool = s.pool), &db, NULL), ROWLOCK_EMISUSE,
               "a pool that is closed takes no handle");
    swarm_pull(&s);
    tap_is_int(swarm_join(&s, ROWLOCK_OK), FEW, "the steps under way are done");
    tap_is_int(swarm_act(&s, act_release, ROWLOCK_OK), FEW, "and others begin");
    s.pool = NULL;
    swarm_close(&s);
    tap_is_int(rows(), 0, "the last handle ends it");
    rowlock_pool_close(must_pool(url, 3, NULL));
}

/* ---- waits */

static rowlock_db *to_cancel;

static void cancel(int signal)
{
    rowlock_cancel(to_cancel);
}

static int wait_long(void *argument)
{
    return wait_lock(argument, SWARM_TTL_MS, ROWLOCK_FOREVER);
}

static bool has_ticket(void)
{
    return db_int(raw, url, "SELECT count(*) FROM rowlock_waiters WHERE name = 'x'") > 0;
}

static bool step(rowlock_lock *wanted, int timeout_ms)
{
    struct pollfd fd = {.fd = rowlock_acquire_fd(wanted), .events = POLLIN};
    return poll(&fd, 1, timeout_ms) > 0 && rowlock_acquire_step(wanted) != ROWLOCK_PENDING;
}

/* The waiter has got all answers, and its time has not come. */
static bool rests(rowlock_pool *pool, rowlock_lock *wanted)
{
    pthread_mutex_lock(&pool->mutex);
    bool waits = pool->waiters > 0 && pool->busy == 0;
    pthread_mutex_unlock(&pool->mutex);
    struct pollfd fd = {.fd = rowlock_acquire_fd(wanted), .events = POLLIN};
    bool rests = waits && poll(&fd, 1, 0) == 0;
    if (!rests)
        step(wanted, 0);
    return rests;
}

static void waits(void)
{
    OWNED(pool) rowlock_pool *pool = must_pool(url, 2, NULL);
    OWNED(db) rowlock_db *holder = must_join(pool, 0, 0), *waiter = must_join(pool, 0, 0);
    OWNED(lock) rowlock_lock *held = must_lock(holder, "x"), *wanted = must_lock(waiter, "x");
    rowlock_acquire_options how =
        *OPTIONS(acquire, .wait_ms = ROWLOCK_FOREVER, .ticket_ms = SWARM_TTL_MS);
    is_result(holder, try_lock(held, SWARM_TTL_MS), ROWLOCK_OK, "a lock is held");
    for (int by_signal = 0; by_signal < 2; by_signal++) {
        struct helper *thread = helper_start(wait_long, wanted);
        until(EVENTUALLY(has_ticket()), "it waits");
        to_cancel = waiter;
        signal(SIGUSR1, cancel);
        if (by_signal)
            raise(SIGUSR1);
        else
            rowlock_cancel(waiter);
        is_result(waiter, helper_join(thread), ROWLOCK_CANCELLED, "a wait is cancelled by %s",
                  by_signal ? "a signal handler" : "another thread");
        tap_ok(!has_ticket(), "and leaves no ticket");
    }
    /* No waiter polls from here on. */
    set_polls(ONLY_WAKEUPS);
    is_result(waiter, rowlock_acquire_start(wanted, &how), ROWLOCK_OK, "another waits for it");
    until(EVENTUALLY(rests(pool, wanted)), "it waits");
    is_result(holder, rowlock_release(held), ROWLOCK_OK, "released");
    tap_ok(EVENTUALLY(step(wanted, 1000)), "a release through the same pool wakes it");
    tap_ok(rowlock_lock_token(wanted) > 0, "and it is granted the lock");
    set_polls(0);
}

static void kept(void)
{
    OWNED(pool) rowlock_pool *pool = must_pool(url, 2, NULL);
    OWNED(db) rowlock_db *db = must_join(pool, 0, 0);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "kept");
    OWNED(keeper) rowlock_keeper *keeper = NULL;
    tap_is_int(rowlock_keeper_open(db, &keeper), ROWLOCK_OK, "a pool's keeper");
    until(renewed_by(db, lock, keeper), "is given a lock, and renews it");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "which it renews until it is released");
    rowlock_pool_close(pool);
    pool = NULL;
    is_result(db, rowlock_acquire(lock, OPTIONS(acquire, .keep = 1)), ROWLOCK_OK,
              "a handle of a closed pool keeps a lock, too");
}

/* ---- transactions */

struct attempts {
    rowlock_pool *pool;
    rowlock_db *second;
    int second_said, lock_said;
};

static int nothing(void *context, const rowlock_attempt *attempt)
{
    return ROWLOCK_OK;
}

static int while_another(void *context, const rowlock_attempt *attempt)
{
    struct attempts *a = context;
    OWNED(db) rowlock_db *third = must_join(a->pool, 0, 0);
    OWNED(lock) rowlock_lock *lock = must_lock(third, "beside");
    rowlock_retry_options once = *OPTIONS(retry, .deadline_ms = 300);
    a->second_said = rowlock_retry(a->second, nothing, NULL, &once, NULL);
    a->lock_said = try_lock(lock, SWARM_TTL_MS);
    return ROWLOCK_OK;
}

static void transactions(void)
{
    struct attempts a = {.pool = must_pool(url, 1, NULL)};
    rowlock_db *db = must_join(a.pool, 0, 0);
    is_result(db, rowlock_retry(db, nothing, NULL, NULL, NULL), ROWLOCK_EUNSUPPORTED,
              "a pool of one connection has none for a transaction");
    rowlock_lock *both[] = {must_lock(db, "one of two"), must_lock(db, "the other")};
    is_result(db, rowlock_acquire_all(both, 2, NULL, NULL), ROWLOCK_OK,
              "but two locks together need no other");
    close_locks(both[0], both[1]);
    rowlock_db_close(db);
    rowlock_pool_close(a.pool);
    a.pool = must_pool(url, 2, NULL);
    db = must_join(a.pool, 0, 0);
    a.second = must_join(a.pool, 200, 0);
    is_result(db, rowlock_retry(db, nothing, NULL, NULL, NULL), ROWLOCK_OK, "of two it has one");
    if (has_server(raw)) {
        is_result(db, rowlock_retry(db, while_another, &a, NULL, NULL), ROWLOCK_OK,
                  "during a transaction");
        tap_ok(a.second_said == ROWLOCK_CONFLICT || a.second_said == ROWLOCK_ESERVER,
               "another waits for its turn, up to its time limit: %s",
               rowlock_result_name(a.second_said));
        tap_is_int(a.lock_said, ROWLOCK_OK, "and locks go on");
    }
    a.second->statement_us = slow_ms(SWARM_PATIENCE_MS) * 1000;
    is_result(a.second, rowlock_retry(a.second, nothing, NULL, NULL, NULL), ROWLOCK_OK,
              "then it is its turn");
    close_dbs(db, a.second);
    rowlock_pool_close(a.pool);
}

/* ---- the tables come later */

static void installed_later(void)
{
    OWNED(pool) rowlock_pool *pool = must_pool(url, 2, "later_");
    OWNED(db) rowlock_db *db = must_join(pool, 0, 0), *other = must_join(pool, 0, 0);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "x"), *others = must_lock(other, "x");
    is_result(db, try_lock(lock, SWARM_TTL_MS), ROWLOCK_ESCHEMA, "no tables, no lock");
    is_result(db, rowlock_install(db), ROWLOCK_OK, "a handle of the pool installs them");
    is_result(db, try_lock(lock, SWARM_TTL_MS), ROWLOCK_OK, "and acquires");
    is_result(other, try_lock(others, SWARM_TTL_MS), ROWLOCK_BUSY, "which another handle sees");
}

static int run(const struct raw *this, const char *given)
{
    raw = this;
    url = given;
    must_install(url);
    together();
    if (has_server(raw)) {
        one_is_in_the_way("the row of one is locked, and it releases", "rowlock_locks", act_release,
                          ROWLOCK_OK);
        one_is_in_the_way("the row of one is locked, and it renews", "rowlock_locks", act_renew,
                          ROWLOCK_OK);
        one_is_in_the_way("the token row of one is locked", "rowlock_tokens", act_try,
                          ROWLOCK_BUSY);
    }
    one_of_another_kind();
    one_is_refused();
    one_is_late();
    crossing();
    forked();
    closed_first();
    waits();
    kept();
    transactions();
    installed_later();
    return tap_done();
}

EACH_MAIN(run)
