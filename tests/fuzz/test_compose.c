/* SPDX-License-Identifier: MIT
 *
 * Statements with names and SQL of the caller's that are of any bytes. The input is a byte for the dialect,
 * and a name and a SET with a zero byte between them. */
#include "backend_script.h"
#include "fuzz.h"
#include "rows/rows.h"

enum { PARAMETERS_MAX = 64 };

/* A name is found again between the quotes, and nothing behind them. */
static void check_quote(const char *name, char quote)
{
    char *quoted = rlk_quote(name, quote);
    const char *at = quoted + 1;
    fuzz_must(quoted && quoted[0] == quote);
    for (; *name; name++, at++) {
        fuzz_must(*at == *name);
        if (*name == quote)
            fuzz_must(*++at == quote);
    }
    fuzz_must(at[0] == quote && at[1] == '\0');
    rlk_free(quoted);
}

static size_t count_values(const struct rlk_text *text)
{
    size_t count = 0;
    for (size_t i = 0; i < text->count; i++)
        count += text->params[i].source == RLK_FROM_VALUE;
    return count;
}

static void compose_update(rowlock_table *table, char quote, const char *set)
{
    rowlock_kind kinds[PARAMETERS_MAX];
    struct rlk_shape shape = {.step = RLK_STEP_ROW_UPDATE, .sets = true};
    if (set && table->parameters > PARAMETERS_MAX)
        return;
    for (size_t i = 0; i < PARAMETERS_MAX; i++)
        kinds[i] = ROWLOCK_INT;
    shape.kinds = set ? kinds : NULL;
    fuzz_must(!set || table->parameters == rlk_count_parameters(set, quote == '`'));
    const struct rlk_text *text = rlk_compose(table, &shape);
    fuzz_must(text && count_values(text) >= (set ? table->parameters : table->columns));
}

static void open_and_compose(rowlock_db *db, char quote, const char *name, const char *set)
{
    static const char *const columns[] = {"price", "note", NULL};
    static const char *const key[] = {"id", NULL};
    OWNED(table) rowlock_table *table = NULL;
    if (rowlock_table_open(db, name, key, OPTIONS(table, .columns = columns, .set = set), &table) !=
        ROWLOCK_OK)
        return;
    compose_update(table, quote, set);
    const struct rlk_shape page = {.step = RLK_STEP_ROWS_PAGE, .after = true};
    fuzz_must(rlk_compose(table, &page));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const dialects[] = {"postgres", "mysql", "sqlite"};
    struct fuzz_input in = {data, size};
    uint8_t dialect = fuzz_byte(&in) % 3;
    char quote = dialect == 1 ? '`' : '"';
    OWNED(text) char *name = fuzz_text(in.at, in.left);
    size_t length = strlen(name);
    OWNED(text) char *set = NULL;
    if (length < in.left)
        set = fuzz_text(in.at + length + 1, in.left - length - 1);
    script_reset();
    script_dialect(dialects[dialect]);
    OWNED(db) rowlock_db *db = script_open(NULL);
    check_quote(name, quote);
    rlk_ends_comments(name, quote == '`');
    open_and_compose(db, quote, name, NULL);
    if (set)
        open_and_compose(db, quote, name, set);
    return 0;
}
