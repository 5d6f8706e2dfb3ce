/* SPDX-License-Identifier: MIT
 *
 * Rows changed under their versions as a part of the application's own transaction: outcomes at every
 * isolation, that nothing is ended, that transaction_over says the truth, and locks' guards beside them. What
 * others do meanwhile is in interleave.c. */
#include "tables.h"

#include "scene.h"

/* A sort of session, and of transaction. */
struct sort {
    const char *isolation;
    const char *parameter; /* of the raw session's URL; NULL: none */
    const char *setting; /* a statement before all; NULL: none */
};

struct inside {
    struct site s;
    const struct sort *sort;
    rowlock_table *t;
};

enum { ROWS = 6, FIRST = 1 };

/* ---- the transaction */

static struct inside inside_open(const struct contract *c, const struct sort *sort)
{
    struct inside in = {.s = {.c = c}, .sort = sort};
    OWNED(text) char *url = sort->parameter ? url_with(c->url, sort->parameter) : strdup(c->url);
    in.s.session = c->raw->open(url);
    in.s.look = c->raw->open(c->url);
    if (sort->setting)
        raw_run(c->raw, in.s.session, "%s", sort->setting);
    in.s.db = must_adopt(c->raw, in.s.session, NULL);
    site_run(&in.s, "DELETE FROM win_rows");
    site_run(&in.s, "DELETE FROM win_log");
    for (int i = 1; i <= ROWS; i++)
        site_run(&in.s, "INSERT INTO win_rows VALUES (%d, 0, %d)", i, FIRST);
    struct about about = *ABOUT(.name = "win_rows", .key = NAMES("id"), .columns = NAMES("n"),
                                .first_version = FIRST);
    in.t = must_describe(&in.s, &about);
    return in;
}

static void inside_close(struct inside *in)
{
    rowlock_table_close(in->t);
    site_close(&in->s);
}

static void inside_run(const struct inside *in, const char *sql)
{
    raw_run(in->s.c->raw, in->s.session, "%s", sql);
}

static void begin(const struct inside *in)
{
    begin_at(in->s.c, in->s.session, in->sort->isolation);
}

static bool try_to_run(const struct inside *in, const char *sql)
{
    char ignored[200];
    return in->s.c->raw->run(in->s.session, sql, ignored, sizeof ignored);
}

/* The application wrote 'before'; now it tries to write more, and to commit: does the transaction stand? What
 * the library has said is the truth. */
static void says_the_truth(const struct inside *in, bool over, const char *what)
{
    tap_is_int(error_of(in->s.db).transaction_over, over, "%s: transaction_over", what);
    bool wrote = try_to_run(in, "INSERT INTO win_log VALUES ('after')");
    bool committed = try_to_run(in, "COMMIT");
    if (!committed)
        try_to_run(in, "ROLLBACK");
    bool before = int_on(in->s.c, "SELECT count(*) FROM win_log WHERE w = 'before'") == 1;
    tap_is_int(wrote && committed && before, !over, "and that is true");
    site_run(&in->s, "DELETE FROM win_log");
}

/* ---- outcomes */

static const rowlock_value *number(int64_t n)
{
    static rowlock_value value;
    value = rowlock_int(n);
    return &value;
}

