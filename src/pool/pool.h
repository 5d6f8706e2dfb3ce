/* SPDX-License-Identifier: MIT
 * A pool: a few connections, through which many handles send their steps.
 *
 * It stands above the core: a handle of the pool has a port (core/port.h) in place of a connection.
 * What must be done alone takes a connection of the pool for itself. A step that many handles may
 * do at once (rlk_many_of()) goes as it is if a connection is idle. On the last idle one it goes as
 * NAME_many if it may wait for a row, since NAME_many skips locked rows. Otherwise it waits, and
 * goes together with others of its kind that wait when a connection becomes free. So nothing waits
 * for a window of time.
 *
 * pool->mutex guards the pool, its connections' state, the places in line, and the waiters. It is
 * not locked while a statement is in flight. */
#ifndef RLK_POOL_H
#define RLK_POOL_H

#include <stdatomic.h>

#include "base/thread.h"
#include "core/many.h"
#include "core/port.h"

#define RLK_POOL_TAG 0x726C706Cu /* "rlpl" */

/* ---- a step under way */

/* Where wake-ups reach a connection. */
enum { RLK_ADDRESS = 64 };

enum {
    RLK_PARCEL_VALUES = RLK_MANY_COLUMNS,
    /* Texts of a step's values: at most five of RLK_TEXT_MAX, and an address. */
    RLK_PARCEL_TEXTS = 6 * (RLK_TEXT_MAX + 1)
};

enum rlk_parcel_state {
    /* Nothing is under way. */
    RLK_PARCEL_FREE,
    /* In line. */
    RLK_PARCEL_WAITS,
    /* A connection has it. */
    RLK_PARCEL_TAKEN,
    /* The answer is there, or the connection. */
    RLK_PARCEL_ANSWERED,
    /* Its handle has given up. The thread that answers frees it. */
    RLK_PARCEL_ABANDONED
};

/* One step of one handle. It has copies of all values, since its handle may give up before the
 * answer comes. */
struct rlk_parcel {
    struct rlk_parcel *next;
    atomic_int state;
    /* Posted with RLK_PARCEL_ANSWERED. */
    struct rlk_turn answered;
    enum rlk_step step;
    /* The step for many handles that does it. NONE: it goes alone. */
    enum rlk_step kind;
    /* The place in line: a lower number came earlier. */
    uint64_t number;
    /* How long its handle waits. */
    int64_t deadline_us;
    /* It may be sent until then, also after its handle has given up. Not earlier than the
     * deadline. */
    int64_t worth_until_us;
    /* It was sent before, and may have been done then. */
    bool again;
    /* As in rlk_ask: the name whose first waiter may get its turn by this step. */
    bool wakes;
    rowlock_value given[RLK_PARCEL_VALUES];
    size_t given_count;
    char texts[RLK_PARCEL_TEXTS];
    /* The answer. */
    enum rlk_class class;
    struct rlk_call call;
    int64_t changed;
    bool counted, has_row;
    struct rlk_copies row;
    /* Without a step: the connection of its own. */
    struct rlk_pooled *got;
};

/* ---- the pool */

/* A connection of the pool. Between its uses no transaction is open on it. */
struct rlk_pooled {
    struct rowlock_pool *pool;
    /* Its reconnecting, and the check of the tables, are those of any handle. */
    rowlock_db *db;
    bool busy;
    /* The pool's losses when it connected. */
    unsigned losses;
    /* A thread, which sends what waited in line. */
    pthread_t thread;
    bool has_thread;
    /* Posted when there is work, or the thread must end. */
    struct rlk_turn go;
    struct rlk_parcel *work;
    bool stop;
};

/* A handle that waits for a lock. Those of one bucket are in the order of their tickets. */
struct rlk_pool_waiter {
    struct rlk_pool_waiter *next, *previous;
    char name[RLK_TEXT_MAX + 1];
    /* 0: it does not wait. */
    int64_t request;
    int64_t ticket;
    /* Its ticket has the listener's address. */
    bool hears;
    bool woken;
    /* It has become the first of this pool in its queue. */
    bool promoted;
    struct rlk_waiting *waiting;
};

enum { RLK_POOL_BUCKETS = 1024 };
struct rowlock_pool {
    uint32_t tag;
    pid_t pid;
    const struct rlk_driver *real;
    struct rlk_texts texts;
    bool takes_writes;
    size_t batch;

    pthread_mutex_t mutex;
    /* The handles, and the caller that opened the pool. The pool ends with the last of them. */
    size_t users;
    bool closed;
    struct rlk_pooled *connections;
    size_t count;
    /* Connections with a transaction, and others that are busy. At most `most` of the others: a
     * local database takes one writer at a time. */
    size_t framed, busy, most;
    /* What may be sent later was not answered. */
    bool away;
    /* How often a connection was lost that had connected after the loss before. */
    atomic_uint losses;
    /* The parcels in line, by their kind. */
    struct {
        struct rlk_parcel *first, **end;
    } line[RLK_STEP_COUNT];
    uint64_t numbers;
    /* The connection that hears wake-ups, and its address. "": none reach it. */
    struct rlk_pooled listener;
    char address[RLK_ADDRESS];
    bool ear_begun;
    /* Handles that wait, and those of them that look: the first of the pool in each queue, and
     * unfair ones. */
    size_t waiters, lookers;
    struct {
        struct rlk_pool_waiter *first, *last;
    } waiter[RLK_POOL_BUCKETS];
};

