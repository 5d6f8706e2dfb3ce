/* SPDX-License-Identifier: MIT
 * The PostgreSQL driver: every libpq call of the library. What the steps say is in sql/postgres/; what
 * their answers mean, and whether to try again, is core's business.
 *
 * Statements run outside of transactions, so each is one. On a connection straight to a server they
 * are prepared on first use, in the same round trip; behind a transaction pooler, where a session is
 * nobody's own, and on adopted connections they are sent whole and leave nothing behind. */
#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../backend.h"

enum { OLDEST_SERVER = 120000, PARAMS_MAX = 9, INT_TEXT = 24 };

struct pg {
    PGconn *conn;
    const struct rlk_texts *texts;
    bool adopted;
    bool direct; /* no pooler in between: the session is ours alone */
    bool prepared[RLK_STEP_COUNT];
};

/* ---- errors */

/* By SQLSTATE, or by its first two characters; the first that fits counts. */
static const struct {
    const char *state;
    enum rlk_class class;
} classes[] = {
    {"40", RLK_CONTENTION}, /* serialization failure, deadlock: rolled back */
    {"55P03", RLK_CONTENTION}, /* lock_timeout */
    {"57014", RLK_CONTENTION}, /* statement_timeout or a cancel: rolled back */
    {"23505", RLK_CONTENTION}, /* two inserted at once, which no step of ours lets happen alone */
    {"55006", RLK_CONTENTION}, /* object in use */
    {"53300", RLK_UNSENT}, /* too many connections, at connect */
    {"57P03", RLK_UNSENT}, /* starting up or shutting down, at connect */
    {"57P", RLK_UNCERTAIN}, /* the server ends the session */
    {"08", RLK_UNCERTAIN}, /* a pooler lost its server */
    {"25006", RLK_READONLY}, /* a standby, or default_transaction_read_only */
    {"53", RLK_READONLY}, /* disk full, out of memory at the server */
    {"42P01", RLK_SCHEMA}, /* no such table */
    {"42883", RLK_SCHEMA}, /* no such function */
    {"42703", RLK_SCHEMA}, /* no such column */
    {"42P10", RLK_SCHEMA}, /* no such unique key */
    {"3F000", RLK_SCHEMA}, /* no such schema */
    {"42501", RLK_DENIED}, /* no privilege */
    {"28", RLK_DENIED}, /* wrong password, no such role, pg_hba.conf */
    {"3D000", RLK_INVALID}, /* no such database */
    {"22", RLK_INVALID}, /* a value that the database cannot take */
    {"23514", RLK_INVALID}, /* a CHECK of ours */
    {"0A000", RLK_UNSUPPORTED},
};

static enum rlk_class class_of(const char *state)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (strncmp(state, classes[i].state, strlen(classes[i].state)) == 0)
            return classes[i].class;
    return RLK_REFUSED;
}

static enum rlk_class fail_connection(struct pg *p, struct rlk_call *call, enum rlk_class class)
{
    rlk_diag_set(call, 0, NULL, p->conn ? PQerrorMessage(p->conn) : "out of memory");
    return p->conn ? class : RLK_NOMEM;
}

static enum rlk_class fail_result(struct rlk_call *call, const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    rlk_diag_set(call, 0, state, text ? text : PQresultErrorMessage(result));
    return state ? class_of(state) : RLK_UNCERTAIN; /* libpq's own: the connection broke */
}

/* ---- waiting for the server, never past the deadline */

static int ms_left(const struct rlk_call *call)
{
    int64_t left = call->deadline_us - rlk_now_us();
    if (left <= 0)
        return 0;
    return left / 1000 >= INT32_MAX ? INT32_MAX : (int)(left / 1000) + 1;
}

/* False: the deadline passed. */
static bool wait_socket(struct pg *p, const struct rlk_call *call, short events)
{
    struct pollfd fd = {.fd = PQsocket(p->conn), .events = events};
    for (;;) {
        int left = ms_left(call);
        if (left == 0)
            return false;
        if (poll(&fd, 1, left) > 0)
            return true;
    }
}

static enum rlk_class fail_deadline(struct rlk_call *call)
{
    rlk_diag_set(call, 0, NULL, "the server did not answer in time");
    return RLK_UNCERTAIN;
}

