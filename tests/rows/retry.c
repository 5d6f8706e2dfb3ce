/* SPDX-License-Identifier: MIT
 *
 * Read, compute, write, and again until it fits: what an attempt may do and say, how often there
 * is another, what is told of them, and that nothing is lost where several go for the same rows. */
#include "scene.h"
#include "tables.h"

enum { CROSSINGS = 3, MINE = 100 };

/* What an attempt works with, and what is seen of it. */
struct trial {
    const struct site *site;
    rowlock_table *t, *other;
    rowlock_lock *lock; /* that guards it; may be NULL */
    int tries; /* that conflict, before one is let through; below 0: all */
    int says; /* what the trial returns then */
    int calls, number_sum, locked; /* attempts, their numbers added, those that are to lock */
    rowlock_retry_report report;
};

static void reset_rows(const struct site *s)
{
    site_run(s, "DELETE FROM retry_rows");
    site_run(s, "DELETE FROM retry_more");
    site_run(s, "INSERT INTO retry_rows VALUES (1, 0, 1), (2, 0, 1)");
    site_run(s, "INSERT INTO retry_more VALUES (1, 0, 1)");
}

static struct trial trial_open(const struct site *s)
{
    reset_rows(s);
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
    rowlock_row row = ROWLOCK_ROW_INIT;
    int result = read_row(t, id, attempt->lock, &row);
    if (result != ROWLOCK_OK)
        return result;
    return update_row(t, id, rowlock_int(row.values[0].number + more), row.version);
}

static void note(struct trial *trial, const rowlock_attempt *attempt)
{
    trial->calls++;
    trial->number_sum += attempt->number;
    trial->locked += attempt->lock != 0;
}

typedef int attempt_fn(void *context, const rowlock_attempt *attempt);

static int run_trial(struct trial *trial, attempt_fn *attempt, const rowlock_retry_options *options)
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

/* ---- attempts */

