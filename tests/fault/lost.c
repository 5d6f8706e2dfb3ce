/* SPDX-License-Identifier: MIT
 *
 * Lost requests and lost answers; see lost.h. What core makes of every class of answer is in the
 * unit tests; here it is shown that drivers give the right class, and that the tables agree.
 */
#include "lost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faultproxy.h"
#include "internal.h"
#include "quick.h"
#include "tap.h"

enum { TTL_MS = 60000, REQUESTS_MAX = 30 };

struct lost {
    const struct raw *raw;
    const char *url; /* straight to the server */
    char *ours, *via; /* with our prefix: straight, and through the proxy */
    struct faultproxy *proxy;
    void *session;
    int serial;
};

/* One way to lose something. */
struct loss {
    int nth;
    struct fault fault;
    bool reconnects;
    char text[80]; /* all of that, for people */
    char name[40]; /* of a lock that nobody has used before */
};

static long long rows(struct lost *l, const char *name)
{
    return raw_int(l->raw, l->session, "SELECT count(*) FROM lost_locks WHERE name = '%s'", name);
}

static long long token_of(struct lost *l, const char *table, const char *name)
{
    return raw_int(l->raw, l->session, "SELECT token FROM lost_%s WHERE name = '%s'", table, name);
}

static rowlock_db *open_via(struct lost *l, const struct loss *loss)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.reconnect_ms = loss->reconnects ? slow_ms(5000) : -1;
    return must_open_with(l->via, &options);
}

static rowlock_lock *hold(rowlock_db *db, const struct loss *loss)
{
    rowlock_lock *lock = must_lock(db, loss->name);
    if (try_lock(lock, TTL_MS) != ROWLOCK_OK)
        tap_ok(false, "a lock is granted at first: %s", why(db));
    return lock;
}

static bool is_loss(int result)
{
    return result == ROWLOCK_ECONN || result == ROWLOCK_EUNCERTAIN;
}

/* ---- acquire */

static void find_grant_again(struct lost *l, const struct loss *loss, rowlock_lock *lock, int said)
{
    long long there = rows(l, loss->name);
    tap_ok(is_loss(said), "acquire, %s: it is told as lost", loss->text);
    tap_ok(there == 0 || said == ROWLOCK_EUNCERTAIN, "nothing is called undone that was done");
    if (there == 1) {
        rowlock_db *db = must_open(l->ours);
        rowlock_lock *rival = must_lock(db, loss->name);
        tap_is_int(try_lock(rival, TTL_MS), ROWLOCK_BUSY, "the grant that nobody heard of stands");
        rowlock_lock_close(rival);
        rowlock_db_close(db);
    }
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "the next acquire gets it");
}

static bool lose_acquire(struct lost *l, const struct loss *loss)
{
    rowlock_db *db = open_via(l, loss);
    rowlock_lock *lock = must_lock(db, loss->name);
    faultproxy_arm(l->proxy, loss->nth, loss->fault);
    int said = try_lock(lock, TTL_MS);
    bool fired = faultproxy_fired(l->proxy);
    faultproxy_arm(l->proxy, 0, loss->fault);
    if (fired && !loss->reconnects)
        find_grant_again(l, loss, lock, said);
    else
        tap_is_int(said, ROWLOCK_OK, "acquire, %s: granted", loss->text);
    long long floor = raw_int(l->raw, l->session, "SELECT token_floor FROM lost_meta");
    tap_is_int(rows(l, loss->name), 1, "one grant is in the table");
    tap_is_int(rowlock_lock_token(lock), token_of(l, "locks", loss->name), "it is ours");
    tap_is_int(rowlock_lock_token(lock), floor + 1, "and there never was another");
    tap_is_int(token_of(l, "tokens", loss->name), floor + 1, "by its counter too");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "it is released");
    tap_is_int(rows(l, loss->name), 0, "and gone");
    rowlock_lock_close(lock);
    rowlock_db_close(db);
    return fired;
}

/* ---- renew */

