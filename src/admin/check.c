/* SPDX-License-Identifier: MIT
 * Checks a database. Each finding has a verdict, and says what to do. */
#include "admin/inspect.h"
#include "quorum/quorum.h"
#include "core/ask.h"
#include "core/core.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct checking {
    int (*each)(void *context, const rowlock_finding *finding);
    void *context;
    rowlock_verdict worst;
    bool stopped;
};

static void report(struct checking *c, const char *item, const char *value, rowlock_verdict verdict,
                   const char *advice)
{
    if (verdict > c->worst)
        c->worst = verdict;
    const rowlock_finding finding = {.item = item,
                                     .value = value,
                                     .advice = verdict == ROWLOCK_FINE ? "" : advice,
                                     .verdict = verdict};
    if (!c->stopped && c->each && c->each(c->context, &finding) != 0)
        c->stopped = true;
}

static void judge_clock(struct checking *c, const struct rlk_facts *f)
{
    enum { TOLERATED_US = 1000000 };
    int64_t off = f->now_us - f->asked_us;
    char value[64];
    snprintf(value, sizeof value, "%+.3f s from this machine's", (double)off / 1e6);
    bool fine = off < TOLERATED_US && off > -TOLERATED_US;
    report(c, "clock", value, fine ? ROWLOCK_FINE : ROWLOCK_WARNING,
           "locks are safe, because only the server's clock counts; but one of the two clocks is "
           "wrong");
}

static void judge_access(struct checking *c, const struct rlk_facts *f)
{
    if (!f->access[0])
        return;
    const char *advice = "a user who may read the file can block all writers: chmod 600";
    if (f->others_beside)
        advice = "every user of this machine may put files beside the file, such as a journal that "
                 "changes it: move it to a folder that only its users may write";
    if (f->others_write)
        advice =
            "every user of this machine may write or replace the file: chmod 600 the file, and "
            "chmod o-w the folder";
    report(c, "access", f->access,
           f->others_write                      ? ROWLOCK_BAD
           : f->others_read || f->others_beside ? ROWLOCK_WARNING
                                                : ROWLOCK_FINE,
           advice);
}

static const char *advise_on_replication(const struct rlk_facts *f, bool missing)
{
    if (missing && !f->cut_off)
        return "if this server is lost, so are all grants and tokens: connect a standby; if there "
               "is to be none, name one host in the URL, and drop slots and settings of a standby";
    if (f->cut_off)
        return "no lock is granted or renewed until the missing servers are back: start them, or "
               "use a server that has a majority";
    if (!f->replication_known)
        return "find out whether a commit waits for the server that would be promoted; if not, a "
               "failover can lose grants and repeat tokens: run `rowlock raise-tokens` after each";
    if (f->may_turn_late)
        return "after that time a failover can lose grants and repeat tokens: raise "
               "rpl_semi_sync_master_timeout (MySQL: rpl_semi_sync_source_timeout) to a day or "
               "more, or run `rowlock raise-tokens` after each failover";
    return "a failover to a server that was behind loses grants and repeats tokens: make commits "
           "wait for it (PostgreSQL: synchronous_standby_names, synchronous_commit=on; MySQL, "
           "MariaDB: semi-synchronous), or run `rowlock raise-tokens` after each failover";
}

static void judge_replication(struct checking *c, const struct rlk_facts *f, bool several)
{
    bool hosted = f->service[0] && !f->read_only && (f->no_standby || !f->replication_known);
    bool missing = f->no_standby && (several || f->expects_standby);
    bool fine = f->replication_known && !f->replicates_late && !f->may_turn_late && !missing;
    char value[sizeof f->replication + sizeof f->service + 40];
    snprintf(value, sizeof value, "%s%s%s", f->replication[0] ? f->replication : "unknown",
             hosted ? "; not seen here: the copies of " : "", hosted ? f->service : "");
    report(c, "replication", value,
           f->cut_off       ? ROWLOCK_BAD
           : hosted || fine ? ROWLOCK_FINE
                            : ROWLOCK_WARNING,
           advise_on_replication(f, missing));
}

static void judge_nodes(struct checking *c, const struct rlk_facts *f)
{
    static const rowlock_verdict verdicts[] = {
        [RLK_NEVER] = ROWLOCK_FINE, [RLK_PERHAPS] = ROWLOCK_WARNING, [RLK_SURELY] = ROWLOCK_BAD};
    if (f->nodes[0])
        report(c, "nodes", f->nodes, verdicts[f->nodes_lag],
               "under a lock that was granted on another node a read can miss the last holder's "
               "work: write to one node only, or set wsrep_sync_wait=1 (MySQL: "
               "group_replication_consistency=BEFORE) where the data is read");
}

