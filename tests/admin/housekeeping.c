/* SPDX-License-Identifier: MIT
 *
 * rowlock_housekeeping, the procedure that sweeps within the database. Its calls beside live
 * traffic are in lock/each_load.c. */
#include "admin.h"

static const char PREFIX[] = "keeping_";
static const char KEY[] = "rowlock.housekeeping";
static const int64_t DAY_US = INT64_C(86400000000);

static const char *const TABLES[] = {"locks", "waiters", "once", "tokens"};
enum { LOCKS, WAITERS, ONCE, TOKENS, KINDS };

static int rows(const struct contract *c, const char *prefix, int kind)
{
    return (int)int_on(c, "SELECT count(*) FROM %s%s", prefix, TABLES[kind]);
}

static void empty(const struct contract *c, const char *prefix)
{
    for (int i = 0; i < KINDS; i++)
        exec_on(c, "DELETE FROM %s%s", prefix, TABLES[i]);
    exec_on(c, "UPDATE %smeta SET swept = 0", prefix);
}

/* Nothing but rows of each kind that are over. Every fourth row is not. */
static void leave_rows(const struct contract *c, const char *prefix, int count)
{
    static const struct {
        const char *columns, *name, *values; /* the last column is a time */
    } kinds[KINDS] = {
        {"slot, permits, owner, token, request, acquired, ttl, expires", "lock ",
         "0, 0, 'gone', i + 1, 1, 1, 1"},
        {"ticket, request, permits, owner, since, expires", "lock ", "i + 1, 1, 0, 'gone', 1"},
        {"fingerprint, claim, token, expires, done, changed", "key ", "'', 1, 0, 1, i % 2 = 1"},
        {"token, granted", "name ", "i + 1"},
    };
    int64_t now = unix_clock_us();
    empty(c, prefix);
    for (int kind = 0; kind < KINDS; kind++)
        exec_on(c,
                "INSERT INTO %s%s (name, %s) SELECT %s, %s, CASE WHEN i %% 4 = 0 THEN %lld ELSE "
                "%lld END FROM " NUMBERS " WHERE i < %d",
                prefix, TABLES[kind], kinds[kind].columns, numbered(c, kinds[kind].name),
                kinds[kind].values, (long long)(now + 40 * DAY_US), (long long)(now - 40 * DAY_US),
                count);
}

/* Calls it in this session; false: it fails, and says why. */
static bool is_kept(const struct contract *c, void *session, const char *ages, char why[300])
{
    return c->raw->run(session, textf("CALL %shousekeeping(%s)", PREFIX, ages), why, 300);
}

static void keep_house(const struct contract *c, const char *days)
{
    exec_on(c, "CALL %shousekeeping(%s, %s)", PREFIX, days, days);
}

static long long meta(const struct contract *c, const char *prefix, const char *column)
{
    return int_on(c, "SELECT %s FROM %smeta", column, prefix);
}

static bool was_noted(const struct contract *c)
{
    return meta(c, PREFIX, "swept") > 0;
}

static int all_rows(const struct contract *c, const char *prefix)
{
    int count = 0;
    for (int i = 0; i < KINDS; i++)
        count += rows(c, prefix, i);
    return count;
}

/* More than a batch of each kind. */
static void does_what_a_sweep_does(const struct contract *c)
{
    enum { ROWS = 1400, LIVE = ROWS / 4 };
    static const char other[] = "swept_too_";
    OWNED(text) char *url = fresh_tables(c, other);
    OWNED(db) rowlock_db *db = must_open(url);
    int64_t keys = 0;
    leave_rows(c, PREFIX, ROWS);
    leave_rows(c, other, ROWS);
    keep_house(c, "30");
    is_result(db, rowlock_sweep(db, NULL, NULL), ROWLOCK_OK, "a sweep of other tables");
    is_result(db, rowlock_once_sweep(db, 30 * INT64_C(86400000), 0, &keys), ROWLOCK_OK,
              "and of their keys");
    for (int i = 0; i < KINDS; i++) {
        tap_is_int(rows(c, PREFIX, i), LIVE, "the procedure leaves what is not over in %s",
                   TABLES[i]);
        tap_is_int(rows(c, other, i), LIVE, "and so does a sweep");
        tap_is_int(int_on(c, "SELECT count(*) FROM %s%s a JOIN %s%s b ON a.name = b.name", PREFIX,
                          TABLES[i], other, TABLES[i]),
                   LIVE, "they are the same rows");
    }
    tap_is_int(meta(c, PREFIX, "token_floor"), meta(c, other, "token_floor"),
               "the floor is the same");
    tap_ok(meta(c, PREFIX, "token_floor") > LIVE, "and has been raised");
    tap_ok(was_noted(c), "the time is noted");
}

