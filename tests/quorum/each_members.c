/* SPDX-License-Identifier: MIT
 *
 * A quorum of three members that all are there: what a client is granted, and who joins. */
#include "each.h"
#include "members.h"

#include <sys/stat.h>

enum { TTL_MS = 60000 };
/* A handle that is closed soon may leave a mark that no other member knows. */
enum { TRIES = 100 };

static struct members members;
/* All URLs in one text, past the proxies, until the statement ends. */
#define STRAIGHT url_list((const char *const *)members.straight, MEMBERS).text
/* With ROWLOCK_TEST_LONG=1 five times as many. */
static int much = 1, threads_at_rest;

static int threads(void)
{
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 ? (int)tasks.st_nlink : 0;
}

static void test_alone(void)
{
    int turns = 200 * much;
    OWNED(db) rowlock_db *db = members_open(&members);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "alone");
    int64_t newest = 0, granted = 0, released = 0, ordered = 0;
    for (int i = 0; i < turns; i++) {
        if (try_lock(lock, TTL_MS) != ROWLOCK_OK)
            continue;
        granted++;
        ordered += rowlock_lock_token(lock) > newest;
        newest = rowlock_lock_token(lock);
        released += rowlock_release(lock) == ROWLOCK_OK;
        rowlock_forget(lock);
    }
    tap_is_int(granted, turns, "a client that is alone is always granted the lock");
    tap_is_int(released, turns, "and is never told LOST");
    tap_is_int(ordered, turns, "and each token is higher than the one before");
    tap_ok(rows_become(&members, 0, 0, 0), "no row is left in any member");
}

/* One old URL in a crontab would be enough for two holders. */
static void test_lone_member(void)
{
    OWNED(db) rowlock_db *db = must_open(members.straight[1]);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "lone");
    rowlock_lock *both[] = {lock, must_lock(db, "another")};
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_ESCHEMA, "a member grants nothing by itself");
    tap_ok(strstr(why(db), "member 2 of a quorum") != NULL, "and says that it is one");
    is_result(db, rowlock_acquire_all(both, 2, NULL, NULL), ROWLOCK_ESCHEMA, "nor two locks");
    is_result(db, wait_lock(lock, TTL_MS, 60000), ROWLOCK_ESCHEMA, "nor to one that waits");
    tap_ok(rows_become(&members, 0, 0, 0), "no row is left in any member");
    tap_is_int(members_ask(&members, 1, "SELECT count(*) FROM %swaiters"), 0, "and no ticket");
    close_locks(both[1]);
}

/* ---- a backup that is younger than the last join */

static int64_t grant_once(const char *name, int rows)
{
    OWNED(db) rowlock_db *db = members_open(&members);
    OWNED(lock) rowlock_lock *lock = must_lock(db, name);
    int64_t token = try_lock(lock, TTL_MS) == ROWLOCK_OK ? rowlock_lock_token(lock) : 0;
    if (rows >= 0)
        tap_ok(rows_become(&members, rows, 1, 1), "member 1 %s", rows ? "votes" : "does not vote");
    if (token && rowlock_release(lock) != ROWLOCK_OK)
        tap_note("%s", why(db));
    return token;
}

/* Each mark is known, as it is now, to so many of the other members. */
static bool marks_are_known_to(int others)
{
    bool known = true;
    for (int i = 0; i < MEMBERS; i++) {
        char of[] = "SELECT moved FROM %smembers WHERE member = 1";
        of[sizeof of - 2] = (char)('1' + i);
        long long now = members_ask(&members, i, of);
        int same = -1;
        for (int other = 0; other < MEMBERS; other++)
            same += now > 0 && members_ask(&members, other, of) == now;
        known = known && same >= others;
    }
    return known;
}

static bool marks_are_known(void)
{
    return marks_are_known_to(MEMBERS - 1);
}

static void join_again(const char *text)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    tap_is_str(join_members(STRAIGHT, &err) == ROWLOCK_OK ? "" : err.text, "", "%s", text);
}

/* While a handle that was closed may still read and move marks, members that are changed one after
 * the other look restored. */
static void let_an_hour_pass(void)
{
    tap_ok(EVENTUALLY(threads() <= threads_at_rest), "no thread of a closed handle is left");
    for (int i = 0; i < MEMBERS; i++)
        members_change(&members, i, "UPDATE %smembers SET moved = moved - %lld", 3600000000);
}

