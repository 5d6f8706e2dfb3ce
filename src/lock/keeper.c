/* SPDX-License-Identifier: MIT
 * Renewing in the background: one thread, one connection, one statement for all leases that are
 * due. How a renewal is sent is in seam/resend.c; what a holder sees of it in deadline.c.
 *
 * The keeper's mutex guards its list, the entries in it and the deadlines of the locks that have
 * one. It is not held while a statement is under way or a callback runs, so nobody waits for the
 * server here. A entry is freed by the keeper's thread alone, which may be about to touch it;
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

/* A lock's entry with a keeper. It goes on as long as the handle, grants come and go. */
struct rlk_entry {
    rowlock_keeper *keeper;
    struct rlk_entry *next;
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
    struct rlk_entry *entries;
    struct rlk_entry *calling; /* whose callback runs */
    int64_t wake_us; /* until when the thread sleeps; before that it looks at everything anyway */
    bool stop, closed;

    struct rlk_entry *batch[BATCH_MAX]; /* what is under way */
    struct rlk_lease leases[BATCH_MAX];
};

/* ---- the thread: what is due */

/* Somewhat before a third of the lease, and not the same in each keeper that began at midnight. */
static int64_t next_due(rowlock_db *db, const struct rlk_deadline *deadline)
{
    int64_t ttl_us = rlk_deadline_reliable_us(deadline, deadline->ttl_us);
    int64_t third = ttl_us / 3;
    return deadline->deadline_us - ttl_us + third - rlk_jitter(&db->waiting, third / 10 + 1);
}

/* After a failure: soon, since the lease is running, but not in a rush. */
static int64_t retry_due(rowlock_keeper *k, const struct rlk_deadline *deadline)
{
    int64_t pause = deadline->ttl_us / 20;
    pause = pause < SHORTEST_RETRY_US  ? SHORTEST_RETRY_US
            : pause > LONGEST_RETRY_US ? LONGEST_RETRY_US
                                       : pause;
    return rlk_now_us() + pause / 2 + rlk_jitter(&k->db->waiting, pause / 2);
}

/* When the holder's own conditions end the renewing. */
static int64_t allowed_until(const struct rlk_entry *entry)
{
    int64_t until = entry->hold_until_us;
    int64_t progress_ms = entry->options.progress_ms;
    int64_t progress_until = entry->lock->progress_us + progress_ms * 1000;
    return progress_ms > 0 && progress_until < until ? progress_until : until;
}

static bool is_kept(const struct rlk_entry *entry)
{
    return entry->active && entry->lock && !entry->lock->deadline.over;
}

static bool may_renew(const struct rlk_entry *entry, int64_t now_us)
{
    return is_kept(entry) && now_us < allowed_until(entry);
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
    for (struct rlk_entry *p = k->entries; p && !any; p = p->next)
        any = may_renew(p, now_us) && p->due_us <= now_us;
    size_t count = 0;
    for (struct rlk_entry *p = k->entries; any && p && count < BATCH_MAX; p = p->next)
        if (may_renew(p, now_us) && p->due_us <= now_us + p->lock->deadline.ttl_us / 12)
            k->batch[count++] = p;
    return count;
}

/* ---- the thread: being told */

static void call_back(rowlock_keeper *k, struct rlk_entry *entry)
{
    rowlock_state state = entry->told;
    rowlock_lock *lock = entry->lock;
    k->calling = entry;
    pthread_mutex_unlock(&k->mutex);
    if (state == ROWLOCK_STATE_LOST)
        rlk_log(ROWLOCK_LOG_WARNING, "lock '%s' is lost", entry->name);
    if (entry->options.on_state)
        entry->options.on_state(entry->options.context, lock, state);
    pthread_mutex_lock(&k->mutex);
    k->calling = NULL;
    pthread_cond_broadcast(&k->called);
}

/* Tells who has to know something new. Returns when next something may have to be told or done. */
static int64_t tell(rowlock_keeper *k)
{
    int64_t wake_us = INT64_MAX;
    for (struct rlk_entry *p = k->entries; p; p = p->next) {
        if (!is_kept(p) && !(p->active && p->lock && p->told != ROWLOCK_STATE_LOST))
            continue;
        struct rlk_deadline *deadline = &p->lock->deadline;
        int64_t now_us = rlk_now_us();
        int64_t next_us;
        bool allowed = now_us < allowed_until(p);
        deadline->failing = p->failed || !allowed;
        rowlock_state state = rlk_deadline_state(deadline, now_us, &next_us);
        deadline->over = state == ROWLOCK_STATE_LOST;
        rlk_deadline_arm(deadline);
        wake_us = earlier(wake_us, next_us);
        if (allowed && !deadline->over)
            wake_us = earlier(wake_us, earlier(p->due_us, allowed_until(p)));
        else if (p->options.progress_ms > 0 && !deadline->over) /* nobody wakes us for progress */
            wake_us = earlier(wake_us, retry_due(k, deadline));
        if (state == p->told)
            continue;
        p->told = state;
        call_back(k, p);
        wake_us = 0; /* whatever else has happened meanwhile */
    }
    return wake_us;
}

