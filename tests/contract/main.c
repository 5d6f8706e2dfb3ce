/* SPDX-License-Identifier: MIT
 *
 * The contract on each database, with handles of their own connections and with those of a pool.
 * There is a program for each part, so that parts run side by side. The tests are in the other files of this folder. */
#include "contract.h"

#include "each.h"

static const char *const postgres_written[] = {
    "SELECT pg_current_wal_insert_lsn() - '0/0'",
    NULL,
};
static const char *const postgres_settings[] = {
    "SELECT md5(string_agg(name || '=' || setting, ',' ORDER BY name)) || ' ' || "
    "(SELECT count(*) FROM pg_prepared_statements) || ' ' || "
    "(SELECT count(*) FROM pg_cursors) || ' ' || "
    "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') FROM pg_settings "
    "WHERE name NOT LIKE 'plpgsql.%'",
    NULL,
};

/* MariaDB has these in information_schema, MySQL in performance_schema. */
static const char *const mysql_written[] = {
    "SELECT variable_value FROM information_schema.global_status "
    "WHERE variable_name = 'INNODB_LSN_CURRENT'",
    "SELECT variable_value FROM performance_schema.global_status "
    "WHERE variable_name = 'Innodb_redo_log_current_lsn'",
    NULL,
};

/* Variables that are results of statements, not settings. */
#define RESULTS                                                                                 \
    "('timestamp', 'last_insert_id', 'insert_id', 'identity', 'warning_count', 'error_count', " \
    "'rand_seed1', 'rand_seed2', 'in_transaction', 'last_gtid', 'pseudo_thread_id', "           \
    "'statement_id', 'gtid_binlog_pos', 'gtid_binlog_state', 'gtid_current_pos')"

static const char *const mysql_settings[] = {
    "SELECT CONCAT((SELECT SUM(CRC32(CONCAT(variable_name, '=', variable_value))) "
    "FROM information_schema.session_variables WHERE LOWER(variable_name) NOT IN " RESULTS "), "
    "' prepared ', (SELECT variable_value FROM information_schema.global_status "
    "WHERE variable_name = 'PREPARED_STMT_COUNT'))",
    "SELECT CONCAT((SELECT SUM(CRC32(CONCAT(variable_name, '=', variable_value))) "
    "FROM performance_schema.session_variables WHERE LOWER(variable_name) NOT IN " RESULTS "), "
    "' prepared ', (SELECT variable_value FROM performance_schema.global_status "
    "WHERE variable_name = 'Prepared_stmt_count'))",
    NULL,
};

static const char *const sqlite_settings[] = {
    "SELECT (SELECT journal_mode FROM pragma_journal_mode) || ' ' || "
    "(SELECT synchronous FROM pragma_synchronous) || ' ' || "
    "(SELECT timeout FROM pragma_busy_timeout) || ' ' || "
    "(SELECT foreign_keys FROM pragma_foreign_keys) || ' ' || "
    "(SELECT query_only FROM pragma_query_only) || ' ' || "
    "(SELECT cache_size FROM pragma_cache_size)",
    NULL,
};

static const struct contract contracts[] = {
    {.database = "postgres",
     .has_server = true,
     .begin = "BEGIN",
     .lock = "FOR UPDATE",
     .written = postgres_written,
     .settings = postgres_settings},
    {.database = "mysql",
     .has_server = true,
     .begin = "START TRANSACTION",
     .lock = "FOR UPDATE",
     .written = mysql_written,
     .settings = mysql_settings},
    {.database = "sqlite", .begin = "BEGIN IMMEDIATE", .lock = "", .settings = sqlite_settings},
};

/* A database that is not built in has no such file. */
static void own(const struct contract *c)
{
    if (RLK_WITH_POSTGRES && is_postgres(c))
        contract_postgres_only(c);
    if (RLK_WITH_MYSQL && is_mysql(c))
        contract_mysql_only(c);
    if (RLK_WITH_SQLITE && is_sqlite(c))
        contract_sqlite_only(c);
}

/* "queue" for the programs test_queue_mysql and test_queue_pooled_mysql. */
static const char *part_of(const char *program)
{
    static char part[50];
    snprintf(part, sizeof part, "%s", strchr(program, '_') + 1);
    *strchr(part, '_') = '\0';
    return part;
}

static int run(const struct raw *raw, const char *url)
{
    const struct contract *found = contracts;
    while (strcmp(found->database, raw->name) != 0)
        found++;
    struct contract c = *found;
    c.raw = raw;
    c.url = url;
    c.own = own;
    if (strstr(program_invocation_short_name, "_pooled_"))
        setenv("ROWLOCK_TEST_POOL", "1", 1);
    c.part = part_of(program_invocation_short_name);
    return contract_run(&c);
}

EACH_MAIN(run)
