/* SPDX-License-Identifier: MIT
 * The eleven operations of a driver, for a handle of a pool. */
#include "base/fiber.h"
#include "pool/pool.h"

#include <string.h>

/* The state of one handle. */
struct handle {
    rowlock_pool *pool;
    /* What the handle waits with. */
    struct rlk_waiting *waiting;
    /* A transaction that frame() began has this connection. NULL: there is none. */
    struct rlk_pooled *framed;
    /* A handle that gives up leaves its slot behind, and needs another. */
    struct rlk_slot *slot, *spare;
    /* The last ticket has an address. */
    bool hears;
    struct rlk_pool_waiter waiter;
};

static enum rlk_class pool_open(void *conn, struct rlk_call *call, const struct rlk_target *target,
                                const struct rlk_texts *texts, struct rlk_hello *hello)
{
    struct handle *h = conn;
    (void)call;
    (void)texts;
    h->pool = target->pool;
    h->waiting = target->waiting;
    h->waiter.waiting = h->waiting;
    hello->takes_writes = h->pool->takes_writes;
    hello->looked = h->pool->texts.identity[0] != '\0';
    h->slot = rlk_slot_new();
    return h->slot ? RLK_DONE : RLK_NOMEM;
}

static enum rlk_class pool_adopt(void *conn, struct rlk_call *call, void *vendor,
                                 const struct rlk_texts *texts, struct rlk_hello *hello)
{
    (void)conn;
    (void)vendor;
    (void)texts;
    (void)hello;
    return rlk_refuse(call, RLK_UNSUPPORTED, "a pool adopts no connection");
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

struct operation {
    struct rlk_query *query;
    const char *script;
    struct rlk_facts *facts;
    enum rlk_frame frame;
};

static enum rlk_class run_operation(rowlock_db *db, struct rlk_call *call, void *context)
{
    const struct operation *o = context;
    if (o->query)
        return db->backend->query(db->conn, call, o->query);
    if (o->script)
        return db->backend->script(db->conn, call, o->script);
    if (o->facts)
        return db->backend->facts(db->conn, call, o->facts);
    return db->backend->frame(db->conn, call, o->frame);
}

/* A transaction is lost with its connection, so it does not reconnect. */
static enum rlk_class run_framed(struct rlk_pooled *conn, struct rlk_call *call,
                                 struct operation *o)
{
    if (!conn->db->up)
        return rlk_refuse(call, RLK_UNSENT, "the connection was lost, and the transaction with it");
    enum rlk_class class = run_operation(conn->db, call, o);
    if (class == RLK_UNSENT || class == RLK_UNCERTAIN)
        conn->db->up = false;
    return class;
}

/* Only steps of locks and the like need the tables. Those before them in the list look at the
 * tables, or make them. */
static bool needs_tables(const struct operation *o)
{
    return o->query && o->query->step >= RLK_STEP_STILL_HELD;
}

static enum rlk_class run_on(struct handle *h, struct rlk_pooled *conn, struct rlk_call *call,
                             struct operation *o)
{
    if (conn == h->framed)
        return run_framed(conn, call, o);
    int64_t deadline_us = call->deadline_us;
    enum rlk_class class = rlk_pool_run(conn, call, needs_tables(o), run_operation, o);
    call->deadline_us = deadline_us;
    return class;
}

struct delegated {
    struct handle *h;
    struct rlk_call *call;
    struct operation *o;
    enum rlk_class class;
};

static void run_delegated(struct rlk_pooled *conn, void *context)
{
    struct delegated *d = context;
    d->class = run_on(d->h, conn, d->call, d->o);
}

static enum rlk_class run_alone(struct handle *h, struct rlk_call *call, struct operation *o)
{
    if (rlk_fiber_current() && !h->framed) {
        struct delegated d = {.h = h, .call = call, .o = o};
        rlk_line_delegate(h->pool, run_delegated, &d);
        return d.class;
    }
    struct rlk_pooled *conn = take(h, call);
    if (!conn)
        return RLK_UNSENT;
    enum rlk_class class = run_on(h, conn, call, o);
    give(h, conn);
    return class;
}

static enum rlk_class pool_script(void *conn, struct rlk_call *call, const char *sql)
{
    return run_alone(conn, call, &(struct operation){.script = sql});
}

static enum rlk_class pool_facts(void *conn, struct rlk_call *call, struct rlk_facts *out)
{
    return run_alone(conn, call, &(struct operation){.facts = out});
}

/* ---- steps */

static void wake(struct handle *h, const char *name)
{
    pthread_mutex_lock(&h->pool->mutex);
    rlk_waiter_wake(h->pool, name);
    pthread_mutex_unlock(&h->pool->mutex);
}

/* A pool goes on with a step of which its handle does not ask again. */
static enum rlk_class leave_to_pool(struct rlk_query *query)
{
    query->changed = 1;
    query->counted = true;
    return RLK_DONE;
}

/* kind NONE: alone. */
static enum rlk_class send_in_line(struct handle *h, struct rlk_call *call, struct rlk_query *query,
                                   enum rlk_step kind)
{
    char address[RLK_ADDRESS] = "";
    bool abandoned;
    if (!h->spare && !(h->spare = rlk_slot_new()))
        return RLK_NOMEM;
    if (query->own)
        rlk_ear_address(h->pool, address);
    h->hears = address[0] != '\0';
    if (!rlk_slot_fill(h->slot, call, query, kind, kind ? address : NULL))
        return rlk_refuse(call, RLK_INVALID, "a text is too long");
    enum rlk_class class = rlk_line_send(h->pool, h->slot, &abandoned);
    if (abandoned) {
        h->slot = h->spare;
        h->spare = NULL;
        if (call->worth_until_us > call->deadline_us)
            return leave_to_pool(query);
        call->late = true;
        return rlk_refuse(call, RLK_UNCERTAIN, "no answer came in time");
    }
    if (class == RLK_CONTENTION && h->slot->class == RLK_UNSENT)
        return none_free(call);
    if (h->slot->again && class == RLK_DONE)
        return leave_to_pool(query);
    return rlk_slot_answer(h->slot, call, query);
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

/* A slot has room for one row. */
static bool has_slot(const struct handle *h, const struct rlk_call *call,
                     const struct rlk_query *query)
{
    const struct rlk_step_info *info = &rlk_steps[query->step];
    bool ours = query->step >= RLK_STEP_STILL_HELD && !(info->is & RLK_TEMPLATE);
    return ours && (info->rows == '?' || info->rows == '1') && !query->own && !h->framed &&
           call->where != RLK_INSIDE;
}

/* A connection is always left to those who need not wait for a row. */
static bool may_block_all(const struct handle *h, enum rlk_step step)
{
    return (rlk_steps[step].is & RLK_BLOCKS) && h->pool->real->packing != RLK_SINGLY &&
           !rlk_line_has_idle(h->pool);
}

static enum rlk_class send_as_batch(struct handle *h, struct rlk_pooled *conn,
                                    struct rlk_call *call, struct rlk_query *query)
{
    if (!rlk_slot_fill(h->slot, call, query, rlk_many_of(query->step), ""))
        return rlk_refuse(call, RLK_INVALID, "a text is too long");
    h->slot->next = NULL;
    rlk_batch_run(conn, h->slot);
    return rlk_slot_answer(h->slot, call, query);
}

static enum rlk_class send_step(struct handle *h, struct rlk_call *call, struct rlk_query *query)
{
    struct operation o = {.query = query};
    enum rlk_step kind = kind_of(h, call, query->step);
    bool gives_up = must_give_up(h, call);
    /* A fiber must not block. And of a ticket, the driver would give the address of its own
     * connection. */
    bool at_once = kind && !gives_up && !query->own && !rlk_fiber_current();
    struct rlk_pooled *conn = at_once ? rlk_line_take(h->pool) : NULL;
    if (!conn && (kind || (gives_up && has_slot(h, call, query))))
        return send_in_line(h, call, query, kind);
    if (!conn)
        return run_alone(h, call, &o);
    enum rlk_class class = may_block_all(h, query->step) ? send_as_batch(h, conn, call, query)
                                                         : run_on(h, conn, call, &o);
    rlk_line_give(h->pool, conn);
    return class;
}

static enum rlk_class pool_query(void *conn, struct rlk_call *call, struct rlk_query *query)
{
    struct handle *h = conn;
    if (call->where == RLK_INSIDE && !h->framed)
        return RLK_NO_TX;
    enum rlk_class class = send_step(h, call, query);
    /* Only a try that was granted lets others in, and pool_note() is told of that. */
    bool tries = query->step == RLK_STEP_ACQUIRE || query->step == RLK_STEP_ACQUIRE_USUAL;
    if (class == RLK_DONE && query->wakes && !tries)
        wake(h, query->wakes);
    return class;
}

/* ---- transactions */

static enum rlk_class begin(struct handle *h, struct rlk_call *call)
{
    struct operation o = {.frame = RLK_BEGIN};
    if (h->framed)
        return RLK_IN_TX;
    if (h->pool->count < 2 && !call->brief)
        return rlk_refuse(call, RLK_UNSUPPORTED,
                          "a transaction needs a pool of two connections or more");
    struct rlk_pooled *conn = take(h, call);
    if (!conn)
        return RLK_UNSENT;
    bool allowed = rlk_line_frame(h->pool, call->brief);
    enum rlk_class class =
        allowed ? run_on(h, conn, call, &o)
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

static enum rlk_class pool_frame(void *conn, struct rlk_call *call, enum rlk_frame what)
{
    struct handle *h = conn;
    struct operation o = {.frame = what};
    call->inside = h->framed != NULL;
    if (what == RLK_LOOK)
        return RLK_DONE;
    if (what == RLK_BEGIN)
        return begin(h, call);
    if (!h->framed)
        return RLK_NO_TX;
    enum rlk_class class = run_framed(h->framed, call, &o);
    if (what == RLK_COMMIT || what == RLK_ROLLBACK)
        end(h);
    return class;
}

/* ---- waiting */

static bool pool_note(void *conn, struct rlk_call *call, enum rlk_news news,
                      const struct rlk_request *request, int64_t number)
{
    struct handle *h = conn;
    (void)call;
    (void)number;
    pthread_mutex_lock(&h->pool->mutex);
    if (news == RLK_ENQUEUED)
        rlk_waiter_begin(h->pool, &h->waiter, request, h->hears);
    else if (news == RLK_GONE_GRANT)
        rlk_waiter_wake(h->pool, request->name);
    else if (h->waiter.request == request->number)
        rlk_waiter_end(h->pool, &h->waiter);
    if (news == RLK_TAKEN && request->permits != 0)
        rlk_waiter_wake(h->pool, request->name);
    pthread_mutex_unlock(&h->pool->mutex);
    return h->hears;
}

static enum rlk_class pool_await(void *conn, struct rlk_call *call,
                                 const struct rlk_request *request, int wake_fd,
                                 enum rlk_wakeup *out)
{
    struct handle *h = conn;
    (void)wake_fd;
    *out = h->waiter.request == request->number
               ? rlk_waiter_wait(h->pool, &h->waiter, call->deadline_us)
               : RLK_NO_WAKEUPS;
    return RLK_DONE;
}

/* ---- the end */

static void roll_back(struct handle *h)
{
    struct rlk_call call = {.deadline_us = rlk_now_us() + 1000000};
    struct operation o = {.frame = RLK_ROLLBACK};
    if (!h->framed)
        return;
    if (run_framed(h->framed, &call, &o) != RLK_DONE)
        h->framed->db->up = false;
    end(h);
}

static void pool_close(void *conn, bool in_child)
{
    struct handle *h = conn;
    if (!h->pool)
        return;
    if (!in_child) {
        roll_back(h);
        pthread_mutex_lock(&h->pool->mutex);
        rlk_waiter_end(h->pool, &h->waiter);
        pthread_mutex_unlock(&h->pool->mutex);
    }
    rlk_slot_free(h->slot);
    rlk_slot_free(h->spare);
    h->slot = h->spare = NULL;
}

void rlk_pool_operations(rowlock_pool *pool)
{
    struct rlk_backend *b = &pool->backend;
    *b = *pool->real;
    b->conn_size = sizeof(struct handle);
    b->fibers = b->gathers = true;
    b->open = pool_open;
    b->adopt = pool_adopt;
    b->close = pool_close;
    b->script = pool_script;
    b->facts = pool_facts;
    b->note = pool_note;
    b->await = pool_await;
    b->query = pool_query;
    b->frame = pool_frame;
}
