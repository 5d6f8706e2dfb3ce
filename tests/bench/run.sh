#!/usr/bin/env bash
# Runs the benchmarks on the servers whose URLs are in the environment, and on SQLite in a file.
#
# usage: run.sh      normally by `make bench`
#   ROWLOCK_TEST_BUILD  the folder of the programs; bench.json is left there as well
#   BENCH=word runs only the parts with that word in their name; this and the other BENCH_ settings: see
#   main.c
set -euo pipefail
export BENCH_COMMIT && BENCH_COMMIT=$(git describe --always --dirty 2>/dev/null || true)

json=${ROWLOCK_TEST_BUILD:?}/bench.json
program=("$ROWLOCK_TEST_BUILD/tests/bench/main")

dir=$(mktemp -d "${TMPDIR:-/tmp}/rowlock-bench.XXXXXX")
trap 'rm -rf "$dir"' EXIT
case " ${ROWLOCK_TEST_BACKENDS:-sqlite} " in
    *" sqlite "*) export ROWLOCK_TEST_SQLITE_URL=sqlite:$dir/rowlock.db ;;
esac

# The other members of a quorum have servers of their own.
if [[ quorum == *"${BENCH:-}"* ]]; then
    for kind in postgres mysql; do
        url=ROWLOCK_TEST_${kind^^}_URL member=("$(dirname "$0")/with-member.sh" "$kind")
        [ -z "${!url:-}" ] || program=("${member[@]}" "${member[@]}" "${program[@]}")
    done
fi

"${program[@]}" "$json"
printf '\nThe same as JSON: %s\n' "$json"
