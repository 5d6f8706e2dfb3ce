/* SPDX-License-Identifier: MIT
 *
 * From templates, names and shapes to statements: what each placeholder becomes, in each dialect. Whether
 * a database understands the statements is in the contract tests.
 */
#include "backend_script.h"
#include "rows/rows.h"
#include "tap.h"

#include <stdio.h>
#include <string.h>

enum { MOST_KEYS = 3 };

static const char *const dialects[] = {"postgres", "mysql", "sqlite"};
enum { DIALECTS = sizeof dialects / sizeof dialects[0] };

#define PATTERNS(wire_) \
    .wire = (wire_), .unpack = "U(%)", .value = "V(%)", .match = "M(%, %)", .show = "S(%)"

static const struct script_column described[] = {
    {.name = "a", .category = "int", .uniques = "one/1 two/2 pk/3", PATTERNS("WA")},
    {.name = "b", .category = "text", .uniques = "two/2 pk/3", PATTERNS("WB")},
    {.name = "c%", .category = "bytes", .uniques = "pk/3", PATTERNS("WC")},
    {.name = "x", .category = "decimal", PATTERNS("WX")},
    {.name = "y {set} \"`%s", .category = "text", PATTERNS("WY")},
    {.name = "ver sion", .category = "int", .most = 99},
    {.name = NULL},
};

static rowlock_db *db;
static rowlock_table *table;

static void open_table(const char *dialect, size_t keys, const char *set)
{
    const char *key[MOST_KEYS + 1] = {"a", "b", "c%"};
    const char *const columns[] = {"x", "y {set} \"`%s", NULL};
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    script_reset();
    script_dialect(dialect);
    script.columns = described;
    db = script_open(NULL);
    key[keys] = NULL;
    about.schema = "my place";
    about.name = "we\"ird `{set} %s";
    about.key = key;
    about.columns = columns;
    about.version = "ver sion";
    about.set = set;
    if (rowlock_table_open(db, &about, &table) != ROWLOCK_OK)
        tap_ok(false, "a table is opened: %s", db->error.text);
}

static void close_table(void)
{
    rowlock_table_close(table);
    rowlock_db_close(db);
}

static const char *describe_params(const struct rlk_text *text)
{
    static const char letters[] = {
        [RLK_FROM_KEY] = 'k',   [RLK_FROM_VALUE] = 'v',  [RLK_FROM_EXPECTED] = 'e',
        [RLK_FROM_FIRST] = 'f', [RLK_FROM_PACK] = 'p',   [RLK_FROM_TAG] = 't',
        [RLK_FROM_LIMIT] = 'l', [RLK_FROM_SCHEMA] = 's', [RLK_FROM_NAME] = 'n'};
    static char out[400];
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < text->count && used < sizeof out; i++)
        used += (size_t)snprintf(out + used, sizeof out - used, "%s%c%zu", i ? " " : "",
                                 letters[text->params[i].source], text->params[i].index);
    return out;
}

/* The template takes the place of the step's own. */
static const struct rlk_text *compose(const char *template, const struct rlk_shape *shape)
{
    rlk_free(db->texts.sql[shape->step]);
    db->texts.sql[shape->step] = rlk_strdup(template);
    return rlk_compose(table, shape);
}

static void becomes(const char *template, const struct rlk_shape *shape, const char *sql,
                    const char *params)
{
    const struct rlk_text *text = compose(template, shape);
    tap_is_str(text->sql, sql, "%s", template);
    tap_is_str(describe_params(text), params, "its parameters");
}

/* ---- names */

static const struct rlk_shape plain = {.step = RLK_STEP_ROW_READ};

