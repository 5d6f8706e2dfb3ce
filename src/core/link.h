/* SPDX-License-Identifier: MIT
 * The connection of a rowlock_db. */
#ifndef RLK_LINK_H
#define RLK_LINK_H

#include "core/core.h"

/* The level of this library. It can use tables whose compat is at most RLK_LEVEL, and whose version
 * is at least RLK_LEVEL - 1. For tests the Makefile builds a stand-in for the next release. */
#ifndef RLK_LEVEL
#define RLK_LEVEL 1
#endif
/* The revision of the routines. It also grows when routines change and tables do not. */
enum { RLK_CODE = RLK_LEVEL };

static inline bool rlk_is_up(const rowlock_db *db)
{
    return db->link >= RLK_OPEN;
}
/* The connection is lost. */
static inline bool rlk_is_gone(enum rlk_class class)
{
    return class == RLK_UNSENT || class == RLK_UNCERTAIN;
}
/* The same, or it leads to a server that takes no writes. Another one may do. */
static inline bool rlk_is_away(enum rlk_class class)
{
    return rlk_is_gone(class) || class == RLK_STANDBY;
}

/* The connection is lost, or leads to a server that takes no writes. The next ask makes another. */
void rlk_lose(rowlock_db *db);
/* The tables must be checked again. Returns whether only the driver had looked at them. */
bool rlk_distrust(rowlock_db *db);
void rlk_set_tx(rowlock_db *db, enum rlk_tx tx);

/* For opening and closing a rowlock_db. */
enum rlk_class rlk_connect(rowlock_db *db, struct rlk_call *call);
enum rlk_class rlk_adopt(rowlock_db *db, struct rlk_call *call, void *vendor);
enum rlk_class rlk_learn_names(rowlock_db *db, struct rlk_call *call,
                               const struct rlk_hello *hello);
void rlk_disconnect(rowlock_db *db, bool in_child);

/* Connected, and the tables were checked if the ask needs them? */
bool rlk_is_ready(const rowlock_db *db, const struct rlk_ask *ask);
/* Makes it so. RLK_DONE with *result not OK: the tables are wrong, and db->error tells why. */
enum rlk_class rlk_make_ready(rowlock_db *db, const struct rlk_ask *ask, struct rlk_call *call,
                              int *result);

/* A ticket may be in its queue between these calls: from the first attempt of its request until the
 * ticket is gone. */
void rlk_ticket_keep(rowlock_db *db, struct rlk_ticket *ticket, int64_t request);
void rlk_ticket_end(rowlock_db *db, struct rlk_ticket *ticket);
/* The ticket was given back. */
void rlk_ticket_left(rowlock_db *db, struct rlk_ticket *ticket);

#endif
