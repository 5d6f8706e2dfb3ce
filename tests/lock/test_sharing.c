/* SPDX-License-Identifier: MIT
 *
 * Shared and counted grants: what their handles ask for and where, how an exclusive one becomes one of them,
 * and what administrators see of lines and of many holders. Which of them the database grants together is in
 * the contract tests.
 */
#include "backend_script.h"
#include "quick.h"
#include "tap.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { TTL_MS = 600, THIRD_MS = 200 };

static rowlock_db *db;
static rowlock_lock *lock;

static void begin(void)
{
    script_reset();
    db = script_open(NULL);
    lock = must_lock(db, "nightly");
    script_jump();
}

static void end(void)
{
    script_hook(NULL);
    rowlock_lock_close(lock);
    rowlock_db_close(db);
}

static int get(rowlock_lock *which, int32_t permits)
{
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.ttl_ms = TTL_MS;
    options.permits = permits;
    return rowlock_acquire(which, &options);
}

/* Held with token 2. */
static void begin_holding(int32_t permits)
{
    begin();
    if (get(lock, permits) != ROWLOCK_OK || rowlock_release(lock) != ROWLOCK_OK ||
        get(lock, permits) != ROWLOCK_OK)
        tap_ok(false, "a lock is held at first");
    script.slot_count = 0;
    script_calls();
}

/* ---- grants that others may have too */

static void test_slots(void)
{
    static const int32_t kinds[] = {ROWLOCK_SHARED, 1, 5, 0};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        begin_holding(kinds[i]);
        int got = rowlock_renew(lock, 0) | rowlock_verify(lock) | rowlock_release(lock);
        tap_is_int(got, ROWLOCK_OK, "held with permits %d", (int)kinds[i]);
        int64_t slot = kinds[i] == 0 ? 0 : 2;
        tap_ok(script.slot_count == 3 && script.slots[0] == slot && script.slots[1] == slot &&
                   script.slots[2] == slot,
               "it is renewed, verified and released at %d", (int)slot);
        end();
    }
}

static void test_entering_again(void)
{
    begin_holding(ROWLOCK_SHARED);
    tap_is_int(get(lock, ROWLOCK_SHARED), ROWLOCK_OK, "a shared lock is entered again");
    tap_is_int(get(lock, 0), ROWLOCK_EMISUSE, "but not as an exclusive one");
    tap_is_int(error_code(db), ROWLOCK_EMISUSE, "which is told");
    tap_is_int(get(lock, 2), ROWLOCK_EMISUSE, "nor as a counted one");
    tap_is_int(rowlock_release(lock) | rowlock_release(lock), ROWLOCK_OK, "it was entered twice");
    tap_is_int(rowlock_release(lock), ROWLOCK_EMISUSE, "and no more");
    tap_is_int(get(lock, 0), ROWLOCK_OK, "then it can be exclusive");
    tap_is_int(get(lock, ROWLOCK_SHARED), ROWLOCK_EMISUSE, "and is not shared as well");
    end();
}

