/* SPDX-License-Identifier: MIT
 *
 * Figures for monitoring: of all tables, and of the names that match a pattern. */
#include "scene.h"

static const char PREFIX[] = "measuring_";
static const int64_t HOUR_US = INT64_C(3600000000);

static void add_grant(const struct contract *c, const char *name, int slot, int permits,
                      int64_t acquired_us, int64_t expires_us, int64_t lapsed_us)
{
    exec_on(c,
            "INSERT INTO %slocks (name, slot, permits, owner, token, request, acquired, expires, "
            "ttl, lapsed) VALUES ('%s', %d, %d, 'x', %d, 1, %lld, %lld, 1000000, %lld)",
            PREFIX, name, slot, permits, slot ? slot : 1, (long long)acquired_us,
            (long long)expires_us, (long long)lapsed_us);
}

static void add_waiter(const struct contract *c, const char *name, int ticket, int64_t since_us,
                       int64_t expires_us)
{
    exec_on(c,
            "INSERT INTO %swaiters (name, ticket, request, permits, owner, since, expires) "
            "VALUES ('%s', %d, %d, 0, 'x', %lld, %lld)",
            PREFIX, name, ticket, ticket, (long long)since_us, (long long)expires_us);
}

static void add_counter(const struct contract *c, const char *name, int token)
{
    exec_on(c, "INSERT INTO %stokens (name, token, granted) VALUES ('%s', %d, 1)", PREFIX, name,
            token);
}

static void add_key(const struct contract *c, const char *name, const char *done,
                    int64_t expires_us)
{
    exec_on(c,
            "INSERT INTO %sonce (name, fingerprint, claim, token, expires, done, changed) "
            "VALUES ('%s', '', 1, 0, %lld, %s, 1)",
            PREFIX, name, (long long)expires_us, done);
}

static void fill(const struct contract *c)
{
    int64_t now_us = int_on(c, "SELECT %s", c->raw->clock);
    int64_t past_us = now_us - HOUR_US;
    int64_t future_us = now_us + HOUR_US;
    add_grant(c, "a", 0, 0, now_us - 2 * HOUR_US, future_us, 0);
    add_grant(c, "b", 7, ROWLOCK_SHARED, now_us - 3 * HOUR_US, future_us, 5000000);
    add_grant(c, "b", 8, ROWLOCK_SHARED, now_us - HOUR_US, future_us - HOUR_US / 2, 2000000);
    add_grant(c, "c", 0, 0, now_us - 9 * HOUR_US, past_us, 9000000);
    add_grant(c, "d", 1, 3, now_us - HOUR_US, future_us, 0);
    add_grant(c, "d", 2, 3, now_us - HOUR_US, future_us, 0);
    add_grant(c, "d", 3, 3, now_us - HOUR_US, past_us, 0);
    add_grant(c, "e", 4, ROWLOCK_SHARED, now_us - HOUR_US, past_us, 0);
    add_waiter(c, "a", 1, now_us - HOUR_US, future_us);
    add_waiter(c, "a", 2, now_us - HOUR_US / 2, future_us);
    add_waiter(c, "a", 3, now_us - 5 * HOUR_US, past_us);
    add_waiter(c, "c", 4, now_us - HOUR_US / 3, future_us);
    add_key(c, "k1", "false", future_us);
    add_key(c, "k2", "false", past_us);
    add_key(c, "k3", "true", past_us);
    add_key(c, "k4", "true", future_us);
    for (const char *name = "abcde"; *name; name++)
        add_counter(c, (char[]){*name, '\0'}, *name);
    exec_on(c, "UPDATE %smeta SET swept = %lld, token_floor = 5", PREFIX, (long long)past_us);
}

static void of_all(const struct contract *c, rowlock_db *db)
{
    rowlock_figures is = ROWLOCK_FIGURES_INIT;
    is_result(db, rowlock_measure(db, &is), ROWLOCK_OK, "measure empty tables");
    tap_ok(is.exclusive + is.shared + is.counted + is.expired_exclusive + is.expired_shared +
                       is.expired_counted + is.longest_hold_ms + is.waiters + is.longest_wait_ms +
                       is.expired_tickets + is.names + is.once_claimed + is.once_expired +
                       is.once_done + is.token_floor + is.swept_us ==
                   0 &&
               is.version == 1 && is.now_us > 0,
           "everything is 0 but the version and the clock");
    fill(c);
    is_result(db, rowlock_measure(db, &is), ROWLOCK_OK, "measure");
    tap_ok(is.exclusive == 1 && is.shared == 2 && is.counted == 2, "grants are counted by kind");
    tap_ok(is.expired_exclusive == 1 && is.expired_shared == 1 && is.expired_counted == 1,
           "expired ones by themselves");
    tap_ok(is.longest_hold_ms >= 3 * 3600000 && is.longest_hold_ms < 4 * 3600000,
           "the longest hold is that of a grant whose lease runs: %lld ms",
           (long long)is.longest_hold_ms);
    tap_is_int(is.waiters, 3, "waiters are counted");
    tap_is_int(is.expired_tickets, 1, "expired tickets by themselves");
    tap_ok(is.longest_wait_ms >= 3600000 && is.longest_wait_ms < 2 * 3600000,
           "the longest wait is that of a live waiter: %lld ms", (long long)is.longest_wait_ms);
    tap_is_int(is.names, 5, "names are those with a counter");
    tap_ok(is.once_claimed == 1 && is.once_expired == 1 && is.once_done == 2,
           "once keys are counted by state");
    tap_ok(is.token_floor == 5 && is.version == 1 &&
               is.swept_us == int_on(c, "SELECT swept FROM %smeta", PREFIX),
           "floor, last sweep and version are those of the tables");
    is_result(db, rowlock_measure(db, NULL), ROWLOCK_EINVAL, "an output is needed");
}

