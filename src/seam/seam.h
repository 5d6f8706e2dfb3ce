/* SPDX-License-Identifier: MIT
 *
 * What core asks of the database: one function for each step that answers in a shape of its own.
 * Each sends one step (steps.h), looks at the shape of the answer, and decodes it, for all
 * databases alike. None tries again: that is rlk_do(). Results are filled in with RLK_DONE only. */
#ifndef RLK_SEAM_H
#define RLK_SEAM_H

#include "seam/db.h"

/* A grant by its key and the proof of ownership. */
struct rlk_held {
    const char *name;
    int64_t slot; /* 0: the exclusive grant; of all others the token */
    const char *owner;
    int64_t token;
};

/* A row of rowlock_locks as it stands, with the server's clock when it was read. Strings are always
 * terminated; what is longer than RLK_TEXT_MAX (it never is in our own rows) is cut. */
struct rlk_row {
    char name[RLK_TEXT_MAX + 1];
    char owner[RLK_TEXT_MAX + 1];
    char host[RLK_TEXT_MAX + 1];
    char program[RLK_TEXT_MAX + 1];
    char note[RLK_TEXT_MAX + 1];
    int permits; /* 0: exclusive; -1: shared; N: one of at most N */
    int64_t slot;
    int64_t token, acquired_us, expires_us, ttl_us, renewals, pid, now_us;
};

enum rlk_outcome {
    RLK_GRANTED, /* row: our grant, whose texts may be left out */
    RLK_HELD, /* row: a holder's that keeps us out */
    /* no row: nobody who would keep us out holds it, but others are before us in the queue */
    RLK_BEHIND,
    RLK_IN_FLIGHT, /* no row: another transaction is granting or changing it at this moment */
};
struct rlk_grant {
    enum rlk_outcome outcome;
    bool behind; /* HELD or BEHIND: others are before us in the queue */
    /* HELD or BEHIND, but a transaction is changing what is in the way: it may be gone in a
     * moment, by a step that woke before our ticket was seen. */
    bool settling;
    struct rlk_row row;
};

/* Our place in the queue. */
struct rlk_position {
    int64_t ticket;
    int64_t ahead; /* live tickets before ours */
    bool wakeable; /* on this connection the driver can be woken when it is our turn */
};

/* One who stands in the queue. */
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

/* The grant as a renewal has left it, or as it is. */
struct rlk_verified {
    bool found;
    int64_t expires_us;
    int64_t lapsed_us; /* how long the lease had run out before the renewal; 0: in time */
    int64_t now_us;
};

/* One of many leases to renew. Not renewed: it is gone, or another transaction has it locked. */
struct rlk_lease {
    struct rlk_held held;
    int64_t ttl_us; /* not 0 */
    bool renewed; /* out */
};

/* One batch of a sweep: rows after (after_name, after_slot) in key order whose lease has been over
 * for older_us. */
struct rlk_sweep {
    int64_t older_us;
    int batch;
    bool dry_run;
    const char *after_name; /* "" at the beginning */
    int64_t after_slot;
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
    const rowlock_value *in; /* as the step's list of parameters has them */
    const char *wakes; /* a lock whose queue may go on by it; NULL: none does */
    /* Given each row, whose shape was looked at; NULL: nobody wants them. Above 0 stops; below 0
     * the answer is not what it can be. */
    rlk_cells_fn *read;
    void *out;
    /* out */
    uint64_t rows;
    int64_t changed;
};
enum rlk_class rlk_send(rowlock_db *db, struct rlk_call *call, struct rlk_sending *s);

/* Run in a transaction of its own on our own connection, or as it is where one is open already. */
enum rlk_class rlk_in_transaction(rowlock_db *db, struct rlk_call *call,
                                  enum rlk_class (*run)(rowlock_db *db, struct rlk_call *call,
                                                        void *context),
                                  void *context);

enum rlk_class rlk_step_meta(rowlock_db *db, struct rlk_call *call, struct rlk_meta *out);
/* What the step and the driver know of the server. */
enum rlk_class rlk_step_facts(rowlock_db *db, struct rlk_call *call, struct rlk_facts *out);

/* Grant, unless an unexpired row of another owner stands in the way or, if the request is not
 * unfair, others are before us in the queue; a row with our number is our grant. A grant ends
 * our ticket, and if it is not exclusive wakes for the next one. A held lock writes nothing.
 * Waits for nobody: what another transaction has locked is IN_FLIGHT. With RLK_INSIDE the grant
 * is there for others when the caller's transaction commits. One round trip, two where the usual
 * answer was not enough. */
enum rlk_class rlk_step_acquire(rowlock_db *db, struct rlk_call *call,
                                const struct rlk_request *request, struct rlk_grant *out);
/* All of them or none, in one transaction; requests in the order of their names. GRANTED: out has
 * all rows. Otherwise *which is the first found in the way, and only out[*which].outcome is
 * filled in: with IN_FLIGHT, meaning no more than "not now". */
