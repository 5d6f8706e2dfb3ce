/* SPDX-License-Identifier: MIT
 *
 * A quorum of three members that all are there: what one client, and some, are granted. */
#include "members.h"

#include "each.h"

#include <stdatomic.h>

enum { ALONE = 1000, TOGETHER = 4, TURNS = 50, TTL_MS = 60000, WAIT_MS = 60000 };

static struct members members;

static void test_alone(void)
{
    rowlock_db *db = members_open(&members);
    rowlock_lock *lock = must_lock(db, "alone");
    int64_t newest = 0;
    int granted = 0, released = 0, ordered = 0;
    for (int i = 0; i < ALONE; i++) {
        if (try_lock(lock, TTL_MS) != ROWLOCK_OK)
            continue;
        granted++;
        ordered += rowlock_lock_token(lock) > newest;
        newest = rowlock_lock_token(lock);
        released += rowlock_release(lock) == ROWLOCK_OK;
        rowlock_forget(lock);
    }
    tap_is_int(granted, ALONE, "a client that is alone is always granted the lock");
    tap_is_int(released, ALONE, "and is never told LOST");
    tap_is_int(ordered, ALONE, "and each token is higher than the one before");
    tap_ok(rows_become(&members, 0, 0, 0), "no row is left in any member");
    close_locks(lock);
    rowlock_db_close(db);
}

/* ---- several */

static atomic_int holders, together, turns;

static int take_turns(void *argument)
{
    rowlock_db *db = members_open(&members);
    rowlock_lock *lock = must_lock(db, "together");
    (void)argument;
    for (int i = 0; i < TURNS; i++) {
        if (wait_lock(lock, TTL_MS, slow_ms(WAIT_MS)) != ROWLOCK_OK) {
            tap_note("%s", why(db));
            continue;
        }
        together += atomic_fetch_add(&holders, 1) > 0;
        turns++;
        atomic_fetch_sub(&holders, 1);
        if (rowlock_release(lock) != ROWLOCK_OK)
            tap_note("%s", why(db));
        rowlock_forget(lock);
        sleep_ms(1);
    }
    close_locks(lock);
    rowlock_db_close(db);
    return 0;
}

static void test_together(void)
{
    struct helper *helper[TOGETHER];
    for (int i = 0; i < TOGETHER; i++)
        helper[i] = helper_start(take_turns, NULL);
    for (int i = 0; i < TOGETHER; i++)
        helper_join(helper[i]);
    tap_is_int(turns, TOGETHER * TURNS, "each of several waiters gets each of its turns");
    tap_is_int(together, 0, "and never two at once");
    tap_ok(rows_become(&members, 0, 0, 0), "no row is left in any member");
}

static int run(const struct raw *raw, const char *url)
{
    members_make(&members, raw, url);
    test_alone();
    test_together();
    members_drop(&members);
    return tap_done();
}

int main(int argc, char **argv)
{
    (void)argc;
    return each_main(argv, run);
}
