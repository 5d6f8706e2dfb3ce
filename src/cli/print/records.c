/* SPDX-License-Identifier: MIT
 *
 * Records in JSON for programs: exact strings, and integers for fractions. And tables for people.
 */
#include "cli/print/print.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* NULL is null. Bytes that are not UTF-8 are escaped: a program's name may have any. */
static json_t *json_of_text(const char *text)
{
    json_t *value = text ? json_string(text) : json_null();
    if (!value) {
        char *safe = printable(text);
        value = json_string(safe);
        free(safe);
    }
    return value;
}

void json_put(json_t *object, const char *key, json_t *value)
{
    must_have(json_object_set_new(object, key, must_have(value)) == 0 ? object : NULL);
}

void json_put_text(json_t *object, const char *key, const char *text)
{
    json_put(object, key, json_of_text(text));
}

void json_put_integer(json_t *object, const char *key, int64_t value)
{
    json_put(object, key, json_integer(value));
}

void json_put_time(json_t *object, const char *key, int64_t us)
{
    char name[40];
    snprintf(name, sizeof name, "%s_us", key);
    json_put_integer(object, name, us);
    snprintf(name, sizeof name, "%s_at", key);
    json_put_text(object, name, time_text(us).text);
}

void json_put_result(json_t *object, int result)
{
    char text[40];
    const char *name = rowlock_result_name(result);
    snprintf(text, sizeof text, "%s", strncmp(name, "ROWLOCK_", 8) == 0 ? name + 8 : name);
    for (char *c = text; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    json_put_text(object, "result", text);
}

void json_append(json_t *array, json_t *value)
{
    must_have(json_array_append_new(array, value) == 0 ? array : NULL);
}

/* ---------------------------------------------------------------- records */

const char *verdict_text(rowlock_verdict verdict)
{
    return verdict == ROWLOCK_FINE ? "ok" : verdict == ROWLOCK_WARNING ? "warning" : "bad";
}

static void put_kind(json_t *object, int32_t permits)
{
    json_put_text(object, "kind", permits > 0 ? "counted" : kind_text(permits).text);
    json_put(object, "permits", permits > 0 ? json_integer(permits) : json_null());
}

static json_t *value_of(enum form form, const void *at)
{
    const int64_t *integer = at;
    const int32_t *number = at;
    switch (form) {
    case CHARACTERS:
        return json_of_text(at);
    case WORDS:
        return json_of_text(*(const char *const *)at);
    case INTEGER:
        return json_integer(*integer);
    case SHORT_INTEGER:
        return json_integer(*number);
    case BOOLEAN:
        return json_boolean(*number);
    case LESS_THAN_0:
        return json_boolean(*integer < 0);
    case IS_0:
        return json_boolean(*number == 0);
    case VERDICT:
        return json_of_text(verdict_text(*(const rowlock_verdict *)at));
    case TIME:
    case KIND:
        break;
    }
    return NULL;
}

json_t *json_of(const struct member *members, const void *record)
{
    json_t *object = must_have(json_object());
    for (; members->key; members++) {
        const void *at = (const char *)record + members->offset;
        if (members->form == TIME)
            json_put_time(object, members->key, *(const int64_t *)at);
        else if (members->form == KIND)
            put_kind(object, *(const int32_t *)at);
        else
            json_put(object, members->key, value_of(members->form, at));
    }
    return object;
}

/* ---------------------------------------------------------------- printing */

json_t *json_begin(const struct cli *cli)
{
    json_t *object = must_have(json_object());
    if (cli->member)
        json_put_integer(object, "member", cli->member);
    return object;
}

json_t *json_of_answer(const struct cli *cli, int result)
{
    json_t *object = json_begin(cli);
    json_put_result(object, result);
    return object;
}

void json_print(json_t *value, bool compact)
{
    char *text = must_have(json_dumps(value, JSON_ENSURE_ASCII | (compact ? 0 : JSON_INDENT(2))));
    puts(text);
    free(text);
    json_decref(value);
}

void json_print_answer(const struct cli *cli, int result, const char *key, json_t *value)
{
    json_t *object = json_of_answer(cli, result);
    if (key)
        json_put(object, key, value);
    json_print(object, false);
}

/* ---------------------------------------------------------------- tables */

/* A longer text is shown in full. The rest of its row follows on the next line. */
#define WIDEST 40

/* The rows of one page have the same widths. */
#define PAGE 1000

static void widen(struct table *table, const char *const *cells)
{
    for (size_t i = 0; i < table->columns; i++) {
        int width = columns_of(cells[i]);
        if (width > table->widths[i] && width <= WIDEST)
            table->widths[i] = width;
    }
}

static void print_row(const struct table *table, const char *const *cells)
{
    size_t last = table->columns - 1;
    int indent = 0;
    while (last > 0 && !cells[last][0])
        last--;
    for (size_t i = 0; i < last; i++) {
        int padding = table->widths[i] - columns_of(cells[i]) + 2;
        indent += table->widths[i] + 2;
        if (padding >= 2)
            printf("%s%*s", cells[i], padding, "");
        else
            printf("%s\n%*s", cells[i], indent, "");
    }
    puts(cells[last]);
}

/* The headings are above the first page. */
static void print_page(struct table *table)
{
    const char *const *cells = (const char *const *)table->cells;
    bool first = !table->widths;
    if (first) {
        table->widths = must_have(calloc(table->columns, sizeof *table->widths));
        widen(table, table->headings);
    }
    for (size_t row = 0; row < table->rows; row++)
        widen(table, cells + row * table->columns);
    if (first)
        print_row(table, table->headings);
    for (size_t row = 0; row < table->rows; row++)
        print_row(table, cells + row * table->columns);
    for (size_t i = 0; i < table->rows * table->columns; i++)
        free(table->cells[i]);
    table->rows = 0;
}

char **table_row(struct table *table)
{
    if (!table->cells)
        table->cells = must_have(calloc(PAGE * table->columns, sizeof *table->cells));
    if (table->rows == PAGE)
        print_page(table);
    return table->cells + table->rows++ * table->columns;
}

void table_json(struct table *table, json_t *row)
{
    fputs(table->rows++ == 0 ? "[\n  " : ",\n  ", stdout);
    if (json_dumpf(row, stdout, JSON_ENSURE_ASCII) != 0 && !ferror(stdout))
        must_have(NULL);
    json_decref(row);
}

void table_end(struct table *table)
{
    if (general.json)
        puts(table->rows ? "\n]" : "[]");
    else if (table->rows > 0 || !table->widths)
        print_page(table);
    free(table->cells);
    free(table->widths);
}
