/* SPDX-License-Identifier: MIT
 *
 * `rowlock sweep`: removes what is over, once or again and again.
 */
#include "cli/run/run.h"

#include <stdlib.h>

#define DEFAULT_ONCE_AGE_MS (30 * DAY_MS)

/* 0: the library's default, or once. */
static struct {
    int64_t older_than_ms, idle_ms, once_older_than_ms, batch, every_ms;
    bool dry_run;
} set = {.once_older_than_ms = DEFAULT_ONCE_AGE_MS};

static const struct option_row options[] = {
    OPTION("older-than", 0, "DURATION", "only leases that ended this long ago (0)", DURATION,
           set.older_than_ms),
    OPTION("idle", 0, "DURATION", "forget counters idle for this long, or 'never' (30d)",
           LENGTH_OR_NEVER, set.idle_ms),
    OPTION("once-older-than", 0, "DURATION",
           "forget once keys done this long ago, or 'never' (30d)", LENGTH_OR_NEVER,
           set.once_older_than_ms),
    NUMBER_OPTION("batch", "rows removed in one transaction (500)", set.batch, 1, 10000),
    FLAG_OPTION("dry-run", 0, "print what would be removed; remove nothing", set.dry_run),
    OPTION("every", 0, "DURATION", "repeat the sweep, until a signal ends it", LENGTH,
           set.every_ms),
    FLAG_OPTION("quiet", 'q', "print only errors", general.quiet),
    JSON_OPTION,
    {.name = NULL},
};

struct sweep {
    int32_t dry_run;
    rowlock_sweep_report report;
    int64_t keys;
    /* For JSON, which is written row by row: a million rows need no memory. */
    struct table removed;
    /* Came meanwhile. */
    int signal;
};

static int on_swept(void *context, const rowlock_grant *grant)
{
    struct sweep *sweep = context;
    if (general.json)
        table_json(&sweep->removed, json_of_grant(grant));
    else if (!general.quiet)
        say_member("%s '%s', token %lld of %s, expired %s ago",
                   set.dry_run ? "would remove" : "removed", grant->name, (long long)grant->token,
                   holder_text(grant).text, duration_text(-grant->remaining_ms).text);
    int signal = set.every_ms && !sweep->signal ? signals_next(0) : 0;
    if (signal_ends(signal))
        sweep->signal = signal;
    return sweep->signal;
}

static void print_summary_json(int result, const struct sweep *sweep)
{
    static const struct member members[] = {
        {"dry_run", BOOLEAN, offsetof(struct sweep, dry_run)},
        {"locks", INTEGER, offsetof(struct sweep, report.locks)},
        {"counters", INTEGER, offsetof(struct sweep, report.counters)},
        {"waiters", INTEGER, offsetof(struct sweep, report.waiters)},
        {"batches", INTEGER, offsetof(struct sweep, report.batches)},
        {"once", INTEGER, offsetof(struct sweep, keys)},
        {.key = NULL},
    };
    json_t *object = must_have(json_object());
    json_t *numbers = json_of(members, sweep);
    json_put_result(object, result);
    must_have(json_object_update(object, numbers) == 0 ? numbers : NULL);
    char *text = must_have(json_dumps(object, 0));
    printf("%s], %s\n", sweep->removed.rows ? "" : "[", text + 1);
    free(text);
    json_decref(numbers);
    json_decref(object);
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static void print_summary(const struct sweep *sweep)
{
    const rowlock_sweep_report *report = &sweep->report;
    char *rest =
        new_text(", %lld ticket%s of dead waiters, %lld once key%s", (long long)report->waiters,
                 plural(report->waiters), (long long)sweep->keys, plural(sweep->keys));
    /* A dry run does not look at tickets and keys. */
    say_member("%s%lld expired lock%s, %lld idle counter%s%s",
               set.dry_run ? "would remove " : "removed ", (long long)report->locks,
               plural(report->locks), (long long)report->counters, plural(report->counters),
               set.dry_run ? "" : rest);
    free(rest);
}

/* *signal gets the signal that came meanwhile, or 0. Returns the library's result. */
static int sweep_once(struct cli *cli, int *signal)
{
    struct sweep sweep = {.dry_run = set.dry_run, .report = ROWLOCK_SWEEP_REPORT_INIT};
    rowlock_sweep_options how = ROWLOCK_SWEEP_OPTIONS_INIT;
    how.older_than_ms = set.older_than_ms;
    how.idle_ms = set.idle_ms == NEVER ? -1 : set.idle_ms;
    how.batch = (int32_t)set.batch;
    how.dry_run = set.dry_run;
    /* Without a callback a sweep is faster. --every needs it: it looks for signals. */
    how.each = general.quiet && !set.every_ms ? NULL : on_swept;
    how.context = &sweep;
    if (general.json && cli->member)
        printf("{\"member\": %d, \"removed\": ", cli->member);
    else if (general.json)
        printf("{\"removed\": ");
    int result = rowlock_sweep(cli->db, &how, &sweep.report);
    if (result == ROWLOCK_OK && !set.dry_run && set.once_older_than_ms != NEVER)
        result = rowlock_once_sweep(cli->db, set.once_older_than_ms, how.batch, &sweep.keys);
    if (general.json)
        print_summary_json(result, &sweep);
    else if (!general.quiet && result == ROWLOCK_OK)
        print_summary(&sweep);
    fflush(stdout);
    *signal = sweep.signal;
    return result;
}

/* What may be over by the next sweep does not end --every. */
static bool passes(const struct cli *cli)
{
    const rowlock_error *error = rowlock_db_error(cli->db);
    return error->retryable || error->code == ROWLOCK_ECONN || error->code == ROWLOCK_EUNCERTAIN ||
           error->code == ROWLOCK_EREADONLY;
}

static int sweep_every(struct cli *cli)
{
    signals_cancel(cli->db);
    int signal = signals_keep();
    while (!signal) {
        int64_t next_ms = now_ms() + set.every_ms;
        int status = reported(cli, sweep_once(cli, &signal));
        if (status != EXIT_FINE && !passes(cli))
            return status;
        /* There is no reader any more: finish_output() says so. */
        if (ferror(stdout))
            return EXIT_FINE;
        if (!signal)
            signal = signals_pause(next_ms);
    }
    return EXIT_FINE;
}

static int run_sweep(struct cli *cli)
{
    int signal;
    not_for_members(cli, set.every_ms != 0,
                    "--every works on one database; start one sweep for the --url of each member");
    if (general.quiet && general.json)
        usage_error(cli, "--quiet and --json exclude each other");
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    return set.every_ms ? sweep_every(cli) : reported(cli, sweep_once(cli, &signal));
}

const struct command sweep_command =
    COMMAND("sweep", "", "remove expired grants and old keys",
            "Locks work without it. It keeps the tables small: run it from cron, or with --every.\n"
            "It also forgets idle token counters and old keys of run --once.\n",
            options, 0, 0, false, EACH_MEMBER, run_sweep);
