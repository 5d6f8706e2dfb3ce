#!/usr/bin/env bash
# Runs a command beside HAProxy before the nodes of with-galera.sh or with-group.sh. Call it as the command of these.
#
# usage: with-haproxy.sh COMMAND…
#
# COMMAND finds in ROWLOCK_TEST_PROXIES the URL of an endpoint with one writer, the others as its backups, and of one
# that shares out its clients. A node is asked whether it takes writes (takes-writes.sh).
set -euo pipefail
. "$(dirname "$0")/../cluster.sh"

[ -n "${ROWLOCK_TEST_NODES:-}" ] || fail "no nodes: call it as the command of with-galera.sh or with-group.sh"
[ $# -gt 0 ] || fail "which command?"
dir=$(new_server_dir haproxy)
check=$(cd "$(dirname "$0")" && pwd)/takes-writes.sh
trap 'server_crash "$dir"; rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

install -m 755 "$check" "$dir/check"
{
    printf 'global\n  maxconn 1000\n  external-check\n  insecure-fork-wanted\ndefaults\n  mode tcp\n  retries 2\n'
    printf '  timeout connect 2s\n  timeout check 2s\n  timeout client 30m\n  timeout server 30m\n'
    for name in one:6000 all:6001; do
        printf 'listen %s\n  bind %s.254:%s\n  balance leastconn\n' "${name%:*}" "$NETWORK" "${name#*:}"
        printf '  option external-check\n  external-check command %s\n' "$dir/check"
        printf '  default-server inter 1s fall 2 rise 2 on-marked-down shutdown-sessions\n'
        for number in "${NODES[@]}"; do
            [ "$name" != one:6000 ] || [ "$number" = 1 ] || backup=backup
            printf '  server node%s %s.%s:%s check %s\n' "$number" "$NETWORK" "$number" "$PORT" "${backup:-}"
        done
        backup=
    done
} >"$dir/haproxy.cfg"
printf '%s\n' "$(command -v haproxy)" -db -f "$dir/haproxy.cfg" >"$dir/argv"
haproxy_answers() { (exec 3<>"/dev/tcp/$NETWORK.254/6001") 2>/dev/null; }
SERVER_DEATH_SIGNAL=KILL server_start haproxy "$dir" || fail "no HAProxy"

user=${ROWLOCK_TEST_NODES%%@*}
export ROWLOCK_TEST_PROXIES="$user@$NETWORK.254:6000/rowlock $user@$NETWORK.254:6001/rowlock" ROWLOCK_TEST_PROXY_DIR=$dir
"$@"
