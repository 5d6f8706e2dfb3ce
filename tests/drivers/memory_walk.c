/* SPDX-License-Identifier: MIT
 *
 * A walk through the library while something fails; see memory.h. */
#include "memory.h"
#include "quick.h"

enum { WALKED, EXPIRED, LOCKS };
static const char *const names[LOCKS] = {"walked", "expired"};

struct walk {
    const struct raw *raw;
    const char *url;
    const struct faulty *faulty;
    int nth;
    void *session; /* adopted; NULL: we open our own connection */
    rowlock_db *db;
    rowlock_lock *lock[LOCKS];
    bool good;
    int64_t deadline_ms; /* of a statement; 0: that of the library */
};

/* Between steps time goes by: a lease ends, or another client comes. Such a step has no name. */
struct step {
    const char *what;
    int (*call)(struct walk *w, const struct step *step);
    int lock, permits;
    int64_t wait_ms;
};

static int open_db(struct walk *w, const struct step *step)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db_options options =
        *OPTIONS(db, .prefix = "walk_", .statement_timeout_ms = w->deadline_ms,
                 .connect_timeout_ms = w->deadline_ms + 5000);
    int result = w->session ? w->raw->adopt(&w->db, w->session, &options, &err)
                            : rowlock_db_open(w->url, &options, &w->db, &err);
    return err.code == result ? result : ROWLOCK_ESERVER;
}

static int list(struct walk *w, const struct step *step)
{
    int listed = 0;
    int result = rowlock_list(w->db, NULL, count_grant, &listed);
    return result == ROWLOCK_OK && listed != LOCKS ? ROWLOCK_ESERVER : result;
}

static int release_lost(rowlock_lock *lock, bool may_stand)
{
    int result = rowlock_release(lock);
    return result == ROWLOCK_LOST               ? ROWLOCK_OK
           : result == ROWLOCK_OK && !may_stand ? ROWLOCK_ESERVER
                                                : result;
}

static int expire(struct walk *w, const struct step *step)
{
    db_exec(w->raw, w->url, "UPDATE walk_locks SET expires = 1 WHERE name = 'expired'");
    return ROWLOCK_OK;
}

/* Gone by itself in a moment. To wait takes longer than all else: once something has failed
 * before, and was done again, there is no need to wait. */
static int hold_for_a_moment(struct walk *w, const struct step *step)
{
    if (w->faulty->asked() < w->nth)
        db_exec(w->raw, w->url,
                "INSERT INTO walk_locks (name, slot, permits, owner, token, request, acquired, "
                "expires, ttl) VALUES ('expired', 0, 0, 'somebody', 1, 1, 1, %s + 30000, 1)",
                w->raw->clock);
    return ROWLOCK_OK;
}

#define CALL(name, result)                                   \
    static int name(struct walk *w, const struct step *step) \
    {                                                        \
        return result;                                       \
    }
CALL(install, rowlock_install(w->db))
/* Of nothing, on a borrowed connection. */
CALL(upgrade, w->session ? ROWLOCK_OK : rowlock_upgrade(w->db, NULL))
CALL(open_lock, rowlock_lock_open(w->db, names[step->lock], &w->lock[step->lock]))
CALL(acquire, rowlock_acquire(w->lock[step->lock],
                              OPTIONS(acquire, .permits = step->permits, .ttl_ms = 60000,
                                      .wait_ms = step->wait_ms, .ticket_ms = 1000)))
CALL(acquire_all, rowlock_acquire_all(w->lock, LOCKS, NULL, NULL))
CALL(renew, rowlock_renew(w->lock[step->lock], 0))
CALL(verify, rowlock_verify(w->lock[step->lock]))
CALL(check, rowlock_check(w->db, NULL, NULL, NULL))
CALL(last_grant, rowlock_last_grant(w->db, names[step->lock], NULL, NULL))
CALL(list_waiters, rowlock_list_waiters(w->db, NULL, ignore_waiter, NULL))
CALL(release, rowlock_release(w->lock[step->lock]))
CALL(release_broken, release_lost(w->lock[step->lock], false))
/* A sweep passes over what an attempt of its own, whose answer was lost, may still have locked. */
CALL(release_swept, release_lost(w->lock[step->lock], true))
CALL(break_lock, rowlock_break(w->db, names[step->lock], 0, NULL))
CALL(sweep, rowlock_sweep(w->db, NULL, NULL))

