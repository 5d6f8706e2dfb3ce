/* SPDX-License-Identifier: MIT
 * The line before the connections of a pool. The first in line decides what a free connection does
 * next. If that is a step for many, all others of its kind go along. */
#include "pool/pool.h"
#include "core/ask.h"

enum {
    /* The pause before what may be sent later is sent again. */
    AGAIN_US = 100000,
    /* Tickets in one statement. It must not keep a release waiting for long. */
    TICKETS_MOST = 64,
    /* So many others may overtake a ticket. */
    OVERTAKERS = 1000
};

/* ---- with the mutex locked */

static struct rlk_pooled *idle_connection(rowlock_pool *pool)
{
    if (pool->busy >= pool->most)
        return NULL;
    for (size_t i = 0; i < pool->count; i++)
        if (!pool->connections[i].busy)
            return &pool->connections[i];
    return NULL;
}

static void take(rowlock_pool *pool, struct rlk_pooled *conn)
{
    conn->busy = true;
    pool->busy++;
}

/* From one state to another. A parcel that its handle has given up stays so. */
static bool change(struct rlk_parcel *parcel, int from, int to)
{
    return atomic_compare_exchange_strong(&parcel->state, &from, to);
}

static bool gives_way(enum rlk_step kind)
{
    return rlk_steps[kind].is & RLK_GIVES_WAY;
}

/* In a long queue, tickets alone could keep all connections busy. Releases and tries go before
 * them, so that the queue moves. */
static void add(rowlock_pool *pool, struct rlk_parcel *parcel)
{
    parcel->number = pool->numbers++ + (gives_way(parcel->kind) ? OVERTAKERS : 0);
    parcel->next = NULL;
    *pool->line[parcel->kind].end = parcel;
    pool->line[parcel->kind].end = &parcel->next;
}

static void remove_parcel(rowlock_pool *pool, struct rlk_parcel *parcel)
{
    struct rlk_parcel **at = &pool->line[parcel->kind].first;
    while (*at != parcel)
        at = &(*at)->next;
    *at = parcel->next;
    if (!*at)
        pool->line[parcel->kind].end = at;
    parcel->state = RLK_PARCEL_FREE;
}

static struct rlk_parcel *first_in_line(rowlock_pool *pool)
{
    struct rlk_parcel *first = NULL;
    for (int kind = 0; kind < RLK_STEP_COUNT; kind++) {
        struct rlk_parcel *parcel = pool->line[kind].first;
        if (parcel && (!first || parcel->number < first->number))
            first = parcel;
    }
    return first;
}

/* Takes parcels of one kind, in their order. */
static struct rlk_parcel *take_batch(rowlock_pool *pool, enum rlk_step kind)
{
    struct rlk_parcel *first = pool->line[kind].first, *last = first;
    size_t most = kind == RLK_STEP_NONE ? 1 : pool->batch;
    if (gives_way(kind) && most > TICKETS_MOST)
        most = TICKETS_MOST;
    change(last, RLK_PARCEL_WAITS, RLK_PARCEL_TAKEN);
    for (size_t n = 1; n < most && last->next; n++) {
        last = last->next;
        change(last, RLK_PARCEL_WAITS, RLK_PARCEL_TAKEN);
    }
    pool->line[kind].first = last->next;
    if (!last->next)
        pool->line[kind].end = &pool->line[kind].first;
    last->next = NULL;
    return first;
}

static void answer(struct rlk_parcel *parcel)
{
    if (atomic_exchange(&parcel->state, RLK_PARCEL_ANSWERED) == RLK_PARCEL_ABANDONED)
        rlk_parcel_free(parcel);
    else
        rlk_turn_post(&parcel->answered);
}

/* What a free connection does next: the parcels for its thread. NULL: it is idle, or a caller has
 * it. */
static struct rlk_parcel *next_work(rowlock_pool *pool, struct rlk_pooled *conn)
{
    struct rlk_parcel *first = first_in_line(pool);
    if (!first || pool->busy > pool->most) {
        conn->busy = false;
        pool->busy--;
        return NULL;
    }
    first = take_batch(pool, first->kind);
    if (first->step != RLK_STEP_NONE)
        return first;
    first->got = conn;
    answer(first);
    return NULL;
}

/* ---- for callers */

struct rlk_pooled *rlk_line_idle(rowlock_pool *pool)
{
    rlk_lock(&pool->mutex);
    struct rlk_pooled *conn = idle_connection(pool);
    if (conn)
        take(pool, conn);
    rlk_unlock(&pool->mutex);
    return conn;
}

