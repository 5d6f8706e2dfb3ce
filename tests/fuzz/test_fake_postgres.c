/* SPDX-License-Identifier: MIT
 * See verbs.h; the server speaks PostgreSQL's protocol. */
#include "fake.h"
#include "verbs.h"

int main(void)
{
    return verbs_run(fake_postgres_start,
                     "postgresql://app@127.0.0.1:%d/%ld?sslmode=disable&gssencmode=disable");
}
