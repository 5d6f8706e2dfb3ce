/* SPDX-License-Identifier: MIT
 * Renewing in the background: one thread, one connection, one statement for all leases that are
 * due. How a renewal is sent is in seam/resend.c; what a holder sees of it in deadline.c.
 *
 * The keeper's mutex guards its list, the places in it and the watches of the locks that have
 * one. It is not held while a statement is under way or a callback runs, so nobody waits for the
 * server here. A place is freed by the keeper's thread alone, which may be about to touch it;
 * or, when the keeper has been closed, by the lock that quits. */
#include "lock/keeper.h"
#include "seam/resend.h"
#include "seam/seam.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define RLK_KEEPER_TAG 0x726C6B70u /* "rlkp" */

enum {
    BATCH_MAX = 10000, /* leases in one statement, which may become 10 MB */
    VERIFY_MAX = 100, /* questions after one statement for leases that it did not renew */
    SHORTEST_RETRY_US = 20000,
    LONGEST_RETRY_US = 1000000
};

/* A lock's place with a keeper. It goes on as long as the handle, grants come and go. */
struct rlk_kept {
    rowlock_keeper *keeper;
    struct rlk_kept *next;
    rowlock_lock *lock; /* NULL: it has quit */
    char name[RLK_TEXT_MAX + 1];
    char owner[RLK_TEXT_MAX + 1];
    rowlock_acquire_options options;

    bool active; /* there is a lease to renew */
    int64_t token;
    int64_t due_us;
    int64_t hold_until_us; /* max_hold_ms */
    bool failed; /* the last renewal */
    bool in_flight; /* a statement that renews it is under way, and its answer counts */
    bool under_way; /* counts or not, it may still be carried out */
    int64_t sent_us, sent_ttl_us; /* that statement, or the last one */
    uint64_t serial; /* counts what the keeper did for it */
    rowlock_state told;
};

struct rowlock_keeper {
    uint32_t tag;
    pid_t pid;
    rowlock_db *db; /* the thread's own, while it runs */
    char identity[64]; /* of the installation */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t called; /* a callback has returned */
    struct rlk_kept *places;
    struct rlk_kept *calling; /* whose callback runs */
    int64_t wake_us; /* until when the thread sleeps; before that it looks at everything anyway */
    bool stop, closed;

    struct rlk_kept *batch[BATCH_MAX]; /* what is under way */
    struct rlk_lease leases[BATCH_MAX];
};

/* ---- the thread: what is due */

/* Somewhat before a third of the lease, and not the same in each keeper that began at midnight. */
static int64_t next_due(rowlock_db *db, const struct rlk_watch *watch)
{
    int64_t ttl_us = rlk_watch_reliable_us(watch, watch->ttl_us);
    int64_t third = ttl_us / 3;
    return watch->deadline_us - ttl_us + third - rlk_jitter(&db->waiting, third / 10 + 1);
}

/* After a failure: soon, since the lease is running, but not in a rush. */
static int64_t retry_due(rowlock_keeper *k, const struct rlk_watch *watch)
{
    int64_t pause = watch->ttl_us / 20;
    pause = pause < SHORTEST_RETRY_US  ? SHORTEST_RETRY_US
            : pause > LONGEST_RETRY_US ? LONGEST_RETRY_US
                                       : pause;
    return rlk_now_us() + pause / 2 + rlk_jitter(&k->db->waiting, pause / 2);
}

/* When the holder's own conditions end the renewing. */
static int64_t allowed_until(const struct rlk_kept *place)
{
    int64_t until = place->hold_until_us;
    int64_t progress_ms = place->options.progress_ms;
    int64_t progress_until = place->lock->progress_us + progress_ms * 1000;
    return progress_ms > 0 && progress_until < until ? progress_until : until;
}

static bool is_kept(const struct rlk_kept *place)
{
    return place->active && place->lock && !place->lock->watch.over;
}

