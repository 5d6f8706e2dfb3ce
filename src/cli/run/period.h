/* SPDX-License-Identifier: MIT
 *
 * The periods of `run --every`. The key of a period is its start in UTC, so all hosts agree on it.
 * The clock is that of the database.
 */
#ifndef ROWLOCK_CLI_PERIOD_H
#define ROWLOCK_CLI_PERIOD_H

#include "cli/cli.h"

/* Checks --every, --at and --timezone. Returns EXIT_FINE or EXIT_USAGE.
 *   - Call it before there is a second thread: it sets TZ for this process. */
int period_settings(struct cli *cli);

/* The key of the longest kind: "2026-11-22T02:00:00.500Z" */
#define PERIOD_KEY_SIZE 48
#define PERIOD_KEY_LONGEST "2026-11-22T02:00:00.500Z"

/* The start of the period in which the locks were granted. */
void period_key(const struct cli *cli, char key[PERIOD_KEY_SIZE]);

/* The job gets TZ as we got it. */
void period_restore_zone(void);

#endif
