/* SPDX-License-Identifier: MIT
 *
 * Lost requests and lost answers of calls about rows, on PostgreSQL. What is done is in lost_rows.c.
 */
#include "lost.h"

int main(void)
{
    return lost_rows_main(&raw_postgres);
}
