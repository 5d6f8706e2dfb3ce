/* SPDX-License-Identifier: MIT
 * What a thread of a client does with locks. */
#include "simulate.h"

#include "lock/lock.h"

enum { LOCKS_MOST = 2 };

/* A thread with a handle, and a lock or two that it may acquire together. */
struct thread {
    struct client *client;
    rowlock_db *db;
    struct holding held[LOCKS_MOST];
    int count;
    /* Of the first lock. */
    int permits;
    /* The number of the wait that is going on, and whether one was cancelled. */
    int64_t waits;
    bool asking, cancelled, served;
    /* An earlier acquire, which was asked then, may have been granted: its answer was lost, or it
     * was cancelled before it had renewed what it got. The next may find that grant, older than
     * others' and than a raise of tokens. */
    bool uncertain;
    int64_t asked;
};

static void expect(const struct thread *t, const char *call, int result, bool fine)
{
    sim_expect(t->client, t->db, call, t->held[0].name, result, fine);
}

/* A call that began then must be over after so long, and 180 s: it may send two steps, and the
 * second gives a ticket back. Each may be lost, wait for a transaction of a client that is away, and
 * be sent again for reconnect_ms, in turn. rowlock.h names no limit. A client that stood still
 * meanwhile may take longer. */
static void must_be_over(const struct thread *t, const char *call, int64_t began, int64_t wait_ms)
{
    int64_t took = sim_now() - began;
    if (t->client->process.stopped_until < began && wait_ms >= 0 &&
        took > wait_ms * MILLISECOND + 180 * SECOND)
        violation("client %d: %s of '%s' took %" PRId64 " s", t->client->process.number, call,
                  t->held[0].name, took / SECOND);
}

/* The same for a call of a holder, which trusted its lease for so long before. No other client can
 * have got the lock by then, unless an earlier attempt of this call has released it. */
static void check_holder(const struct thread *t, const struct holding *h, const char *call,
                         int64_t began, int64_t left_ms, int result)
{
    must_be_over(t, call, began, 0);
    if (result == ROWLOCK_LOST && !rowlock_db_error(t->db)->answer_lost && !judge_broke(h) &&
        !judge_excused(h) && (left_ms - left_ms / 1000) * MILLISECOND > sim_now() - began)
        violation("client %d: %s of '%s' is LOST, and its lease should have lasted for %" PRId64
                  " ms more",
                  t->client->process.number, call, h->name, left_ms);
}

static bool close_handles(struct thread *t)
{
    for (int i = 0; i < LOCKS_MOST; i++)
        rowlock_lock_close(t->held[i].lock);
    rowlock_db_close(t->db);
    memset(t->held, 0, sizeof t->held);
    t->db = NULL;
    t->uncertain = false;
    return false;
}

/* Locks of three kinds. A quorum has one. */
static int usual_permits(int number)
{
    static const int kinds[] = {0, 0, ROWLOCK_SHARED, 0, 2, 3};
    return sim_world == QUORUM ? 0 : kinds[number % 6];
}

/* False: the servers are away. */
static bool open_handles(struct thread *t)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    int first = (int)sim_random(sim_names);
    t->count = sim_world == QUORUM || sim_names == 1 || sim_random(4) ? 1 : 2;
    t->permits = usual_permits(first);
    options.pool = t->client->pool;
    int result = rowlock_db_open(options.pool ? NULL : sim_url, &options, &t->db, &err);
    for (int i = 0; i < t->count && result == ROWLOCK_OK; i++) {
        struct holding *h = &t->held[i];
        int number = i ? (first + 1 + (int)sim_random(sim_names - 1)) % sim_names : first;
        h->process = &t->client->process;
        snprintf(h->name, sizeof h->name, "job-%d", number);
        result = rowlock_lock_open(t->db, h->name, &h->lock);
    }
    if (result == ROWLOCK_OK)
        return true;
    sim_expect(t->client, t->db, "opening", t->held[0].name, result, false);
    return close_handles(t);
}

/* ---- what a holder does */

struct writing {
    const struct thread *thread;
    struct holding *holding;
};

