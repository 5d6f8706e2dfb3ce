/* SPDX-License-Identifier: MIT
 *
 * What a table, a session or another's transaction puts in the way of changes: triggers that leave rows out or
 * choose other keys, versions that are no integers of 64 bits, limits of an adopted session, locks that are
 * held too long. What was applied is told as applied, and nothing is applied twice. */
#include "tables.h"

enum { ROWS = 3, HELD_MS = 300 };

static void make_rows(const struct site *s, const char *version_type)
{
    site_table(s, "obs_rows",
               textf("id BIGINT PRIMARY KEY, n BIGINT, version %s NOT NULL", version_type));
    site_run(s, "INSERT INTO obs_rows VALUES (1, 0, 1), (2, 0, 1), (3, 0, 1)");
}

static rowlock_table *open_rows(const struct site *s)
{
    return must_describe(s, TABLE(.name = "obs_rows", .key = NAMES("id"), .columns = NAMES("n"),
                                  .first_version = 1));
}

static void trigger_postgres(const struct site *s, const char *when, const char *body)
{
    site_run(
        s,
        "CREATE OR REPLACE FUNCTION obs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %s END $$",
        body);
    site_run(s, "CREATE TRIGGER obs BEFORE %s ON obs_rows FOR EACH ROW EXECUTE FUNCTION obs()",
             when);
}

/* One that leaves row 2 out; MySQL has none such. */
static void left_out(const struct site *s, enum op op, const char *when, const char *row)
{
    struct few f;
    int64_t first = op == INSERT ? 11 : 1;
    make_rows(s, "BIGINT");
    if (is_postgres(s->c))
        trigger_postgres(
            s, when, textf("IF %s.id %% 10 = 2 THEN RETURN NULL; END IF; RETURN %s;", row, row));
    else
        site_run(s,
                 "CREATE TRIGGER obs BEFORE %s ON obs_rows WHEN %s.id %% 10 = 2 BEGIN "
                 "SELECT RAISE(IGNORE); END",
                 when, row);
    OWNED(table) rowlock_table *t = open_rows(s);
    is_result(s->db, change_rows(t, op, few_from(&f, first, 1), ROWS, NULL), ROWLOCK_ESERVER,
              "%s: a trigger leaves a row out", op_names[op]);
    tap_ok(strstr(why(s->db), "2 matches") != NULL, "it is named: %s", why(s->db));
    rows_say(f.changes, ROWS, "OK, ESERVER, OK", op_names[op]);
    tap_is_int(f.changes[1].current, op == INSERT ? 0 : 1, "with the version that it has");
    is_result(s->db, change_rows(t, op, &few_from(&f, first, 1)[1], 1, NULL), ROWLOCK_ESERVER,
              "by itself too");
}

/* Rows that are to be made get other keys, if their own is at least from. */
static void other_keys(const struct site *s, int from, int result, const char *rows)
{
    struct few f;
    make_rows(s, "BIGINT");
    if (is_postgres(s->c))
        trigger_postgres(
            s, "INSERT",
            textf("IF NEW.id >= %d THEN NEW.id := NEW.id + 100; END IF; RETURN NEW;", from));
    else
        site_run(s,
                 "CREATE TRIGGER obs BEFORE INSERT ON obs_rows FOR EACH ROW "
                 "SET NEW.id = IF(NEW.id >= %d, NEW.id + 100, NEW.id)",
                 from);
    OWNED(table) rowlock_table *t = open_rows(s);
    site_run(s, "INSERT INTO obs_rows VALUES (%d, 7, 7)", from > 12 ? 12 : 9);
    is_result(s->db, change_rows(t, INSERT, few_from(&f, 11, 1), ROWS, NULL), result,
              "a trigger gives other keys from %d on", from);
    rows_say(f.changes, ROWS, rows, "insert");
    site_finds(s, from > 12 ? "2" : "3", "each is made once",
               "SELECT count(*) FROM obs_rows WHERE n >= 10");
}

/* One that gives row 2 back what it was. Of the rows that were found the server says that they were changed, or only
 * of those that were. */
