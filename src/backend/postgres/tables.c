/* SPDX-License-Identifier: MIT
 * Installing our tables, and what rowlock_check() asks about the server. */
#include "driver.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A server counts the standbys that it sends to itself. A standby does not know of others. */
static void describe_standbys(const rowlock_value *standbys, const char *sync_names,
                              const char *commit, bool one_is_waited_for, struct rlk_facts *out)
{
    int64_t count = standbys->number;
    bool known = standbys->kind != ROWLOCK_NULL;
    bool none = known && count == 0;
    bool waits = sync_names[0] && strcmp(commit, "off") != 0 && strcmp(commit, "local") != 0;
    out->replication_known = known;
    out->replicates_late = !none && !waits;
    out->cut_off = known && waits && (none || !one_is_waited_for);
    if (!known)
        snprintf(out->replication, sizeof out->replication, "unknown: this server is a standby");
    else if (none)
        snprintf(out->replication, sizeof out->replication, "no standby is connected%s",
                 waits ? ", and commits wait for one" : "");
    else if (waits)
        snprintf(out->replication, sizeof out->replication, "synchronous, standbys: %" PRId64 "%s",
                 count, out->cut_off ? ", and commits wait for another" : "");
    else
        snprintf(out->replication, sizeof out->replication,
                 "asynchronous, standbys: %" PRId64 " (%s%.20s)", count,
                 sync_names[0] ? "synchronous_commit " : "no synchronous_standby_names",
                 sync_names[0] ? commit : "");
}

static int read_facts(void *context, const rowlock_value *cells, size_t count)
{
    enum { SERVER, ISOLATION, READ_ONLY, NOW, COMMIT, FSYNC, LOGGED, COLLATION, BYTEWISE };
    enum { MAY_LOCK = BYTEWISE + 1, STANDBYS, SYNC_NAMES, WAITED_FOR, READS_ONLY };
    struct rlk_facts *out = context;
    if (!rlk_cells_fit("ttbmttBTBbItBb", cells, count))
        return 1;
    const char *commit = cells[COMMIT].text;
    const char *fsync = cells[FSYNC].text;
    bool known = cells[COLLATION].kind != ROWLOCK_NULL;
    bool waited_for = cells[WAITED_FOR].kind == ROWLOCK_NULL || cells[WAITED_FOR].number;
    snprintf(out->server, sizeof out->server, "%s", cells[SERVER].text);
    snprintf(out->isolation, sizeof out->isolation, "%s", cells[ISOLATION].text);
    out->read_only = cells[READ_ONLY].number != 0;
    out->now_us = cells[NOW].number;
    snprintf(out->durability, sizeof out->durability, "synchronous_commit %.20s, fsync %.10s",
             commit, fsync);
    out->durable = strcmp(commit, "off") != 0 && strcmp(fsync, "on") == 0;
    out->crash_safe = cells[LOGGED].number != 0;
    snprintf(out->engine, sizeof out->engine, "%s tables", out->crash_safe ? "logged" : "unlogged");
    snprintf(out->collation, sizeof out->collation, "%s", known ? cells[COLLATION].text : "");
    out->bytewise = cells[BYTEWISE].number != 0;
    out->may_lock = cells[MAY_LOCK].number != 0;
    out->reads_only = cells[READS_ONLY].number != 0;
    describe_standbys(&cells[STANDBYS], cells[SYNC_NAMES].text, commit, waited_for, out);
    return 0;
}

/* After a failure the schema's own BEGIN is still open. Then it is rolled back: check_usable() has
 * seen that it is not the caller's transaction. */
enum rlk_class pg_install(void *conn, struct rlk_call *call)
{
    struct pg *p = conn;
    PGresult *r = NULL;
    enum rlk_class class = pg_check_usable(p, call);
    if (class != RLK_DONE)
        return class;
    class = pg_say(p, call, p->texts->sql[RLK_STEP_SCHEMA], &r);
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
    struct pg *p = conn;
    struct rlk_query query = {.step = RLK_STEP_FACTS,
                              .sql = p->texts->sql[RLK_STEP_FACTS],
                              .each = read_facts,
                              .context = out};
    enum rlk_class class = pg_query(p, call, &query);
    if (class == RLK_DONE && !out->server[0])
        return rlk_diag_misfit(call, RLK_STEP_FACTS);
    out->pooled = !p->adopted && !p->direct;
    return class;
}
