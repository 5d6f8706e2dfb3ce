/* SPDX-License-Identifier: MIT
 * When a lease is due, which leases go together, and what their ends mean. */
#include "lock/keeping.h"

enum { SHORTEST_RETRY_US = 20000, LONGEST_RETRY_US = 1000000 };

/* Somewhat before a third of the lease. Jitter spreads keepers that began at the same moment. */
static int64_t next_due(const struct rlk_deadline *deadline, struct rlk_waiting *chance)
{
    int64_t ttl_us = rlk_deadline_reliable_us(deadline, deadline->ttl_us);
    int64_t third = ttl_us / 3;
    return deadline->deadline_us - ttl_us + third - rlk_jitter(chance, third / 10 + 1);
}

/* After a failure: a twentieth of the lease, less jitter. */
static int64_t retry_due(const struct rlk_deadline *deadline, int64_t now_us,
                         struct rlk_waiting *chance)
{
    int64_t pause = rlk_between(SHORTEST_RETRY_US, deadline->ttl_us / 20, LONGEST_RETRY_US);
    return now_us + pause / 2 + rlk_jitter(chance, pause / 2);
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

/* ---- what comes next */

/* Has its state changed? It also finds out when it may change, or when the lease is due. */
static bool look(struct rlk_keeping *k, struct rlk_entry *p, int64_t now_us,
                 struct rlk_waiting *chance)
{
    if (!has_lease(p) && !(p->active && p->lock && p->reported != ROWLOCK_STATE_LOST))
        return false;
    struct rlk_deadline *deadline = &p->lock->deadline;
    int64_t next_us;
    bool allowed = now_us < allowed_until(p);
    deadline->failing = p->failed || !allowed;
    rowlock_state state = rlk_deadline_state(deadline, now_us, &next_us);
    deadline->over = state == ROWLOCK_STATE_LOST;
    k->until_us = rlk_least(k->until_us, next_us);
    if (allowed && !deadline->over)
        k->until_us = rlk_least(k->until_us, rlk_least(p->due_us, allowed_until(p)));
    /* rowlock_progress() does not wake the thread. */
    else if (p->options.progress_ms > 0 && !deadline->over)
        k->until_us = rlk_least(k->until_us, retry_due(deadline, now_us, chance));
    bool changed = state != p->reported;
    p->reported = state;
    return changed;
}

/* Leases that are due soon go with those that are due. So leases acquired one by one are renewed
 * together from their second renewal on. */
static void collect_due(struct rlk_keeping *k, int64_t now_us)
{
    bool any = false;
    for (struct rlk_entry *p = k->entries; p && !any; p = p->next)
        any = may_renew(p, now_us) && p->due_us <= now_us;
    k->count = 0;
    for (struct rlk_entry *p = k->entries; any && p && k->count < RLK_BATCH_MAX; p = p->next)
        if (may_renew(p, now_us) && p->due_us <= now_us + p->lock->deadline.ttl_us / 12)
            k->batch[k->count++] = p;
}

static void prepare_batch(struct rlk_keeping *k, int64_t now_us)
{
    k->not_after_us = k->shortest_us = INT64_MAX;
    for (struct rlk_entry *p = k->entries; p; p = p->next) {
        if (!has_lease(p))
            continue;
        k->not_after_us = rlk_least(k->not_after_us, rlk_deadline_lost_us(&p->lock->deadline));
        k->shortest_us = rlk_least(k->shortest_us, p->lock->deadline.ttl_us);
    }
    for (size_t i = 0; i < k->count; i++) {
        struct rlk_entry *p = k->batch[i];
        p->in_flight = p->under_way = true;
        p->serial++;
        p->sent_us = now_us;
        p->sent_ttl_us = p->lock->deadline.ttl_us;
        k->leases[i] = (struct rlk_lease){.held = {.name = p->name,
                                                   .slot = rlk_slot(p->lock->permits, p->token),
                                                   .owner = p->owner,
                                                   .token = p->token},
                                          .ttl_us = p->sent_ttl_us};
    }
}

enum rlk_duty rlk_keeping_next(struct rlk_keeping *k, int64_t now_us, struct rlk_waiting *chance)
{
    struct rlk_entry *p = k->told ? k->told->next : k->entries;
    if (!k->told)
        k->until_us = INT64_MAX;
    while (p && !look(k, p, now_us, chance))
        p = p->next;
    /* Other states may change while it is told, so all are looked at again before a rest. */
    if ((k->told = p) != NULL) {
        k->until_us = 0;
        return RLK_TELL;
    }
    collect_due(k, now_us);
    if (k->count == 0)
        return RLK_REST;
    prepare_batch(k, now_us);
    return RLK_RENEW;
}

/* ---- the end of a renewal */

bool rlk_keeping_end(struct rlk_keeping *k, size_t i, enum rlk_fate fate,
                     const struct rlk_renewed *renewed, int64_t now_us, struct rlk_waiting *chance)
{
    struct rlk_entry *p = k->batch[i];
    const struct rlk_lease *lease = &k->leases[i];
    p->under_way = false;
    p->serial++;
    if (renewed->was_uncertain && p->lock && p->token == lease->held.token)
        rlk_deadline_uncertain(&p->lock->deadline, lease->ttl_us);
    if (!p->in_flight || !p->lock)
        return false;
    struct rlk_deadline *deadline = &p->lock->deadline;
    p->in_flight = false;
    p->failed = fate == RLK_FAILED || lease->at_risk;
    if (fate == RLK_GONE_FOR_GOOD)
        deadline->over = true;
    if (fate == RLK_RENEWED) {
        struct rlk_term term = {.ttl_us = lease->ttl_us,
                                .expires_us = renewed->server_us + lease->ttl_us,
                                .deadline_us = renewed->sent_us + lease->ttl_us};
        rlk_deadline_limit(deadline, &term);
        rlk_deadline_set(deadline, &term);
    }
    p->due_us =
        fate == RLK_RENEWED ? next_due(deadline, chance) : retry_due(deadline, now_us, chance);
    return true;
}

int64_t rlk_keeping_begin(struct rlk_entry *entry, int64_t now_us, struct rlk_waiting *chance)
{
    rowlock_lock *lock = entry->lock;
    int64_t max_hold_ms = entry->options.max_hold_ms;
    /* A new grant. */
    if (entry->token != lock->token) {
        entry->under_way = false;
        if (max_hold_ms)
            entry->hold_until_us = now_us + max_hold_ms * 1000;
    }
    entry->active = lock->deadline.has_keeper = true;
    entry->failed = lock->deadline.failing = entry->in_flight = false;
    entry->token = lock->token;
    entry->reported = ROWLOCK_STATE_HELD;
    lock->progress_us = now_us;
    entry->due_us = next_due(&lock->deadline, chance);
    return rlk_least(entry->due_us, allowed_until(entry));
}
