/* SPDX-License-Identifier: MIT
 *
 * Counting and failing memory; see fail_alloc.h.
 */
#include "fail_alloc.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/base.h"

static atomic_int asked, live, failing;

static void *counted_alloc(size_t size)
{
    if (++asked == failing)
        return NULL;
    void *memory = calloc(1, size);
    if (!memory)
        abort();
    live++;
    return memory;
}

static void counted_free(void *memory)
{
    live--;
    free(memory);
}

/* Both use the C library's memory, so older memory can be freed later. */
void fail_alloc_at(int nth)
{
    rlk_memory = (struct rlk_memory){counted_alloc, counted_free};
    asked = 0;
    failing = nth;
}

int fail_alloc_asked(void)
{
    return asked;
}

int fail_alloc_live(void)
{
    return live;
}
