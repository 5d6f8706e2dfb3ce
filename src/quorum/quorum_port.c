/* SPDX-License-Identifier: MIT
 * What a handle of a quorum asks, and which function answers it. */
#include "quorum/quorum.h"
#include "core/ask.h"
#include "core/port.h"

#include <string.h>

/* The steps on the first member's queue give up after this: the queue is a hint. */
enum { HINT_US = 1000000 };

struct handle {
    struct rlk_quorum *quorum;
    /* The identity of the quorum, as its members have it. */
    char identity[64];
};

/* ---- the connection */

static enum rlk_class quorum_open(rowlock_db *db, struct rlk_call *call, struct rlk_hello *hello)
{
    struct handle *h = db->conn;
    struct rlk_quorum *quorum = h->quorum = db->quorum;
    (void)hello;
    /* Which members may vote is known when a majority of them is reached. */
    const struct rlk_ballot like = {
        .step = RLK_STEP_META, .deadline_us = call->deadline_us, .views = quorum->view};
    struct rlk_round *round = rlk_round_begin(quorum, &like, NULL, ~0u);
    if (!round)
        return RLK_NOMEM;
    bool enough = rlk_round_decide(round) == RLK_ROUND_ENOUGH;
    enum rlk_class class = enough ? RLK_DONE : rlk_round_failure(round, call);
    rlk_round_end(round);
    rlk_lock(&quorum->mutex);
    for (size_t i = 0; i < quorum->count && enough; i++)
        if (rlk_view_vote(quorum->view, quorum->count, i) == RLK_VOTE_YES)
            memcpy(h->identity, quorum->view[i].quorum, sizeof h->identity);
    rlk_unlock(&quorum->mutex);
    return class;
}

static void quorum_close(rowlock_db *db, bool in_child)
{
    (void)db;
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

/* ---- the queue, on the first member */

/* While the first member is away there is no queue. Waiters look, as they do without wake-ups. */
static enum rlk_class send_hint(struct handle *h, struct rlk_ask *ask)
{
    rowlock_db *db = h->quorum->queue;
    struct rlk_ask hint = {.step = ask->step,
                           .wakes = ask->wakes,
                           .read = ask->read,
                           .out = ask->out,
                           .fields = ask->fields,
                           .not_after_us = rlk_now_us() + HINT_US};
    struct rlk_call call;
    int result = ROWLOCK_OK;
    memcpy(hint.in, ask->in, sizeof hint.in);
    rlk_action(db, "use the queue of the quorum", NULL);
    enum rlk_class class = rlk_attempt(db, &hint, &call, &result);
    if (rlk_is_gone(class))
        rlk_lose(db);
    bool sent = class == RLK_DONE && result == ROWLOCK_OK;
    if (ask->step == RLK_STEP_ENQUEUE)
        h->quorum->queued = sent;
    if (!sent && ask->step == RLK_STEP_ENQUEUE)
        return rlk_quorum_give(
            ask, (rowlock_value[]){rowlock_int(1), rowlock_int(0), rowlock_null()}, 3);
    if (!sent)
        return RLK_DONE;
    ask->rows = hint.rows;
    ask->changed = hint.changed;
    return RLK_DONE;
}

static bool quorum_tell(rowlock_db *db, struct rlk_call *call, enum rlk_news news,
                        const struct rlk_request *request, int64_t number)
{
    struct rlk_quorum *quorum = db->quorum;
    rowlock_db *queue = quorum->queue;
    bool there = quorum->queued && rlk_is_up(queue) && queue->driver->tell;
    if (news != RLK_ENQUEUED && there)
        quorum->queued = false;
    return there && queue->driver->tell(queue->conn, call, news, request, number);
}

static enum rlk_class quorum_await(rowlock_db *db, struct rlk_call *call,
                                   const struct rlk_request *request, enum rlk_wakeup *out)
{
    rowlock_db *queue = db->quorum->queue;
    int wake = db->waiting.wake[0];
    *out = RLK_NO_WAKEUPS;
    if (!db->quorum->queued || !rlk_is_up(queue) || !queue->driver->await)
        return RLK_DONE;
    if (queue->driver->await(queue->conn, call, request, wake, out) != RLK_DONE)
        rlk_lose(queue);
    return RLK_DONE;
}

/* ---- steps */

/* The members check their own tables. Of the quorum only this is known. */
static enum rlk_class give_meta(const struct handle *h, struct rlk_ask *ask)
{
    const rowlock_value cells[] = {
        rowlock_int(RLK_LEVEL), rowlock_int(1), rowlock_int(RLK_CODE), rowlock_text(h->identity),
        rowlock_int(0),         rowlock_int(0), rowlock_int(0)};
    return rlk_quorum_give(ask, cells, 7);
}

static enum rlk_class ask_step(struct handle *h, struct rlk_call *call, struct rlk_ask *ask)
{
    switch (ask->step) {
    case RLK_STEP_META:
        return give_meta(h, ask);
    case RLK_STEP_ACQUIRE:
    case RLK_STEP_RENEW:
    case RLK_STEP_RENEW_ALL:
    case RLK_STEP_LAST:
    case RLK_STEP_VERIFY:
    case RLK_STEP_RELEASE:
    case RLK_STEP_WITHDRAW:
    case RLK_STEP_LIST:
        return rlk_quorum_ask(h->quorum, call, ask);
    case RLK_STEP_ENQUEUE:
    case RLK_STEP_LEAVE:
    case RLK_STEP_CYCLE:
    case RLK_STEP_WAITERS:
        return send_hint(h, ask);
    case RLK_STEP_FENCE:
        return rlk_refuse(call, RLK_UNSUPPORTED, "%s", no_guard);
    case RLK_STEP_ACQUIRE_ALL:
        return rlk_refuse(call, RLK_UNSUPPORTED, "%s", one_lock);
    case RLK_STEP_NOTE:
        return rlk_refuse(call, RLK_UNSUPPORTED, "%s", no_note);
    default:
        return rlk_refuse(call, RLK_UNSUPPORTED, "%s", only_locks);
    }
}

static enum rlk_class quorum_ask(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask)
{
    if (ask->frame == RLK_LOOK)
        return RLK_DONE;
    if (call->where == RLK_INSIDE)
        return RLK_NO_TX;
    if (!ask->step)
        return ask->frame || ask->query || ask->script
                   ? rlk_refuse(call, RLK_UNSUPPORTED, "%s", only_locks)
                   : RLK_DONE;
    if (!ask->run)
        rlk_query_begin(db, ask);
    enum rlk_class class = ask_step(db->conn, call, ask);
    if (!ask->run)
        class = rlk_query_end(db, call, ask, class, false);
    return class == RLK_DONE ? rlk_judge(call, ask, rlk_has_decided(ask)) : class;
}

const struct rlk_port rlk_quorum_port = {.state_size = sizeof(struct handle),
                                         .advises = true,
                                         .called = "a majority of the members",
                                         .no_guard = no_guard,
                                         .only_locks = only_locks,
                                         .open = quorum_open,
                                         .close = quorum_close,
                                         .tell = quorum_tell,
                                         .await = quorum_await,
                                         .ask = quorum_ask};

const struct rlk_driver rlk_quorum_driver = {
    .name = "quorum", .schemes = (const char *const[]){NULL}, .packing = RLK_SINGLY};
