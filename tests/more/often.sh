#!/usr/bin/env bash
# `make check-often`: runs `make check` RUNS times (20) beside BUSY processes that never rest (0), and tells of each run
# how long it took and what failed. The output of a failed run stays in build/often/. The status is 1 if a run failed.
set -u
cd "$(dirname "$0")/../.." || exit 1
trap 'jobs -p | xargs -r kill' EXIT
for ((i = 0; i < ${BUSY:-0}; i++)); do while :; do :; done & done
# MAKEFLAGS would give the runs the settings of this one, and a server of jobs that it has not.
unset MAKEFLAGS MFLAGS MAKELEVEL
mkdir -p build/often && failed=0
for ((run = 1; run <= ${RUNS:=20}; run++)); do
    log=build/often/$run.log begin=$SECONDS result=FAILED
    if "${MAKE:-make}" --no-print-directory check >"$log" 2>&1 </dev/null; then
        result=$(sed -n 's/^Files=\([0-9]*\), Tests=\([0-9]*\).*/passed, \2 checks in \1 programs/p' "$log")
        rm "$log"
    fi
    printf '%3d  %4d s  %s\n' "$run" $((SECONDS - begin)) "$result"
    [ "$result" != FAILED ] || failed=$((failed + 1))
    [ ! -e "$log" ] || sed -n '/^Failed:$/,$p' "$log"
done
printf '%d passed, %d failed\n' $((RUNS - failed)) "$failed"
[ "$failed" = 0 ]
