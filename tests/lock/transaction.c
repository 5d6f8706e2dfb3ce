/* SPDX-License-Identifier: MIT
 *
 * What becomes a part of the application's own transaction: here grants and releases that commit with its
 * work; guards and fences are in files of their own. Adopted connections that are used between
 * transactions are in adopt.c. */
#include "scene.h"

/* ---- acquire */

static int tx_try(const struct scene *s)
{
    return rowlock_tx_acquire(s->lock, s->tx, NULL);
}

static void acquire_commits(const struct contract *c, const char *isolation, bool shared)
{
    int64_t last = 0;
    OWNED(scene) struct scene s = scene_open(c, isolation, "tx acquire", shared);
    exec_on(c, "DELETE FROM rowlock_tokens WHERE name = '%s'", s.name);
    scene_begin(&s);
    scene_work(&s);
    is_result(s.tx, tx_try(&s), ROWLOCK_OK, "%s: a new name in a transaction", isolation);
    int64_t token = rowlock_lock_token(s.lock);
    tap_ok(token > 0 && rowlock_lock_remaining_ms(s.lock) > TTL_MS / 4, "with a token and a lease");
    tap_is_int(rows_of(c, s.name), 0, "others do not see it yet");
    scene_rival_tries(&s, ROWLOCK_BUSY, "but it is in flight to them");
    scene_guard(&s, ROWLOCK_OK, "it can be guarded");
    is_result(s.tx, tx_try(&s), ROWLOCK_EMISUSE, "but not acquired twice");
    scene_work_stands(&s, 0, "nothing was committed");
    scene_run(&s, "COMMIT");
    scene_work_stands(&s, 1, "the work is there");
    tap_is_int(rows_of(c, s.name), 1, "and the lock, by the same commit");
    is_result(s.rival, rowlock_last_grant(s.rival, s.name, &last, NULL), ROWLOCK_OK, "a grant");
    tap_is_int(last, token, "with that token");
    scene_rival_tries(&s, ROWLOCK_BUSY, "the rival meets");
    tap_is_int(holder_of(s.wanted).token, token, "a holder with that token");
    is_result(s.own, rowlock_renew(s.lock, 0), ROWLOCK_OK, "the holder renews");
    is_result(s.own, rowlock_release(s.lock), ROWLOCK_OK, "and releases");
    scene_taken_over(&s, token);
}

static void acquire_rolled_back(const struct contract *c, const char *isolation, bool shared)
{
    OWNED(scene) struct scene s = scene_open(c, isolation, "tx undone", shared);
    int64_t before = scene_hold(&s);
    is_result(s.own, rowlock_release(s.lock), ROWLOCK_OK, "released again");
    scene_begin(&s);
    scene_work(&s);
    is_result(s.tx, tx_try(&s), ROWLOCK_OK, "%s: acquired in a transaction", isolation);
    int64_t undone = rowlock_lock_token(s.lock);
    tap_ok(undone > before, "with a higher token");
    scene_rival_tries(&s, ROWLOCK_BUSY, "which others do not get before it ends");
    scene_run(&s, "ROLLBACK");
    scene_work_stands(&s, 0, "rolled back: the work is gone");
    tap_is_int(rows_of(c, s.name), 0, "and the grant");
    scene_rival_tries(&s, ROWLOCK_OK, "the lock is free");
    tap_is_int(rowlock_lock_token(s.wanted), undone, "and its token is given to the next");
    scene_begin(&s);
    scene_guard(&s, ROWLOCK_LOST, "which does not deceive the guard of a handle that was not told");
    scene_run(&s, "ROLLBACK");
    rowlock_forget(s.lock);
    tap_is_int(rowlock_lock_token(s.lock), 0, "the handle is told");
    tap_ok(rowlock_lock_token(s.wanted) >= undone && undone > before,
           "no token is repeated that was committed");
    is_result(s.rival, rowlock_release(s.wanted), ROWLOCK_OK, "released");
    scene_hold(&s);
    tap_ok(rowlock_lock_token(s.lock) > undone, "the handle can have it again");
}

