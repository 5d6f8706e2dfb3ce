/* SPDX-License-Identifier: MIT
 *
 * A walk through the library while something fails; see memory_walk.h.
 */
#include "memory_walk.h"

#include <stdio.h>
#include <stdlib.h>

#include "quick.h"
#include "tap.h"

struct walk {
    const struct raw *raw;
    const char *url;
    const struct faulty *faulty;
    int nth;
    void *session; /* adopted; NULL: we open our own connection */
    rowlock_db *db;
    rowlock_lock *lock, *expired;
    int listed;
    bool good;
};

static bool is_clean(const struct walk *w, int result)
{
    return result == ROWLOCK_ENOMEM ||
           (w->faulty->vendors && (result == ROWLOCK_ECONN || result == ROWLOCK_EUNCERTAIN));
}

/* Done again after a lost answer, a release or a break may find nothing left to do. */
static bool is_done(int first, int second)
{
    return second == ROWLOCK_OK ||
           (first == ROWLOCK_EUNCERTAIN && (second == ROWLOCK_EMISUSE || second == ROWLOCK_NONE));
}

static int run(struct walk *w, int (*call)(struct walk *w))
{
    if (w->faulty->on)
        w->faulty->on(true);
    int result = call(w);
    if (w->faulty->on)
        w->faulty->on(false);
    return result;
}

static bool step(struct walk *w, const char *what, int (*call)(struct walk *w))
{
    int first = run(w, call);
    if (first == ROWLOCK_OK)
        return true;
    if (!is_clean(w, first)) {
        tap_note("failure %d: %s gives %s: %s", w->nth, what, rowlock_result_name(first),
                 w->db ? why(w->db) : "");
        w->good = false;
    }
    int second = run(w, call);
    if (is_done(first, second))
        return true;
    tap_note("failure %d: %s gives %s, and then again %s: %s", w->nth, what,
             rowlock_result_name(first), rowlock_result_name(second), w->db ? why(w->db) : "");
    return w->good = false;
}

static int call_open(struct walk *w)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.prefix = "walk_";
    if (w->faulty->vendors) /* what libpq has no memory to tell it never tells */
        options.statement_timeout_ms = slow_ms(500);
    int result = w->session ? w->raw->adopt(&w->db, w->session, &options, &err)
                            : rowlock_db_open(&w->db, w->url, &options, &err);
    return err.code == result ? result : ROWLOCK_ESERVER;
}

static int call_install(struct walk *w)
{
    return rowlock_install(w->db);
}

static int call_lock_open(struct walk *w)
{
    return rowlock_lock_open(w->db, "walked", &w->lock);
}

static int call_expired_open(struct walk *w)
{
    return rowlock_lock_open(w->db, "expired", &w->expired);
}

static int call_acquire(struct walk *w)
{
    return try_lock(w->lock, 60000);
}

static int call_acquire_expired(struct walk *w)
{
    return try_lock(w->expired, 60000);
}

static int call_renew(struct walk *w)
{
    return rowlock_renew(w->lock, 0);
}

static int call_verify(struct walk *w)
{
    return rowlock_verify(w->lock);
}

static int count(void *context, const rowlock_grant *grant)
{
    (void)grant;
    ++*(int *)context;
    return 0;
}

static int call_list(struct walk *w)
{
    w->listed = 0;
    int result = rowlock_list(w->db, NULL, count, &w->listed);
    return result == ROWLOCK_OK && w->listed != 2 ? ROWLOCK_ESERVER : result;
}

static int call_check(struct walk *w)
{
    return rowlock_check(w->db, NULL, NULL, NULL);
}

static int call_last(struct walk *w)
{
    return rowlock_last_grant(w->db, "walked", NULL, NULL);
}

static int ask_for_expired(struct walk *w, int permits, int64_t wait_ms)
{
    rowlock_acquire_options how = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    how.permits = permits;
    how.ttl_ms = 60000;
    how.wait_ms = wait_ms;
    how.ticket_ms = 1000;
    return rowlock_acquire(w->expired, &how);
}

static int call_acquire_shared(struct walk *w)
{
    return ask_for_expired(w, ROWLOCK_SHARED, 0);
}

static int call_downgrade(struct walk *w)
{
    return rowlock_downgrade(w->expired, 3);
}

static int call_release_expired(struct walk *w)
{
    return rowlock_release(w->expired);
}

/* Somebody else's lease ends while we wait. */
static int call_wait(struct walk *w)
{
    return ask_for_expired(w, 0, 20000);
}

