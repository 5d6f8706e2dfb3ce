/* SPDX-License-Identifier: MIT
 *
 * The driver for MySQL and MariaDB, on MariaDB Connector/C or Oracle's libmysqlclient 8 and later.
 *
 * Each step is a prepared statement. A connection prepares it at its first use: that costs a second
 * round trip. So are statements about the caller's own tables, of which the connection keeps some.
 * On an adopted connection the statements go when the rowlock_db is closed.
 *
 * Both client libraries count timeouts in whole seconds and take them when they connect. Ours are
 * rounded up, and hold for each wait: a call may overrun its deadline by a second, and by as long
 * as its deadline was shorter than the handle's statement timeout. On an adopted connection they
 * are what its owner chose, which may be none. */
#include "driver.h"

static enum rlk_class query(void *conn, struct rlk_call *call, struct rlk_query *q)
{
    struct conn *c = conn;
    enum rlk_class class = my_check_fit(c, call);
    q->changed = 0;
    if (class != RLK_DONE)
        return class;
    switch (q->step) {
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

static const char *const schemes[] = {"mysql", "mariadb", NULL};

extern const struct rlk_backend rlk_backend_mysql;
const struct rlk_backend rlk_backend_mysql = {
    .name = "mysql",
    .schemes = schemes,
    .conn_size = sizeof(struct conn),
    .quote = '`',
    .marker = '?',
    .packing = RLK_JSON,
    .backslash_escapes = true,
    .tells_no_rows = true,
    .open = my_open,
    .adopt = my_adopt,
    .enter_thread = my_enter_thread,
    .leave_thread = my_leave_thread,
    .close = my_close,
    .script = my_script,
    .facts = my_facts,
    .note = my_note,
    .await = my_await,
    .query = query,
    .frame = my_frame,
};
