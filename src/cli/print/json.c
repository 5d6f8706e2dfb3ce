/* SPDX-License-Identifier: MIT
 *
 * The JSON forms of what the command prints: exact strings, and integers instead of fractions.
 * report.c has the texts for people.
 */
#include "cli/print/json.h"

#include "cli/cli.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

json_t *json_of_text(const char *text)
{
    json_t *value = json_string(text);
    if (!value) {
        char *safe = printable(text);
        value = json_string(safe);
        free(safe);
    }
    return must_have(value);
}

void json_put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, must_have(value)) != 0)
        must_have(NULL);
}

void json_put_integer(json_t *object, const char *key, int64_t value)
{
    json_put(object, key, json_integer(value));
}

void json_put_time(json_t *object, const char *key, int64_t us)
{
    char name[40], text[80], day[40] = "";
    time_t seconds = (time_t)(us / 1000000);
    struct tm parts;
    snprintf(name, sizeof name, "%s_us", key);
    json_put_integer(object, name, us);
    if (gmtime_r(&seconds, &parts))
        strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text, sizeof text, "%s.%06lldZ", day, (long long)(us % 1000000));
    snprintf(name, sizeof name, "%s_at", key);
    json_put(object, name, json_of_text(text));
}

json_t *json_of_result(int result)
{
    char text[40];
    const char *name = rowlock_result_name(result);
    snprintf(text, sizeof text, "%s", strncmp(name, "ROWLOCK_", 8) == 0 ? name + 8 : name);
    for (char *c = text; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return json_of_text(text);
}

/* The kind in words, and the number of permits if it is counted. */
static void put_kind(json_t *object, int32_t permits)
{
    const char *kind = permits > 0 ? "counted" : permits < 0 ? "shared" : "exclusive";
    json_put(object, "kind", json_of_text(kind));
    json_put(object, "permits", permits > 0 ? json_integer(permits) : json_null());
}

json_t *json_of_grant(const rowlock_grant *grant)
{
    json_t *object = must_have(json_object());
    json_put(object, "name", json_of_text(grant->name));
    put_kind(object, grant->permits);
    json_put(object, "owner", json_of_text(grant->owner));
    json_put_integer(object, "token", grant->token);
    json_put(object, "program", json_of_text(grant->program));
    json_put_integer(object, "pid", grant->pid);
    json_put(object, "host", json_of_text(grant->host));
    json_put(object, "note", json_of_text(grant->note));
    json_put_time(object, "acquired", grant->acquired_us);
    json_put_time(object, "expires", grant->expires_us);
    json_put_integer(object, "remaining_ms", grant->remaining_ms);
    json_put(object, "expired", json_boolean(grant->remaining_ms < 0));
    json_put_integer(object, "ttl_ms", grant->ttl_ms);
    json_put_integer(object, "renewals", grant->renewals);
    return object;
}

json_t *json_of_waiter(const rowlock_waiter *waiter)
{
    json_t *object = must_have(json_object());
    json_put(object, "name", json_of_text(waiter->name));
    put_kind(object, waiter->permits);
    json_put_integer(object, "position", waiter->position);
    json_put_integer(object, "ticket", waiter->ticket);
    json_put(object, "owner", json_of_text(waiter->owner));
    json_put(object, "program", json_of_text(waiter->program));
    json_put_integer(object, "pid", waiter->pid);
    json_put(object, "host", json_of_text(waiter->host));
    json_put(object, "note", json_of_text(waiter->note));
    json_put_time(object, "since", waiter->since_us);
    json_put_integer(object, "waited_ms", waiter->waited_ms);
    json_put_integer(object, "remaining_ms", waiter->remaining_ms);
    json_put(object, "expired", json_boolean(waiter->position == 0));
    return object;
}

static void append(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0)
        must_have(NULL);
}

json_t *json_of_grants(const struct snapshot *snapshot)
{
    json_t *array = must_have(json_array());
    for (size_t i = 0; i < snapshot->grant_count; i++)
        append(array, json_of_grant(&snapshot->grants[i]));
    return array;
}

json_t *json_of_waiters(const struct snapshot *snapshot)
{
    json_t *array = must_have(json_array());
    for (size_t i = 0; i < snapshot->waiter_count; i++)
        append(array, json_of_waiter(&snapshot->waiters[i]));
    return array;
}

json_t *json_answer(const struct cli *cli)
{
    json_t *object = must_have(json_object());
    if (cli->member)
        json_put_integer(object, "member", cli->member);
    return object;
}

void json_print(json_t *value, int compact)
{
    char *text = must_have(json_dumps(value, compact ? 0 : JSON_INDENT(2)));
    puts(text);
    free(text);
    json_decref(value);
}

void json_print_element(json_t *value, int first)
{
    fputs(first ? "[\n  " : ",\n  ", stdout);
    if (json_dumpf(value, stdout, 0) != 0 && !ferror(stdout))
        must_have(NULL);
    json_decref(value);
}

void json_print_end(int empty)
{
    puts(empty ? "[]" : "\n]");
}
