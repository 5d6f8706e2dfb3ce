/* SPDX-License-Identifier: MIT
 * See verbs.h; the server speaks MySQL's protocol. */
#include "fake.h"
#include "verbs.h"

int main(void)
{
    return verbs_run(fake_mysql_start, "mysql://app@127.0.0.1:%d/%ld?ssl_mode=disabled");
}
