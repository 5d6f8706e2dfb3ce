/* SPDX-License-Identifier: MIT
 * Opens and closes a table of the caller, and reads one row of it. */
#include "base/options.h"
#include "rows/rows.h"

#include <string.h>

int rlk_enter_table(rowlock_table *t, const char *verb)
{
    if (!t || t->tag != RLK_TABLE_TAG)
        return ROWLOCK_EMISUSE;
    return rlk_enter(t->db, verb, t->label);
}

/* ---- one row */

/* A transaction that rowlock began has the lock already. */
int rlk_lock_to_read(rowlock_table *t)
{
    bool inside = false;
    rowlock_db *db = t->db;
    if (!db->texts.sql[RLK_STEP_ROW_LOCK] || !db->adopted || db->tx)
        return ROWLOCK_OK;
    int result = rlk_is_inside(db, &inside);
    if (result != ROWLOCK_OK || !inside)
        return result;
    struct rlk_shape shape = {.step = RLK_STEP_ROW_LOCK};
    const struct rlk_text *text = rlk_compose(t, &shape);
    if (!text)
        return db->error.code;
    struct rlk_asking asking = {.query = {.id = text->id, .sql = text->sql}};
    return rlk_ask_rows(db, &asking);
}

static int ask_for_row(rowlock_table *t, const rowlock_value *key, enum rlk_row_lock lock,
                       struct rlk_page *page)
{
    struct rlk_shape shape = {.step = RLK_STEP_ROW_READ, .lock = lock};
    struct rlk_asking asking = {
        .query = {.each = rlk_page_add, .context = page, .waits_for_all = page->waits_for_all},
        .restart = rlk_page_restart};
    if (!rlk_begin_asking(t, &shape, &asking))
        return t->db->error.code;
    for (size_t i = 0; i < asking.query.count; i++) {
        size_t column = asking.params[i].index;
        asking.values[i] = rlk_fit(&t->all[column], &key[column]);
    }
    rlk_page_begin(page, t->keys + t->columns);
    page->most = 1;
    return rlk_ask_rows(t->db, &asking);
}

/* A policy may let a session read a row that it may not lock. A plain read tells the two apart. It
 * would prove nothing on MySQL and MariaDB, where it may show an old snapshot. They have no
 * policies. */
static int ask_unlocked(rowlock_table *t, const rowlock_value *key, enum rlk_row_lock lock,
                        struct rlk_page *page, bool *hidden)
{
    int result = ask_for_row(t, key, RLK_LOCK_NONE, page);
    if (result != ROWLOCK_OK || page->rows == 0)
        return result;
    /* The row may have been inserted since the locking read. */
    result = ask_for_row(t, key, lock, page);
    if (result != ROWLOCK_OK || page->rows > 0)
        return result;
    *hidden = true;
    return ask_for_row(t, key, RLK_LOCK_NONE, page);
}

int rlk_read_row(rowlock_table *t, const rowlock_value *key, enum rlk_row_lock lock,
                 struct rlk_page *page)
{
    int result = ROWLOCK_OK;
    bool hidden = false;
    for (size_t i = 0; i < t->keys && result == ROWLOCK_OK; i++)
        result = rlk_check_key(t, key, i, -1);
    if (result == ROWLOCK_OK)
        result = ask_for_row(t, key, lock, page);
    /* The row may have been deleted and inserted again while we waited for its lock. */
    if (result == ROWLOCK_OK && lock != RLK_LOCK_NONE && page->rows == 0)
        result = ask_for_row(t, key, lock, page);
    if (result == ROWLOCK_OK && lock != RLK_LOCK_NONE && page->rows == 0 &&
        t->db->driver->has_policies)
        result = ask_unlocked(t, key, lock, page, &hidden);
    if (result == ROWLOCK_OK)
        result = rlk_page_end(t, page);
    if (result == ROWLOCK_OK && page->rows == 0)
        return rlk_fail(t->db, ROWLOCK_GONE, "there is no such row");
    if (result == ROWLOCK_OK && hidden)
        return rlk_fail(t->db, ROWLOCK_ESERVER,
                        "a policy of the table allows reading this row, but not locking it");
    return result;
}

