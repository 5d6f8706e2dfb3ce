/* SPDX-License-Identifier: MIT
 *
 * Every class of answer to every step: which result it becomes, with which words, and how often
 * the step is sent. What an answer means for a lock's state is in test_states.c. */
#include "backend_script.h"

static rowlock_lock *other; /* beside the one that most calls are about */

/* The call that takes this step. */
static int call_for(enum script_op op, rowlock_db *db, rowlock_lock *lock)
{
    rowlock_lock *both[] = {lock, other};
    switch (op) {
    case OP_ACQUIRE:
        return rowlock_acquire(lock, NULL);
    case OP_ACQUIRE_ALL:
        return rowlock_acquire_all(both, 2, NULL, NULL);
    case OP_RENEW:
        return rowlock_renew(lock, 0);
    case OP_VERIFY:
        return rowlock_verify(lock);
    case OP_RELEASE:
        return rowlock_release(lock);
    case OP_LIST:
        return rowlock_list(db, NULL, ignore_grant, NULL);
    case OP_LAST:
        return rowlock_last_grant(db, "nightly", NULL, NULL);
    case OP_WAITERS:
        return rowlock_list_waiters(db, NULL, ignore_waiter, NULL);
    case OP_BREAK:
        return rowlock_break(db, "nightly", 7, NULL);
    case OP_FACTS:
        return rowlock_check(db, NULL, NULL, NULL);
    case OP_INSTALL:
        script_next(OP_META, ANSWER(.missing = true));
        return rowlock_install(db);
    default:
        return rowlock_sweep(db, NULL, NULL);
    }
}

/* Which step fails, and what the text says was being done. */
static const struct {
    enum script_op op;
    const char *action;
    bool holding; /* needs a grant */
    bool reads; /* a lost answer leaves nothing uncertain */
} calls[] = {
    {OP_ACQUIRE, "acquire lock 'nightly'", false, false},
    {OP_RENEW, "renew lock 'nightly'", true, false},
    {OP_VERIFY, "verify lock 'nightly'", true, true},
    {OP_RELEASE, "release lock 'nightly'", true, false},
    {OP_LIST, "list locks", false, true},
    {OP_LAST, "look up the last grant", false, true},
    {OP_SWEEP, "sweep", false, false},
    {OP_SWEEP_WAITERS, "sweep", false, false},
    {OP_WAITERS, "list waiters", false, true},
    {OP_ACQUIRE_ALL, "acquire several locks", false, false},
    {OP_FOLD, "sweep", false, false},
    {OP_BREAK, "break lock 'nightly'", false, false},
    {OP_FACTS, "check the database", false, true},
    {OP_INSTALL, "install the tables", false, false},
};

/* advice: what has to stand behind the server's own words. */
static const struct {
    enum rlk_class class;
    const char *name;
    int result;
    int retryable;
    bool again; /* is sent again, for a moment */
    const char *advice;
} classes[] = {
    {RLK_CONTENTION, "CONTENTION", ROWLOCK_ESERVER, 1, true, "try again"},
    {RLK_UNSENT, "UNSENT", ROWLOCK_ECONN, 1, true, ""},
    {RLK_UNCERTAIN, "UNCERTAIN", ROWLOCK_EUNCERTAIN, 1, true, "may or may not"},
    {RLK_STANDBY, "STANDBY", ROWLOCK_EREADONLY, 1, true, "use a server that takes writes"},
    {RLK_READONLY, "READONLY", ROWLOCK_EREADONLY, 0, false, ""},
    {RLK_SCHEMA, "SCHEMA", ROWLOCK_ESCHEMA, 0, false, "rowlock install"},
    {RLK_DENIED, "DENIED", ROWLOCK_EDENIED, 0, false, ""},
    {RLK_INVALID, "INVALID", ROWLOCK_EINVAL, 0, false, ""},
    {RLK_UNSUPPORTED, "UNSUPPORTED", ROWLOCK_EUNSUPPORTED, 0, false, ""},
    {RLK_REFUSED, "REFUSED", ROWLOCK_ESERVER, 0, false, ""},
};

