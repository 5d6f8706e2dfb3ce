/* SPDX-License-Identifier: MIT
 *
 * One row that all clients want to add to, with two milliseconds of work between reading and writing: how many
 * succeed, what each success takes, and how long the unlucky wait. */
#include "hand.h"

enum { CLIENTS_MAX = 32, SCHEMES_MAX = 5, FIGURES = 5, LONGEST_MS = 64 };

struct client;

struct scheme {
    const char *label;
    void (*succeed)(struct client *client);
};

struct client {
    pthread_t thread;
    const struct scheme *scheme;
    const struct site *site;
    pthread_barrier_t *start;
    struct session *hand;
    rowlock_db *db;
    rowlock_table *table;
    double seconds;
    unsigned seed;
    int64_t attempts;
    double *latencies;
    size_t count, room;
};

static void work(void)
{
    sleep_s(0.002);
}

/* ---- schemes: each returns when it has succeeded */

static void immediately(struct client *c)
{
    do
        c->attempts++;
    while (hand_do(c->hand, "hot try") != 1);
}

/* A random pause up to 1 ms, 2 ms, 4 ms and so on. */
static void with_jitter(struct client *c)
{
    int range_ms = 1;
    while (c->attempts++, hand_do(c->hand, "hot try") != 1) {
        sleep_s((double)rand_r(&c->seed) / RAND_MAX * range_ms / 1000);
        range_ms = range_ms < LONGEST_MS ? 2 * range_ms : LONGEST_MS;
    }
}

static void under_lock(struct client *c)
{
    c->attempts++;
    hand_do(c->hand, "hot lock");
}

static void at_once(struct client *c)
{
    c->attempts++;
    hand_do(c->hand, "hot atomic");
}

static int add_one(void *context, const rowlock_attempt *attempt)
{
    struct client *c = context;
    rowlock_value id = rowlock_int(1), amount;
    rowlock_row row = ROWLOCK_ROW_INIT;
    int result = rowlock_read(c->table, &id, attempt->lock, &row);
    if (result != ROWLOCK_OK)
        return result;
    amount = rowlock_int(row.values[0].number + 1);
    rowlock_change change = {.key = &id, .values = &amount, .version = row.version};
    work();
    return rowlock_update(c->table, &change, 1, NULL);
}

/* As it is by default; what gives up begins again. */
static void by_rowlock(struct client *c)
{
    int result;
    do {
        rowlock_retry_report report = ROWLOCK_RETRY_REPORT_INIT;
        result = rowlock_retry(c->db, add_one, c, NULL, &report);
        c->attempts += report.attempts;
    } while (result == ROWLOCK_STALE || result == ROWLOCK_CONFLICT || result == ROWLOCK_BUSY);
    if (result != ROWLOCK_OK) {
        const rowlock_error *err = rowlock_db_error(c->db);
        die("%s: %s", err->action, err->text);
    }
}

/* ---- clients */

static void open_client(struct client *c)
{
    static const char *const columns[] = {"amount", NULL};
    const struct place *place = &c->site->ours;
    if (c->scheme->succeed != by_rowlock) {
        c->hand = hand_open_rows(place, "hotrow", NULL);
        hand_set_work(c->hand, work);
        return;
    }
    c->table = ours_open_table(place, "hotrow", columns, &c->db);
}

static void close_client(struct client *c)
{
    if (c->hand)
        hand_close(c->hand);
    rowlock_table_close(c->table);
    rowlock_db_close(c->db);
    free(c->latencies);
}

static void keep(struct client *c, double latency)
{
    if (c->count == c->room) {
        c->room = 2 * c->room + 1000;
        c->latencies = realloc(c->latencies, c->room * sizeof *c->latencies);
        if (!c->latencies)
            die("out of memory");
    }
    c->latencies[c->count++] = latency;
}

static void *run_client(void *argument)
{
    struct client *c = argument;
    pthread_barrier_wait(c->start);
    double now = clock_s(), end = now + c->seconds;
    while (now < end) {
        double began = now;
        c->scheme->succeed(c);
        now = clock_s();
        keep(c, now - began);
    }
    return NULL;
}

/* ---- one figure */

static void judge(struct client *clients, int count, double took, double *figures)
{
    size_t total = 0, at = 0;
    int64_t attempts = 0;
    for (int i = 0; i < count; i++)
        total += clients[i].count;
    double *all = zeroed(total, sizeof *all);
    for (int i = 0; i < count; i++) {
        memcpy(all + at, clients[i].latencies, clients[i].count * sizeof *all);
        at += clients[i].count;
        attempts += clients[i].attempts;
    }
    figures[0] = (double)total / took;
    figures[1] = (double)attempts / (double)total;
    figures[2] = median(all, (int)total) * 1000;
    figures[3] = all[total - 1 - total / 100] * 1000;
    figures[4] = all[total - 1] * 1000;
    free(all);
}

static void run_scheme(const struct site *site, const struct scheme *scheme, int count,
                       double seconds, double *figures)
{
    static struct client clients[CLIENTS_MAX];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)count + 1);
    for (int i = 0; i < count; i++) {
        clients[i] = (struct client){.scheme = scheme,
                                     .site = site,
                                     .start = &start,
                                     .seconds = seconds,
                                     .seed = (unsigned)i + 1};
        open_client(&clients[i]);
        if (pthread_create(&clients[i].thread, NULL, run_client, &clients[i]) != 0)
            die("cannot start a thread");
    }
    pthread_barrier_wait(&start);
    double began = clock_s();
    for (int i = 0; i < count; i++)
        pthread_join(clients[i].thread, NULL);
    judge(clients, count, clock_s() - began, figures);
    for (int i = 0; i < count; i++)
        close_client(&clients[i]);
    pthread_barrier_destroy(&start);
}

void bench_hotrow(const struct site *site, double seconds)
{
    static const int counts[] = {1, 8, 32};
    static const struct column columns[FIGURES] = {{"per s", "per_second", 0},
                                                   {"attempts", "attempts", 2},
                                                   {"p50 ms", "p50_ms", 1},
                                                   {"p99 ms", "p99_ms", 1},
                                                   {"max ms", "max_ms", 1}};
    const struct scheme schemes[SCHEMES_MAX] = {{"immediate retry", immediately},
                                                {"full jitter", with_jitter},
                                                {"lock first", under_lock},
                                                {"rowlock_retry", by_rowlock},
                                                {"one atomic UPDATE", at_once}};
    report_section("one hot row, 2 ms of work between reading and writing");
    report_columns(columns, FIGURES);
    for (size_t n = 0; n < sizeof counts / sizeof counts[0]; n++)
        for (int i = 0; i < SCHEMES_MAX; i++) {
            double figures[FIGURES];
            make_rows(&site->ours, "hotrow", 1);
            run_scheme(site, &schemes[i], counts[n], seconds, figures);
            report_clients("hotrow", schemes[i].label, counts[n], columns, figures, FIGURES);
        }
    report_line("    lock first: %s; one atomic UPDATE: amount = amount + 1, without the work\n",
                hand_way(site->hand, "hot lock", 0)->legend);
}
