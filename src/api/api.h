/* SPDX-License-Identifier: MIT
 * For the files that open and close connections. */
#ifndef RLK_API_H
#define RLK_API_H

#include "base/url.h"
#include "core/db.h"

/* Connections of a pool. */
enum { RLK_POOL_MOST = 64 };

/* drivers.c */
const struct rlk_driver *rlk_driver_find(const char *scheme, bool *known);

/* new_db.c */
/* Makes a handle without a connection, and takes the options that each kind of handle has. */
int rlk_db_new(rowlock_db **out, const rowlock_db_options *theirs, rowlock_db_options *options,
               rowlock_error *err);
/* Gives a new handle its driver, by the name of a scheme, or by a URL. */
int rlk_db_use(rowlock_db *db, const struct rlk_driver *driver);
int rlk_db_use_scheme(rowlock_db *db, const char *scheme);
int rlk_db_use_url(rowlock_db *db, const char *url);
/* Connects it. */
int rlk_db_connect(rowlock_db *db);
/* Gives the caller the handle, or its error. */
int rlk_db_finish(rowlock_db **out, rowlock_db *db, int result, rowlock_error *err);
/* A handle of one URL that its first step connects. */
int rlk_db_open_later(const char *url, const rowlock_db_options *options, rowlock_db **out,
                      rowlock_error *err);

/* open_quorum.c */
/* Gives a new handle its members. */
int rlk_db_use_quorum(rowlock_db *db, const struct rlk_urls *urls,
                      const rowlock_db_options *options);

/* close.c */
void rlk_db_free(rowlock_db *db);
void rlk_db_free_all(rowlock_db **dbs, size_t count);

#endif