static void test_mismatch(void)
{
    static const struct {
        int32_t ours, theirs;
        int result;
        const char *says;
    } cases[] = {
        {0, ROWLOCK_SHARED, ROWLOCK_BUSY, ""},
        {0, 5, ROWLOCK_BUSY, ""},
        {0, 0, ROWLOCK_BUSY, ""},
        {5, 0, ROWLOCK_BUSY, ""},
        {ROWLOCK_SHARED, 0, ROWLOCK_BUSY, ""},
        {5, 5, ROWLOCK_BUSY, ""},
        {5, 6, ROWLOCK_MISMATCH, "with 6 permits"},
        {5, ROWLOCK_SHARED, ROWLOCK_MISMATCH, "shared"},
        {ROWLOCK_SHARED, 1, ROWLOCK_MISMATCH, "with 1 permits"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rowlock_grant holder = ROWLOCK_GRANT_INIT;
        rowlock_error err = ROWLOCK_ERROR_INIT;
        begin();
        script_next(OP_ACQUIRE,
                    ANSWER(.outcome = RLK_HELD, .permits = cases[i].theirs, .token = 9));
        tap_is_int(get(lock, cases[i].ours), cases[i].result, "permits %d asked for, %d held: %s",
                   (int)cases[i].ours, (int)cases[i].theirs, rowlock_result_name(cases[i].result));
        rowlock_db_error(db, &err);
        tap_ok(strstr(err.text, cases[i].says) != NULL, "in words: %s", err.text);
        tap_is_int(rowlock_lock_holder(lock, &holder), ROWLOCK_OK, "the holder can be named");
        tap_is_int(holder.permits, cases[i].theirs, "and how he holds it");
        end();
    }
}

/* ---- downgrade */

static void test_downgrade(void)
{
    static const int32_t kinds[] = {ROWLOCK_SHARED, 1, 7};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        begin_holding(0);
        script.ahead_us += 100000;
        tap_is_int(rowlock_downgrade(lock, kinds[i]), ROWLOCK_OK, "downgraded to %d",
                   (int)kinds[i]);
        tap_is_str(script_calls(), "downgrade", "in one step");
        tap_ok(script.downgraded_to == kinds[i] && script.held.slot == 0 && script.held.token == 2,
               "from where it stood");
        tap_is_int(rowlock_lock_token(lock), 2, "the token stays");
        tap_is_int(rowlock_remaining_ms(lock), TTL_MS - 100, "and the lease");
        tap_is_int(rowlock_downgrade(lock, kinds[i]), ROWLOCK_EMISUSE, "it is not exclusive now");
        tap_is_int(get(lock, kinds[i]), ROWLOCK_OK, "but can be entered as what it is");
        tap_is_int(rowlock_release(lock), ROWLOCK_OK, "left");
        tap_is_int(rowlock_release(lock), ROWLOCK_OK, "and released");
        tap_is_int(script.held.slot, 2, "from where it stands now");
        end();
    }
}

static void test_downgrade_wrongly(void)
{
    begin();
    tap_is_int(rowlock_downgrade(lock, ROWLOCK_SHARED), ROWLOCK_EMISUSE, "nothing is held");
    tap_is_int(rowlock_downgrade(NULL, ROWLOCK_SHARED), ROWLOCK_EMISUSE, "no lock");
    end();
    begin_holding(0);
    tap_is_int(rowlock_downgrade(lock, 0), ROWLOCK_EMISUSE, "exclusive it is already");
    tap_is_int(rowlock_downgrade(lock, -2), ROWLOCK_EINVAL, "there is no such kind");
    tap_is_int(rowlock_downgrade(lock, 1000001), ROWLOCK_EINVAL, "nor so many permits");
    tap_is_int(get(lock, 0), ROWLOCK_OK, "entered twice");
    tap_is_int(rowlock_downgrade(lock, ROWLOCK_SHARED), ROWLOCK_EMISUSE,
               "who is inside relies on it");
    tap_is_str(script_calls(), "", "nothing was sent");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "left once");
    script_next(OP_RENEW, ANSWER(.missing = true));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_LOST, "and lost");
    tap_is_int(rowlock_downgrade(lock, ROWLOCK_SHARED), ROWLOCK_LOST, "what is lost is LOST");
    end();
}

static void test_downgrade_lost(void)
{
    begin_holding(0);
    script_next(OP_DOWNGRADE, ANSWER(.missing = true));
    tap_is_int(rowlock_downgrade(lock, 3), ROWLOCK_LOST, "a grant that is gone");
    tap_is_str(script_calls(), "downgrade", "is not looked for elsewhere");
    tap_is_int(rowlock_lock_state(lock), ROWLOCK_STATE_LOST, "it is LOST");
    tap_is_int(rowlock_release(lock), ROWLOCK_LOST, "for good");
    end();
}

