/* SPDX-License-Identifier: MIT
 *
 * `rowlock run`: holds a lock, or several, while a command runs. hold.c gets the locks, supervise.c
 * runs the command.
 */
#include "cli/commands/commands.h"

#include "cli/run/hold.h"
#include "cli/run/job.h"
#include "cli/run/lease.h"
#include "cli/run/metrics_run.h"
#include "cli/run/claim.h"
#include "cli/run/signals.h"
#include "cli/run/supervise.h"

#include <string.h>

const int run_options[] = {
    OPT_NONBLOCK, OPT_WAIT,     OPT_CONFLICT, OPT_SHARED,      OPT_PERMITS, OPT_UNFAIR,  OPT_TTL,
    OPT_MIN_HOLD, OPT_MAX_HOLD, OPT_STALL,    OPT_GRACE,       OPT_OWNER,   OPT_NOTE,    OPT_ONCE,
    OPT_PERIOD,   OPT_AT,       OPT_TIMEZONE, OPT_RETRY_AFTER, OPT_METRICS, OPT_VERBOSE, OPT_END};

/* The pipe is made before all other files, so that its number has one digit: some shells cannot
 * redirect to more. */
int cmd_run(struct cli *cli)
{
    int progress[2] = {-1, -1};
    int status = metrics_run_begins(cli);
    if (status == EXIT_FINE)
        status = hold_settings(cli);
    if (status != EXIT_FINE)
        return status;
    job_note_inherited_files();
    int failed = cli->set.stall_ms == UNSET ? 0 : progress_open(progress);
    if (failed) {
        complain("make a pipe: %s", strerror(failed));
        return EXIT_INTERNAL;
    }
    complain_without_waiting();
    if (!hold_get(cli, &status))
        return status;
    int64_t start_ms = now_ms();
    enum job_end how;
    if (once_claim(cli, &status))
        return supervise(cli, start_ms, progress, &how);
    hold_release(cli);
    return status;
}
