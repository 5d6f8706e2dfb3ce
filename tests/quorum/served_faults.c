/* SPDX-License-Identifier: MIT
 *
 * One member of three is down, frozen, slow or forgetful: it costs no grant and no renewal, and is
 * brought up to date when it is back. Two of three are gone: nothing is granted. */
#include "members.h"

#include "each.h"

/* A kept lease outlives a machine that stands still for 5 s, and is renewed after 3 s. */
enum {
    TURNS = 3,
    TRIES = 20,
    GLANCE_MS = 2000,
    LONG_MS = 600000,
    KEPT_MS = 10000,
    KEEPER_MS = 2000,
    BRIEF_MS = 1500,
    HASTY_MS = 300,
    PATIENCE_MS = 60000,
    SLOW_US = 20000
};

static struct members m;

static void down(int i)
{
    faultproxy_refuse(m.proxy[i]);
    faultproxy_cut(m.proxy[i]);
}

static void up(int i)
{
    faultproxy_accept(m.proxy[i]);
}

static void freeze(int i)
{
    faultproxy_blackhole(m.proxy[i]);
}

static void thaw(int i)
{
    faultproxy_heal(m.proxy[i]);
}

static void change(int i, const char *format)
{
    members_change(&m, i, format, 0);
}

/* For people: what a lock has lost, and in which members. */
static void note_rows(rowlock_lock *lock, int said)
{
    const char *name = rowlock_lock_name(lock);
    const char *newest =
        textf("SELECT coalesce(max(token), 0) FROM %%stokens WHERE name = '%s'", name);
    const char *ours =
        textf("SELECT coalesce(max(token), 0) FROM %%slocks WHERE name = '%s' AND owner = '%s'",
              name, rowlock_lock_owner(lock));
    for (int i = 0; i < MEMBERS; i++)
        tap_note("%s of token %lld: member %d has our row with token %lld, newest is %lld",
                 rowlock_result_name(said), (long long)rowlock_lock_token(lock), i,
                 members_ask(&m, i, ours), members_ask(&m, i, newest));
}

/* A row that came late gets the grant's token a moment later, or with a renewal. If the answer to
 * that is lost, the row is removed again, unless a renewal has counted it. */
static bool is_complete(rowlock_lock *lock)
{
    int said = ROWLOCK_OK;
    const char *token =
        textf("SELECT coalesce(max(token), 0) FROM %%slocks WHERE name = '%s' AND renewals > 0",
              rowlock_lock_name(lock));
    for (int64_t end = clock_ms() + slow_ms(PATIENCE_MS); clock_ms() < end; sleep_ms(5)) {
        int level = 0;
        for (int i = 0; i < MEMBERS; i++)
            level += members_ask(&m, i, token) == rowlock_lock_token(lock);
        if (level == MEMBERS)
            return true;
        if ((said = rowlock_renew(lock, 0)) != ROWLOCK_OK)
            break;
    }
    note_rows(lock, said);
    return false;
}

static void hold_in_all(rowlock_db *db, rowlock_lock *lock)
{
    is_result(db, try_lock(lock, LONG_MS), ROWLOCK_OK, "a lock is held");
    tap_ok(is_complete(lock), "in all members");
}

static void is_released(rowlock_db *db, rowlock_lock *lock)
{
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "it is released");
    tap_ok(rows_become(&m, 0, 0, 0), "no row is left in any member");
}

/* Each member has done all that the handle wanted before, which may be a late grant. A closed handle
 * makes no row then that another test meets. */
static void ends_free(rowlock_db *db, rowlock_lock *lock)
{
    hold_in_all(db, lock);
    is_released(db, lock);
}

/* ---- one of three */

