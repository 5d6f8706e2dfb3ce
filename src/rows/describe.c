/* SPDX-License-Identifier: MIT
 * Asks the database for the columns of a table. Checks that its key tells rows apart, and that its
 * rows have versions. */
#include "rows/rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAME,
    CATEGORY,
    NOT_NULL,
    MOST,
    WIRE,
    UNPACK,
    VALUE,
    MATCH,
    SHOW,
    UNIQUES,
    HOME,
    COMPARE,
    DESCRIBED
};

struct looking {
    rowlock_table *t;
    /* The names of t->all. */
    const char *const *wanted;
    /* The table is there. */
    bool any;
    /* The answer does not fit the question. */
    bool misfit;
    bool no_memory;
};

static char *copy_cell(struct looking *l, const rowlock_value *cell)
{
    char *copy = rlk_alloc(cell->length + 1);
    if (copy && cell->length > 0)
        memcpy(copy, cell->text, cell->length);
    l->no_memory = l->no_memory || !copy;
    return copy;
}

/* sql/README.md has the list. A name that is not here is of any kind. */
static struct rlk_column read_category(const rowlock_value *cell)
{
    static const struct {
        const char *name;
        struct rlk_column is;
    } categories[] = {{"int", {.kind = ROWLOCK_INT}},
                      {"wide", {.kind = ROWLOCK_INT, .is_wide = true}},
                      {"real", {.kind = ROWLOCK_REAL}},
                      {"endless", {.kind = ROWLOCK_REAL, .has_infinity = true}},
                      {"float", {.kind = ROWLOCK_REAL, .has_infinity = true, .has_nan = true}},
                      {"decimal", {.kind = ROWLOCK_DECIMAL}},
                      {"rough", {.kind = ROWLOCK_DECIMAL, .is_rough = true}},
                      {"numeric", {.kind = ROWLOCK_DECIMAL, .has_infinity = true, .has_nan = true}},
                      {"text", {.kind = ROWLOCK_TEXT}},
                      {"bool", {.kind = ROWLOCK_BOOL}},
                      {"bytes", {.kind = ROWLOCK_BYTES}},
                      {"time", {.kind = ROWLOCK_TIME}},
                      {"local", {.kind = ROWLOCK_TIME, .is_local = true}},
                      {"dated", {.kind = ROWLOCK_TIME, .is_local = true, .is_dated = true}},
                      {"any", {.has_infinity = true}}};
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if (cell->length == strlen(categories[i].name) &&
            memcmp(cell->text, categories[i].name, cell->length) == 0)
            return categories[i].is;
    return (struct rlk_column){.kind = ROWLOCK_NULL};
}

/* Reads a number or a boolean. Its type depends on the dialect. */
static int64_t read_number(const rowlock_value *cell)
{
    char digits[32];
    if (cell->kind == ROWLOCK_INT || cell->kind == ROWLOCK_BOOL)
        return cell->number;
    if (!cell->text)
        return 0;
    rlk_copy_text(digits, sizeof digits, cell->text, cell->length);
    return strtoll(digits, NULL, 10);
}

static void read_column(struct looking *l, struct rlk_column *column, const rowlock_value *cells)
{
    char *name = column->name;
    *column = read_category(&cells[CATEGORY]);
    column->name = name;
    column->not_null = read_number(&cells[NOT_NULL]) != 0;
    column->most = read_number(&cells[MOST]);
    column->wire = copy_cell(l, &cells[WIRE]);
    column->unpack = copy_cell(l, &cells[UNPACK]);
    column->value = copy_cell(l, &cells[VALUE]);
    column->match = copy_cell(l, &cells[MATCH]);
    column->show = copy_cell(l, &cells[SHOW]);
    column->uniques = copy_cell(l, &cells[UNIQUES]);
    column->compare = copy_cell(l, &cells[COMPARE]);
}

static int take_column(void *context, const rowlock_value *cells, size_t count)
{
    struct looking *l = context;
    l->misfit = count != DESCRIBED;
    if (l->misfit)
        return 1;
    if (cells[NAME].kind == ROWLOCK_NULL) {
        struct rlk_column *kind = &l->t->kind[read_category(&cells[CATEGORY]).kind];
        if (!kind->wire)
            read_column(l, kind, cells);
        return 0;
    }
    l->any = true;
    if (!l->t->home)
        l->t->home = copy_cell(l, &cells[HOME]);
    for (size_t i = 0; i < rlk_all_of(l->t); i++)
        if (strlen(l->wanted[i]) == cells[NAME].length &&
            memcmp(l->wanted[i], cells[NAME].text, cells[NAME].length) == 0 && !l->t->all[i].wire)
            read_column(l, &l->t->all[i], cells);
    return 0;
}

