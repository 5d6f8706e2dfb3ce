/* SPDX-License-Identifier: MIT
 *
 * What joins the caller's transaction: what each failure means there, that nothing is sent twice, and answers
 * that no test can order from a server. What a transaction promises is in transaction.c, guard.c and fence.c, what a
 * keeper does meanwhile in lock/test_keeper.c. */
#include "story.h"

enum { TTL_MS = STORY_TTL_MS };

/* A connection inside a transaction, and a lock of another one's. */
static void inside(void)
{
    opened();
    enter_transaction();
}

/* Held with token 2. */
static void inside_holding(void)
{
    inside();
    if (acquires(TTL_MS) != ROWLOCK_OK || releases(0) != ROWLOCK_OK ||
        acquires(TTL_MS) != ROWLOCK_OK || guards(0) != ROWLOCK_OK)
        tap_ok(false, "a lock is held at first");
    script_calls();
}

/* ---- what all of them have in common */

CALL(acquires_in_tx, rowlock_tx_acquire(story.lock, story.tx, NULL));
CALL(acquires_anew, (rowlock_forget(story.lock), acquires_in_tx(0)));
CALL(fences, rowlock_fence(story.tx, "bucket", with));
CALL(fences_outside, rowlock_fence(story.db, "bucket", with));
CALL(error_of_tx, error_code(story.tx));
CALL(where_asked, script.where);

static const struct joining {
    const char *name;
    enum script_op op;
    int64_t (*call)(int64_t with);
    const char *calls; /* up to that which fails */
} all[] = {
    {"guard", OP_GUARD, guards, "guard"},
    {"release", OP_RELEASE, releases_in_tx, "guard release"},
    {"release", OP_GUARD, releases_in_tx, "guard"},
    {"acquire", OP_ACQUIRE, acquires_anew, "acquire"},
    {"fence", OP_FENCE, fences, "fence"},
};

