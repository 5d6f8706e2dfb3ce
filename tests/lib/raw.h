/* SPDX-License-Identifier: MIT
 *
 * The databases as their own clients see them, so that tests can look, and meddle, behind rowlock's
 * back. One struct for each database; nothing here goes through rowlock but the adoption.
 *
 * A session is a connection of the vendor's library. What cannot work ends the test program with a
 * message: a test that cannot be set up has failed.
 */
#ifndef RAW_H
#define RAW_H

#include "public.h"
#include <stdbool.h>
#include <stddef.h>

struct raw {
    const char *name; /* "postgres" */
    const char *url_env; /* the environment variable with the URL of a database to test on */
    const char *clock; /* SQL: its time now, in microseconds since 1970 */
    int tick_us; /* a lease runs from so much later on, since the clock counts no finer; 0: at once */
    void *(*open)(const char *url);
    void (*close)(void *session);
    /* One statement, whose rows are thrown away. False with *why, cut to fit, when it fails. */
    bool (*run)(void *session, const char *sql, char *why, size_t cap);
    /* First column of the first row as text. False if there is no row, or it is NULL. */
    bool (*ask)(void *session, const char *sql, char *out, size_t cap);
    /* A transaction pooler stands between; NULL: this database has none. */
    bool (*pooled)(void *session);
    int (*adopt)(rowlock_db **out, void *session, const rowlock_db_options *options,
                 rowlock_error *err);
};

extern const struct raw raw_postgres, raw_mysql, raw_sqlite;

/* On an open session; the program ends if the statement fails. */
void raw_run(const struct raw *raw, void *session, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
long long raw_int(const struct raw *raw, void *session, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same in a session that no test has, each statement committed by itself. */
void db_exec(const struct raw *raw, const char *url, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
long long db_int(const struct raw *raw, const char *url, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* For drivers of raw: ends the program. */
void raw_failed(const char *what, const char *why) __attribute__((noreturn));

#endif
