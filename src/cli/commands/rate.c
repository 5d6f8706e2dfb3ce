/* SPDX-License-Identifier: MIT
 *
 * Counts grants by their tokens. It does not ask the database.
 */
#include "cli/commands/rate.h"

#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* A name without a holder is remembered for this number of looks. */
    REMEMBERED = 600,
    /* More grants in a millisecond than a database can make: the tokens were raised. */
    MOST_IN_A_MS = 100
};

static int by_name(const void *a, const void *b)
{
    const struct seen *one = a;
    const struct seen *other = b;
    return strcmp(one->name, other->name);
}

/* The names of a snapshot, each with its highest token, in the order of strcmp(). */
static struct seen *names_of(const struct snapshot *snapshot, int64_t look, size_t *count)
{
    struct seen *names = must_have(calloc(snapshot->grant_count + 1, sizeof *names));
    *count = 0;
    for (size_t i = 0; i < snapshot->grant_count; i++) {
        const rowlock_grant *grant = &snapshot->grants[i];
        struct seen *last = *count ? &names[*count - 1] : NULL;
        if (!last || strcmp(last->name, grant->name) != 0) {
            last = &names[(*count)++];
            memcpy(last->name, grant->name, sizeof last->name);
            last->look = look;
        }
        last->token = grant->token > last->token ? grant->token : last->token;
        last->grants++;
    }
    qsort(names, *count, sizeof *names, by_name);
    return names;
}

/* A grant of a name that the last look did not see is younger than that look. */
static int64_t grants_between(const struct seen *before, const struct seen *now, int64_t span_ms)
{
    if (!before)
        return now->grants;
    int64_t grants = now->token - before->token;
    /* Roughly. */
    int64_t since_ms = span_ms * (now->look - before->look);
    return grants < 0 || grants > since_ms * MOST_IN_A_MS ? now->grants : grants;
}

struct merging {
    struct seen *names;
    size_t count;
    int64_t grants;
};

static void keep(struct merging *m, const struct seen *seen)
{
    m->names[m->count++] = *seen;
}

/* Both lists are in the same order. A name that only the old one has is remembered for a while. */
static int64_t merge(struct rate *rate, const struct seen *now, size_t now_count, int64_t span_ms)
{
    struct merging m = {.names =
                            must_have(calloc(rate->count + now_count + 1, sizeof(struct seen)))};
    size_t i = 0, j = 0;
    while (i < rate->count || j < now_count) {
        int order = i == rate->count ? 1 : j == now_count ? -1 : by_name(&rate->names[i], &now[j]);
        if (order < 0) {
            if (rate->looks - rate->names[i].look < REMEMBERED)
                keep(&m, &rate->names[i]);
            i++;
            continue;
        }
        m.grants += grants_between(order ? NULL : &rate->names[i], &now[j], span_ms);
        keep(&m, &now[j]);
        i += order == 0;
        j++;
    }
    free(rate->names);
    rate->names = m.names;
    rate->count = m.count;
    return m.grants;
}

int64_t rate_note(struct rate *rate, const struct snapshot *snapshot)
{
    size_t now_count;
    bool first = rate->looks == 0;
    int64_t span_ms = first ? 0 : snapshot->taken_ms - rate->last_ms;
    struct seen *now = names_of(snapshot, ++rate->looks, &now_count);
    int64_t grants = merge(rate, now, now_count, span_ms);
    free(now);
    if (first)
        grants = 0;
    rate->grants[rate->looks % RATE_SAMPLES] = grants;
    rate->spans_ms[rate->looks % RATE_SAMPLES] = span_ms;
    rate->last_ms = snapshot->taken_ms;
    return grants;
}

int64_t rate_span_ms(const struct rate *rate)
{
    return rate->spans_ms[rate->looks % RATE_SAMPLES];
}

int64_t rate_milli(const struct rate *rate)
{
    int64_t grants = 0, span_ms = 0;
    for (int i = 0; i < RATE_SAMPLES; i++) {
        grants += rate->grants[i];
        span_ms += rate->spans_ms[i];
    }
    if (span_ms == 0)
        return 0;
    return grants * 1000000 / span_ms;
}

void rate_free(struct rate *rate)
{
    free(rate->names);
    *rate = (struct rate){0};
}
