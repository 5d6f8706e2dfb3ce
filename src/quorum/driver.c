/* SPDX-License-Identifier: MIT
 * The operations of a driver, for a handle of a quorum. */
#include "quorum/quorum.h"
#include "core/ask.h"
#include "core/core.h"

#include <string.h>

/* The steps on the first member's queue give up after this: the queue is a hint. */
enum { HINT_US = 1000000 };

struct handle {
    struct rlk_quorum *quorum;
    /* Core has begun what it takes for a transaction. */
    bool framed;
    /* The quorum's identity, as its members have it. */
    char identity[64];
};

/* ---- the connection */

static size_t count_voters(struct rlk_quorum *quorum)
{
    struct rlk_call ignored = {0};
    size_t voters = 0;
    pthread_mutex_lock(&quorum->mutex);
    for (size_t i = 0; i < quorum->count; i++)
        voters += rlk_roll_judge(quorum->roll, quorum->count, i, &ignored) == RLK_DONE;
    pthread_mutex_unlock(&quorum->mutex);
    return voters;
}

static void take_identity(struct handle *h)
{
    struct rlk_call ignored = {0};
    pthread_mutex_lock(&h->quorum->mutex);
    for (size_t i = 0; i < h->quorum->count; i++)
        if (rlk_roll_judge(h->quorum->roll, h->quorum->count, i, &ignored) == RLK_DONE)
            memcpy(h->identity, h->quorum->roll[i].quorum, sizeof h->identity);
    pthread_mutex_unlock(&h->quorum->mutex);
}

static enum rlk_class quorum_open(void *conn, struct rlk_call *call,
                                  const struct rlk_target *target, const struct rlk_texts *texts,
                                  struct rlk_hello *hello)
{
    struct handle *h = conn;
    (void)texts;
    (void)hello;
    h->quorum = target->quorum;
    struct rlk_round like = {.step = RLK_STEP_META, .deadline_us = call->deadline_us};
    struct rlk_round *round = rlk_round_begin(h->quorum, &like, ~0u);
    if (!round)
        return RLK_NOMEM;
    /* Which members may vote is known when a majority of them is reached. */
    bool enough;
    do
        enough = count_voters(h->quorum) >= h->quorum->majority;
    while (!enough && rlk_round_wait(round));
    enum rlk_class class = enough ? RLK_DONE : rlk_quorum_failure(round, call);
    rlk_round_end(round, RLK_ROUND_OVER);
    if (class == RLK_DONE)
        take_identity(h);
    return class;
}

static enum rlk_class quorum_adopt(void *conn, struct rlk_call *call, void *vendor,
                                   const struct rlk_texts *texts, struct rlk_hello *hello)
{
    (void)conn;
    (void)vendor;
    (void)texts;
    (void)hello;
    return rlk_refuse(call, RLK_UNSUPPORTED, "a quorum adopts no connection");
}

static void quorum_close(void *conn, bool in_child)
{
    (void)conn;
    (void)in_child;
}

/* ---- what a quorum does not do */

static const char only_locks[] =
    "a quorum has locks only: do this with the URL of each member, or of the database that has the "
    "data";
static const char one_lock[] =
    "a quorum grants one lock at a time: acquire them one after the other, in the same order "
    "everywhere";
static const char no_note[] =
    "a quorum does not change notes: give the note in rowlock_acquire_options";
static const char no_guard[] =
    "one member's transaction proves nothing about a majority; fence by token in the database of "
    "the data (rowlock_fence())";

/* Core renews many leases in what it takes for a transaction. Each is renewed by itself. */
static enum rlk_class quorum_frame(void *conn, struct rlk_call *call, enum rlk_frame what)
{
    struct handle *h = conn;
    call->inside = h->framed;
    if (what == RLK_LOOK)
        return RLK_DONE;
    if (what != RLK_BEGIN && what != RLK_COMMIT && what != RLK_ROLLBACK)
        return rlk_refuse(call, RLK_UNSUPPORTED, "%s", only_locks);
    h->framed = what == RLK_BEGIN;
    return RLK_DONE;
}

/* ---- the queue, on the first member */

static enum rlk_class run_hint(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct rlk_query *query = context;
    struct rlk_sending s = {.step = query->step,
                            .in = query->given,
                            .wakes = query->wakes,
                            .read = rlk_quorum_take_row,
                            .out = query};
    enum rlk_class class = rlk_send(db, call, &s);
    query->changed = s.changed;
    query->counted = s.rows == 0 && (rlk_steps[query->step].is & RLK_COUNTS);
    return class;
}

/* While the first member is away there is no queue. Waiters look, as they do without wake-ups. */
static enum rlk_class no_queue(struct rlk_query *query)
{
    const rowlock_value first[] = {rowlock_int(1), rowlock_int(0), rowlock_null()};
    query->counted = (rlk_steps[query->step].is & RLK_COUNTS) != 0;
    query->changed = 0;
    return query->step == RLK_STEP_ENQUEUE ? rlk_quorum_give(query, first, 3) : RLK_DONE;
}

