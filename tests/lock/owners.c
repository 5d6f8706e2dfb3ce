/* SPDX-License-Identifier: MIT
 *
 * Owners that the caller names: a restarted process gets its own lock back, and its former self is
 * fenced out. Owners made of random bits are in basics.c. */
#include "contract.h"

enum { TTL_MS = 30000 };

static void comes_back(const struct contract *c)
{
    OWNED(db)
    rowlock_db *before = must_open_as(c->url, "worker 7"),
               *after = must_open_as(c->url, "worker 7");
    OWNED(lock)
    rowlock_lock *old = must_lock(before, "comes back"), *new = must_lock(after, "comes back");
    tap_is_str(rowlock_lock_owner(old), "worker 7", "a lock has the owner that its db was given");
    is_result(before, try_lock(old, TTL_MS), ROWLOCK_OK, "an owner holds a lock");
    int64_t token = rowlock_lock_token(old);
    is_result(after, try_lock(new, TTL_MS), ROWLOCK_OK, "the same owner takes it over elsewhere");
    tap_ok(rowlock_lock_token(new) > token, "with a new token");
    is_rows(c, "comes back", 1, "there is still one row");
    /* With two slow members the older one has a majority until the newer one's requests arrive. */
    if (getenv("ROWLOCK_TEST_QUORUM"))
        (void)EVENTUALLY(rowlock_renew(old, 0) == ROWLOCK_LOST);
    is_result(before, rowlock_renew(old, 0), ROWLOCK_LOST, "the older handle cannot renew");
    is_result(before, rowlock_release(old), ROWLOCK_LOST, "nor release");
    is_result(after, rowlock_verify(new), ROWLOCK_OK, "the newer one holds it");
    is_result(after, rowlock_release(new), ROWLOCK_OK, "and releases it");
}

static void close_releases_only_its_own(const struct contract *c)
{
    rowlock_db *before = must_open_as(c->url, "worker 8");
    OWNED(db) rowlock_db *after = must_open_as(c->url, "worker 8");
    rowlock_lock *old = must_lock(before, "taken over");
    OWNED(lock) rowlock_lock *new = must_lock(after, "taken over");
    is_result(before, try_lock(old, TTL_MS), ROWLOCK_OK, "an owner holds a lock");
    is_result(after, try_lock(new, TTL_MS), ROWLOCK_OK, "and takes it over elsewhere");
    rowlock_lock_close(old);
    rowlock_db_close(before);
    is_result(after, rowlock_verify(new), ROWLOCK_OK,
              "closing the older handle does not release the newer one's grant");
}

static void owners_are_bytes(const struct contract *c)
{
    static const char *const owners[] = {"Owner", "owner", "owner ", "öwner", "o'wner", "0wner"};
    OWNED(db) rowlock_db *db = must_open_as(c->url, "owner");
    OWNED(lock) rowlock_lock *lock = must_lock(db, "owners");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "an owner holds a lock");
    int busy = 0;
    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++) {
        OWNED(db) rowlock_db *other = must_open_as(c->url, owners[i]);
        OWNED(lock) rowlock_lock *theirs = must_lock(other, "owners");
        busy += strcmp(owners[i], "owner") != 0 && try_lock(theirs, TTL_MS) == ROWLOCK_BUSY;
    }
    tap_is_int(busy, 5, "owners that only look like the holder are told BUSY");
    is_result(db, rowlock_verify(lock), ROWLOCK_OK, "the holder has noticed nothing");
}

static void long_owner(const struct contract *c)
{
    char owner[300];
    memset(owner, 'w', sizeof owner);
    owner[255] = '\0';
    OWNED(db) rowlock_db *db = must_open_as(c->url, owner);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "long owner");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "an owner of 255 bytes gets a lock");
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_OK, "renews it");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "and releases it");
    rowlock_db *none = db;
    owner[255] = 'w';
    owner[256] = '\0';
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db_options options = *OPTIONS(db, .owner = owner);
    tap_is_result(rowlock_db_open(c->url, &options, &none, &err), ROWLOCK_EINVAL,
                  "an owner of 256 bytes is refused");
    tap_ok(none == NULL, "and there is no handle");
}

void contract_owners(const struct contract *c)
{
    comes_back(c);
    close_releases_only_its_own(c);
    owners_are_bytes(c);
    long_owner(c);
}
