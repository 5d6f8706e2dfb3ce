/* SPDX-License-Identifier: MIT
 *
 * A grant that stalls between drawing its token and being there, and rows that another transaction has
 * locked: tries come back at once, tokens stay in order, other names are not disturbed. */
#include "contract.h"

enum { TTL_MS = 60000, STALL_MS = 300, AT_ONCE_MS = 10000 };

static const char PREFIX[] = "stalling_";
static const char SLOW[] = "slowpoke"; /* the owner whose rows take their time */

/* Its grants stall while a transaction has the gate locked, and STALL_MS longer. */
static void make_slow(const struct contract *c)
{
    exec_on(c, "DROP TABLE IF EXISTS stalling_gate");
    exec_on(c, "CREATE TABLE stalling_gate (id INT PRIMARY KEY)");
    exec_on(c, "INSERT INTO stalling_gate VALUES (1)");
    if (is_postgres(c)) {
        exec_on(c,
                "CREATE OR REPLACE FUNCTION stalling_sleep() RETURNS trigger LANGUAGE plpgsql "
                "SET search_path FROM CURRENT AS $$ BEGIN IF NEW.owner = '%s' THEN "
                "PERFORM id FROM stalling_gate FOR UPDATE; PERFORM pg_sleep(%d / 1000.0); END IF; "
                "RETURN NEW; END $$",
                SLOW, STALL_MS);
        exec_on(c, "CREATE TRIGGER stalling_trigger BEFORE INSERT OR UPDATE OF token "
                   "ON stalling_locks FOR EACH ROW EXECUTE FUNCTION stalling_sleep()");
    } else {
        exec_on(c,
                "CREATE TRIGGER stalling_trigger BEFORE INSERT ON stalling_locks FOR EACH ROW "
                "BEGIN DECLARE gate INT; IF NEW.owner = '%s' THEN "
                "SELECT id INTO gate FROM stalling_gate WHERE id = 1 FOR UPDATE; "
                "DO SLEEP(%d / 1000); END IF; END",
                SLOW, STALL_MS);
    }
}

/* A try that waits, though it must not, lasts longer than AT_ONCE_MS. */
static rowlock_db *open_patient(const char *url, const char *owner)
{
    return must_open_with(url, OPTIONS(db, .owner = owner, .statement_timeout_ms = 120000));
}

/* A try, which has to come back at once. */
static int prompt_try(rowlock_lock *lock, const char *what)
{
    int64_t begin = clock_ms();
    int result = try_lock(lock, TTL_MS);
    int64_t took = clock_ms() - begin;
    tap_ok(took < slow_ms(AT_ONCE_MS), "%s comes back at once (%lld ms)", what, (long long)took);
    return result;
}

static int acquire_slowly(void *lock)
{
    return try_lock(lock, TTL_MS);
}

