#!/usr/bin/env bash
# Runs a command beside three MariaDB servers that are one cluster of Galera. See cluster.sh.
#
# usage: with-galera.sh COMMAND…
set -euo pipefail
. "$(dirname "$0")/cluster.sh"

own_network "$@"

provider=$(find /usr/lib /usr/lib64 -name libgalera_smm.so 2>/dev/null | head -n 1)
[ -n "$provider" ] || fail "no Galera: install the package galera-4"
command -v wsrep_sst_rsync >/dev/null || fail "no wsrep_sst_rsync: install the package mariadb-server"

galera_make() {
    local dir=$1 port=$2 number=$3 other addresses='' options more
    for other in "${NODES[@]}"; do addresses+=${addresses:+,}$NETWORK.$other; done
    options="base_host=$NETWORK.$number;gcache.size=16M;evs.keepalive_period=PT0.3S"
    # A node that is gone is noticed after two seconds, instead of five.
    options+=";evs.inactive_check_period=PT0.3S;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT4S"
    mapfile -t more < <(node_options "$number")
    mysql_make "$dir" "$port" "${more[@]}" --binlog-format=ROW --innodb-autoinc-lock-mode=2 --wsrep-on=ON \
        --wsrep-provider="$provider" --wsrep-cluster-name=rowlock --wsrep-cluster-address="gcomm://$addresses" \
        --wsrep-node-name="node$number" --wsrep-node-address="$NETWORK.$number" --wsrep-sst-method=rsync \
        --wsrep-provider-options="$options"
    [ "$number" != 1 ] || echo --wsrep-new-cluster >>"$dir/argv"
}

# Node 1 makes a new cluster only this time.
galera_join() {
    galera_until_joined "$1" || fail "node $2 does not join"
    if [ "$2" = 1 ]; then
        sed -i '/^--wsrep-new-cluster$/d' "$1/argv"
        mysql_shell "$1" -e "CREATE USER root@'%'; GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION"
    fi
}

start_nodes galera "$@"
