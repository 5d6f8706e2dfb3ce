/* SPDX-License-Identifier: MIT
 *
 * Values go into a prepared statement, and columns of its rows come out of it. */
#include "driver.h"

#include <stdio.h>
#include <string.h>

enum {
    /* longer than any date, time or 64-bit integer */
    SHORT_TEXT = 64,
    /* a buffer of this size or more is freed after each statement */
    LONG_TEXT = 65536
};

#ifdef MARIADB_PACKAGE_VERSION_ID
typedef my_bool flag;
#else
typedef bool flag;
#endif

/* One column of the row fetched last, and the column type that its buffer was chosen for. */
struct cell {
    rowlock_kind kind;
    enum enum_field_types type;
    unsigned flags, charset;
    flag null;
    unsigned long length;
    int64_t number;
    double real;
    char text[SHORT_TEXT];
    /* NULL: the buffer above is long enough */
    char *longer;
};

/* MariaDB's library does not know types such as MySQL's VECTOR, nor their length. It would read
 * beyond the row. Oracle's library refuses such types itself. */
static bool is_known_type(unsigned type)
{
#ifdef MARIADB_PACKAGE_VERSION_ID
    return type <= MYSQL_TYPE_BIT || type >= MYSQL_TYPE_JSON;
#else
    (void)type;
    return true;
#endif
}

/* Do the digits fit the servers' decimals? The servers silently change other digits that are bound
 * as a decimal. */
static bool is_decimal(const char *text, size_t length)
{
    /* before and after the point */
    size_t digits[2] = {0, 0};
    int part = 0;
    for (size_t i = length > 0 && (*text == '-' || *text == '+') ? 1 : 0; i < length; i++) {
        if (text[i] == '.' && part == 0)
            part = 1;
        else if (text[i] >= '0' && text[i] <= '9')
            digits[part]++;
        else
            return false;
    }
    return digits[0] >= 1 && digits[0] <= 35 && digits[1] <= 30;
}

/* Texts are bound as bytes, so that no character set of the connection changes them. Decimals are
 * bound as numbers. Otherwise the server would compute with doubles. */
static void bind_value(MYSQL_BIND *bind, const rowlock_value *value)
{
    *bind = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = (void *)&value->number};
    switch (value->kind) {
    case ROWLOCK_NULL:
        bind->buffer_type = MYSQL_TYPE_NULL;
        return;
    case ROWLOCK_INT:
    case ROWLOCK_BOOL:
        return;
    case ROWLOCK_REAL:
        bind->buffer_type = MYSQL_TYPE_DOUBLE;
        bind->buffer = (void *)&value->real;
        return;
    default:
        bind->buffer_type = MYSQL_TYPE_BLOB;
        if (value->kind == ROWLOCK_DECIMAL && is_decimal(value->text, value->length))
            bind->buffer_type = MYSQL_TYPE_NEWDECIMAL;
        bind->buffer = (void *)value->text;
        bind->buffer_length = value->length;
        return;
    }
}

/* Chooses the buffer for a column. Usually it is the one of the execution before. */
static bool choose_buffer(MYSQL_BIND *column, struct cell *cell, const MYSQL_FIELD *field)
{
    if (column->buffer && cell->type == field->type && cell->flags == field->flags &&
        cell->charset == field->charsetnr)
        return true;
    if (!is_known_type(field->type))
        return false;
    rlk_free(cell->longer);
    *cell = (struct cell){.kind = my_kind_of(field),
                          .type = field->type,
                          .flags = field->flags,
                          .charset = field->charsetnr};
    *column = (MYSQL_BIND){.length = &cell->length,
                           .is_null = &cell->null,
                           .is_unsigned = field->flags & UNSIGNED_FLAG ? 1 : 0};
    switch (cell->kind) {
    case ROWLOCK_NULL:
    case ROWLOCK_INT:
        column->buffer_type = MYSQL_TYPE_LONGLONG;
        column->buffer = &cell->number;
        return true;
    case ROWLOCK_REAL:
        column->buffer_type = MYSQL_TYPE_DOUBLE;
        column->buffer = &cell->real;
        return true;
    default:
        column->buffer_type = cell->kind == ROWLOCK_TIME ? MYSQL_TYPE_STRING : MYSQL_TYPE_BLOB;
        column->buffer = cell->text;
        column->buffer_length = sizeof cell->text;
        return true;
    }
}

static enum rlk_class not_whole(struct rlk_call *call)
{
    return rlk_refuse(call, RLK_REFUSED, "the client library returned only a part of a value");
}

/* Fetches the value again, into a buffer with room for it and for longer ones in later rows. */
static enum rlk_class fetch_long(struct rlk_call *call, struct prepared *p, unsigned i)
{
    struct cell *cell = &p->cell[i];
    MYSQL_BIND *column = &p->column[i];
    size_t room = cell->length + cell->length / 8;
    char *text = rlk_alloc(room);
    if (!text)
        return RLK_NOMEM;
    rlk_free(cell->longer);
    column->buffer = cell->longer = text;
    column->buffer_length = room;
    p->moved = true;
    if (mysql_stmt_fetch_column(p->stmt, column, i, 0) || cell->length > room)
        return not_whole(call);
    return RLK_DONE;
}

