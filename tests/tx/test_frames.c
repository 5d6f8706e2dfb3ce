/* SPDX-License-Identifier: MIT
 *
 * Transactions of core's own, and savepoints inside of others: what each failure of each frame leaves
 * behind. Attempts that are run again are in test_retry.c.
 */
#include "backend_script.h"
#include "quick.h"
#include "rows/rows.h"
#include "tap.h"

#include <string.h>

static rowlock_db *db;
static rowlock_table *table;

static void must_table(void)
{
    static const char *const key[] = {"id", NULL}, *const columns[] = {"price", NULL};
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    about.name = "prices";
    about.key = key;
    about.columns = columns;
    if (rowlock_table_open(db, &about, &table) != ROWLOCK_OK)
        tap_ok(false, "a table is opened: %s", why(db));
    script_calls();
}

static void begin(void)
{
    script_reset();
    script_jump();
    db = script_open(NULL);
    must_table();
}

static void begin_adopted(bool inside)
{
    script_reset();
    script_jump();
    db = script_adopt();
    must_table();
    script.inside = inside;
}

static void end(void)
{
    rowlock_table_close(table);
    rowlock_db_close(db);
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

enum { FRAMES = sizeof frames / sizeof frames[0] };

static bool ends(enum rlk_frame what)
{
    return what == RLK_COMMIT || what == RLK_ROLLBACK;
}

static bool is_lost(enum rlk_class class)
{
    return class == RLK_UNSENT || class == RLK_UNCERTAIN;
}

/* BEGIN is sent again where that can help. */
static int meaning(enum rlk_frame what, enum rlk_class class)
{
    switch (class) {
    case RLK_DONE:
        return ROWLOCK_OK;
    case RLK_CONTENTION:
        return what == RLK_BEGIN ? ROWLOCK_ESERVER : ROWLOCK_CONFLICT;
    case RLK_UNSENT:
        return ROWLOCK_ECONN;
    case RLK_UNCERTAIN:
        return what == RLK_COMMIT || what == RLK_BEGIN ? ROWLOCK_EUNCERTAIN : ROWLOCK_ECONN;
    case RLK_READONLY:
        return ROWLOCK_EREADONLY;
    case RLK_DENIED:
        return ROWLOCK_EDENIED;
    case RLK_NOMEM:
        return ROWLOCK_ENOMEM;
    default:
        return ROWLOCK_ESERVER;
    }
}

static void check_frame(const struct frame *f, enum rlk_class class)
{
    begin();
    if (f->what != RLK_BEGIN && rlk_frame(db, RLK_BEGIN) != ROWLOCK_OK)
        tap_ok(false, "a transaction is begun at first");
    script_calls();
    script_always(f->op, class == RLK_DONE ? ANSWER(.class = RLK_DONE) : FAILS(class));
    tap_is_int(rlk_frame(db, f->what), meaning(f->what, class), "%s: class %d", f->name,
               (int)class);
    if (f->what != RLK_BEGIN)
        tap_is_str(script_calls(), f->name, "it is sent once");
    bool begun = f->what == RLK_BEGIN ? class == RLK_DONE : !ends(f->what);
    tap_is_int(db->in_tx, begun, begun ? "the transaction is known" : "there is none any more");
    if (f->what != RLK_BEGIN && is_lost(class))
        tap_ok(!db->up, "the connection is known to be gone");
    script_always(f->op, ANSWER(.class = RLK_DONE));
    rlk_frame(db, RLK_ROLLBACK);
    tap_ok(!db->in_tx && !script_in_tx(), "after a rollback none is open, here or there");
    tap_is_int(rlk_frame(db, RLK_BEGIN), ROWLOCK_OK, "and one can be begun");
    end();
}

static void test_each_frame(void)
{
    static const enum rlk_class classes[] = {RLK_DONE,      RLK_CONTENTION, RLK_UNSENT,
                                             RLK_UNCERTAIN, RLK_READONLY,   RLK_DENIED,
                                             RLK_NOMEM,     RLK_REFUSED};
    for (size_t f = 0; f < FRAMES; f++)
        for (size_t c = 0; c < sizeof classes / sizeof classes[0]; c++)
            check_frame(&frames[f], classes[c]);
}

/* ---- statements inside */

static int update_one(void)
{
    static const rowlock_value id = {.kind = ROWLOCK_INT, .number = 1},
                               price = {.kind = ROWLOCK_NULL};
    rowlock_change change = {.key = &id, .values = &price, .version = 7};
    return rowlock_update(table, &change, 1, NULL);
}

static void test_nothing_resent(void)
{
    static const struct {
        enum rlk_class class;
        int result;
    } all[] = {{RLK_CONTENTION, ROWLOCK_CONFLICT},
               {RLK_UNSENT, ROWLOCK_ECONN},
               {RLK_UNCERTAIN, ROWLOCK_ECONN},
               {RLK_DENIED, ROWLOCK_EDENIED}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        begin();
        tap_is_int(rlk_frame(db, RLK_BEGIN), ROWLOCK_OK, "a transaction");
        script_next(OP_ROW_UPDATE, FAILS(all[i].class));
        tap_is_int(update_one(), all[i].result, "in which a statement fails as class %d",
                   (int)all[i].class);
        tap_is_str(script_calls(), "begin row_update", "it is not sent again");
        tap_is_int(db->in_tx, 1, "whoever began must end");
        if (is_lost(all[i].class)) {
            tap_is_int(update_one(), ROWLOCK_ECONN, "the next one is not sent elsewhere");
            tap_is_str(script_calls(), "", "but not at all");
            tap_is_int(db->error.transaction_over, 1, "the transaction is over");
            tap_is_int(rlk_frame(db, RLK_COMMIT), ROWLOCK_ECONN, "nor is its commit");
            tap_is_str(script_calls(), "", "sent");
            tap_is_int(update_one(), ROWLOCK_OK, "after it the next is one by itself");
            tap_is_str(script_calls(), "open row_update", "on a new connection");
        }
        rlk_frame(db, RLK_ROLLBACK);
        end();
    }
}

/* A database may have ended it meanwhile: then a change would be a commit of its own. */
static void test_where(void)
{
    begin();
    tap_is_int(update_one(), ROWLOCK_OK, "a change by itself");
    tap_is_int(script.where, RLK_EITHER, "may be one");
    tap_is_int(rlk_frame(db, RLK_BEGIN), ROWLOCK_OK, "in a transaction of ours");
    tap_is_int(update_one(), ROWLOCK_OK, "a change");
    tap_is_int(script.where, RLK_INSIDE, "is a part of that, or is not made");
    rlk_frame(db, RLK_ROLLBACK);
    end();
}

/* ---- all or nothing */

enum { ROWS_MAX = 3 };
static rowlock_change changes[ROWS_MAX];
static rowlock_value keys[ROWS_MAX], values[ROWS_MAX];

static int update_all(void)
{
    rowlock_change_options how = ROWLOCK_CHANGE_OPTIONS_INIT;
    how.all_or_nothing = 1;
    for (size_t i = 0; i < ROWS_MAX; i++) {
        keys[i] = rowlock_int((int64_t)i + 1);
        values[i] = rowlock_null();
        changes[i] =
            (rowlock_change){.key = &keys[i], .values = &values[i], .version = (int64_t)i + 7};
    }
    return rowlock_update(table, changes, ROWS_MAX, &how);
}

static void all_are(int result, const char *what)
{
    for (size_t i = 0; i < ROWS_MAX; i++)
        tap_is_int(changes[i].result, result, "row %zu is %s: %s", i + 1,
                   rowlock_result_name(result), what);
}

#define READ(version) ROWS(3, rowlock_int(2), rowlock_null(), rowlock_int(version))
#define WHOLE "begin save row_update row_update row_update keep commit"

/* Where rows go one by one, each chunk is a frame of its own. */
static void test_all(void)
{
    begin();
    tap_is_int(update_all(), ROWLOCK_OK, "all of them");
    tap_is_str(script_calls(), WHOLE, "in one transaction");
    tap_is_int(changes[2].current, 10, "each is told");
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_DONE));
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(READ(20)));
    tap_is_int(update_all(), ROWLOCK_STALE, "one of them is stale");
    tap_is_str(script_calls(), "begin save row_update row_update row_read row_update keep rollback",
               "so all are rolled back");
    tap_is_int(changes[0].result, ROWLOCK_UNDONE, "what went well is undone");
    tap_is_int(changes[0].current, 7, "and has its old version");
    tap_is_int(changes[1].result, ROWLOCK_STALE, "the cause is told");
    tap_is_int(changes[1].current, 20, "with the version there");
    tap_is_int(changes[2].result, ROWLOCK_UNDONE, "the others are undone too");
    tap_ok(strstr(why(db), "row 2 has version 20") != NULL, "the error is the cause's: %s",
           why(db));
    end();
}

