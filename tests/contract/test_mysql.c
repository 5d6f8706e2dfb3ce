/* SPDX-License-Identifier: MIT
 *
 * The contract on MySQL and MariaDB. What is tested stands in the other files of this folder.
 */
#include "contract.h"

/* MariaDB has these in information_schema, MySQL in performance_schema. */
static const char *const written[] = {
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

static const char *const settings[] = {
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

static void only_here(const struct contract *c)
{
    contract_mysql_bells(c);
    contract_mysql_many(c);
    contract_mysql_objects(c);
    contract_mysql_charsets(c);
}

int main(void)
{
    return contract_run(&(struct contract){
        .raw = &raw_mysql,
        .has_server = true,
        .begin = "START TRANSACTION",
        .lock = "FOR UPDATE",
        .written = written,
        .settings = settings,
        .own = only_here,
    });
}
