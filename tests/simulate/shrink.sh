#!/usr/bin/env bash
# Makes a failure of the simulation smaller: it leaves out faults and clients, and ends the faults
# sooner, while the run still fails for the same reason. Then it prints the story and the command.
# `make simulate SHRINK=1` calls it.
#
# usage: tests/simulate/shrink.sh PROGRAM WORLD SEED GRANTS
#   SEEDS=20   how many seeds are tried for each step: a smaller world draws other random numbers
set -u
program=$1 world=$2 seed=$3 grants=$4
faults='memory upgrade restore jump clock full deaf slow late mute lost cut freeze down cutall stop kill'
without='' clients='' story='' reason=''

# The words of a violation, without numbers.
reason_of() { grep -o 'VIOLATION: .*' <<<"$1" | tr -d '0-9-'; }

# Does a run fail for that reason? Then its seed and its story are kept.
fails() {
    local try out
    for ((try = seed; try < seed + ${1:-${SEEDS:-20}}; try++)); do
        out=$(WITHOUT=$without CLIENTS=$clients "$program" "$world" "$try" "$grants" 2>&1) && continue
        [ -z "$reason" ] || [ "$(reason_of "$out")" = "$reason" ] || continue
        seed=$try story=$out
        return 0
    done
    return 1
}

fails 1 || { echo "seed $seed does not fail: nothing to make smaller"; exit 1; }
reason=$(reason_of "$story")
[ -n "$reason" ] || { printf '%s\n' "$story"; exit 1; }
for fault in $faults; do
    before=$without
    without="$without $fault"
    fails || without=$before
    printf '%s without:%s\n' "$fault" "$without" >&2
done
for clients in 1 2 3 4 6 8 12 16 32 ''; do fails && break; done
all=$grants
for grants in 10 100 1000 "$all"; do fails && break; done
printf '%s\n\nagain: WITHOUT=%q CLIENTS=%s make simulate WORLD=%s SEED=%s GRANTS=%s\n' \
    "$story" "${without# }" "$clients" "$world" "$seed" "$grants"
exit 1
