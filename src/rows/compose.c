/* SPDX-License-Identifier: MIT
 * Makes a statement of a template in sql/ and the names of a table. Replaces the placeholders in
 * braces. Each value becomes a parameter, in the order of the text. The text holds no values. */
#include "rows/rows.h"

#include <stdatomic.h>
#include <string.h>

struct composer {
    const struct rlk_driver *driver;
    /* NULL: not described yet. */
    const rowlock_table *t;
    struct rlk_shape shape;
    /* Many rows in one statement: their values come from a pack. */
    bool many;
    struct rlk_buffer out;
    struct rlk_param *params;
    size_t count, room;
};

/* ---- pieces */

static void add_param(struct composer *c, enum rlk_source source, size_t index)
{
    if (c->count == c->room) {
        size_t room = c->room ? 2 * c->room : 16;
        struct rlk_param *params =
            rlk_grow(c->params, c->count * sizeof *params, room * sizeof *params);
        if (!params) {
            c->out.no_memory = true;
            return;
        }
        c->params = params;
        c->room = room;
    }
    c->params[c->count++] = (struct rlk_param){source, index};
    rlk_buffer_add(&c->out, &c->driver->marker, 1);
    if (c->driver->marker == '$')
        rlk_buffer_number(&c->out, (int64_t)c->count);
}

/* A column of the pack: rlk_k1, rlk_ver, rlk_c2. */
static void add_packed_name(struct composer *c, enum rlk_source source, size_t index)
{
    if (source == RLK_FROM_EXPECTED) {
        rlk_buffer_text(&c->out, "rlk_ver");
        return;
    }
    rlk_buffer_text(&c->out, source == RLK_FROM_KEY ? "rlk_k" : "rlk_c");
    rlk_buffer_number(&c->out, (int64_t)index + 1);
}

static void add_raw(struct composer *c, const struct rlk_column *column, enum rlk_source source,
                    size_t index)
{
    if (!c->many) {
        add_param(c, source, index);
        return;
    }
    for (const char *at = column->unpack; *at; at++) {
        if (*at != '%') {
            rlk_buffer_add(&c->out, at, 1);
            continue;
        }
        rlk_buffer_text(&c->out, "v.");
        add_packed_name(c, source, index);
    }
}

static void add_pattern(struct composer *c, const char *pattern, const struct rlk_column *column,
                        enum rlk_source source, size_t index)
{
    for (const char *at = pattern; *at; at++) {
        if (*at == '%')
            add_raw(c, column, source, index);
        else
            rlk_buffer_add(&c->out, at, 1);
    }
}

static void add_value(struct composer *c, size_t index)
{
    const struct rlk_column *column = rlk_value_column(c->t, &c->shape, index);
    if (c->shape.kinds && c->shape.kinds[index] == ROWLOCK_NULL)
        /* A server cannot tell the type of a NULL parameter. */
        rlk_buffer_text(&c->out, "NULL");
    else
        add_pattern(c, column->value, column, RLK_FROM_VALUE, index);
}

/* ---- the caller's own SQL */

/* Returns the end of the quoted text or comment that begins at sql. Returns sql if none begins. */
static const char *skip_quoted(const char *sql, bool backslash_escapes)
{
    if (sql[0] == '-' && sql[1] == '-')
        return sql + strcspn(sql, "\n");
    if (sql[0] == '/' && sql[1] == '*') {
        const char *end = strstr(sql + 2, "*/");
        return end ? end + 2 : sql + strlen(sql);
    }
    if (!strchr("'\"`", *sql))
        return sql;
    const char *at = sql + 1;
    while (*at && *at != *sql)
        at += backslash_escapes && *at == '\\' && at[1] ? 2 : 1;
    return *at ? at + 1 : at;
}

/* Writes the caller's SQL with its parameters, and counts them. c NULL: only counts them. */
static size_t split_set(const char *sql, bool backslash_escapes, struct composer *c)
{
    size_t count = 0;
    while (*sql) {
        const char *end = skip_quoted(sql, backslash_escapes);
        bool parameter = end == sql && *sql == '?' && sql[1] != '?';
        /* ?? stands for one question mark. */
        const char *from = end == sql && *sql == '?' ? sql + 1 : sql;
        if (end == sql)
            end = *sql == '?' && !parameter ? sql + 2 : sql + 1;
        if (c && parameter)
            add_value(c, count);
        else if (c)
            rlk_buffer_add(&c->out, from, (size_t)(end - from));
        count += parameter;
        sql = end;
    }
    return count;
}

size_t rlk_count_parameters(const char *sql, bool backslash_escapes)
{
    return split_set(sql, backslash_escapes, NULL);
}

