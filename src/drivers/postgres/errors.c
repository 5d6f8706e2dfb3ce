/* SPDX-License-Identifier: MIT
 *
 * The classes of failures of libpq and of the server. */
#include "driver.h"

#include <stdio.h>
#include <string.h>

/* By SQLSTATE or its first characters. The first entry that fits counts. */
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
    {"25P03", RLK_UNCERTAIN}, /* the transaction was idle for too long, and the session ended */
    {"25P04", RLK_UNCERTAIN}, /* the transaction took too long, and the session ended */
    {"08", RLK_UNCERTAIN}, /* a pooler lost its server */
    {"25006", RLK_STANDBY}, /* see pg_fail_read_only() */
    {"53", RLK_READONLY}, /* disk full, out of memory at the server */
    {"42P01", RLK_SCHEMA}, /* no such table */
    {"42883", RLK_SCHEMA}, /* no such function */
    {"42703", RLK_SCHEMA}, /* no such column */
    {"42P10", RLK_SCHEMA}, /* no such unique key */
    {"3F000", RLK_SCHEMA}, /* no such schema */
    {"42501", RLK_DENIED}, /* no privilege */
    {"28", RLK_DENIED}, /* wrong password, no such role, pg_hba.conf */
    {"3D000", RLK_INVALID}, /* no such database */
    {"22003", RLK_REFUSED}, /* no token is left: all 64 bits are used */
    {"22", RLK_INVALID}, /* a value that the database cannot take */
    {"23514", RLK_INVALID}, /* a CHECK of our tables */
    {"0A000", RLK_UNSUPPORTED},
};

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

#define COUNT(table) (sizeof(table) / sizeof *(table))

static bool begins(const char *state, const char *with)
{
    return strncmp(state, with, strlen(with)) == 0;
}

enum rlk_class pg_class_of(const char *sqlstate)
{
    for (size_t i = 0; i < COUNT(classes); i++)
        if (begins(sqlstate, classes[i].state))
            return classes[i].class;
    return RLK_REFUSED;
}

enum rlk_class pg_fail_connection(struct conn *p, struct rlk_call *call, enum rlk_class class)
{
    rlk_diag_set(call, 0, NULL, p->conn ? PQerrorMessage(p->conn) : "out of memory");
    return p->conn ? class : RLK_NOMEM;
}

/* A server does not become writable for a user, database or URL that asks for read-only
 * transactions. */
enum rlk_class pg_fail_read_only(struct conn *p, struct rlk_call *call, const char *why)
{
    char text[sizeof call->text];
    snprintf(text, sizeof text, "%.300s%s", why,
             p->set_read_only ? "; default_transaction_read_only is on for this user, database or "
                                "URL: turn it off"
                              : "");
    rlk_diag_set(call, 0, "25006", text);
    p->standby = !p->set_read_only && !p->adopted;
    return p->set_read_only ? RLK_READONLY : RLK_STANDBY;
}

enum rlk_class pg_refuse_others(PGconn *conn, struct rlk_call *call)
{
    const char *version = PQparameterStatus(conn, "server_version");
    bool crdb = PQparameterStatus(conn, "crdb_version"), yb = version && strstr(version, "-YB-");
    if (!crdb && !yb)
        return RLK_DONE;
    return rlk_refuse(call, RLK_UNSUPPORTED,
                      "this is %s, not PostgreSQL: see Engines in docs/CLUSTERS.md",
                      crdb ? "CockroachDB" : "YugabyteDB");
}

/* The detail of these violations names a key. Other details show the whole row, which must not be
 * logged. An error without a SQLSTATE comes from libpq, which could not read the
 * answer. That the connection was lost is no result: see await_result(). */
enum rlk_class pg_fail_result(struct conn *p, struct rlk_call *call, const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    char both[2 * sizeof call->text];
    bool names_key =
        state && (begins(state, "23503") || begins(state, "23505") || begins(state, "23P01"));
    if (state && text && begins(state, "25006"))
        return pg_fail_read_only(p, call, text);
    const char *more = names_key                         ? detail
                       : state && begins(state, "3F000") ? "create it first"
                                                         : NULL;
    if (text && more) {
        snprintf(both, sizeof both, "%s: %s", text, more);
        text = both;
    }
    rlk_diag_set(call, 0, state, text ? text : PQresultErrorMessage(result));
    call->late = begins(call->sqlstate, "57014");
    call->garbled = !state;
    return state ? pg_class_of(state) : RLK_UNCERTAIN;
}

/* Some SQLSTATEs mean something else for the caller's tables. 08P01 with this text means a wrong
 * number of values. Poolers use 08P01 for other errors. */
enum rlk_class pg_class_of_theirs(struct rlk_call *call, enum rlk_class class)
{
    const char *state = call->sqlstate;
    if (class == RLK_DONE || !state[0])
        return class;
    for (size_t i = 0; i < COUNT(violations); i++)
        if (begins(state, violations[i].state)) {
            call->constraint = violations[i].constraint;
            return RLK_VIOLATION;
        }
    bool unknown_name = (begins(state, "42") && !begins(state, "42501")) || begins(state, "3F000");
    bool misfit = begins(state, "08P01") && begins(call->text, "bind message");
    return unknown_name || misfit ? RLK_INVALID : class;
}
