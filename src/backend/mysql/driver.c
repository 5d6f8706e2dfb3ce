/* SPDX-License-Identifier: MIT
 *
 * The driver for MySQL and MariaDB, on MariaDB Connector/C or on Oracle's libmysqlclient 8 and later.
 * What a step says is in sql/mysql/; when it is taken and what its answer means is core's business.
 *
 * Each step is a prepared statement, prepared when a connection first needs it: that once it costs a
 * second round trip. So are statements of the caller's own tables, of which the connection keeps those
 * used last. On an adopted connection the statements go when the rowlock_db is closed.
 *
 * Both client libraries count timeouts in whole seconds and take them when they connect. Ours are
 * rounded up, and hold for each wait: a call may overrun its deadline by a second, and by as long as
 * its deadline was shorter than the handle's statement timeout. On an adopted connection they are
 * what its owner chose, which may be none. Of several hosts each gets at least a second to let us in.
 *
 * Where the URL names localhost and a port, the port is meant: left to themselves the client libraries
 * would take the Unix socket. Option files are read as the command-line client reads them: the groups
 * [client] and [rowlock], or default_group in the place of the latter. They and MYSQL_PWD are where
 * passwords belong.
 *
 * Neither server has notifications. In their place waiters make a chain of user-level locks, called bells:
 * each keeps one named by its attempt for as long as it stands in line or holds the lock exclusively, and
 * waits for that of the one before it. Whoever lets go of the lock lets go of its bell, and so wakes the
 * next one and nobody else; a session that ends does so too. Where the one before keeps no bell, or keeps
 * it on another server, nobody rings. A wait for a bell is whole seconds on MySQL, so it may overrun its
 * deadline by half of one; a shorter one is none.
 */
#include "../../backend.h"

#include <mysql.h>

#include <errmsg.h>
#include <mysqld_error.h>

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../url.h"

extern const struct rlk_backend rlk_backend_mysql;

enum {
    OLDEST_MYSQL = 80029, /* CREATE PROCEDURE IF NOT EXISTS */
    OLDEST_MARIADB = 100600, /* SKIP LOCKED */
    KEPT_MAX = 32, /* statements of the caller's own tables, prepared on one connection */
    BELLS_MAX =
        16, /* kept by one connection: as many locks as a program takes one after the other */
    FACTS_COLUMNS = 8, /* more than facts has, whose columns are not in the list of steps */
    BELL_NAME = 64 /* the longest that the servers take, which is shorter, and its end */
};

#ifdef MARIADB_PACKAGE_VERSION_ID
typedef my_bool flag;
#else
typedef bool flag;
#endif

/* A bell that this connection keeps, or may keep, and the grant that it is kept for. */
struct bell {
    int64_t attempt;
    int64_t token; /* 0: still in line */
    bool leaving; /* the grant is released when the transaction is committed */
    char name[RLK_TEXT_MAX + 1];
};

/* Where the attempt that waits now stands. */
struct place {
    int64_t attempt;
    int64_t before; /* whose bell to wait for; 0: nobody's */
    int64_t rung; /* whose was rung, though it was not our turn: not waited for again */
};

/* A statement. Where its columns go stays the same for as long as it is prepared, because libmysqlclient
 * writes to where a statement was last told to put a row when it is executed again, before it can be told
 * anew. */
struct prepared {
    MYSQL_STMT *stmt; /* NULL: this place is free */
    uint64_t id, used;
    unsigned room; /* for so many columns */
    unsigned columns;
    MYSQL_BIND *column;
    struct cell *cell;
    rowlock_value *value;
    bool texts; /* it reads texts, on a borrowed connection: see widen() */
};

struct conn {
    MYSQL *mysql;
    struct prepared steps[RLK_STEP_COUNT];
    struct prepared kept[KEPT_MAX];
    struct prepared once; /* one that is not worth keeping */
    uint64_t uses; /* counts upwards: the statement used last has the highest */
    const struct rlk_texts *texts;
    char bells[BELL_NAME - 16]; /* what the names of bells begin with; "": there are none */
    struct bell bell[BELLS_MAX];
    int bells_kept;
    struct place place;
    int64_t packet; /* the longest that the server takes; 0: not asked yet */
    int64_t answer_us; /* how long an answer may take */
    bool adopted;
    bool knows_writers; /* several_write is known, and stays as it is */
    bool several_write; /* other nodes take writes too */
    bool was_in_tx; /* the transaction had begun when the step was sent */
    bool ours; /* a transaction that frame() has begun, and not ended */
    int saved; /* savepoints of ours, each within the one before */
    bool lost; /* that one was rolled back by the server */
    bool dead; /* nothing is sent any more */
};

/* --- Where the two client libraries differ */

#ifdef MARIADB_PACKAGE_VERSION_ID

static int socket_of(MYSQL *mysql)
{
    return mysql_get_socket(mysql);
}

/* Ways of logging in that never show the server the password. */
static const char blind_logins[] = "mysql_native_password,client_ed25519,auth_gssapi_client,parsec";

/* With SSL_ENFORCE alone this library logs in to a server without TLS, and finds that out afterwards. With
 * VERIFY_SERVER_CERT it finds out before. */
static void set_tls(MYSQL *mysql, bool enforce, bool verify)
{
    const my_bool enforced = enforce ? 1 : 0, verified = verify ? 1 : 0;

    mysql_options(mysql, MYSQL_OPT_SSL_ENFORCE, &enforced);
    mysql_options(mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verified);
    if (enforce && !verify)
        mysql_options(mysql, MARIADB_OPT_RESTRICTED_AUTH, blind_logins);
}

/* An option file may have asked for it. */
static void never_reconnect(MYSQL *mysql)
{
    const my_bool no = 0;

    mysql_options(mysql, MYSQL_OPT_RECONNECT, &no);
}

/* Of a type that it does not know, such as MySQL's VECTOR, this library does not know the length either: it
 * would read beyond the row. */
static bool is_known_type(unsigned type)
{
    return type <= MYSQL_TYPE_BIT || type >= MYSQL_TYPE_JSON;
}

#else

static int socket_of(MYSQL *mysql)
{
    return mysql->net.fd;
}

static void set_tls(MYSQL *mysql, bool enforce, bool verify)
{
    const unsigned mode = verify    ? SSL_MODE_VERIFY_IDENTITY
                          : enforce ? SSL_MODE_REQUIRED
                                    : SSL_MODE_DISABLED;

    mysql_options(mysql, MYSQL_OPT_SSL_MODE, &mode);
}

/* It does not unless told to, and writes to stderr where it is told anything about it. */
static void never_reconnect(MYSQL *mysql)
{
    (void)mysql;
}

/* It refuses them itself. */
static bool is_known_type(unsigned type)
{
    (void)type;
    return true;
}

#endif

/* --- Errors */

/* What the server says, by its number. All others are RLK_REFUSED. Numbers are written out where one
 * of the two products has no name for them. */
static const struct {
    unsigned code;
    enum rlk_class class;
} classes[] = {
    /* Lost against another transaction. All of them leave nothing behind: the statement alone was
     * rolled back, or the transaction, and the procedures' handlers roll back the rest. */
    {ER_LOCK_DEADLOCK, RLK_CONTENTION}, /* 1213; under Galera also at the commit */
    {ER_LOCK_WAIT_TIMEOUT, RLK_CONTENTION}, /* 1205, of a row or of a table's definition */
    {ER_CHECKREAD, RLK_CONTENTION}, /* 1020, innodb_snapshot_isolation */
    {1689, RLK_CONTENTION}, /* wait on a lock aborted by somebody's DDL */
    {3572, RLK_CONTENTION}, /* NOWAIT met a lock */
    {ER_TOO_MANY_CONCURRENT_TRXS, RLK_CONTENTION}, /* 1637, out of undo slots */
    {ER_LOCK_TABLE_FULL, RLK_CONTENTION}, /* 1206, out of memory for locks */
    {3101, RLK_CONTENTION}, /* Group Replication: lost at certification */
    {ER_TABLE_DEF_CHANGED, RLK_CONTENTION}, /* 1412, the table was altered meanwhile */
    {ER_NEED_REPREPARE, RLK_CONTENTION}, /* 1615; see failed_step() */
    {ER_UNKNOWN_STMT_HANDLER, RLK_CONTENTION}, /* 1243; see failed_step() */

    /* Not let in, or thrown out before our statement was looked at. */
    {ER_CON_COUNT_ERROR, RLK_UNSENT}, /* 1040 */
    {ER_BAD_HOST_ERROR, RLK_UNSENT}, /* 1042, the server cannot look our name up */
    {ER_HANDSHAKE_ERROR, RLK_UNSENT}, /* 1043 */
    {ER_HOST_IS_BLOCKED, RLK_UNSENT}, /* 1129 */
    {ER_CANT_CREATE_THREAD, RLK_UNSENT}, /* 1135 */
    {ER_TOO_MANY_USER_CONNECTIONS, RLK_UNSENT}, /* 1203 */
    {ER_USER_LIMIT_REACHED, RLK_UNSENT}, /* 1226 */
    {3168, RLK_UNSENT}, /* server is not available */
    {4031, RLK_UNSENT}, /* was idle too long: sent before our statement */

    /* Killed. A procedure runs no handler then and may have been past its COMMIT; see abandon(). */
    {ER_SERVER_SHUTDOWN, RLK_UNCERTAIN}, /* 1053 */
    {ER_QUERY_INTERRUPTED, RLK_UNCERTAIN}, /* 1317, KILL QUERY */
    {1927, RLK_UNCERTAIN}, /* MariaDB: KILL CONNECTION */
    {1969, RLK_UNCERTAIN}, /* MariaDB: max_statement_time */
    {3024, RLK_UNCERTAIN}, /* MySQL: max_execution_time */
    {3169, RLK_UNCERTAIN}, /* MySQL: session was killed */
    {ER_ERROR_DURING_COMMIT, RLK_UNCERTAIN}, /* 1180 */

    {3, RLK_READONLY}, /* error writing a file: disk full */
    {1021, RLK_READONLY}, /* disk full */
    {ER_ERROR_ON_WRITE, RLK_READONLY}, /* 1026 */
    {ER_RECORD_FILE_FULL, RLK_READONLY}, /* 1114 */
    {ER_OPEN_AS_READONLY, RLK_READONLY}, /* 1036, innodb_read_only */
    {ER_UNKNOWN_COM_ERROR, RLK_READONLY}, /* 1047, Galera: a node without quorum */
    {ER_CANT_UPDATE_WITH_READLOCK, RLK_READONLY}, /* 1223, FLUSH TABLES WITH READ LOCK */
    {ER_OPTION_PREVENTS_STATEMENT, RLK_READONLY}, /* 1290, read_only */
    {ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, RLK_READONLY}, /* 1792, session set READ ONLY */
    {ER_READ_ONLY_MODE, RLK_READONLY}, /* 1836 */
    {1881, RLK_READONLY}, /* innodb_force_recovery */
    {3100, RLK_READONLY}, /* Group Replication: member cannot commit */

    {ER_BAD_DB_ERROR, RLK_SCHEMA}, /* 1049; while connecting it is RLK_INVALID */
    {ER_BAD_FIELD_ERROR, RLK_SCHEMA}, /* 1054 */
    {ER_NO_SUCH_TABLE, RLK_SCHEMA}, /* 1146 */
    {ER_SP_DOES_NOT_EXIST, RLK_SCHEMA}, /* 1305 */
    {ER_SP_WRONG_NO_OF_ARGS, RLK_SCHEMA}, /* 1318 */

    {ER_DBACCESS_DENIED_ERROR, RLK_DENIED}, /* 1044 */
    {ER_ACCESS_DENIED_ERROR, RLK_DENIED}, /* 1045 */
    {ER_HOST_NOT_PRIVILEGED, RLK_DENIED}, /* 1130 */
    {ER_TABLEACCESS_DENIED_ERROR, RLK_DENIED}, /* 1142 */
    {ER_COLUMNACCESS_DENIED_ERROR, RLK_DENIED}, /* 1143 */
    {ER_SPECIFIC_ACCESS_DENIED_ERROR, RLK_DENIED}, /* 1227 */
    {ER_PROCACCESS_DENIED_ERROR, RLK_DENIED}, /* 1370 */
    {ER_ACCESS_DENIED_NO_PASSWORD_ERROR, RLK_DENIED}, /* 1698 */
    {ER_MUST_CHANGE_PASSWORD, RLK_DENIED}, /* 1820 */
    {1862, RLK_DENIED}, /* password expired */
    {3118, RLK_DENIED}, /* MySQL: account locked */
    {4151, RLK_DENIED}, /* MariaDB: account locked */
    {CR_AUTH_PLUGIN_ERR, RLK_DENIED}, /* 2061, such as a password without TLS */
    {5010, RLK_DENIED}, /* MariaDB's library: a login that is not one of blind_logins */

    {ER_WARN_DATA_OUT_OF_RANGE, RLK_INVALID}, /* 1264 */
    {ER_TRUNCATED_WRONG_VALUE, RLK_INVALID}, /* 1292 */
    {ER_TRUNCATED_WRONG_VALUE_FOR_FIELD, RLK_INVALID}, /* 1366 */
    {ER_DATA_TOO_LONG, RLK_INVALID}, /* 1406 */

    {ER_NOT_SUPPORTED_AUTH_MODE, RLK_UNSUPPORTED}, /* 1251 */
    {CR_VERSION_ERROR, RLK_UNSUPPORTED}, /* 2007 */
    {CR_AUTH_PLUGIN_CANNOT_LOAD, RLK_UNSUPPORTED}, /* 2059 */

    {ER_TABLE_NOT_LOCKED, RLK_IN_TX}, /* 1100, the caller has LOCK TABLES */
    {ER_XAER_RMFAIL, RLK_IN_TX}, /* 1399, the caller is inside XA */

    {CR_COMMANDS_OUT_OF_SYNC, RLK_REFUSED}, /* 2014, the caller has results unread */
};

