/* SPDX-License-Identifier: MIT
 *
 * Raw sessions on MySQL and MariaDB; see raw.h. rowlock is not used here. */
#include "raw.h"

#include <mysql.h>

struct address {
    char text[500];
    char *user, *password, *host, *database, *socket, *ssl_ca;
    /* in seconds; 0: none */
    unsigned int port, read_timeout;
    /* of the client */
    unsigned long flags;
};

static char *cut(char *text, char at)
{
    char *found = text ? strchr(text, at) : NULL;
    if (!found)
        return NULL;
    *found = '\0';
    return found + 1;
}

/* socket=PATH, ssl_ca=PATH, read_timeout=SECONDS. found_rows=1: rows that a statement finds count
 * as changed. */
static void parse_parameters(char *parameter, struct address *out)
{
    while (parameter) {
        char *next = cut(parameter, '&'), *value = cut(parameter, '=');
        if (strcmp(parameter, "socket") == 0)
            out->socket = value;
        else if (strcmp(parameter, "ssl_ca") == 0)
            out->ssl_ca = value;
        else if (strcmp(parameter, "read_timeout") == 0)
            out->read_timeout = (unsigned int)atoi(value);
        else if (strcmp(parameter, "found_rows") == 0)
            out->flags = CLIENT_FOUND_ROWS;
        parameter = next;
    }
}

/* mysql://user:password@host:port/database?PARAMETERS */
static void parse(const char *url, struct address *out)
{
    *out = (struct address){.port = 0};
    const char *rest = strstr(url, "://");
    if (!rest)
        raw_failed("MySQL URL", url);
    snprintf(out->text, sizeof out->text, "%s", rest + 3);
    parse_parameters(cut(out->text, '?'), out);
    out->database = cut(out->text, '/');
    out->user = out->text;
    out->host = cut(out->text, '@');
    if (!out->host) {
        out->host = out->text;
        out->user = NULL;
    }
    out->password = cut(out->user, ':');
    char *port = cut(out->host, ':');
    out->port = port ? (unsigned int)atoi(port) : 0;
}

enum { TRIES = 20 };

/* With a time limit of its own a slow machine may need several tries. */
static void *open_session(const char *url)
{
    struct address address;
    parse(url, &address);
    for (int tries = address.read_timeout ? 1 : TRIES; tries <= TRIES; tries++) {
        MYSQL *conn = mysql_init(NULL);
        mysql_options(conn, MYSQL_SET_CHARSET_NAME, "utf8mb4");
        if (address.read_timeout)
            mysql_options(conn, MYSQL_OPT_READ_TIMEOUT, &address.read_timeout);
        if (address.ssl_ca)
            mysql_options(conn, MYSQL_OPT_SSL_CA, address.ssl_ca);
        if (mysql_real_connect(conn, address.host, address.user, address.password, address.database,
                               address.port, address.socket, address.flags))
            return conn;
        if (tries == TRIES)
            raw_failed("MySQL", mysql_error(conn));
        mysql_close(conn);
    }
    return NULL;
}

static void close_session(void *session)
{
    mysql_close(session);
}

static bool run(void *session, const char *sql, char *why, size_t cap)
{
    if (mysql_query(session, sql) != 0) {
        snprintf(why, cap, "%u %s", mysql_errno(session), mysql_error(session));
        return false;
    }
    /* A procedure answers several results. */
    int next;
    do {
        MYSQL_RES *rows = mysql_store_result(session);
        if (rows)
            mysql_free_result(rows);
    } while ((next = mysql_next_result(session)) == 0);
    if (next > 0)
        snprintf(why, cap, "%u %s", mysql_errno(session), mysql_error(session));
    return next < 0;
}

static bool ask(void *session, const char *sql, char *out, size_t cap)
{
    MYSQL_RES *rows = mysql_query(session, sql) == 0 ? mysql_store_result(session) : NULL;
    if (!rows)
        snprintf(out, cap, "%s", mysql_error(session)); /* the caller's message may have it */
    MYSQL_ROW row = rows ? mysql_fetch_row(rows) : NULL;
    bool good = row && row[0];
    if (good)
        snprintf(out, cap, "%s", row[0]);
    mysql_free_result(rows);
    return good;
}

RAW_ADOPTS(mysql)

const struct raw raw_mysql = {
    RAW_FUNCTIONS(mysql),
    .url_env = "ROWLOCK_TEST_MYSQL_URL",
    .clock = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
};
