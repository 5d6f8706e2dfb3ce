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

static const char *const key[] = {"id", NULL}, *const columns[] = {"price", NULL};

static void must_table(const char *set)
{
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    about.name = "prices";
    about.key = key;
    about.columns = columns;
    about.set = set;
    about.first_version = 1;
    if (rowlock_table_open(db, &about, &table) != ROWLOCK_OK)
        tap_ok(false, "a table is opened: %s", why(db));
    script_calls();
}

static void begin(const char *dialect)
{
    script_reset();
    script_dialect(dialect);
    script_jump();
    db = script_open(NULL);
    must_table(NULL);
}

static void begin_adopted(const char *dialect)
{
    script_reset();
    script_dialect(dialect);
    script_jump();
    db = script_adopt();
    must_table(NULL);
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

static void prepare(size_t count)
{
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

static void became(size_t row, int result, int64_t current, const char *what)
{
    tap_is_int(changes[row].result, result, "row %zu is %s: %s", row + 1,
               rowlock_result_name(result), what);
    tap_is_int(changes[row].current, current, "with this version");
}

/* A row of the answer to row_read: key, column, version. */
#define READ(version) ROWS(3, rowlock_int(1), rowlock_decimal("1"), rowlock_int(version))

/* ---- one row */

static void test_one(void)
{
    begin("postgres");
    tap_is_int(update(1), ROWLOCK_OK, "one row is updated");
    tap_is_str(script_calls(), "row_update", "by one statement");
    became(0, ROWLOCK_OK, 8, "as the database says");
    tap_is_int(insert(1), ROWLOCK_OK, "one is inserted");
    became(0, ROWLOCK_OK, 1, "of the first version");
    tap_is_int(rowlock_remove(table, changes, 1, NULL), ROWLOCK_OK, "one is removed");
    became(0, ROWLOCK_OK, 0, "it has none any more");
    end();
    begin("mysql");
    tap_is_int(update(1), ROWLOCK_OK, "where only the number of rows is told");
    became(0, ROWLOCK_OK, 8, "the version is known all the same");
    tap_is_int(insert(1), ROWLOCK_OK, "so it is");
    became(0, ROWLOCK_OK, 1, "for inserted rows");
    tap_is_str(script_calls(), "row_update row_insert", "one statement each");
    end();
}

static void test_one_not_applied(void)
{
    begin("postgres");
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(READ(9)));
    tap_is_int(update(1), ROWLOCK_STALE, "a row that was not changed is looked at");
    tap_is_str(script_calls(), "row_update row_read", "once");
    became(0, ROWLOCK_STALE, 9, "as it was found");
    tap_ok(strstr(why(db), "row 1 has version 9, not 7") != NULL, "in words: %s", why(db));
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    tap_is_int(update(1), ROWLOCK_GONE, "or is not there");
    became(0, ROWLOCK_GONE, 0, "so it has no version");
    script_next(OP_ROW_INSERT, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(READ(9)));
    tap_is_int(insert(1), ROWLOCK_EXISTS, "one that was there before");
    became(0, ROWLOCK_EXISTS, 9, "as it was found");
    script_next(OP_ROW_READ, ANSWER(READ(9)));
    tap_is_int(rowlock_expect(table, changes, 1, NULL), ROWLOCK_STALE,
               "one that is only looked at");
    end();
}

/* ---- lost answers */

static void test_lost_but_applied(void)
{
    begin("postgres");
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNCERTAIN));
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(READ(8)));
    tap_is_int(update(1), ROWLOCK_EUNCERTAIN,
               "a lost answer, and then the row has another version: ours, or another's");
    tap_is_str(script_calls(), "row_update open row_update row_read", "no more is sent");
    became(0, ROWLOCK_EUNCERTAIN, 8, "as it is now");
    tap_is_int(error_code(db), ROWLOCK_EUNCERTAIN, "the handle says so too");
    end();
    begin("postgres");
    script_next(OP_ROW_REMOVE, FAILS(RLK_UNCERTAIN));
    script_next(OP_ROW_REMOVE, ANSWER(.missing = true));
    prepare(1);
    tap_is_int(rowlock_remove(table, changes, 1, NULL), ROWLOCK_EUNCERTAIN,
               "a row that is not there any more: removed by us, or by another");
    became(0, ROWLOCK_EUNCERTAIN, 0, "it has no version");
    script_next(OP_ROW_INSERT, FAILS(RLK_UNCERTAIN));
    script_next(OP_ROW_INSERT, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(READ(1)));
    tap_is_int(insert(1), ROWLOCK_EUNCERTAIN, "a row that is there: ours, or another's");
    end();
}