static void check_error(rowlock_db *db, size_t call, size_t class, int result)
{
    rowlock_error err = error_of(db);
    tap_is_int(err.code, result, "the error kept is the result returned");
    tap_is_str(err.action, calls[call].action, "the error says what was being done");
    tap_ok(strstr(err.text, "the server's own words") != NULL, "the error has the server's words");
    tap_is_int(err.native, 1234, "the error has the database's number");
    tap_is_str(err.sqlstate, "XX123", "the error has the SQLSTATE");
    if (result == classes[class].result) {
        tap_ok(strstr(err.text, classes[class].advice) != NULL, "the error says what to do");
        tap_is_int(err.retryable, classes[class].retryable, "it says whether again makes sense");
    }
}

static int expected(size_t call, size_t class)
{
    bool acquires = calls[call].op == OP_ACQUIRE || calls[call].op == OP_ACQUIRE_ALL;
    if (classes[class].class == RLK_CONTENTION && acquires)
        return ROWLOCK_BUSY;
    if (classes[class].class == RLK_UNCERTAIN && calls[call].reads)
        return ROWLOCK_ECONN;
    return classes[class].result;
}

/* No call depends on how fast the machine is. */
static rowlock_db *begin(const char *dialect)
{
    script_reset();
    script_dialect(dialect);
    script_jump();
    script.takes_writes = true;
    return script_open(NULL);
}

static rowlock_db *prepare(size_t call, rowlock_lock **lock)
{
    rowlock_db *db = begin("postgres");
    *lock = must_lock(db, "nightly");
    other = must_lock(db, "other");
    if (calls[call].holding && rowlock_acquire(*lock, NULL) != ROWLOCK_OK)
        tap_ok(false, "a lock is granted at first");
    return db;
}

static void test_class(size_t call, size_t class)
{
    rowlock_lock *lock = NULL;
    rowlock_db *db = prepare(call, &lock);
    script_always(calls[call].op, ANSWER(.class = classes[class].class, .native = 1234,
                                         .sqlstate = "XX123", .text = "the server's own words"));
    int before = script_count(calls[call].op);
    int result = call_for(calls[call].op, db, lock);
    int sent = script_count(calls[call].op) - before;
    tap_is_int(result, expected(call, class), "%s at '%s' gives %s", classes[class].name,
               calls[call].action, rowlock_result_name(expected(call, class)));
    if (result < 0)
        check_error(db, call, class, result);
    else
        tap_is_int(error_code(db), result, "and the handle says so");
    if (classes[class].again)
        tap_ok(sent >= 2 && sent <= 200, "it is sent again for a moment and no longer: %d times",
               sent);
    else
        tap_is_int(sent, 1, "it is sent once");
    if (calls[call].holding)
        tap_ok(rowlock_lock_token(lock) > 0, "the handle goes on holding the lock");
    script_always(calls[call].op, ANSWER(.class = RLK_DONE));
    tap_is_int(call_for(calls[call].op, db, lock), ROWLOCK_OK, "the same call succeeds afterwards");
    close_locks(other, lock);
    rowlock_db_close(db);
}

/* These two have words of their own. */
static void test_own_words(void)
{
    for (size_t call = 0; call < COUNT(calls); call++) {
        rowlock_lock *lock = NULL;
        rowlock_db *db = prepare(call, &lock);
        script_next(calls[call].op, ANSWER(.class = RLK_NOMEM, .text = "out of memory"));
        tap_is_int(call_for(calls[call].op, db, lock), ROWLOCK_ENOMEM, "NOMEM at '%s' gives ENOMEM",
                   calls[call].action);
        rowlock_error err = error_of(db);
        tap_is_str(err.text, "out of memory", "which is said once");
        tap_is_int(err.retryable, 1, "and may pass");
        script_next(calls[call].op, ANSWER(.class = RLK_IN_TX));
        tap_is_int(call_for(calls[call].op, db, lock), ROWLOCK_EMISUSE,
                   "IN_TX at '%s' gives EMISUSE", calls[call].action);
        tap_ok(strstr(rowlock_db_error(db)->text, "end it first") != NULL, "which says what to do");
        script_next(calls[call].op, ANSWER(.class = RLK_IN_TX, .text = "you are in XA"));
        tap_is_int(call_for(calls[call].op, db, lock), ROWLOCK_EMISUSE,
                   "and with the server's words");
        tap_ok(strstr(rowlock_db_error(db)->text, "you are in XA; the connection") != NULL,
               "apart from them");
        close_locks(other, lock);
        rowlock_db_close(db);
    }
}

