/* SPDX-License-Identifier: MIT
 * Who may use a rowlock_db: the process that opened it. While a started acquire runs, only its
 * thread. */
#include "base/error.h"
#include "base/fiber.h"
#include "seam/db.h"

#include <pthread.h>
#include <unistd.h>

bool rlk_is_ours(const rowlock_db *db)
{
    bool inside =
        db->fiber ? rlk_fiber_current() == db->fiber : pthread_equal(db->worker, pthread_self());
    return db->pid == getpid() && (!db->working || inside);
}

int rlk_enter(rowlock_db *db, const char *verb, const char *name)
{
    if (!db || db->tag != RLK_DB_TAG)
        return ROWLOCK_EMISUSE;
    if (!rlk_is_ours(db))
        return ROWLOCK_EMISUSE;
    rlk_action(db, verb, name);
    return ROWLOCK_OK;
}

void rowlock_db_error(const rowlock_db *db, rowlock_error *err)
{
    static const rowlock_error inherited = {
        .size = sizeof inherited,
        .code = ROWLOCK_EMISUSE,
        .row = -1,
        .text = "the handle belongs to the process that forked this one; open another here"};
    static const rowlock_error under_way = {
        .size = sizeof under_way,
        .code = ROWLOCK_EMISUSE,
        .row = -1,
        .text = "an acquire that was started is under way; step until it has ended"};
    if (!db || db->tag != RLK_DB_TAG)
        return;
    rlk_error_copy(err, db->pid != getpid() ? &inherited
                        : rlk_is_ours(db)   ? &db->error
                                            : &under_way);
}

void rowlock_cancel(rowlock_db *db)
{
    /* A forked child shares the pipe with its parent. */
    if (!db || db->tag != RLK_DB_TAG || db->pid != getpid())
        return;
    rlk_wake(&db->waiting);
}

/* The handle's random seed and a count. Two numbers of one handle differ. Those of two handles are
 * equal with a chance of one in 2^63. The odd factor (2^64 over the golden ratio) spreads the
 * counts. */
int64_t rlk_next_number(rowlock_db *db)
{
    return (int64_t)((db->seed + ++db->numbers * 0x9E3779B97F4A7C15u) >> 1);
}
