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

/* ---- transactions and savepoints of ours */

static enum rlk_class begin_ours(struct conn *c, struct rlk_call *call)
{
    if (call->inside) {
        call->inside = false;
        return RLK_IN_TX;
    }
    enum rlk_class class = my_command(c, call, "START TRANSACTION");
    c->ours = class == RLK_DONE;
    c->lost = false;
    return my_harmless(c, class);
}

/* If another node of Galera has ended it, the session's next statement fails, whatever it is. */
static enum rlk_class roll_back(struct conn *c, struct rlk_call *call)
{
    static const char sql[] = "ROLLBACK AND NO CHAIN NO RELEASE";
    enum rlk_class class = my_in_transaction(c) ? my_command(c, call, sql) : RLK_DONE;
    if (class == RLK_CONTENTION)
        class = my_command(c, call, sql);
    c->ours = c->lost = false;
    my_end_leaving(c, call, false);
    return my_harmless(c, class);
}

/* Our transaction is over before its COMMIT. If the server told us of a rollback, it changed
 * nothing. Otherwise a statement of the caller ended it, and may have committed it. */
static enum rlk_class end_lost(struct conn *c, struct rlk_call *call)
{
    bool rolled_back = c->lost;
    enum rlk_class class = roll_back(c, call);
    call->tx_over = true;
    rlk_diag_set(call, 0, NULL,
                 rolled_back ? "the server had rolled the transaction back"
                             : "the transaction was ended by a statement of yours");
    return class != RLK_DONE ? class : rolled_back ? RLK_CONTENTION : RLK_NO_TX;
}

/* The session's completion_type cannot start a new transaction or end the session. */
static enum rlk_class commit(struct conn *c, struct rlk_call *call)
{
    enum rlk_class class = my_command(c, call, "COMMIT AND NO CHAIN NO RELEASE");
    if (c->dead || (class != RLK_DONE && my_in_transaction(c)))
        return class;
    c->ours = c->lost = false;
    my_end_leaving(c, call, class == RLK_DONE);
    return class;
}

/* Each savepoint inside another has a name of its own. A second one of the same name would replace
 * the first. */
static enum rlk_class savepoint(struct conn *c, struct rlk_call *call, enum rlk_frame what)
{
    static const char *const verbs[] = {[RLK_SAVE] = "SAVEPOINT",
                                        [RLK_KEEP] = "RELEASE SAVEPOINT",
                                        [RLK_UNDO] = "ROLLBACK TO SAVEPOINT"};
    char sql[60], keep[60];
    if (!call->inside || my_is_over(c)) {
        call->tx_over = call->inside;
        return RLK_NO_TX;
    }
    int depth = what == RLK_SAVE ? c->saved + 1 : c->saved;
    snprintf(sql, sizeof sql, "%s rowlock_%d", verbs[what], depth);
    snprintf(keep, sizeof keep, "%s rowlock_%d", verbs[RLK_KEEP], depth);
    enum rlk_class class = my_command(c, call, sql);
    if (what == RLK_SAVE)
        c->saved += class == RLK_DONE;
    else if (c->saved > 0)
        c->saved--;
    if (class == RLK_DONE && what == RLK_UNDO)
        class = my_command(c, call, keep);
    if (class != RLK_SCHEMA)
        return class;
    /* A savepoint disappears only with its transaction. */
    call->tx_over = true;
    return RLK_NO_TX;
}

static enum rlk_class frame(void *conn, struct rlk_call *call, enum rlk_frame what)
{
    struct conn *c = conn;
    enum rlk_class class = my_look(c, call);
    if (class != RLK_DONE || what == RLK_LOOK)
        return class;
    if (what == RLK_BEGIN)
        return begin_ours(c, call);
    if (what != RLK_COMMIT && what != RLK_ROLLBACK)
        return savepoint(c, call, what);
    if (!c->ours)
        return RLK_NO_TX;
    if (what == RLK_ROLLBACK)
        return roll_back(c, call);
    return my_is_over(c) ? end_lost(c, call) : commit(c, call);
}

/* ---- statements */

/* Sends one statement at a time. Sending several at once needs a setting that an adopted connection
 * may not have. */
static enum rlk_class script(void *conn, struct rlk_call *call, const char *sql)
{
    struct conn *c = conn;
    enum rlk_class class = my_check_fit(c, call);
    while (class == RLK_DONE && *sql) {
        size_t length = rlk_statement_length(sql);
        class = my_send(c, call, sql, length);
        sql += length;
    }
    return class;
}

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
        if (q->waits_for_all) {
            class = my_look_for_writers(c, call);
            *q->waits_for_all = !c->certifies;
            if (c->certifies)
                return class;
        }
        return class == RLK_DONE ? my_run(c, call, q) : class;
    }
}

/* ---- the driver */

static void client(char *out, size_t cap)
{
#ifdef MARIADB_PACKAGE_VERSION_ID
    snprintf(out, cap, "MariaDB Connector/C %s", mysql_get_client_info());
#else
    snprintf(out, cap, "libmysqlclient %s", mysql_get_client_info());
#endif
}

const struct rlk_driver rlk_driver_mysql = {
    .name = "mysql",
    .schemes = (const char *const[]){"mysql", "mariadb", NULL},
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
    .script = script,
    .facts = my_facts,
    .tell = my_tell,
    .await = my_await,
    .query = query,
    .frame = frame,
};