static void stalled_grant(const struct contract *c, const char *url)
{
    OWNED(db) rowlock_db *slow = open_patient(url, SLOW), *quick = open_patient(url, NULL);
    OWNED(lock)
    rowlock_lock *stalled = must_lock(slow, "stalled"), *same = must_lock(quick, "stalled");
    OWNED(lock) rowlock_lock *other = must_lock(quick, "another");
    OWNED(session) void *gate = c->raw->open(c->url);
    int64_t token = 0;
    /* The first grant of a name ever, one where its counter is there, one over an expired row. */
    static const char *const kinds[] = {"of a new name", "of a known name", "of an expired lock"};
    for (int i = 0; i < 3; i++) {
        raw_run(c->raw, gate, "%s", c->begin);
        raw_run(c->raw, gate, "SELECT id FROM stalling_gate WHERE id = 1 %s", c->lock);
        struct helper *helper = helper_start(acquire_slowly, stalled);
        tap_ok(somebody_waits(c), "a grant waits before its gate");
        is_result(quick, prompt_try(same, "a try beside a stalled grant"), ROWLOCK_BUSY,
                  "a grant %s stalls: others are told BUSY", kinds[i]);
        tap_is_int(holder_of(same).token, 0, "and no holder can be named");
        is_result(quick, prompt_try(other, "another name"), ROWLOCK_OK, "other names are granted");
        is_result(quick, rowlock_release(other), ROWLOCK_OK, "and released");
        tap_ok(!helper_ended(helper), "it did stall");
        raw_run(c->raw, gate, "COMMIT");
        is_result(slow, helper_join(helper), ROWLOCK_OK, "then the stalled grant is there");
        tap_ok(rowlock_lock_token(stalled) > token, "its token is higher than the one before");
        token = rowlock_lock_token(stalled);
        is_result(quick, try_lock(same, TTL_MS), ROWLOCK_BUSY, "others are told BUSY");
        tap_is_int(holder_of(same).token, token,
                   "and the holder by the token that was drawn early");
        is_result(slow, rowlock_release(stalled), ROWLOCK_OK, "it is released");
        is_result(quick, try_lock(same, TTL_MS), ROWLOCK_OK, "the next grant");
        tap_ok(rowlock_lock_token(same) > token, "has a higher token");
        token = rowlock_lock_token(same);
        rowlock_lock_close(same);
        same = must_lock(quick, "stalled");
        if (i == 1)
            db_exec(
                c->raw, c->url,
                "INSERT INTO stalling_locks (name, slot, permits, owner, token, request, acquired, "
                "expires, ttl) VALUES ('stalled', 0, 0, 'gone', %lld, 1, 1, 2, 1)",
                (long long)token);
    }
}

static void lease_shorter_than_the_stall(const char *url)
{
    enum { LEASE_MS = STALL_MS - 100 };
    OWNED(db) rowlock_db *slow = open_patient(url, SLOW);
    OWNED(lock) rowlock_lock *lock = must_lock(slow, "short lease");
    is_result(slow, try_lock(lock, LEASE_MS), ROWLOCK_OK,
              "a grant that took longer than its lease is made whole");
    int64_t remaining_ms = rowlock_lock_remaining_ms(lock);
    /* This machine may have stood still for longer than that. */
    for (int more = 20; remaining_ms == 0 && more > 0; more--) {
        if (rowlock_release(lock) != ROWLOCK_OK || try_lock(lock, LEASE_MS) != ROWLOCK_OK)
            tap_ok(false, "released and granted again: %s", why(slow));
        remaining_ms = rowlock_lock_remaining_ms(lock);
    }
    tap_ok(remaining_ms > 0, "so that time remains of it");
}

/* What another transaction has locked is BUSY, and not waited for. */
static void busy_meanwhile(const struct contract *c, const char *sql, const rowlock_db *db,
                           rowlock_lock *lock, const char *what)
{
    OWNED(session) void *session = c->raw->open(c->url);
    raw_run(c->raw, session, "%s", c->begin);
    raw_run(c->raw, session, "%s", sql);
    is_result(db, prompt_try(lock, "a try"), ROWLOCK_BUSY, "%s is BUSY", what);
    raw_run(c->raw, session, "ROLLBACK");
}

static void locked_rows(const struct contract *c, const char *url)
{
    static const char counter[] =
        "SELECT token FROM stalling_tokens WHERE name = 'guarded' FOR UPDATE";
    OWNED(db) rowlock_db *db = open_patient(url, NULL), *two = open_patient(url, NULL);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "guarded"), *other = must_lock(two, "guarded");
    OWNED(session) void *session = c->raw->open(c->url);
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "a name is granted");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "and released");

    busy_meanwhile(c, counter, db, lock, "a counter locked by an open transaction");
    is_result(db, prompt_try(lock, "a try after it"), ROWLOCK_OK, "until that has ended");

    raw_run(c->raw, session, "%s", c->begin);
    raw_run(c->raw, session, "%s", counter);
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_OK,
              "a locked counter does not keep from renewing");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "nor from releasing");
    raw_run(c->raw, session, "COMMIT");

    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is held for a moment");
    exec_on(c, "UPDATE stalling_locks SET expires = 1");
    busy_meanwhile(c, "SELECT token FROM stalling_locks WHERE name = 'guarded' FOR UPDATE", two,
                   other, "an expired row locked by an open transaction");
    is_result(two, prompt_try(other, "a try after it"), ROWLOCK_OK, "until that has ended");

    is_result(db, rowlock_release(lock), ROWLOCK_LOST, "(the old handle lets go)");
    busy_meanwhile(c, "DELETE FROM stalling_locks WHERE name = 'guarded'", db, lock,
                   "a row that is being released");
    is_result(two, rowlock_verify(other), ROWLOCK_OK, "the release was taken back");
}

