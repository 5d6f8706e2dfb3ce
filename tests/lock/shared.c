/* SPDX-License-Identifier: MIT
 *
 * Shared locks, many readers or one writer, and what shared and counted locks have in common: leases,
 * guards, transactions, and what operators see. Counting is in counted.c, a keeper of them in keeper.c. */
#include "scene.h"

#include "crowd.h"
#include "lock/lock.h"

enum { READERS = 3, THREE = 3 };

static const int kinds[] = {ROWLOCK_SHARED, THREE};

static const char *kind_name(int permits)
{
    return permits == ROWLOCK_SHARED ? "shared" : permits == 0 ? "exclusive" : "counted";
}

/* ---- readers and writers */

static void together(const struct contract *c)
{
    struct guest readers[READERS], writer, counter;
    int64_t token = 0;
    guests_open_all(readers, READERS, c, "library", ROWLOCK_SHARED);
    guest_open(&writer, c, "library", 0);
    guest_open(&counter, c, "library", THREE);
    for (int i = 0; i < READERS; i++) {
        guest_tries(&readers[i], ROWLOCK_OK, "readers come in together");
        tap_ok(rowlock_lock_token(readers[i].lock) > token, "each with a higher token");
        token = rowlock_lock_token(readers[i].lock);
    }
    tap_is_int(rows_of(c, "library"), READERS, "each has a row");
    guest_tries(&writer, ROWLOCK_BUSY, "a writer is kept out");
    tap_is_int(holder_of(writer.lock).permits, ROWLOCK_SHARED, "by a holder which shares it");
    guest_tries(&counter, ROWLOCK_MISMATCH, "a client that would count does not belong here");
    tap_ok(strstr(why(counter.db), "shared") != NULL, "in words: %s", why(counter.db));
    tap_ok(holder_of(counter.lock).token > 0, "which a holder shares");
    counter.how.wait_ms = 2000;
    is_result(counter.db, rowlock_acquire(counter.lock, &counter.how), ROWLOCK_MISMATCH,
              "at once, even if it would wait");
    tap_is_int(tickets_of(c, "library"), 0, "without a ticket");
    for (int i = 0; i < READERS; i++) {
        is_result(readers[i].db, rowlock_verify(readers[i].lock), ROWLOCK_OK, "a reader reads");
        is_result(readers[i].db, rowlock_renew(readers[i].lock, 0), ROWLOCK_OK, "renews");
        guest_tries(&writer, ROWLOCK_BUSY, "keeps the writer out");
        guest_releases(&readers[i], ROWLOCK_OK, "and goes");
    }
    guest_tries(&writer, ROWLOCK_OK, "then the writer comes in");
    tap_ok(rowlock_lock_token(writer.lock) > token, "with a higher token");
    guest_tries(&readers[0], ROWLOCK_BUSY, "and keeps readers out");
    rowlock_grant holder = holder_of(readers[0].lock);
    tap_ok(holder.token > token && holder.permits == 0, "as a writer");
    guest_tries(&counter, ROWLOCK_BUSY, "and one that would count");
    guest_releases(&writer, ROWLOCK_OK, "it goes");
    guest_tries(&counter, ROWLOCK_OK, "now it can be counted");
    guest_tries(&readers[0], ROWLOCK_MISMATCH, "but not shared");
    guests_close_all(readers, READERS);
    guests_close(&writer, &counter, NULL);
}

/* A reader whose answer was lost, and who then wants to write: its row is no grant of that. */
static void writes_after_lost_answer(const struct contract *c)
{
    CLOSED_BY(guest_close) struct guest first, second;
    guests_open(c, "both kinds", ROWLOCK_SHARED, &first, &second, NULL);
    guest_tries(&first, ROWLOCK_OK, "one reads");
    first.lock->state = RLK_IDLE;
    first.lock->request_open = true;
    guest_tries(&first, ROWLOCK_OK, "it finds its grant if the answer was lost");
    first.lock->state = RLK_IDLE;
    first.lock->request_open = true;
    guest_tries(&second, ROWLOCK_OK, "another reads beside it");
    first.how.permits = 0;
    guest_tries(&first, ROWLOCK_BUSY,
                "so it cannot write, although its request to read was granted");
    guest_releases(&second, ROWLOCK_OK, "the other one goes");
    guest_tries(&first, ROWLOCK_OK, "now it writes");
    guest_tries(&second, ROWLOCK_BUSY, "alone");
    guest_releases(&first, ROWLOCK_OK, "and goes");
    tap_is_int(rows_of(c, "both kinds"), 0, "with all rows");
}

