/* SPDX-License-Identifier: MIT
 * See verbs.c; the server speaks PostgreSQL's protocol. */
#include "fake.h"

int main(void)
{
    return verbs_run(fake_postgres_start,
                     "postgresql://app@127.0.0.1:%d/%ld?sslmode=disable&gssencmode=disable");
}