static enum rlk_class read_cell(struct rlk_call *call, struct prepared *p, unsigned i)
{
    const MYSQL_BIND *column = &p->column[i];
    struct cell *cell = &p->cell[i];
    rowlock_value *out = &p->value[i];
    enum rlk_class class = RLK_DONE;
    if (cell->null || cell->kind == ROWLOCK_NULL) {
        *out = rowlock_null();
    } else if (cell->kind == ROWLOCK_REAL) {
        *out = rowlock_real(cell->real);
    } else if (cell->kind != ROWLOCK_INT) {
        if (cell->length > column->buffer_length)
            class = fetch_long(call, p, i);
        *out = rowlock_textn(cell->kind, column->buffer, cell->length);
    } else if (column->is_unsigned && cell->number < 0) {
        snprintf(cell->text, sizeof cell->text, "%llu", (unsigned long long)cell->number);
        *out = rowlock_decimal(cell->text);
    } else {
        *out = rowlock_int(cell->number);
    }
    return class;
}

static enum rlk_class read_row(struct rlk_call *call, struct prepared *p, bool truncated)
{
    enum rlk_class class = RLK_DONE;
    for (unsigned i = 0; class == RLK_DONE && i < p->columns; i++)
        class = read_cell(call, p, i);
    return class == RLK_DONE && truncated && !p->moved ? not_whole(call) : class;
}

static void give_room_back(struct prepared *p)
{
    for (unsigned i = 0; i < p->columns; i++) {
        if (p->column[i].buffer_length < LONG_TEXT)
            continue;
        rlk_free(p->cell[i].longer);
        p->cell[i].longer = NULL;
        p->column[i].buffer = NULL;
    }
}

/* Character set 63 is binary. The servers report JSON as binary too, although it is text. */
rowlock_kind my_kind_of(const MYSQL_FIELD *field)
{
    static const unsigned char kinds[256] = {
        [MYSQL_TYPE_TINY] = ROWLOCK_INT,        [MYSQL_TYPE_SHORT] = ROWLOCK_INT,
        [MYSQL_TYPE_INT24] = ROWLOCK_INT,       [MYSQL_TYPE_LONG] = ROWLOCK_INT,
        [MYSQL_TYPE_LONGLONG] = ROWLOCK_INT,    [MYSQL_TYPE_YEAR] = ROWLOCK_INT,
        [MYSQL_TYPE_FLOAT] = ROWLOCK_REAL,      [MYSQL_TYPE_DOUBLE] = ROWLOCK_REAL,
        [MYSQL_TYPE_DECIMAL] = ROWLOCK_DECIMAL, [MYSQL_TYPE_NEWDECIMAL] = ROWLOCK_DECIMAL,
        [MYSQL_TYPE_DATE] = ROWLOCK_TIME,       [MYSQL_TYPE_NEWDATE] = ROWLOCK_TIME,
        [MYSQL_TYPE_TIME] = ROWLOCK_TIME,       [MYSQL_TYPE_DATETIME] = ROWLOCK_TIME,
        [MYSQL_TYPE_TIMESTAMP] = ROWLOCK_TIME,  [MYSQL_TYPE_JSON] = ROWLOCK_TEXT,
    };
    unsigned type = (unsigned)field->type;
    if (type == MYSQL_TYPE_NULL || (type < 256 && kinds[type]))
        return (rowlock_kind)kinds[type];
    return field->charsetnr == 63 ? ROWLOCK_BYTES : ROWLOCK_TEXT;
}

MYSQL_BIND *my_bind_values(struct conn *c, const struct rlk_query *q)
{
    MYSQL_BIND *values = rlk_room_for(&c->values, q->count * sizeof *values);
    for (size_t i = 0; values && i < q->count; i++)
        bind_value(&values[i], &q->values[i]);
    return values;
}

bool my_make_cells(struct prepared *p, unsigned room)
{
    my_free_cells(p);
    p->room = room;
    p->column = rlk_alloc((room + 1) * sizeof *p->column);
    p->cell = rlk_alloc((room + 1) * sizeof *p->cell);
    p->value = rlk_alloc((room + 1) * sizeof *p->value);
    return p->column && p->cell && p->value;
}

void my_free_cells(struct prepared *p)
{
    for (unsigned i = 0; p->cell && i < p->room; i++)
        rlk_free(p->cell[i].longer);
    rlk_free(p->column);
    rlk_free(p->cell);
    rlk_free(p->value);
    p->column = NULL;
    p->cell = NULL;
    p->value = NULL;
}

bool my_choose_buffers(struct prepared *p)
{
    bool known = true;
    for (unsigned i = 0; known && i < p->columns; i++)
        known = choose_buffer(&p->column[i], &p->cell[i], &p->stmt->fields[i]);
    return known;
}

enum rlk_class my_read_rows(const struct attempt *s)
{
    struct prepared *p = s->p;
    enum rlk_class class = RLK_DONE;
    bool more = true;
    p->moved = true;
    while (class == RLK_DONE && more) {
        int got = p->moved && mysql_stmt_bind_result(p->stmt, p->column) ? 1 : 0;
        p->moved = false;
        if (got == 0)
            got = mysql_stmt_fetch(p->stmt);
        more = got == 0 || got == MYSQL_DATA_TRUNCATED;
        if (more)
            class = read_row(s->call, p, got != 0);
        else if (got != MYSQL_NO_DATA)
            class = my_failed_stmt(s->c, s->call, p->stmt, s->q->step == RLK_STEP_NONE, true);
        more = more && class == RLK_DONE && s->q->each(s->q->context, p->value, p->columns) == 0;
    }
    give_room_back(p);
    return class;
}
