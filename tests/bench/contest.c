/* SPDX-License-Identifier: MIT
 *
 * Contenders take turns in short rounds. What a step does is not known here. */
#include "bench.h"

#include <math.h>
#include <sys/resource.h>

enum { CLIENTS_MAX = 512 };

void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fputs("bench: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        die("out of memory");
    return memory;
}

double clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void sleep_s(double seconds)
{
    struct timespec pause = {.tv_sec = (time_t)seconds};
    pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
    nanosleep(&pause, NULL);
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* ---- how long steps take: counted in classes, each 1 % wider than the one before */

enum { CLASSES = 2048 };
static const double CLASS_WIDTH = 1.01, SHORTEST_S = 1e-7;

struct times {
    int64_t steps;
    int64_t in[CLASSES];
};

static void add_time(struct times *times, double took_s)
{
    double class = took_s > SHORTEST_S ? log(took_s / SHORTEST_S) / log(CLASS_WIDTH) : 0;
    times->in[class < CLASSES ? (int)class : CLASSES - 1]++;
    times->steps++;
}

static void add_times(struct times *sum, const struct times *more)
{
    for (int i = 0; i < CLASSES; i++)
        sum->in[i] += more->in[i];
    sum->steps += more->steps;
}

/* What that part of the steps did not exceed. */
static double part_us(const struct times *times, double part)
{
    int64_t below = 0;
    int i = 0;
    while (i < CLASSES - 1 && (double)(below += times->in[i]) < (double)times->steps * part)
        i++;
    return SHORTEST_S * pow(CLASS_WIDTH, i + 0.5) * 1e6;
}

/* ---- one round of one contender */

struct client {
    pthread_t thread;
    void (*step)(void *session);
    void *session;
    pthread_barrier_t *start;
    double seconds;
    double began, ended;
    double cpu_s;
    struct times times;
};

static double user_time(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6;
}

static void *run_client(void *argument)
{
    struct client *client = argument;
    pthread_barrier_wait(client->start);
    double began = client->began = clock_s(), end = began + client->seconds;
    double cpu = user_time();
    do {
        client->step(client->session);
        client->ended = clock_s();
        add_time(&client->times, client->ended - began);
        began = client->ended;
    } while (client->ended < end);
    client->cpu_s = user_time() - cpu;
    return NULL;
}

struct round {
    double rate;
    double cpu_s, server_s;
};

static struct round run_round(void (*step)(void *session), void **sessions, int count,
                              double seconds, struct times *times)
{
    struct client *clients = zeroed((size_t)count, sizeof *clients);
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)count + 1);
    for (int i = 0; i < count; i++) {
        clients[i] = (struct client){
            .step = step, .session = sessions[i], .start = &start, .seconds = seconds};
        if (pthread_create(&clients[i].thread, NULL, run_client, &clients[i]) != 0)
            die("cannot start a thread");
    }
    pthread_barrier_wait(&start);
    /* This thread may come back from there after the clients have ended. */
    double began = INFINITY, ended = 0, cpu = 0;
    int64_t steps = 0;
    for (int i = 0; i < count; i++) {
        pthread_join(clients[i].thread, NULL);
        began = fmin(began, clients[i].began);
        ended = clients[i].ended > ended ? clients[i].ended : ended;
        steps += clients[i].times.steps;
        cpu += clients[i].cpu_s;
        add_times(times, &clients[i].times);
    }
    pthread_barrier_destroy(&start);
    free(clients);
    return (struct round){(double)steps / (ended - began), cpu, 0};
}

/* ---- all of them */

static void open_sessions(const struct contender *contender, int clients, const char *prefix,
                          bool shared, void **sessions)
{
    for (int i = 0; i < clients; i++) {
        char name[64];
        /* Sessions of an earlier contest may have left their locks held. */
        snprintf(name, sizeof name, "%s %d", prefix, shared ? 0 : clients + i);
        sessions[i] = contender->open(contender, name);
        if (contender->begin)
            contender->begin(sessions[i]);
        contender->step(sessions[i]);
    }
}

static void judge(const struct round *rounds, const struct round *first, int count,
                  const struct times *times, struct outcome *out)
{
    double rates[ROUNDS], ratios[ROUNDS], cpu_s = 0, server_s = 0;
    for (int r = 0; r < count; r++) {
        rates[r] = out->rates[r] = rounds[r].rate;
        ratios[r] = first[r].rate / rounds[r].rate;
        cpu_s += rounds[r].cpu_s;
        server_s += rounds[r].server_s;
    }
    out->rounds = count;
    out->rate = median(rates, count);
    out->rate_low = rates[0];
    out->rate_high = rates[count - 1];
    out->ratio = median(ratios, count);
    out->low = ratios[0];
    out->high = ratios[count - 1];
    out->cpu_us = cpu_s * 1e6 / (double)times->steps;
    out->server_us = server_s * 1e6 / (double)times->steps;
    out->median_us = part_us(times, 0.5);
    out->p99_us = part_us(times, 0.99);
}

void contest(const struct contender *contenders, int count, int clients, int round_count,
             double seconds, const char *prefix, bool shared, struct outcome *out)
{
    void *sessions[CONTENDERS_MAX][CLIENTS_MAX] = {{0}};
    struct round rounds[CONTENDERS_MAX][ROUNDS];
    static struct times times[CONTENDERS_MAX];
    if (count > CONTENDERS_MAX || clients > CLIENTS_MAX || round_count > ROUNDS)
        die("too many contenders, clients or rounds");
    memset(times, 0, sizeof times);
    for (int c = 0; c < count; c++)
        open_sessions(&contenders[c], clients, prefix, shared, sessions[c]);
    for (int r = 0; r < round_count; r++)
        for (int c = 0; c < count; c++) {
            double before_s = server_cpu_s(contenders[c].server_dir);
            rounds[c][r] = run_round(contenders[c].step, sessions[c], clients,
                                     seconds / round_count, &times[c]);
            rounds[c][r].server_s = server_cpu_s(contenders[c].server_dir) - before_s;
        }
    for (int c = 0; c < count; c++)
        for (int i = 0; i < clients; i++)
            contenders[c].close(sessions[c][i]);
    for (int c = 0; c < count; c++)
        judge(rounds[c], rounds[0], round_count, &times[c], &out[c]);
}
