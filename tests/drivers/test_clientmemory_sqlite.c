/* SPDX-License-Identifier: MIT
 *
 * SQLite's own memory running out, at each place in turn: what the driver makes of it. SQLite lets
 * its memory be replaced. The library's own memory is in each_memory.c.
 */
#include <sqlite3.h>

#include <malloc.h>

#include "quick.h"
#include "raw.h"
#include "tap.h"
#include "memory_walk.h"

static int failing, asked;
static bool counting;

static bool fails(void)
{
    return counting && ++asked == failing;
}

static void *lean_malloc(int size)
{
    return fails() ? NULL : malloc((size_t)size);
}

static void *lean_realloc(void *memory, int size)
{
    return fails() ? NULL : realloc(memory, (size_t)size);
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
    (void)unused;
    return SQLITE_OK;
}

static void lean_shutdown(void *unused)
{
    (void)unused;
}

static void arm(int nth)
{
    failing = nth;
    asked = 0;
}

static void turn(bool on)
{
    counting = on;
}

static int how_often(void)
{
    return asked;
}

static const struct faulty clients_memory = {.arm = arm, .on = turn, .asked = how_often};

/* Every piece at the beginning, then one of some, since there are thousands. ROWLOCK_TEST_LONG=1: each. */
static void test_each(const char *url, bool adopted)
{
    enum { EACH = 100 };
    int stride = getenv("ROWLOCK_TEST_LONG") ? 1 : 73;
    int tried = 0, bad = 0, nth = 1;
    for (;; nth += nth < EACH ? 1 : stride) {
        bad += !walk_once(&raw_sqlite, url, &clients_memory, nth, adopted);
        if (asked < nth)
            break;
        tried++;
    }
    tap_is_int(bad, 0, "on an %s connection SQLite's memory that runs out does no harm",
               adopted ? "adopted" : "own");
    tap_ok(tried > EACH, "at %d places", tried);
    tap_is_int(sqlite3_memory_used(), 0, "and none is kept");
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
    test_each(url, false);
    test_each(url, true);
    return tap_done();
}
