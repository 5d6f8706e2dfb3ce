/* SPDX-License-Identifier: MIT
 * Steps inside the caller's own transaction. No step is sent twice, since a failure may have ended
 * that transaction. Only the caller knows whether it commits. */
#include "base/ident.h"
#include "base/options.h"
#include "lock/keeper.h"
#include "lock/try.h"
#include "core/port.h"

#include <rowlock/tx.h>
#include <inttypes.h>
#include <unistd.h>

/* Errors of the following steps are set in tx. */
static int enter_tx(rowlock_lock *lock, rowlock_db *tx, const char *verb)
{
    if (!lock || lock->tag != RLK_LOCK_TAG)
        return ROWLOCK_EMISUSE;
    int result = rlk_enter(tx, verb, lock->name);
    if (result != ROWLOCK_OK)
        return result;
    if (!lock->db || !rlk_is_ours(lock->db))
        return rlk_fail(tx, ROWLOCK_EMISUSE,
                        "the rowlock_db of the lock is closed, of another process, or acquiring");
    if (!tx->adopted && !tx->tx)
        return rlk_fail(tx, ROWLOCK_EMISUSE,
                        "this call is a part of your own transaction: call it in rowlock_retry(), "
                        "or adopt its connection");
    const struct rlk_port *port = lock->db->port;
    if (port && port->no_guard)
        return rlk_fail(tx, ROWLOCK_EUNSUPPORTED, "%s", port->no_guard);
    return rlk_same_tables(tx, RLK_INSIDE, lock->db);
}

/* ---- guard */

/* If the transaction of our grant was never committed, another grant may have the same token. Only
 * the grant's row has the owner too, so we verify that. */
static int prove_grant(const rowlock_lock *lock, rowlock_db *tx)
{
    struct rlk_held held = rlk_held_of(lock);
    struct rlk_verified verified = {0};
    int result = lock->unproven ? rlk_verify(tx, &held, RLK_INSIDE, 0, &verified) : ROWLOCK_OK;
    if (result != ROWLOCK_OK || !lock->unproven || verified.found)
        return result;
    return rlk_fail(tx, ROWLOCK_LOST,
                    "the grant with token %" PRId64
                    " is not in the table: the transaction that made it was not committed, or the "
                    "grant is gone",
                    lock->token);
}

/* A counter below our token means that this server does not have our grant. */
static int guard(rowlock_lock *lock, rowlock_db *tx)
{
    int result = prove_grant(lock, tx);
    if (result != ROWLOCK_OK)
        return result;
    struct rlk_held held = rlk_held_of(lock);
    struct rlk_guarded g = {0};
    struct rlk_ask ask = {.where = RLK_INSIDE};
    rlk_step_guard(&ask, &held, &g);
    result = rlk_ask(tx, &ask);
    if (result != ROWLOCK_OK || (g.found && g.stands))
        return result;
    if (g.found && g.token > lock->token && rlk_try_other_slot(lock))
        return guard(lock, tx);
    if (g.found && g.token < lock->token)
        return rlk_fail(tx, ROWLOCK_CONFLICT,
                        "the server of your transaction does not have the grant: it lags, or is an "
                        "old primary. Roll back, connect again, and begin after acquiring");
    return rlk_fail(tx, ROWLOCK_LOST,
                    "the lock has been granted again, or was broken, since token %" PRId64
                    ": roll back",
                    lock->token);
}

int rowlock_guard(rowlock_lock *lock, rowlock_db *tx)
{
    int result = enter_tx(lock, tx, "guard by lock");
    if (result != ROWLOCK_OK || (result = rlk_need_grant(lock, tx)) != ROWLOCK_OK)
        return result;
    return guard(lock, tx);
}

/* ---- acquire */

static int check_joining(const rowlock_lock *lock, rowlock_db *tx,
                         const rowlock_acquire_options *options)
{
    if (lock->attached || lock->state != RLK_IDLE)
        return rlk_fail(tx, ROWLOCK_EMISUSE, "this handle holds a grant already; release it first");
    if (options->wait_ms != 0 || options->keep || options->keeper)
        return rlk_fail(tx, ROWLOCK_EINVAL,
                        "an acquire in a transaction cannot wait and has no keeper: wait_ms and "
                        "keep must be 0, and keeper NULL");
    return ROWLOCK_OK;
}

