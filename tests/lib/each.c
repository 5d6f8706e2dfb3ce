/* SPDX-License-Identifier: MIT
 *
 * Finds the database of a test program; see each.h. */
#include "each.h"

static const struct raw *const databases[] = {
#if RLK_WITH_POSTGRES
    &raw_postgres,
#endif
#if RLK_WITH_MYSQL
    &raw_mysql,
#endif
#if RLK_WITH_SQLITE
    &raw_sqlite,
#endif
    NULL,
};

static const struct raw *named(const char *program)
{
    const char *underscore = strrchr(program, '_');
    const struct raw *const *raw = databases;
    while (*raw && (!underscore || strcmp((*raw)->name, underscore + 1) != 0))
        raw++;
    if (!*raw)
        raw_failed("no database has the name of", program);
    return *raw;
}

int each_main(char **argv, int (*run)(const struct raw *raw, const char *url))
{
    const struct raw *raw = named(argv[0]);
    const char *url = getenv(raw->url_env);
    raw_here = raw;
    if (url && *url)
        return run(raw, url);
    return tap_skip_all(textf("%s is not set", raw->url_env));
}
