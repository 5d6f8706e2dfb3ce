/* SPDX-License-Identifier: MIT
 *
 * Gets a lock for `run` and `acquire`: tries, says who is in the way, waits, and leaves nothing
 * behind when a signal ends it.
 */
#include "grant.h"

#include "signals.h"

#include <stdlib.h>
#include <unistd.h>

#define LONGEST_MS (INT64_C(366) * 86400000)

int grant_settings(struct cli *cli)
{
    struct settings *set = &cli->set;
    if (set->nonblock && set->wait_ms != UNSET)
        return usage_error(cli, "--nonblock and --wait exclude each other");
    if (set->nonblock)
        set->wait_ms = 0;
    if (set->wait_ms == UNSET)
        set->wait_ms = ROWLOCK_FOREVER;
    if (set->ttl_ms == UNSET)
        set->ttl_ms = DEFAULT_TTL_MS;
    if (set->wait_ms > LONGEST_MS)
        return usage_error(cli, "--wait: must be at most 366d; leave it out to wait for ever");
    if (set->ttl_ms < 100 || set->ttl_ms > LONGEST_MS)
        return usage_error(cli, "--ttl: must be from 100ms to 366d");
    return EXIT_FINE;
}

/* A person who waits wants to know for whom. A cron job that finds another host at work does not
 * want to send mail about it; but that nobody can be named is worth a line everywhere, since something
 * else than a holder may keep the lock from being granted. */
static bool talkative(const struct cli *cli)
{
    return cli->set.verbose || isatty(STDERR_FILENO);
}

static void say_who_holds(const struct cli *cli, const char *then)
{
    rowlock_grant holder = ROWLOCK_GRANT_INIT;
    const char *name = rowlock_lock_name(cli->lock);
    if (rowlock_lock_holder(cli->lock, &holder) != ROWLOCK_OK) {
        complain("'%s' is kept busy by another transaction, which cannot be named; %s", name, then);
        return;
    }
    char left[DURATION_TEXT_SIZE];
    duration_text(holder.remaining_ms > 0 ? holder.remaining_ms : 0, left);
    char *who = holder_text(&holder);
    complain("'%s' is held by %s, its lease lasts %s more%s%s; %s", name, who, left,
             holder.note[0] ? ": " : "", holder.note, then);
    free(who);
}

/* One try without waiting comes first where somebody wants to read who is in the way. */
static int acquire(struct cli *cli)
{
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    int64_t wait_ms = cli->set.wait_ms;
    int64_t start_ms = now_ms();
    options.ttl_ms = cli->set.ttl_ms;
    options.note = cli->set.note;
    options.keeper = cli->keeper;
    options.margin_ms = cli->margin_ms;
    options.progress_ms = cli->set.stall_ms == UNSET ? 0 : cli->set.stall_ms;
    if (wait_ms != 0 && talkative(cli)) {
        int result = rowlock_acquire(cli->lock, &options);
        if (result != ROWLOCK_BUSY)
            return result;
        say_who_holds(cli, "waiting");
        int64_t left_ms = wait_ms - (now_ms() - start_ms);
        if (wait_ms != ROWLOCK_FOREVER && left_ms <= 0)
            return ROWLOCK_TIMEOUT;
        wait_ms = wait_ms == ROWLOCK_FOREVER ? wait_ms : left_ms;
    }
    options.wait_ms = wait_ms;
    return rowlock_acquire(cli->lock, &options);
}

static int after_signal(struct cli *cli, int result, int signal)
{
    if (result == ROWLOCK_OK) {
        int released = rowlock_release(cli->lock);
        if (released < 0)
            report_failure(cli, released);
    }
    return EXIT_SIGNAL + signal;
}

static int not_acquired(struct cli *cli, int result)
{
    if (result != ROWLOCK_BUSY && result != ROWLOCK_TIMEOUT)
        return report_failure(cli, result);
    rowlock_grant holder = ROWLOCK_GRANT_INIT;
    if (talkative(cli) || rowlock_lock_holder(cli->lock, &holder) != ROWLOCK_OK)
        say_who_holds(cli, "giving up");
    return cli->set.conflict_status != UNSET ? (int)cli->set.conflict_status : EXIT_NOT_ACQUIRED;
}

bool grant_get(struct cli *cli, int *result, int *status)
{
    *result = rowlock_lock_open(cli->db, cli->arguments[0], &cli->lock);
    if (*result != ROWLOCK_OK) {
        *status = report_failure(cli, *result);
        return false;
    }
    signals_cancel(cli->db);
    *result = acquire(cli);
    int signal = signals_keep();
    if (signal || *result != ROWLOCK_OK) {
        *status = signal ? after_signal(cli, *result, signal) : not_acquired(cli, *result);
        return false;
    }
    if (cli->set.verbose) {
        char lease[DURATION_TEXT_SIZE];
        duration_text(cli->set.ttl_ms, lease);
        complain("got '%s' with token %lld for %s", cli->arguments[0],
                 (long long)rowlock_lock_token(cli->lock), lease);
    }
    return true;
}
