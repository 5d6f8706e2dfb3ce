/* SPDX-License-Identifier: MIT
 *
 * What a table, a session or another's transaction puts in the way of changes: triggers that leave rows out or
 * choose other keys, versions that are no integers of 64 bits, limits of an adopted session, locks that are
 * held too long. What was applied is told as applied, and nothing is applied twice.
 */
#include "tables.h"

#include "scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 3, HELD_MS = 300 };

/* Three rows, whose keys begin at id, of version 1. */
struct three {
    rowlock_value keys[ROWS], values[ROWS];
    rowlock_change changes[ROWS];
};

static struct three *three_from(struct three *h, int64_t id)
{
    for (int i = 0; i < ROWS; i++) {
        h->keys[i] = rowlock_int(id + i);
        h->values[i] = rowlock_int(10 + i);
        h->changes[i] = (rowlock_change){.key = &h->keys[i], .values = &h->values[i], .version = 1};
    }
    return h;
}

static void are(const struct three *h, int first, int second, int third, const char *what)
{
    const int want[] = {first, second, third};
    for (int i = 0; i < ROWS; i++)
        tap_is_str(rowlock_result_name(h->changes[i].result), rowlock_result_name(want[i]),
                   "%s: row %d", what, i + 1);
}

static void make_rows(const struct site *s, const char *version_type)
{
    char columns[200];
    snprintf(columns, sizeof columns, "id BIGINT PRIMARY KEY, n BIGINT, version %s NOT NULL",
             version_type);
    site_table(s, "obs_rows", columns);
    site_run(s, "INSERT INTO obs_rows VALUES (1, 0, 1), (2, 0, 1), (3, 0, 1)");
}

static rowlock_table *open_rows(const struct site *s)
{
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    about.name = "obs_rows";
    about.key = NAMES("id");
    about.columns = NAMES("n");
    about.first_version = 1;
    return must_describe(s, &about);
}

/* ---- triggers */

/* One that leaves row 2 out; MySQL has none such. */
static void leave_out(const struct site *s, const char *when, const char *row)
{
    if (is_postgres(s->c)) {
        site_run(s,
                 "CREATE FUNCTION obs_out() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                 "IF %s.id %% 10 = 2 THEN RETURN NULL; END IF; RETURN %s; END $$",
                 row, row);
        site_run(s,
                 "CREATE TRIGGER obs BEFORE %s ON obs_rows FOR EACH ROW EXECUTE FUNCTION obs_out()",
                 when);
    } else {
        site_run(s,
                 "CREATE TRIGGER obs BEFORE %s ON obs_rows WHEN %s.id %% 10 = 2 BEGIN "
                 "SELECT RAISE(IGNORE); END",
                 when, row);
    }
}

static void left_out(const struct site *s, enum op op, const char *when, const char *row)
{
    struct three h;
    make_rows(s, "BIGINT");
    leave_out(s, when, row);
    rowlock_table *t = open_rows(s);
    three_from(&h, op == INSERT ? 11 : 1);
    is_result(s->db, change_rows(t, op, h.changes, ROWS, NULL), ROWLOCK_ESERVER,
              "%s: a trigger leaves a row out", op_names[op]);
    tap_ok(strstr(why(s->db), "2 is as it should be") != NULL, "it is named: %s", why(s->db));
    are(&h, ROWLOCK_OK, ROWLOCK_ESERVER, ROWLOCK_OK, op_names[op]);
    tap_is_int(h.changes[1].current, op == INSERT ? 0 : 1, "with the version that it has");
    three_from(&h, op == INSERT ? 11 : 1);
    is_result(s->db, change_rows(t, op, &h.changes[1], 1, NULL), ROWLOCK_ESERVER, "by itself too");
    rowlock_table_close(t);
    site_run(s, "DROP TABLE obs_rows");
    if (is_postgres(s->c))
        site_run(s, "DROP FUNCTION obs_out()");
}

