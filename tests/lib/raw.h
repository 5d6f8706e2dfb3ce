/* SPDX-License-Identifier: MIT
 *
 * The databases through their own client libraries, so that tests can look at them, and change
 * them, without rowlock. There is one struct for each database. Only the adoption goes through
 * rowlock.
 *
 * A session is a connection of the client library. A failure ends the test program with a message:
 * a test that cannot be set up has failed. */
#pragma once

#include "public.h"

struct raw {
    /* "postgres" */
    const char *name;
    /* the environment variable with the URL of the test database */
    const char *url_env;
    /* SQL: the server's clock, in microseconds since 1970 */
    const char *clock;
    /* the resolution of the server's clock in microseconds: a lease may begin this much later; 0:
     * none */
    int tick_us;
    void *(*open)(const char *url);
    void (*close)(void *session);
    /* Runs one statement and drops its rows. false: it failed, and *why says why, cut to fit. */
    bool (*run)(void *session, const char *sql, char *why, size_t cap);
    /* The first column of the first row as text. false: there is no row, or it is NULL. */
    bool (*ask)(void *session, const char *sql, char *out, size_t cap);
    /* Is there a transaction pooler in between? NULL: this database has none. */
    bool (*pooled)(void *session);
    int (*adopt)(rowlock_db **out, void *session, const rowlock_db_options *options,
                 rowlock_error *err);
};

extern const struct raw raw_postgres, raw_mysql, raw_sqlite;

/* The database of a program that tests one. each_main() and contract_run() set it. */
extern const struct raw *raw_here;
/* "OWNED(session) void *session = raw->open(url)": a session of it. */
void owned_session_ends(void **session);

/* Runs a statement on an open session. A failure ends the program. */
void raw_run(const struct raw *raw, void *session, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
long long raw_int(const struct raw *raw, void *session, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same in a session that no test uses. Each statement is committed by itself. */
void db_exec(const struct raw *raw, const char *url, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
long long db_int(const struct raw *raw, const char *url, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The sessions of all clients at the server, with our own, which stays. Not for SQLite. */
long long raw_sessions(const struct raw *raw, const char *url);

/* Is the server a private one of this test? Then server-ctl.sh crashes, stops, freezes, thaws and
 * starts it. */
bool raw_is_ours(const struct raw *raw);
void raw_control(const struct raw *raw, const char *what);

/* Adopts a session, for tables with this prefix. NULL: the usual one. */
rowlock_db *must_adopt(const struct raw *raw, void *session, const char *prefix);

/* For the files of raw_. It ends the program. */
void raw_failed(const char *what, const char *why) __attribute__((noreturn));
/* Functions that have the same name in each. */
#define RAW_ADOPTS(kind)                                                                 \
    static int adopt(rowlock_db **out, void *session, const rowlock_db_options *options, \
                     rowlock_error *err)                                                 \
    {                                                                                    \
        return rowlock_db_adopt_##kind(session, options, out, err);                      \
    }
#define RAW_FUNCTIONS(kind)                                                              \
    .name = #kind, .open = open_session, .close = close_session, .run = run, .ask = ask, \
    .adopt = adopt
