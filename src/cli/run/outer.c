/* SPDX-License-Identifier: MIT
 *
 * ROWLOCK_HELD has one entry for each lock of each run around us: "(name:owner:token)". Name and
 * owner are in hexadecimal digits, so no entry contains another. A token alone is not enough:
 * another database may have granted it too. So we ask our database for the grant.
 */
#include "cli/run/outer.h"

#include "cli/run/obtain.h"

#include <stdio.h>
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

/* Without an owner: the beginning of the entries of that name. Free it. */
static char *entry_of(const char *name, const char *owner, int64_t token)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = must_have(open_memstream(&text, &size));
    fputc('(', file);
    put_digits(file, name);
    fputc(':', file);
    if (owner) {
        put_digits(file, owner);
        fprintf(file, ":%lld)", (long long)token);
    }
    must_have(fclose(file) == 0 ? text : NULL);
    return text;
}

static bool has(const char *held, const char *name, const char *owner, int64_t token)
{
    char *entry = entry_of(name, owner, token);
    bool found = strstr(held, entry) != NULL;
    free(entry);
    return found;
}

static int look_at_grant(void *context, const rowlock_grant *grant)
{
    struct outer *outer = context;
    const struct settings *set = &outer->cli->set;
    if (grant->remaining_ms < 0 || !has(outer->held, grant->name, grant->owner, grant->token))
        return 0;
    bool together = grant->permits != 0 && grant->permits == grant_permits(outer->cli);
    outer->takes_over = set->owner && strcmp(set->owner, grant->owner) == 0;
    outer->waits_for_itself = !set->nonblock && !together;
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
    const struct settings *set = &outer->cli->set;
    char *begin = entry_of(name, NULL, 0);
    for (const char *at = outer->held; (at = strstr(at, begin)); at++) {
        char owner[256];
        int64_t token;
        if (!read_entry(at + strlen(begin), owner, sizeof(owner), &token) ||
            !holds(outer->cli, name, owner, token))
            continue;
        outer->takes_over = set->owner && strcmp(set->owner, owner) == 0;
        outer->waits_for_itself = !set->nonblock;
    }
    free(begin);
    return ROWLOCK_OK;
}

static bool refuses(struct outer *outer, const char *name)
{
    if (!has(outer->held, name, NULL, 0))
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

void outer_add(const struct cli *cli)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = must_have(open_memstream(&text, &size));
    fputs(held_around() ? held_around() : "", file);
    for (int i = 0; i < cli->lock_count; i++) {
        const rowlock_lock *lock = cli->locks[i];
        char *entry =
            entry_of(rowlock_lock_name(lock), rowlock_lock_owner(lock), rowlock_lock_token(lock));
        fputs(entry, file);
        free(entry);
    }
    must_have(fclose(file) == 0 ? text : NULL);
    must_have(setenv("ROWLOCK_HELD", text, 1) == 0 ? text : NULL);
    free(text);
}
