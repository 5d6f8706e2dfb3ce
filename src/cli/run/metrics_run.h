/* SPDX-License-Identifier: MIT
 *
 * run --metrics: a file of metrics for each job, of what became of its runs on this host.
 */
#ifndef ROWLOCK_CLI_METRICS_RUN_H
#define ROWLOCK_CLI_METRICS_RUN_H

#include "cli/cli.h"

/* The run begins, and waits for its locks. EXIT_USAGE, after a message: it cannot be. */
int metrics_run_begins(const struct cli *cli);

/* The run has ended. start_ms: of the grant. lost: the locks were lost, or the job was ended for
 * that. Without --metrics it does nothing. A failure is told, and changes nothing. */
void metrics_run_ends(const struct cli *cli, int64_t start_ms, int status, bool lost);

#endif
