/* SPDX-License-Identifier: MIT
 *
 * The key of `run --once`, or of a period of `run --every`. It is claimed under the locks before
 * the job starts. If the job ends with 0, the key is completed, else it is given back.
 */
#ifndef ROWLOCK_CLI_CLAIM_H
#define ROWLOCK_CLI_CLAIM_H

#include "cli/cli.h"

/* Every lock, and every list of locks, has separate keys. Returns the key in the database,
 * "7:nightly:KEY" or "1+1:a:b:KEY". Free it. Never NULL. */
char *once_key(char *const *names, int count, const char *key);

/* The reverse: the names, as a message shows them. Free them. *key gets where the key begins. NULL:
 * a program that uses the library has claimed this key. */
char *once_names(const char *stored, const char **key);

/* Is this the name whose token the claim has? It is the first. */
bool once_is_under(const char *stored, const char *name);

/* Checks the options that belong to --once and --every. Returns EXIT_FINE or EXIT_USAGE. */
int once_settings(const struct cli *cli);

/* Claims the key. True: run the job, also without a key. False: do not run it. Then a message has
 * been printed, and *status gets the exit status. */
bool once_claim(struct cli *cli, int *status);

/* The job has ended with 0. Returns the exit status: 0 if that could be recorded. */
int once_complete(struct cli *cli);

/* The job has failed. --retry-after begins. */
void once_failed(struct cli *cli);

/* Is it the key of a run that has failed, with --retry-after? A running one has a token. */
bool once_has_failed(const rowlock_once_record *record);

#endif
