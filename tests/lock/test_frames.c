/* SPDX-License-Identifier: MIT
 *
 * Transactions of core's own, and savepoints inside of others: what each failure of each frame leaves
 * behind. Attempts that are run again are in test_retry.c. */
#include "backend_script.h"
#include "core/link.h"
#include "rows/rows.h"

static rowlock_db *db;
static rowlock_table *table;

static void end(void)
{
    rowlock_table_close(table);
    rowlock_db_close(db);
}

/* Ends the test before. */
static void begin_on(bool adopted, bool inside)
{
    end();
    script_reset();
    script_jump();
    db = adopted ? script_adopt() : script_open(NULL);
    table = must_prices(db, "price");
    script_calls();
    script.inside = inside;
}

static void begin(void)
{
    begin_on(false, false);
}

/* ---- one frame */

static const struct frame {
    enum rlk_frame what;
    enum script_op op;
    const char *name;
} frames[] = {
    {RLK_BEGIN, OP_BEGIN, "begin"},
    {RLK_COMMIT, OP_COMMIT, "commit"},
    {RLK_ROLLBACK, OP_ROLLBACK, "rollback"},
    {RLK_SAVE, OP_SAVE, "save"},
    {RLK_KEEP, OP_KEEP, "keep"},
    {RLK_UNDO, OP_UNDO, "undo"},
};

/* What most frames mean. BEGIN is sent again where that can help; a COMMIT may have been carried out. */
static const struct {
    enum rlk_class class;
    int means;
} classes[] = {
    {RLK_DONE, ROWLOCK_OK},           {RLK_CONTENTION, ROWLOCK_CONFLICT},
    {RLK_UNSENT, ROWLOCK_ECONN},      {RLK_UNCERTAIN, ROWLOCK_ECONN},
    {RLK_DENIED, ROWLOCK_EDENIED},    {RLK_READONLY, ROWLOCK_EREADONLY},
    {RLK_STANDBY, ROWLOCK_EREADONLY}, {RLK_NOMEM, ROWLOCK_ENOMEM},
    {RLK_REFUSED, ROWLOCK_ESERVER},
};

static int meaning(enum rlk_frame what, size_t nth)
{
    if (what == RLK_BEGIN && classes[nth].class == RLK_CONTENTION)
        return ROWLOCK_ESERVER;
    if ((what == RLK_COMMIT || what == RLK_BEGIN) && classes[nth].class == RLK_UNCERTAIN)
        return ROWLOCK_EUNCERTAIN;
    return classes[nth].means;
}

static void test_frame(const struct frame *f, size_t nth)
{
    enum rlk_class class = classes[nth].class;
    begin();
    if (f->what != RLK_BEGIN && rlk_frame(db, RLK_BEGIN) != ROWLOCK_OK)
        tap_ok(false, "a transaction is begun at first");
    script_calls();
    script_always(f->op, class == RLK_DONE ? ANSWER(.class = RLK_DONE) : FAILS(class));
    tap_is_int(rlk_frame(db, f->what), meaning(f->what, nth), "%s: class %d", f->name, (int)class);
    if (f->what != RLK_BEGIN)
        tap_is_str(script_calls(), f->name, "it is sent once");
    bool ends = f->what == RLK_COMMIT || f->what == RLK_ROLLBACK;
    bool begun = f->what == RLK_BEGIN ? class == RLK_DONE : !ends;
    tap_is_int(db->tx, begun, begun ? "the transaction is known" : "there is none any more");
    if (f->what != RLK_BEGIN && rlk_is_gone(class))
        tap_ok(!rlk_is_up(db), "the connection is known to be gone");
    script_always(f->op, ANSWER(.class = RLK_DONE));
    rlk_frame(db, RLK_ROLLBACK);
    tap_ok(!db->tx && !script_in_tx(), "after a rollback none is open, here or there");
    tap_is_int(rlk_frame(db, RLK_BEGIN), ROWLOCK_OK, "and one can be begun");
}

/* ---- statements inside */

static void changes(int want, const char *calls, const char *what)
{
    tap_is_int(update_row(table, 1, rowlock_null(), 7), want, "%s", what);
    tap_is_str(script_calls(), calls, "in these steps");
}

/* A database may have ended the transaction meanwhile: then a change would be a commit of its own. */
static void test_nothing_resent(enum rlk_class class, int result)
{
    begin();
    changes(ROWLOCK_OK, "row_update", "a change by itself");
    tap_is_int(script.where, RLK_EITHER, "may be in a transaction or not");
    tap_is_int(rlk_frame(db, RLK_BEGIN), ROWLOCK_OK, "in a transaction");
    changes(ROWLOCK_OK, "begin row_update", "a change");
    tap_is_int(script.where, RLK_INSIDE, "is a part of that, or is not made");
    script_next(OP_ROW_UPDATE, FAILS(class));
    changes(result, "row_update", "one that fails is not sent again");
    tap_is_int(db->tx, 1, "the function that began must end");
    if (rlk_is_gone(class)) {
        changes(ROWLOCK_ECONN, "", "the next one is not sent elsewhere, but not at all");
        tap_is_int(db->error.transaction_over, 1, "the transaction is over");
        tap_is_int(rlk_frame(db, RLK_COMMIT), ROWLOCK_ECONN, "nor is its commit");
        tap_is_str(script_calls(), "", "sent");
        changes(ROWLOCK_OK, "open row_update", "after it the next is one by itself");
    }
    rlk_frame(db, RLK_ROLLBACK);
}

