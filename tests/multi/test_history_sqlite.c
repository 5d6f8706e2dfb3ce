/* SPDX-License-Identifier: MIT
 *
 * A history of grants on SQLite. How it is made is in history.c.
 */
#include "history.h"

int main(void)
{
    return history_run(&raw_sqlite);
}
