/* SPDX-License-Identifier: MIT
 *
 * Every kind of value into every sort of column that can take it, and back, one row at a time and in batches,
 * which go different ways; what a column cannot take; and columns of all sorts as keys.
 */
#include "tables.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A value as it is given, and as it is read. */
struct sample {
    rowlock_value in, back;
};

/* What a column takes, and what it does not. */
struct trial {
    const char *type;
    const struct sample *good;
    int goods;
    const rowlock_value *bad;
    int bads;
    bool by_set; /* also as a parameter of the application's own SQL */
};

#define SAME(value)  \
    {                \
        value, value \
    }
#define GOOD(array) .good = (array), .goods = COUNT(array)
#define BAD(array) .bad = (array), .bads = COUNT(array)

enum { FIRST = 1, MOST = 40 };

/* ---- comparing */

static bool equals(const rowlock_value *a, const rowlock_value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case ROWLOCK_NULL:
        return true;
    case ROWLOCK_INT:
    case ROWLOCK_BOOL:
        return a->number == b->number;
    case ROWLOCK_REAL:
        return memcmp(&a->real, &b->real, sizeof a->real) == 0;
    default:
        return a->length == b->length &&
               (a->length == 0 || memcmp(a->text, b->text, a->length) == 0);
    }
}

static void describe(const rowlock_value *v, char *out, size_t cap)
{
    static const char *const kinds[] = {"NULL", "INT",   "REAL", "DECIMAL",
                                        "TEXT", "BYTES", "BOOL", "TIME"};
    int length = v->length < 60 ? (int)v->length : 60;
    if (v->kind == ROWLOCK_REAL)
        snprintf(out, cap, "REAL %.17g", v->real);
    else if (v->text)
        snprintf(out, cap, "%s '%.*s' of %zu", kinds[v->kind], length, v->text, v->length);
    else
        snprintf(out, cap, "%s %lld", kinds[v->kind], (long long)v->number);
}

/* Row id has the value. */
static bool row_has(rowlock_table *t, int64_t id, const rowlock_value *want)
{
    rowlock_row row;
    rowlock_value key = rowlock_int(id);
    char got[200] = "no row", wanted[200];
    int result = rowlock_read(t, &key, 0, &row);
    if (result == ROWLOCK_OK && equals(&row.values[0], want))
        return true;
    if (result == ROWLOCK_OK)
        describe(&row.values[0], got, sizeof got);
    describe(want, wanted, sizeof wanted);
    tap_note("row %lld is %s (%s), wanted %s", (long long)id, got, rowlock_result_name(result),
             wanted);
    return false;
}

/* ---- a column */

static rowlock_table *open_values(const struct site *s, const char *set)
{
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    about.name = "typ_values";
    about.key = NAMES("id");
    about.columns = NAMES("v");
    about.set = set;
    about.first_version = FIRST;
    return must_describe(s, &about);
}

/* Rows with these numbers for keys, the values shifted by so many. */
static int send(rowlock_table *t, enum op op, const struct trial *trial, int shift, int64_t version,
                size_t at_once)
{
    rowlock_value keys[MOST], values[MOST];
    rowlock_change changes[MOST];
    int result = ROWLOCK_OK;
    for (int i = 0; i < trial->goods; i++) {
        keys[i] = rowlock_int(i);
        values[i] = trial->good[(i + shift) % trial->goods].in;
        changes[i] = (rowlock_change){.key = &keys[i], .values = &values[i], .version = version};
    }
    for (int i = 0; i < trial->goods && result == ROWLOCK_OK; i += (int)at_once) {
        size_t left = (size_t)(trial->goods - i);
        result = change_rows(t, op, &changes[i], at_once < left ? at_once : left, NULL);
    }
    return result;
}

static void all_have(const struct site *s, rowlock_table *reader, const struct trial *trial,
                     int shift, int result, const char *what)
{
    int right = 0;
    is_result(s->db, result, ROWLOCK_OK, "%s: %s", trial->type, what);
    for (int i = 0; i < trial->goods; i++)
        right += row_has(reader, i, &trial->good[(i + shift) % trial->goods].back);
    tap_is_int(right, trial->goods, "and each value is read back");
}

static void good_values(const struct site *s, rowlock_table *t, const struct trial *trial)
{
    for (size_t at_once = 1; at_once <= MOST; at_once += MOST - 1) {
        const char *how = at_once == 1 ? "one by one" : "in a batch";
        char what[100];
        site_run(s, "DELETE FROM typ_values");
        snprintf(what, sizeof what, "inserted %s", how);
        all_have(s, t, trial, 0, send(t, INSERT, trial, 0, 0, at_once), what);
        snprintf(what, sizeof what, "updated %s", how);
        all_have(s, t, trial, 1, send(t, UPDATE, trial, 1, FIRST, at_once), what);
        if (!trial->by_set)
            continue;
        rowlock_table *set = open_values(s, "v = ?");
        snprintf(what, sizeof what, "as a parameter, %s", how);
        int shift = 2 % trial->goods;
        all_have(s, t, trial, shift, send(set, UPDATE, trial, shift, FIRST + 1, at_once), what);
        rowlock_table_close(set);
    }
}

