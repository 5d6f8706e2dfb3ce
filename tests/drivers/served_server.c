/* SPDX-License-Identifier: MIT
 *
 * Servers that crash, are not there, or stand still: what calls say, and how soon; and that all
 * goes on when they are back. Only a private server is touched, by server-ctl.sh. */

#include "each.h"
#include "core/db.h"

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
    return must_open_with(url, OPTIONS(db, .statement_timeout_ms = LONG_MS,
                                       .connect_timeout_ms = LONG_MS, .reconnect_ms = LONG_MS));
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

static const rowlock_db_options short_limits = {.size = sizeof short_limits,
                                                .statement_timeout_ms = SHORT_MS,
                                                .connect_timeout_ms = SHORT_MS,
                                                .reconnect_ms = RECONNECT_MS};

/* MySQL's client library takes the limit of a statement when it connects. A slow machine may miss it. */
static rowlock_db *hold_in_a_hurry(const char *name, rowlock_lock **lock)
{
    rowlock_db *db = NULL;
    int64_t end_ms = clock_ms() + LONG_MS;
    while (rowlock_db_open(url, &short_limits, &db, NULL) != ROWLOCK_OK && clock_ms() < end_ms)
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
    int64_t began = clock_ms();
    tap_is_int(rowlock_db_open(url, &short_limits, &db, &err), ROWLOCK_ECONN, "opening %s: %s",
               what, err.text);
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
              "a handle that was quiet all the time does not notice");
    tap_is_int(try_lock(free_one, TTL_MS), ROWLOCK_OK, "what was free is granted");
    tap_is_int(rowlock_release(held), ROWLOCK_OK, "what was held is released");
    tap_is_int(try_lock(held, TTL_MS), ROWLOCK_OK, "and granted anew");
    tap_ok(rowlock_lock_token(held) > token, "with a higher token");
    close_locks(held, free_one, quiet_one);
    close_dbs(db, quiet);
    tap_is_int(table_count(), 0, "nothing is left behind");
}

static int control_soon(void *action)
{
    /* Time: the renewal mostly waits by then. One that begins later is done as well. */
    sleep_ms(300);
    control(action);
    return 0;
}

/* A lock is renewed between these two acts, of which the second comes late. */
static void renews_between(rowlock_db *db, const char *first, char *second, const char *what)
{
    OWNED(lock) rowlock_lock *lock = must_lock(db, "renewed");
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "one is held");
    control(first);
    struct helper *helper = helper_start(control_soon, second);
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_OK, what);
    helper_join(helper);
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "it is released");
}

static void test_restart_while_asking(void)
{
    OWNED(db) rowlock_db *db = must_open_with(url, OPTIONS(db, .reconnect_ms = 60000));
    renews_between(db, "crash", "start", "a renewal goes on trying until the server is back");
}

/* ---- under waiters */

struct waiter {
    rowlock_db *db;
    rowlock_lock *lock;
    struct helper *helper;
    int64_t wait_ms;
    atomic_int got; /* as the so-maniest; 0: not yet */
};

static atomic_int granted, away_lines, back_lines;

static void count_lines(void *unused, rowlock_log_level level, const char *line)
{
    away_lines += strstr(line, "is away") != NULL;
    back_lines += strstr(line, "is back") != NULL;
}

static int wait_for_turn(void *argument)
{
    struct waiter *w = argument;
    int result = rowlock_acquire(
        w->lock, OPTIONS(acquire, .ttl_ms = TTL_MS, .ticket_ms = TTL_MS, .wait_ms = w->wait_ms));
    w->got = ++granted;
    return result;
}

static void start_to_wait(struct waiter *w, int64_t wait_ms, int before)
{
    *w = (struct waiter){.db = open_patiently(), .wait_ms = wait_ms};
    w->lock = must_lock(w->db, "patient");
    limit(w->db, LONG_MS, RECONNECT_MS);
    w->helper = helper_start(wait_for_turn, w);
    /* On a machine that stood still its wait may have ended, and its ticket has gone. */
    while (w->got == 0 && db_int(raw, url, "SELECT count(*) FROM rowlock_waiters") <= before)
        sleep_ms(20);
}

static void close_waiter(struct waiter *w)
{
    rowlock_lock_close(w->lock);
    rowlock_db_close(w->db);
}

/* For longer than other calls try to reconnect, and until a waiter has noticed. */
static void end_outage(void)
{
    /* Time: other calls give up after RECONNECT_MS of the real clock. More changes nothing. */
    sleep_ms(2 * RECONNECT_MS);
    (void)EVENTUALLY(away_lines > 0);
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
    control(end);
    end_outage();
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
    OWNED(db) rowlock_db *db = open_patiently();
    OWNED(lock) rowlock_lock *lock = must_lock(db, "patient");
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
    db_exec(raw, url, "DELETE FROM rowlock_waiters");
}

