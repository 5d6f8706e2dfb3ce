/* SPDX-License-Identifier: MIT
 *
 * Readers, writers and counted holders at random, in every way in which programs use locks: in
 * processes that are stopped and killed, at each isolation, on connections of the application, in
 * threads beside sweeps, on a pool whose connections are cut. They write down what they are told,
 * and lib/judge.c judges it. The second evidence is a counter in a file that each writer reads, adds
 * one to and writes back. Leases that end are guarded: the third evidence is a total in a table, to
 * which a holder adds one in a transaction with a guard, at each isolation. Without the guard a
 * holder that is overtaken overwrites what others have added. */
#include "each.h"
#include "faultproxy.h"
#include "history.h"
#include "judge.h"
#include "loads.h"

#include "../pool/swarm.h"

#include <sched.h>

enum {
    CLIENTS_MAX = 64,
    NAMES = 3,
    PERMITS = 3,
    /* A lease that no machine outlives. */
    CALM_MS = 600000,
    LEASE_MS = 150,
    POOLED_LEASE_MS = 250,
    TICKET_MS = 1000,
    SWEEPERS = 3,
    /* Guarded additions of disturbed processes. */
    ADDITIONS = 100,
    WHOLE_ADDITIONS = 500,
    /* Mistakes that are told. */
    TOLD = 5
};

/* The last one is exclusive only. */
static const char *const names[NAMES] = {"readers", "counted", "writers"};

/* What must happen, and how often it has. */
enum event { KILLED, STOPPED, LOST, REFUSED, CUT, ENDED, FROZEN, SWEPT, FOLDED, CLEANED, EVENTS };
static const char *const events[EVENTS] = {
    "processes are killed",     "processes are stopped",
    "grants are lost",          "guards refuse the overtaken",
    "connections are cut",      "sessions are killed",
    "the server stands still",  "a sweep removes grants",
    "a sweep removes counters", "the server cleans up, twice at once"};

enum kind {
    THREADS = 1,
    /* The locks are on connections of the application. */
    ADOPTED = 2,
    /* Processes are stopped and killed. */
    DISTURBED = 4,
    /* Threads beside sweeps. */
    CLEANING = 8,
    /* Threads on a pool of two connections, through a proxy that cuts them, to a server that stands
     * still. */
    POOLED = 16,
    /* Holders write without a guard. */
    UNGUARDED = 32
};

struct mode {
    const char *who;
    unsigned kind;
    int clients;
    int64_t ttl_ms;
    /* How many grants are enough, and how many of each event. */
    int grants, whole_grants, times, whole_times;
    int64_t whole_ms;
};

static const struct mode disturbed = {
    "disturbed processes", DISTURBED, 8, LEASE_MS, 40, 300, 2, 8, 7000};
static const struct mode unguarded = {
    "without guards", DISTURBED | UNGUARDED, 8, LEASE_MS, 0, 0, 1, 1, 0};
static const struct mode many = {"32 processes", 0, 32, CALM_MS, 200, 12800, 0, 0, 0};
static const struct mode adopted = {"adopted connections", ADOPTED, 8, CALM_MS, 100, 800, 0, 0, 0};
static const struct mode threads = {"threads", THREADS, 8, CALM_MS, 100, 1600, 0, 0, 0};
/* Sweeps deadlock with no release, stall no lock, and repeat no token. */
static const struct mode cleaned = {
    "beside sweeps", THREADS | CLEANING, 6, LEASE_MS, 40, 300, 3, 20, 4000};
static const struct mode pooled = {
    "a disturbed pool", THREADS | POOLED, CLIENTS_MAX, POOLED_LEASE_MS, 50, 400, 2, 8, 6000};

/* What all clients see. */
static struct load {
    const struct raw *raw;
    const char *url;
    const struct mode *mode;
    rowlock_pool *pool;
    struct faultproxy *proxy;
    int64_t began_ms;
    atomic_bool over;
    atomic_int odd, granted, added, committed;
    atomic_int times[EVENTS];
    atomic_bool holds[CLIENTS_MAX];
    /* Processes that did not end as they should. */
    int ended_badly;
} * load;

