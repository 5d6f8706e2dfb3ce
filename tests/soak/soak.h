/* SPDX-License-Identifier: MIT
 *
 * The soak: clients that take, wait for, keep, abandon and sweep locks for as long as one likes,
 * while sizes are sampled. Beside them one client runs the bare loop of INSERT and DELETE on tables
 * with the database's own settings. */
#pragma once

#include "hand.h"

/* ---- the clients: work.c */

/* Starts them on this site. */
void work_start(const struct site *site);
/* Ends them. What they hold is released, and what they abandoned is swept. */
void work_stop(void);
/* Acquires of rowlock's clients and of the bare loop, so far. */
int64_t work_ours(void);
int64_t work_bare(void);
/* What failed first; NULL: nothing has. */
const char *work_failure(void);

/* ---- the samples: series.c */

struct series;
struct series *series_open(const struct site *site);
void series_close(struct series *series);
void series_sample(struct series *series);
/* Prints what did not stay bounded. True: all of it did. */
bool series_judge(const struct series *series);