/* The first sending may have been carried out, and then there is nothing where the grant was. */
static void test_downgrade_again(void)
{
    begin_holding(0);
    script_next(OP_DOWNGRADE, FAILS(RLK_UNCERTAIN));
    script_next(OP_DOWNGRADE, ANSWER(.missing = true));
    tap_is_int(rowlock_downgrade(lock, 3), ROWLOCK_OK, "a lost answer, and nothing left to do");
    tap_is_str(script_calls(), "downgrade open meta downgrade verify", "it stands elsewhere");
    tap_is_int(script.held.slot, 2, "at its token");
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "and is renewed");
    tap_is_int(script.held.slot, 2, "there");
    end();
    begin_holding(0);
    script_next(OP_DOWNGRADE, FAILS(RLK_UNCERTAIN));
    tap_is_int(rowlock_downgrade(lock, 3), ROWLOCK_OK, "a lost answer, and then it is done");
    script_calls();
    script_next(OP_RENEW, ANSWER(.missing = true));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_LOST, "when it is gone from there it is LOST");
    tap_is_str(script_calls(), "renew", "and nowhere else");
    end();
    begin_holding(0);
    script_next(OP_DOWNGRADE, FAILS(RLK_UNCERTAIN));
    script_next(OP_DOWNGRADE, ANSWER(.missing = true));
    script_next(OP_VERIFY, ANSWER(.missing = true));
    tap_is_int(rowlock_downgrade(lock, 3), ROWLOCK_LOST, "nowhere to be found: LOST");
    end();
    begin_holding(0);
    db->reconnect_us = 0;
    script_next(OP_DOWNGRADE, FAILS(RLK_UNCERTAIN));
    tap_is_int(rowlock_downgrade(lock, 3), ROWLOCK_EUNCERTAIN, "no second answer: not known");
    script_next(OP_DOWNGRADE, ANSWER(.missing = true));
    tap_is_int(rowlock_downgrade(lock, 3), ROWLOCK_OK, "called again it finds out");
    tap_is_int(rowlock_lock_token(lock), 2, "and the grant is held");
    end();
}

/* ---- downgrade under a keeper's eyes */

static bool eventually_renewed(int times)
{
    int64_t until = clock_ms() + slow_ms(10000);
    while (script_count(OP_RENEW_ALL) < times && clock_ms() < until)
        sleep_ms(1);
    return script_count(OP_RENEW_ALL) >= times;
}

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

static void test_downgrade_kept(bool crossing)
{
    rowlock_keeper *keeper = NULL;
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    begin();
    tap_is_int(rowlock_keeper_open(&keeper, "sqlite:script", NULL, NULL), ROWLOCK_OK, "a keeper");
    options.keeper = keeper;
    options.ttl_ms = TTL_MS;
    tap_is_int(rowlock_acquire(lock, &options), ROWLOCK_OK, "keeps a lock");
    script_hook(crossing ? keeper_looks : NULL);
    tap_is_int(rowlock_downgrade(lock, ROWLOCK_SHARED), ROWLOCK_OK, "downgraded, %s",
               crossing ? "while the keeper renews" : "and kept on");
    tap_is_int(rowlock_lock_state(lock) == ROWLOCK_STATE_LOST, false, "it is not taken for lost");
    int before = script_count(OP_RENEW_ALL);
    script_pass_ms(THIRD_MS);
    tap_ok(eventually_renewed(before + 1), "the keeper goes on");
    tap_is_int(script.lease_slot, 1, "where it stands now");
    rowlock_keeper_close(keeper);
    end();
}

/* ---- attached */

static void test_attached(void)
{
    begin();
    rowlock_lock *there = must_attach(db, "weekly", "somebody", 41);
    script_next(OP_RENEW, ANSWER(.missing = true));
    tap_is_int(rowlock_renew(there, 5000), ROWLOCK_OK, "a grant of somebody's, of unknown kind");
    tap_is_str(script_calls(), "meta renew renew", "is looked for in both places");
    tap_ok(script.slots[0] == 0 && script.slots[1] == 41, "the exclusive one first");
    script_next(OP_RENEW, ANSWER(.missing = true));
    tap_is_int(rowlock_renew(there, 0), ROWLOCK_LOST, "once it was found it is not looked for");
    tap_is_str(script_calls(), "renew", "anywhere else");
    rowlock_lock_close(there);

    there = must_attach(db, "weekly", "somebody", 41);
    tap_is_int(rowlock_renew(there, 5000), ROWLOCK_OK, "an exclusive one");
    script_next(OP_RENEW, ANSWER(.missing = true));
    tap_is_int(rowlock_renew(there, 0), ROWLOCK_LOST, "that is gone is so at once");
    tap_is_str(script_calls(), "renew renew", "without a look where it cannot be");
    rowlock_lock_close(there);

    there = must_attach(db, "weekly", "somebody", 41);
    script_next(OP_RENEW, ANSWER(.missing = true));
    script_next(OP_RENEW, ANSWER(.missing = true));
    tap_is_int(rowlock_renew(there, 0), ROWLOCK_LOST, "one that is in neither place is LOST");
    tap_is_str(script_calls(), "renew renew", "after both");
    rowlock_lock_close(there);
    end();
}

