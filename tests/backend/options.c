/* SPDX-License-Identifier: MIT
 *
 * Options, their sizes and limits; what errors tell; handles in a forked child. What is wrong with a
 * URL or a server is in errors.c.
 */
#include "contract.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TTL_MS = 30000 };

static const int64_t DAY_MS = INT64_C(86400000);

static int acquire_with(rowlock_lock *lock, int64_t ttl_ms, int64_t wait_ms)
{
    int result = wait_lock(lock, ttl_ms, wait_ms);
    if (result == ROWLOCK_OK && rowlock_release(lock) != ROWLOCK_OK)
        return ROWLOCK_ESERVER;
    return result;
}

static void limits(rowlock_db *db, rowlock_lock *lock)
{
    is_result(db, acquire_with(lock, 99, 0), ROWLOCK_EINVAL, "a ttl below 100 ms is refused");
    is_result(db, acquire_with(lock, -5, 0), ROWLOCK_EINVAL, "a negative ttl is refused");
    is_result(db, acquire_with(lock, 366 * DAY_MS + 1, 0), ROWLOCK_EINVAL,
              "a ttl of more than 366 days is refused");
    is_result(db, acquire_with(lock, INT64_MAX, 0), ROWLOCK_EINVAL, "an endless ttl is refused");
    is_result(db, acquire_with(lock, TTL_MS, -2), ROWLOCK_EINVAL, "a wait below -1 is refused");
    is_result(db, acquire_with(lock, TTL_MS, INT64_MAX), ROWLOCK_EINVAL,
              "a wait that is meant to be endless says ROWLOCK_FOREVER");
    is_result(db, acquire_with(lock, 100, 0), ROWLOCK_OK, "100 ms will do");
    is_result(db, acquire_with(lock, 366 * DAY_MS, 0), ROWLOCK_OK, "so will 366 days");
    is_result(db, acquire_with(lock, 0, ROWLOCK_FOREVER), ROWLOCK_OK, "and the default");
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

    rowlock_db *other = must_open(c->url);
    rowlock_lock *rival = must_lock(other, rowlock_lock_name(lock));
    is_result(other, try_lock(rival, TTL_MS), ROWLOCK_BUSY, "a rival is told BUSY");
    rowlock_grant holder;
    memset(&holder, 0x55, sizeof holder);
    holder.size = offsetof(rowlock_grant, expires_us);
    is_result(other, rowlock_lock_holder(rival, &holder), ROWLOCK_OK, "and by whom");
    tap_is_int(holder.token, rowlock_lock_token(lock), "an older grant struct is filled");
    tap_is_int(holder.expires_us, 0x5555555555555555, "as far as it reaches");
    tap_is_int((long long)holder.size, (long long)offsetof(rowlock_grant, expires_us),
               "and keeps its size");
    rowlock_lock_close(rival);
    rowlock_db_close(other);
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "release");
}

static int open_with(const struct contract *c, int64_t connect_ms, int64_t statement_ms)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    rowlock_db *db = NULL;
    options.connect_timeout_ms = connect_ms;
    options.statement_timeout_ms = statement_ms;
    int result = rowlock_db_open(&db, c->url, &options, NULL);
    rowlock_db_close(db);
    return result;
}

static void db_limits(const struct contract *c)
{
    tap_is_int(open_with(c, -1, 0), ROWLOCK_EINVAL, "a negative connect timeout is refused");
    tap_is_int(open_with(c, 0, -1), ROWLOCK_EINVAL, "a negative statement timeout is refused");
    tap_is_int(open_with(c, 0, INT64_MAX), ROWLOCK_EINVAL, "an endless one is refused");
    tap_is_int(open_with(c, 3000, 3000), ROWLOCK_OK, "3 s each will do");
    rowlock_db_options options;
    rowlock_db *db = NULL;
    rowlock_db_options_init(&options);
    tap_is_int((long long)options.size, (long long)sizeof options, "options can be initialised");
    options.size = 4;
    tap_is_int(rowlock_db_open(&db, c->url, &options, NULL), ROWLOCK_EINVAL, "a size must be one");
}

static void what_errors_tell(rowlock_db *db, rowlock_lock *lock)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    is_result(db, rowlock_release(lock), ROWLOCK_EMISUSE, "a failing call");
    rowlock_db_error(db, &err);
    tap_is_int(err.code, ROWLOCK_EMISUSE, "leaves its code");
    tap_ok(strstr(err.action, "release") && strstr(err.action, rowlock_lock_name(lock)),
           "what was being done, to which lock (%s)", err.action);
    tap_ok(err.text[0] && !strchr(err.text, '\n'), "and why, in one line");
    tap_is_int(err.retryable, 0, "a mistake is not worth repeating");
    tap_is_str(rowlock_result_name(ROWLOCK_OK), "ROWLOCK_OK", "results have names");
    tap_is_str(rowlock_result_name(ROWLOCK_ESERVER), "ROWLOCK_ESERVER", "down to the last");
    tap_ok(rowlock_result_name(4711) != NULL, "even those that do not exist");
    rowlock_db_error(NULL, &err);
    rowlock_db_error(db, NULL);
}

void contract_options(const struct contract *c)
{
    rowlock_db *db = must_open(c->url);
    rowlock_lock *lock = must_lock(db, "options");
    limits(db, lock);
    sizes(c, db, lock);
    db_limits(c);
    what_errors_tell(db, lock);
    rowlock_lock_close(lock);
    rowlock_db_close(db);
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
    wrong += rowlock_remaining_ms(i->held) != 0;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db_error(i->db, &err);
    wrong += err.code != ROWLOCK_EMISUSE || !strstr(err.text, "forked this one");
    close_locks(i->held, i->idle);
    rowlock_db_close(i->db);
    /* What SQLite keeps for the parent stays allocated here; that is no leak to be reported. */
    char leave[20];
    snprintf(leave, sizeof leave, "exit %d", wrong);
    execl("/bin/sh", "sh", "-c", leave, (char *)NULL);
    return 99;
}

/* Pitfall 58. */
void contract_fork(const struct contract *c)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.reconnect_ms = -1; /* a connection that the child has spoilt shall not go unnoticed */
    struct inherited i = {.db = must_open_with(c->url, &options)};
    i.held = must_lock(i.db, "forked");
    i.idle = must_lock(i.db, "forked too");
    is_result(i.db, try_lock(i.held, TTL_MS), ROWLOCK_OK, "a lock is held");
    for (int round = 0; round < 2; round++)
        tap_is_int(child_join(child_start(use_in_child, &i)), 0,
                   "in a forked child every call says EMISUSE, and why; closing is harmless");
    tap_ok(!strstr(why(i.db), "forked this one"), "of which the parent's error knows nothing");
    tap_is_int(rows_of(c, "forked"), 1, "the child has released nothing");
    is_result(i.db, rowlock_renew(i.held, 0), ROWLOCK_OK, "the parent's connection still works");
    is_result(i.db, try_lock(i.idle, TTL_MS), ROWLOCK_OK, "for everything");
    is_result(i.db, rowlock_release(i.held), ROWLOCK_OK, "and its lock is still its own");
    close_locks(i.held, i.idle);
    rowlock_db_close(i.db);
}
