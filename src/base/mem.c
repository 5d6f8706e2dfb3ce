/* SPDX-License-Identifier: MIT
 * The library's memory, behind one pair of pointers so that tests can make it run out.
 * Vendor libraries allocate for themselves; that memory is theirs. */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

static void *system_alloc(size_t size)
{
    return calloc(1, size);
}

struct rlk_memory rlk_memory = {system_alloc, free};

void *rlk_alloc(size_t size)
{
    return rlk_memory.alloc(size ? size : 1);
}

void rlk_free(void *memory)
{
    if (memory)
        rlk_memory.free(memory);
}

char *rlk_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = rlk_alloc(size);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}