static void test_close_without_server(void)
{
    rowlock_db *db = open_patiently();
    rowlock_lock *locks[5];
    for (int i = 0; i < 5; i++) {
        locks[i] = must_lock(db, textf("closing %d", i));
        tap_is_int(try_lock(locks[i], TTL_MS), ROWLOCK_OK, "one more is held");
    }
    control("crash");
    hurry(db);
    int64_t began = clock_ms();
    rowlock_db_close(db);
    tap_ok(soon(began), "a handle with five locks on a crashed server is closed soon: %lld ms",
           (long long)(clock_ms() - began));
    close_each_lock(locks, 5);
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
    tap_is_int(said, ROWLOCK_EUNCERTAIN, "and it is not known whether it will have been done");
    began = clock_ms();
    said = try_lock(wanted, TTL_MS);
    fails_soon(other, said, began, "acquiring fails");
    open_fails_soon("a frozen server");
    control("thaw");
    relax(db);
    relax(other);
    is_result(db, rowlock_renew(held, 0), ROWLOCK_OK, "all goes on when it is thawed");
    is_result(other, try_lock(wanted, TTL_MS), ROWLOCK_OK, "the client that wanted a lock gets it");
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

static void test_short_freeze(void)
{
    OWNED(db) rowlock_db *db = open_patiently();
    renews_between(db, "freeze", "thaw", "a hiccup shorter than the deadline is no failure");
}

static atomic_bool told;

/* Thaws it after the reconnect time, and long before the connect timeout. */
static int thaw_late(void *unused)
{
    for (int i = 0; i < LONG_MS / 200 && !told; i++)
        sleep_ms(100);
    control("thaw");
    return 0;
}

static void test_reconnect_limit(void)
{
    OWNED(lock) rowlock_lock *lock = NULL;
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
}

/* ---- a server that takes no writes any more */

/* The user of the tests may write to a read-only MySQL. Free it. */
static char *plain_user(void)
{
    const char *user = "root@", *at = strstr(url, user);
    char *out = strdup(url);
    if (strcmp(raw->name, "mysql") != 0 || !at)
        return out;
    db_exec(raw, url, "CREATE USER IF NOT EXISTS app@'127.0.0.1'");
    db_exec(raw, url, "GRANT ALL ON rowlock.* TO app@'127.0.0.1'");
    snprintf(out, strlen(out) + 1, "%.*sapp@%s", (int)(at - url), url, at + strlen(user));
    return out;
}

static rowlock_db *open_as_plain_user(rowlock_pool *pool)
{
    OWNED(text) char *plain = pool ? NULL : plain_user();
    return must_open_with(plain, OPTIONS(db, .pool = pool,
                                         .statement_timeout_ms = pool ? SHORT_MS : LONG_MS,
                                         .reconnect_ms = LONG_MS));
}

enum { ACQUIRE, RENEW, RELEASE, REFUSABLE };
static const char *const refusable[] = {"acquire", "renew", "release"};
static atomic_bool refused[REFUSABLE];

static void note_refusal(void *unused, rowlock_log_level level, const char *line)
{
    for (int i = 0; i < REFUSABLE; i++)
        if (strncmp(line, refusable[i], strlen(refusable[i])) == 0 && strstr(line, "read-only"))
            refused[i] = true;
}

static void listen_for_refusals(void)
{
    for (int i = 0; i < REFUSABLE; i++)
        refused[i] = false;
    rowlock_log_set(note_refusal, NULL, ROWLOCK_LOG_DEBUG);
}

static void is_refused(int verb)
{
    tap_ok(EVENTUALLY(refused[verb]), "the server takes no writes: %s", refusable[verb]);
}

static int renew_it(void *lock)
{
    return rowlock_renew(lock, 0);
}

static int release_it(void *lock)
{
    return rowlock_release(lock);
}

struct kept_waiter {
    rowlock_lock *lock;
    rowlock_keeper *keeper;
    int64_t wait_ms;
};

static int wait_with_keeper(void *argument)
{
    const struct kept_waiter *w = argument;
    return rowlock_acquire(
        w->lock, OPTIONS(acquire, .ttl_ms = TTL_MS, .wait_ms = w->wait_ms, .keeper = w->keeper));
}

/* It was never seen to take writes, so it may be the wrong server for good. */
static void test_try_on_standby(void)
{
    OWNED(db) rowlock_db *db = open_as_plain_user(NULL);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "tried");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_EREADONLY, "a try is told that it takes none");
    rowlock_error err = error_of(db);
    tap_ok(err.retryable && strstr(err.text, "use a server that takes writes"), "with what to do");
    tap_is_int((int)db->connections, 1, "at once");
    struct kept_waiter ends = {.lock = lock, .wait_ms = 100};
    is_result(db, wait_with_keeper(&ends), ROWLOCK_EREADONLY, "a wait is told at its end");
    tap_ok(strstr(why(db), "has been away for") != NULL, "with how long that was");
}

