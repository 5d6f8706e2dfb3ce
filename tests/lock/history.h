/* SPDX-License-Identifier: MIT
 *
 * Readers, writers and counted holders in many processes that are stopped and killed at any moment: what
 * they write down about their grants is one history, in which nobody ever had what another had.
 */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdbool.h>
#include <stdint.h>

enum { HISTORY_NAMES = 2, HISTORY_MAX = 20000, HISTORY_PERMITS = 3 };

/* A grant, by the database's clock, from when it was made until when it certainly still stood. */
struct past {
    int name; /* which lock */
    int permits;
    long long token, start, end;
    long long told; /* its holder knew of it */
    bool witnessed; /* the end is not that of a lease, but was seen by the holder */
};

struct history {
    struct past past[HISTORY_MAX];
    int count, kept, lost; /* grants, and what renewals and guards said of them */
};

/* What the file tells. Lines, each written at once:
 *   G name permits token start expires told    granted
 *   R name token expires                  renewed: the lease ends then
 *   K name token at                       it stood then, whatever its lease
 *   E name token at                       from then on it may be released
 *   L name token                          told LOST */
void history_read(struct history *history, const char *path);

/* How many pairs of grants contradict each other, which aloud tells; how many times there were more than the permits; how
 * many tokens are not in the order of grants. most: the highest number of counted holders at once. */
int history_conflicts(const struct history *history, bool aloud);
int history_excesses(const struct history *history, int *most);
int history_inversions(const struct history *history);

#endif
