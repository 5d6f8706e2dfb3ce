/* SPDX-License-Identifier: MIT
 *
 * Gets the locks under which a command runs.
 */
#ifndef ROWLOCK_CLI_HOLD_H
#define ROWLOCK_CLI_HOLD_H

#include "cli/cli.h"

/* Checks the options of a command that runs another, and fills in defaults. Returns EXIT_FINE or
 * EXIT_USAGE. */
int hold_settings(struct cli *cli);

/* The job must be dead this long before the lease ends. */
int64_t hold_margin_ms(const struct cli *cli);

/* Connects and acquires all locks. Signals are kept then (signals.h).
 *   - False: none is held. A message has been printed, and *status gets the exit status. */
bool hold_get(struct cli *cli, int *status);

/* Releases locks under which nothing was run. */
void hold_release(struct cli *cli);

#endif
