/* SPDX-License-Identifier: MIT
 *
 * Opens a session from a URL, or adopts the caller's connection. */
#include "driver.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OLDEST_SERVER = 120000 };

/* ---- the first statement */

/* Asks for the server's version and whether the session is ours alone. If it is, also for its name.
 * A session is ours if its process is the one that libpq knows: a pooler gives out a key of its
 * own. A pooler may also lend us a session for as long as we stay. We cannot see that, so the URL
 * says it. No operator here or in sql/ depends on search_path. If pg_catalog has no operator for
 * exactly these types, the server may use one of another user's schema. */
static const char HELLO[] =
    "/* rowlock:hello */ SELECT pg_catalog.current_setting('server_version_num'),"
    " h.ours, pg_catalog.current_setting('transaction_read_only')::boolean,"
    " CASE WHEN pg_catalog.current_setting('transaction_read_only')::boolean"
    " AND NOT pg_catalog.pg_is_in_recovery() THEN (SELECT source IN ('global', 'database', 'user',"
    " 'database user', 'client', 'session') FROM pg_catalog.pg_settings"
    " WHERE name = 'default_transaction_read_only') END,"
    " (SELECT pid::text || ' ' || pg_catalog.date_part('epoch', backend_start)::text"
    " FROM pg_catalog.pg_stat_activity WHERE h.ours AND pid = pg_catalog.pg_backend_pid())"
    " FROM (SELECT pg_catalog.pg_backend_pid() = $1::int OR $2::boolean AS ours OFFSET 0) h";

/* Another session may have the same pid by now, so the start time is compared too. A pooler in
 * session mode may have given the same session back to us. Then its last statement is over. A
 * session that waits for a standby has committed already. Ending it would show the commit to others
 * before a standby has it. */
static const char END_SESSION[] =
    "/* rowlock:hello */ SELECT pg_catalog.pg_terminate_backend(pid)"
    " FROM pg_catalog.pg_stat_activity"
    " WHERE usename = current_user AND wait_event IS DISTINCT FROM 'SyncRep'"
    " AND pid <> pg_catalog.pg_backend_pid() AND pid::text || ' ' || pg_catalog.date_part('epoch', "
    "backend_start)::text = $1::text";

/* What read_hello() reads from the answer. */
struct greeting {
    /* 0: the answer was not understood */
    int version;
    bool ours, read_only, set_read_only;
    struct rlk_hello *hello;
};

static int read_hello(void *context, const rowlock_value *cells, size_t count)
{
    enum { VERSION, OURS, READ_ONLY, SET_READ_ONLY, SESSION };
    struct greeting *g = context;
    if (!rlk_cells_fit("tbbBT", cells, count))
        return 1;
    g->version = (int)strtol(cells[VERSION].text, NULL, 10);
    g->ours = cells[OURS].number != 0;
    g->read_only = cells[READ_ONLY].number != 0;
    g->set_read_only =
        cells[SET_READ_ONLY].kind != ROWLOCK_NULL && cells[SET_READ_ONLY].number != 0;
    if (cells[SESSION].kind != ROWLOCK_NULL)
        rlk_copy_text(g->hello->session, sizeof g->hello->session, cells[SESSION].text,
                      cells[SESSION].length);
    return 1;
}

static enum rlk_class greet(struct conn *p, struct rlk_call *call, const struct rlk_target *target,
                            bool to_write, struct rlk_hello *hello)
{
    const rowlock_value values[] = {rowlock_int(p->adopted ? 0 : PQbackendPID(p->conn)),
                                    rowlock_bool(target && target->session_is_ours)};
    struct greeting greeting = {.hello = hello};
    snprintf(hello->schema, sizeof hello->schema, "public");
    p->direct = p->standby = p->is_set = p->plans_once = false;
    p->timeout_ms = target ? target->timeout_ms : 0;
    struct rlk_query query = {
        .sql = HELLO, .values = values, .count = 2, .each = read_hello, .context = &greeting};
    enum rlk_class class = pg_refuse_others(p->conn, call);
    if (class == RLK_DONE)
        class = pg_run(p, call, &query);
    if (class != RLK_DONE)
        return class;
    p->direct = !p->adopted && greeting.ours;
    p->whole = !p->direct;
    p->set_read_only = greeting.set_read_only;
    hello->takes_writes = !greeting.read_only;
    if (greeting.version <= 0)
        return rlk_refuse(call, RLK_UNSUPPORTED,
                          "the server did not report its version; is this PostgreSQL?");
    if (greeting.version < OLDEST_SERVER)
        return rlk_refuse(call, RLK_UNSUPPORTED, "the server is older than PostgreSQL 12");
    if (to_write && greeting.read_only)
        return pg_fail_read_only(p, call, "the server is a standby, or set to be read-only");
    return RLK_DONE;
}

