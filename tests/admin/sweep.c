/* SPDX-License-Identifier: MIT
 *
 * What a sweep removes and what it leaves, and how counters of idle names go into the floor.
 * Sweeps beside live traffic are in lock/each_load.c. */
#include "admin.h"

static const char PREFIX[] = "sweeping_";
static const int64_t HOUR_US = INT64_C(3600000000);

/* Rows as crashed holders leave them: "row 10000", "row 10001", … */
static void leave_rows(const struct contract *c, const char *kind, int count, int64_t expires_us)
{
    exec_on(c,
            "INSERT INTO %slocks (name, slot, permits, owner, token, request, acquired, expires, "
            "ttl) SELECT %s, 0, 0, 'gone', 1, i - 9999, 1, %lld, 1000000 FROM (SELECT 10000 + i AS "
            "i FROM " NUMBERS ") rows_ WHERE i < 10000 + %d",
            PREFIX, numbered(c, kind), (long long)expires_us, count);
}

static int rows(const struct contract *c)
{
    return (int)int_on(c, "SELECT count(*) FROM %slocks", PREFIX);
}

/* So much is gone, and so much is left. */
static void sweeps(const struct contract *c, rowlock_db *db, const rowlock_sweep_options *how,
                   int gone, int left, const char *what)
{
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    is_result(db, rowlock_sweep(db, how, &report), ROWLOCK_OK, "sweep %s", what);
    tap_is_int(report.locks, gone, "%s: so many are counted", what);
    tap_is_int(rows(c), left, "%s: so many rows are left", what);
}

static void removes_what_is_over(const struct contract *c, rowlock_db *db)
{
    enum { EXPIRED = 1203, LIVE = 300, BATCH = 500 };
    struct seen seen = {.in_order = true};
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    leave_rows(c, "expired ", EXPIRED, unix_clock_us() - HOUR_US);
    leave_rows(c, "live ", LIVE, unix_clock_us() + HOUR_US);
    rowlock_sweep_options how = *OPTIONS(sweep, .each = see_grant, .context = &seen, .batch = BATCH,
                                         .older_than_ms = 2 * 3600 * 1000);
    sweeps(c, db, &how, 0, EXPIRED + LIVE, "what is over for two hours");
    how.older_than_ms = 0;
    how.dry_run = 1;
    sweeps(c, db, &how, EXPIRED, EXPIRED + LIVE, "dry");
    tap_is_int(seen.count, EXPIRED, "a dry run reports each");
    OWNED(lock) rowlock_lock *lock = must_lock(db, "bystander");
    is_result(db, try_lock(lock, 30000), ROWLOCK_OK, "acquire beside many expired locks");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "and release");
    tap_is_int(rows(c), EXPIRED + LIVE, "sweeps nothing by the way");
    seen = (struct seen){.in_order = true, .stop_after = 1};
    how.dry_run = 0;
    sweeps(c, db, &how, BATCH, EXPIRED + LIVE - BATCH, "until a callback stops it: one batch");
    seen = (struct seen){.in_order = true};
    is_result(db, rowlock_sweep(db, &how, &report), ROWLOCK_OK, "sweep the rest");
    tap_is_int(report.locks, EXPIRED - BATCH, "counts what it removes");
    tap_is_int(seen.count, EXPIRED - BATCH, "and reports it");
    tap_is_int(seen.over, seen.count, "as over");
    tap_ok(seen.in_order, "in the order of names, each once");
    tap_ok(report.batches >= 2, "in batches");
    sweeps(c, db, NULL, 0, LIVE, "without options, and the live ones are left alone");
    exec_on(c, "DELETE FROM %slocks", PREFIX);
}

