/* SPDX-License-Identifier: MIT
 *
 * once: lists and forgets the keys of `run --once`. once.c claims them.
 */
#include "commands.h"

#include "json.h"
#include "once.h"
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- list */

struct keys {
    bool json;
    long count;
    struct table table;
};

static const char *state_of(const rowlock_once_record *record)
{
    return record->done ? "done" : record->remaining_ms > 0 ? "in progress" : "given up";
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
    *cell++ = must_have(strdup(state_of(record)));
    *cell++ = must_have(strdup(age));
    *cell++ = must_have(strdup(token));
    *cell++ = printable(key);
}

static void print_object(struct keys *keys, const rowlock_once_record *record, const char *names,
                         const char *key)
{
    json_t *object = must_have(json_object());
    json_put(object, "name", names ? json_of_text(names) : json_null());
    json_put(object, "key", json_of_text(key));
    json_put(object, "state", json_of_text(state_of(record)));
    json_put_integer(object, "token", record->token);
    json_put_time(object, "changed", record->changed_us);
    json_put_integer(object, "age_ms", record->age_ms);
    json_put_integer(object, "remaining_ms", record->remaining_ms);
    json_print_element(object, keys->count == 0);
}

static int on_key(void *context, const rowlock_once_record *record)
{
    struct keys *keys = context;
    const char *key = record->key;
    char *names = once_names(record->key, &key);
    if (keys->json)
        print_object(keys, record, names, key);
    else
        add_row(keys, record, names, key);
    keys->count++;
    free(names);
    return ferror(stdout);
}

static int list_keys(struct cli *cli, char **names, int count)
{
    static const char *const headings[] = {"NAME", "STATE", "SINCE", "TOKEN", "KEY"};
    struct keys keys = {.json = cli->set.json};
    char *prefix = count ? once_key(names, count, "") : NULL;
    table_begin(&keys.table, headings, sizeof headings / sizeof headings[0]);
    int result = rowlock_once_list(cli->db, prefix, on_key, &keys);
    free(prefix);
    if (result != ROWLOCK_OK)
        return report_failure(cli, result);
    if (keys.json)
        json_print_end(keys.count == 0);
    else
        table_end(&keys.table);
    return EXIT_FINE;
}

/* ---------------------------------------------------------------- forget */

static int forget_key(struct cli *cli, char **names, int count, const char *key)
{
    char *whole = count ? once_key(names, count, key) : must_have(strdup(key));
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

int cmd_once(struct cli *cli)
{
    char **names = cli->arguments + 1;
    int count = cli->argument_count - 1;
    bool list = strcmp(cli->arguments[0], "list") == 0;
    if (!list && strcmp(cli->arguments[0], "forget") != 0)
        return usage_error(cli, "'%s' is not a subcommand; say list or forget", cli->arguments[0]);
    if (!list && count < 1)
        return usage_error(cli, "forget needs a key");
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    return list ? list_keys(cli, names, count)
                : forget_key(cli, names, count - 1, names[count - 1]);
}
