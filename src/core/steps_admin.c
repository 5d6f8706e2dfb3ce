/* SPDX-License-Identifier: MIT
 * The steps of operators: the values of each, and how its answer is read. */
#include "core/cells.h"
#include "core/many.h"

#include <stdlib.h>
#include <string.h>

/* ---- the server */

/* A dialect may end its answer before REPLICATION. Its driver fills in those facts then. */
static int read_facts(void *out, const rowlock_value *cells, size_t count)
{
    enum { SERVER, NOW, READ_ONLY, ISOLATION, ANY_ISOLATION, ENGINE, CRASH_SAFE, COLLATION };
    enum { BYTEWISE = COLLATION + 1, DURABILITY, DURABLE, MAY_LOCK, READS_ONLY };
    enum { REPLICATION = READS_ONLY + 1, REPLICATION_KNOWN, REPLICATES_LATE, CUT_OFF };
    enum { NO_STANDBY = CUT_OFF + 1, EXPECTS_STANDBY };
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
    facts->no_standby = cells[NO_STANDBY].number != 0;
    facts->expects_standby = cells[EXPECTS_STANDBY].number != 0;
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
    /* The size of one item. */
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

/* ---- figures */

/* How long ago, in milliseconds. NULL: there is no such time. */
static int64_t ms_since(const rowlock_value *cell, int64_t now_us)
{
    return is_null(cell) || cell->number > now_us ? 0 : (now_us - cell->number) / 1000;
}

static int read_figures(void *out, const rowlock_value *cells, size_t count)
{
    enum { NOW, EXCLUSIVE, SHARED, COUNTED, EXPIRED_EXCLUSIVE, EXPIRED_SHARED, EXPIRED_COUNTED };
    enum { OLDEST = EXPIRED_COUNTED + 1, WAITERS, SINCE, EXPIRED_TICKETS, NAMES };
    enum { CLAIMED = NAMES + 1, EXPIRED_CLAIMS, DONE, FLOOR, SWEPT, VERSION };
    int64_t now_us = cells[NOW].number;
    (void)count;
    *(rowlock_figures *)out =
        (rowlock_figures){.size = sizeof(rowlock_figures),
                          .now_us = now_us,
                          .exclusive = cells[EXCLUSIVE].number,
                          .shared = cells[SHARED].number,
                          .counted = cells[COUNTED].number,
                          .expired_exclusive = cells[EXPIRED_EXCLUSIVE].number,
                          .expired_shared = cells[EXPIRED_SHARED].number,
                          .expired_counted = cells[EXPIRED_COUNTED].number,
                          .longest_hold_ms = ms_since(&cells[OLDEST], now_us),
                          .waiters = cells[WAITERS].number,
                          .longest_wait_ms = ms_since(&cells[SINCE], now_us),
                          .expired_tickets = cells[EXPIRED_TICKETS].number,
                          .names = cells[NAMES].number,
                          .once_claimed = cells[CLAIMED].number,
                          .once_expired = cells[EXPIRED_CLAIMS].number,
                          .once_done = cells[DONE].number,
                          .token_floor = cells[FLOOR].number,
                          .swept_us = cells[SWEPT].number,
                          .version = cells[VERSION].number};
    return 0;
}

enum rlk_class rlk_step_measure(rowlock_db *db, struct rlk_call *call, rowlock_figures *out)
{
    return send(db, call, RLK_STEP_MEASURE, NULL, read_figures, out);
}

static void read_name(const rowlock_value *cells, void *item)
{
    enum { NAME, TOKEN, HOLDERS, ACQUIRED, EXPIRES, LAPSED, WAITERS, SINCE, NOW };
    int64_t now_us = cells[NOW].number;
    rowlock_name_figures *out = item;
    *out = (rowlock_name_figures){
        .size = sizeof *out,
        .token = cells[TOKEN].number,
        .holders = cells[HOLDERS].number,
        .held_ms = ms_since(&cells[ACQUIRED], now_us),
        .remaining_ms = is_null(&cells[EXPIRES]) ? 0 : (cells[EXPIRES].number - now_us) / 1000,
        .lapsed_ms = cells[LAPSED].number / 1000,
        .waiters = cells[WAITERS].number,
        .waited_ms = ms_since(&cells[SINCE], now_us)};
    COPY(&cells[NAME], out->name);
}

enum rlk_class rlk_step_measure_names(rowlock_db *db, struct rlk_call *call, const char *glob,
                                      const char *after, int limit, rlk_name_fn *each,
                                      void *context)
{
    const rowlock_value in[] = {rowlock_text(glob), rowlock_text(after), rowlock_int(limit)};
    struct page page = {.size = sizeof(rowlock_name_figures), .read = read_name};
    enum rlk_class class = read_page(db, call, RLK_STEP_MEASURE_NAMES, in, &page);
    for (size_t i = 0; class == RLK_DONE && i < page.count; i++)
        if (each(context, item_of(&page, i)) != 0)
            break;
    rlk_free(page.items);
    return class;
}

/* ---- the last grant */

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
    struct rlk_sweep *sweep;
    /* NULL: no row is reported. */
    rlk_row_fn *each;
    struct page page;
    int64_t removed;
    /* For each row of the page: it was changed meanwhile, or others have it locked. NULL: none. */
    bool *stays;
    /* The end of the batch, if it is known. */
    bool ends;
    struct rlk_key end;
};