static bool is_refusal(int result)
{
    return result == ROWLOCK_EINVAL || result == ROWLOCK_VIOLATION;
}

/* One that does not fit, alone and among others that do. */
static void bad_value(const struct site *s, rowlock_table *t, const struct trial *trial,
                      const rowlock_value *bad)
{
    char text[200];
    rowlock_value keys[3] = {rowlock_int(1), rowlock_int(2), rowlock_int(3)};
    rowlock_value good = rowlock_null();
    rowlock_change changes[3];
    describe(bad, text, sizeof text);
    for (int op = UPDATE; op <= INSERT; op += INSERT - UPDATE) {
        site_run(s, "DELETE FROM typ_values");
        if (op == UPDATE)
            site_run(s, "INSERT INTO typ_values (id, version) VALUES (1, 1), (2, 1), (3, 1)");
        for (int i = 0; i < 3; i++)
            changes[i] =
                (rowlock_change){.key = &keys[i], .values = i == 1 ? bad : &good, .version = FIRST};
        int one = change_rows(t, (enum op)op, &changes[1], 1, NULL);
        tap_ok(is_refusal(one), "%s: %s of %s is refused (%s)", trial->type, op_names[op], text,
               rowlock_result_name(one));
        int many = change_rows(t, (enum op)op, changes, 3, NULL);
        tap_is_str(rowlock_result_name(many), rowlock_result_name(one), "and in a batch");
        tap_is_int(changes[0].result, many == ROWLOCK_EINVAL ? ROWLOCK_CANCELLED : ROWLOCK_OK,
                   "others are changed unless nothing was sent");
        site_finds(s, op == UPDATE ? "1" : "0", "it is not",
                   "SELECT count(*) FROM typ_values WHERE id = 2 AND version = 1 AND v IS NULL");
        site_finds(s, op == UPDATE ? "1" : "0", "at all",
                   "SELECT count(*) FROM typ_values WHERE id = 2");
    }
}

static void try_column(const struct site *s, const struct trial *trial)
{
    char columns[300];
    snprintf(columns, sizeof columns, "id INT PRIMARY KEY, v %s NULL, version BIGINT NOT NULL",
             trial->type);
    site_table(s, "typ_values", columns);
    rowlock_table *t = open_values(s, NULL);
    good_values(s, t, trial);
    for (int i = 0; i < trial->bads; i++)
        bad_value(s, t, trial, &trial->bad[i]);
    rowlock_table_close(t);
}

/* ---- numbers */

static void integers(const struct site *s)
{
    const struct contract *c = s->c;
    const struct sample big[] = {SAME(rowlock_int(INT64_MAX)), SAME(rowlock_null()),
                                 SAME(rowlock_int(INT64_MIN)), SAME(rowlock_int(0)),
                                 SAME(rowlock_int(-1)),        {rowlock_bool(1), rowlock_int(1)}};
    const struct sample small[] = {SAME(rowlock_int(32767)), SAME(rowlock_int(-32768)),
                                   SAME(rowlock_null())};
    const struct sample positive[] = {SAME(rowlock_int(0)), SAME(rowlock_int(4294967295))};
    const rowlock_value wrong[] = {rowlock_text("1"),    rowlock_text("word"),  rowlock_real(1),
                                   rowlock_decimal("1"), rowlock_bytes("1", 1), rowlock_time("1")};
    const rowlock_value wide[] = {rowlock_int(32768), rowlock_int(-32769), rowlock_int(INT64_MAX)};
    const rowlock_value below[] = {rowlock_int(-1), rowlock_int(4294967296)};
    try_column(s, &(struct trial){"BIGINT", GOOD(big), BAD(wrong)});
    if (c->has_server)
        try_column(s, &(struct trial){"SMALLINT", GOOD(small), BAD(wide), .by_set = true});
    if (is_mysql(c))
        try_column(s, &(struct trial){"INT UNSIGNED", GOOD(positive), BAD(below), .by_set = true});
    const struct sample by_set[] = {SAME(rowlock_int(INT64_MAX)), SAME(rowlock_int(INT64_MIN)),
                                    SAME(rowlock_int(0))};
    try_column(s, &(struct trial){"BIGINT", GOOD(by_set), .by_set = true});
}

