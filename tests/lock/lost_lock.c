/* SPDX-License-Identifier: MIT
 *
 * What gets lost of the calls of a lock; see loss.h. */
#include "loss.h"

#include "lock/lock.h"

/* A handle whose other one is straight to the server. */
struct pair {
    rowlock_db *db;
    rowlock_lock *lock, *rival;
};

static struct pair open_pair(struct loss *l)
{
    struct pair p = {.db = loss_open(l)};
    p.lock = must_lock(p.db, l->name);
    p.rival = must_lock(l->others, l->name);
    return p;
}

static void close_pair(struct pair *p)
{
    rowlock_lock_close(p->lock);
    rowlock_db_close(p->db);
    rowlock_lock_close(p->rival);
}

/* What we do comes before it arrives. */
static bool under_way(const struct loss *l)
{
    return l->way == REQUEST_LATE || l->way == REQUEST_LATE_POOLED;
}

/* ECONN says that nothing was done, and that nothing is on its way. */
static void check_undone(struct loss *l, int said, long long rows)
{
    if (said != ROWLOCK_ECONN)
        return;
    loss_pass(l);
    loss_is(l, loss_rows(l), rows, "what is called undone was not done, nor is it later");
}

/* ---- acquire */

/* A try is BUSY while a request that was under way is carried out: another transaction has the lock
 * in progress. That passes. */
static int try_again(const struct loss *l, rowlock_lock *lock)
{
    int64_t end_ms = clock_ms() + GENEROUS_MS;
    int said = try_lock(lock, TTL_MS);
    while (said == ROWLOCK_BUSY && under_way(l) && clock_ms() < end_ms)
        said = try_lock(lock, TTL_MS);
    return said;
}

/* The next acquire of the same handle gets the one grant there is. */
static void acquire_again(struct loss *l, struct pair *p, int said, long long rows_before)
{
    if (said == ROWLOCK_OK)
        return;
    check_undone(l, said, rows_before);
    loss_pass_before(l);
    if (rows_before == 0 && loss_rows(l) == 1)
        loss_is(l, try_lock(p->rival, LONG_TTL_MS), ROWLOCK_BUSY,
                "the grant whose answer was lost stands");
    loss_result(l, p->db, try_again(l, p->lock), ROWLOCK_OK, "the next acquire gets it");
}

static void lose_acquire(struct loss *l)
{
    CLOSED_BY(close_pair) struct pair p = open_pair(l);
    long long token = loss_next_token(l);
    int said = LOSING(l, try_lock(p.lock, TTL_MS));
    loss_said(l, p.db, said, ROWLOCK_OK);
    acquire_again(l, &p, said, 0);
    loss_granted(l, p.lock, token);
    if (!under_way(l)) {
        loss_pass(l);
        loss_granted(l, p.lock, token);
    }
    loss_result(l, p.db, rowlock_release(p.lock), ROWLOCK_OK, "it is released");
    long long rows = loss_rows(l);
    loss_ok(l, rows == 0 || loss_may_have_passed(l), "and gone");
    loss_pass(l);
    loss_gone_or_explained(l, rowlock_lock_owner(p.lock));
    if (loss_rows(l) == 0)
        loss_rival_gets(l, token);
}

/* The same over an expired row, and held until all has arrived. */
static void lose_takeover(struct loss *l)
{
    CLOSED_BY(close_pair) struct pair p = open_pair(l);
    loss_is(l, try_lock(p.rival, LONG_TTL_MS), ROWLOCK_OK, "another holds it at first");
    loss_run(l, "UPDATE %slocks SET expires = 1 WHERE name = '%s'", l->prefix, l->name);
    long long token = loss_next_token(l);
    int said = LOSING(l, try_lock(p.lock, TTL_MS));
    loss_said(l, p.db, said, ROWLOCK_OK);
    acquire_again(l, &p, said, 1);
    loss_granted(l, p.lock, token);
    loss_pass(l);
    loss_granted(l, p.lock, token);
    loss_is(l, rowlock_renew(p.rival, 0), ROWLOCK_LOST, "the client that let it expire finds out");
    loss_result(l, p.db, rowlock_release(p.lock), ROWLOCK_OK, "it is released");
    loss_rival_gets(l, token);
}

