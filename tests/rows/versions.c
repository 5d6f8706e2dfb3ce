/* SPDX-License-Identifier: MIT
 *
 * One row of the application's own table, changed under its version: each outcome of each call, keys of
 * several columns, names of all sorts, versions up to the last, the application's own SQL, and tables that
 * are refused. Many rows are in batches.c, values in types.c, the application's transaction in within.c.
 */
#include "tables.h"

/* ---- outcomes */

static void row_is(const struct site *s, int id, const char *want, const char *what)
{
    const char *row = is_sqlite(s->c) ? "n || ' ' || coalesce(note, 'NULL') || ' ' || version"
                                      : "CONCAT(n, ' ', COALESCE(note, 'NULL'), ' ', version)";
    site_finds(s, want, what, "SELECT %s FROM ver_rows WHERE id = %d", row, id);
}

static void make_rows(const struct site *s)
{
    site_table(s, "ver_rows",
               "id BIGINT PRIMARY KEY, n BIGINT, note VARCHAR(50), version BIGINT NOT NULL");
    site_run(s, "INSERT INTO ver_rows VALUES (1, 10, 'one', 5), (2, 20, 'two', 1)");
}

/* What each call makes of a row, one after the other. */
static void changes(const struct site *s, rowlock_table *t)
{
    const rowlock_value *uno = VALUES(rowlock_int(11), rowlock_text("uno"));
    const rowlock_value *null = VALUES(rowlock_int(12), rowlock_null());
    const rowlock_value *three = VALUES(rowlock_int(30), rowlock_text("three"));
    const struct {
        enum op op;
        int id;
        const rowlock_value *values;
        int version, want, current;
        const char *row, *what; /* the row afterwards; of row 99 there is none */
    } steps[] = {
        {UPDATE, 1, uno, 5, ROWLOCK_OK, 6, "11 uno 6", "a row that is as it was read"},
        {UPDATE, 1, null, 5, ROWLOCK_STALE, 6, "11 uno 6", "once more with the old version"},
        {UPDATE, 1, null, 7, ROWLOCK_STALE, 6, "11 uno 6", "or with one that is yet to come"},
        {UPDATE, 99, uno, 5, ROWLOCK_GONE, 0, NULL, "a row that is not there"},
        {UPDATE, 1, null, 6, ROWLOCK_OK, 7, "12 NULL 7", "the version it has, and NULL"},
        {UPDATE, 1, null, 7, ROWLOCK_OK, 8, "12 NULL 8", "the values that it has already"},
        {TOUCH, 1, NULL, 7, ROWLOCK_STALE, 8, "12 NULL 8", "an old version"},
        {TOUCH, 99, NULL, 7, ROWLOCK_GONE, 0, NULL, "a row that is not there"},
        {TOUCH, 1, NULL, 8, ROWLOCK_OK, 9, "12 NULL 9", "the row as it is"},
        {EXPECT, 1, NULL, 8, ROWLOCK_STALE, 9, "12 NULL 9", "an old version"},
        {EXPECT, 99, NULL, 8, ROWLOCK_GONE, 0, NULL, "a row that is not there"},
        {EXPECT, 1, NULL, 9, ROWLOCK_OK, 9, "12 NULL 9", "the version it has"},
        {INSERT, 3, three, 0, ROWLOCK_OK, 70, "30 three 70", "a new row has the first version"},
        {INSERT, 3, three, 0, ROWLOCK_EXISTS, 70, "30 three 70", "a row that is there"},
        {INSERT, 2, three, 0, ROWLOCK_EXISTS, 1, "20 two 1", "another"},
        {REMOVE, 3, NULL, 69, ROWLOCK_STALE, 70, "30 three 70", "an old version"},
        {REMOVE, 3, NULL, 70, ROWLOCK_OK, 0, NULL, "the version it has"},
        {REMOVE, 3, NULL, 70, ROWLOCK_GONE, 0, NULL, "a row that is not there"},
    };
    for (int i = 0; i < COUNT(steps); i++) {
        row_becomes(s, t, steps[i].op, steps[i].id, steps[i].values, steps[i].version,
                    steps[i].want, steps[i].current, steps[i].what);
        row_is(s, steps[i].id, steps[i].row, "and that is how the row stands");
    }
    row_is(s, 2, "20 two 1", "the other row is as it was");
}

static bool is_text_of(const rowlock_value *value, const char *want)
{
    return value->kind == ROWLOCK_TEXT && value->length == strlen(want) &&
           memcmp(value->text, want, value->length) == 0;
}

