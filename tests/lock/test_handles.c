/* SPDX-License-Identifier: MIT
 *
 * Handles in the wrong hands: NULL, without their database, of another process; and the sizes of
 * the structs that programs are compiled with. */
#include "story.h"

static void test_null(void)
{
    rowlock_grant grant = ROWLOCK_GRANT_INIT;
    tap_is_str(accepted(NULL, NULL, NULL), NULL, "every call on NULL is a mistake that is told");
    tap_is_str(rowlock_lock_name(NULL), "", "NULL has no name");
    tap_is_str(rowlock_lock_owner(NULL), "", "nor an owner");
    tap_is_int(rowlock_lock_holder(NULL, &grant), ROWLOCK_EMISUSE, "nor has it met a holder");
    tap_is_int(rowlock_db_error(NULL)->code, ROWLOCK_EMISUSE, "its error says so");
    rowlock_lock_close(NULL);
    rowlock_db_close(NULL);
    tap_ok(true, "closing NULL is harmless");
}

static void test_db_closed_first(void)
{
    script_reset();
    rowlock_db *db = script_open(NULL);
    rowlock_lock *held = must_lock(db, "a"), *idle = must_lock(db, "b"), *lost = must_lock(db, "c");
    rowlock_lock *there = must_attach(db, "d", "me", 1);
    script_next(OP_RENEW, ANSWER(.missing = true));
    int got = rowlock_acquire(held, NULL) | rowlock_acquire(lost, NULL);
    if (got != ROWLOCK_OK || rowlock_renew(lost, 0) != ROWLOCK_LOST)
        tap_ok(false, "one is held, one is lost");
    script_calls();
    rowlock_db_close(db);
    tap_is_str(script_calls(), "release", "closing a database releases what is held and ours");
    tap_is_int(script_count(OP_CLOSE), 1, "and closes the connection");
    rowlock_lock *all[] = {held, idle, lost, there};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        tap_is_str(accepted(NULL, all[i], NULL), NULL,
                   "lock handles are useless then, and hold nothing");
        tap_ok(rowlock_lock_name(all[i])[0] != '\0', "but still know their name");
        rowlock_lock_close(all[i]);
    }
    tap_is_str(script_calls(), "", "closing them asks no driver");
}

static void test_locks_in_any_order(void)
{
    script_reset();
    OWNED(db) rowlock_db *db = script_open(NULL);
    rowlock_lock *one = must_lock(db, "1"), *two = must_lock(db, "2"), *three = must_lock(db, "3");
    close_locks(two, three);
    two = must_lock(db, "2");
    rowlock_lock_close(one);
    tap_ok(db->locks == two && !two->next && !two->previous,
           "locks are closed in any order and leave the others alone");
    rowlock_lock_close(two);
    tap_ok(db->locks == NULL, "to the last");
}

/* ---- fork */

static int in_child(void *argument)
{
    script_calls();
    if (accepted(story.db, story.lock, NULL))
        return 1;
    rowlock_cancel(story.db);
    story_end();
    if (strcmp(script_calls(), "") != 0)
        return 2;
    if (script_count(OP_CLOSE) != 1 || !script.closed_in_child)
        return 3;
    OWNED(db) rowlock_db *own = script_open(NULL);
    OWNED(lock) rowlock_lock *lock = must_lock(own, "nightly");
    return rowlock_acquire(lock, NULL) == ROWLOCK_OK ? 0 : 4;
}

static void test_fork(void)
{
    static const char *const what[] = {
        "nothing went wrong", "a call on a parent's handle was no mistake",
        "closing the parent's handles asked the database", "the driver was not told of the child",
        "a child's own handles did not work"};
    holding();
    int status = child_join(child_start(in_child, NULL));
    tap_is_int(status, 0, "in a child a parent's handles are useless, its own are not: %s",
               status >= 0 && status < COUNT(what) ? what[status] : "it crashed");
    tap_is_int(renews(0), ROWLOCK_OK, "the parent goes on holding");
    tap_is_int(releases(0), ROWLOCK_OK, "and releases");
    tap_is_str(script_calls(), "renew release", "on its old connection");
    script_always(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD));
    tap_is_int(wait_lock(story.lock, 1000, 30), ROWLOCK_TIMEOUT,
               "the child's cancel does not end the parent's waits");
    story_end();
}

/* ---- what programs were compiled with */

static void test_sizes(void)
{
#if defined(__x86_64__) && defined(__LP64__)
    tap_is_int((int)sizeof(rowlock_error), 1064, "the size of rowlock_error is for ever");
    tap_is_int((int)offsetof(rowlock_error, action), 28, "and where its action stands");
    tap_is_int((int)offsetof(rowlock_error, text), 328, "and its text");
    tap_is_int((int)sizeof(rowlock_db_options), 72, "of rowlock_db_options");
    tap_is_int((int)sizeof(rowlock_acquire_options), 104, "of rowlock_acquire_options");
    tap_is_int((int)sizeof(rowlock_sweep_options), 48, "of rowlock_sweep_options");
    tap_is_int((int)sizeof(rowlock_sweep_report), 40, "of rowlock_sweep_report");
    tap_is_int((int)sizeof(rowlock_grant), 1352, "of rowlock_grant");
    tap_is_int((int)offsetof(rowlock_grant, name), 72, "and where its name stands");
    tap_is_int((int)sizeof(rowlock_waiter), 1336, "of rowlock_waiter");
    tap_is_int((int)offsetof(rowlock_waiter, name), 56, "and where its name stands");
    tap_is_int((int)sizeof(rowlock_finding), 32, "of rowlock_finding");
#else
    tap_skip(1, "sizes are written down for x86-64");
#endif
}

static void test_init(void)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_grant grant = ROWLOCK_GRANT_INIT;
    rowlock_db_options db = ROWLOCK_DB_OPTIONS_INIT;
    rowlock_acquire_options acquire = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    rowlock_sweep_options sweep = ROWLOCK_SWEEP_OPTIONS_INIT;
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    tap_ok(err.size == sizeof err && grant.size == sizeof grant && db.size == sizeof db &&
               acquire.size == sizeof acquire && sweep.size == sizeof sweep &&
               report.size == sizeof report,
           "each struct begins with its size");
}

int main(void)
{
    test_null();
    test_db_closed_first();
    test_locks_in_any_order();
    test_fork();
    test_sizes();
    test_init();
    return tap_done();
}
