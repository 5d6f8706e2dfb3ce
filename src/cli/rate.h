/* SPDX-License-Identifier: MIT
 *
 * How many grants there were, as far as tokens tell that were seen: each grant of a name has the
 * next one. A grant of a name that nobody holds at any look is counted when the name is seen again.
 */
#ifndef ROWLOCK_CLI_RATE_H
#define ROWLOCK_CLI_RATE_H

#include "snapshot.h"

#define RATE_SAMPLES 10

struct seen {
    char name[256];
    int64_t token; /* the highest */
    int64_t young; /* grants since the look before the last that saw it */
    int64_t look; /* the last one that saw it */
};

struct rate {
    struct seen *names; /* in strcmp()'s order */
    size_t count;
    int64_t looks;
    int64_t grants[RATE_SAMPLES]; /* of the latest looks */
    int64_t spans_ms[RATE_SAMPLES]; /* since the looks before them */
    int64_t last_ms;
};

/* Returns how many grants there were since the look before; 0 at the first one. */
int64_t rate_note(struct rate *rate, const struct snapshot *snapshot);

/* Since the look before the last. */
int64_t rate_span_ms(const struct rate *rate);

/* Grants in 1000 seconds, over the latest looks. */
int64_t rate_milli(const struct rate *rate);

void rate_free(struct rate *rate);

#endif
