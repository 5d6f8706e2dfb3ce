#!/usr/bin/env bash
# Runs a command beside a primary, node 1, and two replicas of it. MariaDB, or MySQL. See cluster.sh.
#
# usage: with-replicas.sh [--semi] COMMAND…     --semi: a commit waits until one replica has it
#
# Every server is read-only when it starts; the primary is made writable afterwards. The URLs are those of an
# ordinary user, app. The user ops may write to a server with read_only; it is in ROWLOCK_TEST_OPERATOR.
set -euo pipefail
. "$(dirname "$0")/cluster.sh"

own_network "$@"
NODE_USER=app
semi=0
if [ "$1" = --semi ]; then
    semi=1
    shift
fi

is_mariadb() { case $MYSQLD in *mariadbd) ;; *) return 1 ;; esac }

# The time limit after which a commit does not wait any more is a day. Only the primary waits: a replica would wait
# for replicas of its own.
replicas_make() {
    local dir=$1 port=$2 number=$3 more
    find_mysqld
    mapfile -t more < <(node_options "$number")
    more+=(--log-bin="$dir/data/bin" --binlog-format=ROW --sync-binlog=1)
    if is_mariadb; then
        more+=(--gtid-strict-mode=ON --log-slave-updates --read-only=ON)
        [ $semi = 0 ] || more+=(--rpl-semi-sync-slave-enabled=ON
            --rpl-semi-sync-master-timeout=86400000 --rpl-semi-sync-master-wait-point=AFTER_SYNC)
    else
        more+=(--gtid-mode=ON --enforce-gtid-consistency=ON --super-read-only=ON)
        [ $semi = 0 ] || more+=(--plugin-load-add=semisync_source.so --plugin-load-add=semisync_replica.so
            --loose-rpl-semi-sync-replica-enabled=ON
            --loose-rpl-semi-sync-source-timeout=86400000)
    fi
    mysql_make "$dir" "$port" "${more[@]}"
    sed -i '/^--skip-log-bin$/d' "$dir/argv"
}

make_users() {
    local without='SET sql_log_bin = 0; SET GLOBAL read_only = OFF;' set_on='SET GLOBAL read_only = ON;'
    local admin='READ_ONLY ADMIN, REPLICATION SLAVE ADMIN, REPLICA MONITOR'
    if ! is_mariadb; then
        set_on='SET GLOBAL super_read_only = ON;'
        admin='CONNECTION_ADMIN, SYSTEM_VARIABLES_ADMIN, REPLICATION_SLAVE_ADMIN, REPLICATION SLAVE, REPLICATION CLIENT'
    fi
    mysql_shell "$1" -e "$without
        CREATE USER app@'%'; CREATE USER ops@'%'; CREATE USER rpl@'%' IDENTIFIED BY 'rpl';
        GRANT REPLICATION SLAVE ON *.* TO rpl@'%'; GRANT $admin ON *.* TO ops@'%';
        CREATE DATABASE rowlock; GRANT ALL ON rowlock.* TO app@'%'; GRANT ALL ON rowlock.* TO ops@'%';
        GRANT RELOAD ON *.* TO ops@'%'; GRANT SELECT ON performance_schema.* TO ops@'%'; $set_on"
}

# The users are made on each server by itself.
replicas_join() {
    make_users "$1" || fail "no users on node $2"
    if [ "$2" = 1 ]; then
        mysql_shell "$1" -e "$(is_mariadb && echo 'RESET MASTER' || echo 'RESET BINARY LOGS AND GTIDS')"
        ROWLOCK_TEST_NODE_DIRS=$1 "$(dirname "$0")/node-ctl.sh" open || fail "no primary"
    else
        is_mariadb || mysql_shell "$1" -e 'RESET BINARY LOGS AND GTIDS'
        "$(dirname "$0")/node-ctl.sh" follow-in "$1" 1 || fail "node $2 cannot follow"
        replicas_until_joined "$1" || fail "node $2 does not replicate"
    fi
}

export ROWLOCK_TEST_OPERATOR=ops
start_nodes replicas "$@"