static void reals(const struct site *s)
{
    const struct sample good[] = {SAME(rowlock_real(0.1)),
                                  SAME(rowlock_real(1.0 / 3)),
                                  SAME(rowlock_null()),
                                  SAME(rowlock_real(DBL_MAX)),
                                  SAME(rowlock_real(DBL_MIN)),
                                  SAME(rowlock_real(-DBL_MAX)),
                                  SAME(rowlock_real(5e-300)),
                                  SAME(rowlock_real(1e22)),
                                  SAME(rowlock_real(-2.5)),
                                  SAME(rowlock_real(123456789.012)),
                                  {rowlock_int(7), rowlock_real(7)},
                                  {rowlock_decimal("0.25"), rowlock_real(0.25)},
                                  SAME(rowlock_real(nextafter(1, 2)))};
    const struct sample plain[] = {SAME(rowlock_real(0.1)), SAME(rowlock_real(DBL_MAX)),
                                   SAME(rowlock_real(1.0 / 3))};
    const rowlock_value wrong[] = {rowlock_text("1.5"),     rowlock_real(HUGE_VAL),
                                   rowlock_real(-HUGE_VAL), rowlock_real(nan("")),
                                   rowlock_bytes("1", 1),   rowlock_bool(1)};
    try_column(s, &(struct trial){"DOUBLE PRECISION", GOOD(good), BAD(wrong)});
    try_column(s, &(struct trial){"DOUBLE PRECISION", GOOD(plain), .by_set = true});
}

static void decimals(const struct site *s)
{
    const struct contract *c = s->c;
    const char *digits = "1234567890123456789012345678.0123456789";
    const struct sample good[] = {
        SAME(rowlock_decimal(digits)),
        SAME(rowlock_null()),
        SAME(rowlock_decimal("-0.0000000001")),
        {rowlock_decimal("+1.5e3"), rowlock_decimal("1500.0000000000")},
        {rowlock_int(INT64_MIN), rowlock_decimal("-9223372036854775808.0000000000")},
        {rowlock_decimal(".5"), rowlock_decimal("0.5000000000")}};
    const struct sample money[] = {SAME(rowlock_decimal("19.90")),
                                   {rowlock_decimal("20"), rowlock_decimal("20.00")},
                                   SAME(rowlock_decimal("-99999999.99"))};
    const struct sample long_one[] = {
        SAME(rowlock_decimal("123456789012345678901234567890123456789012345678901234567890")),
        SAME(rowlock_decimal("-1"))};
    const rowlock_value wrong[] = {
        rowlock_decimal("12a"), rowlock_decimal(""),   rowlock_decimal("1e"),
        rowlock_decimal("."),   rowlock_decimal(" 1"), rowlock_decimal("0x10"),
        rowlock_text("1"),      rowlock_real(1.5),     rowlock_decimal("NaN")};
    const rowlock_value wide[] = {rowlock_decimal("100000000"), rowlock_decimal("1e300"),
                                  rowlock_int(INT64_MAX)};
    if (c->has_server) {
        try_column(s, &(struct trial){"NUMERIC(40,10)", GOOD(good), BAD(wrong)});
        try_column(s, &(struct trial){"NUMERIC(10,2)", GOOD(money), BAD(wide), .by_set = true});
        try_column(s, &(struct trial){"NUMERIC(65,0)", GOOD(long_one), .by_set = !is_mysql(c)});
        return;
    }
    const struct sample exact[] = {{rowlock_decimal(digits), rowlock_text(digits)},
                                   {rowlock_decimal("19.90"), rowlock_text("19.90")}};
    const struct sample loose[] = {{rowlock_decimal("19.90"), rowlock_real(19.9)},
                                   {rowlock_decimal("20"), rowlock_int(20)}};
    try_column(s, &(struct trial){"TEXT", GOOD(exact)});
    try_column(s, &(struct trial){"NUMERIC(10,2)", GOOD(loose), BAD(wrong)});
}

static void truths(const struct site *s)
{
    bool has_type = is_postgres(s->c);
    const struct sample good[] = {
        {rowlock_bool(1), has_type || is_sqlite(s->c) ? rowlock_bool(1) : rowlock_int(1)},
        {rowlock_bool(0), has_type || is_sqlite(s->c) ? rowlock_bool(0) : rowlock_int(0)},
        SAME(rowlock_null())};
    const rowlock_value wrong[] = {rowlock_text("t"), rowlock_real(1)};
    const rowlock_value two[] = {rowlock_int(2)};
    try_column(s, &(struct trial){"BOOLEAN", GOOD(good), BAD(wrong)});
    if (!is_mysql(s->c))
        try_column(s, &(struct trial){"BOOLEAN", GOOD(good), BAD(two)});
}

/* ---- texts and bytes */

