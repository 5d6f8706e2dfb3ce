/* SPDX-License-Identifier: MIT
 *
 * Several locks at once: all of them or none. */
#include "crowd.h"

#include "faultproxy.h"

enum { COUNT = 3 };

/* Not in the order of their names, which is B, a, b. */
static const char *const names[COUNT] = {"many b", "many B", "many a"};

struct bunch {
    const struct contract *c;
    rowlock_db *db;
    rowlock_lock *locks[COUNT];
    rowlock_acquire_options how;
    size_t which;
    atomic_bool ended;
};

static void bunch_open_with(struct bunch *b, const struct contract *c, const char *url,
                            const rowlock_db_options *options)
{
    *b = (struct bunch){.c = c, .db = must_open_with(url, options), .which = 77};
    b->how = (rowlock_acquire_options)ROWLOCK_ACQUIRE_OPTIONS_INIT;
    b->how.ttl_ms = HELD_MS;
    for (int i = 0; i < COUNT; i++)
        b->locks[i] = must_lock(b->db, names[i]);
}

static void bunch_open(struct bunch *b, const struct contract *c, const char *url)
{
    bunch_open_with(b, c, url, NULL);
}

static void bunch_close(struct bunch *b)
{
    close_each_lock(b->locks, COUNT);
    rowlock_db_close(b->db);
}

static int take(void *argument)
{
    struct bunch *b = argument;
    int result = rowlock_acquire_all(b->locks, COUNT, &b->how, &b->which);
    b->ended = true;
    return result;
}

static void takes(struct bunch *b, int want, const char *what)
{
    is_result(b->db, take(b), want, "%s", what);
}

/* Not to be had because of that one. */
static void is_told(struct bunch *b, int want, int which, const char *what)
{
    takes(b, want, what);
    tap_is_int((long long)b->which, which, "because of that one");
}

static void holds(const struct bunch *b, int want)
{
    int count = 0;
    for (int i = 0; i < COUNT; i++)
        count += rowlock_lock_token(b->locks[i]) != 0;
    tap_is_int(count, want, want ? "all are held" : "none is held");
}

static int count_of(const struct contract *c, const char *table)
{
    return (int)int_on(c, "SELECT count(*) FROM rowlock_%s WHERE name LIKE 'many%%'", table);
}

static void stand(const struct contract *c, int rows, int tickets, const char *what)
{
    tap_is_int(count_of(c, "locks"), rows, "%s: so many grants", what);
    tap_is_int(count_of(c, "waiters"), tickets, "%s: so many tickets", what);
}

static void release_all(struct bunch *b)
{
    int released = 0;
    for (int i = 0; i < COUNT; i++)
        released += rowlock_release(b->locks[i]) == ROWLOCK_OK;
    tap_is_int(released, COUNT, "each is released by itself");
}

/* One of them is another's. */
static void rival_open(struct guest *rival, const struct contract *c, int which, int permits)
{
    guest_open(rival, c, names[which], permits);
    guest_tries(rival, ROWLOCK_OK, "one is another's");
}

/* ---- all or nothing */

static void all_or_nothing(const struct contract *c, int permits)
{
    struct bunch b;
    struct guest rival;
    bunch_open(&b, c, c->url);
    b.how.permits = permits;
    takes(&b, ROWLOCK_OK, "several locks that are free");
    holds(&b, COUNT);
    stand(c, COUNT, 0, "each is a row");
    for (int i = 0; i < COUNT; i++) {
        is_result(b.db, rowlock_verify(b.locks[i]), ROWLOCK_OK, "that is ours");
        is_result(b.db, rowlock_renew(b.locks[i], 0), ROWLOCK_OK, "and renewed");
    }
    release_all(&b);
    for (int i = 0; i < COUNT; i++) {
        rival_open(&rival, c, i, 0);
        is_told(&b, ROWLOCK_BUSY, i, "then none is to be had");
        holds(&b, 0);
        stand(c, 1, 0, "nothing is ours");
        tap_is_int(holder_of(b.locks[i]).token, rowlock_lock_token(rival.lock),
                   "the holder of that one is told");
        if (i + 1 < COUNT)
            tap_is_int(holder_of(b.locks[i + 1]).token, 0, "of others, which were never met, none");
        b.how.wait_ms = 30;
        is_told(&b, ROWLOCK_TIMEOUT, i, "nor is waiting of use");
        stand(c, 1, 0, "nothing is left of the wait");
        b.how.wait_ms = 0;
        guest_close(&rival);
    }
    /* All of these have been granted before. */
    leave_ticket(c, names[1], 1, unix_clock_us() + 100000000);
    is_told(&b, ROWLOCK_BUSY, 1, "a line before one of them is an obstacle");
    b.how.unfair = 1;
    takes(&b, ROWLOCK_OK, "unless one passes it by");
    release_all(&b);
    exec_on(c, "DELETE FROM rowlock_waiters WHERE name LIKE 'many%%'");
    bunch_close(&b);
    stand(c, 0, 0, "nothing is left");
}

