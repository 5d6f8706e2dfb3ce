/* SPDX-License-Identifier: MIT
 *
 * Getting a lock the way `run` and `acquire` do. The library decides how it is waited for.
 */
#ifndef ROWLOCK_CLI_GRANT_H
#define ROWLOCK_CLI_GRANT_H

#include "cli.h"

/* Checks -n, -w, --ttl and fills in what was left out. Returns EXIT_FINE or EXIT_USAGE. */
int grant_settings(struct cli *cli);

/* Opens cli->lock on the first argument and acquires it. Signals are honoured while it waits, and
 * kept (signals.h) when it returns. True: the lock is held. False: nothing is held, what is to be
 * said has been said, *status is the exit status (which -E may have made 0), and *result the
 * library's result. */
bool grant_get(struct cli *cli, int *result, int *status);

#define DEFAULT_TTL_MS 30000

#endif
