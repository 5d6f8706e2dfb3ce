/* SPDX-License-Identifier: MIT
 *
 * Crowds on MySQL and MariaDB. What they do is in crowded.c and opposite.c.
 */
#include "crowded.h"

#define SET "SET SESSION TRANSACTION ISOLATION LEVEL "

int main(void)
{
    static const struct crowded_way ways[] = {
        {SET "REPEATABLE READ", "BEGIN"},
        {SET "READ COMMITTED", "BEGIN"},
        {0},
    };
    /* A deadlock, a lock timeout, and a row newer than the snapshot where the server minds that. */
    static const char *const conflicts[] = {"1213 ", "1205 ", "1020 ", NULL};
    /* MariaDB counts them here, and MySQL in a place of its own. */
    return crowded_run(&(struct crowded){
        .raw = &raw_mysql,
        .ways = ways,
        .conflicts = conflicts,
        .deadlocks = "SELECT COALESCE(SUM(count), 0) FROM information_schema.innodb_metrics "
                     "WHERE name = 'lock_deadlocks'",
        .begin_to_write = "BEGIN",
        .rows = 100000,
        .rounds = 20,
    });
}
