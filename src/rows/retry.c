/* SPDX-License-Identifier: MIT
 * Runs the caller's attempt in a transaction, and again in a new one after a conflict. */
#include "base/options.h"
#include "rows/rows.h"

#include <unistd.h>

/* Reads the witness under a row lock. The lock waits for the end of the transaction whose commit
 * got no answer, unless that may still come from another server. Only the old version is a proof: a
 * new one may be another client's. An adopted connection has no second one to ask on. */
static bool proves_undone(rowlock_db *db, struct rlk_witness *w)
{
    bool undone = false, waits_for_all = true;
    struct rlk_page now = {.waits_for_all = &waits_for_all};
    rowlock_error error = db->error;
    if (w->t && !db->adopted && rlk_frame(db, RLK_BEGIN) == ROWLOCK_OK) {
        undone = rlk_read_row(w->t, w->row.cells, RLK_LOCK_TO_CHANGE, &now) == ROWLOCK_OK &&
                 waits_for_all && now.versions[0] == w->row.versions[0];
        rlk_frame(db, RLK_ROLLBACK);
    }
    rlk_page_clear(&now);
    db->error = error;
    return undone;
}

struct retrying {
    rowlock_db *db;
    int (*attempt)(void *context, const rowlock_attempt *attempt);
    void *context;
    rowlock_retry_options options;
    rowlock_retry_report report;
    int64_t until_us;
    bool was_gone;
};

static int commit(struct retrying *r, struct rlk_witness *w)
{
    int result = rlk_frame(r->db, RLK_COMMIT);
    if (result == ROWLOCK_EUNCERTAIN && proves_undone(r->db, w))
        return ROWLOCK_CONFLICT;
    return result;
}

/* attempt() has closed the adopted connection. On SQLite it stays open, with its transaction, until
 * our statements are freed. */
static int abandon(rowlock_db *db)
{
    rlk_disconnect(db, false);
    rlk_set_tx(db, RLK_TX_NONE);
    return rlk_fail(db, ROWLOCK_EMISUSE, "attempt() has closed the adopted connection");
}

static bool locks(const struct retrying *r)
{
    return r->options.lock_after >= 0 && r->report.conflicts >= r->options.lock_after;
}

/* The witness belongs to the handle. attempt() may leave by a jump, and this frame is gone then. */
static int call_witness(rowlock_db *db)
{
    rlk_witness_free(db);
    db->witness = rlk_alloc(sizeof *db->witness);
    return db->witness ? ROWLOCK_OK : rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
}

static int attempt_once(struct retrying *r)
{
    int result = rlk_frame(r->db, RLK_BEGIN);
    if (result != ROWLOCK_OK)
        return result;
    r->report.attempts++;
    rowlock_attempt attempt = {.number = r->report.attempts, .lock = locks(r)};
    result = call_witness(r->db);
    if (result == ROWLOCK_OK)
        result = r->attempt(r->context, &attempt);
    struct rlk_witness *witness = r->db->witness;
    r->db->witness = NULL;
    /* attempt() has forked, and this is the child. The transaction is its parent's. */
    if (r->db->pid != getpid())
        result = ROWLOCK_EMISUSE;
    else if (result == ROWLOCK_CLOSED && r->db->adopted)
        result = abandon(r->db);
    else if (result == ROWLOCK_OK)
        result = commit(r, witness);
    else
        result = rlk_undo(r->db, false, result);
    r->db->witness = witness;
    rlk_witness_free(r->db);
    return result;
}

/* The connection of db is lost, and the transaction with it. attempt() may also return ECONN of
 * another connection, which is no reason to retry. */
static bool lost_connection(const struct retrying *r, int result)
{
    return result == ROWLOCK_ECONN && !r->db->adopted && !rlk_is_up(r->db);
}

/* GONE is worth one retry: another client may have removed the row between read and write. The next
 * attempt then finds out when it reads. */
static bool is_worth_it(struct retrying *r, int result)
{
    bool gone = result == ROWLOCK_GONE && !r->was_gone;
    r->was_gone = result == ROWLOCK_GONE;
    return result == ROWLOCK_STALE || result == ROWLOCK_CONFLICT || result == ROWLOCK_BUSY ||
           result == ROWLOCK_EXISTS || gone || lost_connection(r, result);
}

bool rlk_pause_attempt(rowlock_db *db, int attempt, int64_t base_us, int64_t cap_us,
                       int64_t until_us)
{
    int64_t now_us = rlk_now_us();
    int64_t range = base_us << (attempt < 20 ? attempt : 20);
    int64_t pause = 1 + rlk_jitter(&db->waiting, range < cap_us ? range : cap_us);
    return rlk_wait_until(&db->waiting, now_us + pause < until_us ? now_us + pause : until_us);
}

static int retry(struct retrying *r)
{
    const rowlock_retry_options *o = &r->options;
    for (;;) {
        int64_t began_us = rlk_now_us();
        int result = attempt_once(r);
        if (!is_worth_it(r, result))
            return result;
        r->report.conflicts++;
        bool more = r->report.attempts < o->attempts && rlk_now_us() < r->until_us;
        /* Attempts that lock the row queue for its lock, so longer pauses are of no use. */
        int64_t cap_ms = locks(r) ? o->base_ms : o->cap_ms;
        bool go_on = !more || rlk_pause_attempt(r->db, r->report.attempts, o->base_ms * 1000,
                                                cap_ms * 1000, r->until_us);
        r->report.lost_us += rlk_now_us() - began_us;
        if (!more || rlk_now_us() >= r->until_us)
            return result;
        if (!go_on)
            return rlk_fail(r->db, ROWLOCK_CANCELLED, "cancelled");
    }
}

int rowlock_retry(rowlock_db *db, int (*attempt)(void *context, const rowlock_attempt *attempt),
                  void *context, const rowlock_retry_options *options, rowlock_retry_report *report)
{
    struct retrying r = {.db = db, .attempt = attempt, .context = context};
    int result = rlk_enter(db, "retry", NULL);
    if (result != ROWLOCK_OK ||
        (result = rlk_take_retry_options(&db->error, &r.options, options)) != ROWLOCK_OK)
        return result;
    if (!attempt)
        return rlk_fail(db, ROWLOCK_EINVAL, "attempt must not be NULL");
    r.report.size = sizeof r.report;
    r.until_us = rlk_wait_end(r.options.deadline_ms);
    result = retry(&r);
    /* The transaction was ours, so the caller has none to roll back. */
    db->error.transaction_over = 0;
    if (report)
        rlk_give_struct(report, &r.report, sizeof r.report);
    return rlk_end_call(db, result);
}
