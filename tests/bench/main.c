/* SPDX-License-Identifier: MIT
 *
 * What is measured, on each database whose URL is in the environment. How is in contest.c.
 *
 * usage: main [JSON-FILE]
 *   BENCH          only the parts with this word in their name: pairs network busy renew trips log sweep
 *                  handoff rest batch hotrow beat (all)
 *   BENCH_SECONDS  how long each contender runs for each figure (1.5)
 *   BENCH_SWEEP    expired rows in the sweep (100000)
 *   BENCH_BEAT     leases that are renewed in one beat (10000)
 *   BENCH_DELAY_US how much later each way a slow network delivers (500)
 *   BENCH_LINE     how many wait in the longest line whose handoffs are measured (512)
 *   BENCH_HANDOFF  for how many seconds each way to wait is measured in a line (4)
 *   BENCH_WAY      only the ways to wait with this word in their name (all)
 *   BENCH_WAITERS  how many wait at rest (500)
 *   BENCH_REST     for how many seconds they do (60)
 *   BENCH_BATCH    how long each way to change a batch of rows runs, in seconds (3)
 *   BENCH_HOTROW   how long each way to change a hot row runs, in seconds (3)
 */
#include "bench.h"
#include "faultproxy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    STEPS_LOGGED = 50,
    STEPS_BEFORE = 10,
    SWEEPS = 2,
    FSYNCS = 51,
    LOG_ROUNDS = 5,
    BEATS = 15,
    BEATS_BEFORE = 6
};

static double seconds = 1.5;
static int64_t sweep_rows = 100000, beat_rows = 10000;
static int delay_us = 500, longest_line = 512, far_line = 16, waiters = 500;
static double handoff_seconds = 4, rest_seconds = 60, batch_seconds = 3, hotrow_seconds = 3;

/* The place behind a proxy. NULL where there is no server to put one before. */
static struct faultproxy *start_proxy(const char *url, struct place *place)
{
    char *through = NULL;
    struct faultproxy *proxy = faultproxy_start(url, &through);
    if (proxy)
        snprintf(place->url, sizeof place->url, "%s", through);
    free(through);
    return proxy;
}

/* ---- contests */

/* The same contenders with one client and with eight. */
static void compete(const char *key, const char *unit, const struct contender *contenders,
                    int count, const int *clients, int columns, bool shared)
{
    struct outcome outcomes[2][CONTENDERS_MAX];
    for (int i = 0; i < columns; i++)
        contest(contenders, count, clients[i], seconds, key, shared, outcomes[i]);
    report_contest(key, unit, contenders, count, clients, columns,
                   (const struct outcome(*)[CONTENDERS_MAX])outcomes);
}

static struct contender ours(const struct place *place, const char *label, void (*step)(void *))
{
    return (struct contender){
        .label = label, .place = place, .open = ours_open, .close = ours_close, .step = step};
}

static struct contender theirs(const struct hand *hand, const struct place *place,
                               const char *label, const char *legend, void (*step)(void *))
{
    return (struct contender){.label = label,
                              .legend = legend,
                              .place = place,
                              .open = hand->open,
                              .close = hand->close,
                              .step = step};
}

static int pair_contenders(const struct hand *hand, const struct place *our_place,
                           const struct place *their_place, struct contender *out)
{
    int count = 0;
    out[count++] = ours(our_place, "rowlock", ours_pair);
    out[count++] =
        theirs(hand, their_place, "hand-written transaction",
               "BEGIN; bump the token row; INSERT the lock row; COMMIT; DELETE", hand->transaction);
    if (hand->single)
        out[count++] =
            theirs(hand, their_place, hand->single_label, hand->single_legend, hand->single);
    out[count++] = theirs(hand, their_place, "bare INSERT + DELETE",
                          "no token: not a safe lock, for context only", hand->bare);
    return count;
}

static const int one_and_eight[] = {1, 8};

static void bench_pairs(const struct site *site)
{
    struct contender contenders[CONTENDERS_MAX];
    int count = pair_contenders(site->hand, &site->ours, &site->theirs, contenders);
    report_section("acquire + release, each client on a lock of its own");
    compete("pairs", "pairs/s", contenders, count, one_and_eight, 2, false);
}

