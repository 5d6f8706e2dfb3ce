/* SPDX-License-Identifier: MIT
 *
 * A relay between a client and a server that counts round trips and can be as slow as a network.
 * It knows no protocol: a round trip begins when the client speaks after the server has, or first.
 * Each direction of a connection has a thread, which is enough for clients that send and then wait.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct relay {
    pthread_t thread;
    int listener;
    struct sockaddr_in server;
    int delay_us; /* each way */
    atomic_int round_trips;
    atomic_int links; /* that are still open */
};

struct link {
    struct relay *relay;
    int client, server;
    atomic_bool server_spoke;
    atomic_int ways; /* that are still open */
};

struct way {
    struct link *link;
    bool upward; /* from the client to the server */
};

static bool send_all(int to, const char *bytes, ssize_t length)
{
    for (ssize_t sent = 0; sent < length;) {
        ssize_t n = send(to, bytes + sent, (size_t)(length - sent), MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        sent += n;
    }
    return length > 0;
}

static void travel(int delay_us)
{
    struct timespec time = {delay_us / 1000000, (long)(delay_us % 1000000) * 1000};
    if (delay_us > 0)
        nanosleep(&time, NULL);
}

static void close_way(struct link *link)
{
    shutdown(link->client, SHUT_RDWR);
    shutdown(link->server, SHUT_RDWR);
    if (--link->ways > 0)
        return;
    close(link->client);
    close(link->server);
    link->relay->links--;
    free(link);
}

static void *run_way(void *argument)
{
    struct way way = *(struct way *)argument;
    struct link *link = way.link;
    struct relay *relay = link->relay;
    char buffer[65536];
    free(argument);
    for (;;) {
        ssize_t length = read(way.upward ? link->client : link->server, buffer, sizeof buffer);
        if (length > 0 && way.upward && atomic_exchange(&link->server_spoke, false))
            relay->round_trips++;
        if (length > 0 && !way.upward)
            link->server_spoke = true;
        travel(relay->delay_us);
        if (!send_all(way.upward ? link->server : link->client, buffer, length))
            break;
    }
    close_way(link);
    return NULL;
}

static void start_way(struct link *link, bool upward)
{
    struct way *way = malloc(sizeof *way);
    pthread_t thread;
    if (!way)
        die("out of memory");
    *way = (struct way){link, upward};
    if (pthread_create(&thread, NULL, run_way, way) != 0)
        die("cannot start a thread");
    pthread_detach(thread);
}

static int connect_to(const struct sockaddr_in *address)
{
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server < 0 || connect(server, (const struct sockaddr *)address, sizeof *address) != 0)
        die("the relay cannot reach the server");
    return server;
}

/* Until the listener is shut down. */
static void *serve(void *argument)
{
    struct relay *relay = argument;
    int client, one = 1;
    while ((client = accept(relay->listener, NULL, NULL)) >= 0) {
        struct link *link = calloc(1, sizeof *link);
        if (!link)
            die("out of memory");
        relay->links++;
        link->relay = relay;
        link->client = client;
        link->server = connect_to(&relay->server);
        link->server_spoke = true;
        link->ways = 2;
        setsockopt(link->client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(link->server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        start_way(link, true);
        start_way(link, false);
    }
    return NULL;
}

/* …@host:port/…, where host is this machine: put another port in the place of that. */
static bool redirect(const char *url, int *port, int relay_port, char *out, size_t cap)
{
    const char *at = strrchr(url, '@');
    const char *begin = at ? at + 1 : strstr(url, "://") ? strstr(url, "://") + 3 : url;
    char host[64];
    int length = 0;
    if (sscanf(begin, "%63[0-9a-zA-Z.]:%d%n", host, port, &length) != 2)
        return false;
    if (strcmp(host, "127.0.0.1") != 0 && strcmp(host, "localhost") != 0)
        return false;
    snprintf(out, cap, "%.*s127.0.0.1:%d%s", (int)(begin - url), url, relay_port, begin + length);
    return true;
}

struct relay *relay_start(const char *url, int delay_us, char *relayed, size_t cap)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int port = 0;
    struct relay *relay = calloc(1, sizeof *relay);
    if (!relay)
        die("out of memory");
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    relay->delay_us = delay_us;
    relay->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(relay->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(relay->listener, SOMAXCONN) != 0 ||
        getsockname(relay->listener, (struct sockaddr *)&address, &size) != 0)
        die("the relay has no port");
    if (!redirect(url, &port, ntohs(address.sin_port), relayed, cap)) {
        close(relay->listener);
        free(relay);
        return NULL;
    }
    relay->server = address;
    relay->server.sin_port = htons((uint16_t)port);
    if (pthread_create(&relay->thread, NULL, serve, relay) != 0)
        die("cannot start a thread");
    return relay;
}

/* Its connections must be closed by their clients now; their threads are waited for. */
void relay_stop(struct relay *relay)
{
    shutdown(relay->listener, SHUT_RDWR);
    pthread_join(relay->thread, NULL);
    close(relay->listener);
    while (relay->links > 0)
        usleep(1000);
    free(relay);
}

int relay_round_trips(struct relay *relay)
{
    return atomic_exchange(&relay->round_trips, 0);
}
