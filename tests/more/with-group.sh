#!/usr/bin/env bash
# Runs a command beside three MySQL servers that are one group in multi-primary mode. See cluster.sh.
#
# usage: with-group.sh COMMAND…        MYSQL_BASEDIR names the folder of Oracle's MySQL
set -euo pipefail
. "$(dirname "$0")/cluster.sh"

own_network "$@"

group_make() {
    local dir=$1 port=$2 number=$3 other seeds='' more
    for other in "${NODES[@]}"; do seeds+=${seeds:+,}$NETWORK.$other:$((PORT + 100)); done
    mapfile -t more < <(node_options "$number")
    # A member that is gone is expelled after five seconds, instead of ten.
    mysql_make "$dir" "$port" "${more[@]}" --gtid-mode=ON --enforce-gtid-consistency=ON \
        --log-bin="$dir/data/bin" --plugin-load-add=group_replication.so \
        --loose-group-replication-group-name=aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa \
        --loose-group-replication-start-on-boot=OFF --loose-group-replication-bootstrap-group=OFF \
        --loose-group-replication-local-address="$NETWORK.$number:$((PORT + 100))" \
        --loose-group-replication-group-seeds="$seeds" --loose-group-replication-recovery-get-public-key=ON \
        --loose-group-replication-single-primary-mode=OFF --loose-group-replication-member-expel-timeout=0
    sed -i '/^--skip-log-bin$/d' "$dir/argv"
}

# Users are made on each node by itself: what is in the group's log must be there everywhere. A node that is
# started again joins by itself.
group_join() {
    local first=
    [ "$2" != 1 ] || first='SET GLOBAL group_replication_bootstrap_group = ON;'
    mysql_shell "$1" -e "SET sql_log_bin = 0; CREATE USER rpl@'%' IDENTIFIED BY 'rpl';
        GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO rpl@'%';
        CREATE USER root@'%'; GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;
        RESET BINARY LOGS AND GTIDS;
        CHANGE REPLICATION SOURCE TO SOURCE_USER = 'rpl', SOURCE_PASSWORD = 'rpl'
            FOR CHANNEL 'group_replication_recovery';
        $first START GROUP_REPLICATION; SET GLOBAL group_replication_bootstrap_group = OFF" ||
        fail "node $2 does not join: $(tail -n 5 "$1/log")"
    group_until_joined "$1" || fail "node $2 does not join"
    echo --loose-group-replication-start-on-boot=ON >>"$1/argv"
}

start_nodes group "$@"
