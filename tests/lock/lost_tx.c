/* SPDX-License-Identifier: MIT
 *
 * What gets lost of calls that join the caller's transaction, up to and with its COMMIT; see loss.h.
 */
#include "loss.h"

/* A transaction on an adopted connection through the proxy, and a lock straight to the server. */
struct deal {
    void *session;
    rowlock_db *tx;
    rowlock_lock *lock;
    struct loss *loss;
    struct helper *rescuer;
    atomic_bool over;
};

/* Cuts what still waits three deadlines after something was swallowed. */
static int rescue(void *argument)
{
    struct deal *d = argument;
    while (!d->over && !faultproxy_fired(d->loss->proxy))
        sleep_ms(10);
    int64_t end_ms = clock_ms() + 3 * loss_deadline_ms(d->loss);
    while (!d->over && clock_ms() < end_ms)
        sleep_ms(10);
    if (!d->over)
        faultproxy_cut(d->loss->proxy);
    return 0;
}

/* BEGIN is not looked at, what follows is. A COMMIT that is swallowed would be waited for for ever; and
 * on MySQL how long an adopted connection waits is for its owner to say. A slow machine begins again. */
static struct deal begin(struct loss *l)
{
    char why[300] = "";
    const char *timeout = textf("read_timeout=%d", (int)(loss_deadline_ms(l) / 1000));
    OWNED(text)
    char *url =
        strcmp(l->raw->name, "mysql") == 0 ? url_with(l->through, timeout) : strdup(l->through);
    struct deal d = {.lock = must_lock(l->others, l->name), .loss = l};
    rowlock_db_options options = loss_options(l);
    rowlock_error err = ROWLOCK_ERROR_INIT;
    for (int64_t end_ms = clock_ms() + OPENING_MS;;) {
        d.session = l->raw->open(url);
        options.prefix = l->prefix;
        int said = l->raw->adopt(&d.tx, d.session, &options, &err);
        if (said == ROWLOCK_OK && l->raw->run(d.session, "BEGIN", why, sizeof why))
            break;
        options = loss_longer(l, end_ms, said == ROWLOCK_OK ? why : err.text);
        rowlock_db_close(d.tx);
        l->raw->close(d.session);
    }
    return d;
}

static void arm(struct loss *l, struct deal *d)
{
    loss_arm(l);
    if (l->way == REQUEST_SWALLOWED || l->way == ANSWER_SWALLOWED)
        d->rescuer = helper_start(rescue, d);
}

/* A connection that is lost took the transaction along; what the caller can do is close it. */
enum outcome { COMMITTED, UNDONE, UNKNOWN };

static enum outcome end(struct loss *l, struct deal *d, int said)
{
    char why[300] = "";
    enum outcome outcome = UNDONE;
    if (said == ROWLOCK_OK) {
        outcome = l->raw->run(d->session, "COMMIT", why, sizeof why) ? COMMITTED : UNKNOWN;
    } else {
        rowlock_error err = error_of(d->tx);
        loss_is(l, said, ROWLOCK_ECONN, "the transaction went with its connection: %s", err.text);
        loss_is(l, err.transaction_over, 1, "which is told");
    }
    d->over = true;
    loss_disarm(l);
    loss_ok(l, l->fired || outcome == COMMITTED, "where nothing is lost it is committed");
    rowlock_db_close(d->tx);
    l->raw->close(d->session);
    loss_pass(l);
    faultproxy_cut(l->proxy);
    if (d->rescuer)
        helper_join(d->rescuer);
    return outcome;
}

/* The outcome of a transaction with this call in it. The loss is armed from the call to the COMMIT. */
#define DEALING(l, d, call) (arm(l, d), end(l, d, call))

static void close_deal(struct deal *d)
{
    rowlock_lock_close(d->lock);
}

/* The server undoes what it has lost the client of, a moment later. */
static bool becomes(struct loss *l, long long (*what)(const struct loss *l), long long want)
{
    return EVENTUALLY(what(l) == want);
}