bool rlk_ends_comments(const char *sql, bool backslash_escapes)
{
    while (*sql) {
        const char *end = skip_quoted(sql, backslash_escapes);
        if (sql[0] == '/' && sql[1] == '*' && (end - sql < 4 || memcmp(end - 2, "*/", 2) != 0))
            return false;
        sql = end == sql ? sql + 1 : end;
    }
    return true;
}

/* ---- placeholders */

static void write_names(struct composer *c, size_t count, const char *before, const char *between)
{
    for (size_t i = 0; i < count; i++) {
        rlk_buffer_text(&c->out, i ? between : "");
        rlk_buffer_text(&c->out, before);
        rlk_buffer_text(&c->out, c->t->all[i].name);
    }
}

static void write_set(struct composer *c)
{
    if (!c->shape.sets)
        return;
    if (c->shape.kinds)
        split_set(c->t->set, c->driver->backslash_escapes, c);
    for (size_t i = 0; !c->shape.kinds && i < c->t->columns; i++) {
        rlk_buffer_text(&c->out, i ? ", " : "");
        rlk_buffer_text(&c->out, c->t->all[c->t->keys + i].name);
        rlk_buffer_text(&c->out, " = ");
        add_value(c, i);
    }
    if (c->shape.kinds)
        /* The caller's SQL may end in a comment, so a new line comes before the comma. */
        rlk_buffer_text(&c->out, "\n, ");
    else if (c->t->columns > 0)
        rlk_buffer_text(&c->out, ", ");
}

static void write_given(struct composer *c)
{
    for (size_t i = 0; i < c->t->keys; i++) {
        add_pattern(c, c->t->all[i].value, &c->t->all[i], RLK_FROM_KEY, i);
        rlk_buffer_text(&c->out, ", ");
    }
    for (size_t i = 0; i < c->t->columns; i++) {
        add_value(c, i);
        rlk_buffer_text(&c->out, ", ");
    }
}

/* Writes the given key. Each column is written as in a comparison. */
static void write_keys(struct composer *c)
{
    for (size_t i = 0; i < c->t->keys; i++) {
        rlk_buffer_text(&c->out, i ? ", " : "");
        add_pattern(c, c->t->all[i].match, &c->t->all[i], RLK_FROM_KEY, i);
    }
}

static void write_comparison(struct composer *c, size_t key, const char *operator)
{
    const struct rlk_column *column = &c->t->all[key];
    for (const char *at = column->compare; *at; at++) {
        if (*at == '#') {
            rlk_buffer_text(&c->out, "t.");
            rlk_buffer_text(&c->out, column->name);
        } else if (*at == '~') {
            rlk_buffer_text(&c->out, operator);
        } else if (*at == '%') {
            add_pattern(c, column->match, column, RLK_FROM_KEY, key);
        } else {
            rlk_buffer_add(&c->out, at, 1);
        }
    }
}

static void write_match(struct composer *c)
{
    for (size_t i = 0; i < c->t->keys; i++) {
        rlk_buffer_text(&c->out, i ? " AND " : "");
        write_comparison(c, i, "=");
    }
}

/* Writes a >= ? AND (a > ? OR (b >= ? AND (b > ? OR …))). With this form every database finds the
 * beginning by the index. */
static void write_after(struct composer *c)
{
    if (!c->shape.after)
        return;
    rlk_buffer_text(&c->out, "WHERE ");
    for (size_t i = 0; i + 1 < c->t->keys; i++) {
        write_comparison(c, i, ">=");
        rlk_buffer_text(&c->out, " AND (");
        write_comparison(c, i, ">");
        rlk_buffer_text(&c->out, " OR (");
    }
    write_comparison(c, c->t->keys - 1, ">");
    for (size_t i = 0; i + 1 < c->t->keys; i++)
        rlk_buffer_text(&c->out, "))");
}

static void write_shown(struct composer *c)
{
    for (size_t i = 0; i < c->t->keys + c->t->columns; i++) {
        for (const char *at = c->t->all[i].show; *at; at++) {
            if (*at != '%') {
                rlk_buffer_add(&c->out, at, 1);
                continue;
            }
            rlk_buffer_text(&c->out, "t.");
            rlk_buffer_text(&c->out, c->t->all[i].name);
        }
        rlk_buffer_text(&c->out, ", ");
    }
}

/* The columns of a pack are the keys, the expected version, and the values. A pack of new rows or
 * of keys has no version. */
typedef void packed_fn(struct composer *c, size_t at, const char *wire, enum rlk_source source,
                       size_t index);

