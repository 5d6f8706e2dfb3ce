/* SPDX-License-Identifier: MIT
 *
 * The library's own memory running out, at each place in turn. The client libraries' memory is not
 * here. */
#ifndef MEMORY_H
#define MEMORY_H

#include "raw.h"

/* Walks until no piece is left that could fail. Each walk is a check. */
typedef bool walk_fn(const struct raw *raw, const char *url, int nth, bool adopted);
void starve(const char *what, walk_fn *walk, const struct raw *raw, const char *url, bool adopted);

/* memory_rows.c: the same of calls about rows, as checks of its own. */
void starve_rows(const struct raw *raw, const char *url, bool adopted);

#endif
