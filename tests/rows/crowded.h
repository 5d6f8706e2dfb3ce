/* SPDX-License-Identifier: MIT
 *
 * Many processes on the versions of one table, on each database the same: what they were told they changed
 * is what the table holds in the end, row by row, and nobody has met a deadlock outside of a transaction of
 * his own.
 */
#ifndef CROWDED_H
#define CROWDED_H

#include "raw.h"

/* How one who has a connection of his own begins transactions. */
struct crowded_way {
    const char *setup; /* SQL for a new session, or NULL */
    const char *begin;
};

struct crowded {
    const char *database;
    const struct raw *raw;
    const struct crowded_way ways[3]; /* taken in turn; ends with a NULL begin */
    const char *const conflicts[4]; /* in the text of an error of the database's; ends with NULL */
    const char *prepare, *restore; /* SQL around all of it, or NULL */
    const char *deadlocks; /* SQL: how many the server has met; NULL: it does not tell */
    const char *begin_to_write; /* that no other can come between reading and writing */
    int rows; /* of the table */
    int rounds; /* of each process that sends batches */
};

/* Two batches of the same rows in opposite order, a thousand times at once. */
void opposite_run(const struct crowded *crowded, const char *url);

#endif