static void bench_busy(const struct site *site)
{
    struct contender contenders[] = {
        ours(&site->ours, "rowlock", ours_busy),
        theirs(site->hand, &site->theirs, "bare SELECT",
               "the same row by its key, prepared; no clock, no verdict", site->hand->look),
    };
    void *holder = ours_open(&site->ours, "busy 0");
    void *rival = site->hand->open(&site->theirs, "busy 0");
    ours_acquire(holder);
    site->hand->hold(rival);
    report_section("tries of a lock that another holds");
    compete("busy", "tries/s", contenders, 2, one_and_eight, 2, true);
    ours_close(holder);
    site->hand->close(rival);
}

static void bench_renew(const struct site *site)
{
    struct contender contenders[] = {
        ours(&site->ours, "rowlock", ours_renew),
        theirs(site->hand, &site->theirs, "bare UPDATE",
               "expires and renewals of the same row, by key, owner and token", site->hand->renew),
    };
    contenders[0].begin = ours_acquire;
    contenders[1].begin = site->hand->hold;
    report_section("renewals");
    compete("renew", "per s", contenders, 2, one_and_eight, 1, false);
}

/* On one machine a round trip costs next to nothing; between machines it costs most. */
static void bench_network(const struct site *site)
{
    struct place our_far = site->ours, their_far = site->theirs;
    struct contender contenders[CONTENDERS_MAX];
    struct faultproxy *proxy = start_proxy(site->url, &our_far);
    char title[200];
    if (!proxy)
        return;
    faultproxy_slow(proxy, delay_us);
    memcpy(their_far.url, our_far.url, sizeof their_far.url);
    int count = pair_contenders(site->hand, &our_far, &their_far, contenders);
    snprintf(title, sizeof title, "acquire + release over a network with %.1f ms round trips",
             2 * delay_us / 1000.0);
    report_section(title);
    compete("pairs over a network", "pairs/s", contenders, count, one_and_eight, 1, false);
    faultproxy_stop(proxy);
}

/* ---- log written */

static double log_of(const struct site *site, const struct contender *contender, void *session)
{
    void *observer = site->hand->open(contender->place, "observer");
    site->hand->settle(observer);
    for (int i = 0; i < STEPS_BEFORE; i++)
        contender->step(session);
    int64_t before = site->hand->written(observer);
    for (int i = 0; i < STEPS_LOGGED; i++)
        contender->step(session);
    int64_t after = site->hand->written(observer);
    site->hand->close(observer);
    return (double)(after - before) / STEPS_LOGGED;
}

/* Both of them, taking turns; medians, because servers also log what they do for themselves. */
static void compare_logs(const struct site *site, const char *what, struct contender *contenders,
                         int count)
{
    void *sessions[CONTENDERS_MAX];
    double bytes[CONTENDERS_MAX][LOG_ROUNDS];
    for (int c = 0; c < count; c++) {
        sessions[c] = contenders[c].open(contenders[c].place, "logged");
        if (contenders[c].begin)
            contenders[c].begin(sessions[c]);
    }
    for (int r = 0; r < LOG_ROUNDS; r++)
        for (int c = 0; c < count; c++)
            bytes[c][r] = log_of(site, &contenders[c], sessions[c]);
    report_line("  %-20s", what);
    for (int c = 0; c < count; c++) {
        double value = median(bytes[c], LOG_ROUNDS);
        report_line("  %s %.0f", contenders[c].label, value);
        report_number(what, contenders[c].label, value);
        contenders[c].close(sessions[c]);
    }
    report_line("\n");
}

static void bench_log(const struct site *site)
{
    const struct hand *hand = site->hand;
    struct contender pairs[CONTENDERS_MAX];
    struct contender renewals[] = {ours(&site->ours, "rowlock", ours_renew),
                                   theirs(hand, &site->theirs, "bare UPDATE", NULL, hand->renew)};
    struct contender tries[] = {ours(&site->ours, "rowlock", ours_busy)};
    char title[100];
    renewals[0].begin = ours_acquire;
    renewals[1].begin = hand->hold;
    snprintf(title, sizeof title, "bytes of %s for each operation", hand->log_name);
    report_section(title);
    compare_logs(site, "log of a pair", pairs,
                 pair_contenders(hand, &site->ours, &site->theirs, pairs));
    compare_logs(site, "log of a renewal", renewals, 2);
    void *holder = ours_open(&site->ours, "logged");
    ours_acquire(holder);
    compare_logs(site, "log of a busy try", tries, 1);
    ours_close(holder);
}

