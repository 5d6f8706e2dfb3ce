/* SPDX-License-Identifier: MIT
 *
 * No wake-up is lost on SQLite: the lock is released before and after each statement that a waiter's
 * connection runs until it sleeps, and no waiter polls meanwhile. What servers need for that is in wakeup.c.
 */
#include "crowd.h"

#include <sqlite3.h>

enum { STEPS_MAX = 40, SURE = 6, LONG_MS = 30000 };

/* SQLite tells when a statement begins and ends, in the thread that runs it, which waits here until we
 * have done what is to be done then. */
static struct {
    atomic_bool armed;
    atomic_int left; /* steps until the one that is held up */
    atomic_bool held, let_go;
} step;

static int hold_up(unsigned what, void *context, void *statement, void *more)
{
    sqlite3 *conn = sqlite3_db_handle(statement);
    if (!step.armed || atomic_fetch_sub(&step.left, 1) != 1)
        return 0;
    /* No other client can write in the middle of a write: then it is done just after. */
    if (sqlite3_txn_state(conn, NULL) == SQLITE_TXN_WRITE) {
        step.left = 1;
        return 0;
    }
    step.held = true;
    (void)EVENTUALLY(step.let_go);
    return 0;
}

static int trace(sqlite3 *conn, const char **error, const sqlite3_api_routines *routines)
{
    sqlite3_trace_v2(conn, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, hold_up, NULL);
    return SQLITE_OK;
}

/* Until it is held up. A waiter that is asleep comes to no other step. */
static bool held_up(const struct guest *waiter, int nth)
{
    int64_t until = clock_ms() + slow_ms(nth <= SURE ? LONG_MS : 100);
    while (!step.held && !waiter->ended && clock_ms() < until)
        sleep_ms(1);
    return step.held;
}

/* False if it sleeps before its nth step. */
static bool release_at(struct guest *holder, struct guest *waiter, int nth)
{
    guest_try(holder);
    step.left = nth;
    step.held = step.let_go = false;
    step.armed = true;
    guest_start(waiter);
    bool reached = held_up(waiter, nth);
    guest_leave(holder);
    step.let_go = true;
    is_result(waiter->db, guest_join(waiter), ROWLOCK_OK,
              "released at step %d of the waiter, it is woken and gets the lock", nth);
    step.armed = false;
    guest_leave(waiter);
    return reached;
}

void contract_sqlite_steps(const struct contract *c)
{
    int nth = 1;
    /* They are seen on the waiter's own connection. */
    if (getenv("ROWLOCK_TEST_POOL"))
        return;
    CLOSED_BY(guest_close) struct guest holder, waiter;
    guest_open(&holder, c, "steps", 0);
    sqlite3_auto_extension((void (*)(void))trace);
    guest_open(&waiter, c, "steps", 0);
    sqlite3_cancel_auto_extension((void (*)(void))trace);
    guest_tries(&waiter, ROWLOCK_OK, "a lock is granted");
    guest_releases(&waiter, ROWLOCK_OK, "and released");
    waiter.how.ticket_ms = HELD_MS;
    set_polls(ONLY_WAKEUPS);
    while (nth < STEPS_MAX && release_at(&holder, &waiter, nth))
        nth++;
    tap_ok(nth > SURE && nth < STEPS_MAX, "a waiter takes %d steps before it sleeps", nth - 1);
    set_polls(0);
}
