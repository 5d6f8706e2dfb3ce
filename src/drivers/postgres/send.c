/* SPDX-License-Identifier: MIT
 *
 * Sends statements and takes results, never past the deadline. Also transactions of ours. */
#include "driver.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* ---- waiting for the server */

/* Waits until the next result can be taken without blocking. */
static enum rlk_class await_result(struct conn *p, struct rlk_call *call)
{
    for (;;) {
        int unsent = PQflush(p->conn);
        if (unsent < 0)
            return pg_fail_connection(p, call, RLK_UNCERTAIN);
        if (!unsent && !PQisBusy(p->conn))
            return RLK_DONE;
        short events = (short)(POLLIN | (unsent ? POLLOUT : 0));
        if (!rlk_wait_socket(PQsocket(p->conn), events, -1, call->deadline_us))
            return rlk_refuse(call, RLK_UNCERTAIN, "the server did not answer in time");
        if (!PQconsumeInput(p->conn))
            return pg_fail_connection(p, call, RLK_UNCERTAIN);
    }
}

static bool is_copy(ExecStatusType status)
{
    return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

/* Keeps the last result with rows or a number of rows. Of several errors the first counts. */
static enum rlk_class collect(struct conn *p, struct rlk_call *call, PGresult **out)
{
    enum rlk_class class = RLK_DONE;
    bool in_pipeline = PQpipelineStatus(p->conn) != PQ_PIPELINE_OFF;
    p->succeeded = 0;
    p->unreplicated = false;
    for (;;) {
        enum rlk_class waited = await_result(p, call);
        if (waited != RLK_DONE)
            return waited;
        PGresult *result = PQgetResult(p->conn);
        ExecStatusType status = PQresultStatus(result);
        if (!result && in_pipeline)
            /* NULL separates the results of a pipeline. */
            continue;
        if (is_copy(status)) {
            /* libpq gives this result again and again until the data is taken. */
            PQclear(result);
            call->garbled = true;
            return rlk_refuse(call, RLK_UNCERTAIN,
                              "the server began a COPY, which no statement of rowlock asks for");
        }
        if (result && status == PGRES_FATAL_ERROR && class == RLK_DONE)
            class = pg_fail_result(p, call, result);
        if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
            PQclear(*out);
            *out = result;
            p->succeeded++;
            continue;
        }
        PQclear(result);
        if (!result || status == PGRES_PIPELINE_SYNC)
            break;
    }
    if (class == RLK_DONE && p->succeeded == 0)
        return rlk_refuse(call, RLK_UNCERTAIN, "the server sent no result");
    if (class == RLK_DONE && p->unreplicated)
        return rlk_refuse(
            call, RLK_UNCERTAIN,
            "the commit no longer waited for a synchronous standby, which may lack it");
    return class;
}

/* ---- is the connection fit for a statement? */

/* Input on an idle connection is usually the server's goodbye. If we notice it before we send, the
 * step is unsent instead of uncertain. */
static bool is_alive(struct conn *p)
{
    struct pollfd fd = {.fd = PQsocket(p->conn), .events = POLLIN};
    while (PQstatus(p->conn) == CONNECTION_OK && poll(&fd, 1, 0) > 0)
        PQconsumeInput(p->conn);
    return PQstatus(p->conn) == CONNECTION_OK;
}

/* A failure after a savepoint of ours can be undone. The transaction goes on. */
static bool is_over(const struct conn *p)
{
    PGTransactionStatusType status = PQtransactionStatus(p->conn);
    return status != PQTRANS_INTRANS && !(status == PQTRANS_INERROR && p->saved > 0);
}

/* The owner of a failed transaction must roll it back. */
static enum rlk_class check_where(struct conn *p, struct rlk_call *call)
{
    PGTransactionStatusType status = PQtransactionStatus(p->conn);
    if (status == PQTRANS_INERROR) {
        call->tx_over = is_over(p);
        rlk_diag_set(call, 0, "25P02", "the transaction has failed before; roll it back");
        return call->where == RLK_OUTSIDE ? RLK_IN_TX : RLK_REFUSED;
    }
    if (p->adopted && (status == PQTRANS_ACTIVE || PQpipelineStatus(p->conn) != PQ_PIPELINE_OFF))
        return rlk_refuse(call, RLK_INVALID,
                          "a statement of yours is under way on the connection, or it is in "
                          "pipeline mode; take the results first, and leave that mode");
    if (call->inside ? call->where == RLK_OUTSIDE : p->adopted && status != PQTRANS_IDLE)
        return RLK_IN_TX;
    return call->where == RLK_INSIDE && !call->inside ? RLK_NO_TX : RLK_DONE;
}

