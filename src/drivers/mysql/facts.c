/* SPDX-License-Identifier: MIT
 *
 * What the server says about itself: for rowlock_check(), and whether it takes writes. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What SHOW says about replication. "": this server does not have it. */
struct replicas {
    /* settings */
    char read_only[16], super_read_only[16], innodb_read_only[16];
    char log_bin[8], galera[8], sync_wait[8], group[48], single_primary[8], consistency[40];
    char semi_enabled[8], semi_ms[24], semi_replica[8], applied[24];
    /* status */
    char nodes[16], ready[8], count[16], semi[8], semi_count[16];
    /* the state of this member of a group; "": unknown */
    char member[24];
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
        {"rpl_semi_sync_slave_enabled", r->semi_replica, sizeof r->semi_replica},
        {"rpl_semi_sync_replica_enabled", r->semi_replica, sizeof r->semi_replica},
        {"gtid_slave_pos", r->applied, sizeof r->applied},
        {"wsrep_cluster_size", r->nodes, sizeof r->nodes},
        {"wsrep_ready", r->ready, sizeof r->ready},
        {"Slaves_connected", r->count, sizeof r->count},
        {"Rpl_semi_sync_master_status", r->semi, sizeof r->semi},
        {"Rpl_semi_sync_source_status", r->semi, sizeof r->semi},
        {"Rpl_semi_sync_master_clients", r->semi_count, sizeof r->semi_count},
        {"Rpl_semi_sync_source_clients", r->semi_count, sizeof r->semi_count},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0)
            rlk_copy_text(known[i].out, known[i].cap, value, strlen(value));
}

#define SHOW(kind)                                                                  \
    "SHOW GLOBAL " kind " WHERE Variable_name REGEXP '^(super_|innodb_)?read_only$" \
    "|^log_bin$|^wsrep_|^group_replication_|^rpl_semi_sync_|^slaves_connected$|^gtid_slave_pos$'"

static enum rlk_class show(struct conn *c, struct rlk_call *call, const char *sql,
                           struct replicas *r)
{
    MYSQL_RES *result = NULL;
    enum rlk_class class = my_show(c, call, sql, &result);
    for (MYSQL_ROW row; result && mysql_num_fields(result) == 2 && (row = mysql_fetch_row(result));)
        take_shown(r, row[0] ? row[0] : "", row[1] ? row[1] : "");
    mysql_free_result(result);
    return class;
}

static bool is_on(const char *text)
{
    return strcmp(text, "ON") == 0;
}

/* A member of a group can commit only if it is ONLINE and sees a majority. MySQL shows this only to
 * users who may read the table. */
static enum rlk_class ask_member(struct conn *c, struct rlk_call *call, struct replicas *r)
{
    static const char sql[] =
        "SELECT IF(MAX(MEMBER_ID = @@server_uuid AND MEMBER_STATE = 'ONLINE') = 0, 'not ONLINE',"
        " IF(2 * SUM(MEMBER_STATE = 'UNREACHABLE') < COUNT(*), 'ONLINE', 'without majority'))"
        " FROM performance_schema.replication_group_members";
    struct rlk_call unheard = {.deadline_us = call->deadline_us};
    if (!r->group[0])
        return RLK_DONE;
    enum rlk_class class = my_ask(c, &unheard, sql, r->member, sizeof r->member);
    return c->dead ? class : RLK_DONE;
}

/* This node of a cluster cannot commit at present. */
static bool is_cut_off(const struct replicas *r)
{
    return (is_on(r->galera) && !is_on(r->ready)) ||
           (r->group[0] && r->member[0] && strcmp(r->member, "ONLINE") != 0);
}

static bool is_set(const char *setting)
{
    return setting[0] && strcmp(setting, "OFF") != 0;
}

/* MariaDB shows the number of replicas to all users. MySQL shows it only to users with a
 * replication privilege. */
static enum rlk_class count_replicas(struct conn *c, struct rlk_call *call, struct replicas *r)
{
    struct rlk_call unheard = {.deadline_us = call->deadline_us};
    MYSQL_RES *result = NULL;
    enum rlk_class class = my_show(c, &unheard, "SHOW REPLICAS", &result);
    if (result)
        snprintf(r->count, sizeof r->count, "%llu", (unsigned long long)mysql_num_rows(result));
    mysql_free_result(result);
    return class == RLK_DENIED || class == RLK_REFUSED ? RLK_DONE : class;
}

/* The timeout cannot be switched off. A day counts as none. */
static void describe_semi(const struct replicas *r, struct rlk_facts *out)
{
    static const long long day_ms = 86400000;
    if (!is_on(r->semi) || strcmp(r->semi_count, "0") == 0) {
        out->replicates_late = true;
        snprintf(out->replication, sizeof out->replication,
                 "semi-synchronous, but at present no commit waits for a replica");
        return;
    }
    out->may_turn_late = strtoll(r->semi_ms, NULL, 10) < day_ms;
    snprintf(out->replication, sizeof out->replication, "semi-synchronous, replicas: %s%s%s%s",
             r->semi_count, out->may_turn_late ? " (asynchronous after " : "",
             out->may_turn_late ? r->semi_ms : "", out->may_turn_late ? " ms)" : "");
}

