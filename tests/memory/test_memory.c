/* SPDX-License-Identifier: MIT
 * The contract on a fourth database: the lists of databases and of dialects with it in them, and those subjects
 * that need no transaction and no tables of the caller's. */
#include "contract/contract.h"
#include "driver.h"
#include "api/api.h"
#include "core/statements.h"

#include "tests/memory/statements.inc"

/* ---- in the place of src/api/drivers.c and src/core/dialects.c */

const struct rlk_driver *rlk_driver_find(const char *scheme, bool *known)
{
    *known = strcmp(scheme, "memory") == 0;
    return *known ? &rlk_driver_memory : NULL;
}

const struct rlk_dialect *rlk_dialect_find(const char *name)
{
    static const struct rlk_dialect memory = {
        .name = "memory",
        .statements = rlk_memory_statements,
        .count = sizeof rlk_memory_statements / sizeof rlk_memory_statements[0],
    };
    return strcmp(name, "memory") == 0 ? &memory : NULL;
}

/* ---- behind rowlock's back */

static void *raw_open(const char *url)
{
    static char session;
    return &session;
}

static void raw_close(void *session)
{
}

static bool raw_ask(void *session, const char *sql, char *out, size_t cap)
{
    char name[300] = "";
    if (sscanf(sql, "SELECT count(*) FROM rowlock_locks WHERE name = '%299[^']'", name) != 1)
        raw_failed("no such statement", sql);
    return snprintf(out, cap, "%d", memory_rows(name)) > 0;
}

int main(void)
{
    static const char *const subjects[] = {"basics", "names", "owners",  "options",
                                           "errors", "fork",  "waiting", NULL};
    static const struct raw raw = {
        .name = "memory", .open = raw_open, .close = raw_close, .ask = raw_ask};
    const struct contract contract = {
        .database = "memory", .raw = &raw, .url = "memory:", .only = subjects};
    return contract_run(&contract);
}
