/* SPDX-License-Identifier: MIT
 * For the files that say what each step takes and answers. */
#ifndef RLK_CELLS_H
#define RLK_CELLS_H

#include "seam/seam.h"

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
/* All but the clock, which stands before it or behind it. */
void rlk_row_from_cells(const rowlock_value *cells, struct rlk_row *out);
/* A step that does one thing or finds nothing to do it to. A dialect answers with a row, or with
 * a number of rows changed. */
enum rlk_class rlk_send_change(rowlock_db *db, struct rlk_call *call, enum rlk_step step,
                               const rowlock_value *in, const char *wakes, bool *done);
/* The parts of acquiring that are sent one lock after the other: what is in the way, IN_FLIGHT
 * standing for nothing; the try itself; and what the driver is told of a grant. */
enum rlk_class rlk_step_look(rowlock_db *db, struct rlk_call *call,
                             const struct rlk_request *request, struct rlk_grant *out);
enum rlk_class rlk_step_try(rowlock_db *db, struct rlk_call *call,
                            const struct rlk_request *request, struct rlk_grant *out);
void rlk_step_note_taken(rowlock_db *db, struct rlk_call *call, const struct rlk_request *request,
                         int64_t token);
void rlk_note_gone(rowlock_db *db, struct rlk_call *call, const char *name, int64_t token);
/* The row of a grant of which only token and clock were answered: the rest is what was asked
 * for. */
void rlk_row_of_request(const struct rlk_request *request, int64_t token, int64_t now_us,
                        struct rlk_row *row);

#endif