static void expired_ones(const struct contract *c)
{
    CLOSED_BY(bunch_close) struct bunch b;
    CLOSED_BY(guest_close) struct guest gone, reader;
    bunch_open(&b, c, c->url);
    guest_open(&gone, c, names[0], 0);
    guest_open(&reader, c, names[1], ROWLOCK_SHARED);
    guest_tries(&gone, ROWLOCK_OK, "one is held for a moment");
    guest_tries(&reader, ROWLOCK_OK, "one is read for a moment");
    exec_on(c, "UPDATE rowlock_locks SET expires = 5 WHERE name LIKE 'many%%'");
    takes(&b, ROWLOCK_OK, "leases that are over are no obstacle");
    stand(c, COUNT, 0, "they are taken over");
    is_result(gone.db, rowlock_renew(gone.lock, 0), ROWLOCK_LOST, "the one");
    is_result(reader.db, rowlock_renew(reader.lock, 0), ROWLOCK_LOST, "and the other");
    tap_ok(rowlock_lock_token(b.locks[0]) > rowlock_lock_token(gone.lock), "with a higher token");
}

static void kinds(const struct contract *c)
{
    CLOSED_BY(bunch_close) struct bunch one, two;
    CLOSED_BY(guest_close) struct guest counter;
    bunch_open(&one, c, c->url);
    bunch_open(&two, c, c->url);
    one.how.permits = two.how.permits = ROWLOCK_SHARED;
    takes(&one, ROWLOCK_OK, "several are shared");
    takes(&two, ROWLOCK_OK, "by two");
    stand(c, 2 * COUNT, 0, "a row for each and both");
    release_all(&one);
    release_all(&two);
    rival_open(&counter, c, 2, 4);
    is_told(&one, ROWLOCK_MISMATCH, 2, "one is counted, then they are not shared");
    holds(&one, 0);
}

/* ---- waiting */

static struct helper *start_waiting(struct bunch *b)
{
    b->how.wait_ms = ROWLOCK_FOREVER;
    struct helper *thread = helper_start(take, b);
    tap_ok(EVENTUALLY(b->ended || count_of(b->c, "waiters") > 0),
           "the client that wants all waits");
    return thread;
}

/* A caller that needs two that are held in turn by others has neither meanwhile. */
static void waits_without_holding(const struct contract *c)
{
    CLOSED_BY(bunch_close) struct bunch b;
    CLOSED_BY(guest_close) struct guest first, second, third;
    bunch_open(&b, c, c->url);
    rival_open(&first, c, 2, 0);
    rival_open(&second, c, 0, 0);
    struct helper *thread = start_waiting(&b);
    stand(c, 2, 1, "it holds none, but stands in one queue");
    guest_releases(&first, ROWLOCK_OK, "the first is released");
    guest_open(&third, c, names[1], 0);
    /* Where both look at once, each may take the other for a holder, and stand in line for a moment. */
    third.how.wait_ms = slow_ms(60000);
    is_result(third.db, rowlock_acquire(third.lock, &third.how), ROWLOCK_OK,
              "one that it does not wait for is free for others");
    guest_releases(&third, ROWLOCK_OK, "for a while");
    tap_ok(!b.ended, "it waits on");
    guest_releases(&second, ROWLOCK_OK, "until the second is released");
    is_result(b.db, helper_join(thread), ROWLOCK_OK, "then it gets all");
    holds(&b, COUNT);
    stand(c, COUNT, 0, "it stands in no queue");
}

static void waits_in_vain(const struct contract *c)
{
    CLOSED_BY(bunch_close) struct bunch b;
    CLOSED_BY(guest_close) struct guest holder;
    bunch_open(&b, c, c->url);
    rival_open(&holder, c, 1, 0);
    struct helper *thread = start_waiting(&b);
    rowlock_cancel(b.db);
    is_result(b.db, helper_join(thread), ROWLOCK_CANCELLED, "and is cancelled");
    stand(c, 1, 0, "nothing is left of it");
}

/* ---- on the wire */

