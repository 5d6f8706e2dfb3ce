/* SPDX-License-Identifier: MIT
 *
 * Rowlock's side of the contests, through its public header only.
 */
#include "bench.h"

#include <stdlib.h>

struct session {
    rowlock_db *db;
    rowlock_lock *lock;
};

static void must(rowlock_db *db, int result, int expected)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    if (result == expected)
        return;
    rowlock_db_error(db, &err);
    die("%s instead of %s: %s: %s", rowlock_result_name(result), rowlock_result_name(expected),
        err.action, err.text);
}

rowlock_db *ours_connect(const struct place *place)
{
    rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.schema = place->schema;
    if (rowlock_db_open(&db, place->url, &options, &err) != ROWLOCK_OK)
        die("%s: %s", err.action, err.text);
    return db;
}

void ours_install(const struct place *place)
{
    rowlock_db *db = ours_connect(place);
    must(db, rowlock_install(db), ROWLOCK_OK);
    rowlock_db_close(db);
}

void *ours_open(const struct place *place, const char *name)
{
    struct session *s = calloc(1, sizeof *s);
    if (!s)
        die("out of memory");
    s->db = ours_connect(place);
    must(s->db, rowlock_lock_open(s->db, name, &s->lock), ROWLOCK_OK);
    return s;
}

void ours_close(void *session)
{
    struct session *s = session;
    rowlock_lock_close(s->lock);
    rowlock_db_close(s->db);
    free(s);
}

/* Nobody else wants the lock. The wait is for SQLite, where a file has one writer at a time and a
 * try gives up after a second of bad luck. */
void ours_acquire(void *session)
{
    struct session *s = session;
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    options.ttl_ms = LEASE_MS;
    options.wait_ms = 20000;
    must(s->db, rowlock_acquire(s->lock, &options), ROWLOCK_OK);
}

void ours_release(void *session)
{
    struct session *s = session;
    must(s->db, rowlock_release(s->lock), ROWLOCK_OK);
}

void ours_pair(void *session)
{
    ours_acquire(session);
    ours_release(session);
}

void ours_busy(void *session)
{
    struct session *s = session;
    must(s->db, rowlock_acquire(s->lock, NULL), ROWLOCK_BUSY);
}

void ours_renew(void *session)
{
    struct session *s = session;
    must(s->db, rowlock_renew(s->lock, LEASE_MS), ROWLOCK_OK);
}

void ours_verify(void *session)
{
    struct session *s = session;
    must(s->db, rowlock_verify(s->lock), ROWLOCK_OK);
}

int64_t ours_sweep(void *session)
{
    struct session *s = session;
    rowlock_sweep_options options = ROWLOCK_SWEEP_OPTIONS_INIT;
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    options.batch = BATCH;
    options.idle_ms = -1;
    must(s->db, rowlock_sweep(s->db, &options, &report), ROWLOCK_OK);
    return report.locks;
}
