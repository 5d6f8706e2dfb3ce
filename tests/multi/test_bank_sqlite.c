/* SPDX-License-Identifier: MIT
 *
 * The bank on SQLite. What happens in it is in bank.c.
 */
#include "bank.h"

int main(void)
{
    static const struct manner manners[] = {{NULL, "BEGIN"}, {NULL, "BEGIN IMMEDIATE"}, {0}};
    static const char *const conflicts[] = {"database is locked", NULL};
    return bank_run(&(struct bank){&raw_sqlite, manners, conflicts, 500});
}