static void reads(const struct site *s, rowlock_table *t)
{
    rowlock_row row = ROWLOCK_ROW_INIT;
    for (int lock = 0; lock <= 1; lock++) {
        is_result(s->db, read_row(t, 2, lock, &row), ROWLOCK_OK, "a row is read, lock %d", lock);
        tap_ok(row.version == 1 && row.key[0].kind == ROWLOCK_INT && row.key[0].number == 2,
               "with its key and version");
        tap_ok(row.values[0].kind == ROWLOCK_INT && row.values[0].number == 20 &&
                   is_text_of(&row.values[1], "two"),
               "and its columns");
        is_result(s->db, read_row(t, 1, lock, &row), ROWLOCK_OK, "another");
        tap_ok(row.values[1].kind == ROWLOCK_NULL && row.version == 9, "with a NULL");
        is_result(s->db, read_row(t, 99, lock, &row), ROWLOCK_GONE, "one that is not there");
    }
    row_becomes(s, t, EXPECT, 2, NULL, 1, ROWLOCK_OK, 1, "nothing is left locked");
}

static void misuse(const struct site *s, rowlock_table *t)
{
    rowlock_row row = ROWLOCK_ROW_INIT;
    rowlock_value key = rowlock_int(1), null = rowlock_null();
    rowlock_change change = {.key = &key, .version = 9};
    is_result(s->db, rowlock_update(t, &change, 1, NULL), ROWLOCK_EINVAL, "no values");
    change.key = NULL;
    is_result(s->db, rowlock_touch(t, &change, 1, NULL), ROWLOCK_EINVAL, "no key");
    change.key = &null;
    is_result(s->db, rowlock_touch(t, &change, 1, NULL), ROWLOCK_EINVAL, "a key that is NULL");
    is_result(s->db, rowlock_touch(t, NULL, 1, NULL), ROWLOCK_EINVAL, "no changes");
    is_result(s->db, rowlock_touch(t, NULL, 0, NULL), ROWLOCK_OK, "none, as many as were said");
    is_result(s->db, rowlock_read(t, NULL, 0, &row), ROWLOCK_EINVAL, "a read without a key");
    is_result(s->db, rowlock_read(t, &key, 0, NULL), ROWLOCK_EINVAL, "a read to nowhere");
    is_result(s->db, rowlock_read(t, &key, 0, &(rowlock_row){0}), ROWLOCK_EINVAL, "without a size");
    is_result(s->db, rowlock_read(t, &null, 0, &row), ROWLOCK_EINVAL, "a read of NULL");
    tap_is_int(rowlock_touch(NULL, &change, 1, NULL), ROWLOCK_EMISUSE, "no table");
    for (int kind = ROWLOCK_DECIMAL; kind <= ROWLOCK_TIME; kind++) {
        rowlock_value hollow = {.kind = (rowlock_kind)kind, .length = 5};
        if (kind == ROWLOCK_BOOL)
            continue;
        change.key = &hollow;
        is_result(s->db, rowlock_remove(t, &change, 1, NULL), ROWLOCK_EINVAL,
                  "a key of kind %d with a length and no text", kind);
        tap_ok(strstr(why(s->db), "length") != NULL, "the text says why");
        is_result(s->db, rowlock_read(t, &hollow, 0, &row), ROWLOCK_EINVAL, "nor is it read");
        change.key = &key;
        change.values = (rowlock_value[]){hollow, hollow};
        is_result(s->db, rowlock_update(t, &change, 1, NULL), ROWLOCK_EINVAL, "nor written");
    }
    row_is(s, 1, "12 NULL 9", "nothing was changed by that");
}

static void outcomes(const struct contract *c)
{
    OWNED(site) struct site s = site_open(c);
    make_rows(&s);
    rowlock_table *t = must_describe(&s, TABLE(.name = "ver_rows", .key = NAMES("id"),
                                               .columns = NAMES("n", "note"), .first_version = 70));
    changes(&s, t);
    reads(&s, t);
    misuse(&s, t);
    rowlock_table_close(t);
    rowlock_table_close(NULL);
}

