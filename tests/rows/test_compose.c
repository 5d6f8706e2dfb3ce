/* SPDX-License-Identifier: MIT
 *
 * From templates, names and shapes to statements: the caller's own SQL, and which statements are
 * kept. That each template of sql/ is filled in is shown by the databases, which run them. */
#include "backend_script.h"
#include "rows/rows.h"

#define PATTERNS(wire_) \
    .wire = (wire_), .unpack = "U(%)", .value = "V(%)", .match = "M(%, %)", .show = "S(%)"

static const struct script_column described[] = {
    {.name = "a", .category = "int", .uniques = "one/1", PATTERNS("WA")},
    {.name = "x", .category = "decimal", PATTERNS("WX")},
    {.name = "y {set} \"`%s", .category = "text", PATTERNS("WY")},
    {.name = "ver sion", .category = "int", .most = 99},
    {.name = NULL},
};

static rowlock_db *db;
static rowlock_table *table;

static void open_shape(const char *dialect, const char *set)
{
    static const char *const key[] = {"a", NULL};
    const char *const columns[] = {"x", "y {set} \"`%s", NULL};
    script_reset();
    script_dialect(dialect);
    script.columns = described;
    db = script_open(NULL);
    rowlock_table_options about = *OPTIONS(table, .schema = "my place", .columns = columns,
                                           .version = "ver sion", .set = set);
    if (rowlock_table_open(db, "we\"ird `{set} %s", key, &about, &table) != ROWLOCK_OK)
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

#define QUOTES                   \
    "a = '?', \"b?\" = 'it''s ?" \
    "?', n = "

static void test_own_sql(void)
{
    static const rowlock_kind kinds[] = {ROWLOCK_INT, ROWLOCK_NULL, ROWLOCK_TEXT};
    const struct {
        const char *dialect, *set, *sql, *params;
        bool many;
    } all[] = {
        {"postgres", "n = n - ?, m = ?, s = ?", "n = n - $1, m = NULL, s = $2", "v0 v2", false},
        {"mysql", "n = n - ?, m = ?, s = ?", "n = n - ?, m = NULL, s = ?", "v0 v2", false},
        {"postgres", "n = n - ?, m = ?, s = ?", "n = n - v.rlk_c1, m = NULL, s = v.rlk_c3", "",
         true},
        {"postgres", "j = j ?? 'k' AND k ??| ?", "j = j ? 'k' AND k ?| $1", "v0", false},
        {"postgres", "n = ???", "n = ?$1", "v0", false},
        {"postgres", QUOTES "?", QUOTES "$1", "v0", false},
        {"postgres", "a = '\\', n = ?, b = '?'", "a = '\\', n = $1, b = '?'", "v0", false},
        {"mysql", "a = 'it\\'s ?', `b?` = \"\\\"?\", n = ?",
         "a = 'it\\'s ?', `b?` = \"\\\"?\", n = ?", "v0", false},
        {"sqlite", "n = ?, -- why?\n s = 'x' /* ? */ -- ?", "n = ?, -- why?\n s = 'x' /* ? */ -- ?",
         "v0", false},
        {"sqlite", "n = 'x?", "n = 'x?", "", false},
        {"mysql", "n = 'x?\\", "n = 'x?\\", "", false},
        {"sqlite", "a = {table} || '{key}'", "a = {table} || '{key}'", "", false},
    };
    for (size_t i = 0; i < COUNT(all); i++) {
        const struct rlk_shape shape = {.step = all[i].many ? RLK_STEP_ROWS_UPDATE
                                                            : RLK_STEP_ROW_UPDATE,
                                        .sets = true,
                                        .kinds = kinds};
        open_shape(all[i].dialect, all[i].set);
        const struct rlk_text *text = compose("{set}*", &shape);
        tap_is_str(text->sql, textf("%s\n, *", all[i].sql), "%s: %s", all[i].dialect, all[i].set);
        tap_is_str(describe_params(text), all[i].params, "its parameters");
        close_table();
    }
}

static void test_counting(void)
{
    tap_is_int((long long)rlk_count_parameters("", false), 0, "no SQL, no parameter");
    tap_is_int((long long)rlk_count_parameters("a = ????? + '?' -- ?", true), 1,
               "two question marks, and a third");
    tap_is_int((long long)rlk_count_parameters("a = '\\' + ? + '?'", true), 1,
               "a backslash hides a quote on MySQL");
    tap_is_int((long long)rlk_count_parameters("a = '\\' + ? + '?'", false), 1, "and nowhere else");
    tap_is_int((long long)rlk_count_parameters("a = 7 - ? / ? * ?", false), 3,
               "signs that begin no comment");
}

static void test_kept(void)
{
    static const rowlock_kind texts[] = {ROWLOCK_TEXT}, ints[] = {ROWLOCK_INT};
    struct rlk_shape shape = {.step = RLK_STEP_ROW_UPDATE, .sets = true, .kinds = texts};
    open_shape("postgres", "n = ?");
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
    shape.lock = RLK_LOCK_TO_CHANGE;
    uint64_t locked = rlk_compose(table, &shape)->id;
    tap_ok(unlocked != locked, "so has a lock");
    tap_is_int((long long)rlk_compose(table, &shape)->id, (long long)locked, "which is kept too");
    close_table();
    open_shape("postgres", "n = ?");
    shape = (struct rlk_shape){.step = RLK_STEP_ROW_READ};
    tap_ok(rlk_compose(table, &shape)->id > locked, "no identity is given twice");
    close_table();
}

int main(void)
{
    script_home("sqlite");
    test_own_sql();
    test_counting();
    test_kept();
    return tap_done();
}
