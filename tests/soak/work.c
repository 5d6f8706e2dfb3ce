/* SPDX-License-Identifier: MIT
 *
 * The clients of the soak. Each is a thread with a connection of its own. */
#include "soak.h"

enum {
    CHURNED = 100000,
    HOT_NAMES = 2,
    KEPT = 100,
    /* one of so many grants is abandoned, as by a client that was killed */
    ABANDONED = 50,
    SHORT_MS = 1000,
    KEPT_MS = 10000,
    WAIT_MS = 5000,
    /* token counters that were not used for so long are forgotten */
    IDLE_MS = 5000,
    NAME_ROOM = 40
};

static struct client {
    pthread_t thread;
    void (*run)(struct client *client);
    const struct site *site;
    rowlock_db *db;
    unsigned seed;
} clients[32];
static int client_count;
static rowlock_pool *pool;

static atomic_bool stopping, failed;
static char failure[1200];
static atomic_long ours, bare;

/* The first failure is kept, and ends the soak. */
static void fail(struct client *c, const char *what, int result)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    bool first = false;
    stopping = true;
    if (!atomic_compare_exchange_strong(&failed, &first, true))
        return;
    err = *rowlock_db_error(c->db);
    snprintf(failure, sizeof failure, "%s: %s: %s: %s", what, rowlock_result_name(result),
             err.action, err.text);
}

static rowlock_lock *open_lock(struct client *c, const char *kind, int number)
{
    rowlock_lock *lock = NULL;
    char name[NAME_ROOM];
    snprintf(name, sizeof name, "%s %d", kind, number);
    int result = rowlock_lock_open(c->db, name, &lock);
    if (result != ROWLOCK_OK)
        fail(c, "open", result);
    return lock;
}

/* Counts the grant. False: another holds the lock. */
static bool acquire(struct client *c, rowlock_lock *lock, const rowlock_acquire_options *options)
{
    int result = rowlock_acquire(lock, options);
    ours += result == ROWLOCK_OK;
    if (result != ROWLOCK_OK && result != ROWLOCK_BUSY && result != ROWLOCK_TIMEOUT)
        fail(c, "acquire", result);
    return result == ROWLOCK_OK;
}

static void release(struct client *c, rowlock_lock *lock)
{
    int result = rowlock_release(lock);
    if (result != ROWLOCK_OK)
        fail(c, "release", result);
}

/* ---- what a client does, until the end */

static void churn(struct client *c)
{
    while (!stopping) {
        bool abandons = rand_r(&c->seed) % ABANDONED == 0;
        rowlock_lock *lock = open_lock(c, "name", rand_r(&c->seed) % CHURNED);
        bool held =
            lock && acquire(c, lock, OPTIONS(acquire, .ttl_ms = abandons ? SHORT_MS : LEASE_MS));
        if (held && abandons)
            rowlock_forget(lock);
        else if (held)
            release(c, lock);
        rowlock_lock_close(lock);
    }
}

static void wait_in_queues(struct client *c)
{
    rowlock_acquire_options options = *OPTIONS(acquire, .ttl_ms = LEASE_MS, .wait_ms = WAIT_MS);
    while (!stopping) {
        rowlock_lock *lock = open_lock(c, "hot", rand_r(&c->seed) % HOT_NAMES);
        if (lock && acquire(c, lock, &options)) {
            sleep_s(0.002);
            release(c, lock);
        }
        rowlock_lock_close(lock);
    }
}

/* Another lock in the place of this one. */
static void exchange(struct client *c, rowlock_lock **place)
{
    rowlock_acquire_options options =
        *OPTIONS(acquire, .ttl_ms = KEPT_MS, .wait_ms = WAIT_MS, .keep = 1);
    if (*place && rowlock_lock_state(*place) != ROWLOCK_STATE_HELD)
        fail(c, "a kept lock is not held any more", ROWLOCK_LOST);
    rowlock_lock_close(*place);
    *place = open_lock(c, "kept", rand_r(&c->seed) % CHURNED);
    if (*place && !acquire(c, *place, &options)) {
        rowlock_lock_close(*place);
        *place = NULL;
    }
}

static void keep(struct client *c)
{
    rowlock_lock *locks[KEPT] = {NULL};
    while (!stopping) {
        exchange(c, &locks[rand_r(&c->seed) % KEPT]);
        sleep_s(0.02);
    }
    for (int i = 0; i < KEPT; i++)
        rowlock_lock_close(locks[i]);
}

static void sweep_once(struct client *c)
{
    int result = rowlock_sweep(c->db, OPTIONS(sweep, .idle_ms = IDLE_MS), NULL);
    if (result != ROWLOCK_OK)
        fail(c, "sweep", result);
}

static void sweep(struct client *c)
{
    while (!stopping) {
        sweep_once(c);
        sleep_s(0.5);
    }
}

/* Not rowlock: what is compared. */
static void run_bare(struct client *c)
{
    const struct way *way = hand_way(c->site->hand, "bare", 0);
    struct session *s = hand_open(&c->site->theirs, "bare");
    char name[NAME_ROOM];
    while (!stopping) {
        snprintf(name, sizeof name, "name %d", rand_r(&c->seed) % CHURNED);
        hand_set_name(s, name);
        hand_run(s, way);
        bare++;
    }
    hand_close(s);
}

/* ---- starting and ending */

static void *run_client(void *argument)
{
    struct client *c = argument;
    c->run(c);
    return NULL;
}

static void start(const struct site *site, int count, bool pooled,
                  void (*run)(struct client *client))
{
    for (int i = 0; i < count; i++) {
        struct client *c = &clients[client_count];
        *c = (struct client){.run = run, .site = site, .seed = (unsigned)client_count + 1};
        c->db = pooled ? ours_connect_pooled(pool) : ours_connect(&site->ours);
        if (pthread_create(&c->thread, NULL, run_client, c) != 0)
            die("cannot start a thread");
        client_count++;
    }
}

void work_start(const struct site *site)
{
    stopping = failed = false;
    ours = bare = 0;
    client_count = 0;
    pool = ours_open_pool(&site->ours);
    start(site, 2, false, churn);
    start(site, 16, true, churn);
    start(site, 2, false, wait_in_queues);
    start(site, 2, true, wait_in_queues);
    start(site, 1, false, keep);
    start(site, 1, false, sweep);
    start(site, 1, false, run_bare);
}

/* The last leases of abandoned grants must be over before this. */
static void expect_nothing(struct client *c)
{
    sleep_s(SHORT_MS / 1000.0 + 0.5);
    sweep_once(c);
    struct session *observer = hand_open(&c->site->ours, "observer");
    int64_t rows = hand_number(observer, "rows left");
    hand_close(observer);
    if (rows > 0 && !failed) {
        failed = true;
        snprintf(failure, sizeof failure, "%lld locks and tickets were left behind",
                 (long long)rows);
    }
}

void work_stop(void)
{
    stopping = true;
    for (int i = 0; i < client_count; i++)
        pthread_join(clients[i].thread, NULL);
    expect_nothing(&clients[0]);
    for (int i = 0; i < client_count; i++)
        rowlock_db_close(clients[i].db);
    rowlock_pool_close(pool);
}

int64_t work_ours(void)
{
    return ours;
}

int64_t work_bare(void)
{
    return bare;
}

const char *work_failure(void)
{
    return failed ? failure : NULL;
}