/* A row that was deleted and made again is another: it is not taken for the one read before. */
static void first_versions(const struct contract *c)
{
    OWNED(site) struct site s = site_open(c);
    make_rows(&s);
    OWNED(table) rowlock_table *t = must_open_table(&s, "ver_rows", NULL);
    rowlock_value key = rowlock_int(7);
    rowlock_change change = {.key = &key};
    int64_t before = int_on(c, "SELECT %s", c->raw->clock);
    int64_t first = 0;
    for (int i = 0; i < 3; i++) {
        is_result(s.db, rowlock_insert(t, &change, 1, NULL), ROWLOCK_OK, "a row is made");
        tap_ok(change.current > first, "with a version that it never had");
        tap_ok(change.current > before - INT64_C(60000000), "of the clock");
        first = change.version = change.current;
        is_result(s.db, rowlock_remove(t, &change, 1, NULL), ROWLOCK_OK, "and removed");
    }
}

/* ---- keys and names */

static void make_keys(const struct site *s)
{
    site_table(
        s, "ver_keys",
        textf("a INT NOT NULL, b VARCHAR(20) NOT NULL, c %s NOT NULL, n INT, version INT NOT NULL, "
              "UNIQUE (c, a, b), UNIQUE (a, n)",
              is_mysql(s->c)      ? "VARBINARY(20)"
              : is_postgres(s->c) ? "BYTEA"
                                  : "BLOB"));
}

/* Only the one at changed is of version 2 and has 77. */
static void keys_are(const struct site *s, rowlock_table *t, const rowlock_value *const *keys,
                     int count, int changed)
{
    for (int i = 0; i < count; i++) {
        rowlock_row row = ROWLOCK_ROW_INIT;
        is_result(s->db, rowlock_read(t, keys[i], 0, &row), ROWLOCK_OK, "each is found");
        tap_ok(row.version == (i == changed ? 2 : 1) &&
                   row.values[0].number == (i == changed ? 77 : i),
               "and only that one was changed");
        tap_ok(row.key[2].kind == ROWLOCK_BYTES && row.key[2].length == keys[i][2].length &&
                   memcmp(row.key[2].text, keys[i][2].text, row.key[2].length) == 0,
               "its key is the one that was asked for");
    }
}

static void composite_keys(const struct contract *c)
{
    OWNED(site) struct site s = site_open(c);
    static const char bytes[] = {'a', 0, '\\', '\''}, others[] = {'a', 0, '\\', '"'};
    make_keys(&s);
    OWNED(table)
    rowlock_table *t = must_describe(&s, TABLE(.name = "ver_keys", .key = NAMES("a", "b", "c"),
                                               .columns = NAMES("n"), .first_version = 1));
    const rowlock_value *keys[] = {
        VALUES(rowlock_int(1), rowlock_text("it's"), rowlock_bytes(bytes, sizeof bytes)),
        VALUES(rowlock_int(1), rowlock_text("it's"), rowlock_bytes(others, sizeof others)),
        VALUES(rowlock_int(1), rowlock_text(""), rowlock_bytes(bytes, sizeof bytes)),
        VALUES(rowlock_int(2), rowlock_text("it's"), rowlock_bytes(bytes, 0)),
    };
    for (int i = 0; i < COUNT(keys); i++) {
        rowlock_value n = rowlock_int(i);
        becomes(&s, t, INSERT, (rowlock_change){.key = keys[i], .values = &n}, ROWLOCK_OK, 1,
                "a key of three columns");
    }
    rowlock_value n = rowlock_int(77);
    becomes(&s, t, UPDATE, (rowlock_change){.key = keys[1], .values = &n, .version = 1}, ROWLOCK_OK,
            2, "one of them");
    keys_are(&s, t, keys, COUNT(keys), 1);
    becomes(&s, t, REMOVE, (rowlock_change){.key = keys[3], .version = 1}, ROWLOCK_OK, 0, "one");
    site_finds(&s, "3", "and no other", "SELECT count(*) FROM ver_keys");
}

static const char ODD_TABLE[] = "we\"ird {set} `%s` 'q' ?";
static const char ODD_SCHEMA[] = "Other \"sche`ma\" %d";

static void quote_into(char *out, const char *name, char quote)
{
    *out++ = quote;
    for (; *name; name++) {
        if (*name == quote)
            *out++ = quote;
        *out++ = *name;
    }
    *out++ = quote;
    *out = '\0';
}

/* In every column and in the table's name. Reserved words, upper case beside lower, what would mean something to
 * printf, to the composer, or to the database. An attached file is its session's own. */
