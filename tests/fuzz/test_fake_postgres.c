/* SPDX-License-Identifier: MIT
 *
 * Every verb against a server that answers with other rows and columns than were asked for: nothing crashes or
 * goes on for ever, and no grant is told that could be none.
 *
 *   ROWLOCK_TEST_SEED    the first seed (1)
 *   ROWLOCK_TEST_SEEDS   how many
 */
#include "fake_postgres.h"
#include "tap.h"

#include <rowlock/rowlock.h>
#include <rowlock/versions.h>

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEEDS = 300, BLOCK = 50, BLOCK_SECONDS = 100, TTL_MS = 60000 };

/* Shared with the child that does the work, which may crash. */
static struct progress {
    long seed;
    const char *verb;
    int grants, mistakes, succeeded, failed;
    char mistake[200]; /* the last one */
} * at;

static size_t sum;

static int see_grant(void *context, const rowlock_grant *grant)
{
    (void)context;
    sum += strlen(grant->name) + strlen(grant->owner) + strlen(grant->note);
    return 0;
}

static int see_waiter(void *context, const rowlock_waiter *waiter)
{
    (void)context;
    sum += strlen(waiter->name) + strlen(waiter->owner);
    return 0;
}

static int see_finding(void *context, const rowlock_finding *finding)
{
    (void)context;
    sum += strlen(finding->item) + strlen(finding->value);
    return 0;
}

static int see_record(void *context, const rowlock_once_record *record)
{
    (void)context;
    sum += strlen(record->key);
    return 0;
}

static int see_row(void *context, const rowlock_row *row, rowlock_value *values)
{
    (void)context;
    sum += row->key[0].length;
    values[0] = rowlock_decimal("2.50");
    return 0;
}

#define DO(call) (at->verb = #call, note(call))
static int note(int result)
{
    ++*(result < 0 ? &at->failed : &at->succeeded);
    return result;
}

/* What is told of a grant must be able to be true. */
static void check_grant(rowlock_lock *lock)
{
    int64_t left = rowlock_remaining_ms(lock);
    int64_t token = rowlock_lock_token(lock);
    at->grants++;
    if (token > 0 && left >= 0 && left <= TTL_MS)
        return;
    at->mistakes++;
    snprintf(at->mistake, sizeof at->mistake, "seed %ld: %s told of token %lld for %lld ms",
             at->seed, at->verb, (long long)token, (long long)left);
}

static void use_lock(rowlock_db *db, const rowlock_acquire_options *options)
{
    rowlock_lock *lock;
    rowlock_grant grant = ROWLOCK_GRANT_INIT;
    if (DO(rowlock_lock_open(db, "nightly", &lock)) != ROWLOCK_OK)
        return;
    if (DO(rowlock_acquire(lock, options)) == ROWLOCK_OK) {
        check_grant(lock);
        DO(rowlock_renew(lock, 0));
        DO(rowlock_verify(lock));
        DO(rowlock_downgrade(lock, ROWLOCK_SHARED));
    }
    DO(rowlock_lock_holder(lock, &grant));
    DO(rowlock_release(lock));
    rowlock_lock_close(lock);
}

static void use_two_locks(rowlock_db *db, const rowlock_acquire_options *options)
{
    rowlock_lock *locks[2] = {NULL, NULL};
    size_t which;
    if (DO(rowlock_lock_open(db, "a", &locks[0])) == ROWLOCK_OK &&
        DO(rowlock_lock_open(db, "b", &locks[1])) == ROWLOCK_OK &&
        DO(rowlock_acquire_all(locks, 2, options, &which)) == ROWLOCK_OK) {
        check_grant(locks[0]);
        check_grant(locks[1]);
    }
    rowlock_lock_close(locks[0]);
    rowlock_lock_close(locks[1]);
}

static void operate(rowlock_db *db)
{
    int64_t token, when;
    rowlock_grant grant = ROWLOCK_GRANT_INIT;
    rowlock_sweep_options sweep = ROWLOCK_SWEEP_OPTIONS_INIT;
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    DO(rowlock_check(db, see_finding, NULL, NULL));
    DO(rowlock_list(db, NULL, see_grant, NULL));
    DO(rowlock_list_waiters(db, NULL, see_waiter, NULL));
    DO(rowlock_last_grant(db, "nightly", &token, &when));
    sweep.each = see_grant;
    sweep.batch = 3;
    DO(rowlock_sweep(db, &sweep, &report));
    sweep.dry_run = 1;
    DO(rowlock_sweep(db, &sweep, &report));
    DO(rowlock_break(db, "nightly", 0, &grant));
    DO(rowlock_break(db, "nightly", 7, &grant));
    DO(rowlock_fence(db, "resource", 3));
    DO(rowlock_raise_tokens(db, 10, &token));
    DO(rowlock_new_identity(db));
    DO(rowlock_once_list(db, NULL, see_record, NULL));
    DO(rowlock_once_sweep(db, 1000, 10, &when));
}

