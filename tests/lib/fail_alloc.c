/* SPDX-License-Identifier: MIT
 *
 * Counting and failing memory; see fail_alloc.h. */
#include "fail_alloc.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/buffer.h"
#include "base/url.h"
#include "core/driver.h"

static atomic_int asked, live, failing;
static bool of_drivers;
static _Thread_local bool asks;

static void *counted_alloc(size_t size)
{
    if ((asks || !of_drivers) && ++asked == failing)
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

void fail_alloc_of_drivers(void)
{
    of_drivers = true;
}

/* The Makefile links a driver with these in place of the functions that they call. */
void *driver_rlk_alloc(size_t size);
void *driver_rlk_room_for(struct rlk_room *room, size_t size);
void driver_rlk_buffer_add(struct rlk_buffer *b, const char *text, size_t length);
void driver_rlk_buffer_value(struct rlk_buffer *b, const rowlock_value *value);
int driver_rlk_url_split(const char *text, struct rlk_url *url, const char **why);

void *driver_rlk_alloc(size_t size)
{
    asks = true;
    void *memory = rlk_alloc(size);
    asks = false;
    return memory;
}

void *driver_rlk_room_for(struct rlk_room *room, size_t size)
{
    asks = true;
    void *memory = rlk_room_for(room, size);
    asks = false;
    return memory;
}

void driver_rlk_buffer_add(struct rlk_buffer *b, const char *text, size_t length)
{
    asks = true;
    rlk_buffer_add(b, text, length);
    asks = false;
}

void driver_rlk_buffer_value(struct rlk_buffer *b, const rowlock_value *value)
{
    asks = true;
    rlk_buffer_value(b, value);
    asks = false;
}

int driver_rlk_url_split(const char *text, struct rlk_url *url, const char **why)
{
    asks = true;
    int result = rlk_url_split(text, url, why);
    asks = false;
    return result;
}

int fail_alloc_asked(void)
{
    return asked;
}

int fail_alloc_live(void)
{
    return live;
}
