/* SPDX-License-Identifier: MIT
 *
 * `rowlock lead`: `run` again and again. A term is one grant: its token is the number of the term.
 * After each term everything is closed, so that the next one finds another server if it must.
 */
#include "cli/commands/commands.h"

#include "cli/run/obtain.h"
#include "cli/run/hold.h"
#include "cli/run/job.h"
#include "cli/run/lease.h"
#include "cli/run/signals.h"
#include "cli/run/supervise.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

const int lead_options[] = {OPT_WAIT,  OPT_CONFLICT, OPT_TTL,  OPT_MAX_HOLD, OPT_STALL,
                            OPT_GRACE, OPT_OWNER,    OPT_NOTE, OPT_VERBOSE,  OPT_END};

/* Between two terms. A term that lasted for the longest pause was a good one. */
enum { SHORTEST_PAUSE_MS = 1000, LONGEST_PAUSE_MS = 60000 };

static int settings(struct cli *cli)
{
    int status = hold_settings(cli);
    if (status == EXIT_FINE && cli->name_count > 1)
        return usage_error(cli, "it takes one name: each lock has a leader of its own");
    return status;
}

/* One term. False: it was the last. */
static bool lead_once(struct cli *cli, int *status, enum job_end *how)
{
    int progress[2] = {-1, -1};
    int failed = cli->set.stall_ms == UNSET ? 0 : progress_open(progress);
    if (failed) {
        complain("make a pipe: %s", strerror(failed));
        *status = EXIT_INTERNAL;
        return false;
    }
    wait_begin(cli);
    if (!hold_get(cli, status))
        return false;
    *status = supervise(cli, now_ms(), progress, how);
    return *how == JOB_ENDED || *how == JOB_RESIGNED;
}

/* Returns a signal that ended the pause, or 0. */
static int rest(int64_t pause_ms)
{
    int64_t until_ms = now_ms() + pause_ms;
    for (;;) {
        int64_t left_ms = until_ms - now_ms();
        int signal = signals_next(left_ms);
        if (signal_ends(signal) && signal != SIGUSR1)
            return signal;
        if (!signal && left_ms <= 0)
            return 0;
    }
}

static void say_next(const struct cli *cli, int status, int64_t pause_ms)
{
    char text[DURATION_TEXT_SIZE];
    duration_text(pause_ms, text);
    if (pause_ms)
        complain("lead %s: the term is over (exit status %d); back to the queue in %s", cli->title,
                 status, text);
    else
        complain("lead %s: the term is over; back to the queue", cli->title);
}

/* The library may still try to reach a server that does not answer. No job waits for that. */
static void end_term(struct cli *cli)
{
    cli->abandon = false;
    disconnect_database(cli);
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

int cmd_lead(struct cli *cli)
{
    enum job_end how = JOB_TOLD;
    int64_t pause_ms = 0;
    int status = settings(cli);
    if (status != EXIT_FINE)
        return status;
    job_note_inherited_files();
    complain_without_waiting();
    cli->resigns = true;
    for (;;) {
        signals_start(true);
        int64_t start_ms = now_ms();
        if (!lead_once(cli, &status, &how))
            return status;
        pause_ms = next_pause_ms(pause_ms, now_ms() - start_ms, how);
        say_next(cli, status, pause_ms);
        end_term(cli);
        int signal = rest(pause_ms);
        if (signal)
            return die_later(signal);
    }
}
