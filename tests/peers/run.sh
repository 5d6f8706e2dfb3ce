#!/usr/bin/env bash
# Runs the benchmark of peers on the servers that are in the environment, and on SQLite in a file.
#
# usage: run.sh      normally by `make bench-peers`
#   ROWLOCK_TEST_BUILD  the folder of the programs; peers.json is left there as well
#   PEERS, BENCH, PEERS_CLIENTS, PEERS_SECONDS: see main.c
set -euo pipefail
export BENCH_COMMIT && BENCH_COMMIT=$(git describe --always --dirty 2>/dev/null || true)

json=${ROWLOCK_TEST_BUILD:?}/peers.json
dir=$(mktemp -d "${TMPDIR:-/var/tmp}/rowlock-peers.XXXXXX")
trap 'rm -rf "$dir"' EXIT
case " ${ROWLOCK_TEST_BACKENDS:-sqlite} " in
    *" sqlite "*) export ROWLOCK_TEST_SQLITE_URL=sqlite:$dir/rowlock.db ;;
esac

echo "load of this machine at the start (1, 5, 15 minutes): $(cut -d ' ' -f 1-3 /proc/loadavg)"
"$ROWLOCK_TEST_BUILD/tests/peers/peers" "$json"
[[ pairs != *"${BENCH:-}"* ]] ||
    PYTHONPATH=$ROWLOCK_TEST_BUILD/python/site "${PYTHON:-python3}" -B "$(dirname "$0")/python_pairs.py" "$json"
printf '\nThe same as JSON: %s\n' "$json"
