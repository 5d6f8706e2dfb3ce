/* SPDX-License-Identifier: MIT
 * The steps of operators: the values of each, and how its answer is read. */
#include "seam/cells.h"

#include <string.h>

/* ---- the server */

/* A dialect may end its answer before REPLICATION. Its driver fills in those facts then. */
static int read_facts(void *out, const rowlock_value *cells, size_t count)
{
    enum { SERVER, NOW, READ_ONLY, ISOLATION, ANY_ISOLATION, ENGINE, CRASH_SAFE, COLLATION };
    enum { BYTEWISE = COLLATION + 1, DURABILITY, DURABLE, MAY_LOCK, READS_ONLY };
    enum { REPLICATION = READS_ONLY + 1, REPLICATION_KNOWN, REPLICATES_LATE, CUT_OFF };
    struct rlk_facts *facts = out;
    COPY(&cells[SERVER], facts->server);
    facts->now_us = cells[NOW].number;
    facts->read_only = cells[READ_ONLY].number != 0;
    COPY(&cells[ISOLATION], facts->isolation);
    facts->any_isolation = cells[ANY_ISOLATION].number != 0;
    COPY(&cells[ENGINE], facts->engine);
    facts->crash_safe = cells[CRASH_SAFE].number != 0;
    COPY(&cells[COLLATION], facts->collation);
    facts->bytewise = cells[BYTEWISE].number != 0;
    COPY(&cells[DURABILITY], facts->durability);
    facts->durable = cells[DURABLE].number != 0;
    facts->may_lock = cells[MAY_LOCK].number != 0;
    facts->reads_only = cells[READS_ONLY].number != 0;
    if (count == REPLICATION)
        return 0;
    COPY(&cells[REPLICATION], facts->replication);
    facts->replication_known = cells[REPLICATION_KNOWN].number != 0;
    facts->replicates_late = cells[REPLICATES_LATE].number != 0;
    facts->cut_off = cells[CUT_OFF].number != 0;
    return 0;
}

enum rlk_class rlk_step_facts(rowlock_db *db, struct rlk_call *call, struct rlk_facts *out)
{
    enum rlk_class class = RLK_DONE;
    *out = (struct rlk_facts){.server = ""};
    if (db->texts.sql[RLK_STEP_FACTS])
        class = send(db, call, RLK_STEP_FACTS, NULL, read_facts, out);
    if (class == RLK_DONE)
        class = db->backend->facts(db->conn, call, out);
    /* The facts are only read, so a lost answer has changed nothing. */
    return class == RLK_UNCERTAIN ? RLK_UNSENT : class;
}

/* ---- pages of rows */

/* All rows are read before the first callback. A callback that is slow, or writes to a full pipe,
 * must not keep a transaction open. */
struct page {
    /* Of one item. */
    size_t size;
    void (*read)(const rowlock_value *cells, void *item);
    char *items;
    size_t count, room;
    bool no_memory;
};

static void *item_of(const struct page *page, size_t i)
{
    return page->items + i * page->size;
}

static bool grow(struct page *page)
{
    size_t room = page->room ? 2 * page->room : 8;
    char *items = rlk_alloc(room * page->size);
    page->no_memory = !items;
    if (!items)
        return false;
    if (page->count > 0)
        memcpy(items, page->items, page->count * page->size);
    rlk_free(page->items);
    page->items = items;
    page->room = room;
    return true;
}

static int read_item(void *out, const rowlock_value *cells, size_t count)
{
    struct page *page = out;
    (void)count;
    if (page->count == page->room && !grow(page))
        return 1;
    page->read(cells, item_of(page, page->count));
    page->count++;
    return 0;
}

static enum rlk_class read_page(rowlock_db *db, struct rlk_call *call, enum rlk_step step,
                                const rowlock_value *in, struct page *page)
{
    enum rlk_class class = send(db, call, step, in, read_item, page);
    return class == RLK_DONE && page->no_memory ? RLK_NOMEM : class;
}

static void read_whole_row(const rowlock_value *cells, void *item)
{
    enum { NOW = sizeof RLK_ROW - 1 };
    struct rlk_row *row = item;
    rlk_row_from_cells(cells, row);
    row->now_us = cells[NOW].number;
}

