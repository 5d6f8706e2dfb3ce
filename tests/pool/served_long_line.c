/* SPDX-License-Identifier: MIT
 *
 * Many handles of a pool wait for one lock. Their tickets must not keep out what moves the line: a
 * release wakes the next, which needs few statements, and a ticket is renewed without a look at all
 * others. */
#include "swarm.h"

#include "crowd.h"
#include "each.h"
#include "faultproxy.h"
#include "loads.h"

enum {
    LINE_BRIEF = 300,
    LINE_WHOLE = 5000,
    /* Tickets of others. */
    OTHERS = 2048,
    RENEWED = 20,
    /* A grant, and a release. */
    TRIPS_EACH = 3,
    SLICE_MS = 100
};

static const struct raw *raw;
static const char *url;
static int count, granted;
static rowlock_lock *locks[LINE_WHOLE];
static rowlock_db *dbs[LINE_WHOLE];
static bool ended[LINE_WHOLE];

static void start_all(rowlock_pool *pool)
{
    rowlock_acquire_options how = *OPTIONS(acquire, .wait_ms = ROWLOCK_FOREVER,
                                           .ttl_ms = SWARM_TTL_MS, .ticket_ms = SWARM_TTL_MS);
    for (int i = 0; i < count; i++) {
        dbs[i] = must_join(pool, 0, 0);
        locks[i] = must_lock(dbs[i], "line");
        if (rowlock_acquire_start(locks[i], &how) != ROWLOCK_OK)
            raw_failed("an acquire could not be started", "");
    }
}

/* Each one that is granted the lock releases it. False: none had to step for a while. */
static bool step_each(void)
{
    static struct pollfd fds[LINE_WHOLE];
    for (int i = 0; i < count; i++)
        fds[i] =
            (struct pollfd){.fd = ended[i] ? -1 : rowlock_acquire_fd(locks[i]), .events = POLLIN};
    if (poll(fds, (nfds_t)count, SLICE_MS) <= 0)
        return false;
    for (int i = 0; i < count; i++) {
        int result = fds[i].revents ? rowlock_acquire_step(locks[i]) : ROWLOCK_PENDING;
        if (result == ROWLOCK_PENDING)
            continue;
        ended[i] = true;
        granted += result == ROWLOCK_OK && rowlock_release(locks[i]) == ROWLOCK_OK;
    }
    return true;
}

static bool all_wait(void)
{
    while (step_each())
        ;
    return db_int(raw, url, "SELECT count(*) FROM rowlock_waiters") == count;
}

static bool all_granted(void)
{
    while (granted < count && step_each())
        ;
    return granted == count;
}

static void drains(void)
{
    OWNED(text) char *through = NULL;
    OWNED(proxy) struct faultproxy *proxy = faultproxy_start(url, &through);
    if (!proxy)
        raw_failed("the server's URL has no host and port", url);
    OWNED(pool) rowlock_pool *pool = must_pool(through, 2, NULL);
    OWNED(db) rowlock_db *db = must_join(pool, 0, 0);
    OWNED(lock) rowlock_lock *holder = must_lock(db, "line");
    count = load_count(LINE_BRIEF, LINE_WHOLE, 50);
    is_result(db, try_lock(holder, SWARM_TTL_MS), ROWLOCK_OK, "a lock of a pool is held");
    set_polls(ONLY_WAKEUPS);
    start_all(pool);
    until(EVENTUALLY(all_wait()), "all wait");
    faultproxy_round_trips(proxy);
    is_result(db, rowlock_release(holder), ROWLOCK_OK, "it is released");
    until(EVENTUALLY(all_granted()),
          "each of many handles of the same pool that waited for it gets it");
    int trips = faultproxy_round_trips(proxy);
    tap_ok(trips <= TRIPS_EACH * count, "%d handovers need at most %d round trips each: %d", count,
           TRIPS_EACH, trips);
    set_polls(0);
    for (int i = 0; i < count; i++) {
        rowlock_lock_close(locks[i]);
        rowlock_db_close(dbs[i]);
    }
}

/* ---- rows that a renewal reads */

static long long rows_read(void *session)
{
    if (raw == &raw_postgres)
        return raw_int(raw, session,
                       "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_xact_user_tables "
                       "WHERE relname = 'rowlock_waiters'");
    bool maria = raw_int(raw, session, "SELECT version() LIKE '%%MariaDB%%'");
    return raw_int(raw, session,
                   "SELECT sum(variable_value) FROM %s.session_status "
                   "WHERE variable_name LIKE 'Handler\\_read\\_%%'",
                   maria ? "information_schema" : "performance_schema");
}

static void renew_the_last(void *session)
{
    if (raw == &raw_postgres) {
        raw_run(raw, session,
                "DO $$ BEGIN PERFORM rowlock_enqueue('long', 0, 'o', n, 60000000, n, '', '', 1, "
                "'', '', false) FROM generate_series(%d, %d) n; END $$",
                OTHERS - RENEWED + 1, OTHERS);
        return;
    }
    char pack[RENEWED * 80] = "";
    for (int n = OTHERS - RENEWED + 1; n <= OTHERS; n++)
        snprintf(pack + strlen(pack), sizeof pack - strlen(pack),
                 "%s[\"6C6F6E67\",0,\"6F\",%d,60000000,\"\",1,\"\",\"\",%d,0,0,60000000,\"\"]",
                 pack[0] ? "," : "", n, n);
    raw_run(raw, session, "CALL rowlock_enqueue_many('[%s]')", pack);
}

static void renews(void)
{
    OWNED(session) void *session = raw->open(url);
    long long before, now_us = 4000000000000000;
    raw_run(raw, session,
            "INSERT INTO rowlock_waiters (name, ticket, request, permits, owner, since, expires) "
            "VALUES ('long', 1, 1, 0, 'o', 1, %lld)",
            now_us);
    for (int n = 1; n < OTHERS; n *= 2)
        raw_run(raw, session,
                "INSERT INTO rowlock_waiters (name, ticket, request, permits, owner, since, "
                "expires) SELECT name, ticket + %d, request + %d, 0, 'o', 1, expires "
                "FROM rowlock_waiters WHERE name = 'long'",
                n, n);
    raw_run(raw, session, raw == &raw_postgres ? "BEGIN" : "DO 1");
    before = rows_read(session);
    renew_the_last(session);
    long long read = rows_read(session) - before;
    tap_ok(read < RENEWED * OTHERS / 2,
           "%d tickets behind %d others are renewed without reading those each time: %lld rows",
           RENEWED, OTHERS - RENEWED, read);
}

static int run(const struct raw *this, const char *given)
{
    raw = this;
    url = given;
    must_install(url);
    renews();
    db_exec(raw, url, "DELETE FROM rowlock_waiters");
    drains();
    return tap_done();
}

EACH_MAIN(run)