/* The state is read first, because a lost connection has none. */
static enum rlk_class check_alive(struct conn *p, struct rlk_call *call)
{
    PGTransactionStatusType status = PQtransactionStatus(p->conn);
    call->inside = p->begin_waits || status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
    if (!call->inside)
        p->saved = 0;
    /* The transaction in which the server took no writes was rolled back. */
    if (p->standby && !call->inside)
        return rlk_refuse(call, RLK_UNSENT, "the server takes no writes");
    return is_alive(p) ? check_where(p, call) : pg_fail_connection(p, call, RLK_UNSENT);
}

enum rlk_class pg_check_usable(struct conn *p, struct rlk_call *call)
{
    enum rlk_class class = check_alive(p, call);
    if (class != RLK_DONE || !p->adopted)
        return class;
    if (strcmp(pg_encoding_to_char(PQclientEncoding(p->conn)), "UTF8") == 0)
        return RLK_DONE;
    return rlk_refuse(call, RLK_INVALID,
                      "the adopted connection's client_encoding is no longer UTF8");
}

/* ---- one packet */

/* The settings of a session of ours. Its first statement brings them. */
static const char SETTINGS[] =
    "/* rowlock:settings */ SELECT pg_catalog.set_config('jit', 'off', false), "
    "pg_catalog.set_config('default_transaction_isolation', 'read committed', false), "
    "pg_catalog.set_config('statement_timeout', $1::text, false), "
    "pg_catalog.set_config('lock_timeout', $2::text, false), "
    "pg_catalog.set_config('standard_conforming_strings', 'on', false), "
    "pg_catalog.set_config('quote_all_identifiers', 'off', false)";

/* Most statements find a row by its key, and so do the functions that they call. One plan fits all
 * their values. Statistics from an empty table would make the server plan each execution again, or
 * read the whole table. The costs of a plan without alternatives look high, and would start the JIT
 * compiler. A wide step reads many rows or long arrays. The plan for ten leases is slow for ten
 * thousand. */
static const char PLAN[] =
    "/* rowlock:plan */ SELECT pg_catalog.set_config('plan_cache_mode', $1::text, false), "
    "pg_catalog.set_config('enable_seqscan', $2::text, false), "
    "pg_catalog.set_config('enable_bitmapscan', $2::text, false), "
    "pg_catalog.set_config('enable_hashjoin', $2::text, false), "
    "pg_catalog.set_config('enable_mergejoin', $2::text, false)";
static const char *const plans[][2] = {{"force_generic_plan", "off"}, {"auto", "on"}};

/* Behind a pooler, another client may have set the session's default. */
static const char BEGIN[] = "BEGIN ISOLATION LEVEL READ COMMITTED";

static int send_values(struct conn *p, const char *text, int count, const char *const *values)
{
    return PQsendQueryParams(p->conn, text, count, NULL, values, NULL, NULL, 0);
}

/* They hold for the next transaction, so the statement after them must not be in theirs. */
static int send_settings(struct conn *p)
{
    char statement[24], lock[24];
    snprintf(statement, sizeof statement, "%" PRId64, p->timeout_ms);
    snprintf(lock, sizeof lock, "%" PRId64, p->timeout_ms / 2 + 1);
    return send_values(p, SETTINGS, 2, (const char *const[]){statement, lock}) &&
           PQpipelineSync(p->conn);
}

static int send_packet(struct conn *p, const struct packet *s, bool fresh, bool replan)
{
    bool first = s->id && !s->prepared;
    bool several = p->begin_waits || fresh || replan || first;
    return (!several || PQenterPipelineMode(p->conn)) && (!fresh || send_settings(p)) &&
           (!p->begin_waits || send_values(p, BEGIN, 0, NULL)) &&
           (!replan || send_values(p, PLAN, 2, plans[s->anew])) &&
           (!s->drop || send_values(p, s->drop, 0, NULL)) &&
           (!first || PQsendPrepare(p->conn, s->id, s->text, 0, NULL)) &&
           (!s->text ||
            (s->id ? PQsendQueryPrepared(p->conn, s->id, s->count, s->values, NULL, NULL, 0)
                   : send_values(p, s->text, s->count, s->values))) &&
           (!several || PQpipelineSync(p->conn));
}

/* Settings made inside a transaction end with it, so they change only outside. begin() has made
 * them before the transaction. If SETTINGS fail, the statement runs without them, and the next one
 * tries again. If a packet fails, prepared statements stay and plans do not. */