static void test_opening(void)
{
    for (size_t c = 0; c < COUNT(classes); c++) {
        rowlock_db *db = (rowlock_db *)&db;
        rowlock_error err = ROWLOCK_ERROR_INIT;
        int want = classes[c].class == RLK_UNCERTAIN ? ROWLOCK_ECONN : classes[c].result;
        script_reset();
        script_always(OP_OPEN, FAILS(classes[c].class));
        tap_is_int(rowlock_db_open("sqlite:x", NULL, &db, &err), want, "%s while connecting is %s",
                   classes[c].name, rowlock_result_name(want));
        tap_ok(db == NULL, "no handle is given then");
        tap_is_int(err.code, want, "the reason is in the caller's error");
        tap_is_str(err.action, "open", "and what was being done");
        tap_is_int(script_count(OP_OPEN), 1, "connecting is tried once");
        tap_is_int(script_count(OP_CLOSE), 1, "what the driver holds is closed");
    }
}

static void test_opening_without_words(void)
{
    rowlock_db *db = NULL;
    script_reset();
    script_always(OP_OPEN, FAILS(RLK_DENIED));
    tap_is_int(rowlock_db_open("sqlite:x", NULL, &db, NULL), ROWLOCK_EDENIED,
               "the caller's error may be NULL");
    tap_is_int(rowlock_db_open("sqlite:x", NULL, NULL, NULL), ROWLOCK_EINVAL,
               "the place of the handle may not");
    tap_is_int(rowlock_db_open("mariadb://h/d", NULL, &db, NULL), ROWLOCK_EUNSUPPORTED,
               "a database that is not built in is told from a typing error");
    tap_is_int(rowlock_db_open("oracle://h/d", NULL, &db, NULL), ROWLOCK_EINVAL,
               "an unknown scheme is refused");
    tap_is_int(rowlock_db_open(NULL, NULL, &db, NULL), ROWLOCK_EINVAL, "so is a NULL URL");
    tap_is_int(rowlock_db_adopt_mysql(NULL, NULL, &db, NULL), ROWLOCK_EINVAL,
               "so is a NULL connection");
}

/* Looking at the tables reads only, so that nothing is uncertain when its answer is lost. */
static void test_looking(void)
{
    for (size_t c = 0; c < COUNT(classes); c++) {
        OWNED(db) rowlock_db *db = begin("postgres");
        OWNED(lock) rowlock_lock *lock = must_lock(db, "nightly");
        int want = classes[c].class == RLK_CONTENTION  ? ROWLOCK_BUSY
                   : classes[c].class == RLK_UNCERTAIN ? ROWLOCK_ECONN
                                                       : classes[c].result;
        script_always(OP_META, FAILS(classes[c].class));
        tap_is_int(rowlock_acquire(lock, NULL), want, "%s while looking at the tables is %s",
                   classes[c].name, rowlock_result_name(want));
        tap_is_int(script_count(OP_ACQUIRE), 0, "nothing is sent without having looked");
    }
}

static void test_looking_once(void)
{
    OWNED(db) rowlock_db *db = begin("postgres");
    OWNED(lock) rowlock_lock *lock = must_lock(db, "nightly");
    int got = rowlock_acquire(lock, NULL) | rowlock_renew(lock, 0) | rowlock_release(lock);
    tap_is_int(got, ROWLOCK_OK, "acquire, renew, release");
    tap_is_str(script_calls(), "meta acquire renew release",
               "the tables are looked at once for each connection");
    script_next(OP_ACQUIRE, FAILS(RLK_SCHEMA));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_ESCHEMA, "the tables went away");
    script_calls();
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK, "they are back");
    tap_is_str(script_calls(), "meta acquire", "they are looked at anew then");
}

