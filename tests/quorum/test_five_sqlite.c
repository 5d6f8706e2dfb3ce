/* SPDX-License-Identifier: MIT
 *
 * A quorum of five files. A file that is elsewhere is a member that is away. */
#include "contract.h"
#include "each.h"

enum { FIVE = 5, TTL_MS = 60000 };

static char urls[FIVE][300], elsewhere[FIVE][320];
static const char *list[FIVE];

static void away(int i)
{
    if (rename(path_of(urls[i]), elsewhere[i]) != 0)
        raw_failed("take a member away", urls[i]);
}

static void back(int i)
{
    if (rename(elsewhere[i], path_of(urls[i])) != 0)
        raw_failed("put a member back", urls[i]);
}

/* Returns the token. 0: there was no grant, or it could not be released. */
static int64_t grant_for(const char *name, int *result)
{
    OWNED(db) rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    int64_t token = 0;
    *result =
        rowlock_db_open(url_list(list, FIVE).text,
                        OPTIONS(db, .reconnect_ms = -1, .statement_timeout_ms = 60000), &db, &err);
    if (*result != ROWLOCK_OK) {
        tap_note("%s", err.text);
        return 0;
    }
    OWNED(lock) rowlock_lock *lock = must_lock(db, name);
    *result = try_lock(lock, TTL_MS);
    if (*result == ROWLOCK_OK)
        token = rowlock_lock_token(lock);
    else if (*result != ROWLOCK_BUSY)
        tap_note("%s", why(db));
    if (token && rowlock_release(lock) != ROWLOCK_OK)
        token = 0;
    return token;
}

static int64_t grant_once(int *result)
{
    return grant_for("five", result);
}

/* A database that was used alone has counted on. */
static void test_used_before(void)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db *db = must_open(urls[0]);
    rowlock_lock *lock = must_lock(db, "five");
    int result = 0;
    int64_t before = 0;
    for (int i = 0; i < 5 && try_lock(lock, TTL_MS) == ROWLOCK_OK; i++) {
        before = rowlock_lock_token(lock);
        if (rowlock_release(lock) != ROWLOCK_OK)
            tap_note("%s", why(db));
    }
    is_result(db, try_lock(lock, 500), ROWLOCK_OK, "a program holds a lock of a member alone");
    tap_is_int(join_members(url_list(list, FIVE).text, &err), ROWLOCK_OK,
               "five files are a quorum");
    tap_ok(rowlock_lock_remaining_ms(lock) <= 0, "they are one when that lease has ended");
    close_locks(lock);
    rowlock_db_close(db);
    away(0);
    tap_ok(before > 0 && grant_once(&result) > before + 1,
           "its tokens are above those that a member gave before, alone");
    back(0);
}

/* Each two of five may be away. Neighbours in time share one member that has been there. */
static void test_two_away(void)
{
    static const int gone[][2] = {{0, 1}, {2, 3}, {0, 4}, {1, 2}, {3, 4}};
    int64_t newest = 0;
    int granted = 0, ordered = 0, result = 0;
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        away(gone[i][0]);
        away(gone[i][1]);
        int64_t token = grant_once(&result);
        granted += token > 0;
        ordered += token > newest;
        newest = token;
        back(gone[i][0]);
        back(gone[i][1]);
    }
    tap_is_int(granted, 5, "with two of five away, the others grant");
    tap_is_int(ordered, 5, "and each token is higher than the one before");
}

static void test_three_away(void)
{
    int result = 0;
    for (int i = 0; i < 3; i++)
        away(i);
    tap_is_int(grant_once(&result), 0, "with three away nothing is granted");
    tap_is_result(result, ROWLOCK_ESCHEMA, "and the error tells of the files");
    for (int i = 0; i < 3; i++)
        back(i);
    tap_ok(grant_once(&result) > 0, "they grant again when all are back");
}

static int note_vote(void *context, const rowlock_finding *finding)
{
    char *votes = context;
    bool in_order = finding->item[strlen("member ")] == (char)('1' + strlen(votes));
    strcat(votes, !in_order ? "?" : strcmp(finding->value, "votes") == 0 ? "v" : "-");
    return 0;
}

/* votes: "v" or "-" for each member, in their order. */
static void votes_are(const char *votes, const char *name)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    char seen[FIVE + 1] = "";
    if (rowlock_quorum_check(url_list(list, FIVE).text, NULL, note_vote, seen, &err) != ROWLOCK_OK)
        tap_note("%s", err.text);
    tap_is_str(seen, votes, "%s", name);
}

/* A grant had three members. So the four others know of each. */
static void test_forgot(void)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    int result = 0;
    int64_t before = grant_once(&result);
    db_exec(&raw_sqlite, urls[2], "DELETE FROM rowlock_members");
    db_exec(&raw_sqlite, urls[2], "DELETE FROM rowlock_tokens");
    away(0);
    away(1);
    tap_is_int(grant_once(&result), 0, "a member that forgot does not vote");
    back(0);
    back(1);
    votes_are("vv-vv", "a check says that it does not vote");
    OWNED(session) void *session = raw_sqlite.open(urls[2]);
    raw_run(&raw_sqlite, session, "BEGIN IMMEDIATE");
    result = rowlock_quorum_join(url_list(list, FIVE).text, 0,
                                 OPTIONS(db, .statement_timeout_ms = 1000), &err);
    tap_ok(result == ROWLOCK_ESERVER && err.retryable, "a busy member: try again: %s", err.text);
    raw_run(&raw_sqlite, session, "COMMIT");
    tap_is_int(join_members(url_list(list, FIVE).text, &err), ROWLOCK_OK, "it joins");
    votes_are("vvvvv", "and that it votes then");
    away(0);
    away(1);
    tap_ok(grant_once(&result) > before, "it votes, and knows the tokens");
    back(0);
    back(1);
}

