/* SPDX-License-Identifier: MIT
 * Defaults, limits and sizes of all options structs. They are in no other file. */
#include "base/options.h"
#include "base/error.h"
#include "base/ident.h"

#include <string.h>

#define MS_PER_DAY INT64_C(86400000)

enum {
    DEFAULT_CONNECT_MS = 5000,
    DEFAULT_STATEMENT_MS = 10000,
    DEFAULT_RECONNECT_MS = 5000,
    MAX_TIMEOUT_MS = 3600000,
    MOST_TICKET_MS = 15000,
    LEAST_TICKET_MS = 1000,
    MAX_PERMITS = 1000000,
    DEFAULT_TTL_MS = 30000,
    LEAST_MARGIN_MS = 20,
    MOST_MARGIN_MS = 500,
    MIN_TTL_MS = 100,
    DEFAULT_BATCH = 500,
    MAX_BATCH = 10000,
    DEFAULT_IDLE_DAYS = 30,
    DEFAULT_UPGRADE_MS = 60000,
    MAX_DAYS = 366,
    MAX_SWEEP_DAYS = 36600,
    DEFAULT_CHUNK = 1000,
    MAX_CHUNK = 10000,
    DEFAULT_ATTEMPTS = 20,
    DEFAULT_LOCK_AFTER = 2,
    DEFAULT_RETRY_MS = 10000,
    DEFAULT_BASE_MS = 2,
    DEFAULT_CAP_MS = 200,
    DEFAULT_ONCE_MS = 60000,
    DEFAULT_CONNECTIONS = 2,
    MAX_CONNECTIONS = 64,
    DEFAULT_STEPS = 256,
    MAX_STEPS = 1000
};

/* Copies the caller's struct into this library's, and zeroes the rest. A larger struct is of a
 * newer header. It is accepted only if the part that this library does not know is zero. */
static int take_struct(rowlock_error *error, void *ours, size_t our_size, const void *theirs)
{
    memset(ours, 0, our_size);
    if (!theirs)
        return ROWLOCK_OK;
    size_t size;
    memcpy(&size, theirs, sizeof size);
    if (size == 0)
        return rlk_error_set(error, ROWLOCK_EINVAL,
                             "the options struct has no size; initialize it with its _INIT macro");
    if (size < sizeof size || size > 4096)
        return rlk_error_set(
            error, ROWLOCK_EINVAL,
            "the options struct has an impossible size, %zu; initialize it with its _INIT macro",
            size);
    for (size_t i = our_size; i < size; i++)
        if (((const unsigned char *)theirs)[i] != 0)
            return rlk_error_set(error, ROWLOCK_EINVAL,
                                 "the options use a member that this library is too old to know; "
                                 "upgrade the library");
    memcpy(ours, theirs, size < our_size ? size : our_size);
    return ROWLOCK_OK;
}

static int within(rowlock_error *error, const char *what, int64_t value, int64_t low, int64_t high)
{
    if (value >= low && value <= high)
        return ROWLOCK_OK;
    return rlk_error_set(error, ROWLOCK_EINVAL, "%s is %lld; it must be between %lld and %lld",
                         what, (long long)value, (long long)low, (long long)high);
}

/* Schema and prefix go into statements as identifiers. Characters that need escaping there are
 * refused. */
static int check_identifiers(rowlock_error *error, const char *schema, const char *prefix)
{
    if (schema && (strlen(schema) == 0 || strlen(schema) > 63 || strpbrk(schema, "'\"`\\\n\r\t")))
        return rlk_error_set(error, ROWLOCK_EINVAL,
                             "the schema must have 1 to 63 bytes, without quotes or backslashes");
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    if (prefix && (strlen(prefix) == 0 || strlen(prefix) > 32 || prefix[strspn(prefix, allowed)]))
        return rlk_error_set(error, ROWLOCK_EINVAL,
                             "the prefix must have 1 to 32 letters, digits and underscores");
    return ROWLOCK_OK;
}

int rlk_take_db_options(rowlock_error *error, rowlock_db_options *out,
                        const rowlock_db_options *theirs)
{
    int result = take_struct(error, out, sizeof *out, theirs);
    if (result != ROWLOCK_OK)
        return result;
    out->connect_timeout_ms =
        out->connect_timeout_ms ? out->connect_timeout_ms : DEFAULT_CONNECT_MS;
    out->statement_timeout_ms =
        out->statement_timeout_ms ? out->statement_timeout_ms : DEFAULT_STATEMENT_MS;
    out->reconnect_ms = out->reconnect_ms ? out->reconnect_ms : DEFAULT_RECONNECT_MS;
    if ((result =
             within(error, "connect_timeout_ms", out->connect_timeout_ms, 1, MAX_TIMEOUT_MS)) ||
        (result =
             within(error, "statement_timeout_ms", out->statement_timeout_ms, 1, MAX_TIMEOUT_MS)) ||
        (result = within(error, "reconnect_ms", out->reconnect_ms, INT64_MIN, MAX_TIMEOUT_MS)) ||
        (out->owner && (result = rlk_check_text(error, "owner", out->owner, false))) ||
        (out->program && (result = rlk_check_text(error, "program", out->program, true))) ||
        (result = check_identifiers(error, out->schema, out->prefix)))
        return result;
    return ROWLOCK_OK;
}

