/* SPDX-License-Identifier: MIT
 *
 * Each request of each call in turn is lost in every way, before the server has seen it or after it has
 * carried it out: what the call says is what the tables show. What core makes of every
 * class of answer is in the unit tests; here it is shown that drivers give the right class, and that the
 * tables agree.
 *
 * Most of the time is spent waiting for deadlines, so many workers walk at the same time. Each has
 * tables and a proxy of its own, since some operations concern all names of an installation.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "each.h"
#include "loss.h"
#include "quick.h"
#include "tap.h"

enum { WORKERS_MAX = 60, REQUESTS_MAX = 60, JOBS_MAX = 1000, FIRST = 6, EVERY = 4 };
/* Of a slow machine. */
enum { TRIES = 6, LEAST = 8, FEWER = 2, MOMENT_MS = 10, STALL_MS = 200 };

static const char *const way_texts[LOSS_WAYS] = {
    [REQUEST_CUT] = "request %d cut",
    [ANSWER_CUT] = "answer %d cut",
    [REQUEST_LATE] = "request %d still under way",
    [REQUEST_LATE_POOLED] = "request %d still under way through a pooler",
    [REQUEST_LATE_DONE] = "request %d carried out late",
    [ANSWER_LATE] = "answer %d late",
    [REQUEST_SWALLOWED] = "request %d swallowed",
    [ANSWER_SWALLOWED] = "answer %d swallowed",
};
static const char *const mode_texts[LOSS_MODES] = {
    [RECONNECTING] = "reconnecting",
    [NOT_RECONNECTING] = "not reconnecting",
    [CONNECTING] = "on a new connection",
};

/* ---- jobs: one operation, way and mode, for each request */

struct job {
    const struct operation *operation;
    enum loss_way way;
    enum loss_mode mode;
};

static struct {
    struct job jobs[JOBS_MAX];
    int count;
    /* crowd: how many workers go on */
    atomic_int next, cases, crowd;
    atomic_llong stalled_ms;
    atomic_bool over;
    const struct raw *raw;
    const char *url;
} all;

/* If the requests are alike, and each costs a deadline, only some of those after the first ones are
 * lost. ROWLOCK_TEST_EVERY_REQUEST=1: all of them. */
static int next_request(const struct job *job, int nth)
{
    bool some = job->operation->alike && !loss_is_cut(job->way) && nth >= FIRST;
    return nth + (some && !getenv("ROWLOCK_TEST_EVERY_REQUEST") ? EVERY : 1);
}

/* Notes when a thread that slept for a moment did not go on in time. */
static int watch_machine(void *unused)
{
    (void)unused;
    while (!all.over) {
        int64_t begin_ms = clock_ms();
        sleep_ms(MOMENT_MS);
        if (clock_ms() - begin_ms > MOMENT_MS + STALL_MS)
            all.stalled_ms = clock_ms();
    }
    return 0;
}

/* The machine had no time for the case: a thread stood still, or a statement that was not lost took
 * half of a deadline. The case is begun anew then, if a check has failed. */
static bool was_slow(struct loss *l, int64_t begin_ms)
{
    return all.stalled_ms >= begin_ms ||
           faultproxy_slowest_us(l->proxy) > loss_deadline_ms(l) * 1000 / 2;
}

/* Fewer cases at a time from now on. */
static void crowd_less(void)
{
    if (atomic_fetch_sub(&all.crowd, FEWER) <= LEAST + FEWER)
        all.crowd = LEAST;
}

static bool lose(struct loss *l, const struct job *job)
{
    for (int tries = 1;; tries++) {
        int explained = l->explained;
        int64_t begin_ms = clock_ms();
        snprintf(l->name, sizeof l->name, "%s%s %d", l->prefix, l->what, ++l->serial);
        tap_hold();
        faultproxy_slowest_us(l->proxy);
        bool fired = job->operation->lose(l);
        loss_pass(l);
        faultproxy_cut(l->proxy);
        if (tries == TRIES || !tap_held_failed() || !was_slow(l, begin_ms)) {
            tap_keep();
            return fired;
        }
        tap_drop();
        tap_note("%s: again, on a slow machine", l->text);
        crowd_less();
        l->explained = explained;
        loss_clean(l);
    }
}

static void walk(struct loss *l, const struct job *job)
{
    int lost = 0;
    l->what = job->operation->what;
    l->way = job->way;
    l->mode = job->mode;
    for (l->nth = 1; l->nth < REQUESTS_MAX; l->nth = next_request(job, l->nth)) {
        char place[60];
        snprintf(place, sizeof place, way_texts[l->way], l->nth);
        snprintf(l->text, sizeof l->text, "%s, %s, %s", l->what, place, mode_texts[l->mode]);
        bool fired = lose(l, job);
        atomic_fetch_add(&all.cases, 1);
        if (!fired)
            break;
        lost++;
    }
    loss_ok(l, lost >= 1 && l->nth < REQUESTS_MAX, "each request in turn, %d in all", lost);
}

