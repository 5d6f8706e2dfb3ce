/* SPDX-License-Identifier: MIT
 *
 * Neither server has notifications. In their place waiters make a chain of user-level locks, called
 * bells. Each keeps one named by its attempt while it is queued or holds the lock exclusively, and
 * waits for that of the one before it. Letting go of the lock lets go of its bell, which wakes the
 * next waiter and no other; a session that ends does so too. Where the one before keeps no bell, or
 * keeps it on another server, nothing rings. A wait for a bell is whole seconds on MySQL, so it may
 * overrun its deadline by half of one; a shorter one is none. */
#include "driver.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

/* Bells of two installations on one server must not meet. The identity is hexadecimal unless
 * somebody has changed it; of anything else no name is made, since names are pasted into the text
 * of await.sql. A borrowed connection keeps no bells: they would stay behind on it. */
static void name_bells(struct conn *c)
{
    static const char hex[] = "0123456789abcdefABCDEF";
    const char *identity = c->texts->identity;
    size_t length = strspn(identity, hex);
    c->bells[0] = '\0';
    if (!c->adopted && length == 32 && !identity[length])
        snprintf(c->bells, sizeof c->bells, "rowlock:%.32s:", identity);
}

static struct bell *bell_of_attempt(struct conn *c, int64_t attempt)
{
    for (int i = 0; i < c->bells_kept; i++)
        if (c->bell[i].attempt == attempt)
            return &c->bell[i];
    return NULL;
}

static struct bell *bell_of_grant(struct conn *c, const char *name, int64_t token)
{
    for (int i = 0; i < c->bells_kept; i++)
        if (c->bell[i].token == token && strcmp(c->bell[i].name, name) == 0)
            return &c->bell[i];
    return NULL;
}

static void write_bell(const struct conn *c, int64_t attempt, char out[BELL_NAME])
{
    snprintf(out, BELL_NAME, "%s%016llX", c->bells, (unsigned long long)attempt);
}

static int read_gone(void *context, const rowlock_value *cells, size_t count)
{
    *(bool *)context = rlk_cells_fit("b", cells, count) && cells[0].number != 0;
    return 0;
}

/* Let go of a bell; with a grant in the same step if there is one: held is its name, slot, owner
 * and token. As the grant is gone by then, whoever is woken finds it so. */
static enum rlk_class ring(struct conn *c, struct rlk_call *call, struct bell *bell,
                           const rowlock_value *held, bool *found)
{
    rowlock_value none = rowlock_null();
    char name[BELL_NAME];
    write_bell(c, bell->attempt, name);
    const rowlock_value values[] = {held ? held[0] : none, held ? held[1] : none,
                                    held ? held[2] : none, held ? held[3] : none,
                                    rowlock_text(name)};
    *found = false;
    enum rlk_class class = my_run_step(c, call, RLK_STEP_RING, values, read_gone, found);
    if (class == RLK_DONE)
        *bell = c->bell[--c->bells_kept];
    return class;
}

/* After a step that has succeeded: it does not fail for this. A bell that stays costs the next in
 * line what it takes until it looks by itself; one of a lost session does not stay. */
static void let_go(struct conn *c, const struct rlk_call *call, struct bell *bell)
{
    struct rlk_call unheard = {.deadline_us = call->deadline_us};
    bool found;
    if (bell && !c->dead)
        (void)ring(c, &unheard, bell, NULL, &found);
}

/* Noted before it is taken, so that it is let go of whatever becomes of the step that takes it. The
 * oldest makes room: it is most likely one of a grant that was forgotten, or released by another
 * connection. */
static void note_bell(struct conn *c, const struct rlk_call *call, int64_t attempt)
{
    if (bell_of_attempt(c, attempt))
        return;
    if (c->bells_kept == BELLS_MAX)
        let_go(c, call, &c->bell[0]);
    if (c->bells_kept < BELLS_MAX)
        c->bell[c->bells_kept++] = (struct bell){.attempt = attempt};
}

/* A grant was made. If others may be granted it beside us then it is the next one's turn; else the
 * bell is kept until the release. */
static void keep_bell(struct conn *c, const struct rlk_call *call, const struct rlk_claim *claim,
                      int64_t token)
{
    struct bell *bell = bell_of_attempt(c, claim->attempt);
    if (bell && claim->permits != 0) {
        let_go(c, call, bell);
    } else if (bell) {
        bell->token = token;
        rlk_copy_text(bell->name, sizeof bell->name, claim->name, strlen(claim->name));
    }
}