static void read_waiter(const rowlock_value *cells, void *item)
{
    enum { NAME, TICKET, REQUEST, PERMITS, OWNER, SINCE, EXPIRES, HOST, PID, PROGRAM, NOTE, NOW };
    struct rlk_waiter *out = item;
    COPY(&cells[NAME], out->name);
    out->ticket = cells[TICKET].number;
    out->request = cells[REQUEST].number;
    out->permits = (int)cells[PERMITS].number;
    COPY(&cells[OWNER], out->owner);
    out->since_us = cells[SINCE].number;
    out->expires_us = cells[EXPIRES].number;
    COPY(&cells[HOST], out->host);
    out->pid = cells[PID].number;
    COPY(&cells[PROGRAM], out->program);
    COPY(&cells[NOTE], out->note);
    out->now_us = cells[NOW].number;
}

static rowlock_value text_or_null(const char *text)
{
    return text ? rowlock_text(text) : rowlock_null();
}

enum rlk_class rlk_step_waiters(rowlock_db *db, struct rlk_call *call, const char *name,
                                const struct rlk_waiter *after, int limit, rlk_waiter_fn *each,
                                void *context)
{
    const rowlock_value in[] = {text_or_null(name), rowlock_text(after->name),
                                rowlock_int(after->ticket), rowlock_int(after->request),
                                rowlock_int(limit)};
    struct page page = {.size = sizeof(struct rlk_waiter), .read = read_waiter};
    enum rlk_class class = read_page(db, call, RLK_STEP_WAITERS, in, &page);
    for (size_t i = 0; class == RLK_DONE && i < page.count; i++)
        if (each(context, item_of(&page, i)) != 0)
            break;
    rlk_free(page.items);
    return class;
}

enum rlk_class rlk_step_list(rowlock_db *db, struct rlk_call *call, const char *name,
                             const char *after_name, int64_t after_slot, int limit,
                             rlk_row_fn *each, void *context)
{
    const rowlock_value in[] = {text_or_null(name), rowlock_text(after_name),
                                rowlock_int(after_slot), rowlock_int(limit)};
    struct page page = {.size = sizeof(struct rlk_row), .read = read_whole_row};
    enum rlk_class class = read_page(db, call, RLK_STEP_LIST, in, &page);
    for (size_t i = 0; class == RLK_DONE && i < page.count; i++)
        if (each(context, item_of(&page, i)) != 0)
            break;
    rlk_free(page.items);
    return class;
}

struct last_grant {
    bool found;
    int64_t token, granted_us;
};

static int read_last(void *out, const rowlock_value *cells, size_t count)
{
    (void)count;
    *(struct last_grant *)out =
        (struct last_grant){.found = true, .token = cells[0].number, .granted_us = cells[1].number};
    return 0;
}

enum rlk_class rlk_step_last(rowlock_db *db, struct rlk_call *call, const char *name, bool *found,
                             int64_t *token, int64_t *granted_us)
{
    const rowlock_value in[] = {rowlock_text(name)};
    struct last_grant last = {0};
    enum rlk_class class = send(db, call, RLK_STEP_LAST, in, read_last, &last);
    if (class != RLK_DONE)
        return class;
    *found = last.found;
    if (last.found) {
        *token = last.token;
        *granted_us = last.granted_us;
    }
    return RLK_DONE;
}

/* ---- sweeping */

struct sweeping {
    const struct rlk_sweep *sweep;
    struct page page;
    /* For each row of the page: it was changed meanwhile, or others have it locked. */
    bool *stays;
};

static enum rlk_class remove_each(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct sweeping *s = context;
    enum rlk_class class = RLK_DONE;
    for (size_t i = 0; class == RLK_DONE && i < s->page.count; i++) {
        const struct rlk_row *row = item_of(&s->page, i);
        const rowlock_value in[] = {rowlock_text(row->name), rowlock_int(row->slot),
                                    rowlock_int(row->token), rowlock_int(s->sweep->older_us)};
        bool gone = false;
        class = rlk_send_change(db, call, RLK_STEP_SWEEP_ONE, in, NULL, &gone);
        s->stays[i] = !gone;
    }
    return class;
}

