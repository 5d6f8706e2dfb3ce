/* SPDX-License-Identifier: MIT
 *
 * Runs the command of `run` or `lead` under the locks that are held.
 */
#ifndef ROWLOCK_CLI_SUPERVISE_H
#define ROWLOCK_CLI_SUPERVISE_H

#include "cli/cli.h"

enum job_end {
    JOB_ENDED,
    JOB_NOT_STARTED,
    /* A signal from outside was to end this process and its job. */
    JOB_TOLD,
    /* SIGUSR1, with cli->resigns. */
    JOB_RESIGNED
};

/* Runs the command, ends it if its locks are lost, and releases the locks.
 *   - start_ms: of the grant.
 *   - progress: both ends of the pipe for the job's progress, or -1.
 * Returns the exit status. */
int supervise(struct cli *cli, int64_t start_ms, const int progress[2], enum job_end *how);

#endif
