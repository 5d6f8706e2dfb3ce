/* SPDX-License-Identifier: MIT
 *
 * What gets lost of the calls that are about names, resources and tables; see loss.h. */
#include "loss.h"

static void lose_list(struct loss *l)
{
    int listed = 0;
    OWNED(db) rowlock_db *db = loss_open(l);
    OWNED(lock) rowlock_lock *lock = loss_hold(l, db);
    int said = LOSING(l, rowlock_list(db, l->name, count_grant, &listed));
    loss_read_said(l, db, said);
    loss_is(l, listed, said == ROWLOCK_OK, "each row is told once");
    loss_result(l, db, rowlock_release(lock), ROWLOCK_OK, "the lock is still held");
}

static void lose_last_grant(struct loss *l)
{
    int64_t token = -1, when = -1;
    OWNED(db) rowlock_db *db = loss_open(l);
    OWNED(lock) rowlock_lock *lock = loss_hold(l, db);
    int said = LOSING(l, rowlock_last_grant(db, l->name, &token, &when));
    loss_read_said(l, db, said);
    loss_is(l, token, said == ROWLOCK_OK ? rowlock_lock_token(lock) : -1, "the token is told");
    loss_result(l, db, rowlock_release(lock), ROWLOCK_OK, "the lock is still held");
}

static void check_broken(struct loss *l, int said)
{
    long long there = loss_rows(l);
    loss_ok(l,
            said == ROWLOCK_OK || said == ROWLOCK_EUNCERTAIN || (l->fired && said == ROWLOCK_ECONN),
            "breaking gives %s", rowlock_result_name(said));
    if (!l->fired)
        loss_is(l, said, ROWLOCK_OK, "it is done");
    if (said == ROWLOCK_OK || l->mode != NOT_RECONNECTING)
        loss_is(l, there, 0, "the grant is gone");
    if (said == ROWLOCK_ECONN) {
        loss_pass(l);
        loss_is(l, loss_rows(l), 1, "what is called undone was not done, nor is it later");
    }
}

static void lose_break(struct loss *l)
{
    OWNED(db) rowlock_db *db = loss_open(l);
    OWNED(lock) rowlock_lock *victim = loss_hold(l, l->others);
    long long token = rowlock_lock_token(victim);
    int said = LOSING(l, rowlock_break(db, l->name, token, NULL));
    check_broken(l, said);
    loss_pass_before(l);
    if (loss_rows(l) == 1) {
        int again = rowlock_break(db, l->name, token, NULL);
        /* What was late may have come between the look and this call. */
        if (again == ROWLOCK_NONE && loss_is_late(l))
            again = ROWLOCK_OK;
        loss_result(l, db, again, ROWLOCK_OK, "called again it is broken");
    }
    loss_is(l, rowlock_renew(victim, 0), ROWLOCK_LOST, "the victim finds out");
    loss_is(l, loss_token(l), token + 1, "the token is bumped once");
    rowlock_lock_close(victim);
    victim = loss_hold(l, l->others);
    loss_pass(l);
    loss_granted(l, victim, token + 2);
    loss_is(l, rowlock_release(victim), ROWLOCK_OK, "the next holder is not touched");
}

static void make_expired(struct loss *l, int how_many)
{
    for (int i = 0; i < how_many; i++) {
        char name[80];
        snprintf(name, sizeof name, "%s over %d", l->name, i);
        OWNED(lock) rowlock_lock *lock = must_lock(l->others, name);
        if (try_lock(lock, LONG_TTL_MS) != ROWLOCK_OK)
            loss_ok(l, false, "a lock is granted at first: %s", why(l->others));
        rowlock_forget(lock);
    }
    loss_run(l, "UPDATE %slocks SET expires = 1 WHERE name LIKE '%s over %%'", l->prefix, l->name);
}

static long long expired(const struct loss *l)
{
    return loss_int(l, "SELECT count(*) FROM %slocks WHERE expires = 1", l->prefix);
}

/* Until the server has noticed. */
static void sweep_again(struct loss *l, rowlock_db *db, const rowlock_sweep_options *options)
{
    int64_t end_ms = clock_ms() + 30000;
    int said = ROWLOCK_OK;
    while (said == ROWLOCK_OK && expired(l) > 0 && clock_ms() < end_ms) {
        said = rowlock_sweep(db, options, NULL);
        sleep_ms(10);
    }
    loss_result(l, db, said, ROWLOCK_OK, "it can be repeated");
}

static void lose_sweep(struct loss *l)
{
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    rowlock_sweep_options options = *OPTIONS(sweep, .batch = 2);
    options.older_than_ms = 86400000; /* not what was explained */
    options.idle_ms = 86400000;
    make_expired(l, 3);
    OWNED(db) rowlock_db *db = loss_open(l);
    OWNED(lock) rowlock_lock *live = loss_hold(l, l->others);
    int said = LOSING(l, rowlock_sweep(db, &options, &report));
    loss_said(l, db, said, ROWLOCK_OK);
    loss_ok(l, report.locks <= 3 - expired(l), "nothing is reported that did not happen");
    /* MySQL's batch takes several requests, and passes over what a session that is not gone has locked. */
    loss_ok(l, said != ROWLOCK_OK || expired(l) == 0 || strcmp(l->raw->name, "mysql") == 0,
            "what is called swept is gone");
    loss_pass(l);
    faultproxy_cut(l->proxy);
    sweep_again(l, l->others, &options);
    loss_is(l, expired(l), 0, "what was over is gone");
    loss_pass(l);
    loss_is(l, rowlock_release(live), ROWLOCK_OK, "what was not is still there");
}

