/* SPDX-License-Identifier: MIT
 * The states of a lock, and what each answer of the database means for it. How a step is sent, and
 * sent again, is in step.c; how long to wait between two looks is in wait.c. */
#include "internal.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* How long a try goes on against lost races before it calls the lock busy. */
enum { TRY_CONTENTION_US = 1000000 };

/* ---- handles */

static int enter(const rowlock_lock *lock, const char *verb)
{
    if (!lock || lock->tag != RLK_LOCK_TAG)
        return ROWLOCK_EMISUSE;
    return rlk_enter(lock->db, verb, lock->name);
}

static void link_to_db(rowlock_lock *lock)
{
    lock->next = lock->db->locks;
    if (lock->next)
        lock->next->previous = lock;
    lock->db->locks = lock;
}

static void unlink_from_db(rowlock_lock *lock)
{
    if (lock->next)
        lock->next->previous = lock->previous;
    if (lock->previous)
        lock->previous->next = lock->next;
    else
        lock->db->locks = lock->next;
    lock->next = lock->previous = NULL;
    lock->db = NULL;
}

static int new_lock(rowlock_db *db, const char *name, const char *owner, rowlock_lock **out)
{
    int result = rlk_check_text(db, "lock's name", name, false);
    if (result == ROWLOCK_OK && owner)
        result = rlk_check_text(db, "owner", owner, false);
    if (result != ROWLOCK_OK)
        return result;
    rowlock_lock *lock = rlk_alloc(sizeof *lock);
    if (!lock)
        return rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    memcpy(lock->name, name, strlen(name) + 1);
    if (owner) {
        memcpy(lock->owner, owner, strlen(owner) + 1);
    } else if (rlk_random_owner(lock->owner) != 0) {
        rlk_free(lock);
        return rlk_fail(db, ROWLOCK_ESERVER, "the system gives no random numbers");
    }
    lock->tag = RLK_LOCK_TAG;
    lock->watch.fd = -1;
    lock->db = db;
    link_to_db(lock);
    *out = lock;
    return ROWLOCK_OK;
}

int rowlock_lock_open(rowlock_db *db, const char *name, rowlock_lock **out)
{
    if (!out)
        return ROWLOCK_EINVAL;
    *out = NULL;
    int result = rlk_enter(db, "open lock", NULL);
    return result == ROWLOCK_OK ? new_lock(db, name, db->owner[0] ? db->owner : NULL, out) : result;
}

int rowlock_lock_attach(rowlock_db *db, const char *name, const char *owner, int64_t token,
                        rowlock_lock **out)
{
    if (!out)
        return ROWLOCK_EINVAL;
    *out = NULL;
    int result = rlk_enter(db, "attach to lock", NULL);
    if (result != ROWLOCK_OK)
        return result;
    if (!owner || token <= 0)
        return rlk_fail(db, ROWLOCK_EINVAL,
                        "to attach to a grant takes its owner and its token, above 0");
    rowlock_lock *lock = NULL;
    result = new_lock(db, name, owner, &lock);
    if (!lock)
        return result;
    lock->attached = true;
    lock->state = RLK_HOLDING;
    lock->depth = 1;
    lock->token = token;
    rlk_watch_begin(&lock->watch, 0);
    *out = lock;
    return ROWLOCK_OK;
}

static int release_grant(rowlock_lock *lock);
static int withdraw_grant(rowlock_lock *lock);

/* What is held, or may have been granted without our knowledge, goes back as well as can be done. */
static void release_quietly(rowlock_lock *lock)
{
    bool holding = lock->state == RLK_HOLDING && !lock->attached;
    if ((!holding && !lock->attempt_open) || lock->db->pid != getpid())
        return;
    rlk_action(lock->db, "release at close lock", lock->name);
    if ((holding ? release_grant(lock) : withdraw_grant(lock)) != ROWLOCK_OK)
        rlk_log(ROWLOCK_LOG_WARNING, "lock '%s' could not be released at close: %s", lock->name,
                lock->db->error.text);
}

