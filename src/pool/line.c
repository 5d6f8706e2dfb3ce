/* SPDX-License-Identifier: MIT
 * The line before the connections of a pool. The first in line decides what a free connection does
 * next. If that is a step for many, all others of its kind go along. */
#include "base/thread.h"
#include "pool/pool.h"
#include "core/ask.h"

#include <sched.h>

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

/* From one state to another. A slot that its handle has given up stays so. */
static bool change(struct rlk_slot *slot, int from, int to)
{
    return atomic_compare_exchange_strong(&slot->state, &from, to);
}

static bool gives_way(enum rlk_step kind)
{
    return rlk_steps[kind].is & RLK_GIVES_WAY;
}

/* In a long queue, tickets alone could keep all connections busy. Releases and tries go before
 * them, so that the queue moves. */
static void add(rowlock_pool *pool, struct rlk_slot *slot)
{
    slot->number = pool->numbers++ + (gives_way(slot->kind) ? OVERTAKERS : 0);
    slot->next = NULL;
    *pool->line[slot->kind].end = slot;
    pool->line[slot->kind].end = &slot->next;
}

static void remove_slot(rowlock_pool *pool, struct rlk_slot *slot)
{
    struct rlk_slot **at = &pool->line[slot->kind].first;
    while (*at != slot)
        at = &(*at)->next;
    *at = slot->next;
    if (!*at)
        pool->line[slot->kind].end = at;
    slot->state = RLK_SLOT_FREE;
}

static struct rlk_slot *first_in_line(rowlock_pool *pool)
{
    struct rlk_slot *first = NULL;
    for (int kind = 0; kind < RLK_STEP_COUNT; kind++) {
        struct rlk_slot *slot = pool->line[kind].first;
        if (slot && (!first || slot->number < first->number))
            first = slot;
    }
    return first;
}

/* Takes slots of one kind, in their order. */
static struct rlk_slot *take_batch(rowlock_pool *pool, enum rlk_step kind)
{
    struct rlk_slot *first = pool->line[kind].first, *last = first;
    size_t most = kind == RLK_STEP_NONE ? 1 : pool->batch;
    if (gives_way(kind) && most > TICKETS_MOST)
        most = TICKETS_MOST;
    change(last, RLK_SLOT_WAITS, RLK_SLOT_TAKEN);
    for (size_t n = 1; n < most && last->next; n++) {
        last = last->next;
        change(last, RLK_SLOT_WAITS, RLK_SLOT_TAKEN);
    }
    pool->line[kind].first = last->next;
    if (!last->next)
        pool->line[kind].end = &pool->line[kind].first;
    last->next = NULL;
    return first;
}

static void answer(struct rlk_slot *slot)
{
    if (atomic_exchange(&slot->state, RLK_SLOT_ANSWERED) == RLK_SLOT_ABANDONED)
        rlk_slot_free(slot);
    else
        rlk_turn_post(&slot->answered);
}

/* What a free connection does next: the slots for its thread. NULL: it is idle, or a caller has
 * it. */
static struct rlk_slot *next_work(rowlock_pool *pool, struct rlk_pooled *conn)
{
    struct rlk_slot *first = first_in_line(pool);
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
    pthread_mutex_lock(&pool->mutex);
    struct rlk_pooled *conn = idle_connection(pool);
    if (conn)
        take(pool, conn);
    pthread_mutex_unlock(&pool->mutex);
    return conn;
}

bool rlk_line_has_idle(rowlock_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    bool any = idle_connection(pool) != NULL;
    pthread_mutex_unlock(&pool->mutex);
    return any;
}

void rlk_line_give(rowlock_pool *pool, struct rlk_pooled *conn)
{
    pthread_mutex_lock(&pool->mutex);
    conn->work = next_work(pool, conn);
    bool any = conn->work != NULL;
    pthread_mutex_unlock(&pool->mutex);
    if (any)
        sem_post(&conn->go);
}

/* The others may go on where only `most` may be busy. */
bool rlk_line_frame(rowlock_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    bool allowed = pool->framed + 1 < pool->count;
    pool->framed += allowed;
    pool->busy -= allowed;
    struct rlk_pooled *other = allowed && first_in_line(pool) ? idle_connection(pool) : NULL;
    if (other)
        take(pool, other);
    pthread_mutex_unlock(&pool->mutex);
    if (other)
        rlk_line_give(pool, other);
    return allowed;
}

void rlk_line_unframe(rowlock_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->framed--;
    pool->busy++;
    pthread_mutex_unlock(&pool->mutex);
}

/* If a connection became free meanwhile, it is taken at once. */
void rlk_line_enter(rowlock_pool *pool, struct rlk_slot *slot)
{
    pthread_mutex_lock(&pool->mutex);
    struct rlk_pooled *conn = idle_connection(pool);
    if (conn)
        take(pool, conn);
    slot->state = RLK_SLOT_WAITS;
    add(pool, slot);
    /* It need not wait for what others have waited for in vain. */
    if (pool->away && slot->worth_until_us > slot->deadline_us)
        slot->deadline_us = 0;
    pthread_mutex_unlock(&pool->mutex);
    if (conn)
        rlk_line_give(pool, conn);
}

/* Its deadline has passed. Returns whether the slot was answered after all. If it was not,
 * *abandoned says whether the pool goes on with it and will free it. */
