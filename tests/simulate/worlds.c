/* SPDX-License-Identifier: MIT
 * The worlds: what clients do in them, and what happens to clients, servers and the network.
 *
 * usage: simulate WORLD SEED GRANTS
 *   WORLD   one      plain handles of one database, which renew by themselves
 *           keepers  the same, renewed by a keeper of each client
 *           pool     clients whose threads share a pool
 *           quorum   locks over three databases
 *   TRACE=file in the environment: all that is told, a line each */
#include "simulate.h"

#include <inttypes.h>
#include <rowlock/admin.h>
#include <rowlock/pool.h>
#include <rowlock/quorum.h>
#include <rowlock/tx.h>
#include <rowlock/versions.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum world { ONE, KEEPERS, POOL, QUORUM };
static const char *const world_names[] = {"one", "keepers", "pool", "quorum"};

enum { CLIENTS_MOST = 64, CALM_MOST = 900 * SECOND };

static enum world world;
static int servers, clients, threads, names;
static char url[1000];
/* Faults are over: each client gets one more grant, and ends. */
static bool calm, over;
static int64_t wanted, calm_since;
static int running;

struct client {
    struct process process;
    rowlock_pool *pool;
    rowlock_keeper *keeper;
    rowlock_db *keeper_db;
    /* Its threads that have not ended. */
    int threads;
};

/* A thread of a client, with a handle. */
struct thread {
    struct client *client;
    rowlock_db *db;
    rowlock_lock *lock;
    struct holding holding;
    char name[40];
    bool served;
};

/* What this client may be told without a fault of the library. */
static bool is_outage(int result)
{
    return result == ROWLOCK_ECONN || result == ROWLOCK_EUNCERTAIN || result == ROWLOCK_EREADONLY;
}

static void expect(const struct thread *t, const char *call, int result, bool fine)
{
    if (!fine && !is_outage(result) && result != ROWLOCK_ESERVER)
        violation("client %d: %s of '%s' is %s: %s", t->client->process.number, call, t->name,
                  rowlock_result_name(result), rowlock_db_error(t->db)->text);
}

/* A call that began then must be over after so long, and 70 s: it may send two steps, and the second
 * gives a ticket back. Each may be lost, wait for a transaction of a client that is away, and be
 * sent again for reconnect_ms. A client that stood still meanwhile may take longer. */
static void must_be_over(const struct thread *t, const char *call, int64_t began, int64_t wait_ms)
{
    int64_t took = sim_now() - began;
    if (t->client->process.stopped_until < began && wait_ms >= 0 &&
        took > wait_ms * MILLISECOND + 70 * SECOND)
        violation("client %d: %s of '%s' took %" PRId64 " s", t->client->process.number, call,
                  t->name, took / SECOND);
}

/* The same for a call of a holder, which trusted its lease for so long before. No other client can
 * have got the lock by then, unless an earlier attempt of this call has released it. */
static void check_holder(const struct thread *t, const char *call, int64_t began, int64_t left_ms,
                         int result)
{
    must_be_over(t, call, began, 0);
    if (result == ROWLOCK_LOST && !rowlock_db_error(t->db)->answer_lost &&
        (left_ms - left_ms / 1000) * MILLISECOND > sim_now() - began)
        violation("client %d: %s of '%s' is LOST, and its lease should have lasted for %" PRId64
                  " ms more",
                  t->client->process.number, call, t->name, left_ms);
}

static bool close_handles(struct thread *t)
{
    rowlock_lock_close(t->lock);
    rowlock_db_close(t->db);
    t->lock = NULL;
    t->db = NULL;
    return false;
}

/* False: the servers are away. */
static bool open_handles(struct thread *t)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    options.pool = t->client->pool;
    int result = rowlock_db_open(options.pool ? NULL : url, &options, &t->db, &err);
    if (result == ROWLOCK_OK)
        result = rowlock_lock_open(t->db, t->name, &t->lock);
    if (result == ROWLOCK_OK)
        return true;
    if (!is_outage(result))
        violation("client %d cannot open: %s", t->client->process.number, err.text);
    return close_handles(t);
}

/* ---- what a holder does */

