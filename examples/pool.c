/* SPDX-License-Identifier: MIT
 *
 * Many threads, two connections: each thread locks the orders that it works on, one after the
 * other. Another thread may be at the same order: then this one waits for it. One keeper of the
 * library renews the locks of all threads, through the same two connections.
 *
 *     pool [URL]      else ROWLOCK_URL, else a file of its own */
#include <rowlock/admin.h>
#include <rowlock/pool.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 16, ORDERS = 8 };

struct worker {
    pthread_t thread;
    rowlock_pool *pool;
    int first;
    /* out */
    int done, result;
    rowlock_error error;
};

/* Each order is worked on by two threads in turn. LOST: the lease was over before the work was, so
 * another thread may have worked on the order too. */
static int work_on(rowlock_db *db, int order)
{
    char name[32];
    rowlock_lock *lock = NULL;
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = 10000;
    options.keep = 1;
    snprintf(name, sizeof name, "order %d", order);
    int result = rowlock_lock_open(db, name, &lock);
    if (result == ROWLOCK_OK)
        result = rowlock_acquire(lock, &options);
    /* Here the order is ours. Before a step that must not be done twice, look at
     * rowlock_lock_state(). */
    if (result == ROWLOCK_OK)
        result = rowlock_release(lock);
    rowlock_lock_close(lock);
    return result;
}

static void *work(void *context)
{
    struct worker *w = context;
    rowlock_db *db = NULL;
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.pool = w->pool;
    w->result = rowlock_db_open(NULL, &options, &db, &w->error);
    while (w->result == ROWLOCK_OK && w->done < ORDERS) {
        w->result = work_on(db, (w->first + w->done) % ORDERS);
        w->done += w->result == ROWLOCK_OK;
    }
    if (w->result < 0)
        w->error = *rowlock_db_error(db);
    rowlock_db_close(db);
    return NULL;
}

static void complain(const struct worker *w)
{
    if (w->result == ROWLOCK_LOST)
        fprintf(stderr, "pool: a lease was over too early: check order %d\n",
                (w->first + w->done) % ORDERS);
    else if (w->result < 0)
        fprintf(stderr, "pool: %s: %s\n", w->error.action, w->error.text);
    else
        fprintf(stderr, "pool: %s\n", rowlock_result_name(w->result));
}

static int run(rowlock_pool *pool)
{
    static struct worker workers[THREADS];
    int started = 0, done = 0;
    for (; started < THREADS; started++) {
        workers[started] = (struct worker){.pool = pool, .first = started % ORDERS};
        workers[started].error.size = sizeof workers[started].error;
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0)
            break;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        done += workers[i].done;
        if (workers[i].done < ORDERS)
            complain(&workers[i]);
    }
    printf("%d threads did %d orders over two connections\n", started, done);
    return done == THREADS * ORDERS ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int install(rowlock_pool *pool, rowlock_error *err)
{
    rowlock_db *db = NULL;
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.pool = pool;
    int result = rowlock_db_open(NULL, &options, &db, err);
    if (result == ROWLOCK_OK && (result = rowlock_install(db)) != ROWLOCK_OK)
        *err = *rowlock_db_error(db);
    rowlock_db_close(db);
    return result;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : getenv("ROWLOCK_URL");
    rowlock_pool *pool = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    int status = EXIT_FAILURE;
    int result = rowlock_pool_open(url ? url : "sqlite:pool.db", NULL, &pool, &err);
    if (result == ROWLOCK_OK)
        result = install(pool, &err);
    if (result == ROWLOCK_OK)
        status = run(pool);
    else
        fprintf(stderr, "pool: %s: %s\n", err.action, err.text);
    rowlock_pool_close(pool);
    return status;
}