static void acquire_expired(const struct contract *c, const char *isolation, bool shared)
{
    OWNED(scene) struct scene s = scene_open(c, isolation, "tx take over", shared);
    is_result(s.rival, try_lock(s.wanted, TTL_MS), ROWLOCK_OK, "another's lock");
    int64_t token = rowlock_lock_token(s.wanted);
    end_lease(c, s.wanted);
    scene_begin(&s);
    is_result(s.tx, tx_try(&s), ROWLOCK_OK, "%s: taken over in a transaction", isolation);
    tap_ok(rowlock_lock_token(s.lock) > token, "with a higher token");
    scene_run(&s, "COMMIT");
    is_result(s.rival, rowlock_release(s.wanted), ROWLOCK_LOST, "the old holder has lost it");
    is_result(s.own, rowlock_release(s.lock), ROWLOCK_OK, "the new one has it");
}

static void acquire_busy(const struct contract *c, const char *isolation, bool shared)
{
    OWNED(scene) struct scene s = scene_open(c, isolation, "tx busy", shared);
    is_result(s.rival, try_lock(s.wanted, TTL_MS), ROWLOCK_OK, "another holds it");
    scene_begin(&s);
    int64_t start = clock_ms();
    is_result(s.tx, tx_try(&s), ROWLOCK_BUSY, "%s: a busy try in a transaction", isolation);
    tap_ok(clock_ms() - start < slow_ms(AT_ONCE_MS), "is told at once");
    tap_is_int(holder_of(s.lock).token, rowlock_lock_token(s.wanted), "with its holder");
    /* At SERIALIZABLE MySQL has the row share-locked: the header says so. */
    if (!scene_is_immediate(&s) && !(is_mysql(c) && strcmp(isolation, "SERIALIZABLE") == 0)) {
        is_result(s.rival, rowlock_renew(s.wanted, 0), ROWLOCK_OK, "the holder can renew");
        is_result(s.rival, rowlock_release(s.wanted), ROWLOCK_OK, "and release");
        scene_run(&s, "ROLLBACK");
        scene_begin(&s);
    }
    scene_goes_on(&s, s.tx, "BUSY");
}

static void acquire_refused(const struct contract *c)
{
    OWNED(scene)
    struct scene s = scene_open(c, scene_isolations(c)[0], "tx refused", false);
    is_result(s.tx, tx_try(&s), ROWLOCK_EMISUSE, "no transaction, no grant in it");
    is_result(s.own, rowlock_tx_acquire(s.lock, s.own, NULL), ROWLOCK_EMISUSE,
              "nor on a connection of ours");
    is_result(s.tx, rowlock_tx_release(s.lock, s.tx), ROWLOCK_EMISUSE, "nor a release");
    scene_begin(&s);
    rowlock_acquire_options options = *OPTIONS(acquire, .wait_ms = 1);
    is_result(s.tx, rowlock_tx_acquire(s.lock, s.tx, &options), ROWLOCK_EINVAL, "no waiting");
    options.wait_ms = 0;
    options.ttl_ms = 1;
    is_result(s.tx, rowlock_tx_acquire(s.lock, s.tx, &options), ROWLOCK_EINVAL, "no odd lease");
    is_result(s.tx, rowlock_tx_release(s.lock, s.tx), ROWLOCK_EMISUSE,
              "nothing to release that is not held");
    tap_is_int(error_of(s.tx).transaction_over, 0, "the transaction has seen nothing of it");
    scene_run(&s, "ROLLBACK");
    tap_is_int(rows_of(c, s.name), 0, "nothing was granted");
}

/* A try waits for no other transaction, whatever a transaction of ours has locked: two names that stand
 * beside each other, both never granted before. */
static void neighbours(const struct contract *c, const char *isolation)
{
    char names[3][64];
    if (is_mysql(c) && strcmp(isolation, "SERIALIZABLE") == 0)
        return; /* there every read locks, gaps included: the header says so */
    for (int i = 0; i < 3; i++)
        snprintf(names[i], sizeof names[i], "tx %s %c", isolation, "abc"[i]);
    struct scene s = scene_open(c, isolation, names[1], false);
    rowlock_lock *before = must_lock(s.rival, names[0]), *after = must_lock(s.rival, names[2]);
    scene_begin(&s);
    is_result(s.tx, tx_try(&s), ROWLOCK_OK, "%s: a new name", isolation);
    is_result(s.rival, try_lock(before, TTL_MS), ROWLOCK_OK, "one before it is free");
    is_result(s.rival, try_lock(after, TTL_MS), ROWLOCK_OK, "one after it is free");
    scene_run(&s, "ROLLBACK");
    rowlock_forget(s.lock);
    close_locks(before, after);
    scene_close(&s);
    exec_on(c, "DELETE FROM rowlock_tokens WHERE name LIKE 'tx %s%%'", isolation);
}