static bool lose_renew(struct lost *l, const struct loss *loss)
{
    rowlock_db *db = open_via(l, loss);
    rowlock_lock *lock = hold(db, loss);
    faultproxy_arm(l->proxy, loss->nth, loss->fault);
    int said = rowlock_renew(lock, 2 * TTL_MS);
    bool fired = faultproxy_fired(l->proxy);
    faultproxy_arm(l->proxy, 0, loss->fault);
    long long renewals = raw_int(l->raw, l->session,
                                 "SELECT renewals FROM lost_locks WHERE name = '%s'", loss->name);
    int64_t left = rowlock_remaining_ms(lock);
    if (fired && !loss->reconnects) {
        tap_ok(is_loss(said), "renew, %s: it is told as lost", loss->text);
        tap_ok(renewals == 0 || said == ROWLOCK_EUNCERTAIN,
               "nothing is called undone that was done");
        tap_ok(left <= TTL_MS, "what nobody confirmed is not counted upon");
        tap_is_int(rowlock_renew(lock, 2 * TTL_MS), ROWLOCK_OK, "the next renewal gets through");
    } else {
        tap_is_int(said, ROWLOCK_OK, "renew, %s: renewed", loss->text);
        tap_ok(renewals >= 1 && left > TTL_MS, "in the table and by our clock");
    }
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "it is the same grant all the time");
    rowlock_lock_close(lock);
    rowlock_db_close(db);
    return fired;
}

/* ---- verify and list: plain reads */

static int count(void *context, const rowlock_grant *grant)
{
    (void)grant;
    ++*(int *)context;
    return 0;
}

static bool lose_reads(struct lost *l, const struct loss *loss)
{
    int listed = 0;
    rowlock_db *db = open_via(l, loss);
    rowlock_lock *lock = hold(db, loss);
    faultproxy_arm(l->proxy, loss->nth, loss->fault);
    int verified = rowlock_verify(lock);
    int said = rowlock_list(db, loss->name, count, &listed);
    bool fired = faultproxy_fired(l->proxy);
    faultproxy_arm(l->proxy, 0, loss->fault);
    if (fired && !loss->reconnects)
        tap_ok(verified == ROWLOCK_ECONN || said == ROWLOCK_ECONN,
               "reads, %s: a read leaves nothing uncertain", loss->text);
    else
        tap_ok(verified == ROWLOCK_OK && said == ROWLOCK_OK && listed == 1,
               "reads, %s: done, and each row told once", loss->text);
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "the lock is still held");
    rowlock_lock_close(lock);
    rowlock_db_close(db);
    return fired;
}

/* ---- release */

static bool lose_release(struct lost *l, const struct loss *loss)
{
    rowlock_db *db = open_via(l, loss);
    rowlock_lock *lock = hold(db, loss);
    faultproxy_arm(l->proxy, loss->nth, loss->fault);
    int said = rowlock_release(lock);
    bool fired = faultproxy_fired(l->proxy);
    faultproxy_arm(l->proxy, 0, loss->fault);
    long long there = rows(l, loss->name);
    if (fired && !loss->reconnects) {
        tap_ok(is_loss(said), "release, %s: it is told as lost", loss->text);
        tap_ok(there == 1 || said == ROWLOCK_EUNCERTAIN, "nothing is called undone that was done");
        tap_is_int(rowlock_release(lock), ROWLOCK_OK, "called again it is released");
    } else {
        tap_is_int(said, ROWLOCK_OK, "release, %s: released", loss->text);
    }
    tap_is_int(rows(l, loss->name), 0, "no grant is left behind");
    tap_is_int(rowlock_release(lock), ROWLOCK_EMISUSE, "and the handle knows it");
    rowlock_lock_close(lock);
    rowlock_db_close(db);
    return fired;
}

/* Between the lost answer and the next question somebody else gets the lock. */
static bool lose_release_to_rival(struct lost *l, const struct loss *loss)
{
    if (loss->reconnects)
        return false;
    rowlock_db *db = open_via(l, loss), *rivals = must_open(l->ours);
    rowlock_lock *lock = hold(db, loss), *rival = must_lock(rivals, loss->name);
    faultproxy_arm(l->proxy, loss->nth, loss->fault);
    int said = rowlock_release(lock);
    bool fired = faultproxy_fired(l->proxy);
    faultproxy_arm(l->proxy, 0, loss->fault);
    if (fired && rows(l, loss->name) == 0) {
        tap_is_int(try_lock(rival, TTL_MS), ROWLOCK_OK, "release, %s: a rival gets the lock",
                   loss->text);
        tap_is_int(said, ROWLOCK_EUNCERTAIN, "while we do not know");
        tap_is_int(rowlock_release(lock), ROWLOCK_EUNCERTAIN, "nor can find out any more");
        tap_is_int(rowlock_verify(rival), ROWLOCK_OK, "the rival's grant is not touched");
    }
    rowlock_lock_close(lock);
    rowlock_db_close(db);
    rowlock_lock_close(rival);
    rowlock_db_close(rivals);
    return fired;
}

