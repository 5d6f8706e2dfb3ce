/* SPDX-License-Identifier: MIT
 *
 * What gets locks, and runs a job under them.
 */
#ifndef ROWLOCK_CLI_RUN_H
#define ROWLOCK_CLI_RUN_H

#include "cli/print/print.h"

#include <sys/types.h>

/* ---------------------------------------------------------------- what was asked for (asked.c) */

#define DAY_MS INT64_C(86400000)
/* The bound of durations. */
#define LEAP_YEAR_MS (366 * DAY_MS)

/* The options of run. lead, acquire and wait have some of them. 0 or NULL: it was not given. */
extern struct asked {
    bool nonblock, shared, unfair;
    int64_t wait_ms, conflict_status, permits;
    int64_t ttl_ms, min_hold_ms, max_hold_ms, stall_ms, grace_ms, every_ms, retry_after_ms,
        jitter_ms;
    const char *owner, *note, *once, *at, *timezone, *metrics;
} asked;

extern const struct option_row asked_options[];

/* The kind of lock, as in the library's option permits. */
int32_t asked_permits(void);

/* wait_settings() checks -n and -w, and fills in defaults. grant_settings() does the same for the
 * options of the grant too. With wait_begin() --wait begins again. */
void wait_settings(struct cli *cli);
void grant_settings(struct cli *cli);
void wait_begin(struct cli *cli);

/* The status, or what -E says instead of EXIT_NOT_ACQUIRED. */
int conflict_status(int status);

/* ---------------------------------------------------------------- the locks (obtain.c) */

/* Refuses a name that a run around this command holds: the command would wait for itself, or take
 * the lock over with the same owner.
 *   - asked.owner: the owner to be. NULL: a random one.
 *   - If the database cannot tell, nothing is refused.
 * Returns EXIT_FINE or EXIT_USAGE. */
int outer_refuses(const struct cli *cli);

/* The job gets ROWLOCK_NAME, _TOKEN, _OWNER, _EXPIRES_AT, _PERIOD and _HELD. */
void set_environment(const struct cli *cli);

/* The names of the locks that are held, or their tokens, one a line. Free it. Never NULL. */
char *lines_of_locks(const struct cli *cli, bool tokens);

/* Opens cli->locks on the names and acquires them, all or none, unless outer_refuses() one. A
 * signal ends the wait. When it returns, signals are kept (signals.c).
 *   - True: all are held.
 *   - False: none is held. A message has been printed. *status gets the exit status (-E may make
 *     it 0), and *result the library's result. */
bool grant_get(struct cli *cli, int *result, int *status);

/* Releases locks under which nothing was run. */
void grant_release(struct cli *cli);

/* ------------------------------------------------ periods, keys of --once (period.c, claim.c) */

/* Checks --every, --at and --timezone. It sets TZ: call it before there is a second thread. */
void period_settings(struct cli *cli);

/* The start of the period that contains now_ms, in UTC. By the database's clock all hosts agree on
 * it. This is a key of the longest kind. */
#define PERIOD_KEY_LONGEST "2026-11-22T02:00:00.500Z"
const char *period_key(int64_t now_ms);

/* The job gets TZ as we got it. */
void period_restore_zone(void);

/* A key of --once, or of a period of --every, is claimed under the locks before the job starts. If
 * the job ends with 0, the key is completed, else it is given back. */

/* Every lock, and every list of locks, has separate keys. once_key() returns the key in the
 * database, "7:nightly:KEY" or "1+1:a:b:KEY". Free it. Never NULL. once_names() is the reverse:
 * the names, as a message shows them. Free them. *key gets where the key begins. NULL: a program
 * that uses the library has claimed this key. */
char *once_key(char *const *names, int count, const char *key);
char *once_names(const char *stored, const char **key);

/* Is this the name whose token the claim has? It is the first. */
bool once_is_under(const char *stored, const char *name);

/* Checks the options that belong to --once and --every. */
void once_settings(const struct cli *cli);

/* Claims the key. True: run the job, also without a key. False: do not run it. Then a message has
 * been printed, and *status gets the exit status. */
bool once_claim(struct cli *cli, int *status);

/* The job has ended with 0, or it has failed and --retry-after begins. Both record what became of
 * the run: status, host, pid, token, duration_ms, ended. once_history() reads that. Release it.
 * NULL: there is none, or a program has written something else. once_complete() returns the
 * exit status: 0 if that could be recorded. */
