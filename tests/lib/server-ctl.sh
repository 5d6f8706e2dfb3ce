#!/usr/bin/env bash
# Crashes, stops, freezes and starts the private server that with-*.sh started for a test.
#
# usage: server-ctl.sh {postgres|mysql} {start|stop|restart|crash|freeze|thaw}
# `start` returns when the server answers, `stop` and `crash` when it has ended.
set -euo pipefail
. "$(dirname "$0")/server.sh"

kind=${1:-}
case $kind in
    postgres) dir=${ROWLOCK_TEST_POSTGRES_DIR:-} ;;
    mysql) dir=${ROWLOCK_TEST_MYSQL_DIR:-} ;;
    *) fail "postgres or mysql?" ;;
esac
[ -f "$dir/argv" ] || fail "no private $kind server here"

case ${2:-} in
    start) server_start "$kind" "$dir" ;;
    stop) "${kind}_stop" "$dir" ;;
    restart) "${kind}_stop" "$dir" && server_start "$kind" "$dir" ;;
    crash) server_crash "$dir" ;;
    freeze) server_freeze "$dir" ;;
    thaw) server_thaw "$dir" ;;
    *) fail "start, stop, restart, crash, freeze or thaw?" ;;
esac