static void holder_finds_out(const struct contract *c, rowlock_db *db)
{
    OWNED(lock) rowlock_lock *lock = must_lock(db, "swept");
    is_result(db, try_lock(lock, 30000), ROWLOCK_OK, "hold a lock for a moment");
    exec_on(c, "UPDATE %slocks SET expires = 1", PREFIX);
    is_result(db, rowlock_sweep(db, NULL, NULL), ROWLOCK_OK, "sweep");
    tap_is_int(rows(c), 0, "the row is gone");
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_LOST, "its holder finds itself LOST");
    is_result(db, rowlock_release(lock), ROWLOCK_LOST, "at release too");
}

/* Sweeps in a thread: again and again until it is to stop, but once at least. */
struct sweeper {
    rowlock_db *db;
    atomic_bool stop;
    int result;
    rowlock_sweep_report report;
};

static int sweep_in_thread(void *argument)
{
    struct sweeper *s = argument;
    s->report = (rowlock_sweep_report)ROWLOCK_SWEEP_REPORT_INIT;
    do
        s->result = rowlock_sweep(s->db, OPTIONS(sweep, .idle_ms = 1), &s->report);
    while (!s->stop && s->result == ROWLOCK_OK);
    return 0;
}

/* What is renewed while the sweep is waiting for it stays. */
static void renewed_meanwhile(const struct contract *c, const char *url)
{
    leave_rows(c, "renewed ", 1, unix_clock_us() - HOUR_US);
    leave_rows(c, "stays over ", 1, unix_clock_us() - HOUR_US);
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(session) void *session = c->raw->open(c->url);
    raw_run(c->raw, session, "%s", c->begin);
    raw_run(c->raw, session, "UPDATE %slocks SET expires = %lld WHERE name = 'renewed 10000'",
            PREFIX, (long long)(unix_clock_us() + HOUR_US));
    struct sweeper sweeper = {.db = db, .stop = true};
    struct helper *helper = helper_start(sweep_in_thread, &sweeper);
    /* Time: the sweep mostly waits for the row by then. A later one ends the same. */
    sleep_ms(50);
    raw_run(c->raw, session, "COMMIT");
    helper_join(helper);
    is_result(db, sweeper.result, ROWLOCK_OK, "a sweep beside a renewal goes well");
    tap_is_int(rows(c), 1, "one of two expired locks is left");
    tap_is_int(int_on(c, "SELECT count(*) FROM %slocks WHERE name = 'renewed 10000'", PREFIX), 1,
               "the one that was renewed while the sweep looked");
    tap_is_int(sweeper.report.locks, 1, "the other one was swept");
    exec_on(c, "DELETE FROM %slocks", PREFIX);
}

/* Every seventh row is over, and the name of thirty has a row for each slot. */
static void sweeps_scattered(const struct contract *c, rowlock_db *db, bool reports)
{
    enum { ROWS = 300, OVER = ROWS / 7 };
    struct seen seen = {0};
    leave_rows(c, "row ", ROWS, unix_clock_us() + HOUR_US);
    exec_on(c,
            "UPDATE %slocks SET name = 'row 10100', slot = request, permits = -1 "
            "WHERE request > 101 AND request <= 131",
            PREFIX);
    exec_on(c, "UPDATE %slocks SET expires = 1 WHERE request %% 7 = 0", PREFIX);
    sweeps(c, db, OPTIONS(sweep, .batch = 10, .each = reports ? see_grant : NULL, .context = &seen),
           OVER, ROWS - OVER,
           reports ? "rows between live ones" : "rows between live ones, without a report");
    tap_is_int(seen.count, reports ? OVER : 0, "so many are reported");
    tap_is_int(int_on(c, "SELECT count(*) FROM %slocks WHERE expires = 1", PREFIX), 0,
               "those that are over are gone");
    exec_on(c, "DELETE FROM %slocks", PREFIX);
}

/* A transaction that stays open has one row locked, renews one, and releases one. A sweep that
 * waited for it would fail. */
