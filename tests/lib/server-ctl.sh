#!/usr/bin/env bash
# Crashes, stops, freezes and starts the private server that with-*.sh started for a test.
#
# usage: server-ctl.sh {postgres|mysql} {start|stop|restart|crash|freeze|thaw|demote|promote}
# `start` returns when the server answers, `stop` and `crash` when it has ended. `demote` makes it a
# server that takes no writes: PostgreSQL a standby, which needs a restart. `promote` ends that.
set -euo pipefail
. "$(dirname "$0")/server.sh"

kind=${1:-}
case $kind in
    postgres) dir=${ROWLOCK_TEST_POSTGRES_DIR:-} ;;
    mysql) dir=${ROWLOCK_TEST_MYSQL_DIR:-} ;;
    *) fail "postgres or mysql?" ;;
esac
[ -f "$dir/argv" ] || fail "no private $kind server here"

postgres_demote() {
    postgres_stop "$dir"
    : >"$dir/data/standby.signal"
    server_start postgres "$dir"
}
mysql_demote() { mysql_shell "$dir" -e 'SET GLOBAL read_only = 1'; }
mysql_promote() { mysql_shell "$dir" -e 'SET GLOBAL read_only = 0'; }

case ${2:-} in
    start) server_start "$kind" "$dir" ;;
    stop) "${kind}_stop" "$dir" ;;
    restart) "${kind}_stop" "$dir" && server_start "$kind" "$dir" ;;
    crash) server_crash "$dir" ;;
    freeze) server_freeze "$dir" ;;
    thaw) server_thaw "$dir" ;;
    demote | promote)
        [ "$kind" = mysql ] || find_pgbin
        "${kind}_$2" "$dir"
        ;;
    *) fail "start, stop, restart, crash, freeze, thaw, demote or promote?" ;;
esac
