/* SPDX-License-Identifier: MIT
 * Install our tables, and check a database as a doctor would. What operators ask of locks that stand there
 * is in admin.c. */
#include "seam/resend.h"
#include "seam/seam.h"
#include "seam/statements.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- install */

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

/* ---- are the objects ours? */

/* What is there by the name of one of our tables or routines, and is not as we made it. */
struct inspecting {
    bool before_install; /* what install mends by itself is no obstacle */
    int found; /* how many */
    int warned; /* and how many that are no more than a risk */
    bool mended; /* install mends all of them */
    char object[160]; /* the first that matters most */
    char problem[300];
};

static void start_inspecting(void *context)
{
    struct inspecting *i = context;
    *i = (struct inspecting){.before_install = i->before_install, .mended = true};
}

static int take_object(void *context, const rowlock_value *cells, size_t count)
{
    enum { OBJECT, PROBLEM, MENDED };
    struct inspecting *i = context;
    (void)count;
    bool warning = cells[MENDED].kind == ROWLOCK_NULL;
    bool mended = warning || cells[MENDED].number != 0;
    if (i->before_install && mended)
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

static enum rlk_class run_objects(rowlock_db *db, struct rlk_call *call, void *context)
{
    start_inspecting(context);
    const rowlock_value schema = rowlock_text(db->texts.sql[RLK_STEP_SCHEMA]);
    struct rlk_sending s = {
        .step = RLK_STEP_OBJECTS, .in = &schema, .read = take_object, .out = context};
    enum rlk_class class = rlk_send(db, call, &s);
    if (class == RLK_SCHEMA &&
        s.rows == 0) /* not even the database is there: nothing is by our names */
        return RLK_DONE;
    return class == RLK_UNCERTAIN ? RLK_UNSENT : class; /* a plain read */
}

/* Asked before anything of ours is read or called there: it could be somebody's trap. */
static int inspect(rowlock_db *db, struct inspecting *i)
{
    start_inspecting(i);
    if (!db->texts.sql[RLK_STEP_OBJECTS])
        return ROWLOCK_OK;
    struct rlk_step_call step = {.run = run_objects, .context = i, .without_tables = true};
    return rlk_do(db, &step);
}

static int refuse_objects(rowlock_db *db, bool before_install)
{
    struct inspecting i = {.before_install = before_install};
    int result = inspect(db, &i);
    if (result != ROWLOCK_OK || i.found == 0)
        return result;
    return rlk_fail(db, ROWLOCK_ESCHEMA, "%s is not as rowlock makes it: %s", i.object, i.problem);
}

/* Whether the tables are as they should be, now. */
static int tables_are_fine(rowlock_db *db)
{
    db->schema_ok = false;
    return rlk_look_at_tables(db, RLK_OUTSIDE);
}

/* ---- check */

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

struct examining {
    struct rlk_facts facts;
    int64_t asked_us; /* wall clock of this machine, halfway through the question */
};

static int64_t wall_clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static enum rlk_class run_facts(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct examining *e = context;
    memset(&e->facts, 0, sizeof e->facts);
    int64_t before = wall_clock_us();
    enum rlk_class class = db->backend->facts(db->conn, call, &e->facts);
    e->asked_us = before + (wall_clock_us() - before) / 2;
    return class == RLK_UNCERTAIN ? RLK_UNSENT : class; /* plain reads */
}

static void judge_clock(struct checking *c, const struct examining *e)
{
    enum { TOLERATED_US = 1000000 };
    int64_t off = e->facts.now_us - e->asked_us;
    char value[64];
    snprintf(value, sizeof value, "%+.3f s from this machine's", (double)off / 1e6);
    bool fine = off < TOLERATED_US && off > -TOLERATED_US;
    report(c, "clock", value, fine ? ROWLOCK_FINE : ROWLOCK_WARNING,
           "leases are measured by the server's clock alone, so locks are safe; but one of the two "
           "clocks is wrong");
}

static void judge_access(struct checking *c, const struct rlk_facts *f)
{
    if (!f->access[0])
        return;
    const char *advice = "who may read the file can stop all who write: chmod 600";
    if (f->others_write)
        advice =
            "every user of this machine may write or replace the file: chmod 600 the file, and "
            "chmod o-w the folder";
    report(c, "access", f->access,
           f->others_write  ? ROWLOCK_BAD
           : f->others_read ? ROWLOCK_WARNING
                            : ROWLOCK_FINE,
           advice);
}

static const char *advise_on_replication(const struct rlk_facts *f)
{
    if (f->cut_off)
        return "no lock is granted or renewed until the missing servers are back: start them, or "
               "use a server that has a majority";
    if (!f->replication_known)
        return "ask whether a commit waits for the server that would be promoted; if it does not, "
               "a failover can lose grants and repeat tokens: `rowlock raise-tokens` after each";
    if (f->may_turn_late)
        return "after that time a failover can lose grants and repeat tokens: raise "
               "rpl_semi_sync_master_timeout (MySQL: rpl_semi_sync_source_timeout) to a day or "
               "more, or `rowlock raise-tokens` after each failover";
    return "a failover to a server that was behind loses grants and repeats tokens: make commits "
           "wait for it (PostgreSQL: synchronous_standby_names, synchronous_commit=on; MySQL, "
           "MariaDB: semi-synchronous), or `rowlock raise-tokens` after each failover";
}

static void judge_replication(struct checking *c, const struct rlk_facts *f)
{
    bool fine = f->replication_known && !f->replicates_late && !f->may_turn_late;
    report(c, "replication", f->replication[0] ? f->replication : "unknown",
           f->cut_off ? ROWLOCK_BAD
           : fine     ? ROWLOCK_FINE
                      : ROWLOCK_WARNING,
           advise_on_replication(f));
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
               "enough to list, show and check; to take locks, grant what sql/*/install/grants.sql "
               "says");
    else
        report(c, "privileges", f->may_lock ? "may take locks" : "may not take locks",
               f->may_lock ? ROWLOCK_FINE : ROWLOCK_BAD,
               "grant all that sql/*/install/grants.sql says; if a table or routine was dropped, "
               "install "
               "again");
}

