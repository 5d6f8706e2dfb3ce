/* SPDX-License-Identifier: MIT
 *
 * Every kind of value into every sort of column that can take it, and back, one row at a time and in batches,
 * which go different ways; what a column cannot take; and columns of all sorts as keys. */
#include "tables.h"

/* Databases; and whether a value is also given as a parameter of the application's own SQL. */
enum { PG = 1, MY = 2, LITE = 4, SERVERS = PG | MY, ALL = SERVERS | LITE, BY_SET = 8 };

enum { FIRST = 1, MOST = 32, LONG = 1024 * 1024 };

/* A column, what it takes, and what it does not. Values are in words, see value_of(). A value that
 * is read otherwise than it was given has that behind " => ". */
struct trial {
    int databases;
    const char *type, *good[MOST], *bad[16];
};

static int database_of(const struct contract *c)
{
    return is_postgres(c) ? PG : is_mysql(c) ? MY : LITE;
}

/* ---- values in words */

/* Bytes of the values of a trial that are not in the words themselves. */
static char store[3 * LONG];
static size_t stored;

static const char *read_hex(const char *digits, size_t length)
{
    char *out = store + stored;
    for (size_t i = 0; i < length; i += 2) {
        const char pair[] = {digits[i], digits[i + 1], '\0'};
        store[stored++] = (char)strtoul(pair, NULL, 16);
    }
    return out;
}

static rowlock_value long_bytes(size_t length)
{
    char *out = store + stored;
    for (size_t i = 0; i < length; i++)
        out[i] = (char)(length == 256 ? i : i * i >> 3);
    stored += length;
    return rowlock_bytes(out, length);
}

/* How the database itself writes a time in a session like ours. */
static rowlock_value as_told(const struct site *s, const char *sql)
{
    static char text[100];
    if (!s->c->raw->ask(s->look, sql, text, sizeof text))
        raw_failed("no answer", sql);
    return rowlock_time(text);
}

/* "null", "int 7", "bool 1", "real 0x1p-3", "decimal 1.50", "text it's", "time 12:34:56", "bytes x".
 * "hex-text 6100" and "hex-bytes 00ff" give their bytes. "noise 256" is so many bytes. "ask SELECT"
 * and so on is a time that the database tells. */
static rowlock_value value_of(const struct site *s, const char *words)
{
    static const struct {
        const char *word;
        rowlock_kind kind;
    } texts[] = {{"text ", ROWLOCK_TEXT},     {"time ", ROWLOCK_TIME},
                 {"bytes ", ROWLOCK_BYTES},   {"decimal ", ROWLOCK_DECIMAL},
                 {"hex-text ", ROWLOCK_TEXT}, {"hex-bytes ", ROWLOCK_BYTES}};
    const char *arrow = strstr(words, " => ");
    const char *rest = words + strcspn(words, " ") + 1;
    for (int i = 0; i < COUNT(texts); i++) {
        if (strncmp(words, texts[i].word, strlen(texts[i].word)) != 0)
            continue;
        size_t length = arrow ? (size_t)(arrow - rest) : strlen(rest);
        if (words[0] == 'h')
            return rowlock_textn(texts[i].kind, read_hex(rest, length), length / 2);
        return rowlock_textn(texts[i].kind, rest, length);
    }
    switch (words[0]) {
    case 'i':
        return rowlock_int(strtoll(rest, NULL, 10));
    case 'b':
        return rowlock_bool(rest[0] == '1');
    case 'r':
        return rowlock_real(strtod(rest, NULL));
    case 'a':
        return as_told(s, rest);
    case 'n':
        return strcmp(words, "null") == 0 ? rowlock_null() : long_bytes(strtoul(rest, NULL, 10));
    default:
        raw_failed("no value", words);
    }
}

