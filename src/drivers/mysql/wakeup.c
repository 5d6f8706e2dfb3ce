/* SPDX-License-Identifier: MIT
 *
 * Neither server has notifications. Instead the waiters form a chain of user-level locks, called
 * wake-ups (GET_LOCK). A connection keeps one for each request that is in the queue or holds its
 * lock exclusively. A waiter waits for the wake-up of the request before it. Releasing the lock
 * also releases its wake-up, which wakes the next waiter and no other. So does the end of the
 * session.
 *
 * Nothing wakes a waiter if the request before it keeps no wake-up, or keeps it on another server.
 * MySQL waits whole seconds, so a wait may overrun its deadline by half a second. On MySQL a wait
 * below half a second is not made. */
#include "driver.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

/* Two installations on one server must not share wake-ups, so the name has the installation's
 * identity. The identity is hexadecimal, unless a user changed it. Other identities get no
 * wake-ups, because names are pasted into the text of await.sql. An adopted connection keeps no
 * wake-ups, because they would stay behind on it. */
static void name_wakeups(struct conn *c)
{
    static const char hex[] = "0123456789abcdefABCDEF";
    const char *identity = c->texts->identity;
    size_t length = strspn(identity, hex);
    c->wakeups[0] = '\0';
    if (!c->adopted && length == 32 && !identity[length])
        snprintf(c->wakeups, sizeof c->wakeups, "rowlock:%.32s:", identity);
}

static struct wakeup *wakeup_of_request(struct conn *c, int64_t number)
{
    for (int i = 0; i < c->wakeups_kept; i++)
        if (c->wakeup[i].request == number)
            return &c->wakeup[i];
    return NULL;
}

static struct wakeup *wakeup_of_grant(struct conn *c, const char *name, int64_t token)
{
    for (int i = 0; i < c->wakeups_kept; i++)
        if (c->wakeup[i].token == token && strcmp(c->wakeup[i].name, name) == 0)
            return &c->wakeup[i];
    return NULL;
}

static void write_wakeup(const struct conn *c, int64_t number, char out[WAKEUP_NAME])
{
    snprintf(out, WAKEUP_NAME, "%s%016llX", c->wakeups, (unsigned long long)number);
}

static int read_gone(void *context, const rowlock_value *cells, size_t count)
{
    *(bool *)context = rlk_cells_fit("b", cells, count) && cells[0].number != 0;
    return 0;
}

/* Releases a wake-up. If held is set, the same step releases the grant: its name, slot, owner and
 * token. The grant is gone before the waiter wakes. */
static enum rlk_class wake(struct conn *c, struct rlk_call *call, struct wakeup *wakeup,
                           const rowlock_value *held, bool *found)
{
    rowlock_value none = rowlock_null();
    char name[WAKEUP_NAME];
    write_wakeup(c, wakeup->request, name);
    const rowlock_value values[] = {held ? held[0] : none, held ? held[1] : none,
                                    held ? held[2] : none, held ? held[3] : none,
                                    rowlock_text(name)};
    *found = false;
    enum rlk_class class = my_run_step(c, call, RLK_STEP_WAKE, values, read_gone, found);
    if (class == RLK_DONE)
        *wakeup = c->wakeup[--c->wakeups_kept];
    return class;
}

/* Called after a successful step, which a failure here does not change. If the wake-up stays, the
 * next waiter finds out at its next poll. A lost session keeps no wake-up. */
static void release_wakeup(struct conn *c, const struct rlk_call *call, struct wakeup *wakeup)
{
    struct rlk_call unheard = {.deadline_us = call->deadline_us};
    bool found;
    if (wakeup && !c->dead)
        (void)wake(c, &unheard, wakeup, NULL, &found);
}

/* Notes the wake-up before the step takes it, so that it is released even if the step fails. The
 * oldest one makes room. Its grant was probably forgotten, or released by another connection. */
static void note_wakeup(struct conn *c, const struct rlk_call *call, int64_t number)
{
    if (wakeup_of_request(c, number))
        return;
    if (c->wakeups_kept == WAKEUPS_MAX)
        release_wakeup(c, call, &c->wakeup[0]);
    if (c->wakeups_kept < WAKEUPS_MAX)
        c->wakeup[c->wakeups_kept++] = (struct wakeup){.request = number};
}

/* After a grant. If the lock may have other holders, the next waiter is woken at once. Otherwise
 * the wake-up is kept until the release. */
static void keep_wakeup(struct conn *c, const struct rlk_call *call,
                        const struct rlk_request *request, int64_t token)
{
    struct wakeup *wakeup = wakeup_of_request(c, request->number);
    if (wakeup && request->permits != 0) {
        release_wakeup(c, call, wakeup);
    } else if (wakeup) {
        wakeup->token = token;
        rlk_copy_text(wakeup->name, sizeof wakeup->name, request->name, strlen(request->name));
    }
}

/* Writes await.sql with its values in place of the question marks. A statement that is sent without
 * waiting for its answer cannot have parameters. The values are hexadecimal digits and a number,
 * both made here. */
static void write_await(const struct conn *c, const char *seconds, char *out, size_t cap)
{
    char wakeup[WAKEUP_NAME], quoted[WAKEUP_NAME + 2];
    const char *const value[] = {quoted, seconds, quoted};
    const char *in = c->texts->sql[RLK_STEP_AWAIT];
    size_t used = 0;
    write_wakeup(c, c->before, wakeup);
    snprintf(quoted, sizeof quoted, "'%s'", wakeup);
    for (int i = 0; i < 3; i++) {
        int before = (int)strcspn(in, "?");
        used += (size_t)snprintf(out + used, cap - used, "%.*s%s", before, in, value[i]);
        in += before + (in[before] == '?');
    }
    snprintf(out + used, cap - used, "%s", in);
}

