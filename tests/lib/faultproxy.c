/* SPDX-License-Identifier: MIT
 *
 * A TCP proxy that counts round trips and makes faults; see faultproxy.h. One thread owns all
 * sockets, and waits only in ppoll(). Other threads leave orders and wake it. */
#include "faultproxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

enum {
    LINKS_MAX = 256,
    BUFFER_BYTES = 65536,
    /* of one direction; then its sender has to wait */
    QUEUE_BYTES = 1 << 20,
    /* after this pause an answer counts as complete */
    SILENCE_US = 50000
};

enum order { STOP = 1, CUT = 2, REFUSE = 4, ACCEPT = 8, BLACKHOLE = 16, HEAL = 32, HEAR = 64 };

struct chunk {
    struct chunk *next;
    int64_t due_us;
    size_t length, sent;
    char bytes[];
};

/* One direction of a connection. */
struct way {
    int from, to;
    struct chunk *first, *last;
    size_t queued;
    /* bytes that came before this time are not delivered earlier */
    int64_t held_until_us;
    /* the sender has closed it */
    bool ended;
    /* the receiver no longer reads */
    bool closed;
};

struct link {
    struct link *next;
    /* from the client to the server, and back */
    struct way up, down;
    /* since the client last sent, or neither has sent yet */
    bool server_spoke;
    /* since when the client waits for an answer; 0: it does not, or a fault has struck */
    int64_t asked_us;
    bool struck;
    /* the order whose fault is for the next answer; 0: none */
    int answer_fault;
    /* it swallows everything; it has swallowed something */
    bool black, holed;
    /* the server was told that the client has closed */
    bool hung_up;
    bool reset;
    /* 0: never */
    int64_t cut_at_us;
};

struct faultproxy {
    pthread_t thread;
    struct sockaddr_in server, address;
    /* keeps the port ours while connections are refused */
    int reserved;
    /* -1: connections are refused */
    int listener;
    int wakeup;
    struct link *links;
    int count;
    bool black;
    struct pollfd fds[2 + 2 * LINKS_MAX];
    char buffer[BUFFER_BYTES];
    atomic_int round_trips, delay_us;
    atomic_llong slowest_us;
    /* of the following members */
    pthread_mutex_t guard;
    pthread_cond_t obeyed;
    unsigned orders;
    /* until the one with the fault; 0: none */
    int requests_left;
    struct fault fault;
    bool fired;
    /* counts up, so that an earlier fault is not mistaken for it */
    int arming;
};

static int64_t clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- one direction */

static void drop_all(struct way *way)
{
    while (way->first) {
        struct chunk *chunk = way->first;
        way->first = chunk->next;
        free(chunk);
    }
    way->queued = 0;
}

static void append(struct way *way, const char *bytes, size_t length, int64_t due_us)
{
    struct chunk *chunk = malloc(sizeof *chunk + length);
    if (!chunk)
        abort();
    *chunk = (struct chunk){.due_us = due_us, .length = length};
    memcpy(chunk->bytes, bytes, length);
    if (way->first)
        way->last->next = chunk;
    else
        way->first = chunk;
    way->last = chunk;
    way->queued += length;
}

static bool is_due(const struct way *way, int64_t now)
{
    return way->first && way->first->due_us <= now;
}

static void deliver(struct way *way, int64_t now)
{
    while (is_due(way, now)) {
        struct chunk *chunk = way->first;
        ssize_t n =
            send(way->to, chunk->bytes + chunk->sent, chunk->length - chunk->sent, MSG_NOSIGNAL);
        if (n < 0) {
            way->closed = errno != EAGAIN && errno != EINTR;
            break;
        }
        chunk->sent += (size_t)n;
        if (chunk->sent < chunk->length)
            continue;
        way->first = chunk->next;
        way->queued -= chunk->length;
        free(chunk);
    }
    if (way->closed)
        drop_all(way);
}