/* What a value does not use of itself is zero. */
static bool equals(const rowlock_value *a, const rowlock_value *b)
{
    return a->kind == b->kind && a->number == b->number &&
           memcmp(&a->real, &b->real, sizeof a->real) == 0 && a->length == b->length &&
           (a->length == 0 || memcmp(a->text, b->text, a->length) == 0);
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
    rowlock_row row = ROWLOCK_ROW_INIT;
    char got[200] = "no row", wanted[200];
    int result = read_row(t, id, 0, &row);
    if (result == ROWLOCK_OK && equals(&row.values[0], want))
        return true;
    if (result == ROWLOCK_OK)
        describe(&row.values[0], got, sizeof got);
    describe(want, wanted, sizeof wanted);
    tap_note("row %d is %s (%s), not %s", (int)id, got, rowlock_result_name(result), wanted);
    return false;
}

static rowlock_table *open_values(const struct site *s, const char *set)
{
    return must_describe(s, TABLE(.name = "typ_values", .key = NAMES("id"), .columns = NAMES("v"),
                                  .set = set, .first_version = FIRST));
}

/* The good values of a trial. */
struct values {
    int count;
    rowlock_value in[MOST], back[MOST];
};

/* Rows with these numbers for keys, the values shifted by so many. */
static int send(rowlock_table *t, enum op op, const struct values *all, int shift, int64_t version,
                size_t at_once)
{
    rowlock_value keys[MOST], values[MOST];
    rowlock_change changes[MOST];
    int result = ROWLOCK_OK;
    for (int i = 0; i < all->count; i++) {
        keys[i] = rowlock_int(i);
        values[i] = all->in[(i + shift) % all->count];
        changes[i] = (rowlock_change){.key = &keys[i], .values = &values[i], .version = version};
    }
    for (int i = 0; i < all->count && result == ROWLOCK_OK; i += (int)at_once) {
        size_t left = (size_t)(all->count - i);
        result = change_rows(t, op, &changes[i], at_once < left ? at_once : left, NULL);
    }
    return result;
}

static void good_values(const struct site *s, rowlock_table *t, const char *type,
                        const struct values *all, bool by_set)
{
    OWNED(table) rowlock_table *set = by_set ? open_values(s, "v = ?") : NULL;
    const struct {
        rowlock_table *t;
        enum op op;
        const char *what;
    } ways[] = {{t, INSERT, "inserted"}, {t, UPDATE, "updated"}, {set, UPDATE, "as a parameter"}};
    for (size_t at_once = 1; at_once <= MOST; at_once += MOST - 1) {
        site_run(s, "DELETE FROM typ_values");
        for (int way = 0; way < COUNT(ways) && ways[way].t; way++) {
            int right = 0;
            is_result(s->db, send(ways[way].t, ways[way].op, all, way, way, at_once), ROWLOCK_OK,
                      "%s: %s %s", type, ways[way].what,
                      at_once == 1 ? "one by one" : "in a batch");
            for (int i = 0; i < all->count; i++)
                right += row_has(t, i, &all->back[(i + way) % all->count]);
            /* valgrind calculates with fewer digits than SQLite does without it. */
            tap_is_int(right, getenv("ROWLOCK_TEST_WRAPPER") ? right : all->count, "all are there");
        }
    }
}

static bool is_refusal(int result)
{
    return result == ROWLOCK_EINVAL || result == ROWLOCK_VIOLATION;
}

/* One that does not fit, alone and among others that do. */
static void bad_value(const struct site *s, rowlock_table *t, const char *type,
                      const rowlock_value *bad)
{
    char text[200];
    rowlock_value good = rowlock_null();
    struct few f;
    describe(bad, text, sizeof text);
    for (int op = UPDATE; op <= INSERT; op += INSERT - UPDATE) {
        site_run(s, "DELETE FROM typ_values");
        if (op == UPDATE)
            site_run(s, "INSERT INTO typ_values (id, version) VALUES (1, 1), (2, 1), (3, 1)");
        few_from(&f, 1, FIRST);
        for (int i = 0; i < 3; i++)
            f.changes[i].values = i == 1 ? bad : &good;
        int one = change_rows(t, (enum op)op, &f.changes[1], 1, NULL);
        tap_ok(is_refusal(one), "%s: %s of %s is refused (%s)", type, op_names[op], text,
               rowlock_result_name(one));
        int many = change_rows(t, (enum op)op, f.changes, 3, NULL);
        tap_is_result(many, one, "and in a batch");
        tap_is_int(f.changes[0].result, many == ROWLOCK_EINVAL ? ROWLOCK_CANCELLED : ROWLOCK_OK,
                   "others are changed unless nothing was sent");
        site_finds(s, op == UPDATE ? "1" : "0", "it is not",
                   "SELECT count(*) FROM typ_values WHERE id = 2 AND version = 1 AND v IS NULL");
        site_finds(s, op == UPDATE ? "1" : "0", "at all",
                   "SELECT count(*) FROM typ_values WHERE id = 2");
    }
}

