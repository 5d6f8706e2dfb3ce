/* SPDX-License-Identifier: MIT
 *
 * What a handle counts: the numbers after calls whose course is known. */
#include "contract.h"

#include "faultproxy.h"

enum { TTL_MS = 60000 };

/* How much has been counted between two looks. */
struct counted {
    int tries, granted, busy, waits, renewals, lapsed, lost, resent, reconnects;
};

static void counts(rowlock_db *db, rowlock_stats *before, struct counted want, const char *what)
{
    rowlock_stats now = stats_of(db);
    tap_is_int((long long)(now.tries - before->tries), want.tries, "%s: tries", what);
    tap_is_int((long long)(now.granted - before->granted), want.granted, "%s: grants", what);
    tap_is_int((long long)(now.busy - before->busy), want.busy, "%s: busy tries", what);
    tap_is_int((long long)(now.waits - before->waits), want.waits, "%s: waits", what);
    tap_is_int((long long)(now.renewals - before->renewals), want.renewals, "%s: renewals", what);
    tap_is_int((long long)(now.lapsed - before->lapsed), want.lapsed, "%s: lapsed", what);
    tap_is_int((long long)(now.lost - before->lost), want.lost, "%s: lost", what);
    tap_is_int((long long)(now.resent - before->resent), want.resent, "%s: resent", what);
    tap_is_int((long long)(now.reconnects - before->reconnects), want.reconnects, "%s: reconnects",
               what);
    *before = now;
}

static void use_once(rowlock_db *db, rowlock_lock *lock)
{
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "acquire,");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "enter again,");
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_OK, "renew,");
    is_result(db, rowlock_verify(lock), ROWLOCK_OK, "verify,");
    is_result(db, rowlock_list(db, NULL, ignore_grant, NULL), ROWLOCK_OK, "list,");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "leave,");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "and release");
}

/* The first round is not the same on all databases, since it prepares statements. */
static void usual(const struct contract *c, const char *url, struct faultproxy *proxy)
{
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "counted");
    rowlock_stats before = stats_of(db);
    tap_ok(before.tries + before.granted + before.busy + before.waits + before.waited_us +
                   before.renewals + before.lapsed + before.lost + before.resent +
                   before.reconnects + before.round_trips ==
               0,
           "a new handle has counted nothing");
    use_once(db, lock);
    counts(db, &before, (struct counted){.tries = 1, .granted = 1, .renewals = 1},
           "of one use of a lock");
    if (proxy)
        faultproxy_round_trips(proxy);
    uint64_t trips = before.round_trips;
    use_once(db, lock);
    counts(db, &before, (struct counted){.tries = 1, .granted = 1, .renewals = 1}, "of another");
    /* SQLite looks before it tries. */
    tap_is_int((long long)(before.round_trips - trips), is_sqlite(c) ? 6 : 5,
               "five statements were sent, on SQLite six");
    if (proxy)
        tap_is_int(faultproxy_round_trips(proxy), (long long)(before.round_trips - trips),
                   "each was a round trip");
    tap_is_int((long long)before.waited_us, 0, "nothing was waited for");
}

static void rivals(const struct contract *c)
{
    OWNED(db) rowlock_db *db = must_open(c->url), *other = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "rivals"), *rival = must_lock(other, "rivals");
    rowlock_stats before = stats_of(db);
    is_result(other, try_lock(rival, TTL_MS), ROWLOCK_OK, "a rival holds the lock");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_BUSY, "a try");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_BUSY, "another");
    counts(db, &before, (struct counted){.tries = 2, .busy = 2}, "of a lock that is held");
    is_result(db, wait_lock(lock, TTL_MS, 50), ROWLOCK_TIMEOUT, "a wait in vain");
    rowlock_stats now = stats_of(db);
    tap_is_int((long long)(now.waits - before.waits), 1, "is one wait");
    tap_ok(now.waited_us > 0, "of %lld us", (long long)now.waited_us);
    tap_ok(now.tries > before.tries && now.tries - before.tries == now.busy - before.busy,
           "all of whose tries were busy");
    before = now;
    is_result(other, rowlock_release(rival), ROWLOCK_OK, "the rival is done");
    is_result(db, wait_lock(lock, TTL_MS, 50), ROWLOCK_OK,
              "an acquire that may wait, and need not");
    counts(db, &before, (struct counted){.tries = 1, .granted = 1}, "of one that did not wait");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "release");
}

static void leases(const struct contract *c)
{
    OWNED(db) rowlock_db *db = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "leases");
    rowlock_stats before = stats_of(db);
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "a short lease");
    end_lease(c, lock);
    is_result(db, rowlock_renew(lock, TTL_MS), ROWLOCK_LAPSED, "is renewed too late");
    counts(db, &before, (struct counted){.tries = 1, .granted = 1, .renewals = 1, .lapsed = 1},
           "of a lease that lapsed");
    exec_on(c, "DELETE FROM rowlock_locks WHERE name = 'leases'");
    is_result(db, rowlock_renew(lock, TTL_MS), ROWLOCK_LOST, "a grant that is gone");
    tap_is_int(rows_of(c, "leases"), 0, "is not brought back by a renewal");
    before = stats_of(db);
    tap_is_int(error_code(db), ROWLOCK_LOST,
               "the error is still there when the counters were read");
    is_result(db, rowlock_release(lock), ROWLOCK_LOST, "is released");
    counts(db, &before, (struct counted){0}, "of what was known");
    tap_is_int((long long)before.lost, 1, "it is counted once");
    tap_is_int(rowlock_db_stats(db, NULL), ROWLOCK_EMISUSE, "an output is needed");
    tap_is_int(rowlock_db_stats(NULL, &before), ROWLOCK_EMISUSE, "and a handle");
}

static void cut(const char *url, struct faultproxy *proxy)
{
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "cut");
    const struct fault lost_answer = {.kind = FAULT_CUT, .side = ON_ANSWER};
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "acquire");
    rowlock_stats before = stats_of(db);
    faultproxy_arm(proxy, 1, lost_answer);
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_OK, "a renewal whose answer was lost");
    counts(db, &before, (struct counted){.renewals = 1, .resent = 1, .reconnects = 1},
           "of a lost answer");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "release");
}

void contract_stats(const struct contract *c)
{
    OWNED(text) char *through = NULL;
    OWNED(proxy)
    struct faultproxy *proxy = c->has_server ? faultproxy_start(c->url, &through) : NULL;
    usual(c, proxy ? through : c->url, proxy);
    rivals(c);
    leases(c);
    if (proxy)
        cut(through, proxy);
}