/* ---- all or nothing */

enum { ROWS_MAX = 3 };
static rowlock_change rows[ROWS_MAX];
static rowlock_value keys[ROWS_MAX], values[ROWS_MAX];

static int update_all(void)
{
    for (size_t i = 0; i < ROWS_MAX; i++) {
        keys[i] = rowlock_int((int64_t)i + 1);
        values[i] = rowlock_null();
        rows[i] =
            (rowlock_change){.key = &keys[i], .values = &values[i], .version = (int64_t)i + 7};
    }
    return rowlock_update(table, rows, ROWS_MAX, OPTIONS(change, .all_or_nothing = 1));
}

static void all_are(int result, const char *what)
{
    for (size_t i = 0; i < ROWS_MAX; i++)
        tap_is_int(rows[i].result, result, "row %zu is %s: %s", i + 1, rowlock_result_name(result),
                   what);
}

#define READ(version) ROWS(3, rowlock_int(2), rowlock_null(), rowlock_int(version))
#define WHOLE "begin save row_update row_update row_update keep commit"

static void changes_all(int want, const char *calls, const char *what)
{
    tap_is_int(update_all(), want, "%s", what);
    tap_is_str(script_calls(), calls, "in these steps");
}

/* Where rows go one by one, each chunk is a frame of its own. */
static void test_all(void)
{
    begin();
    changes_all(ROWLOCK_OK, WHOLE, "all of them, in one transaction");
    tap_is_int(rows[2].current, 10, "each is told");
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_DONE));
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(READ(20)));
    changes_all(ROWLOCK_STALE, "begin save row_update row_update row_read row_update keep rollback",
                "one of them is stale, so all are rolled back");
    tap_is_int(rows[0].result, ROWLOCK_UNDONE, "what went well is undone");
    tap_is_int(rows[0].current, 7, "and has its old version");
    tap_is_int(rows[1].result, ROWLOCK_STALE, "the cause is told");
    tap_is_int(rows[1].current, 20, "with the version there");
    tap_is_int(rows[2].result, ROWLOCK_UNDONE, "the others are undone too");
    tap_ok(strstr(why(db), "row 2 has version 20") != NULL, "the error is the cause's: %s",
           why(db));
}

static void test_error_is_kept(enum rlk_class class)
{
    begin();
    /* Twice more, to find the row. */
    for (int i = 0; i < 3; i++)
        script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_REFUSED, .text = "it is too dear",
                                          .sqlstate = "23514", .native = 4025));
    script_always(OP_ROLLBACK, FAILS(class));
    tap_is_int(update_all(), ROWLOCK_ESERVER, "a row that is refused, and a rollback that fails");
    tap_is_int(db->error.native, 4025, "the first failure is what is told");
    tap_is_str(db->error.sqlstate, "23514", "with its SQLSTATE");
    tap_ok(strstr(db->error.text, "too dear") != NULL, "and text");
    tap_is_int(db->tx, 0, "no transaction is open");
    tap_is_int(rows[0].result, ROWLOCK_ESERVER, "the row that is to blame is named");
    tap_is_int(rows[1].result, ROWLOCK_UNDONE, "nothing was done");
    script_calls();
    changes(ROWLOCK_OK, "open row_update", "the next call goes well, on a new connection");
}

static void test_commit(void)
{
    begin();
    script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
    changes_all(ROWLOCK_EUNCERTAIN, WHOLE, "a commit without an answer is not sent again");
    all_are(ROWLOCK_EUNCERTAIN, "all of them or none");
    tap_is_int(rows[0].current, 0, "of no version that is known");
    changes(ROWLOCK_OK, "open row_update", "the next call goes well, on a new connection");
    script_next(OP_COMMIT, FAILS(RLK_CONTENTION));
    changes_all(ROWLOCK_OK, WHOLE " " WHOLE,
                "a commit that lost a race is begun again, with all that belongs to it");
    script_next(OP_COMMIT, FAILS(RLK_UNSENT));
    changes_all(ROWLOCK_OK, WHOLE " open " WHOLE, "so is one that was certainly not sent");
    script_next(OP_COMMIT, ANSWER(.class = RLK_REFUSED, .text = "deferred", .sqlstate = "23503"));
    tap_is_int(update_all(), ROWLOCK_ESERVER, "a constraint that is looked at in the end");
    all_are(ROWLOCK_UNDONE, "nothing was done");
    script_always(OP_COMMIT, FAILS(RLK_CONTENTION));
    tap_is_int(update_all(), ROWLOCK_ESERVER, "races that are lost all the time");
    rowlock_error error = error_of(db);
    tap_is_int(error.transaction_over, 0, "in a transaction that no other has");
    tap_is_int(error.retryable, 1, "which may go well later");
    tap_ok(script_count(OP_COMMIT) > 8, "it was tried until the statement's time was over");
    all_are(ROWLOCK_UNDONE, "nothing was done");
    tap_ok(!db->tx && !script_in_tx(), "nothing is left open");
}

