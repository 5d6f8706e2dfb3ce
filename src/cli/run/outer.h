/* SPDX-License-Identifier: MIT
 *
 * The runs around this command: it is a part of their jobs. ROWLOCK_HELD lists their locks.
 */
#ifndef ROWLOCK_CLI_OUTER_H
#define ROWLOCK_CLI_OUTER_H

#include "cli/cli.h"

/* Refuses a name that a run around this command holds: the command would wait for itself, or take
 * the lock over with the same owner.
 *   - cli->set.owner: the owner to be. NULL: a random one.
 *   - If the database cannot tell, nothing is refused.
 * Returns EXIT_FINE or EXIT_USAGE. */
int outer_refuses(const struct cli *cli);

/* Adds our locks to ROWLOCK_HELD. */
void outer_add(const struct cli *cli);

#endif