struct client {
    int number;
    unsigned seed;
    /* Straight to the server. tx has adopted it. Its transactions begin so. */
    void *session;
    const char *begin;
    /* The total that an exclusive holder has read. -1: it adds nothing. */
    long long total;
    rowlock_db *db, *tx;
    rowlock_lock *locks[NAMES];
    struct helper *thread;
    pid_t pid;
    /* 0: it runs. */
    int64_t stopped_until;
};

static struct client clients[CLIENTS_MAX];

static int at_random(struct client *c, int below)
{
    return (int)((unsigned)rand_r(&c->seed) % (unsigned)below);
}

static bool is(enum kind kind)
{
    return load->mode->kind & kind;
}

static bool is_calm(void)
{
    return load->mode->ttl_ms == CALM_MS;
}

/* Those of a pool wait for each other most of the time. */
static int number_of_clients(void)
{
    return is(POOLED) ? load_count(24, load->mode->clients, 24) : load->mode->clients;
}

/* In a pool, each answer that a lost connection gives. */
static void hear(const rowlock_db *db, const char *call, int result)
{
    bool outage =
        result == ROWLOCK_ECONN || result == ROWLOCK_EUNCERTAIN || result == ROWLOCK_ESERVER;
    if (is(POOLED) && outage)
        return;
    if (load->odd++ < TOLD)
        tap_note("%s: %s: %s", call, rowlock_result_name(result), why(db));
    tell("O %s %s", call, rowlock_result_name(result));
}

static long long server_us(const struct client *c)
{
    return raw_int(load->raw, c->session, "SELECT %s", load->raw->clock);
}

/* ---- the counters */

static long long read_counter(int which, long long *token)
{
    long long count = 0;
    char text[60] = "";
    int fd = open(history_path(names[which]), O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        abort();
    close(fd);
    *token = 0;
    sscanf(text, "%lld %lld", &count, token);
    return count;
}

/* As careless as can be: without the lock additions would be lost, and tokens out of order. */
static void add_one(int which, long long token)
{
    char text[60];
    long long before, count = read_counter(which, &before);
    sched_yield();
    int length = snprintf(text, sizeof text, "%lld %lld\n", count + 1, token);
    int fd = open(history_path(names[which]), O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, (size_t)length) != length)
        abort();
    close(fd);
    load->added++;
    if (before >= token) {
        load->odd++;
        tap_note("%s: token %lld comes after %lld", names[which], token, before);
    }
}

static void clear_counters(void)
{
    for (int i = 0; i < NAMES; i++)
        unlink(history_path(names[i]));
}

static long long sum_of_counters(void)
{
    long long sum = 0, token;
    for (int i = 0; i < NAMES; i++)
        sum += read_counter(i, &token);
    return sum;
}

/* ---- one turn */