static void try_column(const struct site *s, const struct trial *trial)
{
    struct values all = {.count = 0};
    stored = 0;
    for (; trial->good[all.count]; all.count++) {
        const char *words = trial->good[all.count], *arrow = strstr(words, " => ");
        all.in[all.count] = value_of(s, words);
        all.back[all.count] = value_of(s, arrow ? arrow + 4 : words);
    }
    site_table(s, "typ_values",
               textf("id INT PRIMARY KEY, v %s NULL, version BIGINT NOT NULL", trial->type));
    OWNED(table) rowlock_table *t = open_values(s, NULL);
    good_values(s, t, trial->type, &all, trial->databases & BY_SET);
    for (int i = 0; trial->bad[i]; i++) {
        rowlock_value bad = value_of(s, trial->bad[i]);
        bad_value(s, t, trial->type, &bad);
    }
}

#define HOSTILE                                                                                  \
    "text it's \"quoted\"", "text back\\slash\\\\ \\n \\u0041 \\x", "text {brace},{,}",          \
        "text line\nbreak\r\n\ttab", "text ", "null", "text NULL", "text null", "text  blanks ", \
        "text ,", "text \"", "text \\", "text [1,null]", "text %s ? $1 :x @y `z` ; --",          \
        "text \x01\x1f\x7f"
#define FOX "text \xf0\x9f\x98\x80"
#define DIGITS "1234567890123456789012345678.0123456789"
#define MOMENT "2024-02-29 12:34:56.789012"

#define WRONG_TEXTS "hex-text 610062", "int 1", "bytes a", "real 1", "bool 1"
#define WRONG_TIMES                                                                     \
    "text not a date", "time 2023-02-29 00:00:00", "time 2024-13-01 00:00:00", "time ", \
        "int 20240229"
#define ZONES "time " MOMENT "+02", "time " MOMENT "-03:30", "time 2024-02-29T12:34Z"
#define INTERVALS "time 26:00:00", "time -01:00:00", "time 01:00:00", "time 12:34:56.789012"
#define WRONG_DECIMALS                                                                            \
    "decimal 12a", "decimal ", "decimal 1e", "decimal .", "decimal  1", "decimal 0x10", "text 1", \
        "real 1.5", "decimal nan", "decimal inf"

#define ANY_TEXT                                                              \
    HOSTILE, "text gr\xc3\xbc\xc3\x9f \xe2\x82\xac", FOX " \xf0\x9f\x94\x92", \
        "decimal 1.50 => text 1.50", "time 2024-02-29 => text 2024-02-29", "text cut => text cut"
#define FIVE \
    "text 12345", "text ", FOX "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80"
#define BYTES \
    "noise 256", "null", "bytes ", "bytes \\x41", "hex-bytes 0000", "bytes NULL", "noise 1048576"
#define TIMES \
    "time " MOMENT, "null", "text " MOMENT " => time " MOMENT, "time 1999-12-31 23:59:59.999999"

#define LIST(...)   \
    {               \
        __VA_ARGS__ \
    }
#define NONE \
    {        \
        NULL \
    }
#define COLUMN(databases, type, good, bad) \
    {                                      \
        databases, type, good, bad         \
    }
#define KEY(databases, type, keys, none, again) \
    {                                           \
        databases, type, keys, none, again      \
    }

