/* SPDX-License-Identifier: MIT
 * Each verb against a server that answers with other rows and columns than were asked for. Nothing crashes or
 * hangs. A grant is told only if the answer can be one. A server that does not lie comes first: there each verb
 * succeeds.
 *
 *   ROWLOCK_TEST_SEED    the first seed (1)
 *   ROWLOCK_TEST_SEEDS   how many
 */
#include "fake.h"
#include "core/ask.h"
#include "core/core.h"
#include "quick.h"

#include <sys/mman.h>

enum { SEEDS = 300, BLOCK = 50, BLOCK_SECONDS = 60, TTL_MS = 60000 };

/* Shared with the child that does the work, which may crash. */
static struct progress {
    long seed;
    const char *verb;
    int grants, mistakes, succeeded, failed;
    char mistake[200], failure[1000]; /* the last ones */
} * at;

static rowlock_db *used;
static size_t sum;

/* Reads all texts of what is told. */
#define SEE(kind, what, lengths)                                     \
    static int see_##kind(void *context, const rowlock_##what *kind) \
    {                                                                \
        sum += lengths;                                              \
        return 0;                                                    \
    }
SEE(grant, grant, strlen(grant->name) + strlen(grant->owner) + strlen(grant->note))
SEE(waiter, waiter, strlen(waiter->name) + strlen(waiter->owner))
SEE(finding, finding, strlen(finding->item) + strlen(finding->value))
SEE(record, once_record, strlen(record->key))

static int see_row(void *context, const rowlock_row *row, rowlock_value *values)
{
    sum += row->key[0].length;
    values[0] = rowlock_decimal("2.50");
    return 0;
}

#define DO(call) (at->verb = #call, note(call))
static int note(int result)
{
    rowlock_error error = ROWLOCK_ERROR_INIT;
    if (result < 0) {
        if (used)
            error = *rowlock_db_error(used);
        snprintf(at->failure, sizeof at->failure, "%d: %s: %s", result, at->verb, error.text);
    }
    ++*(result < 0 ? &at->failed : &at->succeeded);
    return result;
}

/* What is told of a grant must be able to be true. */
static void check_grant(rowlock_lock *lock)
{
    int64_t left = rowlock_lock_remaining_ms(lock);
    int64_t token = rowlock_lock_token(lock);
    at->grants++;
    if (token > 0 && left >= 0 && left <= TTL_MS)
        return;
    at->mistakes++;
    snprintf(at->mistake, sizeof at->mistake, "seed %ld: %s told of token %lld for %lld ms",
             at->seed, at->verb, (long long)token, (long long)left);
}

/* The server tells of the attempt that is to come, or of the newest one. */
static void tell_attempt(rowlock_db *db)
{
    uint64_t numbers = db->numbers;
    fake_attempt = rlk_next_number(db);
    db->numbers = numbers;
}

/* As a keeper does it. */
static void renew_all(rowlock_db *db)
{
    struct rlk_lease leases[2] = {{.held = {"a", 0, "o", 8}, .ttl_us = TTL_MS * 1000},
                                  {.held = {"b", 0, "o", 9}, .ttl_us = TTL_MS * 1000}};
    struct rlk_renewing renewing = {.leases = leases, .count = 2};
    struct rlk_ask ask = {.not_after_us = rlk_now_us() + 1000000};
    rlk_step_renew_all(&ask, &renewing);
    DO(rlk_ask(db, &ask));
}

static void use_lock(rowlock_db *db, const rowlock_acquire_options *options)
{
    OWNED(lock) rowlock_lock *lock = NULL;
    rowlock_grant grant = ROWLOCK_GRANT_INIT;
    if (DO(rowlock_lock_open(db, "nightly", &lock)) != ROWLOCK_OK)
        return;
    int result = DO(rowlock_acquire(lock, options));
    if (result == ROWLOCK_BUSY) /* it is asked otherwise the second time */
        result = DO(rowlock_acquire(lock, options));
    if (result == ROWLOCK_OK) {
        check_grant(lock);
        if (DO(rowlock_renew(lock, 0)) == ROWLOCK_OK)
            check_grant(lock);
        DO(rowlock_verify(lock));
    }
    DO(rowlock_lock_holder(lock, &grant));
    DO(rowlock_release(lock));
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
    renew_all(db);
}

static void operate(rowlock_db *db)
{
    int64_t token, when;
    rowlock_grant grant = ROWLOCK_GRANT_INIT;
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    DO(rowlock_check(db, see_finding, NULL, NULL));
    DO(rowlock_list(db, NULL, see_grant, NULL));
    DO(rowlock_list_waiters(db, NULL, see_waiter, NULL));
    DO(rowlock_last_grant(db, "nightly", &token, &when));
    rowlock_sweep_options sweep = *OPTIONS(sweep, .batch = 3);
    DO(rowlock_sweep(db, &sweep, &report));
    sweep.each = see_grant;
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
    DO(rowlock_once_forget(db, "key", 0));
}

