/* SPDX-License-Identifier: MIT
 *
 * Fencing tokens: strictly increasing for a name, whatever became of the grant before; and break,
 * which exists to fence a holder out. Many clients drawing tokens at once are in each_load.c, counters
 * that are folded in sweep.c. */
#include "contract.h"

enum { TTL_MS = 30000 };

/* Is this token higher than the one before? And is it the name's last? */
static int64_t next_token(rowlock_db *db, const rowlock_lock *lock, int64_t before,
                          const char *what)
{
    int64_t token = rowlock_lock_token(lock), last = 0, granted_us = 0;
    tap_ok(token > before, "the token is higher after %s (%lld, was %lld)", what, (long long)token,
           (long long)before);
    int result = rowlock_last_grant(db, rowlock_lock_name(lock), &last, &granted_us);
    is_result(db, result, ROWLOCK_OK, "and known as the last grant");
    tap_is_int(last, token, "by its number");
    tap_ok(granted_us > 0 && granted_us <= rowlock_lock_expires_us(lock), "and its time");
    return token;
}

static void higher_each_time(const struct contract *c)
{
    OWNED(db) rowlock_db *one = must_open(c->url), *two = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(one, "tokens"), *other = must_lock(two, "tokens");
    is_result(one, rowlock_last_grant(one, "tokens", NULL, NULL), ROWLOCK_NONE,
              "a name that was never granted has no last grant");

    is_result(one, try_lock(lock, TTL_MS), ROWLOCK_OK, "the first grant");
    int64_t token = next_token(one, lock, 0, "nothing");
    is_result(two, try_lock(other, TTL_MS), ROWLOCK_BUSY, "a busy try");
    tap_is_int(next_token(one, lock, token - 1, "the first grant"), token, "bumps no token");
    is_result(one, rowlock_release(lock), ROWLOCK_OK, "release");
    is_result(two, try_lock(other, TTL_MS), ROWLOCK_OK, "another's grant");
    token = next_token(two, other, token, "a release");
    end_lease(c, other);
    is_result(one, try_lock(lock, TTL_MS), ROWLOCK_OK, "takeover of an expired lock");
    token = next_token(one, lock, token, "an expired lease");

    end_lease(c, lock);
    is_result(one, rowlock_sweep(one, NULL, NULL), ROWLOCK_OK, "sweep");
    tap_is_int(rows_of(c, "tokens"), 0, "has removed the expired row");
    is_result(two, rowlock_release(other), ROWLOCK_LOST, "whose first holder had lost it");
    is_result(two, try_lock(other, TTL_MS), ROWLOCK_OK, "a grant after the sweep");
    next_token(two, other, token, "a sweep");
}

/* A break of a lock fences its holder out. */
static void broken(const struct contract *c)
{
    OWNED(db) rowlock_db *one = must_open_as(c->url, "victim"), *two = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(one, "broken"), *other = must_lock(two, "broken");
    rowlock_grant grant = ROWLOCK_GRANT_INIT;
    int64_t last = 0;
    is_result(two, rowlock_break(two, "broken", 0, &grant), ROWLOCK_NONE,
              "a free lock cannot be broken");
    is_result(one, try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is held");
    int64_t token = rowlock_lock_token(lock);
    is_result(two, rowlock_break(two, "broken", token + 1, &grant), ROWLOCK_NONE,
              "nor can one that another token holds");
    is_result(one, rowlock_verify(lock), ROWLOCK_OK, "the holder has noticed nothing so far");
    is_result(two, rowlock_break(two, "broken", token, &grant), ROWLOCK_OK, "break by token");
    tap_is_int(grant.token, token, "tells whose grant it was: its token");
    tap_is_str(grant.owner, "victim", "its owner");
    tap_is_str(grant.name, "broken", "its name");
    is_result(two, rowlock_last_grant(two, "broken", &last, NULL), ROWLOCK_OK, "the last token");
    tap_ok(last > token, "is bumped, so that the old holder is fenced out at once");
    is_result(one, rowlock_renew(lock, 0), ROWLOCK_LOST, "the holder's renewal says LOST");
    is_result(two, try_lock(other, TTL_MS), ROWLOCK_OK, "the lock is free at once");
    tap_ok(rowlock_lock_token(other) > last, "for a token higher than that");
    is_result(one, rowlock_release(lock), ROWLOCK_LOST, "the old holder's release says LOST");
    is_result(two, rowlock_break(two, "broken", 0, NULL), ROWLOCK_OK, "break each holder");
    is_result(two, rowlock_verify(other), ROWLOCK_LOST, "even ourselves");
}

/* A restored copy has its original's identity until it gets one of its own. */
static void new_identity(const struct contract *c)
{
    OWNED(text) char *url = fresh_tables(c, "ident_");
    OWNED(db) rowlock_db *db = must_open(url), *other = must_open(url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "kept"), *rival = must_lock(other, "kept");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is held");
    is_result(other, try_lock(rival, TTL_MS), ROWLOCK_BUSY, "and seen by another handle");
    exec_on(c, "CREATE TABLE ident_before AS SELECT * FROM ident_meta");
    is_result(db, rowlock_new_identity(db), ROWLOCK_OK, "the tables get a new identity");
    tap_is_int(int_on(c,
                      "SELECT count(*) FROM ident_meta m JOIN ident_before b ON m.id = b.id AND "
                      "m.version = b.version AND m.token_floor = b.token_floor AND m.identity <> "
                      "b.identity AND length(m.identity) = 32"),
               1, "which is another one, and all else is as it was");
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_OK, "the handle that gave it goes on");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "and releases the lock");
    is_result(other, rowlock_check(other, NULL, NULL, NULL), ROWLOCK_OK, "the other looks again");
    is_result(other, try_lock(rival, TTL_MS), ROWLOCK_ESCHEMA, "and finds another installation");
    exec_on(c, "DROP TABLE ident_before");
}

void contract_tokens(const struct contract *c)
{
    exec_on(c, "DELETE FROM rowlock_tokens WHERE name = 'tokens'");
    higher_each_time(c);
    broken(c);
    new_identity(c);
}
