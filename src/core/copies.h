/* SPDX-License-Identifier: MIT
 * Copies of values, for a step or an answer that outlives its caller. */
#ifndef RLK_COPIES_H
#define RLK_COPIES_H

#include "core/driver.h"

enum { RLK_COPIES_MOST = 24 };
struct rlk_copies {
    rowlock_value value[RLK_COPIES_MOST];
    size_t count;
    /* The bytes of the values. NULL: they have none. */
    char *texts;
};

/* The value points to bytes. */
bool rlk_has_bytes(const rowlock_value *value);
/* False: out of memory, or they are more than RLK_COPIES_MOST. Nothing was copied then. */
bool rlk_copies_take(struct rlk_copies *out, const rowlock_value *values, size_t count);
void rlk_copies_clear(struct rlk_copies *copies);

#endif
