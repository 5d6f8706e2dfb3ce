/* SPDX-License-Identifier: MIT
 *
 * SQLite's own memory running out, at each place in turn: what the driver makes of it. SQLite lets
 * its memory be replaced. The library's own memory is in each_memory.c. */
#include <sqlite3.h>

#include <malloc.h>

#include "quick.h"
#include "memory.h"

static void *lean_malloc(int size)
{
    return client_memory_fails() ? NULL : malloc((size_t)size);
}

static void *lean_realloc(void *memory, int size)
{
    return client_memory_fails() ? NULL : realloc(memory, (size_t)size);
}

static int lean_size(void *memory)
{
    return memory ? (int)malloc_usable_size(memory) : 0;
}

static int lean_roundup(int size)
{
    return (size + 7) & ~7;
}

static int lean_init(void *unused)
{
    return SQLITE_OK;
}

static void lean_shutdown(void *unused)
{
}

int main(void)
{
    static sqlite3_mem_methods lean = {.xMalloc = lean_malloc,
                                       .xFree = free,
                                       .xRealloc = lean_realloc,
                                       .xSize = lean_size,
                                       .xRoundup = lean_roundup,
                                       .xInit = lean_init,
                                       .xShutdown = lean_shutdown};
    const char *url = getenv(raw_sqlite.url_env);
    if (!url || !*url)
        return tap_skip_all("no database to test on");
    /* Without the pool that most small pieces would come from. */
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &lean) != SQLITE_OK ||
        sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) != SQLITE_OK)
        return 1;
    for (int adopted = 0; adopted <= 1; adopted++) {
        starve_client(&raw_sqlite, url, adopted, 100, 73); /* there are thousands */
        tap_is_int(sqlite3_memory_used(), 0, "and none is kept");
    }
    return tap_done();
}
