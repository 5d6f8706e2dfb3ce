/* SPDX-License-Identifier: MIT
 *
 * Servers that crash, are not there, or stand still: what calls say, and how soon; and that all
 * goes on when they are back. Only a private server is touched, by server-ctl.sh.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "each.h"
#include "seam/db.h"
#include "quick.h"
#include "tap.h"

/* What a call may take that must fail: a statement, connecting and reconnecting. MySQL's client libraries
 * know whole seconds only. All other calls have time. */
enum { TTL_MS = 600000, SHORT_MS = 1000, RECONNECT_MS = 300, LONG_MS = 60000, GRACE_MS = 30000 };

static const struct raw *raw;
static char *url;

static void control(const char *what)
{
    raw_control(raw, what);
}

/* The library's words are asked for after the call. */
static void is_result(const rowlock_db *db, int got, int want, const char *what)
{
    tap_is_int(got, want, "%s: %s", what, got == ROWLOCK_OK ? "done" : why(db));
}

static rowlock_db *open_patiently(void)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.statement_timeout_ms = LONG_MS;
    options.connect_timeout_ms = LONG_MS;
    options.reconnect_ms = LONG_MS;
    return must_open_with(url, &options);
}

/* As if it had been opened with such limits. */
static void limit(rowlock_db *db, int64_t short_ms, int64_t reconnect_ms)
{
    db->target.timeout_ms = db->target.connect_ms = short_ms;
    db->statement_us = short_ms * 1000;
    db->reconnect_us = reconnect_ms * 1000;
}

static void hurry(rowlock_db *db)
{
    limit(db, strcmp(raw->name, "mysql") == 0 ? SHORT_MS : SHORT_MS / 4, RECONNECT_MS);
}

static void relax(rowlock_db *db)
{
    limit(db, LONG_MS, LONG_MS);
}

static rowlock_db_options short_limits(void)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.statement_timeout_ms = options.connect_timeout_ms = SHORT_MS;
    options.reconnect_ms = RECONNECT_MS;
    return options;
}

/* MySQL's client library takes the limit of a statement when it connects. A slow machine may miss it. */
static rowlock_db *hold_in_a_hurry(const char *name, rowlock_lock **lock)
{
    rowlock_db *db = NULL;
    rowlock_db_options options = short_limits();
    int64_t end_ms = clock_ms() + LONG_MS;
    while (rowlock_db_open(url, &options, &db, NULL) != ROWLOCK_OK && clock_ms() < end_ms)
        ;
    *lock = must_lock(db, name);
    while (try_lock(*lock, TTL_MS) != ROWLOCK_OK && clock_ms() < end_ms)
        ;
    /* Now its statement is prepared: what is lost next is the renewal itself. */
    while (rowlock_renew(*lock, 0) != ROWLOCK_OK && clock_ms() < end_ms)
        ;
    tap_ok(rowlock_lock_remaining_ms(*lock) > 0, "one is held, and renewed");
    hurry(db);
    return db;
}

static bool soon(int64_t began)
{
    return clock_ms() - began < GRACE_MS;
}

static bool is_unreachable(int result)
{
    return result == ROWLOCK_ECONN || result == ROWLOCK_EUNCERTAIN;
}

static void fails_soon(rowlock_db *db, int result, int64_t began, const char *what)
{
    tap_ok(is_unreachable(result), "%s: %s", what, result < 0 ? why(db) : "no failure");
    tap_ok(soon(began), "and soon, in %lld ms", (long long)(clock_ms() - began));
}

static void open_fails_soon(const char *what)
{
    rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db_options options = short_limits();
    int64_t began = clock_ms();
    tap_is_int(rowlock_db_open(url, &options, &db, &err), ROWLOCK_ECONN, "opening %s: %s", what,
               err.text);
    tap_ok(soon(began) && err.text[0] && err.retryable, "and soon, in %lld ms, in words",
           (long long)(clock_ms() - began));
}

static int table_count(void)
{
    return (int)db_int(raw, url, "SELECT count(*) FROM rowlock_locks");
}

/* ---- crashed */

