/* SPDX-License-Identifier: MIT
 *
 * Texts in columns under headings, as `list` and `watch` print them.
 */
#ifndef ROWLOCK_CLI_TABLE_H
#define ROWLOCK_CLI_TABLE_H

#include "snapshot.h"

#include <stddef.h>

struct table {
    const char *const *headings;
    size_t columns;
    char **cells; /* row by row */
    size_t rows;
};

/* headings must outlive the table. */
void table_begin(struct table *table, const char *const *headings, size_t columns);

/* A new row, all of whose cells are to be filled in; they are freed with the table. */
char **table_row(struct table *table);

/* Prints it and frees what it holds. */
void table_print(struct table *table);

/* The whole of a snapshot's grants, or of its waiters. */
void table_of_grants(const struct snapshot *snapshot);
void table_of_waiters(const struct snapshot *snapshot);

/* "4.2s", or "expired 3.0s ago" if it is negative. */
void lease_text(int64_t remaining_ms, char *text, size_t size);

#endif
