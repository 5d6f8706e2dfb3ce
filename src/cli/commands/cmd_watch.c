/* SPDX-License-Identifier: MIT
 *
 * `rowlock watch`: on a terminal a screen (screen.c), elsewhere text or JSON in each interval.
 */
#include "cli/print/print.h"

#include <stdlib.h>
#include <unistd.h>

#if RLK_WITH_CURSES
#define SCREEN_HELP                                                                     \
    "On a terminal it is a screen: q or Ctrl-C ends it, arrows and page keys scroll.\n" \
    "Elsewhere it prints everything as text, once in each interval.\n"
#else
#define SCREEN_HELP                                                    \
    "It prints everything as text, once in each interval. The screen " \
    "for terminals is\nnot built in.\n"
#define screen_watch(cli, first, status) false
#endif

static const struct option_row options[] = {
    INTERVAL_OPTION,
    NUMBER_OPTION("count", "end after N looks (default: no end)", general.looks_most, 1,
                  1000000000),
    JSON_OPTION,
    {.name = NULL},
};

static void print_json(const struct view *view)
{
    json_t *object = must_have(json_object());
    json_put_result(object, view->result);
    if (view->result == ROWLOCK_OK) {
        json_put(object, "grants", json_of_entries(&view->snapshot, false));
        json_put(object, "waiters", json_of_entries(&view->snapshot, true));
        json_put_integer(object, "granted", view->grants);
        json_put_integer(object, "granted_in_ms", view->span_ms);
    } else {
        char *error = new_text("%s: %s", view->error.action, view->error.text);
        json_put_text(object, "error", error);
        free(error);
    }
    json_print(object, true);
}

static void print_entries(const struct snapshot *s, bool waiters)
{
    struct table table = entry_table(waiters);
    size_t i = waiters ? s->grants : 0, end = waiters ? s->count : s->grants;
    if (i == end)
        return;
    for (; i < end; i++)
        table_add_entry(&table, &s->entries[i]);
    table_end(&table);
}

static int print(const struct view *view)
{
    if (general.json) {
        print_json(view);
    } else if (view->result == ROWLOCK_OK) {
        char *summary = view_summary("", view);
        puts(summary);
        free(summary);
        print_entries(&view->snapshot, false);
        print_entries(&view->snapshot, true);
        putchar('\n');
    }
    int status = report_error(view->result, &view->error);
    fflush(stdout);
    return status;
}

/* A signal may end this. If there is no reader any more, finish_output() says so. */
static int print_repeatedly(struct cli *cli, struct view *view)
{
    for (int64_t looks = 1;; looks++) {
        int64_t next_ms = now_ms() + general.interval_ms;
        int status = print(view);
        view_free(view);
        if (looks == general.looks_most || ferror(stdout))
            return status;
        pause_until(next_ms, -1);
        view = looker_look(cli);
    }
}

/* A first look that fails ends it. Later failures are shown, and the next look follows. */
static int run_watch(struct cli *cli)
{
    rowlock_db_options db_options = ROWLOCK_DB_OPTIONS_INIT;
    if (general.interval_ms == UNSET)
        general.interval_ms = DEFAULT_INTERVAL_MS;
    /* The next look tries again soon. */
    db_options.reconnect_ms = 1000;
    int status = connect_database(cli, &db_options);
    if (status != EXIT_FINE)
        return status;
    /* The empty database in memory would stay empty. */
    if (cli->no_file)
        return EXIT_UNFIT;
    struct view *first = looker_look(cli);
    if (first->result != ROWLOCK_OK) {
        status = report_error(first->result, &first->error);
        view_free(first);
        return status;
    }
    if (!general.json && isatty(STDOUT_FILENO) && screen_watch(cli, first, &status))
        return status;
    return print_repeatedly(cli, first);
}

const struct command watch_command =
    COMMAND("watch", "[NAME]", "show holders and waiters live",
            SCREEN_HELP "With --json it prints one object on one line for each look.\n", options, 0,
            1, false, QUORUM, run_watch);
