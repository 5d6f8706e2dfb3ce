/* SPDX-License-Identifier: MIT
 * Copies of values. */
#include "core/port.h"

#include <string.h>

bool rlk_has_bytes(const rowlock_value *value)
{
    return value->kind == ROWLOCK_TEXT || value->kind == ROWLOCK_BYTES ||
           value->kind == ROWLOCK_DECIMAL || value->kind == ROWLOCK_TIME;
}

bool rlk_copies_take(struct rlk_copies *out, const rowlock_value *values, size_t count)
{
    size_t length = 0;
    out->texts = NULL;
    out->count = 0;
    if (count > RLK_COPIES_MOST)
        return false;
    for (size_t i = 0; i < count; i++)
        length += rlk_has_bytes(&values[i]) ? values[i].length + 1 : 0;
    if (length > 0 && !(out->texts = rlk_alloc(length)))
        return false;
    char *at = out->texts;
    for (size_t i = 0; i < count; i++) {
        out->value[i] = values[i];
        if (!at || !rlk_has_bytes(&values[i]))
            continue;
        memcpy(at, values[i].text, values[i].length);
        out->value[i].text = at;
        at += values[i].length + 1;
    }
    out->count = count;
    return true;
}

void rlk_copies_clear(struct rlk_copies *copies)
{
    rlk_free(copies->texts);
    copies->texts = NULL;
    copies->count = 0;
}
