/* SPDX-License-Identifier: MIT
 *
 * Memory of the library that runs out when a test says so, and is counted. Memory of vendors'
 * client libraries is not here.
 */
#ifndef FAIL_ALLOC_H
#define FAIL_ALLOC_H

/* Count from here on; the nth allocation fails, 0: none does. */
void fail_alloc_at(int nth);

/* Allocations asked for since, the failed one included. */
int fail_alloc_asked(void);

/* Pieces of memory that are not freed yet, whenever they were allocated since the first call
 * above. */
int fail_alloc_live(void);

#endif
