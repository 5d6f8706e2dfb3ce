/* SPDX-License-Identifier: MIT
 *
 * From the release of a lock to its next grant, while others wait for it. Each holder keeps the lock for a
 * moment, and stands aside after its release until another has it. So each handoff is one to a waiter.
 */
#include "bench.h"

#include <math.h>

enum { PINGS = 201, HOLDS_A_SECOND = 1000 };

/* PostgreSQL's sessions tell what they did a second later; and all must have taken their places. */
static const double WARM_UP_S = 1.5, WARM_UP_EACH_S = 0.01;

const struct column handoff_columns[] = {
    {"median us", "median_us", 0}, {"99% us", "p99_us", 0},         {"trips", "round_trips", 1},
    {"whole us", "whole_us", 0},   {"handoffs/s", "per_second", 0}, {"statements", "statements", 1},
};

/* One time that a client had the lock. */
struct turn {
    double acquired;
    double called; /* release() was */
    double released; /* and returned */
};

struct line {
    const struct waiter *way;
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    bool held, stopping;
    int taken, room;
    struct turn *turns;
};

struct member {
    pthread_t thread;
    struct line *line;
    void *session;
};

/* ---- one of the line */

/* Which turn this is; -1: it is over. */
static int take_turn(struct line *l)
{
    double now = clock_s();
    pthread_mutex_lock(&l->mutex);
    if (l->held)
        die("%s: two have the lock", l->way->label);
    int turn = l->stopping || l->taken == l->room ? -1 : l->taken++;
    if (turn >= 0) {
        l->turns[turn].acquired = now;
        l->held = true;
        pthread_cond_broadcast(&l->moved);
    }
    pthread_mutex_unlock(&l->mutex);
    return turn;
}

static void end_turn(struct line *l, int turn)
{
    pthread_mutex_lock(&l->mutex);
    l->held = false;
    pthread_mutex_unlock(&l->mutex);
    l->turns[turn].called = clock_s();
}

static bool stand_aside(struct line *l, int turn)
{
    pthread_mutex_lock(&l->mutex);
    while (l->taken == turn + 1 && !l->stopping)
        pthread_cond_wait(&l->moved, &l->mutex);
    bool go_on = !l->stopping;
    pthread_mutex_unlock(&l->mutex);
    return go_on;
}

/* From 1 to 3 ms, the same in each line. */
static double hold_s(int turn)
{
    return 1e-3 + (double)((unsigned)turn * 2654435761u >> 22) * 2e-6;
}

static void *run_member(void *argument)
{
    struct member *m = argument;
    struct line *l = m->line;
    int turn = 0;
    while (turn >= 0 && l->way->acquire(m->session)) {
        turn = take_turn(l);
        if (turn < 0) {
            l->way->release(m->session);
            break;
        }
        sleep_s(hold_s(turn));
        end_turn(l, turn);
        l->way->release(m->session);
        l->turns[turn].released = clock_s();
        if (!stand_aside(l, turn))
            break;
    }
    return NULL;
}

/* ---- all of the line */

static void start(struct line *l, struct member *members, int count)
{
    for (int i = 0; i < count; i++) {
        members[i].line = l;
        members[i].session = l->way->open(l->way->place, "handoff");
    }
    for (int i = 0; i < count; i++)
        if (pthread_create(&members[i].thread, NULL, run_member, &members[i]) != 0)
            die("cannot start a thread");
}

static void finish(struct line *l, struct member *members, int count)
{
    pthread_mutex_lock(&l->mutex);
    l->stopping = true;
    pthread_cond_broadcast(&l->moved);
    pthread_mutex_unlock(&l->mutex);
    for (int i = 0; i < count && l->way->stop; i++)
        l->way->stop(members[i].session);
    for (int i = 0; i < count; i++)
        pthread_join(members[i].thread, NULL);
    for (int i = 0; i < count; i++)
        l->way->close(members[i].session);
}

static double percentile(const double *sorted, int count, double part)
{
    return sorted[(int)((double)(count - 1) * part + 0.5)];
}

