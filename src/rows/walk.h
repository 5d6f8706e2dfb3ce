/* SPDX-License-Identifier: MIT
 * A walk, for walk.c and checkpoint.c. */
#ifndef RLK_WALK_H
#define RLK_WALK_H

#include "rows/rows.h"

/* A row that could not be written, as it will be told of when that is sure. */
struct rlk_failed {
    rowlock_row row;
    int result;
    size_t text; /* where it begins in walk.reasons */
};

struct walk {
    rowlock_table *t;
    rowlock_db *db;
    rowlock_walk_options options;
    rowlock_walk_report report; /* as it stands in the checkpoint, or will after this chunk */
    rowlock_lock *lock;
    int64_t began_us, rows_before;
    int64_t step; /* of the checkpoint: one more with each that is saved */
    struct rlk_page position; /* the last key walked by; no row: none yet */
    struct rlk_page pending; /* keys of rows that met a conflict */
    struct rlk_page rows; /* of this chunk, as they were read */
    struct rlk_page values; /* that they shall have */
    rowlock_change *changes; /* of this chunk */
    size_t *row_of; /* of each change, its row */
    size_t count;
    int stopped_with; /* what each() answered to stop; 0: it did not */

    struct rlk_failed *failed; /* of this chunk */
    size_t failed_count;
    struct rlk_buffer reasons;
};

/* checkpoint.c. In a transaction of its own: one of ours that may still be ending must have
 * ended before. */
int rlk_checkpoint_load(struct walk *w, bool *found);
/* In the transaction of a chunk: is it still where this process has left it? Locks it. */
int rlk_checkpoint_check(struct walk *w);
/* As w->report says, one step further. */
int rlk_checkpoint_save(struct walk *w, const struct rlk_page *position,
                        const struct rlk_page *pending);
int rlk_checkpoint_forget(struct walk *w);

#endif