static void test_lost_not_applied(void)
{
    begin("postgres");
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNCERTAIN));
    tap_is_int(update(1), ROWLOCK_OK, "a lost answer, and the row is as it was: it is changed now");
    tap_is_str(script_calls(), "row_update open row_update", "by the second sending");
    became(0, ROWLOCK_OK, 8, "once");
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNSENT));
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(READ(9)));
    tap_is_int(update(1), ROWLOCK_STALE, "what was certainly not sent leaves no doubt");
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNCERTAIN));
    script_always(OP_ROW_UPDATE, FAILS(RLK_CONTENTION));
    tap_is_int(update(1), ROWLOCK_EUNCERTAIN, "a lost answer, and then lost races only");
    became(0, ROWLOCK_EUNCERTAIN, 0, "nobody knows");
    end();
}

static void test_unreachable(void)
{
    begin("postgres");
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNCERTAIN));
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    tap_is_int(update(1), ROWLOCK_EUNCERTAIN, "a lost answer that cannot be asked for again");
    became(0, ROWLOCK_EUNCERTAIN, 0, "is one");
    tap_is_int(update(1), ROWLOCK_ECONN, "no connection at all");
    became(0, ROWLOCK_CANCELLED, 0, "it was not reached");
    end();
}

/* ---- conflicts */

static void test_conflicts(void)
{
    begin("postgres");
    script_next(OP_ROW_UPDATE, FAILS(RLK_CONTENTION));
    script_next(OP_ROW_UPDATE, FAILS(RLK_CONTENTION));
    tap_is_int(update(1), ROWLOCK_OK, "outside of a transaction what lost a race is sent again");
    tap_is_str(script_calls(), "row_update row_update row_update", "until it wins");
    script_always(OP_ROW_UPDATE, FAILS(RLK_CONTENTION));
    tap_is_int(update(1), ROWLOCK_ESERVER, "or the statement's time is over");
    became(0, ROWLOCK_UNDONE, 0, "nothing was done");
    end();
    begin_adopted("postgres");
    script_next(OP_ROW_UPDATE,
                ANSWER(.class = RLK_CONTENTION, .text = "serialization", .tx_over = true));
    tap_is_int(update(1), ROWLOCK_CONFLICT, "inside of one it is a conflict");
    tap_is_str(script_calls(), "row_update", "sent once");
    tap_is_int(db->error.transaction_over, 1, "which ended the transaction");
    became(0, ROWLOCK_CANCELLED, 0, "nothing was done");
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_CONTENTION, .text = "lock timeout"));
    tap_is_int(update(1), ROWLOCK_CONFLICT, "another conflict");
    tap_is_int(db->error.transaction_over, 0, "leaves it as it is");
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNCERTAIN));
    tap_is_int(update(1), ROWLOCK_ECONN, "a lost connection took the transaction with it");
    tap_is_int(db->error.transaction_over, 1, "and says so");
    script_calls();
    tap_is_int(update(1), ROWLOCK_ECONN, "it stays lost");
    tap_is_str(script_calls(), "", "and nothing is sent on it");
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
    tap_is_int(update(1), ROWLOCK_STALE,
               "what was told before its commit failed is not what the second sending did");
    became(0, ROWLOCK_STALE, 9, "nor its version");
    end();
}

