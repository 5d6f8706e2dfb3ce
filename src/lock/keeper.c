/* SPDX-License-Identifier: MIT
 * Renewing in the background: one thread, one connection, one statement for all leases that are
 * due. core/ask.c sends that statement. deadline.c answers what a holder asks.
 *
 * The keeper's mutex guards the list of entries, the entries, and the deadlines of their locks. It
 * is unlocked while a statement is in flight or a callback runs, so no caller waits for the server
 * here. While the keeper's thread is awake, only that thread frees an entry that had a lease, since
 * it may be about to use it. Otherwise the lock that quits frees its entry. */
#include "lock/keeper.h"
#include "base/thread.h"
#include "core/ask.h"
#include "core/core.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define RLK_KEEPER_TAG 0x726C6B70u /* "rlkp" */

enum {
    /* Leases in one statement. Its text may have 10 MB then. */
    BATCH_MAX = 10000,
    /* Leases that we verify after one statement that did not renew them. */
    VERIFY_MAX = 100,
    SHORTEST_RETRY_US = 20000,
    LONGEST_RETRY_US = 1000000
};

/* A lock's entry in a keeper. It stays from grant to grant, until the handle is closed or gets
 * another keeper. */
struct rlk_entry {
    rowlock_keeper *keeper;
    struct rlk_entry *next;
    /* The pointer in the list that points here. */
    struct rlk_entry **at;
    /* NULL: the lock has quit. */
    rowlock_lock *lock;
    char name[RLK_TEXT_MAX + 1];
    char owner[RLK_TEXT_MAX + 1];
    rowlock_acquire_options options;

    /* There is a lease to renew. */
    bool active;
    int64_t token;
    int64_t due_us;
    /* The end by max_hold_ms. */
    int64_t hold_until_us;
    /* The last renewal failed. */
    bool failed;
    /* A renewal is in flight, and its answer counts. */
    bool in_flight;
    /* A renewal is in flight. Its answer may be one that does not count any more. */
    bool under_way;
    /* When that renewal, or the last one, was sent, and for how long. */
    int64_t sent_us, sent_ttl_us;
    /* Grows when a renewal is sent, and when it ends. */
    uint64_t serial;
    /* The state that the callback was last called with. */
    rowlock_state reported;
};

struct rowlock_keeper {
    uint32_t tag;
    pid_t pid;
    /* Only the thread uses it while it runs. */
    rowlock_db *db;
    /* The installation's identity. */
    char identity[64];
    pthread_t thread;
    pthread_mutex_t mutex;
    /* Signalled when a callback has returned. */
    pthread_cond_t called;
    struct rlk_entry *entries;
    /* The entry whose callback runs. */
    struct rlk_entry *calling;
    /* The thread sleeps until then. 0: it is awake, and looks at all entries before it sleeps. */
    int64_t wake_us;
    bool stop, closed;

    /* The entries in flight, and their leases. */
    struct rlk_entry *batch[BATCH_MAX];
    struct rlk_lease leases[BATCH_MAX];
};

/* ---- the thread: what is due */

/* Somewhat before a third of the lease. Jitter spreads keepers that began at the same moment. */
static int64_t next_due(rowlock_db *db, const struct rlk_deadline *deadline)
{
    int64_t ttl_us = rlk_deadline_reliable_us(deadline, deadline->ttl_us);
    int64_t third = ttl_us / 3;
    return deadline->deadline_us - ttl_us + third - rlk_jitter(&db->waiting, third / 10 + 1);
}

/* After a failure: a twentieth of the lease, less jitter. */
static int64_t retry_due(rowlock_keeper *k, const struct rlk_deadline *deadline)
{
    int64_t pause = deadline->ttl_us / 20;
    pause = pause < SHORTEST_RETRY_US  ? SHORTEST_RETRY_US
            : pause > LONGEST_RETRY_US ? LONGEST_RETRY_US
                                       : pause;
    return rlk_now_us() + pause / 2 + rlk_jitter(&k->db->waiting, pause / 2);
}

