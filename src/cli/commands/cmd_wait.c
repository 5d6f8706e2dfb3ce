/* SPDX-License-Identifier: MIT
 *
 * `rowlock wait`: looks until a lock is free, and acquires nothing. It writes nothing into the
 * tables, so a signal may end it at any time.
 */
#include "cli/commands/commands.h"

#include "cli/run/obtain.h"
#include "cli/run/outer.h"
#include "cli/run/signals.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

const int wait_options[] = {OPT_NONBLOCK, OPT_WAIT, OPT_CONFLICT, OPT_VERBOSE, OPT_END};

enum {
    /* Between two looks. */
    SHORTEST_MS = 20,
    LONGEST_MS = 1000,
    /* The next pause is this part of the time waited so far. */
    PATIENCE = 20,
    /* After the end of the last lease, so that one look suffices. */
    LEASE_END_SLACK_MS = 2
};

/* What one look found. holder: the one with the longest lease. */
struct sight {
    rowlock_grant holder;
    int holders;
};

static int note_holder(void *context, const rowlock_grant *grant)
{
    struct sight *sight = context;
    if (grant->remaining_ms < 0)
        return 0;
    sight->holders++;
    if (sight->holders == 1 || grant->remaining_ms > sight->holder.remaining_ms)
        sight->holder = *grant;
    return 0;
}

static void say_held(const struct cli *cli, const struct sight *sight, const char *then)
{
    char others[40] = "";
    char *held = held_text(&sight->holder);
    if (sight->holders > 1)
        snprintf(others, sizeof others, " (%d holders)", sight->holders);
    complain("'%s' is %s%s; %s", cli->arguments[0], held, others, then);
    free(held);
}

static int64_t pause_ms(const struct sight *sight, int64_t waited_ms)
{
    int64_t pause = waited_ms / PATIENCE;
    int64_t lease = sight->holder.remaining_ms + LEASE_END_SLACK_MS;
    pause = pause < SHORTEST_MS ? SHORTEST_MS : pause > LONGEST_MS ? LONGEST_MS : pause;
    return pause < lease ? pause : lease;
}

static int look(const struct cli *cli, struct sight *sight)
{
    rowlock_error error = ROWLOCK_ERROR_INIT;
    int tries = 0;
    int result;
    do {
        *sight = (struct sight){.holder = ROWLOCK_GRANT_INIT};
        result = rowlock_list(cli->db, cli->arguments[0], note_holder, sight);
        rowlock_db_error(cli->db, &error);
    } while (wait_for_server(cli, result, &error, &tries));
    if (result == ROWLOCK_OK)
        say_back(cli, &tries);
    return result;
}

static int wait_until_free(struct cli *cli)
{
    int64_t start_ms = now_ms();
    /* The token of the holder that was named last. */
    int64_t said = 0;
    for (;;) {
        struct sight sight;
        int64_t left = cli->wait_until_ms - now_ms();
        int result = look(cli, &sight);
        if (result != ROWLOCK_OK)
            return report_failure(cli, result);
        if (sight.holders == 0)
            return EXIT_FINE;
        bool over = left <= 0;
        if (talkative(cli) && (over || said != sight.holder.token))
            say_held(cli, &sight, over ? "giving up" : "waiting");
        said = sight.holder.token;
        if (over)
            return EXIT_NOT_ACQUIRED;
        int64_t pause = pause_ms(&sight, now_ms() - start_ms);
        poll(NULL, 0, (int)(pause < left ? pause : left));
    }
}

int cmd_wait(struct cli *cli)
{
    int status = wait_settings(cli);
    if (status != EXIT_FINE)
        return status;
    status = connect_database(cli, NULL);
    if (status == EXIT_FINE)
        status = outer_refuses(cli);
    if (status == EXIT_FINE)
        status = wait_until_free(cli);
    bool asked = status == EXIT_NOT_ACQUIRED && cli->set.conflict_status != UNSET;
    return asked ? (int)cli->set.conflict_status : status;
}
