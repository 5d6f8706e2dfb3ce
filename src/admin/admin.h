/* SPDX-License-Identifier: MIT
 * For the files that change what all tokens are counted from. */
#ifndef RLK_ADMIN_H
#define RLK_ADMIN_H

#include "core/db.h"

/* Raises the floor of all tokens. *highest: the new floor. */
int rlk_raise(rowlock_db *db, int64_t by, int64_t *highest);

#endif
