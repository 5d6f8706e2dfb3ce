/* SPDX-License-Identifier: MIT
 * A batch of changes, for change.c and apply.c. */
#ifndef RLK_CHANGE_BATCH_H
#define RLK_CHANGE_BATCH_H

#include "rows/rows.h"

struct batch {
    rowlock_table *t;
    enum rlk_op op;
    rowlock_change *changes;
    size_t count;
    rowlock_change_options options;
    /* Indexes of changes, in the order of their keys. */
    size_t *order;
    /* What the statement of a chunk has marked, a byte for each row. NULL: the statement answers
     * which rows it changed. */
    unsigned char *marks;
    /* The kinds of the parameters of the caller's SQL. NULL: the table has no SQL of the caller. */
    rowlock_kind *kinds;
    /* The version of new rows. */
    int64_t first;
    /* Each statement runs in a savepoint, so that a refused row can be found. */
    bool careful;
    /* What the first refused row in the caller's order broke. row -1: none yet. */
    rowlock_error violation;

    /* The chunk in progress. */
    const size_t *rows;
    size_t n;
    char tag[RLK_TAG_LENGTH + 1];
    /* A row that is changed alone, because nothing explained its result. */
    rowlock_change *leftover;
    /* How many rows the statement is known to have changed. */
    size_t known;
    /* How many rows an insert made, if the statement says so. A trigger may have given some of
     * them other keys. */
    size_t inserted;
    /* An earlier attempt of the statement may have been carried out. */
    bool uncertain;
    /* The statement changed some rows, and has not said which. */
    bool unnamed;
    /* marks holds an answer. */
    bool marked;
    /* This look takes no row locks. It comes after a look with locks that missed some rows. */
    bool unlocked;
    /* The last statement about the rows failed. */
    bool refused;
    /* A row has a version that is not an integer of 64 bits. */
    bool bad_version;
    /* The answer does not fit the question. */
    bool misfit;
};

static inline bool gives_values(const struct batch *b)
{
    return b->op == RLK_INSERT || b->op == RLK_UPDATE;
}

/* Bits of marks: the statement marked the row; a row equal to this one took the change. */
enum { MARKED = 1, TAKEN = 2 };

/* The statement marks the rows that it has changed. */
static inline bool gives_marks(const struct batch *b)
{
    return b->op != RLK_EXPECT && b->op != RLK_INSERT;
}

/* Results of a row while its chunk is in progress. UNKNOWN: nothing is known yet. PARADOX: the row
 * was not changed, but the second look finds what the change expected. */
enum { UNKNOWN = ROWLOCK_PENDING, PARADOX = ROWLOCK_NONE };

/* change.c: sorts by key, so that two batches lock rows in the same order. */
void rlk_sort_rows(struct batch *b);
/* How many rows, from this one on, go into one statement: options.chunk, or fewer if their values
 * are long. */
size_t rlk_chunk_from(const struct batch *b, size_t at);

/* apply.c: one row, and the rows of a chunk in one statement. Each row gets its result. */
int rlk_change_row(struct batch *b, rowlock_change *change);
int rlk_change_chunk(struct batch *b);

#endif
