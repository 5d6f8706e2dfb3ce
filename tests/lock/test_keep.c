/* SPDX-License-Identifier: MIT
 *
 * rowlock_acquire_options.keep: one keeper for all handles of a database, opened with the first
 * acquire and closed with the last handle. How long a statement of a keeper may last. */
#include "backend_script.h"

enum { TTL_MS = 3000, THIRD_MS = TTL_MS / 3, HANDLES = 8 };

struct one {
    rowlock_db *db;
    rowlock_lock *lock;
    struct helper *helper;
    int64_t wait_ms;
    int result;
};

static struct one open_with(const rowlock_db_options *options, const char *name)
{
    struct one one = {.db = script_open(options)};
    one.lock = must_lock(one.db, name);
    return one;
}

static struct one open_one(const char *name)
{
    return open_with(NULL, name);
}

static void close_one(struct one *one)
{
    rowlock_lock_close(one->lock);
    rowlock_db_close(one->db);
}

static int keep(rowlock_lock *lock, int64_t wait_ms)
{
    return rowlock_acquire(lock, OPTIONS(acquire, .ttl_ms = TTL_MS, .wait_ms = wait_ms, .keep = 1));
}

static void test_shared(void)
{
    script_reset();
    script_freeze();
    struct one a = open_one("a"), b = open_one("b"), c = open_one("c");
    tap_is_int(keep(a.lock, 0), ROWLOCK_OK, "a lock is kept");
    tap_is_int(script_count(OP_OPEN), 4, "by a keeper with a connection of its own");
    tap_is_int(keep(b.lock, 0), ROWLOCK_OK, "a lock of another handle is kept");
    tap_is_int(script_count(OP_OPEN), 4, "by the same one");
    script_pass_ms(THIRD_MS);
    tap_ok(EVENTUALLY(script_count(OP_RENEW_ALL) > 0), "they are renewed");
    tap_is_int(script_leases(0), 2, "in one statement");
    tap_is_int(rowlock_release(a.lock), ROWLOCK_OK, "one is released");
    close_one(&a);
    script_pass_ms(THIRD_MS);
    tap_ok(EVENTUALLY(script_count(OP_RENEW_ALL) > 1), "the other is renewed");
    close_one(&c);
    tap_is_int(script_count(OP_CLOSE), 2, "a handle without a kept lock is closed alone");
    close_one(&b);
    tap_is_int(script_count(OP_CLOSE), 4, "the last handle that had one closes the keeper");
    struct one again = open_one("a");
    tap_is_int(keep(again.lock, 0), ROWLOCK_OK, "a later handle keeps a lock");
    tap_is_int(script_count(OP_OPEN), 6, "by a new keeper");
    close_one(&again);
}

static void test_other_tables(const rowlock_db_options *options, const char *identity,
                              const char *what)
{
    script_reset();
    struct one a = open_one("a");
    tap_is_int(keep(a.lock, 0), ROWLOCK_OK, "a lock is kept");
    script_always(OP_META, ANSWER(.identity = identity));
    struct one b = open_with(options, "b");
    tap_is_int(keep(b.lock, 0), ROWLOCK_OK, "one in %s is kept", what);
    tap_is_int(script_count(OP_OPEN), 4, "by another keeper");
    close_one(&a);
    close_one(&b);
    tap_is_int(script_count(OP_CLOSE), 4, "both are closed");
}

static _Thread_local bool is_waiter;

static int keep_it(void *context)
{
    struct one *one = context;
    is_waiter = one->wait_ms != 0;
    one->result = keep(one->lock, one->wait_ms);
    return 0;
}

static struct helper *keep_for_long(struct one *one)
{
    one->wait_ms = ROWLOCK_FOREVER;
    return helper_start(keep_it, one);
}

static void test_at_once(void)
{
    struct one ones[HANDLES];
    int good = 0;
    script_reset();
    for (int i = 0; i < HANDLES; i++)
        ones[i] = open_one(textf("lock %d", i));
    for (int i = 0; i < HANDLES; i++)
        ones[i].helper = helper_start(keep_it, &ones[i]);
    for (int i = 0; i < HANDLES; i++) {
        helper_join(ones[i].helper);
        good += ones[i].result == ROWLOCK_OK;
    }
    tap_is_int(good, HANDLES, "threads that keep locks at the same time");
    tap_is_int(script_count(OP_OPEN), HANDLES + 1, "open one keeper");
    for (int i = 0; i < HANDLES; i++)
        close_one(&ones[i]);
    tap_is_int(script_count(OP_CLOSE), HANDLES + 1, "and close it");
}

/* ---- the keeper cannot be opened */

static int told;

static void count_warnings(void *unused, rowlock_log_level level, const char *line)
{
    told += strstr(line, "the keeper cannot connect; still waiting: the server's own") != NULL;
}

