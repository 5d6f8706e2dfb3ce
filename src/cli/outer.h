/* SPDX-License-Identifier: MIT
 *
 * The runs that this command is a part of the job of, as ROWLOCK_HELD tells of them.
 */
#ifndef ROWLOCK_CLI_OUTER_H
#define ROWLOCK_CLI_OUTER_H

#include "cli.h"

/* Refuses a name that a run around this command holds: the command would wait for itself, or take
 * the lock over by the same owner. cli->set.owner is the owner to be; NULL: one that no other has.
 * Returns EXIT_FINE or EXIT_USAGE. What cannot be found out is no reason to refuse. */
int outer_refuses(const struct cli *cli);

/* Adds the locks that are held now to ROWLOCK_HELD. */
void outer_add(const struct cli *cli);

#endif
