/* SPDX-License-Identifier: MIT
 * What a handle of a pool asks: which connection sends it, and when. */
#include "pool/pool.h"
#include "core/ask.h"

#include <string.h>

/* The state of one handle. */
struct handle {
    rowlock_pool *pool;
    /* What the handle waits with. */
    struct rlk_waiting *waiting;
    /* A transaction that frame() began has this connection. NULL: there is none. */
    struct rlk_pooled *framed;
    /* A handle that gives up leaves its parcel behind, and needs another. */
    struct rlk_parcel *parcel, *spare;
    /* The last ticket has an address. */
    bool hears;
    struct rlk_pool_waiter waiter;
};

static enum rlk_class pool_open(rowlock_db *db, struct rlk_call *call, struct rlk_hello *hello)
{
    struct handle *h = db->conn;
    (void)call;
    h->pool = db->pool;
    h->waiting = h->waiter.waiting = &db->waiting;
    hello->takes_writes = h->pool->takes_writes;
    hello->looked = h->pool->texts.identity[0] != '\0';
    h->parcel = rlk_parcel_new();
    return h->parcel ? RLK_DONE : RLK_NOMEM;
}

/* ---- a connection for one call */

/* Connections are free again soon, unless the server hangs. So this is no lost race: a lock that
 * could not be asked for is not busy. */
static enum rlk_class none_free(struct rlk_call *call)
{
    return rlk_refuse(call, RLK_UNSENT,
                      "no connection of the pool became free in time; the server may hang");
}

static struct rlk_pooled *take(struct handle *h, struct rlk_call *call)
{
    if (h->framed)
        return h->framed;
    struct rlk_pooled *conn = rlk_line_wait(h->pool, call->deadline_us);
    if (!conn)
        none_free(call);
    return conn;
}

static void give(struct handle *h, struct rlk_pooled *conn)
{
    if (conn != h->framed)
        rlk_line_give(h->pool, conn);
}

/* A transaction is lost with its connection, so it does not reconnect. */
static enum rlk_class run_framed(struct rlk_pooled *conn, struct rlk_call *call,
                                 struct rlk_ask *ask)
{
    if (!rlk_is_up(conn->db))
        return rlk_refuse(call, RLK_UNSENT, "the connection was lost, and the transaction with it");
    enum rlk_class class = rlk_send(conn->db, call, ask);
    if (rlk_is_gone(class) || (ask->frame == RLK_ROLLBACK && class != RLK_DONE))
        rlk_pool_lose(conn);
    return class;
}

static enum rlk_class run_on(struct handle *h, struct rlk_pooled *conn, struct rlk_call *call,
                             struct rlk_ask *ask)
{
    if (conn == h->framed)
        return run_framed(conn, call, ask);
    int64_t deadline_us = call->deadline_us;
    enum rlk_class class = rlk_pool_run(conn, call, ask);
    call->deadline_us = deadline_us;
    return class;
}

static enum rlk_class run_alone(struct handle *h, struct rlk_call *call, struct rlk_ask *ask)
{
    struct rlk_pooled *conn = take(h, call);
    if (!conn)
        return RLK_UNSENT;
    enum rlk_class class = run_on(h, conn, call, ask);
    give(h, conn);
    return class;
}

/* ---- steps */

static void wake(struct handle *h, const char *name)
{
    rlk_lock(&h->pool->mutex);
    rlk_waiter_wake(h->pool, name);
    rlk_unlock(&h->pool->mutex);
}

/* A pool goes on with a step of which its handle does not ask again. */
static enum rlk_class leave_to_pool(struct rlk_ask *ask)
{
    ask->changed = 1;
    return RLK_DONE;
}

/* kind NONE: alone. */
static enum rlk_class fill_parcel(struct handle *h, struct rlk_call *call,
                                  const struct rlk_ask *ask, enum rlk_step kind)
{
    char address[RLK_ADDRESS] = "";
    if (!h->spare && !(h->spare = rlk_parcel_new()))
        return RLK_NOMEM;
    if (rlk_has_own(ask->step))
        rlk_listener_address(h->pool, address);
    h->hears = address[0] != '\0';
    if (!rlk_parcel_fill(h->parcel, call, ask, kind, kind ? address : NULL))
        return rlk_refuse(call, RLK_INVALID, "a text is too long");
    return RLK_DONE;
}

static enum rlk_class take_parcel(struct handle *h, struct rlk_call *call, struct rlk_ask *ask,
                                  enum rlk_class class, bool abandoned)
{
    if (abandoned) {
        h->parcel = h->spare;
        h->spare = NULL;
        if (call->worth_until_us > call->deadline_us)
            return leave_to_pool(ask);
        call->late = true;
        return rlk_refuse(call, RLK_UNCERTAIN, "no answer came in time");
    }
    if (class == RLK_CONTENTION && h->parcel->class == RLK_UNSENT)
        return none_free(call);
    if (h->parcel->again && class == RLK_DONE)
        return leave_to_pool(ask);
    return rlk_parcel_answer(h->parcel, call, ask);
}

