/* SPDX-License-Identifier: MIT
 *
 * Threads and processes on SQLite. What they do is in multi.c.
 */
#include "multi.h"

int main(void)
{
    static const struct isolation only_one[] = {{0}};
    return multi_run(&(struct multi){.raw = &raw_sqlite, .isolations = only_one});
}
