/* SPDX-License-Identifier: MIT
 *
 * The steps of many handles on MySQL and MariaDB, beside a transaction that locks one of their rows:
 * they wait for nothing, and do the others. A wait would be an error after a second. */
#include "each.h"

#include <mysql.h>

static const char *url;
static void *session, *other;

/* The numbers of the answer in their order, with a short second column: "-1 2=7". Or the error. */
static const char *numbers(const char *format, ...)
{
    static char out[200];
    char sql[4000];
    int found[9] = {0};
    char second[9][24] = {""};
    va_list values;
    va_start(values, format);
    vsnprintf(sql, sizeof sql, format, values);
    va_end(values);
    if (mysql_query(session, sql))
        return mysql_error(session);
    do {
        MYSQL_RES *rows = mysql_store_result(session);
        for (MYSQL_ROW row; rows && (row = mysql_fetch_row(rows));) {
            int n = atoi(row[0]);
            found[abs(n) % 9] = n;
            if (n > 0 && row[1] && strlen(row[1]) < 3)
                snprintf(second[n % 9], sizeof second[0], "=%s", row[1]);
        }
        mysql_free_result(rows);
    } while (mysql_next_result(session) == 0);
    out[0] = '\0';
    for (int i = 1; i < 9; i++)
        if (found[i])
            snprintf(out + strlen(out), sizeof out - strlen(out), "%s%d%s", out[0] ? " " : "",
                     found[i], second[i]);
    return out;
}

/* Requests for locks named by one letter each. A capital one is counted, of two. The owners are
 * "x", "y", and so on. */
static const char *requests(const char *names, char owner, int request, long long ticket)
{
    static char out[2000];
    out[0] = '\0';
    for (const char *name = names; *name; name++)
        snprintf(out + strlen(out), sizeof out - strlen(out),
                 "%s[\"%02X\",%d,\"%02X\",%d,60000000,\"68\",1,\"70\",\"\",%lld,0,0,5000000,\"\"]",
                 name > names ? "," : "", (unsigned)*name, *name < 'a' ? 2 : 0, (unsigned)owner++,
                 request++, ticket);
    return out;
}

static const char *acquire(const char *names, char owner)
{
    static int request = 100;
    request += 20;
    return numbers("CALL rowlock_grant_many('[%s]', %d)", requests(names, owner, request, 0),
                   (int)strlen(names));
}

static const char release[] = "CALL rowlock_release_many('[%s]', %d)";

static void begin(const char *sql)
{
    raw_run(&raw_mysql, other, "START TRANSACTION");
    raw_run(&raw_mysql, other, "%s", sql);
}

static void roll_back(void)
{
    raw_run(&raw_mysql, other, "ROLLBACK");
}

static void grants(void)
{
    tap_is_str(acquire("ab", 'p'), "1=1 2=1", "two new names are granted");
    tap_is_str(numbers(release, "[\"61\",0,\"70\",1],[\"62\",0,\"71\",1]", 2), "1=1 2=1",
               "and released");
    tap_is_str(acquire("aabc", 'p'), "1=2 2 3=2 4=1",
               "the first of two requests for a name, and a new name beside old ones");
    tap_is_str(acquire("abCCCd", 'A'), "1 2 3=1 4=2 5 6=1",
               "holders are reported, also those of all permits");
    tap_is_int(
        db_int(&raw_mysql, url, "SELECT sum(token) FROM rowlock_tokens WHERE LENGTH(name) = 1"), 8,
        "the token rows have the newest tokens");
    tap_is_str(numbers(release, "[\"61\",0,\"70\",2],[\"62\",0,\"70\",2]", 2), "1=1",
               "only the owner releases");
    begin("DELETE FROM rowlock_locks WHERE name = 'c' AND slot = 0");
    tap_is_str(acquire("ce", 'u'), "1 2=1", "a lock row that is being deleted");
    roll_back();
    begin("SELECT * FROM rowlock_tokens WHERE name = 'a' FOR UPDATE");
    tap_is_str(acquire("af", 'u'), "2=1", "a token row that is locked");
    roll_back();
    begin("INSERT INTO rowlock_tokens (name, token, granted) VALUES ('g', 5, 0)");
    tap_is_str(acquire("gh", 'u'), "2=1", "a token row that is not committed");
    roll_back();
}