/* Grants, renewals and releases. */
static void count_turns(rowlock_db *db, const char *name, int counts[3])
{
    OWNED(lock) rowlock_lock *lock = must_lock(db, name);
    counts[0] = counts[1] = counts[2] = 0;
    for (int i = 0; i < TURNS; i++) {
        int tried = try_lock(lock, LONG_MS);
        if (tried != ROWLOCK_OK)
            tap_note("%s: %s", rowlock_result_name(tried), why(db));
        counts[0] += tried == ROWLOCK_OK;
        counts[1] += rowlock_renew(lock, 0) == ROWLOCK_OK;
        counts[2] += rowlock_release(lock) == ROWLOCK_OK;
        rowlock_forget(lock);
    }
}

static void test_one(const char *what, void (*break_it)(int i), void (*mend_it)(int i))
{
    for (int i = 0; i < MEMBERS; i++) {
        OWNED(db) rowlock_db *db = members_open(&m);
        int counts[3];
        break_it(i);
        count_turns(db, "one of three", counts);
        bool all = tap_ok(counts[0] == TURNS && counts[1] == TURNS && counts[2] == TURNS,
                          "member %d is %s: no grant, renewal or release fails", i, what);
        if (!all)
            tap_note("%d, %d, %d of %d", counts[0], counts[1], counts[2], TURNS);
        mend_it(i);
        OWNED(lock) rowlock_lock *lock = must_lock(db, "one of three");
        ends_free(db, lock);
    }
}

/* The first request is lost when the connection is cut. The member is asked for no row that was
 * released meanwhile: each would have counted its tokens on. */
static void test_released_meanwhile(void)
{
    OWNED(db) rowlock_db *db = members_open(&m);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "meanwhile");
    static const char counter[] = "SELECT max(token) FROM %stokens WHERE name = 'meanwhile'";
    hold_in_all(db, lock);
    is_released(db, lock);
    freeze(2);
    change(2, "UPDATE %stokens SET token = token + 1000 WHERE name = 'meanwhile'");
    long long before = members_ask(&m, 2, counter);
    int counts[3];
    for (int i = 0; i < 2; i++)
        count_turns(db, "meanwhile", counts);
    thaw(2);
    hold_in_all(db, lock);
    tap_ok(members_ask(&m, 2, counter) <= before + TURNS,
           "a member that was behind is not given rows that were released meanwhile");
    is_released(db, lock);
}

static void with_each(const char *name, void (*test)(int i, rowlock_db *db, rowlock_lock *lock))
{
    for (int i = 0; i < MEMBERS; i++) {
        OWNED(db) rowlock_db *db = members_open(&m);
        OWNED(lock) rowlock_lock *lock = must_lock(db, name);
        test(i, db, lock);
    }
}

/* The lease is much longer than the test. */
static void test_debt(int i, rowlock_db *db, rowlock_lock *lock)
{
    OWNED(lock) rowlock_lock *other = must_lock(db, "another");
    hold_in_all(db, lock);
    down(i);
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "it is released without member %d", i);
    tap_is_int(rows_in_all(&m), 1, "which still has its row");
    up(i);
    /* Another lock brings the member back, and the release that it was owed is paid. */
    ends_free(db, other);
}

/* A late answer of the lock's own request, or an operator, has removed the row of another one. */
static void test_release_without_two(int i, rowlock_db *db, rowlock_lock *lock)
{
    hold_in_all(db, lock);
    down(i);
    change((i + 1) % MEMBERS, "DELETE FROM %slocks");
    is_result(db, rowlock_release(lock), ROWLOCK_OK,
              "one member removes the row, one lacks it, %d is away: it is released", i);
    up(i);
    ends_free(db, lock);
}

/* Members 1 and 2 are away. False: another statement has noticed that before the release came, so
 * member 0 does not vote. The test is done again then. */
static bool reaches_first(void)
{
    bool reached = false;
    for (int64_t end = clock_ms() + slow_ms(GLANCE_MS); !reached && clock_ms() < end; sleep_ms(5))
        reached = rows_in(&m, 0) == 0;
    return reached;
}

static int release_it(void *lock)
{
    return rowlock_release(lock);
}

/* The first attempt has one row removed, and does not know of the others. They get it later, when
 * newer tokens have been given. Or another handle of the grant releases it there: it is no rival,
 * since no other client was granted the lock. */
