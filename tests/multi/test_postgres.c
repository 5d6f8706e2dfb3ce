/* SPDX-License-Identifier: MIT
 *
 * Threads and processes on PostgreSQL. What they do is in multi.c.
 */
#include "multi.h"

#include <stddef.h>

#define DEFAULT "ALTER ROLE CURRENT_USER SET default_transaction_isolation = "
#define RESET "ALTER ROLE CURRENT_USER RESET default_transaction_isolation"

int main(void)
{
    static const struct isolation isolations[] = {
        {"serializable by default", DEFAULT "'serializable'", RESET, NULL},
        {"repeatable read by default", DEFAULT "'repeatable read'", RESET, NULL},
        {NULL, NULL, NULL, NULL},
    };
    return multi_run(&(struct multi){.raw = &raw_postgres, .isolations = isolations});
}
