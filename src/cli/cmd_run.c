/* SPDX-License-Identifier: MIT
 *
 * `rowlock run`: holds a lock while a command runs, and ends the command before the lease can end.
 * The deadline is kept here, by the local clock alone. Renewing is in keeper.c, processes in job.c.
 */
#include "commands.h"

#include "grant.h"
#include "job.h"
#include "keeper.h"
#include "signals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

const int run_options[] = {OPT_NONBLOCK, OPT_WAIT,     OPT_CONFLICT, OPT_TTL,
                           OPT_MIN_HOLD, OPT_MAX_HOLD, OPT_GRACE,    OPT_OWNER,
                           OPT_NOTE,     OPT_VERBOSE,  OPT_END};

#define DEFAULT_GRACE_MS 5000
#define NO_END INT64_MAX

/* Why the job was told to end. */
enum reason { NO_REASON, LEASE_LOST, LEASE_ENDING, HELD_TOO_LONG };

struct watch {
    struct cli *cli;
    struct job job;
    struct keeper keeper;
    int64_t grace_ms;
    int64_t margin_ms; /* how much earlier than the lease the job has to be dead */
    int64_t hold_until_ms; /* --min-hold */
    int64_t end_at_ms; /* --max-hold */
    enum reason reason;
    int64_t told_ms; /* when the job was told to end */
    bool killed; /* SIGKILL has been sent, too */
    int passed_on; /* the last ending signal that was passed on to the job */
    bool said_stopped;
};

/* ---------------------------------------------------------------- before */

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
    return EXIT_FINE;
}

static int64_t within(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
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
    return connect_database(cli, &options);
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

static const char *reason_text(enum reason reason)
{
    switch (reason) {
    case LEASE_LOST:
        return "the lock was lost";
    case LEASE_ENDING:
        return "the lease could not be renewed in time";
    case HELD_TOO_LONG:
        return "the lock was held as long as --max-hold allows";
    case NO_REASON:
        break;
    }
    return "";
}

/* A stopped process takes no signal but these two. */
static void wake_and_signal(const struct watch *watch, int signal)
{
    job_signal(&watch->job, signal);
    job_signal(&watch->job, SIGCONT);
}

static void tell_to_end(struct watch *watch, enum reason reason)
{
    watch->reason = reason;
    watch->told_ms = now_ms();
    complain("run '%s': %s; ending the job", watch->cli->arguments[0], reason_text(reason));
    wake_and_signal(watch, SIGTERM);
}

/* The grace is over, or so nearly the lease that the rest of it is needed to be sure. */
static int64_t kill_time(const struct watch *watch, int64_t deadline_ms)
{
    int64_t polite_ms = watch->told_ms + watch->grace_ms;
    int64_t latest_ms = deadline_ms - watch->margin_ms;
    return polite_ms < latest_ms ? polite_ms : latest_ms;
}

/* Does what is due now, and returns when something will be due next. */
static int64_t look_at_lease(struct watch *watch)
{
    struct keeper_news news = keeper_news(&watch->keeper);
    int64_t now = now_ms();
    int64_t warn_ms = news.deadline_ms - watch->margin_ms - watch->grace_ms;
    if (watch->reason == NO_REASON) {
        if (news.lost)
            tell_to_end(watch, LEASE_LOST);
        else if (now >= warn_ms)
            tell_to_end(watch, LEASE_ENDING);
        else if (now >= watch->end_at_ms)
            tell_to_end(watch, HELD_TOO_LONG);
        else
            return warn_ms < watch->end_at_ms ? warn_ms : watch->end_at_ms;
    }
    if (watch->killed)
        return NO_END;
    int64_t kill_ms = kill_time(watch, news.deadline_ms);
    if (now < kill_ms)
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

/* At least once a second, because sleeping counts on a clock that stops while the machine is
 * suspended, and the lease does not. */
static int wait_for_signal(int64_t due_ms)
{
    return signals_next(within(due_ms - now_ms(), 0, 1000));
}

static void watch_job(struct watch *watch)
{
    while (!watch->job.ended) {
        int64_t due_ms = look_at_lease(watch);
        int signal = wait_for_signal(due_ms);
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

/* --min-hold: the job has ended, but the lock stays a while. Returns a signal that ended this. */
static int hold_on(struct watch *watch)
{
    while (watch->reason == NO_REASON && now_ms() < watch->hold_until_ms) {
        struct keeper_news news = keeper_news(&watch->keeper);
        if (news.lost || now_ms() >= news.deadline_ms)
            break;
        int64_t due_ms =
            news.deadline_ms < watch->hold_until_ms ? news.deadline_ms : watch->hold_until_ms;
        int signal = wait_for_signal(due_ms);
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

/* Until the end of its lease, a lock that cannot be released is worth trying; then it is gone by
 * itself. The job's work was protected to its end either way, so its status stands. */
static int give_back(struct watch *watch, int status)
{
    struct cli *cli = watch->cli;
    struct keeper_news news = keeper_news(&watch->keeper);
    bool hopeless = watch->reason == LEASE_ENDING;
    if (!keeper_stop(&watch->keeper, news.deadline_ms) || hopeless) {
        cli->abandon = true;
        if (!hopeless)
            complain("release lock '%s': the database does not answer; it ends with its lease",
                     cli->arguments[0]);
        return status;
    }
    news = keeper_news(&watch->keeper);
    int result = news.lost ? ROWLOCK_LOST : rowlock_release(cli->lock);
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

/* Without a renewing thread the job would outlive its lease, so it has to go again. */
static int not_watched(struct watch *watch)
{
    complain("start the renewing thread: %s", strerror(errno));
    job_signal(&watch->job, SIGKILL);
    while (!watch->job.ended) {
        signals_next(1000);
        job_look(&watch->job);
    }
    job_take_terminal(&watch->job);
    return EXIT_INTERNAL;
}

/* The process is made before the thread: only the calling thread lives on in a new process. */
static int run_job(struct cli *cli, int64_t start_ms)
{
    static struct watch watch; /* static: the renewing thread may outlive this function */
    const struct settings *set = &cli->set;
    watch.cli = cli;
    watch.grace_ms = set->grace_ms;
    watch.margin_ms = within(set->ttl_ms / 20, 20, 500);
    watch.hold_until_ms = start_ms + set->min_hold_ms;
    watch.end_at_ms = set->max_hold_ms == UNSET ? NO_END : start_ms + set->max_hold_ms;
    set_environment(cli->lock);
    int reason = job_start(&watch.job, cli->arguments + 1);
    if (reason)
        return not_started(cli, reason);
    int64_t now = now_ms();
    if (!keeper_start(&watch.keeper, cli, now + rowlock_remaining_ms(cli->lock)))
        return not_watched(&watch);
    watch_job(&watch);
    watch_rest_of_group(&watch);
    return finish(&watch);
}

int cmd_run(struct cli *cli)
{
    int result;
    int status = run_settings(cli);
    if (status != EXIT_FINE)
        return status;
    job_note_inherited_files();
    signals_note();
    status = connect_for_run(cli);
    if (status != EXIT_FINE)
        return status;
    return grant_get(cli, &result, &status) ? run_job(cli, now_ms()) : status;
}
