/* SPDX-License-Identifier: MIT
 * What the server and the client library say when something fails, and which class that is. */
#include "driver.h"

#include <string.h>

/* What the server says, by its number. All others are RLK_REFUSED. Numbers are written out where
 * one of the two products has no name for them. */
static const struct {
    enum rlk_class class;
    unsigned short codes[10];
} classes[] = {
    /* Lost against another transaction. All of them leave nothing behind: the statement alone was
     * rolled back, or the transaction, and the procedures' handlers roll back the rest. */
    /* a deadlock, under Galera also at the commit; no lock of a row or of a table's definition */
    {RLK_CONTENTION, {ER_LOCK_DEADLOCK, ER_LOCK_WAIT_TIMEOUT}},
    {RLK_CONTENTION, {ER_CHECKREAD}}, /* innodb_snapshot_isolation */
    {RLK_CONTENTION, {1689, 3572}}, /* a wait ended by somebody's DDL; NOWAIT met a lock */
    {RLK_CONTENTION, {ER_TOO_MANY_CONCURRENT_TRXS, ER_LOCK_TABLE_FULL}}, /* out of memory */
    {RLK_CONTENTION, {3101}}, /* Group Replication: lost at certification */
    {RLK_CONTENTION, {ER_TABLE_DEF_CHANGED}}, /* the table was altered meanwhile */
    {RLK_CONTENTION, {ER_NEED_REPREPARE, ER_UNKNOWN_STMT_HANDLER}}, /* see query.c */

    /* Not let in, or thrown out before our statement was looked at. */
    {RLK_UNSENT,
     {ER_CON_COUNT_ERROR, ER_HANDSHAKE_ERROR, ER_HOST_IS_BLOCKED, ER_CANT_CREATE_THREAD,
      ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED}},
    /* the server cannot look our name up, or is not available; we were idle for too long */
    {RLK_UNSENT, {ER_BAD_HOST_ERROR, 3168, 4031}},

    /* Killed. A procedure runs no handler then and may have been past its COMMIT; see abandon(). */
    {RLK_UNCERTAIN, {ER_SERVER_SHUTDOWN, ER_QUERY_INTERRUPTED, ER_ERROR_DURING_COMMIT}},
    {RLK_UNCERTAIN, {1927, 1969}}, /* MariaDB: KILL CONNECTION, max_statement_time */
    {RLK_UNCERTAIN, {3169, 3024}}, /* MySQL: session was killed, max_execution_time */

    {RLK_READONLY, {3, 1021, ER_ERROR_ON_WRITE, ER_RECORD_FILE_FULL}}, /* disk full */
    {RLK_READONLY, {ER_OPEN_AS_READONLY, ER_OPTION_PREVENTS_STATEMENT, ER_READ_ONLY_MODE}},
    {RLK_READONLY, {ER_UNKNOWN_COM_ERROR}}, /* Galera: a node without quorum */
    {RLK_READONLY, {ER_CANT_UPDATE_WITH_READLOCK}}, /* FLUSH TABLES WITH READ LOCK */
    {RLK_READONLY, {ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION}}, /* session set READ ONLY */
    {RLK_READONLY, {1881, 3100}}, /* innodb_force_recovery; a group's member cannot commit */

    /* The first one, while connecting, is RLK_INVALID. */
    {RLK_SCHEMA,
     {ER_BAD_DB_ERROR, ER_BAD_FIELD_ERROR, ER_NO_SUCH_TABLE, ER_SP_DOES_NOT_EXIST,
      ER_SP_WRONG_NO_OF_ARGS}},

    {RLK_DENIED,
     {ER_DBACCESS_DENIED_ERROR, ER_ACCESS_DENIED_ERROR, ER_HOST_NOT_PRIVILEGED,
      ER_TABLEACCESS_DENIED_ERROR, ER_COLUMNACCESS_DENIED_ERROR, ER_SPECIFIC_ACCESS_DENIED_ERROR,
      ER_PROCACCESS_DENIED_ERROR, ER_ACCESS_DENIED_NO_PASSWORD_ERROR, ER_MUST_CHANGE_PASSWORD}},
    {RLK_DENIED, {1862, 3118, 4151}}, /* password expired; account locked: MySQL, MariaDB */
    {RLK_DENIED, {CR_AUTH_PLUGIN_ERR}}, /* such as a password without TLS */
    {RLK_DENIED, {5010}}, /* MariaDB's library: a login that is not one of blind_logins */

    {RLK_INVALID,
     {ER_WARN_DATA_OUT_OF_RANGE, ER_TRUNCATED_WRONG_VALUE, ER_TRUNCATED_WRONG_VALUE_FOR_FIELD,
      ER_DATA_TOO_LONG}},
    {RLK_UNSUPPORTED, {ER_NOT_SUPPORTED_AUTH_MODE, CR_VERSION_ERROR, CR_AUTH_PLUGIN_CANNOT_LOAD}},
    {RLK_IN_TX, {ER_TABLE_NOT_LOCKED, ER_XAER_RMFAIL}}, /* inside LOCK TABLES, or XA */
    {RLK_REFUSED, {CR_COMMANDS_OUT_OF_SYNC}}, /* the caller has results unread */
};

