#!/usr/bin/env bash
# Runs a command beside three MariaDB servers that are one cluster of Galera. See cluster.sh.
#
# usage: with-galera.sh COMMAND…
set -euo pipefail
# shellcheck source=tests/more/cluster.sh
. "$(dirname "$0")/cluster.sh"

[ $# -gt 0 ] || fail "which command?"
own_network "$@"

provider=$(find /usr/lib /usr/lib64 -name libgalera_smm.so 2>/dev/null | head -n 1)
[ -n "$provider" ] || fail "no Galera: install the package galera-4"
command -v wsrep_sst_rsync >/dev/null || fail "no wsrep_sst_rsync: install the package mariadb-server"

galera_make() {
    local dir=$1 port=$2 number=$3 group=$((BASE_PORT + 100 * $3)) other addresses='' options
    for other in "${NODES[@]}"; do addresses+=${addresses:+,}127.0.0.1:$((BASE_PORT + 100 * other)); done
    options="gmcast.listen_addr=tcp://127.0.0.1:$group;ist.recv_addr=127.0.0.1:$((group + 10))"
    options+=";base_host=127.0.0.1;base_port=$group;gcache.size=16M;evs.keepalive_period=PT0.3S"
    # A node that is gone is noticed after two seconds, instead of five.
    options+=";evs.inactive_check_period=PT0.3S;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT4S"
    mysql_make "$dir" "$port" --binlog-format=ROW --innodb-autoinc-lock-mode=2 --wsrep-on=ON \
        --wsrep-provider="$provider" --wsrep-cluster-name=rowlock --wsrep-cluster-address="gcomm://$addresses" \
        --wsrep-node-name="node$number" --wsrep-node-address="127.0.0.1:$group" --wsrep-sst-method=rsync \
        --wsrep-sst-receive-address="127.0.0.1:$((group + 20))" --wsrep-provider-options="$options"
    [ "$number" != 1 ] || echo --wsrep-new-cluster >>"$dir/argv"
}

galera_join() {
    local try
    for ((try = 0; try < 1000; try++)); do
        case $(mysql_shell "$1" -e "SHOW STATUS LIKE 'wsrep_local_state_comment'") in *Synced) return 0 ;; esac
        sleep 0.05
    done
    fail "node $2 does not join: $(tail -n 5 "$1/log")"
}

start_nodes galera "$@"
