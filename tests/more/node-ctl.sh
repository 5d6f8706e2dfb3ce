#!/usr/bin/env bash
# What happens to the nodes that with-galera.sh, with-group.sh or with-replicas.sh has started.
#
# usage: node-ctl.sh crash|freeze|thaw|stop|start|forget N   forget: what it has; when it starts it gets all from another
#        node-ctl.sh join N         waits until the node has joined the others
#        node-ctl.sh position N     the last transaction that a crashed node of Galera has
#        node-ctl.sh bootstrap N    after position: starts it as the first node of the cluster
#        node-ctl.sh cut N          no packet passes between it and the other nodes; clients reach it
#        node-ctl.sh unplug N       nothing reaches it
#        node-ctl.sh heal           all networks are as at first
#        node-ctl.sh follow N M     node N becomes a replica of node M
#        node-ctl.sh save, restore  of with-replicas.sh: keeps the data of all nodes; all is as it was kept
#        node-ctl.sh sql N SQL      as root
set -euo pipefail
. "$(dirname "$0")/cluster.sh"

read -ra dirs <<<"${ROWLOCK_TEST_NODE_DIRS:-}"
do=${1:-} number=${2:-1}

dir_of() {
    [ -f "${dirs[$1 - 1]:-/none}/argv" ] || fail "no node $1"
    echo "${dirs[$1 - 1]}"
}

is_mariadb() { grep -q '/mariadbd$' "$1/argv"; }

follow_in() { # follow_in DIR NUMBER
    if is_mariadb "$1"; then
        mysql_shell "$1" -e "STOP SLAVE; CHANGE MASTER TO MASTER_HOST = '$NETWORK.$2', MASTER_PORT = $PORT,
            MASTER_USER = 'rpl', MASTER_PASSWORD = 'rpl', MASTER_USE_GTID = slave_pos,
            MASTER_CONNECT_RETRY = 1, MASTER_HEARTBEAT_PERIOD = 1; START SLAVE"
    else
        mysql_shell "$1" -e "STOP REPLICA; CHANGE REPLICATION SOURCE TO SOURCE_HOST = '$NETWORK.$2',
            SOURCE_PORT = $PORT, SOURCE_USER = 'rpl', SOURCE_PASSWORD = 'rpl', SOURCE_AUTO_POSITION = 1,
            GET_SOURCE_PUBLIC_KEY = 1, SOURCE_CONNECT_RETRY = 1; START REPLICA"
    fi
}

# Node 1 is the primary. Each server is read-only when it starts. With semi-synchronous replication its commits wait.
open_primary() {
    local role
    role=$(sed -n 's/.*semi-sync-slave-enabled=ON/master/p; s/.*semi-sync-replica-enabled=ON/source/p' "${dirs[0]}/argv")
    [ -z "$role" ] || mysql_shell "${dirs[0]}" -e "SET GLOBAL rpl_semi_sync_${role}_enabled = ON"
    mysql_shell "${dirs[0]}" -e 'SET GLOBAL read_only = OFF'
}

# copy_data STOP FROM TO: of each node, which STOP ends and which starts again. Then the replicas follow the primary.
copy_data() {
    local dir
    for dir in "${dirs[@]}"; do
        "$1" "$dir"
        rm -rf "${dir:?}/$3"
        cp -a "$dir/$2" "$dir/$3"
        server_start mysql "$dir"
    done
    for dir in "${dirs[@]:1}"; do replicas_until_joined "$dir"; done
    open_primary
}

# recovered DIR: the cluster's identity, a colon and the number of the last transaction
recovered() { sed -n 's/.*WSREP: Recovered position: //p' "$1/recovered.err"; }

position() {
    local argv=()
    mapfile -t argv <"$1/argv"
    rm -f "$1/recovered.err"
    (unset TMPDIR; SERVER_NETWORK=$(network_of "$1"); as_server "${argv[@]}" --wsrep-recover \
        --log-error="$1/recovered.err") >/dev/null 2>&1 </dev/null
    recovered "$1" | sed 's/[^:]*:\([0-9]*\).*/\1/'
}

# After position.
bootstrap() {
    sed -i 's/^safe_to_bootstrap: 0$/safe_to_bootstrap: 1/' "$1/data/grastate.dat"
    cp "$1/argv" "$1/argv.joins"
    printf '%s\n' --wsrep-new-cluster "--wsrep-start-position=$(recovered "$1")" >>"$1/argv"
    server_start mysql "$1"
    mv "$1/argv.joins" "$1/argv"
}

case $do in
    heal) heal; exit ;;
    save) copy_data mysql_stop data saved; exit ;;
    restore) heal; copy_data server_crash saved data; exit ;;
    open) open_primary; exit ;;
    follow-in) follow_in "$2" "$3"; exit ;;
esac
dir=$(dir_of "$number")
case $do in
    crash) server_crash "$dir" ;;
    freeze) server_freeze "$dir" ;;
    thaw) server_thaw "$dir" ;;
    stop) mysql_stop "$dir" ;;
    start) server_start mysql "$dir" ;;
    forget) rm -f "$dir/data/grastate.dat" ;;
    position | bootstrap) "$do" "$dir" ;;
    join) "$(cat "$dir/kind")_until_joined" "$dir" ;;
    cut) cut "$number" ;;
    unplug) ip link set "node$number" down ;;
    follow) follow_in "$dir" "$3" ;;
    sql) mysql_shell "$dir" -e "$3" ;;
    *) fail "crash, freeze, thaw, stop, start, forget, join, position, bootstrap, cut, unplug, heal, follow or sql?" ;;
esac