/* Until the next result can be taken without blocking. */
static enum rlk_class await_result(struct pg *p, struct rlk_call *call)
{
    for (;;) {
        int unsent = PQflush(p->conn);
        if (unsent < 0)
            return fail_connection(p, call, RLK_UNCERTAIN);
        if (!unsent && !PQisBusy(p->conn))
            return RLK_DONE;
        if (!wait_socket(p, call, (short)(POLLIN | (unsent ? POLLOUT : 0))))
            return fail_deadline(call);
        if (!PQconsumeInput(p->conn))
            return fail_connection(p, call, RLK_UNCERTAIN);
    }
}

/* Something to read on an idle connection is mostly the server's farewell. Noticing it before anything
 * is sent turns an uncertain step into one that surely was not done. */
static bool is_alive(struct pg *p)
{
    struct pollfd fd = {.fd = PQsocket(p->conn), .events = POLLIN};
    while (PQstatus(p->conn) == CONNECTION_OK && poll(&fd, 1, 0) > 0)
        PQconsumeInput(p->conn);
    return PQstatus(p->conn) == CONNECTION_OK;
}

/* ---- one statement */

/* Keeps the last result that says something: rows, a row count, or the first error. */
static enum rlk_class collect(struct pg *p, struct rlk_call *call, PGresult **out)
{
    PGresult *kept = NULL;
    enum rlk_class class = RLK_DONE;
    bool in_pipeline = PQpipelineStatus(p->conn) != PQ_PIPELINE_OFF;
    for (;;) {
        enum rlk_class waited = await_result(p, call);
        if (waited != RLK_DONE) {
            PQclear(kept);
            return waited;
        }
        PGresult *result = PQgetResult(p->conn);
        ExecStatusType status = PQresultStatus(result);
        if (!result && in_pipeline)
            continue; /* between the results of a pipeline */
        if (!result || status == PGRES_PIPELINE_SYNC) {
            PQclear(result);
            break;
        }
        if (status == PGRES_FATAL_ERROR && class == RLK_DONE)
            class = fail_result(call, result);
        if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
            PQclear(result);
            continue;
        }
        PQclear(kept);
        kept = result;
    }
    if (class == RLK_DONE && !kept) {
        rlk_diag_set(call, 0, NULL, "the server sent no result");
        class = RLK_UNCERTAIN;
    }
    if (class != RLK_DONE) {
        PQclear(kept);
        return class;
    }
    *out = kept;
    return RLK_DONE;
}

static const char *const step_ids[RLK_STEP_COUNT] = {
    [RLK_STEP_META] = "rowlock_meta",       [RLK_STEP_FACTS] = "rowlock_facts",
    [RLK_STEP_ACQUIRE] = "rowlock_acquire", [RLK_STEP_PROBE] = "rowlock_probe",
    [RLK_STEP_RENEW] = "rowlock_renew",     [RLK_STEP_RELEASE] = "rowlock_release",
    [RLK_STEP_VERIFY] = "rowlock_verify",   [RLK_STEP_LIST] = "rowlock_list",
    [RLK_STEP_LAST] = "rowlock_last",       [RLK_STEP_EXPIRED] = "rowlock_expired",
    [RLK_STEP_SWEEP] = "rowlock_sweep",     [RLK_STEP_FOLD] = "rowlock_fold",
    [RLK_STEP_BREAK] = "rowlock_break",
};

/* Parse and execution in one packet, so that the first use costs no more round trips than the others. */
static int send_first(struct pg *p, enum rlk_step step, int count, const char *const *values)
{
    const char *id = step_ids[step];
    return PQenterPipelineMode(p->conn) &&
           PQsendPrepare(p->conn, id, p->texts->sql[step], 0, NULL) &&
           PQsendQueryPrepared(p->conn, id, count, values, NULL, NULL, 0) &&
           PQpipelineSync(p->conn);
}

static int send_step(struct pg *p, enum rlk_step step, int count, const char *const *values)
{
    if (!p->direct)
        return PQsendQueryParams(p->conn, p->texts->sql[step], count, NULL, values, NULL, NULL, 0);
    if (p->prepared[step])
        return PQsendQueryPrepared(p->conn, step_ids[step], count, values, NULL, NULL, 0);
    return send_first(p, step, count, values);
}

