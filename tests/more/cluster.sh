# shellcheck shell=bash
# Three nodes of one cluster for a command, in a network namespace of their own; sourced by with-galera.sh and
# with-group.sh. The group's ports of MySQL listen on every address, so nothing else may be there.
#
#     own_network "$@"          runs the script again inside such a namespace
#     start_nodes KIND COMMAND  KIND_make DIR PORT NUMBER for each node, KIND_join DIR NUMBER when it answers;
#                               then COMMAND, and stops the nodes
#
# COMMAND finds the nodes' URLs in ROWLOCK_TEST_NODES and their folders in ROWLOCK_TEST_NODE_DIRS.

# shellcheck source=tests/lib/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/server.sh"

NODES=(1 2 3)
BASE_PORT=21000

own_network() {
    local unshare=(unshare --net)
    if [ -z "${ROWLOCK_TEST_OWN_NETWORK:-}" ]; then
        [ "$(id -u)" = 0 ] || unshare+=(--user --map-current-user --keep-caps)
        exec "${unshare[@]}" env ROWLOCK_TEST_OWN_NETWORK=1 "$0" "$@"
    fi
    ip link set lo up
}

dirs=()

stop_nodes() {
    local dir
    trap '' INT TERM HUP
    for dir in "${dirs[@]}"; do
        server_thaw "$dir" 2>/dev/null
        mysql_stop "$dir"
    done
    rm -rf "${dirs[@]}"
}

start_nodes() {
    local kind=$1 number dir urls=()
    shift
    trap stop_nodes EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    for number in "${NODES[@]}"; do
        dir=$(new_server_dir "node$number")
        dirs+=("$dir")
        "${kind}_make" "$dir" $((BASE_PORT + number)) "$number" || fail "could not make node $number"
        SERVER_DEATH_SIGNAL=QUIT server_start mysql "$dir" || fail "node $number does not start"
        "${kind}_join" "$dir" "$number"
        urls+=("mysql://root@127.0.0.1:$((BASE_PORT + number))/rowlock")
    done
    mysql_shell "${dirs[0]}" -e 'CREATE DATABASE rowlock'
    export ROWLOCK_TEST_NODES="${urls[*]}" ROWLOCK_TEST_NODE_DIRS="${dirs[*]}"
    export ROWLOCK_TEST_MYSQL_URL=${urls[0]}
    "$@"
}
