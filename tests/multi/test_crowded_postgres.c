/* SPDX-License-Identifier: MIT
 *
 * Crowds on PostgreSQL. What they do is in crowded.c and opposite.c.
 */
#include "crowded.h"

int main(void)
{
    static const struct crowded_way ways[] = {
        {NULL, "BEGIN"},
        {NULL, "BEGIN ISOLATION LEVEL REPEATABLE READ"},
        {0},
    };
    static const char *const conflicts[] = {"could not serialize", "deadlock detected", NULL};
    /* A deadlock is looked for after a second by default, in which nobody of the others gets on. */
    return crowded_run(&(struct crowded){
        .raw = &raw_postgres,
        .ways = ways,
        .conflicts = conflicts,
        .prepare = "ALTER ROLE CURRENT_USER SET deadlock_timeout = '20ms'",
        .restore = "ALTER ROLE CURRENT_USER RESET deadlock_timeout",
        .deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
        .begin_to_write = "BEGIN",
        .rows = 100000,
        .rounds = 30,
    });
}
