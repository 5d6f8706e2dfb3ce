/* SPDX-License-Identifier: MIT
 *
 * The contract on PostgreSQL. What is tested stands in the other files of this folder.
 */
#include "contract.h"

static const char *const written[] = {
    "SELECT pg_current_wal_insert_lsn() - '0/0'",
    NULL,
};
static const char *const settings[] = {
    "SELECT md5(string_agg(name || '=' || setting, ',' ORDER BY name)) || ' ' || "
    "(SELECT count(*) FROM pg_prepared_statements) || ' ' || "
    "(SELECT count(*) FROM pg_cursors) || ' ' || "
    "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') FROM pg_settings "
    "WHERE name NOT LIKE 'plpgsql.%'",
    NULL,
};

int main(void)
{
    return contract_run(&(struct contract){
        .raw = &raw_postgres,
        .has_server = true,
        .begin = "BEGIN",
        .lock = "FOR UPDATE",
        .written = written,
        .settings = settings,
        .own = contract_postgres_only,
    });
}
