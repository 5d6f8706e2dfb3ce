/* SPDX-License-Identifier: MIT
 *
 * Counts grants by their tokens. It does not ask the database.
 */
#include "cli/commands/commands.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* A name without a holder is remembered for this number of looks. */
    REMEMBERED = 600,
    /* More grants in a millisecond than a database can make: the tokens were raised. */
    MOST_IN_A_MS = 100
};

struct seen {
    char name[256];
    /* The highest. */
    int64_t token;
    /* Those in the table. */
    int64_t grants;
    /* The last look that saw the name. */
    int64_t look;
};

static int by_name(const void *a, const void *b)
{
    const struct seen *one = a;
    const struct seen *other = b;
    return strcmp(one->name, other->name);
}

static const struct seen *find(const struct seen *name, const struct seen *names, size_t count)
{
    return count ? bsearch(name, names, count, sizeof *names, by_name) : NULL;
}

/* The names of a snapshot, each with its highest token, in the order of strcmp(). */
static size_t fill_names(struct seen *names, const struct snapshot *snapshot, int64_t look)
{
    size_t count = 0;
    for (size_t i = 0; i < snapshot->grants; i++) {
        const rowlock_grant *grant = &snapshot->entries[i].grant;
        if (count == 0 || strcmp(names[count - 1].name, grant->name) != 0) {
            memcpy(names[count].name, grant->name, sizeof names->name);
            names[count++].look = look;
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
    /* Roughly. */
    int64_t since_ms = span_ms * (now->look - before->look);
    return grants < 0 || grants > since_ms * MOST_IN_A_MS ? now->grants : grants;
}

/* A name that only the old list has is remembered for a while. */
static int64_t merge(struct rate *rate, const struct snapshot *snapshot, int64_t span_ms)
{
    int64_t grants = 0;
    struct seen *names = must_have(calloc(rate->count + snapshot->grants + 1, sizeof *names));
    size_t now = fill_names(names, snapshot, ++rate->looks), count = now;
    for (size_t i = 0; i < now; i++)
        grants += grants_between(find(&names[i], rate->names, rate->count), &names[i], span_ms);
    for (size_t i = 0; i < rate->count; i++)
        if (rate->looks - rate->names[i].look < REMEMBERED && !find(&rate->names[i], names, now))
            names[count++] = rate->names[i];
    qsort(names, count, sizeof *names, by_name);
    free(rate->names);
    rate->names = names;
    rate->count = count;
    return grants;
}

int64_t rate_note(struct rate *rate, const struct snapshot *snapshot)
{
    bool first = rate->looks == 0;
    int64_t span_ms = first ? 0 : snapshot->taken_ms - rate->last_ms;
    int64_t grants = merge(rate, snapshot, span_ms);
    int64_t place = rate->looks % RATE_SAMPLES;
    rate->grants[place] = first ? 0 : grants;
    rate->spans_ms[place] = span_ms;
    rate->last_ms = snapshot->taken_ms;
    return rate->grants[place];
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
    return span_ms == 0 ? 0 : grants * 1000000 / span_ms;
}