static void make_odd_table(const struct site *s, const char *whole)
{
    static const char *const names[] = {"Select", "gr{key}up", "or\"d`er %n", "Vers ion $1?", "t"};
    char columns[5][200];
    void *maker = s->session ? s->session : s->look;
    for (int i = 0; i < COUNT(names); i++)
        quote_into(columns[i], names[i], is_mysql(s->c) ? '`' : '"');
    raw_run(s->c->raw, maker, "DROP TABLE IF EXISTS %s", whole);
    raw_run(s->c->raw, maker,
            "CREATE TABLE %s (%s INT NOT NULL, %s INT, %s VARCHAR(30), %s BIGINT NOT NULL, %s INT, "
            "PRIMARY KEY (%s))",
            whole, columns[0], columns[1], columns[2], columns[3], columns[4], columns[0]);
}

static void one_odd_row(const struct site *s, rowlock_table *t, const rowlock_value *values)
{
    rowlock_row row = ROWLOCK_ROW_INIT;
    row_becomes(s, t, INSERT, 1, values, 0, ROWLOCK_OK, 3, "names of all sorts");
    row_becomes(s, t, UPDATE, 1, values, 3, ROWLOCK_OK, 4, "names of all sorts");
    row_becomes(s, t, TOUCH, 1, NULL, 3, ROWLOCK_STALE, 4, "names of all sorts");
    is_result(s->db, read_row(t, 1, 1, &row), ROWLOCK_OK, "the row is read");
    tap_ok(row.version == 4 && row.values[0].number == 1 && row.values[2].number == 4 &&
               is_text_of(&row.values[1], "{set} %s ? $1"),
           "as it was written");
}

static void many_odd_rows(const struct site *s, rowlock_table *t, const rowlock_value *values)
{
    rowlock_value keys[2] = {rowlock_int(2), rowlock_int(1)};
    rowlock_change changes[2] = {{.key = &keys[0], .values = values, .version = 4},
                                 {.key = &keys[1], .values = values, .version = 4}};
    is_result(s->db, rowlock_update(t, changes, 2, NULL), ROWLOCK_GONE, "and in a batch");
    rows_say(changes, 2, "GONE, OK", "likewise");
    is_result(s->db, rowlock_insert(t, changes, 2, NULL), ROWLOCK_EXISTS, "a batch is inserted");
    rows_say(changes, 2, "OK, EXISTS", "likewise");
    changes[0].version = 3;
    is_result(s->db, rowlock_remove(t, changes, 2, NULL), ROWLOCK_STALE, "a batch is removed");
    rows_say(changes, 2, "OK 0, STALE 5", "likewise");
}

static void use_odd_names(const struct site *s, const char *schema)
{
    char table[200], whole[420], qualified[200];
    char quote = is_mysql(s->c) ? '`' : '"';
    quote_into(table, ODD_TABLE, quote);
    quote_into(qualified, schema ? schema : "", quote);
    snprintf(whole, sizeof whole, "%s%s%s", schema ? qualified : "", schema ? "." : "", table);
    make_odd_table(s, whole);
    rowlock_table *t =
        must_describe(s, TABLE(.schema = schema, .name = ODD_TABLE, .key = NAMES("Select"),
                               .columns = NAMES("gr{key}up", "or\"d`er %n", "t"),
                               .version = "Vers ion $1?", .first_version = 3));
    const rowlock_value *values =
        VALUES(rowlock_int(1), rowlock_text("{set} %s ? $1"), rowlock_int(4));
    one_odd_row(s, t, values);
    many_odd_rows(s, t, values);
    rowlock_table_close(t);
    raw_run(s->c->raw, s->session ? s->session : s->look, "DROP TABLE %s", whole);
}

static void odd_names(const struct contract *c)
{
    OWNED(site) struct site own = site_open(c), adopted = site_adopt(c);
    char schema[200], ignored[200], sql[300];
    quote_into(schema, ODD_SCHEMA, is_mysql(c) ? '`' : '"');
    use_odd_names(&own, NULL);
    use_odd_names(&own, is_postgres(c) ? "public" : is_sqlite(c) ? "main" : NULL);
    if (is_sqlite(c)) {
        raw_run(c->raw, adopted.session, "ATTACH ':memory:' AS %s", schema);
    } else {
        snprintf(sql, sizeof sql, "DROP SCHEMA %s%s", schema, is_postgres(c) ? " CASCADE" : "");
        c->raw->run(own.look, sql, ignored, sizeof ignored);
        site_run(&own, "CREATE SCHEMA %s", schema);
    }
    use_odd_names(&adopted, ODD_SCHEMA);
    if (!is_sqlite(c))
        site_run(&own, "%s", sql);
}

/* ---- versions up to the last */

