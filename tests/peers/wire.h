/* SPDX-License-Identifier: MIT
 *
 * What servers tell of themselves in lines of text, each "KEY NUMBER" with or without a colon. */
#ifndef PEERS_WIRE_H
#define PEERS_WIRE_H

#include "bench.h"

/* Connects to the place's port, sends a request and reads until the server closes. Returns the sum of
 * the numbers at the end of all lines that begin with one of the keys. keys ends with NULL. */
int64_t wire_sum(const struct place *place, const char *request, const char *const *keys);

/* The folder with the pid of a server of tests/peers. */
const char *wire_dir(const char *server);

#endif