void rlk_lock_abandon(rowlock_lock *lock)
{
    rlk_kept_quit(lock);
    release_quietly(lock);
    if (lock->db->pid == getpid()) /* a child shares the timer */
        rlk_watch_end(&lock->watch);
    unlink_from_db(lock);
    lock->state = RLK_IDLE;
}

void rowlock_lock_close(rowlock_lock *lock)
{
    if (!lock || lock->tag != RLK_LOCK_TAG)
        return;
    if (lock->db)
        rlk_lock_abandon(lock);
    if (lock->watch.fd >= 0)
        close(lock->watch.fd);
    lock->tag = 0;
    rlk_free(lock);
}

static void hold_nothing(rowlock_lock *lock)
{
    rlk_kept_stop(lock);
    rlk_watch_end(&lock->watch);
    lock->state = RLK_IDLE;
    lock->depth = 0;
}

void rowlock_lock_forget(rowlock_lock *lock)
{
    if (!lock || lock->tag != RLK_LOCK_TAG || !lock->db || lock->db->pid != getpid())
        return;
    hold_nothing(lock);
    lock->attempt_open = lock->release_open = false;
}

/* ---- what a handle knows */

bool rlk_holds(const rowlock_lock *lock)
{
    return lock && lock->tag == RLK_LOCK_TAG && lock->db && lock->db->pid == getpid() &&
           lock->state == RLK_HOLDING;
}

int64_t rowlock_lock_token(const rowlock_lock *lock)
{
    return rlk_holds(lock) ? lock->token : 0;
}

const char *rowlock_lock_name(const rowlock_lock *lock)
{
    return lock && lock->tag == RLK_LOCK_TAG ? lock->name : "";
}

const char *rowlock_lock_owner(const rowlock_lock *lock)
{
    return lock && lock->tag == RLK_LOCK_TAG ? lock->owner : "";
}

void rlk_grant_from_row(rowlock_grant *out, const struct rlk_row *row)
{
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    out->token = row->token;
    out->acquired_us = row->acquired_us;
    out->expires_us = row->expires_us;
    out->remaining_ms = (row->expires_us - row->now_us) / 1000;
    if (out->remaining_ms == 0 && row->expires_us <= row->now_us)
        out->remaining_ms = -1; /* over is over, be it by less than a millisecond */
    out->ttl_ms = row->ttl_us / 1000;
    out->renewals = row->renewals;
    out->pid = row->pid;
    out->slot = row->slot;
    memcpy(out->name, row->name, sizeof row->name);
    memcpy(out->owner, row->owner, sizeof row->owner);
    memcpy(out->host, row->host, sizeof row->host);
    memcpy(out->program, row->program, sizeof row->program);
    memcpy(out->note, row->note, sizeof row->note);
}

int rowlock_lock_holder(const rowlock_lock *lock, rowlock_grant *out)
{
    if (!lock || lock->tag != RLK_LOCK_TAG || (lock->db && lock->db->pid != getpid()) || !out)
        return ROWLOCK_EMISUSE;
    if (!lock->holder_known)
        return ROWLOCK_NONE;
    rowlock_grant grant;
    rlk_grant_from_row(&grant, &lock->holder);
    rlk_give_struct(out, &grant, sizeof grant);
    return ROWLOCK_OK;
}

/* ---- acquire */

struct acquiring {
    rowlock_lock *lock;
    int64_t margin_us;
    struct rlk_claim claim;
    struct rlk_grant grant;
    struct rlk_step_call step;
    bool probe;
};

/* Sent again after a lost answer, it may meet its own first sending in flight: that is not somebody else's
 * lock. */
static enum rlk_class ask_to_acquire(rowlock_db *db, struct rlk_call *call, struct acquiring *a)
{
    enum rlk_class class = db->backend->acquire(db->conn, call, &a->claim, &a->grant);
    bool own = a->step.was_uncertain && a->grant.outcome == RLK_IN_FLIGHT;
    if (class != RLK_DONE || !own)
        return class;
    rlk_diag_set(call, 0, NULL, "a transaction, perhaps our own, is changing the lock");
    return RLK_CONTENTION;
}

