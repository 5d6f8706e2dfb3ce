/* SPDX-License-Identifier: MIT
 *
 * rowlock: a value of a column, as it is given and as it is read. See rowlock/versions.h. */
#ifndef ROWLOCK_VALUE_H
#define ROWLOCK_VALUE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rowlock_kind {
    ROWLOCK_NULL = 0,
    ROWLOCK_INT = 1, /* number */
    ROWLOCK_REAL = 2, /* real: a double, which must be finite */
    /* text and length: digits, exact: "19.90". Also an integer above 2^63 - 1 of an unsigned column
     * of MySQL or MariaDB, when it is read and when it is given. */
    ROWLOCK_DECIMAL = 3,
    ROWLOCK_TEXT = 4, /* text and length: UTF-8 */
    ROWLOCK_BYTES = 5, /* text and length: any bytes */
    ROWLOCK_BOOL = 6, /* number: 0 or 1 */
    ROWLOCK_TIME = 7 /* text and length: a date or time as the database writes it, in the time zone
                        of its session */
} rowlock_kind;

/* What text points to stays its owner's: of a value you give, yours until the call returns; of one
 * you are given, valid as long as the call that gave it says. It is not terminated. */
typedef struct rowlock_value {
    rowlock_kind kind;
    int32_t reserved;
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

/* The text forms take a terminated string, NULL for NULL; or, with n, any memory. */
static inline rowlock_value rowlock_textn(rowlock_kind kind, const void *text, size_t length)
{
    rowlock_value v = {text ? kind : ROWLOCK_NULL, 0, 0, 0, (const char *)text, text ? length : 0};
    return v;
}

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
