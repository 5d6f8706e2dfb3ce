/* SPDX-License-Identifier: MIT
 *
 * The rows of a batch as one parameter: PostgreSQL's arrays in their binary form, JSON, and SQL's
 * own texts. */
#include "hand.h"

#include <endian.h>

enum { INT8_OID = 20, TEXT_OID = 25 };

static char *put_int(char *at, uint32_t number)
{
    uint32_t wire = htobe32(number);
    memcpy(at, &wire, sizeof wire);
    return at + sizeof wire;
}

/* An array: dimensions, nulls, type, count, lowest index; then length and bytes of each. */
static char *begin_array(char *at, uint32_t type)
{
    at = put_int(at, 1);
    at = put_int(at, 0);
    at = put_int(at, type);
    at = put_int(at, BATCH_ROWS);
    return put_int(at, 1);
}

static char *put_numbers(char *at, const int64_t *numbers)
{
    at = begin_array(at, INT8_OID);
    for (int i = 0; i < BATCH_ROWS; i++) {
        uint64_t wire = htobe64((uint64_t)numbers[i]);
        at = put_int(at, sizeof wire);
        memcpy(at, &wire, sizeof wire);
        at += sizeof wire;
    }
    return at;
}

static char *put_texts(char *at, const struct rows *rows)
{
    at = begin_array(at, TEXT_OID);
    for (int i = 0; i < BATCH_ROWS; i++) {
        size_t length = strlen(rows->note[i]);
        at = put_int(at, (uint32_t)length);
        memcpy(at, rows->note[i], length);
        at += length;
    }
    return at;
}

/* The notes here need no escapes in JSON. */
static char *put_json(char *at, const struct rows *rows)
{
    for (int i = 0; i < BATCH_ROWS; i++)
        at += sprintf(at, "%c[%" PRId64 ",%" PRId64 ",%" PRId64 ",\"%s\"]", i ? ',' : '[',
                      rows->id[i], rows->version[i], rows->amount[i], rows->note[i]);
    *at++ = ']';
    return at;
}

static char *put_quoted(char *at, const char *text)
{
    *at++ = '\'';
    for (; *text; *at++ = *text++)
        if (*text == '\'' || *text == '\\')
            *at++ = *text;
    *at++ = '\'';
    return at;
}

static char *put_selects(char *at, const struct rows *rows)
{
    for (int i = 0; i < BATCH_ROWS; i++) {
        at += sprintf(at,
                      i ? " UNION ALL SELECT %" PRId64 ",%" PRId64 ",%" PRId64 ","
                        : "SELECT %" PRId64 " id,%" PRId64 " version,%" PRId64 " amount,",
                      rows->id[i], rows->version[i], rows->amount[i]);
        at = put_quoted(at, rows->note[i]);
        if (i == 0)
            at += sprintf(at, " note");
    }
    return at;
}

static char *put_tuples(char *at, const struct rows *rows)
{
    for (int i = 0; i < BATCH_ROWS; i++) {
        at +=
            sprintf(at, "%s(%" PRId64 ",%" PRId64 ",", i ? "," : "", rows->id[i], rows->amount[i]);
        at = put_quoted(at, rows->note[i]);
        at += sprintf(at, ",1)");
    }
    return at;
}

size_t hand_list(const struct rows *rows, enum parameter which, char *out)
{
    char *end = which == IDS        ? put_numbers(out, rows->id)
                : which == VERSIONS ? put_numbers(out, rows->version)
                : which == AMOUNTS  ? put_numbers(out, rows->amount)
                : which == NOTES    ? put_texts(out, rows)
                : which == JSON     ? put_json(out, rows)
                : which == SELECTS  ? put_selects(out, rows)
                                    : put_tuples(out, rows);
    return (size_t)(end - out);
}
