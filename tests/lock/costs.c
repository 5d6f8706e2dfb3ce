/* SPDX-License-Identifier: MIT
 *
 * What calls cost: round trips, counted by a proxy, and what a busy try writes, which is nothing. And
 * what a handle remembers of its last try. Lost answers are in lost_lock.c. */
#include "crowd.h"

#include "faultproxy.h"

enum { TTL_MS = 60000 };

static void use_every_step(rowlock_db *db, rowlock_lock *lock)
{
    int64_t token = rowlock_lock_token(lock);
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_OK, "every step is used once:");
    is_result(db, rowlock_verify(lock), ROWLOCK_OK, "verify,");
    is_result(db, rowlock_note(lock, "first"), ROWLOCK_OK, "note,");
    is_result(db, rowlock_list(db, NULL, ignore_grant, NULL), ROWLOCK_OK, "list,");
    is_result(db, rowlock_last_grant(db, "round trips", NULL, NULL), ROWLOCK_OK, "last,");
    is_result(db, rowlock_break(db, "round trips", token + 1, NULL), ROWLOCK_NONE, "break,");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "release,");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "acquire");
}

static void costs(struct faultproxy *proxy, int trips, const rowlock_db *db, int got, int want,
                  const char *what)
{
    is_result(db, got, want, "%s", what);
    tap_is_int(faultproxy_round_trips(proxy), trips, "%s", what);
}

static void round_trips(const struct contract *c, struct faultproxy *proxy, const char *url)
{
    OWNED(db) rowlock_db *db = must_open(url), *other = must_open(c->url);
    OWNED(lock)
    rowlock_lock *lock = must_lock(db, "round trips"), *rival = must_lock(other, "round trips");
    int two_once = is_mysql(c) ? 2 : 1;
    faultproxy_round_trips(proxy);
    /* On MySQL each statement is prepared before its first use on a connection. A pool has looked at
     * the tables before. PostgreSQL may answer the settings before the statement has come. */
    int first = getenv("ROWLOCK_TEST_POOL") ? two_once : is_mysql(c) ? 4 : 2;
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "the first acquire on a connection");
    int more = faultproxy_round_trips(proxy) - first;
    tap_ok(more == 0 || (more == 1 && !is_mysql(c)), "takes two round trips, on MySQL four");
    use_every_step(db, lock);
    faultproxy_round_trips(proxy);
    costs(proxy, 1, db, rowlock_renew(lock, 0), ROWLOCK_OK, "a renewal takes one");
    costs(proxy, 1, db, rowlock_verify(lock), ROWLOCK_OK, "verify takes one");
    costs(proxy, 1, db, rowlock_note(lock, "x"), ROWLOCK_OK, "a new note takes one");
    costs(proxy, 0, db, try_lock(lock, TTL_MS), ROWLOCK_OK, "re-entry takes none");
    costs(proxy, 0, db, rowlock_release(lock), ROWLOCK_OK, "nor does leaving again");
    tap_ok(rowlock_lock_remaining_ms(lock) > 0 && rowlock_lock_token(lock) > 0,
           "the handle is asked");
    tap_is_int(faultproxy_round_trips(proxy), 0, "which takes none");
    costs(proxy, 1, db, rowlock_release(lock), ROWLOCK_OK, "a release takes one");
    costs(proxy, 1, db, try_lock(lock, TTL_MS), ROWLOCK_OK, "an acquire takes one");
    costs(proxy, 1, db, rowlock_release(lock), ROWLOCK_OK, "a release takes one");

    is_result(other, try_lock(rival, TTL_MS), ROWLOCK_OK, "a rival takes the lock");
    costs(proxy, 1, db, try_lock(lock, TTL_MS), ROWLOCK_BUSY, "a busy try takes one");
    /* On MySQL the next ones look at the holder's row first, by a statement that is prepared once. */
    costs(proxy, two_once, db, try_lock(lock, TTL_MS), ROWLOCK_BUSY,
          "the second busy try takes one, on MySQL two where it is the first on the connection");
    for (int i = 2; i < 5; i++)
        costs(proxy, 1, db, try_lock(lock, TTL_MS), ROWLOCK_BUSY, "each other busy try takes one");
    is_result(other, rowlock_release(rival), ROWLOCK_OK, "the rival is done");
    costs(proxy, two_once, db, try_lock(lock, TTL_MS), ROWLOCK_OK,
          "a grant after busy tries takes one, on MySQL two");
    costs(proxy, 1, db, rowlock_list(db, NULL, ignore_grant, NULL), ROWLOCK_OK,
          "a list of one page takes one");
    costs(proxy, 1, db, rowlock_last_grant(db, "round trips", NULL, NULL), ROWLOCK_OK,
          "last_grant takes one");
    costs(proxy, 1, db, rowlock_break(db, "round trips", rowlock_lock_token(lock), NULL),
          ROWLOCK_OK, "break takes one");
    is_result(db, rowlock_release(lock), ROWLOCK_LOST, "a release that is LOST");
    int trips = faultproxy_round_trips(proxy);
    tap_ok(trips == 2 || (is_mysql(c) && trips == 3), "takes two, on MariaDB three: %d", trips);
}