static void test_crash(void)
{
    rowlock_db *db = open_patiently(), *quiet = open_patiently();
    rowlock_lock *held = must_lock(db, "held"), *free_one = must_lock(db, "free");
    rowlock_lock *quiet_one = must_lock(quiet, "quiet");
    tap_is_int(try_lock(held, TTL_MS) | try_lock(quiet_one, TTL_MS), ROWLOCK_OK, "two are held");
    int64_t token = rowlock_lock_token(held);
    control("crash");

    hurry(db);
    int64_t began = clock_ms();
    fails_soon(db, rowlock_renew(held, 0), began, "renewing on a crashed server fails");
    tap_ok(rowlock_lock_remaining_ms(held) > TTL_MS / 2,
           "the lease goes on as far as it was confirmed");
    began = clock_ms();
    fails_soon(db, try_lock(free_one, TTL_MS), began, "acquiring fails");
    began = clock_ms();
    fails_soon(db, rowlock_release(held), began, "releasing fails");
    tap_is_int(rowlock_lock_token(held), token, "the lock is still held then");
    open_fails_soon("a crashed server");

    control("start");
    relax(db);
    is_result(db, rowlock_verify(held), ROWLOCK_OK, "a grant survives the crash");
    tap_is_int(rowlock_renew(held, 0), ROWLOCK_OK, "and can be renewed");
    is_result(quiet, rowlock_renew(quiet_one, 0), ROWLOCK_OK,
              "who was quiet all the time does not notice");
    tap_is_int(try_lock(free_one, TTL_MS), ROWLOCK_OK, "what was free is granted");
    tap_is_int(rowlock_release(held), ROWLOCK_OK, "what was held is released");
    tap_is_int(try_lock(held, TTL_MS), ROWLOCK_OK, "and granted anew");
    tap_ok(rowlock_lock_token(held) > token, "with a higher token");
    close_locks(held, free_one, quiet_one);
    close_dbs(db, quiet);
    tap_is_int(table_count(), 0, "nothing is left behind");
}

static int restart(void *unused)
{
    (void)unused;
    /* Time: the renewal mostly finds no server by then. One that begins later is done as well. */
    sleep_ms(300);
    control("start");
    return 0;
}

static void test_restart_while_asking(void)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.reconnect_ms = 60000;
    OWNED(db) rowlock_db *db = must_open_with(url, &options);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "patient");
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "one is held");
    control("crash");
    struct helper *helper = helper_start(restart, NULL);
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_OK,
              "a renewal goes on trying until the server is back");
    helper_join(helper);
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "it is released");
}

/* ---- under waiters */

