/* SPDX-License-Identifier: MIT
 *
 * What core asks of the database. Each function sends one step (steps.h), checks the shape of the
 * answer, and decodes it, for all databases alike. It does not retry: rlk_do() does. Results are
 * filled in with RLK_DONE only. */
#ifndef RLK_CORE_H
#define RLK_CORE_H

#include "core/db.h"

/* A grant by its key and the proof of ownership. */
struct rlk_held {
    const char *name;
    /* 0: the exclusive grant. Other grants have their token as slot. */
    int64_t slot;
    const char *owner;
    int64_t token;
};

/* A row of rowlock_locks, with the server's clock when it was read. Strings are always terminated.
 * A text longer than RLK_TEXT_MAX is cut, but our own rows never have one. */
struct rlk_row {
    char name[RLK_TEXT_MAX + 1];
    char owner[RLK_TEXT_MAX + 1];
    char host[RLK_TEXT_MAX + 1];
    char program[RLK_TEXT_MAX + 1];
    char note[RLK_TEXT_MAX + 1];
    /* 0: exclusive; -1: shared; N: one of at most N. */
    int permits;
    int64_t slot;
    int64_t token, acquired_us, expires_us, ttl_us, renewals, pid, now_us;
};

enum rlk_outcome {
    /* row is our grant. Its texts may be empty. */
    RLK_GRANTED,
    /* row is the grant that keeps us out. */
    RLK_HELD,
    /* No grant keeps us out, but others are before us in the queue. There is no row. */
    RLK_BEHIND,
    /* Another transaction is granting or changing the lock at this moment. There is no row. */
    RLK_IN_FLIGHT,
};
struct rlk_grant {
    enum rlk_outcome outcome;
    /* For HELD and BEHIND: others are before us in the queue. */
    bool behind;
    /* For HELD and BEHIND: another transaction is changing the row that is in the way. It may not
     * wake us, since it may not see our ticket. So we look again soon. */
    bool settling;
    struct rlk_row row;
};

/* Our position in the queue. */
struct rlk_position {
    int64_t ticket;
    /* Live tickets before ours. 256: that many, or more. */
    int64_t ahead;
    /* A wake-up can reach us on this connection. */
    bool wakeable;
};

/* A waiter in the queue. */
struct rlk_waiter {
    char name[RLK_TEXT_MAX + 1];
    char owner[RLK_TEXT_MAX + 1];
    char host[RLK_TEXT_MAX + 1];
    char program[RLK_TEXT_MAX + 1];
    char note[RLK_TEXT_MAX + 1];
    int permits;
    int64_t ticket, request, since_us, expires_us, pid, now_us;
};
typedef int rlk_row_fn(void *context, const struct rlk_row *row);
typedef int rlk_waiter_fn(void *context, const struct rlk_waiter *waiter);
typedef int rlk_name_fn(void *context, const rowlock_name_figures *figures);

/* The grant after a renewal, or as a read has found it. */
struct rlk_verified {
    bool found;
    int64_t expires_us;
    /* How long the lease had expired before the renewal. 0: it had not. */
    int64_t lapsed_us;
    int64_t now_us;
};

/* One of many leases to renew. */
struct rlk_lease {
    struct rlk_held held;
    /* Not 0. */
    int64_t ttl_us;
    /* out. False: the grant is gone, or another transaction has its row locked. */
    bool renewed;
    /* As in rlk_call. */
    bool barely;
};

/* The key of a row of rowlock_locks. */
struct rlk_key {
    char name[RLK_TEXT_MAX + 1];
    int64_t slot;
};
/* No row is before it. */
#define RLK_BEFORE_ALL \
    {                  \
        "", -1         \
    }

/* One batch of a sweep: rows behind a key, in key order, whose leases ended at least older_us
 * ago. */
struct rlk_sweep {
    int64_t older_us;
    int batch;
    bool dry_run;
    struct rlk_key after;
    /* out */
    /* Rows removed. Of a dry run: rows found. */
    int64_t removed;
    /* There may be more rows behind last. */
    bool more;
    /* The end of the batch. Only if there may be more. */
    struct rlk_key last;
};

