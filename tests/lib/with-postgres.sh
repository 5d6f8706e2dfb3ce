#!/usr/bin/env bash
# Runs a command with a private PostgreSQL server, which ends with the command.
#
# usage: with-postgres.sh [--durable] COMMAND…
#   exports ROWLOCK_TEST_POSTGRES_URL, and ROWLOCK_TEST_POSTGRES_DIR for server-ctl.sh
#   if ROWLOCK_TEST_POSTGRES_URL is set already, that server is used and none is started
#   PGBIN names the folder of another version's programs
#   --durable, for benchmarks, keeps fsync on and allows more clients
set -euo pipefail
# shellcheck source=tests/lib/server.sh
. "$(dirname "$0")/server.sh"

options=(-c fsync=off)
[ "${1:-}" != --durable ] ||
    { options=(-c fsync=on -c max_connections=1100) && scratch_on_disk && shift; }
[ $# -gt 0 ] || fail "which command?"
[ -z "${ROWLOCK_TEST_POSTGRES_URL:-}" ] || exec "$@"

kind=postgres
dir=$(new_server_dir pg)
serve "$kind" "${options[@]}"

port=$(cat "$dir/port")
export ROWLOCK_TEST_POSTGRES_URL=postgresql://postgres@127.0.0.1:$port/postgres
export ROWLOCK_TEST_POSTGRES_DIR=$dir
"$@"