int once_complete(struct cli *cli);
void once_failed(struct cli *cli, int status);
json_t *once_history(const rowlock_once_record *record);

/* Is it the key of a run that has failed? A running one has a token. */
bool once_has_failed(const rowlock_once_record *record);

/* ---------------------------------------------------------------- the process (job.c) */

/* The command that run runs: a process group, which gets the terminal if we had it. */
struct job {
    /* The process of the command, and its process group. */
    pid_t pid;
    /* -1: none. */
    int terminal;
    bool has_terminal, ended, stopped;
    int stop_signal;
    /* Once it has ended. */
    int wait_status;
};

/* Remembers which files our parent gave us. The job gets no others. */
void job_note_inherited_files(void);

/* The job's environment is ours with these changes. It takes the value. NULL: the variable is not
 * there. */
void job_set(const char *variable, char *value);

/* Starts the command. Returns 0, or the errno that says why it could not be executed.
 *   - Signals must be kept.
 *   - The command also gets the file descriptor extra, unless that is -1.
 *   - It dies with the calling thread. */
int job_start(struct job *job, char **argv, int extra);

/* Looks whether the command ended or stopped. Collects all other children that have ended. */
void job_look(struct job *job);

/* Sends a signal to the whole group. A stopped process acts on one that ends it only after SIGCONT,
 * which is sent too. */
void job_signal(const struct job *job, int signal);

/* Is a process of the group left? Ask soon after the command ended. */
bool job_group_lives(const struct job *job);

/* Was it stopped in the background because it asked for the terminal, and is that ours now? The
 * others give the terminal to the job if we have it, and take it back if the job has it. */
bool job_wants_terminal(const struct job *job);
void job_give_terminal(struct job *job);
void job_take_terminal(struct job *job);

/* The status to exit with: the command's own, or 128 plus its signal. */
int job_exit_status(const struct job *job);

/* ---------------------------------------------------------------- the leases (lease.c) */

struct one_lease {
    /* now_ms() when it ends, never too late. */
    int64_t deadline_ms;
    /* The same by the database's clock. */
    int64_t expires_us;
    bool in_jeopardy;
    bool lost;
    /* Lost because it ends. */
    bool running_out;
};

struct lease {
    struct cli *cli;
    /* In the order of cli->locks. Free it. */
    struct one_lease *each;
    /* When the first of them ends. */
    int64_t deadline_ms;
    /* At least one of them is. */
    bool in_jeopardy;
    /* At least one is gone, or ends within cli->margin_ms: the job must end. */
    bool lost;
    /* All that are lost are running out. */
    bool running_out;
    /* The name of a lock that is gone, or NULL. */
    const char *gone;
    /* When the job last reported progress. */
    int64_t progress_ms;
    /* -1: the job cannot report progress, or has closed it. */
    int progress_fd;
};

/* lease_begin() begins to follow the locks that were just acquired. progress_fd may be -1.
 * lease_look() asks the library, and prints what has become worse or better. */
void lease_begin(struct lease *lease, struct cli *cli, int progress_fd);
void lease_look(struct lease *lease);

/* lease_hear() passes on the job's progress. lease_progress() reports progress for it. */
void lease_hear(struct lease *lease);
void lease_progress(struct lease *lease);

/* Has the job reported nothing for longer than --stall allows? */
bool lease_stalled(const struct lease *lease);

/* The job must be dead this long before the lease ends. */
int64_t lease_margin_ms(void);

/* ---------------------------------------------------------------- the whole */

enum job_end {
    JOB_ENDED,
    JOB_NOT_STARTED,
    /* A signal from outside was to end this process and its job. */
    JOB_TOLD,
    /* SIGUSR1, with cli->resigns. */
    JOB_RESIGNED
};

/* supervise.c: runs the command, ends it if its locks are lost, and releases the locks.
 * start_ms: of the grant. progress: the pipe of --stall, or -1. Returns the exit status. */
int supervise(struct cli *cli, int64_t start_ms, const int progress[2], enum job_end *how);

/* print/metrics.c: the run has ended. start_ms: of the grant. lost: the locks were lost, or the
 * job was ended for that. Without --metrics it does nothing. A failure is told, and changes
 * nothing. */
void metrics_run_ends(const struct cli *cli, int64_t start_ms, int status, bool lost);

#endif
