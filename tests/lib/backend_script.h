/* SPDX-License-Identifier: MIT
 *
 * A database that answers what a test tells it to, and a clock that shows what a test sets: core as
 * it is, without a server. What is checked is not here.  A program that uses this gets our
 * rlk_backend_find() in the place of the library's, so that rowlock_db_open() and the adoptions,
 * with any URL that has a known scheme, lead here. Several threads may ask it.
 */
#ifndef BACKEND_SCRIPT_H
#define BACKEND_SCRIPT_H

#include "public.h"

#include "db/db.h"
#include "lock/lock.h"
#include "seam/resend.h"
#include "seam/seam.h"

/* The steps, which are queries, and what else a driver is asked. */
#define SCRIPT_OP_OF_STEP(id, name, parameters, rows, columns, is) OP_##id,
enum script_op {
    OP_NONE,
    RLK_STEPS(SCRIPT_OP_OF_STEP) OP_OPEN,
    OP_ADOPT,
    OP_CLOSE,
    OP_INSTALL,
    OP_BEGIN, /* from here on frames, in their order; the last one is not among the calls */
    OP_COMMIT,
    OP_ROLLBACK,
    OP_SAVE,
    OP_KEEP,
    OP_UNDO,
    OP_PEEK,
    OP_COUNT
};
#undef SCRIPT_OP_OF_STEP

/* How a wait for a wakeup ends. Until the end of the wait nobody wakes, or script_wake() is called, or the
 * descriptor to be woken by is readable: with the clock stopped these are looked at once, and the clock then
 * goes on to the end. The others are answered at once. */
enum script_wakeup { WAKEUP_BY_ITSELF, WAKEUP_CAME, WAKEUP_INTERRUPTED, WAKEUP_NONE };

/* One answer. All zero is success: granted, found, in time, our tables of this version, first in line, with a
 * wakeup that nobody wakes. */
struct script_answer {
    enum rlk_class class;
    const char *text, *sqlstate;
    int native;
    int64_t takes_us; /* the clock goes on by so much before the answer is there */
    enum rlk_outcome outcome; /* of acquire */
    bool behind, settling; /* acquire */
    int permits; /* acquire: of the holder that is in the way */
    size_t which; /* acquire_all: that one is in the way */
    enum script_wakeup wakeup; /* await */
    int64_t ticket, ahead; /* enqueue; ticket 0: the one that the request has, or a new one */
    bool no_wakeup; /* enqueue: nobody will wake here */
    bool circle; /* cycle: there is one */
    const struct rlk_waiter
        *waiters; /* waiters: these; NULL: living ones in the line of one lock */
    bool missing; /* no such grant, counter or row; fence: a newer token was seen */
    bool fallen; /* guard: the shared or counted grant is not there */
    const char *but; /* renew_all: the lease of this name is not renewed; missing: none is */
    int constraint; /* of a violation */
    bool late; /* a time limit has ended it */
    bool tx_over; /* inside: the caller's transaction is over */
    int64_t token; /* 0: the highest so far, which a new grant raises */
    int64_t left_us; /* of the lease; 0: all of it */
    int64_t lapsed_us; /* renew */
    int version; /* meta; 0: the one that core wants */
    const char *identity; /* meta; NULL: always the same */
    int rows; /* list, waiters, sweeps, fold: this many; queries: of cells */
    /* Queries. Without these one of row_update, row_insert, row_remove is applied to one row, table has the
     * columns in script.columns, and all others find and change nothing. */
    const rowlock_value *cells; /* rows of so many; see ROWS */
    size_t width;
    int64_t changed;
    void (*give)(struct rlk_query *query); /* answers instead, whatever the class then is */
};

/* What table says of a column. */
struct script_column {
    const char *name, *category;
    int64_t most;
    bool may_be_null;
    const char *wire, *unpack, *value, *match, *show; /* NULL: "x" and "%" */
    const char *uniques;
};

/* A query as it was sent, cut where it is long. */
enum { SCRIPT_VALUES = 16, SCRIPT_VALUE_MAX = 400, SCRIPT_SQL_MAX = 4000 };
struct script_query {
    enum script_op op;
    uint64_t id;
    char sql[SCRIPT_SQL_MAX];
    size_t count;
    rowlock_value values[SCRIPT_VALUES];
    char texts[SCRIPT_VALUES][SCRIPT_VALUE_MAX];
};