static void test_names(void)
{
    open_table("postgres", 3, NULL);
    becomes("{table}", &plain, "\"my place\".\"we\"\"ird `{set} %s\"", "");
    close_table();
    open_table("sqlite", 3, NULL);
    becomes("{version}/{key}/{order}", &plain,
            "\"ver sion\"/\"a\", \"b\", \"c%\"/t.\"a\", t.\"b\", t.\"c%\"", "");
    close_table();
    open_table("sqlite", 1, NULL);
    becomes("({columns}{version})", &plain, "(\"a\", \"x\", \"y {set} \"\"`%s\", \"ver sion\")",
            "");
    close_table();
    open_table("mysql", 1, NULL);
    becomes("{table} ({columns}{version})", &plain,
            "`my place`.`we\"ird ``{set} %s` (`a`, `x`, `y {set} \"``%s`, `ver sion`)", "");
    close_table();
    open_table("sqlite", 3, NULL);
    becomes("{shown}*", &plain,
            "S(t.\"a\"), S(t.\"b\"), S(t.\"c%\"), S(t.\"x\"), S(t.\"y {set} \"\"`%s\"), *", "");
    close_table();
    open_table("postgres", 1, NULL);
    becomes("no such {placeholder} stays", &plain, "no such  stays", "");
    becomes("", &(struct rlk_shape){.step = RLK_STEP_ROW_REMOVE}, "", "");
    close_table();
}

static void test_without_columns(void)
{
    const char *const key[] = {"a", NULL};
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    const struct rlk_shape sets = {.step = RLK_STEP_ROW_UPDATE, .sets = true};
    script_reset();
    script.columns = described;
    db = script_open(NULL);
    about.name = "t";
    about.key = key;
    about.version = "ver sion";
    tap_is_int(rowlock_table_open(db, &about, &table), ROWLOCK_OK, "a table without columns");
    becomes("{table}:{set}*", &sets, "\"t\":*", "");
    becomes("{columns}*", &plain, "\"a\", *", "");
    close_table();
}

static void test_quote(void)
{
    char *quoted = rlk_quote("", '"');
    tap_is_str(quoted, "\"\"", "an empty name");
    rlk_free(quoted);
    quoted = rlk_quote("``a`", '`');
    tap_is_str(quoted, "`````a```", "quotes are doubled");
    rlk_free(quoted);
}

/* ---- values */

static void test_one_row(void)
{
    const struct rlk_shape update = {.step = RLK_STEP_ROW_UPDATE, .sets = true};
    const struct rlk_shape touch = {.step = RLK_STEP_ROW_UPDATE};
    const struct rlk_shape insert = {.step = RLK_STEP_ROW_INSERT, .sets = true};
    open_table("postgres", 2, NULL);
    becomes("{set}{version} WHERE {match} AND {expected}", &update,
            "\"x\" = V($1), \"y {set} \"\"`%s\" = V($2), \"ver sion\" WHERE "
            "t.\"a\" = M($3, $4) AND t.\"b\" = M($5, $6) AND $7",
            "v0 v1 k0 k0 k1 k1 e0");
    becomes("{set}{version} WHERE {match}", &touch,
            "\"ver sion\" WHERE t.\"a\" = M($1, $2) AND t.\"b\" = M($3, $4)", "k0 k0 k1 k1");
    becomes("{given}{first}|{limit}|{tag}", &insert, "V($1), V($2), V($3), V($4), $5|$6|$7",
            "k0 k1 v0 v1 f0 l0 t0");
    close_table();
    open_table("mysql", 1, NULL);
    becomes("{set}{version} WHERE {match} AND {expected}", &update,
            "`x` = V(?), `y {set} \"``%s` = V(?), `ver sion` WHERE t.`a` = M(?, ?) AND ?",
            "v0 v1 k0 k0 e0");
    close_table();
}

static void test_after(void)
{
    const struct rlk_shape behind = {.step = RLK_STEP_ROWS_PAGE, .after = true};
    const struct rlk_shape from_start = {.step = RLK_STEP_ROWS_PAGE};
    open_table("sqlite", 1, NULL);
    becomes("{after} LIMIT {limit}", &behind, "WHERE t.\"a\" > M(?, ?) LIMIT ?", "k0 k0 l0");
    becomes("{after} LIMIT {limit}", &from_start, " LIMIT ?", "l0");
    close_table();
    open_table("postgres", 2, NULL);
    becomes("{after}", &behind,
            "WHERE t.\"a\" >= M($1, $2) AND (t.\"a\" > M($3, $4) OR (t.\"b\" > M($5, $6)))",
            "k0 k0 k0 k0 k1 k1");
    close_table();
    open_table("sqlite", 3, NULL);
    becomes("{after}", &behind,
            "WHERE t.\"a\" >= M(?, ?) AND (t.\"a\" > M(?, ?) OR (t.\"b\" >= M(?, ?) AND "
            "(t.\"b\" > M(?, ?) OR (t.\"c%\" > M(?, ?)))))",
            "k0 k0 k0 k0 k1 k1 k1 k1 k2 k2");
    close_table();
}

