/* SPDX-License-Identifier: MIT
 *
 * The table for people and the JSON for machines. Nothing is measured here. */
#include "bench.h"

#include <jansson.h>

#include <math.h>

static json_t *figures; /* an array of objects, each one figure */
static const char *database = "machine";

static json_t *add_figure(const char *key, const char *contender)
{
    json_t *figure =
        json_pack("{s:s, s:s, s:s}", "database", database, "what", key, "contender", contender);
    if (!figures)
        figures = json_array();
    if (!figure || json_array_append_new(figures, figure) != 0)
        die("out of memory");
    return figure;
}

static void add_real(json_t *figure, const char *key, double value)
{
    json_object_set_new(figure, key, json_real(value));
}

void report_machine(void)
{
    double us = disk_us(), processors = (double)sysconf(_SC_NPROCESSORS_ONLN);
    report_number("fdatasync_us", "", us);
    report_number("processors", "", processors);
    report_line("One fdatasync of 4 KB takes %.0f us here, on %.0f processors that clients and"
                " servers share.\n",
                us, processors);
}

void report_database(const char *name, const char *description)
{
    database = name;
    add_figure("server", description);
    printf("\n\n=== %s\n", description);
    fflush(stdout);
}

static void print_head(const char *unit, const int *clients, int columns)
{
    printf("  %-28s", "");
    for (int i = 0; i < columns; i++)
        printf("  %3d client%s %*s", clients[i], clients[i] == 1 ? " " : "s", 14, "");
    printf("\n  %-28s", "");
    for (int i = 0; i < columns; i++)
        printf("  %9s %6s %9s", unit, "ratio", "CPU us");
    putchar('\n');
}

static void print_outcome(const struct outcome *outcome, bool first)
{
    char ratio[16] = "";
    if (!first)
        snprintf(ratio, sizeof ratio, "%.2f", outcome->ratio);
    printf("  %9.0f %6s %9.1f", outcome->rate, ratio, outcome->cpu_us);
}

static void keep_outcome(const char *key, const char *contender, int clients,
                         const struct outcome *outcome)
{
    json_t *figure = add_figure(key, contender);
    json_object_set_new(figure, "clients", json_integer(clients));
    add_real(figure, "per_second", outcome->rate);
    add_real(figure, "ratio", outcome->ratio);
    add_real(figure, "ratio_low", outcome->low);
    add_real(figure, "ratio_high", outcome->high);
    add_real(figure, "client_user_cpu_us", outcome->cpu_us);
}

void report_contest(const char *key, const char *unit, const struct contender *contenders,
                    int count, const int *clients, int columns,
                    const struct outcome outcomes[][CONTENDERS_MAX])
{
    print_head(unit, clients, columns);
    for (int c = 0; c < count; c++) {
        printf("  %-28s", contenders[c].label);
        for (int i = 0; i < columns; i++) {
            print_outcome(&outcomes[i][c], c == 0);
            keep_outcome(key, contenders[c].label, clients[i], &outcomes[i][c]);
        }
        putchar('\n');
    }
    for (int c = 0; c < count; c++)
        if (contenders[c].legend)
            printf("    %s: %s\n", contenders[c].label, contenders[c].legend);
    fflush(stdout);
}

void report_columns(const struct column *columns, int count)
{
    printf("  %-28s", "");
    for (int i = 0; i < count; i++)
        printf("  %11s", columns[i].head);
    putchar('\n');
    fflush(stdout);
}

static void print_values(json_t *figure, const struct column *columns, const double *values,
                         int count)
{
    for (int i = 0; i < count; i++) {
        if (isnan(values[i])) {
            printf("  %11s", "-");
            continue;
        }
        printf("  %11.*f", columns[i].digits, values[i]);
        add_real(figure, columns[i].key, values[i]);
    }
    putchar('\n');
    fflush(stdout);
}

void report_row(const char *key, const char *contender, int waiters, const struct column *columns,
                const double *values, int count)
{
    json_t *figure = add_figure(key, contender);
    json_object_set_new(figure, "waiters", json_integer(waiters));
    printf("  %-28s", contender);
    print_values(figure, columns, values, count);
}

void report_clients(const char *key, const char *contender, int clients,
                    const struct column *columns, const double *values, int count)
{
    json_t *figure = add_figure(key, contender);
    json_object_set_new(figure, "clients", json_integer(clients));
    printf("  %2d  %-24s", clients, contender);
    print_values(figure, columns, values, count);
}

void report_line(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    fflush(stdout);
}

void report_number(const char *key, const char *contender, double value)
{
    add_real(add_figure(key, contender), "value", value);
}

void report_text(const char *key, const char *contender, const char *text)
{
    json_object_set_new(add_figure("promise", contender), key, json_string(text));
}

void report_list(const char *key, const double *values, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_real(values[i]));
    json_object_set_new(json_array_get(figures, json_array_size(figures) - 1), key, list);
}

void report_save(const char *path)
{
    if (!figures)
        figures = json_array();
    json_t *all = json_pack("{s:s?, s:O}", "commit", getenv("BENCH_COMMIT"), "figures", figures);
    if (!all || json_dump_file(all, path, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) != 0)
        die("cannot write %s", path);
    json_decref(all);
}
