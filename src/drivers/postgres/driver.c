/* SPDX-License-Identifier: MIT
 *
 * The operations of the PostgreSQL driver. All libpq calls of the library are in this folder. The
 * SQL of the steps is in sql/postgres/. */
#include "driver.h"

#include <stdio.h>

/* After a failure the script's own BEGIN is still open, and is rolled back. It cannot be the
 * caller's transaction: pg_check_usable() has checked that. */
static enum rlk_class script(void *conn, struct rlk_call *call, const char *sql)
{
    struct conn *p = conn;
    PGresult *r = NULL;
    enum rlk_class class = pg_check_usable(p, call);
    if (class != RLK_DONE)
        return class;
    class = pg_say(p, call, sql, &r);
    if (class != RLK_DONE && class != RLK_UNCERTAIN &&
        PQtransactionStatus(p->conn) == PQTRANS_INERROR) {
        struct rlk_call undo = {.deadline_us = call->deadline_us};
        pg_say(p, &undo, "ROLLBACK", &r);
    }
    PQclear(r);
    return class;
}

static enum rlk_class facts(void *conn, struct rlk_call *call, struct rlk_facts *out)
{
    const struct conn *p = conn;
    (void)call;
    out->pooled = !p->adopted && !p->direct;
    return RLK_DONE;
}

/* 90603 was 9.6.3. Since 10 there are two numbers: 150003 is 15.3. */
static void client(char *out, size_t cap)
{
    int version = PQlibVersion();
    snprintf(out, cap, "libpq %d.%d", version / 10000, version % 10000);
}

const struct rlk_driver rlk_driver_postgres = {
    .name = "postgres",
    .schemes = (const char *const[]){"postgresql", "postgres", NULL},
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
    .script = script,
    .facts = facts,
    .tell = pg_tell,
    .await = pg_await,
    .query = pg_query,
    .frame = pg_frame,
};
