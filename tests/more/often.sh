#!/usr/bin/env bash
# Runs `make check` again and again, and tells of each run how long it took and what failed.
# `make check-often` calls it.
#
# usage: tests/more/often.sh
#   RUNS=20   how many runs
#   BUSY=8    beside so many processes that never rest
#   CPUS=0    only on these processors, as for taskset
# The output of a failed run is in build/often/. The status is 1 if a run failed.
set -u
cd "$(dirname "$0")/../.." || exit 1

runs=${RUNS:-20}
make=${MAKE:-make}
on=()
[ -z "${CPUS:-}" ] || on=(taskset -c "$CPUS")

load=()
stop_load() { [ ${#load[@]} = 0 ] || kill "${load[@]}" 2>/dev/null; }
trap stop_load EXIT
for ((i = 0; i < ${BUSY:-0}; i++)); do
    "${on[@]}" sh -c 'while :; do :; done' &
    load+=($!)
done

# MAKEFLAGS would give the runs the settings of this one, and a server of jobs that it has not.
unset MAKEFLAGS MFLAGS MAKELEVEL
mkdir -p build/often
failed=0
# Each run has a process group of its own, which a signal ends as a whole.
set -m
child=
trap '[ -z "$child" ] || kill -TERM -- "-$child"; exit 130' INT TERM
echo "$runs runs beside ${BUSY:-0} busy processes on processors ${CPUS:-all}"
for ((run = 1; run <= runs; run++)); do
    log=build/often/$run.log
    begin=$SECONDS
    "${on[@]}" "$make" --no-print-directory check >"$log" 2>&1 </dev/null &
    child=$!
    if wait "$child"; then
        result=$(sed -n 's/^Files=\([0-9]*\), Tests=\([0-9]*\).*/passed, \2 checks in \1 programs/p' "$log")
        rm -f "$log"
    else
        result="FAILED, see $log"
        failed=$((failed + 1))
    fi
    printf '%3d  %4d s  %s\n' "$run" $((SECONDS - begin)) "$result"
    [ ! -e "$log" ] || sed -n '/^Failed:$/,$p' "$log"
done
printf '%d passed, %d failed\n' $((runs - failed)) $failed
[ $failed = 0 ]
