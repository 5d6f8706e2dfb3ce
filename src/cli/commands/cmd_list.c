/* SPDX-License-Identifier: MIT
 *
 * list and show print holders and waiters, as a table, as lines or as JSON. `rowlock wait` looks
 * until a lock is free, `rowlock leader` tells who holds it. They acquire and write nothing, so a
 * signal may end them at any time.
 */
#include "cli/run/run.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- list */

static bool waiters, names;

static const struct option_row list_options[] = {
    FLAG_OPTION("waiters", 0, "show the waiters instead of the grants", waiters),
    FLAG_OPTION("names", 0, "print only the names of the locks, each once", names),
    JSON_OPTION,
    {.name = NULL},
};

/* Row by row: there may be more rows than memory. */
struct listing {
    /* The name of the last row, or "". */
    char last[256];
    struct table table;
};

/* The rows come in the order of names. */
static int on_entry(void *context, const struct entry *entry)
{
    struct listing *listing = context;
    const char *name = OF_ENTRY(entry, name);
    if (names && strcmp(listing->last, name) != 0)
        say("%s", name);
    else if (general.json)
        table_json(&listing->table, json_of_entry(entry));
    else if (!names)
        table_add_entry(&listing->table, entry);
    snprintf(listing->last, sizeof listing->last, "%s", name);
    return ferror(stdout);
}

/* After a failure in the middle, the JSON array is left without an end. */
static int run_list(struct cli *cli)
{
    struct listing listing = {.table = entry_table(waiters)};
    if (names && general.json)
        usage_error(cli, "--names and --json exclude each other");
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    int result = list_entries(cli->db, NULL, waiters, on_entry, &listing);
    if (!names && (result == ROWLOCK_OK || (!general.json && listing.last[0])))
        table_end(&listing.table);
    return reported(cli, result);
}

const struct command list_command = COMMAND("list", "", "show all grants, or all waiters",
                                            "Expired grants are shown until a sweep.\n",
                                            list_options, 0, 0, false, QUORUM, run_list);

/* ---------------------------------------------------------------- show */

static const struct option_row show_options[] = {JSON_OPTION, {.name = NULL}};

struct history {
    /* The name has a token counter. */
    bool known;
    int64_t token;
    int64_t granted_us;
};

static void print_grant(const rowlock_grant *grant)
{
    say("%-12s %lld", "token", (long long)grant->token);
    say("%-12s %s", "kind", kind_text(grant->permits).text);
    say("%-12s %s", "held by", holder_text(grant).text);
    say("%-12s %s", "owner", grant->owner);
    say("%-12s %s, %s ago", "acquired", time_text(grant->acquired_us).text,
        duration_text(grant_age_ms(grant)).text);
    say("%-12s %s, %s", "lease until", time_text(grant->expires_us).text,
        lease_text(grant->remaining_ms).text);
    say("%-12s %s, renewed %lld times", "lease of", duration_text(grant->ttl_ms).text,
        (long long)grant->renewals);
    if (grant->note[0])
        say("%-12s %s", "note", grant->note);
}

/* "waiter       2. sh[4711]@web1, for 12s, wants shared" */
static void print_waiter(const struct entry *entry)
{
    const rowlock_waiter *waiter = &entry->waiter;
    char *position = cell_of(entry, CELL_STATE, 0);
    say("%-12s %s %s, for %s, wants %s%s%s", "waiter", position,
        process_text(waiter->program, waiter->pid, waiter->host).text,
        duration_text(waiter->waited_ms).text, kind_text(waiter->permits).text,
        waiter->note[0] ? ": " : "", waiter->note);
    free(position);
}

static void print_lock(const char *name, const struct snapshot *snapshot,
                       const struct history *history)
{
    say("%-12s %s", "name", name);
    if (snapshot->grants == 0)
        puts("held by      -");
    for (size_t i = 0; i < snapshot->count; i++)
        if (snapshot->entries[i].waits)
            print_waiter(&snapshot->entries[i]);
        else
            print_grant(&snapshot->entries[i].grant);
    if (history->known)
        say("%-12s %s, token %lld", "last grant", time_text(history->granted_us).text,
            (long long)history->token);
}

static void print_lock_json(const char *name, const struct snapshot *snapshot,
                            const struct history *history)
{
    json_t *object = must_have(json_object());
    json_put_text(object, "name", name);
    json_put(object, "grants", json_of_entries(snapshot, false));
    json_put(object, "waiters", json_of_entries(snapshot, true));
    json_put(object, "last_token", history->known ? json_integer(history->token) : json_null());
    if (history->known)
        json_put_time(object, "last_granted", history->granted_us);
    json_print(object, false);
}

static int look_up(struct cli *cli, struct snapshot *snapshot, struct history *history)
{
    const char *name = cli->arguments[0];
    int result = snapshot_take(snapshot, cli->db, name);
    if (result == ROWLOCK_OK)
        result = rowlock_last_grant(cli->db, name, &history->token, &history->granted_us);
    history->known = result == ROWLOCK_OK;
    return result == ROWLOCK_NONE ? EXIT_FINE : reported(cli, result);
}