/* ---- round trips */

static void count_trips(struct faultproxy *proxy, const char *what, void (*step)(void *),
                        void *session)
{
    faultproxy_round_trips(proxy);
    step(session);
    int trips = faultproxy_round_trips(proxy);
    report_line("  %-32s %d\n", what, trips);
    report_number("round trips", what, trips);
}

static void count_ours(struct faultproxy *proxy, const struct place *place)
{
    void *holder = ours_open(place, "counted");
    void *rival = ours_open(place, "counted");
    /* All statements are prepared before anything is counted. */
    ours_pair(holder);
    ours_acquire(holder);
    ours_renew(holder);
    ours_verify(holder);
    ours_release(holder);
    count_trips(proxy, "acquire", ours_acquire, holder);
    count_trips(proxy, "re-enter", ours_acquire, holder);
    count_trips(proxy, "leave", ours_release, holder);
    count_trips(proxy, "renew", ours_renew, holder);
    count_trips(proxy, "verify", ours_verify, holder);
    ours_busy(rival);
    ours_busy(rival);
    count_trips(proxy, "busy try", ours_busy, rival);
    count_trips(proxy, "release", ours_release, holder);
    count_trips(proxy, "acquire by who was told BUSY", ours_acquire, rival);
    ours_close(holder);
    ours_close(rival);
}

static void bench_trips(const struct site *site)
{
    struct place our_way = site->ours, their_way = site->theirs;
    struct faultproxy *proxy = start_proxy(site->url, &our_way);
    if (!proxy)
        return;
    memcpy(their_way.url, our_way.url, sizeof their_way.url);
    report_section("round trips, counted on the wire");
    count_ours(proxy, &our_way);
    void *rival = site->hand->open(&their_way, "counted");
    site->hand->transaction(rival);
    count_trips(proxy, "hand-written transaction, pair", site->hand->transaction, rival);
    site->hand->close(rival);
    faultproxy_stop(proxy);
}

/* ---- sweep */

static int64_t hand_sweep(const struct site *site, void *session)
{
    return site->hand->sweep(session, (int64_t)time(NULL) * 1000000);
}

static double time_sweep(const struct site *site, bool by_us)
{
    const struct place *place = by_us ? &site->ours : &site->theirs;
    void *filler = site->hand->open(place, "sweeper");
    void *sweeper = by_us ? ours_open(place, "sweeper") : filler;
    site->hand->fill(filler, sweep_rows);
    double began = clock_s();
    int64_t gone = by_us ? ours_sweep(sweeper) : hand_sweep(site, sweeper);
    double took = clock_s() - began;
    if (gone != sweep_rows)
        die("a sweep removed %lld rows of %lld", (long long)gone, (long long)sweep_rows);
    site->hand->close(filler);
    if (by_us)
        ours_close(sweeper);
    return (double)sweep_rows / took;
}

static void bench_sweep(const struct site *site)
{
    double rates[2][SWEEPS], ratios[SWEEPS];
    for (int i = 0; i < SWEEPS; i++) {
        rates[0][i] = time_sweep(site, true);
        rates[1][i] = time_sweep(site, false);
        ratios[i] = rates[0][i] / rates[1][i];
    }
    double ours_rate = median(rates[0], SWEEPS), rate = median(rates[1], SWEEPS);
    double ratio = median(ratios, SWEEPS);
    char title[100];
    snprintf(title, sizeof title, "sweep of %lld expired rows", (long long)sweep_rows);
    report_section(title);
    report_line("  %-28s  %9.0f rows/s\n", "rowlock", ours_rate);
    report_line("  %-28s  %9.0f rows/s, ratio %.2f: %s\n", "bare DELETE in batches", rate, ratio,
                site->hand->sweep_legend);
    report_number("sweep", "rowlock", ours_rate);
    report_number("sweep", "bare DELETE in batches", rate);
    report_number("sweep", "ratio", ratio);
}

/* ---- beat */

