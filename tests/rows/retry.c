/* SPDX-License-Identifier: MIT
 *
 * Read, compute, write, and again until it fits: what an attempt may do and say, how often there is another,
 * what is told of them, and that nothing is lost where several go for the same rows.
 */
#include "scene.h"
#include "tables.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { WORKERS = 4, ROUNDS = 25, CROSSINGS = 3, MINE = 100 };

/* What an attempt works with, and what is seen of it. */
struct trial {
    const struct site *site;
    rowlock_table *t, *other;
    rowlock_lock *lock; /* that guards it; may be NULL */
    int tries; /* that conflict, before one is let through; below 0: all */
    int says; /* what the trial returns then */
    int calls, number_sum, locked; /* attempts, their numbers added, those that shall lock */
    rowlock_retry_report report;
};

static void make_rows(const struct site *s)
{
    site_table(s, "retry_rows",
               "id BIGINT PRIMARY KEY, n BIGINT CHECK (n < 1000), version BIGINT NOT NULL");
    site_table(s, "retry_more", "id BIGINT PRIMARY KEY, n BIGINT, version BIGINT NOT NULL");
    site_run(s, "INSERT INTO retry_rows VALUES (1, 0, 1), (2, 0, 1)");
    site_run(s, "INSERT INTO retry_more VALUES (1, 0, 1)");
}

static struct trial trial_open(const struct site *s)
{
    make_rows(s);
    return (struct trial){.site = s,
                          .t = must_open_table(s, "retry_rows", NAMES("n")),
                          .other = must_open_table(s, "retry_more", NAMES("n")),
                          .report = ROWLOCK_RETRY_REPORT_INIT};
}

static void trial_close(struct trial *trial)
{
    rowlock_table_close(trial->t);
    rowlock_table_close(trial->other);
}

/* Read a row and write it with this much more. */
static int add(rowlock_table *t, int64_t id, int64_t more, const rowlock_attempt *attempt)
{
    rowlock_row row;
    rowlock_value key = rowlock_int(id);
    int result = rowlock_read(t, &key, attempt->lock, &row);
    if (result != ROWLOCK_OK)
        return result;
    rowlock_value n = rowlock_int(row.values[0].number + more);
    rowlock_change change = {.key = &key, .values = &n, .version = row.version};
    return rowlock_update(t, &change, 1, NULL);
}

static void note(struct trial *trial, const rowlock_attempt *attempt)
{
    trial->calls++;
    trial->number_sum += attempt->number;
    trial->locked += attempt->lock != 0;
}

static int run_trial(struct trial *trial, int (*attempt)(void *, const rowlock_attempt *),
                     const rowlock_retry_options *options)
{
    trial->calls = trial->number_sum = trial->locked = 0;
    return rowlock_retry(trial->site->db, attempt, trial, options, &trial->report);
}

static void report_is(const struct trial *trial, int attempts, int conflicts)
{
    tap_is_int(trial->report.attempts, attempts, "so many attempts are reported");
    tap_is_int(trial->report.conflicts, conflicts, "and so many conflicts");
    tap_is_int(trial->calls, attempts, "and there were as many");
    tap_is_int(trial->number_sum, attempts * (attempts + 1) / 2, "each with its number");
    tap_ok((trial->report.lost_us > 0) == (conflicts > 0),
           "time is lost where there are conflicts");
}

static void rows_are(const struct site *s, const char *want, const char *what)
{
    site_finds(s, want, what,
               is_sqlite(s->c)
                   ? "SELECT r.n || ' ' || r.version || ' ' || m.n || ' ' || m.version "
                     "FROM retry_rows r, retry_more m WHERE r.id = 1 AND m.id = 1"
                   : "SELECT CONCAT(r.n, ' ', r.version, ' ', m.n, ' ', m.version) FROM "
                     "retry_rows r, retry_more m WHERE r.id = 1 AND m.id = 1");
}

/* ---- how often, and what an attempt may say */