static void restored(const struct contract *c, enum op op, const char *parameter)
{
    struct few f;
    OWNED(text) char *url = parameter ? url_with(c->url, parameter) : strdup(c->url);
    OWNED(site)
    struct site s = {.c = c, .session = c->raw->open(url), .look = c->raw->open(c->url)};
    s.db = must_adopt(c->raw, s.session, NULL);
    make_rows(&s, "BIGINT");
    site_run(&s, "CREATE TRIGGER obs BEFORE UPDATE ON obs_rows FOR EACH ROW "
                 "SET NEW.n = IF(OLD.id = 2, OLD.n, NEW.n), "
                 "NEW.version = IF(OLD.id = 2, OLD.version, NEW.version)");
    OWNED(table) rowlock_table *t = open_rows(&s);
    for (int all = 0; all <= 1; all++) {
        site_run(&s, "UPDATE obs_rows SET version = 1");
        is_result(s.db, change_rows(t, op, few_from(&f, 1, 1), ROWS, HOW(.all_or_nothing = all)),
                  ROWLOCK_ESERVER, "%s: a trigger gives a row back what it was%s", op_names[op],
                  parameter ? ", rows found are counted" : "");
        rows_say(f.changes, ROWS, all ? "UNDONE, ESERVER, UNDONE" : "OK, ESERVER, OK",
                 op_names[op]);
    }
    is_result(s.db, change_rows(t, op, &few_from(&f, 1, 1)[1], 1, NULL), ROWLOCK_ESERVER,
              "by itself too");
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
        other_keys(s, 11, ROWLOCK_OK, "OK, OK, OK");
    /* Row 12 is there, 11 is made, and so is one that has another key: it could be 12's or 13's. */
    if (is_postgres(s->c))
        other_keys(s, 13, ROWLOCK_EUNCERTAIN, "OK, EUNCERTAIN, EUNCERTAIN");
}

/* Row 2 may be read, and not written. */
static void policies(const struct contract *c)
{
    struct few f;
    rowlock_row row = ROWLOCK_ROW_INIT;
    char why_not[200];
    OWNED(site) struct site s = site_adopt(c);
    c->raw->run(s.look, "CREATE ROLE obs_reader", why_not, sizeof why_not);
    make_rows(&s, "BIGINT");
    site_run(&s, "ALTER TABLE obs_rows ENABLE ROW LEVEL SECURITY");
    site_run(&s, "CREATE POLICY obs_read ON obs_rows FOR SELECT USING (true)");
    site_run(&s, "CREATE POLICY obs_write ON obs_rows FOR UPDATE USING (id <> 2)");
    site_run(&s, "GRANT SELECT, UPDATE ON obs_rows TO obs_reader");
    raw_run(c->raw, s.session, "SET ROLE obs_reader");
    OWNED(table) rowlock_table *t = open_rows(&s);
    few_from(&f, 1, 1);
    for (int inside = 0; inside <= 1; inside++) {
        const char *where = inside ? "in a transaction" : "by itself";
        raw_run(c->raw, s.session, inside ? "BEGIN" : "SELECT 1");
        is_result(s.db, rowlock_expect(t, f.changes, ROWS, NULL), ROWLOCK_ESERVER,
                  "expect: a policy hides a row from locks, %s", where);
        rows_say(f.changes, ROWS, "OK, ESERVER, OK", "expect");
        is_result(s.db, rowlock_expect(t, &f.changes[1], 1, NULL), ROWLOCK_ESERVER, "alone too");
        f.changes[1].version = 7;
        is_result(s.db, rowlock_expect(t, f.changes, ROWS, NULL), ROWLOCK_STALE,
                  "but another version is another version");
        f.changes[1].version = 1;
        is_result(s.db, rowlock_read(t, &f.keys[1], 1, &row), ROWLOCK_ESERVER,
                  "a read with a lock");
        tap_ok(strstr(why(s.db), "policy") != NULL, "says why: %s", why(s.db));
        is_result(s.db, rowlock_read(t, &f.keys[1], 0, &row), ROWLOCK_OK, "one without");
        is_result(s.db, rowlock_update(t, f.changes, ROWS, NULL), ROWLOCK_ESERVER,
                  "update: such a row, %s", where);
        rows_say(f.changes, ROWS, "OK, ESERVER, OK", "update");
        raw_run(c->raw, s.session, inside ? "ROLLBACK" : "SELECT 1");
        site_run(&s, "UPDATE obs_rows SET version = 1");
    }
    is_result(s.db, read_row(t, 9, 1, &row), ROWLOCK_GONE, "no row is no row");
    raw_run(c->raw, s.session, "RESET ROLE");
    site_run(&s, "DROP TABLE obs_rows");
    site_run(&s, "DROP ROLE obs_reader");
}

