/* SPDX-License-Identifier: MIT
 *
 * The turn: which is next when several clients wait for the file.
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
#include "driver.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

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
        conn->has_turn = lite_bind(conn->turn_address, &conn->turn);
    if (!conn->has_turn)
        pause_randomly();
    else if (rlk_wait_socket(conn->turn, POLLIN, -1, rlk_now_us() + ASK_EVERY_US))
        lite_drain(conn->turn);
}

void lite_end_turn(struct conn *conn)
{
    if (conn->has_turn)
        close(conn->turn);
    conn->has_turn = false;
}

void lite_pass_turn(struct conn *conn)
{
    conn->passed = conn->turn_address[0] && lite_send_look(conn, conn->turn_address);
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