static bool give_up(rowlock_pool *pool, struct rlk_slot *slot, bool *abandoned)
{
    pthread_mutex_lock(&pool->mutex);
    bool later = slot->worth_until_us > slot->deadline_us;
    bool removed = slot->state == RLK_SLOT_WAITS && !later;
    if (removed)
        remove_slot(pool, slot);
    else
        *abandoned = change(slot, RLK_SLOT_TAKEN, RLK_SLOT_ABANDONED) ||
                     change(slot, RLK_SLOT_WAITS, RLK_SLOT_ABANDONED);
    pool->away = pool->away || (*abandoned && later);
    pthread_mutex_unlock(&pool->mutex);
    if (!removed && !*abandoned)
        while (sem_wait(&slot->answered.posted) != 0)
            ;
    return !removed && !*abandoned;
}

static bool wait_in_line(rowlock_pool *pool, struct rlk_slot *slot, bool *abandoned)
{
    *abandoned = false;
    rlk_line_enter(pool, slot);
    return rlk_wait_turn(&slot->answered, slot->deadline_us) || give_up(pool, slot, abandoned);
}

static enum rlk_class end_in_line(struct rlk_slot *slot, bool answered, bool abandoned)
{
    if (answered)
        slot->state = RLK_SLOT_FREE;
    return answered ? slot->class : abandoned ? RLK_UNCERTAIN : RLK_CONTENTION;
}

struct rlk_pooled *rlk_line_wait(rowlock_pool *pool, int64_t deadline_us)
{
    struct rlk_slot slot = {.kind = RLK_STEP_NONE, .deadline_us = deadline_us};
    struct rlk_pooled *conn = rlk_line_idle(pool);
    bool abandoned;
    if (conn)
        return conn;
    rlk_turn_init(&slot.answered);
    conn = wait_in_line(pool, &slot, &abandoned) ? slot.got : NULL;
    sem_destroy(&slot.answered.posted);
    return conn;
}

enum rlk_class rlk_line_send(rowlock_pool *pool, struct rlk_slot *slot, bool *abandoned)
{
    bool answered = wait_in_line(pool, slot, abandoned);
    return end_in_line(slot, answered, *abandoned);
}

/* The mutex: the thread that has answered is through with the slot. */
bool rlk_line_take(rowlock_pool *pool, struct rlk_slot *slot, enum rlk_class *class,
                   bool *abandoned)
{
    pthread_mutex_lock(&pool->mutex);
    bool answered = rlk_turn_came(&slot->answered);
    pthread_mutex_unlock(&pool->mutex);
    *abandoned = false;
    if (!answered && rlk_now_us() < slot->deadline_us)
        return false;
    answered = answered || give_up(pool, slot, abandoned);
    *class = end_in_line(slot, answered, *abandoned);
    return true;
}

/* ---- the threads */

/* A handle that does not block may be closed once it has seen the answer. It locks the mutex for
 * that, so it waits for this post. */
static void answer_unlocked(rowlock_pool *pool, struct rlk_slot *slot)
{
    bool stepped = slot->answered.alarm >= 0;
    if (stepped)
        pthread_mutex_lock(&pool->mutex);
    answer(slot);
    if (stepped)
        pthread_mutex_unlock(&pool->mutex);
}

static bool is_worth_again(const struct rlk_slot *slot)
{
    return rlk_is_away(slot->class) && slot->worth_until_us > slot->deadline_us &&
           slot->worth_until_us > rlk_now_us();
}

/* Puts slots in line again. Once the last handle is closed, all that is left is given up. */
static void send_again(struct rlk_pooled *conn, struct rlk_slot *first)
{
    rowlock_pool *pool = conn->pool;
    rlk_wait_plain(AGAIN_US);
    pthread_mutex_lock(&pool->mutex);
    while (first) {
        struct rlk_slot *slot = first;
        first = slot->next;
        slot->again = true;
        change(slot, RLK_SLOT_TAKEN, RLK_SLOT_WAITS);
        add(pool, slot);
    }
    while (conn->stop && (first = first_in_line(pool))) {
        remove_slot(pool, first);
        rlk_slot_free(first);
    }
    pthread_mutex_unlock(&pool->mutex);
}

static bool is_answered(const struct rlk_slot *slot)
{
    return slot->step && !rlk_is_away(slot->class);
}

/* Returns whether the server has answered. */
static bool send_all(struct rlk_pooled *conn, struct rlk_slot *first)
{
    struct rlk_slot *again = NULL;
    rlk_batch_run(conn, first);
    bool answered = is_answered(first);
    while (first) {
        struct rlk_slot *slot = first;
        first = slot->next;
        if (!is_worth_again(slot)) {
            answer_unlocked(conn->pool, slot);
            continue;
        }
        slot->next = again;
        again = slot;
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
        while (sem_wait(&conn->go) != 0)
            ;
        pthread_mutex_lock(&pool->mutex);
        struct rlk_slot *first = conn->work;
        conn->work = NULL;
        stop = conn->stop;
        while (first) {
            bool several = first->next != NULL;
            pthread_mutex_unlock(&pool->mutex);
            bool answered = send_all(conn, first);
            /* Their next steps go along, if they are quick. */
            if (several)
                sched_yield();
            pthread_mutex_lock(&pool->mutex);
            pool->away = pool->away && !answered;
            first = next_work(pool, conn);
        }
        pthread_mutex_unlock(&pool->mutex);
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
        pthread_mutex_lock(&pool->mutex);
        conn->stop = true;
        pthread_mutex_unlock(&pool->mutex);
        sem_post(&conn->go);
        pthread_join(conn->thread, NULL);
        conn->has_thread = false;
    }
}
