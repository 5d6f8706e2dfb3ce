/* SPDX-License-Identifier: MIT
 *
 * Neither server has notifications. In their place waiters make a chain of user-level locks, called
 * wakeups. Each keeps one named by its request while it is queued or holds the lock exclusively,
 * and waits for that of the one before it. Letting go of the lock lets go of its wakeup, which
 * wakes the next waiter and no other; a session that ends does so too. Where the one before keeps
 * no wakeup, or keeps it on another server, nothing wakes. A wait for a wakeup is whole seconds on
 * MySQL, so it may overrun its deadline by half of one; a shorter one is none. */
#include "driver.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

/* Wakeups of two installations on one server must not meet. The identity is hexadecimal unless
 * somebody has changed it; of anything else no name is made, since names are pasted into the text
 * of await.sql. A borrowed connection keeps no wakeups: they would stay behind on it. */
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

/* Let go of a wakeup; with a grant in the same step if there is one: held is its name, slot, owner
 * and token. As the grant is gone by then, whoever is woken finds it so. */
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

/* After a step that has succeeded: it does not fail for this. A wakeup that stays costs the next in
 * line what it takes until it looks by itself; one of a lost session does not stay. */
static void let_go(struct conn *c, const struct rlk_call *call, struct wakeup *wakeup)
{
    struct rlk_call unheard = {.deadline_us = call->deadline_us};
    bool found;
    if (wakeup && !c->dead)
        (void)wake(c, &unheard, wakeup, NULL, &found);
}

/* Noted before it is taken, so that it is let go of whatever becomes of the step that takes it. The
 * oldest makes room: it is most likely one of a grant that was forgotten, or released by another
 * connection. */
static void note_wakeup(struct conn *c, const struct rlk_call *call, int64_t number)
{
    if (wakeup_of_request(c, number))
        return;
    if (c->wakeups_kept == WAKEUPS_MAX)
        let_go(c, call, &c->wakeup[0]);
    if (c->wakeups_kept < WAKEUPS_MAX)
        c->wakeup[c->wakeups_kept++] = (struct wakeup){.request = number};
}

/* A grant was made. If others may be granted it beside us then it is the next one's turn; else the
 * wakeup is kept until the release. */
static void keep_wakeup(struct conn *c, const struct rlk_call *call,
                        const struct rlk_request *request, int64_t token)
{
    struct wakeup *wakeup = wakeup_of_request(c, request->number);
    if (wakeup && request->permits != 0) {
        let_go(c, call, wakeup);
    } else if (wakeup) {
        wakeup->token = token;
        rlk_copy_text(wakeup->name, sizeof wakeup->name, request->name, strlen(request->name));
    }
}

/* await.sql with its values in the places of the question marks: a statement that is sent
 * without waiting for its answer has no others. They are hexadecimal digits and a number, both
 * made here. */
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

/* Waits below one second MySQL rounds up or to nothing. */
static bool write_seconds(const struct conn *c, int64_t wait_us, char *out, size_t cap)
{
    static const int64_t longest_us = INT64_C(3600000000);
    int64_t left_us = wait_us < longest_us ? wait_us : longest_us;
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

/* What the server refuses it will refuse again, such as a wait for one that waits for us: then
 * nobody wakes here. A wakeup that was woken is not waited for again either, whoever keeps it next.
 * */
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

/* What has been released in a transaction is gone for others when it is committed. */
void my_end_leaving(struct conn *c, const struct rlk_call *call, bool committed)
{
    for (int i = c->wakeups_kept - 1; i >= 0; i--) {
        struct wakeup *wakeup = &c->wakeup[i];
        if (committed && wakeup->leaving)
            let_go(c, call, wakeup);
        else
            wakeup->leaving = false;
    }
}

/* The fourth value is the request. */
enum rlk_class my_enqueue(struct conn *c, struct rlk_call *call, struct rlk_query *q)
{
    name_wakeups(c);
    *q->own = c->wakeups[0] ? rowlock_text(c->wakeups) : rowlock_null();
    if (c->wakeups[0])
        note_wakeup(c, call, q->values[3].number);
    return my_run(c, call, q);
}

/* What the procedure did not find is asked for as all others ask. */
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

/* Where nobody keeps a wakeup, nobody is woken by it. */
bool my_note(void *conn, struct rlk_call *call, enum rlk_news news,
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
        let_go(c, call, wakeup_of_grant(c, request->name, number));
        return false;
    default:
        let_go(c, call, wakeup_of_request(c, request->number));
        return false;
    }
}

/* Sent without waiting for the answer, so that the wait can be ended from here: by giving up the
 * connection, since a server takes no word in while it waits itself. */
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
    rlk_diag_set(call, CR_SERVER_LOST, "08006",
                 "the wait was given up, and its connection with it");
    return RLK_UNCERTAIN;
}
