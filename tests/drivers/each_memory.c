/* SPDX-License-Identifier: MIT
 *
 * Every allocation of the library made to fail in turn; see memory.h. */
#include "memory.h"
#include "fail_alloc.h"
#include "each.h"

enum { FAR_TOO_OFTEN = 1000, FIRST = 6, EVERY = 13 };

/* MySQL's driver asks for three pieces for each prepared statement. ROWLOCK_TEST_LONG=1: each of
 * them fails. */
static int next_piece(const struct raw *raw, int nth)
{
    bool some = strcmp(raw->name, "mysql") == 0 && nth >= FIRST && !getenv("ROWLOCK_TEST_LONG");
    return nth + (some ? EVERY : 1);
}

void starve(const char *what, walk_fn *walk, const struct raw *raw, const char *url, bool adopted)
{
    int nth = 1;
    for (; nth < FAR_TOO_OFTEN; nth = next_piece(raw, nth)) {
        bool good = walk(raw, url, nth, adopted);
        tap_ok(good, "%s on an %s connection: memory that runs out at piece %d does no harm", what,
               adopted ? "adopted" : "own", nth);
        tap_is_int(fail_alloc_live(), 0, "and none is kept");
        if (fail_alloc_asked() < nth)
            break;
    }
    int least = strcmp(raw->name, "postgres") == 0 ? 1 : 50;
    tap_ok(fail_alloc_asked() >= least && nth < FAR_TOO_OFTEN, "which were all pieces: %d",
           fail_alloc_asked());
}

static bool walk_locks(const struct raw *raw, const char *url, int nth, bool adopted)
{
    static const struct faulty own_memory = {.arm = fail_alloc_at, .asked = fail_alloc_asked};
    return walk_once(raw, url, &own_memory, nth, adopted);
}

static int run(const struct raw *raw, const char *url)
{
    /* All else is the same lines of C on each database: it is proven on SQLite. */
    if (strcmp(raw->name, "sqlite") != 0)
        fail_alloc_of_drivers();
    for (int adopted = 0; adopted <= 1; adopted++) {
        starve("locks", walk_locks, raw, url, adopted);
        starve_rows(raw, url, adopted);
    }
    return tap_done();
}

EACH_MAIN(run)
