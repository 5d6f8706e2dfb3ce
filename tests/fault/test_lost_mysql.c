/* SPDX-License-Identifier: MIT
 *
 * Lost requests and lost answers on MySQL and MariaDB. What is done is in lost.c.
 */
#include "lost.h"

int main(void)
{
    return lost_main(&raw_mysql);
}