/* A missing privilege to end the session is no failure. */
static enum rlk_class end_session(struct conn *p, struct rlk_call *call, const char *session)
{
    const rowlock_value name = rowlock_text(session);
    struct rlk_query query = {.sql = END_SESSION, .values = &name, .count = 1};
    enum rlk_class class = session[0] ? pg_run(p, call, &query) : RLK_DONE;
    return class == RLK_UNCERTAIN ? class : RLK_DONE;
}

/* ---- logging in */

/* If a commit that waits for a synchronous standby is cancelled, the server warns and answers
 * success. The text of the warning may be translated, so we know it by its place in the source. */
static void take_notice(void *context, const PGresult *notice)
{
    struct conn *p = context;
    const char *function = PQresultErrorField(notice, PG_DIAG_SOURCE_FUNCTION);
    if (function && strcmp(function, "SyncRepWaitForLSN") == 0)
        p->unreplicated = true;
}

/* libpq has the SQLSTATE of a refused login only in its verbose text: "FATAL:  28P01: no such
 * role". The next line says where in the server's source. A missing password has no SQLSTATE. */
static enum rlk_class fail_login(struct conn *p, struct rlk_call *call)
{
    enum rlk_class class = pg_fail_connection(p, call, RLK_UNSENT);
    char state[6] = "", text[sizeof call->text];
    if (PQconnectionNeedsPassword(p->conn))
        return RLK_DENIED;
    const char *message = PQerrorMessage(p->conn);
    const char *at = strstr(message, ":  ");
    if (!at || sscanf(at, ":  %5[0-9A-Z]:", state) != 1 || strlen(state) != 5)
        return class;
    snprintf(text, sizeof text, "%.*s%s", (int)(at + 3 - message), message, at + 3 + 7);
    text[strcspn(text, "\n")] = '\0';
    rlk_diag_set(call, 0, state, text);
    class = pg_class_of(state);
    /* XX000 is what pgpool-II says while it has not noticed that a server is gone. */
    if (strcmp(state, "XX000") == 0)
        return strstr(text, "authenticat") || strstr(text, "password") ? RLK_DENIED : RLK_UNSENT;
    return class == RLK_UNCERTAIN ? RLK_UNSENT : class;
}

/* Has the server sent an answer other than an error, and is it still listening? libpq reports a
 * server that goes away and an answer that libpq refuses (no TLS, a certificate) in the same
 * way. A socket with an error is left alone: recv() would take the reason away from libpq. */