static int write_guarded(void *context, const rowlock_attempt *attempt)
{
    const struct writing *w = context;
    const struct holding *h = w->holding;
    rowlock_db *db = w->thread->db;
    int result = rowlock_guard(h->lock, db);
    if (result != ROWLOCK_OK)
        return result;
    network_guard(h);
    result = rowlock_fence(db, h->name, h->token);
    if (result == ROWLOCK_STALE && h->permits == 0)
        violation("client %d: token %" PRId64 " of '%s' is guarded, and a newer one has written",
                  h->process->number, h->token, h->name);
    return result == ROWLOCK_STALE ? ROWLOCK_OK : result;
}

/* Another handle for the same grant, as in another process of the same job. It does not shorten the
 * lease, which this handle would not know. */
static int renew_attached(struct thread *t, const struct holding *h)
{
    int64_t left_ms = rowlock_lock_remaining_ms(h->lock);
    rowlock_lock *lock = NULL;
    int result = rowlock_lock_attach(t->db, h->name, rowlock_lock_owner(h->lock), h->token, &lock);
    if (result == ROWLOCK_OK)
        result = rowlock_renew(lock, left_ms + h->ttl_ms);
    rowlock_lock_close(lock);
    return result;
}

enum act { PAUSE, VERIFY, ENTER, RENEW, ATTACH, NOTE, WRITE, ACTS };

static int hold_on(struct thread *t, struct holding *h)
{
    static const char *const words[] = {"pauses",   "verifies", "enters again", "renews",
                                        "attaches", "notes",    "writes"};
    int result = ROWLOCK_OK, who = h->process->number;
    int64_t began = sim_now(), left_ms = rowlock_lock_remaining_ms(h->lock), ttl_ms = 0;
    int64_t rival = judge_rival(h);
    enum act act = (enum act)sim_random(sim_world == QUORUM ? NOTE : ACTS);
    bool fine = true;
    rowlock_acquire_options again = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    again.permits = h->permits;
    switch (act) {
    case PAUSE:
        sim_sleep(sim_spread(100, 4 * h->ttl_ms * MILLISECOND));
        return ROWLOCK_OK;
    case VERIFY:
        result = rowlock_verify(h->lock);
        check_holder(t, h, "verify", began, left_ms, result);
        fine = result >= 0;
        break;
    case ENTER:
        result = rowlock_acquire(h->lock, &again);
        fine = result == ROWLOCK_LAPSED || result == ROWLOCK_LOST || !result;
        break;
    case RENEW:
        ttl_ms = sim_random(4) ? 0 : 500 + sim_random(20000);
        left_ms = ttl_ms && ttl_ms < left_ms ? ttl_ms : left_ms;
        result = rowlock_renew(h->lock, ttl_ms);
        check_holder(t, h, "renew", began, left_ms, result);
        fine = result >= 0 && result <= ROWLOCK_LAPSED;
        break;
    case ATTACH:
        result = renew_attached(t, h);
        check_holder(t, h, "attached renew", began, left_ms, result);
        fine = result >= 0 && result <= ROWLOCK_LAPSED;
        break;
    case NOTE:
        result = rowlock_note(h->lock, sim_random(2) ? "half done" : NULL);
        check_holder(t, h, "note", began, left_ms, result);
        fine = result == ROWLOCK_LOST || !result;
        break;
    default:
        result = rowlock_retry(t->db, write_guarded, &(struct writing){t, h}, NULL, NULL);
        fine = result == ROWLOCK_LOST || result == ROWLOCK_CONFLICT || !result;
    }
    tell(who, words[act], h->name, h->token, result);
    if ((result == ROWLOCK_OK || result == ROWLOCK_LAPSED) && act != ENTER && rival > h->token &&
        !judge_excused(h))
        violation("client %d: %s '%s' with token %" PRId64 ", and token %" PRId64
                  " was granted before",
                  who, words[act], h->name, h->token, rival);
    expect(t, words[act], result, fine || (result == ROWLOCK_CANCELLED && t->cancelled));
    if (act == ENTER && result >= 0 && result != ROWLOCK_LOST &&
        rowlock_release(h->lock) != ROWLOCK_OK)
        violation("client %d: re-entry cannot be left", who);
    return result;
}

