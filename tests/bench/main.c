/* SPDX-License-Identifier: MIT
 *
 * What is measured, on each database whose URL is in the environment. How is in contest.c.
 *
 * usage: main [JSON-FILE]
 *   BENCH          only the parts with this word in their name: pairs network busy renew trips log sweep
 *                  handoff rest batch hotrow heartbeat growth pool quorum (all)
 *   and numbers: see settings below
 */
#include "hand.h"
#include "faultproxy.h"

enum { STEPS_LOGGED = 50, STEPS_BEFORE = 10, SWEEPS = 5, LOG_ROUNDS = 5 };
enum { HEARTBEATS = 15, HEARTBEATS_BEFORE = 6, FAR_LINE = 16 };

static double seconds = 1.5, sweep_rows = 100000, heartbeat_rows = 10000, delay_us = 500;
static double longest_line = 512, waiters = 500, growth_rows = 1000000;
static double handoff_seconds = 4, rest_seconds = 60, batch_seconds = 3, hotrow_seconds = 3;

static const struct {
    const char *name;
    double *value;
} settings[] = {
    {"BENCH_SECONDS", &seconds}, /* how long each contender runs for each figure */
    {"BENCH_SWEEP", &sweep_rows}, /* expired rows in the sweep */
    {"BENCH_HEARTBEAT", &heartbeat_rows}, /* leases that are renewed in one heartbeat */
    {"BENCH_DELAY_US", &delay_us}, /* how much later each way a slow network delivers */
    {"BENCH_LINE", &longest_line}, /* how many wait in the longest line that is measured */
    {"BENCH_HANDOFF", &handoff_seconds}, /* how long each way to wait is measured in a line */
    {"BENCH_WAITERS", &waiters}, /* how many wait at rest */
    {"BENCH_REST", &rest_seconds}, /* for how many seconds they do */
    {"BENCH_BATCH", &batch_seconds}, /* how long each way to change a batch of rows runs */
    {"BENCH_GROWTH", &growth_rows}, /* the most rows in the tables that grow */
    {"BENCH_HOTROW", &hotrow_seconds}, /* how long each way to change a hot row runs */
};

/* The site behind a proxy that delivers later by so much. NULL where there is no server to put one before. */
static struct faultproxy *start_proxy(const struct site *site, double delay, struct site *far)
{
    char *through = NULL;
    struct faultproxy *proxy = faultproxy_start(site->url, &through);
    *far = *site;
    if (proxy) {
        snprintf(far->ours.url, sizeof far->ours.url, "%s", through);
        snprintf(far->theirs.url, sizeof far->theirs.url, "%s", through);
        faultproxy_slow(proxy, (int)delay);
    }
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
        contest(contenders, count, clients[i], ROUNDS, seconds, key, shared, outcomes[i]);
    report_contest(key, unit, contenders, count, clients, columns,
                   (const struct outcome(*)[CONTENDERS_MAX])outcomes);
}

/* Rowlock, and all ways of that kind. */
static int contenders_of(const char *kind, const struct place *our_place, void (*step)(void *),
                         const struct place *their_place, struct contender *out)
{
    const struct way *way;
    int count = 1;
    out[0] = our_contender(our_place, step);
    for (; (way = hand_way(their_place->hand, kind, count - 1)); count++)
        if (count < CONTENDERS_MAX)
            out[count] = hand_contender(their_place, way);
    return count;
}

static void hold(void *session)
{
    hand_do(session, "hold");
}

static void begin_holding(struct contender *contenders, int count)
{
    for (int i = 0; i < count; i++)
        contenders[i].begin = contenders[i].way ? hold : ours_acquire;
}

static const int one_and_eight[] = {1, 8};

static void bench_pairs(const struct site *site)
{
    struct contender contenders[CONTENDERS_MAX];
    int count = contenders_of("pairs", &site->ours, ours_pair, &site->theirs, contenders);
    report_section("acquire + release, each client on a lock of its own");
    compete("pairs", "pairs/s", contenders, count, one_and_eight, 2, false);
}

