/* SPDX-License-Identifier: MIT
 * What operators do with locks: list, raise, break. An acquire runs nothing of this. */
#include "base/ident.h"
#include "base/options.h"
#include "admin/admin.h"
#include "lock/lock.h"
#include "core/ask.h"
#include "core/step_cells.h"

#include <string.h>

enum { LIST_PAGE = 500 };

/* ---- lists */

/* Takes up to a page of items that follow `last`, and gives them. *items are theirs. */
static int list_page(rowlock_db *db, const struct rlk_list *list, void *context, const void *last,
                     struct rlk_items *items, bool *stopped)
{
    struct rlk_ask ask = {.step = RLK_STEP_NONE};
    list->ask(&ask, context, last, LIST_PAGE);
    rlk_read_items(&ask, items, list->size, list->fields);
    int result = rlk_ask_items(db, &ask, items);
    const void *before = last;
    for (size_t i = 0; result == ROWLOCK_OK && i < items->count && !*stopped; i++) {
        const void *item = rlk_item(items, i);
        *stopped = list->give(context, item, before) != 0;
        before = item;
    }
    /* A full page that ends where it began would come again and again. */
    bool full = result == ROWLOCK_OK && items->count >= LIST_PAGE && !*stopped;
    return full && last && !list->is_further(before, last) ? rlk_fail_answer(db, list->step)
                                                           : result;
}

int rlk_list_pages(rowlock_db *db, const struct rlk_list *list, void *context)
{
    struct rlk_items page = {0};
    bool stopped = false, more;
    int result;
    do {
        struct rlk_items next = {0};
        const void *last = page.count > 0 ? rlk_item(&page, page.count - 1) : NULL;
        result = list_page(db, list, context, last, &next, &stopped);
        rlk_free(page.items);
        page = next;
        more = page.count == LIST_PAGE;
    } while (result == ROWLOCK_OK && more && !stopped);
    rlk_free(page.items);
    return result;
}

/* name NULL: all locks. */
static int enter_listing(rowlock_db *db, const char *verb, const char *name, bool reports)
{
    int result = rlk_enter(db, verb, NULL);
    if (result == ROWLOCK_OK && !reports)
        return rlk_fail(db, ROWLOCK_EINVAL, "the callback must not be NULL");
    if (result == ROWLOCK_OK && name)
        result = rlk_check_text(&db->error, "lock's name", name, false);
    return result;
}

struct listing {
    const char *name;
    int (*each)(void *context, const rowlock_grant *grant);
    void *context;
};

static void ask_rows(struct rlk_ask *ask, void *context, const void *after, int limit)
{
    const struct listing *l = context;
    const struct rlk_row *last = after;
    ASK(ask, LIST, l->name ? rowlock_text(l->name) : rowlock_null(),
        rowlock_text(last ? last->name : ""), rowlock_int(last ? last->slot : -1),
        rowlock_int(limit));
}

static int give_row(void *context, const void *item, const void *before)
{
    const struct listing *l = context;
    rowlock_grant grant;
    (void)before;
    rlk_grant_from_row(&grant, item);
    return l->each(l->context, &grant);
}

bool rlk_row_is_further(const void *item, const void *than)
{
    const struct rlk_row *row = item, *other = than;
    int order = strcmp(row->name, other->name);
    return order > 0 || (order == 0 && row->slot > other->slot);
}

static int list_grants(rowlock_db *db, struct listing *l)
{
    static const struct rlk_list rows = {RLK_STEP_LIST,  sizeof(struct rlk_row),
                                         rlk_row_fields, ask_rows,
                                         give_row,       rlk_row_is_further};
    return rlk_list_pages(db, &rows, l);
}

int rowlock_list(rowlock_db *db, const char *name,
                 int (*each)(void *context, const rowlock_grant *grant), void *context)
{
    struct listing l = {.name = name, .each = each, .context = context};
    int result = enter_listing(db, "list locks", name, each != NULL);
    return result == ROWLOCK_OK ? list_grants(db, &l) : result;
}

/* ---- waiters */

struct listing_waiters {
    const char *name;
    int (*each)(void *context, const rowlock_waiter *waiter);
    void *context;
    /* Of the last live waiter of this lock. */
    int position;
};

