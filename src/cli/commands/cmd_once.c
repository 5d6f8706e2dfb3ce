/* SPDX-License-Identifier: MIT
 *
 * once: lists, shows and forgets the keys of `run --once` and `run --every`. claim.c claims them.
 */
#include "cli/run/run.h"

#include <fnmatch.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

static const char *match;

static const struct option_row options[] = {
    OPTION("match", 0, "GLOB", "only keys whose 'NAME KEY' matches this pattern", TEXT, match),
    JSON_OPTION,
    {.name = NULL},
};

struct key {
    /* NULL: a program has claimed it. Such a program may claim without a token. */
    char *names;
    const char *key;
    const char *state;
    rowlock_once_record record;
};

static const char *state_of(const struct key *key)
{
    if (key->record.done)
        return "done";
    if (key->names && once_has_failed(&key->record))
        return "failed";
    return key->record.remaining_ms > 0 ? "in progress" : "given up";
}

static json_t *json_of_key(const struct key *key)
{
    static const struct member members[] = {
        {"name", WORDS, offsetof(struct key, names)},
        {"key", WORDS, offsetof(struct key, key)},
        {"state", WORDS, offsetof(struct key, state)},
        {"token", INTEGER, offsetof(struct key, record.token)},
        {"changed", TIME, offsetof(struct key, record.changed_us)},
        {"age_ms", INTEGER, offsetof(struct key, record.age_ms)},
        {"remaining_ms", INTEGER, offsetof(struct key, record.remaining_ms)},
        {.key = NULL},
    };
    return json_of(members, key);
}

/* ---------------------------------------------------------------- looking at keys */

/* Keys in progress, of runs whose locks are not held any more. A run that was killed leaves its
 * claim, whose time is that of the longest run. */
struct runs {
    rowlock_once_record *each;
    size_t count;
};

static int note_run(void *context, const rowlock_once_record *record)
{
    struct runs *runs = context;
    if (record->done || record->token == 0)
        return 0;
    runs->each = must_have(realloc(runs->each, (runs->count + 1) * sizeof *runs->each));
    runs->each[runs->count++] = *record;
    return 0;
}

static int note_grant(void *context, const rowlock_grant *grant)
{
    struct runs *runs = context;
    for (size_t i = runs->count; i-- > 0 && grant->remaining_ms > 0;)
        if (runs->each[i].token == grant->token && once_is_under(runs->each[i].key, grant->name))
            runs->each[i] = runs->each[--runs->count];
    return 0;
}

typedef int each_key(void *context, const struct key *key);

struct looking {
    struct runs runs;
    each_key *each;
    void *context;
};

static int on_record(void *context, const rowlock_once_record *record)
{
    const struct looking *looking = context;
    const struct runs *runs = &looking->runs;
    struct key key = {.record = *record};
    key.key = record->key;
    key.names = once_names(record->key, &key.key);
    /* Without its run the time of a claim is over. */
    for (size_t i = 0; i < runs->count && !record->done; i++)
        if (runs->each[i].token == record->token && strcmp(runs->each[i].key, record->key) == 0)
            key.record.remaining_ms = at_most(record->remaining_ms, 0);
    key.state = state_of(&key);
    int stop = looking->each(looking->context, &key);
    free(key.names);
    return stop;
}

/* A run ends its key before its lock. So keys are read, then grants, then keys again: what is in
 * progress then, as at first, and was not held between, has no run. */
static int look_at_keys(const struct cli *cli, const char *prefix, each_key *each, void *context)
{
    struct looking looking = {.each = each, .context = context};
    int result = rowlock_once_list(cli->db, prefix, note_run, &looking.runs);
    if (result == ROWLOCK_OK && looking.runs.count)
        result = rowlock_list(cli->db, NULL, note_grant, &looking.runs);
    if (result == ROWLOCK_OK)
        result = rowlock_once_list(cli->db, prefix, on_record, &looking);
    free(looking.runs.each);
    return result;
}

/* ---------------------------------------------------------------- list */

/* "NAME KEY", as people write it. A key of a program has no name. */
static bool matches(const struct key *key)
{
    char *text = key->names ? new_text("%s %s", key->names, key->key) : new_text("%s", key->key);
    bool is = fnmatch(match, text, 0) == 0;
    free(text);
    return is;
}