/* ---- what cannot be */

static void test_paradox(void)
{
    begin("postgres");
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(READ(7)));
    tap_is_int(update(1), ROWLOCK_OK, "a row that was changed back before the look is tried again");
    tap_is_str(script_calls(), "row_update row_read row_update", "at once");
    struct script_answer as_it_should_be = ANSWER(READ(7));
    for (int i = 0; i < 10; i++) {
        script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
        script_next(OP_ROW_READ, as_it_should_be);
    }
    tap_is_int(update(1), ROWLOCK_ESERVER, "but not for ever");
    tap_is_str(script_calls(), "row_update row_read row_update row_read row_update row_read",
               "three times");
    became(0, ROWLOCK_ESERVER, 7, "the database does not do it");
    tap_ok(strstr(why(db), "row 1 is as it should be") != NULL, "in words: %s", why(db));
    end();
    begin("postgres");
    for (int i = 0; i < 10; i++)
        script_next(OP_ROW_INSERT, ANSWER(.missing = true));
    tap_is_int(insert(1), ROWLOCK_ESERVER, "a row that is there and not there");
    tap_is_str(script_calls(), "row_insert row_read row_insert row_read row_insert row_read",
               "is made three times");
    end();
}

/* What the look has found is not what became of it. */
static void test_paradox_and_failure(void)
{
    begin("postgres");
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(READ(7)));
    script_next(OP_ROW_UPDATE, FAILS(RLK_DENIED));
    tap_is_int(update(1), ROWLOCK_EDENIED, "tried again after a change back, and refused");
    became(0, ROWLOCK_CANCELLED, 0, "it was not applied");
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(READ(7)));
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, FAILS(RLK_DENIED));
    tap_is_int(update(1), ROWLOCK_EDENIED, "looked at again after a change back, and refused");
    became(0, ROWLOCK_CANCELLED, 0, "it was not applied");
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
    tap_is_int(insert(1), ROWLOCK_EXISTS, "a row that another made meanwhile is there");
    became(0, ROWLOCK_EXISTS, 3, "as it was found");
    script_next(OP_ROW_INSERT, refused);
    tap_is_int(insert(1), ROWLOCK_VIOLATION, "if none is there it was another key");
    tap_is_int(db->error.native, 1062, "which is told in the server's words");
    tap_is_int(db->error.constraint, ROWLOCK_CONSTRAINT_UNIQUE, "and by kind");
    tap_is_int(db->error.row, 0, "with the row");
    became(0, ROWLOCK_VIOLATION, 0, "nothing was made");
    script_calls();
    script_next(OP_ROW_UPDATE, refused);
    tap_is_int(update(1), ROWLOCK_VIOLATION, "for an update it was one anyway");
    tap_is_str(script_calls(), "row_update", "no look is needed");
    end();
}