static void test_lock(void)
{
    struct rlk_shape shape = plain;
    open_table("sqlite", 1, NULL);
    becomes("[{lock:FOR SHARE OF t|FOR UPDATE}]", &shape, "[]", "");
    shape.keep = RLK_KEEP_AS_IT_IS;
    becomes("[{lock:FOR SHARE OF t|FOR UPDATE}]", &shape, "[FOR SHARE OF t]", "");
    shape.keep = RLK_KEEP_TO_CHANGE;
    becomes("[{lock:FOR SHARE OF t|FOR UPDATE}]", &shape, "[FOR UPDATE]", "");
    close_table();
}

/* ---- many rows */

static void test_arrays(void)
{
    const struct rlk_shape update = {.step = RLK_STEP_ROWS_UPDATE, .sets = true};
    const struct rlk_shape insert = {.step = RLK_STEP_ROWS_INSERT, .sets = true};
    const struct rlk_shape find = {.step = RLK_STEP_ROWS_FIND};
    open_table("postgres", 2, NULL);
    becomes("{arrays}|{names}|{match}|{set}*", &update,
            "$1::WA[], $2::WB[], $3::int[], $4::WX[], $5::WY[]|"
            "rlk_k1, rlk_k2, rlk_ver, rlk_c1, rlk_c2|"
            "t.\"a\" = M(U(v.rlk_k1), U(v.rlk_k1)) AND t.\"b\" = M(U(v.rlk_k2), U(v.rlk_k2))|"
            "\"x\" = V(U(v.rlk_c1)), \"y {set} \"\"`%s\" = V(U(v.rlk_c2)), *",
            "p0 p1 p2 p3 p4");
    becomes("{arrays}|{names}|{given}{first}|{keys}", &insert,
            "$1::WA[], $2::WB[], $3::WX[], $4::WY[]|rlk_k1, rlk_k2, rlk_c1, rlk_c2|"
            "V(U(v.rlk_k1)), V(U(v.rlk_k2)), V(U(v.rlk_c1)), V(U(v.rlk_c2)), $5|"
            "M(U(v.rlk_k1), U(v.rlk_k1)), M(U(v.rlk_k2), U(v.rlk_k2))",
            "p0 p1 p2 p3 f0");
    becomes("{arrays}|{names}", &find, "$1::WA[], $2::WB[], $3::int[]|rlk_k1, rlk_k2, rlk_ver",
            "p0 p1 p2");
    close_table();
}

static void test_json(void)
{
    const struct rlk_shape update = {.step = RLK_STEP_ROWS_UPDATE, .sets = true};
    const struct rlk_shape insert = {.step = RLK_STEP_ROWS_INSERT, .sets = true};
    open_table("mysql", 2, NULL);
    becomes("{tag} {pack} n{paths}", &update,
            "? ? n, rlk_k1 WA PATH '$[0]', rlk_k2 WB PATH '$[1]', rlk_ver int PATH '$[2]', "
            "rlk_c1 WX PATH '$[3]', rlk_c2 WY PATH '$[4]'",
            "t0 p0");
    becomes("{pack} n{paths}", &insert,
            "? n, rlk_k1 WA PATH '$[0]', rlk_k2 WB PATH '$[1]', rlk_c1 WX PATH '$[2]', "
            "rlk_c2 WY PATH '$[3]'",
            "p0");
    close_table();
}

/* ---- the caller's own SQL */

static void sets(const char *dialect, enum rlk_step step, const char *set,
                 const rowlock_kind *kinds, const char *sql, const char *params)
{
    open_table(dialect, 1, set);
    const struct rlk_shape shape = {.step = step, .sets = true, .kinds = kinds};
    const struct rlk_text *text = compose("{set}*", &shape);
    tap_is_str(text->sql, sql, "%s: %s", dialect, set);
    tap_is_str(describe_params(text), params, "its parameters");
    close_table();
}