/* The counters of idle names go into the floor, and no token is repeated. */
static void lose_fold(struct loss *l)
{
    OWNED(db) rowlock_db *db = loss_open(l);
    OWNED(lock) rowlock_lock *lock = loss_hold(l, l->others);
    long long token = rowlock_lock_token(lock);
    loss_is(l, rowlock_release(lock), ROWLOCK_OK, "a name is used, long ago");
    loss_run(l, "UPDATE %stokens SET granted = 1 WHERE name = '%s'", l->prefix, l->name);
    int said = LOSING(
        l, rowlock_sweep(db, OPTIONS(sweep, .older_than_ms = 86400000, .idle_ms = 86400000), NULL));
    loss_said(l, db, said, ROWLOCK_OK);
    loss_ok(l, said != ROWLOCK_OK || loss_token(l) == 0, "what is called done is done");
    loss_pass_before(l);
    loss_is(l, try_lock(lock, LONG_TTL_MS), ROWLOCK_OK, "the name is used again");
    loss_ok(l, rowlock_lock_token(lock) > token, "with a higher token");
    loss_pass(l);
    loss_granted(l, lock, rowlock_lock_token(lock));
    loss_is(l, rowlock_release(lock), ROWLOCK_OK, "and released");
}

static void lose_fence(struct loss *l)
{
    OWNED(db) rowlock_db *db = loss_open(l);
    loss_result(l, l->others, rowlock_fence(l->others, l->name, 3), ROWLOCK_OK, "an older token");
    int said = LOSING(l, rowlock_fence(db, l->name, 5));
    loss_said(l, db, said, ROWLOCK_OK);
    loss_ok(l, said != ROWLOCK_OK || loss_seen(l) == 5, "what is called seen was seen");
    if (said == ROWLOCK_ECONN) {
        loss_pass(l);
        loss_is(l, loss_seen(l), 3, "what is called undone was not done, nor is it later");
    }
    loss_pass_before(l);
    if (said != ROWLOCK_OK)
        loss_result(l, db, rowlock_fence(db, l->name, 5), ROWLOCK_OK, "it can be repeated");
    loss_is(l, loss_seen(l), 5, "the token was seen");
    loss_result(l, l->others, rowlock_fence(l->others, l->name, 7), ROWLOCK_OK, "then a newer one");
    loss_pass(l);
    loss_is(l, loss_seen(l), 7, "and the newest stays");
    loss_is(l, rowlock_fence(db, l->name, 5), ROWLOCK_STALE, "ours is stale now");
}

static void lose_raise(struct loss *l)
{
    int64_t highest = -1;
    OWNED(db) rowlock_db *db = loss_open(l);
    OWNED(lock) rowlock_lock *lock = loss_hold(l, l->others);
    long long before = loss_token(l) > loss_floor(l) ? loss_token(l) : loss_floor(l);
    int said = LOSING(l, rowlock_raise_tokens(db, 1000, &highest));
    loss_said(l, db, said, ROWLOCK_OK);
    if (said == ROWLOCK_OK)
        loss_ok(l, highest >= before + 1000 && highest == loss_floor(l) && highest == loss_token(l),
                "the floor and the counter are what is told");
    if (said == ROWLOCK_ECONN) {
        loss_pass(l);
        loss_ok(l, loss_floor(l) <= before, "what is called undone was not done, nor is it later");
    }
    loss_pass_before(l);
    if (said != ROWLOCK_OK)
        loss_result(l, db, rowlock_raise_tokens(db, 1000, &highest), ROWLOCK_OK, "it is repeated");
    loss_pass(l);
    loss_ok(l, loss_floor(l) >= highest && loss_floor(l) == loss_token(l),
            "once, twice: the counter goes with the floor");
    loss_is(l, rowlock_verify(lock), ROWLOCK_OK, "the grant goes on");
    loss_is(l, rowlock_release(lock), ROWLOCK_OK, "and is released");
    loss_rival_gets(l, highest);
}

/* One installs at a time in a PostgreSQL database, and other workers do, too. */
static bool lost_race(const rowlock_db *db, int said)
{
    return said < 0 && strcmp(error_of(db).sqlstate, "55P03") == 0;
}

static void lose_install(struct loss *l)
{
    struct loss other = *l;
    snprintf(other.prefix, sizeof other.prefix, "%.10sx_", l->prefix);
    OWNED(db) rowlock_db *db = loss_open_at(l, l->through, other.prefix);
    int said;
    do
        said = LOSING(l, rowlock_install(db));
    while (l->nth == 0 && lost_race(db, said));
    if (!lost_race(db, said))
        loss_said(l, db, said, ROWLOCK_OK);
    loss_pass_before(l);
    for (int i = 0; i < 20 && said != ROWLOCK_OK; i++)
        said = rowlock_install(db);
    loss_result(l, db, said, ROWLOCK_OK, "the tables are there");
    loss_pass(l);
    OWNED(lock) rowlock_lock *lock = loss_hold(l, db);
    loss_result(l, db, rowlock_release(lock), ROWLOCK_OK, "and work");
    loss_drop_tables(&other);
}

const struct operation lost_admin_operations[] = {
    {"list", lose_list, RECONNECTS, 0},
    {"last grant", lose_last_grant, RECONNECTS, 0},
    {"break", lose_break, RECONNECTS | POOLS, 0},
    {"sweep", lose_sweep, RECONNECTS | MANY, 0},
    {"fold", lose_fold, RECONNECTS | POOLS, 0},
    {"fence", lose_fence, RECONNECTS | POOLS, 0},
    {"raise", lose_raise, RECONNECTS | POOLS, 0},
    {"install", lose_install, RECONNECTS | MANY | VARIES, 0},
    {NULL, NULL, 0, 0},
};