/* ---- links */

static bool is_black(const struct faultproxy *proxy, const struct link *link)
{
    return proxy->black || link->black;
}

/* Also swallows what is on its way. */
static void blacken(struct link *link)
{
    link->holed |= link->up.first || link->down.first;
    drop_all(&link->up);
    drop_all(&link->down);
}

/* A child of this program may hold copies of our sockets. So closing a socket would not end the
 * connection. */
static void hang_up(int fd, bool reset)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    if (fd < 0)
        return;
    if (reset)
        connect(fd, &nobody, sizeof nobody);
    else
        shutdown(fd, SHUT_RDWR);
    close(fd);
}

static void remove_link(struct faultproxy *proxy, struct link **at)
{
    struct link *link = *at;
    *at = link->next;
    proxy->count--;
    drop_all(&link->up);
    drop_all(&link->down);
    hang_up(link->up.from, link->reset);
    hang_up(link->up.to, false);
    free(link);
}

static void remove_links(struct faultproxy *proxy, bool (*is_chosen)(const struct link *link))
{
    for (struct link **at = &proxy->links; *at;)
        if (is_chosen(*at))
            remove_link(proxy, at);
        else
            at = &(*at)->next;
}

static bool is_any(const struct link *link)
{
    return true;
}

static bool is_holed(const struct link *link)
{
    return link->holed;
}

static void send_at_once(int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static int connect_server(const struct faultproxy *proxy)
{
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (server < 0)
        return -1;
    send_at_once(server);
    if (connect(server, (const struct sockaddr *)&proxy->server, sizeof proxy->server) == 0 ||
        errno == EINPROGRESS)
        return server;
    close(server);
    return -1;
}

/* false: no client waits. */
static bool accept_one(struct faultproxy *proxy)
{
    int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0)
        return false;
    int server = proxy->black ? -1 : connect_server(proxy);
    if (proxy->count == LINKS_MAX || (server < 0 && !proxy->black)) {
        close(client);
        if (server >= 0)
            close(server);
        return true;
    }
    send_at_once(client);
    struct link *link = malloc(sizeof *link);
    if (!link)
        abort();
    *link = (struct link){.next = proxy->links,
                          .up = {.from = client, .to = server},
                          .down = {.from = server, .to = client},
                          .holed = proxy->black,
                          .server_spoke = true,
                          .asked_us = clock_us()};
    proxy->links = link;
    proxy->count++;
    return true;
}

/* ---- faults */

static void strike(struct link *link, struct fault fault)
{
    struct way *way = fault.side == ON_REQUEST ? &link->up : &link->down;
    int64_t now = clock_us();
    link->struck = true;
    link->asked_us = 0;
    switch (fault.kind) {
    case FAULT_CUT:
        link->reset = fault.side == ON_REQUEST;
        link->cut_at_us = link->reset ? now : now + SILENCE_US;
        break;
    case FAULT_DELAY:
        way->held_until_us = now + (int64_t)fault.delay_ms * 1000;
        break;
    case FAULT_BLACKHOLE:
        link->black = true;
        blacken(link);
        break;
    }
}

/* The answer has come, or the client waits no longer. */
static void note_answer(struct faultproxy *proxy, struct link *link)
{
    int64_t took_us = link->asked_us ? clock_us() - link->asked_us : 0;
    link->asked_us = 0;
    if (took_us > proxy->slowest_us)
        proxy->slowest_us = took_us;
}

static void hear_client(struct faultproxy *proxy, struct link *link)
{
    if (!link->server_spoke)
        return;
    link->server_spoke = false;
    link->asked_us = link->struck ? 0 : clock_us();
    proxy->round_trips++;
    pthread_mutex_lock(&proxy->guard);
    bool chosen = proxy->requests_left > 0 && --proxy->requests_left == 0;
    bool at_once = chosen && proxy->fault.side == ON_REQUEST;
    struct fault fault = proxy->fault;
    link->answer_fault = chosen && !at_once ? proxy->arming : 0;
    proxy->fired |= at_once;
    pthread_mutex_unlock(&proxy->guard);
    if (at_once)
        strike(link, fault);
}