/* ---- break */

static bool lose_break(struct lost *l, const struct loss *loss)
{
    rowlock_db *db = open_via(l, loss), *victims = must_open(l->ours);
    rowlock_lock *victim = hold(victims, loss);
    long long token = rowlock_lock_token(victim);
    faultproxy_arm(l->proxy, loss->nth, loss->fault);
    int said = rowlock_break(db, loss->name, 0, NULL);
    bool fired = faultproxy_fired(l->proxy);
    faultproxy_arm(l->proxy, 0, loss->fault);
    long long there = rows(l, loss->name);
    if (!fired)
        tap_is_int(said, ROWLOCK_OK, "break: broken");
    else
        tap_ok((said == ROWLOCK_OK && there == 0) || said == ROWLOCK_EUNCERTAIN ||
                   (said == ROWLOCK_ECONN && there == 1),
               "break, %s: %s is the truth", loss->text, rowlock_result_name(said));
    if (loss->reconnects)
        tap_is_int(there, 0, "the grant is gone");
    if (there == 1)
        tap_is_int(rowlock_break(db, loss->name, 0, NULL), ROWLOCK_OK, "called again it is broken");
    tap_is_int(rowlock_renew(victim, 0), ROWLOCK_LOST, "the victim finds out");
    tap_is_int(token_of(l, "tokens", loss->name), token + 1, "the token is bumped once");
    rowlock_lock_close(victim);
    rowlock_db_close(victims);
    rowlock_db_close(db);
    return fired;
}

/* ---- sweep */

static void make_expired(struct lost *l, const struct loss *loss, int how_many)
{
    rowlock_db *db = must_open(l->ours);
    for (int i = 0; i < how_many; i++) {
        char name[60];
        snprintf(name, sizeof name, "%s over %d", loss->name, i);
        rowlock_lock *lock = must_lock(db, name);
        if (try_lock(lock, TTL_MS) != ROWLOCK_OK)
            tap_ok(false, "a lock is granted at first: %s", why(db));
        raw_run(l->raw, l->session, "UPDATE lost_locks SET expires = 1 WHERE name = '%s'", name);
        lock->state = RLK_IDLE;
        rowlock_lock_close(lock);
    }
    rowlock_db_close(db);
}

static bool lose_sweep(struct lost *l, const struct loss *loss)
{
    rowlock_sweep_options options = ROWLOCK_SWEEP_OPTIONS_INIT;
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    options.batch = 2;
    options.idle_ms = 86400000;
    make_expired(l, loss, 3);
    rowlock_db *db = open_via(l, loss), *holders = must_open(l->ours);
    rowlock_lock *live = hold(holders, loss);
    faultproxy_arm(l->proxy, loss->nth, loss->fault);
    int said = rowlock_sweep(db, &options, &report);
    bool fired = faultproxy_fired(l->proxy);
    faultproxy_arm(l->proxy, 0, loss->fault);
    long long left =
        raw_int(l->raw, l->session, "SELECT count(*) FROM lost_locks WHERE expires = 1");
    tap_ok(report.locks <= 3 - left, "sweep, %s: nothing is reported that did not happen",
           loss->text);
    if (fired && !loss->reconnects) {
        tap_ok(is_loss(said), "it is told as lost");
        tap_is_int(rowlock_sweep(db, &options, NULL), ROWLOCK_OK, "and can be repeated");
        left = raw_int(l->raw, l->session, "SELECT count(*) FROM lost_locks WHERE expires = 1");
    } else {
        tap_is_int(said, ROWLOCK_OK, "it is done");
    }
    tap_is_int(left, 0, "what was over is gone");
    tap_is_int(rowlock_release(live), ROWLOCK_OK, "what was not is still there");
    rowlock_lock_close(live);
    rowlock_db_close(holders);
    rowlock_db_close(db);
    return fired;
}

