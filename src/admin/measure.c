/* SPDX-License-Identifier: MIT
 * Figures for monitoring. The server counts. */
#include "admin/admin.h"
#include "base/ident.h"
#include "base/options.h"
#include "core/ask.h"
#include "core/step_cells.h"

#include <string.h>

/* How long ago, in milliseconds. 0: there is no such time. */
static int64_t ms_since(int64_t us, int64_t now_us)
{
    return us == 0 || us > now_us ? 0 : (now_us - us) / 1000;
}

/* The two durations are read as the times when they began. */
#define OF(member) RLK_FIELD(rowlock_figures, member)
static const struct rlk_field figures_fields[] = {
    OF(now_us),          OF(exclusive),         OF(shared),
    OF(counted),         OF(expired_exclusive), OF(expired_shared),
    OF(expired_counted), OF(longest_hold_ms),   OF(waiters),
    OF(longest_wait_ms), OF(expired_tickets),   OF(names),
    OF(once_claimed),    OF(once_expired),      OF(once_done),
    OF(token_floor),     OF(swept_us),          OF(version),
};
#undef OF

int rowlock_measure(rowlock_db *db, rowlock_figures *out)
{
    rowlock_figures figures = ROWLOCK_FIGURES_INIT;
    struct rlk_ask ask = {.step = RLK_STEP_MEASURE, .fields = figures_fields, .out = &figures};
    int result = rlk_need_database(db, rlk_enter(db, "count what is in the tables", NULL));
    if (result == ROWLOCK_OK && !out)
        return rlk_fail(db, ROWLOCK_EINVAL, "the output must not be NULL");
    if (result == ROWLOCK_OK)
        result = rlk_ask(db, &ask);
    if (result != ROWLOCK_OK)
        return result;
    figures.longest_hold_ms = ms_since(figures.longest_hold_ms, figures.now_us);
    figures.longest_wait_ms = ms_since(figures.longest_wait_ms, figures.now_us);
    rlk_give_struct(out, &figures, sizeof figures);
    return ROWLOCK_OK;
}

/* ---- by name */

/* What is read of a name. Its times are microseconds, and those of the database's clock. */
struct measured {
    rowlock_name_figures figures;
    int64_t now_us;
};

#define OF(member) RLK_FIELD(struct measured, member)
static const struct rlk_field name_fields[] = {
    OF(figures.name),    OF(figures.token),        OF(figures.holders),
    OF(figures.held_ms), OF(figures.remaining_ms), OF(figures.lapsed_ms),
    OF(figures.waiters), OF(figures.waited_ms),    OF(now_us),
};
#undef OF

struct measuring {
    const char *glob;
    int (*each)(void *context, const rowlock_name_figures *figures);
    void *context;
};

static void ask_names(struct rlk_ask *ask, void *context, const void *after, int limit)
{
    const struct measuring *m = context;
    const struct measured *last = after;
    ASK(ask, MEASURE_NAMES, rowlock_text(m->glob), rowlock_text(last ? last->figures.name : ""),
        rowlock_int(limit));
}

static int give_name(void *context, const void *item, const void *before)
{
    const struct measuring *m = context;
    const struct measured *name = item;
    rowlock_name_figures f = name->figures;
    (void)before;
    f.size = sizeof f;
    f.held_ms = ms_since(f.held_ms, name->now_us);
    f.remaining_ms = f.remaining_ms ? (f.remaining_ms - name->now_us) / 1000 : 0;
    f.lapsed_ms /= 1000;
    f.waited_ms = ms_since(f.waited_ms, name->now_us);
    return m->each(m->context, &f);
}

static bool is_further(const void *item, const void *than)
{
    const struct measured *one = item, *other = than;
    return strcmp(one->figures.name, other->figures.name) > 0;
}

int rowlock_measure_names(rowlock_db *db, const char *glob,
                          int (*each)(void *context, const rowlock_name_figures *figures),
                          void *context)
{
    static const struct rlk_list names = {RLK_STEP_MEASURE_NAMES,
                                          sizeof(struct measured),
                                          name_fields,
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