static void passes_over(const struct contract *c, rowlock_db *db, bool reports)
{
    enum { OVER = 20, TAKEN = 3 };
    struct seen seen = {.in_order = true};
    rowlock_sweep_options how =
        *OPTIONS(sweep, .each = reports ? see_grant : NULL, .context = &seen);
    leave_rows(c, "row ", OVER, unix_clock_us() - HOUR_US);
    OWNED(session) void *session = c->raw->open(c->url);
    raw_run(c->raw, session, "%s", c->begin);
    raw_run(c->raw, session, "SELECT token FROM %slocks WHERE name = 'row 10003' FOR UPDATE",
            PREFIX);
    raw_run(c->raw, session, "UPDATE %slocks SET expires = %lld WHERE name = 'row 10007'", PREFIX,
            (long long)(unix_clock_us() + HOUR_US));
    raw_run(c->raw, session, "DELETE FROM %slocks WHERE name = 'row 10011'", PREFIX);
    sweeps(c, db, &how, OVER - TAKEN, TAKEN, "beside rows that others have locked");
    tap_is_int(seen.count, reports ? OVER - TAKEN : 0, "so many are reported");
    tap_ok(seen.in_order, "in their order");
    raw_run(c->raw, session, "COMMIT");
    tap_is_int(rows(c), 2, "the locked one and the renewed one are left");
    sweeps(c, db, &how, 1, 1, "what is not locked any more");
    exec_on(c, "DELETE FROM %slocks", PREFIX);
}

/* idle_ms as in the options; -1 is never. */
static void counts_counters(rowlock_db *db, int64_t idle_ms, bool dry, bool some, const char *what)
{
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    is_result(db, rowlock_sweep(db, OPTIONS(sweep, .idle_ms = idle_ms, .dry_run = dry), &report),
              ROWLOCK_OK, "sweep %s", what);
    tap_is_int(report.counters, some, "%s: counters", what);
}

static int64_t use_often(rowlock_db *db, rowlock_lock *lock, int times)
{
    int64_t token = 0;
    int wrong = 0;
    for (int i = 0; i < times; i++) {
        wrong += try_lock(lock, 30000) != ROWLOCK_OK;
        token = rowlock_lock_token(lock);
        wrong += rowlock_release(lock) != ROWLOCK_OK;
    }
    tap_is_int(wrong, 0, "a name is used %d times: %s", times, why(db));
    return token;
}

/* Counters of idle names are forgotten, tokens are not repeated. */
enum { IDLE_MS = 1200 * 1000, IDLE_SINCE_US = 1800 * 1000 * 1000 };

static void folds(const struct contract *c, rowlock_db *db)
{
    OWNED(lock) rowlock_lock *idle = must_lock(db, "idle"), *held = must_lock(db, "held");
    OWNED(lock) rowlock_lock *fresh = must_lock(db, "fresh"), *late = must_lock(db, "late");
    int64_t token = 0, when = 0;
    exec_on(c, "DELETE FROM %stokens", PREFIX);
    int64_t highest = use_often(db, idle, 20);
    is_result(db, try_lock(held, 30000), ROWLOCK_OK, "a lock is held");
    int64_t held_token = rowlock_lock_token(held);
    exec_on(c, "UPDATE %stokens SET granted = granted - %lld", PREFIX, (long long)IDLE_SINCE_US);
    use_often(db, late, 1);
    counts_counters(db, 0, false, false, "as usual, which keeps counters for 30 days");
    counts_counters(db, -1, false, false, "with idle_ms < 0, which keeps them for ever");
    counts_counters(db, 3600 * 1000, false, false, "what was idle for an hour");
    counts_counters(db, IDLE_MS, true, true, "idle counters dry");
    is_result(db, rowlock_last_grant(db, "idle", &token, &when), ROWLOCK_OK, "and leaves them");
    counts_counters(db, IDLE_MS, false, true, "idle counters");
    is_result(db, rowlock_last_grant(db, "idle", &token, &when), ROWLOCK_NONE,
              "a folded counter is forgotten");
    is_result(db, rowlock_last_grant(db, "held", &token, &when), ROWLOCK_OK,
              "the counter of a lock that is held is not");
    tap_is_int(token, held_token, "and is what it was");
    is_result(db, rowlock_verify(held), ROWLOCK_OK, "its grant stands");
    tap_ok(int_on(c, "SELECT token_floor FROM %smeta", PREFIX) >= highest,
           "the floor is as high as what was folded");
    is_result(db, try_lock(fresh, 30000), ROWLOCK_OK, "a name never used before");
    tap_ok(rowlock_lock_token(fresh) > highest, "starts above the floor");
    is_result(db, try_lock(idle, 30000), ROWLOCK_OK, "the forgotten name");
    tap_ok(rowlock_lock_token(idle) > highest, "repeats no token");
}