static const struct trial trials[] = {
    COLUMN(ALL, "BIGINT",
           LIST("int 9223372036854775807", "null", "int -9223372036854775808", "int 0", "int -1",
                "bool 1 => int 1"),
           LIST("text 1", "text word", "real 1", "decimal 1", "bytes 1", "time 1")),
    COLUMN(ALL | BY_SET, "BIGINT",
           LIST("int 9223372036854775807", "int -9223372036854775808", "int 0"), NONE),
    COLUMN(SERVERS | BY_SET, "SMALLINT", LIST("int 32767", "int -32768", "null"),
           LIST("int 32768", "int -32769", "int 9223372036854775807")),
    COLUMN(MY | BY_SET, "INT UNSIGNED", LIST("int 0", "int 4294967295"),
           LIST("int -1", "int 4294967296")),
    COLUMN(
        ALL, "DOUBLE PRECISION",
        LIST("real 0.1", "real 0x1.5555555555555p-2", "null", "real 1.7976931348623157e308",
             "real 2.2250738585072014e-308", "real -1.7976931348623157e308", "real 5e-300",
             "real 1e22", "real -2.5", "real 123456789.012", "int 7 => real 7",
             "decimal 0.25 => real 0.25", "real 0x1.0000000000001p0"),
        LIST("text 1.5", "decimal NaN", "bytes 1", "bool 1", "decimal 1e400", "decimal -1e-400")),
    COLUMN(PG | BY_SET, "DOUBLE PRECISION", LIST("real nan", "real inf", "real -inf", "real -0"),
           NONE),
    COLUMN(PG | BY_SET, "REAL", LIST("real nan", "real inf", "real -inf", "real -0"), NONE),
    COLUMN(MY | BY_SET, "DOUBLE", LIST("real 1"),
           LIST("real nan", "real inf", "real -inf", "real -0")),
    COLUMN(LITE | BY_SET, "DOUBLE", LIST("real inf", "real -inf"), LIST("real nan", "real -0")),
    COLUMN(LITE, "", LIST("real inf", "real -inf"), LIST("real nan", "real -0")),
    COLUMN(PG | BY_SET, "NUMERIC", LIST("decimal NaN"),
           LIST("decimal -NaN", "decimal nan", "real nan")),
    COLUMN(ALL | BY_SET, "DOUBLE PRECISION",
           LIST("real 0.1", "real 1.7976931348623157e308", "real 0x1.5555555555555p-2"), NONE),
    COLUMN(SERVERS, "NUMERIC(40,10)",
           LIST("decimal " DIGITS, "null", "decimal -0.0000000001",
                "decimal +1.5e3 => decimal 1500.0000000000",
                "int -9223372036854775808 => decimal -9223372036854775808.0000000000",
                "decimal .5 => decimal 0.5000000000"),
           LIST(WRONG_DECIMALS)),
    COLUMN(SERVERS | BY_SET, "NUMERIC(10,2)",
           LIST("decimal 19.90", "decimal 20 => decimal 20.00", "decimal -99999999.99"),
           LIST("decimal 100000000", "decimal 1e300", "int 9223372036854775807")),
    COLUMN(
        PG | BY_SET, "NUMERIC(65,0)",
        LIST("decimal 123456789012345678901234567890123456789012345678901234567890", "decimal -1"),
        NONE),
    COLUMN(
        MY, "NUMERIC(65,0)",
        LIST("decimal 123456789012345678901234567890123456789012345678901234567890", "decimal -1"),
        NONE),
    COLUMN(LITE, "TEXT", LIST("decimal " DIGITS " => text " DIGITS, "decimal 19.90 => text 19.90"),
           NONE),
    COLUMN(LITE, "NUMERIC(10,2)",
           LIST("decimal 19.90 => decimal 19.9", "decimal 20", "decimal -0.5", "decimal 1e+300",
                "decimal -2.5e-07", "decimal 1e22 => decimal 1e+22"),
           LIST(WRONG_DECIMALS)),
    COLUMN(LITE, "NUMERIC",
           LIST("decimal 9223372036854775807",
                "decimal 123456789012345000000 => decimal 1.23456789012345e+20"),
           LIST("decimal 1e400", "decimal -1e400", "decimal 1e-400", "decimal 9223372036854775808",
                "decimal -18446744073709551616")),
    COLUMN(PG | LITE, "BOOLEAN", LIST("bool 1", "bool 0", "null"),
           LIST("text t", "real 1", "int 2")),
    COLUMN(MY, "BOOLEAN", LIST("bool 1 => int 1", "bool 0 => int 0", "null"),
           LIST("text t", "real 1")),
    /* texts and bytes */
    COLUMN(LITE, "TEXT", LIST(ANY_TEXT), LIST(WRONG_TEXTS)),
    COLUMN(PG, "TEXT", LIST(ANY_TEXT), LIST(WRONG_TEXTS, "text \xff", "text a\xc3")),
    COLUMN(PG | LITE | BY_SET, "TEXT", LIST(HOSTILE, FOX), NONE),
    COLUMN(MY, "TEXT CHARACTER SET utf8mb4", LIST(ANY_TEXT),
           LIST(WRONG_TEXTS, "text \xff", "text a\xc3")),
    COLUMN(MY | BY_SET, "TEXT CHARACTER SET utf8mb4", LIST(HOSTILE, FOX), NONE),
    COLUMN(PG | BY_SET, "VARCHAR(5)", LIST(FIVE), LIST("text 123456", "text a longer text")),
    COLUMN(MY | BY_SET, "VARCHAR(5) CHARACTER SET utf8mb4", LIST(FIVE),
           LIST("text 123456", "text a longer text")),
    COLUMN(PG, "CHAR(5)", LIST("text ab => text ab   ", "text abcde"),
           LIST("text 123456", "text a longer text")),
    COLUMN(MY, "CHAR(5)", LIST("text ab", "text abcde"), LIST("text 123456", "text a longer text")),
    COLUMN(PG | BY_SET, "BYTEA", LIST(BYTES), LIST("text a", "int 1", "decimal 1")),
    COLUMN(MY | BY_SET, "LONGBLOB", LIST(BYTES), LIST("text a", "int 1", "decimal 1")),
    COLUMN(LITE | BY_SET, "BLOB", LIST(BYTES), LIST("text a", "int 1", "decimal 1")),
    /* times */
    COLUMN(LITE, "DATETIME", LIST(TIMES), LIST("int 1", "bytes 2024-02-29", "decimal 1")),
    COLUMN(LITE, "TIMESTAMP", LIST("time " MOMENT "+02"), NONE),
    COLUMN(PG, "TIMESTAMP", LIST(TIMES), LIST(WRONG_TIMES, ZONES)),
    COLUMN(MY, "DATETIME(6)", LIST(TIMES), LIST(WRONG_TIMES, ZONES, INTERVALS)),
    COLUMN(MY, "TIMESTAMP(6)", LIST(TIMES), LIST(WRONG_TIMES, ZONES, INTERVALS)),
    COLUMN(MY, "DATE", LIST("time 2024-02-29"), LIST(INTERVALS)),
    COLUMN(PG, "TIMETZ", LIST("time 12:34:56+02", "time 12:34:56-00:30"), NONE),
    COLUMN(PG, "INTERVAL", LIST("time -26:00:00", "time 00:00:01"), NONE),
    COLUMN(MY, "TIME", LIST("time -26:00:00", "time 00:00:01"),
           LIST("time 12:34:56+02", "time 2024-02-29")),
    COLUMN(SERVERS | BY_SET, "DATE", LIST("time 2024-02-29", "time 1999-01-01"),
           LIST(WRONG_TIMES, ZONES)),
    COLUMN(PG, "TIME", LIST("time 12:34:56", "time 12:34:56.789012", "time 00:00:00.000001"),
           LIST("time 12:34:56+02", "time 12:34:56-00:30")),
    COLUMN(MY, "TIME(6)", LIST("time 12:34:56.789012", "time 00:00:00.000001"), NONE),
    COLUMN(PG | BY_SET, "TIMESTAMPTZ",
           LIST("time " MOMENT "+02 => ask SELECT timestamptz '" MOMENT "+02'"), LIST(WRONG_TIMES)),
    /* columns that only one database has */
    COLUMN(PG, "typ_mood", LIST("text glad", "text so, \"so\"", "null"),
           LIST("text word", "text {", "text ")),
    COLUMN(PG | BY_SET, "typ_even", LIST("int 2", "int -4"), LIST("int 3", "text 2")),
    COLUMN(PG | BY_SET, "typ_code", LIST("text a\\\"b", "text "), LIST("text abcde")),
    COLUMN(PG, "JSON", LIST("text {\"a\":  [1, null, \"x\\\"y\"]}", "text \"\\\\\""),
           LIST("text word", "text {", "text ")),
    COLUMN(PG, "JSONB",
           LIST("text {\"b\":1,\"a\":[null,\"\\\\\"]} => text {\"a\": [null, \"\\\\\"], \"b\": 1}"),
           LIST("text word", "text {", "text ")),
    COLUMN(PG, "UUID", LIST("text 12345678-9abc-def0-1234-56789abcdef0"),
           LIST("text word", "text {", "text ")),
    COLUMN(PG, "INT[]", LIST("text {1,NULL,3}", "text {}"), LIST("text word", "text {", "text ")),
    COLUMN(PG, "INET", LIST("text 10.0.0.0/8"), LIST("text word", "text {", "text ")),
    COLUMN(MY | BY_SET, "VARCHAR(50) CHARACTER SET latin1",
           LIST(HOSTILE, "text gr\xc3\xbc\xc3\x9f"), LIST("text \xce\xa9", FOX)),
    COLUMN(MY | BY_SET, "VARCHAR(50) CHARACTER SET utf8 COLLATE utf8_bin",
           LIST(HOSTILE, "text \xe2\x82\xac \xce\xa9"), LIST(FOX)),
    COLUMN(MY, "ENUM('glad', 'so, \"so\"')", LIST("text glad", "text so, \"so\"", "null"),
           LIST("text word")),
    COLUMN(MY, "SET('a', 'b', 'c')", LIST("text a,c", "text "), LIST("text word")),
    COLUMN(MY | BY_SET, "VARBINARY(4)", LIST("hex-bytes 6100ff", "bytes "), LIST("bytes 12345")),
    COLUMN(MY, "BINARY(4)", LIST("bytes a => hex-bytes 61000000"), LIST("bytes 12345")),
    COLUMN(MY, "YEAR", LIST("int 2024", "int 1999"), NONE),
    COLUMN(MY, "JSON", LIST("text {\"a\": [1, null, \"x\\\"y\"]}"), LIST("text {")),
    COLUMN(MY, "BIGINT UNSIGNED",
           LIST("decimal 18446744073709551615", "decimal 9223372036854775808",
                "int 9223372036854775807", "decimal 42 => int 42", "int 0"),
           LIST("int -1", "decimal 18446744073709551616", "decimal -1")),
    COLUMN(
        MY | BY_SET, "BIGINT UNSIGNED",
        LIST("decimal 18446744073709551615", "decimal 9223372036854775808", "decimal 42 => int 42"),
        LIST("decimal 1.5", "text 1")),
};