/* Writes both tables, and says so often that it met a conflict. */
static int write_both(void *context, const rowlock_attempt *attempt)
{
    struct trial *trial = context;
    note(trial, attempt);
    int result = add(trial->t, 1, 1, attempt);
    if (result == ROWLOCK_OK)
        result = add(trial->other, 1, 10, attempt);
    if (result != ROWLOCK_OK)
        return result;
    bool conflict = trial->tries < 0 || attempt->number <= trial->tries;
    return conflict ? trial->says : ROWLOCK_OK;
}

static void attempts(const struct site *s)
{
    static const int conflicts[] = {ROWLOCK_STALE, ROWLOCK_CONFLICT, ROWLOCK_BUSY, ROWLOCK_EXISTS};
    struct trial trial = trial_open(s);
    rowlock_retry_options three = ROWLOCK_RETRY_OPTIONS_INIT;
    is_result(s->db, run_trial(&trial, write_both, NULL), ROWLOCK_OK, "without a conflict");
    report_is(&trial, 1, 0);
    rows_are(s, "1 2 10 2", "both tables are written");
    three.attempts = 3;
    for (int i = 0; i < COUNT(conflicts); i++) {
        trial.tries = -1;
        trial.says = conflicts[i];
        is_result(s->db, run_trial(&trial, write_both, &three), conflicts[i],
                  "a conflict each time is the result at last");
        report_is(&trial, 3, 3);
    }
    rows_are(s, "1 2 10 2", "nothing was written by them");
    trial.tries = 3;
    is_result(s->db, run_trial(&trial, write_both, &three), trial.says, "one attempt too few");
    trial.tries = 2;
    is_result(s->db, run_trial(&trial, write_both, &three), ROWLOCK_OK, "just enough");
    report_is(&trial, 3, 2);
    tap_is_int(trial.locked, 1, "the third is to lock its rows");
    rows_are(s, "2 3 20 3", "both tables are written, once");
    trial_close(&trial);
}

static void locking(const struct site *s)
{
    static const struct {
        int32_t after;
        int locked;
    } cases[] = {{0, 4}, {1, 5}, {4, 2}, {6, 0}, {-1, 0}};
    struct trial trial = trial_open(s);
    rowlock_retry_options o = ROWLOCK_RETRY_OPTIONS_INIT;
    trial.tries = 5;
    trial.says = ROWLOCK_STALE;
    for (int i = 0; i < COUNT(cases); i++) {
        o.lock_after = cases[i].after;
        is_result(s->db, run_trial(&trial, write_both, &o), ROWLOCK_OK, "five conflicts");
        tap_is_int(trial.locked, cases[i].locked, "of six attempts so many lock, lock_after %d",
                   (int)cases[i].after);
    }
    trial_close(&trial);
}

static void endings(const struct site *s)
{
    /* ECONN is of something else: our own connection stands. */
    static const int others[] = {MINE,
                                 MINE + 1,
                                 1000000,
                                 -7,
                                 -100,
                                 ROWLOCK_LOST,
                                 ROWLOCK_EINVAL,
                                 ROWLOCK_MISMATCH,
                                 ROWLOCK_EUNCERTAIN,
                                 ROWLOCK_NONE,
                                 ROWLOCK_ESERVER,
                                 ROWLOCK_CANCELLED,
                                 ROWLOCK_EMISUSE,
                                 ROWLOCK_ECONN};
    struct trial trial = trial_open(s);
    trial.tries = -1;
    for (int i = 0; i < COUNT(others); i++) {
        trial.says = others[i];
        tap_is_int(run_trial(&trial, write_both, NULL), others[i], "all else ends it");
        report_is(&trial, 1, 0);
    }
    rows_are(s, "0 1 0 1", "and nothing was written");
    trial.says = ROWLOCK_GONE;
    tap_is_int(run_trial(&trial, write_both, NULL), ROWLOCK_GONE, "GONE is the result");
    report_is(&trial, 2, 1);
    trial.tries = 1;
    tap_is_int(run_trial(&trial, write_both, NULL), ROWLOCK_OK, "if it is said twice");
    report_is(&trial, 2, 1);
    rows_are(s, "1 2 10 2", "and not if it is said once");
    trial_close(&trial);
}

