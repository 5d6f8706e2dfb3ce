/* SPDX-License-Identifier: MIT
 *
 * Keys that say what was asked for, so that asking twice does it once: what each who claims one is told, in
 * whose transaction it is completed, what is taken over, and what is swept.
 */
#include "scene.h"
#include "tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLAIMS = 4, CONTESTS = 15, RESULT_MAX = 65535, DAY_S = 86400 };

/* Two who ask, each with a connection of his own. */
struct asking {
    struct site site;
    rowlock_db *other;
};

static struct asking ask_open(const struct contract *c)
{
    struct asking a = {.site = site_open(c), .other = must_open(c->url)};
    site_run(&a.site, "DELETE FROM rowlock_once");
    return a;
}

static void ask_close(struct asking *a)
{
    rowlock_db_close(a->other);
    site_close(&a->site);
}

static rowlock_once_options once_about(const char *fingerprint, int64_t ttl_ms)
{
    rowlock_once_options o = ROWLOCK_ONCE_OPTIONS_INIT;
    o.fingerprint = fingerprint;
    o.ttl_ms = ttl_ms;
    return o;
}

static rowlock_once *claim_as(rowlock_db *db, const char *key, const rowlock_once_options *o,
                              int want, const char *what)
{
    rowlock_once *once = (rowlock_once *)(uintptr_t)1; /* to be overwritten */
    is_result(db, rowlock_once_claim(db, key, o, &once), want, "%s", what);
    bool given = want == ROWLOCK_OK || want == ROWLOCK_DONE;
    tap_ok((once != NULL) == given, "%s", given ? "a handle is given" : "no handle is given");
    return once;
}

static rowlock_once *claim(rowlock_db *db, const char *key, const char *fingerprint, int want,
                           const char *what)
{
    rowlock_once_options o = once_about(fingerprint, 0);
    return claim_as(db, key, &o, want, what);
}

static void result_is(const rowlock_once *once, const void *want, size_t want_length,
                      const char *what)
{
    size_t length = 12345;
    const void *got = rowlock_once_result(once, &length);
    tap_ok(got && length == want_length && memcmp(got, want, length) == 0, "%s", what);
}

static void no_result(const rowlock_once *once, const char *what)
{
    size_t length = 12345;
    tap_ok(!rowlock_once_result(once, &length) && length == 0, "%s", what);
}

/* ---- what each is told */

static void completes(const struct contract *c)
{
    struct asking a = ask_open(c);
    unsigned char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    rowlock_once *one = claim(a.site.db, "order 1", "buy 1", ROWLOCK_OK, "a new key");
    no_result(one, "nothing is stored yet");
    no_result(NULL, "nor of no claim");
    claim(a.other, "order 1", "buy 1", ROWLOCK_BUSY, "it is in progress for another");
    claim(a.site.db, "order 1", "buy 1", ROWLOCK_BUSY, "and for who claimed it");
    claim(a.other, "order 1", "buy 2", ROWLOCK_MISMATCH, "for something else it cannot be used");
    claim(a.other, "order 1", NULL, ROWLOCK_MISMATCH, "nor for nothing");
    rowlock_once_close(claim(a.other, "order 2", "buy 1", ROWLOCK_OK, "another key is another"));
    is_result(a.site.db, rowlock_once_complete(one, a.site.db, "x", 1), ROWLOCK_OK,
              "it is completed");
    no_result(one, "which gives its own claim no result");
    is_result(a.site.db, rowlock_once_complete(one, a.site.db, bytes, sizeof bytes), ROWLOCK_OK,
              "completed again it gets another");
    rowlock_once_close(one);
    one = claim(a.other, "order 1", "buy 1", ROWLOCK_DONE, "who asks again is told");
    result_is(one, bytes, sizeof bytes, "with all that was stored last");
    is_result(a.other, rowlock_once_complete(one, a.other, "x", 1), ROWLOCK_EMISUSE,
              "it cannot be completed again");
    is_result(a.other, rowlock_once_abandon(one), ROWLOCK_EMISUSE, "nor given back");
    result_is(one, bytes, sizeof bytes, "and is as it was");
    rowlock_once_close(one);
    claim(a.other, "order 1", "buy 2", ROWLOCK_MISMATCH, "it is done, but not for something else");
    ask_close(&a);
}

