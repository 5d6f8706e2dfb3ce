/* SPDX-License-Identifier: MIT
 *
 * Connections that belong to the application: used between its transactions, left as they were. */
#include "contract.h"

enum { TTL_MS = 30000 };

static void left_as_it_was(const struct contract *c)
{
    char before[300], after[300];
    OWNED(session) void *session = c->raw->open(c->url);
    ask_any(c, session, c->settings, before, sizeof before);
    rowlock_db *db = must_adopt(c->raw, session, NULL), *other = must_open(c->url);
    rowlock_lock *lock = must_lock(db, "adopted"), *rival = must_lock(other, "adopted");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "acquire on an adopted connection");
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_OK, "renew");
    is_result(db, rowlock_verify(lock), ROWLOCK_OK, "verify");
    tap_is_int(
        raw_int(c->raw, session, "SELECT count(*) FROM rowlock_locks WHERE name = 'adopted'"), 1,
        "the application may use it in between");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "release");
    is_result(db, rowlock_sweep(db, NULL, NULL), ROWLOCK_OK, "sweep");
    is_result(db, rowlock_check(db, NULL, NULL, NULL), ROWLOCK_OK, "check");
    is_result(db, rowlock_install(db), ROWLOCK_OK, "install");
    is_result(db, rowlock_break(db, "adopted", 0, NULL), ROWLOCK_NONE, "break");
    is_result(other, try_lock(rival, TTL_MS), ROWLOCK_OK, "another holds the lock");
    for (int i = 0; i < 3; i++)
        is_result(db, try_lock(lock, TTL_MS), ROWLOCK_BUSY, "a busy try");
    raw_run(c->raw, session, "%s", c->begin);
    tap_is_int(raw_int(c->raw, session, "SELECT 1"), 1, "leaves no failed transaction behind");
    raw_run(c->raw, session, "ROLLBACK");
    is_result(other, rowlock_release(rival), ROWLOCK_OK, "the other releases");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "acquire again");
    close_locks(lock, rival);
    close_dbs(db, other);
    tap_is_int(rows_of(c, "adopted"), 0, "closing our handles has released the lock");
    tap_is_int(raw_int(c->raw, session, "SELECT 42"), 42, "and left the connection open");
    /* A server ends the other's session, and what that has prepared, a moment after it is closed. */
    (void)EVENTUALLY(
        (ask_any(c, session, c->settings, after, sizeof after), strcmp(after, before) == 0));
    tap_is_str(after, before, "with all settings as they were");
}

/* Every call that speaks to the database; returns how many said EMISUSE. */
static int refused(rowlock_db *db, rowlock_lock *lock)
{
    int64_t number;
    const int results[] = {
        rowlock_renew(lock, TTL_MS),
        rowlock_verify(lock),
        rowlock_release(lock),
        rowlock_list(db, NULL, ignore_grant, NULL),
        rowlock_sweep(db, NULL, NULL),
        rowlock_break(db, "adopted tx", 0, NULL),
        rowlock_last_grant(db, "adopted tx", &number, &number),
        rowlock_install(db),
        rowlock_check(db, NULL, NULL, NULL),
    };
    int count = 0;
    for (int i = 0; i < COUNT(results); i++) {
        if (results[i] != ROWLOCK_EMISUSE)
            tap_note("call %d said %s", i, rowlock_result_name(results[i]));
        count += results[i] == ROWLOCK_EMISUSE;
    }
    return count;
}

