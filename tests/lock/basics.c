/* SPDX-License-Identifier: MIT
 *
 * Acquire, busy, holder, re-entry, release, close. How long leases last is in leases.c, waiting for a
 * lock in waiting.c. */
#include "contract.h"

enum { TTL_MS = 30000 };

static void granted_and_released(const struct contract *c)
{
    OWNED(db) rowlock_db *db = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "basic");
    tap_is_int(rowlock_lock_token(lock), 0, "a lock that is not held has no token");
    tap_is_int(rowlock_lock_remaining_ms(lock), 0, "nor time remaining");
    is_result(db, rowlock_release(lock), ROWLOCK_EMISUSE, "nor can it be released");
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_EMISUSE, "nor renewed");
    is_result(db, rowlock_verify(lock), ROWLOCK_EMISUSE, "nor verified");

    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "a free lock is granted");
    tap_ok(rowlock_lock_token(lock) > 0, "a grant has a token");
    int64_t left = rowlock_lock_remaining_ms(lock);
    tap_ok(left > 0 && left <= TTL_MS, "at most the whole lease remains at once");
    tap_ok(rowlock_lock_expires_us(lock) > 0, "the handle knows when the lease ends");
    tap_is_int(rows_of(c, "basic"), 1, "a grant is one row");
    is_result(db, rowlock_verify(lock), ROWLOCK_OK, "the database confirms the grant");
    tap_is_str(rowlock_lock_name(lock), "basic", "the handle knows its name");
    tap_is_int((long long)strlen(rowlock_lock_owner(lock)), 32, "the owner is 128 random bits");

    is_result(db, rowlock_release(lock), ROWLOCK_OK, "a held lock is released");
    tap_is_int(rows_of(c, "basic"), 0, "a released lock is no row");
    tap_is_int(rowlock_lock_token(lock), 0, "a released handle has no token");
    tap_is_int(rowlock_lock_remaining_ms(lock), 0, "a released handle has no time left");
    is_result(db, rowlock_release(lock), ROWLOCK_EMISUSE, "releasing twice is a mistake");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "a released lock is granted again");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "and released again");
}

static void busy_tells_the_holder(const struct contract *c)
{
    rowlock_db_options options = *OPTIONS(db, .owner = "the holder", .program = "holding program");
    OWNED(db) rowlock_db *one = must_open_with(c->url, &options), *two = must_open(c->url);
    OWNED(lock) rowlock_lock *held = must_lock(one, "held"), *wanted = must_lock(two, "held");
    rowlock_grant holder = ROWLOCK_GRANT_INIT;
    rowlock_acquire_options how = *OPTIONS(acquire, .ttl_ms = TTL_MS, .note = "for the report");

    tap_is_int(rowlock_lock_holder(wanted, &holder), ROWLOCK_NONE,
               "before any try no holder is known");
    is_result(one, rowlock_acquire(held, &how), ROWLOCK_OK, "one gets the lock");
    for (int i = 0; i < 3; i++)
        is_result(two, try_lock(wanted, TTL_MS), ROWLOCK_BUSY, "another is told BUSY, try %d", i);
    tap_is_int(rowlock_lock_token(wanted), 0, "the client that was told BUSY has no token");
    tap_is_int(rowlock_lock_holder(wanted, &holder), ROWLOCK_OK, "and is told the holder");
    tap_is_str(holder.name, "held", "the holder's grant has the name");
    tap_is_str(holder.owner, "the holder", "the holder's owner");
    tap_is_str(holder.program, "holding program", "the holder's program");
    tap_is_str(holder.note, "for the report", "the holder's note");
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    tap_is_str(holder.host, host, "the holder's host");
    tap_is_int(holder.pid, getpid(), "the holder's pid");
    tap_is_int(holder.token, rowlock_lock_token(held), "the holder's token");
    tap_is_int(holder.ttl_ms, TTL_MS, "the holder's ttl");
    tap_is_int(holder.permits, 0, "an exclusive grant");
    tap_is_int(holder.renewals, 0, "no renewals yet");
    tap_is_int(holder.expires_us, rowlock_lock_expires_us(held), "when its lease ends");
    tap_is_int(holder.expires_us - holder.acquired_us, TTL_MS * 1000LL, "a ttl after the grant");
    tap_ok(holder.remaining_ms > 0 && holder.remaining_ms <= TTL_MS, "how much of it is left");

    is_result(one, rowlock_renew(held, 2 * TTL_MS), ROWLOCK_OK, "the holder renews its lease");
    is_result(two, try_lock(wanted, TTL_MS), ROWLOCK_BUSY, "the other is told BUSY again");
    tap_is_int(rowlock_lock_holder(wanted, &holder), ROWLOCK_OK, "by the same holder");
    tap_is_str(holder.note, "for the report", "whose note is known");
    tap_is_int(holder.renewals, 1, "as the renewal is");
    tap_is_int(holder.ttl_ms, 2 * TTL_MS, "its ttl");
    tap_is_int(holder.expires_us, rowlock_lock_expires_us(held), "and the new end of the lease");

    tap_is_int(rows_of(c, "held"), 1, "busy tries leave one row");
    is_result(one, rowlock_release(held), ROWLOCK_OK, "the holder releases");
    is_result(two, try_lock(wanted, TTL_MS), ROWLOCK_OK, "the other gets the lock");
    tap_is_int(rowlock_lock_holder(wanted, &holder), ROWLOCK_NONE,
               "the client that got the lock meets no holder");
}