#define HOSTILE                                                                                   \
    SAME(rowlock_text("it's \"quoted\"")), SAME(rowlock_text("back\\slash\\\\ \\n \\u0041 \\x")), \
        SAME(rowlock_text("{brace},{,}")), SAME(rowlock_text("line\nbreak\r\n\ttab")),            \
        SAME(rowlock_text("")), SAME(rowlock_null()), SAME(rowlock_text("NULL")),                 \
        SAME(rowlock_text("null")), SAME(rowlock_text(" blanks ")), SAME(rowlock_text(",")),      \
        SAME(rowlock_text("\"")), SAME(rowlock_text("\\")), SAME(rowlock_text("[1,null]")),       \
        SAME(rowlock_text("%s ? $1 :x @y `z` ; --")), SAME(rowlock_text("\x01\x1f\x7f"))

static void texts(const struct site *s)
{
    const struct contract *c = s->c;
    const char *type = is_mysql(c) ? "TEXT CHARACTER SET utf8mb4" : "TEXT";
    const struct sample good[] = {HOSTILE,
                                  SAME(rowlock_text("gr\xc3\xbc\xc3\x9f \xe2\x82\xac")),
                                  SAME(rowlock_text("\xf0\x9f\x98\x80 \xf0\x9f\x94\x92")),
                                  {rowlock_decimal("1.50"), rowlock_text("1.50")},
                                  {rowlock_time("2024-02-29"), rowlock_text("2024-02-29")},
                                  SAME(rowlock_textn(ROWLOCK_TEXT, "cut here", 3))};
    const struct sample by_set[] = {HOSTILE, SAME(rowlock_text("\xf0\x9f\x98\x80"))};
    const rowlock_value wrong[] = {rowlock_textn(ROWLOCK_TEXT, "a\0b", 3), rowlock_int(1),
                                   rowlock_bytes("a", 1), rowlock_real(1), rowlock_bool(1)};
    const rowlock_value broken[] = {rowlock_text("\xff"), rowlock_text("a\xc3")};
    const struct sample fits[] = {
        SAME(rowlock_text("12345")), SAME(rowlock_text("")),
        SAME(rowlock_text("\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80"
                          "\xf0\x9f\x98\x80\xf0\x9f\x98\x80"))};
    const rowlock_value wide[] = {rowlock_text("123456"), rowlock_text("a longer text")};
    try_column(s, &(struct trial){type, GOOD(good), BAD(wrong)});
    try_column(s, &(struct trial){type, GOOD(by_set), .by_set = true});
    if (!c->has_server)
        return;
    try_column(s, &(struct trial){type, GOOD(fits), BAD(broken)});
    try_column(s, &(struct trial){is_mysql(c) ? "VARCHAR(5) CHARACTER SET utf8mb4" : "VARCHAR(5)",
                                  GOOD(fits), BAD(wide), .by_set = true});
    bool pads = is_postgres(c);
    const struct sample fixed[] = {
        {rowlock_text("ab"), pads ? rowlock_text("ab   ") : rowlock_text("ab")},
        SAME(rowlock_text("abcde"))};
    try_column(s, &(struct trial){"CHAR(5)", GOOD(fixed), BAD(wide)});
}

static void bytes(const struct site *s)
{
    static char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    const char *type = is_mysql(s->c) ? "BLOB" : is_postgres(s->c) ? "BYTEA" : "BLOB";
    const struct sample good[] = {
        SAME(rowlock_bytes(all, sizeof all)), SAME(rowlock_null()),
        SAME(rowlock_bytes("", 0)),           SAME(rowlock_bytes("\\x41", 4)),
        SAME(rowlock_bytes("\0\0", 2)),       SAME(rowlock_bytes("NULL", 4))};
    const struct sample by_set[] = {SAME(rowlock_bytes(all, sizeof all)),
                                    SAME(rowlock_bytes("", 0))};
    const rowlock_value wrong[] = {rowlock_text("a"), rowlock_int(1), rowlock_decimal("1")};
    try_column(s, &(struct trial){type, GOOD(good), BAD(wrong)});
    try_column(s, &(struct trial){type, GOOD(by_set), .by_set = true});
}

/* ---- times */

/* How the database itself writes it in a session like ours. */
static rowlock_value as_told(const struct site *s, const char *sql)
{
    static char text[100];
    if (!s->c->raw->ask(s->look, sql, text, sizeof text))
        raw_failed("no answer", sql);
    return rowlock_time(text);
}

