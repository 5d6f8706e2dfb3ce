/* SPDX-License-Identifier: MIT
 * A rowlock_lock: the handle of a lock, and what it holds. */
#ifndef RLK_LOCK_H
#define RLK_LOCK_H

#include <stdatomic.h>

#include "lock/deadline.h"
#include "core/core.h"

#define RLK_LOCK_TAG 0x726C6C6Bu /* "rllk" */

/* RLK_GONE: the grant was found lost, and releases are still due. */
enum rlk_lock_state { RLK_IDLE, RLK_HOLDING, RLK_GONE };

struct rowlock_lock {
    uint32_t tag;
    /* NULL once it was closed. */
    rowlock_db *db;
    rowlock_lock *next, *previous;
    char name[RLK_TEXT_MAX + 1], owner[RLK_TEXT_MAX + 1];

    enum rlk_lock_state state;
    /* The grant was made by another handle. A close does not release it. */
    bool attached;
    /* The slot of an attached grant is known. */
    bool slot_known;
    /* The number of releases that are still due. */
    int depth;
    int64_t token;
    /* Of the grant or of the current request. 0: exclusive. */
    int permits;
    struct rlk_deadline deadline;
    /* NULL: it has no keeper. */
    struct rlk_entry *entry;

    /* Granted in a transaction of the caller, which may not have been committed. */
    bool unproven;
    /* rowlock_acquire_start() was called for it, and its result was not taken yet. */
    atomic_bool started;
    /* When rowlock_progress() was last called, from any thread. */
    _Atomic int64_t progress_us;

    /* The number of the current request, and its lease. */
    int64_t request, request_us;
    struct rlk_ticket ticket;
    /* Its outcome is unknown. The next acquire of its kind sends the same number. */
    bool request_open;
    /* The owner is a text of the caller's. */
    bool named;
    /* An earlier request may arrive at any time. As one of our owner, it would replace our grant.
     * So the next request has a new owner, unless that is `named`. */
    bool straying;
    /* An earlier release of this grant may have been carried out, or was a part of the caller's
     * transaction. */
    bool release_open;
    /* The last try was granted. */
    bool was_granted;
    /* `holder` is the row that kept the last try out, or the last two. */
    bool holder_known, holder_again;
    struct rlk_row holder;
};

/* lock.c */
/* A call about the lock begins: see rlk_enter(). The second takes the caller's options too. */
int rlk_enter_lock(const rowlock_lock *lock, const char *verb);
int rlk_enter_acquire(const rowlock_lock *lock, const char *verb,
                      const rowlock_acquire_options *theirs, rowlock_acquire_options *out);
/* May this thread read the handle? */
bool rlk_knows(const rowlock_lock *lock);
bool rlk_holds(const rowlock_lock *lock);
/* Removes it from its rowlock_db. */
void rlk_lock_unlink(rowlock_lock *lock);

/* grant.c */
/* most_us limits the term, in case the server's answer is wrong. 0: no limit. */
struct rlk_term rlk_term_of(int64_t sent_us, int64_t expires_us, int64_t now_us, int64_t most_us);
struct rlk_held rlk_held_of(const rowlock_lock *lock);
/* Fails unless the handle holds the lock. The error is that of db. */
int rlk_need_grant(const rowlock_lock *lock, rowlock_db *db);
/* Is the grant in the table? not_after_us is that of struct rlk_ask. */
int rlk_verify(rowlock_db *db, const struct rlk_held *held, enum rlk_where where,
               int64_t not_after_us, struct rlk_verified *out);
/* found: the name has a counter. */
struct rlk_last {
    bool found;
    int64_t token, granted_us;
};
int rlk_last_grant(rowlock_db *db, const char *name, struct rlk_last *out);
void rlk_grant_from_row(rowlock_grant *out, const struct rlk_row *row);
/* The second part of a grant's key. */
static inline int64_t rlk_slot(int permits, int64_t token)
{
    return permits == 0 ? 0 : token;
}

/* held.c */
void rlk_hold_nothing(rowlock_lock *lock);
/* Releases what is held, and what a request whose answer was lost may have been granted. A failure
 * is only logged. */
void rlk_release_quietly(rowlock_lock *lock);
/* A renewal in two halves: r->ask is sent between them, with this result. It must not move
 * meanwhile. */
struct rlk_renewal {
    struct rlk_held held;
    struct rlk_ask ask;
    struct rlk_verified answer;
    int64_t ttl_us;
    uint64_t serial;
};
void rlk_renew_begin(rowlock_lock *lock, struct rlk_renewal *r, int64_t ttl_us,
                     int64_t patient_until_us);
int rlk_renew_end(rowlock_lock *lock, const struct rlk_renewal *r, int result);
/* Both. patient_until_us is that of struct rlk_ask. */
int rlk_renew(rowlock_lock *lock, int64_t ttl_us, int64_t patient_until_us);
/* No row was found. True if the grant may have another slot: then rlk_held_of() has that slot. */
bool rlk_try_other_slot(rowlock_lock *lock);

/* ticket.c */
/* Gives back the ticket that the lock may have in the queue. not_after_us is that of struct
 * rlk_ask. A failure is only logged. */
void rlk_leave_queue(rowlock_lock *lock, int64_t not_after_us);

#endif
