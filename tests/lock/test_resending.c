/* SPDX-License-Identifier: MIT
 *
 * What is sent again after a lost race, a lost connection or a lost answer, and what core makes of
 * the second answer. Single answers are in test_answers.c; what a real server makes of it in lost_lock.c.
 */
#include "story.h"

/* ---- acquire */

CALL(answer_lost, error_of(story.db).answer_lost);
CALL(withdrawn, script.withdrawn == script.requests[0]);
CALL(connections_left, script_count(OP_CLOSE));
CALL(request_is_positive, script.requests[0] > 0);

/* Since the last time it was asked. */
static int64_t changes_owner(int64_t unused)
{
    static char before[RLK_TEXT_MAX + 1];
    int64_t changed = strcmp(before, rowlock_lock_owner(story.lock)) != 0;
    snprintf(before, sizeof before, "%s", rowlock_lock_owner(story.lock));
    return changed;
}

static void named(void)
{
    opened_with(OPTIONS(db, .owner = "nightly"));
}

static void never_reconnecting(void)
{
    opened_with(OPTIONS(db, .reconnect_ms = -1));
}

static const struct story_row acquiring[] = {
    {.begin = opened},
    {"two lost races and then a grant, on one connection", acquires, ROWLOCK_OK,
     ANSWERS(FAILED(ACQUIRE, CONTENTION), FAILED(ACQUIRE, CONTENTION)),
     "meta acquire acquire acquire"},
    {"with one request number", new_requests, 0},
    {.begin = opened},
    {"a lost connection is made anew: the tables are looked at again before the step is", acquires,
     ROWLOCK_OK, ANSWERS(FAILED(ACQUIRE, UNSENT)), "meta acquire open meta acquire"},
    {"the request number is the same", new_requests, 0},
    {"request numbers are above nought", request_is_positive, true},
    {"the lost connection is closed", connections_left, 1},
    {.begin = opened},
    {"a lost answer is asked for again, and the grant found is renewed: a standby must confirm it",
     acquires, ROWLOCK_OK, ANSWERS(LOST(ACQUIRE)), "meta acquire open meta acquire renew"},
    {"by one request number, so that the database knows its own grant", new_requests, 0},
    {"its owner", changes_owner, 1},
    {"it is released", releases, ROWLOCK_OK},
    {"acquired again", acquires, ROWLOCK_OK},
    {"with a request number of its own", new_requests, 1},
    {"and a new owner: the first sending may yet arrive, and would replace this grant",
     changes_owner, 1},
    {"released again", releases, ROWLOCK_OK},
    {"and acquired", acquires, ROWLOCK_OK},
    {"the owner stays, as long as no answer is lost", changes_owner, 0},
    {.begin = named},
    {"a lost answer to a request of an owner with a name", acquires, ROWLOCK_OK,
     ANSWERS(LOST(ACQUIRE))},
    {"whose name", changes_owner, 1},
    {"is given back", releases, ROWLOCK_OK},
    {"and acquired again", acquires, ROWLOCK_OK},
    {"keeps its name", changes_owner, 0},
    {.begin = opened},
    {"asked again, the lock is in flight, perhaps by the first sending: it is asked once more",
     acquires, ROWLOCK_OK, ANSWERS(LOST(ACQUIRE), SAYS(ACQUIRE, .outcome = RLK_IN_FLIGHT)),
     "meta acquire open meta acquire acquire renew"},
    {"with the same number, which finds the grant", new_requests, 0},
    {.begin = opened},
    {"an answer that cannot be had again in time leaves acquire uncertain", acquires,
     ROWLOCK_EUNCERTAIN, ANSWERS(LOST(ACQUIRE), ALWAYS_FAILED(OPEN, UNSENT))},
    {"nothing is held as far as we know", its_token, 0},
    {"so nothing can be released", releases, ROWLOCK_EMISUSE},
    {"still no connection", acquires, ROWLOCK_ECONN},
    {"the next acquire gets through", acquires, ROWLOCK_OK, ANSWERS(ALWAYS_DONE(OPEN))},
    {"and asks with the number of the uncertain one, ECONN in between or not", new_requests, 0},
    {"it is released", releases, ROWLOCK_OK},
    {"it is acquired anew", acquires, ROWLOCK_OK},
    {"now with another number", new_requests, 1},
    {.begin = opened},
    {"a lost answer, and the second says that a rival holds it", acquires, ROWLOCK_BUSY,
     ANSWERS(LOST(ACQUIRE), SAYS(ACQUIRE, .outcome = RLK_HELD))},
    {"the next try is granted", acquires, ROWLOCK_OK},
    {"with the same number, since the first sending may still be on its way", new_requests, 0},
    /* Whether the first attempt was carried out is not known. */
    {.begin = opened},
    {"a lost answer and then lost races only: not busy, but uncertain", acquires,
     ROWLOCK_EUNCERTAIN, ANSWERS(LOST(ACQUIRE), ALWAYS_FAILED(ACQUIRE, CONTENTION))},
    {"the next acquire is granted", acquires, ROWLOCK_OK, ANSWERS(ALWAYS_DONE(ACQUIRE))},
    {"the number is still the same", new_requests, 0},
    {.begin = never_reconnecting},
    {"a handle that never reconnects is told at once that the answer is lost", acquires,
     ROWLOCK_EUNCERTAIN, ANSWERS(LOST(ACQUIRE)), "meta acquire"},
    {"the next call makes a new connection, once", acquires, ROWLOCK_OK,
     .calls = "open meta acquire renew"},
    {.begin = adopted},
    {"a lost race on an adopted connection is tried again", acquires, ROWLOCK_OK,
     ANSWERS(FAILED(ACQUIRE, CONTENTION))},
};

