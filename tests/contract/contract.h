/* SPDX-License-Identifier: MIT
 *
 * One suite for what rowlock promises. Each database has a program that runs it. The subjects are
 * the files of this folder, each with one entry point below. A test that differs by database asks
 * struct contract. */
#pragma once

#include "quick.h"
#include "raw.h"

struct contract {
    /* raw->name */
    const char *database;
    const struct raw *raw;
    const char *url;
    /* several transactions may write at once; connections can be lost */
    bool has_server;
    /* found out at the start: a session of ours is not one of the server's */
    bool pooled;
    /* SQL: starts a transaction that will write */
    const char *begin;
    /* SQL: makes a SELECT lock the rows it finds; "" if begin does that */
    const char *lock;
    /* SQL with the same meaning for different versions of the server. The first one that works is
     * used. */
    /* a number that grows with each write of the server */
    const char *const *written;
    /* one text of all settings and other state of the session */
    const char *const *settings;
    /* a group of subjects, as in contract.c; NULL: all */
    const char *part;
    /* subjects by name; NULL: all */
    const char *const *only;
    /* runs what only this database has; NULL: nothing */
    void (*own)(const struct contract *c);
};

/* Runs all subjects on raw and url. Returns the program's exit status. */
int contract_run(const struct contract *contract);

/* The subjects that each database runs, in this order: part, name, and whether also on handles of a
 * pool (contract.c). */
#define SUBJECTS(SUBJECT)              \
    SUBJECT(lock, install, PLAIN)      \
    SUBJECT(lock, basics, POOLED)      \
    SUBJECT(lock, names, PLAIN)        \
    SUBJECT(lock, leases, POOLED)      \
    SUBJECT(lock, owners, POOLED)      \
    SUBJECT(lock, tokens, POOLED)      \
    SUBJECT(lock, sweep, POOLED)       \
    SUBJECT(lock, housekeeping, PLAIN) \
    SUBJECT(lock, list, POOLED)        \
    SUBJECT(lock, measure, PLAIN)      \
    SUBJECT(lock, adopt, PLAIN)        \
    SUBJECT(lock, keeper, PLAIN)       \
    SUBJECT(lock, errors, PLAIN)       \
    SUBJECT(lock, options, PLAIN)      \
    SUBJECT(lock, fork, PLAIN)         \
    SUBJECT(lock, stalls, PLAIN)       \
    SUBJECT(lock, costs, POOLED)       \
    SUBJECT(lock, stats, POOLED)       \
    SUBJECT(lock, shared, POOLED)      \
    SUBJECT(lock, counted, POOLED)     \
    SUBJECT(queue, waiting, POOLED)    \
    SUBJECT(queue, queue, POOLED)      \
    SUBJECT(queue, many, POOLED)       \
    SUBJECT(queue, cycle, POOLED)      \
    SUBJECT(queue, start, POOLED)      \
    SUBJECT(queue, wakeup, POOLED)     \
    SUBJECT(tx, transaction, PLAIN)    \
    SUBJECT(tx, within, POOLED)        \
    SUBJECT(rows, query, POOLED)       \
    SUBJECT(rows, versions, POOLED)    \
    SUBJECT(rows, read_many, POOLED)   \
    SUBJECT(rows, triggers, PLAIN)     \
    SUBJECT(rows, batches, POOLED)     \
    SUBJECT(rows, once, POOLED)        \
    SUBJECT(rows, types, PLAIN)        \
    SUBJECT(rows, retry, POOLED)       \
    SUBJECT(rows, walk, POOLED)        \
    SUBJECT(rows, obstacles, PLAIN)    \
    SUBJECT(rows, misfit, PLAIN)       \
    SUBJECT(rows, interleave, PLAIN)   \
    SUBJECT(rows, own, PLAIN)

#define DECLARE_SUBJECT(part, name, pooling) void contract_##name(const struct contract *c);
SUBJECTS(DECLARE_SUBJECT)
/* Those of one database. */
void contract_sqlite_only(const struct contract *c);
void contract_sqlite_steps(const struct contract *c);
void contract_sqlite_rows(const struct contract *c);
void contract_postgres_only(const struct contract *c);
void contract_mysql_only(const struct contract *c);
void contract_mysql_many(const struct contract *c);
void contract_mysql_objects(const struct contract *c);
void contract_mysql_charsets(const struct contract *c);
void contract_postgres_first(const struct contract *c);
void contract_postgres_objects(const struct contract *c);

/* An environment variable. ROWLOCK_TEST_LONG=1, in check-more: what takes long is done in full. */
bool env_is_set(const char *variable);
/* How many rows rowlock_locks has for a name. */
int rows_of(const struct contract *c, const char *name);
/* A check of it. It waits for the last member of a quorum. */
void is_rows(const struct contract *c, const char *name, int wanted, const char *text);
/* The lease of the grant that a handle has is over by the database's clock. The handle is not
 * told. */
void end_lease(const struct contract *c, const rowlock_lock *lock);
/* Waits a long time until a session of the server waits for what another has locked. A file does
 * not show it: there the other only gets time to begin. */
bool somebody_waits(const struct contract *c);
/* The server ends the connection, and has rolled its transaction back. */
void kill_session(const struct contract *c, void *session);
void kill_id(const struct contract *c, long long id);
bool is_sqlite(const struct contract *c);
bool is_postgres(const struct contract *c);
bool is_mysql(const struct contract *c);

/* Asks the first of several statements that works. If none does, it ends the program. */
void ask_any(const struct contract *c, void *session, const char *const *sql, char *out,
             size_t cap);

/* A URL with this prefix: its tables are not there, or new. The end of the subject removes them, or
 * drop_tables(). */
char *no_tables(const struct contract *c, const char *prefix);
char *fresh_tables(const struct contract *c, const char *prefix);
void drop_tables(const struct contract *c, const char *prefix);
/* SQL: the numbers i from 0 to 9999. numbered: the text before each number; valid like that of textf(). */
#define DIGITS_(name)                                                                            \
    "(SELECT 0 AS d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 " \
    "UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) " name
#define NUMBERS                                                                             \
    "(SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d AS i FROM " DIGITS_("a") ", " DIGITS_( \
        "b") ", " DIGITS_("c") ", " DIGITS_("e") ") numbers"
const char *numbered(const struct contract *c, const char *before);

/* This table takes no more rows. action is for a SQLite file: ABORT ends the statement, ROLLBACK
 * the transaction. */
void refuse_rows(const struct contract *c, const char *prefix, const char *table, const char *does);

/* What rowlock_check() says of one thing. check_item() checks that the look itself goes well. */
struct found {
    const char *item;
    /* ROWLOCK_FINE: there was no such finding */
    rowlock_verdict verdict;
    /* of all findings */
    rowlock_verdict worst;
    char value[300], advice[600];
    /* there was another finding */
    bool further;
};
struct found check_item(rowlock_db *db, const char *item);

/* db_exec() and db_int() on the subject's database. */
#define exec_on(c, ...) db_exec((c)->raw, (c)->url, __VA_ARGS__)
#define int_on(c, ...) db_int((c)->raw, (c)->url, __VA_ARGS__)

/* Checks that got is want. If not, prints the library's error text. */
bool is_result(const rowlock_db *db, int got, int want, const char *text);
#define is_result(db, got, want, ...) (TAP_HERE, is_result(db, got, want, textf(__VA_ARGS__)))
