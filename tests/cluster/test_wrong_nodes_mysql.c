/* SPDX-License-Identifier: MIT
 *
 * Nodes that answer, but cannot commit: not ready, not ONLINE, without a majority. In a list of hosts the next
 * one is taken, and check tells. The last one leaves the group in two parts, so nothing comes after it.
 */

#include "nodes.h"
#include "raw.h"

enum { HANDLES = 8, TTL_MS = 30000, PATIENCE_MS = 60000 };

static char list[500]; /* a URL with nodes 1 and 2 */

static void make_list(void)
{
    char host[2][100], path[100];
    if (sscanf(node[0], "mysql://root@%99[^/]%99s", host[0], path) != 2 ||
        sscanf(node[1], "mysql://root@%99[^/]", host[1]) != 1)
        raw_failed("another URL was expected", node[0]);
    snprintf(list, sizeof list, "mysql://root@%s,%s%s", host[0], host[1], path);
}

static void node_ctl(const char *what)
{
    if (system(textf("tests/more/node-ctl.sh %s", what)) != 0)
        raw_failed("a node does not obey", what);
}

/* Node 1 has a row for this question. */
static void until(const char *sql)
{
    OWNED(session) void *session = raw_mysql.open(node[0]);
    char answer[100];
    const int64_t end = clock_ms() + slow_ms(PATIENCE_MS);
    while (!raw_mysql.ask(session, sql, answer, sizeof answer)) {
        if (clock_ms() > end)
            raw_failed("node 1 does not become so", sql);
        sleep_ms(50);
    }
}

static int granted(rowlock_db *db, const char *name)
{
    OWNED(lock) rowlock_lock *lock = must_lock(db, name);
    const int result = try_lock(lock, TTL_MS);
    if (result != ROWLOCK_OK)
        tap_note("%s", why(db));
    return result;
}

static void passed_over(const char *what)
{
    int found = 0;
    for (int i = 0; i < HANDLES; i++) {
        OWNED(db) rowlock_db *db = NULL;
        rowlock_error err = ROWLOCK_ERROR_INIT;
        if (rowlock_db_open(list, NULL, &db, &err) != ROWLOCK_OK)
            tap_note("%s", err.text);
        else
            found += granted(db, textf("%s %d", what, i)) == ROWLOCK_OK;
    }
    tap_is_int(found, HANDLES, "node 1 is %s: each of %d handles takes the next of the list", what,
               HANDLES);
    tap_is_int(db_int(&raw_mysql, node[1],
                      "SELECT COUNT(*) FROM rowlock_tokens WHERE name LIKE '%s %%'", what),
               HANDLES, "and its grant is there");
}

/* One that was connected while node 1 was as it should be. */
static void goes_over(rowlock_db *db, const char *name)
{
    tap_is_int(granted(db, name), ROWLOCK_OK, "one that is connected to node 1 goes over");
    tap_is_int(
        db_int(&raw_mysql, node[1], "SELECT COUNT(*) FROM rowlock_tokens WHERE name = '%s'", name),
        1, "to the next of the list");
    rowlock_db_close(db);
}

static void is_bad(const char *member)
{
    char value[200];
    tap_is_int(finding(node[0], "replication", value, sizeof value), ROWLOCK_BAD,
               "check of such a node says that it is bad");
    tap_is_str(value, textf("Group Replication, this member: %s", member), "and why");
}

static void cut_off(void)
{
    db_exec(&raw_mysql, node[0], "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'");
    until("SHOW STATUS WHERE Variable_name = 'wsrep_ready' AND Value = 'OFF'");
}

static void bring_back(void)
{
    db_exec(&raw_mysql, node[0], "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'");
    until("SHOW STATUS WHERE Variable_name = 'wsrep_local_state_comment' AND Value = 'Synced'");
}

/* Without the others it answers SHOW and SET alone. */
static void not_ready(void)
{
    OWNED(db) rowlock_db *db = must_open(list);
    cut_off();
    passed_over("not ready");
    goes_over(db, "was ready");
    db = must_open(node[0]);
    const int result = rowlock_check(db, NULL, NULL, NULL);
    tap_is_int(result, ROWLOCK_EREADONLY, "check of such a node says that it takes no writes: %s",
               why(db));
    rowlock_db_close(db);
    bring_back();
    db = must_open(list);
    tap_is_int(granted(db, "back"), ROWLOCK_OK, "when it is ready again it is taken");
}

static int write_price(rowlock_table *prices, int id)
{
    return update_row(prices, id, rowlock_int(100 + id), 1);
}

static int write_and_be_cut_off(void *context, const rowlock_attempt *attempt)
{
    const int result = write_price(context, 1);
    if (result != ROWLOCK_OK)
        return result;
    cut_off();
    return write_price(context, 2);
}