static void judge_facts(struct checking *c, const struct examining *e)
{
    const struct rlk_facts *f = &e->facts;
    bool isolation_fine = f->any_isolation || strcmp(f->isolation, "read committed") == 0;
    report(c, "server", f->server, ROWLOCK_FINE, "");
    report(
        c, "writable", f->read_only ? "no" : "yes", f->read_only ? ROWLOCK_BAD : ROWLOCK_FINE,
        "it takes no writes: a replica (name the primary in the URL), or a file or folder without "
        "write permission");
    judge_privileges(c, f);
    report(c, "isolation", f->isolation, isolation_fine ? ROWLOCK_FINE : ROWLOCK_WARNING,
           "contended steps will be retried more often; read committed is best for the role that "
           "takes locks");
    report(
        c, "engine", f->engine, f->crash_safe ? ROWLOCK_FINE : ROWLOCK_BAD,
        "a crash of the server would lose locks and tokens: use InnoDB, logged tables, a journal");
    report(
        c, "collation", f->collation, f->bytewise ? ROWLOCK_FINE : ROWLOCK_BAD,
        "names must compare byte by byte, or unrelated locks become one: install the tables anew");
    report(c, "durability", f->durability, f->durable ? ROWLOCK_FINE : ROWLOCK_WARNING,
           "a crash of the server can undo a grant that was answered, and repeat its token");
    judge_replication(c, f);
    judge_nodes(c, f);
    judge_access(c, f);
    report(c, "pooler",
           f->pooled ? "one is in between, taken for one of transactions" : "none seen",
           ROWLOCK_FINE, "");
    judge_clock(c, e);
}

/* What stands between us and the tables is a finding too; only a lost connection is a failure. */
static int judge_tables(rowlock_db *db, struct checking *c)
{
    int result = tables_are_fine(db);
    char value[256];
    snprintf(value, sizeof value, "version %d in '%s', installation %s", RLK_SCHEMA_VERSION,
             db->texts.schema, db->identity);
    if (result == ROWLOCK_OK)
        report(c, "tables", value, ROWLOCK_FINE, "");
    else if (result == ROWLOCK_ESCHEMA || result == ROWLOCK_EDENIED)
        report(c, "tables",
               result == ROWLOCK_ESCHEMA && db->found_version == 0 ? "not installed, or not whole"
                                                                   : "not usable",
               ROWLOCK_BAD, db->error.text);
    return result;
}

static void judge_objects(struct checking *c, const struct inspecting *i)
{
    char value[220];
    int count = i->found ? i->found : i->warned;
    if (count == 0)
        snprintf(value, sizeof value, "as rowlock makes them");
    else if (count == 1)
        snprintf(value, sizeof value, "%s", i->object);
    else
        snprintf(value, sizeof value, "%s, and %d more", i->object, count - 1);
    report(c, "objects", value,
           i->found    ? ROWLOCK_BAD
           : i->warned ? ROWLOCK_WARNING
                       : ROWLOCK_FINE,
           i->problem);
}

int rowlock_check(rowlock_db *db, int (*each)(void *context, const rowlock_finding *finding),
                  void *context, rowlock_verdict *worst)
{
    int result = rlk_enter(db, "check the database", NULL);
    if (result != ROWLOCK_OK)
        return result;
    struct checking c = {.each = each, .context = context};
    struct inspecting i = {0};
    result = inspect(db, &i);
    bool may_go_on = result == ROWLOCK_OK && i.mended;
    bool all_fine = i.found + i.warned == 0; /* or nothing is there, which the tables tell */
    if (result == ROWLOCK_OK && !all_fine)
        judge_objects(&c, &i);
    if (may_go_on)
        result = judge_tables(db, &c);
    if (may_go_on && result == ROWLOCK_OK) {
        if (all_fine && db->texts.sql[RLK_STEP_OBJECTS])
            judge_objects(&c, &i);
        struct examining e = {0};
        struct rlk_step_call step = {.run = run_facts, .context = &e};
        result = rlk_do(db, &step);
        if (result == ROWLOCK_OK)
            judge_facts(&c, &e);
    }
    if (c.worst == ROWLOCK_BAD)
        result = ROWLOCK_OK;
    if (worst && result == ROWLOCK_OK)
        *worst = c.worst;
    return result;
}

/* Tables are in place; are the routines too, as far as this user may know? */
static bool may_lock(rowlock_db *db)
{
    struct examining e = {0};
    struct rlk_step_call step = {.run = run_facts, .context = &e};
    return rlk_do(db, &step) == ROWLOCK_OK && e.facts.may_lock;
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

/* The schema is run even where the tables are fine, since it mends what else is missing; but then a
 * user who may not run it need not. Tables that are newer, or that no rowlock wrote, stay as they are. */
int rowlock_install(rowlock_db *db)
{
    int result = rlk_enter(db, "install the tables", NULL);
    if (result != ROWLOCK_OK)
        return result;
    if ((result = refuse_objects(db, true)) != ROWLOCK_OK)
        return result;
    int before = tables_are_fine(db);
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
    result = tables_are_fine(db);
    return result == ROWLOCK_ESCHEMA ? fail_foreign(db) : result;
}
