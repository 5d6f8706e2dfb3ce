/* SPDX-License-Identifier: MIT
 *
 * What joins the caller's transaction: what each failure means there, that nothing is sent twice, and answers
 * that no test can order from a server. What a transaction promises is in transaction.c, guard.c and fence.c, what a
 * keeper does meanwhile in lock/test_keeper.c. */
#include "backend_script.h"
#include "quick.h"
#include "tap.h"

enum { TTL_MS = 10000 };

static rowlock_db *db, *tx;
static rowlock_lock *lock;

/* A connection inside a transaction, and a lock of another one's. */
static void begin(void)
{
    script_reset();
    db = script_open(NULL);
    tx = script_adopt();
    lock = must_lock(db, "nightly");
    script.inside = true;
}

/* Held with token 2. */
static void begin_holding(void)
{
    begin();
    if (try_lock(lock, TTL_MS) != ROWLOCK_OK || rowlock_release(lock) != ROWLOCK_OK ||
        try_lock(lock, TTL_MS) != ROWLOCK_OK || rowlock_guard(lock, tx) != ROWLOCK_OK)
        tap_ok(false, "a lock is held at first");
    script_calls();
}

static void end(void)
{
    rowlock_lock_close(lock);
    close_dbs(tx, db);
}

/* ---- what all of them have in common */

static int call_guard(void)
{
    return rowlock_guard(lock, tx);
}

static int call_release(void)
{
    return rowlock_tx_release(lock, tx);
}

static int call_acquire(void)
{
    rowlock_forget(lock);
    return rowlock_tx_acquire(lock, tx, NULL);
}

static int call_fence(void)
{
    return rowlock_fence(tx, "bucket", 2);
}

static const struct joining {
    const char *name;
    enum script_op op;
    int (*call)(void);
    const char *calls; /* up to that which fails */
} all[] = {
    {"guard", OP_GUARD, call_guard, "guard"},
    {"release", OP_RELEASE, call_release, "guard release"},
    {"release", OP_GUARD, call_release, "guard"},
    {"acquire", OP_ACQUIRE, call_acquire, "acquire"},
    {"fence", OP_FENCE, call_fence, "fence"},
};

static void fails(const struct joining *j, struct script_answer answer, int result, int over,
                  const char *what)
{
    begin_holding();
    script_next(j->op, answer);
    tap_is_int(j->call(), result, "%s: %s", j->name, what);
    tap_is_str(script_calls(), j->calls, "it is sent once");
    tap_is_int(error_code(tx), result, "the connection's handle has the facts");
    tap_is_int(error_of(tx).transaction_over, over,
               over ? "the transaction is over" : "it can go on");
    script.inside = false;
    end();
}

static void test_failures(void)
{
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const struct joining *j = &all[i];
        fails(j, ANSWER(.class = RLK_CONTENTION, .text = "deadlock", .tx_over = true),
              ROWLOCK_CONFLICT, 1, "a deadlock");
        fails(j, ANSWER(.class = RLK_CONTENTION, .text = "lock timeout"), ROWLOCK_CONFLICT, 0,
              "a lock timeout");
        fails(j, FAILS(RLK_UNCERTAIN), ROWLOCK_ECONN, 1, "an answer that never came");
        fails(j, FAILS(RLK_UNSENT), ROWLOCK_ECONN, 1, "a lost connection");
        fails(j, FAILS(RLK_DENIED), ROWLOCK_EDENIED, 0, "a missing privilege");
        fails(j, ANSWER(.class = RLK_REFUSED, .text = "aborted", .tx_over = true), ROWLOCK_ESERVER,
              1, "an error that ends the transaction");
    }
}

static void test_misuse(void)
{
    begin_holding();
    script.inside = false;
    for (size_t i = 0; i < 4; i++)
        tap_is_int(all[i].call(), ROWLOCK_EMISUSE, "%s wants a transaction", all[i].name);
    tap_is_int(call_fence(), ROWLOCK_OK, "fence does not");
    tap_is_str(script_calls(), "fence", "it alone was sent");
    script.inside = true;
    tap_is_int(rowlock_guard(NULL, tx), ROWLOCK_EMISUSE, "no lock");
    tap_is_int(rowlock_guard(lock, NULL), ROWLOCK_EMISUSE, "no connection");
    tap_is_int(rowlock_fence(NULL, "bucket", 1), ROWLOCK_EMISUSE, "nor for a fence");
    tap_is_str(script_calls(), "", "nothing is sent then");
    end();
}

static void test_first_look(void)
{
    begin();
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is held");
    script_calls();
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_OK, "the first guard of a connection");
    tap_is_str(script_calls(), "meta guard", "looks at the tables");
    tap_is_int(script.where, RLK_INSIDE, "inside the transaction");
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_OK, "the second");
    tap_is_str(script_calls(), "guard", "does not");
    end();
}

/* ---- guard */