static int on_key(void *context, const struct key *key)
{
    if (match && !matches(key))
        return 0;
    if (general.json) {
        table_json(context, json_of_key(key));
        return ferror(stdout);
    }
    char **cell = table_row(context);
    *cell++ = printable(key->names ? key->names : "-");
    *cell++ = new_text("%s", key->state);
    *cell++ = new_text("%s", duration_text(key->record.age_ms).text);
    *cell++ = new_text("%lld", (long long)key->record.token);
    *cell++ = printable(key->key);
    return ferror(stdout);
}

static int list_keys(struct cli *cli, char **names, int count)
{
    static const char *const headings[] = {"NAME", "STATE", "SINCE", "TOKEN", "KEY"};
    struct table table = {.headings = headings, .columns = 5};
    char *prefix = count ? once_key(names, count, "") : NULL;
    /* In the locale "C", fnmatch() would take a byte for a character. */
    setlocale(LC_CTYPE, "C.UTF-8");
    int result = look_at_keys(cli, prefix, on_key, &table);
    free(prefix);
    if (result == ROWLOCK_OK)
        table_end(&table);
    return reported(cli, result);
}

/* ---------------------------------------------------------------- show and forget */

static void print_key(const struct key *key)
{
    bool failed = strcmp(key->state, "failed") == 0;
    say("%-12s %s", "name", key->names ? key->names : "-");
    say("%-12s %s", "key", key->key);
    say("%-12s %s", "state", key->state);
    say("%-12s %s", "since", duration_text(key->record.age_ms).text);
    if (key->record.remaining_ms > 0)
        say("%-12s %s%s", failed ? "repeated in" : "at most",
            duration_text(key->record.remaining_ms).text, failed ? "" : " more");
    say("%-12s %lld", "token", (long long)key->record.token);
}

struct wanted {
    const char *whole;
    bool found;
};

/* The first key that begins with this one is the key itself, if it is there. */
static int show_wanted(void *context, const struct key *key)
{
    struct wanted *wanted = context;
    wanted->found = strcmp(key->record.key, wanted->whole) == 0;
    if (wanted->found && general.json)
        json_print(json_of_key(key), false);
    else if (wanted->found)
        print_key(key);
    return 1;
}

static int show_key(const struct cli *cli, const char *whole)
{
    struct wanted wanted = {.whole = whole};
    int result = look_at_keys(cli, whole, show_wanted, &wanted);
    return result == ROWLOCK_OK && !wanted.found ? ROWLOCK_NONE : result;
}

static int forget_key(const struct cli *cli, const char *whole)
{
    int result = rowlock_once_forget(cli->db, whole);
    if (general.json && result >= 0)
        json_print_answer(cli, result, NULL, NULL);
    return result;
}

static int run_once(struct cli *cli)
{
    const char *word = cli->arguments[0];
    char **names = cli->arguments + 1;
    int count = cli->argument_count - 1;
    bool shows = strcmp(word, "show") == 0, forgets = strcmp(word, "forget") == 0;
    if (!shows && !forgets && strcmp(word, "list") != 0)
        usage_error(cli, "'%s' is not a subcommand; say list, show or forget", word);
    if ((shows || forgets) && count < 1)
        usage_error(cli, "%s needs a key", word);
    if ((shows || forgets) && match)
        usage_error(cli, "--match belongs to list");
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    if (!shows && !forgets)
        return list_keys(cli, names, count);
    const char *key = names[--count];
    char *whole = count ? once_key(names, count, key) : new_text("%s", key);
    int result = shows ? show_key(cli, whole) : forget_key(cli, whole);
    free(whole);
    if (result != ROWLOCK_NONE)
        return reported(cli, result);
    complain("once %s '%s': there is no such key", word, key);
    return EXIT_NOTHING;
}

const struct command once_command = COMMAND(
    "once", "list [NAME]... | show [NAME]... KEY | forget [NAME]... KEY",
    "list or forget the keys of run --once and --every",
    "With NAME: the keys of that lock. With several: the keys of runs with all of them, in\n"
    "this order. Without NAME: list shows all keys; show and forget take a key that a program\n"
    "has claimed through the library.\n"
    "forget makes a key free: the next run with it runs its command.\n"
    "Exit status of show and forget: 0 found; 1 there is no such key.\n",
    options, 1, ANY_NUMBER, false, ONE_DATABASE, run_once);
