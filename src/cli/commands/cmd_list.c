/* SPDX-License-Identifier: MIT
 *
 * list and show: holders and waiters, as a table, as lines or as JSON. They only read.
 */
#include "cli/commands/commands.h"

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
    for (size_t i = 0; i < snapshot->count; i++) {
        if (snapshot->entries[i].waits)
            print_waiter(&snapshot->entries[i]);
        else
            print_grant(&snapshot->entries[i].grant);
    }
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
