/* SPDX-License-Identifier: MIT
 * Asks which tables and routines have our names, and what the server is like. install.c, upgrade.c
 * and check.c judge the answers. */
#include "admin/inspect.h"
#include "core/ask.h"
#include "core/step_cells.h"

#include <stdio.h>
#include <string.h>

static void start_inspecting(void *context)
{
    struct rlk_inspection *i = context;
    *i = (struct rlk_inspection){.version = i->version, .mended = true};
}

/* level above 0: tables of a later version than ours may have this problem. level below 0: tables
 * of an earlier version may have it. */
static bool is_left_out(struct rlk_inspection *i, int64_t level, bool mended)
{
    bool unknown = i->version == 0 && (level != 0 || mended);
    i->undecided += unknown;
    return unknown || (level > 0 && i->version > RLK_LEVEL) ||
           (level < 0 && i->version < RLK_LEVEL);
}

static int take_object(void *context, const rowlock_value *cells, size_t count)
{
    enum { OBJECT, PROBLEM, MENDED, LEVEL };
    struct rlk_inspection *i = context;
    bool warning = cells[MENDED].kind == ROWLOCK_NULL;
    bool mended = warning || cells[MENDED].number != 0;
    if (is_left_out(i, count > LEVEL ? cells[LEVEL].number : 0, mended))
        return 0;
    if (warning ? i->found + i->warned == 0 : i->found == 0 || (i->mended && !mended)) {
        rlk_copy_text(i->object, sizeof i->object, cells[OBJECT].text, cells[OBJECT].length);
        rlk_copy_text(i->problem, sizeof i->problem, cells[PROBLEM].text, cells[PROBLEM].length);
    }
    i->mended = i->mended && mended;
    i->found += !warning;
    i->warned += warning;
    return 0;
}

int rlk_inspect(rowlock_db *db, struct rlk_inspection *i)
{
    struct rlk_ask ask = {.step = RLK_STEP_OBJECTS,
                          .in = {rowlock_text(db->texts.sql[RLK_STEP_SCHEMA])},
                          .read = take_object,
                          .out = i,
                          .restart = start_inspecting};
    start_inspecting(i);
    int result = db->texts.sql[RLK_STEP_OBJECTS] ? rlk_ask(db, &ask) : ROWLOCK_OK;
    /* The database itself is missing, so no object has our names. */
    return result == ROWLOCK_ESCHEMA && ask.rows == 0 ? rlk_end_call(db, ROWLOCK_OK) : result;
}

int rlk_refuse_objects(rowlock_db *db, int64_t version)
{
    struct rlk_inspection i = {.version = version};
    int result = rlk_inspect(db, &i);
    if (result != ROWLOCK_OK || i.found == 0)
        return result;
    return rlk_fail(db, ROWLOCK_ESCHEMA, "%s is not as rowlock makes it: %s", i.object, i.problem);
}

int rlk_advise_denied(rowlock_db *db, int result)
{
    size_t used = strlen(db->error.text);
    if (result == ROWLOCK_EDENIED && !db->driver->local)
        snprintf(db->error.text + used, sizeof db->error.text - used,
                 "; let a DBA run what `rowlock install --print` prints, if the tables are not "
                 "there, and what `rowlock install --print-grants` prints");
    return result;
}

int rlk_look_anew(rowlock_db *db)
{
    rlk_distrust(db);
    return rlk_look_at_tables(db, RLK_OUTSIDE, 0);
}

static void forget_facts(void *out)
{
    *(struct rlk_facts *)out = (struct rlk_facts){.server = ""};
}

/* A dialect may end its answer before what it says about replication. Its driver fills in those
 * facts then. */
#define OF(member) RLK_FIELD(struct rlk_facts, member)
static const struct rlk_field facts_fields[] = {
    OF(server),          OF(now_us),     OF(read_only),   OF(isolation),
    OF(any_isolation),   OF(engine),     OF(crash_safe),  OF(collation),
    OF(bytewise),        OF(durability), OF(durable),     OF(may_lock),
    OF(reads_only),      OF(service),    OF(replication), OF(replication_known),
    OF(replicates_late), OF(cut_off),    OF(no_standby),  OF(expects_standby),
};
#undef OF

int rlk_examine(rowlock_db *db, struct rlk_facts *facts)
{
    struct rlk_ask ask = {.step = RLK_STEP_FACTS,
                          .facts = facts,
                          .fields = facts_fields,
                          .out = facts,
                          .restart = forget_facts};
    int result = rlk_ask(db, &ask);
    facts->asked_us = rlk_wall_us() - (rlk_now_us() - ask.sent_us) / 2;
    return result;
}