static const struct width {
    const char *database, *type;
    int64_t last;
} widths[] = {
    {"postgres", "SMALLINT", INT16_MAX},        {"postgres", "INTEGER", INT32_MAX},
    {"postgres", "BIGINT", INT64_MAX},          {"mysql", "TINYINT", INT8_MAX},
    {"mysql", "TINYINT UNSIGNED", UINT8_MAX},   {"mysql", "SMALLINT", INT16_MAX},
    {"mysql", "SMALLINT UNSIGNED", UINT16_MAX}, {"mysql", "MEDIUMINT", 8388607},
    {"mysql", "MEDIUMINT UNSIGNED", 16777215},  {"mysql", "INT", INT32_MAX},
    {"mysql", "INT UNSIGNED", UINT32_MAX},      {"mysql", "BIGINT", INT64_MAX},
    {"mysql", "BIGINT UNSIGNED", INT64_MAX},    {"sqlite", "INTEGER", INT64_MAX},
};

static void has_version(const struct site *s, int id, int64_t version, const char *what)
{
    site_finds(s, textf("%lld", (long long)version), what,
               "SELECT version FROM ver_width WHERE id = %d", id);
}

static void last_version(const struct site *s, rowlock_table *t, const struct width *w)
{
    const rowlock_value *n = VALUES(rowlock_int(5));
    rowlock_value keys[2] = {rowlock_int(1), rowlock_int(2)};
    rowlock_change changes[2] = {{.key = &keys[0], .values = n, .version = w->last},
                                 {.key = &keys[1], .values = n, .version = 0}};
    tap_note("%s", w->type);
    row_becomes(s, t, UPDATE, 1, n, w->last - 1, ROWLOCK_OK, w->last, "the last version but one");
    row_becomes(s, t, UPDATE, 1, n, w->last - 1, ROWLOCK_STALE, w->last, "once more");
    row_becomes(s, t, UPDATE, 1, n, w->last, ROWLOCK_EINVAL, 0, "the last");
    row_becomes(s, t, TOUCH, 1, NULL, w->last, ROWLOCK_EINVAL, 0, "the last");
    is_result(s->db, rowlock_update(t, changes, 2, NULL), ROWLOCK_EINVAL, "or in a batch");
    has_version(s, 1, w->last, "it stays the last");
    has_version(s, 2, 0, "and nothing else was changed");
    row_becomes(s, t, EXPECT, 1, NULL, w->last, ROWLOCK_OK, w->last, "the last");
    row_becomes(s, t, REMOVE, 1, NULL, w->last, ROWLOCK_OK, 0, "the last");
    changes[0].version = w->last - 1;
    site_run(s, "INSERT INTO ver_width VALUES (1, 0, %lld)", (long long)w->last - 1);
    is_result(s->db, rowlock_update(t, changes, 2, NULL), ROWLOCK_OK, "a batch up to the last");
    has_version(s, 1, w->last, "reaches it");
}

static int insert_first(const struct site *s, int64_t first, int64_t id, int64_t *got)
{
    rowlock_value key = rowlock_int(id);
    rowlock_change change = {.key = &key};
    OWNED(table) rowlock_table *t = NULL;
    int result = open_table(
        s->db, TABLE(.name = "ver_width", .key = NAMES("id"), .first_version = first), &t);
    if (result == ROWLOCK_OK)
        result = rowlock_insert(t, &change, 1, NULL);
    *got = change.current;
    return result;
}

static void narrow_first(const struct site *s, const struct width *w)
{
    int64_t got = 0;
    is_result(s->db, insert_first(s, w->last, 3, &got), ROWLOCK_OK, "the last may be the first");
    has_version(s, 3, w->last, "of a row");
    is_result(s->db, insert_first(s, -1, 4, &got), ROWLOCK_EINVAL, "but none below 0");
    if (w->last < INT64_MAX)
        is_result(s->db, insert_first(s, w->last + 1, 4, &got), ROWLOCK_EINVAL, "nor behind it");
    is_result(s->db, insert_first(s, 0, 4, &got), ROWLOCK_OK, "one that is not said");
    tap_ok(w->last < INT32_MAX ? got == 1 : got >= 1 && got <= w->last / 2, "leaves room");
    has_version(s, 4, got, "and is the row's");
}

static void all_widths(const struct contract *c)
{
    OWNED(site) struct site s = site_open(c);
    for (const struct width *w = widths; w < widths + COUNT(widths); w++) {
        if (strcmp(w->database, c->database) != 0)
            continue;
        site_table(&s, "ver_width",
                   textf("id INT PRIMARY KEY, n INT, version %s NOT NULL", w->type));
        site_run(&s, "INSERT INTO ver_width VALUES (1, 0, %lld), (2, 0, 0)",
                 (long long)w->last - 1);
        OWNED(table) rowlock_table *t = must_open_table(&s, "ver_width", NAMES("n"));
        last_version(&s, t, w);
        narrow_first(&s, w);
    }
}