/* What takes too long by itself is not laid at the door of others. */
static void test_too_late(void)
{
    rowlock_error error = ROWLOCK_ERROR_INIT;
    begin("postgres");
    script_always(OP_ROWS_INSERT, FAILS(RLK_CONTENTION));
    tap_is_int(insert(2), ROWLOCK_ESERVER, "a race that is lost again and again");
    rowlock_db_error(db, &error);
    tap_ok(strstr(error.text, "others kept it busy all the time"), "is the doing of others");
    script_always(OP_ROWS_INSERT,
                  (struct script_answer){.class = RLK_CONTENTION, .text = "timeout", .late = true});
    tap_is_int(insert(2), ROWLOCK_ESERVER, "a statement that takes longer than it may");
    rowlock_db_error(db, &error);
    tap_ok(strstr(error.text, "time limit") && !strstr(error.text, "all the time"),
           "perhaps had too much to do");
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

static void test_arrays(void)
{
    begin("postgres");
    script_next(OP_ROWS_UPDATE, ANSWER(ROWS(2, TOLD(2, 9), TOLD(1, 8), TOLD(3, 10))));
    tap_is_int(update(3), ROWLOCK_OK, "three rows, told in any order");
    tap_is_str(script_calls(), "rows_update", "by one statement");
    for (size_t i = 0; i < 3; i++)
        became(i, ROWLOCK_OK, (int64_t)i + 8, "as told");
    tap_is_str(script_query(0)->texts[0], "{1,2,3}", "keys are one array");
    tap_is_str(script_query(0)->texts[1], "{7,8,9}", "versions another");
    script_next(OP_ROWS_UPDATE, ANSWER(ROWS(2, TOLD(2, 9))));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, FOUND(1, 20), FOUND(2, 9))));
    tap_is_int(update(3), ROWLOCK_STALE, "of three one is changed");
    tap_is_str(script_calls(), "rows_update rows_find", "and then all are looked at");
    became(0, ROWLOCK_STALE, 20, "as found");
    became(1, ROWLOCK_OK, 9, "as told");
    became(2, ROWLOCK_GONE, 0, "not found");
    end();
}

/* What was made under other keys than those given is made all the same. */
static void test_strangers(void)
{
    begin("postgres");
    script_next(OP_ROWS_INSERT, ANSWER(ROWS(2, TOLD(0, 3), TOLD(2, 1))));
    tap_is_int(insert(3), ROWLOCK_OK, "as many were made as were given, one of them under its key");
    tap_is_str(script_calls(), "rows_insert", "none is made again");
    for (size_t i = 0; i < 3; i++)
        became(i, ROWLOCK_OK, 1, "made");
    script_next(OP_ROWS_INSERT, ANSWER(ROWS(2, TOLD(0, 2), TOLD(2, 1))));
    tap_is_int(insert(3), ROWLOCK_EUNCERTAIN, "two of three, one of them under its key");
    tap_is_str(script_calls(), "rows_insert", "none is made again");
    became(0, ROWLOCK_EUNCERTAIN, 0, "this one or the third was made");
    became(1, ROWLOCK_OK, 1, "this one was");
    became(2, ROWLOCK_EUNCERTAIN, 0, "this one or the first was made");
    end();
}

static void test_json(void)
{
    begin("mysql");
    script_next(OP_ROWS_UPDATE, ANSWER(.changed = 3));
    tap_is_int(update(3), ROWLOCK_OK, "as many rows were changed as were given");
    tap_is_str(script_calls(), "rows_update", "so none is looked at");
    for (size_t i = 0; i < 3; i++)
        became(i, ROWLOCK_OK, (int64_t)i + 8, "without having been told");
    script_next(OP_ROWS_UPDATE, ANSWER(.changed = 1));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, LIST(",2", 1, 8), FOUND(2, 9), MISSING(NULL, 3))));
    tap_is_int(update(3), ROWLOCK_STALE, "of three one was changed");
    became(0, ROWLOCK_STALE, 8, "by another, though the version is the one we would have given");
    became(1, ROWLOCK_OK, 9, "by us");
    became(2, ROWLOCK_GONE, 0, "it is not there");
    script_next(OP_ROWS_UPDATE, ANSWER(.changed = 0));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, FOUND(1, 9), FOUND(2, 9))));
    tap_is_int(update(2), ROWLOCK_STALE, "none was changed");
    script_calls();
    script_next(OP_ROWS_INSERT, ANSWER(.changed = 2));
    script_next(OP_ROWS_MARKED, ANSWER(ROWS(1, rowlock_text(",2"))));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, LIST(",2", 1, 1), FOUND(2, 1))));
    tap_is_int(insert(2), ROWLOCK_EXISTS, "how many rows were inserted their number does not say");
    tap_is_str(script_calls(), "rows_insert rows_marked rows_find", "but what was passed over");
    became(0, ROWLOCK_OK, 1, "made");
    became(1, ROWLOCK_EXISTS, 1, "there before");
    script_next(OP_ROWS_INSERT, ANSWER(.changed = 2));
    script_next(OP_ROWS_MARKED, ANSWER(ROWS(1, rowlock_text(""))));
    tap_is_int(insert(2), ROWLOCK_OK, "nothing was passed over");
    tap_is_str(script_calls(), "rows_insert rows_marked", "so no row is looked at");
    became(1, ROWLOCK_OK, 1, "made");
    script_next(OP_ROWS_INSERT, ANSWER(.changed = 2));
    script_next(OP_ROWS_MARKED, ANSWER(ROWS(1, rowlock_null())));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, FOUND(1, 1), FOUND(2, 1))));
    tap_is_int(insert(2), ROWLOCK_EXISTS,
               "it was killed before it began, and said that all was well");
    became(0, ROWLOCK_EXISTS, 1, "as found");
    end();
}