/* ---- release */

enum afterwards { FORGETS, RELEASES, CLOSES };

static void release_commits(const struct contract *c, const char *isolation, bool shared,
                            enum afterwards then)
{
    OWNED(scene) struct scene s = scene_open(c, isolation, "tx release", shared);
    int64_t token = scene_hold(&s);
    scene_begin(&s);
    scene_work(&s);
    scene_guard(&s, ROWLOCK_OK, "guarded work");
    is_result(s.tx, rowlock_tx_release(s.lock, s.tx), ROWLOCK_OK, "and release in a transaction");
    if (is_postgres(c))
        tap_is_int(raw_int(c->raw, s.session,
                           "SELECT (current_setting('synchronous_commit') = 'on')::int"),
                   1, "whose commit waits for the disk");
    tap_is_int(rows_of(c, s.name), 1, "others see neither yet");
    scene_work_stands(&s, 0, "nothing was committed");
    scene_rival_tries(&s, ROWLOCK_BUSY, "so the lock is held");
    scene_run(&s, "COMMIT");
    scene_work_stands(&s, 1, "the work is there");
    tap_is_int(rows_of(c, s.name), 0, "and the lock is free");
    if (then == FORGETS) {
        rowlock_forget(s.lock);
        is_result(s.own, try_lock(s.lock, TTL_MS), ROWLOCK_OK, "the handle can acquire anew");
        tap_ok(rowlock_lock_token(s.lock) > token, "with a higher token");
    } else if (then == RELEASES) {
        is_result(s.own, rowlock_release(s.lock), ROWLOCK_OK, "rowlock_release() is right too");
        scene_taken_over(&s, token);
    } else {
        scene_taken_over(&s, token);
        rowlock_lock_close(s.lock);
        s.lock = NULL;
        is_result(s.rival, rowlock_verify(s.wanted), ROWLOCK_OK, "closing harms no other client");
    }
}

static void release_rolled_back(const struct contract *c, const char *isolation, bool shared,
                                enum afterwards then)
{
    OWNED(scene) struct scene s = scene_open(c, isolation, "tx keep", shared);
    int64_t token = scene_hold(&s);
    scene_begin(&s);
    scene_work(&s);
    is_result(s.tx, rowlock_tx_release(s.lock, s.tx), ROWLOCK_OK, "%s: a release", isolation);
    scene_run(&s, "ROLLBACK");
    scene_work_stands(&s, 0, "is rolled back");
    scene_rival_tries(&s, ROWLOCK_BUSY, "the lock is still held");
    if (then == FORGETS) {
        is_result(s.own, rowlock_renew(s.lock, 0), ROWLOCK_OK, "and renewed");
        tap_is_int(rowlock_lock_token(s.lock), token, "under its token");
    }
    if (then != CLOSES)
        is_result(s.own, rowlock_release(s.lock), ROWLOCK_OK, "and released");
    rowlock_lock_close(s.lock);
    s.lock = NULL;
    tap_is_int(rows_of(c, s.name), 0, "then it is free");
}

static void entered_twice(const struct contract *c)
{
    OWNED(scene)
    struct scene s = scene_open(c, scene_isolations(c)[0], "tx twice", false);
    scene_hold(&s);
    scene_hold(&s);
    scene_begin(&s);
    is_result(s.tx, rowlock_tx_release(s.lock, s.tx), ROWLOCK_EMISUSE, "entered twice");
    scene_goes_on(&s, s.tx, "EMISUSE");
    is_result(s.own, rowlock_release(s.lock), ROWLOCK_OK, "left once");
    is_result(s.own, rowlock_release(s.lock), ROWLOCK_OK, "and once more");
}

/* ---- left as it was */

static void describe(const struct scene *s, char *out, size_t cap)
{
    ask_any(s->c, s->session, s->c->settings, out, cap);
}

static void all_inside(const struct scene *s, const char *what)
{
    char before[300], after[300];
    scene_begin(s);
    describe(s, before, sizeof before);
    is_result(s->tx, tx_try(s), ROWLOCK_OK, "%s: acquired in a transaction", what);
    scene_guard(s, ROWLOCK_OK, "guarded");
    is_result(s->tx, rowlock_fence(s->tx, "tx settings", 1), ROWLOCK_OK, "fenced");
    is_result(s->tx, rowlock_tx_release(s->lock, s->tx), ROWLOCK_OK, "and released");
    describe(s, after, sizeof after);
    if (strcmp(what, "again") == 0) /* MySQL has prepared its statements by then */
        tap_is_str(after, before, "all settings are as they were inside it");
    is_result(s->tx, rowlock_renew(s->lock, 0), ROWLOCK_EMISUSE, "other calls are not for inside");
    scene_run(s, "ROLLBACK");
    rowlock_forget(s->lock);
}