/* For dialects without a statement that removes a whole batch. */
static enum rlk_class remove_page(rowlock_db *db, struct rlk_call *call, struct sweeping *s)
{
    s->stays = rlk_alloc(s->page.count + 1);
    if (!s->stays)
        return RLK_NOMEM;
    return db->adopted ? remove_each(db, call, s) : rlk_in_transaction(db, call, remove_each, s);
}

enum rlk_class rlk_step_sweep(rowlock_db *db, struct rlk_call *call, const struct rlk_sweep *sweep,
                              int *seen, struct rlk_row *last, rlk_row_fn *each, void *context)
{
    const rowlock_value in[] = {rowlock_text(sweep->after_name), rowlock_int(sweep->after_slot),
                                rowlock_int(sweep->older_us), rowlock_int(sweep->batch)};
    struct sweeping s = {.sweep = sweep,
                         .page = {.size = sizeof(struct rlk_row), .read = read_whole_row}};
    bool whole = !sweep->dry_run && db->texts.sql[RLK_STEP_SWEEP];
    enum rlk_class class =
        read_page(db, call, whole ? RLK_STEP_SWEEP : RLK_STEP_EXPIRED, in, &s.page);
    if (class == RLK_DONE && !whole && !sweep->dry_run && s.page.count > 0)
        class = remove_page(db, call, &s);
    for (size_t i = 0; class == RLK_DONE && i < s.page.count; i++) {
        *last = *(const struct rlk_row *)item_of(&s.page, i);
        if (!s.stays || !s.stays[i])
            each(context, last);
    }
    if (class == RLK_DONE)
        *seen = (int)s.page.count;
    rlk_free(s.stays);
    rlk_free(s.page.items);
    return class;
}

static int read_number(void *out, const rowlock_value *cells, size_t count)
{
    (void)count;
    *(int64_t *)out = cells[0].number;
    return 0;
}

enum rlk_class rlk_step_fold(rowlock_db *db, struct rlk_call *call, struct rlk_fold *fold)
{
    const rowlock_value in[] = {rowlock_int(fold->idle_us), rowlock_int(fold->batch),
                                rowlock_bool(fold->dry_run)};
    int64_t answer = 0;
    struct rlk_sending s = {.step = RLK_STEP_FOLD, .in = in, .read = read_number, .out = &answer};
    enum rlk_class class = rlk_send(db, call, &s);
    if (class == RLK_DONE)
        fold->folded = s.rows > 0 ? answer : s.changed;
    return class;
}

enum rlk_class rlk_step_sweep_waiters(rowlock_db *db, struct rlk_call *call, int batch,
                                      int64_t *removed)
{
    const rowlock_value in[] = {rowlock_int(batch)};
    struct rlk_sending s = {.step = RLK_STEP_SWEEP_WAITERS, .in = in};
    enum rlk_class class = rlk_send(db, call, &s);
    if (class == RLK_DONE)
        *removed = s.changed;
    return class;
}

struct broken {
    bool found;
    struct rlk_row *row;
};

static int read_broken(void *out, const rowlock_value *cells, size_t count)
{
    struct broken *broken = out;
    (void)count;
    broken->found = true;
    read_whole_row(cells, broken->row);
    return 0;
}

enum rlk_class rlk_step_break(rowlock_db *db, struct rlk_call *call, const char *name,
                              int64_t token, bool *found, struct rlk_row *out)
{
    const rowlock_value in[] = {rowlock_text(name), rowlock_int(token)};
    struct broken broken = {.row = out};
    struct rlk_sending s = {
        .step = RLK_STEP_BREAK, .in = in, .wakes = name, .read = read_broken, .out = &broken};
    enum rlk_class class = rlk_send(db, call, &s);
    if (class != RLK_DONE)
        return class;
    *found = broken.found;
    rlk_note_gone(db, call, name, token);
    return RLK_DONE;
}

enum rlk_class rlk_step_raise(rowlock_db *db, struct rlk_call *call, int64_t by, int64_t *floor)
{
    const rowlock_value in[] = {rowlock_int(by)};
    return send(db, call, RLK_STEP_RAISE, in, read_number, floor);
}