static void test_own_sql(void)
{
    static const rowlock_kind kinds[] = {ROWLOCK_INT, ROWLOCK_NULL, ROWLOCK_TEXT};
    const enum rlk_step one = RLK_STEP_ROW_UPDATE, many = RLK_STEP_ROWS_UPDATE;
    sets("postgres", one, "n = n - ?, m = ?, s = ?", kinds, "n = n - $1, m = NULL, s = $2\n, *",
         "v0 v2");
    sets("mysql", one, "n = n - ?, m = ?, s = ?", kinds, "n = n - ?, m = NULL, s = ?\n, *",
         "v0 v2");
    sets("postgres", many, "n = n - ?, m = ?, s = ?", kinds,
         "n = n - v.rlk_c1, m = NULL, s = v.rlk_c3\n, *", "");
    sets("postgres", one, "j = j ?? 'k' AND k ??| ?", kinds, "j = j ? 'k' AND k ?| $1\n, *", "v0");
    sets("postgres", one, "n = ???", kinds, "n = ?$1\n, *", "v0");
    sets("postgres", one,
         "a = '?', \"b?\" = 'it''s ?"
         "?', n = ?",
         kinds,
         "a = '?', \"b?\" = 'it''s ?"
         "?', n = $1\n, *",
         "v0");
    sets("postgres", one, "a = '\\', n = ?, b = '?'", kinds, "a = '\\', n = $1, b = '?'\n, *",
         "v0");
    sets("mysql", one, "a = 'it\\'s ?', `b?` = \"\\\"?\", n = ?", kinds,
         "a = 'it\\'s ?', `b?` = \"\\\"?\", n = ?\n, *", "v0");
    sets("sqlite", one, "n = ?, -- why?\n s = 'x' /* ? */ -- ?", kinds,
         "n = ?, -- why?\n s = 'x' /* ? */ -- ?\n, *", "v0");
    sets("sqlite", one, "n = 'x?", kinds, "n = 'x?\n, *", "");
    sets("mysql", one, "n = 'x?\\", kinds, "n = 'x?\\\n, *", "");
    sets("sqlite", one, "a = {table} || '{key}'", kinds, "a = {table} || '{key}'\n, *", "");
}

static void test_counting(void)
{
    tap_is_int((long long)rlk_count_parameters("", false), 0, "no SQL, no parameter");
    tap_is_int((long long)rlk_count_parameters("a = ?, b = ?", false), 2, "two of them");
    tap_is_int((long long)rlk_count_parameters("a = ????? + '?' -- ?", true), 1,
               "two question marks, and a third");
    tap_is_int((long long)rlk_count_parameters("a = '\\' + ? + '?'", true), 1,
               "a backslash hides a quote on MySQL");
    tap_is_int((long long)rlk_count_parameters("a = '\\' + ? + '?'", false), 1, "and nowhere else");
    tap_is_int((long long)rlk_count_parameters("a = 7 - ? / ? * ?", false), 3,
               "signs that begin no comment");
}

/* ---- texts are kept */

static void test_kept(void)
{
    static const rowlock_kind texts[] = {ROWLOCK_TEXT}, ints[] = {ROWLOCK_INT};
    struct rlk_shape shape = {.step = RLK_STEP_ROW_UPDATE, .sets = true, .kinds = texts};
    open_table("postgres", 1, "n = ?");
    const struct rlk_text *first = rlk_compose(table, &shape);
    rowlock_kind same[] = {ROWLOCK_TEXT};
    shape.kinds = same;
    tap_ok(rlk_compose(table, &shape) == first, "the same shape has the same text");
    same[0] = ROWLOCK_INT;
    tap_ok(rlk_compose(table, &shape) != first, "another kind has another");
    shape.kinds = ints;
    const struct rlk_text *second = rlk_compose(table, &shape);
    tap_ok(second != first && second->id != first->id && second->id != 0 && first->id != 0,
           "and an identity of its own");
    shape = (struct rlk_shape){.step = RLK_STEP_ROW_READ};
    uint64_t unlocked = rlk_compose(table, &shape)->id;
    shape.keep = RLK_KEEP_TO_CHANGE;
    uint64_t locked = rlk_compose(table, &shape)->id;
    tap_ok(unlocked != locked, "so has a lock");
    tap_is_int((long long)rlk_compose(table, &shape)->id, (long long)locked, "which is kept too");
    close_table();
    open_table("postgres", 1, "n = ?");
    shape = (struct rlk_shape){.step = RLK_STEP_ROW_READ};
    tap_ok(rlk_compose(table, &shape)->id > locked, "no identity is given twice");
    close_table();
}