static bool is_among(unsigned code, const unsigned short *codes, size_t count)
{
    for (size_t i = 0; i < count && codes[i]; i++)
        if (codes[i] == code)
            return true;
    return false;
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool is_client_error(unsigned code)
{
    return (code >= CR_MIN_ERROR && code <= CR_MAX_ERROR) || (code >= 5000 && code <= 5999);
}

/* Errors of the client library mean that the connection is lost. sent: our statement was under way,
 * so that it may have run. That a send failed does not prove that the server did not get it. */
static enum rlk_class classify(unsigned code, bool sent)
{
    for (size_t i = 0; i < COUNT(classes); i++)
        if (is_among(code, classes[i].codes, COUNT(classes[i].codes)))
            return classes[i].class;
    if (!is_client_error(code))
        return RLK_REFUSED;
    if (sent)
        return RLK_UNCERTAIN;
    return code == CR_OUT_OF_MEMORY ? RLK_NOMEM : RLK_UNSENT;
}

/* What the server says of the caller's own statement when a name in it is not there, or when it is
 * wrong: all that is not so for the tables of ours, or would be nobody's fault but ours. */
static const unsigned short unfit[] = {
    /* names */
    1046, 1049, 1051, 1052, 1054, 1059, 1060, 1103, 1109, 1146, 1166, 1305, 1356, 1630, 1949,
    /* SQL */
    1064, 1065, 1066, 1093, 1110, 1111, 1128, 1136, 1140, 1149, 1210, 1221, 1222, 1235, 1239, 1241,
    1242, 1247, 1248, 1288, 1295, 1318, 1348, 1390, 1394, 1442, 1443, 1471, 1582, 1583, 1584, 3593,
    /* character sets, types that do not go together, columns that take no value */
    1115, 1253, 1267, 1270, 1271, 1273, 1301, 1906, 3105, 3144, 3995, 4078, 4079,
    /* values that are wrong whatever the row */
    1118, 1139, 1153, 1425, 1426, 1427, 3037, 3143, 3146, 3617, 3685, 3690, 3692, 3699, 4037, 4042};

/* What is wrong with a row of the caller's own tables. */
static const struct {
    enum rowlock_constraint constraint;
    unsigned short codes[32];
} violations[] = {
    {ROWLOCK_CONSTRAINT_UNIQUE, {1062, 1169, 1586, 1859}},
    {ROWLOCK_CONSTRAINT_FOREIGN_KEY, {1216, 1217, 1451, 1452, 1557, 1761, 1762}},
    /* the first is of a view; of the last, there is no partition for the row */
    {ROWLOCK_CONSTRAINT_CHECK, {1369, 3819, 4025, 1526}},
    /* of the last, there is no value, and no default */
    {ROWLOCK_CONSTRAINT_NOT_NULL, {1048, 1263, 1364}},
    /* out of range, too long, not of this type, no JSON, no geometry */
    {ROWLOCK_CONSTRAINT_VALUE, {1264, 1265, 1292, 1365, 1366, 1367, 1406, 1411, 1416, 1441,
                                1525, 1690, 1916, 3140, 3141, 3156, 3157, 3158, 3669, 4038}},
    /* characters that the column's character set does not have */
    {ROWLOCK_CONSTRAINT_VALUE, {1300, 1977, 3854, 3988, 4041, 4076}},
};

static enum rowlock_constraint constraint_of(unsigned code)
{
    for (size_t i = 0; i < COUNT(violations); i++)
        if (is_among(code, violations[i].codes, COUNT(violations[i].codes)))
            return violations[i].constraint;
    return ROWLOCK_CONSTRAINT_NONE;
}

/* Killed, or out of time. */
static bool is_ended_early(unsigned code)
{
    return code == ER_QUERY_INTERRUPTED || code == 1969 || code == 3024;
}

static enum rlk_class classify_query(unsigned code, bool sent)
{
    if (is_among(code, unfit, COUNT(unfit)))
        return RLK_INVALID;
    if (constraint_of(code) != ROWLOCK_CONSTRAINT_NONE)
        return RLK_VIOLATION;
    /* Unlike a procedure, a statement by itself is rolled back then. */
    if (is_ended_early(code))
        return RLK_CONTENTION;
    return classify(code, sent);
}

/* A deadlock ends the caller's transaction, a lock timeout ends the statement unless the server is
 * set otherwise, and an error packet says nothing of it: the next answer does. Before its first
 * statement a transaction without autocommit has nothing to lose. A killed procedure has not undone
 * its part. */
static bool transaction_is_over(struct conn *c, enum rlk_class class)
{
    return c->dead || class == RLK_UNCERTAIN || mysql_query(c->mysql, "DO 0") ||
           (c->was_in_tx && !my_in_transaction(c));
}

/* A killed procedure leaves its transaction open. Our own connection is closed for it; on a
 * borrowed one nothing may stay behind, unless the step ran inside the caller's transaction. */
static void abandon(struct conn *c, struct rlk_call *call, unsigned code, enum rlk_class class)
{
    if (is_client_error(code) && (class == RLK_UNSENT || class == RLK_UNCERTAIN))
        c->dead = true;
    else if (class == RLK_UNCERTAIN && c->adopted && (!call->inside || c->ours))
        mysql_rollback(c->mysql);
    if (call->inside)
        call->tx_over = transaction_is_over(c, class);
    c->lost = c->lost || (c->ours && call->tx_over);
}

/* Errors are copied before anything else is asked of the connection. */
static enum rlk_class note(struct conn *c, struct rlk_call *call, enum rlk_class class,
                           unsigned code, const char *sqlstate, const char *text)
{
    static const char deadlock[] = " 149 "; /* the storage engine's number for it */
    if (code == ER_ERROR_DURING_COMMIT && strstr(text, deadlock))
        class = RLK_CONTENTION; /* Group Replication: another node's transaction has won */
    rlk_diag_set(call, (int)code, sqlstate, text);
    call->late = is_ended_early(code);
    call->no_routine = code == ER_SP_DOES_NOT_EXIST;
    abandon(c, call, code, class);
    return class;
}

enum rlk_class my_failed(struct conn *c, struct rlk_call *call, bool sent)
{
    unsigned code = mysql_errno(c->mysql);
    return note(c, call, classify(code, sent), code, mysql_sqlstate(c->mysql),
                mysql_error(c->mysql));
}

enum rlk_class my_failed_stmt(struct conn *c, struct rlk_call *call, MYSQL_STMT *stmt, bool theirs,
                              bool sent)
{
    unsigned code = mysql_stmt_errno(stmt);
    if (theirs)
        call->constraint = constraint_of(code);
    return note(c, call, theirs ? classify_query(code, sent) : classify(code, sent), code,
                mysql_stmt_sqlstate(stmt), mysql_stmt_error(stmt));
}