struct waiter {
    rowlock_db *db;
    rowlock_lock *lock;
    struct helper *helper;
    int64_t wait_ms;
    int got; /* as the so-maniest; 0: not yet */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int granted;
static int away_lines, back_lines;

static void count_lines(void *unused, rowlock_log_level level, const char *line)
{
    (void)unused;
    (void)level;
    pthread_mutex_lock(&mutex);
    away_lines += strstr(line, "is away") != NULL;
    back_lines += strstr(line, "is back") != NULL;
    pthread_mutex_unlock(&mutex);
}

static int wait_for_turn(void *argument)
{
    struct waiter *w = argument;
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.ttl_ms = TTL_MS;
    options.ticket_ms = TTL_MS;
    options.wait_ms = w->wait_ms;
    int result = rowlock_acquire(w->lock, &options);
    pthread_mutex_lock(&mutex);
    w->got = ++granted;
    pthread_mutex_unlock(&mutex);
    return result;
}

static bool has_ended(const struct waiter *w)
{
    pthread_mutex_lock(&mutex);
    bool ended = w->got > 0;
    pthread_mutex_unlock(&mutex);
    return ended;
}

static void start_to_wait(struct waiter *w, int64_t wait_ms, int before)
{
    *w = (struct waiter){.db = open_patiently(), .wait_ms = wait_ms};
    w->lock = must_lock(w->db, "patient");
    limit(w->db, LONG_MS, RECONNECT_MS);
    w->helper = helper_start(wait_for_turn, w);
    /* On a machine that stood still its wait may have ended, and its ticket has gone. */
    while (!has_ended(w) && db_int(raw, url, "SELECT count(*) FROM rowlock_waiters") <= before)
        sleep_ms(20);
}

static void close_waiter(struct waiter *w)
{
    rowlock_lock_close(w->lock);
    rowlock_db_close(w->db);
}

static bool is_noticed(void)
{
    pthread_mutex_lock(&mutex);
    bool noticed = away_lines > 0;
    pthread_mutex_unlock(&mutex);
    return noticed;
}

/* For longer than other calls try to reconnect, and until a waiter has noticed. */
static void outage(const char *end)
{
    control(end);
    /* Time: other calls give up after RECONNECT_MS of the real clock. More changes nothing. */
    sleep_ms(2 * RECONNECT_MS);
    for (int64_t end_ms = clock_ms() + GRACE_MS; !is_noticed() && clock_ms() < end_ms;)
        sleep_ms(20);
    control("start");
}

static void test_outage_under_waiters(const char *end)
{
    struct waiter first, second;
    rowlock_db *db = open_patiently();
    rowlock_lock *lock = must_lock(db, "patient");
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is held, two wait, then: %s", end);
    granted = away_lines = back_lines = 0;
    rowlock_log_set(count_lines, NULL, ROWLOCK_LOG_WARNING);
    start_to_wait(&first, ROWLOCK_FOREVER, 0);
    start_to_wait(&second, ROWLOCK_FOREVER, 1);
    /* PostgreSQL commits a ticket without waiting for the disk. A renewal waits, also for what came before. */
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_OK, "a renewal takes the tickets to the disk");
    outage(end);
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "after an outage it is released");
    is_result(first.db, helper_join(first.helper), ROWLOCK_OK,
              "the first waiter has waited through it");
    tap_is_int(first.got, 1, "and has kept its place");
    tap_is_int(rowlock_release(first.lock), ROWLOCK_OK, "it releases the lock");
    is_result(second.db, helper_join(second.helper), ROWLOCK_OK, "which the second one gets");
    tap_ok(away_lines >= 1 && away_lines <= 2 && back_lines == away_lines,
           "each waiter logs an outage once: %d, and its end: %d", away_lines, back_lines);
    rowlock_log_set(NULL, NULL, ROWLOCK_LOG_WARNING);
    close_waiter(&first);
    close_waiter(&second);
    rowlock_lock_close(lock);
    rowlock_db_close(db);
    tap_is_int(table_count(), 0, "nothing is left behind");
    tap_is_int((int)db_int(raw, url, "SELECT count(*) FROM rowlock_waiters"), 0,
               "no ticket either");
}

static void test_outage_longer_than_the_wait(void)
{
    struct waiter waiter = {0};
    rowlock_db *db = open_patiently();
    rowlock_lock *lock = must_lock(db, "patient");
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is held, and one waits");
    int said = ROWLOCK_TIMEOUT;
    /* A slow machine may need longer to crash the server than the wait lasts. */
    for (int64_t wait_ms = 1500; said == ROWLOCK_TIMEOUT && wait_ms < LONG_MS; wait_ms *= 6) {
        if (waiter.db) {
            close_waiter(&waiter);
            control("start");
        }
        start_to_wait(&waiter, wait_ms, 0);
        control("crash");
        said = helper_join(waiter.helper);
    }
    tap_ok(is_unreachable(said), "a wait that ends without one is no TIMEOUT");
    tap_ok(strstr(why(waiter.db), "has been away for") != NULL, "which the text says: %s",
           why(waiter.db));
    control("start");
    close_waiter(&waiter);
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "the lock is released");
    rowlock_lock_close(lock);
    rowlock_db_close(db);
    db_exec(raw, url, "DELETE FROM rowlock_waiters");
}