static void hear_server(struct faultproxy *proxy, struct link *link)
{
    link->server_spoke = true;
    note_answer(proxy, link);
    if (link->cut_at_us)
        link->cut_at_us = clock_us() + SILENCE_US;
    if (!link->answer_fault)
        return;
    pthread_mutex_lock(&proxy->guard);
    bool still_armed = link->answer_fault == proxy->arming;
    struct fault fault = proxy->fault;
    proxy->fired |= still_armed;
    pthread_mutex_unlock(&proxy->guard);
    link->answer_fault = 0;
    if (still_armed)
        strike(link, fault);
}

/* ---- the loop */

static void take(struct faultproxy *proxy, struct link *link, struct way *way)
{
    ssize_t length = read(way->from, proxy->buffer, sizeof proxy->buffer);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (length <= 0) {
        way->ended = true;
        note_answer(proxy, link);
    } else if (way == &link->up) {
        hear_client(proxy, link);
    } else {
        hear_server(proxy, link);
    }
    if (is_black(proxy, link)) {
        link->holed = true;
    } else if (length > 0 && !way->closed && !link->cut_at_us) {
        int64_t due = clock_us() + proxy->delay_us;
        append(way, proxy->buffer, (size_t)length,
               due > way->held_until_us ? due : way->held_until_us);
    }
}

static bool is_over(const struct link *link, int64_t now)
{
    bool cut = link->cut_at_us && link->cut_at_us <= now;
    bool server_gone = link->down.ended && !link->down.first;
    bool client_gone = link->up.ended && !link->up.first && link->down.closed;
    return cut || server_gone || client_gone;
}

static void tend_links(struct faultproxy *proxy, int64_t now)
{
    for (struct link **at = &proxy->links; *at;) {
        struct link *link = *at;
        deliver(&link->up, now);
        deliver(&link->down, now);
        bool black = is_black(proxy, link);
        if (!black && is_over(link, now)) {
            remove_link(proxy, at);
            continue;
        }
        if (!black && !link->hung_up && link->up.ended && !link->up.first) {
            shutdown(link->up.to, SHUT_WR);
            link->hung_up = true;
        }
        at = &link->next;
    }
}

/* A socket without events is left out, because its end would wake us again and again. */
static struct pollfd watched(int fd, const struct way *in, const struct way *out, int64_t now)
{
    int events = 0;
    if (!in->ended && in->queued < QUEUE_BYTES)
        events |= POLLIN;
    if (is_due(out, now))
        events |= POLLOUT;
    return (struct pollfd){.fd = events ? fd : -1, .events = (short)events};
}

static void note_due(int64_t due_us, int64_t now, int64_t *next)
{
    if (due_us > now && due_us < *next)
        *next = due_us;
}

/* The newest link comes first, in fds as in the list. */
static int64_t watch_links(struct faultproxy *proxy, int64_t now)
{
    struct pollfd *fds = proxy->fds + 2;
    int64_t next = INT64_MAX;
    for (const struct link *link = proxy->links; link; link = link->next) {
        *fds++ = watched(link->up.from, &link->up, &link->down, now);
        *fds++ = watched(link->up.to, &link->down, &link->up, now);
        if (link->up.first)
            note_due(link->up.first->due_us, now, &next);
        if (link->down.first)
            note_due(link->down.first->due_us, now, &next);
        if (!is_black(proxy, link))
            note_due(link->cut_at_us, now, &next);
    }
    return next;
}