/* When max_hold_ms or progress_ms ends the renewing. */
static int64_t allowed_until(const struct rlk_entry *entry)
{
    int64_t until = entry->hold_until_us;
    int64_t progress_ms = entry->options.progress_ms;
    int64_t progress_until = entry->lock->progress_us + progress_ms * 1000;
    return progress_ms > 0 && progress_until < until ? progress_until : until;
}

static bool has_lease(const struct rlk_entry *entry)
{
    return entry->active && entry->lock && !entry->lock->deadline.over;
}

static bool may_renew(const struct rlk_entry *entry, int64_t now_us)
{
    return has_lease(entry) && now_us < allowed_until(entry);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Leases that are due soon go with those that are due. So leases acquired one by one are renewed
 * together from their second renewal on. */
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

/* ---- the thread: reporting states */

static void call_back(rowlock_keeper *k, struct rlk_entry *entry)
{
    rowlock_state state = entry->reported;
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

/* Calls the callbacks of all locks whose state has changed. Returns when a lease is due or a state
 * may change next. */
static int64_t report_states(rowlock_keeper *k)
{
    int64_t wake_us = INT64_MAX;
    for (struct rlk_entry *p = k->entries; p; p = p->next) {
        if (!has_lease(p) && !(p->active && p->lock && p->reported != ROWLOCK_STATE_LOST))
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
        /* rowlock_progress() does not wake the thread. */
        else if (p->options.progress_ms > 0 && !deadline->over)
            wake_us = earlier(wake_us, retry_due(k, deadline));
        if (state == p->reported)
            continue;
        p->reported = state;
        call_back(k, p);
        /* Other states may have changed while the mutex was unlocked. */
        wake_us = 0;
    }
    return wake_us;
}

/* ---- the thread: one heartbeat */

/* A lease was not renewed. Its row is gone, or another transaction has it locked. */
static bool is_gone(rowlock_keeper *k, const struct rlk_held *held, int64_t not_after_us)
{
    struct rlk_verified verified = {0};
    int result = rlk_verify(k->db, held, RLK_OUTSIDE, not_after_us, &verified);
    return result == ROWLOCK_OK && !verified.found;
}

/* A heartbeat must end when the first lease becomes LOST, so that this is reported in time. */
static int64_t earliest_loss(const rowlock_keeper *k)
{
    int64_t earliest_us = INT64_MAX;
    for (const struct rlk_entry *p = k->entries; p; p = p->next)
        if (has_lease(p))
            earliest_us = earlier(earliest_us, rlk_deadline_lost_us(&p->lock->deadline));
    return earliest_us;
}

static void prepare_batch(rowlock_keeper *k, size_t count)
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

/* The answer does not count if the entry was stopped meanwhile, or its holder has renewed. */
static void take_answer(rowlock_keeper *k, struct rlk_entry *p, const struct rlk_lease *lease,
                        enum fate fate, const struct rlk_renewing *heartbeat,
                        const struct rlk_ask *ask)
{
    p->under_way = false;
    p->serial++;
    if (ask->was_uncertain && p->lock && p->token == lease->held.token)
        rlk_deadline_uncertain(&p->lock->deadline, lease->ttl_us);
    if (!p->in_flight || !p->lock)
        return;
    struct rlk_deadline *deadline = &p->lock->deadline;
    p->in_flight = false;
    p->failed = fate == FAILED || lease->at_risk;
    if (fate == GONE)
        deadline->over = true;
    if (fate == RENEWED) {
        struct rlk_term term = {.ttl_us = lease->ttl_us,
                                .expires_us = heartbeat->now_us + lease->ttl_us,
                                .deadline_us = ask->sent_us + lease->ttl_us};
        rlk_deadline_limit(deadline, &term);
        rlk_deadline_set(deadline, &term);
        atomic_fetch_add_explicit(&p->lock->db->renewals, 1, memory_order_relaxed);
    }
    p->due_us = fate == RENEWED ? next_due(k->db, deadline) : retry_due(k, deadline);
}

/* Call it with the mutex locked. It is unlocked while the statement is in flight. */
static void renew_batch(rowlock_keeper *k, size_t count)
{
    struct rlk_renewing heartbeat = {.leases = k->leases, .count = count};
    int64_t not_after_us = earliest_loss(k);
    struct rlk_ask ask = {.not_after_us = not_after_us};
    prepare_batch(k, count);
    pthread_mutex_unlock(&k->mutex);

    rlk_action(k->db, "renew leases", NULL);
    rlk_step_renew_all(&ask, &heartbeat);
    int result = rlk_ask(k->db, &ask);
    if (result != ROWLOCK_OK)
        rlk_log(ROWLOCK_LOG_WARNING, "%zu leases could not be renewed: %s", count,
                k->db->error.text);
    pthread_mutex_lock(&k->mutex);
    for (size_t i = 0; i < count; i++)
        if (result == ROWLOCK_OK && k->leases[i].renewed)
            take_answer(k, k->batch[i], &k->leases[i], RENEWED, &heartbeat, &ask);
    pthread_mutex_unlock(&k->mutex);
    /* The questions may take long, so the others come first. */
    int questions = 0;
    for (size_t i = 0; i < count; i++) {
        if (result == ROWLOCK_OK && k->leases[i].renewed)
            continue;
        bool gone = result == ROWLOCK_OK && questions++ < VERIFY_MAX &&
                    is_gone(k, &k->leases[i].held, not_after_us);
        pthread_mutex_lock(&k->mutex);
        take_answer(k, k->batch[i], &k->leases[i], gone ? GONE : FAILED, &heartbeat, &ask);
        pthread_mutex_unlock(&k->mutex);
    }
    pthread_mutex_lock(&k->mutex);
}

/* ---- the thread */

static void link_entry(struct rlk_entry **at, struct rlk_entry *entry)
{
    *at = entry;
    if (entry)
        entry->at = at;
}

static void free_entry(struct rlk_entry *entry)
{
    link_entry(entry->at, entry->next);
    rlk_free(entry);
}

static void free_quitters(rowlock_keeper *k)
{
    for (struct rlk_entry *entry = k->entries, *next; entry; entry = next) {
        next = entry->next;
        if (!entry->lock)
            free_entry(entry);
    }
}

static void *keep(void *context)
{
    rowlock_keeper *k = context;
    rlk_use_in_thread(k->db->driver, true);
    pthread_mutex_lock(&k->mutex);
    while (!k->stop) {
        free_quitters(k);
        int64_t wake_us = report_states(k);
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
    rlk_use_in_thread(k->db->driver, false);
    return NULL;
}

/* ---- called by locks */

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

static int check_keeper(rowlock_lock *lock, const rowlock_keeper *k, int64_t patient_until_us)
{
    rowlock_db *db = lock->db;
    if (k->tag != RLK_KEEPER_TAG || k->pid != getpid())
        return rlk_fail(db, ROWLOCK_EMISUSE, "the keeper is closed, or belongs to another process");
    int result = rlk_look_at_tables(db, RLK_OUTSIDE, patient_until_us);
    if (result != ROWLOCK_OK)
        return result;
    if (strcmp(k->identity, db->texts.identity) != 0)
        return rlk_fail(db, ROWLOCK_ESCHEMA,
                        "the keeper belongs to another installation (%s) than this lock (%s)",
                        k->identity, db->texts.identity);
    return ROWLOCK_OK;
}

int rlk_entry_join(rowlock_lock *lock, const rowlock_acquire_options *options,
                   int64_t patient_until_us)
{
    rowlock_keeper *k = options->keeper;
    int result = check_keeper(lock, k, patient_until_us);
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
        link_entry(&entry->next, k->entries);
        link_entry(&k->entries, entry);
        pthread_mutex_unlock(&k->mutex);
        lock->entry = entry;
    }
    /* The entry is inactive, so the thread does not read the options. */
    lock->entry->options = *options;
    lock->entry->hold_until_us = INT64_MAX;
    return ROWLOCK_OK;
}

static void wake(rowlock_keeper *k, int64_t due_us)
{
    if (due_us < k->wake_us)
        rowlock_cancel(k->db);
}

/* Call it with the mutex locked. */
static void activate(rowlock_lock *lock)
{
    struct rlk_entry *entry = lock->entry;
    int64_t max_hold_ms = entry->options.max_hold_ms;
    /* A new grant. */
    if (entry->token != lock->token) {
        entry->under_way = false;
        if (max_hold_ms)
            entry->hold_until_us = rlk_now_us() + max_hold_ms * 1000;
    }
    entry->active = lock->deadline.has_keeper = true;
    entry->failed = lock->deadline.failing = entry->in_flight = false;
    entry->token = lock->token;
    entry->reported = ROWLOCK_STATE_HELD;
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

/* Call it with the mutex locked. The callback itself must not wait for its own end. */
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

/* Call it with the mutex locked. If the keeper's renewal and the holder's crossed, we do not know
 * which one the database did last. So the shorter one counts. */
void rlk_entry_renewed(rowlock_lock *lock, uint64_t serial, struct rlk_term *term)
{
    struct rlk_entry *entry = lock->entry;
    /* The holder renews by itself from now on. */
    if (entry && entry->keeper->closed)
        lock->deadline.has_keeper = lock->deadline.failing = false;
    if (!entry || entry->keeper->closed)
        return;
    if (entry->under_way || entry->serial != serial)
        term->deadline_us = earlier(term->deadline_us, entry->sent_us + entry->sent_ttl_us);
    lock->deadline.deadline_us = term->deadline_us;
    lock->deadline.ttl_us = term->ttl_us;
    activate(lock);
}

/* The last lock that quits a closed keeper frees it. */
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
    /* The thread may sleep as long as the lease. An entry that never had one it does not use. */
    if (entry->token == 0 || k->wake_us != 0)
        free_entry(entry);
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

int rlk_keeper_start(rowlock_keeper **out, rowlock_db *db)
{
    int result = rlk_look_at_tables(db, RLK_OUTSIDE, 0);
    if (result != ROWLOCK_OK)
        return result;
    rowlock_keeper *k = rlk_alloc(sizeof *k);
    if (!k)
        return rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    k->tag = RLK_KEEPER_TAG;
    k->pid = getpid();
    k->db = db;
    /* The server took writes, or there would be no leases to renew. */
    db->takes_writes = true;
    memcpy(k->identity, db->texts.identity, sizeof k->identity);
    pthread_mutex_init(&k->mutex, NULL);
    pthread_cond_init(&k->called, NULL);
    if (!rlk_thread_start(&k->thread, keep, k)) {
        free_keeper(k);
        return rlk_fail(db, ROWLOCK_ENOMEM, "no thread could be started");
    }
    *out = k;
    return ROWLOCK_OK;
}

static void stop_renewing(rowlock_keeper *k)
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
    /* After a fork the mutex may be locked, and the thread is not there. */
    if (k->pid != getpid())
        return db;
    pthread_mutex_lock(&k->mutex);
    k->stop = true;
    pthread_mutex_unlock(&k->mutex);
    rowlock_cancel(db);
    pthread_join(k->thread, NULL);

    pthread_mutex_lock(&k->mutex);
    k->closed = true;
    free_quitters(k);
    stop_renewing(k);
    bool last = !k->entries;
    pthread_mutex_unlock(&k->mutex);
    if (last)
        free_keeper(k);
    return db;
}