/* 'a' and 'A' where case does not matter: the statement has marked both, and changed the row once. */
static void test_equal_keys(void)
{
    begin("mysql");
    script_next(OP_ROWS_UPDATE, ANSWER(.changed = 1));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, SAME(",1,2", 1, 8, 1), SAME(NULL, 2, 8, 1))));
    prepare(2);
    changes[1].version = 7;
    tap_is_int(rowlock_update(table, changes, 2, NULL), ROWLOCK_STALE, "two keys of one row");
    became(0, ROWLOCK_OK, 8, "the first has changed it");
    became(1, ROWLOCK_STALE, 8, "the second came too late");
    script_next(OP_ROWS_UPDATE, ANSWER(.changed = 1));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, MISSING(",1", 1), FOUND(2, 9))));
    tap_is_int(update(2), ROWLOCK_STALE, "a row that was changed, and removed by another since");
    became(0, ROWLOCK_OK, 8, "was changed");
    end();
}

static void test_singly(void)
{
    begin("sqlite");
    tap_is_int(update(3), ROWLOCK_OK, "where rows go one by one");
    tap_is_str(script_calls(), "begin row_update row_update row_update commit",
               "they are one transaction");
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_DONE));
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_REFUSED, .text = "constraint"));
    tap_is_int(update(3), ROWLOCK_ESERVER, "of which one is refused");
    tap_is_str(script_calls(), "begin row_update row_update rollback", "so all are undone");
    for (size_t i = 0; i < 3; i++)
        became(i, ROWLOCK_UNDONE, 0, "nothing is left");
    end();
}

static void named(const char *calls, int64_t row)
{
    tap_is_str(script_calls(), calls, "the row is looked for by halves");
    tap_is_int(db->error.row, row, "and named");
    tap_is_int(db->error.constraint, ROWLOCK_CONSTRAINT_CHECK, "with what it would break");
}

