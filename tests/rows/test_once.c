/* SPDX-License-Identifier: MIT
 *
 * Keys that are claimed once: answers that fail at an exact point. What each client that claims a key is told is in
 * once.c, requests lost on a real network are in lost_rows.c, memory is in memory_rows.c. */
#include "backend_script.h"

static rowlock_db *db;
static rowlock_once *once;

static struct {
    bool gone, done;
} row;

static void give_row(struct rlk_query *query)
{
    int64_t attempt = script_query(1)->values[2].number;
    const rowlock_value cells[] = {rowlock_int(attempt), rowlock_text("f1"), rowlock_bool(row.done),
                                   row.done ? rowlock_bytes("paid", 4) : rowlock_null()};
    if (!row.gone)
        query->each(query->context, cells, COUNT(cells));
}

static void give_key(struct rlk_query *query)
{
    const rowlock_value cells[] = {rowlock_text("a key"), rowlock_text(""), rowlock_int(0),
                                   rowlock_bool(0),       rowlock_int(0),   rowlock_int(0),
                                   rowlock_int(0),        rowlock_null()};
    query->each(query->context, cells, COUNT(cells));
}

static int claim(void)
{
    rowlock_once_close(once);
    return rowlock_once_claim(db, "order 17", OPTIONS(once, .fingerprint = "f1"), &once);
}

static int complete(void)
{
    return rowlock_once_complete(once, db, "x", 1);
}

static int complete_inside(void)
{
    OWNED(db) rowlock_db *tx = script_adopt();
    script.inside = true;
    int result = rowlock_once_complete(once, tx, "x", 1);
    if (result == ROWLOCK_ECONN)
        tap_is_int(tx->error.transaction_over, 1, "the caller's transaction is over");
    return result;
}

static int sweep(void)
{
    int64_t removed = -1;
    script_next(OP_ONCE_SWEEP, ANSWER(.changed = 500));
    script_next(OP_ONCE_SWEEP, FAILS(RLK_DENIED));
    int result = rowlock_once_sweep(db, 0, 0, &removed);
    tap_is_int(removed, 500, "it tells what it did until then");
    return result;
}

static int note_key(void *context, const rowlock_once_record *record)
{
    tap_is_str(record->key, "a key", "a key is listed");
    ++*(int *)context;
    return 0;
}

static int list(void)
{
    int listed = 0;
    int result = rowlock_once_list(db, NULL, note_key, &listed);
    tap_is_int(listed, result == ROWLOCK_OK, "what was told is not told again");
    return result;
}

static int list_for_none(void)
{
    return rowlock_once_list(db, NULL, NULL, NULL);
}

static int fail(void)
{
    return rowlock_once_abandon(once, 1000, "why", 3);
}

static int forget(void)
{
    return rowlock_once_forget(db, "a key", 0);
}

static const struct failure {
    const char *what;
    int (*call)(void);
    enum script_op op;
    enum rlk_class as;
    void (*give)(struct rlk_query *query); /* before it fails */
    enum script_op next; /* this changes a row, if it is asked for */
    bool no_connection; /* after that */
    bool gone, done; /* the key when it is looked at */
    int want;
    const char *calls;
} failures[] = {
    {"a claim", claim, .calls = "once_claim once_look"},
    {"a key that went away between the statements", claim, .gone = true, .want = ROWLOCK_BUSY,
     .calls = "once_claim once_look"},
    {"a claim without an answer is sent again", claim, OP_ONCE_CLAIM, RLK_UNCERTAIN,
     .calls = "once_claim open meta once_claim once_look"},
    {"if that can be", claim, OP_ONCE_CLAIM, RLK_UNCERTAIN, .no_connection = true,
     .want = ROWLOCK_EUNCERTAIN},
    {"without a connection nothing is claimed", claim, OP_ONCE_CLAIM, RLK_UNSENT,
     .no_connection = true, .want = ROWLOCK_ECONN},
    {"a look that was cut is sent again, and its row counts once", claim, OP_ONCE_LOOK,
     RLK_UNCERTAIN, .give = give_row, .done = true, .want = ROWLOCK_DONE,
     .calls = "once_claim once_look open meta once_look"},
    {"claimed, and then the connection is gone for good", claim, OP_ONCE_LOOK, RLK_UNSENT,
     .no_connection = true, .want = ROWLOCK_EUNCERTAIN},

    {"a completion without an answer is sent again", complete, OP_ONCE_COMPLETE, RLK_UNCERTAIN,
     .next = OP_ONCE_COMPLETE, .calls = "once_complete open meta once_complete"},
    {"if that can be", complete, OP_ONCE_COMPLETE, RLK_UNCERTAIN, .no_connection = true,
     .want = ROWLOCK_EUNCERTAIN},
    {"outside of a transaction a claim that is gone is seen at once", complete,
     .want = ROWLOCK_LOST, .calls = "once_complete"},
    {"in the caller's transaction it is proved", complete_inside, .want = ROWLOCK_LOST,
     .calls = "meta once_complete once_prove"},
    {"and what that makes is taken away", complete_inside, .next = OP_ONCE_PROVE,
     .want = ROWLOCK_LOST, .calls = "meta once_complete once_prove once_abandon"},
    {"a connection lost there", complete_inside, OP_ONCE_ABANDON, RLK_UNSENT, .next = OP_ONCE_PROVE,
     .want = ROWLOCK_ECONN, .calls = "meta once_complete once_prove once_abandon"},
    {"a claim not seen yet", complete_inside, OP_ONCE_PROVE, RLK_CONTENTION,
     .want = ROWLOCK_CONFLICT, .calls = "meta once_complete once_prove"},
    {"a lost race there is not sent again", complete_inside, OP_ONCE_COMPLETE, RLK_CONTENTION,
     .want = ROWLOCK_CONFLICT, .calls = "meta once_complete"},
    {"nor a lost answer", complete_inside, OP_ONCE_COMPLETE, RLK_UNCERTAIN, .want = ROWLOCK_ECONN,
     .calls = "meta once_complete"},

    {"a failure whose answer is lost is told again", fail, OP_ONCE_FAIL, RLK_UNCERTAIN,
     .next = OP_ONCE_FAIL, .calls = "once_fail open meta once_fail"},
    {"a sweep that fails", sweep, .want = ROWLOCK_EDENIED, .calls = "once_sweep once_sweep"},
    {"a list that is cut off is asked for again", list, OP_ONCE_LIST, RLK_UNCERTAIN,
     .give = give_key, .calls = "once_list open meta once_list"},
    {"what only reads is never uncertain", list, OP_ONCE_LIST, RLK_UNCERTAIN, .no_connection = true,
     .want = ROWLOCK_ECONN},
    {"a list without a callback", list_for_none, .want = ROWLOCK_EINVAL, .calls = ""},
    {"a key that is gone after a lost answer is forgotten", forget, OP_ONCE_FORGET, RLK_UNCERTAIN,
     .calls = "once_forget open meta once_forget"},
    {"one that was not there is not", forget, .want = ROWLOCK_NONE, .calls = "once_forget"},
};

