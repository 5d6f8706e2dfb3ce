/* SPDX-License-Identifier: MIT
 *
 * Lock loops as one would write them by hand with the MySQL client library: prepared statements,
 * and no safety but what the row work itself gives.
 */
#include "bench.h"

#include <mysql.h>
#include <mysqld_error.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HAND "rowlock_bench_hand"
#define OURS "rowlock_bench_ours"
#define NOW "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
#define COLUMNS                                                                                 \
    "(name, slot, permits, owner, token, attempt, acquired, expires, ttl, host, pid, program, " \
    "note)"

enum statement { BUMP, INSERT, SINGLE, DELETE, LOOK, RENEW, SWEEP, RENEW_ALL, ATTEMPT, STATEMENTS };
enum { VALUES_MAX = 8, COLUMNS_MAX = 12, TEXT_CAP = 256, LEASE_CAP = 700 };

static const char *const statements[STATEMENTS] = {
    [BUMP] = "UPDATE rowlock_tokens SET token = LAST_INSERT_ID(token + 1), granted = " NOW
             " WHERE name = ?",
    [INSERT] = "INSERT INTO rowlock_locks " COLUMNS " VALUES (?, 0, 0, ?, ?, 4711, " NOW ", " NOW
               " + ?, ?, ?, ?, 'bench', '')",
    [SINGLE] = "CALL hand_grant(?, ?, ?, ?, ?)",
    [DELETE] = "DELETE FROM rowlock_locks WHERE name = ? AND slot = 0 AND owner = ? AND token = ?",
    [LOOK] =
        "SELECT name, slot, owner, token, acquired, expires, ttl, renewals, host, pid, program,"
        " note FROM rowlock_locks WHERE name = ? AND slot = 0",
    [RENEW] = "UPDATE rowlock_locks SET expires = " NOW " + ?, renewals = renewals + 1"
              " WHERE name = ? AND slot = 0 AND owner = ? AND token = ?",
    [SWEEP] = "DELETE FROM rowlock_locks WHERE expires <= ? ORDER BY name, slot LIMIT ?",
    [RENEW_ALL] =
        "UPDATE JSON_TABLE(?, '$[*]' COLUMNS (name VARBINARY(255) PATH '$[0]', slot BIGINT "
        "PATH '$[1]',"
        " owner VARBINARY(255) PATH '$[2]', token BIGINT PATH '$[3]')) w"
        " STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY) ON l.name = w.name AND "
        "l.slot = w.slot"
        " AND l.owner = w.owner AND l.token = w.token"
        " SET l.expires = " NOW " + ?, l.renewals = l.renewals + 1",
    [ATTEMPT] = "INSERT IGNORE INTO rowlock_locks " COLUMNS " VALUES (?, 0, 0, ?, ?, 4711, " NOW
                ", " NOW " + ?, ?, ?, ?, 'bench', '')",
};

/* What one would move into the server to save round trips. */
static const char PROCEDURE[] =
    "CREATE PROCEDURE hand_grant(p_name VARBINARY(255), p_owner VARBINARY(255),"
    " p_ttl BIGINT, p_host VARBINARY(255), p_pid BIGINT) MODIFIES SQL DATA SQL SECURITY INVOKER"
    " BEGIN DECLARE v_now BIGINT DEFAULT " NOW "; START TRANSACTION;"
    " UPDATE rowlock_tokens SET token = LAST_INSERT_ID(token + 1), granted = v_now"
    " WHERE name = p_name;"
    " INSERT INTO rowlock_locks " COLUMNS " VALUES (p_name, 0, 0, p_owner, LAST_INSERT_ID(), 4711,"
    " v_now, v_now + p_ttl, p_ttl, p_host, p_pid, 'bench', ''); COMMIT;"
    " SELECT LAST_INSERT_ID(); END";

struct session {
    MYSQL *conn;
    MYSQL_STMT *kept[STATEMENTS];
    char name[300], owner[40], host[256];
    int64_t token, ttl, pid;
    char *leases; /* what learn() found, as JSON */
    uint64_t standing;
};

