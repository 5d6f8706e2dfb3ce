/* SPDX-License-Identifier: MIT
 *
 * Wake-ups, and the turn.
 *
 * Wake-ups are datagrams. All users of a file are on one machine. So a waiter's ticket has the
 * address of its socket. A step that changes what the first in the queue waits for sends a datagram
 * there. The address is an abstract one of Linux, with 128 random bits. It leaves no file behind,
 * ends with its process, and costs nothing while no datagram comes.
 *
 * A datagram is empty, and only says "look". Any user may send one. It gets lost if the sender is
 * in another network namespace, for example in a container that shares only the file. So core also
 * polls. */
#include "driver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char WAKEUP_PREFIX[] = "@rowlock-";

/* Datagrams go only to addresses of this form, since another program may write into the table. */
static bool is_wakeup(const char *address)
{
    size_t prefix = sizeof WAKEUP_PREFIX - 1;
    return strncmp(address, WAKEUP_PREFIX, prefix) == 0 &&
           strspn(address + prefix, "0123456789abcdef") == 32 && address[prefix + 32] == '\0';
}

/* An abstract address begins with a zero byte. The ticket has @ in its place. */
static socklen_t socket_address(const char *wakeup, struct sockaddr_un *out)
{
    size_t length = strlen(wakeup);
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->sun_path, wakeup, length);
    out->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

static int new_socket(void)
{
#ifdef __linux__
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
#else
    return -1;
#endif
}

static bool open_socket(struct conn *conn)
{
    if (!conn->has_socket) {
        conn->socket = new_socket();
        conn->has_socket = conn->socket >= 0;
    }
    return conn->has_socket;
}

static bool bind_address(int socket, const char *address)
{
    struct sockaddr_un bound;
    socklen_t size = socket_address(address, &bound);
    return bind(socket, (const struct sockaddr *)&bound, size) == 0;
}

static bool bind_new(const char *address, int *out)
{
    *out = new_socket();
    if (*out >= 0 && bind_address(*out, address))
        return true;
    if (*out >= 0)
        close(*out);
    return false;
}

/* All at once, so that they wake us once. A flood of them must not keep us here. */
static void drain(int socket)
{
    char byte;
    for (int i = 0; i < 64 && recv(socket, &byte, sizeof byte, 0) >= 0; i++)
        ;
}

/* A failure is ignored: without an address the waiter polls more often. */
void lite_open_wakeup(struct conn *conn)
{
    char random[RLK_TEXT_MAX + 1], wakeup[WAKEUP_ROOM];
    if (conn->wakeup[0] || !open_socket(conn) || rlk_random_owner(random) != 0)
        return;
    snprintf(wakeup, sizeof wakeup, "%s%.32s", WAKEUP_PREFIX, random);
    if (bind_address(conn->socket, wakeup))
        memcpy(conn->wakeup, wakeup, sizeof wakeup);
}

void lite_close_wakeup(struct conn *conn)
{
    if (conn->has_socket)
        close(conn->socket);
    conn->has_socket = false;
    conn->wakeup[0] = '\0';
}

static bool send_look(struct conn *conn, const char *address)
{
    struct sockaddr_un to;
    if (!open_socket(conn))
        return false;
    socklen_t size = socket_address(address, &to);
    return sendto(conn->socket, "", 0, 0, (const struct sockaddr *)&to, size) == 0 ||
           errno != ECONNREFUSED;
}

/* A failure is ignored. If the waiter is gone, the lease of its ticket will end. If its buffer is
 * full, it has a wake-up already. */
void lite_wake(struct conn *conn, const char *wakeup)
{
    if (is_wakeup(wakeup))
        send_look(conn, wakeup);
}

bool lite_tell(void *state, struct rlk_call *call, enum rlk_news news,
               const struct rlk_request *request, int64_t number)
{
    (void)state;
    (void)call;
    (void)request;
    return news == RLK_ENQUEUED && number != 0;
}

/* Sends nothing to the database. A datagram that came earlier is still in the socket's buffer. */
enum rlk_class lite_await(void *state, struct rlk_call *call, const struct rlk_request *request,
                          int wake, enum rlk_wakeup *out)
{
    struct conn *conn = state;
    (void)request;
    *out = RLK_NO_WAKEUPS;
    if (!conn->wakeup[0])
        return RLK_DONE;
    int ready = rlk_wait_socket(conn->socket, POLLIN, wake, call->deadline_us);
    if (ready == RLK_READY)
        drain(conn->socket);
    *out = ready & RLK_WOKEN ? RLK_INTERRUPTED : ready ? RLK_WAKEUP : RLK_SILENT;
    return RLK_DONE;
}

/* ---- the turn: which is next when several clients wait for the file
 *
 * SQLite has no queue for the file. A client that begins a transaction right after its last one
 * leaves the file free for microseconds, and the others ask for it every few milliseconds. So they
 * may wait for seconds. Here a client that has waited for some milliseconds takes the turn: an
 * abstract address that one socket at a time can have. Each commit sends a datagram there. If a
 * client has the turn, the committer pauses before its next transaction, and the file is free when
 * the datagram wakes the other.
 *
 * The turn decides nothing: clients without it ask for the file too. Any user of the machine may
 * take it. Then a busy writer loses a pause every PAUSE_EVERY_US, and waits are as unfair as
 * without turns. */

enum {
    /* Shorter waits need no turn. While a client waits so long, another works undisturbed. */
    TURN_AFTER_US = 10000,
    PAUSE_MS = 1,
    PAUSE_EVERY_US = 20000,
    /* how long ago a commit may be for a pause after it */
    JUST_NOW_US = 1000,
    /* Programs without rowlock send no datagram, so the one whose turn it is asks anyway. */
    ASK_EVERY_US = 2000
};

void lite_name_turn(struct conn *conn)
{
    struct stat file;
    conn->turn_address[0] = '\0';
    if (stat(conn->path, &file) == 0)
        snprintf(conn->turn_address, sizeof conn->turn_address, "@rowlock-turn-%llx-%llx",
                 (unsigned long long)file.st_dev, (unsigned long long)file.st_ino);
}

static void pause_randomly(void)
{
    uint64_t chance = 0;
    (void)rlk_random_seed(&chance);
    sqlite3_sleep(1 + (int)(chance % 3));
}

void lite_await_turn(struct conn *conn, int64_t waited_us)
{
    if (waited_us >= TURN_AFTER_US && conn->turn_address[0] && !conn->has_turn)
        conn->has_turn = bind_new(conn->turn_address, &conn->turn);
    if (!conn->has_turn)
        pause_randomly();
    else if (rlk_wait_socket(conn->turn, POLLIN, -1, rlk_now_us() + ASK_EVERY_US))
        drain(conn->turn);
}

void lite_end_turn(struct conn *conn)
{
    if (conn->has_turn)
        close(conn->turn);
    conn->has_turn = false;
}

void lite_pass_turn(struct conn *conn)
{
    conn->passed = conn->turn_address[0] && send_look(conn, conn->turn_address);
    if (conn->passed)
        conn->passed_us = rlk_now_us();
}

void lite_let_pass(struct conn *conn)
{
    int64_t now_us = conn->passed ? rlk_now_us() : 0;
    if (!conn->passed || now_us - conn->passed_us >= JUST_NOW_US ||
        now_us - conn->paused_us < PAUSE_EVERY_US)
        return;
    conn->paused_us = now_us;
    sqlite3_sleep(PAUSE_MS);
}