static void describe_replicas(const struct replicas *r, struct rlk_facts *out)
{
    char *text = out->replication;
    size_t cap = sizeof out->replication;
    out->replication_known = true;
    out->cut_off = is_cut_off(r);
    if (is_on(r->galera)) {
        snprintf(text, cap, "Galera, nodes: %s%s", r->nodes, out->cut_off ? ", not ready" : "");
    } else if (r->group[0]) {
        out->replication_known = r->member[0] != '\0';
        snprintf(text, cap, "%s%s",
                 r->member[0] ? "Group Replication, this member: "
                              : "unknown: this user may not SELECT from "
                                "performance_schema.replication_group_members",
                 r->member);
    } else if (!is_on(r->log_bin)) {
        out->no_standby = true;
        snprintf(text, cap, "none, there is no binary log");
    } else if (is_on(r->semi_enabled)) {
        describe_semi(r, out);
    } else if (!r->count[0]) {
        out->replication_known = false;
        snprintf(text, cap,
                 "unknown: this user may not see replicas, and none is semi-synchronous");
    } else {
        out->no_standby = strcmp(r->count, "0") == 0;
        out->replicates_late = !out->no_standby;
        /* A replica that was promoted keeps these. */
        out->expects_standby = is_on(r->semi_replica) || r->applied[0];
        snprintf(text, cap, "%s%s",
                 out->replicates_late   ? "asynchronous, replicas: "
                 : out->expects_standby ? "no replica is connected, and this server has been one"
                                        : "no replica is connected",
                 out->replicates_late ? r->count : "");
    }
}

/* Says whether a read on one node sees what was committed on another. A Galera node does not know
 * which nodes are written to. A multi-primary group is made for writes on all. */
static void describe_nodes(const struct replicas *r, struct rlk_facts *out)
{
    bool group = strcmp(r->single_primary, "OFF") == 0;
    bool waits = strncmp(r->consistency, "BEFORE_AND", 10) == 0 ||
                 strcmp(r->consistency, "BEFORE") == 0 || strcmp(r->consistency, "AFTER") == 0;
    if (is_on(r->galera) && strcmp(r->nodes, "1") != 0) {
        snprintf(out->nodes, sizeof out->nodes, "Galera, wsrep_sync_wait %s", r->sync_wait);
        out->nodes_lag = strtol(r->sync_wait, NULL, 10) & 1 ? RLK_NEVER : RLK_PERHAPS;
    } else if (r->group[0] && group) {
        snprintf(out->nodes, sizeof out->nodes, "multi-primary, group_replication_consistency %s",
                 r->consistency);
        out->nodes_lag = waits ? RLK_NEVER : RLK_SURELY;
    }
}

static enum rlk_class replication(struct conn *c, struct rlk_call *call, struct rlk_facts *out)
{
    struct replicas r = {0};
    enum rlk_class class = show(c, call, SHOW("VARIABLES"), &r);
    if (class == RLK_DONE)
        class = show(c, call, SHOW("STATUS"), &r);
    if (class == RLK_DONE)
        class = ask_member(c, call, &r);
    if (class == RLK_DONE && !r.count[0])
        class = count_replicas(c, call, &r);
    describe_replicas(&r, out);
    describe_nodes(&r, out);
    return class;
}

/* A PREPARE fails if this user may not run the statement. */
static enum rlk_class ask_rights(struct conn *c, struct rlk_call *call, struct rlk_facts *out)
{
    static const enum rlk_step steps[] = {
        RLK_STEP_RELEASE,     RLK_STEP_LEAVE,     RLK_STEP_ONCE_CLAIM, RLK_STEP_ONCE_COMPLETE,
        RLK_STEP_ONCE_FORGET, RLK_STEP_WALK_SAVE, RLK_STEP_WALK_END};
    enum rlk_class class = RLK_DONE;
    for (size_t i = 0; out->may_lock && i < sizeof steps / sizeof *steps; i++) {
        class = my_prepare(c, call, steps[i]);
        out->may_lock = class == RLK_DONE;
    }
    return class == RLK_DENIED || class == RLK_SCHEMA ? RLK_DONE : class;
}

/* A read-only server may still take writes from a privileged user. We refuse it, because a write
 * there would diverge from the primary. */
enum rlk_class my_check_writable(struct conn *c, struct rlk_call *call)
{
    struct replicas r = {0};
    enum rlk_class class = show(c, call, SHOW("VARIABLES"), &r);
    if (class == RLK_DONE && is_on(r.galera))
        class = show(c, call, SHOW("STATUS"), &r);
    if (class == RLK_DONE)
        class = ask_member(c, call, &r);
    if (class != RLK_DONE)
        return class;
    const char *why = is_set(r.super_read_only)    ? "the server has super_read_only set"
                      : is_set(r.read_only)        ? "the server has read_only set"
                      : is_set(r.innodb_read_only) ? "the server has innodb_read_only set"
                      : !is_cut_off(&r)            ? NULL
                      : is_on(r.galera)
                          ? "the node of Galera is not ready (wsrep_ready=OFF)"
                          : "the member of the group is not ONLINE, or sees no majority of it";
    if (!why)
        return RLK_DONE;
    rlk_diag_set(call, ER_OPTION_PREVENTS_STATEMENT, NULL, why);
    return RLK_STANDBY;
}

/* Do other nodes take writes too? They do not see our row locks. A group can change its mode, so we
 * ask it each time. */
enum rlk_class my_look_for_writers(struct conn *c, struct rlk_call *call)
{
    struct replicas r = {0};
    if (c->knows_writers)
        return RLK_DONE;
    enum rlk_class class = show(c, call, SHOW("VARIABLES"), &r);
    c->certifies = is_on(r.galera) || r.group[0];
    c->several_write = is_on(r.galera) || strcmp(r.single_primary, "OFF") == 0;
    c->knows_writers = class == RLK_DONE && !r.single_primary[0];
    return class;
}

enum rlk_class my_facts(void *conn, struct rlk_call *call, struct rlk_facts *out)
{
    struct conn *c = conn;
    enum rlk_class class = ask_rights(c, call, out);
    return class == RLK_DONE ? replication(c, call, out) : class;
}
