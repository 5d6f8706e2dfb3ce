#!/usr/bin/env bash
# Runs a command beside three MySQL servers that are one group in multi-primary mode. See cluster.sh.
#
# usage: with-group.sh COMMAND…        MYSQL_BASEDIR names the folder of Oracle's MySQL
set -euo pipefail
# shellcheck source=tests/more/cluster.sh
. "$(dirname "$0")/cluster.sh"

[ $# -gt 0 ] || fail "which command?"
own_network "$@"

group_make() {
    local dir=$1 port=$2 number=$3 other seeds=
    for other in "${NODES[@]}"; do seeds+=${seeds:+,}127.0.0.1:$((BASE_PORT + 100 + other)); done
    mysql_make "$dir" "$port" --server-id="$number" --gtid-mode=ON --enforce-gtid-consistency=ON \
        --log-bin="$dir/data/bin" --report-host=127.0.0.1 --plugin-load-add=group_replication.so \
        --loose-group-replication-group-name=aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa \
        --loose-group-replication-start-on-boot=OFF --loose-group-replication-bootstrap-group=OFF \
        --loose-group-replication-local-address="127.0.0.1:$((BASE_PORT + 100 + number))" \
        --loose-group-replication-group-seeds="$seeds" --loose-group-replication-recovery-get-public-key=ON \
        --loose-group-replication-single-primary-mode=OFF
    sed -i '/^--skip-log-bin$/d' "$dir/argv"
}

# Users are made on each node by itself: what is in the group's log must be there everywhere.
group_join() {
    local first=
    [ "$2" != 1 ] || first='SET GLOBAL group_replication_bootstrap_group = ON;'
    mysql_shell "$1" -e "SET sql_log_bin = 0; CREATE USER rpl@'%' IDENTIFIED BY 'rpl';
        GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO rpl@'%';
        RESET BINARY LOGS AND GTIDS;
        CHANGE REPLICATION SOURCE TO SOURCE_USER = 'rpl', SOURCE_PASSWORD = 'rpl'
            FOR CHANNEL 'group_replication_recovery';
        $first START GROUP_REPLICATION; SET GLOBAL group_replication_bootstrap_group = OFF" ||
        fail "node $2 does not join: $(tail -n 5 "$1/log")"
    until_online "$1"
}

until_online() {
    local try
    for ((try = 0; try < 1000; try++)); do
        case $(mysql_shell "$1" -e "SELECT member_state FROM performance_schema.replication_group_members
               WHERE member_id = @@server_uuid") in ONLINE) return 0 ;; esac
        sleep 0.05
    done
    fail "it does not become ONLINE: $(tail -n 5 "$1/log")"
}

start_nodes group "$@"
