/* SPDX-License-Identifier: MIT
 *
 * What docs/VERSIONS.md tells people to do with their tables, done with the very SQL that stands there: the
 * version column, the trigger for writers that do not know it, and what is to be done by hand where there is
 * no column. A block of that document is named in the line that begins it: ```sql postgres trigger
 */
#include "tables.h"

enum { DOCUMENT_BYTES = 200000, STATEMENT_BYTES = 2000 };

/* The clock's microseconds since 1970 have been above this since 2001. */
static const int64_t CLOCK_VERSION = 1000000000000000;

struct manual {
    struct site s;
    char *text;
    int blocks_run;
};

static char *read_document(void)
{
    static const char path[] = "docs/VERSIONS.md";
    char *text = calloc(1, DOCUMENT_BYTES);
    FILE *file = fopen(path, "r");
    if (!text || !file)
        raw_failed(path, "it cannot be read");
    size_t length = fread(text, 1, DOCUMENT_BYTES - 1, file);
    fclose(file);
    if (length == 0 || length == DOCUMENT_BYTES - 1)
        raw_failed(path, "it is empty, or longer than this test takes");
    return text;
}

static bool is_ours(const struct manual *m, const char *block)
{
    size_t length = strcspn(block, " \n");
    return strncmp(block, "all ", 4) == 0 ||
           (strlen(m->s.c->raw->name) == length && strncmp(block, m->s.c->raw->name, length) == 0);
}

/* Behind the opening of the next block of SQL, at its database's name; NULL: there are no more. */
static const char *next_block(const char *at)
{
    static const char opening[] = "\n```sql ";
    const char *found = strstr(at, opening);
    return found ? found + sizeof opening - 1 : NULL;
}

static const char *find_block(const struct manual *m, const char *name)
{
    for (const char *at = next_block(m->text); at; at = next_block(at)) {
        const char *its = at + strcspn(at, " \n"), *end = at + strcspn(at, "\n");
        if (*its == ' ' && is_ours(m, at) && strlen(name) == (size_t)(end - its - 1) &&
            strncmp(its + 1, name, strlen(name)) == 0)
            return end + 1;
    }
    raw_failed("docs/VERSIONS.md has no block", name);
}

/* A statement ends at a semicolon that closes a line, if that line is not indented or nothing comes after it. */
static const char *take_statement(const char *at, char *sql)
{
    size_t length = 0;
    for (bool ended = false; !ended;) {
        size_t line = strcspn(at, "\n") + 1;
        if (length + line >= STATEMENT_BYTES)
            raw_failed("a statement of docs/VERSIONS.md", "it is too long for this test");
        memcpy(sql + length, at, line);
        length += line;
        bool last = at[line] == '\n' || strncmp(at + line, "```", 3) == 0;
        ended = last || (at[0] != ' ' && line > 1 && at[line - 2] == ';');
        at += line;
    }
    sql[length] = '\0';
    char *semicolon = strrchr(sql, ';');
    if (semicolon && !strstr(sql, "BEGIN\n"))
        *semicolon = '\0';
    return at + strspn(at, "\n");
}

/* Settings of a session that others share later are left alone. */
static void run_block(struct manual *m, const char *name)
{
    char sql[STATEMENT_BYTES];
    const char *at = find_block(m, name);
    m->blocks_run++;
    while (strncmp(at, "```", 3) != 0) {
        at = take_statement(at, sql);
        if (!m->s.c->pooled || strncmp(sql, "SET ", 4) != 0)
            site_run(&m->s, "%s", sql);
    }
}

static int blocks_of(const struct manual *m)
{
    int count = 0;
    for (const char *at = next_block(m->text); at; at = next_block(at))
        count += is_ours(m, at);
    return count;
}

static void version_is(const struct manual *m, int id, const char *want, const char *what)
{
    site_finds(&m->s, want, what, "SELECT version FROM prices WHERE id = %d", id);
}

static const rowlock_value *price_of(const char *digits)
{
    static rowlock_value price;
    price = rowlock_decimal(digits);
    return &price;
}

static rowlock_table *open_prices(const struct manual *m)
{
    return must_open_table(&m->s, "prices", NAMES("price"));
}

static void ask_file_of(const struct manual *m, char *out, size_t cap)
{
    snprintf(out, cap, "%s", "not asked");
    if (is_postgres(m->s.c))
        m->s.c->raw->ask(m->s.look, "SELECT pg_relation_filenode('prices')", out, cap);
}