static void test_failure(const struct failure *f)
{
    script_reset();
    script_jump();
    script_dialect("postgres"); /* where a snapshot can hide a claim */
    db = script_open(NULL);
    once = NULL;
    row.gone = row.done = false;
    script_always(OP_ONCE_LOOK, ANSWER(.give = give_row));
    if (claim() != ROWLOCK_OK)
        tap_ok(false, "a key is claimed at first");
    int64_t first = script_query(1)->values[2].number;
    script_calls();
    row.gone = f->gone;
    row.done = f->done;
    if (f->as)
        script_next(f->op,
                    ANSWER(.class = f->as, .give = f->give, .text = "the server's own words"));
    if (f->next)
        script_next(f->next, ANSWER(.changed = 1));
    if (f->op == OP_ONCE_LIST)
        script_next(f->op, ANSWER(.give = give_key));
    if (f->no_connection)
        script_always(OP_OPEN, FAILS(RLK_UNSENT));
    tap_is_int(f->call(), f->want, "%s", f->what);
    if (f->calls)
        tap_is_str(script_calls(), f->calls, "as the calls say");
    if (f->call == claim) {
        tap_ok((once != NULL) == (f->want == ROWLOCK_OK || f->want == ROWLOCK_DONE),
               "there is a handle if it went well");
        tap_ok(script_query(1)->values[2].number != first, "each claim has a number of its own");
        tap_ok(f->op != OP_ONCE_CLAIM || f->want != ROWLOCK_OK ||
                   script_query(1)->values[2].number == script_query(2)->values[2].number,
               "and keeps it when it is sent again");
    }
    size_t length = 0;
    const char *result = rowlock_once_result(once, &length);
    if (f->done)
        tap_ok(result && length == 4 && memcmp(result, "paid", 4) == 0, "with the result");
    script_calls();
    rowlock_once_close(once);
    tap_is_str(script_calls(), "", "closing sends nothing");
    rowlock_db_close(db);
}

/* Answers that no database means are not believed. */
static void test_misfits(void)
{
    script_reset();
    script_jump();
    db = script_open(NULL);
    once = NULL;
    script_next(OP_ONCE_LOOK, ANSWER(ROWS(3, rowlock_int(1), rowlock_text(""), rowlock_int(0))));
    tap_is_int(claim(), ROWLOCK_ESCHEMA, "a claim that answers with too few columns");
    script_next(OP_ONCE_LOOK, ANSWER(ROWS(4, rowlock_text("1"), rowlock_text(""), rowlock_int(0),
                                          rowlock_null())));
    tap_is_int(claim(), ROWLOCK_ESCHEMA, "with a text for a number");
    script_next(OP_ONCE_LIST, ANSWER(ROWS(2, rowlock_text("key"), rowlock_text(""))));
    tap_is_int(list(), ROWLOCK_ESCHEMA, "a list with too few columns");
    script_next(OP_ONCE_LIST, ANSWER(ROWS(7, rowlock_text("key"), rowlock_text(""), rowlock_int(0),
                                          rowlock_int(0), rowlock_int(0), rowlock_int(INT64_MIN),
                                          rowlock_int(1))));
    tap_is_int(list(), ROWLOCK_ESCHEMA, "with a time that is none");
    rowlock_db_close(db);
}

int main(void)
{
    for (size_t i = 0; i < COUNT(failures); i++)
        test_failure(&failures[i]);
    test_misfits();
    return tap_done();
}