static bool may_renew(const struct rlk_kept *place, int64_t now_us)
{
    return is_kept(place) && now_us < allowed_until(place);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* All that are due, and with them those that will be soon, so that leases taken one by one are
 * renewed together from their second renewal on. */
static size_t collect_due(rowlock_keeper *k)
{
    int64_t now_us = rlk_now_us();
    bool any = false;
    for (struct rlk_kept *p = k->places; p && !any; p = p->next)
        any = may_renew(p, now_us) && p->due_us <= now_us;
    size_t count = 0;
    for (struct rlk_kept *p = k->places; any && p && count < BATCH_MAX; p = p->next)
        if (may_renew(p, now_us) && p->due_us <= now_us + p->lock->watch.ttl_us / 12)
            k->batch[count++] = p;
    return count;
}

/* ---- the thread: being told */

static void call_back(rowlock_keeper *k, struct rlk_kept *place)
{
    rowlock_state state = place->told;
    rowlock_lock *lock = place->lock;
    k->calling = place;
    pthread_mutex_unlock(&k->mutex);
    if (state == ROWLOCK_STATE_LOST)
        rlk_log(ROWLOCK_LOG_WARNING, "lock '%s' is lost", place->name);
    if (place->options.on_state)
        place->options.on_state(place->options.context, lock, state);
    pthread_mutex_lock(&k->mutex);
    k->calling = NULL;
    pthread_cond_broadcast(&k->called);
}

/* Tells who has to know something new. Returns when next something may have to be told or done. */
static int64_t tell(rowlock_keeper *k)
{
    int64_t wake_us = INT64_MAX;
    for (struct rlk_kept *p = k->places; p; p = p->next) {
        if (!is_kept(p) && !(p->active && p->lock && p->told != ROWLOCK_STATE_LOST))
            continue;
        struct rlk_watch *watch = &p->lock->watch;
        int64_t now_us = rlk_now_us();
        int64_t next_us;
        bool allowed = now_us < allowed_until(p);
        watch->failing = p->failed || !allowed;
        rowlock_state state = rlk_watch_state(watch, now_us, &next_us);
        watch->over = state == ROWLOCK_STATE_LOST;
        rlk_watch_arm(watch);
        wake_us = earlier(wake_us, next_us);
        if (allowed && !watch->over)
            wake_us = earlier(wake_us, earlier(p->due_us, allowed_until(p)));
        else if (p->options.progress_ms > 0 && !watch->over) /* nobody wakes us for progress */
            wake_us = earlier(wake_us, retry_due(k, watch));
        if (state == p->told)
            continue;
        p->told = state;
        call_back(k, p);
        wake_us = 0; /* whatever else has happened meanwhile */
    }
    return wake_us;
}

/* ---- the thread: one beat */

struct beat {
    struct rlk_lease *leases;
    size_t count;
    int64_t now_us;
};

static enum rlk_class run_renew_all(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct beat *b = context;
    for (size_t i = 0; i < b->count; i++)
        b->leases[i].renewed = false;
    return rlk_step_renew_all(db, call, b->leases, b->count, &b->now_us);
}

/* What was not renewed is gone, or somebody has its row locked. */
static bool is_gone(rowlock_keeper *k, const struct rlk_held *held, int64_t not_after_us)
{
    struct rlk_verified verified = {0};
    int result = rlk_verify(k->db, held, RLK_OUTSIDE, not_after_us, &verified);
    return result == ROWLOCK_OK && !verified.found;
}

/* Nothing is waited for beyond the moment when a lease has to be called lost. */
static int64_t earliest_loss(const rowlock_keeper *k)
{
    int64_t earliest_us = INT64_MAX;
    for (const struct rlk_kept *p = k->places; p; p = p->next)
        if (is_kept(p))
            earliest_us = earlier(earliest_us, rlk_watch_lost_us(&p->lock->watch));
    return earliest_us;
}

static void take_off(rowlock_keeper *k, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct rlk_kept *p = k->batch[i];
        p->in_flight = p->under_way = true;
        p->serial++;
        p->sent_us = rlk_now_us();
        p->sent_ttl_us = p->lock->watch.ttl_us;
        k->leases[i] = (struct rlk_lease){.held = {.name = p->name,
                                                   .slot = rlk_slot(p->lock->permits, p->token),
                                                   .owner = p->owner,
                                                   .token = p->token},
                                          .ttl_us = p->sent_ttl_us};
    }
}

