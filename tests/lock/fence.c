/* SPDX-License-Identifier: MIT
 *
 * Fences: a resource refuses a token older than the newest it has seen. And rowlock_raise_tokens(),
 * after which no older token is good. Part of the subject "transaction". */
#include "scene.h"

static void tokens_are_fenced(const struct contract *c)
{
    OWNED(db) rowlock_db *db = must_open(c->url);
    is_result(db, rowlock_fence(db, "tx file", 5), ROWLOCK_OK, "a resource sees token 5");
    is_result(db, rowlock_fence(db, "tx file", 5), ROWLOCK_OK, "again");
    is_result(db, rowlock_fence(db, "tx file", 6), ROWLOCK_OK, "then 6");
    is_result(db, rowlock_fence(db, "tx file", 5), ROWLOCK_STALE, "and refuses 5");
    is_result(db, rowlock_fence(db, "tx file", 6), ROWLOCK_OK, "but not 6");
    is_result(db, rowlock_fence(db, "tx File", 5), ROWLOCK_OK, "another has not seen any");
    is_result(db, rowlock_fence(db, "tx file ", 5), ROWLOCK_OK, "nor has that");
    is_result(db, rowlock_fence(db, "tx file", INT64_MAX), ROWLOCK_OK, "the highest");
    is_result(db, rowlock_fence(db, "tx file", INT64_MAX - 1), ROWLOCK_STALE, "leaves no other");
}

static void bad_fences(const struct contract *c)
{
    char name[257];
    memset(name, 'n', 256);
    name[256] = '\0';
    OWNED(db) rowlock_db *db = must_open(c->url);
    is_result(db, rowlock_fence(db, "", 1), ROWLOCK_EINVAL, "a resource has a name");
    is_result(db, rowlock_fence(db, NULL, 1), ROWLOCK_EINVAL, "not NULL");
    is_result(db, rowlock_fence(db, "\xff", 1), ROWLOCK_EINVAL, "of UTF-8");
    is_result(db, rowlock_fence(db, name, 1), ROWLOCK_EINVAL, "not too long");
    is_result(db, rowlock_fence(db, name + 1, 1), ROWLOCK_OK, "this is not");
    is_result(db, rowlock_fence(db, "tx bad", 0), ROWLOCK_EINVAL, "0 is no token");
    is_result(db, rowlock_fence(db, "tx bad", -1), ROWLOCK_EINVAL, "nor is -1");
    exec_on(c, "DELETE FROM rowlock_fences WHERE resource = '%s'", name + 1);
}

void transaction_fences(const struct contract *c, const char *isolation)
{
    OWNED(scene) struct scene s = scene_open(c, isolation, "tx fence", true);
    exec_on(c, "DELETE FROM rowlock_fences WHERE resource = 'tx fence'");
    scene_begin(&s);
    is_result(s.tx, rowlock_fence(s.tx, "tx fence", 7), ROWLOCK_OK, "%s: 7 is seen", isolation);
    scene_run(&s, "ROLLBACK");
    is_result(s.tx, rowlock_fence(s.tx, "tx fence", 6), ROWLOCK_OK, "and forgotten");
    scene_begin(&s);
    is_result(s.tx, rowlock_fence(s.tx, "tx fence", 7), ROWLOCK_OK, "7 is seen");
    is_result(s.tx, rowlock_fence(s.tx, "tx fence", 6), ROWLOCK_STALE, "6 is stale");
    scene_goes_on(&s, s.tx, "STALE");
    is_result(s.tx, rowlock_fence(s.tx, "tx fence", 6), ROWLOCK_STALE, "and remembered");
    is_result(s.rival, rowlock_fence(s.rival, "tx fence", 7), ROWLOCK_OK, "by all");
}

struct fencing {
    rowlock_db *db;
    int64_t token;
};

static int fence_in_thread(void *argument)
{
    struct fencing *f = argument;
    return rowlock_fence(f->db, "tx order", f->token);
}

/* The second to fence writes second, or not at all. */
static void fences_wait(const struct contract *c, int64_t token, int want)
{
    OWNED(scene) struct scene s = scene_open(c, scene_isolations(c)[0], "tx fence", true);
    OWNED(db) rowlock_db *db = must_open(c->url);
    struct fencing fencing = {.db = db, .token = token};
    exec_on(c, "DELETE FROM rowlock_fences WHERE resource = 'tx order'");
    scene_begin(&s);
    is_result(s.tx, rowlock_fence(s.tx, "tx order", 10), ROWLOCK_OK, "10 is seen");
    struct helper *helper = helper_start(fence_in_thread, &fencing);
    tap_ok(somebody_waits(c) && !helper_ended(helper), "%lld has to wait", (long long)token);
    scene_run(&s, "COMMIT");
    is_result(db, helper_join(helper), want, "and is judged after the commit");
}

