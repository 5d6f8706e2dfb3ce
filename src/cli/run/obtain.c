/* SPDX-License-Identifier: MIT
 *
 * Acquires locks for `run` and `acquire`: tries, names the holder, waits. If a signal ends it,
 * nothing is left behind.
 */
#include "cli/run/obtain.h"

#include "cli/run/signals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_MS (INT64_C(366) * 86400000)

int wait_settings(struct cli *cli)
{
    struct settings *set = &cli->set;
    if (set->nonblock && set->wait_ms != UNSET)
        return usage_error(cli, "--nonblock and --wait exclude each other");
    if (set->nonblock)
        set->wait_ms = 0;
    if (set->wait_ms == UNSET)
        set->wait_ms = ROWLOCK_FOREVER;
    if (set->wait_ms > LONGEST_MS)
        return usage_error(cli,
                           "--wait: must be at most 366d; leave it out to wait without a limit");
    wait_begin(cli);
    return EXIT_FINE;
}

void wait_begin(struct cli *cli)
{
    int64_t wait_ms = cli->set.wait_ms;
    cli->wait_until_ms = wait_ms == ROWLOCK_FOREVER ? INT64_MAX : now_ms() + wait_ms;
}

/* What a quorum does not grant is refused before a member is asked. */
static int quorum_settings(const struct cli *cli)
{
    const struct settings *set = &cli->set;
    if (set->shared || set->permits != UNSET)
        return usage_error(cli, "several URLs: they grant exclusive locks only, so --shared and "
                                "--permits need one URL");
    if (cli->name_count > 1)
        return usage_error(cli, "several URLs: they grant one lock at a time; put one run into "
                                "another, in the same order everywhere");
    if (set->once || set->every_ms != UNSET)
        return usage_error(
            cli, "several URLs: --once and --every need one URL; keys are in one database");
    return EXIT_FINE;
}

int grant_settings(struct cli *cli)
{
    struct settings *set = &cli->set;
    int status = wait_settings(cli);
    if (status != EXIT_FINE)
        return status;
    if (set->ttl_ms == UNSET)
        set->ttl_ms = DEFAULT_TTL_MS;
    if (set->ttl_ms < 100 || set->ttl_ms > LONGEST_MS)
        return usage_error(cli, "--ttl: the lease must be from 100ms to 366d");
    if (set->shared && set->permits != UNSET)
        return usage_error(cli, "--shared and --permits exclude each other");
    return is_quorum(cli) ? quorum_settings(cli) : EXIT_FINE;
}

int32_t grant_permits(const struct cli *cli)
{
    if (cli->set.shared)
        return ROWLOCK_SHARED;
    return cli->set.permits == UNSET ? 0 : (int32_t)cli->set.permits;
}

/* ---------------------------------------------------------------- who is in the way */

struct obstacle {
    rowlock_grant holder;
    bool held;
    /* Of the queue. */
    rowlock_waiter first;
    int waiters;
};

static int note_waiter(void *context, const rowlock_waiter *waiter)
{
    struct obstacle *obstacle = context;
    if (waiter->position == 1)
        obstacle->first = *waiter;
    obstacle->waiters += waiter->position > 0;
    return 0;
}

static int note_holder(void *context, const rowlock_grant *grant)
{
    struct obstacle *obstacle = context;
    obstacle->holder = *grant;
    obstacle->held = grant->remaining_ms >= 0;
    return obstacle->held;
}

/* For several locks the library does not tell the holder of the missing one, so it is looked up. */
static void look_around(const struct cli *cli, const rowlock_lock *lock, struct obstacle *obstacle)
{
    const char *name = rowlock_lock_name(lock);
    obstacle->held = rowlock_lock_holder(lock, &obstacle->holder) == ROWLOCK_OK;
    if (rowlock_list_waiters(cli->db, name, note_waiter, obstacle) != ROWLOCK_OK)
        obstacle->waiters = 0;
    if (!obstacle->held && cli->lock_count > 1 &&
        rowlock_list(cli->db, name, note_holder, obstacle) != ROWLOCK_OK)
        obstacle->held = false;
}

static void say_obstacle(const struct obstacle *obstacle, const char *name, const char *then)
{
    char queue[40] = "";
    if (obstacle->waiters > 0)
        snprintf(queue, sizeof queue, " (%d in the queue)", obstacle->waiters);
    if (obstacle->held) {
        char *held = held_text(&obstacle->holder);
        complain("'%s' is %s%s; %s", name, held, queue, then);
        free(held);
    } else if (obstacle->waiters > 0) {
        char *first = waiter_text(&obstacle->first);
        complain("'%s' goes to %s next, the first waiter%s; %s", name, first, queue, then);
        free(first);
    } else {
        complain("'%s' is busy: another transaction is changing it; %s", name, then);
    }
}

/* A holder is named only where talkative() says so. A line is always worth it if a wait is over and
 * there is neither holder nor waiter: something else keeps the lock from being granted. */
static void say_who_holds(const struct cli *cli, size_t missing, const char *then)
{
    const rowlock_lock *lock = cli->locks[missing];
    struct obstacle obstacle = {.holder = ROWLOCK_GRANT_INIT};
    if (!talkative(cli) && rowlock_lock_holder(lock, &obstacle.holder) == ROWLOCK_OK)
        return;
    look_around(cli, lock, &obstacle);
    if (talkative(cli) || (!obstacle.held && obstacle.waiters == 0))
        say_obstacle(&obstacle, rowlock_lock_name(lock), then);
}

