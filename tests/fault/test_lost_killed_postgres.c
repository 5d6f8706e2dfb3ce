/* SPDX-License-Identifier: MIT
 *
 * Statements and connections that the server interrupts, on PostgreSQL. What is done is in lost_killed.c.
 */
#include "lost.h"

int main(void)
{
    return lost_killed_main(&raw_postgres);
}
