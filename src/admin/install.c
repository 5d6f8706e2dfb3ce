/* SPDX-License-Identifier: MIT
 * Installs rowlock's tables, or writes the script that does. */
#include "admin/inspect.h"
#include "core/ask.h"
#include "core/statements.h"

#include <string.h>

int rowlock_install_script(rowlock_db *db,
                           int (*write)(void *context, const char *sql, size_t length),
                           void *context)
{
    int result = rlk_need_database(db, rlk_enter(db, "write the script that installs", NULL));
    if (result == ROWLOCK_OK)
        rlk_write_script(db->driver, db->texts.sql[RLK_STEP_SCHEMA], write, context);
    return result;
}

/* Another program's table has one of our names, so CREATE TABLE IF NOT EXISTS did nothing. */
static int fail_foreign(rowlock_db *db)
{
    char cause[300];
    rlk_copy_text(cause, sizeof cause, db->error.text, strcspn(db->error.text, ";"));
    return rlk_fail(db, ROWLOCK_ESCHEMA,
                    "a table with a name of rowlock's has other columns (%s): it is another "
                    "program's, or damaged; rename it, or choose another schema or prefix",
                    cause);
}

/* install changes no tables or routines that are there. They may be of a later release. */
static int look_at_installation(rowlock_db *db)
{
    struct rlk_facts facts = {0};
    int result = rlk_refuse_objects(db, db->meta.version);
    if (result != ROWLOCK_OK || (result = rlk_examine(db, &facts)) != ROWLOCK_OK)
        return result;
    if (facts.may_lock)
        return ROWLOCK_OK;
    return rlk_fail(
        db, ROWLOCK_ESCHEMA,
        "the tables are there, but a table or routine is missing, or this user may not "
        "use it; `rowlock check` says more, and `rowlock upgrade` makes routines again");
}

static int install(rowlock_db *db)
{
    int result = rlk_refuse_objects(db, 0);
    if (result != ROWLOCK_OK)
        return result;
    result = rlk_look_anew(db);
    if (result == ROWLOCK_OK)
        return look_at_installation(db);
    if (result != ROWLOCK_ESCHEMA || db->meta.found)
        return result;
    const char *script = db->texts.sql[RLK_STEP_SCHEMA];
    struct rlk_ask ask = {.script = script ? script : "", .retryable_if_lost = true};
    if ((result = rlk_ask(db, &ask)) != ROWLOCK_OK ||
        (result = rlk_refuse_objects(db, RLK_LEVEL)) != ROWLOCK_OK)
        return result;
    result = rlk_look_anew(db);
    return result == ROWLOCK_ESCHEMA ? fail_foreign(db) : rlk_end_call(db, result);
}

int rowlock_install(rowlock_db *db)
{
    int result = rlk_need_database(db, rlk_enter(db, "install the tables", NULL));
    return result == ROWLOCK_OK ? rlk_advise_denied(db, install(db)) : result;
}
