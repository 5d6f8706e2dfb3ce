/* SPDX-License-Identifier: MIT
 * Acquiring without blocking the caller. A thread does what rowlock_acquire() does, and writes to a
 * pipe when it has ended. A handle whose driver does not block needs no thread: stepped.c. While it
 * runs, only the thread may use the rowlock_db: other calls are refused (rlk_is_ours). */
#include "lock/acquire.h"
#include "core/port.h"

#include <rowlock/async.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct rlk_started {
    rowlock_lock *lock;
    rowlock_acquire_options options;
    char note[RLK_TEXT_MAX + 1];
    pthread_t thread;
    /* In place of the thread. NULL: there is one. */
    struct rlk_stepped *stepped;
    /* A pipe: the thread writes to it when it has ended. */
    int done[2];
    int result;
    /* It is no re-entry, and may wait. */
    bool waits;
};

static void *work(void *context)
{
    struct rlk_started *s = context;
    rowlock_db *db = s->lock->db;
    /* Wait until open_thread() has set db->worker. */
    rlk_lock(&db->starting);
    rlk_unlock(&db->starting);
    rlk_use_in_thread(db->driver, true);
    rlk_action(db, "acquire lock", s->lock->name);
    s->result = rlk_acquire(s->lock, &s->options);
    rlk_use_in_thread(db->driver, false);
    /* Closing the pipe would not be enough: a forked child may have it open. */
    ssize_t ignored = write(s->done[1], "", 1);
    (void)ignored;
    return NULL;
}

/* In place of a thread. Its first step is done here. The descriptor is readable if the acquire has
 * ended at once. */
static bool open_steps(rowlock_db *db, struct rlk_started *s)
{
    if (!db->port || !db->port->hand_in)
        return false;
    rlk_action(db, "acquire lock", s->lock->name);
    s->stepped = rlk_stepped_new(s->lock, &s->options);
    if (!s->stepped)
        return false;
    db->started = s;
    s->lock->started = true;
    db->working = db->steps = true;
    if (rlk_stepped_go(s->stepped, &s->result))
        rlk_alarm_set(db->waiting.turn.alarm, 0);
    return true;
}

static bool open_thread(rowlock_db *db, struct rlk_started *s)
{
    rlk_lock(&db->starting);
    bool started = rlk_thread_start(&s->thread, work, s);
    if (started) {
        db->worker = s->thread;
        db->started = s;
        s->lock->started = true;
        db->steps = false;
        db->working = true;
    }
    rlk_unlock(&db->starting);
    return started;
}

static int start(rowlock_lock *lock, const rowlock_acquire_options *options)
{
    rowlock_db *db = lock->db;
    struct rlk_started *s = rlk_alloc(sizeof *s);
    if (!s)
        return rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    s->lock = lock;
    s->options = *options;
    s->waits = options->wait_ms != 0 && lock->state == RLK_IDLE;
    memcpy(s->note, options->note, strlen(options->note) + 1);
    s->options.note = s->note;
    s->done[0] = s->done[1] = -1;
    if (open_steps(db, s))
        return ROWLOCK_OK;
    if (pipe2(s->done, O_CLOEXEC | O_NONBLOCK) != 0) {
        rlk_free(s);
        return rlk_fail(db, ROWLOCK_ENOMEM, "no file descriptors left");
    }
    if (open_thread(db, s))
        return ROWLOCK_OK;
    close(s->done[0]);
    close(s->done[1]);
    rlk_free(s);
    return rlk_fail(db, ROWLOCK_ENOMEM, "no thread can be started");
}

int rowlock_acquire_start(rowlock_lock *lock, const rowlock_acquire_options *options)
{
    rowlock_acquire_options o;
    int result = rlk_enter_acquire(lock, "start to acquire lock", options, &o);
    if (result != ROWLOCK_OK)
        return result;
    if (lock->db->started)
        return rlk_fail(lock->db, ROWLOCK_EMISUSE,
                        "an earlier start has not ended yet; step until it has");
    return start(lock, &o);
}

/* The acquire that was started for this lock, or NULL. In a forked child it is NULL, since the
 * thread is not there. */
static struct rlk_started *started_for(const rowlock_lock *lock)
{
    bool any = lock && lock->tag == RLK_LOCK_TAG && lock->db && lock->db->pid == getpid();
    struct rlk_started *s = any ? lock->db->started : NULL;
    return s && s->lock == lock ? s : NULL;
}

int rowlock_acquire_fd(const rowlock_lock *lock)
{
    const struct rlk_started *s = started_for(lock);
    return !s ? -1 : s->stepped ? s->lock->db->waiting.turn.alarm : s->done[0];
}

/* Waits for the end. */
static void join(rowlock_db *db)
{
    struct rlk_started *s = db->started;
    if (!s->stepped)
        rlk_thread_join(db->worker);
    while (s->stepped && !rlk_stepped_go(s->stepped, &s->result))
        rlk_wait_socket(db->waiting.turn.alarm, POLLIN, -1, INT64_MAX);
    db->working = false;
}

static bool has_ended(const struct rlk_started *s, int *result)
{
    char byte;
    if (s->stepped)
        return !s->lock->db->working || rlk_stepped_go(s->stepped, result);
    return read(s->done[0], &byte, 1) == 1;
}

static int finish(struct rlk_started *s)
{
    rowlock_db *db = s->lock->db;
    if (db->working)
        join(db);
    int result = s->result;
    /* A cancel may have come between the end of the wait and this step. */
    if (s->waits && !db->waiting.longer)
        rlk_take_cancel(&db->waiting);
    db->started = NULL;
    s->lock->started = false;
    for (int i = 0; i < 2; i++)
        if (s->done[i] >= 0)
            close(s->done[i]);
    rlk_free(s->stepped);
    rlk_free(s);
    return result;
}

static int refuse_step(const rowlock_lock *lock)
{
    int result = rlk_enter_lock(lock, "step to acquire lock");
    return result == ROWLOCK_OK ? rlk_fail(lock->db, ROWLOCK_EMISUSE, "no acquire was started")
                                : result;
}

int rowlock_acquire_step(rowlock_lock *lock)
{
    struct rlk_started *s = started_for(lock);
    if (!s)
        return refuse_step(lock);
    return has_ended(s, &s->result) ? finish(s) : ROWLOCK_PENDING;
}

void rlk_started_stop(rowlock_db *db)
{
    if (db->pid != getpid() || !db->working)
        return;
    rowlock_cancel(db);
    join(db);
    /* The thread may have ended before it saw the cancel. */
    rlk_take_cancel(&db->waiting);
}

void rlk_started_end(rowlock_lock *lock)
{
    rlk_started_stop(lock->db);
    struct rlk_started *s = started_for(lock);
    if (s)
        finish(s);
}
