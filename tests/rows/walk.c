/* SPDX-License-Identifier: MIT
 *
 * A whole table walked by its key: each row is written exactly once, even if others write it, delete
 * it or make new ones meanwhile, and however often the walk is cut short, be it by SIGKILL. */
#include "scene.h"
#include "tables.h"

enum { MANY = 10000, SOME = 3000, CHUNK = 250, FEW = 1000, STOPPED = -42 };

#define NAME "a walk"

/* A walk under test, and what is seen of it. hook() is called for each row before it is computed, and may
 * meddle; it returns what each() is to return. */
struct tour {
    struct site site;
    rowlock_table *t;
    struct walking how;
    rowlock_walk_report report;
    int (*hook)(struct tour *tour, int64_t id);
    int64_t n; /* of the row */
    int calls; /* of each() */
    int late; /* of those, for rows that met a conflict */
    int children; /* which callbacks have forked, and which got EMISUSE */
    int64_t furthest; /* id */
    int chunks; /* calls of progress() */
    bool consistent; /* what they told */
    int64_t rows_told;
    int stop_at, die_at, cancel_at, fork_at; /* calls, calls, chunks, chunks; 0: never */
    bool die_late; /* die_at counts late calls */
    int failures, failed_as; /* calls of failed(), and what they said last */
    int64_t failed_sum; /* of the ids */
};

/* Rows of this table that met a conflict were brought beyond a thousand, and are asked for again after all. */
static bool is_late(struct tour *tour, int64_t id)
{
    bool again = id <= tour->furthest;
    if (!again)
        tour->furthest = id;
    if (!tour->die_late || again || tour->n < 1000)
        return again;
    return raw_int(tour->site.c->raw, tour->site.look,
                   "SELECT count(*) FROM rowlock_walks WHERE walked = %d", SOME) > 0;
}

static int each(void *context, const rowlock_row *row, rowlock_value *values)
{
    struct tour *tour = context;
    int64_t id = row->key[0].number;
    tour->calls++;
    tour->n = row->values[0].number;
    tour->late += is_late(tour, id);
    if (tour->calls == tour->stop_at)
        return STOPPED;
    if (tour->die_at && tour->die_at == (tour->die_late ? tour->late : tour->calls))
        raise(SIGKILL);
    int answer = tour->hook ? tour->hook(tour, id) : 0;
    values[0] = rowlock_int(tour->n + 1);
    return answer;
}