static void times(const struct site *s)
{
    const struct contract *c = s->c;
    const char *moment = "2024-02-29 12:34:56.789012";
    const struct sample good[] = {SAME(rowlock_time(moment)),
                                  SAME(rowlock_null()),
                                  {rowlock_text(moment), rowlock_time(moment)},
                                  SAME(rowlock_time("1999-12-31 23:59:59.999999"))};
    const struct sample days[] = {SAME(rowlock_time("2024-02-29")),
                                  SAME(rowlock_time("1999-01-01"))};
    const struct sample hours[] = {SAME(rowlock_time("12:34:56.789012")),
                                   SAME(rowlock_time("00:00:00.000001"))};
    const rowlock_value wrong[] = {rowlock_text("not a date"), rowlock_time("2023-02-29 00:00:00"),
                                   rowlock_time("2024-13-01 00:00:00"), rowlock_time(""),
                                   rowlock_int(20240229)};
    const rowlock_value kinds[] = {rowlock_int(1), rowlock_bytes("2024-02-29", 10),
                                   rowlock_decimal("1")};
    if (!c->has_server) {
        try_column(s, &(struct trial){"DATETIME", GOOD(good), BAD(kinds)});
        return;
    }
    const char *type = is_mysql(c) ? "DATETIME(6)" : "TIMESTAMP";
    try_column(s, &(struct trial){type, GOOD(good), BAD(wrong)});
    try_column(s, &(struct trial){"DATE", GOOD(days), BAD(wrong), .by_set = true});
    try_column(s, &(struct trial){is_mysql(c) ? "TIME(6)" : "TIME", GOOD(hours)});
    if (is_mysql(c)) {
        try_column(s, &(struct trial){"TIMESTAMP(6)", GOOD(good), BAD(wrong)});
        return;
    }
    const struct sample zoned[] = {
        {rowlock_time("2024-02-29 12:34:56.789012+02"),
         as_told(s, "SELECT timestamptz '2024-02-29 12:34:56.789012+02'")}};
    try_column(s, &(struct trial){"TIMESTAMPTZ", GOOD(zoned), BAD(wrong), .by_set = true});
}

/* ---- columns that only one database has */

static void postgres_columns(const struct site *s)
{
    char ignored[200];
    s->c->raw->run(s->look, "DROP TABLE IF EXISTS typ_values", ignored, sizeof ignored);
    site_run(s, "DROP TYPE IF EXISTS typ_mood");
    site_run(s, "DROP DOMAIN IF EXISTS typ_even");
    site_run(s, "DROP DOMAIN IF EXISTS typ_code");
    site_run(s, "CREATE TYPE typ_mood AS ENUM ('glad', 'so, \"so\"')");
    site_run(s, "CREATE DOMAIN typ_even AS int CHECK (VALUE %% 2 = 0)");
    site_run(s, "CREATE DOMAIN typ_code AS varchar(4)");
    const struct sample moods[] = {SAME(rowlock_text("glad")), SAME(rowlock_text("so, \"so\"")),
                                   SAME(rowlock_null())};
    const struct sample evens[] = {SAME(rowlock_int(2)), SAME(rowlock_int(-4))};
    const struct sample codes[] = {SAME(rowlock_text("a\\\"b")), SAME(rowlock_text(""))};
    const struct sample json[] = {SAME(rowlock_text("{\"a\":  [1, null, \"x\\\"y\"]}")),
                                  SAME(rowlock_text("\"\\\\\""))};
    const struct sample jsonb[] = {{rowlock_text("{\"b\":1,\"a\":[null,\"\\\\\"]}"),
                                    rowlock_text("{\"a\": [null, \"\\\\\"], \"b\": 1}")}};
    const struct sample ids[] = {SAME(rowlock_text("12345678-9abc-def0-1234-56789abcdef0"))};
    const struct sample lists[] = {SAME(rowlock_text("{1,NULL,3}")), SAME(rowlock_text("{}"))};
    const struct sample nets[] = {SAME(rowlock_text("10.0.0.0/8"))};
    const rowlock_value word[] = {rowlock_text("word"), rowlock_text("{"), rowlock_text("")};
    const rowlock_value odd[] = {rowlock_int(3), rowlock_text("2")};
    const rowlock_value wide[] = {rowlock_text("abcde")};
    try_column(s, &(struct trial){"typ_mood", GOOD(moods), BAD(word)});
    try_column(s, &(struct trial){"typ_even", GOOD(evens), BAD(odd), .by_set = true});
    try_column(s, &(struct trial){"typ_code", GOOD(codes), BAD(wide), .by_set = true});
    try_column(s, &(struct trial){"JSON", GOOD(json), BAD(word)});
    try_column(s, &(struct trial){"JSONB", GOOD(jsonb), BAD(word)});
    try_column(s, &(struct trial){"UUID", GOOD(ids), BAD(word)});
    try_column(s, &(struct trial){"INT[]", GOOD(lists), BAD(word)});
    try_column(s, &(struct trial){"INET", GOOD(nets), BAD(word)});
    site_run(s, "DROP TABLE typ_values");
    site_run(s, "DROP TYPE typ_mood");
    site_run(s, "DROP DOMAIN typ_even");
    site_run(s, "DROP DOMAIN typ_code");
}

