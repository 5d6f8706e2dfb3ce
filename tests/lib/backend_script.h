/* SPDX-License-Identifier: MIT
 *
 * A database that answers what a test sets, and a clock that shows what a test sets. With them core
 * runs without a server. Checks are not here.
 *
 * A program that links this gets our rlk_driver_find() instead of the library's. rowlock_db_open()
 * with any known scheme, and the adoptions, lead here. Several threads may use it. */
#pragma once

#include "quick.h"

#include "api/api.h"
#include "lock/lock.h"
#include "core/ask.h"
#include "core/core.h"

/* The steps, which are queries, and the other operations of a driver. */
#define SCRIPT_OP_OF_STEP(id, name, parameters, rows, columns, is) OP_##id,
enum script_op {
    OP_NONE,
    RLK_STEPS(SCRIPT_OP_OF_STEP) OP_OPEN,
    OP_ADOPT,
    OP_CLOSE,
    OP_INSTALL,
    /* the frames begin here, in their order; the last one is not among the calls */
    OP_BEGIN,
    OP_COMMIT,
    OP_ROLLBACK,
    OP_SAVE,
    OP_KEEP,
    OP_UNDO,
    OP_PEEK,
    OP_COUNT
};
#undef SCRIPT_OP_OF_STEP

/* How a wait for a wake-up ends. WAKEUP_BY_ITSELF waits for script_wake(), for the descriptor, or
 * for the end of the wait. With a stopped clock these are looked at once, and then the clock jumps
 * to the end. The others answer at once. */
enum script_wakeup { WAKEUP_BY_ITSELF, WAKEUP_CAME, WAKEUP_INTERRUPTED, WAKEUP_NONE };

/* One answer. All zero is success: granted, found, in time, tables of this version, first in the
 * queue, with a wake-up that never comes. */
struct script_answer {
    enum rlk_class class;
    const char *text, *sqlstate;
    int native;
    /* how far the clock moves before the answer */
    int64_t takes_us;
    /* of acquire */
    enum rlk_outcome outcome;
    /* acquire */
    bool behind, settling;
    /* acquire: of the holder that is in the way */
    int permits;
    /* acquire_all: this one is in the way */
    size_t which;
    /* await */
    enum script_wakeup wakeup;
    /* enqueue; ticket 0: the one that the request has, or a new one */
    int64_t ticket, ahead;
    /* enqueue: this request gets no wake-ups */
    bool no_wakeup;
    /* cycle: there is one */
    bool circle;
    /* waiters: these; NULL: living waiters of one lock */
    const struct rlk_waiter *waiters;
    /* the grant, counter or row does not exist; fence: a newer token was seen */
    bool missing;
    /* guard: the shared or counted grant does not exist */
    bool fallen;
    /* a locking read: another server may commit what this one does not know yet */
    bool elsewhere;
    /* renew_all: the lease of this name is not renewed; with missing: none is */
    const char *but;
    /* of a violation */
    int constraint;
    /* a time limit ended it */
    bool late;
    /* inside: the caller's transaction is over */
    bool tx_over;
    /* 0: the highest so far, which a new grant raises */
    int64_t token;
    /* of the lease; 0: all of it */
    int64_t left_us;
    /* The lease that the row was granted for. 0: the one that is asked for. */
    int64_t ttl_us;
    /* renew */
    int64_t lapsed_us;
    /* meta; 0: the version that core wants */
    int version;
    /* meta; NULL: always the same */
    const char *identity;
    /* list, waiters, sweeps, fold: this many; queries: rows of cells */
    int rows;
    /* Queries. Without these, row_update, row_insert and row_remove change one row, table has the
     * columns of script.columns, and all others find and change nothing. */
    /* rows of width cells each; see ROWS */
    const rowlock_value *cells;
    size_t width;
    int64_t changed;
    /* answers instead, for any class */
    void (*give)(struct rlk_query *query);
};

/* A column in the answer of the step table. */
struct script_column {
    const char *name, *category;
    int64_t most;
    bool may_be_null;
    /* NULL: "x" and "%" */
    const char *wire, *unpack, *value, *match, *show;
    const char *uniques;
};

/* A query as it was sent. Long ones are cut. Texts among the values are the caller's. */
struct script_query {
    char sql[4000];
    rowlock_value values[16];
};

/* A wait for a wake-up: when it began, its latest end, and how it ended. */
struct script_wait {
    int64_t from_us, until_us;
    enum rlk_wakeup wakeup;
};