enum rlk_class rlk_step_acquire_all(rowlock_db *db, struct rlk_call *call,
                                    const struct rlk_request *requests, size_t count,
                                    struct rlk_grant *out, size_t *which);
/* Remove the grant that this request made, if it made one. */
enum rlk_class rlk_step_withdraw(rowlock_db *db, struct rlk_call *call,
                                 const struct rlk_request *request, bool *found);

/* ttl_us 0: as long as the grant was last given; expires_us - now_us says how long that is. */
enum rlk_class rlk_step_renew(rowlock_db *db, struct rlk_call *call, const struct rlk_held *held,
                              int64_t ttl_us, struct rlk_verified *out);
/* Each lease that its owner and token still hold, in one transaction. Waits for no row: what
 * another transaction has locked is left out. The leases run from *now_us on. */
enum rlk_class rlk_step_renew_all(rowlock_db *db, struct rlk_call *call, struct rlk_lease *leases,
                                  size_t count, int64_t *now_us);
/* Wakes for the first in the queue. May be RLK_INSIDE. */
enum rlk_class rlk_step_release(rowlock_db *db, struct rlk_call *call, const struct rlk_held *held,
                                bool *found);
enum rlk_class rlk_step_verify(rowlock_db *db, struct rlk_call *call, const struct rlk_held *held,
                               struct rlk_verified *out);
/* Only with RLK_INSIDE. Share-lock the name's token row and read its token. Until the caller's
 * transaction ends no grant and no break of that name can commit; renewals and releases, which
 * do not touch that row, can. *stands: the token is the grant's, or the grant is not exclusive
 * and its row is there. Waits for a transaction that changes the row at this moment. */
enum rlk_class rlk_step_guard(rowlock_db *db, struct rlk_call *call, const struct rlk_held *held,
                              bool *found, int64_t *token, bool *stands);
/* Let a resource see this token, unless it has seen a newer one; its row stays locked until the
 * transaction ends. */
enum rlk_class rlk_step_fence(rowlock_db *db, struct rlk_call *call, const char *resource,
                              int64_t token, bool *accepted);

/* Take a ticket for this request, or keep the one that it has, for another lease_us. From
 * then on await() is woken for this request. */
enum rlk_class rlk_step_enqueue(rowlock_db *db, struct rlk_call *call,
                                const struct rlk_request *request, int64_t lease_us,
                                struct rlk_position *out);
/* Leave the queue without a grant, and if we were the first wake for the next one. */
enum rlk_class rlk_step_leave(rowlock_db *db, struct rlk_call *call,
                              const struct rlk_request *request, bool *found);
/* Does the waiter with this request wait, through others, for itself, and has the newest ticket of
 * those that do? Then words says how. */
enum rlk_class rlk_step_cycle(rowlock_db *db, struct rlk_call *call,
                              const struct rlk_request *request, bool *found, char *words,
                              size_t cap);
/* At most limit waiters behind this one, in the order of name, ticket and request. The callbacks
 * of this and of the next two are called when all is read; non-zero stops. */
enum rlk_class rlk_step_waiters(rowlock_db *db, struct rlk_call *call, const char *name,
                                const struct rlk_waiter *after, int limit, rlk_waiter_fn *each,
                                void *context);

/* At most limit rows after (after_name, after_slot) in key order; name not NULL: only that
 * name's. */
enum rlk_class rlk_step_list(rowlock_db *db, struct rlk_call *call, const char *name,
                             const char *after_name, int64_t after_slot, int limit,
                             rlk_row_fn *each, void *context);
/* token and granted_us stay untouched if the name has no counter: found says which. */
enum rlk_class rlk_step_last(rowlock_db *db, struct rlk_call *call, const char *name, bool *found,
                             int64_t *token, int64_t *granted_us);
/* Remove one batch of expired rows (or only report them) and give each to the callback. On an
 * owned connection a batch is one transaction. Rows that others hold locked are passed over.
 * *seen is the number of candidates looked at: less than batch means the end was reached; last
 * gets the key of the last candidate. Several round trips where a database cannot do it in one. */
enum rlk_class rlk_step_sweep(rowlock_db *db, struct rlk_call *call, const struct rlk_sweep *sweep,
                              int *seen, struct rlk_row *last, rlk_row_fn *each, void *context);
enum rlk_class rlk_step_fold(rowlock_db *db, struct rlk_call *call, struct rlk_fold *fold);
/* Remove at most batch tickets whose leases are over; those that others hold locked are passed
 * over. */
enum rlk_class rlk_step_sweep_waiters(rowlock_db *db, struct rlk_call *call, int batch,
                                      int64_t *removed);
/* Remove the grant with this token and bump the name's token in one transaction. Wakes. */
enum rlk_class rlk_step_break(rowlock_db *db, struct rlk_call *call, const char *name,
                              int64_t token, bool *found, struct rlk_row *out);
/* Set the floor and every counter to the highest of them plus by, in one transaction. */
enum rlk_class rlk_step_raise(rowlock_db *db, struct rlk_call *call, int64_t by, int64_t *floor);

#endif