static void test_attached_others(void)
{
    begin();
    rowlock_lock *there = must_attach(db, "weekly", "somebody", 41);
    script_next(OP_VERIFY, ANSWER(.missing = true));
    tap_is_int(rowlock_verify(there), ROWLOCK_OK, "verifying looks in both places");
    tap_is_int(script.held.slot, 41, "and finds it in the second");
    tap_is_int(rowlock_release(there), ROWLOCK_OK, "from where it is released");
    tap_is_str(script_calls(), "meta verify verify release", "at once");
    rowlock_lock_close(there);

    there = must_attach(db, "weekly", "somebody", 41);
    script_next(OP_RELEASE, ANSWER(.missing = true));
    tap_is_int(rowlock_release(there), ROWLOCK_OK, "releasing looks in both places");
    tap_is_str(script_calls(), "release release", "too");
    tap_is_int(script.held.slot, 41, "and releases it from the second");
    rowlock_lock_close(there);

    there = must_attach(db, "weekly", "somebody", 41);
    script_next(OP_RELEASE, FAILS(RLK_UNCERTAIN));
    script_next(OP_RELEASE, ANSWER(.missing = true));
    script_next(OP_RELEASE, ANSWER(.missing = true));
    script_next(OP_LAST, ANSWER(.token = 41));
    tap_is_int(rowlock_release(there), ROWLOCK_OK,
               "after a lost answer it is in neither place, but the token tells: released");
    rowlock_lock_close(there);
    end();
}

/* It is there, shared: neither exclusive enough to be downgraded, nor lost. */
static void test_attached_downgrade(void)
{
    begin();
    rowlock_lock *there = must_attach(db, "weekly", "somebody", 41);
    script_always(OP_DOWNGRADE, ANSWER(.missing = true));
    tap_is_int(rowlock_downgrade(there, ROWLOCK_SHARED), ROWLOCK_EMISUSE,
               "a shared grant of somebody's cannot be downgraded");
    tap_is_int(rowlock_renew(there, 5000), ROWLOCK_OK, "and goes on");
    tap_is_int(script.held.slot, 41, "where it is");
    rowlock_lock_close(there);
    end();
}

/* ---- guard */

static void test_guard(void)
{
    begin_holding(ROWLOCK_SHARED);
    rowlock_db *tx = script_adopt();
    script.inside = true;
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_OK, "a shared grant is guarded");
    tap_is_int(script.held.slot, 2, "by its own row");
    script_next(OP_GUARD, ANSWER(.token = 9));
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_OK, "others have been granted it since");
    script_next(OP_GUARD, ANSWER(.token = 9, .fallen = true));
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_LOST, "its row is gone");
    script_next(OP_GUARD, ANSWER(.token = 1, .fallen = true));
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_CONFLICT, "a snapshot from before the grant");
    script_next(OP_GUARD, ANSWER(.missing = true));
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_LOST, "no token at all");
    script_calls();
    tap_is_int(rowlock_tx_release(lock, tx), ROWLOCK_OK, "it is released in a transaction");
    tap_is_str(script_calls(), "guard release", "guarded first");
    tap_is_int(script.held.slot, 2, "from where it stands");
    rowlock_lock_forget(lock);
    script.inside = false;
    rowlock_db_close(tx);
    end();
}

static void test_guard_attached(void)
{
    begin();
    rowlock_lock *there = must_attach(db, "weekly", "somebody", 41);
    rowlock_db *tx = script_adopt();
    script.inside = true;
    script_always(OP_GUARD, ANSWER(.token = 45));
    tap_is_int(rowlock_guard(there, tx), ROWLOCK_OK,
               "a shared grant of somebody's is guarded though its kind is not known yet");
    tap_is_int(script.held.slot, 41, "by its own row");
    script_always(OP_GUARD, ANSWER(.token = 45, .fallen = true));
    tap_is_int(rowlock_guard(there, tx), ROWLOCK_LOST, "which has to be there");
    script.inside = false;
    rowlock_lock_close(there);
    rowlock_db_close(tx);
    end();
}