#define ANSWER(...) ((struct script_answer){__VA_ARGS__})
/* ANSWER(ROWS(2, rowlock_int(1), rowlock_int(7))): one row of two cells. The cells live as long as
 * the block. */
#define ROWS(n, ...)                                             \
    .width = (n), .cells = (const rowlock_value[]){__VA_ARGS__}, \
    .rows = (int)(sizeof((const rowlock_value[]){__VA_ARGS__}) / sizeof(rowlock_value) / (n))
#define FAILS(what) ((struct script_answer){.class = (what), .text = "the server's own words"})

extern struct script {
    /* a new connection says that its server takes writes */
    bool takes_writes;
    /* ahead of the real clock; frozen: of the clock's start */
    int64_t ahead_us;
    bool frozen;
    /* a transaction of the caller's is open */
    bool inside;
    /* called before each answer, in the thread that asks; may be NULL */
    void (*hook)(enum script_op op);
    /* the number of the call since the reset that fails, also with an answer queued; 0: none */
    int fail_at;
    enum rlk_class fail_as;
    /* of the caller's table, up to one without a name; NULL: id, price, note, version */
    const struct script_column *columns;

    /* What the last calls asked. */
    /* of acquire, and the first of each acquire_all, in the order of the calls */
    int64_t requests[512];
    /* when each was asked */
    int64_t acquired_us[512];
    int request_count;
    /* of acquire; its strings are the caller's */
    struct rlk_request request;
    /* of acquire_all: "a b c" */
    char names[200];
    /* of enqueue, leave, await and cycle */
    struct rlk_request queued;
    /* the lock's name, of the ticket that was taken or given back last */
    char queue_name[RLK_TEXT_MAX + 1];
    /* the last leave may be sent after its caller has given up */
    bool leaves_later;
    /* when tickets were taken or kept */
    int64_t tickets_us[512];
    int ticket_count;
    int64_t ticket_lease_us;
    struct script_wait waits[512];
    int wait_count;
    struct rlk_held held;
    /* of all calls about a grant, in their order */
    int64_t slots[64];
    int slot_count;
    int64_t renew_ttl_us;
    int64_t deadline_us;
    int sweep_batch;
    /* the request */
    int64_t withdrawn;
    /* of renew_all, in the order of the calls */
    int lease_counts[64];
    int lease_call_count;
    /* of its first lease */
    int64_t lease_token;
    char lease_owner[RLK_TEXT_MAX + 1];
    enum rlk_where where;
    bool closed_in_child;
    /* threads of ours that used a connection */
    int threads_entered, threads_left;
    /* list, waiters, sweep: after this name */
    char last_after[RLK_TEXT_MAX + 1];
    /* waiters: and after this ticket */
    int64_t last_ticket;
} script;

/* Forgets all answers and calls. Restores the clock and memory. */
void script_reset(void);

/* script_next: the next call of op gets this answer, after those queued before. script_always:
 * every call of op for which none is queued. */
void script_next(enum script_op op, struct script_answer answer);
void script_always(enum script_op op, struct script_answer answer);

/* "open meta acquire": the calls since the last time, without close. Valid until the next call. */
const char *script_calls(void);
/* how many calls of op since the reset */
int script_count(enum script_op op);
/* 0: the last one, 1: the one before it, … */
const struct script_query *script_query(int back);
/* is a transaction of ours open? */
bool script_in_tx(void);

/* Uses a dialect and its packing: "postgres" (the default), "mysql" or "sqlite". script_dialect:
 * until the next reset. script_home: also after resets. Steps about locks work only with
 * "postgres". */
void script_dialect(const char *name);
void script_home(const char *name);

/* Stops the clock. Only takes_us moves it. Real pauses would never end. */
void script_freeze(void);

/* Stops the clock. A poll() of this thread does not sleep, but moves the clock. */
void script_jump(void);

/* Wakes the first waiter. It gets no wake-up if it has no ticket yet, or took its ticket on an
 * earlier connection. Returns whether it was woken. */
bool script_wake(void);

/* Set the fields above while another thread may read them. */
void script_pass_ms(int64_t ms);
/* How many pauses have begun. A long one begins again and again. */
int script_pauses(void);
void script_hook(void (*hook)(enum script_op op));
/* in the nth call of renew_all, from 0; -1: there was none */
int script_leases(int nth);

/* Opens; a failure ends the program. The statement deadline and reconnecting take a moment each. */
rowlock_db *script_open(const rowlock_db_options *options);
rowlock_db *script_adopt(void);

enum { SCRIPT_MOMENT_MS = 60 };
