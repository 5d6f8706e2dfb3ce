/* SPDX-License-Identifier: MIT
 *
 * One suite for what rowlock promises, run on each database by a program of its own. The subjects are
 * the files of this folder, each with one entry point below. Nothing here differs between databases
 * but what a test asks of struct contract.
 */
#ifndef CONTRACT_H
#define CONTRACT_H

#include "public.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quick.h"
#include "raw.h"
#include "tap.h"

struct contract {
    const char *database; /* raw->name */
    const struct raw *raw;
    const char *url;
    bool has_server; /* several transactions may write at once; connections can be lost */
    bool pooled; /* found out: a session of ours is not one of the server's */
    const char *begin; /* SQL: starts a transaction that will write */
    const char *lock; /* SQL: what makes a SELECT lock the rows it finds; "" where begin does */
    /* SQL with the same meaning for different versions: the first that answers is right. */
    const char *const *written; /* a number that grows with everything the server writes */
    const char *const *settings; /* one text made of all settings and belongings of the session */
    const char *part; /* a group of subjects, as in contract.c; NULL: all */
    const char *const *only; /* subjects by name; NULL: all */
    void (*own)(const struct contract *c); /* what only this database has; NULL: nothing */
};

/* Run all subjects on raw and url: the exit status of the program. */
int contract_run(const struct contract *contract);

void contract_basics(const struct contract *c);
void contract_waiting(const struct contract *c);
void contract_names(const struct contract *c);
void contract_leases(const struct contract *c);
void contract_owners(const struct contract *c);
void contract_tokens(const struct contract *c);
void contract_sweep(const struct contract *c);
void contract_list(const struct contract *c);
void contract_install(const struct contract *c);
void contract_adopt(const struct contract *c);
void contract_transaction(const struct contract *c);
void contract_keeper(const struct contract *c);
void contract_errors(const struct contract *c);
void contract_options(const struct contract *c);
void contract_fork(const struct contract *c);
void contract_stalls(const struct contract *c);
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
void contract_costs(const struct contract *c);
void contract_queue(const struct contract *c);
void contract_shared(const struct contract *c);
void contract_counted(const struct contract *c);
void contract_many(const struct contract *c);
void contract_cycle(const struct contract *c);
void contract_start(const struct contract *c);
void contract_wakeup(const struct contract *c);
void contract_query(const struct contract *c);
void contract_versions(const struct contract *c);
void contract_read_many(const struct contract *c);
void contract_triggers(const struct contract *c);
void contract_batches(const struct contract *c);
void contract_once(const struct contract *c);
void contract_types(const struct contract *c);
void contract_within(const struct contract *c);
void contract_retry(const struct contract *c);
void contract_walk(const struct contract *c);
void contract_obstacles(const struct contract *c);
void contract_misfit(const struct contract *c);
void contract_interleave(const struct contract *c);

/* How many rows rowlock_locks has for a name. */
int rows_of(const struct contract *c, const char *name);
bool is_sqlite(const struct contract *c);
bool is_postgres(const struct contract *c);
bool is_mysql(const struct contract *c);

/* Ask the first of several statements that has an answer; ends the program if none has. */
void ask_any(const struct contract *c, void *session, const char *const *sql, char *out,
             size_t cap);

/* A URL whose tables have this prefix and are new; drop_tables() removes them and frees it. */
char *fresh_tables(const struct contract *c, const char *prefix);
void drop_tables(const struct contract *c, const char *prefix, char *url);
/* No row gets into this table any more. A SQLite file then does this: ABORT ends the statement, ROLLBACK the
 * transaction. */
void refuse_rows(const struct contract *c, const char *prefix, const char *table, const char *does);

/* Checks that got is the result wanted, and says what the library had to say if not. */
bool is_result(const rowlock_db *db, int got, int want, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