int rlk_take_pool_options(rowlock_error *error, rowlock_pool_options *out,
                          const rowlock_pool_options *theirs)
{
    int result = take_struct(error, out, sizeof *out, theirs);
    if (result != ROWLOCK_OK)
        return result;
    out->connections = out->connections ? out->connections : DEFAULT_CONNECTIONS;
    out->batch = out->batch ? out->batch : DEFAULT_STEPS;
    if ((result = within(error, "connections", out->connections, 1, MAX_CONNECTIONS)) ||
        (result = within(error, "batch", out->batch, 1, MAX_STEPS)))
        return result;
    rowlock_db_options db;
    if ((result = rlk_take_db_options(error, &db, out->db)) != ROWLOCK_OK)
        return result;
    if (db.owner || db.pool)
        return rlk_error_set(error, ROWLOCK_EINVAL,
                             "owner and pool are for the handles of a pool, not for the pool");
    return ROWLOCK_OK;
}

static int64_t default_margin_ms(int64_t ttl_ms)
{
    return rlk_between(LEAST_MARGIN_MS, ttl_ms / 20, MOST_MARGIN_MS);
}

/* A dead waiter delays the others at most half as long as a dead holder. */
static int64_t default_ticket_ms(int64_t ttl_ms)
{
    return rlk_between(LEAST_TICKET_MS, ttl_ms / 2, MOST_TICKET_MS);
}

static int check_keeping(rowlock_error *error, const rowlock_acquire_options *o)
{
    int result;
    if (o->keep && o->keeper)
        return rlk_error_set(error, ROWLOCK_EINVAL,
                             "keep shares a keeper; set keep or keeper, not both");
    if (!o->keeper && !o->keep && (o->max_hold_ms || o->progress_ms || o->on_state))
        return rlk_error_set(
            error, ROWLOCK_EINVAL,
            "max_hold_ms, progress_ms and on_state need a keeper; set keep to 1, or keeper");
    if ((result = within(error, "keep", o->keep, 0, 1)) ||
        (result = within(error, "max_hold_ms", o->max_hold_ms, 0, MAX_DAYS * MS_PER_DAY)) ||
        (result = within(error, "progress_ms", o->progress_ms, 0, MAX_DAYS * MS_PER_DAY)) ||
        (result = within(error, "margin_ms", o->margin_ms, 0, o->ttl_ms - 1)))
        return result;
    return ROWLOCK_OK;
}

int rlk_take_acquire_options(rowlock_error *error, rowlock_acquire_options *out,
                             const rowlock_acquire_options *theirs)
{
    int result = take_struct(error, out, sizeof *out, theirs);
    if (result != ROWLOCK_OK)
        return result;
    out->ttl_ms = out->ttl_ms ? out->ttl_ms : DEFAULT_TTL_MS;
    if (!out->note)
        out->note = "";
    out->margin_ms = out->margin_ms ? out->margin_ms : default_margin_ms(out->ttl_ms);
    out->ticket_ms = out->ticket_ms ? out->ticket_ms : default_ticket_ms(out->ttl_ms);
    if ((result = rlk_check_ttl(error, out->ttl_ms)) || (result = check_keeping(error, out)) ||
        (result = within(error, "wait_ms", out->wait_ms, ROWLOCK_FOREVER, MAX_DAYS * MS_PER_DAY)) ||
        (result = rlk_check_permits(error, out->permits)) ||
        (result = within(error, "ticket_ms", out->ticket_ms, LEAST_TICKET_MS, MAX_TIMEOUT_MS)) ||
        (result = rlk_check_text(error, "note", out->note, true)))
        return result;
    return ROWLOCK_OK;
}

int rlk_check_permits(rowlock_error *error, int32_t permits)
{
    return within(error, "permits", permits, ROWLOCK_SHARED, MAX_PERMITS);
}

int rlk_check_ttl(rowlock_error *error, int64_t ttl_ms)
{
    return within(error, "ttl_ms", ttl_ms, MIN_TTL_MS, MAX_DAYS * MS_PER_DAY);
}

