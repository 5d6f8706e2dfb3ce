/* SPDX-License-Identifier: MIT
 * The PostgreSQL driver: every libpq call of the library. What the steps say is in sql/postgres/; what
 * their answers mean, and whether to try again, is core's business.
 *
 * A statement outside of a transaction is one by itself. On a connection straight to a server statements
 * are prepared on first use, in the same round trip (but for wide ones); behind a
 * transaction pooler, where a session is nobody's own, and on adopted connections they are sent whole
 * and leave nothing behind. On a connection straight to a server a BEGIN of ours waits for the first
 * statement, and goes with it.
 *
 * A bell is a NOTIFY on a channel that a waiter's own connection listens to, from rowlock_enqueue() on
 * until rowlock_leave(). libpq keeps what arrives between steps until it is asked for. */
#include <errno.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../backend.h"

enum {
    OLDEST_SERVER = 120000,
    INT_TEXT = 24,
    REAL_TEXT = 32,
    MOST_VALUES = 65535, /* of the protocol */
    MOST_COLUMNS = 1664, /* of the server */
    KEPT = 32
};

/* A statement of the caller's own tables that is prepared. */
struct kept {
    uint64_t id; /* 0: none that is of use */
    bool there; /* the server has one by the name of this place */
};

struct pg {
    PGconn *conn;
    const struct rlk_texts *texts;
    bool adopted;
    bool direct; /* no pooler in between: the session is ours alone */
    bool whole; /* statements are sent whole, not prepared */
    bool plans_once; /* the session does: see PLAN_ONCE */
    bool prepared[RLK_STEP_COUNT];
    struct kept kept[KEPT];
    unsigned next_kept; /* whose place is taken next when all are full */
    bool begin_waits; /* a transaction of ours begins with the next statement */
    int saved; /* savepoints of ours in the transaction */
    int succeeded; /* how many statements of the last packet did */
    rowlock_value *cells; /* of one row, however wide */
    char bell[32]; /* the channel that this connection listens to when it stands in line */
    bool listening; /* it does */
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
    {"42P07", RLK_CONTENTION}, /* the same table created */
    {"42710", RLK_CONTENTION}, /* and its type */
    {"55006", RLK_CONTENTION}, /* object in use */
    {"53300", RLK_UNSENT}, /* too many connections, at connect */
    {"57P03", RLK_UNSENT}, /* starting up or shutting down, at connect */
    {"57P", RLK_UNCERTAIN}, /* the server ends the session */
    {"25P03", RLK_UNCERTAIN}, /* it does, since the transaction was idle for too long */
    {"25P04", RLK_UNCERTAIN}, /* it does, since the transaction took too long */
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

/* A key and its values tell which row it was. Details of other violations tell the whole row, which is not for
 * a log. */
static bool names_key(const char *state)
{
    return strcmp(state, "23503") == 0 || strcmp(state, "23505") == 0 ||
           strcmp(state, "23P01") == 0;
}

static enum rlk_class fail_result(struct rlk_call *call, const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    char both[2 * sizeof call->text];
    if (text && detail && state && names_key(state)) {
        snprintf(both, sizeof both, "%s: %s", text, detail);
        text = both;
    }
    rlk_diag_set(call, 0, state, text ? text : PQresultErrorMessage(result));
    call->late = strcmp(call->sqlstate, "57014") == 0;
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

static bool take_rings(struct pg *p)
{
    bool any = false;
    for (PGnotify *ring; (ring = PQnotifies(p->conn)) != NULL; PQfreemem(ring))
        any = true;
    return any;
}

/* ---- what answers look like */

/* Digits, and nothing else that would be read as some number all the same. */
static bool read_int(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

/* In a locale of their own, since the program's may write 0,5. */
static locale_t enter_plain_locale(locale_t *plain)
{
    *plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return uselocale(*plain);
}

static void leave_plain_locale(locale_t plain, locale_t theirs)
{
    uselocale(theirs);
    if (plain)
        freelocale(plain);
}

static double read_real(const char *text)
{
    locale_t plain;
    locale_t theirs = enter_plain_locale(&plain);
    double real = strtod(text, NULL);
    leave_plain_locale(plain, theirs);
    return real;
}

/* The server's own types have the same numbers in every version. All other types are text. */
static const struct {
    Oid type;
    rowlock_kind kind;
} kinds[] = {
    {16, ROWLOCK_BOOL}, /* bool */
    {17, ROWLOCK_BYTES}, /* bytea */
    {20, ROWLOCK_INT}, /* int8 */
    {21, ROWLOCK_INT}, /* int2 */
    {23, ROWLOCK_INT}, /* int4 */
    {26, ROWLOCK_INT}, /* oid */
    {700, ROWLOCK_REAL}, /* float4 */
    {701, ROWLOCK_REAL}, /* float8 */
    {1082, ROWLOCK_TIME}, /* date */
    {1083, ROWLOCK_TIME}, /* time */
    {1114, ROWLOCK_TIME}, /* timestamp */
    {1184, ROWLOCK_TIME}, /* timestamptz */
    {1266, ROWLOCK_TIME}, /* timetz */
    {1700, ROWLOCK_DECIMAL}, /* numeric */
};

static rowlock_kind kind_of(Oid type)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].type == type)
            return kinds[i].kind;
    return ROWLOCK_TEXT;
}

/* False: no memory to decode bytes into. */
static bool get_cell(const PGresult *r, int row, int column, rowlock_value *out)
{
    *out = rowlock_null();
    if (PQgetisnull(r, row, column))
        return true;
    const char *text = PQgetvalue(r, row, column);
    rowlock_kind kind = kind_of(PQftype(r, column));
    int64_t number;
    *out = rowlock_textn(kind, text, (size_t)PQgetlength(r, row, column));
    if (kind == ROWLOCK_INT && read_int(text, &number))
        *out = rowlock_int(number);
    else if (kind == ROWLOCK_INT)
        out->kind = ROWLOCK_TEXT;
    if (kind == ROWLOCK_BOOL)
        *out = rowlock_bool(text[0] == 't');
    if (kind == ROWLOCK_REAL) {
        *out = rowlock_real(read_real(text));
        if (!isfinite(out->real))
            *out = rowlock_decimal(text);
    }
    if (kind == ROWLOCK_BYTES)
        out->text = (char *)PQunescapeBytea((const unsigned char *)text, &out->length);
    return out->text || kind != ROWLOCK_BYTES;
}

