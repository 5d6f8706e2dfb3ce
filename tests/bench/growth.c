/* SPDX-License-Identifier: MIT
 *
 * Cost as work grows. Two sets of tables take turns: one stays small, the other grows. What goes by
 * key must be as fast in both. A list of all and a sweep read all rows. There the cost of a row
 * must not grow. */
#include "hand.h"

enum { SMALL = 1000, RENEWED = 100, SCANS = 5, GROWTH_ROUNDS = 7 };

/* ---- what is measured in both */

static void list_name(void *session)
{
    if (ours_count(session, "busy 0") != 1)
        die("the lock is not listed");
}

static void *open_heartbeat(const struct contender *contender, const char *name)
{
    return ours_heartbeat_open(contender->place, RENEWED);
}

static const struct work {
    const char *key, *title, *unit;
    void (*step)(void *session);
    bool shared;
} works[] = {
    {"pairs", "acquire + release", "pairs/s", ours_pair, false},
    {"busy", "tries of a lock that another holds", "tries/s", ours_busy, true},
    {"list", "the grants of one name listed", "lists/s", list_name, true},
    {"heartbeat", "100 leases renewed in one heartbeat", "per s", ours_heartbeat, false},
};

/* rowlock in both places; the one that grows is the first. */
static void both(const struct site *site, const struct work *work, const char *big_label,
                 struct contender out[2])
{
    out[0] = our_contender(&site->ours, work->step);
    out[0].label = big_label;
    if (work->step == ours_heartbeat) {
        out[0].open = open_heartbeat;
        out[0].close = ours_heartbeat_close;
    }
    out[1] = out[0];
    out[1].label = "1,000 rows";
    out[1].place = &site->theirs;
}

static void compare(const struct site *site, const struct work *work, const char *label,
                    const int *clients, int columns, double seconds)
{
    struct contender contenders[2];
    struct outcome outcomes[3][CONTENDERS_MAX];
    char key[50];
    snprintf(key, sizeof key, "growth %s, %s", work->key, label);
    both(site, work, label, contenders);
    report_section("%s", work->title);
    for (int i = 0; i < columns; i++)
        contest(contenders, 2, clients[i], GROWTH_ROUNDS, seconds, work->key, work->shared,
                outcomes[i]);
    report_contest(key, work->unit, contenders, 2, clients, columns,
                   (const struct outcome(*)[CONTENDERS_MAX])outcomes);
}

/* ---- what reads all rows */

static double list_us(void *session, int64_t *rows)
{
    double began = clock_s();
    *rows = ours_count(session, NULL);
    return (clock_s() - began) * 1e6;
}

static double sweep_us(void *session)
{
    double began = clock_s();
    ours_sweep(session);
    return (clock_s() - began) * 1e6;
}

static void scan(const struct place *place, const char *label)
{
    double lists[SCANS], sweeps[SCANS];
    int64_t rows = 0;
    void *session = ours_open(place, "scan");
    for (int i = 0; i < SCANS; i++) {
        lists[i] = list_us(session, &rows);
        sweeps[i] = sweep_us(session);
    }
    double of_list = median(lists, SCANS), of_sweep = median(sweeps, SCANS);
    report_line("  %-28s  a list of all %.2f us a row; a sweep that finds nothing %.2f us a row\n",
                label, of_list / (double)rows, of_sweep / (double)rows);
    report_number("growth, list of all, us a row", label, of_list / (double)rows);
    report_number("growth, sweep, us a row", label, of_sweep / (double)rows);
    ours_close(session);
}

/* ---- all of it */

static void grow(const struct place *place, int64_t from, int64_t to)
{
    struct session *s = hand_open(place, "grower");
    hand_grow(s, from, to);
    hand_close(s);
}

static void measure_all(const struct site *site, const char *label, double seconds)
{
    static const int one[] = {1};
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++)
        compare(site, &works[i], label, one, 1, seconds);
    report_section("what reads all rows");
    scan(&site->theirs, "1,000 rows");
    scan(&site->ours, label);
}

void bench_growth(const struct site *site, int64_t most, double seconds)
{
    static const int clients[] = {8, 64, 512};
    int columns = site->hand->server_dir_env ? 3 : 2;
    void *holders[] = {ours_open(&site->ours, "busy 0"), ours_open(&site->theirs, "busy 0")};
    int64_t rows = 0;
    grow(&site->theirs, 0, SMALL);
    ours_hold_long(holders[1]);
    for (int64_t next = 100 * SMALL; rows < most; next *= 10) {
        char label[50];
        next = next < most ? next : most;
        snprintf(label, sizeof label, "%lld rows", (long long)next);
        grow(&site->ours, rows, next);
        if (rows == 0)
            ours_hold_long(holders[0]);
        rows = next;
        report_line("\n--- %s beside 1,000\n", label);
        measure_all(site, label, seconds);
        if (rows == most)
            compare(site, &works[0], label, clients, columns, seconds);
    }
    for (int i = 0; i < 2; i++)
        ours_close(holders[i]);
}
