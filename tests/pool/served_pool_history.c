/* SPDX-License-Identifier: MIT
 *
 * A life of readers, writers and counted holders on a pool, while connections are cut, sessions are
 * killed, and the server stands still. What they are granted is judged as that of processes is
 * (tests/lock/judgement.c). */
#include "swarm.h"

#include "../lock/history.h"
#include "each.h"
#include "faultproxy.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LEASE_MS = 250,
    TICKET_MS = 1000,
    RUN_MS = 6000,
    GIVE_UP_MS = 60000,
    WANTED = 4,
    GRANTS = 300
};

static const struct raw *raw;
static const char *straight;
static struct faultproxy *proxy;
static int file;
static atomic_bool over;
static atomic_int odd, granted, lost;
static int cuts, kills, stops;

static const char *const names[HISTORY_NAMES] = {"history of readers", "history of counted"};

/* ---- one thread */

struct person {
    rowlock_db *db;
    rowlock_lock *lock[HISTORY_NAMES];
    unsigned seed;
    struct helper *thread;
};

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void note(const char *format, ...)
{
    char line[200];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (write(file, line, (size_t)length) != length)
        abort();
}

static long long now_us(void)
{
    return db_int(raw, straight, "SELECT %s", raw->clock);
}

static bool is_outage(int result)
{
    return result == ROWLOCK_ECONN || result == ROWLOCK_EUNCERTAIN || result == ROWLOCK_ESERVER;
}

static void is_odd(const struct person *p, const char *what, int result)
{
    odd++;
    tap_note("%s: %s: %s", what, rowlock_result_name(result), why(p->db));
}

static bool renews(struct person *p, int which)
{
    rowlock_lock *lock = p->lock[which];
    int result = rowlock_renew(lock, 0);
    if (result == ROWLOCK_OK || result == ROWLOCK_LAPSED)
        note("R %d %lld %lld\n", which, (long long)rowlock_lock_token(lock),
             (long long)rowlock_lock_expires_us(lock));
    else if (result != ROWLOCK_LOST && !is_outage(result))
        is_odd(p, "renew", result);
    return result != ROWLOCK_LOST;
}

static void lets_go(struct person *p, int which)
{
    rowlock_lock *lock = p->lock[which];
    long long token = rowlock_lock_token(lock), at = now_us();
    note("E %d %lld %lld\n", which, token, at);
    int result = rowlock_release(lock);
    if (result == ROWLOCK_OK)
        note("K %d %lld %lld\n", which, token, at);
    else if (result == ROWLOCK_LOST)
        note("L %d %lld\n", which, token);
    else if (!is_outage(result))
        is_odd(p, "release", result);
    lost += result == ROWLOCK_LOST;
    rowlock_forget(lock);
}

static void has_it(struct person *p, int which, int permits)
{
    rowlock_lock *lock = p->lock[which];
    long long expires = rowlock_lock_expires_us(lock);
    bool mine = true;
    note("G %d %d %lld %lld %lld %lld\n", which, permits, (long long)rowlock_lock_token(lock),
         expires - LEASE_MS * 1000 - raw->tick_us, expires, now_us());
    granted++;
    for (int i = rand_r(&p->seed) % 3; i > 0 && mine; i--)
        if (rand_r(&p->seed) % 2)
            mine = renews(p, which);
        else
            sleep_ms(rand_r(&p->seed) % 16 ? rand_r(&p->seed) % 10 : LEASE_MS + 10);
    lets_go(p, which);
}

static int live(void *argument)
{
    struct person *p = argument;
    while (!over && odd == 0) {
        int which = rand_r(&p->seed) % HISTORY_NAMES;
        rowlock_acquire_options how = ROWLOCK_ACQUIRE_OPTIONS_INIT;
        how.permits = rand_r(&p->seed) % 4 ? which == 0 ? ROWLOCK_SHARED : HISTORY_PERMITS : 0;
        how.ttl_ms = LEASE_MS;
        how.ticket_ms = TICKET_MS;
        how.wait_ms = rand_r(&p->seed) % 4 ? 200 + rand_r(&p->seed) % 1000 : 0;
        how.unfair = rand_r(&p->seed) % 8 == 0;
        int result = rowlock_acquire(p->lock[which], &how);
        if (result == ROWLOCK_OK)
            has_it(p, which, how.permits);
        else if (result != ROWLOCK_BUSY && result != ROWLOCK_TIMEOUT && !is_outage(result))
            is_odd(p, "acquire", result);
    }
    return 0;
}

/* ---- mishaps */