static void add_column(struct manual *m)
{
    char before[40], after[40];
    site_table(&m->s, "prices",
               "id BIGINT PRIMARY KEY, price DECIMAL(10,2), note VARCHAR(50), seen BIGINT");
    site_run(&m->s, "INSERT INTO prices (id, price) VALUES (42, 19.90), (43, 5), (44, 7)");
    ask_file_of(m, before, sizeof before);
    run_block(m, "column");
    ask_file_of(m, after, sizeof after);
    tap_is_str(after, before, "adding the column rewrites nothing");
    version_is(m, 42, "1", "and gives a version to the rows that are there");
    OWNED(table) rowlock_table *t = open_prices(m);
    site_run(&m->s, "UPDATE prices SET price = 1 WHERE id = 42");
    row_becomes(&m->s, t, UPDATE, 42, price_of("19.90"), 1, ROWLOCK_OK, 2,
                "what a writer without versions did is not noticed yet, and");
}

/* The three rows are changed at once, the second with a version that it has not. */
static void change_three(const struct manual *m, rowlock_table *t, enum op op, int step,
                         const char *want, const char *what)
{
    struct few f;
    int64_t now[3];
    few_from(&f, 42, 0);
    for (int i = 0; i < 3; i++) {
        now[i] =
            raw_int(m->s.c->raw, m->s.look, "SELECT version FROM prices WHERE id = %d", 42 + i);
        f.changes[i].version = now[i] + (i == 1 ? 77 : 0);
        now[i] += op == UPDATE && i == 1 ? 0 : step;
    }
    change_rows(t, op, f.changes, 3, NULL);
    rows_say(f.changes, 3, want, what);
    for (int i = 0; i < 3; i++) {
        tap_is_int(f.changes[i].current, now[i], "%s: row %d says its version", what, i + 1);
        version_is(m, 42 + i, textf("%lld", (long long)now[i]), "and that is so");
    }
}

/* The version that a statement of the application's leaves. */
static void writes(const struct manual *m, int id, const char *sql, const char *version,
                   const char *what)
{
    site_run(&m->s, "%s", sql);
    version_is(m, id, version, what);
}

static void with_trigger(struct manual *m)
{
    run_block(m, "trigger");
    const char *one = "UPDATE prices SET price = 1 WHERE id = 42";
    writes(m, 42, one, "3", "a writer without versions moves it by the trigger");
    writes(m, 42, one, "4", "with values that were there already, too");
    writes(m, 42, "UPDATE prices SET price = 1, version = 2 WHERE id = 42", "5",
           "one that puts an old version back moves it on");
    writes(m, 42, "UPDATE prices SET version = 9 WHERE id = 42", "9",
           "one that moves it itself is left alone");
    OWNED(table) rowlock_table *t = open_prices(m);
    row_becomes(&m->s, t, UPDATE, 42, price_of("2"), 4, ROWLOCK_STALE, 9, "an old version");
    row_becomes(&m->s, t, UPDATE, 42, price_of("2"), 9, ROWLOCK_OK, 10, "the one it has");
    version_is(m, 42, "10", "which moves by one, not by two");
    row_becomes(&m->s, t, TOUCH, 42, NULL, 10, ROWLOCK_OK, 11, "the row as it is");
    change_three(m, t, UPDATE, 1, "OK, STALE, OK", "an update of three at once");
    row_becomes(&m->s, t, INSERT, 42, price_of("2"), 0, ROWLOCK_EXISTS, 12, "a row that is there");
    version_is(m, 42, "12", "which is as it was");
    change_three(m, t, INSERT, is_mysql(m->s.c), "EXISTS, EXISTS, EXISTS", "an insert of three");
}

/* Other connections have asked before; this one has not. */
static void first_batch_of_a_session(struct manual *m)
{
    OWNED(site) struct site own = site_open(m->s.c);
    OWNED(table) rowlock_table *t = must_open_table(&own, "prices", NAMES("price"));
    change_three(m, t, UPDATE, 1, "OK, STALE, OK", "the first update of a connection");
}

static void always(const struct manual *m)
{
    bool exact = is_postgres(m->s.c); /* it alone tells what triggers made of the row */
    const char *body = is_mysql(m->s.c)      ? "SET NEW.version = NEW.version + 1"
                       : is_postgres(m->s.c) ? "EXECUTE FUNCTION always()"
                                             : "BEGIN UPDATE prices SET version = NEW.version + 1 "
                                               "WHERE id = NEW.id; END";
    if (is_postgres(m->s.c))
        site_run(&m->s, "CREATE FUNCTION always() RETURNS trigger LANGUAGE plpgsql AS "
                        "$$ BEGIN NEW.version := NEW.version + 1; RETURN NEW; END $$");
    site_run(&m->s, "CREATE TRIGGER eager %s UPDATE ON prices FOR EACH ROW %s",
             is_sqlite(m->s.c) ? "AFTER" : "BEFORE", body);
    site_run(&m->s, "INSERT INTO prices (id, price, version) VALUES (50, 1, 1)");
    OWNED(table) rowlock_table *t = open_prices(m);
    row_becomes(&m->s, t, UPDATE, 50, price_of("2"), 1, ROWLOCK_OK, exact ? 3 : 2,
                "a row whose trigger always adds one");
    version_is(m, 50, "3", "moves by two");
    site_run(&m->s, "DROP TRIGGER eager%s", is_postgres(m->s.c) ? " ON prices" : "");
    if (is_postgres(m->s.c))
        site_run(&m->s, "DROP FUNCTION always()");
}

