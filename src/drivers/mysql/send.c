/* SPDX-License-Identifier: MIT
 *
 * Is the connection fit for a step? Also statements without values. */
#include "driver.h"

#include <poll.h>
#include <string.h>

/* A server that closed an idle connection has told us already. If we look before we send, the step
 * is unsent instead of uncertain. */
bool my_hung_up(const struct conn *c)
{
    struct pollfd socket = {.fd = my_socket_of(c->mysql), .events = POLLRDHUP};
    return socket.fd < 0 || (poll(&socket, 1, 0) > 0 && socket.revents);
}

bool my_is_mariadb(const struct conn *c)
{
    return strstr(mysql_get_server_info(c->mysql), "MariaDB") != NULL;
}

/* Our transaction is over if the server said so, or if the caller ended it on an adopted
 * connection. */
bool my_is_over(const struct conn *c)
{
    return c->ours && (c->lost || !my_in_transaction(c));
}

/* For statements that change nothing if their answer was lost. */
enum rlk_class my_harmless(const struct conn *c, enum rlk_class class)
{
    return class != RLK_UNCERTAIN ? class : c->dead ? RLK_UNSENT : RLK_CONTENTION;
}

/* In these character sets the second byte of a character may be a backtick or a backslash. Then a
 * quoted name could end too early. Our own connections use UTF-8. The server's session tracking
 * tells the client library of SET NAMES. Both servers have it on by default. */
enum rlk_class my_check_charset(const struct conn *c, struct rlk_call *call)
{
    static const char *const unsafe[] = {"gbk", "big5", "sjis", "cp932", "gb18030"};
    const char *charset = c->adopted ? mysql_character_set_name(c->mysql) : "utf8mb4";
    for (size_t i = 0; i < sizeof unsafe / sizeof unsafe[0]; i++)
        if (strcmp(charset, unsafe[i]) == 0)
            return rlk_refuse(call, RLK_INVALID,
                              "the adopted connection speaks a character set in which names cannot "
                              "be quoted (GBK, Big5, SJIS, cp932, GB18030): SET NAMES utf8mb4");
    return RLK_DONE;
}

/* Is a transaction open? The client library knows the state after the last success. After a failure
 * we ask the server. On our own connection only frame() begins one. We count as inside until
 * frame() ends it, even if the server has rolled it back. */
enum rlk_class my_look(struct conn *c, struct rlk_call *call)
{
    c->dead = c->dead || my_hung_up(c);
    call->inside = c->ours;
    call->tx_over = c->dead && (c->ours || (c->adopted && call->where != RLK_OUTSIDE));
    if (c->dead) {
        rlk_diag_set(call, CR_SERVER_GONE_ERROR, "08006", "the server has closed the connection");
        return RLK_UNSENT;
    }
    if (!c->adopted && !c->ours)
        return RLK_DONE;
    if (mysql_errno(c->mysql) && mysql_query(c->mysql, "DO 0")) {
        enum rlk_class class = my_failed(c, call, false);
        call->tx_over = c->ours || call->where != RLK_OUTSIDE;
        return class;
    }
    c->was_in_tx = my_in_transaction(c);
    call->inside = c->ours || c->was_in_tx || !(c->mysql->server_status & SERVER_STATUS_AUTOCOMMIT);
    return RLK_DONE;
}

enum rlk_class my_check_fit(struct conn *c, struct rlk_call *call)
{
    enum rlk_class class = my_check_charset(c, call);
    if (class == RLK_DONE)
        class = my_look(c, call);
    if (class != RLK_DONE)
        return class;
    if (call->inside && call->where == RLK_OUTSIDE) {
        call->inside = false;
        return RLK_IN_TX;
    }
    if (my_is_over(c)) {
        call->tx_over = true;
        return rlk_refuse(call, RLK_REFUSED, "the transaction is over already; roll it back");
    }
    return call->where == RLK_INSIDE && !call->inside ? RLK_NO_TX : RLK_DONE;
}

/* Sends a statement that is no step: a connection setting, BEGIN, COMMIT, or a part of the
 * schema. */
enum rlk_class my_send(struct conn *c, struct rlk_call *call, const char *sql, size_t length)
{
    return mysql_real_query(c->mysql, sql, length) == 0 ? RLK_DONE : my_failed(c, call, true);
}

enum rlk_class my_command(struct conn *c, struct rlk_call *call, const char *sql)
{
    return my_send(c, call, sql, strlen(sql));
}

enum rlk_class my_show(struct conn *c, struct rlk_call *call, const char *sql, MYSQL_RES **out)
{
    enum rlk_class class = my_command(c, call, sql);
    *out = class == RLK_DONE ? mysql_store_result(c->mysql) : NULL;
    return class == RLK_DONE && !*out ? my_failed(c, call, true) : class;
}

enum rlk_class my_ask(struct conn *c, struct rlk_call *call, const char *sql, char *out, size_t cap)
{
    MYSQL_RES *result = NULL;
    enum rlk_class class = my_show(c, call, sql, &result);
    MYSQL_ROW row = class == RLK_DONE ? mysql_fetch_row(result) : NULL;
    if (row && row[0])
        rlk_copy_text(out, cap, row[0], strlen(row[0]));
    mysql_free_result(result);
    return class;
}
