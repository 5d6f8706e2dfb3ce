/* SPDX-License-Identifier: MIT
 *
 * Rows of any values, packed as arrays and as JSON: no value gets out of its quotes.
 * The input is a byte for the packing, then for each value one for its kind, one for its length or number,
 * and its text. */
#include "fuzz.h"
#include "rows/rows.h"

enum { COLUMNS = 8, ROWS_MAX = 8 };

static struct rlk_driver backend;
static rowlock_db db = {.driver = &backend};
static struct rlk_column all[1 + COLUMNS + 1];
static rowlock_table table = {.db = &db, .all = all, .keys = 1, .columns = COLUMNS};

static void describe(void)
{
    static const rowlock_kind kinds[] = {ROWLOCK_INT,   ROWLOCK_INT,     ROWLOCK_REAL, ROWLOCK_TEXT,
                                         ROWLOCK_BYTES, ROWLOCK_DECIMAL, ROWLOCK_BOOL, ROWLOCK_TIME,
                                         ROWLOCK_INT,   ROWLOCK_INT};
    static char name[] = "\"c\"";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        all[i] = (struct rlk_column){.name = name, .kind = kinds[i], .is_wide = i == COLUMNS};
    for (int kind = 0; kind < RLK_KINDS; kind++)
        table.kind[kind].kind = (rowlock_kind)kind;
}

/* Texts stay in the input, with no terminator behind them. */
static rowlock_value take(struct fuzz_input *in)
{
    rowlock_value value = {.kind = fuzz_byte(in) % (RLK_KINDS + 1)};
    uint8_t number = fuzz_byte(in);
    value.number = (int8_t)number;
    value.real = (int8_t)number / 3.0;
    if (value.kind == ROWLOCK_INT || value.kind == ROWLOCK_REAL || value.kind == ROWLOCK_BOOL)
        return value;
    value.length = number < in->left ? number : in->left;
    value.text = (const char *)in->at;
    in->at += value.length;
    in->left -= value.length;
    return value;
}

/* Outside of quotes there are only numbers, NULL, true and false, commas and brackets. */
static void check(const struct rlk_buffer *part, bool json)
{
    bool quoted = false;
    for (size_t i = 0; i < part->length; i++) {
        char c = part->text[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (quoted)
            fuzz_must(!json || (unsigned char)c >= ' ');
        else
            fuzz_must(c && strchr(json ? "[],0123456789.e+-nul" : "{},0123456789.e+-NULtf", c));
    }
    fuzz_must(!quoted && part->length > 0);
}

static bool accepts(rowlock_value *values)
{
    for (size_t i = 0; i < 1 + COLUMNS; i++)
        if (rlk_check_value(&db, &all[i], &values[i], 1) != ROWLOCK_OK)
            values[i] = (rowlock_value){.kind = ROWLOCK_NULL};
    return rlk_check_key(&table, values, 0, 1) == ROWLOCK_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t order[ROWS_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct fuzz_input in = {data, size};
    rowlock_value values[ROWS_MAX][1 + COLUMNS];
    rowlock_change changes[ROWS_MAX];
    size_t rows = 0;
    if (!all[0].name)
        describe();
    uint8_t how = fuzz_byte(&in);
    backend.packing = how & 1 ? RLK_JSON : RLK_ARRAYS;
    for (size_t at = 0; at < ROWS_MAX && in.left > 0; at++) {
        for (size_t i = 0; i < 1 + COLUMNS; i++)
            values[rows][i] = take(&in);
        changes[rows] =
            (rowlock_change){.key = values[rows], .values = values[rows] + 1, .version = 3};
        rows += accepts(values[rows]);
    }
    const struct rlk_shape shape = {.step = how & 2 ? RLK_STEP_ROWS_INSERT : RLK_STEP_ROWS_UPDATE,
                                    .sets = true};
    struct rlk_pack pack = {0};
    if (rows > 0) {
        fuzz_must(rlk_pack_rows(&pack, &table, &shape, changes, order, rows) == ROWLOCK_OK);
        for (size_t i = 0; i < pack.parts; i++)
            check(&pack.part[i], how & 1);
        rlk_pack_clear(&pack);
    }
    return 0;
}
