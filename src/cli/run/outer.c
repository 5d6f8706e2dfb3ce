/* SPDX-License-Identifier: MIT
 *
 * ROWLOCK_HELD has one entry for each lock of each run around us: "(name:owner:token)". Name and
 * owner are in hexadecimal digits, so no entry contains another. A token alone is not enough:
 * another database may have granted it too. So we ask our database for the grant.
 */
#include "cli/run/run.h"

#include <stdlib.h>
#include <string.h>

struct outer {
    const struct cli *cli;
    const char *held;
    bool waits_for_itself;
    bool takes_over;
};

/* Our own additions are of no use: `lead` adds a lock in each of its terms. */
static const char *held_around(void)
{
    static bool noted;
    static char *held;
    const char *value = noted ? NULL : getenv("ROWLOCK_HELD");
    if (value)
        held = must_have(strdup(value));
    noted = true;
    return held;
}

static void put_digits(FILE *file, const char *text)
{
    for (; *text; text++)
        fprintf(file, "%02x", (unsigned char)*text);
}

/* Without an owner: the beginning of the entries of that name. */
static void put_entry(FILE *file, const char *name, const char *owner, int64_t token)
{
    fputc('(', file);
    put_digits(file, name);
    fputc(':', file);
    if (owner) {
        put_digits(file, owner);
        fprintf(file, ":%lld)", (long long)token);
    }
}

/* The text after the entry, or after the beginning of one, at or behind at. NULL: there is none. */
static const char *past_entry(const char *at, const char *name, const char *owner, int64_t token)
{
    char *entry;
    size_t size;
    FILE *file = open_text(&entry, &size);
    put_entry(file, name, owner, token);
    closed_text(file, &entry);
    const char *found = strstr(at, entry);
    free(entry);
    return found ? found + size : NULL;
}

static int look_at_grant(void *context, const rowlock_grant *grant)
{
    struct outer *outer = context;
    if (grant->remaining_ms < 0 ||
        !past_entry(outer->held, grant->name, grant->owner, grant->token))
        return 0;
    bool together = grant->permits != 0 && grant->permits == asked_permits();
    outer->takes_over = asked.owner && strcmp(asked.owner, grant->owner) == 0;
    outer->waits_for_itself = !asked.nonblock && !together;
    return outer->takes_over || outer->waits_for_itself;
}

static bool holds(const struct cli *cli, const char *name, const char *owner, int64_t token)
{
    rowlock_lock *lock = NULL;
    bool held = rowlock_lock_attach(cli->db, name, owner, token, &lock) == ROWLOCK_OK &&
                rowlock_verify(lock) == ROWLOCK_OK;
    rowlock_lock_close(lock);
    return held;
}

/* The rest of an entry: "owner:token)". */
static bool read_entry(const char *rest, char *owner, size_t size, int64_t *token)
{
    size_t digits = strspn(rest, "0123456789abcdef");
    if (rest[digits] != ':' || digits / 2 >= size)
        return false;
    for (size_t i = 0; i < digits / 2; i++) {
        char byte[] = {rest[2 * i], rest[2 * i + 1], '\0'};
        owner[i] = (char)strtol(byte, NULL, 16);
    }
    owner[digits / 2] = '\0';
    char *end = NULL;
    *token = strtoll(rest + digits + 1, &end, 10);
    return *end == ')';
}

/* The member that a list reads may lack the row. */
static int ask_majority(struct outer *outer, const char *name)
{
    for (const char *at = outer->held; (at = past_entry(at, name, NULL, 0));) {
        char owner[256];
        int64_t token;
        if (!read_entry(at, owner, sizeof owner, &token) || !holds(outer->cli, name, owner, token))
            continue;
        outer->takes_over = asked.owner && strcmp(asked.owner, owner) == 0;
        outer->waits_for_itself = !asked.nonblock;
    }
    return ROWLOCK_OK;
}

static bool refuses(struct outer *outer, const char *name)
{
    if (!past_entry(outer->held, name, NULL, 0))
        return false;
    int result = is_quorum(outer->cli) ? ask_majority(outer, name)
                                       : rowlock_list(outer->cli->db, name, look_at_grant, outer);
    return result == ROWLOCK_OK && (outer->takes_over || outer->waits_for_itself);
}

int outer_refuses(const struct cli *cli)
{
    struct outer outer = {.cli = cli, .held = held_around()};
    for (int i = 0; outer.held && i < cli->name_count; i++) {
        if (!refuses(&outer, cli->arguments[i]))
            continue;
        complain("%s '%s': a run around this command holds it%s", cli->command->name,
                 cli->arguments[i],
                 outer.takes_over ? " and would lose it to the same owner; give another --owner"
                                  : ", so this wait would never end; give -n, or another name");
        return EXIT_USAGE;
    }
    return EXIT_FINE;
}

/* ---------------------------------------------------------------- for the job */

char *lines_of_locks(const struct cli *cli, bool tokens)
{
    char *text;
    size_t size;
    FILE *file = open_text(&text, &size);
    for (int i = 0; i < cli->lock_count; i++) {
        fputs(i ? "\n" : "", file);
        if (tokens)
            fprintf(file, "%lld", (long long)rowlock_lock_token(cli->locks[i]));
        else
            fputs(rowlock_lock_name(cli->locks[i]), file);
    }
    return closed_text(file, &text);
}

static char *held_with_ours(const struct cli *cli)
{
    char *text;
    size_t size;
    FILE *file = open_text(&text, &size);
    fputs(held_around() ? held_around() : "", file);
    for (int i = 0; i < cli->lock_count; i++)
        put_entry(file, rowlock_lock_name(cli->locks[i]), rowlock_lock_owner(cli->locks[i]),
                  rowlock_lock_token(cli->locks[i]));
    return closed_text(file, &text);
}

void set_environment(const struct cli *cli)
{
    int64_t end_us = INT64_MAX;
    for (int i = 0; i < cli->lock_count; i++)
        end_us = at_most(rowlock_lock_expires_us(cli->locks[i]), end_us);
    set_and_free("ROWLOCK_NAME", lines_of_locks(cli, false));
    set_and_free("ROWLOCK_TOKEN", lines_of_locks(cli, true));
    set_and_free("ROWLOCK_OWNER", new_text("%s", rowlock_lock_owner(cli->locks[0])));
    set_and_free("ROWLOCK_EXPIRES_AT",
                 new_text("%lld.%06d", (long long)(end_us / 1000000), (int)(end_us % 1000000)));
    if (asked.every_ms)
        set_and_free("ROWLOCK_PERIOD", new_text("%s", asked.once));
    period_restore_zone();
    set_and_free("ROWLOCK_HELD", held_with_ours(cli));
}
