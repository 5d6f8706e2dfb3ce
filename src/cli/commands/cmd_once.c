/* SPDX-License-Identifier: MIT
 *
 * once: lists, shows and forgets the keys of `run --once` and `run --every`. claim.c claims them.
 */
#include "cli/commands/commands.h"

#include "cli/print/json.h"
#include "cli/run/claim.h"
#include "cli/print/columns.h"

#include <fnmatch.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const int once_options[] = {OPT_MATCH, OPT_JSON, OPT_END};

/* ---------------------------------------------------------------- a key */

/* names: NULL for a key of a program. Such a program may claim without a token. */
static const char *state_of(const rowlock_once_record *record, const char *names)
{
    if (record->done)
        return "done";
    if (names && once_has_failed(record))
        return "failed";
    return record->remaining_ms > 0 ? "in progress" : "given up";
}

static json_t *object_of(const rowlock_once_record *record, const char *names, const char *key)
{
    json_t *object = must_have(json_object());
    json_put(object, "name", names ? json_of_text(names) : json_null());
    json_put(object, "key", json_of_text(key));
    json_put(object, "state", json_of_text(state_of(record, names)));
    json_put_integer(object, "token", record->token);
    json_put_time(object, "changed", record->changed_us);
    json_put_integer(object, "age_ms", record->age_ms);
    json_put_integer(object, "remaining_ms", record->remaining_ms);
    return object;
}

/* ---------------------------------------------------------------- runs */

/* A key that is in progress, and whether the lock of its run is still held. A run that was killed
 * leaves its claim, whose time is that of the longest run. */
struct run {
    char *key;
    int64_t token;
    bool holds;
};

struct runs {
    struct run *each;
    size_t count;
};

static int note_run(void *context, const rowlock_once_record *record)
{
    struct runs *runs = context;
    if (record->done || record->token == 0)
        return 0;
    runs->each = must_have(realloc(runs->each, (runs->count + 1) * sizeof *runs->each));
    runs->each[runs->count++] = (struct run){must_have(strdup(record->key)), record->token, false};
    return 0;
}

static int note_grant(void *context, const rowlock_grant *grant)
{
    struct runs *runs = context;
    for (size_t i = 0; i < runs->count; i++) {
        struct run *run = &runs->each[i];
        if (run->token == grant->token && grant->remaining_ms > 0 &&
            once_is_under(run->key, grant->name))
            run->holds = true;
    }
    return 0;
}

static void free_runs(struct runs *runs)
{
    for (size_t i = 0; i < runs->count; i++)
        free(runs->each[i].key);
    free(runs->each);
}

/* A run ends its key before its lock. So keys are read, then grants, then keys again: what is in
 * progress then, as at first, and was not held between, has no run. */
static int list_with_runs(const struct cli *cli, const char *prefix, struct runs *runs,
                          int (*each)(void *context, const rowlock_once_record *record),
                          void *context)
{
    int result = rowlock_once_list(cli->db, prefix, note_run, runs);
    if (result == ROWLOCK_OK && runs->count)
        result = rowlock_list(cli->db, NULL, note_grant, runs);
    if (result == ROWLOCK_OK)
        result = rowlock_once_list(cli->db, prefix, each, context);
    return result;
}

/* The time of a claim without a run is over. */
static rowlock_once_record with_run(const struct runs *runs, const rowlock_once_record *record)
{
    rowlock_once_record known = *record;
    for (size_t i = 0; i < runs->count && !record->done; i++) {
        const struct run *run = &runs->each[i];
        if (!run->holds && run->token == record->token && strcmp(run->key, record->key) == 0 &&
            known.remaining_ms > 0)
            known.remaining_ms = 0;
    }
    return known;
}

/* ---------------------------------------------------------------- list */

struct keys {
    bool json;
    /* NULL: all of them. */
    const char *match;
    long count;
    struct table table;
    struct runs runs;
};

/* "NAME KEY", as people write it. A key of a program has no name. */
static bool matches(const char *pattern, const char *names, const char *key)
{
    char text[900];
    snprintf(text, sizeof text, "%s%s%s", names ? names : "", names ? " " : "", key);
    return fnmatch(pattern, text, 0) == 0;
}

static void add_row(struct keys *keys, const rowlock_once_record *record, const char *names,
                    const char *key)
{
    char age[DURATION_TEXT_SIZE];
    char token[24];
    char **cell = table_row(&keys->table);
    duration_text(record->age_ms, age);
    snprintf(token, sizeof token, "%lld", (long long)record->token);
    *cell++ = printable(names ? names : "-");
    *cell++ = must_have(strdup(state_of(record, names)));
    *cell++ = must_have(strdup(age));
    *cell++ = must_have(strdup(token));
    *cell++ = printable(key);
}

static int on_key(void *context, const rowlock_once_record *record)
{
    struct keys *keys = context;
    const char *key = record->key;
    char *names = once_names(record->key, &key);
    bool wanted = !keys->match || matches(keys->match, names, key);
    const rowlock_once_record known = with_run(&keys->runs, record);
    if (wanted && keys->json)
        json_print_element(object_of(&known, names, key), keys->count == 0);
    else if (wanted)
        add_row(keys, &known, names, key);
    keys->count += wanted;
    free(names);
    return ferror(stdout);
}

