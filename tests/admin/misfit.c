/* SPDX-License-Identifier: MIT
 *
 * Answers of another shape than was asked for, as from routines of another version: the real
 * server's own routine is replaced by one with a column more or less, a NULL, two rows. Nothing
 * may crash, and no grant may be believed. */
#include "contract.h"

#define MYSQL_HEAD                                                                                 \
    "CREATE PROCEDURE sh_grant(p_name VARBINARY(255), p_permits INT, p_owner VARBINARY(255), "     \
    "p_request BIGINT, p_ttl BIGINT, p_host VARBINARY(255), p_pid BIGINT, "                        \
    "p_program VARBINARY(255), p_note VARBINARY(255), p_ticket BIGINT, p_unfair INT, p_joins INT)" \
    " BEGIN "
#define MYSQL_ROW \
    "p_name, 0, 0, p_owner, 1, 1, 9999999999999999, p_ttl, 0, p_host, p_pid, p_program, p_note, 2"

static const struct wrong {
    const char *what, *mysql;
} wrong[] = {
    {"a column more", "SELECT 1, 0, 1, 1, " MYSQL_ROW ", 1"},
    {"forty columns more",
     "SELECT 1, 0, 1, 1, " MYSQL_ROW ", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
     "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1"},
    {"a column less", "SELECT 1, 0, 1"},
    {"a text for a number", "SELECT 'one', 0, 1, 1"},
    {"NULL for whether it is granted", "SELECT NULL, 0, 1, 1"},
    {"a grant without a token", "SELECT 1, 0, NULL, 1"},
    {"a grant whose row has no token",
     "SELECT 1, 0, NULL, NULL, p_name, 0, 0, p_owner, 0, 1, 9999999999999999, p_ttl, 0, "
     "p_host, p_pid, p_program, p_note, 2"},
    {"two rows", "SELECT 1, 0, 1, 1 UNION ALL SELECT 1, 0, 2, 2"},
    {"two answers", "SELECT 1, 0, 1, 1; SELECT 1, 0, 1, 1"},
    {"a time before 1970", "SELECT 1, 0, 1, -9223372036854775807"},
    {"no answer", "DO 0"},
};

static void mysql_answers(const struct contract *c, void *session, rowlock_db *db,
                          const struct wrong *w)
{
    OWNED(lock) rowlock_lock *lock = must_lock(db, "x");
    raw_run(c->raw, session, "DROP PROCEDURE sh_grant");
    raw_run(c->raw, session, MYSQL_HEAD "%s; END", w->mysql);
    is_result(db, try_lock(lock, 5000), ROWLOCK_EUNCERTAIN, "%s: the grant is uncertain", w->what);
    tap_ok(strstr(why(db), "another shape") != NULL, "%s: and the text says why", w->what);
}

/* PostgreSQL checks a function's result itself, so there the tables answer. */
static void postgres_answers(const struct contract *c, void *session, const char *url)
{
    int64_t token, when;
    OWNED(db) rowlock_db *db = must_open(url);
    raw_run(c->raw, session, "ALTER TABLE sh_tokens ALTER token TYPE text");
    is_result(db, rowlock_last_grant(db, "x", &token, &when), ROWLOCK_ESCHEMA,
              "a text for a number: a read says that the tables are others");
    raw_run(c->raw, session, "ALTER TABLE sh_tokens ALTER token TYPE bigint USING token::bigint");
    /* The connection has a plan of the other table. */
    raw_run(c->raw, session, "ALTER TABLE sh_tokens ALTER granted DROP NOT NULL");
    raw_run(c->raw, session, "UPDATE sh_tokens SET granted = NULL");
    is_result(db, rowlock_last_grant(db, "x", &token, &when), ROWLOCK_ESCHEMA,
              "NULL for a number: likewise");
}

/* A batch whose table is changed after it was looked at. */
static void batch_answers(const struct contract *c, void *session, rowlock_db *db)
{
    static const char *const key[] = {"id", NULL};
    OWNED(table) rowlock_table *table = NULL;
    rowlock_value ids[] = {rowlock_int(1), rowlock_int(2)};
    rowlock_change changes[] = {{.key = &ids[0], .version = 1}, {.key = &ids[1], .version = 1}};
    raw_run(c->raw, session, "DROP TABLE IF EXISTS sh_rows");
    raw_run(c->raw, session,
            "CREATE TABLE sh_rows (id bigint PRIMARY KEY, version bigint NOT NULL)");
    raw_run(c->raw, session, "INSERT INTO sh_rows VALUES (1, 1), (2, 1)");
    is_result(db, open_table(db, ABOUT(.name = "sh_rows", .key = key), &table), ROWLOCK_OK,
              "a table is looked at");
    raw_run(c->raw, session, "ALTER TABLE sh_rows ALTER version TYPE numeric");
    is_result(db, rowlock_touch(table, changes, 2, NULL), ROWLOCK_EUNCERTAIN,
              "a batch that answers with decimals for versions is not believed");
    raw_run(c->raw, session, "DROP TABLE sh_rows");
}

void contract_misfit(const struct contract *c)
{
    if (!c->has_server || c->pooled)
        return;
    OWNED(text) char *url = fresh_tables(c, "sh_");
    OWNED(session) void *session = c->raw->open(c->url);
    OWNED(db) rowlock_db *db = must_open(url);
    rowlock_lock *lock = must_lock(db, "x");
    tap_is_int(try_lock(lock, 5000), ROWLOCK_OK, "our own routines answer as they should");
    rowlock_lock_close(lock);
    for (size_t i = 0; is_mysql(c) && i < COUNT(wrong); i++)
        mysql_answers(c, session, db, &wrong[i]);
    if (is_postgres(c)) {
        batch_answers(c, session, db);
        postgres_answers(c, session, url);
    }
}