/* A beat follows the one before by a third of a lease, in which the server has cleared the dead rows. */
static double time_beat(const struct hand *hand, void *tidier, void (*beat)(void *), void *session)
{
    if (hand->tidy)
        hand->tidy(tidier);
    double began = clock_s();
    beat(session);
    return (double)beat_rows / (clock_s() - began);
}

static void compare_beats(const struct hand *hand, void *const tidiers[2], void *us, void *them)
{
    double rates[2][BEATS], ratios[BEATS];
    for (int i = 0; i < BEATS_BEFORE; i++) {
        ours_beat(us);
        hand->renew_all(them);
    }
    for (int i = 0; i < BEATS; i++) {
        rates[0][i] = time_beat(hand, tidiers[0], ours_beat, us);
        rates[1][i] = time_beat(hand, tidiers[1], hand->renew_all, them);
        ratios[i] = rates[0][i] / rates[1][i];
    }
    double rate = median(rates[0], BEATS), their_rate = median(rates[1], BEATS);
    double ratio = median(ratios, BEATS);
    report_line("  %-28s  %9.0f rows/s\n", "rowlock", rate);
    report_line("  %-28s  %9.0f rows/s, ratio %.2f (%.2f to %.2f): %s\n", "bare UPDATE", their_rate,
                ratio, ratios[0], ratios[BEATS - 1], hand->renew_all_legend);
    report_number("beat", "rowlock", rate);
    report_number("beat", "bare UPDATE", their_rate);
    report_number("beat", "ratio", ratio);
}

static void count_beat(const struct site *site)
{
    struct place far = site->ours;
    struct faultproxy *proxy = start_proxy(site->url, &far);
    if (!proxy)
        return;
    void *session = ours_beat_open(&far);
    ours_beat(session);
    count_trips(proxy, "round trips of rowlock's beat", ours_beat, session);
    ours_beat_close(session);
    faultproxy_stop(proxy);
}

/* The last part: it leaves its rows standing. */
static void bench_beat(const struct site *site)
{
    const struct hand *hand = site->hand;
    void *tidiers[] = {hand->open(&site->ours, "beat"), hand->open(&site->theirs, "beat")};
    char title[100];
    for (int i = 0; i < 2; i++)
        hand->fill(tidiers[i], beat_rows);
    void *us = ours_beat_open(&site->ours), *them = hand->open(&site->theirs, "beat");
    hand->learn(them);
    snprintf(title, sizeof title, "%lld leases renewed in one beat", (long long)beat_rows);
    report_section(title);
    compare_beats(hand, tidiers, us, them);
    count_beat(site);
    ours_beat_close(us);
    hand->close(them);
    for (int i = 0; i < 2; i++)
        hand->close(tidiers[i]);
}

/* ---- waiting */

/* What the servers of one machine compute hides what a handoff sends, and a network shows it. */
static void bench_far_handoffs(const struct site *site)
{
    struct site far = *site;
    struct faultproxy *proxy = start_proxy(site->url, &far.ours);
    if (!proxy)
        return;
    faultproxy_slow(proxy, delay_us);
    memcpy(far.theirs.url, far.ours.url, sizeof far.theirs.url);
    bench_handoff(&far, "network handoff", far_line, handoff_seconds);
    faultproxy_stop(proxy);
}

static void bench_handoffs(const struct site *site)
{
    bench_handoff(site, "handoff", longest_line, handoff_seconds);
    bench_far_handoffs(site);
    explain_handoffs(site);
}

static void bench_waiters(const struct site *site)
{
    bench_rest(site, waiters, rest_seconds);
}

/* ---- versions */

static void bench_far_batches(const struct site *site)
{
    struct site far = *site;
    struct faultproxy *proxy = start_proxy(site->url, &far.ours);
    char title[200];
    if (!proxy)
        return;
    faultproxy_slow(proxy, delay_us);
    memcpy(far.theirs.url, far.ours.url, sizeof far.theirs.url);
    snprintf(title, sizeof title, "the same over a network with %.1f ms round trips",
             2 * delay_us / 1000.0);
    report_section(title);
    bench_batch(&far, "batch over a network", false, batch_seconds);
    faultproxy_stop(proxy);
}

