/* SPDX-License-Identifier: MIT
 *
 * Guards: as long as a guarded transaction is open no client is granted its lock, and one that comes too
 * late is told. Part of the subject "transaction". */
#include "scene.h"

static void guard_says(const struct contract *c, const char *isolation, bool shared)
{
    OWNED(scene) struct scene s = scene_open(c, isolation, "tx guard", shared);
    scene_hold(&s);
    scene_guard(&s, ROWLOCK_EMISUSE, "outside a transaction there is nothing to guard");
    tap_ok(strstr(why(s.tx), "transaction") != NULL, "and the reason is told");
    is_result(s.rival, rowlock_guard(s.lock, s.rival), ROWLOCK_EMISUSE,
              "nor on a connection of ours");
    scene_begin(&s);
    scene_work(&s);
    scene_guard(&s, ROWLOCK_OK, "a held lock guards a transaction");
    scene_guard(&s, ROWLOCK_OK, "once more");
    scene_work_stands(&s, 0, "nothing was committed");
    scene_run(&s, "COMMIT");
    scene_work_stands(&s, 1, "until the application did");
    is_result(s.own, rowlock_release(s.lock), ROWLOCK_OK, "release");
}

static void is_told(const struct scene *s, bool releases, const char *what)
{
    int result = releases ? rowlock_tx_release(s->lock, s->tx) : rowlock_guard(s->lock, s->tx);
    is_result(s->tx, result, ROWLOCK_LOST, "%s: a %s %s", s->isolation,
              releases ? "release" : "guard", what);
}

/* A release in a transaction is guarded too. */
static void guard_of_a_lost_lock(const struct contract *c, const char *isolation, bool shared,
                                 bool releases)
{
    struct scene s = scene_open(c, isolation, "tx lost", shared);
    scene_taken_over(&s, scene_held_too_long(&s));
    scene_begin(&s);
    is_told(&s, releases, "after a takeover");
    if (c->has_server)
        is_result(s.rival, rowlock_renew(s.wanted, 0), ROWLOCK_OK, "the new holder renews");
    scene_goes_on(&s, s.tx, "LOST");
    is_result(s.rival, rowlock_verify(s.wanted), ROWLOCK_OK, "the new holder's lock stands");
    is_result(s.rival, rowlock_release(s.wanted), ROWLOCK_OK, "and is released");
    scene_begin(&s);
    is_told(&s, releases, "of the lock that is free again");
    scene_run(&s, "ROLLBACK");
    scene_close(&s);

    s = scene_open(c, isolation, "tx broken", shared);
    scene_hold(&s);
    is_result(s.rival, rowlock_break(s.rival, s.name, 0, NULL), ROWLOCK_OK, "a lock is broken");
    scene_begin(&s);
    is_told(&s, releases, "after a break, though no other client came");
    if (c->has_server)
        scene_rival_tries(&s, ROWLOCK_BUSY, "the guard in it stands to the end");
    scene_goes_on(&s, s.tx, "LOST");
    scene_close(&s);
}

/* A lease that has run out is no obstacle as long as no other client came. Renewals and releases go on beside a
 * guard, where there is more than one writer. */
static void guarded(const struct contract *c, const char *isolation, bool shared)
{
    OWNED(scene) struct scene s = scene_open(c, isolation, "tx guarded", shared);
    int64_t token = scene_held_too_long(&s);
    scene_begin(&s);
    scene_guard(&s, ROWLOCK_OK, "a guard on an expired lock");
    scene_work(&s);
    scene_rival_tries(&s, ROWLOCK_BUSY, "the rival is kept out");
    tap_is_int(holder_of(s.wanted).token, 0, "and knows no holder");
    if (c->has_server && !shared) {
        is_result(s.own, rowlock_renew(s.lock, 0), ROWLOCK_LAPSED, "the holder renews");
        is_result(s.own, rowlock_renew(s.lock, 0), ROWLOCK_OK, "again");
        end_lease(c, s.lock);
        scene_rival_tries(&s, ROWLOCK_BUSY, "the rival is kept out when that lease is over");
        is_result(s.own, rowlock_release(s.lock), ROWLOCK_OK, "the holder releases");
        scene_rival_tries(&s, ROWLOCK_BUSY, "the rival is kept out of the free lock");
    }
    scene_work_stands(&s, 0, "nothing is committed yet");
    scene_run(&s, "COMMIT");
    if (shared)
        is_result(s.own, rowlock_verify(s.lock), ROWLOCK_LAPSED, "the lease is as it was");
    scene_taken_over(&s, token);
    scene_work_stands(&s, 1, "the work was done before that");
}

