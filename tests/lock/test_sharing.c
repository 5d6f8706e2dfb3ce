/* SPDX-License-Identifier: MIT
 *
 * Shared and counted grants where no server can be made to answer so: a downgrade whose answer is lost, a
 * grant of unknown kind, guards, and long lines as administrators see them. The rest is in shared.c and
 * counted.c.
 */
#include "quick.h"
#include "story.h"
#include "tap.h"

#include <string.h>

enum { TTL_MS = 600, THIRD_MS = 200 };

static void holding_for(int32_t permits)
{
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.ttl_ms = TTL_MS;
    options.permits = permits;
    jumping();
    if (rowlock_acquire(story.lock, &options) != ROWLOCK_OK || releases(0) != ROWLOCK_OK ||
        rowlock_acquire(story.lock, &options) != ROWLOCK_OK)
        tap_ok(false, "a lock is held at first");
    script.slot_count = 0;
}

/* With token 2. */
static void holding_alone(void)
{
    holding_for(0);
}

static void holding_alone_impatiently(void)
{
    holding_for(0);
    story.db->reconnect_us = 0;
}

/* ---- downgrade */

CALL(first_slot, script.slots[0]);

static const struct story_row downgrading[] = {
    {.begin = holding_alone},
    {"a lock is downgraded in one step", downgrades, ROWLOCK_OK, .calls = "downgrade", .with = 7},
    {"from where it stood", slot_asked, 0},
    {"it is released", releases, ROWLOCK_OK},
    {"from where it stands now", slot_asked, 2},
    {.begin = holding_alone},
    {"a grant that is gone is not looked for elsewhere", downgrades, ROWLOCK_LOST,
     ANSWERS(GONE(DOWNGRADE)), "downgrade", .with = 3},
    {"it is LOST", its_state, ROWLOCK_STATE_LOST},
    {"for good", releases, ROWLOCK_LOST},
    /* The first sending may have been carried out, and then there is nothing where the grant was. */
    {.begin = holding_alone},
    {"a lost answer, and nothing left to do: it stands elsewhere", downgrades, ROWLOCK_OK,
     ANSWERS(LOST(DOWNGRADE), GONE(DOWNGRADE)), "downgrade open meta downgrade verify", .with = 3},
    {"at its token", slot_asked, 2},
    {"and is renewed", renews, ROWLOCK_OK},
    {"there", slot_asked, 2},
    {.begin = holding_alone},
    {"a lost answer, and then it is done", downgrades, ROWLOCK_OK, ANSWERS(LOST(DOWNGRADE)),
     .with = 3},
    {"when it is gone from there it is LOST, and nowhere else", renews, ROWLOCK_LOST,
     ANSWERS(GONE(RENEW)), "renew"},
    {.begin = holding_alone},
    {"nowhere to be found: LOST", downgrades, ROWLOCK_LOST,
     ANSWERS(LOST(DOWNGRADE), GONE(DOWNGRADE), GONE(VERIFY)), .with = 3},
    {.begin = holding_alone_impatiently},
    {"no second answer: not known", downgrades, ROWLOCK_EUNCERTAIN, ANSWERS(LOST(DOWNGRADE)),
     .with = 3},
    {"called again it finds out", downgrades, ROWLOCK_OK, ANSWERS(GONE(DOWNGRADE)), .with = 3},
    {"and the grant is held", its_token, 2},
};

/* The grant has been moved, but the holder has no answer yet. Does the keeper look where it was? It is given
 * the time to. */
static void keeper_looks(enum script_op op)
{
    if (op != OP_DOWNGRADE)
        return;
    script_hook(NULL);
    script_always(OP_RENEW_ALL, ANSWER(.missing = true));
    script_always(OP_VERIFY, ANSWER(.missing = true));
    script_pass_ms(THIRD_MS);
    for (int i = 0; i < 200 && script_count(OP_VERIFY) == 0; i++)
        sleep_ms(1);
    sleep_ms(50);
    script_always(OP_RENEW_ALL, ANSWER(.class = RLK_DONE));
    script_always(OP_VERIFY, ANSWER(.class = RLK_DONE));
}