/* What cuts show on a new connection is enough for most. When a call has reconnected, the old session has
 * been ended, so that it makes no difference when we go on. */
static bool is_wanted(const struct operation *o, enum loss_way way, enum loss_mode mode)
{
    bool cut = loss_is_cut(way);
    bool swallowed = way == REQUEST_SWALLOWED || way == ANSWER_SWALLOWED;
    if (o->once)
        return mode == NOT_RECONNECTING && way == REQUEST_SWALLOWED;
    if (way == REQUEST_LATE_POOLED)
        return o->pools && strcmp(all.raw->name, "mysql") != 0 && mode != CONNECTING &&
               (o->reconnects || mode == NOT_RECONNECTING);
    if (mode == NOT_RECONNECTING)
        return true;
    if (o->many && !cut)
        return false;
    if (swallowed && strcmp(all.raw->name, "mysql") == 0 && !o->connects)
        return false; /* as if late, but for the server; a deadline is at least a second there */
    return o->reconnects && way != REQUEST_LATE_DONE &&
           (mode == RECONNECTING || cut || o->connects);
}

/* Those that wait for many deadlines, or the others. */
static void add_jobs(const struct operation *operations, bool waits_often)
{
    for (const struct operation *o = operations; o->lose; o++)
        for (int way = 0; way < LOSS_WAYS; way++)
            for (int mode = 0; mode < LOSS_MODES; mode++) {
                struct job job = {o, (enum loss_way)way, (enum loss_mode)mode};
                if ((o->many && !loss_is_cut(job.way)) == waits_often &&
                    is_wanted(o, job.way, job.mode) && all.count < JOBS_MAX)
                    all.jobs[all.count++] = job;
            }
}

/* Always into the same order. */
static void mix_jobs(int from)
{
    unsigned seed = 1;
    for (int i = all.count - 1; i > from; i--) {
        int other = from + rand_r(&seed) % (i - from + 1);
        struct job job = all.jobs[i];
        all.jobs[i] = all.jobs[other];
        all.jobs[other] = job;
    }
}

/* What takes longest comes first. Of the rest some wait for deadlines, and cuts make the server work without
 * a pause: that goes side by side, so that no deadline passes for want of a processor. */
static void collect_jobs(void)
{
    add_jobs(lost_keeper_operations, false);
    add_jobs(lost_admin_operations, true);
    add_jobs(lost_lock_operations, true);
    int longest = all.count;
    add_jobs(lost_lock_operations, false);
    add_jobs(lost_tx_operations, false);
    add_jobs(lost_admin_operations, false);
    mix_jobs(longest);
}

/* ---- workers */

static int work(void *argument)
{
    struct loss *l = argument;
    for (int at; l->number < all.crowd && (at = atomic_fetch_add(&all.next, 1)) < all.count;)
        walk(l, &all.jobs[at]);
    snprintf(l->text, sizeof l->text, "tables %s", l->prefix);
    loss_check_rest(l);
    return 0;
}

static int run(const struct raw *raw, const char *url)
{
    all.raw = raw;
    all.url = url;
    collect_jobs();
    /* A server takes some hundred connections, each worker up to four. */
    const int count = strcmp(raw->name, "mysql") == 0 ? WORKERS_MAX : 30;
    all.crowd = count;
    static struct loss workers[WORKERS_MAX];
    for (int i = 0; i < count; i++)
        if (!loss_set_up(&workers[i], raw, url, i))
            return tap_skip_all("the server's URL has no host and port");
    struct helper *helpers[WORKERS_MAX];
    int64_t began_ms = clock_ms();
    for (int i = 0; i < count; i++)
        helpers[i] = helper_start(work, &workers[i]);
    struct helper *watch = helper_start(watch_machine, NULL);
    int explained = 0;
    for (int i = 0; i < count; i++) {
        helper_join(helpers[i]);
        explained += workers[i].explained;
    }
    all.over = true;
    helper_join(watch);
    tap_note("%d cases in %lld ms; %d rows were left behind and explained", all.cases,
             (long long)(clock_ms() - began_ms), explained);
    for (int i = 0; i < count; i++)
        loss_tear_down(&workers[i]);
    return tap_done();
}

int main(int argc, char **argv)
{
    (void)argc;
    return each_main(argv, run);
}