static bool is_client_error(unsigned code)
{
    return (code >= CR_MIN_ERROR && code <= CR_MAX_ERROR) || (code >= 5000 && code <= 5999);
}

/* Errors of the client library mean that the connection is lost. sent: our statement was under way,
 * so that it may have run. That a send failed does not prove that the server did not get it. */
static enum rlk_class classify(unsigned code, bool sent)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (classes[i].code == code)
            return classes[i].class;
    }
    if (!is_client_error(code))
        return RLK_REFUSED;
    if (sent)
        return RLK_UNCERTAIN;
    return code == CR_OUT_OF_MEMORY ? RLK_NOMEM : RLK_UNSENT;
}

/* What the server says of the caller's own statement when a name in it is not there, or when it is wrong: all
 * that is not so for the tables of ours, or would be nobody's fault but ours. */
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
    unsigned short code;
    enum rowlock_constraint constraint;
} violations[] = {
    {1062, ROWLOCK_CONSTRAINT_UNIQUE},
    {1169, ROWLOCK_CONSTRAINT_UNIQUE},
    {1586, ROWLOCK_CONSTRAINT_UNIQUE},
    {1859, ROWLOCK_CONSTRAINT_UNIQUE},
    {1216, ROWLOCK_CONSTRAINT_FOREIGN_KEY},
    {1217, ROWLOCK_CONSTRAINT_FOREIGN_KEY},
    {1451, ROWLOCK_CONSTRAINT_FOREIGN_KEY},
    {1452, ROWLOCK_CONSTRAINT_FOREIGN_KEY},
    {1557, ROWLOCK_CONSTRAINT_FOREIGN_KEY},
    {1761, ROWLOCK_CONSTRAINT_FOREIGN_KEY},
    {1762, ROWLOCK_CONSTRAINT_FOREIGN_KEY},
    {1369, ROWLOCK_CONSTRAINT_CHECK}, /* of a view */
    {3819, ROWLOCK_CONSTRAINT_CHECK},
    {4025, ROWLOCK_CONSTRAINT_CHECK},
    {1526, ROWLOCK_CONSTRAINT_CHECK}, /* no partition for it */
    {1048, ROWLOCK_CONSTRAINT_NOT_NULL},
    {1263, ROWLOCK_CONSTRAINT_NOT_NULL},
    {1364, ROWLOCK_CONSTRAINT_NOT_NULL}, /* no value, and no default */
    /* out of range, too long, not of this type, no JSON, no geometry */
    {1264, ROWLOCK_CONSTRAINT_VALUE},
    {1265, ROWLOCK_CONSTRAINT_VALUE},
    {1292, ROWLOCK_CONSTRAINT_VALUE},
    {1365, ROWLOCK_CONSTRAINT_VALUE},
    {1366, ROWLOCK_CONSTRAINT_VALUE},
    {1367, ROWLOCK_CONSTRAINT_VALUE},
    {1406, ROWLOCK_CONSTRAINT_VALUE},
    {1411, ROWLOCK_CONSTRAINT_VALUE},
    {1416, ROWLOCK_CONSTRAINT_VALUE},
    {1441, ROWLOCK_CONSTRAINT_VALUE},
    {1525, ROWLOCK_CONSTRAINT_VALUE},
    {1690, ROWLOCK_CONSTRAINT_VALUE},
    {1916, ROWLOCK_CONSTRAINT_VALUE},
    {3140, ROWLOCK_CONSTRAINT_VALUE},
    {3141, ROWLOCK_CONSTRAINT_VALUE},
    {3156, ROWLOCK_CONSTRAINT_VALUE},
    {3157, ROWLOCK_CONSTRAINT_VALUE},
    {3158, ROWLOCK_CONSTRAINT_VALUE},
    {3669, ROWLOCK_CONSTRAINT_VALUE},
    {4038, ROWLOCK_CONSTRAINT_VALUE},
    /* characters that the column's character set does not have */
    {1300, ROWLOCK_CONSTRAINT_VALUE},
    {1977, ROWLOCK_CONSTRAINT_VALUE},
    {3854, ROWLOCK_CONSTRAINT_VALUE},
    {3988, ROWLOCK_CONSTRAINT_VALUE},
    {4041, ROWLOCK_CONSTRAINT_VALUE},
    {4076, ROWLOCK_CONSTRAINT_VALUE},
};

static enum rowlock_constraint constraint_of(unsigned code)
{
    for (size_t i = 0; i < sizeof violations / sizeof violations[0]; i++)
        if (violations[i].code == code)
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
    for (size_t i = 0; i < sizeof unfit / sizeof unfit[0]; i++) {
        if (unfit[i] == code)
            return RLK_INVALID;
    }
    if (constraint_of(code) != ROWLOCK_CONSTRAINT_NONE)
        return RLK_VIOLATION;
    /* Unlike a procedure, a statement by itself is rolled back then. */
    if (is_ended_early(code))
        return RLK_CONTENTION;
    return classify(code, sent);
}

static bool in_transaction(const struct conn *c)
{
    return c->mysql->server_status & (SERVER_STATUS_IN_TRANS | SERVER_STATUS_IN_TRANS_READONLY);
}

/* A deadlock ends the caller's transaction, a lock timeout ends the statement unless the server is set
 * otherwise, and an error packet says nothing of it: the next answer does. Before its first statement
 * a transaction without autocommit has nothing to lose. A killed procedure has not undone its part. */
static bool transaction_is_over(struct conn *c, enum rlk_class class)
{
    return c->dead || class == RLK_UNCERTAIN || mysql_query(c->mysql, "DO 0") ||
           (c->was_in_tx && !in_transaction(c));
}

/* A killed procedure leaves its transaction open. Our own connection is closed for it; on a borrowed
 * one nothing may stay behind, unless the step ran inside the caller's transaction. */
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
    abandon(c, call, code, class);
    return class;
}

static enum rlk_class failed(struct conn *c, struct rlk_call *call, bool sent)
{
    const unsigned code = mysql_errno(c->mysql);

    return note(c, call, classify(code, sent), code, mysql_sqlstate(c->mysql),
                mysql_error(c->mysql));
}

static bool is_forgotten(unsigned code)
{
    return code == ER_NEED_REPREPARE || code == ER_UNKNOWN_STMT_HANDLER;
}

static enum rlk_class invalid(struct rlk_call *call, const char *text)
{
    rlk_diag_set(call, 0, NULL, text);
    return RLK_INVALID;
}

/* --- Is the connection fit for a step? */

/* A server that closed a quiet connection has told us already. Looking before we send turns what would
 * be uncertain into unsent. */
static bool hung_up(const struct conn *c)
{
    struct pollfd socket = {.fd = socket_of(c->mysql), .events = POLLRDHUP};

    return socket.fd < 0 || (poll(&socket, 1, 0) > 0 && socket.revents);
}

/* Inside of a transaction? The client library's idea of it is of the last success. After a failure the
 * server is asked. On our own connection there is none but what frame() has begun; that one we are inside
 * of until frame() ends it, even if the server has rolled it back. */
static enum rlk_class look(struct conn *c, struct rlk_call *call)
{
    c->dead = c->dead || hung_up(c);
    call->inside = c->ours;
    call->tx_over = c->dead && (c->ours || (c->adopted && call->where != RLK_OUTSIDE));
    if (c->dead) {
        rlk_diag_set(call, CR_SERVER_GONE_ERROR, "08006", "the server has closed the connection");
        return RLK_UNSENT;
    }
    if (!c->adopted && !c->ours)
        return RLK_DONE;
    if (mysql_errno(c->mysql) && mysql_query(c->mysql, "DO 0")) {
        const enum rlk_class class = failed(c, call, false);
        call->tx_over = c->ours || call->where != RLK_OUTSIDE;
        return class;
    }
    c->was_in_tx = in_transaction(c);
    call->inside = c->ours || c->was_in_tx || !(c->mysql->server_status & SERVER_STATUS_AUTOCOMMIT);
    return RLK_DONE;
}

/* Our transaction, because we were told so, or because somebody ended it on a borrowed connection. */
static bool is_over(const struct conn *c)
{
    return c->ours && (c->lost || !in_transaction(c));
}

/* In these, characters of two bytes may end with the byte of a backtick or a backslash, so a quoted name could
 * end where we do not see it. Our own connections speak UTF-8. The client library is told of SET NAMES by the
 * server's session tracking, which both servers have on by default. */
static enum rlk_class check_charset(const struct conn *c, struct rlk_call *call)
{
    static const char *const unsafe[] = {"gbk", "big5", "sjis", "cp932", "gb18030"};
    const char *charset = c->adopted ? mysql_character_set_name(c->mysql) : "utf8mb4";

    for (size_t i = 0; i < sizeof unsafe / sizeof unsafe[0]; i++) {
        if (strcmp(charset, unsafe[i]) == 0)
            return invalid(call,
                           "the adopted connection speaks a character set in which names cannot be "
                           "quoted (GBK, Big5, SJIS, cp932, GB18030): SET NAMES utf8mb4");
    }
    return RLK_DONE;
}

static enum rlk_class check_fit(struct conn *c, struct rlk_call *call)
{
    enum rlk_class class = check_charset(c, call);

    if (class == RLK_DONE)
        class = look(c, call);
    if (class != RLK_DONE)
        return class;
    if (call->inside && call->where == RLK_OUTSIDE) {
        call->inside = false;
        return RLK_IN_TX;
    }
    if (is_over(c)) {
        call->tx_over = true;
        rlk_diag_set(call, 0, NULL, "the transaction is over already; roll it back");
        return RLK_REFUSED;
    }
    return call->where == RLK_INSIDE && !call->inside ? RLK_NO_TX : RLK_DONE;
}

/* --- Statements without values */

static bool is_too_late(struct rlk_call *call)
{
    if (rlk_now_us() < call->deadline_us)
        return false;
    rlk_diag_set(call, 0, NULL, "no time was left to send the statement");
    return true;
}

/* 63 is what the servers call binary. JSON is told to be binary and is not. */
static rowlock_kind kind_of(const MYSQL_FIELD *field)
{
    switch (field->type) {
    case MYSQL_TYPE_NULL:
        return ROWLOCK_NULL;
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_YEAR:
        return ROWLOCK_INT;
    case MYSQL_TYPE_FLOAT:
    case MYSQL_TYPE_DOUBLE:
        return ROWLOCK_REAL;
    case MYSQL_TYPE_DECIMAL:
    case MYSQL_TYPE_NEWDECIMAL:
        return ROWLOCK_DECIMAL;
    case MYSQL_TYPE_DATE:
    case MYSQL_TYPE_NEWDATE:
    case MYSQL_TYPE_TIME:
    case MYSQL_TYPE_DATETIME:
    case MYSQL_TYPE_TIMESTAMP:
        return ROWLOCK_TIME;
    case MYSQL_TYPE_JSON:
        return ROWLOCK_TEXT;
    default:
        return field->charsetnr == 63 ? ROWLOCK_BYTES : ROWLOCK_TEXT;
    }
}

/* What came to nothing in any case when the connection was lost. */
static enum rlk_class harmless(const struct conn *c, enum rlk_class class)
{
    return class != RLK_UNCERTAIN ? class : c->dead ? RLK_UNSENT : RLK_CONTENTION;
}

