/* SPDX-License-Identifier: MIT
 *
 * Checkpoints of walks that say anything. The input is a byte for how many keys there are, the position,
 * a zero byte, and the keys of rows that met a conflict. A first byte of 128 or more stands for a position
 * that begins with the table as it is. */
#include "backend_script.h"
#include "fuzz.h"
#include "rows/walk.h"

static const struct script_column described[] = {
    {.name = "id", .category = "int", .most = INT64_MAX, .uniques = "one/1 two/2"},
    {.name = "note", .category = "text", .uniques = "two/2"},
    {.name = "price", .category = "decimal", .may_be_null = true},
    {.name = "version", .category = "int", .most = INT64_MAX},
    {.name = NULL},
};
static rowlock_value cells[8];

static void give(struct rlk_query *query)
{
    query->each(query->context, cells, 8);
}

static rowlock_table *open_keyed(rowlock_db *db, size_t keys)
{
    const char *key[] = {"id", "note", NULL}, *const columns[] = {"price", NULL};
    rowlock_table *table = NULL;
    key[keys] = NULL;
    fuzz_must(rowlock_table_open(db, "prices", key, OPTIONS(table, .columns = columns), &table) ==
              ROWLOCK_OK);
    return table;
}

/* Opened once: the scripted database is far slower than what is looked at. */
static rowlock_table *table_of(size_t keys)
{
    static rowlock_table *tables[2];
    if (!tables[0]) {
        script_reset();
        script_dialect("postgres");
        script.columns = described;
        rowlock_db *db = script_open(NULL);
        tables[0] = open_keyed(db, 1);
        tables[1] = open_keyed(db, 2);
        script_always(OP_WALK_LOAD, ANSWER(.give = give));
    }
    return tables[keys - 1];
}

static void load(rowlock_table *table)
{
    struct walk w = {.t = table, .db = table->db};
    bool found = false;
    w.name = "walk";
    int result = rlk_checkpoint_load(&w, &found);
    fuzz_must(found && (result == ROWLOCK_OK || result == ROWLOCK_EINVAL));
    rlk_page_clear(&w.position);
    rlk_page_clear(&w.pending);
}

/* The texts of an answer have a terminator of their own or none: here none. */
static rowlock_value exact(const char *head, const uint8_t *bytes, size_t size)
{
    size_t before = strlen(head);
    char *text = malloc(before + size + !(before + size));
    fuzz_must(text);
    memcpy(text, head, before);
    if (size > 0)
        memcpy(text + before, bytes, size);
    return rowlock_textn(ROWLOCK_TEXT, text, before + size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    uint8_t how = fuzz_byte(&in);
    rowlock_table *table = table_of(1 + how % 2);
    const uint8_t *end = in.left ? memchr(in.at, 0, in.left) : NULL;
    size_t first = end ? (size_t)(end - in.at) : in.left;
    char head[200];
    snprintf(head, sizeof head, "%s\n", how >= 128 ? table->identity : "");
    for (size_t i = 0; i < 8; i++)
        cells[i] = rowlock_int(how);
    cells[1] = exact(how >= 128 ? head : "", in.at, first);
    cells[2] = exact("", in.at + first + (end != NULL), in.left - first - (end != NULL));
    load(table);
    free((char *)cells[1].text);
    free((char *)cells[2].text);
    return 0;
}