/* ---- SQLite: one writer at a time, which may take a break */

struct writer {
    const struct contract *c;
    const char *url;
    atomic_bool began, may_end;
};

static int write_slowly(void *argument)
{
    struct writer *writer = argument;
    OWNED(session) void *session = writer->c->raw->open(writer->url);
    raw_run(writer->c->raw, session, "BEGIN IMMEDIATE");
    raw_run(writer->c->raw, session, "UPDATE stalling_meta SET version = version");
    writer->began = true;
    while (!writer->may_end)
        sleep_ms(1);
    sleep_ms(STALL_MS);
    raw_run(writer->c->raw, session, "COMMIT");
    return 0;
}

static void paused_writer(const struct contract *c, const char *url)
{
    OWNED(db) rowlock_db *one = open_patient(url, NULL), *two = open_patient(url, NULL);
    OWNED(lock) rowlock_lock *held = must_lock(one, "held"), *wanted = must_lock(two, "held");
    OWNED(lock) rowlock_lock *free_one = must_lock(two, "free");
    struct writer writer = {.c = c, .url = url};
    is_result(one, try_lock(held, TTL_MS), ROWLOCK_OK, "a lock is held");
    is_result(two, try_lock(wanted, TTL_MS), ROWLOCK_BUSY, "which another client is told");
    is_result(one, rowlock_release(held), ROWLOCK_OK, "it is released");
    is_result(one, try_lock(held, TTL_MS), ROWLOCK_OK, "and held again by another grant");
    int64_t token = rowlock_lock_token(held);
    struct helper *helper = helper_start(write_slowly, &writer);
    while (!writer.began)
        sleep_ms(1);
    is_result(two, prompt_try(wanted, "a try for a held lock beside a slow writer"), ROWLOCK_BUSY,
              "a held lock is BUSY while somebody writes to the file");
    tap_is_int(holder_of(wanted).token, token, "and its holder is told");
    is_result(two, prompt_try(wanted, "a second try beside a slow writer"), ROWLOCK_BUSY,
              "and it is BUSY the next time");
    is_result(one, rowlock_verify(held), ROWLOCK_OK, "verifying does not wait either");
    int64_t begin = clock_ms();
    is_result(two, try_lock(free_one, TTL_MS), ROWLOCK_BUSY,
              "a free lock cannot be had while somebody writes");
    int64_t took = clock_ms() - begin;
    tap_ok(took < slow_ms(AT_ONCE_MS), "which is told after a moment (%lld ms)", (long long)took);
    writer.may_end = true;
    is_result(two, wait_lock(free_one, TTL_MS, 60000), ROWLOCK_OK,
              "waiting gets it when the writer is done");
    helper_join(helper);
    is_result(one, rowlock_release(held), ROWLOCK_OK, "the holder releases");
    is_result(two, try_lock(wanted, TTL_MS), ROWLOCK_OK, "the next grant");
    tap_ok(rowlock_lock_token(wanted) > token, "has a higher token");
}

void contract_stalls(const struct contract *c)
{
    OWNED(text) char *url = fresh_tables(c, PREFIX);
    if (c->has_server) {
        make_slow(c);
        stalled_grant(c, url);
        lease_shorter_than_the_stall(url);
        locked_rows(c, url);
    } else {
        paused_writer(c, url);
    }
    drop_tables(c, PREFIX);
    if (is_postgres(c))
        exec_on(c, "DROP FUNCTION IF EXISTS stalling_sleep()");
    exec_on(c, "DROP TABLE IF EXISTS stalling_gate");
}
