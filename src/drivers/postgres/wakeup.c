/* SPDX-License-Identifier: MIT
 *
 * NOTIFY wakes a waiter, on a channel of its own connection. The connection listens from
 * rowlock_enqueue() until rowlock_leave(). libpq keeps notifications that arrive between steps. */
#include "driver.h"

#include <inttypes.h>
#include <stdio.h>

static bool take_notifications(struct conn *p)
{
    bool any = false;
    for (PGnotify *note; (note = PQnotifies(p->conn)) != NULL; PQfreemem(note)) {
        any = true;
        if (p->heard)
            p->heard(p->heard_context, note->extra);
    }
    return any;
}

/* Each open connection has its own server process, so the name is unique. */
const char *pg_channel(struct conn *p)
{
    uint64_t name = (uint64_t)PQbackendPID(p->conn) << 40 ^ (uint64_t)rlk_now_us();
    if (!p->direct)
        return "";
    if (!p->channel[0])
        snprintf(p->channel, sizeof p->channel, "rowlock_%016" PRIx64, name);
    return p->channel;
}

/* Drops notifications of a wait that is over. On an adopted connection they are the caller's. */
void pg_forget_wakeups(struct conn *p)
{
    if (p->direct && !p->listening)
        take_notifications(p);
}

bool pg_tell(void *conn, struct rlk_call *call, enum rlk_news news,
             const struct rlk_request *request, int64_t number)
{
    struct conn *p = conn;
    (void)call;
    if (news == RLK_ENQUEUED)
        p->listening = number != 0;
    else if (news == RLK_LEFT || (news == RLK_TAKEN && request->ticket))
        p->listening = false;
    return p->listening;
}

/* Sends nothing. A notification that came with the answer to an earlier step counts. An old one
 * costs one look at the queue. */
enum rlk_class pg_await(void *conn, struct rlk_call *call, const struct rlk_request *request,
                        int wake, enum rlk_wakeup *out)
{
    struct conn *p = conn;
    (void)request;
    *out = RLK_NO_WAKEUPS;
    if (!p->listening)
        return RLK_DONE;
    for (;;) {
        *out = take_notifications(p) ? RLK_WAKEUP : RLK_SILENT;
        if (*out == RLK_WAKEUP)
            return RLK_DONE;
        int ready = rlk_wait_socket(PQsocket(p->conn), POLLIN, wake, call->deadline_us);
        if (ready & RLK_WOKEN)
            *out = RLK_INTERRUPTED;
        if (!ready || ready & RLK_WOKEN)
            return RLK_DONE;
        if (!PQconsumeInput(p->conn))
            return pg_fail_connection(p, call, RLK_UNSENT);
    }
}
