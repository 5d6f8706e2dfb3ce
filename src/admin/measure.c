/* SPDX-License-Identifier: MIT
 * Figures for monitoring. The server counts. */
#include "base/ident.h"
#include "base/options.h"
#include "core/ask.h"
#include "core/core.h"

#include <string.h>

enum { PAGE = 500 };

static enum rlk_class run_measure(rowlock_db *db, struct rlk_call *call, void *context)
{
    return rlk_step_measure(db, call, context);
}

int rowlock_measure(rowlock_db *db, rowlock_figures *out)
{
    rowlock_figures figures = ROWLOCK_FIGURES_INIT;
    struct rlk_step_call step = {.run = run_measure, .context = &figures};
    int result = rlk_need_database(db, rlk_enter(db, "count what is in the tables", NULL));
    if (result == ROWLOCK_OK && !out)
        return rlk_fail(db, ROWLOCK_EINVAL, "the output must not be NULL");
    if (result == ROWLOCK_OK)
        result = rlk_do(db, &step);
    if (result == ROWLOCK_OK)
        rlk_give_struct(out, &figures, sizeof figures);
    return result;
}

struct measuring {
    const char *glob;
    int (*each)(void *context, const rowlock_name_figures *figures);
    void *context;
    /* The next page begins behind it. */
    char last[RLK_TEXT_MAX + 1];
    int seen;
    bool stopped;
};

static int give_name(void *context, const rowlock_name_figures *figures)
{
    struct measuring *m = context;
    memcpy(m->last, figures->name, sizeof m->last);
    m->seen++;
    m->stopped = m->each(m->context, figures) != 0;
    return m->stopped;
}

/* A full page that ends where it began would come again and again. */
static enum rlk_class run_names(rowlock_db *db, struct rlk_call *call, void *context)
{
    struct measuring *m = context;
    char after[RLK_TEXT_MAX + 1];
    memcpy(after, m->last, sizeof after);
    m->seen = 0;
    enum rlk_class class = rlk_step_measure_names(db, call, m->glob, after, PAGE, give_name, m);
    if (class == RLK_DONE && m->seen >= PAGE && !m->stopped && strcmp(m->last, after) <= 0)
        return rlk_diag_misfit(call, RLK_STEP_MEASURE_NAMES);
    return class;
}

int rowlock_measure_names(rowlock_db *db, const char *glob,
                          int (*each)(void *context, const rowlock_name_figures *figures),
                          void *context)
{
    int result = rlk_need_database(db, rlk_enter(db, "count what is in the tables", NULL));
    if (result == ROWLOCK_OK && !each)
        return rlk_fail(db, ROWLOCK_EINVAL, "the callback must not be NULL");
    if (result == ROWLOCK_OK)
        result = rlk_check_text(&db->error, "pattern", glob, false);
    struct measuring m = {.glob = glob, .each = each, .context = context};
    do {
        struct rlk_step_call step = {.run = run_names, .context = &m};
        if (result == ROWLOCK_OK)
            result = rlk_do(db, &step);
    } while (result == ROWLOCK_OK && m.seen == PAGE && !m.stopped);
    return result;
}