static void bench_busy(const struct site *site)
{
    struct contender contenders[CONTENDERS_MAX];
    int count = contenders_of("busy", &site->ours, ours_busy, &site->theirs, contenders);
    void *holder = ours_open(&site->ours, "busy 0");
    struct session *rival = hand_open(&site->theirs, "busy 0");
    ours_acquire(holder);
    hold(rival);
    report_section("tries of a lock that another holds");
    compete("busy", "tries/s", contenders, count, one_and_eight, 2, true);
    ours_close(holder);
    hand_close(rival);
}

static void bench_renew(const struct site *site)
{
    struct contender contenders[CONTENDERS_MAX];
    int count = contenders_of("renew", &site->ours, ours_renew, &site->theirs, contenders);
    begin_holding(contenders, count);
    report_section("renewals");
    compete("renew", "per s", contenders, count, one_and_eight, 2, false);
}

/* On one machine a round trip costs next to nothing; between machines it costs most. */
static void bench_network(const struct site *site)
{
    struct contender contenders[CONTENDERS_MAX];
    struct site far;
    OWNED(proxy) struct faultproxy *proxy = start_proxy(site, delay_us, &far);
    if (!proxy)
        return;
    int count = contenders_of("pairs", &far.ours, ours_pair, &far.theirs, contenders);
    report_section("acquire + release over a network with %.1f ms round trips",
                   2 * delay_us / 1000.0);
    compete("pairs over a network", "pairs/s", contenders, count, one_and_eight, 1, false);
}

/* ---- a pool */

static void *open_pooled(const struct contender *contender, const char *name)
{
    return ours_open_pooled(contender->place, name);
}

static void compare_pool(const char *key, const struct place *place)
{
    static const int one_and_many[] = {1, 64};
    struct contender contenders[] = {our_contender(place, ours_pair),
                                     our_contender(place, ours_pair)};
    contenders[0].label = "rowlock's pool";
    contenders[0].open = open_pooled;
    compete(key, "pairs/s", contenders, 2, one_and_many, 2, false);
}

static void bench_pool(const struct site *site)
{
    struct site far;
    OWNED(proxy) struct faultproxy *proxy = start_proxy(site, delay_us, &far);
    report_section("acquire + release through a pool of two connections");
    compare_pool("pool", &site->ours);
    if (!proxy)
        return;
    report_section("the same over a network with %.1f ms round trips", 2 * delay_us / 1000.0);
    compare_pool("pool over a network", &far.ours);
}

/* ---- a quorum */

static void *open_quorum(const struct contender *contender, const char *name)
{
    return ours_open_quorum(contender->place, name);
}

/* Finds the servers that run.sh has started for the other members. Members with one server would
 * wait for one another's log. */
static int find_members(const struct site *site, char *urls, struct site *members)
{
    int count = 1;
    members[0] = *site;
    for (char *url; count < MEMBERS && (url = strsep(&urls, " "));)
        if (strncmp(url, site->url, strcspn(site->url, ":")) == 0) {
            struct site *other = &members[count++];
            *other = (struct site){.hand = site->hand, .url = url};
            hand_make_places(site->hand, url, &other->ours, &other->theirs);
        }
    return count;
}

static void compare_quorum(const struct site *members)
{
    static const int one[] = {1};
    struct faultproxy *proxies[MEMBERS];
    struct place places[MEMBERS];
    struct site far[MEMBERS];
    for (int i = 0; i < MEMBERS; i++) {
        proxies[i] = start_proxy(&members[i], delay_us, &far[i]);
        /* A member grants nothing alone. */
        places[i] = far[i].theirs;
    }
    ours_install_quorum(places);
    struct contender contenders[] = {our_contender(places, ours_pair),
                                     our_contender(&far[0].ours, ours_pair)};
    contenders[0].label = "rowlock's quorum of three";
    contenders[0].open = open_quorum;
    report_section("acquire + release with a quorum over a network with %.1f ms round trips",
                   2 * delay_us / 1000.0);
    compete("quorum over a network", "pairs/s", contenders, 2, one, 1, false);
    for (int i = 0; i < MEMBERS; i++)
        faultproxy_stop(proxies[i]);
}

