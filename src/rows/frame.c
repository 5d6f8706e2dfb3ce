/* SPDX-License-Identifier: MIT
 * Transactions that rowlock begins, savepoints inside open ones, and the statements in them. */
#include "rows/rows.h"

#include <unistd.h>

int rlk_frame(rowlock_db *db, enum rlk_frame what)
{
    struct rlk_ask ask = {.frame = what, .where = what == RLK_BEGIN ? RLK_OUTSIDE : RLK_INSIDE};
    int result = ROWLOCK_OK;
    /* A transaction is gone with its connection. */
    if (what != RLK_ROLLBACK || rlk_is_up(db))
        result = rlk_ask(db, &ask);
    if (what == RLK_BEGIN)
        rlk_set_tx(db, result == ROWLOCK_OK ? RLK_TX_OURS : RLK_TX_NONE);
    else if (what == RLK_COMMIT || what == RLK_ROLLBACK)
        rlk_set_tx(db, RLK_TX_NONE);
    if (result == ROWLOCK_EMISUSE && what == RLK_COMMIT) {
        rlk_fail(db, result,
                 "the transaction is over already: a statement of yours has ended it, and its "
                 "changes may remain");
        db->error.transaction_over = 1;
    }
    return result;
}

int rlk_is_inside(rowlock_db *db, bool *inside)
{
    struct rlk_ask ask = {.frame = RLK_LOOK, .where = RLK_EITHER};
    int result = db->adopted && !db->tx ? rlk_ask(db, &ask) : ROWLOCK_OK;
    *inside = db->tx || ask.inside;
    return result;
}

int rlk_undo(rowlock_db *db, bool inside, int result)
{
    rowlock_error error = db->error;
    int undone = rlk_frame(db, inside ? RLK_UNDO : RLK_ROLLBACK);
    if (undone == ROWLOCK_OK || undone == ROWLOCK_EMISUSE || inside || !db->adopted ||
        !rlk_is_up(db)) {
        db->error = error;
        return result;
    }
    error = db->error;
    return rlk_fail(db, ROWLOCK_ESERVER,
                    "the transaction is still open: roll it back, or close the connection (%s)",
                    error.text);
}

static int try_once(rowlock_db *db, bool inside, int (*work)(void *context), void *context)
{
    int result = rlk_frame(db, inside ? RLK_SAVE : RLK_BEGIN);
    if (result != ROWLOCK_OK)
        return result;
    if (!inside)
        rlk_set_tx(db, RLK_TX_FRAMED);
    result = work(context);
    /* A callback in work() has forked, and this is the child. The transaction is its parent's. */
    if (db->pid != getpid())
        return ROWLOCK_EMISUSE;
    if (result == ROWLOCK_OK) {
        result = rlk_frame(db, inside ? RLK_KEEP : RLK_COMMIT);
        if (result == ROWLOCK_OK || !inside)
            return result;
    }
    return db->error.transaction_over && inside ? result : rlk_undo(db, inside, result);
}

static int try_alone(rowlock_db *db, int (*work)(void *context), void *context)
{
    int result = try_once(db, false, work, context);
    /* The transaction was ours. The caller has none that could be over. */
    db->error.transaction_over = 0;
    return result;
}

int rlk_framed(rowlock_db *db, int (*work)(void *context), void *context)
{
    bool inside;
    int tries = 0;
    int64_t until_us = rlk_now_us() + db->statement_us;
    int result = rlk_is_inside(db, &inside);
    if (result != ROWLOCK_OK)
        return result;
    if (inside)
        return try_once(db, true, work, context);
    for (;;) {
        result = try_alone(db, work, context);
        bool undone = result == ROWLOCK_CONFLICT || (result == ROWLOCK_ECONN && !db->adopted);
        int64_t pause_us = undone ? rlk_pause_retry(&db->waiting, &tries) : 0;
        if (undone && rlk_now_us() + pause_us < until_us)
            rlk_wait_plain(pause_us);
        else if (result == ROWLOCK_CONFLICT)
            return db->error.code = ROWLOCK_ESERVER;
        else
            return result;
    }
}

/* ---- statements about rows, in the open transaction if there is one */

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
    rlk_free(asking->values);
    return result;
}

int rlk_fail_misfit(rowlock_db *db, bool changed)
{
    return rlk_fail(db, changed ? ROWLOCK_EUNCERTAIN : ROWLOCK_ESERVER,
                    "the database returned other rows or columns than expected%s",
                    changed ? "; what was asked for may or may not have been done" : "");
}
