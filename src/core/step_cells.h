/* SPDX-License-Identifier: MIT
 * For the files that make asks of steps and read their cells. */
#ifndef RLK_STEP_CELLS_H
#define RLK_STEP_CELLS_H

#include "core/core.h"

/* Makes an ask a step with these values. */
#define ASK(ask, id, ...)                                                    \
    do {                                                                     \
        const rowlock_value given[] = {__VA_ARGS__};                         \
        rlk_fill(ask, RLK_STEP_##id, given, sizeof given / sizeof given[0]); \
    } while (0)
void rlk_fill(struct rlk_ask *ask, enum rlk_step step, const rowlock_value *values, size_t count);
/* Where the rows of its answer go. */
static inline void reads(struct rlk_ask *ask, rlk_cells_fn *read, void *out)
{
    ask->read = read;
    ask->out = out;
}
static inline void fills(struct rlk_ask *ask, const struct rlk_field *fields, void *out)
{
    ask->fields = fields;
    ask->out = out;
}
/* The answer says whether something was changed: for rlk_has_changed(). A dialect answers with a
 * row, or with the number of rows changed. */
void rlk_reads_answer(struct rlk_ask *ask);

static inline void copy(const rowlock_value *cell, char *out, size_t cap)
{
    bool none = cell->kind == ROWLOCK_NULL;
    rlk_copy_text(out, cap, none ? "" : cell->text, none ? 0 : cell->length);
}

#define COPY(cell, array) copy(cell, array, sizeof(array))

static inline bool is_null(const rowlock_value *cell)
{
    return cell->kind == ROWLOCK_NULL;
}

/* steps.c */
/* Of struct rlk_row: the cells of RLK_ROW, and the clock. */
extern const struct rlk_field rlk_row_fields[];
/* Of an answer whose only cell is a number. */
extern const struct rlk_field rlk_number_field[];
/* The parts of acquiring many locks one after the other. The first finds what is in the way of one
 * lock. Its outcome is IN_FLIGHT if nothing is. */
void rlk_step_look(struct rlk_ask *ask, struct rlk_trying *t);
/* The second is the try itself. */
void rlk_step_try(struct rlk_ask *ask, struct rlk_trying *t);
/* Makes the row of a grant whose answer has only the token and the clock. The rest is from the
 * request. */
void rlk_row_of_request(const struct rlk_request *request, int64_t token, int64_t now_us,
                        struct rlk_row *row);

#endif
