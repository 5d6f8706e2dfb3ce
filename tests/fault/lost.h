/* SPDX-License-Identifier: MIT
 *
 * Each request of each call in turn is lost in every way, before the server has seen it or after it has
 * carried it out: what the call says is what the tables show.
 */
#ifndef LOST_H
#define LOST_H

#include "raw.h"

/* On the server of raw's environment variable. Each returns the status to exit with. */
int lost_main(const struct raw *raw);

/* The same of calls about rows and once-keys, cut only. */
int lost_rows_main(const struct raw *raw);

/* The server itself interrupts: a statement is cancelled, a connection is killed. */
int lost_killed_main(const struct raw *raw);

#endif
