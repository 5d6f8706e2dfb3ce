/* SPDX-License-Identifier: MIT
 * A fourth database, in memory. */
#pragma once

#include "core/driver.h"

extern const struct rlk_driver rlk_driver_memory;

int memory_rows(const char *name); /* how many grants it keeps of this name */
