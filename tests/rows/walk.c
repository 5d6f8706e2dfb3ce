/* SPDX-License-Identifier: MIT
 *
 * A whole table walked by its key: each row is written exactly once, whoever else writes it, deletes it or
 * makes new ones meanwhile, and however often the walk is cut short, be it by SIGKILL.
 */
#include "scene.h"
#include "tables.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 10000, SOME = 3000, CHUNK = 250, FEW = 1000, STOPPED = -42 };

#define NAME "a walk"

/* A walk under test, and what is seen of it. hook() is called for each row before it is computed, and may
 * meddle; it returns what each() shall. */
struct tour {
    struct site site;
    rowlock_table *t;
    rowlock_walk_options how;
    rowlock_walk_report report;
    int (*hook)(struct tour *tour, int64_t id, int64_t n);
    int calls; /* of each() */
    int late; /* of those, for rows that met a conflict */
    int64_t furthest; /* id */
    int chunks; /* calls of progress() */
    bool consistent; /* what they told */
    int64_t rows_told;
    int stop_at, die_at, cancel_at; /* calls, calls, chunks; 0: never */
    bool die_late; /* die_at counts late calls */
    int failures, failed_as; /* calls of failed(), and what they said last */
    int64_t failed_sum; /* of the ids */
};

/* Rows of this table that met a conflict were brought beyond a thousand, and are asked for again after all. */
static bool is_late(struct tour *tour, int64_t id, int64_t n)
{
    bool again = id <= tour->furthest;
    if (!again)
        tour->furthest = id;
    if (!tour->die_late || again || n < 1000)
        return again;
    return raw_int(tour->site.c->raw, tour->site.look,
                   "SELECT count(*) FROM rowlock_walks WHERE walked = %d", SOME) > 0;
}

static int each(void *context, const rowlock_row *row, rowlock_value *values)
{
    struct tour *tour = context;
    int64_t id = row->key[0].number;
    tour->calls++;
    tour->late += is_late(tour, id, row->values[0].number);
    if (tour->calls == tour->stop_at)
        return STOPPED;
    if (tour->die_at && tour->die_at == (tour->die_late ? tour->late : tour->calls))
        raise(SIGKILL);
    int answer = tour->hook ? tour->hook(tour, id, row->values[0].number) : 0;
    values[0] = rowlock_int(row->values[0].number + 1);
    return answer;
}

