/* SPDX-License-Identifier: MIT
 * once: lists, shows and forgets keys of `run --once` and `run --every`. claim.c claims them. */
#include "cli/run/run.h"

#include <fnmatch.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

static const char *match;

static const struct option_row options[] = {
    OPTION("match", 0, "GLOB", "list: only keys whose 'NAME KEY' matches this pattern", TEXT,
           match),
    OPTION("every", 0, "DURATION", "last: is the present period done? As of run", LENGTH,
           asked.every_ms),
    OPTION("at", 0, "TIME", "last: when periods begin, as of run (00:00)", TEXT, asked.at),
    OPTION("timezone", 0, "ZONE", "last: of --every and --at, as of run (UTC)", TEXT,
           asked.timezone),
    JSON_OPTION,
    {.name = NULL},
};

struct key {
    /* NULL: a program has claimed it. Such a program may claim without a token. */
    char *names;
    const char *key;
    const char *state;
    /* What became of the run. NULL: nothing is known. */
    json_t *run;
    /* What a program has left with its key. NULL: nothing. */
    char *note;
    rowlock_once_record record;
};

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
        {"note", WORDS, offsetof(struct key, note)},
        {.key = NULL},
    };
    json_t *object = json_of(members, key);
    json_put(object, "run", key->run ? json_incref(key->run) : json_null());
    return object;
}

static int64_t number_of(const json_t *run, const char *name)
{
    return json_integer_value(json_object_get(run, name));
}

/* The names and key in the key of the database. */
static struct key read_key(const rowlock_once_record *record)
{
    struct key key = {.record = *record, .key = record->key};
    key.names = once_names(record->key, &key.key);
    if (!key.names && record->result_length > 0)
        key.note = new_text("%.*s", record->result_length, record->result);
    bool failed = key.names && once_has_failed(record);
    key.state = record->done               ? "done"
                : failed                   ? "failed"
                : record->remaining_ms > 0 ? "in progress"
                                           : "given up";
    key.run = failed || (key.names && record->done) ? once_history(record) : NULL;
    if (failed && key.run)
        key.record.token = number_of(key.run, "token");
    key.record.remaining_ms = within(key.record.remaining_ms, 0, INT64_MAX);
    return key;
}

static void free_key(struct key *key)
{
    free(key->names);
    free(key->note);
    json_decref(key->run);
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
    rowlock_once_record seen = *record;
    /* Without its run the time of a claim is over. */
    for (size_t i = 0; i < runs->count && !record->done; i++)
        if (runs->each[i].token == record->token && strcmp(runs->each[i].key, record->key) == 0)
            seen.remaining_ms = at_most(record->remaining_ms, 0);
    struct key key = read_key(&seen);
    int stop = looking->each(looking->context, &key);
    free_key(&key);
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
    const json_t *run = key->run;
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
    *cell++ = run ? new_text("%lld", (long long)number_of(run, "status")) : new_text("-");
    *cell++ = new_text("%s", run ? duration_text(number_of(run, "duration_ms")).text : "-");
    *cell++ = printable(run ? json_string_value(json_object_get(run, "host")) : "-");
    *cell++ = printable(key->key);
    return ferror(stdout);
}

static int list_keys(struct cli *cli, char **names, int count)
{
    static const char *const headings[] = {"NAME",   "STATE", "SINCE", "TOKEN",
                                           "STATUS", "TOOK",  "HOST",  "KEY"};
    struct table table = {.headings = headings, .columns = 8};
    char *prefix = count ? once_key(names, count, "") : NULL;
    /* In the locale "C", fnmatch() would take a byte for a character. */
    setlocale(LC_CTYPE, "C.UTF-8");
    int result = look_at_keys(cli, prefix, on_key, &table);
    free(prefix);
    if (result == ROWLOCK_OK)
        table_end(&table);
    return reported(cli, result);
}

/* ---------------------------------------------------------------- show */

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
    if (key->note)
        say("%-12s %s", "note", key->note);
    if (!key->run)
        return;
    say("%-12s %lld", "status", (long long)number_of(key->run, "status"));
    const char *user = json_string_value(json_object_get(key->run, "user"));
    say("%-12s %s on %s, process %lld, for %s", "run by", user ? user : "-",
        json_string_value(json_object_get(key->run, "host")), (long long)number_of(key->run, "pid"),
        duration_text(number_of(key->run, "duration_ms")).text);
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

/* ---------------------------------------------------------------- last */

