# shellcheck shell=bash
# Three nodes for a command; sourced by with-galera.sh, with-group.sh and with-replicas.sh.
#
# Each node has a network namespace of its own, so it can be cut off: node N has the address 10.77.0.N. The
# command runs in another one, 10.77.0.254. A bridge connects them. A node's Unix socket works from everywhere.
#
#     own_network "$@"          runs the script again inside such a namespace, and one of mounts
#     start_nodes KIND COMMAND  KIND_make DIR PORT NUMBER for each node, KIND_join DIR NUMBER when it answers;
#                               then COMMAND, and stops the nodes
#
# COMMAND finds the nodes' URLs in ROWLOCK_TEST_NODES and their folders in ROWLOCK_TEST_NODE_DIRS. node-ctl.sh
# crashes, freezes and cuts off nodes.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/server.sh"

NODES=(1 2 3)
NETWORK=10.77.0
PORT=21000
# Who has the URLs.
NODE_USER=root

own_network() {
    local unshare=(unshare --net --mount)
    [ $# -gt 0 ] || fail "which command?"
    if [ -z "${ROWLOCK_TEST_OWN_NETWORK:-}" ]; then
        [ "$(id -u)" = 0 ] || unshare+=(--user --map-current-user --keep-caps)
        exec "${unshare[@]}" env ROWLOCK_TEST_OWN_NETWORK=1 "$0" "$@"
    fi
    ip link set lo up
    ip link add nodes type bridge
    ip address add "$NETWORK.254/24" dev nodes
    ip link set nodes up
}

# in_network PID COMMAND…: COMMAND in the network of that process.
in_network() {
    local pid=$1
    shift
    nsenter --net="/proc/$pid/ns/net" -- "$@"
}

holders=()

# make_network DIR NUMBER: a network for one node. A process holds it, and server_start enters it.
make_network() {
    local dir=$1 number=$2 holder try
    setpriv --pdeathsig KILL -- unshare --net sleep infinity &
    holder=$!
    holders+=("$holder")
    for ((try = 0; try < 500; try++)); do
        [ "$(readlink "/proc/$holder/ns/net")" = "$(readlink /proc/self/ns/net)" ] || break
        sleep 0.01
    done
    ip link add "node$number" type veth peer name eth0 netns "$holder"
    ip link set "node$number" master nodes up
    in_network "$holder" ip link set lo up
    in_network "$holder" ip address add "$NETWORK.$number/24" dev eth0
    in_network "$holder" ip link set eth0 up
    echo "$holder" >"$dir/network"
}

# block FROM TO, cut N, heal: see node-ctl.sh. dir_of N is the caller's. Packets that are lost go to an address that no
# node has.
block() {
    in_network "$(cat "$(dir_of "$1")/network")" \
        ip neighbour replace "$NETWORK.$2" lladdr 02:00:00:00:00:00 nud permanent dev eth0
}

cut() {
    local other
    for other in "${NODES[@]}"; do
        if [ "$other" != "$1" ]; then
            block "$1" "$other"
            block "$other" "$1"
        fi
    done
}

heal() {
    local other
    for other in "${NODES[@]}"; do
        in_network "$(cat "$(dir_of "$other")/network")" ip neighbour flush dev eth0 nud permanent
        ip link set "node$other" up
    done
}

dirs=()

stop_nodes() {
    local dir
    trap '' INT TERM HUP
    for dir in "${dirs[@]}"; do
        server_thaw "$dir" 2>/dev/null
        server_crash "$dir" 2>/dev/null
    done
    kill "${holders[@]}" 2>/dev/null
    rm -rf "${dirs[@]}"
}

# Makes and starts node N, and waits until it has joined the others.
start_node() {
    local kind=$1 number=$2 dir
    dir=$(new_server_dir "node$number")
    dirs+=("$dir")
    make_network "$dir" "$number"
    "${kind}_make" "$dir" "$PORT" "$number" || fail "could not make node $number"
    echo "$kind" >"$dir/kind"
    SERVER_DEATH_SIGNAL=QUIT server_start mysql "$dir" || fail "node $number does not start"
    "${kind}_join" "$dir" "$number"
}

start_nodes() {
    local kind=$1 number urls=()
    shift
    trap stop_nodes EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    for number in "${NODES[@]}"; do
        start_node "$kind" "$number"
        urls+=("mysql://$NODE_USER@$NETWORK.$number:$PORT/rowlock")
    done
    mysql_shell "${dirs[0]}" -e 'CREATE DATABASE IF NOT EXISTS rowlock'
    export ROWLOCK_TEST_NODES="${urls[*]}" ROWLOCK_TEST_NODE_DIRS="${dirs[*]}" ROWLOCK_TEST_CLUSTER=$kind
    export ROWLOCK_TEST_MYSQL_URL=${urls[0]}
    "$@"
}

# make_proxy NAME: $dir for a proxy before the nodes, at port 6001 of the command's address.
make_proxy() {
    [ -n "${ROWLOCK_TEST_NODES:-}" ] || fail "no nodes: call it as the command of with-galera.sh or with-group.sh"
    dir=$(new_server_dir "$1")
    export ROWLOCK_TEST_PROXY_DIR=$dir
    trap 'server_crash "$dir"; rm -rf "$dir"' EXIT
    trap 'exit 143' INT TERM HUP
}
proxy_answers() { (exec 6<>"/dev/tcp/$NETWORK.254/6001") 2>/dev/null; }

# node_options NUMBER: what each node is started with.
node_options() {
    printf '%s\n' --bind-address=0.0.0.0 "--server-id=$1" "--report-host=$NETWORK.$1" --innodb-flush-log-at-trx-commit=1
}

until_says() { # until_says DIR SQL ANSWER…: waits until SQL gives one of the answers
    local dir=$1 sql=$2 try got answer
    shift 2
    for ((try = 0; try < 1200; try++)); do
        got=$(mysql_shell "$dir" -e "$sql" 2>/dev/null) || got=
        for answer in "$@"; do [ "$got" != "$answer" ] || return 0; done
        sleep 0.05
    done
    echo "it says '$got' instead of '$*': $(tail -n 5 "$dir/log")" >&2
    return 1
}

# A replica is connected to its primary.
replicas_until_joined() {
    until_says "$1" "SELECT COUNT(*) FROM information_schema.processlist WHERE command IN ('Slave_IO', 'Connect')
        AND state LIKE 'Waiting for % to send event'" 1
}

galera_until_joined() {
    until_says "$1" "SELECT variable_value FROM information_schema.global_status
        WHERE variable_name = 'wsrep_local_state_comment'" Synced
}

group_until_joined() {
    until_says "$1" "SELECT member_state FROM performance_schema.replication_group_members
        WHERE member_id = @@server_uuid" ONLINE
}