static void results_of_any_length(const struct contract *c)
{
    static const size_t lengths[] = {0, 1, RESULT_MAX};
    struct asking a = ask_open(c);
    char *long_result = calloc(1, RESULT_MAX + 1);
    if (!long_result)
        abort();
    memset(long_result, 0xC3, RESULT_MAX + 1);
    for (int i = 0; i < COUNT(lengths); i++) {
        char key[20];
        snprintf(key, sizeof key, "length %d", i);
        rowlock_once *once = claim(a.site.db, key, NULL, ROWLOCK_OK, "a key without a fingerprint");
        is_result(a.site.db, rowlock_once_complete(once, a.site.db, long_result, RESULT_MAX + 1),
                  ROWLOCK_EINVAL, "a result that is too long");
        const char *result = lengths[i] ? long_result : NULL;
        is_result(a.site.db, rowlock_once_complete(once, a.site.db, result, lengths[i]), ROWLOCK_OK,
                  "one of %zu bytes", lengths[i]);
        rowlock_once_close(once);
        once = claim(a.other, key, "", ROWLOCK_DONE, "none is the empty one");
        result_is(once, long_result, lengths[i], "and the result is as long");
        rowlock_once_close(once);
    }
    free(long_result);
    ask_close(&a);
}

static void abandons(const struct contract *c)
{
    struct asking a = ask_open(c);
    rowlock_once *one = claim(a.site.db, "again", "x", ROWLOCK_OK, "a new key");
    is_result(a.site.db, rowlock_once_abandon(one), ROWLOCK_OK, "it is given back");
    rowlock_once *two = claim(a.other, "again", "y", ROWLOCK_OK, "anybody may have it at once");
    is_result(a.site.db, rowlock_once_complete(one, a.site.db, "x", 1), ROWLOCK_LOST,
              "who gave it back cannot complete it");
    is_result(a.site.db, rowlock_once_abandon(one), ROWLOCK_OK,
              "to give it back again is harmless");
    claim(a.site.db, "again", "y", ROWLOCK_BUSY, "to the other, too");
    is_result(a.other, rowlock_once_complete(two, a.other, "y", 1), ROWLOCK_OK, "who completes it");
    is_result(a.other, rowlock_once_abandon(two), ROWLOCK_OK, "what is done");
    rowlock_once_close(two);
    two = claim(a.other, "again", "y", ROWLOCK_DONE, "stays done");
    rowlock_once_close(two);
    rowlock_once_close(one);
    ask_close(&a);
}

static void keys(const struct contract *c)
{
    struct asking a = ask_open(c);
    rowlock_once_options o = ROWLOCK_ONCE_OPTIONS_INIT;
    char longest[257];
    memset(longest, 'k', sizeof longest - 1);
    longest[256] = '\0';
    claim(a.site.db, longest, NULL, ROWLOCK_EINVAL, "a key of 256 bytes");
    claim(a.site.db, "short", longest, ROWLOCK_EINVAL, "a fingerprint of as many");
    claim(a.site.db, "", NULL, ROWLOCK_EINVAL, "an empty key");
    claim(a.site.db, NULL, NULL, ROWLOCK_EINVAL, "none");
    claim(a.site.db, "\xff", NULL, ROWLOCK_EINVAL, "one that is no UTF-8");
    o.ttl_ms = -1;
    claim_as(a.site.db, "short", &o, ROWLOCK_EINVAL, "a time below nothing");
    tap_is_int(rowlock_once_claim(a.site.db, "short", NULL, NULL), ROWLOCK_EINVAL, "no handle");
    longest[255] = '\0';
    rowlock_once_close(claim(a.site.db, longest, longest, ROWLOCK_OK, "255 bytes of each"));
    claim(a.other, longest, longest, ROWLOCK_BUSY, "are found again");
    rowlock_once_close(claim(a.site.db, "key", NULL, ROWLOCK_OK, "a small letter"));
    rowlock_once_close(claim(a.site.db, "Key", NULL, ROWLOCK_OK, "is not a capital one"));
    rowlock_once_close(claim(a.site.db, "key ", NULL, ROWLOCK_OK, "nor is a blank nothing"));
    tap_is_int(rowlock_once_complete(NULL, a.site.db, NULL, 0), ROWLOCK_EMISUSE, "no claim");
    tap_is_int(rowlock_once_abandon(NULL), ROWLOCK_EMISUSE, "nor here");
    rowlock_once_close(NULL);
    ask_close(&a);
}

/* ---- several at once */

struct contestant {
    const struct contract *c;
    int won[CONTESTS], busy;
};

