/* SPDX-License-Identifier: MIT
 *
 * Counts the library's memory, and lets it run out when a test says so. Memory of the client
 * libraries is not included. */
#pragma once

/* Counts from here on. The nth allocation fails. 0: none does. */
void fail_alloc_at(int nth);

/* From now on only what a driver's own files ask for is counted, and fails. The Makefile says which
 * programs can tell. In all others nothing is counted then. */
void fail_alloc_of_drivers(void);

/* Allocations since then, with the failed one. */
int fail_alloc_asked(void);

/* Pieces of memory that are not freed yet, counted since the first call of fail_alloc_at(). */
int fail_alloc_live(void);
