/* SPDX-License-Identifier: MIT
 *
 * A line of 64 processes, on each database the same: in which order they are granted the lock, and what
 * becomes of the others when every third of them is killed while he waits, and a few while they hold it.
 */
#ifndef LINE_H
#define LINE_H

#include "raw.h"

int line_run(const struct raw *raw);

#endif