static void test_release_in_two(bool by_another)
{
    OWNED(db) rowlock_db *db = members_open(&m);
    OWNED(db) rowlock_db *other = must_quorum((const char *const *)m.straight, MEMBERS, NULL);
    OWNED(lock) rowlock_lock *own = must_lock(db, "in two");
    bool reached = false;
    for (int i = 0; i < TRIES && !reached; i++) {
        hold_in_all(db, own);
        OWNED(lock)
        rowlock_lock *attached =
            must_attach(other, "in two", rowlock_lock_owner(own), rowlock_lock_token(own));
        down(1);
        down(2);
        struct helper *helper = helper_start(release_it, own);
        reached = reaches_first();
        for (int k = 0; k < MEMBERS && !by_another; k++)
            change(k, "UPDATE %stokens SET token = token + 1 WHERE name = 'in two'");
        if (by_another && reached)
            is_result(
                other, rowlock_release(attached), ROWLOCK_OK,
                "while a release reaches one member, another handle of the grant releases it");
        up(1);
        up(2);
        is_result(db, helper_join(helper), ROWLOCK_OK, "%s",
                  by_another ? "the first one is told OK as well: it was no rival"
                             : "a release that first reaches one member, and then the others, has "
                               "come first");
        ends_free(db, own);
    }
    tap_ok(reached, "one member was reached first");
}

/* ---- a wait that is cancelled */

static int wait_long(void *lock)
{
    return wait_lock(lock, LONG_MS, LONG_MS);
}

/* One member is away, and the answer of another is lost, which may have granted the lock. If it was
 * the answer to another statement: again. */
static void test_cancelled(void)
{
    OWNED(db) rowlock_db *db = members_open(&m);
    OWNED(lock) rowlock_lock *own = must_lock(db, "cancelled");
    int result = ROWLOCK_CANCELLED;
    for (int i = 0; i < TRIES && result == ROWLOCK_CANCELLED; i++) {
        ends_free(db, own);
        down(2);
        faultproxy_arm(m.proxy[1], 1, (struct fault){FAULT_CUT, ON_ANSWER, 0});
        faultproxy_refuse(m.proxy[1]);
        struct helper *helper = helper_start(wait_long, own);
        (void)EVENTUALLY(faultproxy_fired(m.proxy[1]));
        rowlock_cancel(db);
        result = helper_join(helper);
        up(1);
        up(2);
    }
    is_result(db, result, ROWLOCK_EUNCERTAIN,
              "a wait that is cancelled after a lost answer is uncertain");
    is_result(db, wait_lock(own, LONG_MS, LONG_MS), ROWLOCK_OK, "the same handle acquires it");
    tap_ok(is_complete(own), "in all members");
    is_released(db, own);
}

/* Which member has missed the newest grant makes no difference. */
static void test_last(int i, rowlock_db *db, rowlock_lock *lock)
{
    int64_t token = 0, newest = 0, when;
    down(i);
    for (int k = 0; k < TURNS; k++) {
        is_result(db, try_lock(lock, LONG_MS), ROWLOCK_OK, "granted without member %d", i);
        token = rowlock_lock_token(lock);
        is_result(db, rowlock_release(lock), ROWLOCK_OK, "and released");
    }
    up(i);
    is_result(db, rowlock_last_grant(db, "last", &newest, &when), ROWLOCK_OK,
              "the newest token is asked for");
    tap_ok(newest >= token, "no lower one is told: %lld, %lld", (long long)newest,
           (long long)token);
    ends_free(db, lock);
}

/* ---- late grants */

/* The late member may also have no row. */
static bool comes_level(int late, int64_t token)
{
    int level = 0;
    for (int64_t end = clock_ms() + slow_ms(PATIENCE_MS); level < MEMBERS && clock_ms() < end;
         sleep_ms(5)) {
        /* Its answer comes later than that. */
        sleep_ms(4 * SLOW_US / 1000);
        level = 0;
        for (int k = 0; k < MEMBERS; k++) {
            int64_t there = members_ask(&m, k, "SELECT coalesce(max(token), 0) FROM %slocks");
            level += there == token || (k == late && there == 0);
        }
    }
    return level == MEMBERS;
}