static enum rlk_class run_acquire(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct acquiring *a = context;
    memset(&a->grant, 0, sizeof a->grant);
    if (!a->probe)
        return ask_to_acquire(db, call, a);
    enum rlk_class class = db->backend->probe(db->conn, call, &a->claim, &a->grant);
    return class == RLK_UNCERTAIN ? RLK_UNSENT : class; /* a plain read */
}

/* The lease as our clock sees it: what the database said was left when it answered, counted from
 * before we asked. */
static struct rlk_term term_of(int64_t sent_us, int64_t expires_us, int64_t now_us)
{
    return (struct rlk_term){.ttl_us = expires_us - now_us,
                             .expires_us = expires_us,
                             .deadline_us = sent_us + (expires_us - now_us)};
}

void rlk_take_grant(rowlock_lock *lock, const struct rlk_row *row, int64_t sent_us,
                    int64_t margin_us)
{
    struct rlk_term term = term_of(sent_us, row->expires_us, row->now_us);
    term.ttl_us = row->ttl_us;
    lock->state = RLK_HOLDING;
    lock->depth = 1;
    lock->token = row->token;
    rlk_watch_begin(&lock->watch, margin_us);
    rlk_watch_set(&lock->watch, &term);
    lock->met_holder = lock->holder_known = lock->attempt_open = lock->release_open = false;
    lock->unproven = false;
    rlk_log(ROWLOCK_LOG_DEBUG, "lock '%s' granted with token %" PRId64, lock->name, lock->token);
}

/* Busy is no failure: what went wrong on the way to it is not told. An attempt whose outcome is unknown
 * stays open: what is in flight may be our own first sending, and one that is still under way may yet
 * find the lock free. */
int rlk_found_busy(rowlock_lock *lock, const struct rlk_grant *grant)
{
    if (lock->db->error.code != ROWLOCK_OK)
        rlk_action(lock->db, "acquire lock", lock->name);
    lock->met_holder = lock->holder_known = grant && grant->outcome == RLK_HELD;
    if (lock->holder_known)
        lock->holder = grant->row;
    return ROWLOCK_BUSY;
}

static int renew_grant(rowlock_lock *lock, int64_t ttl_us);

/* The grant took so long to reach us that its lease is over. Nothing was done under it yet, so a
 * renewal makes it whole; unless somebody has taken it over. And a grant whose answer was lost has only
 * been read: that no standby lacks it, a renewal proves, which is answered when the standby has both.
 * Where the renewal fails, nothing is held, and the next acquire asks for the same grant. */
static int freshen(rowlock_lock *lock)
{
    int result = renew_grant(lock, lock->watch.ttl_us);
    if (result == ROWLOCK_OK || result == ROWLOCK_LAPSED)
        return ROWLOCK_OK;
    hold_nothing(lock);
    if (result == ROWLOCK_LOST)
        return rlk_found_busy(lock, NULL);
    lock->attempt_open = true;
    return result;
}

/* One try: OK, BUSY, or an error. */
static int try_once(struct acquiring *a)
{
    rowlock_lock *lock = a->lock;
    struct rlk_step_call *step = &a->step;
    *step = (struct rlk_step_call){
        .run = run_acquire, .context = a, .contention_us = TRY_CONTENTION_US};
    int result = rlk_do(lock->db, step);
    if (step->contended && !step->was_uncertain)
        return rlk_found_busy(lock, NULL);
    bool uncertain = lock->attempt_open = lock->attempt_open || step->was_uncertain;
    if (result != ROWLOCK_OK)
        return result;
    if (a->grant.outcome != RLK_GRANTED)
        return rlk_found_busy(lock, &a->grant);
    rlk_take_grant(lock, &a->grant.row, step->sent_us, a->margin_us);
    return rowlock_remaining_ms(lock) > 0 && !uncertain ? ROWLOCK_OK : freshen(lock);
}

/* A try that expects to find the lock held may look first, where that is cheaper. */
static int try_lock(struct acquiring *a)
{
    rowlock_lock *lock = a->lock;
    a->probe = lock->db->backend->probes_first && lock->met_holder && !lock->attempt_open;
    int result = try_once(a);
    if (!a->probe || result != ROWLOCK_BUSY || lock->holder_known)
        return result;
    a->probe = false;
    return try_once(a);
}

