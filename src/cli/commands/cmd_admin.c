/* SPDX-License-Identifier: MIT
 *
 * install, check, sweep, break and raise-tokens: the commands for administrators. cmd_list.c looks
 * at locks.
 */
#include "cli/commands/commands.h"

#include "cli/commands/findings.h"
#include "cli/print/json.h"
#include "cli/run/signals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const int sweep_options[] = {OPT_OLDER_THAN, OPT_IDLE,    OPT_ONCE_OLDER_THAN,
                             OPT_BATCH,      OPT_DRY_RUN, OPT_EVERY,
                             OPT_QUIET,      OPT_JSON,    OPT_END};
const int install_options[] = {OPT_PRINT, OPT_JSON, OPT_END};
const int break_options[] = {OPT_IF_TOKEN, OPT_JSON, OPT_END};
const int raise_options[] = {OPT_BY, OPT_NEW_IDENTITY, OPT_JSON, OPT_END};

#define DEFAULT_RAISE 1000000
#define DEFAULT_ONCE_AGE_MS (INT64_C(30) * 86400000)

/* ---------------------------------------------------------------- install */

static int print_sql(void *context, const char *sql, size_t length)
{
    (void)context;
    return fwrite(sql, 1, length, stdout) != length;
}

int cmd_install(struct cli *cli)
{
    if (cli->set.print && cli->set.json)
        return usage_error(cli, "--print and --json exclude each other");
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    if (cli->set.print) {
        int printed = rowlock_install_script(cli->db, print_sql, NULL);
        return printed == ROWLOCK_OK ? EXIT_FINE : report_failure(cli, printed);
    }
    int result = rowlock_install(cli->db);
    if (result != ROWLOCK_OK)
        return report_failure(cli, result);
    if (cli->set.json) {
        json_t *object = json_answer(cli);
        json_put(object, "result", json_of_result(result));
        json_print(object, 0);
    } else {
        print_member(cli);
        puts("The tables are in place.");
    }
    return EXIT_FINE;
}

/* ---------------------------------------------------------------- check */

/* Without a file there is only one thing to find. */
static int find(const struct cli *cli, struct findings *findings)
{
    static const rowlock_finding missing = {.item = "tables",
                                            .value = "the embedded database does not exist",
                                            .advice = "run `rowlock install`",
                                            .verdict = ROWLOCK_BAD};
    if (!cli->no_file)
        return rowlock_check(cli->db, findings_add, findings, NULL);
    findings_add(findings, &missing);
    return ROWLOCK_OK;
}

int cmd_check(struct cli *cli)
{
    struct findings findings;
    char heading[16];
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    snprintf(heading, sizeof heading, "member %d", cli->member);
    findings_begin(&findings, cli, cli->member ? heading : NULL);
    int result = find(cli, &findings);
    return findings_end(&findings, result == ROWLOCK_OK ? EXIT_FINE : report_failure(cli, result));
}

/* ---------------------------------------------------------------- sweep */

struct sweeping {
    const struct cli *cli;
    /* One has been printed: the next begins with a comma. */
    bool any;
    /* Came meanwhile. */
    int signal;
};

/* JSON is written row by row: a million rows need no memory. */
static void print_swept_json(struct sweeping *sweeping, const rowlock_grant *grant)
{
    json_t *object = json_of_grant(grant);
    char *text = must_have(json_dumps(object, 0));
    printf("%s\n  %s", sweeping->any ? "," : "", text);
    free(text);
    json_decref(object);
    sweeping->any = true;
}

static void print_swept(const struct cli *cli, const rowlock_grant *grant)
{
    char ago[DURATION_TEXT_SIZE];
    char *name = printable(grant->name);
    char *holder = holder_text(grant);
    duration_text(-grant->remaining_ms, ago);
    print_member(cli);
    printf("%s '%s', token %lld of %s, expired %s ago\n",
           cli->set.dry_run ? "would remove" : "removed", name, (long long)grant->token, holder,
           ago);
    free(name);
    free(holder);
}

static int on_swept(void *context, const rowlock_grant *grant)
{
    struct sweeping *sweeping = context;
    const struct cli *cli = sweeping->cli;
    if (cli->set.json)
        print_swept_json(sweeping, grant);
    else if (!cli->set.quiet)
        print_swept(cli, grant);
    int signal = cli->set.every_ms != UNSET && !sweeping->signal ? signals_next(0) : 0;
    if (signal_ends(signal))
        sweeping->signal = signal;
    return sweeping->signal;
}

