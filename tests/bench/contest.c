/* SPDX-License-Identifier: MIT
 *
 * Contenders take turns in short rounds. What a step does is not known here.
 */
#include "bench.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { CLIENTS_MAX = 64 };

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

/* ---- one round of one contender */

struct client {
    pthread_t thread;
    void (*step)(void *session);
    void *session;
    pthread_barrier_t *start;
    double seconds;
    double ended;
    int64_t steps;
    double cpu_s;
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
    double end = clock_s() + client->seconds;
    double cpu = user_time();
    do {
        client->step(client->session);
        client->steps++;
        client->ended = clock_s();
    } while (client->ended < end);
    client->cpu_s = user_time() - cpu;
    return NULL;
}

struct round {
    double rate;
    double cpu_s;
    int64_t steps;
};

static struct round run_round(void (*step)(void *session), void **sessions, int count,
                              double seconds)
{
    struct client clients[CLIENTS_MAX] = {{0}};
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)count + 1);
    for (int i = 0; i < count; i++) {
        clients[i].step = step;
        clients[i].session = sessions[i];
        clients[i].start = &start;
        clients[i].seconds = seconds;
        if (pthread_create(&clients[i].thread, NULL, run_client, &clients[i]) != 0)
            die("cannot start a thread");
    }
    pthread_barrier_wait(&start);
    double began = clock_s(), ended = began, cpu = 0;
    int64_t steps = 0;
    for (int i = 0; i < count; i++) {
        pthread_join(clients[i].thread, NULL);
        ended = clients[i].ended > ended ? clients[i].ended : ended;
        steps += clients[i].steps;
        cpu += clients[i].cpu_s;
    }
    pthread_barrier_destroy(&start);
    return (struct round){(double)steps / (ended - began), cpu, steps};
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

static void judge(struct round rounds[][ROUNDS], int count, struct outcome *out)
{
    for (int c = 0; c < count; c++) {
        double rates[ROUNDS], ratios[ROUNDS], cpu_s = 0, steps = 0;
        for (int r = 0; r < ROUNDS; r++) {
            rates[r] = rounds[c][r].rate;
            cpu_s += rounds[c][r].cpu_s;
            steps += (double)rounds[c][r].steps;
            ratios[r] = rounds[0][r].rate / rounds[c][r].rate;
        }
        out[c].rate = median(rates, ROUNDS);
        out[c].cpu_us = cpu_s * 1e6 / steps;
        out[c].ratio = median(ratios, ROUNDS);
        out[c].low = ratios[0];
        out[c].high = ratios[ROUNDS - 1];
    }
}

void contest(const struct contender *contenders, int count, int clients, double seconds,
             const char *prefix, bool shared, struct outcome *out)
{
    void *sessions[CONTENDERS_MAX][CLIENTS_MAX] = {{0}};
    struct round rounds[CONTENDERS_MAX][ROUNDS];
    if (count > CONTENDERS_MAX || clients > CLIENTS_MAX)
        die("too many contenders or clients");
    for (int c = 0; c < count; c++)
        open_sessions(&contenders[c], clients, prefix, shared, sessions[c]);
    for (int r = 0; r < ROUNDS; r++)
        for (int c = 0; c < count; c++)
            rounds[c][r] = run_round(contenders[c].step, sessions[c], clients, seconds / ROUNDS);
    for (int c = 0; c < count; c++)
        for (int i = 0; i < clients; i++)
            contenders[c].close(sessions[c][i]);
    judge(rounds, count, out);
}
