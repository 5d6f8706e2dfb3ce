/* SPDX-License-Identifier: MIT
 *
 * Each request of each call in turn is lost in every way, before the server has seen it or after it
 * has carried it out: what the call says is what the tables show. What core makes of every class of
 * answer is in the unit tests; here it is shown that drivers give the right class, and that the
 * tables agree.
 *
 * Most of the time is spent waiting for deadlines, so many workers walk at the same time. Each has
 * tables and a proxy of its own, since some operations concern all names of an installation. */

#include "each.h"
#include "loss.h"

/* A server takes some hundred connections, each worker up to four. */
enum { WORKERS = 30, REQUESTS_MAX = 60, JOBS_MAX = 4000 };
/* What a slow machine gets. */
enum { TRIES = 6, LEAST = 8, FEWER = 2, MOMENT_MS = 10, STALL_MS = 50 };

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

/* ---- jobs: one operation, way and mode, and the request that is lost */

struct job {
    const struct operation *operation;
    enum loss_way way;
    enum loss_mode mode;
    int nth;
    int requests; /* of a job that loses nothing: it has made them */
};

static struct {
    struct job jobs[JOBS_MAX];
    int count;
    int end; /* of the jobs that are to be done now */
    /* crowd: how many workers go on */
    atomic_int next, cases, crowd;
    atomic_llong stalled_ms;
    atomic_bool over;
    const struct raw *raw;
} all;

/* Notes when a thread that slept for a moment did not go on in time. */
static int watch_machine(void *unused)
{
    while (!all.over) {
        int64_t begin_ms = clock_ms();
        sleep_ms(MOMENT_MS);
        if (clock_ms() - begin_ms > MOMENT_MS + STALL_MS)
            all.stalled_ms = clock_ms();
    }
    return 0;
}

/* A close of this worker has told that it could not give back what it had. It has no result. */
static _Thread_local bool closed_in_vain;

static void note_line(void *unused, rowlock_log_level level, const char *line)
{
    closed_in_vain |= strstr(line, "could not be re") != NULL;
}

/* The machine had no time for the case: a thread stood still, or a statement that was not lost took
 * a quarter of a deadline or more, or the proxy saw it late, so that a case without a loss took a
 * whole one. If a check has failed then, the case is begun anew with longer deadlines. A library
 * that really cannot reach the server again fails with each of them. */
static bool was_slow(struct loss *l, int64_t begin_ms)
{
    return l->unreached || closed_in_vain || all.stalled_ms >= begin_ms ||
           faultproxy_slowest_us(l->proxy) > loss_deadline_ms(l) * 1000 / 4 ||
           (l->nth == 0 && clock_ms() - begin_ms >= loss_deadline_ms(l));
}

/* Requests that are sent again count, too. */
static bool has_counted(const struct loss *l)
{
    return l->requests >= 1 && l->requests < REQUESTS_MAX;
}

static bool lose(struct loss *l, const struct job *job)
{
    /* Many requests keep the server busy for longer. */
    l->patience = job->operation->is & MANY ? 3 : 1;
    for (int tries = 1;; tries++, l->patience *= 2) {
        int explained = l->explained, may_follow = l->may_follow;
        int64_t begin_ms = clock_ms();
        snprintf(l->name, sizeof l->name, "%s%s %d", l->prefix, l->what, ++l->serial);
        tap_hold();
        l->unreached = closed_in_vain = false;
        faultproxy_slowest_us(l->proxy);
        job->operation->lose(l);
        if (l->nth == 1)
            loss_ok(l, l->fired, "that came to pass");
        if (l->nth == 0)
            loss_ok(l, has_counted(l), "it makes requests, %d in all", l->requests);
        loss_pass(l);
        faultproxy_cut(l->proxy);
        if (tries == TRIES || !tap_held_failed() || (has_counted(l) && !was_slow(l, begin_ms))) {
            tap_keep();
            return l->fired;
        }
        tap_drop();
        tap_note("%s: again, on a slow machine", l->text);
        /* Fewer cases at a time from now on. */
        if (atomic_fetch_sub(&all.crowd, FEWER) <= LEAST + FEWER)
            all.crowd = LEAST;
        l->explained = explained;
        l->may_follow = may_follow;
        loss_clean(l);
    }
}

static bool do_case(struct loss *l, const struct job *job)
{
    char place[60] = "nothing lost";
    if (l->nth > 0)
        snprintf(place, sizeof place, way_texts[l->way], l->nth);
    snprintf(l->text, sizeof l->text, "%s, %s, %s", l->what, place, mode_texts[l->mode]);
    atomic_fetch_add(&all.cases, 1);
    return lose(l, job);
}

/* How many requests were counted depends on the time, for a waiter or on a slow machine: then the last one
 * is lost that is made. */
static void do_job(struct loss *l, struct job *job)
{
    l->what = job->operation->what;
    l->way = job->way;
    l->mode = job->mode;
    l->nth = job->nth;
    while (!do_case(l, job) && l->nth > 1)
        l->nth--;
    job->requests = l->requests;
}

/* What cuts show on a new connection is enough for most. When a call has reconnected, the old session has
 * been ended, so that it makes no difference when we go on. */