static void each_outcome(const struct inside *in)
{
    const struct site *s = &in->s;
    rowlock_table *t = in->t;
    row_becomes(s, t, UPDATE, 1, number(5), FIRST, ROWLOCK_OK, FIRST + 1, "within");
    row_becomes(s, t, UPDATE, 1, number(6), FIRST, ROWLOCK_STALE, FIRST + 1, "within, once more");
    row_becomes(s, t, UPDATE, 1, number(7), FIRST + 1, ROWLOCK_OK, FIRST + 2, "the new version");
    row_becomes(s, t, UPDATE, 99, number(5), FIRST, ROWLOCK_GONE, 0, "no such row");
    row_becomes(s, t, TOUCH, 2, NULL, FIRST, ROWLOCK_OK, FIRST + 1, "within");
    row_becomes(s, t, TOUCH, 2, NULL, FIRST, ROWLOCK_STALE, FIRST + 1, "within, once more");
    row_becomes(s, t, EXPECT, 3, NULL, FIRST, ROWLOCK_OK, FIRST, "within");
    row_becomes(s, t, EXPECT, 3, NULL, FIRST + 1, ROWLOCK_STALE, FIRST, "within");
    row_becomes(s, t, EXPECT, 99, NULL, FIRST, ROWLOCK_GONE, 0, "no such row");
    row_becomes(s, t, INSERT, 50, number(8), 0, ROWLOCK_OK, FIRST, "within");
    row_becomes(s, t, INSERT, 50, number(9), 0, ROWLOCK_EXISTS, FIRST, "within, once more");
    row_becomes(s, t, REMOVE, 4, NULL, FIRST + 1, ROWLOCK_STALE, FIRST, "within");
    row_becomes(s, t, REMOVE, 4, NULL, FIRST, ROWLOCK_OK, 0, "within");
    row_becomes(s, t, REMOVE, 4, NULL, FIRST, ROWLOCK_GONE, 0, "within, once more");
    rowlock_row row = ROWLOCK_ROW_INIT;
    for (int lock = 0; lock <= 1; lock++) {
        is_result(s->db, read_row(t, 1, lock, &row), ROWLOCK_OK, "read, lock %d", lock);
        tap_ok(row.version == FIRST + 2 && row.values[0].number == 7, "our own change");
        is_result(s->db, read_row(t, 4, lock, &row), ROWLOCK_GONE, "and our own removal");
    }
}

/* Three rows of which the second is stale and the third is not there; for inserts they are new, there, new. */
static int some(const struct inside *in, enum op op, rowlock_change *changes, bool all_or_nothing)
{
    static rowlock_value keys[3], value;
    const int ids[2][3] = {{5, 6, 97}, {61, 6, 62}};
    value = rowlock_int(11);
    for (int i = 0; i < 3; i++) {
        keys[i] = rowlock_int(ids[op == INSERT][i]);
        changes[i] = (rowlock_change){
            .key = &keys[i], .values = &value, .version = i == 1 ? FIRST + 5 : FIRST};
    }
    return change_rows(in->t, op, changes, 3, OPTIONS(change, .all_or_nothing = all_or_nothing));
}

static const struct {
    const char *each, *all_or_nothing;
} outcomes[] = {
    [UPDATE] = {"OK, STALE, GONE", "UNDONE, STALE, GONE"},
    [TOUCH] = {"OK, STALE, GONE", "UNDONE, STALE, GONE"},
    [EXPECT] = {"OK, STALE, GONE", "OK, STALE, GONE"},
    [INSERT] = {"OK, EXISTS, OK", "UNDONE, EXISTS, UNDONE"},
    [REMOVE] = {"OK, STALE, GONE", "UNDONE, STALE, GONE"},
};

static void each_batch(const struct inside *in)
{
    rowlock_change changes[3];
    for (int op = UPDATE; op <= REMOVE; op++) {
        int why_not = op == INSERT ? ROWLOCK_EXISTS : ROWLOCK_STALE;
        inside_run(in, "SAVEPOINT mine");
        is_result(in->s.db, some(in, (enum op)op, changes, false), why_not, "%s: many within",
                  op_names[op]);
        rows_say(changes, 3, outcomes[op].each, "each is named");
        tap_is_int(changes[1].current, FIRST, "with its version");
        inside_run(in, "ROLLBACK TO SAVEPOINT mine");
        is_result(in->s.db, some(in, (enum op)op, changes, true), why_not,
                  "%s: all or nothing within", op_names[op]);
        rows_say(changes, 3, outcomes[op].all_or_nothing, "each is named");
    }
    tap_is_int(raw_int(in->s.c->raw, in->s.session,
                       "SELECT count(*) FROM win_rows WHERE n = 11 OR id = 5 AND version <> 1"),
               0, "all of that was undone");
}