static void writer_not_starved(const struct contract *c)
{
    struct guest readers[READERS], writer;
    guests_open_all(readers, READERS, c, "starving", ROWLOCK_SHARED);
    guest_open(&writer, c, "starving", 0);
    guest_tries(&readers[0], ROWLOCK_OK, "one reads");
    guest_queue(&writer);
    guest_tries(&readers[1], ROWLOCK_BUSY, "while a writer waits, other readers are kept out");
    for (int i = 1; i < READERS; i++)
        guest_queue(&readers[i]);
    guest_waits(&writer, "the writer waits");
    guest_releases(&readers[0], ROWLOCK_OK, "the reader goes");
    guest_gets(&writer, "and the writer comes in");
    tap_is_int(tickets_of(c, "starving"), READERS - 1, "while the readers wait");
    guest_tries(&readers[0], ROWLOCK_BUSY, "also the one that was in");
    guest_releases(&writer, ROWLOCK_OK, "it goes");
    for (int i = 1; i < READERS; i++)
        guest_gets(&readers[i], "and they come in together");
    guests_close_all(readers, READERS);
    guest_close(&writer);
}

/* A waiter that waited only because of another's place in the queue is let in when that one leaves. */
static void writer_gives_up(const struct contract *c)
{
    struct guest readers[READERS], writer;
    guests_open_all(readers, READERS, c, "given up", ROWLOCK_SHARED);
    guest_open(&writer, c, "given up", 0);
    guest_tries(&readers[0], ROWLOCK_OK, "one reads");
    guest_queue(&writer);
    for (int i = 1; i < READERS; i++)
        guest_queue(&readers[i]);
    is_result(writer.db, guest_cancel(&writer), ROWLOCK_CANCELLED, "the writer gives up");
    for (int i = 1; i < READERS; i++)
        guest_gets(&readers[i], "a reader behind it comes in");
    guests_close_all(readers, READERS);
    guest_close(&writer);
}

/* ---- one handle, one kind */

static void upgrade_refused(const struct contract *c, int permits)
{
    CLOSED_BY(guest_close) struct guest g;
    guest_open(&g, c, "upgrade", permits);
    guest_tries(&g, ROWLOCK_OK, kind_name(permits));
    int64_t token = rowlock_lock_token(g.lock);
    guest_tries(&g, ROWLOCK_OK, "can be entered again");
    g.how.permits = 0;
    guest_tries(&g, ROWLOCK_EMISUSE, "but not as an exclusive one");
    tap_ok(strstr(why(g.db), "release") != NULL, "as the reason tells");
    g.how.wait_ms = 1000;
    is_result(g.db, rowlock_acquire(g.lock, &g.how), ROWLOCK_EMISUSE, "not even if one waits");
    g.how.permits = permits + 5;
    guest_tries(&g, ROWLOCK_EMISUSE, "nor as a third kind");
    is_result(g.db, rowlock_verify(g.lock), ROWLOCK_OK, "it stands");
    tap_is_int(rowlock_lock_token(g.lock), token, "as it was");
    guest_releases(&g, ROWLOCK_OK, "left once");
    tap_is_int(rows_of(c, "upgrade"), 1, "it is held");
    guest_releases(&g, ROWLOCK_OK, "left twice");
    tap_is_int(rows_of(c, "upgrade"), 0, "it is not");
    g.how.permits = 0;
    guest_tries(&g, ROWLOCK_OK, "then it can be exclusive");
    g.how.permits = permits;
    guest_tries(&g, ROWLOCK_EMISUSE, "and is not shared as well");
}

