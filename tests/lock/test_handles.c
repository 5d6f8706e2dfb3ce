/* SPDX-License-Identifier: MIT
 *
 * Handles in the wrong hands: NULL, without their database, of another process; and the sizes of
 * the structs that programs are compiled with. */
#include "backend_script.h"

/* Every call on these handles is EMISUSE, or tells of nothing. Returns the first that is not, or NULL. */
static const char *all_misused(rowlock_db *db, rowlock_lock *lock)
{
    rowlock_lock *opened = (rowlock_lock *)&opened, *attached = opened;
    const struct {
        const char *call;
        long long got, want;
    } calls[] = {
        {"acquire", rowlock_acquire(lock, NULL), ROWLOCK_EMISUSE},
        {"renew", rowlock_renew(lock, 0), ROWLOCK_EMISUSE},
        {"verify", rowlock_verify(lock), ROWLOCK_EMISUSE},
        {"release", rowlock_release(lock), ROWLOCK_EMISUSE},
        {"lock_open", rowlock_lock_open(db, "x", &opened), ROWLOCK_EMISUSE},
        {"lock_attach", rowlock_lock_attach(db, "x", "me", 1, &attached), ROWLOCK_EMISUSE},
        {"install", rowlock_install(db), ROWLOCK_EMISUSE},
        {"check", rowlock_check(db, NULL, NULL, NULL), ROWLOCK_EMISUSE},
        {"list", rowlock_list(db, NULL, ignore_grant, NULL), ROWLOCK_EMISUSE},
        {"last_grant", rowlock_last_grant(db, "x", NULL, NULL), ROWLOCK_EMISUSE},
        {"sweep", rowlock_sweep(db, NULL, NULL), ROWLOCK_EMISUSE},
        {"break", rowlock_break(db, "x", 0, NULL), ROWLOCK_EMISUSE},
        {"acquire_all", rowlock_acquire_all(&lock, 1, NULL, NULL), ROWLOCK_EMISUSE},
        {"acquire_start", rowlock_acquire_start(lock, NULL), ROWLOCK_EMISUSE},
        {"acquire_step", rowlock_acquire_step(lock), ROWLOCK_EMISUSE},
        {"acquire_fd", rowlock_acquire_fd(lock), -1},
        {"list_waiters", rowlock_list_waiters(db, NULL, ignore_waiter, NULL), ROWLOCK_EMISUSE},
        {"lock_state", rowlock_lock_state(lock), ROWLOCK_STATE_NONE},
        {"lock_fd", rowlock_lock_state_fd(lock), -1},
        {"remaining_ms", rowlock_lock_remaining_ms(lock), 0},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].got != calls[i].want)
            return calls[i].call;
    return opened || attached ? "a handle that is not NULL" : NULL;
}

static void test_null(void)
{
    rowlock_grant grant = ROWLOCK_GRANT_INIT;
    tap_is_str(all_misused(NULL, NULL), NULL, "every call on NULL is a mistake that is told");
    tap_is_int(rowlock_lock_token(NULL), 0, "NULL has no token");
    tap_is_int(rowlock_lock_expires_us(NULL), 0, "nor an end");
    tap_is_str(rowlock_lock_name(NULL), "", "nor a name");
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
        tap_is_str(all_misused(NULL, all[i]), NULL, "lock handles are useless then");
        tap_is_int(rowlock_lock_token(all[i]), 0, "and hold nothing");
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

struct family {
    rowlock_db *db;
    rowlock_lock *lock;
};

static int in_child(void *argument)
{
    struct family *family = argument;
    script_calls();
    if (all_misused(family->db, family->lock))
        return 1;
    rowlock_cancel(family->db);
    rowlock_lock_close(family->lock);
    rowlock_db_close(family->db);
    if (strcmp(script_calls(), "") != 0)
        return 2;
    if (script_count(OP_CLOSE) != 1 || !script.closed_in_child)
        return 3;
    OWNED(db) rowlock_db *own = script_open(NULL);
    OWNED(lock) rowlock_lock *lock = must_lock(own, "nightly");
    if (rowlock_acquire(lock, NULL) != ROWLOCK_OK)
        return 4;
    return 0;
}

static void test_fork(void)
{
    script_reset();
    struct family family = {.db = script_open(NULL)};
    family.lock = must_lock(family.db, "nightly");
    if (rowlock_acquire(family.lock, NULL) != ROWLOCK_OK)
        tap_ok(false, "a lock is granted at first");
    static const char *const what[] = {
        "nothing went wrong", "a call on a parent's handle was no mistake",
        "closing the parent's handles asked the database", "the driver was not told of the child",
        "a child's own handles did not work"};
    int status = child_join(child_start(in_child, &family));
    tap_is_int(status, 0, "in a child a parent's handles are useless, its own are not: %s",
               status >= 0 && status < 5 ? what[status] : "it crashed");
    script_calls();
    tap_is_int(rowlock_renew(family.lock, 0), ROWLOCK_OK, "the parent goes on holding");
    tap_is_int(rowlock_release(family.lock), ROWLOCK_OK, "and releases");
    tap_is_str(script_calls(), "renew release", "on its old connection");
    script_always(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD));
    tap_is_int(wait_lock(family.lock, 1000, 30), ROWLOCK_TIMEOUT,
               "the child's cancel does not end the parent's waits");
    rowlock_lock_close(family.lock);
    rowlock_db_close(family.db);
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
