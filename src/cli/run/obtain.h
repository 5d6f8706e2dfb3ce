/* SPDX-License-Identifier: MIT
 *
 * Acquires one lock or several, for `run` and `acquire`. The library decides how to wait.
 */
#ifndef ROWLOCK_CLI_OBTAIN_H
#define ROWLOCK_CLI_OBTAIN_H

#include "cli/cli.h"

/* wait_settings() checks -n and -w, and fills in defaults. grant_settings() does the same for the
 * options of the grant too. Both return EXIT_FINE or EXIT_USAGE. */
int wait_settings(struct cli *cli);
/* --wait begins. */
void wait_begin(struct cli *cli);
int grant_settings(struct cli *cli);

/* Opens cli->locks on the names and acquires them, all or none. A signal ends the wait. When it
 * returns, signals are kept (signals.h).
 *   - True: all are held.
 *   - False: none is held. A message has been printed. *status gets the exit status (-E may make
 *     it 0), and *result the library's result. */
bool grant_get(struct cli *cli, int *result, int *status);

/* The kind of lock, as in the library's option permits. */
int32_t grant_permits(const struct cli *cli);

#define DEFAULT_TTL_MS 30000

#endif