/* As everywhere: the owner decides who is the same. */
static void same_owner(const struct contract *c, int permits)
{
    CLOSED_BY(guest_close) struct guest one, two, other;
    guest_open_as(&one, c, c->url, "a restarted reader", "same", permits);
    guest_open_as(&two, c, c->url, "a restarted reader", "same", permits);
    guest_open(&other, c, "same", permits);
    guest_tries(&other, ROWLOCK_OK, "somebody else");
    guest_tries(&one, ROWLOCK_OK, "and somebody with a name");
    guest_tries(&two, ROWLOCK_OK, "which comes back after a crash");
    is_result(one.db, rowlock_verify(one.lock), ROWLOCK_LOST, "takes over what it had");
    tap_is_int(rows_of(c, "same"), 2, "so that no owner counts twice");
    is_result(other.db, rowlock_verify(other.lock), ROWLOCK_OK, "others are left alone");
}

/* ---- leases */

static void expired(const struct contract *c, int permits)
{
    struct guest readers[2], writer;
    guests_open_all(readers, 2, c, "expired", permits);
    guest_open(&writer, c, "expired", 0);
    guest_tries(&readers[0], ROWLOCK_OK, kind_name(permits));
    end_lease(c, readers[0].lock);
    is_result(readers[0].db, rowlock_verify(readers[0].lock), ROWLOCK_LAPSED, "a lease is over");
    is_result(readers[0].db, rowlock_renew(readers[0].lock, 0), ROWLOCK_LAPSED,
              "but no other client came: it can be renewed");
    guest_tries(&writer, ROWLOCK_BUSY, "and keeps a writer out");
    end_lease(c, readers[0].lock);
    guest_tries(&writer, ROWLOCK_OK, "over again it does not");
    tap_is_int(rows_of(c, "expired"), 1, "only the writer is left");
    is_result(readers[0].db, rowlock_renew(readers[0].lock, HELD_MS), ROWLOCK_LOST,
              "no renewal makes the reader's stand again");
    tap_is_int(rows_of(c, "expired"), 1, "beside the writer's");
    guest_tries(&readers[1], ROWLOCK_BUSY, "nor does anybody else come in");
    guest_releases(&readers[0], ROWLOCK_LOST, "the reader knows");
    guest_releases(&writer, ROWLOCK_OK, "the writer goes");
    guest_tries(&readers[0], ROWLOCK_OK, "the reader comes back");
    end_lease(c, readers[0].lock);
    guest_tries(&readers[1], ROWLOCK_OK, "and when its lease is over, another");
    tap_is_int(rows_of(c, "expired"), 1, "clears its row away");
    is_result(readers[0].db, rowlock_verify(readers[0].lock), ROWLOCK_LOST, "which finds out");
    guests_close_all(readers, 2);
    guest_close(&writer);
}

static int take_grant(void *context, const rowlock_grant *grant)
{
    rowlock_grant *grants = context;
    for (int i = 0; i < READERS; i++)
        if (grants[i].token == 0) {
            grants[i] = *grant;
            return 0;
        }
    return 1;
}

/* ---- operators and others */