static void deadlines(const struct site *s)
{
    struct trial trial = trial_open(s);
    rowlock_retry_options o = ROWLOCK_RETRY_OPTIONS_INIT;
    trial.tries = -1;
    trial.says = ROWLOCK_STALE;
    o.attempts = 1000000;
    o.deadline_ms = 30;
    is_result(s->db, run_trial(&trial, write_both, &o), ROWLOCK_STALE,
              "the deadline ends it before the attempts do");
    tap_ok(trial.calls >= 1 && trial.calls < 1000000 && trial.calls == trial.report.attempts,
           "after an attempt or more (%d)", trial.calls);
    tap_is_int(trial.report.conflicts, trial.calls, "each of them a conflict");
    trial_close(&trial);
}

static int cancel_itself(void *context, const rowlock_attempt *attempt)
{
    struct trial *trial = context;
    note(trial, attempt);
    rowlock_cancel(trial->site->db);
    return add(trial->t, 1, 1, attempt) == ROWLOCK_OK ? trial->says : ROWLOCK_EINVAL;
}

static int again_inside(void *context, const rowlock_attempt *attempt)
{
    struct trial *trial = context;
    note(trial, attempt);
    return rowlock_retry(trial->site->db, write_both, trial, NULL, NULL);
}

static void misuse(const struct site *s)
{
    struct trial trial = trial_open(s);
    rowlock_retry_options o = ROWLOCK_RETRY_OPTIONS_INIT;
    o.base_ms = o.cap_ms = 60000;
    o.deadline_ms = 120000;
    trial.says = ROWLOCK_STALE;
    is_result(s->db, run_trial(&trial, cancel_itself, &o), ROWLOCK_CANCELLED,
              "a cancel is heard in the pause");
    report_is(&trial, 1, 1);
    trial.says = ROWLOCK_OK;
    is_result(s->db, run_trial(&trial, cancel_itself, &o), ROWLOCK_OK,
              "without a pause it is committed");
    rows_are(s, "1 2 0 1", "once");
    trial.tries = -1;
    trial.says = ROWLOCK_STALE;
    is_result(s->db, run_trial(&trial, write_both, &o), ROWLOCK_CANCELLED,
              "the next pause hears it");
    is_result(s->db, run_trial(&trial, again_inside, NULL), ROWLOCK_EMISUSE,
              "no retry inside of another");
    is_result(s->db, run_trial(&trial, NULL, NULL), ROWLOCK_EINVAL, "nothing to attempt");
    o.attempts = -1;
    is_result(s->db, run_trial(&trial, write_both, &o), ROWLOCK_EINVAL, "attempts below nothing");
    tap_is_int(rowlock_retry(NULL, write_both, &trial, NULL, NULL), ROWLOCK_EMISUSE, "no db");
    rows_are(s, "1 2 0 1", "by none of that anything is written");
    trial_close(&trial);
}

/* An attempt that makes nothing of an error: what is committed then is all or nothing of it. */
static int overlook(void *context, const rowlock_attempt *attempt)
{
    struct trial *trial = context;
    note(trial, attempt);
    int result = add(trial->other, 1, 10, attempt);
    int refused = add(trial->t, 1, 5000, attempt); /* the table's CHECK */
    return result == ROWLOCK_OK && refused == ROWLOCK_VIOLATION ? ROWLOCK_OK : MINE;
}

