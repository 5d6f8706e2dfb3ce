/* SPDX-License-Identifier: MIT
 * When an ask is sent again. A machine: it waits for nothing, reads no clock, and sends nothing. */
#ifndef RLK_POLICY_H
#define RLK_POLICY_H

#include "core/link.h"

/* What the caller of a machine does next. */
enum rlk_next {
    /* Send it, and give the machine its end. */
    RLK_ASK,
    /* Wait, and go on. */
    RLK_WAIT,
    /* It is over. */
    RLK_END
};

/* What is remembered while an ask is sent again and again. Zeros begin one. */
struct rlk_again {
    /* Set when a race is first lost. */
    int64_t contention_until;
    /* Set when the connection is first lost. */
    int64_t reconnect_until;
    int64_t attempts_until;
    int tries;
    /* So many answers in a row could not be read. */
    int garbled;
    /* out */
    /* How long an RLK_WAIT takes. */
    int64_t pause_us;
    /* The failure is one after which an ask may be sent again. */
    bool passing;
};
/* A server that is away does not answer. One that answers so often, and never what we can read,
 * does not come back. */
enum { RLK_GARBLED_MOST = 3 };

/* An attempt has ended so. */
enum rlk_next rlk_again_next(rowlock_db *db, struct rlk_ask *ask, struct rlk_again *again,
                             enum rlk_class class, struct rlk_call *call, int64_t now_us);
/* The end of an attempt that begins at from_us and may take after_us. */
int64_t rlk_attempt_end(const struct rlk_ask *ask, int64_t from_us, int64_t after_us);
/* A waiter has no lease that may end, so it may wait through an outage. */
bool rlk_is_patient(const rowlock_db *db, const struct rlk_ask *ask);

#endif
