/* SPDX-License-Identifier: MIT
 *
 * What it costs that many wait while nothing happens: one holds the lock, the others stand there.
 */
#include "hand.h"

#include <dirent.h>
#include <math.h>
#include <sys/resource.h>

/* Until all stand there, and PostgreSQL's sessions tell what they did ten seconds later. */
static const double SETTLE_S = 11;

const struct column rest_columns[] = {
    {"stmts/s", "statements_per_second", 1},
    {"server CPU%", "server_cpu_percent", 2},
    {"client CPU%", "client_cpu_percent", 2},
    {"connections", "connections", 0},
};

struct member {
    pthread_t thread;
    const struct waiter *way;
    void *session;
};

/* ---- processor time */

struct process {
    long pid, parent;
    double used_s; /* by it and by its children that are gone */
};

static bool read_process(const char *pid, struct process *out)
{
    char path[300], text[1000];
    long parent;
    unsigned long long used[4];
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = '\0';
    char *rest = strrchr(text, ')'); /* the name before it may hold anything */
    if (!rest ||
        sscanf(rest + 1, " %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu",
               &parent, &used[0], &used[1], &used[2], &used[3]) != 5)
        return false;
    out->pid = strtol(pid, NULL, 10);
    out->parent = parent;
    out->used_s = (double)(used[0] + used[1] + used[2] + used[3]) / (double)sysconf(_SC_CLK_TCK);
    return true;
}

static long server_pid(const char *dir)
{
    char path[500];
    long pid = 0;
    snprintf(path, sizeof path, "%s/pid", dir ? dir : "");
    FILE *file = dir ? fopen(path, "r") : NULL;
    if (file && fscanf(file, "%ld", &pid) != 1)
        pid = 0;
    if (file)
        fclose(file);
    return pid;
}

/* The server is a process, with children or without. */
double server_cpu_s(const char *dir)
{
    long server = server_pid(dir);
    DIR *all = server ? opendir("/proc") : NULL;
    double used_s = 0;
    if (!all)
        return NAN;
    for (struct dirent *entry; (entry = readdir(all));) {
        struct process process;
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' &&
            read_process(entry->d_name, &process) &&
            (process.pid == server || process.parent == server))
            used_s += process.used_s;
    }
    closedir(all);
    return used_s;
}

static double client_cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* ---- one way to wait */

static void *run_member(void *argument)
{
    struct member *m = argument;
    if (m->way->acquire(m->session))
        m->way->release(m->session);
    return NULL;
}

static void hold(const struct waiter *way, void *session)
{
    if (way->keep)
        way->keep(session);
    else if (!way->acquire(session))
        die("%s: the lock is not free", way->label);
}

static void start(const struct waiter *way, struct member *members, int count)
{
    for (int i = 0; i < count; i++) {
        members[i].way = way;
        members[i].session = way->open(way->place, "rest");
        if (pthread_create(&members[i].thread, NULL, run_member, &members[i]) != 0)
            die("cannot start a thread");
    }
}

static void finish(const struct waiter *way, void *holder, struct member *members, int count)
{
    for (int i = 0; i < count && way->stop; i++)
        way->stop(members[i].session);
    way->release(holder);
    for (int i = 0; i < count; i++)
        pthread_join(members[i].thread, NULL);
    for (int i = 0; i < count; i++)
        way->close(members[i].session);
}

static void watch(const struct observer *observer, double seconds, double *out)
{
    double server_s = server_cpu_s(observer->dir), client_s = client_cpu_s(), began = clock_s();
    int64_t before = observer->statements ? observer->statements(observer->session) : 0;
    sleep_s(seconds);
    double took = clock_s() - began;
    int64_t after = observer->statements ? observer->statements(observer->session) : 0;
    out[REST_STATEMENTS] = observer->statements ? (double)(after - before) / took : NAN;
    out[SERVER_CPU] = (server_cpu_s(observer->dir) - server_s) / took * 100;
    out[CLIENT_CPU] = (client_cpu_s() - client_s) / took * 100;
    /* The observer is a connection itself, which is not counted. */
    out[CONNECTIONS] =
        observer->connections ? (double)observer->connections(observer->session) - 1 : NAN;
}

void measure_rest(const struct waiter *way, const struct observer *observer, int count,
                  double settle_s, double seconds, double *out)
{
    struct member *members = zeroed((size_t)count, sizeof *members);
    void *holder = way->open(way->place, "rest");
    hold(way, holder);
    start(way, members, count);
    sleep_s(settle_s);
    watch(observer, seconds, out);
    finish(way, holder, members, count);
    way->close(holder);
    free(members);
}

void bench_rest(const struct site *site, int count, double seconds)
{
    struct waiter ways[WAITERS_MAX];
    int way_count = ways_to_wait(site, false, ways);
    struct session *session = hand_open(&site->theirs, "observer");
    struct observer observer = hand_observer(&site->theirs, session);
    report_section("%d who wait at rest for %.0f s", count, seconds);
    report_columns(rest_columns, REST_COLUMNS);
    for (int w = 0; w < way_count; w++) {
        double values[REST_COLUMNS];
        measure_rest(&ways[w], &observer, count, SETTLE_S, seconds, values);
        report_row("rest", ways[w].label, count, rest_columns, values, REST_COLUMNS);
    }
    report_line("    CPU%%: of one processor; connections: of those who wait, the holder, and what"
                " renews its lease.\n");
    hand_close(session);
}
