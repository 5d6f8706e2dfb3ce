/* SPDX-License-Identifier: MIT
 *
 * What is asked of the database. A step (steps.h) is a value: struct rlk_ask has the step, its
 * values, where its answer goes, and when it is sent again. A function rlk_step_NAME() makes an ask
 * that step. rlk_ask() (ask.h) sends it. It is the same for all databases. */
#ifndef RLK_CORE_H
#define RLK_CORE_H

#include "core/db.h"

#include <string.h>

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
    char name[RLK_TEXT_MAX + 1], owner[RLK_TEXT_MAX + 1], host[RLK_TEXT_MAX + 1];
    char program[RLK_TEXT_MAX + 1], note[RLK_TEXT_MAX + 1];
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
    /* The third cell of the answer. Only the driver knows its meaning. */
    int64_t third;
    /* A wake-up can reach us on this connection. */
    bool wakeable;
};

/* A waiter in the queue. */
struct rlk_waiter {
    char name[RLK_TEXT_MAX + 1], owner[RLK_TEXT_MAX + 1], host[RLK_TEXT_MAX + 1];
    char program[RLK_TEXT_MAX + 1], note[RLK_TEXT_MAX + 1];
    int permits;
    int64_t ticket, request, since_us, expires_us, pid, now_us;
};

/* The grant after a renewal, or as a read has found it. */
struct rlk_verified {
    /* Only rlk_verify() sets it. */
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
    /* One more loss may undo it: only as many of several databases have it as are needed. */
    bool at_risk;
};

/* Where a cell of an answer goes, in a struct. NULL becomes 0 or "". size 0: it goes nowhere. There
 * is one for each column of the step. */
struct rlk_field {
    uint16_t offset, size;
    bool is_text;
};
/* Nothing is read. cppcheck would take 0 in place of 1 for a null pointer that is. */
#define RLK_FIELD(type, member)                                    \
    {                                                              \
        offsetof(type, member), sizeof((type *)1)->member,         \
            _Generic(((type *)1)->member, char * : 1, default : 0) \
    }

/* The rows of an answer. They are read before the first one is used: a callback that is slow must
 * not keep a transaction open. Zeros are an empty page. */
struct rlk_items {
    /* The size of one item. */
    size_t size;
    const struct rlk_field *fields;
    char *items;
    size_t count, room;
    bool no_memory;
};
static inline void *rlk_item(const struct rlk_items *items, size_t i)
{
    return items->items + i * items->size;
}

/* What the reader of a row returns besides 0 and numbers below 0: see rlk_cells_fn. UNDECIDED: a
 * cheap step was not enough. */
enum { RLK_ENOUGH = 1, RLK_UNDECIDED };

/* What is asked of the database, and how. */
struct rlk_ask {
    /* A step, with its values in `in`, in the order of its list of parameters. With `query` or
     * `run` the step only says what it is like. NONE, and nothing else: the tables are checked. */
    enum rlk_step step;
    /* The name of a lock whose first waiter may get its turn by this step. NULL: none. */
    const char *wakes;
    /* Called with each row, after its shape was checked. NULL: the rows are not needed. */
    rlk_cells_fn *read;
    void *out;
    /* In place of `read`: where its cells go in the struct `out`. It has them if rows is not 0. */
    const struct rlk_field *fields;
    /* Called before each attempt: forgets the rows that came before. NULL: nothing is to forget. */
    void (*restart)(void *out);
    /* A cheaper step, sent before. This one follows only if that one answers no row, or UNDECIDED.
     * NULL: none. */
    struct rlk_ask *first;
    /* It is such a cheaper step: another may follow. */
    bool cheap;
    /* In place of a step, one of these: a statement about the caller's own tables, a text of
     * several statements, the facts of the server, a begin or end of a transaction. */
    struct rlk_query *query;
    const char *script;
    struct rlk_facts *facts;
    enum rlk_frame frame;
    /* Several statements that are sent again together. */
    enum rlk_class (*run)(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask);

