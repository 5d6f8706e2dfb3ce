/* SPDX-License-Identifier: MIT
 * Copies and checks the caller's options. Each function sets the error and returns its code. */
#ifndef RLK_OPTIONS_H
#define RLK_OPTIONS_H

#include <rowlock/admin.h>
#include <rowlock/once.h>
#include <rowlock/pool.h>
#include <rowlock/walk.h>
#include <stddef.h>

/* The longest time of a sweep. A server that always says that more is left must not keep it. */
#define RLK_SWEEP_US INT64_C(3600000000)

int rlk_take_db_options(rowlock_error *error, rowlock_db_options *out,
                        const rowlock_db_options *theirs);
int rlk_take_pool_options(rowlock_error *error, rowlock_pool_options *out,
                          const rowlock_pool_options *theirs);
int rlk_take_acquire_options(rowlock_error *error, rowlock_acquire_options *out,
                             const rowlock_acquire_options *theirs);
int rlk_take_sweep_options(rowlock_error *error, rowlock_sweep_options *out,
                           const rowlock_sweep_options *theirs);
int rlk_take_upgrade_options(rowlock_error *error, rowlock_upgrade_options *out,
                             const rowlock_upgrade_options *theirs);
int rlk_take_table_options(rowlock_error *error, rowlock_table_options *out,
                           const rowlock_table_options *theirs);
int rlk_take_change_options(rowlock_error *error, rowlock_change_options *out,
                            const rowlock_change_options *theirs);
int rlk_take_retry_options(rowlock_error *error, rowlock_retry_options *out,
                           const rowlock_retry_options *theirs);
int rlk_take_walk_options(rowlock_error *error, rowlock_walk_options *out,
                          const rowlock_walk_options *theirs);
int rlk_take_once_options(rowlock_error *error, rowlock_once_options *out,
                          const rowlock_once_options *theirs);
int rlk_check_ttl(rowlock_error *error, int64_t ttl_ms);
int rlk_check_permits(rowlock_error *error, int32_t permits);
/* Copies as much as fits into the caller's struct, which begins with its size. */
void rlk_give_struct(void *theirs, const void *ours, size_t our_size);

#endif