/* What no 64 bits can hold was not written by us, and is not taken for anything else. */
static void beyond_the_last(const struct contract *c)
{
    OWNED(site) struct site s = site_open(c);
    rowlock_value keys[2] = {rowlock_int(1), rowlock_int(2)};
    rowlock_change changes[2] = {{.key = &keys[0]}, {.key = &keys[1]}};
    rowlock_row row = ROWLOCK_ROW_INIT;
    site_table(&s, "ver_width", "id INT PRIMARY KEY, n INT, version BIGINT UNSIGNED NOT NULL");
    site_run(&s, "INSERT INTO ver_width VALUES (1, 0, 9223372036854775808), (2, 0, 0)");
    OWNED(table) rowlock_table *t = must_open_table(&s, "ver_width", NAMES("n"));
    is_result(s.db, rowlock_read(t, &keys[0], 0, &row), ROWLOCK_EINVAL, "a version of 2^63");
    for (size_t n = 1; n <= 2; n++) {
        is_result(s.db, rowlock_expect(t, changes, n, NULL), ROWLOCK_EINVAL, "is no version");
        is_result(s.db, rowlock_touch(t, changes, n, NULL), ROWLOCK_EINVAL, "nor is 0");
        is_result(s.db, rowlock_remove(t, changes, n, NULL), ROWLOCK_EINVAL, "meant by it");
    }
    site_finds(&s, "9223372036854775808", "it is as it was",
               "SELECT version FROM ver_width WHERE id = 1");
}

/* ---- the application's own SQL */

struct own_sql {
    const char *set;
    rowlock_value values[2];
    const char *want; /* n note version of a row that was 10 'x' 1 */
};

static void use_set(const struct site *s, const struct own_sql *own)
{
    OWNED(table)
    rowlock_table *t = must_describe(s, TABLE(.name = "ver_rows", .key = NAMES("id"),
                                              .columns = NAMES("n", "note"), .set = own->set));
    rowlock_value keys[3] = {rowlock_int(1), rowlock_int(2), rowlock_int(3)};
    rowlock_change changes[3];
    site_run(s, "DELETE FROM ver_rows");
    site_run(s, "INSERT INTO ver_rows VALUES (1, 10, 'x', 1), (2, 10, 'x', 1), (3, 10, 'x', 1)");
    for (int i = 0; i < 3; i++)
        changes[i] = (rowlock_change){.key = &keys[i], .values = own->values, .version = 1};
    is_result(s->db, rowlock_update(t, changes, 1, NULL), ROWLOCK_OK, "set %s", own->set);
    row_is(s, 1, own->want, "does so, and moves the version");
    is_result(s->db, rowlock_update(t, &changes[1], 2, NULL), ROWLOCK_OK, "and in a batch");
    row_is(s, 2, own->want, "likewise");
    row_is(s, 3, own->want, "each row");
}

static void own_sql(const struct contract *c)
{
    OWNED(site) struct site s = site_open(c);
    make_rows(&s);
    if (is_postgres(c))
        site_run(&s, "ALTER TABLE ver_rows ADD doc jsonb DEFAULT '{\"a\": 1}'");
    const rowlock_value none = rowlock_null(), four = rowlock_int(4);
    const struct own_sql all[] = {
        {"n = n - ?, note = ?", {rowlock_int(3), rowlock_text("it's ? {n}")}, "7 it's ? {n} 2"},
        {"note = 'what? ''?'' /*', n = n + ?", {rowlock_int(1), none}, "11 what? '?' /* 2"},
        {"n = /* ? */ ? + n -- ?, or not?\n , note = ?", {rowlock_int(-1), none}, "9 NULL 2"},
        {"note = 'fixed'", {none, none}, "10 fixed 2"},
        {"n = 2 * n -- twice", {none, none}, "20 x 2"},
    };
    const struct own_sql mysql = {"note = \"a \\\"?\", n = ? # why?\n", {four, none}, "4 a \"? 2"};
    const struct own_sql postgres[] = {
        {"n = CASE WHEN doc ?? 'a' THEN ?::bigint ELSE 0 END", {four, none}, "4 x 2"},
        {"note = 'a??b', n = ?", {four, none}, "4 a??b 2"},
    };
    for (int i = 0; i < COUNT(all); i++)
        use_set(&s, &all[i]);
    for (int i = 0; is_postgres(c) && i < COUNT(postgres); i++)
        use_set(&s, &postgres[i]);
    if (is_mysql(c))
        use_set(&s, &mysql);
}