enum fate { RENEWED, FAILED, GONE };

/* A place that was stopped, or renewed by its holder, meanwhile wants no answer any more. */
static void land(rowlock_keeper *k, struct rlk_kept *p, const struct rlk_lease *lease,
                 enum fate fate, const struct beat *beat, const struct rlk_step_call *step)
{
    p->under_way = false;
    p->serial++;
    if (step->was_uncertain && p->lock && p->token == lease->held.token)
        rlk_watch_fear(&p->lock->watch, lease->ttl_us);
    if (!p->in_flight || !p->lock)
        return;
    struct rlk_watch *watch = &p->lock->watch;
    p->in_flight = false;
    p->failed = fate == FAILED;
    if (fate == GONE)
        watch->over = true;
    if (fate == RENEWED) {
        struct rlk_term term = {.ttl_us = lease->ttl_us,
                                .expires_us = beat->now_us + lease->ttl_us,
                                .deadline_us = step->sent_us + lease->ttl_us};
        rlk_watch_limit(watch, &term);
        rlk_watch_set(watch, &term);
    }
    p->due_us = fate == RENEWED ? next_due(k->db, watch) : retry_due(k, watch);
}

/* Called with the mutex, which is let go while the server is asked. */
static void renew_batch(rowlock_keeper *k, size_t count)
{
    struct beat beat = {.leases = k->leases, .count = count};
    int64_t not_after_us = earliest_loss(k);
    struct rlk_step_call step = {
        .run = run_renew_all, .context = &beat, .not_after_us = not_after_us};
    take_off(k, count);
    pthread_mutex_unlock(&k->mutex);

    rlk_action(k->db, "renew leases", NULL);
    int result = rlk_do(k->db, &step);
    if (result != ROWLOCK_OK)
        rlk_log(ROWLOCK_LOG_WARNING, "%zu leases could not be renewed: %s", count,
                k->db->error.text);
    int questions = 0;
    for (size_t i = 0; i < count; i++) {
        enum fate fate = FAILED;
        if (result == ROWLOCK_OK && k->leases[i].renewed)
            fate = RENEWED;
        else if (result == ROWLOCK_OK && questions++ < VERIFY_MAX &&
                 is_gone(k, &k->leases[i].held, not_after_us))
            fate = GONE;
        pthread_mutex_lock(&k->mutex);
        land(k, k->batch[i], &k->leases[i], fate, &beat, &step);
        pthread_mutex_unlock(&k->mutex);
    }
    pthread_mutex_lock(&k->mutex);
}

/* ---- the thread */

static void free_quitters(rowlock_keeper *k)
{
    for (struct rlk_kept **at = &k->places; *at;) {
        struct rlk_kept *place = *at;
        if (place->lock) {
            at = &place->next;
            continue;
        }
        *at = place->next;
        rlk_free(place);
    }
}

static void *keep(void *context)
{
    rowlock_keeper *k = context;
    if (k->db->backend->enter_thread)
        k->db->backend->enter_thread();
    pthread_mutex_lock(&k->mutex);
    while (!k->stop) {
        free_quitters(k);
        int64_t wake_us = tell(k);
        size_t due = collect_due(k);
        if (due > 0) {
            renew_batch(k, due);
            continue;
        }
        k->wake_us = wake_us;
        pthread_mutex_unlock(&k->mutex);
        rlk_wait_until(&k->db->waiting, wake_us);
        pthread_mutex_lock(&k->mutex);
        k->wake_us = 0;
    }
    pthread_mutex_unlock(&k->mutex);
    if (k->db->backend->leave_thread)
        k->db->backend->leave_thread();
    return NULL;
}

/* ---- what locks ask of it */