/* What OPERATIONS.md tells those whose table has a column for it. */
static void fence_column(const struct contract *c)
{
    static const char update[] =
        "UPDATE tx_data SET v = '%s', fence = %lld WHERE id = 1 AND fence <= %lld";
    char value[20] = "";
    OWNED(scene) struct scene s = scene_open(c, scene_isolations(c)[0], "tx column", false);
    scene_run(&s, "INSERT INTO tx_data VALUES (1, 'empty', 0)");
    long long token = scene_held_too_long(&s);
    raw_run(c->raw, s.session, update, "first", token, token);
    scene_taken_over(&s, token);
    long long newer = rowlock_lock_token(s.wanted);
    raw_run(c->raw, s.session, update, "second", newer, newer);
    raw_run(c->raw, s.session, update, "stale", token, token);
    c->raw->ask(s.session, "SELECT v FROM tx_data WHERE id = 1", value, sizeof value);
    tap_is_str(value, "second", "a column for the token refuses the stale writer");
}

/* ---- raising tokens */

static const char RAISED[] = "txraise_";

struct raiser {
    const char *url;
    int64_t highest;
};

static void raised_tokens(const char *url)
{
    int64_t highest = 0, again = 0;
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(lock) rowlock_lock *one = must_lock(db, "one"), *two = must_lock(db, "two");
    OWNED(lock) rowlock_lock *fresh = must_lock(db, "fresh");
    for (int i = 0; i < 3; i++) {
        is_result(db, try_lock(one, TTL_MS), ROWLOCK_OK, "a grant");
        is_result(db, rowlock_release(one), ROWLOCK_OK, "and its release");
    }
    is_result(db, try_lock(two, TTL_MS), ROWLOCK_OK, "and one that stands");
    is_result(db, rowlock_raise_tokens(db, 0, &highest), ROWLOCK_EINVAL, "not by 0");
    is_result(db, rowlock_raise_tokens(db, -1, &highest), ROWLOCK_EINVAL, "not down");
    is_result(db, rowlock_raise_tokens(db, INT64_C(1000000000000001), &highest), ROWLOCK_EINVAL,
              "not out of sight");
    tap_is_int(highest, 0, "nothing was raised");
    is_result(db, rowlock_raise_tokens(db, 1000, &highest), ROWLOCK_OK, "raised by 1000");
    tap_is_int(highest, 1003, "from the highest that was granted");
    is_result(db, rowlock_raise_tokens(db, 1, NULL), ROWLOCK_OK, "raised once more");
    is_result(db, rowlock_raise_tokens(db, 1, &again), ROWLOCK_OK, "and again");
    tap_is_int(again, 1005, "by 1 each");
    is_result(db, try_lock(one, TTL_MS), ROWLOCK_OK, "a known name");
    tap_ok(rowlock_lock_token(one) > again, "is granted with a token above that");
    is_result(db, try_lock(fresh, TTL_MS), ROWLOCK_OK, "a new name");
    tap_ok(rowlock_lock_token(fresh) > again, "likewise");
    is_result(db, rowlock_renew(two, 0), ROWLOCK_OK, "the grant that stands goes on");
    is_result(db, rowlock_release(two), ROWLOCK_OK, "and is released");
}

/* After the highest number there is, a grant is refused rather than given a token that is none. */
static void no_tokens_left(const struct contract *c, const char *url)
{
    int64_t highest = 0;
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(lock)
    rowlock_lock *known = must_lock(db, "last known"), *fresh = must_lock(db, "last new");
    is_result(db, try_lock(known, TTL_MS), ROWLOCK_OK, "a name gets a counter");
    is_result(db, rowlock_release(known), ROWLOCK_OK, "and is free");
    exec_on(c, "UPDATE %stokens SET token = 9223372036854775806 WHERE name = 'last known'", RAISED);
    is_result(db, try_lock(known, TTL_MS), ROWLOCK_OK, "the last token of all is granted");
    tap_ok(rowlock_lock_token(known) == INT64_MAX, "as a whole number");
    is_result(db, rowlock_release(known), ROWLOCK_OK, "and released");
    int result = try_lock(known, TTL_MS);
    tap_is_int(result, ROWLOCK_ESERVER, "after it there is none: %s", why(db));
    result = rowlock_raise_tokens(db, 1, &highest);
    tap_ok(result < 0 && highest == 0, "nor can they be raised: %s", why(db));
    exec_on(c, "UPDATE %smeta SET token_floor = 9223372036854775807", RAISED);
    result = try_lock(fresh, TTL_MS);
    tap_ok(result < 0, "nor has a new name one: %s", why(db));
    tap_is_int(int_on(c, "SELECT count(*) FROM %slocks WHERE name LIKE 'last%%'", RAISED), 0,
               "no grant is left behind");
}

