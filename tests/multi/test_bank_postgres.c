/* SPDX-License-Identifier: MIT
 *
 * The bank on PostgreSQL. What happens in it is in bank.c.
 */
#include "bank.h"

int main(void)
{
    static const struct manner manners[] = {
        {NULL, "BEGIN"},
        {NULL, "BEGIN ISOLATION LEVEL REPEATABLE READ"},
        {NULL, "BEGIN ISOLATION LEVEL SERIALIZABLE"},
        {0},
    };
    static const char *const conflicts[] = {"could not serialize", "deadlock detected", NULL};
    return bank_run(&(struct bank){&raw_postgres, manners, conflicts, 2000});
}
