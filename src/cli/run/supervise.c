/* SPDX-License-Identifier: MIT
 *
 * Ends the command before a lease can end, and at a stop. The library renews; lease.c follows the
 * leases by the local clock. job.c has the processes.
 */
#include "cli/run/run.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_END INT64_MAX

enum reason { NO_REASON, LEASE_LOST, LEASE_ENDING, HELD_TOO_LONG, STALLED, RESIGNED };

struct watch {
    struct cli *cli;
    struct job job;
    struct lease lease;
    /* For signals, for progress, and for each lock. */
    struct pollfd *files;
    nfds_t file_count;
    /* --min-hold */
    int64_t hold_until_ms;
    /* --max-hold */
    int64_t end_at_ms;
    enum reason reason;
    /* The job was told to end: for that reason, or by a stop from outside. */
    bool told;
    int64_t told_ms;
    bool killed;
    /* The last ending signal that was for the job, or the first that is for this process too. */
    int passed_on;
    /* A signal that came when the job had ended. */
    int came_late;
    bool said_stopped;
};

/* ---------------------------------------------------------------- while the job runs */

static void say_reason(const struct watch *watch)
{
    static const char *const texts[] = {
        [LEASE_LOST] = "the lock was lost",
        [LEASE_ENDING] = "the lease could not be renewed in time",
        [HELD_TOO_LONG] = "the lock was held as long as --max-hold allows",
        [RESIGNED] = "SIGUSR1 asks to resign",
    };
    if (watch->reason == LEASE_LOST && watch->cli->lock_count > 1)
        tell(watch->cli, "the lock '%s' was lost; ending the job", watch->lease.gone);
    else if (watch->reason == STALLED)
        tell(watch->cli, "the job reported no progress for %s; ending the job",
             duration_text(now_ms() - watch->lease.progress_ms).text);
    else
        tell(watch->cli, "%s; ending the job", texts[watch->reason]);
}

/* The grace begins when the job is told for the first time. */
static void note_told(struct watch *watch)
{
    if (!watch->told)
        watch->told_ms = now_ms();
    watch->told = true;
}

static void tell_to_end(struct watch *watch, enum reason reason)
{
    watch->reason = reason;
    note_told(watch);
    job_signal(&watch->job, SIGTERM);
    say_reason(watch);
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

/* Does what is due now. Returns when the next thing will be due. */
static int64_t look_at_lease(struct watch *watch)
{
    int64_t due_ms = NO_END;
    lease_look(&watch->lease);
    if (watch->reason == NO_REASON) {
        enum reason reason = reason_to_end(watch);
        int64_t lost_ms = watch->lease.deadline_ms - watch->cli->margin_ms;
        if (reason != NO_REASON)
            tell_to_end(watch, reason);
        else
            due_ms = at_most(lost_ms, watch->end_at_ms);
    }
    if (!watch->told)
        return due_ms;
    if (watch->killed)
        return NO_END;
    /* When the grace is over, or earlier if the lease ends before that. */
    int64_t kill_ms =
        at_most(watch->told_ms + asked.grace_ms, watch->lease.deadline_ms - lease_margin_ms());
    if (now_ms() < kill_ms)
        return at_most(kill_ms, due_ms);
    tell(watch->cli, "the job does not end; killing it");
    job_signal(&watch->job, SIGKILL);
    watch->killed = true;
    return NO_END;
}

/* After Ctrl-Z the job goes on at once: a suspended job would keep the lock, and the terminal would
 * have no reader. Other stops are respected; the lease is renewed meanwhile. */
static void look_at_job(struct watch *watch)
{
    struct job *job = &watch->job;
    job_look(job);
    /* The shell's "fg" sends us no signal, because we were not stopped. */
    if (job_wants_terminal(job)) {
        job_give_terminal(job);
        job->stopped = false;
        job_signal(job, SIGCONT);
    }
    if (!job->stopped || job->ended) {
        watch->said_stopped = false;
        return;
    }
    if (job->stop_signal == SIGTSTP) {
        tell(watch->cli, "a job that holds a lock is not suspended; it continues");
        job->stopped = false;
        job_signal(job, SIGCONT);
    } else if (!watch->said_stopped) {
        tell(watch->cli, "the job was stopped (%s) and still holds the lock",
             strsignal(job->stop_signal));
        watch->said_stopped = true;
    }
}

/* It ends this process too, also when the job makes a status of it. */
static bool is_for_both(int signal)
{
    return signal == SIGTERM || signal == SIGINT || signal == SIGQUIT;
}

static void pass_on(struct watch *watch, int signal)
{
    if (signal == SIGUSR1 && watch->cli->resigns) {
        if (watch->reason == NO_REASON && !watch->job.ended)
            tell_to_end(watch, RESIGNED);
        return;
    }
    if (signal_ends(signal) && !is_for_both(watch->passed_on))
        watch->passed_on = signal;
    if (watch->job.ended) {
        watch->came_late = signal;
        return;
    }
    if (signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU)
        return;
    /* The shell's "fg" is meant for the job too. */
    if (signal == SIGCONT)
        job_give_terminal(&watch->job);
    job_signal(&watch->job, signal);
    /* SIGQUIT is left out: for many programs it is a question, not a stop. */
    if (signal == SIGTERM || signal == SIGINT)
        note_told(watch);
}

static void open_files(struct watch *watch)
{
    const struct cli *cli = watch->cli;
    watch->file_count = (nfds_t)cli->lock_count + 2;
    watch->files = must_have(calloc(watch->file_count, sizeof *watch->files));
    watch->files[0].fd = signals_fd();
    for (int i = 0; i < cli->lock_count; i++)
        watch->files[2 + i].fd = rowlock_lock_state_fd(cli->locks[i]);
    for (nfds_t i = 0; i < watch->file_count; i++)
        watch->files[i].events = POLLIN;
}

/* Waits for a signal, a change of a lease, or progress, but at most a second: poll() uses a clock
 * that stops while the machine is suspended, and some systems have no descriptors for signals. */
static int wait_for_news(struct watch *watch, int64_t due_ms)
{
    int64_t wait_ms = within(due_ms - now_ms(), 0, 1000);
    bool one_for_all = watch->files[0].fd >= 0;
    watch->files[1].fd = watch->lease.progress_fd;
    if (one_for_all)
        poll(watch->files, watch->file_count, (int)wait_ms);
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
        if (signal && signal != SIGCHLD)
            pass_on(watch, signal);
    }
}

