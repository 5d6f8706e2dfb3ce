/* SPDX-License-Identifier: MIT
 *
 * The states of a lock where no server can be made to answer so: how long a lease lasts by our clock, grants
 * that come too late, what an entry finds. The rest is in basics.c and leases.c, what is sent again in
 * test_resending.c, waiting in test_wait.c. */
#include "story.h"

#include <limits.h>

enum { TTL_MS = STORY_TTL_MS };

/* ---- what our clock makes of it */

static void frozen_impatient(void)
{
    frozen_holding();
    story.db->reconnect_us = 0;
}

static const struct story_row leases[] = {
    {.begin = frozen},
    {"a grant that took three seconds to answer", acquires, ROWLOCK_OK,
     ANSWERS(SAYS(ACQUIRE, .takes_us = 3000000)), .with = TTL_MS},
    {"has a lease that is counted from before it was asked for", remaining_ms, TTL_MS - 3000},
    {"a millisecond is left", remaining_ms, 1, .after_ms = TTL_MS - 3001},
    {"it never goes below nought", remaining_ms, 0, .after_ms = 1000},
    {"the token of a lapsed grant is still told", its_token, 1},
    {.begin = frozen},
    {"our own grant, found again after a while", acquires, ROWLOCK_OK,
     ANSWERS(SAYS(ACQUIRE, .left_us = 4000000)), .with = TTL_MS},
    {"has what is left of its lease", remaining_ms, 4000},
    {.begin = frozen_impatient},
    {"nothing is held", releases, ROWLOCK_OK},
    {"an acquire whose grant is not known", acquires, ROWLOCK_EUNCERTAIN,
     ANSWERS(FAILED(ACQUIRE, UNCERTAIN)), .with = TTL_MS},
    {"finds that grant when it asks for a shorter lease", acquires, ROWLOCK_OK,
     ANSWERS(SAYS(ACQUIRE, .ttl_us = TTL_MS * 1000)), .with = TTL_MS / 4},
    {"and has the shorter one", remaining_ms, TTL_MS / 4},
    {.begin = frozen_holding},
    {"a renewal that took two seconds", renews, ROWLOCK_OK,
     ANSWERS(SAYS(RENEW, .takes_us = 2000000)), .with = TTL_MS},
    {"counts from before it was asked for", remaining_ms, TTL_MS - 2000},
    {.begin = frozen_holding},
    {"a renewal that is refused", renews, ROWLOCK_EDENIED, ANSWERS(FAILED(RENEW, DENIED)),
     .with = 60000, .after_ms = 1000},
    {"leaves the lease as it was", remaining_ms, TTL_MS - 1000},
    {.begin = frozen_impatient},
    {"a longer lease, the answer lost", renews, ROWLOCK_EUNCERTAIN,
     ANSWERS(SAYS(RENEW, .class = RLK_UNCERTAIN, .takes_us = 300000)), .with = 60000},
    {"is not counted upon", remaining_ms, TTL_MS - 300},
    {"a shorter lease, the answer lost", renews, ROWLOCK_EUNCERTAIN,
     ANSWERS(SAYS(RENEW, .class = RLK_UNCERTAIN, .takes_us = 300000)), .with = 2000},
    {"is taken for given", remaining_ms, 2000 - 300},
};

/* Sent twice: what counts is the second attempt, whose answer it is. */
static void test_slow_resending(void)
{
    opened();
    story.db->reconnect_us = 10000000;
    script_next(OP_ACQUIRE, ANSWER(.class = RLK_UNCERTAIN, .takes_us = 2000000));
    script_next(OP_ACQUIRE, ANSWER(.takes_us = 1000000, .left_us = 7500000));
    tap_is_int(acquires(TTL_MS), ROWLOCK_OK, "a grant whose first answer was lost");
    int64_t left = remaining_ms(0);
    tap_ok(left <= TTL_MS && left > TTL_MS - slow_ms(400),
           "is renewed, and its lease is what that answer said: %d", (int)left);
}

/* ---- a grant that comes when its lease is over */

CALL(token_asked, script.held.token);

static void impatient(void)
{
    frozen();
    story.db->reconnect_us = 0;
}