static enum rlk_class send_in_line(struct handle *h, struct rlk_call *call, struct rlk_ask *ask,
                                   enum rlk_step kind)
{
    bool abandoned;
    enum rlk_class class = fill_parcel(h, call, ask, kind);
    if (class != RLK_DONE)
        return class;
    class = rlk_line_send(h->pool, h->parcel, &abandoned);
    return take_parcel(h, call, ask, class, abandoned);
}

/* The step for many that does this one. NONE: it goes alone. */
static enum rlk_step kind_of(const struct handle *h, const struct rlk_call *call,
                             enum rlk_step step)
{
    const rowlock_pool *pool = h->pool;
    enum rlk_step many = rlk_many_of(step);
    bool has = pool->real->packing == RLK_SINGLY ? !(rlk_steps[step].is & RLK_READS)
                                                 : pool->texts.sql[many] != NULL;
    bool joins = has && !h->framed && call->where != RLK_INSIDE;
    return joins ? many : RLK_STEP_NONE;
}

/* Would a call of the caller's own thread end too late? */
static bool must_give_up(const struct handle *h, const struct rlk_call *call)
{
    enum { SECOND_US = 1000000 };
    int64_t left_us = call->deadline_us - rlk_now_us();
    return call->worth_until_us || (h->pool->real->overruns &&
                                    left_us + SECOND_US < h->pool->connections->db->statement_us);
}

/* A parcel has room for one row. */
static bool fits_parcel(const struct handle *h, const struct rlk_call *call, enum rlk_step step)
{
    char rows = rlk_steps[step].rows;
    return rlk_needs_tables(step) && (rows == '?' || rows == '1') && !rlk_has_own(step) &&
           !h->framed && call->where != RLK_INSIDE;
}

/* No step waits for a row on the last connection: others may need it to make that row free. */
static bool keeps_last_free(const struct handle *h, enum rlk_step step)
{
    return (rlk_steps[step].is & RLK_BLOCKS) && h->pool->real->packing != RLK_SINGLY &&
           !rlk_line_has_idle(h->pool);
}

static enum rlk_class send_skipping(struct handle *h, struct rlk_pooled *conn,
                                    struct rlk_call *call, struct rlk_ask *ask)
{
    if (!rlk_parcel_fill(h->parcel, call, ask, rlk_many_of(ask->step), ""))
        return rlk_refuse(call, RLK_INVALID, "a text is too long");
    h->parcel->next = NULL;
    rlk_batch_run(conn, h->parcel);
    return rlk_parcel_answer(h->parcel, call, ask);
}

static enum rlk_class send_step(struct handle *h, struct rlk_call *call, struct rlk_ask *ask)
{
    enum rlk_step kind = kind_of(h, call, ask->step);
    bool gives_up = must_give_up(h, call);
    /* The driver would give a ticket the address of its own connection. */
    bool at_once = kind && !gives_up && !rlk_has_own(ask->step);
    struct rlk_pooled *conn = at_once ? rlk_line_idle(h->pool) : NULL;
    if (!conn && (kind || (gives_up && fits_parcel(h, call, ask->step))))
        return send_in_line(h, call, ask, kind);
    if (!conn)
        return run_alone(h, call, ask);
    enum rlk_class class = keeps_last_free(h, ask->step) ? send_skipping(h, conn, call, ask)
                                                         : run_on(h, conn, call, ask);
    rlk_line_give(h->pool, conn);
    return class;
}

/* Only a try that was granted lets others in, and pool_tell() is told of that. */
static enum rlk_class wake_next(struct handle *h, const struct rlk_ask *ask, enum rlk_class class)
{
    if (class == RLK_DONE && ask->wakes && !(rlk_steps[ask->step].is & RLK_GRANTS))
        wake(h, ask->wakes);
    return class;
}

/* Without what is asked before it: *decided says whether it must follow. */
static enum rlk_class ask_steps(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask,
                                bool *decided)
{
    struct handle *h = db->conn;
    enum rlk_class class = ask->first ? ask_steps(db, call, ask->first, decided) : RLK_DONE;
    if (class != RLK_DONE || *decided)
        return class;
    struct rlk_ask *first = ask->first;
    ask->first = NULL;
    rlk_query_begin(db, ask);
    class = wake_next(h, ask, send_step(h, call, ask));
    class = rlk_query_end(db, call, ask, class, false);
    ask->first = first;
    *decided = rlk_has_decided(ask);
    return class;
}

static enum rlk_class pool_frame(struct handle *h, struct rlk_call *call, enum rlk_frame what);

/* What is not one step, or is a part of a transaction, has a connection for itself. */
static enum rlk_class pool_ask(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask)
{
    struct handle *h = db->conn;
    bool decided = false;
    if (ask->frame)
        return pool_frame(h, call, ask->frame);
    if (call->where == RLK_INSIDE && !h->framed)
        return RLK_NO_TX;
    if (ask->run || ask->query || ask->script || ask->facts || !ask->step || h->framed)
        return wake_next(h, ask, run_alone(h, call, ask));
    enum rlk_class class = ask_steps(db, call, ask, &decided);
    return class == RLK_DONE ? rlk_judge(call, ask, decided) : class;
}

