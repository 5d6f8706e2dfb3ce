/* SPDX-License-Identifier: MIT
 * Install our tables, or write the script that does. */
#include "db/inspect.h"
#include "seam/resend.h"
#include "seam/statements.h"

#include <string.h>

static enum rlk_class run_install(rowlock_db *db, struct rlk_call *call, void *context)
{
    (void)context;
    return db->backend->install(db->conn, call);
}

int rowlock_install_script(rowlock_db *db,
                           int (*write)(void *context, const char *sql, size_t length),
                           void *context)
{
    int result = rlk_enter(db, "write the script that installs", NULL);
    if (result == ROWLOCK_OK)
        rlk_texts_script(&db->texts, db->backend, write, context);
    return result;
}

static int refuse_objects(rowlock_db *db, bool before_install)
{
    struct rlk_inspection i = {.before_install = before_install};
    int result = rlk_inspect(db, &i);
    if (result != ROWLOCK_OK || i.found == 0)
        return result;
    return rlk_fail(db, ROWLOCK_ESCHEMA, "%s is not as rowlock makes it: %s", i.object, i.problem);
}

/* Tables are in place; are the routines too, as far as this user may know? */
static bool may_lock(rowlock_db *db)
{
    struct rlk_facts facts = {0};
    return rlk_examine(db, &facts) == ROWLOCK_OK && facts.may_lock;
}

/* A name of ours is taken by a table that CREATE TABLE IF NOT EXISTS was content with. */
static int fail_foreign(rowlock_db *db)
{
    char cause[300];
    rlk_copy_text(cause, sizeof cause, db->error.text, strcspn(db->error.text, ";"));
    return rlk_fail(
        db, ROWLOCK_ESCHEMA,
        "a table named like ours has other columns (%s): another program's, or damaged; "
        "rename it, or choose another schema or prefix",
        cause);
}

/* The schema is run even where the tables are fine, since it mends what else is missing; but
 * then a user who may not run it need not. Tables that are newer, or that no rowlock wrote, stay
 * as they are. */
int rowlock_install(rowlock_db *db)
{
    int result = rlk_enter(db, "install the tables", NULL);
    if (result != ROWLOCK_OK)
        return result;
    if ((result = refuse_objects(db, true)) != ROWLOCK_OK)
        return result;
    int before = rlk_look_anew(db);
    bool upgradable = db->found_version >= 0 && db->found_version < RLK_SCHEMA_VERSION;
    if (before != ROWLOCK_OK && !(before == ROWLOCK_ESCHEMA && upgradable))
        return before;
    struct rlk_step_call step = {.run = run_install, .without_tables = true};
    result = rlk_do(db, &step);
    if (result != ROWLOCK_OK && (before != ROWLOCK_OK || !may_lock(db)))
        return result;
    result = refuse_objects(db, false);
    if (result != ROWLOCK_OK)
        return result;
    result = rlk_look_anew(db);
    return result == ROWLOCK_ESCHEMA ? fail_foreign(db) : result;
}