/* No statement of ours changes more. */
static int64_t changed_by(MYSQL_STMT *stmt)
{
    const my_ulonglong rows = mysql_stmt_affected_rows(stmt);

    return rows > INT32_MAX ? INT32_MAX : (int64_t)rows;
}

static bool is_mariadb(const struct conn *c)
{
    return strstr(mysql_get_server_info(c->mysql), "MariaDB") != NULL;
}

/* A statement that is no step: a connection setting, BEGIN, COMMIT, or a part of the schema. */
static enum rlk_class send_text(struct conn *c, struct rlk_call *call, const char *sql,
                                size_t length)
{
    return mysql_real_query(c->mysql, sql, length) == 0 ? RLK_DONE : failed(c, call, true);
}

static enum rlk_class command(struct conn *c, struct rlk_call *call, const char *sql)
{
    return send_text(c, call, sql, strlen(sql));
}

/* One column of the first row of what the connection says about itself. */
static enum rlk_class ask(struct conn *c, struct rlk_call *call, const char *sql, unsigned column,
                          char *out, size_t cap)
{
    enum rlk_class class = command(c, call, sql);

    if (class != RLK_DONE)
        return class;
    MYSQL_RES *result = mysql_store_result(c->mysql);
    if (!result)
        return failed(c, call, true);
    MYSQL_ROW row = column < mysql_num_fields(result) ? mysql_fetch_row(result) : NULL;
    if (row && row[column])
        rlk_copy_text(out, cap, row[column], strlen(row[column]));
    mysql_free_result(result);
    return RLK_DONE;
}

/* --- Connecting */

/* What the URL's parameters say. NULL: the libraries' own defaults. */
struct wishes {
    const char *socket, *ssl_mode, *ssl_ca, *ssl_cert, *ssl_key, *default_file, *default_group;
};

static const char *const ssl_modes[] = {"disabled", "required", "verify", NULL};

static enum rlk_class read_params(struct rlk_call *call, const struct rlk_url *url,
                                  struct wishes *w)
{
    const struct {
        const char *key;
        const char **out;
    } known[] = {
        {"socket", &w->socket},
        {"ssl_mode", &w->ssl_mode},
        {"ssl_ca", &w->ssl_ca},
        {"ssl_cert", &w->ssl_cert},
        {"ssl_key", &w->ssl_key},
        {"default_file", &w->default_file},
        {"default_group", &w->default_group},
    };

    for (size_t i = 0; i < url->params; i++) {
        size_t k = 0;
        while (k < sizeof known / sizeof known[0] && strcmp(known[k].key, url->param[i].key) != 0)
            k++;
        if (k == sizeof known / sizeof known[0])
            return invalid(call,
                           "the URL has an unknown parameter; known are socket, ssl_mode, ssl_ca, "
                           "ssl_cert, ssl_key, default_file and default_group");
        *known[k].out = url->param[i].value;
    }
    return RLK_DONE;
}

static enum rlk_class check_wishes(struct rlk_call *call, const struct rlk_url *url,
                                   const struct wishes *w)
{
    size_t mode = 0;

    while (w->ssl_mode && ssl_modes[mode] && strcmp(ssl_modes[mode], w->ssl_mode) != 0)
        mode++;
    if (!ssl_modes[mode])
        return invalid(call, "ssl_mode in the URL must be disabled, required or verify");
    if (w->default_file && access(w->default_file, R_OK) != 0)
        return invalid(call, "the URL's default_file cannot be read");
    if (w->socket && url->hosts > 1)
        return invalid(call, "the URL names a socket and several hosts");
    if (!url->path)
        return invalid(call, "the URL names no database: write mysql://host/DATABASE");
    return RLK_DONE;
}

static unsigned whole_seconds(int64_t ms)
{
    return ms <= 0 ? 1 : (unsigned)((ms + 999) / 1000);
}

static void set_option(MYSQL *mysql, enum mysql_option option, const char *text)
{
    if (text)
        mysql_options(mysql, option, text);
}

/* What is left of the time for connecting, shared out among the hosts not yet tried. */
static unsigned connect_seconds(const struct rlk_call *call, size_t hosts)
{
    const int64_t ms = (call->deadline_us - rlk_now_us()) / 1000 / (int64_t)hosts;

    return hosts == 1 || ms < 1000 ? whole_seconds(ms) : (unsigned)(ms / 1000);
}