/* By the token that the database has. Ours is 2. */
static void test_tokens(void)
{
    static const struct {
        struct script_answer answer;
        int want;
        const char *what;
    } tokens[] = {
        {{.token = 2}, ROWLOCK_OK, "the token is ours"},
        {{.token = 1}, ROWLOCK_CONFLICT, "lower than ours: an old snapshot"},
        {{.token = 3}, ROWLOCK_LOST, "higher than ours: another's"},
        {{.missing = true}, ROWLOCK_LOST, "no token at all: swept"},
    };
    begin_holding();
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        script_next(OP_GUARD, tokens[i].answer);
        tap_is_int(rowlock_guard(lock, tx), tokens[i].want, "guard: %s", tokens[i].what);
        tap_is_str(script_calls(), "guard", "in one step");
        if (tokens[i].want == ROWLOCK_OK)
            continue;
        tap_is_int(error_code(tx), tokens[i].want, "the connection's handle has the facts");
        script_next(OP_GUARD, tokens[i].answer);
        tap_is_int(rowlock_tx_release(lock, tx), tokens[i].want, "release: %s", tokens[i].what);
        tap_is_str(script_calls(), "guard", "nothing is deleted then");
    }
    script.ahead_us += 2 * TTL_MS * 1000;
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_OK,
               "nothing of it is remembered, and a lease that ran out is no obstacle");
    script_next(OP_RENEW, ANSWER(.missing = true));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_LOST, "held and lost");
    script_calls();
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_LOST, "what was lost is LOST to guard");
    tap_is_str(script_calls(), "", "without asking");
    end();
}

/* ---- acquire */

static void test_acquire_fails(void)
{
    for (int again = 0; again < 2; again++) {
        begin();
        script_next(OP_ACQUIRE, FAILS(RLK_UNCERTAIN));
        tap_is_int(rowlock_tx_acquire(lock, tx, NULL), ROWLOCK_ECONN, "an answer that never came");
        tap_is_int(rowlock_lock_token(lock), 0, "leaves nothing held");
        if (again) {
            tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "another acquire");
            tap_ok(script.requests[0] != script.requests[1],
                   "is another attempt: nothing of the transaction stayed");
        }
        script_calls();
        end();
        tap_is_str(script_calls(), again ? "release" : "", "closing has nothing to withdraw");
    }
}

static void test_acquire_keeper(void)
{
    OWNED(keeper) rowlock_keeper *keeper = NULL;
    begin();
    tap_is_int(rowlock_keeper_open("sqlite:script", NULL, &keeper, NULL), ROWLOCK_OK, "a keeper");
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_EMISUSE, "nothing is held");
    script_calls();
    rowlock_acquire_options options = OPTIONS(acquire, .keeper = keeper);
    tap_is_int(rowlock_tx_acquire(lock, tx, &options), ROWLOCK_EINVAL, "no keeper in there");
    tap_is_str(script_calls(), "", "nothing was sent");
    tap_is_int(rowlock_acquire(lock, &options), ROWLOCK_OK, "held with a keeper before");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "released");
    options.keeper = NULL;
    tap_is_int(rowlock_tx_acquire(lock, tx, &options), ROWLOCK_OK, "and then in a transaction");
    end();
}

/* ---- release */

/* The handle does not know whether it was committed. */
static void begin_released(void)
{
    begin_holding();
    tap_is_int(rowlock_tx_release(lock, tx), ROWLOCK_OK, "released in a transaction");
    tap_is_str(script_calls(), "guard release", "guarded first");
    tap_is_int(rowlock_lock_token(lock), 2, "the handle knows the grant still");
}

static void test_release(void)
{
    begin_released();
    script_next(OP_RELEASE, ANSWER(.missing = true));
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "committed: releasing finds it done");
    tap_is_str(script_calls(), "release last", "since nobody was granted it");
    end();
    begin_released();
    script_next(OP_RELEASE, ANSWER(.missing = true));
    script_next(OP_LAST, ANSWER(.token = 3));
    tap_is_int(rowlock_release(lock), ROWLOCK_LOST,
               "if somebody was, the tables do not tell who came first");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_NONE, "but it is over");
    end();
    begin_released();
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "rolled back: it can be renewed");
    script_next(OP_RELEASE, ANSWER(.missing = true));
    tap_is_int(rowlock_release(lock), ROWLOCK_LOST, "from then on a missing row is a lost one");
    end();
    begin_released();
    end();
    tap_is_str(script_calls(), "release", "closing releases, in case it was rolled back");
    begin_released();
    rowlock_forget(lock);
    end();
    tap_is_str(script_calls(), "", "but not what is committed and forgotten");
}

static void test_release_finds_none(void)
{
    begin_holding();
    script_next(OP_RELEASE, ANSWER(.missing = true));
    tap_is_int(rowlock_tx_release(lock, tx), ROWLOCK_LOST, "there is no such row");
    tap_is_int(error_code(tx), ROWLOCK_LOST, "as the connection's handle says");
    tap_is_int(rowlock_lock_token(lock), 2, "which may be an old snapshot's view");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "and was");
    tap_is_int(rowlock_tx_release(lock, tx), ROWLOCK_EMISUSE, "nothing is held now");
    end();
}

/* ---- fence */

static void test_fence(void)
{
    begin();
    tap_is_int(rowlock_fence(tx, "bucket", 5), ROWLOCK_OK, "no newer token was seen");
    tap_is_int(script.where, RLK_EITHER, "in a transaction or not");
    script_next(OP_FENCE, ANSWER(.missing = true));
    tap_is_int(rowlock_fence(tx, "bucket", 4), ROWLOCK_STALE, "a newer one was");
    tap_is_int(error_code(tx), ROWLOCK_STALE, "the handle has the facts");
    script.inside = false;
    script_next(OP_FENCE, FAILS(RLK_CONTENTION));
    script_next(OP_FENCE, FAILS(RLK_UNCERTAIN));
    tap_is_int(rowlock_fence(db, "bucket", 5), ROWLOCK_OK,
               "outside a transaction it is sent again after a lost race or answer");
    tap_is_int(script_count(OP_FENCE), 5, "until it has one");
    end();
}

int main(void)
{
    test_failures();
    test_misuse();
    test_first_look();
    test_tokens();
    test_acquire_fails();
    test_acquire_keeper();
    test_release();
    test_release_finds_none();
    test_fence();
    return tap_done();
}
