/* SPDX-License-Identifier: MIT
 *
 * `rowlock leader`: who holds the lock, with which note and token. It only reads.
 */
#include "cli/commands/commands.h"

#include "cli/print/json.h"
#include "cli/run/signals.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const int leader_options[] = {OPT_WATCH, OPT_INTERVAL, OPT_JSON, OPT_END};

static int settings(struct cli *cli)
{
    struct settings *set = &cli->set;
    if (set->interval_ms != UNSET && !set->watch)
        return usage_error(cli, "--interval needs --watch");
    if (set->interval_ms == UNSET)
        set->interval_ms = DEFAULT_INTERVAL_MS;
    /* --watch goes on through an outage. */
    cli->wait_until_ms = set->watch ? INT64_MAX : 0;
    return EXIT_FINE;
}

/* Takes the first grant whose lease runs. */
static int take_grant(void *context, const rowlock_grant *grant)
{
    if (grant->remaining_ms < 0)
        return 0;
    *(rowlock_grant *)context = *grant;
    return 1;
}

/* No leader: the token is 0. */
static int look(const struct cli *cli, rowlock_grant *leader)
{
    rowlock_error error = ROWLOCK_ERROR_INIT;
    int tries = 0;
    int result;
    do {
        *leader = (rowlock_grant)ROWLOCK_GRANT_INIT;
        result = rowlock_list(cli->db, cli->arguments[0], take_grant, leader);
        rowlock_db_error(cli->db, &error);
    } while (wait_for_server(cli, result, &error, &tries));
    if (result == ROWLOCK_OK)
        say_back(cli, &tries);
    return result;
}

/* "17 app[4711]@web1 10.0.0.5:8080" */
static void print_text(const rowlock_grant *leader)
{
    char *holder = holder_text(leader);
    char *note = printable(leader->note);
    if (leader->token)
        printf("%lld %s%s%s\n", (long long)leader->token, holder, *note ? " " : "", note);
    else
        puts("-");
    free(holder);
    free(note);
}

static void print_leader(const struct cli *cli, const rowlock_grant *leader)
{
    if (!cli->set.json) {
        print_text(leader);
    } else {
        json_t *object = must_have(json_object());
        json_put(object, "name", json_of_text(cli->arguments[0]));
        json_put(object, "leader", leader->token ? json_of_grant(leader) : json_null());
        json_print(object, cli->set.watch);
    }
    fflush(stdout);
}

static bool same(const rowlock_grant *one, const rowlock_grant *other)
{
    return one->token == other->token && strcmp(one->note, other->note) == 0;
}

/* If there is no reader any more, finish_output() says so. */
static int watch(const struct cli *cli, rowlock_grant *leader)
{
    print_leader(cli, leader);
    while (!ferror(stdout)) {
        rowlock_grant next;
        poll(NULL, 0, (int)within(cli->set.interval_ms, 0, INT32_MAX));
        int result = look(cli, &next);
        if (result != ROWLOCK_OK)
            return report_failure(cli, result);
        if (same(leader, &next))
            continue;
        *leader = next;
        print_leader(cli, leader);
    }
    return EXIT_FINE;
}

int cmd_leader(struct cli *cli)
{
    rowlock_grant leader;
    int status = settings(cli);
    if (status != EXIT_FINE || (status = connect_database(cli, NULL)) != EXIT_FINE)
        return status;
    int result = look(cli, &leader);
    if (result != ROWLOCK_OK)
        return report_failure(cli, result);
    if (cli->set.watch)
        return watch(cli, &leader);
    if (leader.token || cli->set.json)
        print_leader(cli, &leader);
    else
        complain("leader '%s': there is none", cli->arguments[0]);
    return leader.token ? EXIT_FINE : EXIT_NOT_ACQUIRED;
}