static void set_options(MYSQL *mysql, const struct rlk_target *target,
                        const struct rlk_url_host *host, const struct wishes *w, unsigned connect)
{
    const unsigned timeout = whole_seconds(target->timeout_ms), off = 0;
    const unsigned tcp = MYSQL_PROTOCOL_TCP;

    mysql_options(mysql, MYSQL_OPT_CONNECT_TIMEOUT, &connect);
    mysql_options(mysql, MYSQL_OPT_READ_TIMEOUT, &timeout);
    mysql_options(mysql, MYSQL_OPT_WRITE_TIMEOUT, &timeout);
    mysql_options(mysql, MYSQL_OPT_LOCAL_INFILE, &off);
    mysql_options(mysql, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (target->app_name)
        mysql_options4(mysql, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", target->app_name);
    if (host->name && host->port && !w->socket)
        mysql_options(mysql, MYSQL_OPT_PROTOCOL, &tcp);
    set_option(mysql, MYSQL_READ_DEFAULT_FILE, w->default_file);
    set_option(mysql, MYSQL_READ_DEFAULT_GROUP, w->default_group ? w->default_group : "rowlock");
    set_option(mysql, MYSQL_OPT_SSL_CA, w->ssl_ca);
    set_option(mysql, MYSQL_OPT_SSL_CERT, w->ssl_cert);
    set_option(mysql, MYSQL_OPT_SSL_KEY, w->ssl_key);
    if (w->ssl_mode)
        set_tls(mysql, strcmp(w->ssl_mode, "disabled") != 0, strcmp(w->ssl_mode, "verify") == 0);
}

static void close_on_exec(MYSQL *mysql)
{
    const int fd = socket_of(mysql);
    const int flags = fcntl(fd, F_GETFD);

    if (flags >= 0)
        fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

/* MariaDB's library ends the text with the number that the search for the name failed with. */
static bool is_unknown_host(const struct rlk_call *call)
{
    const char *number = strrchr(call->text, '(');

    return call->native == CR_UNKNOWN_HOST && number && atoi(number + 1) == EAI_NONAME;
}

static enum rlk_class connect_to(struct conn *c, struct rlk_call *call, const struct rlk_url *url,
                                 const struct rlk_url_host *host, const struct wishes *w)
{
    const bool tls = w->ssl_mode && strcmp(w->ssl_mode, "disabled") != 0;

    if (!mysql_real_connect(c->mysql, host->name, url->user, url->password, url->path, host->port,
                            w->socket, CLIENT_MULTI_RESULTS)) {
        const enum rlk_class class = failed(c, call, false);
        if (call->native == 5010) /* its own text names another plugin */
            rlk_diag_set(call, 5010, NULL,
                         "the server wants a login that shows it the password, and with "
                         "ssl_mode=required it may not have TLS; use ssl_mode=verify");
        return class == RLK_SCHEMA ? RLK_INVALID
                                   : class; /* no such database: ours to make it is not */
    }
    close_on_exec(c->mysql);
    never_reconnect(c->mysql);
    if (tls && !mysql_get_ssl_cipher(c->mysql)) {
        rlk_diag_set(call, 0, NULL, "the URL asks for TLS, but the server did not offer it");
        return RLK_UNSUPPORTED;
    }
    return RLK_DONE;
}

/* As the server said it when we connected: a proxy must tell the version of what is behind it. */
static enum rlk_class check_version(struct conn *c, struct rlk_call *call)
{
    static const char disguise[] = "5.5.5-"; /* MariaDB before 11 says so to old clients */
    const char *version = mysql_get_server_info(c->mysql);
    const bool mariadb = is_mariadb(c);
    long number = 0;
    char text[160];

    if (mariadb && strncmp(version, disguise, sizeof disguise - 1) == 0)
        version += sizeof disguise - 1;
    const char *at = version;
    for (int part = 0; part < 3; part++) {
        char *end = NULL;
        number = number * 100 + strtol(at, &end, 10) % 100;
        at = *end == '.' ? end + 1 : end;
    }
    if (number >= (mariadb ? OLDEST_MARIADB : OLDEST_MYSQL))
        return RLK_DONE;
    snprintf(text, sizeof text, "the server is %s %.60s; MySQL 8.0.29 or MariaDB 10.6 is needed",
             mariadb ? "MariaDB" : "MySQL", version);
    rlk_diag_set(call, 0, NULL, text);
    return RLK_UNSUPPORTED;
}

/* A server's number of a session may be another's after a restart; with the port beside it that the server
 * sees us come from, it is not. Without a port, on a Unix socket, nothing is delayed on its way. */
static enum rlk_class name_session(struct conn *c, struct rlk_call *call, char *out, size_t cap)
{
    char host[300] = "";
    const enum rlk_class class =
        ask(c, call, "SELECT host FROM information_schema.processlist WHERE id = CONNECTION_ID()",
            0, host, sizeof host);
    const char *colon = strrchr(host, ':');
    const unsigned long port = colon ? strtoul(colon + 1, NULL, 10) : 0;

    if (port)
        snprintf(out, cap, "%lu %lu", mysql_thread_id(c->mysql), port);
    return c->dead ? class : RLK_DONE; /* who may not look has a session without a name */
}

/* As well as can be done: not to be allowed to is no obstacle. */
static enum rlk_class end_session(struct conn *c, struct rlk_call *call, const char *session)
{
    char sql[200], found[24] = "";
    struct rlk_call unheard = {.deadline_us = call->deadline_us};

    char *rest = NULL;
    const unsigned long id = strtoul(session, &rest, 10), port = strtoul(rest, NULL, 10);

    if (!id || !port)
        return RLK_DONE;
    snprintf(sql, sizeof sql,
             "SELECT id FROM information_schema.processlist WHERE id = %lu AND host LIKE '%%:%lu'"
             " AND user = SUBSTRING_INDEX(USER(), '@', 1)",
             id, port);
    enum rlk_class class = ask(c, &unheard, sql, 0, found, sizeof found);
    if (class == RLK_DONE && found[0]) {
        snprintf(sql, sizeof sql, "KILL %lu", id);
        class = command(c, &unheard, sql);
    }
    return c->dead ? class : RLK_DONE;
}

/* What is ours to set on our own connection. An option file may have asked for another character set.
 * A wait for a lock ends at the server before it ends here: as contention, with the connection whole. A
 * value that does not fit is an error, instead of another value in its place. */
static enum rlk_class settle(struct conn *c, struct rlk_call *call, const struct rlk_target *target)
{
    const unsigned wait = whole_seconds(target->timeout_ms / 2);
    char sql[240];
    const int length = snprintf(
        sql, sizeof sql,
        "SET autocommit = 1, innodb_lock_wait_timeout = %u, lock_wait_timeout = %u,"
        " sql_mode = CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'STRICT_TRANS_TABLES'), NAMES utf8mb4",
        wait, wait);

    return send_text(c, call, sql, (size_t)length);
}

/* What SHOW says about replication, as far as this server has such a thing: else "". */
struct replicas {
    char read_only[16], super_read_only[16], innodb_read_only[16]; /* settings */
    char log_bin[8], galera[8], sync_wait[8], group[48], single_primary[8], consistency[40];
    char semi_enabled[8], semi_ms[24];
    char nodes[16], ready[8], count[16], semi[8], semi_count[16]; /* status */
    char member[24]; /* of a group; "": not known */
};

static void take_shown(struct replicas *r, const char *name, const char *value)
{
    const struct {
        const char *name;
        char *out;
        size_t cap;
    } known[] = {
        {"read_only", r->read_only, sizeof r->read_only},
        {"super_read_only", r->super_read_only, sizeof r->super_read_only},
        {"innodb_read_only", r->innodb_read_only, sizeof r->innodb_read_only},
        {"log_bin", r->log_bin, sizeof r->log_bin},
        {"wsrep_on", r->galera, sizeof r->galera},
        {"wsrep_sync_wait", r->sync_wait, sizeof r->sync_wait},
        {"group_replication_group_name", r->group, sizeof r->group},
        {"group_replication_single_primary_mode", r->single_primary, sizeof r->single_primary},
        {"group_replication_consistency", r->consistency, sizeof r->consistency},
        {"rpl_semi_sync_master_enabled", r->semi_enabled, sizeof r->semi_enabled},
        {"rpl_semi_sync_source_enabled", r->semi_enabled, sizeof r->semi_enabled},
        {"rpl_semi_sync_master_timeout", r->semi_ms, sizeof r->semi_ms},
        {"rpl_semi_sync_source_timeout", r->semi_ms, sizeof r->semi_ms},
        {"wsrep_cluster_size", r->nodes, sizeof r->nodes},
        {"wsrep_ready", r->ready, sizeof r->ready},
        {"Slaves_connected", r->count, sizeof r->count},
        {"Rpl_semi_sync_master_status", r->semi, sizeof r->semi},
        {"Rpl_semi_sync_source_status", r->semi, sizeof r->semi},
        {"Rpl_semi_sync_master_clients", r->semi_count, sizeof r->semi_count},
        {"Rpl_semi_sync_source_clients", r->semi_count, sizeof r->semi_count},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, name) == 0)
            rlk_copy_text(known[i].out, known[i].cap, value, strlen(value));
    }
}

static enum rlk_class show(struct conn *c, struct rlk_call *call, const char *sql,
                           struct replicas *r)
{
    const enum rlk_class class = command(c, call, sql);

    if (class != RLK_DONE)
        return class;
    MYSQL_RES *result = mysql_store_result(c->mysql);
    if (!result)
        return failed(c, call, true);
    for (MYSQL_ROW row; mysql_num_fields(result) == 2 && (row = mysql_fetch_row(result));)
        take_shown(r, row[0] ? row[0] : "", row[1] ? row[1] : "");
    mysql_free_result(result);
    return RLK_DONE;
}

static bool is_on(const char *text)
{
    return strcmp(text, "ON") == 0;
}

/* Only a member that is ONLINE, and sees more than half of the group, can commit. MySQL tells it to those
 * only who may read that table. */
static enum rlk_class ask_member(struct conn *c, struct rlk_call *call, struct replicas *r)
{
    static const char sql[] =
        "SELECT IF(MAX(MEMBER_ID = @@server_uuid AND MEMBER_STATE = 'ONLINE') = 0, 'not ONLINE',"
        " IF(2 * SUM(MEMBER_STATE = 'UNREACHABLE') < COUNT(*), 'ONLINE', 'without majority'))"
        " FROM performance_schema.replication_group_members";
    struct rlk_call unheard = {.deadline_us = call->deadline_us};

    if (!r->group[0])
        return RLK_DONE;
    const enum rlk_class class = ask(c, &unheard, sql, 0, r->member, sizeof r->member);
    return c->dead ? class : RLK_DONE;
}

/* A node of a cluster that cannot commit at present. */
static bool is_cut_off(const struct replicas *r)
{
    return (is_on(r->galera) && !is_on(r->ready)) ||
           (r->group[0] && r->member[0] && strcmp(r->member, "ONLINE") != 0);
}

static enum rlk_class takes_no_writes(struct rlk_call *call, const char *why)
{
    rlk_diag_set(call, ER_OPTION_PREVENTS_STATEMENT, NULL, why);
    return RLK_READONLY;
}

static bool is_set(const char *setting)
{
    return setting[0] && strcmp(setting, "OFF") != 0;
}

/* Users with more privileges could write to a server that is read-only all the same, which would be worse. */
static enum rlk_class check_writable(struct conn *c, struct rlk_call *call)
{
    struct replicas r = {0};
    enum rlk_class class = show(c, call,
                                "SHOW GLOBAL VARIABLES WHERE Variable_name IN "
                                "('read_only', 'super_read_only', 'innodb_read_only', "
                                "'wsrep_on', 'group_replication_group_name')",
                                &r);

    if (class == RLK_DONE && is_on(r.galera))
        class = show(c, call, "SHOW GLOBAL STATUS WHERE Variable_name = 'wsrep_ready'", &r);
    if (class == RLK_DONE)
        class = ask_member(c, call, &r);
    if (class != RLK_DONE)
        return class;
    if (is_set(r.super_read_only))
        return takes_no_writes(call, "the server has super_read_only set");
    if (is_set(r.read_only))
        return takes_no_writes(call, "the server has read_only set");
    if (is_set(r.innodb_read_only))
        return takes_no_writes(call, "the server has innodb_read_only set");
    if (is_cut_off(&r))
        return takes_no_writes(
            call, is_on(r.galera)
                      ? "the node of Galera is not ready (wsrep_ready=OFF)"
                      : "the member of the group is not ONLINE, or sees no majority of it");
    return RLK_DONE;
}

/* The first of those hosts that are left to try. */
static enum rlk_class try_host(struct conn *c, struct rlk_call *call,
                               const struct rlk_target *target, const struct rlk_url *url,
                               size_t number, const struct wishes *w, struct rlk_hello *hello)
{
    const struct rlk_url_host *host = &url->host[number];

    c->dead = false;
    c->mysql = mysql_init(NULL);
    if (!c->mysql)
        return RLK_NOMEM;
    set_options(c->mysql, target, host, w, connect_seconds(call, url->hosts - number));
    enum rlk_class class = connect_to(c, call, url, host, w);
    if (class == RLK_DONE)
        class = check_version(c, call);
    if (class == RLK_DONE)
        class = settle(c, call, target);
    if (class == RLK_DONE && url->hosts > 1)
        class = check_writable(c, call);
    if (class == RLK_DONE)
        class = name_session(c, call, hello->session, sizeof hello->session);
    return class == RLK_DONE ? end_session(c, call, target->lingering) : class;
}

static void close_conn(void *conn, bool in_child);

static bool tls_failed(const struct rlk_call *call)
{
    return call->native == CR_SSL_CONNECTION_ERROR && rlk_now_us() < call->deadline_us;
}

/* The client library has one number for TLS that is refused and for a server that goes away during the
 * handshake. In the second case a second attempt does not come as far as that. */
static enum rlk_class open_host(struct conn *c, struct rlk_call *call,
                                const struct rlk_target *target, const struct rlk_url *url,
                                size_t number, const struct wishes *w, struct rlk_hello *hello)
{
    enum rlk_class class = try_host(c, call, target, url, number, w, hello);

    if (!tls_failed(call))
        return class;
    close_conn(c, false);
    call->native = 0;
    class = try_host(c, call, target, url, number, w, hello);
    return tls_failed(call) ? RLK_UNSUPPORTED : class;
}

static enum rlk_class none_will_do(struct rlk_call *call, size_t hosts, bool read_only)
{
    char text[sizeof call->text + 80];

    snprintf(text, sizeof text, "none of the URL's %zu servers %s; the last one: %s", hosts,
             read_only ? "takes writes" : "can be reached", call->text);
    rlk_diag_set(call, call->native, call->sqlstate, text);
    return read_only ? RLK_READONLY : RLK_UNSENT;
}

/* A server that cannot be reached or takes no writes is the wrong one of several; one that refuses us
 * for another reason is not passed over, so that the reason is seen. */
static enum rlk_class open_url(struct conn *c, struct rlk_call *call,
                               const struct rlk_target *target, const struct rlk_url *url,
                               struct rlk_hello *hello)
{
    struct wishes wishes = {0};
    bool read_only = false;
    enum rlk_class class = read_params(call, url, &wishes);

    if (class == RLK_DONE)
        class = check_wishes(call, url, &wishes);
    if (class != RLK_DONE)
        return class;
    for (size_t i = 0; i < url->hosts; i++) {
        close_conn(c, false);
        class = open_host(c, call, target, url, i, &wishes, hello);
        if (class != RLK_UNSENT && class != RLK_UNCERTAIN && class != RLK_READONLY)
            return class;
        read_only = read_only || class == RLK_READONLY;
    }
    if (url->hosts > 1)
        return none_will_do(call, url->hosts, read_only);
    return is_unknown_host(call) && !target->known ? RLK_INVALID : class;
}

/* Done by mysql_init() too, but not safely when threads meet there. */
static void start_library(void)
{
    mysql_library_init(0, NULL, NULL);
}

static enum rlk_class open_conn(void *conn, struct rlk_call *call, const struct rlk_target *target,
                                const struct rlk_texts *texts, struct rlk_hello *hello)
{
    static pthread_once_t started = PTHREAD_ONCE_INIT;
    struct conn *c = conn;
    struct rlk_url url;
    const char *why = NULL;

    pthread_once(&started, start_library);
    c->texts = texts;
    c->answer_us = target->timeout_ms * 1000;
    const int split = rlk_url_split(target->url, &url, &why);
    enum rlk_class class = split == -2   ? RLK_NOMEM
                           : split == -1 ? invalid(call, why)
                                         : open_url(c, call, target, &url, hello);
    hello->several = url.hosts > 1;
    if (class == RLK_DONE)
        rlk_copy_text(hello->schema, sizeof hello->schema, url.path, strlen(url.path));
    rlk_url_free(&url);
    return class;
}

static enum rlk_class adopt(void *conn, struct rlk_call *call, void *vendor,
                            const struct rlk_texts *texts, struct rlk_hello *hello)
{
    struct conn *c = conn;

    *c = (struct conn){.mysql = vendor, .texts = texts, .adopted = true};
    enum rlk_class class = check_version(c, call);
    if (class == RLK_DONE)
        class = check_charset(c, call);
    if (class == RLK_DONE)
        class = ask(c, call, "SELECT DATABASE()", 0, hello->schema, sizeof hello->schema);
    if (class != RLK_DONE || hello->schema[0])
        return class;
    rlk_copy_text(hello->schema, sizeof hello->schema, texts->schema, strlen(texts->schema));
    return hello->schema[0]
               ? RLK_DONE
               : invalid(call,
                         "the adopted connection has no database selected, and no schema is set");
}

/* Both client libraries keep something for each thread. */
static void enter_thread(void)
{
    mysql_thread_init();
}

static void leave_thread(void)
{
    mysql_thread_end();
}

/* With /dev/null in the place of the socket, all that the client library still wants to say goes
 * nowhere: in a child the parent's session goes on, and a lost connection cannot raise SIGPIPE, which
 * TLS libraries let through. If that cannot be had, memory is lost instead. */
static bool cut_off(MYSQL *mysql)
{
    const int fd = socket_of(mysql);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const bool cut = fd < 0 || (null >= 0 && dup2(null, fd) == fd);

    if (null >= 0)
        close(null);
    return cut;
}

/* Its memory goes after the statement, which knows where it is. */
static void forget_statement(struct prepared *p)
{
    if (p->stmt)
        mysql_stmt_close(p->stmt);
    rlk_free(p->column);
    rlk_free(p->cell);
    rlk_free(p->value);
    *p = (struct prepared){0};
}

/* Our own connection is closed before its statements, which then have nothing to tell the server. A
 * borrowed one stays; in a child its statements do too, since closing them would speak on it. */
static void close_conn(void *conn, bool in_child)
{
    struct conn *c = conn;

    if (!c->mysql || (in_child && c->adopted))
        return;
    if (!c->adopted) {
        if ((in_child || c->dead || hung_up(c)) && !cut_off(c->mysql))
            return;
        mysql_close(c->mysql);
    }
    for (int step = 0; step < RLK_STEP_COUNT; step++)
        forget_statement(&c->steps[step]);
    for (int i = 0; i < KEPT_MAX; i++)
        forget_statement(&c->kept[i]);
    forget_statement(&c->once);
    c->mysql = NULL;
}

/* --- Tables and server */

static enum rlk_class query(void *conn, struct rlk_call *call, struct rlk_query *q);

/* The length of the first statement. It ends with a semicolon at the end of a line that is not
 * indented, which lines inside of procedures are. */
static size_t statement_length(const char *text)
{
    const char *line = text;

    while (*line) {
        const size_t length = strcspn(line, "\n");
        const char *next = line + length + (line[length] == '\n');
        if (length > 0 && line[0] != ' ' && line[length - 1] == ';')
            return (size_t)(next - text);
        line = next;
    }
    return (size_t)(line - text);
}

/* The procedures that are there with another body than ours, as objects.sql names them: "procedure `x`". */
struct stale {
    char names[20 * 80];
    size_t length;
};

static int note_stale(void *context, const rowlock_value *cells, size_t count)
{
    enum { OBJECT, PROBLEM, MENDED, COLUMNS };
    struct stale *stale = context;

    if (count != COLUMNS || cells[MENDED].kind != ROWLOCK_INT || cells[MENDED].number != 1 ||
        cells[OBJECT].length >= sizeof stale->names - stale->length)
        return 0;
    memcpy(stale->names + stale->length, cells[OBJECT].text, cells[OBJECT].length);
    stale->length += cells[OBJECT].length;
    return 0;
}

static enum rlk_class find_stale(struct conn *c, struct rlk_call *call, struct stale *stale)
{
    const rowlock_value schema = rowlock_text(c->texts->sql[RLK_STEP_SCHEMA]);
    struct rlk_query q = {.step = RLK_STEP_OBJECTS,
                          .sql = c->texts->sql[RLK_STEP_OBJECTS],
                          .values = &schema,
                          .count = 1,
                          .each = note_stale,
                          .context = stale};

    *stale = (struct stale){.length = 0};
    return query(c, call, &q);
}

/* "`x`" of the first "`database`.`x`" in a statement. */
static void first_name(const char *statement, char *out, size_t cap)
{
    const char *name = strstr(statement, "`.`");

    snprintf(out, cap, "`%.*s`", name ? (int)strcspn(name + 3, "`") : 0, name ? name + 3 : "");
}

/* The statement of a step that is about this name first of all, or NULL. */
static const char *statement_of(const char *sql, const char *name)
{
    for (; *sql; sql += statement_length(sql)) {
        char found[80];
        first_name(sql, found, sizeof found);
        if (strcmp(found, name) == 0)
            return sql;
    }
    return NULL;
}

/* Called in the moment between the two, it is not there: ESCHEMA. */
static enum rlk_class replace(struct conn *c, struct rlk_call *call, const char *name)
{
    const char *drop = statement_of(c->texts->sql[RLK_STEP_DROP], name);
    const char *create = statement_of(c->texts->sql[RLK_STEP_SCHEMA], name);
    enum rlk_class class = RLK_DONE;

    if (drop && create)
        class = send_text(c, call, drop, statement_length(drop));
    if (class == RLK_DONE && drop && create)
        class = send_text(c, call, create, statement_length(create));
    return class;
}

static enum rlk_class replace_stale(struct conn *c, struct rlk_call *call)
{
    struct stale stale;
    enum rlk_class class = find_stale(c, call, &stale);

    for (const char *at = stale.names; class == RLK_DONE && (at = strchr(at, '`'));) {
        char name[80];
        const int length = (int)strcspn(at + 1, "`");
        snprintf(name, sizeof name, "`%.*s`", length, at + 1);
        at += length + 2;
        class = replace(c, call, name);
    }
    return class;
}

/* One at a time: to send them together would need a setting that a borrowed connection may not have. */
static enum rlk_class install(void *conn, struct rlk_call *call)
{
    struct conn *c = conn;
    const char *sql = c->texts->sql[RLK_STEP_SCHEMA];
    enum rlk_class class = check_fit(c, call);

    if (class == RLK_DONE)
        class = replace_stale(c, call);
    while (class == RLK_DONE && *sql) {
        const size_t length = statement_length(sql);
        class = send_text(c, call, sql, length);
        sql += length;
    }
    return class;
}

/* Bells of two installations on one server must not meet. The identity is hexadecimal unless somebody has
 * changed it; of anything else no name is made, since names are pasted into the text of await.sql. A
 * borrowed connection keeps no bells: they would stay behind on it. */
static void name_bells(struct conn *c)
{
    static const char hex[] = "0123456789abcdefABCDEF";
    const char *identity = c->texts->identity;
    const size_t length = strspn(identity, hex);

    c->bells[0] = '\0';
    if (!c->adopted && length == 32 && !identity[length])
        snprintf(c->bells, sizeof c->bells, "rowlock:%.32s:", identity);
}

/* "REPEATABLE-READ" to "repeatable read". */
static void plain_words(char *text)
{
    for (; *text; text++) {
        if (*text == '-')
            *text = ' ';
        else if (*text >= 'A' && *text <= 'Z')
            *text = (char)(*text - 'A' + 'a');
    }
}

static enum rlk_class isolation(struct conn *c, struct rlk_call *call, struct rlk_facts *out)
{
    static const char sql[] = "SHOW SESSION VARIABLES WHERE Variable_name IN "
                              "('tx_isolation', 'transaction_isolation')";
    const enum rlk_class class = ask(c, call, sql, 1, out->isolation, sizeof out->isolation);

    plain_words(out->isolation);
    out->any_isolation = true; /* no step reads within a transaction what it then relies upon */
    return class;
}

/* MySQL tells the number of its replicas to those only who may replicate; MariaDB tells everybody. */
static enum rlk_class count_replicas(struct conn *c, struct rlk_call *call, struct replicas *r)
{
    struct rlk_call denied = {.deadline_us = call->deadline_us};
    const enum rlk_class class = command(c, &denied, "SHOW REPLICAS");

    if (class != RLK_DONE)
        return class == RLK_DENIED || class == RLK_REFUSED ? RLK_DONE : class;
    MYSQL_RES *result = mysql_store_result(c->mysql);
    if (!result)
        return failed(c, call, true);
    snprintf(r->count, sizeof r->count, "%llu", (unsigned long long)mysql_num_rows(result));
    mysql_free_result(result);
    return RLK_DONE;
}

static void describe_group(const struct replicas *r, struct rlk_facts *out)
{
    out->replication_known = r->member[0] != '\0';
    if (out->replication_known)
        snprintf(out->replication, sizeof out->replication, "Group Replication, this member: %s",
                 r->member);
    else
        snprintf(out->replication, sizeof out->replication,
                 "unknown: this user may not SELECT from "
                 "performance_schema.replication_group_members");
}

/* No timeout at all cannot be set: a day is as good as none. */
static void describe_semi(const struct replicas *r, struct rlk_facts *out)
{
    static const long long day_ms = 86400000;

    if (!is_on(r->semi) || strcmp(r->semi_count, "0") == 0) {
        out->replicates_late = true;
        snprintf(out->replication, sizeof out->replication,
                 "semi-synchronous, but at present no commit waits for a replica");
        return;
    }
    out->may_turn_late = atoll(r->semi_ms) < day_ms;
    snprintf(out->replication, sizeof out->replication, "semi-synchronous, replicas: %s%s%s%s",
             r->semi_count, out->may_turn_late ? " (asynchronous after " : "",
             out->may_turn_late ? r->semi_ms : "", out->may_turn_late ? " ms)" : "");
}

static void describe_replicas(const struct replicas *r, struct rlk_facts *out)
{
    char *text = out->replication;
    const size_t cap = sizeof out->replication;

    out->replication_known = true;
    out->cut_off = is_cut_off(r);
    if (is_on(r->galera)) {
        snprintf(text, cap, "Galera, nodes: %s%s", r->nodes, out->cut_off ? ", not ready" : "");
    } else if (r->group[0]) {
        describe_group(r, out);
    } else if (!is_on(r->log_bin)) {
        snprintf(text, cap, "none, there is no binary log");
    } else if (is_on(r->semi_enabled)) {
        describe_semi(r, out);
    } else if (!r->count[0]) {
        out->replication_known = false;
        snprintf(text, cap,
                 "unknown: this user may not see replicas, and none is semi-synchronous");
    } else if (strcmp(r->count, "0") == 0) {
        snprintf(text, cap, "no replica is connected");
    } else {
        out->replicates_late = true;
        snprintf(text, cap, "asynchronous, replicas: %s", r->count);
    }
}

/* Where several nodes may write, does a read on one see what was committed on another before? Who writes
 * where is not known to a node of Galera. A group in multi-primary mode is made for it. */
static void describe_nodes(const struct replicas *r, struct rlk_facts *out)
{
    const bool group = strcmp(r->single_primary, "OFF") == 0;
    const bool waits = strncmp(r->consistency, "BEFORE_AND", 10) == 0 ||
                       strcmp(r->consistency, "BEFORE") == 0 ||
                       strcmp(r->consistency, "AFTER") == 0;

    if (is_on(r->galera) && strcmp(r->nodes, "1") != 0) {
        snprintf(out->nodes, sizeof out->nodes, "Galera, wsrep_sync_wait %s", r->sync_wait);
        out->nodes_lag = atoi(r->sync_wait) & 1 ? RLK_NEVER : RLK_PERHAPS;
    } else if (r->group[0] && group) {
        snprintf(out->nodes, sizeof out->nodes, "multi-primary, group_replication_consistency %s",
                 r->consistency);
        out->nodes_lag = waits ? RLK_NEVER : RLK_SURELY;
    }
}

static enum rlk_class replication(struct conn *c, struct rlk_call *call, struct rlk_facts *out)
{
    struct replicas r = {0};
    enum rlk_class class =
        show(c, call,
             "SHOW GLOBAL VARIABLES WHERE Variable_name IN "
             "('log_bin', 'wsrep_on', 'wsrep_sync_wait', 'group_replication_group_name', "
             "'group_replication_single_primary_mode', 'group_replication_consistency', "
             "'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled', "
             "'rpl_semi_sync_master_timeout', 'rpl_semi_sync_source_timeout')",
             &r);

    if (class == RLK_DONE)
        class = show(c, call,
                     "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_cluster_size', "
                     "'wsrep_ready', 'Slaves_connected', 'Rpl_semi_sync_master_status', "
                     "'Rpl_semi_sync_source_status', 'Rpl_semi_sync_master_clients', "
                     "'Rpl_semi_sync_source_clients')",
                     &r);
    if (class == RLK_DONE)
        class = ask_member(c, call, &r);
    if (class == RLK_DONE && !r.count[0])
        class = count_replicas(c, call, &r);
    describe_replicas(&r, out);
    describe_nodes(&r, out);
    return class;
}

static const char *text_of(const rowlock_value *cell)
{
    return cell->kind == ROWLOCK_NULL ? "" : cell->text;
}

/* Whether it is read-only is told as a number, or in newer versions by a word. */
static int read_facts(void *context, const rowlock_value *cells, size_t count)
{
    enum { SERVER, READ_ONLY, NOW, FLUSH, ENGINES, TYPE, MAY_LOCK, READS_ONLY };
    struct rlk_facts *out = context;

    if (!rlk_cells_fit("t.mnTTbb", cells, count))
        return 1;
    const rowlock_value *read_only = &cells[READ_ONLY];
    const char *type = text_of(&cells[TYPE]);
    rlk_copy_text(out->server, sizeof out->server, cells[SERVER].text, cells[SERVER].length);
    out->read_only = read_only->kind == ROWLOCK_INT ? read_only->number != 0
                                                    : strncmp(text_of(read_only), "OFF", 3) != 0;
    out->now_us = cells[NOW].number;
    rlk_copy_text(out->engine, sizeof out->engine, text_of(&cells[ENGINES]), cells[ENGINES].length);
    out->crash_safe = strcmp(out->engine, "InnoDB") == 0;
    out->bytewise = cells[TYPE].length == 9 && memcmp(type, "varbinary", 9) == 0;
    out->durable = cells[FLUSH].number == 1;
    out->may_lock = cells[MAY_LOCK].number != 0;
    out->reads_only = cells[READS_ONLY].number != 0;
    snprintf(out->collation, sizeof out->collation, "%.*s",
             out->bytewise ? 6 : (int)cells[TYPE].length, out->bytewise ? "binary" : type);
    snprintf(out->durability, sizeof out->durability, "innodb_flush_log_at_trx_commit %d",
             (int)cells[FLUSH].number);
    return 0;
}

static enum rlk_class prepare_step(struct conn *c, struct rlk_call *call, enum rlk_step step);

/* The server says when it prepares a statement whether this user may run it. */
static enum rlk_class ask_rights(struct conn *c, struct rlk_call *call, struct rlk_facts *out)
{
    static const enum rlk_step steps[] = {
        RLK_STEP_RELEASE,     RLK_STEP_LEAVE,     RLK_STEP_ONCE_CLAIM, RLK_STEP_ONCE_COMPLETE,
        RLK_STEP_ONCE_FORGET, RLK_STEP_WALK_SAVE, RLK_STEP_WALK_END};
    enum rlk_class class = RLK_DONE;

    for (size_t i = 0; out->may_lock && i < sizeof steps / sizeof *steps; i++) {
        class = prepare_step(c, call, steps[i]);
        out->may_lock = class == RLK_DONE;
    }
    return class == RLK_DENIED || class == RLK_SCHEMA ? RLK_DONE : class;
}

static enum rlk_class facts(void *conn, struct rlk_call *call, struct rlk_facts *out)
{
    struct conn *c = conn;
    rowlock_value values[RLK_MARKERS];
    struct rlk_query q = {.step = RLK_STEP_FACTS,
                          .sql = c->texts->sql[RLK_STEP_FACTS],
                          .values = values,
                          .count = c->texts->order[RLK_STEP_FACTS].count,
                          .each = read_facts,
                          .context = out};

    rlk_arrange(c->texts, RLK_STEP_FACTS, NULL, values);
    enum rlk_class class = query(c, call, &q);
    if (class == RLK_DONE && !out->server[0])
        return rlk_diag_misfit(call, RLK_STEP_FACTS);
    if (class == RLK_DONE)
        class = isolation(c, call, out);
    if (class == RLK_DONE)
        class = ask_rights(c, call, out);
    return class == RLK_DONE ? replication(c, call, out) : class;
}

/* --- Bells */

static struct bell *bell_of_attempt(struct conn *c, int64_t attempt)
{
    for (int i = 0; i < c->bells_kept; i++) {
        if (c->bell[i].attempt == attempt)
            return &c->bell[i];
    }
    return NULL;
}

static struct bell *bell_of_grant(struct conn *c, const char *name, int64_t token)
{
    for (int i = 0; i < c->bells_kept; i++) {
        if (c->bell[i].token == token && strcmp(c->bell[i].name, name) == 0)
            return &c->bell[i];
    }
    return NULL;
}

static void forget(struct conn *c, struct bell *bell)
{
    *bell = c->bell[--c->bells_kept];
}

static void write_bell(const struct conn *c, int64_t attempt, char out[BELL_NAME])
{
    snprintf(out, BELL_NAME, "%s%016llX", c->bells, (unsigned long long)attempt);
}

static enum rlk_class run_step(struct conn *c, struct rlk_call *call, struct rlk_query *q);

static int read_gone(void *context, const rowlock_value *cells, size_t count)
{
    *(bool *)context = rlk_cells_fit("b", cells, count) && cells[0].number != 0;
    return 0;
}

/* Let go of a bell; with a grant in the same step if there is one: held is its name, slot, owner and token. As
 * the grant is gone by then, whoever is woken finds it so. */
static enum rlk_class ring(struct conn *c, struct rlk_call *call, struct bell *bell,
                           const rowlock_value *held, bool *found)
{
    const rowlock_value none = rowlock_null();
    char name[BELL_NAME];

    write_bell(c, bell->attempt, name);
    const rowlock_value values[] = {held ? held[0] : none, held ? held[1] : none,
                                    held ? held[2] : none, held ? held[3] : none,
                                    rowlock_text(name)};
    struct rlk_query q = {.step = RLK_STEP_RING,
                          .sql = c->texts->sql[RLK_STEP_RING],
                          .values = values,
                          .count = sizeof values / sizeof values[0],
                          .each = read_gone,
                          .context = found};

    *found = false;
    const enum rlk_class class = run_step(c, call, &q);
    if (class == RLK_DONE)
        forget(c, bell);
    return class;
}

/* After a step that has succeeded: it does not fail for this. A bell that stays costs the next in line
 * what it takes until it looks by itself; one of a lost session does not stay. */
static void let_go(struct conn *c, const struct rlk_call *call, struct bell *bell)
{
    struct rlk_call unheard = {.deadline_us = call->deadline_us};
    bool found;

    if (bell && !c->dead)
        (void)ring(c, &unheard, bell, NULL, &found);
}

/* Noted before it is taken, so that it is let go of whatever becomes of the step that takes it. The oldest
 * makes room: it is most likely one of a grant that was forgotten, or released by another connection. */
static void note_bell(struct conn *c, const struct rlk_call *call, int64_t attempt)
{
    if (bell_of_attempt(c, attempt))
        return;
    if (c->bells_kept == BELLS_MAX)
        let_go(c, call, &c->bell[0]);
    if (c->bells_kept < BELLS_MAX)
        c->bell[c->bells_kept++] = (struct bell){.attempt = attempt};
}

/* What has been released in a transaction is gone for others when it is committed. */
static void end_leaving(struct conn *c, const struct rlk_call *call, bool committed)
{
    for (int i = c->bells_kept - 1; i >= 0; i--) {
        struct bell *bell = &c->bell[i];
        if (committed && bell->leaving)
            let_go(c, call, bell);
        else
            bell->leaving = false;
    }
}

/* A grant was made. If others may be granted it beside us then it is the next one's turn; else the bell is
 * kept until the release. */
static void keep_bell(struct conn *c, const struct rlk_call *call, const struct rlk_claim *claim,
                      int64_t token)
{
    struct bell *bell = bell_of_attempt(c, claim->attempt);

    if (bell && claim->permits != 0) {
        let_go(c, call, bell);
    } else if (bell) {
        bell->token = token;
        rlk_copy_text(bell->name, sizeof bell->name, claim->name, strlen(claim->name));
    }
}

/* The fourth value is the attempt. */
static void prepare_bell(struct conn *c, const struct rlk_call *call, struct rlk_query *q)
{
    name_bells(c);
    *q->own = c->bells[0] ? rowlock_text(c->bells) : rowlock_null();
    if (c->bells[0])
        note_bell(c, call, q->values[3].number);
}

/* Where nobody keeps a bell, nobody is woken by it. */
static bool note_news(void *conn, struct rlk_call *call, enum rlk_news news,
                      const struct rlk_claim *claim, int64_t number)
{
    struct conn *c = conn;

    switch (news) {
    case RLK_ENQUEUED:
        if (c->place.attempt != claim->attempt)
            c->place = (struct place){.attempt = claim->attempt};
        c->place.before = number == c->place.rung ? 0 : number;
        return c->place.before != 0;
    case RLK_TAKEN:
        keep_bell(c, call, claim, number);
        return false;
    case RLK_GONE_GRANT:
        let_go(c, call, bell_of_grant(c, claim->name, number));
        return false;
    default:
        let_go(c, call, bell_of_attempt(c, claim->attempt));
        return false;
    }
}

/* await.sql with its values in the places of the question marks: a statement that is sent without waiting
 * for its answer has no others. They are hexadecimal digits and a number, both made here. */
static void write_await(const struct conn *c, const char *seconds, char *out, size_t cap)
{
    char bell[BELL_NAME], quoted[BELL_NAME + 2];
    const char *const value[] = {quoted, seconds, quoted};
    const char *in = c->texts->sql[RLK_STEP_AWAIT];
    size_t used = 0;

    write_bell(c, c->place.before, bell);
    snprintf(quoted, sizeof quoted, "'%s'", bell);
    for (int i = 0; i < 3; i++) {
        const int before = (int)strcspn(in, "?");
        used += (size_t)snprintf(out + used, cap - used, "%.*s%s", before, in, value[i]);
        in += before + (in[before] == '?');
    }
    snprintf(out + used, cap - used, "%s", in);
}

/* Waits below one second MySQL rounds up or to nothing. */
static bool write_seconds(const struct conn *c, int64_t wait_us, char *out, size_t cap)
{
    static const int64_t longest_us = INT64_C(3600000000);
    const int64_t left_us = wait_us < longest_us ? wait_us : longest_us;
    const long long whole = (left_us + 500000) / 1000000;

    if (is_mariadb(c))
        snprintf(out, cap, "%lld.%06lld", (long long)(left_us / 1000000),
                 (long long)(left_us % 1000000));
    else
        snprintf(out, cap, "%lld", whole);
    return whole > 0 || is_mariadb(c);
}

static bool is_readable(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};

    return poll(&one, 1, 0) > 0;
}

