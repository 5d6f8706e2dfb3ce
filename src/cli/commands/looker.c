/* SPDX-License-Identifier: MIT
 *
 * Looks at the tables for `watch`. cmd_watch.c and screen.c show what it finds.
 *
 * Each grant of a name has the next token, so tokens that were seen tell the number of grants.
 * Grants between two looks at a name are counted when the name is seen again.
 */
#include "cli/print/print.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* The rate is that of so many looks. */
    SAMPLES = 10,
    /* A name without a holder is remembered for this number of looks. */
    REMEMBERED = 600,
    /* More grants in a millisecond than a database can make: the tokens were raised. */
    MOST_IN_A_MS = 100
};

/* ---------------------------------------------------------------- the rate of grants */

struct seen {
    char name[256];
    /* The highest. */
    int64_t token;
    /* Those in the table. */
    int64_t grants;
    /* The last look that saw the name. */
    int64_t look;
};

static struct {
    /* In the order of strcmp(). */
    struct seen *names;
    size_t count;
    int64_t looks;
    /* The numbers of grants at the latest looks, and the times since the looks before them. */
    int64_t grants[SAMPLES];
    int64_t spans_ms[SAMPLES];
    int64_t last_ms;
} rate;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct seen *)a)->name, ((const struct seen *)b)->name);
}

static const struct seen *find(const struct seen *name, const struct seen *names, size_t count)
{
    return count ? bsearch(name, names, count, sizeof *names, by_name) : NULL;
}

/* The names of a snapshot, each with its highest token, in the order of strcmp(). */
static size_t fill_names(struct seen *names, const struct snapshot *snapshot)
{
    size_t count = 0;
    for (size_t i = 0; i < snapshot->grants; i++) {
        const rowlock_grant *grant = &snapshot->entries[i].grant;
        if (count == 0 || strcmp(names[count - 1].name, grant->name) != 0) {
            memcpy(names[count].name, grant->name, sizeof names->name);
            names[count++].look = rate.looks;
        }
        struct seen *last = &names[count - 1];
        last->token = grant->token > last->token ? grant->token : last->token;
        last->grants++;
    }
    qsort(names, count, sizeof *names, by_name);
    return count;
}

/* A grant of a name that the last look did not see is younger than that look. */
static int64_t grants_between(const struct seen *before, const struct seen *now, int64_t span_ms)
{
    if (!before)
        return now->grants;
    int64_t grants = now->token - before->token;
    int64_t since_ms = span_ms * (now->look - before->look);
    return grants < 0 || grants > since_ms * MOST_IN_A_MS ? now->grants : grants;
}

/* Returns the grants since the last look. A name that only the old list has stays for a while. */
static int64_t merge(const struct snapshot *snapshot, int64_t span_ms)
{
    int64_t grants = 0;
    struct seen *names = must_have(calloc(rate.count + snapshot->grants + 1, sizeof *names));
    size_t now = fill_names(names, snapshot), count = now;
    for (size_t i = 0; i < now; i++)
        grants += grants_between(find(&names[i], rate.names, rate.count), &names[i], span_ms);
    for (size_t i = 0; i < rate.count; i++)
        if (rate.looks - rate.names[i].look < REMEMBERED && !find(&rate.names[i], names, now))
            names[count++] = rate.names[i];
    qsort(names, count, sizeof *names, by_name);
    free(rate.names);
    rate.names = names;
    rate.count = count;
    return grants;
}

static void count_grants(struct view *view)
{
    bool first = rate.looks++ == 0;
    int64_t place = rate.looks % SAMPLES, grants = 0, span_ms = 0;
    view->span_ms = first ? 0 : view->snapshot.taken_ms - rate.last_ms;
    view->grants = merge(&view->snapshot, view->span_ms);
    if (first)
        view->grants = 0;
    rate.grants[place] = view->grants;
    rate.spans_ms[place] = view->span_ms;
    rate.last_ms = view->snapshot.taken_ms;
    for (int i = 0; i < SAMPLES; i++) {
        grants += rate.grants[i];
        span_ms += rate.spans_ms[i];
    }
    view->rate_milli = span_ms == 0 ? 0 : grants * 1000000 / span_ms;
}

/* ---------------------------------------------------------------- a look */

void view_free(struct view *view)
{
    if (view)
        snapshot_free(&view->snapshot);
    free(view);
}

struct view *looker_look(struct cli *cli)
{
    struct view *view = must_have(calloc(1, sizeof *view));
    const char *name = cli->argument_count > 0 ? cli->arguments[0] : NULL;
    view->result = snapshot_take(&view->snapshot, cli->db, name);
    if (view->result == ROWLOCK_OK)
        count_grants(view);
    else
        view->error = *rowlock_db_error(cli->db);
    return view;
}

char *view_summary(const char *before, const struct view *view)
{
    return new_text("%s%zu held, %zu waiting, %lld.%lld grants/s", before, view->snapshot.held,
                    view->snapshot.waiting, (long long)view->rate_milli / 1000,
                    (long long)view->rate_milli % 1000 / 100);
}