static void administered(const struct contract *c, int permits)
{
    struct guest readers[READERS];
    rowlock_grant grants[READERS] = {{0}}, broken = ROWLOCK_GRANT_INIT;
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    int64_t last = 0;
    int right = 0;
    guests_open_all(readers, READERS, c, "administered", permits);
    guest_tries(&readers[0], ROWLOCK_OK, kind_name(permits));
    guest_tries(&readers[2], ROWLOCK_OK, "and another");
    guest_tries(&readers[1], ROWLOCK_OK, "and one for a moment");
    rowlock_db *db = readers[0].db;
    is_result(db, rowlock_list(db, "administered", take_grant, grants), ROWLOCK_OK, "are listed");
    for (int i = 0; i < READERS; i++)
        right += grants[i].permits == permits && grants[i].remaining_ms > -1000;
    tap_is_int(right, READERS, "all are listed, with their kind");
    tap_ok(grants[0].token < grants[1].token && grants[1].token < grants[2].token, "in order");
    tap_is_int(grants[0].token, rowlock_lock_token(readers[0].lock), "of their tokens");
    is_result(db, rowlock_last_grant(db, "administered", &last, NULL), ROWLOCK_OK, "the highest");
    tap_is_int(last, rowlock_lock_token(readers[1].lock), "is the last one");
    end_lease(c, readers[1].lock);
    is_result(db, rowlock_sweep(db, NULL, &report), ROWLOCK_OK, "a sweep");
    tap_is_int(rows_of(c, "administered"), 2, "removes the one that is over");
    is_result(readers[1].db, rowlock_verify(readers[1].lock), ROWLOCK_LOST,
              "whose holder finds out");
    is_result(db, rowlock_break(db, "administered", 0, NULL), ROWLOCK_EINVAL,
              "which of two is to be broken must be said");
    tap_ok(strstr(why(db), "2 holders") != NULL, "in words: %s", why(db));
    is_result(db, rowlock_break(db, "administered", last + 77, NULL), ROWLOCK_NONE, "not another");
    int64_t token = rowlock_lock_token(readers[2].lock);
    is_result(db, rowlock_break(db, "administered", token, &broken), ROWLOCK_OK, "one is");
    tap_is_int(broken.token, token, "that one");
    tap_is_int(broken.permits, permits, "of that kind");
    is_result(readers[2].db, rowlock_renew(readers[2].lock, 0), ROWLOCK_LOST, "its holder is out");
    is_result(db, rowlock_renew(readers[0].lock, 0), ROWLOCK_OK, "the other one stays");
    is_result(db, rowlock_break(db, "administered", 0, &broken), ROWLOCK_OK,
              "the only one need not be named");
    tap_is_int(rows_of(c, "administered"), 0, "none is left");
    guests_close_all(readers, READERS);
}

/* A handle that knows an owner and a token, and not the kind, which decides the key of the row. */
static rowlock_lock *attach(rowlock_db *db, const struct guest *owner, const struct guest *token)
{
    return must_attach(db, rowlock_lock_name(owner->lock), rowlock_lock_owner(owner->lock),
                       rowlock_lock_token(token->lock));
}

static void attached(const struct contract *c, int permits)
{
    struct guest readers[2];
    guests_open_all(readers, 2, c, "attached", permits);
    guest_tries(&readers[0], ROWLOCK_OK, kind_name(permits));
    guest_tries(&readers[1], ROWLOCK_OK, "beside another");
    OWNED(db) rowlock_db *db = must_open(c->url);
    OWNED(lock)
    rowlock_lock *lock = attach(db, &readers[0], &readers[0]),
                 *noting = attach(db, &readers[0], &readers[0]);
    OWNED(lock)
    rowlock_lock *other = attach(db, &readers[1], &readers[1]),
                 *wrong = attach(db, &readers[0], &readers[1]);
    is_result(db, rowlock_note(noting, "shared"), ROWLOCK_OK, "another process sets its note");
    tap_is_str(grant_of(db, "attached").note, "shared", "as is read");
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_OK, "renews it");
    tap_ok(rowlock_lock_remaining_ms(lock) > 0, "and knows its lease");
    is_result(db, rowlock_verify(lock), ROWLOCK_OK, "verifies it");
    is_result(db, rowlock_renew(wrong, 0), ROWLOCK_LOST, "owner and token must fit");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "and releases it");
    is_result(readers[0].db, rowlock_verify(readers[0].lock), ROWLOCK_LOST, "it is gone");
    is_result(readers[1].db, rowlock_verify(readers[1].lock), ROWLOCK_OK, "that one only");
    is_result(db, rowlock_release(other), ROWLOCK_OK, "the other one, without a look before");
    tap_is_int(rows_of(c, "attached"), 0, "is gone too");
    guests_close_all(readers, 2);
}

/* ---- the application's transaction */

struct shared_scene {
    struct guest holder, other, writer;
    struct scene app;
};

static void set_scene(struct shared_scene *s, const struct contract *c, const char *isolation,
                      int permits)
{
    s->app = scene_open(c, isolation, "tx shared", true);
    guests_open(c, "tx shared", permits, &s->holder, &s->other, NULL);
    guest_open(&s->writer, c, "tx shared", 0);
}

static void clear_scene(struct shared_scene *s)
{
    guests_close(&s->holder, &s->other, &s->writer, NULL);
    scene_close(&s->app);
}

static void guards(struct shared_scene *s, int want, const char *what)
{
    is_result(s->app.tx, rowlock_guard(s->holder.lock, s->app.tx), want, "%s, %s: %s",
              s->app.isolation, kind_name(s->holder.how.permits), what);
}

