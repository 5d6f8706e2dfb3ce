/* SPDX-License-Identifier: MIT
 *
 * Lays out tables for people. Programs read JSON.
 */
#include "cli/print/columns.h"

#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A longer text is shown in full. The rest of its row follows on the next line. */
#define WIDEST 40

/* The rows of one page have the same widths. */
#define PAGE 1000

void table_begin(struct table *table, const char *const *headings, size_t columns)
{
    *table = (struct table){.headings = headings, .columns = columns};
}

static int width_of(const struct table *table, size_t column)
{
    int widest = table->widths[column];
    for (size_t row = 0; row < table->rows; row++) {
        int width = columns_of(table->cells[row * table->columns + column]);
        if (width > widest && width <= WIDEST)
            widest = width;
    }
    return widest;
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
static void begin_printing(struct table *table)
{
    table->widths = must_have(calloc(table->columns, sizeof *table->widths));
    for (size_t i = 0; i < table->columns; i++)
        table->widths[i] = columns_of(table->headings[i]);
}

static void print_page(struct table *table)
{
    bool first = !table->widths;
    if (first)
        begin_printing(table);
    for (size_t i = 0; i < table->columns; i++)
        table->widths[i] = width_of(table, i);
    if (first)
        print_row(table, table->headings);
    for (size_t row = 0; row < table->rows; row++)
        print_row(table, (const char *const *)table->cells + row * table->columns);
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

void table_end(struct table *table)
{
    if (table->rows > 0 || !table->widths)
        print_page(table);
    free(table->cells);
    free(table->widths);
}

/* ---------------------------------------------------------------- of locks */

void lease_text(int64_t remaining_ms, char *text, size_t size)
{
    char duration[DURATION_TEXT_SIZE];
    duration_text(remaining_ms < 0 ? -remaining_ms : remaining_ms, duration);
    if (remaining_ms < 0)
        snprintf(text, size, "expired %s ago", duration);
    else
        snprintf(text, size, "%s", duration);
}

static char *copy(const char *text)
{
    return must_have(strdup(text));
}

static char *number(int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return copy(text);
}

static char *kind(int32_t permits)
{
    char text[KIND_TEXT_SIZE];
    kind_text(permits, text);
    return copy(text);
}

static char *duration(int64_t ms)
{
    char text[DURATION_TEXT_SIZE];
    duration_text(ms, text);
    return copy(text);
}

static char *lease(int64_t remaining_ms)
{
    char text[DURATION_TEXT_SIZE + 16];
    lease_text(remaining_ms, text, sizeof text);
    return copy(text);
}

void table_begin_grants(struct table *table)
{
    static const char *const headings[] = {"NAME",  "TOKEN",      "KIND", "HELD BY",
                                           "SINCE", "LEASE LEFT", "NOTE"};
    table_begin(table, headings, sizeof headings / sizeof headings[0]);
}

void table_add_grant(struct table *table, const rowlock_grant *grant)
{
    char **cell = table_row(table);
    *cell++ = printable(grant->name);
    *cell++ = number(grant->token);
    *cell++ = kind(grant->permits);
    *cell++ = holder_text(grant);
    *cell++ = duration(grant_age_ms(grant));
    *cell++ = lease(grant->remaining_ms);
    *cell++ = printable(grant->note);
}

void table_begin_waiters(struct table *table)
{
    static const char *const headings[] = {"NAME", "POSITION", "WANTS", "WAITER",
                                           "FOR",  "TICKET",   "NOTE"};
    table_begin(table, headings, sizeof headings / sizeof headings[0]);
}

void table_add_waiter(struct table *table, const rowlock_waiter *waiter)
{
    char **cell = table_row(table);
    *cell++ = printable(waiter->name);
    *cell++ = waiter->position ? number(waiter->position) : copy("gone");
    *cell++ = kind(waiter->permits);
    *cell++ = waiter_text(waiter);
    *cell++ = duration(waiter->waited_ms);
    *cell++ = number(waiter->ticket);
    *cell++ = printable(waiter->note);
}

void table_of_grants(const struct snapshot *snapshot)
{
    struct table table;
    table_begin_grants(&table);
    for (size_t i = 0; i < snapshot->grant_count; i++)
        table_add_grant(&table, &snapshot->grants[i]);
    table_end(&table);
}

void table_of_waiters(const struct snapshot *snapshot)
{
    struct table table;
    table_begin_waiters(&table);
    for (size_t i = 0; i < snapshot->waiter_count; i++)
        table_add_waiter(&table, &snapshot->waiters[i]);
    table_end(&table);
}