#define OF(member) RLK_FIELD(struct rlk_waiter, member)
static const struct rlk_field waiter_fields[] = {
    OF(name),       OF(ticket), OF(request), OF(permits), OF(owner), OF(since_us),
    OF(expires_us), OF(host),   OF(pid),     OF(program), OF(note),  OF(now_us),
};
#undef OF

static void waiter_from(rowlock_waiter *out, const struct rlk_waiter *in, int position)
{
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    out->ticket = in->ticket;
    out->since_us = in->since_us;
    out->waited_ms = (in->now_us - in->since_us) / 1000;
    out->remaining_ms = position ? (in->expires_us - in->now_us) / 1000 : -1;
    out->pid = in->pid;
    out->permits = in->permits;
    out->position = position;
    memcpy(out->name, in->name, sizeof in->name);
    memcpy(out->owner, in->owner, sizeof in->owner);
    memcpy(out->host, in->host, sizeof in->host);
    memcpy(out->program, in->program, sizeof in->program);
    memcpy(out->note, in->note, sizeof in->note);
}

static void ask_waiters(struct rlk_ask *ask, void *context, const void *after, int limit)
{
    static const struct rlk_waiter first = {.name = ""};
    const struct listing_waiters *l = context;
    const struct rlk_waiter *last = after ? after : &first;
    ASK(ask, WAITERS, l->name ? rowlock_text(l->name) : rowlock_null(), rowlock_text(last->name),
        rowlock_int(last->ticket), rowlock_int(last->request), rowlock_int(limit));
}

static int give_waiter(void *context, const void *item, const void *before)
{
    struct listing_waiters *l = context;
    const struct rlk_waiter *in = item, *last = before;
    bool lives = in->expires_us > in->now_us;
    if (last && strcmp(last->name, in->name) != 0)
        l->position = 0;
    l->position += lives;
    rowlock_waiter waiter;
    waiter_from(&waiter, in, lives ? l->position : 0);
    return l->each(l->context, &waiter);
}

static bool is_behind(const void *item, const void *other)
{
    const struct rlk_waiter *w = item, *than = other;
    int order = strcmp(w->name, than->name);
    if (order != 0)
        return order > 0;
    return w->ticket != than->ticket ? w->ticket > than->ticket : w->request > than->request;
}

int rowlock_list_waiters(rowlock_db *db, const char *name,
                         int (*each)(void *context, const rowlock_waiter *waiter), void *context)
{
    static const struct rlk_list waiters = {RLK_STEP_WAITERS, sizeof(struct rlk_waiter),
                                            waiter_fields,    ask_waiters,
                                            give_waiter,      is_behind};
    struct listing_waiters l = {.name = name, .each = each, .context = context};
    int result = enter_listing(db, "list waiters", name, each != NULL);
    return result == ROWLOCK_OK ? rlk_list_pages(db, &waiters, &l) : result;
}

/* ---- last grant */

int rowlock_last_grant(rowlock_db *db, const char *name, int64_t *token, int64_t *granted_us)
{
    int result = rlk_enter(db, "look up the last grant", NULL);
    if (result != ROWLOCK_OK ||
        (result = rlk_check_text(&db->error, "lock's name", name, false)) != ROWLOCK_OK)
        return result;
    struct rlk_last last;
    result = rlk_last_grant(db, name, &last);
    if (result != ROWLOCK_OK || !last.found)
        return rlk_end_call(db, result != ROWLOCK_OK ? result : ROWLOCK_NONE);
    if (token)
        *token = last.token;
    if (granted_us)
        *granted_us = last.granted_us;
    return ROWLOCK_OK;
}

/* ---- raise */

/* After a lost answer the tokens may be raised twice. That does no harm. */
int rlk_raise(rowlock_db *db, int64_t by, int64_t *highest)
{
    int64_t floor = 0;
    struct rlk_ask ask = {.fields = rlk_number_field, .out = &floor};
    ASK(&ask, RAISE, rowlock_int(by));
    int result = rlk_ask(db, &ask);
    if (result == ROWLOCK_OK && highest)
        *highest = floor;
    return result;
}