/* The grant that may stand in the table is taken back when no call will ask for it any more. */
#define UNKNOWN_OUTCOME ANSWERS(LOST(ACQUIRE), FAILED(OPEN, DENIED))
static const struct story_row withdrawing[] = {
    {.begin = opened},
    {"an acquire of unknown outcome", acquires, ROWLOCK_EUNCERTAIN, UNKNOWN_OUTCOME},
    {"is withdrawn when its handle is closed", closes, 0, .calls = "open meta withdraw"},
    {"by its number", withdrawn, true},
    {"another one", acquires, ROWLOCK_EUNCERTAIN, UNKNOWN_OUTCOME},
    {"which is found out", acquires, ROWLOCK_OK},
    {"is released as any other", closes, 0, .calls = "release"},
    {"a third one", acquires, ROWLOCK_EUNCERTAIN, UNKNOWN_OUTCOME},
    {"is withdrawn when the db is closed", closes_db, 0, .calls = "open meta withdraw"},
};

/* What a reconnect takes is not taken off the time that a try goes on against lost races. */
static void test_slow_reconnect_then_contention(void)
{
    opened();
    script_next(OP_ACQUIRE, FAILS(RLK_UNSENT));
    script_next(OP_OPEN, ANSWER(.takes_us = 2 * SCRIPT_MOMENT_MS * 1000));
    script_next(OP_ACQUIRE, FAILS(RLK_CONTENTION));
    tap_is_int(acquires(0), ROWLOCK_OK,
               "a connection lost, a slow one instead, a lost race: granted all the same");
}

static void test_uncertain_then_refused(void)
{
    static const enum rlk_class then[] = {RLK_DENIED, RLK_SCHEMA, RLK_READONLY, RLK_NOMEM,
                                          RLK_REFUSED};
    for (size_t i = 0; i < sizeof then / sizeof then[0]; i++) {
        opened();
        script_next(OP_ACQUIRE, FAILS(RLK_UNCERTAIN));
        script_next(OP_ACQUIRE, FAILS(then[i]));
        tap_is_int(acquires(0), ROWLOCK_EUNCERTAIN, "a lost answer and then class %d is uncertain",
                   (int)then[i]);
        tap_is_int(error_kept(0), ROWLOCK_EUNCERTAIN, "the error kept says so too");
    }
}

/* ---- bounds */

static void test_reconnect_is_bounded(void)
{
    holding();
    script_always(OP_RENEW, FAILS(RLK_UNSENT));
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    int64_t began_us = rlk_now_us();
    tap_is_int(renews(0), ROWLOCK_ECONN, "a database that is gone is given up");
    int64_t took_us = rlk_now_us() - began_us;
    tap_ok(took_us <= SCRIPT_MOMENT_MS * 1000, "within reconnect_ms: %d us", (int)took_us);
    tap_ok(script_count(OP_OPEN) >= 3 && script_count(OP_OPEN) < 100,
           "after some tries with growing pauses: %d", script_count(OP_OPEN));
    tap_ok(its_token(0) > 0, "the lock is still held, as far as is known");
    script_always(OP_OPEN, ANSWER(.class = RLK_DONE));
    script_always(OP_RENEW, ANSWER(.class = RLK_DONE));
    tap_is_int(renews(0), ROWLOCK_OK, "when the database is back, all goes on");
}

