/* SPDX-License-Identifier: MIT
 *
 * The operations of the PostgreSQL driver. All libpq calls of the library are in this folder. The
 * SQL of the steps is in sql/postgres/. */
#include "driver.h"

#include <stdio.h>

/* 90603 was 9.6.3. Since 10 there are two numbers: 150003 is 15.3. */
static void client(char *out, size_t cap)
{
    int version = PQlibVersion();
    snprintf(out, cap, "libpq %d.%d", version / 10000, version % 10000);
}

static const char *const schemes[] = {"postgresql", "postgres", NULL};

extern const struct rlk_driver rlk_driver_postgres;
const struct rlk_driver rlk_driver_postgres = {
    .name = "postgres",
    .schemes = schemes,
    .conn_size = sizeof(struct conn),
    .quote = '"',
    .marker = '$',
    .numbered = true,
    .packing = RLK_ARRAYS,
    .has_policies = true,
    .locks_rows_first = true,
    .client = client,
    .open = pg_open,
    .adopt = pg_adopt,
    .close = pg_close,
    .script = pg_script,
    .facts = pg_facts,
    .note = pg_note,
    .await = pg_await,
    .query = pg_query,
    .frame = pg_frame,
};
