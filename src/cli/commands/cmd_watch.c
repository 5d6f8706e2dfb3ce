/* SPDX-License-Identifier: MIT
 *
 * `rowlock watch`: on a terminal a screen (screen.c), elsewhere text or JSON, once in each
 * interval.
 */
#include "cli/commands/commands.h"

#include "cli/print/json.h"
#include "cli/commands/looker.h"
#include "cli/print/screen.h"
#include "cli/run/signals.h"
#include "cli/print/columns.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const int watch_options[] = {OPT_INTERVAL, OPT_COUNT, OPT_JSON, OPT_END};

static void print_json(const struct view *view)
{
    json_t *object = must_have(json_object());
    json_put(object, "result", json_of_result(view->result));
    if (view->result == ROWLOCK_OK) {
        json_put(object, "grants", json_of_grants(&view->snapshot));
        json_put(object, "waiters", json_of_waiters(&view->snapshot));
        json_put_integer(object, "granted", view->grants);
        json_put_integer(object, "granted_in_ms", view->span_ms);
    } else {
        json_put(object, "error", json_of_text(view->error));
    }
    json_print(object, 1);
}

static void print_text(const struct view *view)
{
    const struct snapshot *snapshot = &view->snapshot;
    printf("%zu held, %zu waiting, %lld.%lld grants/s\n", snapshot_held(snapshot),
           snapshot_waiting(snapshot), (long long)view->rate_milli / 1000,
           (long long)view->rate_milli % 1000 / 100);
    if (snapshot->grant_count > 0)
        table_of_grants(snapshot);
    if (snapshot->waiter_count > 0)
        table_of_waiters(snapshot);
    putchar('\n');
}

static void print(const struct cli *cli, const struct view *view)
{
    if (cli->set.json)
        print_json(view);
    else if (view->result == ROWLOCK_OK)
        print_text(view);
    if (view->result != ROWLOCK_OK)
        complain("%s", view->error);
    fflush(stdout);
}

static void sleep_until(int64_t then_ms)
{
    for (int64_t left_ms = then_ms - now_ms(); left_ms > 0; left_ms = then_ms - now_ms())
        poll(NULL, 0, left_ms < 60000 ? (int)left_ms : 60000);
}

/* A signal may end this. If there is no reader any more, finish_output() says so. */
static int print_repeatedly(struct looker *looker, struct view *view)
{
    const struct settings *set = &looker->cli->set;
    int status;
    for (int64_t looks = 1;; looks++) {
        int64_t next_ms = now_ms() + set->interval_ms;
        print(looker->cli, view);
        status = view->status;
        view_free(view);
        if (looks == set->count || ferror(stdout))
            return status;
        sleep_until(next_ms);
        view = looker_look(looker);
    }
}

/* A first look that fails ends it. Later failures are shown, and the next look follows. */
static int watch(struct looker *looker)
{
    const struct cli *cli = looker->cli;
    int status;
    struct view *first = looker_look(looker);
    if (first->result != ROWLOCK_OK) {
        complain("%s", first->error);
        status = first->status;
        view_free(first);
        return status;
    }
    if (!cli->set.json && isatty(STDOUT_FILENO) && screen_watch(looker, first, &status))
        return status;
    return print_repeatedly(looker, first);
}

int cmd_watch(struct cli *cli)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    /* Its thread may outlive this call: see looker_stop(). */
    static struct looker looker;
    if (cli->set.interval_ms == UNSET)
        cli->set.interval_ms = DEFAULT_INTERVAL_MS;
    /* The next look tries again soon. */
    options.reconnect_ms = 1000;
    int status = connect_database(cli, &options);
    if (status != EXIT_FINE)
        return status;
    /* The empty database in memory would stay empty. */
    if (cli->no_file)
        return EXIT_UNFIT;
    looker_init(&looker, cli);
    status = watch(&looker);
    if (!cli->abandon)
        looker_free(&looker);
    return status;
}