static void never(const struct contract *c)
{
    leave_rows(c, PREFIX, 4);
    keep_house(c, "NULL");
    tap_is_int(rows(c, PREFIX, LOCKS), 1, "with NULL for both ages, expired locks go");
    tap_is_int(rows(c, PREFIX, WAITERS), 1, "and tickets of dead waiters");
    tap_is_int(rows(c, PREFIX, ONCE), 4, "no once key");
    tap_is_int(rows(c, PREFIX, TOKENS), 4, "and no counter");
}

/* An age of 0 or below would take all that is done. */
static void refuses_wrong_ages(const struct contract *c)
{
    static const char *const ages[] = {"0, 30",  "30, 0",     "-30, NULL",     "NULL, -30",
                                       "-30, 0", "30, 36501", "2147483647, 30"};
    OWNED(session) void *session = c->raw->open(c->url);
    leave_rows(c, PREFIX, 4);
    for (int i = 0; i < COUNT(ages); i++) {
        char why[300];
        tap_ok(!is_kept(c, session, ages[i], why) && strstr(why, "1 to 36500 days"),
               "(%s) is refused: %s", ages[i], why);
    }
    tap_is_int(all_rows(c, PREFIX), KINDS * 4, "and nothing has been removed");
    keep_house(c, "36500");
    tap_is_int(rows(c, PREFIX, ONCE), 4, "with the highest ages no key is old enough");
    tap_is_int(rows(c, PREFIX, TOKENS), 4, "and no counter");
}

/* A run in a session and a thread. */
struct run {
    const struct contract *c;
    void *session;
    long long id; /* of the session */
    struct helper *helper;
    atomic_bool ended;
};

static int run_in_thread(void *argument)
{
    struct run *run = argument;
    char why[300];
    bool kept = is_kept(run->c, run->session, "30, 30", why);
    run->ended = true;
    return kept;
}

static void start_run(struct run *run, const struct contract *c)
{
    *run = (struct run){.c = c, .session = c->raw->open(c->url)};
    run->id = raw_int(c->raw, run->session, "SELECT %s",
                      is_postgres(c) ? "pg_backend_pid()" : "CONNECTION_ID()");
    run->helper = helper_start(run_in_thread, run);
}

static void lock_floor(const struct contract *c, void *session)
{
    raw_run(c->raw, session, "%s", c->begin);
    raw_run(c->raw, session, "SELECT token_floor FROM %smeta FOR UPDATE", PREFIX);
}

/* A run is held up as it wants to fold, until the session commits. */
static void hold_up_run(struct run *run, const struct contract *c, void *session)
{
    leave_rows(c, PREFIX, 4);
    lock_floor(c, session);
    start_run(run, c);
    tap_ok(EVENTUALLY(rows(c, PREFIX, ONCE) == 2), "a run is under way");
}

static bool end_run(struct run *run)
{
    bool kept = helper_join(run->helper);
    run->c->raw->close(run->session);
    return kept;
}

static void passes_over(const struct contract *c)
{
    static const char *const names[] = {"lock 1", "lock 1", "key 1", "name 1"};
    struct run run;
    OWNED(session) void *session = c->raw->open(c->url);
    leave_rows(c, PREFIX, 4);
    raw_run(c->raw, session, "%s", c->begin);
    for (int i = 0; i < KINDS; i++)
        raw_run(c->raw, session, "SELECT name FROM %s%s WHERE name = '%s' FOR UPDATE", PREFIX,
                TABLES[i], names[i]);
    start_run(&run, c);
    tap_ok(EVENTUALLY(run.ended), "it waits for no row that another transaction has locked");
    for (int i = 0; i < KINDS; i++)
        tap_is_int(rows(c, PREFIX, i), 2, "a row of %s that is locked stays", TABLES[i]);
    raw_run(c->raw, session, "COMMIT");
    end_run(&run);
    keep_house(c, "30");
    tap_is_int(all_rows(c, PREFIX), KINDS, "the next run takes them");
}

static int keys_of_others(const struct contract *c)
{
    return (int)int_on(c, "SELECT count(*) FROM %sonce WHERE name = '%s' AND claim = 7", PREFIX,
                       KEY);
}