static void guards_alone(struct shared_scene *s, int want, const char *what)
{
    scene_begin(&s->app);
    guards(s, want, what);
    scene_run(&s->app, "ROLLBACK");
}

/* A token that is not the newest any more guards as long as its row stands. */
static void guarded(const struct contract *c, const char *isolation, int permits)
{
    CLOSED_BY(clear_scene) struct shared_scene s;
    set_scene(&s, c, isolation, permits);
    guest_tries(&s.holder, ROWLOCK_OK, "a grant beside others");
    guards_alone(&s, ROWLOCK_OK, "guards");
    guest_tries(&s.other, ROWLOCK_OK, "another comes");
    guards_alone(&s, ROWLOCK_OK, "which it does still");
    scene_begin(&s.app);
    scene_work(&s.app);
    guards(&s, ROWLOCK_OK, "and also");
    if (c->has_server) {
        guest_releases(&s.other, ROWLOCK_OK, "while the other goes");
        guest_tries(&s.writer, ROWLOCK_BUSY, "a writer does not come in");
    }
    scene_run(&s.app, "COMMIT");
    if (!c->has_server)
        guest_releases(&s.other, ROWLOCK_OK, "the other goes");
    guards_alone(&s, ROWLOCK_OK, "when it is gone");
    guest_tries(&s.other, ROWLOCK_OK, "another comes again");
    is_result(s.writer.db,
              rowlock_break(s.writer.db, "tx shared", rowlock_lock_token(s.other.lock), NULL),
              ROWLOCK_OK, "and is broken");
    guards_alone(&s, ROWLOCK_OK, "which is not our business");
    is_result(s.writer.db,
              rowlock_break(s.writer.db, "tx shared", rowlock_lock_token(s.holder.lock), NULL),
              ROWLOCK_OK, "ours is broken");
    guards_alone(&s, ROWLOCK_LOST, "which is");
}

/* What is guarded keeps a writer out to the end of the transaction, lease or no lease. */
static void guarded_beyond_its_lease(const struct contract *c, const char *isolation, int permits)
{
    CLOSED_BY(clear_scene) struct shared_scene s;
    set_scene(&s, c, isolation, permits);
    guest_tries(&s.holder, ROWLOCK_OK, "a grant for a moment");
    end_lease(c, s.holder.lock);
    scene_begin(&s.app);
    guards(&s, ROWLOCK_OK, "a lease that is over is no obstacle while no client comes");
    guest_tries(&s.writer, ROWLOCK_BUSY, "and no client can");
    if (c->has_server) /* a file has room for one writer, who is waited for */
        guest_tries(&s.other, ROWLOCK_BUSY, "not even beside it");
    scene_run(&s.app, "COMMIT");
    guest_tries(&s.writer, ROWLOCK_OK, "until it ends");
    guards_alone(&s, ROWLOCK_LOST, "then it is too late");
    guest_releases(&s.writer, ROWLOCK_OK, "also when the writer is gone");
    guards_alone(&s, ROWLOCK_LOST, "for ever");
    guest_tries(&s.other, ROWLOCK_OK, "even if somebody shares it");
    guards_alone(&s, ROWLOCK_LOST, "for ever");
}

/* What another process did not see may be done twice: a guard of any grant fails after that. */
static void guarded_before_a_failover(const struct contract *c, int permits)
{
    CLOSED_BY(clear_scene) struct shared_scene s;
    set_scene(&s, c, scene_isolations(c)[0], permits);
    guest_tries(&s.holder, ROWLOCK_OK, "a grant");
    is_result(s.other.db, rowlock_raise_tokens(s.other.db, 10, NULL), ROWLOCK_OK,
              "tokens are raised");
    guards_alone(&s, ROWLOCK_LOST, "grants from before do not guard any more");
}