static int list_keys(struct cli *cli, char **names, int count)
{
    static const char *const headings[] = {"NAME", "STATE", "SINCE", "TOKEN", "KEY"};
    struct keys keys = {.json = cli->set.json, .match = cli->set.match};
    char *prefix = count ? once_key(names, count, "") : NULL;
    table_begin(&keys.table, headings, sizeof headings / sizeof headings[0]);
    /* In the locale "C", fnmatch() would take a byte for a character. */
    setlocale(LC_CTYPE, "C.UTF-8");
    int result = list_with_runs(cli, prefix, &keys.runs, on_key, &keys);
    free_runs(&keys.runs);
    free(prefix);
    if (result != ROWLOCK_OK)
        return report_failure(cli, result);
    if (keys.json)
        json_print_end(keys.count == 0);
    else
        table_end(&keys.table);
    return EXIT_FINE;
}

/* ---------------------------------------------------------------- show */

static char *whole_key(char **names, int count, const char *key)
{
    return count ? once_key(names, count, key) : must_have(strdup(key));
}

/* The first key that begins with this one is the key itself, if it is there. */
static int take_first(void *context, const rowlock_once_record *record)
{
    *(rowlock_once_record *)context = *record;
    return 1;
}

static void print_left(const rowlock_once_record *record, const char *state)
{
    char left[DURATION_TEXT_SIZE];
    duration_text(record->remaining_ms, left);
    if (record->remaining_ms <= 0)
        return;
    if (strcmp(state, "failed") == 0)
        printf("%-12s %s\n", "repeated in", left);
    else
        printf("%-12s %s more\n", "at most", left);
}

static void print_key(const rowlock_once_record *record)
{
    const char *key = record->key;
    char age[DURATION_TEXT_SIZE];
    char *names = once_names(record->key, &key);
    const char *state = state_of(record, names);
    char *safe_names = printable(names ? names : "-");
    char *safe_key = printable(key);
    duration_text(record->age_ms, age);
    printf("%-12s %s\n%-12s %s\n%-12s %s\n%-12s %s\n", "name", safe_names, "key", safe_key, "state",
           state, "since", age);
    print_left(record, state);
    printf("%-12s %lld\n", "token", (long long)record->token);
    free(safe_names);
    free(safe_key);
    free(names);
}

static void print_key_json(const rowlock_once_record *record)
{
    const char *key = record->key;
    char *names = once_names(record->key, &key);
    json_print(object_of(record, names, key), 0);
    free(names);
}

static int show_key(struct cli *cli, char **names, int count, const char *key)
{
    rowlock_once_record record = {0};
    struct runs runs = {0};
    char *whole = whole_key(names, count, key);
    int result = list_with_runs(cli, whole, &runs, take_first, &record);
    bool found = strcmp(record.key, whole) == 0;
    record = with_run(&runs, &record);
    free_runs(&runs);
    free(whole);
    if (result != ROWLOCK_OK)
        return report_failure(cli, result);
    if (!found)
        complain("once show '%s': there is no such key", key);
    else if (cli->set.json)
        print_key_json(&record);
    else
        print_key(&record);
    return found ? EXIT_FINE : EXIT_NOTHING;
}

/* ---------------------------------------------------------------- forget */

static int forget_key(struct cli *cli, char **names, int count, const char *key)
{
    char *whole = whole_key(names, count, key);
    int result = rowlock_once_forget(cli->db, whole);
    free(whole);
    if (cli->set.json && result >= 0) {
        json_t *object = must_have(json_object());
        json_put(object, "result", json_of_result(result));
        json_print(object, 0);
    }
    if (result == ROWLOCK_NONE)
        complain("once forget '%s': there is no such key", key);
    else if (result != ROWLOCK_OK)
        return report_failure(cli, result);
    return status_of(result);
}

/* ---------------------------------------------------------------- the subcommands */

typedef int one_key(struct cli *cli, char **names, int count, const char *key);

/* NULL: list, or an unknown word. */
static one_key *subcommand(const char *word)
{
    return strcmp(word, "show") == 0 ? show_key : strcmp(word, "forget") == 0 ? forget_key : NULL;
}

int cmd_once(struct cli *cli)
{
    const char *word = cli->arguments[0];
    char **names = cli->arguments + 1;
    int count = cli->argument_count - 1;
    one_key *with_key = subcommand(word);
    if (!with_key && strcmp(word, "list") != 0)
        return usage_error(cli, "'%s' is not a subcommand; say list, show or forget", word);
    if (with_key && count < 1)
        return usage_error(cli, "%s needs a key", word);
    if (with_key && cli->set.match)
        return usage_error(cli, "--match belongs to list");
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    return with_key ? with_key(cli, names, count - 1, names[count - 1])
                    : list_keys(cli, names, count);
}