bool rlk_line_has_idle(rowlock_pool *pool)
{
    rlk_lock(&pool->mutex);
    bool any = idle_connection(pool) != NULL;
    rlk_unlock(&pool->mutex);
    return any;
}

void rlk_line_give(rowlock_pool *pool, struct rlk_pooled *conn)
{
    rlk_lock(&pool->mutex);
    conn->work = next_work(pool, conn);
    bool any = conn->work != NULL;
    rlk_unlock(&pool->mutex);
    if (any)
        rlk_turn_post(&conn->go);
}

/* The others may go on where only `most` may be busy. */
bool rlk_line_frame(rowlock_pool *pool)
{
    rlk_lock(&pool->mutex);
    bool allowed = pool->framed + 1 < pool->count;
    pool->framed += allowed;
    pool->busy -= allowed;
    struct rlk_pooled *other = allowed && first_in_line(pool) ? idle_connection(pool) : NULL;
    if (other)
        take(pool, other);
    rlk_unlock(&pool->mutex);
    if (other)
        rlk_line_give(pool, other);
    return allowed;
}

void rlk_line_unframe(rowlock_pool *pool)
{
    rlk_lock(&pool->mutex);
    pool->framed--;
    pool->busy++;
    rlk_unlock(&pool->mutex);
}

/* If a connection became free meanwhile, it is taken at once. */
void rlk_line_enter(rowlock_pool *pool, struct rlk_parcel *parcel)
{
    rlk_lock(&pool->mutex);
    struct rlk_pooled *conn = idle_connection(pool);
    if (conn)
        take(pool, conn);
    parcel->state = RLK_PARCEL_WAITS;
    add(pool, parcel);
    /* It need not wait for what others have waited for in vain. */
    if (pool->away && parcel->worth_until_us > parcel->deadline_us)
        parcel->deadline_us = 0;
    rlk_unlock(&pool->mutex);
    if (conn)
        rlk_line_give(pool, conn);
}

/* Its deadline has passed. Returns whether the parcel was answered after all. If it was not,
 * *abandoned says whether the pool goes on with it and will free it. */
static bool give_up(rowlock_pool *pool, struct rlk_parcel *parcel, bool *abandoned)
{
    rlk_lock(&pool->mutex);
    bool later = parcel->worth_until_us > parcel->deadline_us;
    bool removed = parcel->state == RLK_PARCEL_WAITS && !later;
    if (removed)
        remove_parcel(pool, parcel);
    else
        *abandoned = change(parcel, RLK_PARCEL_TAKEN, RLK_PARCEL_ABANDONED) ||
                     change(parcel, RLK_PARCEL_WAITS, RLK_PARCEL_ABANDONED);
    pool->away = pool->away || (*abandoned && later);
    rlk_unlock(&pool->mutex);
    if (!removed && !*abandoned)
        rlk_wait_turn(&parcel->answered, INT64_MAX);
    return !removed && !*abandoned;
}

static bool wait_in_line(rowlock_pool *pool, struct rlk_parcel *parcel, bool *abandoned)
{
    *abandoned = false;
    rlk_line_enter(pool, parcel);
    return rlk_wait_turn(&parcel->answered, parcel->deadline_us) ||
           give_up(pool, parcel, abandoned);
}

static enum rlk_class end_in_line(struct rlk_parcel *parcel, bool answered, bool abandoned)
{
    if (answered)
        parcel->state = RLK_PARCEL_FREE;
    return answered ? parcel->class : abandoned ? RLK_UNCERTAIN : RLK_CONTENTION;
}

struct rlk_pooled *rlk_line_wait(rowlock_pool *pool, int64_t deadline_us)
{
    struct rlk_parcel parcel = {.kind = RLK_STEP_NONE, .deadline_us = deadline_us};
    struct rlk_pooled *conn = rlk_line_idle(pool);
    bool abandoned;
    if (conn)
        return conn;
    rlk_turn_init(&parcel.answered);
    conn = wait_in_line(pool, &parcel, &abandoned) ? parcel.got : NULL;
    rlk_turn_end(&parcel.answered);
    return conn;
}

enum rlk_class rlk_line_send(rowlock_pool *pool, struct rlk_parcel *parcel, bool *abandoned)
{
    bool answered = wait_in_line(pool, parcel, abandoned);
    return end_in_line(parcel, answered, *abandoned);
}

