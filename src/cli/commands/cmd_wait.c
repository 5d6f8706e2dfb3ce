/* SPDX-License-Identifier: MIT
 *
 * `rowlock wait` looks until a lock is free, `rowlock leader` tells who holds it. Both acquire and
 * write nothing, so a signal may end them at any time.
 */
#include "cli/commands/commands.h"

#include <string.h>

static int look_once(struct cli *cli, void *context, rowlock_error *error)
{
    int result = snapshot_grants(context, cli->db, cli->arguments[0]);
    *error = last_error(cli);
    return result;
}

/* Goes on through an outage as long as the command waits. Returns an exit status. */
static int look(struct cli *cli, struct snapshot *snapshot)
{
    rowlock_error error;
    return reported(cli, try_until_there(cli, look_once, snapshot, &error));
}

/* Does its lease run? */
static bool holds(const struct entry *entry)
{
    return entry->grant.remaining_ms >= 0;
}

/* ---------------------------------------------------------------- wait */

enum {
    /* Between two looks. */
    SHORTEST_MS = 20,
    LONGEST_MS = 1000,
    /* The next pause is this part of the time waited so far. */
    PATIENCE = 20,
    /* After the end of the last lease, so that one look suffices. */
    LEASE_END_SLACK_MS = 2
};

/* The holder with the longest lease. NULL: the lock is free. */
static const rowlock_grant *last_holder(const struct snapshot *snapshot)
{
    const rowlock_grant *last = NULL;
    for (size_t i = 0; i < snapshot->grants; i++) {
        const rowlock_grant *grant = &snapshot->entries[i].grant;
        if (holds(&snapshot->entries[i]) && (!last || grant->remaining_ms > last->remaining_ms))
            last = grant;
    }
    return last;
}

static void say_held(const rowlock_grant *holder, size_t holders, const char *then)
{
    char others[40] = "";
    if (holders > 1)
        snprintf(others, sizeof others, " (%zu holders)", holders);
    complain("'%s' is %s%s; %s", holder->name, held_text(holder).text, others, then);
}

static int wait_until_free(struct cli *cli, struct snapshot *snapshot)
{
    int64_t start_ms = now_ms();
    /* The token of the holder that was named last. */
    int64_t said = 0;
    for (;;) {
        bool over = now_ms() >= cli->wait_until_ms;
        int status = look(cli, snapshot);
        const rowlock_grant *holder = last_holder(snapshot);
        if (status != EXIT_FINE || !holder)
            return status;
        if (talkative() && (over || said != holder->token))
            say_held(holder, snapshot->held, over ? "giving up" : "waiting");
        said = holder->token;
        if (over)
            return EXIT_NOT_ACQUIRED;
        int64_t now = now_ms();
        int64_t pause_ms = within((now - start_ms) / PATIENCE, SHORTEST_MS, LONGEST_MS);
        int64_t next_ms = now + within(holder->remaining_ms + LEASE_END_SLACK_MS, 0, pause_ms);
        pause_until(next_ms < cli->wait_until_ms ? next_ms : cli->wait_until_ms, -1);
    }
}

static int run_wait(struct cli *cli)
{
    struct snapshot snapshot = {0};
    int status = wait_settings(cli);
    if (status != EXIT_FINE)
        return status;
    status = connect_database(cli, NULL);
    if (status == EXIT_FINE)
        status = outer_refuses(cli);
    if (status == EXIT_FINE)
        status = wait_until_free(cli, &snapshot);
    snapshot_free(&snapshot);
    return conflict_status(status);
}

const struct command wait_command =
    COMMAND("wait", "NAME", "wait until a lock is free",
            "It acquires nothing: another client may get the lock a moment later.\n"
            "Exit status: 0 the lock is free; 75 the time is over.\n",
            asked_options, 1, 1, false, QUORUM, run_wait);

/* ---------------------------------------------------------------- leader */

static bool watches;

static const struct option_row leader_options[] = {
    FLAG_OPTION("watch", 0, "print a line at each change, until a signal ends it", watches),
    INTERVAL_OPTION, JSON_OPTION, OPTIONS_END};

/* No leader: the token is 0. */
static int look_for_leader(struct cli *cli, struct snapshot *snapshot, rowlock_grant *leader)
{
    int status = look(cli, snapshot);
    *leader = (rowlock_grant)ROWLOCK_GRANT_INIT;
    for (size_t i = 0; i < snapshot->grants && !leader->token; i++)
        if (holds(&snapshot->entries[i]))
            *leader = snapshot->entries[i].grant;
    return status;
}

/* "17 app[4711]@web1 10.0.0.5:8080" */
static void print_leader(const struct cli *cli, const rowlock_grant *leader)
{
    if (general.json) {
        json_t *object = must_have(json_object());
        json_put_text(object, "name", cli->arguments[0]);
        json_put(object, "leader", leader->token ? json_of_grant(leader) : json_null());
        json_print(object, watches);
    } else if (leader->token) {
        say("%lld %s%s%s", (long long)leader->token, holder_text(leader).text,
            leader->note[0] ? " " : "", leader->note);
    } else {
        puts("-");
    }
    fflush(stdout);
}

/* If there is no reader any more, finish_output() says so. */
static int watch(struct cli *cli, struct snapshot *snapshot, rowlock_grant *leader)
{
    print_leader(cli, leader);
    while (!ferror(stdout)) {
        rowlock_grant next;
        pause_until(now_ms() + general.interval_ms, -1);
        int status = look_for_leader(cli, snapshot, &next);
        if (status != EXIT_FINE)
            return status;
        if (leader->token == next.token && strcmp(leader->note, next.note) == 0)
            continue;
        *leader = next;
        print_leader(cli, leader);
    }
    return EXIT_FINE;
}

static int lead_status(struct cli *cli, struct snapshot *snapshot)
{
    rowlock_grant leader;
    int status = look_for_leader(cli, snapshot, &leader);
    if (status != EXIT_FINE)
        return status;
    if (watches)
        return watch(cli, snapshot, &leader);
    if (leader.token || general.json)
        print_leader(cli, &leader);
    else
        complain("leader '%s': there is none", cli->arguments[0]);
    return leader.token ? EXIT_FINE : EXIT_NOT_ACQUIRED;
}

static int run_leader(struct cli *cli)
{
    struct snapshot snapshot = {0};
    if (general.interval_ms != UNSET && !watches)
        return usage_error(cli, "--interval needs --watch");
    if (general.interval_ms == UNSET)
        general.interval_ms = DEFAULT_INTERVAL_MS;
    /* --watch goes on through an outage. */
    cli->wait_until_ms = watches ? INT64_MAX : 0;
    int status = connect_database(cli, NULL);
    if (status == EXIT_FINE)
        status = lead_status(cli, &snapshot);
    snapshot_free(&snapshot);
    return status;
}

const struct command leader_command = COMMAND(
    "leader", "NAME", "print who holds a lock, with its note",
    "It prints token, holder and note. The token is the number of the term.\n"
    "With --watch it prints a line at each change, \"-\" for no leader, and goes on through an\n"
    "outage of the database.\n"
    "Exit status: 0 there is a leader; 75 there is none.\n",
    leader_options, 1, 1, false, QUORUM, run_leader);