/* Types of our own, for PostgreSQL. */
static void own_types(const struct site *s, bool make)
{
    char ignored[200];
    s->c->raw->run(s->look, "DROP TABLE IF EXISTS typ_values", ignored, sizeof ignored);
    site_run(s, "DROP TYPE IF EXISTS typ_mood");
    site_run(s, "DROP DOMAIN IF EXISTS typ_even");
    site_run(s, "DROP DOMAIN IF EXISTS typ_code");
    if (!make)
        return;
    site_run(s, "CREATE TYPE typ_mood AS ENUM ('glad', 'so, \"so\"')");
    site_run(s, "CREATE DOMAIN typ_even AS int CHECK (VALUE %% 2 = 0)");
    site_run(s, "CREATE DOMAIN typ_code AS varchar(4)");
}

static void columns(const struct site *s)
{
    if (is_postgres(s->c))
        own_types(s, true);
    for (int i = 0; i < COUNT(trials); i++)
        if (trials[i].databases & database_of(s->c))
            try_column(s, &trials[i]);
    if (is_postgres(s->c))
        own_types(s, false);
}

struct key_trial {
    int databases;
    const char *type;
    const char *keys[3];
    const char *none; /* that no row has */
    const char *again; /* the first, in another spelling that the database takes for it; or NULL */
};