static void bench_quorum(const struct site *site)
{
    struct site members[MEMBERS];
    const char *others = getenv("BENCH_MEMBERS");
    char *urls = strdup(others ? others : "");
    if (urls && find_members(site, urls, members) == MEMBERS) {
        /* Other parts leave rows standing, and a join waits until all leases have ended. */
        hand_make_places(site->hand, site->url, &members[0].ours, &members[0].theirs);
        ours_install(&members[0].ours);
        compare_quorum(members);
    }
    free(urls);
}

/* ---- log written */

static double log_of(const struct contender *contender, void *session)
{
    struct session *observer = hand_open(contender->place, "observer");
    hand_do(observer, "settle");
    for (int i = 0; i < STEPS_BEFORE; i++)
        contender->step(session);
    int64_t before = hand_written(observer);
    for (int i = 0; i < STEPS_LOGGED; i++)
        contender->step(session);
    int64_t after = hand_written(observer);
    hand_close(observer);
    return (double)(after - before) / STEPS_LOGGED;
}

/* Both of them, taking turns; medians, because servers also log what they do for themselves. */
static void compare_logs(const char *what, struct contender *contenders, int count)
{
    void *sessions[CONTENDERS_MAX];
    double bytes[CONTENDERS_MAX][LOG_ROUNDS];
    for (int c = 0; c < count; c++) {
        sessions[c] = contenders[c].open(&contenders[c], "logged");
        if (contenders[c].begin)
            contenders[c].begin(sessions[c]);
    }
    for (int r = 0; r < LOG_ROUNDS; r++)
        for (int c = 0; c < count; c++)
            bytes[c][r] = log_of(&contenders[c], sessions[c]);
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
    struct contender c[CONTENDERS_MAX];
    report_section("bytes of %s for each operation", hand_way(site->hand, "log", 0)->label);
    compare_logs("log of a pair", c,
                 contenders_of("pairs", &site->ours, ours_pair, &site->theirs, c));
    int count = contenders_of("renew", &site->ours, ours_renew, &site->theirs, c);
    begin_holding(c, count);
    compare_logs("log of a renewal", c, count);
    void *holder = ours_open(&site->ours, "logged");
    ours_acquire(holder);
    c[0] = our_contender(&site->ours, ours_busy);
    compare_logs("log of a busy try", c, 1);
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
    struct site far;
    OWNED(proxy) struct faultproxy *proxy = start_proxy(site, 0, &far);
    if (!proxy)
        return;
    report_section("round trips, counted on the wire");
    count_ours(proxy, &far.ours);
    struct contender rival = hand_contender(&far.theirs, hand_way(site->hand, "pairs", 0));
    void *session = rival.open(&rival, "counted");
    rival.step(session);
    count_trips(proxy, "hand-written transaction, pair", rival.step, session);
    rival.close(session);
}

/* ---- rows a second, which a contest does not measure: each time takes long */