static void test_error_is_kept(void)
{
    begin();
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_REFUSED, .text = "it is too dear",
                                      .sqlstate = "23514", .native = 4025));
    script_always(OP_ROLLBACK, FAILS(RLK_UNCERTAIN));
    tap_is_int(update_all(), ROWLOCK_ESERVER, "a row that is refused, and a rollback that fails");
    tap_is_int(db->error.native, 4025, "the first failure is what is told");
    tap_is_str(db->error.sqlstate, "23514", "with its SQLSTATE");
    tap_ok(strstr(db->error.text, "too dear") != NULL, "and text");
    tap_is_int(db->in_tx, 0, "no transaction is open");
    all_are(ROWLOCK_UNDONE, "nothing was done");
    script_calls();
    tap_is_int(update_one(), ROWLOCK_OK, "the next call goes well");
    tap_is_str(script_calls(), "open row_update", "on a new connection");
    end();
}

static void test_commit(void)
{
    begin();
    script_next(OP_COMMIT, FAILS(RLK_UNCERTAIN));
    tap_is_int(update_all(), ROWLOCK_EUNCERTAIN, "a commit without an answer");
    tap_is_str(script_calls(), WHOLE, "is not sent again");
    all_are(ROWLOCK_EUNCERTAIN, "all of them or none");
    tap_is_int(changes[0].current, 0, "of no version that is known");
    tap_is_int(update_one(), ROWLOCK_OK, "the next call goes well");
    tap_is_str(script_calls(), "open row_update", "on a new connection");
    script_next(OP_COMMIT, FAILS(RLK_CONTENTION));
    tap_is_int(update_all(), ROWLOCK_OK, "a commit that lost a race is begun again");
    tap_is_str(script_calls(), WHOLE " " WHOLE, "with all that belongs to it");
    script_next(OP_COMMIT, FAILS(RLK_UNSENT));
    tap_is_int(update_all(), ROWLOCK_OK, "so is one that was certainly not sent");
    tap_is_str(script_calls(), WHOLE " open " WHOLE, "on a new connection");
    script_next(OP_COMMIT, ANSWER(.class = RLK_REFUSED, .text = "deferred", .sqlstate = "23503"));
    tap_is_int(update_all(), ROWLOCK_ESERVER, "a constraint that is looked at in the end");
    all_are(ROWLOCK_UNDONE, "nothing was done");
    script_always(OP_COMMIT, FAILS(RLK_CONTENTION));
    tap_is_int(update_all(), ROWLOCK_ESERVER, "races that are lost all the time");
    rowlock_error error = ROWLOCK_ERROR_INIT;
    rowlock_db_error(db, &error);
    tap_is_int(error.transaction_over, 0, "in a transaction that nobody else has");
    tap_is_int(error.retryable, 1, "which may go well later");
    tap_ok(script_count(OP_COMMIT) > 8, "it was tried until the statement's time was over");
    all_are(ROWLOCK_UNDONE, "nothing was done");
    tap_ok(!db->in_tx && !script_in_tx(), "nothing is left open");
    end();
}

