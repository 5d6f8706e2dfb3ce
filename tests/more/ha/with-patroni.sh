#!/usr/bin/env bash
# Runs a command beside three nodes of Patroni, each with etcd and PostgreSQL; HAProxy before them, and
# pgbouncer before HAProxy. See ../cluster.sh for the network.
#
# usage: with-patroni.sh [--etcd3] [SETTING=VALUE]… COMMAND…     settings of Patroni's bootstrap.dcs
#   --etcd3: Patroni speaks etcd's API version 3. Before 3.0.3 a leader that has slept takes its key back then.
#   PGBIN  the folder of PostgreSQL's programs
#   PATRONI_ROOT  a folder with another Patroni, unpacked; the system's Python runs it
#
# COMMAND finds in PATRONI_HOSTS the hosts of the nodes, and these addresses:
#   PATRONI_QUICK, PATRONI_SAMPLE  HAProxy with quick checks, and with those of Patroni's sample
#   PATRONI_BRIEF                  the quick checks, and idle connections are cut after 2 s
#   PATRONI_BOUNCER                pgbouncer, whose server is PATRONI_QUICK
#   PATRONI_NAMED                  a host name. Patroni's callback moves it to the leader
# patroni-ctl.sh kills, freezes and cuts off their parts.
set -euo pipefail
. "$(dirname "$0")/../cluster.sh"
. "$(dirname "$0")/../pgbouncer.sh"

own_network "$@"
find_pgbin
[ -z "${PATRONI_ROOT:-}" ] ||
    export PATH=$PATRONI_ROOT/usr/bin:$PATH PYTHONPATH=$PATRONI_ROOT/usr/lib/python3/dist-packages
api=etcd
[ "${1:-}" != --etcd3 ] || { api=etcd3 && shift; }
settings=(synchronous_mode=true synchronous_mode_strict=true)
while [[ ${1:-} == [a-z]*=* ]]; do settings+=("$1") && shift; done
[ $# -gt 0 ] || fail "which command?"
folder=$(new_server_dir patroni)
export PATRONI_FOLDER=$folder PGBIN

joined() { (IFS=,; echo "$*"); }

etcd_make() {
    local number=$1 host=$NETWORK.$1 other members=()
    for other in "${NODES[@]}"; do members+=("node$other=http://$NETWORK.$other:2380"); done
    printf '%s\n' "$(command -v etcd)" --name "node$number" --data-dir "$folder/etcd$number/data" \
        --listen-client-urls "http://$host:2379" --advertise-client-urls "http://$host:2379" \
        --listen-peer-urls "http://$host:2380" --initial-advertise-peer-urls "http://$host:2380" \
        --initial-cluster "$(joined "${members[@]}")" --initial-cluster-state new \
        --enable-v2 --heartbeat-interval 100 --election-timeout 1000 >"$folder/etcd$number/argv"
}
# A member answers when it is one of a majority, so none is waited for.
etcd_answers() { running "$(cat "$1/pid")"; }

# Patroni's smallest times. The last setting of a name counts.
patroni_make() {
    local number=$1 host=$NETWORK.$1 dir=$folder/node$1 other etcds=()
    for other in "${NODES[@]}"; do etcds+=("$NETWORK.$other:2379"); done
    {
        printf 'scope: rowlock\nname: node%s\n' "$number"
        printf 'restapi: {listen: "%s:8008", connect_address: "%s:8008"}\n' "$host" "$host"
        printf '%s: {hosts: "%s"}\n' "$api" "$(joined "${etcds[@]}")"
        printf 'bootstrap:\n  dcs:\n    ttl: 20\n    loop_wait: 1\n    retry_timeout: 3\n    maximum_lag_on_failover: 1048576\n'
        printf '%s\n' "${settings[@]}" | awk -F= '{ last[$1] = $2 } END { for (s in last) print "    " s ": " last[s] }'
        printf '    postgresql: {use_pg_rewind: true, parameters: {max_connections: 200, shared_buffers: 64MB}}\n'
        printf '  initdb: [{encoding: UTF8}, {locale: C}, {auth: trust}]\n'
        printf 'postgresql:\n  listen: "%s:5432"\n  connect_address: "%s:5432"\n' "$host" "$host"
        printf '  data_dir: %s\n  bin_dir: %s\n  pgpass: %s\n' "$dir/data" "$PGBIN" "$dir/pgpass"
        printf '  pg_hba: ["local all all trust", "host all all 0.0.0.0/0 trust", "host replication all 0.0.0.0/0 trust"]\n'
        printf '  callbacks: {on_role_change: "%s %s"}\n' "$folder/names_leader" "$host"
        printf '  parameters: {unix_socket_directories: %s}\n' "$dir"
        printf '  authentication: {superuser: {username: postgres}, replication: {username: replicator}}\n'
    } >"$dir/patroni.yml"
    printf '%s\n' "$(command -v patroni)" "$dir/patroni.yml" >"$dir/argv"
}
patroni_answers() { etcd_answers "$1"; }

# A server is checked by the API of its Patroni: /primary says 200 on the leader alone.
haproxy_make() {
    local number
    {
        printf 'global\n  maxconn 1000\ndefaults\n  mode tcp\n  retries 2\n  timeout connect 2s\n'
        printf '  timeout check 2s\n'
        printf 'listen stats\n  bind %s.254:7000\n  mode http\n  stats enable\n  stats uri /\n' "$NETWORK"
        while read -r name port idle checks; do
            printf 'listen %s\n  bind *:%s\n  option httpchk OPTIONS /primary\n' "$name" "$port"
            printf '  timeout client %s\n  timeout server %s\n' "$idle" "$idle"
            printf '  http-check expect status 200\n  default-server %s on-marked-down shutdown-sessions\n' "$checks"
            for number in "${NODES[@]}"; do
                printf '  server node%s %s.%s:5432 check port 8008\n' "$number" "$NETWORK" "$number"
            done
        done <<'ENDPOINTS'
quick 5000 30m inter 500ms fall 1 rise 1
brief 5002 2s inter 500ms fall 1 rise 1
sample 5001 30m inter 3s fall 3 rise 2
ENDPOINTS
    } >"$folder/haproxy/haproxy.cfg"
    printf '%s\n' "$(command -v haproxy)" -db -f "$folder/haproxy/haproxy.cfg" >"$folder/haproxy/argv"
}
haproxy_answers() { (exec 3<>"/dev/tcp/$NETWORK.254/5000") 2>/dev/null; }

stop_all() {
    trap '' INT TERM HUP
    local number
    for part in haproxy pgbouncer; do server_crash "$folder/$part" 2>/dev/null; done
    for number in "${NODES[@]}"; do "$(dirname "$0")/patroni-ctl.sh" down "$number" 2>/dev/null; done
    kill "${holders[@]}" 2>/dev/null
    [ -z "${PATRONI_KEEP:-}" ] || cp -r "$folder" "$PATRONI_KEEP"
    rm -rf "$folder"
}
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

for part in etcd node; do
    for number in "${NODES[@]}"; do (as_server mkdir -p "$folder/$part$number"); done
done
(as_server mkdir -p "$folder/haproxy" "$folder/pgbouncer")
cat >"$folder/names_leader" <<CALLBACK
#!/bin/sh
# usage: names_leader ADDRESS on_role_change ROLE CLUSTER. Readers never see an empty file.
case \$3 in master | primary) echo "\$1 leader" 1<>"$folder/hosts" ;; esac
CALLBACK
chmod 755 "$folder/names_leader"
for number in "${NODES[@]}"; do
    make_network "$folder/node$number" "$number"
    cp "$folder/node$number/network" "$folder/etcd$number/network"
    etcd_make "$number"
    patroni_make "$number"
    SERVER_DEATH_SIGNAL=KILL server_start etcd "$folder/etcd$number" || fail "no etcd"
