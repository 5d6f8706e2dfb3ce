/* SPDX-License-Identifier: MIT
 *
 * Getting one lock or several the way `run` and `acquire` do. The library decides how they are
 * waited for.
 */
#ifndef ROWLOCK_CLI_GRANT_H
#define ROWLOCK_CLI_GRANT_H

#include "cli.h"

/* Checks the options of waiting, -n and -w, and fills in what was left out; and, for
 * grant_settings(), those of the grant as well. Both return EXIT_FINE or EXIT_USAGE. */
int wait_settings(struct cli *cli);
int grant_settings(struct cli *cli);

/* Opens cli->locks on the names and acquires them, all or none. Signals are honoured while it
 * waits, and kept (signals.h) when it returns. True: they are held. False: nothing is held, what is
 * to be said has been said, *status is the exit status (which -E may have made 0), and *result the
 * library's result. */
bool grant_get(struct cli *cli, int *result, int *status);

/* Which kind of lock is asked for, as the library's option permits says it. */
int32_t grant_permits(const struct cli *cli);

#define DEFAULT_TTL_MS 30000

#endif