int rowlock_read(rowlock_table *t, const rowlock_value *key, int lock, rowlock_row *out)
{
    rowlock_row row;
    int result = rlk_enter_table(t, "read a row of");
    if (result != ROWLOCK_OK)
        return result;
    if (!key || !out || out->size == 0)
        return rlk_fail(t->db, ROWLOCK_EINVAL,
                        "key and out must not be NULL; initialize out with ROWLOCK_ROW_INIT");
    result = lock ? rlk_lock_to_read(t) : ROWLOCK_OK;
    if (result == ROWLOCK_OK)
        result = rlk_read_row(t, key, lock ? RLK_LOCK_TO_CHANGE : RLK_LOCK_NONE, &t->page);
    if (result == ROWLOCK_OK) {
        row = rlk_page_row(t, &t->page, 0);
        rlk_give_struct(out, &row, sizeof row);
    }
    /* A read violates no constraint, so the key does not fit its column. */
    if (result == ROWLOCK_VIOLATION)
        result = t->db->error.code = ROWLOCK_EINVAL;
    return result;
}

/* ---- open and close */

static size_t count_names(const char *const *names)
{
    size_t count = 0;
    while (names && names[count])
        count++;
    return count;
}

static int check_name(rowlock_db *db, const char *what, const char *name)
{
    size_t length = name ? strlen(name) : 0;
    if (length >= 1 && length <= 255)
        return ROWLOCK_OK;
    return rlk_fail(db, ROWLOCK_EINVAL, "the %s must have 1 to 255 bytes", what);
}

static int check_set(rowlock_db *db, const rowlock_table_options *o)
{
    if (!o->set)
        return ROWLOCK_OK;
    if (o->set[strspn(o->set, " \t\r\n")] == '\0')
        return rlk_fail(db, ROWLOCK_EINVAL, "set is empty; NULL sets the columns");
    if (!rlk_ends_comments(o->set, db->driver->backslash_escapes))
        return rlk_fail(db, ROWLOCK_EINVAL, "a comment in set does not end");
    return ROWLOCK_OK;
}

static int check_about(rowlock_db *db, const struct rlk_about *about)
{
    const rowlock_table_options *o = &about->options;
    int result = check_name(db, "table's name", about->name);
    if (result == ROWLOCK_OK && o->schema)
        result = check_name(db, "schema's name", o->schema);
    if (result == ROWLOCK_OK)
        result = check_name(db, "version column's name", o->version);
    if (result == ROWLOCK_OK && count_names(about->key) == 0)
        result = rlk_fail(db, ROWLOCK_EINVAL, "the table needs the columns of its key");
    for (size_t i = 0; result == ROWLOCK_OK && i < count_names(about->key); i++)
        result = check_name(db, "key column's name", about->key[i]);
    for (size_t i = 0; result == ROWLOCK_OK && i < count_names(o->columns); i++)
        result = check_name(db, "column's name", o->columns[i]);
    return result == ROWLOCK_OK ? check_set(db, o) : result;
}

static int check_twice(rowlock_db *db, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(names[i], names[k]) == 0)
                return rlk_fail(db, ROWLOCK_EINVAL,
                                "the column %s is named twice, as key, column or version",
                                names[i]);
    return ROWLOCK_OK;
}

static char *qualify(const rowlock_db *db, const char *schema, const char *name)
{
    struct rlk_buffer out = {0};
    char *parts[] = {schema ? rlk_quote(schema, db->driver->quote) : NULL,
                     rlk_quote(name, db->driver->quote)};
    if (schema && parts[0]) {
        rlk_buffer_text(&out, parts[0]);
        rlk_buffer_text(&out, ".");
    }
    if (parts[1])
        rlk_buffer_text(&out, parts[1]);
    if ((schema && !parts[0]) || !parts[1] || out.no_memory)
        rlk_buffer_clear(&out);
    rlk_free(parts[0]);
    rlk_free(parts[1]);
    return out.text;
}

/* The identity does not depend on how the caller named the table, or on the session's search
 * path. */
static char *identify(const rowlock_table *t)
{
    struct rlk_buffer out = {0};
    char *name = qualify(t->db, t->home, t->label);
    rlk_buffer_text(&out, name ? name : "");
    for (size_t i = 0; i < t->keys; i++) {
        rlk_buffer_text(&out, i ? ", " : " (");
        rlk_buffer_text(&out, t->all[i].name);
    }
    rlk_buffer_text(&out, ")");
    if (!name || out.no_memory)
        rlk_buffer_clear(&out);
    rlk_free(name);
    return out.text;
}

