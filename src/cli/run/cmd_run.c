/* SPDX-License-Identifier: MIT
 *
 * `rowlock run` holds a lock, or several, while a command runs. `rowlock lead` does that again and
 * again. obtain.c gets the locks, supervise.c runs the command.
 */
#include "cli/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define DEFAULT_GRACE_MS 5000

/* Checks and completes the settings, before the first file is opened. */
static void prepare(struct cli *cli)
{
    grant_settings(cli);
    period_settings(cli);
    once_settings(cli);
    if (asked.grace_ms == UNSET)
        asked.grace_ms = within(asked.ttl_ms / 4, 0, DEFAULT_GRACE_MS);
    if (asked.grace_ms >= asked.ttl_ms / 2)
        usage_error(cli, "--grace: must be less than half of --ttl: the job must end before "
                         "the lease does");
    if (asked.max_hold_ms && asked.max_hold_ms < asked.min_hold_ms)
        usage_error(cli, "--max-hold: must not be less than --min-hold");
    cli->margin_ms = asked.grace_ms + lease_margin_ms();
    for (int i = 0; cli->name_count > 1 && i < cli->name_count; i++)
        if (strchr(cli->arguments[i], '\n'))
            usage_error(cli, "with several names, no name may have a line break in it");
    job_note_inherited_files();
    general.hurries = true;
}

static int make_progress(int progress[2])
{
    progress[0] = progress[1] = -1;
    if (!asked.stall_ms)
        return EXIT_FINE;
    if (pipe2(progress, O_CLOEXEC) != 0) {
        complain("make a pipe: %s", strerror(errno));
        return EXIT_INTERNAL;
    }
    /* Our end only: the job does not expect O_NONBLOCK. */
    fcntl(progress[0], F_SETFL, O_NONBLOCK);
    job_set("ROWLOCK_PROGRESS_FD", new_text("%d", progress[1]));
    return EXIT_FINE;
}

/* Several locks get one owner, so that one variable tells it to the job. */
static const char *make_up_owner(void)
{
    static char owner[33];
    unsigned char bytes[16];
    if (getentropy(bytes, sizeof bytes) != 0)
        /* Then each lock has its own owner, and the job is told the first. */
        return NULL;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(owner + 2 * i, 3, "%02x", bytes[i]);
    return owner;
}

/* Lists show the job's name. A statement must fail while the lease is long enough to try again. */
static bool get_locks(struct cli *cli, int *result, int *status)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    const char *job = cli->arguments[cli->name_count];
    const char *slash = strrchr(job, '/');
    options.owner = !asked.owner && cli->name_count > 1 ? make_up_owner() : asked.owner;
    options.program = slash ? slash + 1 : job;
    options.statement_timeout_ms = within(asked.ttl_ms / 3, 1000, 10000);
    options.reconnect_ms = within(asked.ttl_ms / 6, 500, 5000);
    cli->keeps = true;
    *status = connect_database(cli, &options);
    return *status == EXIT_FINE && grant_get(cli, result, status);
}

/* The tables may get another identity, or be made anew, after one of the connections looked at
 * them. Then everything is tried once more. A signal may end that: nothing is held. */
static bool get(struct cli *cli, int *status)
{
    int result = ROWLOCK_OK;
    if (get_locks(cli, &result, status))
        return true;
    if (result != ROWLOCK_ESCHEMA || *status != status_of(result) ||
        !strstr(rowlock_db_error(cli->db)->text, "another installation"))
        return false;
    tell(cli, "the tables may have changed; starting again");
    disconnect_database(cli);
    signals_start(cli->resigns);
    return get_locks(cli, &result, status);
}

/* Gets the locks and runs the command under them. Returns the exit status. *how is left alone if
 * the command was not to run. The pipe is made first: some shells can only redirect to file
 * numbers with one digit. */
static int run_under_locks(struct cli *cli, enum job_end *how)
{
    int progress[2];
    int status = make_progress(progress);
    if (status != EXIT_FINE || !get(cli, &status))
        return status;
    int64_t start_ms = now_ms();
    if (once_claim(cli, &status))
        return supervise(cli, start_ms, progress, how);
    grant_release(cli);
    return status;
}

/* ---------------------------------------------------------------- run */

static int run_run(struct cli *cli)
{
    enum job_end how;
    uint64_t random = 0;
    if (asked.metrics && !*asked.metrics)
        usage_error(cli, "--metrics: the folder's name is empty");
    prepare(cli);
    /* Cron starts the jobs of all hosts in the same second. A signal ends us here as usual. */
    if (asked.jitter_ms && getentropy(&random, sizeof random) == 0)
        pause_until(now_ms() + (int64_t)(random % (uint64_t)asked.jitter_ms), -1);
    cli->begin_ms = now_ms();
    wait_begin(cli);
    return run_under_locks(cli, &how);
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
    "- COMMAND gets ROWLOCK_NAME, ROWLOCK_TOKEN, ROWLOCK_OWNER, ROWLOCK_EXPIRES_AT and the\n"
    "  URL of the lock, ROWLOCK_URL, in its environment.\n"
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

/* ---------------------------------------------------------------- lead */

/* A term is one grant: its token is the number of the term. After each term everything is closed,
 * so that the next one finds another server if it must. */

/* Between two terms. A term that lasted for the longest pause was a good one. */
enum { SHORTEST_PAUSE_MS = 1000, LONGEST_PAUSE_MS = 60000 };

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
    int64_t pause_ms = 0;
    int signal = 0;
    prepare(cli);
    if (cli->name_count > 1)
        usage_error(cli, "it takes one name: each lock has a leader of its own");
    cli->resigns = true;
    while (!signal) {
        signals_start(true);
        int64_t start_ms = now_ms();
        enum job_end how = JOB_TOLD;
        wait_begin(cli);
        int status = run_under_locks(cli, &how);
        if (how != JOB_ENDED && how != JOB_RESIGNED)
            return status;
        pause_ms = next_pause_ms(pause_ms, now_ms() - start_ms, how);
        if (pause_ms)
            tell(cli, "the term is over (exit status %d); back to the queue in %s", status,
                 duration_text(pause_ms).text);
        else
            tell(cli, "the term is over; back to the queue");
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