static void judge_privileges(struct checking *c, const struct rlk_facts *f)
{
    if (f->reads_only && !f->may_lock)
        report(c, "privileges", "may only read", ROWLOCK_WARNING,
               "enough to list, show and check; to take locks, grant what `rowlock install "
               "--print-grants` prints");
    else
        report(c, "privileges",
               f->may_lock ? "may take locks" : "may not use all of the tables and routines",
               f->may_lock ? ROWLOCK_FINE : ROWLOCK_BAD,
               "grant what `rowlock install --print-grants` prints; if a table was dropped, see 'A "
               "table is gone' in OPERATIONS; if a routine was, run `rowlock upgrade`");
}

static void judge_facts(struct checking *c, const struct rlk_facts *f, bool several)
{
    bool isolation_fine = f->any_isolation || strcmp(f->isolation, "read committed") == 0;
    report(c, "server", f->server, ROWLOCK_FINE, "");
    report(c, "writable",
           f->disk_full   ? "no: the disk is full"
           : f->read_only ? "no"
                          : "yes",
           f->disk_full || f->read_only ? ROWLOCK_BAD : ROWLOCK_FINE,
           f->disk_full ? "make room on the disk of the database file"
                        : "it takes no writes: a replica (name the primary in the URL), or a file "
                          "or folder without write permission");
    judge_privileges(c, f);
    report(
        c, "isolation", f->isolation, isolation_fine ? ROWLOCK_FINE : ROWLOCK_WARNING,
        "contended steps are retried more often; use read committed for the role that takes locks");
    report(
        c, "engine", f->engine, f->crash_safe ? ROWLOCK_FINE : ROWLOCK_BAD,
        "a crash of the server would lose locks and tokens: use InnoDB, logged tables, a journal");
    report(
        c, "collation", f->collation, f->bytewise ? ROWLOCK_FINE : ROWLOCK_BAD,
        "names must compare byte by byte, or unrelated locks become one: install the tables anew");
    report(c, "durability", f->durability, f->durable ? ROWLOCK_FINE : ROWLOCK_WARNING,
           "a crash of the server can undo a grant that was answered, and repeat its token");
    judge_replication(c, f, several);
    judge_nodes(c, f);
    judge_access(c, f);
    report(c, "pooler", f->pooled ? "one is in between; transaction mode is assumed" : "none seen",
           ROWLOCK_FINE, "");
    judge_clock(c, f);
}

/* Tables that cannot be used are a finding. Only a lost connection is a failure. */
static int judge_tables(rowlock_db *db, struct checking *c)
{
    int result = rlk_look_anew(db);
    char value[320];
    snprintf(value, sizeof value,
             "version %" PRId64 ", compat %" PRId64 ", code %" PRId64 " in '%s', installation %s",
             db->meta.version, db->meta.compat, db->meta.code, db->texts.schema,
             db->texts.identity);
    if (result == ROWLOCK_OK)
        report(c, "tables", value, ROWLOCK_FINE, "");
    else if (rlk_advise_denied(db, result) == ROWLOCK_ESCHEMA || result == ROWLOCK_EDENIED)
        report(c, "tables",
               result == ROWLOCK_ESCHEMA && !db->meta.found ? "not installed, or not whole"
                                                            : "not usable",
               ROWLOCK_BAD, db->error.text);
    return result;
}

static void judge_upgrade(struct checking *c, const struct rlk_meta *meta)
{
    bool behind = meta->version < RLK_LEVEL || meta->code < RLK_CODE;
    bool ahead = meta->version > RLK_LEVEL || meta->code > RLK_CODE;
    report(c, "upgrade",
           behind  ? "the tables or routines are older than this library"
           : ahead ? "the tables are newer, and compatible"
                   : "not needed",
           behind ? ROWLOCK_WARNING : ROWLOCK_FINE,
           "locks work; run `rowlock upgrade` at any time, also while programs use the tables");
}

/* swept_us below 0: never, and at -swept_us the tables were installed. */
static void judge_sweeps(struct checking *c, int64_t swept_us, int64_t now_us)
{
    enum { TOLERATED_DAYS = 8, DAY_S = 86400 };
    int64_t since_us = swept_us < 0 ? -swept_us : swept_us;
    int64_t days = (now_us - since_us) / 1000000 / DAY_S;
    time_t seconds = (time_t)(since_us / 1000000);
    struct tm when;
    char date[40] = "", value[120];
    if (gmtime_r(&seconds, &when))
        strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S UTC", &when);
    snprintf(value, sizeof value, "%s%s, %" PRId64 " day%s ago",
             swept_us > 0 ? "" : "never; installed ", date, days, days == 1 ? "" : "s");
    report(
        c, "swept", value, days < TOLERATED_DAYS ? ROWLOCK_FINE : ROWLOCK_WARNING,
        "sweep once a day, from cron, a timer or a scheduler of the database, so that the tables "
        "stay small (docs/OPERATIONS.md)");
}

