/* SPDX-License-Identifier: MIT
 *
 * Raw sessions on PostgreSQL; see raw.h. rowlock is not used here. */
#include "raw.h"

#include <libpq-fe.h>

static void keep_quiet(void *context, const PGresult *notice)
{
}

/* Tells rowlock, and this program, that the pooler lends a session to one client alone. */
static const char SESSION_MODE[] = "?rowlock_pooler=session";
static atomic_bool in_session_mode;

static void *open_session(const char *url)
{
    char plain[300];
    const char *mode = strstr(url, SESSION_MODE);
    in_session_mode = mode != NULL;
    snprintf(plain, sizeof plain, "%.*s", mode ? (int)(mode - url) : (int)strlen(url), url);
    PGconn *conn = PQconnectdb(plain);
    if (PQstatus(conn) != CONNECTION_OK)
        raw_failed("PostgreSQL", PQerrorMessage(conn));
    PQsetNoticeReceiver(conn, keep_quiet, NULL);
    return conn;
}

static void close_session(void *session)
{
    PQfinish(session);
}

static bool run(void *session, const char *sql, char *why, size_t cap)
{
    PGresult *result = PQexec(session, sql);
    ExecStatusType status = PQresultStatus(result);
    bool good = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
    if (!good)
        snprintf(why, cap, "%s", PQerrorMessage(session));
    PQclear(result);
    return good;
}

static bool ask(void *session, const char *sql, char *out, size_t cap)
{
    PGresult *result = PQexec(session, sql);
    bool good = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0 &&
                !PQgetisnull(result, 0, 0);
    if (good)
        snprintf(out, cap, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    return good;
}

/* A pooler gives out process numbers of its own. A private server has no pooler before it, so tests
 * there must not be skipped. */
static bool pooled(void *session)
{
    char pid[20] = "", believed[20];
    if (in_session_mode)
        return false;
    snprintf(believed, sizeof believed, "%d", PQbackendPID(session));
    bool found =
        !ask(session, "SELECT pg_backend_pid()", pid, sizeof pid) || strcmp(pid, believed) != 0;
    if (found && getenv("ROWLOCK_TEST_POSTGRES_DIR"))
        raw_failed("looking for a pooler", "there is one before the private server");
    return found;
}

RAW_ADOPTS(postgres)

const struct raw raw_postgres = {
    RAW_FUNCTIONS(postgres),
    .url_env = "ROWLOCK_TEST_POSTGRES_URL",
    .clock = "(pg_catalog.date_part('epoch', clock_timestamp()) * 1e6::float8)::bigint",
    .pooled = pooled,
};