/* The application's SQL may be wrong; then nothing is changed. */
static void wrong_sql(const struct contract *c)
{
    OWNED(site) struct site s = site_open(c);
    static const char *const wrong[] = {"nosuch = ?", "n = = ?", "n = nosuch(?)", "id = id, n = (?",
                                        "n = ?; DELETE FROM ver_rows"};
    make_rows(&s);
    rowlock_value one = rowlock_int(1);
    for (int i = 0; i < COUNT(wrong); i++) {
        rowlock_table *t =
            must_describe(&s, TABLE(.name = "ver_rows", .key = NAMES("id"), .set = wrong[i]));
        row_becomes(&s, t, UPDATE, 1, &one, 5, ROWLOCK_EINVAL, 0, wrong[i]);
        row_becomes(&s, t, TOUCH, 2, NULL, 99, ROWLOCK_STALE, 1, "the connection is well");
        rowlock_table_close(t);
    }
    row_is(&s, 1, "10 one 5", "and the row as it was");
}

/* ---- tables that are refused */

static const char LONG_NAME[] =
    "a name that is far too long for any database, and more than that, since it goes on and on "
    "until nobody remembers how it began, which is at the very beginning of this text, quite some "
    "time ago, but still the same sentence, that does not want to come to an end before three "
    "hundred bytes are used up, which it has";

static void refused(const struct site *s, const struct about *about, const char *clue)
{
    OWNED(table) rowlock_table *t = (rowlock_table *)(uintptr_t)1;
    int result = open_table(s->db, about, &t);
    is_result(s->db, result, ROWLOCK_EINVAL, "refused: %s", clue);
    tap_ok(t == NULL, "there is no handle");
    bool told = strstr(why(s->db), clue) != NULL;
    tap_ok(told, "and the text says why");
    if (!told)
        tap_note("it says %s", why(s->db));
}

/* The table ver_rows, whose key is id. */
#define ROWS(...) TABLE(.name = "ver_rows", .key = NAMES("id"), __VA_ARGS__)
#define KEYED(...) TABLE(.name = "ver_rows", .key = NAMES(__VA_ARGS__))

/* What would fail later is refused at once. */
static void wrong_options(const struct site *s)
{
    const struct {
        const struct about *about;
        const char *clue;
    } all[] = {
        {TABLE(.name = "ver_nosuch", .key = NAMES("id")), "no such table"},
        {TABLE(.name = NULL, .key = NAMES("id")), "table's name"},
        {TABLE(.name = "", .key = NAMES("id")), "table's name"},
        {TABLE(.name = LONG_NAME, .key = NAMES("id")), "table's name"},
        {ROWS(.schema = "ver_nosuch"), is_sqlite(s->c) ? "ver_nosuch" : "no such table"},
        {ROWS(.schema = ""), "schema's name"},
        {ROWS(.schema = LONG_NAME), "schema's name"},
        {ROWS(.version = "nosuch"), "nosuch"},
        {ROWS(.version = ""), "version column's name"},
        {ROWS(.version = "note"), "integer"},
        {ROWS(.version = "n"), "NULL"},
        {TABLE(.name = "ver_rows"), "key"},
        {KEYED(NULL), "key"},
        {KEYED(""), "key column's name"},
        {KEYED("nosuch"), "nosuch"},
        {KEYED("n"), "unique key"},
        {KEYED("id", "n"), "unique key"},
        {ROWS(.columns = NAMES("n", "nosuch")), "nosuch"},
        {ROWS(.columns = NAMES("n", LONG_NAME)), "column's name"},
        {ROWS(.columns = NAMES("n", "note", "n")), "twice"},
        {ROWS(.columns = NAMES("id")), "twice"},
        {ROWS(.columns = NAMES("version")), "twice"},
        {ROWS(.first_version = -1), "first_version"},
        {ROWS(.set = ""), "set is empty"},
        {ROWS(.set = " \n\t"), "set is empty"},
        {ROWS(.set = "n = ? /* the rest"), "comment"},
        {ROWS(.set = "/*"), "comment"},
        {ROWS(.set = "n = 1 /*/"), "comment"},
        {ROWS(.set = "n = '/*' /* */ /* ?"), "comment"},
    };
    static const char *const closed[] = {"n = ? /* ? */", "n = 1 -- /*", "note = '/*', n = ?",
                                         "n = 1 /**/"};
    for (int i = 0; i < COUNT(all); i++)
        refused(s, all[i].about, all[i].clue);
    for (int i = 0; i < COUNT(closed); i++)
        rowlock_table_close(must_describe(s, ROWS(.set = closed[i])));
    tap_is_int(open_table(s->db, ROWS(.set = NULL), NULL), ROWLOCK_EINVAL, "a handle to nowhere");
    tap_is_int(open_table(s->db, NULL, &(rowlock_table *){NULL}), ROWLOCK_EINVAL, "nothing at all");
}