/* A try on a lock that another holds. What arrives late may find it free, and then no caller waits for it:
 * the handle knows, and takes it back when it is closed. */
static void lose_busy(struct loss *l)
{
    struct pair p = open_pair(l);
    loss_is(l, try_lock(p.rival, LONG_TTL_MS), ROWLOCK_OK, "another holds it at first");
    long long token = rowlock_lock_token(p.rival);
    int said = LOSING(l, try_lock(p.lock, TTL_MS));
    loss_said(l, p.db, said, ROWLOCK_BUSY);
    loss_is(l, rowlock_verify(p.rival), ROWLOCK_OK, "the holder is not touched");
    loss_granted(l, p.rival, token);
    loss_is(l, rowlock_release(p.rival), ROWLOCK_OK, "and releases");
    OWNED(text) char *owner = strdup(rowlock_lock_owner(p.lock));
    check_undone(l, said, 0);
    loss_pass_before(l);
    close_pair(&p);
    if (!under_way(l))
        loss_is(l, loss_rows(l), 0, "closing takes back what has been granted since");
    loss_pass(l);
    loss_gone_or_explained(l, owner);
}

/* ---- wait */

enum { TICKET_MS = 1000 };

static int wait_for_it(rowlock_lock *lock)
{
    return rowlock_acquire(
        lock, OPTIONS(acquire, .ttl_ms = TTL_MS, .wait_ms = TTL_MS, .ticket_ms = TICKET_MS));
}

static long long tickets(const struct loss *l)
{
    return loss_int(l, "SELECT count(*) FROM %swaiters WHERE name = '%s'", l->prefix, l->name);
}

/* Another's lease ends meanwhile. A ticket of a request whose answer was lost stays for its own lease. */
static void lose_wait(struct loss *l)
{
    CLOSED_BY(close_pair) struct pair p = open_pair(l);
    loss_is(l, try_lock(p.rival, TICKET_MS / 2), ROWLOCK_OK, "another holds it at first");
    long long token = loss_next_token(l);
    int said = LOSING(l, wait_for_it(p.lock));
    loss_said(l, p.db, said, ROWLOCK_OK);
    loss_ok(l, tickets(l) == 0 || l->fired, "no ticket is left behind");
    loss_pass_before(l);
    if (said != ROWLOCK_OK)
        loss_result(l, p.db, wait_for_it(p.lock), ROWLOCK_OK, "the next acquire gets it");
    loss_granted(l, p.lock, token);
    loss_result(l, p.db, rowlock_release(p.lock), ROWLOCK_OK, "it is released");
    loss_is(l, rowlock_release(p.rival), ROWLOCK_LOST, "the client that let it expire finds out");
    loss_pass(l);
    loss_gone_or_explained(l, rowlock_lock_owner(p.lock));
    if (loss_rows(l) == 0)
        loss_rival_gets(l, token);
    loss_run(l, "DELETE FROM %swaiters WHERE name = '%s'", l->prefix, l->name);
}

/* A wait that ends without a grant, and perhaps without a connection to give its ticket back on. */
static void lose_wait_in_vain(struct loss *l, bool closes)
{
    enum { WAIT_MS = 300, LONG_TICKET_MS = 600000 };
    CLOSED_BY(close_pair) struct pair p = open_pair(l);
    loss_is(l, try_lock(p.rival, LONG_TTL_MS), ROWLOCK_OK, "another holds it at first");
    int said = LOSING(l, rowlock_acquire(p.lock, OPTIONS(acquire, .wait_ms = WAIT_MS,
                                                         .ticket_ms = LONG_TICKET_MS)));
    if (said != ROWLOCK_TIMEOUT) /* it also is that if the last requests are lost */
        loss_said(l, p.db, said, ROWLOCK_TIMEOUT);
    loss_pass(l);
    if (closes) {
        rowlock_lock_close(p.lock);
        p.lock = NULL;
    } else {
        OWNED(lock) rowlock_lock *other = must_lock(p.db, "another lock");
        /* A try on a slow machine, which was begun anew, may not have released it. */
        loss_run(l, "DELETE FROM %slocks WHERE name = 'another lock'", l->prefix);
        loss_result(l, p.db, try_lock(other, LONG_TTL_MS), ROWLOCK_OK, "another lock is acquired");
        loss_result(l, p.db, rowlock_release(other), ROWLOCK_OK, "and released");
    }
    loss_is(l, tickets(l), 0, "no ticket is left behind");
    loss_is(l, rowlock_release(p.rival), ROWLOCK_OK, "the lock is released");
    loss_is(l, try_lock(p.rival, LONG_TTL_MS), ROWLOCK_OK, "and is free");
}

