/* SPDX-License-Identifier: MIT
 *
 * Connects by a URL, adopts a connection, and closes.
 *
 * The client libraries use the Unix socket if the host is localhost. If the URL also names a port,
 * we use TCP. Option files are read as the command-line client reads them: the groups [client] and
 * [rowlock]. default_group replaces [rowlock]. Passwords belong in option files or in MYSQL_PWD. */
#include "driver.h"

#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/url.h"

/* The first with CREATE PROCEDURE IF NOT EXISTS, and the first with SKIP LOCKED. */
enum { OLDEST_MYSQL = 80029, OLDEST_MARIADB = 100600 };

enum { SOCKET, SSL_MODE, SSL_CA, SSL_CERT, SSL_KEY, DEFAULT_FILE, DEFAULT_GROUP, PARAMS };
static const char *const params[PARAMS] = {"socket",  "ssl_mode",     "ssl_ca",       "ssl_cert",
                                           "ssl_key", "default_file", "default_group"};

struct opening {
    struct conn *c;
    struct rlk_call *call;
    const struct rlk_target *target;
    struct rlk_hello *hello;
    struct rlk_url url;
    /* NULL: the library's default */
    const char *param[PARAMS];
    /* what ssl_mode asks for */
    bool tls, verify;
};

/* With SSL_ENFORCE alone MariaDB's library logs in first, and finds out afterwards that the server
 * has no TLS. With VERIFY_SERVER_CERT it finds out before. The logins below never show the password
 * to the server. */
static void set_tls(MYSQL *mysql, bool enforce, bool verify)
{
#ifdef MARIADB_PACKAGE_VERSION_ID
    static const char blind_logins[] =
        "mysql_native_password,client_ed25519,auth_gssapi_client,parsec";
    my_bool enforced = enforce ? 1 : 0, verified = verify ? 1 : 0;
    mysql_options(mysql, MYSQL_OPT_SSL_ENFORCE, &enforced);
    mysql_options(mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verified);
    if (enforce && !verify)
        mysql_options(mysql, MARIADB_OPT_RESTRICTED_AUTH, blind_logins);
#else
    unsigned mode = verify    ? SSL_MODE_VERIFY_IDENTITY
                    : enforce ? SSL_MODE_REQUIRED
                              : SSL_MODE_DISABLED;
    mysql_options(mysql, MYSQL_OPT_SSL_MODE, &mode);
#endif
}

static enum rlk_class read_params(struct opening *o)
{
    for (size_t i = 0; i < o->url.params; i++) {
        int k = 0;
        while (k < PARAMS && strcmp(params[k], o->url.param[i].key) != 0)
            k++;
        if (k == PARAMS)
            return rlk_refuse(o->call, RLK_INVALID,
                              "the URL has an unknown parameter; known are socket, ssl_mode, "
                              "ssl_ca, ssl_cert, ssl_key, default_file and default_group");
        o->param[k] = o->url.param[i].value;
    }
    return RLK_DONE;
}

static enum rlk_class check_params(struct opening *o)
{
    const char *mode = o->param[SSL_MODE] ? o->param[SSL_MODE] : "disabled";
    o->verify = strcmp(mode, "verify") == 0;
    o->tls = o->verify || strcmp(mode, "required") == 0;
    if (!o->tls && strcmp(mode, "disabled") != 0)
        return rlk_refuse(o->call, RLK_INVALID,
                          "ssl_mode in the URL must be disabled, required or verify");
    if (o->param[DEFAULT_FILE] && access(o->param[DEFAULT_FILE], R_OK) != 0)
        return rlk_refuse(o->call, RLK_INVALID, "the URL's default_file cannot be read");
    const char *host = o->url.host[0].name;
    if (o->param[SOCKET] && (o->url.hosts > 1 || (host && strcmp(host, "localhost") != 0)))
        return rlk_refuse(o->call, RLK_INVALID,
                          "the URL names a socket and another host: the host of a socket is "
                          "localhost, or none");
    if (!o->url.path)
        return rlk_refuse(o->call, RLK_INVALID,
                          "the URL names no database: write mysql://host/DATABASE");
    return RLK_DONE;
}

static unsigned whole_seconds(int64_t ms)
{
    return ms <= 0 ? 1 : (unsigned)((ms + 999) / 1000);
}

