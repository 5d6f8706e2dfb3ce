/* SPDX-License-Identifier: MIT
 *
 * Nodes that answer, but cannot commit: not ready, not ONLINE, without a majority. In a list of hosts the next
 * one is taken, and check tells. The last one leaves the group in two parts, so nothing comes after it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nodes.h"
#include "quick.h"
#include "raw.h"
#include "tap.h"

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

/* Node 1 has a row for this question. */
static void until(const char *sql)
{
    void *session = raw_mysql.open(node[0]);
    char answer[100];
    const int64_t end = clock_ms() + slow_ms(PATIENCE_MS);
    while (!raw_mysql.ask(session, sql, answer, sizeof answer)) {
        if (clock_ms() > end)
            raw_failed("node 1 does not become so", sql);
        sleep_ms(50);
    }
    raw_mysql.close(session);
}

static int granted(rowlock_db *db, const char *name)
{
    rowlock_lock *lock = must_lock(db, name);
    const int result = try_lock(lock, TTL_MS);
    if (result != ROWLOCK_OK)
        tap_note("%s", why(db));
    rowlock_lock_close(lock);
    return result;
}

static void passed_over(const char *what)
{
    char name[60];
    int found = 0;
    for (int i = 0; i < HANDLES; i++) {
        rowlock_db *db = NULL;
        rowlock_error err = ROWLOCK_ERROR_INIT;
        snprintf(name, sizeof name, "%s %d", what, i);
        if (rowlock_db_open(list, NULL, &db, &err) != ROWLOCK_OK)
            tap_note("%s", err.text);
        else
            found += granted(db, name) == ROWLOCK_OK;
        rowlock_db_close(db);
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
    char value[200], want[100];
    snprintf(want, sizeof want, "Group Replication, this member: %s", member);
    tap_is_int(finding(node[0], "replication", value, sizeof value), ROWLOCK_BAD,
               "check of such a node says that it is bad");
    tap_is_str(value, want, "and why");
}

/* Without the others it answers SHOW and SET alone. */
static void not_ready(void)
{
    rowlock_db *db = must_open(list);
    db_exec(&raw_mysql, node[0], "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'");
    until("SHOW STATUS WHERE Variable_name = 'wsrep_ready' AND Value = 'OFF'");
    passed_over("not ready");
    goes_over(db, "was ready");
    db = must_open(node[0]);
    const int result = rowlock_check(db, NULL, NULL, NULL);
    tap_is_int(result, ROWLOCK_EREADONLY, "check of such a node says that it takes no writes: %s",
               why(db));
    rowlock_db_close(db);
    db_exec(&raw_mysql, node[0], "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'");
    until("SHOW STATUS WHERE Variable_name = 'wsrep_local_state_comment' AND Value = 'Synced'");
    db = must_open(list);
    tap_is_int(granted(db, "back"), ROWLOCK_OK, "when it is ready again it is taken");
    rowlock_db_close(db);
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

static pid_t pid_of_node_3(void)
{
    const char *dirs = getenv("ROWLOCK_TEST_NODE_DIRS");
    char dir[200], path[220];
    int pid = 0;
    FILE *file = NULL;
    if (dirs && sscanf(dirs, "%*s %*s %199s", dir) == 1) {
        snprintf(path, sizeof path, "%s/pid", dir);
        file = fopen(path, "r");
    }
    if (!file || fscanf(file, "%d", &pid) != 1 || pid <= 1)
        raw_failed("no pid of node 3", dirs ? dirs : "");
    fclose(file);
    return pid;
}

/* Node 2 leaves and is a group by itself. Of the two that stay, node 3 stops answering. */
static void without_majority(void)
{
    const pid_t frozen = pid_of_node_3();
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.statement_timeout_ms = slow_ms(2000);
    rowlock_db *db = must_open_with(list, &options);
    db_exec(&raw_mysql, node[1], "STOP GROUP_REPLICATION");
    db_exec(&raw_mysql, node[1], "SET GLOBAL group_replication_bootstrap_group = ON");
    db_exec(&raw_mysql, node[1], "START GROUP_REPLICATION");
    kill(frozen, SIGSTOP);
    until("SELECT 1 FROM performance_schema.replication_group_members "
          "WHERE member_state = 'UNREACHABLE'");
    passed_over("without majority");
    goes_over(db, "had a majority");
    is_bad("without majority");
    kill(frozen, SIGCONT);
}

int main(void)
{
    if (!nodes_found())
        return tap_skip_all("ROWLOCK_TEST_NODES is not set");
    make_list();
    must_install(node[0]);
    sleep_ms(1000);
    if (is_galera()) {
        not_ready();
    } else {
        not_online();
        without_majority();
    }
    return tap_done();
}
