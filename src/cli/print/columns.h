/* SPDX-License-Identifier: MIT
 *
 * Texts in columns under headings, as `list` and `watch` print them.
 */
#ifndef ROWLOCK_CLI_COLUMNS_H
#define ROWLOCK_CLI_COLUMNS_H

#include "cli/commands/snapshot.h"

#include <stddef.h>

struct table {
    const char *const *headings;
    size_t columns;
    /* Of what has been printed. They only grow. */
    int *widths;
    /* Of the page that is being collected, row by row. */
    char **cells;
    size_t rows;
};

/* headings must outlive the table. */
void table_begin(struct table *table, const char *const *headings, size_t columns);

/* A new row. Fill in all its cells; the table frees them. Rows are printed in pages, so a long
 * table takes no more memory than a short one. */
char **table_row(struct table *table);

/* Prints the rest, and frees the table's memory. */
void table_end(struct table *table);

/* Tables of grants and of waiters. Add the rows one by one. */
void table_begin_grants(struct table *table);
void table_begin_waiters(struct table *table);
void table_add_grant(struct table *table, const rowlock_grant *grant);
void table_add_waiter(struct table *table, const rowlock_waiter *waiter);

/* All grants of a snapshot, or all its waiters. */
void table_of_grants(const struct snapshot *snapshot);
void table_of_waiters(const struct snapshot *snapshot);

/* "4.2s", or "expired 3.0s ago" if remaining_ms is negative. */
void lease_text(int64_t remaining_ms, char *text, size_t size);

#endif
