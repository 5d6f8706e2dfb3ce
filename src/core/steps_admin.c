/* SPDX-License-Identifier: MIT
 * The steps of operators: the values of each, and how its answer is read. */
#include "core/ask.h"
#include "core/step_cells.h"
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

static void forget_facts(void *out)
{
    *(struct rlk_facts *)out = (struct rlk_facts){.server = ""};
}

void rlk_step_facts(struct rlk_ask *ask, struct rlk_facts *out)
{
    ask->step = RLK_STEP_FACTS;
    ask->facts = out;
    ask->restart = forget_facts;
    reads(ask, read_facts, out);
}

/* ---- pages of rows */

static bool grow(struct rlk_items *page)
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
    struct rlk_items *page = out;
    (void)count;
    if (page->count == page->room && !grow(page))
        return RLK_ENOUGH;
    page->read(cells, rlk_item(page, page->count));
    page->count++;
    return 0;
}

static void forget_items(void *out)
{
    struct rlk_items *page = out;
    page->count = 0;
    page->no_memory = false;
}

static void read_items(struct rlk_ask *ask, struct rlk_items *page, size_t size,
                       void (*read)(const rowlock_value *cells, void *item))
{
    page->size = size;
    page->read = read;
    reads(ask, read_item, page);
    ask->restart = forget_items;
}

int rlk_ask_items(rowlock_db *db, struct rlk_ask *ask, struct rlk_items *items)
{
    int result = rlk_ask(db, ask);
    if (result == ROWLOCK_OK && items->no_memory)
        return rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    return result;
}