static int look_up(struct looking *l, const struct rlk_about *about)
{
    rowlock_db *db = l->t->db;
    struct rlk_text text;
    int result = rlk_compose_plain(db, db->texts.sql[RLK_STEP_TABLE], &text);
    if (result != ROWLOCK_OK)
        return result;
    rowlock_value *values = rlk_alloc(text.count * sizeof *values);
    for (size_t i = 0; values && i < text.count; i++)
        values[i] = rowlock_text(text.params[i].source == RLK_FROM_SCHEMA ? about->options.schema
                                                                          : about->name);
    struct rlk_asking asking = {.query = {.sql = text.sql,
                                          .values = values,
                                          .count = text.count,
                                          .each = take_column,
                                          .context = l}};
    result = values ? rlk_ask_rows(db, &asking) : rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    rlk_free(values);
    rlk_text_clear(&text);
    if (result == ROWLOCK_OK && l->no_memory)
        result = rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    return result;
}

/* Does the list of unique keys have this key? A key is id/number of columns. */
static bool has_key(const char *list, const char *key, size_t length)
{
    for (const char *at = list; (at = strstr(at, key)) != NULL; at++)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

/* Is there a unique key of exactly the key columns? */
static bool is_unique(const rowlock_table *t)
{
    for (const char *at = t->all[0].uniques; *at; at += strcspn(at, " "), at += *at == ' ') {
        char key[160];
        size_t length = strcspn(at, " ");
        rlk_copy_text(key, sizeof key, at, length);
        const char *slash = strrchr(key, '/');
        bool in_all = slash && strtoull(slash + 1, NULL, 10) == t->keys;
        for (size_t i = 1; i < t->keys && in_all; i++)
            in_all = has_key(t->all[i].uniques, key, strlen(key));
        if (in_all)
            return true;
    }
    return false;
}

static int judge(const struct looking *l)
{
    const rowlock_table *t = l->t;
    rowlock_db *db = t->db;
    const struct rlk_column *version = rlk_version_of(t);
    bool misfit = l->misfit;
    for (int kind = ROWLOCK_INT; l->any && kind < RLK_KINDS; kind++)
        misfit = misfit || !t->kind[kind].wire;
    if (misfit)
        return rlk_fail_misfit(db, false);
    if (!l->any)
        return rlk_fail(db, ROWLOCK_EINVAL, "there is no such table, or you may not see it");
    for (size_t i = 0; i < rlk_all_of(t); i++)
        if (!t->all[i].wire)
            return rlk_fail(db, ROWLOCK_EINVAL, "the table has no column %s%s", t->all[i].name,
                            &t->all[i] == version ? "; docs/VERSIONS.md says how to add one" : "");
    for (size_t i = 0; i < t->keys; i++)
        if (t->all[i].kind == ROWLOCK_REAL || !t->all[i].match[0])
            return rlk_fail(db, ROWLOCK_EINVAL,
                            "the key column %s is a floating point number or a bit field, which "
                            "cannot identify a row",
                            t->all[i].name);
    if (!is_unique(t))
        return rlk_fail(db, ROWLOCK_EINVAL,
                        "the table has no unique key of exactly these key columns, or other tables "
                        "inherit from it; add a key, or name other columns or another table");
    if (version->kind != ROWLOCK_INT || version->most == 0)
        return rlk_fail(db, ROWLOCK_EINVAL, "the version column %s must be an integer",
                        version->name);
    if (version->most < 0)
        return rlk_fail(db, ROWLOCK_EINVAL,
                        "the version column %s is generated by the database, and cannot be set",
                        version->name);
    if (!version->not_null)
        return rlk_fail(db, ROWLOCK_EINVAL, "the version column %s may be NULL; make it NOT NULL",
                        version->name);
    if (t->first_version < 0 || t->first_version > version->most)
        return rlk_fail(db, ROWLOCK_EINVAL, "first_version must be between 0 and %" PRId64,
                        version->most);
    return ROWLOCK_OK;
}

int rlk_describe(rowlock_table *t, const struct rlk_about *about, const char *const *names)
{
    struct looking looking = {.t = t, .wanted = names};
    int result = look_up(&looking, about);
    return result == ROWLOCK_OK ? judge(&looking) : result;
}
