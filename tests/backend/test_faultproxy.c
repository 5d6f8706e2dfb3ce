/* SPDX-License-Identifier: MIT
 *
 * The tests' own proxy, before a server that says everything back: each fault in both directions, and
 * that nothing is left of it. A word that begins with a dot is not answered.
 */
#include "faultproxy.h"
#include "quick.h"
#include "tap.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS_MAX = 16, HELD_MS = 400, QUIET_MS = 100, LONG_MS = 60000, TICK_MS = 5 };

static const struct fault no_fault;

/* ---- the server */

static struct {
    struct helper *helper;
    char url[100];
    int listener, clients[CLIENTS_MAX];
    pthread_mutex_t guard; /* of what follows */
    char heard[1000];
    int open;
    atomic_bool stop;
} server = {.guard = PTHREAD_MUTEX_INITIALIZER};

static void send_all(int fd, const char *bytes, size_t length)
{
    for (size_t sent = 0; sent < length;) {
        ssize_t n = send(fd, bytes + sent, length - sent, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        sent += (size_t)n;
    }
}

static void note_heard(const char *bytes, size_t length)
{
    pthread_mutex_lock(&server.guard);
    snprintf(server.heard, sizeof server.heard, "%.*s", (int)length, bytes);
    pthread_mutex_unlock(&server.guard);
}

static void note_open(int more)
{
    pthread_mutex_lock(&server.guard);
    server.open += more;
    pthread_mutex_unlock(&server.guard);
}

static void echo(int *client)
{
    char bytes[65536];
    ssize_t length = read(*client, bytes, sizeof bytes);
    if (length <= 0) {
        close(*client);
        *client = -1;
        note_open(-1);
        return;
    }
    note_heard(bytes, (size_t)length);
    if (bytes[0] != '.')
        send_all(*client, bytes, (size_t)length);
}

static void greet(void)
{
    for (int i = 0; i < CLIENTS_MAX; i++)
        if (server.clients[i] < 0) {
            server.clients[i] = accept(server.listener, NULL, NULL);
            note_open(1);
            return;
        }
    abort();
}

static int serve(void *argument)
{
    (void)argument;
    while (!server.stop) {
        struct pollfd fds[CLIENTS_MAX + 1];
        for (int i = 0; i < CLIENTS_MAX; i++)
            fds[i] = (struct pollfd){.fd = server.clients[i], .events = POLLIN};
        fds[CLIENTS_MAX] = (struct pollfd){.fd = server.listener, .events = POLLIN};
        if (poll(fds, CLIENTS_MAX + 1, TICK_MS) <= 0)
            continue;
        for (int i = 0; i < CLIENTS_MAX; i++)
            if (fds[i].revents)
                echo(&server.clients[i]);
        if (fds[CLIENTS_MAX].revents)
            greet();
    }
    return 0;
}

static void server_start(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server.listener = socket(AF_INET, SOCK_STREAM, 0);
    for (int i = 0; i < CLIENTS_MAX; i++)
        server.clients[i] = -1;
    if (bind(server.listener, (struct sockaddr *)&address, size) != 0 ||
        listen(server.listener, CLIENTS_MAX) != 0 ||
        getsockname(server.listener, (struct sockaddr *)&address, &size) != 0)
        abort();
    snprintf(server.url, sizeof server.url, "echo://me@127.0.0.1:%d/all?loud=1",
             ntohs(address.sin_port));
    server.helper = helper_start(serve, NULL);
}

static void server_stop(void)
{
    server.stop = true;
    helper_join(server.helper);
    close(server.listener);
}

static bool has_heard(const char *word)
{
    pthread_mutex_lock(&server.guard);
    bool heard = strcmp(server.heard, word) == 0;
    pthread_mutex_unlock(&server.guard);
    return heard;
}

static int count_open(void)
{
    pthread_mutex_lock(&server.guard);
    int open = server.open;
    pthread_mutex_unlock(&server.guard);
    return open;
}

/* Soon enough, on a machine of any speed. */
static bool hears(const char *word)
{
    for (int64_t end = clock_ms() + slow_ms(2000); clock_ms() < end; sleep_ms(TICK_MS))
        if (has_heard(word))
            return true;
    return false;
}

static bool will_have_open(int count)
{
    for (int64_t end = clock_ms() + slow_ms(2000); clock_ms() < end; sleep_ms(TICK_MS))
        if (count_open() == count)
            return true;
    return false;
}

/* ---- clients */

static struct faultproxy *proxy;
static int port;

static void begin(void)
{
    char *url = NULL;
    proxy = faultproxy_start(server.url, &url);
    if (!proxy || sscanf(url, "echo://me@127.0.0.1:%d/all?loud=1", &port) != 1)
        abort();
    free(url);
}

static void end(void)
{
    faultproxy_stop(proxy);
    tap_ok(will_have_open(0), "stopped, and all connections to the server are closed");
}

static int try_connect(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static int must_connect(void)
{
    int fd = try_connect();
    if (fd < 0)
        abort();
    return fd;
}

static void say(int fd, const char *word)
{
    send_all(fd, word, strlen(word));
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

static const char *ask(int fd, const char *word)
{
    say(fd, word);
    return answer(fd, slow_ms(2000));
}

static bool goes_on(int fd, const char *word)
{
    return strcmp(ask(fd, word), word) == 0;
}

static bool new_one_works(void)
{
    int fd = try_connect();
    bool works = fd >= 0 && goes_on(fd, "newcomer");
    close(fd);
    return works;
}

static struct fault fault_of(enum fault_kind kind, enum fault_side side)
{
    return (struct fault){.kind = kind, .side = side, .delay_ms = HELD_MS};
}

static bool has_fired(void)
{
    for (int64_t until = clock_ms() + slow_ms(2000); clock_ms() < until; sleep_ms(TICK_MS))
        if (faultproxy_fired(proxy))
            return true;
    return false;
}

/* ---- without a fault */

static void test_urls(void)
{
    char *url = NULL;
    tap_ok(!faultproxy_start("sqlite:/tmp/x.db", &url), "no proxy before a file");
    tap_ok(!faultproxy_start("echo://me@127.0.0.1/all", &url), "none without a port");
    tap_ok(!faultproxy_start("echo://me@elsewhere:1/all", &url), "none for a name to be looked up");
    struct faultproxy *other = faultproxy_start("echo://localhost:1", &url);
    tap_ok(other && strncmp(url, "echo://127.0.0.1:", 17) == 0, "one for localhost");
    faultproxy_stop(other);
    free(url);
}

static void test_round_trips(void)
{
    begin();
    int one = must_connect(), other = must_connect();
    tap_ok(goes_on(one, "hello"), "what the server says comes back");
    tap_is_int(faultproxy_round_trips(proxy), 1, "that is a round trip");
    tap_is_int(faultproxy_round_trips(proxy), 0, "which is told once");
    tap_ok(goes_on(one, "again") && goes_on(other, "too"), "two more, on two connections,");
    tap_is_int(faultproxy_round_trips(proxy), 2, "are two");
    say(one, ".first");
    hears(".first");
    tap_ok(goes_on(one, "second"), "to speak twice before the server does");
    tap_is_int(faultproxy_round_trips(proxy), 1, "is one");
    close(one);
    close(other);
    tap_ok(will_have_open(0), "who hangs up has hung up on the server");
    tap_is_int(faultproxy_round_trips(proxy), 0, "and that is none");
    end();
}

enum { MUCH = 8 << 20 };

static int say_much(void *fd)
{
    static char bytes[MUCH];
    memset(bytes, 'x', sizeof bytes);
    send_all(*(int *)fd, bytes, sizeof bytes);
    return 0;
}

static void test_much(void)
{
    static char bytes[65536];
    begin();
    int fd = must_connect(), got = 0;
    struct helper *helper = helper_start(say_much, &fd);
    while (got < MUCH) {
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n <= 0)
            break;
        got += (int)n;
    }
    helper_join(helper);
    tap_is_int(got, MUCH, "eight megabytes go through and come back");
    close(fd);
    end();
}

static void test_slow(void)
{
    begin();
    int fd = must_connect();
    tap_ok(goes_on(fd, "quick"), "a request");
    faultproxy_slow(proxy, 50000);
    int64_t began = clock_ms();
    tap_ok(goes_on(fd, "slow"), "is answered on a slow network, too");
    tap_ok(clock_ms() - began >= 100, "but takes its time each way");
    close(fd);
    end();
}

/* ---- cut */

static void test_cut_request(void)
{
    begin();
    int fd = must_connect();
    faultproxy_arm(proxy, 2, fault_of(FAULT_CUT, ON_REQUEST));
    tap_ok(goes_on(fd, "good"), "the request before the one to cut");
    tap_ok(!faultproxy_fired(proxy), "is not it");
    tap_is_str(ask(fd, "bad"), "reset", "a request is cut");
    tap_ok(faultproxy_fired(proxy), "which is told");
    tap_ok(will_have_open(0) && has_heard("good"), "the server never sees it");
    tap_ok(new_one_works(), "later connections work");
    close(fd);
    end();
}

static void test_cut_answer(void)
{
    begin();
    int fd = must_connect();
    faultproxy_arm(proxy, 1, fault_of(FAULT_CUT, ON_ANSWER));
    tap_is_str(ask(fd, "bad"), "closed", "an answer is cut");
    tap_ok(faultproxy_fired(proxy), "which is told");
    tap_ok(has_heard("bad"), "the server has seen the request");
    tap_ok(will_have_open(0), "and is hung up on");
    tap_ok(new_one_works(), "later connections work");
    close(fd);
    end();
}

static void test_arming(void)
{
    begin();
    int one = must_connect(), other = must_connect();
    faultproxy_arm(proxy, 2, fault_of(FAULT_CUT, ON_REQUEST));
    faultproxy_arm(proxy, 0, no_fault);
    tap_ok(goes_on(one, "a") && goes_on(one, "b"), "disarmed, nothing happens");
    tap_ok(!faultproxy_fired(proxy), "nor is told");
    faultproxy_arm(proxy, 1, fault_of(FAULT_CUT, ON_ANSWER));
    say(one, ".no answer");
    hears(".no answer");
    tap_ok(!faultproxy_fired(proxy), "a request without an answer is not its answer's fault");
    faultproxy_arm(proxy, 0, no_fault);
    tap_ok(goes_on(one, "c"), "nor is the next one, disarmed");
    faultproxy_arm(proxy, 3, fault_of(FAULT_CUT, ON_REQUEST));
    tap_ok(goes_on(one, "d") && goes_on(other, "e"), "requests of all connections");
    tap_is_str(ask(one, "f"), "reset", "count");
    tap_ok(goes_on(other, "g"), "and only one of them is cut");
    close(one);
    close(other);
    end();
}

static void test_cut_all(void)
{
    begin();
    int one = must_connect(), other = must_connect();
    tap_ok(goes_on(one, "a") && goes_on(other, "b"), "two connections");
    faultproxy_cut(proxy);
    tap_is_str(answer(one, 0), "closed", "are cut");
    tap_is_str(answer(other, 0), "closed", "both, before the call returns");
    tap_ok(will_have_open(0), "on the other side, too");
    tap_ok(new_one_works(), "later connections work");
    close(one);
    close(other);
    end();
}

static void test_refuse(void)
{
    begin();
    int fd = must_connect();
    tap_ok(goes_on(fd, "before"), "a connection");
    faultproxy_refuse(proxy);
    faultproxy_refuse(proxy);
    tap_is_int(try_connect(), -1, "no other one is accepted");
    tap_is_int(errno, ECONNREFUSED, "but refused");
    tap_ok(goes_on(fd, "meanwhile"), "the one that stands goes on");
    faultproxy_accept(proxy);
    faultproxy_accept(proxy);
    tap_ok(new_one_works(), "until they are accepted again, at the same port");
    faultproxy_refuse(proxy);
    close(fd);
    end();
}

/* ---- delay */

static void test_delay_request(void)
{
    begin();
    int fd = must_connect();
    faultproxy_arm(proxy, 1, fault_of(FAULT_DELAY, ON_REQUEST));
    int64_t began = clock_ms();
    say(fd, "held");
    tap_ok(has_fired(), "a request is held");
    tap_ok(clock_ms() - began >= HELD_MS || !has_heard("held"), "the server does not see it yet");
    tap_is_str(answer(fd, slow_ms(2000)), "held", "then it is answered");
    tap_ok(clock_ms() - began >= HELD_MS, "late");
    tap_ok(goes_on(fd, "next"), "and the connection goes on");
    close(fd);
    end();
}

static void test_delay_orphan(void)
{
    begin();
    int fd = must_connect();
    tap_ok(goes_on(fd, "before"), "a client");
    faultproxy_arm(proxy, 1, fault_of(FAULT_DELAY, ON_REQUEST));
    int64_t began = clock_ms();
    say(fd, "orphan");
    tap_ok(has_fired(), "whose request is held");
    close(fd);
    tap_ok(new_one_works(), "has gone, and a new one works");
    tap_ok(clock_ms() - began >= HELD_MS || has_heard("newcomer"), "the request is still held");
    tap_ok(hears("orphan"), "it arrives after all");
    tap_ok(clock_ms() - began >= HELD_MS, "late");
    tap_ok(will_have_open(0), "and then the server is hung up on");
    end();
}

static void test_delay_answer(void)
{
    begin();
    int fd = must_connect();
    faultproxy_arm(proxy, 1, fault_of(FAULT_DELAY, ON_ANSWER));
    int64_t began = clock_ms();
    say(fd, "held");
    tap_ok(has_fired() && has_heard("held"), "an answer is held, the server has seen the request");
    tap_is_str(answer(fd, slow_ms(2000)), "held", "it comes");
    tap_ok(clock_ms() - began >= HELD_MS, "late");
    tap_ok(goes_on(fd, "next"), "and the connection goes on");
    close(fd);
    end();
}

/* ---- swallow */

static void test_blackhole_request(void)
{
    begin();
    int fd = must_connect(), other = must_connect();
    tap_ok(goes_on(fd, "before") && goes_on(other, "other"), "two clients");
    faultproxy_arm(proxy, 1, fault_of(FAULT_BLACKHOLE, ON_REQUEST));
    say(fd, "lost");
    tap_is_str(answer(fd, QUIET_MS), "", "a request is swallowed");
    tap_ok(faultproxy_fired(proxy), "which is told");
    say(fd, "lost as well");
    tap_is_str(answer(fd, QUIET_MS), "", "so is the next");
    tap_ok(has_heard("other"), "the server never sees them");
    tap_ok(goes_on(other, "and on"), "other connections go on");
    close(fd);
    sleep_ms(QUIET_MS);
    tap_is_int(count_open(), 2, "nor does it see that their client hangs up");
    faultproxy_heal(proxy);
    tap_ok(will_have_open(1), "until that is healed");
    tap_ok(goes_on(other, "further"), "when others still go on");
    close(other);
    end();
}

static void test_blackhole_answer(void)
{
    begin();
    int fd = must_connect();
    faultproxy_arm(proxy, 1, fault_of(FAULT_BLACKHOLE, ON_ANSWER));
    say(fd, "done");
    tap_is_str(answer(fd, QUIET_MS), "", "an answer is swallowed");
    tap_ok(has_fired() && has_heard("done"), "the server has seen the request");
    say(fd, "not done");
    tap_is_str(answer(fd, QUIET_MS), "", "the next request");
    tap_ok(has_heard("done"), "it has not");
    tap_ok(new_one_works(), "later connections work");
    faultproxy_heal(proxy);
    tap_is_str(answer(fd, slow_ms(2000)), "closed", "healed, nothing is left to wait for");
    close(fd);
    end();
}

static void test_blackhole_all(void)
{
    begin();
    int idle = must_connect(), busy = must_connect();
    tap_ok(goes_on(idle, "a") && goes_on(busy, "b"), "two connections");
    faultproxy_arm(proxy, 1, fault_of(FAULT_DELAY, ON_REQUEST));
    say(busy, "on its way");
    has_fired();
    faultproxy_blackhole(proxy);
    int late = must_connect();
    say(late, "late");
    tap_is_str(answer(late, HELD_MS + QUIET_MS), "", "a new one gets no answer");
    tap_is_str(answer(busy, 0), "", "nor does who has asked before");
    tap_is_int(count_open(), 2, "the server sees nobody new");
    tap_ok(has_heard("b"), "and hears nothing");
    faultproxy_heal(proxy);
    tap_ok(goes_on(idle, "as ever"), "healed, what has lost nothing goes on");
    tap_is_str(answer(busy, slow_ms(2000)), "closed", "what has lost something is cut");
    tap_is_str(answer(late, slow_ms(2000)), "closed", "what has come too early, too");
    tap_ok(new_one_works(), "later connections work");
    close(idle);
    close(busy);
    close(late);
    end();
}

/* ---- what is left */

/* How many descriptors are open, and how many of those a new program would get, too. */
static int count_fds(int *inherited)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    *inherited = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        count++;
        *inherited += !(fcntl(atoi(entry->d_name), F_GETFD) & FD_CLOEXEC);
    }
    closedir(dir);
    return count;
}