/* The names of all columns in the order of t->all, unquoted. */
static const char **list_names(const rowlock_table *t, const struct rlk_about *about)
{
    const rowlock_table_options *o = &about->options;
    const char **names = rlk_alloc(rlk_all_of(t) * sizeof *names);
    if (!names)
        return NULL;
    for (size_t i = 0; i < t->keys; i++)
        names[i] = about->key[i];
    for (size_t i = 0; i < t->columns; i++)
        names[t->keys + i] = o->columns[i];
    names[t->keys + t->columns] = o->version;
    return names;
}

static bool copy_names(rowlock_table *t, const struct rlk_about *about, const char **names)
{
    const rowlock_table_options *o = &about->options;
    char quote = t->db->driver->quote;
    t->label = rlk_strdup(about->name);
    t->name = qualify(t->db, o->schema, about->name);
    t->all = rlk_alloc(rlk_all_of(t) * sizeof *t->all);
    bool copied = t->label && t->name && t->all && (!o->set || (t->set = rlk_strdup(o->set)));
    for (size_t i = 0; copied && i < rlk_all_of(t); i++)
        copied = (t->all[i].name = rlk_quote(names[i], quote)) != NULL;
    t->parameters = t->set ? rlk_count_parameters(t->set, t->db->driver->backslash_escapes) : 0;
    return copied;
}

static int fill(rowlock_table *t, const struct rlk_about *about)
{
    const rowlock_table_options *o = &about->options;
    t->keys = count_names(about->key);
    t->columns = count_names(o->columns);
    t->first_version = o->first_version;
    const char **names = list_names(t, about);
    if (!names)
        return rlk_fail(t->db, ROWLOCK_ENOMEM, "out of memory");
    int result = check_twice(t->db, names, rlk_all_of(t));
    if (result == ROWLOCK_OK && !copy_names(t, about, names))
        result = rlk_fail(t->db, ROWLOCK_ENOMEM, "out of memory");
    if (result == ROWLOCK_OK)
        result = rlk_describe(t, about, names);
    rlk_free(names);
    if (result == ROWLOCK_OK && !(t->identity = identify(t)))
        result = rlk_fail(t->db, ROWLOCK_ENOMEM, "out of memory");
    return result;
}

int rowlock_table_open(rowlock_db *db, const char *name, const char *const *key,
                       const rowlock_table_options *options, rowlock_table **out)
{
    struct rlk_about about = {.name = name, .key = key};
    int result = rlk_need_database(db, rlk_enter_open(db, "open table", name, out));
    if (result != ROWLOCK_OK ||
        (result = rlk_take_table_options(&db->error, &about.options, options)) != ROWLOCK_OK ||
        (result = check_about(db, &about)) != ROWLOCK_OK)
        return result;
    rowlock_table *t = rlk_alloc(sizeof *t);
    if (!t)
        return rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    t->tag = RLK_TABLE_TAG;
    t->db = db;
    result = fill(t, &about);
    if (result == ROWLOCK_OK)
        *out = t;
    else
        rowlock_table_close(t);
    return result;
}

static void clear_column(struct rlk_column *column)
{
    char *const texts[] = {column->name,  column->wire, column->unpack,  column->value,
                           column->match, column->show, column->uniques, column->compare};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        rlk_free(texts[i]);
}

void rowlock_table_close(rowlock_table *t)
{
    if (!t || t->tag != RLK_TABLE_TAG)
        return;
    t->tag = 0;
    rlk_witness_forget(t);
    for (size_t i = 0; t->all && i < rlk_all_of(t); i++)
        clear_column(&t->all[i]);
    for (size_t i = 0; i < RLK_KINDS; i++)
        clear_column(&t->kind[i]);
    while (t->texts) {
        struct rlk_text *next = t->texts->next;
        rlk_text_clear(t->texts);
        rlk_free(t->texts);
        t->texts = next;
    }
    rlk_page_clear(&t->page);
    rlk_free(t->all);
    rlk_free(t->label);
    rlk_free(t->name);
    rlk_free(t->home);
    rlk_free(t->identity);
    rlk_free(t->set);
    rlk_free(t);
}
