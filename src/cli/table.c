/* SPDX-License-Identifier: MIT
 *
 * Lays out tables for people. Programs read JSON.
 */
#include "table.h"

#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer texts are shown in full, but do not push everybody else's columns away. */
#define WIDEST 40

void table_begin(struct table *table, const char *const *headings, size_t columns)
{
    *table = (struct table){.headings = headings, .columns = columns};
}

char **table_row(struct table *table)
{
    size_t cells = (table->rows + 1) * table->columns;
    table->cells = must_have(realloc(table->cells, cells * sizeof *table->cells));
    return table->cells + table->rows++ * table->columns;
}

static int width_of(const struct table *table, size_t column)
{
    int widest = columns_of(table->headings[column]);
    for (size_t row = 0; row < table->rows; row++) {
        int width = columns_of(table->cells[row * table->columns + column]);
        if (width > widest && width <= WIDEST)
            widest = width;
    }
    return widest;
}

static void print_row(const struct table *table, const char *const *cells, const int *widths)
{
    size_t last = table->columns - 1;
    while (last > 0 && !cells[last][0])
        last--;
    for (size_t i = 0; i < last; i++) {
        int padding = widths[i] - columns_of(cells[i]) + 2;
        printf("%s%*s", cells[i], padding > 2 ? padding : 2, "");
    }
    puts(cells[last]);
}

void table_print(struct table *table)
{
    int *widths = must_have(calloc(table->columns, sizeof *widths));
    for (size_t i = 0; i < table->columns; i++)
        widths[i] = width_of(table, i);
    print_row(table, table->headings, widths);
    for (size_t row = 0; row < table->rows; row++)
        print_row(table, (const char *const *)table->cells + row * table->columns, widths);
    for (size_t i = 0; i < table->rows * table->columns; i++)
        free(table->cells[i]);
    free(table->cells);
    free(widths);
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

void table_of_grants(const struct snapshot *snapshot)
{
    static const char *const headings[] = {"NAME",  "TOKEN",      "KIND", "HELD BY",
                                           "SINCE", "LEASE LEFT", "NOTE"};
    struct table table;
    table_begin(&table, headings, sizeof headings / sizeof headings[0]);
    for (size_t i = 0; i < snapshot->grant_count; i++) {
        const rowlock_grant *grant = &snapshot->grants[i];
        char **cell = table_row(&table);
        *cell++ = printable(grant->name);
        *cell++ = number(grant->token);
        *cell++ = kind(grant->permits);
        *cell++ = holder_text(grant);
        *cell++ = duration(grant_age_ms(grant));
        *cell++ = lease(grant->remaining_ms);
        *cell++ = printable(grant->note);
    }
    table_print(&table);
}

void table_of_waiters(const struct snapshot *snapshot)
{
    static const char *const headings[] = {"NAME", "PLACE",  "WANTS", "WAITS",
                                           "FOR",  "TICKET", "NOTE"};
    struct table table;
    table_begin(&table, headings, sizeof headings / sizeof headings[0]);
    for (size_t i = 0; i < snapshot->waiter_count; i++) {
        const rowlock_waiter *waiter = &snapshot->waiters[i];
        char **cell = table_row(&table);
        *cell++ = printable(waiter->name);
        *cell++ = waiter->place ? number(waiter->place) : copy("gone");
        *cell++ = kind(waiter->permits);
        *cell++ = waiter_text(waiter);
        *cell++ = duration(waiter->waited_ms);
        *cell++ = number(waiter->ticket);
        *cell++ = printable(waiter->note);
    }
    table_print(&table);
}
