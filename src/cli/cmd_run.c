/* SPDX-License-Identifier: MIT
 *
 * `rowlock run`: holds a lock while a command runs, and ends the command before the lease can end.
 * The library renews, and tells of the lease by the local clock alone (lease.c). Processes are in job.c.
 */
#include "commands.h"

#include "grant.h"
#include "job.h"
#include "lease.h"
#include "signals.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const int run_options[] = {OPT_NONBLOCK, OPT_WAIT,     OPT_CONFLICT, OPT_TTL,
                           OPT_MIN_HOLD, OPT_MAX_HOLD, OPT_STALL,    OPT_GRACE,
                           OPT_OWNER,    OPT_NOTE,     OPT_VERBOSE,  OPT_END};

#define DEFAULT_GRACE_MS 5000
#define NO_END INT64_MAX

/* Why the job was told to end. */
enum reason { NO_REASON, LEASE_LOST, LEASE_ENDING, HELD_TOO_LONG, STALLED };

struct watch {
    struct cli *cli;
    struct job job;
    struct lease lease;
    int signal_fd;
    int64_t grace_ms;
    int64_t hold_until_ms; /* --min-hold */
    int64_t end_at_ms; /* --max-hold */
    enum reason reason;
    int64_t told_ms; /* when the job was told to end */
    bool killed; /* SIGKILL has been sent, too */
    int passed_on; /* the last ending signal that was passed on to the job */
    bool said_stopped;
};

/* ---------------------------------------------------------------- before */

static int64_t within(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* How much earlier than its lease ends the job has to be dead. */
static int64_t margin_ms(const struct cli *cli)
{
    return within(cli->set.ttl_ms / 20, 20, 500);
}

static int run_settings(struct cli *cli)
{
    struct settings *set = &cli->set;
    int status = grant_settings(cli);
    if (status != EXIT_FINE)
        return status;
    if (set->grace_ms == UNSET)
        set->grace_ms = set->ttl_ms / 4 < DEFAULT_GRACE_MS ? set->ttl_ms / 4 : DEFAULT_GRACE_MS;
    if (set->grace_ms >= set->ttl_ms / 2)
        return usage_error(cli,
                           "--grace: must be less than half of --ttl, so that there is time to "
                           "end the job before the lease ends");
    if (set->min_hold_ms == UNSET)
        set->min_hold_ms = 0;
    if (set->max_hold_ms != UNSET && set->max_hold_ms < set->min_hold_ms)
        return usage_error(cli, "--max-hold: must not be less than --min-hold");
    cli->margin_ms = set->grace_ms + margin_ms(cli);
    return EXIT_FINE;
}

/* The job's name is what people look for in a list of locks. And a statement must fail while there
 * is still some lease left to try again. */
static int connect_for_run(struct cli *cli)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    const char *slash = strrchr(cli->arguments[1], '/');
    options.owner = cli->set.owner;
    options.program = slash ? slash + 1 : cli->arguments[1];
    options.statement_timeout_ms = within(cli->set.ttl_ms / 3, 1000, 10000);
    options.reconnect_ms = within(cli->set.ttl_ms / 6, 500, 5000);
    int status = connect_database(cli, &options);
    return status == EXIT_FINE ? connect_keeper(cli, &options) : status;
}

static void set_environment(const rowlock_lock *lock)
{
    char text[48];
    int64_t expires_us = rowlock_lock_expires_us(lock);
    int failed = setenv("ROWLOCK_NAME", rowlock_lock_name(lock), 1);
    failed |= setenv("ROWLOCK_OWNER", rowlock_lock_owner(lock), 1);
    snprintf(text, sizeof text, "%lld", (long long)rowlock_lock_token(lock));
    failed |= setenv("ROWLOCK_TOKEN", text, 1);
    snprintf(text, sizeof text, "%lld.%06lld", (long long)(expires_us / 1000000),
             (long long)(expires_us % 1000000));
    failed |= setenv("ROWLOCK_EXPIRES_AT", text, 1);
    must_have(failed ? NULL : text);
}

/* ---------------------------------------------------------------- while the job runs */

static void reason_text(const struct watch *watch, char *text, size_t size)
{
    char silence[DURATION_TEXT_SIZE];
    switch (watch->reason) {
    case LEASE_LOST:
        snprintf(text, size, "the lock was lost");
        break;
    case LEASE_ENDING:
        snprintf(text, size, "the lease could not be renewed in time");
        break;
    case HELD_TOO_LONG:
        snprintf(text, size, "the lock was held as long as --max-hold allows");
        break;
    case STALLED:
        duration_text(now_ms() - watch->lease.progress_ms, silence);
        snprintf(text, size, "the job told no progress for %s", silence);
        break;
    case NO_REASON:
        *text = '\0';
        break;
    }
}

/* A stopped process takes no signal but these two. */
static void wake_and_signal(const struct watch *watch, int signal)
{
    job_signal(&watch->job, signal);
    job_signal(&watch->job, SIGCONT);
}