/* If the job was told to end, the children that it left behind must end too. */
static void watch_rest_of_group(struct watch *watch)
{
    while (watch->told && !watch->killed && job_group_lives(&watch->job)) {
        look_at_lease(watch);
        pass_on(watch, signals_next(20));
        /* A child that has ended counts until it is collected. */
        job_look(&watch->job);
    }
}

/* --min-hold: the lock stays after the job. We report the progress now. Returns a signal, or 0. */
static int hold_on(struct watch *watch)
{
    int signal = watch->came_late;
    while (!watch->told && now_ms() < watch->hold_until_ms) {
        if (signal_ends(signal))
            return signal;
        lease_progress(&watch->lease);
        lease_look(&watch->lease);
        if (watch->lease.lost)
            break;
        int64_t due_ms = asked.stall_ms ? now_ms() + asked.stall_ms / 2 : NO_END;
        signal = wait_for_news(watch, at_most(due_ms, watch->hold_until_ms));
        job_look(&watch->job);
    }
    return 0;
}

/* ---------------------------------------------------------------- after */

/* Ctrl-C is meant for all of us. Only the job got it, because it had the terminal. Pass it on to
 * the script around us, which would otherwise go on with its next line. */
static void share_keyboard_signal(const struct watch *watch, bool had_terminal)
{
    int status = watch->job.wait_status;
    if (!had_terminal || !WIFSIGNALED(status) || WTERMSIG(status) == watch->passed_on)
        return;
    if (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGQUIT)
        kill(0, WTERMSIG(status));
}

static int lost_after_all(const struct watch *watch, const rowlock_lock *lock)
{
    int status = watch->job.wait_status;
    bool exited = WIFEXITED(status);
    complain(
        "%s '%s': the lock was lost before the job ended (%s %d); another client may have held "
        "it meanwhile, so check what the job did",
        watch->cli->command->name, rowlock_lock_name(lock), exited ? "exit status" : "signal",
        exited ? WEXITSTATUS(status) : WTERMSIG(status));
    return EXIT_LOST;
}

/* The lease ran when the release was sent, and the answer was lost. So the job's work was protected
 * to its end, unless an operator broke the lock. */
static bool may_be_ours(const struct cli *cli, const rowlock_lock *lock, int64_t remaining_ms)
{
    if (!rowlock_db_error(cli->db)->answer_lost || remaining_ms <= 0)
        return false;
    complain("release lock '%s': the answer was lost, and another client has the lock now",
             rowlock_lock_name(lock));
    return true;
}

/* Lock by lock, until a release does not reach the database. Returns the exit status. */
static int release(struct watch *watch, int status)
{
    struct cli *cli = watch->cli;
    /* Then a loss is known. */
    bool told = watch->reason != NO_REASON;
    for (int i = 0; i < cli->lock_count && !cli->abandon; i++) {
        int64_t remaining_ms = rowlock_lock_remaining_ms(cli->locks[i]);
        int result = rowlock_release(cli->locks[i]);
        if (result == ROWLOCK_LOST && !told && !may_be_ours(cli, cli->locks[i], remaining_ms))
            status = lost_after_all(watch, cli->locks[i]);
        if (result == ROWLOCK_OK || result == ROWLOCK_LOST)
            continue;
        reported(cli, result);
        complain("release lock '%s': it ends with its lease", rowlock_lock_name(cli->locks[i]));
        cli->abandon = true;
    }
    return status;
}