    /* Must it be a part of an open transaction? Inside one nothing is sent again. */
    enum rlk_where where;
    /* It ends then: nothing is sent and waited for later. 0: no such end. */
    int64_t not_after_us;
    /* A pool may send it until then, also after the caller has given up (driver.h). */
    int64_t worth_until_us;
    /* How long to retry after lost races. 0: the time limit of a statement. */
    int64_t contention_us;
    /* Set for a waiter: it reconnects until then, even if reconnect_ms ends earlier, and
     * rowlock_cancel() ends its pauses. The result is CANCELLED then. */
    int64_t patient_until_us;
    /* After a lost answer the caller may do the same call again: it finds out what the first one
     * did, or does the same again. */
    bool retryable_if_lost;
    /* It is sent for a quorum, so its members may grant locks. */
    bool of_quorum;
    /* A try whose answer was lost may meet its own grant in flight. It is sent again then. */
    const struct rlk_grant *own;

    /* out */
    /* What follows is about the last step that was sent. */
    uint64_t rows;
    int64_t changed;
    bool undecided;
    /* A row did not have the shape of the step's answer. */
    bool misfit;
    /* The answer of a step that changes one thing. */
    bool answer;
    /* It was a part of an open transaction. */
    bool inside;
    /* Gave up after lost races. Nothing was changed. */
    bool contended;
    /* An earlier attempt may have been carried out. */
    bool was_uncertain;
    /* It was answered, and a part of it may arrive later all the same. */
    bool may_arrive;
    /* The local clock just before the last attempt. */
    int64_t sent_us;
    /* While the server is away: an attempt ends then. 0: it is not away. */
    int64_t away_until_us;

    /* The values of the step. They are last, so that rlk_ask_init() need not clear them. */
    rowlock_value in[RLK_MARKERS];
};

/* For a try, which is fast where a statement costs no round trip. Others write {…}. */
static inline void rlk_ask_init(struct rlk_ask *ask)
{
    memset(ask, 0, offsetof(struct rlk_ask, in));
}

/* send.c */
/* Sends the statements of an ask, on a connection that is ready. */
enum rlk_class rlk_send(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask);
/* The parts of one attempt: before it, each row of its answer, and its end. counted: it has no
 * columns, so ask->changed is its whole answer. */
void rlk_query_begin(rowlock_db *db, struct rlk_ask *ask);
int rlk_query_row(void *context, const rowlock_value *cells, size_t count);
enum rlk_class rlk_query_end(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask,
                             enum rlk_class class, bool counted);
/* Fills in a struct by the cells of a row. */
void rlk_put_cells(void *out, const struct rlk_field *fields, const rowlock_value *cells,
                   size_t count);
/* The step needs no other to follow. */
static inline bool rlk_has_decided(const struct rlk_ask *ask)
{
    return ask->rows > 0 && !ask->undecided;
}
/* What all steps of an ask came to, after they were done. */
enum rlk_class rlk_judge(struct rlk_call *call, const struct rlk_ask *ask, bool decided);

/* A transaction of our own around several statements. If call->where is not RLK_OUTSIDE or one of
 * ours is open, none begins. *begun is for rlk_end(), which commits if the class is RLK_DONE, else
 * rolls back, and returns what the whole was. */
enum rlk_class rlk_begin(rowlock_db *db, struct rlk_call *call, bool *begun);
enum rlk_class rlk_end(rowlock_db *db, struct rlk_call *call, bool begun, enum rlk_class class);

/* Has the step changed a thing? It changes one, or finds nothing to change. */
bool rlk_has_changed(const struct rlk_ask *ask);
/* Tells the driver what became of a request, so that it can wake the next in the queue. Returns
 * whether a wake-up can reach the request of RLK_ENQUEUED. */
bool rlk_tell(rowlock_db *db, enum rlk_where where, enum rlk_news news,
              const struct rlk_request *request, int64_t number);

/* items.c: an ask whose rows become items. */
void rlk_read_items(struct rlk_ask *ask, struct rlk_items *items, size_t size,
                    const struct rlk_field *fields);
/* Sends it. ENOMEM, or what rlk_ask() returns. */
int rlk_ask_items(rowlock_db *db, struct rlk_ask *ask, struct rlk_items *items);