/* ---- answers that no database means are not believed, and none keeps a call going for ever */

static void test_tokens(void)
{
    OWNED(db) rowlock_db *db = begin("postgres");
    rowlock_lock *locks[2] = {must_lock(db, "a"), must_lock(db, "b")};
    script_next(OP_ACQUIRE, ANSWER(.token = -1));
    tap_is_int(try_lock(locks[0], 30000), ROWLOCK_EUNCERTAIN, "a grant with a token below 1");
    tap_is_int(rowlock_lock_token(locks[0]), 0, "is not believed");
    script_next(OP_ACQUIRE_ALL, ANSWER(.token = -1));
    tap_is_int(rowlock_acquire_all(locks, 2, NULL, NULL), ROWLOCK_EUNCERTAIN, "one among several");
    tap_is_int(rowlock_lock_token(locks[1]), 0, "is not believed either");
    close_locks(locks[0], locks[1]);
}

static void test_long_renewal(void)
{
    OWNED(db) rowlock_db *db = begin("sqlite");
    OWNED(lock) rowlock_lock *lock = must_lock(db, "a");
    tap_is_int(try_lock(lock, 30000), ROWLOCK_OK, "a lock is had");
    script_next(OP_RENEW, ANSWER(.left_us = INT64_C(1) << 60));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "a renewal for longer than was asked for");
    tap_is_int(rowlock_lock_remaining_ms(lock), 30000, "counts for no longer than that");
}

/* A try for several locks asks which is in the way. That takes the connection away each time. */
static void test_wait_ends(void)
{
    OWNED(db) rowlock_db *db = begin("postgres");
    rowlock_lock *locks[2] = {must_lock(db, "a"), must_lock(db, "b")};
    script_always(OP_ACQUIRE_ALL, ANSWER(.outcome = RLK_IN_FLIGHT));
    script_always(OP_LIST, (struct script_answer){.class = RLK_UNSENT, .takes_us = 1000000});
    tap_is_int(rowlock_acquire_all(locks, 2, OPTIONS(acquire, .wait_ms = 1000), NULL),
               ROWLOCK_TIMEOUT, "a wait ends, even if the connection is lost after each try");
    close_locks(locks[0], locks[1]);
}

static void test_sweeps_end(void)
{
    static const enum script_op ops[] = {OP_SWEEP_WAITERS, OP_FOLD};
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    int64_t removed;
    for (int i = 0; i < 2; i++) {
        OWNED(db) rowlock_db *db = begin("sqlite");
        script_always(ops[i], ANSWER(.rows = 500, .takes_us = 1000000));
        tap_is_int(rowlock_sweep(db, NULL, &report), ROWLOCK_OK, "a sweep that finds no end");
        tap_is_int(script_count(ops[i]), 3600, "ends after an hour");
        tap_is_int(report.waiters + report.counters, 500 * 3600, "and tells what it did");
    }
    OWNED(db) rowlock_db *db = begin("sqlite");
    script_always(OP_ONCE_SWEEP, ANSWER(.changed = 500, .takes_us = 1000000));
    tap_is_int(rowlock_once_sweep(db, 1, 0, &removed), ROWLOCK_OK, "one of keys");
    tap_is_int(removed, 500 * 3600, "likewise");
}

int main(void)
{
    alarm(300); /* a call that never ends ends here */
    for (size_t call = 0; call < COUNT(calls); call++)
        for (size_t class = 0; class < COUNT(classes); class ++)
            test_class(call, class);
    test_own_words();
    test_opening();
    test_opening_without_words();
    test_looking();
    test_looking_once();
    test_tokens();
    test_long_renewal();
    test_wait_ends();
    test_sweeps_end();
    return tap_done();
}