/* Does the answer come, before that time and before the descriptor becomes readable? */
static bool answer_comes(const struct conn *c, int64_t until_us, int wake)
{
    struct pollfd fd[] = {{.fd = socket_of(c->mysql), .events = POLLIN},
                          {.fd = wake, .events = POLLIN}};
    int n = 0;

    do {
        const int64_t left_us = until_us - rlk_now_us();
        n = poll(fd, 2, left_us > 0 ? (int)(left_us / 1000 + 1) : 0);
    } while (n < 0 && errno == EINTR);
    return n > 0 && fd[0].revents;
}

/* What the server refuses it will refuse again, such as a wait for one that waits for us: then nobody rings
 * here. A bell that was rung is not waited for again either, whoever keeps it next. */
static enum rlk_class take_bell(struct conn *c, struct rlk_call *call, enum rlk_bell *out)
{
    MYSQL_RES *result = NULL;
    MYSQL_ROW row = NULL;

    if (mysql_read_query_result(c->mysql) == 0 && (result = mysql_store_result(c->mysql)))
        row = mysql_fetch_row(result);
    if (row && row[0])
        *out = strcmp(row[0], "1") == 0 ? RLK_RUNG : RLK_SILENT;
    const enum rlk_class class = result ? RLK_DONE : failed(c, call, true);
    mysql_free_result(result);
    if (*out != RLK_SILENT) {
        c->place.rung = c->place.before;
        c->place.before = 0;
    }
    return c->dead ? class : RLK_DONE;
}