static void test_stop(enum fault_kind kind, enum fault_side side, const char *what)
{
    int before, inherited, now_inherited;
    before = count_fds(&inherited);
    begin();
    int fd = must_connect();
    tap_ok(goes_on(fd, "before"), "%s: a connection", what);
    count_fds(&now_inherited);
    tap_is_int(now_inherited - inherited, 2, "no program gets more than our ends of it");
    faultproxy_arm(proxy, 1, (struct fault){kind, side, LONG_MS});
    say(fd, "held");
    tap_ok(has_fired(), "something is pending");
    int64_t began = clock_ms();
    end();
    tap_ok(clock_ms() - began < slow_ms(1500), "at once");
    tap_is_str(answer(fd, slow_ms(2000)), "closed", "the client is told");
    close(fd);
    tap_is_int(count_fds(&inherited), before, "no descriptor is left");
}

int main(void)
{
    server_start();
    test_urls();
    test_round_trips();
    test_much();
    test_slow();
    test_cut_request();
    test_cut_answer();
    test_arming();
    test_cut_all();
    test_refuse();
    test_delay_request();
    test_delay_orphan();
    test_delay_answer();
    test_blackhole_request();
    test_blackhole_answer();
    test_blackhole_all();
    test_stop(FAULT_DELAY, ON_REQUEST, "stopped while a request is delayed");
    test_stop(FAULT_DELAY, ON_ANSWER, "stopped while an answer is");
    test_stop(FAULT_BLACKHOLE, ON_REQUEST, "stopped while swallowing");
    server_stop();
    return tap_done();
}