static int64_t wait_end(int64_t wait_ms)
{
    int64_t now = rlk_now_us();
    return wait_ms == ROWLOCK_FOREVER || wait_ms > (INT64_MAX - now) / 1000 ? INT64_MAX
                                                                            : now + wait_ms * 1000;
}

static int acquire_waiting(struct acquiring *a, int64_t wait_ms)
{
    rowlock_lock *lock = a->lock;
    int64_t until = wait_end(wait_ms);
    int tries = 0;
    for (;;) {
        int result = try_lock(a);
        if (result != ROWLOCK_BUSY || wait_ms == 0)
            return result;
        int64_t now = rlk_now_us();
        if (now >= until)
            return ROWLOCK_TIMEOUT;
        int64_t left = lock->holder_known ? lock->holder.expires_us - lock->holder.now_us : 0;
        int64_t next = now + rlk_pause_poll(lock->db, &tries, left);
        if (!rlk_wait_until(lock->db, next < until ? next : until))
            return ROWLOCK_CANCELLED;
    }
}

struct rlk_claim rlk_claim_of(rowlock_lock *lock, const rowlock_acquire_options *options)
{
    rowlock_db *db = lock->db;
    if (!lock->attempt_open)
        lock->attempt = rlk_next_attempt(db);
    return (struct rlk_claim){.name = lock->name,
                              .slot = RLK_SLOT_EXCLUSIVE,
                              .owner = lock->owner,
                              .attempt = lock->attempt,
                              .ttl_us = options->ttl_ms * 1000,
                              .host = db->host,
                              .pid = db->pid,
                              .program = db->program,
                              .note = options->note};
}

static int acquire_anew(rowlock_lock *lock, const rowlock_acquire_options *options)
{
    int result = ROWLOCK_OK;
    if (!options->keeper)
        rlk_kept_quit(lock);
    else if ((result = rlk_kept_join(lock, options)) != ROWLOCK_OK)
        return result;
    struct acquiring a = {
        .lock = lock, .margin_us = options->margin_ms * 1000, .claim = rlk_claim_of(lock, options)};
    result = acquire_waiting(&a, options->wait_ms);
    if (result == ROWLOCK_OK)
        rlk_kept_start(lock);
    return result;
}

static int enter_again(rowlock_lock *lock)
{
    if (lock->state == RLK_GONE)
        return rlk_fail(lock->db, ROWLOCK_LOST,
                        "the grant was lost; release as often as entered, then acquire anew");
    if (lock->depth == INT_MAX)
        return rlk_fail(lock->db, ROWLOCK_EMISUSE, "entered too often");
    int result =
        rowlock_remaining_ms(lock) > 0 ? ROWLOCK_OK : renew_grant(lock, lock->watch.ttl_us);
    if (result == ROWLOCK_OK || result == ROWLOCK_LAPSED)
        lock->depth++;
    return result;
}

int rowlock_acquire(rowlock_lock *lock, const rowlock_acquire_options *options)
{
    int result = enter(lock, "acquire lock");
    if (result != ROWLOCK_OK)
        return result;
    rowlock_acquire_options o;
    if ((result = rlk_take_acquire_options(lock->db, &o, options)) != ROWLOCK_OK)
        return result;
    if (lock->attached)
        return rlk_fail(lock->db, ROWLOCK_EMISUSE,
                        "this handle is attached to a grant made elsewhere");
    return lock->state == RLK_IDLE ? acquire_anew(lock, &o) : enter_again(lock);
}

/* ---- renew, verify, release: steps of a grant */

struct holding {
    struct rlk_held held;
    int64_t ttl_us;
    struct rlk_renewal renewal;
    bool found;
};

struct rlk_held rlk_held_of(const rowlock_lock *lock)
{
    return (struct rlk_held){
        .name = lock->name, .slot = RLK_SLOT_EXCLUSIVE, .owner = lock->owner, .token = lock->token};
}

static int found_lost(rowlock_lock *lock)
{
    rlk_kept_stop(lock);
    lock->state = RLK_GONE;
    lock->watch.over = true;
    rlk_watch_arm(&lock->watch);
    rlk_log(ROWLOCK_LOG_WARNING, "lock '%s' with token %" PRId64 " is lost", lock->name,
            lock->token);
    return rlk_fail(lock->db, ROWLOCK_LOST,
                    "the grant with token %" PRId64 " is no longer in the table", lock->token);
}

