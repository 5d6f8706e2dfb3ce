/* SPDX-License-Identifier: MIT
 *
 * The key of `run --once`: claimed under the locks before the job starts, completed when the job has
 * ended with 0, and else given back.
 */
#ifndef ROWLOCK_CLI_ONCE_H
#define ROWLOCK_CLI_ONCE_H

#include "cli.h"

/* What goes with --once, and what does not: EXIT_FINE or EXIT_USAGE. */
int once_settings(const struct cli *cli);

/* Claims it. True: the job is to run, as it also is without --once. False: it is not, what is to be said
 * has been said, and *status is the exit status. */
bool once_claim(struct cli *cli, int *status);

/* The job has ended with 0. Returns the status to exit with, 0 if that could be written down. */
int once_complete(struct cli *cli);

/* It has not, or never began. */
void once_give_back(struct cli *cli);

#endif
