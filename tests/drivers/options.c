/* SPDX-License-Identifier: MIT
 *
 * Options, their sizes and limits; what errors tell; handles in a forked child. What is wrong with
 * a URL or a server is in errors.c. */
#include "contract.h"

enum { TTL_MS = 30000 };

#define DAY_MS INT64_C(86400000)

static const struct limit {
    rowlock_acquire_options options;
    int result;
} acquire_limits[] = {
    {{.ttl_ms = 0}, ROWLOCK_OK},
    {{.ttl_ms = 100}, ROWLOCK_OK},
    {{.ttl_ms = 99}, ROWLOCK_EINVAL},
    {{.ttl_ms = -1}, ROWLOCK_EINVAL},
    {{.ttl_ms = INT64_MIN}, ROWLOCK_EINVAL},
    {{.ttl_ms = 366 * DAY_MS}, ROWLOCK_OK},
    {{.ttl_ms = 366 * DAY_MS + 1}, ROWLOCK_EINVAL},
    {{.ttl_ms = INT64_MAX}, ROWLOCK_EINVAL},
    {{.wait_ms = ROWLOCK_FOREVER}, ROWLOCK_OK},
    {{.wait_ms = -2}, ROWLOCK_EINVAL},
    {{.wait_ms = 366 * DAY_MS}, ROWLOCK_OK},
    {{.wait_ms = 366 * DAY_MS + 1}, ROWLOCK_EINVAL},
    {{.wait_ms = INT64_MAX}, ROWLOCK_EINVAL},
    {{.permits = ROWLOCK_SHARED}, ROWLOCK_OK},
    {{.permits = 1}, ROWLOCK_OK},
    {{.permits = 1000000}, ROWLOCK_OK},
    {{.permits = 1000001}, ROWLOCK_EINVAL},
    {{.permits = -2}, ROWLOCK_EINVAL},
    {{.permits = INT32_MAX}, ROWLOCK_EINVAL},
    {{.permits = INT32_MIN}, ROWLOCK_EINVAL},
    {{.ticket_ms = 999}, ROWLOCK_EINVAL},
    {{.ticket_ms = -1}, ROWLOCK_EINVAL},
    {{.ticket_ms = 1000}, ROWLOCK_OK},
    {{.ticket_ms = 3600000}, ROWLOCK_OK},
    {{.ticket_ms = 3600001}, ROWLOCK_EINVAL},
    {{.ticket_ms = INT64_MAX}, ROWLOCK_EINVAL},
};

static void limits(rowlock_db *db, rowlock_lock *lock)
{
    for (size_t i = 0; i < COUNT(acquire_limits); i++) {
        rowlock_acquire_options how = acquire_limits[i].options;
        how.size = sizeof how;
        how.unfair = i % 2 != 0;
        is_result(db, rowlock_acquire(lock, &how), acquire_limits[i].result,
                  "ttl %lld, wait %lld, permits %d, ticket %lld: %s", (long long)how.ttl_ms,
                  (long long)how.wait_ms, (int)how.permits, (long long)how.ticket_ms,
                  rowlock_result_name(acquire_limits[i].result));
        if (acquire_limits[i].result != ROWLOCK_OK)
            continue;
        rowlock_grant grant = grant_of(db, "options");
        tap_is_int(grant.ttl_ms, how.ttl_ms ? how.ttl_ms : TTL_MS, "is as long as asked, or 30 s");
        tap_is_int(grant.permits, how.permits, "and of the kind asked for");
        is_result(db, rowlock_release(lock), ROWLOCK_OK, "release");
    }
}

static void notes(rowlock_db *db, rowlock_lock *lock)
{
    char note[256];
    rowlock_grant broken = ROWLOCK_GRANT_INIT;
    memset(note, 'n', sizeof note);
    note[255] = '\0';
    rowlock_acquire_options how = *OPTIONS(acquire, .note = note);
    is_result(db, rowlock_acquire(lock, &how), ROWLOCK_OK, "a note of 255 bytes is taken");
    how.note = "\xFF";
    is_result(db, rowlock_acquire(lock, &how), ROWLOCK_EINVAL, "entering again is checked alike");
    is_result(db, rowlock_break(db, "options", 0, &broken), ROWLOCK_OK, "the grant");
    tap_is_str(broken.note, note, "has all of it");
    is_result(db, rowlock_release(lock), ROWLOCK_LOST, "and is gone");
    is_result(db, rowlock_acquire(lock, NULL), ROWLOCK_OK, "no options are the default ones");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "release");
}

