/* SPDX-License-Identifier: MIT
 * Figures for monitoring. The server counts. */
#include "admin/admin.h"
#include "base/ident.h"
#include "base/options.h"
#include "core/ask.h"
#include "core/step_cells.h"

#include <string.h>

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

int rowlock_measure(rowlock_db *db, rowlock_figures *out)
{
    rowlock_figures figures = ROWLOCK_FIGURES_INIT;
    struct rlk_ask ask = {.step = RLK_STEP_MEASURE, .read = read_figures, .out = &figures};
    int result = rlk_need_database(db, rlk_enter(db, "count what is in the tables", NULL));
    if (result == ROWLOCK_OK && !out)
        return rlk_fail(db, ROWLOCK_EINVAL, "the output must not be NULL");
    if (result == ROWLOCK_OK)
        result = rlk_ask(db, &ask);
    if (result == ROWLOCK_OK)
        rlk_give_struct(out, &figures, sizeof figures);
    return result;
}

/* ---- by name */

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

struct measuring {
    const char *glob;
    int (*each)(void *context, const rowlock_name_figures *figures);
    void *context;
};

static void ask_names(struct rlk_ask *ask, void *context, const void *after, int limit)
{
    const struct measuring *m = context;
    const rowlock_name_figures *last = after;
    ASK(ask, MEASURE_NAMES, rowlock_text(m->glob), rowlock_text(last ? last->name : ""),
        rowlock_int(limit));
}

static int give_name(void *context, const void *item, const void *before)
{
    const struct measuring *m = context;
    (void)before;
    return m->each(m->context, item);
}

static bool is_further(const void *item, const void *than)
{
    const rowlock_name_figures *one = item, *other = than;
    return strcmp(one->name, other->name) > 0;
}

int rowlock_measure_names(rowlock_db *db, const char *glob,
                          int (*each)(void *context, const rowlock_name_figures *figures),
                          void *context)
{
    static const struct rlk_list names = {RLK_STEP_MEASURE_NAMES,
                                          sizeof(rowlock_name_figures),
                                          read_name,
                                          ask_names,
                                          give_name,
                                          is_further};
    struct measuring m = {.glob = glob, .each = each, .context = context};
    int result = rlk_need_database(db, rlk_enter(db, "count what is in the tables", NULL));
    if (result == ROWLOCK_OK && !each)
        return rlk_fail(db, ROWLOCK_EINVAL, "the callback must not be NULL");
    if (result == ROWLOCK_OK)
        result = rlk_check_text(&db->error, "pattern", glob, false);
    return result == ROWLOCK_OK ? rlk_list_pages(db, &names, &m) : result;
}