/* What a handle remembers of its last try says where to look, never what is so. */
static void busy_again(const struct contract *c, struct faultproxy *proxy, const char *url)
{
    OWNED(db) rowlock_db *db = must_open(url), *other = must_open(c->url);
    OWNED(lock)
    rowlock_lock *lock = must_lock(db, "busy again"), *rival = must_lock(other, "busy again");
    const struct fault lost_answer = {.kind = FAULT_CUT, .side = ON_ANSWER};
    rowlock_acquire_options reader = *OPTIONS(acquire, .permits = ROWLOCK_SHARED);
    is_result(other, try_lock(rival, TTL_MS), ROWLOCK_OK, "a rival takes a lock");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_BUSY, "we are told that it is held");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_BUSY, "and again");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_BUSY, "and a third time");
    for (int i = 0; i < 2; i++) {
        is_result(other, rowlock_release(rival), ROWLOCK_OK, "the rival is done");
        is_result(other, try_lock(rival, TTL_MS), ROWLOCK_OK, "and takes it again");
        is_result(db, try_lock(lock, TTL_MS), ROWLOCK_BUSY, "we are told that it is held");
        tap_is_int(holder_of(lock).token, rowlock_lock_token(rival), "by the new grant");
        is_result(db, try_lock(lock, TTL_MS), ROWLOCK_BUSY, "again");
        is_result(db, try_lock(lock, TTL_MS), ROWLOCK_BUSY, "and again");
        faultproxy_arm(proxy, 1, lost_answer);
        is_result(db, try_lock(lock, TTL_MS), ROWLOCK_BUSY, "and again where the answer is lost");
    }
    is_result(other, rowlock_release(rival), ROWLOCK_OK, "the rival is done");
    is_result(other, rowlock_acquire(rival, &reader), ROWLOCK_OK, "and comes as a reader");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_BUSY, "which keeps us out");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_BUSY, "each time");
    is_result(db, rowlock_acquire(lock, &reader), ROWLOCK_OK, "unless we are a reader");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "which is done");
    is_result(other, rowlock_release(rival), ROWLOCK_OK, "as the rival is");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "then the lock is ours");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "and free");
    is_result(other, rowlock_acquire(rival, &reader), ROWLOCK_OK, "a reader comes");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_BUSY,
              "and keeps out the client that was granted it before");
    tap_is_int(holder_of(lock).permits, ROWLOCK_SHARED, "as the holder");
    is_result(other, rowlock_release(rival), ROWLOCK_OK, "the reader goes");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "then the lock is ours");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "and free");
    is_result(other, try_lock(rival, TTL_MS), ROWLOCK_OK, "a rival takes it");
    end_lease(c, rival);
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "and loses it as its lease ends");
    tap_is_int(rowlock_lock_token(lock), rowlock_lock_token(rival) + 1, "by a token that is newer");
    is_result(other, rowlock_release(rival), ROWLOCK_LOST, "which the rival is told");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "it is free");
    leave_ticket(c, "busy again", 1, 9000000000000000000);
    const char *locker = is_postgres(c) ? "SELECT xmax::text::bigint FROM rowlock_tokens WHERE "
                                          "name = 'busy again'"
                                        : "SELECT 0";
    int64_t before = int_on(c, "%s", locker);
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_BUSY, "but somebody waits for it");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_BUSY, "still");
    tap_is_int(int_on(c, "%s", locker), before, "the token row was not locked for that");
    exec_on(c, "DELETE FROM rowlock_waiters WHERE name = 'busy again'");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "and no longer");
}

/* A status variable may be told a little late: what counts is what it says when it has come to rest. */
static long long written(const struct contract *c, void *session)
{
    char text[100];
    long long last, now = -1;
    do {
        last = now;
        ask_any(c, session, c->written, text, sizeof text);
        now = atoll(text);
        sleep_ms(now == last ? 0 : 30);
    } while (now != last);
    return now;
}

/* A server has other things to write now and then, so quiet moments are looked for: one hundred tries without a byte written in between prove that a try writes none. */
static void busy_try_writes_nothing(const struct contract *c)
{
    enum { TRIES = 100, MOMENTS = 40 };
    OWNED(db) rowlock_db *db = must_open(c->url), *other = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "busy"), *rival = must_lock(other, "busy");
    OWNED(session) void *session = c->raw->open(c->url);
    long long before = written(c, session);
    is_result(other, try_lock(rival, 10 * TTL_MS), ROWLOCK_OK, "a rival holds the lock");
    tap_ok(written(c, session) > before, "a grant is written, and we see it");
    int quiet = 0, busy = 0, moments = 0;
    long long least = -1;
    while (!quiet && moments < MOMENTS) {
        if (moments++)
            sleep_ms(100);
        before = written(c, session);
        for (int i = 0; i < TRIES; i++)
            busy += try_lock(lock, TTL_MS) == ROWLOCK_BUSY;
        long long more = written(c, session) - before;
        least = least < 0 || more < least ? more : least;
        quiet = more == 0;
    }
    tap_is_int(busy, TRIES * moments, "tries for a held lock are BUSY");
    tap_is_int(least, 0, "and write nothing");
}

void contract_costs(const struct contract *c)
{
    OWNED(text) char *url = NULL;
    if (!c->has_server)
        return; /* stalls.c shows that a busy try there does not even take the write lock */
    busy_try_writes_nothing(c);
    OWNED(proxy) struct faultproxy *proxy = faultproxy_start(c->url, &url);
    if (!proxy) {
        tap_skip(1, "the URL has no host and port to put a proxy before");
        return;
    }
    round_trips(c, proxy, url);
    busy_again(c, proxy, url);
}
