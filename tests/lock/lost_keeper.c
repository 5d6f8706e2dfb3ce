/* SPDX-License-Identifier: MIT
 *
 * What a keeper loses, while its lock is on another connection; see loss.h. */
#include "loss.h"

/* Between two looks. Many look at the same time, and what they watch must not be late for that. */
enum { LOOK_MS = 70, LOOK_CLOSELY_MS = 20 };

struct kept {
    rowlock_keeper *keeper;
    rowlock_db *db;
    rowlock_lock *lock;
    int64_t ttl_ms;
    bool jeopardy, lost; /* seen at some time */
    long long renewals; /* when last looked at */
};

/* The lease is long enough for a deadline, if it takes one to notice, and for reconnecting. */
static struct kept keep(struct loss *l)
{
    struct kept k = {.db = must_open(l->ours)};
    rowlock_db_options options = loss_options(l);
    rowlock_error err = ROWLOCK_ERROR_INIT;
    int64_t end_ms = clock_ms() + OPENING_MS;
    while (open_keeper_at(l->via, &options, &k.keeper, &err) != ROWLOCK_OK)
        options = loss_longer(l, end_ms, err.text);
    k.ttl_ms = (loss_is_cut(l->way) ? 4 : 6) * loss_deadline_ms(l);
    k.lock = must_lock(k.db, l->name);
    rowlock_acquire_options acquire = *OPTIONS(acquire, .ttl_ms = k.ttl_ms, .keeper = k.keeper);
    loss_result(l, k.db, rowlock_acquire(k.lock, &acquire), ROWLOCK_OK, "granted, and kept");
    return k;
}

/* Nothing is overstated at any moment, by our clock asked last. A renewal in between does not count. */
static bool look(struct loss *l, struct kept *k)
{
    long long there_ms, counted_ms;
    rowlock_state state;
    do {
        k->renewals = loss_column(l, "renewals");
        there_ms = loss_left_ms(l);
        counted_ms = rowlock_lock_remaining_ms(k->lock);
        state = rowlock_lock_state(k->lock);
    } while (loss_column(l, "renewals") != k->renewals);
    k->jeopardy |= state == ROWLOCK_STATE_JEOPARDY;
    k->lost |= state == ROWLOCK_STATE_LOST;
    bool honest = counted_ms <= there_ms && (there_ms > 0 || state == ROWLOCK_STATE_LOST);
    return honest || loss_ok(l, false, "state %d, %lld ms are counted upon, the table has %lld",
                             (int)state, counted_ms, there_ms);
}

static bool is_well(struct kept *k, long long more_than)
{
    return k->renewals > more_than && rowlock_lock_state(k->lock) == ROWLOCK_STATE_HELD;
}

static bool watch_until(struct loss *l, struct kept *k, int64_t end_ms,
                        bool (*is_enough)(struct kept *k, long long more_than), long long more_than)
{
    bool honest = true;
    while (honest && clock_ms() < end_ms && !(is_enough && is_enough(k, more_than))) {
        honest = look(l, k);
        sleep_ms(LOOK_MS);
    }
    return honest;
}

static void let_go(struct loss *l, struct kept *k)
{
    loss_result(l, k->db, rowlock_release(k->lock), ROWLOCK_OK, "it is released");
    loss_is(l, rowlock_lock_state(k->lock), ROWLOCK_STATE_NONE, "and nothing is held");
    loss_pass(l);
    loss_is(l, loss_rows(l), 0, "nothing makes it stand again");
    rowlock_keeper_close(k->keeper);
    rowlock_lock_close(k->lock);
    rowlock_db_close(k->db);
    loss_is(l, loss_rows(l), 0, "nor when the keeper ends");
}

/* The first request comes for certain, however slow the machine is. Others may not come in time. */
static bool watch_loss(struct loss *l, struct kept *k, bool ends_it)
{
    int64_t begin_ms = clock_ms(), end_ms = begin_ms + k->ttl_ms * 2 / 3;
    bool honest = true, fired = false;
    loss_arm(l);
    while (honest && !(ends_it && fired) &&
           (clock_ms() < end_ms || (l->nth == 1 && !fired && clock_ms() < begin_ms + OPENING_MS))) {
        honest = look(l, k);
        sleep_ms(ends_it ? LOOK_CLOSELY_MS : LOOK_MS);
        fired = faultproxy_fired(l->proxy);
    }
    loss_disarm(l);
    return honest;
}

/* The nth request of the keeper: it is over before the lease ends, so the lock is never lost. */
static void lose_heartbeat(struct loss *l)
{
    struct kept k = keep(l);
    bool honest = watch_loss(l, &k, false);
    honest = honest && watch_until(l, &k, clock_ms() + k.ttl_ms, is_well, k.renewals);
    loss_ok(l, honest, "never more is told than the table has");
    loss_ok(l, !k.lost && is_well(&k, 0), "the lease is renewed on and on");
    let_go(l, &k);
}

/* Released while a renewal is lost. */
static void lose_last_heartbeat(struct loss *l)
{
    struct kept k = keep(l);
    bool honest = watch_loss(l, &k, true);
    loss_ok(l, honest, "never more is told than the table has");
    let_go(l, &k);
}

/* ---- the keeper's server is silent for longer, which is not a matter of requests */

static void lose_for_a_while(struct loss *l)
{
    struct kept k = keep(l);
    faultproxy_blackhole(l->proxy);
    l->fired = true;
    bool honest = watch_until(l, &k, clock_ms() + k.ttl_ms * 7 / 10, NULL, 0);
    loss_ok(l, k.jeopardy && !k.lost, "silence puts the lease into jeopardy");
    faultproxy_heal(l->proxy);
    honest = honest && watch_until(l, &k, clock_ms() + k.ttl_ms, is_well, k.renewals);
    loss_ok(l, honest, "never more is told than the table has");
    loss_ok(l, is_well(&k, 0), "and it is held again when that is over");
    let_go(l, &k);
}

static void lose_for_good(struct loss *l)
{
    struct kept k = keep(l);
    faultproxy_blackhole(l->proxy);
    l->fired = true;
    bool honest = watch_until(l, &k, clock_ms() + k.ttl_ms * 13 / 10, NULL, 0);
    loss_ok(l, honest, "never more is told than the table has");
    loss_ok(l, k.jeopardy && k.lost, "in jeopardy, then lost");
    long long renewals = k.renewals;
    faultproxy_heal(l->proxy);
    watch_until(l, &k, clock_ms() + k.ttl_ms / 2, NULL, 0);
    loss_is(l, rowlock_lock_state(k.lock), ROWLOCK_STATE_LOST, "lost is final");
    loss_is(l, k.renewals, renewals, "and no keeper renews it");
    let_go(l, &k);
}

const struct operation lost_keeper_operations[] = {
    {"keep", lose_heartbeat, RECONNECTS | VARIES | ALIKE, 0},
    {"keep and release", lose_last_heartbeat, RECONNECTS | VARIES | ALIKE, 0},
    {"keep, silence", lose_for_a_while, ONCE, 0},
    {"keep, long silence", lose_for_good, ONCE, 0},
    {NULL, NULL, 0, 0},
};