void rlk_kept_enter(const rowlock_lock *lock)
{
    if (lock->kept)
        pthread_mutex_lock(&lock->kept->keeper->mutex);
}

void rlk_kept_leave(const rowlock_lock *lock)
{
    if (lock->kept)
        pthread_mutex_unlock(&lock->kept->keeper->mutex);
}

static int check_keeper(rowlock_lock *lock, const rowlock_keeper *k)
{
    rowlock_db *db = lock->db;
    if (k->tag != RLK_KEEPER_TAG || k->pid != getpid())
        return rlk_fail(db, ROWLOCK_EMISUSE, "the keeper is closed, or of another process");
    int result = rlk_look_at_tables(db, RLK_OUTSIDE);
    if (result != ROWLOCK_OK)
        return result;
    if (strcmp(k->identity, db->texts.identity) != 0)
        return rlk_fail(db, ROWLOCK_ESCHEMA,
                        "the keeper was opened for another installation (%s) than this lock's (%s)",
                        k->identity, db->texts.identity);
    return ROWLOCK_OK;
}

int rlk_kept_join(rowlock_lock *lock, const rowlock_acquire_options *options)
{
    rowlock_keeper *k = options->keeper;
    int result = check_keeper(lock, k);
    if (result != ROWLOCK_OK)
        return result;
    if (lock->kept && lock->kept->keeper != k)
        rlk_kept_quit(lock);
    if (!lock->kept) {
        struct rlk_kept *place = rlk_alloc(sizeof *place);
        if (!place)
            return rlk_fail(lock->db, ROWLOCK_ENOMEM, "out of memory");
        place->keeper = k;
        place->lock = lock;
        memcpy(place->name, lock->name, sizeof place->name);
        memcpy(place->owner, lock->owner, sizeof place->owner);
        pthread_mutex_lock(&k->mutex);
        place->next = k->places;
        k->places = place;
        pthread_mutex_unlock(&k->mutex);
        lock->kept = place;
    }
    lock->kept->options = *options; /* inactive: nobody else looks at it */
    lock->kept->hold_until_us = INT64_MAX;
    return ROWLOCK_OK;
}

static void wake(rowlock_keeper *k, int64_t due_us)
{
    if (due_us < k->wake_us)
        rowlock_cancel(k->db);
}

/* With the mutex. */
static void activate(rowlock_lock *lock)
{
    struct rlk_kept *place = lock->kept;
    int64_t max_hold_ms = place->options.max_hold_ms;
    if (place->token != lock->token) { /* a new grant */
        place->under_way = false;
        if (max_hold_ms)
            place->hold_until_us = rlk_now_us() + max_hold_ms * 1000;
    }
    place->active = lock->watch.kept = true;
    place->failed = lock->watch.failing = place->in_flight = false;
    place->token = lock->token;
    place->told = ROWLOCK_STATE_HELD;
    lock->progress_us = rlk_now_us();
    place->due_us = next_due(lock->db, &lock->watch);
    rlk_watch_arm(&lock->watch);
    wake(place->keeper, earlier(place->due_us, allowed_until(place)));
}

void rlk_kept_start(rowlock_lock *lock)
{
    struct rlk_kept *place = lock->kept;
    if (!place)
        return;
    rlk_kept_enter(lock);
    if (!place->keeper->closed && !lock->watch.over)
        activate(lock);
    rlk_kept_leave(lock);
}

/* With the mutex. From within the callback itself there is nothing to wait for. */
static void await_callback(struct rlk_kept *place)
{
    rowlock_keeper *k = place->keeper;
    while (k->calling == place && !pthread_equal(pthread_self(), k->thread))
        pthread_cond_wait(&k->called, &k->mutex);
}

bool rlk_kept_stop(rowlock_lock *lock)
{
    if (!lock->kept)
        return false;
    rlk_kept_enter(lock);
    bool was_active = lock->kept->active;
    lock->kept->active = lock->kept->in_flight = lock->watch.kept = false;
    await_callback(lock->kept);
    rlk_kept_leave(lock);
    return was_active;
}