static void lose_wait_then_call(struct loss *l)
{
    lose_wait_in_vain(l, false);
}

static void lose_wait_then_close(struct loss *l)
{
    lose_wait_in_vain(l, true);
}

/* ---- a lock that is held, and the loss of one call */

struct losing {
    struct pair p;
    long long token;
    int said;
};

static struct losing hold_and_lose(struct loss *l, int64_t ttl_ms, int (*call)(rowlock_lock *lock))
{
    struct losing r = {.p = open_pair(l)};
    loss_result(l, r.p.db, try_lock(r.p.lock, ttl_ms), ROWLOCK_OK, "granted at first");
    r.token = rowlock_lock_token(r.p.lock);
    r.said = LOSING(l, call(r.p.lock));
    loss_said(l, r.p.db, r.said, ROWLOCK_OK);
    return r;
}

static void end_losing(struct losing *r)
{
    close_pair(&r->p);
}

/* ---- close */

static void lose_acquire_and_close(struct loss *l)
{
    struct pair p = open_pair(l);
    int said = LOSING(l, try_lock(p.lock, TTL_MS));
    loss_said(l, p.db, said, ROWLOCK_OK);
    OWNED(text) char *owner = strdup(rowlock_lock_owner(p.lock));
    check_undone(l, said, 0);
    loss_pass_before(l);
    long long token = loss_token(l);
    close_pair(&p);
    long long left = loss_rows(l);
    loss_ok(l, left == 0 || loss_may_have_passed(l), "closing leaves nothing behind, %lld", left);
    loss_pass(l);
    loss_gone_or_explained(l, owner);
    if (loss_rows(l) == 0)
        loss_rival_gets(l, token);
}

/* What is lost is the taking back of a grant whose answer was lost. */
static void lose_withdraw(struct loss *l)
{
    CLOSED_BY(close_pair) struct pair p = open_pair(l);
    loss_result(l, p.db, try_lock(p.lock, TTL_MS), ROWLOCK_OK, "granted");
    p.lock->state = RLK_IDLE;
    p.lock->request_open = true;
    long long token = loss_token(l);
    loss_arm(l);
    rowlock_lock_close(p.lock);
    loss_disarm(l);
    p.lock = NULL;
    bool helpless = l->fired && l->mode == NOT_RECONNECTING;
    loss_ok(l, loss_rows(l) == 0 || helpless, "closing takes it back");
    loss_pass(l);
    if (loss_rows(l) == 1) {
        loss_is(l, loss_column(l, "expires - acquired"), TTL_MS * 1000LL,
                "what could not be taken back expires");
        loss_is(l, rowlock_break(l->others, l->name, token, NULL), ROWLOCK_OK, "or is broken");
    }
    loss_rival_gets(l, token);
}

/* ---- renew and verify */

static int renew_for_long(rowlock_lock *lock)
{
    return rowlock_renew(lock, LONG_TTL_MS);
}

static int renew_for_shorter(rowlock_lock *lock)
{
    return rowlock_renew(lock, LONG_TTL_MS / 10);
}