/* A break that gave up may have been carried out after all: the last thing that is done to a lock. */
static void break_waits(const struct contract *c, const char *isolation)
{
    OWNED(scene) struct scene s = scene_open(c, isolation, "tx break", false);
    int64_t token = scene_hold(&s);
    scene_begin(&s);
    scene_guard(&s, ROWLOCK_OK, "a guarded lock");
    rowlock_db *breaker = open_impatient(c, c->url);
    int64_t start = clock_ms();
    int result = rowlock_break(breaker, s.name, 0, NULL);
    int64_t took = clock_ms() - start;
    rowlock_db_close(breaker);
    tap_ok(result < 0, "cannot be broken (%s)", rowlock_result_name(result));
    tap_ok(took >= patience_ms(c) / 2, "while the breaker has patience (%lld ms)", (long long)took);
    tap_is_int(rows_of(c, s.name), 1, "the grant stands");
    scene_work(&s);
    scene_run(&s, "COMMIT");
    scene_work_stands(&s, 1, "the work is done under it");
    result = rowlock_break(s.rival, s.name, 0, NULL);
    tap_ok(result == ROWLOCK_OK || result == ROWLOCK_NONE, "then it can (%s)",
           rowlock_result_name(result));
    is_result(s.rival, wait_lock(s.wanted, TTL_MS, slow_ms(60000)), ROWLOCK_OK, "and be had");
    tap_ok(rowlock_lock_token(s.wanted) > token + 1, "with a token higher than the break's");
}

/* The transaction has looked around before this is done to the lock: its snapshot does not show that. */
enum since { TAKEN_OVER, ACQUIRED, RENEWED };

static void after_the_snapshot(const struct contract *c, const char *isolation, enum since since)
{
    static const char *const what[] = {
        "a stale holder with a stale snapshot is told",
        "a grant after the snapshot is guarded or in conflict, not lost",
        "after a renewal a release is done or in conflict, but not lost",
    };
    OWNED(scene) struct scene s = scene_open(c, isolation, "tx snapshot", false);
    int64_t token = since == TAKEN_OVER ? scene_held_too_long(&s) : scene_hold(&s);
    if (since == ACQUIRED)
        is_result(s.own, rowlock_release(s.lock), ROWLOCK_OK, "release");
    scene_begin(&s);
    scene_run(&s, "SELECT count(*) FROM tx_data");
    if (scene_is_immediate(&s)) {
        scene_rival_tries(&s, ROWLOCK_BUSY, "no client comes while the file's one writer is at it");
        scene_guard(&s, since == ACQUIRED ? ROWLOCK_EMISUSE : ROWLOCK_OK, "nothing can be stale");
    } else {
        if (since == TAKEN_OVER)
            scene_taken_over(&s, token);
        else if (since == ACQUIRED)
            scene_hold(&s);
        else
            is_result(s.own, rowlock_renew(s.lock, 0), ROWLOCK_OK, "renewed since the snapshot");
        int result =
            since == RENEWED ? rowlock_tx_release(s.lock, s.tx) : rowlock_guard(s.lock, s.tx);
        tap_ok(result == (since == TAKEN_OVER ? ROWLOCK_LOST : ROWLOCK_OK) ||
                   result == ROWLOCK_CONFLICT,
               "%s: %s (%s)", isolation, what[since], rowlock_result_name(result));
        if (result != ROWLOCK_OK)
            tap_is_int(error_of(s.tx).transaction_over, result == ROWLOCK_CONFLICT,
                       "and whether the transaction can go on");
    }
    scene_run(&s, "ROLLBACK");
    if (since == RENEWED)
        is_result(s.own, rowlock_release(s.lock), ROWLOCK_OK, "it can be released outside");
}

