/* SPDX-License-Identifier: MIT
 * Pauses, which are microseconds, and their end by a cancel. tries counts up. */
#ifndef RLK_WAIT_H
#define RLK_WAIT_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* What a handle waits with. */
struct rlk_waiting {
    int wake[2]; /* a pipe: rlk_wake() writes, a wait reads */
    uint64_t jitter; /* the state of its random numbers */
};

int64_t rlk_jitter(struct rlk_waiting *w, int64_t bound);
extern int (*rlk_poll)(struct pollfd *fds, nfds_t count,
                       int timeout_ms); /* tests put another in its place */
int64_t rlk_pause_retry(struct rlk_waiting *w, int *tries);
int64_t rlk_pause_away(struct rlk_waiting *w); /* between two attempts of a waiter to reconnect */
int64_t rlk_wait_end(int64_t wait_ms); /* our clock then; INT64_MAX: never */
void rlk_wake(struct rlk_waiting *w); /* in a signal handler too: the wait ends as cancelled */
bool rlk_take_cancel(struct rlk_waiting *w); /* was it cancelled? */
int rlk_wake_open(struct rlk_waiting *w);
void rlk_wake_close(struct rlk_waiting *w);
bool rlk_wait_until(struct rlk_waiting *w, int64_t until_us); /* false: cancelled */

/* Wait until a socket has one of these events of poll(), or wake (a descriptor, -1: none) is
 * readable: which of the two, or both. 0: that time is over, even if something is ready. */
enum { RLK_READY = 1, RLK_WOKEN = 2 };
int rlk_wait_socket(int socket, short events, int wake, int64_t until_us);
void rlk_wait_plain(int64_t pause_us);

#endif
