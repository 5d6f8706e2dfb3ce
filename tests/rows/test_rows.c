/* SPDX-License-Identifier: MIT
 *
 * What core makes of the answers to changes of rows: those that no database gives on demand. What
 * databases answer is in the contract tests, transactions are in test_frames.c.
 */
#include "backend_script.h"
#include "fail_alloc.h"
#include "quick.h"
#include "tap.h"

#include <stdio.h>
#include <string.h>

enum { ROWS_MAX = 8 };

static rowlock_db *db;
static rowlock_table *table;

static void begin_on(const char *dialect, rowlock_db *(*connect)(void))
{
    static const char *const key[] = {"id", NULL}, *const columns[] = {"price", NULL};
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    script_reset();
    script_dialect(dialect);
    script_jump();
    db = connect();
    about.name = "prices";
    about.key = key;
    about.columns = columns;
    about.first_version = 1;
    if (rowlock_table_open(db, &about, &table) != ROWLOCK_OK)
        tap_ok(false, "a table is opened: %s", why(db));
    script_calls();
}

static rowlock_db *open_own(void)
{
    return script_open(NULL);
}

static void begin(const char *dialect)
{
    begin_on(dialect, open_own);
}

static void begin_adopted(const char *dialect)
{
    begin_on(dialect, script_adopt);
    script.inside = true;
}

static void end(void)
{
    rowlock_table_close(table);
    rowlock_db_close(db);
}

/* Rows 1, 2, … of version 7, 8, …, as they were read. */
static rowlock_change changes[ROWS_MAX];
static rowlock_value keys[ROWS_MAX], values[ROWS_MAX];
static size_t prepared;

static void prepare(size_t count)
{
    prepared = count;
    for (size_t i = 0; i < count; i++) {
        keys[i] = rowlock_int((int64_t)i + 1);
        values[i] = rowlock_decimal("19.90");
        changes[i] =
            (rowlock_change){.key = &keys[i], .values = &values[i], .version = (int64_t)i + 7};
    }
}

static int update(size_t count)
{
    prepare(count);
    return rowlock_update(table, changes, count, NULL);
}

static int insert(size_t count)
{
    prepare(count);
    return rowlock_insert(table, changes, count, NULL);
}

static int update_all_or_nothing(void)
{
    rowlock_change_options how = ROWLOCK_CHANGE_OPTIONS_INIT;
    how.all_or_nothing = 1;
    prepare(3);
    return rowlock_update(table, changes, 3, &how);
}

static const char *short_name(int result)
{
    return rowlock_result_name(result) + strlen("ROWLOCK_");
}

/* "STALE: STALE 20, OK 9": what the call returns, then each row's result and version. calls: the
 * statements that were sent, NULL: any. */
static void becomes(int result, const char *want, const char *calls, const char *what)
{
    char got[400];
    size_t used = (size_t)snprintf(got, sizeof got, "%s:", short_name(result));
    for (size_t i = 0; i < prepared; i++)
        used += (size_t)snprintf(got + used, sizeof got - used, "%s %s %lld", i ? "," : "",
                                 short_name(changes[i].result), (long long)changes[i].current);
    tap_is_str(got, want, "%s", what);
    const char *sent = script_calls();
    if (calls)
        tap_is_str(sent, calls, "%s: what is sent", what);
}

static void says(const char *words)
{
    tap_ok(strstr(why(db), words) != NULL, "it says \"%s\": %s", words, why(db));
}

/* A row of the answer to row_read: key, column, version. */
#define READ(version) ROWS(3, rowlock_int(1), rowlock_decimal("1"), rowlock_int(version))

/* ---- lost answers */

static void test_lost_but_applied(void)
{
    begin("postgres");
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNCERTAIN));
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(READ(8)));
    becomes(update(1), "EUNCERTAIN: EUNCERTAIN 8", "row_update open row_update row_read",
            "a lost answer, and then the row has another version: ours, or another's");
    tap_is_int(error_code(db), ROWLOCK_EUNCERTAIN, "the handle says so too");
    script_next(OP_ROW_REMOVE, FAILS(RLK_UNCERTAIN));
    script_next(OP_ROW_REMOVE, ANSWER(.missing = true));
    prepare(1);
    becomes(rowlock_remove(table, changes, 1, NULL), "EUNCERTAIN: EUNCERTAIN 0", NULL,
            "a row that is not there any more: removed by us, or by another");
    script_next(OP_ROW_INSERT, FAILS(RLK_UNCERTAIN));
    script_next(OP_ROW_INSERT, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(READ(1)));
    becomes(insert(1), "EUNCERTAIN: EUNCERTAIN 1", NULL, "a row that is there: ours, or another's");
    end();
}