static void test_downgrade_kept(void)
{
    rowlock_keeper *keeper = NULL;
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    jumping();
    tap_is_int(rowlock_keeper_open(&keeper, "sqlite:script", NULL, NULL), ROWLOCK_OK, "a keeper");
    options.keeper = keeper;
    options.ttl_ms = TTL_MS;
    tap_is_int(rowlock_acquire(story.lock, &options), ROWLOCK_OK, "keeps a lock");
    script_hook(keeper_looks);
    tap_is_int(downgrades(ROWLOCK_SHARED), ROWLOCK_OK, "downgraded, while the keeper renews");
    tap_ok(its_state(0) != ROWLOCK_STATE_LOST, "it is not taken for lost");
    int before = script_count(OP_RENEW_ALL);
    script_pass_ms(THIRD_MS);
    int64_t until = clock_ms() + slow_ms(10000);
    while (script_count(OP_RENEW_ALL) == before && clock_ms() < until)
        sleep_ms(1);
    tap_ok(script_count(OP_RENEW_ALL) > before, "the keeper goes on");
    tap_is_int(script.lease_slot, 1, "where it stands now");
    rowlock_keeper_close(keeper);
    story_end();
}

/* ---- attached: a grant of somebody's, of unknown kind */

static const struct story_row attaching[] = {
    {.begin = attached},
    {"a grant of unknown kind is looked for in both places", renews, ROWLOCK_OK,
     ANSWERS(GONE(RENEW)), "meta renew renew", .with = 5000},
    {"the exclusive one first", first_slot, 0},
    {"then the one of its token", slot_asked, 41},
    {"once it was found it is not looked for anywhere else", renews, ROWLOCK_LOST,
     ANSWERS(GONE(RENEW)), "renew"},
    {.begin = attached},
    {"an exclusive one", renews, ROWLOCK_OK, .with = 5000},
    {"that is gone is so at once, without a look where it cannot be", renews, ROWLOCK_LOST,
     ANSWERS(GONE(RENEW)), "renew"},
    {.begin = attached},
    {"one that is in neither place is LOST after both", renews, ROWLOCK_LOST,
     ANSWERS(GONE(RENEW), GONE(RENEW)), "meta renew renew"},
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
    /* It is there, shared: neither exclusive enough to be downgraded, nor lost. */
    {.begin = attached},
    {"a shared grant of somebody's cannot be downgraded", downgrades, ROWLOCK_EMISUSE,
     ANSWERS(ALWAYS_GONE(DOWNGRADE)), .with = ROWLOCK_SHARED},
    {"and goes on", renews, ROWLOCK_OK, .with = 5000},
    {"where it is", slot_asked, 41},
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
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    opened();
    enter_transaction();
    options.permits = 3;
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_BEHIND));
    tap_is_int(rowlock_tx_acquire(story.lock, story.tx, &options), ROWLOCK_BUSY,
               "others stand in line");
    tap_is_int(error_code(story.tx), 0, "which is no error");
    tap_is_int(rowlock_tx_acquire(story.lock, story.tx, &options), ROWLOCK_OK, "granted");
    tap_is_int(guards(0), ROWLOCK_OK, "and guarded");
    tap_is_int(script.held.slot, 1, "where it stands");
    story_end();
}

/* ---- who waits */

struct crowd {
    int count, wrong;
};

static int count_in_order(void *context, const rowlock_waiter *waiter)
{
    struct crowd *c = context;
    c->count++;
    c->wrong += waiter->place != c->count || waiter->ticket != c->count;
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
    story_end();
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
    story_end();
}

int main(void)
{
    TELL(downgrading);
    test_downgrade_kept();
    TELL(attaching);
    TELL(guarding);
    test_tx_acquire();
    test_long_line();
    test_same_page();
    return tap_done();
}
