/* SPDX-License-Identifier: MIT
 * Packs many rows into the parameters of one statement: an array literal for each column, or one
 * JSON text. Checks whether a column can take a value. */
#include "base/ident.h"
#include "rows/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values */

static const char *name_of(rowlock_kind kind)
{
    static const char *const names[RLK_KINDS] = {
        [ROWLOCK_NULL] = "NULL",         [ROWLOCK_INT] = "an integer", [ROWLOCK_REAL] = "a real",
        [ROWLOCK_DECIMAL] = "a decimal", [ROWLOCK_TEXT] = "a text",    [ROWLOCK_BYTES] = "bytes",
        [ROWLOCK_BOOL] = "a boolean",    [ROWLOCK_TIME] = "a time"};
    return names[kind];
}

static bool is_text(rowlock_kind kind)
{
    return kind == ROWLOCK_TEXT || kind == ROWLOCK_DECIMAL || kind == ROWLOCK_TIME;
}

static bool takes(const struct rlk_column *column, rowlock_kind kind)
{
    enum { INT = 1 << ROWLOCK_INT, REAL = 1 << ROWLOCK_REAL, DECIMAL = 1 << ROWLOCK_DECIMAL };
    enum { TEXT = 1 << ROWLOCK_TEXT, BOOL = 1 << ROWLOCK_BOOL, TIME = 1 << ROWLOCK_TIME };
    static const int taken[RLK_KINDS] = {
        [ROWLOCK_NULL] = -1,
        [ROWLOCK_INT] = INT | BOOL,
        [ROWLOCK_BOOL] = INT | BOOL,
        [ROWLOCK_REAL] = REAL | INT | DECIMAL,
        [ROWLOCK_DECIMAL] = DECIMAL | INT,
        [ROWLOCK_TEXT] = TEXT | DECIMAL | TIME,
        [ROWLOCK_TIME] = TIME | TEXT,
        [ROWLOCK_BYTES] = 1 << ROWLOCK_BYTES,
    };
    return taken[column->kind] & 1 << kind || (column->is_wide && kind == ROWLOCK_DECIMAL);
}

