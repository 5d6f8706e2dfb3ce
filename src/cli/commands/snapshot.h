/* SPDX-License-Identifier: MIT
 *
 * The grants and waiters in the tables at one moment, read with plain reads.
 */
#ifndef ROWLOCK_CLI_SNAPSHOT_H
#define ROWLOCK_CLI_SNAPSHOT_H

#include <rowlock/admin.h>

#include <stddef.h>
#include <stdint.h>

struct snapshot {
    /* In the order of names. */
    rowlock_grant *grants;
    size_t grant_count;
    size_t grant_room;
    /* In the order of names and tickets. */
    rowlock_waiter *waiters;
    size_t waiter_count;
    size_t waiter_room;
    /* now_ms() of the latest read. */
    int64_t taken_ms;
};

/* Read the rows of one name, or (NULL) of all. Return the library's result. */
int snapshot_grants(struct snapshot *snapshot, rowlock_db *db, const char *name);
int snapshot_waiters(struct snapshot *snapshot, rowlock_db *db, const char *name);

/* Reads both. */
int snapshot_take(struct snapshot *snapshot, rowlock_db *db, const char *name);

/* The number of each whose leases run. */
size_t snapshot_held(const struct snapshot *snapshot);
size_t snapshot_waiting(const struct snapshot *snapshot);

void snapshot_free(struct snapshot *snapshot);

#endif
