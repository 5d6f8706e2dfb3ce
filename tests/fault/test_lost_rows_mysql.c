/* SPDX-License-Identifier: MIT
 *
 * Lost requests and lost answers of calls about rows, on MySQL and MariaDB. What is done is in lost_rows.c.
 */
#include "lost.h"

int main(void)
{
    return lost_rows_main(&raw_mysql);
}