static enum rlk_class check_usable(struct pg *p, struct rlk_call *call)
{
    if (!is_alive(p))
        return fail_connection(p, call, RLK_UNSENT);
    if (p->adopted && PQtransactionStatus(p->conn) != PQTRANS_IDLE)
        return RLK_IN_TX;
    if (p->adopted && strcmp(pg_encoding_to_char(PQclientEncoding(p->conn)), "UTF8") != 0) {
        rlk_diag_set(call, 0, NULL, "the adopted connection's client_encoding is no longer UTF8");
        return RLK_INVALID;
    }
    return RLK_DONE;
}

static enum rlk_class run(struct pg *p, struct rlk_call *call, enum rlk_step step, int count,
                          const char *const *values, PGresult **out)
{
    enum rlk_class class = check_usable(p, call);
    if (class != RLK_DONE)
        return class;
    if (!send_step(p, step, count, values))
        return fail_connection(p, call, RLK_UNCERTAIN);
    class = collect(p, call, out);
    if (PQpipelineStatus(p->conn) != PQ_PIPELINE_OFF) {
        PQexitPipelineMode(p->conn);
        p->prepared[step] = class == RLK_DONE;
        if (!p->prepared[step] && class != RLK_UNCERTAIN)
            p->direct = false; /* it may or may not be prepared now: send it whole from here on */
    }
    return class;
}

/* ---- values */

struct number {
    char text[INT_TEXT];
};

static const char *number(struct number *n, int64_t value)
{
    snprintf(n->text, sizeof n->text, "%" PRId64, value);
    return n->text;
}

static int64_t get_int(const PGresult *r, int row, int column)
{
    return strtoll(PQgetvalue(r, row, column), NULL, 10);
}

static bool get_bool(const PGresult *r, int row, int column)
{
    return PQgetvalue(r, row, column)[0] == 't';
}

static void get_text(const PGresult *r, int row, int column, char *out, size_t cap)
{
    rlk_copy_text(out, cap, PQgetvalue(r, row, column), (size_t)PQgetlength(r, row, column));
}

/* The thirteen columns that sql/README.md calls the row, from the given column on. */
static void get_row(const PGresult *r, int row, int column, struct rlk_row *out)
{
    get_text(r, row, column, out->name, sizeof out->name);
    out->slot = (int)get_int(r, row, column + 1);
    get_text(r, row, column + 2, out->owner, sizeof out->owner);
    out->token = get_int(r, row, column + 3);
    out->acquired_us = get_int(r, row, column + 4);
    out->expires_us = get_int(r, row, column + 5);
    out->ttl_us = get_int(r, row, column + 6);
    out->renewals = get_int(r, row, column + 7);
    get_text(r, row, column + 8, out->host, sizeof out->host);
    out->pid = get_int(r, row, column + 9);
    get_text(r, row, column + 10, out->program, sizeof out->program);
    get_text(r, row, column + 11, out->note, sizeof out->note);
    out->now_us = get_int(r, row, column + 12);
}

static int give_rows(const PGresult *r, rlk_row_fn *each, void *context, struct rlk_row *last)
{
    struct rlk_row row;
    int count = PQntuples(r);
    for (int i = 0; i < count; i++) {
        get_row(r, i, 0, &row);
        if (last)
            *last = row;
        if (each && each(context, &row) != 0)
            break;
    }
    return count;
}

/* ---- connecting */

static void be_silent(void *context, const char *message)
{
    (void)context;
    (void)message;
}

/* One round trip: the server's version, whether it is the process that libpq believes to talk to (a
 * pooler gives out a key of its own), and, if so, the settings of a session that is ours alone. */
static const char HELLO[] =
    "/* rowlock:hello */ SELECT current_setting('server_version_num'), pg_backend_pid() = $1::int,"
    " CASE WHEN pg_backend_pid() = $1::int THEN"
    " set_config('default_transaction_isolation', 'read committed', false) ||"
    " set_config('statement_timeout', $2::text, false) || set_config('lock_timeout', $3::text, "
    "false) END";

static enum rlk_class greet(struct pg *p, struct rlk_call *call, int64_t timeout_ms)
{
    struct number pid;
    struct number statement;
    struct number lock;
    const char *values[] = {number(&pid, p->adopted ? 0 : PQbackendPID(p->conn)),
                            number(&statement, timeout_ms), number(&lock, timeout_ms / 2 + 1)};
    if (!PQsendQueryParams(p->conn, HELLO, 3, NULL, values, NULL, NULL, 0))
        return fail_connection(p, call, RLK_UNSENT);
    PGresult *r = NULL;
    enum rlk_class class = collect(p, call, &r);
    if (class != RLK_DONE)
        return class;
    if (get_int(r, 0, 0) < OLDEST_SERVER) {
        rlk_diag_set(call, 0, NULL, "the server is older than PostgreSQL 12");
        class = RLK_UNSUPPORTED;
    }
    p->direct = !p->adopted && get_bool(r, 0, 1);
    PQclear(r);
    return class;
}