static enum rlk_class pool_hand_in(rowlock_db *db, struct rlk_call *call, struct rlk_ask *step)
{
    struct handle *h = db->conn;
    rlk_query_begin(db, step);
    enum rlk_class class = fill_parcel(h, call, step, kind_of(h, call, step->step));
    if (class != RLK_DONE)
        return class;
    h->parcel->answered.alarm = h->waiting->turn.alarm;
    rlk_line_enter(h->pool, h->parcel);
    return RLK_DONE;
}

static bool pool_take(rowlock_db *db, struct rlk_call *call, struct rlk_ask *step,
                      enum rlk_class *class)
{
    struct handle *h = db->conn;
    bool abandoned;
    if (!rlk_line_take(h->pool, h->parcel, class, &abandoned))
        return false;
    *class = wake_next(h, step, take_parcel(h, call, step, *class, abandoned));
    *class = rlk_query_end(db, call, step, *class, false);
    return true;
}

/* ---- transactions */

static enum rlk_class begin(struct handle *h, struct rlk_call *call)
{
    struct rlk_ask ask = {.frame = RLK_BEGIN};
    if (h->framed)
        return RLK_IN_TX;
    if (h->pool->count < 2)
        return rlk_refuse(call, RLK_UNSUPPORTED,
                          "a transaction needs a pool of two connections or more");
    struct rlk_pooled *conn = take(h, call);
    if (!conn)
        return RLK_UNSENT;
    bool allowed = rlk_line_frame(h->pool);
    enum rlk_class class =
        allowed ? run_on(h, conn, call, &ask)
                : rlk_refuse(call, RLK_CONTENTION, "other transactions use the pool's connections");
    if (class == RLK_DONE) {
        h->framed = conn;
        return class;
    }
    if (allowed)
        rlk_line_unframe(h->pool);
    rlk_line_give(h->pool, conn);
    return class;
}

static void end(struct handle *h)
{
    struct rlk_pooled *conn = h->framed;
    h->framed = NULL;
    rlk_line_unframe(h->pool);
    rlk_line_give(h->pool, conn);
}

static enum rlk_class pool_frame(struct handle *h, struct rlk_call *call, enum rlk_frame what)
{
    struct rlk_ask ask = {.frame = what};
    call->inside = h->framed != NULL;
    if (what == RLK_LOOK)
        return RLK_DONE;
    if (what == RLK_BEGIN)
        return begin(h, call);
    if (!h->framed)
        return RLK_NO_TX;
    enum rlk_class class = run_framed(h->framed, call, &ask);
    if (what == RLK_COMMIT || what == RLK_ROLLBACK)
        end(h);
    return class;
}

/* ---- waiting */

static bool pool_tell(rowlock_db *db, struct rlk_call *call, enum rlk_news news,
                      const struct rlk_request *request, int64_t number)
{
    struct handle *h = db->conn;
    (void)call;
    (void)number;
    rlk_lock(&h->pool->mutex);
    if (news == RLK_ENQUEUED)
        rlk_waiter_begin(h->pool, &h->waiter, request, h->hears);
    else if (news == RLK_GONE_GRANT)
        rlk_waiter_wake(h->pool, request->name);
    else if (h->waiter.request == request->number)
        rlk_waiter_end(h->pool, &h->waiter);
    if (news == RLK_TAKEN && request->permits != 0)
        rlk_waiter_wake(h->pool, request->name);
    rlk_unlock(&h->pool->mutex);
    return h->hears;
}

static enum rlk_class pool_await(rowlock_db *db, struct rlk_call *call,
                                 const struct rlk_request *request, enum rlk_wakeup *out)
{
    struct handle *h = db->conn;
    *out = h->waiter.request == request->number
               ? rlk_waiter_wait(h->pool, &h->waiter, call->deadline_us)
               : RLK_NO_WAKEUPS;
    return RLK_DONE;
}

/* ---- the end */

static void roll_back(struct handle *h)
{
    struct rlk_call call = {.deadline_us = rlk_now_us() + 1000000};
    struct rlk_ask ask = {.frame = RLK_ROLLBACK};
    if (!h->framed)
        return;
    run_framed(h->framed, &call, &ask);
    end(h);
}

static void pool_close(rowlock_db *db, bool in_child)
{
    struct handle *h = db->conn;
    if (!h->pool)
        return;
    if (!in_child) {
        roll_back(h);
        rlk_lock(&h->pool->mutex);
        rlk_waiter_end(h->pool, &h->waiter);
        rlk_unlock(&h->pool->mutex);
    }
    rlk_parcel_free(h->parcel);
    rlk_parcel_free(h->spare);
    h->parcel = h->spare = NULL;
}

const struct rlk_port rlk_pool_port = {.state_size = sizeof(struct handle),
                                       .gathers = true,
                                       .open = pool_open,
                                       .close = pool_close,
                                       .tell = pool_tell,
                                       .await = pool_await,
                                       .ask = pool_ask,
                                       .hand_in = pool_hand_in,
                                       .take = pool_take};
