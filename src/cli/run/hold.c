/* SPDX-License-Identifier: MIT
 *
 * The locks of a command that runs another: settings, connections, the grant.
 */
#include "cli/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_GRACE_MS 5000

int64_t hold_margin_ms(void)
{
    return within(asked.ttl_ms / 20, 20, 500);
}

int hold_settings(struct cli *cli)
{
    int status = grant_settings(cli);
    if (status != EXIT_FINE || (status = period_settings(cli)) != EXIT_FINE ||
        (status = once_settings(cli)) != EXIT_FINE)
        return status;
    if (asked.grace_ms == UNSET)
        asked.grace_ms = within(asked.ttl_ms / 4, 0, DEFAULT_GRACE_MS);
    if (asked.grace_ms >= asked.ttl_ms / 2)
        return usage_error(cli, "--grace: must be less than half of --ttl: the job must end before "
                                "the lease does");
    if (asked.max_hold_ms && asked.max_hold_ms < asked.min_hold_ms)
        return usage_error(cli, "--max-hold: must not be less than --min-hold");
    cli->margin_ms = asked.grace_ms + hold_margin_ms();
    for (int i = 0; cli->name_count > 1 && i < cli->name_count; i++)
        if (strchr(cli->arguments[i], '\n'))
            return usage_error(cli, "with several names, no name may have a line break in it");
    return EXIT_FINE;
}

int hold_progress(int progress[2])
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
    set_and_free("ROWLOCK_PROGRESS_FD", new_text("%d", progress[1]));
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

/* In a list of locks people look for the job's name. A statement must fail while enough of the
 * lease is left to try again. */
static int connect_for_run(struct cli *cli)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    const char *job = cli->arguments[cli->name_count];
    const char *slash = strrchr(job, '/');
    options.owner = !asked.owner && cli->name_count > 1 ? make_up_owner() : asked.owner;
    options.program = slash ? slash + 1 : job;
    options.statement_timeout_ms = within(asked.ttl_ms / 3, 1000, 10000);
    options.reconnect_ms = within(asked.ttl_ms / 6, 500, 5000);
    cli->keeps = true;
    return connect_database(cli, &options);
}

static bool get_locks(struct cli *cli, int *result, int *status)
{
    *status = connect_for_run(cli);
    if (*status == EXIT_FINE)
        *status = outer_refuses(cli);
    return *status == EXIT_FINE && grant_get(cli, result, status);
}

/* The tables may get another identity, or be made anew, after one of the connections looked at
 * them. Then everything is tried once more. A signal may end that: nothing is held. */
bool hold_get(struct cli *cli, int *status)
{
    int result = ROWLOCK_OK;
    if (get_locks(cli, &result, status))
        return true;
    if (result != ROWLOCK_ESCHEMA || *status != status_of(result))
        return false;
    tell(cli, "the tables may have changed; starting again");
    disconnect_database(cli);
    signals_start(cli->resigns);
    return get_locks(cli, &result, status);
}

static int lost_after_all(const struct cli *cli, const struct job *job, const rowlock_lock *lock)
{
    int status = job->wait_status;
    bool exited = WIFEXITED(status);
    complain(
        "%s '%s': the lock was lost before the job ended (%s %d); another client may have held "
        "it meanwhile, so check what the job did",
        cli->command->name, rowlock_lock_name(lock), exited ? "exit status" : "signal",
        exited ? WEXITSTATUS(status) : WTERMSIG(status));
    return EXIT_LOST;
}

/* The lease ran when the release was sent, and the answer was lost. So the job's work was protected
 * to its end, unless an operator broke the lock. */
static bool may_be_ours(const struct cli *cli, const rowlock_lock *lock, int64_t remaining_ms)
{
    if (!last_error(cli).answer_lost || remaining_ms <= 0)
        return false;
    complain("release lock '%s': the answer was lost, and another client has the lock now",
             rowlock_lock_name(lock));
    return true;
}

/* Lock by lock, until a release does not reach the database. */
int hold_release(struct cli *cli, const struct job *job, bool told, int status)
{
    for (int i = 0; i < cli->lock_count && !cli->abandon; i++) {
        int64_t remaining_ms = rowlock_lock_remaining_ms(cli->locks[i]);
        int result = rowlock_release(cli->locks[i]);
        if (result == ROWLOCK_LOST && !told && !may_be_ours(cli, cli->locks[i], remaining_ms))
            status = lost_after_all(cli, job, cli->locks[i]);
        if (result == ROWLOCK_OK || result == ROWLOCK_LOST)
            continue;
        report_failure(cli, result);
        complain("release lock '%s': it ends with its lease", rowlock_lock_name(cli->locks[i]));
        cli->abandon = true;
    }
    return status;
}