static enum rlk_class send_hint(struct handle *h, struct rlk_query *query)
{
    rowlock_db *db = h->quorum->queue;
    int64_t until_us = rlk_now_us() + HINT_US;
    struct rlk_step_call step = {.run = run_hint, .context = query, .not_after_us = until_us};
    struct rlk_call call;
    int result = ROWLOCK_OK;
    rlk_action(db, "use the queue of the quorum", NULL);
    enum rlk_class class = rlk_send_once(db, &step, &call, &result);
    if (class == RLK_UNSENT || class == RLK_UNCERTAIN)
        db->up = false;
    bool sent = class == RLK_DONE && result == ROWLOCK_OK;
    if (query->step == RLK_STEP_ENQUEUE)
        h->quorum->queued = sent;
    return sent ? RLK_DONE : no_queue(query);
}

static bool quorum_note(void *conn, struct rlk_call *call, enum rlk_news news,
                        const struct rlk_request *request, int64_t number)
{
    struct handle *h = conn;
    rowlock_db *db = h->quorum->queue;
    bool there = h->quorum->queued && db->up && db->backend->note;
    if (news != RLK_ENQUEUED && there)
        h->quorum->queued = false;
    return there && db->backend->note(db->conn, call, news, request, number);
}

static enum rlk_class quorum_await(void *conn, struct rlk_call *call,
                                   const struct rlk_request *request, int wake,
                                   enum rlk_wakeup *out)
{
    struct handle *h = conn;
    rowlock_db *db = h->quorum->queue;
    *out = RLK_NO_WAKEUPS;
    if (!h->quorum->queued || !db->up || !db->backend->await)
        return RLK_DONE;
    if (db->backend->await(db->conn, call, request, wake, out) != RLK_DONE)
        db->up = false;
    return RLK_DONE;
}

/* ---- steps */

/* The members check their own tables. Of the quorum only this is known. */
static enum rlk_class give_meta(const struct handle *h, struct rlk_query *query)
{
    const rowlock_value cells[] = {
        rowlock_int(RLK_LEVEL), rowlock_int(1), rowlock_int(RLK_CODE), rowlock_text(h->identity),
        rowlock_int(0),         rowlock_int(0), rowlock_int(0)};
    return rlk_quorum_give(query, cells, 7);
}

static enum rlk_class quorum_query(void *conn, struct rlk_call *call, struct rlk_query *query)
{
    struct handle *h = conn;
    if (call->where == RLK_INSIDE && !h->framed)
        return RLK_NO_TX;
    switch (query->step) {
    case RLK_STEP_META:
        return give_meta(h, query);
    case RLK_STEP_ACQUIRE:
        return rlk_quorum_acquire(h->quorum, call, query);
    case RLK_STEP_RENEW:
    case RLK_STEP_RENEW_ALL:
        return rlk_quorum_renew(h->quorum, call, query);
    case RLK_STEP_LAST:
        return rlk_quorum_last(h->quorum, call, query);
    case RLK_STEP_VERIFY:
        return rlk_quorum_verify(h->quorum, call, query);
    case RLK_STEP_RELEASE:
    case RLK_STEP_WITHDRAW:
        return rlk_quorum_remove(h->quorum, call, query);
    case RLK_STEP_LIST:
        return rlk_quorum_forward(h->quorum, call, query);
    case RLK_STEP_ENQUEUE:
    case RLK_STEP_LEAVE:
    case RLK_STEP_CYCLE:
    case RLK_STEP_WAITERS:
        return send_hint(h, query);
    case RLK_STEP_FENCE:
        return rlk_refuse(call, RLK_UNSUPPORTED, "%s", no_guard);
    /* The first step of an acquire of several. */
    case RLK_STEP_LOOK:
        return rlk_refuse(call, RLK_UNSUPPORTED, "%s", one_lock);
    case RLK_STEP_NOTE:
        return rlk_refuse(call, RLK_UNSUPPORTED, "%s", no_note);
    default:
        return rlk_refuse(call, RLK_UNSUPPORTED, "%s", only_locks);
    }
}

void rlk_quorum_texts(struct rlk_texts *texts)
{
    static char there[] = "a round of the quorum";
    static const enum rlk_step steps[] = {
        RLK_STEP_META,    RLK_STEP_ACQUIRE, RLK_STEP_RENEW,    RLK_STEP_RENEW_ALL,
        RLK_STEP_VERIFY,  RLK_STEP_RELEASE, RLK_STEP_WITHDRAW, RLK_STEP_LIST,
        RLK_STEP_LAST,    RLK_STEP_ENQUEUE, RLK_STEP_LEAVE,    RLK_STEP_CYCLE,
        RLK_STEP_WAITERS, RLK_STEP_FENCE,   RLK_STEP_NOTE,     RLK_STEP_LOOK};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        texts->sql[steps[i]] = there;
    texts->shared = true;
}

const struct rlk_backend rlk_quorum_driver = {.name = "quorum",
                                              .schemes = (const char *const[]){NULL},
                                              .conn_size = sizeof(struct handle),
                                              .quote = '"',
                                              .marker = '?',
                                              .packing = RLK_SINGLY,
                                              .advises = true,
                                              .called = "a majority of the members",
                                              .no_guard = no_guard,
                                              .only_locks = only_locks,
                                              .open = quorum_open,
                                              .adopt = quorum_adopt,
                                              .close = quorum_close,
                                              .note = quorum_note,
                                              .await = quorum_await,
                                              .query = quorum_query,
                                              .frame = quorum_frame};