/* The same by hand, as the comment of sql/<database>/lock/guard.sql has it: on SQLite its statement. */
static const char *by_hand(const struct contract *c)
{
    return is_postgres(c) ? "SELECT token FROM rowlock_tokens WHERE name = %s FOR SHARE"
           : is_mysql(c)
               ? "SELECT token FROM rowlock_tokens WHERE name = %s LOCK IN SHARE MODE"
               : "UPDATE rowlock_tokens SET token = token WHERE name = %s\nRETURNING token";
}

static bool has_guard(const struct contract *c, const char *sql)
{
    char text[5000] = "";
    FILE *file = fopen(textf("sql/%s/lock/guard.sql", c->raw->name), "r");
    if (!file || fread(text, 1, sizeof text - 1, file) == 0)
        raw_failed("guard.sql", "cannot be read");
    fclose(file);
    return strstr(text, sql) != NULL;
}

static void plain_guard(const struct contract *c, const char *isolation)
{
    OWNED(scene) struct scene s = scene_open(c, isolation, "tx plain", false);
    int64_t token = scene_held_too_long(&s);
    tap_ok(has_guard(c, textf(by_hand(c), "{name}")), "guard.sql has the plain SQL guard");
    OWNED(text) char *sql = strdup(textf(by_hand(c), "'tx plain'"));
    scene_begin(&s);
    tap_is_int(raw_int(c->raw, s.session, "%s", sql), token, "%s: the plain SQL guard", isolation);
    scene_rival_tries(&s, ROWLOCK_BUSY, "keeps the rival out");
    scene_run(&s, "COMMIT");
    scene_taken_over(&s, token);
    scene_begin(&s);
    tap_ok(raw_int(c->raw, s.session, "%s", sql) > token, "it shows a higher token then");
    scene_run(&s, "ROLLBACK");
}

static int guard_in_thread(void *argument)
{
    const struct scene *s = argument;
    return rowlock_guard(s->lock, s->tx);
}

/* A grant that another transaction has made, but not committed. */
static void guard_beside_a_grant(const struct contract *c, bool commits)
{
    OWNED(scene) struct scene s = scene_open(c, scene_isolations(c)[0], "tx in flight", false);
    scene_held_too_long(&s);
    struct scene other = s;
    other.session = c->raw->open(c->url);
    other.tx = must_adopt(c->raw, other.session, NULL);
    other.lock = must_lock(other.tx, s.name);
    scene_begin(&s);
    scene_guard(&s, ROWLOCK_OK, "tables were looked at, which in SQLite takes a snapshot");
    scene_run(&s, "ROLLBACK");
    scene_begin(&s);
    scene_begin(&other);
    is_result(other.tx, rowlock_tx_acquire(other.lock, other.tx, NULL), ROWLOCK_OK,
              "a takeover that is not committed yet");
    struct helper *helper = helper_start(guard_in_thread, &s);
    tap_ok(somebody_waits(c) && !helper_ended(helper), "is waited for by a guard");
    scene_run(&other, commits ? "COMMIT" : "ROLLBACK");
    int result = helper_join(helper);
    is_result(s.tx, result, commits ? ROWLOCK_LOST : ROWLOCK_OK, "which then says how it ended");
    scene_run(&s, "ROLLBACK");
    rowlock_forget(other.lock);
    rowlock_lock_close(other.lock);
    rowlock_db_close(other.tx);
    c->raw->close(other.session);
}