/* After an outage it asks again, or leaves it to rowlock_lock_close(). */
static void release(struct thread *t, struct holding *h)
{
    int result = ROWLOCK_EUNCERTAIN, who = h->process->number;
    judge_ends(h);
    for (int i = 0; result < 0 && i < 3; i++) {
        tell(who, "releases", h->name, h->token, 0);
        int64_t began = sim_now(), left_ms = rowlock_lock_remaining_ms(h->lock);
        int64_t rival = judge_rival(h);
        result = rowlock_release(h->lock);
        if (result == ROWLOCK_OK && !judge_excused(h))
            judge_released(h, rival);
        check_holder(t, h, "release", began, left_ms, result);
        tell(who, "has released", h->name, h->token, result);
        expect(t, "release", result, result == ROWLOCK_LOST || !result);
    }
    if (result < 0)
        rowlock_forget(h->lock);
}

static void work(struct thread *t)
{
    int acts = (int)sim_random(4);
    struct holding *h = &t->held[sim_random(t->count)];
    for (int i = 0; i < acts && rowlock_lock_state(h->lock) != ROWLOCK_STATE_LOST; i++)
        if (hold_on(t, h) == ROWLOCK_LOST)
            break;
    for (int i = 0; i < t->count; i++)
        release(t, &t->held[i]);
}

/* ---- how it gets the lock */

struct cancel {
    struct thread *thread;
    int64_t wait;
};

static void cancel(void *context)
{
    struct cancel *c = context;
    struct thread *t = c->thread;
    const struct process *p = &t->client->process;
    if (t->asking && t->waits == c->wait && !p->dead && p->stopped_until <= sim_now()) {
        tell(p->number, "cancels", t->held[0].name, 0, 0);
        t->cancelled = true;
        rowlock_cancel(t->db);
    }
    free(c);
}

static void plan_cancel(struct thread *t, int64_t wait_ms)
{
    if (sim_calm || wait_ms <= 0 || !sim_once_in(20))
        return;
    struct cancel *c = malloc(sizeof *c);
    *c = (struct cancel){t, t->waits};
    sim_at(sim_now() + sim_spread(MILLISECOND, wait_ms * MILLISECOND), cancel, c);
}

/* Sometimes as another kind than all others. */
static int choose_permits(const struct thread *t)
{
    static const int kinds[] = {0, ROWLOCK_SHARED, 2};
    if (sim_world == QUORUM)
        return 0;
    if (!sim_calm && sim_once_in(t->uncertain ? 3 : 40))
        return kinds[sim_random(3)];
    return t->permits == ROWLOCK_SHARED && sim_once_in(4) ? 0 : t->permits;
}

static bool is_open(const struct thread *t)
{
    bool open = false;
    for (int i = 0; i < t->count; i++)
        open |= t->held[i].lock->request_open;
    return open;
}

static int ask(struct thread *t)
{
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.ttl_ms = 500 + sim_spread(500, 20000);
    options.wait_ms = sim_calm ? ROWLOCK_FOREVER : sim_random(3) ? sim_spread(10, 60000) : 0;
    options.unfair = !sim_calm && sim_once_in(10);
    options.keeper = t->client->keeper;
    options.permits = choose_permits(t);
    rowlock_lock *locks[LOCKS_MOST];
    int64_t above[LOCKS_MOST], began = sim_now();
    int who = t->client->process.number, result;
    for (int i = 0; i < t->count; i++) {
        locks[i] = t->held[i].lock;
        above[i] = t->uncertain ? 0 : judge_asks(t->held[i].name);
        tell(who, "asks for", t->held[i].name, options.wait_ms, options.permits);
    }
    t->asked = t->uncertain ? t->asked : began;
    t->waits++;
    t->asking = true;
    plan_cancel(t, options.wait_ms);
    if (t->count > 1)
        result = rowlock_acquire_all(locks, (size_t)t->count, &options, NULL);
    else
        result = rowlock_acquire(locks[0], &options);
    t->asking = false;
    must_be_over(t, "acquire", began, options.wait_ms);
    tell(who, "is answered", t->held[0].name, result, 0);
    t->uncertain = result != ROWLOCK_OK && is_open(t);
    if (result != ROWLOCK_OK) {
        bool fine = result == ROWLOCK_BUSY || result == ROWLOCK_TIMEOUT ||
                    (result == ROWLOCK_MISMATCH && sim_world != QUORUM) ||
                    (result == ROWLOCK_CANCELLED && t->cancelled);
        expect(t, "acquire", result, fine);
        return result;
    }
    for (int i = 0; i < t->count; i++) {
        struct holding *h = &t->held[i];
        h->asked = t->asked;
        h->token = rowlock_lock_token(h->lock);
        h->ttl_ms = options.ttl_ms;
        h->permits = options.permits;
        judge_granted(h, above[i]);
    }
    work(t);
    return result;
}