struct rlk_fold {
    int64_t idle_us;
    int batch;
    bool dry_run;
    /* out */
    int64_t folded;
};

/* One sending of a step. */
struct rlk_sending {
    enum rlk_step step;
    /* In the order of the step's list of parameters. */
    const rowlock_value *in;
    /* The name of a lock whose first waiter may get its turn by this step. NULL: none. */
    const char *wakes;
    /* Called with each row, after its shape was checked. NULL: the rows are not needed. */
    rlk_cells_fn *read;
    void *out;
    /* out */
    uint64_t rows;
    int64_t changed;
};
enum rlk_class rlk_send(rowlock_db *db, struct rlk_call *call, struct rlk_sending *s);

/* Calls run() in a new transaction. If call->where is not RLK_OUTSIDE or a transaction of ours is
 * open, it begins none. */
enum rlk_class rlk_in_transaction(rowlock_db *db, struct rlk_call *call,
                                  enum rlk_class (*run)(rowlock_db *db, struct rlk_call *call,
                                                        void *context),
                                  void *context);

enum rlk_class rlk_step_meta(rowlock_db *db, struct rlk_call *call, struct rlk_meta *out);
/* The facts of the step and those of the driver. */
enum rlk_class rlk_step_facts(rowlock_db *db, struct rlk_call *call, struct rlk_facts *out);

/* One try.
 *
 *   - An unexpired row of another owner keeps us out, and so does the queue before us. An unfair
 *     request ignores the queue.
 *   - A row with our request's number is our own grant.
 *   - A grant removes our ticket. If it is not exclusive, it also wakes the next waiter.
 *   - A try that is not granted writes nothing.
 *   - It waits for no other transaction: what one has locked is IN_FLIGHT.
 *   - With RLK_INSIDE others see the grant when the caller's transaction commits.
 *
 * It takes one round trip, or two if the cheap first step was not enough. */
enum rlk_class rlk_step_acquire(rowlock_db *db, struct rlk_call *call,
                                const struct rlk_request *request, struct rlk_grant *out);
/* All of them or none, in one transaction. The requests are in the order of their names. If they
 * are granted, out has all rows. Otherwise *which is the first lock that was in the way. Where the
 * step is one statement, out[*which] is IN_FLIGHT then, since the answer does not say by whom. */
enum rlk_class rlk_step_acquire_all(rowlock_db *db, struct rlk_call *call,
                                    const struct rlk_request *requests, size_t count,
                                    struct rlk_grant *out, size_t *which);
/* Removes the grant of this request, if there is one. */
enum rlk_class rlk_step_withdraw(rowlock_db *db, struct rlk_call *call,
                                 const struct rlk_request *request, bool *found);

/* ttl_us 0: the ttl that the grant has. expires_us - now_us is that ttl then. */
enum rlk_class rlk_step_renew(rowlock_db *db, struct rlk_call *call, const struct rlk_held *held,
                              int64_t ttl_us, struct rlk_verified *out);
/* Renews each lease that its owner and token still hold, in one transaction. It waits for no row:
 * leases whose rows other transactions have locked are left out. The leases begin at *now_us. */
enum rlk_class rlk_step_renew_all(rowlock_db *db, struct rlk_call *call, struct rlk_lease *leases,
                                  size_t count, int64_t *now_us);
/* Removes the grant, and wakes the first in the queue. May be RLK_INSIDE. */
enum rlk_class rlk_step_release(rowlock_db *db, struct rlk_call *call, const struct rlk_held *held,
                                bool *found);
enum rlk_class rlk_step_note(rowlock_db *db, struct rlk_call *call, const struct rlk_held *held,
                             const char *text, bool *changed);
enum rlk_class rlk_step_verify(rowlock_db *db, struct rlk_call *call, const struct rlk_held *held,
                               struct rlk_verified *out);
