/* SPDX-License-Identifier: MIT
 *
 * Rows under their versions as only SQLite has them: a transaction of the application's that begins without a lock.
 */
#include "tables.h"

static void make_rows(const struct site *s)
{
    char ignored[100];
    s->c->raw->ask(s->look, "PRAGMA busy_timeout = 50", ignored, sizeof ignored);
    s->c->raw->ask(s->session, "PRAGMA busy_timeout = 50", ignored, sizeof ignored);
    site_table(s, "sqr_rows", "id INTEGER PRIMARY KEY, n INT, version BIGINT NOT NULL");
    site_run(s, "INSERT INTO sqr_rows VALUES (1, 10, 1), (2, 20, 1)");
}

static bool others_write(const struct site *s)
{
    char why[200];
    return s->c->raw->run(s->look, "UPDATE sqr_rows SET version = version + 1 WHERE id = 1", why,
                          sizeof why);
}

static int ask_for_it(rowlock_table *t, bool by_reading)
{
    rowlock_value id = rowlock_int(1);
    rowlock_change change = {.key = &id, .version = 1};
    rowlock_row row = ROWLOCK_ROW_INIT;
    return by_reading ? rowlock_read(t, &id, 1, &row) : rowlock_expect(t, &change, 1, NULL);
}

static void keeps_others_out(const struct site *s, rowlock_table *t, bool by_reading)
{
    is_result(s->db, ask_for_it(t, by_reading), ROWLOCK_OK,
              "a row in a transaction that began without a lock");
    tap_ok(!others_write(s), "keeps others from changing the row");
    raw_run(s->c->raw, s->session, "COMMIT");
    tap_ok(others_write(s), "until the transaction ends");
}

static void knows_old_snapshot(const struct site *s, rowlock_table *t, bool by_reading)
{
    raw_int(s->c->raw, s->session, "SELECT n FROM sqr_rows WHERE id = %d", 2);
    tap_ok(others_write(s), "another writes after the transaction has read");
    is_result(s->db, ask_for_it(t, by_reading), ROWLOCK_CONFLICT, "behind an old snapshot");
    tap_is_int(error_of(s->db).transaction_over, 1, "which can only be rolled back");
    raw_run(s->c->raw, s->session, "ROLLBACK");
}

static void knows_other_writer(const struct site *s, rowlock_table *t, bool by_reading)
{
    raw_run(s->c->raw, s->look, "BEGIN IMMEDIATE");
    is_result(s->db, ask_for_it(t, by_reading), ROWLOCK_CONFLICT, "while another writes");
    tap_is_int(error_of(s->db).transaction_over, 0, "which can go on");
    raw_run(s->c->raw, s->look, "ROLLBACK");
    is_result(s->db, ask_for_it(t, by_reading), ROWLOCK_OK, "and succeeds when that has ended");
    raw_run(s->c->raw, s->session, "ROLLBACK");
}

/* Which SQLite does not by itself; and what the application's connection does is the application's. */
static void foreign_keys(const struct contract *c, bool adopted)
{
    OWNED(site) struct site s = adopted ? site_adopt(c) : site_open(c);
    site_run(&s, "DROP TABLE IF EXISTS sqr_children");
    site_table(&s, "sqr_parents", "id INTEGER PRIMARY KEY, version BIGINT NOT NULL");
    site_table(&s, "sqr_children",
               "id INTEGER PRIMARY KEY, parent INT REFERENCES sqr_parents (id)");
    site_run(&s, "INSERT INTO sqr_parents VALUES (1, 1)");
    site_run(&s, "INSERT INTO sqr_children VALUES (1, 1)");
    OWNED(table) rowlock_table *t = must_open_table(&s, "sqr_parents", NULL);
    row_becomes(&s, t, REMOVE, 1, NULL, 1, adopted ? ROWLOCK_OK : ROWLOCK_VIOLATION, 0,
                adopted ? "a parent, on a connection of the application's"
                        : "a parent, on a connection of ours");
}

void contract_sqlite_rows(const struct contract *c)
{
    static void (*const parts[])(const struct site *s, rowlock_table *t, bool by_reading) = {
        keeps_others_out, knows_old_snapshot, knows_other_writer};
    OWNED(site) struct site s = site_adopt(c);
    char mode[20];
    c->raw->ask(s.look, "PRAGMA journal_mode = WAL", mode, sizeof mode);
    for (int i = 0; i < 2 * COUNT(parts); i++) {
        make_rows(&s);
        tap_note("%s", i % 2 ? "read with a lock" : "expect");
        OWNED(table) rowlock_table *t = must_open_table(&s, "sqr_rows", NAMES("n"));
        raw_run(c->raw, s.session, "BEGIN");
        parts[i / 2](&s, t, i % 2);
    }
    foreign_keys(c, false);
    foreign_keys(c, true);
}