/* Turns that began between from and to, and the handoffs to them. */
static void judge(const struct line *l, double from, double to, double trip_s, double *out)
{
    double *gaps = zeroed((size_t)l->room, sizeof *gaps);
    double *wholes = zeroed((size_t)l->room, sizeof *wholes);
    int count = 0;
    for (int i = 1; i < l->taken; i++) {
        if (l->turns[i].acquired < from || l->turns[i].acquired > to)
            continue;
        gaps[count] = l->turns[i].acquired - l->turns[i - 1].released;
        wholes[count++] = l->turns[i].acquired - l->turns[i - 1].called;
    }
    for (int i = 0; i < STATEMENTS; i++)
        out[i] = NAN;
    if (count > 0) {
        out[MEDIAN] = median(gaps, count) * 1e6;
        out[P99] = percentile(gaps, count, 0.99) * 1e6;
        out[TRIPS] = median(gaps, count) / trip_s;
        out[WHOLE] = median(wholes, count) * 1e6;
    }
    out[RATE] = (double)count / (to - from);
    out[STATEMENTS] = count > 0 ? out[STATEMENTS] / count : NAN;
    free(gaps);
    free(wholes);
}

static int64_t statements_of(const struct observer *observer)
{
    return observer->statements ? observer->statements(observer->session) : 0;
}

void measure_handoff(const struct waiter *way, const struct observer *observer, int waiting,
                     double warm_up_s, double seconds, double trip_s, double *out)
{
    struct line l = {.way = way, .room = (int)((seconds + 60) * HOLDS_A_SECOND)};
    struct member *members = zeroed((size_t)waiting + 1, sizeof *members);
    l.turns = zeroed((size_t)l.room, sizeof *l.turns);
    pthread_mutex_init(&l.mutex, NULL);
    pthread_cond_init(&l.moved, NULL);
    start(&l, members, waiting + 1);
    sleep_s(warm_up_s + WARM_UP_EACH_S * waiting);
    int64_t before = statements_of(observer);
    double from = clock_s();
    sleep_s(seconds);
    double to = clock_s();
    out[STATEMENTS] = observer->statements ? (double)(statements_of(observer) - before) : NAN;
    finish(&l, members, waiting + 1);
    judge(&l, from, to, trip_s, out);
    pthread_cond_destroy(&l.moved);
    pthread_mutex_destroy(&l.mutex);
    free(l.turns);
    free(members);
}

/* ---- the tables */

static double round_trip(struct session *session)
{
    double took[PINGS];
    for (int i = 0; i < PINGS; i++) {
        double began = clock_s();
        hand_do(session, "ping");
        took[i] = clock_s() - began;
    }
    return median(took, PINGS);
}

static void bench_line(const struct site *site, const char *key, const struct observer *observer,
                       int waiting, double seconds)
{
    struct waiter ways[WAITERS_MAX];
    int count = ways_to_wait(site, true, ways);
    bool has_server = observer->statements != NULL;
    double trip_s = has_server ? round_trip(observer->session) : NAN;
    report_section("%ss to one of %d who wait%s", key, waiting, waiting == 1 ? "s" : "");
    if (has_server) {
        report_line("  the least round trip takes %.0f us\n", trip_s * 1e6);
        report_number("round trip us", key, trip_s * 1e6);
    }
    report_columns(handoff_columns, HANDOFF_COLUMNS);
    for (int w = 0; w < count; w++) {
        double values[HANDOFF_COLUMNS];
        measure_handoff(&ways[w], observer, waiting, WARM_UP_S, seconds, trip_s, values);
        report_row(key, ways[w].label, waiting, handoff_columns, values, HANDOFF_COLUMNS);
    }
}

void explain_handoffs(const struct site *site)
{
    struct waiter ways[WAITERS_MAX];
    int count = ways_to_wait(site, true, ways);
    for (int w = 0; w < count; w++)
        if (ways[w].legend)
            report_line("    %s: %s\n", ways[w].label, ways[w].legend);
    report_line(
        "    Each holds the lock for 1 to 3 ms. median, 99%%: from the return of release to the"
        " return of the next\n    acquire, below 0 if that came first; trips: the median in"
        " round trips; whole: from the call of release;\n    statements: the server's count"
        " for each handoff, of all that those in the line send. PostgreSQL counts\n    "
        "transactions: one more in each session that listens, for each notification.\n");
}

void bench_handoff(const struct site *site, const char *key, int longest, double seconds)
{
    static const int lines[] = {1, 16, 64, 512};
    struct session *session = hand_open(&site->theirs, "observer");
    struct observer observer = hand_observer(&site->theirs, session);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (lines[i] <= longest)
            bench_line(site, key, &observer, lines[i], seconds);
    hand_close(session);
}
