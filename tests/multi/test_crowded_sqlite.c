/* SPDX-License-Identifier: MIT
 *
 * Crowds on SQLite. What they do is in crowded.c and opposite.c. The rows are fewer, because a file has one writer at
 * a time, who sends them one by one, and so has everybody else to wait for him.
 */
#include "crowded.h"

int main(void)
{
    static const struct crowded_way ways[] = {{NULL, "BEGIN"}, {NULL, "BEGIN IMMEDIATE"}, {0}};
    static const char *const conflicts[] = {"database is locked", NULL};
    return crowded_run(&(struct crowded){
        .raw = &raw_sqlite,
        .ways = ways,
        .conflicts = conflicts,
        .begin_to_write = "BEGIN IMMEDIATE",
        .rows = 10000,
        .rounds = 15,
    });
}