static int contend(void *argument)
{
    struct contestant *me = argument;
    rowlock_db *db = must_open(me->c->url);
    for (int i = 0; i < CONTESTS; i++) {
        char key[30];
        rowlock_once *once;
        snprintf(key, sizeof key, "contest %d", i);
        int result = rowlock_once_claim(db, key, NULL, &once);
        me->won[i] = result == ROWLOCK_OK;
        me->busy += result == ROWLOCK_BUSY;
        rowlock_once_close(once);
    }
    rowlock_db_close(db);
    return 0;
}

static void contests(const struct contract *c)
{
    struct asking a = ask_open(c);
    struct contestant each[CLAIMS];
    struct helper *helpers[CLAIMS];
    int busy = 0, decided = 0;
    for (int i = 0; i < CLAIMS; i++) {
        each[i] = (struct contestant){.c = c};
        helpers[i] = helper_start(contend, &each[i]);
    }
    for (int i = 0; i < CLAIMS; i++) {
        helper_join(helpers[i]);
        busy += each[i].busy;
    }
    for (int k = 0; k < CONTESTS; k++) {
        int winners = 0;
        for (int i = 0; i < CLAIMS; i++)
            winners += each[i].won[k];
        decided += winners == 1;
    }
    tap_is_int(decided, CONTESTS, "of several who claim a key at once one has it");
    tap_is_int(busy, CONTESTS * (CLAIMS - 1), "and all others are told that it is in progress");
    ask_close(&a);
}

/* ---- taken over */

static void time_is_over(const struct contract *c)
{
    struct asking a = ask_open(c);
    rowlock_once_options brief = once_about("x", SHORT_MS);
    rowlock_once *one = claim_as(a.site.db, "late", &brief, ROWLOCK_OK, "a claim of short time");
    let_expire();
    claim(a.other, "late", "y", ROWLOCK_MISMATCH, "it is still no other's");
    rowlock_once *two = claim(a.other, "late", "x", ROWLOCK_OK, "its time is over: taken over");
    is_result(a.site.db, rowlock_once_complete(one, a.site.db, "1", 1), ROWLOCK_LOST,
              "the first cannot complete it");
    is_result(a.site.db, rowlock_once_abandon(one), ROWLOCK_OK, "nor give away");
    claim(a.site.db, "late", "x", ROWLOCK_BUSY, "what is the second's");
    is_result(a.other, rowlock_once_complete(two, a.other, "2", 1), ROWLOCK_OK, "who completes it");
    rowlock_once_close(one);
    rowlock_once_close(two);
    one = claim(a.site.db, "late", "x", ROWLOCK_DONE, "and for all it is done");
    result_is(one, "2", 1, "as the second said");
    rowlock_once_close(one);
    ask_close(&a);
}

/* Who is late, but whose claim nobody wanted, has not lost it. */
static void late_but_alone(const struct contract *c)
{
    struct asking a = ask_open(c);
    rowlock_once_options brief = once_about("x", SHORT_MS);
    rowlock_once *one = claim_as(a.site.db, "alone", &brief, ROWLOCK_OK, "a claim of short time");
    let_expire();
    is_result(a.site.db, rowlock_once_complete(one, a.site.db, "1", 1), ROWLOCK_OK,
              "late, but nobody else came");
    rowlock_once_close(one);
    rowlock_once_close(claim(a.other, "alone", "x", ROWLOCK_DONE, "it is done"));
    ask_close(&a);
}

static rowlock_once_options under_token(const char *fingerprint, int64_t token)
{
    rowlock_once_options o = once_about(fingerprint, 0);
    o.token = token;
    return o;
}

/* Whoever holds the lock now takes over from who held it before, and not the other way round. */
static void takes_over(const struct contract *c)
{
    struct asking a = ask_open(c);
    rowlock_once_options older = under_token("x", 5), newer = under_token("x", 6);
    rowlock_once_options newest = under_token("x", 7), other = under_token("y", 8);
    rowlock_once *one = claim_as(a.site.db, "over", &newer, ROWLOCK_OK, "a claim under a lock");
    claim(a.other, "over", "x", ROWLOCK_BUSY, "it is in progress");
    claim_as(a.other, "over", &older, ROWLOCK_BUSY, "also for who held the lock before");
    claim_as(a.other, "over", &newer, ROWLOCK_BUSY, "and under the same token");
    claim_as(a.other, "over", &other, ROWLOCK_MISMATCH, "for something else none is taken over");
    rowlock_once *two = claim_as(a.other, "over", &newest, ROWLOCK_OK, "a later holder takes it");
    is_result(a.site.db, rowlock_once_complete(one, a.site.db, "1", 1), ROWLOCK_LOST,
              "the first cannot complete it");
    claim_as(a.site.db, "over", &newer, ROWLOCK_BUSY, "nor get it back");
    is_result(a.other, rowlock_once_complete(two, a.other, "2", 1), ROWLOCK_OK,
              "the later one can");
    rowlock_once_close(one);
    rowlock_once_close(two);
    newest.token = 9;
    one = claim_as(a.site.db, "over", &newest, ROWLOCK_DONE, "what is done is not taken over");
    result_is(one, "2", 1, "and stays as it was");
    rowlock_once_close(one);
    rowlock_once_close(claim(a.site.db, "free", "x", ROWLOCK_OK, "a claim without a lock"));
    claim_as(a.other, "free", &newest, ROWLOCK_BUSY, "is not taken over by who has one");
    newest.token = -1;
    claim_as(a.other, "new", &newest, ROWLOCK_EINVAL, "a token below nothing");
    ask_close(&a);
}