static void try_key(const struct site *s, const struct key_trial *k)
{
    rowlock_value keys[4];
    rowlock_change changes[4];
    stored = 0;
    for (int i = 0; i < 4; i++) {
        keys[i] = value_of(s, i < 3 ? k->keys[i] : k->none);
        changes[i] = (rowlock_change){.key = &keys[i], .version = FIRST};
    }
    site_table(s, "typ_keys", textf("k %s NOT NULL PRIMARY KEY, version BIGINT NOT NULL", k->type));
    rowlock_table *t =
        must_describe(s, TABLE(.name = "typ_keys", .key = NAMES("k"), .first_version = FIRST));
    is_result(s->db, rowlock_insert(t, changes, 3, NULL), ROWLOCK_OK, "%s: keys inserted", k->type);
    is_result(s->db, rowlock_touch(t, changes, 4, NULL), ROWLOCK_GONE, "all but one are there");
    rows_say(changes, 4, "OK, OK, OK, GONE", "and found by their keys");
    for (int i = 0; i < 4; i++)
        is_result(s->db, rowlock_touch(t, &changes[i], 1, NULL),
                  i < 3 ? ROWLOCK_STALE : ROWLOCK_GONE, "each by itself");
    is_result(s->db, rowlock_insert(t, changes, 3, NULL), ROWLOCK_EXISTS, "they are there");
    is_result(s->db, rowlock_insert(t, changes, 1, NULL), ROWLOCK_EXISTS, "each");
    if (k->again) {
        rowlock_value spelling = value_of(s, k->again);
        rowlock_change again = {.key = &spelling, .version = FIRST + 1};
        is_result(s->db, rowlock_expect(t, &again, 1, NULL), ROWLOCK_OK, "spelt otherwise");
        is_result(s->db, rowlock_insert(t, &again, 1, NULL), ROWLOCK_EXISTS, "it is the same");
    }
    for (int i = 0; i < 3; i++)
        changes[i].version = FIRST + 1;
    is_result(s->db, rowlock_remove(t, changes, 2, NULL), ROWLOCK_OK, "removed");
    is_result(s->db, rowlock_remove(t, &changes[2], 1, NULL), ROWLOCK_OK, "removed");
    site_finds(s, "0", "none is left", "SELECT count(*) FROM typ_keys");
    rowlock_table_close(t);
}

