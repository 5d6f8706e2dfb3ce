/* SPDX-License-Identifier: MIT
 *
 * Installs and changes our tables and procedures. */
#include "driver.h"

/* Sends one statement at a time. Sending several at once needs a setting that an adopted connection
 * may not have. */
enum rlk_class my_script(void *conn, struct rlk_call *call, const char *sql)
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