/* libpq gives the SQLSTATE of a refused login in its verbose text only: "FATAL:  28P01: password …",
 * with the place in the server's source on the next line. */
static enum rlk_class fail_login(struct pg *p, struct rlk_call *call)
{
    enum rlk_class class = fail_connection(p, call, RLK_UNSENT);
    char state[6] = "";
    const char *at = p->conn ? strstr(PQerrorMessage(p->conn), ":  ") : NULL;
    if (!at || sscanf(at, ":  %5[0-9A-Z]:", state) != 1 || strlen(state) != 5)
        return class;
    char text[sizeof call->text];
    const char *message = PQerrorMessage(p->conn);
    snprintf(text, sizeof text, "%.*s%s", (int)(at + 3 - message), message, at + 3 + 7);
    char *end = strchr(text, '\n');
    if (end)
        *end = '\0';
    rlk_diag_set(call, 0, state, text);
    class = class_of(state);
    return class == RLK_UNCERTAIN ? RLK_UNSENT : class;
}

static enum rlk_class log_in(struct pg *p, struct rlk_call *call)
{
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    while (PQstatus(p->conn) != CONNECTION_BAD && next != PGRES_POLLING_OK) {
        if (next == PGRES_POLLING_FAILED)
            break;
        if (!wait_socket(p, call, next == PGRES_POLLING_READING ? POLLIN : POLLOUT)) {
            rlk_diag_set(call, 0, NULL, "the server did not let us in before the connect timeout");
            return RLK_UNSENT;
        }
        next = PQconnectPoll(p->conn);
    }
    return PQstatus(p->conn) == CONNECTION_OK ? RLK_DONE : fail_login(p, call);
}

/* Ports are a list where hosts are. */
static bool is_port_list(const char *text)
{
    for (const char *at = text; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        char *end;
        long port = strtol(at, &end, 10);
        if (*at != ',' && (end == at || port < 1 || port > 65535 || (*end && *end != ',')))
            return false;
    }
    return true;
}

/* libpq's own words about a URL that it cannot read quote it, password and all. */
static enum rlk_class check_url(struct rlk_call *call, const char *url)
{
    char *theirs = NULL;
    PQconninfoOption *options = PQconninfoParse(url, &theirs);
    bool no_memory = !options && (!theirs || strstr(theirs, "out of memory"));
    bool fine = options != NULL;
    for (PQconninfoOption *o = options; fine && o->keyword; o++)
        fine = !o->val || strcmp(o->keyword, "port") != 0 || is_port_list(o->val);
    PQconninfoFree(options);
    PQfreemem(theirs);
    if (fine || no_memory)
        return fine ? RLK_DONE : RLK_NOMEM;
    rlk_diag_set(
        call, 0, NULL,
        "the URL cannot be read: look at its port, parameters and % escapes; within a name or "
        "a password write / as %2F, @ as %40, : as %3A, % as %25");
    return RLK_INVALID;
}

static enum rlk_class pg_open(void *conn, struct rlk_call *call, const struct rlk_target *target,
                              const struct rlk_texts *texts, struct rlk_hello *hello)
{
    struct pg *p = conn;
    p->texts = texts;
    enum rlk_class class = check_url(call, target->url);
    if (class != RLK_DONE)
        return class;
    /* What stands before dbname the URL may override, what stands behind it not. */
    const char *keys[] = {"fallback_application_name", "dbname", "client_encoding", NULL};
    const char *values[] = {target->app_name, target->url, "UTF8", NULL};
    p->conn = PQconnectStartParams(keys, values, 1);
    if (!p->conn)
        return fail_connection(p, call, RLK_NOMEM);
    PQsetNoticeProcessor(p->conn, be_silent, NULL);
    PQsetErrorVerbosity(p->conn, PQERRORS_VERBOSE);
    if (PQstatus(p->conn) == CONNECTION_BAD && PQsocket(p->conn) < 0)
        return fail_connection(p, call, RLK_UNSENT);
    class = log_in(p, call);
    if (class != RLK_DONE)
        return class;
    PQsetErrorVerbosity(p->conn, PQERRORS_DEFAULT);
    PQsetnonblocking(p->conn, 1);
    snprintf(hello->schema, sizeof hello->schema, "public");
    return greet(p, call, target->timeout_ms);
}

