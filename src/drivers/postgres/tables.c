/* SPDX-License-Identifier: MIT
 *
 * Installs our tables. Adds what the step `facts` cannot tell rowlock_check(). */
#include "driver.h"

/* After a failure the script's own BEGIN is still open, and is rolled back. It cannot be the
 * caller's transaction: pg_check_usable() has checked that. */
enum rlk_class pg_script(void *conn, struct rlk_call *call, const char *sql)
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

enum rlk_class pg_facts(void *conn, struct rlk_call *call, struct rlk_facts *out)
{
    const struct conn *p = conn;
    (void)call;
    out->pooled = !p->adopted && !p->direct;
    return RLK_DONE;
}