/* A wait for a wakeup: when it began, how long it would have been at most, and how it ended. */
struct script_wait {
    int64_t from_us, until_us;
    enum rlk_wakeup wakeup;
};

#define ANSWER(...) ((struct script_answer){__VA_ARGS__})
/* ANSWER(ROWS(2, rowlock_int(1), rowlock_int(7))): one row of two cells, which live as long as the block in which this
 * is written. */
#define ROWS(n, ...)                                             \
    .width = (n), .cells = (const rowlock_value[]){__VA_ARGS__}, \
    .rows = (int)(sizeof((const rowlock_value[]){__VA_ARGS__}) / sizeof(rowlock_value) / (n))
#define FAILS(what) ((struct script_answer){.class = (what), .text = "the server's own words"})

extern struct script {
    bool several; /* the URL names several servers */
    int64_t ahead_us; /* of the real clock, or, frozen, of its start */
    bool frozen;
    bool inside; /* a transaction of the caller's is open: what may join it does */
    void (*hook)(enum script_op op); /* called before each answer, by who asks; may be NULL */
    int fail_at; /* the so-maniest call since the reset fails, whatever was queued; 0: none */
    enum rlk_class fail_as;
    const struct script_column
        *columns; /* of the caller's table, until one without a name; NULL: id,
                                            price, note, version */

    /* What the last calls asked. */
    int64_t requests[512]; /* of acquire, and acquire_all's first, in the order of the calls */
    int64_t acquired_us[512]; /* when that was asked */
    int request_count;
    struct rlk_request request; /* of acquire; its strings are the caller's */
    char names[200]; /* of acquire_all: "a b c" */
    struct rlk_request in_line; /* of enqueue, leave, await and cycle */
    char line[RLK_TEXT_MAX + 1]; /* of the last ticket that was taken or left, the lock's name */
    int64_t tickets_us[512]; /* when a ticket was taken or kept */
    int ticket_count;
    int64_t ticket_lease_us;
    struct script_wait waits[512];
    int wait_count;
    struct rlk_held held;
    int64_t slots[64]; /* of all calls that speak of a grant, in their order */
    int slot_count;
    int64_t broken; /* the token */
    int64_t renew_ttl_us;
    int64_t deadline_us;
    struct rlk_sweep sweep;
    struct rlk_fold fold;
    int64_t withdrawn; /* the request */
    int lease_counts[64]; /* of renew_all, in the order of the calls */
    int lease_call_count;
    int64_t lease_token, lease_slot; /* of its first lease */
    enum rlk_where where;
    bool closed_in_child;
    int threads_entered, threads_left; /* of ours, that used a connection */
    char last_after[RLK_TEXT_MAX + 1]; /* list, waiters, sweep: after which name */
    int64_t last_ticket; /* waiters: and which ticket */
} script;

/* Forget all answers and calls; put clock and memory back. */
void script_reset(void);

/* Answer the next call of op so, after those queued before; or every call for which nothing is
 * queued. */
void script_next(enum script_op op, struct script_answer answer);
void script_always(enum script_op op, struct script_answer answer);

/* "open meta acquire": the calls since this was last asked, closing left out; borrowed. */
const char *script_calls(void);
int script_count(enum script_op op); /* calls of op since the last reset */
const struct script_query *script_query(int back); /* 0: the last one, 1: the one before it, … */
bool script_in_tx(void); /* is a transaction of ours open? */

/* Speak and pack as this database does, until the next reset, or after each: "postgres", as at first, "mysql",
 * "sqlite". Of locks only "postgres" is understood. */
void script_dialect(const char *name);
void script_home(const char *name);

/* Stop the clock, which then goes on only with takes_us. Real pauses would never end. */
void script_freeze(void);

/* Stop it; and where this thread would sleep in poll(), the clock goes on by so much instead. */
void script_jump(void);

/* Wake for who stands in line. As with the databases, nobody hears it who has no ticket yet, or whose ticket
 * was taken on an earlier connection. Returns whether it was heard. */
bool script_wake(void);

/* The same as the fields above, while another thread may look at them. */
void script_pass_ms(int64_t ms);
void script_hook(void (*hook)(enum script_op op));
int script_leases(int nth); /* in the nth call of renew_all, from 0; -1: there was none */

/* Open; the program ends if it fails. Statement deadline and reconnecting last a moment each. */
rowlock_db *script_open(const rowlock_db_options *options);
rowlock_db *script_adopt(void);

enum { SCRIPT_MOMENT_MS = 60 };

#endif