struct last {
    bool any, period_done;
    char period[32];
    rowlock_once_record newest;
};

/* The present period is one by the database's clock. */
static int note_last(void *context, const rowlock_once_record *record)
{
    struct last *last = context;
    const char *key;
    if (asked.every_ms)
        snprintf(last->period, sizeof last->period, "%s",
                 period_key(record->changed_us / 1000 + record->age_ms));
    if (!record->done)
        return 0;
    char *names = once_names(record->key, &key);
    last->period_done = last->period_done || (names && strcmp(key, last->period) == 0);
    free(names);
    if (!last->any || record->changed_us > last->newest.changed_us)
        last->newest = *record;
    last->any = true;
    return 0;
}

static void print_last(const struct last *last)
{
    struct key key = read_key(&last->newest);
    if (general.json) {
        json_t *object = must_have(json_object());
        if (asked.every_ms) {
            json_put(object, "period_done", json_boolean(last->period_done));
            json_put(object, "period", *last->period ? json_string(last->period) : json_null());
        }
        json_put(object, "last", last->any ? json_of_key(&key) : json_null());
        json_print(object, false);
    } else if (last->any) {
        print_key(&key);
    }
    free_key(&key);
}

/* Without --every the last success counts, however old it is. */
static int show_last(const struct cli *cli, char **names, int count)
{
    struct last last = {.any = false};
    char *prefix = once_key(names, count, "");
    int result = rowlock_once_list(cli->db, prefix, note_last, &last);
    free(prefix);
    if (result != ROWLOCK_OK)
        return reported(cli, result);
    print_last(&last);
    if (!last.any)
        complain("once last '%s': no run with --every or --once has succeeded", names[0]);
    else if (asked.every_ms && !last.period_done)
        complain("once last '%s': the period that began at %s is not done", names[0], last.period);
    return last.any && (!asked.every_ms || last.period_done) ? EXIT_FINE : EXIT_NOTHING;
}

/* ---------------------------------------------------------------- forget, and the whole */

static int run_once(struct cli *cli)
{
    const char *word = cli->arguments[0];
    char **names = cli->arguments + 1;
    int count = cli->argument_count - 1;
    bool shows = strcmp(word, "show") == 0, forgets = strcmp(word, "forget") == 0;
    bool lists = strcmp(word, "list") == 0, lasts = strcmp(word, "last") == 0;
    if (!shows && !forgets && !lists && !lasts)
        usage_error(cli, "'%s' is not a subcommand; say list, last, show or forget", word);
    if (!lists && count < 1)
        usage_error(cli, "%s needs a %s", word, lasts ? "name" : "key");
    if (match && !lists)
        usage_error(cli, "--match belongs to list");
    if (!lasts && (asked.every_ms || asked.at || asked.timezone))
        usage_error(cli, "--every, --at and --timezone belong to last");
    period_settings(cli);
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    if (lists)
        return list_keys(cli, names, count);
    if (lasts)
        return show_last(cli, names, count);
    const char *key = names[--count];
    char *whole = count ? once_key(names, count, key) : new_text("%s", key);
    struct wanted wanted = {.whole = whole};
    int result = shows ? look_at_keys(cli, whole, show_wanted, &wanted)
                       : rowlock_once_forget(cli->db, whole, 0);
    free(whole);
    if (shows && result == ROWLOCK_OK && !wanted.found)
        result = ROWLOCK_NONE;
    if (forgets && general.json && result >= 0)
        json_print_answer(cli, result, NULL, NULL);
    if (result != ROWLOCK_NONE)
        return reported(cli, result);
    complain("once %s '%s': there is no such key", word, key);
    return EXIT_NOTHING;
}

const struct command once_command = COMMAND(
    "once", "list [NAME]... | last NAME... | show [NAME]... KEY | forget [NAME]... KEY",
    "list or forget the keys of run --once and --every",
    "With NAME: the keys of that lock. With several: the keys of runs with all of them, in\n"
    "this order. Without NAME: list shows all keys; show and forget take a key that a program\n"
    "has claimed through the library.\n"
    "last shows the newest success. With --every it tells whether the present period is done.\n"
    "forget makes a key free: the next run with it runs its command.\n"
    "Exit status: show, forget: 0 found; 1 there is no such key. last: 0 there is a success, in\n"
    "this period with --every; 1 there is none.\n",
    options, 1, ANY_NUMBER, false, ONE_DATABASE, run_once);
