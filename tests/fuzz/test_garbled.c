/* SPDX-License-Identifier: MIT
 *
 * A server that logs us in, and then answers with what is no answer. A call ends soon, also one that
 * may wait for an hour: such a server is not away. */
#include "fake.h"
#include "quick.h"

static const char *fails(int result)
{
    return result == ROWLOCK_EUNCERTAIN || result == ROWLOCK_ECONN ? "it fails"
                                                                   : rowlock_result_name(result);
}

static void on(const char *url, const char *garbles)
{
    fake_garbles = 0;
    rowlock_db *db = must_open(url);
    rowlock_lock *lock = must_attach(db, "nightly", "ownerx", 7);
    rowlock_lock *other = must_lock(db, "other");
    fake_garbles = *garbles;
    tap_is_str(fails(rowlock_list(db, NULL, ignore_grant, NULL)), "it fails", "%s to list",
               garbles);
    tap_is_str(fails(rowlock_renew(lock, 0)), "it fails", "to renew");
    tap_is_str(fails(rowlock_sweep(db, NULL, NULL)), "it fails", "to sweep");
    tap_is_str(fails(rowlock_acquire(other, OPTIONS(acquire, .wait_ms = 3600000))), "it fails",
               "to wait for a lock");
    tap_ok(strstr(why(db), "3 answers in a row could not be read") != NULL, "and says why");
    tap_note("%s", why(db));
    rowlock_lock_close(other);
    rowlock_lock_close(lock);
    rowlock_db_close(db);
    fake_garbles = 0;
}

int main(void)
{
    if (!RLK_WITH_POSTGRES && !RLK_WITH_MYSQL)
        return tap_skip_all("no driver of a server is built in");
    /* A call that does not end ends the test. */
    alarm((unsigned)slow_ms(120));
    if (RLK_WITH_POSTGRES) {
        const char *url =
            textf("postgresql://app@127.0.0.1:%d/0?sslmode=disable&gssencmode=disable",
                  fake_postgres_start());
        for (const char *garbles = "GHW?"; *garbles; garbles++)
            on(url, (const char[]){*garbles, 0});
    }
    if (RLK_WITH_MYSQL)
        on(textf("mysql://app@127.0.0.1:%d/0?ssl_mode=disabled", fake_mysql_start()), "?");
    return tap_done();
}