static unsigned connect_seconds(const struct rlk_call *call, bool last)
{
    int64_t ms = (call->deadline_us - rlk_now_us()) / 1000;
    return last || ms < 1000 ? whole_seconds(ms) : (unsigned)(ms / 1000);
}

static void set_options(MYSQL *mysql, const struct opening *o, const struct rlk_url_host *host,
                        unsigned connect)
{
    unsigned timeout = whole_seconds(o->target->timeout_ms), off = 0;
    unsigned tcp = MYSQL_PROTOCOL_TCP;
    const char *group = o->param[DEFAULT_GROUP];
    static const struct {
        int param;
        enum mysql_option option;
    } options[] = {{DEFAULT_FILE, MYSQL_READ_DEFAULT_FILE},
                   {SSL_CA, MYSQL_OPT_SSL_CA},
                   {SSL_CERT, MYSQL_OPT_SSL_CERT},
                   {SSL_KEY, MYSQL_OPT_SSL_KEY}};
    mysql_options(mysql, MYSQL_OPT_CONNECT_TIMEOUT, &connect);
    mysql_options(mysql, MYSQL_OPT_READ_TIMEOUT, &timeout);
    mysql_options(mysql, MYSQL_OPT_WRITE_TIMEOUT, &timeout);
    mysql_options(mysql, MYSQL_OPT_LOCAL_INFILE, &off);
    mysql_options(mysql, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (o->target->app_name)
        mysql_options4(mysql, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", o->target->app_name);
    if (host->name && host->port && !o->param[SOCKET])
        mysql_options(mysql, MYSQL_OPT_PROTOCOL, &tcp);
    mysql_options(mysql, MYSQL_READ_DEFAULT_GROUP, group ? group : "rowlock");
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (o->param[options[i].param])
            mysql_options(mysql, options[i].option, o->param[options[i].param]);
    if (o->param[SSL_MODE])
        set_tls(mysql, o->tls, o->verify);
}

static void close_on_exec(MYSQL *mysql)
{
    int fd = my_socket_of(mysql);
    int flags = fcntl(fd, F_GETFD);
    if (flags >= 0)
        fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

/* MariaDB's library ends the text with the error number of the name lookup. */
static bool is_unknown_host(const struct rlk_call *call)
{
    const char *number = strrchr(call->text, '(');
    return call->native == CR_UNKNOWN_HOST && number && strtol(number + 1, NULL, 10) == EAI_NONAME;
}

static enum rlk_class connect_to(struct conn *c, const struct opening *o,
                                 const struct rlk_url_host *host)
{
    if (!mysql_real_connect(c->mysql, host->name, o->url.user, o->url.password, o->url.path,
                            host->port, o->param[SOCKET], CLIENT_MULTI_RESULTS)) {
        enum rlk_class class =
            rlk_name_server(o->call, my_failed(c, o->call, false), host->name, host->port);
        /* The library's own text names another plugin. */
        if (o->call->native == 5010)
            rlk_diag_set(o->call, 5010, NULL,
                         "this login sends the password in clear text, and ssl_mode=required "
                         "cannot be sure of TLS before it; use ssl_mode=verify");
        /* An unknown database is an error of the user, not a missing schema. */
        return class == RLK_SCHEMA ? RLK_INVALID : class;
    }
    close_on_exec(c->mysql);
#ifdef MARIADB_PACKAGE_VERSION_ID
    /* An option file may have switched it on. Oracle's library warns if it is set at all. */
    mysql_options(c->mysql, MYSQL_OPT_RECONNECT, &(my_bool){0});
#endif
    if (!o->tls || mysql_get_ssl_cipher(c->mysql))
        return RLK_DONE;
    return rlk_refuse(o->call, RLK_UNSUPPORTED,
                      "the URL asks for TLS, but the server did not offer it");
}

/* Uses the version from the handshake. A proxy must report the version of the server behind it. */
static enum rlk_class check_version(struct conn *c, struct rlk_call *call)
{
    /* MariaDB before 11 puts this before its version. */
    static const char disguise[] = "5.5.5-";
    const char *version = mysql_get_server_info(c->mysql);
    bool mariadb = my_is_mariadb(c);
    long number = 0;
    if (mariadb && strncmp(version, disguise, sizeof disguise - 1) == 0)
        version += sizeof disguise - 1;
    const char *at = version;
    for (int part = 0; part < 3; part++) {
        char *end = NULL;
        number = number * 100 + strtol(at, &end, 10) % 100;
        at = *end == '.' ? end + 1 : end;
    }
    if (number >= (mariadb ? OLDEST_MARIADB : OLDEST_MYSQL) && !strstr(version, "TiDB"))
        return RLK_DONE;
    return rlk_refuse(call, RLK_UNSUPPORTED,
                      "the server is %s %.60s; MySQL 8.0.29 or MariaDB 10.6 itself is needed, and "
                      "a proxy must report its version (ProxySQL: mysql-server_version)",
                      mariadb ? "MariaDB" : "MySQL", version);
}

/* After a restart another session may have the same number. The client's port, as the server sees
 * it, makes the name unique. A Unix socket has no port, but there no statement is delayed on its
 * way. */
static enum rlk_class name_session(struct conn *c, struct rlk_call *call, char *out, size_t cap)
{
    char host[300] = "";
    enum rlk_class class = my_ask(
        c, call, "SELECT host FROM information_schema.processlist WHERE id = CONNECTION_ID()", host,
        sizeof host);
    const char *colon = strrchr(host, ':');
    unsigned long port = colon ? strtoul(colon + 1, NULL, 10) : 0;
    if (port)
        snprintf(out, cap, "%lu %lu", mysql_thread_id(c->mysql), port);
    /* A user without the privilege has a session without a name. */
    return c->dead ? class : RLK_DONE;
}

/* Best effort: a missing privilege is no failure.
 *
 * A session whose commit waits for a replica (semi-synchronous) stays. KILL would end the wait, and
 * others of the same group commit would be answered although no replica has them. */
static enum rlk_class end_session(struct conn *c, struct rlk_call *call, const char *session)
{
    char sql[300], found[24] = "";
    struct rlk_call unheard = {.deadline_us = call->deadline_us};
    char *rest = NULL;
    unsigned long id = strtoul(session, &rest, 10), port = strtoul(rest, NULL, 10);
    if (!id || !port)
        return RLK_DONE;
    snprintf(sql, sizeof sql,
             "SELECT id FROM information_schema.processlist WHERE id = %lu AND host LIKE '%%:%lu'"
             " AND user = SUBSTRING_INDEX(USER(), '@', 1)"
             " AND IFNULL(state, '') NOT LIKE 'Waiting for semi-sync%%'",
             id, port);
    enum rlk_class class = my_ask(c, &unheard, sql, found, sizeof found);
    if (class == RLK_DONE && found[0]) {
        snprintf(sql, sizeof sql, "KILL %lu", id);
        class = my_command(c, &unheard, sql);
    }
    return c->dead ? class : RLK_DONE;
}

/* Settings of our own connection. An option file may have asked for another character set. The
 * server ends a wait for a lock before we stop waiting, so that the connection survives. A value
 * that does not fit becomes an error. The server does not store another value instead. Modes that
 * change what a text or an UPDATE means give way to that. Lists of numbers must not be cut. */
static enum rlk_class set_up_session(struct conn *c, struct rlk_call *call,
                                     const struct rlk_target *target)
{
    unsigned wait = whole_seconds(target->timeout_ms / 2);
    char sql[500];
#define STRICT "'STRICT_TRANS_TABLES'"
    snprintf(sql, sizeof sql,
             "SET autocommit = 1, completion_type = 0, group_concat_max_len = 1048576,"
             " innodb_lock_wait_timeout = %u, lock_wait_timeout = %u, sql_safe_updates = 0, NAMES"
             " utf8mb4, sql_mode = CONCAT_WS(',', NULLIF(REPLACE(REPLACE(REPLACE(@@sql_mode,"
             " 'ORACLE', " STRICT "), 'EMPTY_STRING_IS_NULL', " STRICT
             "), 'SIMULTANEOUS_ASSIGNMENT', " STRICT "), ''), " STRICT ")",
             wait, wait);
#undef STRICT
    return my_command(c, call, sql);
}

static enum rlk_class try_host(const struct opening *o, size_t number)
{
    struct conn *c = o->c;
    struct rlk_call *call = o->call;
    const struct rlk_url_host *host = &o->url.host[number];
    c->dead = false;
    c->mysql = mysql_init(NULL);
    if (!c->mysql)
        return RLK_NOMEM;
    set_options(c->mysql, o, host, connect_seconds(call, number + 1 == o->url.hosts));
    enum rlk_class class = connect_to(c, o, host);
    if (class == RLK_DONE)
        class = check_version(c, call);
    if (class == RLK_DONE)
        class = set_up_session(c, call, o->target);
    if (class == RLK_DONE && o->url.hosts > 1)
        class = my_check_writable(c, call);
    if (class == RLK_DONE)
        class = name_session(c, call, o->hello->session, sizeof o->hello->session);
    return class == RLK_DONE ? end_session(c, call, o->target->lingering) : class;
}

static bool tls_failed(const struct rlk_call *call)
{
    return call->native == CR_SSL_CONNECTION_ERROR && rlk_now_us() < call->deadline_us;
}

/* The client library has one error number for refused TLS and for a server that goes away during
 * the handshake. So we try twice: a server that has gone away then fails earlier. */
static enum rlk_class open_host(void *context, size_t number)
{
    const struct opening *o = context;
    my_close(o->c, false);
    enum rlk_class class = try_host(o, number);
    if (!tls_failed(o->call))
        return class;
    my_close(o->c, false);
    o->call->native = 0;
    class = try_host(o, number);
    return tls_failed(o->call) ? RLK_UNSUPPORTED : class;
}

static enum rlk_class open_url(struct opening *o)
{
    enum rlk_class class = read_params(o);
    if (class == RLK_DONE)
        class = check_params(o);
    if (class == RLK_DONE)
        class = rlk_try_servers(o->call, o->url.hosts, open_host, o);
    bool mistyped = class == RLK_UNSENT && o->url.hosts == 1 && !o->target->known;
    return mistyped && is_unknown_host(o->call) ? RLK_INVALID : class;
}

/* mysql_init() does this too, but not safely if several threads call it at once. */
static void start_library(void)
{
    mysql_library_init(0, NULL, NULL);
}

enum rlk_class my_open(void *conn, struct rlk_call *call, const struct rlk_target *target,
                       const struct rlk_texts *texts, struct rlk_hello *hello)
{
    static pthread_once_t started = PTHREAD_ONCE_INIT;
    struct conn *c = conn;
    struct opening o = {.c = c, .call = call, .target = target, .hello = hello};
    const char *why = NULL;
    pthread_once(&started, start_library);
    c->texts = texts;
    c->answer_us = target->timeout_ms * 1000;
    int split = rlk_url_split(target->url, &o.url, &why);
    enum rlk_class class = split == -2   ? RLK_NOMEM
                           : split == -1 ? rlk_refuse(call, RLK_INVALID, "%s", why)
                                         : open_url(&o);
    /* Each of several hosts was asked, and had a second or more to answer. */
    hello->takes_writes = hello->several = o.url.hosts > 1;
    if (class == RLK_DONE)
        rlk_copy_text(hello->schema, sizeof hello->schema, o.url.path, strlen(o.url.path));
    rlk_url_free(&o.url);
    return class;
}

enum rlk_class my_adopt(void *conn, struct rlk_call *call, void *vendor,
                        const struct rlk_texts *texts, struct rlk_hello *hello)
{
    struct conn *c = conn;
    *c = (struct conn){.mysql = vendor, .texts = texts, .adopted = true};
    enum rlk_class class = check_version(c, call);
    if (class == RLK_DONE)
        class = my_check_charset(c, call);
    if (class == RLK_DONE)
        class = my_ask(c, call, "SELECT DATABASE()", hello->schema, sizeof hello->schema);
    if (class != RLK_DONE || hello->schema[0])
        return class;
    if (!texts->schema[0])
        return rlk_refuse(call, RLK_INVALID,
                          "the adopted connection has no database selected: select one, or set "
                          "the option schema");
    rlk_copy_text(hello->schema, sizeof hello->schema, texts->schema, strlen(texts->schema));
    return RLK_DONE;
}

/* Both client libraries keep memory for each thread. */
void my_use_in_thread(bool begins)
{
    if (begins)
        mysql_thread_init();
    else
        mysql_thread_end();
}

/* Our own connection is closed before its statements, so that closing those sends nothing. An
 * adopted connection stays open. In a forked child its statements stay too, since closing them
 * would use the parent's socket. */
void my_close(void *conn, bool in_child)
{
    struct conn *c = conn;
    if (!c->mysql || (in_child && c->adopted))
        return;
    if (!c->adopted) {
        if ((in_child || c->dead || my_hung_up(c)) && !my_cut_off(c->mysql))
            return;
        mysql_close(c->mysql);
    }
    my_forget_statements(c);
    c->mysql = NULL;
}
