/* SPDX-License-Identifier: MIT
 *
 * Statements and connections that the server interrupts, on MySQL and MariaDB. What is done is in lost_killed.c.
 */
#include "lost.h"

int main(void)
{
    return lost_killed_main(&raw_mysql);
}