/* ---- the thread: one heartbeat */

struct heartbeat {
    struct rlk_lease *leases;
    size_t count;
    int64_t now_us;
};

static enum rlk_class run_renew_all(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct heartbeat *b = context;
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
    for (const struct rlk_entry *p = k->entries; p; p = p->next)
        if (is_kept(p))
            earliest_us = earlier(earliest_us, rlk_deadline_lost_us(&p->lock->deadline));
    return earliest_us;
}

static void take_off(rowlock_keeper *k, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct rlk_entry *p = k->batch[i];
        p->in_flight = p->under_way = true;
        p->serial++;
        p->sent_us = rlk_now_us();
        p->sent_ttl_us = p->lock->deadline.ttl_us;
        k->leases[i] = (struct rlk_lease){.held = {.name = p->name,
                                                   .slot = rlk_slot(p->lock->permits, p->token),
                                                   .owner = p->owner,
                                                   .token = p->token},
                                          .ttl_us = p->sent_ttl_us};
    }
}

enum fate { RENEWED, FAILED, GONE };

/* A entry that was stopped, or renewed by its holder, meanwhile wants no answer any more. */
static void land(rowlock_keeper *k, struct rlk_entry *p, const struct rlk_lease *lease,
                 enum fate fate, const struct heartbeat *heartbeat,
                 const struct rlk_step_call *step)
{
    p->under_way = false;
    p->serial++;
    if (step->was_uncertain && p->lock && p->token == lease->held.token)
        rlk_deadline_fear(&p->lock->deadline, lease->ttl_us);
    if (!p->in_flight || !p->lock)
        return;
    struct rlk_deadline *deadline = &p->lock->deadline;
    p->in_flight = false;
    p->failed = fate == FAILED;
    if (fate == GONE)
        deadline->over = true;
    if (fate == RENEWED) {
        struct rlk_term term = {.ttl_us = lease->ttl_us,
                                .expires_us = heartbeat->now_us + lease->ttl_us,
                                .deadline_us = step->sent_us + lease->ttl_us};
        rlk_deadline_limit(deadline, &term);
        rlk_deadline_set(deadline, &term);
    }
    p->due_us = fate == RENEWED ? next_due(k->db, deadline) : retry_due(k, deadline);
}

/* Called with the mutex, which is let go while the server is asked. */
static void renew_batch(rowlock_keeper *k, size_t count)
{
    struct heartbeat heartbeat = {.leases = k->leases, .count = count};
    int64_t not_after_us = earliest_loss(k);
    struct rlk_step_call step = {
        .run = run_renew_all, .context = &heartbeat, .not_after_us = not_after_us};
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
        land(k, k->batch[i], &k->leases[i], fate, &heartbeat, &step);
        pthread_mutex_unlock(&k->mutex);
    }
    pthread_mutex_lock(&k->mutex);
}

/* ---- the thread */

