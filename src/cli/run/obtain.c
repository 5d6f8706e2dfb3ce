/* SPDX-License-Identifier: MIT
 *
 * Acquires locks for `run` and `acquire`: tries, names the holder, waits. If a signal ends it,
 * nothing is left behind. The library decides how to wait.
 */
#include "cli/run/run.h"

#include <stdlib.h>
#include <string.h>

struct obstacle {
    rowlock_grant holder;
    bool held;
    /* The first waiter of the queue. */
    rowlock_waiter first;
    int waiters;
};

static int note(void *context, const struct entry *entry)
{
    struct obstacle *obstacle = context;
    if (!entry->waits) {
        obstacle->holder = entry->grant;
        obstacle->held = entry->grant.remaining_ms >= 0;
        return obstacle->held;
    }
    if (entry->waiter.position == 1)
        obstacle->first = entry->waiter;
    obstacle->waiters += entry->waiter.position > 0;
    return 0;
}

/* For several locks the library does not tell the holder of the missing one, so it is looked up. */
static void look_around(const struct cli *cli, const rowlock_lock *lock, struct obstacle *obstacle)
{
    const char *name = rowlock_lock_name(lock);
    obstacle->held = rowlock_lock_holder(lock, &obstacle->holder) == ROWLOCK_OK;
    if (list_entries(cli->db, name, true, note, obstacle) != ROWLOCK_OK)
        obstacle->waiters = 0;
    if (!obstacle->held && cli->lock_count > 1 &&
        list_entries(cli->db, name, false, note, obstacle) != ROWLOCK_OK)
        obstacle->held = false;
}

static void say_obstacle(const struct obstacle *obstacle, const char *name, const char *then)
{
    const rowlock_waiter *first = &obstacle->first;
    char queue[40] = "";
    if (obstacle->waiters > 0)
        snprintf(queue, sizeof queue, " (%d in the queue)", obstacle->waiters);
    if (obstacle->held)
        complain("'%s' is %s%s; %s", name, held_text(&obstacle->holder).text, queue, then);
    else if (obstacle->waiters > 0)
        complain("'%s' goes to %s next, the first waiter%s; %s", name,
                 process_text(first->program, first->pid, first->host).text, queue, then);
    else
        complain("'%s' is busy: another transaction is changing it; %s", name, then);
}

/* A holder is named only where talkative() says so. A line is always worth it if a wait is over and
 * there is neither holder nor waiter: something else keeps the lock from being granted. */
static void say_who_holds(const struct cli *cli, size_t missing, const char *then)
{
    const rowlock_lock *lock = cli->locks[missing];
    struct obstacle obstacle = {.holder = ROWLOCK_GRANT_INIT};
    if (!talkative() && rowlock_lock_holder(lock, &obstacle.holder) == ROWLOCK_OK)
        return;
    look_around(cli, lock, &obstacle);
    if (talkative() || (!obstacle.held && obstacle.waiters == 0))
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
    return cli->wait_until_ms == INT64_MAX ? ROWLOCK_FOREVER
                                           : within(cli->wait_until_ms - now_ms(), 0, INT64_MAX);
}

/* If connecting has used all of the time, the wait is a try, and its end is that of a wait. */
static int get_in_time(const struct cli *cli, rowlock_acquire_options *options, size_t *missing)
{
    options->wait_ms = wait_left_ms(cli);
    int result = get(cli, options, missing);
    bool is_over = options->wait_ms == 0 && asked.wait_ms != 0;
    return result == ROWLOCK_BUSY && is_over ? ROWLOCK_TIMEOUT : result;
}

/* Where talkative() says so, a try comes first, so that a message can name the holder. */
static int acquire(const struct cli *cli, size_t *missing)
{
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.ttl_ms = asked.ttl_ms;
    options.note = asked.note;
    options.keep = cli->keeps;
    options.margin_ms = cli->margin_ms;
    options.progress_ms = asked.stall_ms;
    options.permits = asked_permits();
    options.unfair = asked.unfair;
    if (asked.wait_ms != 0 && talkative()) {
        int result = get(cli, &options, missing);
        bool busy = result == ROWLOCK_BUSY;
        if (!busy && result != ROWLOCK_ECONN && result != ROWLOCK_EUNCERTAIN &&
            result != ROWLOCK_EREADONLY)
            return result;
        if (busy)
            say_who_holds(cli, *missing, "waiting");
        if (wait_left_ms(cli) == 0)
            return busy ? ROWLOCK_TIMEOUT : result;
    }
    return get_in_time(cli, &options, missing);
}

void grant_release(struct cli *cli)
{
    for (int i = 0; i < cli->lock_count; i++) {
        int result = rowlock_release(cli->locks[i]);
        if (result < 0)
            reported(cli, result);
    }
}

static int not_acquired(struct cli *cli, int result, size_t missing)
{
    int status = status_of_error(result, rowlock_db_error(cli->db));
    /* Rivals of the same moment lock the rows for each other: a try that is BUSY is no news. */
    if (result == ROWLOCK_TIMEOUT || (result == ROWLOCK_BUSY && talkative()))
        say_who_holds(cli, missing, "giving up");
    else if (result != ROWLOCK_BUSY)
        reported(cli, result);
    return conflict_status(status);
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
    return new_text("%s", text);
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
    for (int i = 0; i < cli->lock_count; i++)
        complain("got '%s' with token %lld for %s", rowlock_lock_name(cli->locks[i]),
                 (long long)rowlock_lock_token(cli->locks[i]), duration_text(asked.ttl_ms).text);
}

bool grant_get(struct cli *cli, int *result, int *status)
{
    size_t missing;
    *status = outer_refuses(cli);
    if (*status == EXIT_FINE) {
        *result = open_locks(cli);
        *status = reported(cli, *result);
    }
    if (*status != EXIT_FINE)
        return false;
    signals_cancel(cli->db);
    cli->waiting = true;
    *result = acquire(cli, &missing);
    cli->waiting = false;
    int signal = signals_keep();
    if (signal && *result == ROWLOCK_OK)
        grant_release(cli);
    if (signal || *result != ROWLOCK_OK) {
        *status = signal ? die_later(signal) : not_acquired(cli, *result, missing);
        return false;
    }
    if (general.verbose)
        say_got(cli);
    return true;
}
