/* SPDX-License-Identifier: MIT
 *
 * Renewal, lapsed and lost leases, grants attached to, and who may do what to them: owner and token,
 * no other client. Waiting for a lease to end is in waiting.c. */
#include "scene.h"

enum { LAPSE_MS = 100 };

static void renewed_in_time(const struct contract *c)
{
    OWNED(db) rowlock_db *db = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "renewed");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "acquire");
    int64_t token = rowlock_lock_token(lock), expires = rowlock_lock_expires_us(lock);
    /* Time: the database's clock goes on by a tick. More changes nothing. */
    sleep_ms(5);
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_OK, "a lease is renewed in time");
    tap_ok(rowlock_lock_expires_us(lock) > expires, "and ends later");
    tap_is_int(rowlock_lock_token(lock), token, "with the same token");
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_OK,
              "two renewals within one tick of the clock both find the grant");
    is_result(db, rowlock_renew(lock, 2 * TTL_MS), ROWLOCK_OK, "with a longer ttl");
    rowlock_grant grant = grant_of(db, "renewed");
    tap_is_int(grant.renewals, 3, "renewals are counted");
    tap_is_int(grant.ttl_ms, 2 * TTL_MS, "the row has the ttl of the last renewal");
    tap_is_int(grant.expires_us, rowlock_lock_expires_us(lock), "and the handle knows its end");
    tap_ok(rowlock_lock_remaining_ms(lock) <= grant.remaining_ms,
           "the time remaining by the handle is never more than by the database");
    is_result(db, rowlock_renew(lock, 99), ROWLOCK_EINVAL, "a ttl below 100 ms is refused");
    is_result(db, rowlock_renew(lock, -1), ROWLOCK_EINVAL, "a negative ttl is refused");
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The server's clock is this machine's. What is true when we look is not more later. The remaining
 * milliseconds are whole ones, so it takes more than one of them to see the most. */
static int64_t most_above(const rowlock_lock *lock)
{
    int64_t most_us = INT64_MIN;
    int64_t now_us = unix_clock_us();
    for (int64_t until_us = now_us + 1500; now_us < until_us; now_us = unix_clock_us()) {
        int64_t left_us = rowlock_lock_expires_us(lock) - now_us;
        most_us = larger(most_us, rowlock_lock_remaining_ms(lock) * 1000 - left_us);
    }
    return most_us;
}

/* At every place within a tick of the database's clock. */
static void never_too_many(const struct contract *c)
{
    enum { GRANTS = 40 };
    OWNED(db) rowlock_db *db = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "never too many");
    int64_t most_us = INT64_MIN;
    for (int i = 0; i < GRANTS; i++) {
        int result = try_lock(lock, TTL_MS);
        most_us = larger(most_us, most_above(lock));
        result |= rowlock_renew(lock, 0);
        most_us = larger(most_us, most_above(lock));
        if ((result | rowlock_release(lock)) != ROWLOCK_OK)
            tap_ok(false, "acquired, renewed and released: %s", why(db));
    }
    tap_ok(most_us <= 0,
           "the time remaining by the handle is never above the truth: at best %lld us below",
           (long long)-most_us);
}

/* A lease that ran out may be renewed, but the caller is told. */
static void lapsed(const struct contract *c)
{
    OWNED(db) rowlock_db *db = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "lapsed");
    is_result(db, try_lock(lock, LAPSE_MS), ROWLOCK_OK, "acquire for a short time");
    int64_t token = rowlock_lock_token(lock);
    /* Time: the lease ends by the real clock. More changes nothing. */
    sleep_ms(LAPSE_MS + 50);
    tap_is_int(rowlock_lock_remaining_ms(lock), 0, "no time remains of a lease that is over");
    is_result(db, rowlock_verify(lock), ROWLOCK_LAPSED, "verify says that it ran out");
    is_result(db, rowlock_renew(lock, TTL_MS), ROWLOCK_LAPSED,
              "so does the renewal that revives it");
    is_result(db, rowlock_verify(lock), ROWLOCK_OK, "then it stands again");
    is_result(db, rowlock_renew(lock, LAPSE_MS), ROWLOCK_OK, "the next renewal is in time again");
    tap_is_int(rowlock_lock_token(lock), token, "all with one token");
    end_lease(c, lock);
    is_result(db, rowlock_release(lock), ROWLOCK_OK,
              "a lapsed lock that no client took is released");
    tap_is_int(rows_of(c, "lapsed"), 0, "and gone");
}