/* More counters than one batch, and a floor that never sinks. */
static void folds_many(const struct contract *c, rowlock_db *db)
{
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    exec_on(c, "DELETE FROM %stokens", PREFIX);
    exec_on(c, "UPDATE %smeta SET token_floor = 5000", PREFIX);
    exec_on(c,
            "INSERT INTO %stokens (name, token, granted) SELECT %s, 10 * i + 1, 1 FROM " NUMBERS
            " WHERE i < 25",
            PREFIX, numbered(c, "n"));
    is_result(db, rowlock_sweep(db, OPTIONS(sweep, .batch = 10), &report), ROWLOCK_OK,
              "fold 25 counters, 10 at a time");
    tap_is_int(report.counters, 25, "all are folded");
    tap_is_int(int_on(c, "SELECT count(*) FROM %stokens", PREFIX), 0, "none is left");
    tap_is_int(int_on(c, "SELECT token_floor FROM %smeta", PREFIX), 5000,
               "the floor does not sink");
}

/* The only counter becomes idle at any moment of a sweep, also between two of its statements. */
static void folds_at_once(const struct contract *c, rowlock_db *db)
{
    OWNED(lock) rowlock_lock *lock = must_lock(db, "at once");
    int64_t last = 0;
    int wrong = 0, lower = 0;
    exec_on(c, "DELETE FROM %stokens", PREFIX);
    for (int i = env_is_set("ROWLOCK_TEST_LONG") ? 300 : 60; i > 0; i--) {
        rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
        wrong += try_lock(lock, 30000) != ROWLOCK_OK;
        lower += rowlock_lock_token(lock) <= last;
        last = rowlock_lock_token(lock);
        wrong += rowlock_release(lock) != ROWLOCK_OK;
        while (report.counters == 0 && wrong == 0)
            wrong += rowlock_sweep(db, OPTIONS(sweep, .idle_ms = 1), &report) != ROWLOCK_OK;
    }
    tap_is_int(wrong, 0, "a counter is folded as soon as it is idle: %s", why(db));
    tap_is_int(lower, 0, "and its next token is higher all the same");
}

static void folds_beside(const char *url, rowlock_db *db)
{
    OWNED(lock) rowlock_lock *lock = must_lock(db, "beside");
    OWNED(db) rowlock_db *other = must_open(url);
    struct sweeper sweeper = {.db = other};
    int wrong = 0;
    struct helper *helper = helper_start(sweep_in_thread, &sweeper);
    for (int i = env_is_set("ROWLOCK_TEST_LONG") ? 300 : 60; i > 0; i--) {
        int64_t token = 0, when = 0;
        wrong += wait_lock(lock, 30000, ROWLOCK_FOREVER) != ROWLOCK_OK;
        wrong += rowlock_last_grant(db, "beside", &token, &when) != ROWLOCK_OK;
        wrong += rowlock_release(lock) != ROWLOCK_OK;
    }
    sweeper.stop = true;
    helper_join(helper);
    tap_is_int(wrong, 0, "beside a counter sweep a grant stands, and has its counter");
    is_result(other, sweeper.result, ROWLOCK_OK, "the sweep goes on");
}

/* Holds a sweep up after it has looked which counters are idle: PostgreSQL's before it locks them, the others'
 * as it removes the first. */