/* Each a table ver_bad, or a part of one. */
static void wrong_keys(const struct site *s)
{
    const struct about *about = TABLE(.name = "ver_bad", .key = NAMES("id"));
    site_table(s, "ver_bad", "id INT NOT NULL, other INT NOT NULL, version INT NOT NULL");
    refused(s, about, "unique key");
    site_run(s, "CREATE UNIQUE INDEX ver_bad_both ON ver_bad (id, other)");
    refused(s, about, "unique key");
    rowlock_table_close(must_describe(s, TABLE(.name = "ver_bad", .key = NAMES("other", "id"))));
    if (!is_mysql(s->c)) {
        site_run(s, "CREATE UNIQUE INDEX ver_bad_part ON ver_bad (id) WHERE other > 0");
        refused(s, about, "unique key");
        site_run(s, "CREATE UNIQUE INDEX ver_bad_sum ON ver_bad ((id + 1))");
        refused(s, about, "unique key");
    }
    if (is_postgres(s->c)) {
        site_run(s, "ALTER TABLE ver_bad ADD UNIQUE (id) DEFERRABLE");
        refused(s, about, "unique key");
        site_run(s, "CREATE UNIQUE INDEX ver_bad_more ON ver_bad (id) INCLUDE (other)");
        rowlock_table_close(must_describe(s, about));
        site_run(s, "CREATE TABLE ver_child (UNIQUE (id)) INHERITS (ver_bad)");
        refused(s, about, "inherit");
        site_run(s, "DROP TABLE ver_child");
    }
    site_run(s, "CREATE INDEX ver_bad_plain ON ver_bad (id)");
    site_run(s, "CREATE UNIQUE INDEX ver_bad_good ON ver_bad (id)");
    rowlock_table_close(must_describe(s, about));
    if (is_mysql(s->c)) {
        site_table(s, "ver_bad", "id VARCHAR(20) NOT NULL, version INT NOT NULL, UNIQUE (id(5))");
        refused(s, about, "unique key");
    }
    site_table(s, "ver_bad", "id DOUBLE PRECISION PRIMARY KEY, version INT NOT NULL");
    refused(s, about, "floating point");
}

static void a_view(const struct site *s)
{
    char ignored[200];
    s->c->raw->run(s->look, "DROP VIEW ver_view", ignored, sizeof ignored);
    site_run(s, "CREATE VIEW ver_view AS SELECT * FROM ver_rows");
    refused(s, TABLE(.name = "ver_view", .key = NAMES("id")), "");
    site_run(s, "DROP VIEW ver_view");
}

/* SQLite lists no such columns at all. */
static void generated_version(const struct site *s)
{
    const struct about *about = TABLE(.name = "ver_bad", .key = NAMES("id"));
    const char *clue = is_sqlite(s->c) ? "no column" : "generated";
    site_table(s, "ver_bad",
               "id INT PRIMARY KEY, n INT, version INT GENERATED ALWAYS AS (n + 1) STORED");
    refused(s, about, clue);
    if (!is_postgres(s->c))
        return;
    site_table(s, "ver_bad", "id INT PRIMARY KEY, version INT GENERATED ALWAYS AS IDENTITY");
    refused(s, about, clue);
    site_table(s, "ver_bad", "id INT PRIMARY KEY, version INT GENERATED BY DEFAULT AS IDENTITY");
    rowlock_table_close(must_describe(s, about));
}

static void tables_refused(const struct contract *c)
{
    OWNED(site) struct site s = site_open(c);
    make_rows(&s);
    wrong_options(&s);
    wrong_keys(&s);
    generated_version(&s);
    a_view(&s);
}

void contract_versions(const struct contract *c)
{
    outcomes(c);
    first_versions(c);
    composite_keys(c);
    odd_names(c);
    all_widths(c);
    if (is_mysql(c))
        beyond_the_last(c);
    own_sql(c);
    wrong_sql(c);
    tables_refused(c);
}