/* A lock that was taken over is LOST to its old holder in every call. */
static void lost(const struct contract *c)
{
    OWNED(db) rowlock_db *one = must_open(c->url), *two = must_open(c->url);
    OWNED(lock) rowlock_lock *old = must_lock(one, "lost"), *new = must_lock(two, "lost");
    is_result(one, try_lock(old, TTL_MS), ROWLOCK_OK, "one holds the lock");
    end_lease(c, old);
    is_result(two, try_lock(new, TTL_MS), ROWLOCK_OK, "an expired lock is taken over at once");
    is_result(one, rowlock_verify(old), ROWLOCK_LOST, "the old holder's verify says LOST");
    is_result(one, rowlock_renew(old, 0), ROWLOCK_LOST, "its renewal says LOST");
    is_result(one, try_lock(old, TTL_MS), ROWLOCK_LOST, "its re-entry says LOST");
    tap_is_int(rowlock_lock_remaining_ms(old), 0, "nothing of its lease remains");
    is_result(one, rowlock_release(old), ROWLOCK_LOST, "its release says LOST");
    is_result(one, try_lock(old, TTL_MS), ROWLOCK_BUSY, "then it is a rival like any other");
    is_result(two, rowlock_verify(new), ROWLOCK_OK, "the new holder has noticed nothing");
    is_result(two, rowlock_release(new), ROWLOCK_OK, "and releases");
    is_result(one, try_lock(old, TTL_MS), ROWLOCK_OK, "the old handle works again");
}

static void attached(const struct contract *c)
{
    OWNED(db) rowlock_db *one = must_open_as(c->url, "the job"), *two = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(one, "attached");
    is_result(one, try_lock(lock, TTL_MS), ROWLOCK_OK, "a job holds a lock");
    int64_t token = rowlock_lock_token(lock);
    OWNED(lock) rowlock_lock *part = must_attach(two, "attached", "the job", token);
    tap_is_int(rowlock_lock_token(part), token, "an attached handle has the token");
    tap_is_int(rowlock_lock_remaining_ms(part), 0, "but knows nothing of the lease");
    is_result(two, rowlock_verify(part), ROWLOCK_OK, "it can verify");
    is_result(two, rowlock_renew(part, 0), ROWLOCK_OK,
              "and renew for as long as the lock was granted");
    tap_ok(rowlock_lock_remaining_ms(part) > TTL_MS / 2 &&
               rowlock_lock_remaining_ms(part) <= TTL_MS,
           "and knows then how long that is");
    is_result(two, rowlock_renew(part, 2 * TTL_MS), ROWLOCK_OK, "or for longer");
    tap_ok(rowlock_lock_remaining_ms(part) > TTL_MS, "which it then lasts");
    rowlock_lock_close(part);
    tap_is_int(rows_of(c, "attached"), 1, "closing an attached handle releases nothing");
    part = must_attach(two, "attached", "the job", token);
    is_result(two, rowlock_release(part), ROWLOCK_OK, "it can release");
    is_result(one, rowlock_verify(lock), ROWLOCK_LOST, "which the first handle finds out");
}

/* Only owner and token together may renew and release: else the next holder would be freed. */
static void strangers(const struct contract *c)
{
    OWNED(db) rowlock_db *one = must_open_as(c->url, "rightful"), *two = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(one, "strangers");
    is_result(one, try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is held");
    int64_t token = rowlock_lock_token(lock);
    const struct {
        const char *owner, *name;
        int64_t token;
        const char *who;
    } strangers[] = {
        {"rightful", "strangers", token + 1, "the owner with another token"},
        {"Rightful", "strangers", token, "another owner with the token"},
        {"rightful ", "strangers", token, "an owner with a blank behind"},
        {"rightful", "Strangers", token, "the owner of another name"},
        {"%", "strangers", token, "an owner that hopes for patterns"},
    };
    rowlock_grant before = grant_of(one, "strangers"), after;
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        const char *who = strangers[i].who;
        OWNED(lock)
        rowlock_lock *theirs =
            must_attach(two, strangers[i].name, strangers[i].owner, strangers[i].token);
        is_result(two, rowlock_renew(theirs, 60000), ROWLOCK_LOST, "%s cannot renew", who);
        rowlock_lock_close(theirs);
        theirs = must_attach(two, strangers[i].name, strangers[i].owner, strangers[i].token);
        is_result(two, rowlock_verify(theirs), ROWLOCK_LOST, "%s is not confirmed", who);
        rowlock_lock_close(theirs);
        theirs = must_attach(two, strangers[i].name, strangers[i].owner, strangers[i].token);
        is_result(two, rowlock_release(theirs), ROWLOCK_LOST, "%s cannot release", who);
    }
    after = grant_of(one, "strangers");
    tap_is_int(after.expires_us, before.expires_us, "the grant ends when it did");
    tap_is_int(after.renewals, before.renewals, "was not renewed");
    tap_is_int(after.token, before.token, "has its token");
    tap_is_str(after.owner, before.owner, "and its owner");
}

