/* SPDX-License-Identifier: MIT
 *
 * list and show: who holds what, as a table, as lines or as JSON. Nothing here changes anything.
 */
#include "commands.h"

#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const int json_options[] = {OPT_JSON, OPT_END};

struct grants {
    rowlock_grant *list;
    size_t count;
    size_t room;
};

static int collect(void *context, const rowlock_grant *grant)
{
    struct grants *grants = context;
    if (grants->count == grants->room) {
        grants->room = grants->room ? 2 * grants->room : 16;
        grants->list = must_have(realloc(grants->list, grants->room * sizeof *grants->list));
    }
    grants->list[grants->count++] = *grant;
    return 0;
}

static json_t *json_of_grants(const struct grants *grants)
{
    json_t *array = must_have(json_array());
    for (size_t i = 0; i < grants->count; i++) {
        if (json_array_append_new(array, json_of_grant(&grants->list[i])) != 0)
            must_have(NULL);
    }
    return array;
}

/* ---------------------------------------------------------------- the table */

enum { NAME, TOKEN, HELD_BY, SINCE, LEASE_LEFT, NOTE, COLUMNS };

static const char *const headings[COLUMNS] = {"NAME",  "TOKEN",      "HELD BY",
                                              "SINCE", "LEASE LEFT", "NOTE"};

/* Longer texts are shown in full, but do not push everybody else's columns away. */
#define WIDEST 40

static void lease_text(int64_t remaining_ms, char *text, size_t size)
{
    char duration[DURATION_TEXT_SIZE];
    duration_text(remaining_ms < 0 ? -remaining_ms : remaining_ms, duration);
    if (remaining_ms < 0)
        snprintf(text, size, "expired %s ago", duration);
    else
        snprintf(text, size, "%s", duration);
}

static char *copy(const char *text)
{
    return must_have(strdup(text));
}

static void fill_row(char *cells[COLUMNS], const rowlock_grant *grant)
{
    char text[80];
    cells[NAME] = printable(grant->name);
    snprintf(text, sizeof text, "%lld", (long long)grant->token);
    cells[TOKEN] = copy(text);
    cells[HELD_BY] = holder_text(grant);
    duration_text(grant_age_ms(grant), text);
    cells[SINCE] = copy(text);
    lease_text(grant->remaining_ms, text, sizeof text);
    cells[LEASE_LEFT] = copy(text);
    cells[NOTE] = printable(grant->note);
}

static void print_row(const char *const cells[COLUMNS], const int widths[COLUMNS])
{
    int last = COLUMNS - 1;
    while (last > 0 && !cells[last][0])
        last--;
    for (int i = 0; i <= last; i++) {
        int padding = i < last ? widths[i] - columns_of(cells[i]) + 2 : 0;
        printf("%s%*s", cells[i], padding > 2 ? padding : i < last ? 2 : 0, "");
    }
    putchar('\n');
}

static void print_table(const struct grants *grants)
{
    char *(*rows)[COLUMNS] = must_have(calloc(grants->count + 1, sizeof *rows));
    int widths[COLUMNS];
    for (int i = 0; i < COLUMNS; i++)
        widths[i] = columns_of(headings[i]);
    for (size_t row = 0; row < grants->count; row++) {
        fill_row(rows[row], &grants->list[row]);
        for (int i = 0; i < COLUMNS; i++) {
            int width = columns_of(rows[row][i]);
            if (width > widths[i] && width <= WIDEST)
                widths[i] = width;
        }
    }
    print_row(headings, widths);
    for (size_t row = 0; row < grants->count; row++) {
        print_row((const char *const *)rows[row], widths);
        for (int i = 0; i < COLUMNS; i++)
            free(rows[row][i]);
    }
    free(rows);
}

int cmd_list(struct cli *cli)
{
    struct grants grants = {0};
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    int result = rowlock_list(cli->db, NULL, collect, &grants);
    if (result != ROWLOCK_OK)
        status = report_failure(cli, result);
    else if (cli->set.json)
        json_print(json_of_grants(&grants), 0);
    else
        print_table(&grants);
    free(grants.list);
    return status;
}

/* ---------------------------------------------------------------- one lock */

struct history {
    bool known; /* the name has a token counter */
    int64_t token;
    int64_t granted_us;
};

static void print_field(const char *field, const char *value)
{
    char *safe = printable(value);
    printf("%-12s %s\n", field, safe);
    free(safe);
}

static void print_time(const char *field, int64_t us, const char *rest)
{
    json_t *object = must_have(json_object());
    json_put_time(object, "time", us);
    printf("%-12s %s%s%s\n", field, json_string_value(json_object_get(object, "time_at")),
           *rest ? ", " : "", rest);
    json_decref(object);
}

static void print_grant(const rowlock_grant *grant)
{
    char text[80], age[DURATION_TEXT_SIZE];
    char *holder = holder_text(grant);
    printf("%-12s %lld\n", "token", (long long)grant->token);
    printf("%-12s %s\n", "held by", holder);
    free(holder);
    print_field("owner", grant->owner);
    duration_text(grant_age_ms(grant), age);
    snprintf(text, sizeof text, "%s ago", age);
    print_time("acquired", grant->acquired_us, text);
    lease_text(grant->remaining_ms, text, sizeof text);
    print_time("lease until", grant->expires_us, text);
    duration_text(grant->ttl_ms, text);
    printf("%-12s %s, renewed %lld times\n", "lease of", text, (long long)grant->renewals);
    if (grant->note[0])
        print_field("note", grant->note);
}

static void print_lock(const char *name, const struct grants *grants, const struct history *history)
{
    char text[80];
    print_field("name", name);
    if (grants->count == 0)
        puts("held by      nobody");
    for (size_t i = 0; i < grants->count; i++)
        print_grant(&grants->list[i]);
    if (history->known) {
        snprintf(text, sizeof text, "token %lld", (long long)history->token);
        print_time("last grant", history->granted_us, text);
    }
}

static void print_lock_json(const char *name, const struct grants *grants,
                            const struct history *history)
{
    json_t *object = must_have(json_object());
    json_put(object, "name", json_of_text(name));
    json_put(object, "grants", json_of_grants(grants));
    json_put(object, "last_token", history->known ? json_integer(history->token) : json_null());
    if (history->known)
        json_put_time(object, "last_granted", history->granted_us);
    json_print(object, 0);
}

static int look_up(struct cli *cli, struct grants *grants, struct history *history)
{
    const char *name = cli->arguments[0];
    int result = rowlock_list(cli->db, name, collect, grants);
    if (result != ROWLOCK_OK)
        return report_failure(cli, result);
    result = rowlock_last_grant(cli->db, name, &history->token, &history->granted_us);
    history->known = result == ROWLOCK_OK;
    return result == ROWLOCK_OK || result == ROWLOCK_NONE ? EXIT_FINE : report_failure(cli, result);
}

int cmd_show(struct cli *cli)
{
    struct grants grants = {0};
    struct history history = {0};
    const char *name = cli->arguments[0];
    int status = connect_database(cli, NULL);
    if (status == EXIT_FINE)
        status = look_up(cli, &grants, &history);
    if (status == EXIT_FINE) {
        if (cli->set.json)
            print_lock_json(name, &grants, &history);
        else if (grants.count > 0 || history.known)
            print_lock(name, &grants, &history);
        else
            complain("show '%s': nobody holds it, and no grant of it is on record", name);
        if (grants.count == 0 && !history.known)
            status = EXIT_NOTHING;
    }
    free(grants.list);
    return status;
}