static void test_lost_not_applied(void)
{
    begin("postgres");
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNCERTAIN));
    becomes(update(1), "OK: OK 8", "row_update open row_update",
            "a lost answer, and the row is as it was: the second sending changes it");
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNSENT));
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(READ(9)));
    becomes(update(1), "STALE: STALE 9", NULL, "what was certainly not sent leaves no doubt");
    says("row 1 has version 9, not 7");
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNCERTAIN));
    script_always(OP_ROW_UPDATE, FAILS(RLK_CONTENTION));
    becomes(update(1), "EUNCERTAIN: EUNCERTAIN 0", NULL, "a lost answer, and then lost races only");
    end();
}

static void test_unreachable(void)
{
    begin("postgres");
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNCERTAIN));
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    becomes(update(1), "EUNCERTAIN: EUNCERTAIN 0", NULL,
            "a lost answer that cannot be asked for again");
    becomes(update(1), "ECONN: CANCELLED 0", NULL, "no connection at all: no row was reached");
    end();
}

/* ---- conflicts */

static void test_conflicts(void)
{
    begin("postgres");
    script_next(OP_ROW_UPDATE, FAILS(RLK_CONTENTION));
    script_next(OP_ROW_UPDATE, FAILS(RLK_CONTENTION));
    becomes(update(1), "OK: OK 8", "row_update row_update row_update",
            "outside of a transaction what lost a race is sent again until it wins");
    script_always(OP_ROW_UPDATE, FAILS(RLK_CONTENTION));
    becomes(update(1), "ESERVER: UNDONE 0", NULL, "or until the statement's time is over");
    end();
    begin_adopted("postgres");
    script_next(OP_ROW_UPDATE,
                ANSWER(.class = RLK_CONTENTION, .text = "serialization", .tx_over = true));
    becomes(update(1), "CONFLICT: CANCELLED 0", "row_update",
            "inside of one it is sent once, and is a conflict");
    tap_is_int(db->error.transaction_over, 1, "which ended the transaction");
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_CONTENTION, .text = "lock timeout"));
    becomes(update(1), "CONFLICT: CANCELLED 0", NULL, "another conflict");
    tap_is_int(db->error.transaction_over, 0, "leaves it as it is");
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNCERTAIN));
    becomes(update(1), "ECONN: CANCELLED 0", NULL,
            "a lost connection took the transaction with it");
    tap_is_int(db->error.transaction_over, 1, "and says so");
    becomes(update(1), "ECONN: CANCELLED 0", "", "it stays lost, and nothing is sent on it");
    end();
}

/* A driver tells the rows, and then the commit of that very statement loses a race. */
static void apply_and_lose(struct rlk_query *query)
{
    const rowlock_value version = rowlock_int(8);
    query->each(query->context, &version, 1);
    query->changed = 1;
}

static void test_told_and_undone(void)
{
    begin("sqlite");
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_CONTENTION, .give = apply_and_lose));
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(READ(9)));
    becomes(update(1), "STALE: STALE 9", NULL,
            "what was told before its commit failed is not what the second sending did");
    end();
}

/* ---- what cannot be */

/* The row was not changed, and yet it has the version expected: so often. */
static void look_changed_back(int times)
{
    static rowlock_value row[3];
    row[0] = row[1] = rowlock_int(1);
    row[2] = rowlock_int(7);
    for (int i = 0; i < times; i++) {
        script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
        script_next(OP_ROW_READ, ANSWER(.cells = row, .width = 3, .rows = 1));
    }
}

