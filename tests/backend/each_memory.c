/* SPDX-License-Identifier: MIT
 *
 * Every allocation of the library made to fail in turn; see memory.h.
 */
#include "memory.h"

#include <stdlib.h>

#include "fail_alloc.h"
#include "each.h"
#include "tap.h"
#include "memory_walk.h"

enum { FAR_TOO_OFTEN = 1000 };

static const struct faulty own_memory = {.arm = fail_alloc_at, .asked = fail_alloc_asked};

static void test_each(const struct raw *raw, const char *url, bool adopted)
{
    const char *way = adopted ? "adopted" : "own";
    int nth = 1;
    for (; nth < FAR_TOO_OFTEN; nth++) {
        bool good = walk_once(raw, url, &own_memory, nth, adopted);
        tap_ok(good, "on an %s connection, memory that runs out at piece %d does no harm", way,
               nth);
        tap_is_int(fail_alloc_live(), 0, "and none is kept");
        if (fail_alloc_asked() < nth)
            break;
    }
    tap_ok(nth > 15 && nth < FAR_TOO_OFTEN, "which were all pieces: %d", nth - 1);
}

static int run(const struct raw *raw, const char *url)
{
    fail_alloc_at(0);
    test_each(raw, url, false);
    test_each(raw, url, true);
    starve_rows(raw, url, false);
    starve_rows(raw, url, true);
    return tap_done();
}

int main(int argc, char **argv)
{
    (void)argc;
    return each_main(argv, run);
}