/* ---- in the application's transaction */

static void completes_in_a_transaction(const struct contract *c)
{
    struct asking a = ask_open(c);
    struct site app = site_adopt(c);
    rowlock_once *once = claim(a.site.db, "tx", NULL, ROWLOCK_OK, "claimed by a connection");
    raw_run(c->raw, app.session, "BEGIN");
    is_result(app.db, rowlock_once_complete(once, app.db, "1", 1), ROWLOCK_OK,
              "completed in another's transaction");
    raw_run(c->raw, app.session, "ROLLBACK");
    claim(a.other, "tx", NULL, ROWLOCK_BUSY, "which was rolled back: it is not done");
    raw_run(c->raw, app.session, "BEGIN");
    is_result(app.db, rowlock_once_complete(once, app.db, "2", 1), ROWLOCK_OK, "once more");
    raw_run(c->raw, app.session, "COMMIT");
    rowlock_once_close(once);
    once = claim(a.other, "tx", NULL, ROWLOCK_DONE, "committed: it is done");
    result_is(once, "2", 1, "with its result");
    rowlock_once_close(once);
    site_close(&app);
    ask_close(&a);
}

static void completes_too_late(const struct contract *c)
{
    struct asking a = ask_open(c);
    struct site app = site_adopt(c);
    rowlock_once_options first = under_token(NULL, 1), over = under_token(NULL, 2);
    rowlock_once *one = claim_as(a.site.db, "tx late", &first, ROWLOCK_OK, "claimed");
    rowlock_once *two = claim_as(a.other, "tx late", &over, ROWLOCK_OK, "and taken over");
    raw_run(c->raw, app.session, "BEGIN");
    raw_run(c->raw, app.session, "DELETE FROM once_work");
    is_result(app.db, rowlock_once_complete(one, app.db, "1", 1), ROWLOCK_LOST,
              "the transaction in which it was done is told");
    tap_is_int(error_of(app.db).transaction_over, 0, "and may go on");
    tap_is_int(raw_int(c->raw, app.session, "SELECT count(*) FROM once_work"), 0, "as it was");
    raw_run(c->raw, app.session, "ROLLBACK");
    tap_is_int(db_int(c->raw, c->url, "SELECT count(*) FROM once_work"), 1,
               "it is rolled back by who began it");
    rowlock_once_close(one);
    rowlock_once_close(two);
    site_close(&app);
    ask_close(&a);
}

static void claims_in_a_transaction(const struct contract *c)
{
    struct asking a = ask_open(c);
    struct site app = site_adopt(c);
    raw_run(c->raw, app.session, "BEGIN");
    rowlock_once *once = claim(app.db, "all", "x", ROWLOCK_OK, "claimed inside a transaction");
    raw_run(c->raw, app.session, "ROLLBACK");
    rowlock_once_close(once);
    raw_run(c->raw, app.session, "BEGIN");
    once = claim(app.db, "all", "x", ROWLOCK_OK, "rolled back it was never claimed");
    raw_run(c->raw, app.session, "DELETE FROM once_work");
    is_result(app.db, rowlock_once_complete(once, app.db, "r", 1), ROWLOCK_OK,
              "claimed and completed in one");
    raw_run(c->raw, app.session, "COMMIT");
    rowlock_once_close(once);
    raw_run(c->raw, app.session, "BEGIN");
    once = claim(app.db, "all", "x", ROWLOCK_DONE, "the next transaction is told");
    rowlock_once_close(once);
    claim(app.db, "all", "y", ROWLOCK_MISMATCH, "for something else, too");
    raw_run(c->raw, app.session, "INSERT INTO once_work VALUES (1)");
    raw_run(c->raw, app.session, "COMMIT");
    tap_is_int(db_int(c->raw, c->url, "SELECT count(*) FROM once_work"), 1, "and goes on");
    site_close(&app);
    ask_close(&a);
}