static void test_late_grant(int i, rowlock_db *db, rowlock_lock *lock)
{
    ends_free(db, lock);
    change(i, "UPDATE %stokens SET token = token + 5 WHERE name = 'late'");
    faultproxy_slow(m.proxy[i], SLOW_US);
    is_result(db, try_lock(lock, LONG_MS), ROWLOCK_OK, "granted while member %d is slow", i);
    tap_ok(comes_level(i, rowlock_lock_token(lock)),
           "its late grant gets the token of the others, or is removed");
    faultproxy_slow(m.proxy[i], 0);
    is_released(db, lock);
    ends_free(db, lock);
}

static void test_late_refusal(int i, rowlock_db *db, rowlock_lock *held)
{
    OWNED(db) rowlock_db *other = members_open(&m);
    OWNED(lock) rowlock_lock *wanted = must_lock(other, "refused");
    hold_in_all(db, held);
    change(i, "DELETE FROM %slocks");
    faultproxy_slow(m.proxy[i], SLOW_US);
    is_result(other, try_lock(wanted, LONG_MS), ROWLOCK_BUSY,
              "another client is refused, although member %d is free", i);
    tap_ok(rows_become(&m, i != 0, i != 1, i != 2), "and its late grant there is removed");
    faultproxy_slow(m.proxy[i], 0);
    tap_ok(is_complete(held), "the holder gives it the row that it lacks");
    is_released(db, held);
    ends_free(other, wanted);
}

/* ---- a try */

static int try_patiently(void *lock)
{
    return try_lock(lock, LONG_MS);
}

/* One member refuses, one grants, and one hangs much longer than the test waits. */
static void test_try(bool hangs_before)
{
    OWNED(db) rowlock_db *db = members_open(&m);
    OWNED(lock) rowlock_lock *held = must_lock(db, "tried");
    rowlock_db_options how =
        *OPTIONS(db, .statement_timeout_ms = LONG_MS, .connect_timeout_ms = LONG_MS);
    hold_in_all(db, held);
    change(0, "DELETE FROM %slocks");
    if (hangs_before)
        freeze(2);
    OWNED(db) rowlock_db *other = must_quorum(m.urls, MEMBERS, &how);
    OWNED(lock) rowlock_lock *wanted = must_lock(other, "tried");
    if (!hangs_before && rowlock_verify(held) == ROWLOCK_OK)
        freeze(2);
    struct helper *helper = helper_start(try_patiently, wanted);
    tap_ok(EVENTUALLY(helper_ended(helper)),
           "a try ends when two have answered, and the third hangs %s",
           hangs_before ? "since before it was opened" : "from then on");
    thaw(2);
    is_result(other, helper_join(helper), ROWLOCK_BUSY, "the lock is busy");
    tap_ok(is_complete(held), "the holder gives the member the row that it lacks");
    is_released(db, held);
    ends_free(other, wanted);
}

/* ---- a keeper */

/* A keeper may give a member the row just after the holder has released it. It ends with its
 * lease. */
static bool none_outlives_its_lease(void)
{
    int rows = 1;
    const char *live = textf("SELECT count(*) FROM %%slocks WHERE expires > %s", m.raw->clock);
    for (int64_t end = clock_ms() + slow_ms(PATIENCE_MS); rows && clock_ms() < end; sleep_ms(20)) {
        rows = 0;
        for (int i = 0; i < MEMBERS; i++)
            rows += (int)members_ask(&m, i, live);
    }
    for (int i = 0; i < MEMBERS; i++)
        change(i, "DELETE FROM %slocks");
    return rows == 0;
}

