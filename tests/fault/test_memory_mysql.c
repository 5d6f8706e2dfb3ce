/* SPDX-License-Identifier: MIT
 *
 * The library's memory running out, on MySQL and MariaDB. What is done is in memory.c.
 */
#include "memory.h"

int main(void)
{
    return memory_main(&raw_mysql);
}
