/* SPDX-License-Identifier: MIT
 *
 * Servers that crash, are not there, or stand still: what calls say, and how soon; and that all
 * goes on when they are back.
 */
#ifndef SERVER_H
#define SERVER_H

#include "raw.h"

/* On the private server of raw's environment variable. Returns the status to exit with. */
int server_main(const struct raw *raw);

#endif
