/* SPDX-License-Identifier: MIT
 * An ask for a caller that does not block. Its handle has a port with hand_in(), and an alarm. */
#ifndef RLK_PENDING_H
#define RLK_PENDING_H

#include "core/ask.h"

/* It must not move between its beginning and its end. */
struct rlk_pending {
    struct rlk_ask *ask;
    struct rlk_again again;
    struct rlk_call call;
    enum rlk_class class;
    int at;
    /* The steps of the ask, in the order in which they are sent, and the one that is under way. */
    struct rlk_ask *step[3];
    size_t steps, current;
    int64_t rest_until_us;
    int result;
};

void rlk_pending_begin(struct rlk_pending *p, struct rlk_ask *ask);
/* Goes on. False: there is nothing to do before *until_us, or before the handle's alarm. True: it
 * has ended with p->result, as that of rlk_ask(). */
bool rlk_pending_step(rowlock_db *db, struct rlk_pending *p, int64_t *until_us);

#endif
