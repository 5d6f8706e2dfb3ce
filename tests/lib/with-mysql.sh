#!/usr/bin/env bash
# Runs a command with a private MariaDB or MySQL server, which ends with the command.
#
# usage: with-mysql.sh [--durable] COMMAND…
#   exports ROWLOCK_TEST_MYSQL_URL, and ROWLOCK_TEST_MYSQL_DIR for server-ctl.sh
#   if ROWLOCK_TEST_MYSQL_URL is set already, that server is used and none is started
#   MYSQL_BASEDIR names the folder of another version
# The redo log is always flushed at each commit, since rowlock needs that. --durable is for
# benchmarks: it also syncs all other files, and allows more clients.
set -euo pipefail
# shellcheck source=tests/lib/server.sh
. "$(dirname "$0")/server.sh"

options=(--innodb-flush-log-at-trx-commit=1 --innodb-doublewrite=0)
[ "${1:-}" != --durable ] ||
    { options=(--innodb-flush-log-at-trx-commit=1 --max-connections=1100) && scratch_on_disk && shift; }
[ $# -gt 0 ] || fail "which command?"
[ -z "${ROWLOCK_TEST_MYSQL_URL:-}" ] || exec "$@"

kind=mysql
dir=$(new_server_dir my)
serve "$kind" "${options[@]}"

mysql_shell "$dir" -e 'CREATE DATABASE IF NOT EXISTS rowlock'
port=$(cat "$dir/port")
export ROWLOCK_TEST_MYSQL_URL=mysql://root@127.0.0.1:$port/rowlock
export ROWLOCK_TEST_MYSQL_DIR=$dir
"$@"