/* It is an old copy. Since it was made, two others have joined again. */
static void test_old_copy(void)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    db_exec(&raw_sqlite, urls[0], "UPDATE rowlock_members SET mark = 'old' WHERE member IN (3, 4)");
    db_exec(&raw_sqlite, urls[0], "UPDATE rowlock_members SET moved = 1 WHERE member = 1");
    db_exec(&raw_sqlite, urls[1], "UPDATE rowlock_members SET moved = 2 WHERE member = 1");
    votes_are("-vvvv", "an old copy does not vote");
    tap_is_int(join_members(url_list(list, FIVE).text, &err), ROWLOCK_OK,
               "it joins, although it has old marks of two others");
    votes_are("vvvvv", "and all vote then");
}

static int count_strangers(void *strangers, const rowlock_finding *finding)
{
    *(int *)strangers += strstr(finding->value, "another quorum") != NULL;
    return 0;
}

/* Three of five. No one of the others need know of a grant. */
static void test_majority_lost(void)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    int result = 0;
    int64_t before = grant_once(&result);
    for (int i = 0; i < 3; i++)
        db_exec(&raw_sqlite, urls[i], "DELETE FROM rowlock_members");
    tap_is_int(join_members(url_list(list, FIVE).text, &err), ROWLOCK_ESCHEMA,
               "a majority that forgot does not join");
    tap_ok(strstr(err.text, "3 of the 5 members have lost") != NULL, "and the error says why");
    votes_are("-----", "a check finds no member that votes");
    int strangers = 0;
    tap_is_int(
        rowlock_quorum_check(url_list(list, FIVE).text, NULL, count_strangers, &strangers, &err),
        ROWLOCK_OK, "the others are asked why");
    tap_is_int(strangers, 0, "they are of no other quorum");
    for (int i = 3; i < FIVE; i++)
        db_exec(&raw_sqlite, urls[i], "DELETE FROM rowlock_members");
    tap_is_int(join_members(url_list(list, FIVE).text, &err), ROWLOCK_OK, "a new quorum is made");
    tap_ok(grant_once(&result) > before, "and its tokens are above all that are known");
}

/* ---- a transaction of the caller's, in one member */

static void test_transaction(void)
{
    OWNED(db) rowlock_db *db = must_open(urls[1]);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "inside");
    OWNED(session) void *session = raw_sqlite.open(urls[1]);
    OWNED(db) rowlock_db *tx = must_adopt(&raw_sqlite, session, NULL);
    raw_run(&raw_sqlite, session, "BEGIN IMMEDIATE");
    is_result(tx, rowlock_tx_acquire(lock, tx, NULL), ROWLOCK_ESCHEMA,
              "a member grants nothing in a transaction, either");
    raw_run(&raw_sqlite, session, "ROLLBACK");
}

/* ---- many programs that begin while marks move */

enum { STARTERS = 8 };

static atomic_int odd;

static int start_one(void *argument)
{
    int result = ROWLOCK_BUSY; /* others may keep a file busy for a second */
    while (result == ROWLOCK_BUSY)
        grant_for(argument, &result);
    odd += result != ROWLOCK_OK;
    return 0;
}

static void test_starts(void)
{
    static char names[STARTERS][20];
    struct helper *starter[STARTERS];
    int rounds = getenv("ROWLOCK_TEST_LONG") ? 40 : 10;
    for (int i = 0; i < STARTERS; i++)
        snprintf(names[i], sizeof names[i], "starter %d", i);
    away(3);
    away(4);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 3; i++)
            db_exec(&raw_sqlite, urls[i],
                    "UPDATE rowlock_members SET moved = max(moved - 40000000, 0)");
        for (int i = 0; i < STARTERS; i++)
            starter[i] = helper_start(start_one, names[i]);
        for (int i = 0; i < STARTERS; i++)
            helper_join(starter[i]);
    }
    tap_is_int(odd, 0, "with two away, no program that begins while marks move is refused");
    back(3);
    back(4);
}

static int run(const struct raw *raw, const char *url)
{
    for (int i = 0; i < FIVE; i++) {
        snprintf(urls[i], sizeof urls[i], "%s.five%d", url, i + 1);
        snprintf(elsewhere[i], sizeof elsewhere[i], "%s.away%d", path_of(url), i + 1);
        list[i] = urls[i];
        must_install(urls[i]);
    }
    test_used_before();
    test_two_away();
    test_three_away();
    test_forgot();
    test_old_copy();
    test_majority_lost();
    test_transaction();
    test_starts();
    return tap_done();
}

EACH_MAIN(run)