static void overlooked(const struct site *s)
{
    struct trial trial = trial_open(s);
    rowlock_retry_options o = ROWLOCK_RETRY_OPTIONS_INIT;
    o.attempts = 2;
    int result = run_trial(&trial, overlook, &o);
    if (is_postgres(s->c)) {
        tap_ok(result != ROWLOCK_OK && result != MINE, "a transaction that an error ended (%s)",
               rowlock_result_name(result));
        rows_are(s, "0 1 0 1", "is not said to be committed");
    } else {
        is_result(s->db, result, ROWLOCK_OK, "an error that leaves the transaction whole");
        rows_are(s, "0 1 10 2", "leaves what else was done in it");
    }
    trial_close(&trial);
}

/* ---- where others are */

/* Another writes the row between reading and writing, as often as the trial says. */
static int come_second(void *context, const rowlock_attempt *attempt)
{
    struct trial *trial = context;
    rowlock_row row;
    rowlock_value key = rowlock_int(1);
    note(trial, attempt);
    int result = rowlock_read(trial->t, &key, attempt->lock, &row);
    if (result != ROWLOCK_OK)
        return result;
    rowlock_value n = rowlock_int(row.values[0].number + 1);
    if (attempt->number <= trial->tries)
        site_run(trial->site,
                 "UPDATE retry_rows SET n = n + 100, version = version + 1 WHERE id = 1");
    rowlock_change change = {.key = &key, .values = &n, .version = row.version};
    return rowlock_update(trial->t, &change, 1, NULL);
}

static void interfered(const struct site *s)
{
    struct trial trial = trial_open(s);
    trial.tries = 2;
    is_result(s->db, run_trial(&trial, come_second, NULL), ROWLOCK_OK, "two come before us");
    report_is(&trial, 3, 2);
    tap_is_int(trial.locked, 1, "the third attempt locks");
    rows_are(s, "201 4 0 1", "all three changes are there");
    trial_close(&trial);
}

struct worker {
    const struct contract *c;
    rowlock_retry_report sum;
    int failed;
};

static int add_one(void *context, const rowlock_attempt *attempt)
{
    rowlock_table *const *tables = context;
    int result = add(tables[0], 1, 1, attempt);
    if (attempt->number == 1)
        sleep_ms(1); /* so that they meet */
    return result == ROWLOCK_OK ? add(tables[1], 1, 1, attempt) : result;
}

static int work(void *argument)
{
    struct worker *w = argument;
    struct site s = site_open(w->c);
    rowlock_table *tables[] = {must_open_table(&s, "retry_rows", NAMES("n")),
                               must_open_table(&s, "retry_more", NAMES("n"))};
    for (int i = 0; i < ROUNDS; i++) {
        rowlock_retry_report report = ROWLOCK_RETRY_REPORT_INIT;
        w->failed += rowlock_retry(s.db, add_one, tables, NULL, &report) != ROWLOCK_OK;
        w->failed += report.attempts != report.conflicts + 1;
        w->sum.attempts += report.attempts;
        w->sum.conflicts += report.conflicts;
    }
    rowlock_table_close(tables[0]);
    rowlock_table_close(tables[1]);
    site_close(&s);
    return 0;
}

static void hot_row(const struct contract *c)
{
    struct site s = site_open(c);
    struct worker each[WORKERS];
    struct helper *helpers[WORKERS];
    int failed = 0, conflicts = 0;
    char want[60];
    make_rows(&s);
    for (int i = 0; i < WORKERS; i++) {
        each[i] = (struct worker){.c = c};
        helpers[i] = helper_start(work, &each[i]);
    }
    for (int i = 0; i < WORKERS; i++) {
        helper_join(helpers[i]);
        failed += each[i].failed;
        conflicts += each[i].sum.conflicts;
    }
    tap_is_int(failed, 0, "several who add to one row all succeed");
    tap_note("%d conflicts in %d additions", conflicts, WORKERS * ROUNDS);
    int sum = WORKERS * ROUNDS;
    snprintf(want, sizeof want, "%d %d %d %d", sum, sum + 1, sum, sum + 1);
    rows_are(&s, want, "and no addition was lost, or done twice");
    site_close(&s);
}

/* Two go for two rows in opposite order, and both have the first of theirs before either goes on: a deadlock
 * that the server ends. Only one can write a SQLite file, so there they do not meet. */