static void mysql_columns(const struct site *s)
{
    const struct sample latin[] = {HOSTILE, SAME(rowlock_text("gr\xc3\xbc\xc3\x9f"))};
    const rowlock_value greek[] = {rowlock_text("\xce\xa9"), rowlock_text("\xf0\x9f\x98\x80")};
    const struct sample three[] = {HOSTILE, SAME(rowlock_text("\xe2\x82\xac \xce\xa9"))};
    const rowlock_value four[] = {rowlock_text("\xf0\x9f\x98\x80")};
    const struct sample moods[] = {SAME(rowlock_text("glad")), SAME(rowlock_text("so, \"so\"")),
                                   SAME(rowlock_null())};
    const struct sample sets[] = {SAME(rowlock_text("a,c")), SAME(rowlock_text(""))};
    const rowlock_value word[] = {rowlock_text("word")};
    const struct sample bytes_of[] = {SAME(rowlock_bytes("a\0\xff", 3)),
                                      SAME(rowlock_bytes("", 0))};
    const rowlock_value too_long[] = {rowlock_bytes("12345", 5)};
    const struct sample fixed[] = {{rowlock_bytes("a", 1), rowlock_bytes("a\0\0\0", 4)}};
    const struct sample years[] = {SAME(rowlock_int(2024)), SAME(rowlock_int(1999))};
    const struct sample json[] = {SAME(rowlock_text("{\"a\": [1, null, \"x\\\"y\"]}"))};
    const rowlock_value brace[] = {rowlock_text("{")};
    try_column(s, &(struct trial){"VARCHAR(50) CHARACTER SET latin1", GOOD(latin), BAD(greek),
                                  .by_set = true});
    try_column(s, &(struct trial){"VARCHAR(50) CHARACTER SET utf8 COLLATE utf8_bin", GOOD(three),
                                  BAD(four), .by_set = true});
    try_column(s, &(struct trial){"ENUM('glad', 'so, \"so\"')", GOOD(moods), BAD(word)});
    try_column(s, &(struct trial){"SET('a', 'b', 'c')", GOOD(sets), BAD(word)});
    try_column(s, &(struct trial){"VARBINARY(4)", GOOD(bytes_of), BAD(too_long), .by_set = true});
    try_column(s, &(struct trial){"BINARY(4)", GOOD(fixed), BAD(too_long)});
    try_column(s, &(struct trial){"YEAR", GOOD(years)});
    try_column(s, &(struct trial){"JSON", GOOD(json), BAD(brace)});
    const struct sample wide[] = {SAME(rowlock_decimal("18446744073709551615")),
                                  SAME(rowlock_decimal("9223372036854775808")),
                                  SAME(rowlock_int(INT64_MAX)),
                                  {rowlock_decimal("42"), rowlock_int(42)},
                                  SAME(rowlock_int(0))};
    const rowlock_value too_wide[] = {rowlock_int(-1), rowlock_decimal("18446744073709551616"),
                                      rowlock_decimal("-1")};
    const rowlock_value not_whole[] = {rowlock_decimal("1.5"), rowlock_text("1")};
    const struct sample by_set[] = {wide[0], wide[1], wide[3]};
    try_column(s, &(struct trial){"BIGINT UNSIGNED", GOOD(wide), BAD(too_wide)});
    try_column(s, &(struct trial){"BIGINT UNSIGNED", GOOD(by_set), BAD(not_whole)});
    try_column(s, &(struct trial){"BIGINT UNSIGNED", GOOD(by_set), .by_set = true});
}

/* ---- keys */

struct key_trial {
    const char *type;
    rowlock_value keys[3];
    rowlock_value none; /* that no row has */
    rowlock_value
        again; /* the first, in another spelling that the database takes for it; or NULL */
};