/* ---- sessions */

static void run(MYSQL *conn, const char *sql)
{
    if (mysql_real_query(conn, sql, strlen(sql)) != 0)
        die("MySQL: %s", mysql_error(conn));
}

/* mysql://user[:password]@host:port/database */
static MYSQL *connect_to(const char *url)
{
    char user[64] = "", host[64] = "", database[64] = "", *password;
    unsigned port = 0;
    if (sscanf(strstr(url, "://") + 3, "%63[^@]@%63[^:/]:%u/%63[^?]", user, host, &port,
               database) != 4)
        die("the MySQL URL must be of the form mysql://user:password@host:port/database");
    if ((password = strchr(user, ':')))
        *password++ = '\0';
    MYSQL *conn = mysql_init(NULL);
    if (!conn || !mysql_real_connect(conn, host, user, password, database, port, NULL, 0))
        die("MySQL: %s", conn ? mysql_error(conn) : "out of memory");
    return conn;
}

static void drop_places(const char *url)
{
    MYSQL *conn = connect_to(url);
    run(conn, "DROP DATABASE IF EXISTS " OURS);
    run(conn, "DROP DATABASE IF EXISTS " HAND);
    mysql_close(conn);
}

static void make_places(const char *url, struct place *ours, struct place *theirs)
{
    drop_places(url);
    MYSQL *conn = connect_to(url);
    run(conn, "CREATE DATABASE " OURS);
    run(conn, "CREATE DATABASE " HAND);
    run(conn, "USE " HAND);
    run(conn, PROCEDURE);
    mysql_close(conn);
    snprintf(ours->url, sizeof ours->url, "%s", url);
    *theirs = *ours;
    ours->schema = OURS;
    theirs->schema = HAND;
}

static MYSQL_STMT *prepare(MYSQL *conn, const char *sql)
{
    MYSQL_STMT *stmt = mysql_stmt_init(conn);
    if (!stmt || mysql_stmt_prepare(stmt, sql, strlen(sql)) != 0)
        die("MySQL: %s", stmt ? mysql_stmt_error(stmt) : "out of memory");
    return stmt;
}

static void *open_session(const struct place *place, const char *name)
{
    struct session *s = calloc(1, sizeof *s);
    char sql[500];
    if (!s)
        die("out of memory");
    s->conn = connect_to(place->url);
    if (mysql_select_db(s->conn, place->schema) != 0)
        die("MySQL: %s", mysql_error(s->conn));
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->owner, sizeof s->owner, "%032d", rand());
    gethostname(s->host, sizeof s->host - 1);
    s->pid = getpid();
    s->ttl = LEASE_MS * INT64_C(1000);
    snprintf(sql, sizeof sql,
             "INSERT IGNORE INTO rowlock_tokens (name, token, granted) VALUES ('%s', 0, 0)", name);
    run(s->conn, sql);
    return s;
}

static void close_session(void *session)
{
    struct session *s = session;
    for (int i = 0; i < STATEMENTS; i++)
        if (s->kept[i])
            mysql_stmt_close(s->kept[i]);
    mysql_close(s->conn);
    free(s->leases);
    free(s);
}

static bool ask(MYSQL *conn, const char *sql, unsigned column, char *out, size_t cap)
{
    run(conn, sql);
    MYSQL_RES *result = mysql_store_result(conn);
    MYSQL_ROW row = result ? mysql_fetch_row(result) : NULL;
    bool found = row && row[column];
    if (found)
        snprintf(out, cap, "%s", row[column]);
    mysql_free_result(result);
    return found;
}

static void describe(void *session, char *out, size_t cap)
{
    struct session *s = session;
    ask(s->conn,
        "SELECT CONCAT(IF(VERSION() LIKE '%MariaDB%', '', 'MySQL '), VERSION(),"
        " ', innodb_flush_log_at_trx_commit ', @@innodb_flush_log_at_trx_commit)",
        0, out, cap);
}