struct crossing {
    const struct contract *c;
    pthread_barrier_t *meet; /* NULL: they do not */
    int64_t first, second;
    rowlock_table *t;
    int failed, conflicts;
};

static int cross(void *context, const rowlock_attempt *attempt)
{
    const struct crossing *x = context;
    int result = add(x->t, x->first, 1, attempt);
    if (x->meet && attempt->number == 1)
        pthread_barrier_wait(x->meet);
    return result == ROWLOCK_OK ? add(x->t, x->second, 1, attempt) : result;
}

static int cross_often(void *argument)
{
    struct crossing *x = argument;
    struct site s = site_open(x->c);
    x->t = must_open_table(&s, "retry_rows", NAMES("n"));
    for (int i = 0; i < CROSSINGS; i++) {
        rowlock_retry_report report = ROWLOCK_RETRY_REPORT_INIT;
        x->failed += rowlock_retry(s.db, cross, x, NULL, &report) != ROWLOCK_OK;
        x->conflicts += report.conflicts;
        if (x->meet)
            pthread_barrier_wait(x->meet); /* the next round begins with both */
    }
    rowlock_table_close(x->t);
    site_close(&s);
    return 0;
}

static void opposite_order(const struct contract *c)
{
    struct site s = site_open(c);
    pthread_barrier_t meet;
    make_rows(&s);
    if (c->has_server)
        pthread_barrier_init(&meet, NULL, 2);
    struct crossing one = {.c = c, .meet = c->has_server ? &meet : NULL, .first = 1, .second = 2};
    struct crossing two = {.c = c, .meet = one.meet, .first = 2, .second = 1};
    struct helper *helper = helper_start(cross_often, &one);
    cross_often(&two);
    helper_join(helper);
    tap_is_int(one.failed + two.failed, 0, "rows in opposite order: both succeed each time");
    if (c->has_server) {
        tap_ok(one.conflicts + two.conflicts >= CROSSINGS, "after a deadlock in each round");
        pthread_barrier_destroy(&meet);
    }
    site_finds(&s, "12", "and each addition was done once", "SELECT SUM(n) FROM retry_rows");
    site_finds(&s, "14", "as the versions say", "SELECT SUM(version) FROM retry_rows");
    site_close(&s);
}

/* ---- the application's connection */

/* Its own SQL is a part of the transaction. */
static int write_by_hand(void *context, const rowlock_attempt *attempt)
{
    struct trial *trial = context;
    const struct site *s = trial->site;
    note(trial, attempt);
    raw_run(s->c->raw, s->session, "UPDATE retry_more SET n = n + 7 WHERE id = 1");
    int result = add(trial->t, 1, 1, attempt);
    if (result != ROWLOCK_OK)
        return result;
    return attempt->number <= trial->tries ? trial->says : ROWLOCK_OK;
}

static int end_it(void *context, const rowlock_attempt *attempt)
{
    struct trial *trial = context;
    int result = write_by_hand(context, attempt);
    raw_run(trial->site->c->raw, trial->site->session, "COMMIT");
    return result;
}

static void adopted(const struct contract *c)
{
    struct site s = site_adopt(c);
    struct trial trial = trial_open(&s);
    trial.tries = 2;
    trial.says = ROWLOCK_STALE;
    is_result(s.db, run_trial(&trial, write_by_hand, NULL), ROWLOCK_OK,
              "on the application's connection");
    report_is(&trial, 3, 2);
    rows_are(&s, "1 2 7 1", "its own statement counts once");
    trial.tries = 1;
    trial.says = MINE;
    tap_is_int(run_trial(&trial, write_by_hand, NULL), MINE, "and when it ends otherwise");
    rows_are(&s, "1 2 7 1", "not at all");
    raw_run(c->raw, s.session, "BEGIN");
    raw_run(c->raw, s.session, "UPDATE retry_more SET n = 70 WHERE id = 1");
    is_result(s.db, run_trial(&trial, write_by_hand, NULL), ROWLOCK_EMISUSE,
              "not inside of its transaction");
    tap_is_int(trial.calls, 0, "nothing is attempted then");
    raw_run(c->raw, s.session, "COMMIT");
    rows_are(&s, "1 2 70 1", "which goes on");
    trial.tries = 0;
    is_result(s.db, run_trial(&trial, end_it, NULL), ROWLOCK_EMISUSE,
              "an attempt that ends the transaction by itself");
    report_is(&trial, 1, 0);
    tap_ok(strstr(why(s.db), "has ended it, and what was done may stay"), "is told so: %s",
           why(s.db));
    rows_are(&s, "2 3 77 1", "and that it may be done");
    trial_close(&trial);
    site_close(&s);
}