/* A chunk is refused, and it is its second row of three that is. */
static void test_violation(void)
{
    const struct script_answer refused =
        ANSWER(.class = RLK_VIOLATION, .text = "check", .constraint = ROWLOCK_CONSTRAINT_CHECK);
    begin("postgres");
    script_next(OP_ROWS_UPDATE, refused);
    script_next(OP_ROW_UPDATE, ANSWER(.changed = 1));
    script_next(OP_ROWS_UPDATE, refused);
    script_next(OP_ROW_UPDATE, refused);
    script_next(OP_ROW_UPDATE, ANSWER(.changed = 1));
    tap_is_int(update(3), ROWLOCK_VIOLATION, "one of three rows would break a constraint");
    named("rows_update row_update rows_update row_update row_update", 1);
    became(0, ROWLOCK_OK, 8, "changed");
    became(1, ROWLOCK_VIOLATION, 0, "not changed");
    became(2, ROWLOCK_OK, 10, "changed");
    end();
    begin("sqlite");
    script_next(OP_ROW_UPDATE, ANSWER(.changed = 1));
    script_next(OP_ROW_UPDATE, refused);
    script_next(OP_ROW_UPDATE, ANSWER(.changed = 1));
    tap_is_int(update(3), ROWLOCK_VIOLATION, "the same where rows go one by one");
    named("begin row_update row_update row_update commit", 1);
    became(0, ROWLOCK_OK, 8, "changed");
    became(1, ROWLOCK_VIOLATION, 0, "not changed");
    end();
    begin("postgres");
    rowlock_change_options whole = ROWLOCK_CHANGE_OPTIONS_INIT;
    whole.all_or_nothing = 1;
    prepare(3);
    script_next(OP_ROWS_UPDATE, refused);
    script_next(OP_ROWS_UPDATE, refused);
    script_next(OP_ROW_UPDATE, ANSWER(.changed = 1));
    script_next(OP_ROWS_UPDATE, refused);
    script_next(OP_ROW_UPDATE, refused);
    script_next(OP_ROW_UPDATE, ANSWER(.changed = 1));
    tap_is_int(rowlock_update(table, changes, 3, &whole), ROWLOCK_VIOLATION, "all or nothing");
    named("begin rows_update rollback begin save rows_update undo save row_update keep save "
          "rows_update undo save row_update undo save row_update keep rollback",
          1);
    became(0, ROWLOCK_UNDONE, 7, "undone");
    became(1, ROWLOCK_VIOLATION, 0, "not changed");
    became(2, ROWLOCK_UNDONE, 9, "undone");
    end();
}

static void test_many_lost(void)
{
    begin("postgres");
    script_next(OP_ROWS_UPDATE, FAILS(RLK_UNCERTAIN));
    script_next(OP_ROWS_UPDATE, ANSWER(ROWS(2, TOLD(1, 8))));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, FOUND(1, 8), FOUND(2, 9), FOUND(3, 9))));
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_DONE));
    tap_is_int(update(4), ROWLOCK_EUNCERTAIN, "the first answer of two was lost");
    tap_is_str(script_calls(), "rows_update open rows_update rows_find row_update", "sent again");
    became(0, ROWLOCK_OK, 8, "changed by the second, so not by the first");
    became(1, ROWLOCK_EUNCERTAIN, 9, "changed, by the first or by another");
    became(2, ROWLOCK_OK, 10, "as it was: changed by itself");
    became(3, ROWLOCK_EUNCERTAIN, 0, "gone, whoever did it");
    end();
    begin("mysql");
    script_next(OP_ROWS_UPDATE, FAILS(RLK_UNCERTAIN));
    script_next(OP_ROWS_UPDATE, ANSWER(.changed = 2));
    tap_is_int(update(2), ROWLOCK_OK, "all are changed by the second: none was by the first");
    end();
}

/* Which rows were changed is known to the session only in which they were. */
static void test_lost_between(void)
{
    static const enum rlk_class ways[] = {RLK_UNSENT, RLK_UNCERTAIN};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        begin("mysql");
        script_next(OP_ROWS_UPDATE, ANSWER(.changed = 1));
        script_next(OP_ROWS_FIND, FAILS(ways[i]));
        script_always(OP_ROWS_FIND, ANSWER(ROWS(4, FOUND(1, 8), FOUND(2, 8))));
        tap_is_int(update(2), ROWLOCK_EUNCERTAIN, "a connection lost before the look");
        became(0, ROWLOCK_EUNCERTAIN, 8, "by us, or by another");
        became(1, ROWLOCK_OK, 9, "as it was: changed now");
        end();
        begin("mysql");
        script_next(OP_ROWS_UPDATE, ANSWER(.changed = 1));
        script_next(OP_ROWS_FIND, FAILS(ways[i]));
        script_always(OP_OPEN, FAILS(RLK_UNSENT));
        tap_is_int(update(2), ROWLOCK_EUNCERTAIN, "a connection lost for good before the look");
        became(0, ROWLOCK_EUNCERTAIN, 0, "nobody knows");
        became(1, ROWLOCK_EUNCERTAIN, 0, "of any row");
        end();
    }
    begin("postgres");
    script_next(OP_ROWS_UPDATE, ANSWER(ROWS(2, TOLD(1, 8))));
    script_next(OP_ROWS_FIND, FAILS(RLK_UNSENT));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, FOUND(1, 8), FOUND(2, 11))));
    tap_is_int(update(2), ROWLOCK_STALE, "where changed rows were told it makes no difference");
    became(0, ROWLOCK_OK, 8, "changed");
    became(1, ROWLOCK_STALE, 11, "and not");
    end();
}

