/* SPDX-License-Identifier: MIT
 *
 * Acquires locks for `run` and `acquire`: tries, names the holder, waits. If a signal ends it,
 * nothing is left behind. The library decides how to wait. Then tells the job of the locks.
 *
 * ROWLOCK_HELD has one entry for each lock of each run around us: "(name:owner:token)". Name and
 * owner are in hexadecimal digits, so no entry contains another. A token alone is not enough:
 * another database may have granted it too. So we ask our database for the grant.
 */
#include "cli/run/run.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- the runs around us */

struct outer {
    const struct cli *cli;
    const char *held;
    bool waits_for_itself;
    bool takes_over;
};

static void put_digits(FILE *file, const char *text)
{
    for (; *text; text++)
        fprintf(file, "%02x", (unsigned char)*text);
}

/* Without an owner: the beginning of the entries of that name. */
static void put_entry(FILE *file, const char *name, const char *owner, int64_t token)
{
    fputc('(', file);
    put_digits(file, name);
    fputc(':', file);
    if (owner) {
        put_digits(file, owner);
        fprintf(file, ":%lld)", (long long)token);
    }
}

/* The text after the entry, or after the beginning of one, at or behind at. NULL: there is none. */
static const char *past_entry(const char *at, const char *name, const char *owner, int64_t token)
{
    char *entry;
    FILE *file = open_text(&entry);
    put_entry(file, name, owner, token);
    closed_text(file, &entry);
    const char *found = strstr(at, entry);
    const char *past = found ? found + strlen(entry) : NULL;
    free(entry);
    return past;
}

static int look_at_grant(void *context, const rowlock_grant *grant)
{
    struct outer *outer = context;
    if (grant->remaining_ms < 0 ||
        !past_entry(outer->held, grant->name, grant->owner, grant->token))
        return 0;
    bool together = grant->permits != 0 && grant->permits == asked_permits();
    outer->takes_over = asked.owner && strcmp(asked.owner, grant->owner) == 0;
    outer->waits_for_itself = !asked.nonblock && !together;
    return outer->takes_over || outer->waits_for_itself;
}

static bool holds(const struct cli *cli, const char *name, const char *owner, int64_t token)
{
    rowlock_lock *lock = NULL;
    bool held = rowlock_lock_attach(cli->db, name, owner, token, &lock) == ROWLOCK_OK &&
                rowlock_verify(lock) == ROWLOCK_OK;
    rowlock_lock_close(lock);
    return held;
}

/* The rest of an entry: "owner:token)". */
static bool read_entry(const char *rest, char *owner, size_t size, int64_t *token)
{
    size_t digits = strspn(rest, "0123456789abcdef");
    if (rest[digits] != ':' || digits / 2 >= size)
        return false;
    for (size_t i = 0; i < digits / 2; i++) {
        char byte[] = {rest[2 * i], rest[2 * i + 1], '\0'};
        owner[i] = (char)strtol(byte, NULL, 16);
    }
    owner[digits / 2] = '\0';
    char *end = NULL;
    *token = strtoll(rest + digits + 1, &end, 10);
    return *end == ')';
}

/* The member that a list reads may lack the row. */
static int ask_majority(struct outer *outer, const char *name)
{
    for (const char *at = outer->held; (at = past_entry(at, name, NULL, 0));) {
        char owner[256];
        int64_t token;
        if (!read_entry(at, owner, sizeof owner, &token) || !holds(outer->cli, name, owner, token))
            continue;
        outer->takes_over = asked.owner && strcmp(asked.owner, owner) == 0;
        outer->waits_for_itself = !asked.nonblock;
    }
    return ROWLOCK_OK;
}

int outer_refuses(const struct cli *cli)
{
    struct outer outer = {.cli = cli, .held = getenv("ROWLOCK_HELD")};
    for (int i = 0; outer.held && i < cli->name_count; i++) {
        const char *name = cli->arguments[i];
        if (!past_entry(outer.held, name, NULL, 0))
            continue;
        int result = is_quorum(cli) ? ask_majority(&outer, name)
                                    : rowlock_list(cli->db, name, look_at_grant, &outer);
        if (result != ROWLOCK_OK || (!outer.takes_over && !outer.waits_for_itself))
            continue;
        complain("%s '%s': a run around this command holds it%s", cli->command->name, name,
                 outer.takes_over ? " and would lose it to the same owner; give another --owner"
                                  : ", so this wait would never end; give -n, or another name");
        return EXIT_USAGE;
    }
    return EXIT_FINE;
}