static void test_fails(void)
{
    script_reset();
    CLOSED_BY(close_one) struct one a = open_one("a");
    script_always(OP_OPEN, FAILS(RLK_DENIED));
    tap_is_int(keep(a.lock, 10000), ROWLOCK_EDENIED, "the keeper is refused: no wait");
    tap_ok(strstr(why(a.db), "the server's own words") != NULL, "it says why");
    tap_is_int(script_count(OP_ACQUIRE), 0, "and nothing was acquired");
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    tap_is_int(keep(a.lock, 0), ROWLOCK_ECONN, "the server is away: a try ends");
    script_next(OP_OPEN, FAILS(RLK_UNSENT));
    script_next(OP_OPEN, FAILS(RLK_UNSENT));
    script_always(OP_OPEN, ANSWER(.class = RLK_DONE));
    rowlock_log_set(count_warnings, NULL, ROWLOCK_LOG_WARNING);
    tap_is_int(keep(a.lock, 60000), ROWLOCK_OK, "a wait goes on until the server is back");
    rowlock_log_set(NULL, NULL, ROWLOCK_LOG_WARNING);
    tap_is_int(told, 1, "and says once why");
}

static void test_cancelled(void)
{
    script_reset();
    CLOSED_BY(close_one) struct one a = open_one("a");
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    struct helper *waiter = keep_for_long(&a);
    tap_ok(EVENTUALLY(script_count(OP_OPEN) > 2), "a wait for a keeper");
    rowlock_cancel(a.db);
    helper_join(waiter);
    tap_is_int(a.result, ROWLOCK_CANCELLED, "is cancelled");
}

/* ---- a keeper that another thread is opening */

static atomic_bool stuck, asleep;
static atomic_int looks;
static int (*real_poll)(struct pollfd *fds, nfds_t count, int timeout_ms);

static void stick(enum script_op op)
{
    while (stuck && op == OP_OPEN)
        sleep_ms(1);
}

static int count_looks(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    looks += is_waiter;
    while (asleep && is_waiter)
        sleep_ms(1);
    return real_poll(fds, count, timeout_ms);
}

/* In a wait for the keeper that `opening` opens. */
static struct helper *wait_for_it(struct one *one)
{
    looks = 0;
    struct helper *waiter = keep_for_long(one);
    if (!EVENTUALLY(looks > 0))
        tap_ok(false, "another thread waits for the keeper");
    return waiter;
}

/* A thread opens the keeper, and stands still there, as the last of so many connections. */
static struct helper *open_stuck(struct one *opening, int connections)
{
    real_poll = rlk_poll;
    rlk_poll = count_looks;
    stuck = true;
    script_hook(stick);
    struct helper *opener = helper_start(keep_it, opening);
    if (!EVENTUALLY(script_count(OP_OPEN) == connections))
        tap_ok(false, "a thread opens the keeper");
    return opener;
}

static void test_one_attempt(void)
{
    script_reset();
    CLOSED_BY(close_one)
    struct one opening = open_one("a"), cancelled = open_one("b"), waiting = open_one("c");
    script_always(OP_OPEN, FAILS(RLK_DENIED));
    struct helper *opener = open_stuck(&opening, 4);
    struct helper *waiter = wait_for_it(&cancelled);
    rowlock_cancel(cancelled.db);
    helper_join(waiter);
    tap_is_int(cancelled.result, ROWLOCK_CANCELLED, "a wait for another's keeper is cancelled");
    waiter = wait_for_it(&waiting);
    stuck = false;
    helper_join(opener);
    helper_join(waiter);
    tap_is_int(opening.result, ROWLOCK_EDENIED, "the keeper is refused");
    tap_is_int(waiting.result, ROWLOCK_EDENIED, "to all that have waited for it");
    tap_ok(strstr(why(waiting.db), "the server's own words") != NULL, "they are told why");
    tap_is_int(script_count(OP_OPEN), 4, "after one attempt");
}

/* The one that has opened it closes its handle before the other looks again. */
static void test_opener_leaves(void)
{
    script_reset();
    struct one opening = open_one("a"), waiting = open_one("b");
    struct helper *opener = open_stuck(&opening, 3);
    asleep = true;
    struct helper *waiter = wait_for_it(&waiting);
    stuck = false;
    helper_join(opener);
    tap_is_int(opening.result, ROWLOCK_OK, "the keeper is open");
    tap_is_int(rowlock_release(opening.lock), ROWLOCK_OK, "its lock is released");
    close_one(&opening);
    asleep = false;
    helper_join(waiter);
    tap_is_int(waiting.result, ROWLOCK_OK, "another that has waited for it has a lock");
    tap_is_int(script_count(OP_CLOSE), 1, "the keeper was not closed meanwhile");
    tap_is_int(script_count(OP_OPEN), 3, "nor opened again");
    close_one(&waiting);
    tap_is_int(script_count(OP_CLOSE), 3, "it is closed with the last handle");
}