static void test_backup(void)
{
    for (int i = 0; i < TRIES && !marks_are_known(); i++)
        grant_once("backup", -1);
    tap_ok(marks_are_known(), "the marks have moved on, and the members have told each other");
    let_an_hour_pass();
    long long then = members_ask(&members, 0, "SELECT moved FROM %smembers WHERE self");
    int64_t before = grant_once("backup", 1);
    for (int i = 0; i < TRIES && !marks_are_known(); i++)
        before = grant_once("backup", -1);
    tap_ok(marks_are_known(), "the marks move on again with the next grants");
    /* What a backup of an hour ago has. A program that has ended may still be moving a mark from
     * `then` on. */
    members_change(&members, 0, "UPDATE %smembers SET moved = %lld WHERE self", then - 1);
    members_change(&members, 0, "DELETE FROM %stokens", 0);
    int64_t after = grant_once("backup", 0);
    tap_ok(after > before, "the others grant on");
    join_again("it joins again");
    tap_ok(grant_once("backup", 1) > after, "and its tokens go on");
}

/* Since the backup was made, each member has joined again. */
static void test_old_backup(void)
{
    members_change(&members, 0, "CREATE TABLE old AS SELECT * FROM %smembers", 0);
    for (int i = 0; i < MEMBERS; i++) {
        members_change(&members, i, "DELETE FROM %smembers", 0);
        join_again("a member that forgot joins again");
    }
    int64_t before = grant_once("backup", 1);
    members_change(&members, 0, "DELETE FROM %smembers", 0);
    members_change(&members, 0, "INSERT INTO %smembers SELECT * FROM old", 0);
    members_change(&members, 0, "DROP TABLE old", 0);
    tap_ok(grant_once("backup", 0) > before,
           "the others know that it is the old one, and grant on");
    join_again("it is the only one that has lost what it knew: it joins");
    tap_ok(grant_once("backup", 1) > before, "and it has all tokens");
}

/* Two of three, as after a power cut. A restart that kept all commits looks like one that lost
 * some. */
static void test_restarted(void)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    int64_t before = grant_once("backup", -1);
    for (int i = 0; i < 2; i++)
        members_change(&members, i, "UPDATE %smembers SET started = started + 100000 WHERE self",
                       0);
    rowlock_db *db = NULL;
    tap_is_int(rowlock_db_open(url_list(members.urls, MEMBERS).text, NULL, &db, &err),
               ROWLOCK_ESCHEMA, "a majority was restarted: nothing is granted");
    tap_ok(strstr(err.text, "restarted or restored") && strstr(err.text, "quorum-join"),
           "and the error says why, and what to do");
    join_again("an operator lets them vote");
    tap_ok(grant_once("backup", 1) > before, "and tokens go on");
}

/* A program may end before it has reached the third member. */
static void test_half_told(void)
{
    int told = 0, programs = 4 * much;
    for (int i = 0; i < TRIES && !marks_are_known(); i++)
        grant_once("told", -1);
    for (int i = 0; i < programs; i++) {
        let_an_hour_pass();
        rowlock_db_close(members_open(&members));
        if (!EVENTUALLY(marks_are_known_to(1)))
            break;
        told++;
    }
    tap_is_int(told, programs, "short programs tell one member that the mark of another has moved");
}

/* ---- joins at once */

enum { JOINS = 4 };

static atomic_int joined;

static int join_once(void *unused)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    if (join_members(STRAIGHT, &err) == ROWLOCK_OK)
        joined++;
    else
        tap_note("%s", err.text);
    return 0;
}

static int count_vote(void *votes, const rowlock_finding *finding)
{
    *(int *)votes += finding->verdict == ROWLOCK_FINE;
    return 0;
}

/* Until a round leaves no ticket: while the machine stands still, a leave may miss its time limit. */
static void test_joins(int forget, const char *what)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    struct helper *helper[JOINS];
    int votes = 0, round = 0, left = 1;
    joined = 0;
    for (; round < much || (left > 0 && round < TRIES); round++) {
        left = 0;
        for (int i = 0; i < MEMBERS; i++)
            members_change(&members, i, "DELETE FROM %swaiters", 0);
        for (int i = 0; i < forget; i++)
            members_change(&members, i, "DELETE FROM %smembers", 0);
        for (int i = 0; i < JOINS; i++)
            helper[i] = helper_start(join_once, NULL);
        for (int i = 0; i < JOINS; i++)
            helper_join(helper[i]);
        if (rowlock_quorum_check(STRAIGHT, NULL, count_vote, &votes, &err) != ROWLOCK_OK)
            tap_note("%s", err.text);
        for (int i = 0; i < MEMBERS; i++)
            left += (int)members_ask(&members, i, "SELECT count(*) FROM %swaiters");
    }
    tap_is_int(joined, round * JOINS, "no join of several at once fails: %s", what);
    tap_is_int(votes, round * MEMBERS, "and all members vote then");
    tap_is_int(left, 0, "none has left a ticket");
}