/* Rows that are to be made get other keys, if their own is at least from. */
static void other_keys(const struct site *s, int from, int result, int third)
{
    struct three h;
    make_rows(s, "BIGINT");
    if (is_postgres(s->c)) {
        site_run(s,
                 "CREATE FUNCTION obs_key() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                 "IF NEW.id >= %d THEN NEW.id := NEW.id + 100; END IF; RETURN NEW; END $$",
                 from);
        site_run(s, "CREATE TRIGGER obs BEFORE INSERT ON obs_rows FOR EACH ROW "
                    "EXECUTE FUNCTION obs_key()");
    } else {
        site_run(s,
                 "CREATE TRIGGER obs BEFORE INSERT ON obs_rows FOR EACH ROW "
                 "SET NEW.id = IF(NEW.id >= %d, NEW.id + 100, NEW.id)",
                 from);
    }
    rowlock_table *t = open_rows(s);
    site_run(s, "INSERT INTO obs_rows VALUES (%d, 7, 7)", from > 12 ? 12 : 9);
    three_from(&h, 11);
    is_result(s->db, change_rows(t, INSERT, h.changes, ROWS, NULL), result,
              "a trigger gives other keys from %d on", from);
    are(&h, ROWLOCK_OK, from > 12 ? third : ROWLOCK_OK, third, "insert");
    site_finds(s, from > 12 ? "2" : "3", "each is made once",
               "SELECT count(*) FROM obs_rows WHERE n >= 10");
    rowlock_table_close(t);
    site_run(s, "DROP TABLE obs_rows");
    if (is_postgres(s->c))
        site_run(s, "DROP FUNCTION obs_key()");
}

/* One that gives row 2 back what it was. Of the rows that were found the server says that they were changed, or only
 * of those that were. */
static void restored(const struct contract *c, enum op op, const char *parameter)
{
    struct three h;
    char *url = parameter ? url_with(c->url, parameter) : strdup(c->url);
    struct site s = {.c = c, .session = c->raw->open(url), .look = c->raw->open(c->url)};
    s.db = adopt_with(c, s.session, NULL);
    make_rows(&s, "BIGINT");
    site_run(&s, "CREATE TRIGGER obs BEFORE UPDATE ON obs_rows FOR EACH ROW "
                 "SET NEW.n = IF(OLD.id = 2, OLD.n, NEW.n), "
                 "NEW.version = IF(OLD.id = 2, OLD.version, NEW.version)");
    rowlock_table *t = open_rows(&s);
    for (int all = 0; all <= 1; all++) {
        rowlock_change_options options = ROWLOCK_CHANGE_OPTIONS_INIT;
        int others = all ? ROWLOCK_UNDONE : ROWLOCK_OK;
        options.all_or_nothing = all;
        site_run(&s, "UPDATE obs_rows SET version = 1");
        three_from(&h, 1);
        is_result(s.db, change_rows(t, op, h.changes, ROWS, &options), ROWLOCK_ESERVER,
                  "%s: a trigger gives a row back what it was%s", op_names[op],
                  parameter ? ", rows found are counted" : "");
        are(&h, others, ROWLOCK_ESERVER, others, op_names[op]);
    }
    three_from(&h, 1);
    is_result(s.db, change_rows(t, op, &h.changes[1], 1, NULL), ROWLOCK_ESERVER, "by itself too");
    rowlock_table_close(t);
    site_run(&s, "DROP TABLE obs_rows");
    site_close(&s);
    free(url);
}

static void triggers(const struct site *s)
{
    for (int op = UPDATE; is_mysql(s->c) && op <= TOUCH; op++) {
        restored(s->c, (enum op)op, NULL);
        restored(s->c, (enum op)op, "found_rows=1");
    }
    if (!is_mysql(s->c)) {
        left_out(s, UPDATE, "UPDATE", "NEW");
        left_out(s, INSERT, "INSERT", "NEW");
        left_out(s, REMOVE, "DELETE", "OLD");
    }
    if (s->c->has_server)
        other_keys(s, 11, ROWLOCK_OK, ROWLOCK_OK);
    /* Row 12 is there, 11 is made, and so is one that has another key: it could be 12's or 13's. */
    if (is_postgres(s->c))
        other_keys(s, 13, ROWLOCK_EUNCERTAIN, ROWLOCK_EUNCERTAIN);
}

/* ---- row policies */

