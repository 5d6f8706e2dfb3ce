/* SPDX-License-Identifier: MIT
 * What stands between a handle and the databases, in place of a connection of its own: a pool, or a
 * quorum. A plain handle has none. */
#ifndef RLK_PORT_H
#define RLK_PORT_H

#include "core/core.h"

struct rlk_port {
    /* The state of one handle: bytes that core owns, as db->conn. Zero before open(). */
    size_t state_size;
    /* Asks of many handles of one kind go as one statement. */
    bool gathers;
    /* Its texts about our tables say what to do. So core adds no advice to them. */
    bool advises;
    /* What messages call it when it is away. NULL: "the server". */
    const char *called;
    /* Why no transaction can prove a grant that it made. NULL: one in the same database can. */
    const char *no_guard;
    /* Why its handles do nothing but lock. NULL: they do all. */
    const char *only_locks;

    /* As the operations of a driver with these names (driver.h). */
    enum rlk_class (*open)(rowlock_db *db, struct rlk_call *call, struct rlk_hello *hello);
    void (*close)(rowlock_db *db, bool in_child);
    bool (*tell)(rowlock_db *db, struct rlk_call *call, enum rlk_news news,
                 const struct rlk_request *request, int64_t number);
    enum rlk_class (*await)(rowlock_db *db, struct rlk_call *call,
                            const struct rlk_request *request, enum rlk_wakeup *out);
    /* Sends what is asked, once. It fills in what rlk_send() fills in. */
    enum rlk_class (*ask)(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask);
    /* The same for one step, in two halves, for a caller that does not block. The first hands it
     * in. Its class is RLK_DONE, or says why it was not. NULL: a thread must do it. */
    enum rlk_class (*hand_in)(rowlock_db *db, struct rlk_call *call, struct rlk_ask *step);
    /* The second, after the wait was ended by the handle's alarm, or by call->deadline_us. False:
     * there is no answer yet. */
    bool (*take)(rowlock_db *db, struct rlk_call *call, struct rlk_ask *step,
                 enum rlk_class *class);
};

/* Copies of values, for a step or an answer that outlives its caller. */
enum { RLK_COPIES_MOST = 24 };
struct rlk_copies {
    rowlock_value value[RLK_COPIES_MOST];
    size_t count;
    /* The bytes of the values. NULL: they have none. */
    char *texts;
};

/* The value points to bytes. */
bool rlk_has_bytes(const rowlock_value *value);
/* False: out of memory, or they are more than RLK_COPIES_MOST. Nothing was copied then. */
bool rlk_copies_take(struct rlk_copies *out, const rowlock_value *values, size_t count);
void rlk_copies_clear(struct rlk_copies *copies);

#endif