static void key_calls(const struct site *s, rowlock_table *t, const struct key_trial *k)
{
    rowlock_change changes[4];
    for (int i = 0; i < 3; i++)
        changes[i] = (rowlock_change){.key = &k->keys[i]};
    is_result(s->db, rowlock_insert(t, changes, 3, NULL), ROWLOCK_OK, "%s: keys inserted", k->type);
    changes[3] = (rowlock_change){.key = &k->none, .version = FIRST};
    for (int i = 0; i < 3; i++)
        changes[i].version = changes[i].current;
    is_result(s->db, rowlock_touch(t, changes, 4, NULL), ROWLOCK_GONE, "all but one are there");
    tap_ok(changes[0].result == ROWLOCK_OK && changes[1].result == ROWLOCK_OK &&
               changes[2].result == ROWLOCK_OK,
           "and found by their keys");
    for (int i = 0; i < 3; i++)
        is_result(s->db, rowlock_touch(t, &changes[i], 1, NULL), ROWLOCK_STALE, "each by itself");
    is_result(s->db, rowlock_touch(t, &changes[3], 1, NULL), ROWLOCK_GONE, "and that one not");
    is_result(s->db, rowlock_insert(t, changes, 3, NULL), ROWLOCK_EXISTS, "they are there");
    is_result(s->db, rowlock_insert(t, changes, 1, NULL), ROWLOCK_EXISTS, "each");
    if (k->again.kind != ROWLOCK_NULL) {
        rowlock_change again = {.key = &k->again, .version = FIRST + 1};
        is_result(s->db, rowlock_expect(t, &again, 1, NULL), ROWLOCK_OK, "spelt otherwise");
        is_result(s->db, rowlock_insert(t, &again, 1, NULL), ROWLOCK_EXISTS, "it is the same");
    }
    for (int i = 0; i < 3; i++)
        changes[i].version = FIRST + 1;
    is_result(s->db, rowlock_remove(t, changes, 2, NULL), ROWLOCK_OK, "removed");
    is_result(s->db, rowlock_remove(t, &changes[2], 1, NULL), ROWLOCK_OK, "removed");
    site_finds(s, "0", "none is left", "SELECT count(*) FROM typ_keys");
}

static void try_key(const struct site *s, const struct key_trial *k)
{
    char columns[300];
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    snprintf(columns, sizeof columns, "k %s NOT NULL PRIMARY KEY, version BIGINT NOT NULL",
             k->type);
    site_table(s, "typ_keys", columns);
    about.name = "typ_keys";
    about.key = NAMES("k");
    about.first_version = FIRST;
    rowlock_table *t = must_describe(s, &about);
    key_calls(s, t, k);
    rowlock_table_close(t);
}

#define TEXTS(a, b, c)                                    \
    {                                                     \
        rowlock_text(a), rowlock_text(b), rowlock_text(c) \
    }

/* A key of characters that its column does not know is nobody's: not that of a row which has question marks
 * in their place. */
static void unknown_characters(const struct site *s)
{
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    rowlock_value known = rowlock_text("a"), unknown = rowlock_text("\xce\xa9");
    site_table(s, "typ_keys",
               "k VARCHAR(20) CHARACTER SET latin1 NOT NULL PRIMARY KEY, version BIGINT NOT NULL");
    site_run(s, "INSERT INTO typ_keys VALUES ('a', 1), ('?', 1)");
    about.name = "typ_keys";
    about.key = NAMES("k");
    rowlock_table *t = must_describe(s, &about);
    for (int op = TOUCH; op <= REMOVE; op++) {
        rowlock_change changes[] = {{.key = &unknown, .version = 1}, {.key = &known, .version = 1}};
        if (op == INSERT)
            continue;
        int one = change_rows(t, (enum op)op, changes, 1, NULL);
        tap_ok(one == ROWLOCK_GONE || is_refusal(one), "%s: a key that the column cannot hold (%s)",
               op_names[op], rowlock_result_name(one));
        int two = change_rows(t, (enum op)op, changes, 2, NULL);
        tap_ok(two == ROWLOCK_GONE || is_refusal(two), "and in a batch (%s)",
               rowlock_result_name(two));
        site_finds(s, "1", "is no other row's", "SELECT version FROM typ_keys WHERE k = '?'");
    }
    rowlock_change changes[] = {{.key = &unknown}, {.key = &known}};
    tap_ok(is_refusal(rowlock_insert(t, changes, 1, NULL)), "nor can such a row be made");
    tap_ok(is_refusal(rowlock_insert(t, changes, 2, NULL)), "by a batch");
    site_finds(s, "0", "whatever it looks like",
               "SELECT count(*) FROM typ_keys WHERE k NOT IN ('a', '?')");
    rowlock_table_close(t);
}

static void mysql_keys(const struct site *s)
{
    const rowlock_value no_again = rowlock_null();
    const struct key_trial trials[] = {
        {"VARCHAR(20) CHARACTER SET latin1", TEXTS("a", "gr\xc3\xbc\xc3\x9f", "it's \\"),
         rowlock_text("o"), rowlock_text("A")},
        {"VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin", TEXTS("a", "A", "\xc3\xbc"),
         rowlock_text("?"), no_again},
        {"VARCHAR(20) CHARACTER SET utf8", TEXTS("a", "\xe2\x82\xac", "{\"}"), rowlock_text("o"),
         rowlock_text("A")},
        {"VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
         TEXTS("a", "A", "\xf0\x9f\x98\x80"), rowlock_text("\xf0\x9f\x98\x81"), no_again},
        {"VARCHAR(20) CHARACTER SET ascii", TEXTS("a", "b", ""), rowlock_text("o"),
         rowlock_text("A")},
        {"VARBINARY(20)",
         {rowlock_bytes("a", 1), rowlock_bytes("A", 1), rowlock_bytes("\0\xff", 2)},
         rowlock_bytes("", 0),
         no_again},
        {"ENUM('a', 'b', 'c')", TEXTS("a", "b", "c"), rowlock_text("d"), no_again},
        {"DATETIME(6)",
         {rowlock_time("2024-02-29 12:34:56.789012"), rowlock_time("2024-02-29 12:34:56.789013"),
          rowlock_time("2024-02-29 00:00:00")},
         rowlock_time("2024-02-29 00:00:00.000001"),
         no_again},
        {"BIGINT UNSIGNED",
         {rowlock_int(0), rowlock_int(INT64_MAX), rowlock_int(1)},
         rowlock_int(2),
         no_again},
        {"BIGINT UNSIGNED",
         {rowlock_decimal("18446744073709551615"), rowlock_decimal("9223372036854775808"),
          rowlock_int(5)},
         rowlock_int(-5),
         no_again},
    };
    for (int i = 0; i < COUNT(trials); i++)
        try_key(s, &trials[i]);
    unknown_characters(s);
}

