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

case ${2:-} in
    crash) server_crash "$dir" ;;
    start) server_start "$(kind_of "$name")" "$dir" ;;
    *) fail "crash or start?" ;;
esac
