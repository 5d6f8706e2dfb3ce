/* SPDX-License-Identifier: MIT
 *
 * What joins the caller's transaction: what each answer means there, for the transaction and for the
 * lock's handle, and that nothing is sent twice. What a keeper does meanwhile is in test_keeper.c.
 */
#include "backend_script.h"
#include "quick.h"
#include "tap.h"

#include <string.h>

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

/* What the last failure on tx said. */
static int transaction_over(void)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db_error(tx, &err);
    return err.transaction_over;
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
    rowlock_lock_forget(lock);
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
    tap_is_int(transaction_over(), over, over ? "the transaction is over" : "it can go on");
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

static void test_after_lost_connection(void)
{
    begin_holding();
    script_next(OP_GUARD, FAILS(RLK_UNCERTAIN));
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_ECONN, "the connection is lost");
    script_calls();
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_ECONN, "it stays lost");
    tap_is_str(script_calls(), "", "and nothing is sent on it");
    tap_is_int(rowlock_verify(lock), ROWLOCK_OK, "the lock's own connection works");
    end();
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
    tap_is_int(rowlock_guard(lock, db), ROWLOCK_EMISUSE, "our own connections have none: guard");
    tap_is_int(rowlock_tx_acquire(lock, db, NULL), ROWLOCK_EMISUSE, "acquire");
    tap_is_int(rowlock_tx_release(lock, db), ROWLOCK_EMISUSE, "release");
    tap_is_int(rowlock_guard(NULL, tx), ROWLOCK_EMISUSE, "no lock");
    tap_is_int(rowlock_guard(lock, NULL), ROWLOCK_EMISUSE, "no connection");
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
    begin();
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is held");
    script_next(OP_META, ANSWER(.identity = "another"));
    script_calls();
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_ESCHEMA, "a connection to another installation");
    tap_is_str(script_calls(), "meta", "is not asked for the lock");
    end();
}

/* ---- guard */

static void test_guard(void)
{
    begin_holding();
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_OK, "the token is ours");
    script_next(OP_GUARD, ANSWER(.token = 1));
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_CONFLICT, "lower than ours: an old snapshot");
    script_next(OP_GUARD, ANSWER(.token = 3));
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_LOST, "higher than ours: another's");
    script_next(OP_GUARD, ANSWER(.missing = true));
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_LOST, "no token at all: swept");
    tap_is_int(error_code(tx), ROWLOCK_LOST, "the connection's handle has the facts");
    tap_is_str(script_calls(), "guard guard guard guard", "each takes one step");
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_OK, "none of it is remembered");
    script.ahead_us += 2 * TTL_MS * 1000;
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_OK, "a lease that ran out is no obstacle");
    end();
}

static void test_guard_nothing(void)
{
    begin();
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_EMISUSE, "what is not held cannot be guarded");
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "held");
    script_next(OP_RENEW, ANSWER(.missing = true));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_LOST, "and lost");
    script_calls();
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_LOST, "what was lost is LOST to guard");
    tap_is_str(script_calls(), "", "without asking");
    end();
}

/* ---- acquire */

static void test_acquire(void)
{
    rowlock_grant holder = ROWLOCK_GRANT_INIT;
    begin();
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .token = 17));
    tap_is_int(rowlock_tx_acquire(lock, tx, NULL), ROWLOCK_BUSY, "held by another: BUSY");
    tap_is_int(rowlock_lock_holder(lock, &holder), ROWLOCK_OK, "who can be named");
    tap_is_int(holder.token, 17, "by token");
    tap_is_int(rowlock_tx_acquire(lock, tx, NULL), ROWLOCK_OK, "granted in a transaction");
    tap_is_int(rowlock_lock_token(lock), 1, "the token is known");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_HELD, "it is HELD");
    tap_is_int(rowlock_tx_acquire(lock, tx, NULL), ROWLOCK_EMISUSE, "it is not entered again");
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_OK, "it can be guarded");
    rowlock_lock_forget(lock);
    script_calls();
    tap_is_int(rowlock_lock_token(lock), 0, "forgotten after a rollback: nothing is held");
    tap_is_int(rowlock_tx_acquire(lock, tx, NULL), ROWLOCK_OK, "granted anew");
    tap_ok(script.attempts[1] != script.attempts[2], "as another attempt");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "committed: it is released as any other");
    end();
    tap_is_str(script_calls(), "acquire release", "and closing sends nothing");
}

static void test_acquire_fails(void)
{
    begin();
    script_next(OP_ACQUIRE, FAILS(RLK_UNCERTAIN));
    tap_is_int(rowlock_tx_acquire(lock, tx, NULL), ROWLOCK_ECONN, "an answer that never came");
    tap_is_int(rowlock_lock_token(lock), 0, "leaves nothing held");
    script_calls();
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "another acquire");
    tap_ok(script.attempts[0] != script.attempts[1],
           "is another attempt: nothing of the transaction stayed");
    end();
    begin();
    script_next(OP_ACQUIRE, FAILS(RLK_UNCERTAIN));
    tap_is_int(rowlock_tx_acquire(lock, tx, NULL), ROWLOCK_ECONN, "an answer that never came");
    script_calls();
    end();
    tap_is_str(script_calls(), "", "closing has nothing to withdraw");
}

