/* SPDX-License-Identifier: MIT
 *
 * Shared and counted grants where no server can be made to answer so: a grant of unknown kind, guards, and long lines as administrators see them. The rest is in shared.c and
 * counted.c. */
#include "story.h"

enum { TTL_MS = 600 };

static void holding_for(int32_t permits)
{
    rowlock_acquire_options options = *OPTIONS(acquire, .ttl_ms = TTL_MS, .permits = permits);
    opened();
    if (rowlock_acquire(story.lock, &options) != ROWLOCK_OK || releases(0) != ROWLOCK_OK ||
        rowlock_acquire(story.lock, &options) != ROWLOCK_OK)
        tap_ok(false, "a lock is held at first");
    script.slot_count = 0;
}

/* ---- attached: a grant of another program, of unknown kind */

CALL(first_slot, script.slots[0]);

static const struct story_row attaching[] = {
    {.begin = attached},
    {"a grant of unknown kind is looked for in both places", renews, ROWLOCK_OK,
     ANSWERS(GONE(RENEW)), "meta renew renew", .with = 5000},
    {"the exclusive one first", first_slot, 0},
    {"then the one of its token", slot_asked, 41},
    {"once it was found it is not looked for anywhere else", renews, ROWLOCK_LOST,
     ANSWERS(GONE(RENEW)), "renew verify"},
    {.begin = attached},
    {"an exclusive one", renews, ROWLOCK_OK, .with = 5000},
    {"that is gone is so at once, without a look where it cannot be", renews, ROWLOCK_LOST,
     ANSWERS(GONE(RENEW)), "renew verify"},
    {.begin = attached},
    {"one that is in neither place is LOST after both", renews, ROWLOCK_LOST,
     ANSWERS(GONE(RENEW), GONE(RENEW)), "meta renew renew verify"},
    {.begin = attached},
    {"verifying looks in both places", verifies, ROWLOCK_OK, ANSWERS(GONE(VERIFY)),
     "meta verify verify"},
    {"and finds it in the second", slot_asked, 41},
    {"from where it is released at once", releases, ROWLOCK_OK, .calls = "release"},
    {.begin = attached},
    {"releasing looks in both places, too", releases, ROWLOCK_OK, ANSWERS(GONE(RELEASE)),
     "meta release release"},
    {"and releases it from the second", slot_asked, 41},
    {.begin = attached},
    {"after a lost answer it is in neither place, but the token tells: released", releases,
     ROWLOCK_OK, ANSWERS(LOST(RELEASE), GONE(RELEASE), GONE(RELEASE), SAYS(LAST, .token = 41))},
};

/* ---- in the caller's transaction */

static void shared_in_transaction(void)
{
    holding_for(ROWLOCK_SHARED);
    enter_transaction();
}

static void attached_in_transaction(void)
{
    attached();
    enter_transaction();
}

static const struct story_row guarding[] = {
    {.begin = shared_in_transaction},
    {"a shared grant is guarded", guards, ROWLOCK_OK},
    {"by its own row", slot_asked, 2},
    {"others have been granted it since", guards, ROWLOCK_OK, ANSWERS(SAYS(GUARD, .token = 9))},
    {"its row is gone", guards, ROWLOCK_LOST, ANSWERS(SAYS(GUARD, .token = 9, .fallen = true))},
    {"a snapshot from before the grant", guards, ROWLOCK_CONFLICT,
     ANSWERS(SAYS(GUARD, .token = 1, .fallen = true))},
    {"no token at all", guards, ROWLOCK_LOST, ANSWERS(GONE(GUARD))},
    {"it is released in a transaction, guarded first", releases_in_tx, ROWLOCK_OK,
     .calls = "guard release"},
    {"from where it stands", slot_asked, 2},
    {.begin = attached_in_transaction},
    {"a shared grant of somebody's is guarded though its kind is not known yet", guards, ROWLOCK_OK,
     ANSWERS(ALWAYS_SAYS(GUARD, .token = 45))},
    {"by its own row", slot_asked, 41},
    {"which has to be there", guards, ROWLOCK_LOST,
     ANSWERS(ALWAYS_SAYS(GUARD, .token = 45, .fallen = true))},
};

static void test_tx_acquire(void)
{
    opened();
    enter_transaction();
    rowlock_acquire_options options = *OPTIONS(acquire, .permits = 3);
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_BEHIND));
    tap_is_int(rowlock_tx_acquire(story.lock, story.tx, &options), ROWLOCK_BUSY,
               "others stand in line");
    tap_is_int(error_code(story.tx), ROWLOCK_BUSY, "as the transaction's handle says");
    tap_is_int(rowlock_tx_acquire(story.lock, story.tx, &options), ROWLOCK_OK, "granted");
    tap_is_int(guards(0), ROWLOCK_OK, "and guarded");
    tap_is_int(script.held.slot, 1, "where it stands");
}

/* ---- who waits */

struct crowd {
    int count, wrong;
};

static int count_in_order(void *context, const rowlock_waiter *waiter)
{
    struct crowd *c = context;
    c->count++;
    c->wrong += waiter->position != c->count || waiter->ticket != c->count;
    return c->count > 2000; /* it would go on for ever */
}

static void test_long_line(void)
{
    struct crowd crowd = {0};
    opened();
    script_next(OP_WAITERS, ANSWER(.rows = 500));
    script_next(OP_WAITERS, ANSWER(.class = RLK_CONTENTION, .text = "broke off", .rows = 20));
    script_next(OP_WAITERS, ANSWER(.rows = 13));
    tap_is_int(rowlock_list_waiters(story.db, "crowd", count_in_order, &crowd), ROWLOCK_OK,
               "a line of several pages, one of which broke off");
    tap_is_int(crowd.count, 513, "tells each waiter once");
    tap_is_int(crowd.wrong, 0, "and counts the places through");
    tap_ok(strcmp(script.last_after, "crowd") == 0 && script.last_ticket == 500,
           "each page begins where the last one ended");
}

static void test_same_page(void)
{
    static struct rlk_waiter page[500];
    struct crowd crowd = {0};
    opened();
    for (int i = 0; i < 500; i++)
        page[i] = (struct rlk_waiter){.name = "n", .ticket = i + 1};
    script_always(OP_WAITERS, ANSWER(.waiters = page, .rows = 500));
    tap_is_int(rowlock_list_waiters(story.db, NULL, count_in_order, &crowd), ROWLOCK_ESCHEMA,
               "a full page that comes again and again is an error");
    tap_is_int(crowd.count, 1000, "the second time");
}

int main(void)
{
    TELL(attaching);
    TELL(guarding);
    test_tx_acquire();
    test_long_line();
    test_same_page();
    return tap_done();
}
