/* SPDX-License-Identifier: MIT
 * For the files that open and close connections. */
#ifndef RLK_API_H
#define RLK_API_H

#include "core/db.h"

/* Connections of a pool. */
enum { RLK_POOL_MOST = 64 };

/* drivers.c */
const struct rlk_driver *rlk_driver_find(const char *scheme, bool *known);

/* open.c */
/* rowlock_db_open() without connecting. The first step connects. */
int rlk_db_open_later(const char *url, const rowlock_db_options *options, rowlock_db **out,
                      rowlock_error *err);
/* Makes a handle without a connection, and takes the options that each kind of handle has. */
int rlk_db_new(rowlock_db **out, const rowlock_db_options *theirs, rowlock_db_options *options,
               rowlock_error *err);
/* Gives the caller the handle, or its error. */
int rlk_db_finish(rowlock_db **out, rowlock_db *db, int result, rowlock_error *err);
/* Starts a keeper with this handle, which it owns from then on. */
int rlk_keeper_open_with(rowlock_db *db, rowlock_keeper **out, rowlock_error *err);

/* Gives a new handle its driver. */
int rlk_db_use(rowlock_db *db, const struct rlk_driver *driver);
/* Connects it. */
int rlk_db_connect(rowlock_db *db);

/* close.c */
void rlk_db_free(rowlock_db *db);

#endif
