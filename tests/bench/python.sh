#!/usr/bin/env bash
# Acquire and release, and a batch of updates, from Python beside the same C calls in one run. By hand.
#
# usage: tests/bench/python.sh [PAIRS]      needs `make python`
set -euo pipefail
cd "$(dirname "$0")/../.."
site=$PWD/build/python/site
[ -e "$site/rowlock/__init__.py" ] || { echo "run make python first" >&2; exit 1; }
export PYTHONPATH=$site
file=$(mktemp -d)
trap 'rm -rf "$file"' EXIT
export ROWLOCK_BENCH_SQLITE_URL=sqlite:$file/bench.db
tests/lib/with-postgres.sh --durable tests/lib/with-mysql.sh --durable \
    "${PYTHON:-/usr/bin/python3}" tests/bench/python_overhead.py "${1:-500}"