static void odd_version(const struct site *s, enum op op)
{
    struct few f;
    make_rows(s, "BIGINT UNSIGNED");
    site_run(s, "UPDATE obs_rows SET version = 18446744073709551615 WHERE id = 3");
    OWNED(table) rowlock_table *t = open_rows(s);
    is_result(s->db, change_rows(t, op, few_from(&f, op == INSERT ? 3 : 1, 1), ROWS, NULL),
              ROWLOCK_EINVAL, "%s: one of three has a version that is no integer of 64 bits",
              op_names[op]);
    rows_say(f.changes, ROWS, op == INSERT ? "EINVAL, OK, OK" : "OK, OK, EINVAL", op_names[op]);
}

static void bits(const struct site *s)
{
    rowlock_table *t = NULL;
    site_table(s, "obs_bits", "id BIT(8) PRIMARY KEY, n INT, version BIGINT NOT NULL");
    is_result(
        s->db,
        open_table(s->db, TABLE(.name = "obs_bits", .key = NAMES("id"), .columns = NAMES("n")), &t),
        ROWLOCK_EINVAL, "rows are not told apart by bits");
}

static void session_limit(const struct contract *c)
{
    struct few f;
    OWNED(site) struct site s = site_adopt(c);
    make_rows(&s, "BIGINT");
    raw_run(c->raw, s.session, "SET sql_select_limit = 1");
    OWNED(table) rowlock_table *t = open_rows(&s);
    is_result(s.db, rowlock_expect(t, few_from(&f, 1, 1), ROWS, NULL), ROWLOCK_OK,
              "expect: with a limit of one row in the session");
    is_result(s.db, rowlock_insert(t, few_from(&f, 11, 1), ROWS, NULL), ROWLOCK_OK, "insert");
    site_run(&s, "UPDATE obs_rows SET version = 5 WHERE id = 1");
    is_result(s.db, rowlock_update(t, few_from(&f, 1, 1), ROWS, NULL), ROWLOCK_STALE, "update");
    rows_say(f.changes, ROWS, "STALE, OK, OK", "update");
}

/* Row 2 is locked by another for longer than a statement may take. No limit of ours is set in a
 * session that a pooler lends: the statement may be carried out all the same when the row is free.
 * limit is the name and the value of one of the session's own. NULL: none. */
static void held_too_long(const struct site *s, const char *const *limit, bool all_or_nothing,
                          const char *what)
{
    struct few f;
    const rowlock_change_options *how = HOW(.all_or_nothing = all_or_nothing);
    make_rows(s, "BIGINT");
    OWNED(table) rowlock_table *t = open_rows(s);
    site_run(s, "%s", s->c->begin);
    site_run(s, "UPDATE obs_rows SET n = 1 WHERE id = 2");
    if (limit)
        raw_run(s->c->raw, s->session, "SET %s = %s", limit[0], limit[1]);
    is_result(s->db, rowlock_update(t, few_from(&f, 1, 1), ROWS, how),
              s->c->pooled ? ROWLOCK_EUNCERTAIN : ROWLOCK_ESERVER,
              "%s: a row is locked all the time", what);
    if (limit)
        raw_run(s->c->raw, s->session, "SET %s = DEFAULT", limit[0]);
    if (!s->c->pooled) {
        tap_is_int(error_of(s->db).transaction_over, 0, "that ends no transaction of the caller's");
        tap_is_int(error_of(s->db).retryable, 1, "and may go well later");
        tap_ok(!strstr(why(s->db), "your transaction"), "there is none: %s", why(s->db));
        site_finds(s, "0", "nothing was done", "SELECT count(*) FROM obs_rows WHERE n >= 10");
    }
    site_run(s, "ROLLBACK");
    if (!s->c->pooled)
        is_result(s->db, rowlock_update(t, few_from(&f, 1, 1), ROWS, how), ROWLOCK_OK,
                  "as it does");
}

