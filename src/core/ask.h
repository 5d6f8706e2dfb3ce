/* SPDX-License-Identifier: MIT
 * Sending a step: connecting before it, and sending it again. */
#ifndef RLK_ASK_H
#define RLK_ASK_H

#include "core/db.h"

/* The level of this library. It can use tables whose compat is at most RLK_LEVEL, and whose version
 * is at least RLK_LEVEL - 1. For tests the Makefile builds a stand-in for the next release. */
#ifndef RLK_LEVEL
#define RLK_LEVEL 1
#endif
/* The revision of the routines. It also grows when routines change and tables do not. */
enum { RLK_CODE = RLK_LEVEL };

/* One step. rlk_do() connects, checks the tables, sends the step again after a lost race, and
 * reconnects and sends it again after a lost answer. It calls run() for each sending. */
struct rlk_step_call {
    enum rlk_class (*run)(rowlock_db *db, struct rlk_call *call, void *context);
    void *context;
    /* The call ends then: it sends nothing and waits for nothing later. 0: no such end. */
    int64_t not_after_us;
    /* As in struct rlk_call. */
    int64_t worth_until_us;
    /* How long to retry after lost races. 0: the time limit of a statement. */
    int64_t contention_us;
    /* Set for a waiter: it reconnects until then, even if reconnect_ms ends earlier. */
    int64_t patient_until_us;
    /* rowlock_cancel() ends the pauses before a retry. The result is CANCELLED. */
    bool heeds_cancel;
    /* The step does not need our tables. */
    bool without_tables;
    /* The step grants locks. A member of a quorum does not do that for one handle alone. */
    bool grants;
    /* The step ends a transaction. After a lost answer the outcome of that is unknown. */
    bool ends_transaction;
    /* The same call finds out later what a lost answer was about, or does the same again. */
    bool finds_out;
    /* A step inside the caller's transaction is not sent again. */
    enum rlk_where where;
    /* Set by rlk_do() while the server is away: an attempt ends then. 0: it is not away. */
    int64_t away_until_us;
    /* out */
    /* Gave up after lost races. Nothing was changed. */
    bool contended;
    /* An earlier sending may have been carried out. */
    bool was_uncertain;
    /* The local clock just before the last sending. */
    int64_t sent_us;
};
int rlk_do(rowlock_db *db, struct rlk_step_call *step);
/* Connects and checks the tables if that is needed, and sends the step once. *result is not OK if
 * the tables are wrong. db->error tells why then. */
enum rlk_class rlk_send_once(rowlock_db *db, struct rlk_step_call *step, struct rlk_call *call,
                             int *result);

/* The connection is lost, or leads to a server that takes no writes. Another one may do. */
bool rlk_is_away(enum rlk_class class);

/* Checks our tables, if that was not done on this connection yet. patient_until_us is that of
 * struct rlk_step_call. */
int rlk_look_at_tables(rowlock_db *db, enum rlk_where where, int64_t patient_until_us);
/* ESCHEMA: the two handles use different installations. It checks their tables first, if that was
 * not done yet. */
int rlk_same_tables(rowlock_db *db, enum rlk_where where, rowlock_db *other);

/* A ticket may be in its queue between these calls: from the first sending of its request until the
 * ticket is gone. */
void rlk_ticket_keep(rowlock_db *db, struct rlk_ticket *ticket, int64_t request);
void rlk_ticket_end(rowlock_db *db, struct rlk_ticket *ticket);
/* Sends the step that removes a ticket. */
enum rlk_class rlk_give_ticket_back(rowlock_db *db, struct rlk_call *call,
                                    struct rlk_ticket *ticket);

/* For opening and closing a rowlock_db. */
enum rlk_class rlk_connect(rowlock_db *db, struct rlk_call *call);
enum rlk_class rlk_learn_names(rowlock_db *db, const struct rlk_hello *hello);
void rlk_disconnect(rowlock_db *db, bool in_child);

#endif
