#!/usr/bin/env bash
# Runs a command that reaches the PostgreSQL server of with-postgres.sh through pgbouncer in transaction
# mode, where each transaction may get another session of the server; or in session mode, which the URL then
# says, and where all is as on a direct connection.
#
# usage: with-postgres.sh with-pgbouncer.sh [--session] COMMAND…
set -euo pipefail
# shellcheck source=tests/lib/server.sh
. "$(dirname "$0")/../lib/server.sh"

[ -n "${ROWLOCK_TEST_POSTGRES_DIR:-}" ] || fail "no private PostgreSQL server here"
mode=transaction
pool=5
if [ "${1:-}" = --session ]; then
    mode=session
    pool=90
    shift
fi
[ $# -gt 0 ] || fail "which command?"

pgbouncer_make() {
    local dir=$1 port=$2
    echo "$port" >"$dir/port"
    cat >"$dir/pgbouncer.ini" <<INI
[databases]
* = host=127.0.0.1 port=$(cat "$ROWLOCK_TEST_POSTGRES_DIR/port") user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir = $dir
auth_type = any
pool_mode = $mode
default_pool_size = $pool
max_client_conn = 300
ignore_startup_parameters = extra_float_digits
INI
    own_by_server "$dir/pgbouncer.ini"
    printf '%s\n' "$(command -v pgbouncer)" "$dir/pgbouncer.ini" >"$dir/argv"
}

pgbouncer_answers() { [ -S "$1/.s.PGSQL.$(cat "$1/port")" ]; }
pgbouncer_stop() { server_stop "$1" INT; }

kind=pgbouncer
dir=$(new_server_dir pgb)
serve "$kind"

ROWLOCK_TEST_POSTGRES_URL=postgresql://postgres@127.0.0.1:$(cat "$dir/port")/postgres
[ "$mode" = transaction ] || ROWLOCK_TEST_POSTGRES_URL+='?rowlock_pooler=session'
export ROWLOCK_TEST_POSTGRES_URL
# The server behind is not this command's to restart.
unset ROWLOCK_TEST_POSTGRES_DIR
"$@"