enum rlk_class pg_exchange(struct conn *p, struct rlk_call *call, struct packet *s, PGresult **out)
{
    bool ours = p->direct && !call->inside, fresh = ours && !p->is_set;
    bool replan = ours && p->plans_once == s->anew;
    int before = (p->begin_waits ? 1 : 0) + (replan ? 1 : 0);
    enum rlk_class class = RLK_DONE;
    if (!send_packet(p, s, fresh, replan))
        return pg_fail_connection(p, call, RLK_UNCERTAIN);
    p->begin_waits = false;
    if (fresh && !(p->is_set = (class = collect(p, call, out)) == RLK_DONE))
        rlk_log(ROWLOCK_LOG_WARNING, "the session keeps the settings of its server: %s",
                call->text);
    if (class != RLK_UNCERTAIN)
        class = collect(p, call, out);
    if (PQpipelineStatus(p->conn) != PQ_PIPELINE_OFF)
        PQexitPipelineMode(p->conn);
    if (replan && class == RLK_DONE)
        p->plans_once = !s->anew;
    s->dropped = s->drop && p->succeeded > before;
    if (s->id && !s->prepared)
        s->prepared = p->succeeded > before + (s->drop ? 1 : 0);
    if (call->inside)
        call->tx_over = is_over(p);
    return class;
}

/* Sends statements without values, separated by semicolons. */
enum rlk_class pg_say(struct conn *p, struct rlk_call *call, const char *text, PGresult **out)
{
    if (!PQsendQuery(p->conn, text))
        return pg_fail_connection(p, call, RLK_UNCERTAIN);
    return collect(p, call, out);
}

/* ---- transactions of ours, and savepoints */

/* A failed transaction still takes what ends it, or undoes a part of it. */
static enum rlk_class check_frame(struct conn *p, struct rlk_call *call, enum rlk_frame what)
{
    bool mends = what == RLK_COMMIT || what == RLK_ROLLBACK || what == RLK_UNDO;
    call->where = what == RLK_BEGIN ? RLK_OUTSIDE : what == RLK_LOOK ? RLK_EITHER : RLK_INSIDE;
    enum rlk_class class = check_alive(p, call);
    return class == RLK_REFUSED && mends ? RLK_DONE : class;
}

/* A failure here changes nothing, even if the connection is lost. */
static enum rlk_class begin(struct conn *p, struct rlk_call *call, const char *text, PGresult **out)
{
    struct packet settings = {.text = NULL};
    enum rlk_class class = RLK_DONE;
    if (!p->direct)
        class = pg_say(p, call, p->adopted ? "BEGIN" : text, out);
    else if (!p->plans_once)
        class = pg_exchange(p, call, &settings, out);
    p->begin_waits = p->direct && class == RLK_DONE;
    return class == RLK_UNCERTAIN ? RLK_UNSENT : class;
}

/* If the answer to COMMIT is lost, the transaction may be over. The call is then no longer
 * inside. */
static enum rlk_class end(struct conn *p, struct rlk_call *call, const char *text, PGresult **out)
{
    bool empty = p->begin_waits;
    bool commits = strcmp(text, "COMMIT") == 0;
    p->begin_waits = false;
    if (empty)
        return RLK_DONE;
    enum rlk_class class = pg_say(p, call, text, out);
    if (class == RLK_UNCERTAIN && commits)
        call->inside = false;
    if (class != RLK_DONE || !commits || strcmp(PQcmdStatus(*out), "ROLLBACK") != 0)
        return class;
    rlk_diag_set(call, 0, "40000", "the transaction had failed before, and was rolled back");
    return RLK_CONTENTION;
}

/* Sends a waiting BEGIN too. Later statements of the transaction have none. */
static enum rlk_class mark(struct conn *p, struct rlk_call *call, const char *text, PGresult **out)
{
    struct packet s = {.text = text};
    enum rlk_class class = pg_exchange(p, call, &s, out);
    p->saved += class == RLK_DONE;
    return class;
}

static enum rlk_class unmark(struct conn *p, struct rlk_call *call, const char *text,
                             PGresult **out)
{
    if (p->saved > 0)
        p->saved--;
    return pg_say(p, call, text, out);
}

static const struct {
    enum rlk_class (*run)(struct conn *p, struct rlk_call *call, const char *text, PGresult **out);
    const char *text;
} frames[] = {
    [RLK_BEGIN] = {begin, BEGIN},
    [RLK_COMMIT] = {end, "COMMIT"},
    [RLK_ROLLBACK] = {end, "ROLLBACK"},
    [RLK_SAVE] = {mark, "SAVEPOINT rowlock"},
    [RLK_KEEP] = {unmark, "RELEASE SAVEPOINT rowlock"},
    [RLK_UNDO] = {unmark, "ROLLBACK TO SAVEPOINT rowlock; RELEASE SAVEPOINT rowlock"},
};

enum rlk_class pg_frame(void *conn, struct rlk_call *call, enum rlk_frame what)
{
    struct conn *p = conn;
    PGresult *r = NULL;
    enum rlk_class class = check_frame(p, call, what);
    if (class != RLK_DONE || what == RLK_LOOK)
        return class;
    class = frames[what].run(p, call, frames[what].text, &r);
    PQclear(r);
    if (what != RLK_BEGIN)
        call->tx_over = class != RLK_DONE && call->inside && is_over(p);
    return pg_class_of_theirs(call, class);
}
