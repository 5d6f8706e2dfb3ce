/* SPDX-License-Identifier: MIT
 *
 * Subjects of the contract on a quorum of three files: those that look at no row's lease, and need
 * no other kind of lock than an exclusive one. ROWLOCK_TEST_SUBJECT: only this one. */
#include "contract.h"
#include "each.h"

static int run(const struct raw *raw, const char *url)
{
    static const char *const subjects[] = {"owners", "fork", "waiting", NULL};
    const struct contract contract = {
        .database = "sqlite", .raw = raw, .url = url, .only = subjects};
    setenv("ROWLOCK_TEST_QUORUM", "1", 1);
    return contract_run(&contract);
}

EACH_MAIN(run)
