/* SPDX-License-Identifier: MIT
 *
 * Lays out tables for people. Programs read JSON.
 */
#include "cli/print/print.h"

#include <stdlib.h>

/* A longer text is shown in full. The rest of its row follows on the next line. */
#define WIDEST 40

/* The rows of one page have the same widths. */
#define PAGE 1000

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
static void print_page(struct table *table)
{
    bool first = !table->widths;
    if (first)
        table->widths = must_have(calloc(table->columns, sizeof *table->widths));
    for (size_t i = 0; i < table->columns; i++) {
        if (first)
            table->widths[i] = columns_of(table->headings[i]);
        table->widths[i] = width_of(table, i);
    }
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

void table_json(struct table *table, json_t *row)
{
    json_print_element(row, table->rows++ == 0);
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