/* Who claims a key that an open transaction has claimed waits for what becomes of that. */
struct waiting {
    const struct contract *c;
    int result;
};

static int claim_and_wait(void *argument)
{
    struct waiting *w = argument;
    rowlock_db *db = must_open(w->c->url);
    rowlock_once *once;
    rowlock_once_options o = once_about("x", 0);
    w->result = rowlock_once_claim(db, "wait", &o, &once);
    rowlock_once_close(once);
    rowlock_db_close(db);
    return 0;
}

static const char *count_waiters(const struct contract *c)
{
    return is_postgres(c) ? "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                            "AND query LIKE '%rowlock_once%'"
                          : "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = "
                            "'LOCK WAIT'";
}

/* What InnoDB says of its transactions stays the same for a tenth of a second after each look. */
static bool somebody_waits(const struct site *s)
{
    for (int i = 0; i < 100; i++) {
        if (raw_int(s->c->raw, s->look, "%s", count_waiters(s->c)) > 0)
            return true;
        sleep_ms(slow_ms(120));
    }
    return false;
}

static void waits_for_a_transaction(const struct contract *c, const char *end, int want)
{
    struct asking a = ask_open(c);
    struct site app = site_adopt(c);
    struct waiting w = {.c = c};
    raw_run(c->raw, app.session, "BEGIN");
    rowlock_once *once = claim(app.db, "wait", "x", ROWLOCK_OK, "claimed, not yet committed");
    is_result(app.db, rowlock_once_complete(once, app.db, "r", 1), ROWLOCK_OK, "completed");
    struct helper *helper = helper_start(claim_and_wait, &w);
    if (c->has_server)
        tap_ok(somebody_waits(&a.site), "another waits for that");
    raw_run(c->raw, app.session, "%s", end);
    helper_join(helper);
    tap_is_str(rowlock_result_name(w.result), rowlock_result_name(want), "%s says what to him",
               end);
    rowlock_once_close(once);
    site_close(&app);
    ask_close(&a);
}