/* Rowlock and all ways of that kind, taking turns. way NULL: rowlock. */
static void compare_rates(const struct site *site, const char *kind, int rounds,
                          double (*rate_of)(void *context, const struct way *way), void *context)
{
    double rates[CONTENDERS_MAX][ROUNDS], ratios[ROUNDS], first[ROUNDS];
    const struct way *ways[CONTENDERS_MAX] = {NULL};
    int count = 1;
    while (count < CONTENDERS_MAX && (ways[count] = hand_way(site->hand, kind, count - 1)))
        count++;
    for (int i = 0; i < rounds; i++)
        for (int c = 0; c < count; c++)
            rates[c][i] = rate_of(context, ways[c]);
    memcpy(first, rates[0], sizeof first);
    double rate = median(first, rounds);
    report_line("  %-28s  %9.0f rows/s\n", "rowlock", rate);
    report_number(kind, "rowlock", rate);
    for (int c = 1; c < count; c++) {
        char what[100] = "ratio";
        for (int i = 0; i < rounds; i++)
            ratios[i] = rates[0][i] / rates[c][i];
        double ratio = median(ratios, rounds);
        rate = median(rates[c], rounds);
        report_line("  %-28s  %9.0f rows/s, ratio %.2f (%.2f to %.2f): %s\n", ways[c]->label, rate,
                    ratio, ratios[0], ratios[rounds - 1], ways[c]->legend);
        if (c > 1)
            snprintf(what, sizeof what, "ratio, %s", ways[c]->label);
        report_number(kind, ways[c]->label, rate);
        report_number(kind, what, ratio);
        report_list("rounds", ratios, rounds);
    }
}

/* ---- sweep */

static double sweep_rate(void *context, const struct way *way)
{
    const struct site *site = context;
    const struct place *place = way ? &site->theirs : &site->ours;
    struct session *filler = hand_open(place, "sweeper");
    void *sweeper = way ? NULL : ours_open(place, "sweeper");
    hand_fill(filler, (int64_t)sweep_rows);
    double began = clock_s();
    int64_t gone = way ? hand_sweep(filler, way) : ours_sweep(sweeper);
    double took = clock_s() - began;
    if (gone != (int64_t)sweep_rows)
        die("a sweep removed %lld rows of %.0f", (long long)gone, sweep_rows);
    hand_close(filler);
    if (sweeper)
        ours_close(sweeper);
    return sweep_rows / took;
}

static void bench_sweep(const struct site *site)
{
    struct site swept = *site;
    report_section("sweep of %.0f expired rows", sweep_rows);
    compare_rates(site, "sweep", SWEEPS, sweep_rate, &swept);
}

/* ---- heartbeat */

struct heartbeats {
    struct session *tidiers[2], *them;
    void *us;
};

static void heartbeat(struct heartbeats *b, const struct way *way)
{
    if (way)
        hand_run(b->them, way);
    else
        ours_heartbeat(b->us);
}

/* A heartbeat follows the one before by a third of a lease, in which the server has cleared the dead rows. */
static double heartbeat_rate(void *context, const struct way *way)
{
    struct heartbeats *b = context;
    hand_do(b->tidiers[way != NULL], "tidy");
    double began = clock_s();
    heartbeat(b, way);
    return heartbeat_rows / (clock_s() - began);
}

static void count_heartbeat(const struct site *site)
{
    struct site far;
    OWNED(proxy) struct faultproxy *proxy = start_proxy(site, 0, &far);
    if (!proxy)
        return;
    void *session = ours_heartbeat_open(&far.ours, 0);
    ours_heartbeat(session);
    count_trips(proxy, "round trips of rowlock's heartbeat", ours_heartbeat, session);
    ours_heartbeat_close(session);
}

/* The last part: it leaves its rows standing. */
static void bench_heartbeat(const struct site *site)
{
    struct heartbeats b = {
        {hand_open(&site->ours, "heartbeat"), hand_open(&site->theirs, "heartbeat")}, 0, 0};
    const struct way *way;
    for (int i = 0; i < 2; i++)
        hand_fill(b.tidiers[i], (int64_t)heartbeat_rows);
    b.us = ours_heartbeat_open(&site->ours, 0);
    b.them = hand_open(&site->theirs, "heartbeat");
    hand_do(b.them, "learn");
    for (int i = 0; i < HEARTBEATS_BEFORE; i++) {
        heartbeat(&b, NULL);
        for (int k = 0; (way = hand_way(site->hand, "heartbeat", k)); k++)
            heartbeat(&b, way);
    }
    report_section("%.0f leases renewed in one heartbeat", heartbeat_rows);
    compare_rates(site, "heartbeat", HEARTBEATS, heartbeat_rate, &b);
    count_heartbeat(site);
    ours_heartbeat_close(b.us);
    hand_close(b.them);
    for (int i = 0; i < 2; i++)
        hand_close(b.tidiers[i]);
}