/* The mutex: the thread that has answered is through with the parcel. */
bool rlk_line_take(rowlock_pool *pool, struct rlk_parcel *parcel, enum rlk_class *class,
                   bool *abandoned)
{
    rlk_lock(&pool->mutex);
    bool answered = rlk_turn_came(&parcel->answered);
    rlk_unlock(&pool->mutex);
    *abandoned = false;
    if (!answered && rlk_now_us() < parcel->deadline_us)
        return false;
    answered = answered || give_up(pool, parcel, abandoned);
    *class = end_in_line(parcel, answered, *abandoned);
    return true;
}

/* ---- the threads */

/* A handle that does not block may be closed once it has seen the answer. It locks the mutex for
 * that, so it waits for this post. */
static void answer_unlocked(rowlock_pool *pool, struct rlk_parcel *parcel)
{
    bool stepped = parcel->answered.alarm >= 0;
    if (stepped)
        rlk_lock(&pool->mutex);
    answer(parcel);
    if (stepped)
        rlk_unlock(&pool->mutex);
}

static bool is_worth_again(const struct rlk_parcel *parcel)
{
    return rlk_is_away(parcel->class) && parcel->worth_until_us > parcel->deadline_us &&
           parcel->worth_until_us > rlk_now_us();
}

/* Puts parcels in line again. Once the last handle is closed, all that is left is given up. */
static void send_again(struct rlk_pooled *conn, struct rlk_parcel *first)
{
    rowlock_pool *pool = conn->pool;
    rlk_wait_plain(AGAIN_US);
    rlk_lock(&pool->mutex);
    while (first) {
        struct rlk_parcel *parcel = first;
        first = parcel->next;
        parcel->again = true;
        change(parcel, RLK_PARCEL_TAKEN, RLK_PARCEL_WAITS);
        add(pool, parcel);
    }
    while (conn->stop && (first = first_in_line(pool))) {
        remove_parcel(pool, first);
        rlk_parcel_free(first);
    }
    rlk_unlock(&pool->mutex);
}

/* Returns whether the server has answered. */
static bool send_all(struct rlk_pooled *conn, struct rlk_parcel *first)
{
    struct rlk_parcel *again = NULL;
    rlk_batch_run(conn, first);
    bool answered = first->step && !rlk_is_away(first->class);
    while (first) {
        struct rlk_parcel *parcel = first;
        first = parcel->next;
        if (!is_worth_again(parcel)) {
            answer_unlocked(conn->pool, parcel);
            continue;
        }
        parcel->next = again;
        again = parcel;
    }
    if (again)
        send_again(conn, again);
    return answered;
}

static void *work(void *context)
{
    struct rlk_pooled *conn = context;
    rowlock_pool *pool = conn->pool;
    rlk_use_in_thread(pool->real, true);
    for (bool stop = false; !stop;) {
        rlk_wait_turn(&conn->go, INT64_MAX);
        rlk_lock(&pool->mutex);
        struct rlk_parcel *first = conn->work;
        conn->work = NULL;
        stop = conn->stop;
        while (first) {
            bool several = first->next != NULL;
            rlk_unlock(&pool->mutex);
            bool answered = send_all(conn, first);
            /* Their next steps go along, if they are quick. */
            if (several)
                rlk_thread_yield();
            rlk_lock(&pool->mutex);
            pool->away = pool->away && !answered;
            first = next_work(pool, conn);
        }
        rlk_unlock(&pool->mutex);
    }
    rlk_use_in_thread(pool->real, false);
    return NULL;
}

bool rlk_line_start_threads(rowlock_pool *pool)
{
    bool started = true;
    for (size_t i = 0; i < pool->count && started; i++) {
        struct rlk_pooled *conn = &pool->connections[i];
        started = conn->has_thread = rlk_thread_start(&conn->thread, work, conn);
    }
    return started;
}

void rlk_line_stop_threads(rowlock_pool *pool)
{
    for (size_t i = 0; i < pool->count; i++) {
        struct rlk_pooled *conn = &pool->connections[i];
        if (!conn->has_thread)
            continue;
        rlk_lock(&pool->mutex);
        conn->stop = true;
        rlk_unlock(&pool->mutex);
        rlk_turn_post(&conn->go);
        rlk_thread_join(conn->thread);
        conn->has_thread = false;
    }
}
