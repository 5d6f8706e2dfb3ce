/* SPDX-License-Identifier: MIT
 *
 * Words for the tests of administration. */
#pragma once

#include "contract.h"

/* Opens, installs or upgrades, and closes again: the result. */
int installs(const char *url);
int upgrades(const char *url);

/* For rowlock_list() and sweeps: what was seen. Begin with in_order true. */
struct seen {
    int count, over, stop_after;
    char last[256];
    bool in_order; /* of the names' bytes, each once */
};
int see_grant(void *context, const rowlock_grant *grant);
