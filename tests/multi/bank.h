/* SPDX-License-Identifier: MIT
 *
 * A bank whose clerks are stopped at the worst moments, on each database the same: what
 * rowlock_guard() promises, and what goes wrong without it.
 */
#ifndef BANK_H
#define BANK_H

#include "raw.h"

/* How a clerk begins transactions: at one isolation or another. */
struct manner {
    const char *setup; /* SQL for a new session, or NULL */
    const char *begin;
};

struct bank {
    const struct raw *raw;
    const struct manner *manners; /* taken in turn by the clerks; ends with a NULL begin */
    const char *const
        *conflicts; /* in the text of an error after which one tries again; ends with NULL */
    int transfers; /* how many must succeed, at least */
};

int bank_run(const struct bank *bank);

#endif