static const struct step steps[] = {
    {"open", open_db, 0, 0, 0},
    {"install", install, 0, 0, 0},
    {"upgrade", upgrade, 0, 0, 0},
    {"open a lock", open_lock, WALKED, 0, 0},
    {"open another", open_lock, EXPIRED, 0, 0},
    {"acquire", acquire, WALKED, 0, 0},
    {"acquire another", acquire, EXPIRED, 0, 0},
    {NULL, expire, 0, 0, 0},
    {"renew", renew, WALKED, 0, 0},
    {"verify", verify, WALKED, 0, 0},
    {"list", list, 0, 0, 0},
    {"check", check, 0, 0, 0},
    {"last grant", last_grant, WALKED, 0, 0},
    {"release", release, WALKED, 0, 0},
    {"acquire again", acquire, WALKED, 0, 0},
    {"break", break_lock, WALKED, 0, 0},
    {"release what was broken", release_broken, WALKED, 0, 0},
    {"sweep", sweep, 0, 0, 0},
    {"release what was swept", release_swept, EXPIRED, 0, 0},
    {"acquire shared", acquire, EXPIRED, ROWLOCK_SHARED, 0},
    {"release shared", release, EXPIRED, 0, 0},
    {"acquire several", acquire_all, 0, 0, 0},
    {"release one", release, WALKED, 0, 0},
    {"release the other", release, EXPIRED, 0, 0},
    {NULL, hold_for_a_moment, 0, 0, 0},
    {"wait", acquire, EXPIRED, 0, 20000},
    {"list waiters", list_waiters, 0, 0, 0},
    {"release what was waited for", release, EXPIRED, 0, 0},
    {"acquire for close", acquire, WALKED, 0, 0},
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

static void turn(const struct walk *w, bool on)
{
    if (w->faulty->on)
        w->faulty->on(on);
}

static int run(struct walk *w, const struct step *step)
{
    turn(w, true);
    int result = step->call(w, step);
    turn(w, false);
    return result;
}

static bool take(struct walk *w, const struct step *step)
{
    int first = run(w, step);
    if (first == ROWLOCK_OK)
        return true;
    if (!is_clean(w, first)) {
        tap_note("failure %d: %s gives %s: %s", w->nth, step->what, rowlock_result_name(first),
                 w->db ? why(w->db) : "");
        w->good = false;
    }
    int second = run(w, step);
    if (is_done(first, second))
        return true;
    tap_note("failure %d: %s gives %s, and then again %s: %s", w->nth, step->what,
             rowlock_result_name(first), rowlock_result_name(second), w->db ? why(w->db) : "");
    return w->good = false;
}

/* What cannot be done ends the walk, but for the last step: closing has something to release. */
static void take_all(struct walk *w)
{
    enum { STEPS = COUNT(steps) };
    for (int i = 0; i < STEPS; i++) {
        if (!steps[i].what)
            steps[i].call(w, &steps[i]);
        else if (!take(w, &steps[i]))
            i = w->lock[EXPIRED] && i < STEPS - 2 ? STEPS - 2 : STEPS;
    }
}

static void close_all(struct walk *w)
{
    turn(w, true);
    rowlock_lock_close(w->lock[WALKED]);
    rowlock_db_close(w->db);
    rowlock_lock_close(w->lock[EXPIRED]);
    turn(w, false);
}

static bool walk(const struct raw *raw, const char *url, const struct faulty *faulty, int nth,
                 bool adopted, int64_t deadline_ms)
{
    struct walk w = {.raw = raw,
                     .url = url,
                     .faulty = faulty,
                     .nth = nth,
                     .good = true,
                     .session = adopted ? raw->open(url) : NULL,
                     .deadline_ms = deadline_ms};
    faulty->arm(nth);
    take_all(&w);
    int before_close = faulty->asked();
    close_all(&w);
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

/* What libpq has no memory to tell it never tells: a deadline passes. A slow machine may miss a short
 * one, and gets a longer one. */
bool walk_once(const struct raw *raw, const char *url, const struct faulty *faulty, int nth,
               bool adopted)
{
    if (!faulty->vendors)
        return walk(raw, url, faulty, nth, adopted, 60000);
    return walk(raw, url, faulty, nth, adopted, 500) ||
           walk(raw, url, faulty, nth, adopted, 5000) ||
           walk(raw, url, faulty, nth, adopted, 30000);
}

static int failing, asked;
static bool counting;

bool client_memory_fails(void)
{
    return counting && ++asked == failing;
}

static void arm(int nth)
{
    failing = nth;
    asked = 0;
}

static void count_on(bool on)
{
    counting = on;
}

static int how_often(void)
{
    return asked;
}

void starve_client(const struct raw *raw, const char *url, bool adopted, int each, int stride)
{
    const struct faulty memory = {.arm = arm,
                                  .on = count_on,
                                  .asked = how_often,
                                  .vendors = strcmp(raw->name, "sqlite") != 0};
    int tried = 0, bad = 0, nth = 1;
    if (getenv("ROWLOCK_TEST_LONG"))
        stride = 1;
    for (;; nth += nth < each ? 1 : stride, tried++) {
        bad += !walk_once(raw, url, &memory, nth, adopted);
        if (asked < nth)
            break;
    }
    tap_is_int(bad, 0, "on an %s connection a client library's memory that runs out does no harm",
               adopted ? "adopted" : "own");
    tap_ok(nth > 100, "at %d places", tried);
}