static long long price_on_2(int id)
{
    return db_int(&raw_mysql, node[1], "SELECT price FROM prices WHERE id = %d", id);
}

/* Such a node refuses ROLLBACK too. So a transaction there ends with its connection. */
static void not_ready_in_a_transaction(void)
{
    OWNED(db) rowlock_db *db = must_open(node[0]);
    OWNED(table) rowlock_table *prices = must_prices(db, "price");
    tap_is_int(rowlock_retry(db, write_and_be_cut_off, prices, NULL, NULL), ROWLOCK_EREADONLY,
               "in a transaction of ours node 1 becomes not ready");
    bring_back();
    tap_is_int(write_price(prices, 3), ROWLOCK_OK, "when it is ready again a row is written");
    tap_is_int(granted(db, "after a transaction"), ROWLOCK_OK, "and a lock granted");
    sleep_ms(1000);
    tap_is_int(price_on_2(3), 103, "what was written is committed");
    tap_is_int(price_on_2(1), 1, "and nothing of that transaction");
}

/* A node may stand still for a minute and is a member all the same. */
static void bear_with_it(void)
{
    for (int i = 0; i < 3; i++)
        db_exec(&raw_mysql, node[i], "%s",
                is_galera() ? "SET GLOBAL wsrep_provider_options = "
                              "'evs.inactive_timeout=PT60S;evs.suspect_timeout=PT60S'"
                            : "SET GLOBAL group_replication_member_expel_timeout = 60");
}

static int write_and_freeze(void *context, const rowlock_attempt *attempt)
{
    const int result = attempt->number == 1 ? write_price(context, 4) : ROWLOCK_GONE;
    node_ctl(attempt->number == 1 ? "freeze 1" : "thaw 1");
    return result;
}

/* The commit is on its way to node 1. Node 2 has the old row, and no lock that waits for it. */
static void frozen_at_commit(void)
{
    OWNED(db) rowlock_db *db = must_open_with(list, OPTIONS(db, .statement_timeout_ms = 3000));
    OWNED(table) rowlock_table *prices = must_prices(db, "price");
    bear_with_it();
    tap_is_int(rowlock_retry(db, write_and_freeze, prices, NULL, NULL), ROWLOCK_EUNCERTAIN,
               "node 1 stands still at the commit");
    node_ctl("thaw 1");
    until("SELECT 1 FROM prices WHERE id = 4 AND price = 104"); /* the commit that got no answer */
}

/* As after a restart of its server, which is not read-only and may not join by itself. */
static void not_online(void)
{
    rowlock_db *db = must_open(list);
    db_exec(&raw_mysql, node[0], "STOP GROUP_REPLICATION");
    goes_over(db, "was ONLINE");
    db_exec(&raw_mysql, node[0], "SET GLOBAL read_only = OFF");
    passed_over("not ONLINE");
    is_bad("not ONLINE");
    db_exec(&raw_mysql, node[0], "START GROUP_REPLICATION");
    until("SELECT 1 FROM performance_schema.replication_group_members "
          "WHERE member_id = @@server_uuid AND member_state = 'ONLINE'");
}

/* Node 2 leaves and is a group by itself. Of the two that stay, node 3 stops answering. */
static void without_majority(void)
{
    rowlock_db *db = must_open_with(list, OPTIONS(db, .statement_timeout_ms = slow_ms(2000)));
    db_exec(&raw_mysql, node[1], "STOP GROUP_REPLICATION");
    db_exec(&raw_mysql, node[1], "SET GLOBAL group_replication_bootstrap_group = ON");
    db_exec(&raw_mysql, node[1], "START GROUP_REPLICATION");
    node_ctl("freeze 3");
    until("SELECT 1 FROM performance_schema.replication_group_members "
          "WHERE member_state = 'UNREACHABLE'");
    passed_over("without majority");
    goes_over(db, "had a majority");
    is_bad("without majority");
    node_ctl("thaw 3");
}

int main(void)
{
    if (!nodes_found())
        return tap_skip_all("ROWLOCK_TEST_NODES is not set");
    make_list();
    must_install(node[0]);
    db_exec(&raw_mysql, node[0],
            "CREATE TABLE prices (id INT PRIMARY KEY, version BIGINT NOT NULL, price INT)");
    db_exec(&raw_mysql, node[0],
            "INSERT INTO prices VALUES (1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 1, 4)");
    sleep_ms(1000);
    if (is_galera()) {
        not_ready();
        not_ready_in_a_transaction();
        frozen_at_commit();
    } else {
        frozen_at_commit();
        not_online();
        without_majority();
    }
    return tap_done();
}
