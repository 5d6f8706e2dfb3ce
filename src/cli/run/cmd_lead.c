/* SPDX-License-Identifier: MIT
 *
 * `rowlock lead`: `run` again and again. A term is one grant: its token is the number of the term.
 * After each term everything is closed, so that the next one finds another server if it must.
 */
#include "cli/commands/commands.h"

/* Between two terms. A term that lasted for the longest pause was a good one. */
enum { SHORTEST_PAUSE_MS = 1000, LONGEST_PAUSE_MS = 60000 };

/* One term. False: it was the last. */
static bool lead_once(struct cli *cli, int *status, enum job_end *how)
{
    int progress[2];
    *status = hold_progress(progress);
    if (*status != EXIT_FINE)
        return false;
    wait_begin(cli);
    if (!hold_get(cli, status))
        return false;
    *status = supervise(cli, now_ms(), progress, how);
    return *how == JOB_ENDED || *how == JOB_RESIGNED;
}

static void say_next(const struct cli *cli, int status, int64_t pause_ms)
{
    if (pause_ms)
        tell(cli, "the term is over (exit status %d); back to the queue in %s", status,
             duration_text(pause_ms).text);
    else
        tell(cli, "the term is over; back to the queue");
}

/* The next pause after a term. 0: none. */
static int64_t next_pause_ms(int64_t last_ms, int64_t term_ms, enum job_end how)
{
    if (how == JOB_RESIGNED)
        return 0;
    if (last_ms == 0 || term_ms >= LONGEST_PAUSE_MS)
        return SHORTEST_PAUSE_MS;
    return within(2 * last_ms, SHORTEST_PAUSE_MS, LONGEST_PAUSE_MS);
}

static int run_lead(struct cli *cli)
{
    enum job_end how = JOB_TOLD;
    int64_t pause_ms = 0;
    int signal = 0;
    int status = hold_settings(cli);
    if (status == EXIT_FINE && cli->name_count > 1)
        return usage_error(cli, "it takes one name: each lock has a leader of its own");
    if (status != EXIT_FINE)
        return status;
    job_note_inherited_files();
    complain_without_waiting();
    cli->resigns = true;
    while (!signal) {
        signals_start(true);
        int64_t start_ms = now_ms();
        if (!lead_once(cli, &status, &how))
            return status;
        pause_ms = next_pause_ms(pause_ms, now_ms() - start_ms, how);
        say_next(cli, status, pause_ms);
        /* The library may still try to reach a server that does not answer. No job waits for it. */
        cli->abandon = false;
        disconnect_database(cli);
        signal = signals_pause(now_ms() + pause_ms);
    }
    return die_later(signal);
}

const struct command lead_command = COMMAND(
    "lead", "NAME [--] COMMAND [ARGUMENT]...", "hold a lock again and again while a command runs",
    "Like run, but when COMMAND ends, or the lease was lost, rowlock waits for the lock again. So\n"
    "one of several hosts is the leader. Each term has a token: $ROWLOCK_TOKEN.\n"
    "\n"
    "- There is a pause before the next term: 1s, then 2s and so on up to 1m. After a term of a\n"
    "  minute it begins with 1s again.\n"
    "- --note carries an address: rowlock leader prints it.\n"
    "- SIGUSR1 resigns: COMMAND is ended, and rowlock goes to the end of the queue.\n"
    "- SIGTERM, SIGINT and SIGQUIT end COMMAND and rowlock, as they end run.\n"
    "- Exit status: that of COMMAND, after a signal; 75 not acquired within --wait; 126 or 127\n"
    "  if COMMAND cannot be executed.\n",
    asked_options, 2, NO_LIMIT, true, QUORUM, run_lead);
