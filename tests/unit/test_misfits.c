/* SPDX-License-Identifier: MIT
 *
 * Answers that no database means: they are not believed, and none keeps a call going for ever. Real servers
 * that answer so are in the contract tests, and servers that lie at random in tests/fuzz.
 */
#include "backend_script.h"
#include "quick.h"
#include "tap.h"

#include <rowlock/versions.h>
#include <string.h>
#include <unistd.h>

enum { TTL_MS = 10000, TOO_LONG = 60 };

static rowlock_db *db;
static rowlock_table *table;

static void begin(const char *dialect)
{
    static const char *const key[] = {"id", NULL}, *const columns[] = {"price", NULL};
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    script_reset();
    script_dialect(dialect);
    script_jump();
    db = script_open(NULL);
    about.name = "prices";
    about.key = key;
    about.columns = columns;
    if (rowlock_table_open(db, &about, &table) != ROWLOCK_OK)
        tap_ok(false, "a table is opened: %s", why(db));
}

static void end(void)
{
    rowlock_table_close(table);
    rowlock_db_close(db);
}

/* ---- grants */

static void test_tokens(void)
{
    begin("sqlite");
    rowlock_lock *locks[2] = {must_lock(db, "a"), must_lock(db, "b")};
    script_next(OP_ACQUIRE, ANSWER(.token = -1));
    tap_is_int(try_lock(locks[0], TTL_MS), ROWLOCK_EUNCERTAIN, "a grant with a token below 1");
    tap_is_int(rowlock_lock_token(locks[0]), 0, "is not believed");
    script_next(OP_ACQUIRE_ALL, ANSWER(.token = -1));
    tap_is_int(rowlock_acquire_all(locks, 2, NULL, NULL), ROWLOCK_EUNCERTAIN, "one among several");
    tap_is_int(rowlock_lock_token(locks[1]), 0, "is not believed either");
    rowlock_lock_close(locks[0]);
    rowlock_lock_close(locks[1]);
    end();
}

static void test_long_renewal(void)
{
    begin("sqlite");
    rowlock_lock *lock = must_lock(db, "a");
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is had");
    script_next(OP_RENEW, ANSWER(.left_us = INT64_C(1) << 60));
    tap_is_int(rowlock_renew(lock, 0), ROWLOCK_OK, "a renewal for longer than was asked for");
    tap_is_int(rowlock_remaining_ms(lock), TTL_MS, "counts for no longer than that");
    rowlock_lock_close(lock);
    end();
}

int main(void)
{
    alarm(TOO_LONG); /* a call that never ends ends here */
    test_tokens();
    test_long_renewal();
    return tap_done();
}
