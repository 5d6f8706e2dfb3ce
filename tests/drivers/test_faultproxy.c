/* SPDX-License-Identifier: MIT
 *
 * The tests' own proxy, before a server that says everything back: a fault that is told has
 * happened, to whom it was meant. A test that loses something would else pass without a loss. A
 * word that begins with a dot is not answered. What counts round trips, cuts, refuses, swallows and
 * heals all connections at once fails if the proxy does not: costs.c, keeper.c, served_pool_lost.c. */
#include "faultproxy.h"
#include "quick.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { HELD_MS = 400, QUIET_MS = 100, FAREWELLS = 30, PATIENCE_MS = 30000 };

/* ---- the server: a thread for each connection */

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static char last_heard[100];

static void *echo(void *client)
{
    int fd = (int)(intptr_t)client;
    char word[100];
    ssize_t length;
    while ((length = read(fd, word, sizeof word)) > 0) {
        pthread_mutex_lock(&guard);
        snprintf(last_heard, sizeof last_heard, "%.*s", (int)length, word);
        pthread_mutex_unlock(&guard);
        if (word[0] != '.')
            send(fd, word, (size_t)length, MSG_NOSIGNAL);
    }
    close(fd);
    return NULL;
}

static void *serve(void *listener)
{
    for (;;) {
        pthread_t thread;
        int fd = accept((int)(intptr_t)listener, NULL, NULL);
        if (fd < 0 || pthread_create(&thread, NULL, echo, (void *)(intptr_t)fd) != 0)
            abort();
        pthread_detach(thread);
    }
}

static int start_server(void)
{
    pthread_t thread;
    int server_port, listener = listen_locally(&server_port);
    if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)listener) != 0)
        abort();
    pthread_detach(thread);
    return server_port;
}

static bool has_heard(const char *word)
{
    pthread_mutex_lock(&guard);
    bool heard = strcmp(last_heard, word) == 0;
    pthread_mutex_unlock(&guard);
    return heard;
}

/* ---- clients */

static struct faultproxy *proxy;
static int port;

static int must_connect(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        abort();
    return fd;
}

static void say(int fd, const char *word)
{
    send(fd, word, strlen(word), MSG_NOSIGNAL);
}

/* What was said back, "" if nothing was, "closed" or "reset". */
static const char *answer(int fd, int64_t patience_ms)
{
    static char word[100];
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    if (poll(&readable, 1, (int)patience_ms) <= 0)
        return "";
    ssize_t length = read(fd, word, sizeof word - 1);
    if (length <= 0)
        return length == 0 ? "closed" : errno == ECONNRESET ? "reset" : "failed";
    word[length] = '\0';
    return word;
}

static bool goes_on(int fd, const char *word)
{
    say(fd, word);
    return strcmp(answer(fd, slow_ms(PATIENCE_MS)), word) == 0;
}

/* ---- one fault */

static const struct scene {
    struct fault fault;
    const char *what;
    const char *client; /* what its client is told */
    bool heard; /* by the server, at once */
    const char *then; /* what becomes of its next request, when all is healed */
} scenes[] = {
    {{FAULT_CUT, ON_REQUEST, 0}, "a request is cut", "reset", false, "closed"},
    {{FAULT_CUT, ON_ANSWER, 0}, "an answer is cut", "closed", true, "closed"},
    {{FAULT_DELAY, ON_REQUEST, HELD_MS}, "a request is held", "bad", false, "next"},
    {{FAULT_DELAY, ON_ANSWER, HELD_MS}, "an answer is held", "bad", true, "next"},
    {{FAULT_BLACKHOLE, ON_REQUEST, 0}, "a request is swallowed", "", false, "closed"},
    {{FAULT_BLACKHOLE, ON_ANSWER, 0}, "an answer is swallowed", "", true, "closed"},
};

