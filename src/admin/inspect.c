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
                 "there, and grant what sql/*/install/grants.sql says");
    return result;
}

int rlk_look_anew(rowlock_db *db)
{
    rlk_distrust(db);
    return rlk_look_at_tables(db, RLK_OUTSIDE, 0);
}

/* A dialect may end its answer before REPLICATION. Its driver fills in those facts then. */
static int read_facts(void *out, const rowlock_value *cells, size_t count)
{
    enum { SERVER, NOW, READ_ONLY, ISOLATION, ANY_ISOLATION, ENGINE, CRASH_SAFE, COLLATION };
    enum { BYTEWISE = COLLATION + 1, DURABILITY, DURABLE, MAY_LOCK, READS_ONLY };
    enum { REPLICATION = READS_ONLY + 1, REPLICATION_KNOWN, REPLICATES_LATE, CUT_OFF };
    enum { NO_STANDBY = CUT_OFF + 1, EXPECTS_STANDBY };
    struct rlk_facts *facts = out;
    COPY(&cells[SERVER], facts->server);
    facts->now_us = cells[NOW].number;
    facts->read_only = cells[READ_ONLY].number != 0;
    COPY(&cells[ISOLATION], facts->isolation);
    facts->any_isolation = cells[ANY_ISOLATION].number != 0;
    COPY(&cells[ENGINE], facts->engine);
    facts->crash_safe = cells[CRASH_SAFE].number != 0;
    COPY(&cells[COLLATION], facts->collation);
    facts->bytewise = cells[BYTEWISE].number != 0;
    COPY(&cells[DURABILITY], facts->durability);
    facts->durable = cells[DURABLE].number != 0;
    facts->may_lock = cells[MAY_LOCK].number != 0;
    facts->reads_only = cells[READS_ONLY].number != 0;
    if (count == REPLICATION)
        return 0;
    COPY(&cells[REPLICATION], facts->replication);
    facts->replication_known = cells[REPLICATION_KNOWN].number != 0;
    facts->replicates_late = cells[REPLICATES_LATE].number != 0;
    facts->cut_off = cells[CUT_OFF].number != 0;
    facts->no_standby = cells[NO_STANDBY].number != 0;
    facts->expects_standby = cells[EXPECTS_STANDBY].number != 0;
    return 0;
}

static void forget_facts(void *out)
{
    *(struct rlk_facts *)out = (struct rlk_facts){.server = ""};
}

int rlk_examine(rowlock_db *db, struct rlk_facts *facts)
{
    struct rlk_ask ask = {.step = RLK_STEP_FACTS,
                          .facts = facts,
                          .read = read_facts,
                          .out = facts,
                          .restart = forget_facts};
    int result = rlk_ask(db, &ask);
    facts->asked_us = rlk_wall_us() - (rlk_now_us() - ask.sent_us) / 2;
    return result;
}
