/* SPDX-License-Identifier: MIT
 * Acquiring, with a wait in the queue if the caller allows it. */
#ifndef RLK_QUEUE_H
#define RLK_QUEUE_H

#include "lock/try.h"

/* acquire.c */
int rlk_acquire(rowlock_lock *lock, const rowlock_acquire_options *options);
/* Its parts, for an acquire that does not block (stepped.c). */
int rlk_check_unattached(rowlock_lock *lock);
int rlk_check_reentry(rowlock_lock *lock, const rowlock_acquire_options *options);
/* The wait's end, the keeper's entries, the requests. */
int rlk_acquire_begin(struct rlk_acquiring *a);

/* queue.c: a machine. It begins after a BUSY try. rlk_queue_next() says what to do next. Its
 * caller does that, notes how it ended, and asks again. */
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
struct rlk_queue {
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
    struct rlk_cycle cycle;
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
void rlk_queue_begin(struct rlk_queue *q, struct rlk_acquiring *a, int64_t now_us);
enum rlk_act rlk_queue_next(struct rlk_queue *q, int64_t now_us);
/* acquire.c: the ask of TAKE_TICKET or LOOK_FOR_CYCLE, and what its result means. */
void rlk_act_begin(struct rlk_queue *q, enum rlk_act act, struct rlk_ask *ask);
void rlk_act_end(struct rlk_queue *q, enum rlk_act act, const struct rlk_ask *ask, int result);
/* The ticket of LEAVE was given back, or stays until its lease ends. */
void rlk_forget_place(struct rlk_queue *q);
/* Tests set the pause between two polls. If it is very long, only a wake-up ends a wait. 0: the
 * pause is computed. */
extern int64_t rlk_poll_pause_us;

/* stepped.c: an acquire that rowlock_acquire_step() drives, for a handle whose driver does not
 * block. It never moves. */
struct rlk_stepped;
/* NULL: no memory, or no alarm. */
struct rlk_stepped *rlk_stepped_new(rowlock_lock *lock, const rowlock_acquire_options *options);
/* Goes on. True: it has ended with *result. */
bool rlk_stepped_go(struct rlk_stepped *s, int *result);

/* start.c */
/* Cancels a started acquire, and waits for its thread. */
void rlk_started_stop(rowlock_db *db);
/* The same for a lock that is being closed. It drops the result too. */
void rlk_started_end(rowlock_lock *lock);

/* lock_close.c */
/* The lock or its rowlock_db is being closed: gives back what the lock has, and unlinks it. */
void rlk_lock_abandon(rowlock_lock *lock);

#endif