static void test_tx_acquire(void)
{
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    begin();
    rowlock_db *tx = script_adopt();
    script.inside = true;
    options.permits = 3;
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .permits = 4));
    tap_is_int(rowlock_tx_acquire(lock, tx, &options), ROWLOCK_MISMATCH,
               "in a transaction: others count otherwise");
    tap_is_int(error_code(tx), ROWLOCK_MISMATCH, "as the connection's handle says");
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_BEHIND));
    tap_is_int(rowlock_tx_acquire(lock, tx, &options), ROWLOCK_BUSY, "others stand in line");
    tap_is_int(error_code(tx), 0, "which is no error");
    tap_is_int(rowlock_tx_acquire(lock, tx, &options), ROWLOCK_OK, "granted");
    tap_is_int(rowlock_guard(lock, tx), ROWLOCK_OK, "and guarded");
    tap_is_int(script.held.slot, 1, "where it stands");
    rowlock_lock_forget(lock);
    script.inside = false;
    rowlock_db_close(tx);
    end();
}

/* ---- who waits */

struct seen {
    char text[400]; /* "name:place:remaining " for each */
    int count, stop_after;
    bool sizes;
};

static int note_waiter(void *context, const rowlock_waiter *waiter)
{
    struct seen *s = context;
    size_t used = strlen(s->text);
    s->sizes = (s->count == 0 || s->sizes) && waiter->size == sizeof *waiter;
    snprintf(s->text + used, sizeof s->text - used, "%s:%d:%d ", waiter->name, (int)waiter->place,
             (int)waiter->remaining_ms);
    s->count++;
    return s->count == s->stop_after;
}

static const struct rlk_waiter line[] = {
    {.name = "a", .ticket = 3, .attempt = 1, .now_us = 9000000, .expires_us = 9500000},
    {.name = "a", .ticket = 4, .attempt = 1, .now_us = 9000000, .expires_us = 8000000},
    {.name = "a", .ticket = 5, .attempt = 1, .now_us = 9000000, .expires_us = 9700000},
    {.name = "b", .ticket = 1, .attempt = 1, .now_us = 9000000, .expires_us = 9000000},
    {.name = "b", .ticket = 2, .attempt = 1, .now_us = 9000000, .expires_us = 9000999},
};

static void test_places(void)
{
    struct seen seen = {0};
    begin();
    script_next(OP_WAITERS, ANSWER(.waiters = line, .rows = 5));
    tap_is_int(rowlock_list_waiters(db, NULL, note_waiter, &seen), ROWLOCK_OK, "two lines");
    tap_is_str(seen.text, "a:1:500 a:0:-1 a:2:700 b:0:-1 b:1:0 ",
               "in each the living are counted, and the others have no place");
    tap_ok(seen.sizes, "each struct begins with its size");
    seen = (struct seen){.stop_after = 2};
    script_next(OP_WAITERS, ANSWER(.waiters = line, .rows = 5));
    tap_is_int(rowlock_list_waiters(db, "a", note_waiter, &seen), ROWLOCK_OK, "the report");
    tap_is_int(seen.count, 2, "can be stopped");
    script_calls();
    tap_is_int(rowlock_list_waiters(db, NULL, NULL, NULL), ROWLOCK_EINVAL,
               "needs somebody to tell");
    tap_is_int(rowlock_list_waiters(db, "", note_waiter, &seen), ROWLOCK_EINVAL,
               "and no empty name");
    tap_is_str(script_calls(), "", "else nothing is sent");
    end();
}

struct crowd {
    int count, wrong;
    rowlock_waiter last;
};

static int count_in_order(void *context, const rowlock_waiter *waiter)
{
    struct crowd *c = context;
    c->count++;
    c->wrong += waiter->place != c->count || waiter->ticket != c->count;
    c->last = *waiter;
    return 0;
}

