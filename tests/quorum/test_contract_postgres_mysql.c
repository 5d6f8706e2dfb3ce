/* SPDX-License-Identifier: MIT
 *
 * Subjects of the contract on a quorum of a PostgreSQL, a MySQL and a file: those that look at no
 * row's lease, and need no other kind of lock than an exclusive one. */
#include "members.h"

static bool is_set(const char *name)
{
    const char *url = getenv(name);
    return url && *url;
}

int main(void)
{
    static const char *const subjects[] = {"owners", "fork", "waiting", NULL};
    const char *url = getenv(raw_postgres.url_env);
    const struct contract contract = {.database = "postgres",
                                      .raw = &raw_postgres,
                                      .url = url,
                                      .has_server = true,
                                      .only = subjects};
    if (!is_set(raw_postgres.url_env) || !is_set(raw_mysql.url_env) ||
        !is_set("ROWLOCK_TEST_SQLITE_URL"))
        return tap_skip_all("it needs a PostgreSQL, a MySQL and a file");
    char *urls[] = {strdup(url), url_with(getenv(raw_mysql.url_env), "rowlock_prefix=member2_"),
                    NULL};
    if (asprintf(&urls[2], "%s.3", getenv("ROWLOCK_TEST_SQLITE_URL")) < 0)
        abort();
    members_vote((const char *const *)urls);
    setenv("ROWLOCK_TEST_QUORUM", "mixed", 1);
    int status = contract_run(&contract);
    for (int i = 0; i < MEMBERS; i++)
        free(urls[i]);
    /* Other tests use the database alone. */
    db_exec(&raw_postgres, url, "DELETE FROM rowlock_members");
    db_exec(&raw_mysql, getenv(raw_mysql.url_env), "DELETE FROM member2_members");
    return status;
}
