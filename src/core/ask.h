/* SPDX-License-Identifier: MIT
 * Asking the database: connecting before it, and asking again. */
#ifndef RLK_ASK_H
#define RLK_ASK_H

#include "core/policy.h"

/* Connects, checks the tables, and sends what is asked. After a lost race, a lost answer or a lost
 * connection it sends it again, as the ask says. */
int rlk_ask(rowlock_db *db, struct rlk_ask *ask);
/* Connects and checks the tables if that is needed, and sends it once. *result is not OK if the
 * tables are wrong. db->error tells why then. */
enum rlk_class rlk_attempt(rowlock_db *db, struct rlk_ask *ask, struct rlk_call *call, int *result);

/* Its parts. The first: as rlk_attempt(), but nothing was sent yet. The second: it was sent, and
 * ended so. */
enum rlk_class rlk_attempt_begin(rowlock_db *db, struct rlk_ask *ask, struct rlk_call *call,
                                 int *result);
void rlk_attempt_note(rowlock_db *db, struct rlk_ask *ask, struct rlk_call *call,
                      enum rlk_class class);
/* After an attempt: what comes next. *result: that of the ask if this is its END. */
enum rlk_next rlk_attempted(rowlock_db *db, struct rlk_ask *ask, struct rlk_again *again,
                            enum rlk_class class, struct rlk_call *call, int *result);
/* Its result if a cancel ends the WAIT. */
int rlk_cancelled(rowlock_db *db, struct rlk_ask *ask, enum rlk_class class,
                  const struct rlk_call *call);

/* The answer to a step was none that our tables give. */
int rlk_fail_answer(rowlock_db *db, enum rlk_step step);

/* Checks our tables, if that was not done on this connection yet. patient_until_us is that of
 * struct rlk_ask. */
int rlk_look_at_tables(rowlock_db *db, enum rlk_where where, int64_t patient_until_us);
/* ESCHEMA: the two handles use different installations. It checks their tables first, if that was
 * not done yet. */
int rlk_same_tables(rowlock_db *db, enum rlk_where where, rowlock_db *other);

#endif
