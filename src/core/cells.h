/* SPDX-License-Identifier: MIT
 * For the files that send steps and read their cells. */
#ifndef RLK_CELLS_H
#define RLK_CELLS_H

#include "core/core.h"

static inline enum rlk_class send(rowlock_db *db, struct rlk_call *call, enum rlk_step step,
                                  const rowlock_value *in, rlk_cells_fn *read, void *out)
{
    struct rlk_sending s = {.step = step, .in = in, .read = read, .out = out};
    return rlk_send(db, call, &s);
}

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
/* Reads all cells of RLK_ROW. The clock is not one of them. */
void rlk_row_from_cells(const rowlock_value *cells, struct rlk_row *out);
/* Sends a step that changes one thing, or finds nothing to change. A dialect answers with a row, or
 * with the number of rows changed. */
enum rlk_class rlk_send_change(rowlock_db *db, struct rlk_call *call, enum rlk_step step,
                               const rowlock_value *in, const char *wakes, bool *done);
/* The parts of acquiring many locks one after the other. The first finds what is in the way of one
 * lock. Its outcome is IN_FLIGHT if nothing is. */
enum rlk_class rlk_step_look(rowlock_db *db, struct rlk_call *call,
                             const struct rlk_request *request, struct rlk_grant *out);
/* The second is the try itself. */
enum rlk_class rlk_step_try(rowlock_db *db, struct rlk_call *call,
                            const struct rlk_request *request, struct rlk_grant *out);
/* The third tells the driver of the grant, after the commit. */
void rlk_step_note_taken(rowlock_db *db, struct rlk_call *call, const struct rlk_request *request,
                         int64_t token);
/* Tells the driver that a grant has ended, or lets others in beside it. */
void rlk_note_gone(rowlock_db *db, struct rlk_call *call, const char *name, int64_t token);
/* Makes the row of a grant whose answer has only the token and the clock. The rest is from the
 * request. */
void rlk_row_of_request(const struct rlk_request *request, int64_t token, int64_t now_us,
                        struct rlk_row *row);

#endif