/* Numbers that are no digits, as PostgreSQL spells them. */
static bool is_endless(const char *text, size_t length)
{
    static const char *const names[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (length == strlen(names[i]) && memcmp(text, names[i], length) == 0)
            return true;
    return false;
}

/* A zone comes after the minutes: +02, -03:30 or Z. */
static bool has_zone(const char *text, size_t length)
{
    const char *end = text + length, *at = length > 0 ? memchr(text, ':', length) : NULL;
    while (at && at < end && !strchr("+-Zz", *at))
        at++;
    return at && at < end;
}

/* An interval or a time of day: [+-] digits : */
static bool has_no_date(const char *text, size_t length)
{
    const char *at = text, *end = text + length;
    at += at < end && (*at == '-' || *at == '+');
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at < end && *at == ':';
}

/* [+-] digits [. digits] [e [+-] digits] */
static bool is_decimal(const char *text, size_t length)
{
    const char *at = text, *end = text + length;
    size_t digits = 0;
    at += at < end && (*at == '-' || *at == '+');
    for (; at < end && *at >= '0' && *at <= '9'; at++)
        digits++;
    if (at < end && *at == '.')
        for (at++; at < end && *at >= '0' && *at <= '9'; at++)
            digits++;
    if (digits == 0 || at == end || (*at != 'e' && *at != 'E'))
        return digits > 0 && at == end;
    at++;
    at += at < end && (*at == '-' || *at == '+');
    const char *exponent = at;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at == end && at > exponent && at - exponent < 5;
}

/* Only digits, at most the highest unsigned number of 64 bits. */
static bool is_wide_number(const char *text, size_t length)
{
    static const char most[] = "18446744073709551615";
    size_t digits = 0;
    while (digits < length && text[digits] >= '0' && text[digits] <= '9')
        digits++;
    return digits == length && (length < sizeof most - 1 ||
                                (length == sizeof most - 1 && memcmp(text, most, length) <= 0));
}

enum { REAL_DIGITS = 400, EXACT_DIGITS = 15 };

static double read_real(const rowlock_value *decimal)
{
    char digits[REAL_DIGITS];
    rlk_copy_text(digits, sizeof digits, decimal->text, decimal->length);
    return rlk_read_real(digits);
}

/* Digits from the first to the last that is not 0. */
static size_t count_digits(const rowlock_value *decimal)
{
    size_t count = 0, zeros = 0;
    for (size_t i = 0; i < decimal->length && !strchr("eE", decimal->text[i]); i++) {
        if (decimal->text[i] >= '1' && decimal->text[i] <= '9') {
            count += zeros + 1;
            zeros = 0;
        } else if (decimal->text[i] == '0' && count > 0) {
            zeros++;
        }
    }
    return count;
}

static bool is_beyond_64_bits(const rowlock_value *decimal)
{
    char digits[REAL_DIGITS];
    rlk_copy_text(digits, sizeof digits, decimal->text, decimal->length);
    errno = 0;
    long long number = strtoll(digits, NULL, 10);
    return (number == LLONG_MAX || number == LLONG_MIN) && errno == ERANGE;
}

/* A decimal for a column of floating point numbers. */
static const char *find_real_flaw(const struct rlk_column *column, const rowlock_value *decimal)
{
    double real = decimal->length < REAL_DIGITS ? read_real(decimal) : INFINITY;
    size_t digits = count_digits(decimal);
    if (!isfinite(real) || (real == 0 && digits > 0))
        return "is too large, too small or too long for a floating point number";
    if (column->is_rough && digits > EXACT_DIGITS && is_beyond_64_bits(decimal))
        return "has more than 64 bits and more than 15 digits, which the column would round";
    return NULL;
}

static const char *find_flaw(const struct rlk_column *column, const rowlock_value *value)
{
    if ((unsigned)value->kind >= RLK_KINDS)
        return "has an unknown kind";
    if (!value->text && value->length > 0 && (is_text(value->kind) || value->kind == ROWLOCK_BYTES))
        return "has a length but no text";
    if (value->kind == ROWLOCK_REAL && isnan(value->real) && !column->has_nan)
        return "is NaN, which the column cannot hold";
    if (value->kind == ROWLOCK_REAL && isinf(value->real) && !column->has_infinity)
        return "is infinite, which the column cannot hold";
    if (value->kind == ROWLOCK_DECIMAL && !is_decimal(value->text, value->length) &&
        !(column->kind == ROWLOCK_DECIMAL && column->has_nan &&
          is_endless(value->text, value->length)))
        return "is not a decimal number such as 19.90";
    if (value->kind == ROWLOCK_REAL && value->real == 0 && signbit(value->real) && !column->has_nan)
        return "is -0.0, which the column cannot hold; give 0.0";
    if (value->kind == ROWLOCK_DECIMAL && (column->kind == ROWLOCK_REAL || column->is_rough) &&
        find_real_flaw(column, value))
        return find_real_flaw(column, value);
    if (value->kind == ROWLOCK_DECIMAL && column->is_wide &&
        !is_wide_number(value->text, value->length))
        return "is not a whole number from 0 to 18446744073709551615";
    if (is_text(value->kind) && value->length > 0 && memchr(value->text, 0, value->length))
        return "has a zero byte in it; give it as bytes";
    if (is_text(value->kind) && !rlk_is_utf8(value->text, value->length))
        return "is not valid UTF-8; give it as bytes";
    if (value->kind == ROWLOCK_TIME && column->is_local && has_zone(value->text, value->length))
        return "has a time zone, and the column has none; convert it, and give it without one";
    if (value->kind == ROWLOCK_TIME && column->is_dated && has_no_date(value->text, value->length))
        return "has no date, and the column has one: an interval or a time of day is for TIME";
    if (column->kind == ROWLOCK_BOOL && value->kind == ROWLOCK_INT &&
        (value->number < 0 || value->number > 1))
        return "is neither 0 nor 1";
    return NULL;
}

int rlk_check_value(rowlock_db *db, const struct rlk_column *column, const rowlock_value *value,
                    int64_t row)
{
    const char *flaw = find_flaw(column, value);
    const char *name = column->name ? column->name : "a parameter";
    char where[40] = "";
    if (!flaw && (value->kind == ROWLOCK_NULL || takes(column, value->kind)))
        return ROWLOCK_OK;
    if (row >= 0)
        snprintf(where, sizeof where, "rows[%" PRId64 "]: ", row);
    if (flaw)
        return rlk_fail(db, ROWLOCK_EINVAL, "%sthe value for %s %s", where, name, flaw);
    return rlk_fail(db, ROWLOCK_EINVAL, "%s%s is %s and cannot take %s", where, name,
                    name_of(column->kind), name_of(value->kind));
}

int rlk_check_key(const rowlock_table *t, const rowlock_value *key, size_t index, int64_t row)
{
    char where[40] = "";
    int result = rlk_check_value(t->db, &t->all[index], &key[index], row);
    if (result != ROWLOCK_OK || key[index].kind != ROWLOCK_NULL)
        return result;
    if (row >= 0)
        snprintf(where, sizeof where, "rows[%" PRId64 "]: ", row);
    return rlk_fail(t->db, ROWLOCK_EINVAL, "%sthe key column %s is NULL", where,
                    t->all[index].name);
}

/* Gives each number one spelling, so that keys can be compared by their bytes. */
static rowlock_value fit_wide(const rowlock_value *digits)
{
    char text[24];
    rowlock_value fit = *digits;
    for (; fit.length > 1 && *fit.text == '0'; fit.length--)
        fit.text++;
    rlk_copy_text(text, sizeof text, fit.text, fit.length);
    uint64_t number = strtoull(text, NULL, 10);
    return number <= INT64_MAX ? rowlock_int((int64_t)number) : fit;
}

rowlock_value rlk_fit(const struct rlk_column *column, const rowlock_value *value)
{
    rowlock_value fit = *value;
    if ((column->kind == ROWLOCK_INT && value->kind == ROWLOCK_BOOL) ||
        (column->kind == ROWLOCK_BOOL && value->kind == ROWLOCK_INT))
        fit.kind = column->kind;
    if (column->kind == ROWLOCK_REAL && value->kind == ROWLOCK_INT)
        fit = rowlock_real((double)value->number);
    if (column->is_wide && value->kind == ROWLOCK_DECIMAL)
        fit = fit_wide(value);
    return fit;
}

/* ---- writing */

static void add_scalar(struct rlk_buffer *b, const rowlock_value *value)
{
    if (value->kind == ROWLOCK_REAL)
        rlk_buffer_real(b, value->real);
    else
        rlk_buffer_number(b, value->number);
}

static void add_element(struct rlk_buffer *b, const rowlock_value *value)
{
    if (value->kind == ROWLOCK_NULL) {
        rlk_buffer_text(b, "NULL");
    } else if (is_text(value->kind)) {
        rlk_buffer_quoted(b, value->text, value->length);
    } else if (value->kind == ROWLOCK_BYTES) {
        rlk_buffer_text(b, "\"\\");
        rlk_buffer_value(b, value);
        rlk_buffer_text(b, "\"");
    } else {
        rlk_buffer_value(b, value);
    }
}

static bool is_scalar(rowlock_kind kind)
{
    return kind == ROWLOCK_INT || kind == ROWLOCK_BOOL || kind == ROWLOCK_REAL;
}

/* Escapes what is special within quotes of JSON, also control characters. */
static void add_json_text(struct rlk_buffer *b, const char *text, size_t length)
{
    const char *end = text + length;
    for (const char *at = text; at < end;) {
        const char *special = at;
        while (special < end && *special != '"' && *special != '\\' &&
               (unsigned char)*special >= ' ')
            special++;
        rlk_buffer_add(b, at, (size_t)(special - at));
        if (special < end) {
            char escape[8];
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)(unsigned char)*special++);
            rlk_buffer_add(b, escape, 6);
        }
        at = special;
    }
}