/* The child says whether its walk ended with EMISUSE. */
static void fork_child(struct tour *tour)
{
    pid_t child = fork();
    int status = -1;
    if (child > 0)
        waitpid(child, &status, 0);
    tour->children += child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void on_progress(void *context, const rowlock_walk_report *so_far)
{
    struct tour *tour = context;
    tour->chunks++;
    tour->consistent = tour->consistent && so_far->rows >= tour->rows_told &&
                       so_far->written + so_far->left + so_far->failed <= so_far->rows &&
                       so_far->elapsed_ms >= 0 && so_far->rate >= 0 && so_far->left_ms >= -1;
    tour->rows_told = so_far->rows;
    if (tour->chunks == tour->fork_at)
        fork_child(tour);
    if (tour->chunks == tour->cancel_at)
        rowlock_cancel(tour->site.db);
}

static void on_failed(void *context, const rowlock_row *row, int result, const char *text)
{
    struct tour *tour = context;
    tour->failures++;
    tour->failed_as = *text ? result : -1000;
    tour->failed_sum += row->key[0].number;
}

/* A walk of rows that are there already. */
static struct tour tour_over(const struct contract *c, const char *schema, const char *name,
                             const char *const *key)
{
    struct tour tour = {.site = site_open(c), .furthest = INT64_MIN, .consistent = true};
    tour.how = *WALK(.name = NAME, .chunk = CHUNK, .each = each, .progress = on_progress,
                     .failed = on_failed);
    tour.report = (rowlock_walk_report)ROWLOCK_WALK_REPORT_INIT;
    tour.t = must_describe(
        &tour.site, ABOUT(.schema = schema, .name = name, .key = key, .columns = NAMES("n")));
    return tour;
}

static struct tour tour_open(const struct contract *c)
{
    return tour_over(c, NULL, "walk_rows", NAMES("id"));
}

static void tour_close(struct tour *tour)
{
    rowlock_table_close(tour->t);
    site_close(&tour->site);
}

static int go(struct tour *tour)
{
    tour->how.context = tour;
    return walk_table(tour->t, &tour->how, &tour->report);
}

static void goes(struct tour *tour, int want, const char *what)
{
    int result = go(tour);
    is_result(tour->site.db, result, want, "%s", what);
}

static void make_rows(const struct contract *c, int count)
{
    OWNED(site) struct site s = site_open(c);
    site_table(&s, "walk_rows",
               "id BIGINT PRIMARY KEY, n BIGINT NOT NULL CHECK (n < 2000), note VARCHAR(40), "
               "version BIGINT NOT NULL");
    site_run(&s,
             "INSERT INTO walk_rows (id, n, version) SELECT i + 1, 0, 1 FROM " NUMBERS
             " WHERE i < %d",
             count);
    site_run(&s, "DELETE FROM rowlock_walks");
}

/* Each was written once, not counting what others have added in thousands. */
static void each_once(const struct contract *c, int count)
{
    tap_is_int(int_on(c, "SELECT count(*) FROM walk_rows"), count, "all rows");
    tap_is_int(int_on(c, "SELECT count(*) FROM walk_rows WHERE n NOT IN (1, 1001) OR "
                         "version <> 2 + (n - 1) / 1000"),
               0, "each written once");
}

static void nothing_left(const struct contract *c)
{
    tap_is_int(int_on(c, "SELECT count(*) FROM rowlock_walks"), 0, "the checkpoint is removed");
    tap_is_int(rows_of(c, NAME), 0, "and the lock released");
}

static void report_is(const struct tour *tour, int64_t rows, int64_t left, int64_t conflicts,
                      int64_t failed)
{
    const rowlock_walk_report *r = &tour->report;
    tap_is_int(r->rows, rows, "the report tells of all rows");
    tap_is_int(r->total, rows, "which were expected");
    tap_is_int(r->written, rows - left - failed, "of those written");
    tap_is_int(r->left, left, "left as they were");
    tap_is_int(r->conflicts, conflicts, "in conflict on the way");
    tap_is_int(r->failed, failed, "failed in the end");
    tap_ok(tour->consistent && r->elapsed_ms >= 0 && r->rate >= 0,
           "what was told on the way fits together");
}

/* ---- what is done to rows while they are walked by */

/* The odd ones, and whole chunks. */
static int leave_some(struct tour *tour, int64_t id)
{
    return id % 2 || id > 9000 ? 1 : 0;
}

/* Another writes each tenth row after it was read, once. */
static int interfere(struct tour *tour, int64_t id)
{
    if (id % 10 == 7 && tour->n == 0)
        site_run(&tour->site,
                 "UPDATE walk_rows SET n = n + 1000, version = version + 1 WHERE id = %" PRId64,
                 id);
    return 0;
}

static int move_rows(struct tour *tour, int64_t id)
{
    const struct site *s = &tour->site;
    if (id == 10 && tour->late == 0) {
        site_run(s, "DELETE FROM walk_rows WHERE id IN (20, 30, 2000)");
        site_run(s, "INSERT INTO walk_rows (id, n, version) VALUES (30, 1000, 77)");
        site_run(s, "INSERT INTO walk_rows (id, n, version) VALUES (-5, 0, 1)");
        site_run(s, "INSERT INTO walk_rows (id, n, version) VALUES (50000, 0, 1)");
        site_run(s, "UPDATE walk_rows SET version = version + 1 WHERE id = 40");
    }
    if (id == 1500)
        site_run(s, "DELETE FROM walk_rows WHERE id = 40");
    return 0;
}

/* The table refuses n from 2000 on. Row 508 is brought near it by another, after it was read. */
static int too_much(void *context, const rowlock_row *row, rowlock_value *values)
{
    struct tour *tour = context;
    int answer = each(tour, row, values);
    int64_t id = row->key[0].number;
    if (id == 10 || id == 777 || id == 778)
        values[0] = rowlock_int(5000);
    if (id == 508 && row->values[0].number == 0)
        site_run(&tour->site, "UPDATE walk_rows SET n = 1999, version = 9 WHERE id = 508");
    return answer;
}

static int misfit(void *context, const rowlock_row *row, rowlock_value *values)
{
    int answer = each(context, row, values);
    if (row->key[0].number == 10)
        values[0] = rowlock_text("no number");
    return answer;
}

static int walk_inside(struct tour *tour, int64_t id)
{
    if (id != 1)
        return 0;
    CLOSED_BY(tour_close) struct tour second = tour_open(tour->site.c);
    goes(&second, ROWLOCK_BUSY, "another of the same name meanwhile");
    second.how.wait_ms = 20;
    goes(&second, ROWLOCK_TIMEOUT, "or one that waits, but not long enough");
    tap_is_int(second.calls, 0, "walks by nothing");
    return 0;
}

static int outlast(struct tour *tour, int64_t id)
{
    if (id == 300 || id == 301)
        /* Time: the lease ends by the real clock. It must survive a longer wait, too. */
        sleep_ms(SHORT_MS + 50);
    return 0;
}

/* Rows 7 and 17 met a conflict, and 7 is deleted. When 17 is computed again, in a transaction that has found that
 * out, the server ends its connection. */
static int cut_off(struct tour *tour, int64_t id)
{
    const struct site *s = &tour->site;
    if ((id == 7 || id == 17) && tour->n == 0)
        interfere(tour, id);
    if (id == 900)
        site_run(s, "DELETE FROM walk_rows WHERE id = 7");
    if (tour->late != 1 || id != 17)
        return 0;
    if (is_postgres(s->c))
        site_run(s, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in "
                    "transaction' AND query NOT LIKE '%%rowlock_locks%%' AND datname = "
                    "current_database()");
    else
        site_run(s, "KILL CONNECTION %lld",
                 raw_int(s->c->raw, s->look,
                         "SELECT max(trx_mysql_thread_id) FROM information_schema.innodb_trx"));
    return 0;
}

static int break_lock(struct tour *tour, int64_t id)
{
    if (id != 300)
        return 0;
    OWNED(db) rowlock_db *db = must_open(tour->site.c->url);
    is_result(db, rowlock_break(db, NAME, 0, NULL), ROWLOCK_OK, "somebody breaks the lock");
    return 0;
}

/* A lock is acquired in steps. The walk is cancelled between its grant and the last step. */
static int cancel_inside(struct tour *tour, int64_t id)
{
    rowlock_db *db = tour->site.db;
    if (id != 300)
        return 0;
    OWNED(lock) rowlock_lock *lock = must_lock(db, "inside of a walk");
    is_result(db, rowlock_acquire_start(lock, OPTIONS(acquire, .wait_ms = 1000)), ROWLOCK_OK,
              "another lock is started");
    struct pollfd ended = {.fd = rowlock_acquire_fd(lock), .events = POLLIN};
    poll(&ended, 1, -1);
    rowlock_cancel(db);
    is_result(db, rowlock_acquire_step(lock), ROWLOCK_OK, "and is held");
    return 0;
}

/* ---- walks from the first row to the last */

#define WRITTEN_ONCE "SELECT count(*) FROM walk_rows WHERE n = 1 AND version = 2"

static const struct trip {
    const char *what;
    int rows, ttl_ms;
    bool usual_chunks; /* as many rows in a chunk as there are without a number */
    bool wants_server;
    int (*hook)(struct tour *tour, int64_t id);
    int (*each)(void *context, const rowlock_row *row, rowlock_value *values);
    int left, conflicts, failed; /* as reported; all others are written */
    int again; /* rows asked for again, at the end */
    int failed_as;
    int64_t failed_sum; /* of the ids of those that failed */
    const char *finds[4][3]; /* a number, its sentence, and SQL; none: each row was written once */
} trips[] = {
    {"ten thousand rows", .rows = MANY, .usual_chunks = true},
    {"a table without rows", .rows = 0},
    {"for some of them", .rows = MANY, .hook = leave_some, .left = MANY - 4500,
     .finds = {{"4500", "as they were asked for", "SELECT SUM(n) FROM walk_rows"},
               {"14500", "and no other's version moved", "SELECT SUM(version) FROM walk_rows"}}},
    {"beside a writer", .rows = SOME, .hook = interfere, .conflicts = SOME / 10, .again = SOME / 10,
     .finds = {{"300", "the writer's work is there",
                "SELECT count(*) FROM walk_rows WHERE n = 1001 AND version = 3"},
               {"2700", "all others are written once", WRITTEN_ONCE}}},
    {"while rows come and go: those that were read and then deleted are told of", .rows = SOME,
     .hook = move_rows, .conflicts = 2, .failed = 2, .again = 1, .failed_as = ROWLOCK_GONE,
     .failed_sum = 20 + 40,
     .finds = {{"1", "a row that was made anew is another, and written once",
                "SELECT count(*) FROM walk_rows WHERE id = 30 AND n = 1001 AND version = 78"},
               {"1", "one made ahead is walked by",
                "SELECT count(*) FROM walk_rows WHERE id = 50000 AND n = 1"},
               {"1", "one made behind is not",
                "SELECT count(*) FROM walk_rows WHERE id = -5 AND n = 0 AND version = 1"},
               {"2997", "all others are written once", WRITTEN_ONCE}}},
    /* 508 is computed late, and once more in the transaction that writes rows one by one. */
    {"rows that the table refuses", .rows = FEW, .each = too_much, .conflicts = 1, .failed = 4,
     .again = 2, .failed_as = ROWLOCK_VIOLATION, .failed_sum = 10 + 508 + 777 + 778,
     .finds = {{"996", "all others are written", WRITTEN_ONCE},
               {"4", "and they are as they were",
                "SELECT count(*) FROM walk_rows WHERE (n = 0 AND version = 1) OR (n = 1999 AND "
                "version = 9)"}}},
    {"a value that its column cannot take", .rows = FEW, .each = misfit, .failed = 1,
     .failed_as = ROWLOCK_EINVAL, .failed_sum = 10,
     .finds = {{"999", "all others are written", WRITTEN_ONCE}}},
    {"although its connection is lost in the middle of a transaction", .rows = FEW,
     .wants_server = true, .hook = cut_off, .conflicts = 2, .failed = 1, .again = 2,
     .failed_as = ROWLOCK_GONE, .failed_sum = 7,
     .finds = {{"1", "the row that was in conflict is written once",
                "SELECT count(*) FROM walk_rows WHERE n = 1001 AND version = 3"},
               {"998", "and so are all others", WRITTEN_ONCE}}},
    {"one of two at once", .rows = FEW, .hook = walk_inside},
    {"a chunk that takes longer than the lease, if no client comes", .rows = FEW,
     .ttl_ms = SHORT_MS, .hook = outlast},
};

static void make_trip(const struct contract *c, const struct trip *trip)
{
    make_rows(c, trip->rows);
    CLOSED_BY(tour_close) struct tour tour = tour_open(c);
    tour.hook = trip->hook;
    tour.how.ttl_ms = trip->ttl_ms;
    if (trip->each)
        tour.how.each = trip->each;
    if (trip->usual_chunks)
        tour.how.chunk = 0;
    goes(&tour, ROWLOCK_OK, trip->what);
    report_is(&tour, trip->rows, trip->left, trip->conflicts, trip->failed);
    if (trip->usual_chunks)
        tap_is_int(tour.chunks, trip->rows / 1000, "in chunks of a thousand");
    tap_is_int(tour.report.resumed, 0, "nothing was gone on with");
    tap_is_int(tour.calls, trip->rows + trip->again, "what met a conflict was asked for again");
    tap_is_int(tour.late, trip->again, "at the end");
    tap_is_int(tour.failures, trip->failed, "what failed is told of once");
    tap_is_int(tour.failed_as, trip->failed_as, "with the reason");
    tap_is_int(tour.failed_sum, trip->failed_sum, "those and no others");
    for (int i = 0; i < COUNT(trip->finds) && trip->finds[i][0]; i++)
        site_finds(&tour.site, trip->finds[i][0], trip->finds[i][1], "%s", trip->finds[i][2]);
    if (!trip->finds[0][0])
        each_once(c, trip->rows);
    nothing_left(c);
}

/* Its texts are the caller's own, and the same memory may serve for each row. */
static int note_row(void *context, const rowlock_row *row, rowlock_value *values)
{
    char *text = context;
    sprintf(text, "row %" PRId64, row->key[0].number);
    values[0] = rowlock_text(text);
    return 0;
}

static void texts(const struct contract *c)
{
    char text[40];
    make_rows(c, FEW);
    CLOSED_BY(tour_close) struct tour tour = tour_open(c);
    OWNED(table) rowlock_table *t = must_open_table(&tour.site, "walk_rows", NAMES("note"));
    is_result(
        tour.site.db,
        walk_table(t, WALK(.name = NAME, .each = note_row, .context = text, .chunk = CHUNK), NULL),
        ROWLOCK_OK, "texts from one place, and no report");
    const char *wanted = is_sqlite(c) ? "'row ' || id" : "CONCAT('row ', id)";
    tap_is_int(int_on(c, "SELECT count(*) FROM walk_rows WHERE note = %s", wanted), FEW,
               "each row has its own");
}

static void misuse(const struct contract *c)
{
    make_rows(c, 1);
    CLOSED_BY(tour_close) struct tour tour = tour_open(c);
    struct walking good = tour.how;
    tour.how.name = NULL;
    goes(&tour, ROWLOCK_EINVAL, "without a name");
    tour.how = good;
    tour.how.each = NULL;
    goes(&tour, ROWLOCK_EINVAL, "with nothing to do");
    tour.how = good;
    tour.how.chunk = 10001;
    goes(&tour, ROWLOCK_EINVAL, "in chunks that are too long");
    tour.how.chunk = -1;
    goes(&tour, ROWLOCK_EINVAL, "or shorter than nothing");
    tap_is_int(walk_table(NULL, &good, NULL), ROWLOCK_EMISUSE, "of no table");
    OWNED(site) struct site app = site_adopt(c);
    OWNED(table) rowlock_table *t = must_open_table(&app, "walk_rows", NAMES("n"));
    is_result(app.db, walk_table(t, &good, NULL), ROWLOCK_EMISUSE,
              "on the application's connection");
    const struct about *adds = TABLE(.name = "walk_rows", .key = NAMES("id"), .set = "n = n + ?");
    OWNED(table) rowlock_table *set = must_describe(&tour.site, adds);
    is_result(tour.site.db, walk_table(set, &good, NULL), ROWLOCK_EMISUSE, "with a set of its own");
    tap_is_int(tour.calls, 0, "nothing is walked by any of that");
    nothing_left(c);
}

/* ---- cut short */

static const struct cut {
    const char *what;
    int want;
    int cancel_at, stop_at; /* chunks, calls */
    int (*hook)(struct tour *tour, int64_t id);
    int rows; /* written until then */
    bool restart;
    bool in_thread; /* the steps of a pool leave no moment between a grant and their end */
    int calls; /* until the end of the next walk */
} cuts[] = {
    {"a walk that is cancelled", ROWLOCK_CANCELLED, .cancel_at = 3, .rows = 300, .calls = FEW},
    {"a walk that is cancelled inside of each()", ROWLOCK_CANCELLED, .hook = cancel_inside,
     .rows = 300, .calls = FEW, .in_thread = true},
    {"each() ends it with a result of its own", STOPPED, .stop_at = 250, .rows = 200,
     .calls = FEW + 50},
    {"and then it is begun anew", STOPPED, .stop_at = 250, .rows = 200, .restart = true,
     .calls = FEW + 250},
    {"its lock is broken", ROWLOCK_LOST, .hook = break_lock, .rows = 200, .calls = FEW + 100},
};

static void cut_short(const struct contract *c, const struct cut *cut)
{
    make_rows(c, FEW);
    CLOSED_BY(tour_close) struct tour tour = tour_open(c);
    tour.how.chunk = 100;
    tour.cancel_at = cut->cancel_at;
    tour.stop_at = cut->stop_at;
    tour.hook = cut->hook;
    goes(&tour, cut->want, cut->what);
    tap_is_int(tour.report.rows, cut->rows, "it has come as far as it says");
    tap_is_int(int_on(c, WRITTEN_ONCE), cut->rows, "and nothing was written after that");
    tap_is_int(rows_of(c, NAME), 0, "it has no lock any more");
    tour.hook = NULL;
    tour.how.restart = cut->restart;
    tour.rows_told = 0;
    goes(&tour, ROWLOCK_OK, "the next walk comes to the end");
    tap_is_int(tour.report.resumed, !cut->restart, "from where it was, unless it is to restart");
    report_is(&tour, FEW, 0, 0, 0);
    tap_is_int(tour.calls, cut->calls, "what was written is not asked for again");
    if (cut->restart)
        site_finds(&tour.site, "1200", "a new one forgets what the other has done",
                   "SELECT SUM(n) FROM walk_rows");
    else
        each_once(c, FEW);
    nothing_left(c);
}

static void does_not_resume(const struct contract *c, const char *name, const char *const *key)
{
    CLOSED_BY(tour_close) struct tour tour = tour_over(c, NULL, name, key);
    goes(&tour, ROWLOCK_EINVAL, "the next walk of this name, over another table or key,");
    tap_ok(strstr(why(tour.site.db), "another table"), "is told so: %s", why(tour.site.db));
}

/* The checkpoint is of the table that it was made for, by whatever name that is given. */
static void another_table(const struct contract *c)
{
    char schema[100] = "main";
    make_rows(c, FEW);
    CLOSED_BY(tour_close) struct tour tour = tour_open(c);
    struct site *s = &tour.site;
    site_table(s, "walk_keys", "id BIGINT PRIMARY KEY, n BIGINT NOT NULL, version BIGINT NOT NULL");
    site_run(s, "INSERT INTO walk_keys SELECT id, n, version FROM walk_rows");
    site_run(s, "ALTER TABLE walk_rows ADD COLUMN far INT");
    site_run(s, "CREATE UNIQUE INDEX walk_both ON walk_rows (id, far)");
    tour.how.chunk = 100;
    tour.cancel_at = 3;
    goes(&tour, ROWLOCK_CANCELLED, "a walk that is cancelled");
    does_not_resume(c, "walk_keys", NAMES("id"));
    does_not_resume(c, "walk_rows", NAMES("id", "far"));
    site_finds(s, "0", "nothing of that table is written",
               "SELECT count(*) FROM walk_keys WHERE version > 1");
    if (!is_sqlite(c) &&
        !c->raw->ask(s->look, is_postgres(c) ? "SELECT current_schema()" : "SELECT DATABASE()",
                     schema, sizeof schema))
        tap_ok(false, "the tables are somewhere");
    tour_close(&tour);
    tour = tour_over(c, schema, "walk_rows", NAMES("id"));
    goes(&tour, ROWLOCK_OK, "of its own table, with its schema said, it is gone on with");
    tap_is_int(tour.report.resumed, 1, "from where it was");
    each_once(c, FEW);
    nothing_left(c);
}

/* Where a process is killed: at so many calls, or late calls; 0: not at all. */
struct death {
    const struct contract *c;
    int at, late_at;
};

static int walk_to_death(void *argument)
{
    const struct death *death = argument;
    CLOSED_BY(tour_close) struct tour tour = tour_open(death->c);
    tour.hook = interfere;
    tour.die_at = death->at ? death->at : death->late_at;
    tour.die_late = death->late_at > 0;
    return go(&tour) == ROWLOCK_OK ? 0 : 1;
}

static void ends_well(const struct contract *c, int resumed)
{
    CLOSED_BY(tour_close) struct tour tour = tour_open(c);
    tour.hook = interfere;
    goes(&tour, ROWLOCK_OK, "the next walk comes to the end");
    tap_is_int(tour.report.resumed, resumed, "from where the other was");
    tap_is_int(tour.report.rows, SOME, "its report is of the whole");
    tap_is_int(tour.report.written, SOME, "in which each row counts once");
    each_once(c, SOME);
    nothing_left(c);
}

static void killed(const struct contract *c)
{
    static const struct {
        const char *what;
        int at[2], late_at[2];
        int resumed;
    } cases[] = {
        {"in the first chunk", {1, 250}, {0, 0}, 0},
        {"with each chunk's first row", {251, 251}, {0, 0}, 1},
        {"with a chunk's last row", {500, 1750}, {0, 0}, 1},
        {"in the last chunk, then late", {3000, 0}, {0, 1}, 1},
        {"between late chunks", {0, 0}, {101, 100}, 1},
        {"late, again and again", {0, 0}, {299, 42}, 1},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        make_rows(c, SOME);
        for (int k = 0; k < 2; k++) {
            struct death death = {c, cases[i].at[k], cases[i].late_at[k]};
            tap_is_int(child_join(child_start(walk_to_death, &death)), 256 + SIGKILL,
                       "a walk is killed %s", cases[i].what);
            OWNED(db) rowlock_db *db = must_open(c->url);
            is_result(db, rowlock_break(db, NAME, 0, NULL), ROWLOCK_OK,
                      "the dead one's lock is broken");
        }
        ends_well(c, cases[i].resumed);
    }
}

/* Cut short again and again: the key goes through the checkpoint each time. */
static void walk_keys(const struct contract *c, const char *const *key, const char *what)
{
    CLOSED_BY(tour_close) struct tour tour = tour_over(c, NULL, "walk_keys", key);
    long long count = int_on(c, "SELECT count(*) FROM walk_keys");
    int result = STOPPED, runs = 0;
    tour.how.chunk = count > 10 ? 3 : 1;
    for (; runs < 40 && result == STOPPED; runs++) {
        tour.calls = 0;
        tour.stop_at = runs < 8 ? tour.how.chunk + 1 : 0;
        result = go(&tour);
    }
    is_result(tour.site.db, result, ROWLOCK_OK, "%s as keys: walked in %d runs", what, runs);
    tap_is_int(tour.report.rows, count, "all %lld rows", count);
    tap_is_int(int_on(c, "SELECT count(*) FROM walk_keys WHERE n = 1 AND version = 2"), count,
               "each written once");
}

static void composite_keys(const struct contract *c)
{
    OWNED(site) struct site s = site_open(c);
    site_table(&s, "walk_keys",
               "b VARCHAR(20) NOT NULL, n BIGINT, a INT NOT NULL, z BIGINT NOT NULL, version INT "
               "NOT NULL, PRIMARY KEY (a, b, z)");
    for (int a = -1; a < 3; a++)
        for (int b = 0; b < 3; b++)
            site_run(&s,
                     "INSERT INTO walk_keys (a, b, z, n, version) VALUES (%d, 'b%d', 2, 0, 1), "
                     "(%d, 'b%d', 3, 0, 1), (%d, 'b%d', -3, 0, 1)",
                     a, b, a, b, a, b);
    site_run(&s, "INSERT INTO walk_keys (a, b, z, n, version) VALUES (0, '', 0, 0, 1), "
                 "(0, 'b1', 9223372036854775807, 0, 1), (2147483647, 'x', 0, 0, 1)");
    walk_keys(c, NAMES("a", "b", "z"), "three columns");
    site_run(&s, "UPDATE walk_keys SET n = 0, version = 1");
    walk_keys(c, NAMES("z", "a", "b"), "three columns in another order");
}

/* For the first row, and for one that met a conflict, which is computed inside a transaction. */
static int fork_here(struct tour *tour, int64_t id)
{
    interfere(tour, id);
    if (id != 1 && tour->late != 1)
        return 0;
    fork_child(tour);
    tour->late += id != 1;
    return 0;
}

static void forked(const struct contract *c)
{
    pid_t parent = getpid();
    make_rows(c, FEW);
    CLOSED_BY(tour_close) struct tour tour = tour_open(c);
    tour.hook = fork_here;
    tour.fork_at = FEW / CHUNK + 1; /* the last */
    int result = go(&tour);
    if (getpid() != parent)
        _exit(result != ROWLOCK_EMISUSE);
    is_result(tour.site.db, result, ROWLOCK_OK, "a walk whose callbacks fork");
    tap_is_int(tour.children, 3, "the children get EMISUSE, in a transaction and outside of one");
    tap_is_int(tour.report.resumed, 0, "and end nothing of their parent");
    tap_is_int(tour.report.conflicts, FEW / 10, "nor begin its work again");
    each_once(c, FEW);
    nothing_left(c);
}

/* In the order of the database, which need not be that of the bytes. */
#define WORDS                                                                                  \
    "a", "B", "\u00c4", "\u00e9", "z", "_", "-", "a-b", "aB", "a b", "o''", "\\\\x", "\u00df", \
        "Zz", "\u4e2d", "100", "20", "3", " \n i7 t\t\U0001f512", "0x7f", "n"
static const char *const words[] = {WORDS};

/* A table with a key of this type. */
static struct site key_site(const struct contract *c, const char *type)
{
    struct site s = site_open(c);
    site_table(&s, "walk_keys", textf("id %s PRIMARY KEY, n BIGINT, version INT NOT NULL", type));
    return s;
}

static void insert_key(const struct site *s, const char *value)
{
    site_run(s, "INSERT INTO walk_keys (id, n, version) VALUES (%s, 0, 1)", value);
}

static void text_keys(const struct contract *c, const char *type)
{
    OWNED(site) struct site s = key_site(c, type);
    for (int i = 0; i < 3 * COUNT(words); i++)
        insert_key(&s, textf("'%s %d'", words[i % COUNT(words)], i)); /* some are equal */
    insert_key(&s, "''");
    walk_keys(c, NAMES("id"), type);
}

/* All bytes, sixteen in a key. */
static void byte_keys(const struct contract *c)
{
    static const char *const some[] = {"00", "0000", "", "ff", "7f80", "61", "6100", "0a"};
    const char *type = is_postgres(c) ? "BYTEA" : is_mysql(c) ? "VARBINARY(20)" : "BLOB";
    const char *before = is_postgres(c) ? "'\\x" : "x'";
    OWNED(site) struct site s = key_site(c, type);
    char value[60];
    for (int i = 0; i < COUNT(some) + 16; i++) {
        int length = snprintf(value, sizeof value, "%s%s", before, i < 16 ? "" : some[i - 16]);
        for (int k = 0; i < 16 && k < 16; k++)
            length += snprintf(value + length, sizeof value - (size_t)length, "%02x", 16 * i + k);
        snprintf(value + length, sizeof value - (size_t)length, "'");
        insert_key(&s, value);
    }
    walk_keys(c, NAMES("id"), type);
}

#define ANY_DATABASE "postgres mysql sqlite"

#define MOMENTS                                                                                  \
    {                                                                                            \
        "'2024-02-29 12:00:00.000001'", "'2024-02-29 12:00:00.000002'", "'2024-02-29 12:00:00'", \
            "'1969-12-31 23:59:59.999999'", "'2024-02-29 11:59:59.5'", "'2024-02-29 12:00:01'",  \
            "'2024-03-01 00:00:00'"                                                              \
    }

/* Types, and values of them as they stand in SQL. */
static const struct {
    const char *databases, *type;
    const char *values[11];
} other_keys[] = {
    {ANY_DATABASE,
     "BIGINT",
     {"-9223372036854775807 - 1", "-1", "0", "1", "2", "3", "4", "5", "9223372036854775806",
      "9223372036854775807"}},
    {"mysql",
     "BIGINT UNSIGNED",
     {"7", "9223372036854775807", "9223372036854775808", "18446744073709551615", "0"}},
    {"postgres mysql", "DECIMAL(32, 2)", {"-0.10", "123456789012345678901234567890", "1", "0"}},
    {ANY_DATABASE, "BOOLEAN", {"true", "false"}},
    {ANY_DATABASE,
     "DATE",
     {"'2024-02-29'", "'1970-01-01'", "'2024-03-01'", "'1000-01-01'", "'9999-12-31'",
      "'2024-02-28'", "'2024-01-01'"}},
    {"postgres sqlite", "TIMESTAMP", MOMENTS},
    {"mysql", "DATETIME(6)", MOMENTS},
    {"postgres",
     "TIMESTAMPTZ",
     {"'2024-02-29 12:00:00.000001+02'", "'2024-02-29 12:00:00.000002-03'",
      "'2024-02-29 12:00:00Z'", "'infinity'", "'-infinity'"}},
    {"postgres",
     "UUID",
     {"'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
      "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12'"}},
};

static const struct {
    const char *database, *type;
} text_types[] = {
    {"postgres", "TEXT COLLATE \"C\""},
    {"postgres", "TEXT COLLATE \"en-x-icu\""},
    {"postgres", "VARCHAR(30)"},
    {"mysql", "VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"},
    {"mysql", "VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"},
    {"mysql", "VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"},
    {"sqlite", "TEXT"},
    {"sqlite", "TEXT COLLATE NOCASE"},
};

static void keys_of_all_kinds(const struct contract *c)
{
    composite_keys(c);
    byte_keys(c);
    for (int i = 0; i < COUNT(text_types); i++)
        if (strcmp(text_types[i].database, c->database) == 0)
            text_keys(c, text_types[i].type);
    for (int i = 0; i < COUNT(other_keys); i++) {
        if (!strstr(other_keys[i].databases, c->database))
            continue;
        OWNED(site) struct site s = key_site(c, other_keys[i].type);
        for (const char *const *value = other_keys[i].values; *value; value++)
            insert_key(&s, *value);
        walk_keys(c, NAMES("id"), other_keys[i].type);
    }
}

void contract_walk(const struct contract *c)
{
    for (int i = 0; i < COUNT(trips); i++)
        if (c->has_server || !trips[i].wants_server)
            make_trip(c, &trips[i]);
    texts(c);
    misuse(c);
    for (int i = 0; i < COUNT(cuts); i++)
        if (!cuts[i].in_thread || !getenv("ROWLOCK_TEST_POOL"))
            cut_short(c, &cuts[i]);
    another_table(c);
    killed(c);
    forked(c);
    keys_of_all_kinds(c);
}
