/* SPDX-License-Identifier: MIT
 *
 * What raw sessions of all databases share: formatted statements, and giving up.
 * The vendors' calls are in raw_postgres.c, raw_mysql.c and raw_sqlite.c.
 */
#include "raw.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* ---- statements in a session of their own */

/* Servers take some milliseconds to open a session, so one is kept for the next statement. A file has none: its
 * locks belong to the process. */
static struct {
    pthread_mutex_t guard;
    pid_t process;
    char *url;
    void *session;
} kept = {.guard = PTHREAD_MUTEX_INITIALIZER};

static void give_up_kept(const struct raw *raw)
{
    if (kept.session && kept.process == getpid()) /* else it is the parent's */
        raw->close(kept.session);
    kept.session = NULL;
    free(kept.url);
    kept.url = NULL;
}

/* False: another thread has it, or there is none. */
static bool take_kept(const struct raw *raw, const char *url)
{
    if (strcmp(raw->name, "sqlite") == 0 || pthread_mutex_trylock(&kept.guard) != 0)
        return false;
    if (kept.process != getpid() || !kept.url || strcmp(kept.url, url) != 0) {
        give_up_kept(raw);
        kept.process = getpid();
        kept.session = raw->open(url);
        kept.url = strdup(url);
    }
    return true;
}

/* It may have been killed, or its server restarted. Then a new one shows what is wrong, if anything is. */
static void give_back_kept(const struct raw *raw, bool worked)
{
    if (!worked)
        give_up_kept(raw);
    pthread_mutex_unlock(&kept.guard);
}

void db_exec(const struct raw *raw, const char *url, const char *format, ...)
{
    char ignored[500];
    bool done = false;
    va_list arguments;
    va_start(arguments, format);
    char *sql = format_sql(format, arguments);
    va_end(arguments);
    if (take_kept(raw, url)) {
        done = raw->run(kept.session, sql, ignored, sizeof ignored);
        give_back_kept(raw, done);
    }
    if (done) {
        free(sql);
        return;
    }
    void *session = raw->open(url);
    run_or_die(raw, session, sql);
    raw->close(session);
}

long long db_int(const struct raw *raw, const char *url, const char *format, ...)
{
    char text[100] = "", *end = text;
    long long number = 0;
    va_list arguments;
    va_start(arguments, format);
    char *sql = format_sql(format, arguments);
    va_end(arguments);
    if (take_kept(raw, url)) {
        if (raw->ask(kept.session, sql, text, sizeof text))
            number = strtoll(text, &end, 10);
        give_back_kept(raw, end > text);
    }
    if (end > text) {
        free(sql);
        return number;
    }
    void *session = raw->open(url);
    number = int_or_die(raw, session, sql);
    raw->close(session);
    return number;
}
