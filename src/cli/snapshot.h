/* SPDX-License-Identifier: MIT
 *
 * What stands in the tables at one moment, read with plain reads: grants, and those who stand in
 * line.
 */
#ifndef ROWLOCK_CLI_SNAPSHOT_H
#define ROWLOCK_CLI_SNAPSHOT_H

#include <rowlock/admin.h>

#include <stddef.h>
#include <stdint.h>

struct snapshot {
    rowlock_grant *grants; /* in the order of names */
    size_t grant_count;
    size_t grant_room;
    rowlock_waiter *waiters; /* in the order of names and tickets */
    size_t waiter_count;
    size_t waiter_room;
    int64_t taken_ms; /* now_ms() of the latest reading */
};

/* Read what stands there, of one name or (NULL) of all. Return the library's result. */
int snapshot_grants(struct snapshot *snapshot, rowlock_db *db, const char *name);
int snapshot_waiters(struct snapshot *snapshot, rowlock_db *db, const char *name);

/* Both. */
int snapshot_take(struct snapshot *snapshot, rowlock_db *db, const char *name);

/* How many of each are there whose leases run. */
size_t snapshot_held(const struct snapshot *snapshot);
size_t snapshot_waiting(const struct snapshot *snapshot);

void snapshot_free(struct snapshot *snapshot);

#endif