static enum rlk_class pg_adopt(void *conn, struct rlk_call *call, void *vendor,
                               const struct rlk_texts *texts, struct rlk_hello *hello)
{
    struct pg *p = conn;
    p->conn = vendor;
    p->texts = texts;
    p->adopted = true;
    enum rlk_class class = check_usable(p, call);
    if (class != RLK_DONE)
        return class;
    snprintf(hello->schema, sizeof hello->schema, "public");
    return greet(p, call, 0);
}

static void pg_close(void *conn, bool in_child)
{
    struct pg *p = conn;
    if (!p->conn || p->adopted)
        return;
    /* PQfinish says goodbye to the server. A forked child's copy of the socket is closed before, so
     * that it cannot end the parent's session. */
    if (in_child && PQsocket(p->conn) >= 0)
        close(PQsocket(p->conn));
    PQfinish(p->conn);
    p->conn = NULL;
}

/* ---- our tables */

static enum rlk_class pg_install(void *conn, struct rlk_call *call)
{
    struct pg *p = conn;
    enum rlk_class class = check_usable(p, call);
    if (class != RLK_DONE)
        return class;
    if (!PQsendQuery(p->conn, p->texts->sql[RLK_STEP_SCHEMA]))
        return fail_connection(p, call, RLK_UNCERTAIN);
    PGresult *r = NULL;
    class = collect(p, call, &r);
    PQclear(r);
    if (class == RLK_DONE || class == RLK_UNCERTAIN ||
        PQtransactionStatus(p->conn) != PQTRANS_INERROR)
        return class;
    /* The schema's own BEGIN is still open, failed; the caller's transaction it cannot be. */
    struct rlk_call undo = {.deadline_us = call->deadline_us};
    r = NULL;
    if (PQsendQuery(p->conn, "ROLLBACK") && collect(p, &undo, &r) == RLK_DONE)
        PQclear(r);
    return class;
}

static enum rlk_class pg_meta(void *conn, struct rlk_call *call, struct rlk_meta *out)
{
    PGresult *r = NULL;
    enum rlk_class class = run(conn, call, RLK_STEP_META, 0, NULL, &r);
    if (class != RLK_DONE)
        return class;
    out->found = PQntuples(r) == 1;
    if (out->found) {
        out->version = (int)get_int(r, 0, 0);
        get_text(r, 0, 1, out->identity, sizeof out->identity);
        out->token_floor = get_int(r, 0, 2);
    }
    PQclear(r);
    return RLK_DONE;
}

static enum rlk_class pg_facts(void *conn, struct rlk_call *call, struct rlk_facts *out)
{
    struct pg *p = conn;
    PGresult *r = NULL;
    enum rlk_class class = run(p, call, RLK_STEP_FACTS, 0, NULL, &r);
    if (class != RLK_DONE)
        return class;
    get_text(r, 0, 0, out->server, sizeof out->server);
    get_text(r, 0, 1, out->isolation, sizeof out->isolation);
    out->read_only = get_bool(r, 0, 2);
    out->now_us = get_int(r, 0, 3);
    const char *commit = PQgetvalue(r, 0, 4);
    const char *fsync = PQgetvalue(r, 0, 5);
    snprintf(out->durability, sizeof out->durability, "synchronous_commit %.20s, fsync %.10s",
             commit, fsync);
    out->durable = strcmp(commit, "off") != 0 && strcmp(fsync, "on") == 0;
    out->crash_safe = get_bool(r, 0, 6);
    snprintf(out->engine, sizeof out->engine, "%s tables", out->crash_safe ? "logged" : "unlogged");
    get_text(r, 0, 7, out->collation, sizeof out->collation);
    out->bytewise = get_bool(r, 0, 8);
    out->may_lock = get_bool(r, 0, 9);
    out->pooled = !p->adopted && !p->direct;
    PQclear(r);
    return RLK_DONE;
}

/* ---- steps of a lock */