static void kill_one(void *session)
{
    char sql[300], id[40], ignored[300];
    bool postgres = strcmp(raw->name, "postgres") == 0;
    snprintf(
        sql, sizeof sql,
        postgres
            ? "SELECT pid FROM pg_stat_activity WHERE application_name LIKE '%%swarm%%' LIMIT 1"
            : "SELECT id FROM information_schema.processlist WHERE id <> connection_id() "
              "AND info LIKE '%%rowlock_%%' LIMIT 1");
    if (!raw->ask(session, sql, id, sizeof id))
        return;
    snprintf(sql, sizeof sql, postgres ? "SELECT pg_terminate_backend(%s)" : "KILL %s", id);
    kills += raw->run(session, sql, ignored, sizeof ignored);
}

static void disturb(unsigned seed)
{
    void *session = raw->open(straight);
    bool ours = raw_is_ours(raw);
    for (int64_t begin = clock_ms(), ms = 0; odd == 0 &&
                                             (ms < RUN_MS || cuts < WANTED || kills < WANTED ||
                                              (ours && stops < WANTED) || granted < GRANTS) &&
                                             ms < slow_ms(GIVE_UP_MS);
         ms = clock_ms() - begin) {
        int what = rand_r(&seed) % (ours ? 6 : 4);
        sleep_ms(20 + rand_r(&seed) % 100);
        if (what < 2) {
            faultproxy_arm(proxy, 1 + rand_r(&seed) % 5,
                           (struct fault){.kind = FAULT_CUT,
                                          .side = rand_r(&seed) % 3 ? ON_ANSWER : ON_REQUEST});
            cuts++;
        } else if (what == 2) {
            faultproxy_cut(proxy);
            cuts++;
        } else if (what == 3) {
            kill_one(session);
        } else {
            raw_control(raw, "freeze");
            sleep_ms(rand_r(&seed) % (2 * LEASE_MS));
            raw_control(raw, "thaw");
            stops++;
        }
    }
    over = true;
    raw->close(session);
}

/* ---- the whole */

static void judge(const char *path)
{
    static struct history history;
    int most;
    history_read(&history, path);
    tap_ok(history.count >= GRANTS, "every grant that was told is in the history: %d",
           history.count);
    tap_is_int(history_conflicts(&history, true), 0, "never a writer with a reader");
    tap_is_int(history_excesses(&history, &most), 0, "never more than the permits");
    tap_ok(most > 1, "and more than one at a time: %d", most);
    tap_is_int(history_inversions(&history), 0, "tokens increase in the order of grants");
    tap_note("%d grants, %d confirmations, %d lost", history.count, history.kept, history.lost);
}

static int left(const char *table)
{
    return (int)db_int(raw, straight, "SELECT count(*) FROM %s WHERE expires > %s", table,
                       raw->clock);
}

static int run(const struct raw *this, const char *url)
{
    static struct person people[SWARM_MAX];
    char path[300], *through = NULL;
    const char *seed_text = getenv("ROWLOCK_TEST_SEED"), *tmp = getenv("TMPDIR");
    unsigned seed = seed_text ? (unsigned)strtoul(seed_text, NULL, 10) : (unsigned)getpid();
    raw = this;
    straight = url;
    if (strstr(url, "rowlock_pooler="))
        return tap_skip_all("a pooler gives our own session the name of those that are killed");
    if (!(proxy = faultproxy_start(url, &through)))
        return tap_skip_all("the server's URL has no host and port");
    must_install(url);
    tap_note("seed %u", seed);
    snprintf(path, sizeof path, "%s/history", tmp ? tmp : "/tmp");
    file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    rowlock_pool *pool = must_pool(through, 2, NULL);
    for (int i = 0; i < SWARM_MAX; i++) {
        struct person *p = &people[i];
        *p = (struct person){.db = must_join(pool, slow_ms(1000), 0),
                             .seed = (unsigned)rand_r(&seed)};
        for (int k = 0; k < HISTORY_NAMES; k++)
            p->lock[k] = must_lock(p->db, names[k]);
        p->thread = helper_start(live, p);
    }
    disturb(seed);
    for (int i = 0; i < SWARM_MAX; i++)
        helper_join(people[i].thread);
    for (int i = 0; i < SWARM_MAX; i++) {
        close_each_lock(people[i].lock, HISTORY_NAMES);
        rowlock_db_close(people[i].db);
    }
    rowlock_pool_close(pool);
    tap_is_int(odd, 0, "nobody is told what it should not be");
    tap_ok(granted >= GRANTS && cuts >= WANTED && kills >= WANTED,
           "in spite of %d cuts, %d kills and %d stops of the server", cuts, kills, stops);
    sleep_ms(TICKET_MS);
    tap_is_int(left("rowlock_locks"), 0, "no grant is left beyond its lease");
    tap_is_int(left("rowlock_waiters"), 0, "nor a ticket");
    judge(path);
    close(file);
    unlink(path);
    faultproxy_stop(proxy);
    free(through);
    return tap_done();
}

int main(int argc, char **argv)
{
    (void)argc;
    return each_main(argv, run);
}
