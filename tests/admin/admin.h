/* SPDX-License-Identifier: MIT
 *
 * What rowlock_check() says of one thing, for the tests of administration.
 */
#ifndef ADMIN_H
#define ADMIN_H

#include "contract.h"

struct found {
    const char *item;
    rowlock_verdict verdict; /* ROWLOCK_FINE: there was no such finding */
    rowlock_verdict worst; /* of all findings */
    char value[300], advice[600];
    bool further; /* there was another finding */
};

/* Checks that the look itself goes well. */
struct found check_item(rowlock_db *db, const char *item);

/* Opens, installs, upgrades or tries a lock, and closes again: the result. */
int installs(const char *url);
int upgrades(const char *url);
int acquires_there(const char *url);

/* For rowlock_list() and sweeps: what was seen. Begin with in_order true. */
struct seen {
    int count, over, stop_after;
    char last[256];
    bool in_order; /* of the names' bytes, each once */
};
int see_grant(void *context, const rowlock_grant *grant);

#endif
