/* SPDX-License-Identifier: MIT
 *
 * The nodes of one cluster, as tests/more/with-*.sh start them, and what `check` finds on one of them.
 */
#pragma once

#include "quick.h"

extern char node[3][200]; /* URLs */

/* False: ROWLOCK_TEST_NODES names no cluster of nodes that all take writes. */
bool nodes_found(void);
bool is_galera(void);

/* The value of a finding, "" if there is none, and its verdict. */
rowlock_verdict finding(const char *url, const char *item, char *value, size_t cap);
