/* SPDX-License-Identifier: MIT
 *
 * The driver for MySQL and MariaDB, on MariaDB Connector/C or Oracle's libmysqlclient 8 and later.
 *
 * Each step is a prepared statement. Preparing it at its first use costs one more round trip.
 * Statements about the caller's own tables are prepared too. A connection keeps RLK_PREPARED_MAX of
 * them. On an adopted connection all are closed with the rowlock_db.
 *
 * Both client libraries take timeouts when they connect, and count them in whole seconds. We round
 * them up. They hold for each single wait. So a call may overrun its deadline by a second, and also
 * by the difference if its deadline is shorter than the handle's statement timeout. On an adopted
 * connection the caller chose the timeouts, and may have chosen none. */
#include "driver.h"

#include <stdio.h>

static enum rlk_class query(void *conn, struct rlk_call *call, struct rlk_query *q)
{
    struct conn *c = conn;
    enum rlk_class class = my_check_fit(c, call);
    q->changed = 0;
    if (class != RLK_DONE)
        return class;
    switch (q->step) {
    case RLK_STEP_RENEW:
        return my_renew(c, call, q);
    case RLK_STEP_RENEW_ALL:
        return my_renew_all(c, call, q);
    case RLK_STEP_RELEASE:
        return my_release(c, call, q);
    case RLK_STEP_ENQUEUE:
        return my_enqueue(c, call, q);
    case RLK_STEP_GUARD:
        class = my_look_for_writers(c, call);
        *q->own = rowlock_int(c->several_write);
        return class == RLK_DONE ? my_run(c, call, q) : class;
    default:
        return my_run(c, call, q);
    }
}

static void client(char *out, size_t cap)
{
#ifdef MARIADB_PACKAGE_VERSION_ID
    snprintf(out, cap, "MariaDB Connector/C %s", mysql_get_client_info());
#else
    snprintf(out, cap, "libmysqlclient %s", mysql_get_client_info());
#endif
}

static const char *const schemes[] = {"mysql", "mariadb", NULL};

extern const struct rlk_driver rlk_driver_mysql;
const struct rlk_driver rlk_driver_mysql = {
    .name = "mysql",
    .schemes = schemes,
    .conn_size = sizeof(struct conn),
    .quote = '`',
    .marker = '?',
    .packing = RLK_JSON,
    .backslash_escapes = true,
    .tells_no_rows = true,
    .overruns = true,
    .client = client,
    .open = my_open,
    .adopt = my_adopt,
    .use_in_thread = my_use_in_thread,
    .close = my_close,
    .script = my_script,
    .facts = my_facts,
    .note = my_note,
    .await = my_await,
    .query = query,
    .frame = my_frame,
};