/* A new grant says no more than its token: the rest is what was asked for. */
static void grant_row(const struct rlk_claim *claim, int64_t token, struct rlk_row *row)
{
    struct rlk_row grant = {.slot = claim->slot,
                            .token = token,
                            .acquired_us = row->now_us,
                            .expires_us = row->now_us + claim->ttl_us,
                            .ttl_us = claim->ttl_us,
                            .pid = claim->pid,
                            .now_us = row->now_us};
    rlk_copy_text(grant.name, sizeof grant.name, claim->name, strlen(claim->name));
    rlk_copy_text(grant.owner, sizeof grant.owner, claim->owner, strlen(claim->owner));
    rlk_copy_text(grant.host, sizeof grant.host, claim->host, strlen(claim->host));
    rlk_copy_text(grant.program, sizeof grant.program, claim->program, strlen(claim->program));
    rlk_copy_text(grant.note, sizeof grant.note, claim->note, strlen(claim->note));
    *row = grant;
}

static enum rlk_class pg_acquire(void *conn, struct rlk_call *call, const struct rlk_claim *claim,
                                 struct rlk_grant *out)
{
    struct number slot;
    struct number attempt;
    struct number ttl;
    struct number pid;
    const char *values[] = {claim->name,
                            number(&slot, claim->slot),
                            claim->owner,
                            number(&attempt, claim->attempt),
                            number(&ttl, claim->ttl_us),
                            claim->host,
                            number(&pid, claim->pid),
                            claim->program,
                            claim->note};
    PGresult *r = NULL;
    enum rlk_class class = run(conn, call, RLK_STEP_ACQUIRE, 9, values, &r);
    if (class != RLK_DONE)
        return class;
    enum { TOKEN, OURS, FIRST };
    const bool granted = !PQgetisnull(r, 0, TOKEN);
    const bool stands = !PQgetisnull(r, 0, OURS);
    get_row(r, 0, FIRST, &out->row);
    if (granted)
        grant_row(claim, get_int(r, 0, TOKEN), &out->row);
    out->outcome = granted || (stands && get_bool(r, 0, OURS)) ? RLK_GRANTED
                   : stands                                    ? RLK_HELD
                                                               : RLK_IN_FLIGHT;
    PQclear(r);
    return RLK_DONE;
}

static enum rlk_class pg_probe(void *conn, struct rlk_call *call, const struct rlk_claim *claim,
                               struct rlk_grant *out)
{
    struct number slot;
    struct number attempt;
    const char *values[] = {claim->name, number(&slot, claim->slot), claim->owner,
                            number(&attempt, claim->attempt)};
    PGresult *r = NULL;
    enum rlk_class class = run(conn, call, RLK_STEP_PROBE, 4, values, &r);
    if (class != RLK_DONE)
        return class;
    out->outcome = PQntuples(r) == 1 ? RLK_HELD : RLK_IN_FLIGHT;
    if (out->outcome == RLK_HELD)
        get_row(r, 0, 0, &out->row);
    PQclear(r);
    return RLK_DONE;
}

/* renew, release and verify name the grant by the same four values; the fifth is renew's alone. */
static enum rlk_class run_held(void *conn, struct rlk_call *call, enum rlk_step step,
                               const struct rlk_held *held, const char *fifth, PGresult **out)
{
    struct number slot;
    struct number token;
    const char *values[] = {held->name, number(&slot, held->slot), held->owner,
                            number(&token, held->token), fifth};
    return run(conn, call, step, fifth ? 5 : 4, values, out);
}

static enum rlk_class pg_renew(void *conn, struct rlk_call *call, const struct rlk_held *held,
                               int64_t ttl_us, struct rlk_renewal *out)
{
    struct number ttl;
    PGresult *r = NULL;
    enum rlk_class class = run_held(conn, call, RLK_STEP_RENEW, held, number(&ttl, ttl_us), &r);
    if (class != RLK_DONE)
        return class;
    out->found = PQntuples(r) == 1;
    if (out->found) {
        out->expires_us = get_int(r, 0, 0);
        out->lapsed_us = get_int(r, 0, 1);
        out->now_us = get_int(r, 0, 2);
    }
    PQclear(r);
    return RLK_DONE;
}

static enum rlk_class pg_release(void *conn, struct rlk_call *call, const struct rlk_held *held,
                                 bool *found)
{
    PGresult *r = NULL;
    enum rlk_class class = run_held(conn, call, RLK_STEP_RELEASE, held, NULL, &r);
    if (class != RLK_DONE)
        return class;
    *found = strcmp(PQcmdTuples(r), "1") == 0;
    PQclear(r);
    return RLK_DONE;
}