static bool is_wanted(const struct operation *o, enum loss_way way, enum loss_mode mode)
{
    bool cut = loss_is_cut(way);
    bool swallowed = way == REQUEST_SWALLOWED || way == ANSWER_SWALLOWED;
    if (o->is & ONCE)
        return mode == NOT_RECONNECTING && way == REQUEST_SWALLOWED;
    if (o->is & CUTS)
        return (cut && mode != CONNECTING) || (way == ANSWER_LATE && mode == NOT_RECONNECTING);
    if (way == REQUEST_LATE_POOLED)
        return (o->is & POOLS) && strcmp(all.raw->name, "mysql") != 0 && mode != CONNECTING &&
               ((o->is & RECONNECTS) || mode == NOT_RECONNECTING);
    if (mode == NOT_RECONNECTING)
        return true;
    if ((o->is & MANY) && !cut)
        return false;
    if (swallowed && strcmp(all.raw->name, "mysql") == 0 && !(o->is & CONNECTS))
        return false; /* as if late, but for the server; a deadline is at least a second there */
    return (o->is & RECONNECTS) && way != REQUEST_LATE_DONE &&
           (mode == RECONNECTING || cut || (o->is & CONNECTS));
}

static void add_job(struct job job)
{
    if (all.count == JOBS_MAX)
        raw_failed("jobs", "there are too many");
    all.jobs[all.count++] = job;
}

/* How many requests each operation makes in each mode. */
static void count_requests(const struct operation *operations)
{
    for (const struct operation *o = operations; o->lose; o++)
        for (int mode = 0; mode < LOSS_MODES; mode++) {
            bool wanted = false;
            for (int way = 0; way < LOSS_WAYS; way++)
                wanted |= is_wanted(o, (enum loss_way)way, (enum loss_mode)mode);
            if (wanted && !(o->is & ONCE))
                add_job((struct job){.operation = o, .mode = (enum loss_mode)mode});
        }
}

/* On a new connection the last request is the operation's own, else it is the first. Of the others one is
 * lost where nothing reconnects, another one in each way. ROWLOCK_TEST_LONG=1: each request is lost. */
static void add_losses(const struct job *counted)
{
    static int others;
    const struct operation *o = counted->operation;
    int last = o->most && o->most < counted->requests ? o->most : counted->requests;
    int own = counted->mode == CONNECTING && !(o->is & VARIES) ? last : 1;
    for (int way = 0; way < LOSS_WAYS; way++) {
        int other = last > 1 ? 1 + (own + others++ % (last - 1)) % last : own;
        for (int nth = 1; nth <= last; nth++)
            if (is_wanted(o, (enum loss_way)way, counted->mode) &&
                (nth == own || getenv("ROWLOCK_TEST_LONG") ||
                 (nth == other && !(o->is & ALIKE) && counted->mode == NOT_RECONNECTING)))
                add_job((struct job){o, (enum loss_way)way, counted->mode, nth, 0});
    }
}

/* Some wait for deadlines, and cuts make the server work without a pause: they go side by side, so that no
 * deadline passes for want of a processor. Always into the same order. */
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

/* ---- workers */

static int work(void *argument)
{
    struct loss *l = argument;
    for (int at; l->number < all.crowd && (at = atomic_fetch_add(&all.next, 1)) < all.end;)
        do_job(l, &all.jobs[at]);
    return 0;
}

/* All jobs that are not done yet. */
static void do_jobs(struct loss *workers, int from)
{
    struct helper *helpers[WORKERS];
    all.next = from;
    all.end = all.count;
    for (int i = 0; i < WORKERS; i++)
        helpers[i] = helper_start(work, &workers[i]);
    for (int i = 0; i < WORKERS; i++)
        helper_join(helpers[i]);
}

/* What takes longest comes first. */
static void lose_all(struct loss *workers)
{
    const struct operation *const operations[] = {lost_keeper_operations, lost_lock_operations,
                                                  lost_tx_operations, lost_admin_operations,
                                                  lost_row_operations()};
    for (size_t i = 0; i < COUNT(operations); i++)
        count_requests(operations[i]);
    do_jobs(workers, 0);
    int counted = all.count, longest = counted;
    for (const struct operation *o = lost_keeper_operations; o->lose; o++)
        if (o->is & ONCE)
            add_job((struct job){o, REQUEST_SWALLOWED, NOT_RECONNECTING, 1, 0});
    for (int i = 0; i < counted; i++) {
        add_losses(&all.jobs[i]);
        if (all.jobs[i].operation->lose == lost_keeper_operations[1].lose)
            longest = all.count;
    }
    mix_jobs(longest);
    do_jobs(workers, counted);
}

static int run(const struct raw *raw, const char *url)
{
    all.raw = raw;
    all.crowd = WORKERS;
    static struct loss workers[WORKERS];
    int64_t began_ms = clock_ms();
    for (int i = 0; i < WORKERS; i++)
        if (!loss_set_up(&workers[i], raw, url, i))
            return tap_skip_all("the server's URL has no host and port");
    tap_note("%d workers in %lld ms", WORKERS, (long long)(clock_ms() - began_ms));
    struct helper *watch = helper_start(watch_machine, NULL);
    rowlock_log_set(note_line, NULL, ROWLOCK_LOG_WARNING);
    lose_all(workers);
    all.over = true;
    helper_join(watch);
    int explained = 0;
    for (int i = 0; i < WORKERS; i++) {
        explained += workers[i].explained;
        snprintf(workers[i].text, sizeof workers[i].text, "tables %s", workers[i].prefix);
        loss_check_rest(&workers[i]);
        loss_tear_down(&workers[i]);
    }
    tap_note("%d cases in %lld ms; %d rows were left behind and explained", all.cases,
             (long long)(clock_ms() - began_ms), explained);
    return tap_done();
}

EACH_MAIN(run)