static void test_failures(const struct joining *j)
{
    static const struct {
        struct script_answer answer;
        int result, over;
        const char *what;
    } rows[] = {
        {{.class = RLK_CONTENTION, .text = "deadlock", .tx_over = true},
         ROWLOCK_CONFLICT,
         1,
         "a deadlock"},
        {{.class = RLK_CONTENTION, .text = "lock timeout"}, ROWLOCK_CONFLICT, 0, "a lock timeout"},
        {{STORY_FAILURE(UNCERTAIN)}, ROWLOCK_ECONN, 1, "an answer that never came"},
        {{STORY_FAILURE(UNSENT)}, ROWLOCK_ECONN, 1, "a lost connection"},
        {{STORY_FAILURE(DENIED)}, ROWLOCK_EDENIED, 0, "a missing privilege"},
        {{.class = RLK_REFUSED, .text = "aborted", .tx_over = true},
         ROWLOCK_ESERVER,
         1,
         "an error that ends the transaction"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        inside_holding();
        script_next(j->op, rows[i].answer);
        tap_is_int(j->call(2), rows[i].result, "%s: %s", j->name, rows[i].what);
        tap_is_str(script_calls(), j->calls, "it is sent once");
        tap_is_int(error_of_tx(0), rows[i].result, "the connection's handle has the facts");
        tap_is_int(error_of(story.tx).transaction_over, rows[i].over,
                   rows[i].over ? "the transaction is over" : "it can go on");
    }
}

static void test_misuse(void)
{
    inside_holding();
    script.inside = false;
    for (size_t i = 0; i < 4; i++)
        tap_is_int(all[i].call(0), ROWLOCK_EMISUSE, "%s wants a transaction", all[i].name);
    tap_is_int(fences(2), ROWLOCK_OK, "fence does not");
    tap_is_str(script_calls(), "fence", "it alone was sent");
    script.inside = true;
    tap_is_int(rowlock_guard(NULL, story.tx), ROWLOCK_EMISUSE, "no lock");
    tap_is_int(rowlock_guard(story.lock, NULL), ROWLOCK_EMISUSE, "no connection");
    tap_is_int(rowlock_fence(NULL, "bucket", 1), ROWLOCK_EMISUSE, "nor for a fence");
    tap_is_str(script_calls(), "", "nothing is sent then");
}

/* ---- guard */

/* By the token that the database has. Ours is 2. */
static const struct story_row guarding[] = {
    {.begin = inside},
    {"a lock is held", acquires, ROWLOCK_OK, .with = TTL_MS},
    {"the first guard of a connection looks at the tables", guards, ROWLOCK_OK,
     .calls = "meta guard"},
    {"inside the transaction", where_asked, RLK_INSIDE},
    {"the second does not", guards, ROWLOCK_OK, .calls = "guard"},
    {.begin = inside_holding},
    {"guard: the token is ours", guards, ROWLOCK_OK, ANSWERS(SAYS(GUARD, .token = 2)), "guard"},
    {"guard: lower than ours: an old snapshot", guards, ROWLOCK_CONFLICT,
     ANSWERS(SAYS(GUARD, .token = 1)), "guard"},
    {"the connection's handle has the facts", error_of_tx, ROWLOCK_CONFLICT},
    {"release: lower than ours: an old snapshot. Nothing is deleted then", releases_in_tx,
     ROWLOCK_CONFLICT, ANSWERS(SAYS(GUARD, .token = 1)), "guard"},
    {"guard: higher than ours: another's", guards, ROWLOCK_LOST, ANSWERS(SAYS(GUARD, .token = 3)),
     "guard"},
    {"the connection's handle has the facts", error_of_tx, ROWLOCK_LOST},
    {"release: higher than ours: another's. Nothing is deleted then", releases_in_tx, ROWLOCK_LOST,
     ANSWERS(SAYS(GUARD, .token = 3)), "guard"},
    {"guard: no token at all: swept", guards, ROWLOCK_LOST, ANSWERS(GONE(GUARD)), "guard"},
    {"the connection's handle has the facts", error_of_tx, ROWLOCK_LOST},
    {"release: no token at all: swept. Nothing is deleted then", releases_in_tx, ROWLOCK_LOST,
     ANSWERS(GONE(GUARD)), "guard"},
    {"nothing of it is remembered, and a lease that ran out is no obstacle", guards, ROWLOCK_OK,
     .after_ms = 2 * TTL_MS},
    {"held and lost", renews, ROWLOCK_LOST, ANSWERS(GONE(RENEW))},
    {"what was lost is LOST to guard, without asking", guards, ROWLOCK_LOST, .calls = ""},
};

/* ---- acquire */

static const struct story_row acquiring[] = {
    {.begin = inside},
    {"an answer that never came", acquires_in_tx, ROWLOCK_ECONN, ANSWERS(LOST(ACQUIRE))},
    {"leaves nothing held", its_token, 0},
    {"closing has nothing to withdraw", closes, 0, .calls = ""},
    {.begin = inside},
    {"an answer that never came", acquires_in_tx, ROWLOCK_ECONN, ANSWERS(LOST(ACQUIRE))},
    {"another acquire", acquires, ROWLOCK_OK, .with = TTL_MS},
    {"is another attempt: nothing of the transaction stayed", new_requests, 1},
    {"closing has nothing to withdraw", closes, 0, .calls = "release"},
};

static void test_acquire_keeper(void)
{
    inside();
    tap_is_int(open_keeper_at("sqlite:script", NULL, &story.keeper, NULL), ROWLOCK_OK, "a keeper");
    tap_is_int(guards(0), ROWLOCK_EMISUSE, "nothing is held");
    script_calls();
    rowlock_acquire_options options = *OPTIONS(acquire, .keeper = story.keeper);
    tap_is_int(rowlock_tx_acquire(story.lock, story.tx, &options), ROWLOCK_EINVAL,
               "no keeper in there");
    tap_is_str(script_calls(), "", "nothing was sent");
    tap_is_int(rowlock_acquire(story.lock, &options), ROWLOCK_OK, "held with a keeper before");
    tap_is_int(releases(0), ROWLOCK_OK, "released");
    tap_is_int(acquires_in_tx(0), ROWLOCK_OK, "and then in a transaction");
}

/* ---- release */

/* The handle does not know whether it was committed. */
static void released_inside(void)
{
    inside_holding();
    if (releases_in_tx(0) != ROWLOCK_OK)
        tap_ok(false, "a lock is released in a transaction at first");
}

static const struct story_row releasing[] = {
    {.begin = inside_holding},
    {"released in a transaction, guarded first", releases_in_tx, ROWLOCK_OK,
     .calls = "guard release"},
    {"the handle knows the grant still", its_token, 2},
    {"committed: releasing finds it done, since no client was granted it", releases, ROWLOCK_OK,
     ANSWERS(GONE(RELEASE)), "release last"},
    {.begin = released_inside},
    {"if one was, the tables do not tell which came first", releases, ROWLOCK_LOST,
     ANSWERS(GONE(RELEASE), SAYS(LAST, .token = 3))},
    {"but it is over", its_state, ROWLOCK_STATE_NONE},
    {.begin = released_inside},
    {"rolled back: it can be renewed", renews, ROWLOCK_OK},
    {"from then on a missing row is a lost one", releases, ROWLOCK_LOST, ANSWERS(GONE(RELEASE))},
    {.begin = released_inside},
    {"closing releases, in case it was rolled back", closes, 0, .calls = "release"},
    {.begin = released_inside},
    {"committed and forgotten", forgets, 0},
    {"closing does not release that", closes, 0, .calls = ""},
    {.begin = inside_holding},
    {"there is no such row", releases_in_tx, ROWLOCK_LOST, ANSWERS(GONE(RELEASE))},
    {"as the connection's handle says", error_of_tx, ROWLOCK_LOST},
    {"which may be an old snapshot's view", its_token, 2},
    {"and was", releases, ROWLOCK_OK},
    {"nothing is held now", releases_in_tx, ROWLOCK_EMISUSE},
};

/* ---- fence */

CALL(leaves_transaction, script.inside = false);
CALL(fences_sent, script_count(OP_FENCE));

static const struct story_row fencing[] = {
    {.begin = inside},
    {"no newer token was seen", fences, ROWLOCK_OK, .with = 5},
    {"in a transaction or not", where_asked, RLK_EITHER},
    {"a newer one was", fences, ROWLOCK_STALE, ANSWERS(GONE(FENCE)), .with = 4},
    {"the handle has the facts", error_of_tx, ROWLOCK_STALE},
    {"the transaction ends", leaves_transaction, 0},
    {"outside a transaction it is sent again after a lost race or answer", fences_outside,
     ROWLOCK_OK, ANSWERS(FAILED(FENCE, CONTENTION), LOST(FENCE)), .with = 5},
    {"until it has one", fences_sent, 5},
};

int main(void)
{
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        test_failures(&all[i]);
    test_misuse();
    TELL(guarding);
    TELL(acquiring);
    test_acquire_keeper();
    TELL(releasing);
    TELL(fencing);
    return tap_done();
}