static void each_packed(struct composer *c, packed_fn *write)
{
    size_t at = 0;
    for (size_t i = 0; i < c->t->keys; i++)
        write(c, at++, c->t->all[i].wire, RLK_FROM_KEY, i);
    if (rlk_packs_versions(&c->shape))
        write(c, at++, c->t->kind[ROWLOCK_INT].wire, RLK_FROM_EXPECTED, 0);
    for (size_t i = 0; i < rlk_values_of(c->t, &c->shape); i++)
        write(c, at++, rlk_value_column(c->t, &c->shape, i)->wire, RLK_FROM_VALUE, i);
}

static void write_array(struct composer *c, size_t at, const char *wire, enum rlk_source source,
                        size_t index)
{
    (void)source;
    (void)index;
    rlk_buffer_text(&c->out, at ? ", " : "");
    add_param(c, RLK_FROM_PACK, at);
    rlk_buffer_text(&c->out, "::");
    rlk_buffer_text(&c->out, wire);
    rlk_buffer_text(&c->out, "[]");
}

static void write_packed_name(struct composer *c, size_t at, const char *wire,
                              enum rlk_source source, size_t index)
{
    (void)wire;
    rlk_buffer_text(&c->out, at ? ", " : "");
    add_packed_name(c, source, index);
}

static void write_path(struct composer *c, size_t at, const char *wire, enum rlk_source source,
                       size_t index)
{
    rlk_buffer_text(&c->out, ", ");
    add_packed_name(c, source, index);
    rlk_buffer_text(&c->out, " ");
    rlk_buffer_text(&c->out, wire);
    rlk_buffer_text(&c->out, " PATH '$[");
    rlk_buffer_number(&c->out, (int64_t)at);
    rlk_buffer_text(&c->out, "]'");
}

/* Writes a parameter that belongs to no column. */
static void write_plain(struct composer *c, rowlock_kind kind, enum rlk_source source)
{
    const char *pattern = c->t && c->t->kind[kind].value ? c->t->kind[kind].value : "%";
    for (const char *at = pattern; *at; at++) {
        if (*at == '%')
            add_param(c, source, 0);
        else
            rlk_buffer_add(&c->out, at, 1);
    }
}

/* {lock:A|B} */
static void write_lock(struct composer *c, const char *choice, size_t length)
{
    const char *bar = memchr(choice, '|', length);
    size_t first = bar ? (size_t)(bar - choice) : length;
    if (c->shape.lock == RLK_LOCK_SHARED)
        rlk_buffer_add(&c->out, choice, first);
    else if (c->shape.lock == RLK_LOCK_TO_CHANGE)
        rlk_buffer_add(&c->out, bar + 1, length - first - 1);
}

static void write_brace(struct composer *c, const char *word, size_t length)
{
#define IS(text) (length == sizeof(text) - 1 && memcmp(word, text, length) == 0)
    if (IS("table"))
        rlk_buffer_text(&c->out, c->t->name);
    else if (IS("version"))
        rlk_buffer_text(&c->out, rlk_version_of(c->t)->name);
    else if (IS("key"))
        write_names(c, c->t->keys, "", ", ");
    else if (IS("columns")) {
        write_names(c, c->t->keys + c->t->columns, "", ", ");
        rlk_buffer_text(&c->out, ", ");
    } else if (IS("order"))
        write_names(c, c->t->keys, "t.", ", ");
    else if (IS("set"))
        write_set(c);
    else if (IS("given"))
        write_given(c);
    else if (IS("keys"))
        write_keys(c);
    else if (IS("match"))
        write_match(c);
    else if (IS("after"))
        write_after(c);
    else if (IS("shown"))
        write_shown(c);
    else if (IS("expected"))
        write_plain(c, ROWLOCK_INT, RLK_FROM_EXPECTED);
    else if (IS("first"))
        write_plain(c, ROWLOCK_INT, RLK_FROM_FIRST);
    else if (IS("limit"))
        write_plain(c, ROWLOCK_INT, RLK_FROM_LIMIT);
    else if (IS("tag"))
        write_plain(c, ROWLOCK_TEXT, RLK_FROM_TAG);
    else if (IS("schema"))
        write_plain(c, ROWLOCK_TEXT, RLK_FROM_SCHEMA);
    else if (IS("name"))
        write_plain(c, ROWLOCK_TEXT, RLK_FROM_NAME);
    else if (IS("arrays"))
        each_packed(c, write_array);
    else if (IS("names"))
        each_packed(c, write_packed_name);
    else if (IS("paths"))
        each_packed(c, write_path);
    else if (IS("pack"))
        add_param(c, RLK_FROM_PACK, 0);
    else if (length > 5 && memcmp(word, "lock:", 5) == 0)
        write_lock(c, word + 5, length - 5);
#undef IS
}