static void test_many_failing(void)
{
    begin("postgres");
    script_next(OP_ROWS_UPDATE, ANSWER(.class = RLK_REFUSED, .text = "constraint"));
    tap_is_int(update(3), ROWLOCK_ESERVER, "a chunk that is refused");
    became(2, ROWLOCK_UNDONE, 0, "changes nothing");
    script_next(OP_ROWS_UPDATE, FAILS(RLK_DENIED));
    tap_is_int(update(3), ROWLOCK_EDENIED, "one that was not let in");
    became(2, ROWLOCK_CANCELLED, 0, "was not reached");
    script_next(OP_ROWS_UPDATE, ANSWER(ROWS(2, TOLD(1, 8))));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, FOUND(1, 8), FOUND(2, 8), FOUND(3, 9))));
    script_next(OP_ROW_UPDATE, FAILS(RLK_DENIED));
    tap_is_int(update(3), ROWLOCK_EDENIED, "two that were changed back, of which one fails");
    became(0, ROWLOCK_OK, 8, "what was changed stays");
    became(1, ROWLOCK_CANCELLED, 0, "that one did not happen");
    became(2, ROWLOCK_CANCELLED, 0, "nor the one after it");
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
    tap_is_int(update(2), ROWLOCK_STALE, "the same row told twice");
    became(0, ROWLOCK_OK, 8, "counts once");
    became(1, ROWLOCK_STALE, 9, "and does not stand for another");
    end();
}

static void test_adopted_chunk(void)
{
    begin_adopted("postgres");
    script_next(OP_ROWS_UPDATE, ANSWER(ROWS(2, TOLD(1, 8), TOLD(2, 9))));
    tap_is_int(update(2), ROWLOCK_OK, "in the caller's transaction");
    tap_is_str(script_calls(), "rows_find rows_update", "rows are locked in order first");
    tap_ok(strstr(script_query(1)->sql, "FOR NO KEY UPDATE") != NULL, "for a change");
    script_next(OP_ROWS_UPDATE, ANSWER(ROWS(2, TOLD(1, 8))));
    script_next(OP_ROWS_FIND, ANSWER(.class = RLK_DONE));
    script_next(OP_ROWS_FIND, ANSWER(ROWS(4, FOUND(2, 12))));
    tap_is_int(update(2), ROWLOCK_STALE, "one is stale");
    tap_ok(strstr(script_query(0)->sql, "FOR SHARE") != NULL,
           "the look locks, so that it sees what is there now");
    script_calls();
    script_next(OP_ROWS_FIND, ANSWER(.class = RLK_CONTENTION, .text = "40001", .tx_over = true));
    tap_is_int(update(2), ROWLOCK_CONFLICT, "a conflict");
    tap_is_str(script_calls(), "rows_find", "is sent once");
    became(1, ROWLOCK_CANCELLED, 0, "nothing was done");
    end();
    begin_adopted("mysql");
    script_next(OP_ROWS_UPDATE, ANSWER(.changed = 2));
    tap_is_int(update(2), ROWLOCK_OK, "where rows are gone through in order anyway");
    tap_is_str(script_calls(), "rows_update", "they are not locked first");
    end();
}

/* ---- what is not sent */