static rowlock_lock *keep(rowlock_db *db, rowlock_keeper *keeper, const char *name, int64_t ttl_ms)
{
    rowlock_lock *lock = must_lock(db, name);
    rowlock_acquire_options how = *OPTIONS(acquire, .ttl_ms = slow_ms(ttl_ms), .keeper = keeper);
    is_result(db, rowlock_acquire(lock, &how), ROWLOCK_OK, "a keeper has %s", name);
    return lock;
}

static bool becomes(rowlock_lock *lock, rowlock_state state)
{
    (void)EVENTUALLY(rowlock_lock_state(lock) == state ||
                     rowlock_lock_state(lock) == ROWLOCK_STATE_LOST);
    return rowlock_lock_state(lock) == state;
}

static void test_top_up(bool slow)
{
    for (int i = 0; i < MEMBERS; i++) {
        OWNED(db) rowlock_db *db = members_open(&m);
        OWNED(lock) rowlock_lock *lock = must_lock(db, "kept");
        hold_in_all(db, lock);
        if (slow)
            faultproxy_slow(m.proxy[i], SLOW_US);
        change(i, "DELETE FROM %slocks");
        tap_ok(is_complete(lock), "a renewal gives %smember %d the row that it lacks",
               slow ? "the slow " : "", i);
        faultproxy_slow(m.proxy[i], 0);
        is_result(db, rowlock_release(lock), ROWLOCK_OK, "and it is released with the others");
        tap_ok(rows_become(&m, 0, 0, 0), "no row is left in any member");
    }
}

/* Each lock whose name begins so. */
static bool renewals_become(int member, const char *name, int wanted)
{
    const char *least =
        textf("SELECT coalesce(min(renewals), -1) FROM %%slocks WHERE name LIKE '%s%%%%'", name);
    return EVENTUALLY(members_ask(&m, member, least) >= wanted);
}

/* Member 2 has done then what the keeper wanted before. */
static void catch_up(rowlock_db *db, rowlock_keeper *keeper)
{
    OWNED(lock) rowlock_lock *lock = keep(db, keeper, "newest", BRIEF_MS);
    renewals_become(2, "newest", 1);
    if (rowlock_release(lock) != ROWLOCK_OK)
        tap_note("%s", why(db));
}

static int release_each(rowlock_lock *const *lock, int count)
{
    int released = 0;
    for (int i = 0; i < count; i++)
        released += rowlock_release(lock[i]) == ROWLOCK_OK;
    tap_ok(none_outlives_its_lease(), "no row is left in any member");
    return released;
}

/* Renewals that are decided by the other members reach a slow one too. The last one of each lock is
 * the keeper's. */
static void test_slow_member(void)
{
    enum { LOCKS = 8, ROUNDS = 3 };
    OWNED(keeper) rowlock_keeper *keeper = members_keeper(&m, KEEPER_MS);
    OWNED(db) rowlock_db *db = members_open(&m);
    rowlock_lock *lock[LOCKS];
    int renewed = 0;
    faultproxy_slow(m.proxy[2], SLOW_US / 10);
    for (int i = 0; i < LOCKS; i++)
        lock[i] = keep(db, keeper, textf("slow %d", i), KEPT_MS);
    for (int i = 0; i < LOCKS * ROUNDS; i++)
        renewed += rowlock_renew(lock[i % LOCKS], 0) == ROWLOCK_OK;
    tap_is_int(renewed, LOCKS * ROUNDS, "renewals are decided without a slow member");
    tap_ok(renewals_become(2, "slow ", ROUNDS + 1),
           "each lock of a keeper is renewed in a member that is slower than the others");
    faultproxy_slow(m.proxy[2], 0);
    catch_up(db, keeper);
    tap_is_int(release_each(lock, LOCKS), LOCKS, "and released");
    close_each_lock(lock, LOCKS);
}