static void lose_renew(struct loss *l)
{
    CLOSED_BY(end_losing) struct losing r = hold_and_lose(l, LONG_TTL_MS / 2, renew_for_long);
    loss_not_overstated(l, r.p.lock);
    bool longer = rowlock_lock_remaining_ms(r.p.lock) > LONG_TTL_MS / 2,
         done = r.said == ROWLOCK_OK;
    loss_ok(l, longer == done, "what was not confirmed is not counted upon");
    loss_ok(l, r.said == ROWLOCK_EUNCERTAIN || (loss_column(l, "renewals") > 0) == done,
            "nothing is called undone that was done");
    if (r.said == ROWLOCK_ECONN) {
        loss_pass(l);
        loss_is(l, loss_column(l, "renewals"), 0, "nor is it done later");
    }
    loss_pass_before(l);
    loss_result(l, r.p.db, renew_for_long(r.p.lock), ROWLOCK_OK, "the next gets through");
    loss_pass(l);
    loss_granted(l, r.p.lock, r.token);
    loss_result(l, r.p.db, rowlock_release(r.p.lock), ROWLOCK_OK, "it is released");
    loss_is(l, loss_rows(l), 0, "and gone");
}

/* A shorter lease than the next renewal gives, by a request that may arrive after that. */
static void lose_shorter_renewal(struct loss *l)
{
    CLOSED_BY(end_losing) struct losing r = hold_and_lose(l, LONG_TTL_MS, renew_for_shorter);
    loss_not_overstated(l, r.p.lock);
    loss_pass_before(l);
    loss_result(l, r.p.db, renew_for_long(r.p.lock), ROWLOCK_OK, "a longer one follows");
    loss_not_overstated(l, r.p.lock);
    loss_pass(l);
    loss_not_overstated(l, r.p.lock);
    loss_result(l, r.p.db, rowlock_release(r.p.lock), ROWLOCK_OK, "it is released");
}

/* A renewal that arrives after the release does not make the lock stand again. */
static void lose_renewal_of_released(struct loss *l)
{
    CLOSED_BY(end_losing) struct losing r = hold_and_lose(l, LONG_TTL_MS, renew_for_long);
    loss_result(l, r.p.db, rowlock_release(r.p.lock), ROWLOCK_OK, "it is released");
    loss_pass(l);
    loss_is(l, loss_rows(l), 0, "and stays so");
    loss_rival_gets(l, r.token);
}

static void lose_verify(struct loss *l)
{
    OWNED(db) rowlock_db *db = loss_open(l);
    OWNED(lock) rowlock_lock *lock = loss_hold(l, db);
    int said = LOSING(l, rowlock_verify(lock));
    loss_read_said(l, db, said);
    loss_result(l, db, rowlock_verify(lock), ROWLOCK_OK, "it stands");
    loss_result(l, db, rowlock_release(lock), ROWLOCK_OK, "and is released");
}

static int note_address(rowlock_lock *lock)
{
    return rowlock_note(lock, "here");
}

static void lose_note(struct loss *l)
{
    CLOSED_BY(end_losing) struct losing r = hold_and_lose(l, LONG_TTL_MS, note_address);
    loss_result(l, r.p.db, note_address(r.p.lock), ROWLOCK_OK, "the same note is set again");
    loss_result(l, r.p.db, rowlock_release(r.p.lock), ROWLOCK_OK, "the lock is released");
}

/* ---- release */

/* What a release leaves that ended in a failure. */
static void check_counts_as_holding(const struct loss *l, const rowlock_lock *lock, int said,
                                    long long token)
{
    loss_is(l, rowlock_lock_token(lock), token, "the handle counts as holding");
    loss_ok(l, (rowlock_lock_remaining_ms(lock) == 0) == (said == ROWLOCK_EUNCERTAIN),
            "whether its lease is counted upon is known: %s", rowlock_result_name(said));
}