static void close_gate(const struct contract *c, void *gate)
{
    if (is_postgres(c)) {
        raw_run(c->raw, gate, "BEGIN");
        raw_run(c->raw, gate, "SELECT token_floor FROM %smeta FOR UPDATE", PREFIX);
        return;
    }
    raw_run(c->raw, gate, "DO GET_LOCK('sweep gate', 0)");
    raw_run(c->raw, gate,
            "CREATE TRIGGER %sgate BEFORE DELETE ON %stokens FOR EACH ROW BEGIN "
            "DO GET_LOCK('sweep here', 0); DO GET_LOCK('sweep gate', 60); END",
            PREFIX, PREFIX);
}

static bool is_held_up(const struct contract *c)
{
    return int_on(c,
                  is_postgres(c)
                      ? "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                        "AND query LIKE '%%rowlock:fold%%%s%%'"
                      : "SELECT IS_USED_LOCK('sweep here') IS NOT NULL /* %s */",
                  PREFIX) > 0;
}

/* Made when the sweep had yet to look, committed when it had: such a grant keeps its counter. Without it a guard
 * finds nothing. */
static void granted_meanwhile(const struct contract *c, const char *url)
{
    OWNED(session) void *session = c->raw->open(c->url), *gate = c->raw->open(c->url);
    OWNED(db) rowlock_db *db = must_adopt(c->raw, session, PREFIX), *other = must_open(url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "granted meanwhile");
    struct sweeper sweeper = {.db = other, .stop = true};
    exec_on(c, "DELETE FROM %stokens", PREFIX);
    exec_on(c,
            "INSERT INTO %stokens (name, token, granted) VALUES ('a', 1, 1), ('granted meanwhile', "
            "1, 1)",
            PREFIX);
    close_gate(c, gate);
    raw_run(c->raw, session, "%s", c->begin);
    is_result(db, rowlock_tx_acquire(lock, db, NULL), ROWLOCK_OK, "a lock is granted");
    /* Time: the sweep takes counters that are idle for 1 ms of the real clock. More time changes
     * nothing. */
    sleep_ms(20);
    struct helper *helper = helper_start(sweep_in_thread, &sweeper);
    tap_ok(EVENTUALLY(is_held_up(c)), "a counter sweep has looked");
    raw_run(c->raw, session, "COMMIT");
    raw_run(c->raw, gate, is_postgres(c) ? "COMMIT" : "DO RELEASE_LOCK('sweep gate')");
    helper_join(helper);
    is_result(other, sweeper.result, ROWLOCK_OK, "when the grant is committed it goes on");
    tap_is_int(int_on(c, "SELECT count(*) FROM %stokens WHERE name = 'a'", PREFIX), 0,
               "and takes what is idle");
    tap_is_int(int_on(c, "SELECT token FROM %stokens WHERE name <> 'a'", PREFIX), 2,
               "but not the counter of that lock");
    raw_run(c->raw, session, "%s", c->begin);
    is_result(db, rowlock_guard(lock, db), ROWLOCK_OK, "which can be guarded");
    raw_run(c->raw, session, "COMMIT");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "release");
    if (!is_postgres(c))
        raw_run(c->raw, gate, "DROP TRIGGER %sgate", PREFIX);
}

void contract_sweep(const struct contract *c)
{
    OWNED(text) char *url = fresh_tables(c, PREFIX);
    OWNED(db) rowlock_db *db = must_open(url);
    removes_what_is_over(c, db);
    holder_finds_out(c, db);
    renewed_meanwhile(c, url);
    for (int reports = 0; reports <= 1; reports++) {
        sweeps_scattered(c, db, reports);
        if (!c->has_server)
            continue;
        OWNED(session) void *session = c->raw->open(c->url);
        OWNED(db) rowlock_db *adopted = must_adopt(c->raw, session, PREFIX);
        passes_over(c, db, reports);
        passes_over(c, adopted, reports);
    }
    folds(c, db);
    folds_many(c, db);
    folds_at_once(c, db);
    folds_beside(url, db);
    if (c->has_server)
        granted_meanwhile(c, url);
}