enum rlk_class rlk_step_meta(rowlock_db *db, struct rlk_call *call, struct rlk_meta *out);
/* The facts of the step and those of the driver. */
void rlk_step_facts(struct rlk_ask *ask, struct rlk_facts *out);

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
struct rlk_trying {
    const struct rlk_request *request;
    struct rlk_grant *grant;
    struct rlk_ask first[2];
};
void rlk_step_acquire(const rowlock_db *db, struct rlk_ask *ask, struct rlk_trying *t);
/* All of them or none, in one transaction. The requests are in the order of their names. If they
 * are granted, grants has all rows. Otherwise `which` is the first lock that was in the way. Where
 * the step is one statement, grants[which] is IN_FLIGHT then, since the answer does not say by
 * whom. */
struct rlk_trying_all {
    const struct rlk_request *requests;
    size_t count;
    struct rlk_grant *grants;
    size_t granted, refused, which;
};
void rlk_step_acquire_all(struct rlk_ask *ask, struct rlk_trying_all *t);
/* Removes the grant of this request, if there is one. */
void rlk_step_withdraw(struct rlk_ask *ask, const struct rlk_request *request);

/* ttl_us 0: the ttl that the grant has. expires_us - now_us is that ttl then. */
void rlk_step_renew(struct rlk_ask *ask, const struct rlk_held *held, int64_t ttl_us,
                    struct rlk_verified *out);
/* Renews each lease that its owner and token still hold, in one transaction. It waits for no row:
 * leases whose rows other transactions have locked are left out. The leases begin at now_us. */
struct rlk_renewing {
    struct rlk_lease *leases;
    size_t count;
    int64_t now_us;
};
void rlk_step_renew_all(struct rlk_ask *ask, struct rlk_renewing *r);
/* Removes the grant, and wakes the first in the queue. May be RLK_INSIDE, which ask->where says. */
void rlk_step_release(struct rlk_ask *ask, const struct rlk_held *held);
void rlk_step_note(struct rlk_ask *ask, const struct rlk_held *held, const char *text);
void rlk_step_verify(struct rlk_ask *ask, const struct rlk_held *held, struct rlk_verified *out);
/* Only with RLK_INSIDE. It takes a shared lock on the counter of the name, and reads its token.
 * Until the caller's transaction ends, no grant and no break of that name can commit. Renewals and
 * releases can, since they do not touch the counter. It waits for a transaction that is changing
 * the counter. */
struct rlk_guarded {
    bool found;
    /* The token is the grant's, or the grant is not exclusive and its row is there. */
    bool stands;
    int64_t token;
};
void rlk_step_guard(struct rlk_ask *ask, const struct rlk_held *held, struct rlk_guarded *out);
/* Changed: the resource has not seen a newer token, and has seen this one now. Its row stays locked
 * until the transaction ends. */
void rlk_step_fence(struct rlk_ask *ask, const char *resource, int64_t token);

/* Takes a ticket for this request, or renews the one that it has. The ticket's lease lasts lease_us
 * from now. From then on a wake-up for this request ends await(), if it is told of it. */
void rlk_step_enqueue(struct rlk_ask *ask, const struct rlk_request *request, int64_t lease_us,
                      struct rlk_position *out);
/* After it: may a wake-up reach this connection? */
void rlk_tell_enqueued(rowlock_db *db, const struct rlk_request *request, struct rlk_position *out);
/* Leaves the queue without a grant. If we were the first, it wakes the next one. */
void rlk_step_leave(struct rlk_ask *ask, const struct rlk_request *request);
/* A row: this waiter waits for itself, through other waiters, and has the newest ticket among them.
 * out describes the cycle then. */
enum { RLK_CYCLE = 400 };
void rlk_step_cycle(struct rlk_ask *ask, const struct rlk_request *request, char out[RLK_CYCLE]);
/* At most limit rows after this key, in key order. name NULL: of all names. */
void rlk_step_list(struct rlk_ask *ask, struct rlk_items *out, const char *name,
                   const char *after_name, int64_t after_slot, int limit);

#endif