static void one_round_trip(const struct contract *c, struct faultproxy *proxy, const char *url)
{
    CLOSED_BY(bunch_close) struct bunch b;
    bunch_open(&b, c, url);
    takes(&b, ROWLOCK_OK, "several locks, for the first time on a connection");
    release_all(&b);
    faultproxy_round_trips(proxy);
    takes(&b, ROWLOCK_OK, "for the second time");
    tap_is_int(faultproxy_round_trips(proxy), 1, "take one round trip");
    release_all(&b);
    tap_is_int(faultproxy_round_trips(proxy), COUNT, "and their releases one each");
    takes(&b, ROWLOCK_OK, "again");
    faultproxy_round_trips(proxy);
    CLOSED_BY(bunch_close) struct bunch rival;
    bunch_open(&rival, c, url);
    takes(&rival, ROWLOCK_BUSY, "a busy try");
    /* A pool may open one connection after the other. */
    int trips = 3;
    for (int i = 0; i < 10 && trips > 2; i++) {
        faultproxy_round_trips(proxy);
        takes(&rival, ROWLOCK_BUSY, "and the next");
        trips = faultproxy_round_trips(proxy);
    }
    tap_ok(trips <= 2, "takes one, or two to tell the holder");
}

/* They have been granted and released once. Returns the first one's token. */
static int64_t bunch_open_known(struct bunch *b, const struct contract *c, const char *url,
                                bool reconnects)
{
    bunch_open_with(b, c, url, OPTIONS(db, .reconnect_ms = reconnects ? 0 : -1));
    takes(b, ROWLOCK_OK, "several locks");
    int64_t token = rowlock_lock_token(b->locks[0]);
    release_all(b);
    return token;
}

/* Each request of the call is lost, before the server has seen it or after it has carried it out. */
static void lost_answers(const struct contract *c, struct faultproxy *proxy, const char *url,
                         enum fault_side side)
{
    const struct fault cut = {.kind = FAULT_CUT, .side = side};
    const char *what = side == ON_ANSWER ? "answer" : "request";
    for (int reconnects = 0; reconnects < 2; reconnects++) {
        struct bunch b;
        int64_t token = bunch_open_known(&b, c, url, reconnects);
        faultproxy_arm(proxy, 1, cut);
        int result = take(&b);
        if (reconnects) {
            tap_is_int(result, ROWLOCK_OK, "the %s of the call is lost: it is asked again", what);
        } else {
            tap_ok(result == ROWLOCK_EUNCERTAIN || result == ROWLOCK_ECONN,
                   "the %s of the call is lost, and it cannot be asked again (%s)", what,
                   rowlock_result_name(result));
            holds(&b, 0);
            takes(&b, ROWLOCK_OK, "the next call gets them");
        }
        tap_is_int(rowlock_lock_token(b.locks[0]), token + 1, "by the one grant there is");
        stand(c, COUNT, 0, "all are there");
        release_all(&b);
        faultproxy_arm(proxy, 1, cut);
        take(&b);
        bunch_close(&b);
        faultproxy_arm(proxy, 0, cut);
        stand(c, 0, 0, "closing leaves nothing behind");
    }
}

/* What the lost answer said is true no longer when the call is repeated. */
static void lost_and_broken(const struct contract *c, struct faultproxy *proxy, const char *url)
{
    CLOSED_BY(bunch_close) struct bunch b;
    bunch_open_known(&b, c, url, false);
    faultproxy_arm(proxy, 1, (struct fault){.kind = FAULT_CUT, .side = ON_ANSWER});
    takes(&b, ROWLOCK_EUNCERTAIN, "the answer of the call is lost");
    OWNED(db) rowlock_db *admin = must_open(c->url);
    is_result(admin, rowlock_break(admin, names[1], 0, NULL), ROWLOCK_OK,
              "and one of the grants broken");
    takes(&b, ROWLOCK_OK, "the next call gets all, the broken one anew");
    for (int i = 0; i < COUNT; i++)
        is_result(b.db, rowlock_verify(b.locks[i]), ROWLOCK_OK, "each is ours");
    stand(c, COUNT, 0, "by one grant");
    release_all(&b);
}

void contract_many(const struct contract *c)
{
    OWNED(text) char *url = NULL;
    static const int all_kinds[] = {0, ROWLOCK_SHARED, 3};
    for (size_t i = 0; i < sizeof all_kinds / sizeof all_kinds[0]; i++)
        all_or_nothing(c, all_kinds[i]);
    expired_ones(c);
    kinds(c);
    waits_without_holding(c);
    waits_in_vain(c);
    OWNED(proxy) struct faultproxy *proxy = c->has_server ? faultproxy_start(c->url, &url) : NULL;
    if (proxy) {
        one_round_trip(c, proxy, url);
        lost_answers(c, proxy, url, ON_REQUEST);
        lost_answers(c, proxy, url, ON_ANSWER);
        lost_and_broken(c, proxy, url);
    }
    exec_on(c, "DELETE FROM rowlock_tokens WHERE name LIKE 'many%%'");
}