/* ---------------------------------------------------------------- what is in the way */

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
    const char *name = rowlock_lock_name(cli->locks[missing]);
    struct obstacle obstacle = {.holder = ROWLOCK_GRANT_INIT};
    obstacle.held = rowlock_lock_holder(cli->locks[missing], &obstacle.holder) == ROWLOCK_OK;
    if (obstacle.held && !talkative())
        return;
    if (list_entries(cli->db, name, true, note, &obstacle) != ROWLOCK_OK)
        obstacle.waiters = 0;
    /* For several locks the library does not tell the holder of the missing one. */
    if (!obstacle.held && cli->lock_count > 1 &&
        list_entries(cli->db, name, false, note, &obstacle) != ROWLOCK_OK)
        obstacle.held = false;
    if (talkative() || (!obstacle.held && obstacle.waiters == 0))
        say_obstacle(&obstacle, name, then);
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

/* Where talkative() says so, a try names the holder first. Its errors are left to the wait. */
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
        if (result == ROWLOCK_BUSY)
            say_who_holds(cli, *missing, "waiting");
        else if (result >= 0)
            return result;
        if (wait_left_ms(cli) == 0)
            return result == ROWLOCK_BUSY ? ROWLOCK_TIMEOUT : result;
    }
    /* If connecting has used all of the time, the wait is a try, and its end is that of a wait. */
    options.wait_ms = wait_left_ms(cli);
    int result = get(cli, &options, missing);
    bool is_over = options.wait_ms == 0 && asked.wait_ms != 0;
    return result == ROWLOCK_BUSY && is_over ? ROWLOCK_TIMEOUT : result;
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
    for (int i = 0; general.verbose && i < cli->lock_count; i++)
        complain("got '%s' with token %lld for %s", rowlock_lock_name(cli->locks[i]),
                 (long long)rowlock_lock_token(cli->locks[i]), duration_text(asked.ttl_ms).text);
    return true;
}

/* ---------------------------------------------------------------- for the job */

char *lines_of_locks(const struct cli *cli, bool tokens)
{
    char *text;
    FILE *file = open_text(&text);
    for (int i = 0; i < cli->lock_count; i++) {
        fputs(i ? "\n" : "", file);
        if (tokens)
            fprintf(file, "%lld", (long long)rowlock_lock_token(cli->locks[i]));
        else
            fputs(rowlock_lock_name(cli->locks[i]), file);
    }
    return closed_text(file, &text);
}

static char *held_with_ours(const struct cli *cli)
{
    const char *around = getenv("ROWLOCK_HELD");
    char *text;
    FILE *file = open_text(&text);
    fputs(around ? around : "", file);
    for (int i = 0; i < cli->lock_count; i++)
        put_entry(file, rowlock_lock_name(cli->locks[i]), rowlock_lock_owner(cli->locks[i]),
                  rowlock_lock_token(cli->locks[i]));
    return closed_text(file, &text);
}

void set_environment(const struct cli *cli)
{
    int64_t end_us = INT64_MAX;
    for (int i = 0; i < cli->lock_count; i++)
        end_us = at_most(rowlock_lock_expires_us(cli->locks[i]), end_us);
    if (general.url_count > 0)
        job_set("ROWLOCK_URL", joined_urls());
    job_set("ROWLOCK_NAME", lines_of_locks(cli, false));
    job_set("ROWLOCK_TOKEN", lines_of_locks(cli, true));
    job_set("ROWLOCK_OWNER", new_text("%s", rowlock_lock_owner(cli->locks[0])));
    job_set("ROWLOCK_EXPIRES_AT",
            new_text("%lld.%06d", (long long)(end_us / 1000000), (int)(end_us % 1000000)));
    if (asked.every_ms)
        job_set("ROWLOCK_PERIOD", new_text("%s", asked.once));
    period_restore_zone();
    job_set("ROWLOCK_HELD", held_with_ours(cli));
}
