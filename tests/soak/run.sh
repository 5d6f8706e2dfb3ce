#!/usr/bin/env bash
# Runs the soak on the servers whose URLs are in the environment, and on SQLite in a file.
#
# usage: run.sh      normally by `make soak`
#   ROWLOCK_TEST_BUILD  the folder of the programs; soak.json and soak.svg are left there as well
#   MINUTES (10), or SOAK_SECONDS: how long, in all
# Ctrl-C ends it early. The results are written all the same.
set -euo pipefail

json=${ROWLOCK_TEST_BUILD:?}/soak.json
dir=$(mktemp -d "${TMPDIR:-/var/tmp}/rowlock-soak.XXXXXX")
trap 'rm -rf "$dir"' EXIT
# The program ends by the signal. This script goes on after it.
trap : INT TERM
case " ${ROWLOCK_TEST_BACKENDS:-sqlite} " in
    *" sqlite "*) export ROWLOCK_TEST_SQLITE_URL=sqlite:$dir/rowlock.db ;;
esac
export SOAK_SECONDS=${SOAK_SECONDS:-$((${MINUTES:-10} * 60))}

echo "load of this machine at the start (1, 5, 15 minutes): $(cut -d ' ' -f 1-3 /proc/loadavg)"
status=0
"$ROWLOCK_TEST_BUILD/tests/soak/soak" "$json" || status=$?
tools/plot-soak.py "$json" >"${json%.json}.svg" || status=1
printf '\nThe same as JSON: %s, and as a plot: %s\n' "$json" "${json%.json}.svg"
exit $status