/* A plan that reads a whole table would meet the locked row. */
static void at_once(void)
{
    acquire("mn", 'p');
    numbers(release, "[\"6D\",0,\"70\",1],[\"6E\",0,\"71\",1]", 2);
    begin("SELECT * FROM rowlock_locks WHERE name = 'd' FOR UPDATE");
    tap_is_str(numbers("CALL rowlock_grant_at_once('[%s]', 2, @made)", requests("mn", 'p', 1, 0)),
               strstr(mysql_get_server_info(session), "MariaDB") ? "1=2 2=2" : "",
               "MariaDB grants at once beside the locked row of another");
    roll_back();
}

/* The first of twelve rows is a rival's. A list that ends in the midst of "10" seems to name it. */
static void cut(void)
{
    raw_run(&raw_mysql, session, "DELETE FROM rowlock_locks");
    for (int most = 16; most < 24; most++) {
        char pack[400] = "";
        for (char name = 'a'; name <= 'l'; name++) {
            raw_run(&raw_mysql, session,
                    "INSERT IGNORE INTO rowlock_locks (name, slot, permits, owner, token, request,"
                    " acquired, expires, ttl) VALUES ('%c', 0, 0, '%c', 1, 1, 1, 9000000000000, 1)",
                    name, name == 'a' && most == 16 ? 'y' : 'x');
            snprintf(pack + strlen(pack), sizeof pack - strlen(pack), "%s[\"%02X\",0,\"78\",1]",
                     name > 'a' ? "," : "", (unsigned)name);
        }
        raw_run(&raw_mysql, session, "SET group_concat_max_len = %d", most);
        numbers(release, pack, 12);
    }
    tap_is_int(db_int(&raw_mysql, url, "SELECT count(*) FROM rowlock_locks WHERE owner = 'y'"), 1,
               "a list of numbers that is cut releases no lock of another");
}

static void holders(void)
{
    static const char both[] = "[\"62\",0,\"72\",2,0],[\"65\",0,\"76\",1,0],[\"65\",0,\"76\",2,0]";
    static const char renew[] = "CALL rowlock_renew_many('[%s]')";
    begin("SELECT * FROM rowlock_locks WHERE name = 'b' AND slot = 0 FOR UPDATE");
    tap_is_str(numbers(renew, both), "-1 2", "a lock row that is locked is not renewed");
    tap_is_str(numbers(release, both, 3), "-1 2=1", "nor released");
    roll_back();
    tap_is_str(numbers(renew, both), "1", "until the other transaction ends");
    tap_is_str(numbers(release, both, 3), "1=1", "likewise");
}

static void waiters(void)
{
    static const char call[] = "CALL rowlock_enqueue_many('[%s]')";
    tap_is_str(numbers(call, requests("cc", 'p', 1, 0)), "1 2", "two tickets for one name");
    long long ticket = db_int(&raw_mysql, url, "SELECT min(ticket) FROM rowlock_waiters");
    tap_is_int(
        db_int(&raw_mysql, url, "SELECT request FROM rowlock_waiters WHERE ticket = %lld", ticket),
        1, "in the order of the batch");
    begin("SELECT * FROM rowlock_waiters WHERE name = 'c' ORDER BY ticket LIMIT 1 FOR UPDATE");
    tap_is_str(numbers(call, requests("cd", 'p', 1, ticket)), "-1 2", "a ticket that is locked");
    roll_back();
    tap_is_str(numbers(call, requests("c", 'p', 1, ticket)), "1",
               "until the other transaction ends");
    tap_is_str(acquire("cd", 'x'), "1 2", "a waiter is before others");
    raw_run(&raw_mysql, other, "UPDATE rowlock_waiters SET expires = 1 WHERE ticket = %lld",
            ticket);
    tap_is_str(numbers(call, requests("c", 'q', 2, 1)), "1", "the first one's lease is over");
    tap_is_int(db_int(&raw_mysql, url, "SELECT min(request) FROM rowlock_waiters WHERE name = 'c'"),
               2, "so its ticket is removed");
}

static int run(const struct raw *raw, const char *of)
{
    url = of;
    must_install(url);
    session = raw->open(url);
    other = raw->open(url);
    raw_run(raw, session, "SET innodb_lock_wait_timeout = 1");
    grants();
    at_once();
    holders();
    waiters();
    cut();
    raw_run(raw, session, "DELETE FROM rowlock_locks");
    raw->close(other);
    raw->close(session);
    return tap_done();
}

EACH_MAIN(run)
