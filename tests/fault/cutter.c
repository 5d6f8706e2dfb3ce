/* SPDX-License-Identifier: MIT
 *
 * A cutting TCP proxy; see cutter.h. One thread serves all its connections by poll().
 */
#include "cutter.h"

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

enum { LINKS_MAX = 32, BUFFER_BYTES = 65536, TICK_MS = 20, ANSWER_MS = 5000, SILENCE_MS = 50 };

struct link {
    int client, server;
    bool server_spoke; /* since the client last did, or nobody spoke yet */
};

struct cutter {
    pthread_t thread;
    int listener;
    struct sockaddr_in upstream;
    struct link links[LINKS_MAX];
    int count;
    char buffer[BUFFER_BYTES];
    pthread_mutex_t guard; /* of what follows */
    int requests_left; /* until the one to cut; 0: none */
    enum cut cut;
    bool fired;
    atomic_bool stop;
};

static void unlink_at(struct cutter *cutter, int i)
{
    close(cutter->links[i].client);
    close(cutter->links[i].server);
    cutter->links[i] = cutter->links[--cutter->count];
}

static void accept_one(struct cutter *cutter)
{
    int one = 1;
    int client = accept(cutter->listener, NULL, NULL);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client < 0 || server < 0 || cutter->count == LINKS_MAX ||
        connect(server, (struct sockaddr *)&cutter->upstream, sizeof cutter->upstream) != 0) {
        if (client >= 0)
            close(client);
        if (server >= 0)
            close(server);
        return;
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    cutter->links[cutter->count++] =
        (struct link){.client = client, .server = server, .server_spoke = true};
}

/* False when one side has hung up. */
static bool forward(struct cutter *cutter, int from, int to)
{
    ssize_t length = read(from, cutter->buffer, sizeof cutter->buffer);
    for (ssize_t sent = 0; sent < length;) {
        ssize_t n = send(to, cutter->buffer + sent, (size_t)(length - sent), MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        sent += n;
    }
    return length > 0;
}

/* Whether this request is the one, and in which way it is cut. */
static bool is_chosen(struct cutter *cutter, enum cut *cut)
{
    pthread_mutex_lock(&cutter->guard);
    bool chosen = cutter->requests_left > 0 && --cutter->requests_left == 0;
    if (chosen)
        cutter->fired = true;
    *cut = cutter->cut;
    pthread_mutex_unlock(&cutter->guard);
    return chosen;
}

/* Until the server has said all it had to say, which nobody hears. */
static void hear_out(struct cutter *cutter, const struct link *link)
{
    struct pollfd answer = {.fd = link->server, .events = POLLIN};
    int patience = ANSWER_MS;
    while (poll(&answer, 1, patience) > 0 &&
           read(link->server, cutter->buffer, sizeof cutter->buffer) > 0)
        patience = SILENCE_MS;
}

/* False when the link is to be cut. */
static bool serve_client(struct cutter *cutter, struct link *link)
{
    enum cut cut = CUT_REQUEST;
    bool chosen = link->server_spoke && is_chosen(cutter, &cut);
    link->server_spoke = false;
    if (chosen && cut == CUT_REQUEST)
        return false;
    bool alive = forward(cutter, link->client, link->server);
    if (alive && chosen)
        hear_out(cutter, link);
    return alive && !chosen;
}

static void serve_links(struct cutter *cutter, const struct pollfd *fds, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        struct link *link = &cutter->links[i];
        bool alive = true;
        if (fds[2 * i + 1].revents) {
            alive = forward(cutter, link->server, link->client);
            link->server_spoke = true;
        }
        if (alive && fds[2 * i].revents)
            alive = serve_client(cutter, link);
        if (!alive)
            unlink_at(cutter, i);
    }
}

static void *serve(void *argument)
{
    struct cutter *cutter = argument;
    while (!cutter->stop) {
        struct pollfd fds[1 + 2 * LINKS_MAX] = {{.fd = cutter->listener, .events = POLLIN}};
        int count = cutter->count;
        for (int i = 0; i < count; i++) {
            fds[1 + 2 * i] = (struct pollfd){.fd = cutter->links[i].client, .events = POLLIN};
            fds[2 + 2 * i] = (struct pollfd){.fd = cutter->links[i].server, .events = POLLIN};
        }
        poll(fds, (nfds_t)(1 + 2 * count), TICK_MS);
        serve_links(cutter, fds + 1, count);
        if (fds[0].revents)
            accept_one(cutter);
    }
    while (cutter->count > 0)
        unlink_at(cutter, 0);
    return NULL;
}

/* Find …@host:port/… and write the URL with our own host and port. */
static bool find_upstream(const char *url, struct cutter *cutter, char **cuttable, int our_port)
{
    char host[64];
    int port = 0, length = 0;
    const char *at = strrchr(url, '@');
    const char *slashes = strstr(url, "://");
    const char *begin = at ? at + 1 : slashes ? slashes + 3 : url;
    if (sscanf(begin, "%63[0-9a-zA-Z.]:%d%n", host, &port, &length) != 2)
        return false;
    cutter->upstream =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &cutter->upstream.sin_addr) != 1)
        cutter->upstream.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return asprintf(cuttable, "%.*s127.0.0.1:%d%s", (int)(begin - url), url, our_port,
                    begin + length) > 0;
}

struct cutter *cutter_start(const char *url, char **cuttable)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    struct cutter *cutter = calloc(1, sizeof *cutter);
    if (!cutter)
        abort();
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    pthread_mutex_init(&cutter->guard, NULL);
    cutter->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(cutter->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(cutter->listener, LINKS_MAX) != 0 ||
        getsockname(cutter->listener, (struct sockaddr *)&address, &size) != 0)
        abort();
    if (!find_upstream(url, cutter, cuttable, ntohs(address.sin_port))) {
        close(cutter->listener);
        free(cutter);
        return NULL;
    }
    if (pthread_create(&cutter->thread, NULL, serve, cutter) != 0)
        abort();
    return cutter;
}

void cutter_stop(struct cutter *cutter)
{
    cutter->stop = true;
    pthread_join(cutter->thread, NULL);
    close(cutter->listener);
    free(cutter);
}

void cutter_arm(struct cutter *cutter, int nth, enum cut cut)
{
    pthread_mutex_lock(&cutter->guard);
    cutter->requests_left = nth;
    cutter->cut = cut;
    cutter->fired = false;
    pthread_mutex_unlock(&cutter->guard);
}

bool cutter_fired(struct cutter *cutter)
{
    pthread_mutex_lock(&cutter->guard);
    bool fired = cutter->fired;
    pthread_mutex_unlock(&cutter->guard);
    return fired;
}
