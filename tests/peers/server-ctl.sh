#!/usr/bin/env bash
# Crashes and starts a private server of the benchmark.
#
# usage: server-ctl.sh NAME {crash|start}      NAME: postgres, mysql, or one of servers.sh
# Each returns when it is done.
set -euo pipefail
. "$(dirname "$0")/servers.sh"

name=${1:-}
case $name in
    postgres) dir=${ROWLOCK_TEST_POSTGRES_DIR:-} ;;
    mysql) dir=${ROWLOCK_TEST_MYSQL_DIR:-} ;;
    *) dir=${ROWLOCK_PEERS_DIR:-}/$name ;;
esac
[ -f "$dir/argv" ] || fail "no private server $name here"

# PostgreSQL does not start while a process with the number of the old server is there, even a zombie.
crash() {
    local pid end=$((SECONDS + 20))
    pid=$(cat "$dir/pid")
    server_crash "$dir"
    while [ -e "/proc/$pid" ] && [ "$SECONDS" -lt "$end" ]; do
        sleep 0.02
    done
}

case ${2:-} in
    crash) crash ;;
    start) server_start "$(kind_of "$name")" "$dir" ;;
    *) fail "crash or start?" ;;
esac
