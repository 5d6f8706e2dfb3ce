/* SPDX-License-Identifier: MIT
 * A grant as it is in the table: its key, its term by the local clock, and whether it is there. */
#include "lock/lock.h"
#include "core/ask.h"
#include "core/core.h"

#include <string.h>

void rlk_grant_from_row(rowlock_grant *out, const struct rlk_row *row)
{
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    out->token = row->token;
    out->acquired_us = row->acquired_us;
    out->expires_us = row->expires_us;
    out->remaining_ms = (row->expires_us - row->now_us) / 1000;
    /* A lease that has expired by less than a millisecond must look expired too. */
    if (out->remaining_ms == 0 && row->expires_us <= row->now_us)
        out->remaining_ms = -1;
    out->ttl_ms = row->ttl_us / 1000;
    out->renewals = row->renewals;
    out->pid = row->pid;
    out->permits = row->permits;
    memcpy(out->name, row->name, sizeof row->name);
    memcpy(out->owner, row->owner, sizeof row->owner);
    memcpy(out->host, row->host, sizeof row->host);
    memcpy(out->program, row->program, sizeof row->program);
    memcpy(out->note, row->note, sizeof row->note);
}

struct rlk_term rlk_term_of(int64_t sent_us, int64_t expires_us, int64_t now_us, int64_t most_us)
{
    int64_t left_us = expires_us - now_us;
    if (most_us && left_us > most_us)
        left_us = most_us;
    return (struct rlk_term){
        .ttl_us = left_us, .expires_us = expires_us, .deadline_us = sent_us + left_us};
}

struct rlk_held rlk_held_of(const rowlock_lock *lock)
{
    return (struct rlk_held){.name = lock->name,
                             .slot = rlk_slot(lock->permits, lock->token),
                             .owner = lock->owner,
                             .token = lock->token};
}

struct verifying {
    const struct rlk_held *held;
    struct rlk_verified *out;
};

static enum rlk_class run_verify(rowlock_db *db, struct rlk_call *call, void *context)
{
    const struct verifying *v = context;
    return rlk_step_verify(db, call, v->held, v->out);
}

int rlk_verify(rowlock_db *db, const struct rlk_held *held, enum rlk_where where,
               int64_t not_after_us, struct rlk_verified *out)
{
    struct verifying v = {.held = held, .out = out};
    struct rlk_step_call step = {
        .run = run_verify, .context = &v, .where = where, .not_after_us = not_after_us};
    return rlk_do(db, &step);
}

struct looking {
    const char *name;
    bool *found;
    int64_t *token, *granted_us;
};

static enum rlk_class run_last(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct looking *l = context;
    return rlk_step_last(db, call, l->name, l->found, l->token, l->granted_us);
}

int rlk_last_grant(rowlock_db *db, const char *name, bool *found, int64_t *token,
                   int64_t *granted_us)
{
    struct looking l = {.name = name, .found = found, .token = token, .granted_us = granted_us};
    struct rlk_step_call step = {.run = run_last, .context = &l};
    return rlk_do(db, &step);
}