static void commits(const struct contract *c, const struct sort *sort)
{
    CLOSED_BY(inside_close) struct inside in = inside_open(c, sort);
    begin(&in);
    inside_run(&in, "INSERT INTO win_log VALUES ('before')");
    each_outcome(&in);
    each_batch(&in);
    site_finds(&in.s, "6", "nothing was committed",
               "SELECT count(*) FROM win_rows WHERE version = %d AND n = 0", FIRST);
    says_the_truth(&in, false, "after all of that");
    site_finds(&in.s, "7", "committed: the row has its value",
               "SELECT n FROM win_rows WHERE id = 1");
    site_finds(&in.s, "6", "one is removed, one inserted", "SELECT count(*) FROM win_rows");
    site_finds(&in.s, "8", "that one", "SELECT n FROM win_rows WHERE id = 50");
}

static void rolled_back(const struct contract *c, const struct sort *sort)
{
    CLOSED_BY(inside_close) struct inside in = inside_open(c, sort);
    begin(&in);
    each_outcome(&in);
    inside_run(&in, "ROLLBACK");
    site_finds(&in.s, "6", "rolled back: all is as it was",
               "SELECT count(*) FROM win_rows WHERE version = %d AND n = 0", FIRST);
    row_becomes(&in.s, in.t, UPDATE, 1, number(5), FIRST, ROWLOCK_OK, FIRST + 1, "outside again");
    row_becomes(&in.s, in.t, UPDATE, 1, number(5), FIRST, ROWLOCK_STALE, FIRST + 1, "outside");
    site_finds(&in.s, "5", "which is a commit of its own", "SELECT n FROM win_rows WHERE id = 1");
}

/* ---- refused statements */

/* n above 1000 is against a rule; several: the wrong one is in the middle of three. */
static int violate(const struct inside *in, bool several, bool all_or_nothing)
{
    rowlock_value keys[3] = {rowlock_int(1), rowlock_int(2), rowlock_int(3)};
    rowlock_value right = rowlock_int(1), wrong = rowlock_int(5000);
    rowlock_change changes[3];
    rowlock_change_options options = *OPTIONS(change, .all_or_nothing = all_or_nothing);
    for (int i = 0; i < 3; i++)
        changes[i] =
            (rowlock_change){.key = &keys[i], .values = i == 1 ? &wrong : &right, .version = FIRST};
    return several ? rowlock_update(in->t, changes, 3, &options)
                   : rowlock_update(in->t, &changes[1], 1, &options);
}

static void refused(const struct contract *c, const struct sort *sort)
{
    for (int several = 0; several <= 1; several++)
        for (int all = 0; all <= several; all++) {
            CLOSED_BY(inside_close) struct inside in = inside_open(c, sort);
            bool over = is_postgres(c) && !all; /* a savepoint saves it there */
            begin(&in);
            inside_run(&in, "INSERT INTO win_log VALUES ('before')");
            is_result(in.s.db, violate(&in, several, all), ROWLOCK_VIOLATION,
                      "%s: a rule is violated by %s row%s", sort->isolation,
                      several ? "the second" : "a", all ? ", all or nothing" : "");
            says_the_truth(&in, over, "the statement was refused");
            site_finds(&in.s, several && !all && !over ? "4" : "6",
                       "of its chunk what could be changed is",
                       "SELECT count(*) FROM win_rows WHERE version = %d AND n = 0", FIRST);
        }
}

static void refused_by_us(const struct contract *c, const struct sort *sort)
{
    CLOSED_BY(inside_close) struct inside in = inside_open(c, sort);
    rowlock_value text = rowlock_text("no number");
    begin(&in);
    inside_run(&in, "INSERT INTO win_log VALUES ('before')");
    row_becomes(&in.s, in.t, UPDATE, 1, &text, FIRST, ROWLOCK_EINVAL, 0, "a wrong kind");
    says_the_truth(&in, false, "what was not sent does no harm");
}

/* ---- where a transaction is over before we come */