/* ---------------------------------------------------------------- getting them */

static int get(const struct cli *cli, const rowlock_acquire_options *options, size_t *missing)
{
    *missing = 0;
    if (cli->lock_count == 1)
        return rowlock_acquire(cli->locks[0], options);
    return rowlock_acquire_all(cli->locks, (size_t)cli->lock_count, options, missing);
}

/* Waiting for the server has used a part of the time. */
static int64_t wait_left_ms(const struct cli *cli)
{
    int64_t left_ms = cli->wait_until_ms - now_ms();
    if (cli->wait_until_ms == INT64_MAX)
        return ROWLOCK_FOREVER;
    return left_ms > 0 ? left_ms : 0;
}

/* If connecting has used all of the time, the wait is a try, and its end is that of a wait. */
static int get_in_time(const struct cli *cli, rowlock_acquire_options *options, size_t *missing)
{
    options->wait_ms = wait_left_ms(cli);
    int result = get(cli, options, missing);
    bool is_over = options->wait_ms == 0 && cli->set.wait_ms != 0;
    return result == ROWLOCK_BUSY && is_over ? ROWLOCK_TIMEOUT : result;
}

/* Where talkative() says so, a try comes first, so that a message can name the holder. */
static int acquire(const struct cli *cli, size_t *missing)
{
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.ttl_ms = cli->set.ttl_ms;
    options.note = cli->set.note;
    options.keeper = cli->keeper;
    options.margin_ms = cli->margin_ms;
    options.progress_ms = cli->set.stall_ms == UNSET ? 0 : cli->set.stall_ms;
    options.permits = grant_permits(cli);
    options.unfair = cli->set.unfair;
    if (cli->set.wait_ms != 0 && talkative(cli)) {
        int result = get(cli, &options, missing);
        bool unreachable =
            result == ROWLOCK_ECONN || result == ROWLOCK_EUNCERTAIN || result == ROWLOCK_EREADONLY;
        if (result != ROWLOCK_BUSY && !unreachable)
            return result;
        if (result == ROWLOCK_BUSY)
            say_who_holds(cli, *missing, "waiting");
        if (wait_left_ms(cli) == 0)
            return result == ROWLOCK_BUSY ? ROWLOCK_TIMEOUT : result;
    }
    return get_in_time(cli, &options, missing);
}

static int after_signal(struct cli *cli, int result, int signal)
{
    for (int i = 0; result == ROWLOCK_OK && i < cli->lock_count; i++) {
        int released = rowlock_release(cli->locks[i]);
        if (released < 0)
            report_failure(cli, released);
    }
    return die_later(signal);
}

static int not_acquired(struct cli *cli, int result, size_t missing)
{
    rowlock_error error = ROWLOCK_ERROR_INIT;
    rowlock_db_error(cli->db, &error);
    int status = status_of_error(result, &error);
    /* Rivals of the same moment lock the rows for each other: a try that is BUSY is no news. */
    if (result == ROWLOCK_TIMEOUT || (result == ROWLOCK_BUSY && talkative(cli)))
        say_who_holds(cli, missing, "giving up");
    else if (result != ROWLOCK_BUSY)
        report_failure(cli, result);
    bool asked = status == EXIT_NOT_ACQUIRED && cli->set.conflict_status != UNSET;
    return asked ? (int)cli->set.conflict_status : status;
}

/* As many names as fit into a line. */
static char *title_of(const struct cli *cli)
{
    char text[600];
    int used = snprintf(text, sizeof text, "'%s'", cli->arguments[0]);
    for (int i = 1; i < cli->name_count; i++) {
        if (used + (int)strlen(cli->arguments[i]) > 400) {
            snprintf(text + used, sizeof text - (size_t)used, " and %d more", cli->name_count - i);
            break;
        }
        used += snprintf(text + used, sizeof text - (size_t)used, ", '%s'", cli->arguments[i]);
    }
    return must_have(strdup(text));
}

static int open_locks(struct cli *cli)
{
    cli->locks = must_have(calloc((size_t)cli->name_count, sizeof(rowlock_lock *)));
    for (int i = 0; i < cli->name_count; i++) {
        int result = rowlock_lock_open(cli->db, cli->arguments[i], &cli->locks[i]);
        if (result != ROWLOCK_OK)
            return result;
        cli->lock_count++;
    }
    cli->title = title_of(cli);
    return ROWLOCK_OK;
}

static void say_got(const struct cli *cli)
{
    char lease[DURATION_TEXT_SIZE];
    duration_text(cli->set.ttl_ms, lease);
    for (int i = 0; i < cli->lock_count; i++)
        complain("got '%s' with token %lld for %s", rowlock_lock_name(cli->locks[i]),
                 (long long)rowlock_lock_token(cli->locks[i]), lease);
}

bool grant_get(struct cli *cli, int *result, int *status)
{
    size_t missing;
    *result = open_locks(cli);
    if (*result != ROWLOCK_OK) {
        *status = report_failure(cli, *result);
        return false;
    }
    signals_cancel(cli->db);
    cli->waiting = true;
    *result = acquire(cli, &missing);
    cli->waiting = false;
    int signal = signals_keep();
    if (signal || *result != ROWLOCK_OK) {
        *status = signal ? after_signal(cli, *result, signal) : not_acquired(cli, *result, missing);
        return false;
    }
    if (cli->set.verbose)
        say_got(cli);
    return true;
}