static void test_long_line(void)
{
    struct crowd crowd = {0};
    begin();
    script_next(OP_WAITERS, ANSWER(.rows = 500));
    script_next(OP_WAITERS, ANSWER(.class = RLK_CONTENTION, .text = "broke off", .rows = 20));
    script_next(OP_WAITERS, ANSWER(.rows = 13));
    tap_is_int(rowlock_list_waiters(db, "crowd", count_in_order, &crowd), ROWLOCK_OK,
               "a line of several pages, one of which broke off");
    tap_is_int(crowd.count, 513, "tells each waiter once");
    tap_is_int(crowd.wrong, 0, "and counts the places through");
    tap_ok(strcmp(script.last_after, "crowd") == 0 && script.last_ticket == 500,
           "each page begins where the last one ended");
    end();
}

static int count_waiter(void *context, const rowlock_waiter *waiter)
{
    (void)waiter;
    return ++*(int *)context > 2000; /* it would go on for ever */
}

static void test_same_page(void)
{
    static struct rlk_waiter page[500];
    int seen = 0;
    begin();
    for (int i = 0; i < 500; i++)
        page[i] = (struct rlk_waiter){.name = "n", .ticket = i + 1};
    script_always(OP_WAITERS, ANSWER(.waiters = page, .rows = 500));
    tap_is_int(rowlock_list_waiters(db, NULL, count_waiter, &seen), ROWLOCK_ESCHEMA,
               "a full page that comes again and again is an error");
    tap_is_int(seen, 1000, "the second time");
    end();
}

static void test_waiter(void)
{
    struct crowd crowd = {0};
    struct rlk_waiter one = {.name = "n",
                             .owner = "o",
                             .host = "h",
                             .program = "p",
                             .note = "t",
                             .permits = ROWLOCK_SHARED,
                             .ticket = 1,
                             .since_us = 4000000,
                             .expires_us = 9000000,
                             .now_us = 6500000,
                             .pid = 11};
    begin();
    script_next(OP_WAITERS, ANSWER(.waiters = &one, .rows = 1));
    tap_is_int(rowlock_list_waiters(db, NULL, count_in_order, &crowd), ROWLOCK_OK, "one waiter");
    const rowlock_waiter *w = &crowd.last;
    tap_ok(strcmp(w->owner, "o") == 0 && strcmp(w->host, "h") == 0 &&
               strcmp(w->program, "p") == 0 && strcmp(w->note, "t") == 0 && w->pid == 11,
           "is named in all ways");
    tap_ok(w->permits == ROWLOCK_SHARED && w->since_us == 4000000 && w->waited_ms == 2500 &&
               w->remaining_ms == 2500,
           "with what it waits for, and for how long");
    end();
}

/* ---- several holders */

static void test_break(void)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    begin();
    script_next(OP_LIST, ANSWER(.rows = 3, .token = 9));
    tap_is_int(rowlock_break(db, "nightly", 0, NULL), ROWLOCK_EINVAL,
               "whoever holds it is not one of several");
    rowlock_db_error(db, &err);
    tap_ok(strstr(err.text, "3 holders") != NULL, "which is told: %s", err.text);
    tap_is_int(script_count(OP_BREAK), 0, "and none is broken");
    tap_is_int(rowlock_break(db, "nightly", 9, NULL), ROWLOCK_OK, "one that is named by its token");
    tap_is_int(script.broken, 9, "is");
    script_next(OP_LIST, ANSWER(.rows = 1, .token = 12));
    tap_is_int(rowlock_break(db, "nightly", 0, NULL), ROWLOCK_OK, "so is the only one");
    tap_is_int(script.broken, 12, "by the token that was found");
    tap_is_int(rowlock_break(db, "nightly", 0, NULL), ROWLOCK_NONE, "none is NONE");
    tap_is_int(script_count(OP_BREAK), 2, "without a try");
    end();
}

int main(void)
{
    test_slots();
    test_entering_again();
    test_mismatch();
    test_downgrade();
    test_downgrade_wrongly();
    test_downgrade_lost();
    test_downgrade_again();
    test_downgrade_kept(false);
    test_downgrade_kept(true);
    test_attached();
    test_attached_others();
    test_attached_downgrade();
    test_guard();
    test_guard_attached();
    test_tx_acquire();
    test_places();
    test_long_line();
    test_same_page();
    test_waiter();
    test_break();
    return tap_done();
}
