/* SPDX-License-Identifier: MIT
 * Renewing in the background: one thread, one connection, one statement for all leases that are
 * due. keeping.c says what comes next; this file does it. deadline.c answers what a holder asks.
 *
 * The keeper's mutex guards the list of entries, the entries, and the deadlines of their locks. It
 * is unlocked while a statement is in flight or a callback runs, so no caller waits for the server
 * here. While the keeper's thread is awake, only that thread frees an entry that had a lease, since
 * it may be about to use it. Otherwise the lock that quits frees its entry. */
#include "lock/keeper.h"
#include "lock/keeping.h"
#include "core/ask.h"
#include "core/core.h"

#include <string.h>
#include <unistd.h>

#define RLK_KEEPER_TAG 0x726C6B70u /* "rlkp" */

enum {
    /* A busy server may need as long for a statement. */
    LEAST_LIMIT_US = 1000000,
    /* Leases that we verify after one statement that did not renew them. */
    VERIFY_MAX = 100
};

struct rowlock_keeper {
    uint32_t tag;
    pid_t pid;
    /* Only the thread uses it while it runs. */
    rowlock_db *db;
    /* A statement, and connecting, last no longer. */
    int64_t most_us, connect_ms;
    /* The installation's identity. */
    char identity[64];
    pthread_t thread;
    pthread_mutex_t mutex;
    /* Signalled when a callback has returned. */
    pthread_cond_t called;
    /* The entry whose callback runs. */
    struct rlk_entry *calling;
    /* The thread sleeps until then. 0: it is awake, and looks at all entries before it sleeps. */
    int64_t wake_us;
    bool stop, closed;
    struct rlk_keeping keeping;
};

/* ---- the thread: telling */

static void tell(rowlock_keeper *k)
{
    struct rlk_entry *entry = k->keeping.told;
    rowlock_state state = entry->reported;
    rowlock_lock *lock = entry->lock;
    rlk_deadline_arm(&lock->deadline);
    k->calling = entry;
    rlk_unlock(&k->mutex);
    if (state == ROWLOCK_STATE_LOST)
        rlk_log(ROWLOCK_LOG_WARNING, "lock '%s' is lost", entry->name);
    if (entry->options.on_state)
        entry->options.on_state(entry->options.context, lock, state);
    rlk_lock(&k->mutex);
    k->calling = NULL;
    rlk_notify(&k->called);
}

/* Their states may have changed. */
static void arm_all(rowlock_keeper *k)
{
    for (struct rlk_entry *p = k->keeping.entries; p; p = p->next)
        if (p->active && p->lock)
            rlk_deadline_arm(&p->lock->deadline);
}

/* ---- the thread: one heartbeat */

/* A lease was not renewed. Its row is gone, or another transaction has it locked. */
static bool is_gone(rowlock_keeper *k, const struct rlk_held *held, int64_t not_after_us)
{
    struct rlk_verified verified = {0};
    int result = rlk_verify(k->db, held, RLK_OUTSIDE, not_after_us, &verified);
    return result == ROWLOCK_OK && !verified.found;
}

/* A statement that hangs must leave time to connect again and to renew. So it ends within a third
 * of the shortest lease. Where the time limit is the connection's, that is made anew. */
static void limit_statements(rowlock_keeper *k, int64_t shortest_us)
{
    rowlock_db *db = k->db;
    int64_t least_us = rlk_least(LEAST_LIMIT_US, k->most_us);
    int64_t limit_us = rlk_between(least_us, shortest_us / 3, k->most_us);
    bool other = limit_us < db->statement_us || limit_us >= 2 * db->statement_us;
    if (other && db->driver->overruns && !db->port)
        rlk_lose(db);
    db->statement_us = limit_us;
    db->target.timeout_ms = limit_us / 1000;
    db->target.connect_ms = rlk_least(k->connect_ms, limit_us / 1000);
}

static void end_one(rowlock_keeper *k, size_t i, enum rlk_fate fate,
                    const struct rlk_renewed *renewed)
{
    rowlock_lock *lock = k->keeping.batch[i]->lock;
    if (rlk_keeping_end(&k->keeping, i, fate, renewed, rlk_now_us(), &k->db->waiting) &&
        fate == RLK_RENEWED) {
        rlk_deadline_arm(&lock->deadline);
        atomic_fetch_add_explicit(&lock->db->renewals, 1, memory_order_relaxed);
    }
}

/* The questions may take long, so the leases that were renewed come first. */
static void end_batch(rowlock_keeper *k, bool sent, const struct rlk_renewed *renewed)
{
    struct rlk_keeping *now = &k->keeping;
    int questions = 0;
    rlk_lock(&k->mutex);
    for (size_t i = 0; i < now->count; i++)
        if (sent && now->leases[i].renewed)
            end_one(k, i, RLK_RENEWED, renewed);
    rlk_unlock(&k->mutex);
    for (size_t i = 0; i < now->count; i++) {
        if (sent && now->leases[i].renewed)
            continue;
        bool gone =
            sent && questions++ < VERIFY_MAX && is_gone(k, &now->leases[i].held, now->not_after_us);
        rlk_lock(&k->mutex);
        end_one(k, i, gone ? RLK_GONE_FOR_GOOD : RLK_FAILED, renewed);
        rlk_unlock(&k->mutex);
    }
}