static void failed_before(const struct contract *c, const struct sort *sort)
{
    CLOSED_BY(inside_close) struct inside in = inside_open(c, sort);
    begin(&in);
    inside_run(&in, "INSERT INTO win_log VALUES ('before')");
    try_to_run(&in, "SELECT nosuch FROM nowhere");
    row_becomes(&in.s, in.t, UPDATE, 1, number(1), FIRST, ROWLOCK_ESERVER, 0,
                "in a transaction that has failed nothing is done");
    says_the_truth(&in, true, "it has failed");
}

/* ---- others in the way */

static int other_wants_ours(void *argument)
{
    const struct inside *in = argument;
    char ignored[200];
    in->s.c->raw->run(in->s.look, "UPDATE win_rows SET n = 50 WHERE id = 1", ignored,
                      sizeof ignored);
    return 0;
}

/* Who is to lose is arranged: PostgreSQL ends the one that has looked for a deadlock first, InnoDB the one
 * that has changed less. */
static void deadlocked(const struct contract *c, const struct sort *sort)
{
    CLOSED_BY(inside_close) struct inside in = inside_open(c, sort);
    if (c->pooled || (is_postgres(c) && !try_to_run(&in, "SET deadlock_timeout = '20ms'"))) {
        tap_skip(1, "a superuser arranges which session loses a deadlock, in its own sessions");
        return;
    }
    if (is_postgres(c))
        site_run(&in.s, "SET deadlock_timeout = '60s'");
    begin(&in);
    inside_run(&in, "INSERT INTO win_log VALUES ('before')");
    row_becomes(&in.s, in.t, UPDATE, 1, number(5), FIRST, ROWLOCK_OK, FIRST + 1, "ours");
    site_run(&in.s, "%s", c->begin);
    for (int i = 0; i < 20; i++)
        site_run(&in.s, "INSERT INTO win_log VALUES ('weight')");
    site_run(&in.s, "UPDATE win_rows SET n = 50 WHERE id IN (2, 3)");
    struct helper *other = helper_start(other_wants_ours, &in);
    tap_ok(somebody_waits(c), "another wants what we have");
    row_becomes(&in.s, in.t, UPDATE, 2, number(5), FIRST, ROWLOCK_CONFLICT, 0, "a deadlock");
    tap_is_int(error_of(in.s.db).transaction_over, 1, "and the transaction is over");
    try_to_run(&in, "COMMIT");
    helper_join(other);
    site_run(&in.s, "COMMIT");
    site_finds(&in.s, "0", "it is", "SELECT count(*) FROM win_log WHERE w = 'before'");
    site_finds(&in.s, "3", "the other's is not", "SELECT count(*) FROM win_rows WHERE n = 50");
}

/* A row that another client keeps locked is waited for until the statement deadline. */
static void kept_out(const struct contract *c, const struct sort *sort)
{
    CLOSED_BY(inside_close) struct inside in = inside_open(c, sort);
    struct site s = in.s;
    rowlock_db_options options =
        *OPTIONS(db, .statement_timeout_ms = c->has_server ? 60000 : patience_ms(c));
    if (is_mysql(c))
        inside_run(&in, "SET SESSION innodb_lock_wait_timeout = 1");
    if (is_postgres(c))
        inside_run(&in, "SET lock_timeout = '100ms'");
    rowlock_table_close(in.t);
    rowlock_db_close(in.s.db);
    if (c->raw->adopt(&in.s.db, in.s.session, &options, NULL) != ROWLOCK_OK)
        raw_failed("adopt", "again");
    struct about about = *ABOUT(.name = "win_rows", .key = NAMES("id"), .columns = NAMES("n"));
    in.t = must_describe(&in.s, &about);
    begin(&in);
    inside_run(&in, "INSERT INTO win_log VALUES ('before')");
    site_run(&s, "%s", c->begin);
    site_run(&s, "UPDATE win_rows SET n = 50 WHERE id = 2");
    row_becomes(&in.s, in.t, UPDATE, 2, number(5), FIRST, ROWLOCK_CONFLICT, 0, "kept out");
    site_run(&s, "ROLLBACK");
    says_the_truth(&in, is_postgres(c), "kept out");
}

/* ---- locks and versions together */