/* Writes both tables, and says so often that it met a conflict. */
static int write_both(void *context, const rowlock_attempt *attempt)
{
    struct trial *trial = context;
    note(trial, attempt);
    int result = add(trial->t, 1, 1, attempt);
    if (result == ROWLOCK_OK)
        result = add(trial->other, 1, 10, attempt);
    bool conflict = trial->tries < 0 || attempt->number <= trial->tries;
    return result == ROWLOCK_OK && conflict ? trial->says : result;
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

/* Another writes the row between reading and writing, as often as the trial says. */
static int come_second(void *context, const rowlock_attempt *attempt)
{
    struct trial *trial = context;
    rowlock_row row = ROWLOCK_ROW_INIT;
    note(trial, attempt);
    int result = read_row(trial->t, 1, attempt->lock, &row);
    if (result != ROWLOCK_OK)
        return result;
    rowlock_value n = rowlock_int(row.values[0].number + 1);
    if (attempt->number <= trial->tries)
        site_run(trial->site,
                 "UPDATE retry_rows SET n = n + 100, version = version + 1 WHERE id = 1");
    return update_row(trial->t, 1, n, row.version);
}

/* Its own SQL is a part of the transaction. */
static int write_by_hand(void *context, const rowlock_attempt *attempt)
{
    struct trial *trial = context;
    const struct site *s = trial->site;
    note(trial, attempt);
    raw_run(s->c->raw, s->session, "UPDATE retry_more SET n = n + 7 WHERE id = 1");
    int result = add(trial->t, 1, 1, attempt);
    return result == ROWLOCK_OK && attempt->number <= trial->tries ? trial->says : result;
}

static int end_it(void *context, const rowlock_attempt *attempt)
{
    struct trial *trial = context;
    int result = write_by_hand(context, attempt);
    raw_run(trial->site->c->raw, trial->site->session, "COMMIT");
    return result;
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

static int write_guarded(void *context, const rowlock_attempt *attempt)
{
    struct trial *trial = context;
    note(trial, attempt);
    int result = rowlock_guard(trial->lock, trial->site->db);
    return result == ROWLOCK_OK ? add(trial->t, 1, 1, attempt) : result;
}

/* ---- how often, and what an attempt may say */

static const struct {
    const char *what;
    attempt_fn *attempt;
    int tries, says; /* of attempts that conflict */
    int32_t attempts, lock_after; /* options */
    int64_t pause_ms; /* a long one */
    int want, made, conflicts;
    int locked; /* attempts that are to lock their rows */
    const char *rows;
} cases[] = {
    {"without a conflict both tables are written", write_both, .made = 1, .rows = "1 2 10 2"},
    {"STALE each time is the result at last", write_both, -1, ROWLOCK_STALE, 3, -1,
     .want = ROWLOCK_STALE, .made = 3, .conflicts = 3, .rows = "0 1 0 1"},
    {"and so is CONFLICT", write_both, -1, ROWLOCK_CONFLICT, 3, -1, .want = ROWLOCK_CONFLICT,
     .made = 3, .conflicts = 3, .rows = "0 1 0 1"},
    {"and BUSY", write_both, -1, ROWLOCK_BUSY, 3, -1, .want = ROWLOCK_BUSY, .made = 3,
     .conflicts = 3, .rows = "0 1 0 1"},
    {"and EXISTS", write_both, -1, ROWLOCK_EXISTS, 3, -1, .want = ROWLOCK_EXISTS, .made = 3,
     .conflicts = 3, .rows = "0 1 0 1"},
    {"one attempt too few", write_both, 3, ROWLOCK_EXISTS, 3, .want = ROWLOCK_EXISTS, .made = 3,
     .conflicts = 3, .locked = 1, .rows = "0 1 0 1"},
    {"just enough, and both tables are written once", write_both, 2, ROWLOCK_EXISTS, 3, .made = 3,
     .conflicts = 2, .locked = 1, .rows = "1 2 10 2"},
    {"attempts lock from the third on", write_both, 5, ROWLOCK_STALE, .made = 6, .conflicts = 5,
     .locked = 4, .rows = "1 2 10 2"},
    {"or after one conflict", write_both, 5, ROWLOCK_STALE, .lock_after = 1, .made = 6,
     .conflicts = 5, .locked = 5, .rows = "1 2 10 2"},
    {"or after four", write_both, 5, ROWLOCK_STALE, .lock_after = 4, .made = 6, .conflicts = 5,
     .locked = 2, .rows = "1 2 10 2"},
    {"or after six", write_both, 5, ROWLOCK_STALE, .lock_after = 6, .made = 6, .conflicts = 5,
     .rows = "1 2 10 2"},
    {"or never", write_both, 5, ROWLOCK_STALE, .lock_after = -1, .made = 6, .conflicts = 5,
     .rows = "1 2 10 2"},
    {"GONE is the result if it is said twice", write_both, -1, ROWLOCK_GONE, .want = ROWLOCK_GONE,
     .made = 2, .conflicts = 1, .rows = "0 1 0 1"},
    {"and not if it is said once", write_both, 1, ROWLOCK_GONE, .made = 2, .conflicts = 1,
     .rows = "1 2 10 2"},
    {"a cancel is heard in the pause", cancel_itself, .says = ROWLOCK_STALE, .pause_ms = 60000,
     .want = ROWLOCK_CANCELLED, .made = 1, .conflicts = 1, .rows = "0 1 0 1"},
    {"without a pause it is committed", cancel_itself, .pause_ms = 60000, .made = 1,
     .rows = "1 2 0 1"},
    {"and the next pause hears it", write_both, -1, ROWLOCK_STALE, .pause_ms = 60000,
     .want = ROWLOCK_CANCELLED, .made = 1, .conflicts = 1, .rows = "0 1 0 1"},
    {"no retry inside of another", again_inside, .want = ROWLOCK_EMISUSE, .made = 1,
     .rows = "0 1 0 1"},
};

static void results(const struct site *s)
{
    CLOSED_BY(trial_close) struct trial trial = trial_open(s);
    for (int i = 0; i < COUNT(cases); i++) {
        rowlock_retry_options o =
            *OPTIONS(retry, .attempts = cases[i].attempts, .lock_after = cases[i].lock_after,
                     .base_ms = cases[i].pause_ms, .cap_ms = cases[i].pause_ms,
                     .deadline_ms = 2 * cases[i].pause_ms);
        trial.tries = cases[i].tries;
        trial.says = cases[i].says;
        reset_rows(s);
        is_result(s->db, run_trial(&trial, cases[i].attempt, &o), cases[i].want, "%s",
                  cases[i].what);
        report_is(&trial, cases[i].made, cases[i].conflicts);
        tap_is_int(trial.locked, cases[i].locked, "of which so many lock");
        rows_are(s, cases[i].rows, "and the rows are as they should be");
    }
}

static void other_results(const struct site *s)
{
    /* ECONN is of something else: our own connection stands. */
#define OTHERS                                                                                 \
    MINE, MINE + 1, 1000000, -7, -100, ROWLOCK_LOST, ROWLOCK_EINVAL, ROWLOCK_MISMATCH,         \
        ROWLOCK_EUNCERTAIN, ROWLOCK_NONE, ROWLOCK_ESERVER, ROWLOCK_CANCELLED, ROWLOCK_EMISUSE, \
        ROWLOCK_ECONN
    static const int others[] = {OTHERS};
    CLOSED_BY(trial_close) struct trial trial = trial_open(s);
    trial.tries = -1;
    for (int i = 0; i < COUNT(others); i++) {
        trial.says = others[i];
        tap_is_int(run_trial(&trial, write_both, NULL), others[i], "all else ends it");
        report_is(&trial, 1, 0);
    }
    is_result(s->db, run_trial(&trial, write_both, OPTIONS(retry, .attempts = -1)), ROWLOCK_EINVAL,
              "attempts below nothing");
    is_result(s->db, run_trial(&trial, NULL, NULL), ROWLOCK_EINVAL, "nothing to attempt");
    tap_is_int(rowlock_retry(NULL, write_both, &trial, NULL, NULL), ROWLOCK_EMISUSE, "no db");
    rows_are(s, "0 1 0 1", "and nothing was written");
}

static void overlooked(const struct site *s)
{
    CLOSED_BY(trial_close) struct trial trial = trial_open(s);
    int result = run_trial(&trial, overlook, OPTIONS(retry, .attempts = 2));
    if (is_postgres(s->c)) {
        tap_ok(result != ROWLOCK_OK && result != MINE, "a transaction that an error ended (%s)",
               rowlock_result_name(result));
        rows_are(s, "0 1 0 1", "is not said to be committed");
    } else {
        is_result(s->db, result, ROWLOCK_OK, "an error that leaves the transaction whole");
        rows_are(s, "0 1 10 2", "leaves what else was done in it");
    }
}

/* ---- where others are */

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
    OWNED(site) struct site s = site_open(x->c);
    x->t = must_open_table(&s, "retry_rows", NAMES("n"));
    for (int i = 0; i < CROSSINGS; i++) {
        rowlock_retry_report report = ROWLOCK_RETRY_REPORT_INIT;
        x->failed += rowlock_retry(s.db, cross, x, NULL, &report) != ROWLOCK_OK;
        x->conflicts += report.conflicts;
        if (x->meet)
            pthread_barrier_wait(x->meet); /* the next round begins with both */
    }
    rowlock_table_close(x->t);
    return 0;
}

static void opposite_order(const struct contract *c)
{
    OWNED(site) struct site s = site_open(c);
    pthread_barrier_t meet;
    reset_rows(&s);
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
}

/* Another session changes the row after our snapshot, at the isolation that the application has set. */
static const struct {
    const char *database; /* NULL: each that has a server */
    const char *setting, *level; /* NULL: our own connection */
} snapshots[] = {
    {NULL, NULL, NULL},
    {"postgres", NULL, "CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ"},
    {"postgres", NULL, "CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED"},
    {"mysql", NULL, "TRANSACTION ISOLATION LEVEL REPEATABLE READ"},
    {"mysql", NULL, "TRANSACTION ISOLATION LEVEL READ COMMITTED"},
    {"mysql", "innodb_snapshot_isolation = ON", "TRANSACTION ISOLATION LEVEL REPEATABLE READ"},
};

static bool set_session(const struct site *s, const char *what)
{
    char ignored[200];
    return !what ||
           s->c->raw->run(s->session, textf("SET SESSION %s", what), ignored, sizeof ignored);
}

static void after_a_snapshot(const struct contract *c, int i)
{
    const char *level = snapshots[i].level;
    if (snapshots[i].database && strcmp(snapshots[i].database, c->database) != 0)
        return;
    OWNED(site) struct site s = level ? site_adopt(c) : site_open(c);
    CLOSED_BY(trial_close) struct trial trial = trial_open(&s);
    trial.tries = 2;
    if (!set_session(&s, snapshots[i].setting)) {
        tap_skip(8, "this server has no innodb_snapshot_isolation");
    } else {
        tap_ok(set_session(&s, level), "%s", level ? level : "our own connection");
        is_result(s.db, run_trial(&trial, come_second, NULL), ROWLOCK_OK, "two come before us");
        report_is(&trial, 3, 2);
        tap_is_int(trial.locked, 1, "the third attempt locks");
        rows_are(&s, "201 4 0 1", "all three changes are there");
    }
}

static void adopted(const struct contract *c)
{
    OWNED(site) struct site s = site_adopt(c);
    CLOSED_BY(trial_close) struct trial trial = trial_open(&s);
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
    is_result(s.db, run_trial(&trial, end_it, NULL), ROWLOCK_EMISUSE, "an attempt that ends it");
    report_is(&trial, 1, 0);
    tap_ok(strstr(why(s.db), "has ended it, and its changes may remain"), "is told so");
    rows_are(&s, "2 3 77 1", "and that it may be done");
}

static void guarded(const struct contract *c)
{
    OWNED(site) struct site s = site_adopt(c);
    CLOSED_BY(trial_close) struct trial trial = trial_open(&s);
    OWNED(db) rowlock_db *holder = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = trial.lock = must_lock(holder, "retry guard");
    is_result(holder, try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is held");
    is_result(s.db, run_trial(&trial, write_guarded, NULL), ROWLOCK_OK, "versions under a guard");
    is_result(holder, rowlock_break(holder, "retry guard", 0, NULL), ROWLOCK_OK, "it is broken");
    is_result(s.db, run_trial(&trial, write_guarded, NULL), ROWLOCK_LOST, "LOST ends it at once");
    report_is(&trial, 1, 0);
    rows_are(&s, "1 2 0 1", "and nothing is written any more");
}

void contract_retry(const struct contract *c)
{
    OWNED(site) struct site s = site_open(c);
    site_table(&s, "retry_rows",
               "id BIGINT PRIMARY KEY, n BIGINT CHECK (n < 1000), version BIGINT NOT NULL");
    site_table(&s, "retry_more", "id BIGINT PRIMARY KEY, n BIGINT, version BIGINT NOT NULL");
    results(&s);
    other_results(&s);
    overlooked(&s);
    opposite_order(c);
    for (int i = 0; c->has_server && i < COUNT(snapshots); i++) /* elsewhere the file is ours */
        after_a_snapshot(c, i);
    adopted(c);
    guarded(c);
}
