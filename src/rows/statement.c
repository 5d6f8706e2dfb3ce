/* SPDX-License-Identifier: MIT
 * Sends statements about rows, in the open transaction if there is one. */
#include "rows/rows.h"

static enum rlk_class run_query(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct rlk_asking *asking = context;
    if (asking->restart)
        asking->restart(asking->query.context);
    db->stats.round_trips++;
    return db->backend->query(db->conn, call, &asking->query);
}

static enum rlk_class run_step(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct rlk_asking_ours *asking = context;
    if (asking->restart)
        asking->restart(asking->sending.out);
    return rlk_send(db, call, &asking->sending);
}

static int ask(rowlock_db *db, struct rlk_step_call *step)
{
    step->where = db->in_tx ? RLK_INSIDE : RLK_EITHER;
    int result = rlk_do(db, step);
    if (result != ROWLOCK_EMISUSE || !db->in_tx)
        return result;
    rlk_fail(db, ROWLOCK_CONFLICT, "the database has rolled the transaction back");
    db->error.transaction_over = 1;
    return ROWLOCK_CONFLICT;
}

int rlk_ask(rowlock_db *db, struct rlk_asking *asking)
{
    struct rlk_step_call step = {.run = run_query, .context = asking, .without_tables = true};
    int result = ask(db, &step);
    asking->was_uncertain = step.was_uncertain;
    return result;
}

int rlk_ask_ours(rowlock_db *db, struct rlk_asking_ours *asking)
{
    struct rlk_step_call step = {.run = run_step, .context = asking};
    int result = ask(db, &step);
    asking->was_uncertain = step.was_uncertain;
    return result;
}

int rlk_fail_misfit(rowlock_db *db, bool changed)
{
    return rlk_fail(db, changed ? ROWLOCK_EUNCERTAIN : ROWLOCK_ESERVER,
                    "the database returned other rows or columns than expected%s",
                    changed ? "; what was asked for may or may not have been done" : "");
}