static int write_guarded(void *context, const rowlock_attempt *attempt)
{
    struct thread *t = context;
    int result = rowlock_guard(t->lock, t->db);
    if (result != ROWLOCK_OK)
        return result;
    network_guard(t->db, t->name, t->holding.token);
    result = rowlock_fence(t->db, t->name, t->holding.token);
    if (result == ROWLOCK_STALE)
        violation("client %d: token %" PRId64 " of '%s' is guarded, and a newer one has written",
                  t->client->process.number, t->holding.token, t->name);
    return result;
}

static int hold_on(struct thread *t)
{
    int result = ROWLOCK_OK;
    int who = t->client->process.number;
    int64_t began = sim_now(), left_ms = rowlock_lock_remaining_ms(t->lock), ttl_ms;
    switch (sim_random(world == QUORUM || world == POOL ? 4 : 6)) {
    case 0:
        sim_sleep(sim_spread(100, 4 * t->holding.ttl_ms * MILLISECOND));
        return ROWLOCK_OK;
    case 1:
        result = rowlock_verify(t->lock);
        check_holder(t, "verify", began, left_ms, result);
        tell(who, "verifies", t->name, t->holding.token, result);
        expect(t, "verify", result, result >= 0);
        break;
    case 2:
        result = rowlock_acquire(t->lock, NULL);
        tell(who, "enters again", t->name, t->holding.token, result);
        expect(t, "re-entry", result,
               result == ROWLOCK_LAPSED || result == ROWLOCK_LOST || !result);
        if (result >= 0 && result != ROWLOCK_LOST && rowlock_release(t->lock) != ROWLOCK_OK)
            violation("client %d: re-entry cannot be left", who);
        break;
    case 3:
        ttl_ms = sim_random(4) ? 0 : 500 + sim_random(20000);
        left_ms = ttl_ms && ttl_ms < left_ms ? ttl_ms : left_ms;
        result = rowlock_renew(t->lock, ttl_ms);
        check_holder(t, "renew", began, left_ms, result);
        tell(who, "renews", t->name, t->holding.token, result);
        expect(t, "renew", result, result >= 0 && result <= ROWLOCK_LAPSED);
        break;
    default:
        result = rowlock_retry(t->db, write_guarded, t, NULL, NULL);
        tell(who, "writes", t->name, t->holding.token, result);
        expect(t, "a guarded write", result,
               result == ROWLOCK_LOST || result == ROWLOCK_CONFLICT || !result);
    }
    return result;
}

/* After an outage it asks again, or leaves it to rowlock_lock_close(). */
static void release(struct thread *t)
{
    int result = ROWLOCK_EUNCERTAIN;
    judge_ends(&t->holding);
    for (int i = 0; result < 0 && i < 3; i++) {
        tell(t->client->process.number, "releases", t->name, t->holding.token, 0);
        int64_t began = sim_now(), left_ms = rowlock_lock_remaining_ms(t->lock);
        result = rowlock_release(t->lock);
        check_holder(t, "release", began, left_ms, result);
        tell(t->client->process.number, "has released", t->name, t->holding.token, result);
        expect(t, "release", result, result == ROWLOCK_LOST || !result);
    }
    if (result < 0)
        rowlock_forget(t->lock);
}

static void work(struct thread *t, int64_t above, int64_t ttl_ms)
{
    t->holding = (struct holding){.process = &t->client->process,
                                  .lock = t->lock,
                                  .name = t->name,
                                  .token = rowlock_lock_token(t->lock),
                                  .ttl_ms = ttl_ms};
    judge_granted(&t->holding, above);
    int acts = (int)sim_random(4);
    for (int i = 0; i < acts && rowlock_lock_state(t->lock) != ROWLOCK_STATE_LOST; i++)
        if (hold_on(t) == ROWLOCK_LOST)
            break;
    release(t);
}

/* ---- how it gets the lock */