static void sizes(const struct contract *c, rowlock_db *db, rowlock_lock *lock)
{
    struct {
        rowlock_acquire_options known;
        int64_t unknown;
    } newer = {.known = ROWLOCK_ACQUIRE_OPTIONS_INIT};
    newer.known.size = sizeof newer;
    is_result(db, rowlock_acquire(lock, &newer.known), ROWLOCK_OK,
              "options of a newer header are taken when they ask for nothing new");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "release");
    newer.unknown = 1;
    is_result(db, rowlock_acquire(lock, &newer.known), ROWLOCK_EINVAL, "and refused when they do");
    newer.known.size = 0;
    is_result(db, rowlock_acquire(lock, &newer.known), ROWLOCK_EINVAL,
              "options without a size are refused");
    newer.known = (rowlock_acquire_options)ROWLOCK_ACQUIRE_OPTIONS_INIT;
    newer.known.size = offsetof(rowlock_acquire_options, wait_ms);
    newer.known.wait_ms = -77;
    is_result(db, rowlock_acquire(lock, &newer.known), ROWLOCK_OK,
              "of options of an older header no more is read than it had");
    OWNED(db) rowlock_db *other = must_open(c->url);
    OWNED(lock) rowlock_lock *rival = must_lock(other, rowlock_lock_name(lock));
    is_result(other, try_lock(rival, TTL_MS), ROWLOCK_BUSY, "a rival is told BUSY");
    struct {
        rowlock_grant known;
        int64_t beyond;
    } holder;
    memset(&holder, 0x55, sizeof holder);
    holder.known.size = offsetof(rowlock_grant, expires_us);
    tap_is_int(rowlock_lock_holder(rival, &holder.known), ROWLOCK_OK, "and the holder is known");
    tap_is_int(holder.known.token, rowlock_lock_token(lock), "an older grant struct is filled");
    tap_is_int(holder.known.expires_us, 0x5555555555555555, "as far as it reaches");
    tap_is_int((long long)holder.known.size, (long long)offsetof(rowlock_grant, expires_us),
               "and keeps its size");
    holder.known.size = sizeof holder;
    tap_is_int(rowlock_lock_holder(rival, &holder.known), ROWLOCK_OK, "a newer one");
    tap_ok(holder.known.expires_us != holder.beyond && holder.beyond == 0x5555555555555555,
           "gets what we know");
    tap_is_int((long long)holder.known.size, (long long)sizeof holder, "and keeps its size");
    holder.known.size = 0;
    holder.known.token = 44;
    tap_is_int(rowlock_lock_holder(rival, &holder.known), ROWLOCK_OK, "one without a size");
    tap_is_int(holder.known.token, 44, "gets nothing");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "release");
}

static void what_errors_tell(rowlock_db *db, rowlock_lock *lock)
{
    is_result(db, rowlock_release(lock), ROWLOCK_EMISUSE, "a failing call");
    rowlock_error err = error_of(db);
    tap_is_int(err.code, ROWLOCK_EMISUSE, "leaves its code");
    tap_ok(strstr(err.action, "release") && strstr(err.action, rowlock_lock_name(lock)),
           "what was being done, to which lock (%s)", err.action);
    tap_ok(err.text[0] && !strchr(err.text, '\n'), "and why, in one line");
    tap_is_int(err.retryable, 0, "a mistake is not worth repeating");
}

void contract_options(const struct contract *c)
{
    OWNED(db) rowlock_db *db = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "options");
    limits(db, lock);
    notes(db, lock);
    sizes(c, db, lock);
    what_errors_tell(db, lock);
}

struct inherited {
    rowlock_db *db;
    rowlock_lock *held, *idle;
};

static int use_in_child(void *argument)
{
    const struct inherited *i = argument;
    int wrong = 0;
    wrong += rowlock_renew(i->held, TTL_MS) != ROWLOCK_EMISUSE;
    wrong += rowlock_verify(i->held) != ROWLOCK_EMISUSE;
    wrong += rowlock_release(i->held) != ROWLOCK_EMISUSE;
    wrong += try_lock(i->held, TTL_MS) != ROWLOCK_EMISUSE;
    wrong += try_lock(i->idle, TTL_MS) != ROWLOCK_EMISUSE;
    wrong += rowlock_sweep(i->db, NULL, NULL) != ROWLOCK_EMISUSE;
    wrong += rowlock_lock_remaining_ms(i->held) != 0;
    rowlock_error err = error_of(i->db);
    wrong += err.code != ROWLOCK_EMISUSE || !strstr(err.text, "forked this one");
    close_locks(i->held, i->idle);
    rowlock_db_close(i->db);
    /* What SQLite keeps for the parent stays allocated here; that is no leak to be reported. */
    execl("/bin/sh", "sh", "-c", textf("exit %d", wrong), (char *)NULL);
    return 99;
}

void contract_fork(const struct contract *c)
{
    /* A connection that the child has spoilt is to be noticed. */
    struct inherited i = {.db = must_open_with(c->url, OPTIONS(db, .reconnect_ms = -1))};
    i.held = must_lock(i.db, "forked");
    i.idle = must_lock(i.db, "forked too");
    is_result(i.db, try_lock(i.held, TTL_MS), ROWLOCK_OK, "a lock is held");
    for (int round = 0; round < 2; round++)
        tap_is_int(child_join(child_start(use_in_child, &i)), 0,
                   "in a forked child every call says EMISUSE, and why; closing is harmless");
    tap_ok(!strstr(why(i.db), "forked this one"), "of which the parent's error knows nothing");
    is_rows(c, "forked", 1, "the child has released nothing");
    is_result(i.db, rowlock_renew(i.held, 0), ROWLOCK_OK, "the parent's connection still works");
    is_result(i.db, try_lock(i.idle, TTL_MS), ROWLOCK_OK, "for everything");
    is_result(i.db, rowlock_release(i.held), ROWLOCK_OK, "and its lock is still its own");
    close_locks(i.held, i.idle);
    rowlock_db_close(i.db);
}
