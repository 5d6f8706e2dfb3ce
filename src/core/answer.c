/* SPDX-License-Identifier: MIT
 * Checks that a database's answer has the shape that the step has. All drivers use this check. */
#include "core/driver.h"

enum { PERMITS_LEAST = -1 };
/* Sums and differences of such times do not overflow. */
static const int64_t MOST_US = INT64_C(1) << 61;

static bool is_number(const rowlock_value *cell, int64_t least, int64_t most)
{
    return cell->kind == ROWLOCK_INT && cell->number >= least && cell->number <= most;
}

static inline bool fits(char letter, const rowlock_value *cell)
{
    /* A capital letter or the dot allows NULL. */
    if (cell->kind == ROWLOCK_NULL)
        return letter < 'a';
    switch (letter | ('a' - 'A')) {
    case 'i':
        return cell->kind == ROWLOCK_INT;
    case 'n':
        return is_number(cell, PERMITS_LEAST, INT32_MAX);
    case 'm':
        return is_number(cell, 0, MOST_US);
    case 'b':
        return cell->kind == ROWLOCK_BOOL || cell->kind == ROWLOCK_INT;
    case 't':
        return cell->kind == ROWLOCK_TEXT || cell->kind == ROWLOCK_BYTES;
    default:
        return letter == '.';
    }
}

bool rlk_cell_fits(char letter, const rowlock_value *cell)
{
    return fits(letter, cell);
}

bool rlk_cells_fit(const char *letters, const rowlock_value *cells, size_t count)
{
    size_t i = 0;
    for (; *letters; letters++) {
        if (*letters == '|' && i == count)
            return true;
        if (*letters == '|')
            continue;
        if (i == count || !fits(*letters, &cells[i]))
            return false;
        i++;
    }
    return i == count;
}

enum rlk_class rlk_diag_misfit(struct rlk_call *call, enum rlk_step step)
{
    return rlk_refuse(
        call, rlk_steps[step].is & RLK_READS ? RLK_SCHEMA : RLK_MISFIT,
        "the answer has another shape than this rowlock expects: routines of another "
        "version (`rowlock check` tells), or a row with an impossible token, time or text "
        "(look into the tables)");
}