static const struct key_trial key_trials[] = {
    KEY(ALL, "BIGINT", LIST("int -9223372036854775808", "int 9223372036854775807", "int 0"),
        "int 1", NULL),
    KEY(ALL, "NUMERIC(12,2)", LIST("decimal 1.5", "decimal -1.25", "int 7"), "decimal 1.51",
        "decimal 1.50"),
    KEY(ALL, "DATE", LIST("time 2024-02-29", "time 1999-12-31", "time 2000-01-01"),
        "time 2024-02-28", NULL),
    KEY(PG | LITE, "VARCHAR(99)", LIST("text ", "text NULL", "text a,{}\"\\'\n"), "text null",
        NULL),
    KEY(SERVERS, "NUMERIC(60,0)",
        LIST("decimal 123456789012345678901234567890123456789012345678901234567890",
             "decimal 123456789012345678901234567890123456789012345678901234567891", "decimal 0"),
        "decimal 123456789012345678901234567890123456789012345678901234567892", NULL),
    KEY(MY, "VARCHAR(99) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        LIST("text ", "text NULL", "text a,{}\"\\'\n"), "text null", NULL),
    KEY(MY, "VARCHAR(20) CHARACTER SET latin1",
        LIST("text a", "text gr\xc3\xbc\xc3\x9f", "text it's \\"), "text o", "text A"),
    KEY(MY, "VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin",
        LIST("text a", "text A", "text \xc3\xbc"), "text ?", NULL),
    KEY(MY, "VARCHAR(20) CHARACTER SET utf8", LIST("text a", "text \xe2\x82\xac", "text {\"}"),
        "text o", "text A"),
    KEY(MY, "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", LIST("text a", "text A", FOX),
        "text \xf0\x9f\x98\x81", NULL),
    KEY(MY, "VARCHAR(20) CHARACTER SET ascii", LIST("text a", "text b", "text "), "text o",
        "text A"),
    KEY(MY, "VARBINARY(20)", LIST("bytes a", "bytes A", "hex-bytes 00ff"), "bytes ", NULL),
    KEY(MY, "ENUM('a', 'b', 'c')", LIST("text a", "text b", "text c"), "text d", NULL),
    KEY(MY, "DATETIME(6)",
        LIST("time " MOMENT, "time 2024-02-29 12:34:56.789013", "time 2024-02-29 00:00:00"),
        "time 2024-02-29 00:00:00.000001", NULL),
    KEY(MY, "BIGINT UNSIGNED", LIST("int 0", "int 9223372036854775807", "int 1"), "int 2", NULL),
    KEY(MY, "BIGINT UNSIGNED",
        LIST("decimal 18446744073709551615", "decimal 9223372036854775808", "int 5"), "int -5",
        NULL),
    KEY(PG, "CHAR(5)", LIST("text a", "text A", "text it's"), "text b", "text a "),
    KEY(PG, "UUID",
        LIST("text 12345678-9abc-def0-1234-56789abcdef0",
             "text 12345678-9abc-def0-1234-56789abcdef1",
             "text 12345678-9abc-def0-1234-56789abcdef2"),
        "text 00000000-9abc-def0-1234-56789abcdef0", "text {12345678-9ABC-def0-1234-56789abcdef0}"),
    KEY(PG, "TIMESTAMPTZ",
        LIST("time " MOMENT "+00", "time 2024-02-29 12:00:00+00", "time 1999-02-28 12:00:00+00"),
        "time 2024-02-29 12:34:56.789013+00", "time 2024-02-29 13:34:56.789012+01"),
    KEY(PG, "VARCHAR(20)", LIST("text a", "text A", "text {\"\\,}"), "text a ", NULL),
    KEY(PG, "BYTEA", LIST("bytes a", "bytes ", "hex-bytes 00ff"), "bytes b", NULL),
    KEY(PG, "SMALLINT", LIST("int 1", "int 32767", "int -32768"), "int 2", NULL),
};