static void postgres_keys(const struct site *s)
{
    const rowlock_value no_again = rowlock_null();
    const struct key_trial trials[] = {
        {"CHAR(5)", TEXTS("a", "A", "it's"), rowlock_text("b"), rowlock_text("a ")},
        {"UUID",
         TEXTS("12345678-9abc-def0-1234-56789abcdef0", "12345678-9abc-def0-1234-56789abcdef1",
               "12345678-9abc-def0-1234-56789abcdef2"),
         rowlock_text("00000000-9abc-def0-1234-56789abcdef0"),
         rowlock_text("{12345678-9ABC-def0-1234-56789abcdef0}")},
        {"TIMESTAMPTZ",
         {rowlock_time("2024-02-29 12:34:56.789012+00"), rowlock_time("2024-02-29 12:00:00+00"),
          rowlock_time("1999-02-28 12:00:00+00")},
         rowlock_time("2024-02-29 12:34:56.789013+00"),
         rowlock_time("2024-02-29 13:34:56.789012+01")},
        {"VARCHAR(20)", TEXTS("a", "A", "{\"\\,}"), rowlock_text("a "), no_again},
        {"BYTEA",
         {rowlock_bytes("a", 1), rowlock_bytes("", 0), rowlock_bytes("\0\xff", 2)},
         rowlock_bytes("b", 1),
         no_again},
        {"SMALLINT",
         {rowlock_int(1), rowlock_int(32767), rowlock_int(-32768)},
         rowlock_int(2),
         no_again},
    };
    for (int i = 0; i < COUNT(trials); i++)
        try_key(s, &trials[i]);
}

static void keys(const struct site *s)
{
    const rowlock_value no_again = rowlock_null();
    const struct key_trial trials[] = {
        {"BIGINT",
         {rowlock_int(INT64_MIN), rowlock_int(INT64_MAX), rowlock_int(0)},
         rowlock_int(1),
         no_again},
        {"NUMERIC(12,2)",
         {rowlock_decimal("1.5"), rowlock_decimal("-1.25"), rowlock_int(7)},
         rowlock_decimal("1.51"),
         rowlock_decimal("1.50")},
        {"DATE",
         {rowlock_time("2024-02-29"), rowlock_time("1999-12-31"), rowlock_time("2000-01-01")},
         rowlock_time("2024-02-28"),
         no_again},
        {is_mysql(s->c) ? "VARCHAR(99) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin" : "VARCHAR(99)",
         TEXTS("", "NULL", "a,{}\"\\'\n"), rowlock_text("null"), no_again},
    };
    for (int i = 0; i < COUNT(trials); i++)
        try_key(s, &trials[i]);
    if (is_mysql(s->c))
        mysql_keys(s);
    if (is_postgres(s->c))
        postgres_keys(s);
    const struct key_trial wide = {
        "NUMERIC(60,0)",
        {rowlock_decimal("123456789012345678901234567890123456789012345678901234567890"),
         rowlock_decimal("123456789012345678901234567890123456789012345678901234567891"),
         rowlock_decimal("0")},
        rowlock_decimal("123456789012345678901234567890123456789012345678901234567892"),
        no_again};
    if (s->c->has_server)
        try_key(s, &wide);
    site_run(s, "DROP TABLE typ_keys");
}

void contract_types(const struct contract *c)
{
    struct site s = site_open(c);
    integers(&s);
    reals(&s);
    decimals(&s);
    truths(&s);
    texts(&s);
    bytes(&s);
    times(&s);
    if (is_postgres(c))
        postgres_columns(&s);
    if (is_mysql(c))
        mysql_columns(&s);
    site_run(&s, "DROP TABLE IF EXISTS typ_values");
    keys(&s);
    site_close(&s);
}