static void raised_above_guards(const struct contract *c, const char *url)
{
    OWNED(scene)
    struct scene s = scene_open(c, scene_isolations(c)[0], "tx raise", false);
    OWNED(db) rowlock_db *tx = must_adopt(c->raw, s.session, RAISED), *db = must_open(url);
    rowlock_db *hasty = open_impatient(c, url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "guarded");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "a grant stands");
    scene_begin(&s);
    is_result(tx, rowlock_guard(lock, tx), ROWLOCK_OK, "and guards a transaction");
    int64_t start = clock_ms();
    int result = rowlock_raise_tokens(hasty, 1, NULL);
    tap_ok(result < 0 && clock_ms() - start >= patience_ms(c) / 2, "which raising waits for (%s)",
           rowlock_result_name(result));
    scene_run(&s, "COMMIT");
    rowlock_db_close(hasty);
    is_result(db, rowlock_raise_tokens(db, 1, NULL), ROWLOCK_OK, "then they are raised");
    is_result(db, rowlock_verify(lock), ROWLOCK_OK, "the grant goes on");
    scene_begin(&s);
    is_result(tx, rowlock_guard(lock, tx), ROWLOCK_LOST, "but is fenced out");
    scene_run(&s, "ROLLBACK");
}

static int raise_in_thread(void *argument)
{
    struct raiser *r = argument;
    OWNED(db) rowlock_db *db = must_open(r->url);
    int result = rowlock_raise_tokens(db, 1000, &r->highest);
    if (result != ROWLOCK_OK)
        tap_note("%s", why(db));
    return result;
}

/* The first grant of a name is in flight: no other session sees its counter yet. */
static void raised_above_new_names(const struct contract *c, const char *url)
{
    struct raiser raiser = {.url = url};
    OWNED(scene)
    struct scene s = scene_open(c, scene_isolations(c)[0], "tx raise", false);
    OWNED(db) rowlock_db *tx = must_adopt(c->raw, s.session, RAISED), *db = must_open(url);
    OWNED(lock) rowlock_lock *born = must_lock(tx, "newborn"), *later = must_lock(db, "newborn");
    scene_begin(&s);
    is_result(tx, rowlock_tx_acquire(born, tx, NULL), ROWLOCK_OK, "a name's first grant");
    struct helper *helper = helper_start(raise_in_thread, &raiser);
    tap_ok(somebody_waits(c), "tokens are being raised");
    scene_run(&s, "COMMIT");
    tap_is_int(helper_join(helper), ROWLOCK_OK, "tokens are raised meanwhile");
    is_result(tx, rowlock_release(born), ROWLOCK_OK, "the grant was committed");
    is_result(db, try_lock(later, TTL_MS), ROWLOCK_OK, "and the name is granted again");
    tap_ok(rowlock_lock_token(later) > raiser.highest, "with a token above (%lld > %lld)",
           (long long)rowlock_lock_token(later), (long long)raiser.highest);
}

/* Two installations in one database. */
static void other_tables(const struct contract *c)
{
    OWNED(scene)
    struct scene s = scene_open(c, scene_isolations(c)[0], "tx tables", false);
    OWNED(db) rowlock_db *tx = must_adopt(c->raw, s.session, RAISED);
    scene_hold(&s);
    scene_begin(&s);
    is_result(tx, rowlock_guard(s.lock, tx), ROWLOCK_ESCHEMA, "a lock of another installation");
    scene_goes_on(&s, tx, "ESCHEMA");
}

static void raising(const struct contract *c)
{
    OWNED(text) char *url = fresh_tables(c, RAISED);
    raised_tokens(url);
    raised_above_guards(c, url);
    if (c->has_server)
        raised_above_new_names(c, url);
    other_tables(c);
    no_tokens_left(c, url);
}

void transaction_fences_once(const struct contract *c)
{
    exec_on(c, "DELETE FROM rowlock_fences WHERE resource LIKE 'tx%%'");
    tokens_are_fenced(c);
    bad_fences(c);
    fences_wait(c, 9, ROWLOCK_STALE);
    fences_wait(c, 11, ROWLOCK_OK);
    fence_column(c);
    raising(c);
}