static void test_begun_again(void)
{
    begin();
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_DONE));
    script_next(OP_ROW_UPDATE, FAILS(RLK_CONTENTION));
    tap_is_int(update_all(), ROWLOCK_OK, "a deadlock on the way");
    tap_is_str(script_calls(), "begin save row_update row_update undo rollback " WHOLE,
               "is begun again");
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_CONTENTION, .text = "dead", .tx_over = true));
    tap_is_int(update_all(), ROWLOCK_OK, "one that ended the transaction");
    tap_is_str(script_calls(), "begin save row_update rollback " WHOLE, "needs no savepoint");
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNCERTAIN));
    tap_is_int(update_all(), ROWLOCK_OK, "a connection lost on the way");
    tap_is_str(script_calls(), "begin save row_update open " WHOLE, "is made anew");
    script_next(OP_BEGIN, FAILS(RLK_DENIED));
    tap_is_int(update_all(), ROWLOCK_EDENIED, "a transaction that cannot be begun");
    all_are(ROWLOCK_CANCELLED, "none was reached");
    end();
}

/* ---- on an adopted connection */

static void test_adopted(void)
{
    begin_adopted(false);
    tap_is_int(update_all(), ROWLOCK_OK,
               "outside of the caller's transaction there is one of ours");
    tap_is_str(script_calls(), WHOLE, "as on connections of our own");
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNCERTAIN));
    tap_is_int(update_all(), ROWLOCK_ECONN, "a lost connection");
    tap_is_str(script_calls(), "begin save row_update", "cannot be made anew");
    all_are(ROWLOCK_CANCELLED, "nothing was done");
    end();
    begin_adopted(true);
    tap_is_int(update_all(), ROWLOCK_OK, "inside of it");
    tap_is_str(script_calls(), "save save row_update row_update row_update keep keep",
               "there is a savepoint, and no commit");
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(READ(20)));
    tap_is_int(update_all(), ROWLOCK_STALE, "one is stale");
    tap_is_str(script_calls(), "save save row_update row_read row_update row_update keep undo",
               "what was done is undone, and nothing else");
    tap_is_int(db->error.transaction_over, 0, "the transaction can go on");
    script_next(OP_ROW_UPDATE, FAILS(RLK_CONTENTION));
    tap_is_int(update_all(), ROWLOCK_CONFLICT, "a conflict");
    tap_is_str(script_calls(), "save save row_update undo undo", "is not tried again");
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_CONTENTION, .text = "dead", .tx_over = true));
    tap_is_int(update_all(), ROWLOCK_CONFLICT, "a conflict that ended the transaction");
    tap_is_str(script_calls(), "save save row_update", "leaves nothing to be undone");
    tap_is_int(db->error.transaction_over, 1, "and says so");
    tap_ok(!db->in_tx, "it never was ours");
    end();
}

static void test_adopted_lost(void)
{
    begin_adopted(true);
    script_next(OP_ROW_UPDATE, FAILS(RLK_UNCERTAIN));
    tap_is_int(update_all(), ROWLOCK_ECONN, "the connection is lost inside");
    tap_is_str(script_calls(), "save save row_update", "nothing more is sent");
    tap_is_int(db->error.transaction_over, 1, "the transaction went with it");
    all_are(ROWLOCK_CANCELLED, "nothing was done");
    tap_is_int(update_all(), ROWLOCK_ECONN, "it stays lost");
    tap_is_str(script_calls(), "", "and nothing is sent on it");
    end();
}

/* ---- nested */

static int inner(void *context)
{
    (void)context;
    return update_all();
}

static int inner_stale(void *context)
{
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(READ(20)));
    (void)context;
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
    end();
}

int main(void)
{
    script_home("sqlite");
    test_each_frame();
    test_nothing_resent();
    test_where();
    test_all();
    test_error_is_kept();
    test_commit();
    test_begun_again();
    test_adopted();
    test_adopted_lost();
    test_nested();
    return tap_done();
}