static void test_adopted(void)
{
    adopted();
    tap_is_int(acquires(0), ROWLOCK_OK, "an adopted connection works");
    script_calls();
    script_next(OP_RENEW, FAILS(RLK_UNCERTAIN));
    story.db->reconnect_us = 30 * 1000000;
    int64_t began_us = rlk_now_us();
    tap_is_int(renews(0), ROWLOCK_EUNCERTAIN, "its lost answer is told");
    tap_is_int(renews(0), ROWLOCK_ECONN, "after that it is lost for good");
    tap_is_int(rlk_now_us() - began_us, 0, "which is said at once");
    tap_ok(strstr(why(story.db), "adopt") != NULL, "the text says what to do: %s", why(story.db));
    tap_is_int(releases(0), ROWLOCK_ECONN, "for every call");
    tap_is_str(script_calls(), "renew", "nothing is sent on it, nor is one opened");
    tap_is_int(script_count(OP_CLOSE), 0, "it is not closed before the handle");
}

/* The statement deadline is the handle's, however long a try may go on against contention. */
static void test_long_deadline(void)
{
    opened();
    story.db->statement_us = 60 * 1000000;
    script_always(OP_ACQUIRE, ANSWER(.class = RLK_CONTENTION, .takes_us = 200000));
    int64_t began = rlk_now_us();
    tap_is_int(acquires(0), ROWLOCK_BUSY, "a storm, and a deadline of a minute");
    tap_ok(rlk_now_us() - began < 1500000, "a try gives up after a second all the same");
}

static void test_deadline_of_a_call(void)
{
    frozen();
    script_next(OP_META, ANSWER(.takes_us = 20000));
    tap_is_int(acquires(0), ROWLOCK_OK, "a slow look at the tables");
    tap_is_int(script.deadline_us - rlk_now_us(), SCRIPT_MOMENT_MS * 1000,
               "does not shorten the statement's deadline");
}

/* A call ends within the statement's deadline and the time to reconnect. Something is left for an
 * attempt that begins at the very end. */
