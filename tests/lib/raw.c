/* SPDX-License-Identifier: MIT
 *
 * What raw sessions of all databases share: formatted statements, and giving up.
 * The vendors' calls are in raw_postgres.c, raw_mysql.c and raw_sqlite.c.
 */
#include "raw.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void raw_failed(const char *what, const char *why)
{
    printf("Bail out! %s: %s\n", what, why);
    fflush(stdout);
    exit(1);
}

static char *format_sql(const char *format, va_list arguments)
{
    char *sql = NULL;
    if (vasprintf(&sql, format, arguments) < 0)
        raw_failed("statement", "out of memory");
    return sql;
}

static void run_or_die(const struct raw *raw, void *session, char *sql)
{
    char why[500];
    if (!raw->run(session, sql, why, sizeof why)) {
        fprintf(stderr, "# %.300s\n", sql);
        raw_failed("statement failed", why);
    }
    free(sql);
}

static long long int_or_die(const struct raw *raw, void *session, char *sql)
{
    char text[100], *end = NULL;
    bool answered = raw->ask(session, sql, text, sizeof text);
    long long number = answered ? strtoll(text, &end, 10) : 0;
    if (!answered || end == text)
        raw_failed("no number came from", sql);
    free(sql);
    return number;
}

void raw_run(const struct raw *raw, void *session, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    run_or_die(raw, session, format_sql(format, arguments));
    va_end(arguments);
}

long long raw_int(const struct raw *raw, void *session, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    long long number = int_or_die(raw, session, format_sql(format, arguments));
    va_end(arguments);
    return number;
}

void db_exec(const struct raw *raw, const char *url, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    void *session = raw->open(url);
    run_or_die(raw, session, format_sql(format, arguments));
    raw->close(session);
    va_end(arguments);
}

long long db_int(const struct raw *raw, const char *url, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    void *session = raw->open(url);
    long long number = int_or_die(raw, session, format_sql(format, arguments));
    raw->close(session);
    va_end(arguments);
    return number;
}