static void lose_release(struct loss *l)
{
    CLOSED_BY(end_losing) struct losing r = hold_and_lose(l, LONG_TTL_MS, rowlock_release);
    check_undone(l, r.said, 1);
    loss_ok(l, r.said != ROWLOCK_OK || loss_rows(l) == 0, "nothing is called done that was not");
    loss_pass_before(l);
    if (r.said != ROWLOCK_OK) {
        check_counts_as_holding(l, r.p.lock, r.said, r.token);
        loss_result(l, r.p.db, rowlock_release(r.p.lock), ROWLOCK_OK,
                    "called again it is released");
    }
    loss_is(l, loss_rows(l), 0, "no grant is left behind");
    loss_is(l, loss_token(l), r.token, "no other grant was made");
    loss_is(l, rowlock_release(r.p.lock), ROWLOCK_EMISUSE, "the handle knows it");
    loss_is(l, try_lock(r.p.rival, LONG_TTL_MS), ROWLOCK_OK, "another gets the lock");
    loss_pass(l);
    loss_granted(l, r.p.rival, r.token + 1);
    loss_is(l, rowlock_release(r.p.rival), ROWLOCK_OK, "and keeps it");
}

/* Between the lost answer and the next question another client gets the lock. */
static void lose_release_to_rival(struct loss *l)
{
    struct losing r = hold_and_lose(l, LONG_TTL_MS, rowlock_release);
    loss_pass_before(l);
    if (r.said != ROWLOCK_OK && loss_rows(l) == 0) {
        loss_is(l, r.said, ROWLOCK_EUNCERTAIN, "we do not know");
        loss_is(l, try_lock(r.p.rival, LONG_TTL_MS), ROWLOCK_OK, "a rival gets the lock");
        check_counts_as_holding(l, r.p.lock, r.said, r.token);
        loss_is(l, rowlock_release(r.p.lock), ROWLOCK_LOST, "called again it says so");
        loss_is(l, rowlock_release(r.p.lock), ROWLOCK_EMISUSE, "then nothing is held");
        loss_is(l, rowlock_verify(r.p.rival), ROWLOCK_OK, "the rival's grant is not touched");
    }
    close_pair(&r.p);
    loss_is(l, loss_rows(l), 0, "closing settles it: nothing is left behind");
}

/* The grant is broken between the lost request and the next question. */
static void lose_release_of_broken(struct loss *l)
{
    struct losing r = hold_and_lose(l, LONG_TTL_MS, rowlock_release);
    loss_pass(l);
    if (r.said != ROWLOCK_OK && loss_rows(l) == 1) {
        loss_is(l, rowlock_break(l->others, l->name, r.token, NULL), ROWLOCK_OK, "it is broken");
        check_counts_as_holding(l, r.p.lock, r.said, r.token);
        loss_is(l, rowlock_release(r.p.lock), ROWLOCK_LOST, "called again it says so");
    }
    close_pair(&r.p);
    loss_is(l, loss_rows(l), 0, "nothing is left behind");
}

const struct operation lost_lock_operations[] = {
    {"acquire", lose_acquire, RECONNECTS | POOLS | CONNECTS, 0},
    {"take over", lose_takeover, RECONNECTS | POOLS, 0},
    {"try a held lock", lose_busy, RECONNECTS | POOLS, 0},
    /* After the first requests a waiter's looks are alike. */
    {"wait", lose_wait, RECONNECTS | MANY | VARIES, 14},
    {"wait in vain", lose_wait_then_call, RECONNECTS | MANY | VARIES, 6},
    {"wait in vain and close", lose_wait_then_close, MANY | VARIES, 6},
    {"acquire and close", lose_acquire_and_close, RECONNECTS | POOLS, 0},
    {"close", lose_withdraw, RECONNECTS | POOLS, 0},
    {"renew", lose_renew, RECONNECTS | POOLS | CONNECTS, 0},
    {"renew for shorter", lose_shorter_renewal, RECONNECTS | POOLS, 0},
    {"renew and release", lose_renewal_of_released, RECONNECTS | POOLS, 0},
    {"note", lose_note, RECONNECTS | POOLS, 0},
    {"verify", lose_verify, RECONNECTS, 0},
    {"release", lose_release, RECONNECTS | POOLS | CONNECTS, 0},
    {"release to a rival", lose_release_to_rival, POOLS, 0},
    {"release of a broken grant", lose_release_of_broken, 0, 0},
    {NULL, NULL, 0, 0},
};