static void own_locked(const struct contract *c)
{
    /* A server ends the wait after half of it, and the client only at its end. */
    int64_t limit_ms = is_sqlite(c) ? HELD_MS : 4000;
    OWNED(site) struct site s = {.c = c, .look = c->raw->open(c->url)};
    s.db = must_open_with(c->url, OPTIONS(db, .statement_timeout_ms = limit_ms));
    held_too_long(&s, NULL, false, "each by itself");
    if (!c->pooled)
        held_too_long(&s, NULL, true, "all or nothing");
}

/* The session's own limit strikes first. MySQL has one for SELECT only. */
static void timed_out(const struct contract *c, const char *const *limit)
{
    OWNED(site)
    struct site s = {.c = c, .session = c->raw->open(c->url), .look = c->raw->open(c->url)};
    if (c->raw->adopt(&s.db, s.session, OPTIONS(db, .statement_timeout_ms = 4000), NULL) !=
        ROWLOCK_OK)
        raw_failed("adopt", "it is refused");
    held_too_long(&s, limit, false, "adopted, statements ended");
    held_too_long(&s, limit, true, "adopted, statements ended, all or nothing");
}

/* ---- a row that the table refuses by a trigger or a policy */

/* Row 2 cannot be changed. as_reader: as a user for whom a policy refuses it. */
static void make_refusal(const struct site *s, bool as_reader)
{
    make_rows(s, "BIGINT");
    if (as_reader) {
        site_run(s, "CREATE ROLE obs_writer LOGIN");
        site_run(s, "ALTER TABLE obs_rows ENABLE ROW LEVEL SECURITY");
        site_run(s, "CREATE POLICY obs_all ON obs_rows USING (true) WITH CHECK (id <> 2)");
        site_run(s, "GRANT ALL ON ALL TABLES IN SCHEMA public TO obs_writer");
    } else if (is_postgres(s->c)) {
        trigger_postgres(s, "UPDATE",
                         "IF NEW.id = 2 THEN RAISE EXCEPTION 'not two'; END IF; RETURN NEW;");
    } else if (is_mysql(s->c)) {
        site_run(s, "CREATE TRIGGER obs BEFORE UPDATE ON obs_rows FOR EACH ROW BEGIN IF NEW.id = 2 "
                    "THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not two'; END IF; END");
    } else {
        site_run(s, "CREATE TRIGGER obs BEFORE UPDATE ON obs_rows WHEN NEW.id = 2 BEGIN "
                    "SELECT RAISE(ABORT, 'not two'); END");
    }
}

static int add_one(void *context, const rowlock_row *row, rowlock_value *values)
{
    values[0] = rowlock_int(row->values[0].number + 1);
    return ROWLOCK_OK;
}

static void note_key(void *context, const rowlock_row *row, int result, const char *text)
{
    tap_note("%s", text);
    *(int64_t *)context = *(int64_t *)context * 10 + row->key[0].number;
}