static int read_end(void *out, const rowlock_value *cells, size_t count)
{
    struct sweeping *s = out;
    (void)count;
    COPY(&cells[0], s->end.name);
    s->end.slot = cells[1].number;
    s->ends = true;
    return 0;
}

static int read_swept(void *out, const rowlock_value *cells, size_t count)
{
    struct sweeping *s = out;
    s->removed = cells[0].number;
    return read_end(s, cells + 1, count - 1);
}

/* The answer is how many rows are gone, and the last of them if the dialect has no other end of a
 * batch. */
static enum rlk_class sweep_quietly(rowlock_db *db, struct rlk_call *call, const rowlock_value *in,
                                    struct sweeping *s)
{
    struct rlk_sending quiet = {
        .step = RLK_STEP_SWEEP_QUIET, .in = in, .read = read_swept, .out = s};
    enum rlk_class class = rlk_send(db, call, &quiet);
    if (quiet.rows == 0)
        s->removed = quiet.changed;
    return class;
}

static int compare_rows(const void *a, const void *b)
{
    const struct rlk_row *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->slot > y->slot) - (x->slot < y->slot);
}

/* A DELETE answers its rows in any order. */
static enum rlk_class read_swept_page(rowlock_db *db, struct rlk_call *call,
                                      const rowlock_value *in, struct sweeping *s)
{
    enum rlk_class class = read_page(db, call, RLK_STEP_SWEEP, in, &s->page);
    if (s->page.count > 0)
        qsort(s->page.items, s->page.count, s->page.size, compare_rows);
    s->removed = (int64_t)s->page.count;
    return class;
}

/* A dialect may bound a batch by the rows that it reads, expired or not. If there are no more rows
 * than that, the batch is the rest of the table. */
static enum rlk_class sweep_range(rowlock_db *db, struct rlk_call *call, rowlock_value *in,
                                  struct sweeping *s)
{
    enum { UNTIL = 4, UNTIL_SLOT };
    bool bounded = db->texts.sql[RLK_STEP_SWEEP_END];
    enum rlk_class class = bounded ? send(db, call, RLK_STEP_SWEEP_END, in, read_end, s) : RLK_DONE;
    if (class != RLK_DONE)
        return class;
    if (s->ends) {
        in[UNTIL] = rowlock_text(s->end.name);
        in[UNTIL_SLOT] = rowlock_int(s->end.slot);
    }
    class = s->each ? read_swept_page(db, call, in, s) : sweep_quietly(db, call, in, s);
    s->sweep->more = bounded ? s->ends : s->removed >= s->sweep->batch;
    return class;
}

