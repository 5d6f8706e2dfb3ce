#!/usr/bin/env bash
# The first example of rowlock(1), typed in as it stands there, for two hosts: each step succeeds, and the job is done
# once.
. "$(dirname "$0")/cli.sh"

# block N: lines of that literal block among the examples.
block() {
    sed -n '/^\.Sh EXAMPLES/,$p' docs/man/rowlock.1 | sed 's/\\-/-/g' |
        awk -v wanted="$1" '/^\.Ed/ { on = 0 } on { print } /^\.Bd/ { on = ++n == wanted }'
}

# typed NAME: the commands on standard input, one by one.
typed() {
    local line
    while read -r line; do
        (PATH=$work/bin:$PATH && bash -c "$line") >"$work/out" 2>"$work/err" </dev/null
        status=$?
        holds "$1: $line" test $status = 0
        [ $status = 0 ] || tap_note "$(cat "$work/out" "$work/err")"
    done
}

follow() {
    mkdir -p "$work/bin" "$work/figures"
    ln -s "$command" "$work/bin/rowlock"
    printf '#!/bin/sh\necho "$ROWLOCK_PERIOD" >>%s\n' "$work/reports" >"$work/bin/report.sh"
    chmod +x "$work/bin/report.sh"
    # The servers of tests are not durable, which check calls bad.
    typed "an operator" < <(block 1 | grep -v '^export\|check$')
    for host in first second; do
        typed "the $host host" < <(block 2 | sed -nE "s|/var/lib/prometheus/node-exporter|$work/figures|
            s/^([^ ]+ +){5}app +//p")
    done
    same "there is one report" "$(grep -c 'T02:00:00Z$' "$work/reports")" 1
    holds "and figures" grep -q '^rowlock_up 1' "$work/figures/rowlock.prom"
    typed "anybody" < <(block 3)
    prints "the day is done" 0 'done' once list report
}

for_each_database follow
done_testing