static void print_summary(const struct cli *cli, int result, const rowlock_sweep_report *report,
                          int64_t keys)
{
    bool dry = cli->set.dry_run;
    if (cli->set.json) {
        json_t *name = json_of_result(result);
        printf("], \"result\": \"%s\", \"dry_run\": %s, \"locks\": %lld, \"counters\": %lld, "
               "\"waiters\": %lld, \"batches\": %lld, \"once\": %lld}\n",
               json_string_value(name), dry ? "true" : "false", (long long)report->locks,
               (long long)report->counters, (long long)report->waiters, (long long)report->batches,
               (long long)keys);
        json_decref(name);
    } else if (!cli->set.quiet && result == ROWLOCK_OK) {
        print_member(cli);
        printf("%s%lld expired lock%s, %lld idle counter%s", dry ? "would remove " : "removed ",
               (long long)report->locks, report->locks == 1 ? "" : "s", (long long)report->counters,
               report->counters == 1 ? "" : "s");
        /* A dry run does not look at tickets and keys. */
        if (dry)
            putchar('\n');
        else
            printf(", %lld ticket%s of dead waiters, %lld once key%s\n", (long long)report->waiters,
                   report->waiters == 1 ? "" : "s", (long long)keys, keys == 1 ? "" : "s");
    }
}

static int sweep_keys(struct cli *cli, int64_t *keys)
{
    const struct settings *set = &cli->set;
    int64_t age_ms = set->once_older_than_ms;
    if (set->dry_run || age_ms == NEVER)
        return ROWLOCK_OK;
    return rowlock_once_sweep(cli->db, age_ms == UNSET ? DEFAULT_ONCE_AGE_MS : age_ms,
                              set->batch == UNSET ? 0 : (int32_t)set->batch, keys);
}

/* *signal gets the signal that came meanwhile, or 0. Returns the library's result. */
static int sweep_once(struct cli *cli, int *signal)
{
    const struct settings *set = &cli->set;
    struct sweeping sweeping = {.cli = cli};
    rowlock_sweep_options options = ROWLOCK_SWEEP_OPTIONS_INIT;
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    options.older_than_ms = set->older_than_ms == UNSET ? 0 : set->older_than_ms;
    options.idle_ms = set->idle_ms == UNSET ? 0 : set->idle_ms == NEVER ? -1 : set->idle_ms;
    options.batch = set->batch == UNSET ? 0 : (int32_t)set->batch;
    options.dry_run = set->dry_run;
    /* Without a callback a sweep is faster. --every needs it: it looks for signals. */
    options.each = set->quiet && set->every_ms == UNSET ? NULL : on_swept;
    options.context = &sweeping;
    if (set->json && cli->member)
        printf("{\"member\": %d, \"removed\": [", cli->member);
    else if (set->json)
        printf("{\"removed\": [");
    int64_t keys = 0;
    int result = rowlock_sweep(cli->db, &options, &report);
    if (result == ROWLOCK_OK)
        result = sweep_keys(cli, &keys);
    print_summary(cli, result, &report, keys);
    /* finish_output() reports a failure. */
    fflush(stdout);
    *signal = sweeping.signal;
    return result;
}

/* What may be over by the next sweep does not end --every. */
static bool passes(const struct cli *cli)
{
    rowlock_error error = ROWLOCK_ERROR_INIT;
    rowlock_db_error(cli->db, &error);
    return error.retryable || error.code == ROWLOCK_ECONN || error.code == ROWLOCK_EUNCERTAIN ||
           error.code == ROWLOCK_EREADONLY;
}

static int sweep_every(struct cli *cli)
{
    int signal = 0;
    signals_cancel(cli->db);
    signal = signals_keep();
    while (!signal) {
        int64_t next_ms = now_ms() + cli->set.every_ms;
        int result = sweep_once(cli, &signal);
        int status = result == ROWLOCK_OK ? EXIT_FINE : report_failure(cli, result);
        if (status != EXIT_FINE && !passes(cli))
            return status;
        /* There is no reader any more: finish_output() says so. */
        if (ferror(stdout))
            return EXIT_FINE;
        while (!signal && now_ms() < next_ms) {
            int64_t rest_ms = next_ms - now_ms();
            int next = signals_next(rest_ms < 1000 ? rest_ms : 1000);
            signal = signal_ends(next) ? next : 0;
        }
    }
    return EXIT_FINE;
}

