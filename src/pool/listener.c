/* SPDX-License-Identifier: MIT
 * One connection hears the wake-ups for all waiters of the pool, where a step LISTEN can give it an
 * address. Their tickets have that address. Without it, or while it is lost, waiters look more
 * often. */
#include "pool/pool.h"
#include "core/ask.h"

#include <stdlib.h>
#include <string.h>

enum { RETRY_US = 1000000, LONG_US = 60000000 };

static void set_address(rowlock_pool *pool, const char *address)
{
    rlk_lock(&pool->mutex);
    memcpy(pool->address, address, sizeof pool->address);
    rlk_unlock(&pool->mutex);
}

/* The waiters look now: a wake-up may have come to the connection that was lost. */
static bool begin_to_listen(rowlock_pool *pool, int64_t deadline_us)
{
    static const struct rlk_field text[] = {{.size = RLK_ADDRESS, .is_text = true}};
    char address[RLK_ADDRESS] = "";
    struct rlk_call call = {.deadline_us = deadline_us};
    /* The address is the driver's. "": wake-ups cannot reach this connection. */
    struct rlk_ask ask = {.step = RLK_STEP_LISTEN, .fields = text, .out = address};
    const struct rlk_request anyone = {.number = 1};
    if (rlk_pool_run(&pool->listener, &call, &ask) != RLK_DONE)
        return false;
    rlk_tell(pool->listener.db, RLK_OUTSIDE, RLK_ENQUEUED, &anyone, 1);
    set_address(pool, address);
    rlk_waiter_wake_all(pool);
    return true;
}

/* Called with the text of each wake-up: the number of a request. */
static void heard(void *context, const char *text)
{
    rowlock_pool *pool = context;
    rlk_lock(&pool->mutex);
    rlk_waiter_wake_request(pool, strtoll(text, NULL, 10));
    rlk_unlock(&pool->mutex);
}

/* Returns false when the connection is lost. Returns true when the thread must end, or no wake-up
 * can reach this connection. */
static bool listen_on(rowlock_pool *pool)
{
    rowlock_db *db = pool->listener.db;
    const struct rlk_request anyone = {.number = 1};
    enum rlk_class class = RLK_DONE;
    enum rlk_wakeup out = RLK_SILENT;
    while (class == RLK_DONE && out != RLK_INTERRUPTED && out != RLK_NO_WAKEUPS) {
        struct rlk_call call = {.deadline_us = rlk_now_us() + LONG_US};
        class = db->driver->await(db->conn, &call, &anyone, db->waiting.wake[0], &out);
    }
    if (class != RLK_DONE)
        rlk_lose(db);
    return rlk_is_up(db);
}

static bool must_stop(rowlock_pool *pool)
{
    rlk_lock(&pool->mutex);
    bool stop = pool->listener.stop;
    rlk_unlock(&pool->mutex);
    return stop;
}

static void *hear(void *context)
{
    rowlock_pool *pool = context;
    rowlock_db *db = pool->listener.db;
    rlk_use_in_thread(pool->real, true);
    while (!must_stop(pool)) {
        if (!begin_to_listen(pool, rlk_now_us() + db->target.connect_ms * 1000))
            rlk_wait_until(&db->waiting, rlk_now_us() + rlk_jitter(&db->waiting, RETRY_US));
        else if (listen_on(pool))
            break;
        set_address(pool, (char[RLK_ADDRESS]){""});
    }
    rlk_use_in_thread(pool->real, false);
    return NULL;
}

/* The first waiters have no address yet. They are woken when it is there, and take it along. */
void rlk_listener_address(rowlock_pool *pool, char out[RLK_ADDRESS])
{
    rlk_lock(&pool->mutex);
    if (!pool->ear_begun && pool->texts.sql[RLK_STEP_LISTEN]) {
        pool->ear_begun = true;
        pool->listener.db->target.heard = heard;
        pool->listener.db->target.heard_context = pool;
        pool->listener.has_thread = rlk_thread_start(&pool->listener.thread, hear, pool);
    }
    memcpy(out, pool->address, RLK_ADDRESS);
    rlk_unlock(&pool->mutex);
}

void rlk_listener_close(rowlock_pool *pool)
{
    if (!pool->listener.has_thread)
        return;
    rlk_lock(&pool->mutex);
    pool->listener.stop = true;
    rlk_unlock(&pool->mutex);
    rlk_cancel_wait(&pool->listener.db->waiting);
    rlk_thread_join(pool->listener.thread);
    pool->listener.has_thread = false;
}