static void acquired_inside(const struct contract *c, const char *isolation, int permits)
{
    CLOSED_BY(clear_scene) struct shared_scene s;
    rowlock_acquire_options how = *OPTIONS(acquire, .permits = permits);
    set_scene(&s, c, isolation, permits);
    guest_tries(&s.other, ROWLOCK_OK, "one is there");
    for (int commits = 1; commits >= 0; commits--) {
        scene_begin(&s.app);
        is_result(s.app.tx, rowlock_tx_acquire(s.holder.lock, s.app.tx, &how), ROWLOCK_OK,
                  "%s: another comes in a transaction", isolation);
        tap_ok(rowlock_lock_token(s.holder.lock) > rowlock_lock_token(s.other.lock),
               "with a higher token");
        tap_is_int(rows_of(c, "tx shared"), 1, "which others do not see yet");
        guards(&s, ROWLOCK_OK, "it guards");
        scene_run(&s.app, commits ? "COMMIT" : "ROLLBACK");
        tap_is_int(rows_of(c, "tx shared"), 1 + commits, "but after a commit");
        if (commits)
            guest_releases(&s.holder, ROWLOCK_OK, "it is released");
        else
            rowlock_forget(s.holder.lock);
        is_result(s.other.db, rowlock_verify(s.other.lock), ROWLOCK_OK, "the other's stands");
    }
    how.permits = 0;
    scene_begin(&s.app);
    is_result(s.app.tx, rowlock_tx_acquire(s.writer.lock, s.app.tx, &how), ROWLOCK_BUSY,
              "a writer is kept out");
    scene_run(&s.app, "ROLLBACK");
    scene_begin(&s.app);
    how.permits = permits == ROWLOCK_SHARED ? THREE : ROWLOCK_SHARED;
    is_result(s.app.tx, rowlock_tx_acquire(s.writer.lock, s.app.tx, &how), ROWLOCK_MISMATCH,
              "and one that means another kind");
    tap_is_int(error_of(s.app.tx).transaction_over, 0, "the transaction can go on");
    scene_run(&s.app, "COMMIT");
}

static void released_inside(const struct contract *c, const char *isolation, int permits)
{
    CLOSED_BY(clear_scene) struct shared_scene s;
    set_scene(&s, c, isolation, permits);
    guest_tries(&s.holder, ROWLOCK_OK, "one is there");
    guest_tries(&s.other, ROWLOCK_OK, "and another");
    scene_begin(&s.app);
    is_result(s.app.tx, rowlock_tx_release(s.holder.lock, s.app.tx), ROWLOCK_OK,
              "%s: a release in a transaction", isolation);
    tap_is_int(rows_of(c, "tx shared"), 2, "which others do not see yet");
    scene_run(&s.app, "ROLLBACK");
    is_result(s.holder.db, rowlock_renew(s.holder.lock, 0), ROWLOCK_OK, "never was");
    scene_begin(&s.app);
    is_result(s.app.tx, rowlock_tx_release(s.holder.lock, s.app.tx), ROWLOCK_OK, "the next one");
    scene_run(&s.app, "COMMIT");
    rowlock_forget(s.holder.lock);
    tap_is_int(rows_of(c, "tx shared"), 1, "is");
    is_result(s.other.db, rowlock_verify(s.other.lock), ROWLOCK_OK, "the other's stands");
    scene_begin(&s.app);
    is_result(s.app.tx, rowlock_tx_release(s.other.lock, s.app.tx), ROWLOCK_OK,
              "until it goes too");
    scene_run(&s.app, "COMMIT");
    rowlock_forget(s.other.lock);
    guest_tries(&s.writer, ROWLOCK_OK, "then a writer comes in");
}

void contract_shared(const struct contract *c)
{
    together(c);
    writes_after_lost_answer(c);
    writer_not_starved(c);
    writer_gives_up(c);
    scene_table(c);
    for (int i = 0; i < COUNT(kinds); i++) {
        upgrade_refused(c, kinds[i]);
        same_owner(c, kinds[i]);
        expired(c, kinds[i]);
        administered(c, kinds[i]);
        attached(c, kinds[i]);
        for (const char *const *isolation = scene_isolations(c); *isolation; isolation++) {
            guarded(c, *isolation, kinds[i]);
            guarded_beyond_its_lease(c, *isolation, kinds[i]);
            acquired_inside(c, *isolation, kinds[i]);
            released_inside(c, *isolation, kinds[i]);
        }
        guarded_before_a_failover(c, kinds[i]);
    }
    scene_drop_table(c);
}
