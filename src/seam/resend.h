/* SPDX-License-Identifier: MIT
 * A step, and what goes around it: connecting, and sending it again. */
#ifndef RLK_RESEND_H
#define RLK_RESEND_H

#include "seam/db.h"

/* The level of this library. It can use tables whose compat is at most this, and whose version is
 * at least the one before. `make LEVEL=2` builds a stand-in for the next release, for tests. */
#ifndef RLK_LEVEL
#define RLK_LEVEL 1
#endif
/* The revision of the routines. It also grows when routines change and tables do not. */
enum { RLK_CODE = RLK_LEVEL };

/* One step with all that core does around it: connect, check the tables, retry what lost a race,
 * reconnect and ask again after a lost answer. run() is called anew for each sending. */
struct rlk_step_call {
    enum rlk_class (*run)(rowlock_db *db, struct rlk_call *call, void *context);
    void *context;
    int64_t not_after_us; /* nothing is sent or waited for after this; 0: no such end */
    int64_t contention_us; /* how long to go on against contention; 0: the statement deadline */
    int64_t patient_until_us; /* a waiter's: reconnect until then, if reconnect_ms ends earlier */
    bool heeds_cancel; /* rowlock_cancel() ends the pauses before it is sent again, as CANCELLED */
    bool without_tables; /* our tables may be missing */
    bool ends_transaction; /* a lost answer leaves it open what became of that */
    enum rlk_where where; /* inside the caller's transaction nothing is sent again */
    /* out */
    bool contended; /* gave up against contention; nothing was done */
    bool was_uncertain; /* an earlier sending may have been carried out */
    int64_t sent_us; /* our clock just before the last sending */
};
int rlk_do(rowlock_db *db, struct rlk_step_call *step);

/* Look at our tables now, if that was not done on this connection yet. */
int rlk_look_at_tables(rowlock_db *db, enum rlk_where where);
/* Are both the same installation? Looks at their tables where that was not done yet. */
int rlk_same_tables(rowlock_db *db, enum rlk_where where, rowlock_db *other);

/* A ticket may be in its queue from the first sending of a request until it has ended. */
void rlk_ticket_keep(rowlock_db *db, struct rlk_ticket *ticket, int64_t request);
void rlk_ticket_end(rowlock_db *db, struct rlk_ticket *ticket);
/* The step that ends one. */
enum rlk_class rlk_give_ticket_back(rowlock_db *db, struct rlk_call *call,
                                    struct rlk_ticket *ticket);

/* For those who open and close. */
enum rlk_class rlk_connect(rowlock_db *db, struct rlk_call *call);
enum rlk_class rlk_learn_names(rowlock_db *db, const struct rlk_hello *hello);
void rlk_disconnect(rowlock_db *db, bool in_child);

#endif