/* A lock that cannot be released ends with its lease. The job's work was protected to its end, so
 * its status stands. If the lease is over, this process was paused, and only the database knows who
 * had the lock. Closing a keeper that does not reach the database could take long. */
static int give_back(struct watch *watch, int status)
{
    struct cli *cli = watch->cli;
    struct lease *lease = &watch->lease;
    lease_look(lease);
    bool stalled = lease_stalled(lease);
    /* The lock of a quorum is in jeopardy while others answer. */
    bool doubtful = lease->in_jeopardy && !is_quorum(cli);
    bool unheard = (doubtful || lease->running_out) && !stalled;
    bool over = now_ms() >= lease->deadline_ms;
    if (lease->running_out && !stalled && (!over || watch->reason != NO_REASON)) {
        if (watch->reason != LEASE_ENDING)
            complain("release lock %s: the database does not answer; it ends with its lease",
                     cli->title);
        cli->abandon = true;
        return status;
    }
    status = release(watch, status);
    if (cli->abandon && over && watch->reason == NO_REASON)
        status = EXIT_LOST;
    cli->abandon = cli->abandon || unheard;
    return status;
}

/* A database that does not answer is not asked. The next run's token takes the claim over. */
static int settle_once(struct watch *watch, int status)
{
    if (status == EXIT_FINE && watch->reason == NO_REASON)
        return once_complete(watch->cli);
    lease_look(&watch->lease);
    if (!watch->lease.running_out || lease_stalled(&watch->lease))
        once_failed(watch->cli, watch->reason == NO_REASON ? status : EXIT_LOST);
    return status;
}

/* The terminal is taken back first: Ctrl-C during --min-hold must reach us. */
static int finish(struct watch *watch)
{
    bool had_terminal = watch->job.has_terminal;
    int status = job_exit_status(&watch->job);
    job_take_terminal(&watch->job);
    /* The job's signal ends us too: a shell stops its script for a signal, not for a status. */
    if (WIFSIGNALED(watch->job.wait_status))
        status = die_later(WTERMSIG(watch->job.wait_status));
    status = settle_once(watch, status);
    int hold_signal = hold_on(watch);
    if (watch->reason != NO_REASON && watch->reason != RESIGNED)
        status = EXIT_LOST;
    else if (hold_signal)
        status = die_later(hold_signal);
    status = give_back(watch, status);
    if (general.verbose)
        tell(watch->cli, "the job ended with status %d", job_exit_status(&watch->job));
    share_keyboard_signal(watch, had_terminal);
    return status;
}

/* Was it this process that was to end? Ctrl-C comes by share_keyboard_signal(). */
static enum job_end how_it_ended(const struct watch *watch)
{
    int status = watch->job.wait_status;
    int passed = watch->passed_on;
    if (is_for_both(passed) || (passed && WIFSIGNALED(status) && WTERMSIG(status) == passed))
        return JOB_TOLD;
    return watch->reason == RESIGNED ? JOB_RESIGNED : JOB_ENDED;
}

/* ---------------------------------------------------------------- the whole */

static int not_started(struct cli *cli, int reason)
{
    complain("execute '%s': %s", cli->arguments[cli->name_count], strerror(reason));
    int status = reason == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;
    once_failed(cli, status);
    grant_release(cli);
    return status;
}

/* Our end of the pipe for progress closes when the job's does. */
int supervise(struct cli *cli, int64_t start_ms, const int progress[2], enum job_end *how)
{
    struct watch watch = {.cli = cli};
    watch.hold_until_ms = start_ms + asked.min_hold_ms;
    watch.end_at_ms = asked.max_hold_ms ? start_ms + asked.max_hold_ms : NO_END;
    open_files(&watch);
    lease_begin(&watch.lease, cli, progress[0]);
    set_environment(cli);
    int reason = job_start(&watch.job, cli->arguments + cli->name_count, progress[1]);
    if (progress[1] >= 0)
        close(progress[1]);
    int status = EXIT_FINE;
    *how = JOB_NOT_STARTED;
    if (reason) {
        status = not_started(cli, reason);
    } else {
        watch_job(&watch);
        watch_rest_of_group(&watch);
        status = finish(&watch);
        *how = how_it_ended(&watch);
    }
    /* A job may exit with that status by itself. */
    bool lost = status == EXIT_LOST && job_exit_status(&watch.job) != EXIT_LOST;
    metrics_run_ends(cli, start_ms, status, lost || watch.reason != NO_REASON);
    const int ours[] = {watch.files[0].fd, watch.lease.progress_fd, watch.job.terminal};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (ours[i] >= 0)
            close(ours[i]);
    free(watch.files);
    free(watch.lease.each);
    return status;
}