/* ---- waiting */

/* What the servers of one machine compute hides what a handoff sends, and a network shows it. */
static void bench_far_handoffs(const struct site *site)
{
    struct site far;
    OWNED(proxy) struct faultproxy *proxy = start_proxy(site, delay_us, &far);
    if (!proxy)
        return;
    bench_handoff(&far, "network handoff", longest_line < FAR_LINE ? (int)longest_line : FAR_LINE,
                  handoff_seconds);
}

static void bench_handoffs(const struct site *site)
{
    bench_handoff(site, "handoff", (int)longest_line, handoff_seconds);
    bench_far_handoffs(site);
    explain_handoffs(site);
}

static void bench_waiters(const struct site *site)
{
    bench_rest(site, (int)waiters, rest_seconds);
}

/* ---- versions */

static void bench_far_batches(const struct site *site)
{
    struct site far;
    OWNED(proxy) struct faultproxy *proxy = start_proxy(site, delay_us, &far);
    if (!proxy)
        return;
    report_section("the same over a network with %.1f ms round trips", 2 * delay_us / 1000.0);
    bench_batch(&far, "batch over a network", false, batch_seconds);
}

static void bench_batches(const struct site *site)
{
    report_section("1,000 rows of 100,000 written back under their versions: rows in a row");
    bench_batch(site, "batch", false, batch_seconds);
    report_section("the same, rows from all over the table");
    bench_batch(site, "scattered batch", true, batch_seconds);
    bench_far_batches(site);
    if (hand_way(site->hand, "insert", 0)) {
        report_section("1,000 new rows");
        bench_insert(site, batch_seconds);
    }
}

static void bench_hot_row(const struct site *site)
{
    bench_hotrow(site, hotrow_seconds);
}

/* ---- growth */

static void bench_growing(const struct site *site)
{
    bench_growth(site, (int64_t)growth_rows, seconds);
}

/* ---- all of it */

static const struct {
    const char *name;
    void (*run)(const struct site *site);
} parts[] = {
    {"pairs", bench_pairs},    {"network", bench_network},  {"busy", bench_busy},
    {"renew", bench_renew},    {"trips", bench_trips},      {"log", bench_log},
    {"sweep", bench_sweep},    {"handoff", bench_handoffs}, {"rest", bench_waiters},
    {"batch", bench_batches},  {"hotrow", bench_hot_row},   {"heartbeat", bench_heartbeat},
    {"growth", bench_growing}, {"pool", bench_pool},        {"quorum", bench_quorum},
};

static void bench_site(const struct hand *hand)
{
    struct site site;
    if (!site_open(&site, hand))
        return;
    struct session *session = hand_open(&site.theirs, "observer");
    report_database(hand->raw->name, hand_text(session, "describe"));
    hand_close(session);
    const char *word = getenv("BENCH");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!word || strstr(parts[i].name, word))
            parts[i].run(&site);
    hand_drop_places(hand, site.url);
}

static void report_disk(void)
{
    report_machine();
    report_line(
        "ratio: rowlock's rate over that line's, of rounds taken in turn; 1 is as fast, more"
        " is faster.\nCPU us: user time of the client for each operation.\n");
}

static void read_settings(void)
{
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        const char *text = getenv(settings[i].name);
        if (text && text[0])
            *settings[i].value = strtod(text, NULL);
        if (*settings[i].value <= 0)
            die("%s must be above 0", settings[i].name);
    }
}

int main(int argc, char **argv)
{
    read_settings();
    allow_many_files();
    report_disk();
    for (const struct hand *const *hand = hands; *hand; hand++)
        bench_site(*hand);
    if (argc > 1)
        report_save(argv[1]);
    return 0;
}