static int ask(struct thread *t)
{
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.ttl_ms = 500 + sim_spread(500, 20000);
    options.wait_ms = calm ? ROWLOCK_FOREVER : sim_random(3) ? sim_spread(10, 60000) : 0;
    options.unfair = !calm && sim_once_in(10);
    options.keeper = t->client->keeper;
    int64_t above = judge_asks(t->name);
    tell(t->client->process.number, "asks for", t->name, options.wait_ms, options.ttl_ms);
    int64_t began = sim_now();
    int result = rowlock_acquire(t->lock, &options);
    must_be_over(t, "acquire", began, options.wait_ms);
    tell(t->client->process.number, "is answered", t->name, result, 0);
    if (result == ROWLOCK_OK)
        work(t, above, options.ttl_ms);
    else
        expect(t, "acquire", result, result == ROWLOCK_BUSY || result == ROWLOCK_TIMEOUT);
    return result;
}

/* Of one server. Counters that were not used for a moment are forgotten. */
static void sweep(const struct thread *t)
{
    rowlock_db *db = NULL;
    rowlock_sweep_options options = ROWLOCK_SWEEP_OPTIONS_INIT;
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    options.idle_ms = sim_spread(1, 60000);
    options.batch = 1 + (int)sim_random(20);
    int result = rowlock_db_open(network_url((int)sim_random(servers)), NULL, &db, NULL);
    if (result == ROWLOCK_OK)
        result = rowlock_sweep(db, &options, &report);
    if (result != ROWLOCK_OK && !is_outage(result) && result != ROWLOCK_ESERVER)
        violation("a sweep is %s: %s", rowlock_result_name(result),
                  db ? rowlock_db_error(db)->text : "");
    tell(t->client->process.number, "has swept", NULL, report.locks, report.counters);
    rowlock_db_close(db);
}

static void ends(struct thread *t)
{
    struct client *c = t->client;
    close_handles(t);
    free(t);
    if (--c->threads > 0)
        return;
    rowlock_keeper_close(c->keeper);
    rowlock_db_close(c->keeper_db);
    rowlock_pool_close(c->pool);
    if (--running == 0)
        over = true;
}

static void *live(void *context)
{
    struct thread *t = context;
    while (!t->served) {
        snprintf(t->name, sizeof t->name, "job-%d", (int)sim_random(names));
        if (!open_handles(t)) {
            sim_sleep(sim_spread(1000, SECOND));
            continue;
        }
        for (int i = (int)sim_random(20); i >= 0 && !t->served; i--) {
            if (sim_once_in(50))
                sweep(t);
            int result = ask(t);
            t->served = calm && result == ROWLOCK_OK;
            sim_sleep(sim_spread(10, 20000));
        }
        close_handles(t);
    }
    ends(t);
    return NULL;
}

static bool open_client(struct client *c)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    int result = ROWLOCK_OK;
    if (world == POOL)
        result = rowlock_pool_open(url, NULL, &c->pool, &err);
    if (world == KEEPERS)
        result = rowlock_db_open(url, NULL, &c->keeper_db, &err);
    if (world == KEEPERS && result == ROWLOCK_OK)
        result = rowlock_keeper_open(c->keeper_db, &c->keeper);
    if (result == ROWLOCK_OK)
        return true;
    rowlock_db_close(c->keeper_db);
    c->keeper_db = NULL;
    return false;
}

static void *begin(void *context)
{
    struct client *c = context;
    while (!open_client(c))
        sim_sleep(sim_spread(1000, SECOND));
    c->threads = threads;
    for (int i = 0; i < threads; i++) {
        struct thread *t = calloc(1, sizeof *t);
        t->client = c;
        sim_start(&c->process, live, t);
    }
    return NULL;
}

static struct client *all[CLIENTS_MOST];
static int born;

/* What a killed one had stays where it is. */
static void start_client(int place)
{
    struct client *c = all[place] = calloc(1, sizeof *c);
    c->process.number = ++born;
    c->process.ahead_us = sim_random(1000 * SECOND);
    c->process.ppm = sim_random(201) - 100;
    sim_start(&c->process, begin, c);
}

/* ---- what happens */

static void disturb_client(void)
{
    int place = (int)sim_random(clients);
    struct process *p = &all[place]->process;
    if (sim_random(3)) {
        p->stopped_until = sim_now() + sim_spread(MILLISECOND, 60 * SECOND);
        tell(p->number, "stands still", NULL, (p->stopped_until - sim_now()) / MILLISECOND, 0);
        return;
    }
    tell(p->number, "is killed", NULL, 0, 0);
    p->dead = true;
    start_client(place);
}