static void begin_repeatable(const struct contract *c, const struct site *app)
{
    if (is_mysql(c))
        raw_run(c->raw, app->session, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    raw_run(c->raw, app->session, "BEGIN%s",
            is_postgres(c) ? " ISOLATION LEVEL REPEATABLE READ" : "");
    raw_int(c->raw, app->session, "SELECT count(*) FROM once_work");
}

/* What was done and committed after a snapshot is never taken for new, whatever that snapshot shows. */
static void claims_after_a_snapshot(const struct contract *c)
{
    struct asking a = ask_open(c);
    struct site app = site_adopt(c);
    rowlock_once *once = NULL;
    begin_repeatable(c, &app);
    rowlock_once *other = claim(a.other, "snapshot", NULL, ROWLOCK_OK, "another claims");
    is_result(a.other, rowlock_once_complete(other, a.other, NULL, 0), ROWLOCK_OK, "and completes");
    rowlock_once_close(other);
    int result = rowlock_once_claim(app.db, "snapshot", NULL, &once);
    tap_ok(result == ROWLOCK_DONE || result == ROWLOCK_CONFLICT,
           "a transaction with an older snapshot is told (%s)", rowlock_result_name(result));
    rowlock_once_close(once);
    raw_run(c->raw, app.session, "ROLLBACK");
    rowlock_once_close(claim(app.db, "snapshot", NULL, ROWLOCK_DONE, "afterwards, too"));
    site_close(&app);
    ask_close(&a);
}

/* LOST is said only of a claim that is gone, not of one that a snapshot does not show yet. */
static void completes_after_a_snapshot(const struct contract *c)
{
    struct asking a = ask_open(c);
    struct site app = site_adopt(c);
    rowlock_once_options first = under_token(NULL, 1), over = under_token(NULL, 2);
    rowlock_once *taken = claim_as(a.site.db, "taken", &first, ROWLOCK_OK, "claimed");
    const char *const keys[] = {"new", "taken"};
    for (int i = 0; i < COUNT(keys); i++) {
        begin_repeatable(c, &app);
        rowlock_once *once =
            claim_as(a.other, keys[i], &over, ROWLOCK_OK, "claimed after a snapshot");
        int result = rowlock_once_complete(once, app.db, "1", 1);
        tap_ok(result == ROWLOCK_CONFLICT || (result == ROWLOCK_OK && !is_postgres(c)),
               "completed in that transaction, or to be tried anew (%s)",
               rowlock_result_name(result));
        tap_is_int(error_of(app.db).transaction_over, result == ROWLOCK_CONFLICT,
                   "which is over then");
        raw_run(c->raw, app.session, "ROLLBACK");
        begin_repeatable(c, &app);
        is_result(app.db, rowlock_once_complete(once, app.db, "2", 1), ROWLOCK_OK, "anew");
        raw_run(c->raw, app.session, "COMMIT");
        rowlock_once_close(once);
        rowlock_once_close(claim(a.site.db, keys[i], NULL, ROWLOCK_DONE, "it is done"));
    }
    begin_repeatable(c, &app);
    is_result(app.db, rowlock_once_complete(taken, app.db, "1", 1), ROWLOCK_LOST,
              "what was taken over before the snapshot is lost");
    raw_run(c->raw, app.session, "ROLLBACK");
    rowlock_once_close(taken);
    site_close(&app);
    ask_close(&a);
}

/* Nobody has the key any more. Whoever looks for it makes no key of that name. */
static void completes_what_is_gone(const struct contract *c)
{
    struct asking a = ask_open(c);
    struct site app = site_adopt(c);
    rowlock_once *once = claim(a.site.db, "gone", NULL, ROWLOCK_OK, "claimed");
    is_result(a.site.db, rowlock_once_abandon(once), ROWLOCK_OK, "and given back");
    begin_repeatable(c, &app);
    is_result(app.db, rowlock_once_complete(once, app.db, "1", 1), ROWLOCK_LOST,
              "it is lost, though nobody claimed it");
    tap_is_int(error_of(app.db).transaction_over, 0, "the transaction could go on");
    raw_run(c->raw, app.session, "COMMIT");
    site_finds(&a.site, "0", "and leaves no key", "SELECT count(*) FROM rowlock_once");
    rowlock_once_close(once);
    site_close(&app);
    ask_close(&a);
}

struct order {
    rowlock_db *db;
    rowlock_once *once;
};

static int complete_at_second(void *context, const rowlock_attempt *attempt)
{
    const struct order *order = context;
    int result = rowlock_once_complete(order->once, order->db, "r", 1);
    return result == ROWLOCK_OK && attempt->number == 1 ? ROWLOCK_STALE : result;
}

static void completes_in_a_retry(const struct contract *c)
{
    struct asking a = ask_open(c);
    rowlock_once *once = claim(a.site.db, "retry", NULL, ROWLOCK_OK, "claimed");
    struct order order = {a.site.db, once};
    rowlock_retry_report report = ROWLOCK_RETRY_REPORT_INIT;
    is_result(a.site.db, rowlock_retry(a.site.db, complete_at_second, &order, NULL, &report),
              ROWLOCK_OK, "completed where it was tried again");
    tap_is_int(report.attempts, 2, "the second time");
    rowlock_once_close(once);
    rowlock_once_close(claim(a.other, "retry", NULL, ROWLOCK_DONE, "it is done"));
    ask_close(&a);
}

static void outlives_its_handle(const struct contract *c)
{
    struct asking a = ask_open(c);
    rowlock_once *done = claim(a.other, "done", NULL, ROWLOCK_OK, "claimed");
    is_result(a.other, rowlock_once_complete(done, a.other, "r", 1), ROWLOCK_OK, "and completed");
    rowlock_once_close(done);
    done = claim(a.other, "done", NULL, ROWLOCK_DONE, "seen by another");
    rowlock_once *once = claim(a.other, "open", NULL, ROWLOCK_OK, "another one");
    rowlock_db_close(a.other);
    a.other = NULL;
    is_result(a.site.db, rowlock_once_complete(once, a.site.db, "r", 1), ROWLOCK_EMISUSE,
              "it is not completed after its connection was closed");
    tap_is_int(rowlock_once_abandon(once), ROWLOCK_EMISUSE, "nor given back");
    result_is(done, "r", 1, "a result stays until it is closed itself");
    rowlock_once_close(once);
    rowlock_once_close(done);
    ask_close(&a);
}

static void other_tables(const struct contract *c)
{
    struct asking a = ask_open(c);
    char *url = fresh_tables(c, "once2_");
    rowlock_db *elsewhere = must_open(url);
    rowlock_once *once = claim(a.site.db, "tables", NULL, ROWLOCK_OK, "claimed");
    is_result(elsewhere, rowlock_once_complete(once, elsewhere, NULL, 0), ROWLOCK_ESCHEMA,
              "not to be completed in other tables");
    claim(a.other, "tables", NULL, ROWLOCK_BUSY, "it is still in progress");
    rowlock_once_close(claim(elsewhere, "tables", NULL, ROWLOCK_OK, "there the key is another"));
    rowlock_once_close(once);
    rowlock_db_close(elsewhere);
    drop_tables(c, "once2_", url);
    ask_close(&a);
}

static void transactions(const struct contract *c)
{
    struct site s = site_open(c);
    site_table(&s, "once_work", "id INTEGER PRIMARY KEY");
    site_run(&s, "INSERT INTO once_work VALUES (1)");
    site_close(&s);
    completes_in_a_transaction(c);
    completes_too_late(c);
    claims_in_a_transaction(c);
    waits_for_a_transaction(c, "COMMIT", ROWLOCK_DONE);
    waits_for_a_transaction(c, "ROLLBACK", ROWLOCK_OK);
    if (c->has_server) { /* elsewhere a reader keeps others from committing */
        claims_after_a_snapshot(c);
        completes_after_a_snapshot(c);
    }
    completes_what_is_gone(c);
    outlives_its_handle(c);
    completes_in_a_retry(c);
    other_tables(c);
    db_exec(c->raw, c->url, "DROP TABLE once_work");
}

/* ---- sweeping */

static void make_older(const struct asking *a, const char *key, long long seconds)
{
    site_run(&a->site,
             "UPDATE rowlock_once SET changed = changed - %lld, expires = expires - %lld "
             "WHERE name = '%s'",
             seconds * 1000000, seconds * 1000000, key);
}

static void swept(const struct asking *a, int64_t older_ms, int32_t batch, int64_t want,
                  const char *what)
{
    int64_t removed = -1;
    is_result(a->site.db, rowlock_once_sweep(a->site.db, older_ms, batch, &removed), ROWLOCK_OK,
              "%s", what);
    tap_is_int(removed, want, "as many were removed");
}

static void sweeps(const struct contract *c)
{
    struct asking a = ask_open(c);
    int64_t day_ms = INT64_C(1000) * DAY_S, removed = -1;
    static const char *const names[] = {"done 0", "done 1", "done 2", "done 3", "done 4"};
    for (int i = 0; i < COUNT(names); i++) {
        rowlock_once *once = claim(a.site.db, names[i], NULL, ROWLOCK_OK, "a key");
        is_result(a.site.db, rowlock_once_complete(once, a.site.db, NULL, 0), ROWLOCK_OK, "done");
        rowlock_once_close(once);
        make_older(&a, names[i], i * DAY_S);
    }
    rowlock_once_options days = once_about(NULL, 10 * day_ms);
    rowlock_once *slow = claim_as(a.site.db, "slow", &days, ROWLOCK_OK, "one that takes days");
    make_older(&a, "slow", 9 * DAY_S);
    swept(&a, 5 * day_ms, 0, 0, "nothing is so old");
    swept(&a, 2 * day_ms, 1, 3, "what was done longer ago goes, one in a transaction");
    site_finds(&a.site, "3", "what is younger, or in progress, stays",
               "SELECT count(*) FROM rowlock_once WHERE name IN ('done 0', 'done 1', 'slow')");
    rowlock_once_close(claim(a.other, "done 1", NULL, ROWLOCK_DONE, "and is known"));
    rowlock_once_close(claim(a.other, "done 3", NULL, ROWLOCK_OK, "what is gone is new"));
    make_older(&a, "slow", 2 * DAY_S);
    swept(&a, 2 * day_ms, 0, 1, "when its time is over, what was never done goes as well");
    is_result(a.site.db, rowlock_once_complete(slow, a.site.db, NULL, 0), ROWLOCK_LOST,
              "whoever comes even later has lost it, though to nobody");
    rowlock_once_close(slow);
    swept(&a, 0, 2, 2, "all that is done");
    is_result(a.site.db, rowlock_once_sweep(a.site.db, -1, 0, &removed), ROWLOCK_EINVAL,
              "an age below nothing");
    is_result(a.site.db, rowlock_once_sweep(a.site.db, 0, 10001, &removed), ROWLOCK_EINVAL,
              "batches that are too big");
    is_result(a.site.db, rowlock_once_sweep(a.site.db, 0, 0, NULL), ROWLOCK_OK, "nobody counts");
    site_run(&a.site, "DELETE FROM rowlock_once");
    ask_close(&a);
}

/* ---- listed and forgotten */

struct listed {
    int count, stop_at;
    rowlock_once_record last;
    bool in_order;
};

static int note_record(void *context, const rowlock_once_record *record)
{
    struct listed *l = context;
    l->in_order = l->in_order && strcmp(l->last.key, record->key) < 0;
    l->last = *record;
    return ++l->count == l->stop_at;
}

static struct listed list(rowlock_db *db, const char *prefix, int stop_at, int want)
{
    struct listed l = {.stop_at = stop_at, .in_order = true};
    is_result(db, rowlock_once_list(db, prefix, note_record, &l), ROWLOCK_OK, "a list of keys");
    tap_is_int(l.count, want, "has those that begin with '%s'", prefix ? prefix : "");
    tap_ok(l.in_order, "in the order of their bytes");
    return l;
}

static void lists(const struct contract *c)
{
    struct asking a = ask_open(c);
    rowlock_once *once[3];
    rowlock_once_options o = once_about("a sum", 3600000);
    o.token = 17;
    list(a.other, NULL, 0, 0);
    once[0] = claim_as(a.other, "a", &o, ROWLOCK_OK, "a key in progress");
    once[1] = claim(a.other, "A\xC3\xA4 ", NULL, ROWLOCK_OK, "another");
    once[2] =
        claim(a.other, "a/%_'\\", NULL, ROWLOCK_OK, "one with characters that mean something");
    is_result(a.other, rowlock_once_complete(once[2], a.other, "x", 1), ROWLOCK_OK, "it is done");
    struct listed l = list(a.other, "a/", 0, 1);
    tap_ok(l.last.done == 1 && l.last.remaining_ms == 0, "which the list says");
    tap_is_str(l.last.key, "a/%_'\\", "of that key");
    tap_ok(l.last.age_ms >= 0 && l.last.age_ms < 600000, "and when: %d ms ago", (int)l.last.age_ms);
    l = list(a.other, "a", 1, 1);
    tap_ok(l.last.done == 0 && l.last.token == 17 && l.last.remaining_ms > 3000000,
           "a key in progress has its token and its time");
    tap_is_str(l.last.fingerprint, "a sum", "and its fingerprint");
    list(a.other, "a", 0, 2);
    list(a.other, "A", 0, 1);
    list(a.other, "%", 0, 0);
    list(a.other, NULL, 0, 3);
    for (int i = 0; i < 3; i++)
        rowlock_once_close(once[i]);
    for (int i = 0; i < 1200; i++)
        site_run(&a.site,
                 "INSERT INTO rowlock_once (name, fingerprint, attempt, token, expires, done, "
                 "changed) VALUES ('many %d', '', 1, 0, 0, %s, 0)",
                 i, strcmp(c->raw->name, "postgres") == 0 ? "true" : "1");
    list(a.other, "many ", 0, 1200);
    list(a.other, "many ", 700, 700);
    ask_close(&a);
}

static void forgets(const struct contract *c)
{
    struct asking a = ask_open(c);
    rowlock_once *once = claim(a.other, "key", "f", ROWLOCK_OK, "a key");
    is_result(a.other, rowlock_once_complete(once, a.other, "x", 1), ROWLOCK_OK, "it is done");
    rowlock_once_close(once);
    is_result(a.other, rowlock_once_forget(a.other, "ke"), ROWLOCK_NONE, "another is not known");
    is_result(a.other, rowlock_once_forget(a.other, "key"), ROWLOCK_OK, "it is forgotten");
    is_result(a.other, rowlock_once_forget(a.other, "key"), ROWLOCK_NONE, "once");
    once = claim(a.other, "key", "g", ROWLOCK_OK, "it can be claimed for something else");
    is_result(a.other, rowlock_once_forget(a.other, "key"), ROWLOCK_OK, "and forgotten meanwhile");
    is_result(a.other, rowlock_once_complete(once, a.other, "x", 1), ROWLOCK_LOST,
              "which completing it finds");
    rowlock_once_close(once);
    is_result(a.other, rowlock_once_forget(a.other, ""), ROWLOCK_EINVAL,
              "a key has a byte at least");
    ask_close(&a);
}

void contract_once(const struct contract *c)
{
    completes(c);
    results_of_any_length(c);
    abandons(c);
    keys(c);
    contests(c);
    time_is_over(c);
    late_but_alone(c);
    takes_over(c);
    transactions(c);
    sweeps(c);
    lists(c);
    forgets(c);
}
