/* SPDX-License-Identifier: MIT
 *
 * Collects the rows that the library reports.
 */
#include "cli/commands/snapshot.h"

#include "cli/cli.h"
#include "cli/run/signals.h"

#include <stdlib.h>

static int collect_grant(void *context, const rowlock_grant *grant)
{
    struct snapshot *s = context;
    if (s->grant_count == s->grant_room) {
        s->grant_room = s->grant_room ? 2 * s->grant_room : 16;
        s->grants = must_have(realloc(s->grants, s->grant_room * sizeof *s->grants));
    }
    s->grants[s->grant_count++] = *grant;
    return 0;
}

static int collect_waiter(void *context, const rowlock_waiter *waiter)
{
    struct snapshot *s = context;
    if (s->waiter_count == s->waiter_room) {
        s->waiter_room = s->waiter_room ? 2 * s->waiter_room : 16;
        s->waiters = must_have(realloc(s->waiters, s->waiter_room * sizeof *s->waiters));
    }
    s->waiters[s->waiter_count++] = *waiter;
    return 0;
}

int snapshot_grants(struct snapshot *snapshot, rowlock_db *db, const char *name)
{
    snapshot->grant_count = 0;
    int result = rowlock_list(db, name, collect_grant, snapshot);
    snapshot->taken_ms = now_ms();
    return result;
}

int snapshot_waiters(struct snapshot *snapshot, rowlock_db *db, const char *name)
{
    snapshot->waiter_count = 0;
    int result = rowlock_list_waiters(db, name, collect_waiter, snapshot);
    snapshot->taken_ms = now_ms();
    return result;
}

int snapshot_take(struct snapshot *snapshot, rowlock_db *db, const char *name)
{
    int result = snapshot_grants(snapshot, db, name);
    return result == ROWLOCK_OK ? snapshot_waiters(snapshot, db, name) : result;
}

size_t snapshot_held(const struct snapshot *snapshot)
{
    size_t count = 0;
    for (size_t i = 0; i < snapshot->grant_count; i++)
        count += snapshot->grants[i].remaining_ms >= 0;
    return count;
}

size_t snapshot_waiting(const struct snapshot *snapshot)
{
    size_t count = 0;
    for (size_t i = 0; i < snapshot->waiter_count; i++)
        count += snapshot->waiters[i].position > 0;
    return count;
}

void snapshot_free(struct snapshot *snapshot)
{
    free(snapshot->grants);
    free(snapshot->waiters);
    *snapshot = (struct snapshot){0};
}
