/* SPDX-License-Identifier: MIT
 * A walk, for walk.c and checkpoint.c. */
#ifndef RLK_WALK_H
#define RLK_WALK_H

#include "rows/rows.h"

/* A row that could not be written. The caller is told after the commit. */
struct rlk_failed {
    rowlock_row row;
    int result;
    /* Where its text begins in walk.reasons. */
    size_t text;
};

struct walk {
    rowlock_table *t;
    rowlock_db *db;
    const char *name;
    int (*each)(void *context, const rowlock_row *row, rowlock_value *values);
    void *context;
    rowlock_walk_options options;
    /* As the checkpoint has it, or will have it after this chunk. */
    rowlock_walk_report report;
    rowlock_lock *lock;
    int64_t began_us, rows_before;
    /* The number of the checkpoint. It grows by 1 with each save. */
    int64_t step;
    /* The key that the walk has come to. No row: it has not begun. */
    struct rlk_page position;
    /* Keys of rows that met a conflict. */
    struct rlk_page pending;

    /* The chunk in progress: its rows as read, their new values, and the changes. */
    struct rlk_page rows;
    struct rlk_page values;
    rowlock_change *changes;
    /* The row of each change. */
    size_t *row_of;
    size_t count;
    /* What each() returned to stop the walk. 0: it did not stop it. */
    int stopped_with;

    /* Rows of this chunk that failed. */
    struct rlk_failed *failed;
    size_t failed_count;
    struct rlk_buffer reasons;
};

/* checkpoint.c */
/* Runs in a transaction of its own. If an earlier transaction of ours is still ending, waits for
 * its end first. */
int rlk_checkpoint_load(struct walk *w, bool *found);
/* Runs in the transaction of a chunk, and locks the checkpoint. LOST: another process has saved a
 * checkpoint since. */
int rlk_checkpoint_check(struct walk *w);
/* Saves w->report with the next number. */
int rlk_checkpoint_save(struct walk *w, const struct rlk_page *position,
                        const struct rlk_page *pending);
int rlk_checkpoint_forget(struct walk *w);

#endif