static void test_paradox(void)
{
    begin("postgres");
    look_changed_back(1);
    becomes(update(1), "OK: OK 8", "row_update row_read row_update",
            "a row that was changed back before the look is tried again at once");
    look_changed_back(1);
    script_next(OP_ROW_UPDATE, FAILS(RLK_DENIED));
    becomes(update(1), "EDENIED: CANCELLED 0", NULL,
            "tried again after a change back, and refused: it was not applied");
    look_changed_back(1);
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, FAILS(RLK_DENIED));
    becomes(update(1), "EDENIED: CANCELLED 0", NULL,
            "looked at again after a change back, and refused: it was not applied");
    look_changed_back(10);
    becomes(update(1), "ESERVER: ESERVER 7",
            "row_update row_read row_update row_read row_update row_read",
            "a row that is always changed back is tried three times");
    says("row 1 is as it should be");
    end();
    begin("postgres");
    for (int i = 0; i < 10; i++)
        script_next(OP_ROW_INSERT, ANSWER(.missing = true));
    becomes(insert(1), "ESERVER: ESERVER 0",
            "row_insert row_read row_insert row_read row_insert row_read",
            "a row that is there and not there is made three times");
    end();
}

static void test_duplicate(void)
{
    const struct script_answer refused =
        ANSWER(.class = RLK_VIOLATION, .text = "duplicate", .sqlstate = "23000", .native = 1062,
               .constraint = ROWLOCK_CONSTRAINT_UNIQUE);
    begin("mysql");
    script_next(OP_ROW_INSERT, refused);
    script_next(OP_ROW_READ, ANSWER(READ(3)));
    becomes(insert(1), "EXISTS: EXISTS 3", NULL, "a row that another made meanwhile is there");
    script_next(OP_ROW_INSERT, refused);
    becomes(insert(1), "VIOLATION: VIOLATION 0", NULL, "if none is there it was another key");
    tap_is_int(db->error.native, 1062, "which is told in the server's words");
    tap_is_int(db->error.constraint, ROWLOCK_CONSTRAINT_UNIQUE, "and by kind");
    tap_is_int(db->error.row, 0, "with the row");
    script_next(OP_ROW_UPDATE, refused);
    becomes(update(1), "VIOLATION: VIOLATION 0", "row_update",
            "for an update it was one anyway: no look is needed");
    end();
}

/* What takes too long by itself is not laid at the door of others. */
static void test_too_late(void)
{
    begin("postgres");
    script_always(OP_ROWS_INSERT, FAILS(RLK_CONTENTION));
    becomes(insert(2), "ESERVER: UNDONE 0, UNDONE 0", NULL,
            "a race that is lost again and again is the doing of others");
    says("others kept it busy all the time");
    script_always(OP_ROWS_INSERT,
                  (struct script_answer){.class = RLK_CONTENTION, .text = "timeout", .late = true});
    becomes(insert(2), "ESERVER: UNDONE 0, UNDONE 0", NULL,
            "a statement that takes longer than it may perhaps had too much to do");
    says("time limit");
    tap_ok(!strstr(why(db), "all the time"), "and does not blame others");
    end();
}

static void test_odd_versions(void)
{
    begin("postgres");
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(ROWS(3, rowlock_int(1), rowlock_null(), rowlock_null())));
    tap_is_int(update(1), ROWLOCK_EINVAL, "a version that is NULL is none");
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(ROWS(2, rowlock_int(1), rowlock_int(7))));
    tap_is_int(update(1), ROWLOCK_ESERVER, "a row of another shape than was asked for");
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, rowlock_int(1), rowlock_decimal("8.5"), rowlock_null(),
                                          rowlock_int(1))));
    tap_is_int(update(2), ROWLOCK_EINVAL, "a version that is no integer is none, among many too");
    end();
}

/* ---- many rows */

#define TOLD(number, version) rowlock_int(number), rowlock_int(version)
#define FOUND(number, version) LIST(NULL, number, version)
#define LIST(marks, number, version) SAME(marks, number, version, number)
#define SAME(marks, number, version, first) \
    rowlock_int(number), rowlock_int(version), rowlock_text(marks), rowlock_int(first)
#define MISSING(marks, number) \
    rowlock_int(number), rowlock_null(), rowlock_text(marks), rowlock_int(number)

/* What was made under other keys than those given is made all the same. */
static void test_strangers(void)
{
    begin("postgres");
    script_next(OP_ROWS_INSERT, ANSWER(ROWS(2, TOLD(0, 3), TOLD(2, 1))));
    becomes(insert(3), "OK: OK 1, OK 1, OK 1", "rows_insert",
            "as many were made as were given, one of them under its key: none is made again");
    script_next(OP_ROWS_INSERT, ANSWER(ROWS(2, TOLD(0, 2), TOLD(2, 1))));
    becomes(insert(3), "EUNCERTAIN: EUNCERTAIN 0, OK 1, EUNCERTAIN 0", "rows_insert",
            "two of three were made, one of them under its key: the other is the first or third");
    end();
}