struct names {
    char text[200]; /* the first ones */
    rowlock_name_figures last;
    int count; /* of those in the order of their bytes */
    int stop_after;
};

static int see_name(void *context, const rowlock_name_figures *figures)
{
    struct names *names = context;
    size_t used = strlen(names->text);
    snprintf(names->text + used, sizeof names->text - used, "%s%s", used ? " " : "", figures->name);
    names->count += names->count == 0 || strcmp(names->last.name, figures->name) < 0;
    names->last = *figures;
    return names->count == names->stop_after;
}

static void one_name(rowlock_db *db, const char *name, int token, int holders, int waiters,
                     int held_h, int remaining_h, int lapsed_ms)
{
    struct names names = {.count = 0};
    is_result(db, rowlock_measure_names(db, name, see_name, &names), ROWLOCK_OK, "measure '%s'",
              name);
    const rowlock_name_figures *is = &names.last;
    tap_ok(names.count == 1 && is->token == token && is->holders == holders &&
               is->waiters == waiters && is->lapsed_ms == lapsed_ms,
           "'%s': token %lld, %lld holders, %lld waiters, lapsed by %lld ms", name,
           (long long)is->token, (long long)is->holders, (long long)is->waiters,
           (long long)is->lapsed_ms);
    tap_ok(is->held_ms / 3600000 == held_h && (is->remaining_ms + 3599999) / 3600000 == remaining_h,
           "held for %lld ms, %lld ms are left", (long long)is->held_ms,
           (long long)is->remaining_ms);
}

static void of_names(rowlock_db *db)
{
    one_name(db, "a", 'a', 1, 2, 2, 1, 0);
    one_name(db, "b", 'b', 2, 0, 3, 1, 5000);
    one_name(db, "c", 'c', 0, 1, 0, 0, 0);
    one_name(db, "d", 'd', 2, 0, 1, 1, 0);
    one_name(db, "e", 'e', 0, 0, 0, 0, 0);
}

static void matches(rowlock_db *db, const char *glob, const char *expected)
{
    struct names names = {.count = 0};
    is_result(db, rowlock_measure_names(db, glob, see_name, &names), ROWLOCK_OK,
              "measure names like '%s'", glob);
    tap_is_str(names.text, expected, "'%s' finds them, in the order of their bytes", glob);
}

static void patterns(const struct contract *c, rowlock_db *db)
{
    static const char *const hostile[] = {"X%y", "Xay", "X_y", "X!y", "X!%y", "[ab]", "Xäy", "x*y"};
    for (size_t i = 0; i < COUNT(hostile); i++)
        add_counter(c, hostile[i], 1);
    matches(db, "X?y", "X!y X%y X_y Xay Xäy");
    matches(db, "X%y", "X%y");
    matches(db, "X_y", "X_y");
    matches(db, "X!*", "X!%y X!y");
    matches(db, "[ab]", "[ab]");
    matches(db, "x*", "x*y");
    matches(db, "?", "a b c d e");
    matches(db, "*ä*", "Xäy");
    matches(db, "X\\?y", "");
    matches(db, "no such name", "");
}

/* More than two pages. */
static void pages(const struct contract *c, rowlock_db *db)
{
    enum { MANY = 1203 };
    exec_on(c,
            "INSERT INTO %stokens (name, token, granted) SELECT %s, 1, 1 FROM " NUMBERS
            " WHERE i < %d",
            PREFIX, numbered(c, "page "), MANY);
    struct names names = {.count = 0};
    is_result(db, rowlock_measure_names(db, "page*", see_name, &names), ROWLOCK_OK,
              "measure more names than a page has");
    tap_is_int(names.count, MANY, "gives each once, in order");
    names = (struct names){.stop_after = 2};
    is_result(db, rowlock_measure_names(db, "page*", see_name, &names), ROWLOCK_OK,
              "a callback may stop it");
    tap_is_int(names.count, 2, "then no more is given");
    is_result(db, rowlock_measure_names(db, "", see_name, &names), ROWLOCK_EINVAL,
              "an empty pattern is refused");
    is_result(db, rowlock_measure_names(db, "a", NULL, NULL), ROWLOCK_EINVAL,
              "a callback is needed");
}

/* Another transaction has written all rows, and is open. */
static void blocks_nobody(const struct contract *c, rowlock_db *db)
{
    OWNED(session) void *session = c->raw->open(c->url);
    struct names names = {.count = 0};
    rowlock_figures is = ROWLOCK_FIGURES_INIT;
    raw_run(c->raw, session, "%s", c->begin);
    raw_run(c->raw, session, "UPDATE %slocks SET renewals = renewals + 1", PREFIX);
    raw_run(c->raw, session, "DELETE FROM %swaiters", PREFIX);
    raw_run(c->raw, session, "UPDATE %stokens SET token = token + 1", PREFIX);
    is_result(db, rowlock_measure(db, &is), ROWLOCK_OK, "measure beside a writer of all rows");
    tap_ok(is.waiters == 3 && is.exclusive == 1, "what is committed is counted");
    is_result(db, rowlock_measure_names(db, "a", see_name, &names), ROWLOCK_OK,
              "measure names beside it");
    tap_is_int(names.last.token, 'a', "what is committed is told");
    raw_run(c->raw, session, "COMMIT");
}

void contract_measure(const struct contract *c)
{
    OWNED(text) char *url = fresh_tables(c, PREFIX);
    OWNED(db) rowlock_db *db = must_open(url);
    of_all(c, db);
    of_names(db);
    patterns(c, db);
    pages(c, db);
    blocks_nobody(c, db);
}