static void tell_to_end(struct watch *watch, enum reason reason)
{
    char text[80];
    watch->reason = reason;
    watch->told_ms = now_ms();
    wake_and_signal(watch, SIGTERM);
    reason_text(watch, text, sizeof text);
    complain("run '%s': %s; ending the job", watch->cli->arguments[0], text);
}

/* The grace is over, or so nearly the lease that the rest of it is needed to be sure. */
static int64_t kill_time(const struct watch *watch)
{
    int64_t polite_ms = watch->told_ms + watch->grace_ms;
    int64_t latest_ms = watch->lease.deadline_ms - margin_ms(watch->cli);
    return polite_ms < latest_ms ? polite_ms : latest_ms;
}

static enum reason reason_to_end(const struct watch *watch)
{
    const struct lease *lease = &watch->lease;
    if (lease->lost && !lease->running_out)
        return LEASE_LOST;
    if (lease->lost)
        return lease_stalled(lease) ? STALLED : LEASE_ENDING;
    return now_ms() >= watch->end_at_ms ? HELD_TOO_LONG : NO_REASON;
}

/* Does what is due now, and returns when something will be due next. */
static int64_t look_at_lease(struct watch *watch)
{
    lease_look(&watch->lease);
    if (watch->reason == NO_REASON) {
        enum reason reason = reason_to_end(watch);
        int64_t lost_ms = watch->lease.deadline_ms - watch->cli->margin_ms;
        if (reason == NO_REASON)
            return lost_ms < watch->end_at_ms ? lost_ms : watch->end_at_ms;
        tell_to_end(watch, reason);
    }
    if (watch->killed)
        return NO_END;
    int64_t kill_ms = kill_time(watch);
    if (now_ms() < kill_ms)
        return kill_ms;
    job_signal(&watch->job, SIGKILL);
    watch->killed = true;
    return NO_END;
}

/* Ctrl-Z would leave a lock with a job that does nothing, and the terminal with nobody: the job
 * goes on at once. Any other stop is respected, and the lease is renewed meanwhile. */
static void look_at_job(struct watch *watch)
{
    struct job *job = &watch->job;
    job_look(job);
    if (!job->stopped || job->ended) {
        watch->said_stopped = false;
        return;
    }
    if (job->stop_signal == SIGTSTP) {
        complain("run '%s': a job that holds a lock is not suspended; it goes on",
                 watch->cli->arguments[0]);
        job->stopped = false;
        job_signal(job, SIGCONT);
    } else if (!watch->said_stopped) {
        complain("run '%s': the job was stopped (%s) and still holds the lock",
                 watch->cli->arguments[0], strsignal(job->stop_signal));
        watch->said_stopped = true;
    }
}

static void pass_on(struct watch *watch, int signal)
{
    switch (signal) {
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
        return;
    case SIGCONT:
        /* The shell's "fg" means the job, too. */
        job_give_terminal(&watch->job);
        job_signal(&watch->job, SIGCONT);
        return;
    default:
        break;
    }
    job_signal(&watch->job, signal);
    if (signal_ends(signal)) {
        watch->passed_on = signal;
        job_signal(&watch->job, SIGCONT);
    }
}

/* For a signal, news of the lease, or progress. At least once a second, because waiting counts on a clock
 * that stops while the machine is suspended, and because some systems have no descriptors for that. */
static int wait_for_news(struct watch *watch, int64_t due_ms)
{
    struct pollfd files[] = {{.fd = watch->signal_fd, .events = POLLIN},
                             {.fd = rowlock_lock_fd(watch->cli->lock), .events = POLLIN},
                             {.fd = watch->lease.progress_fd, .events = POLLIN}};
    int64_t wait_ms = within(due_ms - now_ms(), 0, 1000);
    bool one_for_all = watch->signal_fd >= 0;
    if (one_for_all)
        poll(files, sizeof files / sizeof files[0], (int)wait_ms);
    int signal = signals_next(one_for_all ? 0 : wait_ms);
    lease_hear(&watch->lease);
    return signal;
}

static void watch_job(struct watch *watch)
{
    while (!watch->job.ended) {
        int64_t due_ms = look_at_lease(watch);
        int signal = wait_for_news(watch, due_ms);
        look_at_job(watch);
        if (signal && signal != SIGCHLD && !watch->job.ended)
            pass_on(watch, signal);
    }
}

/* What the command has left behind must end as well, when it was told to because of the lock. */
static void watch_rest_of_group(struct watch *watch)
{
    while (watch->reason != NO_REASON && !watch->killed && job_group_lives(&watch->job)) {
        look_at_lease(watch);
        signals_next(20);
    }
}

/* --min-hold: the job has ended, but the lock stays a while; its progress is ours now. Returns a signal
 * that ended this. */
