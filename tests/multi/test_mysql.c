/* SPDX-License-Identifier: MIT
 *
 * Threads and processes on MySQL and MariaDB. What they do is in multi.c.
 */
#include "multi.h"

#include <stddef.h>

#define SET "SET GLOBAL TRANSACTION ISOLATION LEVEL "

int main(void)
{
    static const struct isolation isolations[] = {
        {"read committed", SET "READ COMMITTED", SET "REPEATABLE READ", NULL},
        {"repeatable read", SET "REPEATABLE READ", SET "REPEATABLE READ", NULL},
        {"serializable", SET "SERIALIZABLE", SET "REPEATABLE READ", NULL},
        {"snapshot isolation", "SET GLOBAL innodb_snapshot_isolation = ON",
         "SET GLOBAL innodb_snapshot_isolation = DEFAULT",
         "SELECT COUNT(*) FROM information_schema.global_variables "
         "WHERE variable_name = 'INNODB_SNAPSHOT_ISOLATION'"},
        {NULL, NULL, NULL, NULL},
    };
    return multi_run(&(struct multi){.raw = &raw_mysql, .isolations = isolations});
}
