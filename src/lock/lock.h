/* SPDX-License-Identifier: MIT
 * A rowlock_lock: the handle of a lock, and what it holds. */
#ifndef RLK_LOCK_H
#define RLK_LOCK_H

#include <stdatomic.h>

#include "lock/deadline.h"
#include "seam/seam.h"

#define RLK_LOCK_TAG 0x726C6C6Bu /* "rllk" */

enum rlk_lock_state { RLK_IDLE, RLK_HOLDING, RLK_GONE };

struct rowlock_lock {
    uint32_t tag;
    rowlock_db *db; /* NULL once that was closed */
    rowlock_lock *next, *previous;
    char name[RLK_TEXT_MAX + 1];
    char owner[RLK_TEXT_MAX + 1];

    enum rlk_lock_state state; /* RLK_GONE: the grant was found lost, releases are still due */
    bool attached; /* the grant is another's to release at close */
    bool attached_as; /* whether that is exclusive, or not, is known */
    int depth; /* how often entered */
    int64_t token;
    int permits; /* 0: held exclusively */
    struct rlk_deadline deadline;
    struct rlk_entry *entry; /* this lock in a keeper's hands; NULL: it never was */

    bool unproven; /* granted in a transaction that may not have been committed */
    atomic_bool started; /* an acquire was started for it that nobody has stepped for yet */
    _Atomic int64_t progress_us; /* when the holder last told of progress; from any thread */

    int64_t request; /* of the acquire going on */
    struct rlk_ticket ticket;
    bool request_open; /* its outcome is unknown: the next acquire asks with the same number */
    bool release_open; /* of this grant an earlier release may have been carried out, or was a part
                          of the caller's transaction */
    bool was_granted; /* the last try was */
    bool holder_known;
    struct rlk_row holder;
};

/* lock.c */
bool rlk_knows(const rowlock_lock *lock); /* may be asked for what it knows */
bool rlk_holds(const rowlock_lock *lock);
void rlk_lock_unlink(rowlock_lock *lock); /* from its rowlock_db */

/* grant.c */
/* most_us: it lasts no longer, whatever the server says; 0: not known. */
struct rlk_term rlk_term_of(int64_t sent_us, int64_t expires_us, int64_t now_us, int64_t most_us);
struct rlk_held rlk_held_of(const rowlock_lock *lock);
/* Does the grant stand? A plain read. not_after_us as in struct rlk_step_call. */
int rlk_verify(rowlock_db *db, const struct rlk_held *held, enum rlk_where where,
               int64_t not_after_us, struct rlk_verified *out);
int rlk_last_grant(rowlock_db *db, const char *name, bool *found, int64_t *token,
                   int64_t *granted_us);
void rlk_grant_from_row(rowlock_grant *out, const struct rlk_row *row);
/* Where a grant stands: there is one exclusive place, and as many others as there are tokens. */
static inline int64_t rlk_slot(int permits, int64_t token)
{
    return permits == 0 ? 0 : token;
}

/* held.c */
void rlk_hold_nothing(rowlock_lock *lock);
/* What is held, or may have been granted without our knowledge, goes back as well as can be
 * done. */
void rlk_release_quietly(rowlock_lock *lock);
int rlk_renew(rowlock_lock *lock, int64_t ttl_us);
/* Not found where it was taken to be: may it stand in another place? Then held_of() says where. */
bool rlk_look_elsewhere(rowlock_lock *lock);

/* ticket.c */
/* Give back the ticket that the lock may have in the queue. not_after_us as in struct
 * rlk_step_call. */
void rlk_leave_queue(rowlock_lock *lock, int64_t not_after_us);

#endif