#define TOO_LATE SAYS(ACQUIRE, .takes_us = (TTL_MS + 1) * 1000)
static const struct story_row late_grants[] = {
    {.begin = frozen},
    {"a grant whose lease ended on its way is OK, since it is renewed at once", acquires,
     ROWLOCK_OK, ANSWERS(TOO_LATE, SAYS(RENEW, .lapsed_us = 1000)), "meta acquire renew",
     .with = TTL_MS},
    {"and has all of its lease", remaining_ms, TTL_MS},
    {"the renewal is of that grant", token_asked, 1},
    {"it was entered once", releases, ROWLOCK_OK},
    {"and no more", releases, ROWLOCK_EMISUSE},
    {.begin = frozen},
    {"a grant whose lease ended on its way, and that another took over, is BUSY", acquires,
     ROWLOCK_BUSY, ANSWERS(TOO_LATE, GONE(RENEW)), .with = TTL_MS},
    {"as the handle says", error_kept, ROWLOCK_BUSY},
    {"nothing is held", its_token, 0},
    {"so nothing can be released", releases, ROWLOCK_EMISUSE},
    {"the handle can acquire again", acquires, ROWLOCK_OK, .with = TTL_MS},
    {.begin = impatient},
    {"a grant whose lease ended on its way, and that cannot be renewed, is a failure", acquires,
     ROWLOCK_ECONN, ANSWERS(TOO_LATE, FAILED(RENEW, UNSENT)), .with = TTL_MS},
    {"nothing is held then", its_token, 0},
    {"so nothing can be released", releases, ROWLOCK_EMISUSE},
    {"the next acquire is granted", acquires, ROWLOCK_OK, .with = TTL_MS},
    {"for the same request", new_requests, 0},
    {"it was entered once", releases, ROWLOCK_OK},
    {"and no more", releases, ROWLOCK_EMISUSE},
};

/* ---- entering again */

CALL(lease_asked_ms, script.renew_ttl_us / 1000);

static void lapsed(void)
{
    frozen_holding();
    script_pass_ms(TTL_MS);
}

static const struct story_row entries[] = {
    {.begin = lapsed},
    {"entering a lapsed grant renews it", acquires, ROWLOCK_LAPSED,
     ANSWERS(SAYS(RENEW, .lapsed_us = 5)), .with = 60000},
    {"for as long as it was granted for", lease_asked_ms, TTL_MS},
    {"so that all of its lease remains", remaining_ms, TTL_MS},
    {.begin = lapsed},
    {"where the database's clock says that an entry was in time, it was", acquires, ROWLOCK_OK,
     .with = TTL_MS},
    {.begin = lapsed},
    {"entering a grant that is gone is LOST", acquires, ROWLOCK_LOST, ANSWERS(GONE(RENEW)),
     .with = TTL_MS},
    {"that entry does not count: one release", releases, ROWLOCK_LOST},
    {"is all that was due", releases, ROWLOCK_EMISUSE},
    {.begin = lapsed},
    {"entering a lapsed grant may fail", acquires, ROWLOCK_ESERVER, ANSWERS(FAILED(RENEW, REFUSED)),
     .with = TTL_MS},
    {"that entry does not count: one release", releases, ROWLOCK_OK},
    {"is all that was due", releases, ROWLOCK_EMISUSE},
    {.begin = frozen_holding},
    {"a held lock is entered again without a round trip", acquires, ROWLOCK_OK, .calls = "",
     .with = TTL_MS},
    {"the grant is gone", renews, ROWLOCK_LOST, ANSWERS(GONE(RENEW))},
    {"the error kept says so", error_kept, ROWLOCK_LOST},
    {"no time remains", remaining_ms, 0},
    {"there is no token to show", its_token, 0},
    {"without asking anybody it stays lost to renew", renews, ROWLOCK_LOST, .calls = ""},
    {"to verify", verifies, ROWLOCK_LOST, .calls = ""},
    {"to acquire", acquires, ROWLOCK_LOST, .calls = ""},
    {"to each release that is due", releases, ROWLOCK_LOST, .calls = ""},
    {"of which there are two", releases, ROWLOCK_LOST, .calls = ""},
    {"then no more is due", releases, ROWLOCK_EMISUSE},
    {"and the lock can be acquired anew", acquires, ROWLOCK_OK, .with = TTL_MS},
    {"as another grant", its_token, 2},
    {"which is lost too", renews, ROWLOCK_LOST, ANSWERS(GONE(RENEW))},
    {"closing what is lost sends nothing", closes, 0, .calls = ""},
    {"nor does closing what is not held", closes, 0, .calls = ""},
};

static void test_entering_too_often(void)
{
    frozen_holding();
    story.lock->depth = INT_MAX;
    tap_is_int(acquires(TTL_MS), ROWLOCK_EMISUSE, "the count of entries does not overflow");
    story.lock->depth = 1;
}

/* ---- the holder */

static const struct story_row holders[] = {
    {.begin = frozen},
    {"a lock is being granted or released", acquires, ROWLOCK_BUSY,
     ANSWERS(SAYS(ACQUIRE, .outcome = RLK_IN_FLIGHT)), "meta acquire"},
    {"to no holder that can be named", holder_known, ROWLOCK_NONE},
    {"a rival holds it, which takes one step and no ticket", acquires, ROWLOCK_BUSY,
     ANSWERS(SAYS(ACQUIRE, .outcome = RLK_HELD, .token = 9)), "acquire"},
    {"which can be named", holder_known, ROWLOCK_OK},
    {"others stand in line for it", acquires, ROWLOCK_BUSY,
     ANSWERS(SAYS(ACQUIRE, .outcome = RLK_BEHIND))},
    {"none of which is its holder", holder_known, ROWLOCK_NONE},
};

int main(void)
{
    TELL(leases);
    test_slow_resending();
    TELL(late_grants);
    TELL(entries);
    test_entering_too_often();
    TELL(holders);
    return tap_done();
}
