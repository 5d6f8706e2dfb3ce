#!/usr/bin/env bash
# Runs a command that reaches the PostgreSQL server of with-postgres.sh through pgbouncer in transaction
# mode, where each transaction may get another session of the server; or in session mode, which the URL then
# says, and where all is as on a direct connection.
#
# usage: with-postgres.sh with-pgbouncer.sh [--session] COMMAND…
set -euo pipefail
. "$(dirname "$0")/../lib/server.sh"
. "$(dirname "$0")/pgbouncer.sh"

[ -n "${ROWLOCK_TEST_POSTGRES_DIR:-}" ] || fail "no private PostgreSQL server here"
mode=transaction
pool=5
if [ "${1:-}" = --session ]; then
    mode=session
    pool=90
    shift
fi
[ $# -gt 0 ] || fail "which command?"

kind=pgbouncer
dir=$(new_server_dir pgb)
serve "$kind" "$(cat "$ROWLOCK_TEST_POSTGRES_DIR/port")" "$mode" "$pool"

ROWLOCK_TEST_POSTGRES_URL=postgresql://postgres@127.0.0.1:$(cat "$dir/port")/postgres
[ "$mode" = transaction ] || ROWLOCK_TEST_POSTGRES_URL+='?rowlock_pooler=session'
export ROWLOCK_TEST_POSTGRES_URL
# The server behind is not this command's to restart.
unset ROWLOCK_TEST_POSTGRES_DIR
"$@"