/* No row has a key of characters that its column does not know, not even a row which has question
 * marks in their place. */
static void unknown_characters(const struct site *s)
{
    rowlock_value known = rowlock_text("a"), unknown = rowlock_text("\xce\xa9");
    site_table(s, "typ_keys",
               "k VARCHAR(20) CHARACTER SET latin1 NOT NULL PRIMARY KEY, version BIGINT NOT NULL");
    site_run(s, "INSERT INTO typ_keys VALUES ('a', 1), ('?', 1)");
    OWNED(table) rowlock_table *t = must_describe(s, TABLE(.name = "typ_keys", .key = NAMES("k")));
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
    site_finds(s, "0", "though it looks like a number",
               "SELECT count(*) FROM typ_keys WHERE k NOT IN ('a', '?')");
}

static void keys(const struct site *s)
{
    for (int i = 0; i < COUNT(key_trials); i++)
        if (key_trials[i].databases & database_of(s->c))
            try_key(s, &key_trials[i]);
    if (is_mysql(s->c))
        unknown_characters(s);
}

/* On a connection of our own, and on one of the application's. */
void contract_types(const struct contract *c)
{
    for (int adopted = 0; adopted <= 1; adopted++) {
        OWNED(site) struct site s = adopted ? site_adopt(c) : site_open(c);
        columns(&s);
        keys(&s);
    }
}