static int run_show(struct cli *cli)
{
    struct snapshot snapshot = {0};
    struct history history = {0};
    const char *name = cli->arguments[0];
    int status = connect_database(cli, NULL);
    if (status == EXIT_FINE)
        status = look_up(cli, &snapshot, &history);
    if (status == EXIT_FINE && snapshot.count == 0 && !history.known)
        status = EXIT_NOTHING;
    if (general.json && (status == EXIT_FINE || status == EXIT_NOTHING))
        print_lock_json(name, &snapshot, &history);
    else if (status == EXIT_FINE)
        print_lock(name, &snapshot, &history);
    else if (status == EXIT_NOTHING)
        complain("show '%s': there is no such lock: no grant, no waiter, no last token", name);
    snapshot_free(&snapshot);
    return status;
}

const struct command show_command = COMMAND(
    "show", "NAME", "show everything about one lock",
    "Exit status: 0 the lock has a grant, waiters or a last token; 1 the name is not known.\n",
    show_options, 1, 1, false, QUORUM, run_show);

/* ---------------------------------------------------------------- wait */

/* The grants whose leases run. */
struct holders {
    size_t count;
    rowlock_grant first;
    /* Its lease is the longest. */
    rowlock_grant last;
};

static int note_holder(void *context, const rowlock_grant *grant)
{
    struct holders *holders = context;
    if (grant->remaining_ms < 0)
        return 0;
    if (holders->count == 0)
        holders->first = *grant;
    if (holders->count == 0 || grant->remaining_ms > holders->last.remaining_ms)
        holders->last = *grant;
    holders->count++;
    return 0;
}

static int look_once(struct cli *cli, void *context, rowlock_error *error)
{
    *(struct holders *)context = (struct holders){.first = ROWLOCK_GRANT_INIT};
    int result = rowlock_list(cli->db, cli->arguments[0], note_holder, context);
    *error = *rowlock_db_error(cli->db);
    return result;
}

static int look(struct cli *cli, struct holders *holders)
{
    rowlock_error error;
    return reported(cli, try_until_there(cli, look_once, holders, &error));
}

enum {
    SHORTEST_MS = 20,
    LONGEST_MS = 1000,
    /* The next pause is this part of the time waited so far. */
    PATIENCE = 20,
    /* After the end of the last lease, so that one look suffices. */
    LEASE_END_SLACK_MS = 2
};

static void say_held(const struct holders *holders, const char *then)
{
    char others[40] = "";
    if (holders->count > 1)
        snprintf(others, sizeof others, " (%zu holders)", holders->count);
    complain("'%s' is %s%s; %s", holders->last.name, held_text(&holders->last).text, others, then);
}

static int wait_until_free(struct cli *cli)
{
    struct holders holders;
    int64_t start_ms = now_ms();
    /* The token of the holder that was named last. */
    int64_t said = 0;
    for (;;) {
        bool over = now_ms() >= cli->wait_until_ms;
        int status = look(cli, &holders);
        if (status != EXIT_FINE || holders.count == 0)
            return status;
        if (talkative() && (over || said != holders.last.token))
            say_held(&holders, over ? "giving up" : "waiting");
        said = holders.last.token;
        if (over)
            return EXIT_NOT_ACQUIRED;
        int64_t now = now_ms();
        int64_t pause_ms = within((now - start_ms) / PATIENCE, SHORTEST_MS, LONGEST_MS);
        int64_t left_ms = within(holders.last.remaining_ms + LEASE_END_SLACK_MS, 0, pause_ms);
        pause_until(at_most(now + left_ms, cli->wait_until_ms), -1);
    }
}

static int run_wait(struct cli *cli)
{
    wait_settings(cli);
    int status = connect_database(cli, NULL);
    if (status == EXIT_FINE)
        status = outer_refuses(cli);
    return conflict_status(status == EXIT_FINE ? wait_until_free(cli) : status);
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
    INTERVAL_OPTION,
    JSON_OPTION,
    {.name = NULL}};

/* "17 app[4711]@web1 10.0.0.5:8080". No leader: the token is 0. */
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
static int watch(struct cli *cli, struct holders *holders)
{
    for (rowlock_grant leader = holders->first;; leader = holders->first) {
        print_leader(cli, &leader);
        do {
            if (ferror(stdout))
                return EXIT_FINE;
            pause_until(now_ms() + general.interval_ms, -1);
            int status = look(cli, holders);
            if (status != EXIT_FINE)
                return status;
        } while (leader.token == holders->first.token &&
                 strcmp(leader.note, holders->first.note) == 0);
    }
}

static int run_leader(struct cli *cli)
{
    struct holders holders;
    if (general.interval_ms != UNSET && !watches)
        usage_error(cli, "--interval needs --watch");
    if (general.interval_ms == UNSET)
        general.interval_ms = DEFAULT_INTERVAL_MS;
    /* --watch goes on through an outage. */
    cli->wait_until_ms = watches ? INT64_MAX : 0;
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE || (status = look(cli, &holders)) != EXIT_FINE)
        return status;
    if (watches)
        return watch(cli, &holders);
    if (holders.count || general.json)
        print_leader(cli, &holders.first);
    else
        complain("leader '%s': there is none", cli->arguments[0]);
    return holders.count ? EXIT_FINE : EXIT_NOT_ACQUIRED;
}

const struct command leader_command = COMMAND(
    "leader", "NAME", "print who holds a lock, with its note",
    "It prints token, holder and note. The token is the number of the term.\n"
    "With --watch it prints a line at each change, \"-\" for no leader, and goes on through an\n"
    "outage of the database.\n"
    "Exit status: 0 there is a leader; 75 there is none.\n",
    leader_options, 1, 1, false, QUORUM, run_leader);
