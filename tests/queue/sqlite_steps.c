/* SPDX-License-Identifier: MIT
 *
 * No wake-up is lost on SQLite: the lock is released before and after each statement that a waiter's
 * connection runs until he sleeps. What servers need for that is in wakeup.c.
 */
#include "crowd.h"

#include <sqlite3.h>
#include <stdlib.h>

enum { REPEATS = 3, STEPS_MAX = 40, LONG_MS = 2000 };

/* SQLite tells when a statement begins and ends, in the thread that runs it, which waits here until we
 * have done what is to be done then. */
static struct {
    atomic_bool armed; /* connections are traced whose thread is the waiter's */
    atomic_int left; /* steps until the one that is held up */
    atomic_bool held, let_go;
} step;
static _Thread_local bool is_waiter;

static int hold_up(unsigned what, void *context, void *statement, void *more)
{
    sqlite3 *conn = sqlite3_db_handle(statement);
    (void)what, (void)context, (void)more;
    if (!is_waiter || !step.armed || atomic_fetch_sub(&step.left, 1) != 1)
        return 0;
    /* In the middle of his own writing nobody else can write: then it is done just after. */
    if (sqlite3_txn_state(conn, NULL) == SQLITE_TXN_WRITE) {
        step.left = 1;
        return 0;
    }
    step.held = true;
    int64_t until = clock_ms() + slow_ms(LONG_MS);
    while (!step.let_go && clock_ms() < until)
        sleep_ms(1);
    return 0;
}

static int trace(sqlite3 *conn, const char **error, const sqlite3_api_routines *routines)
{
    (void)error, (void)routines;
    sqlite3_trace_v2(conn, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, hold_up, NULL);
    return SQLITE_OK;
}

static int stand(void *argument)
{
    struct guest *g = argument;
    is_waiter = true;
    int result = rowlock_acquire(g->lock, &g->how);
    g->ended = true;
    return result;
}

/* Until he is held up; or asleep, for want of another step. */
static bool held_up(const struct guest *waiter)
{
    int64_t until = clock_ms() + slow_ms(200);
    while (!step.held && !waiter->ended && clock_ms() < until)
        sleep_ms(1);
    return step.held;
}

/* False if he sleeps before his nth step. */
static bool release_at(struct guest *holder, struct guest *waiter, struct metronome *m, int nth)
{
    int granted = 0, reached = 0, overslept = 0;
    for (int i = 0; i < REPEATS; i++) {
        guest_try(holder);
        step.left = nth;
        step.held = step.let_go = false;
        step.armed = true;
        waiter->ended = false;
        struct helper *thread = helper_start(stand, waiter);
        reached += held_up(waiter);
        metronome_look(m);
        int before = m->heartbeats;
        guest_leave(holder);
        step.let_go = true;
        granted += helper_join(thread) == ROWLOCK_OK;
        step.armed = false;
        metronome_look(m);
        overslept += m->heartbeats - before;
        guest_leave(waiter);
    }
    tap_is_int(granted, REPEATS, "released at step %d of the waiter, he gets it", nth);
    tap_ok(overslept < REPEATS, "and has not overslept (%d heartbeats)", overslept);
    return reached > 0;
}

void contract_sqlite_steps(const struct contract *c)
{
    struct guest holder, waiter;
    struct metronome m;
    int nth = 1;
    /* They are seen on the waiter's own connection. */
    if (getenv("ROWLOCK_TEST_POOL"))
        return;
    guest_open(&holder, c, "steps", 0);
    metronome_start(&m, c);
    sqlite3_auto_extension((void (*)(void))trace);
    guest_open(&waiter, c, "steps", 0);
    sqlite3_cancel_auto_extension((void (*)(void))trace);
    guest_tries(&waiter, ROWLOCK_OK, "a lock is granted");
    guest_releases(&waiter, ROWLOCK_OK, "and released");
    while (nth < STEPS_MAX && release_at(&holder, &waiter, &m, nth))
        nth++;
    tap_ok(nth > 6 && nth < STEPS_MAX, "a waiter takes %d steps before he sleeps", nth - 1);
    metronome_stop(&m);
    guests_close(&waiter, &holder, NULL);
}