static void test_marks(void)
{
    begin("mysql");
    script_next(OP_ROWS_UPDATE, ANSWER(.changed = 1));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, LIST(",2", 1, 8), FOUND(2, 9), MISSING(NULL, 3))));
    becomes(update(3), "STALE: STALE 8, OK 9, GONE 0", NULL,
            "a row that another changed, though it has the version that we would have given");
    script_next(OP_ROWS_UPDATE, ANSWER(.changed = 0));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, FOUND(1, 9), FOUND(2, 9))));
    becomes(update(2), "STALE: STALE 9, STALE 9", NULL, "none was changed");
    script_next(OP_ROWS_INSERT, ANSWER(.changed = 2));
    script_next(OP_ROWS_MARKED, ANSWER(ROWS(1, rowlock_null())));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, FOUND(1, 1), FOUND(2, 1))));
    becomes(insert(2), "EXISTS: EXISTS 1, EXISTS 1", "rows_insert rows_marked rows_find",
            "it was killed before it began, and said that all was well");
    script_next(OP_ROWS_UPDATE, ANSWER(.changed = 1));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, MISSING(",1", 1), FOUND(2, 9))));
    becomes(update(2), "STALE: OK 8, STALE 9", NULL,
            "a row that was changed, and removed by another since, was changed");
    end();
}

/* 'a' and 'A' where case does not matter: the statement marked both, and changed the row once. */
static void test_equal_keys(void)
{
    begin("mysql");
    script_next(OP_ROWS_UPDATE, ANSWER(.changed = 1));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, SAME(",1,2", 1, 8, 1), SAME(NULL, 2, 8, 1))));
    prepare(2);
    changes[1].version = 7;
    becomes(rowlock_update(table, changes, 2, NULL), "STALE: OK 8, STALE 8", NULL,
            "of two keys of one row the first has changed it, the second came too late");
    end();
}

/* The second row of three is refused: the chunk, then its halves, say these. */
static void refuse_the_second(void)
{
    const struct script_answer good = ANSWER(.changed = 1),
                               refused = ANSWER(.class = RLK_VIOLATION, .text = "check",
                                                .constraint = ROWLOCK_CONSTRAINT_CHECK);
    script_next(OP_ROWS_UPDATE, refused);
    script_next(OP_ROWS_UPDATE, refused);
    script_next(OP_ROW_UPDATE, good);
    script_next(OP_ROW_UPDATE, refused);
    script_next(OP_ROW_UPDATE, good);
}

static void is_named(void)
{
    tap_is_int(db->error.row, 1, "the row is named");
    tap_is_int(db->error.constraint, ROWLOCK_CONSTRAINT_CHECK, "with what it would break");
}

static void test_violation(void)
{
    const char *const one_is_refused = "VIOLATION: OK 8, VIOLATION 0, OK 10";
    begin("postgres");
    refuse_the_second();
    becomes(update(3), one_is_refused, "rows_update row_update rows_update row_update row_update",
            "the row that would break a constraint is looked for by halves");
    is_named();
    end();
    begin("sqlite");
    refuse_the_second();
    becomes(update(3), one_is_refused, "begin row_update row_update row_update commit",
            "where rows go one by one they are one transaction");
    is_named();
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_DONE));
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_REFUSED, .text = "constraint"));
    becomes(update(3), "ESERVER: UNDONE 0, UNDONE 0, UNDONE 0",
            "begin row_update row_update rollback", "which is undone if one is refused");
    end();
    begin("postgres");
    refuse_the_second();
    script_next(OP_ROWS_UPDATE, ANSWER(.class = RLK_VIOLATION, .text = "check"));
    becomes(update_all_or_nothing(), "VIOLATION: UNDONE 7, VIOLATION 0, UNDONE 9",
            "begin rows_update rollback begin save rows_update undo save row_update keep save "
            "rows_update undo save row_update undo save row_update keep rollback",
            "all or nothing: each half has a savepoint");
    is_named();
    end();
}

