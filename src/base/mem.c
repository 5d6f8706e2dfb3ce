/* SPDX-License-Identifier: MIT
 * The library's memory, and copies of texts. A pair of function pointers lets tests make memory run
 * out. The client libraries of the databases allocate their own memory. */
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

void *rlk_grow(void *old, size_t used, size_t size)
{
    void *larger = rlk_alloc(size);
    if (larger && used > 0)
        memcpy(larger, old, used);
    if (larger)
        rlk_free(old);
    return larger;
}

char *rlk_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = rlk_alloc(size);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

void rlk_copy_text(char *out, size_t cap, const char *in, size_t len)
{
    size_t n = len < cap - 1 ? len : cap - 1;
    /* A byte 10xxxxxx continues a character: go back to where that begins. */
    if (n < len)
        while (n > 0 && ((unsigned char)in[n] & 0xC0) == 0x80)
            n--;
    if (n > 0)
        memcpy(out, in, n);
    out[n] = '\0';
}