static void test_reentry(void)
{
    script_reset();
    script_freeze();
    CLOSED_BY(close_one) struct one a = open_one("a");
    tap_is_int(rowlock_acquire(a.lock, OPTIONS(acquire, .ttl_ms = TTL_MS)), ROWLOCK_OK,
               "a lock without a keeper");
    tap_is_int(keep(a.lock, 0), ROWLOCK_OK, "acquired once more, with one");
    script_pass_ms(THIRD_MS);
    tap_ok(EVENTUALLY(script_count(OP_RENEW_ALL) > 0), "is renewed");
    tap_is_int(rowlock_release(a.lock), ROWLOCK_OK, "it is released once");
    tap_is_int(rowlock_lock_state(a.lock), ROWLOCK_STATE_HELD, "and still held");
}

static void test_refused(void)
{
    script_reset();
    CLOSED_BY(close_one) struct one a = open_one("a");
    rowlock_keeper *keeper = NULL;
    tap_is_int(rowlock_keeper_open(a.db, NULL), ROWLOCK_EINVAL, "no place for a keeper");
    tap_is_int(rowlock_keeper_open(NULL, &keeper), ROWLOCK_EMISUSE, "no database for one");
    tap_is_int(rowlock_keeper_open(a.db, &keeper), ROWLOCK_OK, "a keeper");
    tap_is_int(rowlock_acquire(a.lock, OPTIONS(acquire, .keep = 1, .keeper = keeper)),
               ROWLOCK_EINVAL, "keep and a keeper exclude each other");
    tap_is_int(rowlock_acquire(a.lock, OPTIONS(acquire, .keep = 2)), ROWLOCK_EINVAL,
               "keep is 0 or 1");
    rowlock_keeper_close(keeper);
    OWNED(db) rowlock_db *adopted = script_adopt();
    OWNED(lock) rowlock_lock *lock = must_lock(adopted, "a");
    tap_is_int(keep(lock, 0), ROWLOCK_EUNSUPPORTED, "an adopted connection shares no keeper");
    tap_ok(strstr(why(adopted), "options.keeper") != NULL, "it says what to do");
    tap_is_int(rowlock_keeper_open(adopted, &keeper), ROWLOCK_EUNSUPPORTED, "and opens none");
    tap_ok(!keeper && strstr(why(adopted), "options.keeper") != NULL, "it says what to do");
}

/* ---- fork */

static int in_child(void *argument)
{
    struct one *parents = argument;
    struct one own = open_one("mine");
    bool good = keep(own.lock, 0) == ROWLOCK_OK && rowlock_release(own.lock) == ROWLOCK_OK;
    close_one(&own);
    close_one(parents);
    return good ? 0 : 1;
}

/* TSan starts no thread in a child of a program with threads. The child of one with ASan may wait
 * for a thread of its parent to allocate. */
static void test_fork(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    return;
#endif
    if (getenv("ROWLOCK_TEST_WRAPPER")) /* valgrind: a child leaves its parent's keeper alone */
        return;
    script_reset();
    CLOSED_BY(close_one) struct one a = open_one("a");
    tap_is_int(keep(a.lock, 0), ROWLOCK_OK, "a lock is kept");
    tap_is_int(child_join(child_start(in_child, &a)), 0, "a child has a keeper of its own");
    tap_is_int(rowlock_release(a.lock), ROWLOCK_OK, "its parent's lock stands");
}

/* ---- how long a statement may last */

static int64_t limit_ms(int64_t ttl_ms, int64_t timeout_ms)
{
    script_reset();
    script_freeze();
    CLOSED_BY(close_one)
    struct one a = open_with(OPTIONS(db, .statement_timeout_ms = timeout_ms), "a");
    int result = rowlock_acquire(a.lock, OPTIONS(acquire, .ttl_ms = ttl_ms, .keep = 1));
    if (result != ROWLOCK_OK)
        tap_note("%s", why(a.db));
    script_pass_ms(ttl_ms / 3 + 1);
    if (!EVENTUALLY(script_count(OP_RENEW_ALL) > 0))
        tap_ok(false, "the lease is renewed");
    int64_t limit = (script.deadline_us - rlk_now_us()) / 1000;
    return limit;
}

static void test_limits(void)
{
    tap_is_int(limit_ms(30000, 0), 5000, "a renewal of a long lease lasts 5 s at most");
    tap_is_int(limit_ms(6000, 0), 2000, "of a lease of 6 s: a third of it");
    tap_is_int(limit_ms(2000, 0), 1000, "of a short lease: a second");
    tap_is_int(limit_ms(30000, 700), 700, "or as long as a statement of the handle");
}

int main(void)
{
    test_shared();
    test_other_tables(OPTIONS(db, .prefix = "other_"), NULL, "other tables");
    test_other_tables(NULL, "made anew", "tables that were made anew");
    test_at_once();
    test_fails();
    test_cancelled();
    test_one_attempt();
    test_opener_leaves();
    test_reentry();
    test_refused();
    test_fork();
    test_limits();
    return tap_done();
}
