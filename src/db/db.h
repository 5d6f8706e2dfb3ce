/* SPDX-License-Identifier: MIT
 * For the files that open and close connections. */
#ifndef RLK_DB_ROOM_H
#define RLK_DB_ROOM_H

#include "seam/db.h"

/* backends.c */
const struct rlk_backend *rlk_backend_find(const char *scheme, bool *known);

/* close.c */
void rlk_db_free(rowlock_db *db);

#endif