done
for number in "${NODES[@]}"; do
    SERVER_DEATH_SIGNAL=KILL server_start patroni "$folder/node$number" || fail "no Patroni"
done
haproxy_make
SERVER_DEATH_SIGNAL=KILL server_start haproxy "$folder/haproxy" || fail "no HAProxy"
"$(dirname "$0")/patroni-ctl.sh" whole || fail "the nodes do not become a cluster"
"$(dirname "$0")/patroni-ctl.sh" proxied || fail "HAProxy does not find the leader"
pgbouncer_make "$folder/pgbouncer" 6432 5000 transaction 30
echo "server_login_retry = 1" >>"$folder/pgbouncer/pgbouncer.ini"
SERVER_DEATH_SIGNAL=KILL server_start pgbouncer "$folder/pgbouncer" || fail "no pgbouncer"
printf '%s leader\n127.0.0.1 localhost\n' "$NETWORK.$("$(dirname "$0")/patroni-ctl.sh" leader)" >"$folder/hosts"
own_by_server "$folder/hosts"
mount --bind "$folder/hosts" /etc/hosts

export PATRONI_HOSTS=$NETWORK.1:5432,$NETWORK.2:5432,$NETWORK.3:5432
export PATRONI_QUICK=$NETWORK.254:5000 PATRONI_SAMPLE=$NETWORK.254:5001 PATRONI_BRIEF=$NETWORK.254:5002
export PATRONI_BOUNCER=127.0.0.1:6432 PATRONI_NAMED=leader:5432
export PATRONI_API=$api ROWLOCK_TEST_CLUSTER=patroni ROWLOCK_TEST_NODES=postgresql://postgres@$PATRONI_HOSTS/postgres
"$@"