static enum rlk_class pg_verify(void *conn, struct rlk_call *call, const struct rlk_held *held,
                                struct rlk_verified *out)
{
    PGresult *r = NULL;
    enum rlk_class class = run_held(conn, call, RLK_STEP_VERIFY, held, NULL, &r);
    if (class != RLK_DONE)
        return class;
    out->found = PQntuples(r) == 1;
    if (out->found) {
        out->expires_us = get_int(r, 0, 0);
        out->now_us = get_int(r, 0, 1);
    }
    PQclear(r);
    return RLK_DONE;
}

/* ---- steps of operators */

static enum rlk_class pg_list(void *conn, struct rlk_call *call, const char *name,
                              const char *after_name, int after_slot, int limit, rlk_row_fn *each,
                              void *context)
{
    struct number slot;
    struct number rows;
    const char *values[] = {name, after_name, number(&slot, after_slot), number(&rows, limit)};
    PGresult *r = NULL;
    enum rlk_class class = run(conn, call, RLK_STEP_LIST, 4, values, &r);
    if (class == RLK_DONE)
        give_rows(r, each, context, NULL);
    PQclear(r);
    return class;
}

static enum rlk_class pg_last(void *conn, struct rlk_call *call, const char *name, bool *found,
                              int64_t *token, int64_t *granted_us)
{
    PGresult *r = NULL;
    enum rlk_class class = run(conn, call, RLK_STEP_LAST, 1, &name, &r);
    if (class != RLK_DONE)
        return class;
    *found = PQntuples(r) == 1;
    if (*found) {
        *token = get_int(r, 0, 0);
        *granted_us = get_int(r, 0, 1);
    }
    PQclear(r);
    return RLK_DONE;
}

static enum rlk_class pg_sweep(void *conn, struct rlk_call *call, const struct rlk_sweep *sweep,
                               int *seen, struct rlk_row *last, rlk_row_fn *each, void *context)
{
    struct number slot;
    struct number older;
    struct number rows;
    const char *values[] = {sweep->after_name, number(&slot, sweep->after_slot),
                            number(&older, sweep->older_us), number(&rows, sweep->batch)};
    PGresult *r = NULL;
    enum rlk_class class =
        run(conn, call, sweep->dry_run ? RLK_STEP_EXPIRED : RLK_STEP_SWEEP, 4, values, &r);
    if (class == RLK_DONE)
        *seen = give_rows(r, each, context, last);
    PQclear(r);
    return class;
}

static enum rlk_class pg_fold(void *conn, struct rlk_call *call, struct rlk_fold *fold)
{
    struct number idle;
    struct number rows;
    const char *values[] = {number(&idle, fold->idle_us), number(&rows, fold->batch),
                            fold->dry_run ? "t" : "f"};
    PGresult *r = NULL;
    enum rlk_class class = run(conn, call, RLK_STEP_FOLD, 3, values, &r);
    if (class != RLK_DONE)
        return class;
    fold->folded = get_int(r, 0, 0);
    PQclear(r);
    return RLK_DONE;
}

static enum rlk_class pg_break(void *conn, struct rlk_call *call, const char *name, int slot_number,
                               int64_t token, bool *found, struct rlk_row *broken)
{
    struct number slot;
    struct number holder;
    const char *values[] = {name, number(&slot, slot_number), number(&holder, token)};
    PGresult *r = NULL;
    enum rlk_class class = run(conn, call, RLK_STEP_BREAK, 3, values, &r);
    if (class != RLK_DONE)
        return class;
    *found = PQntuples(r) == 1;
    if (*found)
        get_row(r, 0, 0, broken);
    PQclear(r);
    return RLK_DONE;
}

static const char *const schemes[] = {"postgresql", "postgres", NULL};

extern const struct rlk_backend rlk_backend_postgres;
const struct rlk_backend rlk_backend_postgres = {
    .name = "postgres",
    .schemes = schemes,
    .conn_size = sizeof(struct pg),
    .quote = '"',
    .probes_first = false,
    .open = pg_open,
    .adopt = pg_adopt,
    .close = pg_close,
    .install = pg_install,
    .meta = pg_meta,
    .facts = pg_facts,
    .acquire = pg_acquire,
    .probe = pg_probe,
    .renew = pg_renew,
    .release = pg_release,
    .verify = pg_verify,
    .list = pg_list,
    .last = pg_last,
    .sweep = pg_sweep,
    .fold = pg_fold,
    .break_grant = pg_break,
};