static void test_close_without_server(void)
{
    rowlock_db *db = open_patiently();
    rowlock_lock *locks[5];
    for (int i = 0; i < 5; i++) {
        char name[20];
        snprintf(name, sizeof name, "closing %d", i);
        locks[i] = must_lock(db, name);
        tap_is_int(try_lock(locks[i], TTL_MS), ROWLOCK_OK, "one more is held");
    }
    control("crash");
    hurry(db);
    int64_t began = clock_ms();
    rowlock_db_close(db);
    tap_ok(soon(began), "a handle with five locks on a crashed server is closed soon: %lld ms",
           (long long)(clock_ms() - began));
    for (int i = 0; i < 5; i++)
        rowlock_lock_close(locks[i]);
    control("start");
    db_exec(raw, url, "DELETE FROM rowlock_locks");
}

/* ---- frozen */

static void test_freeze(void)
{
    rowlock_lock *held, *wanted;
    rowlock_db *db = hold_in_a_hurry("held", &held), *other = hold_in_a_hurry("wanted", &wanted);
    while (is_unreachable(rowlock_release(wanted)))
        ;
    control("freeze");

    int64_t began = clock_ms();
    int said = rowlock_renew(held, 0);
    fails_soon(db, said, began, "renewing on a frozen server fails");
    tap_is_int(said, ROWLOCK_EUNCERTAIN, "and nobody knows whether it will have been done");
    began = clock_ms();
    said = try_lock(wanted, TTL_MS);
    fails_soon(other, said, began, "acquiring fails");
    open_fails_soon("a frozen server");

    control("thaw");
    relax(db);
    relax(other);
    is_result(db, rowlock_renew(held, 0), ROWLOCK_OK, "all goes on when it is thawed");
    is_result(other, try_lock(wanted, TTL_MS), ROWLOCK_OK, "who wanted a lock gets it");
    tap_is_int((int)db_int(raw, url, "SELECT count(*) FROM rowlock_locks WHERE name = 'wanted'"), 1,
               "once");
    tap_is_int(rowlock_lock_token(wanted),
               db_int(raw, url, "SELECT token FROM rowlock_tokens WHERE name = 'wanted'"),
               "with the newest token there is");
    tap_is_int(rowlock_release(held) | rowlock_release(wanted), ROWLOCK_OK, "both are released");
    close_locks(held, wanted);
    close_dbs(db, other);
    tap_is_int(table_count(), 0, "nothing is left behind");
}

static int thaw_soon(void *unused)
{
    (void)unused;
    /* Time: the renewal mostly waits by then. One that begins later is done as well. */
    sleep_ms(300);
    control("thaw");
    return 0;
}

static void test_short_freeze(void)
{
    OWNED(db) rowlock_db *db = open_patiently();
    OWNED(lock) rowlock_lock *lock = must_lock(db, "held");
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "one is held");
    control("freeze");
    struct helper *helper = helper_start(thaw_soon, NULL);
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK,
               "a hiccup shorter than the deadline is no failure");
    helper_join(helper);
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "it is released");
}

static atomic_bool told;

/* Thaws it after the reconnect time, and long before the connect timeout. */
static int thaw_late(void *unused)
{
    (void)unused;
    for (int i = 0; i < LONG_MS / 200 && !told; i++)
        sleep_ms(100);
    control("thaw");
    return 0;
}

static void test_reconnect_limit(void)
{
    rowlock_lock *lock;
    OWNED(db) rowlock_db *db = hold_in_a_hurry("held", &lock);
    control("freeze");
    struct helper *helper = helper_start(thaw_late, NULL);
    db->target.connect_ms = LONG_MS;
    int said = rowlock_verify(lock);
    told = true;
    relax(db);
    tap_ok(is_unreachable(said), "reconnecting ends before the connect timeout: %d", said);
    helper_join(helper);
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "it is released");
    rowlock_lock_close(lock);
}

static int run(const struct raw *database, const char *given)
{
    raw = database;
    if (!raw_is_ours(raw))
        return tap_skip_all("the server is not a private one");
    url = strdup(given);
    must_install(url);
    db_exec(raw, url, "DELETE FROM rowlock_locks");
    test_crash();
    test_restart_while_asking();
    test_outage_under_waiters("stop");
    test_outage_under_waiters("crash");
    test_outage_longer_than_the_wait();
    test_close_without_server();
    test_freeze();
    test_short_freeze();
    test_reconnect_limit();
    free(url);
    return tap_done();
}

EACH_MAIN(run)