/* ---- install */

static bool lose_install(struct lost *l, const struct loss *loss)
{
    char parameter[60];
    snprintf(parameter, sizeof parameter, "rowlock_prefix=lost%d_", l->serial);
    char *direct = url_with(l->url, parameter), *saved = l->via;
    char *proxied = strdup(l->via);
    *strstr(proxied, "rowlock_prefix=") = '\0';
    proxied[strlen(proxied) - 1] = '\0';
    l->via = url_with(proxied, parameter);
    rowlock_db *db = open_via(l, loss);
    faultproxy_arm(l->proxy, loss->nth, loss->fault);
    int said = rowlock_install(db);
    bool fired = faultproxy_fired(l->proxy);
    faultproxy_arm(l->proxy, 0, loss->fault);
    if (fired && !loss->reconnects) {
        tap_ok(is_loss(said), "install, %s: it is told as lost", loss->text);
        said = rowlock_install(db);
    }
    tap_is_int(said, ROWLOCK_OK, "install, %s: the tables are there", loss->text);
    rowlock_lock *lock = hold(db, loss);
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "and work");
    rowlock_lock_close(lock);
    rowlock_db_close(db);
    free(l->via);
    free(proxied);
    free(direct);
    l->via = saved;
    return fired;
}

/* ---- each request of each call, in both ways, with and without reconnecting */

static void each_request(struct lost *l, const char *what,
                         bool (*lose)(struct lost *l, const struct loss *loss))
{
    int requests = 0;
    for (int way = 0; way < 4; way++) {
        struct loss loss = {.fault = {.kind = FAULT_CUT, .side = way & 1 ? ON_ANSWER : ON_REQUEST},
                            .reconnects = way < 2};
        for (loss.nth = 1; loss.nth < REQUESTS_MAX; loss.nth++) {
            snprintf(loss.name, sizeof loss.name, "%s %d %lld", what, ++l->serial,
                     (long long)clock_ms());
            snprintf(loss.text, sizeof loss.text, "%s %d lost, %s",
                     loss.fault.side == ON_ANSWER ? "answer" : "request", loss.nth,
                     loss.reconnects ? "reconnecting" : "not reconnecting");
            if (!lose(l, &loss))
                break;
            requests++;
        }
    }
    tap_ok(requests >= 2 && requests < 4 * REQUESTS_MAX, "%s: each request was lost, %d in all",
           what, requests);
}

static void drop_tables(struct lost *l)
{
    for (int i = 0; i <= l->serial; i++) {
        static const char *const tables[] = {"locks", "tokens", "meta"};
        for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
            raw_run(l->raw, l->session, "DROP TABLE IF EXISTS lost%.0d_%s%s", i, tables[t],
                    strcmp(l->raw->name, "postgres") == 0 ? " CASCADE" : "");
    }
}

int lost_main(const struct raw *raw)
{
    const char *url = getenv(raw->url_env);
    if (!url || !*url)
        return tap_skip_all("no server to test on");
    struct lost l = {.raw = raw, .url = url};
    char *plain = NULL;
    l.proxy = faultproxy_start(url, &plain);
    if (!l.proxy)
        return tap_skip_all("the server's URL has no host and port");
    l.ours = url_with(url, "rowlock_prefix=lost_");
    l.via = url_with(plain, "rowlock_prefix=lost_");
    l.session = raw->open(url);
    must_install(l.ours);
    each_request(&l, "acquire", lose_acquire);
    each_request(&l, "renew", lose_renew);
    each_request(&l, "read", lose_reads);
    each_request(&l, "release", lose_release);
    each_request(&l, "release to a rival", lose_release_to_rival);
    each_request(&l, "break", lose_break);
    each_request(&l, "sweep", lose_sweep);
    int before_install = l.serial;
    each_request(&l, "install", lose_install);
    tap_ok(l.serial > before_install, "installing was cut");
    drop_tables(&l);
    raw->close(l.session);
    faultproxy_stop(l.proxy);
    free(plain);
    free(l.ours);
    free(l.via);
    return tap_done();
}