static void some_columns(struct manual *m)
{
    site_run(&m->s, "INSERT INTO prices (id, price, version) VALUES (60, 1, 1)");
    writes(m, 60, "UPDATE prices SET seen = 1 WHERE id = 60", "2", "every column counts");
    run_block(m, "columns");
    writes(m, 60, "UPDATE prices SET seen = 2 WHERE id = 60", "2",
           "until those that matter are named");
    writes(m, 60, "UPDATE prices SET price = price WHERE id = 60", "2",
           "what is set to itself is no change then");
    writes(m, 60, "UPDATE prices SET price = 3 WHERE id = 60", "3",
           "a change of these moves the version");
    writes(m, 60, "UPDATE prices SET note = 'x' WHERE id = 60", "4", "as does one from NULL");
    OWNED(table) rowlock_table *t = open_prices(m);
    row_becomes(&m->s, t, UPDATE, 60, price_of("4"), 4, ROWLOCK_OK, 5, "a row of that table");
    version_is(m, 60, "5", "moves by one");
    change_three(m, t, INSERT, 0, "EXISTS, EXISTS, EXISTS", "an insert of three");
}

static void first_versions(struct manual *m)
{
    run_block(m, "default");
    site_run(&m->s, "INSERT INTO prices (id, price) VALUES (71, 1)");
    tap_ok(raw_int(m->s.c->raw, m->s.look, "SELECT version FROM prices WHERE id = 71") >
               CLOCK_VERSION,
           "a row that is made in plain SQL begins at the clock");
}

static void price_is(const struct manual *m, const char *want, const char *what)
{
    site_finds(&m->s, want, what, "SELECT 1 FROM prices WHERE id = 42 AND price = 20.90");
}

static void reset_price(const struct manual *m)
{
    site_run(&m->s, "UPDATE prices SET price = 19.90, note = NULL WHERE id = 42");
}

static void by_comparing(struct manual *m)
{
    reset_price(m);
    run_block(m, "compare");
    price_is(m, "1", "a row that is as it was read is changed, NULL for NULL");
    site_run(&m->s, "UPDATE prices SET price = 19.90, note = 'changed' WHERE id = 42");
    run_block(m, "compare");
    m->blocks_run--;
    price_is(m, NULL, "one that is not stays as it is");
}

/* The document's own transaction number stands for the one that was read. */
static void by_xmin(struct manual *m)
{
    char read[40] = "", text[STATEMENT_BYTES], sql[STATEMENT_BYTES + 50];
    rowlock_table *t = NULL;
    const struct about *about = TABLE(.name = "prices", .key = NAMES("id"), .version = "xmin");
    is_result(m->s.db, open_table(m->s.db, about, &t), ROWLOCK_EINVAL, "xmin is no version");
    reset_price(m);
    m->s.c->raw->ask(m->s.look, "SELECT xmin FROM prices WHERE id = 42", read, sizeof read);
    const char *at = take_statement(find_block(m, "xmin"), text);
    site_run(&m->s, "%s", text);
    take_statement(at, text);
    char *number = strstr(text, "731");
    if (!number)
        raw_failed("docs/VERSIONS.md, xmin", "it names another transaction than 731");
    snprintf(sql, sizeof sql, "%.*s%s%s", (int)(number - text), text, read, number + 3);
    m->blocks_run++;
    site_run(&m->s, "%s", sql);
    price_is(m, "1", "a row of the transaction that was read is changed");
    reset_price(m);
    site_run(&m->s, "%s", sql);
    price_is(m, NULL, "one that another transaction wrote is not");
}

static void by_one_statement(struct manual *m)
{
    site_table(&m->s, "stock", "id BIGINT PRIMARY KEY, n BIGINT");
    site_run(&m->s, "INSERT INTO stock VALUES (7, 1)");
    run_block(m, "atomic");
    site_finds(&m->s, "0", "one is taken", "SELECT n FROM stock WHERE id = 7");
    run_block(m, "atomic");
    m->blocks_run--;
    site_finds(&m->s, "0", "and none where there is none", "SELECT n FROM stock WHERE id = 7");
}

void contract_triggers(const struct contract *c)
{
    struct manual m = {.s = site_open(c), .text = read_document()};
    add_column(&m);
    with_trigger(&m);
    first_batch_of_a_session(&m);
    always(&m);
    some_columns(&m);
    if (!is_sqlite(c))
        first_versions(&m);
    by_comparing(&m);
    if (is_postgres(c))
        by_xmin(&m);
    by_one_statement(&m);
    tap_is_int(m.blocks_run, blocks_of(&m), "every block of the document was run");
    if (is_postgres(c))
        site_run(&m.s, "DROP FUNCTION move_version() CASCADE");
    site_close(&m.s);
    free(m.text);
}