uint64_t rlk_kept_serial(const rowlock_lock *lock)
{
    rlk_kept_enter(lock);
    uint64_t serial = lock->kept ? lock->kept->serial : 0;
    rlk_kept_leave(lock);
    return serial;
}

/* With the mutex. Which of two renewals that crossed each other the database did last is not
 * known, so the shorter one counts. */
void rlk_kept_renewed(rowlock_lock *lock, uint64_t serial, struct rlk_term *term)
{
    struct rlk_kept *place = lock->kept;
    if (place && place->keeper->closed) /* from now on the holder renews by itself */
        lock->watch.kept = lock->watch.failing = false;
    if (!place || place->keeper->closed)
        return;
    if (place->under_way || place->serial != serial)
        term->deadline_us = earlier(term->deadline_us, place->sent_us + place->sent_ttl_us);
    lock->watch.deadline_us = term->deadline_us;
    lock->watch.ttl_us = term->ttl_us;
    activate(lock);
}

/* The last lock that quits a closed keeper takes it along. */
static void free_keeper(rowlock_keeper *k)
{
    pthread_cond_destroy(&k->called);
    pthread_mutex_destroy(&k->mutex);
    rlk_free(k);
}

void rlk_kept_quit(rowlock_lock *lock)
{
    struct rlk_kept *place = lock->kept;
    if (!place || lock->db->pid != getpid())
        return;
    rowlock_keeper *k = place->keeper;
    rlk_kept_stop(lock);
    pthread_mutex_lock(&k->mutex);
    place->lock = NULL;
    lock->kept = NULL;
    if (k->closed)
        free_quitters(k);
    bool last = k->closed && !k->places;
    pthread_mutex_unlock(&k->mutex);
    if (last)
        free_keeper(k);
}

void rowlock_progress(rowlock_lock *lock)
{
    if (lock && lock->tag == RLK_LOCK_TAG)
        lock->progress_us = rlk_now_us();
}

/* ---- start and stop */

/* Signals are the application's; its other threads take them. */
static int start_thread(rowlock_keeper *k)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&k->thread, NULL, keep, k);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? rlk_fail(k->db, ROWLOCK_ENOMEM, "no thread could be started") : ROWLOCK_OK;
}

int rlk_keeper_start(rowlock_keeper **out, rowlock_db *db)
{
    int result = rlk_look_at_tables(db, RLK_OUTSIDE);
    if (result != ROWLOCK_OK)
        return result;
    rowlock_keeper *k = rlk_alloc(sizeof *k);
    if (!k)
        return rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    k->tag = RLK_KEEPER_TAG;
    k->pid = getpid();
    k->db = db;
    memcpy(k->identity, db->texts.identity, sizeof k->identity);
    pthread_mutex_init(&k->mutex, NULL);
    pthread_cond_init(&k->called, NULL);
    if ((result = start_thread(k)) == ROWLOCK_OK)
        *out = k;
    else
        free_keeper(k);
    return result;
}

static void leave_alone(rowlock_keeper *k)
{
    for (struct rlk_kept *p = k->places; p; p = p->next) {
        if (!p->active)
            continue;
        p->active = false;
        p->lock->watch.failing = true;
        rlk_watch_arm(&p->lock->watch);
    }
}

rowlock_db *rlk_keeper_stop(rowlock_keeper *k)
{
    if (!k || k->tag != RLK_KEEPER_TAG)
        return NULL;
    rowlock_db *db = k->db;
    k->tag = 0;
    if (k->pid != getpid())
        return db; /* the rest was copied in whatever state it was in */
    pthread_mutex_lock(&k->mutex);
    k->stop = true;
    pthread_mutex_unlock(&k->mutex);
    rowlock_cancel(db);
    pthread_join(k->thread, NULL);

    pthread_mutex_lock(&k->mutex);
    k->closed = true;
    free_quitters(k);
    leave_alone(k);
    bool last = !k->places;
    pthread_mutex_unlock(&k->mutex);
    if (last)
        free_keeper(k);
    return db;
}