static void test_begun_again(void)
{
    begin();
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_DONE));
    script_next(OP_ROW_UPDATE, FAILS(RLK_CONTENTION));
    changes_all(ROWLOCK_OK, "begin save row_update row_update undo rollback " WHOLE,
                "a deadlock on the way is begun again");
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_CONTENTION, .text = "dead", .tx_over = true));
    changes_all(ROWLOCK_OK, "begin save row_update rollback " WHOLE,
                "one that ended the transaction needs no savepoint");
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNCERTAIN));
    changes_all(ROWLOCK_OK, "begin save row_update open " WHOLE,
                "a connection that is lost on the way is made anew");
    script_next(OP_BEGIN, FAILS(RLK_DENIED));
    tap_is_int(update_all(), ROWLOCK_EDENIED, "a transaction that cannot be begun");
    all_are(ROWLOCK_CANCELLED, "none was reached");
}

/* ---- on an adopted connection */

static void test_adopted(void)
{
    begin_on(true, false);
    changes_all(ROWLOCK_OK, WHOLE, "outside of the caller's transaction there is one of ours");
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNCERTAIN));
    changes_all(ROWLOCK_ECONN, "begin save row_update", "a lost connection cannot be made anew");
    all_are(ROWLOCK_CANCELLED, "nothing was done");
    begin_on(true, true);
    changes_all(ROWLOCK_OK, "save save row_update row_update row_update keep keep",
                "inside of it there is a savepoint, and no commit");
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(READ(20)));
    changes_all(ROWLOCK_STALE, "save save row_update row_read row_update row_update keep undo",
                "one is stale: what was done is undone, and nothing else");
    tap_is_int(db->error.transaction_over, 0, "the transaction can go on");
    script_next(OP_ROW_UPDATE, FAILS(RLK_CONTENTION));
    changes_all(ROWLOCK_CONFLICT, "save save row_update undo undo",
                "a conflict is not tried again");
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_CONTENTION, .text = "dead", .tx_over = true));
    changes_all(ROWLOCK_CONFLICT, "save save row_update",
                "one that ended the transaction leaves nothing to be undone");
    tap_is_int(db->error.transaction_over, 1, "and says so");
    tap_ok(!db->tx, "it never was ours");
    begin_on(true, true);
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNCERTAIN));
    changes_all(ROWLOCK_ECONN, "save save row_update",
                "the connection is lost inside: nothing more is sent");
    tap_is_int(db->error.transaction_over, 1, "the transaction went with it");
    all_are(ROWLOCK_CANCELLED, "nothing was done");
    changes_all(ROWLOCK_ECONN, "", "it stays lost, and nothing is sent on it");
}

/* ---- nested */

static int inner(void *context)
{
    return update_all();
}

static int inner_stale(void *context)
{
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(READ(20)));
    return update_all() == ROWLOCK_STALE ? ROWLOCK_OK : ROWLOCK_ESERVER;
}

static void test_nested(void)
{
    begin();
    tap_is_int(rlk_framed(db, inner, NULL), ROWLOCK_OK, "all or nothing in a transaction of ours");
    tap_is_str(script_calls(), "begin save save row_update row_update row_update keep keep commit",
               "is a savepoint there");
    tap_is_int(rlk_framed(db, inner_stale, NULL), ROWLOCK_OK, "a stale row there");
    tap_is_str(script_calls(),
               "begin save save row_update row_read row_update row_update keep undo commit",
               "undoes no more than that");
}

int main(void)
{
    script_home("sqlite");
    for (size_t f = 0; f < sizeof frames / sizeof frames[0]; f++)
        for (size_t c = 0; c < sizeof classes / sizeof classes[0]; c++)
            test_frame(&frames[f], c);
    test_nothing_resent(RLK_CONTENTION, ROWLOCK_CONFLICT);
    test_nothing_resent(RLK_UNSENT, ROWLOCK_ECONN);
    test_nothing_resent(RLK_UNCERTAIN, ROWLOCK_ECONN);
    test_nothing_resent(RLK_DENIED, ROWLOCK_EDENIED);
    test_all();
    test_error_is_kept(RLK_UNCERTAIN);
    test_error_is_kept(RLK_CONTENTION);
    test_commit();
    test_begun_again();
    test_adopted();
    test_nested();
    end();
    return tap_done();
}
