/* SPDX-License-Identifier: MIT
 * Figures for monitoring. The server counts. */
#include "base/ident.h"
#include "base/options.h"
#include "core/ask.h"
#include "core/core.h"

#include <string.h>

enum { PAGE = 500 };

int rowlock_measure(rowlock_db *db, rowlock_figures *out)
{
    rowlock_figures figures = ROWLOCK_FIGURES_INIT;
    struct rlk_ask ask = {.step = RLK_STEP_NONE};
    rlk_step_measure(&ask, &figures);
    int result = rlk_need_database(db, rlk_enter(db, "count what is in the tables", NULL));
    if (result == ROWLOCK_OK && !out)
        return rlk_fail(db, ROWLOCK_EINVAL, "the output must not be NULL");
    if (result == ROWLOCK_OK)
        result = rlk_ask(db, &ask);
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

/* A full page that ends where it began would come again and again. */
static int measure_page(rowlock_db *db, struct measuring *m)
{
    struct rlk_ask ask = {.step = RLK_STEP_NONE};
    struct rlk_items names = {0};
    char after[RLK_TEXT_MAX + 1];
    memcpy(after, m->last, sizeof after);
    rlk_step_measure_names(&ask, &names, m->glob, after, PAGE);
    int result = rlk_ask_items(db, &ask, &names);
    for (m->seen = 0; result == ROWLOCK_OK && m->seen < (int)names.count && !m->stopped;
         m->seen++) {
        const rowlock_name_figures *figures = rlk_item(&names, (size_t)m->seen);
        memcpy(m->last, figures->name, sizeof m->last);
        m->stopped = m->each(m->context, figures) != 0;
    }
    rlk_free(names.items);
    if (result == ROWLOCK_OK && m->seen >= PAGE && !m->stopped && strcmp(m->last, after) <= 0)
        return rlk_fail_answer(db, RLK_STEP_MEASURE_NAMES);
    return result;
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
    if (result != ROWLOCK_OK)
        return result;
    do
        result = measure_page(db, &m);
    while (result == ROWLOCK_OK && m.seen == PAGE && !m.stopped);
    return result;
}
