/* SPDX-License-Identifier: MIT
 *
 * A line of processes on MySQL and MariaDB. What they do is in line.c.
 */
#include "line.h"

int main(void)
{
    return line_run(&raw_mysql);
}
