/* SPDX-License-Identifier: MIT
 *
 * Many threads and processes on one lock, on each database the same: nothing but the database keeps
 * them apart. What one client sees is tests/contract.
 */
#ifndef MULTI_H
#define MULTI_H

#include "raw.h"

/* A way to set the isolation that connections begin with, and back. */
struct isolation {
    const char *name;
    const char *set, *reset;
    const char *if_true; /* SQL: 1 if this server can do it; NULL: it can */
};

struct multi {
    const struct raw *raw;
    const struct isolation *isolations; /* ends with a NULL name */
};

int multi_run(const struct multi *multi);

#endif