static void one_at_a_time(const struct contract *c)
{
    leave_rows(c, PREFIX, 4);
    exec_on(c,
            "INSERT INTO %sonce (name, fingerprint, claim, token, expires, done, changed) "
            "VALUES ('%s', '', 7, 0, %lld, false, 1)",
            PREFIX, KEY, (long long)(unix_clock_us() + DAY_US));
    keep_house(c, "30");
    tap_is_int(all_rows(c, PREFIX), KINDS * 4 + 1,
               "while another run has the claim, it removes nothing");
    tap_ok(!was_noted(c), "and notes nothing");
    tap_is_int(keys_of_others(c), 1, "the claim of the other stands");
    exec_on(c, "UPDATE %sonce SET expires = 1 WHERE name = '%s'", PREFIX, KEY);
    keep_house(c, "30");
    tap_is_int(all_rows(c, PREFIX), KINDS,
               "a run that was killed is in the way only until its claim is over");
    tap_ok(was_noted(c), "then the time is noted");
    tap_is_int(int_on(c, "SELECT count(*) FROM %sonce WHERE name = '%s'", PREFIX, KEY), 0,
               "and no claim is left");
}

static void loses_its_claim(const struct contract *c)
{
    struct run run;
    OWNED(session) void *session = c->raw->open(c->url);
    hold_up_run(&run, c, session);
    db_exec(
        c->raw, c->url,
        "INSERT INTO %slocks (name, slot, permits, owner, token, request, acquired, expires, ttl) "
        "VALUES ('late', 0, 0, 'gone', 1, 1, 1, 1, 1)",
        PREFIX);
    keep_house(c, "30");
    tap_is_int(rows(c, PREFIX, LOCKS), 2, "meanwhile a second run does nothing");
    exec_on(c, "UPDATE %sonce SET claim = 7 WHERE name = '%s'", PREFIX, KEY);
    raw_run(c->raw, session, "COMMIT");
    end_run(&run);
    tap_ok(!was_noted(c), "a run whose claim another has taken ends before its next batch");
    tap_is_int(keys_of_others(c), 1, "and leaves the claim of the other");
}

/* Its session is ended while it waits for the row of the floor. */
static void killed(const struct contract *c)
{
    struct run run;
    OWNED(session) void *session = c->raw->open(c->url);
    hold_up_run(&run, c, session);
    kill_id(c, run.id);
    tap_ok(!end_run(&run), "its session is killed");
    raw_run(c->raw, session, "COMMIT");
    tap_is_int(rows(c, PREFIX, LOCKS), 1, "the batches that it has committed stay");
    tap_is_int(rows(c, PREFIX, TOKENS), 4, "the one that it was at is undone");
    tap_ok(int_on(c, "SELECT expires FROM %sonce WHERE name = '%s'", PREFIX, KEY) <=
               unix_clock_us() + 60 * 1000000,
           "its claim is over in a minute");
    exec_on(c, "UPDATE %sonce SET expires = 1 WHERE name = '%s'", PREFIX, KEY);
    keep_house(c, "30");
    tap_is_int(all_rows(c, PREFIX), KINDS, "then the next run goes to the end");
}

/* Its own commits would end the transaction of the caller. */
static void refuses_a_transaction(const struct contract *c)
{
    char why[300];
    OWNED(session) void *session = c->raw->open(c->url);
    leave_rows(c, PREFIX, 4);
    raw_run(c->raw, session, "BEGIN");
    tap_ok(!is_kept(c, session, "30, 30", why), "inside a transaction it fails");
    raw_run(c->raw, session, "ROLLBACK");
    tap_is_int(all_rows(c, PREFIX), KINDS * 4, "and has done nothing");
    if (!c->pooled) /* others would get this session next */
        raw_run(c->raw, session, "SET default_transaction_isolation = 'serializable'");
    is_kept(c, session, "30, 30", why);
    tap_is_int(all_rows(c, PREFIX), KINDS, "the isolation of the session does not matter");
}

/* The row of the floor is locked for longer than the session waits. */
static void gives_its_claim_back(const struct contract *c)
{
    char why[300];
    OWNED(session) void *session = c->raw->open(c->url), *other = c->raw->open(c->url);
    empty(c, PREFIX);
    lock_floor(c, other);
    raw_run(c->raw, session, "SET innodb_lock_wait_timeout = 1");
    tap_ok(!is_kept(c, session, "30, 30", why) && strstr(why, "1205"), "a failure is reported: %s",
           why);
    tap_is_int(rows(c, PREFIX, ONCE), 0, "and its claim is given back");
    raw_run(c->raw, other, "COMMIT");
}

void contract_housekeeping(const struct contract *c)
{
    if (!c->has_server) {
        tap_note("a file has no procedures");
        return;
    }
    free(fresh_tables(c, PREFIX));
    does_what_a_sweep_does(c);
    never(c);
    refuses_wrong_ages(c);
    passes_over(c);
    one_at_a_time(c);
    loses_its_claim(c);
    if (!c->pooled)
        killed(c);
    if (is_postgres(c))
        refuses_a_transaction(c);
    if (is_mysql(c))
        gives_its_claim_back(c);
}