/* Only one of the members that answer has a row of the bare lock. */
static void test_bare_majority(void)
{
    enum { OTHERS = 3 };
    const char *const name[OTHERS] = {"other 1", "other 2", "other 3"};
    OWNED(keeper) rowlock_keeper *keeper = members_keeper(&m, KEEPER_MS);
    OWNED(db) rowlock_db *db = members_open(&m);
    rowlock_lock *bare = keep(db, keeper, "bare", BRIEF_MS), *other[OTHERS];
    int held = 0;
    for (int i = 0; i < OTHERS; i++)
        other[i] = keep(db, keeper, name[i], KEPT_MS);
    for (int i = 0; i < OTHERS; i++)
        is_complete(other[i]);
    is_complete(bare);
    freeze(2);
    /* With an earlier answer of member 2, a renewal would put the row back. */
    long long before = members_ask(&m, 0, "SELECT max(renewals) FROM %slocks WHERE name = 'bare'");
    renewals_become(0, "bare", (int)before + 2);
    change(0, "DELETE FROM %slocks WHERE name = 'bare'");
    tap_ok(becomes(bare, ROWLOCK_STATE_LOST),
           "a keeper loses the lock that only one of the members that answer has");
    before = members_ask(
        &m, 0, "SELECT coalesce(max(renewals), 0) FROM %slocks WHERE name LIKE 'other %%'");
    renewals_become(0, "other ", (int)before + 1);
    for (int i = 0; i < OTHERS; i++)
        held += rowlock_lock_state(other[i]) != ROWLOCK_STATE_LOST;
    tap_is_int(held, OTHERS, "and no other");
    thaw(2);
    for (int i = 0; i < OTHERS; i++)
        is_complete(other[i]);
    catch_up(db, keeper);
    rowlock_forget(bare);
    tap_is_int(release_each(other, OTHERS), OTHERS, "which are released");
    close_each_lock(other, OTHERS);
    close_locks(bare);
}

/* It answers after the others have decided. A machine that stands still ends the lease. Then a
 * longer one is tried. */
static void test_late_refusals(void)
{
    OWNED(keeper) rowlock_keeper *keeper = members_keeper(&m, KEEPER_MS);
    OWNED(db) rowlock_db *db = members_open(&m);
    bool lost = true, told = false, ended = false;
    for (int i = 0; i < TRIES && lost; i++) {
        rowlock_lock *lock = keep(db, keeper, "late refusals", (i + 1) * BRIEF_MS);
        is_complete(lock);
        faultproxy_slow(m.proxy[2], SLOW_US);
        change(2, "ALTER TABLE %slocks RENAME TO hidden");
        told = becomes(lock, ROWLOCK_STATE_JEOPARDY);
        change(2, "ALTER TABLE hidden RENAME TO %slocks");
        faultproxy_slow(m.proxy[2], 0);
        ended = becomes(lock, ROWLOCK_STATE_HELD);
        catch_up(db, keeper);
        lost = rowlock_lock_state(lock) == ROWLOCK_STATE_LOST;
        lost = rowlock_release(lock) != ROWLOCK_OK || lost;
        close_locks(lock);
        none_outlives_its_lease();
    }
    tap_ok(told, "a keeper tells that a slow member refuses its renewals");
    tap_ok(ended, "and that it has the row again");
    tap_ok(!lost, "it is released");
    tap_ok(rows_become(&m, 0, 0, 0), "no row is left in any member");
}

/* ---- a check */

static int note_vote(void *votes, const rowlock_finding *finding)
{
    strcat(votes, finding->verdict == ROWLOCK_FINE ? "v" : "-");
    return 0;
}

