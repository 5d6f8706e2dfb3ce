/* SPDX-License-Identifier: MIT
 * The list of dialects. The build embeds their texts. */
#include "core/statements.h"

#include <string.h>

#include "statements.inc"

#define TEXTS(statements) statements, sizeof(statements) / sizeof(statements)[0]

static const struct rlk_dialect dialects[] = {
    {"postgres", false, false, TEXTS(rlk_postgres_statements)},
    {"mysql", true, true, TEXTS(rlk_mysql_statements)},
    {"sqlite", false, false, TEXTS(rlk_sqlite_statements)},
};

const struct rlk_dialect *rlk_dialect_find(const char *name)
{
    for (size_t d = 0; d < sizeof dialects / sizeof dialects[0]; d++)
        if (strcmp(dialects[d].name, name) == 0)
            return &dialects[d];
    return NULL;
}
