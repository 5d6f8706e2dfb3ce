/* SPDX-License-Identifier: MIT
 * Installing our tables, and what rowlock_check() is told beside the step `facts`. */
#include "driver.h"

/* After a failure the text's own BEGIN is still open. Then it is rolled back: check_usable() has
 * seen that it is not the caller's transaction. */
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