static int hold_on(struct watch *watch)
{
    int64_t stall_ms = watch->cli->set.stall_ms;
    while (watch->reason == NO_REASON && now_ms() < watch->hold_until_ms) {
        lease_progress(&watch->lease);
        lease_look(&watch->lease);
        if (watch->lease.lost)
            break;
        int64_t due_ms = stall_ms == UNSET ? NO_END : now_ms() + stall_ms / 2;
        int signal =
            wait_for_news(watch, due_ms < watch->hold_until_ms ? due_ms : watch->hold_until_ms);
        if (signal_ends(signal))
            return signal;
    }
    return 0;
}

/* ---------------------------------------------------------------- after */

/* Whoever typed Ctrl-C meant all of us. Only the job got it, since it had the terminal: pass it on
 * to the script around us, which would otherwise go on with its next line. */
static void share_keyboard_signal(const struct watch *watch, bool had_terminal)
{
    int status = watch->job.wait_status;
    if (!had_terminal || !WIFSIGNALED(status) || WTERMSIG(status) == watch->passed_on)
        return;
    if (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGQUIT)
        kill(0, WTERMSIG(status));
}

static int lost_after_all(const struct watch *watch)
{
    int status = watch->job.wait_status;
    bool exited = WIFEXITED(status);
    complain("run '%s': the lock was lost before the job ended (%s %d): another may have held it "
             "meanwhile",
             watch->cli->arguments[0], exited ? "exit status" : "signal",
             exited ? WEXITSTATUS(status) : WTERMSIG(status));
    return EXIT_LOST;
}

/* What cannot be released ends with its lease. The job's work was protected to its end either way, so its
 * status stands. A keeper that does not get through is left alone: closing it could take its time. */
static int give_back(struct watch *watch, int status)
{
    struct cli *cli = watch->cli;
    struct lease *lease = &watch->lease;
    lease_look(lease);
    bool stalled = lease_stalled(lease);
    cli->abandon = (lease->in_jeopardy || lease->running_out) && !stalled;
    if (lease->running_out && !stalled) {
        if (watch->reason != LEASE_ENDING)
            complain("release lock '%s': the database does not answer; it ends with its lease",
                     cli->arguments[0]);
        return status;
    }
    int result = rowlock_release(cli->lock);
    if (result == ROWLOCK_LOST)
        return watch->reason == NO_REASON ? lost_after_all(watch) : status;
    if (result != ROWLOCK_OK) {
        report_failure(cli, result);
        complain("release lock '%s': it ends with its lease", cli->arguments[0]);
        cli->abandon = true;
    }
    return status;
}

/* The terminal is taken back first: a key that ends --min-hold has to reach us. */
static int finish(struct watch *watch)
{
    bool had_terminal = watch->job.has_terminal;
    int status = job_exit_status(&watch->job);
    job_take_terminal(&watch->job);
    int hold_signal = hold_on(watch);
    if (watch->reason != NO_REASON)
        status = EXIT_LOST;
    else if (hold_signal)
        status = EXIT_SIGNAL + hold_signal;
    status = give_back(watch, status);
    if (watch->cli->set.verbose)
        complain("run '%s': the job ended with status %d", watch->cli->arguments[0],
                 job_exit_status(&watch->job));
    share_keyboard_signal(watch, had_terminal);
    return status;
}

/* ---------------------------------------------------------------- the whole */

static int not_started(struct cli *cli, int reason)
{
    int result = rowlock_release(cli->lock);
    complain("execute '%s': %s", cli->arguments[1], strerror(reason));
    if (result < 0)
        report_failure(cli, result);
    return reason == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;
}

static int run_job(struct cli *cli, int64_t start_ms, const int progress[2])
{
    struct watch watch = {.cli = cli, .grace_ms = cli->set.grace_ms};
    const struct settings *set = &cli->set;
    watch.hold_until_ms = start_ms + set->min_hold_ms;
    watch.end_at_ms = set->max_hold_ms == UNSET ? NO_END : start_ms + set->max_hold_ms;
    watch.signal_fd = signals_fd();
    lease_begin(&watch.lease, cli, progress[0]);
    set_environment(cli->lock);
    int reason = job_start(&watch.job, cli->arguments + 1, progress[1]);
    if (reason)
        return not_started(cli, reason);
    if (progress[1] >= 0)
        close(progress[1]); /* so that ours ends when the job's does */
    watch_job(&watch);
    watch_rest_of_group(&watch);
    return finish(&watch);
}

/* The pipe is made before all other files, so that it gets a number of one digit: more than that, the
 * redirections of some shells do not take. */
int cmd_run(struct cli *cli)
{
    int result;
    int progress[2] = {-1, -1};
    int status = run_settings(cli);
    if (status != EXIT_FINE)
        return status;
    job_note_inherited_files();
    signals_note();
    int failed = cli->set.stall_ms == UNSET ? 0 : progress_open(progress);
    if (failed) {
        complain("make a pipe: %s", strerror(failed));
        return EXIT_INTERNAL;
    }
    complain_without_waiting();
    status = connect_for_run(cli);
    if (status != EXIT_FINE)
        return status;
    return grant_get(cli, &result, &status) ? run_job(cli, now_ms(), progress) : status;
}
