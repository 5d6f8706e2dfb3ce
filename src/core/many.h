/* SPDX-License-Identifier: MIT
 * The values of a step for many locks: rows that were added, and values that all rows share. */
#ifndef RLK_MANY_H
#define RLK_MANY_H

#include "base/buffer.h"
#include "core/core.h"

enum { RLK_MANY_COLUMNS = RLK_MARKERS - 2 };
struct rlk_many {
    /* Values of one row, and values that all rows share. */
    size_t width, shared;
    /* The columns, the shared values, the pack, and the count of rows. */
    rowlock_value in[RLK_MARKERS];
    struct rlk_buffer part[RLK_MANY_COLUMNS];
    /* Rows added so far. */
    size_t count;
    /* out: rows changed. */
    int64_t changed;
};

/* Adds a row of m->width values: texts, and numbers that are not NULL. */
void rlk_many_add(struct rlk_many *m, const rowlock_value *row, enum rlk_packing packing);
/* Sends the step and frees the rows, for each class. Without rows m->in has the values of a single
 * one. */
enum rlk_class rlk_many_send(rowlock_db *db, struct rlk_call *call, enum rlk_step step,
                             struct rlk_many *m, rlk_cells_fn *read, void *out);

#endif