int rowlock_tx_acquire(rowlock_lock *lock, rowlock_db *tx, const rowlock_acquire_options *options)
{
    rowlock_acquire_options o;
    int result = enter_tx(lock, tx, "acquire in your transaction lock");
    if (result != ROWLOCK_OK || (result = rlk_take_acquire_options(&tx->error, &o, options)) ||
        (result = check_joining(lock, tx, &o)))
        return result;
    rlk_entry_quit(lock);
    struct rlk_request request = rlk_request_of(lock, &o);
    struct rlk_grant grant = {.outcome = RLK_IN_FLIGHT};
    struct rlk_trying trying = {.request = &request, .grant = &grant};
    struct rlk_ask ask = {.where = RLK_INSIDE};
    lock->db->stats.tries++;
    rlk_step_acquire(tx, &ask, &trying);
    result = rlk_ask(tx, &ask);
    if (result != ROWLOCK_OK)
        return result;
    if (grant.outcome == RLK_GRANTED)
        rlk_tell(tx, RLK_INSIDE, RLK_TAKEN, &request, grant.row.token);
    else
        result = rlk_found_busy(lock, &grant, o.permits);
    if (result == ROWLOCK_MISMATCH)
        rlk_fail(tx, result, "%s", lock->db->error.text);
    if (result != ROWLOCK_OK)
        return rlk_end_call(tx, result);
    rlk_take_grant(lock, &grant.row, ask.sent_us, o.margin_ms * 1000);
    lock->unproven = true;
    return ROWLOCK_OK;
}

/* ---- release */

static int delete_grant(rowlock_lock *lock, rowlock_db *tx)
{
    struct rlk_held held = rlk_held_of(lock);
    struct rlk_ask ask = {.where = RLK_INSIDE};
    rlk_step_release(&ask, &held);
    int result = rlk_ask(tx, &ask);
    if (result != ROWLOCK_OK || rlk_has_changed(&ask))
        return result;
    if (rlk_try_other_slot(lock))
        return delete_grant(lock, tx);
    return rlk_fail(tx, ROWLOCK_LOST, "the grant with token %" PRId64 " is not in the table",
                    lock->token);
}

/* The guard comes first. On InnoDB a DELETE that finds the row of another owner would lock it, and
 * keep its holder from renewing. The handle continues as after a release whose answer was lost. If
 * no row is found, the handle keeps its grant: the transaction's snapshot may be old. */
int rowlock_tx_release(rowlock_lock *lock, rowlock_db *tx)
{
    int result = enter_tx(lock, tx, "release in your transaction lock");
    if (result != ROWLOCK_OK || (result = rlk_need_grant(lock, tx)) != ROWLOCK_OK)
        return result;
    if (lock->depth > 1)
        return rlk_fail(tx, ROWLOCK_EMISUSE,
                        "this handle acquired the lock %d times; release the inner ones first",
                        lock->depth);
    bool entry = rlk_entry_stop(lock);
    if ((result = guard(lock, tx)) == ROWLOCK_OK)
        result = delete_grant(lock, tx);
    if (result == ROWLOCK_OK)
        lock->release_open = true;
    else if (entry)
        rlk_entry_start(lock);
    return result;
}

/* ---- fence */

/* It is safe to send it again after a lost answer, since an equal token is accepted. */
int rowlock_fence(rowlock_db *db, const char *resource, int64_t token)
{
    int result = rlk_enter(db, "fence", NULL);
    if (result != ROWLOCK_OK ||
        (result = rlk_check_text(&db->error, "resource's name", resource, false)) != ROWLOCK_OK)
        return result;
    rlk_action(db, "fence", resource);
    if (token < 1)
        return rlk_fail(db, ROWLOCK_EINVAL, "the token must be above 0");
    struct rlk_ask ask = {.where = RLK_EITHER};
    rlk_step_fence(&ask, resource, token);
    result = rlk_ask(db, &ask);
    if (result != ROWLOCK_OK || rlk_has_changed(&ask))
        return result;
    return rlk_fail(db, ROWLOCK_STALE, "a newer token than %" PRId64 " has been seen", token);
}
