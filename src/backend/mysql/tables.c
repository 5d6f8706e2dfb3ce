/* SPDX-License-Identifier: MIT
 * Installing our tables and procedures, and changing them. */
#include "driver.h"

/* One statement at a time: to send them together would need a setting that a borrowed connection
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
