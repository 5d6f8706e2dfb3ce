/* SPDX-License-Identifier: MIT
 *
 * Errors of the server and of the client library, and the class of each. */
#include "driver.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Classes by the server's error number. All other numbers are RLK_REFUSED. A number is written out
 * if one of the two products has no name for it. */
static const struct {
    enum rlk_class class;
    unsigned short codes[10];
} classes[] = {
    /* Lost against another transaction. None of these leaves anything behind: the server rolls back
     * the statement or the transaction, or a procedure's handler rolls it back. */
    /* a deadlock (with Galera also at the commit), or a wait for a row lock or metadata lock */
    {RLK_CONTENTION, {ER_LOCK_DEADLOCK, ER_LOCK_WAIT_TIMEOUT}},
    {RLK_CONTENTION, {ER_CHECKREAD}}, /* innodb_snapshot_isolation */
    {RLK_CONTENTION, {1689, 3572}}, /* DDL ended the wait; NOWAIT met a lock */
    {RLK_CONTENTION,
     {ER_TOO_MANY_CONCURRENT_TRXS, ER_LOCK_TABLE_FULL}}, /* the server is out of memory */
    {RLK_CONTENTION, {3101}}, /* Group Replication: lost at certification */
    {RLK_CONTENTION, {ER_TABLE_DEF_CHANGED}}, /* another client altered the table */
    {RLK_CONTENTION, {ER_NEED_REPREPARE, ER_UNKNOWN_STMT_HANDLER}}, /* see query.c */

    /* The server did not let us in, or ended the session before it looked at our statement. */
    {RLK_UNSENT,
     {ER_CON_COUNT_ERROR, ER_HANDSHAKE_ERROR, ER_HOST_IS_BLOCKED, ER_CANT_CREATE_THREAD,
      ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED}},
    /* the server cannot resolve our name, is offline (offline_mode) or not available; we were idle
     * for too long */
    {RLK_UNSENT, {ER_BAD_HOST_ERROR, 3032, 3168, 4031}},

    /* Killed. A procedure's handler does not run then, and its COMMIT may have run. See
     * abandon(). */
    {RLK_UNCERTAIN, {ER_SERVER_SHUTDOWN, ER_QUERY_INTERRUPTED, ER_ERROR_DURING_COMMIT}},
    /* the session was killed; a time limit; the server cannot read from us, or write to us */
    {RLK_UNCERTAIN, {1927, 1969, 3169, 3024, 1158, 1159, 1160, 1161}},

    {RLK_READONLY, {3, 1021, ER_ERROR_ON_WRITE, ER_RECORD_FILE_FULL}}, /* disk full */
    {RLK_READONLY, {ER_CANT_UPDATE_WITH_READLOCK}}, /* FLUSH TABLES WITH READ LOCK */
    {RLK_STANDBY, {ER_OPEN_AS_READONLY, ER_OPTION_PREVENTS_STATEMENT, ER_READ_ONLY_MODE}},
    {RLK_STANDBY, {ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION}}, /* transaction_read_only */
    {RLK_STANDBY, {ER_UNKNOWN_COM_ERROR}}, /* Galera: a node without quorum */
    {RLK_STANDBY, {1881, 3100}}, /* innodb_force_recovery; a group's member cannot commit */
    /* a group's member has left it, or cannot wait for what the others have committed */
    {RLK_STANDBY, {3796, 3797, 3798, 3799}},

    /* While connecting, the first one is RLK_INVALID. */
    {RLK_SCHEMA,
     {ER_BAD_DB_ERROR, ER_BAD_FIELD_ERROR, ER_NO_SUCH_TABLE, ER_SP_DOES_NOT_EXIST,
      ER_SP_WRONG_NO_OF_ARGS}},

    {RLK_DENIED,
     {ER_DBACCESS_DENIED_ERROR, ER_ACCESS_DENIED_ERROR, ER_HOST_NOT_PRIVILEGED,
      ER_TABLEACCESS_DENIED_ERROR, ER_COLUMNACCESS_DENIED_ERROR, ER_SPECIFIC_ACCESS_DENIED_ERROR,
      ER_PROCACCESS_DENIED_ERROR, ER_ACCESS_DENIED_NO_PASSWORD_ERROR, ER_MUST_CHANGE_PASSWORD}},
    {RLK_DENIED, {1862, 3118, 4151}}, /* password expired; account locked: MySQL, MariaDB */
    {RLK_DENIED, {CR_AUTH_PLUGIN_ERR}}, /* for example a password without TLS */
    {RLK_DENIED, {5010}}, /* MariaDB's library: the login is not one of blind_logins */

    {RLK_INVALID,
     {ER_WARN_DATA_OUT_OF_RANGE, ER_TRUNCATED_WRONG_VALUE, ER_TRUNCATED_WRONG_VALUE_FOR_FIELD,
      ER_DATA_TOO_LONG}},
    {RLK_UNSUPPORTED, {ER_NOT_SUPPORTED_AUTH_MODE, CR_VERSION_ERROR, CR_AUTH_PLUGIN_CANNOT_LOAD}},
    {RLK_IN_TX, {ER_TABLE_NOT_LOCKED, ER_XAER_RMFAIL}}, /* LOCK TABLES or XA is open */
    {RLK_REFUSED, {CR_COMMANDS_OUT_OF_SYNC}}, /* the caller has not read a result */
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

/* An error of the client library means that the connection is lost. sent: our statement was under
 * way, and may have run. A failed send does not prove that the server received nothing. */
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

/* Errors in the caller's own statement: a name that does not exist, or wrong SQL. For steps of
 * rowlock most of these mean a missing schema, and the others are faults of rowlock. */
static const unsigned short unfit[] = {
    /* names */
    1046, 1049, 1051, 1052, 1054, 1059, 1060, 1103, 1109, 1146, 1166, 1305, 1356, 1630, 1949,
    /* SQL */
    1064, 1065, 1066, 1093, 1110, 1111, 1128, 1136, 1140, 1149, 1210, 1221, 1222, 1235, 1239, 1241,
    1242, 1247, 1248, 1288, 1295, 1318, 1348, 1390, 1394, 1442, 1443, 1471, 1582, 1583, 1584, 3593,
    /* character sets, types that do not go together, columns that cannot be written */
    1115, 1253, 1267, 1270, 1271, 1273, 1301, 1906, 3105, 3144, 3995, 4078, 4079,
    /* values that are wrong for any row */
    1118, 1139, 1153, 1425, 1426, 1427, 3037, 3143, 3146, 3617, 3685, 3690, 3692, 3699, 4037, 4042};

/* Errors about a row of the caller's own tables. */
static const struct {
    enum rowlock_constraint constraint;
    unsigned short codes[32];
} violations[] = {
    {ROWLOCK_CONSTRAINT_UNIQUE, {1062, 1169, 1586, 1859}},
    {ROWLOCK_CONSTRAINT_FOREIGN_KEY, {1216, 1217, 1451, 1452, 1557, 1761, 1762}},
    /* the first is for a view; the last means that no partition takes the row */
    {ROWLOCK_CONSTRAINT_CHECK, {1369, 3819, 4025, 1526}},
    /* the last means: no value, and no default */
    {ROWLOCK_CONSTRAINT_NOT_NULL, {1048, 1263, 1364}},
    /* out of range, too long, wrong type, invalid JSON or geometry */
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

/* The client library could not read the answer. */
static const unsigned short garbled[] = {CR_MALFORMED_PACKET, CR_SERVER_HANDSHAKE_ERR,
                                         CR_UNKNOWN_ERROR, ER_NET_PACKETS_OUT_OF_ORDER};

/* The statement was killed, or a time limit ended it. */
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
    /* A plain statement is rolled back then. A procedure may not be. */
    return is_ended_early(code) ? RLK_CONTENTION : classify(code, sent);
}

/* A deadlock ends the caller's transaction. A lock timeout ends only the statement, unless
 * innodb_rollback_on_timeout is set. An error packet does not say which, so we ask with "DO 0".
 * With autocommit off, a transaction that has not begun has nothing to lose. A killed procedure may
 * have done a part of its work, so its transaction counts as over. */
static bool transaction_is_over(struct conn *c, enum rlk_class class)
{
    return c->dead || class == RLK_UNCERTAIN || mysql_query(c->mysql, "DO 0") ||
           (c->was_in_tx && !my_in_transaction(c));
}

/* /dev/null replaces the socket, so that what the client library still sends goes nowhere. In a
 * forked child the parent's session goes on. A lost connection cannot raise SIGPIPE, which TLS
 * libraries let through. If /dev/null cannot be opened, memory leaks instead. */
bool my_cut_off(MYSQL *mysql)
{
    int fd = my_socket_of(mysql);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool cut = fd < 0 || (null >= 0 && dup2(null, fd) == fd);
    if (null >= 0)
        close(null);
    return cut;
}

/* A killed procedure leaves its transaction open. We close our own connection. On an adopted
 * connection we roll back, unless the step ran inside the caller's transaction.
 *
 * A node of Galera without quorum refuses ROLLBACK too, also that of a procedure. A transaction
 * left open would go on when the node is back, with its row locks. So we cut off our own connection
 * to a server that takes no writes. */
static void abandon(struct conn *c, struct rlk_call *call, unsigned code, enum rlk_class class)
{
    if (is_client_error(code) && (class == RLK_UNSENT || class == RLK_UNCERTAIN))
        c->dead = true;
    else if ((class == RLK_STANDBY || class == RLK_READONLY) && !c->adopted)
        c->dead = my_cut_off(c->mysql) || c->dead;
    else if (class == RLK_UNCERTAIN && c->adopted && (!call->inside || c->ours))
        mysql_rollback(c->mysql);
    if (call->inside)
        call->tx_over = transaction_is_over(c, class);
    c->lost = c->lost || (c->ours && call->tx_over);
}

/* Copies the error first, because the next statement on the connection replaces it. */
static enum rlk_class note(struct conn *c, struct rlk_call *call, enum rlk_class class,
                           unsigned code, const char *sqlstate, const char *text)
{
    /* the storage engine's number of a deadlock */
    static const char deadlock[] = " 149 ";
    if (code == ER_ERROR_DURING_COMMIT && strstr(text, deadlock))
        /* Group Replication: another node's transaction won. */
        class = RLK_CONTENTION;
    rlk_diag_set(call, (int)code, sqlstate, text);
    call->late = is_ended_early(code);
    call->garbled = is_among(code, garbled, COUNT(garbled));
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
