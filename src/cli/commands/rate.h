/* SPDX-License-Identifier: MIT
 *
 * Counts grants by the tokens that were seen: each grant of a name has the next token. Grants
 * between two looks at a name are counted when the name is seen again.
 */
#ifndef ROWLOCK_CLI_RATE_H
#define ROWLOCK_CLI_RATE_H

#include "cli/commands/snapshot.h"

#define RATE_SAMPLES 10

struct seen {
    char name[256];
    /* The highest. */
    int64_t token;
    /* Those in the table. */
    int64_t grants;
    /* The last look that saw the name. */
    int64_t look;
};

struct rate {
    /* In the order of strcmp(). */
    struct seen *names;
    size_t count;
    int64_t looks;
    /* Of the latest looks. */
    int64_t grants[RATE_SAMPLES];
    /* The times since the looks before them. */
    int64_t spans_ms[RATE_SAMPLES];
    int64_t last_ms;
};

/* Returns the number of grants since the look before, 0 at the first look. */
int64_t rate_note(struct rate *rate, const struct snapshot *snapshot);

/* The time between the last look and the one before. */
int64_t rate_span_ms(const struct rate *rate);

/* Grants in 1000 seconds, over the latest looks. */
int64_t rate_milli(const struct rate *rate);

void rate_free(struct rate *rate);

#endif