/* Sent without waiting for the answer, so that the wait can be ended from here: by giving up the
 * connection, since a server takes no word in while it waits itself. */
static enum rlk_class await(void *conn, struct rlk_call *call, const struct rlk_claim *claim,
                            int wake, enum rlk_bell *out)
{
    struct conn *c = conn;
    char sql[300], seconds[32];
    const int64_t left_us = call->deadline_us - rlk_now_us();

    *out = left_us > 0 ? RLK_DEAF : RLK_SILENT;
    if (left_us <= 0 || c->place.attempt != claim->attempt || !c->place.before ||
        !write_seconds(c, left_us, seconds, sizeof seconds))
        return RLK_DONE;
    const enum rlk_class class = check_fit(c, call);
    if (class != RLK_DONE)
        return class;
    if (is_readable(wake)) {
        *out = RLK_INTERRUPTED;
        return RLK_DONE;
    }
    write_await(c, seconds, sql, sizeof sql);
    if (mysql_send_query(c->mysql, sql, strlen(sql)))
        return failed(c, call, true);
    if (answer_comes(c, call->deadline_us + c->answer_us, wake))
        return take_bell(c, call, out);
    *out = RLK_INTERRUPTED;
    c->dead = true;
    rlk_diag_set(call, CR_SERVER_LOST, "08006",
                 "the wait was given up, and its connection with it");
    return RLK_UNCERTAIN;
}

/* --- Steps that need to know more */

/* Do other nodes take writes too, which see no row lock of ours? A group can change its mode, so that one
 * is asked each time. */
static enum rlk_class look_for_writers(struct conn *c, struct rlk_call *call)
{
    struct replicas r = {0};
    enum rlk_class class = check_fit(c, call);

    if (class != RLK_DONE || c->knows_writers)
        return class;
    class = show(c, call,
                 "SHOW GLOBAL VARIABLES WHERE Variable_name IN "
                 "('wsrep_on', 'group_replication_single_primary_mode')",
                 &r);
    c->several_write = is_on(r.galera) || strcmp(r.single_primary, "OFF") == 0;
    c->knows_writers = class == RLK_DONE && !r.single_primary[0];
    return class;
}

/* --- Statements with values */

enum { SHORT_TEXT = 48 }; /* more than the longest date, time or 64-bit integer */

/* One column of the row fetched last. */
struct cell {
    rowlock_kind kind;
    flag null;
    unsigned long length;
    int64_t number;
    double real;
    char text[SHORT_TEXT];
};

/* A connection of our own has been told to speak UTF-8. */
static bool reads_texts(const struct conn *c, const struct prepared *p)
{
    MYSQL_RES *shape = c->adopted ? mysql_stmt_result_metadata(p->stmt) : NULL;
    bool texts = false;

    for (unsigned i = 0; shape && i < mysql_num_fields(shape); i++)
        texts = texts || kind_of(mysql_fetch_field_direct(shape, i)) == ROWLOCK_TEXT;
    mysql_free_result(shape);
    return texts;
}

/* A statement that the server does not know any more has not been executed: query() prepares it again. */
static enum rlk_class failed_query(struct conn *c, struct rlk_call *call, struct prepared *p,
                                   bool sent)
{
    const unsigned code = mysql_stmt_errno(p->stmt);
    const char *state = mysql_stmt_sqlstate(p->stmt), *text = mysql_stmt_error(p->stmt);

    if (is_forgotten(code) ||
        code == CR_NEW_STMT_METADATA) { /* then it has run; but such a text only reads */
        rlk_diag_set(call, (int)code, state, text);
        forget_statement(p);
        return RLK_CONTENTION;
    }
    call->constraint = constraint_of(code);
    return note(c, call, classify_query(code, sent), code, state, text);
}

/* The place of this statement, or the free one, or that of the one used longest ago. */
static struct prepared *find_statement(struct conn *c, uint64_t id)
{
    struct prepared *oldest = &c->kept[0];

    if (id == 0)
        return &c->once;
    for (int i = 0; i < KEPT_MAX; i++) {
        if (c->kept[i].id == id)
            return &c->kept[i];
        if (c->kept[i].used < oldest->used)
            oldest = &c->kept[i];
    }
    forget_statement(oldest);
    return oldest;
}