/* Call it with the mutex locked. It is unlocked while the statement is in flight. */
static void renew_batch(rowlock_keeper *k)
{
    struct rlk_keeping *now = &k->keeping;
    struct rlk_renewing heartbeat = {.leases = now->leases, .count = now->count};
    struct rlk_ask ask = {.not_after_us = now->not_after_us};
    rlk_unlock(&k->mutex);

    limit_statements(k, now->shortest_us);
    rlk_action(k->db, "renew leases", NULL);
    rlk_step_renew_all(&ask, &heartbeat);
    int result = rlk_ask(k->db, &ask);
    if (result != ROWLOCK_OK)
        rlk_log(ROWLOCK_LOG_WARNING, "%zu lease%s could not be renewed: %s", now->count,
                now->count == 1 ? "" : "s", k->db->error.text);
    struct rlk_renewed renewed = {
        .server_us = heartbeat.now_us, .sent_us = ask.sent_us, .was_uncertain = ask.was_uncertain};
    end_batch(k, result == ROWLOCK_OK, &renewed);
    rlk_lock(&k->mutex);
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
    for (struct rlk_entry *entry = k->keeping.entries, *next; entry; entry = next) {
        next = entry->next;
        if (!entry->lock)
            free_entry(entry);
    }
}

/* Call it with the mutex locked. It is unlocked meanwhile. */
static void sleep_until(rowlock_keeper *k, int64_t until_us)
{
    k->wake_us = until_us;
    rlk_unlock(&k->mutex);
    rlk_wait_until(&k->db->waiting, until_us);
    rlk_lock(&k->mutex);
    k->wake_us = 0;
}

static void *keep(void *context)
{
    rowlock_keeper *k = context;
    rlk_use_in_thread(k->db->driver, true);
    rlk_lock(&k->mutex);
    while (!k->stop) {
        if (!k->keeping.told)
            free_quitters(k);
        enum rlk_duty duty = rlk_keeping_next(&k->keeping, rlk_now_us(), &k->db->waiting);
        if (duty == RLK_TELL) {
            tell(k);
            continue;
        }
        arm_all(k);
        if (duty == RLK_RENEW)
            renew_batch(k);
        else
            sleep_until(k, k->keeping.until_us);
    }
    rlk_unlock(&k->mutex);
    rlk_use_in_thread(k->db->driver, false);
    return NULL;
}

/* ---- called by locks */

void rlk_entry_enter(const rowlock_lock *lock)
{
    if (lock->entry)
        rlk_lock(&lock->entry->keeper->mutex);
}

void rlk_entry_leave(const rowlock_lock *lock)
{
    if (lock->entry)
        rlk_unlock(&lock->entry->keeper->mutex);
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
        rlk_lock(&k->mutex);
        link_entry(&entry->next, k->keeping.entries);
        link_entry(&k->keeping.entries, entry);
        rlk_unlock(&k->mutex);
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
    memcpy(lock->entry->owner, lock->owner, sizeof lock->owner);
    int64_t awake_us = rlk_keeping_begin(lock->entry, rlk_now_us(), &lock->db->waiting);
    rlk_deadline_arm(&lock->deadline);
    wake(lock->entry->keeper, awake_us);
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
    while (k->calling == entry && !rlk_thread_is_this(k->thread))
        rlk_wait_notified(&k->called, &k->mutex);
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

uint64_t rlk_entry_renewing(rowlock_lock *lock, int64_t ttl_us)
{
    struct rlk_entry *entry = lock->entry;
    rlk_entry_enter(lock);
    lock->deadline.pending_us = rlk_now_us() + ttl_us;
    lock->deadline.pending_ttl_us = ttl_us;
    rlk_deadline_arm(&lock->deadline);
    if (entry && entry->active)
        wake(entry->keeper, rlk_deadline_lost_us(&lock->deadline));
    uint64_t serial = entry ? entry->serial : 0;
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
        term->deadline_us = rlk_least(term->deadline_us, entry->sent_us + entry->sent_ttl_us);
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
    rlk_lock(&k->mutex);
    entry->lock = NULL;
    lock->entry = NULL;
    /* The thread may sleep as long as the lease. An entry that never had one it does not use. */
    if (entry->token == 0 || k->wake_us != 0)
        free_entry(entry);
    if (k->closed)
        free_quitters(k);
    bool last = k->closed && !k->keeping.entries;
    rlk_unlock(&k->mutex);
    if (last)
        free_keeper(k);
}

void rowlock_progress(rowlock_lock *lock)
{
    if (lock && lock->tag == RLK_LOCK_TAG)
        lock->progress_us = rlk_now_us();
}

/* ---- start and stop */

int rlk_keeper_start(rowlock_keeper **out, rowlock_db *db, int64_t most_ms)
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
    k->most_us = most_ms * 1000;
    k->connect_ms = db->target.connect_ms;
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
    for (struct rlk_entry *p = k->keeping.entries; p; p = p->next) {
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
    rlk_lock(&k->mutex);
    k->stop = true;
    rlk_unlock(&k->mutex);
    rowlock_cancel(db);
    rlk_thread_join(k->thread);

    rlk_lock(&k->mutex);
    k->closed = true;
    free_quitters(k);
    stop_renewing(k);
    bool last = !k->keeping.entries;
    rlk_unlock(&k->mutex);
    if (last)
        free_keeper(k);
    return db;
}
