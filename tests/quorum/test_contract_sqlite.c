/* SPDX-License-Identifier: MIT
 *
 * Subjects of the contract on a quorum of three files: those that look at no row's lease, and need
 * no other kind of lock than an exclusive one. ROWLOCK_TEST_SUBJECT: only this one. */
#include "contract.h"

int main(void)
{
    static const char *const subjects[] = {"owners", "fork", "waiting", NULL};
    const char *url = getenv(raw_sqlite.url_env);
    const struct contract contract = {
        .database = "sqlite", .raw = &raw_sqlite, .url = url, .only = subjects};
    if (!url || !*url)
        return tap_skip_all("ROWLOCK_TEST_SQLITE_URL is not set");
    setenv("ROWLOCK_TEST_QUORUM", "1", 1);
    return contract_run(&contract);
}