static bool make_cells(struct prepared *p, unsigned room)
{
    p->room = room;
    p->column = rlk_alloc((room + 1) * sizeof *p->column);
    p->cell = rlk_alloc((room + 1) * sizeof *p->cell);
    p->value = rlk_alloc((room + 1) * sizeof *p->value);
    return p->column && p->cell && p->value;
}

/* Nothing of ours runs while a statement is prepared, so losing the connection here is RLK_UNSENT. A
 * statement without a connection lost it to the caller's mysql_change_user() or the like. */
static enum rlk_class prepare_query(struct conn *c, struct rlk_call *call, struct prepared *p,
                                    const struct rlk_query *q)
{
    const flag yes = 1;

    if (p->stmt && p->stmt->mysql)
        return RLK_DONE;
    forget_statement(p);
    p->stmt = mysql_stmt_init(c->mysql);
    if (!p->stmt)
        return RLK_NOMEM;
    mysql_stmt_attr_set(p->stmt, STMT_ATTR_UPDATE_MAX_LENGTH, &yes);
    enum rlk_class class = RLK_DONE;
    if (mysql_stmt_prepare(p->stmt, q->sql, strlen(q->sql)))
        class = failed_query(c, call, p, false);
    else if (!make_cells(p, mysql_stmt_field_count(p->stmt)))
        class = RLK_NOMEM;
    p->columns = p->room;
    if (class != RLK_DONE) {
        forget_statement(p);
        return class;
    }
    p->id = q->id;
    p->texts = reads_texts(c, p);
    return RLK_DONE;
}

/* Digits that the servers' decimals can hold. Of others that were said to be a number, they would make
 * another number without a word. */
static bool is_decimal(const char *text, size_t length)
{
    size_t digits[2] = {0, 0}; /* before the point, and behind it */
    int part = 0;

    for (size_t i = length > 0 && (*text == '-' || *text == '+') ? 1 : 0; i < length; i++) {
        if (text[i] == '.' && part == 0)
            part = 1;
        else if (text[i] >= '0' && text[i] <= '9')
            digits[part]++;
        else
            return false;
    }
    return digits[0] >= 1 && digits[0] <= 35 && digits[1] <= 30;
}

/* Texts as bytes, as in give_text(). Digits say that they are a number, or the server would count with
 * doubles. */
static void bind_value(MYSQL_BIND *bind, const rowlock_value *value)
{
    switch (value->kind) {
    case ROWLOCK_NULL:
        bind->buffer_type = MYSQL_TYPE_NULL;
        return;
    case ROWLOCK_INT:
    case ROWLOCK_BOOL:
        bind->buffer_type = MYSQL_TYPE_LONGLONG;
        bind->buffer = (void *)&value->number;
        return;
    case ROWLOCK_REAL:
        bind->buffer_type = MYSQL_TYPE_DOUBLE;
        bind->buffer = (void *)&value->real;
        return;
    default:
        bind->buffer_type = MYSQL_TYPE_BLOB;
        if (value->kind == ROWLOCK_DECIMAL && is_decimal(value->text, value->length))
            bind->buffer_type = MYSQL_TYPE_NEWDECIMAL;
        bind->buffer = (void *)value->text;
        bind->buffer_length = value->length;
        return;
    }
}

/* A server that gets too long a packet closes the connection, and whether the client library still reads
 * why is a matter of luck. Short ones are not worth the question. */
static enum rlk_class check_length(struct conn *c, struct rlk_call *call, const MYSQL_BIND *values,
                                   size_t count)
{
    enum { SHORT = 65536, AROUND_VALUE = 11, AROUND_ALL = 64 };
    int64_t length = AROUND_ALL;
    char text[24] = "";

    for (size_t i = 0; i < count; i++)
        length += (int64_t)values[i].buffer_length + AROUND_VALUE;
    if (length <= SHORT)
        return RLK_DONE;
    const enum rlk_class class =
        c->packet ? RLK_DONE : ask(c, call, "SELECT @@max_allowed_packet", 0, text, sizeof text);
    if (text[0])
        c->packet = strtoll(text, NULL, 10);
    if (class != RLK_DONE || length <= c->packet)
        return harmless(c, class);
    return invalid(call, "the values are longer than the server's max_allowed_packet");
}

static MYSQL_BIND *bind_values(const struct rlk_query *q)
{
    MYSQL_BIND *bind = rlk_alloc((q->count + 1) * sizeof *bind);

    for (size_t i = 0; bind && i < q->count; i++)
        bind_value(&bind[i], &q->values[i]);
    return bind;
}

/* A borrowed connection may want its texts in a character set that does not have all their characters.
 * For the time of one statement it gets them in UTF-8: SQL alone cannot do it, since what a column is, and
 * so whether it is to be converted, is seen in the answer only. Asked each time, because a server need not
 * say so when it describes a statement again. *restore is what to send afterwards, "" for nothing. */
static enum rlk_class widen(struct conn *c, struct rlk_call *call, char *restore, size_t cap)
{
    char charset[64] = "";
    const enum rlk_class class =
        ask(c, call, "SELECT @@character_set_results", 0, charset, sizeof charset);

    if (class != RLK_DONE || strcmp(charset, "utf8mb4") == 0)
        return harmless(c, class);
    if (charset[0])
        snprintf(restore, cap, "SET character_set_results = '%s'", charset);
    else
        snprintf(restore, cap, "SET character_set_results = NULL");
    return harmless(c, command(c, call, "SET character_set_results = utf8mb4"));
}

/* Once more, if somebody has killed it. */
static void make_narrow(struct conn *c, const struct rlk_call *call, const char *restore)
{
    struct rlk_call unheard = {.deadline_us = call->deadline_us, .inside = call->inside};

    for (int left = restore[0] ? 2 : 0; left > 0 && !c->dead; left--) {
        if (command(c, &unheard, restore) == RLK_DONE)
            return;
    }
}

static bool knows_types(const struct prepared *p)
{
    MYSQL_RES *shape = p->columns ? mysql_stmt_result_metadata(p->stmt) : NULL;
    bool known = true;

    for (unsigned i = 0; shape && i < mysql_num_fields(shape); i++)
        known = known && is_known_type(mysql_fetch_field_direct(shape, i)->type);
    mysql_free_result(shape);
    return known;
}

/* What has columns only reads, and may well be prepared and executed again: its table was altered. */
static enum rlk_class misfit_query(struct rlk_call *call, struct prepared *p)
{
    const bool reads = p->columns > 0;

    rlk_diag_set(call, 0, NULL, "the server answered with other columns than it had announced");
    if (reads)
        forget_statement(p);
    return reads ? RLK_REFUSED : RLK_MISFIT;
}

/* Up to where the rows are in memory. */
static enum rlk_class execute(struct conn *c, struct rlk_call *call, struct prepared *p,
                              MYSQL_BIND *values)
{
    char restore[120] = "";
    enum rlk_class class = p->texts ? widen(c, call, restore, sizeof restore) : RLK_DONE;

    if (class == RLK_DONE &&
        (mysql_stmt_bind_param(p->stmt, values) || mysql_stmt_execute(p->stmt)))
        class = failed_query(c, call, p, true);
    else if (class == RLK_DONE && mysql_stmt_field_count(p->stmt) != p->columns)
        class = misfit_query(call, p);
    else if (class == RLK_DONE && p->columns && !knows_types(p))
        class = invalid(call, "a column has a type that this client library does not know");
    else if (class == RLK_DONE && p->columns && mysql_stmt_store_result(p->stmt))
        class = failed_query(c, call, p, true);
    make_narrow(c, call, restore);
    return class;
}

/* Twice, if the server wants the statement anew, or if a column has become a text since it was prepared. A
 * statement with columns only reads, so it may well be executed again. */
static enum rlk_class send_query(struct conn *c, struct rlk_call *call, struct prepared *p,
                                 const struct rlk_query *q, MYSQL_BIND *values)
{
    enum rlk_class class = RLK_DONE;
    bool again = true;

    for (int left = 2; again && left > 0; left--) {
        class = prepare_query(c, call, p, q);
        if (class != RLK_DONE)
            return class;
        if (mysql_stmt_param_count(p->stmt) != q->count)
            return invalid(call, "the statement has more or fewer parameters than values");
        class = execute(c, call, p, values);
        again = !p->stmt;
        if (class == RLK_DONE && p->columns && !p->texts && reads_texts(c, p)) {
            mysql_stmt_free_result(p->stmt);
            again = p->texts = true;
        }
    }
    return class;
}

/* Of what kind the columns are: not a matter of the statement alone, since a table may be altered. Returns
 * what the texts of a row take at most, or -1 if these are not the columns that there is room for. */
static int64_t describe_columns(struct prepared *p)
{
    MYSQL_RES *shape = mysql_stmt_result_metadata(p->stmt);
    int64_t room = shape && mysql_num_fields(shape) == p->columns ? 0 : -1;

    for (unsigned i = 0; room >= 0 && i < p->columns; i++) {
        const MYSQL_FIELD *field = mysql_fetch_field_direct(shape, i);
        struct cell *cell = &p->cell[i];
        MYSQL_BIND *column = &p->column[i];
        *column = (MYSQL_BIND){.length = &cell->length, .is_null = &cell->null};
        column->is_unsigned = field->flags & UNSIGNED_FLAG ? 1 : 0;
        cell->kind = kind_of(field);
        if (cell->kind == ROWLOCK_DECIMAL || cell->kind == ROWLOCK_TEXT ||
            cell->kind == ROWLOCK_BYTES) {
            column->buffer_length = field->max_length;
            room += (int64_t)field->max_length;
        }
    }
    mysql_free_result(shape);
    return room;
}

static void place_column(MYSQL_BIND *column, struct cell *cell, char **text)
{
    switch (cell->kind) {
    case ROWLOCK_NULL:
    case ROWLOCK_INT:
        column->buffer_type = MYSQL_TYPE_LONGLONG;
        column->buffer = &cell->number;
        return;
    case ROWLOCK_REAL:
        column->buffer_type = MYSQL_TYPE_DOUBLE;
        column->buffer = &cell->real;
        return;
    case ROWLOCK_TIME:
        column->buffer_type = MYSQL_TYPE_STRING;
        column->buffer = cell->text;
        column->buffer_length = sizeof cell->text;
        return;
    default:
        column->buffer_type = MYSQL_TYPE_BLOB;
        column->buffer = *text;
        *text += column->buffer_length;
        return;
    }
}

/* False if it did not come whole. */
static bool read_cell(const MYSQL_BIND *column, struct cell *cell, rowlock_value *out)
{
    *out = rowlock_null();
    if (cell->null || cell->kind == ROWLOCK_NULL)
        return true;
    if (cell->kind == ROWLOCK_REAL) {
        *out = rowlock_real(cell->real);
    } else if (cell->kind != ROWLOCK_INT) {
        *out = rowlock_textn(cell->kind, column->buffer, cell->length);
        return cell->length <= column->buffer_length;
    } else if (column->is_unsigned && cell->number < 0) {
        snprintf(cell->text, sizeof cell->text, "%llu", (unsigned long long)cell->number);
        *out = rowlock_decimal(cell->text);
    } else {
        *out = rowlock_int(cell->number);
    }
    return true;
}

static enum rlk_class read_rows(struct conn *c, struct rlk_call *call, struct prepared *p,
                                const struct rlk_query *q)
{
    bool more = mysql_stmt_bind_result(p->stmt, p->column) == 0, whole = true;
    int got = more ? 0 : 1;

    while (more && (got = mysql_stmt_fetch(p->stmt)) == 0) {
        for (unsigned i = 0; i < p->columns; i++)
            whole = read_cell(&p->column[i], &p->cell[i], &p->value[i]) && whole;
        more = whole && q->each(q->context, p->value, p->columns) == 0;
    }
    if (whole && (got == 0 || got == MYSQL_NO_DATA))
        return RLK_DONE;
    if (whole && got != MYSQL_DATA_TRUNCATED)
        return failed_query(c, call, p, true);
    rlk_diag_set(call, 0, NULL, "the client library did not give a value as a whole");
    return RLK_REFUSED;
}

static enum rlk_class give_rows(struct conn *c, struct rlk_call *call, struct prepared *p,
                                const struct rlk_query *q)
{
    const int64_t room = describe_columns(p);
    enum rlk_class class = RLK_NOMEM;

    if (room < 0)
        return misfit_query(call, p);
    char *texts = rlk_alloc((size_t)room + 1), *text = texts;

    for (unsigned i = 0; texts && i < p->columns; i++)
        place_column(&p->column[i], &p->cell[i], &text);
    if (texts)
        class = read_rows(c, call, p, q);
    rlk_free(texts);
    return class;
}