int rlk_take_sweep_options(rowlock_error *error, rowlock_sweep_options *out,
                           const rowlock_sweep_options *theirs)
{
    int result = take_struct(error, out, sizeof *out, theirs);
    if (result != ROWLOCK_OK)
        return result;
    out->batch = out->batch ? out->batch : DEFAULT_BATCH;
    out->idle_ms = out->idle_ms ? out->idle_ms : DEFAULT_IDLE_DAYS * MS_PER_DAY;
    if ((result = within(error, "batch", out->batch, 1, MAX_BATCH)) ||
        (result =
             within(error, "older_than_ms", out->older_than_ms, 0, MAX_SWEEP_DAYS * MS_PER_DAY)) ||
        (result = within(error, "idle_ms", out->idle_ms, INT64_MIN, MAX_SWEEP_DAYS * MS_PER_DAY)))
        return result;
    return ROWLOCK_OK;
}

int rlk_take_upgrade_options(rowlock_error *error, rowlock_upgrade_options *out,
                             const rowlock_upgrade_options *theirs)
{
    int result = take_struct(error, out, sizeof *out, theirs);
    if (result == ROWLOCK_OK && out->deadline_ms == 0)
        out->deadline_ms = DEFAULT_UPGRADE_MS;
    return result == ROWLOCK_OK
               ? within(error, "deadline_ms", out->deadline_ms, 1, MAX_DAYS * MS_PER_DAY)
               : result;
}

void rlk_give_struct(void *theirs, const void *ours, size_t our_size)
{
    size_t size;
    memcpy(&size, theirs, sizeof size);
    if (size <= sizeof size)
        return;
    size_t common = size < our_size ? size : our_size;
    memcpy((char *)theirs + sizeof size, (const char *)ours + sizeof size, common - sizeof size);
}

/* ---- rowlock/versions.h */

int rlk_take_table_options(rowlock_error *error, rowlock_table_options *out,
                           const rowlock_table_options *theirs)
{
    int result = take_struct(error, out, sizeof *out, theirs);
    if (result == ROWLOCK_OK && !out->version)
        out->version = "version";
    return result;
}

int rlk_take_change_options(rowlock_error *error, rowlock_change_options *out,
                            const rowlock_change_options *theirs)
{
    int result = take_struct(error, out, sizeof *out, theirs);
    if (result == ROWLOCK_OK && out->chunk == 0)
        out->chunk = DEFAULT_CHUNK;
    return result == ROWLOCK_OK ? within(error, "chunk", out->chunk, 1, MAX_CHUNK) : result;
}

int rlk_take_retry_options(rowlock_error *error, rowlock_retry_options *out,
                           const rowlock_retry_options *theirs)
{
    int result = take_struct(error, out, sizeof *out, theirs);
    if (result != ROWLOCK_OK)
        return result;
    out->attempts = out->attempts ? out->attempts : DEFAULT_ATTEMPTS;
    out->lock_after = out->lock_after ? out->lock_after : DEFAULT_LOCK_AFTER;
    out->deadline_ms = out->deadline_ms ? out->deadline_ms : DEFAULT_RETRY_MS;
    out->base_ms = out->base_ms ? out->base_ms : DEFAULT_BASE_MS;
    out->cap_ms = out->cap_ms ? out->cap_ms : DEFAULT_CAP_MS;
    if ((result = within(error, "attempts", out->attempts, 1, INT32_MAX)) == ROWLOCK_OK &&
        (result = within(error, "deadline_ms", out->deadline_ms, 1, MAX_DAYS * MS_PER_DAY)) ==
            ROWLOCK_OK &&
        (result = within(error, "base_ms", out->base_ms, 1, MAX_TIMEOUT_MS)) == ROWLOCK_OK)
        result = within(error, "cap_ms", out->cap_ms, 1, MAX_TIMEOUT_MS);
    return result;
}

int rlk_take_walk_options(rowlock_error *error, rowlock_walk_options *out,
                          const rowlock_walk_options *theirs)
{
    int result = take_struct(error, out, sizeof *out, theirs);
    if (result != ROWLOCK_OK)
        return result;
    out->chunk = out->chunk ? out->chunk : DEFAULT_CHUNK;
    out->ttl_ms = out->ttl_ms ? out->ttl_ms : DEFAULT_TTL_MS;
    if ((result = within(error, "chunk", out->chunk, 1, MAX_CHUNK)) == ROWLOCK_OK)
        result = rlk_check_ttl(error, out->ttl_ms);
    return result;
}

int rlk_take_once_options(rowlock_error *error, rowlock_once_options *out,
                          const rowlock_once_options *theirs)
{
    int result = take_struct(error, out, sizeof *out, theirs);
    if (result == ROWLOCK_OK && out->fingerprint)
        result = rlk_check_text(error, "fingerprint", out->fingerprint, true);
    out->ttl_ms = out->ttl_ms ? out->ttl_ms : DEFAULT_ONCE_MS;
    if (result == ROWLOCK_OK)
        result = within(error, "ttl_ms", out->ttl_ms, 1, MAX_DAYS * MS_PER_DAY);
    return result == ROWLOCK_OK ? within(error, "token", out->token, 0, INT64_MAX) : result;
}