/* Bytes are hexadecimal: two characters each. */
static void add_json(struct rlk_buffer *b, const struct rlk_column *column,
                     const rowlock_value *value)
{
    bool as_number = is_scalar(column->kind);
    if (value->kind == ROWLOCK_NULL) {
        rlk_buffer_text(b, "null");
    } else if (column->is_wide && value->kind == ROWLOCK_DECIMAL) {
        /* As a number MySQL would take the highest bit for a sign. */
        rlk_buffer_text(b, "\"");
        rlk_buffer_add(b, value->text, value->length);
        rlk_buffer_text(b, "\"");
    } else if (as_number && !is_scalar(value->kind)) {
        /* A decimal for a column of reals. */
        rlk_buffer_real(b, read_real(value));
    } else {
        rlk_buffer_text(b, as_number ? "" : "\"");
        if (is_scalar(value->kind))
            add_scalar(b, value);
        else if (value->kind == ROWLOCK_BYTES)
            rlk_buffer_hex(b, value->text, value->length);
        else
            add_json_text(b, value->text, value->length);
        rlk_buffer_text(b, as_number ? "" : "\"");
    }
}

/* ---- rows */

struct packing {
    struct rlk_pack *pack;
    bool json;
    bool first_row;
    size_t at;
};

static void put(struct packing *p, const struct rlk_column *column, const rowlock_value *value)
{
    rowlock_value fit = rlk_fit(column, value);
    struct rlk_buffer *b = &p->pack->part[p->json ? 0 : p->at];
    if (p->json)
        rlk_buffer_text(b, p->at ? "," : p->first_row ? "[[" : ",[");
    else
        rlk_buffer_text(b, p->first_row ? "{" : ",");
    if (p->json)
        add_json(b, column, &fit);
    else
        add_element(b, &fit);
    p->at++;
}