static enum rlk_class send_items(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask,
                                 const struct rlk_items *items)
{
    enum rlk_class class = rlk_send(db, call, ask);
    return class == RLK_DONE && items->no_memory ? RLK_NOMEM : class;
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

void rlk_step_waiters(struct rlk_ask *ask, struct rlk_items *out, const char *name,
                      const struct rlk_waiter *after, int limit)
{
    ASK(ask, WAITERS, text_or_null(name), rowlock_text(after->name), rowlock_int(after->ticket),
        rowlock_int(after->request), rowlock_int(limit));
    read_items(ask, out, sizeof(struct rlk_waiter), read_waiter);
}

void rlk_step_list(struct rlk_ask *ask, struct rlk_items *out, const char *name,
                   const char *after_name, int64_t after_slot, int limit)
{
    ASK(ask, LIST, text_or_null(name), rowlock_text(after_name), rowlock_int(after_slot),
        rowlock_int(limit));
    read_items(ask, out, sizeof(struct rlk_row), read_whole_row);
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

void rlk_step_measure(struct rlk_ask *ask, rowlock_figures *out)
{
    ask->step = RLK_STEP_MEASURE;
    reads(ask, read_figures, out);
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

void rlk_step_measure_names(struct rlk_ask *ask, struct rlk_items *out, const char *glob,
                            const char *after, int limit)
{
    ASK(ask, MEASURE_NAMES, rowlock_text(glob), rowlock_text(after), rowlock_int(limit));
    read_items(ask, out, sizeof(rowlock_name_figures), read_name);
}

/* ---- the last grant */

static int read_last(void *out, const rowlock_value *cells, size_t count)
{
    (void)count;
    *(struct rlk_last *)out =
        (struct rlk_last){.found = true, .token = cells[0].number, .granted_us = cells[1].number};
    return 0;
}

static void forget_last(void *out)
{
    *(struct rlk_last *)out = (struct rlk_last){0};
}

void rlk_step_last(struct rlk_ask *ask, const char *name, struct rlk_last *out)
{
    ASK(ask, LAST, rowlock_text(name));
    reads(ask, read_last, out);
    ask->restart = forget_last;
}

/* ---- sweeping */

struct sweeping {
    struct rlk_sweep *sweep;
    rowlock_value in[6];
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
    s->sweep->removed = cells[0].number;
    return read_end(s, cells + 1, count - 1);
}

/* The answer is how many rows are gone, and the last of them if the dialect has no other end of a
 * batch. */
static enum rlk_class sweep_quietly(rowlock_db *db, struct rlk_call *call, struct sweeping *s)
{
    struct rlk_ask quiet = {.read = read_swept, .out = s};
    rlk_fill(&quiet, RLK_STEP_SWEEP_QUIET, s->in, 6);
    enum rlk_class class = rlk_send(db, call, &quiet);
    if (quiet.rows == 0)
        s->sweep->removed = quiet.changed;
    return class;
}

static int compare_rows(const void *a, const void *b)
{
    const struct rlk_row *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->slot > y->slot) - (x->slot < y->slot);
}

static enum rlk_class read_rows(rowlock_db *db, struct rlk_call *call, enum rlk_step step,
                                struct sweeping *s)
{
    struct rlk_ask ask = {.step = step};
    rlk_fill(&ask, step, s->in, 6);
    read_items(&ask, &s->sweep->rows, sizeof(struct rlk_row), read_whole_row);
    enum rlk_class class = send_items(db, call, &ask, &s->sweep->rows);
    s->sweep->removed = (int64_t)s->sweep->rows.count;
    return class;
}

/* A DELETE answers its rows in any order. */
static enum rlk_class read_swept_page(rowlock_db *db, struct rlk_call *call, struct sweeping *s)
{
    struct rlk_items *rows = &s->sweep->rows;
    enum rlk_class class = read_rows(db, call, RLK_STEP_SWEEP, s);
    if (rows->count > 0)
        qsort(rows->items, rows->count, rows->size, compare_rows);
    return class;
}

/* A dialect may bound a batch by the rows that it reads, expired or not. If there are no more rows
 * than that, the batch is the rest of the table. */
static enum rlk_class sweep_range(rowlock_db *db, struct rlk_call *call, struct sweeping *s)
{
    enum { UNTIL = 4, UNTIL_SLOT };
    bool bounded = db->texts.sql[RLK_STEP_SWEEP_END];
    struct rlk_ask end = {.read = read_end, .out = s};
    rlk_fill(&end, RLK_STEP_SWEEP_END, s->in, 3);
    enum rlk_class class = bounded ? rlk_send(db, call, &end) : RLK_DONE;
    if (class != RLK_DONE)
        return class;
    if (s->ends) {
        s->in[UNTIL] = rowlock_text(s->end.name);
        s->in[UNTIL_SLOT] = rowlock_int(s->end.slot);
    }
    class = s->sweep->reports ? read_swept_page(db, call, s) : sweep_quietly(db, call, s);
    s->sweep->more = bounded ? s->ends : s->sweep->removed >= s->sweep->batch;
    return class;
}

/* Removes some of the rows that were read, if they are the same grants and still expired. */
static enum rlk_class remove_rows(rowlock_db *db, struct rlk_call *call,
                                  const struct rlk_sweep *sweep, size_t first, size_t count,
                                  int64_t *removed)
{
    struct rlk_many m = {.width = 3, .shared = 1, .in = {[3] = rowlock_int(sweep->older_us)}};
    for (size_t i = first; i < first + count; i++) {
        const struct rlk_row *row = rlk_item(&sweep->rows, i);
        const rowlock_value key[] = {rowlock_int(row->slot), rowlock_int(row->token),
                                     rowlock_text(row->name)};
        rlk_many_add(&m, key, db->driver->packing);
    }
    enum rlk_class class = rlk_many_send(db, call, RLK_STEP_SWEEP_KEYS, &m, NULL, NULL);
    *removed = m.changed;
    return class;
}

/* Returns RLK_CONTENTION if some rows stay, so that the transaction is rolled back. */
static enum rlk_class remove_all(rowlock_db *db, struct rlk_call *call, struct rlk_sweep *sweep)
{
    bool begun;
    enum rlk_class class = rlk_begin(db, call, &begun);
    if (class == RLK_DONE)
        class = remove_rows(db, call, sweep, 0, sweep->rows.count, &sweep->removed);
    if (class == RLK_DONE && sweep->removed != (int64_t)sweep->rows.count)
        class = RLK_CONTENTION;
    return rlk_end(db, call, begun, class);
}

static enum rlk_class remove_each(rowlock_db *db, struct rlk_call *call, struct rlk_sweep *sweep)
{
    bool begun;
    enum rlk_class class = rlk_begin(db, call, &begun);
    sweep->removed = 0;
    for (size_t i = 0; class == RLK_DONE && i < sweep->rows.count; i++) {
        int64_t gone = 0;
        class = remove_rows(db, call, sweep, i, 1, &gone);
        sweep->stays[i] = gone == 0;
        sweep->removed += gone;
    }
    return rlk_end(db, call, begun, class);
}

/* For servers whose DELETE does not answer its rows, only their number. A sweep that must report
 * them removes all or none. If some stay, it finds out which by removing them one by one. */
static enum rlk_class remove_page(rowlock_db *db, struct rlk_call *call, struct rlk_sweep *sweep)
{
    if (!sweep->reports)
        return remove_rows(db, call, sweep, 0, sweep->rows.count, &sweep->removed);
    enum rlk_class class = remove_all(db, call, sweep);
    if (class != RLK_CONTENTION)
        return class;
    sweep->stays = rlk_alloc(sweep->rows.count);
    return sweep->stays ? remove_each(db, call, sweep) : RLK_NOMEM;
}

/* The candidates are read without locks. */
static enum rlk_class sweep_page(rowlock_db *db, struct rlk_call *call, struct sweeping *s)
{
    struct rlk_sweep *sweep = s->sweep;
    enum rlk_class class = read_rows(db, call, RLK_STEP_EXPIRED, s);
    sweep->more = sweep->removed >= sweep->batch;
    bool removes = class == RLK_DONE && !sweep->dry_run && sweep->removed > 0;
    return removes ? remove_page(db, call, sweep) : class;
}

static enum rlk_class run_sweep(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask)
{
    struct rlk_sweep *sweep = ask->out;
    struct sweeping s = {.sweep = sweep};
    rlk_sweep_clear(sweep);
    memcpy(s.in, ask->in, sizeof s.in);
    bool by_keys = sweep->dry_run || db->texts.sql[RLK_STEP_SWEEP_KEYS];
    enum rlk_class class = by_keys ? sweep_page(db, call, &s) : sweep_range(db, call, &s);
    if (sweep->rows.count > 0 && !s.ends) {
        const struct rlk_row *last = rlk_item(&sweep->rows, sweep->rows.count - 1);
        memcpy(s.end.name, last->name, sizeof s.end.name);
        s.end.slot = last->slot;
    }
    sweep->last = s.end;
    return class;
}

void rlk_step_sweep(struct rlk_ask *ask, struct rlk_sweep *sweep)
{
    ASK(ask, SWEEP, rowlock_text(sweep->after.name), rowlock_int(sweep->after.slot),
        rowlock_int(sweep->batch), rowlock_int(sweep->older_us), rowlock_null(), rowlock_null());
    ask->run = run_sweep;
    ask->out = sweep;
}

const struct rlk_row *rlk_swept(const struct rlk_sweep *sweep, size_t i)
{
    return sweep->stays && sweep->stays[i] ? NULL : rlk_item(&sweep->rows, i);
}

void rlk_sweep_clear(struct rlk_sweep *sweep)
{
    rlk_free(sweep->stays);
    rlk_free(sweep->rows.items);
    sweep->stays = NULL;
    sweep->rows = (struct rlk_items){0};
    sweep->removed = 0;
}

static int read_number(void *out, const rowlock_value *cells, size_t count)
{
    (void)count;
    *(int64_t *)out = cells[0].number;
    return 0;
}

void rlk_step_fold(struct rlk_ask *ask, int64_t idle_us, int batch, bool dry_run, int64_t *folded)
{
    ASK(ask, FOLD, rowlock_int(idle_us), rowlock_int(batch), rowlock_bool(dry_run));
    reads(ask, read_number, folded);
}

void rlk_step_sweep_waiters(struct rlk_ask *ask, int batch)
{
    ASK(ask, SWEEP_WAITERS, rowlock_int(batch));
}

static int read_broken(void *out, const rowlock_value *cells, size_t count)
{
    struct rlk_broken *broken = out;
    (void)count;
    broken->found = true;
    read_whole_row(cells, &broken->row);
    return 0;
}

static void forget_broken(void *out)
{
    ((struct rlk_broken *)out)->found = false;
}

void rlk_step_break(struct rlk_ask *ask, const char *name, int64_t token, struct rlk_broken *out)
{
    ASK(ask, BREAK, rowlock_text(name), rowlock_int(token));
    ask->wakes = name;
    reads(ask, read_broken, out);
    ask->restart = forget_broken;
}

void rlk_step_raise(struct rlk_ask *ask, int64_t by, int64_t *floor)
{
    ASK(ask, RAISE, rowlock_int(by));
    reads(ask, read_number, floor);
}