/* Another session changes the row after our snapshot, at the isolation that the application has set. */
static void at_isolation(const struct contract *c, const char *level, bool strict)
{
    struct site s = site_adopt(c);
    char ignored[200];
    if (strict && !c->raw->run(s.session, "SET SESSION innodb_snapshot_isolation = ON", ignored,
                               sizeof ignored)) {
        tap_skip(7, "this server has no innodb_snapshot_isolation");
        site_close(&s);
        return;
    }
    struct trial trial = trial_open(&s);
    raw_run(c->raw, s.session,
            is_postgres(c) ? "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL %s"
                           : "SET SESSION TRANSACTION ISOLATION LEVEL %s",
            level);
    trial.tries = 2;
    is_result(s.db, run_trial(&trial, come_second, NULL), ROWLOCK_OK, "%s: two come before us",
              level);
    report_is(&trial, 3, 2);
    rows_are(&s, "201 4 0 1", "all three changes are there");
    trial_close(&trial);
    site_close(&s);
}

static int write_guarded(void *context, const rowlock_attempt *attempt)
{
    struct trial *trial = context;
    note(trial, attempt);
    int result = rowlock_guard(trial->lock, trial->site->db);
    return result == ROWLOCK_OK ? add(trial->t, 1, 1, attempt) : result;
}

static void guarded(const struct contract *c)
{
    struct site s = site_adopt(c);
    struct trial trial = trial_open(&s);
    rowlock_db *holder = must_open(c->url);
    trial.lock = must_lock(holder, "retry guard");
    is_result(holder, try_lock(trial.lock, TTL_MS), ROWLOCK_OK, "a lock is held");
    is_result(s.db, run_trial(&trial, write_guarded, NULL), ROWLOCK_OK, "versions under a guard");
    is_result(holder, rowlock_break(holder, "retry guard", 0, NULL), ROWLOCK_OK, "it is broken");
    is_result(s.db, run_trial(&trial, write_guarded, NULL), ROWLOCK_LOST, "LOST ends it at once");
    report_is(&trial, 1, 0);
    rows_are(&s, "1 2 0 1", "and nothing is written any more");
    rowlock_lock_close(trial.lock);
    rowlock_db_close(holder);
    trial_close(&trial);
    site_close(&s);
}

static void drop_rows(const struct contract *c)
{
    db_exec(c->raw, c->url, "DROP TABLE retry_rows");
    db_exec(c->raw, c->url, "DROP TABLE retry_more");
}

void contract_retry(const struct contract *c)
{
    struct site s = site_open(c);
    attempts(&s);
    locking(&s);
    endings(&s);
    deadlines(&s);
    misuse(&s);
    overlooked(&s);
    if (c->has_server) /* elsewhere the transaction has the file to itself */
        interfered(&s);
    site_close(&s);
    hot_row(c);
    opposite_order(c);
    adopted(c);
    if (c->has_server) {
        at_isolation(c, "REPEATABLE READ", false);
        at_isolation(c, "READ COMMITTED", false);
    }
    if (is_mysql(c))
        at_isolation(c, "REPEATABLE READ", true);
    guarded(c);
    drop_rows(c);
}
