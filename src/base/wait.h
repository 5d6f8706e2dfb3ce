/* SPDX-License-Identifier: MIT
 * Pauses, in microseconds, and how a cancel ends them. */
#ifndef RLK_WAIT_H
#define RLK_WAIT_H

#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What one thread waits for. */
struct rlk_turn {
    sem_t posted;
    /* Readable after a post, for a handle that does not block. -1: there is none. */
    int alarm;
};

/* What a handle waits with. */
struct rlk_waiting {
    /* A pipe: rlk_cancel_wait() writes to it, a wait reads from it. -1: there is none, and what
     * follows stands in for it. A handle of a pool waits for no descriptor, so it needs none. */
    int wake[2];
    /* Posted when the handle may have something to do. */
    struct rlk_turn turn;
    atomic_bool cancelled;
    /* The wait is a part of a longer call. A cancel that is too late for the wait is for that
     * call. */
    bool longer;
    /* How many handles of the same pool look at their locks from time to time. 0: it has no
     * pool. */
    size_t lookers;
    /* Another handle of that pool is before this one in the same queue, and looks for both. */
    atomic_bool behind;
    /* The state of the random numbers. */
    uint64_t jitter;
};

/* A random number from 0 to bound - 1. */
int64_t rlk_jitter(struct rlk_waiting *w, int64_t bound);
/* Tests set another function. */
extern int (*rlk_poll)(struct pollfd *fds, nfds_t count, int timeout_ms);
/* The pause before the next retry. It adds 1 to *tries. */
int64_t rlk_pause_retry(struct rlk_waiting *w, int *tries);
/* The pause before a waiter tries again to reconnect. */
int64_t rlk_pause_away(struct rlk_waiting *w);
/* When a wait of wait_ms that begins now ends, by rlk_now_us(). INT64_MAX: it has no end. */
int64_t rlk_wait_end(int64_t wait_ms);
/* Ends a wait as cancelled. A signal handler may call it. */
void rlk_cancel_wait(struct rlk_waiting *w);
/* Was a cancel pending? It is not any more. */
bool rlk_take_cancel(struct rlk_waiting *w);
int rlk_waiting_open(struct rlk_waiting *w);
/* The same without a descriptor. */
void rlk_turn_open(struct rlk_waiting *w);
void rlk_waiting_close(struct rlk_waiting *w);
void rlk_turn_init(struct rlk_turn *turn);
void rlk_turn_end(struct rlk_turn *turn);
/* Was it posted? */
bool rlk_turn_came(struct rlk_turn *turn);
/* Ends one wait for it. A signal handler may call it. */
void rlk_turn_post(struct rlk_turn *turn);
/* Waits until it is posted. False: until_us has passed. */
bool rlk_wait_turn(struct rlk_turn *turn, int64_t until_us);
/* False: cancelled. */
bool rlk_wait_until(struct rlk_waiting *w, int64_t until_us);

/* Waits until a socket has one of these events of poll(), or the descriptor wake is readable.
 * wake -1: there is none. Returns which of the two it was, or both. Returns 0 once until_us has
 * passed, even if one of them is ready. */
enum { RLK_READY = 1, RLK_WOKEN = 2 };
int rlk_wait_socket(int socket, short events, int wake, int64_t until_us);
/* A pause that no cancel ends. */
void rlk_wait_plain(int64_t pause_us);

/* An alarm is a descriptor that becomes readable at a time. It runs while the machine is suspended.
 * -1: there is none, as on systems other than Linux. */
int rlk_alarm_open(void);
/* Readable after so long. 0 and less: now. INT64_MAX: never. It is not readable until then. A
 * signal handler may call it. */
void rlk_alarm_set(int fd, int64_t after_us);

#endif
