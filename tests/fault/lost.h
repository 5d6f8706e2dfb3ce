/* SPDX-License-Identifier: MIT
 *
 * Connections cut at each request of a call in turn, before the server has seen it and after it has
 * answered: what the call says is what the tables show.
 */
#ifndef LOST_H
#define LOST_H

#include "raw.h"

/* On the server of raw's environment variable. Returns the status to exit with. */
int lost_main(const struct raw *raw);

#endif
