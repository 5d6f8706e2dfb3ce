/* SPDX-License-Identifier: MIT
 *
 * Short words for what most tests do with the library: open, try, wait, read the clock, run threads
 * and processes. Most of them end the program if they fail. Checks are those of tap.h. */
#pragma once

#include "public.h"
#include "tap.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* A table and a walk with all that a test says of them, written in place:
 * open_table(db, ABOUT(.name = "prices", .key = key), &table). */
struct about {
    const char *name, *schema;
    const char *const *key, *const *columns;
    const char *version, *set;
    int64_t first_version;
};
struct walking {
    const char *name;
    int (*each)(void *context, const rowlock_row *row, rowlock_value *values);
    void (*progress)(void *context, const rowlock_walk_report *so_far);
    void (*failed)(void *context, const rowlock_row *row, int result, const char *text);
    void *context;
    int32_t chunk, restart;
    int64_t wait_ms, ttl_ms;
};
#define ABOUT(...) (&(const struct about){__VA_ARGS__})
#define WALK(...) (&(const struct walking){__VA_ARGS__})
int open_table(rowlock_db *db, const struct about *about, rowlock_table **out);
int walk_table(rowlock_table *table, const struct walking *how, rowlock_walk_report *report);

/* --- The library. A failure ends the program with the library's text. */

rowlock_db *must_open(const char *url);
rowlock_db *must_open_as(const char *url, const char *owner);
/* Set it to share a pool, as with ROWLOCK_TEST_POOL, in this thread. */
extern _Thread_local bool quick_pooled;
rowlock_db *must_open_with(const char *url, const rowlock_db_options *options);
rowlock_lock *must_lock(rowlock_db *db, const char *name);
/* The table prices, whose key is id, with this one column. */
rowlock_table *must_prices(rowlock_db *db, const char *column);
/* One row whose key is an integer. */
int update_row(rowlock_table *table, int64_t id, rowlock_value value, int64_t version);
int read_row(rowlock_table *table, int64_t id, int lock, rowlock_row *row);
rowlock_lock *must_attach(rowlock_db *db, const char *name, const char *owner, int64_t token);
rowlock_db *must_quorum(const char *const *urls, size_t count, const rowlock_db_options *options);
/* Joins with short time limits, and again with longer ones while the machine is slow. */
int join_members(const char *urls, rowlock_error *err);
/* The URLs of a quorum in one text, until the statement ends: url_list(urls, 3).text */
struct url_list {
    char text[4096];
};
struct url_list url_list(const char *const *urls, size_t count);
/* A keeper for a database of which the test has no handle. */
int open_keeper_at(const char *url, const rowlock_db_options *options, rowlock_keeper **out,
                   rowlock_error *err);
/* The first grant of a name in the table; token 0: it has none. */
rowlock_grant grant_of(rowlock_db *db, const char *name);
/* The holder that the last try met; token 0: it met none. */
rowlock_grant holder_of(const rowlock_lock *lock);
rowlock_stats stats_of(rowlock_db *db);
void must_install(const char *url);

/* Closes several, in this order; NULL is skipped. */
#define close_locks(...)                                  \
    close_each_lock((rowlock_lock *const[]){__VA_ARGS__}, \
                    sizeof((rowlock_lock *const[]){__VA_ARGS__}) / sizeof(rowlock_lock *))
#define close_dbs(...)                                \
    close_each_db((rowlock_db *const[]){__VA_ARGS__}, \
                  sizeof((rowlock_db *const[]){__VA_ARGS__}) / sizeof(rowlock_db *))
void close_each_lock(rowlock_lock *const *locks, size_t count);
void close_each_db(rowlock_db *const *dbs, size_t count);

OWNED_ENDS(db, rowlock_db, rowlock_db_close)
OWNED_ENDS(lock, rowlock_lock, rowlock_lock_close)
OWNED_ENDS(table, rowlock_table, rowlock_table_close)
OWNED_ENDS(keeper, rowlock_keeper, rowlock_keeper_close)
OWNED_ENDS(once, rowlock_once, rowlock_once_close)
OWNED_ENDS(pool, rowlock_pool, rowlock_pool_close)
OWNED_ENDS(text, char, free)

/* For rowlock_list() and rowlock_list_waiters(). */
int ignore_grant(void *context, const rowlock_grant *grant);
int count_grant(void *count, const rowlock_grant *grant);
int ignore_waiter(void *context, const rowlock_waiter *waiter);

/* try_lock: one try with this lease. wait_lock: waits up to wait_ms with this lease. */
int try_lock(rowlock_lock *lock, int64_t ttl_ms);
int wait_lock(rowlock_lock *lock, int64_t ttl_ms, int64_t wait_ms);
/* Takes a lock of the db with this keeper, and waits until that has renewed it. If the keeper was so
 * late that the lock is lost, it takes it again for longer. */
bool renewed_by(rowlock_db *db, rowlock_lock *lock, rowlock_keeper *keeper);

/* "ROWLOCK_ESERVER: renew lock 'x': …", valid until the next call in this thread. */
const char *why(const rowlock_db *db);
int error_code(const rowlock_db *db);
rowlock_error error_of(const rowlock_db *db);

/* The formatted text, valid until the fourth call after this one in this thread. */
const char *textf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Compares two results by name. */
#define tap_is_result(got, want, ...) \
    tap_is_str(rowlock_result_name(got), rowlock_result_name(want), __VA_ARGS__)

/* The URL with one more parameter. Free it. */
char *url_with(const char *url, const char *parameter);

const char *test_folder(void);
/* A SQLite file of this name in the test's folder. Free it. path_of: where the file is. */
char *file_url(const char *name);
const char *path_of(const char *url);

/* A socket that listens on 127.0.0.1. */
int listen_locally(int *port);

/* --- Time. SLOWDOWN stretches what depends on the machine's speed: see the sanitizers in the
 * Makefile. */

int64_t clock_ms(void);
/* The same clock, and the time since 1970. */
long long now_us(void);
long long unix_clock_us(void);
void sleep_ms(int64_t ms);
int64_t slowdown(void);
/* ms times SLOWDOWN */
int64_t slow_ms(int64_t ms);

/* Waits up to 60 s until the condition holds, and says whether it does. It looks again and again, at
 * first each millisecond, at last each 20 ms. */
#define EVENTUALLY(condition)                                             \
    __extension__({                                                       \
        int64_t looks_ = 16, end_ms_ = clock_ms() + slow_ms(60000);       \
        bool holds_ = (condition);                                        \
        for (; !holds_ && clock_ms() < end_ms_; looks_ += looks_ < 320) { \
            sleep_ms(looks_ / 16);                                        \
            holds_ = (condition);                                         \
        }                                                                 \
        holds_;                                                           \
    })

/* --- Threads and processes */

/* A thread of its own. Its join returns what the function returned. */
struct helper;
struct helper *helper_start(int (*work)(void *argument), void *argument);
int helper_join(struct helper *helper);
/* It has returned. */
bool helper_ended(const struct helper *helper);

/* A process of its own, which exits with what work returned (0-255). The parent must have no open
 * handle on a SQLite file meanwhile: its locks, and its library's table of them, belong to a
 * process. */
pid_t child_start(int (*work)(void *argument), void *argument);
/* exit status; 256 + N if signal N ended it */
int child_join(pid_t child);
/* *child: -1; returns with the child that ended */
int child_join_any(pid_t *child);