/* The application's own patience with locks is over. */
static void guard_gives_up(const struct contract *c)
{
    OWNED(scene) struct scene s = scene_open(c, scene_isolations(c)[0], "tx patience", false);
    scene_hold(&s);
    OWNED(session) void *other = c->raw->open(c->url);
    raw_run(c->raw, other, "%s", c->begin);
    raw_run(c->raw, other, "UPDATE rowlock_tokens SET granted = granted + 1 WHERE name = '%s'",
            s.name);
    scene_begin(&s);
    scene_run(&s, is_postgres(c) ? "SET LOCAL lock_timeout = 300"
                  : is_mysql(c)  ? "SET innodb_lock_wait_timeout = 1"
                                 : "PRAGMA busy_timeout = 300");
    scene_guard(&s, ROWLOCK_CONFLICT, "a lock timeout is a conflict");
    tap_is_int(error_of(s.tx).transaction_over, is_postgres(c), "which ends it on PostgreSQL only");
    if (is_postgres(c))
        scene_guard(&s, ROWLOCK_ESERVER, "as every call is told until it is rolled back");
    raw_run(c->raw, other, "ROLLBACK");
    if (!is_postgres(c)) {
        scene_guard(&s, ROWLOCK_OK, "elsewhere the same can be tried again");
        scene_work(&s);
    }
    scene_run(&s, is_postgres(c) ? "ROLLBACK" : "COMMIT");
    scene_work_stands(&s, !is_postgres(c), "and the work goes on");
}

/* As on an old primary, or a node that lags. */
static void guard_without_the_grant(const struct contract *c)
{
    OWNED(scene) struct scene s = scene_open(c, scene_isolations(c)[0], "tx behind", false);
    scene_hold(&s);
    is_result(s.own, rowlock_release(s.lock), ROWLOCK_OK, "released");
    scene_hold(&s);
    exec_on(c, "UPDATE rowlock_tokens SET token = token - 1 WHERE name = '%s'", s.name);
    scene_begin(&s);
    scene_guard(&s, ROWLOCK_CONFLICT, "a server that does not have the grant");
    tap_ok(strstr(error_of(s.tx).text, "old primary. Roll back, connect again") != NULL,
           "the text says what to do: %s", error_of(s.tx).text);
    scene_run(&s, "ROLLBACK");
    exec_on(c, "UPDATE rowlock_tokens SET token = token + 1 WHERE name = '%s'", s.name);
    scene_begin(&s);
    scene_guard(&s, ROWLOCK_OK, "one that has it");
    scene_run(&s, "ROLLBACK");
}

/* Only where other nodes take writes does a guard change the token row. */
static void guard_writes_nothing(const struct contract *c)
{
    OWNED(scene) struct scene s = scene_open(c, scene_isolations(c)[0], "tx unwritten", false);
    char galera[20] = "";
    const bool node = c->raw->ask(
        s.session, "SHOW GLOBAL VARIABLES WHERE Variable_name = 'wsrep_on' AND Value = 'ON'",
        galera, sizeof galera);
    scene_hold(&s);
    scene_begin(&s);
    scene_guard(&s, ROWLOCK_OK, "a guard");
    scene_run(&s, "COMMIT");
    tap_is_int(int_on(c, "SELECT guards FROM rowlock_tokens WHERE name = '%s'", s.name), node,
               "changes the token row on a node of Galera, and nothing elsewhere");
}

void transaction_guards(const struct contract *c, const char *isolation)
{
    for (int shared = 0; shared < 2; shared++) {
        guard_says(c, isolation, shared);
        guard_of_a_lost_lock(c, isolation, shared, false);
        guard_of_a_lost_lock(c, isolation, shared, true);
        guarded(c, isolation, shared);
    }
    break_waits(c, isolation);
    for (int since = TAKEN_OVER; since <= RENEWED; since++)
        after_the_snapshot(c, isolation, (enum since)since);
    plain_guard(c, isolation);
}

void transaction_guards_once(const struct contract *c)
{
    guard_beside_a_grant(c, true);
    guard_beside_a_grant(c, false);
    guard_gives_up(c);
    guard_without_the_grant(c);
    if (is_mysql(c))
        guard_writes_nothing(c);
}