static bool has_answered(const struct conn *p)
{
    struct pollfd fd = {.fd = PQsocket(p->conn), .events = POLLIN | POLLRDHUP};
    char first = 'E';
    return poll(&fd, 1, 0) == 1 && fd.revents == POLLIN &&
           recv(fd.fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && first != 'E';
}

/* libpq knows the server's version when the login is done. It checks target_session_attrs after
 * that. */
static enum rlk_class log_in(struct conn *p, struct rlk_call *call)
{
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    bool answered = false;
    while (PQstatus(p->conn) != CONNECTION_BAD && next != PGRES_POLLING_OK &&
           next != PGRES_POLLING_FAILED) {
        short events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        if (!rlk_wait_socket(PQsocket(p->conn), events, -1, call->deadline_us))
            return rlk_refuse(call, RLK_UNSENT,
                              "connection to server at \"%s\", port %s failed: the login did not "
                              "end before the connect timeout",
                              PQhost(p->conn), PQport(p->conn));
        answered = has_answered(p);
        next = PQconnectPoll(p->conn);
    }
    if (PQstatus(p->conn) == CONNECTION_OK)
        return RLK_DONE;
    enum rlk_class class = fail_login(p, call);
    bool refused = answered && !PQparameterStatus(p->conn, "server_version");
    return class == RLK_UNSENT && !call->sqlstate[0] && refused ? RLK_UNSUPPORTED : class;
}

/* ---- the URL */

/* Returns the option with this name, or the end of the list. */
static const PQconninfoOption *find(const PQconninfoOption *options, const char *keyword)
{
    while (options->keyword && strcmp(options->keyword, keyword) != 0)
        options++;
    return options;
}

/* Ports are a list like hosts. An item may be empty. */
static bool is_port_list(const char *text)
{
    for (long port = 1; *text; text += *text == ',') {
        if (*text != ',')
            port = strtol(text, (char **)&text, 10);
        if (port < 1 || port > 65535 || (*text && *text != ','))
            return false;
    }
    return true;
}

/* Finds the first parameter that libpq does not know. If an @ follows the question mark, the text
 * may be a part of a password, and is not named. ssl is an alias that libpq takes for JDBC's
 * sake. */
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
        found = !find(known, name)->keyword && strcmp(name, "ssl") != 0;
        at = strchr(at, '&');
    }
    PQconninfoFree(known);
    return found;
}

/* libpq's own message about an unreadable URL quotes the URL with its password. */
static enum rlk_class fail_url(struct rlk_call *call, const char *url)
{
    char name[40];
    if (find_unknown(url, name))
        return rlk_refuse(call, RLK_INVALID, "the URL has a parameter that libpq does not know: %s",
                          name);
    return rlk_refuse(
        call, RLK_INVALID,
        "the URL cannot be read: look at its port, parameters and %% escapes; within a name or "
        "a password write / as %%2F, @ as %%40, : as %%3A, %% as %%25");
}

/* The caller frees *out, also after a failure. */
static enum rlk_class read_url(struct rlk_call *call, const char *url, PQconninfoOption **out)
{
    char *theirs = NULL;
    *out = PQconninfoParse(url, &theirs);
    bool no_memory = !*out && (!theirs || strstr(theirs, "out of memory"));
    const char *ports = *out ? find(*out, "port")->val : NULL;
    PQfreemem(theirs);
    if (no_memory)
        return RLK_NOMEM;
    return *out && (!ports || is_port_list(ports)) ? RLK_DONE : fail_url(call, url);
}

/* ---- the servers that the URL names */

/* We try one server at a time. libpq alone would spend all the time on the first one that hangs. */
struct opening {
    struct conn *p;
    struct rlk_call *call;
    const struct rlk_target *target;
    struct rlk_hello *hello;
    PQconninfoOption *options;
    /* those not tried yet; NULL or empty: libpq's default */
    char *hosts, *addresses, *ports;
    size_t servers;
    bool many_ports;
    /* a server that takes no writes is skipped */
    bool to_write;
};

/* The ping tells a setting that libpq refuses from a server that cannot be reached. */
static enum rlk_class start_login(struct opening *o)
{
    struct conn *p = o->p;
    const PQconninfoOption *options = o->options;
    bool several = o->servers > 1;
    size_t count = (size_t)(find(options, "") - options);
    const char **keys = rlk_alloc(2 * (count + 2) * sizeof *keys);
    if (!keys)
        return RLK_NOMEM;
    const char **values = keys + count + 2;
    for (size_t i = 0; i < count; i++) {
        keys[i] = options[i].keyword;
        values[i] = options[i].val;
    }
#define SET(key, value) values[find(options, key) - options] = (value)
    SET("host", several ? strsep(&o->hosts, ",") : o->hosts);
    SET("hostaddr", several ? strsep(&o->addresses, ",") : o->addresses);
    SET("port", several && o->many_ports ? strsep(&o->ports, ",") : o->ports);
    SET("client_encoding", "UTF8");
    if (o->to_write)
        SET("target_session_attrs", NULL);
    if (!find(options, "fallback_application_name")->val)
        SET("fallback_application_name", o->target->app_name);
    p->conn = PQconnectStartParams(keys, values, 0);
    keys[count] = "connect_timeout";
    values[count] = "2";
    bool refused = p->conn && PQstatus(p->conn) == CONNECTION_BAD &&
                   PQpingParams(keys, values, 0) == PQPING_NO_ATTEMPT;
    rlk_free(keys);
    return refused || !p->conn ? pg_fail_connection(p, o->call, RLK_INVALID) : RLK_DONE;
}