static void pack_row(struct packing *p, const rowlock_table *t, const struct rlk_shape *shape,
                     const rowlock_change *change)
{
    p->at = 0;
    for (size_t i = 0; i < t->keys; i++)
        put(p, &t->all[i], &change->key[i]);
    if (rlk_packs_versions(shape)) {
        rowlock_value version = rowlock_int(change->version);
        put(p, &t->kind[ROWLOCK_INT], &version);
    }
    for (size_t i = 0; i < rlk_values_of(t, shape); i++)
        put(p, rlk_value_column(t, shape, i), &change->values[i]);
    if (p->json)
        rlk_buffer_text(p->pack->part, "]");
}

int rlk_pack_rows(struct rlk_pack *pack, const rowlock_table *t, const struct rlk_shape *shape,
                  const rowlock_change *changes, const size_t *order, size_t count)
{
    bool json = t->db->driver->packing == RLK_JSON;
    bool versions = rlk_packs_versions(shape);
    size_t parts = json ? 1 : t->keys + versions + rlk_values_of(t, shape);
    pack->part = rlk_alloc(parts * sizeof *pack->part);
    pack->parts = pack->part ? parts : 0;
    struct packing p = {.pack = pack, .json = json};
    for (size_t i = 0; pack->part && i < count; i++) {
        p.first_row = i == 0;
        pack_row(&p, t, shape, &changes[order[i]]);
    }
    bool no_memory = !pack->part;
    for (size_t i = 0; i < pack->parts; i++) {
        rlk_buffer_text(&pack->part[i], json ? "]" : "}");
        no_memory = no_memory || pack->part[i].no_memory;
    }
    return no_memory ? rlk_fail(t->db, ROWLOCK_ENOMEM, "out of memory") : ROWLOCK_OK;
}

void rlk_pack_clear(struct rlk_pack *pack)
{
    for (size_t i = 0; i < pack->parts; i++)
        rlk_buffer_clear(&pack->part[i]);
    rlk_free(pack->part);
    *pack = (struct rlk_pack){0};
}