static void test_deadline_after_an_outage(void)
{
    static const struct {
        int64_t first_us, left_us;
        const char *name;
    } rows[] = {
        {0, 10000000, "after a connection lost at once, an attempt has its whole time"},
        {10000000, 1000000, "after one lost at the deadline, it has a second"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        opened();
        story.db->statement_us = 10000000;
        story.db->reconnect_us = 5000000;
        script_next(OP_ACQUIRE, ANSWER(.class = RLK_UNSENT, .takes_us = rows[i].first_us));
        script_next(OP_OPEN, ANSWER(.takes_us = 4500000));
        tap_is_int(acquires(0), ROWLOCK_OK, "a connection that is slowly made anew");
        tap_is_int(script.deadline_us - rlk_now_us(), rows[i].left_us, "%s", rows[i].name);
    }
}

/* ---- a server that takes no writes */

static void writing_opened(void)
{
    story_end();
    script_reset();
    script_jump();
    script.takes_writes = true;
    story.db = script_open(NULL);
    story.lock = must_lock(story.db, "nightly");
}

static void writing_adopted(void)
{
    adopted();
    story.db->takes_writes = true;
}

static const struct story_row servers[] = {
    {.begin = writing_opened},
    {"when the server takes no writes any more, another one is looked for", acquires, ROWLOCK_OK,
     ANSWERS(FAILED(ACQUIRE, STANDBY), FAILED(OPEN, STANDBY)),
     "meta acquire open open meta acquire"},
    {"the wrong ones are left", connections_left, 2},
    {.begin = holding},
    {"none lets us in to write", renews, ROWLOCK_EREADONLY,
     ANSWERS(ALWAYS_FAILED(RENEW, STANDBY), ALWAYS_FAILED(OPEN, STANDBY))},
    {"when they are gone it is the connection", renews, ROWLOCK_ECONN,
     ANSWERS(FAILED(OPEN, STANDBY), ALWAYS_FAILED(OPEN, UNSENT))},
    {"when one takes writes, all goes on", renews, ROWLOCK_OK,
     ANSWERS(ALWAYS_DONE(OPEN), ALWAYS_DONE(RENEW))},
    {.begin = holding},
    {"a lost answer stays uncertain when only servers without writes can be asked", renews,
     ROWLOCK_EUNCERTAIN, ANSWERS(LOST(RENEW), ALWAYS_FAILED(OPEN, STANDBY))},
    {"when one takes writes, all goes on", renews, ROWLOCK_OK, ANSWERS(ALWAYS_DONE(OPEN))},
    {.begin = attached},
    {"an attached grant proves that a server took writes", releases, ROWLOCK_OK,
     ANSWERS(FAILED(RELEASE, STANDBY)), "meta release open meta release"},
    {.begin = opened},
    {"a server that was never seen to take writes is told at once", acquires, ROWLOCK_EREADONLY,
     ANSWERS(FAILED(ACQUIRE, STANDBY)), "meta acquire"},
    {"and left, so that the next call finds another one", acquires, ROWLOCK_OK,
     ANSWERS(ALWAYS_DONE(ACQUIRE)), "open meta acquire"},
    {.begin = holding},
    {"a full disk is told at once, and the connection stays", renews, ROWLOCK_EREADONLY,
     ANSWERS(FAILED(RENEW, READONLY)), "renew"},
    {.begin = writing_adopted},
    {"an adopted connection is all that we have: it is told at once", acquires, ROWLOCK_EREADONLY,
     ANSWERS(FAILED(ACQUIRE, STANDBY)), "meta acquire"},
    {"and stays", acquires, ROWLOCK_OK, ANSWERS(ALWAYS_DONE(ACQUIRE)), "acquire"},
};

static void test_no_server_takes_writes(void)
{
    holding();
    script_always(OP_RENEW, FAILS(RLK_STANDBY));
    int64_t began_us = rlk_now_us();
    tap_is_int(renews(0), ROWLOCK_EREADONLY, "when no server takes writes");
    tap_ok(rlk_now_us() - began_us <= SCRIPT_MOMENT_MS * 1000, "that is told within reconnect_ms");
    tap_ok(script_count(OP_OPEN) >= 3, "after some tries: %d", script_count(OP_OPEN));
}

/* ---- the tables after a reconnect */

CALL(text_names_both,
     strstr(why(story.db), "another installation") && strstr(why(story.db), "second"));

static const struct story_row other_tables[] = {
    {.begin = holding},
    {"after a reconnect to another installation nothing is renewed, nor sent at all", renews,
     ROWLOCK_ESCHEMA, ANSWERS(FAILED(RENEW, UNSENT), ALWAYS_SAYS(META, .identity = "second")),
     "renew open meta"},
    {"the text names it", text_names_both, true},
    {"the grant is not called lost", its_token, 1},
    {"on the right one all goes on", renews, ROWLOCK_OK,
     ANSWERS(ALWAYS_SAYS(META, .identity = "first"))},
    {.begin = holding},
    {"a lost answer stays uncertain when only another installation can be asked", renews,
     ROWLOCK_EUNCERTAIN, ANSWERS(LOST(RENEW), ALWAYS_SAYS(META, .identity = "second"))},
    {"the error kept says so too", error_kept, ROWLOCK_EUNCERTAIN},
};

/* ---- release */

CALL(lease_counts, remaining_ms(0) > 0);
#define LOST_AND_GONE LOST(RELEASE), GONE(RELEASE)
#define LOST_AND_DENIED LOST(RELEASE), FAILED(OPEN, DENIED)
static const struct story_row releasing[] = {
    {.begin = holding},
    {"a lost answer, no row at the second look, and the token still ours: released", releases,
     ROWLOCK_OK, ANSWERS(LOST_AND_GONE), "release open meta release last"},
    {"it is not held any more", releases, ROWLOCK_EMISUSE},
    {.begin = holding},
    {"no row at the first look is a loss, with any token", releases, ROWLOCK_LOST,
     ANSWERS(GONE(RELEASE)), "release verify"},
    {"which no release of ours can be", answer_lost, false},
    {"nothing is due after it", releases, ROWLOCK_EMISUSE},
    {.begin = holding},
    {"a lost answer, and the second look releases: no question is left", releases, ROWLOCK_OK,
     ANSWERS(LOST(RELEASE)), "release open meta release"},
    {.begin = holding},
    {"a lost answer, no row at the second look, and a newer token: lost", releases, ROWLOCK_LOST,
     ANSWERS(LOST_AND_GONE, ALWAYS_SAYS(LAST, .token = 99))},
    {"the error kept says so", error_kept, ROWLOCK_LOST},
    {"and that it may be our own release", answer_lost, true},
    {"the handle is done with it", its_token, 0},
    {"and can acquire anew", acquires, ROWLOCK_OK},
    {.begin = holding},
    {"a lost answer, no row at the second look, and no counter: lost", releases, ROWLOCK_LOST,
     ANSWERS(LOST_AND_GONE, ALWAYS_GONE(LAST))},
    {.begin = holding},
    {"the row is gone, but what became of the lock cannot be asked", releases, ROWLOCK_EUNCERTAIN,
     ANSWERS(LOST(RELEASE), ALWAYS_GONE(RELEASE), ALWAYS_FAILED(LAST, DENIED))},
    {"the handle counts as holding", its_token, 1},
    {"called again it is settled, by row and token", releases, ROWLOCK_OK,
     ANSWERS(ALWAYS_SAYS(LAST, .token = 1)), "release last"},
    {"then nothing is held", its_token, 0},
    {.begin = holding},
    {"nor is there a connection to ask on", releases, ROWLOCK_EUNCERTAIN,
     ANSWERS(LOST(RELEASE), ALWAYS_GONE(RELEASE), ALWAYS_FAILED(LAST, UNSENT))},
    {"the handle counts as holding", its_token, 1},
    {"called again it is settled", releases, ROWLOCK_OK, ANSWERS(ALWAYS_SAYS(LAST, .token = 1))},
    /* The call that sent the delete gave up; a later one finds the row gone. */
    {.begin = holding},
    {"no connection for the second look", releases, ROWLOCK_EUNCERTAIN,
     ANSWERS(LOST(RELEASE), ALWAYS_FAILED(OPEN, UNSENT))},
    {"the handle still holds the lock", its_token, 1},
    {"but the lease is not counted upon: it may be free", remaining_ms, 0},
    {"as its state says", its_state, ROWLOCK_STATE_LOST},
    {"it is not entered again unasked", acquires, ROWLOCK_ECONN},
    {"called again it finds no row, and the token tells that it was our own doing", releases,
     ROWLOCK_OK, ANSWERS(ALWAYS_DONE(OPEN), GONE(RELEASE))},
    {"acquired anew", acquires, ROWLOCK_OK},
    {"a new grant knows nothing of old releases", releases, ROWLOCK_LOST, ANSWERS(GONE(RELEASE))},
    {.begin = holding},
    {"a release of unknown outcome", releases, ROWLOCK_EUNCERTAIN, ANSWERS(LOST_AND_DENIED)},
    {"was not carried out: a renewal finds it", renews, ROWLOCK_OK},
    {"and the lease is counted upon again", lease_counts, true},
    {"HELD", its_state, ROWLOCK_STATE_HELD},
    {"it is released", releases, ROWLOCK_OK},
    {.begin = holding},
    {"a release of unknown outcome", releases, ROWLOCK_EUNCERTAIN, ANSWERS(LOST_AND_DENIED)},
    {"was carried out: there is no grant", verifies, ROWLOCK_LOST, ANSWERS(GONE(VERIFY))},
    {"called again it knows its own doing", releases, ROWLOCK_OK},
    {"and then holds nothing", releases, ROWLOCK_EMISUSE},
    {.begin = holding},
    {"a release of unknown outcome", releases, ROWLOCK_EUNCERTAIN, ANSWERS(LOST_AND_DENIED)},
    {"is sent once more when the handle is closed", closes, 0, .calls = "open meta release"},
};

/* ---- the others */

CALL(breaks, rowlock_break(story.db, "nightly", with, NULL));

static const struct story_row others[] = {
    {.begin = holding},
    {"a renewal may be sent twice", renews, ROWLOCK_OK, ANSWERS(LOST(RENEW))},
    {"no row at the second look is a loss", renews, ROWLOCK_LOST,
     ANSWERS(LOST(RENEW), GONE(RENEW))},
    {.begin = holding},
    {"no row on an old primary is none", renews, ROWLOCK_OK, ANSWERS(GONE(RENEW), LOST(VERIFY)),
     "renew verify open meta verify renew"},
    {"nor for a release", releases, ROWLOCK_OK, ANSWERS(GONE(RELEASE), LOST(VERIFY)),
     "release verify open meta verify release"},
    {.begin = holding},
    {"where there is no other server it is not known", releases, ROWLOCK_ECONN,
     ANSWERS(GONE(RELEASE), ALWAYS_FAILED(VERIFY, UNCERTAIN))},
    {"the handle still holds the lock", its_token, 1},
    {.begin = holding},
    {"a row that is there and never changes is not asked for without end", renews, ROWLOCK_ESERVER,
     ANSWERS(ALWAYS_GONE(RENEW), ALWAYS_SAYS(VERIFY, .left_us = 1))},
    {"nor for a release", releases, ROWLOCK_ESERVER,
     ANSWERS(ALWAYS_GONE(RELEASE), ALWAYS_SAYS(VERIFY, .left_us = 1))},
    {.begin = opened},
    {"a break whose answer was lost before it was done is done", breaks, ROWLOCK_OK,
     ANSWERS(LOST(BREAK)), .with = 7},
    {"a lost answer and no grant at the second look: not called NONE", breaks, ROWLOCK_EUNCERTAIN,
     ANSWERS(LOST(BREAK), GONE(BREAK)), .with = 7},
    {"no grant at the first look is NONE", breaks, ROWLOCK_NONE, ANSWERS(GONE(BREAK)), .with = 7},
};

static void test_list_pages(void)
{
    int seen = 0;
    opened();
    script_next(OP_LIST, ANSWER(.rows = 500));
    script_next(OP_LIST, FAILS(RLK_UNSENT));
    script_next(OP_LIST, ANSWER(.rows = 7));
    tap_is_int(rowlock_list(story.db, NULL, count_grant, &seen), ROWLOCK_OK,
               "a list of two pages, the connection lost in between");
    tap_is_int(seen, 507, "tells each grant once");
    tap_is_str(script.last_after, "lock 000499", "the second page begins where the first ended");
}

static void test_sweep_batches(void)
{
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    opened();
    script_next(OP_SWEEP, ANSWER(.rows = 10));
    script_next(OP_SWEEP, FAILS(RLK_CONTENTION));
    script_next(OP_SWEEP, ANSWER(.rows = 10));
    script_next(OP_SWEEP, ANSWER(.rows = 3));
    script_next(OP_SWEEP_WAITERS, ANSWER(.rows = 10));
    script_next(OP_SWEEP_WAITERS, FAILS(RLK_UNSENT));
    script_next(OP_SWEEP_WAITERS, ANSWER(.rows = 2));
    script_next(OP_FOLD, ANSWER(.rows = 10));
    script_next(OP_FOLD, ANSWER(.rows = 4));
    tap_is_int(rowlock_sweep(story.db, OPTIONS(sweep, .batch = 10), &report), ROWLOCK_OK,
               "a sweep of several batches");
    tap_is_str(script_calls(),
               "meta sweep sweep sweep sweep sweep_waiters sweep_waiters open meta sweep_waiters "
               "fold fold swept",
               "goes on until a batch is not full");
    tap_ok(report.locks == 23 && report.waiters == 12 && report.counters == 14 &&
               report.batches == 7,
           "and counts what it did");
    tap_is_str(script.last_after, "lock 000019", "each batch begins where the last one ended");
}

static void test_close_unreachable(void)
{
    enum { MORE = 20 };
    rowlock_lock *more[MORE];
    holding();
    int got = ROWLOCK_OK;
    for (int i = 0; i < MORE; i++) {
        more[i] = must_lock(story.db, "another");
        got |= rowlock_acquire(more[i], NULL);
    }
    tap_is_int(got, ROWLOCK_OK, "many locks are held");
    script_always(OP_RELEASE, FAILS(RLK_UNSENT));
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    int64_t began_us = rlk_now_us();
    closes_db(0);
    int64_t took_us = rlk_now_us() - began_us;
    tap_ok(took_us <= SCRIPT_MOMENT_MS * 1000,
           "closing a handle on a database that is gone waits once, not for each: %d us",
           (int)took_us);
    close_each_lock(more, MORE);
}

int main(void)
{
    TELL(acquiring);
    TELL(withdrawing);
    test_slow_reconnect_then_contention();
    test_uncertain_then_refused();
    test_reconnect_is_bounded();
    test_adopted();
    test_long_deadline();
    test_deadline_of_a_call();
    test_deadline_after_an_outage();
    TELL(servers);
    test_no_server_takes_writes();
    TELL(other_tables);
    TELL(releasing);
    TELL(others);
    test_list_pages();
    test_sweep_batches();
    test_close_unreachable();
    return tap_done();
}