/* Row 2 may be read, and not written. */
static void policies(const struct contract *c)
{
    struct three h;
    rowlock_row row;
    char why_not[200];
    struct site s = site_adopt(c);
    c->raw->run(s.look, "CREATE ROLE obs_reader", why_not, sizeof why_not);
    make_rows(&s, "BIGINT");
    site_run(&s, "ALTER TABLE obs_rows ENABLE ROW LEVEL SECURITY");
    site_run(&s, "CREATE POLICY obs_read ON obs_rows FOR SELECT USING (true)");
    site_run(&s, "CREATE POLICY obs_write ON obs_rows FOR UPDATE USING (id <> 2)");
    site_run(&s, "GRANT SELECT, UPDATE ON obs_rows TO obs_reader");
    raw_run(c->raw, s.session, "SET ROLE obs_reader");
    rowlock_table *t = open_rows(&s);
    three_from(&h, 1);
    for (int inside = 0; inside <= 1; inside++) {
        const char *where = inside ? "in a transaction" : "by itself";
        raw_run(c->raw, s.session, inside ? "BEGIN" : "SELECT 1");
        is_result(s.db, rowlock_expect(t, h.changes, ROWS, NULL), ROWLOCK_ESERVER,
                  "expect: a policy hides a row from locks, %s", where);
        are(&h, ROWLOCK_OK, ROWLOCK_ESERVER, ROWLOCK_OK, "expect");
        is_result(s.db, rowlock_expect(t, &h.changes[1], 1, NULL), ROWLOCK_ESERVER, "alone too");
        h.changes[1].version = 7;
        is_result(s.db, rowlock_expect(t, h.changes, ROWS, NULL), ROWLOCK_STALE,
                  "but another version is another version");
        h.changes[1].version = 1;
        is_result(s.db, rowlock_read(t, &h.keys[1], 1, &row), ROWLOCK_ESERVER,
                  "a read with a lock");
        tap_ok(strstr(why(s.db), "policy") != NULL, "says why: %s", why(s.db));
        is_result(s.db, rowlock_read(t, &h.keys[1], 0, &row), ROWLOCK_OK, "one without");
        is_result(s.db, rowlock_update(t, h.changes, ROWS, NULL), ROWLOCK_ESERVER,
                  "update: such a row, %s", where);
        are(&h, ROWLOCK_OK, ROWLOCK_ESERVER, ROWLOCK_OK, "update");
        raw_run(c->raw, s.session, inside ? "ROLLBACK" : "SELECT 1");
        site_run(&s, "UPDATE obs_rows SET version = 1");
    }
    rowlock_value missing = rowlock_int(9);
    is_result(s.db, rowlock_read(t, &missing, 1, &row), ROWLOCK_GONE, "no row is no row");
    rowlock_table_close(t);
    raw_run(c->raw, s.session, "RESET ROLE");
    site_run(&s, "DROP TABLE obs_rows");
    site_run(&s, "DROP ROLE obs_reader");
    site_close(&s);
}

/* ---- versions beyond 64 bits */

static void odd_version(const struct site *s, enum op op)
{
    struct three h;
    make_rows(s, "BIGINT UNSIGNED");
    site_run(s, "UPDATE obs_rows SET version = 18446744073709551615 WHERE id = 3");
    rowlock_table *t = open_rows(s);
    three_from(&h, op == INSERT ? 3 : 1);
    is_result(s->db, change_rows(t, op, h.changes, ROWS, NULL), ROWLOCK_EINVAL,
              "%s: one of three has a version that is no integer of 64 bits", op_names[op]);
    if (op == INSERT)
        are(&h, ROWLOCK_EINVAL, ROWLOCK_OK, ROWLOCK_OK, "insert");
    else
        are(&h, ROWLOCK_OK, ROWLOCK_OK, ROWLOCK_EINVAL, op_names[op]);
    rowlock_table_close(t);
    site_run(s, "DROP TABLE obs_rows");
}

static void bits(const struct site *s)
{
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    rowlock_table *t = NULL;
    about.name = "obs_bits";
    about.key = NAMES("id");
    about.columns = NAMES("n");
    site_table(s, "obs_bits", "id BIT(8) PRIMARY KEY, n INT, version BIGINT NOT NULL");
    is_result(s->db, rowlock_table_open(s->db, &about, &t), ROWLOCK_EINVAL,
              "rows are not told apart by bits");
    site_run(s, "DROP TABLE obs_bits");
}

/* ---- an adopted session */

static void session_limit(const struct contract *c)
{
    struct three h;
    struct site s = site_adopt(c);
    make_rows(&s, "BIGINT");
    raw_run(c->raw, s.session, "SET sql_select_limit = 1");
    rowlock_table *t = open_rows(&s);
    is_result(s.db, rowlock_expect(t, three_from(&h, 1)->changes, ROWS, NULL), ROWLOCK_OK,
              "expect: with a limit of one row in the session");
    is_result(s.db, rowlock_insert(t, three_from(&h, 11)->changes, ROWS, NULL), ROWLOCK_OK,
              "insert");
    site_run(&s, "UPDATE obs_rows SET version = 5 WHERE id = 1");
    is_result(s.db, rowlock_update(t, three_from(&h, 1)->changes, ROWS, NULL), ROWLOCK_STALE,
              "update");
    are(&h, ROWLOCK_STALE, ROWLOCK_OK, ROWLOCK_OK, "update");
    rowlock_table_close(t);
    site_run(&s, "DROP TABLE obs_rows");
    site_close(&s);
}