static int call_acquire_all(struct walk *w)
{
    rowlock_lock *locks[] = {w->lock, w->expired};
    rowlock_acquire_options how = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    return rowlock_acquire_all(locks, 2, &how, NULL);
}

static int call_list_waiters(struct walk *w)
{
    return rowlock_list_waiters(w->db, NULL, ignore_waiter, NULL);
}

static int call_release(struct walk *w)
{
    return rowlock_release(w->lock);
}

static int call_break(struct walk *w)
{
    return rowlock_break(w->db, "walked", 0, NULL);
}

static int call_release_broken(struct walk *w)
{
    int result = rowlock_release(w->lock);
    return result == ROWLOCK_LOST ? ROWLOCK_OK : result == ROWLOCK_OK ? ROWLOCK_ESERVER : result;
}

/* A sweep passes over what a sending of its own, whose answer was lost, may still have locked. */
static int call_release_swept(struct walk *w)
{
    int result = rowlock_release(w->expired);
    return result == ROWLOCK_LOST ? ROWLOCK_OK : result;
}

static int call_sweep(struct walk *w)
{
    return rowlock_sweep(w->db, NULL, NULL);
}

static int call_close(struct walk *w)
{
    rowlock_lock_close(w->lock);
    rowlock_db_close(w->db);
    rowlock_lock_close(w->expired);
    w->db = NULL;
    return ROWLOCK_OK;
}

static void expire(struct walk *w)
{
    db_exec(w->raw, w->url, "UPDATE walk_locks SET expires = 1 WHERE name = 'expired'");
}

/* Gone by itself in a moment. */
static void hold_for_a_moment(struct walk *w)
{
    db_exec(
        w->raw, w->url,
        "INSERT INTO walk_locks (name, slot, permits, owner, token, attempt, acquired, expires, "
        "ttl) VALUES ('expired', 0, 0, 'somebody', 1, 1, 1, %s + 30000, 1)",
        w->raw->clock);
}

/* To wait takes longer than all else. Once something has failed before, and was done again, we need not. */
static bool has_not_failed_yet(const struct walk *w)
{
    return w->faulty->asked() < w->nth;
}

static bool kinds_and_lines(struct walk *w)
{
    bool done = step(w, "release what was swept", call_release_swept) &&
                step(w, "acquire shared", call_acquire_shared) &&
                step(w, "release shared", call_release_expired) &&
                step(w, "acquire several", call_acquire_all) &&
                step(w, "release one", call_release) &&
                step(w, "downgrade the other", call_downgrade) &&
                step(w, "release the other", call_release_expired);
    if (done && has_not_failed_yet(w))
        hold_for_a_moment(w);
    return done && step(w, "wait", call_wait) && step(w, "list waiters", call_list_waiters) &&
           step(w, "release what was waited for", call_release_expired);
}

static bool all_steps(struct walk *w)
{
    if (!step(w, "open", call_open) || !step(w, "install", call_install) ||
        !step(w, "open a lock", call_lock_open) || !step(w, "open another", call_expired_open))
        return false;
    bool done =
        step(w, "acquire", call_acquire) && step(w, "acquire another", call_acquire_expired);
    if (done)
        expire(w);
    done = done && step(w, "renew", call_renew) && step(w, "verify", call_verify) &&
           step(w, "list", call_list) && step(w, "check", call_check) &&
           step(w, "last grant", call_last) && step(w, "release", call_release) &&
           step(w, "acquire again", call_acquire) && step(w, "break", call_break) &&
           step(w, "release what was broken", call_release_broken) &&
           step(w, "sweep", call_sweep) && kinds_and_lines(w);
    step(w, "acquire for close", call_acquire);
    return done;
}

bool walk_once(const struct raw *raw, const char *url, const struct faulty *faulty, int nth,
               bool adopted)
{
    struct walk w = {.raw = raw, .url = url, .faulty = faulty, .nth = nth, .good = true};
    if (adopted)
        w.session = raw->open(url);
    faulty->arm(nth);
    w.good = all_steps(&w) && w.good;
    int before_close = faulty->asked();
    run(&w, call_close);
    if (w.session)
        raw->close(w.session);
    /* Closing releases as well as can be done: what failed then leaves its lock until it
     * expires. */
    bool may_stay = nth > before_close && nth <= faulty->asked();
    long long left = db_int(raw, url, "SELECT count(*) FROM walk_locks WHERE expires > 1");
    if (left > may_stay) {
        tap_note("failure %d: %lld locks are left behind", nth, left);
        w.good = false;
    }
    db_exec(raw, url, "DELETE FROM walk_locks");
    db_exec(raw, url, "DELETE FROM walk_waiters");
    return w.good;
}