static void guarded(const struct contract *c, const struct sort *sort)
{
    CLOSED_BY(inside_close) struct inside in = inside_open(c, sort);
    OWNED(db) rowlock_db *own = must_open(c->url), *rival = must_open(c->url);
    OWNED(lock)
    rowlock_lock *lock = must_lock(own, "win guard"), *wanted = must_lock(rival, "win guard");
    is_result(own, try_lock(lock, TTL_MS), ROWLOCK_OK, "%s: a lock is held", sort->isolation);
    begin(&in);
    inside_run(&in, "INSERT INTO win_log VALUES ('before')");
    is_result(in.s.db, rowlock_guard(lock, in.s.db), ROWLOCK_OK, "and guarded");
    row_becomes(&in.s, in.t, UPDATE, 1, number(5), FIRST, ROWLOCK_OK, FIRST + 1, "under it");
    is_result(in.s.db, rowlock_guard(lock, in.s.db), ROWLOCK_OK, "guarded again");
    row_becomes(&in.s, in.t, UPDATE, 1, number(5), FIRST, ROWLOCK_STALE, FIRST + 1, "under it");
    says_the_truth(&in, false, "versions and a guard in one transaction");
    site_finds(&in.s, "5", "the change is there", "SELECT n FROM win_rows WHERE id = 1");
    site_run(&in.s, "DELETE FROM rowlock_locks WHERE name = 'win guard'");
    is_result(rival, try_lock(wanted, TTL_MS), ROWLOCK_OK, "another gets the lock");
    begin(&in);
    is_result(in.s.db, rowlock_guard(lock, in.s.db), ROWLOCK_LOST, "once the lock is lost");
    row_becomes(&in.s, in.t, TOUCH, 1, NULL, FIRST + 1, ROWLOCK_OK, FIRST + 2, "nevertheless");
    inside_run(&in, "ROLLBACK");
    site_finds(&in.s, "2", "which is the application's to roll back",
               "SELECT version FROM win_rows WHERE id = 1");
}

static void all_of(const struct contract *c, const struct sort *sort)
{
    tap_note("%s %s %s", sort->isolation, sort->parameter ? sort->parameter : "",
             sort->setting ? sort->setting : "");
    commits(c, sort);
    rolled_back(c, sort);
    refused(c, sort);
    refused_by_us(c, sort);
    guarded(c, sort);
    if (is_postgres(c))
        failed_before(c, sort);
    if (c->has_server && !sort->parameter && !sort->setting) {
        deadlocked(c, sort);
        kept_out(c, sort);
    }
}

/* The server reports rows found as changed, or only changed ones; and a MariaDB transaction heeds its
 * snapshot when it writes, or does not. */
static void all_mysql_sorts(const struct contract *c, const char *isolation)
{
    static const char *const settings[] = {"SET SESSION innodb_snapshot_isolation = ON",
                                           "SET SESSION innodb_snapshot_isolation = OFF"};
    char ignored[200];
    OWNED(session) void *session = c->raw->open(c->url);
    bool has = c->raw->run(session, settings[0], ignored, sizeof ignored);
    all_of(c, &(struct sort){isolation, "found_rows=1", NULL});
    for (int i = 0; has && i < COUNT(settings); i++) {
        all_of(c, &(struct sort){isolation, NULL, settings[i]});
        all_of(c, &(struct sort){isolation, "found_rows=1", settings[i]});
    }
    if (!has)
        tap_skip(1, "this server has no innodb_snapshot_isolation");
}

void contract_within(const struct contract *c)
{
    CLOSED_BY(site_close) struct site s = site_open(c);
    site_table(&s, "win_rows",
               "id INT PRIMARY KEY, n INT, version BIGINT NOT NULL, CHECK (n < 1000)");
    site_table(&s, "win_log", "w VARCHAR(20)");
    for (const char *const *isolation = scene_isolations(c); *isolation; isolation++) {
        all_of(c, &(struct sort){*isolation, NULL, NULL});
        if (is_mysql(c))
            all_mysql_sorts(c, *isolation);
    }
    site_run(&s, "DROP TABLE win_rows");
    site_run(&s, "DROP TABLE win_log");
}