/* Row 2 is locked by another for longer than a statement may take. */
static void held_too_long(const struct site *s, bool all_or_nothing, const char *what)
{
    struct three h;
    rowlock_change_options how = ROWLOCK_CHANGE_OPTIONS_INIT;
    how.all_or_nothing = all_or_nothing;
    make_rows(s, "BIGINT");
    rowlock_table *t = open_rows(s);
    site_run(s, "%s", s->c->begin);
    site_run(s, "UPDATE obs_rows SET n = 1 WHERE id = 2");
    is_result(s->db, rowlock_update(t, three_from(&h, 1)->changes, ROWS, &how), ROWLOCK_ESERVER,
              "%s: a row is locked all the time", what);
    tap_is_int(error_of(s->db).transaction_over, 0, "that ends no transaction of the caller's");
    tap_is_int(error_of(s->db).retryable, 1, "and may go well later");
    tap_ok(!strstr(why(s->db), "your transaction"), "he has none: %s", why(s->db));
    site_finds(s, "0", "nothing was done", "SELECT count(*) FROM obs_rows WHERE n >= 10");
    site_run(s, "ROLLBACK");
    is_result(s->db, rowlock_update(t, three_from(&h, 1)->changes, ROWS, &how), ROWLOCK_OK,
              "as it does");
    rowlock_table_close(t);
    site_run(s, "DROP TABLE obs_rows");
}

static void own_locked(const struct contract *c)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.statement_timeout_ms = is_mysql(c) ? 4000 : HELD_MS; /* there in whole seconds */
    struct site s = {.c = c, .look = c->raw->open(c->url)};
    s.db = must_open_with(c->url, &options);
    held_too_long(&s, false, "each by itself");
    held_too_long(&s, true, "all or nothing");
    site_close(&s);
}

/* No limit of ours is set in a session that a pooler lends: the deadline ends the wait, and the statement may
 * be carried out all the same when the row is free. */
static void pooled_locked(const struct contract *c)
{
    struct three h;
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.statement_timeout_ms = HELD_MS;
    struct site s = site_open(c);
    rowlock_db_close(s.db);
    s.db = must_open_with(c->url, &options);
    make_rows(&s, "BIGINT");
    rowlock_table *t = open_rows(&s);
    site_run(&s, "%s", c->begin);
    site_run(&s, "UPDATE obs_rows SET n = 1 WHERE id = 2");
    is_result(s.db, rowlock_update(t, three_from(&h, 1)->changes, ROWS, NULL), ROWLOCK_EUNCERTAIN,
              "a row is locked all the time, behind a pooler");
    site_run(&s, "ROLLBACK");
    rowlock_table_close(t);
    site_run(&s, "DROP TABLE obs_rows");
    site_close(&s);
}

/* The session's own limit strikes first. MySQL has one for SELECT only. */
static void timed_out(const struct contract *c, const char *limit)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.statement_timeout_ms = 3 * HELD_MS;
    struct site s = {.c = c, .session = c->raw->open(c->url), .look = c->raw->open(c->url)};
    if (c->raw->adopt(&s.db, s.session, &options, NULL) != ROWLOCK_OK)
        raw_failed("adopt", "it is refused");
    raw_run(c->raw, s.session, "%s", limit);
    held_too_long(&s, false, "adopted, statements ended");
    held_too_long(&s, true, "adopted, statements ended, all or nothing");
    site_close(&s);
}

void contract_obstacles(const struct contract *c)
{
    char version[100];
    struct site s = site_open(c);
    triggers(&s);
    if (is_postgres(c) && !c->pooled)
        policies(c);
    if (is_mysql(c)) {
        odd_version(&s, UPDATE);
        odd_version(&s, REMOVE);
        odd_version(&s, INSERT);
        bits(&s);
        session_limit(c);
    }
    if (c->pooled)
        pooled_locked(c);
    else
        own_locked(c);
    bool maria = is_mysql(c) && c->raw->ask(s.look, "SELECT version()", version, sizeof version) &&
                 strstr(version, "MariaDB");
    if (maria)
        timed_out(c, "SET max_statement_time = 0.1");
    if (is_postgres(c) && !c->pooled)
        timed_out(c, "SET statement_timeout = 100");
    site_close(&s);
}