/* With CLIENT_FOUND_ROWS an update counts rows that it found, and of these a trigger may have left some as they
 * were: "Rows matched: 3  Changed: 2  Warnings: 0". */
static int64_t changed_rows(struct conn *c, const struct prepared *p)
{
    const char *info = mysql_info(c->mysql);
    const char *changed = info ? strstr(info, "Changed: ") : NULL;

    return changed ? strtoll(changed + 9, NULL, 10) : changed_by(p->stmt);
}

/* MariaDB says of a statement that KILL QUERY meets at its very beginning that all went well, and that it
 * changed nothing. Core looks again before it believes that. */
static enum rlk_class run_theirs(struct conn *c, struct rlk_call *call, struct rlk_query *q)
{
    if (is_too_late(call))
        return RLK_CONTENTION;
    MYSQL_BIND *values = bind_values(q);
    if (!values)
        return RLK_NOMEM;
    struct prepared *p = find_statement(c, q->id);
    enum rlk_class class = check_length(c, call, values, q->count);
    if (class == RLK_DONE)
        class = send_query(c, call, p, q, values);
    if (class == RLK_DONE && p->columns == 0)
        q->changed = changed_rows(c, p);
    else if (class == RLK_DONE && q->each)
        class = give_rows(c, call, p, q);
    if (p->stmt && class == RLK_DONE) {
        mysql_stmt_free_result(p->stmt);
        p->used = ++c->uses;
    }
    /* One whose rows could not be read would wait for them for ever when it is executed again. */
    if (q->id == 0 || class != RLK_DONE)
        forget_statement(p);
    rlk_free(values);
    return class;
}

/* --- Steps */

/* A statement that the server has forgotten, or wants anew, is prepared by the next try. */
static enum rlk_class failed_step(struct conn *c, struct rlk_call *call, struct prepared *p,
                                  bool sent)
{
    const unsigned code = mysql_stmt_errno(p->stmt);
    const enum rlk_class class = note(c, call, classify(code, sent), code,
                                      mysql_stmt_sqlstate(p->stmt), mysql_stmt_error(p->stmt));

    if (is_forgotten(code))
        forget_statement(p);
    return class;
}

static enum rlk_class prepare_step(struct conn *c, struct rlk_call *call, enum rlk_step step)
{
    struct prepared *p = &c->steps[step];
    const char *sql = c->texts->sql[step];
    const flag yes = 1;

    if (p->stmt && p->stmt->mysql)
        return RLK_DONE;
    forget_statement(p);
    p->stmt = mysql_stmt_init(c->mysql);
    if (!p->stmt || !make_cells(p, (unsigned)strlen(rlk_steps[step].columns) + FACTS_COLUMNS))
        return RLK_NOMEM;
    mysql_stmt_attr_set(p->stmt, STMT_ATTR_UPDATE_MAX_LENGTH, &yes);
    if (mysql_stmt_prepare(p->stmt, sql, strlen(sql)) == 0)
        return RLK_DONE;
    const enum rlk_class class = failed_step(c, call, p, false);
    forget_statement(p);
    return class;
}

/* The statement is prepared anew by the next try: what it has not told yet is thrown away. */
static enum rlk_class misfit_step(struct rlk_call *call, struct prepared *p, enum rlk_step step)
{
    forget_statement(p);
    return rlk_diag_misfit(call, step);
}

/* An answer of more and more results is not read to its end, which costs our own connection. */
static bool gives_up(struct conn *c, const struct rlk_call *call, MYSQL_STMT *stmt)
{
    const bool more = mysql_stmt_field_count(stmt) > 0 || mysql_stmt_more_results(stmt);

    if (!more || rlk_now_us() < call->deadline_us || c->adopted)
        return false;
    c->dead = true;
    cut_off(c->mysql);
    return true;
}

/* A procedure answers with a result for each SELECT and one more of its own, which is where an error
 * after the first rows, such as one of its COMMIT, is told. */
static enum rlk_class end_step(struct conn *c, struct rlk_call *call, struct prepared *p,
                               enum rlk_step step, bool fits)
{
    int more = 0;

    do {
        mysql_stmt_free_result(p->stmt);
        more = mysql_stmt_next_result(p->stmt);
        fits = fits && (more != 0 || mysql_stmt_field_count(p->stmt) == 0);
    } while (more == 0 && !gives_up(c, call, p->stmt));
    if (more > 0)
        return failed_step(c, call, p, true);
    return fits ? RLK_DONE : misfit_step(call, p, step);
}

/* The first result. Before the client library is told where a row goes: it believes that there is room for each
 * column. */
static enum rlk_class read_step(struct conn *c, struct rlk_call *call, struct prepared *p,
                                struct rlk_query *q)
{
    p->columns = mysql_stmt_field_count(p->stmt);
    if (p->columns > p->room || !knows_types(p))
        return end_step(c, call, p, q->step, false);
    q->counted = p->columns == 0;
    if (q->counted)
        q->changed = changed_rows(c, p);
    enum rlk_class class = RLK_DONE;
    if (p->columns > 0 && mysql_stmt_store_result(p->stmt))
        class = failed_step(c, call, p, true);
    else if (p->columns > 0 && q->each)
        class = give_rows(c, call, p, q);
    if (class == RLK_DONE)
        return end_step(c, call, p, q->step, true);
    forget_statement(p); /* one whose rows could not be read would wait for them for ever */
    return class;
}

static enum rlk_class run_step(struct conn *c, struct rlk_call *call, struct rlk_query *q)
{
    struct prepared *p = &c->steps[q->step];
    MYSQL_BIND values[RLK_MARKERS] = {0};

    for (size_t i = 0; i < q->count; i++)
        bind_value(&values[i], &q->values[i]);
    enum rlk_class class = check_length(c, call, values, q->count);
    if (class == RLK_DONE)
        class = prepare_step(c, call, q->step);
    if (class != RLK_DONE)
        return class;
    if (is_too_late(call))
        return RLK_CONTENTION;
    if ((q->count && mysql_stmt_bind_param(p->stmt, values)) || mysql_stmt_execute(p->stmt))
        return failed_step(c, call, p, true);
    return read_step(c, call, p, q);
}

/* MariaDB says of a DELETE that KILL QUERY meets at its very beginning that all went well, and that there
 * was no such row. So what it says is taken only when it says it again. */
static enum rlk_class run_surely(struct conn *c, struct rlk_call *call, struct rlk_query *q)
{
    const enum rlk_class class = run_step(c, call, q);
    const bool nothing = c->steps[q->step].columns == 0 && q->changed == 0;

    return class == RLK_DONE && q->rings && nothing && is_mariadb(c) ? run_step(c, call, q) : class;
}

/* What the procedure did not find is asked for as all others ask. */
static enum rlk_class release(struct conn *c, struct rlk_call *call, struct rlk_query *q)
{
    struct bell *bell = bell_of_grant(c, q->values[0].text, q->values[3].number);
    bool found = false;

    if (bell && call->where == RLK_OUTSIDE) {
        const enum rlk_class class = ring(c, call, bell, q->values, &found);
        q->changed = found;
        if (class != RLK_DONE || found)
            return class;
        bell = NULL;
    }
    const enum rlk_class class = run_surely(c, call, q);
    if (bell && class == RLK_DONE)
        bell->leaving = q->changed > 0;
    return class;
}

static enum rlk_class query(void *conn, struct rlk_call *call, struct rlk_query *q)
{
    struct conn *c = conn;
    enum rlk_class class = check_fit(c, call);

    q->changed = 0;
    if (class == RLK_DONE && q->step == RLK_STEP_GUARD)
        class = look_for_writers(c, call);
    if (class != RLK_DONE)
        return class;
    switch (q->step) {
    case RLK_STEP_NONE:
        return run_theirs(c, call, q);
    case RLK_STEP_RELEASE:
        return release(c, call, q);
    case RLK_STEP_GUARD:
        *q->own = rowlock_int(c->several_write);
        return run_step(c, call, q);
    case RLK_STEP_ENQUEUE:
        prepare_bell(c, call, q);
        return run_step(c, call, q);
    default:
        return run_surely(c, call, q);
    }
}

/* --- Transactions of ours, and savepoints */

static enum rlk_class begin_ours(struct conn *c, struct rlk_call *call)
{
    if (call->inside) {
        call->inside = false;
        return RLK_IN_TX;
    }
    const enum rlk_class class = command(c, call, "START TRANSACTION");
    c->ours = class == RLK_DONE;
    c->lost = false;
    return harmless(c, class);
}

static enum rlk_class roll_back(struct conn *c, struct rlk_call *call)
{
    enum rlk_class class = RLK_DONE;

    if (in_transaction(c))
        class = command(c, call, "ROLLBACK AND NO CHAIN NO RELEASE");
    if (class == RLK_DONE) {
        c->ours = c->lost = false;
        end_leaving(c, call, false);
    }
    return harmless(c, class);
}

/* Only what we have been told by the server is known to be undone: a transaction that is not there, and
 * was not lost in a statement of ours, somebody else has ended. */
static enum rlk_class end_lost(struct conn *c, struct rlk_call *call)
{
    const bool told = c->lost;
    const enum rlk_class class = roll_back(c, call);

    call->tx_over = true;
    rlk_diag_set(call, 0, NULL,
                 told ? "the server had rolled the transaction back"
                      : "the transaction was ended by a statement of yours");
    return class != RLK_DONE ? class : told ? RLK_CONTENTION : RLK_NO_TX;
}

/* Whatever the session's completion_type says, a transaction ends, and the session does not. */
static enum rlk_class commit(struct conn *c, struct rlk_call *call)
{
    const enum rlk_class class = command(c, call, "COMMIT AND NO CHAIN NO RELEASE");

    if (c->dead || (class != RLK_DONE && in_transaction(c)))
        return class;
    c->ours = c->lost = false;
    end_leaving(c, call, class == RLK_DONE);
    return class;
}

/* Each within another has a name of its own: a second one of the same name would take its place. */
static enum rlk_class savepoint(struct conn *c, struct rlk_call *call, enum rlk_frame what)
{
    static const char *const verbs[] = {[RLK_SAVE] = "SAVEPOINT",
                                        [RLK_KEEP] = "RELEASE SAVEPOINT",
                                        [RLK_UNDO] = "ROLLBACK TO SAVEPOINT"};
    char sql[60], keep[60];

    if (!call->inside || is_over(c)) {
        call->tx_over = call->inside;
        return RLK_NO_TX;
    }
    const int depth = what == RLK_SAVE ? c->saved + 1 : c->saved;
    snprintf(sql, sizeof sql, "%s rowlock_%d", verbs[what], depth);
    snprintf(keep, sizeof keep, "%s rowlock_%d", verbs[RLK_KEEP], depth);
    enum rlk_class class = command(c, call, sql);
    if (what == RLK_SAVE)
        c->saved += class == RLK_DONE;
    else if (c->saved > 0)
        c->saved--;
    if (class == RLK_DONE && what == RLK_UNDO)
        class = command(c, call, keep);
    if (class != RLK_SCHEMA)
        return class;
    call->tx_over = true; /* a savepoint goes with its transaction only */
    return RLK_NO_TX;
}

static enum rlk_class frame(void *conn, struct rlk_call *call, enum rlk_frame what)
{
    struct conn *c = conn;
    const enum rlk_class class = look(c, call);

    if (class != RLK_DONE || what == RLK_LOOK)
        return class;
    if (what == RLK_BEGIN)
        return begin_ours(c, call);
    if (what != RLK_COMMIT && what != RLK_ROLLBACK)
        return savepoint(c, call, what);
    if (!c->ours)
        return RLK_NO_TX;
    if (what == RLK_ROLLBACK)
        return roll_back(c, call);
    return is_over(c) ? end_lost(c, call) : commit(c, call);
}

static const char *const schemes[] = {"mysql", "mariadb", NULL};

const struct rlk_backend rlk_backend_mysql = {
    .name = "mysql",
    .schemes = schemes,
    .conn_size = sizeof(struct conn),
    .quote = '`',
    .marker = '?',
    .packing = RLK_JSON,
    .backslash_escapes = true,
    .tells_no_rows = true,

    .open = open_conn,
    .adopt = adopt,
    .enter_thread = enter_thread,
    .leave_thread = leave_thread,
    .close = close_conn,

    .install = install,
    .facts = facts,

    .note = note_news,
    .await = await,

    .query = query,
    .frame = frame,
};