static void write_template(struct composer *c, const char *template)
{
    const char *from = template;
    for (const char *open = strchr(from, '{'); open; open = strchr(from, '{')) {
        const char *close = strchr(open, '}');
        rlk_buffer_add(&c->out, from, (size_t)(open - from));
        write_brace(c, open + 1, (size_t)(close - open - 1));
        from = close + 1;
    }
    rlk_buffer_text(&c->out, from);
}

/* ---- texts */

static bool end_text(struct composer *c, struct rlk_text *out)
{
    static _Atomic uint64_t last_id;
    if (c->out.no_memory) {
        rlk_buffer_clear(&c->out);
        rlk_free(c->params);
        return false;
    }
    out->sql = c->out.text;
    out->params = c->params;
    out->count = c->count;
    out->id = ++last_id;
    return true;
}

static bool is_of_shape(const rowlock_table *t, const struct rlk_text *text,
                        const struct rlk_shape *shape)
{
    const struct rlk_shape *its = &text->shape;
    if (its->step != shape->step || its->sets != shape->sets || its->after != shape->after ||
        its->lock != shape->lock || !text->kinds != !shape->kinds)
        return false;
    return !shape->kinds ||
           memcmp(text->kinds, shape->kinds, t->parameters * sizeof *shape->kinds) == 0;
}

static bool is_packed(enum rlk_step step)
{
    return step == RLK_STEP_ROWS_UPDATE || step == RLK_STEP_ROWS_INSERT ||
           step == RLK_STEP_ROWS_REMOVE || step == RLK_STEP_ROWS_READ || step == RLK_STEP_ROWS_FIND;
}

static struct rlk_text *compose(const rowlock_table *t, const struct rlk_shape *shape)
{
    struct rlk_text *text = rlk_alloc(sizeof *text);
    if (!text)
        return NULL;
    text->shape = *shape;
    if (shape->kinds) {
        size_t size = t->parameters * sizeof *shape->kinds;
        text->kinds = rlk_alloc(size);
        if (text->kinds)
            memcpy(text->kinds, shape->kinds, size);
    }
    struct composer c = {
        .driver = t->db->driver, .t = t, .shape = *shape, .many = is_packed(shape->step)};
    c.out.no_memory = shape->kinds && !text->kinds;
    write_template(&c, t->db->texts.sql[shape->step]);
    if (end_text(&c, text))
        return text;
    rlk_free(text->kinds);
    rlk_free(text);
    return NULL;
}

const struct rlk_text *rlk_compose(rowlock_table *t, const struct rlk_shape *shape)
{
    for (struct rlk_text *text = t->texts; text; text = text->next)
        if (is_of_shape(t, text, shape))
            return text;
    struct rlk_text *text = compose(t, shape);
    if (!text) {
        rlk_fail(t->db, ROWLOCK_ENOMEM, "out of memory");
        return NULL;
    }
    text->next = t->texts;
    t->texts = text;
    return text;
}

bool rlk_begin_asking(rowlock_table *t, const struct rlk_shape *shape, struct rlk_asking *asking)
{
    const struct rlk_text *text = rlk_compose(t, shape);
    asking->values = text ? rlk_alloc(text->count * sizeof *asking->values) : NULL;
    if (!asking->values) {
        rlk_fail(t->db, ROWLOCK_ENOMEM, "out of memory");
        return false;
    }
    asking->params = text->params;
    asking->query.id = text->id;
    asking->query.sql = text->sql;
    asking->query.values = asking->values;
    asking->query.count = text->count;
    return true;
}

int rlk_compose_plain(rowlock_db *db, const char *template, struct rlk_text *out)
{
    struct composer c = {.driver = db->driver};
    *out = (struct rlk_text){0};
    write_template(&c, template);
    return end_text(&c, out) ? ROWLOCK_OK : rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
}

void rlk_text_clear(struct rlk_text *text)
{
    rlk_free(text->kinds);
    rlk_free(text->sql);
    rlk_free(text->params);
}

char *rlk_quote(const char *name, char quote)
{
    struct rlk_buffer out = {0};
    rlk_buffer_add(&out, &quote, 1);
    for (const char *at = name; *at; at++) {
        if (*at == quote)
            rlk_buffer_add(&out, &quote, 1);
        rlk_buffer_add(&out, at, 1);
    }
    rlk_buffer_add(&out, &quote, 1);
    if (out.no_memory)
        rlk_buffer_clear(&out);
    return out.text;
}
