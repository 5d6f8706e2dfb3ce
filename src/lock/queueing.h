/* SPDX-License-Identifier: MIT
 * What a waiter does next. A machine: it waits for nothing, reads no clock, and sends nothing. It
 * begins after a BUSY try. Its caller does what it says, notes how that ended, and asks again. */
#ifndef RLK_QUEUEING_H
#define RLK_QUEUEING_H

#include "lock/try.h"

enum rlk_act {
    /* Takes or renews the ticket for q->request, with a lease of q->lease_us. Ends with q->result
     * and q->position. BUSY: it was not possible for now. */
    RLK_TAKE_TICKET,
    /* Ends with q->result: DEADLOCK, OK or an error. */
    RLK_LOOK_FOR_CYCLE,
    /* Tries again. Ends with q->result. */
    RLK_TRY,
    /* Gives back the ticket of q->lock, and forgets both. */
    RLK_LEAVE,
    /* Waits for a wake-up until q->wait_until_us. Ends with q->wakeup, and q->lost if that cost the
     * connection. */
    RLK_LISTEN,
    /* Waits until q->wait_until_us. Ends with q->wakeup: SILENT, or INTERRUPTED by a cancel. */
    RLK_PAUSE,
    /* q->result is TIMEOUT, CANCELLED, DEADLOCK, or what a try or a ticket ended with. */
    RLK_STOP
};
struct rlk_queueing {
    struct rlk_acquiring *a;
    /* The lock in whose queue we are. NULL: in none. */
    rowlock_lock *lock;
    /* The request for that lock. */
    struct rlk_request *request;
    /* The lease of the ticket. */
    int64_t lease_us;
    int64_t wait_until_us;
    /* How the act ended. */
    int result;
    struct rlk_position position;
    char cycle[RLK_CYCLE];
    enum rlk_wakeup wakeup;
    bool lost;
    /* A cancel has ended the wait, and the connection was lost by it. */
    bool interrupted;

    /* What follows is for the machine alone. */
    int at;
    /* Live tickets before ours, when last seen. */
    int64_t ahead;
    /* When the ticket was asked for, and when to renew it. */
    int64_t asked_us, renew_us;
    /* When to look for a deadlock. */
    int64_t check_us;
    /* When we came, or when the queue last moved. */
    int64_t since_us;
    /* When our position was last seen. */
    int64_t seen_us;
    /* How long the queue took for one position when it last moved. 0: not known. */
    int64_t step_us;
    /* This connection gets no wake-ups. */
    bool unwakeable;
    /* Look at the lock at once: a wake-up may have been missed. */
    bool look;
    /* Consecutive looks at a row that another transaction was changing. */
    int settling;
};
void rlk_queueing_begin(struct rlk_queueing *q, struct rlk_acquiring *a, int64_t now_us);
enum rlk_act rlk_queueing_next(struct rlk_queueing *q, int64_t now_us);
/* Tests set the pause between two polls. If it is very long, only a wake-up ends a wait. 0: the
 * pause is computed. */
extern int64_t rlk_poll_pause_us;

#endif