static void free_bytes(rowlock_value *cells, int count)
{
    for (int i = 0; i < count; i++)
        if (cells[i].kind == ROWLOCK_BYTES)
            PQfreemem((void *)cells[i].text);
}

/* No statement of ours changes more. */
static int64_t changed_by(PGresult *r)
{
    int64_t changed = strtoll(PQcmdTuples(r), NULL, 10);
    return changed < 0 ? 0 : changed > INT32_MAX ? INT32_MAX : changed;
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
        p->succeeded++;
        PQclear(kept);
        kept = result;
    }
    if (class == RLK_DONE && !kept) {
        rlk_diag_set(call, 0, NULL, "the server sent no result");
        class = RLK_UNCERTAIN;
    }
    if (class == RLK_DONE)
        *out = kept;
    else
        PQclear(kept);
    return class;
}

/* A wide step looks at many rows or at long arrays, of which the plan of a prepared statement knows nothing: what
 * suits ten leases is slow for ten thousand. */
/* All others find a row by its key, and so do the functions they call. Statistics taken while the tables
 * happened to be empty would have each planned anew at every use, for more than its execution costs, or read a
 * table from end to end, or make a bitmap of one row. A table of the caller's that has to be read from end to
 * end seems to cost very much then, and would be compiled for. */
static const char PLAN_ONCE[] =
    "/* rowlock:plan */ SELECT pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', "
    "false), pg_catalog.set_config('enable_seqscan', 'off', false), "
    "pg_catalog.set_config('enable_bitmapscan', 'off', false), "
    "pg_catalog.set_config('enable_hashjoin', 'off', false), "
    "pg_catalog.set_config('enable_mergejoin', 'off', false), "
    "pg_catalog.set_config('jit', 'off', false)";
static const char PLAN_ANEW[] =
    "/* rowlock:plan */ SELECT pg_catalog.set_config('plan_cache_mode', 'auto', false), "
    "pg_catalog.set_config('enable_seqscan', 'on', false), "
    "pg_catalog.set_config('enable_bitmapscan', 'on', false), "
    "pg_catalog.set_config('enable_hashjoin', 'on', false), "
    "pg_catalog.set_config('enable_mergejoin', 'on', false)";

/* Behind a pooler the session's own default is somebody else's. */
static const char BEGIN[] = "BEGIN ISOLATION LEVEL READ COMMITTED";

/* A statement, and what has to be done before it: all that goes in one packet, so that it costs no round
 * trip. */
struct packet {
    const char *text;
    const char *id; /* the name that it is prepared by; NULL: it is sent whole */
    const char *drop; /* a statement that makes the name free, if it has to be */
    bool prepared; /* it is; out: it is now */
    bool dropped; /* out: the name was made free */
    bool anew; /* it is planned for these values */
    int count;
    const char *const *values;
};

static int send_plain(struct pg *p, const char *text)
{
    return PQsendQueryParams(p->conn, text, 0, NULL, NULL, NULL, NULL, 0);
}

static int send_packet(struct pg *p, const struct packet *s, bool replan)
{
    bool first = s->id && !s->prepared;
    bool several = p->begin_waits || replan || first;
    return (!several || PQenterPipelineMode(p->conn)) &&
           (!p->begin_waits || send_plain(p, BEGIN)) &&
           (!replan || send_plain(p, s->anew ? PLAN_ANEW : PLAN_ONCE)) &&
           (!s->drop || send_plain(p, s->drop)) &&
           (!first || PQsendPrepare(p->conn, s->id, s->text, 0, NULL)) &&
           (s->id
                ? PQsendQueryPrepared(p->conn, s->id, s->count, s->values, NULL, NULL, 0)
                : PQsendQueryParams(p->conn, s->text, s->count, NULL, s->values, NULL, NULL, 0)) &&
           (!several || PQpipelineSync(p->conn));
}

/* What failed behind a savepoint of ours is undone without ending the transaction. */
static bool is_over(const struct pg *p)
{
    PGTransactionStatusType status = PQtransactionStatus(p->conn);
    return status != PQTRANS_INTRANS && !(status == PQTRANS_INERROR && p->saved > 0);
}

/* A transaction that has failed already is for whoever began it to roll back. */
static enum rlk_class check_place(struct pg *p, struct rlk_call *call)
{
    PGTransactionStatusType status = PQtransactionStatus(p->conn);
    if (status == PQTRANS_INERROR) {
        call->tx_over = is_over(p);
        rlk_diag_set(call, 0, "25P02", "the transaction has failed before; roll it back");
        return call->where == RLK_OUTSIDE ? RLK_IN_TX : RLK_REFUSED;
    }
    if (p->adopted && (status == PQTRANS_ACTIVE || PQpipelineStatus(p->conn) != PQ_PIPELINE_OFF)) {
        rlk_diag_set(call, 0, NULL,
                     "a statement of yours is under way on the connection, or it is in pipeline "
                     "mode; take the results first, and leave that mode");
        return RLK_INVALID;
    }
    if (call->inside ? call->where == RLK_OUTSIDE : p->adopted && status != PQTRANS_IDLE)
        return RLK_IN_TX;
    return call->where == RLK_INSIDE && !call->inside ? RLK_NO_TX : RLK_DONE;
}

/* Whether it was inside of a transaction is asked first: a connection that is gone does not say. */
static enum rlk_class check_alive(struct pg *p, struct rlk_call *call)
{
    PGTransactionStatusType status = PQtransactionStatus(p->conn);
    call->inside = p->begin_waits || status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
    if (!call->inside)
        p->saved = 0;
    if (!is_alive(p))
        return fail_connection(p, call, RLK_UNSENT);
    return check_place(p, call);
}

static enum rlk_class check_usable(struct pg *p, struct rlk_call *call)
{
    enum rlk_class class = check_alive(p, call);
    if (class != RLK_DONE)
        return class;
    if (p->adopted && strcmp(pg_encoding_to_char(PQclientEncoding(p->conn)), "UTF8") != 0) {
        rlk_diag_set(call, 0, NULL, "the adopted connection's client_encoding is no longer UTF8");
        return RLK_INVALID;
    }
    return RLK_DONE;
}

/* Nobody waits for these any more. On an adopted connection they are the caller's. */
static void forget_rings(struct pg *p)
{
    if (p->direct && !p->listening)
        take_rings(p);
}

/* Settings made inside of a transaction would go with it, so there they stay as they are: BEGIN has seen
 * to them. Of a packet that failed, what was prepared stays prepared, and settings do not stay. */