/* A lease begins when the row is had, and by the client's clock before it asks: a wait is no part of it. */
enum { WAITS_MS = 400 };

struct late {
    const struct contract *c;
    void *session;
    /* The renewal waits: by this program's clock. The row is free: by the database's clock. */
    int64_t waiting_ms, free_us;
};

static int commit_later(void *argument)
{
    struct late *late = argument;
    const struct contract *c = late->c;
    tap_ok(somebody_waits(c), "a renewal is under way");
    late->waiting_ms = clock_ms();
    /* Time: the renewal counts from before it waited. All checks are bounds that hold for a
     * longer wait, too. */
    sleep_ms(WAITS_MS);
    late->free_us = raw_int(c->raw, late->session, "SELECT %s", c->raw->clock);
    raw_run(c->raw, late->session, "COMMIT");
    return 0;
}

static void renewal_that_waits(const struct contract *c)
{
    OWNED(db) rowlock_db *db = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "renewal waits");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "acquire");
    struct late late = {.c = c, .session = c->raw->open(c->url)};
    raw_run(c->raw, late.session, "%s", c->begin);
    raw_run(c->raw, late.session,
            "UPDATE rowlock_locks SET note = 'x' WHERE name = 'renewal waits'");
    struct helper *helper = helper_start(commit_later, &late);
    is_result(db, rowlock_renew(lock, 2 * TTL_MS), ROWLOCK_OK, "a renewal waits for the row");
    int64_t remaining_ms = rowlock_lock_remaining_ms(lock), now_ms = clock_ms();
    tap_ok(late.free_us > 0, "it did wait");
    helper_join(helper);
    rowlock_grant grant = grant_of(db, "renewal waits");
    tap_ok(rowlock_lock_remaining_ms(lock) <= grant.remaining_ms,
           "the handle does not believe in more than the database gives");
    if (c->has_server) /* SQLite does not wait so long: the step is sent again */
        tap_ok(remaining_ms <= 2 * TTL_MS - WAITS_MS && now_ms - late.waiting_ms >= WAITS_MS,
               "it counts from before the statement was sent");
    if (!is_mysql(c)) /* whose clock stands still within a statement */
        tap_ok(grant.expires_us >= late.free_us + 2 * TTL_MS * INT64_C(1000),
               "the database counts from when the row was there");
    c->raw->close(late.session);
}

/* What a release that fails leaves is the same on every database, and the next one settles it. */
static void release_that_fails(const struct contract *c)
{
    OWNED(db) rowlock_db *db = open_impatient(c, c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "release fails");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "acquire");
    int64_t token = rowlock_lock_token(lock);
    OWNED(session) void *session = c->raw->open(c->url);
    raw_run(c->raw, session, "%s", c->begin);
    raw_run(c->raw, session, "UPDATE rowlock_locks SET note = 'x' WHERE name = 'release fails'");
    int result = rowlock_release(lock);
    tap_ok(result < 0, "a release that another's transaction keeps waiting fails: %s", why(db));
    tap_is_int(rowlock_lock_token(lock), token, "the handle counts as holding");
    tap_ok((rowlock_lock_remaining_ms(lock) == 0) == (result == ROWLOCK_EUNCERTAIN),
           "its lease is counted upon unless that is uncertain");
    raw_run(c->raw, session, "ROLLBACK");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "called again it is released");
    is_result(db, rowlock_release(lock), ROWLOCK_EMISUSE, "once");
    tap_is_int(rows_of(c, "release fails"), 0, "and gone");
}

void contract_leases(const struct contract *c)
{
    renewed_in_time(c);
    never_too_many(c);
    lapsed(c);
    lost(c);
    attached(c);
    strangers(c);
    renewal_that_waits(c);
    release_that_fails(c);
}