static void test_refused_before(void)
{
    begin("postgres");
    prepare(3);
    keys[2] = rowlock_int(1);
    tap_is_int(rowlock_update(table, changes, 3, NULL), ROWLOCK_EINVAL, "a key twice");
    tap_ok(strstr(why(db), "rows[0] and rows[2]") != NULL, "both are named: %s", why(db));
    became(1, ROWLOCK_CANCELLED, 0, "none was reached");
    prepare(2);
    keys[1] = rowlock_null();
    tap_is_int(rowlock_update(table, changes, 2, NULL), ROWLOCK_EINVAL, "a key that is NULL");
    prepare(2);
    values[1] = rowlock_decimal("12,50");
    tap_is_int(rowlock_update(table, changes, 2, NULL), ROWLOCK_EINVAL, "no decimal");
    prepare(2);
    changes[1].version = INT64_MAX;
    tap_is_int(rowlock_update(table, changes, 2, NULL), ROWLOCK_EINVAL, "the last version");
    changes[0].values = NULL;
    changes[1].version = 1;
    tap_is_int(rowlock_update(table, changes, 2, NULL), ROWLOCK_EINVAL, "no values");
    prepare(2);
    tap_is_int(rowlock_update(
                   table, changes, 2,
                   &(rowlock_change_options){.size = sizeof(rowlock_change_options), .chunk = -1}),
               ROWLOCK_EINVAL, "no such chunk");
    became(0, ROWLOCK_CANCELLED, 0, "none was reached");
    tap_is_int(rowlock_update(table, NULL, 1, NULL), ROWLOCK_EINVAL, "no changes");
    tap_is_int(rowlock_update(NULL, changes, 1, NULL), ROWLOCK_EMISUSE, "no table");
    tap_is_int(rowlock_update(table, NULL, 0, NULL), ROWLOCK_OK, "nothing to do");
    tap_is_str(script_calls(), "", "nothing of all that was sent");
    end();
}

static int stop_at_four(void *context, size_t done, size_t total)
{
    *(size_t *)context = total;
    return done >= 4;
}

static void test_stopping(void)
{
    size_t total = 0;
    rowlock_change_options how = ROWLOCK_CHANGE_OPTIONS_INIT;
    how.chunk = 2;
    how.progress = stop_at_four;
    how.context = &total;
    begin("mysql");
    prepare(6);
    script_always(OP_ROWS_UPDATE, ANSWER(.changed = 2));
    tap_is_int(rowlock_update(table, changes, 6, &how), ROWLOCK_CANCELLED, "stopped on the way");
    tap_is_str(script_calls(), "rows_update rows_update", "after two chunks of three");
    tap_is_int((long long)total, 6, "all rows are counted");
    became(3, ROWLOCK_OK, 11, "done");
    became(4, ROWLOCK_CANCELLED, 0, "not reached");
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

static int update_all_or_nothing(void)
{
    rowlock_change_options how = ROWLOCK_CHANGE_OPTIONS_INIT;
    how.all_or_nothing = 1;
    prepare(3);
    return rowlock_update(table, changes, 3, &how);
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
    test_one();
    test_one_not_applied();
    test_lost_but_applied();
    test_lost_not_applied();
    test_unreachable();
    test_conflicts();
    test_told_and_undone();
    test_paradox();
    test_paradox_and_failure();
    test_duplicate();
    test_odd_versions();
    test_too_late();
    test_arrays();
    test_strangers();
    test_json();
    test_equal_keys();
    test_singly();
    test_violation();
    test_many_lost();
    test_lost_between();
    test_many_failing();
    test_odd_numbers();
    test_adopted_chunk();
    test_refused_before();
    test_stopping();
    test_no_memory("postgres", update_three);
    test_no_memory("mysql", update_three);
    test_no_memory("sqlite", update_three);
    test_no_memory("postgres", update_all_or_nothing);
    test_no_memory("sqlite", update_all_or_nothing);
    return tap_done();
}
