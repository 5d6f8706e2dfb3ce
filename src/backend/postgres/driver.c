/* SPDX-License-Identifier: MIT
 *
 * The operations of the PostgreSQL driver. All libpq calls of the library are in this folder. The
 * SQL of the steps is in sql/postgres/. */
#include "driver.h"

static const char *const schemes[] = {"postgresql", "postgres", NULL};

extern const struct rlk_backend rlk_backend_postgres;
const struct rlk_backend rlk_backend_postgres = {
    .name = "postgres",
    .schemes = schemes,
    .conn_size = sizeof(struct conn),
    .quote = '"',
    .marker = '$',
    .numbered = true,
    .packing = RLK_ARRAYS,
    .has_policies = true,
    .locks_rows_first = true,
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
