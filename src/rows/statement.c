/* SPDX-License-Identifier: MIT
 * Sends statements about rows, in the open transaction if there is one. */
#include "rows/rows.h"

int rlk_ask_ours(rowlock_db *db, struct rlk_ask *ask)
{
    ask->where = db->tx ? RLK_INSIDE : RLK_EITHER;
    int result = rlk_ask(db, ask);
    if (result != ROWLOCK_EMISUSE || !db->tx)
        return result;
    rlk_fail(db, ROWLOCK_CONFLICT, "the database has rolled the transaction back");
    db->error.transaction_over = 1;
    return ROWLOCK_CONFLICT;
}

int rlk_ask_rows(rowlock_db *db, struct rlk_asking *asking)
{
    struct rlk_ask ask = {.query = &asking->query, .restart = asking->restart};
    int result = rlk_ask_ours(db, &ask);
    asking->was_uncertain = ask.was_uncertain;
    return result;
}

int rlk_fail_misfit(rowlock_db *db, bool changed)
{
    return rlk_fail(db, changed ? ROWLOCK_EUNCERTAIN : ROWLOCK_ESERVER,
                    "the database returned other rows or columns than expected%s",
                    changed ? "; what was asked for may or may not have been done" : "");
}
