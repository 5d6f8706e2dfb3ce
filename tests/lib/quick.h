/* SPDX-License-Identifier: MIT
 *
 * Short words for what most tests do with the library: open, try, wait, look at the clock, run threads
 * and processes. What cannot fail in a sound test ends the program when it does. No checks are here.
 */
#ifndef QUICK_H
#define QUICK_H

#include "public.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* --- The library. The program ends with the library's text if these fail. */

rowlock_db *must_open(const char *url);
rowlock_db *must_open_as(const char *url, const char *owner);
rowlock_db *must_open_with(const char *url, const rowlock_db_options *options);
rowlock_lock *must_lock(rowlock_db *db, const char *name);
rowlock_lock *must_attach(rowlock_db *db, const char *name, const char *owner, int64_t token);
void must_install(const char *url);

/* Close several, the first of them first; NULL is passed over. */
#define close_locks(...)                                  \
    close_each_lock((rowlock_lock *const[]){__VA_ARGS__}, \
                    sizeof((rowlock_lock *const[]){__VA_ARGS__}) / sizeof(rowlock_lock *))
#define close_dbs(...)                                \
    close_each_db((rowlock_db *const[]){__VA_ARGS__}, \
                  sizeof((rowlock_db *const[]){__VA_ARGS__}) / sizeof(rowlock_db *))
void close_each_lock(rowlock_lock *const *locks, size_t count);
void close_each_db(rowlock_db *const *dbs, size_t count);

/* For rowlock_list() and rowlock_list_waiters(). */
int ignore_grant(void *context, const rowlock_grant *grant);
int ignore_waiter(void *context, const rowlock_waiter *waiter);

/* Try once with this lease; wait up to wait_ms with this lease. */
int try_lock(rowlock_lock *lock, int64_t ttl_ms);
int wait_lock(rowlock_lock *lock, int64_t ttl_ms, int64_t wait_ms);

/* "ROWLOCK_ESERVER: renew lock 'x': …", borrowed until the next call in this thread. */
const char *why(const rowlock_db *db);
int error_code(const rowlock_db *db);

/* The URL with one more parameter: "rowlock_prefix=abc_". Free it. */
char *url_with(const char *url, const char *parameter);

/* --- Time. SLOWDOWN stretches what depends on the machine's speed; see the Makefile's sanitizers. */

int64_t clock_ms(void);
void sleep_ms(int64_t ms);
int64_t slowdown(void);
int64_t slow_ms(int64_t ms); /* ms, stretched */

/* --- Others. */

/* In a thread of its own; join gives what the function returned. */
struct helper;
struct helper *helper_start(int (*work)(void *argument), void *argument);
int helper_join(struct helper *helper);

/* In a process of its own, which exits with what work returned (0-255). No handle of the parent's may
 * be open on a SQLite file meanwhile: that database's locks belong to a process, and so does its
 * library's table of them. */
pid_t child_start(int (*work)(void *argument), void *argument);
int child_join(pid_t child); /* exit status; 256 + N if signal N ended it */
int child_join_any(pid_t *child); /* *child: -1, then who has ended */

#endif