static void test_acquire_options(void)
{
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    rowlock_keeper *keeper = NULL;
    begin();
    tap_is_int(rowlock_keeper_open(&keeper, "sqlite:script", NULL, NULL), ROWLOCK_OK, "a keeper");
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_EMISUSE, "nothing is held");
    script_calls();
    options.keeper = keeper;
    tap_is_int(rowlock_tx_acquire(lock, tx, &options), ROWLOCK_EINVAL, "no keeper in there");
    options.keeper = NULL;
    options.wait_ms = 1;
    tap_is_int(rowlock_tx_acquire(lock, tx, &options), ROWLOCK_EINVAL, "and no waiting");
    options.wait_ms = 0;
    options.ttl_ms = 99;
    tap_is_int(rowlock_tx_acquire(lock, tx, &options), ROWLOCK_EINVAL, "a lease as for all");
    tap_is_str(script_calls(), "", "nothing was sent");
    options.ttl_ms = TTL_MS;
    options.keeper = keeper;
    tap_is_int(rowlock_acquire(lock, &options), ROWLOCK_OK, "held with a keeper before");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "released");
    options.keeper = NULL;
    tap_is_int(rowlock_tx_acquire(lock, tx, &options), ROWLOCK_OK, "and then in a transaction");
    end();
    rowlock_keeper_close(keeper);
}

/* ---- release */

static void test_release_committed(void)
{
    begin_holding();
    tap_is_int(rowlock_tx_release(lock, tx), ROWLOCK_OK, "released in a transaction");
    rowlock_lock_forget(lock);
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_NONE, "committed and forgotten");
    end();
    tap_is_str(script_calls(), "guard release", "guarded first; nothing more is sent");
    begin_holding();
    tap_is_int(rowlock_tx_release(lock, tx), ROWLOCK_OK, "released in a transaction");
    script_calls();
    script_next(OP_RELEASE, ANSWER(.missing = true));
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "committed: releasing finds it done");
    tap_is_str(script_calls(), "release last", "since nobody was granted it");
    end();
    begin_holding();
    tap_is_int(rowlock_tx_release(lock, tx), ROWLOCK_OK, "released in a transaction");
    script_next(OP_RELEASE, ANSWER(.missing = true));
    script_next(OP_LAST, ANSWER(.token = 3));
    tap_is_int(rowlock_release(lock), ROWLOCK_LOST,
               "if somebody was, the tables do not tell who came first");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_NONE, "but it is over");
    end();
}

static void test_release_rolled_back(void)
{
    begin_holding();
    tap_is_int(rowlock_tx_release(lock, tx), ROWLOCK_OK, "released in a transaction");
    tap_is_int(rowlock_lock_token(lock), 2, "the handle knows the grant still");
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "rolled back: it can be renewed");
    script_next(OP_RELEASE, ANSWER(.missing = true));
    tap_is_int(rowlock_release(lock), ROWLOCK_LOST, "from then on a missing row is a lost one");
    end();
    begin_holding();
    tap_is_int(rowlock_tx_release(lock, tx), ROWLOCK_OK, "released in a transaction");
    script_calls();
    end();
    tap_is_str(script_calls(), "release", "closing releases, in case it was rolled back");
}

static void test_release_refused(void)
{
    begin_holding();
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "entered twice");
    tap_is_int(rowlock_tx_release(lock, tx), ROWLOCK_EMISUSE, "only once is allowed");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "left once");
    script_calls();
    script_next(OP_GUARD, ANSWER(.token = 3));
    tap_is_int(rowlock_tx_release(lock, tx), ROWLOCK_LOST, "another has been granted it");
    script_next(OP_GUARD, ANSWER(.token = 1));
    tap_is_int(rowlock_tx_release(lock, tx), ROWLOCK_CONFLICT, "the snapshot is older than it");
    tap_is_str(script_calls(), "guard guard", "nothing is deleted then");
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
    script_calls();
    tap_is_int(rowlock_fence(db, "bucket", 0), ROWLOCK_EINVAL, "tokens are above nought");
    tap_is_int(rowlock_fence(db, "", 1), ROWLOCK_EINVAL, "a resource has a name");
    tap_is_int(rowlock_fence(db, NULL, 1), ROWLOCK_EINVAL, "always");
    tap_is_int(rowlock_fence(NULL, "bucket", 1), ROWLOCK_EMISUSE, "no handle");
    tap_is_str(script_calls(), "", "none of these was sent");
    script.inside = false;
    script_next(OP_FENCE, FAILS(RLK_CONTENTION));
    script_next(OP_FENCE, FAILS(RLK_UNCERTAIN));
    tap_is_int(rowlock_fence(db, "bucket", 5), ROWLOCK_OK,
               "outside a transaction it is sent again after a lost race or answer");
    tap_is_int(script_count(OP_FENCE), 5, "until it has one");
    end();
}

/* ---- raise */

static void test_raise(void)
{
    int64_t highest = 0;
    begin();
    script.inside = false;
    script_next(OP_RAISE, ANSWER(.token = 1234));
    tap_is_int(rowlock_raise_tokens(db, 1000, &highest), ROWLOCK_OK, "the tokens are raised");
    tap_is_int(highest, 1234, "to what is told");
    tap_is_int(rowlock_raise_tokens(db, 1, NULL), ROWLOCK_OK, "or not");
    script_calls();
    tap_is_int(rowlock_raise_tokens(db, 0, NULL), ROWLOCK_EINVAL, "by one at least");
    tap_is_int(rowlock_raise_tokens(db, INT64_C(1000000000000001), NULL), ROWLOCK_EINVAL,
               "by 10^15 at most");
    tap_is_str(script_calls(), "", "else nothing is sent");
    end();
}

int main(void)
{
    test_failures();
    test_after_lost_connection();
    test_misuse();
    test_first_look();
    test_guard();
    test_guard_nothing();
    test_acquire();
    test_acquire_fails();
    test_acquire_options();
    test_release_committed();
    test_release_rolled_back();
    test_release_refused();
    test_fence();
    test_raise();
    return tap_done();
}