/* Removes some of the rows that were read, if they are the same grants and still expired. */
static enum rlk_class remove_rows(rowlock_db *db, struct rlk_call *call, const struct sweeping *s,
                                  size_t first, size_t count, int64_t *removed)
{
    struct rlk_many m = {.width = 3, .shared = 1, .in = {[3] = rowlock_int(s->sweep->older_us)}};
    for (size_t i = first; i < first + count; i++) {
        const struct rlk_row *row = item_of(&s->page, i);
        const rowlock_value key[] = {rowlock_int(row->slot), rowlock_int(row->token),
                                     rowlock_text(row->name)};
        rlk_many_add(&m, key, db->backend->packing);
    }
    enum rlk_class class = rlk_many_send(db, call, RLK_STEP_SWEEP_KEYS, &m, NULL, NULL);
    *removed = m.changed;
    return class;
}

/* Returns RLK_CONTENTION if some rows stay, so that the transaction is rolled back. */
static enum rlk_class remove_all(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct sweeping *s = context;
    enum rlk_class class = remove_rows(db, call, s, 0, s->page.count, &s->removed);
    bool whole = s->removed == (int64_t)s->page.count;
    return class != RLK_DONE || whole ? class : RLK_CONTENTION;
}

static enum rlk_class remove_each(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct sweeping *s = context;
    enum rlk_class class = RLK_DONE;
    s->removed = 0;
    for (size_t i = 0; class == RLK_DONE && i < s->page.count; i++) {
        int64_t gone = 0;
        class = remove_rows(db, call, s, i, 1, &gone);
        s->stays[i] = gone == 0;
        s->removed += gone;
    }
    return class;
}

/* For servers whose DELETE does not answer its rows, only their number. A sweep that must report
 * them removes all or none. If some stay, it finds out which by removing them one by one. */
static enum rlk_class remove_page(rowlock_db *db, struct rlk_call *call, struct sweeping *s)
{
    if (!s->each)
        return remove_rows(db, call, s, 0, s->page.count, &s->removed);
    enum rlk_class class = rlk_in_transaction(db, call, remove_all, s);
    if (class != RLK_CONTENTION)
        return class;
    s->stays = rlk_alloc(s->page.count);
    return s->stays ? rlk_in_transaction(db, call, remove_each, s) : RLK_NOMEM;
}

/* The candidates are read without locks. */
static enum rlk_class sweep_page(rowlock_db *db, struct rlk_call *call, const rowlock_value *in,
                                 struct sweeping *s)
{
    enum rlk_class class = read_page(db, call, RLK_STEP_EXPIRED, in, &s->page);
    s->removed = (int64_t)s->page.count;
    s->sweep->more = s->removed >= s->sweep->batch;
    return class == RLK_DONE && !s->sweep->dry_run && s->removed > 0 ? remove_page(db, call, s)
                                                                     : class;
}

static void give_swept(struct sweeping *s, void *context)
{
    for (size_t i = 0; s->each && i < s->page.count; i++)
        if (!s->stays || !s->stays[i])
            s->each(context, item_of(&s->page, i));
    if (s->page.count > 0 && !s->ends) {
        const struct rlk_row *last = item_of(&s->page, s->page.count - 1);
        memcpy(s->end.name, last->name, sizeof s->end.name);
        s->end.slot = last->slot;
    }
    s->sweep->last = s->end;
    s->sweep->removed = s->removed;
}

enum rlk_class rlk_step_sweep(rowlock_db *db, struct rlk_call *call, struct rlk_sweep *sweep,
                              rlk_row_fn *each, void *context)
{
    rowlock_value in[] = {rowlock_text(sweep->after.name),
                          rowlock_int(sweep->after.slot),
                          rowlock_int(sweep->batch),
                          rowlock_int(sweep->older_us),
                          rowlock_null(),
                          rowlock_null()};
    struct sweeping s = {.sweep = sweep,
                         .each = each,
                         .page = {.size = sizeof(struct rlk_row), .read = read_whole_row}};
    bool by_keys = sweep->dry_run || db->texts.sql[RLK_STEP_SWEEP_KEYS];
    enum rlk_class class = by_keys ? sweep_page(db, call, in, &s) : sweep_range(db, call, in, &s);
    if (class == RLK_DONE)
        give_swept(&s, context);
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