static void bench_batches(const struct site *site)
{
    report_section("1,000 rows of 100,000 written back under their versions: rows in a row");
    bench_batch(site, "batch", false, batch_seconds);
    report_section("the same, rows from all over the table");
    bench_batch(site, "scattered batch", true, batch_seconds);
    bench_far_batches(site);
    if (rows_hand_of(site->hand)->insert) {
        report_section("1,000 new rows");
        bench_insert(site, batch_seconds);
    }
}

static void bench_hot_row(const struct site *site)
{
    bench_hotrow(site, hotrow_seconds);
}

/* ---- all of it */

static const struct {
    const char *name;
    void (*run)(const struct site *site);
} parts[] = {
    {"pairs", bench_pairs},   {"network", bench_network},  {"busy", bench_busy},
    {"renew", bench_renew},   {"trips", bench_trips},      {"log", bench_log},
    {"sweep", bench_sweep},   {"handoff", bench_handoffs}, {"rest", bench_waiters},
    {"batch", bench_batches}, {"hotrow", bench_hot_row},   {"beat", bench_beat},
};

static void bench_site(const struct hand *hand)
{
    struct site site = {.hand = hand, .url = getenv(hand->url_env)};
    char description[200];
    if (!site.url || !site.url[0])
        return;
    hand->make_places(site.url, &site.ours, &site.theirs);
    site.ours.hand = site.theirs.hand = hand;
    ours_install(&site.ours);
    ours_install(&site.theirs);
    void *session = hand->open(&site.theirs, "observer");
    hand->describe(session, description, sizeof description);
    hand->close(session);
    report_database(hand->name, description);
    const char *word = getenv("BENCH");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!word || strstr(parts[i].name, word))
            parts[i].run(&site);
    hand->drop_places(site.url);
}

/* What a commit costs at the least on this machine. */
static void report_disk(void)
{
    char path[500], page[4096] = {0};
    double took[FSYNCS];
    snprintf(path, sizeof path, "%s/rowlock-bench.XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    int file = mkstemp(path);
    if (file < 0)
        die("cannot make a file in TMPDIR");
    unlink(path);
    for (int i = 0; i < FSYNCS; i++) {
        double began = clock_s();
        if (pwrite(file, page, sizeof page, 0) < 0 || fdatasync(file) != 0)
            die("cannot write to TMPDIR");
        took[i] = clock_s() - began;
    }
    close(file);
    double us = median(took, FSYNCS) * 1e6;
    report_line(
        "One fdatasync of 4 KB takes %.0f us here, on %ld processors that clients and servers"
        " share.\nratio: rowlock's rate over that line's, of rounds taken in turn; 1 is as"
        " fast, more is faster.\nCPU us: user time of the client for each operation.\n",
        us, sysconf(_SC_NPROCESSORS_ONLN));
}

static double setting(const char *name, double otherwise)
{
    const char *text = getenv(name);
    double value = text && text[0] ? strtod(text, NULL) : otherwise;
    if (value <= 0)
        die("%s must be above 0", name);
    return value;
}

/* A connection takes one at least, and on SQLite several. */
static void allow_many_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
    seconds = setting("BENCH_SECONDS", seconds);
    sweep_rows = (int64_t)setting("BENCH_SWEEP", (double)sweep_rows);
    beat_rows = (int64_t)setting("BENCH_BEAT", (double)beat_rows);
    delay_us = (int)setting("BENCH_DELAY_US", delay_us);
    longest_line = (int)setting("BENCH_LINE", longest_line);
    far_line = longest_line < far_line ? longest_line : far_line;
    handoff_seconds = setting("BENCH_HANDOFF", handoff_seconds);
    waiters = (int)setting("BENCH_WAITERS", waiters);
    rest_seconds = setting("BENCH_REST", rest_seconds);
    batch_seconds = setting("BENCH_BATCH", batch_seconds);
    hotrow_seconds = setting("BENCH_HOTROW", hotrow_seconds);
    allow_many_files();
    report_disk();
#if RLK_WITH_POSTGRES
    bench_site(&hand_postgres);
#endif
#if RLK_WITH_MYSQL
    bench_site(&hand_mysql);
#endif
#if RLK_WITH_SQLITE
    bench_site(&hand_sqlite);
#endif
    if (argc > 1)
        report_save(argv[1]);
    return 0;
}