/* ---- what an operator does, on one server */

static void sweep(struct thread *t, rowlock_db *db)
{
    rowlock_sweep_options options = ROWLOCK_SWEEP_OPTIONS_INIT;
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    /* Counters that were not used for a moment are forgotten. */
    options.idle_ms = sim_spread(1, 60000);
    options.batch = 1 + (int)sim_random(20);
    int result = rowlock_sweep(db, &options, &report);
    tell(t->client->process.number, "has swept", NULL, report.locks, report.counters);
    sim_expect(t->client, db, "a sweep", NULL, result, !result);
}

struct found {
    char name[40];
    int64_t token, seen;
};

static int choose_one(void *context, const rowlock_grant *grant)
{
    struct found *found = context;
    if (sim_random(++found->seen) > 0)
        return 0;
    snprintf(found->name, sizeof found->name, "%.39s", grant->name);
    found->token = grant->token;
    return 0;
}

static void break_one(struct thread *t, rowlock_db *db)
{
    struct found found = {.seen = 0};
    int result = rowlock_list(db, NULL, choose_one, &found);
    sim_expect(t->client, db, "a list", NULL, result, !result);
    if (result != ROWLOCK_OK || found.seen == 0)
        return;
    judge_breaks(found.name, found.token);
    result = rowlock_break(db, found.name, found.token, NULL);
    tell(t->client->process.number, "breaks", found.name, found.token, result);
    sim_expect(t->client, db, "break", found.name, result, result == ROWLOCK_NONE || !result);
}

/* Of a quorum it is one member's, which binds no other. */
static void raise_tokens(struct thread *t, rowlock_db *db)
{
    int64_t highest = 0;
    int result = rowlock_raise_tokens(db, 1 + sim_random(1000), &highest);
    tell(t->client->process.number, "raises tokens", NULL, highest, result);
    sim_expect(t->client, db, "raise", NULL, result, !result);
    if (result == ROWLOCK_OK && sim_world != QUORUM)
        judge_raises(highest);
}

/* No row of a quorum is broken: without the rows of two members the grant would end. */
static void operate(struct thread *t)
{
    static void (*const acts[])(struct thread * t, rowlock_db * db) = {sweep, raise_tokens,
                                                                       break_one};
    rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    int result = rowlock_db_open(network_url((int)sim_random(sim_servers)), NULL, &db, &err);
    if (result == ROWLOCK_OK)
        acts[sim_random(sim_world == QUORUM ? 2 : 3)](t, db);
    else if (!is_outage(result))
        violation("an operator cannot open: %s", err.text);
    rowlock_db_close(db);
}

void *locking_live(void *client)
{
    struct thread *t = calloc(1, sizeof *t);
    t->client = client;
    while (!t->served) {
        if (!open_handles(t)) {
            sim_sleep(sim_spread(1000, SECOND));
            continue;
        }
        for (int i = (int)sim_random(20); i >= 0 && !t->served; i--) {
            if (sim_once_in(50) && !sim_without("operate"))
                operate(t);
            int result = ask(t);
            t->served = sim_calm && result == ROWLOCK_OK;
            sim_sleep(sim_spread(10, 20000));
        }
        close_handles(t);
    }
    sim_ends(t->client);
    return NULL;
}