/* ---- locks */

struct values {
    MYSQL_BIND bind[VALUES_MAX];
    int count;
};

static void give_text(struct values *v, char *text)
{
    v->bind[v->count++] =
        (MYSQL_BIND){.buffer_type = MYSQL_TYPE_BLOB, .buffer = text, .buffer_length = strlen(text)};
}

static void give_int(struct values *v, int64_t *number)
{
    v->bind[v->count++] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = number};
}

static MYSQL_STMT *bind(struct session *s, enum statement which, struct values *v)
{
    if (!s->kept[which])
        s->kept[which] = prepare(s->conn, statements[which]);
    MYSQL_STMT *stmt = s->kept[which];
    if (mysql_stmt_bind_param(stmt, v->bind))
        die("MySQL: %s", mysql_stmt_error(stmt));
    return stmt;
}

static MYSQL_STMT *execute(struct session *s, enum statement which, struct values *v)
{
    MYSQL_STMT *stmt = bind(s, which, v);
    if (mysql_stmt_execute(stmt))
        die("MySQL: %s", mysql_stmt_error(stmt));
    return stmt;
}

static void give_lock(struct session *s, struct values *v)
{
    give_text(v, s->name);
    give_text(v, s->owner);
    give_int(v, &s->token);
    give_int(v, &s->ttl);
    give_int(v, &s->ttl);
    give_text(v, s->host);
    give_int(v, &s->pid);
}

static void insert(struct session *s)
{
    struct values v = {.count = 0};
    give_lock(s, &v);
    execute(s, INSERT, &v);
}

static void delete (struct session *s)
{
    struct values v = {.count = 0};
    give_text(&v, s->name);
    give_text(&v, s->owner);
    give_int(&v, &s->token);
    if (mysql_stmt_affected_rows(execute(s, DELETE, &v)) != 1)
        die("MySQL: '%s' was not there", s->name);
}

static void transaction(void *session)
{
    struct session *s = session;
    struct values v = {.count = 0};
    give_text(&v, s->name);
    run(s->conn, "START TRANSACTION");
    s->token = (int64_t)mysql_stmt_insert_id(execute(s, BUMP, &v));
    insert(s);
    run(s->conn, "COMMIT");
    delete (s);
}

/* The first column of the only row. */
static int64_t take_one(struct session *s, MYSQL_STMT *stmt)
{
    int64_t number = 0;
    MYSQL_BIND column = {.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &number};
    if (mysql_stmt_bind_result(stmt, &column) || mysql_stmt_fetch(stmt))
        die("MySQL: no token for '%s'", s->name);
    do
        mysql_stmt_free_result(stmt);
    while (mysql_stmt_next_result(stmt) == 0);
    return number;
}

static void single(void *session)
{
    struct session *s = session;
    struct values v = {.count = 0};
    give_text(&v, s->name);
    give_text(&v, s->owner);
    give_int(&v, &s->ttl);
    give_text(&v, s->host);
    give_int(&v, &s->pid);
    s->token = take_one(s, execute(s, SINGLE, &v));
    delete (s);
}

static void bare(void *session)
{
    insert(session);
    delete (session);
}

static void hold(void *session)
{
    insert(session);
}

static void look(void *session)
{
    static const bool is_text[COLUMNS_MAX] = {
        [0] = true, [2] = true, [8] = true, [10] = true, [11] = true};
    struct session *s = session;
    struct values v = {.count = 0};
    char text[COLUMNS_MAX][TEXT_CAP];
    int64_t number[COLUMNS_MAX];
    unsigned long length[COLUMNS_MAX];
    MYSQL_BIND columns[COLUMNS_MAX] = {{0}};
    for (int i = 0; i < COLUMNS_MAX; i++) {
        columns[i].buffer_type = is_text[i] ? MYSQL_TYPE_BLOB : MYSQL_TYPE_LONGLONG;
        columns[i].buffer = is_text[i] ? (void *)text[i] : (void *)&number[i];
        columns[i].buffer_length = TEXT_CAP;
        columns[i].length = &length[i];
    }
    give_text(&v, s->name);
    MYSQL_STMT *stmt = execute(s, LOOK, &v);
    if (mysql_stmt_bind_result(stmt, columns) || mysql_stmt_fetch(stmt))
        die("MySQL: '%s' is not held", s->name);
    mysql_stmt_free_result(stmt);
}

