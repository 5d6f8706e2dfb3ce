/* SPDX-License-Identifier: MIT
 * What may use a rowlock_db: the process that opened it. While a started acquire runs, only its
 * thread. */
#include "base/error.h"
#include "base/options.h"
#include "core/port.h"

#include <string.h>
#include <unistd.h>

bool rlk_is_ours(const rowlock_db *db)
{
    bool inside = !db->steps && rlk_thread_is_this(db->worker);
    return db->pid == getpid() && (!db->working || inside);
}

void rlk_use_in_thread(const struct rlk_driver *backend, bool begins)
{
    if (backend->use_in_thread)
        backend->use_in_thread(begins);
}

int rlk_enter(rowlock_db *db, const char *verb, const char *name)
{
    if (!db || db->tag != RLK_DB_TAG || !rlk_is_ours(db))
        return ROWLOCK_EMISUSE;
    rlk_action(db, verb, name);
    return ROWLOCK_OK;
}

int rlk_enter_open(rowlock_db *db, const char *verb, const char *name, void *out)
{
    if (out)
        memset(out, 0, sizeof(void *));
    int result = rlk_enter(db, verb, name);
    if (result != ROWLOCK_OK || out)
        return result;
    return rlk_fail(db, ROWLOCK_EINVAL, "the place for the new handle is NULL");
}

int rlk_need_database(rowlock_db *db, int entered)
{
    if (entered != ROWLOCK_OK || !db->port || !db->port->only_locks)
        return entered;
    return rlk_fail(db, ROWLOCK_EUNSUPPORTED, "%s", db->port->only_locks);
}

int rlk_end_call(rowlock_db *db, int result)
{
    rlk_error_end(&db->error, result);
    return result;
}

/* For results that rlk_end_call() has set. A busy try is fast, so it formats no text. */
static const char *text_of(int result)
{
    static const char *const texts[] = {
        [ROWLOCK_OK] = "",
        [ROWLOCK_BUSY] =
            "another owner holds the lock, or is ahead in the queue: try again, or wait",
        [ROWLOCK_TIMEOUT] = "another owner still held the lock at the end of the wait: try again",
        [ROWLOCK_LAPSED] = "the lease had run out, and nothing protected the work for a while",
        [ROWLOCK_CANCELLED] = "rowlock_cancel() or a callback ended it",
        [ROWLOCK_NONE] = "there is no such thing in the tables",
        [ROWLOCK_DONE] = "it was done before: rowlock_once_result() has the result",
    };
    bool known = result >= 0 && (size_t)result < sizeof texts / sizeof *texts && texts[result];
    return known ? texts[result] : "a callback returned this";
}

#define NO_HANDLE(...)                                                                         \
    {                                                                                          \
        .size = sizeof(rowlock_error), .code = ROWLOCK_EMISUSE, .row = -1, .text = __VA_ARGS__ \
    }

/* The text of a result that is no error is filled in when it is asked for. */
const rowlock_error *rowlock_db_error(const rowlock_db *db)
{
    static const rowlock_error none = NO_HANDLE("the handle is NULL or closed");
    static const rowlock_error inherited =
        NO_HANDLE("the handle belongs to the process that forked this one; open another here");
    static const rowlock_error under_way =
        NO_HANDLE("an acquire that was started is under way; step until it has ended");
    if (!db || db->tag != RLK_DB_TAG)
        return &none;
    if (!rlk_is_ours(db))
        return db->pid != getpid() ? &inherited : &under_way;
    rowlock_error *error = &((rowlock_db *)(uintptr_t)db)->error;
    const char *text = text_of(error->code);
    if (!error->text[0])
        rlk_copy_text(error->text, sizeof error->text, text, strlen(text));
    error->size = sizeof *error;
    return error;
}

int rowlock_db_stats(rowlock_db *db, rowlock_stats *out)
{
    if (!db || db->tag != RLK_DB_TAG || !out || !rlk_is_ours(db))
        return ROWLOCK_EMISUSE;
    rowlock_stats stats = db->stats;
    stats.renewals = atomic_load_explicit(&db->renewals, memory_order_relaxed);
    rlk_give_struct(out, &stats, sizeof stats);
    return ROWLOCK_OK;
}

void rowlock_cancel(rowlock_db *db)
{
    /* A forked child shares the pipe with its parent. */
    if (!db || db->tag != RLK_DB_TAG || db->pid != getpid())
        return;
    rlk_cancel_wait(&db->waiting);
}

/* The handle's random seed and a count. Two numbers of one handle differ. Those of two handles are
 * equal with a chance of one in 2^63. The odd factor (2^64 over the golden ratio) spreads the
 * counts. */
int64_t rlk_next_number(rowlock_db *db)
{
    return (int64_t)((db->seed + ++db->numbers * 0x9E3779B97F4A7C15u) >> 1);
}