struct event {
    char value[160], advice[300];
};

/* Does the database sweep by itself, and does it on this server? */
static int judge_events(rowlock_db *db, struct checking *c)
{
    static const struct rlk_field fields[] = {RLK_FIELD(struct event, value),
                                              RLK_FIELD(struct event, advice)};
    struct event event = {{0}, {0}};
    struct rlk_ask ask = {.step = RLK_STEP_EVENTS, .fields = fields, .out = &event};
    int result = db->texts.sql[RLK_STEP_EVENTS] ? rlk_ask(db, &ask) : ROWLOCK_OK;
    if (event.value[0])
        report(c, "event", event.value, event.advice[0] ? ROWLOCK_WARNING : ROWLOCK_FINE,
               event.advice);
    return result;
}

static void judge_objects(struct checking *c, const struct rlk_inspection *i)
{
    char value[220];
    int count = i->found ? i->found : i->warned;
    snprintf(value, sizeof value, "%s", count ? i->object : "as rowlock makes them");
    if (count > 1)
        snprintf(value, sizeof value, "%s, and %d more", i->object, count - 1);
    report(c, "objects", value,
           i->found    ? ROWLOCK_BAD
           : i->warned ? ROWLOCK_WARNING
                       : ROWLOCK_FINE,
           i->problem);
}

/* A restart can be told here. Whether the member was restored, only the others know. */
static void judge_quorum(rowlock_db *db, struct checking *c)
{
    struct rlk_view view = {0};
    struct rlk_ask ask = {.step = RLK_STEP_NONE};
    struct rlk_call call;
    int result = ROWLOCK_OK;
    char value[160];
    rlk_step_members(&ask, &view);
    if (rlk_attempt(db, &ask, &call, &result) != RLK_DONE || result != ROWLOCK_OK || !view.members)
        return;
    bool votes = view.self && !view.restarted;
    snprintf(value, sizeof value, "member %zu of %zu of %s%s", view.self, view.members, view.quorum,
             votes       ? ""
             : view.self ? "; it does not vote, since its server was restarted"
                         : "; it does not vote, since quorum-join has not ended");
    report(c, "quorum", value, votes ? ROWLOCK_FINE : ROWLOCK_BAD,
           "run `rowlock quorum-join` with the URLs of all members");
}

int rowlock_check(rowlock_db *db, int (*each)(void *context, const rowlock_finding *finding),
                  void *context, rowlock_verdict *worst)
{
    int result = rlk_need_database(db, rlk_enter(db, "check the database", NULL));
    if (result != ROWLOCK_OK)
        return result;
    struct checking c = {.each = each, .context = context};
    struct rlk_inspection i = {0};
    result = rlk_inspect(db, &i);
    bool may_go_on = result == ROWLOCK_OK && i.mended;
    /* True also if there are no tables. judge_tables() reports those. */
    bool all_fine = i.found + i.warned == 0;
    if (result == ROWLOCK_OK && !all_fine)
        judge_objects(&c, &i);
    if (may_go_on)
        result = judge_tables(db, &c);
    if (may_go_on && result == ROWLOCK_OK) {
        judge_upgrade(&c, &db->meta);
        judge_quorum(db, &c);
        i.version = db->meta.version;
        if (i.undecided > 0)
            result = rlk_inspect(db, &i);
        if (all_fine && db->texts.sql[RLK_STEP_OBJECTS])
            judge_objects(&c, &i);
    }
    if (may_go_on && result == ROWLOCK_OK) {
        struct rlk_facts facts = {0};
        int64_t swept_us = db->meta.swept_us;
        result = rlk_examine(db, &facts);
        if (result == ROWLOCK_OK) {
            judge_sweeps(&c, swept_us, facts.now_us);
            result = judge_events(db, &c);
        }
        if (result == ROWLOCK_OK)
            judge_facts(&c, &facts, db->several);
    }
    if (c.worst == ROWLOCK_BAD)
        result = ROWLOCK_OK;
    rlk_advise_denied(db, result);
    if (worst && result == ROWLOCK_OK)
        *worst = c.worst;
    return rlk_end_call(db, result);
}