static void renew(void *session)
{
    struct session *s = session;
    struct values v = {.count = 0};
    give_int(&v, &s->ttl);
    give_text(&v, s->name);
    give_text(&v, s->owner);
    give_int(&v, &s->token);
    if (mysql_stmt_affected_rows(execute(s, RENEW, &v)) != 1)
        die("MySQL: '%s' is not held", s->name);
}

/* ---- log and sweep */

/* MariaDB and MySQL call it by different names. */
static int64_t written(void *session)
{
    struct session *s = session;
    char text[64];
    if (!ask(s->conn,
             "SHOW GLOBAL STATUS WHERE Variable_name IN"
             " ('Innodb_lsn_current', 'Innodb_redo_log_current_lsn')",
             1, text, sizeof text))
        die("MySQL: the server does not tell its log position");
    return strtoll(text, NULL, 10);
}

static void settle(void *session)
{
    (void)session;
}

static void fill(void *session, int64_t rows)
{
    struct session *s = session;
    char sql[1000];
    for (int64_t done = 0; done < rows; done += 1000) {
        int64_t part = rows - done < 1000 ? rows - done : 1000;
        snprintf(sql, sizeof sql,
                 "INSERT INTO rowlock_locks " COLUMNS " WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL"
                 " SELECT i + 1 FROM n WHERE i < %" PRId64
                 ") SELECT CONCAT('expired ', i + %" PRId64
                 "), 0, 0, MD5(i), i, i, 1, 2, 1, 'host', 1, 'bench', '' FROM n",
                 part, done);
        run(s->conn, sql);
    }
    run(s->conn, "ANALYZE TABLE rowlock_locks");
    mysql_free_result(mysql_store_result(s->conn));
}

static int64_t sweep(void *session, int64_t now_us)
{
    struct session *s = session;
    int64_t gone = 0, count, batch = BATCH;
    do {
        struct values v = {.count = 0};
        give_int(&v, &now_us);
        give_int(&v, &batch);
        count = (int64_t)mysql_stmt_affected_rows(execute(s, SWEEP, &v));
        gone += count;
    } while (count == BATCH);
    return gone;
}

/* ---- all at once */

/* Names and owners here need no escapes. */
static void learn(void *session)
{
    struct session *s = session;
    run(s->conn, "SELECT name, slot, owner, token FROM rowlock_locks ORDER BY name, slot");
    MYSQL_RES *result = mysql_store_result(s->conn);
    if (!result)
        die("MySQL: %s", mysql_error(s->conn));
    s->standing = mysql_num_rows(result);
    s->leases = malloc(s->standing * LEASE_CAP + 3);
    if (!s->leases)
        die("out of memory");
    char *at = s->leases;
    for (MYSQL_ROW row; (row = mysql_fetch_row(result));)
        at += sprintf(at, "%c[\"%.255s\",%s,\"%.255s\",%s]", at == s->leases ? '[' : ',', row[0],
                      row[1], row[2], row[3]);
    memcpy(at, "]", 2);
    mysql_free_result(result);
}

static void renew_all(void *session)
{
    struct session *s = session;
    struct values v = {.count = 0};
    give_text(&v, s->leases);
    give_int(&v, &s->ttl);
    uint64_t renewed = mysql_stmt_affected_rows(execute(s, RENEW_ALL, &v));
    if (renewed != s->standing)
        die("MySQL: %" PRIu64 " rows renewed of %" PRIu64, renewed, s->standing);
}

/* ---- waiting */

