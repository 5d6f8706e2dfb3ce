/* SPDX-License-Identifier: MIT
 *
 * A counting and cutting TCP proxy; see proxy.h. One thread serves all its connections by poll().
 */
#include "proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINKS_MAX = 64, LOST_ANSWER_MS = 300, BUFFER_BYTES = 65536, TICK_MS = 20 };

struct link {
    int client, server;
    bool server_spoke; /* since the client last did, or nobody spoke yet */
};

struct proxy {
    pthread_t thread;
    int listener;
    struct sockaddr_in upstream;
    struct link links[LINKS_MAX];
    int count;
    char buffer[BUFFER_BYTES];
    atomic_int round_trips;
    atomic_bool lose_next, cut_all, stop;
};

static void unlink_at(struct proxy *proxy, int i)
{
    close(proxy->links[i].client);
    close(proxy->links[i].server);
    proxy->links[i] = proxy->links[--proxy->count];
}

static void accept_one(struct proxy *proxy)
{
    int one = 1;
    int client = accept(proxy->listener, NULL, NULL);
    if (client < 0)
        return;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server < 0 || proxy->count == LINKS_MAX ||
        connect(server, (struct sockaddr *)&proxy->upstream, sizeof proxy->upstream) != 0) {
        close(client);
        if (server >= 0)
            close(server);
        return;
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    proxy->links[proxy->count++] =
        (struct link){.client = client, .server = server, .server_spoke = true};
}

/* False when one side has hung up. */
static bool forward(struct proxy *proxy, int from, int to)
{
    ssize_t length = read(from, proxy->buffer, sizeof proxy->buffer);
    for (ssize_t sent = 0; sent < length;) {
        ssize_t n = send(to, proxy->buffer + sent, (size_t)(length - sent), MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        sent += n;
    }
    return length > 0;
}

/* False when the link is to be cut. */
static bool serve_client(struct proxy *proxy, struct link *link)
{
    if (link->server_spoke) {
        link->server_spoke = false;
        proxy->round_trips++;
    }
    if (!forward(proxy, link->client, link->server))
        return false;
    if (!atomic_exchange(&proxy->lose_next, false))
        return true;
    /* The server works on the request, answers into the void, and then we hang up. */
    struct pollfd answer = {.fd = link->server, .events = POLLIN};
    poll(&answer, 1, LOST_ANSWER_MS);
    return false;
}

static void *serve(void *argument)
{
    struct proxy *proxy = argument;
    while (!proxy->stop) {
        struct pollfd fds[1 + 2 * LINKS_MAX] = {{.fd = proxy->listener, .events = POLLIN}};
        int count = proxy->count;
        for (int i = 0; i < count; i++) {
            fds[1 + 2 * i] = (struct pollfd){.fd = proxy->links[i].client, .events = POLLIN};
            fds[2 + 2 * i] = (struct pollfd){.fd = proxy->links[i].server, .events = POLLIN};
        }
        poll(fds, (nfds_t)(1 + 2 * count), TICK_MS);
        bool cut_all = atomic_exchange(&proxy->cut_all, false);
        for (int i = count - 1; i >= 0; i--) {
            struct link *link = &proxy->links[i];
            bool alive = !cut_all;
            if (alive && fds[2 + 2 * i].revents) {
                alive = forward(proxy, link->server, link->client);
                link->server_spoke = true;
            }
            if (alive && fds[1 + 2 * i].revents)
                alive = serve_client(proxy, link);
            if (!alive)
                unlink_at(proxy, i);
        }
        if (fds[0].revents)
            accept_one(proxy);
    }
    while (proxy->count > 0)
        unlink_at(proxy, 0);
    return NULL;
}

/* Find …@host:port/… and cut the URL into what is before host and what is after port. */
static bool split(const char *url, char *before, size_t cap, char host[64], int *port,
                  const char **after)
{
    const char *at = strrchr(url, '@');
    const char *begin = at ? at + 1 : strstr(url, "://") + 3;
    int length = 0;
    if (sscanf(begin, "%63[0-9a-zA-Z.]:%d%n", host, port, &length) != 2)
        return false;
    snprintf(before, cap, "%.*s", (int)(begin - url), url);
    *after = begin + length;
    return true;
}

struct proxy *proxy_start(const char *url, char **proxied)
{
    char before[500], host[64];
    const char *after = NULL;
    int port = 0;
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    if (!split(url, before, sizeof before, host, &port, &after))
        return NULL;
    struct proxy *proxy = calloc(1, sizeof *proxy);
    if (!proxy)
        abort();
    proxy->upstream.sin_family = AF_INET;
    proxy->upstream.sin_port = htons((uint16_t)port);
    if (inet_pton(AF_INET, host, &proxy->upstream.sin_addr) != 1)
        proxy->upstream.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(proxy->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(proxy->listener, LINKS_MAX) != 0 ||
        getsockname(proxy->listener, (struct sockaddr *)&address, &size) != 0 ||
        asprintf(proxied, "%s127.0.0.1:%d%s", before, ntohs(address.sin_port), after) < 0 ||
        pthread_create(&proxy->thread, NULL, serve, proxy) != 0)
        abort();
    return proxy;
}

void proxy_stop(struct proxy *proxy)
{
    proxy->stop = true;
    pthread_join(proxy->thread, NULL);
    close(proxy->listener);
    free(proxy);
}

int proxy_round_trips(struct proxy *proxy)
{
    return atomic_exchange(&proxy->round_trips, 0);
}

void proxy_lose_next_answer(struct proxy *proxy)
{
    proxy->lose_next = true;
}

void proxy_cut(struct proxy *proxy)
{
    proxy->cut_all = true;
    while (proxy->cut_all)
        usleep(1000);
    /* The thread has seen it; a moment later the sockets are closed. */
    usleep(5000);
}