static void on_progress(void *context, const rowlock_walk_report *so_far)
{
    struct tour *tour = context;
    tour->chunks++;
    tour->consistent = tour->consistent && so_far->rows >= tour->rows_told &&
                       so_far->written + so_far->left + so_far->failed <= so_far->rows &&
                       so_far->elapsed_ms >= 0 && so_far->rate >= 0 && so_far->left_ms >= -1;
    tour->rows_told = so_far->rows;
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

/* Of rows that are there already. */
static struct tour tour_open(const struct contract *c)
{
    struct tour tour = {.site = site_open(c), .furthest = INT64_MIN, .consistent = true};
    tour.how = (rowlock_walk_options)ROWLOCK_WALK_OPTIONS_INIT;
    tour.report = (rowlock_walk_report)ROWLOCK_WALK_REPORT_INIT;
    tour.how.name = NAME;
    tour.how.chunk = CHUNK;
    tour.how.each = each;
    tour.how.progress = on_progress;
    tour.how.failed = on_failed;
    tour.t = must_open_table(&tour.site, "walk_rows", NAMES("n"));
    return tour;
}

static void tour_close(struct tour *tour)
{
    rowlock_table_close(tour->t);
    site_close(&tour->site);
}

static int go(struct tour *tour)
{
    tour->how.context = tour;
    return rowlock_walk(tour->t, &tour->how, &tour->report);
}

static void goes(struct tour *tour, int want, const char *what)
{
    int result = go(tour);
    is_result(tour->site.db, result, want, "%s", what);
}

#define DIGIT                                                                                    \
    "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4" \
    " UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL "    \
    "SELECT 9)"

static const char fill[] = "INSERT INTO walk_rows (id, n, version) SELECT i, 0, 1 FROM (SELECT 1 + "
                           "a.d + 10 * b.d + 100 * c.d + 1000 * e.d AS i FROM " DIGIT " a, " DIGIT
                           " b, " DIGIT " c, " DIGIT " e) numbers WHERE i <= %d";

static void make_rows(const struct contract *c, int count)
{
    struct site s = site_open(c);
    site_table(&s, "walk_rows",
               "id BIGINT PRIMARY KEY, n BIGINT NOT NULL CHECK (n < 2000), note VARCHAR(40), "
               "version BIGINT NOT NULL");
    site_run(&s, fill, count);
    site_run(&s, "DELETE FROM rowlock_walks");
    site_close(&s);
}

/* Each was written once, not counting what others have added in thousands. */
static void each_once(const struct contract *c, int count, const char *what)
{
    tap_is_int(db_int(c->raw, c->url, "SELECT count(*) FROM walk_rows"), count, "%s: all rows",
               what);
    tap_is_int(db_int(c->raw, c->url,
                      "SELECT count(*) FROM walk_rows WHERE n NOT IN (1, 1001) OR "
                      "version <> 2 + (n - 1) / 1000"),
               0, "each written once");
}

static void nothing_left(const struct contract *c)
{
    tap_is_int(db_int(c->raw, c->url, "SELECT count(*) FROM rowlock_walks"), 0,
               "the checkpoint is removed");
    tap_is_int(rows_of(c, NAME), 0, "and the lock released");
}

static void report_is(const struct tour *tour, int64_t rows, int64_t written, int64_t left,
                      int64_t conflicts, int64_t failed)
{
    const rowlock_walk_report *r = &tour->report;
    tap_is_int(r->rows, rows, "the report tells of all rows");
    tap_is_int(r->written, written, "and of those written");
    tap_is_int(r->left, left, "left as they were");
    tap_is_int(r->conflicts, conflicts, "in conflict on the way");
    tap_is_int(r->failed, failed, "failed in the end");
    tap_ok(tour->consistent && r->elapsed_ms >= 0 && r->rate >= 0,
           "what was told on the way fits together");
}

/* ---- alone */

static int leave_odd_ones(struct tour *tour, int64_t id, int64_t n)
{
    (void)n;
    (void)tour;
    return id % 2 ? 1 : 0;
}

static void alone(const struct contract *c)
{
    make_rows(c, MANY);
    struct tour tour = tour_open(c);
    tour.how.chunk = 0;
    goes(&tour, ROWLOCK_OK, "ten thousand rows");
    report_is(&tour, MANY, MANY, 0, 0, 0);
    tap_is_int(tour.calls, MANY, "each was asked for once");
    tap_is_int(tour.chunks, 10, "in chunks of a thousand");
    tap_is_int(tour.report.total, MANY, "it was known how many they are");
    tap_is_int(tour.report.resumed, 0, "nothing was gone on with");
    each_once(c, MANY, "alone");
    nothing_left(c);
    tour_close(&tour);
    tour = tour_open(c);
    tour.hook = leave_odd_ones;
    goes(&tour, ROWLOCK_OK, "once more, for the even ones");
    report_is(&tour, MANY, MANY / 2, MANY / 2, 0, 0);
    site_finds(&tour.site, "15000", "as they were asked for", "SELECT SUM(n) FROM walk_rows");
    site_finds(&tour.site, "25000", "and no other's version moved",
               "SELECT SUM(version) FROM walk_rows");
    tour_close(&tour);
}

static void no_rows(const struct contract *c)
{
    make_rows(c, 0);
    struct tour tour = tour_open(c);
    goes(&tour, ROWLOCK_OK, "a table without rows");
    report_is(&tour, 0, 0, 0, 0, 0);
    tap_is_int(tour.report.total, 0, "none were expected");
    tap_is_int(tour.calls, 0, "none was asked for");
    nothing_left(c);
    tour_close(&tour);
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
    struct tour tour = tour_open(c);
    rowlock_table *t = must_open_table(&tour.site, "walk_rows", NAMES("note"));
    tour.how.each = note_row;
    tour.how.progress = NULL;
    tour.how.failed = NULL;
    tour.how.context = text;
    is_result(tour.site.db, rowlock_walk(t, &tour.how, NULL), ROWLOCK_OK,
              "texts from one place, and no report");
    const char *wanted = is_sqlite(c) ? "'row ' || id" : "CONCAT('row ', id)";
    tap_is_int(db_int(c->raw, c->url, "SELECT count(*) FROM walk_rows WHERE note = %s", wanted),
               FEW, "each row has its own");
    rowlock_table_close(t);
    tour_close(&tour);
}

/* Both as they were read; one chunk ends at such a key. */
static int write_back(void *context, const rowlock_row *row, rowlock_value *values)
{
    (void)context;
    (void)row;
    (void)values;
    return 0;
}

static void unsigned_numbers(const struct contract *c)
{
    struct tour tour = tour_open(c);
    site_table(&tour.site, "walk_wide",
               "id BIGINT UNSIGNED PRIMARY KEY, n BIGINT UNSIGNED, version BIGINT NOT NULL");
    site_run(&tour.site, "INSERT INTO walk_wide VALUES (7, 1, 1), "
                         "(9223372036854775807, 9223372036854775807, 1), "
                         "(9223372036854775808, 18446744073709551615, 1), "
                         "(18446744073709551615, 9223372036854775808, 1)");
    rowlock_table *t = must_open_table(&tour.site, "walk_wide", NAMES("n"));
    tour.how.each = write_back;
    tour.how.progress = NULL;
    tour.how.failed = NULL;
    tour.how.chunk = 3;
    is_result(tour.site.db, rowlock_walk(t, &tour.how, NULL), ROWLOCK_OK,
              "rows with numbers above those of int64_t are walked");
    site_finds(&tour.site, "4", "and each is written back as it was",
               "SELECT COUNT(*) FROM walk_wide WHERE version = 2 AND "
               "(id, n) IN ((7, 1), (9223372036854775807, 9223372036854775807), "
               "(9223372036854775808, 18446744073709551615), "
               "(18446744073709551615, 9223372036854775808))");
    rowlock_table_close(t);
    site_run(&tour.site, "DROP TABLE walk_wide");
    tour_close(&tour);
}

static void misuse(const struct contract *c)
{
    make_rows(c, 1);
    struct tour tour = tour_open(c);
    rowlock_walk_options good = tour.how;
    tour.how.name = NULL;
    goes(&tour, ROWLOCK_EINVAL, "without a name");
    tour.how = good;
    tour.how.each = NULL;
    goes(&tour, ROWLOCK_EINVAL, "with nothing to do");
    tour.how = good;
    tour.how.chunk = 10001;
    goes(&tour, ROWLOCK_EINVAL, "in chunks that are too long");
    tap_is_int(rowlock_walk(NULL, &good, NULL), ROWLOCK_EMISUSE, "of no table");
    struct site app = site_adopt(c);
    rowlock_table *t = must_open_table(&app, "walk_rows", NAMES("n"));
    is_result(app.db, rowlock_walk(t, &good, NULL), ROWLOCK_EMISUSE,
              "on the application's connection");
    rowlock_table_close(t);
    site_close(&app);
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    about.name = "walk_rows";
    about.key = NAMES("id");
    about.set = "n = n + ?";
    t = must_describe(&tour.site, &about);
    is_result(tour.site.db, rowlock_walk(t, &good, NULL), ROWLOCK_EMISUSE, "with a set of its own");
    rowlock_table_close(t);
    tap_is_int(tour.calls, 0, "nothing is walked by any of that");
    nothing_left(c);
    tour_close(&tour);
}

/* ---- beside others */

/* Another writes each tenth row after it was read, once. */
static int interfere(struct tour *tour, int64_t id, int64_t n)
{
    if (id % 10 == 7 && n == 0)
        site_run(&tour->site,
                 "UPDATE walk_rows SET n = n + 1000, version = version + 1 WHERE id = %" PRId64,
                 id);
    return 0;
}

static void beside_a_writer(const struct contract *c)
{
    make_rows(c, SOME);
    struct tour tour = tour_open(c);
    tour.hook = interfere;
    goes(&tour, ROWLOCK_OK, "beside a writer");
    report_is(&tour, SOME, SOME, 0, SOME / 10, 0);
    tap_is_int(tour.calls, SOME + SOME / 10, "what met a conflict was asked for again");
    tap_is_int(tour.late, SOME / 10, "at the end");
    each_once(c, SOME, "beside a writer");
    site_finds(&tour.site, "300", "the writer's work is there",
               "SELECT count(*) FROM walk_rows WHERE n = 1001");
    nothing_left(c);
    tour_close(&tour);
}

static int move_rows(struct tour *tour, int64_t id, int64_t n)
{
    (void)n;
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

static void beside_comings_and_goings(const struct contract *c)
{
    make_rows(c, SOME);
    struct tour tour = tour_open(c);
    tour.hook = move_rows;
    goes(&tour, ROWLOCK_OK, "while rows come and go");
    report_is(&tour, SOME, SOME - 2, 0, 2, 2);
    tap_is_int(tour.failures, 2, "rows that were read and then deleted are told of");
    tap_is_int(tour.failed_as, ROWLOCK_GONE, "as GONE");
    tap_is_int(tour.failed_sum, 20 + 40, "those two");
    site_finds(&tour.site, "1", "a row that was made anew is another, and written once",
               "SELECT count(*) FROM walk_rows WHERE id = 30 AND n = 1001 AND version = 78");
    site_finds(&tour.site, "1", "one made ahead is walked by",
               "SELECT count(*) FROM walk_rows WHERE id = 50000 AND n = 1");
    site_finds(&tour.site, "1", "one made behind is not",
               "SELECT count(*) FROM walk_rows WHERE id = -5 AND n = 0 AND version = 1");
    site_finds(&tour.site, "2997", "all others are written once",
               "SELECT count(*) FROM walk_rows WHERE n = 1 AND version = 2");
    nothing_left(c);
    tour_close(&tour);
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

static void rows_refused(const struct contract *c)
{
    make_rows(c, FEW);
    struct tour tour = tour_open(c);
    tour.how.each = too_much;
    goes(&tour, ROWLOCK_OK, "rows that the table refuses");
    report_is(&tour, FEW, FEW - 4, 0, 1, 4);
    tap_is_int(tour.failures, 4, "are told of");
    tap_is_int(tour.failed_as, ROWLOCK_VIOLATION, "with the reason");
    tap_is_int(tour.failed_sum, 10 + 508 + 777 + 778, "those and no others");
    site_finds(&tour.site, "996", "all others are written",
               "SELECT count(*) FROM walk_rows WHERE n = 1 AND version = 2");
    site_finds(&tour.site, "4", "and they are as they were",
               "SELECT count(*) FROM walk_rows WHERE (n = 0 AND version = 1) OR (n = 1999 AND "
               "version = 9)");
    nothing_left(c);
    tour_close(&tour);
}

static int misfit(void *context, const rowlock_row *row, rowlock_value *values)
{
    int answer = each(context, row, values);
    if (row->key[0].number == 10)
        values[0] = rowlock_text("no number");
    return answer;
}

static void values_that_do_not_fit(const struct contract *c)
{
    make_rows(c, FEW);
    struct tour tour = tour_open(c);
    tour.how.each = misfit;
    goes(&tour, ROWLOCK_OK, "a value that its column cannot take");
    report_is(&tour, FEW, FEW - 1, 0, 0, 1);
    tap_is_int(tour.failed_as, ROWLOCK_EINVAL, "is told of as such");
    tap_is_int(tour.failed_sum, 10, "with its row");
    nothing_left(c);
    tour_close(&tour);
}

/* ---- two at once, and the lock */

static int walk_inside(struct tour *tour, int64_t id, int64_t n)
{
    (void)n;
    if (id != 1)
        return 0;
    struct tour second = tour_open(tour->site.c);
    goes(&second, ROWLOCK_BUSY, "another of the same name meanwhile");
    second.how.wait_ms = 20;
    goes(&second, ROWLOCK_TIMEOUT, "or one that waits, but not long enough");
    tap_is_int(second.calls, 0, "walks by nothing");
    tour_close(&second);
    return 0;
}

static void two_at_once(const struct contract *c)
{
    make_rows(c, FEW);
    struct tour tour = tour_open(c);
    tour.hook = walk_inside;
    goes(&tour, ROWLOCK_OK, "one goes through");
    each_once(c, FEW, "one of two");
    nothing_left(c);
    tour_close(&tour);
}

static int break_lock(struct tour *tour, int64_t id, int64_t n)
{
    (void)n;
    if (id != 300)
        return 0;
    rowlock_db *db = must_open(tour->site.c->url);
    is_result(db, rowlock_break(db, NAME, 0, NULL), ROWLOCK_OK, "somebody breaks the lock");
    rowlock_db_close(db);
    return 0;
}

static void lock_lost(const struct contract *c)
{
    make_rows(c, FEW);
    struct tour tour = tour_open(c);
    tour.how.chunk = 100;
    tour.hook = break_lock;
    goes(&tour, ROWLOCK_LOST, "the walk is told");
    tap_is_int(tour.report.rows, 200, "its report ends with the chunk before");
    site_finds(&tour.site, "200", "and nothing was written after that",
               "SELECT count(*) FROM walk_rows WHERE n = 1 AND version = 2");
    tour.hook = NULL;
    goes(&tour, ROWLOCK_OK, "the next");
    tap_is_int(tour.report.resumed, 1, "goes on from there");
    tap_is_int(tour.report.rows, FEW, "to the end");
    each_once(c, FEW, "in two parts");
    nothing_left(c);
    tour_close(&tour);
}

static int outlast(struct tour *tour, int64_t id, int64_t n)
{
    (void)n;
    (void)tour;
    if (id == 300 || id == 301)
        let_expire();
    return 0;
}

static void lease_run_out(const struct contract *c)
{
    make_rows(c, FEW);
    struct tour tour = tour_open(c);
    tour.how.ttl_ms = SHORT_MS;
    tour.hook = outlast;
    goes(&tour, ROWLOCK_OK, "a chunk that takes longer than the lease, if nobody comes");
    each_once(c, FEW, "late");
    nothing_left(c);
    tour_close(&tour);
}

/* Rows 7 and 17 met a conflict, and 7 is deleted. When 17 is computed again, in a transaction that has found that
 * out, the server ends its connection. */
static int cut_off(struct tour *tour, int64_t id, int64_t n)
{
    const struct site *s = &tour->site;
    if ((id == 7 || id == 17) && n == 0)
        interfere(tour, id, n);
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

static void connection_lost(const struct contract *c)
{
    make_rows(c, FEW);
    struct tour tour = tour_open(c);
    tour.hook = cut_off;
    goes(&tour, ROWLOCK_OK, "although its connection is lost in the middle of a transaction");
    report_is(&tour, FEW, FEW - 1, 0, 2, 1);
    tap_ok(tour.late > 1, "which was done once more");
    tap_is_int(tour.failures, 1, "what came of it is told once");
    each_once(c, FEW - 1, "with a lost connection");
    nothing_left(c);
    tour_close(&tour);
}

/* ---- cut short */

static void cancelled(const struct contract *c)
{
    make_rows(c, FEW);
    struct tour tour = tour_open(c);
    tour.how.chunk = 100;
    tour.cancel_at = 3;
    goes(&tour, ROWLOCK_CANCELLED, "a walk that is cancelled");
    tap_is_int(tour.report.rows, 300, "has come as far as it says");
    tap_is_int(rows_of(c, NAME), 0, "and releases its lock");
    goes(&tour, ROWLOCK_OK, "the next goes on from there");
    tap_is_int(tour.report.resumed, 1, "and says so");
    tap_is_int(tour.report.total, FEW, "with figures of the whole");
    report_is(&tour, FEW, FEW, 0, 0, 0);
    tap_is_int(tour.calls, FEW, "no row is asked for twice");
    each_once(c, FEW, "cancelled");
    nothing_left(c);
    tour_close(&tour);
}

static void stopped_and_begun_anew(const struct contract *c)
{
    make_rows(c, FEW);
    struct tour tour = tour_open(c);
    tour.how.chunk = 100;
    tour.stop_at = 250;
    goes(&tour, STOPPED, "each() ends it with a result of its own");
    tap_is_int(tour.report.rows, 200, "after two chunks");
    site_finds(&tour.site, "200", "and nothing of the third is written",
               "SELECT count(*) FROM walk_rows WHERE n = 1 AND version = 2");
    tour.how.restart = 1;
    tour.rows_told = 0;
    goes(&tour, ROWLOCK_OK, "from the beginning");
    tap_is_int(tour.report.resumed, 0, "it is a new one");
    report_is(&tour, FEW, FEW, 0, 0, 0);
    site_finds(&tour.site, "1200", "that forgets what the other has done",
               "SELECT SUM(n) FROM walk_rows");
    nothing_left(c);
    tour_close(&tour);
}

static rowlock_table *describe_walked(const struct tour *tour, const char *schema, const char *name,
                                      const char *const *key)
{
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    about.schema = schema;
    about.name = name;
    about.key = key;
    about.columns = NAMES("n");
    return must_describe(&tour->site, &about);
}

static void does_not_resume(struct tour *tour, const char *name, const char *const *key)
{
    rowlock_table *own = tour->t;
    tour->t = describe_walked(tour, NULL, name, key);
    goes(tour, ROWLOCK_EINVAL, "the next walk of this name, over another table or key,");
    tap_ok(strstr(why(tour->site.db), "another table"), "is told so: %s", why(tour->site.db));
    rowlock_table_close(tour->t);
    tour->t = own;
}

/* The checkpoint is of the table that it was made for, by whatever name that is given. */
static void another_table(const struct contract *c)
{
    char schema[100] = "main";
    make_rows(c, FEW);
    struct tour tour = tour_open(c);
    const struct site *s = &tour.site;
    site_table(s, "walk_keys", "id BIGINT PRIMARY KEY, n BIGINT NOT NULL, version BIGINT NOT NULL");
    site_run(s, "INSERT INTO walk_keys SELECT id, n, version FROM walk_rows");
    site_run(s, "ALTER TABLE walk_rows ADD COLUMN far INT");
    site_run(s, "CREATE UNIQUE INDEX walk_both ON walk_rows (id, far)");
    tour.how.chunk = 100;
    tour.cancel_at = 3;
    goes(&tour, ROWLOCK_CANCELLED, "a walk that is cancelled");
    tour.chunks = tour.cancel_at = 0;
    does_not_resume(&tour, "walk_keys", NAMES("id"));
    does_not_resume(&tour, "walk_rows", NAMES("id", "far"));
    site_finds(s, "0", "nothing of that table is written",
               "SELECT count(*) FROM walk_keys WHERE version > 1");
    if (!is_sqlite(c) &&
        !c->raw->ask(s->look, is_postgres(c) ? "SELECT current_schema()" : "SELECT DATABASE()",
                     schema, sizeof schema))
        tap_ok(false, "the tables are somewhere");
    rowlock_table_close(tour.t);
    tour.t = describe_walked(&tour, schema, "walk_rows", NAMES("id"));
    goes(&tour, ROWLOCK_OK, "of its own table, with its schema said, it is gone on with");
    tap_is_int(tour.report.resumed, 1, "from where it was");
    each_once(c, FEW, "in two parts");
    nothing_left(c);
    tour_close(&tour);
}

/* Where a process is killed: at so many calls, or late calls; 0: not at all. */
struct death {
    const struct contract *c;
    int at, late_at;
};

static int walk_to_death(void *argument)
{
    const struct death *death = argument;
    struct tour tour = tour_open(death->c);
    tour.hook = interfere;
    tour.die_at = death->at ? death->at : death->late_at;
    tour.die_late = death->late_at > 0;
    int result = go(&tour);
    tour_close(&tour);
    return result == ROWLOCK_OK ? 0 : 1;
}

/* Nobody waits for the lease of the dead. */
static void bury(const struct contract *c)
{
    rowlock_db *db = must_open(c->url);
    is_result(db, rowlock_break(db, NAME, 0, NULL), ROWLOCK_OK, "the dead one's lock is broken");
    rowlock_db_close(db);
}

static void ends_well(const struct contract *c, int resumed, const char *what)
{
    struct tour tour = tour_open(c);
    tour.hook = interfere;
    goes(&tour, ROWLOCK_OK, "the next walk comes to the end");
    tap_is_int(tour.report.resumed, resumed, "from where the other was");
    tap_is_int(tour.report.rows, SOME, "its report is of the whole");
    tap_is_int(tour.report.written, SOME, "in which each row counts once");
    each_once(c, SOME, what);
    nothing_left(c);
    tour_close(&tour);
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
            bury(c);
        }
        ends_well(c, cases[i].resumed, cases[i].what);
    }
}

/* Wherever it may be just then: with luck in the middle of a commit. */
static void killed_by_chance(const struct contract *c)
{
    static const int after_ms[] = {4, 9, 15, 22, 30, 41, 53};
    struct death never = {.c = c};
    bool ended = false;
    make_rows(c, SOME);
    for (int i = 0; i < COUNT(after_ms) && !ended; i++) {
        pid_t child = child_start(walk_to_death, &never);
        sleep_ms(slow_ms(after_ms[i]));
        kill(child, SIGKILL);
        ended = child_join(child) == 0;
        rowlock_db *db = must_open(c->url);
        int broken = rowlock_break(db, NAME, 0, NULL);
        tap_ok(broken == ROWLOCK_OK || broken == ROWLOCK_NONE, "killed after %d ms", after_ms[i]);
        rowlock_db_close(db);
        ended = ended || (broken == ROWLOCK_NONE && db_int(c->raw, c->url,
                                                           "SELECT count(*) FROM walk_rows WHERE "
                                                           "version = 1") == 0);
    }
    if (!ended) {
        struct tour tour = tour_open(c);
        tour.hook = interfere;
        goes(&tour, ROWLOCK_OK, "the next walk comes to the end");
        tour_close(&tour);
    }
    each_once(c, SOME, "killed by chance");
    nothing_left(c);
}

/* ---- keys of all kinds */

/* Cut short again and again: the key goes through the checkpoint each time. */
struct stumble {
    int calls, stop_at;
};

static int each_stumbling(void *context, const rowlock_row *row, rowlock_value *values)
{
    struct stumble *stumble = context;
    if (++stumble->calls == stumble->stop_at)
        return STOPPED;
    values[0] = rowlock_int(row->values[0].number + 1);
    return 0;
}

static void walk_keys(const struct site *s, const char *const *key, const char *what)
{
    struct stumble stumble = {0};
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    rowlock_walk_options how = ROWLOCK_WALK_OPTIONS_INIT;
    rowlock_walk_report report = ROWLOCK_WALK_REPORT_INIT;
    about.name = "walk_keys";
    about.key = key;
    about.columns = NAMES("n");
    rowlock_table *t = must_describe(s, &about);
    how.name = NAME;
    how.each = each_stumbling;
    how.context = &stumble;
    how.chunk = 3;
    long long count = raw_int(s->c->raw, s->look, "SELECT count(*) FROM walk_keys");
    int result = STOPPED, runs = 0;
    for (; runs < 40 && result == STOPPED; runs++) {
        stumble.calls = 0;
        stumble.stop_at = runs < 8 ? 4 : 0;
        result = rowlock_walk(t, &how, &report);
    }
    is_result(s->db, result, ROWLOCK_OK, "%s as keys: walked in %d runs", what, runs);
    tap_is_int(report.rows, count, "all %lld rows", count);
    tap_is_int(
        raw_int(s->c->raw, s->look, "SELECT count(*) FROM walk_keys WHERE n = 1 AND version = 2"),
        count, "each written once");
    rowlock_table_close(t);
}

static void composite_keys(const struct contract *c)
{
    struct site s = site_open(c);
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
    walk_keys(&s, NAMES("a", "b", "z"), "three columns");
    site_run(&s, "UPDATE walk_keys SET n = 0, version = 1");
    walk_keys(&s, NAMES("z", "a", "b"), "three columns in another order");
    site_close(&s);
}

/* In the order of the database, which need not be that of the bytes. */
static void text_keys(const struct contract *c, const char *type)
{
    static const char *const words[] = {"a",      "B",   "\u00c4", "\u00e9", "z",   "_",
                                        "-",      "a-b", "aB",     "a b",    "o''", "\\\\x",
                                        "\u00df", "Zz",  "\u4e2d", "100",    "20",  "3"};
    struct site s = site_open(c);
    char columns[200];
    snprintf(columns, sizeof columns, "id %s PRIMARY KEY, n BIGINT, version INT NOT NULL", type);
    site_table(&s, "walk_keys", columns);
    for (int i = 0; i < 3 * COUNT(words); i++)
        site_run(&s, "INSERT INTO walk_keys (id, n, version) VALUES ('%s %d', 0, 1)",
                 words[i % COUNT(words)], i); /* some of the words are equal */
    site_run(&s, "INSERT INTO walk_keys (id, n, version) VALUES ('', 0, 1)");
    walk_keys(&s, NAMES("id"), type);
    site_close(&s);
}

/* A type, and values of it as they stand in SQL. */
static void other_keys(const struct contract *c, const char *type, const char *const *values)
{
    struct site s = site_open(c);
    char columns[200];
    snprintf(columns, sizeof columns, "id %s PRIMARY KEY, n BIGINT, version INT NOT NULL", type);
    site_table(&s, "walk_keys", columns);
    for (; *values; values++)
        site_run(&s, "INSERT INTO walk_keys (id, n, version) VALUES (%s, 0, 1)", *values);
    walk_keys(&s, NAMES("id"), type);
    site_close(&s);
}

static void numbers_and_bytes(const struct contract *c)
{
    const char *bytes = is_postgres(c) ? "BYTEA" : is_mysql(c) ? "VARBINARY(20)" : "BLOB";
    other_keys(c, "BIGINT",
               NAMES("-9223372036854775807 - 1", "-1", "0", "1", "2", "3", "4", "5",
                     "9223372036854775806", "9223372036854775807"));
    if (is_postgres(c))
        other_keys(c, bytes,
                   NAMES("'\\x00'", "'\\x0000'", "''", "'\\xff'", "'\\x7f80'", "'\\x61'",
                         "'\\x6100'", "'\\x0a'"));
    else
        other_keys(
            c, bytes,
            NAMES("x'00'", "x'0000'", "x''", "x'ff'", "x'7f80'", "x'61'", "x'6100'", "x'0a'"));
}

static void times(const struct contract *c)
{
    other_keys(c, "DATE",
               NAMES("'2024-02-29'", "'1970-01-01'", "'2024-03-01'", "'1000-01-01'", "'9999-12-31'",
                     "'2024-02-28'", "'2024-01-01'"));
    other_keys(c, is_mysql(c) ? "DATETIME(6)" : "TIMESTAMP",
               NAMES("'2024-02-29 12:00:00.000001'", "'2024-02-29 12:00:00.000002'",
                     "'2024-02-29 12:00:00'", "'1969-12-31 23:59:59.999999'",
                     "'2024-02-29 11:59:59.5'", "'2024-02-29 12:00:01'", "'2024-03-01 00:00:00'"));
    if (is_postgres(c))
        other_keys(c, "TIMESTAMPTZ",
                   NAMES("'2024-02-29 12:00:00.000001+02'", "'2024-02-29 12:00:00.000002-03'",
                         "'2024-02-29 12:00:00Z'", "'infinity'", "'-infinity'"));
}

static void keys_of_all_kinds(const struct contract *c)
{
    composite_keys(c);
    if (is_postgres(c)) {
        text_keys(c, "TEXT COLLATE \"C\"");
        text_keys(c, "TEXT COLLATE \"en-x-icu\"");
        text_keys(c, "VARCHAR(30)");
        other_keys(c, "UUID",
                   NAMES("'00000000-0000-0000-0000-000000000000'",
                         "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
                         "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
                         "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12'"));
    } else if (is_mysql(c)) {
        text_keys(c, "VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci");
        text_keys(c, "VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci");
        text_keys(c, "VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin");
    } else {
        text_keys(c, "TEXT");
        text_keys(c, "TEXT COLLATE NOCASE");
    }
    numbers_and_bytes(c);
    times(c);
}

void contract_walk(const struct contract *c)
{
    alone(c);
    no_rows(c);
    texts(c);
    if (is_mysql(c))
        unsigned_numbers(c);
    misuse(c);
    beside_a_writer(c);
    beside_comings_and_goings(c);
    rows_refused(c);
    values_that_do_not_fit(c);
    two_at_once(c);
    lock_lost(c);
    lease_run_out(c);
    if (c->has_server)
        connection_lost(c);
    cancelled(c);
    stopped_and_begun_anew(c);
    another_table(c);
    killed(c);
    killed_by_chance(c);
    keys_of_all_kinds(c);
    db_exec(c->raw, c->url, "DROP TABLE walk_rows");
    db_exec(c->raw, c->url, "DROP TABLE walk_keys");
}