/* false: only what is due has to be done. */
static bool wait_for_events(struct faultproxy *proxy, int64_t now, int64_t next)
{
    int64_t left = next - now;
    struct timespec time = {left / 1000000, (long)(left % 1000000) * 1000};
    proxy->fds[0] = (struct pollfd){.fd = proxy->wakeup, .events = POLLIN};
    proxy->fds[1] = (struct pollfd){.fd = proxy->listener, .events = POLLIN};
    nfds_t count = (nfds_t)(2 + 2 * proxy->count);
    return ppoll(proxy->fds, count, next == INT64_MAX ? NULL : &time, NULL) > 0;
}

static void serve_links(struct faultproxy *proxy)
{
    const struct pollfd *fds = proxy->fds + 2;
    for (struct link *link = proxy->links; link; link = link->next, fds += 2) {
        if (fds[1].revents && !link->down.ended)
            take(proxy, link, &link->down);
        if (fds[0].revents && !link->up.ended)
            take(proxy, link, &link->up);
    }
}

/* ---- orders */

static int open_port(struct sockaddr_in *address)
{
    int one = 1;
    socklen_t size = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        bind(fd, (struct sockaddr *)address, size) != 0 ||
        getsockname(fd, (struct sockaddr *)address, &size) != 0)
        abort();
    return fd;
}

static void accept_all(struct faultproxy *proxy)
{
    if (proxy->listener >= 0)
        return;
    proxy->listener = open_port(&proxy->address);
    if (listen(proxy->listener, LINKS_MAX) != 0)
        abort();
}

static void refuse_all(struct faultproxy *proxy)
{
    hang_up(proxy->listener, false);
    proxy->listener = -1;
}

static void swallow_all(struct faultproxy *proxy)
{
    proxy->black = true;
    for (struct link *link = proxy->links; link; link = link->next)
        blacken(link);
}

static void heal_all(struct faultproxy *proxy)
{
    proxy->black = false;
    remove_links(proxy, is_holed);
    for (struct link *link = proxy->links; link; link = link->next)
        link->black = false;
}

/* What was sent before the order counts as before it, though the proxy has not read it yet. */
static unsigned take_orders(struct faultproxy *proxy)
{
    pthread_mutex_lock(&proxy->guard);
    unsigned orders = proxy->orders;
    pthread_mutex_unlock(&proxy->guard);
    if (orders) {
        while (accept_one(proxy))
            ;
        watch_links(proxy, 0);
        wait_for_events(proxy, 0, 0);
        serve_links(proxy);
    }
    return orders;
}

/* false: the proxy stops. */
static bool obey(struct faultproxy *proxy)
{
    uint64_t wakes;
    if (proxy->fds[0].revents && read(proxy->wakeup, &wakes, sizeof wakes) < 0 && errno != EAGAIN)
        abort();
    unsigned orders = take_orders(proxy);
    pthread_mutex_lock(&proxy->guard);
    if (orders & CUT)
        remove_links(proxy, is_any);
    if (orders & REFUSE)
        refuse_all(proxy);
    if (orders & ACCEPT)
        accept_all(proxy);
    if (orders & BLACKHOLE)
        swallow_all(proxy);
    if (orders & HEAL)
        heal_all(proxy);
    proxy->orders &= ~orders;
    pthread_cond_broadcast(&proxy->obeyed);
    pthread_mutex_unlock(&proxy->guard);
    return !(orders & STOP);
}

static void *serve(void *argument)
{
    struct faultproxy *proxy = argument;
    while (obey(proxy)) {
        int64_t now = clock_us();
        tend_links(proxy, now);
        int64_t next = watch_links(proxy, now);
        if (!wait_for_events(proxy, now, next)) {
            proxy->fds[0].revents = 0;
            continue;
        }
        serve_links(proxy);
        if (proxy->fds[1].revents)
            accept_one(proxy);
    }
    remove_links(proxy, is_any);
    return NULL;
}

