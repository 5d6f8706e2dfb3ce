/* SPDX-License-Identifier: MIT
 *
 * Thousands of threads wait for as many locks that another program holds. They cost the server at
 * most three connections, and few statements, which a proxy counts. */
#include "swarm.h"

#include "each.h"
#include "faultproxy.h"
#include "loads.h"

enum {
    CROWD = 2000,
    BRIEF = 600,
    CHUNK = 500,
    COUNTED_MS = 1000,
    WHOLE_COUNTED_MS = 3000,
    /* Round trips. */
    ENOUGH = 8,
    /* Statements of the whole crowd. */
    MOST_A_SECOND = 100,
    STACK = 256 * 1024
};

static const struct raw *raw;
static const char *url;
static int count;

struct waiter {
    pthread_t thread;
    rowlock_pool *pool;
    int number, result;
};

static rowlock_lock *open_lock(rowlock_db *db, int number)
{
    return must_lock(db, textf("crowd %04d", number));
}

static void *wait_in_vain(void *context)
{
    struct waiter *w = context;
    OWNED(db) rowlock_db *db = must_join(w->pool, 0, 0);
    OWNED(lock) rowlock_lock *lock = open_lock(db, w->number);
    w->result = wait_lock(lock, SWARM_TTL_MS, ROWLOCK_FOREVER);
    if (w->result == ROWLOCK_OK)
        w->result = rowlock_release(lock);
    return NULL;
}

static void start_all(struct waiter *waiters, rowlock_pool *pool)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    for (int i = 0; i < count; i++) {
        waiters[i] = (struct waiter){.pool = pool, .number = i};
        if (pthread_create(&waiters[i].thread, &small, wait_in_vain, &waiters[i]) != 0)
            raw_failed("no thread", "");
    }
    pthread_attr_destroy(&small);
}

static int tickets(void)
{
    return (int)db_int(raw, url, "SELECT count(*) FROM rowlock_waiters WHERE name LIKE 'crowd %%'");
}

/* 0 on other servers. */
static long long procedures_called(void)
{
    if (raw == &raw_postgres || !db_int(raw, url, "SELECT version() LIKE '%%MariaDB%%'"))
        return 0;
    return db_int(raw, url,
                  "SELECT variable_value FROM information_schema.global_status "
                  "WHERE variable_name = 'COM_CALL_PROCEDURE'");
}

static int run(const struct raw *this, const char *given)
{
    static struct waiter waiters[CROWD];
    static rowlock_lock *held[CROWD];
    OWNED(text) char *through = NULL;
    int done = 0;
    raw = this;
    url = given;
    count = load_count(BRIEF, CROWD, 100);
    int counted_ms = load_is_long() ? WHOLE_COUNTED_MS : COUNTED_MS;
    OWNED(proxy) struct faultproxy *proxy = faultproxy_start(url, &through);
    if (!proxy)
        return tap_skip_all("the server's URL has no host and port");
    must_install(url);
    rowlock_db *holder = must_open(url);
    rowlock_acquire_options how = *OPTIONS(acquire, .ttl_ms = SWARM_TTL_MS);
    for (int i = 0; i < count; i++)
        held[i] = open_lock(holder, i);
    for (int i = 0; i < count; i += CHUNK) {
        size_t some = (size_t)(count - i < CHUNK ? count - i : CHUNK);
        is_result(holder, rowlock_acquire_all(&held[i], some, &how, NULL), ROWLOCK_OK,
                  "another program holds many locks");
    }
    long long before = raw_sessions(raw, url);
    OWNED(pool) rowlock_pool *pool = must_pool(through, 2, NULL);
    start_all(waiters, pool);
    until(EVENTUALLY(tickets() == count), "all wait");

    long long called = 0;
    int64_t took_ms = 0;
    int trips = 0;
    /* One quiet time is enough. First each waiter looks once more at its lock, and the server counts
     * the calls of other programs too. */
    int64_t began_ms = clock_ms();
    do {
        long long earlier = procedures_called();
        int64_t begin_ms = clock_ms();
        faultproxy_round_trips(proxy);
        for (trips = 0; trips < ENOUGH && !load_is_hopeless(began_ms, 0);) {
            sleep_ms(counted_ms);
            trips += faultproxy_round_trips(proxy);
        }
        took_ms = clock_ms() - begin_ms;
        called = procedures_called() - earlier;
    } while ((trips * 1000LL >= MOST_A_SECOND * took_ms || called >= trips / 2) &&
             !load_is_hopeless(began_ms, 0));
    tap_ok(trips * 1000LL < MOST_A_SECOND * took_ms,
           "%d waiters need less than %d statements a second: %lld", count, MOST_A_SECOND,
           trips * 1000LL / (long long)took_ms);
    tap_ok(called < trips / 2, "and most of them only read: %d, of which %lld call a procedure",
           trips, called);
    tap_ok(EVENTUALLY(raw_sessions(raw, url) - before <= 3), "and at most three connections: %lld",
           raw_sessions(raw, url) - before);
    rowlock_db_close(holder);
    for (int i = 0; i < count; i++) {
        pthread_join(waiters[i].thread, NULL);
        done += waiters[i].result == ROWLOCK_OK;
        rowlock_lock_close(held[i]);
    }
    tap_is_int(done, count, "each gets its lock when it is released");
    tap_is_int(tickets(), 0, "and leaves no ticket");
    return tap_done();
}

EACH_MAIN(run)