/* At each of its requests, until a check needs no more of them. The last one says goodbye. */
static void test_check(void)
{
    enum { REQUESTS = 3, REQUESTS_MOST = 30 };
    for (int i = 0; i < MEMBERS; i++) {
        const char want[] = {i ? 'v' : '-', i == 1 ? '-' : 'v', i == 2 ? '-' : 'v', '\0'};
        int lost = 0, odd = 0;
        bool fired = true;
        rowlock_db_options how = *OPTIONS(db, .reconnect_ms = -1);
        for (int n = 1; fired && odd == 0 && n < REQUESTS_MOST; n++) {
            rowlock_error err = ROWLOCK_ERROR_INIT;
            char votes[MEMBERS + 1] = "";
            faultproxy_arm(m.proxy[i], n, (struct fault){FAULT_CUT, ON_REQUEST, 0});
            int result =
                rowlock_quorum_check(url_list(m.urls, MEMBERS).text, &how, note_vote, votes, &err);
            fired = faultproxy_fired(m.proxy[i]);
            bool told = result == ROWLOCK_OK && strcmp(votes, want) == 0;
            lost += told;
            odd += !told && (result != ROWLOCK_OK || strcmp(votes, "vvv") != 0);
            if (odd)
                tap_note("request %d: %s %s", n, votes, err.text);
        }
        faultproxy_arm(m.proxy[i], 0, (struct fault){FAULT_CUT, ON_REQUEST, 0});
        tap_ok(odd == 0 && lost >= REQUESTS,
               "member %d is lost while it is checked: it does not vote, the others do", i);
    }
}

/* ---- two of three */

static void test_two(const char *what, void (*break_it)(int i), void (*mend_it)(int i))
{
    rowlock_keeper *keeper = members_keeper(&m, HASTY_MS);
    rowlock_db *db = members_open(&m), *hasty = members_open_within(&m, HASTY_MS);
    rowlock_lock *held = keep(db, keeper, "held", BRIEF_MS), *wanted = must_lock(db, "wanted");
    rowlock_lock *never = must_lock(hasty, "wanted");
    int granted = 0;
    break_it(1);
    break_it(2);
    for (int i = 0; i < 2; i++)
        granted += try_lock(never, LONG_MS) == ROWLOCK_OK;
    tap_is_int(granted, 0, "members 1 and 2 are %s: nothing is granted", what);
    tap_ok(becomes(held, ROWLOCK_STATE_LOST), "a holder knows that its lease is over");
    mend_it(1);
    mend_it(2);
    int said = wait_lock(wanted, LONG_MS, slow_ms(PATIENCE_MS));
    if (!is_result(db, said, ROWLOCK_OK, "they are back: it is granted"))
        note_rows(never, said);
    is_result(db, rowlock_release(wanted), ROWLOCK_OK, "and released");
    rowlock_forget(held);
    close_locks(held, wanted, never);
    close_dbs(db, hasty);
    rowlock_keeper_close(keeper);
    for (int i = 0; i < MEMBERS; i++)
        change(i, "DELETE FROM %slocks");
}

static void test_close(void)
{
    rowlock_db *db = members_open(&m);
    rowlock_lock *lock = must_lock(db, "closed");
    freeze(1);
    is_result(db, try_lock(lock, LONG_MS), ROWLOCK_OK, "granted while a member hangs");
    rowlock_db_close(db);
    close_locks(lock);
    tap_ok(true, "a handle is closed while a member hangs");
    thaw(1);
    tap_ok(rows_become(&m, 0, 0, 0) || rows_in(&m, 1) == 1, "and its locks are released");
    change(1, "DELETE FROM %slocks");
}

static int run(const struct raw *raw, const char *url)
{
    if (strstr(url, "rowlock_pooler="))
        return tap_skip_all("a pooler hides the members' connections");
    members_make(&m, raw, url);
    test_one("down", down, up);
    test_one("frozen", freeze, thaw);
    test_released_meanwhile();
    with_each("owed", test_debt);
    with_each("one left", test_release_without_two);
    test_release_in_two(false);
    test_release_in_two(true);
    test_cancelled();
    with_each("last", test_last);
    with_each("late", test_late_grant);
    with_each("refused", test_late_refusal);
    test_try(false);
    test_try(true);
    test_top_up(false);
    test_top_up(true);
    test_slow_member();
    test_bare_majority();
    test_late_refusals();
    test_check();
    test_two("down", down, up);
    test_two("frozen", freeze, thaw);
    test_close();
    members_drop(&m);
    return tap_done();
}

EACH_MAIN(run)