/* line.c: which handle gets a connection next. */
/* An idle connection. NULL: there is none. */
struct rlk_pooled *rlk_line_idle(rowlock_pool *pool);
bool rlk_line_has_idle(rowlock_pool *pool);
/* The connection is free again: its next work goes to its thread. */
void rlk_line_give(rowlock_pool *pool, struct rlk_pooled *conn);
/* A connection for one caller. Waits in line until the deadline. NULL: none became free. */
struct rlk_pooled *rlk_line_wait(rowlock_pool *pool, int64_t deadline_us);
/* A transaction takes a connection. False: the last one must stay free for steps. */
bool rlk_line_frame(rowlock_pool *pool);
void rlk_line_unframe(rowlock_pool *pool);
/* Puts a parcel in line, and waits for its answer until its deadline. */
enum rlk_class rlk_line_send(rowlock_pool *pool, struct rlk_parcel *parcel, bool *abandoned);
/* The same in two halves. The second returns false while there is no answer before the deadline. */
void rlk_line_enter(rowlock_pool *pool, struct rlk_parcel *parcel);
bool rlk_line_take(rowlock_pool *pool, struct rlk_parcel *parcel, enum rlk_class *class,
                   bool *abandoned);
bool rlk_line_start_threads(rowlock_pool *pool);
void rlk_line_stop_threads(rowlock_pool *pool);

/* batch.c: the parcels of one kind in one statement. Fills in their answers. */
void rlk_batch_run(struct rlk_pooled *conn, struct rlk_parcel *first);
/* Sends what is asked on a connection of the pool. It connects first, if that is needed. */
enum rlk_class rlk_pool_run(struct rlk_pooled *conn, struct rlk_call *call, struct rlk_ask *ask);
/* Its connection was lost. That may be a failover, and the others may lead to the old primary. So
 * each of them connects again before its next use. */
void rlk_pool_lose(struct rlk_pooled *conn);

/* parcel.c */
struct rlk_parcel *rlk_parcel_new(void);
void rlk_parcel_free(struct rlk_parcel *parcel);
/* Copies a step into the parcel. kind: the step for many that does it; NONE: it goes alone. wakeup:
 * the value that the driver gives; NULL: none. False: its values have no room. */
bool rlk_parcel_fill(struct rlk_parcel *parcel, const struct rlk_call *call,
                     const struct rlk_ask *ask, enum rlk_step kind, const char *wakeup);
/* Copies a row of the answer. An rlk_cells_fn. */
int rlk_parcel_take_row(void *out, const rowlock_value *cells, size_t count);
/* Gives the answer to the step that the parcel was filled from. */
enum rlk_class rlk_parcel_answer(struct rlk_parcel *parcel, struct rlk_call *call,
                                 struct rlk_ask *ask);

/* waiters.c: all with pool->mutex locked, except the last two. */
void rlk_waiter_begin(rowlock_pool *pool, struct rlk_pool_waiter *w,
                      const struct rlk_request *request, bool hears);
void rlk_waiter_end(rowlock_pool *pool, struct rlk_pool_waiter *w);
/* Wakes the first waiter of a name, unless the listener wakes it. */
void rlk_waiter_wake(rowlock_pool *pool, const char *name);
void rlk_waiter_wake_request(rowlock_pool *pool, int64_t request);
void rlk_waiter_wake_all(rowlock_pool *pool);
enum rlk_wakeup rlk_waiter_wait(rowlock_pool *pool, struct rlk_pool_waiter *w, int64_t until_us);

/* listener.c */
/* The address for a ticket. */
void rlk_listener_address(rowlock_pool *pool, char out[RLK_ADDRESS]);
void rlk_listener_close(rowlock_pool *pool);

/* pool_port.c */
extern const struct rlk_port rlk_pool_port;

/* pool.c */
/* A pool over these handles, and with the texts of the first. The last is for its listener. It owns
 * them from then on. NULL: out of memory, or no thread can be started; it owns nothing then. */
rowlock_pool *rlk_pool_new(rowlock_db *const *dbs, size_t count, size_t batch);
/* A handle begins to use the pool. False: the pool is closed, or of another process. again: it is
 * the second handle of one that uses it, so it may be closed. */
bool rlk_pool_join(rowlock_pool *pool, bool again);
/* True: that was the last user. The caller closes the handles of its connections and its
 * listener, then frees the pool. */
bool rlk_pool_leave(rowlock_pool *pool);
void rlk_pool_free(rowlock_pool *pool);

#endif