/* The server is the only one of the URL. */
static void test_standby(void)
{
    rowlock_db *renewing = open_as_plain_user(NULL), *releasing = open_as_plain_user(NULL);
    rowlock_lock *renewed = must_lock(renewing, "renewed"),
                 *released = must_lock(releasing, "released");
    tap_is_int(try_lock(renewed, TTL_MS) | try_lock(released, TTL_MS), ROWLOCK_OK, "two are held");
    control("demote");
    test_try_on_standby();
    rowlock_db *waiting = open_as_plain_user(NULL);
    struct kept_waiter w = {.lock = must_lock(waiting, "waited for"), .wait_ms = ROWLOCK_FOREVER};
    tap_is_int(open_keeper_at(url, NULL, &w.keeper, NULL), ROWLOCK_OK, "a keeper is opened");
    listen_for_refusals();
    struct helper *wait = helper_start(wait_with_keeper, &w);
    struct helper *renew = helper_start(renew_it, renewed);
    struct helper *release = helper_start(release_it, released);
    is_refused(ACQUIRE);
    is_refused(RENEW);
    is_refused(RELEASE);
    control("promote");
    is_result(renewing, helper_join(renew), ROWLOCK_OK, "a renewal finds the server promoted");
    is_result(releasing, helper_join(release), ROWLOCK_OK, "and a release");
    is_result(waiting, helper_join(wait), ROWLOCK_OK, "and a wait that has begun on a standby");
    rowlock_log_set(NULL, NULL, ROWLOCK_LOG_WARNING);
    close_locks(renewed, released, w.lock);
    rowlock_keeper_close(w.keeper);
    close_dbs(renewing, releasing, waiting);
    tap_is_int(table_count(), 0, "nothing is left behind");
}

static void test_pool_on_standby(void)
{
    OWNED(pool) rowlock_pool *pool = NULL;
    OWNED(text) char *plain = plain_user();
    tap_is_int(rowlock_pool_open(plain, NULL, &pool, NULL), ROWLOCK_OK, "a pool");
    rowlock_db *closing = open_as_plain_user(pool), *held = open_as_plain_user(pool);
    rowlock_lock *closed = must_lock(closing, "closed"), *renewed = must_lock(held, "renewed");
    tap_is_int(try_lock(closed, TTL_MS) | try_lock(renewed, TTL_MS), ROWLOCK_OK, "two are held");
    control("demote");
    rowlock_lock_close(closed);
    rowlock_db_close(closing);
    listen_for_refusals();
    struct helper *renew = helper_start(renew_it, renewed);
    is_refused(RENEW);
    control("promote");
    is_result(held, helper_join(renew), ROWLOCK_OK, "a pool finds the server promoted");
    (void)EVENTUALLY(table_count() <= 1);
    tap_is_int(table_count(), 1, "and releases what was closed while it took no writes");
    rowlock_log_set(NULL, NULL, ROWLOCK_LOG_WARNING);
    tap_is_int(rowlock_release(renewed), ROWLOCK_OK, "the other one is released");
    rowlock_lock_close(renewed);
    rowlock_db_close(held);
}

/* The keeper's tables are compared with the handle's first. */
static void test_wait_that_begins_in_an_outage(void)
{
    OWNED(db) rowlock_db *db = open_patiently();
    struct kept_waiter w = {.lock = must_lock(db, "kept"), .wait_ms = ROWLOCK_FOREVER};
    tap_is_int(open_keeper_at(url, NULL, &w.keeper, NULL), ROWLOCK_OK, "a keeper is opened");
    control("crash");
    hurry(db);
    tap_ok(is_unreachable(try_lock(w.lock, TTL_MS)), "a handle knows that the server is away");
    away_lines = 0;
    rowlock_log_set(count_lines, NULL, ROWLOCK_LOG_WARNING);
    struct helper *wait = helper_start(wait_with_keeper, &w);
    end_outage();
    is_result(db, helper_join(wait), ROWLOCK_OK,
              "a wait with a keeper that begins then is granted");
    tap_ok(away_lines > 0, "and has waited for the server");
    rowlock_log_set(NULL, NULL, ROWLOCK_LOG_WARNING);
    rowlock_lock_close(w.lock);
    rowlock_keeper_close(w.keeper);
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
    test_wait_that_begins_in_an_outage();
    test_standby();
    test_pool_on_standby();
    free(url);
    return tap_done();
}

EACH_MAIN(run)
