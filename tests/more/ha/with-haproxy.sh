#!/usr/bin/env bash
# Runs a command beside HAProxy before the nodes of with-galera.sh or with-group.sh. Call it as the command of these.
#
# usage: with-haproxy.sh COMMAND…
#
# COMMAND finds in ROWLOCK_TEST_PROXIES an endpoint with one writer, the others as its backups, and with Galera one that
# shares out its clients. takes-writes.sh asks each node. ROWLOCK_TEST_IDLE leads to node 1, and cuts after 2 s without
# a byte. The file hosts of $ROWLOCK_TEST_PROXY_DIR, which stands for /etc/hosts, has the name in ROWLOCK_TEST_NAME.
set -euo pipefail
. "$(dirname "$0")/../cluster.sh"

make_proxy haproxy
install -m 755 "$(dirname "$0")/takes-writes.sh" "$dir/check"
{
    printf 'global\n  maxconn 1000\n  external-check\n  insecure-fork-wanted\ndefaults\n  mode tcp\n  retries 2\n'
    printf '  timeout connect 2s\n  timeout client 30m\n  timeout server 30m\n'
    for name in one:6000 all:6001; do
        printf 'listen %s\n  bind %s.254:%s\n  balance leastconn\n' "${name%:*}" "$NETWORK" "${name#*:}"
        printf '  option external-check\n  external-check command %s\n' "$dir/check"
        printf '  default-server inter 3s fastinter 1s downinter 1s fall 2 rise 2 on-marked-down shutdown-sessions\n'
        for number in "${NODES[@]}"; do
            [ "$name" != one:6000 ] || [ "$number" = 1 ] || backup=backup
            printf '  server node%s %s.%s:%s check %s\n' "$number" "$NETWORK" "$number" "$PORT" "${backup:-}"
        done
        backup=
    done
    printf 'listen idle\n  bind %s.254:6002\n  timeout client 2s\n  timeout server 2s\n' "$NETWORK"
    printf '  option tcplog\n  log stdout format raw daemon\n  server node1 %s.1:%s\n' "$NETWORK" "$PORT"
} >"$dir/haproxy.cfg"
printf '%s\n' "$(command -v haproxy)" -db -f "$dir/haproxy.cfg" >"$dir/argv"
echo "$NETWORK.1 primary" >"$dir/hosts" && mount --bind "$dir/hosts" /etc/hosts
SERVER_DEATH_SIGNAL=KILL server_start proxy "$dir" || fail "no HAProxy"
url=mysql://$NODE_USER@$NETWORK.254 all=
[ "$ROWLOCK_TEST_CLUSTER" = group ] || all=$url:6001/rowlock
export ROWLOCK_TEST_PROXIES="$url:6000/rowlock $all" ROWLOCK_TEST_IDLE=$url:6002/rowlock
export ROWLOCK_TEST_NAME=mysql://$NODE_USER@primary:$PORT/rowlock
"$@"
