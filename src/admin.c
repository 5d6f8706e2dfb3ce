/* SPDX-License-Identifier: MIT
 * What operators ask: install, check, list, sweep, break. Nothing here is on the path of a lock. */
#include "internal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LIST_PAGE = 500 };

/* ---- install */

static enum rlk_class run_install(rowlock_db *db, struct rlk_call *call, void *context)
{
    (void)context;
    return db->backend->install(db->conn, call);
}

/* ---- are the objects ours? */

/* What is there by the name of one of our tables or routines, and is not as we made it. */
struct inspecting {
    bool before_install; /* what install mends by itself is no obstacle */
    int found; /* how many */
    int warned; /* and how many that are no more than a risk */
    bool mended; /* install mends all of them */
    bool misfit; /* the answer has another shape than was asked for */
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
    i->misfit = i->misfit || !rlk_cells_fit("ttB", cells, count);
    if (i->misfit)
        return 1;
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
    struct rlk_query query = {.sql = db->texts.sql[RLK_STEP_OBJECTS],
                              .values = &schema,
                              .count = 1,
                              .ours = true,
                              .each = take_object,
                              .context = context};
    enum rlk_class class = db->backend->query(db->conn, call, &query);
    if (class == RLK_SCHEMA) /* not even the database is there: nothing is by our names */
        return RLK_DONE;
    if (class == RLK_DONE && ((struct inspecting *)context)->misfit)
        return rlk_diag_misfit(call, RLK_STEP_OBJECTS);
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

static void judge_facts(struct checking *c, const struct examining *e)
{
    const struct rlk_facts *f = &e->facts;
    bool isolation_fine = f->any_isolation || strcmp(f->isolation, "read committed") == 0;
    report(c, "server", f->server, ROWLOCK_FINE, "");
    report(
        c, "writable", f->read_only ? "no" : "yes", f->read_only ? ROWLOCK_BAD : ROWLOCK_FINE,
        "it takes no writes: a replica (name the primary in the URL), or a file or folder without "
        "write permission");
    report(
        c, "privileges", f->may_lock ? "may take locks" : "may not take locks",
        f->may_lock ? ROWLOCK_FINE : ROWLOCK_BAD,
        "grant what sql/*/grants.sql says; if a function or procedure was dropped, install again");
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
        report(c, "tables", "not usable", ROWLOCK_BAD, db->error.text);
    return result;
}

static int judge_objects(rowlock_db *db, struct checking *c, bool *may_go_on)
{
    struct inspecting i = {0};
    char value[220];
    int result = inspect(db, &i);
    *may_go_on = result == ROWLOCK_OK && i.mended;
    if (result != ROWLOCK_OK || !db->texts.sql[RLK_STEP_OBJECTS])
        return result;
    int count = i.found ? i.found : i.warned;
    if (count == 0)
        snprintf(value, sizeof value, "as rowlock makes them");
    else if (count == 1)
        snprintf(value, sizeof value, "%s", i.object);
    else
        snprintf(value, sizeof value, "%s, and %d more", i.object, count - 1);
    report(c, "objects", value,
           i.found    ? ROWLOCK_BAD
           : i.warned ? ROWLOCK_WARNING
                      : ROWLOCK_FINE,
           i.problem);
    return ROWLOCK_OK;
}

int rowlock_check(rowlock_db *db, int (*each)(void *context, const rowlock_finding *finding),
                  void *context, rowlock_verdict *worst)
{
    int result = rlk_enter(db, "check the database", NULL);
    if (result != ROWLOCK_OK)
        return result;
    struct checking c = {.each = each, .context = context};
    bool may_go_on = false;
    result = judge_objects(db, &c, &may_go_on);
    if (may_go_on)
        result = judge_tables(db, &c);
    if (may_go_on && result == ROWLOCK_OK) {
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

/* ---- list */

struct listing {
    const char *name;
    int (*each)(void *context, const rowlock_grant *grant);
    void *context;
    bool stopped;
    int seen;
    struct rlk_row last;
};

static int give_row(void *context, const struct rlk_row *row)
{
    struct listing *l = context;
    rowlock_grant grant;
    rlk_grant_from_row(&grant, row);
    l->seen++;
    l->last = *row;
    l->stopped = l->stopped || l->each(l->context, &grant) != 0;
    return l->stopped;
}

/* A full page that ends no further than where it began would be asked for again and again. */
static enum rlk_class check_page(struct rlk_call *call, enum rlk_step step,
                                 const struct rlk_row *after, const struct rlk_row *last)
{
    int order = strcmp(last->name, after->name);
    bool further = order > 0 || (order == 0 && last->slot > after->slot);
    return further ? RLK_DONE : rlk_diag_misfit(call, step);
}

/* A page that broke off is asked for again from where it got to. */
static enum rlk_class run_list(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct listing *l = context;
    l->seen = 0;
    int64_t slot = l->last.name[0] ? l->last.slot : -1;
    struct rlk_row after = l->last;
    enum rlk_class class =
        db->backend->list(db->conn, call, l->name, after.name, slot, LIST_PAGE, give_row, l);
    if (class == RLK_DONE && l->seen >= LIST_PAGE && !l->stopped)
        return check_page(call, RLK_STEP_LIST, &after, &l->last);
    return class == RLK_UNCERTAIN ? RLK_UNSENT : class; /* a plain read */
}

int rowlock_list(rowlock_db *db, const char *name,
                 int (*each)(void *context, const rowlock_grant *grant), void *context)
{
    int result = rlk_enter(db, "list locks", NULL);
    if (result != ROWLOCK_OK)
        return result;
    if (!each)
        return rlk_fail(db, ROWLOCK_EINVAL, "there is no callback to report to");
    if (name && (result = rlk_check_text(db, "lock's name", name, false)) != ROWLOCK_OK)
        return result;
    struct listing l = {.name = name, .each = each, .context = context};
    do {
        struct rlk_step_call step = {.run = run_list, .context = &l};
        result = rlk_do(db, &step);
    } while (result == ROWLOCK_OK && l.seen == LIST_PAGE && !l.stopped);
    return result;
}

/* ---- who waits */

struct listing_waiters {
    const char *name;
    int (*each)(void *context, const rowlock_waiter *waiter);
    void *context;
    struct rlk_waiter last; /* where the next page begins */
    int seen, place;
    bool stopped;
};

static void waiter_from(rowlock_waiter *out, const struct rlk_waiter *in, int place)
{
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    out->ticket = in->ticket;
    out->since_us = in->since_us;
    out->waited_ms = (in->now_us - in->since_us) / 1000;
    out->remaining_ms = place ? (in->expires_us - in->now_us) / 1000 : -1;
    out->pid = in->pid;
    out->permits = in->permits;
    out->place = place;
    memcpy(out->name, in->name, sizeof in->name);
    memcpy(out->owner, in->owner, sizeof in->owner);
    memcpy(out->host, in->host, sizeof in->host);
    memcpy(out->program, in->program, sizeof in->program);
    memcpy(out->note, in->note, sizeof in->note);
}

static int give_waiter(void *context, const struct rlk_waiter *in)
{
    struct listing_waiters *l = context;
    bool lives = in->expires_us > in->now_us;
    if (strcmp(l->last.name, in->name) != 0)
        l->place = 0;
    l->place += lives;
    l->last = *in;
    l->seen++;
    rowlock_waiter waiter;
    waiter_from(&waiter, in, lives ? l->place : 0);
    l->stopped = l->each(l->context, &waiter) != 0;
    return l->stopped;
}

static bool is_further(const struct rlk_waiter *w, const struct rlk_waiter *than)
{
    int order = strcmp(w->name, than->name);
    if (order != 0)
        return order > 0;
    return w->ticket != than->ticket ? w->ticket > than->ticket : w->attempt > than->attempt;
}

static enum rlk_class run_waiters(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct listing_waiters *l = context;
    struct rlk_waiter after = l->last;
    l->seen = 0;
    enum rlk_class class =
        db->backend->waiters(db->conn, call, l->name, &after, LIST_PAGE, give_waiter, l);
    if (class == RLK_DONE && l->seen >= LIST_PAGE && !l->stopped && !is_further(&l->last, &after))
        return rlk_diag_misfit(call, RLK_STEP_WAITERS);
    return class == RLK_UNCERTAIN ? RLK_UNSENT : class; /* a plain read */
}

int rowlock_list_waiters(rowlock_db *db, const char *name,
                         int (*each)(void *context, const rowlock_waiter *waiter), void *context)
{
    int result = rlk_enter(db, "list waiters", NULL);
    if (result != ROWLOCK_OK)
        return result;
    if (!each)
        return rlk_fail(db, ROWLOCK_EINVAL, "there is no callback to report to");
    if (name && (result = rlk_check_text(db, "lock's name", name, false)) != ROWLOCK_OK)
        return result;
    struct listing_waiters l = {.name = name, .each = each, .context = context};
    do {
        struct rlk_step_call step = {.run = run_waiters, .context = &l};
        result = rlk_do(db, &step);
    } while (result == ROWLOCK_OK && l.seen == LIST_PAGE && !l.stopped);
    return result;
}

/* ---- last grant */

int rowlock_last_grant(rowlock_db *db, const char *name, int64_t *token, int64_t *granted_us)
{
    int result = rlk_enter(db, "look up the last grant", NULL);
    if (result != ROWLOCK_OK ||
        (result = rlk_check_text(db, "lock's name", name, false)) != ROWLOCK_OK)
        return result;
    bool found = false;
    int64_t last = 0;
    int64_t when = 0;
    result = rlk_last_grant(db, name, &found, &last, &when);
    if (result != ROWLOCK_OK || !found)
        return result != ROWLOCK_OK ? result : ROWLOCK_NONE;
    if (token)
        *token = last;
    if (granted_us)
        *granted_us = when;
    return ROWLOCK_OK;
}

/* ---- sweep */

struct sweeping {
    rowlock_sweep_options options;
    rowlock_sweep_report report;
    bool stopped;
    int seen;
    struct rlk_row last; /* where the next batch begins */
};

static int count_swept(void *context, const struct rlk_row *row)
{
    struct sweeping *s = context;
    s->report.locks++;
    if (s->options.each && !s->stopped) {
        rowlock_grant grant;
        rlk_grant_from_row(&grant, row);
        s->stopped = s->options.each(s->options.context, &grant) != 0;
    }
    return 0; /* the batch is a transaction: it is finished */
}

static enum rlk_class run_sweep(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct sweeping *s = context;
    struct rlk_row after = s->last;
    struct rlk_sweep sweep = {.older_us = s->options.older_than_ms * 1000,
                              .batch = s->options.batch,
                              .dry_run = s->options.dry_run != 0,
                              .after_name = after.name,
                              .after_slot = after.name[0] ? after.slot : -1};
    s->seen = 0;
    enum rlk_class class =
        db->backend->sweep(db->conn, call, &sweep, &s->seen, &s->last, count_swept, s);
    if (class == RLK_DONE && s->seen >= s->options.batch)
        return check_page(call, RLK_STEP_SWEEP, &after, &s->last);
    return class;
}

static int sweep_locks(rowlock_db *db, struct sweeping *s)
{
    do {
        struct rlk_step_call step = {.run = run_sweep, .context = s};
        int result = rlk_do(db, &step);
        if (result != ROWLOCK_OK)
            return result;
        s->report.batches++;
    } while (s->seen == s->options.batch && !s->stopped);
    return ROWLOCK_OK;
}

static enum rlk_class run_fold(rowlock_db *db, struct rlk_call *call, void *context)
{
    return db->backend->fold(db->conn, call, context);
}

static int fold_counters(rowlock_db *db, struct sweeping *s)
{
    struct rlk_fold fold = {.idle_us = s->options.idle_ms * 1000,
                            .batch = s->options.batch,
                            .dry_run = s->options.dry_run != 0};
    do {
        fold.folded = 0;
        struct rlk_step_call step = {.run = run_fold, .context = &fold};
        int result = rlk_do(db, &step);
        if (result != ROWLOCK_OK)
            return result;
        s->report.counters += fold.folded;
        s->report.batches++;
    } while (fold.folded == fold.batch && !fold.dry_run);
    return ROWLOCK_OK;
}

struct sweeping_waiters {
    int batch;
    int64_t removed;
};

static enum rlk_class run_sweep_waiters(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct sweeping_waiters *w = context;
    return db->backend->sweep_waiters(db->conn, call, w->batch, &w->removed);
}

static int sweep_waiters(rowlock_db *db, struct sweeping *s)
{
    struct sweeping_waiters w = {.batch = s->options.batch};
    do {
        w.removed = 0;
        struct rlk_step_call step = {.run = run_sweep_waiters, .context = &w};
        int result = rlk_do(db, &step);
        if (result != ROWLOCK_OK)
            return result;
        s->report.waiters += w.removed;
        s->report.batches++;
    } while (w.removed == w.batch);
    return ROWLOCK_OK;
}

int rowlock_sweep(rowlock_db *db, const rowlock_sweep_options *options,
                  rowlock_sweep_report *report)
{
    int result = rlk_enter(db, "sweep", NULL);
    if (result != ROWLOCK_OK)
        return result;
    struct sweeping s = {.report = ROWLOCK_SWEEP_REPORT_INIT};
    if ((result = rlk_take_sweep_options(db, &s.options, options)) != ROWLOCK_OK)
        return result;
    result = sweep_locks(db, &s);
    if (result == ROWLOCK_OK && !s.stopped && !s.options.dry_run)
        result = sweep_waiters(db, &s);
    if (result == ROWLOCK_OK && !s.stopped && s.options.idle_ms >= 0)
        result = fold_counters(db, &s);
    if (report)
        rlk_give_struct(report, &s.report, sizeof s.report);
    return result;
}

/* ---- raise */

struct raising {
    int64_t by, highest;
};

static enum rlk_class run_raise(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct raising *r = context;
    return db->backend->raise_tokens(db->conn, call, r->by, &r->highest);
}

/* Raised twice after a lost answer is as good as once. */
int rowlock_raise_tokens(rowlock_db *db, int64_t by, int64_t *highest)
{
    int result = rlk_enter(db, "raise the tokens", NULL);
    if (result != ROWLOCK_OK)
        return result;
    if (by < 1 || by > INT64_C(1000000000000000))
        return rlk_fail(db, ROWLOCK_EINVAL, "tokens can be raised by 1 to 10^15");
    struct raising r = {.by = by};
    struct rlk_step_call step = {.run = run_raise, .context = &r};
    result = rlk_do(db, &step);
    if (result == ROWLOCK_OK && highest)
        *highest = r.highest;
    return result;
}

/* ---- a new identity */

/* The row is there, since the tables have been looked at: an update that changed nothing was killed. */
static enum rlk_class run_new_identity(rowlock_db *db, struct rlk_call *call, void *context)
{
    (void)context;
    struct rlk_query query = {.sql = db->texts.sql[RLK_STEP_NEW_IDENTITY], .ours = true};
    enum rlk_class class = db->backend->query(db->conn, call, &query);
    if (class != RLK_DONE || query.changed > 0)
        return class;
    rlk_diag_set(call, 0, NULL, "the identity was not changed");
    return RLK_CONTENTION;
}

/* Sent twice after a lost answer, it gives yet another one, which is as good. */
int rowlock_new_identity(rowlock_db *db)
{
    int result = rlk_enter(db, "give a new identity", NULL);
    if (result != ROWLOCK_OK)
        return result;
    struct rlk_step_call step = {.run = run_new_identity};
    result = rlk_do(db, &step);
    if (result == ROWLOCK_OK) {
        db->identity[0] = '\0';
        db->schema_ok = false;
    }
    return result;
}

/* ---- break */

struct breaking {
    const char *name;
    int64_t token;
    int holders; /* if nobody said which */
    bool found;
    struct rlk_row row;
};

static enum rlk_class run_break(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct breaking *b = context;
    return db->backend->break_grant(db->conn, call, b->name, b->token, &b->found, &b->row);
}

static int note_token(void *context, const rowlock_grant *grant)
{
    struct breaking *b = context;
    bool lives = grant->remaining_ms >= 0;
    if (lives || b->holders == 0) /* one that has expired can be broken if there is no other */
        b->token = grant->token;
    b->holders += lives;
    return 0;
}

/* Whoever holds it is somebody else when the step is sent again after a lost answer: the token says who
 * is meant. */
static int break_holder(rowlock_db *db, struct breaking *b)
{
    struct listing l = {.name = b->name, .each = note_token, .context = b};
    struct rlk_step_call look = {.run = run_list, .context = &l};
    int result = b->token ? ROWLOCK_OK : rlk_do(db, &look);
    if (result != ROWLOCK_OK || !b->token)
        return result;
    if (b->holders > 1)
        return rlk_fail(db, ROWLOCK_EINVAL, "it has %d holders: say which by its token",
                        b->holders);
    struct rlk_step_call step = {.run = run_break, .context = b};
    result = rlk_do(db, &step);
    if (result == ROWLOCK_OK && !b->found && step.was_uncertain)
        return rlk_fail(db, ROWLOCK_EUNCERTAIN, "the answer was lost; there is no such grant now");
    return result;
}

int rowlock_break(rowlock_db *db, const char *name, int64_t if_token, rowlock_grant *broken)
{
    int result = rlk_enter(db, "break lock", NULL);
    if (result != ROWLOCK_OK ||
        (result = rlk_check_text(db, "lock's name", name, false)) != ROWLOCK_OK)
        return result;
    rlk_action(db, "break lock", name);
    if (if_token < 0)
        return rlk_fail(db, ROWLOCK_EINVAL,
                        "tokens are above 0; 0 stands for whichever token holds the lock");
    struct breaking b = {.name = name, .token = if_token};
    result = break_holder(db, &b);
    if (result != ROWLOCK_OK || !b.found)
        return result != ROWLOCK_OK ? result : ROWLOCK_NONE;
    if (broken) {
        rowlock_grant grant;
        rlk_grant_from_row(&grant, &b.row);
        rlk_give_struct(broken, &grant, sizeof grant);
    }
    return ROWLOCK_OK;
}