static void lose_guard(struct loss *l)
{
    CLOSED_BY(close_deal) struct deal d = begin(l);
    loss_result(l, l->others, try_lock(d.lock, LONG_TTL_MS), ROWLOCK_OK, "granted at first");
    long long token = rowlock_lock_token(d.lock);
    DEALING(l, &d, rowlock_guard(d.lock, d.tx));
    loss_granted(l, d.lock, token);
    loss_result(l, l->others, rowlock_break(l->others, l->name, token, NULL), ROWLOCK_OK,
                "nothing is guarded any more");
    loss_is(l, rowlock_release(d.lock), ROWLOCK_LOST, "which the holder finds out");
}

static void lose_tx_acquire(struct loss *l)
{
    CLOSED_BY(close_deal) struct deal d = begin(l);
    long long token = loss_next_token(l);
    enum outcome outcome =
        DEALING(l, &d, rowlock_tx_acquire(d.lock, d.tx, OPTIONS(acquire, .ttl_ms = LONG_TTL_MS)));
    if (outcome == COMMITTED) {
        loss_granted(l, d.lock, token);
        loss_result(l, l->others, rowlock_release(d.lock), ROWLOCK_OK, "it is released");
    } else if (outcome == UNDONE) {
        loss_ok(l, becomes(l, loss_rows, 0), "nothing of it is there");
        loss_is(l, rowlock_lock_token(d.lock), 0, "nor in the handle");
    } else {
        bool there = loss_rows(l) == 1;
        loss_result(l, l->others, rowlock_verify(d.lock), there ? ROWLOCK_OK : ROWLOCK_LOST,
                    "the handle finds out");
        loss_is(l, rowlock_release(d.lock), there ? ROWLOCK_OK : ROWLOCK_LOST, "and releases");
    }
    loss_rival_gets(l, outcome == COMMITTED ? token : 0);
}

static void lose_tx_release(struct loss *l)
{
    CLOSED_BY(close_deal) struct deal d = begin(l);
    loss_result(l, l->others, try_lock(d.lock, LONG_TTL_MS), ROWLOCK_OK, "granted at first");
    long long token = rowlock_lock_token(d.lock);
    enum outcome outcome = DEALING(l, &d, rowlock_tx_release(d.lock, d.tx));
    if (outcome == COMMITTED) {
        loss_is(l, loss_rows(l), 0, "the lock went with the commit");
        loss_result(l, l->others, rowlock_release(d.lock), ROWLOCK_OK,
                    "which the handle finds out");
    } else if (outcome == UNDONE) {
        loss_granted(l, d.lock, token);
        loss_result(l, l->others, rowlock_renew(d.lock, 0), ROWLOCK_OK, "it is held still");
        loss_result(l, l->others, rowlock_release(d.lock), ROWLOCK_OK, "and released");
    } else {
        loss_result(l, l->others, rowlock_release(d.lock), ROWLOCK_OK,
                    "released by now in any case");
    }
    loss_ok(l, becomes(l, loss_rows, 0), "it is gone");
    loss_rival_gets(l, token);
}

static void lose_tx_fence(struct loss *l)
{
    CLOSED_BY(close_deal) struct deal d = begin(l);
    enum outcome outcome = DEALING(l, &d, rowlock_fence(d.tx, l->name, 5));
    if (outcome != UNKNOWN)
        loss_ok(l, becomes(l, loss_seen, outcome == COMMITTED ? 5 : 0),
                "what was seen is committed");
    loss_result(l, l->others, rowlock_fence(l->others, l->name, 4),
                loss_seen(l) == 5 ? ROWLOCK_STALE : ROWLOCK_OK,
                "no session has it locked any more");
}

const struct operation lost_tx_operations[] = {
    {"guard", lose_guard, 0, 0},
    {"acquire in a transaction", lose_tx_acquire, 0, 0},
    {"release in a transaction", lose_tx_release, 0, 0},
    {"fence in a transaction", lose_tx_fence, 0, 0},
    {NULL, NULL, 0, 0},
};