static void disturb_server(void)
{
    int server = (int)sim_random(servers);
    int64_t pause = sim_spread(MILLISECOND, 30 * SECOND);
    int what = (int)sim_random(3);
    static const char *const words[] = {"stops", "stands still", "loses its connections"};
    tell(-1 - server, words[what], NULL, what < 2 ? pause / MILLISECOND : 0, 0);
    if (what == 0)
        network_stop(server, sim_now() + pause);
    else if (what == 1)
        network_freeze(server, sim_now() + pause);
    else
        network_cut(server);
}

static void end_faults(void)
{
    calm = true;
    calm_since = sim_now();
    faults = (struct faults){0};
    tell(0, "the faults are over", NULL, judge_grants, 0);
}

static void disturb(void *unused)
{
    if (judge_grants >= wanted && !calm)
        end_faults();
    if (calm && sim_now() - calm_since > CALM_MOST)
        violation("%d clients had no grant in %d s without faults", running, CALM_MOST / SECOND);
    if (!calm && sim_random(2))
        disturb_client();
    else if (!calm)
        disturb_server();
    sim_at(sim_now() + sim_spread(SECOND / 10, 20 * SECOND), disturb, unused);
}

/* ---- the whole */

static void *join(void *context)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    if (rowlock_quorum_join(url, 0, NULL, &err) != ROWLOCK_OK)
        violation("the databases do not become a quorum: %s", err.text);
    *(bool *)context = true;
    return NULL;
}

static void choose(void)
{
    faults = (struct faults){.lost = 200 + sim_random(2000),
                             .late = 200 + sim_random(2000),
                             .mute = 200 + sim_random(2000),
                             .slow = 100 + sim_random(1000),
                             .cut = 200 + sim_random(2000),
                             .deaf = 10 + sim_random(100)};
    servers = world == QUORUM ? 3 : 1;
    threads = world == POOL || world == KEEPERS ? 1 + (int)sim_random(8) : 1;
    clients = world == QUORUM ? 3 + (int)sim_random(6) : 4 + (int)sim_random(CLIENTS_MOST - 3);
    names = 1 + (int)sim_random(clients * threads);
}

static void finish(void)
{
    if (!over)
        violation("nothing can happen any more, and %d clients wait", running);
    printf("%s: %" PRId64 " grants in %.0f s, %d clients, %d names, sum %016" PRIx64
           ", %.1f s of processor time\n",
           world_names[world], judge_grants, (double)sim_now() / SECOND, born, names, judge_sum(),
           (double)clock() / CLOCKS_PER_SEC);
}

int main(int argc, char **argv)
{
    const char *folder = getenv("TMPDIR");
    uint64_t seed = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
    wanted = argc == 4 ? strtoll(argv[3], NULL, 10) : 0;
    while (argc == 4 && world <= QUORUM && strcmp(argv[1], world_names[world]) != 0)
        world++;
    if (argc != 4 || world > QUORUM || wanted <= 0) {
        fputs("usage: simulate one|keepers|pool|quorum SEED GRANTS\n", stderr);
        return 64;
    }
    snprintf(judge_command, sizeof judge_command, "make simulate WORLD=%s SEED=%s GRANTS=%s",
             argv[1], argv[2], argv[3]);
    sim_seed(seed);
    choose();
    struct faults chosen = faults;
    faults = (struct faults){0};
    network_open(folder ? folder : "/tmp", servers);
    for (int i = 0; i < servers; i++)
        snprintf(url + strlen(url), sizeof url - strlen(url), "%s%s", i ? " " : "", network_url(i));
    if (world == QUORUM) {
        static struct process joiner;
        bool joined = false;
        sim_start(&joiner, join, &joined);
        sim_run(&joined);
    }
    faults = chosen;
    running = clients;
    for (int i = 0; i < clients; i++)
        start_client(i);
    sim_at(sim_now() + SECOND, disturb, NULL);
    sim_run(&over);
    finish();
    return 0;
}