static void test_many_lost(void)
{
    begin("postgres");
    script_next(OP_ROWS_UPDATE, FAILS(RLK_UNCERTAIN));
    script_next(OP_ROWS_UPDATE, ANSWER(ROWS(2, TOLD(1, 8))));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, FOUND(1, 8), FOUND(2, 9), FOUND(3, 9))));
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_DONE));
    /* The second sending changed row 1, so the first did not. The first sending or somebody else
     * changed row 2. Row 3 is as it was. Row 4 is gone. */
    becomes(update(4), "EUNCERTAIN: OK 8, EUNCERTAIN 9, OK 10, EUNCERTAIN 0",
            "rows_update open rows_update rows_find row_update",
            "the first answer of two was lost: each row is judged by itself");
    end();
    begin("mysql");
    script_next(OP_ROWS_UPDATE, FAILS(RLK_UNCERTAIN));
    script_next(OP_ROWS_UPDATE, ANSWER(.changed = 2));
    becomes(update(2), "OK: OK 8, OK 9", NULL,
            "all are changed by the second: none was by the first");
    end();
}

/* Only the session in which rows were changed knows which they were. */
static void test_lost_between(void)
{
    static const enum rlk_class ways[] = {RLK_UNSENT, RLK_UNCERTAIN};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        begin("mysql");
        script_next(OP_ROWS_UPDATE, ANSWER(.changed = 1));
        script_next(OP_ROWS_FIND, FAILS(ways[i]));
        script_always(OP_ROWS_FIND, ANSWER(ROWS(4, FOUND(1, 8), FOUND(2, 8))));
        becomes(update(2), "EUNCERTAIN: EUNCERTAIN 8, OK 9", NULL,
                "a connection lost before the look: who changed the first row is not known");
        script_next(OP_ROWS_UPDATE, ANSWER(.changed = 1));
        script_next(OP_ROWS_FIND, FAILS(ways[i]));
        script_always(OP_OPEN, FAILS(RLK_UNSENT));
        becomes(update(2), "EUNCERTAIN: EUNCERTAIN 0, EUNCERTAIN 0", NULL,
                "a connection lost for good before the look: nothing is known of any row");
        end();
    }
    begin("postgres");
    script_next(OP_ROWS_UPDATE, ANSWER(ROWS(2, TOLD(1, 8))));
    script_next(OP_ROWS_FIND, FAILS(RLK_UNSENT));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, FOUND(1, 8), FOUND(2, 11))));
    becomes(update(2), "STALE: OK 8, STALE 11", NULL,
            "where changed rows were told it makes no difference");
    end();
}

static void test_many_failing(void)
{
    begin("postgres");
    script_next(OP_ROWS_UPDATE, ANSWER(.class = RLK_REFUSED, .text = "constraint"));
    becomes(update(2), "ESERVER: UNDONE 0, UNDONE 0", NULL,
            "a chunk that is refused changes nothing");
    script_next(OP_ROWS_UPDATE, FAILS(RLK_DENIED));
    becomes(update(2), "EDENIED: CANCELLED 0, CANCELLED 0", NULL,
            "one that was not let in was not reached");
    script_next(OP_ROWS_UPDATE, ANSWER(ROWS(2, TOLD(1, 8))));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, FOUND(1, 8), FOUND(2, 8), FOUND(3, 9))));
    script_next(OP_ROW_UPDATE, FAILS(RLK_DENIED));
    becomes(update(3), "EDENIED: OK 8, CANCELLED 0, CANCELLED 0", NULL,
            "of two that were changed back one fails: what was changed stays, the rest is not");
    end();
}

/* A driver that tells nonsense is not followed out of the array. */
static void test_odd_numbers(void)
{
    begin("postgres");
    script_next(OP_ROWS_UPDATE, ANSWER(ROWS(2, TOLD(-1, 8), TOLD(0, 8), TOLD(1, 8))));
    tap_is_int(update(2), ROWLOCK_EUNCERTAIN, "numbers of rows that were not given");
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, FOUND(3, 9))));
    tap_is_int(update(2), ROWLOCK_ESERVER, "nor asked about");
    script_next(OP_ROWS_UPDATE, ANSWER(ROWS(2, TOLD(1, 8), TOLD(1, 8))));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, FOUND(1, 8), FOUND(2, 9))));
    becomes(update(2), "STALE: OK 8, STALE 9", NULL,
            "the same row told twice counts once, and does not stand for another");
    end();
}

