/* SPDX-License-Identifier: MIT
 * A grant as it is in the table: its key, its term by the local clock, and whether it is there. */
#include "lock/lock.h"
#include "core/ask.h"
#include "core/step_cells.h"

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

int rlk_verify(rowlock_db *db, const struct rlk_held *held, enum rlk_where where,
               int64_t not_after_us, struct rlk_verified *out)
{
    struct rlk_ask ask = {.where = where, .not_after_us = not_after_us};
    rlk_step_verify(&ask, held, out);
    int result = rlk_ask(db, &ask);
    out->found = ask.rows > 0;
    return result;
}

int rlk_last_grant(rowlock_db *db, const char *name, struct rlk_last *out)
{
    static const struct rlk_field fields[] = {RLK_FIELD(struct rlk_last, token),
                                              RLK_FIELD(struct rlk_last, granted_us)};
    struct rlk_ask ask = {.fields = fields, .out = out};
    ASK(&ask, LAST, rowlock_text(name));
    int result = rlk_ask(db, &ask);
    out->found = ask.rows > 0;
    return result;
}