static void change_rows(rowlock_table *table)
{
    rowlock_value key[2] = {rowlock_int(1), rowlock_int(2)};
    rowlock_value price[2] = {rowlock_decimal("19.90"), rowlock_decimal("1.5")};
    rowlock_change changes[2] = {{.key = &key[0], .values = &price[0], .version = 3},
                                 {.key = &key[1], .values = &price[1], .version = 3}};
    rowlock_row row = ROWLOCK_ROW_INIT;
    DO(rowlock_read(table, key, 0, &row));
    DO(rowlock_update(table, changes, 1, NULL));
    DO(rowlock_update(table, changes, 2, OPTIONS(change, .all_or_nothing = 1)));
    DO(rowlock_touch(table, changes, 2, NULL));
    DO(rowlock_expect(table, changes, 2, NULL));
    DO(rowlock_insert(table, changes, 1, NULL));
    DO(rowlock_insert(table, changes, 2, NULL));
    DO(rowlock_remove(table, changes, 2, NULL));
}

static void use_rows(rowlock_db *db)
{
    static const char *const key[] = {"id", NULL}, *const columns[] = {"price", NULL};
    rowlock_table *table;
    OWNED(once) rowlock_once *once = NULL;
    if (DO(rowlock_table_open(db, "prices", key, OPTIONS(table, .columns = columns), &table)) ==
        ROWLOCK_OK) {
        change_rows(table);
        rowlock_walk_options walk = *OPTIONS(walk, .ttl_ms = TTL_MS);
        DO(rowlock_walk(table, "walk", see_row, NULL, &walk, NULL));
        rowlock_table_close(table);
    }
    tell_attempt(db);
    if (DO(rowlock_once_claim(db, "key", NULL, &once)) == ROWLOCK_OK)
        DO(rowlock_once_complete(once, db, "done", 4));
}

static rowlock_db *open_seed(const char *format, int port, long seed)
{
    char url[100];
    rowlock_db *db = NULL;
    rowlock_error error = ROWLOCK_ERROR_INIT;
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.statement_timeout_ms = seed ? 40 : 10000; /* and so are races, which never end here */
    options.connect_timeout_ms = 10000;
    options.reconnect_ms = -1;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(url, sizeof url, format, port, seed);
#pragma GCC diagnostic pop
    return DO(rowlock_db_open(url, &options, &db, &error)) == ROWLOCK_OK ? db : NULL;
}

/* Each on a connection of its own: an answer that is none ends it. */
static void run_seed(const char *url, int port, long seed)
{
    rowlock_acquire_options acquire =
        *OPTIONS(acquire, .ttl_ms = TTL_MS, .wait_ms = seed % 2 ? 0 : 20);
    at->seed = seed;
    for (int what = 0; what < 4; what++) {
        OWNED(db) rowlock_db *db = used = open_seed(url, port, seed ? seed * 4 + what : 0);
        if (db && what == 0)
            use_lock(db, &acquire);
        else if (db && what == 1)
            use_two_locks(db, &acquire);
        else if (db && what == 2)
            operate(db);
        else if (db)
            use_rows(db);
        used = NULL;
    }
}

/* In a child, which may crash. */
static void run_seeds(int (*start)(void), const char *url, long first, long count)
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int port = start();
        alarm((unsigned)(BLOCK_SECONDS * slowdown())); /* a call that never ends ends here */
        for (long seed = first; seed < first + count; seed++)
            run_seed(url, port, seed);
        exit(0);
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

int verbs_run(int (*start)(void), const char *url)
{
    const char *from = getenv("ROWLOCK_TEST_SEED"), *many = getenv("ROWLOCK_TEST_SEEDS");
    long first = from ? atol(from) : 1, seeds = many ? atol(many) : SEEDS;
    at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return 1;
    run_seeds(start, url, 0, 1);
    tap_ok(at->failed == 0 && at->succeeded > 0, "%d calls of a server that does not lie succeed",
           at->succeeded);
    if (at->failed > 0)
        tap_note("%s", at->failure);
    for (long done = 0; done < seeds; done += BLOCK)
        run_seeds(start, url, first + done, seeds - done < BLOCK ? seeds - done : BLOCK);
    tap_ok(at->grants > 0, "%d grants; %d calls succeeded, %d failed", at->grants, at->succeeded,
           at->failed);
    return tap_done();
}