/* The commit of a lock must not commit what the caller has begun. */
static void inside_a_transaction(const struct contract *c)
{
    OWNED(session) void *session = c->raw->open(c->url);
    exec_on(c, "DROP TABLE IF EXISTS adopt_data");
    exec_on(c, "CREATE TABLE adopt_data (n INTEGER)%s", is_mysql(c) ? " ENGINE = InnoDB" : "");
    rowlock_db *db = must_adopt(c->raw, session, NULL);
    rowlock_lock *lock = must_lock(db, "adopted tx"), *other = must_lock(db, "adopted tx 2");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is held");

    raw_run(c->raw, session, "%s", c->begin);
    raw_run(c->raw, session, "INSERT INTO adopt_data VALUES (1)");
    is_result(db, try_lock(other, TTL_MS), ROWLOCK_EMISUSE, "no try within a transaction");
    is_result(db, wait_lock(other, TTL_MS, 1000), ROWLOCK_EMISUSE, "no wait");
    tap_ok(strstr(why(db), "transaction") != NULL, "and the reason is told");
    tap_is_int(refused(db, lock), 9, "nor anything else");
    raw_run(c->raw, session, "INSERT INTO adopt_data VALUES (2)");
    if (c->has_server)
        tap_is_int(int_on(c, "SELECT count(*) FROM adopt_data"), 0,
                   "the transaction was not committed by us");
    raw_run(c->raw, session, "ROLLBACK");
    tap_is_int(int_on(c, "SELECT count(*) FROM adopt_data"), 0,
               "its end is the application's: rolled back");
    is_result(db, rowlock_verify(lock), ROWLOCK_OK, "the lock that was held is held");

    raw_run(c->raw, session, "%s", c->begin);
    raw_run(c->raw, session, "INSERT INTO adopt_data VALUES (3)");
    tap_is_int(refused(db, lock), 9, "in the next transaction likewise");
    raw_run(c->raw, session, "COMMIT");
    tap_is_int(int_on(c, "SELECT count(*) FROM adopt_data"), 1, "committed");
    is_result(db, rowlock_renew(lock, TTL_MS), ROWLOCK_OK, "after it all works again");

    raw_run(c->raw, session, "%s", c->begin);
    raw_run(c->raw, session, "INSERT INTO adopt_data VALUES (4)");
    close_locks(lock, other);
    rowlock_db_close(db);
    raw_run(c->raw, session, "COMMIT");
    tap_is_int(int_on(c, "SELECT count(*) FROM adopt_data"), 2,
               "closing within a transaction leaves that alone too");
    exec_on(c, "DROP TABLE adopt_data");
    exec_on(c, "DELETE FROM rowlock_locks WHERE name = 'adopted tx'");
}

static void autocommit_off(const struct contract *c)
{
    OWNED(session) void *session = c->raw->open(c->url);
    raw_run(c->raw, session, "SET autocommit = 0");
    OWNED(db) rowlock_db *db = must_adopt(c->raw, session, NULL);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "autocommit");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_EMISUSE, "with autocommit off nothing is sent");
    raw_run(c->raw, session, "SET autocommit = 1");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "with autocommit on it is");
}

static void lost_connection(const struct contract *c)
{
    OWNED(session) void *session = c->raw->open(c->url);
    OWNED(db) rowlock_db *db = must_adopt(c->raw, session, NULL);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "adopted lost");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is held");
    kill_session(c, session);
    int result = rowlock_renew(lock, TTL_MS);
    tap_ok(result == ROWLOCK_ECONN || result == ROWLOCK_EUNCERTAIN,
           "a lost connection is told (%s)", rowlock_result_name(result));
    is_result(db, rowlock_renew(lock, TTL_MS), ROWLOCK_ECONN, "and not replaced by one of ours");
    tap_ok(rowlock_lock_remaining_ms(lock) > 0, "the lease runs on as far as it was known");
    exec_on(c, "DELETE FROM rowlock_locks WHERE name = 'adopted lost'");
}

static void nothing_to_adopt(const struct contract *c)
{
    rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    tap_is_result(c->raw->adopt(&db, NULL, NULL, &err), ROWLOCK_EINVAL, "adopting NULL is refused");
    tap_ok(db == NULL && err.text[0], "with a reason");
}

/* PostgreSQL would give us names in another encoding than the one we compare in. */
static void other_encoding(const struct contract *c)
{
    OWNED(db) rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    OWNED(session) void *session = c->raw->open(c->url);
    raw_run(c->raw, session, "SET client_encoding = 'LATIN1'");
    int result = c->raw->adopt(&db, session, NULL, &err);
    tap_is_result(result, ROWLOCK_EINVAL, "a connection whose encoding is not UTF8 is refused");
}

void contract_adopt(const struct contract *c)
{
    left_as_it_was(c);
    inside_a_transaction(c);
    nothing_to_adopt(c);
    if (c->has_server && !c->pooled)
        lost_connection(c);
    if (is_mysql(c))
        autocommit_off(c);
    if (is_postgres(c))
        other_encoding(c);
}