/* At different isolations. */
static const struct manner {
    const char *database, *setup, *begin;
} manners[] = {
    {"postgres", NULL, "BEGIN"},
    {"postgres", NULL, "BEGIN ISOLATION LEVEL REPEATABLE READ"},
    {"postgres", NULL, "BEGIN ISOLATION LEVEL SERIALIZABLE"},
    {"mysql", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "BEGIN"},
    {"mysql", "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "BEGIN"},
    {"mysql", "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "BEGIN"},
    {"sqlite", NULL, "BEGIN"},
    {"sqlite", NULL, "BEGIN IMMEDIATE"},
};

static void take_manner(struct client *c)
{
    const struct manner *m = manners, *last = m + sizeof manners / sizeof *manners - 1;
    for (int left = c->number; strcmp(m->database, load->raw->name) != 0 || left-- > 0;)
        m = m < last ? m + 1 : manners;
    c->begin = m->begin;
    if (m->setup)
        raw_run(load->raw, c->session, "%s", m->setup);
}

/* False: it has lost a race. Its transaction may be over. */
static bool say(const struct client *c, const char *sql)
{
    static const char *const races[] = {
        "could not serialize", "deadlock detected", "1213 ", "1205 ", "1020 ",
        "database is locked"};
    char text[300] = "";
    bool race = false, said = load->raw->run(c->session, sql, text, sizeof text);
    for (size_t i = 0; i < sizeof races / sizeof *races; i++)
        race = race || strstr(text, races[i]);
    if (!said && !race && load->odd++ < TOLD)
        tap_note("%s: %s", sql, text);
    return said;
}

static long long total_of(const struct client *c, int which)
{
    return raw_int(load->raw, c->session, "SELECT total FROM load_totals WHERE name = '%s'",
                   names[which]);
}

/* It sleeps until another holder has added to the total. */
static void be_overtaken(const struct client *c, int which)
{
    int64_t until = clock_ms() + slow_ms(3000);
    while (!load->over && clock_ms() < until && total_of(c, which) == c->total)
        sleep_ms(10);
}

static bool add_to_total(const struct client *c, int which)
{
    return c->total < 0 ||
           (say(c, textf("UPDATE load_totals SET total = %lld WHERE name = '%s'", c->total + 1,
                         names[which])) &&
            say(c, textf("INSERT INTO load_additions VALUES ('%s')", names[which])));
}

static int wrong_totals(void)
{
    return (int)db_int(load->raw, load->url,
                       "SELECT count(*) FROM load_totals t WHERE t.total <> "
                       "(SELECT count(*) FROM load_additions a WHERE a.name = t.name)");
}

/* No other client can come between a guard and the commit. Between the writes and the guard one
 * can. The clock is read under the guard: until then, at least, no other client had the lock. */
static bool guard(struct client *c, int which)
{
    rowlock_lock *lock = c->locks[which];
    char ignored[200];
    bool guards_first = at_random(c, 2) == 0, done = false;
    int result = ROWLOCK_CONFLICT;
    if (say(c, c->begin) && (guards_first || add_to_total(c, which))) {
        /* Time: the lease ends by the database's clock. The judge allows any length. */
        if (!guards_first && at_random(c, 8) == 0)
            sleep_ms(LEASE_MS + 20);
        result = is(UNGUARDED) ? ROWLOCK_OK : rowlock_guard(lock, c->tx);
    }
    if (result == ROWLOCK_OK) {
        long long at = server_us(c);
        /* Time: a moment in which to be stopped, of any length. */
        if (at_random(c, 8) == 0)
            sleep_ms(at_random(c, LEASE_MS));
        if (!is(UNGUARDED))
            tell("k %s %lld %lld", names[which], (long long)rowlock_lock_token(lock), at);
        done = (!guards_first || add_to_total(c, which)) && say(c, "COMMIT");
    }
    if (!done)
        load->raw->run(c->session, "ROLLBACK", ignored, sizeof ignored);
    if (done && c->total >= 0) {
        c->total++;
        load->committed++;
    }
    load->times[REFUSED] += result == ROWLOCK_LOST;
    if (result != ROWLOCK_OK && result != ROWLOCK_LOST && result != ROWLOCK_CONFLICT)
        hear(c->tx, "guard", result);
    return result != ROWLOCK_LOST;
}

static bool renew(struct client *c, int which)
{
    rowlock_lock *lock = c->locks[which];
    int result = rowlock_renew(lock, 0);
    if (result == ROWLOCK_OK || result == ROWLOCK_LAPSED)
        tell("r %s %lld %lld", names[which], (long long)rowlock_lock_token(lock),
             (long long)rowlock_lock_expires_us(lock));
    else if (result != ROWLOCK_LOST)
        hear(c->db, "renew", result);
    return result != ROWLOCK_LOST;
}

static void let_go(struct client *c, int which)
{
    rowlock_lock *lock = c->locks[which];
    long long token = rowlock_lock_token(lock), at = server_us(c);
    tell("e %s %lld %lld", names[which], token, at);
    int result = rowlock_release(lock);
    if (result == ROWLOCK_OK)
        tell("k %s %lld %lld", names[which], token, at);
    else if (result == ROWLOCK_LOST && !is_calm())
        tell("l %s %lld", names[which], token);
    else
        hear(c->db, "release", result);
    load->times[LOST] += result == ROWLOCK_LOST;
    rowlock_forget(lock);
}

static void work(struct client *c, int which, int permits)
{
    bool mine = true;
    c->total = -1;
    if (c->tx && permits == 0) {
        c->total = total_of(c, which);
        /* The others seldom have another writer. */
        if (which > 1 && at_random(c, 3) == 0)
            be_overtaken(c, which);
        for (int i = at_random(c, 8); i >= 0 && mine; i--)
            mine = guard(c, which);
    }
    for (int i = at_random(c, 4); i > 0 && mine; i--) {
        switch (at_random(c, 8)) {
        case 0:
            /* Time: the lease ends by the database's clock. The judge allows any length. */
            sleep_ms(load->mode->ttl_ms + 10);
            break;
        case 1:
        case 2:
            mine = !c->tx || guard(c, which);
            break;
        case 3:
        case 4:
            mine = renew(c, which);
            break;
        default:
            /* Time: holders do something for a moment, of any length. */
            sleep_ms(at_random(c, 20));
        }
    }
}

static void hold(struct client *c, int which, int permits)
{
    rowlock_lock *lock = c->locks[which];
    long long expires = rowlock_lock_expires_us(lock), token = rowlock_lock_token(lock);
    tell("g %s %lld %lld %lld %lld %d", names[which], token,
         expires - load->mode->ttl_ms * 1000 - load->raw->tick_us, expires, server_us(c), permits);
    load->granted++;
    load->holds[c->number] = true;
    if (!is_calm())
        work(c, which, permits);
    else if (permits == 0)
        add_one(which, token);
    let_go(c, which);
    load->holds[c->number] = false;
}

/* Most clients that ask for the first lock read it. Most that ask for the second count. */
static void take_turn(struct client *c)
{
    int which = at_random(c, NAMES);
    bool alone = which > 1 || at_random(c, 4) == 0, waits = at_random(c, 4) > 0;
    rowlock_acquire_options how = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    how.permits = alone ? 0 : which == 0 ? ROWLOCK_SHARED : PERMITS;
    how.ttl_ms = load->mode->ttl_ms;
    how.wait_ms = !waits ? 0 : is_calm() ? CALM_MS : 200 + at_random(c, 2000);
    how.ticket_ms = is_calm() ? CALM_MS : TICKET_MS;
    how.unfair = at_random(c, 8) == 0;
    int result = rowlock_acquire(c->locks[which], &how);
    if (result == ROWLOCK_OK)
        hold(c, which, how.permits);
    /* Time: a pause before the next try, of any length. */
    else if (result == ROWLOCK_BUSY)
        sleep_ms(at_random(c, 3));
    else if (result != ROWLOCK_TIMEOUT)
        hear(c->db, "acquire", result);
}

static int live(void *argument)
{
    struct client *c = argument;
    if (!is(THREADS))
        child_of_load();
    c->session = load->raw->open(load->url);
    if (!is_calm())
        take_manner(c);
    if (is(ADOPTED))
        c->db = must_adopt(load->raw, c->session, NULL);
    else
        c->db = load->pool ? must_join(load->pool, slow_ms(1000), 0) : must_open(load->url);
    /* The session of a guard would be killed like those of the pool. */
    if (!is_calm() && !load->pool)
        c->tx = must_adopt(load->raw, c->session, NULL);
    for (int i = 0; i < NAMES; i++)
        c->locks[i] = must_lock(c->db, names[i]);
    while (!load->over)
        take_turn(c);
    close_each_lock(c->locks, NAMES);
    close_dbs(c->db, c->tx);
    load->raw->close(c->session);
    return 0;
}

/* ---- beside them */

static int sweep(void *argument)
{
    OWNED(db) rowlock_db *db = must_open(load->url);
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    while (!load->over) {
        int result = rowlock_sweep(db, OPTIONS(sweep, .idle_ms = 1, .batch = 2), &report);
        if (result != ROWLOCK_OK)
            hear(db, "sweep", result);
        load->times[SWEPT] += (int)report.locks;
        load->times[FOLDED] += (int)report.counters;
        /* Time: a pause between two sweeps, of any length. */
        sleep_ms(2);
    }
    return 0;
}

/* Two run at the same time. Before, the sweeper alone finds something. */
static int keep_house(void *argument)
{
    OWNED(session) void *session = load->raw->open(load->url);
    while (!load->over) {
        char text[300] = "";
        sleep_ms(2);
        if (load->times[SWEPT] < load->mode->times || load->times[FOLDED] < load->mode->times)
            continue;
        if (load->raw->run(session, "CALL rowlock_housekeeping(1, 1)", text, sizeof text)) {
            load->times[CLEANED]++;
        } else {
            load->odd++;
            tell("O housekeeping failed");
            tap_note("housekeeping: %s", text);
        }
    }
    return 0;
}

/* Any connection of the pool that is at work. */
static void kill_one_session(void)
{
    bool postgres = strcmp(load->raw->name, "postgres") == 0;
    char id[40], ignored[300];
    OWNED(session) void *session = load->raw->open(load->url);
    if (load->raw->ask(session,
                       postgres ? "SELECT pid FROM pg_stat_activity "
                                  "WHERE application_name LIKE '%swarm%' LIMIT 1"
                                : "SELECT id FROM information_schema.processlist "
                                  "WHERE id <> connection_id() AND info LIKE '%rowlock_%' LIMIT 1",
                       id, sizeof id))
        load->times[ENDED] += load->raw->run(
            session, textf(postgres ? "SELECT pg_terminate_backend(%s)" : "KILL %s", id), ignored,
            sizeof ignored);
}

static void cut(unsigned *seed)
{
    struct fault fault = {.kind = FAULT_CUT, .side = rand_r(seed) % 3 ? ON_ANSWER : ON_REQUEST};
    if (rand_r(seed) % 3)
        faultproxy_arm(load->proxy, 1 + rand_r(seed) % 5, fault);
    else
        faultproxy_cut(load->proxy);
    load->times[CUT]++;
}

/* One kind after the other. A session that has ended by itself is not killed: then another. */
static void disturb_pool(unsigned *seed)
{
    int what = load->times[CUT] + load->times[ENDED] + load->times[FROZEN];
    /* Time: a pause between two faults, of any length. */
    sleep_ms(20 + rand_r(seed) % 80);
    switch (what % (raw_is_ours(load->raw) ? 3 : 2)) {
    case 0:
        cut(seed);
        break;
    case 1:
        kill_one_session();
        break;
    default:
        raw_control(load->raw, "freeze");
        /* Time: shorter or longer than the leases, by the real clock. The judge allows both. */
        sleep_ms(rand_r(seed) % (2 * POOLED_LEASE_MS));
        raw_control(load->raw, "thaw");
        load->times[FROZEN]++;
    }
}

static void start_client(int i, unsigned seed)
{
    clients[i] = (struct client){.number = i, .seed = seed};
    if (is(THREADS))
        clients[i].thread = helper_start(live, &clients[i]);
    else
        clients[i].pid = child_start(live, &clients[i]);
}

static void let_go_on(struct client *c)
{
    if (c->stopped_until)
        kill(c->pid, SIGCONT);
    c->stopped_until = 0;
}

/* Holders most of all. Another one comes in the place of one that is killed. Few are: the next in
 * the queue waits until the ticket of a dead one is over. */
static void disturb_processes(unsigned *seed)
{
    int i = rand_r(seed) % load->mode->clients;
    sleep_ms(rand_r(seed) % 20);
    for (struct client *c = clients; c < clients + load->mode->clients; c++)
        if (clock_ms() >= c->stopped_until)
            let_go_on(c);
    if (!load->holds[i] && rand_r(seed) % 32 > 0)
        return;
    if (load->times[KILLED] * 4 < load->times[STOPPED]) {
        kill(clients[i].pid, SIGKILL);
        load->ended_badly += child_join(clients[i].pid) != 256 + SIGKILL;
        load->times[KILLED]++;
        load->holds[i] = false;
        start_client(i, (unsigned)rand_r(seed));
    } else if (!clients[i].stopped_until) {
        kill(clients[i].pid, SIGSTOP);
        load->times[STOPPED]++;
        clients[i].stopped_until = clock_ms() + LEASE_MS + 50 + rand_r(seed) % 200;
    }
}

static void join_client(struct client *c)
{
    if (is(THREADS))
        helper_join(c->thread);
    else
        load->ended_badly += child_join(c->pid) != 0;
}

/* ---- the whole */

static int wanted_grants(void)
{
    return load_count(load->mode->grants, load->mode->whole_grants, 20);
}

/* How often it must happen. A server that is not ours does not stand still. A file has no
 * procedures. */
static int wanted_times(enum event e)
{
    static const enum kind kind_of[EVENTS] = {DISTURBED, DISTURBED, DISTURBED, DISTURBED, POOLED,
                                              POOLED,    POOLED,    CLEANING,  CLEANING,  CLEANING};
    if ((e == REFUSED && is(UNGUARDED)) || !is(kind_of[e]) ||
        (e == FROZEN && !raw_is_ours(load->raw)) ||
        (e == CLEANED && strcmp(load->raw->name, "sqlite") == 0))
        return 0;
    return load_count(load->mode->times, load->mode->whole_times, 1);
}

static int wanted_additions(void)
{
    return is(DISTURBED) && !is(UNGUARDED) ? load_count(ADDITIONS, WHOLE_ADDITIONS, 20) : 0;
}

static int most_beside(void)
{
    static struct judgement j;
    judge(history_path("history"), 0, &j);
    return j.most_beside;
}

static bool is_enough(void)
{
    for (enum event e = 0; e < EVENTS; e++)
        if (load->times[e] < wanted_times(e))
            return false;
    return load->granted >= wanted_grants() && load->committed >= wanted_additions() &&
           (!is(UNGUARDED) || wrong_totals() > 0) &&
           load_has_lasted(load->began_ms, load->mode->whole_ms) &&
           (is_calm() || most_beside() > 1);
}

static bool is_to_end(void)
{
    return load->odd > 0 || load_is_hopeless(load->began_ms, load->mode->whole_ms);
}

static void judge_totals(const char *who)
{
    int wrong = wrong_totals();
    long long additions = db_int(load->raw, load->url, "SELECT count(*) FROM load_additions");
    if (is(UNGUARDED))
        tap_ok(wrong > 0, "%s: additions to a total are lost", who);
    else
        tap_is_int(wrong, 0, "%s: no addition to a total is lost", who);
    tap_ok(additions >= load->committed && additions <= load->committed + load->times[KILLED] &&
               load->committed >= wanted_additions(),
           "%s: what was committed is there, and nothing else: %d", who, load->committed);
}

static void judge_load(void)
{
    static struct judgement j;
    const char *who = load->mode->who;
    judge(history_path("history"), 0, &j);
    tap_sentences(&j, lock_sentences, who);
    tap_is_int(load->ended_badly, 0, "%s: each process that is not killed comes to its end", who);
    tap_ok(j.grants >= load->granted && j.grants >= wanted_grants(),
           "%s: all grants are in the history: %d", who, j.grants);
    if (is_calm())
        tap_is_int(sum_of_counters(), load->added, "%s: no addition to a counter is lost", who);
    else
        tap_ok(j.most_beside > 1, "%s: and more than one at a time: %d", who, j.most_beside);
    if (!is_calm() && !is(POOLED))
        judge_totals(who);
    tap_is_int(load->odd, 0, "%s: nothing else is wrong", who);
    for (enum event e = 0; e < EVENTS; e++)
        if (wanted_times(e) > 0)
            tap_ok(load->times[e] >= wanted_times(e), "%s: %s: %d times", who, events[e],
                   load->times[e]);
    tap_note("%s: %d grants, %d confirmations, %d lost, %lld ms", who, j.grants, j.confirmed,
             j.lost, (long long)(clock_ms() - load->began_ms));
}

static void start_load(const struct mode *mode)
{
    *load = (struct load){.raw = load->raw,
                          .url = load->url,
                          .pool = load->pool,
                          .proxy = load->proxy,
                          .mode = mode,
                          .began_ms = clock_ms()};
    history_clear();
    clear_counters();
    db_exec(load->raw, load->url, "UPDATE load_totals SET total = 0");
    db_exec(load->raw, load->url, "DELETE FROM load_additions");
}

static void run_clients(unsigned *seed)
{
    struct helper *beside[SWEEPERS] = {NULL};
    load->over = false;
    for (int i = 0; i < number_of_clients(); i++)
        start_client(i, (unsigned)rand_r(seed));
    for (int i = 0; i < SWEEPERS && is(CLEANING); i++)
        if (i == 0 || strcmp(load->raw->name, "sqlite") != 0)
            beside[i] = helper_start(i == 0 ? sweep : keep_house, NULL);
    while (!is_enough() && !is_to_end()) {
        if (is(DISTURBED))
            disturb_processes(seed);
        else if (is(POOLED))
            disturb_pool(seed);
        else
            /* Time: until the next look. The load ends when it has done enough. */
            sleep_ms(5);
    }
    load->over = true;
    for (int i = 0; i < number_of_clients(); i++)
        let_go_on(&clients[i]);
    for (int i = 0; i < number_of_clients(); i++)
        join_client(&clients[i]);
    for (int i = 0; i < SWEEPERS; i++)
        if (beside[i])
            helper_join(beside[i]);
}

/* A history that is not whole yet may show more than there is. */
static void run_load(const struct mode *mode, unsigned seed)
{
    start_load(mode);
    do
        run_clients(&seed);
    while (!is_enough() && !is_to_end());
    judge_load();
}

/* ---- isolations */

/* A way to set the isolation that connections begin with, and back. All other modes run at the default. */
struct isolation {
    const char *database, *name;
    const char *set, *reset;
    /* SQL: 1 if this server can do it. NULL: it can. */
    const char *if_true;
};

#define ROLE "ALTER ROLE CURRENT_USER SET default_transaction_isolation = "
#define RESET_ROLE "ALTER ROLE CURRENT_USER RESET default_transaction_isolation"
#define GLOBAL "SET GLOBAL TRANSACTION ISOLATION LEVEL "

static const struct isolation isolations[] = {
    {"postgres", "serializable by default", ROLE "'serializable'", RESET_ROLE, NULL},
    {"postgres", "repeatable read by default", ROLE "'repeatable read'", RESET_ROLE, NULL},
    {"mysql", "read committed", GLOBAL "READ COMMITTED", GLOBAL "REPEATABLE READ", NULL},
    {"mysql", "serializable", GLOBAL "SERIALIZABLE", GLOBAL "REPEATABLE READ", NULL},
    {"mysql", "snapshot isolation", "SET GLOBAL innodb_snapshot_isolation = ON",
     "SET GLOBAL innodb_snapshot_isolation = DEFAULT",
     "SELECT COUNT(*) FROM information_schema.global_variables "
     "WHERE variable_name = 'INNODB_SNAPSHOT_ISOLATION'"},
};

static bool can_do(const struct isolation *isolation)
{
    return !isolation->if_true || db_int(load->raw, load->url, "%s", isolation->if_true) == 1;
}

/* Stricter isolations of a connection give deadlocks and failed serializations, which must not show. */
static void under_isolations(unsigned seed)
{
    const struct isolation *end = isolations + sizeof isolations / sizeof isolations[0];
    for (const struct isolation *i = isolations; i < end; i++) {
        if (strcmp(i->database, load->raw->name) != 0)
            continue;
        if (!can_do(i)) {
            tap_note("%s: not on this server", i->name);
            continue;
        }
        char who[100];
        struct mode mode = adopted;
        mode.who = i->name;
        mode.kind = 0;
        mode.grants = 50;
        db_exec(load->raw, load->url, "%s", i->set);
        run_load(&mode, seed);
        snprintf(who, sizeof who, "%s, adopted", i->name);
        mode.who = who;
        mode.kind = ADOPTED;
        run_load(&mode, seed);
        db_exec(load->raw, load->url, "%s", i->reset);
    }
}

/* ---- a pool */

static int left(const char *table)
{
    return (int)db_int(load->raw, load->url, "SELECT count(*) FROM %s WHERE expires > %s", table,
                       load->raw->clock);
}

static void on_a_pool(unsigned seed)
{
    OWNED(text) char *through = NULL;
    if (strcmp(load->raw->name, "sqlite") == 0)
        return;
    if (strstr(load->url, "rowlock_pooler=")) {
        tap_skip(1, "a pooler gives our own session the name of those that are killed");
        return;
    }
    if (!(load->proxy = faultproxy_start(load->url, &through))) {
        tap_skip(1, "the server's URL has no host and port");
        return;
    }
    load->pool = must_pool(through, 2, NULL);
    run_load(&pooled, seed);
    rowlock_pool_close(load->pool);
    for (int64_t began_ms = clock_ms();
         left("rowlock_locks") + left("rowlock_waiters") > 0 && !load_is_hopeless(began_ms, 0);)
        sleep_ms(20);
    tap_is_int(left("rowlock_locks"), 0, "no grant is left beyond its lease");
    tap_is_int(left("rowlock_waiters"), 0, "nor a ticket");
    faultproxy_stop(load->proxy);
}

static void make_totals(const struct raw *raw, const char *url)
{
    db_exec(raw, url, "DROP TABLE IF EXISTS load_totals");
    db_exec(raw, url, "DROP TABLE IF EXISTS load_additions");
    db_exec(raw, url,
            "CREATE TABLE load_totals (name VARCHAR(20) PRIMARY KEY, total BIGINT NOT NULL)");
    db_exec(raw, url, "CREATE TABLE load_additions (name VARCHAR(20) NOT NULL)");
    for (int i = 0; i < NAMES; i++)
        db_exec(raw, url, "INSERT INTO load_totals VALUES ('%s', 0)", names[i]);
}

static int run(const struct raw *raw, const char *url)
{
    unsigned seed = load_seed();
    must_install(url);
    history_open(NULL);
    load = load_memory(sizeof *load);
    load->raw = raw;
    load->url = url;
    make_totals(raw, url);
    /* Processes come first, and threads have ended before others are started: see child_start(). */
    run_load(&disturbed, seed);
    run_load(&unguarded, seed);
    db_exec(raw, url, "DELETE FROM rowlock_locks");
    db_exec(raw, url, "DELETE FROM rowlock_waiters");
    run_load(&many, seed);
    run_load(&adopted, seed);
    under_isolations(seed);
    run_load(&threads, seed);
    run_load(&cleaned, seed);
    on_a_pool(seed);
    db_exec(raw, url, "DROP TABLE load_totals");
    db_exec(raw, url, "DROP TABLE load_additions");
    return tap_done();
}

EACH_MAIN(run)
