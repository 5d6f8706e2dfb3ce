/* SPDX-License-Identifier: MIT
 *
 * The contract on SQLite. What is tested stands in the other files of this folder.
 */
#include "contract.h"

static const char *const settings[] = {
    "SELECT (SELECT journal_mode FROM pragma_journal_mode) || ' ' || "
    "(SELECT synchronous FROM pragma_synchronous) || ' ' || "
    "(SELECT timeout FROM pragma_busy_timeout) || ' ' || "
    "(SELECT foreign_keys FROM pragma_foreign_keys) || ' ' || "
    "(SELECT query_only FROM pragma_query_only) || ' ' || "
    "(SELECT cache_size FROM pragma_cache_size)",
    NULL,
};

int main(void)
{
    return contract_run(&(struct contract){
        .raw = &raw_sqlite,
        .begin = "BEGIN IMMEDIATE",
        .lock = "",
        .settings = settings,
        .own = contract_sqlite_only,
    });
}