static void change_rows(rowlock_table *table)
{
    rowlock_value key[2] = {rowlock_int(1), rowlock_int(2)};
    rowlock_value price[2] = {rowlock_decimal("19.90"), rowlock_decimal("1.5")};
    rowlock_change changes[2] = {{.key = &key[0], .values = &price[0], .version = 3},
                                 {.key = &key[1], .values = &price[1], .version = 3}};
    rowlock_change_options whole = ROWLOCK_CHANGE_OPTIONS_INIT;
    rowlock_row row;
    whole.all_or_nothing = 1;
    DO(rowlock_read(table, key, 0, &row));
    DO(rowlock_update(table, changes, 1, NULL));
    DO(rowlock_update(table, changes, 2, &whole));
    DO(rowlock_touch(table, changes, 2, NULL));
    DO(rowlock_expect(table, changes, 2, NULL));
    DO(rowlock_insert(table, changes, 1, NULL));
    DO(rowlock_insert(table, changes, 2, NULL));
    DO(rowlock_remove(table, changes, 2, NULL));
}

static void use_rows(rowlock_db *db)
{
    static const char *const key[] = {"id", NULL}, *const columns[] = {"price", NULL};
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    rowlock_table *table;
    rowlock_once *once = NULL;
    about.name = "prices";
    about.key = key;
    about.columns = columns;
    if (DO(rowlock_table_open(db, &about, &table)) == ROWLOCK_OK) {
        rowlock_walk_options walk = ROWLOCK_WALK_OPTIONS_INIT;
        change_rows(table);
        walk.name = "walk";
        walk.each = see_row;
        walk.ttl_ms = TTL_MS;
        DO(rowlock_walk(table, &walk, NULL));
        rowlock_table_close(table);
    }
    if (DO(rowlock_once_claim(db, "key", NULL, &once)) == ROWLOCK_OK)
        DO(rowlock_once_complete(once, NULL, "done", 4));
    rowlock_once_close(once);
}

static rowlock_db *open_seed(int port, long seed)
{
    char url[100];
    rowlock_db *db = NULL;
    rowlock_error error = ROWLOCK_ERROR_INIT;
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.statement_timeout_ms = 1000;
    options.connect_timeout_ms = 1000;
    options.reconnect_ms = -1;
    snprintf(url, sizeof url,
             "postgresql://app@127.0.0.1:%d/%ld?sslmode=disable&gssencmode=disable", port, seed);
    return DO(rowlock_db_open(&db, url, &options, &error)) == ROWLOCK_OK ? db : NULL;
}

/* Each on a connection of its own: an answer that is none ends it. */
static void run_seed(int port, long seed)
{
    rowlock_acquire_options acquire = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    acquire.ttl_ms = TTL_MS;
    acquire.wait_ms = seed % 2 ? 0 : 20;
    at->seed = seed;
    for (int what = 0; what < 4; what++) {
        rowlock_db *db = open_seed(port, seed * 4 + what);
        if (db && what == 0)
            use_lock(db, &acquire);
        else if (db && what == 1)
            use_two_locks(db, &acquire);
        else if (db && what == 2)
            operate(db);
        else if (db)
            use_rows(db);
        rowlock_db_close(db);
    }
}

static void run_block(long first, long count)
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int port = fake_postgres_start();
        alarm(BLOCK_SECONDS); /* a call that never ends ends here */
        for (long seed = first; port > 0 && seed < first + count; seed++)
            run_seed(port, seed);
        exit(port > 0 ? 0 : 1);
    }
    bool ended = child > 0 && waitpid(child, &status, 0) == child && status == 0;
    tap_ok(ended, "seeds %ld to %ld: no call crashes or goes on for ever", first,
           first + count - 1);
    if (!ended)
        tap_note("status %d at seed %ld, %s", status, at->seed, at->verb);
    tap_ok(at->mistakes == 0, "nor tells of a grant that can be none");
    if (at->mistakes > 0)
        tap_note("%s", at->mistake);
    at->mistakes = 0;
}

int main(void)
{
    const char *from = getenv("ROWLOCK_TEST_SEED"), *many = getenv("ROWLOCK_TEST_SEEDS");
    long first = from ? atol(from) : 1, seeds = many ? atol(many) : SEEDS;
    at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return 1;
    for (long done = 0; done < seeds; done += BLOCK)
        run_block(first + done, seeds - done < BLOCK ? seeds - done : BLOCK);
    tap_ok(at->grants > 0, "%d grants; %d calls succeeded, %d failed", at->grants, at->succeeded,
           at->failed);
    return tap_done();
}