int rowlock_raise_tokens(rowlock_db *db, int64_t by, int64_t *highest)
{
    int result = rlk_need_database(db, rlk_enter(db, "raise the tokens", NULL));
    if (result != ROWLOCK_OK)
        return result;
    if (by < 1 || by > INT64_C(1000000000000000))
        return rlk_fail(db, ROWLOCK_EINVAL, "by must be from 1 to 10^15");
    return rlk_raise(db, by, highest);
}

/* ---- a new identity */

/* The tables have been looked at, so the row is there. If the update changed nothing, the server
 * killed it. */
static enum rlk_class run_new_identity(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask)
{
    struct rlk_ask one = {.step = ask->step};
    enum rlk_class class = rlk_send(db, call, &one);
    if (class != RLK_DONE || one.changed > 0)
        return class;
    return rlk_refuse(call, RLK_CONTENTION, "the identity was not changed");
}

/* After a lost answer a second identity may replace the first. That does no harm. */
int rowlock_new_identity(rowlock_db *db)
{
    int result = rlk_need_database(db, rlk_enter(db, "give a new identity", NULL));
    if (result != ROWLOCK_OK)
        return result;
    struct rlk_ask ask = {.step = RLK_STEP_NEW_IDENTITY, .run = run_new_identity};
    result = rlk_ask(db, &ask);
    if (result == ROWLOCK_OK) {
        db->texts.identity[0] = '\0';
        rlk_distrust(db);
    }
    return result;
}

/* ---- break */

struct breaking {
    const char *name;
    int64_t token;
    /* Counted only if the caller named no token. */
    int holders;
    bool found;
    struct rlk_row broken;
};

static int note_token(void *context, const rowlock_grant *grant)
{
    struct breaking *b = context;
    bool lives = grant->remaining_ms >= 0;
    /* An expired grant is broken only if there is no other. */
    if (lives || b->holders == 0)
        b->token = grant->token;
    b->holders += lives;
    return 0;
}

/* Removes the grant, adds 1 to the counter, and wakes the first in the queue, in one transaction.
 * The token names the holder. Without it, a repeated attempt after a lost answer could break the
 * grant of the next holder. */
static int break_holder(rowlock_db *db, struct breaking *b)
{
    struct listing l = {.name = b->name, .each = note_token, .context = b};
    bool named = b->token != 0;
    int result = named ? ROWLOCK_OK : list_grants(db, &l);
    if (result != ROWLOCK_OK || !b->token)
        return result;
    if (b->holders > 1)
        return rlk_fail(db, ROWLOCK_EINVAL, "the lock has %d holders: give the token of one",
                        b->holders);
    struct rlk_ask ask = {.wakes = b->name, .retryable_if_lost = named};
    ASK(&ask, BREAK, rowlock_text(b->name), rowlock_int(b->token));
    fills(&ask, rlk_row_fields, &b->broken);
    result = rlk_ask(db, &ask);
    b->found = ask.rows > 0;
    if (result == ROWLOCK_OK) {
        const struct rlk_request request = {.name = b->name};
        rlk_tell(db, RLK_OUTSIDE, RLK_GONE_GRANT, &request, b->token);
    }
    if (result == ROWLOCK_OK && !b->found && ask.was_uncertain)
        return rlk_fail(db, ROWLOCK_EUNCERTAIN, "the answer was lost; there is no such grant now");
    return result;
}

int rowlock_break(rowlock_db *db, const char *name, int64_t if_token, rowlock_grant *broken)
{
    int result = rlk_need_database(db, rlk_enter(db, "break lock", NULL));
    if (result != ROWLOCK_OK ||
        (result = rlk_check_text(&db->error, "lock's name", name, false)) != ROWLOCK_OK)
        return result;
    rlk_action(db, "break lock", name);
    if (if_token < 0)
        return rlk_fail(db, ROWLOCK_EINVAL, "if_token must be above 0, or 0 for the only holder");
    struct breaking b = {.name = name, .token = if_token};
    result = break_holder(db, &b);
    if (result != ROWLOCK_OK || !b.found)
        return rlk_end_call(db, result != ROWLOCK_OK ? result : ROWLOCK_NONE);
    if (broken) {
        rowlock_grant grant;
        rlk_grant_from_row(&grant, &b.broken);
        rlk_give_struct(broken, &grant, sizeof grant);
    }
    return ROWLOCK_OK;
}