/* MySQL rounds a wait below one second to zero or to one second. */
static bool write_seconds(const struct conn *c, int64_t wait_us, char *out, size_t cap)
{
    static const int64_t longest_us = INT64_C(3600000000);
    int64_t left_us = rlk_least(wait_us, longest_us);
    long long whole = (left_us + 500000) / 1000000;
    if (my_is_mariadb(c))
        snprintf(out, cap, "%lld.%06lld", (long long)(left_us / 1000000),
                 (long long)(left_us % 1000000));
    else
        snprintf(out, cap, "%lld", whole);
    return whole > 0 || my_is_mariadb(c);
}

static bool is_readable(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, 0) > 0;
}

/* If the server refuses the wait, it will refuse it again, for example because the other session
 * waits for us. Then this request has no wake-up. A wake-up that came is not waited for again
 * either, even if another session takes it later. */
static enum rlk_class take_wakeup(struct conn *c, struct rlk_call *call, enum rlk_wakeup *out)
{
    MYSQL_RES *result = NULL;
    MYSQL_ROW row = NULL;
    if (mysql_read_query_result(c->mysql) == 0 && (result = mysql_store_result(c->mysql)))
        row = mysql_fetch_row(result);
    if (row && row[0])
        *out = strcmp(row[0], "1") == 0 ? RLK_WAKEUP : RLK_SILENT;
    enum rlk_class class = result ? RLK_DONE : my_failed(c, call, true);
    mysql_free_result(result);
    if (*out != RLK_SILENT) {
        c->woken = c->before;
        c->before = 0;
    }
    return c->dead ? class : RLK_DONE;
}

/* Other sessions see a release of a transaction after its commit. */
void my_end_leaving(struct conn *c, const struct rlk_call *call, bool committed)
{
    for (int i = c->wakeups_kept - 1; i >= 0; i--) {
        struct wakeup *wakeup = &c->wakeup[i];
        if (committed && wakeup->leaving)
            release_wakeup(c, call, wakeup);
        else
            wakeup->leaving = false;
    }
}

/* The fourth value is the request's number. */
enum rlk_class my_enqueue(struct conn *c, struct rlk_call *call, struct rlk_query *q)
{
    name_wakeups(c);
    *q->own = c->wakeups[0] ? rowlock_text(c->wakeups) : rowlock_null();
    if (c->wakeups[0])
        note_wakeup(c, call, q->values[3].number);
    return my_run(c, call, q);
}

/* If the procedure did not find the grant, the usual statement reports why. */
enum rlk_class my_release(struct conn *c, struct rlk_call *call, struct rlk_query *q)
{
    struct wakeup *wakeup = wakeup_of_grant(c, q->values[0].text, q->values[3].number);
    bool found = false;
    if (wakeup && call->where == RLK_OUTSIDE) {
        enum rlk_class class = wake(c, call, wakeup, q->values, &found);
        q->changed = found;
        if (class != RLK_DONE || found)
            return class;
        wakeup = NULL;
    }
    enum rlk_class class = my_run(c, call, q);
    if (wakeup && class == RLK_DONE)
        wakeup->leaving = q->changed > 0;
    return class;
}

/* RLK_ENQUEUED: false if no session keeps a wake-up before this request. */
bool my_tell(void *conn, struct rlk_call *call, enum rlk_news news,
             const struct rlk_request *request, int64_t number)
{
    struct conn *c = conn;
    switch (news) {
    case RLK_ENQUEUED:
        if (c->waiter != request->number)
            c->woken = 0;
        c->waiter = request->number;
        c->before = number == c->woken ? 0 : number;
        return c->before != 0;
    case RLK_TAKEN:
        keep_wakeup(c, call, request, number);
        return false;
    case RLK_GONE_GRANT:
        release_wakeup(c, call, wakeup_of_grant(c, request->name, number));
        return false;
    default:
        release_wakeup(c, call, wakeup_of_request(c, request->number));
        return false;
    }
}

/* Sends the statement and does not wait for its answer, so that this side can end the wait. It ends
 * the wait by closing the connection: a server that waits reads nothing. */
enum rlk_class my_await(void *conn, struct rlk_call *call, const struct rlk_request *request,
                        int wake, enum rlk_wakeup *out)
{
    struct conn *c = conn;
    char sql[300], seconds[32];
    int64_t left_us = call->deadline_us - rlk_now_us();
    *out = left_us > 0 ? RLK_NO_WAKEUPS : RLK_SILENT;
    if (left_us <= 0 || c->waiter != request->number || !c->before ||
        !write_seconds(c, left_us, seconds, sizeof seconds))
        return RLK_DONE;
    enum rlk_class class = my_check_fit(c, call);
    if (class != RLK_DONE)
        return class;
    if (is_readable(wake)) {
        *out = RLK_INTERRUPTED;
        return RLK_DONE;
    }
    write_await(c, seconds, sql, sizeof sql);
    if (mysql_send_query(c->mysql, sql, strlen(sql)))
        return my_failed(c, call, true);
    int64_t until_us = call->deadline_us + c->answer_us;
    if (rlk_wait_socket(my_socket_of(c->mysql), POLLIN, wake, until_us) & RLK_READY)
        return take_wakeup(c, call, out);
    *out = RLK_INTERRUPTED;
    c->dead = true;
    rlk_diag_set(call, CR_SERVER_LOST, "08006", "the wait was ended by closing its connection");
    return RLK_UNCERTAIN;
}