int cmd_sweep(struct cli *cli)
{
    int signal;
    if (cli->set.quiet && cli->set.json)
        return usage_error(cli, "--quiet and --json exclude each other");
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    if (cli->set.every_ms != UNSET)
        return sweep_every(cli);
    int result = sweep_once(cli, &signal);
    return result == ROWLOCK_OK ? EXIT_FINE : report_failure(cli, result);
}

/* ---------------------------------------------------------------- break */

static void print_broken(const struct cli *cli, const rowlock_grant *grant)
{
    char left[DURATION_TEXT_SIZE];
    if (cli->set.json) {
        json_t *object = json_answer(cli);
        json_put(object, "result", json_of_result(ROWLOCK_OK));
        json_put(object, "broken", json_of_grant(grant));
        json_print(object, 0);
        return;
    }
    char *name = printable(grant->name);
    char *holder = holder_text(grant);
    bool over = grant->remaining_ms < 0;
    duration_text(over ? -grant->remaining_ms : grant->remaining_ms, left);
    print_member(cli);
    printf("took '%s' from %s, token %lld; its lease %s %s%s\n", name, holder,
           (long long)grant->token, over ? "ended" : "had", left, over ? " ago" : " left");
    free(name);
    free(holder);
}

static int nothing_broken(const struct cli *cli)
{
    const char *name = cli->arguments[0];
    if (cli->set.json) {
        json_t *object = json_answer(cli);
        json_put(object, "result", json_of_result(ROWLOCK_NONE));
        json_print(object, 0);
    }
    if (cli->set.if_token != UNSET)
        complain("break '%s': it has no holder with token %lld", name,
                 (long long)cli->set.if_token);
    else
        complain("break '%s': it has no holder", name);
    return EXIT_NOTHING;
}

/* There are several holders: the caller must choose. */
static void say_tokens(const struct cli *cli)
{
    struct snapshot snapshot = {0};
    const char *name = cli->arguments[0];
    if (snapshot_grants(&snapshot, cli->db, name) != ROWLOCK_OK)
        snapshot.grant_count = 0;
    for (size_t i = 0; i < snapshot.grant_count; i++) {
        const rowlock_grant *grant = &snapshot.grants[i];
        char kind[KIND_TEXT_SIZE];
        char *held = held_text(grant);
        kind_text(grant->permits, kind);
        complain("break '%s': for --if-token %lld: %s, %s", name, (long long)grant->token, kind,
                 held);
        free(held);
    }
    snapshot_free(&snapshot);
}

int cmd_break(struct cli *cli)
{
    rowlock_grant broken = ROWLOCK_GRANT_INIT;
    int64_t if_token = cli->set.if_token == UNSET ? 0 : cli->set.if_token;
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    int result = rowlock_break(cli->db, cli->arguments[0], if_token, &broken);
    if (result == ROWLOCK_NONE)
        return nothing_broken(cli);
    if (result != ROWLOCK_OK)
        status = report_failure(cli, result);
    if (result == ROWLOCK_EINVAL && if_token == 0)
        say_tokens(cli);
    if (result != ROWLOCK_OK)
        return status;
    print_broken(cli, &broken);
    return EXIT_FINE;
}

/* ---------------------------------------------------------------- raise-tokens */

int cmd_raise_tokens(struct cli *cli)
{
    int64_t highest = 0;
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    int result =
        rowlock_raise_tokens(cli->db, cli->set.by == UNSET ? DEFAULT_RAISE : cli->set.by, &highest);
    if (result == ROWLOCK_OK && cli->set.new_identity)
        result = rowlock_new_identity(cli->db);
    if (result != ROWLOCK_OK)
        return report_failure(cli, result);
    if (cli->set.json) {
        json_t *object = must_have(json_object());
        json_put(object, "result", json_of_result(result));
        json_put_integer(object, "highest", highest);
        json_print(object, 0);
    } else {
        printf("%lld\n", (long long)highest);
    }
    return EXIT_FINE;
}