/* ---- a grant that is under way */

enum { CALL_MS = 3000, LATE_MS = 1000 };
static int lease_ms;

static int take_late(void *lock)
{
    return try_lock(lock, lease_ms);
}

/* One member has answered and loses that. The other one is slow. A join must not be over before the
 * grant is. Returns whether that came about: a slow machine may miss a time limit. */
static bool grant_half(int call_ms, bool *both)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    OWNED(db) rowlock_db *db = members_open_within(&members, call_ms);
    OWNED(lock) rowlock_lock *late = must_lock(db, "half");
    if (try_lock(late, TTL_MS) != ROWLOCK_OK || rowlock_release(late) != ROWLOCK_OK ||
        !rows_become(&members, 0, 0, 0))
        return false;
    faultproxy_refuse(members.proxy[2]);
    faultproxy_cut(members.proxy[2]);
    faultproxy_arm(members.proxy[1], 1, (struct fault){FAULT_DELAY, ON_REQUEST, LATE_MS});
    lease_ms = call_ms + LATE_MS;
    struct helper *helper = helper_start(take_late, late);
    bool granted = EVENTUALLY(rows_in(&members, 0) == 1);
    members_change(&members, 0, "DELETE FROM %slocks", 0);
    members_change(&members, 0, "DELETE FROM %smembers", 0);
    faultproxy_accept(members.proxy[2]);
    int votes = rowlock_quorum_join(
        STRAIGHT, 0, OPTIONS(db, .statement_timeout_ms = call_ms, .connect_timeout_ms = 60000),
        &err);
    int result = helper_join(helper);
    OWNED(db) rowlock_db *other = must_quorum((const char *const *)members.straight, MEMBERS, NULL);
    OWNED(lock) rowlock_lock *rival = must_lock(other, "half");
    bool taken = wait_lock(rival, TTL_MS, 60000) == ROWLOCK_OK;
    *both = taken && result == ROWLOCK_OK && rowlock_lock_remaining_ms(late) > 0;
    tap_note("%s, %s %s", rowlock_result_name(result), rowlock_result_name(votes), err.text);
    return granted && votes == ROWLOCK_OK && result == ROWLOCK_OK && taken;
}

/* Handles that are closed may leave a row in a member that they could not reach. */
static void test_half_granted(void)
{
    bool came = false, both = false;
    for (int call_ms = CALL_MS; !came && !both && call_ms < 100000; call_ms *= 4) {
        came = grant_half(call_ms, &both);
        for (int i = 0; i < MEMBERS; i++)
            members_change(&members, i, "DELETE FROM %slocks", 0);
        join_again("all members vote again");
    }
    tap_ok(came, "a member loses what it has granted, and another one grants late");
    tap_ok(!both, "and joins when that grant is over");
}

/* A member tells who votes, but not what is left of its leases, which are too long ago for a number.
 * The others know a newer mark of it. */
static void test_half_read(void)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    int votes = 0;
    OWNED(db) rowlock_db *db = members_open(&members);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "half");
    tap_ok(try_lock(lock, TTL_MS) == ROWLOCK_OK && rows_become(&members, 1, 1, 1),
           "a lock is held");
    members_change(&members, 1, "UPDATE %smembers SET moved = moved + 1000000 WHERE member = 1", 0);
    members_change(&members, 0, "UPDATE %slocks SET expires = %lld", INT64_MIN);
    int result = rowlock_quorum_check(STRAIGHT, NULL, count_vote, &votes, &err);
    tap_ok(result == ROWLOCK_OK && votes == MEMBERS - 1, "a check finds the others: %s", err.text);
    members_change(&members, 0, "DELETE FROM %slocks", 0);
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "a majority has still had it");
    join_again("it joins when it can tell");
}

static int run(const struct raw *raw, const char *url)
{
    members_make(&members, raw, url);
    /* A sanitizer may start a thread of its own with the first one. */
    helper_join(helper_start(join_once, NULL));
    threads_at_rest = threads();
    much = getenv("ROWLOCK_TEST_LONG") ? 5 : 1;
    test_alone();
    test_lone_member();
    test_half_told();
    if (members.proxy[0]) {
        test_half_granted();
        test_half_read();
    }
    /* A join waits until a MySQL has run for 10 s. */
    test_backup();
    test_old_backup();
    test_restarted();
    test_joins(1, "a member that was restored");
    test_joins(MEMBERS, "a new quorum");
    members_drop(&members);
    return tap_done();
}

EACH_MAIN(run)
