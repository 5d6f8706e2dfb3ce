/* SPDX-License-Identifier: MIT
 *
 * rowlock: change a whole table, row by row, while others use it.
 *
 * A walk reads the table in the order of its key, in chunks. Your function changes each row. The
 * walk writes the rows back under their versions (rowlock/versions.h).
 *
 *   - Each row is written once, also if the walk is killed and started again.
 *   - A chunk is one transaction: its rows, a checkpoint, and the guard of the walk's lock. So a
 *     killed walk goes on where it stopped, and two walks never run at once.
 *   - A row that somebody else changed between reading and writing is remembered in the checkpoint.
 *     It is read, computed and written again at the end, at last under a row lock.
 *   - Rows inserted behind the walk are not seen.
 *
 * Callbacks must return (rowlock.h).
 */
#ifndef ROWLOCK_WALK_H
#define ROWLOCK_WALK_H

#include <rowlock/versions.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rowlock_walk_report {
    /* sizeof(rowlock_walk_report) */
    size_t size;
    /* Rows seen, in earlier runs too. */
    int64_t rows;
    int64_t written;
    /* Rows that each() left as they are. */
    int64_t left;
    /* How often somebody else changed a row between reading and writing. */
    int64_t conflicts;
    /* Rows that could not be written in the end. See failed(). */
    int64_t failed;
    /* Rows expected in all. -1: more than 10,000,000, not counted. */
    int64_t total;
    /* How long this run has taken. */
    int64_t elapsed_ms;
    /* Expected until the end. -1: unknown. */
    int64_t left_ms;
    /* Rows a second in this run. */
    double rate;
    /* 1: an earlier run did not reach the end, and this run goes on from there. */
    int resumed;
    int reserved;
} rowlock_walk_report;

#define ROWLOCK_WALK_REPORT_INIT                                     \
    {                                                                \
        sizeof(rowlock_walk_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

typedef struct rowlock_walk_options {
    /* sizeof(rowlock_walk_options) */
    size_t size;
    /* Called after each chunk. so_far is valid until it returns. May be NULL. */
    void (*progress)(void *context, const rowlock_walk_report *so_far);
    /* A row that could not be written, also not later. May be NULL. row and text are valid until it
     * returns. row->values is NULL if the row could not be read again.
     *   - GONE: it was deleted meanwhile
     *   - VIOLATION, ESERVER: the database refused it, text says why
     *   - EINVAL: each() gave a value of a wrong kind */
    void (*failed)(void *context, const rowlock_row *row, int result, const char *text);
    /* Rows read and written at once. 0: 1,000. At most 10,000. */
    int chunk;
    /* 1: begin at the first row, also if there is a checkpoint. */
    int restart;
    /* For the lock, as in rowlock_acquire_options. */
    int64_t wait_ms;
    /* The lease of the lock. The walk renews it. 0: 30,000. */
    int64_t ttl_ms;
} rowlock_walk_options;

#define ROWLOCK_WALK_OPTIONS_INIT                                          \
    {                                                                      \
        sizeof(rowlock_walk_options), ROWLOCK_NIL, ROWLOCK_NIL, 0, 0, 0, 0 \
    }

/* rowlock_walk changes a whole table.
 *
 *   - name: that of the walk, of its lock and of its checkpoint
 *   - each() changes values, which begin as those of the row. It returns
 *       0        write the row
 *       1        leave it as it is
 *       below 0  stop. This is the result of the walk.
 *     A row that met a conflict is read and given again. All callbacks get the context.
 *   - The table is of a rowlock_db opened by URL, with rowlock's tables installed.
 *   - Its key columns are integers, texts, bytes or times.
 *   - A checkpoint is of one table (schema and name) and one key. With another table or key it is
 *     EINVAL. A table that was dropped and made again under the same name looks like the old one:
 *     use restart, or another name for the walk.
 *
 * How long texts and bytes live
 *   - What each() gets, row and values: until each() returns. Copy what you need later.
 *   - What each() puts into values: until each() is called again, or the walk returns. The walk
 *     copies it when each() has returned. So it must not be in variables of each() itself. A buffer
 *     in your context will do, or a static one. Each column needs one of its own. The next call may
 *     fill them again.
 *   - A text of row may be put into values: also that of another column, or of the key.
 *
 * Returns
 *   ROWLOCK_OK         all rows were seen, and the checkpoint is removed. report->failed may be
 *                      above 0.
 *   ROWLOCK_BUSY, TIMEOUT
 *                      another walk runs, or was killed and its lease is not over (ttl_ms)
 *   ROWLOCK_LOST       the lock was lost. Nothing was written after that.
 *   ROWLOCK_CANCELLED  rowlock_cancel() was called. The next walk goes on from here.
 *   ROWLOCK_EMISUSE    a callback has forked, and this is the child: nothing was ended. Also as in
 *                      rowlock.h.
 * Round trips  6 for each chunk, and 4 at the end
 * Example      examples/reprice.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_walk(rowlock_table *table, const char *name,
             int (*each)(void *context, const rowlock_row *row, rowlock_value *values),
             void *context, const rowlock_walk_options *options, rowlock_walk_report *report);

#ifdef __cplusplus
}
#endif
#endif