static void free_quitters(rowlock_keeper *k)
{
    for (struct rlk_entry **at = &k->entries; *at;) {
        struct rlk_entry *entry = *at;
        if (entry->lock) {
            at = &entry->next;
            continue;
        }
        *at = entry->next;
        rlk_free(entry);
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

void rlk_entry_enter(const rowlock_lock *lock)
{
    if (lock->entry)
        pthread_mutex_lock(&lock->entry->keeper->mutex);
}

void rlk_entry_leave(const rowlock_lock *lock)
{
    if (lock->entry)
        pthread_mutex_unlock(&lock->entry->keeper->mutex);
}

static int check_keeper(rowlock_lock *lock, const rowlock_keeper *k)
{
    rowlock_db *db = lock->db;
    if (k->tag != RLK_KEEPER_TAG || k->pid != getpid())
        return rlk_fail(db, ROWLOCK_EMISUSE, "the keeper is closed, or belongs to another process");
    int result = rlk_look_at_tables(db, RLK_OUTSIDE);
    if (result != ROWLOCK_OK)
        return result;
    if (strcmp(k->identity, db->texts.identity) != 0)
        return rlk_fail(db, ROWLOCK_ESCHEMA,
                        "the keeper belongs to another installation (%s) than this lock (%s)",
                        k->identity, db->texts.identity);
    return ROWLOCK_OK;
}

int rlk_entry_join(rowlock_lock *lock, const rowlock_acquire_options *options)
{
    rowlock_keeper *k = options->keeper;
    int result = check_keeper(lock, k);
    if (result != ROWLOCK_OK)
        return result;
    if (lock->entry && lock->entry->keeper != k)
        rlk_entry_quit(lock);
    if (!lock->entry) {
        struct rlk_entry *entry = rlk_alloc(sizeof *entry);
        if (!entry)
            return rlk_fail(lock->db, ROWLOCK_ENOMEM, "out of memory");
        entry->keeper = k;
        entry->lock = lock;
        memcpy(entry->name, lock->name, sizeof entry->name);
        memcpy(entry->owner, lock->owner, sizeof entry->owner);
        pthread_mutex_lock(&k->mutex);
        entry->next = k->entries;
        k->entries = entry;
        pthread_mutex_unlock(&k->mutex);
        lock->entry = entry;
    }
    lock->entry->options = *options; /* inactive: nobody else looks at it */
    lock->entry->hold_until_us = INT64_MAX;
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
    struct rlk_entry *entry = lock->entry;
    int64_t max_hold_ms = entry->options.max_hold_ms;
    if (entry->token != lock->token) { /* a new grant */
        entry->under_way = false;
        if (max_hold_ms)
            entry->hold_until_us = rlk_now_us() + max_hold_ms * 1000;
    }
    entry->active = lock->deadline.has_keeper = true;
    entry->failed = lock->deadline.failing = entry->in_flight = false;
    entry->token = lock->token;
    entry->told = ROWLOCK_STATE_HELD;
    lock->progress_us = rlk_now_us();
    entry->due_us = next_due(lock->db, &lock->deadline);
    rlk_deadline_arm(&lock->deadline);
    wake(entry->keeper, earlier(entry->due_us, allowed_until(entry)));
}

void rlk_entry_start(rowlock_lock *lock)
{
    struct rlk_entry *entry = lock->entry;
    if (!entry)
        return;
    rlk_entry_enter(lock);
    if (!entry->keeper->closed && !lock->deadline.over)
        activate(lock);
    rlk_entry_leave(lock);
}

/* With the mutex. From within the callback itself there is nothing to wait for. */
static void await_callback(struct rlk_entry *entry)
{
    rowlock_keeper *k = entry->keeper;
    while (k->calling == entry && !pthread_equal(pthread_self(), k->thread))
        pthread_cond_wait(&k->called, &k->mutex);
}

bool rlk_entry_stop(rowlock_lock *lock)
{
    if (!lock->entry)
        return false;
    rlk_entry_enter(lock);
    bool was_active = lock->entry->active;
    lock->entry->active = lock->entry->in_flight = lock->deadline.has_keeper = false;
    await_callback(lock->entry);
    rlk_entry_leave(lock);
    return was_active;
}

uint64_t rlk_entry_serial(const rowlock_lock *lock)
{
    rlk_entry_enter(lock);
    uint64_t serial = lock->entry ? lock->entry->serial : 0;
    rlk_entry_leave(lock);
    return serial;
}

/* With the mutex. Which of two renewals that crossed each other the database did last is not
 * known, so the shorter one counts. */
void rlk_entry_renewed(rowlock_lock *lock, uint64_t serial, struct rlk_term *term)
{
    struct rlk_entry *entry = lock->entry;
    if (entry && entry->keeper->closed) /* from now on the holder renews by itself */
        lock->deadline.has_keeper = lock->deadline.failing = false;
    if (!entry || entry->keeper->closed)
        return;
    if (entry->under_way || entry->serial != serial)
        term->deadline_us = earlier(term->deadline_us, entry->sent_us + entry->sent_ttl_us);
    lock->deadline.deadline_us = term->deadline_us;
    lock->deadline.ttl_us = term->ttl_us;
    activate(lock);
}

/* The last lock that quits a closed keeper takes it along. */
static void free_keeper(rowlock_keeper *k)
{
    pthread_cond_destroy(&k->called);
    pthread_mutex_destroy(&k->mutex);
    rlk_free(k);
}

void rlk_entry_quit(rowlock_lock *lock)
{
    struct rlk_entry *entry = lock->entry;
    if (!entry || lock->db->pid != getpid())
        return;
    rowlock_keeper *k = entry->keeper;
    rlk_entry_stop(lock);
    pthread_mutex_lock(&k->mutex);
    entry->lock = NULL;
    lock->entry = NULL;
    if (k->closed)
        free_quitters(k);
    bool last = k->closed && !k->entries;
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
    for (struct rlk_entry *p = k->entries; p; p = p->next) {
        if (!p->active)
            continue;
        p->active = false;
        p->lock->deadline.failing = true;
        rlk_deadline_arm(&p->lock->deadline);
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
    bool last = !k->entries;
    pthread_mutex_unlock(&k->mutex);
    if (last)
        free_keeper(k);
    return db;
}
