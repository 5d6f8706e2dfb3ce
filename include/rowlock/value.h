/* SPDX-License-Identifier: MIT
 *
 * rowlock: a value of a column, as you give it and as you read it. See rowlock/versions.h.
 *
 *     rowlock_value key = rowlock_int(42);
 *     rowlock_value values[] = {rowlock_decimal("19.90"), rowlock_text("blue"), rowlock_null()};
 */
#ifndef ROWLOCK_VALUE_H
#define ROWLOCK_VALUE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kind says which members of rowlock_value count. A column is read as one kind on every
 * database: docs/VERSIONS.md has the list. */
typedef enum rowlock_kind {
    ROWLOCK_NULL = 0,
    /* number */
    ROWLOCK_INT = 1,
    /* real: a double. PostgreSQL has NaN and infinity, SQLite has infinity, MySQL has neither. */
    ROWLOCK_REAL = 2,
    /* text and length: exact digits, "19.90". PostgreSQL also has "NaN", "Infinity" and
     * "-Infinity". Also for integers above 2^63 - 1 of an unsigned
     * column of MySQL or MariaDB. */
    ROWLOCK_DECIMAL = 3,
    /* text and length: UTF-8 */
    ROWLOCK_TEXT = 4,
    /* text and length: any bytes */
    ROWLOCK_BYTES = 5,
    /* number: 0 or 1 */
    ROWLOCK_BOOL = 6,
    /* text and length: a date or a time as the database writes it, in the time zone of the
     * session */
    ROWLOCK_TIME = 7
} rowlock_kind;

/* text is not terminated.
 *   - A value that you give: text is yours, and must stay until the call returns.
 *   - A value that you are given: text is valid as long as the call that gave it says. */
typedef struct rowlock_value {
    rowlock_kind kind;
    int reserved;
    int64_t number;
    double real;
    const char *text;
    size_t length;
} rowlock_value;

static inline rowlock_value rowlock_null(void)
{
    rowlock_value v = {ROWLOCK_NULL, 0, 0, 0, NULL, 0};
    return v;
}

static inline rowlock_value rowlock_int(int64_t number)
{
    rowlock_value v = {ROWLOCK_INT, 0, number, 0, NULL, 0};
    return v;
}

static inline rowlock_value rowlock_real(double real)
{
    rowlock_value v = {ROWLOCK_REAL, 0, 0, real, NULL, 0};
    return v;
}

static inline rowlock_value rowlock_bool(int truth)
{
    rowlock_value v = {ROWLOCK_BOOL, 0, truth ? 1 : 0, 0, NULL, 0};
    return v;
}

/* rowlock_textn takes any memory and one of the kinds with text and length. text NULL: the value is
 * NULL. */
static inline rowlock_value rowlock_textn(rowlock_kind kind, const void *text, size_t length)
{
    rowlock_value v = {text ? kind : ROWLOCK_NULL, 0, 0, 0, (const char *)text, text ? length : 0};
    return v;
}

/* rowlock_text, rowlock_decimal and rowlock_time take a terminated string. NULL: the value is
 * NULL. */
static inline rowlock_value rowlock_text(const char *text)
{
    return rowlock_textn(ROWLOCK_TEXT, text, text ? strlen(text) : 0);
}

static inline rowlock_value rowlock_decimal(const char *text)
{
    return rowlock_textn(ROWLOCK_DECIMAL, text, text ? strlen(text) : 0);
}

static inline rowlock_value rowlock_time(const char *text)
{
    return rowlock_textn(ROWLOCK_TIME, text, text ? strlen(text) : 0);
}

static inline rowlock_value rowlock_bytes(const void *bytes, size_t length)
{
    return rowlock_textn(ROWLOCK_BYTES, bytes, length);
}

#ifdef __cplusplus
}
#endif
#endif
