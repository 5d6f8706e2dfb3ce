/* SPDX-License-Identifier: MIT
 *
 * The key of `run --once`: claimed under the locks before the job starts, completed when the job
 * has ended with 0, and else given back.
 */
#ifndef ROWLOCK_CLI_ONCE_H
#define ROWLOCK_CLI_ONCE_H

#include "cli.h"

/* Every lock, or list of locks, has keys of its own: this is the key in the database,
 * "7:nightly:KEY" or "1+1:a:b:KEY". Yours to free; never NULL. */
char *once_key(char *const *names, int count, const char *key);

/* The other way: the names, as a message shows them, and where the key begins. NULL: a program that
 * uses the library has claimed it, or claimed it for no lock. Yours to free. */
char *once_names(const char *stored, const char **key);

/* What goes with --once, and what does not: EXIT_FINE or EXIT_USAGE. */
int once_settings(const struct cli *cli);

/* Claims it. True: the job is to run, as it also is without --once. False: it is not, what is to be
 * said has been said, and *status is the exit status. */
bool once_claim(struct cli *cli, int *status);

/* The job has ended with 0. Returns the status to exit with, 0 if that could be written down. */
int once_complete(struct cli *cli);

/* It has not, or never began. */
void once_give_back(struct cli *cli);

#endif