static void test_adopted_chunk(void)
{
    begin_adopted("postgres");
    script_next(OP_ROWS_UPDATE, ANSWER(ROWS(2, TOLD(1, 8), TOLD(2, 9))));
    becomes(update(2), "OK: OK 8, OK 9", "rows_find rows_update",
            "in the caller's transaction rows are locked in order first");
    tap_ok(strstr(script_query(1)->sql, "FOR NO KEY UPDATE") != NULL, "for a change");
    script_next(OP_ROWS_UPDATE, ANSWER(ROWS(2, TOLD(1, 8))));
    script_next(OP_ROWS_FIND, ANSWER(.class = RLK_DONE));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, FOUND(2, 12))));
    becomes(update(2), "STALE: OK 8, STALE 12", NULL, "one is stale");
    tap_ok(strstr(script_query(0)->sql, "FOR SHARE") != NULL,
           "the look locks, so that it sees what is there now");
    script_next(OP_ROWS_FIND, ANSWER(.class = RLK_CONTENTION, .text = "40001", .tx_over = true));
    becomes(update(2), "CONFLICT: CANCELLED 0, CANCELLED 0", "rows_find",
            "a conflict is sent once");
    end();
    begin_adopted("mysql");
    script_next(OP_ROWS_UPDATE, ANSWER(.changed = 2));
    becomes(update(2), "OK: OK 8, OK 9", "rows_update",
            "where rows are gone through in order anyway they are not locked first");
    end();
}

/* ---- what is not sent */

static void test_refused_before(void)
{
    rowlock_change_options how = ROWLOCK_CHANGE_OPTIONS_INIT;
    how.chunk = -1;
    begin("postgres");
    prepare(3);
    becomes(rowlock_update(table, changes, 3, &how),
            "EINVAL: CANCELLED 0, CANCELLED 0, CANCELLED 0", "", "no such chunk: nothing is sent");
    keys[2] = rowlock_int(1);
    becomes(rowlock_update(table, changes, 3, NULL),
            "EINVAL: CANCELLED 0, CANCELLED 0, CANCELLED 0", "", "a key twice: nothing is sent");
    end();
}

/* ---- memory */

static void give_all(struct rlk_query *query)
{
    query->changed = 3;
    for (int64_t i = 1; i <= 3 && query->each; i++) {
        const rowlock_value told[] = {rowlock_int(i), rowlock_int(i + 7)};
        query->each(query->context, told, 2);
    }
}

static void test_no_memory(const char *dialect, int (*call)(void))
{
    int nth = 1, result = ROWLOCK_ENOMEM;
    fail_alloc_at(0);
    int before = fail_alloc_live();
    for (; nth < 100 && result != ROWLOCK_OK; nth++) {
        begin(dialect);
        script_always(OP_ROWS_UPDATE, ANSWER(.give = give_all));
        fail_alloc_at(nth);
        result = call();
        fail_alloc_at(0);
        if (result != ROWLOCK_OK)
            tap_is_int(result, ROWLOCK_ENOMEM, "%s: memory runs out at piece %d", dialect, nth);
        bool applied = changes[0].result == ROWLOCK_OK;
        tap_ok(applied == (result == ROWLOCK_OK), "no row is called done unless all is");
        tap_ok(!script_in_tx(), "no transaction is left open");
        tap_is_int(call(), ROWLOCK_OK, "the next call goes well");
        end();
        tap_is_int(fail_alloc_live(), before, "nothing leaks");
    }
    tap_ok(nth > 4 && nth < 100, "%s: which were all pieces: %d", dialect, nth - 2);
}

static int update_three(void)
{
    return update(3);
}

int main(void)
{
    script_home("sqlite");
    test_lost_but_applied();
    test_lost_not_applied();
    test_unreachable();
    test_conflicts();
    test_told_and_undone();
    test_paradox();
    test_duplicate();
    test_odd_versions();
    test_too_late();
    test_strangers();
    test_marks();
    test_equal_keys();
    test_violation();
    test_many_lost();
    test_lost_between();
    test_many_failing();
    test_odd_numbers();
    test_adopted_chunk();
    test_refused_before();
    test_no_memory("postgres", update_three);
    test_no_memory("mysql", update_three);
    test_no_memory("sqlite", update_three);
    test_no_memory("postgres", update_all_or_nothing);
    test_no_memory("sqlite", update_all_or_nothing);
    return tap_done();
}
