/* SPDX-License-Identifier: MIT
 * See verbs.c; the server speaks MySQL's protocol. */
#include "fake.h"

int main(void)
{
    return verbs_run(fake_mysql_start, "mysql://app@127.0.0.1:%d/%ld?ssl_mode=disabled");
}