/* The descriptions of servers end with what all sessions have: those of earlier tests end later. */
static bool is_alone(const struct scene *s)
{
    char now[300];
    describe(s, now, sizeof now);
    return strcmp(now + strlen(now) - 2, " 0") == 0;
}

static void settings_stay(const struct contract *c)
{
    char before[300], after[300];
    struct scene s = {.c = c, .isolation = scene_isolations(c)[1], .session = c->raw->open(c->url)};
    (void)(c->has_server && EVENTUALLY(is_alone(&s)));
    describe(&s, before, sizeof before);
    s.tx = must_adopt(c->raw, s.session, NULL);
    s.lock = must_lock(s.tx, "tx settings");
    is_result(s.tx, try_lock(s.lock, TTL_MS), ROWLOCK_OK, "a lock");
    is_result(s.tx, rowlock_release(s.lock), ROWLOCK_OK, "whose name is known");
    all_inside(&s, "once");
    all_inside(&s, "again");
    rowlock_lock_close(s.lock);
    rowlock_db_close(s.tx);
    describe(&s, after, sizeof after);
    tap_is_str(after, before, "all settings are as they were before");
    c->raw->close(s.session);
}

/* What fails leaves nothing of itself behind, to be committed with the application's work. */
static void half_a_grant(const struct contract *c, const char *does, const char *prefix)
{
    char ignored[200];
    free(fresh_tables(c, prefix));
    refuse_rows(c, prefix, "locks", does);
    bool over = is_postgres(c) || strcmp(does, "ROLLBACK") == 0;
    OWNED(scene) struct scene s = scene_open(c, scene_isolations(c)[0], "tx half", false);
    OWNED(db) rowlock_db *tx = must_adopt(c->raw, s.session, prefix);
    OWNED(lock) rowlock_lock *lock = must_lock(tx, "half");
    scene_begin(&s);
    scene_work(&s);
    is_result(tx, rowlock_tx_acquire(lock, tx, NULL), ROWLOCK_ESERVER, "a grant that fails");
    tap_ok(strstr(why(tx), "not here") != NULL, "and says why");
    tap_is_int(error_of(tx).transaction_over, over, "and whether it took the transaction along");
    tap_is_int(rowlock_lock_token(lock), 0, "is none to the handle");
    if (!over)
        scene_work(&s);
    c->raw->run(s.session, "COMMIT", ignored, sizeof ignored);
    scene_work_stands(&s, over ? 0 : 2, "the work goes on where it can");
    tap_is_int(int_on(c, "SELECT count(*) FROM %slocks", prefix), 0, "no grant");
    tap_is_int(int_on(c, "SELECT count(*) FROM %stokens", prefix), 0, "nor a token");
}

/* ---- all of it */

static void at_isolation(const struct contract *c, const char *isolation)
{
    for (int shared = 0; shared < 2; shared++) {
        acquire_commits(c, isolation, shared);
        acquire_rolled_back(c, isolation, shared);
        acquire_expired(c, isolation, shared);
        acquire_busy(c, isolation, shared);
        for (int then = FORGETS; then <= CLOSES; then++) {
            release_commits(c, isolation, shared, (enum afterwards)then);
            release_rolled_back(c, isolation, shared, (enum afterwards)then);
        }
    }
    if (c->has_server)
        neighbours(c, isolation);
    transaction_guards(c, isolation);
    transaction_fences(c, isolation);
}

void contract_transaction(const struct contract *c)
{
    scene_table(c);
    for (const char *const *isolation = scene_isolations(c); *isolation; isolation++)
        at_isolation(c, *isolation);
    acquire_refused(c);
    entered_twice(c);
    settings_stay(c);
    half_a_grant(c, "ABORT", "txhalf_");
    if (is_sqlite(c))
        half_a_grant(c, "ROLLBACK", "txrolled_");
    transaction_guards_once(c);
    transaction_fences_once(c);
    scene_drop_table(c);
}