static void refused_row(const struct contract *c, const char *url, bool as_reader)
{
    struct few f;
    int64_t failed = 0;
    int want = as_reader ? ROWLOCK_EDENIED : ROWLOCK_ESERVER;
    rowlock_walk_report report = ROWLOCK_WALK_REPORT_INIT;
    OWNED(site) struct site s = site_open(c);
    struct site theirs = s;
    make_refusal(&s, as_reader);
    theirs.db = must_open(url);
    rowlock_table *t = open_rows(&theirs);
    is_result(theirs.db, rowlock_update(t, few_from(&f, 1, 1), ROWS, NULL), want,
              "the table refuses a row");
    tap_is_int(error_of(theirs.db).row, 1, "which is named");
    rows_say(f.changes, ROWS, as_reader ? "OK, CANCELLED, CANCELLED" : "OK, ESERVER, UNDONE",
             "and the rows say");
    f.changes[0].version = 2;
    is_result(theirs.db, rowlock_update(t, f.changes, ROWS, OPTIONS(change, .all_or_nothing = 1)),
              want, "all or nothing");
    tap_is_int(error_of(theirs.db).row, 1, "the row is named too");
    rows_say(f.changes, ROWS,
             as_reader ? "UNDONE, CANCELLED, CANCELLED" : "UNDONE, ESERVER, UNDONE",
             "the others are as they were");
    struct walking how =
        *WALK(.name = "obstacles", .each = add_one, .failed = note_key, .context = &failed);
    is_result(theirs.db, walk_table(t, &how, &report), ROWLOCK_OK, "a walk goes on");
    tap_is_int(failed, 2, "and tells which row it could not write");
    tap_is_int(report.written, ROWS - 1, "the others are written");
    if (as_reader) {
        site_run(&s, "CREATE POLICY obs_none ON obs_rows AS RESTRICTIVE USING (true) "
                     "WITH CHECK (false)");
        is_result(theirs.db, walk_table(t, &how, &report), ROWLOCK_EDENIED,
                  "a walk that may write no row ends");
    }
    rowlock_table_close(t);
    rowlock_db_close(theirs.db);
    site_run(&s, "DELETE FROM rowlock_walks");
    if (as_reader) {
        site_run(&s, "DROP OWNED BY obs_writer");
        site_run(&s, "DROP ROLE obs_writer");
    }
}

/* The private server lets every user in without a password. */
static void refused_rows(const struct contract *c)
{
    const char *at = strstr(c->url, "://postgres@");
    refused_row(c, c->url, false);
    if (!is_postgres(c) || !at || !raw_is_ours(c->raw))
        return;
    refused_row(c, textf("postgresql://obs_writer@%s", at + strlen("://postgres@")), true);
}

/* ---- two keys that the table's collation takes for one */

static void equal_keys(const struct site *s)
{
    const char *type = is_mysql(s->c)    ? "VARCHAR(20) COLLATE utf8mb4_general_ci"
                       : is_sqlite(s->c) ? "TEXT COLLATE NOCASE"
                                         : "text COLLATE obs_nocase";
    rowlock_value keys[] = {rowlock_text("a"), rowlock_text("A")};
    rowlock_value values[] = {rowlock_int(5), rowlock_int(6)};
    rowlock_change changes[2];
    if (is_postgres(s->c))
        site_run(s, "CREATE COLLATION obs_nocase (provider = icu, locale = 'und-u-ks-level2', "
                    "deterministic = false)");
    site_table(s, "obs_rows", textf("id %s PRIMARY KEY, n BIGINT, version BIGINT NOT NULL", type));
    site_run(s, "INSERT INTO obs_rows VALUES ('a', 0, 7)");
    OWNED(table) rowlock_table *t = open_rows(s);
    for (int i = 0; i < 2; i++)
        changes[i] = (rowlock_change){.key = &keys[i], .values = &values[i], .version = 7};
    is_result(s->db, rowlock_update(t, changes, 2, OPTIONS(change, .all_or_nothing = 1)),
              ROWLOCK_STALE, "a row under two keys, all or nothing");
    for (int i = 0; i < 2; i++)
        tap_is_int(changes[i].current, 7, "key %d is told the version that the row has", i);
    if (is_postgres(s->c))
        site_run(s, "DROP COLLATION obs_nocase CASCADE");
}

void contract_obstacles(const struct contract *c)
{
    char version[100];
    OWNED(site) struct site s = site_open(c);
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
    own_locked(c);
    equal_keys(&s);
    refused_rows(c);
    bool maria = is_mysql(c) && c->raw->ask(s.look, "SELECT version()", version, sizeof version) &&
                 strstr(version, "MariaDB");
    if (maria)
        timed_out(c, NAMES("max_statement_time", "0.1"));
    if (is_postgres(c) && !c->pooled)
        timed_out(c, NAMES("statement_timeout", "100"));
    if (is_postgres(c))
        site_run(&s, "DROP FUNCTION IF EXISTS obs() CASCADE");
}