/* await.sql with its values in the places of the question marks: a statement that is sent
 * without waiting for its answer has no others. They are hexadecimal digits and a number, both
 * made here. */
static void write_await(const struct conn *c, const char *seconds, char *out, size_t cap)
{
    char bell[BELL_NAME], quoted[BELL_NAME + 2];
    const char *const value[] = {quoted, seconds, quoted};
    const char *in = c->texts->sql[RLK_STEP_AWAIT];
    size_t used = 0;
    write_bell(c, c->before, bell);
    snprintf(quoted, sizeof quoted, "'%s'", bell);
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
 * nobody rings here. A bell that was rung is not waited for again either, whoever keeps it next. */
static enum rlk_class take_bell(struct conn *c, struct rlk_call *call, enum rlk_bell *out)
{
    MYSQL_RES *result = NULL;
    MYSQL_ROW row = NULL;
    if (mysql_read_query_result(c->mysql) == 0 && (result = mysql_store_result(c->mysql)))
        row = mysql_fetch_row(result);
    if (row && row[0])
        *out = strcmp(row[0], "1") == 0 ? RLK_RUNG : RLK_SILENT;
    enum rlk_class class = result ? RLK_DONE : my_failed(c, call, true);
    mysql_free_result(result);
    if (*out != RLK_SILENT) {
        c->rung = c->before;
        c->before = 0;
    }
    return c->dead ? class : RLK_DONE;
}

/* What has been released in a transaction is gone for others when it is committed. */
void my_end_leaving(struct conn *c, const struct rlk_call *call, bool committed)
{
    for (int i = c->bells_kept - 1; i >= 0; i--) {
        struct bell *bell = &c->bell[i];
        if (committed && bell->leaving)
            let_go(c, call, bell);
        else
            bell->leaving = false;
    }
}

/* The fourth value is the attempt. */
enum rlk_class my_enqueue(struct conn *c, struct rlk_call *call, struct rlk_query *q)
{
    name_bells(c);
    *q->own = c->bells[0] ? rowlock_text(c->bells) : rowlock_null();
    if (c->bells[0])
        note_bell(c, call, q->values[3].number);
    return my_run(c, call, q);
}

/* What the procedure did not find is asked for as all others ask. */
enum rlk_class my_release(struct conn *c, struct rlk_call *call, struct rlk_query *q)
{
    struct bell *bell = bell_of_grant(c, q->values[0].text, q->values[3].number);
    bool found = false;
    if (bell && call->where == RLK_OUTSIDE) {
        enum rlk_class class = ring(c, call, bell, q->values, &found);
        q->changed = found;
        if (class != RLK_DONE || found)
            return class;
        bell = NULL;
    }
    enum rlk_class class = my_run(c, call, q);
    if (bell && class == RLK_DONE)
        bell->leaving = q->changed > 0;
    return class;
}

/* Where nobody keeps a bell, nobody is woken by it. */
bool my_note(void *conn, struct rlk_call *call, enum rlk_news news, const struct rlk_claim *claim,
             int64_t number)
{
    struct conn *c = conn;
    switch (news) {
    case RLK_ENQUEUED:
        if (c->waiter != claim->attempt)
            c->rung = 0;
        c->waiter = claim->attempt;
        c->before = number == c->rung ? 0 : number;
        return c->before != 0;
    case RLK_TAKEN:
        keep_bell(c, call, claim, number);
        return false;
    case RLK_GONE_GRANT:
        let_go(c, call, bell_of_grant(c, claim->name, number));
        return false;
    default:
        let_go(c, call, bell_of_attempt(c, claim->attempt));
        return false;
    }
}

/* Sent without waiting for the answer, so that the wait can be ended from here: by giving up the
 * connection, since a server takes no word in while it waits itself. */
enum rlk_class my_await(void *conn, struct rlk_call *call, const struct rlk_claim *claim, int wake,
                        enum rlk_bell *out)
{
    struct conn *c = conn;
    char sql[300], seconds[32];
    int64_t left_us = call->deadline_us - rlk_now_us();
    *out = left_us > 0 ? RLK_DEAF : RLK_SILENT;
    if (left_us <= 0 || c->waiter != claim->attempt || !c->before ||
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
        return take_bell(c, call, out);
    *out = RLK_INTERRUPTED;
    c->dead = true;
    rlk_diag_set(call, CR_SERVER_LOST, "08006",
                 "the wait was given up, and its connection with it");
    return RLK_UNCERTAIN;
}