static void two_handles_are_rivals(const struct contract *c)
{
    rowlock_db *db = must_open(c->url);
    rowlock_lock *one = must_lock(db, "rivals"), *two = must_lock(db, "rivals");
    is_result(db, try_lock(one, TTL_MS), ROWLOCK_OK, "one of two handles gets the lock");
    is_result(db, try_lock(two, TTL_MS), ROWLOCK_BUSY, "the other one, of the same db, is a rival");
    rowlock_lock_close(one);
    tap_is_int(rows_of(c, "rivals"), 0, "closing a handle releases its lock");
    is_result(db, try_lock(two, TTL_MS), ROWLOCK_OK, "then the other gets it");
    rowlock_db_close(db);
    tap_is_int(rows_of(c, "rivals"), 0, "closing the db releases what is held");
    rowlock_lock_close(two);
}

static void entered_again(const struct contract *c)
{
    OWNED(db) rowlock_db *db = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "again");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "enter a lock");
    int64_t token = rowlock_lock_token(lock), expires = rowlock_lock_expires_us(lock);
    is_result(db, try_lock(lock, 2 * TTL_MS), ROWLOCK_OK, "enter it again");
    is_result(db, try_lock(lock, 2 * TTL_MS), ROWLOCK_OK, "and again");
    tap_is_int(rowlock_lock_token(lock), token, "re-entry keeps the token");
    tap_is_int(rowlock_lock_expires_us(lock), expires, "and the lease");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "leave once");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "leave twice");
    tap_is_int(rows_of(c, "again"), 1, "the lock is held until it is left as often as entered");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "leave for good");
    tap_is_int(rows_of(c, "again"), 0, "then it is released");
    is_result(db, rowlock_release(lock), ROWLOCK_EMISUSE, "once more is once too often");
}

static void noted(const struct contract *c)
{
    OWNED(db) rowlock_db *db = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "noted");
    char longest[257];
    memset(longest, 'x', 256);
    longest[256] = '\0';
    is_result(db, rowlock_note(lock, "x"), ROWLOCK_EMISUSE, "a lock that is not held has no note");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is held");
    int64_t expires_us = rowlock_lock_expires_us(lock);
    for (int i = 0; i < 2; i++) {
        is_result(db, rowlock_note(lock, "db1:5432, \xc3\xa9"), ROWLOCK_OK, "its note is set");
        tap_is_str(grant_of(db, "noted").note, "db1:5432, \xc3\xa9", "and read");
    }
    tap_ok(rowlock_lock_expires_us(lock) == expires_us, "the lease is as before");
    is_result(db, rowlock_note(lock, longest), ROWLOCK_EINVAL, "256 bytes are too many");
    is_result(db, rowlock_note(lock, longest + 1), ROWLOCK_OK, "255 are not");
    is_result(db, rowlock_note(lock, NULL), ROWLOCK_OK, "it is removed");
    tap_is_str(grant_of(db, "noted").note, "", "and no longer there");
    OWNED(lock)
    rowlock_lock *late =
        must_attach(db, "noted", rowlock_lock_owner(lock), rowlock_lock_token(lock));
    is_result(db, rowlock_note(late, "late"), ROWLOCK_OK,
              "an attached handle can set the note too");
    tap_is_str(grant_of(db, "noted").note, "late", "as is read");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "the lock is released");
    is_result(db, rowlock_note(late, "later"), ROWLOCK_LOST, "a note of a grant that is gone");
    tap_ok(rowlock_lock_state(late) == ROWLOCK_STATE_LOST, "which the handle knows then");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "a later grant");
    tap_is_str(grant_of(db, "noted").note, "", "has no note");
}

void contract_basics(const struct contract *c)
{
    granted_and_released(c);
    busy_tells_the_holder(c);
    two_handles_are_rivals(c);
    entered_again(c);
    noted(c);
}