static enum rlk_class exchange(struct pg *p, struct rlk_call *call, struct packet *s,
                               PGresult **out)
{
    bool replan = p->direct && !call->inside && p->plans_once == s->anew;
    int before = (p->begin_waits ? 1 : 0) + (replan ? 1 : 0);
    forget_rings(p);
    p->succeeded = 0;
    if (!send_packet(p, s, replan))
        return fail_connection(p, call, RLK_UNCERTAIN);
    p->begin_waits = false;
    enum rlk_class class = collect(p, call, out);
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

/* ---- values */

struct number {
    char text[INT_TEXT];
};

/* Without snprintf(), since a keeper's beat writes tens of thousands. */
static const char *number(struct number *n, int64_t value)
{
    char *at = n->text + sizeof n->text - 1;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    *at = '\0';
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        *--at = '-';
    return at;
}

/* ---- connecting */

static void be_silent(void *context, const char *message)
{
    (void)context;
    (void)message;
}

/* One round trip: the server's version, whether the session is ours alone, and, if so, its name and settings. It
 * is where the process is the one that libpq believes to talk to: a pooler gives out a key of its own. Whether
 * that lends a session for a transaction or for as long as we stay cannot be seen from here, so the URL says it.
 * No operator here or in sql/ is left to search_path: what pg_catalog does not have for exactly these types,
 * somebody else's schema may. */
static const char HELLO[] =
    "/* rowlock:hello */ SELECT pg_catalog.current_setting('server_version_num'),"
    " h.ours, pg_catalog.current_setting('transaction_read_only')::boolean,"
    " (SELECT pid::text || ' ' || pg_catalog.date_part('epoch', backend_start)::text"
    " FROM pg_catalog.pg_stat_activity WHERE h.ours AND pid = pg_catalog.pg_backend_pid()),"
    " CASE WHEN h.ours THEN"
    " pg_catalog.set_config('default_transaction_isolation', 'read committed', false) ||"
    " pg_catalog.set_config('statement_timeout', $2::text, false) ||"
    " pg_catalog.set_config('lock_timeout', $3::text, false) END"
    " FROM (SELECT pg_catalog.pg_backend_pid() = $1::int OR $4::boolean AS ours OFFSET 0) h";

/* A pid alone may be another's by now. A pooler in session mode may have given the session back to us; then
 * its last statement is over. What waits for a standby is committed already, and would become visible
 * although no standby has it. */
static const char END_SESSION[] =
    "/* rowlock:hello */ SELECT pg_catalog.pg_terminate_backend(pid)"
    " FROM pg_catalog.pg_stat_activity"
    " WHERE usename = current_user AND wait_event IS DISTINCT FROM 'SyncRep'"
    " AND pid <> pg_catalog.pg_backend_pid() AND pid::text || ' ' || pg_catalog.date_part('epoch', "
    "backend_start)::text = $1::text";

static enum rlk_class end_session(struct pg *p, struct rlk_call *call, const char *session)
{
    PGresult *r = NULL;
    if (!session[0])
        return RLK_DONE;
    if (!PQsendQueryParams(p->conn, END_SESSION, 1, NULL, &session, NULL, NULL, 0))
        return fail_connection(p, call, RLK_UNSENT);
    enum rlk_class class = collect(p, call, &r);
    PQclear(r);
    return class == RLK_UNCERTAIN ? class : RLK_DONE; /* not to be allowed to is no obstacle */
}

/* The one row that is asked for. */
static bool read_hello(const PGresult *r, rowlock_value *told, int count)
{
    int read = 0;
    while (PQntuples(r) == 1 && PQnfields(r) == count && read < count &&
           get_cell(r, 0, read, &told[read]))
        read++;
    bool fits = read == count && rlk_cells_fit("tbbTT", told, (size_t)count);
    if (!fits)
        free_bytes(told, read);
    return fits;
}

static enum rlk_class greet(struct pg *p, struct rlk_call *call, const struct rlk_target *target,
                            bool to_write, struct rlk_hello *hello)
{
    int64_t timeout_ms = target ? target->timeout_ms : 0;
    struct number pid;
    struct number statement;
    struct number lock;
    const char *values[] = {number(&pid, p->adopted ? 0 : PQbackendPID(p->conn)),
                            number(&statement, timeout_ms), number(&lock, timeout_ms / 2 + 1),
                            target && target->session_is_ours ? "t" : "f"};
    if (!PQsendQueryParams(p->conn, HELLO, 4, NULL, values, NULL, NULL, 0))
        return fail_connection(p, call, RLK_UNSENT);
    PGresult *r = NULL;
    enum rlk_class class = collect(p, call, &r);
    if (class != RLK_DONE)
        return class;
    enum { VERSION, OURS, READ_ONLY, SESSION, SET, TOLD };
    rowlock_value told[TOLD];
    if (!read_hello(r, told, TOLD)) {
        PQclear(r);
        rlk_diag_set(call, 0, NULL, "the server did not say what it is; is this PostgreSQL?");
        return RLK_UNSUPPORTED;
    }
    if (strtoll(told[VERSION].text, NULL, 10) < OLDEST_SERVER) {
        rlk_diag_set(call, 0, NULL, "the server is older than PostgreSQL 12");
        class = RLK_UNSUPPORTED;
    } else if (to_write && told[READ_ONLY].number) {
        rlk_diag_set(call, 0, "25006", "the server is a standby, or set to be read-only");
        class = RLK_READONLY;
    }
    p->direct = !p->adopted && told[OURS].number;
    p->whole = !p->direct;
    if (told[SESSION].kind != ROWLOCK_NULL)
        rlk_copy_text(hello->session, sizeof hello->session, told[SESSION].text,
                      told[SESSION].length);
    free_bytes(told, TOLD);
    PQclear(r);
    return class;
}

/* libpq gives the SQLSTATE of a refused login in its verbose text only: "FATAL:  28P01: password …",
 * with the place in the server's source on the next line. */
static enum rlk_class fail_login(struct pg *p, struct rlk_call *call)
{
    enum rlk_class class = fail_connection(p, call, RLK_UNSENT);
    char state[6] = "";
    if (p->conn && PQconnectionNeedsPassword(p->conn))
        return RLK_DENIED; /* libpq has none to send, and says so without a SQLSTATE */
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

/* Is there an answer of the server, other than an error, and does the server listen on? libpq has one result
 * for a server that goes away and for an answer that it refuses: no TLS, a certificate, a way to log in. */
static bool has_answered(const struct pg *p)
{
    struct pollfd fd = {.fd = PQsocket(p->conn), .events = POLLRDHUP};
    char first = 'E';
    return recv(fd.fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && first != 'E' &&
           poll(&fd, 1, 0) == 0;
}

static enum rlk_class log_in(struct pg *p, struct rlk_call *call)
{
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    bool answered = false;
    while (PQstatus(p->conn) != CONNECTION_BAD && next != PGRES_POLLING_OK) {
        if (next == PGRES_POLLING_FAILED)
            break;
        if (!wait_socket(p, call, next == PGRES_POLLING_READING ? POLLIN : POLLOUT)) {
            rlk_diag_set(call, 0, NULL, "the server did not let us in before the connect timeout");
            return RLK_UNSENT;
        }
        answered = has_answered(p);
        next = PQconnectPoll(p->conn);
    }
    if (PQstatus(p->conn) == CONNECTION_OK)
        return RLK_DONE;
    enum rlk_class class = fail_login(p, call);
    /* What comes after the login is not about it: target_session_attrs. */
    bool refused = answered && !PQparameterStatus(p->conn, "server_version");
    return class == RLK_UNSENT && !call->sqlstate[0] && refused ? RLK_UNSUPPORTED : class;
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

static bool is_keyword(const PQconninfoOption *known, const char *name)
{
    bool found = strcmp(name, "ssl") == 0; /* an alias, for JDBC's sake */
    for (const PQconninfoOption *o = known; !found && o->keyword; o++)
        found = strcmp(o->keyword, name) == 0;
    return found;
}

/* The first parameter that libpq does not know. What could be a part of a password is not named: of one with a
 * question mark in it an @ follows. */
static bool find_unknown(const char *url, char name[40])
{
    const char *at = strchr(url, '?');
    PQconninfoOption *known = at && !strchr(at, '@') ? PQconndefaults() : NULL;
    bool found = false;
    while (known && at && *at && !found) {
        size_t length = strspn(++at, "abcdefghijklmnopqrstuvwxyz_");
        if (length == 0 || length >= 40 || at[length] != '=')
            break;
        snprintf(name, 40, "%.*s", (int)length, at);
        found = !is_keyword(known, name);
        at = strchr(at, '&');
    }
    PQconninfoFree(known);
    return found;
}

/* libpq's own words about a URL that it cannot read quote it, password and all. */
static enum rlk_class read_url(struct rlk_call *call, const char *url, PQconninfoOption **out)
{
    char *theirs = NULL;
    PQconninfoOption *options = PQconninfoParse(url, &theirs);
    bool no_memory = !options && (!theirs || strstr(theirs, "out of memory"));
    bool fine = options != NULL;
    for (PQconninfoOption *o = options; fine && o->keyword; o++)
        fine = !o->val || strcmp(o->keyword, "port") != 0 || is_port_list(o->val);
    PQfreemem(theirs);
    if (fine) {
        *out = options;
        return RLK_DONE;
    }
    PQconninfoFree(options);
    if (no_memory)
        return RLK_NOMEM;
    char name[40], text[100];
    if (find_unknown(url, name)) {
        snprintf(text, sizeof text, "the URL has a parameter that libpq does not know: %s", name);
        rlk_diag_set(call, 0, NULL, text);
        return RLK_INVALID;
    }
    rlk_diag_set(
        call, 0, NULL,
        "the URL cannot be read: look at its port, parameters and % escapes; within a name or "
        "a password write / as %2F, @ as %40, : as %3A, % as %25");
    return RLK_INVALID;
}

static char *value_of(const PQconninfoOption *options, const char *keyword)
{
    while (options->keyword && strcmp(options->keyword, keyword) != 0)
        options++;
    return options->val;
}

/* One of the servers that the URL names. Left to itself, libpq would give the first that hangs all the
 * time there is. What is NULL or empty has libpq's default. */
struct place {
    const char *host, *hostaddr, *port;
    bool to_write; /* one that takes no writes is the wrong one */
};

static bool is_of_place(const char *keyword, const struct place *place)
{
    return strcmp(keyword, "host") == 0 || strcmp(keyword, "hostaddr") == 0 ||
           strcmp(keyword, "port") == 0 ||
           (place->to_write && strcmp(keyword, "target_session_attrs") == 0);
}

static enum rlk_class start_login(struct pg *p, struct rlk_call *call,
                                  const PQconninfoOption *options, const struct place *place,
                                  const char *app_name)
{
    /* The URL may override what stands before its options, but not what stands behind them. */
    const char *const more[][2] = {{"host", place->host},
                                   {"hostaddr", place->hostaddr},
                                   {"port", place->port},
                                   {"client_encoding", "UTF8"}};
    enum { MORE = sizeof more / sizeof more[0] };
    size_t known = 0;
    while (options[known].keyword)
        known++;
    const char **keys = rlk_alloc(2 * (known + MORE + 3) * sizeof *keys);
    if (!keys)
        return RLK_NOMEM;
    const char **values = keys + known + MORE + 3;
    size_t count = 0;
    keys[count] = "fallback_application_name";
    values[count++] = app_name;
    for (const PQconninfoOption *o = options; o->keyword; o++) {
        if (is_of_place(o->keyword, place))
            continue;
        keys[count] = o->keyword;
        values[count++] = o->val;
    }
    for (size_t i = 0; i < MORE; i++) {
        keys[count] = more[i][0];
        values[count++] = more[i][1];
    }
    p->conn = PQconnectStartParams(keys, values, 0);
    keys[count] = "connect_timeout";
    values[count] = "2";
    /* Is it a setting that libpq refuses, or a server that it cannot reach? */
    bool refused = p->conn && PQstatus(p->conn) == CONNECTION_BAD &&
                   PQpingParams(keys, values, 0) == PQPING_NO_ATTEMPT;
    rlk_free(keys);
    if (refused)
        return fail_connection(p, call, RLK_INVALID);
    return p->conn ? RLK_DONE : RLK_NOMEM;
}

static enum rlk_class open_place(struct pg *p, struct rlk_call *call,
                                 const PQconninfoOption *options, const struct place *place,
                                 const struct rlk_target *target, struct rlk_hello *hello)
{
    enum rlk_class class = start_login(p, call, options, place, target->app_name);
    if (class != RLK_DONE)
        return class;
    PQsetNoticeProcessor(p->conn, be_silent, NULL);
    PQsetErrorVerbosity(p->conn, PQERRORS_VERBOSE);
    if (PQstatus(p->conn) == CONNECTION_BAD && PQsocket(p->conn) < 0)
        return fail_connection(p, call, RLK_UNSENT);
    class = log_in(p, call);
    if (class != RLK_DONE)
        return class;
    PQsetErrorVerbosity(p->conn, PQERRORS_DEFAULT);
    PQsetnonblocking(p->conn, 1);
    class = greet(p, call, target, place->to_write, hello);
    return class == RLK_DONE ? end_session(p, call, target->lingering) : class;
}

static size_t items_of(const char *list)
{
    size_t count = list ? 1 : 0;
    for (; list && *list; list++)
        count += *list == ',';
    return count;
}

/* Lists that do not fit each other are left to libpq, which says so. */
static size_t count_places(const char *hosts, const char *addresses, const char *ports)
{
    size_t count = items_of(hosts ? hosts : addresses);
    bool fits = !hosts || !addresses || items_of(addresses) == count;
    return count > 1 && fits && (items_of(ports) < 2 || items_of(ports) == count) ? count : 1;
}

static enum rlk_class none_will_do(struct rlk_call *call, size_t count, bool read_only)
{
    char text[sizeof call->text + 80];
    char state[sizeof call->sqlstate];
    memcpy(state, call->sqlstate, sizeof state);
    snprintf(text, sizeof text, "none of the URL's %zu servers %s; the last one: %s", count,
             read_only ? "takes writes" : "can be reached", call->text);
    rlk_diag_set(call, 0, state, text);
    return read_only ? RLK_READONLY : RLK_UNSENT;
}

static void pg_close(void *conn, bool in_child);

/* A server that cannot be reached or takes no writes is the wrong one of several; one that refuses us
 * for another reason is not passed over, so that the reason is seen. */
static enum rlk_class open_any(struct pg *p, struct rlk_call *call, PQconninfoOption *options,
                               const struct rlk_target *target, struct rlk_hello *hello)
{
    char *hosts = value_of(options, "host");
    char *addresses = value_of(options, "hostaddr");
    char *ports = value_of(options, "port");
    const char *attrs = value_of(options, "target_session_attrs");
    struct place place = {hosts, addresses, ports, false};
    size_t count = count_places(hosts, addresses, ports);
    bool many_ports = items_of(ports) > 1;
    hello->several = count > 1;
    if (!hello->several)
        return open_place(p, call, options, &place, target, hello);
    place.to_write = !attrs || strcmp(attrs, "read-write") == 0;
    int64_t deadline_us = call->deadline_us;
    bool read_only = false;
    for (size_t left = count; left > 0; left--) {
        pg_close(p, false);
        place.host = strsep(&hosts, ",");
        place.hostaddr = strsep(&addresses, ",");
        if (many_ports)
            place.port = strsep(&ports, ",");
        int64_t now_us = rlk_now_us();
        call->deadline_us = now_us + (deadline_us - now_us) / (int64_t)left;
        enum rlk_class class = open_place(p, call, options, &place, target, hello);
        if (class != RLK_UNSENT && class != RLK_UNCERTAIN && class != RLK_READONLY)
            return class;
        read_only = read_only || class == RLK_READONLY;
    }
    return none_will_do(call, count, read_only);
}

static enum rlk_class pg_open(void *conn, struct rlk_call *call, const struct rlk_target *target,
                              const struct rlk_texts *texts, struct rlk_hello *hello)
{
    struct pg *p = conn;
    p->texts = texts;
    PQconninfoOption *options = NULL;
    enum rlk_class class = read_url(call, target->url, &options);
    if (class != RLK_DONE)
        return class;
    class = open_any(p, call, options, target, hello);
    PQconninfoFree(options);
    snprintf(hello->schema, sizeof hello->schema, "public");
    return class;
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
    return greet(p, call, NULL, false, hello);
}

static void pg_close(void *conn, bool in_child)
{
    struct pg *p = conn;
    rlk_free(p->cells);
    p->cells = NULL;
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

static bool is_one_of(const char *text, const char *one, const char *other)
{
    return strcmp(text, one) == 0 || strcmp(text, other) == 0;
}

/* Standbys are counted where this server sends to; a standby does not know who else there is. */
static void describe_standbys(const char *standbys, const char *sync_names, const char *commit,
                              bool one_is_waited_for, struct rlk_facts *out)
{
    bool some = strcmp(standbys, "0") != 0;
    bool waits = sync_names[0] && !is_one_of(commit, "off", "local");
    out->replication_known = standbys[0] != '\0';
    out->replicates_late = some && !waits;
    out->cut_off = out->replication_known && waits && (!some || !one_is_waited_for);
    if (!out->replication_known)
        snprintf(out->replication, sizeof out->replication, "unknown: this server is a standby");
    else if (!some)
        snprintf(out->replication, sizeof out->replication, "no standby is connected%s",
                 waits ? ", and commits wait for one" : "");
    else if (waits)
        snprintf(out->replication, sizeof out->replication, "synchronous, standbys: %.10s%s",
                 standbys, out->cut_off ? ", and commits wait for another" : "");
    else
        snprintf(out->replication, sizeof out->replication,
                 "asynchronous, standbys: %.10s (%s%.20s)", standbys,
                 sync_names[0] ? "synchronous_commit " : "no synchronous_standby_names",
                 sync_names[0] ? commit : "");
}

static const char *text_of(const rowlock_value *cell)
{
    return cell->kind == ROWLOCK_NULL ? "" : cell->text;
}

static int read_facts(void *context, const rowlock_value *cells, size_t count)
{
    enum { SERVER, ISOLATION, READ_ONLY, NOW, COMMIT, FSYNC, LOGGED, COLLATION, BYTEWISE };
    enum { MAY_LOCK = BYTEWISE + 1, STANDBYS, SYNC_NAMES, WAITED_FOR, READS_ONLY };
    struct rlk_facts *out = context;
    char standbys[24] = "";
    if (!rlk_cells_fit("ttbmttBTBbItBb", cells, count))
        return 1;
    const char *commit = cells[COMMIT].text;
    const char *fsync = cells[FSYNC].text;
    snprintf(out->server, sizeof out->server, "%s", cells[SERVER].text);
    snprintf(out->isolation, sizeof out->isolation, "%s", cells[ISOLATION].text);
    out->read_only = cells[READ_ONLY].number != 0;
    out->now_us = cells[NOW].number;
    snprintf(out->durability, sizeof out->durability, "synchronous_commit %.20s, fsync %.10s",
             commit, fsync);
    out->durable = strcmp(commit, "off") != 0 && strcmp(fsync, "on") == 0;
    out->crash_safe = cells[LOGGED].number != 0;
    snprintf(out->engine, sizeof out->engine, "%s tables", out->crash_safe ? "logged" : "unlogged");
    snprintf(out->collation, sizeof out->collation, "%s", text_of(&cells[COLLATION]));
    out->bytewise = cells[BYTEWISE].number != 0;
    out->may_lock = cells[MAY_LOCK].number != 0;
    out->reads_only = cells[READS_ONLY].number != 0;
    if (cells[STANDBYS].kind != ROWLOCK_NULL)
        snprintf(standbys, sizeof standbys, "%" PRId64, cells[STANDBYS].number);
    bool one_is_waited_for = cells[WAITED_FOR].kind == ROWLOCK_NULL || cells[WAITED_FOR].number;
    describe_standbys(standbys, cells[SYNC_NAMES].text, commit, one_is_waited_for, out);
    return 0;
}

static enum rlk_class pg_query(void *conn, struct rlk_call *call, struct rlk_query *query);

static enum rlk_class pg_facts(void *conn, struct rlk_call *call, struct rlk_facts *out)
{
    struct pg *p = conn;
    struct rlk_query query = {.step = RLK_STEP_FACTS,
                              .sql = p->texts->sql[RLK_STEP_FACTS],
                              .each = read_facts,
                              .context = out};
    enum rlk_class class = pg_query(p, call, &query);
    if (class == RLK_DONE && !out->server[0])
        return rlk_diag_misfit(call, RLK_STEP_FACTS);
    out->pooled = !p->adopted && !p->direct;
    return class;
}

/* ---- the line */

/* The name is this connection's own: no two that are open have the same process at the server. */
static const char *name_bell(struct pg *p)
{
    uint64_t name = (uint64_t)PQbackendPID(p->conn) << 40 ^ (uint64_t)rlk_now_us();
    if (!p->direct)
        return "";
    if (!p->bell[0])
        snprintf(p->bell, sizeof p->bell, "rowlock_%016" PRIx64, name);
    return p->bell;
}

static bool pg_note(void *conn, struct rlk_call *call, enum rlk_news news,
                    const struct rlk_claim *claim, int64_t number)
{
    struct pg *p = conn;
    (void)call;
    if (news == RLK_ENQUEUED)
        p->listening = number != 0;
    else if (news == RLK_LEFT || (news == RLK_TAKEN && claim->ticket))
        p->listening = false;
    return p->listening;
}

/* Bells come by themselves, so nothing is sent. One that has come already, with the answer to an earlier
 * step, counts; one that rang before the last look costs a look. */
static enum rlk_class pg_await(void *conn, struct rlk_call *call, const struct rlk_claim *claim,
                               int wake, enum rlk_bell *out)
{
    struct pg *p = conn;
    (void)claim;
    *out = RLK_DEAF;
    if (!p->listening)
        return RLK_DONE;
    for (;;) {
        struct pollfd fds[] = {{.fd = PQsocket(p->conn), .events = POLLIN},
                               {.fd = wake, .events = POLLIN}};
        int left = ms_left(call);
        *out = take_rings(p) ? RLK_RUNG : RLK_SILENT;
        if (*out == RLK_RUNG || left == 0)
            return RLK_DONE;
        if (poll(fds, 2, left) <= 0)
            continue;
        if (fds[1].revents) {
            *out = RLK_INTERRUPTED;
            return RLK_DONE;
        }
        if (!PQconsumeInput(p->conn))
            return fail_connection(p, call, RLK_UNSENT);
    }
}

/* ---- the caller's own tables: values */

/* With no more digits than it takes to be the same number again: 0.1 is 0.1 for a column of decimals too. */
static void write_real(double real, char *out)
{
    locale_t plain;
    locale_t theirs = enter_plain_locale(&plain);
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, REAL_TEXT, "%.*g", digits, real);
        if (strtod(out, NULL) == real)
            break;
    }
    leave_plain_locale(plain, theirs);
}

static void write_bytes(const char *bytes, size_t length, char *out)
{
    static const char digits[] = "0123456789abcdef";
    *out++ = '\\';
    *out++ = 'x';
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        *out++ = digits[byte >> 4];
        *out++ = digits[byte & 15];
    }
    *out = '\0';
}

/* A message to the server can be no larger, and one value no longer. */
static const size_t LARGEST = 0x3fffffff;

/* Of its text, with the zero byte at its end. */
static size_t size_of(const rowlock_value *value)
{
    size_t length = value->length < LARGEST ? value->length : LARGEST;
    switch (value->kind) {
    case ROWLOCK_INT:
        return INT_TEXT;
    case ROWLOCK_REAL:
        return REAL_TEXT;
    case ROWLOCK_DECIMAL:
    case ROWLOCK_TEXT:
    case ROWLOCK_TIME:
        return length + 1;
    case ROWLOCK_BYTES:
        return 2 * length + sizeof "\\x";
    default:
        return 0;
    }
}

static const char *write_value(const rowlock_value *value, char *out)
{
    struct number n;
    switch (value->kind) {
    case ROWLOCK_NULL:
        return NULL;
    case ROWLOCK_BOOL:
        return value->number ? "t" : "f";
    case ROWLOCK_INT:
        return strcpy(out, number(&n, value->number));
    case ROWLOCK_REAL:
        write_real(value->real, out);
        return out;
    case ROWLOCK_BYTES:
        write_bytes(value->text, value->length, out);
        return out;
    default:
        if (value->length > 0)
            memcpy(out, value->text, value->length);
        out[value->length] = '\0';
        return out;
    }
}

/* Of a value that cannot be sent, why. */
static const char *fault_of(const rowlock_value *value)
{
    bool has_text = value->kind == ROWLOCK_DECIMAL || value->kind == ROWLOCK_TEXT ||
                    value->kind == ROWLOCK_TIME;
    if (has_text && value->length > 0 && memchr(value->text, '\0', value->length))
        return "has a zero byte, which a text in PostgreSQL cannot have";
    if (value->kind == ROWLOCK_REAL && !isfinite(value->real))
        return "is not a finite number";
    return NULL;
}

static enum rlk_class check_values(struct rlk_call *call, const struct rlk_query *query,
                                   size_t *size)
{
    char text[sizeof call->text];
    *size = 0;
    for (size_t i = 0; i < query->count; i++) {
        const char *fault = fault_of(&query->values[i]);
        *size += size_of(&query->values[i]);
        if (!fault && *size > LARGEST)
            fault = "makes the statement larger than 1 GB, which is all that PostgreSQL takes";
        if (!fault && i >= MOST_VALUES)
            fault = "is one more than PostgreSQL takes in a statement";
        if (!fault)
            continue;
        snprintf(text, sizeof text, "value %zu %s", i + 1, fault);
        rlk_diag_set(call, 0, NULL, text);
        return RLK_INVALID;
    }
    return RLK_DONE;
}

/* In one piece: where each text is, and behind that the texts. */
static enum rlk_class write_values(struct rlk_call *call, const struct rlk_query *query,
                                   const char ***out)
{
    size_t size;
    enum rlk_class class = check_values(call, query, &size);
    if (class != RLK_DONE)
        return class;
    const char **values = rlk_alloc(query->count * sizeof *values + size);
    if (!values)
        return RLK_NOMEM;
    char *at = (char *)(values + query->count);
    for (size_t i = 0; i < query->count; i++) {
        values[i] = write_value(&query->values[i], at);
        at += size_of(&query->values[i]);
    }
    *out = values;
    return RLK_DONE;
}

/* ---- the caller's own tables: cells */

/* What has been done and cannot be told is as good as an answer that was lost. */
static enum rlk_class give_cells(struct pg *p, struct rlk_call *call, const PGresult *r,
                                 const struct rlk_query *query)
{
    int columns = PQnfields(r);
    bool more = true;
    if (columns > MOST_COLUMNS) {
        rlk_diag_set(call, 0, NULL, "the server answered with more columns than it can have");
        return RLK_MISFIT;
    }
    for (int row = 0; more && row < PQntuples(r); row++) {
        int read = 0;
        while (read < columns && get_cell(r, row, read, &p->cells[read]))
            read++;
        bool whole = read == columns;
        if (whole)
            more = query->each(query->context, p->cells, (size_t)columns) == 0;
        free_bytes(p->cells, read);
        if (!whole) {
            rlk_diag_set(call, 0, NULL, "out of memory");
            return RLK_UNCERTAIN;
        }
    }
    return RLK_DONE;
}

/* ---- the caller's own tables: statements */

/* Where a statement is kept, or will be. */
static struct kept *find_place(struct pg *p, uint64_t id)
{
    struct kept *empty = NULL;
    for (int i = 0; i < KEPT; i++) {
        if (p->kept[i].id == id)
            return &p->kept[i];
        if (!p->kept[i].id && !empty)
            empty = &p->kept[i];
    }
    return empty ? empty : &p->kept[p->next_kept++ % KEPT];
}

/* By SQLSTATE, or by its first two characters; the first that fits counts. */
static const struct {
    const char *state;
    enum rowlock_constraint constraint;
} violations[] = {
    {"23502", ROWLOCK_CONSTRAINT_NOT_NULL},    {"23503", ROWLOCK_CONSTRAINT_FOREIGN_KEY},
    {"23001", ROWLOCK_CONSTRAINT_FOREIGN_KEY}, /* ON DELETE RESTRICT */
    {"23505", ROWLOCK_CONSTRAINT_UNIQUE},      {"23P01", ROWLOCK_CONSTRAINT_UNIQUE}, /* EXCLUDE */
    {"23514", ROWLOCK_CONSTRAINT_CHECK}, /* also a row without a partition */
    {"44000", ROWLOCK_CONSTRAINT_CHECK}, /* of a view */
    {"23", ROWLOCK_CONSTRAINT_NONE},           {"22", ROWLOCK_CONSTRAINT_VALUE},
};

static bool is_violation(struct rlk_call *call)
{
    for (size_t i = 0; i < sizeof violations / sizeof violations[0]; i++)
        if (strncmp(call->sqlstate, violations[i].state, strlen(violations[i].state)) == 0) {
            call->constraint = violations[i].constraint;
            return true;
        }
    return false;
}

/* What the server says about tables that are not ours means something else in part. */
static enum rlk_class class_of_theirs(struct rlk_call *call, enum rlk_class class)
{
    const char *state = call->sqlstate;
    if (class == RLK_DONE || !state[0])
        return class;
    if (is_violation(call))
        return RLK_VIOLATION;
    if (strcmp(state, "08P01") == 0 && strncmp(call->text, "bind message", 12) == 0)
        return RLK_INVALID; /* another number of values than it has parameters; poolers say 08P01 too */
    if (strcmp(state, "42501") != 0 &&
        (strncmp(state, "42", 2) == 0 || strcmp(state, "3F000") == 0))
        return RLK_INVALID;
    return class;
}

/* A statement that was prepared before somebody altered its table may be wrong by now: its result has
 * another shape, or a value would fit today. Prepared anew it says the truth. What is known to be that is a
 * conflict even inside of a transaction, which goes well the next time. */
static enum rlk_class doubt_kept(struct kept *kept, const struct rlk_call *call,
                                 enum rlk_class class)
{
    bool unfit = class == RLK_VIOLATION && call->constraint == ROWLOCK_CONSTRAINT_VALUE;
    if (class != RLK_INVALID && class != RLK_UNSUPPORTED && !unfit)
        return class;
    kept->id = 0;
    return !call->inside || class == RLK_UNSUPPORTED ? RLK_CONTENTION : class;
}

static enum rlk_class run_kept(struct pg *p, struct rlk_call *call, const struct rlk_query *query,
                               const char *const *values, PGresult **out)
{
    struct kept *kept = find_place(p, query->id);
    char name[32];
    char drop[64];
    snprintf(name, sizeof name, "rowlock_query_%d", (int)(kept - p->kept));
    snprintf(drop, sizeof drop, "DEALLOCATE %s", name);
    bool before = kept->id == query->id;
    struct packet s = {.text = query->sql,
                       .id = name,
                       .drop = kept->there && !before ? drop : NULL,
                       .prepared = before,
                       .count = (int)query->count,
                       .values = values};
    enum rlk_class class = class_of_theirs(call, exchange(p, call, &s, out));
    if (before)
        return doubt_kept(kept, call, class);
    if (s.prepared)
        *kept = (struct kept){query->id, true};
    else if (s.dropped)
        *kept = (struct kept){0, false};
    return class;
}

/* A server that takes no statement by this name takes none. One that it takes when the tables are there, or when
 * nobody cancels it, is prepared by the next use. */
static enum rlk_class run_step(struct pg *p, struct rlk_call *call, const struct rlk_query *query,
                               const char *const *values, PGresult **out)
{
    char name[40];
    bool *prepared = &p->prepared[query->step];
    bool wide = rlk_steps[query->step].is & RLK_WIDE;
    snprintf(name, sizeof name, "rowlock_%s", rlk_steps[query->step].name);
    struct packet s = {.text = query->sql,
                       .id = p->whole || wide ? NULL : name,
                       .prepared = *prepared,
                       .anew = wide,
                       .count = (int)query->count,
                       .values = values};
    enum rlk_class class = exchange(p, call, &s, out);
    *prepared = s.prepared;
    if (s.id && !s.prepared && class == RLK_REFUSED)
        p->whole = true;
    return class;
}

static enum rlk_class run_query(struct pg *p, struct rlk_call *call, const struct rlk_query *query,
                                const char *const *values, PGresult **out)
{
    if (query->step != RLK_STEP_NONE)
        return run_step(p, call, query, values, out);
    if (p->direct && query->id)
        return run_kept(p, call, query, values, out);
    struct packet s = {.text = query->sql, .count = (int)query->count, .values = values};
    return class_of_theirs(call, exchange(p, call, &s, out));
}

/* Memory is asked for before anything is sent. */
static enum rlk_class pg_query(void *conn, struct rlk_call *call, struct rlk_query *query)
{
    struct pg *p = conn;
    PGresult *r = NULL;
    const char **values = NULL;
    query->changed = 0;
    enum rlk_class class = check_usable(p, call);
    if (class == RLK_DONE && query->each && !p->cells)
        p->cells = rlk_alloc(MOST_COLUMNS * sizeof *p->cells);
    if (class == RLK_DONE && query->each && !p->cells)
        class = RLK_NOMEM;
    if (query->own)
        *query->own = rowlock_text(name_bell(p));
    if (class == RLK_DONE)
        class = write_values(call, query, &values);
    if (class == RLK_DONE)
        class = run_query(p, call, query, values, &r);
    rlk_free(values);
    if (class == RLK_DONE) {
        query->changed = changed_by(r);
        query->counted = PQnfields(r) == 0;
    }
    if (class == RLK_DONE && query->each)
        class = give_cells(p, call, r, query);
    PQclear(r);
    return class;
}

/* ---- transactions of ours, and savepoints */

static enum rlk_class say(struct pg *p, struct rlk_call *call, const char *text, PGresult **out)
{
    if (!PQsendQuery(p->conn, text))
        return fail_connection(p, call, RLK_UNCERTAIN);
    return class_of_theirs(call, collect(p, call, out));
}

/* A transaction that has failed is what these three are for. */
static enum rlk_class check_frame(struct pg *p, struct rlk_call *call, enum rlk_frame what)
{
    bool mends = what == RLK_COMMIT || what == RLK_ROLLBACK || what == RLK_UNDO;
    call->where = what == RLK_BEGIN ? RLK_OUTSIDE : what == RLK_LOOK ? RLK_EITHER : RLK_INSIDE;
    enum rlk_class class = check_alive(p, call);
    return class == RLK_REFUSED && mends ? RLK_DONE : class;
}

/* What was not begun was not changed, whatever became of the connection. */
static enum rlk_class begin(struct pg *p, struct rlk_call *call)
{
    PGresult *r = NULL;
    enum rlk_class class = RLK_DONE;
    if (!p->direct)
        class = say(p, call, p->adopted ? "BEGIN" : BEGIN, &r);
    else if (!p->plans_once)
        class = say(p, call, PLAN_ONCE, &r);
    PQclear(r);
    if (class != RLK_DONE)
        return class == RLK_UNCERTAIN ? RLK_UNSENT : class;
    p->plans_once = p->begin_waits = p->direct;
    return RLK_DONE;
}

/* A COMMIT whose answer was lost is not inside any more: whether the transaction is over nobody knows. */
static enum rlk_class end(struct pg *p, struct rlk_call *call, enum rlk_frame what)
{
    PGresult *r = NULL;
    bool empty = p->begin_waits;
    p->begin_waits = false;
    if (empty)
        return RLK_DONE;
    enum rlk_class class = say(p, call, what == RLK_COMMIT ? "COMMIT" : "ROLLBACK", &r);
    if (class == RLK_DONE && what == RLK_COMMIT && strcmp(PQcmdStatus(r), "ROLLBACK") == 0) {
        rlk_diag_set(call, 0, "40000", "the transaction had failed before, and was rolled back");
        class = RLK_CONTENTION;
    }
    PQclear(r);
    if (class == RLK_UNCERTAIN && what == RLK_COMMIT)
        call->inside = false;
    return class;
}

static enum rlk_class mark(struct pg *p, struct rlk_call *call, enum rlk_frame what)
{
    PGresult *r = NULL;
    struct packet s = {.text =
                           what == RLK_SAVE ? "SAVEPOINT rowlock" : "RELEASE SAVEPOINT rowlock"};
    enum rlk_class class =
        what == RLK_UNDO
            ? say(p, call, "ROLLBACK TO SAVEPOINT rowlock; RELEASE SAVEPOINT rowlock", &r)
            : exchange(p, call, &s, &r);
    PQclear(r);
    if (what == RLK_SAVE)
        p->saved += class == RLK_DONE;
    else if (p->saved > 0)
        p->saved--;
    return class;
}

static enum rlk_class pg_frame(void *conn, struct rlk_call *call, enum rlk_frame what)
{
    struct pg *p = conn;
    enum rlk_class class = check_frame(p, call, what);
    if (class != RLK_DONE || what == RLK_LOOK)
        return class;
    if (what == RLK_BEGIN)
        return begin(p, call);
    bool ends = what == RLK_COMMIT || what == RLK_ROLLBACK;
    class = ends ? end(p, call, what) : mark(p, call, what);
    call->tx_over = class != RLK_DONE && call->inside && is_over(p);
    return class;
}

static const char *const schemes[] = {"postgresql", "postgres", NULL};

extern const struct rlk_backend rlk_backend_postgres;
const struct rlk_backend rlk_backend_postgres = {
    .name = "postgres",
    .schemes = schemes,
    .conn_size = sizeof(struct pg),
    .quote = '"',
    .marker = '$',
    .numbered = true,
    .packing = RLK_ARRAYS,
    .has_policies = true,
    .locks_rows_first = true,
    .open = pg_open,
    .adopt = pg_adopt,
    .close = pg_close,
    .install = pg_install,
    .facts = pg_facts,
    .note = pg_note,
    .await = pg_await,
    .query = pg_query,
    .frame = pg_frame,
};
