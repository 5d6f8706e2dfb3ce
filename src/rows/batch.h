/* SPDX-License-Identifier: MIT
 * A batch of changes, for change.c and apply.c. */
#ifndef RLK_BATCH_H
#define RLK_BATCH_H

#include "rows/rows.h"

struct batch {
    rowlock_table *t;
    enum rlk_op op;
    rowlock_change *changes;
    size_t count;
    rowlock_change_options options;
    size_t *order; /* of the keys */
    unsigned char *marks; /* what the statement for a chunk marked; NULL: it tells by itself */
    rowlock_kind *kinds; /* of the parameters of the caller's SQL; NULL: there are none */
    int64_t first;
    bool careful; /* each statement in a savepoint, so that a row that is refused can be found */
    /* of the first row, in the caller's order, that was a violation; row -1: none */
    rowlock_error bad;
    /* the chunk that is being done */
    const size_t *rows;
    size_t n;
    char tag[RLK_TAG_LENGTH + 1];
    rowlock_change *leftover; /* that is changed by itself */
    size_t told; /* how many rows it is known to have changed */
    size_t made; /* how many it made, where it says so: some perhaps under other keys */
    bool uncertain; /* an earlier sending of it may have been carried out */
    bool unnamed; /* it changed some, and has not said which */
    bool marked; /* marks are known */
    bool unlocked; /* rows are looked at without a lock, after that with one found none */
    bool odd; /* a row has a version that is no integer of 64 bits */
    bool misfit; /* the answer is none to what was asked */
};

static inline bool gives_values(const struct batch *b)
{
    return b->op == RLK_INSERT || b->op == RLK_UPDATE;
}

/* In marks. */
enum { MARKED = 1, TAKEN = 2 };

/* The statement marks the rows that it has changed. */
static inline bool gives_marks(const struct batch *b)
{
    return b->op != RLK_EXPECT && b->op != RLK_INSERT;
}

/* For the time that a chunk takes: nothing is known yet; and found as it should have been
 * before. */
enum { UNTOLD = ROWLOCK_PENDING, PARADOX = ROWLOCK_NONE };

/* change.c: in the order of their keys, so that two batches never wait for each other. */
void rlk_sort_rows(struct batch *b);

/* apply.c: one row; and the rows of a chunk in one statement, each with its result. */
int rlk_change_row(struct batch *b, rowlock_change *change);
int rlk_change_chunk(struct batch *b);

#endif