void pg_close(void *conn, bool in_child)
{
    struct conn *p = conn;
    rlk_room_free(&p->cells);
    rlk_room_free(&p->values);
    rlk_buffer_clear(&p->written);
    if (!p->conn || p->adopted)
        return;
    /* PQfinish ends the session at the server. A forked child closes its copy of the socket first,
     * so that the parent's session goes on. */
    if (in_child && PQsocket(p->conn) >= 0)
        close(PQsocket(p->conn));
    PQfinish(p->conn);
    p->conn = NULL;
}

static enum rlk_class open_server(void *context, size_t number)
{
    struct opening *o = context;
    struct conn *p = o->p;
    (void)number;
    pg_close(p, false);
    enum rlk_class class = start_login(o);
    if (class != RLK_DONE)
        return class;
    PQsetNoticeReceiver(p->conn, take_notice, p);
    PQsetErrorVerbosity(p->conn, PQERRORS_VERBOSE);
    class = log_in(p, o->call);
    if (class != RLK_DONE)
        return class;
    PQsetErrorVerbosity(p->conn, PQERRORS_DEFAULT);
    PQsetnonblocking(p->conn, 1);
    class = greet(p, o->call, o->target, o->to_write, o->hello);
    return class == RLK_DONE ? end_session(p, o->call, o->target->lingering) : class;
}

static size_t items_of(const char *list)
{
    size_t count = list ? 1 : 0;
    for (; list && *list; list++)
        count += *list == ',';
    return count;
}

/* If the lists have different lengths, libpq gets them whole and reports the error. */
static size_t count_servers(const struct opening *o)
{
    size_t count = items_of(o->hosts ? o->hosts : o->addresses), ports = items_of(o->ports);
    bool fits = !o->hosts || !o->addresses || items_of(o->addresses) == count;
    return count > 1 && fits && (ports < 2 || ports == count) ? count : 1;
}

static enum rlk_class open_any(struct opening *o)
{
    const char *attrs = find(o->options, "target_session_attrs")->val;
    o->hosts = find(o->options, "host")->val;
    o->addresses = find(o->options, "hostaddr")->val;
    o->ports = find(o->options, "port")->val;
    o->servers = count_servers(o);
    o->many_ports = items_of(o->ports) > 1;
    o->hello->several = o->servers > 1;
    o->to_write = o->servers > 1 && (!attrs || strcmp(attrs, "read-write") == 0);
    return rlk_try_servers(o->call, o->servers, open_server, o);
}

enum rlk_class pg_open(void *conn, struct rlk_call *call, const struct rlk_target *target,
                       const struct rlk_texts *texts, struct rlk_hello *hello)
{
    struct conn *p = conn;
    struct opening o = {.p = p, .call = call, .target = target, .hello = hello};
    p->texts = texts;
    p->heard = target->heard;
    p->heard_context = target->heard_context;
    enum rlk_class class = read_url(call, target->url, &o.options);
    if (class == RLK_DONE)
        class = open_any(&o);
    PQconninfoFree(o.options);
    return class;
}

enum rlk_class pg_adopt(void *conn, struct rlk_call *call, void *vendor,
                        const struct rlk_texts *texts, struct rlk_hello *hello)
{
    struct conn *p = conn;
    p->conn = vendor;
    p->texts = texts;
    p->adopted = true;
    enum rlk_class class = pg_check_usable(p, call);
    return class == RLK_DONE ? greet(p, call, NULL, false, hello) : class;
}
