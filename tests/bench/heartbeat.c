/* SPDX-License-Identifier: MIT
 *
 * Rowlock's side of the heartbeat: the statement that a keeper sends for all leases that are due, sent the way
 * it sends it (src/lock/keeper.c). For this, unlike ours.c, it looks inside. */
#include "bench.h"
#include "core/ask.h"
#include "core/core.h"

struct heartbeat {
    rowlock_db *db;
    struct rlk_lease *leases;
    size_t count, room;
    /* takes one of so many leases, of those it has seen */
    int64_t each, seen;
};

static int take_lease(void *context, const rowlock_grant *grant)
{
    struct heartbeat *b = context;
    if (b->each && b->seen++ % b->each != 0)
        return 0;
    if (b->count == b->room) {
        b->room = 2 * b->room + 1000;
        b->leases = realloc(b->leases, b->room * sizeof *b->leases);
    }
    char *name = strdup(grant->name), *owner = strdup(grant->owner);
    if (!b->leases || !name || !owner)
        die("out of memory");
    b->leases[b->count++] = (struct rlk_lease){.held = {.name = name,
                                                        .slot = grant->permits ? grant->token : 0,
                                                        .owner = owner,
                                                        .token = grant->token},
                                               .ttl_us = LEASE_MS * INT64_C(1000)};
    return 0;
}

static int count_lease(void *context, const rowlock_grant *grant)
{
    ++*(int64_t *)context;
    return 0;
}

static void list(struct heartbeat *b, int (*each)(void *context, const rowlock_grant *grant),
                 void *context)
{
    if (rowlock_list(b->db, NULL, each, context) != ROWLOCK_OK)
        die("cannot list the leases: %s", b->db->error.text);
}

void *ours_heartbeat_open(const struct place *place, int count)
{
    struct heartbeat *b = zeroed(1, sizeof *b);
    int64_t rows = 0;
    b->db = ours_connect(place);
    if (count > 0)
        list(b, count_lease, &rows);
    b->each = count > 0 ? rows / count : 0;
    list(b, take_lease, b);
    return b;
}

void ours_heartbeat_close(void *session)
{
    struct heartbeat *b = session;
    for (size_t i = 0; i < b->count; i++) {
        free((char *)b->leases[i].held.name);
        free((char *)b->leases[i].held.owner);
    }
    free(b->leases);
    rowlock_db_close(b->db);
    free(b);
}

void ours_heartbeat(void *session)
{
    struct heartbeat *b = session;
    struct rlk_renewing renewing = {.leases = b->leases, .count = b->count};
    struct rlk_ask ask = {.step = RLK_STEP_NONE};
    rlk_step_renew_all(&ask, &renewing);
    rlk_action(b->db, "renew leases", NULL);
    if (rlk_ask(b->db, &ask) != ROWLOCK_OK)
        die("%s: %s", b->db->error.action, b->db->error.text);
    for (size_t i = 0; i < b->count; i++)
        if (!b->leases[i].renewed)
            die("'%s' was not renewed", b->leases[i].held.name);
}