/* Only with RLK_INSIDE. It takes a shared lock on the counter of the name, and reads its token.
 * Until the caller's transaction ends, no grant and no break of that name can commit. Renewals and
 * releases can, since they do not touch the counter. *stands: the token is the grant's, or the
 * grant is not exclusive and its row is there. It waits for a transaction that is changing the
 * counter. */
enum rlk_class rlk_step_guard(rowlock_db *db, struct rlk_call *call, const struct rlk_held *held,
                              bool *found, int64_t *token, bool *stands);
/* *accepted: the resource has not seen a newer token, and has seen this one now. Its row stays
 * locked until the transaction ends. */
enum rlk_class rlk_step_fence(rowlock_db *db, struct rlk_call *call, const char *resource,
                              int64_t token, bool *accepted);

/* Takes a ticket for this request, or renews the one that it has. The ticket's lease lasts lease_us
 * from now. From then on a wake-up for this request ends await(). */
enum rlk_class rlk_step_enqueue(rowlock_db *db, struct rlk_call *call,
                                const struct rlk_request *request, int64_t lease_us,
                                struct rlk_position *out);
/* Leaves the queue without a grant. If we were the first, it wakes the next one. */
enum rlk_class rlk_step_leave(rowlock_db *db, struct rlk_call *call,
                              const struct rlk_request *request, bool *found);
/* *found: this waiter waits for itself, through other waiters, and has the newest ticket among
 * them. words describes the cycle then. */
enum rlk_class rlk_step_cycle(rowlock_db *db, struct rlk_call *call,
                              const struct rlk_request *request, bool *found, char *words,
                              size_t cap);
/* At most limit waiters after this one, in the order of name, ticket and request. name NULL: of all
 * names. All rows are read before the first callback. A callback that returns non-zero stops. */
enum rlk_class rlk_step_waiters(rowlock_db *db, struct rlk_call *call, const char *name,
                                const struct rlk_waiter *after, int limit, rlk_waiter_fn *each,
                                void *context);

/* At most limit rows after (after_name, after_slot) in key order. name NULL: of all names. All rows
 * are read before the first callback. A callback that returns non-zero stops. */
enum rlk_class rlk_step_list(rowlock_db *db, struct rlk_call *call, const char *name,
                             const char *after_name, int64_t after_slot, int limit,
                             rlk_row_fn *each, void *context);
/* *found: the name has a counter. Only then token and granted_us are set. */
enum rlk_class rlk_step_last(rowlock_db *db, struct rlk_call *call, const char *name, bool *found,
                             int64_t *token, int64_t *granted_us);
enum rlk_class rlk_step_measure(rowlock_db *db, struct rlk_call *call, rowlock_figures *out);
/* At most limit names behind this one, in the order of their bytes. All rows are read before the
 * first callback. A callback that returns non-zero stops. */
enum rlk_class rlk_step_measure_names(rowlock_db *db, struct rlk_call *call, const char *glob,
                                      const char *after, int limit, rlk_name_fn *each,
                                      void *context);
/* Removes one batch of expired rows. A dry run only finds them. It skips rows that others have
 * locked. each gets the rows that were removed. NULL: not needed, which is cheaper. A batch
 * is one transaction. */
enum rlk_class rlk_step_sweep(rowlock_db *db, struct rlk_call *call, struct rlk_sweep *sweep,
                              rlk_row_fn *each, void *context);
enum rlk_class rlk_step_fold(rowlock_db *db, struct rlk_call *call, struct rlk_fold *fold);
/* Removes at most batch expired tickets. It skips those that others have locked. */
enum rlk_class rlk_step_sweep_waiters(rowlock_db *db, struct rlk_call *call, int batch,
                                      int64_t *removed);
/* Removes the grant with this token, adds 1 to the counter, and wakes the first in the queue, in
 * one transaction. */
enum rlk_class rlk_step_break(rowlock_db *db, struct rlk_call *call, const char *name,
                              int64_t token, bool *found, struct rlk_row *out);
/* Sets the floor and all counters to the highest of them plus by, in one transaction. */
enum rlk_class rlk_step_raise(rowlock_db *db, struct rlk_call *call, int64_t by, int64_t *floor);

#endif