static void test_plain(void)
{
    struct rlk_text text;
    script_reset();
    script_dialect("postgres");
    db = script_open(NULL);
    tap_is_int(rlk_compose_plain(db, "{schema} {name} {schema}", &text), ROWLOCK_OK,
               "a statement about a table that is not described yet");
    tap_is_str(text.sql, "$1 $2 $3", "its parameters are numbered");
    tap_is_str(describe_params(&text), "s0 n0 s0", "each where it stands");
    rlk_text_clear(&text);
    rowlock_db_close(db);
}

/* ---- what stands in sql/ */

/* Braces of ours are gone, and parentheses come in pairs; names and texts in quotes left out. */
static bool is_whole(const char *sql)
{
    int open = 0;
    for (const char *at = sql; *at && open >= 0; at++) {
        if (strchr("'\"`", *at)) {
            at = strchr(at + 1, *at);
            if (!at)
                return false;
        } else if (*at == '{' || *at == '}') {
            return false;
        } else if (*at == '(' || *at == ')') {
            open += *at == '(' ? 1 : -1;
        }
    }
    return open == 0;
}

/* As many markers as parameters, and with numbers 1, 2, 3, … */
static bool has_markers(const char *sql, size_t count, char marker)
{
    size_t met = 0;
    for (const char *at = strstr(sql, "*/"); *at; at++) {
        if (strchr("'\"`", *at)) {
            at = strchr(at + 1, *at);
        } else if (*at == marker) {
            char number[24];
            snprintf(number, sizeof number, "%zu", ++met);
            if (marker == '$' && strncmp(at + 1, number, strlen(number)) != 0)
                return false;
        }
    }
    return met == count;
}

static bool is_given(enum rlk_step step)
{
    return step == RLK_STEP_ROW_UPDATE || step == RLK_STEP_ROW_INSERT ||
           step == RLK_STEP_ROWS_UPDATE || step == RLK_STEP_ROWS_INSERT;
}

static void check_real(const char *dialect, const struct rlk_shape *shape)
{
    if (!db->texts.sql[shape->step])
        return;
    const struct rlk_text *text = rlk_compose(table, shape);
    tap_ok(is_whole(text->sql), "%s, step %d: it is filled in: %s", dialect, (int)shape->step,
           text->sql);
    tap_ok(has_markers(text->sql, text->count, db->backend->marker),
           "each of its %zu parameters has a marker", text->count);
    if (shape->step != RLK_STEP_ROWS_MARKED)
        tap_ok(strstr(text->sql, table->name) != NULL, "it names the table");
}

static void test_real(void)
{
    for (int d = 0; d < DIALECTS; d++)
        for (size_t keys = 1; keys <= MOST_KEYS; keys++) {
            static const rowlock_kind kinds[] = {ROWLOCK_TEXT, ROWLOCK_NULL};
            open_table(dialects[d], keys, "x = ?, y = ?");
            for (int step = RLK_STEP_ROW_UPDATE; step <= RLK_STEP_ROWS_COUNT; step++)
                for (int variant = 0; variant < 6; variant++) {
                    struct rlk_shape shape = {.step = (enum rlk_step)step,
                                              .sets = is_given((enum rlk_step)step) && variant < 4,
                                              .after = variant % 2,
                                              .keep = (enum rlk_keep)(variant % 3)};
                    bool update = step == RLK_STEP_ROW_UPDATE || step == RLK_STEP_ROWS_UPDATE;
                    shape.kinds = update && variant < 2 ? kinds : NULL;
                    check_real(dialects[d], &shape);
                }
            close_table();
        }
}

int main(void)
{
    script_home("sqlite");
    test_names();
    test_without_columns();
    test_quote();
    test_one_row();
    test_after();
    test_lock();
    test_arrays();
    test_json();
    test_own_sql();
    test_counting();
    test_kept();
    test_plain();
    test_real();
    return tap_done();
}