/* Returns when the order was carried out. */
static void give(struct faultproxy *proxy, enum order order)
{
    uint64_t wake = 1;
    pthread_mutex_lock(&proxy->guard);
    proxy->orders |= order;
    if (write(proxy->wakeup, &wake, sizeof wake) < 0)
        abort();
    while (proxy->orders & order)
        pthread_cond_wait(&proxy->obeyed, &proxy->guard);
    pthread_mutex_unlock(&proxy->guard);
}

/* ---- for the tests */

/* Finds the server in …@host:port/…: where host begins, and the length of host:port. NULL: there is
 * none. */
static const char *find_server(const char *url, struct sockaddr_in *server, int *length)
{
    char host[64];
    int port = 0;
    const char *at = strrchr(url, '@');
    const char *slashes = strstr(url, "://");
    const char *begin = at ? at + 1 : slashes ? slashes + 3 : url;
    if (sscanf(begin, "%63[0-9a-zA-Z.]:%d%n", host, &port, length) != 2)
        return NULL;
    *server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const char *address = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    return inet_pton(AF_INET, address, &server->sin_addr) == 1 ? begin : NULL;
}

/* Signals go to the program's own threads. */
static void start_thread(struct faultproxy *proxy)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&proxy->thread, NULL, serve, proxy) != 0)
        abort();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct faultproxy *faultproxy_start(const char *url, char **through)
{
    struct sockaddr_in server;
    int length = 0;
    const char *begin = find_server(url, &server, &length);
    if (!begin)
        return NULL;
    struct faultproxy *proxy = calloc(1, sizeof *proxy);
    if (!proxy)
        abort();
    proxy->server = server;
    proxy->address.sin_family = AF_INET;
    proxy->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    proxy->reserved = open_port(&proxy->address);
    proxy->listener = -1;
    accept_all(proxy);
    proxy->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (proxy->wakeup < 0 || asprintf(through, "%.*s127.0.0.1:%d%s", (int)(begin - url), url,
                                      ntohs(proxy->address.sin_port), begin + length) < 0)
        abort();
    pthread_mutex_init(&proxy->guard, NULL);
    pthread_cond_init(&proxy->obeyed, NULL);
    start_thread(proxy);
    return proxy;
}

void faultproxy_stop(struct faultproxy *proxy)
{
    if (!proxy)
        return;
    give(proxy, STOP);
    pthread_join(proxy->thread, NULL);
    refuse_all(proxy);
    close(proxy->reserved);
    close(proxy->wakeup);
    pthread_cond_destroy(&proxy->obeyed);
    pthread_mutex_destroy(&proxy->guard);
    free(proxy);
}

int faultproxy_round_trips(struct faultproxy *proxy)
{
    return atomic_exchange(&proxy->round_trips, 0);
}

void faultproxy_arm(struct faultproxy *proxy, int nth, struct fault fault)
{
    give(proxy, HEAR);
    pthread_mutex_lock(&proxy->guard);
    proxy->requests_left = nth;
    proxy->fault = fault;
    proxy->fired = false;
    proxy->arming++;
    pthread_mutex_unlock(&proxy->guard);
}

bool faultproxy_fired(struct faultproxy *proxy)
{
    pthread_mutex_lock(&proxy->guard);
    bool fired = proxy->fired;
    pthread_mutex_unlock(&proxy->guard);
    return fired;
}

int64_t faultproxy_slowest_us(struct faultproxy *proxy)
{
    return atomic_exchange(&proxy->slowest_us, 0);
}

#define ORDER(name, order)                           \
    void faultproxy_##name(struct faultproxy *proxy) \
    {                                                \
        give(proxy, order);                          \
    }
ORDER(cut, CUT)
ORDER(refuse, REFUSE)
ORDER(accept, ACCEPT)
ORDER(blackhole, BLACKHOLE)
ORDER(heal, HEAL)

void faultproxy_slow(struct faultproxy *proxy, int each_way_us)
{
    proxy->delay_us = each_way_us;
}
