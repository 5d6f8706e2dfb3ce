/* SPDX-License-Identifier: MIT
 *
 * `rowlock run`: holds a lock, or several, while a command runs. hold.c gets the locks, supervise.c
 * runs the command.
 */
#include "cli/commands/commands.h"

/* The pipe is made before all other files, so that its number has one digit: some shells cannot
 * redirect to more. */
static int run_run(struct cli *cli)
{
    int progress[2];
    enum job_end how;
    int status = metrics_run_begins(cli);
    if (status == EXIT_FINE)
        status = hold_settings(cli);
    if (status != EXIT_FINE)
        return status;
    job_note_inherited_files();
    status = hold_progress(progress);
    if (status != EXIT_FINE)
        return status;
    complain_without_waiting();
    if (!hold_get(cli, &status))
        return status;
    int64_t start_ms = now_ms();
    if (once_claim(cli, &status))
        return supervise(cli, start_ms, progress, &how);
    grant_release(cli);
    return status;
}

const struct command run_command = COMMAND(
    "run", "NAME... [--] COMMAND [ARGUMENT]...", "hold a lock while a command runs",
    "rowlock holds the lock NAME and renews its lease while COMMAND runs. If the lease is lost\n"
    "or cannot be renewed, COMMAND and its process group are ended before the lease runs out.\n"
    "\n"
    "  rowlock run -n nightly -- ./report.sh            other hosts exit with 75 meanwhile\n"
    "  rowlock run -w 5m deploy -- ./deploy.sh          wait in the queue, at most 5 minutes\n"
    "  rowlock run -n report --every 1d -- ./report.sh  once a day, over all hosts\n"
    "\n"
    "- Several locks: all words before the first -- are names. All are acquired, or none.\n"
    "  Without a -- the first word is the name.\n"
    "- Waiting: locks are granted in the order of the queue. Without -n, rowlock also waits\n"
    "  for a server that is away or takes no writes.\n"
    "- COMMAND gets ROWLOCK_NAME, ROWLOCK_TOKEN, ROWLOCK_OWNER and ROWLOCK_EXPIRES_AT in its\n"
    "  environment.\n"
    "- Exit status: that of COMMAND; 75 not acquired; 76 the lock was lost.\n"
    "- A signal that ends COMMAND or the wait ends rowlock too.\n"
    "- --once KEY: if COMMAND has ended with 0 under this key before, nothing is run, and the\n"
    "  exit status is 0. If another command has, it is 64.\n"
    "- --every DURATION: each period has one success, over all hosts. Call it often, from cron\n"
    "  for example. If the period is done, nothing is run, and the exit status is 0.\n"
    "  The database's clock counts. Periods of whole days, and those that divide a day, begin\n"
    "  at --at of the --timezone. $ROWLOCK_PERIOD is the start of the period.\n"
    "- --stall: each byte written to the file descriptor $ROWLOCK_PROGRESS_FD is progress.\n"
    "- --metrics: DIR/rowlock_NAME.prom tells of the last start, the last success, the exit\n"
    "  status, the duration, the wait and of losses, on this host.\n",
    asked_options, 2, NO_LIMIT, true, QUORUM, run_run);