/* Renew and verify need a grant to speak of; an earlier LOST stays LOST. */
static int need_grant(rowlock_lock *lock)
{
    if (lock->state == RLK_HOLDING)
        return ROWLOCK_OK;
    if (lock->state == RLK_GONE)
        return rlk_fail(lock->db, ROWLOCK_LOST, "the grant was lost earlier");
    return rlk_fail(lock->db, ROWLOCK_EMISUSE, "this handle does not hold the lock");
}

static enum rlk_class run_renew(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct holding *h = context;
    return db->backend->renew(db->conn, call, &h->held, h->ttl_us, &h->renewal);
}

/* A renewal whose answer was lost may have made the lease end sooner, or may do so later. */
static void fear_shorter(rowlock_lock *lock, int64_t asked_us, int64_t ttl_us)
{
    rlk_kept_enter(lock);
    rlk_watch_fear(&lock->watch, ttl_us);
    if (asked_us + ttl_us < lock->watch.deadline_us)
        lock->watch.deadline_us = asked_us + ttl_us;
    rlk_watch_arm(&lock->watch);
    rlk_kept_leave(lock);
}

static int renew_grant(rowlock_lock *lock, int64_t ttl_us)
{
    struct holding h = {.held = rlk_held_of(lock)};
    h.ttl_us = ttl_us;
    struct rlk_step_call step = {.run = run_renew, .context = &h};
    int64_t asked_us = rlk_now_us();
    uint64_t serial = rlk_kept_serial(lock);
    int result = rlk_do(lock->db, &step);
    if (step.was_uncertain)
        fear_shorter(lock, asked_us, ttl_us);
    if (result != ROWLOCK_OK)
        return result;
    if (!h.renewal.found)
        return found_lost(lock);
    struct rlk_term term = term_of(step.sent_us, h.renewal.expires_us, h.renewal.now_us);
    lock->release_open = lock->unproven = false;
    rlk_kept_enter(lock);
    rlk_watch_limit(&lock->watch, &term);
    rlk_kept_renewed(lock, serial, &term);
    lock->watch.over = false;
    rlk_watch_set(&lock->watch, &term);
    rlk_kept_leave(lock);
    return h.renewal.lapsed_us > 0 ? ROWLOCK_LAPSED : ROWLOCK_OK;
}

static int64_t lease_ttl(const rowlock_lock *lock)
{
    rlk_kept_enter(lock);
    int64_t ttl_us = lock->watch.ttl_us;
    rlk_kept_leave(lock);
    return ttl_us;
}

int rowlock_renew(rowlock_lock *lock, int64_t ttl_ms)
{
    int result = enter(lock, "renew lock");
    if (result != ROWLOCK_OK || (result = need_grant(lock)) != ROWLOCK_OK)
        return result;
    if (ttl_ms != 0 && (result = rlk_check_ttl(lock->db, ttl_ms)) != ROWLOCK_OK)
        return result;
    return renew_grant(lock, ttl_ms ? ttl_ms * 1000 : lease_ttl(lock));
}

struct verifying {
    const struct rlk_held *held;
    struct rlk_verified *out;
};

static enum rlk_class run_verify(rowlock_db *db, struct rlk_call *call, void *context)
{
    const struct verifying *v = context;
    enum rlk_class class = db->backend->verify(db->conn, call, v->held, v->out);
    return class == RLK_UNCERTAIN ? RLK_UNSENT : class; /* a plain read */
}

int rlk_verify(rowlock_db *db, const struct rlk_held *held, enum rlk_where where,
               int64_t not_after_us, struct rlk_verified *out)
{
    struct verifying v = {.held = held, .out = out};
    struct rlk_step_call step = {
        .run = run_verify, .context = &v, .where = where, .not_after_us = not_after_us};
    return rlk_do(db, &step);
}

