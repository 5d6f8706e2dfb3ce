/* SPDX-License-Identifier: MIT
 *
 * The bank on MySQL and MariaDB. What happens in it is in bank.c.
 */
#include "bank.h"

#define SET "SET SESSION TRANSACTION ISOLATION LEVEL "

int main(void)
{
    static const struct manner manners[] = {
        {SET "READ COMMITTED", "BEGIN"},
        {SET "REPEATABLE READ", "BEGIN"},
        {SET "SERIALIZABLE", "BEGIN"},
        {0},
    };
    /* A deadlock, a lock timeout, and a row newer than the snapshot where the server minds that. */
    static const char *const conflicts[] = {"1213 ", "1205 ", "1020 ", NULL};
    return bank_run(&(struct bank){&raw_mysql, manners, conflicts, 2000});
}