/* A deadlock is as good as a lock that is held. */
static bool attempt(void *session)
{
    struct session *s = session;
    struct values v = {.count = 0};
    give_lock(s, &v);
    MYSQL_STMT *stmt = bind(s, ATTEMPT, &v);
    if (mysql_stmt_execute(stmt) == 0)
        return mysql_stmt_affected_rows(stmt) == 1;
    if (mysql_stmt_errno(stmt) != ER_LOCK_DEADLOCK)
        die("MySQL: %s", mysql_stmt_error(stmt));
    return false;
}

/* The row is ours until it goes, so a deadlock with those who look at it only means once more. */
static void leave(void *session)
{
    struct session *s = session;
    struct values v = {.count = 0};
    give_text(&v, s->name);
    give_text(&v, s->owner);
    give_int(&v, &s->token);
    MYSQL_STMT *stmt = bind(s, DELETE, &v);
    while (mysql_stmt_execute(stmt))
        if (mysql_stmt_errno(stmt) != ER_LOCK_DEADLOCK)
            die("MySQL: %s", mysql_stmt_error(stmt));
    if (mysql_stmt_affected_rows(stmt) != 1)
        die("MySQL: '%s' was not there", s->name);
}

static void must_be_one(struct session *s, const char *sql)
{
    char answer[16] = "";
    if (!ask(s->conn, sql, 0, answer, sizeof answer) || strcmp(answer, "1") != 0)
        die("MySQL: %s: %s", sql, answer);
}

static void lock(void *session)
{
    must_be_one(session, "SELECT GET_LOCK('rowlock_bench', 1000000)");
}

static void unlock(void *session)
{
    must_be_one(session, "SELECT RELEASE_LOCK('rowlock_bench')");
}

static void ping(void *session)
{
    run(((struct session *)session)->conn, "DO 1");
}

static rowlock_db *adopt(const struct place *place, const rowlock_db_options *options, void **conn)
{
    rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    *conn = connect_to(place->url);
    if (rowlock_db_adopt_mysql(&db, *conn, options, &err) != ROWLOCK_OK)
        die("%s: %s", err.action, err.text);
    return db;
}

static void hang_up(void *conn)
{
    mysql_close(conn);
}

static int64_t ask_status(struct session *s, const char *sql)
{
    char text[32] = "";
    if (!ask(s->conn, sql, 1, text, sizeof text))
        die("MySQL: no answer to %s", sql);
    return strtoll(text, NULL, 10);
}

/* Those that clients sent, not those of procedures. */
static int64_t count_statements(void *session)
{
    return ask_status(session, "SHOW GLOBAL STATUS LIKE 'Questions'");
}

static int64_t count_connections(void *session)
{
    return ask_status(session, "SHOW GLOBAL STATUS LIKE 'Threads_connected'");
}

const struct hand hand_mysql = {
    .name = "mysql",
    .url_env = "ROWLOCK_TEST_MYSQL_URL",
    .make_places = make_places,
    .drop_places = drop_places,
    .open = open_session,
    .close = close_session,
    .describe = describe,
    .transaction = transaction,
    .single = single,
    .single_label = "hand-written procedure",
    .single_legend = "CALL of a procedure with that transaction; DELETE: 2 round trips",
    .bare = bare,
    .hold = hold,
    .look = look,
    .renew = renew,
    .written = written,
    .log_name = "redo",
    .settle = settle,
    .fill = fill,
    .sweep = sweep,
    .sweep_legend = "DELETE … LIMIT 500, again and again",
    .learn = learn,
    .renew_all = renew_all,
    .renew_all_legend = "UPDATE … JOIN JSON_TABLE of a text that is written once",
    .attempt = attempt,
    .leave = leave,
    .lock = lock,
    .unlock = unlock,
    .lock_label = "GET_LOCK",
    .ping = ping,
    .adopt = adopt,
    .hang_up = hang_up,
    .statements = count_statements,
    .connections = count_connections,
    .server_dir_env = "ROWLOCK_TEST_MYSQL_DIR",
};