int rowlock_verify(rowlock_lock *lock)
{
    int result = enter(lock, "verify lock");
    if (result != ROWLOCK_OK || (result = need_grant(lock)) != ROWLOCK_OK)
        return result;
    struct rlk_held held = rlk_held_of(lock);
    struct rlk_verified verified = {0};
    result = rlk_verify(lock->db, &held, RLK_OUTSIDE, 0, &verified);
    if (result != ROWLOCK_OK)
        return result;
    if (!verified.found)
        return found_lost(lock);
    lock->unproven = false;
    return verified.expires_us <= verified.now_us ? ROWLOCK_LAPSED : ROWLOCK_OK;
}

struct looking {
    const char *name;
    bool *found;
    int64_t *token, *granted_us;
};

static enum rlk_class run_last(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct looking *l = context;
    enum rlk_class class =
        db->backend->last(db->conn, call, l->name, l->found, l->token, l->granted_us);
    return class == RLK_UNCERTAIN ? RLK_UNSENT : class; /* a plain read */
}

int rlk_last_grant(rowlock_db *db, const char *name, bool *found, int64_t *token,
                   int64_t *granted_us)
{
    struct looking l = {.name = name, .found = found, .token = token, .granted_us = granted_us};
    struct rlk_step_call step = {.run = run_last, .context = &l};
    return rlk_do(db, &step);
}

static enum rlk_class run_release(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct holding *h = context;
    return db->backend->release(db->conn, call, &h->held, &h->found);
}

/* The row is gone, and an earlier sending of our delete got no answer. If the name's token is still
 * ours then nobody was granted it, nor was it broken: the delete was ours. Else it is told as it is,
 * and the handle is done with: there is no row left to release. */
static int resolve_release(rowlock_lock *lock)
{
    bool found = false;
    int64_t token = 0;
    int64_t granted_us;
    int result = rlk_last_grant(lock->db, lock->name, &found, &token, &granted_us);
    if (result == ROWLOCK_OK && found && token == lock->token)
        return ROWLOCK_OK;
    hold_nothing(lock);
    return rlk_fail(
        lock->db, ROWLOCK_EUNCERTAIN,
        "the grant is gone now: through an earlier release whose outcome is not known, or before "
        "it; the tables no longer tell");
}

/* The keeper is told first: it renews no more, and nobody waits for what it has under way. */
static int release_grant(rowlock_lock *lock)
{
    rlk_kept_stop(lock);
    struct holding h = {.held = rlk_held_of(lock)};
    struct rlk_step_call step = {.run = run_release, .context = &h};
    int result = rlk_do(lock->db, &step);
    lock->release_open = lock->release_open || step.was_uncertain;
    if (result != ROWLOCK_OK || h.found)
        return result;
    return lock->release_open ? resolve_release(lock) : found_lost(lock);
}

static enum rlk_class run_withdraw(rowlock_db *db, struct rlk_call *call, void *context)
{
    const struct rlk_claim *claim = context;
    bool found;
    return db->backend->withdraw(db->conn, call, claim, &found);
}

/* Of an acquire whose outcome was never learnt. */
static int withdraw_grant(rowlock_lock *lock)
{
    struct rlk_claim claim = {.name = lock->name,
                              .slot = RLK_SLOT_EXCLUSIVE,
                              .owner = lock->owner,
                              .attempt = lock->attempt};
    struct rlk_step_call step = {.run = run_withdraw, .context = &claim};
    return rlk_do(lock->db, &step);
}

int rowlock_release(rowlock_lock *lock)
{
    int result = enter(lock, "release lock");
    if (result != ROWLOCK_OK)
        return result;
    if (lock->state == RLK_IDLE)
        return rlk_fail(lock->db, ROWLOCK_EMISUSE, "this handle does not hold the lock");
    if (lock->state == RLK_HOLDING && lock->depth > 1) {
        lock->depth--;
        return ROWLOCK_OK;
    }
    if (lock->state == RLK_GONE)
        result = rlk_fail(lock->db, ROWLOCK_LOST, "the grant was lost earlier");
    else
        result = release_grant(lock);
    if (result != ROWLOCK_OK && result != ROWLOCK_LOST)
        return result;
    if (--lock->depth == 0)
        hold_nothing(lock);
    return result;
}
