/* SPDX-License-Identifier: MIT
 *
 * Crashed and frozen servers of PostgreSQL. What is done is in server.c.
 */
#include "server.h"

int main(void)
{
    return server_main(&raw_postgres);
}
