/* SPDX-License-Identifier: MIT
 *
 * list and show: holders and waiters, as a table, as lines or as JSON. They only read.
 */
#include "cli/commands/commands.h"

#include "cli/print/json.h"
#include "cli/commands/snapshot.h"
#include "cli/print/columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const int json_options[] = {OPT_JSON, OPT_END};
const int list_options[] = {OPT_WAITERS, OPT_NAMES, OPT_JSON, OPT_END};

/* Row by row: there may be more rows than memory. */
struct listing {
    bool json;
    bool names;
    bool any;
    /* With names: the last one. May be NULL. */
    char *last;
    struct table table;
};

/* The rows come in the order of names. */
static void print_name(struct listing *listing, const char *name)
{
    if (listing->last && strcmp(listing->last, name) == 0)
        return;
    free(listing->last);
    listing->last = must_have(strdup(name));
    char *safe = printable(name);
    puts(safe);
    free(safe);
}

static int on_grant(void *context, const rowlock_grant *grant)
{
    struct listing *listing = context;
    if (listing->names)
        print_name(listing, grant->name);
    else if (listing->json)
        json_print_element(json_of_grant(grant), !listing->any);
    else
        table_add_grant(&listing->table, grant);
    listing->any = true;
    return ferror(stdout);
}

static int on_waiter(void *context, const rowlock_waiter *waiter)
{
    struct listing *listing = context;
    if (listing->names)
        print_name(listing, waiter->name);
    else if (listing->json)
        json_print_element(json_of_waiter(waiter), !listing->any);
    else
        table_add_waiter(&listing->table, waiter);
    listing->any = true;
    return ferror(stdout);
}

/* After a failure in the middle, the JSON array is left without an end. */
int cmd_list(struct cli *cli)
{
    struct listing listing = {.json = cli->set.json, .names = cli->set.names};
    int result;
    if (listing.names && listing.json)
        return usage_error(cli, "--names and --json exclude each other");
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    if (cli->set.waiters) {
        table_begin_waiters(&listing.table);
        result = rowlock_list_waiters(cli->db, NULL, on_waiter, &listing);
    } else {
        table_begin_grants(&listing.table);
        result = rowlock_list(cli->db, NULL, on_grant, &listing);
    }
    if (result == ROWLOCK_OK && listing.json)
        json_print_end(!listing.any);
    free(listing.last);
    if (!listing.json && !listing.names && (result == ROWLOCK_OK || listing.any))
        table_end(&listing.table);
    return result == ROWLOCK_OK ? EXIT_FINE : report_failure(cli, result);
}

/* ---------------------------------------------------------------- one lock */

struct history {
    /* The name has a token counter. */
    bool known;
    int64_t token;
    int64_t granted_us;
};

static void print_field(const char *field, const char *value)
{
    char *safe = printable(value);
    printf("%-12s %s\n", field, safe);
    free(safe);
}

static void print_time(const char *field, int64_t us, const char *rest)
{
    json_t *object = must_have(json_object());
    json_put_time(object, "time", us);
    printf("%-12s %s%s%s\n", field, json_string_value(json_object_get(object, "time_at")),
           *rest ? ", " : "", rest);
    json_decref(object);
}

static void print_grant(const rowlock_grant *grant)
{
    char text[80], age[DURATION_TEXT_SIZE];
    char *holder = holder_text(grant);
    printf("%-12s %lld\n", "token", (long long)grant->token);
    kind_text(grant->permits, text);
    printf("%-12s %s\n", "kind", text);
    printf("%-12s %s\n", "held by", holder);
    free(holder);
    print_field("owner", grant->owner);
    duration_text(grant_age_ms(grant), age);
    snprintf(text, sizeof text, "%s ago", age);
    print_time("acquired", grant->acquired_us, text);
    lease_text(grant->remaining_ms, text, sizeof text);
    print_time("lease until", grant->expires_us, text);
    duration_text(grant->ttl_ms, text);
    printf("%-12s %s, renewed %lld times\n", "lease of", text, (long long)grant->renewals);
    if (grant->note[0])
        print_field("note", grant->note);
}

/* "waiter       2. sh[4711]@web1, for 12s, wants shared" */
static void print_waiter(const rowlock_waiter *waiter)
{
    char position[24] = "gone", kind[KIND_TEXT_SIZE], waited[DURATION_TEXT_SIZE];
    char *who = waiter_text(waiter);
    char *note = printable(waiter->note);
    if (waiter->position)
        snprintf(position, sizeof position, "%d.", waiter->position);
    kind_text(waiter->permits, kind);
    duration_text(waiter->waited_ms, waited);
    printf("%-12s %s %s, for %s, wants %s%s%s\n", "waiter", position, who, waited, kind,
           note[0] ? ": " : "", note);
    free(who);
    free(note);
}

static void print_lock(const char *name, const struct snapshot *snapshot,
                       const struct history *history)
{
    char text[80];
    print_field("name", name);
    if (snapshot->grant_count == 0)
        puts("held by      -");
    for (size_t i = 0; i < snapshot->grant_count; i++)
        print_grant(&snapshot->grants[i]);
    for (size_t i = 0; i < snapshot->waiter_count; i++)
        print_waiter(&snapshot->waiters[i]);
    if (history->known) {
        snprintf(text, sizeof text, "token %lld", (long long)history->token);
        print_time("last grant", history->granted_us, text);
    }
}

static void print_lock_json(const char *name, const struct snapshot *snapshot,
                            const struct history *history)
{
    json_t *object = must_have(json_object());
    json_put(object, "name", json_of_text(name));
    json_put(object, "grants", json_of_grants(snapshot));
    json_put(object, "waiters", json_of_waiters(snapshot));
    json_put(object, "last_token", history->known ? json_integer(history->token) : json_null());
    if (history->known)
        json_put_time(object, "last_granted", history->granted_us);
    json_print(object, 0);
}

static int look_up(struct cli *cli, struct snapshot *snapshot, struct history *history)
{
    const char *name = cli->arguments[0];
    int result = snapshot_take(snapshot, cli->db, name);
    if (result != ROWLOCK_OK)
        return report_failure(cli, result);
    result = rowlock_last_grant(cli->db, name, &history->token, &history->granted_us);
    history->known = result == ROWLOCK_OK;
    return result == ROWLOCK_OK || result == ROWLOCK_NONE ? EXIT_FINE : report_failure(cli, result);
}

int cmd_show(struct cli *cli)
{
    struct snapshot snapshot = {0};
    struct history history = {0};
    const char *name = cli->arguments[0];
    int status = connect_database(cli, NULL);
    if (status == EXIT_FINE)
        status = look_up(cli, &snapshot, &history);
    bool known = snapshot.grant_count > 0 || snapshot.waiter_count > 0 || history.known;
    if (status == EXIT_FINE) {
        if (cli->set.json)
            print_lock_json(name, &snapshot, &history);
        else if (known)
            print_lock(name, &snapshot, &history);
        else
            complain("show '%s': there is no such lock: no grant, no waiter, no last token", name);
        if (!known)
            status = EXIT_NOTHING;
    }
    snapshot_free(&snapshot);
    return status;
}
