/* SPDX-License-Identifier: MIT
 *
 * Grants and waiters: reads them, and describes them for JSON, and for tables and the screen.
 */
#include "cli/print/print.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- JSON */

static const struct member grant_members[] = {
    {"name", CHARACTERS, offsetof(rowlock_grant, name)},
    {"kind", KIND, offsetof(rowlock_grant, permits)},
    {"owner", CHARACTERS, offsetof(rowlock_grant, owner)},
    {"token", INTEGER, offsetof(rowlock_grant, token)},
    {"program", CHARACTERS, offsetof(rowlock_grant, program)},
    {"pid", INTEGER, offsetof(rowlock_grant, pid)},
    {"host", CHARACTERS, offsetof(rowlock_grant, host)},
    {"note", CHARACTERS, offsetof(rowlock_grant, note)},
    {"acquired", TIME, offsetof(rowlock_grant, acquired_us)},
    {"expires", TIME, offsetof(rowlock_grant, expires_us)},
    {"remaining_ms", INTEGER, offsetof(rowlock_grant, remaining_ms)},
    {"expired", LESS_THAN_0, offsetof(rowlock_grant, remaining_ms)},
    {"ttl_ms", INTEGER, offsetof(rowlock_grant, ttl_ms)},
    {"renewals", INTEGER, offsetof(rowlock_grant, renewals)},
    {.key = NULL},
};

static const struct member waiter_members[] = {
    {"name", CHARACTERS, offsetof(rowlock_waiter, name)},
    {"kind", KIND, offsetof(rowlock_waiter, permits)},
    {"position", SHORT_INTEGER, offsetof(rowlock_waiter, position)},
    {"ticket", INTEGER, offsetof(rowlock_waiter, ticket)},
    {"owner", CHARACTERS, offsetof(rowlock_waiter, owner)},
    {"program", CHARACTERS, offsetof(rowlock_waiter, program)},
    {"pid", INTEGER, offsetof(rowlock_waiter, pid)},
    {"host", CHARACTERS, offsetof(rowlock_waiter, host)},
    {"note", CHARACTERS, offsetof(rowlock_waiter, note)},
    {"since", TIME, offsetof(rowlock_waiter, since_us)},
    {"waited_ms", INTEGER, offsetof(rowlock_waiter, waited_ms)},
    {"remaining_ms", INTEGER, offsetof(rowlock_waiter, remaining_ms)},
    {"expired", IS_0, offsetof(rowlock_waiter, position)},
    {.key = NULL},
};

json_t *json_of_grant(const rowlock_grant *grant)
{
    return json_of(grant_members, grant);
}

json_t *json_of_entry(const struct entry *entry)
{
    return entry->waits ? json_of(waiter_members, &entry->waiter) : json_of_grant(&entry->grant);
}

json_t *json_of_entries(const struct snapshot *s, bool waiters)
{
    json_t *array = must_have(json_array());
    for (size_t i = waiters ? s->grants : 0; i < (waiters ? s->count : s->grants); i++)
        json_append(array, json_of_entry(&s->entries[i]));
    return array;
}

/* ---------------------------------------------------------------- tables and the screen */

static char *position_text(const struct entry *entry, const char *end)
{
    return entry->waiter.position ? new_text("%d%s", entry->waiter.position, end)
                                  : new_text("gone");
}

char *cell_of(const struct entry *entry, enum cell cell, int64_t passed_ms)
{
    int64_t left_ms = OF_ENTRY(entry, remaining_ms) - passed_ms;
    switch (cell) {
    case CELL_NAME:
        return printable(OF_ENTRY(entry, name));
    case CELL_NUMBER:
        return new_text("%lld",
                        (long long)(entry->waits ? entry->waiter.ticket : entry->grant.token));
    case CELL_POSITION:
        return position_text(entry, "");
    case CELL_KIND:
        return new_text("%s", kind_text(OF_ENTRY(entry, permits)).text);
    case CELL_WHO:
        return printable(
            process_text(OF_ENTRY(entry, program), OF_ENTRY(entry, pid), OF_ENTRY(entry, host))
                .text);
    case CELL_SINCE:
        passed_ms += entry->waits ? entry->waiter.waited_ms : grant_age_ms(&entry->grant);
        return new_text("%s", duration_text(passed_ms).text);
    case CELL_LEASE:
        return new_text("%s", lease_text(left_ms).text);
    case CELL_NOTE:
        return printable(OF_ENTRY(entry, note));
    case CELL_STATE:
        return entry->waits ? position_text(entry, ".")
                            : new_text(left_ms < 0 ? "expired" : "holds");
    case CELL_LEFT:
        break;
    }
    return entry->waits
               ? new_text("%s", "")
               : new_text("%s%s", left_ms < 0 ? "-" : "", duration_text(llabs(left_ms)).text);
}

#define COLUMNS 7

struct table entry_table(bool waiters)
{
    static const char *const headings[][COLUMNS] = {
        {"NAME", "TOKEN", "KIND", "HELD BY", "SINCE", "LEASE LEFT", "NOTE"},
        {"NAME", "POSITION", "WANTS", "WAITER", "FOR", "TICKET", "NOTE"}};
    return (struct table){.headings = headings[waiters], .columns = COLUMNS};
}

void table_add_entry(struct table *table, const struct entry *entry)
{
    static const enum cell cells[][COLUMNS] = {
        {CELL_NAME, CELL_NUMBER, CELL_KIND, CELL_WHO, CELL_SINCE, CELL_LEASE, CELL_NOTE},
        {CELL_NAME, CELL_POSITION, CELL_KIND, CELL_WHO, CELL_SINCE, CELL_NUMBER, CELL_NOTE}};
    char **row = table_row(table);
    for (int i = 0; i < COLUMNS; i++)
        row[i] = cell_of(entry, cells[entry->waits][i], 0);
}

/* ---------------------------------------------------------------- reading */

struct listing {
    int (*each)(void *context, const struct entry *entry);
    void *context;
};

static int on_grant(void *context, const rowlock_grant *grant)
{
    const struct listing *listing = context;
    return listing->each(listing->context, &(struct entry){.grant = *grant});
}

static int on_waiter(void *context, const rowlock_waiter *waiter)
{
    const struct listing *listing = context;
    return listing->each(listing->context, &(struct entry){.waits = true, .waiter = *waiter});
}

int list_entries(rowlock_db *db, const char *name, bool waiters,
                 int (*each)(void *context, const struct entry *entry), void *context)
{
    struct listing listing = {each, context};
    return waiters ? rowlock_list_waiters(db, name, on_waiter, &listing)
                   : rowlock_list(db, name, on_grant, &listing);
}

static int collect(void *context, const struct entry *entry)
{
    struct snapshot *s = context;
    s->entries = must_have(realloc(s->entries, (s->count + 1) * sizeof *s->entries));
    s->entries[s->count++] = *entry;
    s->grants += !entry->waits;
    s->held += !entry->waits && entry->grant.remaining_ms >= 0;
    s->waiting += entry->waits && entry->waiter.position > 0;
    return 0;
}

int snapshot_take(struct snapshot *snapshot, rowlock_db *db, const char *name)
{
    int result = list_entries(db, name, false, collect, snapshot);
    if (result == ROWLOCK_OK)
        result = list_entries(db, name, true, collect, snapshot);
    snapshot->taken_ms = now_ms();
    return result;
}

void snapshot_free(struct snapshot *snapshot)
{
    free(snapshot->entries);
    *snapshot = (struct snapshot){0};
}