static void test_fault(const struct scene *s)
{
    int fd = must_connect(), other = must_connect();
    faultproxy_arm(proxy, 2, s->fault);
    tap_ok(goes_on(fd, "good") && !faultproxy_fired(proxy), "%s, not the one before it", s->what);
    int64_t began = clock_ms();
    say(fd, "bad");
    tap_ok(EVENTUALLY(faultproxy_fired(proxy)), "which is told");
    bool as_meant = has_heard("bad") == s->heard;
    bool in_time = s->fault.kind != FAULT_DELAY || clock_ms() - began < HELD_MS;
    tap_ok(as_meant || !in_time, "the server has %sseen the request", s->heard ? "" : "not ");
    tap_is_str(answer(fd, s->client[0] ? slow_ms(PATIENCE_MS) : QUIET_MS), s->client,
               "the client is told as much");
    tap_ok(clock_ms() - began >= s->fault.delay_ms, "and not before its time");
    tap_ok(has_heard("bad") == (s->heard || s->client[0] == 'b'), "no request came by otherwise");
    tap_ok(goes_on(other, "other"), "other connections go on");
    faultproxy_heal(proxy);
    say(fd, "next");
    const char *then = answer(fd, slow_ms(PATIENCE_MS));
    tap_is_str(strcmp(then, "reset") == 0 ? "closed" : then, s->then, "its next request: %s",
               s->then);
    close(fd);
    close(other);
}

/* Such a request is the late one of all that test what comes too late. */
static void test_orphan(void)
{
    int fd = must_connect(), other = must_connect();
    tap_ok(goes_on(fd, "before"), "a client");
    faultproxy_arm(proxy, 1, scenes[2].fault);
    int64_t began = clock_ms();
    say(fd, "orphan");
    tap_ok(EVENTUALLY(faultproxy_fired(proxy)), "whose request is held");
    close(fd);
    tap_ok(goes_on(other, "newcomer"), "has gone");
    tap_ok(has_heard("newcomer") || clock_ms() - began >= HELD_MS, "the request is still held");
    tap_ok(EVENTUALLY(has_heard("orphan")), "it arrives after all");
    tap_ok(clock_ms() - began >= HELD_MS, "late");
    close(other);
}

static void test_disarming(void)
{
    int fd = must_connect();
    faultproxy_arm(proxy, 1, scenes[1].fault);
    say(fd, ".no answer");
    tap_ok(EVENTUALLY(has_heard(".no answer")) && !faultproxy_fired(proxy),
           "no answer is none that is cut");
    faultproxy_arm(proxy, 0, scenes[1].fault);
    tap_ok(goes_on(fd, "next") && !faultproxy_fired(proxy), "nor is the next one, disarmed");
    close(fd);
}

/* The farewell of a connection may lie unread when a fault is armed. It is none of its requests. */
static void test_farewell(void)
{
    int counted = 0;
    for (int i = 0; i < FAREWELLS; i++) {
        int leaving = must_connect(), staying = must_connect();
        say(leaving, ".bye");
        close(leaving);
        faultproxy_arm(proxy, 1, scenes[1].fault);
        counted += goes_on(staying, "next");
        close(staying);
    }
    tap_is_int(counted, 0, "a farewell before a fault is armed is not the request it strikes");
}

/* ---- without a fault */

static void test_slow(void)
{
    int one = must_connect();
    faultproxy_slowest_us(proxy);
    say(one, ".first");
    tap_ok(EVENTUALLY(has_heard(".first")), "a client that is not answered");
    /* Time: the proxy measures by the real clock. A longer pause is above the bound, too. */
    sleep_ms(QUIET_MS);
    tap_ok(goes_on(one, "second"), "speaks twice before the server does");
    tap_ok(faultproxy_slowest_us(proxy) >= QUIET_MS * 1000, "it took long for the first answer");
    faultproxy_slow(proxy, 50000);
    int64_t began = clock_ms();
    tap_ok(goes_on(one, "slow") && clock_ms() - began >= 100, "a slow network takes its time");
    close(one);
}

int main(void)
{
    char *through = NULL;
    proxy = faultproxy_start(textf("echo://me@127.0.0.1:%d/all?loud=1", start_server()), &through);
    if (!proxy || sscanf(through, "echo://me@127.0.0.1:%d/all?loud=1", &port) != 1)
        abort();
    for (size_t i = 0; i < COUNT(scenes); i++)
        test_fault(&scenes[i]);
    test_orphan();
    test_disarming();
    test_farewell();
    test_slow();
    faultproxy_stop(proxy);
    free(through);
    return tap_done();
}
